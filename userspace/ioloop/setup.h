/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a job needs before its first I/O.
 */
#ifndef IOLOOP_SETUP_H
#define IOLOOP_SETUP_H

#include <stdbool.h>

struct job;

bool setup_job(struct job *job);
void setup_undo(struct job *job);

#endif /* IOLOOP_SETUP_H */
