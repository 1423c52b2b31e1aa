/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Zoned disks as Linux 7.3 has them. They are supported from 6.11 on, where
 * being zoned became a limit of the queue and the block layer keeps writes in
 * order by itself. Before, COMPAT_ZONED is not defined.
 */
#ifndef IOPATH_COMPAT_ZONES_H
#define IOPATH_COMPAT_ZONES_H

#include <linux/blkdev.h>

#include "compat/version.h"

#if !COMPAT_KERNEL_BEFORE(6, 11) && IS_ENABLED(CONFIG_BLK_DEV_ZONED)
#define COMPAT_ZONED

/*
 * ->report_zones() gives each zone to disk_report_zone() since 6.19 (the series
 * that caches zones' conditions), to a function it is told before.
 * COMPAT_REPORT_ZONES_OP(op, func) defines @op, for the operations to point to,
 * around @func(disk, sector, nr_zones, report), which calls
 * compat_report_zone(report, disk, zone, index). Goes with support for 6.18.
 */
#if COMPAT_KERNEL_BEFORE(6, 19)
struct compat_report {
	report_zones_cb function;
	void *data;
};

static inline int compat_report_zone(struct compat_report *report,
				     struct gendisk *disk,
				     struct blk_zone *zone, unsigned int index)
{
	return report->function(zone, index, report->data);
}

#define COMPAT_REPORT_ZONES_OP(op, func)				\
	static int op(struct gendisk *disk, sector_t sector,		\
		      unsigned int nr_zones, report_zones_cb function,	\
		      void *data)					\
	{								\
		struct compat_report report = {				\
			.function = function, .data = data		\
		};							\
									\
		return func(disk, sector, nr_zones, &report);		\
	}
#else
#define compat_report			blk_report_zones_args

static inline int compat_report_zone(struct compat_report *report,
				     struct gendisk *disk,
				     struct blk_zone *zone, unsigned int index)
{
	return disk_report_zone(disk, zone, index, report);
}

#define COMPAT_REPORT_ZONES_OP(op, func)				\
	static int op(struct gendisk *disk, sector_t sector,		\
		      unsigned int nr_zones,				\
		      struct blk_report_zones_args *args)		\
	{								\
		return func(disk, sector, nr_zones, args);		\
	}
#endif
#endif

#endif /* IOPATH_COMPAT_ZONES_H */
