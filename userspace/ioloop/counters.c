// SPDX-License-Identifier: GPL-2.0
/*
 * What a device of blknull counts meanwhile. Without the attribute stats it has
 * no such files. Its last I/Os are in debugfs, which is for root.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "counters.h"

const char *const counter_names[NR_COUNTERS] = {
	"reads", "read_sectors", "writes", "write_sectors", "flushes", "bios",
	"segments", "out_of_order", "fua", "interrupts",
};

static bool read_counter(dev_t device, const char *name, char *text, size_t size)
{
	char path[96];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/counters/%s",
		 major(device), minor(device), name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n >= 0;
}

/* Subtract the values from what the device has counted by now. */
static bool read_counters(struct counters *c, dev_t device)
{
	char text[512], *at = text;
	int i;

	for (i = 0; i < NR_COUNTERS; i++) {
		if (!read_counter(device, counter_names[i], text, sizeof(text)))
			return false;
		c->value[i] = strtoull(text, NULL, 10) - c->value[i];
	}
	if (!read_counter(device, "sizes", text, sizeof(text)))
		return false;
	for (i = 0; i < NR_SIZES; i++)
		c->sizes[i] = strtoull(at, &at, 10) - c->sizes[i];
	return true;
}

/* What the device was given last, or NULL. */
static char *read_seen(dev_t device)
{
	char path[64], disk[PATH_MAX + 1], *seen = NULL;
	const char *name;
	size_t size = 0;
	ssize_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major(device),
		 minor(device));
	n = readlink(path, disk, PATH_MAX);
	if (n < 0)
		return NULL;
	disk[n] = '\0';
	name = strrchr(disk, '/');
	snprintf(path, sizeof(path), "/sys/kernel/debug/blknull/%.31s",
		 name ? name + 1 : disk);
	f = fopen(path, "re");
	if (!f)
		return NULL;
	if (getdelim(&seen, &size, '\0', f) < 0) {
		free(seen);
		seen = NULL;
	}
	fclose(f);
	return seen;
}

/**
 * counters_begin() - note the counters of a device before the first round
 * @c: to be filled in, if that was not done before
 * @device: the block device
 */
void counters_begin(struct counters *c, dev_t device)
{
	if (!c->known)
		c->known = read_counters(c, device);
}

/**
 * counters_end() - what the device counted since counters_begin()
 * @c: the counters; they become differences
 * @device: the block device
 */
void counters_end(struct counters *c, dev_t device)
{
	if (!c->known)
		return;
	c->known = read_counters(c, device);
	c->seen = read_seen(device);
}
