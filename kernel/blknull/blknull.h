/* SPDX-License-Identifier: GPL-2.0 */
/*
 * blknull: a block device with zero latency. What its files share.
 */
#ifndef BLKNULL_H
#define BLKNULL_H

#include <linux/atomic.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/types.h>
#include <linux/xarray.h>

#include "compat/disk.h"
#include "config.h"

struct badblocks;
struct blknull_counters;
struct blknull_remote;

/* Ends an I/O, given its node. */
typedef void blknull_end_t(struct llist_node *node);

/**
 * struct blknull_faults - fault injection of a device
 * @ios: I/Os since an attribute was last changed
 * @badblocks: sectors that fail, or NULL; owned by the caller of
 *	blknull_create()
 * @delayed: number of delayed bios
 */
struct blknull_faults {
	atomic64_t ios;
	struct badblocks *badblocks;
	atomic_t delayed;
};

/* What fault injection does to an I/O. */
enum blknull_fault_action {
	BLKNULL_PASS,
	BLKNULL_FAIL,
	BLKNULL_DELAY,
};

/**
 * struct blknull_device - one device
 * @node: entry in the list of devices made by module parameters
 * @disk: the disk; published last, withdrawn first
 * @config: the attributes; only those that are BLKNULL_LIVE change
 * @split: a bio may exceed the limits and must be split
 * @features: the generic path applies features
 * @counters: per-CPU counters, or NULL
 * @seen: file in debugfs, or NULL
 * @remotes: if I/O ends on another CPU, the I/Os that are to end, by CPU
 * @end: how these end
 * @blocks: if memory backed, a struct blknull_block for each page that was
 *	written
 * @faults: fault injection
 * @tags: the tag set in mode mq
 */
struct blknull_device {
	struct list_head node;
	struct gendisk *disk;
	struct blknull_config config;
	bool split;
	bool features;
	struct blknull_counters __percpu *counters;
	struct dentry *seen;
	struct blknull_remote __percpu *remotes;
	blknull_end_t *end;
	struct xarray blocks;
	struct blknull_faults faults;
	struct blk_mq_tag_set tags;
};

/*
 * True if the device needs the generic path, which tests for each feature. The
 * other paths have no code for features.
 */
static inline bool blknull_has_features(const struct blknull_config *config)
{
	return config->memory_backed || config->stats || config->faults ||
	       config->complete_cpu != BLKNULL_CPU_LOCAL;
}

/* device.c */
struct blknull_device *blknull_device_alloc(const struct blknull_config *config);
void blknull_device_published(void);
void blknull_free_disk(struct gendisk *disk);
void blknull_devices_wait(void);

/* disk.c */
struct blknull_device *blknull_create(const struct blknull_config *config,
				      struct badblocks *badblocks);
void blknull_destroy(struct blknull_device *dev);

/* bio.c */
const struct block_device_operations *
blknull_bio_mode(const struct blknull_device *dev);
void blknull_bio_end(struct llist_node *node);

/* mq.c */
int blknull_mq_alloc_tags(struct blknull_device *dev);
void blknull_mq_end(struct llist_node *node);

/* data.c */
blk_status_t blknull_data_bio(struct blknull_device *dev, struct bio *bio);
void blknull_data_erase(struct blknull_device *dev, sector_t sector,
			sector_t sectors);
void blknull_data_free(struct blknull_device *dev);

/* fault.c */
enum blknull_fault_action blknull_fault_action(struct blknull_device *dev,
					       sector_t sector,
					       unsigned int sectors);
blk_status_t blknull_fail_status(const struct blknull_device *dev);
bool blknull_delay_bio(struct blknull_device *dev, struct bio *bio,
		       unsigned long start);

/* remote.c */
int blknull_remotes_create(struct blknull_device *dev);
void blknull_remote_end(struct blknull_device *dev, struct llist_node *node);
void blknull_remotes_drain(struct blknull_device *dev);

/* configfs.c */
int blknull_configfs_init(void);
void blknull_configfs_exit(void);

#endif /* BLKNULL_H */
