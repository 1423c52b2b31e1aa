/* SPDX-License-Identifier: GPL-2.0 */
/* The help. */
#ifndef IOLOOP_HELP_H
#define IOLOOP_HELP_H

#include <stdio.h>

void help_print(FILE *out);

#endif /* IOLOOP_HELP_H */
