/* SPDX-License-Identifier: GPL-2.0 */
/* Push: what a queue call does. Reserve room, claim the work, push it. */
#ifndef FAIRWQ_PUSH_H
#define FAIRWQ_PUSH_H

#include "types.h"
#include "testing.h"

int fairwq_refusal_of(struct fairwq_batch *batch);
int fairwq_claim_taken(struct fairwq_work *work, long word);
int fairwq_push(struct fairwq_batch *batch, struct fairwq_work *work);
void fairwq_push_claimed(struct fairwq_batch *batch, struct fairwq_work *work);
int fairwq_reserve_room(struct fairwq_batch *batch, const struct fairwq_work *work);
void fairwq_unreserve(struct fairwq_batch *batch);
void fairwq_unpin(struct fairwq_batch *batch);
void fairwq_push_held(struct fairwq_work *work);

/*
 * Check whether the batch takes an item. Under rcu_read_lock().
 *
 * Return: 0 if it does, else -ESHUTDOWN.
 */
static inline int fairwq_refusal(struct fairwq_batch *batch)
{
	if (likely(!fairwq_batch_is_disposed(batch) && !READ_ONCE(batch->pool->draining)))
		return 0;
	return fairwq_refusal_of(batch);
}

/*
 * Return 0 for a work that is pending, else @ret. A disabled work does not
 * count as pending, because the queue call that claimed it may still give it up.
 */
static inline int fairwq_unless_pending(const struct fairwq_work *work, int ret)
{
	/*
	 * The caller's stores, then the load of the word, as in
	 * fairwq_claim_taken(), because the call may return 0. Pairs with
	 * fairwq_start_item(). Model: tests/models/pending.pml.
	 */
	smp_mb();
	if (!atomic_long_read(&work->data) || READ_ONCE(work->disabled))
		return ret;
	return 0;
}

/*
 * Claim @work: change its word from 0 to @word, in which PENDING is set. Under
 * rcu_read_lock(). Interrupts are off, and stay off until the word says where the work
 * is, unless @word says that it waits for a grace period.
 *
 * Full barrier, also where the call returns 0: the run to come sees the
 * caller's stores before the call. Pairs with the one in fairwq_start_item().
 * Model: tests/models/pending.pml.
 *
 * Return:
 * 1               the work is the caller's, which must push it
 * 0               it was pending
 * -ECANCELED      it is disabled
 */
static inline int fairwq_claim_as(struct fairwq_batch *batch, struct fairwq_work *work,
				  long word)
{
	long free = 0;
	int ret;

	if (unlikely(!atomic_long_try_cmpxchg(&work->data, &free, word))) {
		ret = fairwq_claim_taken(work, word);
		if (ret <= 0)
			return ret;
	}
	fairwq_test_point(FAIRWQ_POINT_QUEUE_CLAIMED, batch);
	/*
	 * Set PENDING, then load @disabled. Pairs with disable_item(). Model:
	 * tests/models/disable.pml.
	 */
	if (likely(!READ_ONCE(work->disabled)))
		return 1;
	/*
	 * A CPU that finds the word free sees all stores to the work before that. Pairs
	 * with the cmpxchg() of the next queue call. Model: tests/models/disable.pml.
	 */
	atomic_long_set_release(&work->data, 0);
	return -ECANCELED;
}

/*
 * Check whether the batch takes an item, and reserve room for it. A pending work
 * needs none, and takes none from others meanwhile. Under rcu_read_lock().
 *
 * Return: 1 if there is room; else what the queue call must return: 0 if the
 * work is pending, -ESHUTDOWN, or -EAGAIN.
 */
static inline int fairwq_reserve(struct fairwq_batch *batch, const struct fairwq_work *work)
{
	int refusal = fairwq_refusal(batch);

	if (unlikely(refusal))
		return fairwq_unless_pending(work, refusal);
	return likely(!batch->max_queued) ? 1 : fairwq_reserve_room(batch, work);
}

/*
 * Pin @batch for a work that will be pushed later, or for a cancel, so that it
 * does not drain. The later push must not be refused. Under rcu_read_lock(), in
 * the section that saw that the batch takes items; or under the lock, while the
 * batch is not idle.
 *
 * A count, which orders nothing; see fairwq_unpin().
 */
static inline void fairwq_pin(struct fairwq_batch *batch)
{
	atomic_inc(&batch->nr_pins);
}

#endif /* FAIRWQ_PUSH_H */
