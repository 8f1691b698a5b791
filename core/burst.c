// SPDX-License-Identifier: GPL-2.0
/*
 * Bursts: a runner goes on with the items of one serializer.
 *
 * When an item of a serializer ends while others wait, the runner may start the
 * next one at once, for as long as the serializer's inline budget lasts. That
 * item then does not go through its batch, which must be that of the item
 * before.
 *
 * The runner does not go on, and the next item is queued to its batch, if
 *
 * - the batch is another one, is paused, or is being cancelled;
 * - the work still runs elsewhere, or with this one more than max_active
 *   runners work;
 * - a caller waits for the turn to end, because the next item might itself wait
 *   for that caller;
 * - each item is charged as a turn, by the policy.
 *
 * All items of a burst are one turn, which is charged one item when it begins
 * and the others when it ends.
 *
 * Locking: the lock of the serializer, in waitlist.c. struct fairwq_burst is
 * the runner's.
 * Invariant: until it starts, the next item waits in the serializer as all
 * others do. There a cancel finds it, under the lock of the serializer.
 * Models: tests/models/burst.pml; enter.pml for that cancel.
 *
 * Limits: BURST_ITEMS items.
 */

#include "lockdep.h"
#include "park.h"
#include "policy.h"
#include "push.h"
#include "runner.h"
#include "burst.h"
#include "trace.h"
#include "turn.h"
#include "waitlist.h"

/* Most items of one burst behind the first, however short they are. */
#define BURST_ITEMS	1024U
/* Most items between two readings of the clock. */
#define BURST_CHECK	64U
/* The time between two items, ns; a guess, which matters for short ones. */
#define ITEM_OVERHEAD_NS	50U

/* ---- how far a runner goes on ----------------------------------------- */

/* Return the time that an item of @batch is likely to take, ns. */
static u64 burst_each(struct fairwq_batch *batch)
{
	/* A hint, which is written under the pool's lock. */
	unsigned long avg = data_race(ewma_fairwq_run_read(&batch->stats->run_avg));

	return avg ? avg + ITEM_OVERHEAD_NS : FAIRWQ_DFL_SLICE_US * NSEC_PER_USEC;
}

/* Check whether an item of @batch may start within what is left of the budget. */
static bool burst_has_budget(struct fairwq_runner *runner, struct fairwq_batch *batch)
{
	struct fairwq_burst *burst = &runner->burst;
	u64 now, each;

	if (!burst->due)
		return false;
	/* After a tick the estimate may be wrong, so the clock is read. */
	if (burst->left && !time_after(jiffies, runner->started)) {
		burst->left--;
		return true;
	}
	now = fairwq_clock();
	if (now >= burst->due)
		return false;
	each = burst_each(batch);
	if (each < burst->due - now)
		burst->left = clamp_t(u64, div64_u64(burst->due - now, each), 1,
				      BURST_CHECK) - 1;
	else
		burst->due = 0;		/* this one uses it up */
	return true;
}

/* Check whether the runner goes on with @work, which is bound for @batch. */
static bool burst_goes_on_locked(struct fairwq_runner *runner,
				 struct fairwq_serializer *serializer,
				 const struct fairwq_work *work,
				 struct fairwq_batch *batch)
{
	u64 budget = (u64)READ_ONCE(serializer->inline_us) * NSEC_PER_USEC;
	const struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(fairwq_serializer_lock(serializer));

	if (!budget || batch != runner->turn.batch)
		return false;
	/* Where a client says what an item costs, each one is charged as a turn. */
	if (READ_ONCE(runner->yield) || fairwq_policy_of(pool)->needs_cost)
		return false;
	if (fairwq_park_runs_elsewhere(work, runner->id))
		return false;
	/* Hints, written under the pool's lock. A pause also ends the bursts of @batch. */
	if (data_race(batch->paused || batch->nr_canceling ||
		      pool->crew.nr_active + !runner->seated > pool->crew.max_active))
		return false;
	if (runner->turn.nr == 1)
		runner->burst = (struct fairwq_burst){ .due = fairwq_clock() + budget };
	if (runner->turn.nr > BURST_ITEMS)
		return false;
	return burst_has_budget(runner, batch);
}

/* ---- going on --------------------------------------------------------- */

/* Start @work, the first that waits, as one more item of the runner's turn of @batch. */
static void burst_take_locked(struct fairwq_runner *runner,
			      struct fairwq_serializer *serializer,
			      struct fairwq_work *work, struct fairwq_batch *batch)
{
	struct fairwq_turn *turn = &runner->turn;

	lockdep_assert_held(fairwq_serializer_lock(serializer));

	if (fairwq_waitlist_remove_locked(serializer, work)) {
		guard(raw_spinlock)(&batch->inbox.lock);
		fairwq_inbox_forget_locked(batch);	/* @turn keeps the batch */
	}
	trace_fairwq_queue(batch, work);
	turn->nr++;
	WRITE_ONCE(turn->stamp, 0);
	WRITE_ONCE(turn->func, work->func);
	WRITE_ONCE(turn->id, work);
	fairwq_start_item(runner, work);
	fairwq_waitlist_wake_locked(serializer, work);
}

/*
 * End an item of a serializer, which this runner has, and go on with the next.
 *
 * Return: the next item, started; or NULL. Then the serializer is not the
 * runner's any more: the next item is queued to its batch, or none waits.
 */
struct fairwq_work *fairwq_burst_next(struct fairwq_runner *runner,
				      struct fairwq_serializer *serializer)
{
	raw_spinlock_t *lock = fairwq_serializer_lock(serializer);
	struct fairwq_batch *batch;
	struct fairwq_work *work;

	/*
	 * A CPU that sees this also sees what the item stored. Pairs with
	 * executing_runner(), park_at() and await_running(). Works that are
	 * parked here are put back when the runner starts another item, or has
	 * none. Models: tests/models/park.pml, disable.pml.
	 */
	smp_store_release(&runner->current_work, NULL);
	/* Not under the lock, which queue calls wait for. A hint: the work may be gone. */
	fairwq_prefetchw(READ_ONCE(serializer->waiting.next));
	rcu_read_lock();	/* for the batch of an admitted work */
	raw_spin_lock_irq(lock);
	/*
	 * Store @current_work, then load @yield. Pairs with await_running().
	 * Model: tests/models/burst.pml.
	 */
	smp_mb__after_spinlock();
	work = fairwq_waitlist_first_locked(serializer);
	batch = work ? fairwq_work_batch(work) : NULL;
	if (batch && burst_goes_on_locked(runner, serializer, work, batch)) {
		burst_take_locked(runner, serializer, work, batch);
		batch = NULL;
	} else {
		batch = fairwq_waitlist_next_locked(serializer);
		work = NULL;
	}
	raw_spin_unlock(lock);
	if (batch)
		fairwq_activate(batch);
	local_irq_enable();	/* see core/push.c */
	rcu_read_unlock();
	return work;
}

/*
 * Make the calling item the last one of its serializer. If nothing waits behind
 * it, no runner has the serializer from here on, and its memory may be freed.
 *
 * Return: false if a work waits, or a call, which needs the serializer. Then
 * nothing has changed.
 */
bool fairwq_burst_detach(struct fairwq_runner *runner, struct fairwq_serializer *serializer)
{
	scoped_guard(raw_spinlock_irqsave, fairwq_serializer_lock(serializer)) {
		if (!list_empty(&serializer->waiting))
			return false;
		serializer->in_flight = 0;
		WRITE_ONCE(serializer->ending, serializer->ending + 1);
	}
	lock_map_release(&serializer->lockdep_map);
	runner->turn.serializer = NULL;
	return true;
}
