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

/* Built in, the parameters are set when block devices have paths. */
#ifdef MODULE
#define BIOGEN_PERM	0444
#else
#define BIOGEN_PERM	0644
#endif

static char *device;

static bool write;
module_param(write, bool, BIOGEN_PERM);
MODULE_PARM_DESC(write, "Open the block device exclusively and allow writes (default N)");

static bool coherent = true;
module_param(coherent, bool, BIOGEN_PERM);
MODULE_PARM_DESC(coherent, "Keep coherent with the block device's page cache (default Y)");

/* The device that the parameters ask for, or NULL. */
static struct biogen_device *biogen_device0;

static int biogen_bind(void)
{
	struct biogen_device *bg = biogen_create(device, write, coherent);
	int err;

	if (IS_ERR(bg)) {
		pr_err("cannot open device=%s%s: error %ld\n", device,
		       write ? " exclusively" : "", PTR_ERR(bg));
		return PTR_ERR(bg);
	}
	/* Last: nothing fails once a program may have opened it. */
	err = biogen_publish(bg);
	if (err) {
		biogen_discard(bg);
		return err;
	}
	biogen_device0 = bg;
	return 0;
}

#ifdef MODULE
module_param(device, charp, 0444);
#else
/* The driver is initialised; until then, and when it is bound, it refuses. */
static bool biogen_ready;

static int biogen_device_set(const char *text, const struct kernel_param *kp)
{
	char *copy;
	int err;

	if (!READ_ONCE(biogen_ready) || biogen_device0)
		return -EBUSY;
	copy = kstrdup(text, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	err = param_set_charp(strim(copy), kp);
	kfree(copy);
	return err ?: biogen_bind();
}

static const struct kernel_param_ops biogen_device_ops = {
	.set	= biogen_device_set,
	.get	= param_get_charp,
	.free	= param_free_charp,
};

module_param_cb(device, &biogen_device_ops, &device, BIOGEN_PERM);
#endif
MODULE_PARM_DESC(device, "Path of the block device that /dev/biogen0 is bound to (default: none)");

static int __init biogen_init(void)
{
	int err;

	err = biogen_ios_init();
	if (err)
		return err;
	err = biogen_devices_init();
	if (err)
		goto exit_ios;
#ifdef MODULE
	if (device) {
		err = biogen_bind();
		if (err)
			goto exit_devices;
	}
	return 0;

exit_devices:
	biogen_devices_exit();
#else
	WRITE_ONCE(biogen_ready, true);
	return 0;
#endif
exit_ios:
	biogen_ios_exit();
	return err;
}

static void __exit biogen_exit(void)
{
	if (biogen_device0)
		biogen_destroy(biogen_device0);
	biogen_devices_exit();
	biogen_ios_exit();
}

module_init(biogen_init);
module_exit(biogen_exit);

COMPAT_BIOGEN_MODULE_INFO();
MODULE_DESCRIPTION("Direct-to-bio character device and bio generator");
MODULE_LICENSE("GPL");
