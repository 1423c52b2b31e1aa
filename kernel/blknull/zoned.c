// SPDX-License-Identifier: GPL-2.0
/*
 * Zoned devices: host-managed, in mode mq. A write to a sequential zone must
 * begin at its write pointer. The block layer emulates zone append.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/rwsem.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "zoned.h"

/* 256 TiB in zones of 256 MiB. */
#define BLKNULL_MAX_ZONES	1048576

/**
 * blknull_zoned_check() - check the attributes of a zoned device
 * @config: the attributes
 *
 * Return: 0, or -EINVAL; then the reason is in the log.
 */
int blknull_zoned_check(const struct blknull_config *config)
{
	const char *what = NULL;
	/* Both are positive, and the latter is a power of 2. */
	u64 nr = (u64)config->size_mb >> ilog2(config->zone_size_mb);

	if (!blknull_zoned_supported())
		what = "is not supported by this kernel: 6.11 and BLK_DEV_ZONED are needed";
	else if (config->discard || config->write_zeroes)
		what = "excludes discard=1 and write_zeroes=1";
	else if (config->size_mb & (config->zone_size_mb - 1))
		what = "needs a size_mb that is a multiple of zone_size_mb";
	else if (config->zone_capacity_mb > config->zone_size_mb)
		what = "needs a zone_capacity_mb of at most zone_size_mb";
	else if (nr > BLKNULL_MAX_ZONES)
		what = "needs a zone_size_mb that makes no more than 1048576 zones";
	else if (config->zone_nr_conv >= nr)
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
 * @node: entry in the list @implicit, or empty
 * @written: sectors before the write pointer
 * @cond: its condition
 */
struct blknull_zone {
	struct list_head node;
	unsigned int written;
	enum blk_zone_cond cond;
};

/**
 * struct blknull_zones - the zones of a device
 * @lock: protects the fields that change
 * @size: sectors per zone
 * @capacity: writable sectors per zone
 * @nr: number of zones
 * @conventional: number of conventional zones, the first ones
 * @max_open: maximum number of open zones; 0 disables the limit
 * @max_active: maximum number of active zones; 0 disables the limit
 * @open: number of open zones
 * @active: number of active zones
 * @implicit: implicitly open zones, in the order in which they were opened
 * @data: keeps write pointer and data consistent; held shared by a write,
 *	exclusively by a reset; taken before @lock, and only if the device is
 *	memory-backed
 * @zone: the zones
 */
struct blknull_zones {
	spinlock_t lock; /* fields that change */
	unsigned int size;
	unsigned int capacity;
	unsigned int nr;
	unsigned int conventional;
	unsigned int max_open;
	unsigned int max_active;
	unsigned int open;
	unsigned int active;
	struct list_head implicit;
	struct rw_semaphore data; /* data and write pointers */
	struct blknull_zone zone[];
};

/**
 * blknull_zones_create() - allocate the zones
 * @dev: the device
 *
 * Context: Process context, may sleep.
 * Return: 0 or an error.
 */
int blknull_zones_create(struct blknull_device *dev)
{
	const struct blknull_config *config = &dev->config;
	unsigned int nr = config->size_mb >> ilog2(config->zone_size_mb), i;
	struct blknull_zones *zones;

	zones = kvzalloc_node(struct_size(zones, zone, nr), GFP_KERNEL,
			      config->home_node);
	if (!zones)
		return -ENOMEM;
	spin_lock_init(&zones->lock);
	INIT_LIST_HEAD(&zones->implicit);
	init_rwsem(&zones->data);
	zones->size = config->zone_size_mb << (20 - SECTOR_SHIFT);
	zones->capacity = config->zone_capacity_mb ?
			  config->zone_capacity_mb << (20 - SECTOR_SHIFT) :
			  zones->size;
	zones->nr = nr;
	zones->conventional = config->zone_nr_conv;
	zones->max_open = config->zone_max_open;
	zones->max_active = config->zone_max_active;
	for (i = 0; i < nr; i++) {
		INIT_LIST_HEAD(&zones->zone[i].node);
		zones->zone[i].cond = i < zones->conventional ?
				      BLK_ZONE_COND_NOT_WP :
				      BLK_ZONE_COND_EMPTY;
	}
	dev->zones = zones;
	return 0;
}

/**
 * blknull_zones_limits() - set the limits of a zoned queue
 * @dev: the device
 * @lim: limits of the queue
 */
void blknull_zones_limits(struct blknull_device *dev, struct queue_limits *lim)
{
	const struct blknull_zones *zones = dev->zones;

	lim->chunk_sectors = zones->size;
	lim->max_open_zones = zones->max_open;
	lim->max_active_zones = zones->max_active;
}

/**
 * blknull_zones_publish() - register the zones with the block layer
 * @dev: the device
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

/* Change a zone's condition and update the counts. */
static void blknull_zone_become(struct blknull_zones *zones,
				struct blknull_zone *zone,
				enum blk_zone_cond cond)
{
	lockdep_assert_held(&zones->lock);
	zones->open -= blknull_zone_is_open(zone);
	zones->active -= blknull_zone_is_active(zone);
	list_del_init(&zone->node);
	zone->cond = cond;
	if (cond == BLK_ZONE_COND_IMP_OPEN)
		list_add_tail(&zone->node, &zones->implicit);
	zones->open += blknull_zone_is_open(zone);
	zones->active += blknull_zone_is_active(zone);
}

static void blknull_zone_close(struct blknull_zones *zones,
			       struct blknull_zone *zone)
{
	blknull_zone_become(zones, zone, zone->written ? BLK_ZONE_COND_CLOSED :
							 BLK_ZONE_COND_EMPTY);
}

/* Close the implicitly open zone that was opened first. */
static bool blknull_zones_make_room(struct blknull_zones *zones)
{
	struct blknull_zone *zone =
		list_first_entry_or_null(&zones->implicit, struct blknull_zone,
					 node);

	if (zone)
		blknull_zone_close(zones, zone);
	return zone;
}

/* Open a zone as @cond, unless that exceeds a limit. */
static blk_status_t blknull_zone_open(struct blknull_zones *zones,
				      struct blknull_zone *zone,
				      enum blk_zone_cond cond)
{
	if (blknull_zone_is_open(zone)) {
		if (cond == BLK_ZONE_COND_EXP_OPEN)
			blknull_zone_become(zones, zone, cond);
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

/* Drops the lock between zones: there may be a million of them. */
static void blknull_zones_reset_all(struct blknull_zones *zones)
{
	unsigned int i;

	for (i = zones->conventional; i < zones->nr; i++) {
		spin_lock_irq(&zones->lock);
		blknull_zone_reset(zones, &zones->zone[i]);
		spin_unlock_irq(&zones->lock);
	}
}

/* Carry out a request on the state of the zones, not on the data. */
static blk_status_t blknull_zones_change(struct blknull_zones *zones,
					 struct request *rq)
{
	sector_t sector = blk_rq_pos(rq);
	struct blknull_zone *zone;
	unsigned long flags;
	blk_status_t status;

	if (req_op(rq) == REQ_OP_ZONE_RESET_ALL) {
		blknull_zones_reset_all(zones);
		return BLK_STS_OK;
	}
	/* A zone's size is a power of 2. */
	zone = &zones->zone[sector >> ilog2(zones->size)];
	spin_lock_irqsave(&zones->lock, flags);
	if (req_op(rq) == REQ_OP_WRITE)
		status = blknull_zone_write(zones, zone,
					    sector & (zones->size - 1),
					    blk_rq_sectors(rq));
	else
		status = blknull_zone_manage(zones, zone, req_op(rq));
	spin_unlock_irqrestore(&zones->lock, flags);
	return status;
}

/* A write. A reset runs before it or after its data are stored. */
static blk_status_t blknull_zoned_write(struct blknull_device *dev,
					struct request *rq)
{
	struct blknull_zones *zones = dev->zones;
	blk_status_t status;

	if (!dev->config.memory_backed)
		return blknull_zones_change(zones, rq);
	down_read(&zones->data);
	status = blknull_zones_change(zones, rq);
	if (!status)
		status = blknull_data_request(dev, rq);
	up_read(&zones->data);
	return status;
}

/* Reset zones from @sector on and zero their data. */
static blk_status_t blknull_zoned_reset(struct blknull_device *dev,
					struct request *rq, sector_t sector,
					sector_t sectors)
{
	struct blknull_zones *zones = dev->zones;
	blk_status_t status;

	if (!dev->config.memory_backed)
		return blknull_zones_change(zones, rq);
	down_write(&zones->data);
	status = blknull_zones_change(zones, rq);
	if (!status)
		blknull_data_erase(dev, sector, sectors);
	up_write(&zones->data);
	return status;
}

/**
 * blknull_zoned_request() - carry out a request on the zones and their data
 * @dev: the device, zoned
 * @rq: the request
 *
 * Context: Any; process context that may sleep if the device is memory-backed.
 * Return: the status.
 */
blk_status_t blknull_zoned_request(struct blknull_device *dev,
				   struct request *rq)
{
	struct blknull_zones *zones = dev->zones;
	sector_t first;

	switch (req_op(rq)) {
	case REQ_OP_WRITE:
		return blknull_zoned_write(dev, rq);
	case REQ_OP_ZONE_RESET:
		return blknull_zoned_reset(dev, rq, blk_rq_pos(rq),
					   zones->size);
	case REQ_OP_ZONE_RESET_ALL:
		first = (sector_t)zones->size * zones->conventional;
		return blknull_zoned_reset(dev, rq, first,
					   (sector_t)zones->size * zones->nr -
					   first);
	case REQ_OP_ZONE_OPEN:
	case REQ_OP_ZONE_CLOSE:
	case REQ_OP_ZONE_FINISH:
		return blknull_zones_change(zones, rq);
	default:
		return dev->config.memory_backed ?
		       blknull_data_request(dev, rq) : BLK_STS_OK;
	}
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

static const struct block_device_operations blknull_zoned_ops = {
	.owner		= THIS_MODULE,
	.report_zones	= blknull_report_zones_op,
	COMPAT_FREE_DISK(blknull_free_disk)
};

/**
 * blknull_zoned_mode() - the operations of a zoned device
 */
const struct block_device_operations *blknull_zoned_mode(void)
{
	return &blknull_zoned_ops;
}

#endif
