// SPDX-License-Identifier: GPL-2.0
/*
 * Removes a disk while a program uses it.
 *
 * vanish PROGRAM [ARGS...]
 *
 * Makes a disk of the kernel's null_blk, /dev/nullb0, starts the program and
 * lets the disk vanish a while later. The program's messages go to standard
 * output; the exit status is 0 if the program's is 1.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONFIG	"/sys/kernel/config"
#define DISK	CONFIG "/nullb/nullb0"

static void put(const char *name, const char *value)
{
	int fd = open(name, O_WRONLY);

	if (fd < 0 || write(fd, value, strlen(value)) < 0) {
		perror(name);
		exit(2);
	}
	close(fd);
}

static void wait_ms(long ms)
{
	const struct timespec ts = { 0, ms * 1000000 };

	nanosleep(&ts, NULL);
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	if (argc < 2)
		return 2;
	mount("configfs", CONFIG, "configfs", 0, NULL);
	if (mkdir(DISK, 0755)) {
		perror(DISK);
		return 2;
	}
	put(DISK "/size", "64");
	put(DISK "/memory_backed", "1");
	put(DISK "/power", "1");
	pid = fork();
	if (!pid) {
		dup2(STDOUT_FILENO, STDERR_FILENO);
		execv(argv[1], argv + 1);
		_exit(127);
	}
	wait_ms(200);
	put(DISK "/power", "0");
	if (waitpid(pid, &status, 0) != pid)
		return 2;
	if (rmdir(DISK)) {
		perror(DISK);
		return 2;
	}
	return !WIFEXITED(status) || WEXITSTATUS(status) != 1;
}
