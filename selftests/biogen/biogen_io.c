// SPDX-License-Identifier: GPL-2.0
/*
 * biogen against O_DIRECT: two disks with the same data, one read and written
 * through its block device, the other through biogen. The same requests to both
 * give the same results, buffers and disks.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include "engine.h"
#include "util.h"

#define DISK_MIB	8
#define DISK_SIZE	(DISK_MIB * MIB)
#define BAD_SECTOR	4096
#define ARENA		(6 * MIB)
#define MAX_IO		(4 * MIB)
#define MAX_IOVECS	600
#define ROUNDS		80
#define GUARD		(4 * KIB)

/* Which side of the comparison. */
enum { DIRECT, THROUGH_BIOGEN, SIDES };

/* Kinds of memory that buffers are taken from. */
enum { ANONYMOUS, HUGE, SHARED, SHARED_FILE, ARENAS };

FIXTURE(io) {
	struct disk disk;
	struct engine engine[SIDES];
	int fd[SIDES];
	unsigned char *arena[ARENAS][SIDES];
	unsigned int align;
	struct rng rng;
};

/* Disks with bad blocks have them from BAD_SECTOR on. */
FIXTURE_VARIANT(io) {
	struct disk disk;
	enum engine_kind engine;
};

/* Ends at once, in the submitter. */
#define BRD	.mib = DISK_MIB, .block = 512
/* Ends at once, too, unless it is polled. */
#define NULL_BLK	BRD, .null_blk = true
/* Ends later, in an interrupt. */
#define TIMER	NULL_BLK, .delay_ns = 100000
/* Some blocks fail. */
#define BAD	.badblocks = "4096-4103"
/* Disks of other drivers, made by the caller and named in $DISKS. */
#define GIVEN	BRD, .given = true

FIXTURE_VARIANT_ADD(io, brd_sync) { .disk = { BRD }, .engine = ENGINE_SYNC };
FIXTURE_VARIANT_ADD(io, brd_vector) { .disk = { BRD }, .engine = ENGINE_VECTOR };
FIXTURE_VARIANT_ADD(io, brd_aio) { .disk = { BRD }, .engine = ENGINE_AIO };
FIXTURE_VARIANT_ADD(io, brd_uring) { .disk = { BRD }, .engine = ENGINE_URING };
FIXTURE_VARIANT_ADD(io, brd_fixed) { .disk = { BRD }, .engine = ENGINE_FIXED };
FIXTURE_VARIANT_ADD(io, timer_sync) { .disk = { TIMER }, .engine = ENGINE_SYNC };
FIXTURE_VARIANT_ADD(io, timer_vector) { .disk = { TIMER }, .engine = ENGINE_VECTOR };
FIXTURE_VARIANT_ADD(io, timer_aio) { .disk = { TIMER }, .engine = ENGINE_AIO };
FIXTURE_VARIANT_ADD(io, timer_uring) { .disk = { TIMER }, .engine = ENGINE_URING };
FIXTURE_VARIANT_ADD(io, timer_fixed) { .disk = { TIMER }, .engine = ENGINE_FIXED };
FIXTURE_VARIANT_ADD(io, polled) { .disk = { NULL_BLK }, .engine = ENGINE_POLLED };
FIXTURE_VARIANT_ADD(io, block4k_sync) {
	.disk = { .mib = DISK_MIB, .block = 4096, .null_blk = true }, .engine = ENGINE_SYNC,
};

FIXTURE_VARIANT_ADD(io, block4k_aio) {
	.disk = { .mib = DISK_MIB, .block = 4096, .null_blk = true }, .engine = ENGINE_AIO,
};

FIXTURE_VARIANT_ADD(io, bad_sync) { .disk = { NULL_BLK, BAD }, .engine = ENGINE_SYNC };
FIXTURE_VARIANT_ADD(io, bad_late) { .disk = { TIMER, BAD }, .engine = ENGINE_SYNC };
FIXTURE_VARIANT_ADD(io, bad_vector) { .disk = { TIMER, BAD }, .engine = ENGINE_VECTOR };
FIXTURE_VARIANT_ADD(io, bad_aio) { .disk = { TIMER, BAD }, .engine = ENGINE_AIO };
FIXTURE_VARIANT_ADD(io, bad_uring) { .disk = { NULL_BLK, BAD }, .engine = ENGINE_URING };
FIXTURE_VARIANT_ADD(io, given_sync) { .disk = { GIVEN }, .engine = ENGINE_SYNC };
FIXTURE_VARIANT_ADD(io, given_vector) { .disk = { GIVEN }, .engine = ENGINE_VECTOR };
FIXTURE_VARIANT_ADD(io, given_aio) { .disk = { GIVEN }, .engine = ENGINE_AIO };
FIXTURE_VARIANT_ADD(io, given_uring) { .disk = { GIVEN }, .engine = ENGINE_URING };
FIXTURE_VARIANT_ADD(io, given_fixed) { .disk = { GIVEN }, .engine = ENGINE_FIXED };

static unsigned char *map_arena(int kind)
{
	int fd = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	size_t size = ARENA;
	unsigned char *p;

	switch (kind) {
	case HUGE:
		size += 2 * MIB;
		break;
	case SHARED:
		flags = MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE;
		break;
	case SHARED_FILE:
		flags = MAP_SHARED | MAP_POPULATE;
		fd = memfd_create("arena", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, size))
			return NULL;
		break;
	}
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (fd >= 0)
		close(fd);
	if (p == MAP_FAILED)
		return NULL;
	if (flags & MAP_POPULATE)
		return p;
	/* Pages are allocated at the first touch, after madvise(). */
	if (kind == HUGE) {
		p += -(unsigned long)p % (2 * MIB);
		/* A kernel without huge pages does not support the call. */
		madvise(p, ARENA, MADV_HUGEPAGE);
	} else {
		madvise(p, ARENA, MADV_NOHUGEPAGE);
	}
	memset(p, 0, ARENA);
	return p;
}

/*
 * Write the same random data to both disks, but not through the page cache,
 * which would lose some of the data beside a bad block.
 */
static bool fill_disks(struct disk *disk, struct rng *rng)
{
	const size_t step = 64 * KIB;
	unsigned char *buf = aligned_alloc(4096, step);
	ssize_t done[SIDES];
	bool good = true;
	int fd[SIDES];
	size_t pos;
	int side;

	for (side = 0; side < SIDES; side++)
		fd[side] = open(disk_path(disk, side), O_WRONLY | O_DIRECT);
	for (pos = 0; pos < DISK_SIZE; pos += step) {
		rng_fill(rng, buf, step);
		for (side = 0; side < SIDES; side++)
			done[side] = pwrite(fd[side], buf, step, pos);
		if (done[0] != done[1] ||
		    (done[0] != step && !disk->badblocks))
			good = false;
	}
	for (side = 0; side < SIDES; side++)
		close(fd[side]);
	free(buf);
	return good;
}

FIXTURE_SETUP(io)
{
	struct iovec buffers[ARENAS * SIDES];
	int kind, side;

	self->disk = variant->disk;
	rng_init(&self->rng, 0);
	if (variant->disk.given && !getenv("DISKS"))
		SKIP(return, "no disks are given");
	ASSERT_EQ(0, biogen_unload());
	ASSERT_EQ(0, disks_create(&self->disk, SIDES));
	if (variant->engine == ENGINE_POLLED && !disk_polls(&self->disk)) {
		disks_destroy();
		SKIP(return, "null_blk does not poll");
	}
	ASSERT_TRUE(fill_disks(&self->disk, &self->rng));
	self->align = disk_dma_mask(&self->disk) + 1;
	/* null_blk writes beyond its pages if a block is split. */
	if (self->disk.null_blk && self->align < self->disk.block)
		self->align = self->disk.block;
	ASSERT_EQ(0, biogen_load(disk_path(&self->disk, THROUGH_BIOGEN),
				 "write=1"));
	self->fd[DIRECT] = open(disk_path(&self->disk, DIRECT),
				O_RDWR | O_DIRECT);
	ASSERT_LE(0, self->fd[DIRECT]);
	self->fd[THROUGH_BIOGEN] = open(BIOGEN, O_RDWR | O_DIRECT);
	ASSERT_LE(0, self->fd[THROUGH_BIOGEN]);

	for (kind = 0; kind < ARENAS; kind++) {
		for (side = 0; side < SIDES; side++) {
			self->arena[kind][side] = map_arena(kind);
			ASSERT_NE(NULL, self->arena[kind][side]);
			buffers[kind * SIDES + side].iov_base =
				self->arena[kind][side];
			buffers[kind * SIDES + side].iov_len = ARENA;
		}
	}
	for (side = 0; side < SIDES; side++) {
		kind = variant->engine;
		/* O_DIRECT on 6.1 polls for ever for a split I/O. */
		if (kind == ENGINE_POLLED && side == DIRECT)
			kind = ENGINE_URING;
		ASSERT_EQ(0, engine_init(&self->engine[side], kind, buffers,
					 ARENAS * SIDES));
	}
}

FIXTURE_TEARDOWN(io)
{
	engine_exit(&self->engine[THROUGH_BIOGEN]);
	engine_exit(&self->engine[DIRECT]);
	close(self->fd[THROUGH_BIOGEN]);
	close(self->fd[DIRECT]);
	EXPECT_EQ(0, biogen_unload());
	EXPECT_EQ(0, disks_destroy());
}

/**
 * struct shape - an I/O as both sides do it
 * @write: direction
 * @kind: of the memory
 * @offset: on the disk
 * @start: of the first buffer in the arena
 * @end: of the last one
 * @length: of all buffers
 * @iov: the buffers, relative to the arena
 * @nr: how many
 */
struct shape {
	bool write;
	int kind;
	off_t offset;
	size_t start;
	size_t end;
	size_t length;
	struct iovec iov[MAX_IOVECS];
	int nr;
};

static void shape_add(struct shape *shape, size_t at, size_t len)
{
	if (!shape->nr)
		shape->start = at;
	shape->iov[shape->nr].iov_base = (void *)at;
	shape->iov[shape->nr++].iov_len = len;
	shape->end = at + len;
	shape->length += len;
}

static size_t random_blocks(struct rng *rng)
{
	static const unsigned int limit[] = { 1, 8, 8, 64, 256, 512, 2000 };

	return 1 + rng_below(rng, limit[rng_below(rng, 7)]);
}

/* Any place on the device, also at its end and past it. */
static void random_shape(struct shape *shape, struct rng *rng,
			 const struct _test_data_io *self)
{
	bool one = self->engine[DIRECT].kind == ENGINE_FIXED || rng_below(rng, 2);
	size_t block = self->disk.block, at, length, most, part;

	memset(shape, 0, offsetof(struct shape, iov));
	shape->nr = 0;
	shape->write = rng_below(rng, 2);
	shape->kind = rng_below(rng, ARENAS);
	length = random_blocks(rng) * block;
	if (!rng_below(rng, 12))
		length = rng_below(rng, MAX_IO / block) * block + block;
	if (length > MAX_IO)
		length = MAX_IO;
	shape->offset = rng_below(rng, DISK_SIZE / block) * block;
	if (!rng_below(rng, 6))
		shape->offset = DISK_SIZE - rng_below(rng, 20) * block;
	if (self->disk.badblocks && rng_below(rng, 2))
		shape->offset = BAD_SECTOR * 512 - rng_below(rng, 20) * block;

	at = rng_below(rng, 16) ? rng_below(rng, 128) * self->align : 4 * KIB;
	if (one) {
		shape_add(shape, at, length);
		return;
	}
	/* Few large segments or many small ones, with and without gaps. */
	most = rng_below(rng, 2) ? 4 : 1 + length / block / 2;
	for (; length; length -= part) {
		part = (1 + rng_below(rng, most)) * block;
		if (part > length || shape->nr == MAX_IOVECS - 1)
			part = length;
		shape_add(shape, at, part);
		at += part;
		if (rng_below(rng, 2))
			at += rng_below(rng, 8) * self->align;
		/* No gaps when little room is left. */
		if (length > part && at + length + MIB > ARENA) {
			shape_add(shape, at, length - part);
			break;
		}
	}
}

/* Prepare the same buffers on both sides, and an operation for each side. */
static void prepare(struct _test_data_io *self, const struct shape *shape,
		    struct op op[SIDES], struct iovec iov[SIDES][MAX_IOVECS])
{
	unsigned char *base;
	int side, i;

	base = self->arena[shape->kind][DIRECT];
	if (shape->write)
		rng_fill(&self->rng, base + shape->start,
			 shape->end - shape->start);
	else
		memset(base + shape->start, 0xa5, shape->end - shape->start);
	memcpy(self->arena[shape->kind][THROUGH_BIOGEN] + shape->start,
	       base + shape->start, shape->end - shape->start);

	for (side = 0; side < SIDES; side++) {
		base = self->arena[shape->kind][side];
		for (i = 0; i < shape->nr; i++) {
			iov[side][i].iov_base = base +
				(size_t)shape->iov[i].iov_base;
			iov[side][i].iov_len = shape->iov[i].iov_len;
		}
		op[side] = (struct op) {
			.fd	= self->fd[side],
			.write	= shape->write,
			.iov	= iov[side],
			.nr	= shape->nr,
			.buffer	= shape->kind * SIDES + side,
			.offset	= shape->offset,
		};
	}
}

/* Compare the buffers, and a little on either side of them. */
static bool same_buffers(struct _test_data_io *self, const struct shape *shape)
{
	size_t from = shape->start > GUARD ? shape->start - GUARD : 0;
	size_t to = shape->end + GUARD < ARENA ? shape->end + GUARD : ARENA;

	return !memcmp(self->arena[shape->kind][DIRECT] + from,
		       self->arena[shape->kind][THROUGH_BIOGEN] + from,
		       to - from);
}

/* The number of bytes done by a failed I/O is undefined: make it the same. */
static void mend(struct _test_data_io *self, const struct shape *shape)
{
	size_t from = shape->start & -4096UL, i;
	static unsigned char zero[4 * KIB] __attribute__((aligned(4096)));
	int side;

	memcpy(self->arena[shape->kind][THROUGH_BIOGEN] + from,
	       self->arena[shape->kind][DIRECT] + from, shape->end - from);
	if (!shape->write)
		return;
	for (i = shape->offset & -4096UL;
	     i < shape->offset + shape->length && i < DISK_SIZE; i += 4 * KIB)
		for (side = 0; side < SIDES; side++)
			if (pwrite(self->fd[side], zero, 4 * KIB, i) < 0)
				break;
}

static void explain(struct __test_metadata *_metadata,
		    const struct shape *shape, struct op op[SIDES])
{
	TH_LOG("%s at %#lx of %zu bytes in %d buffers from %#zx, memory %d: %ld, by biogen %ld",
	       shape->write ? "write" : "read", (long)shape->offset,
	       shape->length, shape->nr, shape->start, shape->kind,
	       op[DIRECT].result, op[THROUGH_BIOGEN].result);
}

static void compare_one(struct __test_metadata *_metadata,
			struct _test_data_io *self, const struct shape *shape)
{
	static struct iovec iov[SIDES][MAX_IOVECS];
	struct op op[SIDES];
	int side;

	prepare(self, shape, op, iov);
	for (side = 0; side < SIDES; side++)
		ASSERT_EQ(0, engine_run(&self->engine[side], &op[side], 1));
	/* Since 6.18, O_DIRECT may detect that late, or not at all. */
	if (shape->start % self->align &&
	    op[THROUGH_BIOGEN].result == -EINVAL)
		op[DIRECT].result = -EINVAL;
	ASSERT_EQ(op[DIRECT].result, op[THROUGH_BIOGEN].result) {
		explain(_metadata, shape, op);
	}
	if (op[DIRECT].result < 0) {
		mend(self, shape);
		return;
	}
	ASSERT_TRUE(same_buffers(self, shape)) {
		explain(_metadata, shape, op);
	}
}

/* The disks hold the same, as seen by biogen and from under it. */
static void compare_disks(struct __test_metadata *_metadata,
			  struct _test_data_io *self, bool bad)
{
	int under = open(disk_path(&self->disk, THROUGH_BIOGEN),
			 O_RDONLY | O_DIRECT);
	unsigned char *direct = self->arena[ANONYMOUS][DIRECT];
	unsigned char *other = self->arena[ANONYMOUS][THROUGH_BIOGEN];
	ssize_t got;
	size_t pos, step = 64 * KIB;

	ASSERT_LE(0, under);
	for (pos = 0; pos < DISK_SIZE; pos += step) {
		got = pread(self->fd[DIRECT], direct, step, pos);
		ASSERT_EQ(got, pread(self->fd[THROUGH_BIOGEN], other, step,
				     pos));
		ASSERT_TRUE(got == step || bad);
		if (got < 0)
			continue;
		ASSERT_EQ(0, memcmp(direct, other, step)) {
			TH_LOG("at %#zx", pos);
		}
		ASSERT_EQ(got, pread(under, other, step, pos));
		ASSERT_EQ(0, memcmp(direct, other, step)) {
			TH_LOG("under biogen at %#zx", pos);
		}
	}
	close(under);
}

/* Random places, lengths, buffers and kinds of memory. */
TEST_F_TIMEOUT(io, random, TIMEOUT)
{
	static struct shape shape;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		random_shape(&shape, &self->rng, self);
		compare_one(_metadata, self, &shape);
	}
	compare_disks(_metadata, self, variant->disk.badblocks);
}

/* Right and wrong places and lengths, at the end of the disk and beyond. */
TEST_F_TIMEOUT(io, edges, TIMEOUT)
{
	const size_t block = variant->disk.block;
	const off_t offsets[] = {
		0, 1, 256, block, 1024, 4096, DISK_SIZE - 1024 * 1024,
		DISK_SIZE - 4096, DISK_SIZE - block, DISK_SIZE - block / 2,
		DISK_SIZE, DISK_SIZE + block, 1LL << 50, -block, -2,
		0x7ffffffffffff000
	};
	const size_t lengths[] = {
		0, 1, block - 1, block, block + 1, 3 * block, 4096, 8192,
		256 * KIB, MIB + block
	};
	/* In the arena: aligned, as far as needed, across pages, not enough. */
	const size_t places[] = {
		0, self->align, 4096 - self->align,
		4096 + (disk_dma_mask(&self->disk) + 1 == self->align ?
			self->align / 2 : 1)
	};
	static struct shape shape;
	int o, l, p, write;

	for (o = 0; o < ARRAY_SIZE(offsets); o++) {
		for (l = 0; l < ARRAY_SIZE(lengths); l++) {
			for (p = 0; p < ARRAY_SIZE(places); p++) {
				/* One place is enough for long requests. */
				if (lengths[l] > 64 * KIB && p != 1)
					continue;
				for (write = 0; write < 2; write++) {
					memset(&shape, 0, sizeof(shape));
					shape.write = write;
					shape.offset = offsets[o];
					shape_add(&shape, places[p],
						  lengths[l]);
					compare_one(_metadata, self, &shape);
				}
			}
		}
	}
	compare_disks(_metadata, self, variant->disk.badblocks);
}

/*
 * Whether O_DIRECT fails where biogen does a part: with more than 256 pages,
 * and asynchronously on 5.10 with any number.
 */
static bool fault_is_error(const struct op *op, size_t pages)
{
	struct utsname name;

	if (pages > 256)
		return op->result == -EIO || op->result == -EFAULT;
	return op->result == -EIO && !uname(&name) &&
	       !strncmp(name.release, "5.", 2);
}

/* Buffers that are unmapped, or read-only, from some page on. */
TEST_F_TIMEOUT(io, fault, TIMEOUT)
{
	const size_t hole = 2 * MIB, page = 4096;
	const size_t before[] = { 0, 1, 2, 7, 8, 64, 255, 256, 300 };
	const size_t block = variant->disk.block;
	static struct shape shape;
	int side, b, write, many;

	if (variant->engine == ENGINE_FIXED)
		SKIP(return, "registered buffers are always there");
	for (side = 0; side < SIDES; side++) {
		unsigned char *p = self->arena[ANONYMOUS][side] + hole;

		ASSERT_EQ(0, mprotect(p, MIB, PROT_NONE));
	}
	for (b = 0; b < ARRAY_SIZE(before); b++) {
		for (write = 0; write < 2; write++) {
			for (many = 0; many < 2; many++) {
				static struct iovec iov[SIDES][MAX_IOVECS];
				size_t at = hole - before[b] * page;
				size_t len = (before[b] + 4) * page;
				struct op op[SIDES];
				size_t i;

				memset(&shape, 0, sizeof(shape));
				shape.write = write;
				shape.offset = 64 * KIB;
				/* Inaccessible pages are not prepared. */
				shape_add(&shape, at, before[b] * page);
				prepare(self, &shape, op, iov);
				memset(&shape, 0, sizeof(shape));
				shape.write = write;
				shape.offset = 64 * KIB;
				for (i = 0; many && i + page < len; i += page)
					shape_add(&shape, at + i, page);
				shape_add(&shape, at + i, len - i);
				for (side = 0; side < SIDES; side++) {
					unsigned char *base =
						self->arena[0][side];

					for (i = 0; i < shape.nr; i++) {
						iov[side][i] = shape.iov[i];
						iov[side][i].iov_base += (size_t)base;
					}
					op[side].nr = shape.nr;
					ASSERT_EQ(0, engine_run(&self->engine[side],
								&op[side], 1));
				}
				if (fault_is_error(&op[DIRECT],
						   before[b] + 4))
					op[DIRECT].result = before[b] ?
						before[b] * page : -EFAULT;
				EXPECT_EQ(op[DIRECT].result,
					  op[THROUGH_BIOGEN].result) {
					explain(_metadata, &shape, op);
				}
				shape.length = shape.write ? shape.length : 0;
				shape.end = hole;
				if (op[DIRECT].result != (long)shape.length)
					mend(self, &shape);
			}
		}
	}
	for (side = 0; side < SIDES; side++)
		ASSERT_EQ(0, mprotect(self->arena[ANONYMOUS][side] + hole, MIB,
				      PROT_READ | PROT_WRITE));
	/* Reads into read-only memory. */
	for (side = 0; side < SIDES; side++)
		ASSERT_EQ(0, mprotect(self->arena[HUGE][side], ARENA,
				      PROT_READ));
	for (b = 0; b < 3; b++) {
		struct iovec iov[SIDES];
		struct op op[SIDES];

		for (side = 0; side < SIDES; side++) {
			iov[side].iov_base = self->arena[HUGE][side];
			iov[side].iov_len = block << (3 * b);
			op[side] = (struct op) {
				.fd = self->fd[side],
				.iov = &iov[side],
				.nr = 1,
			};
			ASSERT_EQ(0, engine_run(&self->engine[side], &op[side], 1));
		}
		/* O_DIRECT before 6.0 may return -EIO if it is asynchronous. */
		EXPECT_EQ(-EFAULT, op[THROUGH_BIOGEN].result);
	}
	compare_disks(_metadata, self, variant->disk.badblocks);
}

/* A bad block fails alone, and in the middle of a long I/O. */
TEST_F_TIMEOUT(io, bad_block, TIMEOUT)
{
	const off_t bad = BAD_SECTOR * 512;
	const int buffer = ANONYMOUS * SIDES + THROUGH_BIOGEN;
	struct iovec iov = {
		.iov_base = self->arena[ANONYMOUS][THROUGH_BIOGEN]
	};
	struct op op = {
		.fd = self->fd[THROUGH_BIOGEN], .iov = &iov, .nr = 1,
		.buffer = buffer,
	};
	size_t len;
	int write;

	for (len = variant->disk.block; len <= 4 * MIB; len *= 2) {
		for (write = 0; write < 2; write++) {
			op.write = write;
			op.offset = bad - (len > 8192 ? len / 2 : 0);
			iov.iov_len = len;
			ASSERT_EQ(0, engine_run(&self->engine[THROUGH_BIOGEN], &op, 1));
			EXPECT_EQ(variant->disk.badblocks ? -EIO : (long)len,
				  op.result);
		}
	}
}

/* Many I/Os in flight together; their places do not overlap. */
TEST_F_TIMEOUT(io, together, TIMEOUT)
{
	static struct iovec iov[SIDES][ENGINE_DEPTH][MAX_IOVECS];
	static struct shape shape[ENGINE_DEPTH];
	static struct op op[SIDES][ENGINE_DEPTH];
	size_t area = DISK_SIZE / ENGINE_DEPTH;
	size_t room = ARENA / ENGINE_DEPTH & -4096UL;
	int round, i, side;

	for (round = 0; round < 8; round++) {
		int kind = rng_below(&self->rng, ARENAS);

		for (i = 0; i < ENGINE_DEPTH; i++) {
			struct op one[SIDES];
			static struct iovec two[SIDES][MAX_IOVECS];
			size_t most = (room - 4 * KIB) / self->disk.block;

			memset(&shape[i], 0, offsetof(struct shape, iov));
			shape[i].nr = 0;
			shape[i].kind = kind;
			shape[i].write = rng_below(&self->rng, 2);
			shape[i].offset = i * area;
			shape_add(&shape[i], i * room + self->align,
				  (1 + rng_below(&self->rng, most)) *
				  self->disk.block);
			prepare(self, &shape[i], one, two);
			for (side = 0; side < SIDES; side++) {
				iov[side][i][0] = two[side][0];
				op[side][i] = one[side];
				op[side][i].iov = iov[side][i];
			}
		}
		for (side = 0; side < SIDES; side++)
			ASSERT_EQ(0, engine_run(&self->engine[side], op[side],
						ENGINE_DEPTH));
		for (i = 0; i < ENGINE_DEPTH; i++) {
			ASSERT_EQ(op[DIRECT][i].result,
				  op[THROUGH_BIOGEN][i].result);
			if (op[DIRECT][i].result < 0) {
				mend(self, &shape[i]);
				continue;
			}
			ASSERT_TRUE(same_buffers(self, &shape[i]));
		}
	}
	compare_disks(_metadata, self, variant->disk.badblocks);
}

/* The block device's page cache and biogen see each other's writes. */
TEST_F_TIMEOUT(io, coherent, TIMEOUT)
{
	unsigned char *data = self->arena[ANONYMOUS][DIRECT];
	unsigned char *seen = self->arena[ANONYMOUS][THROUGH_BIOGEN];
	int cached;
	unsigned char *map;
	struct iovec iov;
	struct op op = { .fd = self->fd[THROUGH_BIOGEN], .iov = &iov,
			 .nr = 1 };
	int i;

	if (variant->disk.badblocks)
		SKIP(return, "no page cache of blocks that fail");
	cached = open(disk_path(&self->disk, THROUGH_BIOGEN), O_RDWR);
	ASSERT_LE(0, cached);
	map = mmap(NULL, DISK_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, cached,
		   0);
	ASSERT_NE(MAP_FAILED, map);
	for (i = 0; i < ROUNDS; i++) {
		size_t block = self->disk.block;
		size_t len = random_blocks(&self->rng) * block;
		off_t pos = rng_below(&self->rng, (DISK_SIZE - MAX_IO) / block);

		pos *= block;
		if (len > MAX_IO)
			len = MAX_IO;
		rng_fill(&self->rng, data, len);
		iov.iov_base = seen;
		iov.iov_len = len;
		op.buffer = ANONYMOUS * SIDES + THROUGH_BIOGEN;
		op.offset = pos;
		op.write = rng_below(&self->rng, 2);
		if (op.write) {
			/* Sometimes the overwritten data are in the cache. */
			if (rng_below(&self->rng, 2))
				ASSERT_EQ(len, pread(cached, seen, len, pos));
			memcpy(seen, data, len);
		} else if (rng_below(&self->rng, 2)) {
			ASSERT_EQ(len, pwrite(cached, data, len, pos));
		} else {
			memcpy(map + pos, data, len);
		}
		ASSERT_EQ(0, engine_run(&self->engine[THROUGH_BIOGEN], &op, 1));
		ASSERT_EQ(len, op.result);
		if (op.write && rng_below(&self->rng, 2))
			memcpy(seen, map + pos, len);
		else if (op.write)
			ASSERT_EQ(len, pread(cached, seen, len, pos));
		ASSERT_EQ(0, memcmp(data, seen, len)) {
			TH_LOG("%s of %zu bytes at %#lx",
			       op.write ? "write" : "read", len, (long)pos);
		}
	}
	munmap(map, DISK_SIZE);
	close(cached);
}

/*
 * A buffer that is a mapped file is written back with the data read into it:
 * its pages are dirty after the read, although they were clean before.
 */
TEST_F_TIMEOUT(io, dirties, TIMEOUT)
{
	const size_t sizes[] = { 512, 4096, 32 * KIB, 40 * KIB, 256 * KIB };
	int file;
	unsigned char *expected = self->arena[ANONYMOUS][DIRECT];
	unsigned char *seen = self->arena[ANONYMOUS][THROUGH_BIOGEN];
	unsigned char *map;
	struct iovec iov;
	struct op op = { .fd = self->fd[THROUGH_BIOGEN], .iov = &iov,
			 .nr = 1 };
	int i;

	if (variant->engine == ENGINE_FIXED)
		SKIP(return, "pages of files cannot be registered");
	if (variant->disk.badblocks)
		SKIP(return, "no page cache of blocks that fail");
	file = open(disk_path(&self->disk, DIRECT), O_RDWR);
	ASSERT_LE(0, file);
	map = mmap(NULL, DISK_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file,
		   0);
	ASSERT_NE(MAP_FAILED, map);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		size_t len = sizes[i], at = (i + 1) * MIB;

		if (len < self->disk.block)
			continue;
		rng_fill(&self->rng, expected, len);
		ASSERT_EQ(len, pwrite(self->fd[THROUGH_BIOGEN], expected, len,
				      at));
		/* In the cache and clean. */
		memset(map + at, 0, len);
		ASSERT_EQ(0, fsync(file));
		iov.iov_base = map + at;
		iov.iov_len = len;
		op.offset = at;
		ASSERT_EQ(0, engine_run(&self->engine[THROUGH_BIOGEN], &op, 1));
		ASSERT_EQ(len, op.result);
		ASSERT_EQ(0, memcmp(expected, map + at, len));
		ASSERT_EQ(0, madvise(map + at, (len + 4095) & -4096UL,
				     MADV_DONTNEED));
		ASSERT_EQ(0, fsync(file));
		ASSERT_EQ(0, ioctl(file, BLKFLSBUF, 0));
		write_text("/proc/sys/vm/drop_caches", "1");
		ASSERT_EQ(len, pread(self->fd[DIRECT], seen, len, at));
		EXPECT_EQ(0, memcmp(expected, seen, len)) {
			TH_LOG("%zu bytes were lost", len);
		}
	}
	munmap(map, DISK_SIZE);
	close(file);
}

/* Asked not to wait, it does everything or returns EAGAIN. */
TEST_F_TIMEOUT(io, nowait, TIMEOUT)
{
	struct iovec iov = { self->arena[ANONYMOUS][THROUGH_BIOGEN], 0 };
	unsigned char *expected = self->arena[ANONYMOUS][DIRECT];
	size_t len;
	ssize_t ret;
	int again = 0;

	for (len = 4096; len <= MAX_IO; len *= 4) {
		iov.iov_len = len;
		do {
			ret = preadv2(self->fd[THROUGH_BIOGEN], &iov, 1, 0,
				      RWF_NOWAIT);
		} while (ret < 0 && errno == EAGAIN && again++ < 1000);
		if (ret < 0)
			ASSERT_TRUE(errno == EAGAIN || errno == EOPNOTSUPP);
		if (ret < 0)
			continue;
		ASSERT_EQ(len, ret);
		ASSERT_EQ(len, pread(self->fd[DIRECT], expected, len, 0));
		ASSERT_EQ(0, memcmp(expected, iov.iov_base, len));
	}
}

/* A transfer that must not wait, tried again while the device is busy. */
static long nowait(int fd, struct iovec *iov, bool write)
{
	int tries = 100;
	ssize_t ret;

	do {
		ret = write ? pwritev2(fd, iov, 1, 0, RWF_NOWAIT) :
			      preadv2(fd, iov, 1, 0, RWF_NOWAIT);
	} while (ret < 0 && errno == EAGAIN && --tries);
	return ret < 0 ? -errno : ret;
}

/*
 * Cached pages make a transfer that must not wait fail, and only a transfer
 * that O_DIRECT on the block device refuses, too.
 */
TEST_F_TIMEOUT(io, nowait_cached, TIMEOUT)
{
	unsigned char *data = self->arena[ANONYMOUS][THROUGH_BIOGEN];
	struct iovec iov = { data, 4096 };
	long under_did, biogen_did;
	int cached, under, write;

	if (variant->disk.badblocks)
		SKIP(return, "no page cache of blocks that fail");
	cached = open(disk_path(&self->disk, THROUGH_BIOGEN), O_RDWR);
	ASSERT_LE(0, cached);
	under = open(disk_path(&self->disk, THROUGH_BIOGEN),
		     O_RDWR | O_DIRECT);
	ASSERT_LE(0, under);

	/* Clean. */
	ASSERT_EQ(4096, pread(cached, data, 4096, 0));
	for (write = 0; write < 2; write++) {
		under_did = nowait(under, &iov, write);
		biogen_did = nowait(self->fd[THROUGH_BIOGEN], &iov, write);
		EXPECT_EQ(under_did > 0, biogen_did > 0) {
			TH_LOG("%d: %ld, by biogen %ld", write, under_did,
			       biogen_did);
		}
	}
	/* Dirty. */
	ASSERT_EQ(4096, pwrite(cached, data, 4096, 0));
	EXPECT_GT(0, nowait(self->fd[THROUGH_BIOGEN], &iov, false));
	EXPECT_GT(0, nowait(self->fd[THROUGH_BIOGEN], &iov, true));
	EXPECT_GT(0, nowait(under, &iov, false));
	close(under);
	close(cached);
}

/* A disk on which each I/O takes seconds. */
#define SLOW_NS		5000000000UL
#define HUNG_TIMEOUT	"/proc/sys/kernel/hung_task_timeout_secs"

FIXTURE(slow) {
	struct disk disk;
	unsigned char *buf;
	int fd;
};

FIXTURE_VARIANT(slow) {
	unsigned long delay_ns;
};

FIXTURE_VARIANT_ADD(slow, slow) {
	.delay_ns = SLOW_NS,
};

FIXTURE_SETUP(slow)
{
	self->disk = (struct disk) {
		.mib = DISK_MIB, .block = 512, .null_blk = true,
		.delay_ns = variant->delay_ns,
	};
	ASSERT_EQ(0, biogen_unload());
	ASSERT_EQ(0, disks_create(&self->disk, 1));
	ASSERT_EQ(0, biogen_load(disk_path(&self->disk, 0), "write=1"));
	self->buf = aligned_alloc(4 * KIB, 64 * KIB);
	ASSERT_NE(NULL, self->buf);
	memset(self->buf, 1, 64 * KIB);
	self->fd = open(BIOGEN, O_RDWR);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(slow)
{
	close(self->fd);
	free(self->buf);
	EXPECT_EQ(0, biogen_unload());
	EXPECT_EQ(0, disks_destroy());
}

/* A task that waits for a slow device is not reported as hung. */
TEST_F_TIMEOUT(slow, not_hung, TIMEOUT)
{
	int status, log = log_begin();
	char before[32];
	pid_t child;

	if (read_text(HUNG_TIMEOUT, before, sizeof(before)))
		SKIP(return, "no search for tasks that hang");
	ASSERT_EQ(0, write_text(HUNG_TIMEOUT, "1"));
	/* By one bio, and by a stream. */
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(pread(self->fd, self->buf, 4 * KIB, 0) != 4 * KIB);
	EXPECT_EQ(64 * KIB, pread(self->fd, self->buf, 64 * KIB, 0));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	ASSERT_EQ(0, write_text(HUNG_TIMEOUT, before));
	EXPECT_FALSE(log_has(log, "blocked for more than"));
	close(log);
}

/* How many writes the disk has done. */
static long disk_writes(const struct disk *disk)
{
	char path[64], text[256];
	long writes;

	snprintf(path, sizeof(path), "/sys/block/%s/stat",
		 strrchr(disk_path(disk, 0), '/') + 1);
	if (read_text(path, text, sizeof(text)) ||
	    sscanf(text, "%*d %*d %*d %*d %ld", &writes) != 1)
		return -1;
	return writes;
}

/* After an fsync, the block device's cached pages are on the device. */
TEST_F_TIMEOUT(slow, fsync, TIMEOUT)
{
	int cached = open(disk_path(&self->disk, 0), O_RDWR);
	long writes;

	ASSERT_LE(0, cached);
	ASSERT_EQ(4 * KIB, pwrite(cached, self->buf, 4 * KIB, 0));
	writes = disk_writes(&self->disk);
	ASSERT_LE(0, writes);
	EXPECT_EQ(0, fsync(self->fd));
	EXPECT_EQ(writes + 1, disk_writes(&self->disk));
	close(cached);
}

TEST_HARNESS_MAIN
