// SPDX-License-Identifier: GPL-2.0
/*
 * biogen: user memory to bio by the shortest path, and bios from the kernel.
 * Parameters, the life of a device, loading and unloading.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/idr.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "biogen.h"
#include "compat/file.h"
#include "io.h"

#define BIOGEN_MAX_DEVICES	256

static char *device;
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "Path of the block device that /dev/biogen0 is bound to (default: none; see configfs)");

static bool write;
module_param(write, bool, 0444);
MODULE_PARM_DESC(write, "Take the block device exclusively, and allow writes (default N)");

static bool coherent = true;
module_param(coherent, bool, 0444);
MODULE_PARM_DESC(coherent, "Keep coherent with the block device's page cache (default Y)");

static dev_t biogen_devt;
static struct class *biogen_class;
static DEFINE_IDA(biogen_ida);
static struct biogen_device *biogen_device0;

/* The last file is closed, and the node is gone. */
static void biogen_release_device(struct device *dev)
{
	struct biogen_device *bg = container_of(dev, struct biogen_device, dev);

	biogen_idle_destroy(bg);
	biogen_target_close(&bg->target);
	ida_free(&biogen_ida, MINOR(dev->devt));
	kfree(bg);
}

/**
 * biogen_create() - bind a new device to a block device and publish it
 * @path: path of the block device
 * @write: allow writes
 * @coherent: keep coherent with the page cache
 *
 * Context: Process context, may sleep.
 * Return: the device, or an ERR_PTR().
 */
struct biogen_device *biogen_create(const char *path, bool write, bool coherent)
{
	static const unsigned long no_pages;
	struct biogen_device *bg;
	int err, minor;

	bg = kzalloc(sizeof(*bg), GFP_KERNEL);
	if (!bg)
		return ERR_PTR(-ENOMEM);
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
	err = biogen_idle_create(bg);
	if (err)
		goto close_target;

	device_initialize(&bg->dev);
	bg->dev.class = biogen_class;
	bg->dev.devt = MKDEV(MAJOR(biogen_devt), minor);
	bg->dev.release = biogen_release_device;
	cdev_init(&bg->cdev, &biogen_fops);
	bg->cdev.owner = THIS_MODULE;
	/* From here on, the release function frees it all. */
	err = dev_set_name(&bg->dev, "biogen%d", minor);
	if (!err)
		err = cdev_device_add(&bg->cdev, &bg->dev);
	if (err) {
		put_device(&bg->dev);
		return ERR_PTR(err);
	}
	return bg;

close_target:
	biogen_target_close(&bg->target);
free_minor:
	ida_free(&biogen_ida, minor);
free_bg:
	kfree(bg);
	return ERR_PTR(err);
}

/**
 * biogen_destroy() - withdraw a device
 * @bg: the device; files that are open keep it and its block device
 *
 * Context: Process context, may sleep.
 */
void biogen_destroy(struct biogen_device *bg)
{
	cdev_device_del(&bg->cdev, &bg->dev);
	put_device(&bg->dev);
}

static int __init biogen_init(void)
{
	int err;

	err = biogen_io_caches_create();
	if (err)
		return err;
	err = biogen_workqueue_create();
	if (err)
		goto destroy_caches;
	err = alloc_chrdev_region(&biogen_devt, 0, BIOGEN_MAX_DEVICES,
				  KBUILD_MODNAME);
	if (err)
		goto destroy_workqueue;
	biogen_class = compat_class_create(KBUILD_MODNAME);
	if (IS_ERR(biogen_class)) {
		err = PTR_ERR(biogen_class);
		goto unregister_region;
	}
	if (device) {
		biogen_device0 = biogen_create(device, write, coherent);
		if (IS_ERR(biogen_device0)) {
			err = PTR_ERR(biogen_device0);
			pr_err("device=%s cannot be opened%s: error %d\n",
			       device, write ? " exclusively" : "", err);
			goto destroy_class;
		}
	}
	err = biogen_configfs_init();
	if (err)
		goto destroy_device0;
	return 0;

destroy_device0:
	if (biogen_device0)
		biogen_destroy(biogen_device0);
destroy_class:
	class_destroy(biogen_class);
unregister_region:
	unregister_chrdev_region(biogen_devt, BIOGEN_MAX_DEVICES);
destroy_workqueue:
	biogen_workqueue_destroy();
destroy_caches:
	biogen_io_caches_destroy();
	return err;
}

static void __exit biogen_exit(void)
{
	biogen_configfs_exit();
	if (biogen_device0)
		biogen_destroy(biogen_device0);
	class_destroy(biogen_class);
	unregister_chrdev_region(biogen_devt, BIOGEN_MAX_DEVICES);
	ida_destroy(&biogen_ida);
	biogen_workqueue_destroy();
	biogen_io_caches_destroy();
}

module_init(biogen_init);
module_exit(biogen_exit);

COMPAT_BIOGEN_MODULE_INFO();
MODULE_DESCRIPTION("Direct-to-bio character device and bio generator");
MODULE_LICENSE("GPL");
