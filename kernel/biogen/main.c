// SPDX-License-Identifier: GPL-2.0
/*
 * biogen: a character device that goes direct-to-bio, and an I/O generator in
 * the kernel. Module parameters, loading and unloading.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "biogen.h"
#include "compat/file.h"
#include "compat/split.h"
#include "io.h"

static bool write;
module_param(write, bool, 0644);
MODULE_PARM_DESC(write, "Open block devices exclusively and allow writes (default N)");

static bool coherent = true;
module_param(coherent, bool, 0644);
MODULE_PARM_DESC(coherent, "Keep coherent with the block device's page cache (default Y)");

/*
 * Parameters are set before biogen_init(), and by programs before it, while the
 * module is in use, and after biogen_exit(). All that is below is protected by
 * kernel_param_lock(), which is held when a parameter is set or read.
 */
static enum {
	BIOGEN_LOADING,
	BIOGEN_LIVE,
	BIOGEN_GONE,
} biogen_state;

/* What biogen_init() is to carry out, or NULL. */
static char *device;

/* Make a node, or remove one. */
static int biogen_command(char *text)
{
	const char *path = strim(text);
	int err;

	if (*path == '-')
		err = biogen_remove(path + 1);
	else
		err = biogen_create(path, write, coherent);
	if (err)
		pr_err_ratelimited("cannot %s device=%s%s: error %d\n",
				   *path == '-' ? "remove" : "open", path,
				   *path != '-' && write ? " exclusively" : "",
				   err);
	return err;
}

static int biogen_device_set(const char *value, const struct kernel_param *kp)
{
	char *text;
	int err;

	if (biogen_state == BIOGEN_LOADING)
		return param_set_charp(value, kp);
	if (biogen_state == BIOGEN_GONE)
		return -ENODEV;
	text = kstrdup(value, GFP_KERNEL);
	if (!text)
		return -ENOMEM;
	err = biogen_command(text);
	kfree(text);
	return err;
}

static const struct kernel_param_ops biogen_device_ops = {
	.set	= biogen_device_set,
	.get	= biogen_devices_show,
	.free	= param_free_charp,
};

module_param_cb(device, &biogen_device_ops, &device, 0600);
__MODULE_PARM_TYPE(device, "charp");
MODULE_PARM_DESC(device, "Path of a block device to make /dev/biogenN for, or -biogenN to remove it (default: none)");

static int __init biogen_init(void)
{
	int err;

	kernel_param_lock(THIS_MODULE);
	err = biogen_ios_init();
	if (err)
		goto gone;
	err = biogen_devices_init();
	if (err)
		goto exit_ios;
	/*
	 * Last: nothing fails once a program may have opened a node. Built in, an
	 * error is not the driver's end: the node can be made later.
	 */
	if (device) {
		err = biogen_command(device);
		if (err && __is_defined(MODULE))
			goto exit_devices;
	}
	biogen_state = BIOGEN_LIVE;
	kernel_param_unlock(THIS_MODULE);
	return 0;

exit_devices:
	biogen_devices_exit();
exit_ios:
	biogen_ios_exit();
gone:
	biogen_state = BIOGEN_GONE;
	kernel_param_unlock(THIS_MODULE);
	return err;
}

static void __exit biogen_exit(void)
{
	kernel_param_lock(THIS_MODULE);
	biogen_state = BIOGEN_GONE;
	biogen_devices_exit();
	kernel_param_unlock(THIS_MODULE);
	biogen_ios_exit();
}

/* Built in, it comes after the drivers of block devices. */
late_initcall(biogen_init);
module_exit(biogen_exit);

COMPAT_BIOGEN_MODULE_INFO();
MODULE_DESCRIPTION("Direct-to-bio character device and bio generator");
MODULE_LICENSE("GPL");
