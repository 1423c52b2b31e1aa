/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The report for people.
 */
#ifndef IOLOOP_REPORT_NORMAL_H
#define IOLOOP_REPORT_NORMAL_H

#include <stdio.h>

struct run;

void report_normal(const struct run *r, FILE *out);

#endif /* IOLOOP_REPORT_NORMAL_H */
