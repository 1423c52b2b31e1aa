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
	if (job->o->fixedbufs)
		return write ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED;
	return write ? IORING_OP_WRITE : IORING_OP_READ;
}

static void fill_entries(const struct job *job, const struct ring *r)
{
	struct io_uring_sqe *sqe;
	uint32_t i;

	memset(r->sqes, 0, r->sqes_size);
	for (i = 0; i < job->o->iodepth; i++) {
		sqe = &r->sqes[i];
		sqe->opcode = opcode(job, job->cursor.write);
		ring_fill_entry(job, r, sqe, i);
		sqe->addr = (uint64_t)(job->buffers + i * job->stride);
		sqe->len = (uint32_t)job->o->bs;
		sqe->rw_flags = engine_rw_flags(job->o) & ~RWF_HIPRI;
	}
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
	struct ring *r = calloc(1, sizeof(*r));
	const char *failed = "calloc";
	long ret = -ENOMEM;

	job->data = r;
	if (r) {
		r->fd = -1;
		ret = ring_open(job, r, false, &failed);
	}
	if (ret < 0)
		job_error(job, failed, 0, 0, ret);
	else
		fill_entries(job, r);
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
uint64_t io_uring_loop(struct job *job, uint64_t nr, const bool random)
{
	struct ring *const r = job->data;
	struct io_uring_sqe *const sqes = r->sqes;
	const struct io_uring_cqe *const cqes = r->cqes;
	const uint32_t cq_mask = r->cq_mask;
	const uint64_t depth = job->o->iodepth;
	const int *const stop = job->stop;
	const int32_t size = (int32_t)job->o->bs;
	const struct area a = job->area;
	struct cursor c = job->cursor;
	uint64_t left = nr;
	uint32_t batch, slot, i;
	int32_t bad;

	do {
		batch = (uint32_t)(left < depth ? left : depth);
		slot = *r->sq_tail;
		for (i = 0; i < batch; i++) {
			sqes[i].off = cursor_next(&c, &a, random);
			ring_put(r, slot + i, i);
		}

		if (unlikely(!ring_do_batch(job, r, batch)))
			break;
		slot = *r->cq_head;
		bad = 0;
		for (i = 0; i < batch; i++)
			bad |= cqes[(slot + i) & cq_mask].res ^ size;
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
