/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A loop for programs of rungs that are not ioloop's (Documentation/measuring.rst,
 * "Rungs of your own"). Such a program does one I/O in a function and calls
 * iopath_rounds() with it:
 *
 *	static bool io(void)
 *	{
 *		return !write(fd, "", 0);
 *	}
 *
 *	int main(int argc, char **argv)
 *	{
 *		...
 *		return iopath_rounds(argc, argv, io);
 *	}
 *
 * Build it with gcc -O2 -static. iopath gives it these options:
 *
 *	--number_ios=N --rounds=N --region=N --cpus_allowed=N [--drain=Nms]
 *
 * with a target also --filename=PATH --rw=read|write --bs=BYTES. All other
 * options are the program's own. The report is JSON as ioloop's is, with the
 * instructions and interrupts of each round.
 */
#ifndef IOLOOP_ROUNDS_H
#define IOLOOP_ROUNDS_H

#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE before the first include"
#endif

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../kernel/include/iopath/marker.h"
#include "arch.h"

#define IOPATH_DRAIN_REGION	0x4000u
#define IOPATH_MAX_ROUNDS	10000
#define IOPATH_WARMUP_IOS	100

/* The value of an option "--name=value"; NULL if it is not given. */
static inline const char *iopath_option(int argc, char **argv, const char *name)
{
	size_t len = strlen(name);
	int i;

	for (i = 1; i < argc; i++)
		if (!strncmp(argv[i], name, len) && argv[i][len] == '=')
			return argv[i] + len + 1;
	return NULL;
}

static inline uint64_t iopath_number(int argc, char **argv, const char *name,
				     uint64_t otherwise)
{
	const char *value = iopath_option(argc, argv, name);

	return value ? strtoull(value, NULL, 10) : otherwise;
}

/* The number after "intr" in /proc/stat; -1 if there is none. */
static inline int64_t iopath_interrupts(int fd)
{
	static char text[128 << 10];
	const char *line;
	ssize_t n;

	n = pread(fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	line = strstr(text, "\nintr ");
	return line ? strtoll(line + 6, NULL, 10) : -1;
}

/* Sleep, so that the kernel does its deferred work. */
static inline void iopath_drain(uint64_t ms)
{
	const struct timespec ts = {
		.tv_sec = (time_t)(ms / 1000),
		.tv_nsec = (long)(ms % 1000 * 1000000),
	};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

/**
 * iopath_rounds() - do rounds of I/Os as the options say, and print the report
 * @argc: of main()
 * @argv: of main()
 * @io: does one I/O; false if it failed, with errno set
 *
 * Returns the exit status.
 */
static __always_inline int iopath_rounds(int argc, char **argv,
					 bool (*const io)(void))
{
	const uint64_t nr = iopath_number(argc, argv, "--number_ios", 1);
	const uint64_t rounds = iopath_number(argc, argv, "--rounds", 1);
	const uint64_t drain = iopath_number(argc, argv, "--drain", 0);
	const unsigned int region =
		(unsigned int)iopath_number(argc, argv, "--region", 0);
	static uint64_t tsc[IOPATH_MAX_ROUNDS];
	static int64_t intr[IOPATH_MAX_ROUNDS];
	uint64_t before, done = 0, i, r;
	cpu_set_t cpus;
	int64_t start;
	int fd;

	if (rounds > IOPATH_MAX_ROUNDS) {
		fprintf(stderr, "invalid --rounds: at most %d\n",
			IOPATH_MAX_ROUNDS);
		return 2;
	}
	CPU_ZERO(&cpus);
	CPU_SET(iopath_number(argc, argv, "--cpus_allowed", 0), &cpus);
	fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || sched_setaffinity(0, sizeof(cpus), &cpus) ||
	    mlockall(MCL_CURRENT | MCL_FUTURE)) {
		perror(argv[0]);
		return 1;
	}
	for (i = 0; i < IOPATH_WARMUP_IOS; i++)
		if (!io())
			goto failed;
	iopath_interrupts(fd);
	if (drain)
		iopath_drain(drain);
	for (r = 0; r < rounds; r++) {
		iopath_mark_region(region);
		start = iopath_interrupts(fd);
		before = cycles();
		iopath_mark_begin();
		for (done = 0; done < nr && io(); done++)
			;
		iopath_mark_end();
		tsc[r] = cycles() - before;
		if (done < nr)
			goto failed;
		if (drain) {
			iopath_mark_region(region | IOPATH_DRAIN_REGION);
			iopath_mark_begin();
			iopath_drain(drain);
			iopath_mark_end();
		}
		intr[r] = iopath_interrupts(fd) - start;
	}
	printf("{\"jobs\": [{\"rounds\": [");
	for (r = 0; r < rounds; r++)
		printf("%s{\"ios\": %llu, \"tsc\": %llu, \"interrupts\": %lld}",
		       r ? ", " : "", (unsigned long long)nr,
		       (unsigned long long)tsc[r], (long long)intr[r]);
	printf("]}]}\n");
	return ferror(stdout) || fflush(stdout);
failed:
	perror(argv[0]);
	return 1;
}

#endif /* IOLOOP_ROUNDS_H */
