// SPDX-License-Identifier: GPL-2.0
/*
 * Forks: how tasks become turns of other runners, and how a join waits for them.
 *
 *   State of a task   Where it is                    What a join does
 *   ----------------  -----------------------------  ------------------------------
 *   private           forker->forks.list, which      takes it off the list (inline
 *                     only its runner sees           in fairwq.h), and runs it
 *   promoted          a cell of its runner, whose    takes it back, and runs it
 *                     work is at the head of the
 *                     FIFO of the forker's batch
 *   stolen            another runner runs it, as a   spins for a moment, then sleeps;
 *                     turn of that batch             another runner works meanwhile
 *   done              nowhere                        returns
 *
 * A fork promotes the oldest private task when it sees that a runner of the pool is
 * free. The oldest is the largest in a tree of tasks. Promotion costs a lock and a
 * wake-up. So each runner promotes one task in PROMOTE_NS, or sooner if the last one
 * was stolen, because then tasks are worth it.
 *
 * An item whose task is stolen and not done gives its place among the active runners
 * away. When the task is done, the item takes its place back at once, because it may
 * hold a lock for which the active runners wait. So there is one more active runner
 * for a while.
 *
 * While all runners are busy and another batch waits, a join ends the turn of its
 * item after a slice. The rest of the item goes to the head of its batch's FIFO, and
 * its runner sleeps until that has a turn. If no turn of the pool begins in REST_TICKS,
 * the rest goes on without one. The other items may wait for a lock that it holds. The
 * rest also goes on if the batch is paused: a pause holds no item that has begun.
 *
 * A runner that computes or sleeps for long does not see that another one is free. The
 * pool's timer finds that, and promotes its forks, in three steps:
 *
 *   forks.shared  pool->sharing  set by                     then
 *   ------------  -------------  -------------------------  --------------------------
 *   0             either         the runner, under the      only the runner changes
 *                                lock, before it changes    its list
 *                                its list
 *   1             1              the timer, if the runner   the runner sees it, or had
 *                                has not looked for a tick  turned preemption off before
 *   1             0              the timer, a grace period  the runner sees it: the timer
 *                                later                      promotes under the lock
 *
 * The runner changes its list with preemption off, and reads @shared there before. So
 * after the grace period either it is not in such a section, or it has seen @shared.
 *
 * Locking: pool->lock. What only the runner uses has no lock.
 * Invariant: a stolen task runs at the bottom of a stack, so a join never nests the
 * function of another task than its own.
 * Invariant: what a join waits for was begun by another runner. So among runners that wait
 * for each other at least one makes progress, whatever max_active is.
 * Models: tests/models/fork.pml for a task, seat.pml for the places of runners, share.pml
 * for forks that the timer promotes.
 *
 * Limits: a runner has FAIRWQ_NR_CELLS promoted tasks at most. Under arrival order no
 * join ends a turn. A runner may compute or sleep for long without fork or join. Its
 * forks stay private for two ticks and a grace period then, and for one more if
 * others are asked meanwhile. Those of an item whose turn has ended in a join stay
 * private until its next turn.
 *
 * Source: lazy promotion is that of heartbeat scheduling (Acar et al., PLDI 2018) and
 * of lazy scheduling (Tzannes et al., TOPLAS 2014). A join that runs nothing but its
 * own task avoids what Wagner and Calder (PPoPP 1993) describe.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/export.h>
#include <linux/processor.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>

#include "fifo.h"
#include "fork.h"
#include "kick.h"
#include "park.h"
#include "runner.h"
#include "testing.h"
#include "tick.h"
#include "tree.h"
#include "turn.h"

/* What a promotion costs, about: a runner promotes no more than one in this time. */
#define PROMOTE_NS		(20 * NSEC_PER_USEC)
/* A join looks for so long before it sleeps, as a mutex does. */
#define SPIN_NS			(5 * NSEC_PER_USEC)
/* Most calls between two readings of the clock. */
#define MAX_SKIP		31U
/* The rest of an item goes on if the pool begins no turn in so many ticks. */
#define REST_TICKS		2

static struct fairwq_forker *to_forker(struct fairwq_forks *forks)
{
	return container_of(forks, struct fairwq_forker, forks);
}

/* ---- promotion ---------------------------------------------------------- */

/*
 * Find a cell without a task, which no runner executes any more, or NULL. The runner
 * that completed it may still be about to end its turn. Model: tests/models/fork.pml.
 */
static struct fairwq_cell *free_cell(struct fairwq_forker *forker)
{
	struct fairwq_cell *cell;

	for (cell = forker->cell; cell < forker->cell + FAIRWQ_NR_CELLS; cell++)
		if (!cell->task && !fairwq_park_runs_elsewhere(&cell->work, forker->runner->id))
			return cell;
	return NULL;
}

/* Check whether a runner is free for a fork of @runner's item. */
static bool is_wanted_locked(const struct fairwq_runner *runner)
{
	lockdep_assert_held(&runner->pool->lock);

	return runner->pool->nr_active < fairwq_seats_locked(runner->pool) &&
	       fairwq_fifo_has_room_locked(runner->turn.batch);
}

/*
 * Promote @task, if there is an idle runner and a cell: put it into that, and its work
 * at the head of the runner's batch. The lock orders these stores before the loads in
 * run_stolen(). Model: tests/models/fork.pml.
 *
 * Return: the runner to kick, if there is a place for one more active runner. Whether
 * the task was promoted, its cell says.
 */
static struct fairwq_runner *promote_locked(struct fairwq_forker *forker,
					    struct fairwq_task *task)
{
	struct fairwq_runner *runner = forker->runner;
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_cell *cell;

	lockdep_assert_held(&pool->lock);

	cell = list_empty(&pool->idle_runners) ? NULL : free_cell(forker);
	if (!cell)
		return NULL;
	list_del_init(&task->node);
	task->cell = cell;
	cell->task = task;
	reinit_completion(&cell->done);
	forker->nr_open++;
	fairwq_runner_not_quick_locked(runner);
	pool->counter[FAIRWQ_PROMOTED]++;
	fairwq_fifo_add_part_locked(&runner->turn, &cell->work, FAIRWQ_PLACE_FORK);
	return fairwq_kick_activate_locked(pool);
}

static struct fairwq_task *oldest_locked(struct fairwq_forker *forker)
{
	lockdep_assert_held(&forker->runner->pool->lock);

	return list_first_entry_or_null(&forker->forks.list, struct fairwq_task, node);
}

/*
 * Promote @task also if no runner is free, because the caller's stack is used up. The
 * timer may have promoted it.
 *
 * Return: whether it is promoted; if not, it is forgotten, as it cannot run.
 */
bool fairwq_fork_promote(struct fairwq_forker *forker, struct fairwq_task *task)
{
	struct fairwq_runner *kick = NULL;
	struct fairwq_pool *pool = forker->runner->pool;

	raw_spin_lock_irq(&pool->lock);
	if (!task->cell) {
		kick = promote_locked(forker, task);
		if (task->cell)
			pool->counter[FAIRWQ_STOLEN]++;	/* as it will be */
		else
			list_del_init(&task->node);
	}
	raw_spin_unlock_irq(&pool->lock);
	fairwq_kick_next_cpu(pool, kick);
	return task->cell;
}

/* Promote the oldest fork, if a runner is free. */
static void promote_oldest(struct fairwq_forker *forker)
{
	struct fairwq_runner *kick = NULL;
	struct fairwq_pool *pool = forker->runner->pool;
	struct fairwq_task *task;
	unsigned long flags;

	raw_spin_lock_irqsave(&pool->lock, flags);
	task = oldest_locked(forker);
	if (task && is_wanted_locked(forker->runner))
		kick = promote_locked(forker, task);
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	if (kick)
		fairwq_test_point(FAIRWQ_POINT_PROMOTED, forker->runner->turn.batch);
	fairwq_kick_next_cpu(pool, kick);
}

/* Check whether it is time to look at what the pool wants, by a clock that is dear. */
static bool look_now(struct fairwq_forker *forker, u64 due, u64 *now)
{
	if (forker->skip) {
		forker->skip--;
		return false;
	}
	*now = fairwq_clock();
	if (*now >= due) {
		forker->step = 0;
		return true;
	}
	forker->step = min(2 * forker->step + 1, MAX_SKIP);
	forker->skip = forker->step;
	return false;
}

/* Promote the oldest fork, because a runner is free, unless one was promoted just now. */
void __fairwq_fork_called(struct fairwq_forks *forks)
{
	struct fairwq_forker *forker = to_forker(forks);
	struct fairwq_pool *pool = forker->runner->pool;
	u64 now;

	WRITE_ONCE(forker->looked, true);
	if (list_empty(&forks->list))
		return;
	/* Have the timer look for forks that their runner does not promote. */
	if (!READ_ONCE(pool->ticking)) {
		guard(raw_spinlock_irqsave)(&pool->lock);
		fairwq_tick_soon_locked(pool);
	}
	if (!look_now(forker, forker->promote_at, &now))
		return;
	forker->promote_at = now + PROMOTE_NS;
	promote_oldest(forker);
}
EXPORT_SYMBOL_GPL(__fairwq_fork_called);

/* ---- forks of runners that do not look up ------------------------------- */

/* Have the caller's forks for itself again. It is the runner, or runs on top of it. */
void __fairwq_forks_unshare(struct fairwq_forks *forks)
{
	guard(raw_spinlock_irqsave)(&to_forker(forks)->runner->pool->lock);
	WRITE_ONCE(forks->shared, 0);
}
EXPORT_SYMBOL_GPL(__fairwq_forks_unshare);

/* Return the forker of a runner whose item has private forks, or NULL: a hint. */
static struct fairwq_forker *waiting_forks_locked(const struct fairwq_runner *runner)
{
	struct fairwq_forker *forker = READ_ONCE(runner->forker);

	lockdep_assert_held(&runner->pool->lock);

	if (!forker || !runner->turn.batch || list_empty(&forker->forks.list) ||
	    atomic_long_read(&forker->rest.data) || !is_wanted_locked(runner))
		return NULL;
	return forker;
}

/*
 * Promote a fork of a runner that shares, if no grace period is waited for: each that has
 * not answered was asked before it began. Return the runner to kick, or NULL.
 */
static struct fairwq_runner *promote_shared(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner, *kick = NULL;
	struct fairwq_forker *forker;

	guard(raw_spinlock_irqsave)(&pool->lock);
	if (pool->sharing && !poll_state_synchronize_rcu(pool->share_after))
		return NULL;
	pool->sharing = false;
	list_for_each_entry(runner, &pool->runners, node) {
		forker = waiting_forks_locked(runner);
		if (forker && forker->forks.shared)
			kick = promote_locked(forker, oldest_locked(forker));
		if (kick)
			return kick;
	}
	return NULL;
}

/*
 * Ask runners to share their forks, if they have not looked since the last tick, unless a
 * grace period is waited for. If one is asked, the caller must start a grace period. Have
 * the timer look again if there are forks.
 *
 * Return: whether one was asked.
 */
static bool ask_to_share(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;
	struct fairwq_forker *forker;

	guard(raw_spinlock_irqsave)(&pool->lock);
	if (pool->sharing) {
		fairwq_tick_soon_locked(pool);
		return false;
	}
	list_for_each_entry(runner, &pool->runners, node) {
		forker = waiting_forks_locked(runner);
		if (!forker)
			continue;
		fairwq_tick_soon_locked(pool);
		if (forker->looked) {
			WRITE_ONCE(forker->looked, false);
		} else if (!forker->forks.shared) {
			WRITE_ONCE(forker->forks.shared, 1);
			pool->sharing = true;
		}
	}
	/* Of a grace period that begins after they were asked. Model: tests/models/share.pml. */
	pool->share_after = get_state_synchronize_rcu();
	return pool->sharing;
}

/* Promote what runners have forked that compute or sleep for long. For the timer. */
void fairwq_forks_look(struct fairwq_pool *pool)
{
	struct fairwq_runner *kick;

	if (!READ_ONCE(pool->forks))
		return;
	while ((kick = promote_shared(pool)))
		fairwq_kick_next_cpu(pool, kick);
	if (ask_to_share(pool))
		start_poll_synchronize_rcu();	/* interrupts must be on */
}

/* ---- the end of a turn in a join ---------------------------------------- */

/*
 * Give the rest of an item a turn. @work is forker->rest, in the FIFO of its batch. With
 * @in_order it is the turn of the batch, and @work is the head.
 */
void fairwq_fork_resume_locked(struct fairwq_work *work, bool in_order)
{
	struct fairwq_forker *forker = container_of(work, struct fairwq_forker, rest);
	struct fairwq_runner *runner = forker->runner;
	struct fairwq_turn *turn = &runner->turn;
	bool yield = runner->yield;

	lockdep_assert_held(&runner->pool->lock);

	if (in_order)
		fairwq_fifo_take_locked(turn->batch, turn);
	else
		fairwq_fifo_take_rest_locked(turn->batch, turn, work);
	atomic_long_set(&work->data, 0);
	fairwq_turn_begin_locked(runner, turn->batch);
	WRITE_ONCE(runner->yield, yield);
	runner->since = fairwq_clock();
	turn->wait = turn->stamp && runner->since > turn->stamp ? runner->since - turn->stamp : 0;
	fairwq_runner_return_locked(runner);
	complete(&forker->resumed);
}

/* Check whether a batch waits that is not the runner's own, and no runner is free. */
static bool others_wait_locked(const struct fairwq_runner *runner)
{
	const struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(&pool->lock);

	if (pool->nr_active < fairwq_seats_locked(pool))
		return false;
	return pool->nr_eligible > fairwq_node_eligible(&runner->turn.batch->node) ||
	       !list_empty(&pool->sorting);
}

/*
 * Check whether the turn can end here: another runner must be there for the next. With a
 * max_async it does not: the item may go on after its function, and must be counted.
 */
static bool may_yield_locked(const struct fairwq_runner *runner)
{
	const struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(&pool->lock);

	return !list_empty(&pool->idle_runners) && !pool->tree.by_arrival &&
	       pool->max_async == UINT_MAX && !runner->nr_blocks;
}

/* End the turn at @now, and queue the rest of its item. It may have its turn at once. */
static struct fairwq_runner *yield_locked(struct fairwq_forker *forker, u64 now)
{
	struct fairwq_runner *runner = forker->runner;
	struct fairwq_turn *turn = &runner->turn;
	struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(&pool->lock);

	if (runner->since)
		turn->took += max_t(s64, now - runner->since, 1);
	pool->counter[FAIRWQ_YIELDS]++;
	fairwq_fifo_turn_split_locked(turn);
	reinit_completion(&forker->resumed);
	forker->rest.func = turn->func;
	fairwq_fifo_add_part_locked(turn, &forker->rest, FAIRWQ_PLACE_REST);
	forker->rest.stamp = now;
	if (fairwq_tree_pick(&pool->tree) != &turn->batch->node)
		return fairwq_runner_leave_locked(runner);
	pool->nr_active--;
	fairwq_runner_not_quick_locked(runner);
	fairwq_fork_resume_locked(&forker->rest, true);
	return NULL;
}

/*
 * Wait until the rest has its turn. It goes on without one if the pool has stood still for
 * REST_TICKS. Model: tests/models/seat.pml.
 */
static void await_turn(struct fairwq_forker *forker)
{
	struct fairwq_pool *pool = forker->runner->pool;
	u64 last = 0;

	while (!wait_for_completion_timeout(&forker->resumed, REST_TICKS)) {
		guard(raw_spinlock_irq)(&pool->lock);
		if (pool->turn_number == last && atomic_long_read(&forker->rest.data)) {
			pool->counter[FAIRWQ_YIELDS_LATE]++;
			fairwq_fork_resume_locked(&forker->rest, false);
		}
		last = pool->turn_number;
	}
}

/* End the turn of the item here, if other batches wait; return in its next turn. */
static void yield_turn(struct fairwq_forker *forker, u64 now)
{
	struct fairwq_runner *runner = forker->runner, *kick = NULL;
	struct fairwq_pool *pool = runner->pool;
	bool others, yields;

	raw_spin_lock_irq(&pool->lock);
	others = others_wait_locked(runner);
	yields = others && may_yield_locked(runner);
	if (yields)
		kick = yield_locked(forker, now);
	else if (!others)	/* the next kick in vain sets it again */
		WRITE_ONCE(pool->call, pool->call & ~FAIRWQ_CALL_WANTED);
	raw_spin_unlock_irq(&pool->lock);
	fairwq_kick_send(pool, kick);
	if (yields)
		await_turn(forker);
}

/* Do in a join what the pool wants: promote a fork, or end the turn after a slice. */
void __fairwq_join_called(struct fairwq_forks *forks)
{
	struct fairwq_forker *forker = to_forker(forks);
	struct fairwq_pool *pool = forker->runner->pool;
	u64 now;

	if (READ_ONCE(pool->call) & FAIRWQ_CALL_HUNGRY) {
		__fairwq_fork_called(forks);
		return;
	}
	WRITE_ONCE(forker->looked, true);
	if (!look_now(forker, forker->slice_end, &now))
		return;
	/* The first look of an item, or of a turn, begins its slice. */
	if (forker->slice_end) {
		yield_turn(forker, now);
		cond_resched();
		now = fairwq_clock();
	}
	forker->slice_end = now + fairwq_slice_ns(pool);
}
EXPORT_SYMBOL_GPL(__fairwq_join_called);

/* ---- joins of tasks that were promoted ---------------------------------- */

/* The task in @cell is joined. */
static void close_cell_locked(struct fairwq_forker *forker, struct fairwq_cell *cell)
{
	lockdep_assert_held(&forker->runner->pool->lock);

	cell->task = NULL;
	forker->nr_open--;
}

/*
 * Take a promoted task back. A runner begins it under the same lock. Model:
 * tests/models/fork.pml.
 *
 * Return: false if a runner has begun it.
 */
bool fairwq_fork_take_back(struct fairwq_forker *forker, struct fairwq_cell *cell)
{
	struct fairwq_pool *pool = forker->runner->pool;

	guard(raw_spinlock_irqsave)(&pool->lock);
	if (!atomic_long_read(&cell->work.data)) {
		pool->counter[FAIRWQ_STOLEN]++;
		return false;
	}
	fairwq_fifo_remove_locked(forker->runner->turn.batch, &cell->work);
	atomic_long_set(&cell->work.data, 0);
	close_cell_locked(forker, cell);
	return true;
}

/* Look for the end of a stolen task, for as long as that is cheaper than to sleep. */
static bool spin_for(struct fairwq_cell *cell)
{
	u64 end = fairwq_clock() + SPIN_NS;

	do {
		if (try_wait_for_completion(&cell->done))
			return true;
		cpu_relax();
	} while (!need_resched() && fairwq_clock() < end);
	return false;
}

/*
 * Wait for the end of a stolen task, which is joined then. The caller sees what the task
 * stored: pairs with the complete() in run_stolen(). Models: tests/models/fork.pml,
 * seat.pml.
 */
void fairwq_fork_await(struct fairwq_forker *forker, struct fairwq_cell *cell)
{
	if (!spin_for(cell)) {
		/* Another runner works in the place of this one. */
		fairwq_runner_block(forker->runner);
		wait_for_completion(&cell->done);
		fairwq_runner_unblock(forker->runner);
	}
	guard(raw_spinlock_irq)(&forker->runner->pool->lock);
	close_cell_locked(forker, cell);
}

/* ---- tasks that were not joined ----------------------------------------- */

static void warn_unjoined(const struct fairwq_turn *turn, const void *func)
{
	WARN_ONCE(1, "fairwq: %ps in item %ps of batch %s/%s has not joined what it forked\n",
		  func, turn->func, turn->batch->pool->name, turn->batch->name);
}

/* Forget the forks after @newest, or all if that was promoted. Return: there were any. */
static bool forget_after(struct fairwq_forker *forker, struct list_head *newest)
{
	struct list_head *list = &forker->forks.list;

	guard(raw_spinlock_irqsave)(&forker->runner->pool->lock);
	if (list_empty(list))
		return false;
	if (newest != list && list_entry(newest, struct fairwq_task, node)->cell)
		newest = list;
	list->prev = newest;
	newest->next = list;
	return true;
}

/*
 * Report a task whose function has returned without a join of what it forked. Its
 * forks may be on the stack that is gone, so they are forgotten, and never run.
 * @newest is what was forked last before the task ran.
 */
void __fairwq_task_left(struct fairwq_task *self, struct list_head *newest,
			fairwq_task_func_t func)
{
	struct fairwq_forker *forker = to_forker(self->forks);

	if (forget_after(forker, newest))	/* else @newest was promoted meanwhile */
		warn_unjoined(&forker->runner->turn, func);
}
EXPORT_SYMBOL_GPL(__fairwq_task_left);

/* Report an item that has returned without a join of what it forked, and forget that. */
void fairwq_forks_unjoined(struct fairwq_forker *forker)
{
	const struct fairwq_turn *turn = &forker->runner->turn;
	struct fairwq_cell *cell;

	warn_unjoined(turn, turn->func);
	scoped_guard(raw_spinlock_irq, &forker->runner->pool->lock)
		INIT_LIST_HEAD(&forker->forks.list);
	/* Join what was promoted, without touching a task that is gone. */
	for (cell = forker->cell; cell < forker->cell + FAIRWQ_NR_CELLS; cell++)
		if (cell->task && !fairwq_fork_take_back(forker, cell))
			fairwq_fork_await(forker, cell);
}
