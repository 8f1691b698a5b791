/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Turns and items: what happens when they begin and end.
 *
 *   turn:  begin (lock) ... end (lock)
 *   item:  start, function, end; one in a turn, or several in a streak
 *
 * Inline, as each turn comes through here.
 */
#ifndef FAIRWQ_TURN_H
#define FAIRWQ_TURN_H

#include "fifo.h"
#include "park.h"
#include "types.h"

/* Items that take less, on average, are over at once, ns. */
#define QUICK_NS	1000U
/* One turn in so many is timed, where all are over at once and nothing else asks for it. */
#define TIMED_TURNS	64U

/*
 * From here on the work is started. Under the pool's lock, or that of the constraint in
 * which it has waited.
 */
static inline void fairwq_start_item(struct fairwq_runner *runner, struct fairwq_work *work)
{
	/*
	 * What another runner may want to know. If it sees that the one before is over it
	 * sees what that did: the lock that was taken since is no such barrier. Pairs with
	 * fairwq_runs_elsewhere(), park_at() and await_running(). Models:
	 * tests/models/park.pml, disable.pml.
	 */
	smp_store_release(&runner->current_work, work);
	WRITE_ONCE(work->last_runner, runner->id);
	WRITE_ONCE(work->constraint, NULL);
	WRITE_ONCE(runner->started, jiffies);
	/*
	 * Whoever finds it clear queues anew, and sees who runs it. Whoever
	 * found it set has his stores seen by the function. Full barrier, pairs
	 * with the one in fairwq_claim_taken(). It is also one between the store of
	 * @current_work and the load of @wanted, in run_item(): pairs with
	 * park_at().
	 * Models: tests/models/pending.pml, park.pml.
	 */
	atomic_long_xchg(&work->data, 0);
}

/* It is over: what is parked until then is put back. */
static inline void fairwq_end_current(struct fairwq_runner *runner)
{
	/*
	 * The run to come sees what this one did, and so does who waits for it. Pairs with
	 * fairwq_runs_elsewhere(), park_at() and await_running(). Models:
	 * tests/models/park.pml, disable.pml.
	 */
	smp_store_release(&runner->current_work, NULL);
	/*
	 * Store @current_work, then load @wanted. Pairs with park_at(). Model:
	 * tests/models/park.pml.
	 */
	smp_mb();
	if (unlikely(READ_ONCE(runner->wanted)))
		fairwq_unpark(runner);
}

/* The next item is to be the first of a turn of @batch. */
static inline void fairwq_turn_begin_locked(struct fairwq_runner *runner,
					    struct fairwq_batch *batch)
{
	struct fairwq_turn *turn = &runner->turn;
	unsigned long avg = ewma_fairwq_run_read(&batch->stats->run_avg);
	struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(&pool->lock);

	turn->quick = avg && avg < QUICK_NS;
	turn->timed |= !turn->quick || !(turn->number % TIMED_TURNS);
	if (turn->quick) {
		pool->nr_quick++;
		pool->quick_at = jiffies;
	}
	WRITE_ONCE(runner->yield, false);
}

/* The runner's turn is over: its batch is told. */
static inline void fairwq_turn_end_locked(struct fairwq_runner *runner)
{
	struct fairwq_turn *turn = &runner->turn;

	lockdep_assert_held(&runner->pool->lock);

	runner->pool->nr_quick -= turn->quick;
	fairwq_batch_turn_end_locked(turn);
	turn->batch = NULL;
}

#endif /* FAIRWQ_TURN_H */
