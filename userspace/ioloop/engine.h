/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Engines: their operations, and what they need for them.
 *
 * An engine is one way of doing I/O. It lives in a file of engines/ and is
 * listed once, in engines[] of engines.c.
 */
#ifndef IOLOOP_ENGINE_H
#define IOLOOP_ENGINE_H

#include <linux/fs.h>

#include "arch.h"
#include "compiler.h"
#include "error.h"
#include "job.h"

/* Newer than the headers of the suite that programs are built with. */
#ifndef RWF_ATOMIC
#define RWF_ATOMIC	0x40
#endif
#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE	0x80
#endif

/* For struct engine's flags */
#define ENGINE_FILE	0x01	/* needs --filename */
#define ENGINE_CACHED	0x02	/* works through the page cache only */
#define ENGINE_WARM	0x04	/* --invalidate is 0 unless it is given */
#define ENGINE_READS	0x08	/* cannot write */
#define ENGINE_COMMANDS	0x20	/* sends commands to a namespace of NVMe */

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
 *	between the two readings of the cycle counter. The second has random
 *	offsets; there is only the first if there is no device: see ENGINE_RUN()
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
	run_fn run[2];
	void (*round)(struct job *job, uint64_t nr, struct round *r);
	void (*rounds)(struct job *job);
	void (*cleanup)(struct job *job);
};

/*
 * An engine writes its loop once, as an inline function with a constant: whether
 * offsets are drawn. This makes a function for either, without tests for it.
 */
#define ENGINE_DEFINE_RUN(loop)						\
	static uint64_t loop##_in_order(struct job *job, uint64_t nr)	\
	{ return loop(job, nr, false); }				\
	static uint64_t loop##_random(struct job *job, uint64_t nr)	\
	{ return loop(job, nr, true); }

#define ENGINE_RUN(loop)	{ loop##_in_order, loop##_random }

extern const struct engine engine_biogen;
extern const struct engine engine_buffered;
extern const struct engine engine_calibrate;
extern const struct engine engine_io_uring;
extern const struct engine engine_io_uring_cmd;
extern const struct engine engine_libaio;
extern const struct engine engine_libaio_split;
extern const struct engine engine_mmap;
extern const struct engine engine_null;
extern const struct engine engine_splice;
extern const struct engine engine_streams;
extern const struct engine engine_sync;
extern const struct engine engine_syscall;
extern const struct engine engine_vsync;
extern const struct engine engine_vsync_segments;

/* The flags of preadv2(), which asynchronous I/Os have, too. */
static inline int engine_rw_flags(const struct options *o)
{
	return (o->hipri ? RWF_HIPRI : 0) | (o->nowait ? RWF_NOWAIT : 0) |
	       (o->dsync ? RWF_DSYNC : 0) | (o->atomic ? RWF_ATOMIC : 0) |
	       (o->uncached ? RWF_DONTCACHE : 0);
}

/**
 * cursor_save() - remember where a loop has come to
 * @job: the job
 * @c: the loop's own copy of job->cursor
 */
static __always_inline void cursor_save(struct job *job, const struct cursor *c)
{
	job->cursor.position = c->position;
	job->cursor.state = c->state;
	job->cursor.spare = c->spare;
}

#endif /* IOLOOP_ENGINE_H */
