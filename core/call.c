// SPDX-License-Identifier: GPL-2.0
/*
 * Around the function of an item: what the workqueue core does around the
 * function of a work, done again per item, since the core sees only runners.
 *
 * A lock, RCU section, preempt count, disabled interrupts or credentials that
 * an item leaves behind are reported with the item's function, and all but the
 * lock put right.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cred.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "call.h"

/* By who runs items, before the first: what one leaves as it was is so for the next. */
void fairwq_footing_take(struct fairwq_footing *footing)
{
	footing->self = current;
	footing->preempt = preempt_count();
	footing->locks = lockdep_depth(footing->self);
	footing->rcu = rcu_preempt_depth();
	footing->cred = fairwq_cred_of(footing->self);
}

static void footing_report(const struct fairwq_footing *before,
			   fairwq_func_t func, const struct fairwq_batch *batch)
{
	pr_err("BUG: item leaked atomic, lock, RCU, irqs or creds: %ps of batch %s/%s\n"
	       "     preempt=%d->%d lock=%d->%d RCU=%d->%d irqs %s creds %s\n",
	       func, batch->pool->name, batch->name,
	       before->preempt, preempt_count(), before->locks,
	       lockdep_depth(current), before->rcu, rcu_preempt_depth(),
	       irqs_disabled() ? "off" : "on",
	       current_cred() == before->cred ? "kept" : "changed");
	debug_show_held_locks(current);
	dump_stack();
}

/* The next item must not pay for this one. A lock stays lost to its owner. */
static void footing_repair(const struct fairwq_footing *before)
{
	if (irqs_disabled())
		local_irq_enable();
	while (rcu_preempt_depth() > before->rcu) {
		__acquire(RCU);		/* by the item, unseen by sparse */
		rcu_read_unlock();
	}
	if (preempt_count() != before->preempt)
		preempt_count_set(before->preempt);
	if (current_cred() != before->cred)
		revert_creds(before->cred);
}

/* An item has left something behind. */
void fairwq_leak(struct fairwq_footing *before, fairwq_func_t func, struct fairwq_batch *batch)
{
	struct fairwq_pool *pool = batch->pool;
	unsigned long flags;

	footing_report(before, func, batch);
	footing_repair(before);
	fairwq_footing_take(before);
	raw_spin_lock_irqsave(&pool->lock, flags);
	pool->counter[FAIRWQ_LEAKS]++;
	raw_spin_unlock_irqrestore(&pool->lock, flags);
}
