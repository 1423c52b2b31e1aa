// SPDX-License-Identifier: GPL-2.0
/*
 * runner FOLDER WORK BYTES SECONDS: run a program in a measuring guest, and
 * have everything counted that it and its children execute.
 *
 * FOLDER/args has the program's path and its arguments, each ended by a null
 * byte. It runs in the folder WORK. FOLDER/stdin, if it exists, is its input,
 * and FOLDER/stdout and FOLDER/stderr get its output. No file may become longer
 * than BYTES.
 *
 * The region begins just before the program is executed. When the last process
 * of its tree has ended and been waited for, the kernel gets SECONDS for
 * deferred work; then the region ends. A line on stdout says how the program
 * ended.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <linux/random.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../ioloop/arch.h"
#include "../ioloop/tick.h"

#define REGION		1
#define MAX_ARGS	4096
#define MAX_KEPT	(16 << 20)	/* bytes of what it prints */
#define HUGE_PAGE	(2ul << 20)
#define PERIOD_NS	(1u << 20)	/* of the scheduler's load averages */
#define CLOSE_NS	256		/* no pair of a tick and a period may be closer */
#define TICK_WORK_NS	100000		/* more than it takes */

static char *const environment[] = {
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	"HOME=/", "LC_ALL=C", "TMPDIR=/tmp", NULL,
};

static void die(const char *what)
{
	fprintf(stderr, "runner: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void read_args(char **argv)
{
	static char text[1 << 17];
	ssize_t n, at;
	int fd, argc = 0;

	fd = open("args", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die("args");
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		die("args");
	close(fd);
	for (at = 0; at < n; at += strlen(text + at) + 1) {
		if (argc == MAX_ARGS) {
			errno = E2BIG;
			die("args");
		}
		argv[argc++] = text + at;
	}
	argv[argc] = NULL;
}

/*
 * The same program is loaded at the same addresses. So is this one, whose memory
 * is given back in the program's execve.
 */
static void fix_addresses(char **args)
{
	const unsigned long ask = 0xffffffff;

	if (personality(ask) & ADDR_NO_RANDOMIZE)
		return;
	if (personality(ADDR_NO_RANDOMIZE) < 0)
		die("personality");
	execv("/proc/self/exe", args);
	die("exec");
}

static void redirect(const char *path, int flags, int to)
{
	int fd = open(path, flags, 0644);

	if (fd < 0 || dup2(fd, to) < 0)
		die(path);
	close(fd);
}

static void take_huge_page(void)
{
	char *huge = mmap(NULL, 2 * HUGE_PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (huge != MAP_FAILED && !madvise(huge, 2 * HUGE_PAGE, MADV_HUGEPAGE))
		huge[HUGE_PAGE - (uintptr_t)huge % HUGE_PAGE] = 1;
}

/*
 * Each CPU counts pages on its own, and passes on what has come together when it
 * is much: have it begin again, so that this is at the same places of the program.
 * For memory cgroups, a huge page is much at once. The kernel goes on looking at a
 * process that has had one, so it is one of its own.
 */
static void pass_on_counts(void)
{
	char none;
	pid_t pid;
	int fd;

	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		take_huge_page();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	fd = open("/proc/sys/vm/stat_refresh", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (read(fd, &none, 1))
			die("stat_refresh");
		close(fd);
	}
}

/*
 * How far the scheduler's clock is ahead of CLOCK_MONOTONIC, in ns. It is what
 * perf events are stamped with. 0 if the kernel does not tell.
 */
static uint64_t scheduler_ahead(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
	};
	const long size = sysconf(_SC_PAGESIZE);
	struct perf_event_mmap_page *page;
	uint64_t ahead = 0, count, below;
	int fd;

	/* An event of a task would make switches of tasks longer for a second. */
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1,
			  PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return 0;
	page = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (page != MAP_FAILED) {
		if (page->cap_user_time_zero) {
			count = cycles();
			ahead = -now_ns();
			below = count & ((1ull << page->time_shift) - 1);
			ahead += page->time_zero +
				 (count >> page->time_shift) * page->time_mult +
				 (below * page->time_mult >> page->time_shift);
		}
		munmap(page, size);
	}
	close(fd);
	return ahead;
}

/*
 * From time to time, the kernel seeds its random numbers, and whoever asks
 * for the next ones generates them: have both done at the same places.
 */
static void seed_anew(void)
{
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

	/* This fails while the kernel has no seed. */
	if (fd < 0 || (ioctl(fd, RNDRESEEDCRNG) && errno != ENODATA))
		die("/dev/urandom");
	close(fd);
}

/*
 * Wait for a tick of the timer at which a period of the scheduler begins, by
 * which it brings its load averages up to date. How the guest was started decides
 * where in both it is. They meet in less than a minute, which a guest sleeps
 * through at once. The tick's own work takes different times, so the program
 * begins a while later.
 */
static void align(void)
{
	const uint64_t tick = tick_ns(), ahead = scheduler_ahead();
	uint64_t ticks = 2, at, wait;
	struct timespec ts;

	at = await_tick();
	while ((at + ahead + ticks * tick) % PERIOD_NS >= CLOSE_NS &&
	       ticks < PERIOD_NS)
		ticks++;
	wait = (ticks - 1) * tick - tick / 2;
	ts = timespec_of(wait);
	nanosleep(&ts, NULL);
	seed_anew();
	at = await_tick();
	while (now_ns() < at + TICK_WORK_NS)
		;
}

/* In the child: the next instruction but one is the program's. */
static void execute(char **argv, int *error)
{
	iopath_mark_begin();
	execve(argv[0], argv, environment);
	*error = errno;
	_exit(127);
}

static void prepare(const char *work, rlim_t bytes)
{
	const struct rlimit limit = { bytes, bytes };

	redirect(access("stdin", F_OK) ? "/dev/null" : "stdin", O_RDONLY, 0);
	redirect("stdout", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 1);
	redirect("stderr", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 2);
	if ((mkdir(work, 0755) && errno != EEXIST) || chdir(work))
		die(work);
	if (setrlimit(RLIMIT_FSIZE, &limit))
		die("setrlimit");
	iopath_mark_region(REGION);
}

static void cut(const char *path)
{
	struct stat st;

	if (!stat(path, &st) && st.st_size > MAX_KEPT && truncate(path, MAX_KEPT))
		die(path);
}

int main(int argc, char **args)
{
	char *argv[MAX_ARGS + 1];
	int status = 0, one, after;
	pid_t pid, ended;
	int *error;

	if (argc != 5)
		die("usage: runner FOLDER WORK BYTES SECONDS");
	fix_addresses(args);
	if (chdir(args[1]))
		die(args[1]);
	after = atoi(args[4]);
	read_args(argv);
	mkdir("/tmp", 01777);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		die("prctl");
	error = mmap(NULL, sizeof(*error), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (error == MAP_FAILED)
		die("mmap");
	pass_on_counts();
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		prepare(args[2], strtoull(args[3], NULL, 10));
		align();
		execute(argv, error);
	}
	/* Orphans of the tree become children of this process. */
	while ((ended = wait(&one)) > 0)
		if (ended == pid)
			status = one;
	if (after)
		nanosleep(&(struct timespec){ .tv_sec = after }, NULL);
	iopath_mark_end();
	cut("stdout");
	cut("stderr");
	printf("{\"status\":%d,\"signal\":%d,\"error\":%d}\n",
	       WIFEXITED(status) ? WEXITSTATUS(status) : 0,
	       WIFSIGNALED(status) ? WTERMSIG(status) : 0, *error);
	return 0;
}
