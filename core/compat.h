/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Compatibility: what differs between the supported kernels and architectures,
 * each in one place.
 *
 *   fairwq_assign_str()     strings of tracepoints       before 6.10
 *   timer_destroy_on_stack()  another name               before 6.16
 *   guard()                 sparse does not know it      every kernel
 *   FAIRWQ_HAS_NOTIFIERS    the scheduler calls modules: with KVM
 *
 * Invariant: a difference is found by what the headers define, or by compiling
 * a use of it (see Kbuild). It must not be found by the version number, because
 * stable kernels carry backports.
 */
#ifndef FAIRWQ_COMPAT_H
#define FAIRWQ_COMPAT_H

#include <linux/cleanup.h>
#include <linux/lockdep.h>
#include <linux/preempt.h>
#include <linux/timer.h>

/*
 * Copy a string into a trace entry. __assign_str(dst, src) became
 * __assign_str(dst) in 6.10; this does what both do, on either side.
 */
#define fairwq_assign_str(dst, src)					\
	({								\
		const char *__src = (src);				\
									\
		memcpy(__get_str(dst), __src, strlen(__src) + 1);	\
	})

/*
 * sparse does not see that a guard() drops its lock at the end of the scope, so
 * it is shown none.
 */
#ifdef __CHECKER__
#undef guard
#undef scoped_guard
#define fairwq_unseen_guard(...)
#define guard(...)		fairwq_unseen_guard
#define scoped_guard(...)
#endif

/* FAIRWQ_TICKS=1 builds what a kernel without them gets, for tests. */
#if defined(CONFIG_PREEMPT_NOTIFIERS) && !defined(FAIRWQ_TICKS)
#define FAIRWQ_HAS_NOTIFIERS
#else
#define preempt_notifier_inc()
#define preempt_notifier_dec()
#endif

/* Both names of timers changed in 6.16. */
#ifndef timer_container_of
#define timer_destroy_on_stack	destroy_timer_on_stack
#endif

/* Kernels before 6.15 have no such word; there a variable may be cleared in vain. */
#ifndef __uninitialized
#define __uninitialized
#endif

#endif /* FAIRWQ_COMPAT_H */
