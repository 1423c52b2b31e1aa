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
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <iopath/marker.h>

#define REGION		1
#define MAX_ARGS	4096
#define MAX_KEPT	(16 << 20)	/* bytes of what it prints */

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

static void redirect(const char *path, int flags, int to)
{
	int fd = open(path, flags, 0644);

	if (fd < 0 || dup2(fd, to) < 0)
		die(path);
	close(fd);
}

/*
 * Wait for a tick of the timer, so that the program begins just after one. How
 * the guest was started decides where between two ticks it is. The coarse clock
 * advances with the tick, and is read without a system call.
 */
static void await_tick(void)
{
	struct timespec before, now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &before);
	do {
		clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	} while (now.tv_sec == before.tv_sec && now.tv_nsec == before.tv_nsec);
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
	/* The same program is loaded at the same addresses. */
	if (personality(ADDR_NO_RANDOMIZE) < 0)
		die("personality");
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

	if (argc != 5 || chdir(args[1]))
		die("usage: runner FOLDER WORK BYTES SECONDS");
	after = atoi(args[4]);
	read_args(argv);
	mkdir("/tmp", 01777);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		die("prctl");
	error = mmap(NULL, sizeof(*error), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (error == MAP_FAILED)
		die("mmap");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		prepare(args[2], strtoull(args[3], NULL, 10));
		await_tick();
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
