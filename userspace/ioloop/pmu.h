/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The processor's performance counters, for one job.
 */
#ifndef IOLOOP_PMU_H
#define IOLOOP_PMU_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum pmu_event {
	PMU_INSTRUCTIONS_USER,
	PMU_INSTRUCTIONS_KERNEL,
	PMU_CYCLES_USER,
	PMU_CYCLES_KERNEL,
	PMU_CACHE_MISSES,
	PMU_BRANCH_MISSES,
	PMU_CONTEXT_SWITCHES,
	NR_PMU_EVENTS
};

extern const char *const pmu_names[NR_PMU_EVENTS];

/**
 * struct pmu_count - one event, over all rounds of a job
 * @value: how often it happened; scaled up if it was not counted all the time
 * @percent: the share of the time that it was counted
 * @errnum: errno of why it was not counted at all, or 0
 */
struct pmu_count {
	uint64_t value;
	double percent;
	int errnum;
};

void pmu_open(int *fds, struct pmu_count *counts);
void pmu_enable(void);
void pmu_disable(void);
void pmu_read(int *fds, struct pmu_count *counts);
int perf_control(const char *fifos, const char *command);

#endif /* IOLOOP_PMU_H */
