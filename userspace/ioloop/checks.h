/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checks of all options together.
 */
#ifndef IOLOOP_CHECKS_H
#define IOLOOP_CHECKS_H

#include "options.h"

bool check_options(struct options *o, char *msg, size_t size);

#endif /* IOLOOP_CHECKS_H */
