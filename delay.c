// SPDX-License-Identifier: GPL-2.0
/*
 * Delayed and RCU works: works that are queued after a delay or a grace period.
 *
 *   call                    state    timer or RCU        ends in
 *   fairwq_queue_delayed()  DELAYED  add_timer()         delay_fn(): fairwq_arrive()
 *   fairwq_queue_rcu()      GRACE    queue_rcu_work()    fairwq_arrive()
 *
 * Locking: inbox->lock.
 * Invariant: such a work is pending from the call on, and its batch holds it
 * until it is queued. So a batch that is disposed waits for it to run: see
 * batch.c.
 *
 * The cancels are in work.c.
 */
#include <linux/export.h>
#include <linux/rcupdate.h>
#include <linux/timer.h>

#include "core/compat.h"
#include "core/fifo.h"
#include "core/push.h"
#include "core/waitlist.h"
#include "doors.h"

/* ---- a delay ---------------------------------------------------------- */

/* Queue the work when its timer fires. */
static void delay_fn(struct timer_list *timer)
{
	fairwq_arrive(&container_of(timer, struct fairwq_delayed_work, timer)->work);
}

/* Set up a delayed work; fairwq_delayed_work_init() has the description. */
void __fairwq_delayed_work_init(struct fairwq_delayed_work *dwork, fairwq_func_t func,
				unsigned int kind, const char *name,
				struct lock_class_key *key)
{
	unsigned int flags = TIMER_IRQSAFE | (kind & TIMER_DEFERRABLE);

	if (WARN_ON_ONCE(!dwork))
		return;
	__fairwq_work_init(&dwork->work, func, name, key);
	if (kind & FAIRWQ_DELAY_ONSTACK)
		timer_setup_on_stack(&dwork->timer, delay_fn, flags);
	else
		timer_setup(&dwork->timer, delay_fn, flags);
}
EXPORT_SYMBOL_GPL(__fairwq_delayed_work_init);

void fairwq_delayed_work_destroy_onstack(struct fairwq_delayed_work *dwork)
{
	if (!WARN_ON_ONCE(!dwork))
		timer_destroy_on_stack(&dwork->timer);
}
EXPORT_SYMBOL_GPL(fairwq_delayed_work_destroy_onstack);

int fairwq_queue_delayed(struct fairwq_batch *batch, struct fairwq_delayed_work *dwork,
			 unsigned long delay)
{
	bool first = false;
	int ret;

	if (fairwq_is_bad_queue(batch, dwork && dwork->work.func, "dwork"))
		return -EINVAL;
	guard(irqsave)();		/* see core/push.c */
	scoped_guard(raw_spinlock, &batch->inbox.lock) {
		ret = fairwq_claim_locked(batch, &dwork->work, FAIRWQ_STATE_DELAYED);
		if (ret > 0)
			first = fairwq_inbox_delay_locked(batch, dwork, delay);
	}
	if (first)
		fairwq_activate(batch);
	return ret;
}
EXPORT_SYMBOL_GPL(fairwq_queue_delayed);

/* ---- a new delay ------------------------------------------------------ */

/*
 * Have @batch hold a work that may be pending elsewhere, so that it cannot
 * refuse the work later. A work that is pending in @batch has room there.
 * Return: 0, or a negative error.
 */
static int reserve(struct fairwq_batch *batch, const struct fairwq_work *work)
{
	int ret;

	guard(raw_spinlock_irqsave)(&batch->inbox.lock);
	ret = fairwq_refusal_locked(batch);
	if (ret == -EAGAIN && fairwq_work_batch(work) == batch)
		ret = 0;
	if (!ret && READ_ONCE(work->disabled))
		ret = -ECANCELED;
	if (!ret)
		WRITE_ONCE(batch->inbox.nr_held, batch->inbox.nr_held + 1);
	return ret;
}

/*
 * Move a work to @batch, which holds it. The work is pending all the time, or
 * from the claim on, so no other call can queue it meanwhile.
 * Return: 1 if it was pending; 0 if it was idle; -ECANCELED; or FAIRWQ_AGAIN.
 */
static int move(struct fairwq_batch *batch, struct fairwq_delayed_work *dwork,
		unsigned long delay)
{
	int ret, claimed;
	bool first;

	guard(irqsave)();		/* while it is TAKEN, and see core/push.c */
	ret = fairwq_try_find(&dwork->work, fairwq_word(batch, FAIRWQ_STATE_TAKEN), NULL);
	if (ret < 0)
		return ret;
	if (!ret) {
		claimed = fairwq_claim(batch, &dwork->work, FAIRWQ_STATE_TAKEN);
		if (claimed <= 0)
			return claimed ?: FAIRWQ_AGAIN;
	}
	fairwq_test_point(FAIRWQ_POINT_MOVING, batch);
	scoped_guard(raw_spinlock, &batch->inbox.lock)
		first = fairwq_inbox_delay_locked(batch, dwork, delay);
	if (first)
		fairwq_activate(batch);
	return ret;
}

int fairwq_mod_delayed(struct fairwq_batch *batch, struct fairwq_delayed_work *dwork,
		       unsigned long delay)
{
	int ret;

	if (fairwq_is_bad_queue(batch, dwork && dwork->work.func, "dwork"))
		return -EINVAL;
	guard(rcu)();		/* keeps @batch, see core/push.c */
	ret = reserve(batch, &dwork->work);
	if (ret)
		return ret;
	while ((ret = move(batch, dwork, delay)) == FAIRWQ_AGAIN)
		cpu_relax();
	if (ret < 0) {
		scoped_guard(raw_spinlock_irqsave, &batch->inbox.lock)
			fairwq_inbox_forget_locked(batch);
		fairwq_reap(batch);
	}
	return ret;
}
EXPORT_SYMBOL_GPL(fairwq_mod_delayed);

bool fairwq_delayed_work_flush(struct fairwq_delayed_work *dwork)
{
	bool ended;

	if (WARN_ON_ONCE(!dwork))
		return false;
	might_sleep();
	scoped_guard(irqsave) {		/* as in the function of the timer */
		ended = timer_delete(&dwork->timer);
		if (ended)
			fairwq_arrive(&dwork->work);
	}
	return fairwq_work_flush(&dwork->work) || ended;
}
EXPORT_SYMBOL_GPL(fairwq_delayed_work_flush);

/* ---- a grace period --------------------------------------------------- */

static void grace_fn(struct work_struct *work)
{
	struct fairwq_rcu_work *rwork = container_of(to_rcu_work(work),
						     struct fairwq_rcu_work, later);

	fairwq_arrive(&rwork->work);
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

	if (fairwq_is_bad_queue(batch, rwork && rwork->work.func, "rwork"))
		return -EINVAL;
	guard(irqsave)();		/* until a cancel can wait for the grace period */
	scoped_guard(raw_spinlock, &batch->inbox.lock)
		ret = fairwq_claim_locked(batch, &rwork->work, FAIRWQ_STATE_GRACE);
	if (ret > 0)
		queue_rcu_work(fairwq_reap_wq, &rwork->later);
	return ret;
}
EXPORT_SYMBOL_GPL(fairwq_queue_rcu);
