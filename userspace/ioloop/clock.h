/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The clock that rounds are timed by.
 */
#ifndef IOLOOP_CLOCK_H
#define IOLOOP_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static inline struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / 1000000000),
		.tv_nsec = (long)(ns % 1000000000),
	};
}

#endif /* IOLOOP_CLOCK_H */
