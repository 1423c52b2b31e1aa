// SPDX-License-Identifier: GPL-2.0
/*
 * Writing what was counted: one JSON object per line, to a temporary file that
 * replaces the output only when it is complete.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch.h"
#include "calls.h"
#include "flat.h"
#include "flow.h"
#include "model.h"
#include "report.h"
#include "shared.h"

#define FORMAT_VERSION	4

static const char *const node_kinds[] = {
	[NODE_ROOT]	= "root",
	[NODE_CALL]	= "call",
	[NODE_SYSCALL]	= "syscall",
	[NODE_ENTRY]	= "entry",
};

static const char *const fault_names[] = {
	[FAULT_NESTED]	  = "nested_begin",
	[FAULT_NO_BEGIN]  = "end_without_begin",
	[FAULT_NO_END]	  = "region_not_ended",
	[FAULT_NO_MARKER] = "no_begin",
	[FAULT_LOST]	  = "not_followed",
};

static const char *const fault_texts[] = {
	[FAULT_NESTED]	  = "BEGIN marker inside a region: regions do not nest",
	[FAULT_NO_BEGIN]  = "END marker without a BEGIN before it",
	[FAULT_NO_END]	  = "the guest ended inside a region: no END marker",
	[FAULT_NO_MARKER] = "no BEGIN marker was executed: nothing was counted",
	[FAULT_LOST]	  = "a flat region has more tasks or interrupts than can be followed",
};

static const char *const model_states[] = {
	[MODEL_WARM]	= "warm",
	[MODEL_COLD]	= "cold",
};

static const char *const model_counts[] = {
	[MODEL_L1I]	    = "l1i",
	[MODEL_L1D]	    = "l1d",
	[MODEL_L2]	    = "l2",
	[MODEL_ITLB]	    = "itlb",
	[MODEL_DTLB]	    = "dtlb",
	[MODEL_CONDITIONAL] = "conditional",
	[MODEL_INDIRECT]    = "indirect",
	[MODEL_RETURN]	    = "returns",
};

static const char *const block_counts[] = {
#define ACCESS_COUNT(name, ...) \
	[COUNT_##name] = #name,
#define BLOCK_COUNT(name, ...) \
	[COUNT_##name] = #name,
#include "counts.h"
};

static const char *const event_counts[] = {
#define EVENT_COUNT(name) \
	[COUNT_##name] = #name,
#include "counts.h"
};

static const char *const follow_counts[] = {
#define FOLLOW_COUNT(name, ...) \
	[COUNT_##name] = #name,
#include "counts.h"
};

static char *path, *tmp_path;
static FILE *out;
static int next_block;

/**
 * report_open() - make sure, at the start, that the output can be written
 * @name: its path
 *
 * Return: false after a message if it cannot.
 */
bool report_open(const char *name)
{
	path = strdup(name);
	tmp_path = malloc(strlen(name) + sizeof(".tmp"));
	if (!path || !tmp_path) {
		fputs("pathcount: out of memory\n", stderr);
		return false;
	}
	sprintf(tmp_path, "%s.tmp", name);
	out = fopen(tmp_path, "w");
	if (!out) {
		fprintf(stderr, "pathcount: cannot write %s: %s\n", tmp_path,
			strerror(errno));
		return false;
	}
	return true;
}

static void write_block(struct block *block)
{
	unsigned int i;

	if (block->id >= 0)
		return;
	block->id = next_block++;
	fprintf(out, "{\"type\":\"block\",\"block\":%d,\"addr\":\"0x%" PRIx64
		"\",\"lens\":[", block->id, block->addr);
	for (i = 0; i < block->nr; i++)
		fprintf(out, "%s%u", i ? "," : "", block->lens[i]);
	fprintf(out, "],\"kinds\":\"%.*s\"}\n", (int)block->nr, block->kinds);
}

static bool is_empty(const struct tally *tally)
{
	return !tally->times && !tally_has_counts(tally);
}

/* Blocks come before the nodes that name them. */
static void write_blocks(const struct node *node)
{
	struct record *rec;

	for (; node; node = node->sibling) {
		for (rec = node->records; rec; rec = rec->next_node)
			if (!is_empty(&rec->quiet) ||
			    !is_empty(&rec->disturbed))
				write_block(rec->block);
		write_blocks(node->child);
	}
}

static void write_counts(const struct node *node, const char *name,
			 size_t which)
{
	const struct record *rec;
	const char *comma = "";
	unsigned int i, nr;

	fprintf(out, ",\"%s\":[", name);
	for (rec = node->records; rec; rec = rec->next_node) {
		const struct tally *sum =
			(const void *)((const char *)rec + which);

		if (is_empty(sum))
			continue;
		fprintf(out, "%s[%d,%u,%" PRIu64, comma, rec->block->id,
			rec->executed, sum->times);
		nr = NR_BLOCK_COUNTS;
		while (nr && !sum->counts[nr - 1])
			nr--;
		for (i = 0; i < nr; i++)
			fprintf(out, ",%" PRIu64, sum->counts[i]);
		fputc(']', out);
		comma = ",";
	}
	fputc(']', out);
}

static void write_nodes(const struct node *node, unsigned int region)
{
	for (; node; node = node->sibling) {
		fprintf(out, "{\"type\":\"node\",\"region\":%u,\"node\":%u,",
			region, node->id);
		if (node->parent)
			fprintf(out, "\"parent\":%u,", node->parent->id);
		else
			fputs("\"parent\":null,", out);
		fprintf(out, "\"context\":%u,\"kind\":\"%s\",\"addr\":\"0x%"
			PRIx64 "\"", node->context, node_kinds[node->kind],
			node->addr);
		if (node->kind == NODE_CALL)
			fprintf(out, ",\"site\":\"0x%" PRIx64 "\"",
				node->site);
		write_counts(node, "median", offsetof(struct record, round));
		write_counts(node, "quiet", offsetof(struct record, quiet));
		write_counts(node, "disturbed",
			     offsetof(struct record, disturbed));
		fputs("}\n", out);
		write_nodes(node->child, region);
	}
}

/* No round is under way, so record.round holds the median round. */
static void write_region(struct region *region, unsigned int number)
{
	int median = flow_median_round(region);
	unsigned int i;

	fprintf(out, "{\"type\":\"region\",\"region\":%u,\"rounds\":%u,"
		"\"median_round\":", number, region->nr_rounds);
	if (median < 0) {
		fputs("null}\n", out);
		return;
	}
	fprintf(out, "%d}\n", median);
	for (i = 0; i < region->rounds[median].nr_samples; i++) {
		const struct sample *sample =
			&region->rounds[median].samples[i];

		sample->record->round = sample->tally;
	}
}

static void write_contexts(const struct region *region, unsigned int number)
{
	static const char *const base[] = {
		[CONTEXT_TASK]	= "task",
		[CONTEXT_OTHER]	= "other",
	};
	unsigned int i;

	for (i = 0; i < region->nr_contexts; i++) {
		const struct context *context = &region->contexts[i];

		fprintf(out, "{\"type\":\"context\",\"region\":%u,"
			"\"context\":%u,", number, i);
		if (i < NR_BASE_CONTEXTS)
			fprintf(out, "\"kind\":\"%s\"}\n", base[i]);
		else
			fprintf(out, "\"kind\":\"entry\",\"parent\":%d,"
				"\"addr\":\"0x%" PRIx64 "\"}\n",
				context->parent, context->entry);
	}
}

static void write_places(const char *name, const unsigned int *places)
{
	fprintf(out, ",\"%s\":{\"code_user\":%u,\"code_kernel\":%u,"
		"\"data_user\":%u,\"data_kernel\":%u}", name,
		places[PLACES_CODE_USER], places[PLACES_CODE_KERNEL],
		places[PLACES_DATA_USER], places[PLACES_DATA_KERNEL]);
}

static void write_model(const struct model_round *model)
{
	unsigned int i, k;

	fputs(",\"model\":{", out);
	for (i = 0; i < NR_MODEL_STATES; i++) {
		fprintf(out, "%s\"%s\":{", i ? "," : "", model_states[i]);
		for (k = 0; k < NR_MODEL_COUNTS; k++)
			fprintf(out, "%s\"%s\":%" PRIu64, k ? "," : "",
				model_counts[k], model->counts[i][k]);
		fputc('}', out);
	}
	fputc('}', out);
}

static void write_named(const char *const *names, const uint64_t *counts,
			unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		fprintf(out, ",\"%s\":%" PRIu64, names[i], counts[i]);
}

static void write_round(const struct round *round, unsigned int region,
			unsigned int number)
{
	unsigned int i;

	fprintf(out, "{\"type\":\"round\",\"region\":%u,\"round\":%u,"
		"\"quiet\":%s", region, number,
		round_is_quiet(round) ? "true" : "false");
	write_named(event_counts, round->counts, NR_EVENT_COUNTS);
	fputs(",\"contexts\":[", out);
	for (i = 0; i < round->nr_shares; i++)
		fprintf(out, "%s[%u,%" PRIu64 ",%" PRIu64 "]", i ? "," : "",
			round->shares[i].context, round->shares[i].user,
			round->shares[i].kernel);
	fputc(']', out);
	if (round->has_lines) {
		write_places("lines", round->lines);
		write_places("pages", round->pages);
		write_named(follow_counts, round->follow_counts,
			    NR_FOLLOW_COUNTS);
	}
	if (round->model)
		write_model(round->model);
	fputs("}\n", out);
}

static int compare_rows(const void *a, const void *b)
{
	const struct flat_row *x = a, *y = b;

	if (x->block->addr != y->block->addr)
		return x->block->addr < y->block->addr ? -1 : 1;
	if (x->block != y->block)
		return x->block->id < y->block->id ? -1 : 1;
	if (x->executed != y->executed)
		return x->executed < y->executed ? -1 : 1;
	return (int)x->context - (int)y->context;
}

/* Equal rows are one row in the output. */
static unsigned int add_up(struct flat_row *rows, unsigned int nr)
{
	unsigned int i, kept = 0;

	qsort(rows, nr, sizeof(*rows), compare_rows);
	for (i = 0; i < nr; i++) {
		if (kept && !compare_rows(&rows[kept - 1], &rows[i]))
			rows[kept - 1].times += rows[i].times;
		else
			rows[kept++] = rows[i];
	}
	return kept;
}

static void write_lengths(const struct flat_region *region, unsigned int cpu)
{
	unsigned int i;

	fprintf(out, ",\"cpu\":%u,\"left_out\":%u,\"lengths\":[", cpu,
		region->left_out);
	for (i = 0; i < region->rounds; i++)
		fprintf(out, "%s%" PRIu64, i ? "," : "", region->lengths[i]);
	fputc(']', out);
}

static void write_each(const struct flat_region *region)
{
	const struct flat_round *round;
	const char *comma;
	unsigned int i, k;

	fputs(",\"each\":[", out);
	for (i = 0; i < region->rounds; i++) {
		round = &region->each[i];
		fprintf(out, "%s[%" PRIu64 ",%" PRIu64 ",%u,[", i ? "," : "",
			round->instructions, round->iterations,
			round->switches);
		comma = "";
		for (k = NR_BASE_CONTEXTS; k < flat_nr_contexts; k++) {
			if (!round->entries[k])
				continue;
			fprintf(out, "%s[%u,%u]", comma, k, round->entries[k]);
			comma = ",";
		}
		fputs("]]", out);
	}
	fputc(']', out);
}

/* A part's number is its place in the list. */
static void write_parts(struct parts *parts)
{
	const char *comma = "";
	unsigned int i;

	parts_fold(parts);
	fputs(",\"parts\":[", out);
	for (i = 0; i < parts->nr; i++) {
		const struct part *part = parts->list[i];
		int parent = part->parent == &parts->top ? -1 :
							   part->parent->id;

		if (part->id < 0)
			continue;
		fprintf(out, "%s[%d,\"%c\",\"0x%" PRIx64 "\",\"0x%" PRIx64
			"\",%" PRId64 "]", comma, parent, part->kind,
			part->addr, part->site, part->instructions);
		comma = ",";
	}
	fputc(']', out);
}

static void write_flat(struct flat_region *region, unsigned int number,
		       unsigned int cpu)
{
	const char *comma = "";
	unsigned int i, nr;

	for (i = 0; i < region->nr_rows; i++)
		write_block(region->rows[i].block);
	nr = add_up(region->rows, region->nr_rows);
	fprintf(out, "{\"type\":\"flat\",\"region\":%u,\"rounds\":%u,"
		"\"switches\":%u,\"iterations\":%" PRIu64, number,
		region->rounds, region->switches, region->iterations);
	if (flat_nr_cpus > 1)
		write_lengths(region, cpu);
	else
		write_each(region);
	fputs(",\"entries\":[", out);
	for (i = NR_BASE_CONTEXTS; i < flat_nr_contexts; i++) {
		fprintf(out, "%s[%u,\"0x%" PRIx64 "\",%u]", comma, i,
			flat_entry[i], region->entries[i]);
		comma = ",";
	}
	fputs("],\"counts\":[", out);
	comma = "";
	for (i = 0; i < nr; i++) {
		const struct flat_row *row = &region->rows[i];

		if (!row->times)
			continue;
		fprintf(out, "%s[%d,%u,%u,%" PRId64 "]", comma, row->block->id,
			row->executed, row->context, row->times);
		comma = ",";
	}
	fputc(']', out);
	if (flat_nr_cpus == 1)
		write_parts(&region->parts);
	fputs("}\n", out);
}

static void write_shared(const struct shared_region *region,
			 unsigned int number)
{
	unsigned int i;

	for (i = 0; i < region->nr; i++) {
		const struct access *access = region->accesses[i];

		fprintf(out, "{\"type\":\"access\",\"region\":%u,"
			"\"line\":\"0x%" PRIx64 "\",\"virt\":\"0x%" PRIx64
			"\",\"cpu\":%u,\"pc\":\"0x%" PRIx64
			"\",\"kind\":\"%c\",\"context\":%u,\"store\":%s,"
			"\"bytes\":\"0x%" PRIx64 "\",\"times\":%" PRIu64
			",\"rounds\":%u}\n",
			number, access->line, access->virt, access->cpu,
			access->site->pc, access->site->kind, access->context,
			access->store ? "true" : "false", access->bytes,
			access->times, access->rounds);
	}
}

/* Blocks come before what counts them. */
static void write_calls(const struct calls_region *region)
{
	const struct calls_count *count;
	const char *comma = "";
	unsigned int i;

	if (!region->nr_buckets)
		return;
	for (i = 0; i < region->nr_blocks; i++)
		write_block(region->blocks[i]);
	for (i = 0; i < region->nr_buckets; i++) {
		const struct bucket *bucket = region->buckets[i];

		fprintf(out, "{\"type\":\"bucket\",\"bucket\":%u,\"kind\":\"%c\","
			"\"addr\":\"0x%" PRIx64 "\",\"beside\":%s,\"user\":%s,"
			"\"times\":%" PRIu64 ",\"instructions\":%" PRId64
			",\"before\":%" PRId64 "}\n", bucket->id, bucket->kind,
			bucket->addr, bucket->beside ? "true" : "false",
			bucket->user ? "true" : "false", bucket->times,
			bucket->instructions, bucket->before);
	}
	fprintf(out, "{\"type\":\"calls\",\"begun\":%" PRIu64 ",\"tried\":%"
		PRId64 ",\"iterations\":%" PRIu64 ",\"switches\":%u,"
		"\"unmatched\":%u,\"last\":%" PRId64 ",\"counts\":[",
		region->begun, region->tried, region->iterations,
		region->switches, region->unmatched, region->last);
	for (i = 0; i < region->nr_blocks; i++) {
		for (count = region->blocks[i]->calls; count;
		     count = count->next) {
			if (!count->times)
				continue;
			fprintf(out, "%s[%d,%u,%u,%" PRId64 "]", comma,
				region->blocks[i]->id, count->executed,
				count->bucket->id, count->times);
			comma = ",";
		}
	}
	fputs("]}\n", out);
}

static void write_end(const struct report_info *info)
{
	const char *comma = "";
	unsigned int i;

	fputs("{\"type\":\"end\"", out);
	for (i = 0; i < NR_FAULTS; i++)
		fprintf(out, ",\"%s\":%u", fault_names[i], info->faults[i]);
	fputs(",\"errors\":[", out);
	for (i = 0; i < NR_FAULTS; i++) {
		if (!info->faults[i])
			continue;
		fprintf(out, "%s\"%s\"", comma, fault_texts[i]);
		comma = ",";
	}
	fputs("]}\n", out);
}

/**
 * report_write() - write the output and put it in its place
 * @info: what it says besides the regions
 *
 * Return: false after a message if that failed.
 */
bool report_write(const struct report_info *info)
{
	unsigned int i, k;

	fprintf(out, "{\"type\":\"pathcount\",\"format\":%d,\"target\":"
		"\"%s\",\"api\":{\"min\":%d,\"current\":%d,\"used\":%d},"
		"\"lines\":%u,\"counts\":[", FORMAT_VERSION, arch->name,
		info->api_min, info->api_cur, info->api_used, info->lines);
	for (i = 0; i < NR_BLOCK_COUNTS; i++)
		fprintf(out, "%s\"%s\"", i ? "," : "", block_counts[i]);
	fputs("]}\n", out);
	for (i = 0; i < NR_REGIONS; i++) {
		struct region *region = flow_regions[i];

		if (!region || !region->nr_rounds)
			continue;
		write_region(region, i);
		write_contexts(region, i);
		for (k = 0; k < region->nr_rounds; k++)
			write_round(&region->rounds[k], i, k);
		write_blocks(region->roots);
		write_nodes(region->roots, i);
	}
	for (i = 0; i < NR_REGIONS; i++) {
		for (k = 0; flat_regions[i] && k < flat_nr_cpus; k++)
			write_flat(&flat_regions[i][k], i, k);
		if (shared_regions[i])
			write_shared(shared_regions[i], i);
	}
	write_calls(&calls_region);
	write_end(info);
	if (ferror(out) | fclose(out) || rename(tmp_path, path)) {
		fprintf(stderr, "pathcount: cannot write %s: %s\n", path,
			strerror(errno));
		unlink(tmp_path);
		return false;
	}
	return true;
}
