// SPDX-License-Identifier: GPL-2.0
/*
 * Devices created at run time: mkdir /sys/kernel/config/biogen/NAME, write the
 * attributes, then 1 to power. The attribute node has the name of the node.
 */
#include <linux/configfs.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "biogen.h"

/**
 * struct biogen_item - a directory
 * @item: in configfs
 * @lock: protects everything below
 * @device: path of the block device, or NULL
 * @write: allow writes
 * @coherent: keep coherent with the page cache
 * @bg: the device, while power is on
 */
struct biogen_item {
	struct config_item item;
	struct mutex lock; /* everything below */
	char *device;
	bool write;
	bool coherent;
	struct biogen_device *bg;
};

static struct biogen_item *to_biogen_item(struct config_item *item)
{
	return container_of(item, struct biogen_item, item);
}

static ssize_t biogen_item_device_show(struct config_item *item, char *page)
{
	struct biogen_item *bi = to_biogen_item(item);
	ssize_t len;

	mutex_lock(&bi->lock);
	len = sysfs_emit(page, "%s\n", bi->device ?: "");
	mutex_unlock(&bi->lock);
	return len;
}

static ssize_t biogen_item_device_store(struct config_item *item,
					const char *page, size_t len)
{
	struct biogen_item *bi = to_biogen_item(item);
	char *copy, *path;
	ssize_t ret = -EBUSY;

	copy = kstrndup(page, len, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	path = kstrdup(strim(copy), GFP_KERNEL);
	kfree(copy);
	if (!path)
		return -ENOMEM;

	mutex_lock(&bi->lock);
	if (!bi->bg) {
		swap(bi->device, path);
		ret = len;
	}
	mutex_unlock(&bi->lock);
	kfree(path);
	return ret;
}

/* Store an attribute that cannot change while power is on. */
static ssize_t biogen_item_store_bool(struct biogen_item *bi, bool *attr,
				      const char *page, size_t len)
{
	ssize_t ret;
	bool on;

	ret = kstrtobool(page, &on);
	if (ret)
		return ret;
	mutex_lock(&bi->lock);
	if (bi->bg) {
		ret = -EBUSY;
	} else {
		*attr = on;
		ret = len;
	}
	mutex_unlock(&bi->lock);
	return ret;
}

static ssize_t biogen_item_write_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", READ_ONCE(to_biogen_item(item)->write));
}

static ssize_t biogen_item_write_store(struct config_item *item,
				       const char *page, size_t len)
{
	struct biogen_item *bi = to_biogen_item(item);

	return biogen_item_store_bool(bi, &bi->write, page, len);
}

static ssize_t biogen_item_coherent_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n",
			  READ_ONCE(to_biogen_item(item)->coherent));
}

static ssize_t biogen_item_coherent_store(struct config_item *item,
					  const char *page, size_t len)
{
	struct biogen_item *bi = to_biogen_item(item);

	return biogen_item_store_bool(bi, &bi->coherent, page, len);
}

static ssize_t biogen_item_node_show(struct config_item *item, char *page)
{
	struct biogen_item *bi = to_biogen_item(item);
	ssize_t len;

	mutex_lock(&bi->lock);
	len = sysfs_emit(page, "%s\n", bi->bg ? dev_name(&bi->bg->dev) : "");
	mutex_unlock(&bi->lock);
	return len;
}

static ssize_t biogen_item_power_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", !!READ_ONCE(to_biogen_item(item)->bg));
}

static int biogen_item_power_on(struct biogen_item *bi)
{
	struct biogen_device *bg;
	int err;

	if (!bi->device)
		return -EINVAL;
	bg = biogen_create(bi->device, bi->write, bi->coherent);
	if (IS_ERR(bg))
		return PTR_ERR(bg);
	err = biogen_publish(bg);
	if (err) {
		biogen_discard(bg);
		return err;
	}
	WRITE_ONCE(bi->bg, bg);
	return 0;
}

static void biogen_item_power_off(struct biogen_item *bi)
{
	biogen_destroy(bi->bg);
	WRITE_ONCE(bi->bg, NULL);
}

static ssize_t biogen_item_power_store(struct config_item *item,
				       const char *page, size_t len)
{
	struct biogen_item *bi = to_biogen_item(item);
	ssize_t ret;
	bool on;

	ret = kstrtobool(page, &on);
	if (ret)
		return ret;
	mutex_lock(&bi->lock);
	if (on && !bi->bg)
		ret = biogen_item_power_on(bi);
	else if (!on && bi->bg)
		biogen_item_power_off(bi);
	mutex_unlock(&bi->lock);
	return ret ?: len;
}

CONFIGFS_ATTR(biogen_item_, device);
CONFIGFS_ATTR(biogen_item_, write);
CONFIGFS_ATTR(biogen_item_, coherent);
CONFIGFS_ATTR_RO(biogen_item_, node);
CONFIGFS_ATTR(biogen_item_, power);

static struct configfs_attribute *biogen_item_attrs[] = {
	&biogen_item_attr_device,
	&biogen_item_attr_write,
	&biogen_item_attr_coherent,
	&biogen_item_attr_node,
	&biogen_item_attr_power,
	NULL,
};

/* The directory was removed and no attribute is in use. */
static void biogen_item_release(struct config_item *item)
{
	struct biogen_item *bi = to_biogen_item(item);

	if (bi->bg)
		biogen_item_power_off(bi);
	kfree(bi->device);
	kfree(bi);
}

static struct configfs_item_operations biogen_item_ops = {
	.release	= biogen_item_release,
};

static const struct config_item_type biogen_item_type = {
	.ct_item_ops	= &biogen_item_ops,
	.ct_attrs	= biogen_item_attrs,
	.ct_owner	= THIS_MODULE,
};

/* Whether the module has been initialised: nothing may begin before. */
static bool biogen_configfs_open;

static struct config_item *biogen_make_item(struct config_group *group,
					    const char *name)
{
	struct biogen_item *bi;

	if (!READ_ONCE(biogen_configfs_open))
		return ERR_PTR(-EAGAIN);
	bi = kzalloc(sizeof(*bi), GFP_KERNEL);
	if (!bi)
		return ERR_PTR(-ENOMEM);
	mutex_init(&bi->lock);
	bi->coherent = true;
	config_item_init_type_name(&bi->item, name, &biogen_item_type);
	return &bi->item;
}

static struct configfs_group_operations biogen_group_ops = {
	.make_item	= biogen_make_item,
};

static const struct config_item_type biogen_group_type = {
	.ct_group_ops	= &biogen_group_ops,
	.ct_owner	= THIS_MODULE,
};

static struct configfs_subsystem biogen_subsystem = {
	.su_group = {
		.cg_item = {
			.ci_namebuf	= KBUILD_MODNAME,
			.ci_type	= &biogen_group_type,
		},
	},
};

/**
 * biogen_configfs_allow() - let programs create directories
 *
 * The module is initialised. If it failed after a program had created a directory,
 * it would be freed while it is in use.
 */
void biogen_configfs_allow(void)
{
	WRITE_ONCE(biogen_configfs_open, true);
}

/**
 * biogen_configfs_init() - publish /sys/kernel/config/biogen
 *
 * Return: 0 or an error.
 */
int biogen_configfs_init(void)
{
	config_group_init(&biogen_subsystem.su_group);
	mutex_init(&biogen_subsystem.su_mutex);
	return configfs_register_subsystem(&biogen_subsystem);
}

/**
 * biogen_configfs_exit() - remove it; no directory is left in it
 */
void biogen_configfs_exit(void)
{
	configfs_unregister_subsystem(&biogen_subsystem);
}
