/* SPDX-License-Identifier: GPL-2.0 */
/* What a queue call does: claim the work, reserve room, push. */
#ifndef FAIRWQ_PUSH_H
#define FAIRWQ_PUSH_H

#include "types.h"
#include "testing.h"

/* What a queue call returns, and what it does on the way there. */
#define FAIRWQ_QUEUED	1	/* what a queue call returns */
#define FAIRWQ_CLAIMED	2	/* and what it does on the way there */

int fairwq_refusal_of(struct fairwq_batch *batch);
int fairwq_claim_taken(struct fairwq_work *work, long word);
int fairwq_unclaim(struct fairwq_work *work);
int fairwq_claim(struct fairwq_batch *batch, struct fairwq_work *work, long flags);
void fairwq_push_claimed(struct fairwq_batch *batch, struct fairwq_work *work);
int fairwq_reserve(struct fairwq_batch *batch, const struct fairwq_work *work);
void fairwq_unreserve(struct fairwq_batch *batch);
void fairwq_unhold(struct fairwq_batch *batch);

/* 0, or why the batch takes no more items. Under rcu_read_lock(). */
static inline int fairwq_refusal(struct fairwq_batch *batch)
{
	if (likely(!fairwq_batch_is_disposed(batch) && !READ_ONCE(batch->pool->draining)))
		return 0;
	return fairwq_refusal_of(batch);
}

/*
 * Return 0 for a work that is pending, else @ret. Not pending is also a work that is
 * disabled: the queue call that has claimed it may still take it back.
 */
static inline int fairwq_unless_pending(const struct fairwq_work *work, int ret)
{
	/*
	 * The caller's stores, then the word, as in fairwq_claim_taken(): the caller may
	 * be told 0. Pairs with fairwq_start_item(). Model: tests/models/pending.pml.
	 */
	smp_mb();
	if (!fairwq_word_pending(atomic_long_read(&work->data)) || READ_ONCE(work->disabled))
		return ret;
	return 0;
}

/*
 * Make the work pending, with @word, which says so, in it; FAIRWQ_CLAIMED if it
 * was not, and is now the caller's to push. FAIRWQ_QUEUED: it is queued without
 * that. Under rcu_read_lock().
 *
 * Full barrier, also for the caller who is told 0: the stores before the call
 * are seen by the run to come. Pairs with the one in fairwq_start_item().
 * Model: tests/models/pending.pml.
 */
static inline int fairwq_claim_as(struct fairwq_batch *batch, struct fairwq_work *work,
				  long word)
{
	long free = 0;
	int ret;

	if (unlikely(!atomic_long_try_cmpxchg(&work->data, &free, word))) {
		ret = fairwq_claim_taken(work, word);
		if (ret != FAIRWQ_CLAIMED)
			return ret;
	}
	fairwq_test_point(FAIRWQ_POINT_QUEUE_CLAIMED, batch);
	/*
	 * Set PENDING, then load @disabled. Pairs with fairwq_disable(). Model:
	 * tests/models/disable.pml.
	 */
	if (likely(!READ_ONCE(work->disabled)))
		return FAIRWQ_CLAIMED;
	return fairwq_unclaim(work);
}

/*
 * A work will be pushed to the batch later: until then it is not drained. The
 * work was accepted now, so it is not refused then. Under rcu_read_lock(), in
 * the section that found that it is not refused; or under the lock, while the
 * batch is not idle.
 *
 * A count, which orders nothing; see fairwq_unhold().
 */
static inline void fairwq_hold(struct fairwq_batch *batch)
{
	atomic_inc(&batch->nr_held);
}

#endif /* FAIRWQ_PUSH_H */
