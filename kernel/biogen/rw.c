// SPDX-License-Identifier: GPL-2.0
/*
 * Reading and writing: from the system call's way in to a small bio that is all
 * of the request. Its pages are pinned here, or by the caller (buffers registered
 * with io_uring), or were registered with the file. stream.c does longer requests.
 *
 * Directions, and whether the file has registrations, are constants of the inline
 * functions: there is a copy of the path for each.
 */
#include <linux/mm.h>
#include <linux/uio.h>

#include "pin.h"
#include "reg.h"
#include "submit.h"
#include "target.h"

/**
 * enum biogen_pages - whose pages a bio has
 * @BIOGEN_PINNED_PAGE: one page, pinned by biogen, in the bio's own table
 * @BIOGEN_PINNED_PAGES: pinned by biogen, in the bio's own table
 * @BIOGEN_CALLERS_PAGES: pinned by the caller, in the caller's table
 * @BIOGEN_REGISTERED: of a registration, in its table
 * @BIOGEN_GATHERED: of registrations, in a table of the request
 */
enum biogen_pages {
	BIOGEN_PINNED_PAGE,
	BIOGEN_PINNED_PAGES,
	BIOGEN_CALLERS_PAGES,
	BIOGEN_REGISTERED,
	BIOGEN_GATHERED,
};

/* Let the compiler omit the tests of what is not NULL. */
#define biogen_assume(pointer)						\
do {									\
	if (!(pointer))							\
		__builtin_unreachable();				\
} while (0)

/*
 * Submit a bio that is all of a request, and end it unless it ends later. @pages
 * is a constant. The data begin at @skip of the first of @nr_vecs segments. @css is
 * the task's cgroup. @owner is the struct biogen_reg or struct biogen_gathered that
 * is held. Return: 0, -EIOCBQUEUED or another error.
 */
static __always_inline int
biogen_submit_one(struct biogen_device *bg, struct biogen_io *io,
		  struct kiocb *iocb, const struct bio_vec *table,
		  unsigned int nr_vecs, unsigned int skip, size_t bytes,
		  loff_t pos, blk_opf_t opf, struct cgroup_subsys_state *css,
		  const enum biogen_pages pages, void *owner)
{
	const bool own = pages <= BIOGEN_PINNED_PAGES;
	const bool is_write = op_is_write(opf);
	int err;

	if (iocb)
		opf |= biogen_iocb_opf(iocb, is_write);
	/* So that it need not be kept in a register. */
	if (pages == BIOGEN_REGISTERED)
		io->reg = owner;
	if ((nr_vecs > 1 || bytes > PAGE_SIZE) &&
	    biogen_would_split(bg, iocb, table, skip, bytes, opf)) {
		io->bio.bi_status = BLK_STS_AGAIN;
		goto put;
	}
	/* As of a clone, another's table is not the bio's own. */
	if (unlikely(!biogen_io_submit(io, bg, table, nr_vecs, skip, bytes, pos,
				       opf, own ? COMPAT_BIO_PINNED :
						  BIT(BIO_CLONED),
				       iocb ? iocb->ki_ioprio :
					      biogen_task_ioprio(), css))) {
		io->nr_vecs = own ? nr_vecs : 0;
		if (pages != BIOGEN_REGISTERED)
			io->reg = NULL;
		io->gathered = pages == BIOGEN_GATHERED ? owner : NULL;
		if (biogen_io_late(io, iocb, bytes))
			return -EIOCBQUEUED;
	}
put:
	if (pages == BIOGEN_PINNED_PAGE)
		biogen_unpin_page(io->vecs[0].bv_page, !is_write);
	else if (pages == BIOGEN_PINNED_PAGES)
		biogen_io_unpin(io, !is_write);
	else if (pages == BIOGEN_REGISTERED)
		biogen_reg_put(io->reg);
	else if (pages == BIOGEN_GATHERED)
		biogen_gathered_put(owner);
	err = biogen_io_error(io);
	biogen_io_put(bg, io);
	if (is_write && biogen_cached(bg))
		biogen_cache_drop(bg, pos, bytes);
	return err;
}

/* A buffer in one page, which is pinned straight into the table. */
static __always_inline int
biogen_rw_page(struct biogen_device *bg, struct kiocb *iocb,
	       unsigned long addr, size_t bytes, loff_t pos, blk_opf_t opf)
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
	return biogen_submit_one(bg, io, iocb, io->vecs, 1, 0, bytes, pos, opf,
				 biogen_current_css(), BIOGEN_PINNED_PAGE, NULL);
}

/* A buffer in up to BIOGEN_SMALL_VECS pages. Return: as of read(2). */
static noinline ssize_t biogen_rw_pages(struct biogen_device *bg,
					struct kiocb *iocb, unsigned long addr,
					size_t bytes, loff_t pos,
					blk_opf_t opf)
{
	struct biogen_io *io = biogen_io_get(bg);
	int pinned, err;

	if (unlikely(!io))
		return -ENOMEM;
	pinned = biogen_pin_small(io, addr, bytes, opf);
	if (unlikely(pinned < 0)) {
		biogen_io_put(bg, io);
		return pinned;
	}
	err = biogen_submit_one(bg, io, iocb, io->vecs, io->nr_vecs, 0, pinned,
				pos, opf, biogen_current_css(),
				BIOGEN_PINNED_PAGES, NULL);
	return err ?: pinned;
}

/* A buffer in a registration. Return: false if it is in none. */
static __always_inline bool
biogen_rw_registered(struct biogen_device *bg, struct biogen_regs *regs,
		     struct kiocb *iocb, unsigned long addr, size_t bytes,
		     loff_t pos, blk_opf_t opf, int *err)
{
	struct cgroup_subsys_state *css;
	struct biogen_span span;
	struct biogen_io *io;

	biogen_rcu_lock();
	if (unlikely(!biogen_reg_get(regs, addr, bytes, &span))) {
		biogen_rcu_unlock();
		return false;
	}
	css = biogen_task_css();
	biogen_rcu_unlock();
	io = biogen_io_get(bg);
	if (unlikely(!io)) {
		biogen_reg_put(span.reg);
		*err = -ENOMEM;
		return true;
	}
	*err = biogen_submit_one(bg, io, iocb, span.bv, span.nr_vecs, span.skip,
				 bytes, pos, opf, css, BIOGEN_REGISTERED,
				 span.reg);
	return true;
}

/* read(2) and write(2): a single buffer, no iocb. */

/* A buffer that does not fit one small bio needs an iterator and an iocb. */
static noinline ssize_t biogen_rw_long_buf(struct biogen_file *bf,
					   unsigned long addr, size_t bytes,
					   loff_t pos, blk_opf_t opf)
{
	struct iovec iov = {
		.iov_base = (void __user *)addr, .iov_len = bytes
	};
	struct iov_iter iter;
	struct kiocb iocb;

	init_sync_kiocb(&iocb, bf->file);
	iov_iter_init(&iter, op_is_write(opf) ? WRITE : READ, &iov, 1, bytes);
	return biogen_rw_stream(bf->bg, &iocb, &iter, pos, bytes, opf);
}

static noinline ssize_t biogen_read_pin(struct file *file, char __user *buf,
					size_t count, loff_t *pos);
static noinline ssize_t biogen_write_pin(struct file *file,
					 const char __user *buf, size_t count,
					 loff_t *pos);

/*
 * The memory is not registered, or the request reaches over the end of the device,
 * before which @bytes are left.
 */
static noinline ssize_t biogen_rw_other_buf(struct biogen_file *bf,
					    unsigned long addr, size_t bytes,
					    loff_t *ppos, blk_opf_t opf)
{
	void __user *buf = (void __user *)addr;

	return op_is_write(opf) ? biogen_write_pin(bf->file, buf, bytes, ppos) :
				  biogen_read_pin(bf->file, buf, bytes, ppos);
}

static __always_inline ssize_t
biogen_rw_buf(struct file *file, unsigned long addr, size_t count,
	      loff_t *ppos, blk_opf_t opf, const bool registered)
{
	struct biogen_file *bf = file->private_data;
	struct biogen_device *bg = bf->bg;
	ssize_t bytes = count;
	loff_t pos = *ppos;
	size_t end;
	int err;

	if (unlikely(!biogen_begin(bg, pos, &bytes, opf, false))) {
		if (bytes <= 0)
			return bytes;
		return biogen_rw_other_buf(bf, addr, bytes, ppos, opf);
	}
	if (unlikely(addr & biogen_dma_mask(bg)))
		return -EINVAL;
	if (registered) {
		if (unlikely(!biogen_rw_registered(bg, bf->regs, NULL, addr,
						   bytes, pos, opf, &err)))
			return biogen_rw_other_buf(bf, addr, bytes, ppos, opf);
		goto out;
	}
	end = offset_in_page(addr) + bytes;
	if (likely(end <= PAGE_SIZE)) {
		err = biogen_rw_page(bg, NULL, addr, bytes, pos, opf);
		goto out;
	}
	if (likely(end <= BIOGEN_SMALL_VECS * PAGE_SIZE))
		bytes = biogen_rw_pages(bg, NULL, addr, bytes, pos, opf);
	else
		bytes = biogen_rw_long_buf(bf, addr, bytes, pos, opf);
	err = bytes < 0 ? bytes : 0;
out:
	if (unlikely(err))
		return err;
	*ppos += bytes;
	return bytes;
}

static noinline ssize_t biogen_read_reg(struct file *file, char __user *buf,
					size_t count, loff_t *pos)
{
	return biogen_rw_buf(file, (unsigned long)buf, count, pos, REQ_OP_READ,
			     true);
}

static noinline ssize_t biogen_read_pin(struct file *file, char __user *buf,
					size_t count, loff_t *pos)
{
	return biogen_rw_buf(file, (unsigned long)buf, count, pos, REQ_OP_READ,
			     false);
}

static noinline ssize_t biogen_write_reg(struct file *file,
					 const char __user *buf, size_t count,
					 loff_t *pos)
{
	return biogen_rw_buf(file, (unsigned long)buf, count, pos,
			     biogen_write_opf(file->f_flags & O_DSYNC), true);
}

static noinline ssize_t biogen_write_pin(struct file *file,
					 const char __user *buf, size_t count,
					 loff_t *pos)
{
	return biogen_rw_buf(file, (unsigned long)buf, count, pos,
			     biogen_write_opf(file->f_flags & O_DSYNC), false);
}

ssize_t biogen_read(struct file *file, char __user *buf, size_t count,
		    loff_t *pos)
{
	return biogen_has_regs(file) ? biogen_read_reg(file, buf, count, pos) :
				       biogen_read_pin(file, buf, count, pos);
}

ssize_t biogen_write(struct file *file, const char __user *buf, size_t count,
		     loff_t *pos)
{
	return biogen_has_regs(file) ? biogen_write_reg(file, buf, count, pos) :
				       biogen_write_pin(file, buf, count, pos);
}

/* All other system calls: an iocb, and an iterator. */

static noinline ssize_t biogen_read_iter_pin(struct kiocb *iocb,
					     struct iov_iter *to);
static noinline ssize_t biogen_write_iter_pin(struct kiocb *iocb,
					      struct iov_iter *from);

/*
 * The memory is not registered, or the request reaches over the end of the device,
 * before which @bytes are left.
 */
static noinline ssize_t biogen_rw_other_iter(struct kiocb *iocb,
					     struct iov_iter *iter, size_t bytes,
					     blk_opf_t opf)
{
	size_t rest = iov_iter_count(iter) - bytes;
	ssize_t ret;

	iov_iter_truncate(iter, bytes);
	if (iov_iter_is_bvec(iter))
		ret = op_is_write(opf) ? biogen_write_iter(iocb, iter) :
					 biogen_read_iter(iocb, iter);
	else
		ret = op_is_write(opf) ? biogen_write_iter_pin(iocb, iter) :
					 biogen_read_iter_pin(iocb, iter);
	iov_iter_reexpand(iter, iov_iter_count(iter) + rest);
	return ret;
}

/* A vector, or a buffer that does not fit one small bio. */
static noinline ssize_t biogen_rw_long(struct kiocb *iocb,
				       struct iov_iter *iter, blk_opf_t opf,
				       const bool registered)
{
	struct biogen_file *bf = iocb->ki_filp->private_data;
	ssize_t count = iov_iter_count(iter);
	struct biogen_gathered *gathered = NULL;
	struct biogen_device *bg = bf->bg;
	loff_t pos = iocb->ki_pos;
	struct biogen_io *io;
	ssize_t ret;

	if (!biogen_iter_aligned(bg, iter))
		return -EINVAL;
	if (registered && iter_is_iovec(iter))
		gathered = biogen_gather(bf->regs, iter);
	if (gathered) {
		io = biogen_io_get(bg);
		if (!io) {
			biogen_gathered_put(gathered);
			return -ENOMEM;
		}
		ret = biogen_submit_one(bg, io, iocb, gathered->vecs,
					gathered->nr_vecs, 0, count, pos, opf,
					biogen_current_css(), BIOGEN_GATHERED,
					gathered) ?: count;
		if (ret > 0)
			iov_iter_advance(iter, ret);
	} else {
		ret = biogen_rw_stream(bg, iocb, iter, pos, count,
				       opf | biogen_iocb_opf(iocb,
							     op_is_write(opf)));
	}
	if (ret > 0)
		iocb->ki_pos = pos + ret;
	return ret;
}

/* The end of a request in the first segment, of which a part may be left. */
static __always_inline ssize_t biogen_finish_iter(struct kiocb *iocb,
						  struct iov_iter *iter,
						  ssize_t bytes, int err)
{
	if (unlikely(err))
		return err;
	iocb->ki_pos += bytes;
	iter->iov_offset += bytes;
	iter->count -= bytes;
	return bytes;
}

/* User memory: an ITER_UBUF or ITER_IOVEC. */
static __always_inline ssize_t
biogen_rw_iter(struct kiocb *iocb, struct iov_iter *iter, blk_opf_t opf,
	       const bool registered)
{
	struct biogen_file *bf = iocb->ki_filp->private_data;
	ssize_t bytes = iov_iter_count(iter);
	struct biogen_device *bg = bf->bg;
	loff_t pos = iocb->ki_pos;
	unsigned long addr;
	size_t len, end;
	int err;

	biogen_assume(iocb);
	if (unlikely(!biogen_begin(bg, pos, &bytes, opf,
				   iocb->ki_flags & IOCB_NOWAIT))) {
		if (bytes <= 0)
			return bytes;
		return biogen_rw_other_iter(iocb, iter, bytes, opf);
	}
	if (compat_iter_is_ubuf(iter)) {
		addr = (unsigned long)compat_iter_ubuf(iter) + iter->iov_offset;
		len = bytes;
	} else if (iter_is_iovec(iter)) {
		addr = (unsigned long)compat_iter_iov(iter)->iov_base +
		       iter->iov_offset;
		len = compat_iter_iov(iter)->iov_len - iter->iov_offset;
	} else {
		return -EINVAL;
	}
	if (unlikely(bytes > len) || unlikely(addr & biogen_dma_mask(bg)))
		return biogen_rw_long(iocb, iter, opf, registered);
	if (registered) {
		if (unlikely(!biogen_rw_registered(bg, bf->regs, iocb, addr,
						   bytes, pos, opf, &err)))
			return biogen_rw_other_iter(iocb, iter, bytes, opf);
		goto out;
	}
	end = offset_in_page(addr) + bytes;
	if (likely(end <= PAGE_SIZE)) {
		err = biogen_rw_page(bg, iocb, addr, bytes, pos, opf);
		goto out;
	}
	if (unlikely(end > BIOGEN_SMALL_VECS * PAGE_SIZE))
		return biogen_rw_long(iocb, iter, opf, false);
	bytes = biogen_rw_pages(bg, iocb, addr, bytes, pos, opf);
	err = bytes < 0 ? bytes : 0;
out:
	return biogen_finish_iter(iocb, iter, bytes, err);
}

static noinline ssize_t biogen_read_iter_reg(struct kiocb *iocb,
					     struct iov_iter *to)
{
	return biogen_rw_iter(iocb, to, REQ_OP_READ, true);
}

static noinline ssize_t biogen_read_iter_pin(struct kiocb *iocb,
					     struct iov_iter *to)
{
	return biogen_rw_iter(iocb, to, REQ_OP_READ, false);
}

static noinline ssize_t biogen_write_iter_reg(struct kiocb *iocb,
					      struct iov_iter *from)
{
	return biogen_rw_iter(iocb, from, biogen_write_opf(false), true);
}

static noinline ssize_t biogen_write_iter_pin(struct kiocb *iocb,
					      struct iov_iter *from)
{
	return biogen_rw_iter(iocb, from, biogen_write_opf(false), false);
}

/* Pages that the caller has pinned, in several segments. */
static noinline ssize_t
biogen_rw_bvecs(struct biogen_device *bg, struct biogen_io *io,
		struct kiocb *iocb, struct iov_iter *iter, size_t bytes,
		blk_opf_t opf)
{
	unsigned int nr_vecs = biogen_count_bvecs(bg, iter->bvec,
						  iter->iov_offset, bytes);
	int err;

	if (!nr_vecs) {
		biogen_io_put(bg, io);
		return -EINVAL;
	}
	err = biogen_submit_one(bg, io, iocb, iter->bvec, nr_vecs,
				iter->iov_offset, bytes, iocb->ki_pos, opf,
				biogen_current_css(), BIOGEN_CALLERS_PAGES,
				NULL);
	if (err)
		return err;
	iocb->ki_pos += bytes;
	iov_iter_advance(iter, bytes);
	return bytes;
}

/*
 * Pages that the caller has pinned: the bio uses the caller's table. The bio is
 * got first, so that nothing needs to be saved around that.
 */
static __always_inline ssize_t
biogen_rw_bvec(struct kiocb *iocb, struct iov_iter *iter, blk_opf_t opf)
{
	struct biogen_file *bf = iocb->ki_filp->private_data;
	struct biogen_device *bg = bf->bg;
	struct biogen_io *io = biogen_io_get(bg);
	const struct bio_vec *bv;
	ssize_t bytes;
	size_t skip;
	int err;

	if (unlikely(!io))
		return -ENOMEM;
	biogen_assume(iocb);
	bytes = iov_iter_count(iter);
	if (unlikely(!biogen_begin(bg, iocb->ki_pos, &bytes, opf,
				   iocb->ki_flags & IOCB_NOWAIT)))
		goto put_io;
	bv = iter->bvec;
	skip = iter->iov_offset;
	if (unlikely(skip + bytes > bv->bv_len))
		return biogen_rw_bvecs(bg, io, iocb, iter, bytes, opf);
	if (unlikely((bv->bv_offset + skip) & biogen_dma_mask(bg))) {
		bytes = -EINVAL;
		goto put_io;
	}
	err = biogen_submit_one(bg, io, iocb, bv, 1, skip, bytes, iocb->ki_pos,
				opf, biogen_current_css(), BIOGEN_CALLERS_PAGES,
				NULL);
	return biogen_finish_iter(iocb, iter, bytes, err);

put_io:
	biogen_io_put(bg, io);
	if (bytes <= 0)
		return bytes;
	return biogen_rw_other_iter(iocb, iter, bytes, opf);
}

static noinline ssize_t biogen_read_bvec(struct kiocb *iocb,
					 struct iov_iter *to)
{
	return biogen_rw_bvec(iocb, to, REQ_OP_READ);
}

static noinline ssize_t biogen_write_bvec(struct kiocb *iocb,
					  struct iov_iter *from)
{
	return biogen_rw_bvec(iocb, from, biogen_write_opf(false));
}

ssize_t biogen_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	/* A buffer registered with io_uring is already pinned. */
	if (iov_iter_is_bvec(to))
		return biogen_read_bvec(iocb, to);
	return biogen_has_regs(iocb->ki_filp) ? biogen_read_iter_reg(iocb, to) :
						biogen_read_iter_pin(iocb, to);
}

ssize_t biogen_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	if (iov_iter_is_bvec(from))
		return biogen_write_bvec(iocb, from);
	return biogen_has_regs(iocb->ki_filp) ?
	       biogen_write_iter_reg(iocb, from) :
	       biogen_write_iter_pin(iocb, from);
}
