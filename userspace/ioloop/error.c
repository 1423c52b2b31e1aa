// SPDX-License-Identifier: GPL-2.0
/*
 * An error in one job ends all jobs.
 */
#include <stdio.h>

#include "error.h"
#include "job.h"

/**
 * job_error() - note that something failed, and stop all jobs
 * @job: the job
 * @op: what failed
 * @offset: where
 * @size: how many bytes it was about
 * @result: what the kernel returned: a negated errno, or too few bytes
 */
void job_error(struct job *job, const char *op, uint64_t offset, uint64_t size,
	       int64_t result)
{
	struct io_error *e = &job->res->first_error;

	__atomic_store_n(job->stop, 1, __ATOMIC_RELAXED);
	if (job->res->errors++)
		return;
	snprintf(e->op, sizeof(e->op), "%s", op);
	e->offset = offset;
	e->size = size;
	e->result = result < 0 ? -1 : result;
	e->errnum = result < 0 ? (int)-result : 0;
}

/**
 * job_io_error() - note that an I/O failed
 * @job: the job
 * @write: it was to write
 * @offset: where
 * @size: how many bytes
 * @result: what the kernel returned: a negated errno, or too few bytes
 */
void job_io_error(struct job *job, bool write, uint64_t offset, uint64_t size,
		  int64_t result)
{
	job_error(job, write ? "write" : "read", offset, size, result);
}
