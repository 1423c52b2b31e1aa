/* SPDX-License-Identifier: GPL-2.0 */
/*
 * struct biogen_io: a bio that is used again and again. Each CPU keeps unused
 * ones.
 */
#ifndef BIOGEN_IO_H
#define BIOGEN_IO_H

#include <linux/bio.h>
#include <linux/cgroup.h>
#include <linux/percpu.h>

#include "biogen.h"
#include "request.h"

/* Number of segments of a small bio, which is enough for most requests. */
#define BIOGEN_SMALL_VECS	8
#define BIOGEN_LARGE_VECS	256

/**
 * struct biogen_io - a bio and what belongs to it
 * @bio: the bio; its end_io is biogen_end_io()
 * @bg: the device that @bio is initialised for
 * @css: the cgroup that @bio is initialised for, with a reference; NULL if
 *	@bio must be initialised before its next use
 * @req: the request that @bio is part of, while it is in flight
 * @next: next entry in the list @ended of a request or @spare of a CPU
 * @bytes: length of the data
 * @max_vecs: number of entries in @vecs
 * @busy: generator: in flight
 * @ring: generator: next bio of the worker
 * @start: generator: time of submission, if latencies are recorded
 * @own: the request, if @bio is all of it
 * @vecs: the segments
 */
struct biogen_io {
	struct bio bio;
	struct biogen_device *bg;
	struct cgroup_subsys_state *css;
	struct biogen_request *req;
	struct biogen_io *next;
	unsigned int bytes;
	unsigned short max_vecs;
	bool busy;
	struct biogen_io *ring;
	u64 start;
	struct biogen_request own;
	struct bio_vec vecs[];
};

/**
 * struct biogen_idle - unused bios of a CPU
 * @io: one bio or NULL; taken and returned by a single instruction
 * @spare: more bios, if more than one was in flight
 * @nr_spare: length of @spare
 *
 * @spare and @nr_spare are accessed with interrupts off.
 */
struct biogen_idle {
	struct biogen_io *io;
	struct biogen_io *spare;
	unsigned int nr_spare;
};

struct biogen_io *biogen_io_alloc(struct biogen_device *bg, bool large);
void biogen_io_free(struct biogen_io *io);
void biogen_io_put_submitter(struct biogen_io *io);

struct biogen_io *biogen_io_get_spare(struct biogen_device *bg);
void biogen_io_put_spare(struct biogen_device *bg, struct biogen_io *io);
int biogen_idle_create(struct biogen_device *bg);
void biogen_idle_destroy(struct biogen_device *bg);

int biogen_io_caches_create(void);
void biogen_io_caches_destroy(void);

/**
 * biogen_io_get() - get a small bio
 * @bg: the device
 *
 * Return: a bio without pages, or NULL.
 */
static __always_inline struct biogen_io *biogen_io_get(struct biogen_device *bg)
{
	struct biogen_io *io = this_cpu_xchg(bg->idle->io, NULL);

	return likely(io) ? io : biogen_io_get_spare(bg);
}

/**
 * biogen_io_put() - return a small bio
 * @bg: the device
 * @io: from biogen_io_get()
 */
static __always_inline void biogen_io_put(struct biogen_device *bg,
					  struct biogen_io *io)
{
	if (unlikely(this_cpu_cmpxchg(bg->idle->io, NULL, io)))
		biogen_io_put_spare(bg, io);
}

/**
 * biogen_io_put_any() - return a small bio or free a large one
 * @io: not in flight, without pages
 */
static inline void biogen_io_put_any(struct biogen_io *io)
{
	if (io->max_vecs == BIOGEN_SMALL_VECS)
		biogen_io_put(io->bg, io);
	else
		biogen_io_free(io);
}

/**
 * biogen_io_put_css() - drop the cgroup that the bio is initialised for
 * @io: must be initialised before its next use
 */
static inline void biogen_io_put_css(struct biogen_io *io)
{
#ifdef CONFIG_BLK_CGROUP
	if (io->css)
		css_put(io->css);
#endif
	io->css = NULL;
}

/**
 * biogen_io_error() - take the result of a bio that has ended
 * @io: ended
 *
 * bi_status is cleared when an error is consumed, so submission need not reset
 * it.
 *
 * Return: 0 or an error.
 */
static __always_inline int biogen_io_error(struct biogen_io *io)
{
	int err;

	if (likely(!io->bio.bi_status))
		return 0;
	err = blk_status_to_errno(io->bio.bi_status);
	io->bio.bi_status = BLK_STS_OK;
	return err;
}

#endif /* BIOGEN_IO_H */
