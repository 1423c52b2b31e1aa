/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion of single bios that end later than their submission.
 */
#ifndef BIOGEN_LATE_H
#define BIOGEN_LATE_H

#include <linux/fs.h>

#include "compat/file.h"
#include "submit.h"

/* True if the caller does not wait for the result. read(2) has no iocb. */
static __always_inline bool biogen_is_async(struct kiocb *iocb)
{
	return iocb && !is_sync_kiocb(iocb);
}

/**
 * biogen_iocb_complete() - complete an asynchronous request
 * @iocb: the request
 * @ret: its result
 *
 * Only the iocb's file keeps module and device alive: nothing is accessed
 * afterwards.
 */
static inline void biogen_iocb_complete(struct kiocb *iocb, long ret)
{
	WRITE_ONCE(iocb->private, NULL);
	if (ret > 0)
		iocb->ki_pos += ret;
	compat_ki_complete(iocb, ret);
}

void biogen_end_pinned(struct biogen_io *io);
void biogen_end_callers(struct biogen_io *io);
void biogen_end_registered(struct biogen_io *io);
void biogen_io_late_sync(struct biogen_io *io);
void biogen_io_start_wait(struct biogen_io *io);
void biogen_io_wait(struct biogen_io *io);

void biogen_complete_in_task(struct work_struct *work, work_func_t func);
int biogen_workqueue_create(void);
void biogen_workqueue_destroy(void);

/*
 * True if a bio was refused because it would have had to wait, for example for a
 * free request. io_uring retries without REQ_NOWAIT if the system call returns
 * -EAGAIN, but on a completed request only for block devices.
 */
static __always_inline bool biogen_io_refused(struct biogen_io *io)
{
	/* The driver may be setting it now; then the count says what it is. */
	return data_race(io->bio.bi_status) == BLK_STS_AGAIN &&
	       atomic_read_acquire(&io->bio.__bi_remaining) == 1;
}

/**
 * biogen_io_late() - what follows if biogen_io_submit() returned false
 * @io: a small bio that is all of a request
 * @iocb: the request; may be NULL
 * @bytes: length of the data
 * @end: a constant: ends the bio if @iocb is asynchronous
 *
 * Context: Process context, sleeps unless @iocb is asynchronous.
 * Return: true if the bio completes @iocb when it ends; then @io must not be
 * accessed any more. False if it has ended and is the caller's again.
 */
static __always_inline bool
biogen_io_late(struct biogen_io *io, struct kiocb *iocb, unsigned int bytes,
	       void (*end)(struct biogen_io *io))
{
	if (!biogen_is_async(iocb) || unlikely(biogen_io_refused(io))) {
		biogen_io_late_sync(io);
		return false;
	}
	io->iocb = iocb;
	io->bytes = bytes;
	if (unlikely(io->bio.bi_opf & REQ_POLLED))
		WRITE_ONCE(iocb->private, &io->bio);
	biogen_io_end_later(io, end);
	return true;
}

#endif /* BIOGEN_LATE_H */
