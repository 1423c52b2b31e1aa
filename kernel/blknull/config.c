// SPDX-License-Identifier: GPL-2.0
/*
 * blknull's attributes: what they may be, and the parameters of the module
 * that set them.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/cpumask.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/nodemask.h>
#include <linux/string.h>

#include "blknull.h"
#include "zoned.h"

static const char *const blknull_choices_mode[] = { "bio", "mq", NULL };

static const char *const blknull_choices_completion[] = {
	"inline", "softirq", "timer", NULL
};

/* In the order of blknull_fail_status[]. */
static const char *const blknull_choices_fail_status[] = {
	"io", "medium", "nospc", "timeout", "transport", "target",
	"protection", "notsupp", NULL
};

const struct blknull_attr blknull_attrs[BLKNULL_NR_ATTRS] = {
#define BLKNULL_ATTR(_name, _def, _min, _max, _flags, _choices, _about)	\
	[BLKNULL_ATTR_##_name] = {					\
		.name		= #_name,				\
		.def		= _def,					\
		.min		= _min,					\
		.max		= _max,					\
		.flags		= _flags,				\
		.choices	= _choices,				\
		.offset		= offsetof(struct blknull_config, _name), \
		.size		= sizeof_field(struct blknull_config, _name), \
	},
#include "attrs.h"
};

/*
 * The parameters: a list of values each, one for each device that is made when
 * the module is loaded.
 */
#define BLKNULL_ATTR(_name, _def, _min, _max, _flags, _choices, _about)	\
	static char *blknull_parameter_##_name = _def;			\
	module_param_named(_name, blknull_parameter_##_name, charp, 0444); \
	MODULE_PARM_DESC(_name, _about);
#include "attrs.h"

static char *const *const blknull_parameters[BLKNULL_NR_ATTRS] = {
#define BLKNULL_ATTR(_name, ...)					\
	[BLKNULL_ATTR_##_name] = &blknull_parameter_##_name,
#include "attrs.h"
};

static long long blknull_config_get(const struct blknull_config *config,
				    const struct blknull_attr *attr)
{
	const void *field = (const char *)config + attr->offset;

	switch (attr->size) {
	case sizeof(bool):
		return *(const bool *)field;
	case sizeof(int):
		return READ_ONCE(*(const int *)field);
	default:
		return READ_ONCE(*(const long long *)field);
	}
}

static void blknull_config_put(struct blknull_config *config,
			       const struct blknull_attr *attr, long long value)
{
	void *field = (char *)config + attr->offset;

	switch (attr->size) {
	case sizeof(bool):
		*(bool *)field = value;
		break;
	case sizeof(int):
		WRITE_ONCE(*(int *)field, value);
		break;
	default:
		WRITE_ONCE(*(long long *)field, value);
	}
}

static int blknull_set_choice(const struct blknull_attr *attr,
			      const char *value, long long *number)
{
	char names[128] = "";
	int i;

	for (i = 0; attr->choices[i]; i++) {
		if (!strcmp(value, attr->choices[i])) {
			*number = i;
			return 0;
		}
		if (i)
			strlcat(names, ", ", sizeof(names));
		strlcat(names, attr->choices[i], sizeof(names));
	}
	pr_err_ratelimited("%s=%s is none of %s\n", attr->name, value, names);
	return -EINVAL;
}

/**
 * blknull_parse_bool() - read a switch as a person wrote it
 * @name: what is switched
 * @text: on or off
 * @len: length of @text, which may end in a newline
 * @on: filled in
 *
 * Return: 0, or -EINVAL, after saying why.
 */
int blknull_parse_bool(const char *name, const char *text, size_t len, bool *on)
{
	/* kstrtobool() would look at the first character only. */
	if (len && text[len - 1] == '\n')
		len--;
	if (len == 1 && strchr("1Yy", *text)) {
		*on = true;
		return 0;
	}
	if (len == 1 && strchr("0Nn", *text)) {
		*on = false;
		return 0;
	}
	pr_err_ratelimited("%s=%.*s is none of 0, 1, N, Y\n", name,
			   (int)min_t(size_t, len, 40), text);
	return -EINVAL;
}

static int blknull_set_number(const struct blknull_attr *attr,
			      const char *value, long long *number)
{
	const char *form = "in the range";

	if (kstrtoll(value, 0, number)) {
		pr_err_ratelimited("%s=%s is not a number\n", attr->name,
				   value);
		return -EINVAL;
	}
	if (attr->flags & BLKNULL_OR_0) {
		if (!*number)
			return 0;
		form = "0 or in the range";
	}
	if (attr->flags & BLKNULL_POWER_OF_2) {
		form = "a power of 2 in the range";
		if (!is_power_of_2(*number))
			goto invalid;
	}
	if (*number >= attr->min && *number <= attr->max)
		return 0;
invalid:
	pr_err_ratelimited("%s=%s is not %s %lld to %lld\n", attr->name, value,
			   form, attr->min, attr->max);
	return -EINVAL;
}

/**
 * blknull_config_set() - set an attribute as a person wrote it
 * @config: where
 * @attr: which
 * @text: to what
 * @len: length of @text, which may end in a newline
 *
 * Return: 0, or -EINVAL; then the kernel's log says what would be right, and
 * @config is as it was.
 */
int blknull_config_set(struct blknull_config *config,
		       const struct blknull_attr *attr, const char *text,
		       size_t len)
{
	char buf[40], *value;
	long long number;
	bool on = false;
	int err;

	/* What does not fit is no value of any attribute. */
	snprintf(buf, sizeof(buf), "%.*s", (int)min_t(size_t, len, sizeof(buf)),
		 text);
	value = strim(buf);
	if (attr->choices) {
		err = blknull_set_choice(attr, value, &number);
	} else if (attr->size == sizeof(bool)) {
		err = blknull_parse_bool(attr->name, value, strlen(value), &on);
		number = on;
	} else {
		err = blknull_set_number(attr, value, &number);
	}
	if (!err)
		blknull_config_put(config, attr, number);
	return err;
}

/**
 * blknull_config_show() - print an attribute
 * @config: of whom
 * @attr: which
 * @page: where to
 *
 * Return: the length of the line.
 */
ssize_t blknull_config_show(const struct blknull_config *config,
			    const struct blknull_attr *attr, char *page)
{
	long long number = blknull_config_get(config, attr);

	if (attr->choices)
		return sysfs_emit(page, "%s\n", attr->choices[number]);
	return sysfs_emit(page, "%lld\n", number);
}

/**
 * blknull_config_from_parameters() - what the module's parameters say
 * @config: to be set
 * @device: how many devices come before this one; those for which a list has
 *	no value left get its last
 *
 * Return: 0, or -EINVAL, after saying why.
 */
int blknull_config_from_parameters(struct blknull_config *config,
				   unsigned int device)
{
	const char *text, *end;
	unsigned int i, left;
	int err;

	for (i = 0; i < BLKNULL_NR_ATTRS; i++) {
		text = *blknull_parameters[i];
		for (left = device; left; left--) {
			end = strchr(text, ',');
			if (!end)
				break;
			text = end + 1;
		}
		err = blknull_config_set(config, &blknull_attrs[i], text,
					 strcspn(text, ","));
		if (err)
			return err;
	}
	return 0;
}

/**
 * blknull_parameters_check() - whether each value of a list has a device
 * @nr_devices: devices that the module makes when it is loaded
 *
 * There may be one value more, for the devices that are made in configfs.
 *
 * Return: 0, or -EINVAL, after saying why.
 */
int blknull_parameters_check(unsigned int nr_devices)
{
	unsigned int i, values;
	const char *text;

	for (i = 0; i < BLKNULL_NR_ATTRS; i++) {
		values = 1;
		for (text = *blknull_parameters[i]; *text; text++)
			values += *text == ',';
		if (values <= nr_devices + 1)
			continue;
		pr_err("%s=%s has %u values, at most %u with nr_devices=%u\n",
		       blknull_attrs[i].name, *blknull_parameters[i], values,
		       nr_devices + 1, nr_devices);
		return -EINVAL;
	}
	return 0;
}

/* What an attribute needs that is not there, or NULL. */
static const char *blknull_unmet(const struct blknull_config *config,
				 const struct blknull_attr *attr)
{
	if (attr->flags & BLKNULL_NEEDS_MQ && config->mode != BLKNULL_MQ)
		return "mode=mq";
	if (attr->flags & BLKNULL_NEEDS_CACHE && !config->write_cache)
		return "write_cache=1";
	if (attr->flags & BLKNULL_NEEDS_FAULTS && !config->faults)
		return "faults=1";
	if (attr->flags & BLKNULL_NEEDS_ZONED && !config->zoned)
		return "zoned=1";
	return NULL;
}

/**
 * blknull_config_check() - whether the attributes go together
 * @config: the attributes, each of them good in itself
 *
 * Return: 0, or -EINVAL, after saying why.
 */
int blknull_config_check(const struct blknull_config *config)
{
	struct blknull_config fresh;
	const char *needed;
	unsigned int i;

	for (i = 0; i < BLKNULL_NR_ATTRS; i++) {
		const struct blknull_attr *attr = &blknull_attrs[i];

		blknull_config_set(&fresh, attr, attr->def, strlen(attr->def));
		needed = blknull_unmet(config, attr);
		if (!needed || blknull_config_get(config, attr) ==
			       blknull_config_get(&fresh, attr))
			continue;
		pr_err_ratelimited("%s needs %s\n", attr->name, needed);
		return -EINVAL;
	}
	if (config->submit_queues > nr_cpu_ids ||
	    config->poll_queues > nr_cpu_ids) {
		pr_err_ratelimited("submit_queues=%d poll_queues=%d: there are %u CPUs for each\n",
				   config->submit_queues, config->poll_queues,
				   nr_cpu_ids);
		return -EINVAL;
	}
	if (config->home_node != NUMA_NO_NODE &&
	    !node_online(config->home_node)) {
		pr_err_ratelimited("home_node=%d is not online\n",
				   config->home_node);
		return -EINVAL;
	}
	if (config->zoned)
		return blknull_zoned_check(config);
	return 0;
}
