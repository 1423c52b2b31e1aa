/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Flat counting: how often each block of code was executed in each context.
 * It follows neither calls nor memory accesses, and is several times faster
 * than flow.c.
 */
#ifndef PATHCOUNT_FLAT_H
#define PATHCOUNT_FLAT_H

#include <stdbool.h>
#include <stdint.h>

#include "flow.h"

#define FLAT_CONTEXTS	16	/* the base contexts, then entries */

/**
 * struct flat_row - a count
 * @block:	a block
 * @executed:	its first instructions so many
 * @context:	in this context
 * @times:	were executed so often; may be negative, for rows add up
 */
struct flat_row {
	struct block *block;
	unsigned int executed;
	unsigned int context;
	int64_t times;
};

/**
 * struct flat_region - all rounds of one region number
 * @rounds:	how many there were
 * @switches:	times that another task was switched in
 * @entries:	interrupts and exceptions that began, by context
 * @nr_rows:	how many @rows
 * @rows:	what was counted
 */
struct flat_region {
	unsigned int rounds;
	unsigned int switches;
	unsigned int entries[FLAT_CONTEXTS];
	unsigned int nr_rows;
	struct flat_row *rows;
};

extern struct flat_region *flat_regions[NR_REGIONS];
extern uint64_t flat_entry[FLAT_CONTEXTS];
extern unsigned int flat_nr_contexts;
extern unsigned int flat_lost;
extern bool flat_active;

void flat_note_call(uint64_t pc);
void flat_begin(unsigned int number, struct block *after);
void flat_end(void);
void flat_abandon(void);
void flat_step(struct block *block);
void flat_marker(uint64_t pc);
void flat_resume(struct block *block);
void flat_stack_saved(uint64_t where);
void flat_stack_loaded(uint64_t where);

#endif /* PATHCOUNT_FLAT_H */
