// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes: their values and the module parameters that set them.
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

static const char *const blknull_choices_mode[] = { "bio", "mq", NULL };

static const char *const blknull_choices_completion[] = {
	"inline", "softirq", "timer", NULL
};

/* In the order of blknull_fail_statuses in fault.c. */
static const char *const blknull_choices_fail_status[] = {
	"io", "medium", "nospc", "timeout", "transport", "target",
	"protection", "notsupp", NULL
};

const struct blknull_attr blknull_attrs[BLKNULL_NR_ATTRS] = {
#define BLKNULL_ATTR(_name, _type, _def, _min, _max, _flags, _choices, _about) \
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
 * The module parameters. Each is a list of values, one for each device that is
 * created when the module is loaded.
 */
#define BLKNULL_ATTR(_name, _type, _def, _min, _max, _flags, _choices, _about) \
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
		return READ_ONCE(*(const bool *)field);
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
		WRITE_ONCE(*(bool *)field, value);
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
	pr_err_ratelimited("invalid %s=%s: must be one of %s\n", attr->name,
			   value, names);
	return -EINVAL;
}

/**
 * blknull_parse_bool() - parse a boolean
 * @name: name of the attribute, for the message
 * @text: the value
 * @len: length of @text, which may end in a newline
 * @on: filled in
 *
 * Return: 0, or -EINVAL; then the reason is in the log.
 */
int blknull_parse_bool(const char *name, const char *text, size_t len, bool *on)
{
	/* kstrtobool() ignores all but the first characters. */
	if (len && text[len - 1] == '\n')
		len--;
	if (len == 1 && strchr("01NYny", *text)) {
		*on = strchr("1Yy", *text);
		return 0;
	}
	pr_err_ratelimited("invalid %s=%.*s: must be one of 0, 1, N, Y\n", name,
			   (int)min_t(size_t, len, 40), text);
	return -EINVAL;
}

static int blknull_set_cpu(const struct blknull_attr *attr, const char *value,
			   long long *number)
{
	if (!strcmp(value, "local")) {
		*number = BLKNULL_CPU_LOCAL;
		return 0;
	}
	if (!strcmp(value, "next")) {
		*number = BLKNULL_CPU_NEXT;
		return 0;
	}
	if (!kstrtoll(value, 10, number) && *number >= 0 &&
	    *number < nr_cpu_ids && cpu_possible(*number))
		return 0;
	pr_err_ratelimited("invalid %s=%s: must be local, next or the number of a CPU\n",
			   attr->name, value);
	return -EINVAL;
}

static int blknull_set_number(const struct blknull_attr *attr,
			      const char *value, long long *number)
{
	const char *form = "";

	if (kstrtoll(value, 0, number)) {
		pr_err_ratelimited("invalid %s=%s: must be a number\n",
				   attr->name, value);
		return -EINVAL;
	}
	if (attr->flags & BLKNULL_OR_0) {
		if (!*number)
			return 0;
		form = "0 or ";
	}
	if (attr->flags & BLKNULL_POWER_OF_2) {
		form = "a power of 2, ";
		if (!is_power_of_2(*number))
			goto invalid;
	}
	if (*number >= attr->min && *number <= attr->max)
		return 0;
invalid:
	pr_err_ratelimited("invalid %s=%s: must be %sfrom %lld to %lld\n",
			   attr->name, value, form, attr->min, attr->max);
	return -EINVAL;
}

/**
 * blknull_config_set() - parse and set the value of an attribute
 * @config: the attributes
 * @attr: the attribute
 * @text: the value
 * @len: length of @text, which may end in a newline
 *
 * Return: 0, or -EINVAL; then the log says what would be valid, and @config is
 * unchanged.
 */
int blknull_config_set(struct blknull_config *config,
		       const struct blknull_attr *attr, const char *text,
		       size_t len)
{
	char buf[40], *value;
	long long number;
	bool on = false;
	int err;

	/* No valid value is longer. */
	snprintf(buf, sizeof(buf), "%.*s", (int)min_t(size_t, len, sizeof(buf)),
		 text);
	value = strim(buf);
	if (attr->choices) {
		err = blknull_set_choice(attr, value, &number);
	} else if (attr->flags & BLKNULL_CPU) {
		err = blknull_set_cpu(attr, value, &number);
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
 * @config: the attributes
 * @attr: the attribute
 * @page: buffer of PAGE_SIZE
 *
 * Return: the length of the line.
 */
ssize_t blknull_config_show(const struct blknull_config *config,
			    const struct blknull_attr *attr, char *page)
{
	long long number = blknull_config_get(config, attr);

	if (attr->choices)
		return sysfs_emit(page, "%s\n", attr->choices[number]);
	if (attr->flags & BLKNULL_CPU && number < 0)
		return sysfs_emit(page, "%s\n",
				  number == BLKNULL_CPU_NEXT ? "next" : "local");
	return sysfs_emit(page, "%lld\n", number);
}

/**
 * blknull_config_from_parameters() - set all attributes by module parameters
 * @config: the attributes
 * @device: number of the device; the last value of a list is used for all
 *	further devices
 *
 * Return: 0, or -EINVAL; then the reason is in the log.
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
 * blknull_parameters_check() - check that no list has too many values
 * @nr_devices: number of devices created when the module is loaded
 *
 * One more value is allowed, for devices created in configfs.
 *
 * Return: 0, or -EINVAL; then the reason is in the log.
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
		pr_err("invalid %s=%s: must have at most %u values with nr_devices=%u\n",
		       blknull_attrs[i].name, *blknull_parameters[i],
		       nr_devices + 1, nr_devices);
		return -EINVAL;
	}
	return 0;
}

/* The setting that an attribute needs and that is missing, or NULL. */
static const char *blknull_unmet(const struct blknull_config *config,
				 const struct blknull_attr *attr)
{
	if (attr->flags & BLKNULL_NEEDS_MQ && config->mode != BLKNULL_MQ)
		return "mode=mq";
	if (attr->flags & BLKNULL_NEEDS_BIO && config->mode != BLKNULL_BIO)
		return "mode=bio";
	if (attr->flags & BLKNULL_NEEDS_MEMORY && !config->memory_backed)
		return "memory_backed=1";
	if (attr->flags & BLKNULL_NEEDS_CACHE && !config->write_cache)
		return "write_cache=1";
	if (attr->flags & BLKNULL_NEEDS_FAULTS && !config->faults)
		return "faults=1";
	if (!(attr->flags & BLKNULL_CPU))
		return NULL;
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		return "a kernel without PREEMPT_RT";
	if (config->poll_queues)
		return "poll_queues=0";
	if (config->completion == BLKNULL_TIMER)
		return "completion=inline or softirq";
	if (config->iostats && config->mode == BLKNULL_BIO)
		return "iostats=0 or mode=mq";
	return NULL;
}

/**
 * blknull_config_check() - check the attributes against each other
 * @config: the attributes, each with a valid value
 *
 * Return: 0, or -EINVAL; then the reason is in the log.
 */
int blknull_config_check(const struct blknull_config *config)
{
	struct blknull_config defaults;
	const char *needed;
	unsigned int i;

	for (i = 0; i < BLKNULL_NR_ATTRS; i++) {
		const struct blknull_attr *attr = &blknull_attrs[i];

		blknull_config_set(&defaults, attr, attr->def, strlen(attr->def));
		needed = blknull_unmet(config, attr);
		if (!needed || blknull_config_get(config, attr) ==
			       blknull_config_get(&defaults, attr))
			continue;
		pr_err_ratelimited("%s needs %s\n", attr->name, needed);
		return -EINVAL;
	}
	if (config->submit_queues > nr_cpu_ids ||
	    config->poll_queues > nr_cpu_ids) {
		pr_err_ratelimited("invalid submit_queues=%d poll_queues=%d: must be at most %u, the number of CPUs\n",
				   config->submit_queues, config->poll_queues,
				   nr_cpu_ids);
		return -EINVAL;
	}
	if (config->home_node != NUMA_NO_NODE &&
	    !node_online(config->home_node)) {
		pr_err_ratelimited("invalid home_node=%d: must be online\n",
				   config->home_node);
		return -EINVAL;
	}
	return 0;
}
