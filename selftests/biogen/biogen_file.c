// SPDX-License-Identifier: GPL-2.0
/*
 * Life of biogen's devices and files: what may be bound, opened, unloaded and
 * removed, and when; misuse of each.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/blkpg.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include <uapi/biogen.h>

#include "engine.h"
#include "util.h"

#define DISK_MIB	8
#define DISK_SIZE	(DISK_MIB * MIB)
#define PARAMETERS	"/sys/module/biogen/parameters/"

static const struct disk brd = { .mib = DISK_MIB, .block = 512 };
static const struct disk slow = {
	.null_blk = true, .mib = DISK_MIB, .block = 512, .delay_ns = 20000000
};

FIXTURE(file) {
	char *buf;
};

FIXTURE_SETUP(file)
{
	ASSERT_EQ(0, biogen_unload());
	ASSERT_EQ(0, disks_create(&brd, 2));
	self->buf = aligned_alloc(4096, MIB);
	memset(self->buf, 0, MIB);
}

FIXTURE_TEARDOWN(file)
{
	EXPECT_EQ(0, biogen_unload());
	EXPECT_EQ(0, disks_destroy());
}

static int try_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* A partition is a device of its own, with its own length. */
TEST_F_TIMEOUT(file, partition, TIMEOUT)
{
	struct blkpg_partition part = {
		.start = MIB, .length = 2 * MIB, .pno = 1
	};
	struct blkpg_ioctl_arg arg = {
		.op = BLKPG_ADD_PARTITION, .datalen = sizeof(part),
		.data = &part
	};
	unsigned char *all = aligned_alloc(4096, 4 * MIB);
	int disk = open("/dev/ram0", O_RDWR | O_DIRECT | O_CLOEXEC), fd;
	struct biogen_info info;
	size_t i;

	ASSERT_LE(0, disk);
	ASSERT_EQ(0, ioctl(disk, BLKPG, &arg));
	ASSERT_EQ(0, biogen_load("/dev/ram0p1", "write=1"));
	fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ioctl(fd, BIOGEN_INFO, &info));
	EXPECT_EQ(2 * MIB, info.size);
	memset(self->buf, 0x5a, MIB);
	EXPECT_EQ(MIB, pwrite(fd, self->buf, MIB, 0));
	EXPECT_EQ(4096, pwrite(fd, self->buf, 8192, 2 * MIB - 4096));
	EXPECT_EQ(-1, pwrite(fd, self->buf, 4096, 2 * MIB));
	EXPECT_EQ(ENOSPC, errno);
	EXPECT_EQ(4096, pread(fd, self->buf, MIB, 2 * MIB - 4096));
	EXPECT_EQ(0, pread(fd, self->buf, 4096, 2 * MIB));
	close(fd);
	ASSERT_EQ(0, biogen_unload());
	ASSERT_EQ(4 * MIB, pread(disk, all, 4 * MIB, 0));
	for (i = 0; i < 4 * MIB; i++) {
		bool written = (i >= MIB && i < 2 * MIB) ||
			       (i >= 3 * MIB - 4096 && i < 3 * MIB);

		ASSERT_EQ(written ? 0x5a : 0, all[i]) {
			TH_LOG("at %#zx", i);
		}
	}
	arg.op = BLKPG_DEL_PARTITION;
	EXPECT_EQ(0, ioctl(disk, BLKPG, &arg));
	close(disk);
	free(all);
}

/* A program that asks for sizes gets those of the block device. */
TEST_F_TIMEOUT(file, sizes, TIMEOUT)
{
	static const struct disk blocks = {
		.null_blk = true, .mib = 5, .block = 4096
	};
	static const unsigned long asked[] = {
		BLKGETSIZE64, BLKGETSIZE, BLKSSZGET, BLKPBSZGET, BLKIOMIN,
		BLKIOOPT, BLKROGET,
	};
	static const off_t offsets[] = { 0, 1, 4096, -1, 1L << 40 };
	static const int whences[] = {
		SEEK_SET, SEEK_CUR, SEEK_END, SEEK_DATA, SEEK_HOLE,
	};
	int fd, disk, kind, i, j, on = 1;

	for (kind = 0; kind < 3; kind++) {
		const char *path = "/dev/ram0";

		if (kind) {
			ASSERT_EQ(0, disks_create(&blocks, 1));
			path = disk_path(&blocks, 0);
		}
		disk = open(path, O_RDONLY | O_CLOEXEC);
		ASSERT_LE(0, disk);
		if (kind == 2)
			ASSERT_EQ(0, ioctl(disk, BLKROSET, &on));
		ASSERT_EQ(0, biogen_load(path, ""));
		fd = open(BIOGEN, O_RDONLY | O_CLOEXEC);
		ASSERT_LE(0, fd);
		for (i = 0; i < ARRAY_SIZE(asked); i++) {
			uint64_t want = 0, got = 0;

			EXPECT_EQ(0, ioctl(disk, asked[i], &want));
			EXPECT_EQ(0, ioctl(fd, asked[i], &got));
			EXPECT_EQ(want, got) {
				TH_LOG("%lx", asked[i]);
			}
			EXPECT_EQ(-1, ioctl(fd, asked[i], NULL));
			EXPECT_EQ(EFAULT, errno);
		}
		for (i = 0; i < ARRAY_SIZE(whences); i++) {
			for (j = 0; j < ARRAY_SIZE(offsets); j++)
				EXPECT_EQ(lseek(disk, offsets[j], whences[i]),
					  lseek(fd, offsets[j], whences[i]));
		}
		EXPECT_EQ(-1, ioctl(fd, BLKFLSBUF, 0));
		EXPECT_EQ(ENOTTY, errno);
		close(fd);
		close(disk);
		ASSERT_EQ(0, biogen_unload());
	}
}

#ifdef __x86_64__
/* A system call as a program of 32 bits makes it; memory is below 4 GiB. */
static long call_32(long nr, long a, long b, void *c)
{
	long ret;

	asm volatile("int $0x80"
		     : "=a" (ret)
		     : "a" (nr), "b" (a), "c" (b), "d" (c)
		     : "memory", "cc", "r8", "r9", "r10", "r11");
	return (int)ret;
}
#else
static long call_32(long nr, long a, long b, void *c)
{
	abort();
}
#endif

#ifndef MAP_32BIT
#define MAP_32BIT	0
#endif
#define NR_GETPID_32	20
#define NR_IOCTL_32	54

static void give_up(int signal)
{
	_exit(1);
}

static bool kernel_has_32_bits(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		/* Handled, so that the kernel does not report it. */
		signal(SIGSEGV, give_up);
		signal(SIGABRT, give_up);
		_exit(call_32(NR_GETPID_32, 0, 0, NULL) != getpid());
	}
	return waitpid(pid, &status, 0) == pid && !status;
}

/* To a program of 32 bits, a long has 4 bytes. */
TEST_F_TIMEOUT(file, sizes_in_32_bits, TIMEOUT)
{
	static const struct {
		const char *disk;
		unsigned long cmd;
	} asked[] = {
		{ "/dev/ram0", BLKGETSIZE }, { "/dev/ram0", BLKSSZGET },
		{ "/dev/ram0", _IOR(0x12, 114, uint32_t) }, /* BLKGETSIZE64 */
		{ "/dev/ram0", BLKROGET }, { "/dev/ram0", BLKFLSBUF + 100 },
		/* 4 TiB have more sectors than fit. */
		{ "/dev/blknull0", BLKGETSIZE },
		{ "/dev/blknull0", _IOR(0x12, 114, uint32_t) },
	};
	struct biogen_info *info;
	char *want, *got;
	int fd, disk, i;

	if (!kernel_has_32_bits())
		SKIP(return, "no system calls of 32 bits");
	ASSERT_EQ(0, module_load("blknull", "size_mb=4194304"));
	want = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	ASSERT_NE(MAP_FAILED, want);
	got = want + 64;
	for (i = 0; i < ARRAY_SIZE(asked); i++) {
		disk = open(asked[i].disk, O_RDONLY | O_CLOEXEC);
		ASSERT_LE(0, disk);
		ASSERT_EQ(0, biogen_load(asked[i].disk, ""));
		fd = open(BIOGEN, O_RDONLY | O_CLOEXEC);
		ASSERT_LE(0, fd);
		memset(want, 0xa5, 128);
		EXPECT_EQ(call_32(NR_IOCTL_32, disk, asked[i].cmd, want),
			  call_32(NR_IOCTL_32, fd, asked[i].cmd, got));
		EXPECT_EQ(0, memcmp(want, got, 64)) {
			TH_LOG("%s: %lx wrote other bytes", asked[i].disk,
			       asked[i].cmd);
		}
		EXPECT_EQ(call_32(NR_IOCTL_32, disk, asked[i].cmd, NULL),
			  call_32(NR_IOCTL_32, fd, asked[i].cmd, NULL));
		info = (struct biogen_info *)got;
		EXPECT_EQ(0, call_32(NR_IOCTL_32, fd, BIOGEN_INFO, info));
		EXPECT_EQ(512, info->block_size);
		close(fd);
		close(disk);
		ASSERT_EQ(0, biogen_unload());
	}
	munmap(want, 4096);
	EXPECT_EQ(0, module_unload("blknull"));
}

/* Without write=1 nothing can be written in any way. */
TEST_F_TIMEOUT(file, read_only, TIMEOUT)
{
	struct biogen_info info;
	struct stat st;
	int fd;

	ASSERT_EQ(0, biogen_load("/dev/ram0", ""));
	ASSERT_EQ(0, stat(BIOGEN, &st));
	EXPECT_EQ(S_IFCHR | 0600, st.st_mode);
	EXPECT_EQ(-EACCES, try_open(BIOGEN, O_RDWR));
	EXPECT_EQ(-EACCES, try_open(BIOGEN, O_WRONLY));
	EXPECT_EQ(-EACCES, try_open(BIOGEN, O_RDWR | O_DIRECT));
	fd = open(BIOGEN, O_RDONLY | O_DIRECT | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(4096, pread(fd, self->buf, 4096, 0));
	EXPECT_EQ(-1, pwrite(fd, self->buf, 4096, 0));
	EXPECT_EQ(EBADF, errno);
	ASSERT_EQ(0, ioctl(fd, BIOGEN_INFO, &info));
	EXPECT_EQ(BIOGEN_INFO_COHERENT, info.flags);
	EXPECT_EQ(DISK_SIZE, info.size);
	EXPECT_EQ(512, info.block_size);
	ASSERT_EQ(0, stat("/dev/ram0", &st));
	EXPECT_EQ(st.st_rdev, info.dev);
	/* Nor does it prevent others from writing. */
	EXPECT_EQ(0, try_open("/dev/ram0", O_RDWR | O_EXCL));
	close(fd);
}

/* A device that is in use, as by a mounted file system, is not written. */
TEST_F_TIMEOUT(file, held, TIMEOUT)
{
	int fd = open("/dev/ram0", O_RDWR | O_EXCL | O_CLOEXEC);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBUSY, biogen_load("/dev/ram0", "write=1"));
	EXPECT_EQ(-ENOENT, try_open(BIOGEN, O_RDONLY));
	ASSERT_EQ(0, biogen_load("/dev/ram0", "write=0"));
	EXPECT_EQ(0, try_open(BIOGEN, O_RDONLY));
	ASSERT_EQ(0, biogen_unload());
	close(fd);
	ASSERT_EQ(0, biogen_load("/dev/ram0", "write=1"));
	EXPECT_EQ(0, try_open(BIOGEN, O_RDWR));
	/* And the reverse. */
	EXPECT_EQ(-EBUSY, try_open("/dev/ram0", O_RDWR | O_EXCL));
	ASSERT_EQ(0, biogen_unload());
	EXPECT_EQ(0, try_open("/dev/ram0", O_RDWR | O_EXCL));
}

TEST_F_TIMEOUT(file, swap, TIMEOUT)
{
	struct {
		char boot[1024];
		uint32_t version, last_page, bad_pages;
	} *head = (void *)self->buf;
	int fd = open("/dev/ram0", O_RDWR | O_CLOEXEC);
	const size_t page = sysconf(_SC_PAGESIZE);

	head->version = 1;
	head->last_page = DISK_SIZE / page - 1;
	memcpy(self->buf + page - 10, "SWAPSPACE2", 10);
	ASSERT_EQ(page, pwrite(fd, self->buf, page, 0));
	ASSERT_EQ(0, fsync(fd));
	close(fd);
	ASSERT_EQ(0, swapon("/dev/ram0", 0));
	EXPECT_EQ(-EBUSY, biogen_load("/dev/ram0", "write=1"));
	ASSERT_EQ(0, swapoff("/dev/ram0"));
	ASSERT_EQ(0, biogen_load("/dev/ram0", "write=1"));
	EXPECT_EQ(-1, swapon("/dev/ram0", 0));
	EXPECT_EQ(EBUSY, errno);
}

/* Open files keep the module, the device and its target. */
TEST_F_TIMEOUT(file, busy, TIMEOUT)
{
	int fd;

	ASSERT_EQ(0, biogen_load("/dev/ram0", "write=1"));
	EXPECT_EQ(-EAGAIN, module_unload_now("brd"));
	fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EAGAIN, module_unload_now("biogen"));
	EXPECT_EQ(512, pwrite(fd, self->buf, 512, 0));
	EXPECT_EQ(512, pread(fd, self->buf, 512, 0));
	EXPECT_EQ(0, fsync(fd));
	EXPECT_EQ(0, fdatasync(fd));
	close(fd);
	EXPECT_EQ(0, biogen_unload());
	EXPECT_EQ(-ENOENT, try_open(BIOGEN, O_RDWR));
}

TEST_F_TIMEOUT(file, positions, TIMEOUT)
{
	int fd;

	ASSERT_EQ(0, biogen_load("/dev/ram0", "write=1"));
	fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(512, read(fd, self->buf, 512));
	EXPECT_EQ(512, lseek(fd, 0, SEEK_CUR));
	EXPECT_EQ(DISK_SIZE, lseek(fd, 0, SEEK_END));
	EXPECT_EQ(0, read(fd, self->buf, 512));
	EXPECT_EQ(-1, write(fd, self->buf, 512));
	EXPECT_EQ(ENOSPC, errno);
	EXPECT_EQ(DISK_SIZE - 1024, lseek(fd, -1024, SEEK_END));
	EXPECT_EQ(1024, write(fd, self->buf, 64 * KIB));
	EXPECT_EQ(DISK_SIZE, lseek(fd, 0, SEEK_CUR));
	EXPECT_EQ(-1, lseek(fd, -1, SEEK_SET));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0));
	EXPECT_EQ(ENODEV, errno);
	EXPECT_EQ(-1, ioctl(fd, BLKFLSBUF, 0));
	EXPECT_EQ(ENOTTY, errno);
	close(fd);
}

/* One message that names the parameter and the given value. */
TEST_F_TIMEOUT(file, bad_parameters, TIMEOUT)
{
	static const struct {
		const char *params;
		int err;
		const char *says;
	} bad[] = {
		{ "device=/dev/absent", -ENOENT, "device=/dev/absent" },
		{ "device=/dev/null", -ENOTBLK, "device=/dev/null" },
		{ "device=/dev", -ENOTBLK, "device=/dev" },
		{ "device=", -EINVAL, "device=" },
		{ "device=-biogen0", -ENODEV, "device=-biogen0" },
		{ "device=/dev/ram0 write=maybe", -EINVAL, "write" },
		{ "device=/dev/ram0 coherent=2", -EINVAL, "coherent" },
	};
	int log = log_begin(), i;

	ASSERT_LE(0, log);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(bad[i].err, module_load("biogen", bad[i].params)) {
			TH_LOG("%s", bad[i].params);
		}
		EXPECT_TRUE(log_has(log, bad[i].says)) {
			TH_LOG("%s", bad[i].params);
		}
	}
	/* None of them leaves anything behind. */
	EXPECT_EQ(0, biogen_load("/dev/ram0", "write=1"));
	close(log);
}

TEST_F_TIMEOUT(file, read_only_disk, TIMEOUT)
{
	int fd = open("/dev/ram0", O_RDONLY | O_CLOEXEC), on = 1;

	ASSERT_EQ(0, ioctl(fd, BLKROSET, &on));
	close(fd);
	EXPECT_EQ(-EACCES, biogen_load("/dev/ram0", "write=1"));
	EXPECT_EQ(0, biogen_load("/dev/ram0", ""));
	ASSERT_EQ(0, biogen_unload());
	on = 0;
	fd = open("/dev/ram0", O_RDONLY | O_CLOEXEC);
	ASSERT_EQ(0, ioctl(fd, BLKROSET, &on));
	ASSERT_EQ(0, biogen_load("/dev/ram0", "write=1"));
	/* It becomes read-only while it is bound. */
	on = 1;
	ASSERT_EQ(0, ioctl(fd, BLKROSET, &on));
	close(fd);
	fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-1, pwrite(fd, self->buf, 512, 0));
	EXPECT_EQ(EPERM, errno);
	EXPECT_EQ(512, pread(fd, self->buf, 512, 0));
	close(fd);
}

static int set(const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	return write_text(path, value);
}

static bool nodes_are(const char *list)
{
	char text[4096];

	return !read_text(PARAMETERS "device", text, sizeof(text)) &&
	       !strcmp(text, list);
}

/* Nodes are made and removed while the module is in use. */
TEST_F_TIMEOUT(file, nodes, TIMEOUT)
{
	int fd, log = log_begin();
	struct biogen_info info;
	struct stat st;

	ASSERT_EQ(0, module_load("biogen", ""));
	ASSERT_EQ(0, stat(PARAMETERS "device", &st));
	EXPECT_EQ(S_IFREG | 0600, st.st_mode);
	EXPECT_TRUE(nodes_are(""));

	/* What is refused changes nothing. */
	EXPECT_EQ(-ENOENT, set("device", "/dev/absent\n"));
	EXPECT_TRUE(log_has(log, "cannot open device=/dev/absent: error -2"));
	EXPECT_EQ(-EINVAL, set("device", "\n"));
	EXPECT_EQ(-ENODEV, set("device", "-biogen0\n"));
	EXPECT_TRUE(log_has(log, "cannot remove device=-biogen0: error -19"));
	EXPECT_EQ(-EINVAL, set("write", "maybe"));
	EXPECT_TRUE(nodes_are(""));
	EXPECT_EQ(-ENOENT, try_open(BIOGEN, O_RDONLY));

	/* write and coherent are those of the nodes that are made from then on. */
	ASSERT_EQ(0, set("device", "/dev/ram0\n"));
	EXPECT_EQ(0, set("write", "1"));
	EXPECT_EQ(0, set("coherent", "0"));
	ASSERT_EQ(0, set("device", "/dev/ram1"));
	EXPECT_TRUE(nodes_are("biogen0 ram0\nbiogen1 ram1\n"));
	EXPECT_EQ(-EACCES, try_open(BIOGEN, O_RDWR));
	EXPECT_EQ(-EBUSY, set("device", "/dev/ram1"));
	fd = open("/dev/biogen1", O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ioctl(fd, BIOGEN_INFO, &info));
	EXPECT_EQ(BIOGEN_INFO_WRITE, info.flags);

	/* An open file outlives its node, and keeps its number and the disk. */
	memset(self->buf, 0x77, 4096);
	EXPECT_EQ(4096, pwrite(fd, self->buf, 4096, 0));
	EXPECT_EQ(0, set("device", "-biogen1\n"));
	EXPECT_TRUE(nodes_are("biogen0 ram0\n"));
	EXPECT_EQ(-ENOENT, try_open("/dev/biogen1", O_RDONLY));
	memset(self->buf, 0, 4096);
	EXPECT_EQ(4096, pread(fd, self->buf, 4096, 0));
	EXPECT_EQ(0x77, self->buf[4095]);
	EXPECT_EQ(-EBUSY, set("device", "/dev/ram1"));
	EXPECT_EQ(0, set("write", "0"));
	EXPECT_EQ(0, set("device", "/dev/ram1"));
	EXPECT_TRUE(nodes_are("biogen0 ram0\nbiogen2 ram1\n"));
	EXPECT_EQ(0, set("device", "-biogen2"));
	EXPECT_EQ(-EAGAIN, module_unload_now("biogen"));
	close(fd);
	EXPECT_EQ(0, try_open("/dev/ram1", O_RDWR | O_EXCL));

	/* Its number is free. Nodes without an open file end with the module. */
	EXPECT_EQ(0, set("device", "/dev/ram1"));
	EXPECT_TRUE(nodes_are("biogen0 ram0\nbiogen1 ram1\n"));
	EXPECT_EQ(0, module_unload_now("biogen"));
	EXPECT_EQ(-ENOENT, try_open("/dev/biogen1", O_RDONLY));
	close(log);
}

/* Nodes come and go by several processes, while others use and unload them. */
TEST_F_TIMEOUT(file, node_races, TIMEOUT)
{
	static const char *const what[][2] = {
		{ "device", "/dev/ram0" }, { "device", "-biogen0" },
		{ "device", "/dev/ram1" }, { "device", "-biogen1" },
		{ "write", "1" }, { "write", "0" },
	};
	uint64_t end = now_ns() + 5000000000ULL;
	int i, status, loaded = 0;
	pid_t pid[8];

	for (i = 0; i < ARRAY_SIZE(pid); i++) {
		pid[i] = fork();
		ASSERT_LE(0, pid[i]);
		while (!pid[i] && now_ns() < end) {
			if (i < ARRAY_SIZE(what)) {
				set(what[i][0], what[i][1]);
				nodes_are("");
			} else {
				int fd = open(BIOGEN, O_RDWR | O_CLOEXEC);

				pread(fd, self->buf, 4096, 0);
				close(fd);
			}
		}
		if (!pid[i])
			_exit(0);
	}
	while (now_ns() < end || !loaded) {
		loaded += !module_load("biogen", "device=/dev/ram0");
		usleep(100000);
		module_unload_now("biogen");
	}
	for (i = 0; i < ARRAY_SIZE(pid); i++) {
		ASSERT_EQ(pid[i], waitpid(pid[i], &status, 0));
		EXPECT_EQ(0, status);
	}
}

/* Loading, use and unloading at the same time. */
TEST_F_TIMEOUT(file, load_races, TIMEOUT)
{
	uint64_t end = now_ns() + 5000000000ULL;
	int i, status, loaded = 0;
	pid_t pid[2];

	for (i = 0; i < ARRAY_SIZE(pid); i++) {
		pid[i] = fork();
		ASSERT_LE(0, pid[i]);
		while (!pid[i] && now_ns() < end) {
			int fd = open(BIOGEN, O_RDWR | O_CLOEXEC);

			if (fd < 0)
				continue;
			pwrite(fd, self->buf, 4096, 0);
			pread(fd, self->buf, 64 * KIB, 0);
			close(fd);
		}
		if (!pid[i])
			_exit(0);
	}
	while (now_ns() < end || !loaded) {
		loaded += !biogen_load("/dev/ram0", "write=1");
		module_unload_now("biogen");
	}
	for (i = 0; i < ARRAY_SIZE(pid); i++) {
		ASSERT_EQ(pid[i], waitpid(pid[i], &status, 0));
		EXPECT_EQ(0, status);
	}
}

/* Whether the page at @addr is dirty in the kernel. */
static bool page_dirty(const void *addr)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	int flags = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	uint64_t page = 0, bits = 0;

	/* One word per page: first its frame, then flags; bit 4 is dirty. */
	pread(pagemap, &page, sizeof(page),
	      (unsigned long)addr / sysconf(_SC_PAGESIZE) * 8);
	pread(flags, &bits, sizeof(bits), (page & ((1ULL << 55) - 1)) * 8);
	close(pagemap);
	close(flags);
	return bits & (1 << 4);
}

/*
 * A mapped file is cleaned while it is being read into: the end of the read
 * makes it dirty again, because the data may have come after the cleaning.
 */
TEST_F_TIMEOUT(file, dirtied_in_flight, TIMEOUT)
{
	static const enum engine_kind kinds[] = { ENGINE_AIO, ENGINE_URING };
	static const size_t sizes[] = { 512, 4096, 32 * KIB, 256 * KIB };
	const struct disk late = {
		.null_blk = true, .mib = DISK_MIB, .block = 512,
		.delay_ns = 300000000,
	};
	struct engine engine;
	struct iovec iov;
	struct op op = { .iov = &iov, .nr = 1 };
	int file, k, i;
	char *map;

	ASSERT_EQ(0, disks_create(&late, 2));
	ASSERT_EQ(0, biogen_load(disk_path(&late, 0), "write=1"));
	op.fd = open(BIOGEN, O_RDWR | O_DIRECT | O_CLOEXEC);
	file = open(disk_path(&late, 1), O_RDWR | O_CLOEXEC);
	ASSERT_TRUE(op.fd >= 0 && file >= 0);
	memset(self->buf, 0x42, 256 * KIB);
	ASSERT_EQ(256 * KIB, pwrite(op.fd, self->buf, 256 * KIB, 0));
	for (k = 0; k < ARRAY_SIZE(kinds); k++) {
		ASSERT_EQ(0, engine_init(&engine, kinds[k], NULL, 0));
		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			map = mmap(NULL, MIB, PROT_READ | PROT_WRITE,
				   MAP_SHARED, file, 0);
			ASSERT_NE(MAP_FAILED, map);
			memset(map, 0, sizes[i]);
			ASSERT_EQ(0, fsync(file));
			iov.iov_base = map;
			iov.iov_len = sizes[i];
			ASSERT_EQ(0, engine_start(&engine, &op, 1));
			ASSERT_EQ(0, fsync(file));
			ASSERT_EQ(0, engine_finish(&engine, &op, 1));
			ASSERT_EQ(sizes[i], op.result);
			ASSERT_EQ(0, memcmp(map, self->buf, sizes[i]));
			EXPECT_TRUE(page_dirty(map)) {
				TH_LOG("%zu bytes may be lost", sizes[i]);
			}
			EXPECT_TRUE(page_dirty(map + sizes[i] - 1));
			ASSERT_EQ(0, fsync(file));
			EXPECT_FALSE(page_dirty(map));
			ASSERT_EQ(0, munmap(map, MIB));
		}
		engine_exit(&engine);
	}
	close(file);
	close(op.fd);
}

#define CGROUP		"/cgroup"
#define NR_TASKS	16
#define CPUS		2

/* How many removed cgroups are kept in memory. */
static int dying_cgroups(void)
{
	static const char name[] = "nr_dying_descendants ";
	char text[4096] = "";
	const char *number;

	read_text(CGROUP "/cgroup.stat", text, sizeof(text));
	number = strstr(text, name);
	return number ? atoi(number + strlen(name)) : -1;
}

/* Wait until at most @most are left: the kernel frees them later. */
static int dying_cgroups_settle(int most)
{
	uint64_t limit = now_ns() + 60000000000ULL;

	while (dying_cgroups() > most && now_ns() < limit)
		usleep(100000);
	return dying_cgroups();
}

/*
 * Tasks that write at the same moment, each in a cgroup of its own: each holds
 * a bio and sleeps until its memory has been read from a slow disk. When the
 * tasks have exited, unused bios keep one cgroup for each CPU, not one for each
 * bio.
 */
TEST_F_TIMEOUT(file, cgroups_of_idle_bios, TIMEOUT)
{
	int i, fd, slow_fd, status, before, go[2];
	pid_t pid[NR_TASKS];
	char path[64], text[32];
	char *map;

	mkdir(CGROUP, 0755);
	if (mount("cgroup2", CGROUP, "cgroup2", 0, NULL))
		ASSERT_EQ(EBUSY, errno);
	ASSERT_EQ(0, write_text(CGROUP "/cgroup.subtree_control", "+io"));
	before = dying_cgroups();
	ASSERT_LE(0, before);
	ASSERT_EQ(0, biogen_load("/dev/ram0", "write=1"));
	ASSERT_EQ(0, module_load("blknull", "faults=1 delay_every=1 delay_nsec=1000000000"));
	slow_fd = open("/dev/blknull0", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, slow_fd);
	map = mmap(NULL, NR_TASKS * MIB, PROT_READ, MAP_SHARED, slow_fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	ASSERT_EQ(0, madvise(map, NR_TASKS * MIB, MADV_RANDOM));
	fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pipe(go));
	for (i = 0; i < NR_TASKS; i++) {
		snprintf(path, sizeof(path), CGROUP "/%d", i);
		ASSERT_EQ(0, mkdir(path, 0755));
		strcat(path, "/cgroup.procs");
		pid[i] = fork();
		ASSERT_LE(0, pid[i]);
		if (!pid[i]) {
			snprintf(text, sizeof(text), "%d", getpid());
			if (write_text(path, text))
				_exit(1);
			close(go[1]);
			read(go[0], text, 1);
			_exit(pwrite(fd, map + i * MIB, 4096, 0) != 4096);
		}
	}
	close(go[0]);
	close(go[1]);
	for (i = 0; i < NR_TASKS; i++) {
		ASSERT_EQ(pid[i], waitpid(pid[i], &status, 0));
		EXPECT_EQ(0, status);
		snprintf(path, sizeof(path), CGROUP "/%d", i);
		ASSERT_EQ(0, rmdir(path));
	}
	/* A page of the cache keeps the cgroup of the task that read it. */
	ASSERT_EQ(0, munmap(map, NR_TASKS * MIB));
	ASSERT_EQ(0, ioctl(slow_fd, BLKFLSBUF, 0));
	close(slow_fd);
	/* The kernel itself may keep one for each CPU: 5.10 does. */
	before += CPUS;
	EXPECT_GE(before + CPUS, dying_cgroups_settle(before + CPUS));
	close(fd);
	ASSERT_EQ(0, biogen_unload());
	EXPECT_EQ(0, module_unload("blknull"));
	EXPECT_GE(before, dying_cgroups_settle(before));
	EXPECT_EQ(0, umount(CGROUP));
}

/* I/O in flight whose submitter exits, or whose target is removed. */

FIXTURE(flight) {
	char *buf;
};

FIXTURE_VARIANT(flight) {
	enum engine_kind engine;
};

FIXTURE_VARIANT_ADD(flight, sync) { .engine = ENGINE_SYNC };
FIXTURE_VARIANT_ADD(flight, aio) { .engine = ENGINE_AIO };
FIXTURE_VARIANT_ADD(flight, uring) { .engine = ENGINE_URING };
FIXTURE_VARIANT_ADD(flight, fixed) { .engine = ENGINE_FIXED };

FIXTURE_SETUP(flight)
{
	ASSERT_EQ(0, biogen_unload());
	ASSERT_EQ(0, disks_create(&slow, 1));
	ASSERT_EQ(0, biogen_load(disk_path(&slow, 0), "write=1"));
	self->buf = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->buf);
	memset(self->buf, 0x42, 4 * MIB);
}

FIXTURE_TEARDOWN(flight)
{
	EXPECT_EQ(0, biogen_unload());
	EXPECT_EQ(0, disks_destroy());
}

/* Start as many as possible: small ones, and long ones of many pages. */
static int take_off(struct _test_data_flight *self, enum engine_kind kind,
		    struct engine *engine, int fd,
		    struct op op[ENGINE_DEPTH])
{
	static struct iovec iov[ENGINE_DEPTH];
	struct iovec all = { self->buf, 4 * MIB };
	int i, err;

	err = engine_init(engine, kind, &all, 1);
	if (err)
		return err;
	for (i = 0; i < ENGINE_DEPTH; i++) {
		iov[i].iov_len = i % 8 ? 4096 : 256 * KIB;
		iov[i].iov_base = self->buf + i * 32 * KIB;
		op[i] = (struct op) {
			.fd = fd, .write = i % 3 == 0, .iov = &iov[i], .nr = 1,
			.offset = i * 64 * KIB,
		};
	}
	return engine_start(engine, op, ENGINE_DEPTH);
}

/* The process ends, or is killed, at any moment. */
TEST_F_TIMEOUT(flight, death, TIMEOUT)
{
	static struct op op[ENGINE_DEPTH];
	struct engine engine;
	int i, fd, status;
	pid_t pid;

	for (i = 0; i < 12; i++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			fd = open(BIOGEN, O_RDWR | O_DIRECT | O_CLOEXEC);
			for (;;) {
				if (take_off(self, variant->engine, &engine, fd,
					     op))
					_exit(1);
				/* Some exit themselves, with I/O in flight. */
				if (i % 3 == 0)
					_exit(0);
				engine_finish(&engine, op, ENGINE_DEPTH);
				engine_exit(&engine);
			}
		}
		usleep(10000 + i * 7000);
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status) || !status);
	}
}

/* The file is closed and the memory unmapped before the I/O has ended. */
TEST_F_TIMEOUT(flight, closed, TIMEOUT)
{
	static struct op op[ENGINE_DEPTH];
	int fd = open(BIOGEN, O_RDWR | O_DIRECT | O_CLOEXEC), i;
	struct engine engine;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, take_off(self, variant->engine, &engine, fd, op));
	close(fd);
	munmap(self->buf, 4 * MIB);
	ASSERT_EQ(0, engine_finish(&engine, op, ENGINE_DEPTH));
	for (i = 0; i < ENGINE_DEPTH; i++) {
		ssize_t result = op[i].result;

		/*
		 * io_uring may have left one to a thread for later. The thread
		 * finds only part of the memory, or none.
		 */
		if (variant->engine == ENGINE_URING &&
		    (result == -EFAULT || (result > 0 && result % 4096 == 0 &&
					   result < op[i].iov->iov_len)))
			continue;
		EXPECT_EQ(op[i].iov->iov_len, result);
	}
	engine_exit(&engine);
}

/* The disk is removed: I/O in flight ends, later I/O fails. */
TEST_F_TIMEOUT(flight, removed, TIMEOUT)
{
	static struct op op[ENGINE_DEPTH];
	int fd = open(BIOGEN, O_RDWR | O_DIRECT | O_CLOEXEC), i, status;
	struct engine engine;
	pid_t pid;

	ASSERT_LE(0, fd);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		/* Repeat until the disk is gone. */
		do {
			if (take_off(self, variant->engine, &engine, fd, op))
				_exit(1);
			if (engine_finish(&engine, op, ENGINE_DEPTH))
				_exit(2);
			engine_exit(&engine);
			for (i = 0; i < ENGINE_DEPTH; i++)
				if (op[i].result == -EFAULT ||
				    op[i].result == -EINVAL)
					_exit(3);
		} while (op[1].result > 0);
		_exit(0);
	}
	usleep(300000);
	ASSERT_EQ(0, null_blk_power(0, false));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_GE(0, pread(fd, self->buf, 4096, 0));
	EXPECT_EQ(-1, pwrite(fd, self->buf, 4096, 0));
	close(fd);
}

TEST_HARNESS_MAIN
