// SPDX-License-Identifier: GPL-2.0
/*
 * Forks: how tasks become turns of other runners, and how a join waits for
 * them.
 *
 *   State of a task   Where it is                    What a join does
 *   ----------------  -----------------------------  ------------------------------
 *   private           forker->forks.list, which      takes it off the list (inline
 *                     only its runner sees           in fairwq.h), and runs it
 *   promoted          at the head of the FIFO of     takes it back, and runs it
 *                     the forker's batch
 *   stolen            another runner runs it, as a   spins for a moment, then sleeps;
 *                     turn of that batch             another runner works meanwhile
 *   done              nowhere                        returns
 *
 * A fork or a join promotes the oldest private task when it sees that a runner
 * of the pool is free. The oldest is the largest in a tree of tasks. Promotion
 * costs a lock and a wake-up. So each runner promotes one task in PROMOTE_NS.
 *
 * A task is a part of its item (promise 15 in guarantees.rst). No pause and no
 * cancel delays it, only the limits of its pool, and the turns of others. And a
 * join needs nothing but its task: it runs that, or another runner has begun
 * it. An item whose task is stolen and not done gives up its seat. When the
 * task is done, the item takes a seat at once, because it may hold a lock for
 * which the active runners wait. So there is one more active runner for a
 * while.
 *
 * Locking: pool->lock for what is promoted. The forker needs none, because only
 * its runner writes it. Those that steal read @scopes.
 * Invariant: a stolen task runs at the bottom of a stack, so a join never nests
 * the function of another task than its own.
 * Invariant: what a join waits for was begun by another runner. So among
 * runners that wait for each other at least one makes progress, whatever
 * max_active is.
 * Models: tests/models/fork.pml for a task, seat.pml for the places of runners.
 *
 * Limits: an item that neither forks nor joins for long keeps its private tasks
 * meanwhile.
 *
 * Source: lazy promotion is that of heartbeat scheduling (Acar et al., PLDI
 * 2018) and of lazy scheduling (Tzannes et al., TOPLAS 2014). A join that runs
 * nothing but its own task avoids what Wagner and Calder (PPoPP 1993) describe.
 */
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/processor.h>
#include <linux/sched.h>
#include <linux/wait_bit.h>

#include "fifo.h"
#include "fork.h"
#include "runner.h"
#include "seat.h"
#include "stack.h"
#include "testing.h"

/* What a promotion costs, about: a runner promotes no more than one in this time. */
#define PROMOTE_NS		(20 * NSEC_PER_USEC)
/* A join looks for so long before it sleeps, as a mutex does. */
#define SPIN_NS			(5 * NSEC_PER_USEC)
/* Most calls between two readings of the clock. */
#define MAX_SKIP		31U

static struct fairwq_runner *to_runner(struct fairwq_forks *forks)
{
	return container_of(forks, struct fairwq_runner, forker.forks);
}

/* ---- promotion ---------------------------------------------------------- */

/*
 * Return the next CPU, as this one has more to do. The workqueue core wakes a
 * worker near the CPU that it is given, and a worker that waits for this CPU
 * takes nothing off it.
 */
static int next_cpu(void)
{
	unsigned int cpu = cpumask_next(raw_smp_processor_id(), cpu_online_mask);

	return cpu < nr_cpu_ids ? cpu : cpumask_first(cpu_online_mask);
}

/* Promote the oldest task, if a runner is free. Model: tests/models/fork.pml. */
static void promote_oldest(struct fairwq_runner *runner)
{
	struct fairwq_forker *forker = &runner->forker;
	struct fairwq_task *task = list_first_entry(&forker->forks.list, struct fairwq_task, node);
	struct fairwq_runner *kick = NULL;
	struct fairwq_pool *pool = runner->pool;
	unsigned long flags;

	task->work = (struct fairwq_work){ .func = forker->run_task };
	task->context = runner->context;
	raw_spin_lock_irqsave(&pool->lock, flags);
	if (fairwq_fifo_has_room_locked(runner->turn.batch))
		kick = fairwq_seat_take_locked(pool);
	if (kick) {
		/* Those of tasks before may be more than @task needs. That does no harm. */
		WRITE_ONCE(forker->scopes, (list_empty(&forker->promoted) ? 0 : forker->scopes) |
					   (current->flags & FAIRWQ_SCOPES));
		list_move_tail(&task->node, &forker->promoted);
		task->origin = runner;
		fairwq_seat_not_quick_locked(runner);
		pool->tally.counter[FAIRWQ_PROMOTED]++;
		fairwq_fifo_add_part_locked(&runner->turn, &task->work);
	}
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	if (!kick)
		return;
	fairwq_test_point(FAIRWQ_POINT_PROMOTED, runner->turn.batch);
	fairwq_kick_send_to(kick, next_cpu());
}

/* Check whether it is time for a promotion, without a look at the clock each time. */
static bool promotes_now(struct fairwq_forker *forker)
{
	u64 now;

	if (forker->skip) {
		forker->skip--;
		return false;
	}
	now = fairwq_clock();
	if (now >= forker->promote_at) {
		forker->promote_at = now + PROMOTE_NS;
		forker->step = 0;
		return true;
	}
	forker->step = min(2 * forker->step + 1, MAX_SKIP);
	forker->skip = forker->step;
	return false;
}

/* Promote a task, because a runner is free, unless one was promoted just now. */
void __fairwq_fork_hungry(struct fairwq_forks *forks)
{
	struct fairwq_runner *runner = to_runner(forks);

	if (!list_empty(&forks->list) && promotes_now(&runner->forker))
		promote_oldest(runner);
}
EXPORT_SYMBOL_GPL(__fairwq_fork_hungry);

/* ---- joins of tasks that were promoted ---------------------------------- */

/*
 * Take a promoted task back. A runner begins it under the same lock. Model:
 * tests/models/fork.pml.
 *
 * Return: false if a runner has begun it.
 */
static bool take_back(struct fairwq_runner *runner, struct fairwq_task *task)
{
	struct fairwq_batch *batch = runner->turn.batch;
	struct fairwq_pool *pool = runner->pool;
	unsigned long flags;

	raw_spin_lock_irqsave(&pool->lock, flags);
	if (!atomic_long_read(&task->work.data)) {
		pool->tally.counter[FAIRWQ_STOLEN]++;
		raw_spin_unlock_irqrestore(&pool->lock, flags);
		return false;
	}
	list_del(&task->work.node);
	fairwq_fifo_removed_locked(batch, &task->work);
	atomic_long_set(&task->work.data, 0);
	list_del(&task->node);
	if (batch->max_active)	/* another item of it may begin */
		fairwq_kick_unlock(pool, flags);
	else
		raw_spin_unlock_irqrestore(&pool->lock, flags);
	return true;
}

/* Check whether the runner that has stolen @task has ended it. */
static bool is_done(const struct fairwq_task *task)
{
	/* Pairs with the release in run_task(). Model: tests/models/fork.pml. */
	return smp_load_acquire(&task->origin) == FAIRWQ_TASK_DONE;
}

/* Wait for the end of a stolen task. Models: tests/models/fork.pml, seat.pml. */
static void await_stolen(struct fairwq_runner *runner, struct fairwq_task *task)
{
	u64 end = fairwq_clock() + SPIN_NS;

	while (!is_done(task) && !need_resched() && fairwq_clock() < end)
		cpu_relax();
	if (!is_done(task)) {
		/* Another runner works in the place of this one. */
		fairwq_seat_block(runner);
		wait_var_event(&task->origin, is_done(task));
		fairwq_seat_unblock(runner);
	}
	list_del(&task->node);
}

/* Take back a task that was promoted, or wait until it has run: see fairwq_unfork(). */
bool __fairwq_unfork(struct fairwq_task *self, struct fairwq_task *task)
{
	struct fairwq_runner *runner = to_runner(self->forks);

	might_sleep();
	if (!take_back(runner, task)) {
		await_stolen(runner, task);
		return false;
	}
	task->forks = self->forks;
	return true;
}
EXPORT_SYMBOL_GPL(__fairwq_unfork);

/* ---- tasks that were not joined ----------------------------------------- */

static void warn_unjoined(const struct fairwq_turn *turn, const void *func)
{
	WARN_ONCE(1, "fairwq: %ps in item %ps of batch %s/%s has not joined what it forked\n",
		  func, turn->func, turn->batch->pool->name, turn->batch->name);
}

/*
 * Report a task whose function has returned without a join of what it forked.
 * Its forks may be on the stack that is gone, so those that are private are
 * forgotten, and never run. @newest is what was forked last before the task
 * ran.
 */
void __fairwq_task_left(struct fairwq_task *self, struct list_head *newest,
			fairwq_task_func_t func)
{
	struct list_head *list = &self->forks->list;

	if (list_empty(list))
		return;			/* @newest was promoted meanwhile */
	if (newest != list && READ_ONCE(list_entry(newest, struct fairwq_task, node)->origin))
		newest = list;
	list->prev = newest;
	newest->next = list;
	warn_unjoined(&to_runner(self->forks)->turn, func);
}
EXPORT_SYMBOL_GPL(__fairwq_task_left);

/*
 * Report a function that has returned without a join of what it forked. Forget
 * its private tasks. First take back or join those that were promoted, because
 * they may be on the stack, which the report overwrites.
 */
void fairwq_forks_unjoined(struct fairwq_runner *runner)
{
	struct list_head *promoted = &runner->forker.promoted;
	struct fairwq_task *task;

	INIT_LIST_HEAD(&runner->forker.forks.list);
	while (!list_empty(promoted)) {
		task = list_first_entry(promoted, struct fairwq_task, node);
		if (!take_back(runner, task))
			await_stolen(runner, task);
	}
	warn_unjoined(&runner->turn, runner->turn.func);
}
