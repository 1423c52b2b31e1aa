// SPDX-License-Identifier: GPL-2.0
/*
 * Flat counting.
 *
 * Everything is inferred from the addresses at which blocks begin, as in
 * flow.c. A block is counted as a whole when it begins. If the next block shows
 * that it was left in the middle, it is subtracted, and its first part is
 * counted instead. Each CPU has rounds of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "flat.h"
#include "parts.h"

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
 * @called:	the block whose system call it is in, or was last
 * @called_at:	where that led
 * @calls:	where it is, unless it is the region's
 */
struct task {
	uint64_t where;
	unsigned int base;
	unsigned int depth;
	struct left left[MAX_DEPTH];
	unsigned int entry[MAX_DEPTH];
	struct block *called;
	uint64_t called_at;
	struct calls calls;
};

/**
 * struct flat_count - how often a CPU executed a block in the round under way
 * @listed:	it is on the CPU's list of blocks
 * @times:	executions by context; of the task on a single CPU, the block has them
 * @repeats:	those after which its repeated string instruction went on
 * @next:	the list of blocks
 * @block:	the block
 */
struct flat_count {
	bool listed;
	int64_t times[FLAT_CONTEXTS];
	int64_t repeats[FLAT_CONTEXTS];
	struct flat_count *next;
	struct block *block;
};

struct flat_region *flat_regions[NR_REGIONS];
uint64_t flat_entry[FLAT_CONTEXTS];
unsigned int flat_nr_contexts = NR_BASE_CONTEXTS;
unsigned int flat_nr_cpus = 1;
unsigned int flat_lost;
bool flat_active[MAX_CPUS];

/*
 * A CPU: what goes on in its round, and its tasks. Tasks are followed outside of
 * regions too.
 */
static struct cpu {
	unsigned int number;
	struct flat_region *region;
	struct block *block;
	struct flat_count *touched;
	unsigned int context;
	bool waited;
	unsigned int first_row;
	struct flat_round before;	/* what the region had then */
	struct task *task;
	unsigned int nr_tasks;
	struct task tasks[MAX_TASKS];
	uint64_t current_task, saved_task, loaded_task;
} cpus[MAX_CPUS];

static struct cpu *now = cpus;	/* the one that executes */

/*
 * By context of an entry: how many more of the interrupted instructions were
 * executed again than were not. If positive, it is an exception, else an
 * interrupt.
 */
static int faults[FLAT_CONTEXTS];

/* The addresses that calls return to. */
static uint64_t *return_set;
static unsigned int return_room, nr_returns;

/* Count for the part that executes, unless that is the region's task. */
static inline void charge(int instructions)
{
	struct part *part = now->task->calls.part;

	if (part)
		part->instructions += instructions;
}

/* Where the executions of a block that has been counted are. */
static inline int64_t *times_of(struct block *block, unsigned int context)
{
	if (context == CONTEXT_TASK && flat_nr_cpus == 1)
		return &block->times;
	return &block->flat[now->number].times[context];
}

static void count(struct block *block, unsigned int context, int times)
{
	struct flat_count *counts;

	if (!block->flat)
		block->flat = flow_alloc(flat_nr_cpus * sizeof(*block->flat));
	counts = &block->flat[now->number];
	if (!counts->listed) {
		counts->block = block;
		counts->listed = true;
		counts->next = now->touched;
		now->touched = counts;
	}
	*times_of(block, context) += times;
	charge(times * (int)block->nr);
	if (block->pauses && context == CONTEXT_TASK && is_kernel(block->addr))
		now->waited = true;
}

/* The repeated string instruction that ends @block has not ended yet. */
static void count_repeat(struct block *block, unsigned int context)
{
	block->flat[now->number].repeats[context]++;
	charge(-1);
	now->region->iterations++;
}

static void add_row(struct block *block, unsigned int executed,
		    unsigned int context, int64_t times)
{
	struct flat_region *region = now->region;

	region->rows = flow_grow(region->rows, region->nr_rows,
				 sizeof(*region->rows));
	region->rows[region->nr_rows++] =
		(struct flat_row){ block, executed, context, times };
}

/* @block was counted whole, but only its beginning was executed. */
static void count_part(struct block *block, unsigned int context,
		       unsigned int executed)
{
	count(block, context, -1);
	charge(executed);
	if (executed)
		add_row(block, executed, context, 1);
}

/* The index of the instruction of @block at @pc; 0: none, or the first. */
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

/* The place of @pc among the return addresses, or a free place for it. */
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

/**
 * flat_is_return() - does a call return there?
 * @pc: an address
 *
 * Return: whether there is a call before it, in code that was translated.
 */
bool flat_is_return(uint64_t pc)
{
	return return_room && return_set[return_place(pc)];
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
	/* No call or return leads into the block that it ends. */
	if (block->last_kind != INSN_JUMP_IND && index_of(block, pc))
		return false;
	return is_kernel(block->addr) && !(next && next->entry_shape);
}

/* Calls are not followed on several CPUs. */
static bool follows_calls(void)
{
	return flat_nr_cpus == 1;
}

/* A block outside the region's task was executed to its end and led to @pc. */
static void follow_call(struct block *block, uint64_t pc)
{
	struct parts *parts = &now->region->parts;
	struct calls *calls = &now->task->calls;

	if (!calls->part)
		return;
	if (is_kernel(block->addr) != is_kernel(pc)) {
		parts_root(parts, calls, pc);
		return;
	}
	if (!is_kernel(pc))
		return;
	switch (block->last_kind) {
	case INSN_CALL:
	case INSN_CALL_IND:
		parts_call(parts, calls, block, pc);
		break;
	case INSN_JUMP_IND:
		parts_jump(parts, calls, block, pc);
		break;
	case INSN_RET:
		if (!parts_return(calls, pc))
			parts_return_out(parts, calls, pc, flat_is_return(pc));
		break;
	}
}

static void set_context(void)
{
	const struct task *task = now->task;

	now->context = task->depth ? task->entry[task->depth - 1] : task->base;
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

/*
 * An interrupt or exception begins. In another task it is counted as that task.
 * But with several CPUs, the interrupt that ends an I/O may come in any task,
 * so it has a context of its own.
 */
static void enter(struct block *block, uint64_t pc, struct block *next)
{
	struct task *task = now->task;
	unsigned int context = entry_context(pc);

	if (next)
		next->entry_shape = true;
	if (task->depth == MAX_DEPTH) {
		flat_lost++;
		return;
	}
	now->region->entries[context]++;
	if (follows_calls())
		parts_enter(&now->region->parts, &task->calls, pc);
	task->left[task->depth] = (struct left){ block, now->context };
	task->entry[task->depth++] =
		task->base == CONTEXT_TASK || flat_nr_cpus > 1 ?
			context : CONTEXT_OTHER;
	set_context();
}

/*
 * Back from a system call. An exception in the block that the call ends looks
 * like the call, until the task goes on in that block at @pc.
 */
static void leave_call(uint64_t pc)
{
	struct task *task = now->task;
	struct block *block = task->called;

	if (task->calls.part)
		parts_root(&now->region->parts, &task->calls, pc);
	task->called = NULL;
	if (!block || pc < block->addr || pc >= block->last_pc)
		return;
	count_part(block, now->context, index_of(block, pc));
	now->region->entries[entry_context(task->called_at)]++;
}

/* Back from an interrupt or exception to what it interrupted. */
static void leave(uint64_t pc)
{
	struct task *task = now->task;
	struct left left;
	unsigned int index;
	int *kind;

	if (!task->depth) {
		leave_call(pc);
		return;
	}
	left = task->left[--task->depth];
	if (follows_calls())
		parts_leave(&task->calls);
	/* In another task it may be CONTEXT_OTHER, whose kind is not known. */
	kind = &faults[task->entry[task->depth]];
	set_context();
	index = index_of(left.block, pc);
	if (block_repeats(left.block, pc)) {
		/* Between two iterations, or in one that starts again. */
		if (*kind > 0)
			count_part(left.block, left.context,
				   left.block->nr - 1);
		else
			count_repeat(left.block, left.context);
	} else if (index && *kind < 0 && leads_to(left.block, pc, NULL)) {
		/* An interrupt comes at the end of a block: it leads into itself. */
		follow_call(left.block, pc);
	} else if (index) {
		count_part(left.block, left.context, index);
		++*kind;
	} else if (pc == left.block->addr &&
		   (!leads_to(left.block, pc, NULL) || *kind > 0)) {
		/* A loop may have come round, or still be at its start. */
		count_part(left.block, left.context, 0);
	} else {
		if (pc == left.block->end)
			--*kind;
		if (leads_to(left.block, pc, NULL))
			follow_call(left.block, pc);
	}
}

/* Something else came than what usually follows a block. */
static void follow(struct block *block, uint64_t pc, struct block *next)
{
	unsigned int index;

	if (block->last_kind == INSN_IRET) {
		/* The kernel serialises the CPU with an iret to the next. */
		if (pc != block->end)
			leave(pc);
		return;
	}
	if (block_repeats(block, pc)) {
		count_repeat(block, now->context);
		return;
	}
	if (leads_to(block, pc, next)) {
		if (block->last_kind == INSN_SYSCALL) {
			now->task->called = block;
			now->task->called_at = pc;
		}
		follow_call(block, pc);
		return;
	}
	index = index_of(block, pc);
	/* QEMU splits a block at a device access, and continues after it. */
	if (index)
		count_part(block, now->context, index);
	else
		enter(block, pc, next);
}

/* Set up @task, which may have been another task before. */
static void new_task(struct task *task, uint64_t where, unsigned int base)
{
	task->where = where;
	task->base = base;
	task->depth = 0;
	task->called = NULL;
	parts_reset(&task->calls);
}

/* Another task continues at @pc. */
static void switch_task(uint64_t pc)
{
	struct task *task = NULL;
	unsigned int i;

	parts_switched(&now->task->calls);
	now->task->where = now->saved_task;
	now->region->switches++;
	for (i = 0; i < now->nr_tasks && !task; i++)
		if (now->tasks[i].where == now->loaded_task)
			task = &now->tasks[i];
	if (!task && now->nr_tasks == MAX_TASKS) {
		flat_lost++;
		task = &now->tasks[MAX_TASKS - 1];
		task->depth = 0;
	} else if (!task) {
		task = &now->tasks[now->nr_tasks++];
		new_task(task, now->loaded_task, CONTEXT_OTHER);
		if (follows_calls())
			parts_thread(&now->region->parts, &task->calls,
				     now->loaded_task, pc);
	}
	now->loaded_task = 0;
	now->task = task;
	set_context();
}

/* The block under way ends, and what is at @pc comes next. */
static inline void step(uint64_t pc, struct block *next)
{
	struct block *block = now->block;

	if (now->loaded_task)
		switch_task(pc);
	if (pc == block->end && block->falls_through)
		return;
	if (pc == block->target && block->target) {
		if (block->last_kind == INSN_CALL)
			follow_call(block, pc);
		return;
	}
	follow(block, pc, next);
}

/* Is @block the next iteration of a string instruction that is a block alone? */
static inline bool is_next_iteration(const struct block *block)
{
	return block == now->block && block_repeats(block, block->addr) &&
	       !now->loaded_task;
}

/**
 * flat_step() - the next block begins
 * @cpu: on this CPU
 * @block: the block
 */
void flat_step(unsigned int cpu, struct block *block)
{
	now = &cpus[cpu];
	if (is_next_iteration(block)) {
		/* The same as below, without the tests for other blocks. */
		++*times_of(block, now->context);
		block->flat[cpu].repeats[now->context]++;
		now->region->iterations++;
		return;
	}
	step(block->addr, block);
	now->block = block;
	/* The usual case. It does not read the block's flat_count, another line. */
	if (block->times && now->context == CONTEXT_TASK)
		block->times++;
	else
		count(block, now->context, 1);
}

/**
 * flat_marker() - a marker instruction, which is counted nowhere
 * @cpu: the CPU
 * @pc: its address
 */
void flat_marker(unsigned int cpu, uint64_t pc)
{
	now = &cpus[cpu];
	step(pc, NULL);
}

/**
 * flat_resume() - go on after a marker instruction
 * @cpu: the CPU
 * @block: the code behind it
 */
void flat_resume(unsigned int cpu, struct block *block)
{
	now = &cpus[cpu];
	now->block = block;
	if (block->nr)
		count(block, now->context, 1);
}

/**
 * flat_stack_saved() - a task's stack pointer is being saved
 * @cpu: the CPU
 * @where: the address that it is saved at, which tells tasks apart
 */
void flat_stack_saved(unsigned int cpu, uint64_t where)
{
	cpus[cpu].saved_task = where;
}

/**
 * flat_stack_loaded() - a task's stack pointer is being loaded
 * @cpu: the CPU
 * @where: the address that it is loaded from
 */
void flat_stack_loaded(unsigned int cpu, uint64_t where)
{
	cpus[cpu].current_task = where;
	cpus[cpu].loaded_task = where;
}

/**
 * flat_context() - the context that a CPU is in
 * @cpu: the CPU
 *
 * Return: its number.
 */
unsigned int flat_context(unsigned int cpu)
{
	return cpus[cpu].context;
}

/**
 * flat_begin() - a round begins
 * @cpu: the CPU
 * @number: its region
 * @after: the block after the marker
 */
void flat_begin(unsigned int cpu, unsigned int number, struct block *after)
{
	struct flat_region **regions = &flat_regions[number];

	if (!*regions)
		*regions = flow_alloc(flat_nr_cpus * sizeof(**regions));
	now = &cpus[cpu];
	now->number = cpu;
	now->region = &(*regions)[cpu];
	now->touched = NULL;
	now->waited = false;
	now->first_row = now->region->nr_rows;
	now->before.iterations = now->region->iterations;
	now->before.switches = now->region->switches;
	memcpy(now->before.entries, now->region->entries,
	       sizeof(now->before.entries));
	now->nr_tasks = 1;
	now->task = now->tasks;
	new_task(now->task, now->current_task, CONTEXT_TASK);
	now->loaded_task = 0;
	set_context();
	flat_active[cpu] = true;
	flat_resume(cpu, after);
}

/* How many instructions the round under way has in the first @contexts. */
static uint64_t round_length(unsigned int contexts)
{
	const struct flat_region *region = now->region;
	const struct flat_count *counts;
	uint64_t length = 0;
	unsigned int i;

	for (counts = now->touched; counts; counts = counts->next)
		for (i = 0; i < contexts; i++)
			length += counts->block->nr *
				  *times_of(counts->block, i) -
				  counts->repeats[i];
	for (i = now->first_row; i < region->nr_rows; i++)
		if (region->rows[i].context < contexts)
			length += region->rows[i].executed *
				  region->rows[i].times;
	return length;
}

static void note_round(void)
{
	struct flat_region *region = now->region;
	struct flat_round *round;
	unsigned int i;

	if (flat_nr_cpus > 1) {
		region->lengths = flow_grow(region->lengths, region->rounds,
					    sizeof(*region->lengths));
		region->lengths[region->rounds++] =
			round_length(CONTEXT_TASK + 1);
		return;
	}
	region->each = flow_grow(region->each, region->rounds,
				 sizeof(*region->each));
	round = &region->each[region->rounds++];
	round->instructions = round_length(FLAT_CONTEXTS);
	round->iterations = region->iterations - now->before.iterations;
	round->switches = region->switches - now->before.switches;
	for (i = 0; i < FLAT_CONTEXTS; i++)
		round->entries[i] = region->entries[i] - now->before.entries[i];
}

/* Note how often a block was executed in a context. */
static void add_counts(const struct flat_count *counts, unsigned int context)
{
	struct block *block = counts->block;
	int64_t repeats = counts->repeats[context];
	int64_t whole = *times_of(block, context) - repeats;

	if (whole)
		add_row(block, block->nr, context, whole);
	if (repeats && block->nr > 1)
		add_row(block, block->nr - 1, context, repeats);
}

/* Note what was counted in the round under way as rows, or forget it. */
static void finish(bool keep)
{
	struct flat_count *counts;
	unsigned int i;

	if (keep)
		note_round();
	else
		now->region->nr_rows = now->first_row;
	for (counts = now->touched; counts; counts = counts->next) {
		for (i = 0; keep && i < flat_nr_contexts; i++)
			add_counts(counts, i);
		counts->block->times = 0;
		memset(counts->times, 0, sizeof(counts->times));
		memset(counts->repeats, 0, sizeof(counts->repeats));
		counts->listed = false;
	}
	flat_active[now->number] = false;
}

/**
 * flat_end() - the round under way ends
 * @cpu: the CPU
 *
 * flat_marker() has been called for the marker before.
 *
 * Return: whether the round is counted. With several CPUs, a round is left out
 * if the CPU waited for another one.
 */
bool flat_end(unsigned int cpu)
{
	bool keep;

	now = &cpus[cpu];
	keep = flat_nr_cpus == 1 || !now->waited;
	now->region->left_out += !keep;
	finish(keep);
	return keep;
}

/**
 * flat_abandon() - the round under way will not end: forget it
 * @cpu: the CPU
 */
void flat_abandon(unsigned int cpu)
{
	now = &cpus[cpu];
	finish(false);
}
