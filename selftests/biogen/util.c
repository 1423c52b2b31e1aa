// SPDX-License-Identifier: GPL-2.0
/*
 * Code that the tests of biogen share: modules, block devices that hold data,
 * the kernel's log and random numbers.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "util.h"

#define CONFIGFS	"/sys/kernel/config"
#define MAX_DISKS	4

/* The modules that a program loads; its Makefile may say others. */
#ifndef MODULES_NEEDED
#define MODULES_NEEDED	"biogen blknull"
#endif

/* The folder with the module files, or NULL if modprobe finds them. */
static const char *module_folder(void)
{
	const char *folder = getenv("MODULES");

	if (folder)
		return folder;
	return access("/modules", F_OK) ? NULL : "/modules";
}

/* The negative errno whose text is in modprobe's @message. */
static int modprobe_errno(const char *message)
{
	int err;

	/* These have texts of modprobe's own. */
	if (strstr(message, "already in kernel"))
		return -EEXIST;
	if (strstr(message, "not found in directory") ||
	    strstr(message, "unknown parameter"))
		return -ENOENT;
	for (err = 1; err < 134; err++)
		if (strstr(message, strerror(err)))
			return -err;
	return -EIO;
}

static int module_probe(const char *name, const char *params)
{
	char command[4096], message[512] = "";
	FILE *said;
	int status;

	snprintf(command, sizeof(command),
		 "LC_ALL=C modprobe --first-time %s %s 2>&1", name, params);
	said = popen(command, "re");
	if (!said)
		return -errno;
	message[fread(message, 1, sizeof(message) - 1, said)] = 0;
	status = pclose(said);
	return status ? modprobe_errno(message) : 0;
}

int module_load(const char *name, const char *params)
{
	const char *folder = module_folder();
	char path[256];
	int fd, err = 0;

	if (!folder)
		return module_probe(name, params);
	snprintf(path, sizeof(path), "%s/%s.ko", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (syscall(SYS_finit_module, fd, params, 0))
		err = -errno;
	close(fd);
	return err;
}

/* End the program as kselftest wants it of a test that cannot run. */
static void skip(const char *what, const char *why)
{
	printf("TAP version 13\n1..0 # SKIP %s%s\n", what, why);
	exit(4);
}

static void need_module(const char *name)
{
	char path[256], command[128];

	snprintf(path, sizeof(path), "/sys/module/%s", name);
	if (!access(path, F_OK)) {
		snprintf(path, sizeof(path), "/sys/module/%s/initstate", name);
		if (access(path, F_OK))
			skip(name, " is built in: the tests load and unload it");
	}
	snprintf(path, sizeof(path), "%s/%s.ko", module_folder() ?: "", name);
	snprintf(command, sizeof(command), "modprobe -q -n %s 2>/dev/null",
		 name);
	if (access(path, F_OK) && (module_folder() || system(command)))
		skip(name, ": there is no such module");
}

/* Before main(): a program whose modules cannot be loaded runs no test. */
__attribute__((constructor)) static void need_modules(void)
{
	char names[] = MODULES_NEEDED, *rest = names, *name;

	if (geteuid())
		skip("", "must be run as root");
	while ((name = strsep(&rest, " ")))
		need_module(name);
}

int module_unload_now(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? -errno : 0;
}

int module_unload(const char *name)
{
	uint64_t limit = now_ns() + 300000000000ULL;
	int err;

	/* The last reference may be dropped a little after its owner. */
	while ((err = module_unload_now(name)) == -EAGAIN && now_ns() <= limit)
		usleep(10000);
	return err;
}

bool all(const unsigned char *p, size_t len, unsigned char byte)
{
	return !len || (*p == byte && !memcmp(p, p + 1, len - 1));
}

int write_text(const char *path, const char *text)
{
	ssize_t done;
	int fd, err = 0;

	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	done = write(fd, text, strlen(text));
	if (done < 0)
		err = -errno;
	else if ((size_t)done != strlen(text))
		err = -EIO;
	close(fd);
	return err;
}

int read_text(const char *path, char *text, size_t size)
{
	ssize_t got;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	got = read(fd, text, size - 1);
	if (got < 0)
		got = -errno;
	else
		text[got] = 0;
	close(fd);
	return got < 0 ? got : 0;
}

int log_begin(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

bool log_has(int log, const char *text)
{
	char line[8192];
	bool found = false;
	ssize_t got;

	for (;;) {
		got = read(log, line, sizeof(line) - 1);
		if (got < 0 && errno == EPIPE)
			continue;
		if (got <= 0)
			break;
		line[got] = 0;
		if (strstr(line, text))
			found = true;
	}
	lseek(log, 0, SEEK_END);
	return found;
}

static int null_blk_set(unsigned int index, const char *name,
			const char *format, unsigned long value)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), CONFIGFS "/nullb/nullb%u/%s", index, name);
	snprintf(text, sizeof(text), format, value);
	return write_text(path, text);
}

int null_blk_power(unsigned int index, bool on)
{
	return null_blk_set(index, "power", "%lu", on);
}

static int null_blk_create(const struct disk *disk, unsigned int index)
{
	char path[128], bad[64];
	int err;

	snprintf(path, sizeof(path), CONFIGFS "/nullb/nullb%u", index);
	if (mkdir(path, 0755))
		return -errno;
	err = null_blk_set(index, "size", "%lu", disk->mib);
	if (!err)
		err = null_blk_set(index, "blocksize", "%lu", disk->block);
	if (!err)
		err = null_blk_set(index, "memory_backed", "%lu", 1);
	if (!err)
		err = null_blk_set(index, "queue_mode", "%lu", 2);
	/* Fewer than the tests have in flight. */
	if (!err)
		err = null_blk_set(index, "hw_queue_depth", "%lu", 16);
	/* 0: ends at once; 2: by a timer. */
	if (!err)
		err = null_blk_set(index, "irqmode", "%lu",
				   disk->delay_ns ? 2 : 0);
	if (!err && disk->delay_ns)
		err = null_blk_set(index, "completion_nsec", "%lu",
				   disk->delay_ns);
	if (!err && disk->badblocks) {
		snprintf(path, sizeof(path),
			 CONFIGFS "/nullb/nullb%u/badblocks", index);
		snprintf(bad, sizeof(bad), "+%s", disk->badblocks);
		err = write_text(path, bad);
	}
	if (!err && disk->zone_mib)
		err = null_blk_set(index, "zoned", "%lu", 1);
	if (!err && disk->zone_mib)
		err = null_blk_set(index, "zone_size", "%lu", disk->zone_mib);
	if (!err && disk->zone_mib)
		err = null_blk_set(index, "zone_nr_conv", "%lu",
				   disk->mib / disk->zone_mib - 1);
	if (!err)
		err = null_blk_power(index, true);
	return err;
}

static int null_blk_destroy(void)
{
	char path[128];
	unsigned int i;

	for (i = 0; i < MAX_DISKS; i++) {
		snprintf(path, sizeof(path), CONFIGFS "/nullb/nullb%u", i);
		if (rmdir(path) && errno != ENOENT)
			return -errno;
	}
	return module_unload("null_blk");
}

int disks_destroy(void)
{
	int err = null_blk_destroy();

	if (err && err != -ENOENT)
		return err;
	err = module_unload("brd");
	return err == -ENOENT ? 0 : err;
}

/* Whether the given disks have the stated properties. */
static int disks_check(const struct disk *disk, unsigned int nr)
{
	uint64_t size = 0;
	unsigned int i;
	int fd, err;

	for (i = 0; i < nr; i++) {
		fd = open(disk_path(disk, i), O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		err = ioctl(fd, BLKGETSIZE64, &size) ? -errno : 0;
		close(fd);
		if (err)
			return err;
		if (size != disk->mib * MIB)
			return -EINVAL;
	}
	return 0;
}

int disks_create(const struct disk *disk, unsigned int nr)
{
	int err, fd, on = 1;
	char params[64];
	unsigned int i;

	err = disks_destroy();
	if (err)
		return err;
	if (disk->given)
		return disks_check(disk, nr);
	if (disk->null_blk) {
		if (mount("configfs", CONFIGFS, "configfs", 0, NULL) &&
		    errno != EBUSY)
			return -errno;
		err = module_load("null_blk", "nr_devices=0");
		for (i = 0; !err && i < nr; i++)
			err = null_blk_create(disk, i);
	} else {
		snprintf(params, sizeof(params), "rd_nr=%u rd_size=%lu", nr,
			 disk->mib * MIB / KIB);
		err = module_load("brd", params);
	}
	for (i = 0; !err && disk->read_only && i < nr; i++) {
		fd = open(disk_path(disk, i), O_RDONLY | O_CLOEXEC);
		if (fd < 0 || ioctl(fd, BLKROSET, &on))
			err = -errno;
		close(fd);
	}
	return err;
}

int disk_fill(const struct disk *disk, unsigned int index, unsigned char byte)
{
	void *data = aligned_alloc(4 * KIB, MIB);
	unsigned int i;
	int fd, err = 0;

	if (!data)
		return -ENOMEM;
	memset(data, byte, MIB);
	fd = open(disk_path(disk, index), O_WRONLY | O_DIRECT | O_CLOEXEC);
	if (fd < 0)
		err = -errno;
	for (i = 0; !err && i < disk->mib; i++) {
		ssize_t written = write(fd, data, MIB);

		if (written != MIB)
			err = written < 0 ? -errno : -EIO;
	}
	close(fd);
	free(data);
	return err;
}

const char *disk_path(const struct disk *disk, unsigned int index)
{
	static char path[MAX_DISKS][32];
	const char *given = disk->given ? getenv("DISKS") : NULL;
	unsigned int i;

	for (i = 0; given && i < index; i++) {
		given = strchr(given, ' ');
		given += given ? 1 : 0;
	}
	if (disk->given)
		snprintf(path[index], sizeof(path[index]), "%.*s",
			 given ? (int)strcspn(given, " ") : 0, given ?: "");
	else
		snprintf(path[index], sizeof(path[index]), "/dev/%s%u",
			 disk->null_blk ? "nullb" : "ram", index);
	return path[index];
}

static int disk_limit(const struct disk *disk, const char *name, int absent)
{
	char path[256], text[32];

	snprintf(path, sizeof(path), "/sys/block/%s/queue/%s",
		 disk_path(disk, 0) + strlen("/dev/"), name);
	return read_text(path, text, sizeof(text)) ? absent : atoi(text);
}

unsigned int disk_dma_mask(const struct disk *disk)
{
	/* Before Linux 6.0, what counts is the logical block size. */
	return disk_limit(disk, "dma_alignment", disk->block - 1);
}

bool disk_polls(const struct disk *disk)
{
	return disk_limit(disk, "io_poll", 0);
}

int biogen_load(const char *path, const char *params)
{
	char text[256];

	snprintf(text, sizeof(text), "device=%s %s", path, params);
	return module_load("biogen", text);
}

int biogen_unload(void)
{
	int err = module_unload("biogen");

	return err == -ENOENT ? 0 : err;
}

void rng_init(struct rng *rng, uint64_t salt)
{
	const char *seed = getenv("SEED");

	rng->state = (seed ? strtoull(seed, NULL, 0) : 1) * 0x9e3779b97f4a7c15;
	rng->state += salt * 0xd1342543de82ef95;
	if (!rng->state)
		rng->state = 1;
}

uint64_t rng_next(struct rng *rng)
{
	uint64_t x = rng->state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	rng->state = x;
	return x * 0x2545f4914f6cdd1d;
}

uint64_t rng_below(struct rng *rng, uint64_t limit)
{
	return (rng_next(rng) >> 16) % limit;
}

void rng_fill(struct rng *rng, void *buf, size_t len)
{
	unsigned char *p = buf;
	uint64_t x;

	/* Of a known length, so that it takes no call. */
	for (; len >= sizeof(x); len -= sizeof(x), p += sizeof(x)) {
		x = rng_next(rng);
		memcpy(p, &x, sizeof(x));
	}
	x = rng_next(rng);
	memcpy(p, &x, len);
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}
