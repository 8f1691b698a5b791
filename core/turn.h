/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Turns and items: what a runner does when they begin and end.
 *
 *   turn:  fairwq_turn_begin_locked() ............ fairwq_turn_end_locked()
 *   item:    fairwq_start_item()  function  fairwq_end_current()
 *
 * A turn has one item, or several in a burst. There each item starts directly
 * after the one before; see burst.c. What a turn is charged is in policy.c.
 *
 * Locking: pool->lock; an item of a burst starts under the lock of its
 * serializer.
 * Invariant: runner->current_work is stored before the work's word becomes 0.
 * Models: tests/models/park.pml, pending.pml, disable.pml.
 *
 * Inline, as each turn comes through here.
 */
#ifndef FAIRWQ_TURN_H
#define FAIRWQ_TURN_H

#include "fifo.h"
#include "park.h"
#include "types.h"

/* Of turns that are over at once, and need not be timed, one in so many is. */
#define TIMED_TURNS	64U

/*
 * Start a work: from here on it is not pending. Under pool->lock, or the lock
 * of the serializer in which it waited.
 */
static inline void fairwq_start_item(struct fairwq_runner *runner, struct fairwq_work *work)
{
	/*
	 * A CPU that sees @work here also sees what the last item of this
	 * runner did. The lock that was taken since is no such barrier. Pairs
	 * with executing_runner(), park_at() and await_running(). Models:
	 * tests/models/park.pml, disable.pml.
	 */
	smp_store_release(&runner->current_work, work);
	WRITE_ONCE(work->last_runner, runner->id);
	WRITE_ONCE(work->serializer, NULL);
	WRITE_ONCE(runner->started, jiffies);
	/*
	 * A queue call that finds the word 0 also sees which runner has the
	 * work. The function sees the stores of a queue call that found it
	 * pending. Full barrier, pairs with fairwq_claim() and
	 * fairwq_claim_taken(). It also orders the store of @current_work
	 * before the load of @has_parked in run_item(): pairs with park_at().
	 * Models: tests/models/pending.pml, park.pml.
	 */
	atomic_long_xchg(&work->data, 0);
}

/* End the runner's item, and put back what was parked until then. */
static inline void fairwq_end_current(struct fairwq_runner *runner)
{
	/*
	 * The next run of the work sees what this one did, and so does a CPU
	 * that waits for it. Pairs with executing_runner(), park_at() and
	 * await_running().
	 * Models: tests/models/park.pml, disable.pml.
	 */
	smp_store_release(&runner->current_work, NULL);
	/*
	 * Store @current_work, then load @has_parked. Pairs with park_at().
	 * Model: tests/models/park.pml.
	 */
	smp_mb();
	if (unlikely(READ_ONCE(runner->has_parked)))
		fairwq_unpark(runner);
}

/* Begin a turn of @batch, which was charged. The caller starts its first item next. */
static inline void fairwq_turn_begin_locked(struct fairwq_runner *runner,
					    struct fairwq_batch *batch)
{
	struct fairwq_turn *turn = &runner->turn;
	struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(&pool->lock);

	turn->quick = batch->quick;
	turn->timed |= !turn->quick || !(turn->number % TIMED_TURNS);
	if (turn->quick) {
		pool->crew.nr_quick++;
		pool->crew.quick_at = jiffies;
	}
	runner->away = 0;
	WRITE_ONCE(runner->yield, false);
}

/* End the runner's turn: tell its batch, which may be gone when the lock is dropped. */
static inline void fairwq_turn_end_locked(struct fairwq_runner *runner)
{
	struct fairwq_turn *turn = &runner->turn;

	lockdep_assert_held(&runner->pool->lock);

	runner->pool->crew.nr_quick -= turn->quick;
	turn->took += turn->later;
	fairwq_fifo_turn_end_locked(turn);
	turn->batch = NULL;
}

#endif /* FAIRWQ_TURN_H */
