/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private memory for buffers.
 */
#ifndef IOLOOP_MEMORY_H
#define IOLOOP_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "machine.h"

/* What one page table maps. */
#define TABLE		(PAGE * (PAGE / sizeof(uint64_t)))

static inline char *map_memory(char *at, size_t size, int flags)
{
	return mmap(at, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

/*
 * The kernel chooses where by chance, and memory that lies in two page tables
 * takes longer to pin: if one has room for it, it is moved below its end. Larger
 * memory begins where a table begins, so that always the same I/Os lie in two.
 */
static inline char *map_in_few_tables(size_t size, int flags)
{
	char *at = map_memory(NULL, size, flags);
	size_t over = ((uintptr_t)at + (size > TABLE ? 0 : size)) % TABLE;

	if (at == MAP_FAILED || !over || over >= size)
		return at;
	munmap(at, size);
	return map_memory(at - over, size, flags);
}

#endif /* IOLOOP_MEMORY_H */
