// SPDX-License-Identifier: GPL-2.0
/*
 * Inbox: how a batch accepts a work, and where it keeps the work until a holder
 * of pool->lock moves it to the FIFO.
 *
 *   a queue call --> works ---------------------------------> fifo
 *        |             ^   fairwq_fifo_take_over_locked()
 *        +--> held ----+   fairwq_inbox_arrive_locked()
 *             by a timer, a grace period or a serializer
 *
 * There are two places, because then producers and runners do not write the
 * same cache line for each item. The queue call that activates the batch, a
 * turn that empties the FIFO or appends to it, a flush, a cancel or a dump
 * takes all that is here, in queue order, in one step.
 *
 * A queue call claims a work and puts it into its place in one section of the
 * lock. So a CPU that has the lock of a state finds each work of that state in
 * its place. GRACE has no lock: interrupts are off instead.
 *
 * Locking: inbox->lock. Under it only timers are set and deleted, and a claim
 * is taken back, under fairwq_disable_lock.
 * Invariants: see struct fairwq_inbox in types.h.
 * Limits: any context but NMI.
 *
 * Models: tests/models/queue.pml, pending.pml, disable.pml.
 */
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/timer.h>

#include "inbox.h"
#include "runner.h"

/* ---- accepting -------------------------------------------------------- */

/* For writers of fairwq_work.disabled; the loads pair with disable_item(). */
DEFINE_RAW_SPINLOCK(fairwq_disable_lock);

/*
 * Check a batch that is disposed, or a pool that drains, for an exception.
 *
 * Return: 0 if the batch takes an item from this caller, else -ESHUTDOWN.
 */
int fairwq_refusal_of(struct fairwq_batch *batch)
{
	struct fairwq_runner *runner;

	if (fairwq_batch_is_disposed(batch))
		return -ESHUTDOWN;
	/* As with drain_workqueue(), items of the pool may go on queueing. */
	runner = fairwq_runner_current();
	return runner && runner->pool == batch->pool ? 0 : -ESHUTDOWN;
}

/* Claim a work that was not free a moment ago. Return: as fairwq_claim(). */
int fairwq_claim_taken(struct fairwq_work *work, long word)
{
	long free;

	do {
		if (fairwq_is_pending(work))
			return 0;
		if (READ_ONCE(work->disabled))
			return -ECANCELED;
		free = 0;
	} while (!atomic_long_try_cmpxchg(&work->data, &free, word));
	return 1;
}

/*
 * Take the claim of a disabled work back. If the work has been enabled since,
 * it stays: a queue call after that may have returned 0, as the work was
 * pending.
 * Return: whether it was taken back.
 */
bool fairwq_unclaim(struct fairwq_work *work)
{
	fairwq_test_point(FAIRWQ_POINT_UNCLAIM, NULL);
	guard(raw_spinlock)(&fairwq_disable_lock);	/* interrupts are off */
	if (!work->disabled)
		return false;
	/*
	 * A CPU that finds the word free sees all stores to the work before
	 * that. Pairs with the cmpxchg() of the next queue call, and with
	 * fairwq_is_pending(). No model.
	 */
	atomic_long_set_release(&work->data, 0);
	return true;
}

/* ---- works that wait for a turn --------------------------------------- */

void fairwq_inbox_trace(const struct fairwq_batch *batch, const struct fairwq_work *work)
{
	trace_fairwq_queue(batch, work);
}

/* ---- works that are held ---------------------------------------------- */

/*
 * Count a work as not held any more. @batch may be drained by that. Unless
 * something else keeps it, the caller must call fairwq_reap() after it has
 * dropped the lock.
 */
void fairwq_inbox_forget_locked(struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->inbox.lock);

	WRITE_ONCE(batch->inbox.nr_held, batch->inbox.nr_held - 1);
}

/*
 * Link a work that was pending elsewhere; with @held it was counted for that.
 * Return: as fairwq_inbox_link_locked().
 */
bool fairwq_inbox_arrive_locked(struct fairwq_batch *batch, struct fairwq_work *work, bool held)
{
	lockdep_assert_held(&batch->inbox.lock);

	if (held)
		fairwq_inbox_forget_locked(batch);
	atomic_long_set(&work->data, fairwq_word(batch, FAIRWQ_STATE_QUEUED));
	return fairwq_inbox_link_locked(batch, work);
}

/*
 * Set the timer of a work that is held; link the work, if there is nothing to
 * wait for.
 * Return: as fairwq_inbox_link_locked().
 */
bool fairwq_inbox_delay_locked(struct fairwq_batch *batch, struct fairwq_delayed_work *dwork,
			       unsigned long delay)
{
	struct fairwq_inbox *inbox = &batch->inbox;

	lockdep_assert_held(&inbox->lock);

	if (!delay || inbox->hurry)
		return fairwq_inbox_arrive_locked(batch, &dwork->work, true);
	atomic_long_set(&dwork->work.data, fairwq_word(batch, FAIRWQ_STATE_DELAYED));
	hlist_add_head(&dwork->work.later, &inbox->delayed);
	/* A longer one would look as if it was over. */
	dwork->timer.expires = jiffies + min(delay, MAX_JIFFY_OFFSET);
	add_timer(&dwork->timer);
	return false;
}
