// SPDX-License-Identifier: GPL-2.0
/*
 * Stacks: a call that has more stack than the caller has left.
 *
 *   the runner's worker              a worker of stack_wq[]
 *   fairwq_stack_call()  -- queue -->  stack_fn()
 *        sleeps                           the function
 *        returns         <- complete --
 *
 * What is called is a part of the caller's item: the worker stands for the
 * runner until it has returned. The runner keeps its turn and its place. No
 * runner of the pool is needed, so the call waits for nothing but a worker,
 * which the workqueue core makes.
 *
 * The workqueues are not those of pools: a pool's may be frozen, or all of its
 * workers may wait for a lock that the caller holds. There is one for pools
 * with FAIRWQ_MEM_RECLAIM, because the workqueue core warns if a work of such a
 * workqueue waits for another kind.
 *
 * Locking: pool->lock for runner->task.
 * Invariant: of the runner's worker and those that stand for it one runs, and
 * the others sleep in fairwq_stack_call(). The scheduler tells the pool of that
 * one only, so it has the runner's seat, and may lose it.
 *
 * Limits: FAIRWQ_MAX_STACKS calls at a time; while there is no memory for
 * workers one with FAIRWQ_MEM_RECLAIM, else none. From 6.9 on, a node with less
 * than an eighth of the CPUs may have fewer, and those that are nested may
 * hang. The nice value and the CPUs are those of the workqueue, not those of
 * the pool. Lockdep does not see what the caller holds.
 *
 * Source: XFS splits its btrees so, since it may be called with little stack
 * left.
 */
#include <linux/completion.h>
#include <linux/sched.h>
#include <linux/workqueue.h>

#include "asleep.h"
#include "call.h"
#include "stack.h"

/* Of pools without FAIRWQ_MEM_RECLAIM, and of those with it. */
static struct workqueue_struct *stack_wq[2];

static atomic_t nr_stacks = ATOMIC_INIT(0);

/* A call, on the stack of the caller. */
struct fairwq_stack {
	struct work_struct work;
	struct fairwq_runner *runner;
	struct task_struct *caller;
	unsigned int scopes;		/* of the caller */
	void (*func)(void *arg);
	void *arg;
	struct completion done;
};

/* The caller's task executes the runner's item, and reports show it. */
static void begin(struct fairwq_runner *runner)
{
	guard(raw_spinlock_irq)(&runner->pool->lock);
	fairwq_asleep_begin_locked(runner);
}

/* The caller's task does so no more. It is @task whose sleep a tick may look at. */
static void end(struct fairwq_runner *runner, struct task_struct *task)
{
	guard(raw_spinlock_irq)(&runner->pool->lock);
	fairwq_asleep_end_locked(runner, task);
}

static void stack_fn(struct work_struct *work)
{
	struct fairwq_stack *stack = container_of(work, struct fairwq_stack, work);
	struct fairwq_runner *runner = stack->runner;
	unsigned int flags = fairwq_scopes_enter(stack->scopes);
	struct fairwq_call_state state;

	begin(runner);
	fairwq_call_begin(&state);
	stack->func(stack->arg);
	if (!fairwq_call_state_kept(&state))
		fairwq_call_leaked(&state, runner->turn.func, runner->turn.batch);
	end(runner, stack->caller);
	fairwq_scopes_leave(flags);
	complete(&stack->done);
}

/* Return the runner for which a worker with @work, of @func, stands, or NULL. */
struct fairwq_runner *fairwq_stack_runner(const struct work_struct *work, work_func_t func)
{
	if (func != stack_fn)
		return NULL;
	return container_of(work, struct fairwq_stack, work)->runner;
}

/*
 * Call @func on another stack, as a part of the item of @runner, which is the
 * caller's.
 *
 * Return: 0, or -EOVERFLOW if there are too many such calls.
 */
int fairwq_stack_call(struct fairwq_runner *runner, void (*func)(void *arg), void *arg)
{
	bool reclaim = runner->pool->flags & FAIRWQ_MEM_RECLAIM;
	struct fairwq_stack stack = {
		.runner = runner, .caller = current, .func = func, .arg = arg,
		.scopes = current->flags & FAIRWQ_SCOPES,
	};

	if (!atomic_add_unless(&nr_stacks, 1, FAIRWQ_MAX_STACKS))
		return -EOVERFLOW;
	INIT_WORK_ONSTACK(&stack.work, stack_fn);
	init_completion(&stack.done);
	end(runner, current);
	queue_work(stack_wq[reclaim], &stack.work);
	wait_for_completion(&stack.done);
	begin(runner);
	destroy_work_on_stack(&stack.work);
	atomic_dec(&nr_stacks);
	return 0;
}

void fairwq_stack_exit(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(stack_wq); i++)
		if (stack_wq[i])
			destroy_workqueue(stack_wq[i]);
}

int __init fairwq_stack_init(void)
{
	/* The workqueue core may divide that among the nodes, and all calls may be on one. */
	stack_wq[0] = alloc_workqueue("fairwq_stack", WQ_UNBOUND, WQ_MAX_ACTIVE);
	stack_wq[1] = alloc_workqueue("fairwq_stack_reclaim", WQ_UNBOUND | WQ_MEM_RECLAIM,
				      WQ_MAX_ACTIVE);
	if (stack_wq[0] && stack_wq[1])
		return 0;
	fairwq_stack_exit();
	return -ENOMEM;
}
