// SPDX-License-Identifier: GPL-2.0
/* A rung's program: an I/O reads each line of --kib=N KiB of memory once. */
#define _GNU_SOURCE
#include "../../../ioloop/rounds.h"

#define LINE	64
#define PAGE	4096

/* In a line of its own. */
static struct {
	char *begin, *end;
} memory __attribute__((aligned(LINE)));

/* It accesses only that line and those of the memory. */
static __always_inline bool walk(void)
{
	const char *at = memory.begin, *last = memory.end;

	asm volatile("1: mov (%0), %%al; add %2, %0; cmp %1, %0; jne 1b"
		     : "+r" (at)
		     : "r" (last), "i" (LINE)
		     : "rax", "cc", "memory");
	return true;
}

int main(int argc, char **argv)
{
	size_t size = iopath_number(argc, argv, "--kib", 1) << 10;

	memory.begin = aligned_alloc(PAGE, size);
	if (!memory.begin) {
		perror(argv[0]);
		return 1;
	}
	memset(memory.begin, 1, size);
	memory.end = memory.begin + size;
	return iopath_rounds(argc, argv, walk);
}
