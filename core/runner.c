// SPDX-License-Identifier: GPL-2.0
/*
 * Runners: which are idle, which is kicked, and which one executes the caller.
 *
 *   idle      on pool->idle_runners
 *    |  fairwq_activate_locked()
 *   active    kicked: fairwq_kick_send() queues its work to pool->wq
 *    |        running: the main loop (run.c)
 *    |  go_idle_locked() in run.c
 *   idle
 *
 * tune.c adds runners to a pool, and frees those that are too many and idle for long.
 *
 * A kick has two halves. Under the lock a runner is chosen, if something waits in
 * the tree. The caller sends it after it has dropped the lock. No wake-up is lost,
 * because a batch enters the tree, and a runner goes idle, only under that lock.
 *
 * More runners are kicked as long as something waits, but not for items that are
 * over at once. Another CPU takes longer to get at them than they take. If such
 * an item takes longer for once, the pool's timer finds it within two ticks
 * (watchdog.c). That timer is armed here, because a kick has to do it.
 *
 * Locking: pool->lock. fairwq_runners has a lock of its own, and is read under RCU.
 * Invariant: a runner is on pool->idle_runners iff it is neither kicked nor running.
 * Invariant: between fairwq_runner_block() and fairwq_runner_unblock() a runner is not
 * counted in pool->nr_active.
 * Models: tests/models/queue.pml; seat.pml for items that wait in joins.
 *
 * Limits: a kick makes at most pool->max_active runners active.
 */
#include <linux/cpumask.h>
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "runner.h"
#include "trace.h"

/* All runners by id, so that a work can name its last runner without a pointer. */
DEFINE_XARRAY_ALLOC1(fairwq_runners);

static u32 fairwq_next_runner_id;

/* The main loop of all runners. Its file is above this one, so it is handed in. */
static work_func_t fairwq_runner_fn;

/* ---- kicks, and the timer behind them --------------------------------- */

/*
 * Find the idle runner that ran last on this CPU, else the one that ran last. The
 * workqueue core may still be at the end of its last run, and then runs it where
 * that was.
 *
 * Return: the runner, or NULL if none is idle.
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

/* Return when to look at an item that begins now, in jiffies: after half of hung_ms. */
unsigned long fairwq_tick_due_locked(const struct fairwq_pool *pool)
{
	return jiffies + 1 + msecs_to_jiffies(pool->hung_ms) / 2;
}

/* Set the timer for a runner that was kicked, unless it is set already. */
void fairwq_tick_arm_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	if (pool->hung_ms && !timer_pending(&pool->tick))
		mod_timer(&pool->tick, fairwq_tick_due_locked(pool));
}

/* Set the timer to the next tick, as something waits for an item that is over at once. */
void fairwq_tick_soon_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	if (pool->ticking)
		return;
	pool->ticking = true;
	mod_timer(&pool->tick, jiffies + 1);
}

/*
 * Say whether a runner is free, for items that fork. Also forget that a batch waits
 * for one: the next kick in vain finds that again. Call this where @nr_active or
 * @max_active changes. Model: tests/models/seat.pml.
 */
void fairwq_runners_changed_locked(struct fairwq_pool *pool)
{
	unsigned int call = pool->call & FAIRWQ_CALL_WANTED;

	lockdep_assert_held(&pool->lock);

	if (pool->nr_active < pool->max_active)
		call = FAIRWQ_CALL_HUNGRY;
	if (call == pool->call)
		return;
	WRITE_ONCE(pool->call, call);
	/* An item that does not look up may have forks for the runner that is free. */
	if (call & FAIRWQ_CALL_HUNGRY && pool->forks)
		fairwq_tick_soon_locked(pool);
}

/*
 * Make an idle runner active, whatever waits in the tree.
 *
 * Return: the runner, for fairwq_kick_send(); NULL if none is idle or max_active
 * runners work already.
 */
struct fairwq_runner *fairwq_activate_locked(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;

	lockdep_assert_held(&pool->lock);

	if (pool->nr_active >= pool->max_active) {
		if (!pool->call)
			WRITE_ONCE(pool->call, FAIRWQ_CALL_WANTED);
		return NULL;
	}
	runner = idle_runner_locked(pool);
	if (!runner)
		return NULL;
	list_del_init(&runner->idle_node);
	pool->nr_active++;
	fairwq_runners_changed_locked(pool);
	pool->counter[FAIRWQ_KICKS]++;
	fairwq_tick_arm_locked(pool);
	return runner;
}

/*
 * Check whether some runner is at an item that is over at once, as that one then
 * takes what waits. If it does not, the timer finds that. Runners that have been
 * at such items since an earlier tick do not count.
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
 * Choose an idle runner for what waits in the tree.
 *
 * The caller must pass it to fairwq_kick_send() after it has dropped the lock.
 * Other runners may drain the pool between the two. So both must be in one RCU
 * read-side section, unless the caller is a worker of the pool. The pool's
 * destruction waits for such sections if it finds a runner active.
 *
 * Return: the runner, or NULL if no other one is needed, idle or allowed.
 */
struct fairwq_runner *fairwq_kick_locked(struct fairwq_pool *pool)
{
	if (!fairwq_has_work_locked(pool) || fairwq_is_soon_free_locked(pool))
		return NULL;
	return fairwq_activate_locked(pool);
}

/* Queue the work of a runner that fairwq_kick_locked() has chosen. */
void fairwq_kick_now(struct fairwq_pool *pool, struct fairwq_runner *runner)
{
	trace_fairwq_runner(pool, runner, FAIRWQ_RUNNER_KICK);
	queue_work_on(pool->cpu, pool->wq, &runner->work);
}

/*
 * Queue the work of a runner to the workers of the next CPU, because this one has more
 * to do. The workqueue core wakes a worker near the CPU that it is given, and a worker
 * that waits for this CPU takes nothing off it. A pool that is bound to a CPU keeps to
 * the workers of that one.
 */
void fairwq_kick_next_cpu(struct fairwq_pool *pool, struct fairwq_runner *runner)
{
	unsigned int cpu = cpumask_next(raw_smp_processor_id(), cpu_online_mask);

	if (!runner)
		return;
	if (cpu >= nr_cpu_ids)
		cpu = cpumask_first(cpu_online_mask);
	if (pool->cpu != WORK_CPU_UNBOUND)
		cpu = pool->cpu;
	trace_fairwq_runner(pool, runner, FAIRWQ_RUNNER_KICK);
	queue_work_on(cpu, pool->wq, &runner->work);
}

/*
 * Choose a runner, drop the lock, and kick it. The read-side section begins under the lock,
 * so callers need none of their own.
 */
void fairwq_unlock_kick(struct fairwq_pool *pool, unsigned long flags)
	__releases(&pool->lock)
{
	struct fairwq_runner *runner = fairwq_kick_locked(pool);

	rcu_read_lock();	/* see fairwq_kick_locked() */
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick_send(pool, runner);
	rcu_read_unlock();
}

/*
 * Ask the bursts that have a turn of @batch to end with the item that runs, because
 * something waits for turns of it to end. The bursts of others go on. No barrier is
 * needed: a runner goes on with at most what it has taken before it sees this. Model:
 * tests/models/burst.pml, FLUSH and PAUSE.
 */
void fairwq_yield_locked(struct fairwq_batch *batch)
{
	struct fairwq_runner *runner;

	lockdep_assert_held(&batch->pool->lock);

	list_for_each_entry(runner, &batch->pool->runners, node)
		if (runner->turn.batch == batch)
			WRITE_ONCE(runner->yield, true);
}

/* ---- items that wait --------------------------------------------------- */

/* Count the turn as one that is not over at once, whatever the others of its batch were. */
void fairwq_not_quick_locked(struct fairwq_runner *runner)
{
	lockdep_assert_held(&runner->pool->lock);

	runner->pool->nr_quick -= runner->turn.quick;
	runner->turn.quick = false;
}

/*
 * Give the place of the runner among the active ones away. Model: tests/models/seat.pml.
 *
 * Return: the runner to kick, or NULL.
 */
struct fairwq_runner *fairwq_runner_leave_locked(struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(&pool->lock);

	fairwq_not_quick_locked(runner);
	pool->nr_active--;
	fairwq_runners_changed_locked(pool);
	return fairwq_kick_locked(pool);
}

/*
 * Make the runner active again, also if that makes one too many. It must not wait for a
 * place: all that have one may wait for a lock that it holds. Then another runner goes
 * idle after its turn. Model: tests/models/seat.pml.
 */
void fairwq_runner_return_locked(struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(&pool->lock);

	pool->nr_active++;
	fairwq_runners_changed_locked(pool);
	fairwq_tick_arm_locked(pool);	/* it may be the only one */
	WRITE_ONCE(runner->started, jiffies);
}

/*
 * Let another runner work while the item of @runner, which is the caller's, waits.
 *
 * Return: whether there is none that could.
 */
bool fairwq_runner_block(struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_runner *kick;
	bool none;

	if (runner->nr_blocks++)
		return false;
	runner->blocked_at = fairwq_clock();
	raw_spin_lock_irq(&pool->lock);
	kick = fairwq_runner_leave_locked(runner);
	none = !kick && list_empty(&pool->idle_runners);
	raw_spin_unlock_irq(&pool->lock);
	fairwq_kick_send(pool, kick);
	return none;
}

/* The item goes on. It is not charged for the time since fairwq_runner_block(). */
void fairwq_runner_unblock(struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;

	if (--runner->nr_blocks)
		return;
	raw_spin_lock_irq(&pool->lock);
	fairwq_runner_return_locked(runner);
	raw_spin_unlock_irq(&pool->lock);
	if (runner->since)
		runner->since += fairwq_clock() - runner->blocked_at;
}

/* ---- the runner that executes the caller ------------------------------ */

/*
 * Return the runner that executes the caller, or NULL. An interrupt gets NULL, also
 * on top of an item, because current_work() is NULL there.
 */
struct fairwq_runner *fairwq_current_runner(void)
{
	struct work_struct *work = current_work();

	if (!work || work->func != READ_ONCE(fairwq_runner_fn))
		return NULL;
	return container_of(work, struct fairwq_runner, work);
}

/*
 * Return the runner of the item that the caller is a part of, or NULL. That of a stolen
 * task is the one whose item has forked it: it stays there until the task is joined.
 */
struct fairwq_runner *fairwq_item_runner(void)
{
	struct fairwq_runner *runner = fairwq_current_runner();

	while (runner && runner->cell)
		runner = runner->cell->runner;
	return runner;
}

/*
 * Check whether the caller is a part of an item of @constraint, or a task of one. The
 * turn of such an item may end in a join meanwhile, so the lock is held.
 */
bool fairwq_item_is_of(const struct fairwq_constraint *constraint)
{
	struct fairwq_runner *runner = fairwq_item_runner();
	unsigned long flags;
	bool is;

	if (!runner)
		return false;
	raw_spin_lock_irqsave(&runner->pool->lock, flags);
	is = runner->turn.batch && runner->turn.constraint == constraint;
	raw_spin_unlock_irqrestore(&runner->pool->lock, flags);
	return is;
}

/* Return the turn of @runner, or NULL. For that runner, or under the lock of its pool. */
const struct fairwq_turn *fairwq_current_turn(const struct fairwq_runner *runner)
{
	return runner->turn.batch ? &runner->turn : NULL;
}

/* Return the turn whose item the caller is, or NULL. */
const struct fairwq_turn *fairwq_own_turn(void)
{
	struct fairwq_runner *runner = fairwq_current_runner();

	return runner ? fairwq_current_turn(runner) : NULL;
}

/* ---- setting up and freeing ------------------------------------------- */

/* Return the runner with @id, or NULL. Under rcu_read_lock(), or while it must stay. */
struct fairwq_runner *fairwq_runner_find(u32 id)
{
	return xa_load(&fairwq_runners, id);
}

/*
 * Set up a runner with the main loop @run. It is idle and in no list.
 *
 * Return: the runner, or NULL if there is no memory.
 */
struct fairwq_runner *fairwq_runner_alloc(struct fairwq_pool *pool, work_func_t run)
{
	struct fairwq_runner *runner = kzalloc(sizeof(*runner), GFP_KERNEL);
	int err;

	if (!runner)
		return NULL;
	WRITE_ONCE(fairwq_runner_fn, run);	/* each call stores the same */
	INIT_WORK(&runner->work, run);
	lockdep_init_map(&runner->work.lockdep_map, "(fairwq_runner)", &pool->runner_key, 0);
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

/* Free a runner. Its work must be neither queued nor running. */
void fairwq_runner_free(struct fairwq_runner *runner)
{
	xa_erase(&fairwq_runners, runner->id);
	kfree(runner->forker);
	kfree_rcu(runner, rcu);		/* executing_runner() and await_running() may look at it */
}

/* Warn if the module is unloaded while a runner exists. */
void fairwq_runners_check(void)
{
	WARN_ON(!xa_empty(&fairwq_runners));
}
