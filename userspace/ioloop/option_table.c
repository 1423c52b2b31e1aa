// SPDX-License-Identifier: GPL-2.0
/*
 * All options.
 */
#include <stddef.h>
#include <string.h>

#include "compiler.h"
#include "engines.h"
#include "numbers.h"
#include "option_table.h"

const char *const rw_names[] = {
	"read", "write", "randread", "randwrite", NULL
};

const char *const pattern_names[] = {
	"sequential", "random", "fixed", NULL
};

static const char *const format_names[] = { "normal", "json", NULL };

/* The engines with a ring. */
#define URING	"io_uring io_uring_cmd"

#define OPT(name, kind, ...)	\
	{ #name, kind, offsetof(struct options, name), __VA_ARGS__ }

const struct option option_table[] = {
	OPT(filename, TEXT, 0, 0, NULL, NULL),
	OPT(ioengine, NAME, 0, 0, engine_names, NULL),
	OPT(rw, NAME, 0, 0, rw_names, NULL),
	OPT(pattern, NAME, 0, 0, pattern_names, NULL),
	OPT(bs, SIZE, 1, MAX_BS, NULL, NULL),
	OPT(iodepth, SIZE, 1, 65536, NULL, NULL),
	OPT(offset, SIZE, 0, INT64_MAX, NULL, NULL),
	OPT(size, SIZE, 0, INT64_MAX, NULL, NULL),
	OPT(direct, BOOL, 0, 1, NULL, NULL),
	OPT(invalidate, BOOL, 0, 1, NULL, NULL),
	OPT(hipri, BOOL, 0, 1, NULL, "vsync io_uring io_uring_cmd biogen"),
	OPT(nowait, BOOL, 0, 1, NULL, "vsync"),
	OPT(dsync, BOOL, 0, 1, NULL, "vsync libaio io_uring"),
	OPT(atomic, BOOL, 0, 1, NULL, "vsync libaio io_uring"),
	OPT(uncached, BOOL, 0, 1, NULL, "vsync libaio io_uring"),
	OPT(segments, SIZE, 0, MAX_SEGMENTS, NULL, "vsync"),
	OPT(fsync, SIZE, 0, INT64_MAX, NULL, "streams"),
	OPT(append, BOOL, 0, 1, NULL, "streams"),
	OPT(streams, SIZE, 1, 1024, NULL, NULL),
	OPT(fixedbufs, BOOL, 0, 1, NULL, URING),
	OPT(onebuf, BOOL, 0, 1, NULL, URING),
	OPT(registerfiles, BOOL, 0, 1, NULL, URING),
	OPT(registermem, BOOL, 0, 1, NULL, "sync libaio io_uring"),
	OPT(sqthread_poll, BOOL, 0, 1, NULL, URING),
	OPT(one_ring, BOOL, 0, 1, NULL, "io_uring"),
	OPT(link, BOOL, 0, 1, NULL, "io_uring"),
	OPT(single_issuer, BOOL, 0, 1, NULL, URING),
	OPT(defer_taskrun, BOOL, 0, 1, NULL, URING),
	OPT(userspace_reap, BOOL, 0, 1, NULL, "libaio"),
	OPT(split, SIZE, 0, MAX_SPLIT, NULL, "libaio"),
	OPT(number_ios, SIZE, 0, INT64_MAX, NULL, NULL),
	OPT(runtime, TIME, 0, 1000000 * NS_PER_S, NULL, NULL),
	OPT(time_based, BOOL, 0, 1, NULL, NULL),
	OPT(rounds, SIZE, 1, 1000000, NULL, NULL),
	OPT(repeat, SIZE, 1, 1000000, NULL, NULL),
	OPT(layouts, SIZE, 1, 1000, NULL, NULL),
	OPT(first_layout, SIZE, 0, 1000, NULL, NULL),
	OPT(warmup_ios, SIZE, 0, INT64_MAX, NULL, NULL),
	OPT(drain, TIME, 0, 3600 * NS_PER_S, NULL, NULL),
	OPT(after_batch, BOOL, 0, 1, NULL, NULL),
	OPT(after_tick, BOOL, 0, 1, NULL, NULL),
	OPT(rtprio, SIZE, 0, 99, NULL, NULL),
	OPT(prioclass, SIZE, 0, 3, NULL, NULL),
	OPT(prio, SIZE, 0, 7, NULL, NULL),
	OPT(hugepages, BOOL, 0, 1, NULL, NULL),
	OPT(scatter, BOOL, 0, 1, NULL, NULL),
	OPT(mem_offset, SIZE, 0, 4095, NULL, NULL),
	OPT(numjobs, SIZE, 1, 4096, NULL, NULL),
	OPT(thread, BOOL, 0, 1, NULL, NULL),
	OPT(share_file, BOOL, 0, 1, NULL, NULL),
	OPT(cpus_allowed, TEXT, 0, 0, NULL, NULL),
	OPT(pmu, BOOL, 0, 1, NULL, NULL),
	OPT(perf_control, TEXT, 0, 0, NULL, NULL),
	OPT(region, SIZE, 0, 65535, NULL, NULL),
	OPT(calibrate, BOOL, 0, 1, NULL, NULL),
	OPT(output_format, NAME, 0, 0, format_names, NULL),
	OPT(output, TEXT, 0, 0, NULL, NULL),
};

const size_t nr_options = ARRAY_SIZE(option_table);

/* --output-format and --output_format are the same. */
static bool same_name(const char *typed, size_t len, const char *name)
{
	size_t i;

	for (i = 0; i < len; i++)
		if ((typed[i] == '-' ? '_' : typed[i]) != name[i])
			return false;
	return !name[len];
}

/**
 * option_find() - the option of a name
 * @name: the name as typed, without the dashes in front
 * @len: its length
 *
 * Return: the option, or NULL.
 */
const struct option *option_find(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(option_table); i++)
		if (same_name(name, len, option_table[i].name))
			return &option_table[i];
	return NULL;
}

/* Every option's name fits. */
#define MAX_NAME	32

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * The number of letters to change, remove, insert or swap with the next to turn
 * one name into the other.
 */
static size_t distance(const char *a, size_t len, const char *b)
{
	size_t d[MAX_NAME + 1][MAX_NAME + 1];
	const size_t other = strlen(b);
	size_t i, j, differ;

	if (len > MAX_NAME || other > MAX_NAME)
		return MAX_NAME;
	for (i = 0; i <= len; i++)
		d[i][0] = i;
	for (j = 0; j <= other; j++)
		d[0][j] = j;
	for (i = 1; i <= len; i++) {
		for (j = 1; j <= other; j++) {
			differ = (a[i - 1] == '-' ? '_' : a[i - 1]) != b[j - 1];
			d[i][j] = least(d[i - 1][j - 1] + differ,
					least(d[i - 1][j], d[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[len][other];
}

/**
 * option_nearest() - the option with the most similar name
 * @name: the name as typed, without the dashes in front
 * @len: its length
 *
 * Return: its name, or NULL if none is similar.
 */
const char *option_nearest(const char *name, size_t len)
{
	size_t best = len < 6 ? 2 : len / 3 + 1, i, d;
	const char *found = NULL;

	for (i = 0; i < ARRAY_SIZE(option_table); i++) {
		d = distance(name, len, option_table[i].name);
		if (d >= best)
			continue;
		best = d;
		found = option_table[i].name;
	}
	return found;
}
