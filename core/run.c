// SPDX-License-Identifier: GPL-2.0
/*
 * Runners: kicked, running turns, going idle.
 *
 * A runner decides one turn at a time. It holds the pool's lock once between two items:
 * it tells the batch of the item that has ended, asks the tree for the next one, and
 * charges it. So what is in flight is what runs, and nothing that was decided has to be
 * taken back. The workqueue core takes a lock for each of its works, too.
 *
 * No wake-up is lost: a runner goes idle only under the lock, having seen that
 * the tree is empty or too many work, and a batch enters the tree only under the same lock.
 * Model: tests/models/queue.pml.
 *
 * More runners are woken as long as something waits, but not for items that are over at
 * once: another CPU takes longer to get at them than they take. If one of these takes
 * longer for once, the pool's timer finds it within two ticks, see tick.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "call.h"
#include "fifo.h"
#include "park.h"
#include "run.h"
#include "runner.h"
#include "streak.h"
#include "testing.h"
#include "trace.h"
#include "tree.h"
#include "turn.h"
#include "waitlist.h"

/* ---- kicking ---------------------------------------------------------- */

/* ---- one turn --------------------------------------------------------- */

/* The function of a work, around it what makes it an item. */
static void run_item(struct fairwq_runner *runner, struct fairwq_work *work,
		     struct fairwq_footing *footing)
{
	struct fairwq_turn *turn = &runner->turn;
	bool timed = turn->timed || trace_fairwq_start_enabled() || trace_fairwq_end_enabled();
	u64 start = timed || turn->stamp ? fairwq_clock() : 0, end;
	unsigned long switches = footing->self->nvcsw;

	/* What the last item was parked for, and what is parked here, is told of it now. */
	if (unlikely(READ_ONCE(runner->wanted)))
		fairwq_unpark(runner);
	if (turn->stamp)
		turn->wait = start > turn->stamp ? start - turn->stamp : 0;
	trace_fairwq_start(turn, work);
	fairwq_call(work, turn, footing);
	/* @work may have been freed: from here on it is only an address. */
	turn->run = 0;
	if (timed) {
		end = fairwq_clock();
		/* The clock may step back a little. */
		turn->run = max_t(s64, end - start, 1);
		turn->took += turn->run;
		runner->began = runner->began ?: start;
		runner->now = end;
	}
	if (unlikely(footing->self->nvcsw != switches))
		turn->slept = true;
	trace_fairwq_end(turn, work);
	/* A hint: it is looked at again when the next one starts. */
	if (unlikely(READ_ONCE(runner->wanted)))
		fairwq_end_current(runner);
	/* Between short items, with nothing to it, about once a tick is enough. */
	if (unlikely(need_resched() || time_after(jiffies, runner->started))) {
		fairwq_test_point(FAIRWQ_POINT_RESCHED, turn->batch);
		cond_resched();
	}
}

/*
 * The function of an item has returned. If others wait for that, they are told; if the
 * runner goes on with one of them, it is returned, started.
 */
static struct fairwq_work *go_on(struct fairwq_runner *runner)
{
	struct fairwq_constraint *constraint = runner->turn.constraint;

	if (likely(!constraint))
		return NULL;
	if (constraint->serial)
		return fairwq_streak_next(runner, constraint);
	fairwq_complete(constraint);
	return NULL;
}

static void run_turn(struct fairwq_runner *runner, struct fairwq_footing *footing)
{
	struct fairwq_work *work = runner->current_work;

	do {
		run_item(runner, work, footing);
		work = go_on(runner);
	} while (unlikely(work));
}

/* Take the turn of the batch that the tree has picked. Returns whether there is an item. */
static bool take_turn_locked(struct fairwq_runner *runner, struct fairwq_node *node)
{
	struct fairwq_batch *batch = container_of(node, struct fairwq_batch, node);
	struct fairwq_work *work = fairwq_head_locked(batch);

	lockdep_assert_held(&runner->pool->lock);

	if (fairwq_ran_elsewhere(work, runner->id) && fairwq_park_locked(runner, batch))
		return false;
	fairwq_batch_take_locked(batch, &runner->turn);
	fairwq_turn_begin_locked(runner, batch);
	runner->streak.nr = 0;
	fairwq_start_item(runner, work);
	return true;
}

/* ---- the life of a runner --------------------------------------------- */

static void go_idle_locked(struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(&pool->lock);

	runner->task = NULL;
	pool->nr_active--;
	/* The one that ran last is the one whose caches are warm. */
	list_add(&runner->idle_node, &pool->idle_runners);
	trace_fairwq_runner(pool, runner, FAIRWQ_RUNNER_IDLE);
}

/*
 * Two runners at items that are over at once take turns at waiting for the lock. One gets
 * through as much, or more: the other one goes.
 */
static bool is_one_too_many_locked(const struct fairwq_runner *runner)
{
	lockdep_assert_held(&runner->pool->lock);

	return runner->turn.quick && fairwq_is_soon_free_locked(runner->pool);
}

/* By items that were timed, else by a coarse clock. */
static bool time_is_up(const struct fairwq_runner *runner, unsigned long until)
{
	return unlikely(runner->now - runner->began > FAIRWQ_RUNNER_QUANTUM_NS ||
			time_after(jiffies, until));
}

/*
 * The next turn, or none: then the runner is idle, or is to be queued again, if @requeue is
 * set. A runner whose time is up goes back to the workqueue core, so that freezing,
 * flushing and affinity changes there work as always.
 */
static bool runner_next_locked(struct fairwq_runner *runner, unsigned long until,
			       bool *requeue)
{
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_node *node;

	lockdep_assert_held(&pool->lock);

	do {
		if (unlikely(!list_empty(&pool->sorting)))
			fairwq_pool_sort_locked(pool);
		node = fairwq_tree_pick(&pool->tree);
		if (time_is_up(runner, until) && fairwq_has_work_locked(pool)) {
			pool->counter[FAIRWQ_REQUEUES]++;
			*requeue = true;
			return false;
		}
		if (pool->nr_active > pool->max_active ||
		    (!node && list_empty(&pool->sorting)) ||
		    is_one_too_many_locked(runner)) {
			go_idle_locked(runner);
			return false;
		}
	} while (!node || !take_turn_locked(runner, node));
	return true;
}

void fairwq_run(struct work_struct *work)
{
	struct fairwq_runner *runner = container_of(work, struct fairwq_runner, work);
	unsigned long until = jiffies + nsecs_to_jiffies(FAIRWQ_RUNNER_QUANTUM_NS);
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_footing footing;
	struct fairwq_runner *kick;
	bool requeue = false;

	fairwq_footing_take(&footing);
	raw_spin_lock_irq(&pool->lock);
	runner->task = footing.self;
	runner->cpu = raw_smp_processor_id();
	runner->turn.quick = false;
	runner->began = 0;
	runner->now = 0;
	while (runner_next_locked(runner, until, &requeue)) {
		kick = fairwq_kick_locked(pool);
		raw_spin_unlock_irq(&pool->lock);
		fairwq_kick_send(pool, kick);
		run_turn(runner, &footing);
		raw_spin_lock_irq(&pool->lock);
		fairwq_turn_end_locked(runner);
	}
	kick = requeue ? NULL : fairwq_kick_locked(pool);
	raw_spin_unlock_irq(&pool->lock);
	fairwq_end_current(runner);
	fairwq_kick_send(pool, kick);
	if (requeue)
		queue_work(pool->wq, &runner->work);
}
