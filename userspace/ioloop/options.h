/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The command line, after reading and checking.
 */
#ifndef IOLOOP_OPTIONS_H
#define IOLOOP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define MAX_CPUS	4096
#define MAX_DEVICES	256
#define MAX_SPLIT	1024
#define MAX_NODES	1024
#define MAX_SIZES	4096
#define MAX_BS		(UINT32_C(1) << 30)

/* RW_READWRITE is RW_MIXED as soon as it has been read. */
enum rw {
	RW_READ, RW_WRITE, RW_MIXED, RW_RANDREAD, RW_RANDWRITE, RW_RANDMIXED,
	RW_READWRITE
};

enum pattern { PATTERN_SEQUENTIAL, PATTERN_RANDOM, PATTERN_FIXED };
enum format { FORMAT_NORMAL, FORMAT_JSON };

/**
 * struct options - what to do
 *
 * Every number is a uint64_t, so that one table (option_table.c) can read,
 * check and report all of them. The names are those of the options.
 *
 * @bs: with @bsrange and @bssplit the largest size
 * @files: the names in @filename, taken apart
 * @cpus: the processors in @cpus_allowed, taken apart
 * @sizes: what the size of an I/O is drawn from, each with the same chance
 * @nr_sizes: how many these are; 0: it is always @bs
 * @min_bs: the smallest size
 * @engine: the engine that @ioengine is the number of
 */
struct options {
	char *name;
	char *filename;
	uint64_t ioengine;
	uint64_t rw;
	uint64_t rwmixread;
	uint64_t randrepeat;
	uint64_t randseed;
	uint64_t norandommap;
	uint64_t pattern;
	uint64_t bs;
	char *bsrange;
	char *bssplit;
	uint64_t iodepth;
	uint64_t iodepth_batch;
	uint64_t iodepth_batch_complete_min;
	uint64_t iodepth_batch_complete_max;
	uint64_t offset;
	uint64_t size;
	uint64_t direct;
	uint64_t invalidate;
	uint64_t hipri;
	uint64_t nowait;
	uint64_t dsync;
	uint64_t fixedbufs;
	uint64_t registerfiles;
	uint64_t registermem;
	uint64_t sqthread_poll;
	uint64_t single_issuer;
	uint64_t defer_taskrun;
	uint64_t userspace_reap;
	uint64_t split;
	uint64_t optional;
	uint64_t number_ios;
	uint64_t runtime;
	uint64_t time_based;
	uint64_t rounds;
	uint64_t warmup_ios;
	uint64_t drain;
	uint64_t numjobs;
	uint64_t thread;
	uint64_t share_file;
	char *cpus_allowed;
	uint64_t cpus_allowed_policy;
	uint64_t stonewall;
	uint64_t loops;
	uint64_t rate_iops;
	uint64_t rtprio;
	uint64_t hugepages;
	uint64_t numa_node;
	uint64_t lat;
	uint64_t gtod_reduce;
	uint64_t pmu;
	char *perf_control;
	uint64_t live;
	uint64_t region;
	uint64_t allow_mounted;
	uint64_t calibrate;
	uint64_t group_reporting;
	uint64_t output_format;
	char *output;

	char *files[MAX_DEVICES];
	unsigned int nr_files;
	unsigned int cpus[MAX_CPUS];
	unsigned int nr_cpus;
	uint32_t sizes[MAX_SIZES];
	unsigned int nr_sizes;
	uint64_t min_bs;
	const struct engine *engine;
};

enum options_result { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_BAD };

/* A number that was not given: the default depends on other things. */
#define UNSET	UINT64_MAX

/* I/Os between two looks at the clock, with --live. */
#define LIVE_SLICE	256

static inline bool options_write(const struct options *o)
{
	return o->rw == RW_WRITE || o->rw == RW_RANDWRITE;
}

static inline bool options_mixed(const struct options *o)
{
	return o->rw == RW_MIXED || o->rw == RW_RANDMIXED;
}

enum options_result options_parse(struct options *o, int argc, char **argv,
				  char *msg, size_t msg_size);
void options_free(struct options *o);

#endif /* IOLOOP_OPTIONS_H */
