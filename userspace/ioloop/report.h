/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The report at the end.
 */
#ifndef IOLOOP_REPORT_H
#define IOLOOP_REPORT_H

#include <stdbool.h>
#include <stdio.h>

struct options;
struct run;

int report_open(const struct options *o);
void report_errors(const struct run *r, FILE *out);
bool report_write(const struct run *r, int fd);
bool report_close(const struct options *o, int fd);

#endif /* IOLOOP_REPORT_H */
