/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What happens in the middle of a call: a call in a thread of its own, steps between
 * two CPUs, an interrupt on top. Hooks at the points in enum fairwq_test_point use it.
 */
#ifndef FAIRWQ_TEST_HOOK_H
#define FAIRWQ_TEST_HOOK_H

#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>

#include "fixture.h"

/* ---- a call that may wait ---------------------------------------------- */

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
bool mock_call_end(struct kunit *test, struct call *call);

unsigned int mock_nr_waiters(struct fairwq_pool *pool);

/* ---- steps between two CPUs --------------------------------------------- */

#define MOCK_SPIN_MS	5000	/* for what has to come */

/* Until @cond holds, at most @ms, also with interrupts off. Returns whether it does. */
#define spin_for(ms, cond)						\
	({								\
		u64 __end = fairwq_clock() + (u64)(ms) * NSEC_PER_MSEC;	\
		bool __met, __late;					\
									\
		do {							\
			/* First: time may pass in between. */		\
			__late = fairwq_clock() > __end;		\
			__met = (cond);					\
			cpu_relax();					\
		} while (!__met && !__late);				\
		__met;							\
	})

/* Also with interrupts off. */
static inline bool spin_until(const bool *flag)
{
	/* Pairs with step_done(). */
	return spin_for(MOCK_SPIN_MS, smp_load_acquire(flag));
}

static inline void step_done(bool *flag)
{
	/* Pairs with spin_until(). */
	smp_store_release(flag, true);
}

/* By then a call on another CPU, which was about to look, has looked, as a rule. */
#define MOCK_LOOK_US	200

#define need_two_cpus(test)						\
	do {								\
		if (num_online_cpus() < 2)				\
			kunit_skip(test, "needs two CPUs");		\
	} while (0)

/* ---- an interrupt on top ------------------------------------------------ */

bool mock_call_on_top(void (*fn)(void *data), void *data);

#endif /* FAIRWQ_TEST_HOOK_H */
