// SPDX-License-Identifier: GPL-2.0
/* What blknull's devices return: the data that was written, or zeroes. */
#include <linux/fs.h>
#include <sys/ioctl.h>

#include "device_fixture.h"
#include "item_fixture.h"

/* Written data are read back; discarded and zeroed ranges read as zeroes. */
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

/* Without data, the page cache gets zeroes and never old content. */
TEST_F_TIMEOUT(device, zeroes, TIMEOUT)
{
	unsigned char *map, *dirt;
	int i;

	self->fd = turn_on(variant->mode, "", 0);
	ASSERT_LE(0, self->fd);
	for (i = 0; i < 2; i++) {
		/* Free pages are full of data that must not be seen. */
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

TEST_HARNESS_MAIN
