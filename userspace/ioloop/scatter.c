// SPDX-License-Identifier: GPL-2.0
/*
 * Puts memory on physical pages of which no two neighbours are adjacent.
 *
 * Neighbours that are adjacent become one segment of an I/O. How many are
 * depends on what ran before, and so would the cost of a large I/O.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "machine.h"
#include "scatter.h"

#define PFN_MASK	((UINT64_C(1) << 55) - 1)	/* of /proc/PID/pagemap */

/* Pages that may be taken for each page of the memory. */
#define SPARE		4

static void touch(char *page)
{
	__atomic_store_n(page, 0x5a, __ATOMIC_RELAXED);
}

/* The number of the physical page; 0: not known without CAP_SYS_ADMIN. */
static uint64_t frame_of(int pagemap, const char *page)
{
	uint64_t entry = 0;
	const off_t at = (off_t)((uintptr_t)page / PAGE * sizeof(entry));

	if (pread(pagemap, &entry, sizeof(entry), at) != sizeof(entry))
		return 0;
	return entry & PFN_MASK;
}

static bool adjacent(uint64_t one, uint64_t two)
{
	return one == two + 1 || two == one + 1;
}

static int scatter_with(int pagemap, char *memory, size_t size, char *spare)
{
	const char *const end = spare + SPARE * size;
	uint64_t frame, last = 0;
	size_t at;

	for (at = 0; at < size; at += PAGE) {
		touch(memory + at);
		frame = frame_of(pagemap, memory + at);
		while (frame && adjacent(frame, last) && spare < end) {
			/* Something else takes the next free page. */
			if (madvise(memory + at, PAGE, MADV_DONTNEED))
				return -errno;
			touch(spare);
			spare += PAGE;
			touch(memory + at);
			frame = frame_of(pagemap, memory + at);
		}
		if (!frame)
			return -EPERM;
		if (adjacent(frame, last))
			return -ENOMEM;
		last = frame;
	}
	return 0;
}

/**
 * scatter() - touch memory so that no two neighbouring pages are adjacent
 * @memory: private, anonymous and not touched yet
 * @size: a multiple of PAGE
 *
 * Return: 0, -EPERM without CAP_SYS_ADMIN, or another negative error code.
 */
int scatter(char *memory, size_t size)
{
	char *spare;
	int pagemap, err;

	pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (pagemap < 0)
		return -errno;
	spare = mmap(NULL, SPARE * size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (spare == MAP_FAILED) {
		err = -errno;
		goto close_pagemap;
	}
	/* A kernel without huge pages refuses this. */
	madvise(memory, size, MADV_NOHUGEPAGE);
	madvise(spare, SPARE * size, MADV_NOHUGEPAGE);
	err = scatter_with(pagemap, memory, size, spare);
	munmap(spare, SPARE * size);
close_pagemap:
	close(pagemap);
	return err;
}
