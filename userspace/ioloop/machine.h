/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOLOOP_MACHINE_H
#define IOLOOP_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

#include "options.h"

#define PAGE		4096ull
#define HUGE_PAGE	(2048ull << 10)

bool machine_check(const struct options *o, unsigned int nr_jobs, char *msg,
		   size_t size);
uint64_t machine_stride(const struct options *o);
uint64_t machine_buffer_bytes(const struct options *o);

#endif /* IOLOOP_MACHINE_H */
