/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every engine, by all of its names.
 */
#ifndef IOLOOP_ENGINES_H
#define IOLOOP_ENGINES_H

#include <stdint.h>

struct engine;

extern const char *engine_names[];

void engines_list(void);
const struct engine *engine_number(uint64_t number);

#endif /* IOLOOP_ENGINES_H */
