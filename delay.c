// SPDX-License-Identifier: GPL-2.0
/*
 * Delayed and RCU works: works that are queued after a delay or a grace period.
 *
 *   fairwq_queue_delayed()  claims DELAYED  sets a timer      core/delays.c pushes
 *   fairwq_queue_rcu()      claims GRACE    queue_rcu_work()  grace_fn() pushes
 *
 * Locking: RCU from the test for refusal to the hold. Interrupts are off while
 * a call sets or deletes the timer, and while the timer fires. Meanwhile the
 * work's word says DELAYED and the timer may be set or not. Only a cancel on
 * another CPU can find this. It may wait, because this is soon over.
 * Invariant: such a work is pending from the call on, and holds its batch until
 * it is pushed. So a batch that is disposed waits for it to run: see batch.c.
 *
 * The cancels are in work.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/rcupdate.h>
#include <linux/timer.h>

#include "core/compat.h"
#include "core/delays.h"
#include "core/fifo.h"
#include "core/push.h"
#include "doors.h"

/* ---- claiming for later ----------------------------------------------- */

/* Claim the work and pin the batch, under rcu_read_lock(). Return: as fairwq_queue(). */
static int claim_and_pin(struct fairwq_batch *batch, struct fairwq_work *work, long word)
{
	int ret = fairwq_reserve(batch, work);

	if (ret <= 0)
		return ret;
	ret = fairwq_claim_as(batch, work, word);
	if (ret <= 0)
		fairwq_unreserve(batch);
	else
		fairwq_pin(batch);
	return ret;
}

/* ---- a delay ---------------------------------------------------------- */

/* Set up a delayed work; fairwq_delayed_work_init() has the description. */
void __fairwq_delayed_work_init(struct fairwq_delayed_work *dwork, fairwq_func_t func,
				unsigned int kind, const char *name,
				struct lock_class_key *key)
{
	unsigned int flags = TIMER_IRQSAFE;

	if (WARN_ON_ONCE(!dwork))
		return;
	if (kind & FAIRWQ_DELAY_DEFERRABLE)
		flags |= TIMER_DEFERRABLE;
	__fairwq_work_init(&dwork->work, func, name, key);
	if (kind & FAIRWQ_DELAY_ONSTACK)
		timer_setup_on_stack(&dwork->timer, fairwq_delays_timer_fn, flags);
	else
		timer_setup(&dwork->timer, fairwq_delays_timer_fn, flags);
}
EXPORT_SYMBOL_GPL(__fairwq_delayed_work_init);

void fairwq_delayed_work_destroy_onstack(struct fairwq_delayed_work *dwork)
{
	if (!WARN_ON_ONCE(!dwork))
		timer_destroy_on_stack(&dwork->timer);
}
EXPORT_SYMBOL_GPL(fairwq_delayed_work_destroy_onstack);

/* Return the word of a work that is claimed for @batch, to wait for @delay there. */
static long delayed_word(const struct fairwq_batch *batch, unsigned long delay)
{
	return (long)batch | FAIRWQ_WORK_PENDING | (delay ? FAIRWQ_WORK_DELAYED : 0);
}

/* Set the timer of a work that is claimed, or push it. Interrupts are off since the claim. */
static void begin_delay(struct fairwq_batch *batch, struct fairwq_delayed_work *dwork,
			unsigned long delay)
{
	if (delay)
		fairwq_delay_begin(batch, dwork, delay);
	else
		fairwq_push_held(&dwork->work);
}

/* Queue a work after @delay, under rcu_read_lock(). Return: as fairwq_queue(). */
static int queue_after(struct fairwq_batch *batch, struct fairwq_delayed_work *dwork,
		       unsigned long delay)
{
	int ret;

	guard(irqsave)();	/* see take_delayed() in work.c */
	ret = claim_and_pin(batch, &dwork->work, delayed_word(batch, delay));
	if (ret > 0)
		begin_delay(batch, dwork, delay);
	return ret;
}

int fairwq_queue_delayed(struct fairwq_batch *batch, struct fairwq_delayed_work *dwork,
			 unsigned long delay)
{
	if (fairwq_is_no_pointer(batch))
		return fairwq_bad_arg("batch is NULL or an error");
	if (!dwork || !dwork->work.func)
		return fairwq_bad_arg("dwork is NULL or has no function");
	if (!delay)
		return fairwq_queue(batch, &dwork->work);
	guard(rcu)();		/* pairs as in fairwq_queue() */
	return queue_after(batch, dwork, delay);
}
EXPORT_SYMBOL_GPL(fairwq_queue_delayed);

/* ---- a new delay ------------------------------------------------------ */

/* Check whether a work is pending and bound for @batch, where it has room then. A hint. */
static bool has_room(const struct fairwq_batch *batch, const struct fairwq_work *work)
{
	long data = atomic_long_read(&work->data);

	if (!fairwq_word_pending(data))
		return false;
	return batch == (fairwq_work_is_kept_back(data) ? fairwq_kept_batch(work) :
							  fairwq_work_batch(data));
}

/*
 * Check whether the work can be queued to @batch, before it is taken out of where
 * it is. Return: 0, or a negative error.
 */
static int mod_refusal(struct fairwq_batch *batch, const struct fairwq_work *work)
{
	int ret = fairwq_refusal(batch);

	if (ret)
		return ret;
	if (batch->max_queued && atomic_read(&batch->nr_queued) >= batch->max_queued &&
	    !has_room(batch, work))
		return -EAGAIN;
	return READ_ONCE(work->disabled) ? -ECANCELED : 0;
}

/*
 * Move a pending work to @batch, which takes it also if it is full now. The work is pending
 * all the time, so no other call can queue it meanwhile. Return: as fairwq_try_take().
 */
static int move_pending(struct fairwq_batch *batch, struct fairwq_delayed_work *dwork,
			unsigned long delay)
{
	int ret;

	guard(irqsave)();	/* see take_delayed() in work.c */
	ret = fairwq_try_take(&dwork->work, delayed_word(batch, delay), false);
	if (ret <= 0)
		return ret;
	if (batch->max_queued)
		atomic_inc(&batch->nr_queued);
	fairwq_pin(batch);
	begin_delay(batch, dwork, delay);
	return ret;
}

/* Check whether a work waits in a client's own constraint, which alone lets it go. */
static bool is_out_of_reach(const struct fairwq_work *work)
{
	long data = atomic_long_read(&work->data);

	return fairwq_work_is_kept_back(data) && !(data & FAIRWQ_WORK_LINKED);
}

/*
 * The batch is asked before the work is taken out, in one RCU section with the push. So
 * it cannot refuse a work that was taken out for it.
 */
int fairwq_mod_delayed(struct fairwq_batch *batch, struct fairwq_delayed_work *dwork,
		       unsigned long delay)
{
	int ret, moved;

	if (fairwq_is_no_pointer(batch))
		return fairwq_bad_arg("batch is NULL or an error");
	if (!dwork || !dwork->work.func)
		return fairwq_bad_arg("dwork is NULL or has no function");
	guard(rcu)();		/* pairs as in fairwq_queue() */
	ret = mod_refusal(batch, &dwork->work);
	if (ret)
		return ret;
	for (;;) {
		moved = move_pending(batch, dwork, delay);
		if (moved > 0)
			return 1;
		if (!moved) {
			ret = queue_after(batch, dwork, delay);
			if (ret)
				return min(ret, 0);
			/* Another queue call was first. */
			if (is_out_of_reach(&dwork->work))
				return 1;
		}
		cpu_relax();
	}
}
EXPORT_SYMBOL_GPL(fairwq_mod_delayed);

bool fairwq_delayed_work_flush(struct fairwq_delayed_work *dwork)
{
	bool pushed;

	if (WARN_ON_ONCE(!dwork))
		return false;
	might_sleep();
	local_irq_disable();	/* see take_delayed() in work.c */
	pushed = fairwq_delay_stop(dwork);
	if (pushed)
		fairwq_push_held(&dwork->work);
	local_irq_enable();
	return fairwq_work_flush(&dwork->work) || pushed;
}
EXPORT_SYMBOL_GPL(fairwq_delayed_work_flush);

/* ---- a grace period --------------------------------------------------- */

static void grace_fn(struct work_struct *work)
{
	struct fairwq_rcu_work *rwork = container_of(to_rcu_work(work),
						     struct fairwq_rcu_work, later);

	fairwq_push_held(&rwork->work);
}

/* Set up an RCU work; fairwq_rcu_work_init() has the description. */
void __fairwq_rcu_work_init(struct fairwq_rcu_work *rwork, fairwq_func_t func,
			    const char *name, struct lock_class_key *key)
{
	if (WARN_ON_ONCE(!rwork))
		return;
	__fairwq_work_init(&rwork->work, func, name, key);
	INIT_RCU_WORK(&rwork->later, grace_fn);
}
EXPORT_SYMBOL_GPL(__fairwq_rcu_work_init);

int fairwq_queue_rcu(struct fairwq_batch *batch, struct fairwq_rcu_work *rwork)
{
	int ret;

	if (fairwq_is_no_pointer(batch))
		return fairwq_bad_arg("batch is NULL or an error");
	if (!rwork || !rwork->work.func)
		return fairwq_bad_arg("rwork is NULL or has no function");
	guard(rcu)();		/* pairs as in fairwq_queue() */
	ret = claim_and_pin(batch, &rwork->work,
			    (long)batch | FAIRWQ_WORK_PENDING | FAIRWQ_WORK_GRACE);
	/* A cancel on top, here and until the push, returns at once: it sees GRACE. */
	if (ret > 0)
		queue_rcu_work(fairwq_reap_wq, &rwork->later);
	return ret;
}
EXPORT_SYMBOL_GPL(fairwq_queue_rcu);

bool fairwq_rcu_work_flush(struct fairwq_rcu_work *rwork)
{
	bool waited;

	if (WARN_ON_ONCE(!rwork))
		return false;
	might_sleep();
	waited = flush_rcu_work(&rwork->later);
	return fairwq_work_flush(&rwork->work) || waited;
}
EXPORT_SYMBOL_GPL(fairwq_rcu_work_flush);
