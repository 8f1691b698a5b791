// SPDX-License-Identifier: GPL-2.0
/*
 * Kicks: which idle runner works next.
 *
 *   fairwq_kick_locked()           choose an idle runner, if something waits in the tree
 *   raw_spin_unlock()
 *   fairwq_kick_send()             queue its work to pool->wq
 *
 * A kick has these two halves, because a wake-up under pool->lock would make
 * others wait for it. None is lost: a batch enters the tree, and a runner goes
 * idle, only under that lock.
 *
 * More runners are kicked as long as something waits, but not for items that
 * are over at once: they end before another CPU could reach them. If such an
 * item takes longer for once, the pool's timer finds it within two ticks
 * (watchdog.c). A kick arms that timer.
 *
 * Locking: pool->lock.
 * Model: tests/models/queue.pml.
 *
 * Limits: a kick makes at most pool->crew.max_active runners active.
 */
#include <linux/cpumask.h>
#include <linux/jiffies.h>

#include "kick.h"
#include "tick.h"
#include "trace.h"

/*
 * Find the idle runner that ran last on this CPU, else the one that ran last.
 * The workqueue core may still be at the end of its last run, and then runs it
 * where that was.
 *
 * Return: the runner, or NULL if none is idle.
 */
static struct fairwq_runner *idle_runner_locked(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;
	int cpu = raw_smp_processor_id();

	lockdep_assert_held(&pool->lock);

	list_for_each_entry(runner, &pool->crew.idle, idle_node)
		if (runner->cpu == cpu)
			return runner;
	return list_first_entry_or_null(&pool->crew.idle, struct fairwq_runner, idle_node);
}

/*
 * Say whether a runner may begin a turn, for items that fork. Call this where
 * @nr_active, @max_active or @nr_async changes. Model: tests/models/seat.pml.
 */
void fairwq_kick_update_hungry_locked(struct fairwq_pool *pool)
{
	bool hungry = pool->crew.nr_active < fairwq_seats_locked(pool);

	lockdep_assert_held(&pool->lock);

	if (hungry != pool->crew.hungry)
		WRITE_ONCE(pool->crew.hungry, hungry);
}

/*
 * Make an idle runner active, whatever waits in the tree.
 *
 * Return: the runner, for fairwq_kick_send(); NULL if none is idle or as many
 * work as may.
 */
struct fairwq_runner *fairwq_kick_activate_locked(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;

	lockdep_assert_held(&pool->lock);

	if (pool->crew.nr_active >= fairwq_seats_locked(pool))
		return NULL;
	runner = idle_runner_locked(pool);
	if (!runner)
		return NULL;
	list_del_init(&runner->idle_node);
	pool->crew.nr_active++;
	fairwq_kick_update_hungry_locked(pool);
	pool->tally.counter[FAIRWQ_KICKS]++;
	fairwq_tick_arm_locked(pool);
	return runner;
}

/*
 * Check whether some runner is at an item that is over at once, as that one
 * then takes what waits. If it does not, the timer finds that. Runners that
 * have been at such items since an earlier tick do not count.
 */
bool fairwq_kick_soon_free_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	if (!pool->crew.nr_quick || time_after(jiffies, pool->crew.quick_at))
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
	if (!fairwq_has_work_locked(pool) || fairwq_kick_soon_free_locked(pool))
		return NULL;
	return fairwq_kick_activate_locked(pool);
}

/* Queue the work of a runner that fairwq_kick_locked() has chosen. */
void fairwq_kick_now(struct fairwq_pool *pool, struct fairwq_runner *runner)
{
	trace_fairwq_runner(pool, runner, "kick");
	queue_work_on(pool->cpu, pool->wq, &runner->work);
}

/*
 * Queue the work of a runner to the workers of the next CPU, because this one
 * has more to do. The workqueue core wakes a worker near the CPU that it is
 * given, and a worker that waits for this CPU takes nothing off it. A pool that
 * is bound to a CPU keeps to the workers of that one.
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
	trace_fairwq_runner(pool, runner, "kick");
	queue_work_on(cpu, pool->wq, &runner->work);
}

/*
 * Choose a runner, drop the lock, and kick it. The read-side section begins
 * under the lock, so callers need none of their own.
 */
void fairwq_kick_unlock(struct fairwq_pool *pool, unsigned long flags)
	__releases(&pool->lock)
{
	struct fairwq_runner *runner = fairwq_kick_locked(pool);

	rcu_read_lock();	/* see fairwq_kick_locked() */
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick_send(pool, runner);
	rcu_read_unlock();
}
