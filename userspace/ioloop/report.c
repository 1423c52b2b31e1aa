// SPDX-License-Identifier: GPL-2.0
/*
 * The report: a table for people, JSON for programs.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "report.h"

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

static void json_flags(const struct result *res, FILE *out)
{
	static const char *const names[] = {
		"hipri", "nowait", "dsync", "fixedbufs", "registerfiles",
		"sqthread_poll", "single_issuer", "defer_taskrun"
	};
	const char *comma = "";
	size_t i;

	fputs(", \"flags\": [", out);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (!(res->flags & 1u << i))
			continue;
		fprintf(out, "%s\"%s\"", comma, names[i]);
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
	return middle < (double)l->max ? middle : (double)l->max;
}

static const double percents[] = { 50, 90, 99, 99.9, 99.99 };

static void json_latency(const struct latency *l, double ns, FILE *out)
{
	const uint64_t n = latency_count(l);
	unsigned int i;

	fprintf(out, "{\"count\": %" PRIu64, n);
	if (n) {
		fprintf(out, ", \"mean_ns\": %.1f, \"max_ns\": %.1f, \"percentiles_ns\": {",
			(double)l->sum / (double)n * ns, (double)l->max * ns);
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
		res->ios, job->dev ? res->ios * job->o->bs : 0, res->errors);
	json_error(res, out);
	fprintf(out, ", \"again\": %" PRIu64 ",\n      \"ns\": %" PRIu64
		     ", \"tsc\": %" PRIu64 ",\n", res->again, s.ns, s.tsc);
	json_latencies(job, res, s.tsc ? (double)s.ns / (double)s.tsc : 0, out);
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
	fprintf(out, "  \"stopped_by\": \"%s\",\n  \"ok\": %s\n}\n",
		r->stopped_by, r->ok ? "true" : "false");
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
	fprintf(out, "      %s ns: mean %.0f,", what,
		(double)l->sum / (double)n * ns);
	for (i = 0; i < ARRAY_SIZE(percents); i++)
		fprintf(out, " %g%% %.0f,", percents[i],
			percentile(l, n, percents[i]) * ns);
	fprintf(out, " max %.0f\n", (double)l->max * ns);
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
	fprintf(out, "      noting a latency takes %.1f ns\n",
		res->latency_overhead * ns);
}

static void normal_line(const char *job, const char *cpu, const char *name,
			uint64_t ios, uint64_t bytes, double seconds,
			double ns, double ticks, FILE *out)
{
	fprintf(out, "%5s %4s %-20s %12" PRIu64 " %9.3f ", job, cpu, name, ios,
		seconds);
	if (!ios || seconds <= 0) {
		fprintf(out, "%12s %10s %10s %10s\n", "-", "-", "-", "-");
		return;
	}
	fprintf(out, "%12.0f %10.2f %10.1f %10.1f\n", (double)ios / seconds,
		(double)bytes / seconds / 1e6, ns / (double)ios,
		ticks / (double)ios);
}

/**
 * report_normal() - print a table
 * @r: what to report
 * @out: where to
 */
void report_normal(const struct report *r, FILE *out)
{
	const struct options *o = r->o;
	struct sums s, total = { 0, 0 };
	uint64_t ios = 0, bytes = 0, longest = 0;
	char job[16], cpu[16];
	unsigned int i;

	fprintf(out, "ioloop %s: ", o->engine->name);
	if (o->nr_files)
		options_summary(o, out);
	fprintf(out, "ended by %s\n", r->stopped_by);
	fprintf(out, "%5s %4s %-20s %12s %9s %12s %10s %10s %10s\n", "job",
		"cpu", "device", "I/Os", "seconds", "I/Os/s", "MB/s", "ns/I/O",
		"ticks/I/O");
	for (i = 0; i < r->nr_jobs; i++) {
		const struct job *j = &r->jobs[i];
		const struct result *res = &r->results[i];

		s = add_up(res);
		snprintf(job, sizeof(job), "%u", i);
		snprintf(cpu, sizeof(cpu), j->cpu < 0 ? "-" : "%d", j->cpu);
		normal_line(job, cpu, j->dev ? j->dev->name : "-", res->ios,
			    j->dev ? res->ios * o->bs : 0, (double)s.ns / 1e9,
			    (double)s.ns, (double)s.tsc, out);
		if (o->rounds > 1)
			normal_rounds(res, out);
		if (res->latency && s.tsc)
			normal_latencies(j, res, (double)s.ns / (double)s.tsc,
					 out);
		ios += res->ios;
		bytes += j->dev ? res->ios * o->bs : 0;
		total.ns += s.ns;
		total.tsc += s.tsc;
		if (s.ns > longest)
			longest = s.ns;
	}
	if (r->nr_jobs > 1)
		normal_line("total", "", "", ios, bytes, (double)longest / 1e9,
			    (double)total.ns, (double)total.tsc, out);
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
