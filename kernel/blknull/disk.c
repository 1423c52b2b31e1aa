// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a disk: create, publish, withdraw.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/debugfs.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "blknull.h"
#include "counters.h"

/* Maximum discard or write-zeroes: bi_size has 32 bits. */
#define BLKNULL_MAX_DATALESS	(UINT_MAX >> SECTOR_SHIFT)

/* Numbers in the disks' names. */
static DEFINE_IDA(blknull_indices);

static int blknull_take_index(struct blknull_config *config)
{
	int first = max(config->index, 0);
	int last = config->index >= 0 ? first : BLKNULL_MAX_INDEX;
	int index;

	index = ida_alloc_range(&blknull_indices, first, last, GFP_KERNEL);
	if (index == -ENOSPC && config->index >= 0) {
		pr_err_ratelimited("index=%d is in use\n", config->index);
		return -EEXIST;
	}
	if (index < 0)
		return index;
	config->index = index;
	return 0;
}

static blk_features_t blknull_features(const struct blknull_config *config)
{
	blk_features_t features = 0;

	if (config->rotational)
		features |= BLK_FEAT_ROTATIONAL;
	if (config->write_cache)
		features |= BLK_FEAT_WRITE_CACHE;
	if (config->fua)
		features |= BLK_FEAT_FUA;
	if (config->iostats)
		features |= BLK_FEAT_IO_STAT;
	/* A bio that ends at once never waits. blk-mq sets this itself. */
	if (config->mode == BLKNULL_BIO &&
	    (!config->memory_backed || config->bypass) && !config->faults)
		features |= BLK_FEAT_NOWAIT;
	return features;
}

/* A disk without support for partitions, or an ERR_PTR(). */
static struct gendisk *blknull_alloc_disk(struct blknull_device *dev)
{
	const struct blknull_config *config = &dev->config;
	struct blk_mq_tag_set *set = config->mode == BLKNULL_MQ ? &dev->tags :
								  NULL;
	const unsigned int dma_mask = config->dma_alignment - 1;
	const blk_features_t features = blknull_features(config);
	struct queue_limits lim = {
		.logical_block_size	= config->block_size,
		.physical_block_size	= config->block_size,
		.max_hw_sectors		= config->max_sectors ?: UINT_MAX,
		.max_segments		= config->max_segments ?: USHRT_MAX,
		.max_segment_size	= UINT_MAX,
		COMPAT_LIMITS(dma_mask, features)
	};
	struct gendisk *disk;
	int err;

	if (config->virt_boundary)
		lim.virt_boundary_mask = PAGE_SIZE - 1;
	if (config->discard)
		lim.max_hw_discard_sectors = BLKNULL_MAX_DATALESS;
	if (config->write_zeroes)
		lim.max_write_zeroes_sectors = BLKNULL_MAX_DATALESS;

	disk = compat_alloc_disk(set, &lim, dma_mask, features,
				 config->home_node, dev);
	if (IS_ERR(disk))
		return disk;
	disk->flags |= GENHD_FL_NO_PART;
	if (set && !config->iostats) {
		err = compat_drop_io_stat(disk->queue);
		if (err) {
			compat_end_queue(disk);
			put_disk(disk);
			return ERR_PTR(err);
		}
	}
	return disk;
}

static const struct block_device_operations blknull_mq_disk_ops = {
	.owner		= THIS_MODULE,
	COMPAT_FREE_DISK(blknull_free_disk)
};

/**
 * blknull_create() - create a device and publish it
 * @config: its attributes, checked
 * @badblocks: sectors that fail, or NULL; owned by the caller, and valid until
 *	blknull_destroy()
 *
 * Context: Process context, may sleep.
 * Return: the device, or an ERR_PTR().
 */
struct blknull_device *blknull_create(const struct blknull_config *config,
				      struct badblocks *badblocks)
{
	const struct attribute_group **groups = NULL;
	struct blknull_device *dev;
	struct gendisk *disk;
	int err;

	dev = blknull_device_alloc(config);
	if (!dev)
		return ERR_PTR(-ENOMEM);
	dev->faults.badblocks = badblocks;

	err = blknull_take_index(&dev->config);
	if (err)
		goto free_dev;
	if (config->stats || config->faults) {
		groups = blknull_counter_groups;
		dev->counters = alloc_percpu(struct blknull_counters);
		if (!dev->counters) {
			err = -ENOMEM;
			goto put_index;
		}
	}
	if (config->complete_cpu != BLKNULL_CPU_LOCAL) {
		dev->end = config->mode == BLKNULL_MQ ? blknull_mq_end :
							blknull_bio_end;
		err = blknull_remotes_create(dev);
		if (err)
			goto free_counters;
	}
	if (config->mode == BLKNULL_MQ) {
		err = blknull_mq_alloc_tags(dev);
		if (err)
			goto free_remotes;
	}
	disk = blknull_alloc_disk(dev);
	if (IS_ERR(disk)) {
		err = PTR_ERR(disk);
		goto free_tags;
	}
	dev->disk = disk;
	disk->fops = config->mode == BLKNULL_MQ ? &blknull_mq_disk_ops :
						  blknull_bio_mode(dev);
	disk->private_data = dev;
	snprintf(disk->disk_name, sizeof(disk->disk_name), "blknull%d",
		 dev->config.index);
	set_capacity(disk, (sector_t)config->size_mb << (20 - SECTOR_SHIFT));
	set_disk_ro(disk, config->read_only);

	err = compat_add_disk(disk, groups);
	if (err)
		goto discard_disk;
	blknull_device_published();
	if (config->stats)
		blknull_seen_publish(dev);
	return dev;

discard_disk:
	compat_end_queue(disk);
	put_disk(disk);
free_tags:
	if (config->mode == BLKNULL_MQ)
		blk_mq_free_tag_set(&dev->tags);
free_remotes:
	free_percpu(dev->remotes);
free_counters:
	free_percpu(dev->counters);
put_index:
	ida_free(&blknull_indices, dev->config.index);
free_dev:
	kfree(dev);
	return ERR_PTR(err);
}

/**
 * blknull_destroy() - withdraw a device
 * @dev: the device
 *
 * Waits for I/O in flight. Processes that have the disk open get errors from
 * then on; @dev is freed when the last of them closes it.
 *
 * Context: Process context, may sleep.
 */
void blknull_destroy(struct blknull_device *dev)
{
	struct gendisk *disk = dev->disk;

	debugfs_remove(dev->seen);
	del_gendisk(disk);
	compat_end_queue(disk);
	wait_var_event(&dev->faults.delayed,
		       !atomic_read(&dev->faults.delayed));
	if (dev->remotes)
		blknull_remotes_drain(dev);
	free_percpu(dev->remotes);
	if (dev->config.mode == BLKNULL_MQ)
		blk_mq_free_tag_set(&dev->tags);
	blknull_data_free(dev);
	free_percpu(dev->counters);
	ida_free(&blknull_indices, dev->config.index);
	compat_put_disk(disk, blknull_free_disk);
}
