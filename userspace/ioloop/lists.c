// SPDX-License-Identifier: GPL-2.0
/*
 * Options whose value is a list: processors, files.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "compiler.h"
#include "lists.h"
#include "numbers.h"

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
