// SPDX-License-Identifier: GPL-2.0
/* Devices of blknull are removed while processes do I/O to them. */
#include <pthread.h>

#include "device_fixture.h"

struct load {
	const char *path;
	bool stop;
	long done, failed;
	int unexpected;
};

/* Read and write until told to stop. I/O may only fail because the device is gone. */
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

TEST_HARNESS_MAIN
