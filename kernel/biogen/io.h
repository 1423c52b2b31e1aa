/* SPDX-License-Identifier: GPL-2.0 */
/*
 * struct biogen_io: a bio that is used again and again. Each CPU keeps unused
 * ones. The memory and the workqueue that all devices share.
 */
#ifndef BIOGEN_IO_H
#define BIOGEN_IO_H

#include <linux/bio.h>
#include <linux/cgroup.h>
#include <linux/percpu.h>
#include <linux/workqueue.h>

#include "biogen.h"

/* Number of segments of a small bio, which is enough for most requests. */
#define BIOGEN_SMALL_VECS	8
#define BIOGEN_LARGE_VECS	256

/* Number of unused bios that a CPU keeps besides the first one. */
#define BIOGEN_MAX_SPARE	127

/* No task's cgroup: biogen_io_make_ready() must see the bio before its next use. */
#define BIOGEN_NOT_READY	((struct cgroup_subsys_state *)NULL)

struct biogen_gathered;
struct biogen_reg;
struct biogen_request;

/**
 * struct biogen_io - a bio and what belongs to it
 * @bio: the bio; its end_io is biogen_end_io()
 * @bg: the device that @bio is initialised for
 * @ready: the cgroup whose tasks can submit @bio as it is, or BIOGEN_NOT_READY;
 *	the reference that @bio has to its blkg keeps the cgroup
 * @next: next entry in the list @ended of a request or @spare of a CPU
 * @end: what biogen_end_io() calls
 * @req: in flight as a part of a long request: that request
 * @iocb: in flight, asynchronous: completed at the end
 * @waiter: in flight, synchronous: the task that waits; NULL when @bio has ended
 * @bytes: asynchronous: length of the data
 * @max_vecs: number of entries in @vecs
 * @nr_vecs: number of them that have pages which biogen has pinned
 * @work: asynchronous: completes @iocb in process context
 * @reg: in flight, asynchronous: the registration that the bio's pages are of,
 *	or NULL
 * @gathered: the same: the pages of several registrations, or NULL
 * @vecs: the segments
 */
struct biogen_io {
	struct bio bio;
	struct biogen_device *bg;
	struct cgroup_subsys_state *ready;
	struct biogen_io *next;
	void (*end)(struct biogen_io *io);
	union {
		struct biogen_request *req;
		struct kiocb *iocb;
		struct task_struct *waiter;
	};
	unsigned int bytes;
	unsigned short max_vecs;
	unsigned short nr_vecs;
	union {
		struct work_struct work;
		struct {
			struct biogen_reg *reg;
			struct biogen_gathered *gathered;
		};
	};
	struct bio_vec vecs[];
};

/**
 * struct biogen_idle - unused bios of a CPU
 * @io: one bio or NULL; taken by this_cpu_xchg(), returned by this_cpu_cmpxchg()
 * @spare: more bios, if more than one was in flight
 * @nr_spare: length of @spare
 *
 * @spare and @nr_spare: an entry is added by this_cpu_cmpxchg(), in any context
 * with preemption off, and removed in process context with interrupts off.
 */
struct biogen_idle {
	struct biogen_io *io;
	struct biogen_io *spare;
	unsigned int nr_spare;
};

void biogen_io_init(struct biogen_io *io, struct biogen_device *bg,
		    unsigned short max_vecs);
struct biogen_io *biogen_io_alloc(struct biogen_device *bg, bool large);
void biogen_io_free(struct biogen_io *io);
void biogen_io_enter_other(struct biogen_io *io,
			   struct cgroup_subsys_state *css);

void biogen_io_put_spare(struct biogen_device *bg, struct biogen_io *io);
void biogen_idle_destroy(struct biogen_device *bg);

void biogen_run_in_task(struct work_struct *work, work_func_t func);
void biogen_finish_work(void);

int biogen_ios_init(void);
void biogen_ios_exit(void);

/**
 * biogen_io_get() - get a small bio
 * @bg: the device
 *
 * Context: Process context, interrupts on.
 * Return: a bio without pages, or NULL.
 */
static __always_inline struct biogen_io *biogen_io_get(struct biogen_device *bg)
{
	struct biogen_io *io = this_cpu_xchg(bg->idle->io, NULL);
	struct biogen_idle *idle;

	if (likely(io))
		return io;
	local_irq_disable();
	idle = this_cpu_ptr(bg->idle);
	io = idle->spare;
	if (likely(io)) {
		idle->spare = io->next;
		idle->nr_spare--;
	}
	local_irq_enable();
	return likely(io) ? io : biogen_io_alloc(bg, false);
}

/**
 * biogen_io_put() - return a small bio
 * @bg: the device
 * @io: from biogen_io_get()
 */
static __always_inline void biogen_io_put(struct biogen_device *bg,
					  struct biogen_io *io)
{
	if (unlikely(this_cpu_cmpxchg(bg->idle->io, NULL, io)))
		biogen_io_put_spare(bg, io);
}

/**
 * biogen_io_keep() - keep a small bio that has ended for a later I/O of this CPU
 * @bg: the device
 * @io: from biogen_io_get(); has no cgroup
 *
 * Context: Any.
 * Return: false if the CPU has enough.
 */
static __always_inline bool biogen_io_keep(struct biogen_device *bg,
					   struct biogen_io *io)
{
	struct biogen_io *head;
	bool kept = true;

	preempt_disable();
	if (unlikely(!this_cpu_read(bg->idle->io)) &&
	    !this_cpu_cmpxchg(bg->idle->io, NULL, io))
		goto enable;
	if (likely(this_cpu_read(bg->idle->nr_spare) < BIOGEN_MAX_SPARE)) {
		do {
			head = this_cpu_read(bg->idle->spare);
			io->next = head;
		} while (this_cpu_cmpxchg(bg->idle->spare, head, io) != head);
		this_cpu_inc(bg->idle->nr_spare);
	} else {
		kept = false;
	}
enable:
	preempt_enable();
	return kept;
}

/**
 * biogen_io_leave_cgroup() - drop the cgroup that a bio is charged to
 * @io: not in flight
 */
static inline void biogen_io_leave_cgroup(struct biogen_io *io)
{
	io->ready = BIOGEN_NOT_READY;
	bio_uninit(&io->bio);
}

/**
 * biogen_io_error() - take the result of a bio that has ended
 * @io: ended
 *
 * bi_status is cleared when an error is consumed, so submission need not reset
 * it.
 *
 * Return: 0 or an error.
 */
static __always_inline int biogen_io_error(struct biogen_io *io)
{
	int err;

	if (likely(!io->bio.bi_status))
		return 0;
	err = blk_status_to_errno(io->bio.bi_status);
	io->bio.bi_status = BLK_STS_OK;
	return err;
}

#endif /* BIOGEN_IO_H */
