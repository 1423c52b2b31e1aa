// SPDX-License-Identifier: GPL-2.0
/*
 * The report for people.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engines.h"
#include "figures.h"
#include "numbers.h"
#include "option_table.h"
#include "report_normal.h"
#include "run.h"

#define MIN_CPU_TIME_NS	UINT64_C(100000000)

/* The kind of I/O. */
static void normal_summary(const struct options *o, FILE *out)
{
	fprintf(out, "ioengine=%s", engine_names[o->ioengine]);
	if (!o->nr_files)
		return;
	fprintf(out, ", rw=%s, ", rw_names[o->rw]);
	if (o->pattern == PATTERN_FIXED)
		fputs("pattern=fixed, ", out);
	fputs("bs=", out);
	print_size(o->bs, out);
	fprintf(out, ", iodepth=%" PRIu64 ", direct=%" PRIu64, o->iodepth,
		o->direct);
}

static int by_cost(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* How far apart the rounds without an interrupt are. */
static void normal_rounds(const struct result *res, FILE *out)
{
	double *cost;
	uint64_t i, n = 0;

	cost = calloc(res->nr_rounds, sizeof(*cost));
	if (!cost)
		return;
	for (i = 0; i < res->nr_rounds; i++)
		if (!res->rounds[i].interrupts && res->rounds[i].ios)
			cost[n++] = (double)res->rounds[i].tsc /
				    (double)res->rounds[i].ios;
	qsort(cost, n, sizeof(*cost), by_cost);
	fprintf(out, "      %" PRIu64 " rounds, %" PRIu64 " without interrupts",
		res->nr_rounds, n);
	if (n)
		fprintf(out, ": ticks per I/O %.2f (median), %.2f to %.2f",
			cost[n / 2], cost[0], cost[n - 1]);
	fputc('\n', out);
	free(cost);
}

static void normal_latency(const char *what, const struct latency *l,
			   double ns, FILE *out)
{
	const uint64_t n = latency_count(l);
	unsigned int i;

	if (!n)
		return;
	fprintf(out, "      %s us:", what);
	fprintf(out, " mean %.3f,", (double)l->sum / (double)n * ns / 1e3);
	for (i = 0; i < NR_PERCENTS; i++)
		fprintf(out, "%s %g%% %.3f", i ? "," : "", percents[i],
			latency_percentile(l, n, percents[i]) * ns / 1e3);
	fprintf(out, ", max %.3f\n", (double)l->max * ns / 1e3);
}

static void normal_latencies(const struct job *job, const struct result *res,
			     double ns, FILE *out)
{
	char what[32];
	uint64_t i;

	normal_latency("latency", res->latency, ns, out);
	for (i = 0; i < job->o->split; i++) {
		snprintf(what, sizeof(what), "piece %" PRIu64, i + 1);
		normal_latency(what, &res->pieces[i], ns, out);
	}
	fprintf(out, "      recording a latency takes %.4f us\n",
		res->latency_overhead * ns / 1e3);
}

/* What one line of the table adds up. */
struct line {
	uint64_t ios;
	uint64_t bytes;
	uint64_t ns;
	uint64_t tsc;
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t first_end_ns;
	uint64_t cpu_ns[2];
	unsigned int jobs;
};

static void add_job(struct line *l, const struct job *job)
{
	const struct result *res = job->res;
	const struct sums s = figures_sums(res);

	if (!res->start_ns)	/* it failed before its first round */
		return;
	l->ios += res->ios;
	l->bytes += res->bytes;
	l->ns += s.ns;
	l->tsc += s.tsc;
	l->cpu_ns[0] += res->user_ns;
	l->cpu_ns[1] += res->system_ns;
	if (!l->jobs || res->start_ns < l->start_ns)
		l->start_ns = res->start_ns;
	if (!l->jobs || res->end_ns < l->first_end_ns)
		l->first_end_ns = res->end_ns;
	if (res->end_ns > l->end_ns)
		l->end_ns = res->end_ns;
	l->jobs++;
}

/*
 * The seconds of one job are those in its rounds; those of several go from
 * the first one's start to the last one's end.
 */
static void print_line(const char *job, const char *cpu, const char *name,
		       const struct line *l, FILE *out)
{
	const double ns = (double)(l->jobs > 1 ? l->end_ns - l->start_ns :
						 l->ns);

	char ios[16], iops[16];

	fprintf(out, "%5s %4s %-20s %8s %8.*f ", job, cpu, name,
		short_number(ios, sizeof(ios), (double)l->ios),
		ns < 10e9 ? 6 : 3, ns / 1e9);
	if (!l->ios || ns <= 0) {
		fprintf(out, "%8s %10s %9s %9s %10s\n", "-", "-", "-", "-",
			"-");
		return;
	}
	fprintf(out, "%8s %10.2f %9.2f %9.3f %10.1f\n",
		short_number(iops, sizeof(iops), (double)l->ios / ns * 1e9),
		(double)l->bytes / 1e6, (double)l->bytes / ns * 1e3,
		(double)l->ns / (double)l->ios / 1e3,
		(double)l->tsc / (double)l->ios);
}

static void normal_pmu(const struct result *res, FILE *out)
{
	const struct pmu_count *c;
	int i;

	for (i = 0; i < NR_PMU_EVENTS; i++) {
		c = &res->pmu[i];
		fprintf(out, "      %-20s ", pmu_names[i]);
		if (c->errnum)
			fprintf(out, "n/a (%s)\n", pmu_reason(c->errnum));
		else
			fprintf(out, "%.2f per I/O (counted %.0f %% of the time)\n",
				res->ios ? (double)c->value / (double)res->ios :
					   0, c->percent);
	}
}

/* The lines below the line of a job. */
static void normal_details(const struct job *job, FILE *out)
{
	const struct result *res = job->res;

	if (job->o->rounds > 1)
		normal_rounds(res, out);
	if (res->latency && res->ios)
		normal_latencies(job, res, figures_tick(figures_sums(res)), out);
	if (job->o->pmu)
		normal_pmu(res, out);
}

static void normal_job(const struct job *job, FILE *out)
{
	struct line l = { 0 };
	char name[16], cpu[16];

	add_job(&l, job);
	snprintf(name, sizeof(name), "%u", job->index);
	snprintf(cpu, sizeof(cpu), job->cpu < 0 ? "-" : "%d", job->cpu);
	print_line(name, cpu, job->dev ? job->dev->name : "-", &l, out);
	normal_details(job, out);
}

static void normal_devices(const struct run *r, FILE *out)
{
	struct line l;
	unsigned int i, j;

	for (i = 0; i < r->o->nr_files; i++) {
		memset(&l, 0, sizeof(l));
		for (j = 0; j < r->nr_jobs; j++)
			if (r->jobs[j].dev == &r->devices[i])
				add_job(&l, &r->jobs[j]);
		print_line("all", "", r->devices[i].name, &l, out);
	}
}

/* What blknull counted; a run has other I/O besides: it warms up. */
static void normal_counters(const struct device *dev, FILE *out)
{
	int i;

	if (!dev->counters.known)
		return;
	fprintf(out, "%s:", dev->name);
	for (i = 0; i < NR_COUNTERS; i++)
		fprintf(out, "%s %s %" PRIu64, i ? "," : "", counter_names[i],
			dev->counters.value[i]);
	fputs(".\n", out);
	for (i = 0; i < NR_SIZES; i++)
		if (dev->counters.sizes[i])
			fprintf(out, "%s: %s %u bytes: %" PRIu64 ".\n",
				dev->name, i < NR_SIZES - 1 ? "up to" : "over",
				512u << (i < NR_SIZES - 1 ? i : i - 1),
				dev->counters.sizes[i]);
}

/**
 * report_normal() - print a table
 * @r: what to report
 * @out: where to
 */
void report_normal(const struct run *r, FILE *out)
{
	const struct options *o = r->o;
	struct line total = { 0 };
	unsigned int i;

	normal_summary(o, out);
	fprintf(out, "; ended by %s\n", r->stopped_by);
	fprintf(out, "%5s %4s %-20s %8s %8s %8s %10s %9s %9s %10s\n", "job",
		"cpu", "device", "I/Os", "seconds", "IOPS", "MB", "MB/s",
		"us/I/O", "ticks/I/O");
	for (i = 0; i < r->nr_jobs; i++) {
		normal_job(&r->jobs[i], out);
		add_job(&total, &r->jobs[i]);
	}
	if (r->nr_jobs > 1) {
		if (o->numjobs > 1)
			normal_devices(r, out);
		print_line("total", "", "", &total, out);
		fprintf(out, "The first job ended %.6f s before the last.\n",
			(double)(total.end_ns - total.first_end_ns) / 1e9);
	}
	for (i = 0; i < o->nr_files; i++)
		normal_counters(&r->devices[i], out);
	/* Both are counted in timer ticks, too coarse for a short time. */
	if (total.end_ns - total.start_ns < MIN_CPU_TIME_NS)
		return;
	if (total.ios)
		fprintf(out, "Processor time per I/O: user %.3f us, system %.3f us.\n",
			(double)total.cpu_ns[0] / (double)total.ios / 1e3,
			(double)total.cpu_ns[1] / (double)total.ios / 1e3);
	if (r->idle_percent >= 0)
		fprintf(out, "Machine idle: %.1f %%.\n", r->idle_percent);
}
