// SPDX-License-Identifier: GPL-2.0
/*
 * blknull's bio mode: every bio ends where it is submitted.
 *
 * What a device does with a bio is chosen when the device is made, by its
 * table of operations, so that no bio pays for a mode that is off.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/module.h>

#include "blknull.h"
#include "counters.h"
#include "compat/disk.h"
#include "fill.h"

/*
 * End a bio that may have to be filled first. Out of line, so that the others
 * pay no stack frame.
 */
static noinline void blknull_bio_end_filled(struct bio *bio)
{
	blknull_fill(bio);
	bio_endio(bio);
}

/*
 * All of blknull's own work for one bio. The flags are constants wherever this
 * is used: @split a bio that exceeds the limits first, @fill reads that are
 * not into pages a program owns.
 */
static __always_inline void blknull_handle(struct bio *bio, const bool split,
					   const bool fill)
{
	if (split) {
		/* What is split off comes back here on its own. */
		bio = compat_bio_split_to_limits(bio);
		if (!bio)
			return;
	}
	if (!fill || likely(blknull_no_fill(bio)))
		bio_endio(bio);
	else
		blknull_bio_end_filled(bio);
}

static void blknull_count_bio(struct blknull_device *dev, struct bio *bio)
{
	if (op_is_flush(bio->bi_opf) && !bio_sectors(bio))
		blknull_count(dev, BLKNULL_FLUSHES);
	else
		blknull_count_op(dev, bio_op(bio), bio_sectors(bio));
}

/* The same for a device with features, each of which is asked for. */
static void blknull_features_handle(struct bio *bio)
{
	struct blknull_device *dev = compat_bio_disk(bio)->private_data;
	const struct blknull_config *config = &dev->config;
	enum blknull_fate fate = BLKNULL_PASS;
	unsigned long start = 0;

	if (dev->split) {
		bio = compat_bio_split_to_limits(bio);
		if (!bio)
			return;
	}
	if (config->iostats)
		start = bio_start_io_acct(bio);
	if (config->stats)
		blknull_count_bio(dev, bio);
	if (config->faults)
		fate = blknull_fate(dev, bio->bi_iter.bi_sector,
				    bio_sectors(bio));
	if (fate == BLKNULL_FAIL)
		bio->bi_status = blknull_fail_status(dev);
	else if (config->memory_backed)
		bio->bi_status = blknull_data_bio(dev, bio);
	else if (config->zero_fill && !blknull_no_fill(bio))
		blknull_fill(bio);
	if (fate == BLKNULL_DELAY && blknull_delay_bio(dev, bio, start))
		return;
	if (config->iostats)
		bio_end_io_acct(bio, start);
	bio_endio(bio);
}

COMPAT_SUBMIT_BIO_OP(blknull_features_submit, blknull_features_handle)

static const struct block_device_operations blknull_features_ops = {
	.owner		= THIS_MODULE,
	.submit_bio	= blknull_features_submit,
	COMPAT_FREE_DISK(blknull_free_disk)
};

#define BLKNULL_BIO_MODE(name, split, fill)				\
	static __always_inline void name##_handle(struct bio *bio)	\
	{								\
		blknull_handle(bio, split, fill);			\
	}								\
	COMPAT_SUBMIT_BIO_OP(name##_submit, name##_handle)		\
	static const struct block_device_operations name##_ops = {	\
		.owner		= THIS_MODULE,				\
		.submit_bio	= name##_submit,			\
		COMPAT_FREE_DISK(blknull_free_disk)			\
	}

BLKNULL_BIO_MODE(blknull_bio, false, false);
BLKNULL_BIO_MODE(blknull_bio_fill, false, true);
BLKNULL_BIO_MODE(blknull_bio_split, true, false);
BLKNULL_BIO_MODE(blknull_bio_split_fill, true, true);

/**
 * blknull_bio_mode() - the operations of a device in bio mode
 * @dev: what it is to be
 *
 * Return: the table that does what @dev is asked for and nothing else.
 */
const struct block_device_operations *
blknull_bio_mode(const struct blknull_device *dev)
{
	const struct blknull_config *config = &dev->config;

	if (blknull_has_features(config) || config->iostats)
		return &blknull_features_ops;
	if (dev->split)
		return config->zero_fill ? &blknull_bio_split_fill_ops :
					   &blknull_bio_split_ops;
	return config->zero_fill ? &blknull_bio_fill_ops : &blknull_bio_ops;
}
