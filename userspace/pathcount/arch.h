/* SPDX-License-Identifier: GPL-2.0 */
/* What pathcount needs to know of a processor. */
#ifndef PATHCOUNT_ARCH_H
#define PATHCOUNT_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "insn.h"

/**
 * struct arch - an architecture; each has a file
 * @name:	as QEMU calls it
 * @stacked:	a call writes its return address to the stack, and a return
 *		reads it there
 * @decode:	find the kind of an instruction
 * @marker:	the operation of a marker instruction, or -1
 * @is_entry:	does code look like an entry of an interrupt or exception?
 * @pauses:	is this the instruction of a CPU that waits for another one?
 * @idles:	is this the instruction of a CPU that waits for an interrupt?
 * @saves_stack: does it save the stack pointer of a task that is switched out?
 * @loads_stack: does it load the one of a task that is switched in?
 *
 * The last two access memory at an address that identifies the task. They are
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
	bool (*idles)(const uint8_t *bytes, size_t len);
	bool (*saves_stack)(const uint8_t *bytes, size_t len);
	bool (*loads_stack)(const uint8_t *bytes, size_t len);
};

extern const struct arch arch_x86_64, arch_aarch64, arch_riscv64;
extern const struct arch *arch;	/* of the guest */

bool arch_choose(const char *name);

#endif /* PATHCOUNT_ARCH_H */
