/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ticks of the kernel's timer, seen without a system call.
 */
#ifndef IOLOOP_TICK_H
#define IOLOOP_TICK_H

#include <stdint.h>
#include <time.h>

#include "clock.h"

/* The time between two ticks, in ns. The coarse clock advances with them. */
static inline uint64_t tick_ns(void)
{
	struct timespec ts;

	clock_getres(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_nsec;
}

/* Wait for a tick: the time just before it. */
static inline uint64_t await_tick(void)
{
	struct timespec first, next;
	uint64_t before;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &first);
	do {
		before = now_ns();
		clock_gettime(CLOCK_MONOTONIC_COARSE, &next);
	} while (next.tv_sec == first.tv_sec && next.tv_nsec == first.tv_nsec);
	return before;
}

#endif /* IOLOOP_TICK_H */
