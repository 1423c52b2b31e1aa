/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads the command line.
 */
#ifndef IOLOOP_COMMAND_LINE_H
#define IOLOOP_COMMAND_LINE_H

#include "options.h"

enum command { COMMAND_RUN, COMMAND_HELP, COMMAND_VERSION, COMMAND_BAD };

enum command command_line_read(struct options *o, int argc, char **argv,
			       char *msg, size_t size);
void command_line_free(struct options *o);

#endif /* IOLOOP_COMMAND_LINE_H */
