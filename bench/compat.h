/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What bench/ and tests/torture use of newer kernels. Kbuild tries what the
 * preprocessor cannot see.
 */
#ifndef FAIRWQ_BENCH_COMPAT_H
#define FAIRWQ_BENCH_COMPAT_H

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

/* Kernels with WQ_PERCPU warn about a workqueue without it. */
#ifndef FAIRWQ_HAS_WQ_PERCPU
#define WQ_PERCPU		0
#endif

/* Since 6.14 kthread_create_worker() does not start the worker. */
#ifndef kthread_run_worker
#define kthread_run_worker	kthread_create_worker
#endif

#endif /* FAIRWQ_BENCH_COMPAT_H */
