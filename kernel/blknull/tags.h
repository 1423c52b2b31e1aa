/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mode mq: tag sets, and the choice of their operations.
 */
#ifndef BLKNULL_TAGS_H
#define BLKNULL_TAGS_H

#include <linux/blk-mq.h>

#include "blknull.h"

/**
 * struct blknull_tags - a tag set, of one device or shared
 * @set: the tag set
 * @submit_queues: number of queues whose requests end by themselves
 * @poll_queues: number of queues whose requests end when polled
 * @users: number of devices
 */
struct blknull_tags {
	struct blk_mq_tag_set set;
	unsigned int submit_queues;
	unsigned int poll_queues;
	unsigned int users;
};

/* mq.c */
void blknull_mq_mode(const struct blknull_config *config,
		     struct blk_mq_tag_set *set);
void blknull_mq_end(struct llist_node *node);

/* tags.c */
int blknull_tags_get(struct blknull_device *dev);
void blknull_tags_put(struct blknull_device *dev);

#endif /* BLKNULL_TAGS_H */
