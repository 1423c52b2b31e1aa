/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The files and devices of --filename.
 */
#ifndef IOLOOP_DEVICE_H
#define IOLOOP_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "counters.h"
#include "options.h"

/**
 * struct device - one file or device of --filename, as found at the start
 * @name: its name
 * @size: bytes it holds
 * @start: first byte that is used
 * @end: byte behind the last one used: a whole number of blocks from @start
 * @logical_block_size: what direct I/O must be aligned to; 0: not known
 * @nvme_namespace: its number, if it is the character device of one
 * @block: the block device that it is, or that has its file system
 * @counters: what that counted, if it is of blknull
 */
struct device {
	const char *name;
	uint64_t size;
	uint64_t start;
	uint64_t end;
	uint64_t logical_block_size;
	uint32_t nvme_namespace;
	dev_t block;
	struct counters counters;
};

bool device_inspect(struct device *dev, const char *name,
		    const struct options *o, char *msg, size_t size);

#endif /* IOLOOP_DEVICE_H */
