/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Options whose value is a list.
 */
#ifndef IOLOOP_LISTS_H
#define IOLOOP_LISTS_H

#include "options.h"

bool list_cpus(struct options *o, char *msg, size_t size);
bool list_files(struct options *o, char *msg, size_t size);

#endif /* IOLOOP_LISTS_H */
