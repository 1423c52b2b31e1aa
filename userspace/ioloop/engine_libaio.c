// SPDX-License-Identifier: GPL-2.0
/*
 * libaio: a batch of --iodepth I/Os goes down in one io_submit(), and
 * io_getevents() waits for all of them.
 *
 * The system calls are made directly. The library of that name would add a
 * dependency, and its io_getevents() looks into the ring by itself and may
 * leave the system call out, which would change what is measured.
 */
#include <linux/aio_abi.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "engine.h"

struct libaio {
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
	const uint64_t depth = job->o->iodepth;
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
	for (i = 0; i < depth; i++) {
		struct iocb *iocb = &a->iocbs[i];

		iocb->aio_lio_opcode = opcode(job->cursor.write);
		iocb->aio_fildes = (uint32_t)job->fd;
		iocb->aio_buf = (uint64_t)(job->buffers + i * job->stride);
		iocb->aio_nbytes = job->o->bs;
		a->list[i] = iocb;
	}
	return true;
}

/* Returns how many of the batch went down; *err says why not all of them. */
static long libaio_submit(struct libaio *a, long nr, long *err)
{
	long sent = 0, ret;

	do {
		ret = sys3(SYS_io_submit, (long)a->ctx, nr - sent,
			   (long)(a->list + sent));
		if (likely(ret > 0)) {
			sent += ret;
		} else if (ret != -EINTR) {
			*err = ret;
			break;
		}
	} while (unlikely(sent < nr));
	return sent;
}

static long libaio_reap(struct libaio *a, long nr)
{
	long got = 0, ret;

	while (got < nr) {
		ret = sys5(SYS_io_getevents, (long)a->ctx, nr - got, nr - got,
			   (long)(a->events + got), 0);
		if (likely(ret >= 0))
			got += ret;
		else if (ret != -EINTR)
			return ret;
	}
	return got;
}

static __always_inline
uint64_t libaio_loop(struct job *job, uint64_t nr, const unsigned int order)
{
	struct libaio *a = job->data;
	struct iocb *const iocbs = a->iocbs;
	struct io_event *const events = a->events;
	const uint64_t depth = job->o->iodepth;
	const int64_t size = (int64_t)job->o->bs;
	const int *const stop = job->stop;
	struct cursor c = job->cursor;
	uint64_t left = nr;
	long batch, sent, got, i;
	long err = 0;

	do {
		batch = (long)(left < depth ? left : depth);
		for (i = 0; i < batch; i++) {
			iocbs[i].aio_offset = (int64_t)cursor_next(&c, order);
			if (order & ORDER_MIXED)
				iocbs[i].aio_lio_opcode = opcode(c.write);
		}

		sent = libaio_submit(a, batch, &err);
		if (unlikely(sent != batch))
			job_error(job, "io_submit",
				  (uint64_t)iocbs[sent].aio_offset,
				  job->o->bs, err);
		got = libaio_reap(a, sent);
		if (unlikely(got < 0)) {
			job_error(job, "io_getevents", 0, 0, got);
			break;
		}
		for (i = 0; i < got; i++) {
			const struct iocb *iocb;

			if (likely(events[i].res == size))
				continue;
			iocb = (const struct iocb *)events[i].obj;
			job_io_error(job, iocb->aio_lio_opcode ==
				     IOCB_CMD_PWRITE,
				     (uint64_t)iocb->aio_offset, events[i].res);
			left++;
		}
		left -= (uint64_t)got;
	} while (left && !stopped(stop));
	cursor_save(job, &c);
	return nr - left;
}

ENGINE_DEFINE_RUN(libaio_loop)

const struct engine engine_libaio = {
	.name = "libaio",
	.flags = ENGINE_FILE | ENGINE_BATCH,
	.iodepth = 100,
	.setup = libaio_setup,
	.run = ENGINE_RUN(libaio_loop),
	.cleanup = libaio_cleanup,
};
