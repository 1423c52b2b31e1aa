// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of a device in sysfs.
 */
#include <linux/blkdev.h>
#include <linux/device.h>
#include <linux/sysfs.h>

#include "counters.h"

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

static ssize_t blknull_counter_show(struct device *device,
				    struct device_attribute *attr, char *page)
{
	struct blknull_device *dev = dev_to_disk(device)->private_data;
	struct blknull_counter_file *file =
		container_of(attr, struct blknull_counter_file, attr);
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += *(u64 *)((char *)per_cpu_ptr(dev->counters, cpu) +
				file->offset);
	return sysfs_emit(page, "%llu\n", sum);
}

#define BLKNULL_COUNTER(_name, _field, _fault)				\
	static struct blknull_counter_file blknull_counter_##_name = {	\
		.attr	= __ATTR(_name, 0444, blknull_counter_show, NULL), \
		.offset	= offsetof(struct blknull_counters, _field),	\
		.fault	= _fault,					\
	}

BLKNULL_COUNTER(reads, ios[BLKNULL_READS], false);
BLKNULL_COUNTER(read_sectors, sectors[BLKNULL_READS], false);
BLKNULL_COUNTER(writes, ios[BLKNULL_WRITES], false);
BLKNULL_COUNTER(write_sectors, sectors[BLKNULL_WRITES], false);
BLKNULL_COUNTER(discards, ios[BLKNULL_DISCARDS], false);
BLKNULL_COUNTER(discard_sectors, sectors[BLKNULL_DISCARDS], false);
BLKNULL_COUNTER(write_zeroes, ios[BLKNULL_WRITE_ZEROES], false);
BLKNULL_COUNTER(write_zeroes_sectors, sectors[BLKNULL_WRITE_ZEROES], false);
BLKNULL_COUNTER(flushes, ios[BLKNULL_FLUSHES], false);
BLKNULL_COUNTER(others, ios[BLKNULL_OTHERS], false);
BLKNULL_COUNTER(interrupts, ios[BLKNULL_INTERRUPTS], false);
BLKNULL_COUNTER(failed, ios[BLKNULL_FAILED], true);
BLKNULL_COUNTER(delayed, ios[BLKNULL_DELAYED], true);

static struct attribute *blknull_counter_attrs[] = {
	&blknull_counter_reads.attr.attr,
	&blknull_counter_read_sectors.attr.attr,
	&blknull_counter_writes.attr.attr,
	&blknull_counter_write_sectors.attr.attr,
	&blknull_counter_discards.attr.attr,
	&blknull_counter_discard_sectors.attr.attr,
	&blknull_counter_write_zeroes.attr.attr,
	&blknull_counter_write_zeroes_sectors.attr.attr,
	&blknull_counter_flushes.attr.attr,
	&blknull_counter_others.attr.attr,
	&blknull_counter_interrupts.attr.attr,
	&blknull_counter_failed.attr.attr,
	&blknull_counter_delayed.attr.attr,
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
