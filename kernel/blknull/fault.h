/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fault injection.
 */
#ifndef BLKNULL_FAULT_H
#define BLKNULL_FAULT_H

#include <linux/atomic.h>
#include <linux/blk_types.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

struct badblocks;
struct blknull_device;

/**
 * struct blknull_faults - fault injection of a device
 * @ios: I/Os since an attribute was last changed
 * @badblocks: sectors that fail, or NULL; owned by the caller of
 *	blknull_create()
 * @lock: protects @delayed
 * @delayed: delayed bios, by the time when they end
 * @timer: expires when the first of @delayed ends
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

/* What fault injection does to an I/O. */
enum blknull_fault_action {
	BLKNULL_PASS,
	BLKNULL_FAIL,
	BLKNULL_DELAY,
};

void blknull_faults_init(struct blknull_device *dev,
			 struct badblocks *badblocks);
void blknull_faults_drain(struct blknull_device *dev);
enum blknull_fault_action blknull_fault_action(struct blknull_device *dev,
					       sector_t sector,
					       unsigned int sectors);
blk_status_t blknull_fail_status(const struct blknull_device *dev);
bool blknull_delay_bio(struct blknull_device *dev, struct bio *bio,
		       unsigned long start);

#endif /* BLKNULL_FAULT_H */
