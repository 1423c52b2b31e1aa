// SPDX-License-Identifier: GPL-2.0
/*
 * What a device of blknull counts meanwhile. Without the attribute stats it has
 * no such files.
 */
#include <fcntl.h>
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

static bool read_text(dev_t device, const char *name, char *text, size_t size)
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
		if (!read_text(device, counter_names[i], text, sizeof(text)))
			return false;
		c->value[i] = strtoull(text, NULL, 10) - c->value[i];
	}
	if (!read_text(device, "sizes", text, sizeof(text)))
		return false;
	for (i = 0; i < NR_SIZES; i++)
		c->sizes[i] = strtoull(at, &at, 10) - c->sizes[i];
	return true;
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
	char text[4096];

	if (!c->known)
		return;
	c->known = read_counters(c, device);
	if (read_text(device, "seen", text, sizeof(text)))
		c->seen = strdup(text);
}
