/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counting a program by its system calls: everything that executes in a region
 * is divided among the system calls of the program's processes, its own code,
 * its exceptions, interrupts, soft interrupts, and the tasks beside it.
 */
#ifndef PATHCOUNT_CALLS_H
#define PATHCOUNT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "flow.h"

/* The characters are those of the output format. */
enum bucket_kind {
	BUCKET_USER	= 'u',	/* code of the program's processes */
	BUCKET_CALL	= 'c',	/* a system call of these */
	BUCKET_OTHER	= 'o',	/* a system call of no known function */
	BUCKET_ENTRY	= 'e',	/* an interrupt or exception */
	BUCKET_SOFT	= 's',	/* soft interrupts */
	BUCKET_START	= 'b',	/* what a new task does at first */
	BUCKET_TASK	= 't',	/* a task outside the program */
};

/**
 * struct bucket - what a part of the instructions is counted for
 * @kind:	which kind of part
 * @addr:	the function that carries it out, or where it was entered; of a
 *		task the address that tells tasks apart
 * @beside:	entered from a task outside the program
 * @user:	of a task: it was in user mode
 * @id:		its number in the output
 * @times:	how often it began
 * @instructions: its own
 * @before:	of a call: those in user mode before it
 */
struct bucket {
	enum bucket_kind kind;
	uint64_t addr;
	bool beside;
	bool user;
	unsigned int id;
	uint64_t times;
	int64_t instructions;
	int64_t before;
};

/**
 * struct calls_count - how often a block was executed for a bucket
 * @bucket:	the bucket
 * @executed:	this number of its first instructions
 * @times:	how often
 * @next:	of the block
 */
struct calls_count {
	struct bucket *bucket;
	unsigned int executed;
	int64_t times;
	struct calls_count *next;
};

/**
 * struct calls_region - a region that is counted by system calls
 * @begun:	instructions that began, as the guest's code counted them
 * @tried:	those of them that an exception stopped; they began again
 * @iterations:	of repeated string instructions, each before another one
 * @switches:	times that another task was switched to
 * @unmatched:	ends of interrupts that did not begin in the region
 * @last:	user instructions of the program's tasks after their last call
 * @nr_buckets:	how many @buckets
 * @nr_blocks:	how many @blocks
 * @blocks:	those that were executed
 */
struct calls_region {
	uint64_t begun;
	int64_t tried;
	uint64_t iterations;
	unsigned int switches;
	unsigned int unmatched;
	int64_t last;
	unsigned int nr_buckets;
	struct bucket **buckets;
	unsigned int nr_blocks;
	struct block **blocks;
};

extern struct calls_region calls_region;
extern const char *calls_functions;
extern uint64_t calls_limit;
extern bool calls_active;
extern unsigned int calls_lost;

void calls_begin(const uint64_t *insn_counter, struct block *after);
bool calls_in_program(void);
void calls_end(void);
void calls_step(uint64_t pc, struct block *next);
void calls_resume(struct block *block);
void calls_stack_saved(uint64_t where);
void calls_stack_loaded(uint64_t where);

#endif /* PATHCOUNT_CALLS_H */
