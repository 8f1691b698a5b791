// SPDX-License-Identifier: GPL-2.0
/*
 * Runners: which are idle, which is woken, and which one executes the caller.
 *
 * A runner is a work of the pool's workqueue. It is idle, and then on
 * pool->idle_runners; or it is active: kicked, or running its main loop (run.c).
 * At most pool->max_active are active.
 *
 * A kick has two halves. Under the lock a runner is chosen, if something waits in
 * the tree; the caller sends it once it has dropped the lock. No wake-up is lost,
 * because a batch enters the tree, and a runner goes idle, only under that lock.
 * Model: tests/models/queue.pml.
 *
 * More runners are woken as long as something waits, but not for items that are over
 * at once: another CPU takes longer to get at them than they take. If one of these
 * takes longer for once, the pool's timer finds it within two ticks (watchdog.c).
 *
 * Locking: pool->lock, but for fairwq_runners, which has a lock of its own.
 */
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "lockdep.h"
#include "runner.h"
#include "trace.h"

/* Every runner by its id, so that a work can name one without a pointer. */
DEFINE_XARRAY_ALLOC1(fairwq_runners);

static u32 fairwq_next_runner_id;

/* The main loop of all runners. It is above this file, so it is handed in. */
static work_func_t fairwq_runner_fn;

/*
 * The idle runner that ran last on this CPU, else the one that ran last. The core
 * may still be at the end of its last run, and sends it where that was.
 */
static struct fairwq_runner *idle_runner_locked(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;
	int cpu = raw_smp_processor_id();

	lockdep_assert_held(&pool->lock);

	list_for_each_entry(runner, &pool->idle_runners, idle_node)
		if (runner->cpu == cpu)
			return runner;
	return list_first_entry_or_null(&pool->idle_runners, struct fairwq_runner, idle_node);
}

unsigned long fairwq_hung_due_locked(const struct fairwq_pool *pool)
{
	return jiffies + 1 + msecs_to_jiffies(pool->hung_ms) / 2;
}

/* A runner was kicked: look at it after half the time that an item may take. */
void fairwq_tick_arm_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	if (pool->hung_ms && !timer_pending(&pool->tick))
		mod_timer(&pool->tick, fairwq_hung_due_locked(pool));
}

/* Something waits for an item that is over at once, as a rule: look whether it is. */
void fairwq_tick_soon_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	if (pool->ticking)
		return;
	pool->ticking = true;
	mod_timer(&pool->tick, jiffies + 1);
}

/* Choose an idle runner, if one more may run. */
struct fairwq_runner *fairwq_wake_locked(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;

	lockdep_assert_held(&pool->lock);

	if (pool->nr_active >= pool->max_active)
		return NULL;
	runner = idle_runner_locked(pool);
	if (!runner)
		return NULL;
	list_del_init(&runner->idle_node);
	pool->nr_active++;
	pool->counter[FAIRWQ_KICKS]++;
	fairwq_tick_arm_locked(pool);
	return runner;
}

/*
 * Some runner is at an item that will be over at once: it takes what waits. If it does
 * not, the tick finds that. Not if all of these have been at it for longer by now.
 */
bool fairwq_is_soon_free_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	if (!pool->nr_quick || time_after(jiffies, pool->quick_at))
		return false;
	fairwq_tick_soon_locked(pool);
	return true;
}

/*
 * Choose an idle runner for the eligible work that stands in the tree. The
 * caller sends it, once the lock is dropped, by fairwq_kick_send(). Between
 * the two the pool may be drained by others: unless the caller is a worker of
 * the pool, both are in one RCU read-side section, which its destruction waits
 * for if it finds a runner active.
 */
struct fairwq_runner *fairwq_kick_locked(struct fairwq_pool *pool)
{
	if (!fairwq_has_work_locked(pool) || fairwq_is_soon_free_locked(pool))
		return NULL;
	return fairwq_wake_locked(pool);
}

void fairwq_kick_send(struct fairwq_pool *pool, struct fairwq_runner *runner)
{
	if (!runner)
		return;
	trace_fairwq_runner(pool, runner, FAIRWQ_RUNNER_KICK);
	queue_work(pool->wq, &runner->work);
}

/* Both, and in between the lock is dropped. */
void fairwq_unlock_kick(struct fairwq_pool *pool, unsigned long flags)
{
	struct fairwq_runner *runner = fairwq_kick_locked(pool);

	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick_send(pool, runner);
}

/* Something became eligible, or more runners may run. */
void fairwq_kick(struct fairwq_pool *pool)
{
	unsigned long flags;

	rcu_read_lock();
	raw_spin_lock_irqsave(&pool->lock, flags);
	fairwq_unlock_kick(pool, flags);
	rcu_read_unlock();
}

/*
 * Something waits for turns to end: streaks end with the item that runs. No barrier: at
 * most what the runner has taken before it sees this goes on. Model:
 * tests/models/streak.pml, FLUSH and PAUSE.
 */
void fairwq_yield_locked(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;

	lockdep_assert_held(&pool->lock);

	list_for_each_entry(runner, &pool->runners, node)
		WRITE_ONCE(runner->yield, true);
}

/*
 * The runner that executes the caller, or NULL. current_work() is NULL from
 * interrupts, which may have come in on top of any item.
 */
struct fairwq_runner *fairwq_current_runner(void)
{
	struct work_struct *work = current_work();

	if (!work || work->func != READ_ONCE(fairwq_runner_fn))
		return NULL;
	return container_of(work, struct fairwq_runner, work);
}

/* The turn that a runner is in, for itself, or for who holds the lock. */
const struct fairwq_turn *fairwq_current_turn(const struct fairwq_runner *runner)
{
	return runner->turn.batch ? &runner->turn : NULL;
}

/* The turn that the caller is in, as its item; or NULL. */
const struct fairwq_turn *fairwq_own_turn(void)
{
	struct fairwq_runner *runner = fairwq_current_runner();

	return runner ? fairwq_current_turn(runner) : NULL;
}

/* Under rcu_read_lock(), or while it cannot go. */
struct fairwq_runner *fairwq_runner_find(u32 id)
{
	return xa_load(&fairwq_runners, id);
}

/* A runner that is idle and in no list. */
struct fairwq_runner *fairwq_runner_alloc(struct fairwq_pool *pool, work_func_t run)
{
	struct fairwq_runner *runner = kzalloc(sizeof(*runner), GFP_KERNEL);
	int err;

	if (!runner)
		return NULL;
	WRITE_ONCE(fairwq_runner_fn, run);	/* the same each time */
	INIT_WORK(&runner->work, run);
	fairwq_lockdep_init_runner(pool, &runner->work);
	INIT_LIST_HEAD(&runner->idle_node);
	raw_spin_lock_init(&runner->park_lock);
	INIT_LIST_HEAD(&runner->parked);
	runner->pool = pool;
	err = xa_alloc_cyclic(&fairwq_runners, &runner->id, runner, xa_limit_32b,
			      &fairwq_next_runner_id, GFP_KERNEL);
	if (err < 0) {
		kfree(runner);
		return NULL;
	}
	return runner;
}

/* The runner's work is neither queued nor running. */
void fairwq_runner_free(struct fairwq_runner *runner)
{
	xa_erase(&fairwq_runners, runner->id);
	kfree_rcu(runner, rcu);		/* fairwq_park_locked() may look at it */
}

void fairwq_runners_check(void)
{
	WARN_ON(!xa_empty(&fairwq_runners));
}
