// SPDX-License-Identifier: GPL-2.0
/*
 * Counts a program for a while.
 *
 * region NUMBER PROGRAM [ARGS...]
 *
 * When the program has read from a disk for some milliseconds, all tasks are
 * counted in the region NUMBER for some more; then the program is interrupted.
 * The exit status is 0 if it was at work all the time.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../../../kernel/include/iopath/marker.h"

#define SETTLE_MS	10
#define COUNT_MS	50
#define PATIENCE_MS	20000

static void wait_ms(long ms)
{
	const struct timespec ts = { 0, ms * 1000000 };

	nanosleep(&ts, NULL);
}

/* Whether a process, which runs, has read anything from a disk. */
static int has_read(pid_t pid)
{
	unsigned long long bytes = 0;
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "read_bytes: %llu", &bytes);
	if (f)
		fclose(f);
	return bytes > 0;
}

int main(int argc, char **argv)
{
	int at_work, status;
	int ms = 0;
	pid_t pid;

	if (argc < 3)
		return 2;
	iopath_mark_region((unsigned int)strtoul(argv[1], NULL, 10));
	pid = fork();
	if (!pid) {
		execv(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	for (; !has_read(pid) && ms < PATIENCE_MS; ms++)
		wait_ms(1);
	wait_ms(SETTLE_MS);
	iopath_mark_begin();
	wait_ms(COUNT_MS);
	iopath_mark_end();
	at_work = ms < PATIENCE_MS && !waitpid(pid, &status, WNOHANG);
	kill(pid, SIGINT);
	waitpid(pid, &status, 0);
	return !at_work;
}
