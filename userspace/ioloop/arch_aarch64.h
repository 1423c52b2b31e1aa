/* SPDX-License-Identifier: GPL-2.0 */
/* What arch.h describes, for arm64. */

static __always_inline long sys0(long nr)
{
	register long x8 asm("x8") = nr;
	register long x0 asm("x0");

	asm volatile("svc #0" : "=r" (x0) : "r" (x8) : "memory");
	return x0;
}

static __always_inline long sys1(long nr, long a)
{
	register long x8 asm("x8") = nr;
	register long x0 asm("x0") = a;

	asm volatile("svc #0" : "+r" (x0) : "r" (x8) : "memory");
	return x0;
}

static __always_inline long sys2(long nr, long a, long b)
{
	register long x8 asm("x8") = nr;
	register long x0 asm("x0") = a;
	register long x1 asm("x1") = b;

	asm volatile("svc #0"
		     : "+r" (x0) : "r" (x8), "r" (x1) : "memory");
	return x0;
}

static __always_inline
long sys3(long nr, long a, long b, long c)
{
	register long x8 asm("x8") = nr;
	register long x0 asm("x0") = a;
	register long x1 asm("x1") = b;
	register long x2 asm("x2") = c;

	asm volatile("svc #0"
		     : "+r" (x0) : "r" (x8), "r" (x1), "r" (x2) : "memory");
	return x0;
}

static __always_inline
long sys4(long nr, long a, long b, long c, long d)
{
	register long x8 asm("x8") = nr;
	register long x0 asm("x0") = a;
	register long x1 asm("x1") = b;
	register long x2 asm("x2") = c;
	register long x3 asm("x3") = d;

	asm volatile("svc #0"
		     : "+r" (x0) : "r" (x8), "r" (x1), "r" (x2), "r" (x3) : "memory");
	return x0;
}

static __always_inline
long sys5(long nr, long a, long b, long c, long d, long e)
{
	register long x8 asm("x8") = nr;
	register long x0 asm("x0") = a;
	register long x1 asm("x1") = b;
	register long x2 asm("x2") = c;
	register long x3 asm("x3") = d;
	register long x4 asm("x4") = e;

	asm volatile("svc #0"
		     : "+r" (x0)
		     : "r" (x8), "r" (x1), "r" (x2),
		       "r" (x3), "r" (x4)
		     : "memory");
	return x0;
}

static __always_inline
long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 asm("x8") = nr;
	register long x0 asm("x0") = a;
	register long x1 asm("x1") = b;
	register long x2 asm("x2") = c;
	register long x3 asm("x3") = d;
	register long x4 asm("x4") = e;
	register long x5 asm("x5") = f;

	asm volatile("svc #0"
		     : "+r" (x0)
		     : "r" (x8), "r" (x1), "r" (x2),
		       "r" (x3), "r" (x4), "r" (x5)
		     : "memory");
	return x0;
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

/* Instructions between the two readings of the counter that are not the loop's. */
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
