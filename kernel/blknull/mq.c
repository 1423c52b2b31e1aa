// SPDX-License-Identifier: GPL-2.0
/*
 * Mode mq: requests of blk-mq. A device has one of two paths: that for the
 * default of completion and zero_fill has no code for anything else, the generic
 * one tests the attributes.
 */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/llist.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "blknull.h"
#include "compat/lib.h"
#include "compat/mq.h"
#include "counters.h"
#include "fill.h"

/**
 * struct blknull_request - driver data of a request
 * @node: entry in the list of its queue, or in that of another CPU
 * @timer: ends the request
 * @status: the result
 */
struct blknull_request {
	struct llist_node node;
	struct hrtimer timer;
	blk_status_t status;
};

/* Completion of requests. */

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
	struct llist_node *done = llist_del_all(hctx->driver_data);
	struct blknull_request *request, *next;
	int nr = 0;

	llist_for_each_entry_safe(request, next, done, node) {
		struct request *rq = blk_mq_rq_from_pdu(request);

		if (request->status || !compat_add_to_batch(rq, iob))
			blk_mq_end_request(rq, request->status);
		nr++;
	}
	return nr;
}

COMPAT_MQ_POLL_OP(blknull_mq_poll_op, blknull_mq_poll)

static enum blk_eh_timer_return blknull_mq_timeout(COMPAT_MQ_TIMEOUT_ARGS)
{
	if (rq->mq_hctx->type == HCTX_TYPE_POLL) {
		/* It was not polled in time. */
		blknull_mq_poll(rq->mq_hctx, NULL);
		if (!blk_mq_request_started(rq))
			return BLK_EH_DONE;
	}
	/* It is still being handled, or polled, or its timer has not expired. */
	return BLK_EH_RESET_TIMER;
}

/* A queue that is polled has a list of requests that end with the next poll. */
static int blknull_mq_init_hctx(struct blk_mq_hw_ctx *hctx, void *data,
				unsigned int index)
{
	struct llist_head *done;

	done = kzalloc_node(sizeof(*done), GFP_KERNEL, hctx->numa_node);
	hctx->driver_data = done;
	return done ? 0 : -ENOMEM;
}

static void blknull_mq_exit_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	kfree(hctx->driver_data);
	hctx->driver_data = NULL;
}

static compat_map_queues_t blknull_mq_map_queues(struct blk_mq_tag_set *set)
{
	const struct blknull_config *config = set->driver_data;
	struct blk_mq_queue_map *map = set->map;

	map[HCTX_TYPE_DEFAULT].nr_queues = config->submit_queues;
	map[HCTX_TYPE_DEFAULT].queue_offset = 0;
	blk_mq_map_queues(&map[HCTX_TYPE_DEFAULT]);
	if (config->poll_queues) {
		/* Reads have no queues of their own. */
		map[HCTX_TYPE_READ].nr_queues = 0;
		map[HCTX_TYPE_READ].queue_offset = 0;
		map[HCTX_TYPE_POLL].nr_queues = config->poll_queues;
		map[HCTX_TYPE_POLL].queue_offset = config->submit_queues;
		blk_mq_map_queues(&map[HCTX_TYPE_POLL]);
	}
	return COMPAT_MAP_QUEUES_DONE;
}

/* Submission of requests. */

/* Out of line, so that other requests need no stack frame. */
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

	/* Only operations with even numbers bring data in. */
	if (op_is_write(rq->cmd_flags))
		return;
	__rq_for_each_bio(bio, rq) {
		if (unlikely(!blknull_read_no_fill(bio))) {
			blknull_fill_bios(rq);
			return;
		}
	}
}

/* A request of a device whose completion and zero_fill are the defaults. */
static __always_inline void
blknull_default_handle(struct blk_mq_hw_ctx *hctx, struct request *rq)
{
	blk_mq_start_request(rq);
	blknull_fill_request(rq);
	if (hctx->type == HCTX_TYPE_POLL) {
		struct blknull_request *request = blk_mq_rq_to_pdu(rq);

		llist_add(&request->node, hctx->driver_data);
	} else {
		blk_mq_end_request(rq, BLK_STS_OK);
	}
}

static blk_status_t blknull_default_rq(struct blk_mq_hw_ctx *hctx,
				       const struct blk_mq_queue_data *bd)
{
	blknull_default_handle(hctx, bd->rq);
	return BLK_STS_OK;
}

static __always_inline void blknull_default_one(struct request *rq)
{
	blknull_default_handle(rq->mq_hctx, rq);
}

COMPAT_MQ_QUEUE_RQS_OP(blknull_default_rqs, blknull_default_one)

/**
 * blknull_mq_end() - end a request as attribute completion says
 * @node: its node
 *
 * Context: Any.
 */
void blknull_mq_end(struct llist_node *node)
{
	struct blknull_request *request =
		container_of(node, struct blknull_request, node);
	struct request *rq = blk_mq_rq_from_pdu(request);
	struct blknull_device *dev = rq->q->queuedata;

	if (dev->config.completion == BLKNULL_SOFTIRQ)
		blk_mq_complete_request(rq);
	else
		blk_mq_end_request(rq, request->status);
}

static noinline blk_status_t blknull_mq_data(struct blknull_device *dev,
					     struct request *rq)
{
	blk_status_t status = BLK_STS_OK;
	struct bio *bio;

	__rq_for_each_bio(bio, rq) {
		status = blknull_data_bio(dev, bio);
		if (status)
			break;
	}
	return status;
}

static void blknull_count_rq(struct blknull_device *dev, struct request *rq)
{
	unsigned int bios = 0;
	struct bio *bio;

	__rq_for_each_bio(bio, rq)
		bios++;
	blknull_count_op(dev, req_op(rq), blk_rq_sectors(rq));
	blknull_count_shape(dev, rq->cmd_flags, blk_rq_pos(rq),
			    blk_rq_sectors(rq), bios,
			    blk_rq_nr_phys_segments(rq));
}

/*
 * Apply the features of a device. Return: false if the request ends by other
 * means than attribute completion.
 */
static noinline bool blknull_features_handle(struct blknull_device *dev,
					     struct request *rq)
{
	struct blknull_request *request = blk_mq_rq_to_pdu(rq);
	const struct blknull_config *config = &dev->config;
	enum blknull_fault_action action = BLKNULL_PASS;

	request->status = BLK_STS_OK;
	if (config->faults)
		action = blknull_fault_action(dev, blk_rq_pos(rq),
					      blk_rq_sectors(rq));
	if (config->stats)
		blknull_count_rq(dev, rq);
	if (action == BLKNULL_FAIL)
		request->status = blknull_fail_status(dev);
	else if (config->memory_backed)
		request->status = blknull_mq_data(dev, rq);
	if (request->status == BLK_STS_OK && config->zero_fill &&
	    !config->memory_backed)
		blknull_fill_request(rq);

	if (action == BLKNULL_DELAY) {
		blknull_count(dev, BLKNULL_DELAYED);
		hrtimer_start(&request->timer,
			      ns_to_ktime(READ_ONCE(config->delay_nsec)),
			      HRTIMER_MODE_REL);
		return false;
	}
	if (dev->remotes) {
		blknull_remote_end(dev, &request->node);
		return false;
	}
	return true;
}

/* A request of any device: tests the attributes. */
static __always_inline void
blknull_generic_handle(struct blk_mq_hw_ctx *hctx, struct request *rq)
{
	struct blknull_request *request = blk_mq_rq_to_pdu(rq);
	struct blknull_device *dev = hctx->queue->queuedata;
	const struct blknull_config *config = &dev->config;
	struct llist_head *polled = hctx->driver_data;

	blk_mq_start_request(rq);
	if (dev->features) {
		if (!blknull_features_handle(dev, rq))
			return;
	} else if (config->zero_fill) {
		blknull_fill_request(rq);
	}
	if (hctx->type == HCTX_TYPE_POLL)
		llist_add(&request->node, polled);
	else if (config->completion == BLKNULL_TIMER)
		hrtimer_start(&request->timer,
			      ns_to_ktime(config->completion_nsec),
			      HRTIMER_MODE_REL);
	else if (config->completion == BLKNULL_SOFTIRQ)
		blk_mq_complete_request(rq);
	else
		blk_mq_end_request(rq, request->status);
}

static blk_status_t blknull_generic_rq(struct blk_mq_hw_ctx *hctx,
				       const struct blk_mq_queue_data *bd)
{
	blknull_generic_handle(hctx, bd->rq);
	return BLK_STS_OK;
}

static __always_inline void blknull_generic_one(struct request *rq)
{
	blknull_generic_handle(rq->mq_hctx, rq);
}

COMPAT_MQ_QUEUE_RQS_OP(blknull_generic_rqs, blknull_generic_one)

/* Tables of operations. */

#define BLKNULL_MQ_OPS							\
	.complete	= blknull_mq_complete,				\
	.timeout	= blknull_mq_timeout,				\
	.poll		= blknull_mq_poll_op,				\
	.map_queues	= blknull_mq_map_queues,				\
	.init_hctx	= blknull_mq_init_hctx,				\
	.exit_hctx	= blknull_mq_exit_hctx,				\
	.init_request	= blknull_mq_init_request

static const struct blk_mq_ops blknull_default_ops = {
	.queue_rq	= blknull_default_rq,
	COMPAT_MQ_QUEUE_RQS(blknull_default_rqs)
	BLKNULL_MQ_OPS
};

static const struct blk_mq_ops blknull_generic_ops = {
	.queue_rq	= blknull_generic_rq,
	COMPAT_MQ_QUEUE_RQS(blknull_generic_rqs)
	BLKNULL_MQ_OPS
};

/* With features, requests are queued one by one, as by most drivers. */
static const struct blk_mq_ops blknull_features_ops = {
	.queue_rq	= blknull_generic_rq,
	BLKNULL_MQ_OPS
};

/**
 * blknull_mq_alloc_tags() - allocate the tag set of a device
 * @dev: the device; its @tags are filled in
 *
 * Context: Process context, may sleep.
 * Return: 0 or an error.
 */
int blknull_mq_alloc_tags(struct blknull_device *dev)
{
	struct blknull_config *config = &dev->config;
	struct blk_mq_tag_set *set = &dev->tags;

	if (dev->features)
		set->ops = &blknull_features_ops;
	else if (config->completion == BLKNULL_INLINE && config->zero_fill)
		set->ops = &blknull_default_ops;
	else
		set->ops = &blknull_generic_ops;
	set->nr_hw_queues = config->submit_queues + config->poll_queues;
	set->nr_maps = config->poll_queues ? HCTX_MAX_TYPES : 1;
	set->queue_depth = config->hw_queue_depth;
	set->numa_node = config->home_node;
	set->cmd_size = sizeof(struct blknull_request);
	set->flags = COMPAT_BLK_MQ_F_SHOULD_MERGE |
		     COMPAT_BLK_MQ_F_NO_SCHED_BY_DEFAULT;
	/* Allocating memory for a block may sleep. */
	if (config->memory_backed)
		set->flags |= BLK_MQ_F_BLOCKING;
	set->driver_data = config;
	return blk_mq_alloc_tag_set(set);
}
