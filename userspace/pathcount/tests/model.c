// SPDX-License-Identifier: GPL-2.0
/*
 * Tell the model sequences whose misses and mispredictions are known by hand.
 * Prints a line for each figure that is another.
 */
#include <stdio.h>

#include "model.h"

#define LINE	64u
#define PAGE	4096u
#define SET	4096u	/* from a line to the next one of its set in L1 */
#define SET_L2	65536u	/* and in L2 */

static struct model cpu;

/* Check the count of one kind since the last reset or expect(). */
static void expect(const char *what, enum model_count count, uint64_t should)
{
	if (cpu.counts[count] != should)
		printf("%s: %llu, should be %llu\n", what,
		       (unsigned long long)cpu.counts[count],
		       (unsigned long long)should);
	cpu.counts[count] = 0;
}

static void access_lines(unsigned int first, unsigned int nr, unsigned int step)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		model_access(&cpu, (uint64_t)(first + i) * step, 8);
}

static void caches(void)
{
	unsigned int i;

	/* All of L1D fits, each line once, and one more does not. */
	model_reset(&cpu);
	access_lines(0, 512, LINE);
	expect("first 32 KiB", MODEL_L1D, 512);
	expect("first 32 KiB, L2", MODEL_L2, 512);
	access_lines(0, 512, LINE);
	expect("32 KiB again", MODEL_L1D, 0);
	access_lines(512, 1, LINE);
	expect("line 513", MODEL_L1D, 1);
	/* It took the place of line 0, which takes that of line 64, ... */
	access_lines(0, 512, LINE);
	expect("32 KiB after line 513", MODEL_L1D, 8);
	expect("of them in L2, but line 513", MODEL_L2, 1);

	/* A walk over twice the cache misses each line, each time. */
	access_lines(0, 1024, LINE);
	cpu.counts[MODEL_L1D] = 0;
	cpu.counts[MODEL_L2] = 0;
	access_lines(0, 1024, LINE);
	expect("64 KiB again", MODEL_L1D, 1024);
	expect("64 KiB again, L2", MODEL_L2, 0);

	/* The last used stays: 8 lines of a set, 0 again, 8 replaces 1. */
	model_reset(&cpu);
	access_lines(0, 8, SET);
	access_lines(0, 1, SET);
	access_lines(8, 1, SET);
	expect("9 lines of a set", MODEL_L1D, 9);
	access_lines(0, 1, SET);
	expect("used again, stays", MODEL_L1D, 0);
	access_lines(1, 1, SET);
	expect("not used for longest, gone", MODEL_L1D, 1);

	/* 17 lines of a set of L2, by turns. */
	model_reset(&cpu);
	for (i = 0; i < 3; i++)
		access_lines(0, 16, SET_L2);
	expect("16 lines of a set of L2", MODEL_L2, 16);
	for (i = 0; i < 3; i++)
		access_lines(0, 17, SET_L2);
	expect("17 lines of a set of L2", MODEL_L2, 1 + 2 * 17);

	/* An access over the end of a line, and code in L2 with data. */
	model_reset(&cpu);
	model_access(&cpu, LINE - 1, 1);
	expect("the last byte of a line", MODEL_L1D, 1);
	model_access(&cpu, LINE - 4, 8);
	expect("over the end of it", MODEL_L1D, 1);
	model_fetch(&cpu, 0, 3 * LINE);
	expect("three lines of code", MODEL_L1I, 3);
	expect("of which data had two", MODEL_L2, 3);
	model_fetch(&cpu, LINE + 1, 1);
	expect("one of them again", MODEL_L1I, 0);

	/* The end of the address space. */
	model_access(&cpu, -8ull, 8);
	model_fetch(&cpu, -LINE, LINE - 1);
	expect("the last line", MODEL_L1D, 1);
	expect("the last line of code", MODEL_L1I, 1);
}

static void tlbs(void)
{
	model_reset(&cpu);
	access_lines(0, 64, PAGE);
	access_lines(0, 64, PAGE);
	expect("64 pages twice", MODEL_DTLB, 64);
	expect("no code", MODEL_ITLB, 0);
	access_lines(64, 1, PAGE);
	access_lines(1, 63, PAGE);
	expect("page 65", MODEL_DTLB, 1);
	access_lines(0, 1, PAGE);
	expect("page 0, which it replaced", MODEL_DTLB, 1);
	model_access(&cpu, 70 * PAGE - 4, 8);
	expect("over the end of a page", MODEL_DTLB, 2);
	model_fetch(&cpu, 70 * PAGE - 1, 2);
	expect("code over the end of a page", MODEL_ITLB, 2);
}

static void eviction(void)
{
	model_reset(&cpu);
	access_lines(0, 4, PAGE);
	model_fetch(&cpu, 5 * PAGE, 4);
	model_conditional(&cpu, 0x10, true);
	model_call(&cpu, 0x20);
	model_evict(&cpu);
	model_begin(&cpu);
	access_lines(0, 4, PAGE);
	model_fetch(&cpu, 5 * PAGE, 4);
	model_return(&cpu, 0x20);
	expect("L1D after eviction", MODEL_L1D, 4);
	expect("L1I after eviction", MODEL_L1I, 1);
	expect("DTLB after eviction", MODEL_DTLB, 4);
	expect("ITLB after eviction", MODEL_ITLB, 1);
	expect("L2 after eviction", MODEL_L2, 0);
	expect("the return stack after eviction", MODEL_RETURN, 0);
	if (cpu.history != 1)
		puts("the history after eviction");
}

static void branches(void)
{
	unsigned int i;

	/*
	 * Always taken. Each of the first 12 meets a new history, and so does
	 * the 13th, whose history is the first of ones alone.
	 */
	model_reset(&cpu);
	for (i = 0; i < 100; i++)
		model_conditional(&cpu, 0x400000, true);
	expect("always taken", MODEL_CONDITIONAL, 13);
	for (i = 0; i < 100; i++)
		model_conditional(&cpu, 0x400000, false);
	/* The histories of ones alone and of zeros alone were taken before. */
	expect("then never", MODEL_CONDITIONAL, 2);

	/* By turns: a counter alone would be wrong half of the time. */
	model_reset(&cpu);
	for (i = 0; i < 100; i++)
		model_conditional(&cpu, 0x400000, i % 2);
	cpu.counts[MODEL_CONDITIONAL] = 0;
	for (i = 0; i < 100; i++)
		model_conditional(&cpu, 0x400000, i % 2);
	expect("by turns", MODEL_CONDITIONAL, 0);

	/* Never taken is what a counter predicts first. */
	model_reset(&cpu);
	for (i = 0; i < 100; i++)
		model_conditional(&cpu, 0x400000, false);
	expect("never taken", MODEL_CONDITIONAL, 0);

	/* Two of a counter: 0x1000 apart, with the same history. */
	model_reset(&cpu);
	for (i = 0; i < 20; i++)
		model_conditional(&cpu, 0x400000, true);
	expect("one of two", MODEL_CONDITIONAL, 13);
	model_conditional(&cpu, 0x401000, true);
	expect("the other finds its counter", MODEL_CONDITIONAL, 0);
	model_conditional(&cpu, 0x400400, true);
	expect("a third has its own", MODEL_CONDITIONAL, 1);
}

static void targets(void)
{
	unsigned int i;

	model_reset(&cpu);
	for (i = 0; i < 10; i++)
		model_indirect(&cpu, 0x400000, 0x500000);
	expect("one target", MODEL_INDIRECT, 1);
	for (i = 0; i < 10; i++)
		model_indirect(&cpu, 0x400000, i % 2 ? 0x500000 : 0x600000);
	expect("two by turns", MODEL_INDIRECT, 10);

	/* The branch before says which. */
	model_reset(&cpu);
	for (i = 0; i < 100; i++) {
		if (i == 50)
			model_begin(&cpu);
		model_conditional(&cpu, 0x400100, i % 2);
		model_indirect(&cpu, 0x400000, i % 2 ? 0x500000 : 0x600000);
	}
	expect("two, told by a branch", MODEL_INDIRECT, 0);

	/* 512 entries: the next jump of the same one is 0x200 behind. */
	model_reset(&cpu);
	for (i = 0; i < 10; i++) {
		model_indirect(&cpu, 0x400000, 0x500000);
		model_indirect(&cpu, 0x400200, 0x600000);
	}
	expect("two of one entry", MODEL_INDIRECT, 20);
}

static void returns(void)
{
	unsigned int i;

	model_reset(&cpu);
	for (i = 0; i < 16; i++)
		model_call(&cpu, i);
	for (i = 16; i-- > 0;)
		model_return(&cpu, i);
	expect("16 deep", MODEL_RETURN, 0);
	model_return(&cpu, 0);
	expect("from an empty stack", MODEL_RETURN, 1);

	/* The oldest four are lost. */
	for (i = 0; i < 20; i++)
		model_call(&cpu, i);
	for (i = 20; i-- > 0;)
		model_return(&cpu, i);
	expect("20 deep", MODEL_RETURN, 4);

	/* A return to elsewhere, and the one after it. */
	model_call(&cpu, 1);
	model_call(&cpu, 2);
	model_return(&cpu, 3);
	expect("to elsewhere", MODEL_RETURN, 1);
	model_return(&cpu, 1);
	expect("the next one", MODEL_RETURN, 0);
}

int main(void)
{
	caches();
	tlbs();
	eviction();
	branches();
	targets();
	returns();
	return 0;
}
