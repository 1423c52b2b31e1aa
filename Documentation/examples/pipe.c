// SPDX-License-Identifier: GPL-2.0
/* A rung's program: empty writes to a pipe. */
#define _GNU_SOURCE
#include <unistd.h>

#include "../../userspace/ioloop/rounds.h"

static int ends[2];

static bool io(void)
{
	return !write(ends[1], "", 0);
}

int main(int argc, char **argv)
{
	if (pipe(ends)) {
		perror("pipe");
		return 1;
	}
	return iopath_rounds(argc, argv, io);
}
