// SPDX-License-Identifier: GPL-2.0
/*
 * Streaks: a runner goes on with the items of one serializer.
 *
 * When an item of a serializer has ended and others wait, the next may start at once, on
 * the same runner, without a way through its batch. A runner goes on in three cases:
 *
 *  the serializer has an inline budget		until that is used up
 *  nothing else is eligible in the pool	for 64 items, if they are over at once
 *  an item of a higher priority waits		for those in front of that one
 *
 * Else the next item goes to its batch as always. So it does if its batch is paused, has a
 * max_active or is of another pool, and if something waits for turns of the pool to end: an
 * item of the streak might wait for that in turn.
 *
 * The items of one batch in a row are one turn, which is charged one item when it begins
 * and the others when it ends. An item that is bound for another batch ends the turn and
 * begins one of its own, which the tree did not give: its batch pays for that later.
 *
 * Until it starts the next item waits in the serializer, as all others do. There a cancel
 * finds it, under the lock of the constraint.
 *
 * Model: tests/models/streak.pml.
 */

#include "fifo.h"
#include "lockdep.h"
#include "park.h"
#include "runner.h"
#include "streak.h"
#include "trace.h"
#include "turn.h"
#include "waitlist.h"

/* So many items in one streak, however short they are. */
#define STREAK_ITEMS	1024U
/* And of those that are alone: they are paid for when others come. */
#define ALONE_ITEMS	64U
/* The clock is read at least this often. */
#define STREAK_CHECK	64U
/* What goes on around an item, ns; a guess, for short ones. */
#define ITEM_OVERHEAD_NS	50U

/* May an item of @batch start without a way through that? */
static bool streak_may_enter(const struct fairwq_runner *runner,
			     const struct fairwq_batch *batch)
{
	/* A hint, but under the pool's lock: a pause ends the streak by @yield. */
	return batch->pool == runner->pool && !batch->max_active && !data_race(batch->paused);
}

/* What an item of @batch is likely to take, ns. */
static u64 streak_each(const struct fairwq_batch *batch)
{
	/* A hint: it is written to under the pool's lock. */
	unsigned long avg = data_race(ewma_fairwq_run_read(&batch->stats->run_avg));

	return avg ? avg + ITEM_OVERHEAD_NS : FAIRWQ_DFL_SLICE_US * NSEC_PER_USEC;
}

/* Items of several priorities were queued to it. */
static bool streak_is_mixed(const struct fairwq_constraint *constraint)
{
	return constraint->seen & (constraint->seen - 1);
}

/*
 * How many of those that wait are in front of one of a higher priority than the
 * first; 0 if they are more than @max.
 */
static unsigned int streak_lift_locked(struct fairwq_constraint *constraint,
				       unsigned int max)
{
	unsigned int nr = 0, first = 0, rank;
	struct fairwq_work *work;

	lockdep_assert_held(fairwq_constraint_lock(constraint));

	list_for_each_entry(work, &constraint->waiting, node) {
		if (work->place & FAIRWQ_PLACE_BARRIER)
			continue;
		rank = fairwq_prio_rank(fairwq_kept_batch(work)->prio);
		if (!nr)
			first = rank;
		else if (rank < first)
			return nr;
		if (nr++ == max)
			break;
	}
	return 0;
}

/* The first item has ended: how far may the runner go on? */
static void streak_begin(struct fairwq_runner *runner,
			 const struct fairwq_constraint *constraint)
{
	u64 budget = (u64)READ_ONCE(constraint->inline_us) * NSEC_PER_USEC;
	struct fairwq_streak *streak = &runner->streak;
	struct fairwq_pool *pool = runner->pool;
	unsigned int slice_us = READ_ONCE(pool->slice_us);

	*streak = (struct fairwq_streak){
		.nr = max(streak->nr, 1U), .alone = !budget && runner->turn.quick,
	};
	if (!budget && !streak_is_mixed(constraint))
		return;
	streak->due = fairwq_clock();
	streak->lift_due = streak->due + max((u64)(slice_us ?: FAIRWQ_DFL_SLICE_US) *
					     NSEC_PER_USEC, budget);
	streak->due += budget;
	streak->budget = budget;
}

/* There is something left of the budget. */
static bool streak_has_budget(struct fairwq_runner *runner,
			      const struct fairwq_batch *batch)
{
	struct fairwq_streak *streak = &runner->streak;
	u64 now, each;

	if (!streak->budget)
		return false;
	/* The last one has seen a tick: what was thought to fit in may not. */
	if (streak->left && !time_after(jiffies, runner->started)) {
		streak->left--;
		return true;
	}
	now = fairwq_clock();
	if (now >= streak->due)
		return false;
	each = streak_each(batch);
	if (each < streak->due - now)
		streak->left = clamp_t(u64, div64_u64(streak->due - now, each), 1,
				       STREAK_CHECK) - 1;
	else
		streak->budget = 0;	/* this one uses it up */
	return true;
}

/* It is in front of one of a higher priority, not too many are, and there is time for it. */
static bool streak_lifts_locked(struct fairwq_runner *runner,
				struct fairwq_constraint *constraint)
{
	struct fairwq_streak *streak = &runner->streak;

	lockdep_assert_held(fairwq_constraint_lock(constraint));

	if (!streak_is_mixed(constraint))
		return false;
	if (!streak->lift_due)		/* it was alone until now */
		streak_begin(runner, constraint);
	return streak->nr <= FAIRWQ_LIFT_MAX && fairwq_clock() < streak->lift_due &&
	       streak_lift_locked(constraint, FAIRWQ_LIFT_MAX - streak->nr + 1);
}

/*
 * Nothing else is eligible, nor will be when it was put into order, as far as can be seen
 * without the pool's lock. And the last item was over at once.
 */
static bool streak_is_alone(const struct fairwq_runner *runner)
{
	const struct fairwq_pool *pool = runner->pool;

	if (!runner->streak.alone ||
	    runner->streak.nr > ALONE_ITEMS || time_after(jiffies, runner->started))
		return false;
	return (!READ_ONCE(pool->nr_eligible) && list_empty(&pool->sorting));
}

/* Does the runner go on with @work, which is bound for @batch? */
static bool streak_goes_on_locked(struct fairwq_runner *runner,
				  struct fairwq_constraint *constraint,
				  const struct fairwq_work *work,
				  const struct fairwq_batch *batch)
{
	const struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(fairwq_constraint_lock(constraint));

	if (READ_ONCE(runner->yield))
		return false;
	if (!streak_may_enter(runner, batch) || fairwq_runs_elsewhere(work, runner->id) ||
	    data_race(pool->nr_active > pool->max_active))	/* a hint */
		return false;
	if (!runner->streak.nr)
		streak_begin(runner, constraint);
	if (runner->streak.nr > STREAK_ITEMS)
		return false;
	return streak_is_alone(runner) || streak_has_budget(runner, batch) ||
	       streak_lifts_locked(runner, constraint);
}

/* @work, the first that waits, is started; of a turn of its batch that is under way. */
static void streak_take_locked(struct fairwq_runner *runner,
			       struct fairwq_constraint *constraint,
			       struct fairwq_work *work, struct fairwq_batch *batch)
{
	struct fairwq_turn *turn = &runner->turn;

	lockdep_assert_held(fairwq_constraint_lock(constraint));

	list_del(&work->node);
	trace_fairwq_queue(batch, work);
	if (batch->max_queued)
		atomic_dec(&batch->nr_queued);
	turn->held++;
	WRITE_ONCE(turn->stamp, 0);
	turn->wait = 0;
	WRITE_ONCE(turn->func, work->func);
	WRITE_ONCE(turn->id, work);
	turn->constraint = constraint;
	turn->streak = ++runner->streak.nr;
	work->stamp = 0;
	WRITE_ONCE(work->place, 0);
	fairwq_start_item(runner, work);
	fairwq_kept_left_locked(constraint);
}

/* The next item is bound for another batch: that gets a turn out of its order. */
static struct fairwq_work *streak_other_locked(struct fairwq_runner *runner,
					       struct fairwq_constraint *constraint,
					       struct list_head *go)
{
	struct fairwq_work *work = fairwq_constraint_first_locked(constraint, go);
	struct fairwq_batch *batch = work ? fairwq_kept_batch(work) : NULL;

	lockdep_assert_held(&runner->pool->lock);

	if (!batch || !streak_goes_on_locked(runner, constraint, work, batch)) {
		fairwq_constraint_next_locked(constraint, go);
		return NULL;
	}
	fairwq_turn_end_locked(runner);
	fairwq_batch_take_waiting_locked(batch, &runner->turn, work);
	fairwq_turn_begin_locked(runner, batch);
	streak_take_locked(runner, constraint, work, batch);
	return work;
}

/* The same, with the locks. Interrupts are off. */
static struct fairwq_work *streak_other(struct fairwq_runner *runner,
					struct fairwq_constraint *constraint,
					struct list_head *go)
{
	raw_spinlock_t *lock = fairwq_constraint_lock(constraint);
	struct fairwq_runner *kick;
	struct fairwq_work *work;

	raw_spin_lock(&runner->pool->lock);
	raw_spin_lock(lock);
	work = streak_other_locked(runner, constraint, go);
	raw_spin_unlock(lock);
	kick = fairwq_kick_locked(runner->pool);
	raw_spin_unlock(&runner->pool->lock);
	fairwq_kick_send(runner->pool, kick);
	return work;
}

/*
 * An item of a serializer has ended, which the runner has. Return the next one, started, if
 * the runner goes on with it. Else the serializer is not the runner's any more: the next
 * item goes to its batch, or none waits.
 */
struct fairwq_work *fairwq_streak_next(struct fairwq_runner *runner,
				       struct fairwq_constraint *constraint)
{
	raw_spinlock_t *lock = fairwq_constraint_lock(constraint);
	struct fairwq_batch *batch;
	struct fairwq_work *work;
	bool other = false;
	LIST_HEAD(go);

	/*
	 * What is stored by the item is seen after this. Pairs with fairwq_runs_elsewhere(),
	 * park_at() and await_running(). What is parked here is put back when
	 * the runner starts another item, or has none. Models: tests/models/park.pml,
	 * disable.pml.
	 */
	smp_store_release(&runner->current_work, NULL);
	local_irq_disable();	/* until what is let go was pushed, see constraint.c */
	raw_spin_lock(lock);
	/*
	 * Store @current_work, then load @yield. Pairs with await_running().
	 * Model: tests/models/streak.pml.
	 */
	smp_mb__after_spinlock();
	work = fairwq_constraint_first_locked(constraint, &go);
	batch = work ? fairwq_kept_batch(work) : NULL;
	if (batch && batch == runner->turn.batch &&
	    streak_goes_on_locked(runner, constraint, work, batch)) {
		runner->turn.nr++;
		streak_take_locked(runner, constraint, work, batch);
	} else if (batch && batch != runner->turn.batch && batch->pool == runner->pool) {
		other = true;
	} else {
		fairwq_constraint_next_locked(constraint, &go);
		work = NULL;
	}
	raw_spin_unlock(lock);
	if (other)
		work = streak_other(runner, constraint, &go);
	fairwq_constraint_go(&go);
	local_irq_enable();
	return work;
}

/*
 * The item that calls this is to be the last of its serializer. If nothing
 * waits behind it, nobody has the serializer from here on, and it may go.
 */
bool fairwq_streak_detach(struct fairwq_runner *runner, struct fairwq_constraint *constraint)
{
	raw_spinlock_t *lock = fairwq_constraint_lock(constraint);
	unsigned long flags;
	bool last;

	raw_spin_lock_irqsave(lock, flags);
	last = list_empty(&constraint->waiting);
	if (last)
		constraint->in_flight = 0;
	raw_spin_unlock_irqrestore(lock, flags);
	if (!last)
		return false;
	fairwq_lockdep_ran_constrained(runner->turn.constraint);
	runner->turn.constraint = NULL;
	return true;
}
