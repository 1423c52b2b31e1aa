/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which kernels the modules are known on. The driver code is written to the
 * newest of them; the headers beside this one make the older ones look like
 * it. A kernel outside of the range has an interface nobody has looked at:
 * that is an error when building, not a surprise when measuring.
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

#if !COMPAT_KERNEL_BEFORE(7, 4)
#error "iopath: this kernel is newer than 7.3, the newest supported"
#endif

#endif /* IOPATH_COMPAT_VERSION_H */
