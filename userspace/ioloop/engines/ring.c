// SPDX-License-Identifier: GPL-2.0
/*
 * Making a ring of io_uring, and waiting for it.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ring.h"

/*
 * With a kernel thread submitting: how often to look before going to sleep. On
 * the only processor, the thread would not run meanwhile.
 */
#define SPINS	20000

/**
 * ring_close() - unmap and close a ring, as far as it was made
 * @r: the ring
 */
void ring_close(struct ring *r)
{
	if (r->sqes)
		munmap(r->sqes, r->sqes_size);
	if (r->cq_map)
		munmap(r->cq_map, r->cq_size);
	if (r->sq_map)
		munmap(r->sq_map, r->sq_size);
	if (r->fd >= 0)
		close(r->fd);
	if (r->second > 0)
		close(r->second);
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
		     (p->cq_entries * sizeof(struct io_uring_cqe) << r->wide);
	r->sqes_size = p->sq_entries * sizeof(struct io_uring_sqe) << r->wide;
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

static uint32_t setup_flags(const struct options *o, bool wide)
{
	return (wide ? IORING_SETUP_SQE128 | IORING_SETUP_CQE32 : 0) |
	       (o->hipri ? IORING_SETUP_IOPOLL : 0) |
	       (o->sqthread_poll ? IORING_SETUP_SQPOLL : 0) |
	       (o->single_issuer ? IORING_SETUP_SINGLE_ISSUER : 0) |
	       (o->defer_taskrun ? IORING_SETUP_DEFER_TASKRUN : 0);
}

/* Each buffer is registered on its own: the kernel limits them to 1 GiB. */
static long register_buffers(const struct job *job, const struct ring *r)
{
	const uint64_t number = job->o->onebuf ? 1 : job->o->iodepth;
	struct iovec *iov;
	uint64_t i;
	long ret;

	iov = calloc(number, sizeof(*iov));
	if (!iov)
		return -ENOMEM;
	for (i = 0; i < number; i++) {
		iov[i].iov_base = job->buffers + i * job->stride;
		iov[i].iov_len = job->o->bs;
	}
	if (job->o->onebuf)
		iov[0].iov_len = job->o->iodepth * job->stride -
				 job->o->mem_offset;
	ret = sys4(SYS_io_uring_register, r->fd, IORING_REGISTER_BUFFERS,
		   (long)iov, (long)number);
	free(iov);
	return ret;
}

/**
 * ring_open() - make a ring
 * @job: the job
 * @r: the ring
 * @wide: whether its entries have twice the usual size
 * @failed: gets the call that an error came from
 *
 * Return: 0 or a negated errno.
 */
long ring_open(struct job *job, struct ring *r, bool wide, const char **failed)
{
	struct io_uring_params p = {
		.flags = setup_flags(job->o, wide),
	};
	long ret;

	*failed = "io_uring_setup";
	ret = sys2(SYS_io_uring_setup, (long)job->o->iodepth, (long)&p);
	if (ret < 0)
		return ret;
	r->fd = (int)ret;
	r->stop = job->stop;
	r->wide = wide;
	r->alone = sysconf(_SC_NPROCESSORS_ONLN) == 1;
	r->poll_thread = job->o->sqthread_poll;
	if (job->o->one_ring) {
		*failed = "open";
		r->second = open(job->dev[1].name, O_CLOEXEC |
				 (job->o->direct ? O_DIRECT : 0) |
				 (job->cursor.write ? O_RDWR : O_RDONLY));
		if (r->second < 0)
			return -errno;
	}
	*failed = "mmap";
	if (!ring_map_all(r, &p))
		return -errno;
	ret = 0;
	if (job->o->registerfiles) {
		*failed = "IORING_REGISTER_FILES";
		ret = sys4(SYS_io_uring_register, r->fd, IORING_REGISTER_FILES,
			   (long)&job->fd, 1);
	}
	if (ret >= 0 && job->o->fixedbufs) {
		*failed = "IORING_REGISTER_BUFFERS";
		ret = register_buffers(job, r);
	}
	return ret < 0 ? ret : 0;
}

/**
 * ring_fill_entry() - fill in what entries of all kinds have
 * @job: the job
 * @r: the ring
 * @sqe: the entry, which is zero
 * @index: its number, and that of its registered buffer if each has its own
 */
void ring_fill_entry(const struct job *job, const struct ring *r,
		     struct io_uring_sqe *sqe, uint32_t index)
{
	sqe->fd = index % 2 && r->second > 0 ? r->second : job->fd;
	if (job->o->registerfiles) {
		sqe->fd = 0;
		sqe->flags = IOSQE_FIXED_FILE;
	}
	/*
	 * The last one of a batch ends the chain. One that is still open when
	 * all are submitted is left to io-wq.
	 */
	if (job->o->link && (index + 1) % job->o->iodepth)
		sqe->flags |= IOSQE_IO_LINK;
	if (job->o->fixedbufs && !job->o->onebuf)
		sqe->buf_index = (uint16_t)index;
	sqe->user_data = index;
}

/* Show the kernel's thread new entries, and give it some time. */
static unsigned int ring_wake_thread(struct ring *r, uint32_t until)
{
	unsigned int spins;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (*r->sq_flags & IORING_SQ_NEED_WAKEUP)
		return IORING_ENTER_SQ_WAKEUP;
	for (spins = r->alone ? SPINS : 0; spins < SPINS; spins++) {
		if (__atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE) == until)
			break;
		cpu_pause();
	}
	return 0;
}

/**
 * ring_wait_rest() - wait until all entries are taken and done
 * @r: the ring
 * @nr: how many
 * @unsent: how many are not taken yet
 *
 * A kernel that polls may return with a part of the events. It polls for the
 * rest only if these are consumed, so the head moves behind them meanwhile. The
 * queue has more than @nr entries, so the kernel does not write over them.
 *
 * Return: 0 or a negated errno.
 */
__attribute_noinline__
long ring_wait_rest(struct ring *r, uint32_t nr, uint32_t unsent)
{
	const uint32_t head = *r->cq_head, until = head + nr;
	unsigned int flags = IORING_ENTER_GETEVENTS;
	uint32_t tail;
	long ret = 0;

	if (r->poll_thread) {
		flags |= ring_wake_thread(r, until);
		unsent = 0;
	}
	for (;;) {
		tail = __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE);
		if (tail == until) {
			ret = 0;
			break;
		}
		__atomic_store_n(r->cq_head, tail, __ATOMIC_RELEASE);
		ret = sys6(SYS_io_uring_enter, r->fd, unsent, until - tail,
			   flags, 0, 0);
		if (likely(ret >= 0 && ret <= unsent))
			unsent -= (uint32_t)ret;
		else if (ret < 0 && !ring_retry(r, ret))
			break;
	}
	__atomic_store_n(r->cq_head, head, __ATOMIC_RELEASE);
	return ret;
}
