// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is registered with an open file of biogen: what is read and
 * written, what ends a registration, which process has one, and what is
 * refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include <uapi/biogen.h>

#include "engine.h"
#include "util.h"

#define DISK_MIB	8
#define DISK_SIZE	(DISK_MIB * MIB)
#define ARENA		(2 * MIB)
#define HUGE		(2 * MIB)
#define THP		"/sys/kernel/mm/transparent_hugepage/enabled"
#define FIXED		((void *)0x600000000000)

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static const struct disk brd = { .mib = DISK_MIB, .block = 512 };
/* An I/O takes 20 ms. */
static const struct disk slow = {
	.null_blk = true, .mib = DISK_MIB, .block = 512, .delay_ns = 20000000
};

static int reg_ioctl(int fd, unsigned long cmd, void *addr, uint64_t length,
		     uint32_t *segments)
{
	struct biogen_register range = {
		.addr = (uintptr_t)addr, .length = length
	};

	if (ioctl(fd, cmd, &range))
		return -errno;
	if (segments)
		*segments = range.segments;
	return 0;
}

static int reg(int fd, void *addr, uint64_t length)
{
	return reg_ioctl(fd, BIOGEN_REGISTER, addr, length, NULL);
}

static int unreg(int fd, void *addr, uint64_t length)
{
	return reg_ioctl(fd, BIOGEN_UNREGISTER, addr, length, NULL);
}

/* Small pages, so that no change of a neighbour splits a huge one. */
static unsigned char *map(size_t size, int flags, int fd)
{
	unsigned char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd,
				0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, size, MADV_NOHUGEPAGE);
	return p;
}

static unsigned char *anon(size_t size)
{
	return map(size, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static int load(const struct disk *disk)
{
	int err = disks_create(disk, 2);

	return err ? err : biogen_load(disk_path(disk, 0), "write=1");
}

static int unload(void)
{
	int err = biogen_unload();

	return err ? err : disks_destroy();
}

/* Byte @i of the disk, as stamp() writes it. */
static unsigned char stamped(off_t i)
{
	return (i >> 9) * 7 + i + 1;
}

FIXTURE(reg) {
	size_t page;
	int fd;
	int plain;		/* the same without registrations */
	unsigned char *arena;
	unsigned char *expected;
};

FIXTURE_SETUP(reg)
{
	off_t i;

	self->page = sysconf(_SC_PAGESIZE);
	ASSERT_EQ(0, biogen_unload());
	ASSERT_EQ(0, load(&brd));
	self->fd = open(BIOGEN, O_RDWR);
	self->plain = open(BIOGEN, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	ASSERT_LE(0, self->plain);
	self->arena = anon(ARENA);
	self->expected = anon(DISK_SIZE);
	ASSERT_NE(NULL, self->arena);
	ASSERT_NE(NULL, self->expected);
	for (i = 0; i < DISK_SIZE; i++)
		self->expected[i] = stamped(i);
	ASSERT_EQ(DISK_SIZE, pwrite(self->plain, self->expected, DISK_SIZE, 0));
}

FIXTURE_TEARDOWN(reg)
{
	close(self->fd);
	close(self->plain);
	EXPECT_EQ(0, unload());
}

/* Continue with another disk, through one open file. */
static void use(struct __test_metadata *_metadata, struct _test_data_reg *self,
		const struct disk *disk)
{
	close(self->fd);
	close(self->plain);
	ASSERT_EQ(0, unload());
	ASSERT_EQ(0, load(disk));
	self->fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
	self->plain = open(BIOGEN, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	ASSERT_LE(0, self->plain);
}

/* Whether a read through @fd into @p returns the disk's data. */
static bool reads(int fd, unsigned char *p, size_t size, off_t offset)
{
	size_t i;

	memset(p, 0, size);
	if (pread(fd, p, size, offset) != (ssize_t)size)
		return false;
	for (i = 0; i < size; i++)
		if (p[i] != stamped(offset + i))
			return false;
	return true;
}

/* All sizes, by all kinds of system calls, in each kind of memory. */
static void transfer(struct __test_metadata *_metadata,
		     struct _test_data_reg *self, unsigned char *memory,
		     enum engine_kind kind)
{
	static const size_t sizes[] = {
		512, 4 * KIB, 12 * KIB, 64 * KIB, MIB, ARENA - 64 * KIB
	};
	struct iovec whole = { .iov_base = memory, .iov_len = ARENA };
	unsigned char *seen = self->expected + 4 * MIB;
	struct engine engine;
	struct rng rng;
	size_t i;
	int round;

	rng_init(&rng, kind);
	ASSERT_EQ(0, engine_init(&engine, kind, &whole, 1));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (round = 0; round < 4; round++) {
			/* Aligned for each kernel, but not to pages. */
			size_t at = rng_below(&rng, ARENA - sizes[i]) & ~511;
			off_t pos = rng_below(&rng, MIB) & ~511;
			struct iovec iov = {
				.iov_base = memory + at, .iov_len = sizes[i]
			};
			struct op op = {
				.fd = self->fd, .iov = &iov, .nr = 1,
				.offset = pos
			};

			memset(memory, 0x11, ARENA);
			ASSERT_EQ(0, engine_run(&engine, &op, 1));
			ASSERT_EQ(sizes[i], op.result);
			ASSERT_EQ(0, memcmp(memory + at, self->expected + pos,
					    sizes[i]));
			ASSERT_TRUE(all(memory, at, 0x11));
			ASSERT_TRUE(all(memory + at + sizes[i],
					ARENA - at - sizes[i], 0x11));

			/* Write to a place that nothing reads. */
			rng_fill(&rng, memory + at, sizes[i]);
			op.write = true;
			op.offset = 4 * MIB + pos;
			ASSERT_EQ(0, engine_run(&engine, &op, 1));
			ASSERT_EQ(sizes[i], op.result);
			ASSERT_EQ(sizes[i], pread(self->plain, seen, sizes[i],
						  op.offset));
			ASSERT_EQ(0, memcmp(memory + at, seen, sizes[i]));
		}
	}
	engine_exit(&engine);
}

static void with_and_without(struct __test_metadata *_metadata,
			     struct _test_data_reg *self, unsigned char *p,
			     enum engine_kind kind)
{
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, reg(self->fd, p, ARENA));
	transfer(_metadata, self, p, kind);
	EXPECT_EQ(0, unreg(self->fd, p, ARENA));
	transfer(_metadata, self, p, kind);
}

TEST_F_TIMEOUT(reg, pread, TIMEOUT)
{
	with_and_without(_metadata, self, self->arena, ENGINE_SYNC);
}

TEST_F_TIMEOUT(reg, preadv2, TIMEOUT)
{
	with_and_without(_metadata, self, self->arena, ENGINE_VECTOR);
}

TEST_F_TIMEOUT(reg, aio, TIMEOUT)
{
	with_and_without(_metadata, self, self->arena, ENGINE_AIO);
}

TEST_F_TIMEOUT(reg, uring, TIMEOUT)
{
	with_and_without(_metadata, self, self->arena, ENGINE_URING);
}

/* Pinned by io_uring as well. */
TEST_F_TIMEOUT(reg, uring_fixed, TIMEOUT)
{
	with_and_without(_metadata, self, self->arena, ENGINE_FIXED);
}

TEST_F_TIMEOUT(reg, shared, TIMEOUT)
{
	unsigned char *p = map(ARENA, MAP_SHARED | MAP_ANONYMOUS, -1);

	with_and_without(_metadata, self, p, ENGINE_SYNC);
}

/* Bios that end later, in an interrupt, synchronous and asynchronous. */
static void later(struct __test_metadata *_metadata,
		  struct _test_data_reg *self, enum engine_kind kind)
{
	unsigned char *arena = anon(ARENA), *seen = anon(ARENA);
	struct iovec iov[4], both[2];
	struct engine engine;
	struct op ops[4];
	struct rng rng;
	int fd, i;

	rng_init(&rng, kind);
	use(_metadata, self, &slow);
	fd = self->fd;
	ASSERT_EQ(0, reg(fd, arena, ARENA));
	ASSERT_EQ(0, engine_init(&engine, kind, NULL, 0));
	rng_fill(&rng, arena, ARENA);
	memcpy(seen, arena, ARENA);
	for (i = 0; i < 4; i++) {
		iov[i].iov_base = arena + i * (ARENA / 4);
		iov[i].iov_len = i ? 64 * KIB : MIB / 4;
		ops[i] = (struct op){
			.fd = fd, .write = true, .iov = &iov[i], .nr = 1,
			.offset = i * MIB
		};
	}
	/* The last one has two buffers. */
	both[0] = iov[3];
	both[1].iov_base = arena + 100 * KIB;
	both[1].iov_len = 12 * KIB;
	ops[3].iov = both;
	ops[3].nr = 2;
	ASSERT_EQ(0, engine_run(&engine, ops, 4));
	memset(arena, 0, ARENA);
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(i < 3 ? iov[i].iov_len : 76 * KIB, ops[i].result);
		ops[i].write = false;
	}
	/* Not into the same pages at the same time. */
	both[1].iov_base = arena + ARENA / 4 + 100 * KIB;
	ASSERT_EQ(0, engine_run(&engine, ops, 4));
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(i < 3 ? iov[i].iov_len : 76 * KIB, ops[i].result);
		EXPECT_EQ(0, memcmp(iov[i].iov_base,
				    seen + i * (ARENA / 4), iov[i].iov_len));
	}
	EXPECT_EQ(0, memcmp(both[1].iov_base, seen + 100 * KIB, 12 * KIB));
	engine_exit(&engine);
	EXPECT_EQ(0, unreg(fd, arena, ARENA));
}

TEST_F_TIMEOUT(reg, pread_later, TIMEOUT)
{
	later(_metadata, self, ENGINE_SYNC);
}

TEST_F_TIMEOUT(reg, aio_later, TIMEOUT)
{
	later(_metadata, self, ENGINE_AIO);
}

TEST_F_TIMEOUT(reg, uring_later, TIMEOUT)
{
	later(_metadata, self, ENGINE_URING);
}

/* The buffers of a vector: in two ranges, or one of them unregistered. */
TEST_F_TIMEOUT(reg, vector, TIMEOUT)
{
	unsigned char *other = anon(ARENA);
	struct iovec iov[] = {
		{ self->arena + 512, 4 * KIB }, { other + 8 * KIB, 64 * KIB },
		{ self->arena + MIB, 0 }, { self->arena + MIB, 12 * KIB },
		{ other + ARENA - 512, 512 },
	};
	ssize_t sum = 4 * KIB + 64 * KIB + 12 * KIB + 512, at;
	unsigned int i, step;

	for (step = 0; step < 3; step++) {
		memset(self->arena, 0, ARENA);
		memset(other, 0, ARENA);
		ASSERT_EQ(sum, preadv(self->fd, iov, ARRAY_SIZE(iov), 3 * 512));
		for (i = 0, at = 3 * 512; i < ARRAY_SIZE(iov); i++) {
			EXPECT_EQ(0, memcmp(iov[i].iov_base,
					    self->expected + at,
					    iov[i].iov_len));
			at += iov[i].iov_len;
		}
		if (step < 2) {
			ASSERT_EQ(0, reg(self->fd, step ? other : self->arena,
					 ARENA));
		}
	}
	/* The same for a write. */
	ASSERT_EQ(sum, pwritev(self->fd, iov, ARRAY_SIZE(iov), 5 * MIB));
	EXPECT_EQ(sum, pread(self->plain, self->expected + 5 * MIB, sum,
			     5 * MIB));
	EXPECT_EQ(0, memcmp(self->expected + 5 * MIB, self->expected + 3 * 512,
			    sum));
}

/* A buffer that is not completely inside one range, and the device's end. */
TEST_F_TIMEOUT(reg, borders, TIMEOUT)
{
	unsigned char *p = self->arena;
	size_t page = self->page;

	ASSERT_EQ(0, reg(self->fd, p + page, page));
	ASSERT_EQ(0, reg(self->fd, p + 2 * page, 2 * page));
	EXPECT_TRUE(reads(self->fd, p, 6 * page, 512));
	EXPECT_TRUE(reads(self->fd, p + page, 3 * page, 512));
	EXPECT_TRUE(reads(self->fd, p + page, page, 512));
	EXPECT_TRUE(reads(self->fd, p + page / 2, page, 512));
	EXPECT_TRUE(reads(self->fd, p + 3 * page, 2 * page, 512));
	/* Not of whole pages. */
	ASSERT_EQ(0, reg(self->fd, p + 8 * page + 512, page));
	EXPECT_TRUE(reads(self->fd, p + 8 * page, 3 * page, 0));
	EXPECT_TRUE(reads(self->fd, p + 8 * page + 512, page, 0));
	EXPECT_TRUE(reads(self->fd, p + 8 * page + 512, page - 512, 0));
	EXPECT_EQ(0, unreg(self->fd, p + 8 * page + 512, page));
	/* The end of the device. */
	EXPECT_EQ(512, pread(self->fd, p + page, page, DISK_SIZE - 512));
	EXPECT_EQ(0, memcmp(p + page, self->expected + DISK_SIZE - 512, 512));
	EXPECT_EQ(0, pread(self->fd, p + page, page, DISK_SIZE));
	EXPECT_EQ(-1, pwrite(self->fd, p + page, page, DISK_SIZE));
	EXPECT_EQ(ENOSPC, errno);
	EXPECT_EQ(0, pread(self->fd, p + page, 0, 0));
	EXPECT_EQ(-1, pread(self->fd, p + page, 100, 0));
	EXPECT_EQ(EINVAL, errno);
}

/* Ways to change one page at @p, of three that are registered. */

static bool by_munmap(unsigned char *p, size_t page)
{
	return !munmap(p, page);
}

static bool by_mremap(unsigned char *p, size_t page)
{
	void *to = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);

	return mremap(p, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;
}

static bool by_dontneed(unsigned char *p, size_t page)
{
	return !madvise(p, page, MADV_DONTNEED);
}

static bool by_mprotect(unsigned char *p, size_t page)
{
	return !mprotect(p, page, PROT_READ);
}

static bool by_mmap(unsigned char *p, size_t page)
{
	return mmap(p, page, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p;
}

static bool by_remove(unsigned char *p, size_t page)
{
	return !madvise(p, page, MADV_REMOVE);
}

static const struct {
	const char *name;
	bool (*change)(unsigned char *p, size_t page);
	bool shared;		/* memory of tmpfs */
	bool readable;		/* a read into it succeeds afterwards */
} changes[] = {
	{ "munmap", by_munmap, false, false },
	{ "munmap", by_munmap, true, false },
	{ "mremap", by_mremap, false, false },
	{ "MADV_DONTNEED", by_dontneed, false, true },
	{ "MADV_DONTNEED", by_dontneed, true, true },
	{ "mprotect", by_mprotect, false, false },
	{ "mprotect", by_mprotect, true, false },
	{ "mmap", by_mmap, false, true },
	{ "MADV_REMOVE", by_remove, true, true },
};

TEST_F_TIMEOUT(reg, changed, TIMEOUT)
{
	size_t i, page = self->page;

	for (i = 0; i < ARRAY_SIZE(changes); i++) {
		unsigned char *p = changes[i].shared ?
			map(3 * page, MAP_SHARED | MAP_ANONYMOUS, -1) :
			anon(3 * page);
		unsigned char *middle = p + page;

		TH_LOG("%s, %s", changes[i].name,
		       changes[i].shared ? "shared" : "private");
		ASSERT_EQ(0, reg(self->fd, p, 3 * page));
		EXPECT_TRUE(reads(self->fd, p, 3 * page, 512));
		ASSERT_TRUE(changes[i].change(middle, page));
		/* All of it has ended. */
		EXPECT_EQ(-ENOENT, unreg(self->fd, p, 3 * page));
		EXPECT_TRUE(reads(self->fd, p, page, 1024));
		if (changes[i].readable) {
			EXPECT_TRUE(reads(self->fd, middle, page, 1024));
			EXPECT_EQ(0, reg(self->fd, p, 3 * page));
			EXPECT_TRUE(reads(self->fd, p, 3 * page, 1024));
			EXPECT_EQ(0, unreg(self->fd, p, 3 * page));
		} else {
			EXPECT_EQ(-1, pread(self->fd, middle, page, 0));
			EXPECT_EQ(EFAULT, errno);
			EXPECT_EQ(-EFAULT, reg(self->fd, p, 3 * page));
		}
		if (changes[i].change == by_mprotect) {
			EXPECT_EQ(page, pwrite(self->fd, middle, page,
					       4 * MIB));
		}
		munmap(p, 3 * page);
	}
}

/* Whether a range is registered: then nothing that overlaps it can be. */
static bool live(int fd, unsigned char *p)
{
	return reg(fd, p, 512) == -EEXIST;
}

/* Changes that leave the same pages, writable. */
TEST_F_TIMEOUT(reg, kept, TIMEOUT)
{
	size_t page = self->page, size = 4 * page;
	/* A mapping of its own: to split one would end it, see biogen.rst. */
	unsigned char *p = map(size, MAP_SHARED | MAP_ANONYMOUS, -1);

	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, reg(self->fd, p, size));
	EXPECT_TRUE(live(self->fd, p));
	ASSERT_EQ(0, mprotect(p, size, PROT_READ | PROT_WRITE | PROT_EXEC));
	EXPECT_TRUE(live(self->fd, p));
	EXPECT_TRUE(reads(self->fd, p, size, 512));
	ASSERT_EQ(0, mlock(p, size));
	EXPECT_TRUE(live(self->fd, p));
	ASSERT_EQ(0, munlock(p, size));
	EXPECT_TRUE(live(self->fd, p));
	EXPECT_TRUE(reads(self->fd, p, size, 1024));
	EXPECT_EQ(0, unreg(self->fd, p, size));
	EXPECT_EQ(-ENOENT, unreg(self->fd, p, size));
	EXPECT_TRUE(reads(self->fd, p, size, 2048));

	/* A neighbour. */
	p = self->arena;
	ASSERT_EQ(0, reg(self->fd, p, size));
	ASSERT_TRUE(by_dontneed(p + size, page));
	EXPECT_TRUE(live(self->fd, p));
	EXPECT_EQ(0, unreg(self->fd, p, size));
}

/* Truncating a file removes its pages. */
TEST_F_TIMEOUT(reg, truncated, TIMEOUT)
{
	int memory = memfd_create("reg", MFD_CLOEXEC);
	size_t page = self->page;
	unsigned char *p;

	ASSERT_LE(0, memory);
	ASSERT_EQ(0, ftruncate(memory, 4 * page));
	p = map(4 * page, MAP_SHARED, memory);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, reg(self->fd, p, 4 * page));
	EXPECT_TRUE(reads(self->fd, p, 4 * page, 512));
	/* The data that were read are in the file. */
	EXPECT_EQ(4 * page, pread(memory, self->arena, 4 * page, 0));
	EXPECT_EQ(0, memcmp(p, self->arena, 4 * page));
	ASSERT_EQ(0, ftruncate(memory, 2 * page));
	EXPECT_EQ(-ENOENT, unreg(self->fd, p, 4 * page));
	EXPECT_EQ(-1, pread(self->fd, p + 3 * page, page, 0));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_TRUE(reads(self->fd, p, 2 * page, 1024));
	close(memory);
}

/* I/O in flight ends in the pages that it began with. */
TEST_F_TIMEOUT(reg, in_flight, TIMEOUT)
{
	size_t i, page = self->page;
	struct engine engine;

	use(_metadata, self, &slow);
	ASSERT_EQ(0, engine_init(&engine, ENGINE_AIO, NULL, 0));
	for (i = 0; i < 16; i++) {
		unsigned char *p = anon(16 * page);
		struct iovec iov = { .iov_base = p, .iov_len = 16 * page };
		struct op op = { .fd = self->fd, .iov = &iov, .nr = 1 };

		memset(p, 0x77, 16 * page);
		ASSERT_EQ(0, reg(self->fd, p, 16 * page));
		ASSERT_EQ(0, engine_start(&engine, &op, 1));
		ASSERT_TRUE(i % 4 == 0 ? !unreg(self->fd, p, 16 * page) :
			    i % 4 == 1 ? by_dontneed(p, 16 * page) :
					 by_mmap(p, 16 * page));
		ASSERT_TRUE(i % 4 != 3 || !reg(self->fd, p, 16 * page));
		/* Before the I/O has ended on the device. */
		if (i % 4)
			memset(p, 0x55, 16 * page);
		ASSERT_EQ(0, engine_finish(&engine, &op, 1));
		EXPECT_EQ(16 * page, op.result);
		EXPECT_TRUE(all(p, 16 * page, i % 4 ? 0x55 : 0));
		munmap(p, 16 * page);
	}
	engine_exit(&engine);
}

/* Wait for a child that exits with 0. */
static bool succeeds(pid_t child)
{
	int status;

	return waitpid(child, &status, 0) == child && status == 0;
}

/* The pages stay with the parent; a child has copies, and no registration. */
TEST_F_TIMEOUT(reg, fork, TIMEOUT)
{
	unsigned char *p = self->arena;
	size_t size = 8 * self->page;
	int to_child[2], to_parent[2];
	pid_t child;
	char byte;

	ASSERT_EQ(0, pipe(to_child));
	ASSERT_EQ(0, pipe(to_parent));
	memset(p, 0x33, size);
	ASSERT_EQ(0, reg(self->fd, p, size));
	ASSERT_TRUE(reads(self->fd, p, size / 2, 0));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		/* The content at the fork; the parent has read since. */
		if (read(to_child[0], &byte, 1) != 1 || p[1] != stamped(1) ||
		    !all(p + size / 2, size / 2, 0x33))
			_exit(1);
		if (unreg(self->fd, p, size) != -ENOENT)
			_exit(2);
		if (!reads(self->fd, p, size, 8192))
			_exit(3);
		/* The same address of another process. */
		if (reg(self->fd, p, size) || !reads(self->fd, p, size, 4096))
			_exit(4);
		if (write(to_parent[1], "", 1) != 1 ||
		    read(to_child[0], &byte, 1) != 1)
			_exit(5);
		_exit(p[0] != stamped(4096) ? 6 : 0);
	}
	ASSERT_TRUE(reads(self->fd, p, size, 512));
	ASSERT_EQ(1, write(to_child[1], "", 1));
	ASSERT_EQ(1, read(to_parent[0], &byte, 1));
	EXPECT_EQ(stamped(512), p[0]);
	EXPECT_EQ(stamped(512 + size - 1), p[size - 1]);
	EXPECT_TRUE(reads(self->fd, p, size, 1024));
	/* The program's own stores and the device's go to the same page. */
	memset(p, 0x44, size);
	EXPECT_EQ(size, pwrite(self->fd, p, size, 4 * MIB));
	EXPECT_EQ(size, pread(self->plain, self->expected, size, 4 * MIB));
	EXPECT_TRUE(all(self->expected, size, 0x44));
	ASSERT_EQ(1, write(to_child[1], "", 1));
	EXPECT_TRUE(succeeds(child));
	/* fork() did not end it. */
	EXPECT_EQ(0, unreg(self->fd, p, size));
}

/* A registration after fork() has pages that the other process lacks. */
TEST_F_TIMEOUT(reg, copy_on_write, TIMEOUT)
{
	unsigned char *p = self->arena;
	size_t size = 8 * self->page;
	pid_t child;

	memset(p, 0x33, size);
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		if (reg(self->fd, p, size) || !reads(self->fd, p, size, 512))
			_exit(1);
		_exit(0);
	}
	EXPECT_TRUE(succeeds(child));
	EXPECT_TRUE(all(p, size, 0x33));
	/* The child's slot is free, its memory is gone. */
	EXPECT_EQ(0, reg(self->fd, p, size));
	EXPECT_TRUE(reads(self->fd, p, size, 1024));
}

/* A program that is executed has the file, but not the memory. */
static const char *const after_exec = "BIOGEN_REG_AFTER_EXEC";

static void __attribute__((constructor)) run_after_exec(void)
{
	const char *text = getenv(after_exec);
	size_t size = 4 * sysconf(_SC_PAGESIZE);
	unsigned char *p;
	int fd;

	if (!text)
		return;
	fd = atoi(text);
	p = mmap(FIXED, size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (p != FIXED)
		_exit(2);
	if (unreg(fd, p, size) != -ENOENT || !reads(fd, p, size, 512))
		_exit(3);
	if (reg(fd, p, size) || !reads(fd, p, size, 1024))
		_exit(4);
	_exit(0);
}

TEST_F_TIMEOUT(reg, exec, TIMEOUT)
{
	size_t size = 4 * self->page;
	pid_t child = fork();
	unsigned char *p;
	char text[32];

	ASSERT_LE(0, child);
	if (!child) {
		p = mmap(FIXED, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
			 0);
		if (p != FIXED || reg(self->fd, p, size) ||
		    !reads(self->fd, p, size, 0))
			_exit(1);
		snprintf(text, sizeof(text), "%d", self->fd);
		setenv(after_exec, text, 1);
		execl("/proc/self/exe", "biogen_reg", NULL);
		_exit(5);
	}
	EXPECT_TRUE(succeeds(child));
}

TEST_F_TIMEOUT(reg, refused, TIMEOUT)
{
	struct biogen_register range = {
		.addr = (uintptr_t)self->arena, .length = ARENA
	};
	unsigned char *p = self->arena, *q;
	size_t page = self->page;
	unsigned int i;
	int file;

	EXPECT_EQ(-EINVAL, reg(self->fd, p, 0));
	EXPECT_EQ(-EINVAL, reg(self->fd, p, BIOGEN_MAX_REGISTER + 1));
	EXPECT_EQ(-EFAULT, reg(self->fd, (void *)-page, page / 2));
	EXPECT_EQ(-EFAULT, reg(self->fd, (void *)-page, 2 * page));
	EXPECT_EQ(-1, ioctl(self->fd, BIOGEN_REGISTER, NULL));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, ioctl(self->fd, BIOGEN_UNREGISTER, NULL));
	EXPECT_EQ(EFAULT, errno);
	for (i = 0; i < ARRAY_SIZE(range.reserved); i++) {
		range.reserved[i] = 1;
		EXPECT_EQ(-1, ioctl(self->fd, BIOGEN_REGISTER, &range));
		EXPECT_EQ(EINVAL, errno);
		EXPECT_EQ(-1, ioctl(self->fd, BIOGEN_UNREGISTER, &range));
		EXPECT_EQ(EINVAL, errno);
		range.reserved[i] = 0;
	}
	range.segments = 1;
	EXPECT_EQ(-1, ioctl(self->fd, BIOGEN_UNREGISTER, &range));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-ENOENT, unreg(self->fd, p, page));

	/* A hole, and read-only memory. */
	q = anon(3 * page);
	ASSERT_EQ(0, munmap(q + page, page));
	EXPECT_EQ(-EFAULT, reg(self->fd, q, 3 * page));
	EXPECT_EQ(-EFAULT, reg(self->fd, q + page, page));
	ASSERT_EQ(0, mprotect(q, page, PROT_READ));
	EXPECT_EQ(-EFAULT, reg(self->fd, q, page));

	/* The page cache of a block device, shared and private. */
	file = open("/dev/ram1", O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, file);
	q = map(2 * page, MAP_SHARED, file);
	EXPECT_EQ(-EOPNOTSUPP, reg(self->fd, q, 2 * page));
	ASSERT_EQ(0, munmap(q, 2 * page));
	q = map(2 * page, MAP_PRIVATE, file);
	EXPECT_EQ(-EOPNOTSUPP, reg(self->fd, q, 2 * page));
	ASSERT_EQ(0, munmap(q, 2 * page));
	close(file);

	/* Overlapping ranges, and the most that are allowed. */
	for (i = 0; i < BIOGEN_MAX_REGISTERED; i++)
		ASSERT_EQ(0, reg(self->fd, p + 2 * i * page, page));
	EXPECT_EQ(-EEXIST, reg(self->fd, p, page));
	EXPECT_EQ(-EEXIST, reg(self->fd, p + page, 2 * page));
	EXPECT_EQ(-EEXIST, reg(self->fd, p + 512, 512));
	EXPECT_EQ(-ENOSPC, reg(self->fd, p + page, page));
	EXPECT_TRUE(reads(self->fd, p + 2 * (i - 1) * page, page, 512));
	EXPECT_EQ(-ENOENT, unreg(self->fd, p + page, page));
	EXPECT_EQ(-ENOENT, unreg(self->fd, p, 2 * page));
	EXPECT_EQ(0, unreg(self->fd, p + 4 * page, page));
	EXPECT_EQ(0, reg(self->fd, p + 5 * page, page));
	EXPECT_TRUE(reads(self->fd, p + 5 * page, page, 512));
	/* Another open file has registrations of its own. */
	EXPECT_EQ(0, reg(self->plain, p, page));
}

/* What the file @path says of @name in KiB, or -1. */
static long kib(const char *path, const char *name)
{
	char text[4096];
	const char *line;

	if (read_text(path, text, sizeof(text)))
		return -1;
	line = strstr(text, name);
	return line ? atol(line + strlen(name)) : -1;
}

static long pinned_kib(void)
{
	return kib("/proc/self/status", "VmPin:");
}

static long percpu_kib(void)
{
	return kib("/proc/meminfo", "Percpu:");
}

/* Until the remaining work is done. */
static bool pinned_becomes(long kib)
{
	uint64_t limit = now_ns() + 300000000000ULL;

	while (pinned_kib() != kib && now_ns() <= limit)
		usleep(10000);
	return pinned_kib() == kib;
}

/*
 * Charged to the user, unless the user may lock any amount, until
 * BIOGEN_UNREGISTER or close() returns.
 */
TEST_F_TIMEOUT(reg, limit, TIMEOUT)
{
	struct rlimit limit = { 64 * KIB, 64 * KIB };
	unsigned char *p = self->arena;
	int i;

	ASSERT_EQ(0, reg(self->fd, p, ARENA));
	EXPECT_EQ((long)(ARENA / KIB), pinned_kib());
	ASSERT_EQ(0, unreg(self->fd, p, ARENA));
	EXPECT_EQ(0, pinned_kib());
	if (seteuid(65534))
		SKIP(return, "no users");
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &limit));
	EXPECT_EQ(-ENOMEM, reg(self->fd, p, 128 * KIB));
	EXPECT_EQ(0, pinned_kib());
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, reg(self->fd, p, 64 * KIB));
		EXPECT_EQ(-ENOMEM, reg(self->fd, p + 64 * KIB, self->page));
		EXPECT_TRUE(reads(self->fd, p, 64 * KIB, 512));
		ASSERT_EQ(0, unreg(self->fd, p, 64 * KIB));
		ASSERT_EQ(0, reg(self->fd, p + 64 * KIB, 64 * KIB));
		EXPECT_TRUE(reads(self->fd, p + 64 * KIB, 64 * KIB, 512));
		ASSERT_EQ(0, unreg(self->fd, p + 64 * KIB, 64 * KIB));
	}
	ASSERT_EQ(0, reg(self->fd, p, 64 * KIB));
	EXPECT_EQ(0, seteuid(0));
	close(self->fd);
	EXPECT_EQ(0, pinned_kib());
	self->fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
}

#define MANY	2000

/* An open file keeps no memory of each CPU after BIOGEN_UNREGISTER. */
TEST_F_TIMEOUT(reg, many_files, TIMEOUT)
{
	struct rlimit files = { MANY + 64, MANY + 64 };
	int fds[MANY], i;
	long before;

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &files));
	before = percpu_kib();
	ASSERT_LT(0, before);
	for (i = 0; i < MANY; i++) {
		fds[i] = open(BIOGEN, O_RDWR | O_CLOEXEC);
		ASSERT_LE(0, fds[i]);
		ASSERT_EQ(0, reg(fds[i], self->arena, self->page));
		if (i % 100)
			by_dontneed(self->arena, self->page);
		else
			ASSERT_EQ(0, unreg(fds[i], self->arena, self->page));
		/* Let the rest of the work be done. */
		if (i % 50 == 0)
			ASSERT_TRUE(pinned_becomes(0));
	}
	EXPECT_TRUE(pinned_becomes(0));
	EXPECT_GT(before + MANY / 4, percpu_kib());
	for (i = 0; i < MANY; i++)
		close(fds[i]);
}

#define ROUNDS	20

/* In how many of ROUNDS the thread sleeps in @what; -1 if it fails. */
static int sleeps(bool (*what)(struct _test_data_reg *self),
		  struct _test_data_reg *self)
{
	int i, slept = 0;

	for (i = 0; i < ROUNDS; i++) {
		struct rusage before, after;

		getrusage(RUSAGE_THREAD, &before);
		if (!what(self))
			return -1;
		getrusage(RUSAGE_THREAD, &after);
		slept += after.ru_nvcsw != before.ru_nvcsw;
	}
	return slept;
}

static bool nap(struct _test_data_reg *self)
{
	return !usleep(10000);
}

static bool open_close(struct _test_data_reg *self)
{
	int fd = open(BIOGEN, O_RDWR | O_CLOEXEC);

	return fd >= 0 && !reg(fd, self->arena, self->page) && !close(fd);
}

/*
 * Opening, registering and closing do not wait, so not for a grace period of RCU
 * either. A clock would not tell: its steps may be longer than what it measures.
 */
TEST_F_TIMEOUT(reg, no_grace_period, TIMEOUT)
{
	int slept = sleeps(open_close, self);

	EXPECT_LE(0, slept);
	EXPECT_GT(ROUNDS / 2, slept);
	EXPECT_LT(ROUNDS / 2, sleeps(nap, self));
}

/*
 * I/O that ends while a process registers memory for the first time, for which
 * io_uring has the task do work, does not make it fail.
 */
TEST_F_TIMEOUT(reg, signals, TIMEOUT)
{
	int i, j;

	use(_metadata, self, &slow);
	for (i = 0; i < 10; i++) {
		pid_t child = fork();

		ASSERT_LE(0, child);
		if (!child) {
			struct iovec iov[4];
			struct engine engine;
			struct op op[4];
			int fd = open(BIOGEN, O_RDWR | O_CLOEXEC);

			for (j = 0; j < 4; j++) {
				iov[j].iov_base = self->arena + j * 64 * KIB;
				iov[j].iov_len = 4 * KIB;
				op[j] = (struct op){
					.fd = self->plain, .iov = &iov[j],
					.nr = 1, .offset = j * 4 * KIB
				};
			}
			if (engine_init(&engine, ENGINE_URING, NULL, 0))
				_exit(1);
			if (engine_start(&engine, op, 4))
				_exit(2);
			/* The I/O in flight ends any moment. */
			usleep(1500 * i);
			_exit(-reg(fd, self->arena + MIB, 256 * KIB));
		}
		EXPECT_TRUE(succeeds(child)) {
			TH_LOG("round %d", i);
		}
	}
}

/* If the number of segments cannot be stored, nothing is registered. */
TEST_F_TIMEOUT(reg, no_result, TIMEOUT)
{
	struct biogen_register *range = mmap(NULL, self->page,
			PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);

	ASSERT_NE(MAP_FAILED, range);
	range->addr = (uintptr_t)self->arena;
	range->length = ARENA;
	ASSERT_EQ(0, mprotect(range, self->page, PROT_READ));
	EXPECT_EQ(-1, ioctl(self->fd, BIOGEN_REGISTER, range));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(0, pinned_kib());
	EXPECT_EQ(-ENOENT, unreg(self->fd, self->arena, ARENA));
	EXPECT_EQ(0, reg(self->fd, self->arena, ARENA));
}

struct later {
	int fd;
	unsigned char *p;
	size_t size;
	int result;
	bool done;
};

static void *register_later(void *data)
{
	struct later *later = data;

	later->result = reg(later->fd, later->p, later->size);
	__atomic_store_n(&later->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/*
 * A userfaultfd for @size bytes at @p: a program brings in their pages. -1 if the
 * kernel gives none.
 */
static int userfault(void *p, size_t size)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { .start = (uintptr_t)p, .len = size },
		.mode = UFFDIO_REGISTER_MODE_MISSING
	};
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (uffd < 0)
		return -1;
	if (ioctl(uffd, UFFDIO_API, &api) ||
	    ioctl(uffd, UFFDIO_REGISTER, &range)) {
		close(uffd);
		return -EIO;
	}
	return uffd;
}

struct waiting {
	int uffd;
	pthread_t thread;
	void *page;
	size_t size;
};

/* Send a signal to the thread that waits for a page, then give it the page. */
static void *interrupt(void *data)
{
	struct waiting *waiting = data;
	struct pollfd fault = { .fd = waiting->uffd, .events = POLLIN };
	struct uffdio_copy copy = {
		.src = (uintptr_t)waiting->page, .len = waiting->size
	};
	struct uffd_msg msg;

	while (poll(&fault, 1, -1) != 1 ||
	       read(waiting->uffd, &msg, sizeof(msg)) != sizeof(msg))
		;
	copy.dst = msg.arg.pagefault.address & ~(waiting->size - 1);
	pthread_kill(waiting->thread, SIGUSR1);
	ioctl(waiting->uffd, UFFDIO_COPY, &copy);
	return NULL;
}

static int signals_handled;

static void on_signal(int sig)
{
	__atomic_add_fetch(&signals_handled, 1, __ATOMIC_RELAXED);
}

/*
 * The first BIOGEN_REGISTER of a process begins again if a signal is pending. It
 * comes while the ioctl reads its argument, so it is pending until that returns.
 */
TEST_F_TIMEOUT(reg, begins_again, TIMEOUT)
{
	struct sigaction handler = { .sa_handler = on_signal };
	struct waiting waiting = {
		.thread = pthread_self(), .page = self->arena, .size = self->page
	};
	struct biogen_register *argument = (void *)anon(self->page);
	pthread_t thread;

	ASSERT_NE(NULL, argument);
	waiting.uffd = userfault(argument, self->page);
	if (waiting.uffd == -1)
		SKIP(return, "no userfaultfd");
	ASSERT_LE(0, waiting.uffd);
	memset(self->arena, 0, self->page);
	*(struct biogen_register *)self->arena = (struct biogen_register){
		.addr = (uintptr_t)self->arena + MIB, .length = self->page
	};
	ASSERT_EQ(0, sigaction(SIGUSR1, &handler, NULL));
	ASSERT_EQ(0, pthread_create(&thread, NULL, interrupt, &waiting));
	EXPECT_EQ(0, ioctl(self->fd, BIOGEN_REGISTER, argument)) {
		TH_LOG("%s", strerror(errno));
	}
	EXPECT_EQ(1, __atomic_load_n(&signals_handled, __ATOMIC_RELAXED));
	pthread_join(thread, NULL);
	close(waiting.uffd);
}

/*
 * Memory whose pages a program brings in. While BIOGEN_REGISTER waits for one,
 * other threads map and unmap memory.
 */
TEST_F_TIMEOUT(reg, userfault, TIMEOUT)
{
	struct later later = { .fd = self->fd, .size = 16 * self->page };
	unsigned int faults = 0;
	pthread_t thread;
	int uffd;

	later.p = anon(later.size);
	ASSERT_NE(NULL, later.p);
	uffd = userfault(later.p, later.size);
	if (uffd == -1)
		SKIP(return, "no userfaultfd");
	ASSERT_LE(0, uffd);
	memset(self->arena, 0x3c, self->page);
	ASSERT_EQ(0, pthread_create(&thread, NULL, register_later, &later));
	while (!__atomic_load_n(&later.done, __ATOMIC_ACQUIRE)) {
		struct pollfd fault = { .fd = uffd, .events = POLLIN };
		struct uffd_msg msg;
		struct uffdio_copy copy = {
			.src = (uintptr_t)self->arena, .len = self->page
		};

		if (poll(&fault, 1, 10) != 1 ||
		    read(uffd, &msg, sizeof(msg)) != sizeof(msg))
			continue;
		/* Needs mmap_lock for writing. */
		ASSERT_EQ(0, munmap(anon(self->page), self->page));
		copy.dst = msg.arg.pagefault.address & ~(self->page - 1);
		ASSERT_EQ(0, ioctl(uffd, UFFDIO_COPY, &copy));
		faults++;
	}
	pthread_join(thread, NULL);
	EXPECT_EQ(0, later.result);
	EXPECT_EQ(16, faults);
	EXPECT_TRUE(all(later.p, later.size, 0x3c));
	EXPECT_TRUE(reads(self->fd, later.p, later.size, 512));
	EXPECT_EQ(0, unreg(self->fd, later.p, later.size));
	close(uffd);
}

/* A huge page is one segment, whether it is of hugetlbfs or not. */
TEST_F_TIMEOUT(reg, segments, TIMEOUT)
{
	unsigned char *p = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t segments = 0;
	char text[16];

	/* With small pages, at most one segment per page. */
	ASSERT_EQ(0, reg_ioctl(self->fd, BIOGEN_REGISTER, self->arena, ARENA,
			       &segments));
	EXPECT_LE(1, segments);
	EXPECT_GE(ARENA / self->page, segments);

	ASSERT_NE(MAP_FAILED, p);
	p = (void *)(((uintptr_t)p + HUGE - 1) & ~(HUGE - 1));
	if (self->page == 4 * KIB) {
		/* Off by default with less than 512 MiB of memory. */
		ASSERT_EQ(0, write_text(THP, "always"));
		ASSERT_EQ(0, madvise(p, HUGE, MADV_HUGEPAGE));
		memset(p, 0, HUGE);
		ASSERT_EQ(0, reg_ioctl(self->fd, BIOGEN_REGISTER, p, HUGE,
				       &segments));
		EXPECT_EQ(1, segments);
		transfer(_metadata, self, p, ENGINE_SYNC);
		EXPECT_EQ(0, unreg(self->fd, p, HUGE));
		/* A part of it is charged as the whole page. */
		EXPECT_EQ(0, unreg(self->fd, self->arena, ARENA));
		EXPECT_TRUE(pinned_becomes(0));
		ASSERT_EQ(0, reg_ioctl(self->fd, BIOGEN_REGISTER,
				       p + 64 * KIB, 128 * KIB, &segments));
		EXPECT_EQ(1, segments);
		EXPECT_EQ((long)(HUGE / KIB), pinned_kib());
		EXPECT_TRUE(reads(self->fd, p + 64 * KIB, 128 * KIB, 512));

		ASSERT_EQ(0, write_text("/proc/sys/vm/nr_hugepages", "4"));
		ASSERT_EQ(0, read_text("/proc/sys/vm/nr_hugepages", text,
				       sizeof(text)));
		ASSERT_EQ(4, atoi(text));
		p = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
		ASSERT_NE(MAP_FAILED, p);
		ASSERT_EQ(0, reg_ioctl(self->fd, BIOGEN_REGISTER, p, HUGE,
				       &segments));
		EXPECT_EQ(1, segments);
		transfer(_metadata, self, p, ENGINE_AIO);
		ASSERT_EQ(0, munmap(p, HUGE));
		EXPECT_EQ(-ENOENT, unreg(self->fd, p, HUGE));
		EXPECT_TRUE(pinned_becomes(HUGE / KIB));
		EXPECT_EQ(0, write_text("/proc/sys/vm/nr_hugepages", "0"));
	}
}

/* Errors of the device are the same as without registrations. */
TEST_F_TIMEOUT(reg, errors, TIMEOUT)
{
	static const struct disk bad = {
		.null_blk = true, .mib = DISK_MIB, .block = 512,
		.badblocks = "64-71"
	};

	use(_metadata, self, &bad);
	ASSERT_EQ(0, reg(self->fd, self->arena, ARENA));
	EXPECT_EQ(-1, pread(self->fd, self->arena, 4096, 64 * 512));
	EXPECT_EQ(EIO, errno);
	EXPECT_EQ(4096, pread(self->fd, self->arena, 4096, 0));
	EXPECT_EQ(-1, pread(self->fd, self->arena, MIB, 0));
	EXPECT_EQ(EIO, errno);
	EXPECT_EQ(0, unreg(self->fd, self->arena, ARENA));
}

/* Close and exit with everything registered and I/O in flight. */
TEST_F_TIMEOUT(reg, left, TIMEOUT)
{
	int i;

	use(_metadata, self, &slow);
	for (i = 0; i < 8; i++) {
		pid_t child = fork();

		ASSERT_LE(0, child);
		if (!child) {
			struct iovec iov = {
				.iov_base = self->arena, .iov_len = ARENA / 2
			};
			int fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
			struct op op = { .fd = fd, .iov = &iov, .nr = 1 };
			struct engine engine;

			if (fd < 0 || reg(fd, self->arena, ARENA) ||
			    engine_init(&engine, i & 1 ? ENGINE_AIO :
					ENGINE_URING, NULL, 0) ||
			    engine_start(&engine, &op, 1))
				_exit(1);
			if (i & 2)
				close(fd);
			if (i & 4)
				munmap(self->arena, ARENA);
			_exit(0);
		}
		EXPECT_TRUE(succeeds(child));
	}
}

/* Races: threads that read, while others unmap memory and fork. */

struct race {
	int fd;
	unsigned char *p;
	size_t size;
	bool stop;
	long wrong;
	long rounds;
};

/* A read returns the disk's data, or a fault if a page is missing. */
static void *race_read(void *data)
{
	struct race *race = data;
	struct engine engine;
	unsigned int i = 0;

	if (engine_init(&engine, ENGINE_AIO, NULL, 0))
		race->wrong = 1000000;
	while (!__atomic_load_n(&race->stop, __ATOMIC_RELAXED)) {
		struct iovec iov = {
			.iov_base = race->p + i % 7 * 4 * KIB,
			.iov_len = i % 3 ? 4 * KIB : 64 * KIB,
		};
		struct op op = {
			.fd = race->fd, .iov = &iov, .nr = 1,
			.offset = i % 4096 * 512, .write = i % 5 == 4,
		};

		/* Into memory that is not compared. */
		if (op.write)
			op.offset += 4 * MIB;
		if (i & 1) {
			if (engine_run(&engine, &op, 1))
				race->wrong++;
		} else {
			op.result = op.write ?
				pwrite(race->fd, iov.iov_base, iov.iov_len,
				       op.offset) :
				pread(race->fd, iov.iov_base, iov.iov_len,
				      op.offset);
			if (op.result < 0)
				op.result = -errno;
		}
		/* A part, or nothing, if pages are missing. */
		if (op.result != (long)iov.iov_len && op.result != -EFAULT &&
		    op.result != -EIO && op.result < 0)
			race->wrong++;
		i++;
	}
	__atomic_add_fetch(&race->rounds, i, __ATOMIC_RELAXED);
	engine_exit(&engine);
	return NULL;
}

static void *race_fork(void *data)
{
	struct race *race = data;

	while (!__atomic_load_n(&race->stop, __ATOMIC_RELAXED)) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		if (child < 0 || !succeeds(child))
			race->wrong++;
	}
	return NULL;
}

static unsigned int runs(void)
{
	const char *text = getenv("RUNS");

	return text ? strtoul(text, NULL, 0) : 300;
}

TEST_F_TIMEOUT(reg, race, LONG_TIMEOUT)
{
	struct race race = { .fd = self->fd, .size = 256 * KIB };
	unsigned char *guard = self->arena;
	pthread_t readers[2], forker;
	unsigned int i, j, ended = 0;

	race.p = anon(race.size);
	memset(guard, 0x66, ARENA);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&readers[i], NULL, race_read,
					    &race));
	ASSERT_EQ(0, pthread_create(&forker, NULL, race_fork, &race));
	for (i = 0; i < runs(); i++) {
		int err = reg(race.fd, race.p, race.size);

		/* fork() may change page tables again and again. */
		ASSERT_TRUE(!err || err == -EAGAIN);
		ASSERT_TRUE(i % 4 == 0 ? by_mmap(race.p, race.size) :
			    i % 4 == 1 ? by_dontneed(race.p, 64 * KIB) :
			    i % 4 == 2 ? by_munmap(race.p, race.size) &&
					 by_mmap(race.p, race.size) : true);
		if (unreg(race.fd, race.p, race.size))
			ended++;
		/* Freed pages that others got keep the others' data. */
		for (j = 0; j < ARENA; j += 64 * KIB)
			ASSERT_TRUE(all(guard + j, 64 * KIB, 0x66));
	}
	race.stop = true;
	for (i = 0; i < 2; i++)
		pthread_join(readers[i], NULL);
	pthread_join(forker, NULL);
	EXPECT_EQ(0, race.wrong);
	EXPECT_LE(runs() / 4 * 3 - 3, ended);
	EXPECT_LT(0, race.rounds);
	TH_LOG("%ld I/Os", race.rounds);
	EXPECT_EQ(0, reg(race.fd, race.p, race.size));
	for (i = 0; i < 16; i++)
		EXPECT_TRUE(reads(race.fd, race.p, 64 * KIB, 0));
}

/*
 * fork() beside reads, compared byte by byte: in each round, a child must see
 * the memory as it was at the fork, and the parent what it reads.
 */
TEST_F_TIMEOUT(reg, race_fork_bytes, LONG_TIMEOUT)
{
	struct race race = { .fd = self->fd };
	unsigned char *p = self->arena;
	size_t size = 8 * self->page;
	unsigned int i, lost = 0;
	pthread_t forker;

	ASSERT_EQ(0, reg(self->fd, p, size));
	ASSERT_EQ(0, pthread_create(&forker, NULL, race_fork, &race));
	for (i = 0; i < runs(); i++) {
		off_t at = i % 64 * 512;
		pid_t child;

		ASSERT_TRUE(reads(self->fd, p, size, at));
		child = fork();
		ASSERT_LE(0, child);
		if (!child) {
			size_t j;

			usleep(i % 3 * 100);
			for (j = 0; j < size; j++)
				if (p[j] != stamped(at + j))
					_exit(1);
			_exit(0);
		}
		/* Stores and reads while the child looks. */
		ASSERT_TRUE(reads(self->fd, p, size, at + 512 * 64));
		ASSERT_TRUE(succeeds(child));
	}
	race.stop = true;
	pthread_join(forker, NULL);
	EXPECT_EQ(0, race.wrong);
	lost = unreg(self->fd, p, size) != 0;
	EXPECT_EQ(0, lost);
}

TEST_HARNESS_MAIN
