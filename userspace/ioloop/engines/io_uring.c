// SPDX-License-Identifier: GPL-2.0
/*
 * io_uring: a batch of --iodepth I/Os goes down in one io_uring_enter(), which
 * also waits for all of them.
 *
 * Each entry of the submission queue is filled once and keeps its buffer; an
 * I/O only sets its offset.
 */
#include <stdlib.h>
#include <string.h>

#include "ring.h"

static uint8_t opcode(const struct job *job, bool write)
{
	if (job->res->flags & FLAG_FIXEDBUFS)
		return write ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED;
	return write ? IORING_OP_WRITE : IORING_OP_READ;
}

/* Make a ring with the flags in job->res->flags, as ring_open() does. */
static long open_filled(struct job *job, struct ring *r, const char **failed)
{
	long ret = ring_open(job, r, false, failed);
	struct io_uring_sqe *sqe;
	uint32_t i;

	if (ret)
		return ret;
	memset(r->sqes, 0, r->sqes_size);
	for (i = 0; i < job->o->iodepth; i++) {
		sqe = &r->sqes[i];
		sqe->opcode = opcode(job, job->cursor.write);
		ring_fill_entry(job, sqe, i);
		sqe->addr = (uint64_t)(job->buffers + i * job->stride);
		sqe->len = (uint32_t)job->o->bs;
	}
	return 0;
}

/*
 * Do the first I/O and return its result. The run overwrites the same place
 * anyway.
 */
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

/* With --optional: turn off one flag after the other until the rest works. */
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
		ret = open_filled(job, r, failed);
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
		job->res->flags = ring_flags(job);
		ret = o->optional ? ring_negotiate(job, r, &failed) :
				    open_filled(job, r, &failed);
	}
	if (ret < 0)
		job_error(job, failed, 0, 0, ret);
	return !ret;
}

/* Report failed I/Os of a batch; returns how many there are. */
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
	int32_t bad;

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

		if (unlikely(!ring_do_batch(job, r, batch, kind)))
			break;
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
