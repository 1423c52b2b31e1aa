// SPDX-License-Identifier: GPL-2.0
/*
 * Devices on devices: device mapper, loop devices and partitions.
 */
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
