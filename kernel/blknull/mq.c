// SPDX-License-Identifier: GPL-2.0
/*
 * Mode mq: requests of blk-mq. As in mode bio, the table of operations is chosen
 * for the attributes of the device.
 */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/llist.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "blknull.h"
#include "compat/mq.h"
#include "counters.h"
#include "fill.h"
#include "mq.h"
#include "zoned.h"

/**
 * struct blknull_request - driver data of a request
 * @node: entry in the list @done of its queue, or in that of another CPU
 * @timer: ends the request
 * @status: the result
 * @lost: the request is left to time out
 */
struct blknull_request {
	struct llist_node node;
	struct hrtimer timer;
	blk_status_t status;
	bool lost;
};

/**
 * struct blknull_queue - a queue that is polled
 * @done: requests that end with the next poll
 */
struct blknull_queue {
	struct llist_head done;
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
 * A request was not polled in time. If it is being polled right now, it ends
 * there.
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
	/* Reads have no queues of their own. */
	map[HCTX_TYPE_READ].nr_queues = 0;
	map[HCTX_TYPE_READ].queue_offset = 0;
	map[HCTX_TYPE_POLL].nr_queues = tags->poll_queues;
	map[HCTX_TYPE_POLL].queue_offset = tags->submit_queues;
	blk_mq_map_queues(&map[HCTX_TYPE_POLL]);
}

COMPAT_MQ_MAP_QUEUES_OP(blknull_mq_map_queues_op, blknull_mq_map_queues)

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

/*
 * Handle a request. The flags are constants: @fill reads into pages that no
 * program owns; end the request by @completion, or, if @poll is true and its
 * queue is a poll queue, when it is polled.
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

/*
 * Define name_rq() and name_rqs(), which take a request or a list of them, and
 * the table name_ops. The arguments are constants: testing the attributes of the
 * device instead takes 9 to 10 instructions more per request.
 */
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

BLKNULL_MQ_MODE(blknull_inline, false, BLKNULL_INLINE, false,
		BLKNULL_MQ_NO_POLL_OPS);
BLKNULL_MQ_MODE(blknull_inline_fill, true, BLKNULL_INLINE, false,
		BLKNULL_MQ_NO_POLL_OPS);
BLKNULL_MQ_MODE(blknull_inline_poll, false, BLKNULL_INLINE, true,
		BLKNULL_MQ_POLL_OPS);
BLKNULL_MQ_MODE(blknull_inline_fill_poll, true, BLKNULL_INLINE, true,
		BLKNULL_MQ_POLL_OPS);
BLKNULL_MQ_MODE(blknull_softirq, false, BLKNULL_SOFTIRQ, false,
		BLKNULL_MQ_NO_POLL_OPS);
BLKNULL_MQ_MODE(blknull_softirq_fill, true, BLKNULL_SOFTIRQ, false,
		BLKNULL_MQ_NO_POLL_OPS);
BLKNULL_MQ_MODE(blknull_softirq_poll, false, BLKNULL_SOFTIRQ, true,
		BLKNULL_MQ_POLL_OPS);
BLKNULL_MQ_MODE(blknull_softirq_fill_poll, true, BLKNULL_SOFTIRQ, true,
		BLKNULL_MQ_POLL_OPS);
BLKNULL_MQ_MODE(blknull_timer, false, BLKNULL_TIMER, false,
		BLKNULL_MQ_NO_POLL_OPS);
BLKNULL_MQ_MODE(blknull_timer_fill, true, BLKNULL_TIMER, false,
		BLKNULL_MQ_NO_POLL_OPS);
BLKNULL_MQ_MODE(blknull_timer_poll, false, BLKNULL_TIMER, true,
		BLKNULL_MQ_POLL_OPS);
BLKNULL_MQ_MODE(blknull_timer_fill_poll, true, BLKNULL_TIMER, true,
		BLKNULL_MQ_POLL_OPS);

/* By completion, zero_fill, and whether there are poll queues. */
static const struct blk_mq_ops *const blknull_mq_ops[3][2][2] = {
	[BLKNULL_INLINE] = {
		{ &blknull_inline_ops, &blknull_inline_poll_ops },
		{ &blknull_inline_fill_ops, &blknull_inline_fill_poll_ops },
	},
	[BLKNULL_SOFTIRQ] = {
		{ &blknull_softirq_ops, &blknull_softirq_poll_ops },
		{ &blknull_softirq_fill_ops, &blknull_softirq_fill_poll_ops },
	},
	[BLKNULL_TIMER] = {
		{ &blknull_timer_ops, &blknull_timer_poll_ops },
		{ &blknull_timer_fill_ops, &blknull_timer_fill_poll_ops },
	},
};

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

/* The generic path: tests for each feature. */

static blk_status_t blknull_features_rq(struct blk_mq_hw_ctx *hctx,
					const struct blk_mq_queue_data *bd)
{
	struct blknull_request *request = blk_mq_rq_to_pdu(bd->rq);
	struct blknull_device *dev = hctx->queue->queuedata;
	const struct blknull_config *config = &dev->config;
	struct blknull_queue *queue = hctx->driver_data;
	enum blknull_fault_action action = BLKNULL_PASS;
	struct request *rq = bd->rq;

	request->status = BLK_STS_OK;
	blk_mq_start_request(rq);
	if (config->faults)
		action = blknull_fault_action(dev, blk_rq_pos(rq),
					      blk_rq_sectors(rq));
	if (action == BLKNULL_REQUEUE) {
		blknull_count(dev, BLKNULL_REQUEUED);
		blk_mq_requeue_request(rq, true);
		return BLK_STS_OK;
	}
	if (config->stats)
		blknull_count_op(dev, req_op(rq), blk_rq_sectors(rq));
	if (action == BLKNULL_LOSE) {
		request->lost = true;
		return BLK_STS_OK;
	}
	if (action == BLKNULL_FAIL)
		request->status = blknull_fail_status(dev);
	else if (config->zoned)
		request->status = blknull_zoned_request(dev, rq);
	else if (config->memory_backed)
		request->status = blknull_data_request(dev, rq);
	if (request->status == BLK_STS_OK && config->zero_fill &&
	    !config->memory_backed)
		blknull_fill_request(rq);

	if (action == BLKNULL_DELAY) {
		blknull_count(dev, BLKNULL_DELAYED);
		hrtimer_start(&request->timer,
			      ns_to_ktime(READ_ONCE(config->delay_nsec)),
			      HRTIMER_MODE_REL);
	} else if (dev->remotes) {
		blknull_remote_end(dev, &request->node);
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
	/* The request's own timer has not expired yet. */
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

/**
 * blknull_mq_mode() - choose the operations of a tag set
 * @config: the attributes of its devices
 * @set: its ops and cmd_size are set
 */
void blknull_mq_mode(const struct blknull_config *config,
		     struct blk_mq_tag_set *set)
{
	const bool poll = config->poll_queues;

	if (!blknull_has_features(config))
		set->ops = blknull_mq_ops[config->completion]
					 [config->zero_fill][poll];
	else
		set->ops = poll ? &blknull_features_poll_mq_ops :
				  &blknull_features_mq_ops;
	set->cmd_size = sizeof(struct blknull_request);
}
