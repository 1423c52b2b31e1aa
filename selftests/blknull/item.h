/* SPDX-License-Identifier: GPL-2.0 */
/*
 * blknull's devices as configfs has them. Functions return a negative errno.
 */
#ifndef SELFTEST_ITEM_H
#define SELFTEST_ITEM_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util.h"

#define CONFIGFS	"/sys/kernel/config"
#define ITEMS		CONFIGFS "/blknull/"

/* Load blknull without a device, and mount configfs. */
static inline int items_begin(void)
{
	if (mount("configfs", CONFIGFS, "configfs", 0, NULL) && errno != EBUSY)
		return -errno;
	return module_load("blknull", "nr_devices=0");
}

static inline int item_make(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), ITEMS "%s", name);
	return mkdir(path, 0755) ? -errno : 0;
}

static inline int item_remove(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), ITEMS "%s", name);
	return rmdir(path) ? -errno : 0;
}

static inline int item_set(const char *name, const char *attr,
			   const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), ITEMS "%s/%s", name, attr);
	return write_text(path, value);
}

/* The attribute as text, which the next call overwrites. */
static inline const char *item_get(const char *name, const char *attr)
{
	static char text[4096];
	char path[128];

	snprintf(path, sizeof(path), ITEMS "%s/%s", name, attr);
	if (read_text(path, text, sizeof(text)))
		return "(none)";
	text[strcspn(text, "\n")] = 0;
	return text;
}

/*
 * Set attributes, "NAME=VALUE NAME=VALUE ...", in their order. The value "page"
 * stands for as many sectors as a page has.
 */
static inline int item_configure(const char *name, const char *attrs)
{
	char copy[1024], sectors[32], *rest = copy, *word, *value;
	int err;

	snprintf(sectors, sizeof(sectors), "%ld", sysconf(_SC_PAGESIZE) / 512);
	snprintf(copy, sizeof(copy), "%s", attrs);
	while ((word = strsep(&rest, " "))) {
		if (!*word)
			continue;
		value = strchr(word, '=');
		*value++ = 0;
		err = item_set(name, word,
			       strcmp(value, "page") ? value : sectors);
		if (err)
			return err;
	}
	return 0;
}

/* Make a device with these attributes and turn it on. */
static inline int item_on(const char *name, const char *attrs)
{
	int err;

	err = item_make(name);
	if (!err)
		err = item_configure(name, attrs);
	return err ?: item_set(name, "power", "1");
}

/* The path of the device, which the next call overwrites. */
static inline const char *item_disk(const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "/dev/blknull%d",
		 atoi(item_get(name, "index")));
	return path;
}

/* What the device has counted, or -1. */
static inline long item_counter(const char *name, const char *counter)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), "/sys/block/blknull%d/counters/%s",
		 atoi(item_get(name, "index")), counter);
	return read_text(path, text, sizeof(text)) ? -1 : atol(text);
}

/* One read of a page: 0 or a negative errno. */
static inline int read_page(int fd, void *buf, off_t offset, int flags)
{
	struct iovec iov = { .iov_base = buf, .iov_len = 4096 };
	ssize_t got = preadv2(fd, &iov, 1, offset, flags);

	if (got < 0)
		return -errno;
	return got == 4096 ? 0 : -ENODATA;
}

#endif /* SELFTEST_ITEM_H */
