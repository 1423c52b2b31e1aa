// SPDX-License-Identifier: GPL-2.0
/*
 * Follow blocks of known code. Prints a line for each count that is another.
 */
#include <stdio.h>

#include "arch.h"
#include "flow.h"

#define CODE	0xffffffff81000000ull	/* what is interrupted */
#define ENTRY	0xffffffff81c00000ull	/* where interrupts begin */

static uint8_t lens[] = { 3 };
static uint64_t begun;

static struct block block(uint64_t addr, enum insn_kind kind, bool entry_shape)
{
	return (struct block){
		.addr = addr, .last_pc = addr, .end = addr + *lens, .nr = 1,
		.lens = lens, .last_kind = (char)kind, .entry_shape = entry_shape,
	};
}

static void step(struct block *next)
{
	begun++;
	flow_step(next->addr, next);
}

static void expect(const char *what, unsigned int count, uint64_t should)
{
	const struct round *round = &flow_regions[1]->rounds[0];

	if (round->counts[count] != should)
		printf("%s: %llu, should be %llu\n", what,
		       (unsigned long long)round->counts[count],
		       (unsigned long long)should);
}

/* A tick comes between a store to user space and clac, which looks like an entry. */
static void tick_before_clac(void)
{
	struct block store = block(CODE, INSN_PLAIN, false),
		     clac = block(store.end, INSN_PLAIN, true),
		     after = block(clac.end, INSN_PLAIN, false),
		     entry = block(ENTRY, INSN_PLAIN, true),
		     iret = block(entry.end, INSN_IRET, false);

	flow_begin(1, &begun, &store, 0);
	step(&entry);
	step(&iret);
	step(&clac);
	step(&after);
	begun++;
	flow_step(after.end, NULL);
	flow_end();
	expect("entries", COUNT_entries, 1);
	expect("faults", COUNT_faults, 0);
	expect("instructions", COUNT_instructions, 5);
}

int main(void)
{
	arch_choose("x86_64");
	tick_before_clac();
	return 0;
}
