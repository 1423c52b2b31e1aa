/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What comes out at the end.
 */
#ifndef IOLOOP_REPORT_H
#define IOLOOP_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "engine.h"

/**
 * struct report - everything there is to report
 * @o: the options
 * @devices: the devices of --filename
 * @jobs: the jobs
 * @results: and their results, in the same order
 * @nr_jobs: how many
 * @idle_percent: the machine's idle processor time meanwhile; -1: not known
 * @stopped_by: what ended the run: "count", "runtime", "signal" or "error"
 * @ok: no I/O failed
 */
struct report {
	const struct options *o;
	const struct device *devices;
	const struct job *jobs;
	const struct result *results;
	unsigned int nr_jobs;
	double idle_percent;
	const char *stopped_by;
	bool ok;
};

void report_json(const struct report *r, FILE *out);
void report_normal(const struct report *r, FILE *out);
void report_errors(const struct report *r, FILE *out);
const char *short_number(char *s, size_t size, double n);
void json_string(const char *s, FILE *out);

#endif /* IOLOOP_REPORT_H */
