// SPDX-License-Identifier: GPL-2.0
/*
 * What storage over a network needs: an interface, and a server of nbd.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/nbd.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "steps.h"

#define NBD_BLOCKS	(1ul << 18)	/* of the device, 1 GiB */
#define NBD_BLOCK	4096ul
#define NBD_MOST	(1 << 25)	/* bytes of a request */
#define TYPE		0xffff		/* of a request; the other bits are flags */

/* Bring an interface up, as "ip link set lo up" does. */
const char *bring_up(const char *interface)
{
	struct ifreq request;
	int fd;

	memset(&request, 0, sizeof(request));
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	request.ifr_flags = IFF_UP;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return "socket";
	if (ioctl(fd, SIOCSIFFLAGS, &request))
		return "SIOCSIFFLAGS";
	close(fd);
	return NULL;
}

/* Answer requests until the kernel closes its end: zeroes are read, what is written is dropped. */
static void answer(int fd)
{
	static struct {
		struct nbd_reply head;
		char zeroes[NBD_MOST];
	} __attribute__((packed)) out;
	static char in[NBD_MOST];
	struct nbd_request request;
	size_t len, reads, writes;
	ssize_t got;

	out.head.magic = htonl(NBD_REPLY_MAGIC);
	for (;;) {
		got = recv(fd, &request, sizeof(request), MSG_WAITALL);
		if (got != (ssize_t)sizeof(request))
			return;
		len = ntohl(request.len);
		reads = (ntohl(request.type) & TYPE) == NBD_CMD_READ ? len : 0;
		writes = (ntohl(request.type) & TYPE) == NBD_CMD_WRITE ? len : 0;
		if (len > NBD_MOST || (ntohl(request.type) & TYPE) == NBD_CMD_DISC)
			return;
		if (writes && recv(fd, in, writes, MSG_WAITALL) != (ssize_t)writes)
			return;
		memcpy(&out.head.handle, &request.handle, sizeof(out.head.handle));
		reads += sizeof(out.head);
		if (send(fd, &out, reads, MSG_NOSIGNAL) != (ssize_t)reads)
			return;
	}
}

/* Have a process of its own serve a network block device, by a pair of sockets. */
const char *serve_nbd(const char *device)
{
	unsigned long long size = 0;
	int fd, ends[2];

	fd = open(device, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return device;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return "socketpair";
	if (ioctl(fd, NBD_SET_BLKSIZE, NBD_BLOCK) ||
	    ioctl(fd, NBD_SET_SIZE_BLOCKS, NBD_BLOCKS) ||
	    ioctl(fd, NBD_SET_SOCK, ends[0]))
		return "NBD_SET_SOCK";
	switch (fork()) {
	case -1:
		return "fork";
	case 0:
		close(ends[0]);
		answer(ends[1]);
		_exit(0);
	}
	switch (fork()) {
	case -1:
		return "fork";
	case 0:
		ioctl(fd, NBD_DO_IT);	/* until the device is disconnected */
		_exit(0);
	}
	while (!size) {
		if (ioctl(fd, BLKGETSIZE64, &size))
			return "BLKGETSIZE64";
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	close(ends[0]);
	close(ends[1]);
	close(fd);
	return NULL;
}
