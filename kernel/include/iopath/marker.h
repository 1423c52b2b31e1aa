/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Marker instructions: how a program or a module tells an instruction counter
 * where a measured region begins and ends.
 *
 * A marker is an instruction without effect that carries a magic number and an
 * operation: on x86-64 an eight-byte NOP, nopl disp32(%rax,%rax,1), in whose
 * displacement they are; on arm64 a move to the zero register that no compiler
 * makes, movz xzr, #imm16, lsl #48; on riscv64 a hint that is left to us, slti
 * zero, zero, imm12. Real hardware and a QEMU without the plugin
 * execute it as the NOP that it is: no register, no flag and no memory is
 * touched.
 *
 * The number of the region that the next BEGIN opens is shifted in bit by bit,
 * most significant bit first, after a RESET: an instruction has no operand
 * that an instruction counter could read. It stays until the next RESET.
 *
 * Regions do not nest. Everything executed between the BEGIN and the END
 * marker, in any context, belongs to the region, without the markers.
 */
#ifndef IOPATH_MARKER_H
#define IOPATH_MARKER_H

/* The immediate is IOPATH_MARK_MAGIC | operation. */
#define IOPATH_MARK_MAGIC_X86_64	0x10ba5e00
#define IOPATH_MARK_MAGIC_AARCH64	0x5e00
#define IOPATH_MARK_MAGIC_RISCV64	0x5e0

#if defined(__aarch64__)
#define IOPATH_MARK_MAGIC	IOPATH_MARK_MAGIC_AARCH64
#elif defined(__riscv)
#define IOPATH_MARK_MAGIC	IOPATH_MARK_MAGIC_RISCV64
#else
#define IOPATH_MARK_MAGIC	IOPATH_MARK_MAGIC_X86_64
#endif

#define IOPATH_MARK_BIT0	0x00	/* shift a 0 into the region's number */
#define IOPATH_MARK_BIT1	0x01	/* shift a 1 into the region's number */
#define IOPATH_MARK_RESET	0x02	/* the region's number becomes 0 */
#define IOPATH_MARK_BEGIN	0x03	/* the region begins after this */
#define IOPATH_MARK_END		0x04	/* the region ended before this */

#define IOPATH_MARK_BITS	16	/* regions are numbered 0 to 65535 */

#if defined(__x86_64__)
#define IOPATH_MARK(op)							\
({									\
	asm volatile(".byte 0x0f, 0x1f, 0x84, 0x00\n\t"			\
		     ".long %c0"					\
		     : : "i" (IOPATH_MARK_MAGIC | (op)) : "memory");	\
})
#elif defined(__aarch64__)
#define IOPATH_MARK(op)							\
({									\
	asm volatile("movz xzr, %c0, lsl 48"				\
		     : : "i" (IOPATH_MARK_MAGIC | (op)) : "memory");	\
})
#elif defined(__riscv)
#define IOPATH_MARK(op)							\
({									\
	asm volatile("slti zero, zero, %0"				\
		     : : "i" (IOPATH_MARK_MAGIC | (op)) : "memory");	\
})
#else
#define IOPATH_MARK(op)	((void)(op))
#endif

/**
 * iopath_mark_region() - say which region the next BEGIN marker opens
 * @region: its number, 0 to 65535
 */
static inline void iopath_mark_region(unsigned int region)
{
	int bit;

	IOPATH_MARK(IOPATH_MARK_RESET);
	for (bit = IOPATH_MARK_BITS - 1; bit >= 0; bit--) {
		if (region & (1u << bit))
			IOPATH_MARK(IOPATH_MARK_BIT1);
		else
			IOPATH_MARK(IOPATH_MARK_BIT0);
	}
}

static inline void iopath_mark_begin(void)
{
	IOPATH_MARK(IOPATH_MARK_BEGIN);
}

static inline void iopath_mark_end(void)
{
	IOPATH_MARK(IOPATH_MARK_END);
}

#endif /* IOPATH_MARKER_H */
