// SPDX-License-Identifier: GPL-2.0
/*
 * Bursts: how far a runner goes on with the items of one serializer.
 *
 * When an item of a serializer ends while others wait, the runner may start the
 * next one at once, for as long as the serializer's inline budget lasts. That
 * item then does not go through its batch, which must be that of the item
 * before. waitlist.c moves it.
 *
 * The runner does not go on, and the next item is queued to its batch, if
 *
 * - the batch is another one, is paused, or is being cancelled;
 * - the work still runs elsewhere, or with this one more than max_active
 *   runners work;
 * - a caller waits for the turn to end, because the next item might itself wait
 *   for that caller;
 * - each item is charged as a turn, by the policy.
 *
 * All items of a burst are one turn, which is charged one item when it begins
 * and the others when it ends.
 *
 * Locking: the lock of the serializer. struct fairwq_burst is the runner's.
 * Model: tests/models/burst.pml.
 *
 * Limits: BURST_ITEMS items.
 */
#include "park.h"
#include "policy.h"

/* Most items of one burst behind the first, however short they are. */
#define BURST_ITEMS	1024U
/* Most items between two readings of the clock. */
#define BURST_CHECK	64U
/* The time between two items, ns; a guess, which matters for short ones. */
#define ITEM_OVERHEAD_NS	50U

/* Check whether an item of @batch may start within what is left of the budget. */
static bool burst_has_budget(struct fairwq_runner *runner, struct fairwq_batch *batch)
{
	struct fairwq_burst *burst = &runner->burst;
	unsigned long avg;
	u64 now, each;

	/* After a tick the estimate may be wrong, so the clock is read. */
	if (burst->left && !time_after(jiffies, runner->started)) {
		burst->left--;
		return true;
	}
	now = fairwq_clock();
	if (now >= burst->due)
		return false;
	/* A hint, which is written under the pool's lock. */
	avg = data_race(ewma_fairwq_run_read(&batch->stats->run_avg));
	each = avg ? avg + ITEM_OVERHEAD_NS : FAIRWQ_DFL_SLICE_US * NSEC_PER_USEC;
	if (each < burst->due - now)
		burst->left = clamp_t(u64, div64_u64(burst->due - now, each), 1,
				      BURST_CHECK) - 1;
	else
		*burst = (struct fairwq_burst){ };	/* this one uses it up */
	return true;
}

/*
 * Check whether the runner goes on with @work, the first in @serializer, whose
 * lock the caller has, and of the batch of its turn.
 */
bool fairwq_burst_goes_on(struct fairwq_runner *runner,
			  const struct fairwq_serializer *serializer,
			  const struct fairwq_work *work)
{
	u64 budget = (u64)READ_ONCE(serializer->inline_us) * NSEC_PER_USEC;
	struct fairwq_batch *batch = runner->turn.batch;
	const struct fairwq_pool *pool = runner->pool;

	if (!budget)
		return false;
	/* Where a client says what an item costs, each one is charged as a turn. */
	if (READ_ONCE(runner->yield) || fairwq_policy_of(pool)->needs_cost)
		return false;
	if (fairwq_park_runs_elsewhere(work, runner->id))
		return false;
	/* Hints, written under the pool's lock. A pause also ends the bursts of @batch. */
	if (data_race(batch->paused || batch->nr_canceling ||
		      pool->crew.nr_active + !runner->seated > pool->crew.max_active))
		return false;
	if (runner->turn.charge.nr == 1)
		runner->burst = (struct fairwq_burst){ .due = fairwq_clock() + budget };
	if (runner->turn.charge.nr > BURST_ITEMS)
		return false;
	return burst_has_budget(runner, batch);
}
