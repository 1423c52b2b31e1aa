/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Flat counting: how often each block of code was executed in each context.
 * It follows neither calls nor memory accesses, and is several times faster
 * than flow.c. Several CPUs may be in regions at the same time.
 */
#ifndef PATHCOUNT_FLAT_H
#define PATHCOUNT_FLAT_H

#include <stdbool.h>
#include <stdint.h>

#include "flow.h"
#include "parts.h"

#define FLAT_CONTEXTS	16	/* the base contexts, then entries */
#define MAX_CPUS	8

/**
 * struct flat_row - a count
 * @block:	a block
 * @executed:	the number of its first instructions that were executed
 * @context:	the context
 * @times:	executions; may be negative, since rows add up
 */
struct flat_row {
	struct block *block;
	unsigned int executed;
	unsigned int context;
	int64_t times;
};

/**
 * struct flat_round - a round, of a guest of one CPU, in all contexts
 * @instructions: as flow.c counts them
 * @iterations:	of repeated string instructions, after which these went on
 * @switches:	times that another task was switched in
 * @entries:	interrupts and exceptions that began, by context
 */
struct flat_round {
	uint64_t instructions;
	uint64_t iterations;
	unsigned int switches;
	unsigned int entries[FLAT_CONTEXTS];
};

/**
 * struct flat_region - all rounds of one region number on one CPU
 * @rounds:	how many there were
 * @left_out:	how many more there were in which the CPU waited for another
 * @lengths:	instructions of the task in each round, among several CPUs
 * @each:	each round of a guest of one CPU
 * @switches:	times that another task was switched in
 * @iterations:	of repeated string instructions, after which these went on
 * @entries:	interrupts and exceptions that began, by context
 * @nr_rows:	how many @rows
 * @rows:	what was counted
 * @parts:	what was executed beside the task; nothing among several CPUs
 */
struct flat_region {
	unsigned int rounds;
	unsigned int left_out;
	uint64_t *lengths;
	struct flat_round *each;
	unsigned int switches;
	uint64_t iterations;
	unsigned int entries[FLAT_CONTEXTS];
	unsigned int nr_rows;
	struct flat_row *rows;
	struct parts parts;
};

extern struct flat_region *flat_regions[NR_REGIONS];	/* one for each CPU */
extern uint64_t flat_entry[FLAT_CONTEXTS];
extern unsigned int flat_nr_contexts;
extern unsigned int flat_nr_cpus;
extern unsigned int flat_lost;
extern bool flat_active[MAX_CPUS];

void flat_note_call(uint64_t pc);
bool flat_is_return(uint64_t pc);
unsigned int flat_context(unsigned int cpu);
void flat_begin(unsigned int cpu, unsigned int number, struct block *after);
bool flat_end(unsigned int cpu);
void flat_abandon(unsigned int cpu);
void flat_step(unsigned int cpu, struct block *block);
void flat_marker(unsigned int cpu, uint64_t pc);
void flat_resume(unsigned int cpu, struct block *block);
void flat_stack_saved(unsigned int cpu, uint64_t where);
void flat_stack_loaded(unsigned int cpu, uint64_t where);

#endif /* PATHCOUNT_FLAT_H */
