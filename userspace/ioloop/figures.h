/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the reports compute from the results of a job.
 */
#ifndef IOLOOP_FIGURES_H
#define IOLOOP_FIGURES_H

#include "result.h"

#define NR_PERCENTS	5

/**
 * struct sums - the times of all rounds of a job
 * @ns: in nanoseconds
 * @tsc: in ticks of the cycle counter
 */
struct sums {
	uint64_t ns;
	uint64_t tsc;
};

extern const double percents[NR_PERCENTS];

struct sums figures_sums(const struct result *res);
double figures_tick(struct sums s);
uint64_t latency_count(const struct latency *l);
double latency_percentile(const struct latency *l, uint64_t count,
			  double percent);
const char *pmu_reason(int errnum);

#endif /* IOLOOP_FIGURES_H */
