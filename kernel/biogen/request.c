// SPDX-License-Identifier: GPL-2.0
/*
 * Completion of requests that do not end while they are submitted: from
 * biogen_end_io() to ki_complete(), or to the submitter that waits.
 */
#include <linux/sched.h>
#include <linux/slab.h>

#include "cache.h"
#include "compat/file.h"
#include "io.h"
#include "pin.h"
#include "request.h"

static struct workqueue_struct *biogen_workqueue;

/**
 * biogen_put_ended() - unpin and return bios that have ended
 * @io: the first of a list, or NULL
 * @dirty: dirty the pages that were read into; then it may sleep
 */
void biogen_put_ended(struct biogen_io *io, bool dirty)
{
	struct biogen_io *next;

	for (; io; io = next) {
		next = io->next;
		if (biogen_io_pinned(io))
			biogen_io_unpin_vecs(io, dirty && biogen_io_dirties(io));
		biogen_io_put_any(io);
	}
}

/*
 * Complete an asynchronous request. @sleep: in process context, where pages can
 * be dirtied and the page cache invalidated.
 *
 * The request may be part of one of the bios, and only the iocb's file keeps
 * module and device alive: nothing is accessed after the completion.
 */
static void biogen_request_complete(struct biogen_request *req, bool sleep)
{
	/* Not part of a bio: allocated by biogen_rw_stream(). */
	bool allocated = !req->ended || &req->ended->own != req;
	struct biogen_device *bg = req->bg;
	struct kiocb *iocb = req->iocb;
	long ret = biogen_request_result(req);

	if (sleep && req->is_write && biogen_cached(bg))
		biogen_cache_drop(bg, req->pos, req->bytes);
	biogen_put_ended(req->ended, sleep);
	if (allocated)
		kfree(req);
	WRITE_ONCE(iocb->private, NULL);
	if (ret > 0)
		iocb->ki_pos += ret;
	compat_ki_complete(iocb, ret);
}

static void biogen_request_work(struct work_struct *work)
{
	biogen_request_complete(container_of(work, struct biogen_request, work),
				true);
}

/*
 * The last count of an asynchronous request was dropped. Any context.
 *
 * The data has arrived. A page that is clean now must be dirtied, and a page
 * that is cached now must be dropped: both need process context. Pages that
 * become clean or cached later do so with the new data in them.
 */
static void biogen_request_end(struct biogen_request *req)
{
	struct biogen_io *io;
	bool sleep = req->is_write && biogen_cached(req->bg);

	for (io = req->ended; io && !sleep; io = io->next)
		sleep = biogen_io_must_dirty(io);
	if (sleep) {
		INIT_WORK(&req->work, biogen_request_work);
		queue_work(biogen_workqueue, &req->work);
	} else {
		biogen_request_complete(req, false);
	}
}

/**
 * biogen_end_io() - end_io() of a bio that did not end during submission
 * @bio: of a struct biogen_io that has a request
 *
 * Context: Any.
 */
void biogen_end_io(struct bio *bio)
{
	struct biogen_io *io = container_of(bio, struct biogen_io, bio);
	struct biogen_request *req = io->req;
	unsigned long flags;
	bool last;
	int err;

	err = biogen_io_error(io);
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

/**
 * biogen_request_add() - add a submitted bio to a request
 * @req: the request
 * @io: submitted, and not ended by biogen_io_submit()
 * @bytes: length of the data
 *
 * Drops the submitter's count on the bio.
 */
void biogen_request_add(struct biogen_request *req, struct biogen_io *io,
			unsigned int bytes)
{
	spin_lock_irq(&req->lock);
	req->inflight++;
	req->bytes += bytes;
	spin_unlock_irq(&req->lock);
	io->req = req;
	biogen_io_put_submitter(io);
}

/**
 * biogen_request_wait_inflight() - wait for a request's bios to end
 * @req: the request; its lock is held, but dropped while asleep
 * @most: the value that @req->inflight may still have
 *
 * Waits as O_DIRECT does: the time counts as I/O wait, and the task wakes up
 * twice a second so that a slow device does not make it look hung.
 *
 * Context: Process context, sleeps.
 */
void biogen_request_wait_inflight(struct biogen_request *req,
				  unsigned int most)
{
	lockdep_assert_held(&req->lock);
	___wait_event(req->wait, req->inflight <= most, TASK_UNINTERRUPTIBLE,
		      0, 0,
		      spin_unlock_irq(&req->lock);
		      io_schedule_timeout(HZ / 2);
		      spin_lock_irq(&req->lock));
}

/**
 * biogen_request_detach() - drop the submitter's count on a request
 * @req: asynchronous, with all bios submitted
 *
 * Return: -EIOCBQUEUED if bios are in flight: they complete the request, and
 * @req must not be accessed any more. Otherwise the result of the request.
 */
ssize_t biogen_request_detach(struct biogen_request *req)
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
 * biogen_io_detach() - make a bio in flight a request of its own
 * @io: submitted, and not ended by biogen_io_submit()
 * @pos: position on the device
 * @bytes: length of the data
 *
 * biogen_io_wait() must be called for it.
 */
void biogen_io_detach(struct biogen_io *io, loff_t pos, unsigned int bytes)
{
	struct biogen_request *req = &io->own;

	biogen_request_start(req, io->bg, NULL, pos,
			     op_is_write(bio_op(&io->bio)));
	biogen_request_add(req, io, bytes);
}

/**
 * biogen_io_wait() - wait for the end of a bio
 * @io: given to biogen_io_detach(); the caller's again afterwards
 *
 * Context: Process context, may sleep.
 * Return: 0 or the bio's error.
 */
int biogen_io_wait(struct biogen_io *io)
{
	struct biogen_request *req = &io->own;
	int err;

	spin_lock_irq(&req->lock);
	if (io->bio.bi_opf & REQ_POLLED) {
		while (req->inflight > 1) {
			spin_unlock_irq(&req->lock);
			compat_bio_poll(&io->bio);
			cond_resched();
			spin_lock_irq(&req->lock);
		}
	} else if (req->inflight > 1) {
		biogen_request_wait_inflight(req, 1);
	}
	err = req->error;
	spin_unlock_irq(&req->lock);
	return err;
}

/**
 * biogen_request_finish_one() - finish a request of one bio that is in flight
 * @io: submitted, and not ended by biogen_io_submit()
 * @iocb: completed at the end if it is asynchronous; may be NULL
 * @pos: position on the device
 * @bytes: length of the data
 *
 * Context: Process context, sleeps unless @iocb is asynchronous.
 * Return: the number of bytes, an error, or -EIOCBQUEUED.
 */
ssize_t biogen_request_finish_one(struct biogen_io *io, struct kiocb *iocb,
				  loff_t pos, unsigned int bytes)
{
	struct biogen_request *req = &io->own;
	struct biogen_device *bg = io->bg;
	bool is_write = op_is_write(bio_op(&io->bio));
	bool again;
	int err;

	/*
	 * The bio was refused because it would have had to wait, for example for
	 * a free request. io_uring retries without REQ_NOWAIT if the system call
	 * returns -EAGAIN, but on a completed request only for block devices.
	 */
	again = atomic_read_acquire(&io->bio.__bi_remaining) == 1 &&
		io->bio.bi_status == BLK_STS_AGAIN;
	if (biogen_is_async(iocb) && !again) {
		/* The only count is the bio's: the submitter does not wait. */
		biogen_request_start(req, bg, iocb, pos, is_write);
		req->bytes = bytes;
		io->req = req;
		if (io->bio.bi_opf & REQ_POLLED)
			WRITE_ONCE(iocb->private, &io->bio);
		biogen_io_put_submitter(io);
		return -EIOCBQUEUED;
	}

	biogen_io_detach(io, pos, bytes);
	err = biogen_io_wait(io);
	if (biogen_io_pinned(io))
		biogen_io_unpin_vecs(io, biogen_io_dirties(io));
	biogen_io_put_any(io);
	if (is_write && biogen_cached(bg))
		biogen_cache_drop(bg, pos, bytes);
	return biogen_result(err, bytes);
}

/**
 * biogen_workqueue_create() - create the workqueue for completions
 *
 * Return: 0 or -ENOMEM.
 */
int biogen_workqueue_create(void)
{
	biogen_workqueue = alloc_workqueue("biogen",
					   WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	return biogen_workqueue ? 0 : -ENOMEM;
}

/**
 * biogen_workqueue_destroy() - destroy the workqueue; no device is left
 */
void biogen_workqueue_destroy(void)
{
	destroy_workqueue(biogen_workqueue);
}
