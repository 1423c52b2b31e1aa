// SPDX-License-Identifier: GPL-2.0
/*
 * Decoding of riscv64 instructions, as far as control flow, atomic accesses and
 * instructions that cost far more than others go. They have two or four bytes.
 */
#include <iopath/marker.h>

#include "../arch.h"

#define REG_RA	1
#define REG_T0	5

static uint32_t half_at(const uint8_t *bytes)
{
	uint16_t half;

	memcpy(&half, bytes, sizeof(half));
	return half;
}

/* These bits of @word, moved so that the lowest is @to. */
static uint32_t moved(uint32_t word, unsigned int high, unsigned int low,
		      unsigned int to)
{
	return bits(word, high, low) << to;
}

static uint64_t target(uint64_t pc, uint32_t offset, unsigned int sign)
{
	return pc + (uint64_t)((int64_t)((uint64_t)offset << (63 - sign)) >>
			       (63 - sign));
}

/* Registers that hold return addresses. */
static bool is_link(unsigned int reg)
{
	return reg == REG_RA || reg == REG_T0;
}

static enum insn_kind decode_jalr(unsigned int rd, unsigned int rs1)
{
	if (is_link(rd))
		return INSN_CALL_IND;
	return is_link(rs1) ? INSN_RET : INSN_JUMP_IND;
}

static void decode_half(uint32_t half, uint64_t pc, struct insn *insn)
{
	const unsigned int rd = bits(half, 11, 7);

	switch (bits(half, 15, 13) << 2 | bits(half, 1, 0)) {
	case 0x15:	/* c.j */
		insn->kind = INSN_JUMP;
		insn->target = target(pc, moved(half, 12, 12, 11) |
					  moved(half, 11, 11, 4) |
					  moved(half, 10, 9, 8) |
					  moved(half, 8, 8, 10) |
					  moved(half, 7, 7, 6) |
					  moved(half, 6, 6, 7) |
					  moved(half, 5, 3, 1) |
					  moved(half, 2, 2, 5), 11);
		break;
	case 0x19:	/* c.beqz */
	case 0x1d:	/* c.bnez */
		insn->kind = INSN_BRANCH;
		insn->target = target(pc, moved(half, 12, 12, 8) |
					  moved(half, 11, 10, 3) |
					  moved(half, 6, 5, 6) |
					  moved(half, 4, 3, 1) |
					  moved(half, 2, 2, 5), 8);
		break;
	case 0x12:	/* c.jr, c.jalr, c.ebreak; or c.mv, c.add */
		if (bits(half, 6, 2))
			break;
		if (!rd)
			insn->kind = INSN_TRAP;
		else
			insn->kind = decode_jalr(bits(half, 12, 12), rd);
		break;
	case 0x00:
		if (!half)
			insn->kind = INSN_TRAP;
		break;
	}
}

/*
 * Accesses to registers of the system. Those of the state of the processor and
 * of a thread are as fast as other instructions.
 */
static enum insn_kind decode_register(uint32_t word)
{
	switch (bits(word, 31, 20)) {
	case 0xc00:	/* cycle */
	case 0xc01:	/* time */
	case 0xc02:	/* instret */
		return INSN_TIMESTAMP;
	case 0x104:	/* sie */
	case 0x105:	/* stvec */
	case 0x106:	/* scounteren */
	case 0x10a:	/* senvcfg */
	case 0x144:	/* sip */
	case 0x14d:	/* stimecmp */
	case 0x180:	/* satp */
		return INSN_MSR;
	default:
		return INSN_PLAIN;
	}
}

/* An ecall of the kernel calls the firmware, and returns. */
static enum insn_kind decode_system(uint32_t word, uint64_t pc)
{
	if (bits(word, 14, 12))
		return decode_register(word);
	switch (word) {
	case 0x00000073:	/* ecall */
		return pc >> 63 ? INSN_PLAIN : INSN_SYSCALL;
	case 0x00100073:	/* ebreak */
		return INSN_TRAP;
	case 0x10200073:	/* sret */
	case 0x30200073:	/* mret */
		return INSN_IRET;
	}
	switch (bits(word, 31, 25)) {
	case 0x09:	/* sfence.vma */
	case 0x0b:	/* sinval.vma */
	case 0x0c:	/* sfence.w.inval, sfence.inval.ir */
		return INSN_SERIAL;
	default:
		return INSN_PLAIN;
	}
}

/* fence, fence.i; and pause, which is a fence of nothing. */
static enum insn_kind decode_fence(uint32_t word)
{
	switch (bits(word, 14, 12)) {
	case 0:
		return bits(word, 27, 24) && bits(word, 23, 20) ? INSN_FENCE :
								  INSN_PLAIN;
	case 1:
		return INSN_SERIAL;
	default:
		return INSN_PLAIN;
	}
}

static void decode_word(uint32_t word, uint64_t pc, struct insn *insn)
{
	const unsigned int rd = bits(word, 11, 7);

	switch (bits(word, 6, 0)) {
	case 0x6f:	/* jal */
		insn->kind = is_link(rd) ? INSN_CALL : INSN_JUMP;
		insn->target = target(pc, moved(word, 31, 31, 20) |
					  moved(word, 30, 21, 1) |
					  moved(word, 20, 20, 11) |
					  moved(word, 19, 12, 12), 20);
		break;
	case 0x67:
		insn->kind = decode_jalr(rd, bits(word, 19, 15));
		break;
	case 0x63:	/* beq and the like */
		insn->kind = INSN_BRANCH;
		insn->target = target(pc, moved(word, 31, 31, 12) |
					  moved(word, 30, 25, 5) |
					  moved(word, 11, 8, 1) |
					  moved(word, 7, 7, 11), 12);
		break;
	case 0x73:
		insn->kind = decode_system(word, pc);
		break;
	case 0x0f:
		insn->kind = decode_fence(word);
		break;
	case 0x2f:	/* of lr and sc, the latter is counted */
		if (bits(word, 31, 27) != 2)
			insn->kind = INSN_LOCKED;
		break;
	}
}

static void decode(const uint8_t *bytes, size_t len, uint64_t pc,
		   struct insn *insn)
{
	*insn = (struct insn){ .kind = INSN_PLAIN };
	if (len == 2)
		decode_half(half_at(bytes), pc, insn);
	else if (len == 4)
		decode_word(word_at(bytes), pc, insn);
}

/* slti zero, zero, #imm12 */
static int marker(const uint8_t *bytes, size_t len)
{
	uint32_t word, op;

	if (len != 4)
		return -1;
	word = word_at(bytes);
	if ((word & 0x000fffff) != 0x00002013)
		return -1;
	op = bits(word, 31, 20) - IOPATH_MARK_MAGIC_RISCV64;
	return op <= IOPATH_MARK_END ? (int)op : -1;
}

/*
 * Interrupts, exceptions and system calls enter Linux by one instruction, which
 * is nowhere else: csrrw tp, sscratch, tp. The firmware is entered by the same
 * with mscratch.
 */
static bool is_entry(const uint8_t *bytes, size_t len, uint64_t pc)
{
	uint32_t word = len >= 4 ? word_at(bytes) : 0;

	return word == 0x14021273 || word == 0x34021273;
}

/* pause, and wrs.nto and wrs.sto, which a CPU waits with for a change of memory. */
static bool pauses(const uint8_t *bytes, size_t len)
{
	uint32_t word = len == 4 ? word_at(bytes) : 0;

	return word == 0x0100000f || word == 0x00d00073 || word == 0x01d00073;
}

/* wfi */
static bool idles(const uint8_t *bytes, size_t len)
{
	return len == 4 && word_at(bytes) == 0x10500073;
}

/*
 * sd sp, 8(a3): __switch_to() keeps the stack pointer in the task that a3 points
 * to.
 */
static bool saves_stack(const uint8_t *bytes, size_t len)
{
	return len == 4 && word_at(bytes) == 0x0026b423;
}

/* ld sp, 8(a4) */
static bool loads_stack(const uint8_t *bytes, size_t len)
{
	return len == 4 && word_at(bytes) == 0x00873103;
}

const struct arch arch_riscv64 = {
	.name = "riscv64",
	.stacked = false,
	.decode = decode,
	.marker = marker,
	.is_entry = is_entry,
	.pauses = pauses,
	.idles = idles,
	.saves_stack = saves_stack,
	.loads_stack = loads_stack,
};
