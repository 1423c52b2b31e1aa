/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One process or thread that does I/O, and its rounds.
 */
#ifndef IOLOOP_JOB_H
#define IOLOOP_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "cursor.h"
#include "device.h"
#include "options.h"
#include "result.h"

/**
 * struct job - one process or thread that does I/O
 * @o: the options
 * @dev: the device that it works on; NULL if the engine needs none
 * @res: where the results go
 * @stop: becomes non-zero when the job should end, on its own or not
 * @index: number of the job
 * @cpu: the processor that it is bound to; -1: none
 * @layout: the number of its layout
 * @end: it has that many rounds when this layout is done
 * @fd: the open device
 * @buffers: iodepth buffers of bs bytes each, --mem_offset behind the start of a
 *	page, @stride apart
 * @stride: distance between two of them
 * @random: offsets are drawn
 * @area: where I/Os may go
 * @cursor: the next one
 * @registered: the buffers are registered with biogen
 * @data: the engine's own
 * @stat_fd: /proc/stat, for the number of interrupts; negative: cannot be opened
 */
struct job {
	const struct options *o;
	struct device *dev;
	struct result *res;
	int *stop;
	unsigned int index;
	int cpu;
	unsigned int layout;
	uint64_t end;

	int fd;
	char *buffers;
	uint64_t stride;
	bool random;
	struct area area;
	struct cursor cursor;
	bool registered;
	void *data;
	int stat_fd;
};

void job_warm_up(struct job *job);
void job_run(struct job *job);

#endif /* IOLOOP_JOB_H */
