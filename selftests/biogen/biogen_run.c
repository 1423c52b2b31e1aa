// SPDX-License-Identifier: GPL-2.0
/*
 * biogen's generator: what it refuses, what it does, and what ends it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include <uapi/biogen.h>

#include "util.h"

#define DISK_MIB	3
#define DISK_SIZE	(DISK_MIB * MIB)
#define FOREVER_NS	3600000000000ULL

static const struct disk brd = { .mib = DISK_MIB, .block = 512 };
static const struct disk slow = {
	.null_blk = true, .mib = DISK_MIB, .block = 512, .delay_ns = 200000
};

static const struct disk bad = {
	.null_blk = true, .mib = DISK_MIB, .block = 512,
	.badblocks = "1024-1024"
};

FIXTURE(run) {
	int fd;
	struct biogen_job job[2];
	struct biogen_round rounds[2][4];
	struct biogen_run run;
};

FIXTURE_VARIANT(run) {
	const struct disk *disk;
};

FIXTURE_VARIANT_ADD(run, brd) { .disk = &brd };
FIXTURE_VARIANT_ADD(run, slow) { .disk = &slow };

/* Jobs have CPUs of their own: there are two, if there are two CPUs. */
static unsigned int most_jobs(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1;
}

/* A valid run that ends soon. */
static void good_run(struct _test_data_run *self)
{
	memset(self->job, 0, sizeof(self->job));
	memset(self->rounds, 0xee, sizeof(self->rounds));
	self->job[1].cpu = 1;
	self->run = (struct biogen_run) {
		.pattern	= BIOGEN_SEQUENTIAL,
		.wait		= BIOGEN_ASYNC,
		.block_size	= 4096,
		.depth		= 8,
		.batch		= 4,
		.nr_jobs	= 1,
		.rounds		= 2,
		.ios		= 100,
		.jobs		= (unsigned long)self->job,
		.round_results	= (unsigned long)self->rounds,
	};
}

static int do_run(struct _test_data_run *self)
{
	return ioctl(self->fd, BIOGEN_RUN, &self->run) ? -errno : 0;
}

FIXTURE_SETUP(run)
{
	ASSERT_EQ(0, biogen_unload());
	ASSERT_EQ(0, disks_create(variant->disk, 1));
	ASSERT_EQ(0, disk_fill(variant->disk, 0, 0x5a));
	ASSERT_EQ(0, biogen_load(disk_path(variant->disk, 0), "write=1"));
	self->fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	good_run(self);
}

FIXTURE_TEARDOWN(run)
{
	close(self->fd);
	EXPECT_EQ(0, biogen_unload());
	EXPECT_EQ(0, disks_destroy());
}

/* How many bytes of the disk are not what the fixture wrote. */
static size_t changed(struct _test_data_run *self)
{
	unsigned char *data = aligned_alloc(4096, DISK_SIZE);
	size_t i, n = 0;

	if (pread(self->fd, data, DISK_SIZE, 0) != DISK_SIZE)
		return -1;
	for (i = 0; i < DISK_SIZE; i++)
		n += data[i] != 0x5a;
	free(data);
	return n;
}

/*
 * A bio is not waited for if it ends while it is submitted, and only then. This
 * is the short path, which each kernel must have.
 */
TEST_F_TIMEOUT(run, waits, TIMEOUT)
{
	ASSERT_EQ(0, do_run(self));
	EXPECT_EQ(BIOGEN_DONE, self->run.state);
	EXPECT_EQ(200, self->job[0].ios);
	EXPECT_EQ(variant->disk == &slow, self->job[0].idle_ns > 0);
}

/*
 * All combinations of pattern and waiting; and each set of flags with each of
 * their values.
 */
TEST_F_TIMEOUT(run, counts, TIMEOUT)
{
	unsigned int n, i, j;

	for (n = 0; n < 3 * (BIOGEN_FLAGS + 1); n++) {
		unsigned int pattern = n / (BIOGEN_FLAGS + 1);
		unsigned int flags = n % (BIOGEN_FLAGS + 1);
		unsigned int jobs = flags & 1 ? most_jobs() : 1;

		good_run(self);
		self->run.pattern = BIOGEN_FIXED + pattern;
		self->run.flags = flags;
		self->run.nr_jobs = jobs;
		self->run.write_percent = 30;
		self->run.warmup_ios = 5;
		if ((pattern + flags / 2) % 2) {
			self->run.depth = 1;
			self->run.batch = 1;
		}
		ASSERT_EQ(0, do_run(self));
		ASSERT_EQ(BIOGEN_DONE, self->run.state);
		for (i = 0; i < jobs; i++) {
			struct biogen_job *job = &self->job[i];

			ASSERT_EQ(200, job->ios);
			ASSERT_EQ(0, job->errors);
			ASSERT_EQ(0, job->error);
			ASSERT_EQ(200 * 4096, job->bytes);
			ASSERT_LT(0, job->reads);
			ASSERT_LT(job->reads, 200);
		}
		for (i = j = 0; i < BIOGEN_BUCKETS; i++)
			j += self->job[0].latency[i];
		ASSERT_EQ(flags & BIOGEN_LATENCY ? 200 : 0, j);
		ASSERT_EQ(100, ((struct biogen_round *)self->rounds)[0].ios);
	}
}

/* It writes to the whole area, and nowhere else. */
TEST_F_TIMEOUT(run, writes, TIMEOUT)
{
	self->run.write_percent = 100;
	self->run.offset = MIB;
	self->run.length = MIB;
	self->run.ios = MIB / 4096;
	self->run.rounds = 1;
	ASSERT_EQ(0, do_run(self));
	EXPECT_EQ(0, self->job[0].reads);
	EXPECT_EQ(MIB, self->job[0].bytes);
	EXPECT_EQ(MIB, changed(self));
}

TEST_F_TIMEOUT(run, duration, TIMEOUT)
{
	uint64_t begin = now_ns();

	self->run.ios = 0;
	self->run.duration_ns = 50000000;
	ASSERT_EQ(0, do_run(self));
	EXPECT_EQ(BIOGEN_DONE, self->run.state);
	EXPECT_LE(2 * 50000000, self->job[0].ns);
	EXPECT_LE(2 * 50000000, now_ns() - begin);
	EXPECT_LT(0, self->job[0].ios);
}

/* If the clock never reaches the duration, the count ends the run. */
TEST_F_TIMEOUT(run, endless_duration, TIMEOUT)
{
	self->run.ios = 1000;
	self->run.duration_ns = UINT64_MAX;
	ASSERT_EQ(0, do_run(self));
	EXPECT_EQ(BIOGEN_DONE, self->run.state);
	EXPECT_EQ(2000, self->job[0].ios);
}

struct field {
	size_t at;
	size_t size;
};

#define RUN_FIELD(name) {						\
	offsetof(struct biogen_run, name),				\
	sizeof(((struct biogen_run *)0)->name)				\
}

/* A run with one wrong field is refused with this error. */
static const struct {
	struct field field;
	uint64_t value;
	int err;
} refused[] = {
	{ RUN_FIELD(flags), BIOGEN_FLAGS + 1, EINVAL },
	{ RUN_FIELD(flags), 1U << 31, EINVAL },
	{ RUN_FIELD(pattern), 0, EINVAL },
	{ RUN_FIELD(pattern), BIOGEN_RANDOM + 1, EINVAL },
	{ RUN_FIELD(wait), 0, EINVAL },
	{ RUN_FIELD(wait), BIOGEN_POLLED + 1, EINVAL },
	{ RUN_FIELD(write_percent), 101, EINVAL },
	{ RUN_FIELD(write_percent), -1, EINVAL },
	{ RUN_FIELD(block_size), 0, EINVAL },
	{ RUN_FIELD(block_size), 511, EINVAL },
	{ RUN_FIELD(block_size), BIOGEN_MAX_BLOCK_SIZE + 512, EINVAL },
	{ RUN_FIELD(block_size), -512, EINVAL },
	{ RUN_FIELD(depth), 0, EINVAL },
	{ RUN_FIELD(depth), BIOGEN_MAX_DEPTH + 1, EINVAL },
	{ RUN_FIELD(depth), -1, EINVAL },
	{ RUN_FIELD(batch), 0, EINVAL },
	/* More than the depth. */
	{ RUN_FIELD(batch), 9, EINVAL },
	{ RUN_FIELD(nr_jobs), 0, EINVAL },
	/* More than CPUs. */
	{ RUN_FIELD(nr_jobs), 3, EINVAL },
	{ RUN_FIELD(nr_jobs), -1, EINVAL },
	/* Two of them on one CPU. */
	{ RUN_FIELD(nr_jobs), 2, EINVAL },
	{ RUN_FIELD(rounds), 0, EINVAL },
	{ RUN_FIELD(rounds), BIOGEN_MAX_ROUNDS + 1, EINVAL },
	/* Without BIOGEN_MARK. */
	{ RUN_FIELD(region), 1, EINVAL },
	{ RUN_FIELD(region), BIOGEN_MAX_REGION + 1, EINVAL },
	{ RUN_FIELD(offset), 1, EINVAL },
	{ RUN_FIELD(offset), DISK_SIZE - 512, EINVAL },
	{ RUN_FIELD(offset), DISK_SIZE, EINVAL },
	{ RUN_FIELD(offset), -512, EINVAL },
	{ RUN_FIELD(length), DISK_SIZE + 4096, EINVAL },
	{ RUN_FIELD(length), 4095, EINVAL },
	{ RUN_FIELD(length), -4096, EINVAL },
	/* Without a duration. */
	{ RUN_FIELD(ios), 0, EINVAL },
	{ RUN_FIELD(state), 1, EINVAL },
	{ RUN_FIELD(reserved[0]), 1, EINVAL },
	{ RUN_FIELD(reserved[6]), 1, EINVAL },
	{ RUN_FIELD(jobs), 0, EFAULT },
};

/* Values out of range are refused before anything runs. */
TEST_F_TIMEOUT(run, refuses, TIMEOUT)
{
	struct biogen_job before[2];
	int i;

	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		good_run(self);
		self->run.write_percent = 100;
		self->job[1].cpu = 0;
		memcpy(before, self->job, sizeof(before));
		memcpy((char *)&self->run + refused[i].field.at, &refused[i].value,
		       refused[i].field.size);
		EXPECT_EQ(-refused[i].err, do_run(self)) {
			TH_LOG("byte %zu: %llx", refused[i].field.at,
			       (unsigned long long)refused[i].value);
		}
		EXPECT_EQ(0, memcmp(before, self->job, sizeof(before)));
	}
	EXPECT_EQ(0, changed(self));
	good_run(self);
	EXPECT_EQ(0, do_run(self));
}

TEST_F_TIMEOUT(run, refuses_jobs, TIMEOUT)
{
	self->job[0].reserved = 1;
	EXPECT_EQ(-EINVAL, do_run(self));
	good_run(self);
	self->job[0].cpu = sysconf(_SC_NPROCESSORS_CONF);
	EXPECT_EQ(-EINVAL, do_run(self));
	good_run(self);
	self->job[0].cpu = -1;
	EXPECT_EQ(-EINVAL, do_run(self));
	good_run(self);
	self->run.nr_jobs = 2;
	self->job[1].reserved = 1;
	EXPECT_EQ(-EINVAL, do_run(self));
	good_run(self);
	self->run.offset = 4096;
	self->run.length = DISK_SIZE;
	EXPECT_EQ(-EINVAL, do_run(self));
	good_run(self);
	self->run.wait = BIOGEN_POLLED;
	EXPECT_EQ(disk_polls(variant->disk) ? 0 : -EOPNOTSUPP, do_run(self));
}

TEST_F_TIMEOUT(run, bad_pointers, TIMEOUT)
{
	void *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	void *constant = mmap(NULL, 4096, PROT_READ,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct biogen_run *fixed = constant;

	EXPECT_EQ(-1, ioctl(self->fd, BIOGEN_RUN, NULL));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, ioctl(self->fd, BIOGEN_RUN, gone));
	EXPECT_EQ(EFAULT, errno);
	/* The end of the structure is on a missing page. */
	EXPECT_EQ(-1, ioctl(self->fd, BIOGEN_RUN, (char *)gone - 8));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, ioctl(self->fd, BIOGEN_INFO, NULL));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, ioctl(self->fd, BIOGEN_INFO, constant));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, ioctl(self->fd, _IO(_IOC_TYPE(BIOGEN_RUN), 3), constant));
	EXPECT_EQ(ENOTTY, errno);
	EXPECT_EQ(-1, ioctl(self->fd, 0, constant));
	EXPECT_EQ(ENOTTY, errno);
	/* A structure of another size is another command's. */
	EXPECT_EQ(-1, ioctl(self->fd, BIOGEN_RUN + (8 << _IOC_SIZESHIFT),
			    &self->run));
	EXPECT_EQ(ENOTTY, errno);

	self->run.jobs = 0;
	EXPECT_EQ(-EFAULT, do_run(self));
	good_run(self);
	self->run.jobs = (unsigned long)gone;
	EXPECT_EQ(-EFAULT, do_run(self));
	/* That the results cannot be written is only known afterwards. */
	good_run(self);
	self->run.jobs = (unsigned long)constant;
	EXPECT_EQ(-EFAULT, do_run(self));
	good_run(self);
	self->run.round_results = 8;
	EXPECT_EQ(-EFAULT, do_run(self));
	good_run(self);
	ASSERT_EQ(0, mprotect(constant, 4096, PROT_READ | PROT_WRITE));
	*fixed = self->run;
	ASSERT_EQ(0, mprotect(constant, 4096, PROT_READ));
	EXPECT_EQ(-1, ioctl(self->fd, BIOGEN_RUN, constant));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(0, do_run(self));
}

static void ignore(int sig)
{
}

static void forever(struct _test_data_run *self)
{
	good_run(self);
	self->run.nr_jobs = most_jobs();
	self->run.rounds = 1;
	self->run.ios = 0;
	self->run.duration_ns = FOREVER_NS;
}

static void *run_thread(void *arg)
{
	struct _test_data_run *self = arg;

	return (void *)(long)do_run(self);
}

/* How long the generator's thread on @cpu has used it, in clock ticks. */
static unsigned long thread_ticks(unsigned int cpu)
{
	unsigned long user, system, ticks = 0;
	char path[300], text[400], name[32];
	struct dirent *entry;
	DIR *proc;

	snprintf(name, sizeof(name), "(biogen/%u)", cpu);
	proc = opendir("/proc");
	while (proc && !ticks) {
		entry = readdir(proc);
		if (!entry)
			break;
		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9' ||
		    read_text(path, text, sizeof(text)) < 0 ||
		    !strstr(text, name))
			continue;
		/* Ten fields between its state and these two. */
		if (sscanf(strchr(text, ')'), ") %*c %*d %*d %*d %*d %*d %*u"
			   " %*u %*u %*u %*u %lu %lu", &user, &system) == 2)
			ticks = user + system;
	}
	closedir(proc);
	return ticks;
}

/* Start what forever() has set up. All of its jobs are under way afterwards. */
static int start(struct _test_data_run *self, pthread_t *thread)
{
	unsigned int cpu;
	int err;

	/* The threads of the run before may exit after that run has ended. */
	for (cpu = 0; cpu < self->run.nr_jobs; cpu++)
		while (thread_ticks(cpu))
			usleep(1000);
	err = -pthread_create(thread, NULL, run_thread, self);
	for (cpu = 0; !err && cpu < self->run.nr_jobs; cpu++)
		while (thread_ticks(cpu) < 3)
			usleep(1000);
	return err;
}

TEST_F_TIMEOUT(run, signal, TIMEOUT)
{
	struct sigaction action = { .sa_handler = ignore };
	pthread_t thread;
	void *ret;

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	forever(self);
	ASSERT_EQ(0, start(self, &thread));
	ASSERT_EQ(0, pthread_kill(thread, SIGUSR1));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
	EXPECT_EQ(BIOGEN_STOPPED, self->run.state);
	EXPECT_LT(0, self->job[0].ios);
	EXPECT_LT(0, self->job[self->run.nr_jobs - 1].ios);
}

TEST_F_TIMEOUT(run, close, TIMEOUT)
{
	pthread_t thread;
	void *ret;

	forever(self);
	ASSERT_EQ(0, start(self, &thread));
	ASSERT_EQ(0, close(self->fd));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
	EXPECT_EQ(BIOGEN_STOPPED, self->run.state);
	self->fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
	good_run(self);
	EXPECT_EQ(0, do_run(self));
}

/* One run per file; other files have runs of their own. */
TEST_F_TIMEOUT(run, two, TIMEOUT)
{
	struct _test_data_run *other = calloc(1, sizeof(*other));
	pthread_t thread;
	void *ret;

	forever(self);
	ASSERT_EQ(0, start(self, &thread));
	other->fd = self->fd;
	good_run(other);
	EXPECT_EQ(-EBUSY, do_run(other));
	other->fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, other->fd);
	good_run(other);
	EXPECT_EQ(0, do_run(other));
	EXPECT_EQ(BIOGEN_DONE, other->run.state);
	close(other->fd);
	close(self->fd);
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(BIOGEN_STOPPED, self->run.state);
	self->fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
	free(other);
}

/* How many threads generators have at the moment. */
static unsigned int nr_threads(void)
{
	struct dirent *entry;
	unsigned int nr = 0;
	char path[300], text[64];
	DIR *proc = opendir("/proc");

	while (proc && (entry = readdir(proc))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' &&
		    !read_text(path, text, sizeof(text)) &&
		    !strncmp(text, "biogen/", 7))
			nr++;
	}
	closedir(proc);
	return nr;
}

/* The jobs of all files together are limited, and ended jobs do not count. */
TEST_F_TIMEOUT(run, limit, TIMEOUT)
{
	struct _test_data_run *other;
	unsigned int nr, i, round;
	pthread_t *thread;
	char text[64];
	void *ret;

	ASSERT_EQ(0, read_text("/sys/devices/system/cpu/possible", text,
			       sizeof(text)));
	/* It says "0", or "0-" and the last. */
	nr = text[1] == '-' ? atoi(text + 2) + 1 : 1;
	nr = nr * BIOGEN_MAX_CPU_JOBS / most_jobs();
	other = calloc(nr, sizeof(*other));
	thread = calloc(nr, sizeof(*thread));
	for (round = 0; round < 2; round++) {
		for (i = 0; i < nr; i++) {
			other[i].fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
			ASSERT_LE(0, other[i].fd);
			forever(&other[i]);
			ASSERT_EQ(0, pthread_create(&thread[i], NULL,
						    run_thread, &other[i]));
		}
		while (nr_threads() < most_jobs() * nr)
			usleep(1000);
		good_run(self);
		EXPECT_EQ(-EBUSY, do_run(self));
		for (i = 0; i < nr; i++) {
			ASSERT_EQ(0, close(other[i].fd));
			ASSERT_EQ(0, pthread_join(thread[i], &ret));
			EXPECT_EQ(NULL, ret);
			EXPECT_EQ(BIOGEN_STOPPED, other[i].run.state);
		}
		EXPECT_EQ(0, do_run(self));
	}
	free(other);
	free(thread);
}

/* Permission for the device is not permission for kernel threads. */
TEST_F_TIMEOUT(run, not_privileged, TIMEOUT)
{
	struct biogen_info info;
	int status;
	pid_t pid;

	/* Without CONFIG_MULTIUSER everyone has all capabilities. */
	if (setuid(0))
		SKIP(return, "no users");
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (setuid(1000) || do_run(self) != -EPERM)
			_exit(1);
		_exit(ioctl(self->fd, BIOGEN_INFO, &info) || changed(self));
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, do_run(self));
}

/* A device that was set read-only meanwhile is not written. */
TEST_F_TIMEOUT(run, read_only_device, TIMEOUT)
{
	int disk = open(disk_path(variant->disk, 0), O_RDONLY | O_CLOEXEC);
	int on = 1;

	ASSERT_LE(0, disk);
	ASSERT_EQ(0, ioctl(disk, BLKROSET, &on));
	self->run.write_percent = 1;
	EXPECT_EQ(-EPERM, do_run(self));
	EXPECT_EQ(0, changed(self));
	self->run.write_percent = 0;
	EXPECT_EQ(0, do_run(self));
	on = 0;
	ASSERT_EQ(0, ioctl(disk, BLKROSET, &on));
	good_run(self);
	self->run.write_percent = 1;
	EXPECT_EQ(0, do_run(self));
	close(disk);
}

struct dirtier {
	unsigned char *map;
	size_t pages;
	bool stop;
};

static void *keep_dirtying(void *arg)
{
	struct dirtier *dirtier = arg;
	size_t i = 0;

	while (!__atomic_load_n(&dirtier->stop, __ATOMIC_RELAXED)) {
		__atomic_fetch_add(&dirtier->map[i * 4096], 1, __ATOMIC_RELAXED);
		i = (i + 1) % dirtier->pages;
	}
	return NULL;
}

/*
 * Pages of the page cache that others keep dirtying cannot be dropped after a
 * run. Its results are valid nevertheless.
 */
TEST_F_TIMEOUT(run, dirtied, TIMEOUT)
{
	int cached = open(disk_path(variant->disk, 0), O_RDWR | O_CLOEXEC);
	struct dirtier dirtier = { .pages = 64 };
	pthread_t thread, other;
	void *ret;
	int i;

	ASSERT_LE(0, cached);
	dirtier.map = mmap(NULL, dirtier.pages * 4096, PROT_READ | PROT_WRITE,
			   MAP_SHARED, cached, 0);
	ASSERT_NE(MAP_FAILED, dirtier.map);
	for (i = 0; i < 10; i++) {
		forever(self);
		self->run.write_percent = 100;
		self->run.length = dirtier.pages * 4096;
		ASSERT_EQ(0, start(self, &thread));
		dirtier.stop = false;
		ASSERT_EQ(0, pthread_create(&other, NULL, keep_dirtying,
					    &dirtier));
		usleep(10000);
		ASSERT_EQ(0, close(self->fd));
		ASSERT_EQ(0, pthread_join(thread, &ret));
		__atomic_store_n(&dirtier.stop, true, __ATOMIC_RELAXED);
		ASSERT_EQ(0, pthread_join(other, NULL));
		EXPECT_EQ(0, (long)ret);
		EXPECT_EQ(BIOGEN_STOPPED, self->run.state);
		EXPECT_LT(0, self->job[0].ios);
		self->fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
		ASSERT_LE(0, self->fd);
		ASSERT_EQ(0, fsync(cached));
	}
	munmap(dirtier.map, dirtier.pages * 4096);
	close(cached);
}

TEST_F_TIMEOUT(run, killed, TIMEOUT)
{
	int i, status;
	pid_t pid;

	for (i = 0; i < 10; i++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			forever(self);
			do_run(self);
			_exit(0);
		}
		/* While it starts, and while it runs. */
		usleep(i * 5000);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status));
	}
	good_run(self);
	EXPECT_EQ(0, do_run(self));
}

TEST_F_TIMEOUT(run, read_only_file, TIMEOUT)
{
	close(self->fd);
	self->fd = open(BIOGEN, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(0, do_run(self));
	self->run.state = 0;
	self->run.write_percent = 1;
	EXPECT_EQ(-EBADF, do_run(self));
	EXPECT_EQ(0, changed(self));
}

/* The page cache is written back before the run and dropped after it. */
TEST_F_TIMEOUT(run, coherent, TIMEOUT)
{
	int cached = open(disk_path(variant->disk, 0), O_RDWR | O_CLOEXEC);
	char data[4096], zero[4096] = "";

	ASSERT_LE(0, cached);
	memset(data, 1, sizeof(data));
	ASSERT_EQ(sizeof(data), pwrite(cached, data, sizeof(data), 0));
	self->run.write_percent = 100;
	self->run.length = 4096;
	self->run.ios = 1;
	self->run.rounds = 1;
	ASSERT_EQ(0, do_run(self));
	ASSERT_EQ(sizeof(data), pread(cached, data, sizeof(data), 0));
	EXPECT_EQ(0, memcmp(data, zero, sizeof(data)));
	close(cached);
}

FIXTURE(failing) {
	int fd;
};

FIXTURE_SETUP(failing)
{
	ASSERT_EQ(0, biogen_unload());
	ASSERT_EQ(0, disks_create(&bad, 1));
	ASSERT_EQ(0, biogen_load(disk_path(&bad, 0), "write=1"));
	self->fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(failing)
{
	close(self->fd);
	EXPECT_EQ(0, biogen_unload());
	EXPECT_EQ(0, disks_destroy());
}

/* The first error ends the run, and the results have its place. */
TEST_F_TIMEOUT(failing, error, TIMEOUT)
{
	struct _test_data_run other = { .fd = self->fd };
	int percent;

	for (percent = 0; percent <= 100; percent += 100) {
		good_run(&other);
		other.run.ios = 2 * MIB / 4096;
		/* I/Os that are merged fail together. */
		other.run.batch = 1;
		other.run.rounds = 1;
		other.run.write_percent = percent;
		ASSERT_EQ(0, do_run(&other));
		EXPECT_EQ(BIOGEN_FAILED, other.run.state);
		EXPECT_EQ(EIO, other.job[0].error);
		EXPECT_EQ(1, other.job[0].errors);
		EXPECT_EQ(1024 * 512, other.job[0].error_offset);
		EXPECT_EQ(percent / 100, other.job[0].error_write);
	}
}

/* If the target is removed during a run, the run ends. */
TEST_F_TIMEOUT(failing, removed, TIMEOUT)
{
	struct _test_data_run other = { .fd = self->fd };
	pthread_t thread;
	void *ret;

	forever(&other);
	other.run.length = 64 * 4096;
	ASSERT_EQ(0, start(&other, &thread));
	ASSERT_EQ(0, null_blk_power(0, false));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
	EXPECT_EQ(BIOGEN_FAILED, other.run.state);
	EXPECT_NE(0, other.job[0].error | other.job[1].error);
}

TEST_HARNESS_MAIN
