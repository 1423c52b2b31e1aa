// SPDX-License-Identifier: GPL-2.0
/*
 * Looks at a file or device before anything is done to it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <linux/nvme_ioctl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../../kernel/include/uapi/biogen.h"
#include "compiler.h"
#include "device.h"
#include "engine.h"

/* O_EXCL on a block device: it is not mounted and not claimed. */
static bool block_device_free(const char *name)
{
	int fd = open(name, O_RDONLY | O_EXCL | O_CLOEXEC);

	if (fd < 0)
		return errno != EBUSY;
	close(fd);
	return true;
}

/* May it be written to? @block is the block device, which @dev is or is one of. */
static bool may_write(const struct device *dev, const struct options *o,
		      const char *block, char *msg, size_t size)
{
	if (!options_write(o) || block_device_free(block))
		return true;
	snprintf(msg, size,
		 "%s: is mounted or otherwise in use; --rw=read would work",
		 dev->name);
	return false;
}

/*
 * If a queue does not poll, most kernels ignore the request to poll. A
 * partition has the queue of its disk, one folder up.
 */
static bool never_polls(dev_t device)
{
	static const char *const places[] = { "", "../" };
	char path[96];
	size_t i;
	FILE *f;
	int c;

	for (i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(path, sizeof(path),
			 "/sys/dev/block/%u:%u/%squeue/io_poll", major(device),
			 minor(device), places[i]);
		f = fopen(path, "re");
		if (!f)
			continue;
		c = fgetc(f);
		fclose(f);
		return c == '0';
	}
	return false;
}

static bool inspect_block(struct device *dev, const struct options *o, int fd,
			  dev_t device, char *msg, size_t size)
{
	int sector, read_only;

	if (ioctl(fd, BLKGETSIZE64, &dev->size) ||
	    ioctl(fd, BLKSSZGET, &sector) || ioctl(fd, BLKROGET, &read_only)) {
		snprintf(msg, size, "%s: cannot get its size: %s",
			 dev->name, strerror(errno));
		return false;
	}
	dev->logical_block_size = (uint64_t)sector;
	if (o->hipri && never_polls(device)) {
		snprintf(msg, size,
			 "%s: does not poll, so --hipri is not possible",
			 dev->name);
		return false;
	}
	if (options_write(o) && read_only) {
		snprintf(msg, size, "%s: is read-only; --rw=read would work",
			 dev->name);
		return false;
	}
	return may_write(dev, o, dev->name, msg, size);
}

static bool inspect_biogen(struct device *dev, const struct options *o, int fd,
			   char *msg, size_t size)
{
	struct biogen_info info;

	if (ioctl(fd, BIOGEN_INFO, &info)) {
		snprintf(msg, size,
			 "%s: is a character device, but not biogen's of this version: %s",
			 dev->name, strerror(errno));
		return false;
	}
	if (options_write(o) && !(info.flags & BIOGEN_INFO_WRITE)) {
		snprintf(msg, size, "%s: is read-only; --rw=read would work",
			 dev->name);
		return false;
	}
	dev->size = info.size;
	dev->logical_block_size = info.block_size;
	return true;
}

/* Fields of Identify Namespace: how many blocks, and their formats. */
#define NVME_IDENTIFY		0x06
#define NVME_NSZE		0
#define NVME_FLBAS		26
#define NVME_LBAF		128
#define NVME_LBADS		2	/* in a format of 4 bytes: log2 of the size */

/* The namespace /dev/ngXnY is the block device /dev/nvmeXnY, too. */
static bool may_write_namespace(const struct device *dev,
				const struct options *o, char *msg, size_t size)
{
	const char *last = strrchr(dev->name, '/');
	char path[96];

	if (!last || strncmp(last + 1, "ng", 2))
		return true;
	snprintf(path, sizeof(path), "/dev/nvme%s", last + 3);
	return may_write(dev, o, path, msg, size);
}

static bool inspect_namespace(struct device *dev, const struct options *o,
			      int fd, char *msg, size_t size)
{
	unsigned char id[4096] = { 0 };
	struct nvme_admin_cmd cmd = {
		.opcode = NVME_IDENTIFY,
		.addr = (uintptr_t)id,
		.data_len = sizeof(id),
	};
	int number = ioctl(fd, NVME_IOCTL_ID);
	uint64_t blocks;

	if (number <= 0) {
		snprintf(msg, size,
			 "%s: --ioengine=io_uring_cmd needs a namespace of NVMe, /dev/ngXnY",
			 dev->name);
		return false;
	}
	cmd.nsid = (uint32_t)number;
	if (ioctl(fd, NVME_IOCTL_ADMIN_CMD, &cmd)) {
		snprintf(msg, size, "%s: cannot get its size: %s",
			 dev->name, strerror(errno));
		return false;
	}
	memcpy(&blocks, id + NVME_NSZE, sizeof(blocks));
	dev->nvme_namespace = cmd.nsid;
	dev->logical_block_size = UINT64_C(1)
		<< id[NVME_LBAF + 4 * (id[NVME_FLBAS] & 15) + NVME_LBADS];
	dev->size = blocks * dev->logical_block_size;
	return may_write_namespace(dev, o, msg, size);
}

static bool inspect(struct device *dev, const struct options *o, int fd,
		    char *msg, size_t size)
{
	struct stat st;

	if (fstat(fd, &st)) {
		snprintf(msg, size, "%s: %s", dev->name, strerror(errno));
		return false;
	}
	if (o->engine->flags & ENGINE_COMMANDS)
		return inspect_namespace(dev, o, fd, msg, size);
	if (o->engine == &engine_biogen && !S_ISCHR(st.st_mode)) {
		snprintf(msg, size,
			 "%s: --ioengine=biogen needs a /dev/biogenN",
			 dev->name);
		return false;
	}
	if (o->registermem && !S_ISCHR(st.st_mode)) {
		snprintf(msg, size, "%s: --registermem needs a /dev/biogenN",
			 dev->name);
		return false;
	}
	dev->block = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	if (S_ISBLK(st.st_mode))
		return inspect_block(dev, o, fd, st.st_rdev, msg, size);
	if (S_ISREG(st.st_mode)) {
		dev->size = (uint64_t)st.st_size;
		return true;
	}
	if (!S_ISCHR(st.st_mode)) {
		snprintf(msg, size,
			 "%s: is neither a device nor a regular file",
			 dev->name);
		return false;
	}
	return inspect_biogen(dev, o, fd, msg, size);
}

/* Direct I/O to a block device, and a command, goes to whole blocks. */
static bool aligned(const struct device *dev, const struct options *o)
{
	const uint64_t block = dev->logical_block_size;

	if (!(o->direct || o->engine->flags & ENGINE_COMMANDS) || !block)
		return true;
	return !(o->offset % block) &&
	       !(o->bs / (o->split ? o->split : 1) % block);
}

/**
 * device_inspect() - find out what --filename names
 * @dev: to be filled in
 * @name: the name
 * @o: the options
 * @msg: what is wrong, if anything
 * @size: room in @msg
 *
 * Return: true if the options can be carried out on it.
 */
bool device_inspect(struct device *dev, const char *name,
		    const struct options *o, char *msg, size_t size)
{
	uint64_t room;
	bool ok;
	int fd;

	memset(dev, 0, sizeof(*dev));
	dev->name = name;
	fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0) {
		snprintf(msg, size, "%s: cannot open it: %s", name,
			 strerror(errno));
		return false;
	}
	ok = inspect(dev, o, fd, msg, size);
	close(fd);
	if (!ok)
		return false;

	if (!aligned(dev, o)) {
		snprintf(msg, size,
			 "%s: I/O past the page cache needs --offset, I/Os and pieces in multiples of %"
			 PRIu64,
			 name, dev->logical_block_size);
		return false;
	}
	room = dev->size > o->offset ? dev->size - o->offset : 0;
	if (room < o->size || room < o->bs) {
		snprintf(msg, size,
			 "%s: holds %" PRIu64 " bytes, too few for --%s=%"
			 PRIu64 " at --offset=%" PRIu64,
			 name, dev->size, room < o->size ? "size" : "bs",
			 room < o->size ? o->size : o->bs, o->offset);
		return false;
	}
	if (o->size)
		room = o->size;
	dev->start = o->offset;
	dev->end = o->offset + room - room % o->bs;
	return true;
}
