/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between the supported kernels, each once, each found by what the
 * headers define, or by trying to compile it (see Kbuild), and not by the version
 * number: stable kernels carry backports.
 */
#ifndef FAIRWQ_COMPAT_H
#define FAIRWQ_COMPAT_H

#include <linux/lockdep.h>
#include <linux/prefetch.h>

/*
 * __assign_str(dst, src) became __assign_str(dst) in 6.10. What both of them
 * do, in words that both headers know.
 */
#define fairwq_assign_str(dst, src)					\
	({								\
		const char *__src = (src);				\
									\
		memcpy(__get_str(dst), __src, strlen(__src) + 1);	\
	})

/*
 * Where the compiler is told not to use SSE, as for user-mode Linux, its own
 * prefetch is nothing.
 */
static inline void fairwq_prefetchw(const void *p)
{
#if defined(CONFIG_UML) && defined(__x86_64__)
	asm volatile("prefetchw %0" : : "m" (*(const char *)p));
#else
	prefetchw(p);
#endif
}

/*
 * User-mode Linux has the generic smp_load_acquire(), with a fence that takes as long as a
 * whole queue call. On x86 a load is one.
 */
static inline unsigned int fairwq_load_acquire(const unsigned int *p)
{
#if defined(CONFIG_UML) && defined(__x86_64__)
	unsigned int value = READ_ONCE(*p);

	barrier();	/* the compiler's part of it */
	return value;
#else
	/* Pairs with what the caller says. */
	return smp_load_acquire(p);
#endif
}

/* The suite that asks lockdep what it knows. */
#if defined(CONFIG_PROVE_LOCKING) && defined(lock_set_cmp_fn)
#define FAIRWQ_HAS_LOCK_CMP_FN
#endif

/* What the bench and the torture want of newer kernels. */
#ifdef FAIRWQ_COMPAT_TRIED
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/workqueue.h>

#ifndef FAIRWQ_HAS_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *timer),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/* Kernels that have it warn where it is not used. */
#ifndef FAIRWQ_HAS_WQ_PERCPU
#define WQ_PERCPU		0
#endif

/* From 6.14 on kthread_create_worker() leaves it to the caller to start it. */
#ifndef kthread_run_worker
#define kthread_run_worker	kthread_create_worker
#endif
#endif /* FAIRWQ_COMPAT_TRIED */

#endif /* FAIRWQ_COMPAT_H */
