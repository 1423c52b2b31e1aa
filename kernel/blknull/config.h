/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The attributes of a device.
 */
#ifndef BLKNULL_CONFIG_H
#define BLKNULL_CONFIG_H

#include <linux/types.h>

#define BLKNULL_MAX_INDEX	65535
#define BLKNULL_MAX_QUEUES	1024
/* The last byte must have a valid file offset. */
#define BLKNULL_MAX_SIZE_MB	(LLONG_MAX >> 20)

/* Values of blknull_config.mode. */
enum blknull_mode {
	BLKNULL_BIO,
	BLKNULL_MQ,
};

/* Values of blknull_config.completion. */
enum blknull_completion {
	BLKNULL_INLINE,
	BLKNULL_SOFTIRQ,
	BLKNULL_TIMER,
};

/* Values of blknull_config.complete_cpu that are not the number of a CPU. */
#define BLKNULL_CPU_LOCAL	(-1)	/* the one that submits the I/O */
#define BLKNULL_CPU_NEXT	(-2)	/* the next one online */

/* The values of the attributes. The size of a field says which type it has. */
struct blknull_config {
#define BLKNULL_ATTR(_name, _type, ...)	_type _name;
#include "attrs.h"
};

/**
 * struct blknull_attr - one attribute
 * @name: its name
 * @def: default value
 * @min: smallest value
 * @max: largest value
 * @flags: BLKNULL_*
 * @choices: names of the values, ending with NULL; or NULL
 * @offset: of the field in struct blknull_config
 * @size: size of that field
 */
struct blknull_attr {
	const char *name;
	const char *def;
	long long min, max;
	unsigned int flags;
	const char *const *choices;
	size_t offset;
	size_t size;
};

#define BLKNULL_POWER_OF_2	BIT(0)
#define BLKNULL_OR_0		BIT(1)	/* 0 disables the limit */
#define BLKNULL_LIVE		BIT(2)	/* may change while power is on */
#define BLKNULL_CPU		BIT(3)	/* a number, local or next */
/* Refused unless another attribute is set. */
#define BLKNULL_NEEDS_MQ	BIT(4)
#define BLKNULL_NEEDS_CACHE	BIT(5)
#define BLKNULL_NEEDS_FAULTS	BIT(6)
#define BLKNULL_NEEDS_BIO	BIT(7)
#define BLKNULL_NEEDS_MEMORY	BIT(8)

/* The attributes by number, in the order of attrs.h. */
enum blknull_attr_number {
#define BLKNULL_ATTR(_name, ...)	BLKNULL_ATTR_##_name,
#include "attrs.h"
	BLKNULL_NR_ATTRS
};

extern const struct blknull_attr blknull_attrs[BLKNULL_NR_ATTRS];

int blknull_config_set(struct blknull_config *config,
		       const struct blknull_attr *attr, const char *text,
		       size_t len);
ssize_t blknull_config_show(const struct blknull_config *config,
			    const struct blknull_attr *attr, char *page);
int blknull_config_from_parameters(struct blknull_config *config,
				   unsigned int device);
int blknull_parameters_check(unsigned int nr_devices);
int blknull_parse_bool(const char *name, const char *text, size_t len,
		       bool *on);
int blknull_config_check(const struct blknull_config *config);

#endif /* BLKNULL_CONFIG_H */
