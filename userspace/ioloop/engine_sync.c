// SPDX-License-Identifier: GPL-2.0
/*
 * sync: one pread() or pwrite() after another.
 */
#include <sys/syscall.h>

#include "engine.h"

static uint64_t sync_run(struct job *job, uint64_t nr)
{
	const long op = job->o->rw == RW_WRITE ? SYS_pwrite64 : SYS_pread64;
	const long fd = job->fd;
	const long buffer = (long)job->buffers;
	const long size = (long)job->o->bs;
	const uint64_t step = job->step;
	const uint64_t start = job->dev->start;
	const uint64_t end = job->dev->end;
	uint64_t position = job->position;
	const int *const stop = job->stop;
	uint64_t left = nr;
	long ret;

	do {
		ret = sys4(op, fd, buffer, size, (long)position);
		if (unlikely(ret != size)) {
			if (ret == -EINTR)
				continue;
			job_error(job, job_op(job), position, size, ret);
			break;
		}
		left--;
		position = next_position(position, step, start, end);
	} while (left && !stopped(stop));
	job->position = position;
	return nr - left;
}

const struct engine engine_sync = {
	.name = "sync",
	.flags = ENGINE_FILE,
	.iodepth = 1,
	.run = sync_run,
};
