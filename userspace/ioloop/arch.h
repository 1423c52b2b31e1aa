/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is different on each processor: raw system calls and the cycle counter.
 *
 * The engines call the kernel with these and not through the C library: no
 * wrapper, no errno and no cancellation point lies in a timed loop. A result
 * of -4095 to -1 is a negated errno.
 */
#ifndef IOLOOP_ARCH_H
#define IOLOOP_ARCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/cdefs.h>

#ifndef __x86_64__
#error "ioloop knows the system calls and the cycle counter of x86-64 only"
#endif

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
 * One compare with memory, which a volatile load would not become.
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

#endif /* IOLOOP_ARCH_H */
