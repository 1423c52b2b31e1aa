/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Statistics of the generator. Each worker has its own, so they need no lock.
 */
#ifndef BIOGEN_STATS_H
#define BIOGEN_STATS_H

#include <linux/types.h>

#include <uapi/biogen.h>

/**
 * struct biogen_stats - counts and times of one worker
 * @cpu: its CPU
 * @error: first error, or 0
 * @error_offset: position of that I/O
 * @error_write: true if it was a write
 * @errors: number of failed I/Os
 * @writes: I/Os that were writes; counted only if they are mixed with reads
 * @ios: I/Os in the rounds
 * @ns: duration of the rounds
 * @cycles: the same in cycles
 * @idle_ns: time spent waiting
 * @latency: histogram
 * @irqs: device interrupts on the CPU before the current round
 */
struct biogen_stats {
	u32 cpu;
	int error;
	loff_t error_offset;
	bool error_write;
	u64 errors;
	u64 writes;
	u64 ios;
	u64 ns;
	u64 cycles;
	u64 idle_ns;
	u64 latency[BIOGEN_BUCKETS];
	unsigned long irqs;
};

void biogen_stats_init(struct biogen_stats *stats, unsigned int cpu);
void biogen_stats_error(struct biogen_stats *stats, int err, loff_t pos,
			bool is_write);
void biogen_stats_latency(struct biogen_stats *stats, u64 ns);
void biogen_stats_restart(struct biogen_stats *stats);
void biogen_stats_add_round(struct biogen_stats *stats,
			    struct biogen_round *round);
int biogen_stats_copy(const struct biogen_stats *stats,
		      const struct biogen_run *run,
		      struct biogen_job __user *ujob);

#endif /* BIOGEN_STATS_H */
