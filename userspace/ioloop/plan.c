// SPDX-License-Identifier: GPL-2.0
/*
 * What each job is to do: how many I/Os, where, and on which processor.
 */
#include "engine.h"
#include "plan.h"
#include "run.h"

/* The most that the warm-up reads to fill the page cache, or otherwise. */
#define MAX_FILL_BYTES		(1ull << 30)
#define MAX_WARMUP_BYTES	(16ull << 20)

/**
 * plan_nr_jobs() - how many jobs there are
 * @o: the options
 */
unsigned int plan_nr_jobs(const struct options *o)
{
	if (o->one_ring || !o->nr_files)
		return (unsigned int)o->numjobs;
	return (unsigned int)o->numjobs * o->nr_files;
}

/* I/Os of one pass; for devices of several sizes, over the largest part. */
static uint64_t pass_ios(const struct options *o, const struct device *devices)
{
	uint64_t most = 0;
	unsigned int i;

	for (i = 0; i < o->nr_files; i++)
		if (devices[i].end - devices[i].start > most)
			most = devices[i].end - devices[i].start;
	return most / o->bs;
}

/*
 * By default enough to run all code once. If the page cache stays filled,
 * enough to fill it, unless the device may be larger than memory. Commands do
 * not use the page cache.
 */
static uint64_t default_warmup(const struct options *o, bool one_pass,
			       const struct device *devices)
{
	const bool fill = !o->direct && !o->invalidate &&
			  !(o->engine->flags & ENGINE_COMMANDS);
	uint64_t n = 1000, blocks;
	unsigned int i;

	for (i = 0; fill && i < o->nr_files; i++) {
		blocks = (devices[i].end - devices[i].start) / o->bs;
		if (blocks * o->bs <= MAX_FILL_BYTES && blocks > n)
			n = blocks;
	}
	if (fill)
		return n;
	if ((!o->number_ios || one_pass) && n > MAX_WARMUP_BYTES / o->bs)
		n = MAX_WARMUP_BYTES / o->bs ? MAX_WARMUP_BYTES / o->bs : 1;
	return o->number_ios && o->number_ios < n ? o->number_ios : n;
}

/**
 * plan_counts() - fill in the numbers of I/Os that depend on the devices
 * @o: the options
 * @devices: the devices of --filename
 */
void plan_counts(struct options *o, const struct device *devices)
{
	const bool one_pass = o->nr_files && !o->number_ios && !o->time_based;

	if (one_pass)
		o->number_ios = pass_ios(o, devices);
	if (o->warmup_ios == UNSET)
		o->warmup_ios = default_warmup(o, one_pass, devices);
}

/**
 * plan_result_size() - how much memory a job's result takes
 * @o: the options
 */
size_t plan_result_size(const struct options *o)
{
	size_t size = sizeof(struct result) + o->rounds * sizeof(struct round);

	if (o->split)
		size += (1 + o->split) * sizeof(struct latency);
	return size;
}

static void plan_io(struct job *job)
{
	const struct options *o = job->o;
	struct cursor *c = &job->cursor;
	struct area *a = &job->area;

	job->random = o->pattern == PATTERN_RANDOM;
	if (o->pattern == PATTERN_SEQUENTIAL)
		a->step = o->bs;
	a->start = job->dev->start;
	a->end = job->dev->end;
	a->bs = o->bs;
	a->blocks = (a->end - a->start) / a->bs;
	c->position = a->start;
	c->write = options_write(o);
	/* Spread the seeds, or jobs would begin with offsets side by side. */
	c->state = (job->index + 2ull) * 0x9e3779b97f4a7c15;
	c->state ^= c->state >> 29;
	c->state |= 1;
}

/**
 * plan_jobs() - fill in the jobs, and where their results go
 * @r: the run
 * @shared: what its jobs share
 */
void plan_jobs(struct run *r, struct shared *shared)
{
	const struct options *o = r->o;
	struct round *const rounds = (struct round *)(r->results + r->nr_jobs);
	struct latency *const latencies =
		(struct latency *)(rounds + r->nr_jobs * o->rounds);
	struct result *const results = r->results;
	struct job *const jobs = r->jobs;
	unsigned int i;

	for (i = 0; i < r->nr_jobs; i++) {
		jobs[i].o = o;
		jobs[i].res = &results[i];
		jobs[i].res->rounds = rounds + i * o->rounds;
		if (o->split) {
			results[i].latency = latencies + i * (1 + o->split);
			results[i].pieces = results[i].latency + 1;
		}
		jobs[i].stop = &shared->stop;
		jobs[i].index = i;
		jobs[i].cpu = -1;
		if (o->nr_cpus)
			jobs[i].cpu = (int)o->cpus[i % o->nr_cpus];
		jobs[i].fd = -1;
		jobs[i].stat_fd = -1;
		if (!o->nr_files)
			continue;
		jobs[i].dev = &r->devices[i / o->numjobs];
		plan_io(&jobs[i]);
	}
}
