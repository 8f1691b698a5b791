// SPDX-License-Identifier: GPL-2.0
/*
 * Push: what a queue call does when it has linked its work, and what ends a
 * hold on a work.
 *
 *   under inbox->lock   a queue call claims the work, and links it
 *   under pool->lock    if no runner will look at the inbox: activate the batch, which is
 *                       to put it into the tree, and to kick a runner
 *
 * A timer, a grace period and a serializer do the same when they let a work go
 * that they have held; but see fairwq_fifo_append_locked().
 *
 * Locking: inbox->lock; pool->lock to activate or reap. Interrupts are off from
 * the first to the second, or it is one RCU read-side section. So no grace
 * period ends, after which the batch may be gone. And other queue calls rely on
 * the one that activates: if that was preempted, their items would wait for as
 * long.
 * Limits: any context but NMI.
 *
 * Model: tests/models/queue.pml.
 */
#include <linux/timer.h>

#include "fifo.h"
#include "push.h"
#include "seat.h"
#include "testing.h"

/* Put a batch with a work in its inbox into the tree, and kick a runner. */
void fairwq_activate(struct fairwq_batch *batch)
{
	fairwq_test_point(FAIRWQ_POINT_QUEUE_PUSHED, batch);
	guard(fairwq_kick)(batch->pool);
	fairwq_fifo_update_locked(batch);
}

/*
 * Have a disposed batch reaped, if it has drained. A caller that has just had
 * inbox->lock sees a dispose before that; a later one sees what the caller did.
 */
void fairwq_reap(struct fairwq_batch *batch)
{
	if (likely(!fairwq_batch_is_disposed(batch)))
		return;
	guard(raw_spinlock_irqsave)(&batch->pool->lock);
	fairwq_fifo_reap_locked(batch);
}

/*
 * Queue a work that a timer or a grace period has held. The caller is that
 * timer or grace period, or has deleted the timer.
 */
void fairwq_arrive(struct fairwq_work *work)
{
	long data = atomic_long_read(&work->data);
	struct fairwq_batch *batch = fairwq_word_batch(data);
	bool first;

	guard(irqsave)();
	scoped_guard(raw_spinlock, &batch->inbox.lock) {
		if (fairwq_word_state(data) == FAIRWQ_STATE_DELAYED)
			hlist_del(&work->later);
		first = fairwq_inbox_arrive_locked(batch, work, true);
	}
	if (first)
		fairwq_activate(batch);
}

/* ---- delays ----------------------------------------------------------- */

/*
 * End the delays of all works that wait for their timer in @batch, for good:
 * queue them. A timer that fires meanwhile does that by itself.
 */
void fairwq_delays_end(struct fairwq_batch *batch)
{
	struct fairwq_delayed_work *dwork;

	do {
		guard(irqsave)();	/* as in the function of the timer */
		scoped_guard(raw_spinlock, &batch->inbox.lock) {
			batch->inbox.hurry = true;
			hlist_for_each_entry(dwork, &batch->inbox.delayed, work.later)
				if (timer_delete(&dwork->timer))
					break;
		}
		if (dwork)		/* NULL: there was none */
			fairwq_arrive(&dwork->work);
	} while (dwork);
}
