/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Items: how a runner starts one, and how it ends the last.
 *
 *   fairwq_start_item()  function  fairwq_start_item()  function ...
 *                                                fairwq_end_current()
 *
 * The start of an item ends the one before it. fairwq_end_current() ends an
 * item behind which the runner has no other, or for whose end others are
 * parked; fairwq_waitlist_end_item() one of a serializer or limiter, unless its
 * turn goes on. For the body of a loop no item is the current one:
 * loop_item_fn().
 *
 * Locking: pool->lock; an item of a burst starts under the lock of its
 * serializer.
 * Invariant: runner->current_work is stored before the work's word becomes 0.
 * Models: tests/models/park.pml, pending.pml, disable.pml.
 *
 * Inline, as each item comes through here.
 */
#ifndef FAIRWQ_TURN_H
#define FAIRWQ_TURN_H

#include "fifo.h"
#include "park.h"
#include "types.h"

/*
 * Start a work: from here on it is not pending. Under pool->lock, or the lock
 * of the serializer in which it waited.
 */
static inline void fairwq_start_item(struct fairwq_runner *runner, struct fairwq_work *work)
{
	/*
	 * A CPU that sees @work here also sees what the last item of this
	 * runner did. The lock that was taken since is no such barrier. Pairs
	 * with fairwq_executing_runner(), fairwq_park_locked() and
	 * await_running().
	 * Models: tests/models/park.pml, disable.pml.
	 */
	smp_store_release(&runner->current_work, work);
	WRITE_ONCE(work->last_runner, runner->id);
	WRITE_ONCE(work->serializer, NULL);
	WRITE_ONCE(runner->started, jiffies);
	/*
	 * A queue call that finds the word 0 also sees which runner has the
	 * work. The function sees the stores of a queue call that found it
	 * pending. Full barrier, pairs with fairwq_claim() and
	 * fairwq_is_pending(). It also orders the store of @current_work
	 * before the load of @parked in run_item(): pairs with
	 * fairwq_park_locked(). Models: tests/models/pending.pml, park.pml.
	 */
	atomic_long_xchg(&work->data, 0);
}

/* End the runner's item, and put back what was parked until then. */
static inline void fairwq_end_current(struct fairwq_runner *runner)
{
	/*
	 * The next run of the work sees what this one did, and so does a CPU
	 * that waits for it. Pairs with fairwq_executing_runner(),
	 * fairwq_park_locked() and await_running().
	 * Models: tests/models/park.pml, disable.pml.
	 */
	smp_store_release(&runner->current_work, NULL);
	/*
	 * Store @current_work, then load @parked. Pairs with
	 * fairwq_park_locked(). Model: tests/models/park.pml.
	 */
	smp_mb();
	if (unlikely(!list_empty(&runner->parked)))
		fairwq_unpark(runner);
}

#endif /* FAIRWQ_TURN_H */
