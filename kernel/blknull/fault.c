// SPDX-License-Identifier: GPL-2.0
/*
 * Fault injection: I/O that fails or is delayed.
 */
#include <linux/atomic.h>
#include <linux/badblocks.h>
#include <linux/bio.h>
#include <linux/hrtimer.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "blknull.h"
#include "compat/lib.h"
#include "counters.h"

/* In the order of blknull_choices_fail_status in config.c. */
static const blk_status_t blknull_fail_statuses[] = {
	BLK_STS_IOERR, BLK_STS_MEDIUM, BLK_STS_NOSPC, BLK_STS_TIMEOUT,
	BLK_STS_TRANSPORT, BLK_STS_TARGET, BLK_STS_PROTECTION, BLK_STS_NOTSUPP,
};

/**
 * struct blknull_delayed - a delayed bio
 * @timer: ends it
 * @dev: the device
 * @bio: the bio
 * @start: start time for iostats
 */
struct blknull_delayed {
	struct hrtimer timer;
	struct blknull_device *dev;
	struct bio *bio;
	unsigned long start;
};

static enum hrtimer_restart blknull_end_delayed(struct hrtimer *timer)
{
	struct blknull_delayed *delayed =
		container_of(timer, struct blknull_delayed, timer);
	struct blknull_device *dev = delayed->dev;

	if (dev->config.iostats)
		bio_end_io_acct(delayed->bio, delayed->start);
	bio_endio(delayed->bio);
	kfree(delayed);
	/* When the count is 0, the device may be freed: only its address is used. */
	if (atomic_dec_and_test(&dev->faults.delayed))
		wake_up_var(&dev->faults.delayed);
	return HRTIMER_NORESTART;
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
	struct blknull_delayed *delayed = kmalloc(sizeof(*delayed), GFP_NOIO);

	if (!delayed)
		return false;
	delayed->dev = dev;
	delayed->bio = bio;
	delayed->start = start;
	compat_hrtimer_setup(&delayed->timer, blknull_end_delayed,
			     CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	blknull_count(dev, BLKNULL_DELAYED);
	atomic_inc(&dev->faults.delayed);
	hrtimer_start(&delayed->timer,
		      ns_to_ktime(READ_ONCE(dev->config.delay_nsec)),
		      HRTIMER_MODE_REL);
	return true;
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
