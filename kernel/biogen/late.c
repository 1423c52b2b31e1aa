// SPDX-License-Identifier: GPL-2.0
/*
 * Bios that end later than their submission: either the submitter waits, or the
 * end of the bio completes the request. submit.h explains the submitter's count.
 */
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "pin.h"
#include "reg.h"
#include "submit.h"
#include "target.h"

/**
 * biogen_end_io() - end_io() of a bio that did not end during submission
 * @bio: of a struct biogen_io
 *
 * Context: Any.
 */
void biogen_end_io(struct bio *bio)
{
	struct biogen_io *io = container_of(bio, struct biogen_io, bio);

	io->end(io);
}

/**
 * biogen_io_end_later() - drop the submitter's count on a bio
 * @io: submitted, and not ended by biogen_io_submit()
 * @end: called once, now or later, in any context; it owns @io from then on
 */
void biogen_io_end_later(struct biogen_io *io, void (*end)(struct biogen_io *))
{
	io->end = end;
	io->ready = BIOGEN_NOT_READY;
	/* bio_endio() does the same, and is only needed for the last count. */
	if (unlikely(atomic_dec_and_test(&io->bio.__bi_remaining))) {
		atomic_set(&io->bio.__bi_remaining, 1);
		bio_endio(&io->bio);
	}
}

/* Synchronous: the submitter, which waits, has the rest to do. */
static void biogen_end_sync(struct biogen_io *io)
{
	struct task_struct *waiter = io->waiter;

	/* The waiter may exit when it has seen the end; its memory stays. */
	rcu_read_lock();
	/* Pairs with the load in biogen_io_wait(). */
	smp_store_release(&io->waiter, NULL);
	blk_wake_io_task(waiter);
	rcu_read_unlock();
}

/**
 * biogen_io_start_wait() - let the current task wait for a bio
 * @io: submitted, and not ended by biogen_io_submit()
 *
 * The task must call biogen_io_wait().
 */
void biogen_io_start_wait(struct biogen_io *io)
{
	io->waiter = current;
	biogen_io_end_later(io, biogen_end_sync);
}

/**
 * biogen_io_wait() - wait for the end of a bio
 * @io: given to biogen_io_start_wait(); the caller's again afterwards
 *
 * Waits as O_DIRECT does: the time counts as I/O wait, and the task wakes up
 * twice a second so that a slow device does not make it look hung.
 *
 * Context: Process context, may sleep.
 */
void biogen_io_wait(struct biogen_io *io)
{
	/* Pairs with the store in biogen_end_sync(): bi_status is seen. */
	while (smp_load_acquire(&io->waiter)) {
		if (io->bio.bi_opf & REQ_POLLED) {
			compat_bio_poll(&io->bio);
			cond_resched();
			continue;
		}
		set_current_state(TASK_UNINTERRUPTIBLE);
		if (READ_ONCE(io->waiter))
			io_schedule_timeout(HZ / 2);
		__set_current_state(TASK_RUNNING);
	}
}

/*
 * Asynchronous: from the end of the bio to ki_complete(). @sleep: in process
 * context, where pages can be dirtied and the page cache invalidated. Only the
 * iocb's file keeps device and module alive: nothing is accessed afterwards.
 */
static __always_inline void biogen_async_complete(struct biogen_io *io,
						  const bool sleep)
{
	struct kiocb *iocb = io->iocb;
	long ret = biogen_io_error(io) ?: (long)io->bytes;

	if (sleep && op_is_write(bio_op(&io->bio)) && biogen_cached(io->bg))
		biogen_cache_drop(io->bg, iocb->ki_pos, io->bytes);
	biogen_io_unpin(io, sleep && biogen_io_dirties(io));
	if (!biogen_io_keep(io->bg, io))
		biogen_io_free(io);
	WRITE_ONCE(iocb->private, NULL);
	if (ret > 0)
		iocb->ki_pos += ret;
	compat_ki_complete(iocb, ret);
}

static void biogen_async_work(struct work_struct *work)
{
	biogen_async_complete(container_of(work, struct biogen_io, work), true);
}

/*
 * Asynchronous. The data has arrived. A page that is clean now must be dirtied,
 * and a page that is cached now must be dropped: both need process context.
 * Pages that become clean or cached later do so with the new data in them.
 */
static void biogen_end_async(struct biogen_io *io)
{
	if (io->reg)
		biogen_reg_put(io->reg);
	else if (unlikely(io->gathered))
		biogen_gathered_put(io->gathered);
	if (op_is_write(bio_op(&io->bio)) ? biogen_cached(io->bg) :
					    biogen_io_must_dirty(io))
		biogen_run_in_task(&io->work, biogen_async_work);
	else
		biogen_async_complete(io, false);
}

/*
 * True if a bio was refused because it would have had to wait, for example for a
 * free request. io_uring retries without REQ_NOWAIT if the system call returns
 * -EAGAIN, but on a completed request only for block devices.
 */
static bool biogen_io_refused(struct biogen_io *io)
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
 *
 * Context: Process context, sleeps unless @iocb is asynchronous.
 * Return: true if the bio completes @iocb when it ends; then @io must not be
 * accessed any more. False if it has ended and is the caller's again.
 */
noinline bool biogen_io_late(struct biogen_io *io, struct kiocb *iocb,
			     size_t bytes)
{
	if (!biogen_is_async(iocb) || unlikely(biogen_io_refused(io))) {
		biogen_io_start_wait(io);
		biogen_io_wait(io);
		return false;
	}
	io->iocb = iocb;
	io->bytes = bytes;
	if (unlikely(io->bio.bi_opf & REQ_POLLED))
		WRITE_ONCE(iocb->private, &io->bio);
	biogen_io_end_later(io, biogen_end_async);
	return true;
}
