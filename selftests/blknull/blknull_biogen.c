// SPDX-License-Identifier: GPL-2.0
/*
 * biogen on blknull devices with special attributes: alignment below a block,
 * one tag, delays.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "engine.h"
#include "item_fixture.h"

/* One I/O at the beginning of the device: bytes or a negative errno. */
static ssize_t transfer(int fd, bool write, void *buf, size_t len)
{
	ssize_t done = write ? pwrite(fd, buf, len, 0) : pread(fd, buf, len, 0);

	return done < 0 ? -errno : done;
}

/*
 * Memory that ends within a block: biogen does what O_DIRECT does, but only
 * whole blocks, as devices require.
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
 * io_uring first asks for I/O without waiting. With one tag, not all parts of
 * an I/O that the block layer splits could be sent, so none is.
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
	/* Pages that are not adjacent. */
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
 * biogen reads into a page of the page cache that is written back meanwhile:
 * the page is dirty again when the data have arrived.
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

TEST_HARNESS_MAIN
