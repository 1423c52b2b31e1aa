// SPDX-License-Identifier: GPL-2.0
/*
 * What the reports compute from the results of a job.
 */
#include <errno.h>
#include <string.h>

#include "compiler.h"
#include "figures.h"

/**
 * figures_sums() - add up the times of all rounds
 * @res: the result of a job
 */
struct sums figures_sums(const struct result *res)
{
	struct sums s = { 0, 0 };
	uint64_t i;

	for (i = 0; i < res->nr_rounds; i++) {
		s.ns += res->rounds[i].ns;
		s.tsc += res->rounds[i].tsc;
	}
	return s;
}

/**
 * figures_tick() - nanoseconds in a tick of the cycle counter
 * @s: figures_sums() of a job
 *
 * Return: 0 if it is not known.
 */
double figures_tick(struct sums s)
{
	return s.tsc ? (double)s.ns / (double)s.tsc : 0;
}

const double percents[NR_PERCENTS] = { 50, 90, 99, 99.9, 99.99 };

/* The smallest value of a bucket. */
static uint64_t bucket_value(unsigned int bucket)
{
	unsigned int shift = bucket >> LATENCY_BITS;

	if (shift <= 1)
		return bucket;
	shift--;
	return (uint64_t)(bucket - (shift << LATENCY_BITS)) << shift;
}

/**
 * latency_count() - how many latencies were noted
 * @l: the latencies
 */
uint64_t latency_count(const struct latency *l)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < LATENCY_BUCKETS; i++)
		n += l->buckets[i];
	return n;
}

/**
 * latency_percentile() - the middle of the bucket that a latency lies in
 * @l: the latencies
 * @count: how many they are
 * @percent: the share of them that is shorter or equal
 */
double latency_percentile(const struct latency *l, uint64_t count,
			 double percent)
{
	const double rank = (double)count * percent / 100;
	uint64_t seen = 0;
	double middle;
	unsigned int i;

	for (i = 0; i < LATENCY_BUCKETS - 1; i++) {
		seen += l->buckets[i];
		if (seen && (double)seen >= rank)
			break;
	}
	middle = (double)(bucket_value(i) + bucket_value(i + 1) - 1) / 2;
	return middle < (double)l->max ? middle : (double)l->max;
}

/**
 * pmu_reason() - what perf_event_open() means by its error numbers
 * @errnum: why an event was not counted
 */
const char *pmu_reason(int errnum)
{
	switch (errnum) {
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		return "no PMU that counts this";
	case EACCES:
	case EPERM:
		return "not allowed: see /proc/sys/kernel/perf_event_paranoid";
	case EBUSY:
		return "the PMU was busy with other events";
	default:
		return strerror(errnum);
	}
}
