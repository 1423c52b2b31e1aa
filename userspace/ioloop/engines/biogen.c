// SPDX-License-Identifier: GPL-2.0
/*
 * biogen: the I/O is made by a thread in the kernel, on the processor of the
 * job, and no system call is part of it. One ioctl() does all rounds; the
 * module times them and places the markers.
 */
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "../../../kernel/include/uapi/biogen.h"
#include "../engine.h"

struct generator {
	struct biogen_run run;
	struct biogen_job job;
	struct biogen_round rounds[];
};

static void biogen_cleanup(struct job *job)
{
	free(job->data);
}

static uint32_t biogen_pattern(const struct options *o)
{
	switch (o->pattern) {
	case PATTERN_RANDOM:
		return BIOGEN_RANDOM;
	case PATTERN_FIXED:
		return BIOGEN_FIXED;
	default:
		return BIOGEN_SEQUENTIAL;
	}
}

static bool biogen_setup(struct job *job)
{
	const struct options *o = job->o;
	struct generator *g;
	uint64_t nr_rounds;

	nr_rounds = job->end - job->res->nr_rounds;
	g = calloc(1, sizeof(*g) + nr_rounds * sizeof(*g->rounds));
	if (!g) {
		job_error(job, "calloc", 0, 0, -ENOMEM);
		return false;
	}
	job->data = g;
	g->job.cpu = (uint32_t)(job->cpu < 0 ? sched_getcpu() : job->cpu);
	g->run = (struct biogen_run){
		.flags = BIOGEN_MARK,
		.pattern = biogen_pattern(o),
		.wait = o->hipri ? BIOGEN_POLLED : BIOGEN_ASYNC,
		.write_percent = options_write(o) ? 100 : 0,
		.block_size = (uint32_t)o->bs,
		.depth = (uint32_t)o->iodepth,
		.batch = (uint32_t)o->iodepth,
		.nr_jobs = 1,
		.rounds = (uint32_t)nr_rounds,
		.region = (uint32_t)o->region,
		.offset = job->dev->start,
		.length = job->dev->end - job->dev->start,
		.ios = o->number_ios,
		.duration_ns = o->runtime,
		.warmup_ios = o->warmup_ios,
		.seed = 1 + job->index,
		.jobs = (uint64_t)&g->job,
		.round_results = (uint64_t)g->rounds,
	};
	/* Until a signal ends it: ten years are enough. */
	if (!o->number_ios && !o->runtime)
		g->run.duration_ns = 10ull * 365 * 86400 * 1000000000;
	return true;
}

static void biogen_rounds(struct job *job)
{
	struct generator *g = job->data;
	struct result *res = job->res;
	struct round *r;
	uint64_t i;

	if (ioctl(job->fd, BIOGEN_RUN, &g->run)) {
		/* The stop came before the run began. */
		if (errno != EINTR || !*job->stop)
			job_error(job, "BIOGEN_RUN", 0, 0, -errno);
		return;
	}
	for (i = 0; i < g->run.rounds && g->rounds[i].ios; i++) {
		r = &res->rounds[res->nr_rounds++];
		r->ios = g->rounds[i].ios;
		r->ns = g->rounds[i].ns;
		r->tsc = g->rounds[i].cycles;
		r->interrupts = (int64_t)g->rounds[i].ticks;
	}
	res->ios += g->job.ios - g->job.errors;
	res->bytes += g->job.bytes;
	if (!g->job.errors)
		return;
	job_io_error(job, g->job.error_write, g->job.error_offset, job->o->bs,
		     -(int64_t)g->job.error);
	res->errors = g->job.errors;
}

const struct engine engine_biogen = {
	.name = "biogen",
	.flags = ENGINE_FILE,
	.max_iodepth = BIOGEN_MAX_DEPTH,
	.setup = biogen_setup,
	.rounds = biogen_rounds,
	.cleanup = biogen_cleanup,
};
