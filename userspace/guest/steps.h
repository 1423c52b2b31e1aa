/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Steps that need a system call of their own. Each returns NULL, or the call
 * that failed, with errno. Files that they open stay open.
 */
#ifndef STEPS_H
#define STEPS_H

#include <stdbool.h>

const char *make_dm(const char *name, unsigned long long sectors,
		    const char *type, const char *params);
const char *make_loop(const char *device, const char *file);
const char *make_partition(const char *device, int number,
			   unsigned long long start, unsigned long long sectors);
const char *begin_tags(const char *device);
const char *serve_nbd(const char *device);
const char *serve_ublk(unsigned int number, bool zero_copy);
const char *bring_up(const char *interface);
const char *attach_bpf(const char *tracepoint);
const char *filter_syscalls(int by_argument);
const char *watch_fanotify(const char *path);
const char *watch_inotify(const char *path);

#endif /* STEPS_H */
