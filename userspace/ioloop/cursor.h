/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where the next I/O goes, which way, and how large it is.
 */
#ifndef IOLOOP_CURSOR_H
#define IOLOOP_CURSOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/cdefs.h>

#include "compiler.h"

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

/* From L'Ecuyer's table of good ones (1999). The first state must be odd. */
#define RANDOM_FACTOR	1181783497276652981u

/**
 * cursor_next() - where the next I/O goes, which way, and how large it is
 * @c: the loop's own copy of job->cursor; its write becomes the I/O's direction
 *	and its size the I/O's size, if these are drawn
 * @a: the loop's own copy of job->area
 * @kind: LOOP_*, a constant
 *
 * The random numbers are a multiplicative congruential sequence of 64 bits. The
 * upper half of its product with the number of blocks is the block, and the
 * lower half gives the direction: both take one more multiplication.
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

#endif /* IOLOOP_CURSOR_H */
