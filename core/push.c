// SPDX-License-Identifier: GPL-2.0
/*
 * Push: what a queue call does, and what ends a hold on a work.
 *
 *   under inbox->lock   claim the work, link it
 *   under pool->lock    if no runner will look at the inbox: activate the batch, which is
 *                       to put it into the tree, and to kick a runner
 *
 * A timer, a grace period and a serializer do the same when they let a work go
 * that they have held.
 *
 * Locking: inbox->lock; pool->lock to activate or reap. Callers are in one RCU
 * read-side section from the first to the second, because the batch may be gone
 * a grace period later; or they keep interrupts off, so that none ends. They
 * have interrupts off, because other queue calls rely on the one that
 * activates. If that was preempted, their items would wait for as long.
 * Limits: any context but NMI.
 *
 * Model: tests/models/queue.pml.
 */
#include <linux/rcupdate.h>
#include <linux/timer.h>

#include "fifo.h"
#include "push.h"
#include "seat.h"
#include "testing.h"

/* Works whose timers are deleted under one hold of the lock. */
#define DELAY_CHUNK	32U

/* Put a batch with a work in its inbox into the tree, and kick a runner. */
void fairwq_activate(struct fairwq_batch *batch)
{
	struct fairwq_pool *pool = batch->pool;
	unsigned long flags;

	fairwq_test_point(FAIRWQ_POINT_QUEUE_PUSHED, batch);
	raw_spin_lock_irqsave(&pool->lock, flags);
	fairwq_fifo_update_locked(batch);
	fairwq_kick_unlock(pool, flags);
}

/* Have a disposed batch reaped, if it has drained. */
void fairwq_reap(struct fairwq_batch *batch)
{
	guard(raw_spinlock_irqsave)(&batch->pool->lock);
	fairwq_fifo_reap_locked(batch);
}

/* Count a work of @batch as not held any more, under rcu_read_lock() or a raw lock. */
void fairwq_let_go(struct fairwq_batch *batch)
{
	bool last;

	scoped_guard(raw_spinlock_irqsave, &batch->inbox.lock)
		last = fairwq_inbox_forget_locked(batch);
	if (last)
		fairwq_reap(batch);
}

/*
 * Queue a work, under rcu_read_lock(). Return: 1; 0 if the work was pending; or
 * a negative error.
 */
int fairwq_push(struct fairwq_batch *batch, struct fairwq_work *work)
{
	bool first = false;
	unsigned long flags;
	int ret;

	raw_spin_lock_irqsave(&batch->inbox.lock, flags);
	ret = fairwq_claim_locked(batch, work, FAIRWQ_STATE_QUEUED);
	if (likely(ret > 0))
		first = fairwq_inbox_link_locked(batch, work);
	raw_spin_unlock(&batch->inbox.lock);
	if (first)
		fairwq_activate(batch);
	local_irq_restore(flags);	/* see the head */
	return ret;
}

/* Queue a work that a timer or a grace period has held. */
void fairwq_arrive(struct fairwq_work *work)
{
	struct fairwq_batch *batch = fairwq_work_batch(work);
	bool first;

	guard(rcu)();
	guard(irqsave)();
	scoped_guard(raw_spinlock, &batch->inbox.lock) {
		if (fairwq_work_pending_in(work, FAIRWQ_STATE_DELAYED))
			hlist_del(&work->later);
		first = fairwq_inbox_arrive_locked(batch, work);
	}
	if (first)
		fairwq_activate(batch);
}

/* ---- delays ----------------------------------------------------------- */

/* Queue the work when its timer fires. */
void fairwq_delay_timer_fn(struct timer_list *timer)
{
	fairwq_arrive(&container_of(timer, struct fairwq_delayed_work, timer)->work);
}

/* End the delay of a work: queue it now. Return: whether its timer was set. */
bool fairwq_delay_end(struct fairwq_delayed_work *dwork)
{
	struct fairwq_batch *batch;
	bool ended, first = false;

	guard(rcu)();
	guard(irqsave)();
	batch = fairwq_work_batch(&dwork->work);
	if (!batch)
		return false;
	scoped_guard(raw_spinlock, &batch->inbox.lock) {
		ended = fairwq_inbox_undelay_locked(batch, dwork);
		if (ended)
			first = fairwq_inbox_arrive_locked(batch, &dwork->work);
	}
	if (first)
		fairwq_activate(batch);
	return ended;
}

/*
 * End the delays of all works that wait for their timer in @batch, for good:
 * queue them. A timer that fires meanwhile does that by itself.
 */
void fairwq_delays_end(struct fairwq_batch *batch)
{
	struct fairwq_delayed_work *dwork;
	struct hlist_node *next;
	unsigned int nr;
	bool first;

	do {
		nr = 0;
		first = false;
		guard(irqsave)();
		scoped_guard(raw_spinlock, &batch->inbox.lock) {
			batch->inbox.hurry = true;
			hlist_for_each_entry_safe(dwork, next, &batch->inbox.delayed, work.later) {
				if (!fairwq_inbox_undelay_locked(batch, dwork))
					continue;
				first |= fairwq_inbox_arrive_locked(batch, &dwork->work);
				if (++nr == DELAY_CHUNK)
					break;
			}
		}
		if (first)
			fairwq_activate(batch);
	} while (nr == DELAY_CHUNK);
}
