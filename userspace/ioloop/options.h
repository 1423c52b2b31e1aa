/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The options, after reading and checking.
 */
#ifndef IOLOOP_OPTIONS_H
#define IOLOOP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_CPUS	4096
#define MAX_DEVICES	256
#define MAX_SPLIT	1024
#define MAX_BS		(UINT32_C(1) << 30)
#define MAX_SEGMENTS	1024

enum rw { RW_READ, RW_WRITE, RW_RANDREAD, RW_RANDWRITE };
enum pattern { PATTERN_SEQUENTIAL, PATTERN_RANDOM, PATTERN_FIXED };
enum format { FORMAT_NORMAL, FORMAT_JSON };

/**
 * struct options - what to do
 *
 * Every number is a uint64_t, so that one table (option_table.c) can read,
 * check and report all of them. The names are those of the options.
 *
 * @files: the names in @filename, taken apart
 * @cpus: the processors in @cpus_allowed, taken apart
 * @engine: the engine that @ioengine is the number of
 */
struct options {
	char *filename;
	uint64_t ioengine;
	uint64_t rw;
	uint64_t pattern;
	uint64_t bs;
	uint64_t iodepth;
	uint64_t offset;
	uint64_t size;
	uint64_t direct;
	uint64_t invalidate;
	uint64_t hipri;
	uint64_t nowait;
	uint64_t dsync;
	uint64_t atomic;
	uint64_t uncached;
	uint64_t segments;
	uint64_t fsync;
	uint64_t append;
	uint64_t streams;
	uint64_t fixedbufs;
	uint64_t onebuf;
	uint64_t registerfiles;
	uint64_t registermem;
	uint64_t sqthread_poll;
	uint64_t one_ring;
	uint64_t link;
	uint64_t single_issuer;
	uint64_t defer_taskrun;
	uint64_t userspace_reap;
	uint64_t split;
	uint64_t number_ios;
	uint64_t runtime;
	uint64_t time_based;
	uint64_t rounds;
	uint64_t repeat;
	uint64_t layouts;
	uint64_t first_layout;
	uint64_t warmup_ios;
	uint64_t drain;
	uint64_t after_batch;
	uint64_t after_tick;
	uint64_t rtprio;
	uint64_t prioclass;
	uint64_t prio;
	uint64_t hugepages;
	uint64_t scatter;
	uint64_t mem_offset;
	uint64_t numjobs;
	uint64_t thread;
	uint64_t share_file;
	char *cpus_allowed;
	uint64_t pmu;
	char *perf_control;
	uint64_t region;
	uint64_t calibrate;
	uint64_t output_format;
	char *output;

	char *files[MAX_DEVICES];
	unsigned int nr_files;
	unsigned int cpus[MAX_CPUS];
	unsigned int nr_cpus;
	const struct engine *engine;
};

/* A number that was not given: the default depends on other things. */
#define UNSET	UINT64_MAX

static inline bool options_write(const struct options *o)
{
	return o->rw == RW_WRITE || o->rw == RW_RANDWRITE;
}

#endif /* IOLOOP_OPTIONS_H */
