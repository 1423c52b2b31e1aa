/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What arch.h describes, as far as it differs only in names: system calls by
 * the instruction SYS_INSN, with their number in the register SYS_NUMBER and
 * arguments in SYS_ARG0 to SYS_ARG5, of which the first returns the result.
 */

static __always_inline long sys0(long nr)
{
	register long number asm(SYS_NUMBER) = nr;
	register long arg0 asm(SYS_ARG0);

	asm volatile(SYS_INSN : "=r" (arg0) : "r" (number) : "memory");
	return arg0;
}

static __always_inline long sys1(long nr, long a)
{
	register long number asm(SYS_NUMBER) = nr;
	register long arg0 asm(SYS_ARG0) = a;

	asm volatile(SYS_INSN : "+r" (arg0) : "r" (number) : "memory");
	return arg0;
}

static __always_inline long sys2(long nr, long a, long b)
{
	register long number asm(SYS_NUMBER) = nr;
	register long arg0 asm(SYS_ARG0) = a;
	register long arg1 asm(SYS_ARG1) = b;

	asm volatile(SYS_INSN
		     : "+r" (arg0) : "r" (number), "r" (arg1) : "memory");
	return arg0;
}

static __always_inline
long sys3(long nr, long a, long b, long c)
{
	register long number asm(SYS_NUMBER) = nr;
	register long arg0 asm(SYS_ARG0) = a;
	register long arg1 asm(SYS_ARG1) = b;
	register long arg2 asm(SYS_ARG2) = c;

	asm volatile(SYS_INSN
		     : "+r" (arg0) : "r" (number), "r" (arg1), "r" (arg2) : "memory");
	return arg0;
}

static __always_inline
long sys4(long nr, long a, long b, long c, long d)
{
	register long number asm(SYS_NUMBER) = nr;
	register long arg0 asm(SYS_ARG0) = a;
	register long arg1 asm(SYS_ARG1) = b;
	register long arg2 asm(SYS_ARG2) = c;
	register long arg3 asm(SYS_ARG3) = d;

	asm volatile(SYS_INSN
		     : "+r" (arg0) : "r" (number), "r" (arg1), "r" (arg2), "r" (arg3) : "memory");
	return arg0;
}

static __always_inline
long sys5(long nr, long a, long b, long c, long d, long e)
{
	register long number asm(SYS_NUMBER) = nr;
	register long arg0 asm(SYS_ARG0) = a;
	register long arg1 asm(SYS_ARG1) = b;
	register long arg2 asm(SYS_ARG2) = c;
	register long arg3 asm(SYS_ARG3) = d;
	register long arg4 asm(SYS_ARG4) = e;

	asm volatile(SYS_INSN
		     : "+r" (arg0)
		     : "r" (number), "r" (arg1), "r" (arg2),
		       "r" (arg3), "r" (arg4)
		     : "memory");
	return arg0;
}

static __always_inline
long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long number asm(SYS_NUMBER) = nr;
	register long arg0 asm(SYS_ARG0) = a;
	register long arg1 asm(SYS_ARG1) = b;
	register long arg2 asm(SYS_ARG2) = c;
	register long arg3 asm(SYS_ARG3) = d;
	register long arg4 asm(SYS_ARG4) = e;
	register long arg5 asm(SYS_ARG5) = f;

	asm volatile(SYS_INSN
		     : "+r" (arg0)
		     : "r" (number), "r" (arg1), "r" (arg2),
		       "r" (arg3), "r" (arg4), "r" (arg5)
		     : "memory");
	return arg0;
}

/**
 * stopped() - whether a loop should end early
 * @stop: job->stop, which another process sets
 */
static __always_inline bool stopped(const int *stop)
{
	return __builtin_expect(__atomic_load_n(stop, __ATOMIC_RELAXED), 0);
}
