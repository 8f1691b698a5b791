/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hook: helpers for a test that steps into the middle of a call. They are calls
 * in a thread of their own, steps between two CPUs, and an interrupt on top of
 * a caller. Hooks at the points in enum fairwq_test_point use them.
 */
#ifndef FAIRWQ_TEST_HOOK_H
#define FAIRWQ_TEST_HOOK_H

#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>

#include "fixture.h"

/* ---- a call that may wait ---------------------------------------------- */

/* A call of @fn(@work) in a thread of its own. */
struct call {
	bool (*fn)(struct fairwq_work *work);
	struct fairwq_work *work;
	struct task_struct *task;
	struct completion done;
	bool ret;
};

struct call *mock_call_new(struct kunit *test, bool (*fn)(struct fairwq_work *work),
			   struct fairwq_work *work);
struct call *mock_call_start(struct kunit *test, bool (*fn)(struct fairwq_work *work),
			     struct fairwq_work *work);
struct call *mock_call_start_apart(struct kunit *test, bool (*fn)(struct fairwq_work *work),
				   struct fairwq_work *work);
void mock_call_go_apart(struct kunit *test, struct call *call);
void mock_call_settle(struct kunit *test, struct call *call);
bool mock_call_end(struct kunit *test, struct call *call);

unsigned int mock_nr_waiters(struct fairwq_pool *pool);

/* ---- steps between two CPUs --------------------------------------------- */

/* Spin until step_done(@flag). Interrupts may be off. Return: false if it timed out. */
static inline bool spin_until(const bool *flag)
{
	/* Pairs with step_done(). */
	return spin_within(smp_load_acquire(flag));
}

/* Let spin_until(@flag) go on, with all that this CPU has written before. */
static inline void step_done(bool *flag)
{
	/* Pairs with spin_until(). */
	smp_store_release(flag, true);
}

/*
 * Time in which a call on another CPU, next to look at a work, most likely does
 * so. If it does so later, the case does not see how the call waits. It does
 * not fail for that.
 */
#define MOCK_LOOK_US	200

#define need_two_cpus(test)						\
	do {								\
		if (num_online_cpus() < 2)				\
			kunit_skip(test, "needs two CPUs");		\
	} while (0)

/* ---- an interrupt on top ------------------------------------------------ */

bool mock_call_on_top(void (*fn)(void *data), void *data);

#endif /* FAIRWQ_TEST_HOOK_H */
