// SPDX-License-Identifier: GPL-2.0
/*
 * Devices created at run time: mkdir /sys/kernel/config/blknull/NAME, write the
 * attributes, then 1 to power. Removing the directory removes the device.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/badblocks.h>
#include <linux/configfs.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "blknull.h"

/**
 * struct blknull_item - a directory
 * @item: in configfs
 * @lock: protects everything below
 * @config: the attributes
 * @badblocks: sectors that fail; has a lock of its own
 * @dev: the device, while power is on
 */
struct blknull_item {
	struct config_item item;
	struct mutex lock; /* everything below */
	struct blknull_config config;
	struct badblocks badblocks;
	struct blknull_device *dev;
};

static struct blknull_item *to_blknull_item(struct config_item *item)
{
	return container_of(item, struct blknull_item, item);
}

static ssize_t blknull_item_show(struct config_item *item,
				 const struct blknull_attr *attr, char *page)
{
	struct blknull_item *bi = to_blknull_item(item);
	ssize_t len;

	mutex_lock(&bi->lock);
	len = blknull_config_show(bi->dev ? &bi->dev->config : &bi->config,
				  attr, page);
	mutex_unlock(&bi->lock);
	return len;
}

/* Whether an attribute may change now. */
static bool blknull_item_may_change(const struct blknull_item *bi,
				    const struct blknull_attr *attr)
{
	if (!bi->dev)
		return true;
	if (attr->flags & BLKNULL_NEEDS_FAULTS && !bi->config.faults)
		return false;
	return attr->flags & BLKNULL_LIVE;
}

static ssize_t blknull_item_store(struct config_item *item,
				  const struct blknull_attr *attr,
				  const char *page, size_t len)
{
	struct blknull_item *bi = to_blknull_item(item);
	struct blknull_config changed;
	int err = -EBUSY;

	mutex_lock(&bi->lock);
	if (!blknull_item_may_change(bi, attr))
		goto unlock;
	changed = bi->config;
	err = blknull_config_set(&changed, attr, page, len);
	if (err)
		goto unlock;
	/* Without a device, attributes are checked at power on. */
	if (bi->dev) {
		err = blknull_config_check(&changed);
		if (err)
			goto unlock;
		blknull_config_set(&bi->dev->config, attr, page, len);
		atomic64_set(&bi->dev->faults.ios, 0);
	}
	bi->config = changed;
unlock:
	mutex_unlock(&bi->lock);
	return err ?: len;
}

/*
 * configfs does not pass the attribute to show() and store(), so each attribute
 * has blknull_item_NAME_show() and blknull_item_NAME_store(), which call the
 * functions above.
 */
#define BLKNULL_ATTR(_name, ...)					\
static ssize_t blknull_item_##_name##_show(struct config_item *item,	\
					   char *page)			\
{									\
	return blknull_item_show(item,					\
				 &blknull_attrs[BLKNULL_ATTR_##_name], page); \
}									\
									\
static ssize_t blknull_item_##_name##_store(struct config_item *item,	\
					    const char *page, size_t len) \
{									\
	return blknull_item_store(item,					\
				  &blknull_attrs[BLKNULL_ATTR_##_name],	\
				  page, len);				\
}									\
									\
CONFIGFS_ATTR(blknull_item_, _name);
#include "attrs.h"

static ssize_t blknull_item_badblocks_show(struct config_item *item, char *page)
{
	return badblocks_show(&to_blknull_item(item)->badblocks, page, 0);
}

/*
 * In parts: a length goes through an int, where one of 2^32 sectors makes
 * badblocks_clear() loop for ever.
 */
static bool blknull_badblocks_remove(struct badblocks *bb, sector_t first,
				     sector_t sectors)
{
	sector_t part;

	/* Stop when the list is empty. */
	for (; sectors && bb->count; first += part, sectors -= part) {
		part = min_t(sector_t, sectors, 1 << 30);
		if (!compat_badblocks_clear(bb, first, part))
			return false;
		cond_resched();
	}
	return true;
}

/* "+FIRST-LAST" adds bad sectors, "-FIRST-LAST" removes them. */
static ssize_t blknull_item_badblocks_store(struct config_item *item,
					    const char *page, size_t len)
{
	struct blknull_item *bi = to_blknull_item(item);
	unsigned long long first, last;
	sector_t sectors;
	int used = 0;
	ssize_t ret;
	bool done;
	char sign;

	if (sscanf(page, "%c%llu-%llu %n", &sign, &first, &last, &used) != 3 ||
	    used != len || (sign != '+' && sign != '-') || last < first ||
	    last >= (u64)BLKNULL_MAX_SIZE_MB << (20 - SECTOR_SHIFT)) {
		pr_err_ratelimited("invalid badblocks %.*s: must be +FIRST-LAST or -FIRST-LAST, in sectors\n",
				   (int)strcspn(page, "\n"), page);
		return -EINVAL;
	}
	sectors = last - first + 1;
	mutex_lock(&bi->lock);
	if (bi->dev && !bi->config.faults) {
		ret = -EBUSY;
		goto unlock;
	}
	if (sign == '+')
		/* A list has no room for more than INT_MAX. */
		done = sectors <= INT_MAX &&
		       compat_badblocks_set(&bi->badblocks, first, sectors);
	else
		done = blknull_badblocks_remove(&bi->badblocks, first, sectors);
	ret = done ? len : -ENOSPC;
unlock:
	mutex_unlock(&bi->lock);
	return ret;
}

static ssize_t blknull_item_power_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n",
			  !!READ_ONCE(to_blknull_item(item)->dev));
}

static int blknull_item_power_on(struct blknull_item *bi)
{
	struct blknull_device *dev;
	int err;

	err = blknull_config_check(&bi->config);
	if (err)
		return err;
	if (bi->badblocks.count && !bi->config.faults) {
		pr_err_ratelimited("badblocks needs faults=1\n");
		return -EINVAL;
	}
	dev = blknull_create(&bi->config, &bi->badblocks);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	WRITE_ONCE(bi->dev, dev);
	return 0;
}

static void blknull_item_power_off(struct blknull_item *bi)
{
	struct blknull_device *dev = bi->dev;

	WRITE_ONCE(bi->dev, NULL);
	blknull_destroy(dev);
}

static ssize_t blknull_item_power_store(struct config_item *item,
					const char *page, size_t len)
{
	struct blknull_item *bi = to_blknull_item(item);
	bool on;
	int err;

	err = blknull_parse_bool("power", page, len, &on);
	if (err)
		return err;
	mutex_lock(&bi->lock);
	if (on && !bi->dev)
		err = blknull_item_power_on(bi);
	else if (!on && bi->dev)
		blknull_item_power_off(bi);
	mutex_unlock(&bi->lock);
	return err ?: len;
}

CONFIGFS_ATTR(blknull_item_, badblocks);
CONFIGFS_ATTR(blknull_item_, power);

static struct configfs_attribute *blknull_item_attrs[] = {
#define BLKNULL_ATTR(_name, ...)	&blknull_item_attr_##_name,
#include "attrs.h"
	&blknull_item_attr_badblocks,
	&blknull_item_attr_power,
	NULL,
};

/* The directory was removed and no attribute is in use. */
static void blknull_item_release(struct config_item *item)
{
	struct blknull_item *bi = to_blknull_item(item);

	if (bi->dev)
		blknull_item_power_off(bi);
	badblocks_exit(&bi->badblocks);
	kfree(bi);
}

static struct configfs_item_operations blknull_item_ops = {
	.release	= blknull_item_release,
};

static const struct config_item_type blknull_item_type = {
	.ct_item_ops	= &blknull_item_ops,
	.ct_attrs	= blknull_item_attrs,
	.ct_owner	= THIS_MODULE,
};

static struct config_item *blknull_make_item(struct config_group *group,
					     const char *name)
{
	struct blknull_item *bi = kzalloc(sizeof(*bi), GFP_KERNEL);
	int err;

	if (!bi)
		return ERR_PTR(-ENOMEM);
	err = badblocks_init(&bi->badblocks, 1);
	if (err)
		goto free_bi;
	err = blknull_config_from_parameters(&bi->config, UINT_MAX);
	if (err)
		goto exit_badblocks;
	/* An index can be used only once. */
	bi->config.index = -1;
	mutex_init(&bi->lock);
	config_item_init_type_name(&bi->item, name, &blknull_item_type);
	return &bi->item;

exit_badblocks:
	badblocks_exit(&bi->badblocks);
free_bi:
	kfree(bi);
	return ERR_PTR(err);
}

static struct configfs_group_operations blknull_group_ops = {
	.make_item	= blknull_make_item,
};

/* The attributes of this version, on one line. */
static ssize_t blknull_group_features_show(struct config_item *item, char *page)
{
	ssize_t len = 0;
	unsigned int i;

	for (i = 0; i < BLKNULL_NR_ATTRS; i++)
		len += sysfs_emit_at(page, len, "%s,", blknull_attrs[i].name);
	return len + sysfs_emit_at(page, len, "badblocks,power\n");
}

CONFIGFS_ATTR_RO(blknull_group_, features);

static struct configfs_attribute *blknull_group_attrs[] = {
	&blknull_group_attr_features,
	NULL,
};

static const struct config_item_type blknull_group_type = {
	.ct_group_ops	= &blknull_group_ops,
	.ct_attrs	= blknull_group_attrs,
	.ct_owner	= THIS_MODULE,
};

static struct configfs_subsystem blknull_subsystem = {
	.su_group = {
		.cg_item = {
			.ci_namebuf	= KBUILD_MODNAME,
			.ci_type	= &blknull_group_type,
		},
	},
};

/**
 * blknull_configfs_init() - publish /sys/kernel/config/blknull
 *
 * Return: 0 or an error.
 */
int blknull_configfs_init(void)
{
	config_group_init(&blknull_subsystem.su_group);
	mutex_init(&blknull_subsystem.su_mutex);
	return configfs_register_subsystem(&blknull_subsystem);
}

/**
 * blknull_configfs_exit() - remove it; no directory is left in it
 */
void blknull_configfs_exit(void)
{
	configfs_unregister_subsystem(&blknull_subsystem);
}
