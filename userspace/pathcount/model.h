/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A model of a CPU's caches and branch predictors, Documentation/model.rst.
 * It does not depend on the emulator: callers report what was executed.
 */
#ifndef PATHCOUNT_MODEL_H
#define PATHCOUNT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_LINE_SHIFT	6
#define MODEL_PAGE_SHIFT	12

/* L1I and L1D have 32 KiB each, L2 has 1 MiB. */
#define MODEL_L1_SETS		64
#define MODEL_L1_WAYS		8
#define MODEL_L2_SETS		1024
#define MODEL_L2_WAYS		16
#define MODEL_TLB_ENTRIES	64

#define MODEL_HISTORY_BITS	12
#define MODEL_COUNTERS		(1u << MODEL_HISTORY_BITS)
#define MODEL_TARGETS		512
#define MODEL_RETURNS		16

/* What is counted: misses, and mispredictions by kind of branch. */
enum model_count {
	MODEL_L1I,
	MODEL_L1D,
	MODEL_L2,
	MODEL_ITLB,
	MODEL_DTLB,
	MODEL_CONDITIONAL,
	MODEL_INDIRECT,
	MODEL_RETURN,
	NR_MODEL_COUNTS
};

/* The CPU as earlier rounds left it, or after other work. */
enum model_state {
	MODEL_WARM,
	MODEL_COLD,
	NR_MODEL_STATES
};

/**
 * struct model_round - what a round counts
 * @counts:	by the state of the CPU before the round
 */
struct model_round {
	uint64_t counts[NR_MODEL_STATES][NR_MODEL_COUNTS];
};

/**
 * struct model - a CPU
 * @l1i:	level 1 cache of instructions: numbers of lines, by set
 * @l1d:	level 1 cache of data
 * @l2:		level 2 cache, of both
 * @itlb:	numbers of the pages of instructions
 * @dtlb:	numbers of the pages of data
 * @counters:	of two bits: conditional branches that were taken
 * @history:	of conditional branches, a bit for each; the last one is lowest
 * @targets:	of indirect jumps and calls
 * @returns:	the return stack; what is pushed when it is full replaces the
 *		oldest
 * @pushed:	where the next return address goes
 * @depth:	how many return addresses there are
 * @counts:	since model_begin()
 *
 * A set of a cache and a TLB are in order, the last used first. Numbers are
 * stored plus one, since 0 is an empty entry.
 */
struct model {
	uint64_t l1i[MODEL_L1_SETS][MODEL_L1_WAYS];
	uint64_t l1d[MODEL_L1_SETS][MODEL_L1_WAYS];
	uint64_t l2[MODEL_L2_SETS][MODEL_L2_WAYS];
	uint64_t itlb[MODEL_TLB_ENTRIES];
	uint64_t dtlb[MODEL_TLB_ENTRIES];
	uint8_t counters[MODEL_COUNTERS];
	unsigned int history;
	uint64_t targets[MODEL_TARGETS];
	uint64_t returns[MODEL_RETURNS];
	unsigned int pushed;
	unsigned int depth;
	uint64_t counts[NR_MODEL_COUNTS];
};

void model_reset(struct model *model);
void model_evict(struct model *model);
void model_begin(struct model *model);
void model_fetch(struct model *model, uint64_t pc, size_t size);
void model_access(struct model *model, uint64_t addr, size_t size);
void model_conditional(struct model *model, uint64_t pc, bool taken);
void model_indirect(struct model *model, uint64_t pc, uint64_t target);
void model_call(struct model *model, uint64_t ret);
void model_return(struct model *model, uint64_t target);

#endif /* PATHCOUNT_MODEL_H */
