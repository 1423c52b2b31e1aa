// SPDX-License-Identifier: GPL-2.0
/*
 * biogen on devices whose limits change the path of a request: the block layer
 * splits the bio, segments are shorter than a block, a bio cannot be submitted
 * without waiting. O_DIRECT on the same device is the reference.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include "engine.h"
#include "util.h"

#define BLKNULL		"/dev/blknull0"
#define SIZE_MIB	8
#define DISK_SIZE	(SIZE_MIB * MIB)
#define AREA		(4 * MIB)

FIXTURE(limits) {
	struct engine engine;
	unsigned char *data;
	unsigned char *seen;
	struct rng rng;
	size_t page;
	int direct;
	int fd;
};

FIXTURE_SETUP(limits)
{
	memset(&self->engine, 0, sizeof(self->engine));
	self->engine.ring.fd = -1;
	self->direct = -1;
	self->fd = -1;
	rng_init(&self->rng, 0);
	self->page = sysconf(_SC_PAGESIZE);
	self->data = aligned_alloc(self->page, AREA);
	self->seen = aligned_alloc(self->page, AREA);
	ASSERT_TRUE(self->data && self->seen);
	rng_fill(&self->rng, self->data, AREA);
	memset(self->seen, 0, AREA);
	ASSERT_EQ(0, biogen_unload());
}

FIXTURE_TEARDOWN(limits)
{
	int err;

	engine_exit(&self->engine);
	if (self->fd >= 0)
		close(self->fd);
	if (self->direct >= 0)
		close(self->direct);
	EXPECT_EQ(0, biogen_unload());
	EXPECT_EQ(0, disks_destroy());
	err = module_unload("blknull");
	EXPECT_TRUE(!err || err == -ENOENT);
}

/* Open @path directly and through biogen. */
static int open_both(struct _test_data_limits *self, const char *path)
{
	int err = biogen_load(path, "write=1");

	if (err)
		return err;
	self->direct = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
	self->fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
	return self->direct < 0 || self->fd < 0 ? -errno : 0;
}

static int blknull_open(struct _test_data_limits *self, const char *params)
{
	char text[256];
	int err;

	snprintf(text, sizeof(text), "memory_backed=1 size_mb=%d %s", SIZE_MIB,
		 params);
	err = module_load("blknull", text);
	return err ?: open_both(self, BLKNULL);
}

static int blknull_close(struct _test_data_limits *self)
{
	close(self->fd);
	close(self->direct);
	self->fd = -1;
	self->direct = -1;
	return biogen_unload() ?: module_unload("blknull");
}

/* Requests that the disk has done: 0 for reads, 4 for writes. */
static long requests(int field)
{
	char text[256], *at = text;
	long value = -1;

	if (read_text("/sys/block/blknull0/stat", text, sizeof(text)))
		return -1;
	for (; field >= 0; field--)
		value = strtol(at, &at, 10);
	return value;
}

/*
 * Memory of 65,537 pages that takes only 256: it maps the same pages again and
 * again. NULL if there is no room for it.
 */
static unsigned char *map_many(size_t page, size_t *size)
{
	size_t part = 256 * page, at;
	unsigned char *p;
	int fd;

	*size = 256 * part + page;
	fd = memfd_create("many", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, part))
		return NULL;
	p = mmap(NULL, *size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (at = 0; p != MAP_FAILED && at < *size; at += part)
		if (mmap(p + at, at + part < *size ? part : page,
			 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			 0) == MAP_FAILED)
			p = MAP_FAILED;
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

/*
 * A request at the beginning of a registered buffer of 65,537 pages: the kernel
 * reports that so many segments are left, a number that does not fit 16 bits.
 * The device gets the request in as many parts as its limit demands.
 */
TEST_F_TIMEOUT(limits, many_segments, TIMEOUT)
{
	const size_t len = 16 * self->page, part = 2 * self->page;
	const size_t starts[] = { 0, self->page / 2, self->page };
	struct iovec buffer, iov;
	struct op op = { .iov = &iov, .nr = 1 };
	char params[128];
	long before;
	size_t i;

	buffer.iov_base = map_many(self->page, &buffer.iov_len);
	ASSERT_NE(NULL, buffer.iov_base);
	/* Larger ones cannot be registered. */
	if (buffer.iov_len > 1024 * MIB)
		buffer.iov_len = 1024 * MIB;
	snprintf(params, sizeof(params), "mode=mq iostats=1 max_sectors=%zu",
		 part / 512);
	ASSERT_EQ(0, blknull_open(self, params));
	ASSERT_EQ(0, engine_init(&self->engine, ENGINE_FIXED, &buffer, 1));
	op.fd = self->fd;
	iov.iov_len = len;
	for (i = 0; i < ARRAY_SIZE(starts); i++) {
		iov.iov_base = buffer.iov_base + starts[i];
		rng_fill(&self->rng, self->data, len);
		memcpy(iov.iov_base, self->data, len);
		op.write = true;
		before = requests(4);
		ASSERT_EQ(0, engine_run(&self->engine, &op, 1));
		ASSERT_EQ(len, op.result);
		EXPECT_LE(before + len / part, requests(4));
		ASSERT_EQ(len, pread(self->direct, self->seen, len, 0));
		EXPECT_EQ(0, memcmp(self->data, self->seen, len));

		memset(iov.iov_base, 0, len);
		op.write = false;
		before = requests(0);
		ASSERT_EQ(0, engine_run(&self->engine, &op, 1));
		ASSERT_EQ(len, op.result);
		EXPECT_LE(before + len / part, requests(0));
		EXPECT_EQ(0, memcmp(self->data, iov.iov_base, len));
	}
	munmap(buffer.iov_base, buffer.iov_len);
}

/* Split @len into segments of these lengths, over and over. */
static int segments(struct iovec *iov, unsigned char *base, size_t len,
		    const size_t lengths[4])
{
	size_t at = 0, part;
	int nr = 0;

	for (; at < len; nr++) {
		part = lengths[nr % 4];
		if (part > len - at)
			part = len - at;
		/* With gaps between them. */
		iov[nr].iov_base = base + at + nr * 512;
		iov[nr].iov_len = part;
		at += part;
	}
	return nr;
}

/* Copy the segments to @to, or from it. */
static void copy_segments(const struct iovec *iov, int nr, unsigned char *mem,
			  bool to_mem)
{
	for (; nr; nr--, mem += iov->iov_len, iov++) {
		if (to_mem)
			memcpy(mem, iov->iov_base, iov->iov_len);
		else
			memcpy(iov->iov_base, mem, iov->iov_len);
	}
}

/*
 * Segments that are not whole blocks in a request that is: the results are
 * those of O_DIRECT on the same kernel.
 */
TEST_F_TIMEOUT(limits, short_segments, TIMEOUT)
{
	static const char *const modes[] = {
		"mode=bio block_size=4096 dma_alignment=512",
		"mode=mq block_size=4096 dma_alignment=512",
		"mode=mq block_size=4096 dma_alignment=512 max_segments=16",
	};
	static const size_t lengths[][4] = {
		{ 4096, 4096, 4096, 4096 }, { 512, 3584, 512, 3584 },
		{ 4096, 512, 512, 3072 }, { 1536, 6656, 1024, 3072 },
		{ 512, 512, 512, 512 },
	};
	static const size_t sizes[] = {
		512, 4096, 8192, 32 * KIB, 256 * KIB, 512 * KIB,
	};
	static const enum engine_kind kinds[] = {
		ENGINE_VECTOR, ENGINE_AIO, ENGINE_URING,
	};
	static struct iovec iov[1000];
	struct op op = { .iov = iov };
	int m, l, s, k, write;

	for (m = 0; m < ARRAY_SIZE(modes); m++) {
		ASSERT_EQ(0, blknull_open(self, modes[m]));
		for (k = 0; k < ARRAY_SIZE(kinds); k++) {
			ASSERT_EQ(0, engine_init(&self->engine, kinds[k], NULL,
						 0));
			for (l = 0; l < ARRAY_SIZE(lengths); l++) {
				for (s = 0; s < 2 * ARRAY_SIZE(sizes); s++) {
					size_t size = sizes[s / 2];
					long direct;

					write = s % 2;
					op.nr = segments(iov, self->seen, size,
							 lengths[l]);
					if (op.nr > 600)
						continue;
					rng_fill(&self->rng, self->data, size);
					copy_segments(iov, op.nr, self->data,
						      false);
					op.write = write;
					op.fd = self->direct;
					ASSERT_EQ(0, engine_run(&self->engine,
								&op, 1));
					direct = op.result;
					op.offset = MIB;
					op.fd = self->fd;
					ASSERT_EQ(0, engine_run(&self->engine,
								&op, 1));
					op.offset = 0;
					ASSERT_EQ(direct, op.result) {
						TH_LOG("%s, engine %d, %zu bytes of %zu, %zu: %ld",
						       modes[m], kinds[k], size,
						       lengths[l][0],
						       lengths[l][1], direct);
					}
					if (direct < 0 || !write)
						continue;
					memset(self->seen, 0, AREA);
					ASSERT_EQ(size, pread(self->direct,
							      self->seen, size,
							      MIB));
					ASSERT_EQ(0, memcmp(self->data,
							    self->seen, size));
					op.write = false;
					op.fd = self->fd;
					memset(self->seen, 0, AREA);
					ASSERT_EQ(0, engine_run(&self->engine,
								&op, 1));
					ASSERT_EQ(size, op.result);
					memset(self->seen + AREA / 2, 0, size);
					copy_segments(iov, op.nr,
						      self->seen + AREA / 2,
						      true);
					ASSERT_EQ(0, memcmp(self->data,
							    self->seen + AREA / 2,
							    size));
				}
			}
			engine_exit(&self->engine);
			memset(&self->engine, 0, sizeof(self->engine));
			self->engine.ring.fd = -1;
		}
		ASSERT_EQ(0, blknull_close(self));
	}
}

/*
 * Reads over the boundary of a zone, more than the device has requests: the
 * block layer splits each bio, so the second part may find no free request. A
 * program does not notice, for any length of the read.
 */
TEST_F_TIMEOUT(limits, zone_boundary, TIMEOUT)
{
	const struct disk disk = {
		.null_blk = true, .mib = SIZE_MIB, .block = 512, .zone_mib = 1,
		.delay_ns = 20000000,
	};
	static const size_t sizes[] = { 1024, 4096, 8192, 32 * KIB };
	static struct op op[ENGINE_DEPTH];
	static struct iovec iov[ENGINE_DEPTH];
	int s, i;

	ASSERT_EQ(0, disks_create(&disk, 1));
	ASSERT_EQ(0, disk_fill(&disk, 0, 0x5a));
	ASSERT_EQ(0, open_both(self, disk_path(&disk, 0)));
	ASSERT_EQ(0, engine_init(&self->engine, ENGINE_URING, NULL, 0));
	for (s = 0; s < ARRAY_SIZE(sizes); s++) {
		memset(self->seen, 0, AREA);
		for (i = 0; i < ENGINE_DEPTH; i++) {
			iov[i].iov_base = self->seen + i * 32 * KIB;
			iov[i].iov_len = sizes[s];
			/* It has one part, so an odd number is left. */
			op[i] = (struct op) {
				.fd = self->fd, .iov = &iov[i], .nr = 1,
				.offset = i ? (1 + i % 7) * MIB - 512 : 0,
			};
		}
		ASSERT_EQ(0, engine_run(&self->engine, op, ENGINE_DEPTH));
		for (i = 0; i < ENGINE_DEPTH; i++) {
			EXPECT_EQ(sizes[s], op[i].result);
			EXPECT_TRUE(all(iov[i].iov_base, sizes[s], 0x5a));
		}
	}
}

/* What a thread starts before it exits. */
struct flight {
	struct engine *engine;
	struct op *op;
	int err;
};

static void *start_and_exit(void *data)
{
	struct flight *flight = data;

	flight->err = engine_start(flight->engine, flight->op, ENGINE_DEPTH);
	return NULL;
}

/*
 * The thread that submits to io_uring exits before its requests have ended: all
 * are done, as on a block device, and none is cancelled.
 */
TEST_F_TIMEOUT(limits, thread_exit, TIMEOUT)
{
	static struct op op[ENGINE_DEPTH];
	static struct iovec iov[ENGINE_DEPTH];
	struct flight flight = { &self->engine, op };
	pthread_t thread;
	int round, i;

	ASSERT_EQ(0, blknull_open(self, "mode=bio"));
	ASSERT_EQ(0, engine_init(&self->engine, ENGINE_URING, NULL, 0));
	for (round = 0; round < 30; round++) {
		for (i = 0; i < ENGINE_DEPTH; i++) {
			/* One bio of one page, of a few, and several bios. */
			iov[i].iov_len = i % 3 ? i % 3 * 4 * KIB : 32 * KIB;
			iov[i].iov_base = self->data + i * 32 * KIB;
			op[i] = (struct op) {
				.fd = self->fd, .iov = &iov[i], .nr = 1,
				.write = i % 4, .offset = i * 64 * KIB,
			};
		}
		ASSERT_EQ(0, pthread_create(&thread, NULL, start_and_exit,
					    &flight));
		ASSERT_EQ(0, pthread_join(thread, NULL));
		ASSERT_EQ(0, flight.err);
		ASSERT_EQ(0, engine_finish(&self->engine, op, ENGINE_DEPTH));
		for (i = 0; i < ENGINE_DEPTH; i++) {
			ASSERT_EQ(iov[i].iov_len, op[i].result) {
				TH_LOG("round %d, request %d", round, i);
			}
		}
	}
}

/* An asynchronous transfer of libaio with RWF_NOWAIT. */
static long aio_nowait(int fd, void *buf, bool write)
{
	struct iocb iocb = {
		.aio_fildes	= fd,
		.aio_lio_opcode	= write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD,
		.aio_buf	= (unsigned long)buf,
		.aio_nbytes	= 4096,
		.aio_rw_flags	= RWF_NOWAIT,
	};
	struct iocb *list = &iocb;
	struct io_event event = { .res = -EIO };
	aio_context_t aio = 0;

	if (syscall(SYS_io_setup, 1, &aio))
		return -errno;
	if (syscall(SYS_io_submit, aio, 1, &list) != 1)
		event.res = -errno;
	else if (syscall(SYS_io_getevents, aio, 1, 1, &event, NULL) != 1)
		event.res = -EIO;
	syscall(SYS_io_destroy, aio);
	return event.res;
}

/*
 * A program that asks not to wait gets an error if the device always may wait:
 * the results are those of O_DIRECT.
 */
TEST_F_TIMEOUT(limits, nowait, TIMEOUT)
{
	static const char *const modes[] = { "mode=bio", "mode=mq" };
	struct iovec iov = { self->data, 4096 };
	long want, got;
	int m, write;

	for (m = 0; m < ARRAY_SIZE(modes); m++) {
		ASSERT_EQ(0, blknull_open(self, modes[m]));
		for (write = 0; write < 2; write++) {
			want = write ? pwritev2(self->direct, &iov, 1, 0,
						RWF_NOWAIT) :
				       preadv2(self->direct, &iov, 1, 0,
					       RWF_NOWAIT);
			want = want < 0 ? -errno : want;
			got = write ? pwritev2(self->fd, &iov, 1, 0,
					       RWF_NOWAIT) :
				      preadv2(self->fd, &iov, 1, 0, RWF_NOWAIT);
			got = got < 0 ? -errno : got;
			EXPECT_EQ(want, got);
			EXPECT_EQ(m ? 4096 : -EOPNOTSUPP, got);
			EXPECT_EQ(aio_nowait(self->direct, self->data, write),
				  aio_nowait(self->fd, self->data, write));
		}
		ASSERT_EQ(0, blknull_close(self));
	}
}

TEST_HARNESS_MAIN
