// SPDX-License-Identifier: GPL-2.0
/*
 * biogen: a character device that goes direct-to-bio, and an I/O generator in
 * the kernel. Module parameters, loading and unloading.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "biogen.h"
#include "compat/file.h"
#include "compat/split.h"
#include "io.h"

static char *device;
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "Path of the block device that /dev/biogen0 is bound to (default: none; see configfs)");

static bool write;
module_param(write, bool, 0444);
MODULE_PARM_DESC(write, "Open the block device exclusively and allow writes (default N)");

static bool coherent = true;
module_param(coherent, bool, 0444);
MODULE_PARM_DESC(coherent, "Keep coherent with the block device's page cache (default Y)");

/* The device that the parameters ask for, or NULL. */
static struct biogen_device *biogen_device0;

static int __init biogen_init(void)
{
	int err;

	err = biogen_ios_init();
	if (err)
		return err;
	err = biogen_devices_init();
	if (err)
		goto exit_ios;
	if (device) {
		biogen_device0 = biogen_create(device, write, coherent);
		if (IS_ERR(biogen_device0)) {
			err = PTR_ERR(biogen_device0);
			pr_err("cannot open device=%s%s: error %d\n", device,
			       write ? " exclusively" : "", err);
			goto exit_devices;
		}
	}
	err = biogen_configfs_init();
	if (err)
		goto discard_device0;
	/* Last: nothing fails once a program may have opened it. */
	if (biogen_device0) {
		err = biogen_publish(biogen_device0);
		if (err)
			goto exit_configfs;
	}
	biogen_configfs_allow();
	return 0;

exit_configfs:
	biogen_configfs_exit();
discard_device0:
	if (biogen_device0)
		biogen_discard(biogen_device0);
exit_devices:
	biogen_devices_exit();
exit_ios:
	biogen_ios_exit();
	return err;
}

static void __exit biogen_exit(void)
{
	biogen_configfs_exit();
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
