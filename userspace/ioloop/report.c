// SPDX-License-Identifier: GPL-2.0
/*
 * The report: a table for people, JSON for programs.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "report.h"

#define MIN_CPU_TIME_NS	UINT64_C(100000000)

struct sums {
	uint64_t ns;
	uint64_t tsc;
};

static struct sums add_up(const struct result *res)
{
	struct sums s = { 0, 0 };
	uint64_t i;

	for (i = 0; i < res->nr_rounds; i++) {
		s.ns += res->rounds[i].ns;
		s.tsc += res->rounds[i].tsc;
	}
	return s;
}

/* Of what the latencies are noted in. */
static double ns_per_tick(const struct result *res, struct sums s)
{
	if (res->latency_is_ns)
		return 1;
	return s.tsc ? (double)s.ns / (double)s.tsc : 0;
}

/**
 * json_string() - print a string as JSON has it
 * @s: the string; bytes that are not UTF-8 become U+FFFD
 * @out: where to
 */
void json_string(const char *s, FILE *out)
{
	const unsigned char *p = (const unsigned char *)s;
	int len, i;

	fputc('"', out);
	while (*p) {
		if (*p == '"' || *p == '\\') {
			fprintf(out, "\\%c", *p++);
			continue;
		}
		if (*p < 0x20) {
			fprintf(out, "\\u%04x", *p++);
			continue;
		}
		len = *p < 0x80 ? 1 : *p >> 5 == 6 ? 2 : *p >> 4 == 14 ? 3 :
		      *p >> 3 == 30 ? 4 : 0;
		for (i = 1; i < len; i++)
			if (p[i] >> 6 != 2)
				len = 0;
		if (!len) {
			fputs("\\ufffd", out);
			p++;
			continue;
		}
		fwrite(p, 1, (size_t)len, out);
		p += len;
	}
	fputc('"', out);
}

static void json_devices(const struct report *r, FILE *out)
{
	const struct device *dev;
	unsigned int i;

	fputs("  \"devices\": [", out);
	for (i = 0; i < r->o->nr_files; i++) {
		dev = &r->devices[i];
		fputs(i ? ",\n    {\"filename\": " : "\n    {\"filename\": ",
		      out);
		json_string(dev->name, out);
		fprintf(out, ", \"size\": %" PRIu64
			     ", \"logical_block_size\": ", dev->size);
		if (dev->logical_block_size)
			fprintf(out, "%" PRIu64 "}", dev->logical_block_size);
		else
			fputs("null}", out);
	}
	fputs("],\n", out);
}

static void json_error(const struct result *res, FILE *out)
{
	const struct io_error *e = &res->first_error;

	if (!res->errors) {
		fputs("null", out);
		return;
	}
	fputs("{\"op\": ", out);
	json_string(e->op, out);
	fprintf(out, ", \"offset\": %" PRIu64 ", \"size\": %" PRIu64
		     ", \"result\": %" PRId64 ", \"errno\": %d, \"strerror\": ",
		e->offset, e->size, e->result, e->errnum);
	if (e->errnum)
		json_string(strerror(e->errnum), out);
	else
		fputs("null", out);
	fputc('}', out);
}

/* The names of FLAG_*, in their order. */
static const char *const flag_names[] = {
	"hipri", "nowait", "dsync", "fixedbufs", "registerfiles",
	"sqthread_poll", "single_issuer", "defer_taskrun"
};

static void json_flags(const struct result *res, FILE *out)
{
	const char *comma = "";
	size_t i;

	fputs(", \"flags\": [", out);
	for (i = 0; i < ARRAY_SIZE(flag_names); i++) {
		if (!(res->flags & 1u << i))
			continue;
		fprintf(out, "%s\"%s\"", comma, flag_names[i]);
		comma = ", ";
	}
	fputc(']', out);
}

/* The least value that falls into a bucket. */
static uint64_t bucket_value(unsigned int bucket)
{
	unsigned int shift = bucket >> LATENCY_BITS;

	if (shift <= 1)
		return bucket;
	shift--;
	return (uint64_t)(bucket - (shift << LATENCY_BITS)) << shift;
}

static uint64_t latency_count(const struct latency *l)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < LATENCY_BUCKETS; i++)
		n += l->buckets[i];
	return n;
}

/* The middle of the bucket that the latency of this rank lies in. */
static double percentile(const struct latency *l, uint64_t count,
			 double percent)
{
	const double rank = (double)count * percent / 100;
	uint64_t seen = 0;
	double middle;
	unsigned int i;

	for (i = 0; i < LATENCY_BUCKETS - 1; i++) {
		seen += l->buckets[i];
		if (seen && (double)seen >= rank)
			break;
	}
	middle = (double)(bucket_value(i) + bucket_value(i + 1) - 1) / 2;
	return !l->max || middle < (double)l->max ? middle : (double)l->max;
}

static const double percents[] = { 50, 90, 99, 99.9, 99.99 };

static void json_latency(const struct latency *l, double ns, FILE *out)
{
	const uint64_t n = latency_count(l);
	unsigned int i;

	fprintf(out, "{\"count\": %" PRIu64, n);
	if (n) {
		if (l->sum)
			fprintf(out, ", \"mean_ns\": %.1f, \"max_ns\": %.1f",
				(double)l->sum / (double)n * ns,
				(double)l->max * ns);
		else
			fputs(", \"mean_ns\": null, \"max_ns\": null", out);
		fputs(", \"percentiles_ns\": {", out);
		for (i = 0; i < ARRAY_SIZE(percents); i++)
			fprintf(out, "%s\"%g\": %.1f", i ? ", " : "",
				percents[i],
				percentile(l, n, percents[i]) * ns);
		fputc('}', out);
	}
	fputc('}', out);
}

static void json_latencies(const struct job *job, const struct result *res,
			   double ns, FILE *out)
{
	uint64_t i;

	if (!res->latency)
		return;
	fprintf(out, "      \"latency_overhead_ns\": %.2f,\n      \"latency\": ",
		res->latency_overhead * ns);
	json_latency(res->latency, ns, out);
	fputs(",\n      \"pieces\": [", out);
	for (i = 0; i < job->o->split; i++) {
		fputs(i ? ",\n        " : "\n        ", out);
		json_latency(&res->pieces[i], ns, out);
	}
	fputs("],\n", out);
}

static void json_rounds(const struct result *res, FILE *out)
{
	const struct round *r;
	uint64_t i;

	fputs("      \"rounds\": [", out);
	for (i = 0; i < res->nr_rounds; i++) {
		r = &res->rounds[i];
		fprintf(out, "%s\n        {\"ios\": %" PRIu64 ", \"ns\": %"
			     PRIu64 ", \"tsc\": %" PRIu64 ", \"interrupts\": ",
			i ? "," : "", r->ios, r->ns, r->tsc);
		if (r->interrupts < 0)
			fputs("null}", out);
		else
			fprintf(out, "%" PRId64 "}", r->interrupts);
	}
	fputs("]}", out);
}

/* What perf_event_open() means by its error numbers. */
static const char *pmu_reason(int errnum)
{
	switch (errnum) {
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		return "no PMU that counts this";
	case EACCES:
	case EPERM:
		return "not allowed: see /proc/sys/kernel/perf_event_paranoid";
	case EBUSY:
		return "the PMU was busy with other events";
	default:
		return strerror(errnum);
	}
}

static void json_pmu(const struct result *res, FILE *out)
{
	const struct pmu_count *c;
	int i;

	fputs("      \"pmu\": {", out);
	for (i = 0; i < NR_PMU_EVENTS; i++) {
		c = &res->pmu[i];
		fprintf(out, "%s\n        \"%s\": {", i ? "," : "",
			pmu_names[i]);
		if (c->errnum) {
			fputs("\"value\": null, \"reason\": ", out);
			json_string(pmu_reason(c->errnum), out);
		} else {
			fprintf(out, "\"value\": %" PRIu64
				     ", \"counted_percent\": %.1f",
				c->value, c->percent);
		}
		fputc('}', out);
	}
	fputs("},\n", out);
}

static void json_job(const struct job *job, const struct result *res, FILE *out)
{
	struct sums s = add_up(res);

	fprintf(out, "    {\"job\": %u, \"cpu\": ", job->index);
	if (job->cpu < 0)
		fputs("null", out);
	else
		fprintf(out, "%d", job->cpu);
	fputs(", \"filename\": ", out);
	if (job->dev)
		json_string(job->dev->name, out);
	else
		fputs("null", out);
	json_flags(res, out);
	fprintf(out, ", \"locked\": %s,\n      \"ios\": %" PRIu64
		     ", \"bytes\": %" PRIu64 ", \"errors\": %" PRIu64
		     ", \"first_error\": ", res->locked ? "true" : "false",
		res->ios, res->bytes, res->errors);
	json_error(res, out);
	fprintf(out, ", \"again\": %" PRIu64 ",\n      \"ns\": %" PRIu64
		     ", \"tsc\": %" PRIu64 ",\n", res->again, s.ns, s.tsc);
	fprintf(out, "      \"start_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64
		     ", \"user_ns\": %" PRIu64 ", \"system_ns\": %" PRIu64
		     ",\n", res->start_ns, res->end_ns, res->user_ns,
		res->system_ns);
	if (job->o->pmu)
		json_pmu(res, out);
	json_latencies(job, res, ns_per_tick(res, s), out);
	json_rounds(res, out);
}

/**
 * report_json() - print everything as one JSON object
 * @r: what to report
 * @out: where to
 */
void report_json(const struct report *r, FILE *out)
{
	unsigned int i;

	fputs("{\n  \"schema\": 1,\n  \"program\": \"ioloop\",\n"
	      "  \"version\": \"" IOLOOP_VERSION "\",\n  \"options\": ", out);
	options_json(r->o, out);
	fputs(",\n", out);
	json_devices(r, out);
	if (r->o->calibrate)
		fprintf(out, "  \"expected_instructions\": %" PRIu64
			     ",\n  \"overhead_instructions\": %d,\n",
			r->o->number_ios * CALIBRATE_INSTRUCTIONS,
			CALIBRATE_OVERHEAD);
	fputs("  \"jobs\": [\n", out);
	for (i = 0; i < r->nr_jobs; i++) {
		json_job(&r->jobs[i], &r->results[i], out);
		fputs(i + 1 < r->nr_jobs ? ",\n" : "],\n", out);
	}
	if (r->idle_percent >= 0)
		fprintf(out, "  \"idle_percent\": %.1f,\n", r->idle_percent);
	else
		fputs("  \"idle_percent\": null,\n", out);
	fprintf(out, "  \"stopped_by\": \"%s\",\n  \"ok\": %s\n}\n",
		r->stopped_by, r->ok ? "true" : "false");
}

/**
 * short_number() - write a number in at most 6 characters: 9876, 12.34k, 1.234M
 * @s: where to
 * @size: room there
 * @n: the number
 *
 * Return: @s.
 */
const char *short_number(char *s, size_t size, double n)
{
	static const char units[] = " kMGTPE";
	int unit = 0;

	while (n >= 9999.5 || (unit && n >= 999.95)) {
		n /= 1000;
		unit++;
	}
	if (unit)
		snprintf(s, size, "%.*f%c", n >= 99.995 ? 1 :
			 n >= 9.9995 ? 2 : 3, n, units[unit]);
	else
		snprintf(s, size, "%.0f", n);
	return s;
}

static int by_cost(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The rounds that no interrupt fell into: how far apart they are. */
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
	if (l->sum)
		fprintf(out, " mean %.3f,",
			(double)l->sum / (double)n * ns / 1e3);
	for (i = 0; i < ARRAY_SIZE(percents); i++)
		fprintf(out, "%s %g%% %.3f", i ? "," : "", percents[i],
			percentile(l, n, percents[i]) * ns / 1e3);
	if (l->sum)
		fprintf(out, ", max %.3f", (double)l->max * ns / 1e3);
	fputc('\n', out);
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
	fprintf(out, "      noting a latency takes %.4f us\n",
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
	const struct sums s = add_up(res);

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

/* With --optional it is for the report to say what the kernel took. */
static void normal_flags(const struct job *job, FILE *out)
{
	size_t i;

	if (!job->o->optional)
		return;
	fputs("      in effect:", out);
	for (i = 0; i < ARRAY_SIZE(flag_names); i++)
		if (job->res->flags & 1u << i)
			fprintf(out, " %s", flag_names[i]);
	fputs(job->res->flags ? "\n" : " none\n", out);
}

/* What stands below the line of a job, or of all. */
static void normal_details(const struct job *job, FILE *out)
{
	const struct result *res = job->res;

	if (job->o->rounds > 1)
		normal_rounds(res, out);
	normal_flags(job, out);
	if (res->latency && res->ios)
		normal_latencies(job, res, ns_per_tick(res, add_up(res)), out);
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

static void add_latencies(struct latency *sum, const struct latency *l)
{
	unsigned int i;

	for (i = 0; i < LATENCY_BUCKETS; i++)
		sum->buckets[i] += l->buckets[i];
	sum->sum += l->sum;
	if (l->max > sum->max)
		sum->max = l->max;
}

static void add_pmu(struct pmu_count *sum, const struct pmu_count *c,
		    unsigned int nr_jobs)
{
	int i;

	for (i = 0; i < NR_PMU_EVENTS; i++) {
		sum[i].value += c[i].value;
		sum[i].percent += c[i].percent / nr_jobs;
		if (!sum[i].errnum)
			sum[i].errnum = c[i].errnum;
	}
}

/* With --group_reporting: as if all jobs had been one. */
static void normal_group(const struct report *r, FILE *out)
{
	const struct options *o = r->o;
	const size_t nr_latencies = o->lat || o->split ? 1 + o->split : 0;
	struct result sum = { .flags = r->results[0].flags };
	struct job job = { .o = o, .res = &sum };
	const struct result *res;
	unsigned int i;
	size_t j;

	sum.rounds = calloc(r->nr_jobs, o->rounds * sizeof(*sum.rounds));
	if (nr_latencies)
		sum.latency = calloc(nr_latencies, sizeof(*sum.latency));
	if (!sum.rounds || (nr_latencies && !sum.latency))
		goto free_sum;
	sum.pieces = sum.latency ? sum.latency + 1 : NULL;
	for (i = 0; i < r->nr_jobs; i++) {
		res = &r->results[i];
		sum.ios += res->ios;
		sum.flags &= res->flags;
		sum.latency_is_ns = res->latency_is_ns;
		sum.latency_overhead += res->latency_overhead / r->nr_jobs;
		for (j = 0; j < nr_latencies; j++)
			add_latencies(&sum.latency[j], &res->latency[j]);
		add_pmu(sum.pmu, res->pmu, r->nr_jobs);
		memcpy(sum.rounds + sum.nr_rounds, res->rounds,
		       res->nr_rounds * sizeof(*sum.rounds));
		sum.nr_rounds += res->nr_rounds;
	}
	normal_details(&job, out);
free_sum:
	free(sum.latency);
	free(sum.rounds);
}

static void normal_devices(const struct report *r, FILE *out)
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

/**
 * report_normal() - print a table
 * @r: what to report
 * @out: where to
 */
void report_normal(const struct report *r, FILE *out)
{
	const struct options *o = r->o;
	const bool group = o->group_reporting && r->nr_jobs > 1;
	struct line total = { 0 };
	unsigned int i;

	fprintf(out, "%s: ", o->name ? o->name : "ioloop");
	options_summary(o, out);
	fprintf(out, "; ended by %s\n", r->stopped_by);
	fprintf(out, "%5s %4s %-20s %8s %8s %8s %10s %9s %9s %10s\n", "job",
		"cpu", "device", "I/Os", "seconds", "IOPS", "MB", "MB/s",
		"us/I/O", "ticks/I/O");
	for (i = 0; i < r->nr_jobs; i++) {
		if (!group)
			normal_job(&r->jobs[i], out);
		add_job(&total, &r->jobs[i]);
	}
	if (r->nr_jobs > 1) {
		if (o->numjobs > 1 && !group)
			normal_devices(r, out);
		print_line("total", "", "", &total, out);
		if (group)
			normal_group(r, out);
		fprintf(out, "The first job ended %.6f s before the last.\n",
			(double)(total.end_ns - total.first_end_ns) / 1e9);
	}
	/* Both are counted in timer ticks: over a short time they say nothing. */
	if (total.end_ns - total.start_ns < MIN_CPU_TIME_NS)
		return;
	if (total.ios)
		fprintf(out, "Processor time per I/O: user %.3f us, system %.3f us.\n",
			(double)total.cpu_ns[0] / (double)total.ios / 1e3,
			(double)total.cpu_ns[1] / (double)total.ios / 1e3);
	if (r->idle_percent >= 0)
		fprintf(out, "Machine idle: %.1f %%.\n", r->idle_percent);
}

/**
 * report_errors() - print what failed, one line for each job
 * @r: what to report
 * @out: where to
 */
void report_errors(const struct report *r, FILE *out)
{
	const struct io_error *e;
	unsigned int i;

	for (i = 0; i < r->nr_jobs; i++) {
		e = &r->results[i].first_error;
		if (!r->results[i].errors)
			continue;
		fprintf(out, "ioloop: job %u", i);
		if (r->jobs[i].dev)
			fprintf(out, ": %s", r->jobs[i].dev->name);
		fprintf(out, ": %s", e->op);
		if (e->size)
			fprintf(out, " of %" PRIu64 " bytes at offset %" PRIu64,
				e->size, e->offset);
		if (e->errnum)
			fprintf(out, ": %s (errno %d)", strerror(e->errnum),
				e->errnum);
		else
			fprintf(out, ": only %" PRId64 " bytes", e->result);
		if (r->results[i].errors > 1)
			fprintf(out, "; %" PRIu64 " errors in all",
				r->results[i].errors);
		fputc('\n', out);
	}
}
