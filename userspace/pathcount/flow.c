// SPDX-License-Identifier: GPL-2.0
/*
 * Following the flow of control inside a region.
 *
 * A plugin cannot read the guest's registers, so everything here is inferred
 * from four observations: the address at which each block begins, how many of
 * the previous block's instructions had begun by then, where on the stack a
 * call wrote and a return read, and where __switch_to_asm() keeps stack
 * pointers. A block is an interrupt or an exception if the block before cannot
 * lead to it, or was left in the middle. The target of the iret that ends it
 * shows which of the two it was, and whether the instruction before had been
 * executed or only tried.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch.h"
#include "flow.h"
#include "model.h"

#define RECORD_BUCKETS	(1u << 16)
#define LINE_SHIFT	6
#define PAGE_SHIFT	12
#define STACK_SIZE	16384	/* the kernel's; others are farther apart */

/**
 * struct departure - how a block was left
 * @block:	the block
 * @begun:	instructions that began
 * @executed:	instructions that were counted as executed
 * @slot:	the stack slot its last call wrote or its last return read
 * @string:	accesses of its repeated string instruction
 * @accessed:	the last instruction begun did access memory
 */
struct departure {
	struct block *block;
	unsigned int begun;
	unsigned int executed;
	uint64_t slot;
	uint64_t string;
	bool accessed;
};

/**
 * struct frame - one level of a task's shadow stack
 * @node:	where what runs at this level is counted
 * @slot:	the stack slot of the return address: NODE_CALL only
 * @ret:	the return address: NODE_CALL only
 * @from:	what was interrupted: NODE_ENTRY only
 */
struct frame {
	struct node *node;
	uint64_t slot;
	uint64_t ret;
	struct departure from;
};

/**
 * struct stack - the shadow stack of a task
 * @task:	address where the task's stack pointer is kept; 0: not known yet
 * @base:	the context it runs in
 * @nr:		how many frames; never 0
 * @room:	how many there is room for
 */
struct stack {
	uint64_t task;
	unsigned int base;
	unsigned int nr;
	unsigned int room;
	struct frame *frames;
};

struct region *flow_regions[NR_REGIONS];

/* Interrupts in each round of a region that belong to the I/O, or ANY_INTERRUPTS. */
unsigned int flow_expected[NR_REGIONS];

/* Regions whose rounds wait until a device answers. */
bool flow_waits[NR_REGIONS];

bool flow_active;

/* Whether the rounds that count lines are modelled. */
bool flow_model;

/* The state of the round under way. */
static struct {
	struct region *region;
	struct round round;
	const uint64_t *insn_counter;
	uint64_t insns_before;		/* when @block began */
	struct tally tally;		/* since then */
	uint64_t string;
	size_t string_size;
	uint64_t access_insn;		/* count of instructions at the last */
	struct block *block;
	uint64_t slot;
	struct record *touched;
	bool lines;
	bool model;
	struct stack *stack;
} now;

/* Stacks of the round under way, kept to be used again by the next. */
static struct stack **stacks;
static unsigned int nr_stacks, stacks_room;

/* Tasks are followed outside of regions too. */
static uint64_t current_task, saved_task, loaded_task;

static struct record *records[RECORD_BUCKETS];

/* Addresses at which an interrupt or exception was seen to begin. */
static uint64_t *entries;
static unsigned int nr_entries;

/*
 * The set of cache lines and pages of a round; a slot is used if its round is
 * @mark.
 */
static struct place {
	uint64_t key;
	uint64_t mark;
} *place_set;
static unsigned int place_room, nr_places;
static uint64_t place_mark;

/* @p, or the end of the emulator if there is no memory. */
static void *or_abort(void *p)
{
	if (!p) {
		fputs("pathcount: out of memory\n", stderr);
		abort();
	}
	return p;
}

/**
 * flow_alloc() - zeroed memory, or the end of the emulator
 * @size: bytes
 */
void *flow_alloc(size_t size)
{
	return or_abort(calloc(1, size));
}

/**
 * flow_alloc_block() - an empty block, or the end of the emulator
 *
 * It begins a line of the cache.
 */
struct block *flow_alloc_block(void)
{
	struct block *block = or_abort(aligned_alloc(_Alignof(struct block),
						     sizeof(*block)));

	memset(block, 0, sizeof(*block));
	return block;
}

/**
 * flow_grow() - make room for one more element
 * @array: the array, grown each time its size reaches a power of two
 * @nr: elements that it holds
 * @size: size of one
 *
 * Return: the array, perhaps elsewhere.
 */
void *flow_grow(void *array, unsigned int nr, size_t size)
{
	if (nr & (nr - 1))
		return array;
	return or_abort(realloc(array, (nr ? 2 * (size_t)nr : 1) * size));
}

/* CPUs that execute the round under way. */
static struct model models[NR_MODEL_STATES];

static uint64_t hash(uint64_t x)
{
	x *= 0x9e3779b97f4a7c15ull;
	return x ^ x >> 32;
}

static struct frame *top(void)
{
	return &now.stack->frames[now.stack->nr - 1];
}

/* Cache lines and pages. */

static void place_insert(uint64_t key)
{
	unsigned int i = hash(key) & (place_room - 1);

	while (place_set[i].mark == place_mark)
		i = (i + 1) & (place_room - 1);
	place_set[i] = (struct place){ key, place_mark };
}

static void place_double(void)
{
	unsigned int i, old_room = place_room;
	struct place *old = place_set;

	place_room = old_room ? 2 * old_room : 4096;
	place_set = flow_alloc(place_room * sizeof(*place_set));
	for (i = 0; i < old_room; i++)
		if (old[i].mark == place_mark)
			place_insert(old[i].key);
	free(old);
}

/* Is this the first time in the round that a line or page is touched? */
static bool is_first(uint64_t key)
{
	unsigned int i = hash(key) & (place_room - 1);

	for (; place_set[i].mark == place_mark; i = (i + 1) & (place_room - 1))
		if (place_set[i].key == key)
			return false;
	place_set[i] = (struct place){ key, place_mark };
	if (++nr_places > place_room / 2)
		place_double();
	return true;
}

/*
 * Code and data are counted apart: the lowest bit tells them apart, and the
 * next bit lines and pages.
 */
static void touch_line(uint64_t line, bool data)
{
	uint64_t page = line >> (PAGE_SHIFT - LINE_SHIFT);
	unsigned int what = (data ? PLACES_DATA_USER : PLACES_CODE_USER) +
			    (line >> (63 - LINE_SHIFT));

	if (!is_first(line << 2 | data))
		return;
	now.round.lines[what]++;
	if (is_first(page << 2 | 2 | data))
		now.round.pages[what]++;
}

/* The model. */

static void model_range(uint64_t addr, size_t size, bool data)
{
	unsigned int i;

	for (i = 0; i < NR_MODEL_STATES; i++) {
		if (data)
			model_access(&models[i], addr, size);
		else
			model_fetch(&models[i], addr, size);
	}
}

/* The last instruction of @block led to @pc. */
static void model_branch(struct model *model, const struct block *block,
			 uint64_t pc)
{
	switch (block->last_kind) {
	case INSN_BRANCH:
		model_conditional(model, block->last_pc, pc != block->end);
		break;
	case INSN_CALL:
		model_call(model, block->end);
		break;
	case INSN_CALL_IND:
		model_indirect(model, block->last_pc, pc);
		model_call(model, block->end);
		break;
	case INSN_JUMP_IND:
		model_indirect(model, block->last_pc, pc);
		break;
	case INSN_RET:
		model_return(model, pc);
		break;
	}
}

static void model_branches(const struct block *block, uint64_t pc)
{
	unsigned int i;

	for (i = 0; i < NR_MODEL_STATES; i++)
		model_branch(&models[i], block, pc);
}

/* The first round of a region begins on a CPU that has executed nothing. */
static void model_begin_round(bool first)
{
	if (first)
		model_reset(&models[MODEL_WARM]);
	model_begin(&models[MODEL_WARM]);
	models[MODEL_COLD] = models[MODEL_WARM];
	model_evict(&models[MODEL_COLD]);
}

static struct model_round *model_end_round(void)
{
	struct model_round *counted = flow_alloc(sizeof(*counted));
	unsigned int i;

	for (i = 0; i < NR_MODEL_STATES; i++)
		memcpy(counted->counts[i], models[i].counts,
		       sizeof(models[i].counts));
	return counted;
}

static void touch_range(uint64_t addr, size_t size, bool data)
{
	uint64_t line = addr >> LINE_SHIFT;
	uint64_t last = (addr + size - 1) >> LINE_SHIFT;

	for (; line <= last; line++)
		touch_line(line, data);
	if (now.model)
		model_range(addr, size, data);
}

/* Counting. */

static struct record *find_record(struct node *node, struct block *block,
				  unsigned int executed)
{
	struct record *rec = block->recent, **bucket;

	if (rec && rec->node == node && rec->executed == executed)
		return rec;
	bucket = &records[hash((uintptr_t)node ^ hash((uintptr_t)block) ^
			       executed) % RECORD_BUCKETS];
	for (rec = *bucket; rec; rec = rec->next_hash)
		if (rec->node == node && rec->block == block &&
		    rec->executed == executed)
			goto found;
	rec = flow_alloc(sizeof(*rec));
	rec->node = node;
	rec->block = block;
	rec->executed = executed;
	rec->next_hash = *bucket;
	*bucket = rec;
	rec->next_node = node->records;
	node->records = rec;
found:
	block->recent = rec;
	return rec;
}

static void add(struct tally *sum, const struct tally *tally)
{
	unsigned int i;

	sum->times += tally->times;
	for (i = 0; i < NR_BLOCK_COUNTS; i++)
		sum->counts[i] += tally->counts[i];
}

/* This runs at each memory access. Unrolled, it tests only what may be counted. */
static inline void tally_count(const uint64_t *amounts)
{
	unsigned int i;

#pragma GCC unroll 8
	for (i = 0; i < NR_BLOCK_COUNTS; i++)
		if (amounts[i])
			now.tally.counts[i] += amounts[i];
}

/* The first @executed instructions of a block ran once (or did not: -1). */
static void account(struct block *block, unsigned int executed,
		    const struct tally *tally)
{
	struct node *node = top()->node;
	struct context *context = &now.region->contexts[node->context];
	struct record *rec;

	if (!executed && !tally_has_counts(tally))
		return;
	rec = find_record(node, block, executed);
	if (!rec->touched) {
		rec->touched = true;
		rec->next_touched = now.touched;
		now.touched = rec;
	}
	add(&rec->round, tally);
	now.round.counts[COUNT_instructions] += tally->times * executed;
	if (is_kernel(block->addr))
		context->kernel += tally->times * executed;
	else
		context->user += tally->times * executed;
	if (now.lines && executed)
		touch_range(block->addr, block_pc(block, executed) -
			    block->addr, false);
}

/* @from ran fewer instructions than were counted: correct the count. */
static void recount(const struct departure *from, unsigned int executed)
{
	static const struct tally back = { .times = -1 }, once = { .times = 1 };

	account(from->block, from->executed, &back);
	account(from->block, executed, &once);
}

/* The last instruction of @from was only tried, and will be executed again. */
static void retract(const struct departure *from)
{
	recount(from, from->executed - 1);
}

/* The call tree. */

static unsigned int enter_context(unsigned int parent, uint64_t entry)
{
	struct region *region = now.region;
	unsigned int i;

	for (i = NR_BASE_CONTEXTS; i < region->nr_contexts; i++)
		if (region->contexts[i].parent == (int)parent &&
		    region->contexts[i].entry == entry)
			return i;
	region->contexts = flow_grow(region->contexts, i,
				     sizeof(*region->contexts));
	region->contexts[i] = (struct context){ parent, entry, 0, 0 };
	region->nr_contexts++;
	return i;
}

static struct node *new_node(enum node_kind kind, uint64_t addr,
			     unsigned int context, struct node *parent)
{
	struct node *node = flow_alloc(sizeof(*node));

	node->id = now.region->nr_nodes++;
	node->kind = kind;
	node->addr = addr;
	node->context = context;
	node->parent = parent;
	return node;
}

static struct node *find_root(uint64_t addr, unsigned int context)
{
	struct node **link = &now.region->roots;

	for (; *link; link = &(*link)->sibling)
		if ((*link)->addr == addr && (*link)->context == context)
			return *link;
	*link = new_node(NODE_ROOT, addr, context, NULL);
	return *link;
}

/*
 * Calls of one function from different places are different nodes: after a tail
 * call, only the place shows which function of the node called.
 */
static struct node *find_child(struct node *parent, enum node_kind kind,
			       uint64_t addr, uint64_t site)
{
	struct node **link = &parent->child, *node;
	unsigned int context = parent->context;

	for (; *link; link = &(*link)->sibling) {
		if ((*link)->addr != addr || (*link)->kind != kind ||
		    (*link)->site != site)
			continue;
		/* The function called last is often called next. */
		node = *link;
		*link = node->sibling;
		node->sibling = parent->child;
		parent->child = node;
		return node;
	}
	if (kind == NODE_ENTRY)
		context = enter_context(context, addr);
	node = new_node(kind, addr, context, parent);
	node->site = site;
	node->sibling = parent->child;
	parent->child = node;
	return node;
}

static struct frame *push(struct node *node)
{
	struct stack *stack = now.stack;

	if (stack->nr == stack->room) {
		stack->frames = flow_grow(stack->frames, stack->nr,
					  sizeof(*stack->frames));
		stack->room = stack->room ? 2 * stack->room : 1;
	}
	stack->frames[stack->nr] = (struct frame){ .node = node };
	return &stack->frames[stack->nr++];
}

static bool is_entry(uint64_t pc, const struct block *next)
{
	unsigned int i;

	if (next && next->entry_shape)
		return true;
	for (i = 0; i < nr_entries; i++)
		if (entries[i] == pc)
			return true;
	return false;
}

/* Is there a call that returns to @pc? */
static bool is_return(uint64_t pc)
{
	const struct frame *frame;

	for (frame = top(); frame->node->kind == NODE_CALL; frame--)
		if (frame->ret == pc)
			return true;
	return false;
}

/* Does the code that the current entry interrupted continue at @pc? */
static bool goes_on(uint64_t pc)
{
	const struct frame *frame = top();

	while (frame->node->kind == NODE_CALL)
		frame--;
	return frame->node->kind == NODE_ENTRY &&
	       block_goes_on(frame->from.block, frame->from.begun, pc);
}

/* Could @block, executed to its end, be followed by the code at @pc? */
static bool leads_to(const struct block *block, uint64_t pc,
		     const struct block *next)
{
	enum leads leads = block_leads_to(block, pc);

	if (leads != LEADS_ANYWHERE)
		return leads == LEADS;
	if (block->last_kind == INSN_RET && is_return(pc))
		return true;
	if (block->last_kind == INSN_IRET && goes_on(pc))
		return true;
	if (!is_kernel(pc))
		return true;
	return is_kernel(block->addr) && !is_entry(pc, next);
}

/* Was the last instruction of @from, which @pc repeats, only tried? */
static bool was_tried(const struct departure *from, uint64_t pc)
{
	return block_was_tried(from->block, pc,
			       from->string < from->block->accesses);
}

static void follow(const struct departure *from, uint64_t pc);

/* Back from an interrupt or exception to what it interrupted. */
static void resume(const struct departure *from, uint64_t pc)
{
	struct block *block = from->block;

	if (from->begun < block->nr && from->accessed &&
	    pc == block_pc(block, from->begun)) {
		/*
		 * QEMU split the block at a device access and completed the
		 * access; then an interrupt came.
		 */
		recount(from, from->begun);
	} else if (from->begun < block->nr || block->last_kind == INSN_TRAP) {
		now.round.counts[COUNT_faults]++;
	} else if (was_tried(from, pc)) {
		now.round.counts[COUNT_faults]++;
		retract(from);
	} else if (block_repeats(block, pc)) {
		retract(from);
		now.round.counts[COUNT_iterations]++;
	} else if (leads_to(block, pc, NULL)) {
		follow(from, pc);
	} else {
		/* The kernel handled a fault and continued elsewhere. */
		now.round.counts[COUNT_faults]++;
		retract(from);
	}
}

/* An interrupt or exception begins. */
static void enter(const struct departure *from, uint64_t pc)
{
	struct frame *frame;

	if (!is_entry(pc, NULL)) {
		entries = flow_grow(entries, nr_entries, sizeof(*entries));
		entries[nr_entries++] = pc;
	}
	frame = push(find_child(top()->node, NODE_ENTRY, pc, 0));
	frame->from = *from;
	now.round.counts[COUNT_entries]++;
}

/* The current function was called before this task was first seen. */
static void new_root(uint64_t pc)
{
	now.stack->nr = 0;
	push(find_root(pc, now.stack->base));
}

/* The end of a system call, interrupt or exception. */
static void leave(uint64_t pc)
{
	struct stack *stack = now.stack;
	struct frame *frame = top();
	struct departure from;

	while (frame->node->kind == NODE_CALL)
		frame--;
	if (frame->node->kind == NODE_ROOT) {
		if (stack->base == CONTEXT_TASK)
			now.round.counts[COUNT_unmatched]++;
		new_root(pc);
		return;
	}
	if (frame->node->kind == NODE_SYSCALL && is_kernel(pc)) {
		now.round.counts[COUNT_unmatched]++;
		return;
	}
	from = frame->from;
	stack->nr = frame - stack->frames;
	if (frame->node->kind == NODE_ENTRY)
		resume(&from, pc);
}

/*
 * A call or return at @slot shows that the stack reaches down to there: calls
 * that wrote below, on the same stack, will never return. The kernel makes such
 * calls when it fills the return stack buffer, and longjmp() leaves some.
 */
static void drop_dead_calls(uint64_t slot)
{
	while (arch->stacked && top()->node->kind == NODE_CALL &&
	       top()->slot < slot &&
	       slot - top()->slot < STACK_SIZE)
		now.stack->nr--;
}

/*
 * A return pops the frame whose return address it takes, usually the top one:
 * the one at the same place on the stack, or, as the kernel's entry code
 * moves return addresses between stacks, one with the same return address.
 * At the right place with another address it is a jump (a retpoline). If
 * neither matches, it returns to a caller from before the task was seen, if no
 * call is left, or it cannot be explained. If calls do not use the stack, only
 * the return address is compared.
 */
static void follow_return(uint64_t slot, uint64_t pc)
{
	struct stack *stack = now.stack;
	struct frame *same_ret = NULL, *same_slot = NULL, *frame;

	drop_dead_calls(slot);
	for (frame = top(); frame->node->kind == NODE_CALL; frame--) {
		if (frame->slot == slot && frame->ret == pc) {
			stack->nr = frame - stack->frames;
			return;
		}
		if (frame->ret == pc && !same_ret)
			same_ret = frame;
		if (arch->stacked && frame->slot == slot && !same_slot)
			same_slot = frame;
	}
	if (same_ret)
		stack->nr = same_ret - stack->frames;
	else if (same_slot)
		stack->nr = same_slot - stack->frames;
	else if (frame == top() && frame->node->kind == NODE_ROOT)
		new_root(pc);
	else
		now.round.counts[COUNT_unmatched]++;
}

static void count_follow(const struct block *block, uint64_t pc)
{
	const uint64_t amounts[] = {
#define FOLLOW_COUNT(name, amount) \
	[COUNT_##name] = (amount),
#include "counts.h"
	};
	unsigned int i;

	for (i = 0; i < NR_FOLLOW_COUNTS; i++)
		now.round.follow_counts[i] += amounts[i];
}

/* The last instruction of @from was executed and led to @pc. */
static void follow(const struct departure *from, uint64_t pc)
{
	const struct block *block = from->block;
	struct frame *frame;

	if (now.lines)
		count_follow(block, pc);
	if (now.model)
		model_branches(block, pc);
	switch (block->last_kind) {
	case INSN_CALL:
	case INSN_CALL_IND:
		drop_dead_calls(from->slot + 1);
		frame = push(find_child(top()->node, NODE_CALL, pc,
					block->last_pc));
		frame->slot = from->slot;
		frame->ret = block->end;
		break;
	case INSN_RET:
		follow_return(from->slot, pc);
		break;
	case INSN_SYSCALL:
		push(find_child(top()->node, NODE_SYSCALL, pc, 0));
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

static struct stack *new_stack(uint64_t task, unsigned int base)
{
	struct stack *stack;

	if (nr_stacks == stacks_room) {
		stacks = flow_grow(stacks, nr_stacks, sizeof(*stacks));
		stacks_room = stacks_room ? 2 * stacks_room : 1;
		for (unsigned int i = nr_stacks; i < stacks_room; i++)
			stacks[i] = flow_alloc(sizeof(**stacks));
	}
	stack = stacks[nr_stacks++];
	stack->task = task;
	stack->base = base;
	stack->nr = 0;
	return stack;
}

static void switch_task(uint64_t pc)
{
	uint64_t task = loaded_task;
	unsigned int i;

	loaded_task = 0;
	now.stack->task = saved_task;
	now.round.counts[COUNT_switches]++;
	for (i = 0; i < nr_stacks; i++) {
		if (stacks[i]->task == task) {
			now.stack = stacks[i];
			return;
		}
	}
	now.stack = new_stack(task, CONTEXT_OTHER);
	push(find_root(pc, CONTEXT_OTHER));
}

/**
 * flow_stack_saved() - a task's stack pointer is being saved
 * @where: the address that it is saved at, which tells tasks apart
 */
void flow_stack_saved(uint64_t where)
{
	saved_task = where;
}

/**
 * flow_stack_loaded() - a task's stack pointer is being loaded
 * @where: the address that it is loaded from
 *
 * The rest of the block still counts for the task that is switched out.
 */
void flow_stack_loaded(uint64_t where)
{
	current_task = where;
	loaded_task = where;
}

/**
 * flow_stack_slot() - a call or return uses the stack
 * @slot: address of the return address
 */
void flow_stack_slot(uint64_t slot)
{
	now.slot = slot;
}

/**
 * flow_access() - a memory access inside a region
 * @addr: its address
 * @size: its size in bytes
 * @write: a write, or else a read
 */
void flow_access(uint64_t addr, size_t size, bool write)
{
	const uint64_t amounts[NR_BLOCK_COUNTS] = {
#define ACCESS_COUNT(name, amount) \
	[COUNT_##name] = (amount),
#include "counts.h"
	};

	tally_count(amounts);
	now.access_insn = *now.insn_counter;
	if (now.lines)
		touch_range(addr, size, true);
}

/**
 * flow_string_access() - it was a repeated string instruction's
 * @size: its size in bytes
 */
void flow_string_access(size_t size)
{
	now.string++;
	now.string_size = size;
}

/**
 * flow_resume() - go on after a marker instruction
 * @block: the code behind it
 */
void flow_resume(struct block *block)
{
	now.block = block;
	now.insns_before = *now.insn_counter;
	now.tally = (struct tally){ .times = 1 };
	now.string = 0;
}

static void count_block(const struct block *block)
{
	const uint64_t amounts[NR_BLOCK_COUNTS] = {
#define BLOCK_COUNT(name, amount) \
	[COUNT_##name] = (amount),
#include "counts.h"
	};

	tally_count(amounts);
}

/**
 * flow_step() - the next block begins
 * @pc: its address
 * @next: the block; NULL at a marker instruction, which is counted nowhere
 *
 * Counts what was executed of the block before and follows where its end led.
 */
void flow_step(uint64_t pc, struct block *next)
{
	struct block *block = now.block;
	struct departure from = {
		.block = block,
		.begun = *now.insn_counter - now.insns_before,
		.slot = now.slot,
		.string = now.string,
		.accessed = now.access_insn == *now.insn_counter,
	};
	bool complete = from.begun >= block->nr, again = false;

	from.executed = from.begun;
	if (complete) {
		again = was_tried(&from, pc);
		from.executed -= again;
		if (!again && block_repeats(block, pc)) {
			from.executed--;
			now.round.counts[COUNT_iterations]++;
		}
	} else if (pc != block_pc(block, from.begun)) {
		/*
		 * If the next instruction follows, QEMU has only split the
		 * block at a device access. Otherwise the last instruction
		 * begun did not complete.
		 */
		again = pc == block_pc(block, from.begun - 1);
		from.executed--;
	} else {
		again = true;
	}
	count_block(block);
	account(block, from.executed, &now.tally);
	if (loaded_task)
		switch_task(pc);
	if (!again) {
		if (complete && leads_to(block, pc, next))
			follow(&from, pc);
		else
			enter(&from, pc);
	}
	if (next)
		flow_resume(next);
}

/**
 * flow_begin() - a round begins
 * @number: its region
 * @insn_counter: where the guest's code counts instructions begun
 * @after: the block after the marker
 * @lines_rounds: count cache lines, pages and taken branches in so many rounds
 *	of a region
 */
void flow_begin(unsigned int number, const uint64_t *insn_counter,
		struct block *after, unsigned int lines_rounds)
{
	struct region *region = flow_regions[number];
	unsigned int i;

	if (!region) {
		region = flow_alloc(sizeof(*region));
		for (i = 0; i < NR_BASE_CONTEXTS; i++) {
			region->contexts = flow_grow(region->contexts, i,
						     sizeof(struct context));
			region->contexts[i] = (struct context){ .parent = -1 };
		}
		region->nr_contexts = i;
		flow_regions[number] = region;
	}
	now.region = region;
	now.round = (struct round){ .expected = flow_expected[number],
				    .waits = flow_waits[number] };
	now.insn_counter = insn_counter;
	now.touched = NULL;
	now.lines = region->nr_rounds < lines_rounds;
	if (now.lines) {
		place_mark++;
		nr_places = 0;
		if (!place_set)
			place_double();
	}
	now.round.has_lines = now.lines;
	now.model = flow_model && now.lines;
	if (now.model)
		model_begin_round(!region->nr_rounds);
	for (i = 0; i < region->nr_contexts; i++) {
		region->contexts[i].user = 0;
		region->contexts[i].kernel = 0;
	}
	loaded_task = 0;
	nr_stacks = 0;
	now.stack = new_stack(current_task, CONTEXT_TASK);
	new_root(after->addr);
	flow_resume(after);
	flow_active = true;
}

/*
 * The instructions of a round by which it is compared with others. While it
 * waits, the idle loop executes what depends on how long: those of other tasks
 * are left out, but not the interrupts that they were in.
 */
static uint64_t round_own(const struct round *round)
{
	unsigned int i;

	for (i = 0; round->waits && i < round->nr_shares; i++)
		if (round->shares[i].context == CONTEXT_OTHER)
			return round->counts[COUNT_instructions] - round->shares[i].user -
			       round->shares[i].kernel;
	return round->counts[COUNT_instructions];
}

/* Did an earlier round of the region have the same count? */
static bool is_new_total(const struct region *region, const struct round *round)
{
	unsigned int i;

	for (i = 0; i < region->nr_rounds; i++)
		if (region->rounds[i].nr_samples &&
		    round_own(&region->rounds[i]) == round_own(round))
			return false;
	return true;
}

static void keep_sample(struct round *round, struct record *rec)
{
	round->samples = flow_grow(round->samples, round->nr_samples,
				   sizeof(*round->samples));
	round->samples[round->nr_samples++] =
		(struct sample){ rec, rec->round };
}

/**
 * flow_end() - the round under way ends
 *
 * flow_step() has been called for the marker before.
 */
void flow_end(void)
{
	struct region *region = now.region;
	struct round *round = &now.round;
	bool quiet = round_is_quiet(round), keep;
	struct record *rec;
	unsigned int i;

	for (i = 0; i < region->nr_contexts; i++) {
		struct context *context = &region->contexts[i];

		if (!context->user && !context->kernel)
			continue;
		round->shares = flow_grow(round->shares, round->nr_shares,
					  sizeof(*round->shares));
		round->shares[round->nr_shares++] =
			(struct share){ i, context->user, context->kernel };
	}
	keep = quiet && is_new_total(region, round);
	for (rec = now.touched; rec; rec = rec->next_touched) {
		struct tally *sum = quiet ? &rec->quiet : &rec->disturbed;

		if (keep)
			keep_sample(round, rec);
		add(sum, &rec->round);
		rec->round = (struct tally){ 0 };
		rec->touched = false;
	}
	if (now.model)
		round->model = model_end_round();
	region->rounds = flow_grow(region->rounds, region->nr_rounds,
				   sizeof(*region->rounds));
	region->rounds[region->nr_rounds++] = *round;
	now.lines = false;
	now.model = false;
	flow_active = false;
}

/**
 * flow_abandon() - the round under way will not end: forget it
 */
void flow_abandon(void)
{
	struct record *rec;

	for (rec = now.touched; rec; rec = rec->next_touched)
		rec->round = (struct tally){ 0 };
	flow_active = false;
}

static int compare_totals(const void *a, const void *b)
{
	const struct round *const *x = a, *const *y = b;

	if (round_own(*x) != round_own(*y))
		return round_own(*x) < round_own(*y) ? -1 : 1;
	return *x < *y ? -1 : 1;
}

/**
 * flow_median_round() - the median of a region's quiet rounds
 * @region: the region
 *
 * By round_own(). If their number is even, it is the lower of the middle two;
 * of equal rounds it is the first, which has samples. If all rounds of the region
 * count lines, it is the shortest round. There are few such rounds, and an
 * interrupt in one of them would change the median.
 *
 * Return: its index, -1 if no round was quiet.
 */
int flow_median_round(const struct region *region)
{
	const struct round **quiet, *median = NULL;
	unsigned int i, nr = 0;

	quiet = flow_alloc(region->nr_rounds * sizeof(*quiet));
	for (i = 0; i < region->nr_rounds; i++)
		if (round_is_quiet(&region->rounds[i]))
			quiet[nr++] = &region->rounds[i];
	if (nr) {
		qsort(quiet, nr, sizeof(*quiet), compare_totals);
		if (!region->rounds[region->nr_rounds - 1].has_lines)
			i = (nr - 1) / 2;
		else
			i = 0;
		while (i && round_own(quiet[i - 1]) == round_own(quiet[i]))
			i--;
		median = quiet[i];
	}
	free(quiet);
	return median ? median - region->rounds : -1;
}
