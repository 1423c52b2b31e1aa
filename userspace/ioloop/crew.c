// SPDX-License-Identifier: GPL-2.0
/*
 * The processes or threads that the jobs run in: starts, stops and awaits them.
 *
 * Each job is a process, unless --thread is given: where threads share a table
 * of files, the kernel takes a reference on the open file for each system call,
 * so figures would depend on --numjobs. With --layouts, a job is a thread that
 * has a table of its own: to start and end a process would take longer than its
 * I/Os. The results are in memory that parent and jobs share. Signals go to the
 * parent only. A word in the shared memory tells the jobs to stop.
 *
 * Parent and jobs wake each other by signals to a thread, which may be the
 * first one of a process.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crew.h"
#include "error.h"
#include "layout.h"
#include "run.h"
#include "setup.h"

/* A thread's stack, with room for job.c's text of /proc/stat. */
#define STACK_SIZE	(256ul << 10)

/**
 * struct worker - what runs a job
 * @job: the job
 * @shared: what it shares with the parent
 * @running: it was started, and is not known to have ended
 * @tgid: its process
 * @tid: its thread; 0: not known yet; -1: it has ended
 * @thread: the same for the library
 */
struct worker {
	struct job *job;
	struct shared *shared;
	bool running;
	pid_t tgid;
	pid_t tid;
	pthread_t thread;
};

static void wake(pid_t tgid, pid_t tid, int sig)
{
	syscall(SYS_tgkill, tgid, tid, sig);
}

static void wait_for_parent(void)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigwait(&set, &sig);
}

/* Tell the parent that this job is ready, and wait for all the others. */
static void wait_for_start(struct shared *shared)
{
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_RELAXED);
	wake(shared->parent, shared->parent, SIGUSR1);
	wait_for_parent();
}

/* Cleaning up takes time, which jobs that still run must not lose. */
static void wait_for_others(struct shared *shared)
{
	if (__atomic_add_fetch(&shared->finished, 1, __ATOMIC_RELAXED) ==
	    shared->nr_jobs)
		wake(shared->parent, shared->parent, SIGUSR1);
	wait_for_parent();
}

/* SIGUSR2 only ends a system call that waits. */
static void on_wake_up(int sig)
{
	(void)sig;
}

static bool are_threads(const struct options *o)
{
	return o->thread || o->layouts > 1;
}

/* A job that is alone in its layout waits for nobody. */
static bool is_alone(const struct job *job, const struct shared *shared)
{
	return job->o->layouts > 1 && shared->nr_jobs == 1;
}

static void begin_counters(struct device *devices, const struct options *o)
{
	unsigned int i;

	for (i = 0; i < o->nr_files; i++)
		counters_begin(&devices[i].counters, devices[i].block);
}

/* What each process or thread does. */
static void member_main(struct job *job, struct shared *shared)
{
	const bool waits = !is_alone(job, shared);
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = on_wake_up;
	sigaction(SIGUSR2, &sa, NULL);

	if (!job->res->errors && setup_job(job))
		job_warm_up(job);
	if (waits)
		wait_for_start(shared);
	else if (job->layout == job->o->first_layout)
		begin_counters(job->dev, job->o);
	if (!job->res->errors)
		job_run(job);
	if (waits)
		wait_for_others(shared);
	setup_undo(job);
}

static void *thread_main(void *data)
{
	struct worker *w = data;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	if (w->job->o->layouts > 1 && unshare(CLONE_FILES))
		job_error(w->job, "unshare", 0, 0, -errno);
	layout_call(w->job->layout, member_main, w->job, w->shared);
	__atomic_store_n(&w->tid, -1, __ATOMIC_RELEASE);
	wake(w->shared->parent, w->shared->parent, SIGCHLD);
	return NULL;
}

static bool start_thread(struct worker *w)
{
	pthread_attr_t attr;
	int ret;

	w->tgid = getpid();
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	ret = pthread_create(&w->thread, &attr, thread_main, w);
	pthread_attr_destroy(&attr);
	if (ret)
		job_error(w->job, "pthread_create", 0, 0, -ret);
	w->running = !ret;
	return w->running;
}

/* In the new process tgid is 0. */
static bool start_process(struct worker *w)
{
	w->tgid = fork();
	w->tid = w->tgid;
	if (w->tgid < 0)
		job_error(w->job, "fork", 0, 0, -errno);
	w->running = w->tgid >= 0;
	return w->running;
}

/* Threads have their files in one table. */
static void allow_many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void signal_all(struct worker *workers, unsigned int nr, int sig)
{
	unsigned int i;
	pid_t tid;

	for (i = 0; i < nr; i++) {
		tid = __atomic_load_n(&workers[i].tid, __ATOMIC_ACQUIRE);
		if (workers[i].running && tid > 0)
			wake(workers[i].tgid, tid, sig);
	}
}

static void start_all(struct worker *workers, const struct run *r)
{
	struct itimerval timer;

	memset(&timer, 0, sizeof(timer));
	timer.it_value.tv_sec = (time_t)(r->o->runtime / 1000000000);
	timer.it_value.tv_usec = (suseconds_t)(r->o->runtime / 1000 % 1000000);
	setitimer(ITIMER_REAL, &timer, NULL);
	signal_all(workers, r->nr_jobs, SIGUSR1);
}

static bool ended(struct worker *w)
{
	int status;

	if (!w->running)
		return false;
	if (are_threads(w->job->o)) {
		if (__atomic_load_n(&w->tid, __ATOMIC_ACQUIRE) >= 0)
			return false;
		pthread_join(w->thread, NULL);
		return true;
	}
	if (waitpid(w->tgid, &status, WNOHANG) <= 0)
		return false;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		job_error(w->job, "job", 0, 0, -EINTR);
	return true;
}

/* Take note of the jobs that ended; returns how many. */
static unsigned int reap(struct worker *workers, const struct run *r)
{
	unsigned int i, nr = 0;

	for (i = 0; i < r->nr_jobs; i++) {
		if (!ended(&workers[i]))
			continue;
		workers[i].running = false;
		nr++;
	}
	return nr;
}

/* Ticks since boot, over all processors. */
struct cpu_time {
	uint64_t all;
	uint64_t idle;
};

static struct cpu_time cpu_time(void)
{
	/* user nice system idle iowait irq softirq steal */
	unsigned long long t[8] = { 0 };
	struct cpu_time sum = { 0, 0 };
	FILE *f = fopen("/proc/stat", "re");
	int i;

	if (f && fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu",
			&t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6],
			&t[7]) == 8)
		for (i = 0; i < 8; i++)
			sum.all += t[i];
	if (f)
		fclose(f);
	sum.idle = t[3] + t[4];
	return sum;
}

static double idle_percent(struct cpu_time before, struct cpu_time after)
{
	if (!before.all || after.all <= before.all)
		return -1;
	return 100 * (double)(after.idle - before.idle) /
	       (double)(after.all - before.all);
}

/*
 * The parent's part: start the jobs when all are ready, stop them when time is
 * up or on a signal, let them clean up when all have finished, and wait until
 * they have ended. A second Ctrl-C does not wait for the I/Os that are under
 * way.
 */
static void supervise(struct worker *workers, unsigned int running,
		      struct run *r, struct shared *shared,
		      const sigset_t *set)
{
	const struct timespec soon = { .tv_nsec = 100000000 };
	struct cpu_time before = { 0, 0 };
	bool started = is_alone(&r->jobs[0], shared), released = started;
	int sig;

	while (running) {
		/* A job may not have entered its system call yet. */
		sig = sigtimedwait(set, NULL, shared->stop ? &soon : NULL);
		switch (sig) {
		case SIGCHLD:
			running -= reap(workers, r);
			break;
		case SIGALRM:
			r->stopped_by = "runtime";
			break;
		case SIGINT:
		case SIGTERM:
			if (shared->stop)
				signal_all(workers, r->nr_jobs, SIGKILL);
			r->stopped_by = "signal";
			break;
		}
		if (sig == SIGALRM || sig == SIGINT || sig == SIGTERM)
			__atomic_store_n(&shared->stop, 1, __ATOMIC_RELAXED);
		if (!started && __atomic_load_n(&shared->ready,
						__ATOMIC_RELAXED) >= running) {
			started = true;
			begin_counters(r->devices, r->o);
			before = cpu_time();
			start_all(workers, r);
		}
		if (started && !released &&
		    __atomic_load_n(&shared->finished, __ATOMIC_RELAXED) >=
		    running) {
			released = true;
			r->idle_percent = idle_percent(before, cpu_time());
			signal_all(workers, r->nr_jobs, SIGUSR1);
		}
		if (started && shared->stop)
			signal_all(workers, r->nr_jobs, SIGUSR2);
	}
}

/**
 * crew_run() - run all jobs, each in a process or thread of its own
 * @r: the run
 * @shared: what its jobs share
 *
 * Return: true in the parent, when all have ended; false in a job that is a
 * process, which has done its work then.
 */
bool crew_run(struct run *r, struct shared *shared)
{
	struct worker *workers;
	unsigned int i;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGALRM);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);

	shared->parent = getpid();
	shared->nr_jobs = r->nr_jobs;
	if (r->o->thread)
		allow_many_files();
	workers = calloc(r->nr_jobs, sizeof(*workers));
	if (!workers) {
		job_error(&r->jobs[0], "calloc", 0, 0, -ENOMEM);
		return true;
	}
	for (i = 0; i < r->nr_jobs; i++) {
		workers[i].job = &r->jobs[i];
		workers[i].shared = shared;
		if (!(are_threads(r->o) ? start_thread(&workers[i]) :
					  start_process(&workers[i])))
			break;
		if (!workers[i].tgid) {
			free(workers);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() == shared->parent)
				member_main(&r->jobs[i], shared);
			return false;
		}
	}
	supervise(workers, i, r, shared, &set);
	free(workers);
	return true;
}
