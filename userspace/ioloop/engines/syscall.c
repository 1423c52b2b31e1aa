// SPDX-License-Identifier: GPL-2.0
/*
 * syscall: an empty system call. getppid() looks one pointer up and returns.
 */
#include <sys/syscall.h>

#include "../engine.h"

static uint64_t syscall_run(struct job *job, uint64_t nr)
{
	const int *const stop = job->stop;
	uint64_t left = nr;

	do {
		sys0(SYS_getppid);
		left--;
	} while (left && !stopped(stop));
	return nr - left;
}

const struct engine engine_syscall = {
	.name = "syscall",
	.max_iodepth = 1,
	.run = { syscall_run },
};
