/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rings of io_uring, used directly.
 *
 * Each entry of the submission queue is filled once and keeps its buffer. The
 * indices in the ring say which entries are meant.
 */
#ifndef IOLOOP_RING_H
#define IOLOOP_RING_H

#include <linux/io_uring.h>
#include <sched.h>
#include <sys/syscall.h>

#include "../engine.h"

/**
 * struct ring - a ring, mapped
 * @fd:		its file
 * @second:	the second file of --filename, with --one_ring; 0: none
 * @stop:	see struct job
 * @poll_thread: a thread of the kernel submits
 * @alone:	there is one processor
 * @wide:	entries have twice the usual size: their index is shifted by this
 */
struct ring {
	int fd;
	int second;
	const int *stop;
	bool poll_thread;
	bool alone;
	unsigned int wide;
	void *sq_map;
	size_t sq_size;
	void *cq_map;
	size_t cq_size;
	struct io_uring_sqe *sqes;
	size_t sqes_size;

	uint32_t *sq_tail;
	uint32_t *sq_flags;
	uint32_t *sq_array;
	uint32_t sq_mask;
	uint32_t *cq_head;
	uint32_t *cq_tail;
	uint32_t cq_mask;
	struct io_uring_cqe *cqes;
};

long ring_open(struct job *job, struct ring *r, bool wide, const char **failed);
void ring_close(struct ring *r);
void ring_fill_entry(const struct job *job, const struct ring *r,
		     struct io_uring_sqe *sqe, uint32_t index);
long ring_wait_rest(struct ring *r, uint32_t nr, uint32_t unsent);

/* EAGAIN and EBUSY end when the kernel has freed completed requests. */
static inline bool ring_retry(const struct ring *r, long error)
{
	if ((error == -EAGAIN || error == -EBUSY) && !stopped(r->stop)) {
		sched_yield();
		return true;
	}
	return error == -EINTR;
}

static inline void ring_put(struct ring *r, uint32_t slot, uint32_t index)
{
	r->sq_array[slot & r->sq_mask] = index;
}

/* Submit nr new entries, and wait until as many have completed. */
static __always_inline long ring_submit_and_wait(struct ring *r, uint32_t nr)
{
	long ret;

	__atomic_store_n(r->sq_tail, *r->sq_tail + nr, __ATOMIC_RELEASE);
	if (unlikely(r->poll_thread))
		return ring_wait_rest(r, nr, nr);
	ret = sys6(SYS_io_uring_enter, r->fd, nr, nr, IORING_ENTER_GETEVENTS,
		   0, 0);
	if (likely(ret == nr &&
		   __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE) ==
		   *r->cq_head + nr))
		return 0;
	if (ret < 0 && !ring_retry(r, ret))
		return ret;
	return ring_wait_rest(r, nr, nr - (ret < 0 ? 0 : (uint32_t)ret));
}

/* Do a batch of entries. Returns false after job_error(). */
static __always_inline
bool ring_do_batch(struct job *job, struct ring *r, uint32_t batch)
{
	const long ret = ring_submit_and_wait(r, batch);

	if (unlikely(ret)) {
		job_error(job, "io_uring_enter", 0, 0, ret);
		return false;
	}
	return true;
}

#endif /* IOLOOP_RING_H */
