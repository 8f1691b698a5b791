// SPDX-License-Identifier: GPL-2.0
/*
 * Calls: what surrounds the function of an item. The workqueue core does the
 * same around the function of a work, but it sees only runners.
 *
 *   fairwq_call_begin()     by a runner, before its first item
 *   fairwq_call(), call.h     lockdep's maps, the function, then the check
 *   fairwq_call_leaked()             if the check fails: report, repair, take again
 *
 *   An item leaves behind         Then
 *   disabled interrupts           reported, and put right
 *   an RCU read-side section      reported, and put right
 *   another preempt count         reported, and put right
 *   other credentials             reported, and put right
 *   a lock                        reported; it stays lost
 *
 * Locking: none, but pool->lock for the count.
 *
 * Limits: a lock is seen only with CONFIG_LOCKDEP, disabled preemption only
 * with CONFIG_PREEMPT_COUNT, an RCU section only with that or
 * CONFIG_PREEMPT_RCU.
 */
#include <linux/cred.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "call.h"

/* Note the state that each item must leave. A runner calls this before its first item. */
void fairwq_call_begin(struct fairwq_call_state *state)
{
	state->self = current;
	state->preempt = preempt_count();
	state->locks = lockdep_depth(state->self);
	state->rcu = rcu_preempt_depth();
	state->cred = fairwq_cred_of(state->self);
}

/*
 * Report what an item has left behind. Put all but a lock right, so that the
 * next item does not pay for this one.
 */
void fairwq_call_leaked(struct fairwq_call_state *before, fairwq_func_t func,
			struct fairwq_batch *batch)
{
	struct fairwq_pool *pool = batch->pool;

	pr_err("fairwq: BUG: item leaked atomic, lock, RCU, irqs or creds: %ps of batch %s/%s\n"
	       "     preempt=%d->%d lock=%d->%d RCU=%d->%d irqs %s creds %s\n",
	       func, pool->name, batch->name,
	       before->preempt, preempt_count(), before->locks,
	       lockdep_depth(current), before->rcu, rcu_preempt_depth(),
	       irqs_disabled() ? "off" : "on",
	       current_cred() == before->cred ? "kept" : "changed");
	debug_show_held_locks(current);
	dump_stack();
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
	fairwq_call_begin(before);
	guard(raw_spinlock_irqsave)(&pool->lock);
	pool->tally.counter[FAIRWQ_LEAKS]++;
}
