/* SPDX-License-Identifier: GPL-2.0 */
/* What GCC has no shorter name for. */
#ifndef IOLOOP_COMPILER_H
#define IOLOOP_COMPILER_H

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#endif /* IOLOOP_COMPILER_H */
