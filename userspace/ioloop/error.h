/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Errors in a job.
 */
#ifndef IOLOOP_ERROR_H
#define IOLOOP_ERROR_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

struct job;

void job_error(struct job *job, const char *op, uint64_t offset, uint64_t size,
	       int64_t result);
void job_io_error(struct job *job, bool write, uint64_t offset, uint64_t size,
		  int64_t result);

#endif /* IOLOOP_ERROR_H */
