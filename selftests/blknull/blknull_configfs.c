// SPDX-License-Identifier: GPL-2.0
/*
 * blknull's attributes in configfs: valid values, valid combinations, and what
 * may change while the power is on.
 */
#include "item_fixture.h"

TEST_F_TIMEOUT(item, attributes, TIMEOUT)
{
	char path[64];

	ASSERT_EQ(0, item_make("a"));
	EXPECT_EQ(-EAGAIN, module_unload_now("blknull"));
	EXPECT_STREQ("bio", item_get("a", "mode"));
	EXPECT_STREQ("0", item_get("a", "power"));
	EXPECT_STREQ("-1", item_get("a", "index"));
	ASSERT_EQ(0, item_configure("a", "size_mb=3 block_size=4096 rotational=1"
				    " read_only=1 index=7 iostats=1 home_node=0"
				    " dma_alignment=64 power=1"));
	EXPECT_STREQ("1", item_get("a", "power"));
	snprintf(path, sizeof(path), "%s", item_disk("a"));
	EXPECT_STREQ("/dev/blknull7", path);
	EXPECT_EQ(0, access(path, F_OK));
	EXPECT_EQ(-EBUSY, item_set("a", "size_mb", "4"));
	EXPECT_EQ(-EBUSY, item_set("a", "mode", "mq"));
	EXPECT_STREQ("3", item_get("a", "size_mb"));
	/* Setting the value that it has already is allowed. */
	EXPECT_EQ(0, item_set("a", "power", "1"));

	/* Its index is in use; the first free one is not. */
	ASSERT_EQ(0, item_make("b"));
	ASSERT_EQ(0, item_set("b", "index", "7"));
	EXPECT_EQ(-EEXIST, item_set("b", "power", "1"));
	ASSERT_EQ(0, item_set("b", "index", "-1"));
	EXPECT_EQ(0, item_set("b", "power", "1"));
	EXPECT_STREQ("0", item_get("b", "index"));
	EXPECT_EQ(0, item_set("b", "power", "0"));
	EXPECT_STREQ("-1", item_get("b", "index"));
	EXPECT_EQ(0, item_remove("b"));
	EXPECT_EQ(0, item_remove("a"));
	EXPECT_EQ(-1, access(path, F_OK));
}

TEST_F_TIMEOUT(item, bad_values, TIMEOUT)
{
	static const char *const bad[] = {
		"mode=rq", "mode=2", "size_mb=0", "size_mb=x",
		"size_mb=8796093022208", "block_size=513", "block_size=131072",
		"max_sectors=7", "max_segments=65536", "virt_boundary=2",
		"dma_alignment=3", "dma_alignment=2", "completion=irq",
		"completion_nsec=0", "submit_queues=0", "poll_queues=-1",
		"hw_queue_depth=10241", "index=65536", "home_node=-2",
		"fail_status=EIO", "power=2", "power=yes", "stats=yes",
		"complete_cpu=1000", "complete_cpu=other",
		"size_mb=11111111111111111111111111111111111111111111111111",
	};
	/* Valid alone, but not with the other attributes. */
	static const char *const unfit[] = {
		"mode=bio submit_queues=2", "mode=bio completion=timer",
		"fua=1", "fail_every=2", "faults=1 bypass=1",
		"mode=mq submit_queues=1000", "home_node=63",
		"badblocks=+1-2",
	};
	int log = log_begin(), i;

	ASSERT_LE(0, log);
	ASSERT_EQ(0, item_make("a"));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, item_configure("a", bad[i])) {
			TH_LOG("%s", bad[i]);
		}
	}
	EXPECT_TRUE(log_has(log, "invalid mode=rq: must be one of bio, mq"));
	EXPECT_STREQ("1024", item_get("a", "size_mb"));
	for (i = 0; i < ARRAY_SIZE(unfit); i++) {
		int err;

		ASSERT_EQ(0, item_make("b"));
		/* A kernel without NUMA has only node 0. */
		err = item_configure("b", unfit[i]);
		if (!err)
			err = item_set("b", "power", "1");
		EXPECT_EQ(-EINVAL, err) {
			TH_LOG("%s", unfit[i]);
		}
		EXPECT_STREQ("0", item_get("b", "power"));
		ASSERT_EQ(0, item_remove("b"));
	}
	close(log);
}

/* Each refusal says which values are valid. */
TEST_F_TIMEOUT(item, complete_cpu, TIMEOUT)
{
	int log = log_begin();

	ASSERT_LE(0, log);
	ASSERT_EQ(0, item_make("a"));
	EXPECT_STREQ("local", item_get("a", "complete_cpu"));
	EXPECT_EQ(-EINVAL, item_set("a", "complete_cpu", "-1"));
	EXPECT_TRUE(log_has(log, "invalid complete_cpu=-1: must be local, next"
				 " or the number of a CPU"));
	ASSERT_EQ(0, item_set("a", "complete_cpu", "next"));
	ASSERT_EQ(0, item_set("a", "iostats", "1"));
	EXPECT_EQ(-EINVAL, item_set("a", "power", "1"));
	EXPECT_TRUE(log_has(log, "complete_cpu needs iostats=0 or mode=mq"));
	ASSERT_EQ(0, item_set("a", "mode", "mq"));
	ASSERT_EQ(0, item_set("a", "poll_queues", "1"));
	EXPECT_EQ(-EINVAL, item_set("a", "power", "1"));
	EXPECT_TRUE(log_has(log, "complete_cpu needs poll_queues=0"));
	ASSERT_EQ(0, item_set("a", "poll_queues", "0"));
	ASSERT_EQ(0, item_set("a", "completion", "timer"));
	EXPECT_EQ(-EINVAL, item_set("a", "power", "1"));
	EXPECT_TRUE(log_has(log, "complete_cpu needs completion=inline or"
				 " softirq"));
	ASSERT_EQ(0, item_set("a", "completion", "softirq"));
	EXPECT_EQ(0, item_set("a", "power", "1"));
	EXPECT_EQ(-EBUSY, item_set("a", "complete_cpu", "0"));
	close(log);
}

/* Attributes changed while power is on are checked against the others. */
TEST_F_TIMEOUT(item, live_values, TIMEOUT)
{
	int log = log_begin();

	ASSERT_LE(0, log);
	ASSERT_EQ(0, item_on("a", "mode=bio faults=1"));
	EXPECT_EQ(-EINVAL, item_set("a", "bypass", "1"));
	EXPECT_TRUE(log_has(log, "needs memory_backed=1"));
	EXPECT_STREQ("0", item_get("a", "bypass"));
	EXPECT_EQ(0, item_set("a", "fail_every", "2"));
	EXPECT_STREQ("2", item_get("a", "fail_every"));
	/* The values with power off. */
	EXPECT_EQ(0, item_set("a", "power", "0"));
	EXPECT_STREQ("2", item_get("a", "fail_every"));
	EXPECT_STREQ("0", item_get("a", "bypass"));
	EXPECT_EQ(0, item_set("a", "power", "1"));
	close(log);
}

/* Which devices claim not to wait: see blknull.rst. */
TEST_F_TIMEOUT(item, nowait, TIMEOUT)
{
	static const struct {
		const char *attrs;
		bool claims;
	} cases[] = {
		{ "mode=bio", true },
		{ "mode=bio memory_backed=1", false },
		{ "mode=bio memory_backed=1 bypass=1", true },
		{ "mode=bio faults=1", false },
		{ "mode=mq", true },
		{ "mode=mq memory_backed=1", true },
		{ "mode=mq faults=1", true },
	};
	unsigned char *buf = aligned_alloc(4096, 4096);
	int i, fd, ret;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		ASSERT_EQ(0, item_on("a", cases[i].attrs));
		fd = open(item_disk("a"), O_RDONLY | O_DIRECT | O_CLOEXEC);
		ASSERT_LE(0, fd);
		ret = read_page(fd, buf, 0, RWF_NOWAIT);
		EXPECT_EQ(cases[i].claims, ret == 0 || ret == -EAGAIN) {
			TH_LOG("%s: %d", cases[i].attrs, ret);
		}
		EXPECT_EQ(!cases[i].claims, ret == -EOPNOTSUPP);
		close(fd);
		ASSERT_EQ(0, item_remove("a"));
	}
	free(buf);
}

TEST_F_TIMEOUT(item, features, TIMEOUT)
{
	char text[4096], *rest = text, *word;
	int i = 0;

	ASSERT_EQ(0, read_text(ITEMS "features", text, sizeof(text)));
	text[strcspn(text, "\n")] = 0;
	ASSERT_EQ(0, item_make("a"));
	while ((word = strsep(&rest, ","))) {
		EXPECT_STRNE("(none)", item_get("a", word)) {
			TH_LOG("%s", word);
		}
		i++;
	}
	EXPECT_LT(25, i);
}

/* Parameters are lists, and the initial values in configfs. */
TEST_F_TIMEOUT(item, parameters, TIMEOUT)
{
	char text[32];

	ASSERT_EQ(0, module_unload("blknull"));
	ASSERT_EQ(0, module_load("blknull", "nr_devices=3 mode=bio,mq"
				 " size_mb=1,2 stats=0,1,0"));
	EXPECT_EQ(0, read_text("/sys/block/blknull0/size", text, sizeof(text)));
	EXPECT_EQ(2048, atol(text));
	EXPECT_EQ(0, read_text("/sys/block/blknull2/size", text, sizeof(text)));
	EXPECT_EQ(4096, atol(text));
	EXPECT_EQ(-1, access("/sys/block/blknull0/mq/0", F_OK));
	EXPECT_EQ(0, access("/sys/block/blknull1/mq/0", F_OK));
	EXPECT_EQ(0, access("/sys/block/blknull2/mq/0", F_OK));
	EXPECT_EQ(0, access("/sys/block/blknull1/counters/reads", F_OK));
	EXPECT_EQ(-1, access("/sys/block/blknull2/counters", F_OK));
	ASSERT_EQ(0, item_make("a"));
	EXPECT_STREQ("mq", item_get("a", "mode"));
	EXPECT_STREQ("2", item_get("a", "size_mb"));
	ASSERT_EQ(0, item_set("a", "power", "1"));
	EXPECT_STREQ("3", item_get("a", "index"));
}

TEST_HARNESS_MAIN
