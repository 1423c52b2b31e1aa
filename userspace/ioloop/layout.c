// SPDX-License-Identifier: GPL-2.0
/*
 * Layouts: what chance decides in a task that does I/O, varied on purpose.
 *
 * The kernel takes objects and pages from lists whose order is what was freed
 * before, and a task has files and a stack where its past put them. A cost
 * that depends on that is seen if a job runs in several layouts.
 */
#include <alloca.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "compiler.h"
#include "layout.h"
#include "machine.h"

#define MOST_FILES	12	/* pairs */
#define TABLE_FILES	64	/* a table of so many is enlarged for one more */
#define MOST_PAGES	24
#define MOST_STACK	2048

#define SLABS		"/sys/kernel/slab"

static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (*state >> 16) % below;
}

/*
 * Of files that come in pairs, keep those that chance decides. A pipe that is
 * written to has a page, which costs less than one of the task's memory.
 */
static void vary_files(uint64_t *state)
{
	int fds[MOST_FILES][2];
	uint64_t i, nr = draw(state, MOST_FILES);

	if (draw(state, 2))
		fcntl(eventfd(0, EFD_CLOEXEC), F_DUPFD_CLOEXEC, TABLE_FILES);
	for (i = 0; i < nr; i++) {
		if (pipe(fds[i]))
			return;
		if (draw(state, 2))
			eventfd(0, EFD_CLOEXEC);
		if (write(fds[i][1], "", 1) < 0)
			return;
	}
	for (i = 0; i < nr; i++) {
		if (draw(state, 2)) {
			close(fds[i][0]);
			close(fds[i][1]);
		}
	}
}

/* Of @pages that are taken one after the other, free some out of order. */
static void vary_pages(uint64_t *state, char *pages)
{
	const uint64_t nr = 1 + draw(state, MOST_PAGES), step = 1 + 2 * draw(state, 16);
	uint64_t i;

	for (i = 0; i < nr; i++)
		pages[i * PAGE] = 1;
	for (i = 0; i < nr; i++)
		if (draw(state, 2))
			madvise(pages + i * step % nr * PAGE, PAGE,
				MADV_DONTNEED);
}

/*
 * Give back the slabs of bios and their vectors. In a new slab, the kernel begins
 * at a random object, which may be in the first page of the slab or in another
 * one: then to find the slab takes an instruction more. This needs root.
 */
static void vary_slabs(void)
{
	DIR *folder = opendir(SLABS);
	struct dirent *entry;
	char path[512];
	int fd;

	while (folder && (entry = readdir(folder))) {
		if (strncmp(entry->d_name, "bio", strlen("bio")))
			continue;
		snprintf(path, sizeof(path), SLABS "/%s/shrink", entry->d_name);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (write(fd, "1", 1) < 0)
			perror(path);
		close(fd);
	}
	if (folder)
		closedir(folder);
}

/**
 * layout_call() - call a function in a layout
 * @number: of the layout; 0 leaves everything as it is
 * @function: what is called
 * @job: its first argument
 * @shared: its second argument
 *
 * The files that a layout takes are closed when the thread ends.
 */
__attribute_noinline__
void layout_call(unsigned int number,
		 void (*function)(struct job *job, struct shared *shared),
		 struct job *job, struct shared *shared)
{
	uint64_t state = number * 0x9e3779b97f4a7c15ull;
	char *pages = MAP_FAILED;
	void *room;

	if (number) {
		vary_slabs();
		vary_files(&state);
		pages = mmap(NULL, MOST_PAGES * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (pages != MAP_FAILED)
			vary_pages(&state, pages);
		room = alloca(16 * (1 + draw(&state, MOST_STACK / 16)));
		/* A reader that the compiler cannot see: it keeps the room. */
		__asm__ volatile("" : : "r"(room) : "memory");
	}
	function(job, shared);
	if (pages != MAP_FAILED)
		munmap(pages, MOST_PAGES * PAGE);
}
