// SPDX-License-Identifier: GPL-2.0
/*
 * Main loop: how a runner takes turns, one at a time, until it goes idle.
 *
 *   fairwq_run()
 *     lock
 *  -> runner_next_locked()       pick, take a turn;
 *  |                             or go idle, or ask to be queued again: the end
 *  |  fairwq_kick_locked()       choose an idle runner, if more can be done
 *  |  unlock, send the kick
 *  |  run_turn()                 the item; in a burst those behind it, too
 *  |  lock
 *  |  fairwq_fifo_append_locked()    the next item of a serializer, if it is of the batch
 *  -- fairwq_fifo_turn_end_locked()  tell the batch: flushes, limits, its cost
 *
 * A runner decides one turn at a time, so no decision has to be taken back. The
 * price is one hold of pool->lock for each turn, as in the workqueue core.
 *
 * Locking: pool->lock, which is dropped around the items.
 * Invariant: a runner goes idle only under the lock, for one of three reasons.
 * The tree is empty, more runners work than may, or another runner is soon
 * free. A batch enters the tree only under that lock, so no wake-up is lost.
 * Models: tests/models/queue.pml, seat.pml.
 *
 * Limits: after FAIRWQ_RUNNER_QUANTUM_MS a runner with more to do is queued
 * again.
 */
#include "asleep.h"
#include "call.h"
#include "fifo.h"
#include "fork.h"
#include "park.h"
#include "runner.h"
#include "seat.h"
#include "testing.h"
#include "trace.h"
#include "tree.h"
#include "turn.h"
#include "waitlist.h"

/* Of turns that are over at once, and need not be timed, one in so many is. */
#define TIMED_TURNS	64U

/* ---- one turn --------------------------------------------------------- */

/* Report an item that has returned from a section that may block, and end that. */
static void end_blocks(struct fairwq_runner *runner)
{
	const struct fairwq_turn *turn = &runner->turn;

	WARN_ONCE(1, "fairwq: item %ps of batch %s/%s has not ended a section that may block\n",
		  turn->func, runner->pool->name, turn->batch->name);
	runner->nr_blocks = 1;
	fairwq_seat_unblock(runner);
}

/* Run the function of a work, with the clock, the traces and the checks around it. */
static void run_item(struct fairwq_runner *runner, struct fairwq_work *work,
		     struct fairwq_call_state *state)
{
	struct fairwq_turn *turn = &runner->turn;
	bool timed = turn->timed || trace_fairwq_start_enabled() || trace_fairwq_end_enabled();
	u64 start = timed || turn->stamp ? fairwq_clock() : 0;
	unsigned long switches = state->self->nvcsw;
	u64 run = 0;

	/* Put back what waited for the last item. What waits for @work stays parked. */
	if (unlikely(!list_empty(&runner->parked)))
		fairwq_unpark(runner);
	turn->wait = turn->stamp && start > turn->stamp ? start - turn->stamp : 0;
	trace_fairwq_start(turn, work);
	fairwq_call(work, turn, state);
	/* @work may have been freed: from here on it is only an address. */
	fairwq_forks_end(runner);
	if (unlikely(runner->nr_blocks))
		end_blocks(runner);
	if (timed) {
		/* The clock may step back a little. */
		run = max_t(s64, fairwq_clock() - start, 1);
		turn->charge.took += run;
	}
	if (unlikely(state->self->nvcsw != switches))
		turn->slept = true;
	trace_fairwq_end(turn, work, run);
	/* A hint: @parked is looked at again when the next item starts. */
	if (unlikely(!list_empty(&runner->parked)))
		fairwq_end_current(runner);
	/* Between short items one of these a tick is enough, if nothing asks for more. */
	if (unlikely(need_resched() || time_after(jiffies, runner->started))) {
		fairwq_test_point(FAIRWQ_POINT_RESCHED, turn->batch);
		cond_resched();
	}
}

/*
 * Detach a turn that is to outlive its function, unless what it waits for has
 * ended already.
 *
 * Return: whether it is so. Then the runner has no turn any more.
 */
static bool detach_turn(struct fairwq_runner *runner)
{
	guard(raw_spinlock_irq)(&runner->pool->lock);
	if (!runner->turn.async)
		return false;
	fairwq_seat_not_quick_locked(runner);
	fairwq_seat_return_locked(runner);
	fairwq_fifo_detach_locked(&runner->turn);
	return true;
}

/*
 * Run the items of one turn: one, or those of a burst. Tell the serializer or
 * limiter of each, if it has one, that the function has returned, unless the
 * turn goes on.
 *
 * Return: a work that the caller must append to the batch of the turn; or NULL.
 * The caller takes pool->lock at once, because interrupts may be off.
 */
static struct fairwq_work *run_turn(struct fairwq_runner *runner,
				    struct fairwq_call_state *state)
{
	struct fairwq_work *work = runner->current_work;
	struct fairwq_serializer *serializer;
	struct fairwq_work *moved = NULL;

	do {
		run_item(runner, work, state);
		if (unlikely(READ_ONCE(runner->turn.async)) && detach_turn(runner))
			return NULL;
		serializer = runner->turn.serializer;
		if (likely(!serializer))
			return NULL;
		work = fairwq_waitlist_end_item(runner, serializer, &moved);
	} while (work);
	return moved;
}

/* Take a turn of the batch of @node. Return false if its item was parked instead. */
static bool take_turn_locked(struct fairwq_runner *runner, struct fairwq_node *node)
{
	struct fairwq_batch *batch = container_of(node, struct fairwq_batch, node);
	struct fairwq_work *work = fairwq_head_locked(batch);
	struct fairwq_crew *crew = &batch->pool->crew;
	struct fairwq_turn *turn = &runner->turn;

	lockdep_assert_held(&runner->pool->lock);

	if (fairwq_park_ran_elsewhere(work, runner->id) && fairwq_park_locked(runner, batch))
		return false;
	WRITE_ONCE(runner->yield, false);	/* it is set if the turn is waited for */
	fairwq_fifo_take_locked(batch, turn);
	turn->quick = batch->quick;
	turn->timed |= !turn->quick || !(turn->number % TIMED_TURNS);
	crew->nr_quick += turn->quick;
	crew->began_at = jiffies;
	fairwq_start_item(runner, work);
	return true;
}

/* ---- between turns ---------------------------------------------------- */

/*
 * Check whether another runner gets on with items that are over at once, as
 * those of @runner are. Two runners at such items only wait for each other's
 * lock, and one of them gets through as much. The proof is a turn that another
 * runner has begun since @runner began its own. A runner whose item sleeps
 * begins none.
 */
static bool is_redundant_locked(const struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(&pool->lock);

	return runner->turn.quick && pool->crew.turn_number != runner->turn.number &&
	       fairwq_seat_soon_free_locked(pool);
}

/* Check whether more runners are active than may be. */
static bool is_surplus_locked(const struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	return pool->crew.nr_active > pool->crew.seats && !fairwq_seat_may_exceed_locked(pool, 1);
}

/*
 * Take the next turn. If there is none, the runner is idle; or it must be
 * queued again, if it has its seat. A runner whose time is up returns to the
 * workqueue core, so that freezing, flushing and changes of affinity work
 * there.
 */
static bool runner_next_locked(struct fairwq_runner *runner, unsigned long until)
{
	struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(&pool->lock);

	do {
		if (!pool->tree.eligible || is_surplus_locked(pool) ||
		    is_redundant_locked(runner)) {
			fairwq_seat_leave_locked(runner);
			return false;
		}
		if (unlikely(time_after(jiffies, until))) {
			pool->tally.counter[FAIRWQ_REQUEUES]++;
			return false;
		}
	} while (!take_turn_locked(runner, fairwq_tree_pick(&pool->tree)));
	return true;
}

/* Take turns until the time is up or none is left. The function of every runner. */
void fairwq_run(struct work_struct *work)
{
	struct fairwq_runner *runner = container_of(work, struct fairwq_runner, work);
	unsigned long until = jiffies + msecs_to_jiffies(FAIRWQ_RUNNER_QUANTUM_MS);
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_call_state state;
	struct fairwq_runner *kick;
	struct fairwq_work *moved;

	fairwq_call_begin(&state);
	raw_spin_lock_irq(&pool->lock);
	fairwq_asleep_begin_locked(runner);
	runner->cpu = raw_smp_processor_id();
	runner->turn.quick = false;
	while (runner_next_locked(runner, until)) {
		kick = fairwq_kick_locked(pool);
		raw_spin_unlock_irq(&pool->lock);
		fairwq_kick_send(kick);
		moved = run_turn(runner, &state);
		raw_spin_lock_irq(&pool->lock);
		if (moved)
			fairwq_fifo_append_locked(runner->turn.batch, moved);
		fairwq_seat_return_locked(runner);
		if (likely(runner->turn.batch))
			fairwq_fifo_turn_end_locked(&runner->turn);
	}
	/* One whose time is up has its seat, and is queued again. Otherwise none is needed. */
	kick = runner->seated ? runner : NULL;
	fairwq_asleep_end_locked(runner, NULL);
	raw_spin_unlock_irq(&pool->lock);
	fairwq_end_current(runner);
	fairwq_kick_send(kick);
}
