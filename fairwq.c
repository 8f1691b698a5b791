// SPDX-License-Identifier: GPL-2.0
/*
 * Queueing: fairwq_queue(), and the start and end of the module.
 *
 *   fairwq_queue()          checks
 *     core/push.c           claims the work, and links it in the inbox of the batch
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

#include "core/asleep.h"
#include "core/fifo.h"
#include "core/push.h"
#include "core/runner.h"
#include "core/stack.h"
#include "doors.h"

/* ---- queueing --------------------------------------------------------- */

int fairwq_queue(struct fairwq_batch *batch, struct fairwq_work *work)
{
	if (fairwq_is_no_pointer(batch))
		return fairwq_bad_arg("batch is NULL or an error");
	if (!work || !work->func)
		return fairwq_bad_arg("work is NULL or has no function");
	guard(rcu)();		/* keeps @batch, see core/push.c */
	return fairwq_push(batch, work);
}
EXPORT_SYMBOL_GPL(fairwq_queue);

/* Set up a work; fairwq_work_init() has the description. */
void __fairwq_work_init(struct fairwq_work *work, fairwq_func_t func,
			const char *name, struct lock_class_key *key)
{
	if (WARN_ON_ONCE(!work))
		return;
	memset(work, 0, sizeof(*work));
	work->func = func;
	lockdep_init_map(&work->lockdep_map, name, key, 0);
}
EXPORT_SYMBOL_GPL(__fairwq_work_init);

/*
 * Works of the module that are active at once. A thousand batches may leave at
 * once. They must not crowd out the runners, which have the same workers, nor
 * contend for pool->lock. A sweep of many flows takes a while, and the work
 * that frees runners waits for readers of debugfs. RCU works must not wait for
 * that.
 */
#define REAP_ACTIVE	4

/* ---- the module ------------------------------------------------------- */

/*
 * Start before every built-in client. Workqueues are there by then. debugfs is
 * not, because a core_initcall() starts it.
 */
static int __init fairwq_init(void)
{
	fairwq_release_wq = alloc_workqueue("fairwq_release", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!fairwq_release_wq)
		return -ENOMEM;
	fairwq_reap_wq = alloc_workqueue("fairwq_reap", WQ_UNBOUND | WQ_MEM_RECLAIM, REAP_ACTIVE);
	if (fairwq_reap_wq && !fairwq_stack_init()) {
		fairwq_asleep_set(true);
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
	fairwq_asleep_set(false);
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
