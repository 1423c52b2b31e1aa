// SPDX-License-Identifier: GPL-2.0
/*
 * io_uring: a batch of --iodepth I/Os goes down in one io_uring_enter(), which
 * also waits for all of them.
 *
 * The rings are used directly. Each entry of the submission queue is filled
 * once and keeps its buffer; an I/O sets its offset and no more. The indices
 * in the ring say which entries are meant.
 */
#include <linux/io_uring.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../engine.h"

/* With a kernel thread submitting: how often to look before going to sleep. */
#define SPINS	20000

struct ring {
	int fd;
	const int *stop;
	bool poll_thread;
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

static void ring_close(struct ring *r)
{
	if (r->sqes)
		munmap(r->sqes, r->sqes_size);
	if (r->cq_map)
		munmap(r->cq_map, r->cq_size);
	if (r->sq_map)
		munmap(r->sq_map, r->sq_size);
	if (r->fd >= 0)
		close(r->fd);
	memset(r, 0, sizeof(*r));
	r->fd = -1;
}

static void *ring_map(struct ring *r, size_t size, uint64_t offset)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_POPULATE, r->fd, (off_t)offset);

	return p == MAP_FAILED ? NULL : p;
}

static void *at(void *map, uint32_t offset)
{
	return (char *)map + offset;
}

static bool ring_map_all(struct ring *r, const struct io_uring_params *p)
{
	r->sq_size = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
	r->cq_size = p->cq_off.cqes +
		     p->cq_entries * sizeof(struct io_uring_cqe);
	r->sqes_size = p->sq_entries * sizeof(struct io_uring_sqe);
	r->sq_map = ring_map(r, r->sq_size, IORING_OFF_SQ_RING);
	r->cq_map = ring_map(r, r->cq_size, IORING_OFF_CQ_RING);
	r->sqes = ring_map(r, r->sqes_size, IORING_OFF_SQES);
	if (!r->sq_map || !r->cq_map || !r->sqes)
		return false;

	r->sq_tail = at(r->sq_map, p->sq_off.tail);
	r->sq_flags = at(r->sq_map, p->sq_off.flags);
	r->sq_array = at(r->sq_map, p->sq_off.array);
	r->sq_mask = p->sq_entries - 1;
	r->cq_head = at(r->cq_map, p->cq_off.head);
	r->cq_tail = at(r->cq_map, p->cq_off.tail);
	r->cq_mask = p->cq_entries - 1;
	r->cqes = at(r->cq_map, p->cq_off.cqes);
	return true;
}

static uint32_t setup_flags(unsigned int flags)
{
	return (flags & FLAG_HIPRI ? IORING_SETUP_IOPOLL : 0) |
	       (flags & FLAG_SQTHREAD_POLL ? IORING_SETUP_SQPOLL : 0) |
	       (flags & FLAG_SINGLE_ISSUER ? IORING_SETUP_SINGLE_ISSUER : 0) |
	       (flags & FLAG_DEFER_TASKRUN ? IORING_SETUP_DEFER_TASKRUN : 0);
}

static uint8_t opcode(const struct job *job, bool write)
{
	if (job->res->flags & FLAG_FIXEDBUFS)
		return write ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED;
	return write ? IORING_OP_WRITE : IORING_OP_READ;
}

/* Each buffer is registered on its own: the kernel limits them to 1 GiB. */
static long register_buffers(const struct job *job, const struct ring *r)
{
	struct iovec *iov;
	uint64_t i;
	long ret;

	iov = calloc(job->o->iodepth, sizeof(*iov));
	if (!iov)
		return -ENOMEM;
	for (i = 0; i < job->o->iodepth; i++) {
		iov[i].iov_base = job->buffers + i * job->stride;
		iov[i].iov_len = job->o->bs;
	}
	ret = sys4(SYS_io_uring_register, r->fd, IORING_REGISTER_BUFFERS,
		   (long)iov, (long)job->o->iodepth);
	free(iov);
	return ret;
}

static void fill_entries(const struct job *job, struct ring *r)
{
	struct io_uring_sqe *sqe;
	uint32_t i;

	memset(r->sqes, 0, r->sqes_size);
	for (i = 0; i < job->o->iodepth; i++) {
		sqe = &r->sqes[i];
		sqe->opcode = opcode(job, job->cursor.write);
		sqe->fd = job->fd;
		if (job->res->flags & FLAG_REGISTERFILES) {
			sqe->fd = 0;
			sqe->flags = IOSQE_FIXED_FILE;
		}
		sqe->addr = (uint64_t)(job->buffers + i * job->stride);
		sqe->len = (uint32_t)job->o->bs;
		if (job->res->flags & FLAG_FIXEDBUFS)
			sqe->buf_index = (uint16_t)i;
		sqe->user_data = i;
	}
}

/*
 * Make a ring with the flags in job->res->flags. Returns 0 or a negated errno,
 * and says in *failed which call that came from.
 */
static long ring_open(struct job *job, struct ring *r, const char **failed)
{
	struct io_uring_params p = {
		.flags = setup_flags(job->res->flags),
	};
	long ret;

	*failed = "io_uring_setup";
	ret = sys2(SYS_io_uring_setup, (long)job->o->iodepth, (long)&p);
	if (ret < 0)
		return ret;
	r->fd = (int)ret;
	r->stop = job->stop;
	r->poll_thread = job->res->flags & FLAG_SQTHREAD_POLL;
	*failed = "mmap";
	if (!ring_map_all(r, &p))
		return -errno;
	ret = 0;
	if (job->res->flags & FLAG_REGISTERFILES) {
		*failed = "IORING_REGISTER_FILES";
		ret = sys4(SYS_io_uring_register, r->fd, IORING_REGISTER_FILES,
			   (long)&job->fd, 1);
	}
	if (ret >= 0 && (job->res->flags & FLAG_FIXEDBUFS)) {
		*failed = "IORING_REGISTER_BUFFERS";
		ret = register_buffers(job, r);
	}
	fill_entries(job, r);
	return ret < 0 ? ret : 0;
}

static void ring_put(struct ring *r, uint32_t slot, uint32_t index)
{
	r->sq_array[slot & r->sq_mask] = index;
}

/* Have the kernel's thread see new entries, and give it some time. */
static unsigned int ring_wake_thread(struct ring *r, uint32_t until)
{
	unsigned int spins;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (*r->sq_flags & IORING_SQ_NEED_WAKEUP)
		return IORING_ENTER_SQ_WAKEUP;
	for (spins = 0; spins < SPINS; spins++) {
		if (__atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE) == until)
			break;
		cpu_pause();
	}
	return 0;
}

/* EAGAIN and EBUSY pass when the kernel has freed what is done. */
static bool ring_retry(const struct ring *r, long error)
{
	if ((error == -EAGAIN || error == -EBUSY) && !stopped(r->stop)) {
		sched_yield();
		return true;
	}
	return error == -EINTR;
}

/* Wait until all entries are taken and done; unsent are not taken yet. */
static __attribute_noinline__
long ring_wait_rest(struct ring *r, uint32_t nr, uint32_t unsent)
{
	const uint32_t until = *r->cq_head + nr;
	unsigned int flags = IORING_ENTER_GETEVENTS;
	long ret;

	if (r->poll_thread) {
		flags |= ring_wake_thread(r, until);
		unsent = 0;
	}
	while (__atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE) != until) {
		ret = sys6(SYS_io_uring_enter, r->fd, unsent, nr, flags, 0, 0);
		if (likely(ret >= 0 && ret <= unsent))
			unsent -= (uint32_t)ret;
		else if (ret < 0 && !ring_retry(r, ret))
			return ret;
	}
	return 0;
}

/* Tell the kernel of nr new entries, and wait until as many are done. */
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

/* The result of the first I/O. What it overwrites would be anyway. */
static long ring_try(struct job *job, struct ring *r)
{
	long ret;

	r->sqes[0].off = job->cursor.position;
	ring_put(r, *r->sq_tail, 0);
	ret = ring_submit_and_wait(r, 1);
	if (ret < 0)
		return ret;
	ret = r->cqes[*r->cq_head & r->cq_mask].res;
	__atomic_store_n(r->cq_head, *r->cq_head + 1, __ATOMIC_RELEASE);
	return ret;
}

/* With --optional: leave out one thing after the other until the rest works. */
static long ring_negotiate(struct job *job, struct ring *r, const char **failed)
{
	static const unsigned int order[] = {
		0, FLAG_DEFER_TASKRUN, FLAG_SINGLE_ISSUER, FLAG_HIPRI,
		FLAG_SQTHREAD_POLL, FLAG_FIXEDBUFS, FLAG_REGISTERFILES
	};
	long ret = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(order); i++) {
		if (order[i] && !(job->res->flags & order[i]))
			continue;
		job->res->flags &= ~order[i];
		ret = ring_open(job, r, failed);
		if (!ret)
			ret = ring_try(job, r);
		if (ret >= 0)
			return 0;
		ring_close(r);
	}
	return ret;
}

static void io_uring_cleanup(struct job *job)
{
	struct ring *r = job->data;

	if (r)
		ring_close(r);
	free(r);
}

static bool io_uring_setup(struct job *job)
{
	const struct options *o = job->o;
	struct ring *r = calloc(1, sizeof(*r));
	const char *failed = "calloc";
	long ret = -ENOMEM;

	job->data = r;
	if (r) {
		r->fd = -1;
		job->res->flags =
			(o->hipri && !job->dev->never_polls ?
			 FLAG_HIPRI : 0) |
			(o->fixedbufs ? FLAG_FIXEDBUFS : 0) |
			(o->registerfiles ? FLAG_REGISTERFILES : 0) |
			(o->sqthread_poll ? FLAG_SQTHREAD_POLL : 0) |
			(o->single_issuer ? FLAG_SINGLE_ISSUER : 0) |
			(o->defer_taskrun ? FLAG_DEFER_TASKRUN : 0);
		ret = o->optional ? ring_negotiate(job, r, &failed) :
				    ring_open(job, r, &failed);
	}
	if (ret < 0)
		job_error(job, failed, 0, 0, ret);
	return !ret;
}

/* Says what is wrong with a batch's events; returns how many are. */
static __attribute_noinline__
uint64_t ring_bad_events(struct job *job, uint32_t nr)
{
	const struct ring *r = job->data;
	const struct io_uring_cqe *cqe;
	const struct io_uring_sqe *sqe;
	uint64_t bad = 0;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		cqe = &r->cqes[(*r->cq_head + i) & r->cq_mask];
		sqe = &r->sqes[cqe->user_data];
		if (cqe->res == (int32_t)sqe->len)
			continue;
		job_io_error(job, sqe->opcode == opcode(job, true), sqe->off,
			     sqe->len, cqe->res);
		bad++;
	}
	return bad;
}

static __always_inline
uint64_t io_uring_loop(struct job *job, uint64_t nr, const unsigned int kind)
{
	struct ring *const r = job->data;
	struct io_uring_sqe *const sqes = r->sqes;
	const struct io_uring_cqe *const cqes = r->cqes;
	const uint32_t cq_mask = r->cq_mask;
	const uint64_t depth = job->o->iodepth;
	const int *const stop = job->stop;
	int32_t size = (int32_t)job->o->bs;
	const struct io_uring_cqe *cqe;
	const struct area a = job->area;
	struct cursor c = job->cursor;
	uint64_t left = nr;
	uint32_t batch, slot, i;
	uint64_t before = 0;
	int32_t bad;
	long ret;

	do {
		batch = (uint32_t)(left < depth ? left : depth);
		slot = *r->sq_tail;
		for (i = 0; i < batch; i++) {
			sqes[i].off = cursor_next(&c, &a, kind);
			if (kind & LOOP_MIXED)
				sqes[i].opcode = opcode(job, c.write);
			if (kind & LOOP_SIZED)
				sqes[i].len = (uint32_t)c.size;
			ring_put(r, slot + i, i);
		}

		if (kind & LOOP_TIMED)
			before = cycles();
		ret = ring_submit_and_wait(r, batch);
		if (unlikely(ret)) {
			job_error(job, "io_uring_enter", 0, 0, ret);
			break;
		}
		if (kind & LOOP_TIMED)
			latencies_add(job->res->latency, cycles() - before,
				      batch);
		slot = *r->cq_head;
		bad = 0;
		for (i = 0; i < batch; i++) {
			cqe = &cqes[(slot + i) & cq_mask];
			if (kind & LOOP_SIZED)
				size = (int32_t)sqes[cqe->user_data].len;
			bad |= cqe->res ^ size;
			if ((kind & LOOP_SIZED) && cqe->res == size)
				c.bytes += (uint64_t)size;
		}
		left -= batch;
		if (unlikely(bad))
			left += ring_bad_events(job, batch);
		__atomic_store_n(r->cq_head, slot + batch, __ATOMIC_RELEASE);
	} while (left && !stopped(stop));
	cursor_save(job, &c);
	return nr - left;
}

ENGINE_DEFINE_RUN(io_uring_loop)

const struct engine engine_io_uring = {
	.name = "io_uring",
	.flags = ENGINE_FILE,
	.max_iodepth = 32768,
	.setup = io_uring_setup,
	.run = ENGINE_RUN(io_uring_loop),
	.cleanup = io_uring_cleanup,
};
