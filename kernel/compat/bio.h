/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Setting up a bio as on Linux 7.3.
 */
#ifndef IOPATH_COMPAT_BIO_H
#define IOPATH_COMPAT_BIO_H

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/blk-cgroup.h>

#include "compat/version.h"

/*
 * The flags of an operation have a type of their own since 6.0 (342a72a33407
 * "block: Introduce the type blk_opf_t"). Goes with support for 5.19.
 */
#if COMPAT_KERNEL_BEFORE(6, 0)
#define blk_opf_t			unsigned int
#endif

/*
 * A bio whose completion is polled has REQ_POLLED since 5.16
 * (6ce913fe3eee "block: rename REQ_HIPRI to REQ_POLLED").
 * Goes with support for 5.15.
 */
#if COMPAT_KERNEL_BEFORE(5, 16)
#define REQ_POLLED			REQ_HIPRI
#endif

/*
 * A bio says whether its pages are pinned since 6.5 (a7e689dd1c06 "block:
 * Convert bio_iov_iter_get_pages to use iov_iter_extract_pages"); before, user
 * pages were referenced like any others. Goes with support for 6.4.
 */
#if COMPAT_KERNEL_BEFORE(6, 5)
#define COMPAT_BIO_PINNED		0
#define COMPAT_SHIM_PINNED		"no_page_pinned_flag "
#else
#define COMPAT_BIO_PINNED		BIT(BIO_PAGE_PINNED)
#define COMPAT_SHIM_PINNED		""
#endif

/*
 * A bio knows device and operation from bio_init() on since 5.18 (49add4966d79
 * "block: pass a block_device and opf to bio_init"). Goes with support for
 * 5.17.
 */
static inline void compat_bio_init(struct bio *bio, struct block_device *bdev,
				   struct bio_vec *table, unsigned short max)
{
#if COMPAT_KERNEL_BEFORE(5, 18)
	bio_init(bio, table, max);
	bio_set_dev(bio, bdev);
#else
	bio_init(bio, bdev, table, max, REQ_OP_READ);
#endif
}

/*
 * A bio pointed to a disk and a partition's number, the latter taken away when
 * the sector is remapped, until 5.12 (309dca309fc3 "block: store a
 * block_device pointer in struct bio"). Goes with support for 5.11.
 */
static __always_inline void compat_bio_rewind_dev(struct bio *bio,
						  struct block_device *bdev)
{
#if COMPAT_KERNEL_BEFORE(5, 12)
	bio->bi_partno = bdev->bd_partno;
#endif
}

/* The device of a bio that a driver may have redirected to another one. */
static inline void compat_bio_restore_dev(struct bio *bio,
					  struct block_device *bdev)
{
#if COMPAT_KERNEL_BEFORE(5, 12)
	bio->bi_disk = bdev->bd_disk;
	bio->bi_partno = bdev->bd_partno;
#else
	bio->bi_bdev = bdev;
#endif
}

/* True if no driver has redirected the bio to another device. */
static __always_inline bool compat_bio_is_on(const struct bio *bio,
					     const struct block_device *bdev)
{
#if COMPAT_KERNEL_BEFORE(5, 12)
	return bio->bi_disk == bdev->bd_disk;
#else
	return bio->bi_bdev == bdev;
#endif
}

/*
 * The block layer notes the gaps between a bio's segments in the bio since 6.19
 * (2f6b2565d43c "block: accumulate memory segment gaps per bio"), but not for
 * every bio of one segment. Goes with support for 6.18.
 */
static __always_inline void compat_bio_forget_gaps(struct bio *bio)
{
#if !COMPAT_KERNEL_BEFORE(6, 19)
	bio->bi_bvec_gap_bit = 0;
#endif
}

/*
 * A bio has the cookie by which it is polled since 5.16 (3e08773c3841 "block:
 * switch polling to be bio based"); the block layer only sets that of polled
 * bios. Goes with support for 5.15.
 */
static __always_inline void compat_bio_forget_cookie(struct bio *bio)
{
#if !COMPAT_KERNEL_BEFORE(5, 16)
	bio->bi_cookie = BLK_QC_T_NONE;
#endif
}

/*
 * Where in the first segment a bio begins: the field is called bi_offset since
 * 7.3. Goes with support for 7.2.
 */
static __always_inline void compat_bio_set_offset(struct bio *bio,
						  unsigned int offset)
{
#if COMPAT_KERNEL_BEFORE(7, 3)
	bio->bi_iter.bi_bvec_done = offset;
#else
	bio->bi_iter.bi_offset = offset;
#endif
}

/*
 * Bits that must be clear in the address of a buffer. O_DIRECT wants no more than
 * the device's alignment for DMA since 6.0 (bf8d08532bc1 "iomap: add support for
 * dma aligned direct-io" and its series); before, buffers were aligned to the
 * logical block size, and the code that splits bios relied on that. Goes with
 * support for 5.19.
 */
static __always_inline unsigned int
compat_queue_dma_mask(const struct request_queue *q)
{
#if COMPAT_KERNEL_BEFORE(6, 0)
	return q->dma_alignment | (q->limits.logical_block_size - 1);
#else
	return q->limits.dma_alignment;
#endif
}

/*
 * Bits that must be clear in the length of each segment of a vector. O_DIRECT
 * compares position and length of the request with the logical block size, and
 * those of a segment with the alignment for DMA only, since 6.18 (7eac33186957
 * "iomap: simplify direct io validity check" and its series); before, each
 * segment was of whole blocks. Goes with support for 6.17.
 */
static __always_inline unsigned int
compat_queue_segment_mask(const struct request_queue *q)
{
#if COMPAT_KERNEL_BEFORE(6, 18)
	return q->limits.logical_block_size - 1;
#else
	return q->limits.dma_alignment;
#endif
}

/*
 * A bio is polled by itself since 5.16 (3e08773c3841 "block: switch polling to
 * be bio based"); polling is not offered before. Goes with support for 5.15.
 */
static inline bool compat_bdev_can_poll(struct block_device *bdev)
{
#if COMPAT_KERNEL_BEFORE(5, 16)
	return false;
#elif COMPAT_KERNEL_BEFORE(6, 11)
	return test_bit(QUEUE_FLAG_POLL, &bdev_get_queue(bdev)->queue_flags);
#else
	return bdev_get_queue(bdev)->limits.features & BLK_FEAT_POLL;
#endif
}

static inline void compat_bio_poll(struct bio *bio)
{
#if !COMPAT_KERNEL_BEFORE(5, 16)
	bio_poll(bio, NULL, 0);
#endif
}

/* The cgroup that a bio is charged to; blkcg is opaque from 5.18 on. */
static inline struct cgroup_subsys_state *compat_bio_css(struct bio *bio)
{
#ifndef CONFIG_BLK_CGROUP
	return NULL;
#elif COMPAT_KERNEL_BEFORE(5, 18)
	return bio_blkcg(bio) ? &bio_blkcg(bio)->css : NULL;
#else
	return bio_blkcg_css(bio);
#endif
}

/*
 * Flags of a bio make bio_endio() do more than call end_io(). These flags do not:
 * BIO_REMAPPED came with 5.12 (30c5d3456c27 "block: do not reassig ->bi_bdev when
 * partition remapping"). BIO_TRACE_COMPLETION only matters while
 * block_bio_complete is traced. Every bio that has passed blk-throttle has
 * BIO_THROTTLED until 5.16 (a7b36ee6ba29 "block: move blk-throtl fast path
 * inline") and Debian's 5.10.223. Goes with support for 5.15.
 */
#if COMPAT_KERNEL_BEFORE(5, 12)
#define COMPAT_BIO_IDLE_FLAGS						\
	(BIT(BIO_CHAIN) | BIT(BIO_CLONED) | BIT(BIO_CGROUP_ACCT) |	\
	 BIT(BIO_TRACE_COMPLETION) | BIT(BIO_THROTTLED))
#elif COMPAT_KERNEL_BEFORE(5, 16)
#define COMPAT_BIO_IDLE_FLAGS						\
	(BIT(BIO_CHAIN) | BIT(BIO_CLONED) | BIT(BIO_CGROUP_ACCT) |	\
	 BIT(BIO_TRACE_COMPLETION) | BIT(BIO_REMAPPED) |		\
	 BIT(BIO_THROTTLED) | COMPAT_BIO_PINNED)
#else
#define COMPAT_BIO_IDLE_FLAGS						\
	(BIT(BIO_CHAIN) | BIT(BIO_CLONED) | BIT(BIO_CGROUP_ACCT) |	\
	 BIT(BIO_TRACE_COMPLETION) | BIT(BIO_REMAPPED) | COMPAT_BIO_PINNED)
#endif

#if COMPAT_KERNEL_BEFORE(5, 18)
#define COMPAT_SHIM_BIO_INIT		"bio_init_without_bdev "
#else
#define COMPAT_SHIM_BIO_INIT		""
#endif

#if COMPAT_KERNEL_BEFORE(7, 3)
#define COMPAT_SHIM_BVEC_OFFSET		"bi_bvec_done "
#else
#define COMPAT_SHIM_BVEC_OFFSET		""
#endif

/* The shims that biogen uses on this kernel, for modinfo. */
#define COMPAT_BIOGEN_MODULE_INFO()					\
	MODULE_INFO(iopath_shims, COMPAT_SHIM_BDEV_OPEN			\
		    COMPAT_SHIM_BIO_INIT COMPAT_SHIM_PINNED		\
		    COMPAT_SHIM_BVEC_OFFSET COMPAT_SHIM_FILE COMPAT_SHIM_ITER	\
		    COMPAT_SHIM_SPLIT)

#endif /* IOPATH_COMPAT_BIO_H */
