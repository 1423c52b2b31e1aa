// SPDX-License-Identifier: GPL-2.0
/*
 * Starts the jobs, times their rounds, stops them, and has the report written.
 *
 * Each job is a process, unless --thread is given: in a process with several
 * threads the kernel takes a reference on the open file for each system call,
 * and what is measured would depend on --numjobs. The results lie in memory
 * that parent and jobs share. Signals go to the parent only, and the jobs see
 * nothing but a word in that memory that tells them to stop.
 *
 * Parent and jobs wake each other by signals to a thread, be it the first one
 * of a process or not.
 */
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../kernel/include/iopath/marker.h"
#include "device.h"
#include "engine.h"
#include "machine.h"
#include "options.h"
#include "report.h"

/* What the warm-up reads at most to fill the page cache, or else to run. */
#define MAX_FILL_BYTES		(1ull << 30)
#define MAX_WARMUP_BYTES	(16ull << 20)

/* Added to the number of a region: the sleep after its rounds. */
#define DRAIN_REGION	0x4000u

/* Room for /proc/stat up to its line of interrupts, with 1000 processors. */
static __thread char stat_text[128 << 10];

/* A thread's stack, with room for the above; all of it gets locked. */
#define STACK_SIZE	(256ul << 10)

/**
 * struct shared - what parent and jobs share
 * @parent: whom to tell; not getppid(), which is init if the parent died
 * @stop: not 0: end now
 * @nr_jobs: how many there are
 * @ready: jobs that are ready to start
 * @finished: jobs that have nothing more to measure
 * @results: one for each job; behind them come their rounds and latencies
 */
struct shared {
	pid_t parent;
	int stop;
	unsigned int nr_jobs;
	unsigned int ready;
	unsigned int finished;
	struct result results[];
};

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

/**
 * job_error() - note that something failed, and stop all jobs
 * @job: the job
 * @op: what failed
 * @offset: where
 * @size: how many bytes it was about
 * @result: what the kernel returned: a negated errno, or too few bytes
 */
void job_error(struct job *job, const char *op, uint64_t offset, uint64_t size,
	       int64_t result)
{
	struct io_error *e = &job->res->first_error;

	__atomic_store_n(job->stop, 1, __ATOMIC_RELAXED);
	if (job->res->errors++)
		return;
	snprintf(e->op, sizeof(e->op), "%s", op);
	e->offset = offset;
	e->size = size;
	e->result = result < 0 ? -1 : result;
	e->errnum = result < 0 ? (int)-result : 0;
}

/**
 * job_io_error() - note that an I/O failed
 * @job: the job
 * @write: it was to write
 * @offset: where
 * @size: how many bytes
 * @result: what the kernel returned: a negated errno, or too few bytes
 */
void job_io_error(struct job *job, bool write, uint64_t offset, uint64_t size,
		  int64_t result)
{
	job_error(job, write ? "write" : "read", offset, size, result);
}

/* The number behind "intr" in /proc/stat; -1 if there is none. */
static int64_t interrupts(int fd)
{
	const char *line;
	ssize_t n;

	n = pread(fd, stat_text, sizeof(stat_text) - 1, 0);
	if (n <= 0)
		return -1;
	stat_text[n] = '\0';
	line = strstr(stat_text, "\nintr ");
	return line ? strtoll(line + 6, NULL, 10) : -1;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void wait_until(uint64_t ns)
{
	const struct timespec ts = {
		.tv_sec = (time_t)(ns / 1000000000),
		.tv_nsec = (long)(ns % 1000000000),
	};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

/*
 * With --live and --rate_iops: the engine's loop a slice at a time. In between
 * the parent is told how far it is, and what came too early waits.
 */
static uint64_t run_in_slices(struct job *job, uint64_t nr)
{
	const run_fn run = job->o->engine->run[job->kind];
	const uint64_t rate = job->o->rate_iops;
	const uint64_t start = now_ns();
	uint64_t done = 0, now, want;

	do {
		want = nr - done < job->slice ? nr - done : job->slice;
		now = run(job, want);
		done += now;
		__atomic_add_fetch(&job->res->progress, now, __ATOMIC_RELAXED);
		if (rate)
			wait_until(start + (uint64_t)((double)done * 1e9 /
						      (double)rate));
	} while (now == want && done < nr && !stopped(job->stop));
	return done;
}

/*
 * The engine's loop between two readings of the counter and the two markers.
 * Nothing else may lie there, so this stays out of line and small.
 */
static __attribute_noinline__
void timed_run(struct job *job, uint64_t nr, struct round *r)
{
	const run_fn run = job->slice ? run_in_slices :
					job->o->engine->run[job->kind];
	uint64_t before, after, ios;

	before = cycles();
	iopath_mark_begin();
	ios = run(job, nr);
	iopath_mark_end();
	after = cycles();
	r->ios = ios;
	r->tsc = after - before;
}

/* What is dirty must be written first: the kernel drops clean pages only. */
static void drop_cache(struct job *job)
{
	fdatasync(job->fd);
	posix_fadvise(job->fd, 0, 0, POSIX_FADV_DONTNEED);
}

/*
 * With --drain: sleep, so that the kernel does what it has put off. After I/Os
 * that is a region of its own.
 */
static void drain(const struct job *job, bool mark)
{
	const struct timespec ts = {
		.tv_sec = (time_t)(job->o->drain / 1000000000),
		.tv_nsec = (long)(job->o->drain % 1000000000),
	};

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

static void do_round(struct job *job, uint64_t nr, int stat_fd, struct round *r)
{
	int64_t intr;
	uint64_t ns;

	/* In this order: what is mapped does not leave the page cache. */
	if (job->o->engine->before_round)
		job->o->engine->before_round(job);
	if (job->o->invalidate)
		drop_cache(job);
	iopath_mark_region((unsigned int)job->o->region);
	intr = interrupts(stat_fd);
	if (job->o->pmu)
		pmu_enable();
	ns = now_ns();
	if (job->o->engine->round)
		job->o->engine->round(job, nr, r);
	else
		timed_run(job, nr, r);
	r->ns = now_ns() - ns;
	if (job->o->pmu)
		pmu_disable();
	drain(job, true);
	r->interrupts = interrupts(stat_fd);
	if (r->interrupts >= 0)
		r->interrupts = intr >= 0 ? r->interrupts - intr : -1;
}

static void do_rounds(struct job *job, int stat_fd)
{
	const uint64_t nr = job->o->number_ios ? job->o->number_ios : UINT64_MAX;
	struct result *res = job->res;
	struct round *r;

	while (res->nr_rounds < job->o->rounds && !stopped(job->stop)) {
		r = &res->rounds[res->nr_rounds++];
		do_round(job, nr, stat_fd, r);
		res->ios += r->ios;
		res->bytes = job->kind & LOOP_SIZED ? job->cursor.bytes :
			     job->dev ? res->ios * job->o->bs : 0;
	}
}

/*
 * Measure what recording a latency takes. The recorded values are discarded.
 * Forgets the warm-up's latencies, too.
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

/* The same code as in a round, but outside any region. */
static void warm_up(struct job *job, int stat_fd)
{
	const run_fn run = job->o->engine->run[job->kind];
	struct cursor cursor = job->cursor;

	interrupts(stat_fd);
	now_ns();
	if (run && job->o->warmup_ios)
		run(job, job->o->warmup_ios);
	interrupts(stat_fd);
	job->cursor = cursor;
	if (job->kind & LOOP_TIMED)
		reset_latencies(job);
}

static uint64_t timeval_ns(struct timeval tv)
{
	return ((uint64_t)tv.tv_sec * 1000000 + (uint64_t)tv.tv_usec) * 1000;
}

/* perf, if it waits for that, sees the rounds and nothing else. */
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

/* All rounds, and what is known only of all of them together. */
static void do_job(struct job *job, int stat_fd)
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
	getrusage(RUSAGE_THREAD, &before);
	res->start_ns = now_ns();
	if (e->rounds) {
		e->rounds(job);
		drain(job, true);
	} else {
		do_rounds(job, stat_fd);
	}
	res->end_ns = now_ns();
	getrusage(RUSAGE_THREAD, &after);
	tell_perf(job, "disable\n");
	res->user_ns = timeval_ns(after.ru_utime) -
		       timeval_ns(before.ru_utime);
	res->system_ns = timeval_ns(after.ru_stime) -
			 timeval_ns(before.ru_stime);
pmu_read:
	if (job->o->pmu)
		pmu_read(pmu_fds, res->pmu);
}

static bool bind_to_cpu(struct job *job)
{
	cpu_set_t *set;
	int ret;

	if (job->cpu < 0)
		return true;
	set = CPU_ALLOC(MAX_CPUS);
	if (!set) {
		job_error(job, "CPU_ALLOC", 0, 0, -ENOMEM);
		return false;
	}
	CPU_ZERO_S(CPU_ALLOC_SIZE(MAX_CPUS), set);
	CPU_SET_S((size_t)job->cpu, CPU_ALLOC_SIZE(MAX_CPUS), set);
	ret = sched_setaffinity(0, CPU_ALLOC_SIZE(MAX_CPUS), set);
	CPU_FREE(set);
	if (ret)
		job_error(job, "sched_setaffinity", 0, 0, -errno);
	return !ret;
}

static bool set_priority(struct job *job)
{
	const struct sched_param param = {
		.sched_priority = (int)job->o->rtprio,
	};

	if (!job->o->rtprio)
		return true;
	if (sched_setscheduler(0, SCHED_FIFO, &param)) {
		job_error(job, "sched_setscheduler", 0, 0, -errno);
		return false;
	}
	return true;
}

/* Memory that is allocated from here on comes from this node. */
static bool bind_to_node(struct job *job)
{
	unsigned long mask[MAX_NODES / 64] = { 0 };
	const uint64_t node = job->o->numa_node;

	if (node == UNSET)
		return true;
	mask[node / 64] = 1ul << node % 64;
	if (syscall(SYS_set_mempolicy, MPOL_BIND, mask, MAX_NODES + 1)) {
		job_error(job, "set_mempolicy", 0, 0, -errno);
		return false;
	}
	return true;
}

static int open_file(const struct job *job)
{
	int flags = options_write(job->o) || options_mixed(job->o) ?
		    O_RDWR : O_RDONLY;

	if (job->o->direct)
		flags |= O_DIRECT;
	return open(job->dev->name, flags | O_CLOEXEC);
}

/* The open file that all jobs of a device share. It is closed at the end. */
static int open_once(const struct job *job)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static int fds[MAX_DEVICES];	/* 0: not open yet */
	int *fd = &fds[job->index / job->o->numjobs];

	pthread_mutex_lock(&lock);
	if (*fd <= 0)
		*fd = open_file(job);
	pthread_mutex_unlock(&lock);
	return *fd;
}

static bool open_device(struct job *job)
{
	job->fd = job->o->share_file ? open_once(job) : open_file(job);
	if (job->fd < 0)
		job_error(job, "open", 0, 0, -errno);
	return job->fd >= 0;
}

static bool make_buffers(struct job *job)
{
	const int huge = job->o->hugepages ? MAP_HUGETLB : 0;
	size_t size;

	job->stride = (job->o->bs + PAGE - 1) & ~(PAGE - 1);
	size = machine_buffer_bytes(job->o);
	job->buffers = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | huge, -1, 0);
	if (job->buffers == MAP_FAILED) {
		job->buffers = NULL;
		job_error(job, "mmap", 0, size, -errno);
		return false;
	}
	memset(job->buffers, 0x5a, size);
	return true;
}

static bool prepare(struct job *job)
{
	const struct engine *e = job->o->engine;

	if (!bind_to_cpu(job) || !set_priority(job) || !bind_to_node(job))
		return false;
	if (job->dev && (!open_device(job) || !make_buffers(job)))
		return false;
	if (e->setup && !e->setup(job))
		return false;
	/*
	 * Without the right to, it is all touched at least. What threads that
	 * are still to be made will need is theirs to lock.
	 */
	if (!(e->flags & ENGINE_NO_LOCK))
		job->res->locked = !mlockall(job->o->thread ? MCL_CURRENT :
					     MCL_CURRENT | MCL_FUTURE);
	return true;
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

/* To clean up takes time, which is not that of jobs that still work. */
static void wait_for_others(struct shared *shared)
{
	if (__atomic_add_fetch(&shared->finished, 1, __ATOMIC_RELAXED) ==
	    shared->nr_jobs)
		wake(shared->parent, shared->parent, SIGUSR1);
	wait_for_parent();
}

/* SIGUSR2 does nothing but end a system call that waits. */
static void on_wake_up(int sig)
{
	(void)sig;
}

static void job_main(struct job *job, struct shared *shared)
{
	const struct engine *e = job->o->engine;
	struct sigaction sa;
	int stat_fd;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = on_wake_up;
	sigaction(SIGUSR2, &sa, NULL);

	stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	if (prepare(job))
		warm_up(job, stat_fd);
	wait_for_start(shared);
	if (!job->res->errors)
		do_job(job, stat_fd);
	wait_for_others(shared);
	if (e->cleanup)
		e->cleanup(job);
	if (job->buffers)
		munmap(job->buffers, machine_buffer_bytes(job->o));
	if (job->fd >= 0 && !job->o->share_file)
		close(job->fd);
	if (stat_fd >= 0)
		close(stat_fd);
}

static void *thread_main(void *data)
{
	struct worker *w = data;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	job_main(w->job, w->shared);
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

static void start_all(struct worker *workers, const struct report *r)
{
	struct itimerval timer;

	memset(&timer, 0, sizeof(timer));
	timer.it_value.tv_sec = (time_t)(r->o->runtime / 1000000000);
	timer.it_value.tv_usec = (suseconds_t)(r->o->runtime / 1000 % 1000000);
	setitimer(ITIMER_REAL, &timer, NULL);
	signal_all(workers, r->nr_jobs, SIGUSR1);
}

static bool ended(struct worker *w, bool thread)
{
	int status;

	if (!w->running)
		return false;
	if (thread) {
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
static unsigned int reap(struct worker *workers, const struct report *r)
{
	unsigned int i, nr = 0;

	for (i = 0; i < r->nr_jobs; i++) {
		if (!ended(&workers[i], r->o->thread))
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

/* Once per second, where the line before was. */
static void live_line(const struct report *r)
{
	static uint64_t last_ios, last_ns;
	const uint64_t now = now_ns();
	char all[16], rate[16];
	uint64_t ios = 0;
	unsigned int i;

	for (i = 0; i < r->nr_jobs; i++)
		ios += __atomic_load_n(&r->results[i].progress,
				       __ATOMIC_RELAXED);
	if (last_ns)
		fprintf(stderr, "\r\033[K%s I/Os, %s IOPS",
			short_number(all, sizeof(all), (double)ios),
			short_number(rate, sizeof(rate),
				     (double)(ios - last_ios) * 1e9 /
				     (double)(now - last_ns)));
	last_ios = ios;
	last_ns = now;
}

/*
 * The parent's part: let the jobs go when all are ready, stop them when time
 * is up or somebody asks for it, let them clean up when all have finished, and
 * wait until they have ended. A second
 * Ctrl-C does not wait for the I/Os that are under way.
 */
static void supervise(struct worker *workers, unsigned int running,
		      struct report *r, struct shared *shared,
		      const sigset_t *set)
{
	const struct timespec soon = { .tv_nsec = 100000000 };
	const struct timespec second = { .tv_sec = 1 };
	const struct timespec *wait = r->o->live ? &second : NULL;
	struct cpu_time before = { 0, 0 };
	bool started = false, released = false;
	int sig;

	while (running) {
		/* A job may not have been in its system call yet. */
		sig = sigtimedwait(set, NULL, shared->stop ? &soon : wait);
		if (sig < 0 && started && r->o->live)
			live_line(r);
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
	if (r->o->live)
		fputs("\r\033[K", stderr);
}

static void *share(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Returns false in a job, which has done its work then. */
static bool run_jobs(struct report *r, struct job *jobs, struct shared *shared)
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
		job_error(&jobs[0], "calloc", 0, 0, -ENOMEM);
		return true;
	}
	for (i = 0; i < r->nr_jobs; i++) {
		workers[i].job = &jobs[i];
		workers[i].shared = shared;
		if (!(r->o->thread ? start_thread(&workers[i]) :
				     start_process(&workers[i])))
			break;
		if (!r->o->thread && !workers[i].tgid) {
			free(workers);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() == shared->parent)
				job_main(&jobs[i], shared);
			return false;
		}
	}
	supervise(workers, i, r, shared, &set);
	free(workers);
	return true;
}

static void give_verdict(struct report *r)
{
	unsigned int i;

	r->ok = true;
	for (i = 0; i < r->nr_jobs; i++)
		if (r->results[i].errors)
			r->ok = false;
	if (!r->ok)
		r->stopped_by = "error";
}

/* Everything is written at once, at the end: no report is ever half there. */
static bool write_report(const struct report *r, int fd)
{
	char *text = NULL;
	size_t size = 0;
	size_t done = 0;
	ssize_t n = 0;
	FILE *out;

	out = open_memstream(&text, &size);
	if (!out)
		return false;
	if (r->o->output_format == FORMAT_JSON)
		report_json(r, out);
	else
		report_normal(r, out);
	if (fclose(out)) {
		free(text);
		return false;
	}
	while (done < size) {
		n = write(fd, text + done, size - done);
		if (n < 0)
			break;
		done += (size_t)n;
	}
	free(text);
	return n >= 0;
}

static int open_output(const struct options *o)
{
	if (!o->output)
		return STDOUT_FILENO;
	return open(o->output, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
}

/* A shorter report than the one that was there must not keep its tail. */
static bool close_output(const struct options *o, int fd)
{
	struct stat st;

	if (!o->output)
		return true;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    ftruncate(fd, lseek(fd, 0, SEEK_CUR)))
		return false;
	return !close(fd);
}

static unsigned int count_jobs(const struct options *o)
{
	return (unsigned int)o->numjobs * (o->nr_files ? o->nr_files : 1);
}

/* Says what stands in the way, before anything is done. */
static bool inspect(struct device *devices, const struct options *o)
{
	char msg[512];
	unsigned int i;
	bool ok;

	ok = machine_check(o, count_jobs(o), msg, sizeof(msg));
	for (i = 0; ok && i < o->nr_files; i++)
		ok = device_inspect(&devices[i], o->files[i], o, msg,
				    sizeof(msg));
	if (!ok)
		fprintf(stderr, "ioloop: %s\n", msg);
	return ok;
}

/*
 * I/Os for --loops; on devices of several sizes, those for the largest. If I/Os
 * are of several sizes, as many as move the whole on average.
 */
static uint64_t loop_ios(const struct options *o, const struct device *devices)
{
	uint64_t most = o->nr_files ? 0 : o->size, mean = o->bs, sum = 0;
	unsigned int i;

	for (i = 0; i < o->nr_files; i++)
		if (devices[i].end - devices[i].start > most)
			most = devices[i].end - devices[i].start;
	for (i = 0; i < o->nr_sizes; i++)
		sum += o->sizes[i];
	if (o->nr_sizes)
		mean = sum / o->nr_sizes;
	return (most > mean ? most / mean : 1) * o->loops;
}

/*
 * By default enough to have seen all code; where the page cache stays filled,
 * enough to fill it, unless the device is larger than a machine's memory may be.
 */
static uint64_t default_warmup(const struct options *o,
			       const struct device *devices)
{
	const bool fill = !o->direct && !o->invalidate;
	uint64_t n = 1000, blocks;
	unsigned int i;

	for (i = 0; fill && i < o->nr_files; i++) {
		blocks = (devices[i].end - devices[i].start) / o->bs;
		if (blocks * o->bs <= MAX_FILL_BYTES && blocks > n)
			n = blocks;
	}
	if (fill)
		return n;
	if ((!o->number_ios || o->loops) && n > MAX_WARMUP_BYTES / o->bs)
		n = MAX_WARMUP_BYTES / o->bs ? MAX_WARMUP_BYTES / o->bs : 1;
	return o->number_ios && o->number_ios < n ? o->number_ios : n;
}

static void plan_io(struct job *job)
{
	const struct options *o = job->o;
	struct cursor *c = &job->cursor;
	struct area *a = &job->area;

	if (options_mixed(o))
		job->kind |= LOOP_MIXED;
	if (o->pattern == PATTERN_RANDOM)
		job->kind |= LOOP_RANDOM;
	if (o->pattern == PATTERN_SEQUENTIAL)
		a->step = o->bs;
	if (o->lat || o->split)
		job->kind |= LOOP_TIMED;
	if (o->nr_sizes)
		job->kind |= LOOP_SIZED;
	a->start = job->dev->start;
	a->end = job->dev->end;
	a->bs = o->min_bs;
	a->blocks = (a->end - a->start - o->bs) / a->bs + 1;
	a->reads = UINT64_MAX / 100 * o->rwmixread;
	a->sizes = o->sizes;
	a->nr_sizes = o->nr_sizes;
	c->position = job->dev->start;
	c->write = options_write(o);
	/* Spread the seeds, or jobs would begin with offsets side by side. */
	c->state = (o->randseed + job->index + 1) * 0x9e3779b97f4a7c15;
	c->state ^= c->state >> 29;
	c->state |= 1;
}

/* Whole batches, and ten times per second or after each. */
static uint64_t rate_slice(const struct options *o)
{
	const uint64_t slice = o->rate_iops / 10;

	return slice < o->iodepth ? o->iodepth : slice - slice % o->iodepth;
}

static void plan_jobs(struct report *r, struct job *jobs,
		      struct result *results, struct round *rounds,
		      struct shared *shared)
{
	const struct options *o = r->o;
	struct latency *const latencies =
		(struct latency *)(rounds + r->nr_jobs * o->rounds);
	unsigned int i;

	for (i = 0; i < r->nr_jobs; i++) {
		jobs[i].o = o;
		jobs[i].res = &results[i];
		jobs[i].res->rounds = rounds + i * o->rounds;
		if (o->lat || o->split) {
			results[i].latency = latencies + i * (1 + o->split);
			results[i].pieces = results[i].latency + 1;
		}
		jobs[i].stop = &shared->stop;
		jobs[i].index = i;
		jobs[i].cpu = -1;
		if (o->nr_cpus)
			jobs[i].cpu = (int)o->cpus[i % o->nr_cpus];
		jobs[i].fd = -1;
		if (o->live)
			jobs[i].slice = LIVE_SLICE * o->iodepth;
		if (o->rate_iops)
			jobs[i].slice = rate_slice(o);
		if (!o->nr_files)
			continue;
		jobs[i].dev = &r->devices[i / o->numjobs];
		plan_io(&jobs[i]);
	}
}

static size_t size_of_result(const struct options *o)
{
	size_t size = sizeof(struct result) + o->rounds * sizeof(struct round);

	if (o->lat || o->split)
		size += (1 + o->split) * sizeof(struct latency);
	return size;
}

/*
 * Returns the exit status. In a job this comes back, too, with everything to
 * be freed there as in the parent.
 */
static int run(const struct options *o, const struct device *devices)
{
	const unsigned int nr_jobs = count_jobs(o);
	size_t size = sizeof(struct shared) + nr_jobs * size_of_result(o);
	struct report r = {
		.o = o, .devices = devices, .nr_jobs = nr_jobs,
		.idle_percent = -1, .stopped_by = "count",
	};
	struct shared *shared = NULL;
	struct result *results;
	struct job *jobs;
	int status = 1;
	bool parent;
	int out;

	jobs = calloc(nr_jobs, sizeof(*jobs));
	if (jobs)
		shared = share(size);
	if (!shared) {
		fprintf(stderr, "ioloop: no memory for %u jobs of %llu rounds\n",
			nr_jobs, (unsigned long long)o->rounds);
		goto free_jobs;
	}
	out = open_output(o);
	if (out < 0) {
		fprintf(stderr, "ioloop: --output=%s: %s\n", o->output,
			strerror(errno));
		goto unshare;
	}

	results = shared->results;
	r.jobs = jobs;
	r.results = results;
	plan_jobs(&r, jobs, results, (struct round *)(results + nr_jobs),
		  shared);
	parent = run_jobs(&r, jobs, shared);
	if (!parent) {
		status = 0;
		goto close_out;
	}
	give_verdict(&r);
	report_errors(&r, stderr);
	if (!write_report(&r, out))
		fprintf(stderr, "ioloop: cannot write the report: %s\n",
			strerror(errno));
	else if (r.ok)
		status = 0;
close_out:
	if (parent && !close_output(o, out)) {
		fprintf(stderr, "ioloop: --output=%s: %s\n", o->output,
			strerror(errno));
		status = 1;
	}
unshare:
	munmap(shared, size);
free_jobs:
	free(jobs);
	return status;
}

int main(int argc, char **argv)
{
	static struct device devices[MAX_DEVICES];
	static struct options o;
	char msg[512];
	int status;

	switch (options_parse(&o, argc, argv, msg, sizeof(msg))) {
	case OPTIONS_HELP:
		options_help(stdout);
		status = 0;
		break;
	case OPTIONS_VERSION:
		puts("ioloop " IOLOOP_VERSION);
		status = 0;
		break;
	case OPTIONS_RUN:
		status = 1;
		if (!inspect(devices, &o))
			break;
		if (o.loops)
			o.number_ios = loop_ios(&o, devices);
		if (o.warmup_ios == UNSET)
			o.warmup_ios = default_warmup(&o, devices);
		status = run(&o, devices);
		break;
	default:
		fprintf(stderr, "ioloop: %s\n", msg);
		status = 2;
	}
	options_free(&o);
	return status;
}
