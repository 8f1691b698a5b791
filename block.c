// SPDX-License-Identifier: GPL-2.0
/*
 * Blocking: an item says that it may wait for long, and another one works
 * meanwhile.
 *
 *   nr_active  is less by one         while an item is in a section that may block
 *   nr_runners is more by one         for each item that was in one when no runner was
 *                                     idle; the surplus goes when it was idle for long
 *
 * The item's place among the active runners goes to another runner, and the
 * item takes it back without asking: see core/seat.c.
 *
 * Locking: pool->lock. Not pool->mutex: an item that waited for that could wait
 * for a caller that needs memory, which the item may be about to free.
 * Invariant: while an item is in a section, a runner is idle or active, or
 * being made.
 * Limits: a pool has FAIRWQ_MAX_ACTIVE runners at most, or as many as items
 * that fork need. If all of them are in such sections, queued items wait until
 * one goes on. So they do if there is no memory for one more runner.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>

#include "core/runner.h"
#include "core/seat.h"
#include "doors.h"

void fairwq_block_begin(void)
{
	struct fairwq_runner *runner = fairwq_runner_current();

	if (!runner)
		return;
	might_sleep();
	if (fairwq_seat_block(runner))
		fairwq_pool_add_runner(runner->pool, FAIRWQ_MAX_ACTIVE, FAIRWQ_ITEM_GFP);
}
EXPORT_SYMBOL_GPL(fairwq_block_begin);

void fairwq_block_end(void)
{
	struct fairwq_runner *runner = fairwq_runner_current();

	if (runner && !WARN_ON_ONCE(!runner->nr_blocks))
		fairwq_seat_unblock(runner);
}
EXPORT_SYMBOL_GPL(fairwq_block_end);
