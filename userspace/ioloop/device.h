/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOLOOP_DEVICE_H
#define IOLOOP_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine.h"

bool device_inspect(struct device *dev, const char *name,
		    const struct options *o, char *msg, size_t size);

#endif /* IOLOOP_DEVICE_H */
