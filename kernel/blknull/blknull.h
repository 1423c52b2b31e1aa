/* SPDX-License-Identifier: GPL-2.0 */
/*
 * blknull: a block device with zero latency. What its files share.
 */
#ifndef BLKNULL_H
#define BLKNULL_H

#include <linux/atomic.h>
#include <linux/badblocks.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "config.h"
#include "compat/zoned.h"

struct blknull_counters;
struct blknull_tags;
struct blknull_zones;

/**
 * struct blknull_faults - what happens to I/O, and when
 * @ios: I/Os since the attributes were last changed
 * @badblocks: sectors that fail, or NULL; of whoever made the device
 * @lock: protects @delayed
 * @delayed: bios that end later, the next one first
 * @timer: when that is
 * @idle: woken when @delayed becomes empty
 */
struct blknull_faults {
	atomic64_t ios;
	struct badblocks *badblocks;
	spinlock_t lock; /* delayed */
	struct list_head delayed;
	struct hrtimer timer;
	wait_queue_head_t idle;
};

/**
 * struct blknull_device - one device
 * @node: entry in the list of whoever made it
 * @disk: the disk; published last, withdrawn first
 * @config: what it is; of this, only what is BLKNULL_LIVE changes
 * @split: bios that exceed the limits have to be split
 * @tags: the requests, in mode mq
 * @counters: of each CPU, if anything is counted
 * @blocks: what is written, if memory backed: a struct blknull_block for each
 *	page of the disk that holds any
 * @zones: the zones, if it has any
 * @faults: what is injected
 */
struct blknull_device {
	struct list_head node;
	struct gendisk *disk;
	struct blknull_config config;
	bool split;
	struct blknull_tags *tags;
	struct blknull_counters __percpu *counters;
	struct xarray blocks;
	struct blknull_zones *zones;
	struct blknull_faults faults;
};

/*
 * Whether an I/O takes more than ending it. Then it goes through functions that
 * ask for each feature; all others know none.
 */
static inline bool blknull_has_features(const struct blknull_config *config)
{
	return config->memory_backed || config->stats || config->faults ||
	       config->zoned;
}

/* disk.c */
struct blknull_device *blknull_create(const struct blknull_config *config,
				      struct badblocks *badblocks);
void blknull_destroy(struct blknull_device *dev);
void blknull_free_disk(struct gendisk *disk);
void blknull_disk_exit(void);

/* bio.c */
const struct block_device_operations *
blknull_bio_mode(const struct blknull_device *dev);

/* mq.c */
extern const struct block_device_operations blknull_mq_fops;
int blknull_tags_get(struct blknull_device *dev);
void blknull_tags_put(struct blknull_device *dev);
struct blk_mq_tag_set *blknull_tag_set(struct blknull_device *dev);

/* data.c */
blk_status_t blknull_data_bio(struct blknull_device *dev, struct bio *bio);
blk_status_t blknull_data_request(struct blknull_device *dev,
				  struct request *rq);
void blknull_data_erase(struct blknull_device *dev, sector_t sector,
			sector_t sectors);
void blknull_data_free(struct blknull_device *dev);

/* zoned.c */
int blknull_zoned_check(const struct blknull_config *config);

#ifdef COMPAT_ZONED
static inline bool blknull_zoned_supported(void)
{
	return true;
}

extern const struct block_device_operations blknull_zoned_fops;
int blknull_zones_create(struct blknull_device *dev);
void blknull_zones_destroy(struct blknull_device *dev);
void blknull_zones_limits(struct blknull_device *dev, struct queue_limits *lim);
int blknull_zones_publish(struct blknull_device *dev);
blk_status_t blknull_zoned_request(struct blknull_device *dev,
				   struct request *rq);
#else
/* No device is zoned, so nothing of this is ever called. */
static inline bool blknull_zoned_supported(void)
{
	return false;
}

#define blknull_zoned_fops	blknull_mq_fops

static inline int blknull_zones_create(struct blknull_device *dev)
{
	return -EOPNOTSUPP;
}

static inline void blknull_zones_destroy(struct blknull_device *dev)
{
}

static inline void blknull_zones_limits(struct blknull_device *dev,
					struct queue_limits *lim)
{
}

static inline int blknull_zones_publish(struct blknull_device *dev)
{
	return -EOPNOTSUPP;
}

static inline blk_status_t blknull_zoned_request(struct blknull_device *dev,
						 struct request *rq)
{
	return BLK_STS_NOTSUPP;
}
#endif

/* fault.c */

/* What happens to an I/O. */
enum blknull_fate {
	BLKNULL_PASS,
	BLKNULL_FAIL,
	BLKNULL_LOSE,
	BLKNULL_REQUEUE,
	BLKNULL_DELAY,
};

void blknull_faults_init(struct blknull_device *dev,
			 struct badblocks *badblocks);
void blknull_faults_drain(struct blknull_device *dev);
enum blknull_fate blknull_fate(struct blknull_device *dev, sector_t sector,
			       unsigned int sectors);
blk_status_t blknull_fail_status(const struct blknull_device *dev);
bool blknull_delay_bio(struct blknull_device *dev, struct bio *bio,
		       unsigned long start);

/* configfs.c */
int blknull_configfs_init(void);
void blknull_configfs_exit(void);

#endif /* BLKNULL_H */
