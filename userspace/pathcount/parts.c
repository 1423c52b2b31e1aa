// SPDX-License-Identifier: GPL-2.0
/*
 * Parts.
 *
 * Calls and returns are followed by addresses alone. A task that is switched to
 * is in the middle of a function. It returns from one function after the other;
 * the last one is the thread's own.
 */
#include "parts.h"

/**
 * struct part_frame - a call or an interrupt that has not ended
 * @part:	what runs at this level
 * @ret:	where it returns to: calls only
 * @from:	the block that called: calls only
 * @bottom:	that of the calls before: interrupts only
 */
struct part_frame {
	struct part *part;
	uint64_t ret;
	uint64_t from;
	unsigned int bottom;
};

static struct part *find(struct parts *parts, struct part *parent,
			 enum part_kind kind, uint64_t addr, uint64_t site)
{
	struct part **link = &parent->child, *part;

	for (; *link; link = &(*link)->sibling) {
		part = *link;
		if (part->addr != addr || part->kind != kind ||
		    (part->site != site && kind != PART_ROOT))
			continue;
		/* The function called last is often called next. */
		*link = part->sibling;
		goto found;
	}
	part = flow_alloc(sizeof(*part));
	part->kind = kind;
	part->addr = addr;
	part->site = site;
	part->parent = parent;
	parts->list = flow_grow(parts->list, parts->nr, sizeof(*parts->list));
	parts->list[parts->nr++] = part;
found:
	part->sibling = parent->child;
	parent->child = part;
	return part;
}

static struct part_frame *top(struct calls *calls)
{
	return &calls->frames[calls->nr - 1];
}

static void push(struct calls *calls, struct part_frame frame)
{
	if (calls->nr == calls->room)
		calls->frames = flow_grow(calls->frames, calls->room++,
					  sizeof(*calls->frames));
	calls->frames[calls->nr++] = frame;
	calls->part = frame.part;
}

static void set_part(struct calls *calls, struct part *part)
{
	top(calls)->part = part;
	calls->part = part;
}

/**
 * parts_reset() - a task is yet to be seen
 * @calls: its calls, or those of another one before
 */
void parts_reset(struct calls *calls)
{
	calls->part = NULL;
	calls->thread = NULL;
	calls->bottom = 0;
	calls->nr = 0;
}

/**
 * parts_root() - what runs now was called before anything that is known
 * @parts: of the region
 * @calls: of the task
 * @pc: address of what runs
 */
void parts_root(struct parts *parts, struct calls *calls, uint64_t pc)
{
	if (!is_kernel(pc))
		pc = 0;
	if (calls->bottom || !calls->thread) {
		/* In an interrupt, its entry has called everything. */
		calls->nr = calls->bottom + 1;
		calls->part = top(calls)->part;
		return;
	}
	calls->nr = 0;
	push(calls, (struct part_frame){
		     .part = find(parts, calls->thread, PART_ROOT, pc, 0) });
}

/**
 * parts_thread() - another task than the region's begins to be followed
 * @parts: of the region
 * @calls: of the task
 * @where: the address that tells tasks apart
 * @pc: where it goes on
 */
void parts_thread(struct parts *parts, struct calls *calls, uint64_t where,
		  uint64_t pc)
{
	parts_reset(calls);
	calls->thread = find(parts, &parts->top, PART_THREAD, where, 0);
	parts_root(parts, calls, pc);
}

/**
 * parts_enter() - an interrupt or exception begins
 * @parts: of the region
 * @calls: of the task that it interrupts
 * @pc: where it enters
 */
void parts_enter(struct parts *parts, struct calls *calls, uint64_t pc)
{
	struct part *parent = calls->part ? calls->part : &parts->top;
	unsigned int bottom = calls->bottom;

	calls->bottom = calls->nr;
	push(calls, (struct part_frame){
		     .part = find(parts, parent, PART_ENTRY, pc, 0),
		     .bottom = bottom });
}

/**
 * parts_leave() - the innermost part ends
 * @calls: of the task
 */
void parts_leave(struct calls *calls)
{
	calls->nr = calls->bottom;
	calls->bottom = calls->frames[calls->nr].bottom;
	calls->part = calls->nr ? top(calls)->part : NULL;
}

/**
 * parts_switched() - a task is switched out
 * @calls: its calls
 */
void parts_switched(struct calls *calls)
{
	if (calls->part)
		calls->part->switched = true;
}

/**
 * parts_call() - a call
 * @parts: of the region
 * @calls: of the task
 * @block: ends with it
 * @pc: the function
 */
void parts_call(struct parts *parts, struct calls *calls, struct block *block,
		uint64_t pc)
{
	enum part_kind kind = block->last_kind == INSN_CALL ? PART_CALL :
							      PART_CALL_IND;
	struct part *part = block->callee;

	if (!part || part->parent != calls->part || part->addr != pc) {
		part = find(parts, calls->part, kind, pc, block->last_pc);
		block->callee = part;
	}
	push(calls, (struct part_frame){ .part = part, .ret = block->end,
					 .from = block->addr });
}

/*
 * Code that jumps away in its first block, at @from, is a thunk: its caller in
 * fact calls the target of the jump.
 */
static void leave_thunk(struct parts *parts, struct calls *calls, uint64_t from,
			uint64_t pc)
{
	struct part *part = calls->part;

	if (top(calls)->ret && part->addr == from)
		set_part(calls, find(parts, part->parent, PART_CALL_IND, pc,
				     part->site));
}

/**
 * parts_jump() - a jump to a computed address
 * @parts: of the region
 * @calls: of the task
 * @block: ends with it
 * @pc: where it goes
 */
void parts_jump(struct parts *parts, struct calls *calls,
		const struct block *block, uint64_t pc)
{
	leave_thunk(parts, calls, block->addr, pc);
}

/**
 * parts_return() - a return
 * @calls: of the task
 * @pc: where it goes
 *
 * Return: false if no call is known to return there.
 */
bool parts_return(struct calls *calls, uint64_t pc)
{
	unsigned int i;

	for (i = calls->nr - 1; i > calls->bottom; i--) {
		if (calls->frames[i].ret != pc)
			continue;
		calls->nr = i;
		calls->part = top(calls)->part;
		return true;
	}
	return false;
}

/**
 * parts_return_out() - a return to where no call is known to return
 * @parts: of the region
 * @calls: of the task
 * @pc: where it goes
 * @is_call: there is a call before @pc
 */
void parts_return_out(struct parts *parts, struct calls *calls, uint64_t pc,
		      bool is_call)
{
	if (!is_call && calls->nr - calls->bottom > 2) {
		/* A retpoline calls its own code, which returns to the target. */
		uint64_t from = top(calls)->from;

		calls->nr--;
		calls->part = top(calls)->part;
		leave_thunk(parts, calls, from, pc);
	} else if (is_call || calls->nr - calls->bottom == 1) {
		struct part *root = calls->frames[calls->bottom].part;

		if (root->kind == PART_ROOT)
			root->site = pc;
		parts_root(parts, calls, pc);
	}
}

/* A direct call is a part only if another task was switched to in it. */
static bool is_folded(const struct part *part)
{
	return part->kind == PART_CALL && !part->switched;
}

/**
 * parts_fold() - find what is a part of its own in the output
 * @parts: of the region
 *
 * Instructions of direct calls are added to the caller, and parts without
 * instructions are left out.
 */
void parts_fold(struct parts *parts)
{
	unsigned int i;
	int next = 0;

	for (i = parts->nr; i--;) {
		struct part *part = parts->list[i];

		part->parent->switched |= part->switched;
		if (!is_folded(part))
			continue;
		part->parent->instructions += part->instructions;
		part->instructions = 0;
	}
	for (i = 0; i < parts->nr; i++) {
		struct part *part = parts->list[i];

		while (part->parent != &parts->top && is_folded(part->parent))
			part->parent = part->parent->parent;
		part->id = is_folded(part) ? -1 : next++;
	}
}
