/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Engines: their operations, and the data that they work with.
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
#include "pmu.h"

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/**
 * struct device - one file or device of --filename, as found at the start
 * @name: its name
 * @size: bytes it holds
 * @start: first byte that is used
 * @end: byte behind the last one used: a whole number of blocks from @start, if
 *	these are of one size
 * @logical_block_size: what direct I/O must be aligned to; 0: not known
 * @never_polls: polling for completion is known not to be done on it
 */
struct device {
	const char *name;
	uint64_t size;
	uint64_t start;
	uint64_t end;
	uint64_t logical_block_size;
	bool never_polls;
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

/* Sixteen buckets for each power of two: a latency is known to 6 percent. */
#define LATENCY_BITS	4
#define LATENCY_BUCKETS	((65 - LATENCY_BITS) << LATENCY_BITS)

/**
 * struct latency - how long I/Os took, in ticks of the cycle counter
 * @max: the longest
 * @sum: all together
 * @buckets: how many there were, by duration
 */
struct latency {
	uint64_t max;
	uint64_t sum;
	uint64_t buckets[LATENCY_BUCKETS];
};

/* For struct result's flags: what was requested of the kernel and accepted. */
#define FLAG_HIPRI		0x01
#define FLAG_NOWAIT		0x02
#define FLAG_DSYNC		0x04
#define FLAG_FIXEDBUFS		0x08
#define FLAG_REGISTERFILES	0x10
#define FLAG_SQTHREAD_POLL	0x20
#define FLAG_SINGLE_ISSUER	0x40
#define FLAG_DEFER_TASKRUN	0x80

/**
 * struct result - what one job has to tell, in memory shared with its parent
 * @ios: I/Os that ended well, over all rounds
 * @bytes: what they moved
 * @errors: failed and short I/Os, and failed preparations
 * @first_error: the first of them
 * @again: I/Os that had to be repeated, because --nowait would have waited
 * @locked: mlockall() worked
 * @flags: FLAG_* that were in effect
 * @latency: that of all I/Os, with --lat and --split; else NULL
 * @pieces: that of the pieces of an I/O, in the order of completion
 * @latency_overhead: ticks that noting one latency takes
 * @latency_is_ns: @latency and @latency_overhead are in nanoseconds, known to a
 *	power of two, and without max and sum
 * @pmu: the performance counters, with --pmu
 * @start_ns: when the first round began, by CLOCK_MONOTONIC
 * @end_ns: when the last ended
 * @user_ns: processor time in user mode from the one to the other
 * @system_ns: in the kernel
 * @progress: I/Os done so far, for the line of --live; trails behind
 * @nr_rounds: how many of @rounds are filled
 * @rounds: one entry for each round
 *
 * No two jobs share a cache line of it.
 */
struct result {
	_Alignas(64) uint64_t ios;
	uint64_t bytes;
	uint64_t errors;
	struct io_error first_error;
	uint64_t again;
	bool locked;
	unsigned int flags;
	struct latency *latency;
	struct latency *pieces;
	double latency_overhead;
	bool latency_is_ns;
	struct pmu_count pmu[NR_PMU_EVENTS];
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t user_ns;
	uint64_t system_ns;
	uint64_t progress;
	uint64_t nr_rounds;
	struct round *rounds;
};

/* What a loop has to do besides I/O; for struct job's kind. */
#define LOOP_RANDOM	0x1	/* the offset is drawn */
#define LOOP_MIXED	0x2	/* whether it reads or writes is drawn */
#define LOOP_TIMED	0x4	/* each I/O's latency is noted */
#define LOOP_SIZED	0x8	/* its size is drawn */
#define NR_KINDS	16

/**
 * struct area - where I/Os may go, and of what kind they are
 * @start: first byte that is used
 * @end: byte behind the last one
 * @step: what is added for the next I/O; 0: always the same place
 * @blocks: places for I/Os at random, @bs bytes apart
 * @bs: bytes of one I/O; of the smallest, if their sizes are drawn
 * @reads: the share of reads, as a fraction of 2^64
 * @sizes: what a size is drawn from, each with the same chance
 * @nr_sizes: how many these are
 */
struct area {
	uint64_t start;
	uint64_t end;
	uint64_t step;
	uint64_t blocks;
	uint64_t bs;
	uint64_t reads;
	const uint32_t *sizes;
	uint64_t nr_sizes;
};

/**
 * struct cursor - the next I/O
 * @position: its offset, unless that is drawn
 * @state: of the random number generator
 * @write: it writes
 * @size: its size, if that is drawn
 * @bytes: what I/Os whose sizes are drawn have moved so far
 */
struct cursor {
	uint64_t position;
	uint64_t state;
	bool write;
	uint64_t size;
	uint64_t bytes;
};

/**
 * struct job - one process or thread that does I/O
 * @o: the options
 * @dev: the device that it works on; NULL if the engine needs none
 * @res: where the results go
 * @stop: becomes non-zero when the job should end, on its own or not
 * @index: number of the job
 * @cpu: the processor that it is bound to; -1: none
 * @fd: the open device
 * @buffers: iodepth buffers of bs bytes each, page aligned, @stride apart
 * @stride: distance between two of them
 * @kind: LOOP_*
 * @slice: run so many I/Os at a time, and see to what is between; 0: all
 * @area: where I/Os may go
 * @cursor: the next one
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
	unsigned int kind;
	uint64_t slice;
	struct area area;
	struct cursor cursor;
	void *data;
};

/* For struct engine's flags */
#define ENGINE_FILE	0x01	/* needs --filename */
#define ENGINE_CACHED	0x02	/* works through the page cache only */
#define ENGINE_WARM	0x04	/* --invalidate is 0 unless it is given */
#define ENGINE_READS	0x08	/* cannot write */
#define ENGINE_NO_LOCK	0x10	/* mlockall() would read the whole device */

typedef uint64_t (*run_fn)(struct job *job, uint64_t nr);

/**
 * struct engine - one way of doing I/O
 * @name: as in --ioengine
 * @flags: ENGINE_*
 * @max_iodepth: the most that --iodepth may be
 * @setup: prepare everything, so that @run allocates nothing; false after
 *	job_error(); NULL if there is nothing to prepare
 * @before_round: what must be done before each round, untimed; may be NULL
 * @run: do @nr I/Os, or fewer if *job->stop gets set or one fails (then
 *	job_error() is told); returns how many ended well. This is all that lies
 *	between the two readings of the cycle counter. One function for each
 *	kind, or only the first if there is no device: see ENGINE_RUN()
 * @round: instead of @run for an engine that must place the markers and read
 *	the cycle counter itself: fill @r's ios and tsc
 * @rounds: instead of either for an engine that does and times all rounds by
 *	itself: fill in job->res
 * @cleanup: undo @setup, as far as it came
 */
struct engine {
	const char *name;
	unsigned int flags;
	uint64_t max_iodepth;

	bool (*setup)(struct job *job);
	void (*before_round)(struct job *job);
	run_fn run[NR_KINDS];
	void (*round)(struct job *job, uint64_t nr, struct round *r);
	void (*rounds)(struct job *job);
	void (*cleanup)(struct job *job);
};

/*
 * An engine writes its loop once, as an inline function of a kind that is a
 * constant. This makes it into a function for each, none of which tests for
 * what it does not do.
 */
#define ENGINE_DEFINE_RUN(loop)						\
	static uint64_t loop##_0(struct job *job, uint64_t nr)		\
	{ return loop(job, nr, 0); }					\
	static uint64_t loop##_1(struct job *job, uint64_t nr)		\
	{ return loop(job, nr, 1); }					\
	static uint64_t loop##_2(struct job *job, uint64_t nr)		\
	{ return loop(job, nr, 2); }					\
	static uint64_t loop##_3(struct job *job, uint64_t nr)		\
	{ return loop(job, nr, 3); }					\
	static uint64_t loop##_4(struct job *job, uint64_t nr)		\
	{ return loop(job, nr, 4); }					\
	static uint64_t loop##_5(struct job *job, uint64_t nr)		\
	{ return loop(job, nr, 5); }					\
	static uint64_t loop##_6(struct job *job, uint64_t nr)		\
	{ return loop(job, nr, 6); }					\
	static uint64_t loop##_7(struct job *job, uint64_t nr)		\
	{ return loop(job, nr, 7); }					\
	static uint64_t loop##_8(struct job *job, uint64_t nr)		\
	{ return loop(job, nr, 8); }					\
	static uint64_t loop##_9(struct job *job, uint64_t nr)		\
	{ return loop(job, nr, 9); }					\
	static uint64_t loop##_10(struct job *job, uint64_t nr)		\
	{ return loop(job, nr, 10); }					\
	static uint64_t loop##_11(struct job *job, uint64_t nr)		\
	{ return loop(job, nr, 11); }					\
	static uint64_t loop##_12(struct job *job, uint64_t nr)		\
	{ return loop(job, nr, 12); }					\
	static uint64_t loop##_13(struct job *job, uint64_t nr)		\
	{ return loop(job, nr, 13); }					\
	static uint64_t loop##_14(struct job *job, uint64_t nr)		\
	{ return loop(job, nr, 14); }					\
	static uint64_t loop##_15(struct job *job, uint64_t nr)		\
	{ return loop(job, nr, 15); }

#define ENGINE_RUN(loop)						\
	{								\
		loop##_0, loop##_1, loop##_2, loop##_3,			\
		loop##_4, loop##_5, loop##_6, loop##_7,			\
		loop##_8, loop##_9, loop##_10, loop##_11,		\
		loop##_12, loop##_13, loop##_14, loop##_15,		\
	}

extern const struct engine engine_biogen;
extern const struct engine engine_buffered;
extern const struct engine engine_calibrate;
extern const struct engine engine_io_uring;
extern const struct engine engine_libaio;
extern const struct engine engine_libaio_split;
extern const struct engine engine_mmap;
extern const struct engine engine_null;
extern const struct engine engine_splice;
extern const struct engine engine_sync;
extern const struct engine engine_syscall;
extern const struct engine engine_vsync;

/* From L'Ecuyer's table of good ones (1999). The first state must be odd. */
#define RANDOM_FACTOR	1181783497276652981u

/**
 * cursor_save() - remember where a loop has come to
 * @job: the job
 * @c: the loop's own copy of job->cursor
 */
static __always_inline void cursor_save(struct job *job, const struct cursor *c)
{
	job->cursor.position = c->position;
	job->cursor.state = c->state;
	job->cursor.bytes = c->bytes;
}

/**
 * cursor_next() - where the next I/O goes, which way, and how large it is
 * @c: the loop's own copy of job->cursor; its write becomes the I/O's direction
 *	and its size the I/O's size, if these are drawn
 * @a: the loop's own copy of job->area
 * @kind: LOOP_*, a constant
 *
 * The random numbers are a multiplicative congruential sequence of 64 bits. The
 * upper half of its product with the number of blocks is the block, and the
 * lower half, what is left of the number, the direction: one multiplication
 * more for both.
 *
 * Return: the offset.
 */
static __always_inline
uint64_t cursor_next(struct cursor *c, const struct area *a,
		     const unsigned int kind)
{
	unsigned __int128 product;
	uint64_t position;
	uint64_t draw;

	if (kind & LOOP_SIZED) {
		product = (unsigned __int128)c->state * a->nr_sizes;
		c->size = a->sizes[(uint64_t)(product >> 64)];
		c->state *= RANDOM_FACTOR;
	}
	position = c->position;
	draw = c->state;
	if (kind & (LOOP_RANDOM | LOOP_MIXED))
		c->state *= RANDOM_FACTOR;
	if (kind & LOOP_RANDOM) {
		product = (unsigned __int128)draw * a->blocks;
		position = a->start + (uint64_t)(product >> 64) * a->bs;
		draw = (uint64_t)product;
	} else if (kind & LOOP_SIZED) {
		if (unlikely(c->size > a->end - position))
			position = a->start;
		c->position = position + (a->step ? c->size : 0);
	} else {
		c->position += a->step;
		if (unlikely(c->position == a->end))
			c->position = a->start;
	}
	if (kind & LOOP_MIXED)
		c->write = draw >= a->reads;
	return position;
}

/**
 * latency_bucket() - the bucket that a duration falls into
 * @ticks: how long
 */
static __always_inline uint64_t latency_bucket(uint64_t ticks)
{
	/* Below 32 each value has a bucket, and the shift is 0. */
	const unsigned int shift = 63u - LATENCY_BITS -
		(unsigned int)__builtin_clzll(ticks | 1 << LATENCY_BITS);

	return (shift << LATENCY_BITS) + (ticks >> shift);
}

/**
 * latency_add() - note how long an I/O took
 * @l: where
 * @ticks: how long
 *
 * The same dozen instructions whatever it is.
 */
static __always_inline void latency_add(struct latency *l, uint64_t ticks)
{
	l->buckets[latency_bucket(ticks)]++;
	l->sum += ticks;
	if (ticks > l->max)
		l->max = ticks;
}

/**
 * latencies_add() - note how long a batch of I/Os took
 * @l: where
 * @ticks: how long
 * @nr: how many they were
 *
 * A batch is reaped at once, so that each of them took as long.
 */
static __always_inline
void latencies_add(struct latency *l, uint64_t ticks, uint64_t nr)
{
	while (nr--)
		latency_add(l, ticks);
}

void job_error(struct job *job, const char *op, uint64_t offset, uint64_t size,
	       int64_t result);
void job_io_error(struct job *job, bool write, uint64_t offset, uint64_t size,
		  int64_t result);

#endif /* IOLOOP_ENGINE_H */
