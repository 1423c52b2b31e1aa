/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The block device that a biogen device is bound to: open it, check requests
 * against its size, alignment and limits, and keep its page cache coherent.
 * Inline where it runs for every I/O.
 */
#ifndef BIOGEN_TARGET_H
#define BIOGEN_TARGET_H

#include <linux/blkdev.h>
#include <linux/uio.h>

#include "biogen.h"
#include "compat/file.h"
#include "compat/split.h"

int biogen_target_open(struct biogen_target *target, const char *path,
		       bool write);
void biogen_target_close(struct biogen_target *target);

int biogen_cache_prepare(struct biogen_device *bg, loff_t pos, size_t bytes,
			 blk_opf_t opf);
void biogen_cache_drop(struct biogen_device *bg, loff_t pos, size_t bytes);

/* Bits that must be clear in position and length. */
static __always_inline unsigned int biogen_block_mask(struct biogen_device *bg)
{
	return bg->target.queue->limits.logical_block_size - 1;
}

/* Bits that must be clear in the address of a buffer. */
static __always_inline unsigned int biogen_dma_mask(struct biogen_device *bg)
{
	return compat_queue_dma_mask(bg->target.queue);
}

/* Bits that must be clear in the length of each segment of a vector. */
static __always_inline unsigned int
biogen_segment_mask(struct biogen_device *bg)
{
	return compat_queue_segment_mask(bg->target.queue);
}

/*
 * True if the target's page cache has any page. O_DIRECT does the same test
 * first. A buffered write or a store through a mapping that happened before
 * this I/O added its page to the cache before this test.
 */
static __always_inline bool biogen_cached(const struct biogen_device *bg)
{
	return unlikely(READ_ONCE(*bg->nr_cached));
}

/**
 * biogen_begin() - check a request, and make the page cache ready for it
 * @bg: the device
 * @pos: position on the device
 * @bytes: length of the request
 * @opf: REQ_OP_READ or REQ_OP_WRITE
 * @nowait: the request must not wait
 *
 * The rules are those of a block device.
 *
 * Return: true if the request goes on. Otherwise @bytes is its result, or, if it is
 * more than 0, the length of the request that is to be begun instead.
 */
static __always_inline bool biogen_begin(struct biogen_device *bg, loff_t pos,
					 ssize_t *bytes, blk_opf_t opf,
					 bool nowait)
{
	loff_t size = compat_bdev_nr_bytes(bg->target.bdev);
	ssize_t count = *bytes;
	int err;

	if (op_is_write(opf) && unlikely(bdev_read_only(bg->target.bdev))) {
		*bytes = -EPERM;
		return false;
	}
	if (unlikely(!count))
		return false;
	if (unlikely(pos + count > size)) {
		if (pos < size)
			*bytes = size - pos;
		else
			*bytes = op_is_write(opf) ? -ENOSPC : 0;
		return false;
	}
	if (unlikely((pos | count) & biogen_block_mask(bg))) {
		*bytes = -EINVAL;
		return false;
	}
	if (biogen_cached(bg)) {
		err = biogen_cache_prepare(bg, pos, count,
					   opf | (nowait ? REQ_NOWAIT : 0));
		if (err) {
			*bytes = err;
			return false;
		}
	}
	return true;
}

/* True if the caller does not wait for the result. read(2) has no iocb. */
static __always_inline bool biogen_is_async(struct kiocb *iocb)
{
	return iocb && !is_sync_kiocb(iocb);
}

/**
 * biogen_would_split() - check a request that must not wait, longer than a page
 * @bg: the device
 * @iocb: the request, or NULL if the caller waits
 * @bv: the first segment
 * @skip: where the data begins in it
 * @bytes: length of the data
 * @opf: operation and flags
 *
 * If the block layer split the bio, a part could fail while another part is
 * in flight. io_uring retries such a request on a block device but reports the
 * error on any other file, so the request must fail before it is submitted.
 *
 * Return: true if the request must fail with -EAGAIN.
 */
static __always_inline bool
biogen_would_split(struct biogen_device *bg, struct kiocb *iocb,
		   const struct bio_vec *bv, unsigned int skip,
		   unsigned int bytes, blk_opf_t opf)
{
	return COMPAT_SPLITS_NOWAIT && (opf & REQ_NOWAIT) &&
	       biogen_is_async(iocb) &&
	       compat_bio_may_split(bg->target.queue, bv, skip, bytes);
}

/* True if address and length of each segment of @iter suit the device. */
static inline bool biogen_iter_aligned(struct biogen_device *bg,
				       const struct iov_iter *iter)
{
	unsigned int dma = biogen_dma_mask(bg), mask = biogen_segment_mask(bg);
	size_t left = iov_iter_count(iter), skip = iter->iov_offset;
	const struct iovec *iov;
	size_t len;

	if (compat_iter_is_ubuf(iter))
		return !(((unsigned long)compat_iter_ubuf(iter) + skip) & dma);
	for (iov = compat_iter_iov(iter); left; left -= len, iov++, skip = 0) {
		len = min_t(size_t, left, iov->iov_len - skip);
		if ((((unsigned long)iov->iov_base + skip) & dma) ||
		    (len & mask))
			return false;
	}
	return true;
}

/**
 * biogen_count_bvecs() - count the segments of a request
 * @bg: the device
 * @bv: the first segment
 * @skip: where the data begins in it
 * @left: length of the data
 *
 * The iterator's own number is that of all segments to the end of a registered
 * buffer before 6.13, which may not fit bi_vcnt.
 *
 * Return: how many segments have the data, at most USHRT_MAX, or 0 if address or
 * length of one does not suit the device. The block layer only asks whether it is
 * one; bi_size has the end.
 */
static inline unsigned int biogen_count_bvecs(struct biogen_device *bg,
					      const struct bio_vec *bv,
					      size_t skip, size_t left)
{
	unsigned int dma = biogen_dma_mask(bg), mask = biogen_segment_mask(bg);
	unsigned int nr;
	size_t len;

	for (nr = 0; left; left -= len, bv++, skip = 0, nr++) {
		len = min_t(size_t, left, bv->bv_len - skip);
		if (((bv->bv_offset + skip) & dma) || (len & mask))
			return 0;
	}
	return min_t(unsigned int, nr, USHRT_MAX);
}

#endif /* BIOGEN_TARGET_H */
