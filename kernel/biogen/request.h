/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A long read or write: a request that has several bios in flight.
 */
#ifndef BIOGEN_REQUEST_H
#define BIOGEN_REQUEST_H

#include <linux/fs.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "io.h"

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

/**
 * biogen_request_start() - begin a request; the submitter holds one count
 * @req: new memory
 * @bg: the device
 * @iocb: what to complete at the end; NULL if the submitter waits
 * @pos: position on the device
 * @is_write: direction
 */
static inline void biogen_request_start(struct biogen_request *req,
					struct biogen_device *bg,
					struct kiocb *iocb, loff_t pos,
					bool is_write)
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

/**
 * biogen_request_result() - the result of a request that has ended
 * @req: the request
 *
 * Return: the number of bytes, or an error.
 */
static inline long biogen_request_result(const struct biogen_request *req)
{
	return req->error ?: req->bytes;
}

void biogen_request_add(struct biogen_request *req, struct biogen_io *io,
			unsigned int bytes);
void biogen_request_wait_inflight(struct biogen_request *req,
				  unsigned int most);
void biogen_put_ended(struct biogen_io *io, bool dirty);
ssize_t biogen_request_detach(struct biogen_request *req);

/**
 * biogen_request_wait() - wait until few enough bios are in flight
 * @req: the request
 * @bios: how many may still be in flight
 *
 * Unpins the pages of the bios that have ended, and frees these. Inline, because it runs for each
 * long request, and most have nothing in flight.
 *
 * Context: Process context, may sleep.
 */
static inline void biogen_request_wait(struct biogen_request *req,
				       unsigned int bios)
{
	struct biogen_io *ended;

	spin_lock_irq(&req->lock);
	if (req->inflight > bios + 1)
		biogen_request_wait_inflight(req, bios + 1);
	ended = req->ended;
	req->ended = NULL;
	spin_unlock_irq(&req->lock);
	biogen_put_ended(ended, true);
}

#endif /* BIOGEN_REQUEST_H */
