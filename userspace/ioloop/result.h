/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The results of a job.
 */
#ifndef IOLOOP_RESULT_H
#define IOLOOP_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "latency.h"
#include "pmu.h"

/**
 * struct round - what one round took
 * @ios: I/Os that ended well
 * @ns: nanoseconds by CLOCK_MONOTONIC
 * @tsc: ticks of the cycle counter
 * @interrupts: interrupts that the machine took meanwhile; -1: not known
 */
struct round {
	uint64_t ios;
	uint64_t ns;
	uint64_t tsc;
	int64_t interrupts;
};

/**
 * struct io_error - the first thing that went wrong in a job
 * @op: what was tried: "read", "write", or the name of a system call
 * @offset: where
 * @size: how many bytes
 * @result: the return value: a byte count that is too small, or -1
 * @errnum: errno, or 0 if @result is a byte count
 */
struct io_error {
	char op[24];
	uint64_t offset;
	uint64_t size;
	int64_t result;
	int errnum;
};

/**
 * struct result - what one job has to tell, in memory shared with its parent
 * @ios: I/Os that ended well, over all rounds
 * @bytes: what they moved
 * @errors: failed and short I/Os, and failed preparations
 * @first_error: the first of them
 * @again: I/Os that had to be repeated, because --nowait would have waited
 * @locked: its buffers are locked in memory
 * @latency: that of all I/Os, with --split; else NULL
 * @pieces: that of the pieces of an I/O, in the order of completion
 * @latency_overhead: ticks that noting one latency takes
 * @pmu: the performance counters, with --pmu
 * @start_ns: when the first round began, by CLOCK_MONOTONIC
 * @end_ns: when the last ended
 * @user_ns: processor time in user mode from the one to the other
 * @system_ns: in the kernel
 * @nr_rounds: how many of @rounds are filled
 * @rounds: one entry for each round
 *
 * No two jobs share a cache line of it.
 */
struct result {
	_Alignas(64) uint64_t ios;
	uint64_t bytes;
	uint64_t errors;
	struct io_error first_error;
	uint64_t again;
	bool locked;
	struct latency *latency;
	struct latency *pieces;
	double latency_overhead;
	struct pmu_count pmu[NR_PMU_EVENTS];
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t user_ns;
	uint64_t system_ns;
	uint64_t nr_rounds;
	struct round *rounds;
};

#endif /* IOLOOP_RESULT_H */
