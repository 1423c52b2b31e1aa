/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The report for programs.
 */
#ifndef IOLOOP_REPORT_JSON_H
#define IOLOOP_REPORT_JSON_H

#include <stdio.h>

struct options;
struct run;

void json_options(const struct options *o, FILE *out);
void report_json(const struct run *r, FILE *out);

#endif /* IOLOOP_REPORT_JSON_H */
