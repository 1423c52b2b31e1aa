// SPDX-License-Identifier: GPL-2.0
/*
 * streams: one pread() or pwrite() after another, in --streams parts of a file
 * by turns, each from its begin on. After each --fsync writes there is an
 * fsync(). With --append the file is empty before each round, so that its only
 * stream makes it grow.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "../engine.h"

static void streams_before_round(struct job *job)
{
	if (!job->o->append)
		return;
	job->cursor.spare = 0;
	if (ftruncate(job->fd, (off_t)job->area.start) || fsync(job->fd))
		job_error(job, "ftruncate", 0, 0, -errno);
}

static uint64_t streams_run(struct job *job, uint64_t nr)
{
	const uint64_t streams = job->o->streams, every = job->o->fsync;
	const uint64_t blocks = job->area.blocks / streams;
	const long op = job->cursor.write ? SYS_pwrite64 : SYS_pread64;
	const long size = (long)job->o->bs;
	uint64_t *const at = &job->cursor.spare;
	uint64_t left = nr, position;
	long ret;

	while (left && !stopped(job->stop)) {
		position = *at % streams * blocks + *at / streams % blocks;
		position = job->area.start + position * job->area.bs;
		ret = sys4(op, job->fd, (long)job->buffers, size,
			   (long)position);
		if (ret == -EINTR)
			continue;
		if (unlikely(ret != size)) {
			job_io_error(job, job->cursor.write, position,
				     (uint64_t)size, ret);
			break;
		}
		++*at;
		if (every && !(*at % every)) {
			ret = sys1(SYS_fsync, job->fd);
			if (unlikely(ret)) {
				job_error(job, "fsync", 0, 0, ret);
				break;
			}
		}
		left--;
	}
	return nr - left;
}

static void streams_cleanup(struct job *job)
{
	if (job->o->append && ftruncate(job->fd, (off_t)job->area.end))
		job_error(job, "ftruncate", 0, 0, -errno);
}

const struct engine engine_streams = {
	.name = "streams",
	.flags = ENGINE_FILE,
	.max_iodepth = 1,
	.before_round = streams_before_round,
	.run = { streams_run, streams_run },
	.cleanup = streams_cleanup,
};
