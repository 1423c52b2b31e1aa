// SPDX-License-Identifier: GPL-2.0
/*
 * Reads and checks the command line. One table says what there is: it serves
 * the reading, the checking of ranges, and the report of what was in effect.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#include "../../kernel/include/uapi/biogen.h"
#include "engine.h"
#include "options.h"
#include "report.h"

#define NS_PER_S	UINT64_C(1000000000)
#define MAX_BS		(UINT32_C(1) << 30)

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

/* Every engine, by all of its names; the first is the default. */
static const struct {
	const char *name;
	const struct engine *engine;
} engines[] = {
	{ "sync", &engine_sync },
	{ "psync", &engine_sync },
	{ "vsync", &engine_vsync },
	{ "pvsync2", &engine_vsync },
	{ "libaio", &engine_libaio },
	{ "io_uring", &engine_io_uring },
	{ "mmap", &engine_mmap },
	{ "buffered", &engine_buffered },
	{ "splice", &engine_splice },
	{ "biogen", &engine_biogen },
	{ "null", &engine_null },
	{ "syscall", &engine_syscall },
	{ "calibrate", &engine_calibrate },
};

/* Their names, as the table wants them; the NULL at the end stays. */
static const char *engine_names[ARRAY_SIZE(engines) + 1];

static const char *const rw_names[] = {
	"read", "write", "rw", "randread", "randwrite", "randrw", "readwrite",
	NULL
};

static const char *const pattern_names[] = {
	"sequential", "random", "fixed", NULL
};

static const char *const inject_names[] = {
	"submit_bio", "submit_bio_noacct", NULL
};

/* Job k on the k-th processor; fio's default is that each runs on any. */
static const char *const policy_names[] = { "split", NULL };

static const char *const format_names[] = { "normal", "json", NULL };

/* The engines that make each I/O by themselves. */
#define SIZED	"sync vsync libaio io_uring mmap buffered splice"

#define OPT(name, kind, ...)	\
	{ #name, kind, offsetof(struct options, name), __VA_ARGS__ }

static const struct option table[] = {
	OPT(name, TEXT, 0, 0, NULL, NULL),
	OPT(filename, TEXT, 0, 0, NULL, NULL),
	OPT(ioengine, NAME, 0, 0, engine_names, NULL),
	OPT(rw, NAME, 0, 0, rw_names, NULL),
	OPT(rwmixread, SIZE, 1, 99, NULL, NULL),
	OPT(randrepeat, BOOL, 0, 1, NULL, NULL),
	OPT(randseed, SIZE, 0, INT64_MAX, NULL, NULL),
	OPT(norandommap, BOOL, 1, 1, NULL, NULL),
	OPT(pattern, NAME, 0, 0, pattern_names, NULL),
	OPT(bs, SIZE, 1, MAX_BS, NULL, NULL),
	OPT(bsrange, TEXT, 0, 0, NULL, SIZED),
	OPT(bssplit, TEXT, 0, 0, NULL, SIZED),
	OPT(iodepth, SIZE, 1, 65536, NULL, NULL),
	OPT(iodepth_batch, SIZE, 1, 65536, NULL, SIZED " biogen"),
	OPT(iodepth_batch_complete_min, SIZE, 1, 65536, NULL, SIZED),
	OPT(iodepth_batch_complete_max, SIZE, 1, 65536, NULL, SIZED),
	OPT(offset, SIZE, 0, INT64_MAX, NULL, NULL),
	OPT(size, SIZE, 0, INT64_MAX, NULL, NULL),
	OPT(direct, BOOL, 0, 1, NULL, NULL),
	OPT(invalidate, BOOL, 0, 1, NULL, NULL),
	OPT(hipri, BOOL, 0, 1, NULL, "vsync io_uring biogen"),
	OPT(nowait, BOOL, 0, 1, NULL, "vsync"),
	OPT(dsync, BOOL, 0, 1, NULL, "vsync"),
	OPT(fixedbufs, BOOL, 0, 1, NULL, "io_uring"),
	OPT(registerfiles, BOOL, 0, 1, NULL, "io_uring"),
	OPT(sqthread_poll, BOOL, 0, 1, NULL, "io_uring"),
	OPT(single_issuer, BOOL, 0, 1, NULL, "io_uring"),
	OPT(defer_taskrun, BOOL, 0, 1, NULL, "io_uring"),
	OPT(userspace_reap, BOOL, 0, 1, NULL, "libaio"),
	OPT(split, SIZE, 0, MAX_SPLIT, NULL, "libaio"),
	OPT(fresh, BOOL, 0, 1, NULL, "biogen"),
	OPT(inject, NAME, 0, 0, inject_names, "biogen"),
	OPT(optional, BOOL, 0, 1, NULL, "vsync io_uring"),
	OPT(number_ios, SIZE, 0, INT64_MAX, NULL, NULL),
	OPT(runtime, TIME, 0, 1000000 * NS_PER_S, NULL, NULL),
	OPT(time_based, BOOL, 0, 1, NULL, NULL),
	OPT(rounds, SIZE, 1, 1000000, NULL, NULL),
	OPT(warmup_ios, SIZE, 0, INT64_MAX, NULL, NULL),
	OPT(drain, TIME, 0, 3600 * NS_PER_S, NULL, NULL),
	OPT(loops, SIZE, 0, UINT32_MAX, NULL, NULL),
	OPT(rate_iops, SIZE, 0, 1000000000, NULL, NULL),
	OPT(rtprio, SIZE, 0, 99, NULL, NULL),
	OPT(hugepages, BOOL, 0, 1, NULL, NULL),
	OPT(numa_node, SIZE, 0, MAX_NODES - 1, NULL, NULL),
	OPT(numjobs, SIZE, 1, 4096, NULL, NULL),
	OPT(thread, BOOL, 0, 1, NULL, NULL),
	OPT(share_file, BOOL, 0, 1, NULL, NULL),
	OPT(cpus_allowed, TEXT, 0, 0, NULL, NULL),
	OPT(cpus_allowed_policy, NAME, 0, 0, policy_names, NULL),
	OPT(stonewall, BOOL, 0, 1, NULL, NULL),
	OPT(lat, BOOL, 0, 1, NULL, SIZED " biogen"),
	OPT(gtod_reduce, BOOL, 0, 1, NULL, NULL),
	OPT(pmu, BOOL, 0, 1, NULL, NULL),
	OPT(perf_control, TEXT, 0, 0, NULL, NULL),
	OPT(live, BOOL, 0, 1, NULL, NULL),
	OPT(region, SIZE, 0, 65535, NULL, NULL),
	OPT(allow_mounted, BOOL, 0, 1, NULL, NULL),
	OPT(calibrate, BOOL, 0, 1, NULL, NULL),
	OPT(group_reporting, BOOL, 0, 1, NULL, NULL),
	OPT(output_format, NAME, 0, 0, format_names, NULL),
	OPT(output, TEXT, 0, 0, NULL, NULL),
};

/* What the value of another spelling is to the option. */
enum spelling { SAME, NOT, REST, WHEN };

/**
 * struct alias - what fio also calls an option, or the reverse of one
 * @name: the other name
 * @option: the option
 * @spelling: what becomes of the value: nothing; 0 for 1; 100 less the value;
 *	1, 0 or nothing for "always", "never" and "auto"
 */
static const struct alias {
	const char *name;
	const char *option;
	enum spelling spelling;
} aliases[] = {
	{ "readwrite", "rw", SAME },
	{ "blocksize", "bs", SAME },
	{ "blocksize_range", "bsrange", SAME },
	{ "timeout", "runtime", SAME },
	{ "iodepth_batch_submit", "iodepth_batch", SAME },
	{ "iodepth_batch_complete", "iodepth_batch_complete_min", SAME },
	{ "allow_mounted_write", "allow_mounted", SAME },
	{ "buffered", "direct", NOT },
	{ "rwmixwrite", "rwmixread", REST },
	{ "eta", "live", WHEN },
};

/* The most I/O buffers may take: a typing error shall not eat the machine. */
#define MAX_BUFFERS	(UINT64_C(16) << 30)

static uint64_t *number(struct options *o, const struct option *opt)
{
	return (uint64_t *)((char *)o + opt->at);
}

static char **text(struct options *o, const struct option *opt)
{
	return (char **)((char *)o + opt->at);
}

/* --allow-mounted and --allow_mounted are the same. */
static bool same_name(const char *typed, size_t len, const char *name)
{
	size_t i;

	for (i = 0; i < len; i++)
		if ((typed[i] == '-' ? '_' : typed[i]) != name[i])
			return false;
	return !name[len];
}

static const struct option *find(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++)
		if (same_name(name, len, table[i].name))
			return &table[i];
	return NULL;
}

static const struct alias *find_alias(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(aliases); i++)
		if (same_name(name, len, aliases[i].name))
			return &aliases[i];
	return NULL;
}

/* No name of an option is longer. */
#define MAX_NAME	32

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * How many letters must be changed, left out, put in or swapped with the next
 * to make the one name from the other.
 */
static size_t distance(const char *a, size_t len, const char *b)
{
	size_t d[MAX_NAME + 1][MAX_NAME + 1];
	const size_t other = strlen(b);
	size_t i, j, differ;

	if (len > MAX_NAME || other > MAX_NAME)
		return MAX_NAME;
	for (i = 0; i <= len; i++)
		d[i][0] = i;
	for (j = 0; j <= other; j++)
		d[0][j] = j;
	for (i = 1; i <= len; i++) {
		for (j = 1; j <= other; j++) {
			differ = (a[i - 1] == '-' ? '_' : a[i - 1]) != b[j - 1];
			d[i][j] = least(d[i - 1][j - 1] + differ,
					least(d[i - 1][j], d[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[len][other];
}

/* The option with the most similar name, if it is similar; else NULL. */
static const char *nearest(const char *name, size_t len)
{
	size_t best = len < 6 ? 2 : len / 3 + 1, i, d;
	const char *found = NULL, *other;

	for (i = 0; i < ARRAY_SIZE(table) + ARRAY_SIZE(aliases); i++) {
		other = i < ARRAY_SIZE(table) ? table[i].name :
			aliases[i - ARRAY_SIZE(table)].name;
		d = distance(name, len, other);
		if (d >= best)
			continue;
		best = d;
		found = other;
	}
	return found;
}

static void no_such_option(const char *arg, char *msg, size_t size)
{
	const char *name = arg + strspn(arg, "-");
	const char *near = nearest(name, strcspn(name, "="));

	if (*arg != '-')
		snprintf(msg, size,
			 "%s: is not an option; ioloop reads no job files, only options such as --rw=read",
			 arg);
	else if (near)
		snprintf(msg, size, "%s: no such option; is --%s meant?", arg,
			 near);
	else
		snprintf(msg, size, "%s: no such option; --help lists them",
			 arg);
}

/* A number, decimal or with 0x before it; what is behind it goes to *rest. */
static bool parse_number(const char *s, uint64_t *value, const char **rest)
{
	const bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
	char *end;

	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	*value = strtoull(s, &end, hex ? 16 : 10);
	*rest = end;
	return !errno;
}

static bool parse_unit(const char *unit, const char *const *names,
		       const uint64_t *factors, uint64_t *value)
{
	size_t i;

	for (i = 0; names[i]; i++) {
		if (strcasecmp(unit, names[i]))
			continue;
		return !__builtin_mul_overflow(*value, factors[i], value);
	}
	return false;
}

static bool parse_size(const char *s, uint64_t *value)
{
	static const char *const names[] = {
		"", "b", "k", "kb", "m", "mb", "g", "gb", "t", "tb", NULL
	};
	static const uint64_t factors[] = {
		1, 1, 1u << 10, 1u << 10, 1u << 20, 1u << 20, 1u << 30,
		1u << 30, 1ull << 40, 1ull << 40
	};

	return parse_number(s, value, &s) &&
	       parse_unit(s, names, factors, value);
}

static bool parse_time(const char *s, uint64_t *value)
{
	static const char *const names[] = {
		"", "s", "ms", "msec", "us", "usec", "m", "h", "d", NULL
	};
	static const uint64_t factors[] = {
		NS_PER_S, NS_PER_S, 1000000, 1000000, 1000, 1000,
		60 * NS_PER_S, 3600 * NS_PER_S, 86400 * NS_PER_S
	};

	return parse_number(s, value, &s) &&
	       parse_unit(s, names, factors, value);
}

static bool parse_name(const struct option *opt, const char *s, uint64_t *value)
{
	for (*value = 0; opt->names[*value]; (*value)++)
		if (!strcmp(s, opt->names[*value]))
			return true;
	return false;
}

/* Says what would have been right. */
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
		if (text(o, opt) == &o->name &&
		    !only_one_job(o, value, msg, size))
			return false;
		free(*text(o, opt));
		*text(o, opt) = strdup(value);
		if (!*text(o, opt))
			snprintf(msg, size, "no memory");
		return *text(o, opt);
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
	*number(o, opt) = n;
	return true;
}

/* What fio has another name for. The option's own range is checked, too. */
static bool set_alias(struct options *o, const struct alias *alias,
		      const char *value, char *msg, size_t size)
{
	const struct option *opt = find(alias->option, strlen(alias->option));
	char text[32];
	uint64_t n;

	switch (alias->spelling) {
	case WHEN:
		if (!strcmp(value, "auto")) {
			*number(o, opt) = UNSET;
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

/* As parse_size(), but what is behind the size goes to *rest. */
static bool parse_bs(const char *s, uint32_t *bs, const char **rest)
{
	const size_t len = strcspn(s, "-/:");
	uint64_t value;
	char text[32];

	*rest = s + len;
	if (len >= sizeof(text))
		return false;
	memcpy(text, s, len);
	text[len] = '\0';
	if (!parse_size(text, &value) || !value || value > MAX_BS)
		return false;
	*bs = (uint32_t)value;
	return true;
}

/* 4k-64k, as in fio: any multiple of the smallest, each as often */
static bool parse_bsrange(struct options *o, char *msg, size_t size)
{
	uint32_t min, max;
	const char *s;

	if (!parse_bs(o->bsrange, &min, &s) || *s != '-' ||
	    !parse_bs(s + 1, &max, &s) || *s || max < min ||
	    max / min > MAX_SIZES) {
		snprintf(msg, size,
			 "--bsrange=%s: must be two sizes from 1 to 1g, such as 4k-64k, the second at most %u times the first",
			 o->bsrange, MAX_SIZES);
		return false;
	}
	for (; o->nr_sizes < max / min; o->nr_sizes++)
		o->sizes[o->nr_sizes] = min * (o->nr_sizes + 1);
	return true;
}

/* A share of bssplit: percents, or nothing, which makes it one of the rest. */
static bool parse_share(const char *s, uint64_t *percent, const char **rest)
{
	*percent = 0;
	*rest = s;
	if (*s != '/')
		return true;
	if (s[1] == ':' || !s[1]) {
		*rest = s + 1;
		return true;
	}
	return parse_number(s + 1, percent, rest) && *percent &&
	       *percent <= 100;
}

/* What the sizes without a share of their own get: all that is left. */
static bool fill_sizes(struct options *o, const uint32_t *bs,
		       const uint64_t *percent, size_t nr)
{
	uint64_t left = 100, shares = 0, n;
	size_t i;

	for (i = 0; i < nr; i++) {
		if (percent[i] > left)
			return false;
		left -= percent[i];
		shares += !percent[i];
	}
	if (shares ? left < shares : left)
		return false;
	for (i = 0; i < nr; i++) {
		n = percent[i];
		if (!n) {
			n = left / shares;
			left -= n;
			shares--;
		}
		while (n--)
			o->sizes[o->nr_sizes++] = bs[i];
	}
	return true;
}

/* 4k/10:64k/50:32k, as in fio: sizes and what percentage of I/Os has them */
static bool parse_bssplit(struct options *o, char *msg, size_t size)
{
	const char *s = o->bssplit;
	uint64_t percent[100];
	uint32_t bs[100];
	size_t nr = 0;

	while (nr < ARRAY_SIZE(bs) && parse_bs(s, &bs[nr], &s) &&
	       parse_share(s, &percent[nr], &s)) {
		nr++;
		if (!*s && fill_sizes(o, bs, percent, nr))
			return true;
		if (*s++ != ':')
			break;
	}
	snprintf(msg, size,
		 "--bssplit=%s: must be sizes from 1 to 1g with shares that make 100 percent, such as 4k/10:64k/50:32k/40",
		 o->bssplit);
	return false;
}

static bool check_sizes(struct options *o, char *msg, size_t size)
{
	unsigned int i;

	o->min_bs = o->bs;
	if (!o->bsrange && !o->bssplit)
		return true;
	if (o->bsrange && o->bssplit) {
		snprintf(msg, size, "--bssplit=%s: does not go with --bsrange",
			 o->bssplit);
		return false;
	}
	if (o->split) {
		snprintf(msg, size,
			 "--split: needs I/Os of one size; leave out --bsrange and --bssplit");
		return false;
	}
	if (!(o->bsrange ? parse_bsrange(o, msg, size) :
			   parse_bssplit(o, msg, size)))
		return false;
	o->bs = 0;
	o->min_bs = MAX_BS;
	for (i = 0; i < o->nr_sizes; i++) {
		if (o->sizes[i] > o->bs)
			o->bs = o->sizes[i];
		if (o->sizes[i] < o->min_bs)
			o->min_bs = o->sizes[i];
	}
	return true;
}

/* 0,2-4 as in fio and taskset */
static bool parse_cpus(struct options *o, char *msg, size_t size)
{
	const char *s = o->cpus_allowed;
	uint64_t first, last;

	for (;;) {
		if (!parse_number(s, &first, &s))
			break;
		last = first;
		if (*s == '-' && !parse_number(s + 1, &last, &s))
			break;
		if (last < first || last >= MAX_CPUS)
			break;
		for (; first <= last && o->nr_cpus < MAX_CPUS; first++)
			o->cpus[o->nr_cpus++] = (unsigned int)first;
		if (!*s)
			return true;
		if (*s++ != ',')
			break;
	}
	snprintf(msg, size,
		 "--cpus_allowed=%s: must be processors from 0 to %d, such as 0,2-4",
		 o->cpus_allowed, MAX_CPUS - 1);
	return false;
}

/* Names are separated by ':', which a name itself has as '\:'. As in fio. */
static bool parse_files(struct options *o, char *msg, size_t size)
{
	const char *s = o->filename;
	char *to;

	while (o->nr_files < MAX_DEVICES) {
		to = malloc(strlen(s) + 1);
		if (!to) {
			snprintf(msg, size, "no memory");
			return false;
		}
		o->files[o->nr_files++] = to;
		while (*s && *s != ':') {
			if (s[0] == '\\' && s[1] == ':')
				s++;
			*to++ = *s++;
		}
		*to = '\0';
		if (!*o->files[o->nr_files - 1]) {
			snprintf(msg, size, "--filename=%s: a name is empty",
				 o->filename);
			return false;
		}
		if (!*s++)
			return true;
	}
	snprintf(msg, size, "--filename: more than %d names", MAX_DEVICES);
	return false;
}

static bool has_word(const char *words, const char *word)
{
	const size_t len = strlen(word);

	while (*words) {
		if (strcspn(words, " ") == len && !strncmp(words, word, len))
			return true;
		words += strcspn(words, " ");
		words += strspn(words, " ");
	}
	return false;
}

/* Options of other engines would do nothing here, and are refused. */
static bool check_engine_options(struct options *o, char *msg, size_t size)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		if (!table[i].engines || !*number(o, &table[i]) ||
		    has_word(table[i].engines, o->engine->name))
			continue;
		snprintf(msg, size, "--%s: is for --ioengine=%s, not for %s",
			 table[i].name, table[i].engines, o->engine->name);
		return false;
	}
	return true;
}

/*
 * Without --filename fio gives each job a file of its own, called after --name,
 * the job and the file. Here they are as many devices with a job on each.
 */
static bool name_files(struct options *o, char *msg, size_t size)
{
	const char *s;
	char *names = NULL;
	size_t len = 0;
	uint64_t job;
	FILE *out;

	if (o->numjobs > MAX_DEVICES) {
		snprintf(msg, size,
			 "--numjobs=%" PRIu64
			 ": must be at most %d without --filename",
			 o->numjobs, MAX_DEVICES);
		return false;
	}
	out = open_memstream(&names, &len);
	for (job = 0; out && job < o->numjobs; job++) {
		if (job)
			fputc(':', out);
		for (s = o->name; *s; s++) {
			if (*s == ':')
				fputc('\\', out);
			fputc(*s == '/' ? '_' : *s, out);
		}
		fprintf(out, ".%" PRIu64 ".0", job);
	}
	if (!out || fclose(out)) {
		free(names);
		snprintf(msg, size, "no memory");
		return false;
	}
	o->filename = names;
	o->numjobs = 1;
	return true;
}

/* A batch goes down and comes back as a whole, but for biogen's bios. */
static bool check_batches(struct options *o, char *msg, size_t size)
{
	uint64_t *const batch[] = {
		&o->iodepth_batch, &o->iodepth_batch_complete_min,
		&o->iodepth_batch_complete_max
	};
	static const char *const names[] = {
		"iodepth_batch", "iodepth_batch_complete_min",
		"iodepth_batch_complete_max"
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(batch); i++) {
		if (!*batch[i])
			*batch[i] = o->iodepth;
		if (*batch[i] == o->iodepth ||
		    (!i && o->engine == &engine_biogen &&
		     *batch[i] < o->iodepth))
			continue;
		snprintf(msg, size,
			 "--%s=%" PRIu64 ": must be %s--iodepth=%" PRIu64
			 " for %s", names[i], *batch[i],
			 !i && o->engine == &engine_biogen ? "at most " : "",
			 o->iodepth, o->engine->name);
		return false;
	}
	return true;
}

static bool check_engine(struct options *o, char *msg, size_t size)
{
	const struct engine *e;

	while (o->calibrate && engines[o->ioengine].engine != &engine_calibrate)
		o->ioengine++;
	e = engines[o->ioengine].engine;
	if (o->split && e == &engine_libaio)
		e = &engine_libaio_split;
	o->engine = e;
	o->calibrate = e == &engine_calibrate;
	if ((e->flags & ENGINE_FILE) && !o->filename && o->name &&
	    !name_files(o, msg, size))
		return false;

	if (o->direct == UNSET)
		o->direct = e == &engine_biogen;
	if (o->invalidate == UNSET)
		o->invalidate = (e->flags & ENGINE_FILE) && !o->direct &&
				!(e->flags & (ENGINE_CACHED | ENGINE_WARM));
	if (o->iodepth > e->max_iodepth)
		snprintf(msg, size,
			 "--iodepth=%" PRIu64 ": must be from 1 to %" PRIu64
			 " for %s", o->iodepth, e->max_iodepth, e->name);
	else if ((e->flags & ENGINE_FILE) && !o->filename)
		snprintf(msg, size, "--filename: %s needs a file or a device",
			 e->name);
	else if (!(e->flags & ENGINE_FILE) && o->filename)
		snprintf(msg, size, "--filename=%s: %s uses none",
			 o->filename, e->name);
	else if ((e->flags & ENGINE_CACHED) && o->direct)
		snprintf(msg, size, "--direct=1: must be 0 for %s", e->name);
	else if ((e->flags & ENGINE_READS) &&
		 (options_write(o) || options_mixed(o)))
		snprintf(msg, size,
			 "--rw=%s: must be read or randread, %s cannot write",
			 rw_names[o->rw], e->name);
	else if (e == &engine_biogen && o->bs > BIOGEN_MAX_BLOCK_SIZE)
		snprintf(msg, size,
			 "--bs=%" PRIu64 ": must be at most %u for biogen",
			 o->bs, BIOGEN_MAX_BLOCK_SIZE);
	else if (e == &engine_biogen && o->rounds > BIOGEN_MAX_ROUNDS)
		snprintf(msg, size,
			 "--rounds=%" PRIu64 ": must be at most %u for biogen",
			 o->rounds, BIOGEN_MAX_ROUNDS);
	else
		return check_engine_options(o, msg, size) &&
		       check_batches(o, msg, size);
	return false;
}

/*
 * As in fio: one pass over what --size says, unless something else says when to
 * end.
 */
static bool check_end(struct options *o, char *msg, size_t size)
{
	const bool sized = o->filename || o->size;

	if (o->loops && (o->number_ios || o->time_based || !sized)) {
		snprintf(msg, size,
			 "--loops=%" PRIu64
			 ": needs --filename or --size, and neither --number_ios nor --time_based",
			 o->loops);
		return false;
	}
	if (o->calibrate && !o->number_ios) {
		snprintf(msg, size,
			 "--calibrate: needs --number_ios, the iterations in one round");
		return false;
	}
	if (!o->filename && o->size && o->size < o->bs) {
		snprintf(msg, size, "--size=%" PRIu64
			 ": must be at least --bs=%" PRIu64, o->size, o->bs);
		return false;
	}
	if (!o->loops && !o->number_ios && !o->time_based && sized)
		o->loops = 1;
	if (o->rounds > 1 && !o->number_ios && !o->loops) {
		snprintf(msg, size,
			 "--rounds=%" PRIu64
			 ": needs --number_ios, the I/Os in one round",
			 o->rounds);
		return false;
	}
	return true;
}

static bool choose_seed(struct options *o, char *msg, size_t size)
{
	if (o->randseed != UNSET)
		return true;
	o->randseed = 1;
	if (o->randrepeat)
		return true;
	if (getrandom(&o->randseed, sizeof(o->randseed), 0) !=
	    sizeof(o->randseed)) {
		snprintf(msg, size, "--randrepeat=0: no random numbers: %s",
			 strerror(errno));
		return false;
	}
	o->randseed &= INT64_MAX;
	return true;
}

static bool check_pattern(struct options *o, char *msg, size_t size)
{
	const bool random = o->rw >= RW_RANDREAD;

	if (o->pattern == UNSET)
		o->pattern = random ? PATTERN_RANDOM : PATTERN_SEQUENTIAL;
	if (!random || o->pattern == PATTERN_RANDOM)
		return true;
	snprintf(msg, size, "--pattern=%s: must be random with --rw=%s",
		 pattern_names[o->pattern], rw_names[o->rw]);
	return false;
}

/* A person who waits gets to see how far it is. */
static bool live_by_default(const struct options *o)
{
	return isatty(STDERR_FILENO) && o->output_format == FORMAT_NORMAL &&
	       !o->number_ios && !o->engine->round && !o->engine->rounds;
}

/* What one option alone does not show. */
static bool check(struct options *o, char *msg, size_t size)
{
	if (o->rw == RW_READWRITE)
		o->rw = RW_MIXED;
	if (!check_engine(o, msg, size) || !check_pattern(o, msg, size) ||
	    !check_sizes(o, msg, size) || !check_end(o, msg, size) ||
	    !choose_seed(o, msg, size))
		return false;
	if (o->live == UNSET)
		o->live = live_by_default(o);
	if ((o->rate_iops || o->live) &&
		 (o->engine->round || o->engine->rounds))
		snprintf(msg, size, "--%s: does not go with %s",
			 o->live ? "live" : "rate_iops", o->engine->name);
	else if (o->pmu && o->engine->rounds)
		snprintf(msg, size, "--pmu: does not see the threads of %s",
			 o->engine->name);
	else if (o->perf_control && !strchr(o->perf_control, ','))
		snprintf(msg, size,
			 "--perf_control=%s: not CTL,ACK, two FIFOs of perf",
			 o->perf_control);
	else if (o->lat && o->gtod_reduce)
		snprintf(msg, size, "--lat: does not go with --gtod_reduce");
	else if (o->hipri && !o->direct)
		snprintf(msg, size,
			 "--hipri=1: needs --direct=1, the page cache cannot be polled");
	else if (o->share_file && !(o->thread && o->filename))
		snprintf(msg, size,
			 "--share_file=1: needs --thread=1 and --filename");
	else if (o->defer_taskrun && !o->single_issuer)
		snprintf(msg, size,
			 "--defer_taskrun=1: needs --single_issuer=1");
	else if (o->split && o->userspace_reap)
		snprintf(msg, size,
			 "--split=%" PRIu64 ": does not go with --userspace_reap",
			 o->split);
	else if (o->split && o->bs % o->split)
		snprintf(msg, size,
			 "--split=%" PRIu64 ": must divide --bs=%" PRIu64,
			 o->split, o->bs);
	else if (o->iodepth * o->bs > MAX_BUFFERS / o->numjobs)
		snprintf(msg, size,
			 "--bs=%" PRIu64
			 ": --iodepth times --numjobs such buffers exceed %"
			 PRIu64 " bytes", o->bs, MAX_BUFFERS);
	else
		return (!o->filename || parse_files(o, msg, size)) &&
		       (!o->cpus_allowed || parse_cpus(o, msg, size));
	return false;
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

	for (i = 0; i < (int)ARRAY_SIZE(engines); i++)
		engine_names[i] = engines[i].name;

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
		opt = name > arg ? find(name, len) : NULL;
		alias = name > arg ? find_alias(name, len) : NULL;
		if (!opt && !alias) {
			no_such_option(arg, msg, msg_size);
			return OPTIONS_BAD;
		}
		kind = opt ? opt->kind :
			     find(alias->option, strlen(alias->option))->kind;
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
	return check(o, msg, msg_size) ? OPTIONS_RUN : OPTIONS_BAD;
}

/**
 * options_free() - free what options_parse() allocated
 * @o: the options
 */
void options_free(struct options *o)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].kind == TEXT)
			free(*text(o, &table[i]));
	for (i = 0; i < o->nr_files; i++)
		free(o->files[i]);
}

/**
 * options_help() - print the help
 * @out: where to
 */
void options_help(FILE *out)
{
	static const char help[] =
"  ioloop --filename=/dev/sdb --direct=1 --rw=randread --runtime=10 --time_based\n"
"  ioloop --filename=/dev/blknull0 --direct=1 --number_ios=200 --rounds=50\n"
"Times one kind of I/O in a short loop. Options are fio's. Writes destroy data!\n"
"  --ioengine=    psync pvsync2 libaio io_uring mmap buffered splice biogen null\n"
"                 syscall; --name=JOB: names it, and files if there are no others\n"
"  --rw=          read write rw randread randwrite randrw; --rwmixread=50 (%)\n"
"  --pattern=fixed  always at --offset; --randseed=1 --randrepeat=1: random ones\n"
"  --bs=4k        block size; or any of --bsrange=4k-64k, --bssplit=4k/90:64k/10\n"
"  --offset=SIZE --size=SIZE   part of the device; --iodepth=1: I/Os per batch\n"
"  --direct=0|1   bypass the page cache; --invalidate=0|1: empty it, each round\n"
"  --time_based --runtime=TIME   for a time; --loops=N: passes; default is one\n"
"  --number_ios=N --rounds=N --warmup_ios=N   I/Os per round; rounds; before it\n"
"  --numjobs=N --thread --share_file --cpus_allowed=LIST --rate_iops=N   jobs\n"
"  --rtprio=N --numa_node=N --hugepages   FIFO scheduling; where buffers lie\n"
"  --hipri --nowait --dsync --fixedbufs --registerfiles --sqthread_poll --fresh\n"
"  --single_issuer --defer_taskrun --userspace_reap --split=N --iodepth_batch=N\n"
"  --inject=submit_bio|submit_bio_noacct --optional   of some engines; ioloop(1)\n"
"  --lat --pmu    latencies; performance counters; --live=0|1: a line per second\n"
"  --region=N --perf_control=CTL,ACK   markers' number; FIFOs of perf record\n"
"  --drain=TIME   sleep before and after the rounds, until deferred work is done\n"
"  --allow-mounted   write even to a device that is in use\n"
"  --calibrate    no I/O: --number_ios loops of known length\n"
"  --output-format=normal|json --output=FILE --group_reporting   the report\n"
"Exit status: 1 if an I/O failed, 2 if the command line is wrong; see ioloop(1)\n";

	fputs(help, out);
}

static void print_size(uint64_t size, FILE *out)
{
	static const char units[] = "kmg";
	size_t i = 0;

	while (i < strlen(units) && size && !(size % 1024)) {
		size /= 1024;
		i++;
	}
	fprintf(out, "%" PRIu64 "%.*s", size, i > 0, units + i - (i > 0));
}

/**
 * options_summary() - print what kind of I/O it is
 * @o: the options
 * @out: where to
 */
void options_summary(const struct options *o, FILE *out)
{
	fprintf(out, "ioengine=%s", engines[o->ioengine].name);
	if (!o->nr_files)
		return;
	fprintf(out, ", rw=%s, ", rw_names[o->rw]);
	if (o->pattern == PATTERN_FIXED)
		fputs("pattern=fixed, ", out);
	fputs("bs=", out);
	if (o->nr_sizes) {
		print_size(o->min_bs, out);
		fputc('-', out);
	}
	print_size(o->bs, out);
	fprintf(out, ", iodepth=%" PRIu64 ", direct=%" PRIu64, o->iodepth,
		o->direct);
}

/**
 * options_json() - print the options in effect as a JSON object
 * @o: the options
 * @out: where to
 */
void options_json(const struct options *o, FILE *out)
{
	const struct option *opt;
	const char *value;
	uint64_t n;
	size_t i;

	fputc('{', out);
	for (i = 0; i < ARRAY_SIZE(table); i++) {
		opt = &table[i];
		fprintf(out, "%s\"%s\": ", i ? ", " : "", opt->name);
		if (opt->kind == TEXT) {
			value = *text((struct options *)o, opt);
			if (value)
				json_string(value, out);
			else
				fputs("null", out);
			continue;
		}
		n = *number((struct options *)o, opt);
		switch (opt->kind) {
		case NAME:
			json_string(opt->names[n], out);
			break;
		case BOOL:
			fputs(n ? "true" : "false", out);
			break;
		case TIME:
			fprintf(out, "%" PRIu64 ".%09" PRIu64, n / NS_PER_S,
				n % NS_PER_S);
			break;
		default:
			if (n == UNSET)
				fputs("null", out);
			else
				fprintf(out, "%" PRIu64, n);
		}
	}
	fputc('}', out);
}
