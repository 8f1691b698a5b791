/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites of single works share: a call in a thread of its own, a plan
 * that is held up, and steps between two CPUs.
 */
#ifndef FAIRWQ_MOCK_WORK_H
#define FAIRWQ_MOCK_WORK_H

#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>

#include "mock.h"

/* ---- a call that may wait --------------------------------------------- */

struct call {
	bool (*fn)(struct fairwq_work *work);
	struct fairwq_work *work;
	struct task_struct *task;
	struct completion done;
	bool ret;
};

static inline int call_thread(void *data)
{
	struct call *call = data;

	call->ret = call->fn(call->work);
	complete(&call->done);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

static inline struct call *call_start(struct kunit *test,
				      bool (*fn)(struct fairwq_work *work),
				      struct fairwq_work *work)
{
	struct call *call = kunit_kzalloc(test, sizeof(*call), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, call);
	call->fn = fn;
	call->work = work;
	init_completion(&call->done);
	call->task = kthread_run(call_thread, call, "call");
	KUNIT_ASSERT_FALSE(test, IS_ERR(call->task));
	return call;
}

/* It has returned, or the case fails; what it returned. */
static inline bool call_end(struct kunit *test, struct call *call)
{
	mock_await(test, &call->done);
	kthread_stop(call->task);
	return call->ret;
}

/* So many wait for a single work of the pool. */
static inline unsigned int nr_waiters(struct fairwq_pool *pool)
{
	struct list_head *node;
	unsigned int nr = 0;

	raw_spin_lock_irq(&pool->lock);
	list_for_each(node, &pool->waiters)
		nr++;
	raw_spin_unlock_irq(&pool->lock);
	return nr;
}

/* Nobody waits: nothing that was raised was left up. */
static inline unsigned int pool_attention(struct fairwq_pool *pool)
{
	return READ_ONCE(pool->attention);
}

/* ---- items ------------------------------------------------------------ */

static inline struct mock_gate *gate_new(struct kunit *test)
{
	struct mock_gate *gate = kunit_kzalloc(test, sizeof(*gate), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, gate);
	mock_gate_init(gate);
	return gate;
}

/* Queue an item and give it back. */
static inline struct mock_item *queue_item(struct kunit *test, struct fairwq_batch *batch,
					   char letter)
{
	struct mock_item *item = mock_item(test, letter);

	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &item->work));
	return item;
}

static inline void log_clear(struct mock *mock)
{
	mock->log.nr = 0;
	memset(mock->log.text, 0, sizeof(mock->log.text));
}

/* ---- a plan that is held up ------------------------------------------- */

#define PLAN_WARM_UP	200

/*
 * A pool with one runner, and a batch whose items are known to be short. What
 * the test queues to the batch before plan_go() is planned behind @gate.
 */
static inline struct fairwq_batch *plan_begin(struct kunit *test, struct mock_gate *gate)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	mock_pool(test, 1, FAIRWQ_ROUND_ROBIN);
	mock_open(test);
	raw_spin_lock_irq(&mock->pool->lock);
	mock->pool->slice_us = FAIRWQ_MAX_SLICE_US;
	raw_spin_unlock_irq(&mock->pool->lock);
	a = mock_batch(test, "a");
	mock_queue(test, a, '-', PLAN_WARM_UP);
	fairwq_batch_flush(a);
	log_clear(mock);
	fairwq_batch_pause(a);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &gate->work));
	return a;
}

/* The runner has planned, up to @last, and is at @gate. */
static inline void plan_go(struct kunit *test, struct fairwq_batch *a,
			   struct mock_gate *gate, const struct mock_item *last)
{
	fairwq_batch_resume(a);
	mock_await(test, &gate->entered);
	KUNIT_ASSERT_EQ(test, (unsigned int)FAIRWQ_PLACE_SLOT,
			fairwq_work_place(&last->work));
}

/* ---- steps between two CPUs ------------------------------------------- */

/* Also with interrupts off: until @flag is set, or for too long. */
static inline bool spin_until(const bool *flag)
{
	u64 end = fairwq_clock() + 5 * NSEC_PER_SEC;

	/* Pairs with step_done(). */
	while (!smp_load_acquire(flag)) {
		if (fairwq_clock() > end)
			return false;
		cpu_relax();
	}
	return true;
}

static inline void step_done(bool *flag)
{
	/* Pairs with spin_until(). */
	smp_store_release(flag, true);
}

#define need_two_cpus(test)						\
	do {								\
		if (num_online_cpus() < 2)				\
			kunit_skip(test, "needs two CPUs");		\
	} while (0)

#endif /* FAIRWQ_MOCK_WORK_H */
