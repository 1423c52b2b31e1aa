// SPDX-License-Identifier: GPL-2.0
/*
 * Reading and writing, in the order of an I/O: the system call's way in, the
 * shape of its memory, the bio. One page, a few pages, or pages that the caller
 * has pinned (buffers registered with io_uring) go into one small bio. stream.c
 * does the rest.
 */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/task_io_accounting_ops.h>
#include <linux/uio.h>

#include "cache.h"
#include "check.h"
#include "late.h"
#include "pin.h"
#include "rw.h"
#include "submit.h"

static __always_inline ssize_t
biogen_rw_small(struct biogen_device *bg, struct kiocb *iocb,
		unsigned long addr, unsigned int bytes, loff_t pos,
		blk_opf_t opf, u16 ioprio);
static __always_inline ssize_t
biogen_rw_bvecs(struct biogen_device *bg, struct biogen_io *io,
		struct kiocb *iocb, const struct bio_vec *bv, unsigned short nr_vecs,
		unsigned int skip, unsigned int bytes, loff_t pos,
		blk_opf_t opf);
static __always_inline ssize_t
biogen_submit_one(struct biogen_device *bg, struct biogen_io *io,
		  struct kiocb *iocb, loff_t pos, unsigned int bytes,
		  bool is_write, const enum biogen_pages pages);

/* read(2) and write(2): a single buffer, no iocb. */

/* A buffer that does not fit one small bio needs an iterator and an iocb. */
static noinline ssize_t biogen_rw_long_buf(struct file *file,
					   unsigned long addr, size_t bytes,
					   loff_t pos, blk_opf_t opf)
{
	struct iovec iov = {
		.iov_base = (void __user *)addr, .iov_len = bytes
	};
	struct biogen_file *bf = file->private_data;
	struct iov_iter iter;
	struct kiocb iocb;

	init_sync_kiocb(&iocb, file);
	iov_iter_init(&iter, op_is_write(opf) ? WRITE : READ, &iov, 1, bytes);
	return biogen_rw_stream(bf->bg, &iocb, &iter, pos, bytes, opf);
}

/**
 * biogen_rw_buf() - read or write one user buffer and wait
 * @file: the file
 * @addr: the buffer
 * @count: its size
 * @pos: position on the device
 * @opf: REQ_OP_READ or REQ_OP_WRITE, with flags
 *
 * Return: the number of bytes, or an error.
 */
ssize_t biogen_rw_buf(struct file *file, unsigned long addr, size_t count,
		      loff_t pos, blk_opf_t opf)
{
	struct biogen_file *bf = file->private_data;
	struct biogen_device *bg = bf->bg;
	ssize_t bytes = biogen_check_range(bg, pos, count, opf);

	if (unlikely(bytes <= 0))
		return bytes;
	if (unlikely((pos | bytes) & biogen_block_mask(bg)) ||
	    unlikely(addr & biogen_dma_mask(bg)))
		return -EINVAL;
	if (unlikely(offset_in_page(addr) + bytes >
		     BIOGEN_SMALL_VECS * PAGE_SIZE))
		return biogen_rw_long_buf(file, addr, bytes, pos, opf);
	return biogen_rw_small(bg, NULL, addr, bytes, pos, opf,
			       biogen_task_ioprio());
}

/* All other system calls: an iocb, and an iterator. */

/* User memory: an ITER_UBUF or ITER_IOVEC. */
static noinline ssize_t biogen_rw_iter(struct kiocb *iocb,
				       struct iov_iter *iter, blk_opf_t opf)
{
	struct biogen_file *bf = iocb->ki_filp->private_data;
	struct biogen_device *bg = bf->bg;
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
		ret = biogen_rw_iter(iocb, iter, opf);
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
		ret = biogen_rw_small(bg, iocb, addr, count, pos, opf,
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

/* Pages that the caller has pinned, in several segments. */
static noinline ssize_t
biogen_rw_many_bvecs(struct biogen_device *bg, struct biogen_io *io,
		     struct kiocb *iocb, struct iov_iter *iter, size_t bytes,
		     blk_opf_t opf)
{
	const struct bio_vec *bv = iter->bvec;
	size_t skip = iter->iov_offset;
	loff_t pos = iocb->ki_pos;
	unsigned int nr_vecs = biogen_count_bvecs(bg, bv, skip, bytes);
	ssize_t ret;

	if (!nr_vecs) {
		biogen_io_put(bg, io);
		return -EINVAL;
	}
	/* The block layer only asks whether it is one. bi_size has the end. */
	nr_vecs = min_t(unsigned int, nr_vecs, USHRT_MAX);
	ret = biogen_rw_bvecs(bg, io, iocb, bv, nr_vecs, skip, bytes, pos, opf);
	if (ret > 0) {
		iocb->ki_pos = pos + ret;
		iov_iter_advance(iter, ret);
	}
	return ret;
}

/*
 * Pages that the caller has pinned: the bio uses the caller's table. The bio is
 * got first, so that nothing needs to be saved around that.
 */
static __always_inline ssize_t
biogen_rw_bvec_iter(struct kiocb *iocb, struct iov_iter *iter, blk_opf_t opf)
{
	struct biogen_file *bf = iocb->ki_filp->private_data;
	struct biogen_device *bg = bf->bg;
	struct biogen_io *io = biogen_io_get(bg);
	const struct bio_vec *bv;
	ssize_t bytes, ret;
	size_t skip;
	loff_t pos;

	if (unlikely(!io))
		return -ENOMEM;
	pos = iocb->ki_pos;
	bytes = biogen_check_range(bg, pos, iov_iter_count(iter), opf);
	if (unlikely(bytes <= 0))
		goto put_io;
	if (biogen_cached(bg)) {
		ret = biogen_cache_prepare(bg, pos, bytes,
					   opf | biogen_iocb_opf(iocb));
		if (ret) {
			bytes = ret;
			goto put_io;
		}
	}
	pos = iocb->ki_pos;
	if (unlikely((pos | bytes) & biogen_block_mask(bg)))
		goto invalid;
	bv = iter->bvec;
	skip = iter->iov_offset;
	if (unlikely(skip + bytes > bv->bv_len))
		return biogen_rw_many_bvecs(bg, io, iocb, iter, bytes, opf);
	if (unlikely((bv->bv_offset + skip) & biogen_dma_mask(bg)))
		goto invalid;
	ret = biogen_rw_bvecs(bg, io, iocb, bv, 1, skip, bytes, pos, opf);
	if (likely(ret > 0)) {
		iocb->ki_pos += ret;
		/* Part of the segment may be left. */
		iter->iov_offset += ret;
		iter->count -= ret;
	}
	return ret;

invalid:
	bytes = -EINVAL;
put_io:
	biogen_io_put(bg, io);
	return bytes;
}

static noinline ssize_t biogen_read_bvec(struct kiocb *iocb,
					 struct iov_iter *to)
{
	return biogen_rw_bvec_iter(iocb, to, REQ_OP_READ);
}

static noinline ssize_t biogen_write_bvec(struct kiocb *iocb,
					  struct iov_iter *from, blk_opf_t opf)
{
	return biogen_rw_bvec_iter(iocb, from, opf | REQ_OP_WRITE);
}

/**
 * biogen_read_iter() - read
 * @iocb: the request
 * @to: an ITER_UBUF, ITER_IOVEC or ITER_BVEC; others are refused
 *
 * Return: the number of bytes, an error, or -EIOCBQUEUED.
 */
ssize_t biogen_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	/* A buffer registered with io_uring is already pinned. */
	if (iov_iter_is_bvec(to))
		return biogen_read_bvec(iocb, to);
	return biogen_rw_iter(iocb, to, REQ_OP_READ);
}

/**
 * biogen_write_iter() - write
 * @iocb: the request
 * @from: as in biogen_read_iter()
 *
 * Return: the number of bytes, an error, or -EIOCBQUEUED.
 */
ssize_t biogen_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	blk_opf_t opf = biogen_write_opf(iocb->ki_flags & IOCB_DSYNC);

	if (iov_iter_is_bvec(from))
		return biogen_write_bvec(iocb, from, opf);
	return biogen_rw_iter(iocb, from, opf);
}

/* One small bio. */

/* A buffer in one page, which is pinned straight into the table. */
static __always_inline ssize_t
biogen_rw_page(struct biogen_device *bg, struct kiocb *iocb,
	       unsigned long addr, unsigned int bytes, loff_t pos,
	       blk_opf_t opf, u16 ioprio)
{
	unsigned int offset = offset_in_page(addr);
	struct biogen_io *io = biogen_io_get(bg);
	int pinned;

	if (unlikely(!io))
		return -ENOMEM;
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

/* A buffer in up to BIOGEN_SMALL_VECS pages. */
static noinline ssize_t biogen_rw_pages(struct biogen_device *bg,
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
	if (biogen_would_split(bg, iocb, io->vecs, 0, bytes, opf)) {
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
biogen_rw_small(struct biogen_device *bg, struct kiocb *iocb,
		unsigned long addr, unsigned int bytes, loff_t pos,
		blk_opf_t opf, u16 ioprio)
{
	if (biogen_cached(bg)) {
		int err = biogen_cache_prepare(bg, pos, bytes, opf);

		if (err)
			return err;
	}
	if (unlikely(offset_in_page(addr) + bytes > PAGE_SIZE))
		return biogen_rw_pages(bg, iocb, addr, bytes, pos, opf, ioprio);
	return biogen_rw_page(bg, iocb, addr, bytes, pos, opf, ioprio);
}

/*
 * @bytes of @nr_vecs segments of the caller's, from @skip of the first one on. @io
 * is returned.
 */
static __always_inline ssize_t
biogen_rw_bvecs(struct biogen_device *bg, struct biogen_io *io,
		struct kiocb *iocb, const struct bio_vec *bv,
		unsigned short nr_vecs, unsigned int skip, unsigned int bytes,
		loff_t pos, blk_opf_t opf)
{
	opf |= biogen_iocb_opf(iocb);
	if ((nr_vecs > 1 || unlikely(bytes > PAGE_SIZE)) &&
	    biogen_would_split(bg, iocb, bv, skip, bytes, opf)) {
		biogen_io_put(bg, io);
		return -EAGAIN;
	}
	/* As of a clone, the table is not the bio's own. */
	biogen_io_prepare(io, (struct bio_vec *)bv, nr_vecs, skip, bytes, pos,
			  opf, BIT(BIO_CLONED));
	io->bio.bi_ioprio = iocb->ki_ioprio;
	return biogen_submit_one(bg, io, iocb, pos, bytes, op_is_write(opf),
				 BIOGEN_CALLERS_PAGES);
}

/*
 * Submit a prepared bio that is all of a request. @is_write is the direction;
 * @pages is a constant. Return: the result of the request, or -EIOCBQUEUED.
 */
static __always_inline ssize_t
biogen_submit_one(struct biogen_device *bg, struct biogen_io *io,
		  struct kiocb *iocb, loff_t pos, unsigned int bytes,
		  bool is_write, const enum biogen_pages pages)
{
	int err;

	if (is_write)
		task_io_account_write(bytes);
	if (unlikely(!biogen_io_submit(io, true)) &&
	    biogen_io_late(io, iocb, bytes,
			   pages == BIOGEN_CALLERS_PAGES ? biogen_end_callers :
							   biogen_end_pinned))
		return -EIOCBQUEUED;

	err = biogen_io_error(io);
	if (pages == BIOGEN_PINNED_PAGE)
		biogen_unpin_page(io->vecs[0].bv_page, !is_write);
	else if (pages == BIOGEN_PINNED_PAGES)
		biogen_io_unpin_vecs(io, !is_write);
	biogen_io_put(bg, io);
	if (is_write && biogen_cached(bg))
		biogen_cache_drop(bg, pos, bytes);
	/* err ?: bytes would have an unsigned type. */
	return err ? err : (ssize_t)bytes;
}
