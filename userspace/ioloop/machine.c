// SPDX-License-Identifier: GPL-2.0
/*
 * Check that the machine has what the options ask for, before anything is done.
 * What cannot be checked here fails when a job asks the kernel for it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

#define ONLINE_CPUS	"/sys/devices/system/cpu/online"

/* Reads a list such as 0-3,8 into text; false if there is none. */
static bool read_list(const char *path, char *text, int size)
{
	FILE *f = fopen(path, "re");
	bool ok = f && fgets(text, size, f);

	if (f)
		fclose(f);
	if (ok)
		text[strcspn(text, "\n")] = '\0';
	return ok;
}

static bool in_list(const char *list, uint64_t n)
{
	uint64_t first, last;
	char *end;

	for (; *list; list = *end ? end + 1 : end) {
		first = strtoull(list, &end, 10);
		last = *end == '-' ? strtoull(end + 1, &end, 10) : first;
		if (n >= first && n <= last)
			return true;
	}
	return false;
}

/* The default size of huge pages, which mmap() uses. */
static bool free_huge_pages(uint64_t *nr)
{
	FILE *f = fopen("/proc/meminfo", "re");
	char line[128];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "HugePages_Free: %" SCNu64, nr) == 1;
	if (f)
		fclose(f);
	return found;
}

/**
 * machine_stride() - from one buffer of a job to the next
 * @o: the options
 *
 * Each begins at the same place of a page, and so does each of --segments.
 */
uint64_t machine_stride(const struct options *o)
{
	const uint64_t segments = o->segments ? o->segments : 1;

	return ((o->bs / segments + o->mem_offset + PAGE - 1) & ~(PAGE - 1)) *
	       segments;
}

/**
 * machine_buffer_bytes() - what one job's buffers take
 * @o: the options
 *
 * Huge pages are mapped and unmapped as a whole.
 */
uint64_t machine_buffer_bytes(const struct options *o)
{
	const uint64_t unit = o->hugepages ? HUGE_PAGE : PAGE;

	return (machine_stride(o) * o->iodepth + unit - 1) & ~(unit - 1);
}

/**
 * machine_check() - look for processors and huge pages
 * @o: the options
 * @nr_jobs: how many jobs there will be
 * @msg: what is missing, if anything
 * @size: room in @msg
 *
 * Return: true if nothing is known to be missing.
 */
bool machine_check(const struct options *o, unsigned int nr_jobs, char *msg,
		   size_t size)
{
	uint64_t wanted, nr;
	char list[1024];
	unsigned int i;

	for (i = 0; i < o->nr_cpus; i++) {
		if (!read_list(ONLINE_CPUS, list, sizeof(list)) ||
		    in_list(list, o->cpus[i]))
			continue;
		snprintf(msg, size,
			 "--cpus_allowed=%s: there is no processor %u, there are %s",
			 o->cpus_allowed, o->cpus[i], list);
		return false;
	}
	wanted = nr_jobs * (machine_buffer_bytes(o) / HUGE_PAGE);
	if (o->hugepages && o->nr_files && free_huge_pages(&nr) && nr < wanted) {
		snprintf(msg, size,
			 "--hugepages: %" PRIu64 " of 2 MiB are needed and %"
			 PRIu64 " are free; /proc/sys/vm/nr_hugepages sets them aside",
			 wanted, nr);
		return false;
	}
	return true;
}
