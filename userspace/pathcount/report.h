/* SPDX-License-Identifier: GPL-2.0 */
/* The output of pathcount, Documentation/pathcount.rst. */
#ifndef PATHCOUNT_REPORT_H
#define PATHCOUNT_REPORT_H

#include <stdbool.h>

/* Faults in the use of markers; each becomes a line in the output. */
enum report_fault {
	FAULT_NESTED,		/* BEGIN inside a region */
	FAULT_NO_BEGIN,		/* END outside of a region */
	FAULT_NO_END,		/* the guest ended inside a region */
	FAULT_NO_MARKER,	/* no BEGIN was executed at all */
	FAULT_LOST,		/* more tasks or entries than flat.c follows */
	NR_FAULTS,
};

/**
 * struct report_info - what the output says besides the regions
 * @api_min:	oldest plugin API that QEMU takes
 * @api_cur:	QEMU's own
 * @api_used:	the one that pathcount declared
 * @lines:	the option of this name
 * @flat:	the first region that is counted flat
 * @faults:	how often each fault was seen
 */
struct report_info {
	int api_min;
	int api_cur;
	int api_used;
	unsigned int lines;
	unsigned int flat;
	unsigned int faults[NR_FAULTS];
};

bool report_open(const char *path);
bool report_write(const struct report_info *info);

#endif /* PATHCOUNT_REPORT_H */
