/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All that a run consists of.
 */
#ifndef IOLOOP_RUN_H
#define IOLOOP_RUN_H

#include <stdbool.h>
#include <sys/types.h>

#include "job.h"

/**
 * struct shared - what parent and jobs share
 * @parent: whom to tell; not getppid(), which is init if the parent died
 * @stop: not 0: end now
 * @nr_jobs: how many there are
 * @ready: jobs that are ready to start
 * @finished: jobs that have nothing more to measure
 * @results: one for each job; behind them come their rounds and latencies
 */
struct shared {
	pid_t parent;
	int stop;
	unsigned int nr_jobs;
	unsigned int ready;
	unsigned int finished;
	struct result results[];
};

/**
 * struct run - a run, and at its end the whole report
 * @o: the options
 * @devices: the devices of --filename
 * @jobs: the jobs
 * @results: and their results, in the same order
 * @nr_jobs: how many
 * @idle_percent: the machine's idle processor time meanwhile; -1: not known
 * @stopped_by: what ended the run: "count", "runtime", "signal" or "error"
 * @ok: no I/O failed
 */
struct run {
	const struct options *o;
	struct device *devices;
	struct job *jobs;
	struct result *results;
	unsigned int nr_jobs;
	double idle_percent;
	const char *stopped_by;
	bool ok;
};

#endif /* IOLOOP_RUN_H */
