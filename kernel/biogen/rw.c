// SPDX-License-Identifier: GPL-2.0
/*
 * Reading and writing, by the shape of the caller's memory: one page, a few
 * pages, or pages that the caller has pinned (buffers registered with io_uring)
 * go into one small bio. stream.c does the rest.
 */
#include <linux/iocontext.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/task_io_accounting_ops.h>
#include <linux/uio.h>

#include "cache.h"
#include "check.h"
#include "pin.h"
#include "rw.h"
#include "submit.h"

/* Whose pages a bio has. */
enum biogen_pages {
	BIOGEN_PINNED_PAGE,	/* one page, pinned by biogen */
	BIOGEN_PINNED_PAGES,	/* pinned by biogen */
	BIOGEN_CALLERS_PAGES,	/* pinned by the caller */
};

/*
 * Submit a filled bio that is all of a request. @is_write is the direction;
 * @pages is a constant. Return: the result of the request.
 */
static __always_inline ssize_t
biogen_submit_one(struct biogen_device *bg, struct biogen_io *io,
		  struct kiocb *iocb, loff_t pos, unsigned int bytes,
		  bool is_write, const enum biogen_pages pages)
{
	int err;

	if (is_write)
		task_io_account_write(bytes);
	if (unlikely(!biogen_io_submit(io, true)))
		return biogen_request_finish_one(io, iocb, pos, bytes);

	err = biogen_io_error(io);
	if (pages == BIOGEN_PINNED_PAGE)
		biogen_unpin_page(io->vecs[0].bv_page, !is_write);
	else if (pages == BIOGEN_PINNED_PAGES)
		biogen_io_unpin_vecs(io, !is_write);
	biogen_io_put(bg, io);
	if (is_write && biogen_cached(bg))
		biogen_cache_drop(bg, pos, bytes);
	return biogen_result(err, bytes);
}

/*
 * The priority that was set for the task, or 0: then the block layer derives
 * one from the nice value, as it does for its own bios.
 */
static __always_inline u16 biogen_task_ioprio(void)
{
	struct io_context *ioc = current->io_context;

	return ioc ? ioc->ioprio : 0;
}

/* Flags of the bio for the flags of the iocb. */
static __always_inline blk_opf_t biogen_iocb_opf(struct kiocb *iocb)
{
	blk_opf_t opf = 0;

	if (iocb->ki_flags & IOCB_NOWAIT)
		opf |= REQ_NOWAIT;
	if (unlikely(iocb->ki_flags & IOCB_HIPRI) && !is_sync_kiocb(iocb))
		opf |= REQ_POLLED;
	return opf;
}

/* A user buffer that spans up to BIOGEN_SMALL_VECS pages. */

static noinline ssize_t biogen_rw_few(struct biogen_device *bg,
				      struct kiocb *iocb, unsigned long addr,
				      unsigned int bytes, loff_t pos,
				      blk_opf_t opf, u16 ioprio)
{
	struct biogen_io *io = biogen_io_get(bg);
	int pinned;

	if (unlikely(!io))
		return -ENOMEM;
	pinned = biogen_pin_small(io, addr, bytes, opf);
	if (unlikely(pinned < 0))
		goto put_io;
	bytes = pinned;
	if (biogen_is_async(iocb) && (opf & REQ_NOWAIT) &&
	    biogen_may_split(bg, io->vecs, 0, pos, bytes)) {
		biogen_io_unpin_vecs(io, false);
		pinned = -EAGAIN;
		goto put_io;
	}
	biogen_io_prepare(io, io->vecs, io->bio.bi_vcnt, 0, bytes, pos, opf,
			  COMPAT_BIO_PINNED);
	io->bio.bi_ioprio = ioprio;
	return biogen_submit_one(bg, io, iocb, pos, bytes, op_is_write(opf),
				 BIOGEN_PINNED_PAGES);

put_io:
	biogen_io_put(bg, io);
	return pinned;
}

static __always_inline ssize_t
biogen_rw_one(struct biogen_device *bg, struct kiocb *iocb, unsigned long addr,
	      unsigned int bytes, loff_t pos, blk_opf_t opf, u16 ioprio)
{
	unsigned int offset = offset_in_page(addr);
	struct biogen_io *io;
	int pinned;

	if (biogen_cached(bg)) {
		int err = biogen_cache_prepare(bg, pos, bytes, opf);

		if (err)
			return err;
	}
	if (unlikely(offset + bytes > PAGE_SIZE))
		return biogen_rw_few(bg, iocb, addr, bytes, pos, opf, ioprio);

	io = biogen_io_get(bg);
	if (unlikely(!io))
		return -ENOMEM;
	/* A single page is pinned straight into the table. */
	pinned = pin_user_pages_fast(addr - offset, 1,
				     op_is_write(opf) ? 0 : FOLL_WRITE,
				     &io->vecs[0].bv_page);
	if (unlikely(pinned != 1)) {
		biogen_io_put(bg, io);
		return pinned ?: -EFAULT;
	}
	io->vecs[0].bv_offset = offset;
	io->vecs[0].bv_len = bytes;
	biogen_io_prepare(io, io->vecs, 1, 0, bytes, pos, opf,
			  COMPAT_BIO_PINNED);
	io->bio.bi_ioprio = ioprio;
	return biogen_submit_one(bg, io, iocb, pos, bytes, op_is_write(opf),
				 BIOGEN_PINNED_PAGE);
}

/* Pages that the caller has pinned: the bio uses the caller's table. */

/* Submit @bytes of @nr_vecs segments, from @skip of the first one on. */
static __always_inline ssize_t
biogen_submit_bvecs(struct biogen_device *bg, struct kiocb *iocb,
		    const struct bio_vec *bv, unsigned short nr_vecs,
		    unsigned int skip, unsigned int bytes, loff_t pos,
		    blk_opf_t opf)
{
	struct biogen_io *io;

	opf |= biogen_iocb_opf(iocb);
	if (biogen_cached(bg)) {
		int err = biogen_cache_prepare(bg, pos, bytes, opf);

		if (err)
			return err;
	}
	if (unlikely(bytes > PAGE_SIZE) && (opf & REQ_NOWAIT) &&
	    !is_sync_kiocb(iocb) && biogen_may_split(bg, bv, skip, pos, bytes))
		return -EAGAIN;
	io = biogen_io_get(bg);
	if (unlikely(!io))
		return -ENOMEM;
	/* As of a clone, the table is not the bio's own. */
	biogen_io_prepare(io, (struct bio_vec *)bv, nr_vecs, skip, bytes, pos,
			  opf, BIT(BIO_CLONED));
	io->bio.bi_ioprio = iocb->ki_ioprio;
	return biogen_submit_one(bg, io, iocb, pos, bytes, op_is_write(opf),
				 BIOGEN_CALLERS_PAGES);
}

/* Several segments. */
static noinline ssize_t biogen_rw_bvecs(struct biogen_device *bg,
					struct kiocb *iocb,
					struct iov_iter *iter, size_t bytes,
					blk_opf_t opf)
{
	const struct bio_vec *bv = iter->bvec;
	size_t skip = iter->iov_offset;
	loff_t pos = iocb->ki_pos;
	ssize_t ret;

	if (!biogen_bvecs_aligned(bg, bv, skip, bytes))
		return -EINVAL;
	ret = biogen_submit_bvecs(bg, iocb, bv, iter->nr_segs, skip, bytes,
				  pos, opf);
	if (ret > 0) {
		iocb->ki_pos = pos + ret;
		iov_iter_advance(iter, ret);
	}
	return ret;
}

static __always_inline ssize_t biogen_rw_bvec(struct biogen_device *bg,
					      struct kiocb *iocb,
					      struct iov_iter *iter,
					      blk_opf_t opf)
{
	const struct bio_vec *bv = iter->bvec;
	size_t skip = iter->iov_offset;
	loff_t pos = iocb->ki_pos;
	ssize_t bytes, ret;

	bytes = biogen_check_range(bg, pos, iov_iter_count(iter), opf);
	if (unlikely(bytes <= 0))
		return bytes;
	if (unlikely((pos | bytes) & biogen_block_mask(bg)))
		return -EINVAL;
	if (unlikely(skip + bytes > bv->bv_len))
		return biogen_rw_bvecs(bg, iocb, iter, bytes, opf);
	if (unlikely((bv->bv_offset + skip) & biogen_dma_mask(bg)))
		return -EINVAL;
	ret = biogen_submit_bvecs(bg, iocb, bv, 1, skip, bytes, pos, opf);
	if (likely(ret > 0)) {
		iocb->ki_pos += ret;
		/* Part of the segment may be left. */
		iter->iov_offset += ret;
		iter->count -= ret;
	}
	return ret;
}

/**
 * biogen_read_bvec() - read into pages that are pinned
 * @bg: the device
 * @iocb: the request
 * @iter: an ITER_BVEC
 *
 * Return: the number of bytes, an error, or -EIOCBQUEUED.
 */
ssize_t biogen_read_bvec(struct biogen_device *bg, struct kiocb *iocb,
			 struct iov_iter *iter)
{
	return biogen_rw_bvec(bg, iocb, iter, REQ_OP_READ);
}

/**
 * biogen_write_bvec() - write from pages that are pinned
 * @bg: the device
 * @iocb: the request
 * @iter: an ITER_BVEC
 * @opf: REQ_OP_WRITE, with flags
 *
 * Return: the number of bytes, an error, or -EIOCBQUEUED.
 */
ssize_t biogen_write_bvec(struct biogen_device *bg, struct kiocb *iocb,
			  struct iov_iter *iter, blk_opf_t opf)
{
	return biogen_rw_bvec(bg, iocb, iter, opf | REQ_OP_WRITE);
}

/* Any user memory. */

/**
 * biogen_rw_iter() - read or write user memory
 * @bg: the device
 * @iocb: the request
 * @iter: an ITER_UBUF or ITER_IOVEC
 * @opf: REQ_OP_READ or REQ_OP_WRITE, with flags
 *
 * Return: the number of bytes, an error, or -EIOCBQUEUED.
 */
ssize_t biogen_rw_iter(struct biogen_device *bg, struct kiocb *iocb,
		       struct iov_iter *iter, blk_opf_t opf)
{
	size_t had = iov_iter_count(iter);
	loff_t pos = iocb->ki_pos;
	unsigned long addr;
	ssize_t count, ret;
	size_t len;

	count = biogen_check_range(bg, pos, had, opf);
	if (unlikely(count <= 0))
		return count;
	if (unlikely(count < had)) {
		iov_iter_truncate(iter, count);
		ret = biogen_rw_iter(bg, iocb, iter, opf);
		iov_iter_reexpand(iter, iov_iter_count(iter) + had - count);
		return ret;
	}
	if (unlikely((pos | count) & biogen_block_mask(bg)))
		return -EINVAL;
	opf |= biogen_iocb_opf(iocb);

	if (compat_iter_is_ubuf(iter)) {
		addr = (unsigned long)compat_iter_ubuf(iter) + iter->iov_offset;
		len = count;
	} else if (iter_is_iovec(iter)) {
		addr = (unsigned long)compat_iter_iov(iter)->iov_base +
		       iter->iov_offset;
		len = compat_iter_iov(iter)->iov_len - iter->iov_offset;
	} else {
		return -EINVAL;
	}

	if (likely(count <= len) &&
	    likely(offset_in_page(addr) + count <=
		   BIOGEN_SMALL_VECS * PAGE_SIZE)) {
		if (unlikely(addr & biogen_dma_mask(bg)))
			return -EINVAL;
		ret = biogen_rw_one(bg, iocb, addr, count, pos, opf,
				    iocb->ki_ioprio);
		/* Part of the segment may be left. */
		if (likely(ret > 0)) {
			iter->iov_offset += ret;
			iter->count -= ret;
		}
	} else if (biogen_iter_aligned(bg, iter)) {
		ret = biogen_rw_stream(bg, iocb, iter, pos, count, opf);
	} else {
		ret = -EINVAL;
	}
	if (likely(ret > 0))
		iocb->ki_pos = pos + ret;
	return ret;
}

/**
 * biogen_rw_buf() - read or write one user buffer and wait
 * @bg: the device
 * @addr: the buffer
 * @count: its size
 * @pos: position on the device
 * @opf: REQ_OP_READ or REQ_OP_WRITE, with flags
 *
 * Return: the number of bytes, -EMSGSIZE if the buffer does not fit one small
 * bio and the caller must use biogen_rw_iter(), or another error.
 */
ssize_t biogen_rw_buf(struct biogen_device *bg, unsigned long addr,
		      size_t count, loff_t pos, blk_opf_t opf)
{
	ssize_t bytes = biogen_check_range(bg, pos, count, opf);

	if (unlikely(bytes <= 0))
		return bytes;
	if (unlikely((pos | bytes) & biogen_block_mask(bg)) ||
	    unlikely(addr & biogen_dma_mask(bg)))
		return -EINVAL;
	if (unlikely(offset_in_page(addr) + bytes >
		     BIOGEN_SMALL_VECS * PAGE_SIZE))
		return -EMSGSIZE;
	return biogen_rw_one(bg, NULL, addr, bytes, pos, opf,
			     biogen_task_ioprio());
}
