// SPDX-License-Identifier: GPL-2.0
/*
 * Fault injection: I/O that fails or is delayed.
 */
#include <linux/badblocks.h>
#include <linux/bio.h>
#include <linux/slab.h>

#include "blknull.h"
#include "compat/timer.h"
#include "counters.h"
#include "fault.h"

/* In the order of blknull_choices_fail_status in config.c. */
static const blk_status_t blknull_fail_statuses[] = {
	BLK_STS_IOERR, BLK_STS_MEDIUM, BLK_STS_NOSPC, BLK_STS_TIMEOUT,
	BLK_STS_TRANSPORT, BLK_STS_TARGET, BLK_STS_PROTECTION, BLK_STS_NOTSUPP,
};

/**
 * struct blknull_delayed - a delayed bio
 * @node: entry in the device's list
 * @bio: the bio
 * @end: when it ends
 * @start: start time for iostats
 */
struct blknull_delayed {
	struct list_head node;
	struct bio *bio;
	ktime_t end;
	unsigned long start;
};

/* Remove and return a bio that is due, or NULL. */
static struct blknull_delayed *blknull_take_delayed(struct blknull_device *dev)
{
	struct blknull_faults *faults = &dev->faults;
	struct blknull_delayed *first;
	unsigned long flags;

	spin_lock_irqsave(&faults->lock, flags);
	first = list_first_entry_or_null(&faults->delayed,
					 struct blknull_delayed, node);
	if (first && ktime_after(first->end, ktime_get()))
		first = NULL;
	if (first)
		list_del(&first->node);
	spin_unlock_irqrestore(&faults->lock, flags);
	return first;
}

static enum hrtimer_restart blknull_end_delayed(struct hrtimer *timer)
{
	struct blknull_device *dev =
		container_of(timer, struct blknull_device, faults.timer);
	enum hrtimer_restart again = HRTIMER_NORESTART;
	struct blknull_faults *faults = &dev->faults;
	struct blknull_delayed *delayed;
	unsigned long flags;

	while ((delayed = blknull_take_delayed(dev))) {
		if (dev->config.iostats)
			bio_end_io_acct(delayed->bio, delayed->start);
		bio_endio(delayed->bio);
		kfree(delayed);
	}
	spin_lock_irqsave(&faults->lock, flags);
	delayed = list_first_entry_or_null(&faults->delayed,
					   struct blknull_delayed, node);
	if (!delayed) {
		wake_up(&faults->idle);
	} else if (!hrtimer_is_queued(timer)) {
		hrtimer_set_expires(timer, delayed->end);
		again = HRTIMER_RESTART;
	}
	spin_unlock_irqrestore(&faults->lock, flags);
	return again;
}

/**
 * blknull_delay_bio() - end a bio later
 * @dev: the device
 * @bio: the bio, with its status set
 * @start: start time for iostats
 *
 * Context: Process context, may sleep.
 * Return: true if it will end later; false if out of memory: then the caller
 * must end it.
 */
bool blknull_delay_bio(struct blknull_device *dev, struct bio *bio,
		       unsigned long start)
{
	struct blknull_faults *faults = &dev->faults;
	struct blknull_delayed *delayed, *before;
	unsigned long flags;

	delayed = kmalloc(sizeof(*delayed), GFP_NOIO);
	if (!delayed)
		return false;
	delayed->bio = bio;
	delayed->start = start;
	delayed->end = ktime_add_ns(ktime_get(),
				    READ_ONCE(dev->config.delay_nsec));
	blknull_count(dev, BLKNULL_DELAYED);

	spin_lock_irqsave(&faults->lock, flags);
	list_for_each_entry_reverse(before, &faults->delayed, node)
		if (!ktime_after(before->end, delayed->end))
			break;
	list_add(&delayed->node, &before->node);
	if (list_is_first(&delayed->node, &faults->delayed))
		hrtimer_start(&faults->timer, delayed->end, HRTIMER_MODE_ABS);
	spin_unlock_irqrestore(&faults->lock, flags);
	return true;
}

static bool blknull_no_delayed(struct blknull_faults *faults)
{
	bool none;

	spin_lock_irq(&faults->lock);
	none = list_empty(&faults->delayed);
	spin_unlock_irq(&faults->lock);
	return none;
}

/**
 * blknull_faults_drain() - wait until all delayed bios have ended
 * @dev: the device; gets no new bios
 *
 * Context: Process context, sleeps.
 */
void blknull_faults_drain(struct blknull_device *dev)
{
	struct blknull_faults *faults = &dev->faults;

	wait_event(faults->idle, blknull_no_delayed(faults));
	hrtimer_cancel(&faults->timer);
}

/**
 * blknull_faults_init() - initialise fault injection
 * @dev: the device
 * @badblocks: sectors that fail, or NULL; owned by the caller
 */
void blknull_faults_init(struct blknull_device *dev,
			 struct badblocks *badblocks)
{
	struct blknull_faults *faults = &dev->faults;

	atomic64_set(&faults->ios, 0);
	faults->badblocks = badblocks;
	spin_lock_init(&faults->lock);
	INIT_LIST_HEAD(&faults->delayed);
	compat_hrtimer_setup(&faults->timer, blknull_end_delayed,
			     CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	init_waitqueue_head(&faults->idle);
}

static bool blknull_is_due(u64 n, const int *every)
{
	u32 rest;
	int nth = READ_ONCE(*every);

	if (!nth)
		return false;
	div_u64_rem(n, nth, &rest);
	return !rest;
}

static bool blknull_is_bad(struct badblocks *badblocks, sector_t sector,
			   unsigned int sectors)
{
	compat_bad_sectors_t nr;
	sector_t first;

	return badblocks && sectors &&
	       badblocks_check(badblocks, sector, sectors, &first, &nr);
}

/**
 * blknull_fault_action() - choose what fault injection does to an I/O
 * @dev: the device, with faults=1
 * @sector: first sector
 * @sectors: number of sectors
 *
 * Failures are counted here, the other actions where they are carried out.
 *
 * Context: Any.
 * Return: the action.
 */
enum blknull_fault_action blknull_fault_action(struct blknull_device *dev,
					       sector_t sector,
					       unsigned int sectors)
{
	const struct blknull_config *config = &dev->config;
	u64 n = atomic64_inc_return(&dev->faults.ios);

	if (n == READ_ONCE(config->fail_nth) ||
	    blknull_is_due(n, &config->fail_every) ||
	    blknull_is_bad(dev->faults.badblocks, sector, sectors)) {
		blknull_count(dev, BLKNULL_FAILED);
		return BLKNULL_FAIL;
	}
	if (blknull_is_due(n, &config->delay_every))
		return BLKNULL_DELAY;
	return BLKNULL_PASS;
}

/**
 * blknull_fail_status() - the status of an I/O that fails
 * @dev: the device
 *
 * Return: the status that attribute fail_status selects.
 */
blk_status_t blknull_fail_status(const struct blknull_device *dev)
{
	return blknull_fail_statuses[READ_ONCE(dev->config.fail_status)];
}
