// SPDX-License-Identifier: GPL-2.0
/*
 * The block device that a biogen device is bound to: open it, close it; write
 * its page cache back before an I/O, invalidate it before and after a write.
 */
#include <linux/pagemap.h>

#include "compat/pages.h"
#include "target.h"

/* Maximum invalidation attempts for a page that keeps getting redirtied. */
#define BIOGEN_CACHE_TRIES	10

#ifdef MODULE
#define biogen_bdev_open	compat_bdev_open
#else
/* At boot, there is no /dev yet: the end of the path is a name. */
static noinline __ref struct file *biogen_bdev_open(const char *path,
						    bool write, void *holder)
{
	dev_t dev;
	int err;

	if (system_state >= SYSTEM_FREEING_INITMEM)
		return compat_bdev_open(path, write, holder);
	err = early_lookup_bdev(path, &dev);
	if (err)
		return ERR_PTR(err);
	return bdev_file_open_by_dev(dev, BLK_OPEN_READ |
				     (write ? BLK_OPEN_WRITE : 0), holder,
				     NULL);
}
#endif

/**
 * biogen_target_open() - open a block device
 * @target: filled in
 * @path: the block device's path
 * @write: open it for writing, and exclusively: a block device that is mounted
 *	or otherwise in use is refused
 *
 * Context: Process context, may sleep.
 * Return: 0, or the error from opening.
 */
int biogen_target_open(struct biogen_target *target, const char *path,
		       bool write)
{
	target->holder = write ? target : NULL;
	target->handle = biogen_bdev_open(path, write, target->holder);
	if (IS_ERR(target->handle))
		return PTR_ERR(target->handle);
	target->bdev = compat_bdev(target->handle);
	target->queue = bdev_get_queue(target->bdev);
	target->mapping = compat_bdev_mapping(target->handle);
	return 0;
}

/**
 * biogen_target_close() - close the block device
 * @target: open, without I/O in flight
 *
 * Context: Process context, may sleep.
 */
void biogen_target_close(struct biogen_target *target)
{
	compat_bdev_close(target->handle, target->holder);
}

/**
 * biogen_cache_prepare() - make the page cache ready for an I/O
 * @bg: the device
 * @pos: position on the device
 * @bytes: length of the I/O
 * @opf: REQ_OP_READ or REQ_OP_WRITE, with flags
 *
 * Writes dirty pages back. Before a write, also drops the pages in the range.
 *
 * Context: Process context; sleeps unless @opf has REQ_NOWAIT.
 * Return: 0, -EAGAIN if it would have to sleep and must not, or an error.
 */
int biogen_cache_prepare(struct biogen_device *bg, loff_t pos, size_t bytes,
			 blk_opf_t opf)
{
	struct address_space *mapping = bg->target.mapping;
	loff_t end = pos + bytes - 1;
	int tries, err;

	if (opf & REQ_NOWAIT) {
		if (op_is_write(opf) ?
		    filemap_range_has_page(mapping, pos, end) :
		    compat_range_needs_writeback(mapping, pos, end))
			return -EAGAIN;
		return 0;
	}
	err = filemap_write_and_wait_range(mapping, pos, end);
	if (err || !op_is_write(opf))
		return err;
	/* Fails for a page that was redirtied or is being read in. */
	for (tries = 0; tries < BIOGEN_CACHE_TRIES; tries++) {
		err = invalidate_inode_pages2_range(mapping, pos >> PAGE_SHIFT,
						    end >> PAGE_SHIFT);
		if (err != -EBUSY)
			break;
		err = filemap_write_and_wait_range(mapping, pos, end);
		if (err)
			break;
		err = -EBUSY;
	}
	return err;
}

/**
 * biogen_cache_drop() - drop pages that were read in during a write
 * @bg: the device
 * @pos: position on the device
 * @bytes: length of the write
 *
 * Context: Process context, may sleep.
 */
void biogen_cache_drop(struct biogen_device *bg, loff_t pos, size_t bytes)
{
	invalidate_inode_pages2_range(bg->target.mapping, pos >> PAGE_SHIFT,
				      (pos + bytes - 1) >> PAGE_SHIFT);
}
