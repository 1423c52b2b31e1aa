/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Creating and removing a disk, as on Linux 7.3. Nothing here runs per I/O,
 * except for the return value of submit_bio() on kernels that need one.
 */
#ifndef IOPATH_COMPAT_DISK_H
#define IOPATH_COMPAT_DISK_H

#include <linux/badblocks.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/err.h>

#include "compat/mq.h"
#include "compat/version.h"

/*
 * submit_bio() in block_device_operations returns nothing since 5.16
 * (3e08773c3841 "block: switch polling to be bio based"), a blk_qc_t before.
 * It is a compat_submit_bio_t that ends by "return COMPAT_SUBMIT_BIO_DONE;".
 * Goes with support for 5.15.
 */
#if COMPAT_KERNEL_BEFORE(5, 16)
#define compat_submit_bio_t		blk_qc_t
#define COMPAT_SUBMIT_BIO_DONE		BLK_QC_T_NONE
#define COMPAT_SHIM_SUBMIT_BIO		"submit_bio_returns_qc "
#else
#define compat_submit_bio_t		void
#define COMPAT_SUBMIT_BIO_DONE
#define COMPAT_SHIM_SUBMIT_BIO		""
#endif

/*
 * bio_split_to_limits() returns the bio to go on with since 6.0
 * (5a97806f7dc0 "block: change the blk_queue_split calling convention"); before,
 * blk_queue_split() changed the caller's pointer.
 * Goes with support for 5.19.
 */
#if COMPAT_KERNEL_BEFORE(6, 0)
static inline struct bio *compat_bio_split_to_limits(struct bio *bio)
{
	blk_queue_split(&bio);
	return bio;
}

#define COMPAT_SHIM_BIO_SPLIT		"blk_queue_split "
#else
#define compat_bio_split_to_limits	bio_split_to_limits
#define COMPAT_SHIM_BIO_SPLIT		""
#endif

/*
 * A bio points to a block device since 5.12 (309dca309fc3 "block: store a
 * block_device pointer in struct bio"), to a disk before. Goes with support for
 * 5.11.
 */
static inline struct gendisk *compat_bio_disk(const struct bio *bio)
{
#if COMPAT_KERNEL_BEFORE(5, 12)
	return bio->bi_disk;
#else
	return bio->bi_bdev->bd_disk;
#endif
}

/*
 * The features in queue_limits came with 6.11 (1122c0c1cc71 "block: move cache
 * control settings out of queue->flags" and the series around it); they were
 * flags of the queue, set one by one. Goes with support for 6.10.
 */
#if COMPAT_KERNEL_BEFORE(6, 11)
#define BLK_FEAT_ROTATIONAL		BIT(0)
#define BLK_FEAT_NOWAIT			BIT(1)
#define BLK_FEAT_WRITE_CACHE		BIT(2)
#define BLK_FEAT_FUA			BIT(3)
#define BLK_FEAT_IO_STAT		BIT(4)
#define blk_features_t			unsigned int

static inline void compat_set_features(struct request_queue *q,
				       blk_features_t features)
{
	if (features & BLK_FEAT_ROTATIONAL)
		blk_queue_flag_clear(QUEUE_FLAG_NONROT, q);
	else
		blk_queue_flag_set(QUEUE_FLAG_NONROT, q);
	if (features & BLK_FEAT_NOWAIT)
		blk_queue_flag_set(QUEUE_FLAG_NOWAIT, q);
	if (features & BLK_FEAT_IO_STAT)
		blk_queue_flag_set(QUEUE_FLAG_IO_STAT, q);
	else
		blk_queue_flag_clear(QUEUE_FLAG_IO_STAT, q);
	blk_queue_write_cache(q, features & BLK_FEAT_WRITE_CACHE,
			      features & BLK_FEAT_FUA);
}

#define COMPAT_SHIM_FEATURES		"queue_flags "
#else
#define COMPAT_SHIM_FEATURES		""
#endif

/*
 * Limits are an argument of blk_alloc_disk() since 6.9 (74fa8f9c553f "block:
 * pass a queue_limits argument to blk_alloc_disk"); before, one function each
 * set them afterwards. Goes with support for 6.8.
 */
#if COMPAT_KERNEL_BEFORE(6, 9)
static inline void compat_set_limits(struct request_queue *q,
				     const struct queue_limits *lim,
				     unsigned int dma_mask)
{
	blk_queue_logical_block_size(q, lim->logical_block_size);
	blk_queue_physical_block_size(q, lim->physical_block_size);
	blk_queue_max_hw_sectors(q, lim->max_hw_sectors);
	blk_queue_max_segments(q, lim->max_segments);
	blk_queue_max_segment_size(q, lim->max_segment_size);
	blk_queue_dma_alignment(q, dma_mask);
	if (lim->virt_boundary_mask)
		blk_queue_virt_boundary(q, lim->virt_boundary_mask);
	blk_queue_max_write_zeroes_sectors(q, lim->max_write_zeroes_sectors);
	if (lim->max_hw_discard_sectors) {
		q->limits.discard_granularity = lim->logical_block_size;
		blk_queue_max_discard_sectors(q, lim->max_hw_discard_sectors);
/* Discard had a flag of its own until 5.19 (70200574cc22). */
#if COMPAT_KERNEL_BEFORE(5, 19)
		blk_queue_flag_set(QUEUE_FLAG_DISCARD, q);
#endif
	}
}

#define COMPAT_SHIM_LIMITS		"queue_limits_by_function "
#else
#define COMPAT_SHIM_LIMITS		""
#endif

/*
 * blk-mq sets BLK_FEAT_IO_STAT for every queue since 6.11, along with the other
 * features. Goes with support for 6.10.
 */
static inline int compat_drop_io_stat(struct request_queue *q)
{
#if COMPAT_KERNEL_BEFORE(6, 11)
	return 0;
#else
	/* blk-mq has set it. */
	struct queue_limits lim = queue_limits_start_update(q);

	lim.features &= ~BLK_FEAT_IO_STAT;
	return queue_limits_commit_update(q, &lim);
#endif
}

/*
 * del_gendisk() lets no bio in any more since 5.15 (8e141f9eb803 "block: drain
 * file system I/O on del_gendisk") and ends the queue since 6.0 (8b9ab6266204
 * "block: remove blk_cleanup_disk"); before, the queue is ended by itself.
 * Goes with support for 5.19.
 */
static inline void compat_end_queue(struct gendisk *disk)
{
#if COMPAT_KERNEL_BEFORE(6, 0)
	blk_cleanup_queue(disk->queue);
#endif
}

/*
 * ->free_disk() is called after the last close of the disk since 5.18
 * (76792055c4c8 "block: add a ->free_disk method"). Before, nothing
 * that an open file reaches looks at the driver's data once the queue has
 * ended, so they go with the driver's own reference. COMPAT_FREE_DISK(op) is
 * the initialiser. Goes with support for 5.17.
 */
#if COMPAT_KERNEL_BEFORE(5, 18)
#define COMPAT_FREE_DISK(op)
#else
#define COMPAT_FREE_DISK(op)		.free_disk	= op,
#endif

/* Drop a disk that was added and is withdrawn. */
static inline void compat_put_disk(struct gendisk *disk,
				   void (*free_disk)(struct gendisk *disk))
{
#if COMPAT_KERNEL_BEFORE(5, 18)
	free_disk(disk);
#endif
	put_disk(disk);
}

/*
 * GENHD_FL_NO_PART was GENHD_FL_NO_PART_SCAN before 5.17 (46e7eac647b3 "block:
 * rename GENHD_FL_NO_PART_SCAN to GENHD_FL_NO_PART"). Goes with support for 5.16.
 */
#if COMPAT_KERNEL_BEFORE(5, 17)
#define GENHD_FL_NO_PART		GENHD_FL_NO_PART_SCAN
#endif

/*
 * What became limits with 6.0 (c964d62f5cab "block: move the dma_alignment field
 * to struct queue_limits") and 6.11, as an initialiser of struct queue_limits.
 * Goes with support for 6.10.
 */
#if COMPAT_KERNEL_BEFORE(6, 11)
#define COMPAT_LIMITS(_dma_mask, _features)
#else
#define COMPAT_LIMITS(_dma_mask, _features)				\
	.dma_alignment		= _dma_mask,				\
	.features		= _features,
#endif

/*
 * blk_alloc_disk(), or blk_mq_alloc_disk() for @set, of 6.11, with the arguments of
 * COMPAT_LIMITS(). They came with 5.14 (f525464a8000 "block: add blk_alloc_disk and
 * blk_cleanup_disk APIs"); before, queue and disk were made one by one, and a disk
 * without a major number of its own had to say that it wants an extended one. Goes
 * with support for 6.10.
 */
static inline struct gendisk *compat_alloc_disk(struct blk_mq_tag_set *set,
						struct queue_limits *lim,
						unsigned int dma_mask,
						blk_features_t features,
						int node, void *queuedata)
{
#if !COMPAT_KERNEL_BEFORE(6, 11)
	return set ? blk_mq_alloc_disk(set, lim, queuedata) :
		     blk_alloc_disk(lim, node);
#else
	struct gendisk *disk;

#if !COMPAT_KERNEL_BEFORE(6, 9)
	lim->dma_alignment = dma_mask;
	disk = set ? blk_mq_alloc_disk(set, lim, queuedata) :
		     blk_alloc_disk(lim, node);
	if (IS_ERR(disk))
		return disk;
#elif !COMPAT_KERNEL_BEFORE(5, 14)
	disk = set ? blk_mq_alloc_disk(set, queuedata) : blk_alloc_disk(node);
	if (IS_ERR_OR_NULL(disk))
		return disk ?: ERR_PTR(-ENOMEM);
	compat_set_limits(disk->queue, lim, dma_mask);
#else
	struct request_queue *q;

	q = set ? blk_mq_init_queue(set) : blk_alloc_queue(node);
	if (IS_ERR_OR_NULL(q))
		return q ? ERR_CAST(q) : ERR_PTR(-ENOMEM);
	disk = alloc_disk_node(0, node);
	if (!disk) {
		blk_cleanup_queue(q);
		return ERR_PTR(-ENOMEM);
	}
	disk->queue = q;
	disk->flags |= GENHD_FL_EXT_DEVT;
	q->queuedata = queuedata;
	compat_set_limits(q, lim, dma_mask);
#endif
	compat_set_features(disk->queue, features);
	return disk;
#endif
}

/*
 * add_disk() returns whether it worked since 5.15 (83cbce957446 "block: add
 * error handling for device_add_disk / add_disk"). Goes with support for 5.14.
 */
static inline int compat_add_disk(struct gendisk *disk,
				  const struct attribute_group **groups)
{
#if COMPAT_KERNEL_BEFORE(5, 15)
	device_add_disk(NULL, disk, groups);
	return 0;
#else
	return device_add_disk(NULL, disk, groups);
#endif
}

/*
 * Numbers of sectors in a list of bad blocks are sector_t since 6.15
 * (d301f164c3fb "badblocks: use sector_t instead of int to avoid truncation of
 * badblocks length"), an int before. Since then badblocks_set() and
 * badblocks_clear() return true on success; before, an errno. Goes with support
 * for 6.14.
 */
#if COMPAT_KERNEL_BEFORE(6, 15)
#define compat_bad_sectors_t		int
#else
#define compat_bad_sectors_t		sector_t
#endif

static inline bool compat_badblocks_set(struct badblocks *bb, sector_t sector,
					sector_t sectors)
{
#if COMPAT_KERNEL_BEFORE(6, 15)
	return !badblocks_set(bb, sector, sectors, 1);
#else
	return badblocks_set(bb, sector, sectors, 1);
#endif
}

static inline bool compat_badblocks_clear(struct badblocks *bb, sector_t sector,
					  sector_t sectors)
{
#if COMPAT_KERNEL_BEFORE(6, 15)
	return !badblocks_clear(bb, sector, sectors);
#else
	return badblocks_clear(bb, sector, sectors);
#endif
}

#if COMPAT_KERNEL_BEFORE(5, 14)
#define COMPAT_SHIM_ALLOC_DISK		"alloc_queue_and_disk "
#else
#define COMPAT_SHIM_ALLOC_DISK		""
#endif

/* The shims in use on this kernel, for modinfo. */
#define COMPAT_DISK_MODULE_INFO()					\
	MODULE_INFO(iopath_shims, COMPAT_SHIM_SUBMIT_BIO		\
		    COMPAT_SHIM_BIO_SPLIT COMPAT_SHIM_FEATURES		\
		    COMPAT_SHIM_LIMITS COMPAT_SHIM_ALLOC_DISK		\
		    COMPAT_SHIM_NO_SCHED COMPAT_SHIM_MQ_POLL		\
		    COMPAT_SHIM_QUEUE_RQS)

#endif /* IOPATH_COMPAT_DISK_H */
