/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Following the flow of control inside a region: who called what, in which
 * context, and how often each block of code was executed there.
 */
#ifndef PATHCOUNT_FLOW_H
#define PATHCOUNT_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "insn.h"

#define NR_REGIONS	65536

/**
 * struct block - a straight run of instructions, as QEMU translated it
 * @addr:	where it begins
 * @end:	the address after it
 * @target:	where its last instruction jumps to, or 0
 * @flat:	executions in the flat rounds under way, by CPU
 * @times:	in that of a guest of one CPU, executions by the region's task
 * @nr:		how many instructions; 0 is the empty run after a marker
 * @last_kind:	the kind of its last instruction
 * @falls_through: the code after it may come next
 * @entry_shape: looks like an entry of an interrupt or exception
 * @pauses:	it has a pause instruction
 * @last_pc:	the address of its last instruction
 * @accesses:	those of its last instruction
 * @id:		its number in the output, -1 until the output needs it
 * @lens:	the lengths of the instructions
 * @kinds:	their kinds, enum insn_kind
 * @bytes:	their bytes, to tell code that changed in place
 * @recent:	the record that counted it last
 * @callee:	the part of a flat region that its call led to last
 * @calls:	executions in a region that is counted by system calls
 * @next:	in its bucket of all blocks
 *
 * What flat.c reads of each block that is executed comes first, in one line of
 * the cache.
 */
struct block {
	uint64_t addr;
	uint64_t end;
	uint64_t target;
	struct flat_count *flat;
	int64_t times;
	unsigned int nr;
	char last_kind;
	bool falls_through;
	bool entry_shape;
	bool pauses;
	uint64_t last_pc;
	unsigned int accesses;
	int id;
	uint8_t *lens;
	char *kinds;
	uint8_t *bytes;
	struct record *recent;
	struct part *callee;
	struct calls_count *calls;
	struct block *next;
} __attribute__((aligned(64)));

/* What counts.h has: with a block, of a round, and of one that counts lines. */
enum {
#define ACCESS_COUNT(name, ...)		COUNT_##name,
#define BLOCK_COUNT(name, ...)		COUNT_##name,
#include "counts.h"
	NR_BLOCK_COUNTS
};

enum {
#define EVENT_COUNT(name)		COUNT_##name,
#include "counts.h"
	NR_EVENT_COUNTS
};

enum {
#define FOLLOW_COUNT(name, ...)		COUNT_##name,
#include "counts.h"
	NR_FOLLOW_COUNTS
};

/**
 * struct tally - what was counted
 * @times:	executions, or of no instruction: iterations of a repeated string
 *		instruction after which it went on
 * @counts:	in them
 */
struct tally {
	uint64_t times;
	uint64_t counts[NR_BLOCK_COUNTS];
};

/**
 * struct record - the first @executed instructions of @block, run in @node
 * @round:	in the round under way
 * @quiet:	in all rounds without an interrupt
 * @disturbed:	in all others
 * @touched:	is on the list of the round under way
 * @next_touched: that list
 * @next_hash:	in its bucket
 * @next_node:	the next record of @node
 */
struct record {
	struct node *node;
	struct block *block;
	unsigned int executed;
	bool touched;
	struct tally round;
	struct tally quiet;
	struct tally disturbed;
	struct record *next_touched;
	struct record *next_hash;
	struct record *next_node;
};

enum node_kind { NODE_ROOT, NODE_CALL, NODE_SYSCALL, NODE_ENTRY };

/**
 * struct node - a node of a region's call tree
 * @id:		its number in the region, in order of appearance
 * @kind:	how it was reached
 * @addr:	where it begins: target of the call, or landing address
 * @site:	the call instruction: NODE_CALL only
 * @context:	index into the region's contexts
 * @parent:	caller, or what was interrupted; NULL for a root
 * @child:	first callee
 * @sibling:	next callee of @parent, or next root
 * @records:	what was executed in it
 */
struct node {
	unsigned int id;
	enum node_kind kind;
	uint64_t addr;
	uint64_t site;
	unsigned int context;
	struct node *parent;
	struct node *child;
	struct node *sibling;
	struct record *records;
};

/* Contexts that every region has; more appear with entries. */
enum { CONTEXT_TASK, CONTEXT_OTHER, NR_BASE_CONTEXTS };

/**
 * struct context - on whose behalf code runs
 * @parent:	what was entered from; -1 for the base contexts
 * @entry:	where it was entered: an interrupt's or exception's first
 *		instruction
 * @user:	instructions of the round under way at user addresses
 * @kernel:	and at kernel addresses
 */
struct context {
	int parent;
	uint64_t entry;
	uint64_t user;
	uint64_t kernel;
};

/* Lines and pages, by kind of access and by half of the address space. */
enum {
	PLACES_CODE_USER,
	PLACES_CODE_KERNEL,
	PLACES_DATA_USER,
	PLACES_DATA_KERNEL,
	NR_PLACES
};

/**
 * struct share - a context's share of a round
 * @context:	index into the region's contexts
 */
struct share {
	unsigned int context;
	uint64_t user;
	uint64_t kernel;
};

/**
 * struct sample - what one record counted in one round
 */
struct sample {
	struct record *record;
	struct tally tally;
};

/**
 * struct round - one pass from BEGIN to END
 * @counts:	in all contexts
 * @follow_counts: the same, if there are @lines
 * @expected:	interrupts that belong to the I/O, or ANY_INTERRUPTS
 * @waits:	the CPU is idle until a device answers
 * @has_lines:	@lines, @pages and @follow_counts are counted
 * @lines:	distinct cache lines
 * @pages:	distinct pages of 4 KiB
 * @model:	what the model counted; NULL if the round was not modelled
 * @nr_shares:	how many @shares
 * @shares:	contexts with instructions in this round
 * @nr_samples:	how many @samples
 * @samples:	all that was counted, if the round is the region's first quiet
 *		one of so many round_own() instructions; else there are none
 */
struct round {
	uint64_t counts[NR_EVENT_COUNTS];
	uint64_t follow_counts[NR_FOLLOW_COUNTS];
	unsigned int expected;
	bool waits;
	bool has_lines;
	unsigned int lines[NR_PLACES];
	unsigned int pages[NR_PLACES];
	struct model_round *model;
	unsigned int nr_shares;
	struct share *shares;
	unsigned int nr_samples;
	struct sample *samples;
};

/**
 * struct region - all rounds of one region number
 * @nr_rounds:	how many @rounds
 * @rounds:	in the order they were run
 * @nr_contexts: how many @contexts
 * @contexts:	the base contexts, then entries as they appeared
 * @nr_nodes:	how many nodes there are below @roots
 * @roots:	the call tree
 */
struct region {
	unsigned int nr_rounds;
	struct round *rounds;
	unsigned int nr_contexts;
	struct context *contexts;
	unsigned int nr_nodes;
	struct node *roots;
};

/* All interrupts belong to the I/O, whatever their number. */
#define ANY_INTERRUPTS	(~0u)

/*
 * Every interrupt of a quiet round is an exception, or belongs to the I/O. If
 * the round waits for it, the task slept: on a busy host, the device may answer
 * before that.
 */
static inline bool round_is_quiet(const struct round *round)
{
	return round->expected == ANY_INTERRUPTS ||
	       (round->counts[COUNT_entries] ==
		round->counts[COUNT_faults] + round->expected &&
		(!round->waits || round->counts[COUNT_switches]));
}

/* Is there anything in @tally besides executions? */
static inline bool tally_has_counts(const struct tally *tally)
{
	unsigned int i;

	for (i = 0; i < NR_BLOCK_COUNTS; i++)
		if (tally->counts[i])
			return true;
	return false;
}

static inline bool is_kernel(uint64_t addr)
{
	return addr >> 63;
}

/**
 * enum leads - whether code may follow a block that was executed to its end
 * @LEADS_NOT:		no, as the value false
 * @LEADS:		yes, as the value true
 * @LEADS_ANYWHERE:	the block ends with a jump to a computed address
 */
enum leads {
	LEADS_NOT = false,
	LEADS = true,
	LEADS_ANYWHERE,
};

/* May an instruction of that kind be followed by the one behind it? */
static inline bool falls_through(enum insn_kind kind)
{
	switch (kind) {
	case INSN_JUMP:
	case INSN_JUMP_IND:
	case INSN_CALL:
	case INSN_CALL_IND:
	case INSN_RET:
	case INSN_SYSCALL:
	case INSN_SYSRET:
	case INSN_IRET:
	case INSN_TRAP:
		return false;
	default:
		return true;
	}
}

/* May the code at @pc follow @block, by the kind of its last instruction? */
static inline enum leads block_leads_to(const struct block *block, uint64_t pc)
{
	switch (block->last_kind) {
	case INSN_BRANCH:
		return pc == block->end || pc == block->target;
	case INSN_CALL:
	case INSN_JUMP:
		return pc == block->target;
	case INSN_REP:
		return pc == block->end || pc == block->last_pc;
	case INSN_SYSCALL:
		return LEADS;
	case INSN_TRAP:
		return LEADS_NOT;
	case INSN_SYSRET:
		return !is_kernel(pc);
	case INSN_RET:
	case INSN_CALL_IND:
	case INSN_JUMP_IND:
	case INSN_IRET:
		return LEADS_ANYWHERE;
	default:
		return pc == block->end;
	}
}

/*
 * Does @block end with a repeated string instruction that continues, if @pc
 * comes next? QEMU executes it again for each iteration, and once more when it
 * ends. A processor retires it once, when it ends.
 */
static inline bool block_repeats(const struct block *block, uint64_t pc)
{
	return block->last_kind == INSN_REP && pc == block->last_pc;
}

/* The address of the instruction @index of @block. */
static inline uint64_t block_pc(const struct block *block, unsigned int index)
{
	uint64_t pc = block->addr;
	unsigned int i;

	for (i = 0; i < index; i++)
		pc += block->lens[i];
	return pc;
}

/*
 * Does @block, of which @begun instructions were begun when an interrupt came, go
 * on at @pc? The code there may look like an entry: clac alone.
 */
static inline bool block_goes_on(const struct block *block, unsigned int begun,
				 uint64_t pc)
{
	if (begun < block->nr)
		return pc == block_pc(block, begun);
	return block_leads_to(block, pc) == LEADS;
}

/*
 * Was the last instruction of @block, which @pc repeats, only tried? @string
 * is the answer for a repeated string instruction.
 */
static inline bool block_was_tried(const struct block *block, uint64_t pc,
				   bool string)
{
	if (!block->nr || pc != block->last_pc)
		return false;
	switch (block->last_kind) {
	case INSN_BRANCH:
	case INSN_JUMP:
		return false;
	case INSN_REP:
		return string;
	default:
		return true;
	}
}

void *flow_alloc(size_t size);
struct block *flow_alloc_block(void);
void *flow_grow(void *array, unsigned int nr, size_t size);

extern struct region *flow_regions[NR_REGIONS];
extern unsigned int flow_expected[NR_REGIONS];
extern bool flow_waits[NR_REGIONS];
extern bool flow_active;
extern bool flow_model;

void flow_begin(unsigned int number, const uint64_t *insn_counter,
		struct block *after, unsigned int lines_rounds);
void flow_end(void);
void flow_abandon(void);
int flow_median_round(const struct region *region);
void flow_step(uint64_t pc, struct block *next);
void flow_resume(struct block *block);
void flow_access(uint64_t addr, size_t size, bool write);
void flow_string_access(size_t size);
void flow_stack_slot(uint64_t slot);
void flow_stack_saved(uint64_t where);
void flow_stack_loaded(uint64_t where);

#endif /* PATHCOUNT_FLOW_H */
