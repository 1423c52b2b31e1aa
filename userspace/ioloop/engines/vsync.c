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

static void vsync_cleanup(struct job *job)
{
	free(job->data);
}

static bool vsync_setup(struct job *job)
{
	const struct options *o = job->o;
	struct vsync *v = calloc(1, sizeof(*v));

	if (!v) {
		job_error(job, "calloc", 0, 0, -ENOMEM);
		return false;
	}
	job->data = v;
	v->iov.iov_base = job->buffers;
	v->iov.iov_len = o->bs;
	v->flags = (o->hipri ? RWF_HIPRI : 0) |
		   (o->nowait ? RWF_NOWAIT : 0) |
		   (o->dsync ? RWF_DSYNC : 0);
	return true;
}

static __always_inline
uint64_t vsync_loop(struct job *job, uint64_t nr, const bool random)
{
	struct vsync *const v = job->data;
	const long fd = job->fd;
	const long iov = (long)&v->iov;
	const long all = v->flags;
	const int *const stop = job->stop;
	const struct area a = job->area;
	struct cursor c = job->cursor;
	const long size = (long)job->o->bs;
	uint64_t left = nr;
	uint64_t position;
	long flags = all;
	long op, ret;

	do {
		position = cursor_next(&c, &a, random);
		op = c.write ? SYS_pwritev2 : SYS_preadv2;
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
