/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOLOOP_SCATTER_H
#define IOLOOP_SCATTER_H

#include <stddef.h>

int scatter(char *memory, size_t size);

#endif /* IOLOOP_SCATTER_H */
