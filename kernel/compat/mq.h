/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface of blk-mq as of Linux 7.3. A driver's functions are inlined into
 * the shims.
 */
#ifndef IOPATH_COMPAT_MQ_H
#define IOPATH_COMPAT_MQ_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>

#include "compat/version.h"

/*
 * Requests are always merged since 6.14 (9377b95cda73 "block: remove
 * BLK_MQ_F_SHOULD_MERGE"). Goes with support for 6.13.
 */
#if COMPAT_KERNEL_BEFORE(6, 14)
#define COMPAT_BLK_MQ_F_SHOULD_MERGE	BLK_MQ_F_SHOULD_MERGE
#else
#define COMPAT_BLK_MQ_F_SHOULD_MERGE	0
#endif

/*
 * A driver can choose no scheduler as the default since 5.15
 * (90b7198001f2 "blk-mq: Introduce the BLK_MQ_F_NO_SCHED_BY_DEFAULT flag");
 * before, it could only forbid schedulers. Goes with support for 5.14.
 */
#if COMPAT_KERNEL_BEFORE(5, 15)
#define COMPAT_BLK_MQ_F_NO_SCHED_BY_DEFAULT	BLK_MQ_F_NO_SCHED
#define COMPAT_SHIM_NO_SCHED		"no_sched "
#else
#define COMPAT_BLK_MQ_F_NO_SCHED_BY_DEFAULT	BLK_MQ_F_NO_SCHED_BY_DEFAULT
#define COMPAT_SHIM_NO_SCHED		""
#endif

/*
 * ->timeout() lost its second argument in 6.0 (9bdb4833dd39 "blk-mq: Drop
 * blk_mq_ops.timeout 'reserved' arg"). COMPAT_MQ_TIMEOUT_ARGS has the request @rq.
 * Goes with support for 5.19.
 */
#if COMPAT_KERNEL_BEFORE(6, 0)
#define COMPAT_MQ_TIMEOUT_ARGS	struct request *rq, bool reserved
#else
#define COMPAT_MQ_TIMEOUT_ARGS	struct request *rq
#endif

/*
 * The NUMA node of ->init_request() can be none, so it is signed, since 7.2.
 * Goes with support for 7.1.
 */
#if COMPAT_KERNEL_BEFORE(7, 2)
#define compat_node_t			unsigned int
#else
#define compat_node_t			int
#endif

/*
 * ->map_queues() returns nothing since 6.1 (a4e1d0b76e7b "block: Change the
 * return type of blk_mq_map_queues() into void"), 0 before. It is a
 * compat_map_queues_t that ends by "return COMPAT_MAP_QUEUES_DONE;".
 * Goes with support for 6.0.
 */
#if COMPAT_KERNEL_BEFORE(6, 1)
#define compat_map_queues_t		int
#define COMPAT_MAP_QUEUES_DONE		0
#else
#define compat_map_queues_t		void
#define COMPAT_MAP_QUEUES_DONE
#endif

/*
 * ->poll() can collect what it ends since 5.16 (5a72e899ceb4 "block: add a
 * struct io_comp_batch argument to fops->iopoll()", f794f3351f26 "block: add
 * support for blk_mq_end_request_batch()"). Goes with support for 5.15.
 */
#if COMPAT_KERNEL_BEFORE(5, 16)
struct io_comp_batch;

#define COMPAT_SHIM_MQ_POLL		"poll_without_batch "
#define COMPAT_MQ_POLL_OP(op, func)					\
	static int op(struct blk_mq_hw_ctx *hctx)			\
	{								\
		return func(hctx, NULL);				\
	}
#else
#define COMPAT_SHIM_MQ_POLL		""
#define COMPAT_MQ_POLL_OP(op, func)					\
	static int op(struct blk_mq_hw_ctx *hctx, struct io_comp_batch *iob) \
	{								\
		return func(hctx, iob);					\
	}
#endif

static inline bool compat_add_to_batch(struct request *rq,
				       struct io_comp_batch *iob)
{
#if COMPAT_KERNEL_BEFORE(5, 16)
	return false;
#else
	return blk_mq_add_to_batch(rq, iob, false, blk_mq_end_request_batch);
#endif
}

/*
 * A plug's requests can be queued all at once since 5.17 (3c67d44de787 "block:
 * add mq_ops->queue_rqs hook"). They come in a struct rq_list since 6.13
 * (a3396b99990d "block: add a rq_list type"), which was taken over into stable
 * versions of 6.12 and is told from rq_list_pop() no longer being a macro; by a
 * pointer before. COMPAT_MQ_QUEUE_RQS_OP(op, func) defines @op, which calls
 * @func for each request; COMPAT_MQ_QUEUE_RQS(op) is the initialiser.
 * Goes with support for 5.16 and 6.12.
 */
#if COMPAT_KERNEL_BEFORE(5, 17)
#define COMPAT_MQ_QUEUE_RQS_OP(op, func)
#define COMPAT_MQ_QUEUE_RQS(op)
#define COMPAT_SHIM_QUEUE_RQS		"no_queue_rqs "
#else
#ifdef rq_list_pop
#define compat_rq_list			request *
#else
#define compat_rq_list			rq_list
#endif
#define COMPAT_MQ_QUEUE_RQS_OP(op, func)				\
	static void op(struct compat_rq_list *list)			\
	{								\
		struct request *rq;					\
									\
		while ((rq = rq_list_pop(list)))			\
			func(rq);					\
	}
#define COMPAT_MQ_QUEUE_RQS(op)		.queue_rqs	= op,
#define COMPAT_SHIM_QUEUE_RQS		""
#endif

#endif /* IOPATH_COMPAT_MQ_H */
