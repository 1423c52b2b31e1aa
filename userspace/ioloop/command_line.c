// SPDX-License-Identifier: GPL-2.0
/*
 * Reads the command line.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "command_line.h"
#include "engines.h"
#include "numbers.h"
#include "option_table.h"

static void no_such_option(const char *arg, char *msg, size_t size)
{
	const char *name = arg + strspn(arg, "-");
	const char *near = option_nearest(name, strcspn(name, "="));

	if (*arg != '-')
		snprintf(msg, size,
			 "%s: is not an option; ioloop reads no job files, only options such as --rw=read",
			 arg);
	else if (near)
		snprintf(msg, size, "%s: no such option; did you mean --%s?",
			 arg, near);
	else
		snprintf(msg, size, "%s: no such option; --help lists them",
			 arg);
}

static bool parse_name(const struct option *opt, const char *s, uint64_t *value)
{
	for (*value = 0; opt->names[*value]; (*value)++)
		if (!strcmp(s, opt->names[*value]))
			return true;
	return false;
}

/* Say which values are valid. */
static void bad_value(const struct option *opt, const char *value, char *msg,
		      size_t size)
{
	size_t i, n;

	n = (size_t)snprintf(msg, size, "--%s=%s: must be ", opt->name, value);
	if (n >= size)
		return;
	if (opt->kind == SIZE)
		snprintf(msg + n, size - n,
			 "a number from %" PRIu64 " to %" PRIu64
			 ", k, m, g or t may follow", opt->min, opt->max);
	if (opt->kind == TIME)
		snprintf(msg + n, size - n,
			 "a time from %" PRIu64 " to %" PRIu64
			 " seconds, us, ms, s, m, h or d may follow",
			 opt->min / NS_PER_S, opt->max / NS_PER_S);
	if (opt->kind == BOOL)
		snprintf(msg + n, size - n, "0 or 1");
	if (opt->kind != NAME)
		return;
	n += (size_t)snprintf(msg + n, size - n, "one of");
	for (i = 0; opt->names[i] && n < size; i++)
		n += (size_t)snprintf(msg + n, size - n, " %s", opt->names[i]);
}

static bool set(struct options *o, const struct option *opt, const char *value,
		char *msg, size_t size)
{
	uint64_t n = 0;
	bool ok = false;

	switch (opt->kind) {
	case TEXT:
		free(*option_text(o, opt));
		*option_text(o, opt) = strdup(value);
		if (!*option_text(o, opt))
			snprintf(msg, size, "no memory");
		return *option_text(o, opt);
	case NAME:
		ok = parse_name(opt, value, &n);
		break;
	case TIME:
		ok = parse_time(value, &n);
		break;
	case SIZE:
	case BOOL:
		ok = parse_size(value, &n);
		break;
	}
	if (!ok || (opt->kind != NAME && (n < opt->min || n > opt->max))) {
		bad_value(opt, value, msg, size);
		return false;
	}
	*option_number(o, opt) = n;
	return true;
}

/**
 * command_line_read() - read and check the command line
 * @o: to be filled in; command_line_free() frees what is in it, in every case
 * @argc: as in main()
 * @argv: as in main()
 * @msg: what is wrong, on COMMAND_BAD
 * @size: room in @msg
 *
 * Return: what to do.
 */
enum command command_line_read(struct options *o, int argc, char **argv,
			       char *msg, size_t size)
{
	const struct option *opt;
	const char *arg, *value;
	int i;

	engines_list();
	memset(o, 0, sizeof(*o));
	o->bs = 4096;
	o->iodepth = 1;
	o->pattern = UNSET;
	o->direct = UNSET;
	o->invalidate = UNSET;
	o->rounds = 1;
	o->repeat = 1;
	o->layouts = 1;
	o->warmup_ios = UNSET;
	o->numjobs = 1;
	o->streams = 1;

	for (i = 1; i < argc; i++) {
		arg = argv[i];
		if (!strcmp(arg, "--help"))
			return COMMAND_HELP;
		if (!strcmp(arg, "--version"))
			return COMMAND_VERSION;
		opt = NULL;
		if (!strncmp(arg, "--", 2))
			opt = option_find(arg + 2, strcspn(arg + 2, "="));
		if (!opt) {
			no_such_option(arg, msg, size);
			return COMMAND_BAD;
		}
		value = strchr(arg, '=');
		if (value)
			value++;
		else if (opt->kind == BOOL)
			value = "1";
		if (!value) {
			snprintf(msg, size, "%s: needs a value: %s=...", arg,
				 arg);
			return COMMAND_BAD;
		}
		if (!set(o, opt, value, msg, size))
			return COMMAND_BAD;
	}
	return check_options(o, msg, size) ? COMMAND_RUN : COMMAND_BAD;
}

/**
 * command_line_free() - free what command_line_read() allocated
 * @o: the options
 */
void command_line_free(struct options *o)
{
	size_t i;

	for (i = 0; i < nr_options; i++)
		if (option_table[i].kind == TEXT)
			free(*option_text(o, &option_table[i]));
	for (i = 0; i < o->nr_files; i++)
		free(o->files[i]);
}
