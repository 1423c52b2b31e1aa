// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of a device: it is freed when the disk is withdrawn and the last
 * process has closed it. The tables of operations point here, so this file
 * calls none of the others.
 */
#include <linux/blkdev.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "blknull.h"

/* Disks that were published and are not freed yet. */
static atomic_t blknull_disks;

/**
 * blknull_device_alloc() - allocate a device
 * @config: its attributes
 *
 * Return: the device, or NULL.
 */
struct blknull_device *blknull_device_alloc(const struct blknull_config *config)
{
	struct blknull_device *dev;

	dev = kzalloc_node(sizeof(*dev), GFP_KERNEL, config->home_node);
	if (!dev)
		return NULL;
	dev->config = *config;
	dev->split = config->max_sectors || config->max_segments ||
		     config->virt_boundary;
	dev->features = blknull_has_features(config);
	xa_init(&dev->blocks);
	return dev;
}

/**
 * blknull_device_published() - blknull_free_disk() will free one more device
 */
void blknull_device_published(void)
{
	atomic_inc(&blknull_disks);
}

/**
 * blknull_free_disk() - ->free_disk(): free a device
 * @disk: withdrawn, and not open any more
 */
void blknull_free_disk(struct gendisk *disk)
{
	kfree(disk->private_data);
	if (atomic_dec_and_test(&blknull_disks))
		wake_up_var(&blknull_disks);
}

/**
 * blknull_devices_wait() - wait until all devices are freed
 *
 * A file drops its reference to the module shortly before that to the disk. The task
 * that frees the last device may still be in blknull_free_disk() then; and a timer's
 * interrupt in the function that ended the last I/O.
 */
void blknull_devices_wait(void)
{
	wait_var_event(&blknull_disks, !atomic_read(&blknull_disks));
	synchronize_rcu();
	synchronize_rcu_tasks();
}
