/* SPDX-License-Identifier: GPL-2.0 */
/* Inbox: how a batch accepts a work, and where it keeps the work until the FIFO has it. */
#ifndef FAIRWQ_INBOX_H
#define FAIRWQ_INBOX_H

#include <linux/hash.h>
#include <linux/jiffies.h>

#include "testing.h"
#include "trace.h"
#include "types.h"

/* One queue call in 1 << FAIRWQ_WAIT_SAMPLE_BITS is measured. */
#define FAIRWQ_WAIT_SAMPLE_BITS	4

int fairwq_refusal_of(struct fairwq_batch *batch);
int fairwq_claim_taken(struct fairwq_work *work, long word);
bool fairwq_unclaim(struct fairwq_work *work);
extern raw_spinlock_t fairwq_disable_lock;
void fairwq_inbox_trace(const struct fairwq_batch *batch, const struct fairwq_work *work);
bool fairwq_inbox_arrive_locked(struct fairwq_batch *batch, struct fairwq_work *work, bool held);
bool fairwq_inbox_delay_locked(struct fairwq_batch *batch, struct fairwq_delayed_work *dwork,
			       unsigned long delay);
void fairwq_inbox_forget_locked(struct fairwq_batch *batch);

/*
 * Return how many works wait for their turn in @batch. Without the locks the
 * answer may be old, or too large by those that begin during the call.
 */
static inline unsigned int fairwq_inbox_nr_queued(const struct fairwq_batch *batch)
{
	unsigned int out = READ_ONCE(batch->nr_out);

	/*
	 * Load @nr_out, then @nr_in, so that the first is not larger. A work is
	 * counted in @nr_in under inbox->lock before it can be counted in
	 * @nr_out, so the hand-over of that lock pairs with this; or @nr_out is
	 * lowered before it is raised for the work. No model.
	 */
	smp_rmb();
	return READ_ONCE(batch->inbox.nr_in) - out;
}

/* Return how many works @batch has accepted that have not begun; of a run, the HELD ones. */
static inline unsigned int fairwq_inbox_nr(struct fairwq_batch *batch)
{
	/* Under the lock: a work that is let go is not counted twice, nor missed. */
	guard(raw_spinlock_irqsave)(&batch->inbox.lock);
	return batch->inbox.nr_held + fairwq_inbox_nr_queued(batch);
}

/*
 * Check whether @work is pending, for a queue call that will return 0 then. A
 * disabled work does not count as pending, because the queue call that claimed
 * it may still give it up.
 */
static inline bool fairwq_is_pending(const struct fairwq_work *work)
{
	bool claimed;

	/*
	 * The caller's stores, then the load of the word. Pairs with
	 * fairwq_start_item(). Model: tests/models/pending.pml.
	 */
	smp_mb();
	if (READ_ONCE(work->disabled))
		return false;
	/*
	 * Then the word, because a call that enables the work comes after the
	 * one that gave it up; then @disabled, because that claim may be
	 * younger than a disable. Pairs with fairwq_unclaim(). No model.
	 */
	smp_rmb();
	claimed = atomic_long_read(&work->data);
	smp_rmb();			/* as above */
	return claimed && !READ_ONCE(work->disabled);
}

/* Return 0 for a work that is pending, else @ret. */
static inline int fairwq_unless_pending(const struct fairwq_work *work, int ret)
{
	return fairwq_is_pending(work) ? 0 : ret;
}

/* Check whether @batch still takes items from the caller. Return: 0, or -ESHUTDOWN. */
static inline int fairwq_refusal(struct fairwq_batch *batch)
{
	if (unlikely(fairwq_batch_is_disposed(batch) || READ_ONCE(batch->pool->draining)))
		return fairwq_refusal_of(batch);
	return 0;
}

/* As fairwq_refusal(), and check whether there is room. Return: also -EAGAIN. */
static inline int fairwq_refusal_locked(struct fairwq_batch *batch)
{
	int ret = fairwq_refusal(batch);

	lockdep_assert_held(&batch->inbox.lock);

	if (unlikely(ret) || likely(!batch->max_queued))
		return ret;
	return batch->inbox.nr_held + fairwq_inbox_nr_queued(batch) < batch->max_queued ?
	       0 : -EAGAIN;
}

/*
 * Claim @work: change its word from 0 to @state in @batch. The caller puts it
 * where that says, before it drops the lock of that place, or lets interrupts
 * come if it is GRACE or TAKEN.
 *
 * Full barrier, also where the call returns 0: the run to come sees the
 * caller's stores before the call. Pairs with the one in fairwq_start_item().
 * Model: tests/models/pending.pml.
 *
 * Return: 1; 0 if it was pending; -ECANCELED if it is disabled.
 */
static __always_inline int fairwq_claim(struct fairwq_batch *batch, struct fairwq_work *work,
					enum fairwq_state state)
{
	long free = 0, word = fairwq_word(batch, state);
	int ret;

	if (unlikely(!atomic_long_try_cmpxchg(&work->data, &free, word))) {
		ret = fairwq_claim_taken(work, word);
		if (ret <= 0)
			return ret;
	}
	fairwq_test_point(FAIRWQ_POINT_QUEUE_CLAIMED, batch);
	/*
	 * Set the word, then load @disabled. Pairs with disable_item(). Model:
	 * tests/models/disable.pml.
	 */
	if (unlikely(READ_ONCE(work->disabled)) && fairwq_unclaim(work))
		return -ECANCELED;
	work->flags &= FAIRWQ_WORK_OWN;
	return 1;
}

/*
 * Accept @work and claim it, as fairwq_claim(). Unless @state is QUEUED, the
 * batch holds it.
 *
 * Return: also -ESHUTDOWN or -EAGAIN, if @batch does not take it or is full.
 */
static __always_inline int fairwq_claim_locked(struct fairwq_batch *batch,
					       struct fairwq_work *work, enum fairwq_state state)
{
	int ret = fairwq_refusal_locked(batch);

	if (unlikely(ret))
		return fairwq_unless_pending(work, ret);
	ret = fairwq_claim(batch, work, state);
	if (ret > 0 && state != FAIRWQ_STATE_QUEUED)
		WRITE_ONCE(batch->inbox.nr_held, batch->inbox.nr_held + 1);
	return ret;
}

/*
 * Note when @work was queued. Reading the clock costs as much as the rest of
 * the call, so only some calls read it: in each tick those for another
 * sixteenth of the works. While there are histograms, each call into an empty
 * inbox is measured; without the lock that is a guess. The trace is out of
 * line, so that this needs few registers.
 */
static __always_inline void fairwq_inbox_stamp(const struct fairwq_batch *batch,
					       struct fairwq_work *work)
{
	unsigned long tick = jiffies;

	if (likely(hash_32((u32)(unsigned long)work + (u32)tick, FAIRWQ_WAIT_SAMPLE_BITS) &&
		   !trace_fairwq_start_enabled() &&
		   !(READ_ONCE(batch->pool->histograms) && list_empty(&batch->inbox.works))))
		work->stamp = FAIRWQ_STAMP_TICK(tick);
	else
		work->stamp = FAIRWQ_STAMP_NS(fairwq_clock());
	if (trace_fairwq_queue_enabled())
		fairwq_inbox_trace(batch, work);
}

/*
 * Link a work that is QUEUED. When the lock is dropped, the work may be gone.
 *
 * Return: whether the caller must call fairwq_activate() for @batch after that.
 */
static __always_inline bool fairwq_inbox_link_locked(struct fairwq_batch *batch,
						     struct fairwq_work *work)
{
	struct fairwq_inbox *inbox = &batch->inbox;

	lockdep_assert_held(&inbox->lock);

	fairwq_inbox_stamp(batch, work);
	list_add_tail(&work->node, &inbox->works);
	WRITE_ONCE(inbox->nr_in, inbox->nr_in + 1);
	if (likely(inbox->watched))
		return false;
	WRITE_ONCE(inbox->watched, true);
	return true;
}

#endif /* FAIRWQ_INBOX_H */
