/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What one option alone does not show.
 */
#ifndef IOLOOP_CHECKS_H
#define IOLOOP_CHECKS_H

#include "options.h"

bool check_options(struct options *o, char *msg, size_t size);

#endif /* IOLOOP_CHECKS_H */
