// SPDX-License-Identifier: GPL-2.0
/*
 * null: the loop alone. Its cost is ioloop's own share.
 */
#include "../engine.h"

static uint64_t null_run(struct job *job, uint64_t nr)
{
	const int *const stop = job->stop;
	uint64_t left = nr;

	do {
		asm volatile("" : : : "memory");
		left--;
	} while (left && !stopped(stop));
	return nr - left;
}

const struct engine engine_null = {
	.name = "null",
	.max_iodepth = 1,
	.run = { null_run },
};
