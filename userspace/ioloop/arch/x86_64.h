/* SPDX-License-Identifier: GPL-2.0 */
/* What arch.h describes, for x86-64. */

static __always_inline long sys0(long nr)
{
	long ret = nr;

	asm volatile("syscall" : "+a" (ret) : : "rcx", "r11", "memory");
	return ret;
}

static __always_inline long sys1(long nr, long a)
{
	long ret = nr;

	asm volatile("syscall" : "+a" (ret) : "D" (a)
		     : "rcx", "r11", "memory");
	return ret;
}

static __always_inline long sys2(long nr, long a, long b)
{
	long ret = nr;

	asm volatile("syscall" : "+a" (ret) : "D" (a), "S" (b)
		     : "rcx", "r11", "memory");
	return ret;
}

static __always_inline
long sys3(long nr, long a, long b, long c)
{
	long ret = nr;

	asm volatile("syscall" : "+a" (ret) : "D" (a), "S" (b), "d" (c)
		     : "rcx", "r11", "memory");
	return ret;
}

static __always_inline
long sys4(long nr, long a, long b, long c, long d)
{
	register long r10 asm("r10") = d;
	long ret = nr;

	asm volatile("syscall"
		     : "+a" (ret) : "D" (a), "S" (b), "d" (c), "r" (r10)
		     : "rcx", "r11", "memory");
	return ret;
}

static __always_inline
long sys5(long nr, long a, long b, long c, long d, long e)
{
	register long r10 asm("r10") = d;
	register long r8 asm("r8") = e;
	long ret = nr;

	asm volatile("syscall"
		     : "+a" (ret)
		     : "D" (a), "S" (b), "d" (c), "r" (r10), "r" (r8)
		     : "rcx", "r11", "memory");
	return ret;
}

static __always_inline
long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 asm("r10") = d;
	register long r8 asm("r8") = e;
	register long r9 asm("r9") = f;
	long ret = nr;

	asm volatile("syscall"
		     : "+a" (ret)
		     : "D" (a), "S" (b), "d" (c), "r" (r10), "r" (r8), "r" (r9)
		     : "rcx", "r11", "memory");
	return ret;
}

/**
 * stopped() - whether a loop should end early
 * @stop: job->stop, which another process sets
 *
 * This is one compare with memory. A volatile load would be an instruction
 * more.
 */
static __always_inline bool stopped(const int *stop)
{
	bool set;

	asm volatile("cmpl $0, %1" : "=@ccne" (set) : "m" (*stop));
	return __builtin_expect(set, 0);
}

/*
 * The time stamp counter. Not serialised: what is timed is long, and under
 * QEMU's -icount, where it counts instructions, a fence would be one more.
 */
static __always_inline uint64_t cycles(void)
{
	uint32_t lo, hi;

	asm volatile("rdtsc" : "=a" (lo), "=d" (hi) : : "memory");
	return (uint64_t)hi << 32 | lo;
}

/* Tell the processor that the loop waits for another one. */
static __always_inline void cpu_pause(void)
{
	asm volatile("pause");
}

/* Instructions between the two readings of the counter outside the loop. */
#define CALIBRATE_OVERHEAD	5

#define NOPL(op)	".byte 0x0f, 0x1f, 0x84, 0x00\n\t.long %c[" op "]\n\t"

/**
 * calibrate() - a loop of CALIBRATE_INSTRUCTIONS between markers
 * @nr: iterations
 *
 * The overhead is the two moves that save the first reading, the two markers,
 * and one of the two rdtsc.
 *
 * Return: how far the counter advanced.
 */
static __always_inline uint64_t calibrate(uint64_t nr)
{
	uint32_t lo0, hi0, lo1, hi1;

	asm volatile("rdtsc\n\t"
		     "movl %%eax, %[lo0]\n\t"
		     "movl %%edx, %[hi0]\n\t"
		     NOPL("begin")
		     "1:\n\t"
		     ".rept %c[nops]\n\t"
		     "nop\n\t"
		     ".endr\n\t"
		     "decq %[left]\n\t"
		     "jnz 1b\n\t"
		     NOPL("end")
		     "rdtsc"
		     : [lo0] "=&r" (lo0), [hi0] "=&r" (hi0),
		       "=&a" (lo1), "=&d" (hi1), [left] "+&r" (nr)
		     : [begin] "i" (IOPATH_MARK_MAGIC | IOPATH_MARK_BEGIN),
		       [end] "i" (IOPATH_MARK_MAGIC | IOPATH_MARK_END),
		       [nops] "i" (CALIBRATE_INSTRUCTIONS - 2)
		     : "cc", "memory");
	return ((uint64_t)hi1 << 32 | lo1) - ((uint64_t)hi0 << 32 | lo0);
}

/* One access to a byte of memory, and nothing else. */
static __always_inline void write_byte(char *at)
{
	asm volatile("movb $1, %0" : "=m" (*at) : : "memory");
}

static __always_inline void read_byte(const char *at)
{
	asm volatile("cmpb $0, %0" : : "m" (*at) : "cc", "memory");
}
