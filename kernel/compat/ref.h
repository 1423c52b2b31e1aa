/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reference counts, as on Linux 7.3.
 */
#ifndef IOPATH_COMPAT_REF_H
#define IOPATH_COMPAT_REF_H

#include <linux/percpu-refcount.h>

#include "compat/version.h"

/*
 * A caller that is in a section of RCU already says so since 5.17 (3b13c168186c
 * "percpu_ref: percpu_ref_tryget_live() version holding RCU"). Goes with support
 * for 5.16.
 */
static __always_inline bool
compat_percpu_ref_tryget_live_rcu(struct percpu_ref *ref)
{
#if COMPAT_KERNEL_BEFORE(5, 17)
	return percpu_ref_tryget_live(ref);
#else
	return percpu_ref_tryget_live_rcu(ref);
#endif
}

#endif /* IOPATH_COMPAT_REF_H */
