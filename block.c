// SPDX-License-Identifier: GPL-2.0
/*
 * Blocking: an item says that it may wait for long, and another one works meanwhile.
 *
 *   nr_active  is less by one         while an item is in a section that may block
 *   nr_runners is more by one         for each item that was in one when no runner was
 *                                     idle; the surplus goes when it was idle for long
 *
 * The item's place among the active runners goes to another runner, and the item takes
 * it back without asking: see core/runner.c.
 *
 * Locking: pool->mutex for the number of runners.
 * Limits: a pool has FAIRWQ_MAX_ACTIVE runners at most, or as many as items that fork
 * need. If all of them are in such sections, queued items wait until one goes on. So
 * they do if there is no memory for one more runner.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>

#include "core/runner.h"
#include "doors.h"

/*
 * Add a runner, if none is idle. If another caller holds the mutex, it may be one that
 * frees memory, for which this item is wanted: then there is no new runner.
 */
static void add_spare(struct fairwq_pool *pool)
{
	/* A hint: one that goes idle now, or is taken now, does no harm. */
	if (data_race(!list_empty(&pool->idle_runners)) || !mutex_trylock(&pool->mutex))
		return;
	if (pool->nr_runners < FAIRWQ_MAX_ACTIVE)
		fairwq_pool_grow(pool, pool->nr_runners + 1);
	mutex_unlock(&pool->mutex);
}

void fairwq_block_begin(void)
{
	struct fairwq_runner *runner = fairwq_current_runner();

	if (!runner)
		return;
	might_sleep();
	if (!runner->nr_blocks)
		add_spare(runner->pool);
	fairwq_runner_block(runner);
}
EXPORT_SYMBOL_GPL(fairwq_block_begin);

void fairwq_block_end(void)
{
	struct fairwq_runner *runner = fairwq_current_runner();

	if (runner && !WARN_ON_ONCE(!runner->nr_blocks))
		fairwq_runner_unblock(runner);
}
EXPORT_SYMBOL_GPL(fairwq_block_end);
