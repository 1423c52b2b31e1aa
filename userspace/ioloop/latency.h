/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long I/Os took, in a histogram.
 */
#ifndef IOLOOP_LATENCY_H
#define IOLOOP_LATENCY_H

#include <stdint.h>

#include <sys/cdefs.h>

/* Sixteen buckets for each power of two: a latency is known to 6 percent. */
#define LATENCY_BITS	4
#define LATENCY_BUCKETS	((65 - LATENCY_BITS) << LATENCY_BITS)

/**
 * struct latency - how long I/Os took, in ticks of the cycle counter
 * @max: the longest
 * @sum: all together
 * @buckets: how many there were, by duration
 */
struct latency {
	uint64_t max;
	uint64_t sum;
	uint64_t buckets[LATENCY_BUCKETS];
};

/**
 * latency_add() - note how long an I/O took
 * @l: where
 * @ticks: how long
 *
 * Always the same dozen instructions.
 */
static __always_inline void latency_add(struct latency *l, uint64_t ticks)
{
	/* Each value below 32 has its own bucket, and the shift is 0. */
	const unsigned int shift = 63u - LATENCY_BITS -
		(unsigned int)__builtin_clzll(ticks | 1 << LATENCY_BITS);

	l->buckets[(shift << LATENCY_BITS) + (ticks >> shift)]++;
	l->sum += ticks;
	if (ticks > l->max)
		l->max = ticks;
}

#endif /* IOLOOP_LATENCY_H */
