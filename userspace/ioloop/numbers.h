/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numbers as people write them.
 */
#ifndef IOLOOP_NUMBERS_H
#define IOLOOP_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NS_PER_S	UINT64_C(1000000000)

bool parse_number(const char *s, uint64_t *value, const char **rest);
bool parse_size(const char *s, uint64_t *value);
bool parse_time(const char *s, uint64_t *value);
void print_size(uint64_t size, FILE *out);
const char *short_number(char *s, size_t size, double n);

#endif /* IOLOOP_NUMBERS_H */
