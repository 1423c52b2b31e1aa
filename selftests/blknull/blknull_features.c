// SPDX-License-Identifier: GPL-2.0
/*
 * blknull's devices in configfs: their attributes, data, faults and counters,
 * in each mode.
 */
#include <linux/blkzoned.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "kselftest_harness.h"

#include "engine.h"
#include "item.h"

#define SIZE		(4 * MIB)	/* what of a device is looked at */

FIXTURE(device) {
	unsigned char *buf;
	unsigned char *shadow;
	int fd;
};

FIXTURE_VARIANT(device) {
	const char *mode;
};

FIXTURE_VARIANT_ADD(device, bio) {
	.mode = "mode=bio",
};

FIXTURE_VARIANT_ADD(device, split) {
	.mode = "mode=bio max_sectors=page max_segments=4 virt_boundary=1",
};

FIXTURE_VARIANT_ADD(device, inline) {
	.mode = "mode=mq iostats=1",
};

FIXTURE_VARIANT_ADD(device, softirq) {
	.mode = "mode=mq completion=softirq submit_queues=2",
};

FIXTURE_VARIANT_ADD(device, timer) {
	.mode = "mode=mq completion=timer completion_nsec=50000",
};

FIXTURE_VARIANT_ADD(device, poll) {
	.mode = "mode=mq poll_queues=2",
};

FIXTURE_VARIANT_ADD(device, remote) {
	.mode = "mode=bio complete_cpu=next",
};

FIXTURE_VARIANT_ADD(device, remote_softirq) {
	.mode = "mode=mq completion=softirq complete_cpu=next",
};

FIXTURE_SETUP(device)
{
	self->fd = -1;
	self->buf = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	self->shadow = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->buf);
	ASSERT_NE(MAP_FAILED, self->shadow);
	item_remove("a");
	item_remove("b");
	module_unload("blknull");
	ASSERT_EQ(0, items_begin());
}

FIXTURE_TEARDOWN(device)
{
	close(self->fd);
	EXPECT_EQ(0, item_remove("a"));
	item_remove("b");
	EXPECT_EQ(0, module_unload("blknull"));
}

static bool is_mq(const char *mode)
{
	return !strncmp(mode, "mode=mq", 7);
}

/* Turn on "a", of this mode and with these attributes, and open it. */
static int turn_on(const char *mode, const char *attrs, int flags)
{
	char text[512];
	int err, fd;

	snprintf(text, sizeof(text), "%s %s", mode, attrs);
	err = item_on("a", text);
	if (err)
		return err;
	fd = open(item_disk("a"), O_RDWR | O_CLOEXEC | flags);
	return fd < 0 ? -errno : fd;
}

/* One read of a page: 0 or a negative errno. */
static int read_page(int fd, void *buf, off_t offset, int flags)
{
	struct iovec iov = { .iov_base = buf, .iov_len = 4096 };
	ssize_t got = preadv2(fd, &iov, 1, offset, flags);

	if (got < 0)
		return -errno;
	return got == 4096 ? 0 : -ENODATA;
}

/* What is written is read, and what is discarded or zeroed is zeroes. */
TEST_F_TIMEOUT(device, holds_data, TIMEOUT)
{
	unsigned long long range[2];
	struct rng rng;
	int i;

	self->fd = turn_on(variant->mode, "size_mb=8 memory_backed=1 discard=1"
			   " write_zeroes=1", O_DIRECT);
	ASSERT_LE(0, self->fd);
	rng_init(&rng, 1);
	for (i = 0; i < 2000; i++) {
		size_t at = rng_below(&rng, SIZE / 512) * 512;
		size_t len = 512 << rng_below(&rng, 9);

		if (at + len > SIZE)
			continue;
		range[0] = at;
		range[1] = len;
		switch (rng_below(&rng, 8)) {
		case 0:
			ASSERT_EQ(0, ioctl(self->fd, BLKDISCARD, range));
			memset(self->shadow + at, 0, len);
			break;
		case 1:
			ASSERT_EQ(0, ioctl(self->fd, BLKZEROOUT, range));
			memset(self->shadow + at, 0, len);
			break;
		case 2:
		case 3:
		case 4:
			rng_fill(&rng, self->buf, len);
			ASSERT_EQ(len, pwrite(self->fd, self->buf, len, at));
			memcpy(self->shadow + at, self->buf, len);
			break;
		default:
			memset(self->buf, 0x5a, len);
			ASSERT_EQ(len, pread(self->fd, self->buf, len, at));
			ASSERT_EQ(0, memcmp(self->buf, self->shadow + at, len)) {
				TH_LOG("%zu bytes at %zu", len, at);
			}
		}
	}
	memset(self->buf, 0x5a, SIZE);
	ASSERT_EQ(SIZE, pread(self->fd, self->buf, SIZE, 0));
	EXPECT_EQ(0, memcmp(self->buf, self->shadow, SIZE));
}

/* The memory is aligned to less than a sector, so segments end within one. */
TEST_F_TIMEOUT(device, unaligned_memory, TIMEOUT)
{
	struct iovec iov[3];
	struct rng rng;
	int i;

	self->fd = turn_on(variant->mode, "memory_backed=1 dma_alignment=4",
			   O_DIRECT);
	ASSERT_LE(0, self->fd);
	rng_init(&rng, 2);
	rng_fill(&rng, self->shadow, 32768);
	iov[0].iov_base = self->shadow;
	iov[0].iov_len = 32768;
	if (pwrite(self->fd, self->shadow + 4, 512, 0) < 0 && errno == EINVAL)
		SKIP(return, "memory is aligned to blocks");
	for (i = 0; i < 200; i++) {
		size_t a = 512 * (1 + rng_below(&rng, 30));
		size_t b = 512 * (1 + rng_below(&rng, 30));

		ASSERT_EQ(32768, pwritev(self->fd, iov, 1, 32768 * (i & 7)));
		memset(self->buf, 0, 32768);
		memset(self->buf + MIB, 0, 32768);
		memset(self->buf + 2 * MIB, 0, 32768);
		iov[0].iov_base = self->buf + 4;
		iov[0].iov_len = a;
		iov[1].iov_base = self->buf + MIB + 8;
		iov[1].iov_len = b;
		iov[2].iov_base = self->buf + 2 * MIB + 12;
		iov[2].iov_len = 32768 - a - b;
		ASSERT_EQ(32768, preadv(self->fd, iov, 3, 32768 * (i & 7)));
		ASSERT_EQ(0, memcmp(self->buf + 4, self->shadow, a));
		ASSERT_EQ(0, memcmp(self->buf + MIB + 8, self->shadow + a, b));
		ASSERT_EQ(0, memcmp(self->buf + 2 * MIB + 12,
				    self->shadow + a + b, 32768 - a - b));
		rng_fill(&rng, self->shadow, 32768);
		iov[0].iov_base = self->shadow;
		iov[0].iov_len = 32768;
	}
}

/* Without data, the page cache gets zeroes and never what was in its pages. */
TEST_F_TIMEOUT(device, zeroes, TIMEOUT)
{
	unsigned char *map, *dirt;
	int i;

	self->fd = turn_on(variant->mode, "", 0);
	ASSERT_LE(0, self->fd);
	for (i = 0; i < 2; i++) {
		/* Free pages are full of what must not be seen. */
		dirt = mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, dirt);
		memset(dirt, 0xaa, 16 * MIB);
		munmap(dirt, 16 * MIB);
		ASSERT_EQ(0, write_text("/proc/sys/vm/drop_caches", "1"));
		memset(self->buf, 0x5a, SIZE);
		ASSERT_EQ(SIZE, pread(self->fd, self->buf, SIZE, 0));
		EXPECT_TRUE(all(self->buf, SIZE, 0));
		map = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, self->fd,
			   8 * MIB);
		ASSERT_NE(MAP_FAILED, map);
		EXPECT_TRUE(all(map, SIZE, 0));
		munmap(map, SIZE);
	}
}

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

/* With stats off, nothing is counted. */
TEST_F_TIMEOUT(device, no_counters, TIMEOUT)
{
	self->fd = turn_on(variant->mode, "", O_DIRECT);
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(-1, item_counter("a", "reads"));
	EXPECT_EQ(0, read_page(self->fd, self->buf, 0, 0));
	/* Nor can faults be had later. */
	EXPECT_EQ(-EBUSY, item_set("a", "fail_every", "1"));
	EXPECT_EQ(-EBUSY, item_set("a", "badblocks", "+0-7"));
}

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

	/* What failed was not written. */
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

TEST_F_TIMEOUT(device, requeues, TIMEOUT)
{
	int i;

	if (!is_mq(variant->mode)) {
		EXPECT_EQ(-EINVAL, turn_on(variant->mode, "faults=1"
					   " requeue_every=3", O_DIRECT));
		return;
	}
	self->fd = turn_on(variant->mode, "faults=1 requeue_every=3", O_DIRECT);
	ASSERT_LE(0, self->fd);
	for (i = 0; i < 200; i++)
		ASSERT_EQ(0, read_page(self->fd, self->buf, 0, 0));
	/* A request that comes again counts again. */
	EXPECT_EQ(99, item_counter("a", "requeued"));
	EXPECT_EQ(-EINVAL, item_set("a", "requeue_every", "1"));
}

TEST_F_TIMEOUT(device, timeouts, TIMEOUT)
{
	int i;

	if (!is_mq(variant->mode)) {
		EXPECT_EQ(-EINVAL, turn_on(variant->mode, "faults=1"
					   " timeout_every=3", O_DIRECT));
		return;
	}
	self->fd = turn_on(variant->mode, "faults=1 timeout_every=3"
			   " timeout_ms=100", O_DIRECT);
	ASSERT_LE(0, self->fd);
	for (i = 1; i <= 6; i++)
		EXPECT_EQ(i % 3 ? 0 : -ETIMEDOUT,
			  read_page(self->fd, self->buf, 0, 0));
	EXPECT_EQ(2, item_counter("a", "timed_out"));
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

struct load {
	const char *path;
	bool stop;
	long done, failed;
	int unexpected;
};

/* Read and write until told to stop; whatever fails must be for want of it. */
static void *run_load(void *arg)
{
	struct load *load = arg;
	unsigned char *buf;
	ssize_t got;
	int fd;

	buf = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fd = open(load->path, O_RDWR | O_DIRECT | O_CLOEXEC);
	while (!__atomic_load_n(&load->stop, __ATOMIC_RELAXED)) {
		got = load->done & 1 ? pwrite(fd, buf, 65536, 0) :
				       pread(fd, buf, 4096, 65536);
		if (got >= 0) {
			__atomic_fetch_add(&load->done, 1, __ATOMIC_RELAXED);
			continue;
		}
		__atomic_fetch_add(&load->failed, 1, __ATOMIC_RELAXED);
		if (errno != EIO && errno != ENXIO && errno != ENODEV &&
		    errno != EBADF && errno != ENOSPC)
			load->unexpected = errno;
	}
	close(fd);
	munmap(buf, 65536);
	return NULL;
}

/* A process that has it open gets errors. */
TEST_F_TIMEOUT(device, removal_under_load, TIMEOUT)
{
	struct load load[4] = {};
	pthread_t thread[4];
	char path[64];
	int i, round;

	ASSERT_EQ(0, item_make("a"));
	for (round = 0; round < 10; round++) {
		ASSERT_EQ(0, item_configure("a", variant->mode));
		ASSERT_EQ(0, item_configure("a", round & 1 ?
					    "memory_backed=1 faults=1"
					    " delay_every=5 stats=1" :
					    "memory_backed=0 delay_every=0"
					    " faults=0 stats=0"));
		ASSERT_EQ(0, item_set("a", "power", "1"));
		snprintf(path, sizeof(path), "%s", item_disk("a"));
		for (i = 0; i < 4; i++) {
			load[i] = (struct load){ .path = path };
			ASSERT_EQ(0, pthread_create(&thread[i], NULL, run_load,
						    &load[i]));
		}
		for (i = 0; i < 4; i++)
			while (!__atomic_load_n(&load[i].done, __ATOMIC_RELAXED))
				usleep(1000);
		usleep(20000);
		EXPECT_EQ(0, item_set("a", "power", "0"));
		EXPECT_EQ(-1, access(path, F_OK));
		for (i = 0; i < 4; i++)
			__atomic_store_n(&load[i].stop, true, __ATOMIC_RELAXED);
		for (i = 0; i < 4; i++) {
			pthread_join(thread[i], NULL);
			EXPECT_EQ(0, load[i].unexpected);
		}
	}
}

/* Making a directory, and the reasons to refuse one. */

FIXTURE(item) {
};

FIXTURE_SETUP(item)
{
	module_unload("blknull");
	ASSERT_EQ(0, items_begin());
}

FIXTURE_TEARDOWN(item)
{
	item_remove("a");
	item_remove("b");
	EXPECT_EQ(0, module_unload("blknull"));
}

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
	/* Good in themselves, but not with the rest. */
	static const char *const unfit[] = {
		"mode=bio submit_queues=2", "mode=bio completion=timer",
		"fua=1", "fail_every=2", "faults=1 requeue_every=2",
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

/* Each refusal says what would be right. */
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

/* With bypass, nothing is stored or returned; what was stored is there again later. */
TEST_F_TIMEOUT(item, bypass, TIMEOUT)
{
	unsigned char *buf = aligned_alloc(4096, 4096);
	struct iovec iov = { .iov_base = buf, .iov_len = 4096 };
	int log = log_begin(), fd;

	ASSERT_LE(0, log);
	ASSERT_EQ(0, item_make("a"));
	ASSERT_EQ(0, item_configure("a", "bypass=1"));
	EXPECT_EQ(-EINVAL, item_set("a", "power", "1"));
	EXPECT_TRUE(log_has(log, "bypass needs memory_backed=1"));
	ASSERT_EQ(0, item_configure("a", "memory_backed=1 mode=mq"));
	EXPECT_EQ(-EINVAL, item_set("a", "power", "1"));
	EXPECT_TRUE(log_has(log, "bypass needs mode=bio"));
	ASSERT_EQ(0, item_configure("a", "mode=bio"));
	ASSERT_EQ(0, item_set("a", "power", "1"));
	ASSERT_EQ(0, item_set("a", "bypass", "0"));
	fd = open(item_disk("a"), O_RDWR | O_DIRECT | O_CLOEXEC);
	ASSERT_LE(0, fd);
	memset(buf, 0x11, 4096);
	EXPECT_EQ(-1, pwritev2(fd, &iov, 1, 0, RWF_NOWAIT));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_EQ(4096, pwrite(fd, buf, 4096, 0));

	ASSERT_EQ(0, item_set("a", "bypass", "1"));
	memset(buf, 0x22, 4096);
	EXPECT_EQ(4096, pwritev2(fd, &iov, 1, 0, RWF_NOWAIT));
	EXPECT_EQ(4096, pread(fd, buf, 4096, 0));
	EXPECT_EQ(0x22, buf[0]);

	ASSERT_EQ(0, item_set("a", "bypass", "0"));
	EXPECT_EQ(4096, pread(fd, buf, 4096, 0));
	EXPECT_EQ(0x11, buf[0]);
	EXPECT_EQ(0x11, buf[4095]);
	close(fd);
	free(buf);
	ASSERT_EQ(0, item_remove("a"));
	close(log);
}

/* Attributes changed while power is on are checked against the others. */
TEST_F_TIMEOUT(item, live_values, TIMEOUT)
{
	int log = log_begin();

	ASSERT_LE(0, log);
	ASSERT_EQ(0, item_on("a", "mode=bio faults=1"));
	EXPECT_EQ(-EINVAL, item_set("a", "requeue_every", "2"));
	EXPECT_EQ(-EINVAL, item_set("a", "timeout_every", "2"));
	EXPECT_TRUE(log_has(log, "needs mode=mq"));
	EXPECT_STREQ("0", item_get("a", "requeue_every"));
	EXPECT_STREQ("0", item_get("a", "timeout_every"));
	EXPECT_EQ(0, item_set("a", "fail_every", "2"));
	EXPECT_STREQ("2", item_get("a", "fail_every"));
	/* What it is like when the power is off. */
	EXPECT_EQ(0, item_set("a", "power", "0"));
	EXPECT_STREQ("2", item_get("a", "fail_every"));
	EXPECT_STREQ("0", item_get("a", "requeue_every"));
	EXPECT_EQ(0, item_set("a", "power", "1"));
	close(log);
}

/* Who claims not to wait: see blknull.rst. */
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
	EXPECT_LT(30, i);
}

TEST_F_TIMEOUT(item, shared_tags, TIMEOUT)
{
	ASSERT_EQ(0, item_on("a", "mode=mq shared_tags=1 hw_queue_depth=4"));
	ASSERT_EQ(0, item_make("b"));
	ASSERT_EQ(0, item_configure("b", "mode=mq shared_tags=1"));
	EXPECT_EQ(-EINVAL, item_set("b", "power", "1"));
	ASSERT_EQ(0, item_set("b", "hw_queue_depth", "4"));
	EXPECT_EQ(0, item_set("b", "power", "1"));
	EXPECT_EQ(0, item_set("a", "power", "0"));
	EXPECT_EQ(0, item_set("a", "power", "1"));
}

/* One I/O at the beginning of the device: bytes or a negative errno. */
static ssize_t transfer(int fd, bool write, void *buf, size_t len)
{
	ssize_t done = write ? pwrite(fd, buf, len, 0) : pread(fd, buf, len, 0);

	return done < 0 ? -errno : done;
}

/*
 * Memory that ends within a block: biogen does what O_DIRECT does, but whole
 * blocks only, as a device can.
 */
TEST_F_TIMEOUT(item, part_of_a_block, TIMEOUT)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	const size_t starts[] = { 512, 1024, page - 512, page };
	const size_t lengths[] = { page, 2 * page, 3 * page, 4 * page };
	unsigned char *p[2];
	int direct, biogen, s, l, write;

	ASSERT_EQ(0, item_on("a", "block_size=4096 dma_alignment=512"
			     " memory_backed=1 size_mb=16"));
	direct = open(item_disk("a"), O_RDWR | O_DIRECT | O_CLOEXEC);
	ASSERT_LE(0, direct);
	for (s = 0; s < 2; s++) {
		p[s] = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, p[s]);
		memset(p[s], 7, 3 * page);
		ASSERT_EQ(0, mprotect(p[s] + 3 * page, page, PROT_NONE));
	}
	if (transfer(direct, true, p[0] + 512, 4096) == -EINVAL) {
		close(direct);
		SKIP(return, "memory is aligned to blocks");
	}
	ASSERT_EQ(0, biogen_load(item_disk("a"), "write=1"));
	biogen = open(BIOGEN, O_RDWR | O_DIRECT | O_CLOEXEC);
	ASSERT_LE(0, biogen);
	for (s = 0; s < ARRAY_SIZE(starts); s++) {
		for (l = 0; l < ARRAY_SIZE(lengths); l++) {
			for (write = 1; write >= 0; write--) {
				ssize_t want, got;

				memset(p[0], write ? 7 : 9, 3 * page);
				memset(p[1], write ? 7 : 9, 3 * page);
				want = transfer(direct, write, p[1] + starts[s],
						lengths[l]);
				got = transfer(biogen, write, p[0] + starts[s],
					       lengths[l]);
				EXPECT_EQ(want < 0 ? want : want & -4096, got) {
					TH_LOG("%d at %zu, %zu bytes", write,
					       starts[s], lengths[l]);
				}
				if (!write && got > 0)
					EXPECT_EQ(0, memcmp(p[0] + starts[s],
							    p[1] + starts[s],
							    got));
			}
		}
	}
	close(biogen);
	close(direct);
	EXPECT_EQ(0, biogen_unload());
}

/*
 * io_uring asks for I/O without waiting first. Of what the block layer splits,
 * the parts could not all be sent, there being one tag: so none is.
 */
TEST_F_TIMEOUT(item, parts_without_waiting, TIMEOUT)
{
	struct iovec iov[16];
	struct op op = { .iov = iov, .nr = ARRAY_SIZE(iov) };
	struct engine engine;
	unsigned char *p;
	int i;

	ASSERT_EQ(0, item_on("a", "mode=mq completion=timer hw_queue_depth=1"
			     " max_segments=4"));
	ASSERT_EQ(0, biogen_load(item_disk("a"), ""));
	op.fd = open(BIOGEN, O_RDONLY | O_DIRECT | O_CLOEXEC);
	ASSERT_LE(0, op.fd);
	p = aligned_alloc(4096, 2 * 4096 * ARRAY_SIZE(iov));
	memset(p, 7, 2 * 4096 * ARRAY_SIZE(iov));
	/* Pages that are not beside each other. */
	for (i = 0; i < ARRAY_SIZE(iov); i++) {
		iov[i].iov_base = p + 8192 * i;
		iov[i].iov_len = 4096;
	}
	ASSERT_EQ(0, engine_init(&engine, ENGINE_URING, NULL, 0));
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(0, engine_run(&engine, &op, 1));
		EXPECT_EQ(4096 * ARRAY_SIZE(iov), op.result);
	}
	engine_exit(&engine);
	close(op.fd);
	free(p);
	EXPECT_EQ(0, biogen_unload());
}

struct reader {
	void *buf;
	ssize_t got;
};

static void *read_biogen(void *arg)
{
	int fd = open(BIOGEN, O_RDONLY | O_DIRECT | O_CLOEXEC);
	struct reader *reader = arg;

	reader->got = pread(fd, reader->buf, 4096, 0);
	close(fd);
	return NULL;
}

/*
 * biogen reads into a page of the page cache that is written back meanwhile: it
 * is dirty again once the data are there.
 */
TEST_F_TIMEOUT(item, dirties, TIMEOUT)
{
	const uint64_t delay_ns = 1000000000;
	struct reader reader;
	unsigned char *map;
	pthread_t thread;
	long written, delayed;
	uint64_t begin;
	bool late;
	int file;

	ASSERT_EQ(0, item_on("a", "memory_backed=1 faults=1"
			     " delay_nsec=1000000000 delay_every=1"));
	ASSERT_EQ(0, biogen_load(item_disk("a"), ""));
	ASSERT_EQ(0, item_on("b", "stats=1"));
	file = open(item_disk("b"), O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, file);
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	ASSERT_NE(MAP_FAILED, map);

	do {
		memset(map, 7, 4096);
		ASSERT_EQ(0, fsync(file));
		delayed = item_counter("a", "delayed");
		reader.buf = map;
		begin = now_ns();
		ASSERT_EQ(0, pthread_create(&thread, NULL, read_biogen,
					    &reader));
		while (item_counter("a", "delayed") == delayed)
			usleep(1000);
		ASSERT_EQ(0, fsync(file));
		written = item_counter("b", "writes");
		EXPECT_LT(0, written);
		/* Was that before the data came? If not, once more. */
		late = now_ns() - begin >= delay_ns;
		pthread_join(thread, NULL);
		ASSERT_EQ(4096, reader.got);
		EXPECT_TRUE(all(map, 4096, 0));
		ASSERT_EQ(0, fsync(file));
	} while (late);
	EXPECT_LT(written, item_counter("b", "writes"));
	munmap(map, 4096);
	close(file);
	EXPECT_EQ(0, biogen_unload());
}

static int manage(int fd, unsigned long cmd, unsigned int zone)
{
	struct blk_zone_range range = {
		.sector = zone * 2048,
		.nr_sectors = 2048,
	};

	return ioctl(fd, cmd, &range) ? -errno : 0;
}

/* The condition and the sectors written of a zone. */
static int zone_state(int fd, unsigned int zone, unsigned int *written)
{
	struct {
		struct blk_zone_report head;
		struct blk_zone zone[1];
	} report = { .head = { .sector = zone * 2048, .nr_zones = 1 } };

	if (ioctl(fd, BLKREPORTZONE, &report) || report.head.nr_zones != 1)
		return -1;
	*written = report.zone[0].wp - report.zone[0].start;
	return report.zone[0].cond;
}

/* Zones of a MiB, 16 of them, the first conventional, half to be written. */
TEST_F_TIMEOUT(item, zones, TIMEOUT)
{
	struct blk_zone_range whole = { .nr_sectors = 16 * 2048 };
	int log = log_begin(), err, fd, i;
	unsigned char *buf, *back;
	unsigned int written;

	ASSERT_LE(0, log);
	buf = aligned_alloc(4096, MIB);
	back = aligned_alloc(4096, MIB);
	memset(buf, 7, MIB);
	err = item_on("a", "mode=mq size_mb=16 zoned=1 zone_size_mb=1"
		      " zone_nr_conv=1 memory_backed=1 zone_max_open=2"
		      " zone_max_active=3");
	if (err) {
		EXPECT_EQ(-EINVAL, err);
		EXPECT_TRUE(log_has(log, "zoned=1 is not supported"));
		return;
	}
	fd = open(item_disk("a"), O_RDWR | O_DIRECT | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(BLK_ZONE_COND_NOT_WP, zone_state(fd, 0, &written));
	EXPECT_EQ(4096, pwrite(fd, buf, 4096, 65536));

	/* In sequence, and nowhere else. */
	EXPECT_EQ(BLK_ZONE_COND_EMPTY, zone_state(fd, 1, &written));
	EXPECT_EQ(-1, pwrite(fd, buf, 4096, MIB + 4096));
	/* The block layer wants to be told again where to write. */
	EXPECT_EQ(BLK_ZONE_COND_EMPTY, zone_state(fd, 1, &written));
	EXPECT_EQ(4096, pwrite(fd, buf, 4096, MIB));
	EXPECT_EQ(-1, pwrite(fd, buf, 4096, MIB));
	EXPECT_EQ(BLK_ZONE_COND_IMP_OPEN, zone_state(fd, 1, &written));
	EXPECT_EQ(8, written);
	EXPECT_EQ(MIB, pread(fd, back, MIB, MIB));
	EXPECT_TRUE(all(back, 4096, 7) && all(back + 4096, MIB - 4096, 0));
	EXPECT_EQ(0, manage(fd, BLKCLOSEZONE, 1));
	EXPECT_EQ(BLK_ZONE_COND_CLOSED, zone_state(fd, 1, &written));
	EXPECT_EQ(0, manage(fd, BLKRESETZONE, 1));
	EXPECT_EQ(BLK_ZONE_COND_EMPTY, zone_state(fd, 1, &written));
	EXPECT_EQ(MIB, pread(fd, back, MIB, MIB));
	EXPECT_TRUE(all(back, MIB, 0));
	EXPECT_EQ(MIB, pwrite(fd, buf, MIB, MIB));
	EXPECT_EQ(BLK_ZONE_COND_FULL, zone_state(fd, 1, &written));
	EXPECT_EQ(0, manage(fd, BLKFINISHZONE, 2));
	EXPECT_EQ(BLK_ZONE_COND_FULL, zone_state(fd, 2, &written));

	/* Two open, three active. */
	for (i = 3; i < 6; i++)
		EXPECT_EQ(4096, pwrite(fd, buf, 4096, i * MIB));
	EXPECT_EQ(-1, pwrite(fd, buf, 4096, 6 * MIB));
	EXPECT_EQ(BLK_ZONE_COND_CLOSED, zone_state(fd, 3, &written));
	EXPECT_EQ(0, manage(fd, BLKOPENZONE, 4));
	EXPECT_EQ(0, manage(fd, BLKOPENZONE, 5));
	EXPECT_NE(0, manage(fd, BLKOPENZONE, 3));
	EXPECT_EQ(0, manage(fd, BLKRESETZONE, 4));
	EXPECT_EQ(0, manage(fd, BLKOPENZONE, 3));
	EXPECT_EQ(BLK_ZONE_COND_EXP_OPEN, zone_state(fd, 3, &written));

	/* Reset all zones; conventional zones keep their data. */
	EXPECT_EQ(0, ioctl(fd, BLKRESETZONE, &whole));
	for (i = 1; i < 16; i++)
		EXPECT_EQ(BLK_ZONE_COND_EMPTY, zone_state(fd, i, &written));
	EXPECT_EQ(MIB, pread(fd, back, MIB, 3 * MIB));
	EXPECT_TRUE(all(back, MIB, 0));
	EXPECT_EQ(4096, pread(fd, back, 4096, 65536));
	EXPECT_TRUE(all(back, 4096, 7));
	close(fd);
	close(log);

	ASSERT_EQ(0, item_set("a", "power", "0"));
	ASSERT_EQ(0, item_set("a", "zone_nr_conv", "16"));
	EXPECT_EQ(-EINVAL, item_set("a", "power", "1"));
	ASSERT_EQ(0, item_configure("a", "zone_nr_conv=0 discard=1"));
	EXPECT_EQ(-EINVAL, item_set("a", "power", "1"));
	free(buf);
	free(back);
}

struct zone_writer {
	pthread_barrier_t barrier;
	unsigned char *buf;
	int fd;
};

#define ZONE_RACES	1000

/* Write to the start of zone 1 after each reset by the other thread. */
static void *write_zone(void *arg)
{
	struct zone_writer *writer = arg;
	int i;

	for (i = 0; i < ZONE_RACES; i++) {
		pthread_barrier_wait(&writer->barrier);
		pwrite(writer->fd, writer->buf, 65536, MIB);
		pthread_barrier_wait(&writer->barrier);
	}
	return NULL;
}

/* An empty zone has no data, even if a reset ran beside a write. */
TEST_F_TIMEOUT(item, reset_while_writing, TIMEOUT)
{
	int log = log_begin(), err, i, empty = 0, kept = 0;
	struct zone_writer writer;
	unsigned int written;
	unsigned char *back;
	pthread_t thread;

	ASSERT_LE(0, log);
	err = item_on("a", "mode=mq size_mb=16 zoned=1 zone_size_mb=1"
		      " memory_backed=1");
	if (err) {
		EXPECT_EQ(-EINVAL, err);
		EXPECT_TRUE(log_has(log, "zoned=1 is not supported"));
		return;
	}
	writer.fd = open(item_disk("a"), O_RDWR | O_DIRECT | O_CLOEXEC);
	ASSERT_LE(0, writer.fd);
	writer.buf = aligned_alloc(4096, 65536);
	back = aligned_alloc(4096, 65536);
	memset(writer.buf, 7, 65536);
	ASSERT_EQ(0, pthread_barrier_init(&writer.barrier, NULL, 2));
	ASSERT_EQ(0, pthread_create(&thread, NULL, write_zone, &writer));
	for (i = 0; i < ZONE_RACES; i++) {
		pthread_barrier_wait(&writer.barrier);
		EXPECT_EQ(0, manage(writer.fd, BLKRESETZONE, 1));
		pthread_barrier_wait(&writer.barrier);
		if (zone_state(writer.fd, 1, &written) == BLK_ZONE_COND_EMPTY) {
			empty++;
			EXPECT_EQ(65536, pread(writer.fd, back, 65536, MIB));
			kept += !all(back, 65536, 0);
		}
		EXPECT_EQ(0, manage(writer.fd, BLKRESETZONE, 1));
		zone_state(writer.fd, 1, &written);
	}
	pthread_join(thread, NULL);
	TH_LOG("%d of %d ended with an empty zone", empty, ZONE_RACES);
	EXPECT_EQ(0, kept);
	close(writer.fd);
	close(log);
	free(writer.buf);
	free(back);
}

struct reporter {
	struct blk_zone_report *report;
	int fd;
	int ret;
};

static void *report_zones(void *arg)
{
	struct reporter *reporter = arg;

	reporter->ret = ioctl(reporter->fd, BLKREPORTZONE, reporter->report) ?
			-errno : 0;
	return NULL;
}

/*
 * A device goes while its zones are reported: what the report looks at stays.
 * The report waits for a page of its buffer, which is a page of another device
 * that takes long to read.
 */
TEST_F_TIMEOUT(item, removed_while_reporting, TIMEOUT)
{
	const unsigned int nr = 64, first = 8;
	const size_t page = sysconf(_SC_PAGESIZE);
	int log = log_begin(), err, slow, i;
	struct reporter reporter;
	pthread_t thread;
	long delayed;
	char *place;

	ASSERT_LE(0, log);
	err = item_on("a", "mode=mq size_mb=64 zoned=1 zone_size_mb=1");
	if (err) {
		EXPECT_EQ(-EINVAL, err);
		EXPECT_TRUE(log_has(log, "zoned=1 is not supported"));
		return;
	}
	ASSERT_EQ(0, item_on("b", "faults=1 delay_every=1"
			     " delay_nsec=1000000000"));
	reporter.fd = open(item_disk("a"), O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, reporter.fd);
	slow = open(item_disk("b"), O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, slow);
	place = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, place);
	ASSERT_NE(MAP_FAILED, mmap(place + page, page, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_FIXED, slow, 0));
	/* The head and some zones are on the page before. */
	reporter.report = (void *)(place + page - first * sizeof(struct blk_zone) -
				   sizeof(*reporter.report));
	reporter.report->nr_zones = nr;
	delayed = item_counter("b", "delayed");
	ASSERT_EQ(0, pthread_create(&thread, NULL, report_zones, &reporter));
	while (item_counter("b", "delayed") == delayed)
		usleep(1000);
	EXPECT_EQ(0, item_set("a", "power", "0"));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, reporter.ret);
	EXPECT_EQ(nr, reporter.report->nr_zones);
	for (i = 0; i < nr; i++) {
		EXPECT_EQ(i * 2048, reporter.report->zones[i].start);
		EXPECT_EQ(BLK_ZONE_COND_EMPTY, reporter.report->zones[i].cond);
	}
	/* There is another one by the time that this one is closed. */
	EXPECT_EQ(0, item_set("a", "power", "1"));
	munmap(place, 2 * page);
	close(reporter.fd);
	close(slow);
	close(log);
}

/* As many zones as there may be, and one more. */
TEST_F_TIMEOUT(item, most_zones, TIMEOUT)
{
	struct blk_zone_range whole = { .nr_sectors = 1048576 * 2048ULL };
	int log = log_begin(), err, fd;
	unsigned int written;
	void *buf = aligned_alloc(4096, 4096);

	ASSERT_LE(0, log);
	ASSERT_EQ(0, item_make("a"));
	ASSERT_EQ(0, item_configure("a", "mode=mq zoned=1 zone_size_mb=1"
				    " zone_max_open=1 size_mb=1048577"));
	EXPECT_EQ(-EINVAL, item_set("a", "power", "1"));
	if (log_has(log, "zoned=1 is not supported"))
		return;
	ASSERT_EQ(0, item_set("a", "size_mb", "8796093022207"));
	EXPECT_EQ(-EINVAL, item_set("a", "power", "1"));
	ASSERT_EQ(0, item_set("a", "size_mb", "1048576"));
	err = item_set("a", "power", "1");
	ASSERT_EQ(0, err);
	fd = open(item_disk("a"), O_RDWR | O_DIRECT | O_CLOEXEC);
	ASSERT_LE(0, fd);
	memset(buf, 7, 4096);
	EXPECT_EQ(4096, pwrite(fd, buf, 4096, 1048575 * MIB));
	EXPECT_EQ(4096, pwrite(fd, buf, 4096, 1048574 * MIB));
	EXPECT_EQ(BLK_ZONE_COND_CLOSED, zone_state(fd, 1048575, &written));
	EXPECT_EQ(0, ioctl(fd, BLKRESETZONE, &whole));
	EXPECT_EQ(BLK_ZONE_COND_EMPTY, zone_state(fd, 1048575, &written));
	EXPECT_EQ(BLK_ZONE_COND_EMPTY, zone_state(fd, 1048574, &written));
	close(fd);
	close(log);
	free(buf);
}

/* Parameters are lists, and what configfs starts from. */
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
