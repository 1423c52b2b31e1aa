// SPDX-License-Identifier: GPL-2.0
/*
 * Completion of single bios that end later than their submission: either the
 * submitter waits, or the end of the bio completes the iocb.
 */
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "cache.h"
#include "late.h"
#include "pin.h"
#include "reg.h"
#include "submit.h"

static struct workqueue_struct *biogen_workqueue;

/**
 * biogen_complete_in_task() - complete a request in process context
 * @work: work item of the request
 * @func: completes it
 *
 * Context: Any.
 */
void biogen_complete_in_task(struct work_struct *work, work_func_t func)
{
	INIT_WORK(work, func);
	queue_work(biogen_workqueue, work);
}

/*
 * Asynchronous: from the end of the bio to ki_complete(). @pages is a constant;
 * @sleep: in process context, where pages can be dirtied and the page cache
 * invalidated.
 */
static __always_inline void
biogen_async_complete(struct biogen_io *io, int err,
		      const enum biogen_pages pages, const bool sleep)
{
	struct kiocb *iocb = io->iocb;
	long ret = err ?: (long)io->bytes;

	if (sleep && op_is_write(bio_op(&io->bio)) && biogen_cached(io->bg))
		biogen_cache_drop(io->bg, iocb->ki_pos, io->bytes);
	if (pages == BIOGEN_PINNED_PAGES)
		biogen_io_unpin_vecs(io, sleep && biogen_io_dirties(io));
	if (!biogen_io_keep(io->bg, io))
		biogen_io_free(io);
	biogen_iocb_complete(iocb, ret);
}

static void biogen_pinned_work(struct work_struct *work)
{
	struct biogen_io *io = container_of(work, struct biogen_io, work);

	biogen_async_complete(io, io->err, BIOGEN_PINNED_PAGES, true);
}

static void biogen_callers_work(struct work_struct *work)
{
	struct biogen_io *io = container_of(work, struct biogen_io, work);

	biogen_async_complete(io, io->err, BIOGEN_CALLERS_PAGES, true);
}

/*
 * The data has arrived. A page that is clean now must be dirtied, and a page
 * that is cached now must be dropped: both need process context. Pages that
 * become clean or cached later do so with the new data in them.
 */

/**
 * biogen_end_pinned() - end of an asynchronous bio with pages that biogen pinned
 * @io: ended
 *
 * Context: Any.
 */
void biogen_end_pinned(struct biogen_io *io)
{
	int err = biogen_io_error(io);

	if (op_is_write(bio_op(&io->bio)) ? biogen_cached(io->bg) :
					    biogen_io_must_dirty(io)) {
		io->err = err;
		biogen_complete_in_task(&io->work, biogen_pinned_work);
	} else {
		biogen_async_complete(io, err, BIOGEN_PINNED_PAGES, false);
	}
}

/* The page cache must be looked at, or there is an error. */
static noinline void biogen_end_callers_rare(struct biogen_io *io)
{
	int err = biogen_io_error(io);

	if (op_is_write(bio_op(&io->bio)) && biogen_cached(io->bg)) {
		io->err = err;
		biogen_complete_in_task(&io->work, biogen_callers_work);
	} else {
		biogen_async_complete(io, err, BIOGEN_CALLERS_PAGES, false);
	}
}

/**
 * biogen_end_callers() - end of an asynchronous bio with the caller's pages
 * @io: ended
 *
 * Context: Any.
 */
void biogen_end_callers(struct biogen_io *io)
{
	struct kiocb *iocb = io->iocb;
	long bytes = io->bytes;

	if (unlikely(io->bio.bi_status) ||
	    (op_is_write(bio_op(&io->bio)) && biogen_cached(io->bg)) ||
	    unlikely(!biogen_io_keep(io->bg, io)))
		biogen_end_callers_rare(io);
	else
		biogen_iocb_complete(iocb, bytes);
}

/**
 * biogen_end_registered() - end of an asynchronous bio in registered memory
 * @io: ended; stops using &biogen_io.regs
 *
 * Context: Any.
 */
void biogen_end_registered(struct biogen_io *io)
{
	biogen_reg_release(io);
	biogen_end_callers(io);
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

/**
 * biogen_io_late_sync() - wait for the end of a bio
 * @io: submitted, and not ended by biogen_io_submit()
 *
 * Context: Process context, may sleep.
 */
void biogen_io_late_sync(struct biogen_io *io)
{
	biogen_io_start_wait(io);
	biogen_io_wait(io);
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
