// SPDX-License-Identifier: GPL-2.0
/*
 * Failures: items that fail are counted, and reported to the pool's notifiers.
 *
 * A function returns nothing, and for fairwq an item that failed has ended like
 * any other. No item is skipped after it. The report is for an operator, and for
 * the driver that owns the pool.
 *
 * Locking: the kernel's own for the chain, pool->lock for the counters.
 * Limits: a report comes from an item that may sleep.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/notifier.h>

#include "core/runner.h"
#include "doors.h"

int fairwq_pool_register_notifier(struct fairwq_pool *pool, struct notifier_block *nb)
{
	if (fairwq_is_no_pointer(pool))
		return fairwq_bad_arg("pool is NULL or an error");
	if (!nb || !nb->notifier_call)
		return fairwq_bad_arg("nb has no function");
	return blocking_notifier_chain_register(&pool->failure_chain, nb);
}
EXPORT_SYMBOL_GPL(fairwq_pool_register_notifier);

int fairwq_pool_unregister_notifier(struct fairwq_pool *pool, struct notifier_block *nb)
{
	if (fairwq_is_no_pointer(pool))
		return fairwq_bad_arg("pool is NULL or an error");
	if (!nb)
		return fairwq_bad_arg("nb is NULL");
	return blocking_notifier_chain_unregister(&pool->failure_chain, nb);
}
EXPORT_SYMBOL_GPL(fairwq_pool_unregister_notifier);

void fairwq_report_failure(int err)
{
	const struct fairwq_turn *turn = fairwq_runner_own_turn();
	struct fairwq_failure failure;

	if (WARN_ONCE(!turn, "fairwq: a failure (%d) is reported, and no item runs\n", err))
		return;
	if (err >= 0) {
		fairwq_bad_arg("err is not negative");
		return;
	}
	might_sleep();
	failure = (struct fairwq_failure) {
		.pool = turn->batch->pool,
		.batch = turn->batch,
		.func = turn->func,
		.err = err,
	};
	raw_spin_lock_irq(&failure.pool->lock);
	failure.pool->counter[FAIRWQ_FAILURES]++;
	failure.batch->stats->failures++;
	raw_spin_unlock_irq(&failure.pool->lock);
	blocking_notifier_call_chain(&failure.pool->failure_chain, FAIRWQ_EVENT_FAILURE, &failure);
}
EXPORT_SYMBOL_GPL(fairwq_report_failure);
