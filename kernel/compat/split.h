/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Splitting of bios that must not wait, as on Linux 7.3.
 */
#ifndef IOPATH_COMPAT_SPLIT_H
#define IOPATH_COMPAT_SPLIT_H

#include <linux/bio.h>
#include <linux/bitops.h>
#include <linux/blkdev.h>
#include <linux/io.h>

#include "compat/version.h"

/*
 * The block layer fails a bio with REQ_NOWAIT instead of splitting it since 6.2
 * and 6.1.7 (9cea62b2cbab "block: don't allow splitting of a REQ_NOWAIT bio").
 * Before, the second part could fail with -EAGAIN when the first one was in
 * flight, so such a bio must not be submitted. Goes with support for 6.0.
 */
#if COMPAT_KERNEL_BEFORE(6, 1)
#define COMPAT_SPLITS_NOWAIT		1
#define COMPAT_SHIM_SPLIT		"splits_nowait "
#else
#define COMPAT_SPLITS_NOWAIT		0
#define COMPAT_SHIM_SPLIT		""
#endif

/*
 * True if a bio of one page may be split: if the device has chunks. O_DIRECT
 * retries what fails in between, which only a block device may do, so no bio for
 * such a device has REQ_NOWAIT.
 */
static inline bool compat_bdev_splits_page(struct block_device *bdev)
{
#if COMPAT_KERNEL_BEFORE(6, 1)
	return bdev_get_queue(bdev)->limits.chunk_sectors;
#else
	return false;
#endif
}

/*
 * True if a bio of @bytes exceeds a limit of a queue without chunks. The data
 * begin at @skip of segment @bv.
 */
static inline bool compat_bio_may_split(struct request_queue *q,
					const struct bio_vec *bv,
					unsigned int skip, unsigned int bytes)
{
#if COMPAT_KERNEL_BEFORE(6, 1)
	unsigned long gaps = queue_virt_boundary(q);
	unsigned long window = queue_segment_boundary(q);
	unsigned int len, segments = 0;

	if (bytes >> SECTOR_SHIFT > queue_max_sectors(q))
		return true;
	for (; bytes; bytes -= len, bv++, skip = 0) {
		len = min(bytes, bv->bv_len - skip);
		if (segments && ((bv->bv_offset + skip) & gaps))
			return true;
		if (len < bytes && ((bv->bv_offset + skip + len) & gaps))
			return true;
		/* The limit may be UINT_MAX: adding to it would overflow. */
		segments += 1 + (len - 1) / queue_max_segment_size(q);
		/* A segment must not cross a multiple of @window + 1. */
		if (window != ULONG_MAX) {
			phys_addr_t start = page_to_phys(bv->bv_page) +
					    bv->bv_offset + skip;

			segments += ((start & window) + len - 1) >>
				    fls_long(window);
		}
	}
	return segments > queue_max_segments(q);
#else
	return false;
#endif
}

#endif /* IOPATH_COMPAT_SPLIT_H */
