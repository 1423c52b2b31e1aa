/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The list of counts. Define some of these macros and include this file: each
 * is expanded for its rows. There is no include guard. The output has the
 * counts by name; results/metrics.py says which metrics they are.
 *
 * ACCESS_COUNT(name, amount): counted with the block under way, at each memory
 *	access of @size bytes, a @write or a read.
 * BLOCK_COUNT(name, amount): counted with @block when it was left.
 * FOLLOW_COUNT(name, amount): counted in rounds that count cache lines, when
 *	the last instruction of @block led to @pc.
 * EVENT_COUNT(name): counted in a round, where flow.c sees it happen.
 */
#ifndef ACCESS_COUNT
#define ACCESS_COUNT(...)
#endif
#ifndef BLOCK_COUNT
#define BLOCK_COUNT(...)
#endif
#ifndef FOLLOW_COUNT
#define FOLLOW_COUNT(...)
#endif
#ifndef EVENT_COUNT
#define EVENT_COUNT(...)
#endif

ACCESS_COUNT(reads, !write)
ACCESS_COUNT(writes, write)

/* Bytes of repeated string instructions, without halves of iterations. */
BLOCK_COUNT(strings, now.string && block->accesses ?
		     now.string / block->accesses * now.string_size : 0)

/* Conditional branches that were taken. */
FOLLOW_COUNT(taken, block->last_kind == INSN_BRANCH && pc != block->end)

/* All instructions, a repeated string instruction once. */
EVENT_COUNT(instructions)
/* The other iterations of repeated string instructions. */
EVENT_COUNT(iterations)
/* Interrupts and exceptions that began, and exceptions among them. */
EVENT_COUNT(entries)
EVENT_COUNT(faults)
/* Times that another task was switched in. */
EVENT_COUNT(switches)
/* Returns without a call in the call tree. */
EVENT_COUNT(unmatched)

#undef ACCESS_COUNT
#undef BLOCK_COUNT
#undef FOLLOW_COUNT
#undef EVENT_COUNT
