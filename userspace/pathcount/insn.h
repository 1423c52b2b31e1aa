/* SPDX-License-Identifier: GPL-2.0 */
/* What pathcount needs to know of an instruction. */
#ifndef PATHCOUNT_INSN_H
#define PATHCOUNT_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Kinds of instructions. The characters are those of the output format, see
 * Documentation/pathcount.rst.
 */
enum insn_kind {
	INSN_PLAIN	= '.',
	INSN_LOCKED	= 'L',	/* reads and writes memory as a whole */
	INSN_REP	= 'R',	/* string instruction with a repeat prefix */
	INSN_BRANCH	= 'b',	/* conditional, direct */
	INSN_JUMP	= 'j',	/* unconditional, direct */
	INSN_JUMP_IND	= 'J',	/* to a computed address */
	INSN_CALL	= 'c',	/* direct */
	INSN_CALL_IND	= 'C',	/* of a computed address */
	INSN_RET	= 'r',
	INSN_SYSCALL	= 's',
	INSN_SYSRET	= 'y',	/* if an instruction of its own does it */
	INSN_IRET	= 'i',	/* from an interrupt or exception */
	INSN_TRAP	= 't',	/* raises an exception when it executes */
	INSN_TIMESTAMP	= 'T',	/* reads a counter of time or cycles */
	INSN_SERIAL	= 'S',	/* waits for all before it, as iret does */
	INSN_MSR	= 'M',	/* accesses a register of the system */
	INSN_PORT	= 'P',	/* accesses a port of the machine */
	INSN_FENCE	= 'F',	/* orders accesses to memory */
};

/**
 * struct insn - one decoded instruction
 * @kind:	its kind
 * @target:	where it goes: INSN_BRANCH, INSN_JUMP and INSN_CALL only
 * @accesses:	memory accesses of one iteration: INSN_REP only
 */
struct insn {
	enum insn_kind kind;
	uint64_t target;
	unsigned int accesses;
};

/* An instruction of four bytes. */
static inline uint32_t word_at(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* The bits @high to @low of an instruction. */
static inline unsigned int bits(uint32_t word, unsigned int high,
				unsigned int low)
{
	return word >> low & ((2u << (high - low)) - 1);
}

#endif /* PATHCOUNT_INSN_H */
