/* SPDX-License-Identifier: GPL-2.0 */
/* State of a work: where it is, for which batch it is bound, and whose it is. */
#ifndef FAIRWQ_STATE_H
#define FAIRWQ_STATE_H

#include <linux/bits.h>
#include <linux/completion.h>

#include "fairwq.h"

/*
 * The state of a work. fairwq_work.data is 0, or one of these and the batch
 * that the work is bound for, which is aligned to more than STATE_MASK.
 *
 * State    Where the work is       What changes the state: lock     A cancel
 * -------- ----------------------  -------------------------------  -------------------
 * idle     nowhere                 a queue call claims the work     returns false
 * queued   inbox->works, then      its turn, under pool->lock       takes it out
 *          batch->fifo; or that
 * parked   runner->parked          its last run ends: pool->lock    takes it out
 * listed   waits in a serializer   lock of the serializer           takes it out
 * delayed  inbox->delayed, its     the timer, or who deletes that,  deletes the timer; tries
 *          timer is set            under inbox->lock                again if it is gone
 * grace    RCU has it              RCU, under inbox->lock           returns false, or waits
 * taken    a call, or the end of   that one, with interrupts off    tries again
 *          an item, moves it
 * running  runner->current_work;   as idle: it may be queued again  returns false, or waits
 *          the word is 0
 *
 * A work that is not in GRACE or TAKEN enters its state, and leaves it, under
 * the lock in the third column, or under the inbox->lock of its batch. A cancel
 * has that lock. So it finds the work, or the work is in another state.
 *
 * A claim of a work that is disabled is taken back in the same section, unless
 * another call has enabled it by then. TAKEN names the batch to which the work
 * moves. A work that waits for its timer or a grace period is bound for a
 * batch, never for a serializer.
 *
 * "Or waits" is fairwq_work_cancel_sync(); fairwq_work_cancel() does not wait.
 * "Tries again" is soon over, because the other CPU has interrupts off.
 */
enum fairwq_state {
	FAIRWQ_STATE_IDLE,		/* or running */
	FAIRWQ_STATE_QUEUED,
	FAIRWQ_STATE_PARKED,
	FAIRWQ_STATE_LISTED,
	FAIRWQ_STATE_DELAYED,
	FAIRWQ_STATE_GRACE,
	FAIRWQ_STATE_TAKEN,
};

#define FAIRWQ_STATE_MASK	7UL

/*
 * fairwq_work.flags. The owner of the work sets them; P once it is queued, and
 * under the lock of the serializer while it is LISTED.
 */
#define FAIRWQ_WORK_BARRIER	BIT(0)	/* not a work: a barrier or a marker */
#define FAIRWQ_WORK_PARKED	BIT(1)	/* was parked, and has not begun since: in nr_parked */
#define FAIRWQ_WORK_COLOR	BIT(2)	/* color of a work that is PARKED or FORK: in flight */
#define FAIRWQ_WORK_FORK	BIT(3)	/* of a promoted task */
#define FAIRWQ_WORK_OWN		BIT(4)	/* in a struct fairwq_own_work; never cleared */
#define FAIRWQ_WORK_HELD	BIT(5)	/* LISTED or moved, and in nr_held of its batch */

/* Return the word of a work that is bound for @batch, and in @state. */
static inline long fairwq_word(const struct fairwq_batch *batch, enum fairwq_state state)
{
	return (long)batch | state;
}

/* Return the state of a work with @word. */
static inline enum fairwq_state fairwq_word_state(long word)
{
	return word & FAIRWQ_STATE_MASK;
}

/* Return the batch that a work with @word is bound for. */
static inline struct fairwq_batch *fairwq_word_batch(long word)
{
	return (struct fairwq_batch *)(word & ~FAIRWQ_STATE_MASK);
}

/* Return the batch that a pending work is bound for. */
static inline struct fairwq_batch *fairwq_work_batch(const struct fairwq_work *work)
{
	return fairwq_word_batch(atomic_long_read(&work->data));
}

/*
 * The stamp of a work says when it was queued: 2 * ns + 1, of the clock, where
 * the queue call was measured; or else 2 * jiffies. 0: no client has queued it.
 */
#define FAIRWQ_STAMP_NS(ns)	((u64)(ns) << 1 | 1)
#define FAIRWQ_STAMP_TICK(tick)	((u64)(tick) << 1)

/* Return the time of queueing, ns, if that was measured; or 0. */
static inline u64 fairwq_stamp_ns(u64 stamp)
{
	return stamp & 1 ? stamp >> 1 : 0;
}

/* Check whether @work is a part of an item in flight, which no client has queued. */
static inline bool fairwq_is_of_item(const struct fairwq_work *work)
{
	return work->flags & FAIRWQ_WORK_FORK;
}

/* Check whether a client has queued @work. */
static inline bool fairwq_is_of_client(const struct fairwq_work *work)
{
	return !(work->flags & (FAIRWQ_WORK_FORK | FAIRWQ_WORK_OWN));
}

/*
 * The function of each work in a sequencer; NULL: none was set up. What the
 * client has named is in the work. See sequencer.c.
 */
extern fairwq_func_t fairwq_sequenced_func;

/*
 * A work that no client has queued: of a call that waits for it, and has it on
 * its stack. It is WORK_OWN, so it never reaches a client's callback, and no
 * cancel counts it; or it is the barrier or the marker of a flush.
 */
struct fairwq_own_work {
	struct fairwq_work work;
	struct completion done;		/* it has run, or was taken out; or the flush is over */
	int ret;			/* until then the caller's; 0 or -ECANCELED */
};

/* Return the function that tables and traces show for @work, which waits or begins. */
static inline fairwq_func_t fairwq_shown_func(const struct fairwq_work *work)
{
	if (unlikely(work->flags & FAIRWQ_WORK_FORK))
		return (fairwq_func_t)(void *)container_of(work, struct fairwq_task, work)->func;
	if (unlikely(work->func == READ_ONCE(fairwq_sequenced_func)))
		return container_of(work, struct fairwq_sequenced_work, work)->func;
	return work->func;
}

#endif /* FAIRWQ_STATE_H */
