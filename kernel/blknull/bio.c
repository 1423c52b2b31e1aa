// SPDX-License-Identifier: GPL-2.0
/*
 * Mode bio: every bio ends where it is submitted.
 *
 * A device has the table of operations for its attributes, so no bio is tested
 * for features that are off: one function that tested dev->split and zero_fill
 * would take 10 instructions more per bio.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/module.h>

#include "blknull.h"
#include "counters.h"
#include "fill.h"

/*
 * End a bio that may have to be filled first. Out of line, so that other bios
 * need no stack frame.
 */
static noinline void blknull_bio_end_filled(struct bio *bio)
{
	blknull_fill(bio);
	bio_endio(bio);
}

/*
 * Handle a bio. The flags are constants: @split a bio that exceeds the limits
 * first; @fill reads into pages that no program owns.
 */
static __always_inline void blknull_handle(struct bio *bio, const bool split,
					   const bool fill)
{
	if (split) {
		/* The rest is submitted again and returns here. */
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
	unsigned int segments = 0;
	struct bvec_iter iter;
	struct bio_vec bvec;

	if (bio_has_data(bio))
		bio_for_each_bvec(bvec, bio, iter)
			segments++;
	blknull_count_shape(dev, bio->bi_opf, bio->bi_iter.bi_sector,
			    bio_sectors(bio), 1, segments);
	if (op_is_flush(bio->bi_opf) && !bio_sectors(bio))
		blknull_count(dev, BLKNULL_FLUSHES);
	else
		blknull_count_op(dev, bio_op(bio), bio_sectors(bio));
}

/*
 * The driver owns the link between bios until the bio ends, so it is the node of
 * a list of bios that end on another CPU.
 */
static struct llist_node *blknull_bio_node(struct bio *bio)
{
	BUILD_BUG_ON(sizeof(bio->bi_next) != sizeof(struct llist_node));
	return (struct llist_node *)&bio->bi_next;
}

/**
 * blknull_bio_end() - end a bio
 * @node: its node
 *
 * Context: Any.
 */
void blknull_bio_end(struct llist_node *node)
{
	struct bio *bio = container_of((struct bio **)node, struct bio, bi_next);

	bio->bi_next = NULL;
	bio_endio(bio);
}

/*
 * A write may wait for memory. A device that was created with bypass=1 claims
 * NOWAIT, so such a write is refused.
 */
static blk_status_t blknull_bio_data(struct blknull_device *dev,
				     struct bio *bio)
{
	if (bio->bi_opf & REQ_NOWAIT && op_is_write(bio_op(bio)))
		return BLK_STS_AGAIN;
	return blknull_data_bio(dev, bio);
}

/* The generic path: tests for each feature. */
static __always_inline void blknull_handle_features(struct bio *bio)
{
	struct blknull_device *dev = compat_bio_disk(bio)->private_data;
	const struct blknull_config *config = &dev->config;
	enum blknull_fault_action action = BLKNULL_PASS;
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
		action = blknull_fault_action(dev, bio->bi_iter.bi_sector,
					      bio_sectors(bio));
	if (action == BLKNULL_FAIL)
		bio->bi_status = blknull_fail_status(dev);
	else if (config->memory_backed && !READ_ONCE(config->bypass))
		bio->bi_status = blknull_bio_data(dev, bio);
	else if (config->zero_fill && !blknull_no_fill(bio))
		blknull_fill(bio);
	if (action == BLKNULL_DELAY && blknull_delay_bio(dev, bio, start))
		return;
	if (dev->remotes) {
		blknull_remote_end(dev, blknull_bio_node(bio));
		return;
	}
	if (config->iostats)
		bio_end_io_acct(bio, start);
	bio_endio(bio);
}

static compat_submit_bio_t blknull_bio_submit(struct bio *bio)
{
	blknull_handle(bio, false, false);
	return COMPAT_SUBMIT_BIO_DONE;
}

static compat_submit_bio_t blknull_bio_fill_submit(struct bio *bio)
{
	blknull_handle(bio, false, true);
	return COMPAT_SUBMIT_BIO_DONE;
}

static compat_submit_bio_t blknull_bio_split_submit(struct bio *bio)
{
	blknull_handle(bio, true, false);
	return COMPAT_SUBMIT_BIO_DONE;
}

static compat_submit_bio_t blknull_bio_split_fill_submit(struct bio *bio)
{
	blknull_handle(bio, true, true);
	return COMPAT_SUBMIT_BIO_DONE;
}

static compat_submit_bio_t blknull_features_submit(struct bio *bio)
{
	blknull_handle_features(bio);
	return COMPAT_SUBMIT_BIO_DONE;
}

#define BLKNULL_BIO_OPS(_submit)					\
{									\
	.owner		= THIS_MODULE,					\
	.submit_bio	= _submit,					\
	COMPAT_FREE_DISK(blknull_free_disk)				\
}

static const struct block_device_operations blknull_bio_ops =
	BLKNULL_BIO_OPS(blknull_bio_submit);
static const struct block_device_operations blknull_bio_fill_ops =
	BLKNULL_BIO_OPS(blknull_bio_fill_submit);
static const struct block_device_operations blknull_bio_split_ops =
	BLKNULL_BIO_OPS(blknull_bio_split_submit);
static const struct block_device_operations blknull_bio_split_fill_ops =
	BLKNULL_BIO_OPS(blknull_bio_split_fill_submit);
static const struct block_device_operations blknull_bio_features_ops =
	BLKNULL_BIO_OPS(blknull_features_submit);

/**
 * blknull_bio_mode() - choose the operations of a device in mode bio
 * @dev: the device
 *
 * Return: the table for the attributes of @dev.
 */
const struct block_device_operations *
blknull_bio_mode(const struct blknull_device *dev)
{
	const struct blknull_config *config = &dev->config;

	if (blknull_has_features(config) || config->iostats)
		return &blknull_bio_features_ops;
	if (dev->split)
		return config->zero_fill ? &blknull_bio_split_fill_ops :
					   &blknull_bio_split_ops;
	return config->zero_fill ? &blknull_bio_fill_ops : &blknull_bio_ops;
}
