// SPDX-License-Identifier: GPL-2.0
/*
 * blknull: a block device with zero latency, to measure what is above it.
 * Parameters, loading and unloading.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/list.h>
#include <linux/log2.h>
#include <linux/module.h>

#include "blknull.h"
#include "disk.h"

#define BLKNULL_MAX_DEVICES	1024
/* A device ends where a file offset does. */
#define BLKNULL_MAX_SIZE_MB	(LLONG_MAX >> 20)

static unsigned int nr_devices = 1;
module_param(nr_devices, uint, 0444);
MODULE_PARM_DESC(nr_devices, "Number of devices, 1 to 1024 (default 1)");

static unsigned long size_mb = 1024;
module_param(size_mb, ulong, 0444);
MODULE_PARM_DESC(size_mb, "Size of a device in MiB, at least 1 (default 1024)");

/* The kernel has a block_size() of its own. */
static unsigned int logical_block_size = 512;
module_param_named(block_size, logical_block_size, uint, 0444);
MODULE_PARM_DESC(block_size, "Logical block size in bytes, a power of 2 from 512 to the page size (default 512)");

static unsigned int max_sectors;
module_param(max_sectors, uint, 0444);
MODULE_PARM_DESC(max_sectors, "Largest I/O in 512-byte sectors, at least a page; larger ones are split (default 0: no limit, nothing is split)");

static bool rotational;
module_param(rotational, bool, 0444);
MODULE_PARM_DESC(rotational, "Claim to be a rotating disk (default N)");

static bool discard;
module_param(discard, bool, 0444);
MODULE_PARM_DESC(discard, "Accept discards (default N)");

static bool read_only;
module_param(read_only, bool, 0444);
MODULE_PARM_DESC(read_only, "Refuse writes (default N)");

static bool zero_fill[BLKNULL_MAX_DEVICES];
static unsigned int nr_zero_fill;
module_param_array(zero_fill, bool, &nr_zero_fill, 0444);
MODULE_PARM_DESC(zero_fill, "Fill reads with zeroes, but for direct reads into a program's own memory (default Y); N hands out what was in the pages: only for measuring inside the kernel. One value for each device; the last is that of all further ones");

/* The devices made by the parameters; touched at load and unload only. */
static LIST_HEAD(blknull_devices);

static int __init blknull_check_parameters(void)
{
	if (nr_devices < 1 || nr_devices > BLKNULL_MAX_DEVICES) {
		pr_err("nr_devices=%u is not in the range 1 to %d\n",
		       nr_devices, BLKNULL_MAX_DEVICES);
		return -EINVAL;
	}
	if (size_mb < 1 || size_mb > BLKNULL_MAX_SIZE_MB) {
		pr_err("size_mb=%lu is not in the range 1 to %lld\n",
		       size_mb, BLKNULL_MAX_SIZE_MB);
		return -EINVAL;
	}
	if (logical_block_size < SECTOR_SIZE ||
	    logical_block_size > PAGE_SIZE ||
	    !is_power_of_2(logical_block_size)) {
		pr_err("block_size=%u is not a power of 2 in the range %d to %lu\n",
		       logical_block_size, SECTOR_SIZE, PAGE_SIZE);
		return -EINVAL;
	}
	if (max_sectors && max_sectors < PAGE_SIZE >> SECTOR_SHIFT) {
		pr_err("max_sectors=%u is neither 0 nor in the range %lu to %u\n",
		       max_sectors, PAGE_SIZE >> SECTOR_SHIFT, UINT_MAX);
		return -EINVAL;
	}
	return 0;
}

static bool blknull_zero_fill(unsigned int index)
{
	return !nr_zero_fill || zero_fill[min(index, nr_zero_fill - 1)];
}

static void blknull_destroy_all(void)
{
	struct blknull_device *dev, *next;

	list_for_each_entry_safe(dev, next, &blknull_devices, node) {
		list_del(&dev->node);
		blknull_destroy(dev);
	}
}

static int __init blknull_init(void)
{
	struct blknull_config config = {
		.size_mb	= size_mb,
		.block_size	= logical_block_size,
		.max_sectors	= max_sectors,
		.rotational	= rotational,
		.discard	= discard,
		.read_only	= read_only,
	};
	struct blknull_device *dev;
	int err;

	err = blknull_check_parameters();
	if (err)
		return err;

	for (; config.index < nr_devices; config.index++) {
		config.zero_fill = blknull_zero_fill(config.index);
		dev = blknull_create(&config);
		if (IS_ERR(dev)) {
			err = PTR_ERR(dev);
			pr_err("cannot make device %u of %u: error %d\n",
			       config.index, nr_devices, err);
			goto destroy_all;
		}
		list_add_tail(&dev->node, &blknull_devices);
	}
	return 0;

destroy_all:
	blknull_destroy_all();
	return err;
}

static void __exit blknull_exit(void)
{
	blknull_destroy_all();
}

module_init(blknull_init);
module_exit(blknull_exit);

COMPAT_DISK_MODULE_INFO();
MODULE_DESCRIPTION("Block device with zero latency");
MODULE_LICENSE("GPL");
