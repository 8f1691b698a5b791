// SPDX-License-Identifier: GPL-2.0
/*
 * Forks: how tasks become turns of other runners, and how a join waits for
 * them.
 *
 *   State of a task   Where it is                    What a join does
 *   ----------------  -----------------------------  ------------------------------
 *   private           only in forker->forks.list,    takes it off the list (inline
 *                     which only its runner uses     in fairwq.h), and runs it
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
 * Locking: pool->lock for the work of what is promoted. The forker needs none,
 * because only its runner writes it. Those that steal read @scopes.
 * Invariant: in forker->forks.list those that were promoted are before those
 * that are private. forker->shared is the last of them, or the head.
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

static struct fairwq_task *to_task(struct list_head *node)
{
	return list_entry(node, struct fairwq_task, node);
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
	struct fairwq_task *task = to_task(forker->shared->next);
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
		WRITE_ONCE(forker->scopes,
			   (forker->shared == &forker->forks.list ? 0 : forker->scopes) |
			   (current->flags & FAIRWQ_SCOPES));
		forker->shared = &task->node;
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

	if (!list_is_last(runner->forker.shared, &forks->list) && promotes_now(&runner->forker))
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
	/* If an item may begin instead, the runner that was kicked for @task takes it. */
	guard(raw_spinlock_irqsave)(&runner->pool->lock);
	if (!atomic_long_read(&task->work.data)) {
		runner->pool->tally.counter[FAIRWQ_STOLEN]++;
		return false;
	}
	fairwq_fifo_del_part_locked(runner->turn.batch, &task->work);
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
}

/*
 * Take back a task that was promoted, or wait until it has run.
 *
 * Return: whether it was taken back.
 */
static bool end_promoted(struct fairwq_runner *runner, struct fairwq_task *task)
{
	bool back = take_back(runner, task);

	if (!back)
		await_stolen(runner, task);
	if (runner->forker.shared == &task->node)
		runner->forker.shared = task->node.prev;
	list_del(&task->node);
	return back;
}

/* End a task that was promoted: see fairwq_unfork(). */
bool __fairwq_unfork(struct fairwq_task *self, struct fairwq_task *task)
{
	might_sleep();
	if (!end_promoted(to_runner(self->forks), task))
		return false;
	task->forks = self->forks;
	return true;
}
EXPORT_SYMBOL_GPL(__fairwq_unfork);

/* ---- tasks that were not joined ----------------------------------------- */

/*
 * Report @func, which has returned without a join of what it forked. @newest is
 * what was forked last before, or the head of the list.
 *
 * What it forked may be on the stack that is gone. So its private tasks are
 * forgotten without a look at them, and never run. Those that were promoted are
 * ended, as far as their memory is still there. That comes first, because the
 * report overwrites the stack.
 */
void __fairwq_forks_left(struct fairwq_forks *forks, struct list_head *newest,
			 const void *func)
{
	struct fairwq_runner *runner = to_runner(forks);
	const struct fairwq_turn *turn = &runner->turn;
	struct list_head *last = newest;

	/* If @newest is private, all that was forked behind it is so, too. */
	if (newest == &forks->list || READ_ONCE(to_task(newest)->origin))
		last = runner->forker.shared;
	last->next = &forks->list;
	forks->list.prev = last;
	while (forks->list.prev != newest)
		end_promoted(runner, to_task(forks->list.prev));
	WARN_ONCE(1, "fairwq: %ps in item %ps of batch %s/%s has not joined what it forked\n",
		  func, turn->func, turn->batch->pool->name, turn->batch->name);
}
EXPORT_SYMBOL_GPL(__fairwq_forks_left);
