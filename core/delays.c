// SPDX-License-Identifier: GPL-2.0
/*
 * Delays: the works that wait for their timer, so that those of a batch can be found.
 *
 *   fairwq_delay_begin()   sets the timer           lists the work
 *   fairwq_delays_timer_fn()      by the timer             unlists and pushes it
 *   fairwq_delay_stop()    deletes the timer        unlists it, for its caller
 *   fairwq_delays_end()    deletes those of a       unlists and pushes the works
 *                          batch, for a shutdown
 *
 * Locking: a work is listed under one of the locks below, chosen by its batch. Under it
 * the timer may be set or deleted, and no other lock of fairwq is taken. Callers keep
 * interrupts off from there until the word of the work says what it is again, as in delay.c.
 * Invariant: the call that deletes the timer, or the timer if it fires, unlists the
 * work. So a work that is listed exists, and its word names its batch.
 * Limits: fairwq_delays_end() walks all works of the same lock.
 */
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/timer.h>

#include "compat.h"
#include "delays.h"
#include "push.h"

#define DELAY_BITS	7
/* Most works that are pushed with interrupts off. */
#define DELAY_CHUNK	32U

static struct fairwq_delays {
	raw_spinlock_t lock ____cacheline_aligned_in_smp;
	struct hlist_head works;
} fairwq_delays[1 << DELAY_BITS] = {
	[0 ... (1 << DELAY_BITS) - 1] = {
		.lock = __RAW_SPIN_LOCK_UNLOCKED(fairwq_delays.lock),
	},
};

static struct fairwq_delays *delays_of(const struct fairwq_batch *batch)
{
	return &fairwq_delays[hash_ptr(batch, DELAY_BITS)];
}

/* Return the batch of a work that waits for its timer, or was pushed by it. */
static struct fairwq_batch *batch_of(const struct fairwq_work *work)
{
	return fairwq_work_batch(atomic_long_read(&work->data));
}

/* Set the timer of a work that is claimed for @batch. Interrupts are off. */
void fairwq_delay_begin(struct fairwq_batch *batch, struct fairwq_delayed_work *dwork,
			unsigned long delay)
{
	struct fairwq_delays *delays = delays_of(batch);

	guard(raw_spinlock)(&delays->lock);
	hlist_add_head(&dwork->work.later, &delays->works);
	/* A longer one would look as if it was over. */
	dwork->timer.expires = jiffies + min(delay, MAX_JIFFY_OFFSET);
	add_timer(&dwork->timer);
}

static void delay_unlist(struct fairwq_work *work)
{
	guard(raw_spinlock)(&delays_of(batch_of(work))->lock);
	hlist_del(&work->later);
}

/*
 * Delete the timer of a work, which is the caller's then. Interrupts are off. Return:
 * false if it is not set, or fires.
 */
bool fairwq_delay_stop(struct fairwq_delayed_work *dwork)
{
	if (!timer_delete(&dwork->timer))
		return false;
	delay_unlist(&dwork->work);
	return true;
}

/* Push the work when its timer fires, with interrupts off. */
void fairwq_delays_timer_fn(struct timer_list *timer)
{
	struct fairwq_delayed_work *dwork = container_of(timer, struct fairwq_delayed_work, timer);

	delay_unlist(&dwork->work);
	fairwq_push_held(&dwork->work);
}

/*
 * End the delays of all works that wait for their timer in @batch: push the works. A
 * timer that fires meanwhile pushes its work by itself.
 */
void fairwq_delays_end(struct fairwq_batch *batch)
{
	struct fairwq_delays *delays = delays_of(batch);
	struct fairwq_delayed_work *dwork;
	struct hlist_node *next;
	unsigned int nr;

	do {
		HLIST_HEAD(works);

		nr = 0;
		guard(irqsave)();	/* until the works are pushed, see the head */
		raw_spin_lock(&delays->lock);
		hlist_for_each_entry_safe(dwork, next, &delays->works, work.later) {
			if (batch_of(&dwork->work) != batch || !timer_delete(&dwork->timer))
				continue;
			hlist_del(&dwork->work.later);
			hlist_add_head(&dwork->work.later, &works);
			if (++nr == DELAY_CHUNK)
				break;
		}
		raw_spin_unlock(&delays->lock);
		hlist_for_each_entry_safe(dwork, next, &works, work.later)
			fairwq_push_held(&dwork->work);
	} while (nr == DELAY_CHUNK);
}
