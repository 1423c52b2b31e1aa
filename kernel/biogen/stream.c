// SPDX-License-Identifier: GPL-2.0
/*
 * Long reads and writes: each bio is submitted as soon as it is full. The
 * number in flight is limited, which bounds the memory that is pinned. Bios that
 * end later than their submission end the request, or wake the submitter that
 * waits.
 */
#include <linux/blkdev.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "pin.h"
#include "submit.h"
#include "target.h"

/* Maximum number of bios of one request in flight. */
#define BIOGEN_MAX_INFLIGHT	16

/**
 * struct biogen_request - a read or write that has bios in flight
 * @lock: protects @inflight, @error, @ended
 * @wait: where the submitter waits for @inflight to drop
 * @inflight: bios in flight, plus one that the submitter holds from
 *	biogen_request_start() to biogen_request_detach()
 * @error: the first error of a bio, or 0
 * @ended: bios that have ended and whose pages are still pinned
 * @iocb: completed at the end; NULL if the submitter waits
 * @bg: the device
 * @pos: position on the device
 * @bytes: bytes submitted so far
 * @is_write: direction
 * @work: completes the request in process context
 */
struct biogen_request {
	spinlock_t lock; /* inflight, error, ended */
	wait_queue_head_t wait;
	unsigned int inflight;
	int error;
	struct biogen_io *ended;
	struct kiocb *iocb;
	struct biogen_device *bg;
	loff_t pos;
	size_t bytes;
	bool is_write;
	struct work_struct work;
};

/*
 * Begin a request: the submitter holds one count. @iocb is completed at the end;
 * NULL if the submitter waits.
 */
static void biogen_request_start(struct biogen_request *req,
				 struct biogen_device *bg, struct kiocb *iocb,
				 loff_t pos, bool is_write)
{
	spin_lock_init(&req->lock);
	init_waitqueue_head(&req->wait);
	req->inflight = 1;
	req->error = 0;
	req->ended = NULL;
	req->iocb = iocb;
	req->bg = bg;
	req->pos = pos;
	req->bytes = 0;
	req->is_write = is_write;
}

/* The result of a request that has ended. */
static long biogen_request_result(const struct biogen_request *req)
{
	return req->error ?: req->bytes;
}

/*
 * Unpin the pages of bios that have ended, and free these. @dirty: dirty the
 * pages that were read into; then it may sleep.
 */
static void biogen_put_ended(struct biogen_io *io, bool dirty)
{
	struct biogen_io *next;

	for (; io; io = next) {
		next = io->next;
		biogen_io_unpin(io, dirty && biogen_io_dirties(io));
		biogen_io_free(io);
	}
}

/*
 * Complete an asynchronous request. @sleep: in process context. Nothing is
 * accessed afterwards, as in late.c.
 */
static void biogen_request_complete(struct biogen_request *req, bool sleep)
{
	struct kiocb *iocb = req->iocb;
	long ret = biogen_request_result(req);

	if (sleep && req->is_write && biogen_cached(req->bg))
		biogen_cache_drop(req->bg, req->pos, req->bytes);
	biogen_put_ended(req->ended, sleep);
	kfree(req);
	if (ret > 0)
		iocb->ki_pos += ret;
	compat_ki_complete(iocb, ret);
}

static void biogen_request_work(struct work_struct *work)
{
	biogen_request_complete(container_of(work, struct biogen_request, work),
				true);
}

/* The last count was dropped, as in biogen_end_async(). Any context. */
static void biogen_request_end(struct biogen_request *req)
{
	struct biogen_io *io;
	bool sleep = req->is_write && biogen_cached(req->bg);

	for (io = req->ended; io && !sleep; io = io->next)
		sleep = biogen_io_must_dirty(io);
	if (sleep)
		biogen_run_in_task(&req->work, biogen_request_work);
	else
		biogen_request_complete(req, false);
}

/* A bio of a request has ended. Any context. */
static void biogen_end_part(struct biogen_io *io)
{
	struct biogen_request *req = io->req;
	int err = biogen_io_error(io);
	unsigned long flags;
	bool last;

	spin_lock_irqsave(&req->lock, flags);
	if (!req->error)
		req->error = err;
	io->next = req->ended;
	req->ended = io;
	last = !--req->inflight;
	/* The waiter checks @inflight under the same lock before it sleeps. */
	if (waitqueue_active(&req->wait))
		wake_up(&req->wait);
	spin_unlock_irqrestore(&req->lock, flags);

	/* If this was not the last count, the request may be freed by now. */
	if (last)
		biogen_request_end(req);
}

/* Add a bio of @bytes that was submitted and did not end. */
static void biogen_request_add(struct biogen_request *req, struct biogen_io *io,
			       unsigned int bytes)
{
	spin_lock_irq(&req->lock);
	req->inflight++;
	req->bytes += bytes;
	spin_unlock_irq(&req->lock);
	io->req = req;
	biogen_io_end_later(io, biogen_end_part);
}

/*
 * Wait until at most @bios are in flight, as biogen_io_wait() does, and put
 * those that have ended.
 */
static void biogen_request_wait(struct biogen_request *req, unsigned int bios)
{
	struct biogen_io *ended;

	spin_lock_irq(&req->lock);
	if (req->inflight > bios + 1)
		___wait_event(req->wait, req->inflight <= bios + 1,
			      TASK_UNINTERRUPTIBLE, 0, 0,
			      spin_unlock_irq(&req->lock);
			      io_schedule_timeout(HZ / 2);
			      spin_lock_irq(&req->lock));
	ended = req->ended;
	req->ended = NULL;
	spin_unlock_irq(&req->lock);
	biogen_put_ended(ended, true);
}

/*
 * Drop the submitter's count on an asynchronous request. Return: -EIOCBQUEUED if
 * bios are in flight: they complete the request, and @req must not be accessed
 * any more. Otherwise the result of the request.
 */
static ssize_t biogen_request_detach(struct biogen_request *req)
{
	bool last;

	spin_lock_irq(&req->lock);
	last = req->inflight == 1;
	if (!last)
		req->inflight--;
	spin_unlock_irq(&req->lock);
	if (!last)
		return -EIOCBQUEUED;
	biogen_request_wait(req, 0);
	return biogen_request_result(req);
}

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
	bool ended;

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
			biogen_io_unpin(io, false);
			ret = -EAGAIN;
			break;
		}
		ended = biogen_io_submit(io, bg, io->vecs, io->nr_vecs, 0, ret,
					 pos, opf & ~REQ_POLLED,
					 COMPAT_BIO_PINNED, iocb->ki_ioprio,
					 biogen_current_css());
		pos += ret;
		count -= ret;
		if (ended) {
			int err = biogen_io_error(io);

			spin_lock_irq(&req->lock);
			req->bytes += ret;
			if (!req->error)
				req->error = err;
			spin_unlock_irq(&req->lock);
			biogen_io_unpin(io, biogen_io_dirties(io));
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
