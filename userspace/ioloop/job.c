// SPDX-License-Identifier: GPL-2.0
/*
 * Does the rounds of a job and times them.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "../../kernel/include/iopath/marker.h"
#include "clock.h"
#include "engine.h"
#include "job.h"
#include "machine.h"
#include "tick.h"

/* Added to the number of a region: the sleep after its rounds. */
#define DRAIN_REGION	0x4000u

/*
 * A task that begins or ends leaves work to RCU and timers, which would
 * interrupt the few rounds of a layout: ns until it is done, I/Os after it (or a
 * batch), and how many ns longer the next layout waits.
 */
#define SETTLE_NS	50000000
#define SETTLE_IOS	20
#define PHASE_NS	250000

/* The number after "intr" in /proc/stat; -1 if there is none. */
static int64_t interrupts(int fd)
{
	char text[128 << 10];	/* up to this line, with 1000 processors */
	const char *line;
	ssize_t n;

	n = pread(fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	line = strstr(text, "\nintr ");
	return line ? strtoll(line + 6, NULL, 10) : -1;
}

/*
 * The engine's loop between two readings of the counter and the two markers.
 * No other code may be there, so this stays out of line and small.
 */
static __attribute_noinline__
void timed_run(struct job *job, uint64_t nr, struct round *r)
{
	const run_fn run = job->o->engine->run[job->random];
	uint64_t before, after, ios;

	before = cycles();
	iopath_mark_begin();
	ios = run(job, nr);
	iopath_mark_end();
	after = cycles();
	r->ios = ios;
	r->tsc = after - before;
}

/*
 * The same with --repeat. What a round executes besides its I/Os is executed
 * for each number of I/Os.
 */
static __attribute_noinline__
void timed_repeat(struct job *job, uint64_t nr, struct round *r)
{
	const run_fn run = job->o->engine->run[job->random];
	uint64_t left = job->o->repeat, before, after, ios = 0;

	before = cycles();
	iopath_mark_begin();
	do {
		ios += run(job, nr);
	} while (--left);
	iopath_mark_end();
	after = cycles();
	r->ios = ios;
	r->tsc = after - before;
}

/*
 * Dirty pages must be written first: the kernel drops only clean pages. A flush
 * of the device would be counted, and the task would sleep even if none is dirty.
 */
static void drop_cache(struct job *job)
{
	sync_file_range(job->fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE |
				       SYNC_FILE_RANGE_WRITE |
				       SYNC_FILE_RANGE_WAIT_AFTER);
	posix_fadvise(job->fd, 0, 0, POSIX_FADV_DONTNEED);
}

/*
 * With --drain: sleep, so that the kernel does its deferred work. After I/Os
 * the sleep is a region of its own.
 */
static void drain(const struct job *job, bool mark)
{
	const struct timespec ts = timespec_of(job->o->drain);

	if (!job->o->drain)
		return;
	if (mark) {
		iopath_mark_region((unsigned int)job->o->region | DRAIN_REGION);
		iopath_mark_begin();
	}
	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
	if (mark)
		iopath_mark_end();
}

static void do_round(struct job *job, uint64_t nr, struct round *r)
{
	int64_t intr;
	uint64_t ns;

	/* In this order: mapped pages stay in the page cache. */
	if (job->o->engine->before_round)
		job->o->engine->before_round(job);
	if (job->o->invalidate)
		drop_cache(job);
	iopath_mark_region((unsigned int)job->o->region);
	intr = interrupts(job->stat_fd);
	if (job->o->pmu)
		pmu_enable();
	ns = now_ns();
	if (job->o->engine->round)
		job->o->engine->round(job, nr, r);
	else if (job->o->repeat > 1)
		timed_repeat(job, nr, r);
	else
		timed_run(job, nr, r);
	r->ns = now_ns() - ns;
	if (job->o->pmu)
		pmu_disable();
	drain(job, true);
	r->interrupts = interrupts(job->stat_fd);
	if (r->interrupts >= 0)
		r->interrupts = intr >= 0 ? r->interrupts - intr : -1;
}

static void do_rounds(struct job *job)
{
	const uint64_t nr = job->o->number_ios ? job->o->number_ios : UINT64_MAX;
	struct result *res = job->res;
	struct round *r;

	while (res->nr_rounds < job->end && !stopped(job->stop)) {
		r = &res->rounds[res->nr_rounds++];
		do_round(job, nr, r);
		res->ios += r->ios;
		res->bytes = job->dev ? res->ios * job->o->bs : 0;
	}
}

/* The stack's next pages are there before the rounds, which may need them. */
static __attribute_noinline__ void touch_stack(void)
{
	char room[4 * PAGE];
	size_t at;

	for (at = 0; at < sizeof(room); at += PAGE)
		room[at] = 0;
	/* A reader that the compiler cannot see. */
	__asm__ volatile("" : : "r"(room) : "memory");
}

/* I/Os outside any region. */
static void warm_up(struct job *job, uint64_t ios)
{
	const run_fn run = job->o->engine->run[job->random];
	struct cursor cursor = job->cursor;

	if (run && ios)
		run(job, ios);
	job->cursor = cursor;
}

/*
 * With --after_batch, do a batch of I/Os, and with --after_tick, wait for a tick.
 * The first interrupt of a device in a second has the kernel mix its random
 * numbers at the next tick, and until then each interrupt is shorter. At a tick
 * the kernel also does what became due while it was idle.
 */
static void begin_after(struct job *job)
{
	if (job->o->after_batch)
		warm_up(job, job->o->iodepth);
	if (job->o->after_tick)
		await_tick();
}

/*
 * Wait until what the task has left behind is done. Meanwhile the kernel's
 * caches are given back, so that the first I/Os after it cost more. Each layout
 * waits PHASE_NS longer than the one before, so that the timer's ticks do not
 * fall into the same round of all layouts.
 */
static void settle(struct job *job)
{
	const struct timespec ts = {
		.tv_nsec = SETTLE_NS + job->layout % 16 * PHASE_NS,
	};
	uint64_t ios = job->o->warmup_ios, most = SETTLE_IOS;

	if (job->o->layouts <= 1)
		return;
	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
	if (most < job->o->iodepth)
		most = job->o->iodepth;
	if (ios > most)
		ios = most;
	if (ios > job->o->number_ios)
		ios = job->o->number_ios;
	warm_up(job, ios);
}

/*
 * Measure the cost of recording a latency. The recorded values are discarded,
 * and so are the warm-up's latencies.
 */
static void reset_latencies(struct job *job)
{
	const uint64_t nr = 10000;
	struct latency *l = job->res->latency;
	uint64_t begin, before, i;

	begin = cycles();
	for (i = 0; i < nr; i++) {
		before = cycles();
		latency_add(l, cycles() - before);
	}
	job->res->latency_overhead = (double)(cycles() - begin) / (double)nr;
	memset(l, 0, sizeof(*l) * (1 + job->o->split));
}

/**
 * job_warm_up() - run the same code as in a round, but outside any region
 * @job: the job, after setup_job()
 *
 * In a further layout the page cache is full, and settle() warms up again.
 */
void job_warm_up(struct job *job)
{
	uint64_t ios = job->o->warmup_ios;

	if (job->layout && ios > job->o->iodepth)
		ios = job->o->iodepth;
	touch_stack();
	interrupts(job->stat_fd);
	now_ns();
	warm_up(job, ios);
	if (job->o->split)
		reset_latencies(job);
}

static uint64_t timeval_ns(struct timeval tv)
{
	return ((uint64_t)tv.tv_sec * 1000000 + (uint64_t)tv.tv_usec) * 1000;
}

/* If a perf waits for this, it records only the rounds. */
static bool tell_perf(struct job *job, const char *command)
{
	int err;

	if (!job->o->perf_control)
		return true;
	err = perf_control(job->o->perf_control, command);
	if (err)
		job_error(job, "perf_control", 0, 0, err);
	return !err;
}

/**
 * job_run() - do all rounds, and record what they have in common
 * @job: the job, after setup_job()
 */
void job_run(struct job *job)
{
	const struct engine *e = job->o->engine;
	struct result *res = job->res;
	struct rusage before, after;
	int pmu_fds[NR_PMU_EVENTS];

	if (job->o->pmu)
		pmu_open(pmu_fds, res->pmu);
	if (!tell_perf(job, "enable\n"))
		goto pmu_read;
	drain(job, false);
	settle(job);
	begin_after(job);
	getrusage(RUSAGE_THREAD, &before);
	if (!res->nr_rounds)
		res->start_ns = now_ns();
	if (e->rounds) {
		e->rounds(job);
		drain(job, true);
	} else {
		do_rounds(job);
	}
	res->end_ns = now_ns();
	getrusage(RUSAGE_THREAD, &after);
	tell_perf(job, "disable\n");
	res->user_ns += timeval_ns(after.ru_utime) -
			timeval_ns(before.ru_utime);
	res->system_ns += timeval_ns(after.ru_stime) -
			  timeval_ns(before.ru_stime);
pmu_read:
	if (job->o->pmu)
		pmu_read(pmu_fds, res->pmu);
}
