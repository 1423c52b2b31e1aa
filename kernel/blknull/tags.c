// SPDX-License-Identifier: GPL-2.0
/*
 * Tag sets of mode mq: one per device, or shared by several devices.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blk-mq.h>
#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "compat/mq.h"
#include "tags.h"

/* The tag set of all devices with shared_tags=1. */
static DEFINE_MUTEX(blknull_shared_lock); /* blknull_shared and its users */
static struct blknull_tags *blknull_shared;

static void blknull_tags_configure(struct blknull_tags *tags,
				   const struct blknull_config *config)
{
	struct blk_mq_tag_set *set = &tags->set;

	tags->submit_queues = config->submit_queues;
	tags->poll_queues = config->poll_queues;
	blknull_mq_mode(config, set);
	set->nr_hw_queues = config->submit_queues + config->poll_queues;
	set->nr_maps = config->poll_queues ? HCTX_MAX_TYPES : 1;
	set->queue_depth = config->hw_queue_depth;
	set->numa_node = config->home_node;
	set->timeout = msecs_to_jiffies(config->timeout_ms);
	set->flags = COMPAT_BLK_MQ_F_SHOULD_MERGE |
		     COMPAT_BLK_MQ_F_NO_SCHED_BY_DEFAULT;
	/* Allocating memory for a block may sleep. */
	if (config->memory_backed)
		set->flags |= BLK_MQ_F_BLOCKING;
	set->driver_data = tags;
}

static struct blknull_tags *
blknull_tags_create(const struct blknull_config *config)
{
	struct blknull_tags *tags;
	int err;

	tags = kzalloc(sizeof(*tags), GFP_KERNEL);
	if (!tags)
		return ERR_PTR(-ENOMEM);
	blknull_tags_configure(tags, config);
	err = blk_mq_alloc_tag_set(&tags->set);
	if (err) {
		kfree(tags);
		return ERR_PTR(err);
	}
	tags->users = 1;
	return tags;
}

static void blknull_tags_destroy(struct blknull_tags *tags)
{
	blk_mq_free_tag_set(&tags->set);
	kfree(tags);
}

/* True if a device may share these tags. */
static bool blknull_tags_fit(const struct blknull_tags *tags,
			     const struct blknull_config *config)
{
	struct blknull_tags wanted = {};

	blknull_tags_configure(&wanted, config);
	return wanted.submit_queues == tags->submit_queues &&
	       wanted.poll_queues == tags->poll_queues &&
	       wanted.set.ops == tags->set.ops &&
	       wanted.set.queue_depth == tags->set.queue_depth &&
	       wanted.set.numa_node == tags->set.numa_node &&
	       wanted.set.timeout == tags->set.timeout &&
	       !((wanted.set.flags ^ tags->set.flags) & BLK_MQ_F_BLOCKING);
}

/**
 * blknull_tags_get() - give a device a tag set, of its own or shared
 * @dev: the device
 *
 * Context: Process context, may sleep.
 * Return: 0 or an error.
 */
int blknull_tags_get(struct blknull_device *dev)
{
	const struct blknull_config *config = &dev->config;
	struct blknull_tags *tags;

	if (!config->shared_tags) {
		tags = blknull_tags_create(config);
		if (IS_ERR(tags))
			return PTR_ERR(tags);
		dev->tags = tags;
		return 0;
	}

	mutex_lock(&blknull_shared_lock);
	tags = blknull_shared;
	if (!tags) {
		tags = blknull_tags_create(config);
		if (!IS_ERR(tags))
			blknull_shared = tags;
	} else if (blknull_tags_fit(tags, config)) {
		tags->users++;
	} else {
		tags = ERR_PTR(-EINVAL);
		pr_err_ratelimited("shared_tags=1 needs the same queues, depth, node, timeout and handling of requests as the other devices that have it\n");
	}
	mutex_unlock(&blknull_shared_lock);
	if (IS_ERR(tags))
		return PTR_ERR(tags);
	dev->tags = tags;
	return 0;
}

/**
 * blknull_tags_put() - drop a device's tag set
 * @dev: the device, whose queue is gone
 *
 * Context: Process context, may sleep.
 */
void blknull_tags_put(struct blknull_device *dev)
{
	struct blknull_tags *tags = dev->tags;

	if (dev->config.shared_tags) {
		mutex_lock(&blknull_shared_lock);
		if (--tags->users)
			tags = NULL;
		else
			blknull_shared = NULL;
		mutex_unlock(&blknull_shared_lock);
	}
	if (tags)
		blknull_tags_destroy(tags);
}
