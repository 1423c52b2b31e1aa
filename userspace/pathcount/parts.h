/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Parts: how many instructions of a flat region were executed beside the task,
 * by the interrupt or the other task that executed them and by the calls on the
 * way. There are only sums; flat.c says which blocks they are of.
 */
#ifndef PATHCOUNT_PARTS_H
#define PATHCOUNT_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "flow.h"

/* The characters are those of the output format. */
enum part_kind {
	PART_THREAD	= 't',	/* another task */
	PART_ROOT	= 'r',	/* what it was in the middle of */
	PART_ENTRY	= 'e',	/* an interrupt or exception */
	PART_CALL	= 'c',
	PART_CALL_IND	= 'C',
};

/**
 * struct part - a node of the call tree
 * @kind:	how it was reached
 * @addr:	where its code begins, of a root 0 for user space; of a thread the
 *		address that tells tasks apart
 * @site:	of a call, the instruction; of a root, where it returned to
 * @parent:	what called, was interrupted, or returned
 * @child:	first of its own
 * @sibling:	next of @parent
 * @instructions: executed here, without children
 * @switched:	here, or in a child, another task was switched to
 * @id:		its number in the output; -1: it is counted in its parent there
 */
struct part {
	enum part_kind kind;
	uint64_t addr;
	uint64_t site;
	struct part *parent;
	struct part *child;
	struct part *sibling;
	int64_t instructions;
	bool switched;
	int id;
};

/**
 * struct parts - those of a region
 * @top:	parent of threads, and of interrupts of the region's task
 * @nr:		how many
 * @list:	all, parents first
 */
struct parts {
	struct part top;
	unsigned int nr;
	struct part **list;
};

/**
 * struct calls - where a task is
 * @part:	there; NULL: in the region's task, outside of interrupts
 * @thread:	the task; NULL if it is the region's
 * @bottom:	frame of the last interrupt, or 0
 * @nr:		how many frames
 * @frames:	what @part was called by
 */
struct calls {
	struct part *part;
	struct part *thread;
	unsigned int bottom;
	unsigned int nr;
	unsigned int room;
	struct part_frame *frames;
};

void parts_reset(struct calls *calls);
void parts_thread(struct parts *parts, struct calls *calls, uint64_t where,
		  uint64_t pc);
void parts_root(struct parts *parts, struct calls *calls, uint64_t pc);
void parts_enter(struct parts *parts, struct calls *calls, uint64_t pc);
void parts_leave(struct calls *calls);
void parts_switched(struct calls *calls);
void parts_call(struct parts *parts, struct calls *calls, struct block *block,
		uint64_t pc);
bool parts_return(struct calls *calls, uint64_t pc);
void parts_return_out(struct parts *parts, struct calls *calls, uint64_t pc,
		      bool is_call);
void parts_jump(struct parts *parts, struct calls *calls,
		const struct block *block, uint64_t pc);
void parts_fold(struct parts *parts);

#endif /* PATHCOUNT_PARTS_H */
