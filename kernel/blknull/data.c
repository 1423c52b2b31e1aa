// SPDX-License-Identifier: GPL-2.0
/*
 * Data of a memory-backed device: blocks of one page in an xarray. A lookup takes
 * only the block's lock. Data are copied under it, so a sector is never read
 * half-written. Adding or removing a block takes the xarray's lock.
 */
#include <linux/bio.h>
#include <linux/bitmap.h>
#include <linux/gfp.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "blknull.h"
#include "compat/pages.h"

#define BLKNULL_BLOCK_SECTORS	(PAGE_SIZE >> SECTOR_SHIFT)

/**
 * struct blknull_block - a page of the disk
 * @lock: protects everything below; taken before the xarray's lock
 * @dead: removed from the xarray: the lookup must be repeated
 * @written: sectors that were written and not discarded since
 * @data: the page; sectors that are not @written are zero
 * @rcu: frees the block after concurrent lookups
 */
struct blknull_block {
	spinlock_t lock; /* everything below */
	bool dead;
	DECLARE_BITMAP(written, BLKNULL_BLOCK_SECTORS);
	void *data;
	struct rcu_head rcu;
};

/* Add an empty block at @index, unless another thread has added one. */
static int blknull_block_add(struct blknull_device *dev, unsigned long index)
{
	struct blknull_block *block;
	void *there;

	block = kzalloc_node(sizeof(*block), GFP_NOIO, dev->config.home_node);
	if (!block)
		return -ENOMEM;
	spin_lock_init(&block->lock);
	block->data = (void *)get_zeroed_page(GFP_NOIO);
	if (!block->data) {
		kfree(block);
		return -ENOMEM;
	}
	there = xa_cmpxchg(&dev->blocks, index, NULL, block, GFP_NOIO);
	if (!there)
		return 0;
	free_page((unsigned long)block->data);
	kfree(block);
	return xa_err(there);
}

/* Operations on part of a block. */
enum blknull_access {
	BLKNULL_GET,
	BLKNULL_PUT,
	BLKNULL_ERASE,
};

/*
 * Copy @len bytes at @pos of the disk from or to @buf, or zero them. They are in
 * one block. Return: 0, or -ENOENT if the block does not exist.
 */
static int blknull_access(struct blknull_device *dev, u64 pos, void *buf,
			  unsigned int len, enum blknull_access access)
{
	unsigned long index = pos >> PAGE_SHIFT;
	unsigned int at = offset_in_page(pos);
	unsigned int first = at >> SECTOR_SHIFT;
	unsigned int sectors = ((at + len - 1) >> SECTOR_SHIFT) - first + 1;
	struct blknull_block *block;

again:
	rcu_read_lock();
	block = xa_load(&dev->blocks, index);
	if (!block) {
		rcu_read_unlock();
		return -ENOENT;
	}
	spin_lock(&block->lock);
	if (block->dead) {
		spin_unlock(&block->lock);
		rcu_read_unlock();
		goto again;
	}
	switch (access) {
	case BLKNULL_GET:
		memcpy(buf, block->data + at, len);
		break;
	case BLKNULL_PUT:
		memcpy(block->data + at, buf, len);
		bitmap_set(block->written, first, sectors);
		break;
	case BLKNULL_ERASE:
		memset(block->data + at, 0, len);
		bitmap_clear(block->written, first, sectors);
		if (!bitmap_empty(block->written, BLKNULL_BLOCK_SECTORS))
			break;
		block->dead = true;
		xa_erase(&dev->blocks, index);
		free_page((unsigned long)block->data);
		kfree_rcu(block, rcu);
		break;
	}
	spin_unlock(&block->lock);
	rcu_read_unlock();
	return 0;
}

/*
 * Copy a segment from or to the disk. Missing blocks are added while nothing is
 * mapped or locked, because that may sleep.
 */
static blk_status_t blknull_copy(struct blknull_device *dev, u64 pos,
				 struct bio_vec *bv, bool write)
{
	unsigned int done, len;
	void *mapped;
	int err;

	for (done = 0; done < bv->bv_len; done += len, pos += len) {
		len = min_t(unsigned int, PAGE_SIZE - offset_in_page(pos),
			    bv->bv_len - done);
again:
		mapped = compat_bvec_kmap_local(bv);
		err = blknull_access(dev, pos, mapped + done, len,
				     write ? BLKNULL_PUT : BLKNULL_GET);
		if (err && !write)
			memset(mapped + done, 0, len);
		compat_kunmap_local(mapped);
		if (err && write) {
			if (blknull_block_add(dev, pos >> PAGE_SHIFT))
				return BLK_STS_RESOURCE;
			goto again;
		}
	}
	if (!write)
		flush_dcache_page(bv->bv_page);
	return BLK_STS_OK;
}

/**
 * blknull_data_erase() - zero sectors
 * @dev: the device
 * @sector: first sector
 * @sectors: number of sectors
 *
 * Frees blocks without written sectors.
 *
 * Context: Process context, may sleep, if any block exists.
 */
void blknull_data_erase(struct blknull_device *dev, sector_t sector,
			sector_t sectors)
{
	u64 pos = (u64)sector << SECTOR_SHIFT;
	u64 len = (u64)sectors << SECTOR_SHIFT;
	u64 end = pos + len, from, to;
	unsigned long index;
	void *entry;

	if (!len)
		return;
	xa_for_each_range(&dev->blocks, index, entry, pos >> PAGE_SHIFT,
			  (end - 1) >> PAGE_SHIFT) {
		from = max(pos, (u64)index << PAGE_SHIFT);
		to = min(end, ((u64)index + 1) << PAGE_SHIFT);
		/* A block that was freed meanwhile needs no zeroing. */
		blknull_access(dev, from, NULL, to - from, BLKNULL_ERASE);
		cond_resched();
	}
}

/**
 * blknull_data_bio() - carry out a bio on the device's data
 * @dev: the device
 * @bio: the bio
 *
 * Context: Process context, may sleep.
 * Return: the status.
 */
blk_status_t blknull_data_bio(struct blknull_device *dev, struct bio *bio)
{
	u64 pos = (u64)bio->bi_iter.bi_sector << SECTOR_SHIFT;
	blk_status_t status = BLK_STS_OK;
	struct bvec_iter iter;
	struct bio_vec bv;

	switch (bio_op(bio)) {
	case REQ_OP_READ:
	case REQ_OP_WRITE:
		/* A segment may end within a sector. */
		bio_for_each_segment(bv, bio, iter) {
			status = blknull_copy(dev, pos, &bv,
					      op_is_write(bio_op(bio)));
			if (status)
				break;
			pos += bv.bv_len;
		}
		break;
	case REQ_OP_DISCARD:
	case REQ_OP_WRITE_ZEROES:
		blknull_data_erase(dev, bio->bi_iter.bi_sector,
				   bio_sectors(bio));
		break;
	default:
		break;
	}
	return status;
}

/**
 * blknull_data_free() - free the device's data
 * @dev: the device; not in use any more
 */
void blknull_data_free(struct blknull_device *dev)
{
	struct blknull_block *block;
	unsigned long index;

	xa_for_each(&dev->blocks, index, block) {
		free_page((unsigned long)block->data);
		kfree(block);
	}
	xa_destroy(&dev->blocks);
}
