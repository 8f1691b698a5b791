// SPDX-License-Identifier: GPL-2.0
/*
 * Queueing: fairwq_queue(), and the start and end of the module.
 *
 *   fairwq_queue()          claims the work, and links it in the inbox of the batch
 *     core/fifo.c           takes over what is in the inbox
 *     core/run.c            a runner takes the turn and calls the function
 *
 * If no runner will look at the inbox, the queue call also takes the pool's
 * lock, puts the batch into the fair tree and kicks a runner.
 *
 * Limits: any context but NMI.
 */
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>

#include "core/fifo.h"
#include "core/push.h"
#include "core/runner.h"
#include "core/stack.h"
#include "doors.h"

/* ---- queueing --------------------------------------------------------- */

int fairwq_queue(struct fairwq_batch *batch, struct fairwq_work *work)
{
	bool first = false;
	unsigned long flags;
	int ret;

	if (fairwq_is_bad_queue(batch, work && work->func, "work"))
		return -EINVAL;
	raw_spin_lock_irqsave(&batch->inbox.lock, flags);
	ret = fairwq_claim_locked(batch, work, FAIRWQ_STATE_QUEUED);
	if (likely(ret > 0))
		first = fairwq_inbox_link_locked(batch, work);
	raw_spin_unlock(&batch->inbox.lock);
	if (first)
		fairwq_activate(batch);
	local_irq_restore(flags);	/* see core/push.c */
	return ret;
}
EXPORT_SYMBOL_GPL(fairwq_queue);

/*
 * Works of the module that are active at once. A thousand batches may leave at
 * once. They must not crowd out the runners, which have the same workers, nor
 * contend for pool->lock; those with a released() may. A sweep of many flows
 * takes a while. RCU works must not wait for that.
 */
#define REAP_ACTIVE	4

/* ---- the module ------------------------------------------------------- */

/*
 * Start before every built-in client. Workqueues are there by then. debugfs is
 * not, because a core_initcall() starts it.
 */
static int __init fairwq_init(void)
{
	fairwq_release_wq = alloc_workqueue("fairwq_release", WQ_UNBOUND | WQ_MEM_RECLAIM,
					    WQ_MAX_ACTIVE);
	if (!fairwq_release_wq)
		return -ENOMEM;
	fairwq_reap_wq = alloc_workqueue("fairwq_reap", WQ_UNBOUND | WQ_MEM_RECLAIM, REAP_ACTIVE);
	if (fairwq_reap_wq && !fairwq_stack_init()) {
		/* It waits for CPUs that go up or down, so pools and runners must not do it. */
		preempt_notifier_inc();
		return 0;
	}
	if (fairwq_reap_wq)
		destroy_workqueue(fairwq_reap_wq);
	fairwq_reap_wq = NULL;		/* built in, fairwq_pool_create() looks at it */
	destroy_workqueue(fairwq_release_wq);
	return -ENOMEM;
}

static void __exit fairwq_exit(void)
{
	fairwq_debugfs_exit();
	preempt_notifier_dec();
	/* Wait for grace periods, then for reaping and what that frees. */
	rcu_barrier();
	fairwq_stack_exit();
	destroy_workqueue(fairwq_reap_wq);
	destroy_workqueue(fairwq_release_wq);
	rcu_barrier();
	WARN_ON(!xa_empty(&fairwq_runners));
}

#ifdef MODULE
static int __init fairwq_init_module(void)
{
	return fairwq_init() ?: fairwq_debugfs_init();
}
module_init(fairwq_init_module);
#else
early_initcall(fairwq_init);
postcore_initcall(fairwq_debugfs_init);
#endif
module_exit(fairwq_exit);

MODULE_DESCRIPTION("Fair shares of one pool of workers");
MODULE_AUTHOR("The fairwq developers");
MODULE_VERSION(FAIRWQ_VERSION);
MODULE_LICENSE("GPL");
