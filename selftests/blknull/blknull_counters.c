// SPDX-License-Identifier: GPL-2.0
/* blknull's counters, also for polled I/O. */
#define _GNU_SOURCE
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "device_fixture.h"

TEST_F_TIMEOUT(device, counters, TIMEOUT)
{
	unsigned long long range[2] = { 0, MIB };

	self->fd = turn_on(variant->mode, "stats=1 discard=1 write_zeroes=1"
			   " write_cache=1 fua=1", O_DIRECT);
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(-1, item_counter("a", "failed"));
	/* A split variant sees more, and smaller, I/O. */
	ASSERT_EQ(4096, pread(self->fd, self->buf, 4096, 0));
	ASSERT_EQ(4096, pread(self->fd, self->buf, 4096, 4096));
	EXPECT_EQ(16, item_counter("a", "read_sectors"));
	EXPECT_EQ(2, item_counter("a", "reads"));
	ASSERT_EQ(512, pwrite(self->fd, self->buf, 512, 0));
	EXPECT_EQ(1, item_counter("a", "write_sectors"));
	ASSERT_EQ(0, fsync(self->fd));
	EXPECT_EQ(1, item_counter("a", "flushes"));
	ASSERT_EQ(0, ioctl(self->fd, BLKDISCARD, range));
	EXPECT_EQ(2048, item_counter("a", "discard_sectors"));
	ASSERT_EQ(0, ioctl(self->fd, BLKZEROOUT, range));
	EXPECT_EQ(2048, item_counter("a", "write_zeroes_sectors"));
	EXPECT_EQ(0, item_counter("a", "others"));
}

/* What reads and writes consist of, and their order on a CPU. */
TEST_F_TIMEOUT(device, shapes, TIMEOUT)
{
	static const long long starts[4] = { 0, 4096, 16384, 8192 };
	cpu_set_t first;
	size_t i;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(first), &first));
	self->fd = turn_on(variant->mode, "stats=1 write_cache=1 fua=1",
			   O_DIRECT);
	ASSERT_LE(0, self->fd);
	for (i = 0; i < 4; i++)
		ASSERT_EQ(4096, pwrite(self->fd, self->buf, 4096, starts[i]));
	EXPECT_EQ(4, item_counter("a", "bios"));
	EXPECT_EQ(4, item_counter("a", "segments"));
	EXPECT_EQ(1, item_counter("a", "out_of_order"));
	EXPECT_EQ(0, item_counter("a", "fua"));
	EXPECT_EQ(0, item_counter("a", "sizes"));
}

/* Its last I/Os, in a file that may be open when the device goes. */
TEST_F_TIMEOUT(device, last, TIMEOUT)
{
	static const char *const debugfs = "/sys/kernel/debug";
	char path[64], text[4096];
	cpu_set_t first;
	int fd;

	if (mount("debugfs", debugfs, "debugfs", 0, NULL) && errno != EBUSY)
		SKIP(return, "no debugfs");
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(first), &first));
	self->fd = turn_on(variant->mode, "stats=1 write_cache=1", O_DIRECT);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(4096, pwrite(self->fd, self->buf, 4096, 16384));
	ASSERT_EQ(0, read_page(self->fd, self->buf, 8192, 0));
	ASSERT_EQ(0, fsync(self->fd));
	snprintf(path, sizeof(path), "%s/blknull/blknull%d", debugfs,
		 atoi(item_get("a", "index")));
	ASSERT_EQ(0, read_text(path, text, sizeof(text)));
	/* The flush may come from another CPU, whose lines are behind these. */
	EXPECT_NE(NULL, strstr(text, "W 32 8\nR 16 8\n"));
	EXPECT_NE(NULL, strstr(text, "F 0 0\n"));

	fd = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, item_set("a", "power", "0"));
	EXPECT_EQ(-1, read(fd, text, sizeof(text)));
	EXPECT_EQ(-1, access(path, F_OK));
	EXPECT_EQ(0, close(fd));
}

/* With stats off, nothing is counted. */
TEST_F_TIMEOUT(device, no_counters, TIMEOUT)
{
	self->fd = turn_on(variant->mode, "", O_DIRECT);
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(-1, item_counter("a", "reads"));
	EXPECT_EQ(0, read_page(self->fd, self->buf, 0, 0));
	/* Faults cannot be enabled later either. */
	EXPECT_EQ(-EBUSY, item_set("a", "fail_every", "1"));
	EXPECT_EQ(-EBUSY, item_set("a", "badblocks", "+0-7"));
}

TEST_F_TIMEOUT(device, polls, TIMEOUT)
{
	bool polls = strstr(variant->mode, "poll_queues");
	int i;

	self->fd = turn_on(variant->mode, "stats=1", O_DIRECT);
	ASSERT_LE(0, self->fd);
	for (i = 0; i < 100; i++)
		ASSERT_EQ(0, read_page(self->fd, self->buf, 0,
				       polls ? RWF_HIPRI : 0));
	EXPECT_EQ(100, item_counter("a", "reads"));
}

TEST_HARNESS_MAIN
