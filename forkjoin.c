// SPDX-License-Identifier: GPL-2.0
/*
 * Fork and join: an item begins to fork, and loops over ranges.
 *
 * fairwq_fork() and fairwq_join() are inline, in fairwq.h. To share a task they
 * call core/fork.c. A join with little stack calls its task on another one:
 * core/stack.c.
 *
 * A loop cuts pieces of the grain off the front of its range. When a runner is
 * free, the upper half of the rest becomes a task:
 *
 *   | done | piece | rest                        |       no runner is free
 *   | done | piece | rest         | a task       |       one is free
 *   | done         | piece | rest | a task       |
 *
 * At its end the loop joins its tasks, the newest first. If no runner has begun
 * that task, its range follows the one just done, and the loop goes on with it
 * in the same frame. So a loop never nests, and a range that no other runner
 * takes costs three loads a piece. A body that does not return 0 ends all
 * ranges.
 *
 * Locking: none.
 * Limits: LOOP_HALVES tasks of a loop at a time.
 */
#include <linux/completion.h>
#include <linux/export.h>
#include <linux/wait_bit.h>

#include "core/compat.h"
#include "core/fork.h"
#include "core/runner.h"
#include "core/stack.h"
#include "doors.h"

/* ---- tasks that the caller's runner does not run on its stack ------------ */

/* A task, and what runs it. */
struct fairwq_task_call {
	struct fairwq_task self, *task;
};

static void call_task(void *arg)
{
	struct fairwq_task_call *call = arg;

	__fairwq_task_run(&call->self, call->task, call->task->func);
}

/* Run a task in the context of its item. */
static void call_in_context(struct fairwq_context *context, struct fairwq_task_call *call)
{
	if (context)
		fairwq_context_call(context, call_task, call);
	else
		call_task(call);
}

/* Run a task that another runner has promoted. The function of its work. */
static void run_task(struct fairwq_work *work)
{
	struct fairwq_task *task = container_of(work, struct fairwq_task, work);
	struct fairwq_runner *runner = fairwq_runner_current();
	struct fairwq_context *context = task->context;
	struct fairwq_task_call call = { .task = task };
	unsigned int flags;

	/* Reports and tables name the task. */
	WRITE_ONCE(runner->turn.func, (fairwq_func_t)(void *)task->func);
	runner->origin = task->origin;
	flags = fairwq_scopes_enter(READ_ONCE(task->origin->forker.scopes));
	fairwq_task_here(&call.self);
	task->forks = call.self.forks;
	call_in_context(context, &call);
	runner->origin = NULL;
	fairwq_scopes_leave(flags);
	/*
	 * From here on @task may be gone. Its join sees what the function
	 * stored: pairs with is_done() in core/fork.c. Model:
	 * tests/models/fork.pml.
	 */
	smp_store_release(&task->origin, FAIRWQ_TASK_DONE);
	smp_mb();			/* as wake_up_var() asks */
	wake_up_var(&task->origin);	/* by its address alone */
}

/* Run a task for which its join has too little stack. */
static void run_on_a_stack(void *arg)
{
	struct fairwq_task_call *call = arg;
	struct fairwq_runner *runner = fairwq_runner_current();
	struct fairwq_context *context = runner->context;
	struct fairwq_task *outer = NULL;

	/* This worker has neither the context nor the map of the task around. */
	WRITE_ONCE(runner->context, NULL);
	swap(call->self.forks->innermost, outer);
	call_in_context(context, call);
	swap(call->self.forks->innermost, outer);
	WRITE_ONCE(runner->context, context);
}

/* ---- an item begins to fork --------------------------------------------- */

void fairwq_task_here(struct fairwq_task *self)
{
	struct fairwq_runner *runner = fairwq_runner_current();

	self->func = NULL;
	self->forks = NULL;
	if (!runner)
		return;
	runner->forker.run_task = run_task;
	self->forks = &runner->forker.forks;
}
EXPORT_SYMBOL_GPL(fairwq_task_here);

/* ---- joins --------------------------------------------------------------- */

/* Run a task that its join has taken back, and for which it has too little stack. */
void __fairwq_task_elsewhere(struct fairwq_task *self, struct fairwq_task *task)
{
	struct fairwq_task_call call = { .self.forks = self->forks, .task = task };
	struct fairwq_runner *runner = fairwq_runner_current();
	const struct fairwq_batch *batch = runner->turn.batch;

	might_sleep();
	if (!fairwq_stack_call(runner, run_on_a_stack, &call))
		return;
	WARN_ONCE(1, "fairwq: task %ps of batch %s/%s does not run: no stack is left\n",
		  task->func, batch->pool->name, batch->name);
	fairwq_report_failure(-EOVERFLOW);
}
EXPORT_SYMBOL_GPL(__fairwq_task_elsewhere);

/* ---- loops over ranges -------------------------------------------------- */

/* Most tasks that one loop has forked and not joined. */
#define LOOP_HALVES	4U

struct fairwq_loop {
	int (*body)(unsigned long from, unsigned long to, void *arg);
	void *arg;
	unsigned long grain;
	atomic_t ret;			/* what @body has returned first, but 0 */
	const char *name;		/* of its tasks, for lockdep */
	struct lock_class_key *key;
};

/* A part of a range: the upper half of what a loop had left when it forked it. */
struct fairwq_range {
	struct fairwq_task task;
	struct fairwq_loop *loop;
	unsigned long from, to;
};

static void range_fn(struct fairwq_task *self);

/*
 * Fork the upper half of what is left of @range, rounded to the grain.
 * may_fork() has seen that each half has at least a grain, so no sum here
 * wraps.
 */
static void fork_half(struct fairwq_task *self, struct fairwq_range *range,
		      struct fairwq_range *half)
{
	unsigned long left = range->to - range->from;

	half->loop = range->loop;
	half->to = range->to;
	half->from = range->from + roundup(left / 2, range->loop->grain);
	range->to = half->from;
	__fairwq_task_init(&half->task, range_fn, range->loop->name, range->loop->key);
	fairwq_fork(self, &half->task);
}

/* Check whether the loop is to offer half of @range to a runner that is free. */
static bool may_fork(const struct fairwq_task *self, const struct fairwq_range *range,
		     unsigned int nr)
{
	return self->forks && READ_ONCE(*self->forks->hungry) &&
	       nr < LOOP_HALVES && (range->to - range->from) / 2 >= range->loop->grain;
}

/*
 * Do the pieces of @range, unless one of the loop has ended it, and fork halves
 * of it while runners are free.
 */
static unsigned int run_pieces(struct fairwq_task *self, struct fairwq_range *range,
			       struct fairwq_range *half, unsigned int nr)
{
	struct fairwq_loop *loop = range->loop;
	unsigned long to;
	int ret;

	while (range->from < range->to && likely(!atomic_read(&loop->ret))) {
		if (unlikely(may_fork(self, range, nr)))
			fork_half(self, range, &half[nr++]);
		to = range->from + min(range->to - range->from, loop->grain);
		ret = loop->body(range->from, to, loop->arg);
		if (unlikely(ret))
			atomic_cmpxchg(&loop->ret, 0, ret);
		range->from = to;
		cond_resched();
	}
	return nr;
}

/* Run a range, and those of its halves that no other runner has begun. */
static void run_range(struct fairwq_task *self, struct fairwq_range *range)
{
	struct fairwq_range half[LOOP_HALVES] __uninitialized;
	unsigned int nr;

	nr = run_pieces(self, range, half, 0);
	while (nr--) {
		if (!fairwq_unfork(self, &half[nr].task))
			continue;
		range->from = half[nr].from;
		range->to = half[nr].to;
		nr = run_pieces(self, range, half, nr);
	}
}

static void range_fn(struct fairwq_task *self)
{
	run_range(self, container_of(self, struct fairwq_range, task));
}

/* An item for a loop of a caller that is none. */
struct fairwq_loop_item {
	struct fairwq_own_work own;
	struct fairwq_range range;
};

static void loop_item_fn(struct fairwq_work *work)
{
	struct fairwq_loop_item *item = container_of(work, struct fairwq_loop_item, own.work);
	struct fairwq_runner *runner = fairwq_runner_current();

	/* Reports and tables name the body. */
	WRITE_ONCE(runner->turn.func, (fairwq_func_t)(void *)item->range.loop->body);
	/* For the body no work is the current one. A release, as in fairwq_end_current(). */
	smp_store_release(&runner->current_work, NULL);
	fairwq_task_here(&item->range.task);
	run_range(&item->range.task, &item->range);
	complete(&item->own.done);
}

/* Queue one item for the loop, and wait for it. Return: 0, or an error. */
static int loop_outside(struct fairwq_batch *batch, const struct fairwq_range *range)
{
	struct fairwq_loop_item item = { .range = *range };
	int ret;

	fairwq_batch_lockdep_wait(batch, false);
	fairwq_work_init(&item.own.work, loop_item_fn);
	item.own.work.flags = FAIRWQ_WORK_OWN;
	init_completion(&item.own.done);
	ret = fairwq_queue(batch, &item.own.work);
	if (ret < 0)
		return ret;
	wait_for_completion(&item.own.done);
	return item.own.ret ?: atomic_read(&range->loop->ret);
}

/* Run a loop; fairwq_parallel_for() has the description. */
int __fairwq_parallel_for(struct fairwq_batch *batch, unsigned long start,
			  unsigned long end, unsigned long grain,
			  int (*body)(unsigned long from, unsigned long to, void *arg),
			  void *arg, const char *name, struct lock_class_key *key)
{
	struct fairwq_loop loop = {
		.body = body, .arg = arg, .grain = grain, .name = name, .key = key,
	};
	struct fairwq_range range = { .loop = &loop, .from = start, .to = end };
	const struct fairwq_turn *turn = fairwq_runner_own_turn();

	if (!grain)
		return fairwq_bad_arg("grain is 0");
	if (!body)
		return fairwq_bad_arg("body is NULL");
	might_sleep();
	if (turn && batch && batch != turn->batch)
		return fairwq_bad_arg("batch is not that of the calling item");
	if (!turn && fairwq_is_no_pointer(batch))
		return fairwq_bad_arg("batch is NULL or an error, and the caller is no item");
	if (start >= end)
		return 0;
	if (!turn)
		return loop_outside(batch, &range);
	fairwq_task_here(&range.task);
	run_range(&range.task, &range);
	return atomic_read(&loop.ret);
}
EXPORT_SYMBOL_GPL(__fairwq_parallel_for);
