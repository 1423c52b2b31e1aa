// SPDX-License-Identifier: GPL-2.0
/*
 * Counting a program by its system calls.
 *
 * The region begins in a process, which executes the program, and ends in its
 * parent. A system call begins at the instruction that enters the kernel. Which
 * one it is, the first function says that carries one out and that executes
 * then; what was executed until then counts for it as well. It ends where the
 * task is in user mode again. What counts follows the task, not the CPU.
 *
 * Interrupts and exceptions are found as in flow.c: code executes that the code
 * before does not lead to, or an instruction was begun and not completed. The
 * guest's code counts the instructions that begin, so that is exact.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch.h"
#include "calls.h"

#define MAX_LEVELS	16	/* of interrupts and exceptions in each other */
#define MAX_CALLED	64	/* calls while tasks are switched */
#define FUNCTIONS	2048	/* places of the table of functions */

/**
 * struct departure - how a block was left
 * @block:	the block
 * @begun:	instructions that began
 * @executed:	instructions that were counted as executed
 */
struct departure {
	struct block *block;
	unsigned int begun;
	unsigned int executed;
};

/**
 * struct level - an interrupt or exception, or soft interrupts, of a task
 * @bucket:	what it counts for
 * @from:	what it interrupted
 * @ret:	of soft interrupts: where they return to
 */
struct level {
	struct bucket *bucket;
	struct departure from;
	uint64_t ret;
};

/* What a block was executed for before it is known which system call it is. */
struct early {
	struct block *block;
	unsigned int executed;
	int times;
};

/**
 * struct task - a task
 * @where:	address where its stack pointer is kept; 0: not known yet
 * @base:	what it counts for if it is no process of the program, or NULL
 * @began:	it began in the region
 * @in_call:	a process: in a system call
 * @call:	which; NULL: not known yet
 * @user:	instructions in user mode since the last one
 * @nr:		how many @levels
 * @nr_early:	how many @early
 * @early:	executed in the call before it was known
 */
struct task {
	uint64_t where;
	struct bucket *base;
	bool began;
	bool in_call;
	struct bucket *call;
	int64_t user;
	unsigned int nr;
	struct level levels[MAX_LEVELS];
	unsigned int nr_early;
	struct early *early;
};

struct calls_region calls_region;
const char *calls_functions;	/* the file that names functions */
uint64_t calls_limit;
bool calls_active;
unsigned int calls_lost;

/* Functions by address, and what they are: see read_functions(). */
static struct function {
	uint64_t addr;
	char kind;
	struct bucket *bucket;
} functions[FUNCTIONS];

static struct task **tasks;
static unsigned int nr_tasks;

static struct {
	const uint64_t *insn_counter;
	uint64_t first;			/* the counter when the region began */
	uint64_t insns_before;		/* when @block began */
	struct block *block;
	struct task *task;
	struct bucket *user, *other, *start;
	bool switching;
	uint64_t loaded;
	unsigned int nr_called;
	uint64_t called[MAX_CALLED];	/* where calls return to since then */
} now;

static uint64_t current_task, saved_task;

/* Functions. */

static struct function *function(uint64_t addr)
{
	unsigned int i = (addr * 0x9e3779b97f4a7c15ull) >> 32;

	for (;; i++) {
		i %= FUNCTIONS;
		if (!functions[i].addr || functions[i].addr == addr)
			return &functions[i];
	}
}

static char kind_of(uint64_t addr)
{
	return function(addr)->kind;
}

/*
 * A line of the file is a character and an address: c a function that carries out
 * a system call, x where an exception enters, i where an interrupt does, s a
 * function that executes soft interrupts, f where a new task begins. An
 * interrupt that is recognised by the code at its entry needs no line.
 */
static void read_functions(void)
{
	FILE *file = fopen(calls_functions, "r");
	unsigned int nr = 0;
	uint64_t addr;
	char kind;

	if (!file) {
		fprintf(stderr, "pathcount: cannot read %s\n", calls_functions);
		_exit(1);
	}
	while (fscanf(file, " %c %" SCNx64, &kind, &addr) == 2) {
		if (++nr > FUNCTIONS / 2) {
			fputs("pathcount: too many functions\n", stderr);
			_exit(1);
		}
		*function(addr) = (struct function){ addr, kind, NULL };
	}
	fclose(file);
}

/* Counting. */

static struct bucket *new_bucket(enum bucket_kind kind, uint64_t addr,
				 bool beside)
{
	struct calls_region *region = &calls_region;
	struct bucket *bucket = flow_alloc(sizeof(*bucket));

	bucket->kind = kind;
	bucket->addr = addr;
	bucket->beside = beside;
	bucket->id = region->nr_buckets;
	region->buckets = flow_grow(region->buckets, region->nr_buckets,
				    sizeof(*region->buckets));
	region->buckets[region->nr_buckets++] = bucket;
	return bucket;
}

static struct bucket *find_bucket(enum bucket_kind kind, uint64_t addr,
				  bool beside)
{
	unsigned int i;

	for (i = 0; i < calls_region.nr_buckets; i++) {
		struct bucket *bucket = calls_region.buckets[i];

		if (bucket->kind == kind && bucket->addr == addr &&
		    bucket->beside == beside)
			return bucket;
	}
	return new_bucket(kind, addr, beside);
}

static bool is_process(const struct task *task)
{
	return !task->base;
}

/* What the task counts for; NULL if that is not known yet. */
static struct bucket *bucket_of(const struct task *task,
				const struct block *block)
{
	if (task->nr)
		return task->levels[task->nr - 1].bucket;
	if (task->base)
		return task->base;
	if (!is_kernel(block->addr))
		return now.user;
	return task->in_call ? task->call : now.other;
}

static void count(struct bucket *bucket, struct block *block,
		  unsigned int executed, int times)
{
	struct calls_region *region = &calls_region;
	struct calls_count **link = &block->calls, *found;

	if (!*link) {
		region->blocks = flow_grow(region->blocks, region->nr_blocks,
					   sizeof(*region->blocks));
		region->blocks[region->nr_blocks++] = block;
	}
	for (; *link; link = &(*link)->next)
		if ((*link)->bucket == bucket && (*link)->executed == executed)
			break;
	found = *link;
	if (found) {
		*link = found->next;
	} else {
		found = flow_alloc(sizeof(*found));
		found->bucket = bucket;
		found->executed = executed;
	}
	/* What it counted for last is often what it counts for next. */
	found->next = block->calls;
	block->calls = found;
	found->times += times;
	bucket->instructions += (int64_t)times * executed;
}

/* The first @executed instructions of a block ran once (or did not: -1). */
static void account(struct block *block, unsigned int executed, int times)
{
	struct task *task = now.task;
	struct bucket *bucket;

	if (!executed)
		return;
	bucket = bucket_of(task, block);
	if (bucket == now.user)
		task->user += (int64_t)times * executed;
	if (bucket) {
		count(bucket, block, executed, times);
		return;
	}
	task->early = flow_grow(task->early, task->nr_early,
				sizeof(*task->early));
	task->early[task->nr_early++] = (struct early){ block, executed, times };
}

/* It is known which call it is. */
static void settle(struct bucket *call)
{
	struct task *task = now.task;
	unsigned int i;

	task->call = call;
	call->times++;
	call->before += task->user;
	task->user = 0;
	for (i = 0; i < task->nr_early; i++)
		count(call, task->early[i].block, task->early[i].executed,
		      task->early[i].times);
	task->nr_early = 0;
}

/* Of @from, so many instructions ran, and not as many as were counted. */
static void recount(const struct departure *from, unsigned int executed)
{
	account(from->block, from->executed, -1);
	account(from->block, executed, 1);
}

/* The last instruction of @from was only tried. */
static void retract(const struct departure *from)
{
	recount(from, from->executed - 1);
	calls_region.tried++;
}

/*
 * Following the flow of control. A repeated string instruction was only tried if
 * there was an exception; else it goes on.
 */

static bool is_entry(uint64_t pc, const struct block *next)
{
	return kind_of(pc) == 'x' || kind_of(pc) == 'i' ||
	       (next && next->entry_shape);
}

/* Does the code that the current entry interrupted continue at @pc? */
static bool goes_on(uint64_t pc)
{
	const struct task *task = now.task;
	unsigned int nr = task->nr;
	const struct departure *from;

	while (nr && task->levels[nr - 1].ret)
		nr--;
	if (!nr)
		return false;
	from = &task->levels[nr - 1].from;
	return block_goes_on(from->block, from->begun, pc);
}

/* Could @block, executed to its end, be followed by the code at @pc? */
static bool leads_to(const struct block *block, uint64_t pc,
		     const struct block *next)
{
	enum leads leads = block_leads_to(block, pc);

	if (leads != LEADS_ANYWHERE)
		return leads == LEADS;
	if (block->last_kind == INSN_IRET && goes_on(pc))
		return true;
	if (!is_kernel(pc))
		return true;
	return is_kernel(block->addr) && !is_entry(pc, next);
}

static void follow(const struct departure *from, uint64_t pc);

/* Back from an interrupt or exception to what it interrupted. */
static void resume(const struct level *level, uint64_t pc)
{
	const struct departure *from = &level->from;
	struct block *block = from->block;
	bool exception = kind_of(level->bucket->addr) == 'x';

	if (from->begun < block->nr) {
		/*
		 * QEMU took a device access out of the block and completed
		 * it; then came an interrupt.
		 */
		if (pc == block_pc(block, from->begun) && !exception) {
			recount(from, from->begun);
			calls_region.tried--;
		}
	} else if (block->last_kind == INSN_TRAP) {
		return;
	} else if (block_was_tried(block, pc, exception)) {
		retract(from);
	} else if (block_repeats(block, pc)) {
		recount(from, from->executed - 1);
		calls_region.iterations++;
	} else if (leads_to(block, pc, NULL)) {
		follow(from, pc);
	} else if (exception) {
		/* The kernel repaired a fault and went on elsewhere. */
		retract(from);
	}
}

static void push(struct bucket *bucket, const struct departure *from,
		 uint64_t ret)
{
	struct task *task = now.task;

	bucket->times++;
	if (task->nr == MAX_LEVELS) {
		calls_lost++;
		return;
	}
	task->levels[task->nr++] = (struct level){ bucket, *from, ret };
}

/* One that began in the region and has not been in user mode may be a process. */
static bool is_beside(const struct task *task)
{
	return task->base && task->base->kind == BUCKET_TASK && !task->began;
}

/* An interrupt or exception begins. */
static void enter(const struct departure *from, uint64_t pc)
{
	if (!kind_of(pc))
		*function(pc) = (struct function){ pc, 'i', NULL };
	push(find_bucket(BUCKET_ENTRY, pc, is_beside(now.task)), from, 0);
}

/* The task is in user mode again, or for the first time. */
static void leave_kernel(uint64_t pc)
{
	struct task *task = now.task;
	struct level level = { 0 };

	if (task->nr)
		level = task->levels[0];
	task->nr = 0;
	if (task->began) {
		/* What it executed before it was switched out is its start, too. */
		if (task->base && task->base != now.start) {
			task->base->kind = BUCKET_START;
			task->base->times = 0;
		}
		task->base = NULL;
	} else if (task->base) {
		task->base->user = true;
	}
	if (is_process(task) && task->in_call) {
		if (!task->call)
			settle(now.other);
		task->in_call = false;
		task->call = NULL;
	}
	if (level.bucket && !is_kernel(level.from.block->addr))
		resume(&level, pc);
}

/* The end of a system call, interrupt or exception. */
static void leave(uint64_t pc)
{
	struct task *task = now.task;
	struct level level;

	if (!is_kernel(pc)) {
		leave_kernel(pc);
		return;
	}
	while (task->nr && task->levels[task->nr - 1].ret)
		task->nr--;
	if (!task->nr) {
		/* That is where a task was when the region began. */
		calls_region.unmatched += !is_beside(task);
		return;
	}
	level = task->levels[--task->nr];
	resume(&level, pc);
}

/* The last instruction of @from was executed and led to @pc. */
static void follow(const struct departure *from, uint64_t pc)
{
	const struct block *block = from->block;
	struct task *task = now.task;
	struct level *top = task->nr ? &task->levels[task->nr - 1] : NULL;

	switch (block->last_kind) {
	case INSN_CALL:
	case INSN_CALL_IND:
		if (is_kernel(pc) && kind_of(pc) == 's' && !(top && top->ret))
			push(find_bucket(BUCKET_SOFT, pc, is_beside(task)),
			     from, block->end);
		break;
	case INSN_RET:
		if (top && top->ret == pc)
			task->nr--;
		break;
	case INSN_SYSCALL:
		if (is_process(task) && !task->nr) {
			task->in_call = true;
			task->call = NULL;
		}
		break;
	case INSN_IRET:
		/* The kernel serialises the CPU with an iret to the next. */
		if (pc != block->end)
			leave(pc);
		break;
	case INSN_SYSRET:
		leave(pc);
		break;
	}
}

/* Tasks. */

static struct task *find_task(uint64_t where)
{
	struct task *task;
	unsigned int i;

	for (i = 0; i < nr_tasks; i++)
		if (tasks[i]->where == where)
			return tasks[i];
	tasks = flow_grow(tasks, nr_tasks, sizeof(*tasks));
	task = flow_alloc(sizeof(*task));
	task->where = where;
	tasks[nr_tasks++] = task;
	return task;
}

static void switch_task(void)
{
	struct task *task = now.task;

	now.switching = false;
	calls_region.switches++;
	task->where = saved_task;
	/* One that has not been in user mode is a kernel thread, so far. */
	if (task->base == now.start)
		task->base = new_bucket(BUCKET_TASK, task->where, true);
	now.task = find_task(now.loaded);
	if (!now.task->base && !now.task->in_call && !now.task->nr)
		now.task->base = new_bucket(BUCKET_TASK, now.loaded, true);
	if (now.task->base)
		now.task->base->times++;
}

/* While tasks are switched, all counts for the one that is left. */
static void follow_switch(const struct block *block, uint64_t pc)
{
	unsigned int i;

	switch (block->last_kind) {
	case INSN_CALL:
	case INSN_CALL_IND:
		if (now.nr_called < MAX_CALLED)
			now.called[now.nr_called++] = block->end;
		break;
	case INSN_RET:
		for (i = now.nr_called; i--;) {
			if (now.called[i] == pc) {
				now.nr_called = i;
				return;
			}
		}
		switch_task();
		break;
	}
}

/* A new task executes its first own code. */
static void start_task(void)
{
	struct task *task = now.task;

	task->base = now.start;
	task->began = true;
	task->in_call = false;
	task->call = NULL;
	task->user = 0;
	task->nr = 0;
	task->nr_early = 0;
	now.start->times++;
}

/**
 * calls_stack_saved() - a task's stack pointer is being saved
 * @where: the address that it is saved at, which tells tasks apart
 */
void calls_stack_saved(uint64_t where)
{
	saved_task = where;
}

/**
 * calls_stack_loaded() - a task's stack pointer is being loaded
 * @where: the address that it is loaded from
 */
void calls_stack_loaded(uint64_t where)
{
	current_task = where;
	if (!calls_active)
		return;
	now.switching = true;
	now.loaded = where;
	now.nr_called = 0;
}

/* Of what was begun, count what was executed; return how the block was left. */
static struct departure depart(uint64_t pc, bool *complete, bool *again)
{
	struct block *block = now.block;
	struct departure from = {
		.block = block,
		.begun = *now.insn_counter - now.insns_before,
	};

	*complete = from.begun >= block->nr;
	*again = false;
	from.executed = from.begun;
	if (*complete) {
		*again = block_was_tried(block, pc, false);
		from.executed -= *again;
		calls_region.tried += *again;
		if (!*again && block_repeats(block, pc)) {
			from.executed--;
			calls_region.iterations++;
		}
	} else if (!from.begun) {
		*again = pc == block->addr;
	} else if (pc != block_pc(block, from.begun)) {
		/*
		 * Going on with the next instruction, QEMU has only taken a
		 * device access out of the block. All else means that the
		 * last one begun did not complete.
		 */
		*again = pc == block_pc(block, from.begun - 1);
		from.executed--;
		calls_region.tried++;
	} else {
		*again = true;
	}
	account(block, from.executed, 1);
	return from;
}

/* Code outside of interrupts that is at @pc may be a function that tells more. */
static void find_function(uint64_t pc)
{
	struct function *found = function(pc);
	struct task *task = now.task;

	if (found->kind == 'f') {
		start_task();
	} else if (found->kind == 'c' && is_process(task) && task->in_call &&
		   !task->call) {
		if (!found->bucket)
			found->bucket = new_bucket(BUCKET_CALL, pc, false);
		settle(found->bucket);
	}
}

/**
 * calls_step() - the next block begins
 * @pc: its address
 * @next: the block; NULL at a marker instruction, which is counted nowhere
 */
void calls_step(uint64_t pc, struct block *next)
{
	bool complete, again;
	struct departure from;

	from = depart(pc, &complete, &again);
	if (!again) {
		if (!complete || !leads_to(from.block, pc, next))
			enter(&from, pc);
		else if (now.switching)
			follow_switch(from.block, pc);
		else
			follow(&from, pc);
	}
	if (is_kernel(pc) && !now.task->nr)
		find_function(pc);
	if (calls_limit && *now.insn_counter - now.first > calls_limit) {
		fprintf(stderr, "pathcount: more than %" PRIu64
			" instructions were executed\n", calls_limit);
		_exit(1);
	}
	if (next)
		calls_resume(next);
}

/**
 * calls_resume() - go on after a marker instruction
 * @block: the code behind it
 */
void calls_resume(struct block *block)
{
	now.block = block;
	now.insns_before = *now.insn_counter;
}

/**
 * calls_begin() - the region begins
 * @insn_counter: where the guest's code counts instructions begun
 * @after: the block after the marker
 *
 * The task that executes is the first process of the program.
 */
void calls_begin(const uint64_t *insn_counter, struct block *after)
{
	read_functions();
	now.user = new_bucket(BUCKET_USER, 0, false);
	now.other = new_bucket(BUCKET_OTHER, 0, false);
	now.start = new_bucket(BUCKET_START, 0, false);
	now.insn_counter = insn_counter;
	now.first = *insn_counter;
	now.switching = false;
	now.task = find_task(current_task);
	calls_active = true;
	calls_resume(after);
}

/**
 * calls_in_program() - does one of the program's tasks execute?
 *
 * Return: false if it is a task beside them.
 */
bool calls_in_program(void)
{
	return !is_beside(now.task);
}

/**
 * calls_end() - the region ends
 *
 * calls_step() has been called for the marker before.
 */
void calls_end(void)
{
	unsigned int i;

	calls_region.begun = *now.insn_counter - now.first;
	for (i = 0; i < nr_tasks; i++)
		calls_region.last += tasks[i]->user;
	calls_active = false;
}
