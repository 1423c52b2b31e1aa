// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of a device in sysfs, and its last I/Os in debugfs.
 */
#include <linux/blkdev.h>
#include <linux/debugfs.h>
#include <linux/device.h>
#include <linux/log2.h>
#include <linux/seq_file.h>
#include <linux/sysfs.h>

#include "counters.h"

struct dentry *blknull_debugfs;

/**
 * struct blknull_counter_file - a counter's file
 * @attr: attribute of the disk
 * @offset: offset of the counter in struct blknull_counters
 * @fault: counts injected faults: present if faults=1, otherwise if stats=1
 */
struct blknull_counter_file {
	struct device_attribute attr;
	size_t offset;
	bool fault;
};

static void blknull_note(struct blknull_device *dev, blk_opf_t op,
			 sector_t sector, unsigned int sectors)
{
	struct blknull_counters *counters = get_cpu_ptr(dev->counters);

	counters->seen[counters->nr_seen++ % BLKNULL_NR_SEEN] =
		(struct blknull_seen){ sector, sectors,
				       (__force u32)(op & REQ_OP_MASK) };
	put_cpu_ptr(dev->counters);
}

/**
 * blknull_count_shape() - count what a read or write consists of
 * @dev: the device
 * @op: operation and flags
 * @sector: the first sector
 * @sectors: their number; if 0, it is a flush, or there is nothing to count
 * @bios: bios in it, more than one if they were merged
 * @segments: contiguous pieces of memory
 *
 * It is out of order if it begins before the end of the one that the same CPU was
 * given last.
 *
 * Context: Any. An interrupt in between may make one I/O seem out of order.
 */
void blknull_count_shape(struct blknull_device *dev, blk_opf_t op,
			 sector_t sector, unsigned int sectors,
			 unsigned int bios, unsigned int segments)
{
	struct blknull_counters __percpu *counters = dev->counters;
	const blk_opf_t kind = op & REQ_OP_MASK;
	unsigned int size;

	if (op_is_flush(op) && !sectors) {
		blknull_note(dev, REQ_OP_FLUSH, 0, 0);
		return;
	}
	if (!sectors || (kind != REQ_OP_READ && kind != REQ_OP_WRITE))
		return;
	blknull_note(dev, op, sector, sectors);
	size = min_t(unsigned int, order_base_2(sectors), BLKNULL_NR_SIZES - 1);
	this_cpu_inc(counters->sizes[size]);
	this_cpu_add(counters->ios[BLKNULL_BIOS], bios);
	this_cpu_add(counters->ios[BLKNULL_SEGMENTS], segments);
	if (op & REQ_FUA)
		this_cpu_inc(counters->ios[BLKNULL_FUA]);
	if (sector < this_cpu_read(counters->next))
		this_cpu_inc(counters->ios[BLKNULL_OUT_OF_ORDER]);
	this_cpu_write(counters->next, sector + sectors);
}

static u64 blknull_counter_sum(struct blknull_device *dev, size_t offset)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += *(u64 *)((char *)per_cpu_ptr(dev->counters, cpu) +
				offset);
	return sum;
}

static ssize_t blknull_sizes_show(struct device *device,
				  struct device_attribute *attr, char *page)
{
	struct blknull_device *dev = dev_to_disk(device)->private_data;
	ssize_t len = 0;
	size_t offset;
	int i;

	for (i = 0; i < BLKNULL_NR_SIZES; i++) {
		offset = offsetof(struct blknull_counters, sizes[i]);
		len += sysfs_emit_at(page, len, "%s%llu", i ? " " : "",
				     blknull_counter_sum(dev, offset));
	}
	return len + sysfs_emit_at(page, len, "\n");
}

/* A line each, the oldest first, CPU by CPU. */
static int blknull_seen_show(struct seq_file *file, void *unused)
{
	struct blknull_device *dev = file->private;
	struct blknull_counters *counters;
	struct blknull_seen *seen;
	u64 at, end;
	int cpu;

	for_each_possible_cpu(cpu) {
		counters = per_cpu_ptr(dev->counters, cpu);
		end = counters->nr_seen;
		at = end > BLKNULL_NR_SEEN ? end - BLKNULL_NR_SEEN : 0;
		for (; at < end; at++) {
			seen = &counters->seen[at % BLKNULL_NR_SEEN];
			seq_printf(file, "%c %llu %u\n", "RWF"[seen->op],
				   seen->sector, seen->sectors);
		}
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(blknull_seen);

/* Show the last I/Os of a published device; the file has the name of its disk. */
void blknull_seen_publish(struct blknull_device *dev)
{
	dev->seen = debugfs_create_file(dev->disk->disk_name, 0400,
					blknull_debugfs, dev, &blknull_seen_fops);
}

static ssize_t blknull_counter_show(struct device *device,
				    struct device_attribute *attr, char *page)
{
	struct blknull_device *dev = dev_to_disk(device)->private_data;
	struct blknull_counter_file *file =
		container_of(attr, struct blknull_counter_file, attr);

	return sysfs_emit(page, "%llu\n", blknull_counter_sum(dev, file->offset));
}

#define BLKNULL_COUNTER_FILE(_name, _show, ...)				\
	(&((struct blknull_counter_file) {				\
		.attr	= __ATTR(_name, 0444, _show, NULL), __VA_ARGS__	\
	}).attr.attr)

#define BLKNULL_COUNTER(_name, _field, _fault)				\
	BLKNULL_COUNTER_FILE(_name, blknull_counter_show,		\
			     .offset = offsetof(struct blknull_counters, _field), \
			     .fault = _fault)

static struct attribute *blknull_counter_attrs[] = {
	BLKNULL_COUNTER(reads, ios[BLKNULL_READS], false),
	BLKNULL_COUNTER(read_sectors, sectors[BLKNULL_READS], false),
	BLKNULL_COUNTER(writes, ios[BLKNULL_WRITES], false),
	BLKNULL_COUNTER(write_sectors, sectors[BLKNULL_WRITES], false),
	BLKNULL_COUNTER(discards, ios[BLKNULL_DISCARDS], false),
	BLKNULL_COUNTER(discard_sectors, sectors[BLKNULL_DISCARDS], false),
	BLKNULL_COUNTER(write_zeroes, ios[BLKNULL_WRITE_ZEROES], false),
	BLKNULL_COUNTER(write_zeroes_sectors, sectors[BLKNULL_WRITE_ZEROES], false),
	BLKNULL_COUNTER(flushes, ios[BLKNULL_FLUSHES], false),
	BLKNULL_COUNTER(others, ios[BLKNULL_OTHERS], false),
	BLKNULL_COUNTER(interrupts, ios[BLKNULL_INTERRUPTS], false),
	BLKNULL_COUNTER(bios, ios[BLKNULL_BIOS], false),
	BLKNULL_COUNTER(segments, ios[BLKNULL_SEGMENTS], false),
	BLKNULL_COUNTER(out_of_order, ios[BLKNULL_OUT_OF_ORDER], false),
	BLKNULL_COUNTER(fua, ios[BLKNULL_FUA], false),
	BLKNULL_COUNTER_FILE(sizes, blknull_sizes_show),
	BLKNULL_COUNTER(failed, ios[BLKNULL_FAILED], true),
	BLKNULL_COUNTER(delayed, ios[BLKNULL_DELAYED], true),
	NULL,
};

/* Hide counters that the device does not use. */
static umode_t blknull_counter_visible(struct kobject *kobj,
				       struct attribute *attr, int n)
{
	struct blknull_device *dev =
		dev_to_disk(kobj_to_dev(kobj))->private_data;
	struct blknull_counter_file *file =
		container_of(attr, struct blknull_counter_file, attr.attr);

	if (file->fault ? dev->config.faults : dev->config.stats)
		return attr->mode;
	return 0;
}

static const struct attribute_group blknull_counter_group = {
	.name		= "counters",
	.attrs		= blknull_counter_attrs,
	.is_visible	= blknull_counter_visible,
};

/* Attribute groups of a disk with counters. */
const struct attribute_group *blknull_counter_groups[] = {
	&blknull_counter_group,
	NULL,
};
