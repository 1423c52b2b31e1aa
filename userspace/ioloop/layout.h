/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IOLOOP_LAYOUT_H
#define IOLOOP_LAYOUT_H

#include "run.h"

void layout_call(unsigned int number,
		 void (*function)(struct job *job, struct shared *shared),
		 struct job *job, struct shared *shared);

#endif /* IOLOOP_LAYOUT_H */
