/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All options. One table is used to read them, to check their ranges and to
 * report what was in effect.
 */
#ifndef IOLOOP_OPTION_TABLE_H
#define IOLOOP_OPTION_TABLE_H

#include "options.h"

enum kind { SIZE, TIME, BOOL, NAME, TEXT };

/**
 * struct option - one option
 * @name: its name, with '_' for '-'
 * @kind: what its value is: a number with k, m, g behind it; a time; 0 or 1;
 *	one of @names; any text
 * @at: where in struct options it goes
 * @min: the least value
 * @max: the greatest
 * @names: for NAME
 * @engines: the engines that know the option; NULL: all
 */
struct option {
	const char *name;
	enum kind kind;
	size_t at;
	uint64_t min;
	uint64_t max;
	const char *const *names;
	const char *engines;
};

extern const struct option option_table[];
extern const size_t nr_options;
extern const char *const rw_names[];
extern const char *const pattern_names[];

/**
 * option_number() - where in struct options an option's number is
 * @o: the options
 * @opt: the option, of any kind but TEXT
 */
static inline uint64_t *option_number(struct options *o,
				      const struct option *opt)
{
	return (uint64_t *)((char *)o + opt->at);
}

/**
 * option_text() - where in struct options an option's text is
 * @o: the options
 * @opt: the option, of the kind TEXT
 */
static inline char **option_text(struct options *o, const struct option *opt)
{
	return (char **)((char *)o + opt->at);
}

const struct option *option_find(const char *name, size_t len);
const char *option_nearest(const char *name, size_t len);

#endif /* IOLOOP_OPTION_TABLE_H */
