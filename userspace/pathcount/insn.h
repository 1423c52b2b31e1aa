/* SPDX-License-Identifier: GPL-2.0 */
/* What pathcount needs to know of an instruction, and of a processor. */
#ifndef PATHCOUNT_INSN_H
#define PATHCOUNT_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	INSN_SERIAL	= 'S',	/* waits for all before it; iret does, too */
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

/**
 * struct arch - an architecture; each has a file
 * @name:	as QEMU calls it
 * @stacked:	a call writes its return address to the stack, and a return
 *		reads it there
 * @decode:	find the kind of an instruction
 * @marker:	the operation of a marker instruction, or -1
 * @is_entry:	does code look like an entry of an interrupt or exception?
 * @pauses:	is this the instruction of a CPU that waits for another one?
 * @saves_stack: does it save the stack pointer of a task that is switched out?
 * @loads_stack: does it load the one of a task that is switched in?
 *
 * The last two access memory at an address that tells tasks apart. They are
 * called for kernel code only.
 */
struct arch {
	const char *name;
	bool stacked;
	void (*decode)(const uint8_t *bytes, size_t len, uint64_t pc,
		       struct insn *insn);
	int (*marker)(const uint8_t *bytes, size_t len);
	bool (*is_entry)(const uint8_t *bytes, size_t len, uint64_t pc);
	bool (*pauses)(const uint8_t *bytes, size_t len);
	bool (*saves_stack)(const uint8_t *bytes, size_t len);
	bool (*loads_stack)(const uint8_t *bytes, size_t len);
};

extern const struct arch arch_x86_64, arch_aarch64, arch_riscv64;
extern const struct arch *arch;	/* of the guest */

#endif /* PATHCOUNT_INSN_H */
