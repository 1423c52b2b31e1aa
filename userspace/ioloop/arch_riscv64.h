/* SPDX-License-Identifier: GPL-2.0 */
/* What arch.h describes, for riscv64. */

static __always_inline long sys0(long nr)
{
	register long a7 asm("a7") = nr;
	register long a0 asm("a0");

	asm volatile("ecall" : "=r" (a0) : "r" (a7) : "memory");
	return a0;
}

static __always_inline long sys1(long nr, long a)
{
	register long a7 asm("a7") = nr;
	register long a0 asm("a0") = a;

	asm volatile("ecall" : "+r" (a0) : "r" (a7) : "memory");
	return a0;
}

static __always_inline long sys2(long nr, long a, long b)
{
	register long a7 asm("a7") = nr;
	register long a0 asm("a0") = a;
	register long a1 asm("a1") = b;

	asm volatile("ecall"
		     : "+r" (a0) : "r" (a7), "r" (a1) : "memory");
	return a0;
}

static __always_inline
long sys3(long nr, long a, long b, long c)
{
	register long a7 asm("a7") = nr;
	register long a0 asm("a0") = a;
	register long a1 asm("a1") = b;
	register long a2 asm("a2") = c;

	asm volatile("ecall"
		     : "+r" (a0) : "r" (a7), "r" (a1), "r" (a2) : "memory");
	return a0;
}

static __always_inline
long sys4(long nr, long a, long b, long c, long d)
{
	register long a7 asm("a7") = nr;
	register long a0 asm("a0") = a;
	register long a1 asm("a1") = b;
	register long a2 asm("a2") = c;
	register long a3 asm("a3") = d;

	asm volatile("ecall"
		     : "+r" (a0) : "r" (a7), "r" (a1), "r" (a2), "r" (a3) : "memory");
	return a0;
}

static __always_inline
long sys5(long nr, long a, long b, long c, long d, long e)
{
	register long a7 asm("a7") = nr;
	register long a0 asm("a0") = a;
	register long a1 asm("a1") = b;
	register long a2 asm("a2") = c;
	register long a3 asm("a3") = d;
	register long a4 asm("a4") = e;

	asm volatile("ecall"
		     : "+r" (a0)
		     : "r" (a7), "r" (a1), "r" (a2),
		       "r" (a3), "r" (a4)
		     : "memory");
	return a0;
}

static __always_inline
long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long a7 asm("a7") = nr;
	register long a0 asm("a0") = a;
	register long a1 asm("a1") = b;
	register long a2 asm("a2") = c;
	register long a3 asm("a3") = d;
	register long a4 asm("a4") = e;
	register long a5 asm("a5") = f;

	asm volatile("ecall"
		     : "+r" (a0)
		     : "r" (a7), "r" (a1), "r" (a2),
		       "r" (a3), "r" (a4), "r" (a5)
		     : "memory");
	return a0;
}

/**
 * stopped() - whether a loop should end early
 * @stop: job->stop, which another process sets
 */
static __always_inline bool stopped(const int *stop)
{
	return __builtin_expect(__atomic_load_n(stop, __ATOMIC_RELAXED), 0);
}

/*
 * The instructions that this processor has executed, which the kernel lets
 * programs read once init has asked for it: userspace/guest/init.c. The clock is
 * no use: it ticks every 100th nanosecond.
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

/* Instructions between the two readings of the counter that are not the loop's. */
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
