/* SPDX-License-Identifier: GPL-2.0 */
/*
 * blknull: a block device with zero latency. What its files share.
 */
#ifndef BLKNULL_H
#define BLKNULL_H

#include <linux/blkdev.h>
#include <linux/list.h>
#include <linux/types.h>

/**
 * struct blknull_config - what a device is to be; does not change in its life
 * @index: number in the name, /dev/blknull<index>
 * @size_mb: capacity in MiB
 * @block_size: logical block size in bytes
 * @max_sectors: largest I/O the driver sees, in 512-byte sectors, or 0 for
 *	bios of any size
 * @rotational: claim to be a rotating disk
 * @discard: accept discards
 * @read_only: refuse writes
 * @zero_fill: fill reads with zeroes that are not straight into user memory
 */
struct blknull_config {
	unsigned int index;
	unsigned long size_mb;
	unsigned int block_size;
	unsigned int max_sectors;
	bool rotational;
	bool discard;
	bool read_only;
	bool zero_fill;
};

/**
 * struct blknull_device - one device
 * @node: entry in the list of whoever made it
 * @disk: the disk; published last, withdrawn first
 */
struct blknull_device {
	struct list_head node;
	struct gendisk *disk;
};

/* disk.c */
struct blknull_device *blknull_create(const struct blknull_config *config);
void blknull_destroy(struct blknull_device *dev);

/* bio.c */
const struct block_device_operations *
blknull_bio_mode(const struct blknull_config *config);

#endif /* BLKNULL_H */
