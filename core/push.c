// SPDX-License-Identifier: GPL-2.0
/*
 * Push: what a queue call does, without a lock as long as the batch is watched.
 *
 * A queue call reserves room in the batch, claims the work, and pushes it onto
 * batch->incoming. The push that finds the batch unwatched takes the pool's lock,
 * puts the batch into the fair tree and kicks a runner.
 *
 * A claimed work is its queue call's until it is pushed. A cancel that comes
 * meanwhile leaves CANCELED in the word, and the next holder of the lock drops
 * the work, unless another queue call revives it before.
 *
 * Models: tests/models/queue.pml, pending.pml, cancel.pml, disable.pml.
 */
#include <linux/hash.h>
#include <linux/rcupdate.h>

#include "compat.h"
#include "fifo.h"
#include "push.h"
#include "runner.h"
#include "testing.h"
#include "trace.h"

/* Queue calls on this CPU, about: they say which of them are measured. */
static DEFINE_PER_CPU(unsigned int, fairwq_calls);

/* One queue call in 1 << so many into a busy batch is measured. */
#define WAIT_SAMPLE_BITS	4

/* Why the batch takes no more items, or 0 if it does from the caller. */
int fairwq_refusal_of(struct fairwq_batch *batch)
{
	struct fairwq_runner *runner;

	if (fairwq_batch_is_disposed(batch))
		return -ESHUTDOWN;
	/* As with drain_workqueue(): an item of the pool may go on queueing. */
	runner = fairwq_current_runner();
	return runner && runner->pool == batch->pool ? 0 : -ESHUTDOWN;
}

/* Under arrival order: a time, and no two alike. */
static u64 arrival(struct fairwq_pool *pool)
{
	u64 now = fairwq_clock();
	s64 last = atomic64_read(&pool->last_arrival), next;

	/* A number, which orders nothing else. */
	do {
		next = max_t(s64, now, last + 1);
	} while (!atomic64_try_cmpxchg(&pool->last_arrival, &last, next));
	return next;
}

/*
 * When the item was queued, or 0. Reading the clock costs as much as the rest
 * of the call, so into a busy batch only some are measured, by their number on this CPU:
 * mixed, as it may take turns with others.
 */
static u64 stamp(struct fairwq_batch *batch)
{
	/* raw_: if the caller is preempted or interrupted, a call is not counted. */
	unsigned int *calls = raw_cpu_ptr(&fairwq_calls), seq = READ_ONCE(*calls) + 1;

	WRITE_ONCE(*calls, seq);
	if (READ_ONCE(batch->pool->policy) == FAIRWQ_FIFO)
		return arrival(batch->pool);
	if (hash_32(seq, WAIT_SAMPLE_BITS) && !llist_empty(&batch->incoming) &&
	    !trace_fairwq_start_enabled())
		return 0;
	return fairwq_clock();
}

/*
 * Room for one more item than are queued: 1 if there is, else what to return.
 * A work that is pending needs none, and takes none from others meanwhile.
 */
int fairwq_reserve(struct fairwq_batch *batch, const struct fairwq_work *work)
{
	int nr;

	if (!batch->max_queued)
		return 1;
	if (!fairwq_unless_pending(work, 1))
		return 0;
	/*
	 * It may be more than that: what was taken is put back, whoever came meanwhile.
	 * A count, which orders nothing else.
	 */
	nr = atomic_read(&batch->nr_queued);
	do {
		if ((unsigned int)nr >= batch->max_queued)
			return -EAGAIN;
	} while (!atomic_try_cmpxchg(&batch->nr_queued, &nr, nr + 1));
	return 1;
}

void fairwq_unreserve(struct fairwq_batch *batch)
{
	if (batch->max_queued)
		atomic_dec(&batch->nr_queued);
}

/* The first push into a batch that nobody watches, or one that is to be looked at. */
static void attend(struct fairwq_batch *batch)
{
	struct fairwq_pool *pool = batch->pool;
	unsigned long flags;

	raw_spin_lock_irqsave(&pool->lock, flags);
	if (unlikely(batch->nr_canceled))
		fairwq_batch_splice_locked(batch);
	fairwq_batch_update_locked(batch);
	fairwq_batch_reap_locked(batch);
	fairwq_unlock_kick(pool, flags);
}

/*
 * A cancel has left word that the work is to be dropped once it arrives; it
 * need not be. It stays where it is on its way to, unless it was disabled: as
 * both are done under the lock, either a disable is seen here, or its cancel
 * sees that it is pending. Returns what fairwq_claim() is to return, or 0.
 */
static int revive(struct fairwq_work *work, long data)
{
	struct fairwq_batch *batch = fairwq_work_batch(data);
	struct fairwq_pool *pool = batch->pool;
	unsigned long flags;
	int ret = 0;

	fairwq_test_point(FAIRWQ_POINT_QUEUE_REVIVE, batch);
	raw_spin_lock_irqsave(&pool->lock, flags);
	if (READ_ONCE(work->disabled)) {
		ret = -ECANCELED;
	} else if (atomic_long_try_cmpxchg(&work->data, &data,
					   data & ~FAIRWQ_WORK_CANCELED)) {
		/*
		 * Full barrier, as in fairwq_claim_as(): the caller is told that it is
		 * queued. Pairs with fairwq_start_item(). Model: tests/models/cancel.pml.
		 */
		WRITE_ONCE(batch->nr_canceled, batch->nr_canceled - 1);
		ret = FAIRWQ_QUEUED;
	}
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	return ret;
}

/*
 * It would pass what waits in the constraint that is wanted now; and it would not wait for
 * a grace period.
 */
static bool may_revive(long wanted)
{
	return !(wanted & (FAIRWQ_WORK_CONSTRAINED | FAIRWQ_WORK_GRACE));
}

/* It was claimed while it was being disabled: then it is not queued. */
int fairwq_unclaim(struct fairwq_work *work)
{
	/*
	 * Who finds it free sees all that was done with it. Pairs with the cmpxchg() of
	 * the next queue call. Model: tests/models/disable.pml.
	 */
	long data = atomic_long_xchg(&work->data, 0);
	struct fairwq_batch *batch = fairwq_work_batch(data);
	unsigned long flags;

	if (!(data & FAIRWQ_WORK_CANCELED))
		return -ECANCELED;
	/* Or it was, and was cancelled, and somebody was told so. */
	raw_spin_lock_irqsave(&batch->pool->lock, flags);
	WRITE_ONCE(batch->nr_canceled, batch->nr_canceled - 1);
	raw_spin_unlock_irqrestore(&batch->pool->lock, flags);
	return FAIRWQ_QUEUED;
}

/* The work is not free, or was not a moment ago. As fairwq_claim_as(). */
int fairwq_claim_taken(struct fairwq_work *work, long word)
{
	long data = 0;
	int ret;

	while (!atomic_long_try_cmpxchg(&work->data, &data, word)) {
		/*
		 * What the caller has stored, then the word: he may be told 0. Pairs
		 * with fairwq_start_item(). Model: tests/models/pending.pml.
		 */
		smp_mb();
		data = atomic_long_read(&work->data);
		if (READ_ONCE(work->disabled))
			return -ECANCELED;
		if ((data & (FAIRWQ_WORK_PENDING | FAIRWQ_WORK_CANCELED)) == FAIRWQ_WORK_PENDING)
			return 0;
		if (data && !may_revive(word))
			return -EBUSY;
		ret = data ? revive(work, data) : 0;
		if (ret)
			return ret;
		data = 0;
	}
	return FAIRWQ_CLAIMED;
}

/* And bound for @batch, if nothing else is said. */
int fairwq_claim(struct fairwq_batch *batch, struct fairwq_work *work, long flags)
{
	return fairwq_claim_as(batch, work, (long)batch | FAIRWQ_WORK_PENDING | flags);
}

/* Push a work that the caller has claimed. */
void fairwq_push_claimed(struct fairwq_batch *batch, struct fairwq_work *work)
{
	unsigned int canceled;
	bool first;

	fairwq_test_point(FAIRWQ_POINT_QUEUE_ACCEPTED, batch);
	work->stamp = stamp(batch);
	trace_fairwq_queue(batch, work);
	/*
	 * Full barrier between the push and the loads. Pairs with those in
	 * batch_idle_locked() and cancel_unlinked_locked().
	 * After it @work may be gone. Models: tests/models/queue.pml, cancel.pml.
	 */
	first = llist_add(&work->llnode, &batch->incoming);
	if (first)
		fairwq_test_point(FAIRWQ_POINT_QUEUE_PUSHED, batch);
	/*
	 * If @work was dropped, who may free it now does so after that. Pairs with
	 * drop_canceled_locked(). Model: tests/models/cancel.pml.
	 */
	canceled = fairwq_load_acquire(&batch->nr_canceled);
	if ((first && !READ_ONCE(batch->watched)) || unlikely(canceled))
		attend(batch);
}

/*
 * If it was not disposed yet, the grace period after that is still to come, and
 * batch_reap_fn() then sees the count when it closes the batch. The end of
 * a pool may do without a grace period, but has seen the count before: pool->quiet.
 */
void fairwq_unhold(struct fairwq_batch *batch)
{
	struct fairwq_pool *pool = batch->pool;
	unsigned long flags;

	rcu_read_lock();
	if (atomic_dec_and_test(&batch->nr_held) && fairwq_batch_is_disposed(batch)) {
		raw_spin_lock_irqsave(&pool->lock, flags);
		fairwq_batch_reap_locked(batch);
		raw_spin_unlock_irqrestore(&pool->lock, flags);
	}
	rcu_read_unlock();
}
