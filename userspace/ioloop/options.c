// SPDX-License-Identifier: GPL-2.0
/*
 * Reads the command line.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
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
		snprintf(msg + n, size - n, opt->min ? "1" : "0 or 1");
	if (opt->kind != NAME)
		return;
	n += (size_t)snprintf(msg + n, size - n, "one of");
	for (i = 0; opt->names[i] && n < size; i++)
		n += (size_t)snprintf(msg + n, size - n, " %s", opt->names[i]);
}

/* On fio's command line each --name begins a job; "global" is for all. */
static bool only_one_job(const struct options *o, const char *value, char *msg,
			 size_t size)
{
	if (!o->name || !strcmp(o->name, "global"))
		return true;
	snprintf(msg, size,
		 "--name=%s: is a second job after '%s'; ioloop has one, so run it once for each",
		 value, o->name);
	return false;
}

static bool set(struct options *o, const struct option *opt, const char *value,
		char *msg, size_t size)
{
	uint64_t n = 0;
	bool ok = false;

	switch (opt->kind) {
	case TEXT:
		if (option_text(o, opt) == &o->name &&
		    !only_one_job(o, value, msg, size))
			return false;
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

/* An option that fio has another name for. Its range is checked, too. */
static bool set_alias(struct options *o, const struct alias *alias,
		      const char *value, char *msg, size_t size)
{
	const struct option *opt = option_find(alias->option, strlen(alias->option));
	char text[32];
	uint64_t n;

	switch (alias->spelling) {
	case WHEN:
		if (!strcmp(value, "auto")) {
			*option_number(o, opt) = UNSET;
			return true;
		}
		n = !strcmp(value, "always");
		if (n || !strcmp(value, "never"))
			break;
		snprintf(msg, size,
			 "--%s=%s: must be one of always never auto",
			 alias->name, value);
		return false;
	case NOT:
		if (parse_size(value, &n) && n <= 1) {
			n = !n;
			break;
		}
		snprintf(msg, size, "--%s=%s: must be 0 or 1", alias->name,
			 value);
		return false;
	case REST:
		if (parse_size(value, &n) && n >= 100 - opt->max &&
		    n <= 100 - opt->min) {
			n = 100 - n;
			break;
		}
		snprintf(msg, size, "--%s=%s: must be from %" PRIu64 " to %"
			 PRIu64, alias->name, value, 100 - opt->max,
			 100 - opt->min);
		return false;
	default:
		return set(o, opt, value, msg, size);
	}
	snprintf(text, sizeof(text), "%" PRIu64, n);
	return set(o, opt, text, msg, size);
}

/**
 * options_parse() - read and check the command line
 * @o: to be filled in; options_free() frees what is in it, in every case
 * @argc: as in main()
 * @argv: as in main()
 * @msg: what is wrong, on OPTIONS_BAD
 * @msg_size: room in @msg
 *
 * Return: what to do.
 */
enum options_result options_parse(struct options *o, int argc, char **argv,
				  char *msg, size_t msg_size)
{
	const char *arg, *name, *value;
	const struct option *opt;
	const struct alias *alias;
	enum kind kind;
	size_t len;
	int i;

	engines_list();
	memset(o, 0, sizeof(*o));
	o->bs = 4096;
	o->iodepth = 1;
	o->pattern = UNSET;
	o->rwmixread = 50;
	o->randrepeat = 1;
	o->randseed = UNSET;
	o->norandommap = 1;
	o->direct = UNSET;
	o->invalidate = UNSET;
	o->rounds = 1;
	o->warmup_ios = UNSET;
	o->numa_node = UNSET;
	o->live = UNSET;
	o->numjobs = 1;

	for (i = 1; i < argc; i++) {
		arg = argv[i];
		if (!strcmp(arg, "--help") || !strcmp(arg, "-h"))
			return OPTIONS_HELP;
		if (!strcmp(arg, "--version"))
			return OPTIONS_VERSION;
		value = strchr(arg, '=');
		name = arg + (arg[0] == '-') + (arg[0] == '-' && arg[1] == '-');
		len = value ? (size_t)(value - name) : strlen(name);
		opt = name > arg ? option_find(name, len) : NULL;
		alias = name > arg ? option_find_alias(name, len) : NULL;
		if (!opt && !alias) {
			no_such_option(arg, msg, msg_size);
			return OPTIONS_BAD;
		}
		kind = opt ? opt->kind :
			     option_find(alias->option, strlen(alias->option))->kind;
		if (alias && alias->spelling == WHEN)
			kind = TEXT;
		if (value)
			value++;
		else if (kind != BOOL)
			value = i + 1 < argc ? argv[++i] : NULL;
		else if (i + 1 < argc && (!strcmp(argv[i + 1], "0") ||
					  !strcmp(argv[i + 1], "1")))
			value = argv[++i];
		else
			value = "1";
		if (!value) {
			snprintf(msg, msg_size, "%s: needs a value", arg);
			return OPTIONS_BAD;
		}
		if (opt ? !set(o, opt, value, msg, msg_size) :
			  !set_alias(o, alias, value, msg, msg_size))
			return OPTIONS_BAD;
	}
	return check_options(o, msg, msg_size) ? OPTIONS_RUN : OPTIONS_BAD;
}

/**
 * options_free() - free what options_parse() allocated
 * @o: the options
 */
void options_free(struct options *o)
{
	size_t i;

	for (i = 0; i < nr_options; i++)
		if (option_table[i].kind == TEXT)
			free(*option_text(o, &option_table[i]));
	for (i = 0; i < o->nr_files; i++)
		free(o->files[i]);
}
