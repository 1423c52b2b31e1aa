// SPDX-License-Identifier: GPL-2.0
/*
 * Zoned devices: what is written to a zone that is written in sequence has to
 * begin at its write pointer. Host-managed, in mode mq; appending is emulated by
 * the block layer.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "blknull.h"
#include "zoned.h"

/**
 * blknull_zoned_check() - whether the attributes go together
 * @config: the attributes of a device that is to be zoned
 *
 * Return: 0, or -EINVAL, after saying why.
 */
int blknull_zoned_check(const struct blknull_config *config)
{
	const char *what = NULL;

	if (!blknull_zoned_supported())
		what = "is not supported by this kernel: 6.11 and BLK_DEV_ZONED are needed";
	else if (config->discard || config->write_zeroes)
		what = "goes with neither discard=1 nor write_zeroes=1";
	else if (config->size_mb % config->zone_size_mb)
		what = "needs a size_mb that is a multiple of zone_size_mb";
	else if (config->zone_capacity_mb > config->zone_size_mb)
		what = "needs a zone_capacity_mb of at most zone_size_mb";
	else if (config->size_mb / config->zone_size_mb > INT_MAX ||
		 config->zone_nr_conv >= config->size_mb / config->zone_size_mb)
		what = "needs a zone_nr_conv below the number of zones";
	else if (config->zone_max_active &&
		 config->zone_max_open > config->zone_max_active)
		what = "needs a zone_max_open of at most zone_max_active";
	if (!what)
		return 0;
	pr_err_ratelimited("zoned=1 %s\n", what);
	return -EINVAL;
}

#ifdef COMPAT_ZONED

/**
 * struct blknull_zone - a zone
 * @written: sectors before the write pointer
 * @cond: its condition
 */
struct blknull_zone {
	unsigned int written;
	enum blk_zone_cond cond;
};

/**
 * struct blknull_zones - the zones of a device
 * @lock: protects all that changes
 * @size: sectors of a zone
 * @capacity: how many of these can be written
 * @nr: how many zones there are
 * @conventional: how many of the first can be written anywhere
 * @max_open: most that may be open, or 0: all
 * @max_active: most that may be open or closed, or 0: all
 * @open: how many are
 * @active: how many are
 * @zone: the zones
 */
struct blknull_zones {
	spinlock_t lock; /* all that changes */
	unsigned int size;
	unsigned int capacity;
	unsigned int nr;
	unsigned int conventional;
	unsigned int max_open;
	unsigned int max_active;
	unsigned int open;
	unsigned int active;
	struct blknull_zone zone[];
};

/**
 * blknull_zones_create() - give a device its zones
 * @dev: the device
 *
 * Context: Process context, may sleep.
 * Return: 0 or an error.
 */
int blknull_zones_create(struct blknull_device *dev)
{
	const struct blknull_config *config = &dev->config;
	unsigned int nr = config->size_mb / config->zone_size_mb, i;
	struct blknull_zones *zones;

	zones = kvzalloc_node(struct_size(zones, zone, nr), GFP_KERNEL,
			      config->home_node);
	if (!zones)
		return -ENOMEM;
	spin_lock_init(&zones->lock);
	zones->size = config->zone_size_mb << (20 - SECTOR_SHIFT);
	zones->capacity = config->zone_capacity_mb ?
			  config->zone_capacity_mb << (20 - SECTOR_SHIFT) :
			  zones->size;
	zones->nr = nr;
	zones->conventional = config->zone_nr_conv;
	zones->max_open = config->zone_max_open;
	zones->max_active = config->zone_max_active;
	for (i = 0; i < nr; i++)
		zones->zone[i].cond = i < zones->conventional ?
				      BLK_ZONE_COND_NOT_WP :
				      BLK_ZONE_COND_EMPTY;
	dev->zones = zones;
	return 0;
}

/**
 * blknull_zones_destroy() - free a device's zones
 * @dev: the device, whose disk is gone
 */
void blknull_zones_destroy(struct blknull_device *dev)
{
	kvfree(dev->zones);
}

/**
 * blknull_zones_limits() - let a queue be zoned
 * @dev: its device
 * @lim: its limits
 */
void blknull_zones_limits(struct blknull_device *dev, struct queue_limits *lim)
{
	const struct blknull_zones *zones = dev->zones;

	lim->chunk_sectors = zones->size;
	lim->max_open_zones = zones->max_open;
	lim->max_active_zones = zones->max_active;
}

/**
 * blknull_zones_publish() - let the block layer know a disk's zones
 * @dev: its device
 *
 * Context: Process context, may sleep.
 * Return: 0 or an error.
 */
int blknull_zones_publish(struct blknull_device *dev)
{
	dev->disk->nr_zones = dev->zones->nr;
	return blk_revalidate_disk_zones(dev->disk);
}

static bool blknull_zone_is_open(const struct blknull_zone *zone)
{
	return zone->cond == BLK_ZONE_COND_IMP_OPEN ||
	       zone->cond == BLK_ZONE_COND_EXP_OPEN;
}

static bool blknull_zone_is_active(const struct blknull_zone *zone)
{
	return blknull_zone_is_open(zone) || zone->cond == BLK_ZONE_COND_CLOSED;
}

/* Change a zone's condition, and count. */
static void blknull_zone_become(struct blknull_zones *zones,
				struct blknull_zone *zone,
				enum blk_zone_cond cond)
{
	lockdep_assert_held(&zones->lock);
	zones->open -= blknull_zone_is_open(zone);
	zones->active -= blknull_zone_is_active(zone);
	zone->cond = cond;
	zones->open += blknull_zone_is_open(zone);
	zones->active += blknull_zone_is_active(zone);
}

static void blknull_zone_close(struct blknull_zones *zones,
			       struct blknull_zone *zone)
{
	blknull_zone_become(zones, zone, zone->written ? BLK_ZONE_COND_CLOSED :
							 BLK_ZONE_COND_EMPTY);
}

/* Close one zone that nobody opened on purpose, if there is one. */
static bool blknull_zones_make_room(struct blknull_zones *zones)
{
	unsigned int i;

	for (i = zones->conventional; i < zones->nr; i++) {
		if (zones->zone[i].cond == BLK_ZONE_COND_IMP_OPEN) {
			blknull_zone_close(zones, &zones->zone[i]);
			return true;
		}
	}
	return false;
}

/* Open a zone as @cond, if the device may have one more. */
static blk_status_t blknull_zone_open(struct blknull_zones *zones,
				      struct blknull_zone *zone,
				      enum blk_zone_cond cond)
{
	if (blknull_zone_is_open(zone)) {
		if (cond == BLK_ZONE_COND_EXP_OPEN)
			zone->cond = cond;
		return BLK_STS_OK;
	}
	if (!blknull_zone_is_active(zone) && zones->max_active &&
	    zones->active == zones->max_active)
		return BLK_STS_ZONE_ACTIVE_RESOURCE;
	if (zones->max_open && zones->open == zones->max_open &&
	    !blknull_zones_make_room(zones))
		return BLK_STS_ZONE_OPEN_RESOURCE;
	blknull_zone_become(zones, zone, cond);
	return BLK_STS_OK;
}

static blk_status_t blknull_zone_write(struct blknull_zones *zones,
				       struct blknull_zone *zone,
				       unsigned int at, unsigned int sectors)
{
	blk_status_t status;

	if (zone->cond == BLK_ZONE_COND_NOT_WP)
		return BLK_STS_OK;
	if (zone->cond == BLK_ZONE_COND_FULL || at != zone->written ||
	    sectors > zones->capacity - zone->written)
		return BLK_STS_IOERR;
	status = blknull_zone_open(zones, zone, BLK_ZONE_COND_IMP_OPEN);
	if (status)
		return status;
	zone->written += sectors;
	if (zone->written == zones->capacity)
		blknull_zone_become(zones, zone, BLK_ZONE_COND_FULL);
	return BLK_STS_OK;
}

static void blknull_zone_reset(struct blknull_zones *zones,
			       struct blknull_zone *zone)
{
	zone->written = 0;
	blknull_zone_become(zones, zone, BLK_ZONE_COND_EMPTY);
}

/* Open, close, finish or reset a zone. */
static blk_status_t blknull_zone_manage(struct blknull_zones *zones,
					struct blknull_zone *zone,
					enum req_op op)
{
	if (zone->cond == BLK_ZONE_COND_NOT_WP)
		return BLK_STS_IOERR;
	switch (op) {
	case REQ_OP_ZONE_OPEN:
		if (zone->cond == BLK_ZONE_COND_FULL)
			return BLK_STS_IOERR;
		return blknull_zone_open(zones, zone, BLK_ZONE_COND_EXP_OPEN);
	case REQ_OP_ZONE_CLOSE:
		if (zone->cond == BLK_ZONE_COND_FULL)
			return BLK_STS_IOERR;
		if (blknull_zone_is_open(zone))
			blknull_zone_close(zones, zone);
		return BLK_STS_OK;
	case REQ_OP_ZONE_FINISH:
		zone->written = zones->capacity;
		blknull_zone_become(zones, zone, BLK_ZONE_COND_FULL);
		return BLK_STS_OK;
	default:
		blknull_zone_reset(zones, zone);
		return BLK_STS_OK;
	}
}

/**
 * blknull_zoned_request() - what a request does to zones
 * @dev: its device, which is zoned
 * @rq: the request
 *
 * Context: Any.
 * Return: whether it may be carried out.
 */
blk_status_t blknull_zoned_request(struct blknull_device *dev,
				   struct request *rq)
{
	struct blknull_zones *zones = dev->zones;
	sector_t sector = blk_rq_pos(rq);
	blk_status_t status = BLK_STS_OK;
	struct blknull_zone *zone;
	unsigned long flags;
	unsigned int i;

	switch (req_op(rq)) {
	case REQ_OP_WRITE:
	case REQ_OP_ZONE_OPEN:
	case REQ_OP_ZONE_CLOSE:
	case REQ_OP_ZONE_FINISH:
	case REQ_OP_ZONE_RESET:
	case REQ_OP_ZONE_RESET_ALL:
		break;
	default:
		return BLK_STS_OK;
	}
	/* A zone's size is a power of 2. */
	zone = &zones->zone[sector >> ilog2(zones->size)];

	spin_lock_irqsave(&zones->lock, flags);
	if (req_op(rq) == REQ_OP_WRITE) {
		status = blknull_zone_write(zones, zone,
					    sector & (zones->size - 1),
					    blk_rq_sectors(rq));
	} else if (req_op(rq) == REQ_OP_ZONE_RESET_ALL) {
		for (i = zones->conventional; i < zones->nr; i++)
			blknull_zone_reset(zones, &zones->zone[i]);
	} else {
		status = blknull_zone_manage(zones, zone, req_op(rq));
	}
	spin_unlock_irqrestore(&zones->lock, flags);

	/* What was in a zone is zeroes once it is reset. */
	if (!status && req_op(rq) == REQ_OP_ZONE_RESET)
		blknull_data_erase(dev, sector, zones->size);
	if (!status && req_op(rq) == REQ_OP_ZONE_RESET_ALL)
		blknull_data_erase(dev, (sector_t)zones->size *
				   zones->conventional,
				   (sector_t)zones->size *
				   (zones->nr - zones->conventional));
	return status;
}

static int blknull_report_zones(struct gendisk *disk, sector_t sector,
				unsigned int nr_zones,
				struct compat_report *report)
{
	struct blknull_device *dev = disk->private_data;
	struct blknull_zones *zones = dev->zones;
	unsigned int first = sector >> ilog2(zones->size), i;
	struct blknull_zone now;
	int err;

	nr_zones = min(nr_zones, zones->nr - first);
	for (i = 0; i < nr_zones; i++) {
		struct blk_zone zone = {
			.start		= (sector_t)(first + i) * zones->size,
			.len		= zones->size,
			.capacity	= zones->capacity,
			.type		= BLK_ZONE_TYPE_SEQWRITE_REQ,
		};

		spin_lock_irq(&zones->lock);
		now = zones->zone[first + i];
		spin_unlock_irq(&zones->lock);
		zone.cond = now.cond;
		zone.wp = zone.start + now.written;
		if (now.cond == BLK_ZONE_COND_NOT_WP) {
			zone.type = BLK_ZONE_TYPE_CONVENTIONAL;
			zone.capacity = zone.len;
			zone.wp = zone.start + zone.len;
		} else if (now.cond == BLK_ZONE_COND_FULL) {
			zone.wp = zone.start + zone.len;
		}
		err = compat_report_zone(report, disk, &zone, i);
		if (err)
			return err;
	}
	return nr_zones;
}

COMPAT_REPORT_ZONES_OP(blknull_report_zones_op, blknull_report_zones)

const struct block_device_operations blknull_zoned_fops = {
	.owner		= THIS_MODULE,
	.report_zones	= blknull_report_zones_op,
};

#endif
