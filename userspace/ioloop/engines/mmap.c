// SPDX-License-Identifier: GPL-2.0
/*
 * mmap: the device is mapped, and an I/O loads or stores one byte in each of
 * its pages. The mapping is emptied before each round, so that a page's first
 * use in a round is a page fault. Whether the page is in the page cache then
 * depends on the warm-up and --invalidate.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../engine.h"

#define PAGE	4096ul

struct mapping {
	char *start;
	bool failed;
};

/* The job of this process or thread. */
static __thread struct job *mapping_job;

/*
 * A page that cannot be read is a SIGBUS. Map an empty page in its place, so
 * that the loop continues to its test for the end. The kernel's pages may be
 * larger than PAGE.
 */
static void on_bus_error(int sig, siginfo_t *info, void *context)
{
	struct mapping *m = mapping_job->data;
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t offset = (uint64_t)((char *)info->si_addr - m->start);

	(void)sig;
	(void)context;
	offset -= offset % page;
	m->failed = true;
	job_error(mapping_job, "page fault", offset, page, -EIO);
	mmap(m->start + offset, page, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void mmap_cleanup(struct job *job)
{
	struct mapping *m = job->data;

	if (m && m->start)
		munmap(m->start, job->dev->end);
	free(m);
}

static bool mmap_setup(struct job *job)
{
	struct mapping *m = calloc(1, sizeof(*m));
	int prot = PROT_READ;
	struct sigaction sa;

	if (!m) {
		job_error(job, "calloc", 0, 0, -ENOMEM);
		return false;
	}
	job->data = m;
	mapping_job = job;
	if (job->cursor.write)
		prot |= PROT_WRITE;
	m->start = mmap(NULL, job->dev->end, prot, MAP_SHARED, job->fd, 0);
	if (m->start == MAP_FAILED) {
		m->start = NULL;
		job_error(job, "mmap", 0, job->dev->end, -errno);
		return false;
	}
	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = on_bus_error;
	sa.sa_flags = SA_SIGINFO;
	sigaction(SIGBUS, &sa, NULL);
	return true;
}

static void mmap_before_round(struct job *job)
{
	struct mapping *m = job->data;

	madvise(m->start, job->dev->end, MADV_DONTNEED);
}

static __always_inline
uint64_t mmap_loop(struct job *job, uint64_t nr, const bool random)
{
	struct mapping *m = job->data;
	char *const start = m->start;
	const int *const stop = job->stop;
	const struct area a = job->area;
	struct cursor c = job->cursor;
	const uint64_t size = job->o->bs;
	uint64_t left = nr;
	uint64_t i;
	char *block;

	do {
		block = start + cursor_next(&c, &a, random);
		for (i = 0; i < size; i += PAGE) {
			if (c.write)
				write_byte(block + i);
			else
				read_byte(block + i);
		}
		left--;
	} while (left && !stopped(stop));
	if (m->failed)
		left++;
	cursor_save(job, &c);
	return nr - left;
}

ENGINE_DEFINE_RUN(mmap_loop)

const struct engine engine_mmap = {
	.name = "mmap",
	.flags = ENGINE_FILE | ENGINE_CACHED,
	.max_iodepth = 1,
	.setup = mmap_setup,
	.before_round = mmap_before_round,
	.run = ENGINE_RUN(mmap_loop),
	.cleanup = mmap_cleanup,
};
