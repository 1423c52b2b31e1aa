// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a blknull disk: made, published, withdrawn.
 */
#include <linux/blkdev.h>
#include <linux/numa.h>
#include <linux/slab.h>

#include "blknull.h"
#include "disk.h"

/**
 * blknull_create() - make a device and publish it
 * @config: what it is to be; already checked
 *
 * Context: Process context, may sleep.
 * Return: the device, or an ERR_PTR().
 */
struct blknull_device *blknull_create(const struct blknull_config *config)
{
	struct queue_limits lim = {
		.logical_block_size	= config->block_size,
		.physical_block_size	= config->block_size,
		.max_hw_sectors		= config->max_sectors ?: UINT_MAX,
		.max_hw_discard_sectors	= config->discard ? UINT_MAX >> 9 : 0,
		/* Only max_sectors splits a bio. */
		.max_segments		= USHRT_MAX,
		.max_segment_size	= UINT_MAX,
	};
	/* A bio that ends at once never waits. */
	blk_features_t features = BLK_FEAT_NOWAIT;
	struct blknull_device *dev;
	int err;

	if (config->rotational)
		features |= BLK_FEAT_ROTATIONAL;

	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return ERR_PTR(-ENOMEM);

	dev->disk = compat_alloc_disk(&lim, features, NUMA_NO_NODE);
	if (IS_ERR(dev->disk)) {
		err = PTR_ERR(dev->disk);
		goto free_dev;
	}
	dev->disk->fops = blknull_bio_mode(config);
	dev->disk->private_data = dev;
	snprintf(dev->disk->disk_name, sizeof(dev->disk->disk_name),
		 "blknull%u", config->index);
	set_capacity(dev->disk, (sector_t)config->size_mb << (20 - 9));
	set_disk_ro(dev->disk, config->read_only);

	err = compat_add_disk(dev->disk);
	if (err)
		goto put_disk;
	return dev;

put_disk:
	compat_put_disk(dev->disk);
free_dev:
	kfree(dev);
	return ERR_PTR(err);
}

/**
 * blknull_destroy() - withdraw a device and free it
 * @dev: the device; nothing uses it afterwards
 *
 * Context: Process context, may sleep.
 */
void blknull_destroy(struct blknull_device *dev)
{
	del_gendisk(dev->disk);
	compat_put_disk(dev->disk);
	kfree(dev);
}
