// SPDX-License-Identifier: GPL-2.0
/*
 * Reading and writing registered memory. These are the operations of files that
 * have registrations. An I/O whose buffer is not registered takes the ordinary
 * path, as does any that is not plain: one that reaches over the end of the
 * device, or is to fail.
 */
#include <linux/bio.h>
#include <linux/slab.h>
#include <linux/task_io_accounting_ops.h>
#include <linux/uio.h>

#include "cache.h"
#include "check.h"
#include "compat/file.h"
#include "late.h"
#include "reg.h"
#include "reg_io.h"
#include "rw.h"
#include "submit.h"

/*
 * Submit a bio of all of a request. @gathered is a constant: the segments are of
 * biogen_reg_gather(). Return: the result of the request.
 */
static __always_inline ssize_t
biogen_reg_submit(struct biogen_device *bg, const struct biogen_reg_span *span,
		  struct kiocb *iocb, unsigned int bytes, loff_t pos,
		  blk_opf_t opf, u16 ioprio, const bool gathered)
{
	bool is_write = op_is_write(opf);
	struct biogen_io *io;
	int err = 0;

	if (biogen_cached(bg)) {
		err = biogen_cache_prepare(bg, pos, bytes, opf);
		if (err)
			goto put;
	}
	if ((span->nr_vecs > 1 || unlikely(bytes > PAGE_SIZE)) &&
	    biogen_would_split(bg, iocb, span->bv, span->skip, bytes, opf)) {
		err = -EAGAIN;
		goto put;
	}
	io = biogen_io_get(bg);
	if (unlikely(!io)) {
		err = -ENOMEM;
		goto put;
	}
	/* As of a clone, the table is not the bio's own. */
	biogen_io_prepare(io, span->bv, span->nr_vecs, span->skip, bytes, pos,
			  opf, BIT(BIO_CLONED));
	io->bio.bi_ioprio = ioprio;
	if (is_write)
		task_io_account_write(bytes);
	if (unlikely(!biogen_io_submit(io, true))) {
		io->regs = span->regs;
		io->table = gathered ? span->bv : NULL;
		io->srcu_idx = span->srcu_idx;
		if (biogen_io_late(io, iocb, bytes, biogen_end_registered))
			return -EIOCBQUEUED;
	}

	err = biogen_io_error(io);
	biogen_io_put(bg, io);
	if (is_write && biogen_cached(bg))
		biogen_cache_drop(bg, pos, bytes);
put:
	if (gathered)
		kfree(span->bv);
	biogen_regs_put(span->regs, span->srcu_idx);
	/* err ?: bytes would have an unsigned type. */
	return err ? err : (ssize_t)bytes;
}

/* True if the request needs nothing but a bio: it is not short and not wrong. */
static __always_inline bool biogen_reg_plain(struct biogen_device *bg,
					     size_t count, loff_t pos,
					     blk_opf_t opf)
{
	return likely(count) &&
	       likely(biogen_check_range(bg, pos, count, opf) ==
		      (ssize_t)count) &&
	       likely(!((pos | count) & biogen_block_mask(bg)));
}

/* Hold the buffer of a plain request. */
static __always_inline bool biogen_reg_takes(struct biogen_file *bf,
					     unsigned long addr, size_t count,
					     loff_t pos, blk_opf_t opf,
					     struct biogen_reg_span *span)
{
	return biogen_reg_plain(bf->bg, count, pos, opf) &&
	       likely(!(addr & biogen_dma_mask(bf->bg))) &&
	       biogen_reg_get(bf->regs, addr, count, span);
}

/*
 * Hold the buffers of a vector and make a table of their segments, which is
 * freed. Return: false if they are not all registered or are more than a bio
 * holds.
 */
static bool biogen_reg_gather(struct biogen_file *bf,
			      const struct iov_iter *iter, loff_t pos,
			      blk_opf_t opf, struct biogen_reg_span *all)
{
	const struct iovec *iov = compat_iter_iov(iter);
	size_t left = iov_iter_count(iter), skip = iter->iov_offset;
	struct biogen_regs *regs = bf->regs;
	struct biogen_device *bg = bf->bg;
	struct bio_vec *table, *to;

	if (!biogen_reg_plain(bg, left, pos, opf) ||
	    !biogen_iter_aligned(bg, iter))
		return false;
	table = kmalloc_array(BIOGEN_LARGE_VECS, sizeof(*table), GFP_KERNEL);
	if (!table)
		return false;
	to = table;
	all->regs = regs;
	all->srcu_idx = compat_srcu_down_read(&regs->srcu);
	for (; left; iov++, skip = 0) {
		size_t len = min_t(size_t, left, iov->iov_len - skip);
		struct biogen_reg_span span;

		if (!len)
			continue;
		if (!biogen_reg_find(regs, (unsigned long)iov->iov_base + skip,
				     len, &span) ||
		    span.nr_vecs > table + BIOGEN_LARGE_VECS - to)
			goto put;
		left -= len;
		for (; len; len -= to->bv_len, span.bv++, span.skip = 0, to++) {
			to->bv_page = span.bv->bv_page;
			to->bv_offset = span.bv->bv_offset + span.skip;
			to->bv_len = min_t(size_t, len,
					   span.bv->bv_len - span.skip);
		}
	}
	all->bv = table;
	all->skip = 0;
	all->nr_vecs = to - table;
	return true;

put:
	biogen_regs_put(regs, all->srcu_idx);
	kfree(table);
	return false;
}

/* The ordinary path. */
static noinline ssize_t biogen_reg_ordinary(struct kiocb *iocb,
					    struct iov_iter *iter,
					    blk_opf_t opf)
{
	struct biogen_file *bf = iocb->ki_filp->private_data;

	return op_is_write(opf) ? bf->fops->write_iter(iocb, iter) :
				  bf->fops->read_iter(iocb, iter);
}

/* More than one buffer. */
static noinline ssize_t biogen_reg_rw_vector(struct kiocb *iocb,
					     struct iov_iter *iter,
					     blk_opf_t opf)
{
	struct biogen_file *bf = iocb->ki_filp->private_data;
	struct biogen_reg_span span;
	ssize_t ret;

	if (!biogen_reg_gather(bf, iter, iocb->ki_pos, opf, &span))
		return biogen_reg_ordinary(iocb, iter, opf);
	ret = biogen_reg_submit(bf->bg, &span, iocb, iov_iter_count(iter),
				iocb->ki_pos, opf, iocb->ki_ioprio, true);
	if (ret > 0) {
		iocb->ki_pos += ret;
		iov_iter_advance(iter, ret);
	}
	return ret;
}

static __always_inline ssize_t biogen_reg_rw_iter(struct kiocb *iocb,
						  struct iov_iter *iter,
						  blk_opf_t opf)
{
	struct biogen_file *bf = iocb->ki_filp->private_data;
	size_t count = iov_iter_count(iter);
	loff_t pos = iocb->ki_pos;
	struct biogen_reg_span span;
	unsigned long addr;
	size_t len = count;
	ssize_t ret;

	if (compat_iter_is_ubuf(iter)) {
		addr = (unsigned long)compat_iter_ubuf(iter) + iter->iov_offset;
	} else if (iter_is_iovec(iter)) {
		addr = (unsigned long)compat_iter_iov(iter)->iov_base +
		       iter->iov_offset;
		len = compat_iter_iov(iter)->iov_len - iter->iov_offset;
	} else {
		return biogen_reg_ordinary(iocb, iter, opf);
	}
	if (unlikely(iocb->ki_flags & (IOCB_NOWAIT | IOCB_HIPRI | IOCB_DSYNC))) {
		opf |= biogen_iocb_opf(iocb);
		if (op_is_write(opf) && (iocb->ki_flags & IOCB_DSYNC))
			opf |= REQ_FUA;
	}
	if (unlikely(count > len))
		return biogen_reg_rw_vector(iocb, iter, opf);
	if (unlikely(!biogen_reg_takes(bf, addr, count, pos, opf, &span)))
		return biogen_reg_ordinary(iocb, iter, opf);
	ret = biogen_reg_submit(bf->bg, &span, iocb, count, pos, opf,
				iocb->ki_ioprio, false);
	if (likely(ret > 0)) {
		iocb->ki_pos = pos + ret;
		/* Part of the segment may be left. */
		iter->iov_offset += ret;
		iter->count -= ret;
	}
	return ret;
}

static __always_inline bool biogen_reg_rw_buf(struct file *file,
					      unsigned long addr, size_t count,
					      loff_t *pos, blk_opf_t opf,
					      ssize_t *ret)
{
	struct biogen_file *bf = file->private_data;
	struct biogen_reg_span span;

	if (unlikely(!biogen_reg_takes(bf, addr, count, *pos, opf, &span)))
		return false;
	*ret = biogen_reg_submit(bf->bg, &span, NULL, count, *pos, opf,
				 biogen_task_ioprio(), false);
	if (likely(*ret > 0))
		*pos += *ret;
	return true;
}

/* The operations of struct file_operations. */

ssize_t biogen_reg_read(struct file *file, char __user *buf, size_t count,
			loff_t *pos)
{
	struct biogen_file *bf = file->private_data;
	ssize_t ret;

	if (likely(biogen_reg_rw_buf(file, (unsigned long)buf, count, pos,
				     REQ_OP_READ, &ret)))
		return ret;
	return bf->fops->read(file, buf, count, pos);
}

ssize_t biogen_reg_write(struct file *file, const char __user *buf,
			 size_t count, loff_t *pos)
{
	struct biogen_file *bf = file->private_data;
	blk_opf_t opf = biogen_write_opf(file->f_flags & O_DSYNC);
	ssize_t ret;

	if (likely(biogen_reg_rw_buf(file, (unsigned long)buf, count, pos, opf,
				     &ret)))
		return ret;
	return bf->fops->write(file, buf, count, pos);
}

ssize_t biogen_reg_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	return biogen_reg_rw_iter(iocb, to, REQ_OP_READ);
}

ssize_t biogen_reg_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	return biogen_reg_rw_iter(iocb, from, biogen_write_opf(false));
}
