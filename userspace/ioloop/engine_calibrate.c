// SPDX-License-Identifier: GPL-2.0
/*
 * --calibrate: a loop of a known number of instructions, to check a counter
 * of instructions. Between the markers lie CALIBRATE_INSTRUCTIONS for each
 * iteration and nothing else; between the two readings of the cycle counter
 * CALIBRATE_OVERHEAD more: the two moves that save the first reading, the two
 * markers, and one of the two rdtsc.
 */
#include "engine.h"
#include "../../kernel/include/iopath/marker.h"

#define NOPL(op)	".byte 0x0f, 0x1f, 0x84, 0x00\n\t.long %c[" op "]\n\t"

static void calibrate_round(struct job *job, uint64_t nr, struct round *r)
{
	uint64_t left = nr;
	uint32_t lo0, hi0, lo1, hi1;

	(void)job;
	asm volatile("rdtsc\n\t"
		     "movl %%eax, %[lo0]\n\t"
		     "movl %%edx, %[hi0]\n\t"
		     NOPL("begin")
		     "1:\n\t"
		     ".rept %c[nops]\n\t"
		     "nop\n\t"
		     ".endr\n\t"
		     "decq %[left]\n\t"
		     "jnz 1b\n\t"
		     NOPL("end")
		     "rdtsc"
		     : [lo0] "=&r" (lo0), [hi0] "=&r" (hi0),
		       "=&a" (lo1), "=&d" (hi1), [left] "+&r" (left)
		     : [begin] "i" (IOPATH_MARK_MAGIC | IOPATH_MARK_BEGIN),
		       [end] "i" (IOPATH_MARK_MAGIC | IOPATH_MARK_END),
		       [nops] "i" (CALIBRATE_INSTRUCTIONS - 2)
		     : "cc", "memory");
	r->tsc = ((uint64_t)hi1 << 32 | lo1) - ((uint64_t)hi0 << 32 | lo0);
	r->ios = nr;
}

const struct engine engine_calibrate = {
	.name = "calibrate",
	.max_iodepth = 1,
	.round = calibrate_round,
};
