// SPDX-License-Identifier: GPL-2.0
/*
 * Every place of an operation where the kernel may fail to get memory, or a bio
 * may fail, fails once: the first place in the first run, the second in the
 * next, until the operation ends before the fault. Needs a kernel with
 * FAULT_INJECTION.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include <uapi/biogen.h>

#include "engine.h"
#include "util.h"

#define DEBUGFS		"/sys/kernel/debug"
#define DISK_MIB	8
#define MAX_FAULTS	20000

static const struct disk brd = { .mib = DISK_MIB, .block = 512 };
static const struct disk slow = {
	.null_blk = true, .mib = DISK_MIB, .block = 512, .delay_ns = 200000
};

static int fail_nth = -1;

/* This thread fails at its @nth chance; 0: never. */
static void fault_arm(unsigned int nth)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", nth);

	if (pwrite(fail_nth, text, len, 0) != len)
		abort();
}

/* Return: whether it was. */
static bool fault_disarm(void)
{
	char text[16] = "";

	if (pread(fail_nth, text, sizeof(text) - 1, 0) <= 0)
		abort();
	fault_arm(0);
	return !atoi(text);
}

static const char *const kinds[] = {
	"failslab", "fail_page_alloc", "fail_make_request"
};

static int fault_set(const char *name, unsigned long value)
{
	char path[128], text[32];
	int i, err = 0;

	snprintf(text, sizeof(text), "%#lx", value);
	for (i = 0; !err && i < ARRAY_SIZE(kinds); i++) {
		snprintf(path, sizeof(path), DEBUGFS "/%s/%s", kinds[i], name);
		err = write_text(path, text);
	}
	return err;
}

/* The addresses of the kernel's @function and of the next one. */
static int find_function(const char *function, unsigned long *start,
			 unsigned long *end)
{
	unsigned long at;
	char name[256];
	FILE *symbols;

	*start = 0;
	*end = -1UL;
	symbols = fopen("/proc/kallsyms", "r");
	if (!symbols)
		return -errno;
	while (fscanf(symbols, "%lx %*c %255s%*[^\n]", &at, name) == 2)
		if (!strcmp(name, function))
			*start = at;
	rewind(symbols);
	while (fscanf(symbols, "%lx %*c %255s%*[^\n]", &at, name) == 2)
		if (at > *start && at < *end)
			*end = at;
	fclose(symbols);
	return *start ? 0 : -ENOENT;
}

/* Faults count only while @function of the kernel has been called; NULL: all. */
static int faults_below(const char *function)
{
	unsigned long start = 0, end = -1UL;
	int err = 0;

	if (function)
		err = find_function(function, &start, &end);
	if (!err)
		err = fault_set("require-start", start);
	return err ?: fault_set("require-end", end);
}

/* Faults do not count while @function has been called. */
static int faults_not_below(const char *function)
{
	unsigned long start, end;
	int err;

	err = find_function(function, &start, &end);
	if (!err)
		err = fault_set("reject-start", start);
	return err ?: fault_set("reject-end", end);
}

/* Each kind of fault, in every context, without a message in the log. */
static int faults_init(const char *disk)
{
	static const char *const settings[][2] = {
		{ "failslab/ignore-gfp-wait", "N" },
		{ "failslab/verbose", "0" },
		{ "fail_page_alloc/ignore-gfp-wait", "N" },
		{ "fail_page_alloc/ignore-gfp-highmem", "N" },
		{ "fail_page_alloc/min-order", "0" },
		{ "fail_page_alloc/verbose", "0" },
		{ "fail_make_request/verbose", "0" },
	};
	char path[128];
	int i, err;

	if (mount("debugfs", DEBUGFS, "debugfs", 0, NULL) && errno != EBUSY)
		return -errno;
	for (i = 0; i < ARRAY_SIZE(settings); i++) {
		snprintf(path, sizeof(path), DEBUGFS "/%s", settings[i][0]);
		err = write_text(path, settings[i][1]);
		if (err)
			return err;
	}
	snprintf(path, sizeof(path), "/sys/block/%s/make-it-fail",
		 disk + strlen("/dev/"));
	err = write_text(path, "1");
	if (err)
		return err;
	fail_nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fail_nth < 0)
		return -errno;
	/* The kernel leaks the name of a cache that it cannot show. */
	err = faults_not_below("sysfs_slab_add");
	return err ?: faults_below(NULL);
}

FIXTURE(nth) {
	unsigned char *buf;
	int fd;
	struct engine engine;
	struct biogen_job job;
	struct biogen_run run;
	struct timespec nodes;
};

FIXTURE_VARIANT(nth) {
	const struct disk *disk;
};

FIXTURE_VARIANT_ADD(nth, brd) { .disk = &brd };
FIXTURE_VARIANT_ADD(nth, slow) { .disk = &slow };

FIXTURE_SETUP(nth)
{
	ASSERT_EQ(0, biogen_unload());
	ASSERT_EQ(0, disks_create(variant->disk, 1));
	self->buf = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ASSERT_NE(MAP_FAILED, self->buf);
	ASSERT_EQ(0, disk_fill(variant->disk, 0, 0x5a));
	self->fd = -1;
	ASSERT_EQ(0, faults_init(disk_path(variant->disk, 0)));
}

FIXTURE_TEARDOWN(nth)
{
	close(fail_nth);
	EXPECT_EQ(0, biogen_unload());
	EXPECT_EQ(0, disks_destroy());
}

/**
 * struct faulty - an operation and what surrounds it
 * @name: for the report
 * @prepare: before each time, or NULL
 * @run: the operation; returns 0 or more, or a negative errno
 * @check: after each time, whether it failed or not, or NULL; returns whether
 *	all is as it must be after @ret
 * @arg: theirs
 * @errors: what @run may return when a fault was hit, up to a 0
 * @least: the number of faults that there are at least
 */
struct faulty {
	const char *name;
	int (*prepare)(struct _test_data_nth *self, const void *arg);
	long (*run)(struct _test_data_nth *self, const void *arg);
	bool (*check)(struct _test_data_nth *self, const void *arg, long ret);
	const void *arg;
	int errors[6];
	unsigned int least;
};

static bool expected(const struct faulty *op, long ret)
{
	int i;

	for (i = 0; op->errors[i]; i++)
		if (ret == -op->errors[i])
			return true;
	return ret >= 0;
}

static void sweep(struct __test_metadata *_metadata,
		  struct _test_data_nth *self, const struct faulty *op)
{
	unsigned int nth, failed = 0;
	bool hit = true;
	long ret;

	for (nth = 1; hit; nth++) {
		ASSERT_GT(MAX_FAULTS, nth) {
			TH_LOG("%s never ends", op->name);
		}
		if (op->prepare)
			ASSERT_EQ(0, op->prepare(self, op->arg));
		fault_arm(nth);
		ret = op->run(self, op->arg);
		hit = fault_disarm();
		ASSERT_TRUE(hit ? expected(op, ret) : ret >= 0) {
			TH_LOG("%s returns %ld, fault %u was %s", op->name,
			       ret, nth, hit ? "hit" : "not hit");
		}
		if (op->check)
			ASSERT_TRUE(op->check(self, op->arg, ret)) {
				TH_LOG("%s leaves a mess after fault %u, returned %ld",
				       op->name, nth, ret);
			}
		failed += ret < 0;
	}
	/* The last one was not hit. */
	TH_LOG("%s: %u faults, %u of them fatal", op->name, nth - 2, failed);
	EXPECT_LE(op->least, failed);
}

/* Loading. */

struct module {
	const char *name;
	const char *params;
	const char *node;
};

static long load(struct _test_data_nth *self, const void *arg)
{
	const struct module *module = arg;

	return module_load(module->name, module->params);
}

/* When a node was last added to /dev or removed from it. */
static struct timespec nodes_changed(void)
{
	struct stat st;

	if (stat("/dev", &st))
		abort();
	return st.st_mtim;
}

/* Wait until a change of /dev gets another time than the last one. */
static int remember_nodes(struct _test_data_nth *self, const void *arg)
{
	struct timespec now;

	self->nodes = nodes_changed();
	do {
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	} while (now.tv_sec == self->nodes.tv_sec &&
		 now.tv_nsec == self->nodes.tv_nsec);
	return 0;
}

static bool nodes_are_the_same(struct _test_data_nth *self)
{
	struct timespec now = nodes_changed();

	return now.tv_sec == self->nodes.tv_sec &&
	       now.tv_nsec == self->nodes.tv_nsec;
}

static bool unloads(struct _test_data_nth *self, const void *arg, long ret)
{
	const struct module *module = arg;

	/* A program may open a node at once: biogen fails before there is one. */
	if (ret && !strcmp(module->name, "biogen") && !nodes_are_the_same(self))
		return false;
	if (module_unload(module->name) != (ret ? -ENOENT : 0))
		return false;
	return access(module->node, F_OK) && errno == ENOENT;
}

/* A thousand loads. */
TEST_F_TIMEOUT(nth, load, LONG_TIMEOUT)
{
	char device[64];
	const struct module modules[] = {
		{ "blknull", "", "/dev/blknull0" },
		{ "blknull", "mode=mq", "/dev/blknull0" },
		{ "biogen", "", "/dev/biogen0" },
		{ "biogen", device, "/dev/biogen0" },
	};
	struct faulty op = {
		/* EINVAL: device_add_disk() does not check for a name. */
		.prepare = remember_nodes, .run = load, .check = unloads,
		.errors = { ENOMEM, EINVAL }, .least = 1,
	};
	int i;

	snprintf(device, sizeof(device), "device=%s write=1",
		 disk_path(variant->disk, 0));
	/* Not before their own functions are called. */
	ASSERT_EQ(0, faults_below("do_one_initcall"));
	for (i = 0; i < ARRAY_SIZE(modules); i++) {
		/* To blknull it makes no difference whose disk it is. */
		if (variant->disk != &brd && strcmp(modules[i].name, "biogen"))
			continue;
		op.name = modules[i].name;
		op.arg = &modules[i];
		sweep(_metadata, self, &op);
	}
}

/* Nodes. */

#define PARAMETERS	"/sys/module/biogen/parameters/"

static long make_node(struct _test_data_nth *self, const void *arg)
{
	return write_text(PARAMETERS "device", arg);
}

static bool remove_node(struct _test_data_nth *self, const void *arg, long ret)
{
	if (!access(BIOGEN, F_OK) == !!ret)
		return false;
	return write_text(PARAMETERS "device", "-biogen0") ==
	       (ret ? -ENODEV : 0) && access(BIOGEN, F_OK);
}

TEST_F_TIMEOUT(nth, nodes, TIMEOUT)
{
	const struct faulty op = {
		.name = "device", .run = make_node, .check = remove_node,
		.arg = disk_path(variant->disk, 0),
		.errors = { ENOMEM }, .least = 1,
	};

	ASSERT_EQ(0, module_load("biogen", "write=1"));
	sweep(_metadata, self, &op);
}

/* Files. */

static long open_file(struct _test_data_nth *self, const void *arg)
{
	self->fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
	return self->fd < 0 ? -errno : 0;
}

static bool close_file(struct _test_data_nth *self, const void *arg, long ret)
{
	return ret || !close(self->fd);
}

TEST_F_TIMEOUT(nth, open, TIMEOUT)
{
	const struct faulty op = {
		.name = "open", .run = open_file, .check = close_file,
		.errors = { ENOMEM, ENFILE }, .least = 1,
	};

	ASSERT_EQ(0, biogen_load(disk_path(variant->disk, 0), "write=1"));
	sweep(_metadata, self, &op);
}

/* I/O. */

#define IOVS	8

/**
 * struct io_shape - an I/O
 * @write: direction
 * @len: of one buffer
 * @nr: of buffers, up to IOVS
 */
struct io_shape {
	bool write;
	size_t len;
	int nr;
};

static int fill_buffer(struct _test_data_nth *self, const void *arg)
{
	const struct io_shape *shape = arg;

	memset(self->buf, shape->write ? 0x5a : 0, 4 * MIB);
	return 0;
}

static long do_io(struct _test_data_nth *self, const void *arg)
{
	const struct io_shape *shape = arg;
	struct iovec iov[IOVS];
	struct op op = {
		.fd = self->fd, .write = shape->write, .iov = iov,
		.nr = shape->nr, .offset = 4096,
	};
	int i, err;

	/* Not adjacent: no two of them form one segment. */
	for (i = 0; i < shape->nr; i++) {
		iov[i].iov_base = self->buf + i * (shape->len + 4096);
		iov[i].iov_len = shape->len;
	}
	err = engine_run(&self->engine, &op, 1);
	return err ?: op.result;
}

/* Only the disk's data, and all of them after a success. */
static bool right_data(struct _test_data_nth *self, const void *arg, long ret)
{
	const struct io_shape *shape = arg;
	size_t i, at, done = 0;

	if (ret > 0 && ret != shape->len * shape->nr)
		return false;
	for (i = 0; i < shape->nr; i++) {
		for (at = 0; at < shape->len; at++, done++) {
			unsigned char byte =
				self->buf[i * (shape->len + 4096) + at];

			if (ret > 0 ? byte != 0x5a : byte && byte != 0x5a)
				return false;
		}
	}
	return true;
}

static const enum engine_kind engines[] = {
	ENGINE_SYNC, ENGINE_AIO, ENGINE_URING, ENGINE_FIXED
};

TEST_F_TIMEOUT(nth, io, TIMEOUT)
{
	static const struct io_shape shapes[] = {
		{ false, 4096, 1 },
		{ true, 4096, 1 },
		{ false, 16384, 1 },
		{ false, MIB, 1 },
		{ true, MIB, 1 },
		{ false, 65536, IOVS },
		{ true, 65536, IOVS },
	};
	struct iovec buffer = { self->buf, 4 * MIB };
	char name[64];
	struct faulty op = {
		.name = name, .prepare = fill_buffer, .run = do_io,
		.check = right_data,
		/* Try again to get an iocb. */
		.errors = { ENOMEM, EIO, EAGAIN, EFAULT },
	};
	int kind, i;

	ASSERT_EQ(0, biogen_load(disk_path(variant->disk, 0), "write=1"));
	self->fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	for (kind = 0; kind < ARRAY_SIZE(engines); kind++) {
		ASSERT_EQ(0, engine_init(&self->engine, engines[kind], &buffer,
					 1));
		/* io_uring may repeat it in a thread where nothing fails. */
		op.least = engines[kind] < ENGINE_URING;
		for (i = 0; i < ARRAY_SIZE(shapes); i++) {
			if (engines[kind] == ENGINE_FIXED && shapes[i].nr > 1)
				continue;
			snprintf(name, sizeof(name), "engine %d, %s of %d x %zu",
				 engines[kind],
				 shapes[i].write ? "write" : "read",
				 shapes[i].nr, shapes[i].len);
			op.arg = &shapes[i];
			sweep(_metadata, self, &op);
		}
		engine_exit(&self->engine);
	}
	close(self->fd);
}

/* The generator. */

static long generate(struct _test_data_nth *self, const void *arg)
{
	return ioctl(self->fd, BIOGEN_RUN, &self->run) ? -errno : 0;
}

static int prepare_run(struct _test_data_nth *self, const void *arg)
{
	memset(&self->job, 0, sizeof(self->job));
	self->run = (struct biogen_run) {
		.flags		= BIOGEN_LATENCY,
		.pattern	= BIOGEN_RANDOM,
		.wait		= BIOGEN_ASYNC,
		.block_size	= 8192,
		.depth		= 8,
		.batch		= 4,
		.nr_jobs	= 1,
		.rounds		= 2,
		.ios		= 20,
		.jobs		= (unsigned long)&self->job,
	};
	return 0;
}

static bool ran(struct _test_data_nth *self, const void *arg, long ret)
{
	if (ret)
		return !self->job.ios;
	return self->run.state == BIOGEN_DONE && self->job.ios == 40;
}

TEST_F_TIMEOUT(nth, generator, TIMEOUT)
{
	const struct faulty op = {
		.name = "generator", .prepare = prepare_run, .run = generate,
		.check = ran, .errors = { ENOMEM }, .least = 1,
	};

	ASSERT_EQ(0, biogen_load(disk_path(variant->disk, 0), "write=1"));
	self->fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	sweep(_metadata, self, &op);
	close(self->fd);
}

/* Its threads are others than this one: the bio after @nth others fails. */
TEST_F_TIMEOUT(nth, generator_bio, TIMEOUT)
{
	const unsigned int depths[] = { 1, 8 };
	unsigned int nth, d;
	char text[32];

	ASSERT_EQ(0, biogen_load(disk_path(variant->disk, 0), "write=1"));
	self->fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, write_text(DEBUGFS "/fail_make_request/probability",
				"100"));
	for (d = 0; d < ARRAY_SIZE(depths); d++) {
		for (nth = 0; nth <= 40; nth++) {
			prepare_run(self, NULL);
			self->run.pattern = BIOGEN_SEQUENTIAL;
			self->run.depth = depths[d];
			self->run.batch = depths[d] > 1 ? 4 : 1;
			/* Space is used up by bytes; the last one fails. */
			snprintf(text, sizeof(text), "%u", nth * 8192 + 1);
			ASSERT_EQ(0, write_text(DEBUGFS "/fail_make_request/space",
						text));
			ASSERT_EQ(0, write_text(DEBUGFS "/fail_make_request/times",
						"1"));
			ASSERT_EQ(0, ioctl(self->fd, BIOGEN_RUN, &self->run));
			if (nth == 40) {
				EXPECT_EQ(BIOGEN_DONE, self->run.state);
				EXPECT_EQ(0, self->job.errors);
				continue;
			}
			EXPECT_EQ(BIOGEN_FAILED, self->run.state);
			EXPECT_EQ(EIO, self->job.error);
			EXPECT_EQ(1, self->job.errors);
			EXPECT_EQ(nth * 8192, self->job.error_offset);
			EXPECT_EQ(0, self->job.error_write);
			EXPECT_LT(nth, self->job.ios);
			EXPECT_EQ((self->job.ios - 1) * 8192, self->job.bytes);
		}
	}
	EXPECT_EQ(0, write_text(DEBUGFS "/fail_make_request/probability", "0"));
	close(self->fd);
}

TEST_HARNESS_MAIN
