/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared cache lines: which lines of memory several CPUs touch in a region, and
 * at least one of them writes.
 */
#ifndef PATHCOUNT_SHARED_H
#define PATHCOUNT_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flat.h"

#define LINE_BYTES	64

/**
 * struct site - an instruction that accesses memory
 * @pc:		its address
 * @kind:	its kind
 * @next:	in its bucket of all sites
 * @recent:	the access that each CPU counted last
 */
struct site {
	uint64_t pc;
	char kind;
	struct site *next;
	struct access *recent[MAX_CPUS];
};

/**
 * struct access - what a site on a CPU does to a line
 * @line:	physical address
 * @virt:	the address that the site used
 * @cpu:	the CPU
 * @context:	the context
 * @store:	it writes
 * @bytes:	the bytes of the line, a bit for each
 * @times:	how often
 * @rounds:	the number of rounds with the access
 * @round_bytes: the same in the round under way
 * @round_times: how often in that
 * @next_touched: the list of that round
 * @next:	in its bucket
 */
struct access {
	struct site *site;
	uint64_t line;
	uint64_t virt;
	unsigned int cpu;
	unsigned int context;
	bool store;
	uint64_t bytes;
	uint64_t times;
	unsigned int rounds;
	uint64_t round_bytes;
	uint64_t round_times;
	struct access *next_touched;
	struct access *next;
};

/**
 * struct shared_region - the shared lines of a region
 * @nr:		how many accesses to them there are
 * @accesses:	by line
 */
struct shared_region {
	unsigned int nr;
	struct access **accesses;
};

extern struct shared_region *shared_regions[NR_REGIONS];

struct site *shared_site(uint64_t pc, char kind);
void shared_access(unsigned int cpu, struct site *site, uint64_t virt,
		   uint64_t phys, size_t size, bool store);
void shared_begin(unsigned int number);
void shared_end(unsigned int cpu, bool keep);
void shared_finish(void);

#endif /* PATHCOUNT_SHARED_H */
