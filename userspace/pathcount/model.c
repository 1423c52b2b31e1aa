// SPDX-License-Identifier: GPL-2.0
/*
 * A model of a CPU's caches and branch predictors. Documentation/model.rst says
 * what it is, where each parameter comes from, and what is left out.
 */
#include <string.h>

#include "model.h"

#define WEAKLY_NOT_TAKEN	1
#define TAKEN			2	/* predicted from here on */
#define STRONGLY_TAKEN		3

/**
 * model_reset() - a CPU that has executed nothing
 * @model: the CPU
 */
void model_reset(struct model *model)
{
	memset(model, 0, sizeof(*model));
	memset(model->counters, WEAKLY_NOT_TAKEN, sizeof(model->counters));
}

/**
 * model_evict() - other work has taken what is small
 * @model: the CPU
 *
 * L1I, L1D and the TLBs are empty then. L2 and the predictors are as before.
 */
void model_evict(struct model *model)
{
	memset(model->l1i, 0, sizeof(model->l1i));
	memset(model->l1d, 0, sizeof(model->l1d));
	memset(model->itlb, 0, sizeof(model->itlb));
	memset(model->dtlb, 0, sizeof(model->dtlb));
}

/**
 * model_begin() - count from here
 * @model: the CPU
 */
void model_begin(struct model *model)
{
	memset(model->counts, 0, sizeof(model->counts));
}

/* Use @number in a set, which makes it the last used. Was it there? */
static bool use(uint64_t *set, unsigned int ways, uint64_t number)
{
	uint64_t entry = number + 1;
	unsigned int way;

	for (way = 0; way < ways - 1; way++)
		if (set[way] == entry)
			break;
	number = set[way];
	memmove(set + 1, set, way * sizeof(*set));
	set[0] = entry;
	return number == entry;
}

static void use_line(struct model *model,
		     uint64_t l1[MODEL_L1_SETS][MODEL_L1_WAYS],
		     enum model_count count, uint64_t line)
{
	if (use(l1[line % MODEL_L1_SETS], MODEL_L1_WAYS, line))
		return;
	model->counts[count]++;
	if (!use(model->l2[line % MODEL_L2_SETS], MODEL_L2_WAYS, line))
		model->counts[MODEL_L2]++;
}

static void use_page(struct model *model, uint64_t tlb[MODEL_TLB_ENTRIES],
		     enum model_count count, uint64_t page)
{
	if (!use(tlb, MODEL_TLB_ENTRIES, page))
		model->counts[count]++;
}

/**
 * model_fetch() - instructions are fetched
 * @model: the CPU
 * @pc: address of the first
 * @size: bytes of them, at least one
 */
void model_fetch(struct model *model, uint64_t pc, size_t size)
{
	uint64_t last = pc + size - 1, at;

	for (at = pc >> MODEL_PAGE_SHIFT; at <= last >> MODEL_PAGE_SHIFT; at++)
		use_page(model, model->itlb, MODEL_ITLB, at);
	for (at = pc >> MODEL_LINE_SHIFT; at <= last >> MODEL_LINE_SHIFT; at++)
		use_line(model, model->l1i, MODEL_L1I, at);
}

/**
 * model_access() - memory is read or written
 * @model: the CPU
 * @addr: its address
 * @size: its bytes, at least one
 */
void model_access(struct model *model, uint64_t addr, size_t size)
{
	uint64_t last = addr + size - 1, at;

	for (at = addr >> MODEL_PAGE_SHIFT; at <= last >> MODEL_PAGE_SHIFT;
	     at++)
		use_page(model, model->dtlb, MODEL_DTLB, at);
	for (at = addr >> MODEL_LINE_SHIFT; at <= last >> MODEL_LINE_SHIFT;
	     at++)
		use_line(model, model->l1d, MODEL_L1D, at);
}

/**
 * model_conditional() - a conditional branch was executed
 * @model: the CPU
 * @pc: its address
 * @taken: whether it was taken
 */
void model_conditional(struct model *model, uint64_t pc, bool taken)
{
	uint8_t *counter =
		&model->counters[(pc ^ model->history) % MODEL_COUNTERS];

	if ((*counter >= TAKEN) != taken)
		model->counts[MODEL_CONDITIONAL]++;
	if (taken && *counter < STRONGLY_TAKEN)
		++*counter;
	else if (!taken && *counter)
		--*counter;
	model->history = (model->history << 1 | taken) % MODEL_COUNTERS;
}

/**
 * model_indirect() - an indirect jump or call was executed
 * @model: the CPU
 * @pc: its address
 * @target: where it led
 */
void model_indirect(struct model *model, uint64_t pc, uint64_t target)
{
	uint64_t *predicted =
		&model->targets[(pc ^ model->history) % MODEL_TARGETS];

	if (*predicted != target)
		model->counts[MODEL_INDIRECT]++;
	*predicted = target;
}

/**
 * model_call() - a call was executed, direct or indirect
 * @model: the CPU
 * @ret: the address behind it
 */
void model_call(struct model *model, uint64_t ret)
{
	model->returns[model->pushed] = ret;
	model->pushed = (model->pushed + 1) % MODEL_RETURNS;
	if (model->depth < MODEL_RETURNS)
		model->depth++;
}

/**
 * model_return() - a return was executed
 * @model: the CPU
 * @target: where it led
 *
 * With an empty return stack nothing is predicted, which counts as
 * mispredicted.
 */
void model_return(struct model *model, uint64_t target)
{
	if (!model->depth) {
		model->counts[MODEL_RETURN]++;
		return;
	}
	model->depth--;
	model->pushed = (model->pushed - 1) % MODEL_RETURNS;
	if (model->returns[model->pushed] != target)
		model->counts[MODEL_RETURN]++;
}
