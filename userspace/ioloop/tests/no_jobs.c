// SPDX-License-Identifier: GPL-2.0
/* What the engines call in loop.c, for a program that runs none of them. */
#include <stdlib.h>

#include "../engine.h"

void job_error(struct job *job, const char *op, uint64_t offset, uint64_t size,
	       int64_t result)
{
	(void)job;
	(void)op;
	(void)offset;
	(void)size;
	(void)result;
	abort();
}

void job_io_error(struct job *job, bool write, uint64_t offset, uint64_t size,
		  int64_t result)
{
	(void)job;
	(void)write;
	(void)offset;
	(void)size;
	(void)result;
	abort();
}
