/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The range of kernels that the modules support. The driver code is written to
 * the newest one; the headers beside this one adapt the older ones to it. On any
 * other kernel, building fails.
 */
#ifndef IOPATH_COMPAT_VERSION_H
#define IOPATH_COMPAT_VERSION_H

#include <linux/version.h>

#define COMPAT_KERNEL_BEFORE(major, minor) \
	(LINUX_VERSION_CODE < KERNEL_VERSION(major, minor, 0))

#ifndef CONFIG_64BIT
#error "iopath: this kernel is 32-bit, only 64-bit ones are supported"
#endif

#if COMPAT_KERNEL_BEFORE(5, 10)
#error "iopath: this kernel is older than 5.10, the oldest supported"
#endif

#if !COMPAT_KERNEL_BEFORE(6, 7) && COMPAT_KERNEL_BEFORE(6, 9)
#error "iopath: Linux 6.7 and 6.8 are not supported, 5.10 to 6.6 and 6.9 to 7.3 are"
#endif

#if !COMPAT_KERNEL_BEFORE(7, 4)
#error "iopath: this kernel is newer than 7.3, the newest supported"
#endif

#endif /* IOPATH_COMPAT_VERSION_H */
