// SPDX-License-Identifier: GPL-2.0
/*
 * sync: one pread() or pwrite() after another.
 * buffered: the same through the page cache, which the warm-up fills, or which
 * --invalidate empties before each round.
 */
#include <sys/syscall.h>

#include "../engine.h"

static __always_inline
uint64_t sync_loop(struct job *job, uint64_t nr, const bool random)
{
	const long fd = job->fd;
	const long buffer = (long)job->buffers;
	const int *const stop = job->stop;
	const struct area a = job->area;
	struct cursor c = job->cursor;
	const long size = (long)job->o->bs;
	uint64_t left = nr;
	uint64_t position;
	long op, ret;

	do {
		position = cursor_next(&c, &a, random);
		op = c.write ? SYS_pwrite64 : SYS_pread64;
again:
		ret = sys4(op, fd, buffer, size, (long)position);
		if (unlikely(ret != size)) {
			if (ret == -EINTR)
				goto again;
			job_io_error(job, op == SYS_pwrite64, position,
				     (uint64_t)size, ret);
			break;
		}
		left--;
	} while (left && !stopped(stop));
	cursor_save(job, &c);
	return nr - left;
}

ENGINE_DEFINE_RUN(sync_loop)

const struct engine engine_sync = {
	.name = "sync",
	.flags = ENGINE_FILE,
	.max_iodepth = 1,
	.run = ENGINE_RUN(sync_loop),
};

const struct engine engine_buffered = {
	.name = "buffered",
	.flags = ENGINE_FILE | ENGINE_CACHED,
	.max_iodepth = 1,
	.run = ENGINE_RUN(sync_loop),
};
