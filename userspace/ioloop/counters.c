// SPDX-License-Identifier: GPL-2.0
/*
 * What a device of blknull counts meanwhile. Without the attribute stats it has
 * no such files.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "counters.h"

const char *const counter_names[NR_COUNTERS] = {
	"reads", "read_sectors", "writes", "write_sectors", "flushes", "bios",
	"segments", "out_of_order", "fua", "interrupts",
};

static bool read_counter(dev_t device, const char *name, uint64_t *value)
{
	char path[96], text[32];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/counters/%s",
		 major(device), minor(device), name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	*value = strtoull(text, NULL, 10);
	return true;
}

/**
 * counters_begin() - note the counters of a device before the first round
 * @c: to be filled in, if that was not done before
 * @device: the block device
 */
void counters_begin(struct counters *c, dev_t device)
{
	int i;

	for (i = 0; !c->known && i < NR_COUNTERS; i++)
		if (!read_counter(device, counter_names[i], &c->value[i]))
			return;
	c->known = true;
}

/**
 * counters_end() - what the device counted since counters_begin()
 * @c: the counters; they become differences
 * @device: the block device
 */
void counters_end(struct counters *c, dev_t device)
{
	uint64_t now;
	int i;

	for (i = 0; c->known && i < NR_COUNTERS; i++) {
		c->known = read_counter(device, counter_names[i], &now);
		c->value[i] = now - c->value[i];
	}
}
