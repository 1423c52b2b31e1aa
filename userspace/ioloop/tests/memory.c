// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that lies in two page tables, or that does not begin where one does, as
 * the kernel maps it and by map_in_few_tables(). Each is mapped below the one
 * before.
 */
#include <stdbool.h>
#include <stdio.h>

#include "../memory.h"

#define SIZE	(3 * TABLE / 4)
#define LARGE	(7 * TABLE / 4)

static bool in_two(const char *at)
{
	return (uintptr_t)at / TABLE != ((uintptr_t)at + SIZE - 1) / TABLE;
}

static bool begins_inside(const char *at)
{
	return (uintptr_t)at % TABLE;
}

int main(void)
{
	int i, usual = 0, moved = 0, usual_large = 0, moved_large = 0;

	for (i = 0; i < 16; i++) {
		usual += in_two(map_memory(NULL, SIZE, 0));
		moved += in_two(map_in_few_tables(SIZE, 0));
		usual_large += begins_inside(map_memory(NULL, LARGE, 0));
		moved_large += begins_inside(map_in_few_tables(LARGE, 0));
	}
	printf("in two tables: %d of %d, and %d\n", usual, i, moved);
	printf("large, not at a table: %d, and %d\n", usual_large, moved_large);
	/* Linux 6.7 to 6.12 begin large memory at a table, for huge pages. */
	return !usual || moved || moved_large;
}
