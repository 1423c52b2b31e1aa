// SPDX-License-Identifier: GPL-2.0
/*
 * vsync: one preadv2() or pwritev2() after another, with the flags of --hipri,
 * --nowait and --dsync.
 *
 * If an I/O with --nowait would have to wait, it is counted in "again" and
 * repeated without that flag, as a program would do that needs its data.
 */
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "../engine.h"

struct vsync {
	struct iovec iov;
	int flags;
};

static int vsync_flags(unsigned int flags)
{
	return (flags & FLAG_HIPRI ? RWF_HIPRI : 0) |
	       (flags & FLAG_NOWAIT ? RWF_NOWAIT : 0) |
	       (flags & FLAG_DSYNC ? RWF_DSYNC : 0);
}

/*
 * With --optional, turn off flags that the kernel does not support. The first
 * I/O shows them. It is done here; the run overwrites the same place anyway.
 */
static void vsync_negotiate(struct job *job, struct vsync *v)
{
	static const unsigned int order[] = {
		FLAG_HIPRI, FLAG_NOWAIT, FLAG_DSYNC
	};
	const long op = job->cursor.write ? SYS_pwritev2 : SYS_preadv2;
	size_t i = 0;

	while (sys6(op, job->fd, (long)&v->iov, 1, (long)job->cursor.position,
		    0, v->flags) == -EOPNOTSUPP && i < ARRAY_SIZE(order)) {
		job->res->flags &= ~order[i++];
		v->flags = vsync_flags(job->res->flags);
	}
}

static void vsync_cleanup(struct job *job)
{
	free(job->data);
}

static bool vsync_setup(struct job *job)
{
	struct vsync *v = calloc(1, sizeof(*v));

	if (!v) {
		job_error(job, "calloc", 0, 0, -ENOMEM);
		return false;
	}
	job->data = v;
	v->iov.iov_base = job->buffers;
	v->iov.iov_len = job->o->bs;
	job->res->flags = (job->o->hipri && !job->dev->never_polls ?
			   FLAG_HIPRI : 0) |
			  (job->o->nowait ? FLAG_NOWAIT : 0) |
			  (job->o->dsync ? FLAG_DSYNC : 0);
	v->flags = vsync_flags(job->res->flags);
	if (job->o->optional)
		vsync_negotiate(job, v);
	return true;
}

static __always_inline
uint64_t vsync_loop(struct job *job, uint64_t nr, const unsigned int kind)
{
	struct vsync *const v = job->data;
	const long fd = job->fd;
	const long iov = (long)&v->iov;
	const long all = v->flags;
	const int *const stop = job->stop;
	const struct area a = job->area;
	struct cursor c = job->cursor;
	long size = (long)job->o->bs;
	uint64_t left = nr;
	uint64_t before = 0;
	uint64_t position;
	long flags = all;
	long op, ret;

	do {
		position = cursor_next(&c, &a, kind);
		if (kind & LOOP_SIZED) {
			size = (long)c.size;
			v->iov.iov_len = c.size;
		}
		op = c.write ? SYS_pwritev2 : SYS_preadv2;
		if (kind & LOOP_TIMED)
			before = cycles();
again:
		ret = sys6(op, fd, iov, 1, (long)position, 0, flags);
		if (unlikely(ret != size)) {
			if (ret == -EINTR)
				goto again;
			if (ret == -EAGAIN && (flags & RWF_NOWAIT)) {
				job->res->again++;
				flags &= ~(long)RWF_NOWAIT;
				goto again;
			}
			job_io_error(job, op == SYS_pwritev2, position,
				     (uint64_t)size, ret);
			break;
		}
		flags = all;
		if (kind & LOOP_TIMED)
			latency_add(job->res->latency, cycles() - before);
		if (kind & LOOP_SIZED)
			c.bytes += c.size;
		left--;
	} while (left && !stopped(stop));
	cursor_save(job, &c);
	return nr - left;
}

ENGINE_DEFINE_RUN(vsync_loop)

const struct engine engine_vsync = {
	.name = "vsync",
	.flags = ENGINE_FILE,
	.max_iodepth = 1,
	.setup = vsync_setup,
	.run = ENGINE_RUN(vsync_loop),
	.cleanup = vsync_cleanup,
};
