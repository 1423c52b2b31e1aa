/* SPDX-License-Identifier: GPL-2.0 */
/* What arch.h describes, for riscv64. */

#define SYS_INSN	"ecall"
#define SYS_NUMBER	"a7"
#define SYS_ARG0	"a0"
#define SYS_ARG1	"a1"
#define SYS_ARG2	"a2"
#define SYS_ARG3	"a3"
#define SYS_ARG4	"a4"
#define SYS_ARG5	"a5"

#include "calls.h"

/*
 * The instructions that this processor has executed, which the kernel lets
 * programs read once init has asked for it: userspace/guest/init.c. The clock
 * is too coarse: it ticks every 100 nanoseconds.
 */
static __always_inline uint64_t cycles(void)
{
	uint64_t count;

	asm volatile("rdinstret %0" : "=r" (count) : : "memory");
	return count;
}

/* Tell the processor that the loop waits for another one. */
static __always_inline void cpu_pause(void)
{
	asm volatile(".insn i 0x0f, 0, zero, zero, 16");	/* pause */
}

/* Instructions between the two readings of the counter outside the loop. */
#define CALIBRATE_OVERHEAD	3

/**
 * calibrate() - a loop of CALIBRATE_INSTRUCTIONS between markers
 * @nr: iterations
 *
 * The overhead is the two markers and one of the two rdinstret.
 *
 * Return: how far the counter advanced.
 */
static __always_inline uint64_t calibrate(uint64_t nr)
{
	uint64_t first, last;

	asm volatile("rdinstret %[first]\n\t"
		     "slti zero, zero, %[begin]\n"
		     "1:\n\t"
		     ".rept %[nops]\n\t"
		     "nop\n\t"
		     ".endr\n\t"
		     "addi %[left], %[left], -1\n\t"
		     "bnez %[left], 1b\n\t"
		     "slti zero, zero, %[end]\n\t"
		     "rdinstret %[last]"
		     : [first] "=&r" (first), [last] "=&r" (last),
		       [left] "+&r" (nr)
		     : [begin] "i" (IOPATH_MARK_MAGIC | IOPATH_MARK_BEGIN),
		       [end] "i" (IOPATH_MARK_MAGIC | IOPATH_MARK_END),
		       [nops] "i" (CALIBRATE_INSTRUCTIONS - 2)
		     : "memory");
	return last - first;
}

/* One access to a byte of memory, and nothing else. */
static __always_inline void write_byte(char *at)
{
	asm volatile("sb %1, %0" : "=m" (*at) : "r" (1) : "memory");
}

static __always_inline void read_byte(const char *at)
{
	uint32_t byte;

	asm volatile("lb %0, %1" : "=r" (byte) : "m" (*at) : "memory");
}
