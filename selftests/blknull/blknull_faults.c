// SPDX-License-Identifier: GPL-2.0
/* blknull's faults on demand: failures, bad blocks, delays. */
#include "device_fixture.h"
#include "item_fixture.h"

TEST_F_TIMEOUT(device, failures, TIMEOUT)
{
	static const struct {
		const char *name;
		int err;
	} status[] = {
		{ "io", EIO }, { "medium", ENODATA }, { "nospc", ENOSPC },
		{ "timeout", ETIMEDOUT }, { "transport", ENOLINK },
		{ "target", EREMOTEIO }, { "protection", EILSEQ },
		{ "notsupp", EOPNOTSUPP },
	};
	int i, failed = 0;

	self->fd = turn_on(variant->mode, "faults=1 memory_backed=1", O_DIRECT);
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(0, item_counter("a", "failed"));
	for (i = 0; i < ARRAY_SIZE(status); i++) {
		ASSERT_EQ(0, item_set("a", "fail_status", status[i].name));
		ASSERT_EQ(0, item_set("a", "fail_nth", "3"));
		EXPECT_EQ(0, read_page(self->fd, self->buf, 0, 0));
		EXPECT_EQ(0, read_page(self->fd, self->buf, 0, 0));
		EXPECT_EQ(-status[i].err,
			  read_page(self->fd, self->buf, 0, 0)) {
			TH_LOG("%s", status[i].name);
		}
		EXPECT_EQ(0, read_page(self->fd, self->buf, 0, 0));
		failed++;
	}
	EXPECT_EQ(failed, item_counter("a", "failed"));
	EXPECT_EQ(-EINVAL, item_set("a", "fail_status", "eio"));
	EXPECT_STREQ("notsupp", item_get("a", "fail_status"));
	ASSERT_EQ(0, item_set("a", "fail_status", "io"));
	ASSERT_EQ(0, item_set("a", "fail_nth", "0"));
	ASSERT_EQ(0, item_set("a", "fail_every", "4"));
	for (i = 1; i <= 40; i++)
		EXPECT_EQ(i % 4 ? 0 : -EIO,
			  read_page(self->fd, self->buf, 0, 0));
	ASSERT_EQ(0, item_set("a", "fail_every", "0"));
	EXPECT_EQ(failed + 10, item_counter("a", "failed"));

	/* Failed writes store nothing. */
	memset(self->buf, 1, 4096);
	ASSERT_EQ(4096, pwrite(self->fd, self->buf, 4096, 0));
	ASSERT_EQ(0, item_set("a", "fail_every", "1"));
	memset(self->buf, 2, 4096);
	ASSERT_EQ(-1, pwrite(self->fd, self->buf, 4096, 0));
	ASSERT_EQ(0, item_set("a", "fail_every", "0"));
	EXPECT_EQ(0, read_page(self->fd, self->buf, 0, 0));
	EXPECT_TRUE(all(self->buf, 4096, 1));
}

TEST_F_TIMEOUT(device, badblocks, TIMEOUT)
{
	self->fd = turn_on(variant->mode, "faults=1 badblocks=+16-23",
			   O_DIRECT);
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(0, read_page(self->fd, self->buf, 4096, 0));
	EXPECT_EQ(-EIO, read_page(self->fd, self->buf, 8192, 0));
	EXPECT_EQ(0, read_page(self->fd, self->buf, 12288, 0));
	EXPECT_EQ(-EIO, read_page(self->fd, self->buf, 8192 - 512, 0));
	ASSERT_EQ(0, item_set("a", "badblocks", "+100-100\n"));
	EXPECT_EQ(512, pread(self->fd, self->buf, 512, 99 * 512));
	EXPECT_EQ(-1, pread(self->fd, self->buf, 512, 100 * 512));
	ASSERT_EQ(0, item_set("a", "badblocks", "-16-23"));
	EXPECT_EQ(0, read_page(self->fd, self->buf, 8192, 0));
	EXPECT_EQ(-EINVAL, item_set("a", "badblocks", "16-23"));
	EXPECT_EQ(-EINVAL, item_set("a", "badblocks", "+23-16"));
	EXPECT_EQ(-EINVAL, item_set("a", "badblocks", "+1-2x"));
	EXPECT_EQ(-EINVAL, item_set("a", "badblocks", "+1"));
	EXPECT_EQ(-EINVAL, item_set("a", "badblocks", "\n"));
}

/* Lengths of more sectors than an int has. */
TEST_F_TIMEOUT(item, long_badblocks, TIMEOUT)
{
	ASSERT_EQ(0, item_make("a"));
	/* 2^32 + 8, of which the list has room for a part. */
	EXPECT_EQ(-ENOSPC, item_set("a", "badblocks", "+0-4294967303"));
	/* 2^33, with sectors on either side of 2^31 and of 2^32. */
	EXPECT_EQ(0, item_set("a", "badblocks", "-0-8589934591"));
	EXPECT_STREQ("", item_get("a", "badblocks"));
	EXPECT_EQ(0, item_set("a", "badblocks", "+7-8"));
	EXPECT_EQ(0, item_set("a", "badblocks", "+2147483647-2147483648"));
	EXPECT_EQ(0, item_set("a", "badblocks", "+4294967400-4294967401"));
	EXPECT_EQ(0, item_set("a", "badblocks", "+8589934592-8589934592"));
	EXPECT_EQ(0, item_set("a", "badblocks", "-0-8589934591"));
	EXPECT_STREQ("8589934592 1", item_get("a", "badblocks"));
	EXPECT_EQ(0, item_set("a", "badblocks", "-0-18014398509479935"));
	EXPECT_STREQ("", item_get("a", "badblocks"));
}

TEST_F_TIMEOUT(device, delays, TIMEOUT)
{
	/* Bios that end on another CPU cannot be accounted. */
	bool remote = strstr(variant->mode, "complete_cpu");
	uint64_t before, took;
	int i;

	self->fd = turn_on(variant->mode, remote ?
			   "faults=1 delay_every=2 delay_nsec=200000000" :
			   "faults=1 delay_every=2 delay_nsec=200000000"
			   " iostats=1", O_DIRECT);
	ASSERT_LE(0, self->fd);
	for (i = 0; i < 4; i++) {
		before = now_ns();
		EXPECT_EQ(0, read_page(self->fd, self->buf, 0, 0));
		took = now_ns() - before;
		EXPECT_LE(i % 2 ? 200000000 : 0, took);
	}
	EXPECT_EQ(2, item_counter("a", "delayed"));
}

TEST_HARNESS_MAIN
