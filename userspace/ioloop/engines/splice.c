// SPDX-License-Identifier: GPL-2.0
/*
 * splice: from the device into a pipe, and from there to /dev/null. The bytes
 * reach the kernel's memory but are never copied to the user.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../engine.h"

struct splice {
	int in;
	int out;
	int null;
};

static void splice_cleanup(struct job *job)
{
	struct splice *s = job->data;

	if (!s)
		return;
	if (s->in >= 0) {
		close(s->in);
		close(s->out);
	}
	if (s->null >= 0)
		close(s->null);
	free(s);
}

static bool splice_setup(struct job *job)
{
	struct splice *s = malloc(sizeof(*s));
	int pipe_fds[2] = { -1, -1 };

	if (!s) {
		job_error(job, "malloc", 0, 0, -ENOMEM);
		return false;
	}
	job->data = s;
	s->null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (s->null < 0)
		job_error(job, "open /dev/null", 0, 0, -errno);
	if (pipe2(pipe_fds, O_CLOEXEC))
		job_error(job, "pipe2", 0, 0, -errno);
	s->out = pipe_fds[0];
	s->in = pipe_fds[1];
	if (s->in >= 0 && fcntl(s->in, F_SETPIPE_SZ, (int)job->o->bs) < 0)
		job_error(job, "F_SETPIPE_SZ", 0, job->o->bs, -errno);
	return !job->res->errors;
}

/* All that is in the pipe goes to /dev/null. Returns 0, or a negated errno. */
static __always_inline long splice_discard(const struct splice *s, long nr)
{
	long ret;

	do {
		ret = sys6(SYS_splice, s->out, 0, s->null, 0, nr, 0);
		if (likely(ret > 0))
			nr -= ret;
		else if (ret != -EINTR)
			return ret ? ret : -EIO;
	} while (unlikely(nr));
	return 0;
}

/* The pipe may take a block in several pieces; fewer bytes are an error. */
static __always_inline
uint64_t splice_loop(struct job *job, uint64_t nr, const bool random)
{
	const struct splice *s = job->data;
	const int *const stop = job->stop;
	const struct area a = job->area;
	struct cursor c = job->cursor;
	const long size = (long)job->o->bs;
	uint64_t left = nr;
	uint64_t position;
	long done, ret;
	loff_t offset;

	do {
		position = cursor_next(&c, &a, random);
		offset = (loff_t)position;
		done = 0;
		do {
			ret = sys6(SYS_splice, job->fd, (long)&offset, s->in,
				   0, size - done, 0);
			if (likely(ret > 0)) {
				done += ret;
				ret = splice_discard(s, ret);
			} else if (!ret) {
				break;
			}
		} while (unlikely(done < size && (!ret || ret == -EINTR)));
		if (unlikely(ret < 0 || done < size)) {
			job_io_error(job, false, position, (uint64_t)size,
				     ret < 0 ? ret : done);
			break;
		}
		left--;
	} while (left && !stopped(stop));
	cursor_save(job, &c);
	return nr - left;
}

ENGINE_DEFINE_RUN(splice_loop)

const struct engine engine_splice = {
	.name = "splice",
	.flags = ENGINE_FILE | ENGINE_WARM | ENGINE_READS,
	.max_iodepth = 1,
	.setup = splice_setup,
	.run = ENGINE_RUN(splice_loop),
	.cleanup = splice_cleanup,
};
