// SPDX-License-Identifier: GPL-2.0
/*
 * The referee's guest: the init process and its loop. It loads blknull, after
 * the modules /0.ko, /1.ko and so on that blknull needs, and reads 4 KiB again
 * and again; referee/plugin.c counts from begin() to end().
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS	31
#define READS	100

__attribute__((noinline)) void begin(void)
{
	asm volatile("");
}

__attribute__((noinline)) void end(void)
{
	asm volatile("");
}

static void must(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	reboot(RB_AUTOBOOT);
}

int main(void)
{
	char *buffer = aligned_alloc(4096, 4096);
	char path[] = "/0.ko";
	int fd, round, i;

	mkdir("/dev", 0755);
	mount("none", "/dev", "devtmpfs", 0, NULL);
	for (; (fd = open(path, O_RDONLY)) >= 0; path[1]++) {
		must(!syscall(SYS_finit_module, fd, "", 0), path);
		close(fd);
	}
	fd = open("/blknull.ko", O_RDONLY);
	must(!syscall(SYS_finit_module, fd, "nr_devices=2 zero_fill=1,0", 0), "blknull.ko");
	close(fd);
	fd = open("/dev/blknull0", O_RDONLY | O_DIRECT);
	must(fd >= 0, "/dev/blknull0");
	/*
	 * As in iopath's guest, the first read comes seconds after the node was
	 * made. If both are in one second, relatime compares nanoseconds, too:
	 * 7 more instructions for each read.
	 */
	sleep(60);
	must(pread(fd, buffer, 4096, 0) == 4096, "pread");
	for (round = 0; round < ROUNDS; round++) {
		begin();
		for (i = 0; i < READS; i++)
			must(pread(fd, buffer, 4096, 0) == 4096, "pread");
		end();
	}
	reboot(RB_AUTOBOOT);
	return 1;
}
