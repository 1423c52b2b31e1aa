// SPDX-License-Identifier: GPL-2.0
/*
 * Pages of memory that follow each other physically, with and without scatter().
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../scatter.h"

#define PAGES	256

static int neighbours(const char *memory, size_t page)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entries[PAGES];
	int i, nr = 0;

	if (fd < 0 || pread(fd, entries, sizeof(entries),
			    (off_t)((uintptr_t)memory / page * 8)) !=
			      sizeof(entries))
		return -1;
	close(fd);
	for (i = 1; i < PAGES; i++)
		nr += (entries[i] ^ entries[i - 1]) << 9 &&
		      (entries[i] - entries[i - 1] == 1 ||
		       entries[i - 1] - entries[i] == 1);
	return nr;
}

int main(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = PAGES * page;
	char *memory[2];
	int i, err;

	for (i = 0; i < 2; i++) {
		memory[i] = mmap(NULL, size, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory[i] == MAP_FAILED)
			return 1;
	}
	memset(memory[0], 1, size);
	err = scatter(memory[1], size);
	memset(memory[1], 1, size);
	printf("%d neighbours; scattered: %d, %s\n",
	       neighbours(memory[0], page), neighbours(memory[1], page),
	       strerror(-err));
	return err || neighbours(memory[1], page);
}
