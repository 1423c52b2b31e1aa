// SPDX-License-Identifier: GPL-2.0
/*
 * libaio: a batch of --iodepth I/Os goes down in one io_submit(), and
 * io_getevents() waits for all of them.
 *
 * With --split an I/O is cut into pieces. They are submitted together, and each
 * is waited for separately, to see how long it took.
 *
 * With --userspace_reap, completions are taken from the ring that the kernel
 * shares with the program, without a system call.
 *
 * The system calls are made directly. The library of that name would add a
 * dependency, and its io_getevents() looks into the ring by itself and may
 * leave the system call out, which would change what is measured.
 */
#include <linux/aio_abi.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "../engine.h"

/* What the kernel maps at the context's address. */
struct ring {
	uint32_t id;
	uint32_t nr;
	uint32_t head;
	uint32_t tail;
	uint32_t magic;
	uint32_t compat_features;
	uint32_t incompat_features;
	uint32_t header_length;
	struct io_event events[];
};

#define RING_MAGIC	0xa10a10a1

struct libaio {
	struct ring *ring;
	aio_context_t ctx;
	struct iocb *iocbs;
	struct iocb **list;
	struct io_event *events;
};

static uint16_t opcode(bool write)
{
	return write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
}

static void libaio_cleanup(struct job *job)
{
	struct libaio *a = job->data;

	if (!a)
		return;
	if (a->ctx)
		sys1(SYS_io_destroy, (long)a->ctx);
	free(a->events);
	free(a->list);
	free(a->iocbs);
	free(a);
}

static bool libaio_setup(struct job *job)
{
	const uint64_t split = job->o->split;
	const uint64_t depth = split ? split : job->o->iodepth;
	const uint64_t stride = split ? job->o->bs / split : job->stride;
	struct libaio *a;
	uint64_t i;
	long ret;

	a = calloc(1, sizeof(*a));
	job->data = a;
	if (a) {
		a->iocbs = calloc(depth, sizeof(*a->iocbs));
		a->list = calloc(depth, sizeof(struct iocb *));
		a->events = calloc(depth, sizeof(*a->events));
	}
	if (!a || !a->iocbs || !a->list || !a->events) {
		job_error(job, "calloc", 0, 0, -ENOMEM);
		return false;
	}
	ret = sys2(SYS_io_setup, (long)depth, (long)&a->ctx);
	if (ret < 0) {
		job_error(job, "io_setup", 0, 0, ret);
		return false;
	}
	if (job->o->userspace_reap) {
		a->ring = (struct ring *)a->ctx;
		if (a->ring->magic != RING_MAGIC ||
		    a->ring->incompat_features ||
		    a->ring->header_length != sizeof(struct ring)) {
			job_error(job, "userspace_reap", 0, 0, -EOPNOTSUPP);
			return false;
		}
	}
	for (i = 0; i < depth; i++) {
		struct iocb *iocb = &a->iocbs[i];

		iocb->aio_lio_opcode = opcode(job->cursor.write);
		iocb->aio_fildes = (uint32_t)job->fd;
		iocb->aio_rw_flags = engine_rw_flags(job->o);
		iocb->aio_buf = (uint64_t)(job->buffers + i * stride);
		iocb->aio_nbytes = split ? stride : job->o->bs;
		a->list[i] = iocb;
	}
	return true;
}

/*
 * Continue if the first io_submit() took fewer than all, or none: ret is what
 * it returned. EAGAIN ends when the kernel has freed completed requests.
 * Returns how many were submitted in the end.
 */
static __attribute_noinline__
long libaio_submit_rest(struct job *job, long nr, long ret)
{
	struct libaio *a = job->data;
	long sent = 0;

	for (;;) {
		if (ret > 0)
			sent += ret;
		else if (ret == -EAGAIN && !stopped(job->stop))
			sched_yield();
		else if (ret != -EINTR)
			break;
		if (sent == nr)
			return sent;
		ret = sys3(SYS_io_submit, (long)a->ctx, nr - sent,
			   (long)(a->list + sent));
	}
	job_error(job, "io_submit", (uint64_t)a->iocbs[sent].aio_offset,
		  a->iocbs->aio_nbytes, ret);
	return sent;
}

static __always_inline long libaio_submit(struct job *job, struct libaio *a,
					  long nr)
{
	long ret = sys3(SYS_io_submit, (long)a->ctx, nr, (long)a->list);

	return likely(ret == nr) ? ret : libaio_submit_rest(job, nr, ret);
}

/* Take the events in the ring, without waiting; returns their number. */
static long libaio_reap_ring(struct libaio *a, long nr)
{
	struct ring *const ring = a->ring;
	const uint32_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
	uint32_t head = ring->head;
	long got = 0;

	while (got < nr && head != tail) {
		a->events[got++] = ring->events[head++];
		if (head == ring->nr)
			head = 0;
	}
	__atomic_store_n(&ring->head, head, __ATOMIC_RELEASE);
	return got;
}

/* Wait for the missing events: got is how many there are, or an errno. */
static __attribute_noinline__
long libaio_reap_rest(struct job *job, long nr, long got)
{
	struct libaio *a = job->data;
	long ret = got < 0 ? got : 0;

	got = got < 0 ? 0 : got;
	while (got < nr && (ret >= 0 || ret == -EINTR)) {
		ret = sys5(SYS_io_getevents, (long)a->ctx, nr - got, nr - got,
			   (long)(a->events + got), 0);
		if (ret > 0)
			got += ret;
	}
	if (got < nr)
		job_error(job, "io_getevents", 0, 0, ret);
	return got;
}

static __always_inline long libaio_reap(struct job *job, struct libaio *a,
					long nr)
{
	long got;

	if (a->ring)
		got = libaio_reap_ring(a, nr);
	else
		got = sys5(SYS_io_getevents, (long)a->ctx, nr, nr,
			   (long)a->events, 0);
	return likely(got == nr) ? got : libaio_reap_rest(job, nr, got);
}

/* An event with an unexpected result; size is the length of the request. */
static void libaio_bad_event(struct job *job, const struct io_event *event)
{
	const struct iocb *iocb = (const struct iocb *)event->obj;

	job_io_error(job, iocb->aio_lio_opcode == IOCB_CMD_PWRITE,
		     (uint64_t)iocb->aio_offset, iocb->aio_nbytes, event->res);
}

static __always_inline int64_t libaio_wanted(const struct io_event *event)
{
	return (int64_t)((const struct iocb *)event->obj)->aio_nbytes;
}

/* Report failed I/Os of a batch; returns how many there are. */
static __attribute_noinline__
uint64_t libaio_bad_events(struct job *job, long nr)
{
	const struct libaio *a = job->data;
	uint64_t bad = 0;
	long i;

	for (i = 0; i < nr; i++) {
		if (a->events[i].res == libaio_wanted(&a->events[i]))
			continue;
		libaio_bad_event(job, &a->events[i]);
		bad++;
	}
	return bad;
}

/* Wait for the pieces of one I/O; returns how many failed. */
static long libaio_reap_pieces(struct job *job, long nr, uint64_t before)
{
	struct libaio *a = job->data;
	long got = 0, bad = 0, ret;
	uint64_t ticks = 0;

	while (got < nr) {
		ret = sys5(SYS_io_getevents, (long)a->ctx, 1, nr - got,
			   (long)(a->events + got), 0);
		if (ret == -EINTR)
			continue;
		if (ret < 0) {
			job_error(job, "io_getevents", 0, 0, ret);
			return nr;
		}
		ticks = cycles() - before;
		for (; ret; ret--, got++) {
			latency_add(&job->res->pieces[got], ticks);
			if (likely(a->events[got].res ==
				   libaio_wanted(&a->events[got])))
				continue;
			libaio_bad_event(job, &a->events[got]);
			bad++;
		}
	}
	latency_add(job->res->latency, ticks);
	return bad;
}

static __always_inline
uint64_t libaio_split_loop(struct job *job, uint64_t nr, const bool random)
{
	struct libaio *a = job->data;
	const long pieces = (long)job->o->split;
	const int *const stop = job->stop;
	const struct area area = job->area;
	struct cursor c = job->cursor;
	uint64_t left = nr;
	uint64_t position, before;
	long sent, i;

	do {
		position = cursor_next(&c, &area, random);
		for (i = 0; i < pieces; i++) {
			a->iocbs[i].aio_offset = (int64_t)position;
			a->iocbs[i].aio_lio_opcode = opcode(c.write);
			position += a->iocbs[i].aio_nbytes;
		}
		before = cycles();
		sent = libaio_submit(job, a, pieces);
		if (unlikely(libaio_reap_pieces(job, sent, before)))
			break;
		if (likely(sent == pieces))
			left--;
	} while (left && !stopped(stop));
	cursor_save(job, &c);
	return nr - left;
}

static __always_inline
uint64_t libaio_loop(struct job *job, uint64_t nr, const bool random)
{
	struct libaio *a = job->data;
	struct iocb *const iocbs = a->iocbs;
	struct io_event *const events = a->events;
	const uint64_t depth = job->o->iodepth;
	const int *const stop = job->stop;
	const int64_t size = (int64_t)job->o->bs;
	const struct area area = job->area;
	struct cursor c = job->cursor;
	uint64_t left = nr;
	long batch, sent, got, i;
	int64_t bad;

	do {
		batch = (long)(left < depth ? left : depth);
		for (i = 0; i < batch; i++)
			iocbs[i].aio_offset =
				(int64_t)cursor_next(&c, &area, random);

		sent = libaio_submit(job, a, batch);
		got = libaio_reap(job, a, sent);
		bad = 0;
		for (i = 0; i < got; i++)
			bad |= events[i].res ^ size;
		left -= (uint64_t)got;
		if (unlikely(bad))
			left += libaio_bad_events(job, got);
	} while (left && !stopped(stop));
	cursor_save(job, &c);
	return nr - left;
}

ENGINE_DEFINE_RUN(libaio_loop)
ENGINE_DEFINE_RUN(libaio_split_loop)

const struct engine engine_libaio = {
	.name = "libaio",
	.flags = ENGINE_FILE,
	.max_iodepth = 65536,
	.setup = libaio_setup,
	.run = ENGINE_RUN(libaio_loop),
	.cleanup = libaio_cleanup,
};

const struct engine engine_libaio_split = {
	.name = "libaio",
	.flags = ENGINE_FILE,
	.max_iodepth = 1,
	.setup = libaio_setup,
	.run = ENGINE_RUN(libaio_split_loop),
	.cleanup = libaio_cleanup,
};
