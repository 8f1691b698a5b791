// SPDX-License-Identifier: GPL-2.0
/*
 * Pools: a pool's life, and calls that wait for all of a pool.
 *
 *   step of the end          what holds after it
 *   @dying is set            no batch joins the pool, and none is paused
 *   @draining is set         no queue call from outside is accepted
 *   pool_wait_drained()      the pool's items have stopped queueing
 *   pool_teardown()          nothing is in the tree, so the runners go idle
 *   destroy_workqueue()      no runner runs
 *
 * Locking: pool->lock.
 *
 * Limits: max_active is at most FAIRWQ_MAX_ACTIVE.
 */
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/rculist.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "core/policy.h"
#include "core/fifo.h"
#include "core/lockdep.h"
#include "core/runner.h"
#include "core/seat.h"
#include "core/tree.h"
#include "core/watchdog.h"
#include "doors.h"

/* Flags that the workqueue has, too. */
#define WQ_FLAGS (FAIRWQ_MEM_RECLAIM | FAIRWQ_HIGHPRI | FAIRWQ_FREEZABLE | FAIRWQ_SYSFS)
#define ALL_FLAGS (WQ_FLAGS | FAIRWQ_STRICT_PRIO | FAIRWQ_NEAR)
static_assert(!(WQ_FLAGS & (FAIRWQ_STRICT_PRIO | FAIRWQ_NEAR)));

/* ---- setting up ------------------------------------------------------- */

static int pool_check_attrs(const struct fairwq_pool_attrs *attrs)
{
	if (attrs->flags & ~ALL_FLAGS)
		return fairwq_bad_arg("attrs->flags has an unknown flag");
	if (attrs->max_active > FAIRWQ_MAX_ACTIVE)
		return fairwq_bad_arg("attrs->max_active is not in 0..512");
	if (attrs->max_in_flight > FAIRWQ_MAX_ACTIVE)
		return fairwq_bad_arg("attrs->max_in_flight is not in 0..512");
	if (attrs->slice_us > FAIRWQ_MAX_SLICE_US)
		return fairwq_bad_arg("attrs->slice_us is not in 0..10000");
	if ((unsigned int)attrs->policy >= FAIRWQ_NR_POLICIES)
		return fairwq_bad_arg("attrs->policy is unknown");
	if (fairwq_policies[attrs->policy].needs_cost && !attrs->cost)
		return fairwq_bad_arg("attrs->cost is NULL");
	if (attrs->cpu && !(attrs->flags & FAIRWQ_NEAR))
		return fairwq_bad_arg("attrs->cpu without FAIRWQ_NEAR");
	if ((attrs->flags & FAIRWQ_NEAR) &&
	    (attrs->cpu >= nr_cpu_ids || !cpu_possible(attrs->cpu)))
		return fairwq_bad_arg("attrs->cpu is not a possible CPU");
	return 0;
}

static struct fairwq_pool *pool_alloc(const struct fairwq_pool_attrs *attrs,
				      const char *name)
{
	struct fairwq_pool *pool = kzalloc(sizeof(*pool), GFP_KERNEL);

	if (!pool || !name) {
		kfree(pool);
		kfree(name);
		return NULL;
	}
	pool->name = name;
	pool->flags = attrs->flags;
	pool->cpu = attrs->flags & FAIRWQ_NEAR ? attrs->cpu : WORK_CPU_UNBOUND;
	pool->policy = attrs->policy;
	pool->cost = attrs->cost;
	pool->failed = attrs->failed;
	pool->slice_us = attrs->slice_us ?: FAIRWQ_DFL_SLICE_US;
	raw_spin_lock_init(&pool->lock);
	kref_init(&pool->refs);
	lockdep_register_key(&pool->runner_key);
	lockdep_register_key(&pool->wait_key);
	lockdep_init_map(&pool->lockdep_map, "(fairwq_pool)", &pool->wait_key, 0);
	lockdep_register_key(&pool->released_key);
	lockdep_init_map(&pool->released_map, "(fairwq_released)", &pool->released_key, 0);
	INIT_LIST_HEAD(&pool->crew.idle);
	INIT_LIST_HEAD(&pool->registry.batches);
	INIT_LIST_HEAD(&pool->crew.runners);
	INIT_WORK(&pool->crew.grow, fairwq_pool_grow_fn);
	INIT_DELAYED_WORK(&pool->crew.shrink, fairwq_pool_shrink_fn);
	INIT_LIST_HEAD(&pool->waits.works);
	INIT_LIST_HEAD(&pool->waits.batches);
	INIT_LIST_HEAD(&pool->debugfs.link);
	pool->crew.max_in_flight = attrs->max_in_flight ?: FAIRWQ_MAX_ACTIVE;
	pool->crew.max_async = attrs->max_async ?: UINT_MAX;
	pool->crew.max_active = attrs->max_active ?:
				clamp(num_possible_cpus(), 2U, FAIRWQ_MAX_ACTIVE);
	scoped_guard(raw_spinlock_irq, &pool->lock)
		fairwq_seat_update_locked(pool);
	fairwq_tree_init(&pool->tree);
	fairwq_policy_set_unit_locked(pool);
	if (attrs->flags & FAIRWQ_STRICT_PRIO)
		pool->tree.starve_limit = 0;
	fairwq_watchdog_init(pool);
	return pool;
}

static int pool_add_default_batches(struct fairwq_pool *pool)
{
	static const char * const name[] = {
		[FAIRWQ_PRIO_NORMAL] = "default",
		[FAIRWQ_PRIO_HIGH] = "default-high",
		[FAIRWQ_PRIO_LOW] = "default-low",
	};
	struct fairwq_batch_attrs attrs = { };
	struct fairwq_batch *batch;
	unsigned int prio;

	for (prio = 0; prio < ARRAY_SIZE(name); prio++) {
		attrs.prio = prio;
		batch = fairwq_batch_new(pool, &attrs, NULL,
					 kstrdup(name[prio], GFP_KERNEL), GFP_KERNEL);
		if (IS_ERR(batch))
			return PTR_ERR(batch);
		pool->registry.default_batch[prio] = batch;
	}
	return 0;
}

/* ---- the workqueue ----------------------------------------------------- */

/*
 * Allocate the workqueue. Its own limit is the highest, because the pool counts
 * its runners and may get more later, and because the workqueue core may divide
 * it among the nodes. Return: 0, or a negative error.
 */
static int pool_alloc_wq(struct fairwq_pool *pool)
{
	if (pool->flags & FAIRWQ_SYSFS && !*pool->name)
		return fairwq_bad_arg("with FAIRWQ_SYSFS the name is empty");
	pool->wq = alloc_workqueue("%s", WQ_UNBOUND | (pool->flags & WQ_FLAGS), WQ_MAX_ACTIVE,
				   pool->name);
	return pool->wq ? 0 : -ENOMEM;
}

/* ---- taking down ------------------------------------------------------ */

/* Take a pool down, also one that did not get all the way up. */
static void pool_teardown(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner, *next;
	struct fairwq_batch *batch;
	unsigned int i;

	/* Retire the batches that are left, and wait until they have left. */
	scoped_guard(rcu)
		list_for_each_entry_rcu(batch, &pool->registry.batches, link)
			fairwq_batch_retire(batch, false);
	fairwq_batch_shutdown_wait(pool, &pool->registry.nr_batches, NULL, FAIRWQ_RUN_REST, NULL);
	fairwq_debugfs_del_pool(pool);
	for (i = 0; i < ARRAY_SIZE(pool->registry.default_batch); i++)
		fairwq_batch_put(pool->registry.default_batch[i]);
	/*
	 * A grace period after a runner was chosen it has been kicked, see
	 * fairwq_kick_locked(). It is active until it was kicked, and has run.
	 * No other one is chosen any more.
	 */
	if (data_race(pool->crew.nr_active))
		fairwq_batch_wait_grace();
	/* Wait for runners that saw the empty tree and are on their way out. */
	if (pool->wq)
		destroy_workqueue(pool->wq);
	timer_delete_sync(&pool->watch.tick);
	cancel_delayed_work_sync(&pool->crew.shrink);
	list_for_each_entry_safe(runner, next, &pool->crew.runners, node)
		fairwq_runner_free(runner);
	/* A flush that has not seen its batch reaped may use the map: fairwq_batch_flush(). */
	if (IS_ENABLED(CONFIG_LOCKDEP))
		synchronize_rcu();
	lockdep_unregister_key(&pool->runner_key);
	lockdep_unregister_key(&pool->wait_key);
	lockdep_unregister_key(&pool->released_key);
	fairwq_pool_put(pool);
}

/* ---- create ----------------------------------------------------------- */

struct fairwq_pool *fairwq_pool_create(const struct fairwq_pool_attrs *attrs,
				       const char *fmt, ...)
{
	static const struct fairwq_pool_attrs dfl;
	struct fairwq_pool *pool;
	va_list args;
	int err;

	if (!fmt)
		return ERR_PTR(fairwq_bad_arg("fmt is NULL"));
	if (!fairwq_reap_wq)
		return ERR_PTR(-ENODEV);
	attrs = attrs ?: &dfl;
	err = pool_check_attrs(attrs);
	if (err)
		return ERR_PTR(err);
	va_start(args, fmt);
	pool = pool_alloc(attrs, fairwq_make_name(fmt, args));
	va_end(args);
	if (!pool)
		return ERR_PTR(-ENOMEM);
	err = pool_alloc_wq(pool);
	while (!err && pool->crew.nr_runners < pool->crew.max_active)
		err = fairwq_pool_add_runner(pool, GFP_KERNEL);
	err = err ?: pool_add_default_batches(pool);
	if (err) {
		pool_teardown(pool);
		return ERR_PTR(err);
	}
	fairwq_debugfs_add_pool(pool);
	return pool;
}
EXPORT_SYMBOL_GPL(fairwq_pool_create);

/* ---- flush ------------------------------------------------------------ */

/*
 * Wait for one batch after the other. What was queued when the call began is
 * queued when its batch's turn comes, or has ended. Batches that are created
 * meanwhile hold none of it.
 */
static void pool_wait(struct fairwq_pool *pool)
{
	struct fairwq_batch *batch = NULL;
	u64 end;

	scoped_guard(raw_spinlock_irq, &pool->lock)
		end = pool->registry.next_seq;
	while ((batch = fairwq_pool_next_batch(pool, batch)) && batch->seq < end)
		if (!fairwq_batch_is_idle(batch))
			fairwq_batch_wait(batch);
	fairwq_batch_put(batch);
}

/*
 * Check that the caller may wait for the pool, and tell lockdep. An item of the
 * pool would wait for itself: warn. Return: whether it may.
 */
static bool pool_may_wait(struct fairwq_pool *pool, const char *what)
{
	if (WARN_ON_ONCE(fairwq_is_no_pointer(pool)))
		return false;
	might_sleep();
	if (fairwq_waits_for_itself(fairwq_runner_current()->pool == pool, what))
		return false;
	fairwq_wait_begin(&pool->lockdep_map, pool->flags & FAIRWQ_MEM_RECLAIM);
	return true;
}

void fairwq_pool_flush(struct fairwq_pool *pool)
{
	if (pool_may_wait(pool, __func__))
		pool_wait(pool);
}
EXPORT_SYMBOL_GPL(fairwq_pool_flush);

/* ---- drain and destroy ------------------------------------------------ */

/*
 * Check that nothing is queued and nothing runs. All batches are looked at in
 * one lock section. Otherwise an item in flight could queue to a batch that was
 * looked at already, and end before its own is.
 */
static bool pool_is_idle(struct fairwq_pool *pool)
{
	struct fairwq_batch *batch;

	guard(raw_spinlock_irq)(&pool->lock);
	list_for_each_entry(batch, &pool->registry.batches, link) {
		/* A queue call has seen @draining under this lock, or its item is seen here. */
		guard(raw_spinlock)(&batch->inbox.lock);
		if (!fairwq_fifo_is_idle_locked(batch))
			return false;
	}
	return true;
}

/* Close the gate, and wait until the items of the pool have stopped queueing. */
static void pool_wait_drained(struct fairwq_pool *pool)
{
	unsigned int tries = 0;

	WRITE_ONCE(pool->draining, true);
	do {
		pool_wait(pool);
		if (++tries == 10 || tries % 100 == 0)
			pr_warn("fairwq: pool %s: not drained after %u tries\n",
				pool->name, tries);
	} while (!pool_is_idle(pool));
}

void fairwq_pool_drain(struct fairwq_pool *pool)
{
	if (!pool_may_wait(pool, __func__))
		return;
	pool_wait_drained(pool);
	WRITE_ONCE(pool->draining, false);
}
EXPORT_SYMBOL_GPL(fairwq_pool_drain);

void fairwq_pool_destroy(struct fairwq_pool *pool)
{
	const struct fairwq_batch *own = fairwq_own_batch();
	struct fairwq_batch *batch;

	if (IS_ERR_OR_NULL(pool))
		return;
	if (!pool_may_wait(pool, __func__))
		return;
	if (WARN_ONCE(own && own->pool == pool,
		      "fairwq: released() of batch %s/%s destroys its pool\n",
		      own->pool->name, own->name))
		return;
	fairwq_lockdep_wait(&pool->released_map);
	WARN_ONCE(atomic_read(&pool->registry.nr_flows),
		  "fairwq: pool %s is destroyed before its flows\n", pool->name);
	scoped_guard(raw_spinlock_irq, &pool->lock)
		pool->registry.dying = true;
	scoped_guard(rcu)
		list_for_each_entry_rcu(batch, &pool->registry.batches, link)
			fairwq_batch_resume(batch);
	pool_wait_drained(pool);
	pool_teardown(pool);
}
EXPORT_SYMBOL_GPL(fairwq_pool_destroy);

/* ---- default batches -------------------------------------------------- */

struct fairwq_batch *fairwq_pool_default_batch(struct fairwq_pool *pool,
					       enum fairwq_prio prio)
{
	if (fairwq_is_bad(fairwq_is_no_pointer(pool), "pool is NULL or an error"))
		return NULL;
	if (fairwq_is_bad((unsigned int)prio >= ARRAY_SIZE(pool->registry.default_batch),
			  "prio is unknown"))
		return NULL;
	return pool->registry.default_batch[prio];
}
EXPORT_SYMBOL_GPL(fairwq_pool_default_batch);

