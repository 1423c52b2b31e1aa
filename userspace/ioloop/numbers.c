// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers as people write them, with suffixes such as k for 1024 or ms for a
 * millisecond.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "numbers.h"

/**
 * parse_number() - read a decimal number
 * @s: the text
 * @value: the number
 * @rest: what is behind it
 *
 * Return: true if @s begins with a number.
 */
bool parse_number(const char *s, uint64_t *value, const char **rest)
{
	char *end;

	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	*value = strtoull(s, &end, 10);
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

/**
 * parse_size() - read a number with k, m, g or t behind it, or nothing
 * @s: the text
 * @value: the number
 *
 * Return: true if @s is a size.
 */
bool parse_size(const char *s, uint64_t *value)
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

/**
 * parse_time() - read a time: seconds, or with a unit behind it
 * @s: the text
 * @value: nanoseconds
 *
 * Return: true if @s is a time.
 */
bool parse_time(const char *s, uint64_t *value)
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

/**
 * print_size() - write a size as parse_size() reads it
 * @size: the size
 * @out: where to
 */
void print_size(uint64_t size, FILE *out)
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
 * short_number() - write a number in at most 6 characters: 9876, 12.34k, 1.234M
 * @s: where to
 * @size: room there
 * @n: the number
 *
 * Return: @s.
 */
const char *short_number(char *s, size_t size, double n)
{
	static const char units[] = " kMGTPE";
	int unit = 0;

	while (n >= 9999.5 || (unit && n >= 999.95)) {
		n /= 1000;
		unit++;
	}
	if (unit)
		snprintf(s, size, "%.*f%c", n >= 99.995 ? 1 :
			 n >= 9.9995 ? 2 : 3, n, units[unit]);
	else
		snprintf(s, size, "%.0f", n);
	return s;
}
