/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where the next I/O goes.
 */
#ifndef IOLOOP_CURSOR_H
#define IOLOOP_CURSOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/cdefs.h>

#include "compiler.h"

/**
 * struct area - where I/Os may go
 * @start: first byte that is used
 * @end: byte behind the last one
 * @step: what is added for the next I/O; 0: always the same place
 * @blocks: places for I/Os at random, @bs bytes apart
 * @bs: bytes of one I/O
 */
struct area {
	uint64_t start;
	uint64_t end;
	uint64_t step;
	uint64_t blocks;
	uint64_t bs;
};

/**
 * struct cursor - the next I/O
 * @position: its offset, unless that is drawn
 * @state: of the random number generator
 * @write: it writes
 * @spare: not used. It is copied and saved with the rest, as in the loops that
 *	the published figures are of: these instructions are in each round.
 */
struct cursor {
	uint64_t position;
	uint64_t state;
	bool write;
	uint64_t spare;
};

/* From L'Ecuyer's table of good ones (1999). The first state must be odd. */
#define RANDOM_FACTOR	1181783497276652981u

/**
 * cursor_next() - where the next I/O goes
 * @c: the loop's own copy of job->cursor
 * @a: the loop's own copy of job->area
 * @random: a constant: the offset is drawn
 *
 * The random numbers are a multiplicative congruential sequence of 64 bits. The
 * upper half of its product with the number of blocks is the block.
 *
 * Return: the offset.
 */
static __always_inline
uint64_t cursor_next(struct cursor *c, const struct area *a, const bool random)
{
	unsigned __int128 product;
	const uint64_t position = c->position, draw = c->state;

	if (random) {
		c->state *= RANDOM_FACTOR;
		product = (unsigned __int128)draw * a->blocks;
		return a->start + (uint64_t)(product >> 64) * a->bs;
	}
	c->position += a->step;
	if (unlikely(c->position == a->end))
		c->position = a->start;
	return position;
}

#endif /* IOLOOP_CURSOR_H */
