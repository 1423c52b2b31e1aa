// SPDX-License-Identifier: GPL-2.0
/*
 * Statistics of the generator.
 */
#include <linux/errno.h>
#include <linux/kernel_stat.h>
#include <linux/log2.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "stats.h"

/**
 * biogen_stats_init() - initialise before the first round
 * @stats: of a worker, zeroed
 * @cpu: its CPU
 */
void biogen_stats_init(struct biogen_stats *stats, unsigned int cpu)
{
	stats->cpu = cpu;
	stats->irqs = kstat_cpu_irqs_sum(cpu);
}

/**
 * biogen_stats_error() - record a failed I/O
 * @stats: of the worker
 * @err: its error, negative
 * @pos: its position
 * @is_write: its direction
 */
void biogen_stats_error(struct biogen_stats *stats, int err, loff_t pos,
			bool is_write)
{
	if (!stats->errors++) {
		stats->error = -err;
		stats->error_offset = pos;
		stats->error_write = is_write;
	}
}

/**
 * biogen_stats_latency() - record the latency of an I/O
 * @stats: of the worker
 * @ns: from its submission until the worker saw its end
 */
void biogen_stats_latency(struct biogen_stats *stats, u64 ns)
{
	unsigned int bucket = ns ? ilog2(ns) : 0;

	if (bucket >= BIOGEN_BUCKETS)
		bucket = BIOGEN_BUCKETS - 1;
	stats->latency[bucket]++;
}

/**
 * biogen_stats_restart() - reset after the warm-up, except for errors
 * @stats: of the worker
 */
void biogen_stats_restart(struct biogen_stats *stats)
{
	stats->writes = 0;
	stats->idle_ns = 0;
	memset(stats->latency, 0, sizeof(stats->latency));
	stats->irqs = kstat_cpu_irqs_sum(stats->cpu);
}

/**
 * biogen_stats_add_round() - add a round that has ended
 * @stats: of the worker
 * @round: the round
 *
 * Adds the device interrupts to the round's ticks. The round itself does not
 * count them, which saves an instruction there.
 */
void biogen_stats_add_round(struct biogen_stats *stats,
			    struct biogen_round *round)
{
	unsigned long irqs = kstat_cpu_irqs_sum(stats->cpu);

	round->ticks += irqs - stats->irqs;
	stats->irqs = irqs;
	stats->ios += round->ios;
	stats->ns += round->ns;
	stats->cycles += round->cycles;
}

/**
 * biogen_stats_copy() - copy to user space
 * @stats: of the worker
 * @run: the run it was part of
 * @ujob: destination
 *
 * Return: 0 or -EFAULT.
 */
int biogen_stats_copy(const struct biogen_stats *stats,
		      const struct biogen_run *run,
		      struct biogen_job __user *ujob)
{
	struct biogen_job job = {
		.cpu		= stats->cpu,
		.error		= stats->error,
		.error_offset	= stats->error_offset,
		.error_write	= stats->error_write,
		.ios		= stats->ios,
		.errors		= stats->errors,
		.ns		= stats->ns,
		.cycles		= stats->cycles,
		.idle_ns	= stats->idle_ns,
	};

	if (run->write_percent < 100)
		job.reads = stats->ios - stats->writes;
	/* Errors of the warm-up count, but its I/Os do not. */
	if (stats->ios > stats->errors)
		job.bytes = (stats->ios - stats->errors) * run->block_size;
	memcpy(job.latency, stats->latency, sizeof(job.latency));
	return copy_to_user(ujob, &job, sizeof(job)) ? -EFAULT : 0;
}
