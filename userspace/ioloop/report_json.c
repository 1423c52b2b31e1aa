// SPDX-License-Identifier: GPL-2.0
/*
 * The report for programs.
 */
#include <inttypes.h>
#include <string.h>

#include "arch.h"
#include "compiler.h"
#include "figures.h"
#include "numbers.h"
#include "option_table.h"
#include "report_json.h"
#include "run.h"

/* Bytes that are not UTF-8 become U+FFFD. */
static void json_string(const char *s, FILE *out)
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

/**
 * json_options() - print the options in effect as a JSON object
 * @o: the options
 * @out: where to
 */
void json_options(const struct options *o, FILE *out)
{
	const struct option *opt;
	const char *value;
	uint64_t n;
	size_t i;

	fputc('{', out);
	for (i = 0; i < nr_options; i++) {
		opt = &option_table[i];
		fprintf(out, "%s\"%s\": ", i ? ", " : "", opt->name);
		if (opt->kind == TEXT) {
			value = *option_text((struct options *)o, opt);
			if (value)
				json_string(value, out);
			else
				fputs("null", out);
			continue;
		}
		n = *option_number((struct options *)o, opt);
		switch (opt->kind) {
		case NAME:
			json_string(opt->names[n], out);
			break;
		case BOOL:
			fputs(n ? "true" : "false", out);
			break;
		case TIME:
			fprintf(out, "%" PRIu64 ".%09" PRIu64, n / NS_PER_S,
				n % NS_PER_S);
			break;
		default:
			fprintf(out, "%" PRIu64, n);
		}
	}
	fputc('}', out);
}

static void json_counters(const struct counters *c, FILE *out)
{
	int i;

	if (!c->known)
		return;
	for (i = 0; i < NR_COUNTERS; i++)
		fprintf(out, "%s\"%s\": %" PRIu64, i ? ", " :
			",\n     \"counters\": {", counter_names[i],
			c->value[i]);
	for (i = 0; i < NR_SIZES; i++)
		fprintf(out, "%s%" PRIu64, i ? ", " : "},\n     \"sizes\": [",
			c->sizes[i]);
	fputs("],\n     \"seen\": ", out);
	json_string(c->seen ? c->seen : "", out);
}

static void json_devices(const struct run *r, FILE *out)
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
			fprintf(out, "%" PRIu64, dev->logical_block_size);
		else
			fputs("null", out);
		json_counters(&dev->counters, out);
		fputc('}', out);
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

static void json_latency(const struct latency *l, double ns, FILE *out)
{
	const uint64_t n = latency_count(l);
	unsigned int i;

	fprintf(out, "{\"count\": %" PRIu64, n);
	if (n) {
		fprintf(out, ", \"mean_ns\": %.1f, \"max_ns\": %.1f",
			(double)l->sum / (double)n * ns, (double)l->max * ns);
		fputs(", \"percentiles_ns\": {", out);
		for (i = 0; i < NR_PERCENTS; i++)
			fprintf(out, "%s\"%g\": %.1f", i ? ", " : "",
				percents[i],
				latency_percentile(l, n, percents[i]) * ns);
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
	struct sums s = figures_sums(res);

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
	json_latencies(job, res, figures_tick(s), out);
	json_rounds(res, out);
}

/**
 * report_json() - print everything as one JSON object
 * @r: what to report
 * @out: where to
 */
void report_json(const struct run *r, FILE *out)
{
	unsigned int i;

	fputs("{\n  \"schema\": 2,\n  \"program\": \"ioloop\",\n"
	      "  \"version\": \"" IOLOOP_VERSION "\",\n  \"options\": ", out);
	json_options(r->o, out);
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
