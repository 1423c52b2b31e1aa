// SPDX-License-Identifier: GPL-2.0
/*
 * blknull's disks: the properties that they report, what is read from them, and
 * the valid parameters.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include "util.h"

#define DISK		"/dev/blknull0"
#define QUEUE		"/sys/block/blknull0/queue/"

FIXTURE(disk) {
	unsigned char *buf;
};

FIXTURE_SETUP(disk)
{
	module_unload("blknull");
	self->buf = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->buf);
}

FIXTURE_TEARDOWN(disk)
{
	int err = module_unload("blknull");

	EXPECT_TRUE(!err || err == -ENOENT);
	EXPECT_EQ(-ENOENT, module_unload("blknull"));
}

static long attribute(const char *path)
{
	char text[64];

	return read_text(path, text, sizeof(text)) ? -1 : atol(text);
}

/* A program's own memory keeps its contents or is zeroed, each byte of it. */
static bool all_own(const unsigned char *p, size_t len, unsigned char byte)
{
	while (len && (!*p || *p == byte)) {
		p++;
		len--;
	}
	return !len;
}

/* A message that names the parameter and the given value, and no module. */
TEST_F_TIMEOUT(disk, bad_parameters, TIMEOUT)
{
	static const char *const bad[] = {
		"nr_devices=1025", "size_mb=0",
		"size_mb=8796093022208", "block_size=0", "block_size=511",
		"block_size=513", "block_size=768", "block_size=131072",
		"max_sectors=1", "max_sectors=7", "mode=bio,mq,bio",
		"size_mb=1,,",
	};
	static const char *const no_values[] = {
		"nr_devices=-1", "nr_devices=x", "size_mb=", "block_size=4k",
		"max_sectors=-8", "rotational=2", "discard=x", "read_only=3",
		"zero_fill=maybe", "memory_backed=yes", "memory_backed=1x",
		"stats=true", "stats=",
	};
	int log = log_begin(), i;
	char name[32];

	ASSERT_LE(0, log);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, module_load("blknull", bad[i])) {
			TH_LOG("%s", bad[i]);
		}
		EXPECT_TRUE(log_has(log, bad[i])) {
			TH_LOG("%s", bad[i]);
		}
	}
	for (i = 0; i < ARRAY_SIZE(no_values); i++) {
		int err = module_load("blknull", no_values[i]);

		EXPECT_TRUE(err == -EINVAL || err == -ERANGE) {
			TH_LOG("%s: %d", no_values[i], err);
		}
		snprintf(name, sizeof(name), "%s", no_values[i]);
		*strchr(name, '=') = 0;
		EXPECT_TRUE(log_has(log, name)) {
			TH_LOG("%s", no_values[i]);
		}
	}
	EXPECT_EQ(-ENOENT, module_unload("blknull"));
	close(log);
}

TEST_F_TIMEOUT(disk, shape, TIMEOUT)
{
	unsigned long long size;
	int fd, block;

	ASSERT_EQ(0, module_load("blknull", ""));
	EXPECT_EQ(0, access(DISK, F_OK));
	EXPECT_EQ(-1, access("/dev/blknull1", F_OK));
	EXPECT_EQ(2097152, attribute("/sys/block/blknull0/size"));
	EXPECT_EQ(512, attribute(QUEUE "logical_block_size"));
	EXPECT_EQ(0, attribute(QUEUE "rotational"));
	EXPECT_EQ(0, attribute(QUEUE "discard_max_bytes"));
	EXPECT_EQ(0, attribute("/sys/block/blknull0/ro"));
	ASSERT_EQ(0, module_unload("blknull"));

	ASSERT_EQ(0, module_load("blknull", "nr_devices=3 size_mb=7"
				 " block_size=4096 max_sectors=128"
				 " rotational=1 discard=1"));
	EXPECT_EQ(0, access("/dev/blknull2", F_OK));
	EXPECT_EQ(-1, access("/dev/blknull3", F_OK));
	EXPECT_EQ(14336, attribute("/sys/block/blknull0/size"));
	EXPECT_EQ(4096, attribute(QUEUE "logical_block_size"));
	EXPECT_EQ(1, attribute(QUEUE "rotational"));
	EXPECT_LT(0, attribute(QUEUE "discard_max_bytes"));
	EXPECT_EQ(64, attribute(QUEUE "max_hw_sectors_kb"));
	fd = open(DISK, O_RDWR | O_DIRECT | O_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ioctl(fd, BLKGETSIZE64, &size));
	EXPECT_EQ(7 * MIB, size);
	ASSERT_EQ(0, ioctl(fd, BLKSSZGET, &block));
	EXPECT_EQ(4096, block);
	EXPECT_EQ(-1, pread(fd, self->buf, 512, 0));
	EXPECT_EQ(EINVAL, errno);
	/* In parts, which the caller does not see. */
	EXPECT_EQ(4 * MIB, pread(fd, self->buf, 4 * MIB, 0));
	EXPECT_EQ(4 * MIB, pwrite(fd, self->buf, 4 * MIB, 0));
	EXPECT_EQ(MIB, pread(fd, self->buf, 2 * MIB, 6 * MIB));
	EXPECT_EQ(0, pread(fd, self->buf, 4096, 7 * MIB));
	EXPECT_EQ(-1, pwrite(fd, self->buf, 4096, 7 * MIB));
	EXPECT_EQ(ENOSPC, errno);
	EXPECT_EQ(0, fsync(fd));
	close(fd);
}

/* Only zeroes are read, except directly into the program's memory. */
TEST_F_TIMEOUT(disk, zeroes, TIMEOUT)
{
	unsigned char *map, *shared;
	int fd, i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, module_load("blknull", i ?
					 "size_mb=8 max_sectors=128" :
					 "size_mb=8"));
		fd = open(DISK, O_RDWR | O_CLOEXEC);
		ASSERT_LE(0, fd);
		memset(self->buf, 0xff, 4 * MIB);
		ASSERT_EQ(4 * MIB, pwrite(fd, self->buf, 4 * MIB, 0));
		ASSERT_EQ(0, fsync(fd));
		ASSERT_EQ(0, ioctl(fd, BLKFLSBUF, 0));
		ASSERT_EQ(4 * MIB, pread(fd, self->buf, 4 * MIB, 0));
		EXPECT_TRUE(all(self->buf, 4 * MIB, 0));
		ASSERT_EQ(0, ioctl(fd, BLKFLSBUF, 0));
		map = mmap(NULL, MIB, PROT_READ, MAP_SHARED, fd, MIB);
		ASSERT_NE(MAP_FAILED, map);
		EXPECT_TRUE(all(map, MIB, 0));
		munmap(map, MIB);
		close(fd);

		fd = open(DISK, O_RDWR | O_DIRECT | O_CLOEXEC);
		ASSERT_LE(0, fd);
		memset(self->buf, 0x5a, MIB);
		ASSERT_EQ(MIB, pread(fd, self->buf, MIB, 0));
		EXPECT_TRUE(all_own(self->buf, MIB, 0x5a));
		shared = mmap(NULL, MIB, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, shared);
		memset(shared, 0x5a, MIB);
		ASSERT_EQ(MIB, pread(fd, shared, MIB, 0));
		EXPECT_TRUE(all_own(shared, MIB, 0x5a));
		munmap(shared, MIB);
		/* Pages that no program has used yet are empty. */
		shared = mmap(NULL, MIB, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, shared);
		ASSERT_EQ(MIB, pread(fd, shared, MIB, 0));
		EXPECT_TRUE(all(shared, MIB, 0));
		munmap(shared, MIB);
		close(fd);
		ASSERT_EQ(0, module_unload("blknull"));
	}
}

TEST_F_TIMEOUT(disk, discard, TIMEOUT)
{
	uint64_t range[] = { 0, MIB };
	int fd;

	ASSERT_EQ(0, module_load("blknull", ""));
	fd = open(DISK, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-1, ioctl(fd, BLKDISCARD, range));
	EXPECT_EQ(EOPNOTSUPP, errno);
	close(fd);
	ASSERT_EQ(0, module_unload("blknull"));
	ASSERT_EQ(0, module_load("blknull", "discard=1"));
	fd = open(DISK, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, ioctl(fd, BLKDISCARD, range));
	EXPECT_EQ(0, ioctl(fd, BLKZEROOUT, range));
	close(fd);
}

TEST_F_TIMEOUT(disk, read_only, TIMEOUT)
{
	int fd;

	ASSERT_EQ(0, module_load("blknull", "read_only=1"));
	EXPECT_EQ(1, attribute("/sys/block/blknull0/ro"));
	fd = open(DISK, O_RDWR | O_DIRECT | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(4096, pread(fd, self->buf, 4096, 0));
	EXPECT_EQ(-1, pwrite(fd, self->buf, 4096, 0));
	EXPECT_EQ(EPERM, errno);
	close(fd);
}

TEST_F_TIMEOUT(disk, busy, TIMEOUT)
{
	int fd;

	ASSERT_EQ(0, module_load("blknull", ""));
	EXPECT_EQ(-EEXIST, module_load("blknull", ""));
	fd = open(DISK, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EAGAIN, module_unload_now("blknull"));
	EXPECT_EQ(4096, pread(fd, self->buf, 4096, 0));
	close(fd);
}

TEST_F_TIMEOUT(disk, again_and_again, TIMEOUT)
{
	int i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, module_load("blknull", "nr_devices=8"));
		ASSERT_EQ(0, module_unload("blknull"));
	}
}

TEST_HARNESS_MAIN
