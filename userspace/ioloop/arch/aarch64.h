/* SPDX-License-Identifier: GPL-2.0 */
/* What arch.h describes, for arm64. */

#define SYS_INSN	"svc #0"
#define SYS_NUMBER	"x8"
#define SYS_ARG0	"x0"
#define SYS_ARG1	"x1"
#define SYS_ARG2	"x2"
#define SYS_ARG3	"x3"
#define SYS_ARG4	"x4"
#define SYS_ARG5	"x5"

#include "calls.h"

/*
 * The virtual counter, which has a frequency of its own. Not serialised: what
 * is timed is long, and under QEMU's -icount, where it can count instructions,
 * an isb would be one more.
 */
static __always_inline uint64_t cycles(void)
{
	uint64_t count;

	asm volatile("mrs %0, cntvct_el0" : "=r" (count) : : "memory");
	return count;
}

/* Tell the processor that the loop waits for another one. */
static __always_inline void cpu_pause(void)
{
	asm volatile("yield");
}

/* Instructions between the two readings of the counter outside the loop. */
#define CALIBRATE_OVERHEAD	3

/**
 * calibrate() - a loop of CALIBRATE_INSTRUCTIONS between markers
 * @nr: iterations
 *
 * The overhead is the two markers and one of the two mrs.
 *
 * Return: how far the counter advanced.
 */
static __always_inline uint64_t calibrate(uint64_t nr)
{
	uint64_t first, last;

	asm volatile("mrs %[first], cntvct_el0\n\t"
		     "movz xzr, %c[begin], lsl 48\n"
		     "1:\n\t"
		     ".rept %c[nops]\n\t"
		     "nop\n\t"
		     ".endr\n\t"
		     "subs %[left], %[left], 1\n\t"
		     "b.ne 1b\n\t"
		     "movz xzr, %c[end], lsl 48\n\t"
		     "mrs %[last], cntvct_el0"
		     : [first] "=&r" (first), [last] "=&r" (last),
		       [left] "+&r" (nr)
		     : [begin] "i" (IOPATH_MARK_MAGIC | IOPATH_MARK_BEGIN),
		       [end] "i" (IOPATH_MARK_MAGIC | IOPATH_MARK_END),
		       [nops] "i" (CALIBRATE_INSTRUCTIONS - 2)
		     : "cc", "memory");
	return last - first;
}

/* One access to a byte of memory, and nothing else. */
static __always_inline void write_byte(char *at)
{
	asm volatile("strb %w1, %0" : "=Q" (*at) : "r" (1) : "memory");
}

static __always_inline void read_byte(const char *at)
{
	uint32_t byte;

	asm volatile("ldrb %w0, %1" : "=r" (byte) : "Q" (*at) : "memory");
}
