// SPDX-License-Identifier: GPL-2.0
/*
 * Decoding of arm64 instructions, as far as control flow, atomic accesses and
 * instructions that cost far more than others go. All are words of four bytes.
 */
#include <iopath/marker.h>

#include "../arch.h"

#define WORD	4

/* The signed number of words in these bits, added to @pc. */
static uint64_t target(uint64_t pc, uint32_t word, unsigned int high,
		       unsigned int low)
{
	int64_t words = (int32_t)(word << (31 - high)) >> (31 - high + low);

	return pc + (uint64_t)words * WORD;
}

/* br, blr, ret, eret, and those with pointer authentication. */
static enum insn_kind decode_register_branch(uint32_t word)
{
	switch (bits(word, 24, 21)) {
	case 0x0:
	case 0x8:
		return INSN_JUMP_IND;
	case 0x1:
	case 0x9:
		return INSN_CALL_IND;
	case 0x2:
		return INSN_RET;
	case 0x4:
		return INSN_IRET;
	default:
		return INSN_PLAIN;
	}
}

/* svc, brk and hlt; hvc and smc call what is below, and return. */
static enum insn_kind decode_exception(uint32_t word)
{
	switch (bits(word, 23, 21)) {
	case 0:
		return bits(word, 1, 0) == 1 ? INSN_SYSCALL : INSN_PLAIN;
	case 1:
	case 2:
		return INSN_TRAP;
	default:
		return INSN_PLAIN;
	}
}

static enum insn_kind decode_barrier(uint32_t word)
{
	switch (bits(word, 7, 5)) {
	case 4:		/* dsb */
	case 5:		/* dmb */
		return INSN_FENCE;
	case 6:		/* isb */
	case 7:		/* sb */
		return INSN_SERIAL;
	default:
		return INSN_PLAIN;
	}
}

/*
 * mrs and msr of a register. Those of the state of the processor and of a
 * thread are as fast as other instructions; only their interrupt mask by
 * priority is not.
 */
static enum insn_kind decode_register(uint32_t word)
{
	const bool read = bits(word, 21, 21);
	const unsigned int crn = bits(word, 15, 12), crm = bits(word, 11, 8);
	const unsigned int name = bits(word, 18, 5);

	switch (name) {
	case 0x1f01:	/* cntpct_el0 */
	case 0x1f02:	/* cntvct_el0 */
	case 0x1f05:	/* cntpctss_el0 */
	case 0x1f06:	/* cntvctss_el0 */
	case 0x1ce8:	/* pmccntr_el0 */
		return INSN_TIMESTAMP;
	}
	if (crn == 14 || (crn == 12 && crm >= 8))	/* timers, interrupts */
		return INSN_MSR;
	if (read || (crn == 4 && crm != 6) || crn == 13)
		return INSN_PLAIN;
	return INSN_MSR;
}

static enum insn_kind decode_system(uint32_t word)
{
	const unsigned int crn = bits(word, 15, 12), crm = bits(word, 11, 8);

	switch (bits(word, 20, 19)) {
	case 0:
		return crn == 3 ? decode_barrier(word) : INSN_PLAIN;
	case 1:		/* tlbi, and ic of caches */
		return crn == 8 || (crn == 7 && (crm == 1 || crm == 5)) ?
			INSN_SERIAL : INSN_PLAIN;
	default:
		return decode_register(word);
	}
}

/*
 * Atomic accesses. Of a pair of exclusive ones the store is counted, which there
 * is one of, too.
 */
static bool is_atomic(uint32_t word)
{
	/* ldadd, swp and the like; but ldapr only loads. */
	if ((word & 0x3f200c00) == 0x38200000)
		return !bits(word, 15, 15) || !bits(word, 14, 12);
	if ((word & 0x3f000000) != 0x08000000)
		return false;
	if (bits(word, 23, 23))
		return bits(word, 21, 21);	/* cas; or ldar, stlr */
	if (bits(word, 21, 21) && !bits(word, 31, 31))
		return true;			/* casp */
	return !bits(word, 22, 22);		/* stxr, stxp */
}

static void decode(const uint8_t *bytes, size_t len, uint64_t pc,
		   struct insn *insn)
{
	uint32_t word;

	*insn = (struct insn){ .kind = INSN_PLAIN };
	if (len != WORD)
		return;
	word = word_at(bytes);
	if ((word & 0x7c000000) == 0x14000000) {
		insn->kind = bits(word, 31, 31) ? INSN_CALL : INSN_JUMP;
		insn->target = target(pc, word, 25, 0);
	} else if ((word & 0xff000000) == 0x54000000 ||
		   (word & 0x7e000000) == 0x34000000) {
		insn->kind = INSN_BRANCH;
		insn->target = target(pc, word, 23, 5);
	} else if ((word & 0x7e000000) == 0x36000000) {
		insn->kind = INSN_BRANCH;
		insn->target = target(pc, word, 18, 5);
	} else if ((word & 0xfe000000) == 0xd6000000) {
		insn->kind = decode_register_branch(word);
	} else if ((word & 0xff000000) == 0xd4000000) {
		insn->kind = decode_exception(word);
	} else if ((word & 0xffc00000) == 0xd5000000) {
		insn->kind = decode_system(word);
	} else if (!(word & 0xffff0000)) {
		insn->kind = INSN_TRAP;		/* udf */
	} else if (is_atomic(word)) {
		insn->kind = INSN_LOCKED;
	}
}

/* movz xzr, #imm16, lsl #48 */
static int marker(const uint8_t *bytes, size_t len)
{
	uint32_t word, op;

	if (len != WORD)
		return -1;
	word = word_at(bytes);
	if ((word & 0xffe0001f) != 0xd2e0001f)
		return -1;
	op = bits(word, 20, 5) - IOPATH_MARK_MAGIC_AARCH64;
	return op <= IOPATH_MARK_END ? (int)op : -1;
}

/*
 * The vectors of Linux are 128 bytes apart. Those for the kernel begin with sub
 * sp, sp, #size; then, to notice an overflow of the stack, add sp, sp, x0, or
 * else a branch. What user space enters by needs no telling.
 */
static bool is_entry(const uint8_t *bytes, size_t len, uint64_t pc)
{
	uint32_t next;

	if (pc % 128 || len < 2 * WORD ||
	    (word_at(bytes) & 0xffc003ff) != 0xd10003ff)
		return false;
	next = word_at(bytes + WORD);
	return next == 0x8b2063ff || (next & 0xfc000000) == 0x14000000;
}

/* yield, and wfe, which a CPU waits with for a change of memory. */
static bool pauses(const uint8_t *bytes, size_t len)
{
	uint32_t word = len == WORD ? word_at(bytes) : 0;

	return word == 0xd503203f || word == 0xd503205f;
}

/* wfi */
static bool idles(const uint8_t *bytes, size_t len)
{
	return len == WORD && word_at(bytes) == 0xd503207f;
}

/*
 * stp x29, x9, [x8], #16: cpu_switch_to() keeps the frame and stack pointers in
 * the task that x8 points to.
 */
static bool saves_stack(const uint8_t *bytes, size_t len)
{
	return len == WORD && word_at(bytes) == 0xa881251d;
}

/* ldp x29, x9, [x8], #16 */
static bool loads_stack(const uint8_t *bytes, size_t len)
{
	return len == WORD && word_at(bytes) == 0xa8c1251d;
}

const struct arch arch_aarch64 = {
	.name = "aarch64",
	.stacked = false,
	.decode = decode,
	.marker = marker,
	.is_entry = is_entry,
	.pauses = pauses,
	.idles = idles,
	.saves_stack = saves_stack,
	.loads_stack = loads_stack,
};
