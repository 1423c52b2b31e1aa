// SPDX-License-Identifier: GPL-2.0
/*
 * vsync: one preadv2() or pwritev2() after another, with the flags of --hipri,
 * --nowait, --dsync, --atomic and --uncached, and of one piece of memory or of
 * --segments.
 *
 * If an I/O with --nowait would have to wait, it is counted in "again" and
 * repeated without that flag, as a program would do that needs its data.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "../engine.h"

struct vsync {
	struct iovec iov;
	int flags;
	struct iovec segments[];
};

static void vsync_cleanup(struct job *job)
{
	free(job->data);
}

static bool vsync_setup(struct job *job)
{
	const struct options *o = job->o;
	const uint64_t segments = o->segments ? o->segments : 1;
	struct vsync *v = calloc(1, sizeof(*v) + segments * sizeof(v->iov));
	uint64_t i;

	if (!v) {
		job_error(job, "calloc", 0, 0, -ENOMEM);
		return false;
	}
	job->data = v;
	v->iov.iov_base = job->buffers;
	v->iov.iov_len = o->bs;
	for (i = 0; i < segments; i++) {
		v->segments[i].iov_base =
			job->buffers + i * job->stride / segments;
		v->segments[i].iov_len = o->bs / segments;
	}
	v->flags = engine_rw_flags(o);
	return true;
}

static __always_inline
uint64_t vsync_ios(struct job *job, uint64_t nr, const bool random,
		   const bool several)
{
	struct vsync *const v = job->data;
	const long fd = job->fd;
	const long iov = several ? (long)v->segments : (long)&v->iov;
	const long segments = several ? (long)job->o->segments : 1;
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
		ret = sys6(op, fd, iov, segments, (long)position, 0, flags);
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

static __always_inline
uint64_t vsync_loop(struct job *job, uint64_t nr, const bool random)
{
	return vsync_ios(job, nr, random, false);
}

static __always_inline
uint64_t vsync_segments_loop(struct job *job, uint64_t nr, const bool random)
{
	return vsync_ios(job, nr, random, true);
}

ENGINE_DEFINE_RUN(vsync_loop)
ENGINE_DEFINE_RUN(vsync_segments_loop)

const struct engine engine_vsync = {
	.name = "vsync",
	.flags = ENGINE_FILE,
	.max_iodepth = 1,
	.setup = vsync_setup,
	.run = ENGINE_RUN(vsync_loop),
	.cleanup = vsync_cleanup,
};

const struct engine engine_vsync_segments = {
	.name = "vsync",
	.flags = ENGINE_FILE,
	.max_iodepth = 1,
	.setup = vsync_setup,
	.run = ENGINE_RUN(vsync_segments_loop),
	.cleanup = vsync_cleanup,
};
