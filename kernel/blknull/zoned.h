/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Zoned devices. Without support by the kernel, blknull_zoned_check() refuses
 * zoned=1, and the functions below it are never called.
 */
#ifndef BLKNULL_ZONED_H
#define BLKNULL_ZONED_H

#include "blknull.h"
#include "compat/zones.h"

int blknull_zoned_check(const struct blknull_config *config);

#ifdef COMPAT_ZONED
static inline bool blknull_zoned_supported(void)
{
	return true;
}

const struct block_device_operations *blknull_zoned_mode(void);
int blknull_zones_create(struct blknull_device *dev);
void blknull_zones_limits(struct blknull_device *dev, struct queue_limits *lim);
int blknull_zones_publish(struct blknull_device *dev);
blk_status_t blknull_zoned_request(struct blknull_device *dev,
				   struct request *rq);
#else
static inline bool blknull_zoned_supported(void)
{
	return false;
}

static inline const struct block_device_operations *blknull_zoned_mode(void)
{
	return NULL;
}

static inline int blknull_zones_create(struct blknull_device *dev)
{
	return -EOPNOTSUPP;
}

static inline void blknull_zones_limits(struct blknull_device *dev,
					struct queue_limits *lim)
{
}

static inline int blknull_zones_publish(struct blknull_device *dev)
{
	return -EOPNOTSUPP;
}

static inline blk_status_t blknull_zoned_request(struct blknull_device *dev,
						 struct request *rq)
{
	return BLK_STS_NOTSUPP;
}
#endif

#endif /* BLKNULL_ZONED_H */
