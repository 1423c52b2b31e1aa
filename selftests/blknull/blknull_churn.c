// SPDX-License-Identifier: GPL-2.0
/*
 * Devices that come and go while others use them.
 *
 *	RUNS=N	how often; default 1000
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "kselftest_harness.h"

#include "item.h"

#define USERS		2

static bool stop;
static unsigned long used;

/* Open each device that exists, read and write it, and close it. */
static void *use(void *arg)
{
	const char *path = arg;
	unsigned char *buf;
	int fd;

	buf = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
		if (fd < 0) {
			usleep(2000);
			continue;
		}
		if (pread(fd, buf, 4096, 4096) == 4096)
			__atomic_fetch_add(&used, 1, __ATOMIC_RELAXED);
		if (pwrite(fd, buf, 65536, 65536) == 65536)
			__atomic_fetch_add(&used, 1, __ATOMIC_RELAXED);
		close(fd);
		/* Let a task that waits for the last close run soon. */
		usleep(10000);
	}
	munmap(buf, 65536);
	return NULL;
}

/* Every tenth device is used before it is removed. */
static void wait_for_use(unsigned long round)
{
	unsigned long before = __atomic_load_n(&used, __ATOMIC_RELAXED);

	while (round % 10 == 0 &&
	       __atomic_load_n(&used, __ATOMIC_RELAXED) == before)
		usleep(1000);
}

FIXTURE(churn) {
	pthread_t user[USERS];
	unsigned long rounds;
};

FIXTURE_SETUP(churn)
{
	const char *count = getenv("RUNS");
	int i;

	self->rounds = count ? strtoul(count, NULL, 0) : 1000;
	ASSERT_LT(0, self->rounds);
	module_unload("blknull");
	__atomic_store_n(&stop, false, __ATOMIC_RELAXED);
	for (i = 0; i < USERS; i++)
		ASSERT_EQ(0, pthread_create(&self->user[i], NULL, use,
					    "/dev/blknull0"));
}

FIXTURE_TEARDOWN(churn)
{
	int i;

	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < USERS; i++)
		pthread_join(self->user[i], NULL);
	EXPECT_EQ(0, module_unload("blknull"));
}

TEST_F_TIMEOUT(churn, load_and_unload, LONG_TIMEOUT)
{
	static const char *const params[] = {
		"", "mode=mq", "memory_backed=1", "mode=mq memory_backed=1",
		"nr_devices=4 mode=bio,mq stats=1",
	};
	unsigned long i;

	for (i = 0; i < self->rounds; i++) {
		if (i % 100 == 0)
			TH_LOG("%lu rounds of %lu", i, self->rounds);
		ASSERT_EQ(0, module_load("blknull",
					 params[i % ARRAY_SIZE(params)]));
		wait_for_use(i);
		ASSERT_EQ(0, module_unload("blknull"));
	}
	ASSERT_EQ(0, module_load("blknull", ""));
}

TEST_F_TIMEOUT(churn, create_and_destroy, LONG_TIMEOUT)
{
	static const char *const attrs[] = {
		"", "mode=mq", "memory_backed=1", "max_sectors=page stats=1",
		"mode=mq memory_backed=1 completion=timer",
		"mode=mq poll_queues=1 completion=softirq",
		"faults=1 delay_every=3 delay_nsec=100000 fail_every=5",
		"complete_cpu=next",
		"mode=mq memory_backed=1 completion=softirq complete_cpu=next",
		"mode=mq faults=1 delay_every=7",
	};
	unsigned long i;

	ASSERT_EQ(0, items_begin());
	for (i = 0; i < self->rounds; i++) {
		if (i % 100 == 0)
			TH_LOG("%lu rounds of %lu", i, self->rounds);
		ASSERT_EQ(0, item_on("a", attrs[i % ARRAY_SIZE(attrs)]));
		wait_for_use(i);
		usleep(500 * (i % 8));
		if (i % 2)
			ASSERT_EQ(0, item_set("a", "power", "0"));
		ASSERT_EQ(0, item_remove("a"));
	}
}

TEST_HARNESS_MAIN
