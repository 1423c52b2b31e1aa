// SPDX-License-Identifier: GPL-2.0
/*
 * blknull's mq mode: requests of blk-mq.
 *
 * As in bio mode, what is done with a request is chosen by a table of
 * operations when the device is made.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/jiffies.h>
#include <linux/llist.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "blknull.h"
#include "counters.h"
#include "compat/disk.h"
#include "fill.h"
#include "compat/mq.h"

/**
 * struct blknull_tags - requests, of one device or shared
 * @set: for blk-mq
 * @submit_queues: queues whose requests end by themselves
 * @poll_queues: queues whose requests end when polled
 * @users: devices
 */
struct blknull_tags {
	struct blk_mq_tag_set set;
	unsigned int submit_queues;
	unsigned int poll_queues;
	unsigned int users;
};

/**
 * struct blknull_request - what belongs to a request
 * @node: entry in its queue's @done
 * @timer: when it ends
 * @status: what it ends with
 * @lost: it was not handled, for it to time out
 */
struct blknull_request {
	struct llist_node node;
	struct hrtimer timer;
	blk_status_t status;
	bool lost;
};

/**
 * struct blknull_queue - a queue that is polled
 * @done: requests that are to end with the next poll
 */
struct blknull_queue {
	struct llist_head done;
};

/* The tags of all devices that share theirs. */
static DEFINE_MUTEX(blknull_shared_lock); /* blknull_shared and its users */
static struct blknull_tags *blknull_shared;

const struct block_device_operations blknull_mq_fops = {
	.owner		= THIS_MODULE,
	COMPAT_FREE_DISK(blknull_free_disk)
};

/* How a request ends. */

static void blknull_mq_complete(struct request *rq)
{
	struct blknull_request *request = blk_mq_rq_to_pdu(rq);

	blk_mq_end_request(rq, request->status);
}

static enum hrtimer_restart blknull_mq_timer(struct hrtimer *timer)
{
	struct blknull_request *request =
		container_of(timer, struct blknull_request, timer);

	blknull_mq_complete(blk_mq_rq_from_pdu(request));
	return HRTIMER_NORESTART;
}

static int blknull_mq_init_request(struct blk_mq_tag_set *set,
				   struct request *rq, unsigned int queue,
				   compat_node_t node)
{
	struct blknull_request *request = blk_mq_rq_to_pdu(rq);

	compat_hrtimer_setup(&request->timer, blknull_mq_timer, CLOCK_MONOTONIC,
			     HRTIMER_MODE_REL);
	return 0;
}

static int blknull_mq_poll(struct blk_mq_hw_ctx *hctx,
			   struct io_comp_batch *iob)
{
	struct blknull_queue *queue = hctx->driver_data;
	struct blknull_request *request, *next;
	struct llist_node *done;
	int nr = 0;

	done = llist_del_all(&queue->done);
	llist_for_each_entry_safe(request, next, done, node) {
		struct request *rq = blk_mq_rq_from_pdu(request);

		if (request->status || !compat_add_to_batch(rq, iob))
			blk_mq_end_request(rq, request->status);
		nr++;
	}
	return nr;
}

COMPAT_MQ_POLL_OP(blknull_mq_poll_op, blknull_mq_poll)

/*
 * Nobody polls, or not often enough. If somebody does at this moment, the
 * request ends there.
 */
static enum blk_eh_timer_return blknull_mq_poll_timeout(struct request *rq)
{
	blknull_mq_poll(rq->mq_hctx, NULL);
	return BLK_EH_DONE;
}

COMPAT_MQ_TIMEOUT_OP(blknull_mq_poll_timeout_op, blknull_mq_poll_timeout)

static int blknull_mq_init_hctx(struct blk_mq_hw_ctx *hctx, void *data,
				unsigned int index)
{
	struct blknull_queue *queue;

	queue = kzalloc_node(sizeof(*queue), GFP_KERNEL, hctx->numa_node);
	if (!queue)
		return -ENOMEM;
	hctx->driver_data = queue;
	return 0;
}

static void blknull_mq_exit_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	kfree(hctx->driver_data);
	hctx->driver_data = NULL;
}

static void blknull_mq_map_queues(struct blk_mq_tag_set *set)
{
	struct blknull_tags *tags = set->driver_data;
	struct blk_mq_queue_map *map = set->map;

	map[HCTX_TYPE_DEFAULT].nr_queues = tags->submit_queues;
	map[HCTX_TYPE_DEFAULT].queue_offset = 0;
	blk_mq_map_queues(&map[HCTX_TYPE_DEFAULT]);
	/* Reads have none of their own. */
	map[HCTX_TYPE_READ].nr_queues = 0;
	map[HCTX_TYPE_READ].queue_offset = 0;
	map[HCTX_TYPE_POLL].nr_queues = tags->poll_queues;
	map[HCTX_TYPE_POLL].queue_offset = tags->submit_queues;
	blk_mq_map_queues(&map[HCTX_TYPE_POLL]);
}

COMPAT_MQ_MAP_QUEUES_OP(blknull_mq_map_queues_op, blknull_mq_map_queues)

/* How a request is taken. */

/* Out of line, so that requests without any such bio pay no stack for it. */
static noinline void blknull_fill_bios(struct request *rq)
{
	struct bio *bio;

	__rq_for_each_bio(bio, rq)
		if (!blknull_read_no_fill(bio))
			blknull_fill(bio);
}

static __always_inline void blknull_fill_request(struct request *rq)
{
	struct bio *bio;

	/* No other operation brings data in. */
	if (op_is_write(rq->cmd_flags))
		return;
	__rq_for_each_bio(bio, rq) {
		if (unlikely(!blknull_read_no_fill(bio))) {
			blknull_fill_bios(rq);
			return;
		}
	}
}

/*
 * All of blknull's own work for a request. The flags are constants wherever
 * this is used: @fill reads that are not into pages a program owns, end the
 * request by @completion, unless it is in a queue that is to @poll.
 */
static __always_inline blk_status_t
blknull_mq_handle(struct blk_mq_hw_ctx *hctx, struct request *rq,
		  const bool fill, const enum blknull_completion completion,
		  const bool poll)
{
	blk_mq_start_request(rq);
	if (fill)
		blknull_fill_request(rq);
	if (poll && hctx->type == HCTX_TYPE_POLL) {
		struct blknull_request *request = blk_mq_rq_to_pdu(rq);
		struct blknull_queue *queue = hctx->driver_data;

		llist_add(&request->node, &queue->done);
	} else if (completion == BLKNULL_TIMER) {
		struct blknull_request *request = blk_mq_rq_to_pdu(rq);
		struct blknull_device *dev = hctx->queue->queuedata;

		hrtimer_start(&request->timer,
			      ns_to_ktime(dev->config.completion_nsec),
			      HRTIMER_MODE_REL);
	} else if (completion == BLKNULL_SOFTIRQ) {
		blk_mq_complete_request(rq);
	} else {
		blk_mq_end_request(rq, BLK_STS_OK);
	}
	return BLK_STS_OK;
}

#define BLKNULL_MQ_POLL_OPS						\
		.poll		= blknull_mq_poll_op,			\
		.timeout	= blknull_mq_poll_timeout_op,		\
		.map_queues	= blknull_mq_map_queues_op,		\
		.init_hctx	= blknull_mq_init_hctx,			\
		.exit_hctx	= blknull_mq_exit_hctx,

#define BLKNULL_MQ_NO_POLL_OPS

#define BLKNULL_MQ_MODE(name, fill, completion, poll, poll_ops)		\
	static blk_status_t name##_rq(struct blk_mq_hw_ctx *hctx,	\
				      const struct blk_mq_queue_data *bd) \
	{								\
		return blknull_mq_handle(hctx, bd->rq, fill, completion, \
					 poll);				\
	}								\
	static __always_inline void name##_one(struct request *rq)	\
	{								\
		blknull_mq_handle(rq->mq_hctx, rq, fill, completion,	\
				  poll);				\
	}								\
	COMPAT_MQ_QUEUE_RQS_OP(name##_rqs, name##_one)			\
	static const struct blk_mq_ops name##_ops = {			\
		.queue_rq	= name##_rq,				\
		COMPAT_MQ_QUEUE_RQS(name##_rqs)				\
		.complete	= blknull_mq_complete,			\
		.init_request	= blknull_mq_init_request,		\
		poll_ops						\
	}

#define BLKNULL_MQ_MODES(name, completion)				\
	BLKNULL_MQ_MODE(name, false, completion, false,			\
			BLKNULL_MQ_NO_POLL_OPS);			\
	BLKNULL_MQ_MODE(name##_fill, true, completion, false,		\
			BLKNULL_MQ_NO_POLL_OPS);			\
	BLKNULL_MQ_MODE(name##_poll, false, completion, true,		\
			BLKNULL_MQ_POLL_OPS);				\
	BLKNULL_MQ_MODE(name##_fill_poll, true, completion, true,	\
			BLKNULL_MQ_POLL_OPS)

BLKNULL_MQ_MODES(blknull_inline, BLKNULL_INLINE);
BLKNULL_MQ_MODES(blknull_softirq, BLKNULL_SOFTIRQ);
BLKNULL_MQ_MODES(blknull_timer, BLKNULL_TIMER);

/* By completion, whether reads are filled, and whether there are poll queues. */
#define BLKNULL_MQ_OPS(name)						\
	{								\
		{ &name##_ops, &name##_poll_ops },			\
		{ &name##_fill_ops, &name##_fill_poll_ops },		\
	}

static const struct blk_mq_ops *const blknull_mq_ops[3][2][2] = {
	[BLKNULL_INLINE] = BLKNULL_MQ_OPS(blknull_inline),
	[BLKNULL_SOFTIRQ] = BLKNULL_MQ_OPS(blknull_softirq),
	[BLKNULL_TIMER] = BLKNULL_MQ_OPS(blknull_timer),
};

/* The same for a device with features, each of which is asked for. */

static blk_status_t blknull_features_rq(struct blk_mq_hw_ctx *hctx,
					const struct blk_mq_queue_data *bd)
{
	struct blknull_request *request = blk_mq_rq_to_pdu(bd->rq);
	struct blknull_device *dev = hctx->queue->queuedata;
	const struct blknull_config *config = &dev->config;
	struct blknull_queue *queue = hctx->driver_data;
	enum blknull_fate fate = BLKNULL_PASS;
	struct request *rq = bd->rq;

	request->status = BLK_STS_OK;
	blk_mq_start_request(rq);
	if (config->faults)
		fate = blknull_fate(dev, blk_rq_pos(rq), blk_rq_sectors(rq));
	if (fate == BLKNULL_REQUEUE) {
		blknull_count(dev, BLKNULL_REQUEUED);
		blk_mq_requeue_request(rq, true);
		return BLK_STS_OK;
	}
	if (config->stats)
		blknull_count_op(dev, req_op(rq), blk_rq_sectors(rq));
	if (fate == BLKNULL_LOSE) {
		request->lost = true;
		return BLK_STS_OK;
	}
	if (fate == BLKNULL_FAIL)
		request->status = blknull_fail_status(dev);
	else if (config->zoned)
		request->status = blknull_zoned_request(dev, rq);
	else if (config->memory_backed)
		request->status = blknull_data_request(dev, rq);
	if (request->status == BLK_STS_OK && config->zero_fill &&
	    !config->memory_backed)
		blknull_fill_request(rq);

	if (fate == BLKNULL_DELAY) {
		blknull_count(dev, BLKNULL_DELAYED);
		hrtimer_start(&request->timer,
			      ns_to_ktime(READ_ONCE(config->delay_nsec)),
			      HRTIMER_MODE_REL);
	} else if (hctx->type == HCTX_TYPE_POLL) {
		llist_add(&request->node, &queue->done);
	} else if (config->completion == BLKNULL_TIMER) {
		hrtimer_start(&request->timer,
			      ns_to_ktime(config->completion_nsec),
			      HRTIMER_MODE_REL);
	} else if (config->completion == BLKNULL_SOFTIRQ) {
		blk_mq_complete_request(rq);
	} else {
		blk_mq_end_request(rq, request->status);
	}
	return BLK_STS_OK;
}

static enum blk_eh_timer_return blknull_features_timeout(struct request *rq)
{
	struct blknull_request *request = blk_mq_rq_to_pdu(rq);
	struct blknull_device *dev = rq->q->queuedata;

	if (request->lost) {
		request->lost = false;
		request->status = BLK_STS_TIMEOUT;
		blknull_count(dev, BLKNULL_TIMED_OUT);
		blk_mq_complete_request(rq);
		return BLK_EH_DONE;
	}
	if (rq->mq_hctx->type == HCTX_TYPE_POLL)
		return blknull_mq_poll_timeout(rq);
	/* Its own timer is still to come. */
	return BLK_EH_RESET_TIMER;
}

COMPAT_MQ_TIMEOUT_OP(blknull_features_timeout_op, blknull_features_timeout)

static const struct blk_mq_ops blknull_features_mq_ops = {
	.queue_rq	= blknull_features_rq,
	.complete	= blknull_mq_complete,
	.init_request	= blknull_mq_init_request,
	.timeout	= blknull_features_timeout_op,
	.init_hctx	= blknull_mq_init_hctx,
	.exit_hctx	= blknull_mq_exit_hctx,
};

static const struct blk_mq_ops blknull_features_poll_mq_ops = {
	.queue_rq	= blknull_features_rq,
	.complete	= blknull_mq_complete,
	.init_request	= blknull_mq_init_request,
	.timeout	= blknull_features_timeout_op,
	.init_hctx	= blknull_mq_init_hctx,
	.exit_hctx	= blknull_mq_exit_hctx,
	.poll		= blknull_mq_poll_op,
	.map_queues	= blknull_mq_map_queues_op,
};

static const struct blk_mq_ops *
blknull_mq_mode(const struct blknull_config *config)
{
	if (blknull_has_features(config))
		return config->poll_queues ? &blknull_features_poll_mq_ops :
					     &blknull_features_mq_ops;
	return blknull_mq_ops[config->completion][config->zero_fill]
			     [!!config->poll_queues];
}

/* The life of tags. */

static void blknull_tags_configure(struct blknull_tags *tags,
				   const struct blknull_config *config)
{
	struct blk_mq_tag_set *set = &tags->set;

	tags->submit_queues = config->submit_queues;
	tags->poll_queues = config->poll_queues;
	set->ops = blknull_mq_mode(config);
	set->nr_hw_queues = config->submit_queues + config->poll_queues;
	set->nr_maps = config->poll_queues ? HCTX_MAX_TYPES : 1;
	set->queue_depth = config->hw_queue_depth;
	set->numa_node = config->home_node;
	set->timeout = msecs_to_jiffies(config->timeout_ms);
	set->cmd_size = sizeof(struct blknull_request);
	set->flags = COMPAT_BLK_MQ_F_SHOULD_MERGE |
		     COMPAT_BLK_MQ_F_NO_SCHED_BY_DEFAULT;
	/* Blocks are added with memory that may have to be waited for. */
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

/* Whether a device may share these tags. */
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
 * blknull_tags_get() - give a device requests, of its own or shared
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
 * blknull_tags_put() - take a device's requests away
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

/**
 * blknull_tag_set() - what blk-mq knows a device's requests by
 * @dev: the device
 */
struct blk_mq_tag_set *blknull_tag_set(struct blknull_device *dev)
{
	return &dev->tags->set;
}
