/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a device of blknull counts, with its attribute stats.
 */
#ifndef IOLOOP_COUNTERS_H
#define IOLOOP_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define NR_COUNTERS	10
#define NR_SIZES	16

/**
 * struct counters - the counters of a device
 * @known: it has any
 * @value: their values, in the order of counter_names
 * @sizes: its requests of up to 1, 2, 4 ... sectors, and of more
 * @seen: what it was given last, as it says that; NULL: not known
 */
struct counters {
	bool known;
	uint64_t value[NR_COUNTERS];
	uint64_t sizes[NR_SIZES];
	char *seen;
};

extern const char *const counter_names[NR_COUNTERS];

void counters_begin(struct counters *c, dev_t device);
void counters_end(struct counters *c, dev_t device);

#endif /* IOLOOP_COUNTERS_H */
