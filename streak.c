// SPDX-License-Identifier: GPL-2.0
/*
 * Streaks: a runner goes on with the items of one serializer.
 *
 * When an item of a serializer has ended and others wait, the next may start at
 * once, on the same runner, without a way through its batch. If the serializer
 * has a budget for that, the runner takes some of them along under one hold of
 * the lock, into slots of its own, charges each to its batch, and runs them one
 * after the other. When the budget is used up, or the next one may not go on
 * like that, the next goes to its batch as always.
 *
 * The same goes for items in front of one that has a higher priority than they
 * have, whatever the budget: it would have to wait until they have had their
 * turns among those of theirs. And, as far as a plan goes, for
 * those of a serializer that has seen one priority only, while there is nothing
 * else to run: they are what would be planned.
 *
 * Unlike those of a plan the slots are not helped with or stolen: none of them
 * may start before the one in front has ended. Whoever holds the pool's lock
 * may take works out of them, to cancel them, or to put them back where they
 * were: into the serializer. That is done when anybody waits for turns to end,
 * as these may be behind an item that itself waits for him.
 *
 * Invariant: while there is a work in a slot, the runner has the serializer,
 * and it lets go of it only under the pool's lock.
 *
 * Model: tests/models/streak.pml.
 */
#include "compat.h"
#include "internal.h"
#include "trace.h"

/* Each has a turn in the log, from the first one on. */
static_assert(FAIRWQ_STREAK_MAX <= FAIRWQ_LOG_MAX && FAIRWQ_PLAN_MAX <= FAIRWQ_LOG_MAX);
static_assert(FAIRWQ_LIFT_MAX <= FAIRWQ_STREAK_MAX);

/* So many in one streak, however short they are. */
#define STREAK_TURNS	1024

/*
 * What is done once for several items of a batch, if they follow each other: to
 * put it into the tree, as only what is eligible is charged, to charge it, and
 * to say that it is not held for them any more. Lines that a queue call touches
 * are left alone as far as can be.
 */
struct fairwq_guest {
	struct fairwq_batch *batch;	/* or NULL */
	const struct fairwq_turn *first;	/* its first turn */
	unsigned int nr;		/* items */
	u64 cost;			/* what each costs */
	bool joined;			/* it had nothing queued */
};

static void fairwq_guest_charge_locked(const struct fairwq_guest *guest)
{
	struct fairwq_batch *batch = guest->batch;
	struct fairwq_tree *tree = &batch->pool->tree;

	lockdep_assert_held(&batch->pool->lock);

	if (!fairwq_mutant(STREAK_FREE)) {
		if (guest->nr > 1)
			fairwq_tree_charge_ahead(tree, &batch->node,
						 (guest->nr - 1) * guest->cost,
						 guest->nr - 1);
		fairwq_tree_charge(tree, &batch->node, guest->cost);
	}
	fairwq_batch_turns_locked(batch, guest->nr);
	fairwq_window_guest_locked(batch);
	fairwq_window_turns_locked(batch, guest->nr);
}

static void fairwq_guest_leave_locked(struct fairwq_guest *guest)
{
	struct fairwq_batch *batch = guest->batch;

	if (!batch)
		return;
	lockdep_assert_held(&batch->pool->lock);
	fairwq_guest_charge_locked(guest);
	if (!fairwq_mutant(SERIAL_NOT_HELD))
		atomic_sub(guest->nr, &batch->nr_held);
	if (!guest->joined)
		return;
	fairwq_tree_del(&batch->pool->tree, &batch->node);
	fairwq_window_left_locked(batch);
}

/* What was idle joins as if it were queued now. */
static void fairwq_guest_join_locked(struct fairwq_guest *guest, struct fairwq_batch *batch)
{
	struct fairwq_tree *tree = &batch->pool->tree;

	lockdep_assert_held(&batch->pool->lock);

	fairwq_guest_leave_locked(guest);
	guest->batch = batch;
	guest->nr = 0;
	guest->joined = !tree->by_arrival && !fairwq_node_eligible(&batch->node);
	if (guest->joined)
		fairwq_tree_add(tree, &batch->node, 0);
}

/*
 * @turn is one of a streak, and what it costs is known. The same estimate holds
 * for all of them: nothing is learned under the lock. So do all other terms.
 */
static void fairwq_guest_terms_locked(struct fairwq_guest *guest, struct fairwq_turn *turn)
{
	if (guest->nr++) {
		turn->terms = guest->first->terms;
		return;
	}
	guest->first = turn;
	guest->cost = fairwq_cost_guess_locked(turn);
	turn->streak = true;
}

/*
 * May the runner go on with items of @batch? Not if that is held back, or has a
 * limit: those in front of others in the slots would keep others out.
 */
static bool fairwq_streak_may_enter_locked(const struct fairwq_pool *pool,
					   const struct fairwq_batch *batch)
{
	lockdep_assert_held(&pool->lock);

	return batch->pool == pool && !batch->paused && !batch->nr_canceling &&
	       !batch->max_active;
}

/* And with @work, of such a batch? Not if that still runs on another runner. */
static bool fairwq_streak_may_take_locked(struct fairwq_runner *runner,
					  const struct fairwq_work *work)
{
	lockdep_assert_held(&runner->pool->lock);

	return !(work->place & FAIRWQ_PLACE_BARRIER) &&
	       (!work->last_runner || work->last_runner == runner->id ||
		!fairwq_runs_locked(runner->pool, work));
}

/* @work was taken out of the serializer, into the next slot. */
static void fairwq_streak_take_locked(struct fairwq_runner *runner, struct fairwq_work *work,
				      struct fairwq_guest *guest)
{
	struct fairwq_streak *streak = &runner->streak;
	unsigned int most = streak->budget ? FAIRWQ_STREAK_MAX : FAIRWQ_LIFT_MAX;
	struct fairwq_slot *slot = &runner->log.slot[streak->nr++];
	struct fairwq_batch *batch = fairwq_kept_batch(work);

	lockdep_assert_held(&runner->pool->lock);

	if (guest->batch != batch) {
		fairwq_guest_join_locked(guest, batch);
		if (!streak->alone)	/* then it keeps nobody waiting */
			fairwq_window_streak_locked(batch, streak->turns + most,
						    max(streak->budget, streak->lift_budget));
	}
	streak->turns++;
	fairwq_batch_take_waiting_locked(batch, slot, work);
	fairwq_guest_terms_locked(guest, &slot->turn);
	slot->turn.constraint = &streak->serializer->constraint;
}

/*
 * So many are to be run whatever the budget; not more in one streak, and while
 * there is time @left for that.
 */
static unsigned int fairwq_streak_lift_locked(const struct fairwq_streak *streak, u64 left)
{
	if (streak->turns >= FAIRWQ_LIFT_MAX || fairwq_mutant(LIFT_IGNORED) || !left ||
	    !fairwq_serializer_is_mixed(streak->serializer))
		return 0;
	return fairwq_serializer_lift_locked(streak->serializer,
					     FAIRWQ_LIFT_MAX - streak->turns);
}

static u64 fairwq_left(u64 due, u64 now)
{
	return now < due ? due - now : 0;
}

/* Of the budget, ns. */
static u64 fairwq_streak_left(const struct fairwq_streak *streak, u64 now)
{
	return fairwq_mutant(STREAK_ENDLESS) ? U64_MAX : fairwq_left(streak->due, now);
}

/* It has had all the turns that one may have. */
static bool fairwq_streak_is_long(const struct fairwq_streak *streak)
{
	unsigned int turns = streak->turns;

	if (fairwq_mutant(STREAK_LONGER))
		turns -= streak->nr;
	return turns >= STREAK_TURNS && !fairwq_mutant(STREAK_ENDLESS);
}

/* How far the runner goes with what waits. */
struct fairwq_reach {
	u64 left;			/* of the budget, ns */
	u64 planned;			/* of that */
	const struct fairwq_batch *batch;	/* the last one, or NULL */
	u64 each;			/* what an item of it is likely to take */
};

/*
 * Does it go on with @work? With as many as are likely to fit into what is left of
 * the budget, or are in front of one of a higher priority.
 */
static bool fairwq_streak_reaches_locked(struct fairwq_runner *runner,
					 struct fairwq_reach *reach,
					 const struct fairwq_work *work)
{
	const struct fairwq_streak *streak = &runner->streak;
	struct fairwq_batch *batch;

	lockdep_assert_held(&runner->pool->lock);

	if (streak->nr == FAIRWQ_STREAK_MAX || fairwq_streak_is_long(streak) ||
	    (reach->planned >= reach->left && streak->nr >= streak->lift) ||
	    !fairwq_streak_may_take_locked(runner, work))
		return false;
	batch = fairwq_kept_batch(work);
	if (batch != reach->batch) {
		if (!fairwq_streak_may_enter_locked(runner->pool, batch))
			return false;
		reach->batch = batch;
		/* As in a plan. */
		reach->each = max(fairwq_estimate_locked(batch, reach->left),
				  fairwq_cost_to_come_locked(batch));
	}
	reach->planned += reach->each;
	return true;
}

/* One of @nr, from @first on. */
static void fairwq_streak_time_one_locked(struct fairwq_runner *runner, unsigned int first,
					  unsigned int nr)
{
	lockdep_assert_held(&runner->pool->lock);

	runner->log.slot[first + runner->pool->plan_seq++ % nr].turn.timed = true;
}

/*
 * Both locks are held: what is taken from the serializer gets into a slot at
 * once.
 */
static void fairwq_streak_fill_locked(struct fairwq_runner *runner, u64 now,
				      struct list_head *through)
{
	struct fairwq_streak *streak = &runner->streak;
	struct fairwq_serializer *serializer = streak->serializer;
	struct fairwq_reach reach = { .left = fairwq_streak_left(streak, now) };
	struct list_head *waiting = &serializer->waiting;
	struct fairwq_work *work, *next;
	struct fairwq_guest guest = { };
	unsigned int i;

	lockdep_assert_held(&runner->pool->lock);

	work = fairwq_serializer_first_locked(serializer, through);
	if (!work)
		return;
	streak->lift = fairwq_streak_lift_locked(streak, fairwq_left(streak->lift_due, now));
	for (; work && fairwq_streak_reaches_locked(runner, &reach, work); work = next) {
		/* The slot overlays the list node. */
		next = list_is_last(&work->node, waiting) ? NULL : list_next_entry(work, node);
		fairwq_prefetchw(next);
		fairwq_streak_take_locked(runner, work, &guest);
	}
	/* All that were taken at once. */
	__list_del(waiting, work ? &work->node : waiting);
	fairwq_guest_leave_locked(&guest);
	/* One in so many is timed, as in a plan, each time another. */
	for (i = 0; i < streak->nr; i += FAIRWQ_PLAN_MAX)
		fairwq_streak_time_one_locked(runner, i, min(streak->nr - i, FAIRWQ_PLAN_MAX));
}

/* The runner has @serializer, of which others wait. */
void fairwq_streak_begin(struct fairwq_runner *runner, struct fairwq_serializer *serializer)
{
	struct fairwq_streak *streak = &runner->streak;

	streak->serializer = serializer;
	streak->budget = (u64)READ_ONCE(serializer->inline_us) * NSEC_PER_USEC;
	streak->alone = false;
	streak->turns = 0;
	streak->lift = 0;
	streak->due = 0;
}

/*
 * Nothing stands in the tree, it seems: what goes to its batch now is what is
 * planned next, and after it what comes then. So they are taken along, as far
 * as a plan goes, and as long as that is so. Not with strict turns.
 */
bool fairwq_streak_alone(struct fairwq_runner *runner)
{
	struct fairwq_streak *streak = &runner->streak;
	struct fairwq_pool *pool = runner->pool;
	unsigned int slice_us = READ_ONCE(pool->slice_us);

	if (READ_ONCE(pool->nr_eligible) || READ_ONCE(pool->attention) || !slice_us ||
	    fairwq_mutant(STREAK_NEVER_ALONE))
		return false;
	streak->budget = (u64)slice_us * NSEC_PER_USEC;
	streak->alone = true;
	return true;
}

/* There is something to be had before the next of the serializer is. */
static bool fairwq_streak_interrupted_locked(const struct fairwq_runner *runner)
{
	const struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(&pool->lock);

	return runner->streak.alone && !fairwq_mutant(STREAK_NOT_ALONE) &&
	       (fairwq_has_work_locked(pool) || fairwq_open_turns_locked(pool));
}

/* It begins now. What is lifted has a slice, or the budget if that is longer. */
static void fairwq_streak_set_due_locked(struct fairwq_runner *runner, u64 now)
{
	struct fairwq_streak *streak = &runner->streak;
	u64 slice = runner->pool->slice_us ?: FAIRWQ_DFL_SLICE_US;

	lockdep_assert_held(&runner->pool->lock);

	streak->lift_budget = max(slice * NSEC_PER_USEC, streak->budget);
	streak->due = now + streak->budget;
	streak->lift_due = now + streak->lift_budget;
	streak->overdue = jiffies + nsecs_to_jiffies(streak->lift_budget) + 1;
}

/* More of it, unless that is enough. Returns whether there is more to run. */
bool fairwq_streak_refill_locked(struct fairwq_runner *runner, u64 now)
{
	struct fairwq_streak *streak = &runner->streak;
	struct fairwq_pool *pool = runner->pool;
	raw_spinlock_t *lock = fairwq_constraint_lock(&streak->serializer->constraint);
	LIST_HEAD(through);

	lockdep_assert_held(&pool->lock);

	/* Before any batch is put into the tree as a guest: it may be no guest then. */
	fairwq_think_again_locked(pool);
	if (streak->next < streak->nr)
		fairwq_streak_give_back_locked(runner);
	streak->nr = 0;
	streak->next = 0;
	/* One that was alone has one of a higher priority now: that may lift others. */
	if (streak->alone && fairwq_serializer_is_mixed(streak->serializer) &&
	    !fairwq_mutant(LIFT_IGNORED))
		fairwq_streak_begin(runner, streak->serializer);
	if (!streak->due)
		fairwq_streak_set_due_locked(runner, now);
	if (pool->attention || pool->nr_active > pool->max_active ||
	    fairwq_streak_interrupted_locked(runner))
		return false;
	raw_spin_lock(lock);
	fairwq_streak_fill_locked(runner, now, &through);
	fairwq_kept_left_locked(&streak->serializer->constraint);
	raw_spin_unlock(lock);
	fairwq_markers_done(&through);
	return streak->nr;
}

/* The turn is off, and the work where it was before. */
static void fairwq_streak_put_back_locked(struct fairwq_serializer *serializer,
					  struct fairwq_slot *slot, struct fairwq_work *work)
{
	struct fairwq_batch *batch = slot->turn.batch;

	lockdep_assert_held(&batch->pool->lock);

	fairwq_waiters_retry_locked(batch->pool, slot->turn.number);
	fairwq_cost_refund_locked(&slot->turn);
	fairwq_hold(batch);
	if (batch->max_queued)
		atomic_inc(&batch->nr_queued);
	fairwq_serializer_put_back(serializer, work, batch);
	fairwq_batch_turn_drop_locked(batch, slot->turn.color);
}

/*
 * What is left of the streak waits again. From the last one on, so that the
 * serializer has its items in queue order. As long as there is a work in a slot,
 * so is the serializer.
 */
void fairwq_streak_give_back_locked(struct fairwq_runner *runner)
{
	struct fairwq_streak *streak = &runner->streak;
	struct fairwq_slot *slot;
	struct fairwq_work *work;
	unsigned int i;

	lockdep_assert_held(&runner->pool->lock);

	for (i = streak->nr; i-- > 0 && !fairwq_mutant(STREAK_KEPT);) {
		slot = &runner->log.slot[i];
		/*
		 * Most are not there any more; and none comes but under the lock. Pairs
		 * with fairwq_streak_next(). Model: tests/models/streak.pml.
		 */
		work = READ_ONCE(slot->work);
		if (work)
			work = xchg(&slot->work, NULL);
		if (work)
			fairwq_streak_put_back_locked(streak->serializer, slot, work);
	}
}

/* The same, if an item of @batch is among them: it must not begin. */
void fairwq_streak_withdraw_locked(struct fairwq_runner *runner, const struct fairwq_batch *batch)
{
	const struct fairwq_slot *slot = runner->log.slot;
	unsigned int i;

	lockdep_assert_held(&runner->pool->lock);

	for (i = 0; i < runner->streak.nr; i++, slot++) {
		if (READ_ONCE(slot->work) && slot->turn.batch == batch) {
			fairwq_streak_give_back_locked(runner);
			return;
		}
	}
}

/*
 * The streak is over, and the serializer is not the runner's any more. If the
 * next item cannot be put into its batch here, the serializer is returned: that
 * is for the caller to do without the lock.
 */
struct fairwq_serializer *fairwq_streak_end_locked(struct fairwq_runner *runner)
{
	struct fairwq_serializer *serializer = runner->streak.serializer;
	raw_spinlock_t *lock = fairwq_constraint_lock(&serializer->constraint);
	struct fairwq_batch *batch = NULL;
	struct fairwq_work *work;
	LIST_HEAD(through);

	lockdep_assert_held(&runner->pool->lock);

	runner->streak.serializer = NULL;
	raw_spin_lock(lock);
	work = fairwq_serializer_first_locked(serializer, &through);
	if (!work)
		fairwq_serializer_leave_locked(serializer);
	if (work && fairwq_kept_batch(work)->pool == runner->pool) {
		batch = fairwq_kept_batch(work);
		list_del(&work->node);
		fairwq_batch_link_waiting_locked(batch, work);
	}
	raw_spin_unlock(lock);
	fairwq_markers_done(&through);
	if (batch)
		fairwq_batch_update_locked(batch);
	return work && !batch ? serializer : NULL;
}

/*
 * The item that calls this is to be the last of its serializer. If nothing
 * waits behind it, nobody has the serializer from here on, and it may go.
 */
bool fairwq_streak_detach(struct fairwq_runner *runner, struct fairwq_serializer *serializer)
{
	raw_spinlock_t *lock = fairwq_constraint_lock(&serializer->constraint);
	struct fairwq_turn *turn = &runner->log.slot[runner->log.nr - 1].turn;
	struct fairwq_streak *streak = &runner->streak;
	unsigned long flags;
	unsigned int i;
	bool last = true;

	raw_spin_lock_irqsave(&runner->pool->lock, flags);
	for (i = 0; i < streak->nr; i++)
		last = last && !READ_ONCE(runner->log.slot[i].work);
	raw_spin_lock(lock);
	last = last && fairwq_serializer_leave_locked(serializer);
	raw_spin_unlock(lock);
	if (last) {
		streak->serializer = NULL;
		streak->next = streak->nr;
	}
	raw_spin_unlock_irqrestore(&runner->pool->lock, flags);
	if (!last)
		return false;
	fairwq_lockdep_ran_constrained(turn->constraint);
	turn->constraint = NULL;
	return true;
}
