// SPDX-License-Identifier: GPL-2.0
/*
 * Hook: calls in a thread of their own, and on top of the caller; see hook.h.
 */
#include <linux/module.h>

#include "hook.h"

/* Make the call, then stay until kthread_stop(), so that the task is not gone. */
static int call_thread(void *data)
{
	struct call *call = data;

	call->ret = call->fn(call->work);
	complete(&call->done);
	mock_stay();
	return 0;
}

/* Make a thread that will call @fn(@work) when it is woken. */
struct call *mock_call_new(struct kunit *test, bool (*fn)(struct fairwq_work *work),
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
EXPORT_SYMBOL_GPL(mock_call_new);

/* Call @fn(@work) in a thread of its own. The case must end it by mock_call_end(). */
struct call *mock_call_start(struct kunit *test, bool (*fn)(struct fairwq_work *work),
			     struct fairwq_work *work)
{
	struct call *call = mock_call_new(test, fn, work);

	wake_up_process(call->task);
	return call;
}
EXPORT_SYMBOL_GPL(mock_call_start);

/*
 * Start @call on another CPU than the test. The test is bound to its CPU for
 * the rest of the case.
 */
void mock_call_go_apart(struct kunit *test, struct call *call)
{
	unsigned int cpu = raw_smp_processor_id();

	KUNIT_ASSERT_EQ(test, 0, set_cpus_allowed_ptr(current, cpumask_of(cpu)));
	kthread_bind(call->task, cpumask_any_but(cpu_online_mask, cpu));
	wake_up_process(call->task);
}
EXPORT_SYMBOL_GPL(mock_call_go_apart);

/* Call @fn(@work) in a thread on another CPU; see mock_call_go_apart(). */
struct call *mock_call_start_apart(struct kunit *test, bool (*fn)(struct fairwq_work *work),
				   struct fairwq_work *work)
{
	struct call *call = mock_call_new(test, fn, work);

	mock_call_go_apart(test, call);
	return call;
}
EXPORT_SYMBOL_GPL(mock_call_start_apart);

/* Wait until @call sleeps in what it calls, or has returned. */
void mock_call_settle(struct kunit *test, struct call *call)
{
	mock_until(test, completion_done(&call->done) ||
		   READ_ONCE(call->task->__state) == TASK_UNINTERRUPTIBLE);
}
EXPORT_SYMBOL_GPL(mock_call_settle);

/* Wait until @call has returned, or fail the case. Return: the value of @call. */
bool mock_call_end(struct kunit *test, struct call *call)
{
	mock_await(test, &call->done);
	kthread_stop(call->task);
	return call->ret;
}
EXPORT_SYMBOL_GPL(mock_call_end);

/* Return the number of callers that wait for a single work of @pool. */
unsigned int mock_nr_waiters(struct fairwq_pool *pool)
{
	struct list_head *node;
	unsigned int nr = 0;

	raw_spin_lock_irq(&pool->lock);
	list_for_each(node, &pool->waits.works)
		nr++;
	raw_spin_unlock_irq(&pool->lock);
	return nr;
}
EXPORT_SYMBOL_GPL(mock_nr_waiters);

struct on_top {
	struct irq_work irq_work;
	void (*fn)(void *data);
	void *data;
	bool was_hardirq, done;
};

static void on_top_fn(struct irq_work *irq_work)
{
	struct on_top *top = container_of(irq_work, struct on_top, irq_work);

	top->was_hardirq = in_hardirq();
	top->fn(top->data);
	step_done(&top->done);
}

/* Call @fn in a hardirq on top of the caller. Return: true if it ran in a hardirq. */
bool mock_call_on_top(void (*fn)(void *data), void *data)
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
EXPORT_SYMBOL_GPL(mock_call_on_top);
