// SPDX-License-Identifier: GPL-2.0
/*
 * blknull: a block device with zero latency, to measure the layers above it.
 * Loading, unloading, and the devices created by module parameters.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/list.h>
#include <linux/module.h>

#include "blknull.h"
#include "counters.h"

#define BLKNULL_MAX_DEVICES	1024

#ifdef MODULE
static unsigned int nr_devices = 1;
#else
static unsigned int nr_devices;
#endif
module_param(nr_devices, uint, 0444);
MODULE_PARM_DESC(nr_devices, "Number of devices created at load, 0 to 1024 (default 1; 0 if built in). The parameters below are lists with a value per device; the last value is used for all further devices and for those created in configfs");

/* Devices created by parameters; used at load and unload only. */
static LIST_HEAD(blknull_devices);

static void blknull_destroy_all(void)
{
	struct blknull_device *dev, *next;

	list_for_each_entry_safe(dev, next, &blknull_devices, node) {
		list_del(&dev->node);
		blknull_destroy(dev);
	}
	debugfs_remove(blknull_debugfs);
	blknull_devices_wait();
}

static int __init blknull_create_one(unsigned int number)
{
	struct blknull_config config;
	struct blknull_device *dev;
	int err;

	err = blknull_config_from_parameters(&config, number);
	if (!err)
		err = blknull_config_check(&config);
	if (err)
		return err;
	dev = blknull_create(&config, NULL);
	if (IS_ERR(dev)) {
		err = PTR_ERR(dev);
		pr_err("cannot create device %u of %u: error %d\n", number,
		       nr_devices, err);
		return err;
	}
	list_add_tail(&dev->node, &blknull_devices);
	return 0;
}

static int __init blknull_init(void)
{
	struct blknull_config further;
	unsigned int number;
	int err;

	if (nr_devices > BLKNULL_MAX_DEVICES) {
		pr_err("invalid nr_devices=%u: must be from 0 to %d\n",
		       nr_devices, BLKNULL_MAX_DEVICES);
		return -EINVAL;
	}
	err = blknull_parameters_check(nr_devices);
	if (err)
		return err;
	/* Check the values for devices created in configfs. */
	err = blknull_config_from_parameters(&further, UINT_MAX);
	if (err)
		return err;
	blknull_debugfs = debugfs_create_dir(KBUILD_MODNAME, NULL);
	for (number = 0; number < nr_devices; number++) {
		err = blknull_create_one(number);
		if (err)
			goto destroy_all;
	}
	err = blknull_configfs_init();
	if (err)
		goto destroy_all;
	return 0;

destroy_all:
	blknull_destroy_all();
	return err;
}

static void __exit blknull_exit(void)
{
	blknull_configfs_exit();
	blknull_destroy_all();
}

module_init(blknull_init);
module_exit(blknull_exit);

COMPAT_DISK_MODULE_INFO();
MODULE_DESCRIPTION("Block device with zero latency");
MODULE_LICENSE("GPL");
