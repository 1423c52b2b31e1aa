// SPDX-License-Identifier: GPL-2.0
/*
 * Devices on devices: device mapper, loop devices and partitions; and where a
 * device's queue searches for tags.
 */
#define _GNU_SOURCE	/* O_DIRECT */
#include <errno.h>
#include <fcntl.h>
#include <linux/blkpg.h>
#include <linux/dm-ioctl.h>
#include <linux/loop.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "steps.h"

#define FEWEST_TAGS	4	/* that blk-mq allows */

/* The argument of an ioctl of device mapper: a table of one target. */
struct dm_table {
	struct dm_ioctl head;
	struct dm_target_spec target;
	char params[1024];
};

static int dm_ioctl(int fd, unsigned long request, const char *name,
		    unsigned long long sectors, const char *type,
		    const char *params)
{
	struct dm_table table;

	memset(&table, 0, sizeof(table));
	table.head.version[0] = DM_VERSION_MAJOR;
	table.head.data_size = sizeof(table);
	table.head.data_start = offsetof(struct dm_table, target);
	snprintf(table.head.name, sizeof(table.head.name), "%s", name);
	if (type) {
		table.head.target_count = 1;
		table.target.length = sectors;
		snprintf(table.target.target_type,
			 sizeof(table.target.target_type), "%s", type);
		snprintf(table.params, sizeof(table.params), "%s", params);
	}
	return ioctl(fd, request, &table);
}

/* Make a device of one target. The first one is /dev/dm-0. */
const char *make_dm(const char *name, unsigned long long sectors,
		    const char *type, const char *params)
{
	int fd = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return "/dev/mapper/control";
	if (dm_ioctl(fd, DM_DEV_CREATE, name, 0, NULL, NULL))
		return "DM_DEV_CREATE";
	if (dm_ioctl(fd, DM_TABLE_LOAD, name, sectors, type, params))
		return "DM_TABLE_LOAD";
	/* Without a flag this resumes the device. */
	if (dm_ioctl(fd, DM_DEV_SUSPEND, name, 0, NULL, NULL))
		return "DM_DEV_SUSPEND";
	close(fd);
	return NULL;
}

/* Put a loop device with direct I/O on a file. */
const char *make_loop(const char *device, const char *file)
{
	struct loop_config config;
	int fd;

	memset(&config, 0, sizeof(config));
	config.info.lo_flags = LO_FLAGS_DIRECT_IO;
	fd = open(device, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return device;
	config.fd = open(file, O_RDWR | O_CLOEXEC);
	if ((int)config.fd < 0)
		return file;
	if (ioctl(fd, LOOP_CONFIGURE, &config))
		return "LOOP_CONFIGURE";
	close(config.fd);
	close(fd);
	return NULL;
}

/* Add a partition to a device without a partition table. */
const char *make_partition(const char *device, int number,
			   unsigned long long start, unsigned long long sectors)
{
	struct blkpg_partition partition;
	struct blkpg_ioctl_arg arg;
	int fd;

	memset(&partition, 0, sizeof(partition));
	partition.start = (long long)start * 512;
	partition.length = (long long)sectors * 512;
	partition.pno = number;
	memset(&arg, 0, sizeof(arg));
	arg.op = BLKPG_ADD_PARTITION;
	arg.datalen = sizeof(partition);
	arg.data = &partition;
	fd = open(device, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return device;
	if (ioctl(fd, BLKPG, &arg))
		return "BLKPG_ADD_PARTITION";
	close(fd);
	return NULL;
}

/* Write a number into a file of sysfs, and return the one that was there; 0 if it fails. */
static unsigned int exchange(const char *path, unsigned int number)
{
	FILE *file = fopen(path, "r+e");
	unsigned int before = 0;
	int failed;

	if (!file)
		return 0;
	failed = fscanf(file, "%u", &before) != 1 || fseek(file, 0, SEEK_SET) ||
		 fprintf(file, "%u", number) < 0;
	failed |= fclose(file);
	return failed ? 0 : before;
}

/*
 * A search for a free tag begins in the word of the bitmap where the last one of
 * that CPU ended, the first one in a random word. It is the first word if an I/O
 * was done while the queue had no others.
 */
const char *begin_tags(const char *device)
{
	static char data[4096] __attribute__((aligned(4096)));
	char path[256];
	unsigned int requests;
	int fd;

	snprintf(path, sizeof(path), "/sys/block/%s/queue/nr_requests",
		 device + strlen("/dev/"));
	requests = exchange(path, FEWEST_TAGS);
	if (!requests)
		return "nr_requests";
	fd = open(device, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (fd < 0)
		return device;
	if (pread(fd, data, sizeof(data), 0) < 0)
		return "pread";
	close(fd);
	return exchange(path, requests) ? NULL : "nr_requests";
}
