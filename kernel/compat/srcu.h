/* SPDX-License-Identifier: GPL-2.0 */
/*
 * SRCU, as on Linux 7.3.
 */
#ifndef IOPATH_COMPAT_SRCU_H
#define IOPATH_COMPAT_SRCU_H

#include <linux/srcu.h>

#include "compat/version.h"

/*
 * Enter and leave a read-side section of SRCU in different contexts. The names
 * for that, srcu_down_read() and srcu_up_read(), came with 6.3 (e29a4915db14
 * "srcu: Debug NMI safety even on archs that don't require it" and its series),
 * and check first for an NMI. All kernels have what they call. sparse must not
 * see an unbalanced lock. Goes with support for 6.2.
 */
static __always_inline int compat_srcu_down_read(struct srcu_struct *srcu)
{
	int idx = __srcu_read_lock(srcu);

	__release(srcu);
	return idx;
}

static __always_inline void compat_srcu_up_read(struct srcu_struct *srcu,
						int idx)
{
	__acquire(srcu);
	__srcu_read_unlock(srcu, idx);
}

#endif /* IOPATH_COMPAT_SRCU_H */
