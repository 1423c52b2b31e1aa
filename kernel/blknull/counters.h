/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters of a device. They are per CPU, so counting needs no lock and shares no
 * cache line.
 */
#ifndef BLKNULL_COUNTERS_H
#define BLKNULL_COUNTERS_H

#include <linux/blk_types.h>
#include <linux/percpu.h>

#include "blknull.h"
#include "compat/bio.h"

/* Each has a file in /sys/block/blknull<index>/counters. */
enum blknull_counter {
	BLKNULL_READS,
	BLKNULL_WRITES,
	BLKNULL_DISCARDS,
	BLKNULL_WRITE_ZEROES,
	BLKNULL_WITH_SECTORS,

	BLKNULL_FLUSHES = BLKNULL_WITH_SECTORS,
	BLKNULL_OTHERS,
	BLKNULL_INTERRUPTS,
	BLKNULL_BIOS,
	BLKNULL_SEGMENTS,
	BLKNULL_OUT_OF_ORDER,
	BLKNULL_FUA,
	BLKNULL_FAILED,
	BLKNULL_DELAYED,
	BLKNULL_NR_COUNTERS
};

/* Sizes of reads and writes: up to 1, 2, 4 ... sectors, and any that is larger. */
#define BLKNULL_NR_SIZES	16

/* So many reads, writes and flushes are remembered. */
#define BLKNULL_NR_SEEN		128

/**
 * struct blknull_seen - a read, write or flush
 * @sector: the first sector
 * @sectors: their number, 0 of a flush
 * @op: operation
 */
struct blknull_seen {
	u64 sector;
	u32 sectors;
	u32 op;
};

/**
 * struct blknull_counters - the counters of one CPU
 * @ios: number of I/Os
 * @sectors: number of 512-byte sectors, for operations that have any
 * @sizes: number of reads and writes by size
 * @next: the sector behind the last read or write
 * @nr_seen: number of reads, writes and flushes
 * @seen: the last of them, in a ring
 */
struct blknull_counters {
	u64 ios[BLKNULL_NR_COUNTERS];
	u64 sectors[BLKNULL_WITH_SECTORS];
	u64 sizes[BLKNULL_NR_SIZES];
	u64 next;
	u64 nr_seen;
	struct blknull_seen seen[BLKNULL_NR_SEEN];
};

/* Count an I/O without sectors. */
static inline void blknull_count(struct blknull_device *dev,
				 enum blknull_counter counter)
{
	this_cpu_inc(dev->counters->ios[counter]);
}

/* Count an I/O by its operation. */
static inline void blknull_count_op(struct blknull_device *dev,
				    blk_opf_t op, unsigned int sectors)
{
	enum blknull_counter counter;

	switch (op) {
	case REQ_OP_READ:
		counter = BLKNULL_READS;
		break;
	case REQ_OP_WRITE:
		counter = BLKNULL_WRITES;
		break;
	case REQ_OP_DISCARD:
		counter = BLKNULL_DISCARDS;
		break;
	case REQ_OP_WRITE_ZEROES:
		counter = BLKNULL_WRITE_ZEROES;
		break;
	case REQ_OP_FLUSH:
		blknull_count(dev, BLKNULL_FLUSHES);
		return;
	default:
		blknull_count(dev, BLKNULL_OTHERS);
		return;
	}
	this_cpu_inc(dev->counters->ios[counter]);
	this_cpu_add(dev->counters->sectors[counter], sectors);
}

void blknull_count_shape(struct blknull_device *dev, blk_opf_t op,
			 sector_t sector, unsigned int sectors,
			 unsigned int bios, unsigned int segments);
void blknull_seen_publish(struct blknull_device *dev);

extern const struct attribute_group *blknull_counter_groups[];
extern struct dentry *blknull_debugfs;

#endif /* BLKNULL_COUNTERS_H */
