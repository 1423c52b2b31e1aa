// SPDX-License-Identifier: GPL-2.0
/*
 * ioloop: reads the command line (command_line), looks at devices and machine, plans
 * the jobs (plan), runs them (crew, setup, job) and writes the report.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "command_line.h"
#include "crew.h"
#include "device.h"
#include "machine.h"
#include "plan.h"
#include "report.h"
#include "run.h"

static void *share(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void give_verdict(struct run *r)
{
	unsigned int i;

	r->ok = true;
	for (i = 0; i < r->nr_jobs; i++)
		if (r->results[i].errors)
			r->ok = false;
	if (!r->ok)
		r->stopped_by = "error";
}

/* Print what prevents the run, before anything is done. */
static bool inspect(struct device *devices, const struct options *o)
{
	char msg[512];
	unsigned int i;
	bool ok;

	ok = machine_check(o, plan_nr_jobs(o), msg, sizeof(msg));
	for (i = 0; ok && i < o->nr_files; i++)
		ok = device_inspect(&devices[i], o->files[i], o, msg,
				    sizeof(msg));
	if (!ok)
		fprintf(stderr, "ioloop: %s\n", msg);
	return ok;
}

/* The jobs do their share of the rounds in each layout; as crew_run() returns. */
static bool run_layouts(struct run *r, struct shared *shared)
{
	const uint64_t each = r->o->rounds / r->o->layouts;
	unsigned int layout, i;

	for (layout = 0; layout < r->o->layouts && !shared->stop; layout++) {
		for (i = 0; i < r->nr_jobs; i++) {
			if (r->results[i].errors)
				return true;
			r->jobs[i].layout =
				(unsigned int)r->o->first_layout + layout;
			r->jobs[i].end = (layout + 1) * each;
		}
		shared->ready = 0;
		shared->finished = 0;
		if (!crew_run(r, shared))
			return false;
	}
	return true;
}

/*
 * Returns the exit status. It also returns in a job, which frees everything as
 * the parent does.
 */
static int run_all(const struct options *o, struct device *devices)
{
	const unsigned int nr_jobs = plan_nr_jobs(o);
	size_t size = sizeof(struct shared) + nr_jobs * plan_result_size(o);
	struct run r = {
		.o = o, .devices = devices, .nr_jobs = nr_jobs,
		.idle_percent = -1, .stopped_by = "count",
	};
	struct shared *shared = NULL;
	int status = 1;
	unsigned int i;
	bool parent;
	int out;

	r.jobs = calloc(nr_jobs, sizeof(*r.jobs));
	if (r.jobs)
		shared = share(size);
	if (!shared) {
		fprintf(stderr, "ioloop: no memory for %u jobs of %llu rounds\n",
			nr_jobs, (unsigned long long)o->rounds);
		goto free_jobs;
	}
	out = report_open(o);
	if (out < 0) {
		fprintf(stderr, "ioloop: --output=%s: %s\n", o->output,
			strerror(errno));
		goto unshare;
	}

	r.results = shared->results;
	plan_jobs(&r, shared);
	parent = run_layouts(&r, shared);
	if (!parent) {
		status = 0;
		goto close_out;
	}
	for (i = 0; i < o->nr_files; i++)
		counters_end(&devices[i].counters, devices[i].block);
	give_verdict(&r);
	report_errors(&r, stderr);
	if (!report_write(&r, out))
		fprintf(stderr, "ioloop: cannot write the report: %s\n",
			strerror(errno));
	else if (r.ok)
		status = 0;
close_out:
	if (parent && !report_close(o, out)) {
		fprintf(stderr, "ioloop: --output=%s: %s\n", o->output,
			strerror(errno));
		status = 1;
	}
unshare:
	munmap(shared, size);
free_jobs:
	free(r.jobs);
	return status;
}

/* It fits a screen. */
static void print_help(void)
{
	static const char help[] =
"  ioloop --filename=/dev/sdb --direct=1 --rw=randread --runtime=10 --time_based\n"
"  ioloop --filename=/dev/blknull0 --direct=1 --number_ios=200 --rounds=50\n"
"Times one kind of I/O in a short loop. Options are fio's. Writes destroy data!\n"
"  --ioengine=    sync vsync libaio io_uring io_uring_cmd mmap buffered splice\n"
"                 streams biogen null syscall\n"
"  --rw=          read write randread randwrite\n"
"  --pattern=fixed  always at --offset;  --bs=4k: block size\n"
"  --offset=SIZE --size=SIZE   part of the device; --iodepth=1: I/Os per batch\n"
"  --direct=0|1   bypass the page cache; --invalidate=0|1: empty it, each round\n"
"  --time_based --runtime=TIME   for a time; the default is one pass\n"
"  --number_ios=N --rounds=N --warmup_ios=N   I/Os per round; rounds; before it\n"
"  --repeat=N     N times the I/Os in each round, as if in so many rounds\n"
"  --layouts=N --first_layout=N   rounds in N tasks with memory, files elsewhere\n"
"  --numjobs=N --thread --share_file --cpus_allowed=LIST   jobs\n"
"  --rtprio=N --prioclass=N --prio=N --hugepages --scatter --mem_offset=N\n"
"  --hipri --nowait --dsync --atomic --uncached --fixedbufs --onebuf --one_ring\n"
"  --registerfiles --registermem --sqthread_poll --single_issuer --defer_taskrun\n"
"  --userspace_reap --split=N --segments=N --fsync=N --append --streams=N --link\n"
"  --region=N --perf_control=CTL,ACK   markers' number; FIFOs of perf record\n"
"  --drain=TIME   sleep before and after the rounds, until deferred work is done\n"
"  --after_batch --after_tick   first do a batch of I/Os; wait for a tick\n"
"  --pmu          performance counters; --calibrate: no I/O, but known loops\n"
"  --output-format=normal|json --output=FILE   the report\n"
"Exit status: 1 if an I/O failed, 2 if the command line is wrong; see ioloop(1)\n";

	fputs(help, stdout);
}

int main(int argc, char **argv)
{
	static struct device devices[MAX_DEVICES];
	static struct options o;
	char msg[512];
	int status;

	switch (command_line_read(&o, argc, argv, msg, sizeof(msg))) {
	case COMMAND_HELP:
		print_help();
		status = 0;
		break;
	case COMMAND_VERSION:
		puts("ioloop " IOLOOP_VERSION);
		status = 0;
		break;
	case COMMAND_RUN:
		status = 1;
		if (!inspect(devices, &o))
			break;
		plan_counts(&o, devices);
		status = run_all(&o, devices);
		break;
	default:
		fprintf(stderr, "ioloop: %s\n", msg);
		status = 2;
	}
	command_line_free(&o);
	return status;
}
