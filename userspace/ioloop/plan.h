/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What each job is to do.
 */
#ifndef IOLOOP_PLAN_H
#define IOLOOP_PLAN_H

#include <stddef.h>

struct device;
struct options;
struct run;
struct shared;

unsigned int plan_nr_jobs(const struct options *o);
void plan_counts(struct options *o, const struct device *devices);
size_t plan_result_size(const struct options *o);
void plan_jobs(struct run *r, struct shared *shared);

#endif /* IOLOOP_PLAN_H */
