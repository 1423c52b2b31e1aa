/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between processors, in a file for each:
 *
 *	sys0() to sys6()	raw system calls
 *	stopped()		whether a loop should end early
 *	cycles()		the cycle counter
 *	cpu_pause()		a hint that the loop waits for another processor
 *	calibrate()		a loop of a known number of instructions
 *	write_byte(), read_byte()
 *				one access to memory
 *
 * The engines call the kernel with these and not through the C library, so that
 * a timed loop has no wrapper, no errno and no cancellation point. A result of
 * -4095 to -1 is a negated errno.
 */
#ifndef IOLOOP_ARCH_H
#define IOLOOP_ARCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/cdefs.h>

#include "../../kernel/include/iopath/marker.h"

/* One iteration of the loop of calibrate(). */
#define CALIBRATE_INSTRUCTIONS	10

#if defined(__x86_64__)
#include "arch/x86_64.h"
#elif defined(__aarch64__)
#include "arch/aarch64.h"
#elif defined(__riscv) && __riscv_xlen == 64
#include "arch/riscv64.h"
#else
#error "ioloop knows the system calls and the cycle counters of x86-64, arm64 and riscv64"
#endif

#endif /* IOLOOP_ARCH_H */
