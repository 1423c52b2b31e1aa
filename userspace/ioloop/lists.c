// SPDX-License-Identifier: GPL-2.0
/*
 * Options whose value is a list: sizes, processors, files.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "compiler.h"
#include "lists.h"
#include "numbers.h"

/* As parse_size(), but *rest gets the text behind the size. */
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

/* 4k-64k, as in fio: any multiple of the smallest, all equally often */
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

/* A share of bssplit: a percentage, or nothing for a share of the rest. */
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

/* Sizes without a given share divide the rest. */
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

/**
 * list_sizes() - what the size of an I/O is drawn from: --bsrange or --bssplit
 * @o: the options
 * @msg: what is wrong, if anything
 * @size: room in @msg
 *
 * Return: true if the list is right.
 */
bool list_sizes(struct options *o, char *msg, size_t size)
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

/**
 * list_cpus() - take --cpus_allowed apart: 0,2-4 as in fio and taskset
 * @o: the options
 * @msg: what is wrong, if anything
 * @size: room in @msg
 *
 * Return: true if the list is right.
 */
bool list_cpus(struct options *o, char *msg, size_t size)
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

/**
 * list_files() - take --filename apart
 * @o: the options
 * @msg: what is wrong, if anything
 * @size: room in @msg
 *
 * Names are separated by ':', which a name itself has as '\:'. As in fio.
 *
 * Return: true if the list is right.
 */
bool list_files(struct options *o, char *msg, size_t size)
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

/**
 * list_own_files() - make a --filename of --name
 * @o: the options
 * @msg: what is wrong, if anything
 * @size: room in @msg
 *
 * Without --filename fio gives each job a file of its own, named after --name,
 * the job and the file. Here each of these files is a device with one job.
 *
 * Return: true if there is a name for each.
 */
bool list_own_files(struct options *o, char *msg, size_t size)
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
