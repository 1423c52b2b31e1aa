/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Timers and reference counts as of Linux 7.3.
 */
#ifndef IOPATH_COMPAT_LIB_H
#define IOPATH_COMPAT_LIB_H

#include <linux/hrtimer.h>
#include <linux/percpu-refcount.h>

#include "compat/version.h"

/*
 * A timer is set up by one function since 6.13 (908a1d775422 "hrtimers:
 * Introduce hrtimer_setup() to replace hrtimer_init()"), and by that one alone
 * since 6.15. Goes with support for 6.12.
 */
static inline void
compat_hrtimer_setup(struct hrtimer *timer,
		     enum hrtimer_restart (*function)(struct hrtimer *),
		     clockid_t clock, enum hrtimer_mode mode)
{
#if COMPAT_KERNEL_BEFORE(6, 13)
	hrtimer_init(timer, clock, mode);
	timer->function = function;
#else
	hrtimer_setup(timer, function, clock, mode);
#endif
}

/*
 * A caller that is in a section of RCU already says so since 5.16 (3b13c168186c
 * "percpu_ref: percpu_ref_tryget_live() version holding RCU"). Goes with support
 * for 5.15.
 */
static __always_inline bool
compat_percpu_ref_tryget_live_rcu(struct percpu_ref *ref)
{
#if COMPAT_KERNEL_BEFORE(5, 16)
	return percpu_ref_tryget_live(ref);
#else
	return percpu_ref_tryget_live_rcu(ref);
#endif
}

#endif /* IOPATH_COMPAT_LIB_H */
