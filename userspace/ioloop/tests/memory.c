// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that lies in two page tables, as the kernel maps it and by
 * map_in_one_table(). Each is mapped below the one before.
 */
#include <stdbool.h>
#include <stdio.h>

#include "../memory.h"

#define SIZE	(3 * TABLE / 4)

static bool in_two(const char *at)
{
	return (uintptr_t)at / TABLE != ((uintptr_t)at + SIZE - 1) / TABLE;
}

int main(void)
{
	int i, usual = 0, moved = 0;

	for (i = 0; i < 16; i++) {
		usual += in_two(map_memory(NULL, SIZE, 0));
		moved += in_two(map_in_one_table(SIZE, 0));
	}
	printf("in two tables: %d of %d, and %d\n", usual, i, moved);
	return !usual || moved;
}
