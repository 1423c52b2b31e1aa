// SPDX-License-Identifier: GPL-2.0
/*
 * Flat counting.
 *
 * All is concluded from the addresses at which blocks begin, as in flow.c. A
 * block is counted as a whole when it begins. Where the next block shows that
 * it was left in the middle, it is counted back, and its first part instead.
 */
#include <stdlib.h>
#include <string.h>

#include "flat.h"
#include "x86.h"

#define MAX_DEPTH	8	/* of interrupts and exceptions in each other */
#define MAX_TASKS	64	/* in one round */

/**
 * struct left - a block that was left for an interrupt or exception
 * @block:	the block
 * @context:	the context that it was counted in
 */
struct left {
	struct block *block;
	unsigned int context;
};

/**
 * struct task - a task seen in the round under way
 * @where:	address where its stack pointer is kept; 0: not known yet
 * @base:	its context outside of interrupts and exceptions
 * @depth:	how many of these it is in
 * @left:	what each of them interrupted
 * @entry:	the context of each
 */
struct task {
	uint64_t where;
	unsigned int base;
	unsigned int depth;
	struct left left[MAX_DEPTH];
	unsigned int entry[MAX_DEPTH];
};

struct flat_region *flat_regions[NR_REGIONS];
uint64_t flat_entry[FLAT_CONTEXTS];
unsigned int flat_nr_contexts = NR_BASE_CONTEXTS;
unsigned int flat_lost;
bool flat_active;

/* What goes on in the round under way. */
static struct {
	struct flat_region *region;
	struct block *block;
	struct block *touched;
	unsigned int context;
	struct task *task;
	unsigned int nr_tasks;
	struct task tasks[MAX_TASKS];
} now;

/*
 * By context of an entry: how often more what it interrupted had not been
 * executed than it had. So it is an exception, or else an interrupt.
 */
static int faults[FLAT_CONTEXTS];

/* The addresses that calls return to. */
static uint64_t *return_set;
static unsigned int return_room, nr_returns;

/* Tasks are followed outside of regions too. */
static uint64_t current_task, saved_task, loaded_task;

static void count(struct block *block, unsigned int context, int times)
{
	if (!block->flat)
		block->flat = flow_alloc(FLAT_CONTEXTS * sizeof(*block->flat));
	if (!block->flat_listed) {
		block->flat_listed = true;
		block->flat_next = now.touched;
		now.touched = block;
	}
	block->flat[context] += times;
}

static void add_row(struct block *block, unsigned int executed,
		    unsigned int context, int64_t times)
{
	struct flat_region *region = now.region;

	region->rows = flow_grow(region->rows, region->nr_rows,
				 sizeof(*region->rows));
	region->rows[region->nr_rows++] =
		(struct flat_row){ block, executed, context, times };
}

/* Of @block, which was counted whole, only the beginning was executed. */
static void count_part(struct block *block, unsigned int context,
		       unsigned int executed)
{
	count(block, context, -1);
	if (executed)
		add_row(block, executed, context, 1);
}

/* Which instruction of @block is at @pc; 0: none, or the first. */
static unsigned int index_of(const struct block *block, uint64_t pc)
{
	uint64_t at = block->addr;
	unsigned int i;

	if (pc <= at || pc >= block->end)
		return 0;
	for (i = 0; i < block->nr && at < pc; i++)
		at += block->lens[i];
	return at == pc ? i : 0;
}

/* Where @pc is among the return addresses, or the free place for it. */
static unsigned int return_place(uint64_t pc)
{
	unsigned int i = (pc * 0x9e3779b97f4a7c15ull) >> 32;

	for (;; i++) {
		i &= return_room - 1;
		if (!return_set[i] || return_set[i] == pc)
			return i;
	}
}

/**
 * flat_note_call() - note where a call returns to
 * @pc: the address behind it
 */
void flat_note_call(uint64_t pc)
{
	uint64_t *old = return_set;
	unsigned int i, old_room = return_room;

	if (nr_returns >= return_room / 2) {
		return_room = old_room ? 2 * old_room : 1 << 14;
		return_set = flow_alloc(return_room * sizeof(*return_set));
		for (i = 0; i < old_room; i++)
			if (old[i])
				return_set[return_place(old[i])] = old[i];
		free(old);
	}
	i = return_place(pc);
	nr_returns += !return_set[i];
	return_set[i] = pc;
}

/* Code behind a call may look like an entry: clac or a NOP, then a call. */
static bool is_entry(uint64_t pc, const struct block *next)
{
	return next && next->entry_shape &&
	       !(return_room && return_set[return_place(pc)]);
}

/* Could @block, executed to its end, be followed by the code at @pc? */
static bool leads_to(const struct block *block, uint64_t pc,
		     const struct block *next)
{
	enum leads leads = block_leads_to(block, pc);

	if (leads != LEADS_ANYWHERE)
		return leads == LEADS;
	if (!is_kernel(pc))
		return true;
	return is_kernel(block->addr) && !is_entry(pc, next);
}

static void set_context(void)
{
	const struct task *task = now.task;

	now.context = task->depth ? task->entry[task->depth - 1] : task->base;
}

static unsigned int entry_context(uint64_t pc)
{
	unsigned int i;

	for (i = NR_BASE_CONTEXTS; i < flat_nr_contexts; i++)
		if (flat_entry[i] == pc)
			return i;
	if (i == FLAT_CONTEXTS) {
		flat_lost++;
		return CONTEXT_OTHER;
	}
	flat_entry[i] = pc;
	flat_nr_contexts++;
	return i;
}

/* An interrupt or exception begins. Those of other tasks are theirs. */
static void enter(struct block *block, uint64_t pc, struct block *next)
{
	struct task *task = now.task;
	unsigned int context = entry_context(pc);

	if (next)
		next->entry_shape = true;
	if (task->depth == MAX_DEPTH) {
		flat_lost++;
		return;
	}
	now.region->entries[context]++;
	task->left[task->depth] = (struct left){ block, now.context };
	task->entry[task->depth++] =
		task->base == CONTEXT_TASK ? context : CONTEXT_OTHER;
	set_context();
}

/* Back from an interrupt or exception to what it interrupted. */
static void leave(uint64_t pc)
{
	struct task *task = now.task;
	struct left left;
	unsigned int index;
	int *kind;

	if (!task->depth)
		return;
	left = task->left[--task->depth];
	/* That of another task may be CONTEXT_OTHER, which nothing is known of. */
	kind = &faults[task->entry[task->depth]];
	set_context();
	index = index_of(left.block, pc);
	if (index && !(left.block->last_kind == INSN_REP &&
		       pc == left.block->last_pc)) {
		count_part(left.block, left.context, index);
		++*kind;
	} else if (pc == left.block->addr &&
		   (!leads_to(left.block, pc, NULL) || *kind > 0)) {
		/* A loop may have come round, or be where it was. */
		count_part(left.block, left.context, 0);
	} else if (pc == left.block->end) {
		--*kind;
	}
}

/* Where something else came than what usually comes behind a block. */
static void follow(struct block *block, uint64_t pc, struct block *next)
{
	unsigned int index;

	if (block->last_kind == INSN_IRET) {
		/* The kernel serialises the CPU with an iret to the next. */
		if (pc != block->end)
			leave(pc);
		return;
	}
	if (leads_to(block, pc, next))
		return;
	index = index_of(block, pc);
	/* QEMU takes a device access out of a block, and goes on behind it. */
	if (index)
		count_part(block, now.context, index);
	else
		enter(block, pc, next);
}

static void switch_task(void)
{
	struct task *task = NULL;
	unsigned int i;

	now.task->where = saved_task;
	now.region->switches++;
	for (i = 0; i < now.nr_tasks && !task; i++)
		if (now.tasks[i].where == loaded_task)
			task = &now.tasks[i];
	if (!task && now.nr_tasks == MAX_TASKS) {
		flat_lost++;
		task = &now.tasks[MAX_TASKS - 1];
		task->depth = 0;
	} else if (!task) {
		task = &now.tasks[now.nr_tasks++];
		*task = (struct task){ .where = loaded_task,
				       .base = CONTEXT_OTHER };
	}
	loaded_task = 0;
	now.task = task;
	set_context();
}

/* The block under way ends, and what is at @pc comes next. */
static inline void step(uint64_t pc, struct block *next)
{
	struct block *block = now.block;

	if (loaded_task)
		switch_task();
	if ((pc == block->end && block->falls_through) ||
	    (pc == block->target && block->target))
		return;
	follow(block, pc, next);
}

/**
 * flat_step() - the next block begins
 * @block: the block
 */
void flat_step(struct block *block)
{
	step(block->addr, block);
	now.block = block;
	count(block, now.context, 1);
}

/**
 * flat_marker() - a marker instruction, which is counted nowhere
 * @pc: its address
 */
void flat_marker(uint64_t pc)
{
	step(pc, NULL);
}

/**
 * flat_resume() - go on after a marker instruction
 * @block: the code behind it
 */
void flat_resume(struct block *block)
{
	now.block = block;
	if (block->nr)
		count(block, now.context, 1);
}

/**
 * flat_stack_saved() - a task's stack pointer is being saved
 * @where: the address that it is saved at, which tells tasks apart
 */
void flat_stack_saved(uint64_t where)
{
	saved_task = where;
}

/**
 * flat_stack_loaded() - a task's stack pointer is being loaded
 * @where: the address that it is loaded from
 */
void flat_stack_loaded(uint64_t where)
{
	current_task = where;
	loaded_task = where;
}

/**
 * flat_begin() - a round begins
 * @number: its region
 * @after: the block after the marker
 */
void flat_begin(unsigned int number, struct block *after)
{
	if (!flat_regions[number])
		flat_regions[number] = flow_alloc(sizeof(*flat_regions[0]));
	now.region = flat_regions[number];
	now.region->rounds++;
	now.touched = NULL;
	now.nr_tasks = 1;
	now.task = now.tasks;
	*now.task = (struct task){ .where = current_task,
				   .base = CONTEXT_TASK };
	loaded_task = 0;
	set_context();
	flat_active = true;
	flat_resume(after);
}

/* Forget what was counted in the round under way, or note it as rows. */
static void finish(bool keep)
{
	struct block *block;
	unsigned int i;

	for (block = now.touched; block; block = block->flat_next) {
		for (i = 0; i < flat_nr_contexts; i++)
			if (keep && block->flat[i])
				add_row(block, block->nr, i, block->flat[i]);
		memset(block->flat, 0, FLAT_CONTEXTS * sizeof(*block->flat));
		block->flat_listed = false;
	}
	flat_active = false;
}

/**
 * flat_end() - the round under way ends
 *
 * flat_marker() has been called for the marker before.
 */
void flat_end(void)
{
	finish(true);
}

/**
 * flat_abandon() - the round under way will not end: forget it
 */
void flat_abandon(void)
{
	finish(false);
}
