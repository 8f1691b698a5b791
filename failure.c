// SPDX-License-Identifier: GPL-2.0
/*
 * Failures: items that fail are counted, and the driver that owns the pool is
 * called.
 *
 * A function returns nothing, and for fairwq an item that failed has ended like
 * any other. No item is skipped after it. The counters are for an operator.
 *
 * Locking: pool->lock for the counters.
 * Limits: a report comes from an item that may sleep.
 */
#include <linux/export.h>

#include "core/runner.h"
#include "doors.h"

void fairwq_report_failure(int err)
{
	const struct fairwq_turn *turn = fairwq_runner_own_turn();
	struct fairwq_batch *batch;

	if (WARN_ONCE(!turn, "fairwq: a failure (%d) is reported, and no item runs\n", err))
		return;
	if (fairwq_is_bad(err >= 0, "err is not negative"))
		return;
	might_sleep();
	batch = turn->batch;
	scoped_guard(raw_spinlock_irq, &batch->pool->lock) {
		batch->pool->tally.counter[FAIRWQ_FAILURES]++;
		batch->stats->failures++;
	}
	if (batch->pool->failed)
		batch->pool->failed(batch, turn->func, err);
}
EXPORT_SYMBOL_GPL(fairwq_report_failure);
