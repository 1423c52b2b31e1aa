// SPDX-License-Identifier: GPL-2.0
/*
 * Check whether the block layer may split a bio.
 */
#include <linux/bitops.h>
#include <linux/blkdev.h>
#include <linux/io.h>

#include "check.h"

/**
 * biogen_may_split() - check whether the block layer may split a bio
 * @bg: the device
 * @bv: the first segment
 * @skip: where the data begins in it
 * @pos: position on the device
 * @bytes: length of the data
 *
 * For requests that must not block: part of a split bio can fail when other
 * parts are already in flight. io_uring retries such a request on a block
 * device but reports the error on any other file, so the request must fail
 * before anything is submitted.
 *
 * Return: true if the bio exceeds one of the queue's limits.
 */
bool biogen_may_split(struct biogen_device *bg, const struct bio_vec *bv,
		      unsigned int skip, loff_t pos, unsigned int bytes)
{
	struct request_queue *q = bg->target.queue;
	unsigned long gaps = queue_virt_boundary(q);
	unsigned long window = queue_segment_boundary(q);
	unsigned int chunk = q->limits.chunk_sectors;
	unsigned int len, segments = 0;

	if (bytes >> SECTOR_SHIFT > queue_max_sectors(q))
		return true;
	if (chunk && (pos >> SECTOR_SHIFT) % chunk +
		     (bytes >> SECTOR_SHIFT) > chunk)
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
}
