// SPDX-License-Identifier: GPL-2.0
/*
 * Push: what a queue call does, without a lock as long as the batch is polled.
 *
 *   refusal --> reserve --> claim --> push --+--> done
 *                 |           |              +--> activate: sort, tree, kick
 *                 |           +--> unclaim, if the work is disabled
 *                 +--> -EAGAIN, if max_queued items are queued
 *
 * The push that finds batch->incoming empty and the batch unpolled activates
 * the batch under the pool's lock.
 *
 * A claimed work belongs to its queue call until it is pushed. Interrupts are off from
 * the claim to the push. So a call that finds a claimed work runs on another CPU, and
 * may spin until the work is pushed. The states of a work are in types.h.
 *
 * Locking: none, and pool->lock to activate. Callers are in one RCU read-side
 * section from the refusal to the push, because the batch is closed after a grace
 * period.
 * Invariant: a pending work is pushed at most once.
 * Limits: any context but NMI.
 *
 * Models: tests/models/queue.pml, pending.pml, disable.pml.
 */
#include <linux/hash.h>
#include <linux/rcupdate.h>

#include "fifo.h"
#include "kick.h"
#include "push.h"
#include "runner.h"
#include "testing.h"
#include "trace.h"

/* One queue call in 1 << WAIT_SAMPLE_BITS is measured. */
#define WAIT_SAMPLE_BITS	4

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

/*
 * Return the time of queueing, or 0. Reading the clock costs as much as the rest of the
 * call, so only some calls read it: in each tick those for another sixteenth of the works.
 * While there are histograms, each call into an idle batch is measured.
 */
static __always_inline u64 stamp(struct fairwq_batch *batch, const struct fairwq_work *work)
{
	struct fairwq_pool *pool = batch->pool;

	if (likely(hash_32((u32)(unsigned long)work + (u32)jiffies, WAIT_SAMPLE_BITS) &&
		   !trace_fairwq_start_enabled() &&
		   !(READ_ONCE(pool->histograms) && llist_empty(&batch->incoming))))
		return 0;
	return fairwq_clock();
}

/* Reserve room in a batch that has a limit. Return: as fairwq_reserve(). */
int fairwq_reserve_room(struct fairwq_batch *batch, const struct fairwq_work *work)
{
	int nr;

	if (!fairwq_unless_pending(work, 1))
		return 0;
	/*
	 * May be more than max_queued, because a parked item is put back even
	 * if others came meanwhile. A count, which orders nothing else.
	 */
	nr = atomic_read(&batch->nr_queued);
	do {
		if ((unsigned int)nr >= batch->max_queued)
			return -EAGAIN;
	} while (!atomic_try_cmpxchg(&batch->nr_queued, &nr, nr + 1));
	return 1;
}

/* Give back the room of one item. */
void fairwq_unreserve(struct fairwq_batch *batch)
{
	if (batch->max_queued)
		atomic_dec(&batch->nr_queued);
}

/* Sort an unpolled batch, put it into the tree and kick. */
static noinline void activate_batch(struct fairwq_batch *batch)
{
	struct fairwq_pool *pool = batch->pool;
	unsigned long flags;

	raw_spin_lock_irqsave(&pool->lock, flags);
	fairwq_fifo_update_locked(batch);
	fairwq_kick_unlock(pool, flags);
}

/* Claim a work that was not free a moment ago. Return: as fairwq_claim_as(). */
int fairwq_claim_taken(struct fairwq_work *work, long word)
{
	long data = 0;

	while (!atomic_long_try_cmpxchg(&work->data, &data, word)) {
		/*
		 * The caller's stores, then the load of the word, because the
		 * call may return 0. Pairs with fairwq_start_item(). Model:
		 * tests/models/pending.pml.
		 */
		smp_mb();
		data = atomic_long_read(&work->data);
		if (READ_ONCE(work->disabled))
			return -ECANCELED;
		if (data)
			return 0;
	}
	return 1;
}

/* Trace a push: out of line, so that a push needs few registers. */
static noinline void trace_push(const struct fairwq_batch *batch, const struct fairwq_work *work)
{
	trace_fairwq_queue(batch, work);
}

/*
 * Push a work that the caller has claimed, with interrupts off.
 *
 * Return: whether it is the only one in @incoming. Then the caller must activate the batch.
 */
static __always_inline bool push_claimed(struct fairwq_batch *batch, struct fairwq_work *work)
{
	fairwq_test_point(FAIRWQ_POINT_QUEUE_ACCEPTED, batch);
	work->stamp = stamp(batch, work);
	if (trace_fairwq_queue_enabled())
		trace_push(batch, work);
	/*
	 * Full barrier between the push and the load. Pairs with that in
	 * batch_idle_locked(). After it @work may be gone. Model:
	 * tests/models/queue.pml.
	 */
	return llist_add(&work->llnode, &batch->incoming);
}

/* Activate @batch after a push into an empty list, unless a runner will look there. */
static __always_inline void activate(struct fairwq_batch *batch)
{
	fairwq_test_point(FAIRWQ_POINT_QUEUE_PUSHED, batch);
	if (!READ_ONCE(batch->polled))
		activate_batch(batch);
}

/* Push a work that the caller has claimed, and activate the batch if need be. */
void fairwq_push_claimed(struct fairwq_batch *batch, struct fairwq_work *work)
{
	if (push_claimed(batch, work))
		activate(batch);
}

/*
 * Queue a work, under rcu_read_lock(). Return: 1; 0 if the work was pending; or a
 * negative error.
 */
int fairwq_push(struct fairwq_batch *batch, struct fairwq_work *work)
{
	int ret = fairwq_reserve(batch, work);
	bool first = false;
	unsigned long flags;

	if (ret <= 0)
		return ret;
	local_irq_save(flags);	/* until the work is pushed, see the head */
	ret = fairwq_claim_as(batch, work, (long)batch | FAIRWQ_WORK_PENDING);
	if (likely(ret > 0))
		first = push_claimed(batch, work);
	local_irq_restore(flags);
	if (unlikely(ret <= 0))
		fairwq_unreserve(batch);
	else if (first)
		activate(batch);
	return ret;
}

/*
 * Drop a hold on @batch, and have the batch reaped if it was the last one. If
 * the batch is not disposed yet, fairwq_batch_close() will see the count,
 * because it is called after a later grace period. The end of a pool may skip
 * that grace period, but only after it saw the count: pool_is_idle().
 */
void fairwq_unpin(struct fairwq_batch *batch)
{
	struct fairwq_pool *pool = batch->pool;

	guard(rcu)();
	if (atomic_dec_and_test(&batch->nr_pins) && unlikely(fairwq_batch_is_disposed(batch))) {
		guard(raw_spinlock_irqsave)(&pool->lock);
		fairwq_fifo_reap_locked(batch);
	}
}

/*
 * Push a work that a timer, a grace period or a constraint has held. It has pinned its
 * batch until now.
 *
 * The word keeps its flags until the work is linked. They tell a cancel that the work is
 * on its way there.
 */
void fairwq_push_held(struct fairwq_work *work)
{
	struct fairwq_batch *batch = fairwq_work_batch(atomic_long_read(&work->data));

	fairwq_push_claimed(batch, work);
	fairwq_unpin(batch);
}
