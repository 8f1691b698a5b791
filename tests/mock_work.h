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

static inline struct call *call_new(struct kunit *test,
				    bool (*fn)(struct fairwq_work *work),
				    struct fairwq_work *work)
{
	struct call *call = kunit_kzalloc(test, sizeof(*call), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, call);
	call->fn = fn;
	call->work = work;
	init_completion(&call->done);
	call->task = kthread_create(call_thread, call, "call");
	KUNIT_ASSERT_FALSE(test, IS_ERR(call->task));
	return call;
}

static inline struct call *call_start(struct kunit *test,
				      bool (*fn)(struct fairwq_work *work),
				      struct fairwq_work *work)
{
	struct call *call = call_new(test, fn, work);

	wake_up_process(call->task);
	return call;
}

/* On another CPU than the caller, who stays where he is for the rest of the case. */
static inline void call_go_apart(struct kunit *test, struct call *call)
{
	unsigned int cpu = raw_smp_processor_id();

	KUNIT_ASSERT_EQ(test, 0, set_cpus_allowed_ptr(current, cpumask_of(cpu)));
	kthread_bind(call->task, cpumask_any_but(cpu_online_mask, cpu));
	wake_up_process(call->task);
}

static inline struct call *call_start_apart(struct kunit *test,
					    bool (*fn)(struct fairwq_work *work),
					    struct fairwq_work *work)
{
	struct call *call = call_new(test, fn, work);

	call_go_apart(test, call);
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

/* ---- items ------------------------------------------------------------ */

static inline void nothing_fn(struct fairwq_work *work)
{
}

static inline struct mock_gate *gate_new(struct kunit *test)
{
	struct mock_gate *gate = kunit_kzalloc(test, sizeof(*gate), GFP_KERNEL);
	struct mock *mock = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, gate);
	mock_gate_init(gate);
	gate->next = mock->gates;
	mock->gates = gate;
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

/* ---- what is held up by a gate ------------------------------------------ */

#define QUICK_WARM_UP	200

/*
 * A pool with one runner, and a batch whose items are known to be over at once. What
 * the test queues to the batch before held_go() is queued behind @gate.
 */
static inline struct fairwq_batch *held_begin(struct kunit *test, struct mock_gate *gate)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	mock_pool(test, 1, FAIRWQ_ROUND_ROBIN);
	mock_open(test);
	a = mock_batch(test, "a");
	mock_queue(test, a, '-', QUICK_WARM_UP);
	fairwq_batch_flush(a);
	log_clear(mock);
	fairwq_batch_pause(a);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &gate->work));
	return a;
}

/* The runner is at @gate, and all up to @last is in order behind it. */
static inline void held_go(struct kunit *test, struct fairwq_batch *a,
			   struct mock_gate *gate, const struct mock_item *last)
{
	fairwq_batch_resume(a);
	mock_await(test, &gate->entered);
	fairwq_test_look(a);
	KUNIT_ASSERT_TRUE(test, atomic_long_read(&last->work.data) & FAIRWQ_WORK_LINKED);
}

/* ---- a turn that is parked -------------------------------------------- */

/* A gate that runs, and whose next turn has been parked until it is opened. */
static inline struct mock_gate *parked_begin(struct kunit *test, struct fairwq_batch *a)
{
	struct mock_gate *gate = gate_new(test);

	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &gate->work));
	mock_await(test, &gate->entered);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &gate->work));
	mock_until(test, READ_ONCE(a->nr_parked) == 1);
	return gate;
}

/* ---- steps between two CPUs ------------------------------------------- */

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

/* ---- an interrupt on top ---------------------------------------------- */

struct on_top {
	struct irq_work irq_work;
	void (*fn)(void *data);
	void *data;
	bool was_hardirq, done;
};

static inline void on_top_fn(struct irq_work *irq_work)
{
	struct on_top *top = container_of(irq_work, struct on_top, irq_work);

	top->was_hardirq = in_hardirq();
	top->fn(top->data);
	step_done(&top->done);
}

/* Call @fn from a hardirq of this CPU, on top of the caller. Returns whether it was. */
static inline bool call_on_top(void (*fn)(void *data), void *data)
{
	static struct on_top top;	/* one at a time */
	bool ok;

	top = (struct on_top){ .fn = fn, .data = data };
	top.irq_work = IRQ_WORK_INIT_HARD(on_top_fn);
	preempt_disable();
	irq_work_queue(&top.irq_work);
	ok = spin_until(&top.done);
	preempt_enable();
	while (ok && irq_work_is_busy(&top.irq_work))
		cpu_relax();
	return ok && top.was_hardirq;
}

#define need_two_cpus(test)						\
	do {								\
		if (num_online_cpus() < 2)				\
			kunit_skip(test, "needs two CPUs");		\
	} while (0)

#endif /* FAIRWQ_MOCK_WORK_H */
