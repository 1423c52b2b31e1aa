/* SPDX-License-Identifier: GPL-2.0 */
/* What pathcount needs to know of an x86-64 instruction. */
#ifndef PATHCOUNT_X86_H
#define PATHCOUNT_X86_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Kinds of instructions. The characters are those of the output format, see
 * Documentation/pathcount.rst.
 */
enum insn_kind {
	INSN_PLAIN	= '.',
	INSN_LOCKED	= 'L',	/* lock prefix, or xchg with memory */
	INSN_REP	= 'R',	/* string instruction with a repeat prefix */
	INSN_BRANCH	= 'b',	/* conditional, direct */
	INSN_JUMP	= 'j',	/* unconditional, direct */
	INSN_JUMP_IND	= 'J',	/* indirect or far jump, far return */
	INSN_CALL	= 'c',	/* direct */
	INSN_CALL_IND	= 'C',	/* indirect or far call */
	INSN_RET	= 'r',
	INSN_SYSCALL	= 's',	/* syscall, sysenter */
	INSN_SYSRET	= 'y',	/* sysret, sysexit */
	INSN_IRET	= 'i',
	INSN_TRAP	= 't',	/* int, int3, ud: raises when it executes */
	INSN_TIMESTAMP	= 'T',	/* rdtsc, rdtscp, rdpmc */
	INSN_SERIAL	= 'S',	/* serialises the CPU; iret does, too */
	INSN_MSR	= 'M',	/* rdmsr, wrmsr, wrmsrns */
	INSN_PORT	= 'P',	/* in, out, ins, outs */
	INSN_FENCE	= 'F',	/* lfence, mfence, sfence */
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

void x86_decode(const uint8_t *bytes, size_t len, uint64_t pc,
		struct insn *insn);
bool x86_falls_through(enum insn_kind kind);
bool x86_entry_shape(const uint8_t *bytes, size_t len);
bool x86_pauses(const uint8_t *bytes, size_t len);
bool x86_saves_stack(const uint8_t *bytes, size_t len);
bool x86_loads_stack(const uint8_t *bytes, size_t len);

#endif /* PATHCOUNT_X86_H */
