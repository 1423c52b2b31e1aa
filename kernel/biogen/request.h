/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion of requests that do not end while they are submitted.
 */
#ifndef BIOGEN_REQUEST_H
#define BIOGEN_REQUEST_H

#include <linux/bio.h>
#include <linux/fs.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "biogen.h"

struct biogen_io;

/**
 * struct biogen_request - a read or write that has bios in flight
 * @lock: protects @inflight, @error, @ended
 * @wait: where the submitter waits for @inflight to drop
 * @inflight: bios in flight, plus one while the submitter is still submitting
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
 * biogen_request_init() - initialise lock and wait queue
 * @req: new memory
 */
static inline void biogen_request_init(struct biogen_request *req)
{
	spin_lock_init(&req->lock);
	init_waitqueue_head(&req->wait);
}

/**
 * biogen_request_start() - begin a request; the submitter holds one count
 * @req: initialised, not in use
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

/* True if the caller does not wait for the result. read(2) has no iocb. */
static __always_inline bool biogen_is_async(struct kiocb *iocb)
{
	return iocb && !is_sync_kiocb(iocb);
}

/* The result of an I/O of one bio. err ?: bytes would have an unsigned type. */
static __always_inline ssize_t biogen_result(int err, unsigned int bytes)
{
	return err ? err : (ssize_t)bytes;
}

void biogen_end_io(struct bio *bio);

void biogen_request_add(struct biogen_request *req, struct biogen_io *io,
			unsigned int bytes);
void biogen_request_wait_inflight(struct biogen_request *req,
				  unsigned int most);
void biogen_put_ended(struct biogen_io *io, bool dirty);
ssize_t biogen_request_detach(struct biogen_request *req);
ssize_t biogen_request_finish_one(struct biogen_io *io, struct kiocb *iocb,
				  loff_t pos, unsigned int bytes);

void biogen_io_detach(struct biogen_io *io, loff_t pos, unsigned int bytes);
int biogen_io_wait(struct biogen_io *io);

int biogen_workqueue_create(void);
void biogen_workqueue_destroy(void);

/**
 * biogen_request_wait() - wait until few enough bios are in flight
 * @req: the request
 * @bios: how many may still be in flight
 *
 * Unpins and returns the bios that have ended. Inline, because it runs for each
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
