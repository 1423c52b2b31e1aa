// SPDX-License-Identifier: GPL-2.0
/*
 * Decoding of x86-64 instructions, as far as control flow, locks, repeated
 * string instructions and instructions that cost far more than others go. QEMU
 * has found the length already, so what matters is past the prefixes: the
 * opcode, sometimes ModRM, and a displacement that is always last.
 */
#include <string.h>

#include <iopath/marker.h>

#include "../arch.h"

/* A displacement of @size bytes ends the instruction. */
static uint64_t target(const uint8_t *bytes, size_t len, uint64_t pc,
		       size_t size)
{
	int32_t disp32;

	if (len < size)
		return 0;
	if (size == 1)
		return pc + len + (int8_t)bytes[len - 1];
	memcpy(&disp32, bytes + len - sizeof(disp32), sizeof(disp32));
	return pc + len + disp32;
}

static bool is_register(uint8_t modrm)
{
	return modrm >> 6 == 3;
}

/* The field of ModRM that selects the instruction in a group. */
static unsigned int group_field(uint8_t modrm)
{
	return modrm >> 3 & 7;
}

static enum insn_kind decode_0f01(uint8_t modrm)
{
	switch (modrm) {
	case 0xc6:	/* wrmsrns */
		return INSN_MSR;
	case 0xe8:	/* serialize */
		return INSN_SERIAL;
	case 0xf9:	/* rdtscp */
		return INSN_TIMESTAMP;
	}
	if (is_register(modrm))
		return INSN_PLAIN;
	switch (group_field(modrm)) {
	case 2:		/* lgdt */
	case 3:		/* lidt */
	case 7:		/* invlpg */
		return INSN_SERIAL;
	default:
		return INSN_PLAIN;
	}
}

/* @mandatory: a prefix makes it another instruction. */
static enum insn_kind decode_0f(const uint8_t *op, size_t left, bool mandatory)
{
	uint8_t modrm = left > 1 ? op[1] : 0;

	switch (left ? op[0] : 0xff) {
	case 0x00:	/* lldt, ltr */
		return group_field(modrm) == 2 || group_field(modrm) == 3 ?
			INSN_SERIAL : INSN_PLAIN;
	case 0x01:
		return decode_0f01(modrm);
	case 0x08:	/* invd */
	case 0x09:	/* wbinvd */
	case 0x22:	/* mov to a control register */
	case 0x23:	/* mov to a debug register */
	case 0xa2:	/* cpuid */
		return INSN_SERIAL;
	case 0x30:	/* wrmsr */
	case 0x32:	/* rdmsr */
		return INSN_MSR;
	case 0x31:	/* rdtsc */
	case 0x33:	/* rdpmc */
		return INSN_TIMESTAMP;
	case 0x38:	/* invpcid */
		return modrm == 0x82 ? INSN_SERIAL : INSN_PLAIN;
	case 0xae:	/* lfence, mfence, sfence */
		return is_register(modrm) && group_field(modrm) >= 5 &&
		       !mandatory ? INSN_FENCE : INSN_PLAIN;
	case 0x05:
	case 0x34:
		return INSN_SYSCALL;
	case 0x07:
	case 0x35:
		return INSN_SYSRET;
	case 0x0b:
	case 0xb9:
	case 0xff:
		return INSN_TRAP;
	case 0x80 ... 0x8f:
		return INSN_BRANCH;
	default:
		return INSN_PLAIN;
	}
}

/* Group 5: the reg field of ModRM selects the instruction. */
static enum insn_kind decode_ff(const uint8_t *modrm, size_t left)
{
	switch (left ? group_field(modrm[0]) : 0) {
	case 2:
	case 3:
		return INSN_CALL_IND;
	case 4:
	case 5:
		return INSN_JUMP_IND;
	default:
		return INSN_PLAIN;
	}
}

static void decode(const uint8_t *bytes, size_t len, uint64_t pc,
		   struct insn *insn)
{
	bool lock = false, rep = false, data16 = false, prefix = true;
	size_t i = 0;

	*insn = (struct insn){ .kind = INSN_PLAIN };
	for (; i < len && prefix; i += prefix) {
		switch (bytes[i]) {
		case 0xf0:
			lock = true;
			break;
		case 0xf2:
		case 0xf3:
			rep = true;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x40 ... 0x4f:	/* REX */
		case 0x64:
		case 0x65:
		case 0x67:
			break;
		case 0x66:
			data16 = true;
			break;
		default:
			prefix = false;
		}
	}
	if (i >= len)
		return;
	if (lock) {
		insn->kind = INSN_LOCKED;
		return;
	}
	switch (bytes[i]) {
	case 0x0f:
		insn->kind = decode_0f(bytes + i + 1, len - i - 1,
				       rep || data16);
		if (insn->kind == INSN_BRANCH)
			insn->target = target(bytes, len, pc, 4);
		break;
	case 0x6c ... 0x6f:
		insn->kind = INSN_PORT;
		/* fallthrough */
	case 0xaa ... 0xaf:
		if (rep) {
			insn->kind = INSN_REP;
			insn->accesses = 1;
		}
		break;
	case 0xa4 ... 0xa7:
		if (rep) {
			insn->kind = INSN_REP;
			insn->accesses = 2;
		}
		break;
	case 0x70 ... 0x7f:
	case 0xe0 ... 0xe3:	/* loop, jrcxz */
		insn->kind = INSN_BRANCH;
		insn->target = target(bytes, len, pc, 1);
		break;
	case 0x86:
	case 0x87:	/* xchg locks by itself, with memory */
		if (i + 1 < len && !is_register(bytes[i + 1]))
			insn->kind = INSN_LOCKED;
		break;
	case 0xc2:
	case 0xc3:
		insn->kind = INSN_RET;
		break;
	case 0xca:
	case 0xcb:
		insn->kind = INSN_JUMP_IND;
		break;
	case 0xcc:
	case 0xcd:
	case 0xf1:
		insn->kind = INSN_TRAP;
		break;
	case 0xcf:
		insn->kind = INSN_IRET;
		break;
	case 0xe4 ... 0xe7:	/* in, out */
	case 0xec ... 0xef:
		insn->kind = INSN_PORT;
		break;
	case 0xe8:
		insn->kind = INSN_CALL;
		insn->target = target(bytes, len, pc, 4);
		break;
	case 0xe9:
		insn->kind = INSN_JUMP;
		insn->target = target(bytes, len, pc, 4);
		break;
	case 0xeb:
		insn->kind = INSN_JUMP;
		insn->target = target(bytes, len, pc, 1);
		break;
	case 0xff:
		insn->kind = decode_ff(bytes + i + 1, len - i - 1);
		break;
	}
}

/*
 * Linux enters an interrupt or exception with clac (a three-byte NOP where
 * the CPU has none), followed by cld, a push or a call, or, for device
 * interrupts, by pushing the vector and jumping; endbr64 may come first. No
 * function that is called begins so. QEMU ends a block after clac: clac alone
 * is an entry, too, or the code behind a call that copies to or from user space.
 */
static bool is_entry(const uint8_t *bytes, size_t len, uint64_t pc)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	static const uint8_t clac[] = { 0x0f, 0x01, 0xca };
	static const uint8_t nop3[] = { 0x0f, 0x1f, 0x00 };

	if (len > sizeof(endbr) && !memcmp(bytes, endbr, sizeof(endbr))) {
		bytes += sizeof(endbr);
		len -= sizeof(endbr);
	}
	if (len == sizeof(clac) && !memcmp(bytes, clac, sizeof(clac)))
		return true;
	if (len > sizeof(clac) && (!memcmp(bytes, clac, sizeof(clac)) ||
				   !memcmp(bytes, nop3, sizeof(nop3))))
		return bytes[3] == 0xfc || bytes[3] == 0x6a ||
		       bytes[3] == 0xe8;
	if (len > 2 && bytes[0] == 0x6a)
		return bytes[2] == 0xe9 || bytes[2] == 0xeb;
	if (len > 5 && bytes[0] == 0x68)
		return bytes[5] == 0xe9 || bytes[5] == 0xeb;
	return false;
}

/* pause */
static bool pauses(const uint8_t *bytes, size_t len)
{
	return len == 2 && bytes[0] == 0xf3 && bytes[1] == 0x90;
}

/* hlt, mwait */
static bool idles(const uint8_t *bytes, size_t len)
{
	return (len == 1 && bytes[0] == 0xf4) ||
	       (len == 3 && bytes[0] == 0x0f && bytes[1] == 0x01 &&
		bytes[2] == 0xc9);
}

/*
 * mov %rsp,disp32(%rdi): __switch_to_asm() keeps the stack pointer in the task
 * that %rdi points to.
 */
static bool saves_stack(const uint8_t *bytes, size_t len)
{
	return len == 7 && bytes[0] == 0x48 && bytes[1] == 0x89 &&
	       bytes[2] == 0xa7;
}

/* mov disp32(%rsi),%rsp */
static bool loads_stack(const uint8_t *bytes, size_t len)
{
	return len == 7 && bytes[0] == 0x48 && bytes[1] == 0x8b &&
	       bytes[2] == 0xa6;
}

/* nopl disp32(%rax,%rax,1) */
static int marker(const uint8_t *bytes, size_t len)
{
	static const uint8_t nopl[] = { 0x0f, 0x1f, 0x84, 0x00 };
	uint32_t disp;

	if (len != sizeof(nopl) + sizeof(disp) ||
	    memcmp(bytes, nopl, sizeof(nopl)))
		return -1;
	memcpy(&disp, bytes + sizeof(nopl), sizeof(disp));
	disp -= IOPATH_MARK_MAGIC_X86_64;
	return disp <= IOPATH_MARK_END ? (int)disp : -1;
}

const struct arch arch_x86_64 = {
	.name = "x86_64",
	.stacked = true,
	.decode = decode,
	.marker = marker,
	.is_entry = is_entry,
	.pauses = pauses,
	.idles = idles,
	.saves_stack = saves_stack,
	.loads_stack = loads_stack,
};
