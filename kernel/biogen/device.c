// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a device: bind it to its block device, publish /dev/biogenN,
 * withdraw it. The lock of the module's parameters is held.
 */
#include <linux/idr.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "biogen.h"
#include "compat/file.h"
#include "io.h"
#include "target.h"

#define BIOGEN_MAX_DEVICES	256

static dev_t biogen_devt;
static struct class *biogen_class;
static DEFINE_IDA(biogen_ida);
static LIST_HEAD(biogen_devices);	/* those that are published */

/* The node is gone and the last file is closed. */
static void biogen_release_device(struct device *dev)
{
	struct biogen_device *bg = container_of(dev, struct biogen_device, dev);

	biogen_idle_destroy(bg);
	biogen_target_close(&bg->target);
	ida_free(&biogen_ida, MINOR(dev->devt));
	kfree(bg);
}

/**
 * biogen_create() - bind a new device to a block device, and publish /dev/biogenN
 * @path: path of the block device
 * @write: allow writes
 * @coherent: keep coherent with the page cache
 *
 * Context: Process context, may sleep.
 * Return: 0 or an error; then it was not published.
 */
int biogen_create(const char *path, bool write, bool coherent)
{
	static const unsigned long no_pages;
	struct biogen_device *bg;
	int err, minor;

	bg = kzalloc(sizeof(*bg), GFP_KERNEL);
	if (!bg)
		return -ENOMEM;
	bg->coherent = coherent;

	minor = ida_alloc_max(&biogen_ida, BIOGEN_MAX_DEVICES - 1, GFP_KERNEL);
	if (minor < 0) {
		err = minor;
		goto free_bg;
	}
	err = biogen_target_open(&bg->target, path, write);
	if (err)
		goto free_minor;
	bg->nr_cached = coherent ? &bg->target.mapping->nrpages : &no_pages;
	bg->idle = alloc_percpu(struct biogen_idle);
	if (!bg->idle) {
		err = -ENOMEM;
		goto close_target;
	}

	device_initialize(&bg->dev);
	bg->dev.class = biogen_class;
	bg->dev.devt = MKDEV(MAJOR(biogen_devt), minor);
	bg->dev.release = biogen_release_device;
	cdev_init(&bg->cdev, biogen_fops(bg));
	bg->cdev.owner = THIS_MODULE;
	/* From here on, biogen_release_device() frees everything. */
	err = dev_set_name(&bg->dev, "biogen%d", minor) ?:
	      cdev_device_add(&bg->cdev, &bg->dev);
	if (err) {
		put_device(&bg->dev);
		return err;
	}
	list_add_tail(&bg->list, &biogen_devices);
	return 0;

close_target:
	biogen_target_close(&bg->target);
free_minor:
	ida_free(&biogen_ida, minor);
free_bg:
	kfree(bg);
	return err;
}

/* Withdraw a device. Open files keep it and its block device. */
static void biogen_destroy(struct biogen_device *bg)
{
	list_del(&bg->list);
	cdev_device_del(&bg->cdev, &bg->dev);
	put_device(&bg->dev);
}

/**
 * biogen_remove() - withdraw a device
 * @name: of its node, without the folder
 *
 * Context: Process context, may sleep.
 * Return: 0, or -ENODEV if there is none.
 */
int biogen_remove(const char *name)
{
	struct biogen_device *bg;

	list_for_each_entry(bg, &biogen_devices, list) {
		if (!strcmp(dev_name(&bg->dev), name)) {
			biogen_destroy(bg);
			return 0;
		}
	}
	return -ENODEV;
}

/**
 * biogen_devices_show() - list the devices
 * @page: the list: a line for each, "biogenN", and the name of its block device
 * @kp: the parameter; not used
 *
 * Return: the length of the list.
 */
int biogen_devices_show(char *page, const struct kernel_param *kp)
{
	struct biogen_device *bg;
	int len = 0;

	list_for_each_entry(bg, &biogen_devices, list)
		len += sysfs_emit_at(page, len, "%s %pg\n", dev_name(&bg->dev),
				     bg->target.bdev);
	return len;
}

/**
 * biogen_devices_init() - reserve device numbers and create the class
 *
 * Return: 0 or an error.
 */
int biogen_devices_init(void)
{
	int err;

	err = alloc_chrdev_region(&biogen_devt, 0, BIOGEN_MAX_DEVICES,
				  KBUILD_MODNAME);
	if (err)
		return err;
	biogen_class = compat_class_create(KBUILD_MODNAME);
	if (IS_ERR(biogen_class)) {
		unregister_chrdev_region(biogen_devt, BIOGEN_MAX_DEVICES);
		return PTR_ERR(biogen_class);
	}
	return 0;
}

/**
 * biogen_devices_exit() - withdraw all devices, and undo biogen_devices_init()
 */
void biogen_devices_exit(void)
{
	struct biogen_device *bg, *next;

	list_for_each_entry_safe(bg, next, &biogen_devices, list)
		biogen_destroy(bg);
	class_destroy(biogen_class);
	unregister_chrdev_region(biogen_devt, BIOGEN_MAX_DEVICES);
}
