// SPDX-License-Identifier: GPL-2.0
/*
 * --calibrate: a loop of a known number of instructions, to check a counter
 * of instructions. Between the markers lie CALIBRATE_INSTRUCTIONS for each
 * iteration and nothing else; between the two readings of the cycle counter
 * CALIBRATE_OVERHEAD more.
 */
#include "../engine.h"

static void calibrate_round(struct job *job, uint64_t nr, struct round *r)
{
	(void)job;
	r->tsc = calibrate(nr);
	r->ios = nr;
}

const struct engine engine_calibrate = {
	.name = "calibrate",
	.max_iodepth = 1,
	.round = calibrate_round,
};
