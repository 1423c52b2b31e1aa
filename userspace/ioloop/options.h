/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The command line, after reading and checking.
 */
#ifndef IOLOOP_OPTIONS_H
#define IOLOOP_OPTIONS_H

#include <stdint.h>
#include <stdio.h>

#define MAX_CPUS	4096
#define MAX_DEVICES	256

enum rw { RW_READ, RW_WRITE };
enum pattern { PATTERN_SEQUENTIAL, PATTERN_FIXED };
enum format { FORMAT_NORMAL, FORMAT_JSON };

/**
 * struct options - what to do
 *
 * Every number is a uint64_t, so that one table (in options.c) can read, check
 * and report all of them. The names are those of the options.
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
	uint64_t number_ios;
	uint64_t runtime;
	uint64_t rounds;
	uint64_t warmup_ios;
	uint64_t numjobs;
	char *cpus_allowed;
	uint64_t region;
	uint64_t allow_mounted;
	uint64_t calibrate;
	uint64_t output_format;
	char *output;

	char *files[MAX_DEVICES];
	unsigned int nr_files;
	unsigned int cpus[MAX_CPUS];
	unsigned int nr_cpus;
	const struct engine *engine;
};

enum options_result { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_BAD };

enum options_result options_parse(struct options *o, int argc, char **argv,
				  char *msg, size_t msg_size);
void options_free(struct options *o);
void options_help(FILE *out);
void options_json(const struct options *o, FILE *out);

#endif /* IOLOOP_OPTIONS_H */
