// SPDX-License-Identifier: GPL-2.0
/*
 * Long reads and writes: each bio is submitted as soon as it is full. The
 * number in flight is limited, which bounds the memory that is pinned.
 */
#include <linux/blkdev.h>
#include <linux/slab.h>
#include <linux/task_io_accounting_ops.h>
#include <linux/uio.h>

#include "cache.h"
#include "check.h"
#include "pin.h"
#include "request.h"
#include "rw.h"
#include "submit.h"

/* Maximum number of bios of one request in flight. */
#define BIOGEN_MAX_INFLIGHT	16

/**
 * biogen_rw_stream() - read or write by as many large bios as it takes
 * @bg: the device
 * @iocb: the request
 * @iter: user memory, aligned
 * @pos: position on the device
 * @count: length of the request
 * @opf: REQ_OP_READ or REQ_OP_WRITE, with flags
 *
 * Return: the number of bytes, an error, or -EIOCBQUEUED.
 */
ssize_t biogen_rw_stream(struct biogen_device *bg, struct kiocb *iocb,
			 struct iov_iter *iter, loff_t pos, size_t count,
			 blk_opf_t opf)
{
	struct biogen_request on_stack, *req = &on_stack;
	bool sync = is_sync_kiocb(iocb);
	struct biogen_io *io = NULL;
	struct blk_plug plug;
	ssize_t ret = 0;

	if (biogen_cached(bg)) {
		ret = biogen_cache_prepare(bg, pos, count, opf);
		if (ret)
			return ret;
	}
	if (!sync) {
		req = kmalloc(sizeof(*req), GFP_KERNEL);
		if (!req)
			return -ENOMEM;
	}
	biogen_request_start(req, bg, sync ? NULL : iocb, pos,
			     op_is_write(opf));

	blk_start_plug(&plug);
	while (count) {
		if (!io)
			io = biogen_io_alloc(bg, true);
		if (!io) {
			ret = -ENOMEM;
			break;
		}
		ret = biogen_pin_iter(io, iter, count, opf);
		if (ret <= 0)
			break;
		if (biogen_would_split(bg, iocb, io->vecs, 0, ret, opf)) {
			biogen_io_unpin_vecs(io, false);
			ret = -EAGAIN;
			break;
		}
		biogen_io_prepare(io, io->vecs, io->bio.bi_vcnt, 0, ret, pos,
				  opf & ~REQ_POLLED, COMPAT_BIO_PINNED);
		io->bio.bi_ioprio = iocb->ki_ioprio;
		pos += ret;
		count -= ret;
		if (op_is_write(opf))
			task_io_account_write(ret);
		if (biogen_io_submit(io, true)) {
			int err = biogen_io_error(io);

			spin_lock_irq(&req->lock);
			req->bytes += ret;
			if (!req->error)
				req->error = err;
			spin_unlock_irq(&req->lock);
			biogen_io_unpin_vecs(io, biogen_io_dirties(io));
		} else {
			biogen_request_add(req, io, ret);
			io = NULL;
			biogen_request_wait(req, BIOGEN_MAX_INFLIGHT);
		}
		if (READ_ONCE(req->error))
			break;
	}
	blk_finish_plug(&plug);
	if (io)
		biogen_io_free(io);

	/* What was submitted before is the result. */
	if (ret <= 0 && !req->bytes)
		req->error = ret ?: -EFAULT;
	if (!sync) {
		ret = biogen_request_detach(req);
		if (ret == -EIOCBQUEUED)
			return ret;
	} else {
		biogen_request_wait(req, 0);
		ret = biogen_request_result(req);
	}
	if (op_is_write(opf) && biogen_cached(bg) && req->bytes)
		biogen_cache_drop(bg, req->pos, req->bytes);
	if (!sync)
		kfree(req);
	return ret;
}
