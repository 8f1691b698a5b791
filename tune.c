// SPDX-License-Identifier: GPL-2.0
/*
 * Tuning: changes of a pool that exists: how many runners it has, its policy,
 * its counters and histograms.
 *
 *   Runners                       made                      freed
 *   ----------------------------  ------------------------  --------------------------
 *   max_active                    with the pool             with the pool
 *   more: max_active was raised,  when an item waits or     when idle for long
 *   or items sleep                forks, and none is idle
 *
 * Locking: pool->lock.
 * Limits: runners that are too many stay for up to twice SPARE_IDLE.
 */
#include <linux/export.h>
#include <linux/rculist.h>
#include <linux/slab.h>

#include "core/policy.h"
#include "core/fifo.h"
#include "core/runner.h"
#include "core/seat.h"
#include "core/testing.h"
#include "doors.h"

/* ---- runners ---------------------------------------------------------- */

/* What is idle for so long is freed, if the pool has more runners than it needs. */
#define SPARE_IDLE	(10 * HZ)

/* Have the runners that are too many freed later. */
static void shrink_later_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	if (pool->crew.nr_runners > pool->crew.max_active)
		queue_delayed_work(system_long_wq, &pool->crew.shrink, SPARE_IDLE);
}

/* Add a runner, and let it work. Return: 0, or -ENOMEM. */
int fairwq_pool_add_runner(struct fairwq_pool *pool, gfp_t gfp)
{
	struct fairwq_runner *runner = fairwq_runner_alloc(pool, fairwq_run, gfp);

	if (!runner)
		return -ENOMEM;
	runner->started = jiffies;
	guard(fairwq_kick)(pool);
	list_add_tail_rcu(&runner->node, &pool->crew.runners);
	list_add_tail(&runner->idle_node, &pool->crew.idle);
	pool->crew.nr_runners++;
	shrink_later_locked(pool);
	return 0;
}

/* Add a runner, because one is needed and none is idle. It kicks the next one. */
void fairwq_pool_grow_fn(struct work_struct *work)
{
	struct fairwq_pool *pool = container_of(work, struct fairwq_pool, crew.grow);

	/* What frees memory may wait for this runner, so this must not wait for memory. */
	fairwq_pool_add_runner(pool, pool->flags & FAIRWQ_MEM_RECLAIM ?
			       GFP_NOWAIT | __GFP_NOWARN :
			       GFP_NOIO | __GFP_NORETRY | __GFP_NOWARN);
}

/*
 * Take the runner that is idle for longest out of the pool, if that is @idle
 * jiffies. Its work may still be at its end.
 * Return: the runner; or NULL, and this is tried again later if there are too
 * many.
 */
static struct fairwq_runner *remove_idle(struct fairwq_pool *pool, unsigned long idle)
{
	struct fairwq_runner *runner;

	guard(raw_spinlock_irq)(&pool->lock);
	runner = list_last_entry(&pool->crew.idle, struct fairwq_runner, idle_node);
	if (pool->crew.nr_runners <= pool->crew.max_active || list_empty(&pool->crew.idle) ||
	    time_before(jiffies, runner->started + idle)) {
		shrink_later_locked(pool);
		return NULL;
	}
	list_del(&runner->idle_node);
	list_del_rcu(&runner->node);
	pool->crew.nr_runners--;
	return runner;
}

/*
 * Free the runners that are too many and were idle for @idle jiffies. Come back
 * later for the others.
 */
void fairwq_pool_shrink(struct fairwq_pool *pool, unsigned long idle)
{
	struct fairwq_runner *runner;

	while ((runner = remove_idle(pool, idle))) {
		cancel_work_sync(&runner->work);
		fairwq_runner_free(runner);
	}
}

FAIRWQ_TEST_EXPORT(fairwq_pool_shrink);

void fairwq_pool_shrink_fn(struct work_struct *work)
{
	fairwq_pool_shrink(container_of(to_delayed_work(work), struct fairwq_pool, crew.shrink),
			   SPARE_IDLE);
}

int fairwq_pool_set_max_active(struct fairwq_pool *pool, unsigned int max_active)
{
	if (fairwq_is_no_pointer(pool))
		return fairwq_bad_arg("pool is NULL or an error");
	if (!max_active || max_active > FAIRWQ_MAX_ACTIVE)
		return fairwq_bad_arg("max_active is not in 1..512");
	guard(fairwq_kick)(pool);	/* that runner kicks the next one */
	WRITE_ONCE(pool->crew.max_active, max_active);
	fairwq_seat_update_locked(pool);
	shrink_later_locked(pool);
	return 0;
}
EXPORT_SYMBOL_GPL(fairwq_pool_set_max_active);

/* ---- policy ----------------------------------------------------------- */

/*
 * Change the policy: set up the tree anew, and put every batch into it again.
 * With thousands of eligible batches the lock is held for long. So this is for
 * operators, not for the inner loop of a running system. The present policy is
 * no change. Return: 0, or -EINVAL if the pool has no cost() for it.
 */
int fairwq_pool_set_policy(struct fairwq_pool *pool, unsigned int policy)
{
	struct fairwq_batch *batch;

	if (fairwq_policies[policy].needs_cost && !pool->cost)
		return -EINVAL;
	guard(raw_spinlock_irqsave)(&pool->lock);
	if (policy == pool->policy)
		return 0;
	WRITE_ONCE(pool->policy, policy);
	fairwq_policy_begin_locked(pool);
	list_for_each_entry(batch, &pool->registry.batches, link)
		fairwq_fifo_update_locked(batch);
	return 0;
}

FAIRWQ_TEST_EXPORT(fairwq_pool_set_policy);

/* ---- counters and histograms ------------------------------------------ */

/*
 * Begin to keep histograms of waits and run times for each batch, or forget
 * them. Where there is no memory for some, another call tries again.
 *
 * Return: 0, or -ENOMEM: some batches have none.
 */
int fairwq_pool_set_histograms(struct fairwq_pool *pool, unsigned int on)
{
	struct fairwq_hists *hists;
	struct fairwq_batch *batch;
	int err = 0;

	scoped_guard(raw_spinlock_irq, &pool->lock)
		WRITE_ONCE(pool->histograms, on);
	guard(rcu)();
	list_for_each_entry_rcu(batch, &pool->registry.batches, link) {
		/* A hint, checked again under the lock. */
		if (on == !!data_race(batch->stats->hists))
			continue;
		hists = on ? kzalloc(sizeof(*hists), GFP_NOWAIT | __GFP_NOWARN) : NULL;
		/* The call that came last decides. */
		scoped_guard(raw_spinlock_irq, &pool->lock)
			if (on == pool->histograms && on != !!batch->stats->hists) {
				err = on && !hists ? -ENOMEM : err;
				swap(batch->stats->hists, hists);
			}
		kfree(hists);
	}
	return err;
}

/* Set all to 0, by whatever @value. Return: 0. */
int fairwq_pool_reset_stats(struct fairwq_pool *pool, unsigned int value)
{
	struct fairwq_batch_stats *stats;
	struct fairwq_batch *batch;

	guard(rcu)();
	list_for_each_entry_rcu(batch, &pool->registry.batches, link) {
		guard(raw_spinlock_irq)(&pool->lock);
		stats = batch->stats;
		if (stats->hists)
			*stats->hists = (struct fairwq_hists){ };
		/* The tree keeps what it was charged, so the longest turn stays, too. */
		*stats = (struct fairwq_batch_stats){
			.hists = stats->hists, .max_cost = stats->max_cost,
		};
		batch->done = 0;
		batch->quick = false;
	}
	guard(raw_spinlock_irq)(&pool->lock);
	memset(pool->tally.counter, 0, sizeof(pool->tally.counter));
	pool->crew.nr_taken = 0;
	atomic64_set(&pool->tally.flow_fallbacks, 0);
	return 0;
}

FAIRWQ_TEST_EXPORT(fairwq_pool_reset_stats);
