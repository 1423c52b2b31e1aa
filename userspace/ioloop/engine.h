/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What an engine is, and what it is given to work with.
 *
 * An engine is one way of doing I/O. It lives in one engine_*.c and is listed
 * once, in engines[] of options.c.
 */
#ifndef IOLOOP_ENGINE_H
#define IOLOOP_ENGINE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "arch.h"
#include "options.h"

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define noinline	__attribute__((noinline))

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/**
 * struct device - one file or device of --filename, as found at the start
 * @name: its name
 * @size: bytes it holds
 * @start: first byte that is used
 * @end: byte behind the last one used: a whole number of blocks from @start
 * @logical_block_size: what direct I/O must be aligned to; 0: not known
 */
struct device {
	const char *name;
	uint64_t size;
	uint64_t start;
	uint64_t end;
	uint64_t logical_block_size;
};

/**
 * struct round - what one round took
 * @ios: I/Os that ended well
 * @ns: nanoseconds by CLOCK_MONOTONIC
 * @tsc: ticks of the cycle counter
 * @interrupts: interrupts that the machine took meanwhile; -1: not known
 */
struct round {
	uint64_t ios;
	uint64_t ns;
	uint64_t tsc;
	int64_t interrupts;
};

/**
 * struct io_error - the first thing that went wrong in a job
 * @op: what was tried: "read", "write", or the name of a system call
 * @offset: where
 * @size: how many bytes
 * @result: what came back: a byte count that is too small, or -1
 * @errnum: errno, or 0 if @result is a byte count
 */
struct io_error {
	char op[24];
	uint64_t offset;
	uint64_t size;
	int64_t result;
	int errnum;
};

/**
 * struct result - what one job has to tell, in memory shared with the parent
 * @ios: I/Os that ended well, over all rounds
 * @errors: failed and short I/Os, and failed preparations
 * @first_error: the first of them
 * @locked: mlockall() worked
 * @nr_rounds: how many of @rounds are filled
 * @rounds: one entry for each round
 */
struct result {
	uint64_t ios;
	uint64_t errors;
	struct io_error first_error;
	bool locked;
	uint64_t nr_rounds;
	struct round *rounds;
};

/**
 * struct job - one process that does I/O
 * @o: the options
 * @dev: the device that it works on; NULL if the engine needs none
 * @res: where the results go
 * @stop: becomes non-zero when the job should end, on its own or not
 * @index: number of the job
 * @cpu: the processor that it is bound to; -1: none
 * @fd: the open device
 * @buffers: iodepth buffers of bs bytes each, page aligned, @stride apart
 * @stride: distance between two of them
 * @position: offset of the next I/O
 * @step: what is added to @position for the one behind it
 * @data: the engine's own
 */
struct job {
	const struct options *o;
	const struct device *dev;
	struct result *res;
	int *stop;
	unsigned int index;
	int cpu;

	int fd;
	char *buffers;
	uint64_t stride;
	uint64_t position;
	uint64_t step;
	void *data;
};

/* For engine.flags */
#define ENGINE_FILE	0x1	/* needs --filename */
#define ENGINE_BATCH	0x2	/* --iodepth may be above 1 */

/**
 * struct engine - one way of doing I/O
 * @name: as in --ioengine
 * @flags: ENGINE_*
 * @iodepth: what --iodepth is if not given
 * @setup: prepare everything, so that @run allocates nothing; false after
 *	job_error(); NULL if there is nothing to prepare
 * @run: do @nr I/Os, or fewer if *job->stop gets set or one fails (then
 *	job_error() is told); returns how many ended well. This is all that lies
 *	between the two readings of the cycle counter
 * @round: instead of @run for an engine that must place the markers and read
 *	the cycle counter itself: fill @r's ios and tsc
 * @cleanup: undo @setup
 */
struct engine {
	const char *name;
	unsigned int flags;
	uint64_t iodepth;
	bool (*setup)(struct job *job);
	uint64_t (*run)(struct job *job, uint64_t nr);
	void (*round)(struct job *job, uint64_t nr, struct round *r);
	void (*cleanup)(struct job *job);
};

extern const struct engine engine_calibrate;
extern const struct engine engine_libaio;
extern const struct engine engine_null;
extern const struct engine engine_sync;
extern const struct engine engine_syscall;

/* One iteration of the loop of --calibrate, and what surrounds the loop. */
#define CALIBRATE_INSTRUCTIONS	10
#define CALIBRATE_OVERHEAD	5

/**
 * stopped() - whether a loop should end early
 * @stop: job->stop
 *
 * A plain load on purpose: every loop has a system call or another barrier
 * in it, so it is read anew each time, and folds into one compare.
 */
static __always_inline bool stopped(const int *stop)
{
	return unlikely(*stop);
}

/**
 * next_position() - the offset behind an I/O
 * @position: the I/O's offset
 * @step: job->step
 * @start: job->dev->start
 * @end: job->dev->end
 *
 * Goes back to the start at the end. A fixed pattern is a step of 0.
 */
static __always_inline
uint64_t next_position(uint64_t position, uint64_t step, uint64_t start,
		       uint64_t end)
{
	position += step;
	return unlikely(position == end) ? start : position;
}

void job_error(struct job *job, const char *op, uint64_t offset, uint64_t size,
	       int64_t result);
const char *job_op(const struct job *job);

#endif /* IOLOOP_ENGINE_H */
