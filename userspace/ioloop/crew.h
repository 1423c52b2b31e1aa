/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The processes or threads that the jobs run in.
 */
#ifndef IOLOOP_CREW_H
#define IOLOOP_CREW_H

#include <stdbool.h>

struct run;
struct shared;

bool crew_run(struct run *r, struct shared *shared);

#endif /* IOLOOP_CREW_H */
