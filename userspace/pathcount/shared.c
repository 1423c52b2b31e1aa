// SPDX-License-Identifier: GPL-2.0
/*
 * Shared cache lines.
 *
 * All accesses in a region are counted by instruction, line, CPU and context.
 * When the region is over, those to lines that one CPU writes and another
 * touches are kept.
 */
#include <stdlib.h>
#include <string.h>

#include "shared.h"

#define BUCKETS		(1u << 16)

struct shared_region *shared_regions[NR_REGIONS];

static struct site *sites[BUCKETS];
static struct access *accesses[BUCKETS];
static struct access *touched[MAX_CPUS];
static unsigned int nr_accesses;
static int current = -1;	/* the region */

/**
 * shared_site() - find an instruction, or note it
 * @pc: its address
 * @kind: its kind
 *
 * Return: the site.
 */
struct site *shared_site(uint64_t pc, char kind)
{
	struct site **bucket = &sites[(pc ^ pc >> 16) % BUCKETS], *site;

	for (site = *bucket; site; site = site->next)
		if (site->pc == pc && site->kind == kind)
			return site;
	site = flow_alloc(sizeof(*site));
	site->pc = pc;
	site->kind = kind;
	site->next = *bucket;
	*bucket = site;
	return site;
}

static bool is_the_same(const struct access *access, const struct site *site,
			uint64_t line, unsigned int cpu, unsigned int context,
			bool store)
{
	return access->site == site && access->line == line &&
	       access->cpu == cpu && access->context == context &&
	       access->store == store;
}

static struct access *find(struct site *site, uint64_t line, uint64_t virt,
			   unsigned int cpu, bool store)
{
	struct access *access = site->recent[cpu], **bucket;
	unsigned int context = flat_context(cpu);
	uint64_t hash;

	if (access && is_the_same(access, site, line, cpu, context, store))
		return access;
	hash = ((line / LINE_BYTES) ^ site->pc << 20) * 0x9e3779b97f4a7c15ull;
	bucket = &accesses[(hash >> 40) % BUCKETS];
	for (access = *bucket; access; access = access->next)
		if (is_the_same(access, site, line, cpu, context, store))
			goto found;
	access = flow_alloc(sizeof(*access));
	access->site = site;
	access->line = line;
	access->virt = virt;
	access->cpu = cpu;
	access->context = context;
	access->store = store;
	access->next = *bucket;
	*bucket = access;
	nr_accesses++;
found:
	site->recent[cpu] = access;
	return access;
}

static void touch(struct access *access, unsigned int first, size_t size)
{
	uint64_t bytes = size == LINE_BYTES ? ~0ull : (1ull << size) - 1;

	if (!access->round_times++) {
		access->next_touched = touched[access->cpu];
		touched[access->cpu] = access;
	}
	access->round_bytes |= bytes << first;
}

/**
 * shared_access() - a CPU in a region accesses memory
 * @cpu: the CPU
 * @site: the instruction
 * @virt: the address
 * @phys: the physical address
 * @size: how many bytes
 * @store: it writes them
 */
void shared_access(unsigned int cpu, struct site *site, uint64_t virt,
		   uint64_t phys, size_t size, bool store)
{
	unsigned int first = phys % LINE_BYTES;
	size_t rest = LINE_BYTES - first;

	if (size > LINE_BYTES)
		size = LINE_BYTES;
	touch(find(site, phys - first, virt - first, cpu, store), first,
	      size < rest ? size : rest);
	/* A rest on the next page is left out: phys does not extend there. */
	if (size > rest && (virt + rest) % 4096)
		touch(find(site, phys + rest, virt + rest, cpu, store), 0,
		      size - rest);
}

static int by_line(const void *a, const void *b)
{
	const struct access *x = *(struct access *const *)a;
	const struct access *y = *(struct access *const *)b;

	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	if (x->site->pc != y->site->pc)
		return x->site->pc < y->site->pc ? -1 : 1;
	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	if (x->context != y->context)
		return x->context < y->context ? -1 : 1;
	return x->store - y->store;
}

/* Are @nr accesses to one line by several CPUs, and does one of them write? */
static bool is_shared(struct access **line, unsigned int nr)
{
	bool writes = false, others = false;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		writes |= line[i]->store;
		others |= line[i]->cpu != line[0]->cpu;
	}
	return writes && others;
}

/* Keep those of @all, sorted by line, that are to shared lines; free the others. */
static void keep_shared(struct shared_region *region, struct access **all,
			unsigned int nr)
{
	unsigned int i, end;

	for (i = 0; i < nr; i = end) {
		bool keep;

		for (end = i; end < nr && all[end]->line == all[i]->line;)
			end++;
		keep = is_shared(all + i, end - i);
		for (unsigned int k = i; k < end; k++) {
			if (keep)
				region->accesses[region->nr++] = all[k];
			else
				free(all[k]);
		}
	}
}

/**
 * shared_finish() - the region before is over
 */
void shared_finish(void)
{
	struct shared_region *region;
	struct access **all, *access, *next;
	unsigned int i, nr = 0;

	if (current < 0)
		return;
	all = flow_alloc((nr_accesses + 1) * sizeof(*all));
	for (i = 0; i < BUCKETS; i++) {
		for (access = accesses[i]; access; access = next) {
			next = access->next;
			if (access->times)
				all[nr++] = access;
			else
				free(access);
		}
		accesses[i] = NULL;
		for (struct site *site = sites[i]; site; site = site->next)
			memset(site->recent, 0, sizeof(site->recent));
	}
	qsort(all, nr, sizeof(*all), by_line);
	region = flow_alloc(sizeof(*region));
	region->accesses = flow_alloc((nr + 1) * sizeof(*all));
	keep_shared(region, all, nr);
	shared_regions[current] = region;
	free(all);
	nr_accesses = 0;
	current = -1;
}

/**
 * shared_begin() - a round begins
 * @number: its region
 *
 * CPUs are in one region at a time.
 */
void shared_begin(unsigned int number)
{
	if (current == (int)number)
		return;
	shared_finish();
	current = (int)number;
}

/**
 * shared_end() - a round ends
 * @cpu: the CPU
 * @keep: whether it is counted
 */
void shared_end(unsigned int cpu, bool keep)
{
	struct access *access;

	for (access = touched[cpu]; access; access = access->next_touched) {
		if (keep) {
			access->times += access->round_times;
			access->rounds++;
			access->bytes |= access->round_bytes;
		}
		access->round_times = 0;
		access->round_bytes = 0;
	}
	touched[cpu] = NULL;
}
