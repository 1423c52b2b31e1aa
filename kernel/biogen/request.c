// SPDX-License-Identifier: GPL-2.0
/*
 * A long read or write, whose bios end later than their submission: from the end
 * of a bio to ki_complete(), or to the submitter that waits.
 */
#include <linux/sched.h>
#include <linux/slab.h>

#include "cache.h"
#include "late.h"
#include "pin.h"
#include "request.h"
#include "submit.h"

/**
 * biogen_put_ended() - unpin the pages of large bios that have ended, free them
 * @io: the first of a list, or NULL
 * @dirty: dirty the pages that were read into; then it may sleep
 */
void biogen_put_ended(struct biogen_io *io, bool dirty)
{
	struct biogen_io *next;

	for (; io; io = next) {
		next = io->next;
		biogen_io_unpin_vecs(io, dirty && biogen_io_dirties(io));
		biogen_io_free(io);
	}
}

/* Complete an asynchronous request. @sleep: in process context. */
static void biogen_request_complete(struct biogen_request *req, bool sleep)
{
	struct kiocb *iocb = req->iocb;
	long ret = biogen_request_result(req);

	if (sleep && req->is_write && biogen_cached(req->bg))
		biogen_cache_drop(req->bg, req->pos, req->bytes);
	biogen_put_ended(req->ended, sleep);
	kfree(req);
	biogen_iocb_complete(iocb, ret);
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
		biogen_complete_in_task(&req->work, biogen_request_work);
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

/**
 * biogen_request_add() - add a submitted bio to a request
 * @req: the request
 * @io: submitted, and not ended by biogen_io_submit()
 * @bytes: length of the data
 */
void biogen_request_add(struct biogen_request *req, struct biogen_io *io,
			unsigned int bytes)
{
	spin_lock_irq(&req->lock);
	req->inflight++;
	req->bytes += bytes;
	spin_unlock_irq(&req->lock);
	io->req = req;
	biogen_io_end_later(io, biogen_end_part);
}

/**
 * biogen_request_wait_inflight() - wait for a request's bios to end
 * @req: the request; its lock is held, but dropped while asleep
 * @most: the value that @req->inflight may still have
 *
 * Waits as biogen_io_wait() does.
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
