// SPDX-License-Identifier: GPL-2.0
/*
 * Events that may happen at any moment happen often: CPUs go offline, memory
 * runs out, processes die, modules and devices come and go, while I/O is under
 * way. The kernel's log shows afterwards whether that was handled.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include <uapi/biogen.h>

#include "engine.h"
#include "util.h"

#define CGROUP		"/cgroup"
#define CPU1		"/sys/devices/system/cpu/cpu1/online"
#define DISK_MIB	8
#define DISK_SIZE	(DISK_MIB * MIB)

static const struct disk brd = { .mib = DISK_MIB, .block = 512 };
static const struct disk slow = {
	.null_blk = true, .mib = DISK_MIB, .block = 512, .delay_ns = 200000
};

FIXTURE(races) {
	struct rng rng;
	pid_t busy[2];
};

FIXTURE_VARIANT(races) {
	const struct disk *disk;
};

FIXTURE_VARIANT_ADD(races, brd) { .disk = &brd };
FIXTURE_VARIANT_ADD(races, slow) { .disk = &slow };

FIXTURE_SETUP(races)
{
	rng_init(&self->rng, 1);
	ASSERT_EQ(0, biogen_unload());
	ASSERT_EQ(0, disks_create(variant->disk, 1));
	ASSERT_EQ(0, biogen_load(disk_path(variant->disk, 0), "write=1"));
}

FIXTURE_TEARDOWN(races)
{
	EXPECT_EQ(0, biogen_unload());
	EXPECT_EQ(0, disks_destroy());
}

/* A run until its file is closed, one thread on each of @cpus CPUs. */
static int generate_for_ever(int fd, unsigned int cpus)
{
	struct biogen_job job[2] = { { .cpu = 0 }, { .cpu = 1 } };
	struct biogen_run run = {
		.pattern	= BIOGEN_RANDOM,
		.wait		= BIOGEN_ASYNC,
		.write_percent	= 50,
		.block_size	= 4096,
		.depth		= 16,
		.batch		= 4,
		.nr_jobs	= cpus,
		.rounds		= 1,
		.duration_ns	= 3600000000000ULL,
		.jobs		= (unsigned long)job,
	};

	return ioctl(fd, BIOGEN_RUN, &run) ? -errno : 0;
}

/* I/O of every kind, for ever, by one of the engines. */
static void do_io_for_ever(int fd, enum engine_kind kind, uint64_t salt)
{
	const size_t size = 2 * MIB;
	struct iovec iov[ENGINE_DEPTH], buffer = { NULL, size };
	struct op op[ENGINE_DEPTH];
	struct engine engine;
	struct rng rng;
	int i, nr;

	rng_init(&rng, salt);
	buffer.iov_base = mmap(NULL, size, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (engine_init(&engine, kind, &buffer, 1))
		_exit(1);
	nr = engine_is_async(&engine) ? ENGINE_DEPTH : 1;
	for (;;) {
		for (i = 0; i < nr; i++) {
			iov[i].iov_len = 512 << rng_below(&rng, 11);
			iov[i].iov_base = buffer.iov_base +
				rng_below(&rng, MIB / 512) * 512;
			op[i] = (struct op) {
				.fd = fd, .write = rng_below(&rng, 2),
				.iov = &iov[i], .nr = 1,
				.offset = rng_below(&rng, DISK_SIZE / 512) * 512,
			};
		}
		if (engine_run(&engine, op, nr))
			_exit(1);
	}
}

/* A process that does I/O through biogen until it is killed. */
static pid_t start_load(unsigned int kind)
{
	static const enum engine_kind kinds[] = {
		ENGINE_SYNC, ENGINE_AIO, ENGINE_URING, ENGINE_FIXED
	};
	pid_t pid = fork();
	int fd;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		_exit(1);
	if (kind < ARRAY_SIZE(kinds))
		do_io_for_ever(fd, kinds[kind], kind);
	_exit(generate_for_ever(fd, kind - ARRAY_SIZE(kinds) + 1) != 0);
}

#define NR_LOADS	6

/* Kill it. Return: whether it was still running. */
static bool end_load(pid_t pid)
{
	int status;

	if (pid <= 0)
		return false;
	kill(pid, SIGKILL);
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	       WTERMSIG(status) == SIGKILL;
}

/* After a kill at any moment, the file can be opened and no I/O is left. */
TEST_F_TIMEOUT(races, killed, TIMEOUT)
{
	unsigned int kind;
	pid_t pid;
	int i, fd;

	for (kind = 0; kind < NR_LOADS; kind++) {
		for (i = 0; i < 8; i++) {
			pid = start_load(kind);
			usleep(rng_below(&self->rng, 20000));
			kill(pid, SIGKILL);
			ASSERT_EQ(pid, waitpid(pid, NULL, 0));
			fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
			ASSERT_LE(0, fd);
			close(fd);
		}
	}
}

/* A CPU goes offline and online while everything runs on it. */
TEST_F_TIMEOUT(races, hotplug, TIMEOUT)
{
	unsigned int kind;
	cpu_set_t both, first;
	int i, fd;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	both = first;
	CPU_SET(1, &both);
	for (kind = 0; kind < NR_LOADS; kind++) {
		pid_t pid = start_load(kind);

		for (i = 0; i < 3; i++) {
			usleep(rng_below(&self->rng, 50000));
			ASSERT_EQ(0, write_text(CPU1, "0"));
			usleep(rng_below(&self->rng, 50000));
			ASSERT_EQ(0, write_text(CPU1, "1"));
		}
		EXPECT_TRUE(end_load(pid)) {
			TH_LOG("load %u", kind);
		}
	}
	/* A job on a CPU that is offline is refused. */
	fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, write_text(CPU1, "0"));
	EXPECT_EQ(-EINVAL, generate_for_ever(fd, 2));
	ASSERT_EQ(0, write_text(CPU1, "1"));
	close(fd);
}

/* So little memory that the load must wait for memory. */
TEST_F_TIMEOUT(races, memory, TIMEOUT)
{
	unsigned int kind;
	char text[32];
	pid_t pid;
	int i;

	mkdir(CGROUP, 0755);
	if (mount("cgroup2", CGROUP, "cgroup2", 0, NULL))
		ASSERT_EQ(EBUSY, errno);
	ASSERT_EQ(0, write_text(CGROUP "/cgroup.subtree_control", "+memory"));
	ASSERT_EQ(0, mkdir(CGROUP "/little", 0755));
	for (kind = 0; kind < NR_LOADS - 2; kind++) {
		ASSERT_EQ(0, write_text(CGROUP "/little/memory.high", "max"));
		pid = start_load(kind);
		snprintf(text, sizeof(text), "%d", pid);
		ASSERT_EQ(0, write_text(CGROUP "/little/cgroup.procs", text));
		for (i = 10; i >= 0; i--) {
			snprintf(text, sizeof(text), "%lu", i * 400 * KIB);
			ASSERT_EQ(0, write_text(CGROUP "/little/memory.high",
						text));
			usleep(10000);
		}
		EXPECT_TRUE(end_load(pid));
	}
	usleep(10000);
	EXPECT_EQ(0, rmdir(CGROUP "/little"));
	EXPECT_EQ(0, umount(CGROUP));
}

/* Tasks change their cgroup, and cgroups end, while bios are set up for them. */
TEST_F_TIMEOUT(races, cgroups, TIMEOUT)
{
	unsigned int kind, i, n = 0;
	char path[64], text[32];
	pid_t pid[2];

	mkdir(CGROUP, 0755);
	if (mount("cgroup2", CGROUP, "cgroup2", 0, NULL))
		ASSERT_EQ(EBUSY, errno);
	ASSERT_EQ(0, write_text(CGROUP "/cgroup.subtree_control", "+io"));
	for (kind = 0; kind < NR_LOADS - 2; kind++) {
		pid[0] = start_load(kind);
		pid[1] = start_load(kind);
		for (i = 0; i < 20; i++, n++) {
			snprintf(path, sizeof(path), CGROUP "/%u/cgroup.procs",
				 n);
			snprintf(text, sizeof(text), "%d", pid[i % 2]);
			path[strlen(path) - strlen("/cgroup.procs")] = 0;
			ASSERT_EQ(0, mkdir(path, 0755));
			path[strlen(path)] = '/';
			ASSERT_EQ(0, write_text(path, text));
			usleep(rng_below(&self->rng, 4000));
			/* The previous one is empty, or its task is here. */
			if (n > 1) {
				snprintf(path, sizeof(path), CGROUP "/%u", n - 2);
				ASSERT_EQ(0, rmdir(path));
			}
		}
		EXPECT_TRUE(end_load(pid[0]));
		EXPECT_TRUE(end_load(pid[1]));
	}
	for (i = n - 2; i < n; i++) {
		snprintf(path, sizeof(path), CGROUP "/%u", i);
		EXPECT_EQ(0, rmdir(path));
	}
	EXPECT_EQ(0, umount(CGROUP));
}

/* The modules come and go as fast as possible, while others use them. */
TEST_F_TIMEOUT(races, modules, TIMEOUT)
{
	char params[64];
	unsigned int kind;
	int i, loaded = 0;
	pid_t pid;

	snprintf(params, sizeof(params), "device=%s write=1",
		 disk_path(variant->disk, 0));
	for (i = 0; i < ARRAY_SIZE(self->busy); i++) {
		self->busy[i] = fork();
		if (self->busy[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/*
		 * Open a node if it exists, and use it for a moment. Sometimes
		 * no process has it open.
		 */
		for (kind = i;; kind += 2) {
			pid = start_load(kind % NR_LOADS);
			usleep(1000 + i * 500);
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			usleep(10000);
		}
	}
	for (i = 0; i < 60 || !loaded; i++) {
		int err = module_unload_now("biogen");

		ASSERT_TRUE(!err || err == -EWOULDBLOCK || err == -EBUSY ||
			    err == -ENOENT) {
			TH_LOG("rmmod: %d", err);
		}
		err = module_load("biogen", params);
		/* A dying process may hold the disk a moment longer. */
		ASSERT_TRUE(!err || err == -EEXIST || err == -EBUSY) {
			TH_LOG("insmod: %d", err);
		}
		loaded += !err;
		usleep(rng_below(&self->rng, 2000));
	}
	for (i = 0; i < ARRAY_SIZE(self->busy); i++)
		EXPECT_TRUE(end_load(self->busy[i]));
	/* I/O of killed processes ends by itself. */
	usleep(100000);
}

TEST_HARNESS_MAIN
