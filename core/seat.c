// SPDX-License-Identifier: GPL-2.0
/*
 * Seats: which runners work.
 *
 *   A runner    on crew.idle  has a seat  next
 *   ----------  ------------  ----------  -------------------------------------
 *   is idle     yes           no          fairwq_seat_take_locked(): kicked
 *   is active   no            yes         fairwq_seat_leave_locked(): idle
 *                                         fairwq_seat_block(): waits
 *   waits, in   no            no          fairwq_seat_unblock(): active, also if
 *   its item                              that is one more than there are seats
 *
 * A runner is kicked as long as something waits and a seat is free, but not
 * beside a turn that is quick: the items of its batch are over at once, as a
 * rule. They end before another CPU could reach what waits. If such an item
 * takes longer for once, the pool's timer finds it within two ticks
 * (watchdog.c).
 *
 * A kick has two halves, because a wake-up under pool->lock would make others
 * wait for it:
 *
 *   fairwq_kick_locked()           choose an idle runner, if something waits
 *   raw_spin_unlock()
 *   fairwq_kick_send()             queue its work to pool->wq
 *
 * None is lost: a batch enters the tree, and a runner goes idle, only under
 * that lock.
 *
 * Locking: pool->lock.
 * Invariants: see struct fairwq_crew in runner.h.
 * Models: tests/models/queue.pml; seat.pml, for items that wait in joins.
 *
 * Limits: more than max_active runners are active for a while when items go on
 * that have waited.
 */
#include <linux/cpumask.h>

#include "seat.h"
#include "testing.h"
#include "trace.h"

/* ---- a seat is taken, and left ----------------------------------------- */

/*
 * Say whether a seat is free, for items that fork. Call this where @nr_active,
 * @max_active or @nr_async changes. Model: tests/models/seat.pml.
 */
static void update_hungry_locked(struct fairwq_pool *pool)
{
	struct fairwq_crew *crew = &pool->crew;
	bool hungry = crew->nr_active < fairwq_seats_locked(pool);

	lockdep_assert_held(&pool->lock);

	if (hungry != crew->hungry)
		WRITE_ONCE(crew->hungry, hungry);
}

/* Count @n more runners that have a seat. */
static void count_active_locked(struct fairwq_pool *pool, int n)
{
	lockdep_assert_held(&pool->lock);

	pool->crew.nr_active += n;
	update_hungry_locked(pool);
}

/* Change the number of seats. */
void fairwq_seat_set_max_locked(struct fairwq_pool *pool, unsigned int max_active)
{
	lockdep_assert_held(&pool->lock);

	pool->crew.max_active = max_active;
	count_active_locked(pool, 0);
}

/* Count @n more turns that go on after their function. */
void fairwq_seat_count_async_locked(struct fairwq_pool *pool, int n)
{
	lockdep_assert_held(&pool->lock);

	pool->crew.nr_async += n;
	pool->crew.async_at = jiffies;
	count_active_locked(pool, 0);
}

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
 * Give a seat to an idle runner, whatever waits in the tree.
 *
 * Return: the runner, for fairwq_kick_send(); NULL if none is idle or no seat
 * is free.
 */
struct fairwq_runner *fairwq_seat_take_locked(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;

	lockdep_assert_held(&pool->lock);

	if (pool->crew.nr_active >= fairwq_seats_locked(pool))
		return NULL;
	runner = idle_runner_locked(pool);
	if (!runner)
		return NULL;
	list_del_init(&runner->idle_node);
	count_active_locked(pool, 1);
	pool->tally.counter[FAIRWQ_KICKS]++;
	if (pool->watch.hung_ms)
		fairwq_tick_locked(pool, fairwq_hung_due_locked(pool));
	return runner;
}

/* The runner goes idle. It comes first, because its caches are the warmest. */
void fairwq_seat_leave_locked(struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(&pool->lock);

	runner->task = NULL;
	WRITE_ONCE(runner->started, jiffies);	/* for tune.c */
	count_active_locked(pool, -1);
	list_add(&runner->idle_node, &pool->crew.idle);
	trace_fairwq_runner(pool, runner, "idle");
}

/* ---- kicks -------------------------------------------------------------- */

/* Count the turn as one that is not over at once, whatever the others of its batch were. */
void fairwq_seat_not_quick_locked(struct fairwq_runner *runner)
{
	lockdep_assert_held(&runner->pool->lock);

	runner->pool->crew.nr_quick -= runner->turn.quick;
	runner->turn.quick = false;
}

/*
 * Check whether some runner is at an item that is over at once, as that one
 * then takes what waits. If it does not, the timer finds that. Runners that
 * have been at such items since an earlier tick do not count.
 */
bool fairwq_seat_soon_free_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	if (!pool->crew.nr_quick || time_after(jiffies, pool->crew.quick_at))
		return false;
	fairwq_tick_locked(pool, jiffies + 1);
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
	if (!fairwq_has_work_locked(pool) || fairwq_seat_soon_free_locked(pool))
		return NULL;
	return fairwq_seat_take_locked(pool);
}

/*
 * Queue the work of a runner that has a seat to the workers of @cpu. A pool
 * that is bound to a CPU keeps to the workers of that one.
 */
void fairwq_kick_send_to(struct fairwq_runner *runner, int cpu)
{
	struct fairwq_pool *pool = runner->pool;

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
	fairwq_kick_send(runner);
	rcu_read_unlock();
}

/* ---- items that wait ---------------------------------------------------- */

/*
 * Let another runner work while the item of @runner, which is the caller's,
 * waits. Model: tests/models/seat.pml.
 *
 * Return: whether there is none that could.
 */
bool fairwq_seat_block(struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_runner *kick;
	bool none;

	if (runner->nr_blocks++)
		return false;
	runner->blocked_at = fairwq_clock();
	raw_spin_lock_irq(&pool->lock);
	fairwq_seat_not_quick_locked(runner);
	count_active_locked(pool, -1);
	kick = fairwq_kick_locked(pool);
	none = !kick && list_empty(&pool->crew.idle);
	raw_spin_unlock_irq(&pool->lock);
	fairwq_kick_send(kick);
	return none;
}

/*
 * The item goes on. It must not wait for a seat: all that have one may wait for
 * a lock that it holds. If that makes one too many, another runner goes idle
 * after its turn. The item is not charged for the time since
 * fairwq_seat_block(). Model: tests/models/seat.pml.
 */
void fairwq_seat_unblock(struct fairwq_runner *runner)
{
	if (--runner->nr_blocks)
		return;
	WRITE_ONCE(runner->started, jiffies);
	scoped_guard(raw_spinlock_irq, &runner->pool->lock)
		count_active_locked(runner->pool, 1);
	if (runner->since)
		runner->since += fairwq_clock() - runner->blocked_at;
}
