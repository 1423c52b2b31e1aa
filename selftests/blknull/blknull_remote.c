// SPDX-License-Identifier: GPL-2.0
/*
 * I/O that ends on another CPU: where it ends, its data, and that CPU going
 * offline under load. There are two CPUs, 0 and 1.
 *
 *	RUNS=N	how often it goes; default 5
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "kselftest_harness.h"

#include "engine.h"
#include "item.h"

#define USERS		2
#define BATCH		32
#define BLOCK		4096
#define ONLINE		"/sys/devices/system/cpu/cpu1/online"

/**
 * struct user - a thread that writes blocks of its own, and reads them back
 * @fd: the device
 * @number: which of the threads it is
 * @cpu: the CPU that it runs on, or -1: any
 * @stop: it is to end
 * @rounds: how many batches it has written and read
 * @err: what went wrong: a negative errno, or 1 if data were not what was
 *	written
 */
struct user {
	int fd;
	int number;
	int cpu;
	bool stop;
	unsigned long rounds;
	int err;
};

static int move_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

/* One batch: write random data to the user's blocks, read and compare them. */
static int write_and_read(struct user *user, struct engine *engine,
			  struct rng *rng, unsigned char *data,
			  unsigned char *found)
{
	const off_t base = (off_t)user->number * BATCH * BLOCK;
	struct op op[BATCH];
	struct iovec iov[BATCH];
	int write, i, err;

	rng_fill(rng, data, BATCH * BLOCK);
	memset(found, 0x5a, BATCH * BLOCK);
	for (write = 1; write >= 0; write--) {
		for (i = 0; i < BATCH; i++) {
			iov[i].iov_base = (write ? data : found) + i * BLOCK;
			iov[i].iov_len = BLOCK;
			op[i] = (struct op){
				.fd = user->fd, .write = write, .iov = &iov[i],
				.nr = 1, .offset = base + i * BLOCK,
			};
		}
		err = engine_run(engine, op, BATCH);
		if (err)
			return err;
		for (i = 0; i < BATCH; i++)
			if (op[i].result != BLOCK)
				return op[i].result < 0 ? op[i].result : -EIO;
	}
	return memcmp(data, found, BATCH * BLOCK) ? 1 : 0;
}

static void *use(void *arg)
{
	struct user *user = arg;
	unsigned char *buf;
	struct engine engine;
	struct rng rng;
	uint64_t start;

	buf = mmap(NULL, 2 * BATCH * BLOCK, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	rng_init(&rng, user->number);
	user->err = engine_init(&engine, ENGINE_AIO, NULL, 0);
	if (!user->err && user->cpu >= 0)
		user->err = move_to(user->cpu);
	while (!user->err && !__atomic_load_n(&user->stop, __ATOMIC_RELAXED)) {
		start = now_ns();
		user->err = write_and_read(user, &engine, &rng, buf,
					   buf + BATCH * BLOCK);
		__atomic_fetch_add(&user->rounds, 1, __ATOMIC_RELAXED);
		/*
		 * On a debug kernel, ending I/O takes longer than submitting
		 * it. A CPU that only ends I/O would never go offline.
		 */
		usleep(3 * (now_ns() - start) / 1000);
	}
	engine_exit(&engine);
	munmap(buf, 2 * BATCH * BLOCK);
	return NULL;
}

FIXTURE(remote) {
	struct user user[USERS];
	pthread_t thread[USERS];
	unsigned char *buf;
	int users;
	int fd;
};

FIXTURE_VARIANT(remote) {
	const char *attrs;
};

FIXTURE_VARIANT_ADD(remote, bio) { .attrs = "mode=bio" };
FIXTURE_VARIANT_ADD(remote, split) { .attrs = "mode=bio max_sectors=page" };
FIXTURE_VARIANT_ADD(remote, inline) { .attrs = "mode=mq submit_queues=2" };
FIXTURE_VARIANT_ADD(remote, softirq) { .attrs = "mode=mq completion=softirq" };

FIXTURE_SETUP(remote)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "needs a second CPU");
	self->fd = -1;
	self->buf = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->buf);
	item_remove("a");
	module_unload("blknull");
	ASSERT_EQ(0, items_begin());
}

FIXTURE_TEARDOWN(remote)
{
	int i;

	write_text(ONLINE, "1");
	for (i = 0; i < self->users; i++)
		__atomic_store_n(&self->user[i].stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < self->users; i++) {
		pthread_join(self->thread[i], NULL);
		EXPECT_EQ(0, self->user[i].err);
	}
	close(self->fd);
	EXPECT_EQ(0, item_remove("a"));
	EXPECT_EQ(0, module_unload("blknull"));
}

/* Make the device with these additional attributes, and open it. */
static int turn_on(const char *mode, const char *attrs)
{
	char text[256];
	int err, fd;

	snprintf(text, sizeof(text), "%s size_mb=8 stats=1 %s", mode, attrs);
	err = item_on("a", text);
	if (err)
		return err;
	fd = open(item_disk("a"), O_RDWR | O_DIRECT | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* How many interrupts this number of reads takes, or a negative errno. */
static long interrupts_of(int fd, unsigned char *buf, int reads)
{
	long before = item_counter("a", "interrupts");

	while (reads--)
		if (pread(fd, buf, BLOCK, 0) != BLOCK)
			return -errno;
	return item_counter("a", "interrupts") - before;
}

/* The next CPU is the other one. */
TEST_F_TIMEOUT(remote, next, TIMEOUT)
{
	int cpu;

	self->fd = turn_on(variant->attrs, "complete_cpu=next");
	ASSERT_LE(0, self->fd);
	EXPECT_STREQ("next", item_get("a", "complete_cpu"));
	for (cpu = 0; cpu < 2; cpu++) {
		ASSERT_EQ(0, move_to(cpu));
		EXPECT_EQ(100, interrupts_of(self->fd, self->buf, 100));
	}
}

TEST_F_TIMEOUT(remote, by_number, TIMEOUT)
{
	self->fd = turn_on(variant->attrs, "complete_cpu=1");
	ASSERT_LE(0, self->fd);
	EXPECT_STREQ("1", item_get("a", "complete_cpu"));
	ASSERT_EQ(0, move_to(1));
	EXPECT_EQ(0, interrupts_of(self->fd, self->buf, 100));
	ASSERT_EQ(0, move_to(0));
	EXPECT_EQ(100, interrupts_of(self->fd, self->buf, 100));
	/* Without that CPU, it ends here. */
	ASSERT_EQ(0, write_text(ONLINE, "0"));
	EXPECT_EQ(0, interrupts_of(self->fd, self->buf, 100));
	ASSERT_EQ(0, write_text(ONLINE, "1"));
	EXPECT_EQ(100, interrupts_of(self->fd, self->buf, 100));
}

/* Users of the open device, on both CPUs in turn if @pinned. */
static int begin_use(struct user *user, pthread_t *thread, int fd, bool pinned)
{
	int i;

	for (i = 0; i < USERS; i++) {
		user[i] = (struct user){
			.fd = fd, .number = i, .cpu = pinned ? i % 2 : -1,
		};
		if (pthread_create(&thread[i], NULL, use, &user[i]))
			break;
	}
	return i;
}

/* Until each user has done this many more batches, or one has failed. */
static void wait_for_use(struct user *user, unsigned long rounds)
{
	unsigned long until;
	int i;

	for (i = 0; i < USERS; i++) {
		until = __atomic_load_n(&user[i].rounds, __ATOMIC_RELAXED) +
			rounds;
		while (__atomic_load_n(&user[i].rounds, __ATOMIC_RELAXED) <
		       until && !__atomic_load_n(&user[i].err, __ATOMIC_RELAXED))
			usleep(1000);
	}
}

/* Many I/Os of both CPUs at a time, each with its own data. */
TEST_F_TIMEOUT(remote, holds_data, TIMEOUT)
{
	self->fd = turn_on(variant->attrs, "memory_backed=1 complete_cpu=next");
	ASSERT_LE(0, self->fd);
	self->users = begin_use(self->user, self->thread, self->fd, true);
	ASSERT_EQ(USERS, self->users);
	wait_for_use(self->user, 20);
	EXPECT_LT(0, item_counter("a", "interrupts"));
}

/* I/O that was sent to a CPU that goes offline is not lost. */
TEST_F_TIMEOUT(remote, unplug, TIMEOUT)
{
	const char *count = getenv("RUNS");
	int i, rounds = count ? atoi(count) : 5;

	ASSERT_LT(0, rounds);
	self->fd = turn_on(variant->attrs, "memory_backed=1 complete_cpu=1");
	ASSERT_LE(0, self->fd);
	self->users = begin_use(self->user, self->thread, self->fd, false);
	ASSERT_EQ(USERS, self->users);
	for (i = 0; i < rounds; i++) {
		ASSERT_EQ(0, write_text(ONLINE, "0"));
		wait_for_use(self->user, 1);
		ASSERT_EQ(0, write_text(ONLINE, "1"));
		wait_for_use(self->user, 1);
	}
	EXPECT_LT(0, item_counter("a", "interrupts"));
}

TEST_HARNESS_MAIN
