// SPDX-License-Identifier: GPL-2.0
/*
 * Watchdog: a pool's timer, which looks at its runners from outside.
 *
 *   It is due         while                         then it
 *   at each tick      quick turns are under way,    stops counting a turn as quick
 *                     and the other runners leave   whose item has run for a whole
 *                     the rest to them              tick, and kicks another runner
 *                                                   if work waits
 *   half of hung_ms   a runner is active, or its    reports an item that has run for
 *   later             item waits in a section that  longer than hung_ms
 *                     may block, or in a join
 *   HUNG_PAUSE later  an item was just reported     looks for the next one
 *   half of hung_ms   max_async turns go on         reports it if none has ended for
 *   later                                           hung_ms, and items wait
 *
 * A turn is quick if the items of its batch are over at once, as a rule. No
 * runner is kicked beside such turns. While no turn is under way nothing needs
 * the timer. It may be due once more, and then no longer. Kicks arm it: kick.c.
 * From then on it arms itself as long as a runner has a turn.
 *
 * Locking: pool->lock, which is dropped to print.
 * Invariant: pool->watch.ticking is set only while the timer is due at the next
 * tick.
 * Model: tests/models/queue.pml, QUICK. When the timer is set: no model.
 *
 * Limits: an item is reported once, with its stack; a pool reports ten a
 * second.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/sched/debug.h>
#include <linux/sched/task.h>
#include <linux/string.h>

#include "kick.h"
#include "runner.h"
#include "testing.h"
#include "tick.h"
#include "watchdog.h"

/* Time between two reports of items that hang in one pool. */
#define HUNG_PAUSE	(HZ / 10)

/* An item that hangs, with what its report needs when the lock was dropped. */
struct fairwq_hung {
	struct task_struct *task;	/* a reference */
	fairwq_func_t func;
	unsigned int ms;
	char batch[FAIRWQ_MAX_NAME + 1];
};

/*
 * Check whether the next report must wait. A stack takes the CPU for some
 * milliseconds, and on a slow console for much longer. Many of them at one look
 * would lock it up.
 */
static bool reported_just_now_locked(const struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	return time_in_range_open(jiffies, pool->watch.hung_reported,
				  pool->watch.hung_reported + HUNG_PAUSE);
}

/* Find an item that hangs and was not reported yet, and fill in @hung for its report. */
static bool find_hung(struct fairwq_pool *pool, struct fairwq_hung *hung)
{
	struct fairwq_runner *runner;
	unsigned long started;

	guard(raw_spinlock_irqsave)(&pool->lock);
	if (!pool->watch.hung_ms || reported_just_now_locked(pool))
		return false;
	list_for_each_entry(runner, &pool->crew.runners, node) {
		started = READ_ONCE(runner->started);
		if (!runner->turn.batch || runner->reported == started ||
		    !time_after(jiffies, started + msecs_to_jiffies(pool->watch.hung_ms)))
			continue;
		runner->reported = started;
		hung->task = get_task_struct(runner->task);
		hung->func = READ_ONCE(runner->turn.func);
		hung->ms = jiffies_to_msecs(jiffies - started);
		strscpy(hung->batch, runner->turn.batch->name, sizeof(hung->batch));
		return true;
	}
	return false;
}

/*
 * Report an item that hangs, outside the lock, because a console is slow. The
 * count is written last, so that a reader of it finds the report in the log.
 */
static void report_hung(struct fairwq_pool *pool)
{
	struct fairwq_hung hung;

	if (!find_hung(pool, &hung))
		return;
	pr_err("BUG: item hung: %ps of batch %s/%s has been running for %u ms\n",
	       hung.func, pool->name, hung.batch, hung.ms);
	sched_show_task(hung.task);
	put_task_struct(hung.task);
	guard(raw_spinlock_irqsave)(&pool->lock);
	pool->tally.counter[FAIRWQ_HUNG]++;
	pool->watch.hung_reported = jiffies;
}

/* Check for a standstill at max_async that was not reported, whether items wait or not. */
static bool is_full_locked(const struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	return pool->crew.nr_async >= pool->crew.max_async &&
	       pool->watch.async_told != pool->crew.async_at;
}

/*
 * Report, once, that max_async turns go on, and for hung_ms none of them has
 * ended while items wait. What would end them may be among these items.
 */
static void report_full(struct fairwq_pool *pool)
{
	unsigned int nr, ms;
	unsigned long due;

	scoped_guard(raw_spinlock_irqsave, &pool->lock) {
		due = pool->crew.async_at + msecs_to_jiffies(pool->watch.hung_ms);
		if (!pool->watch.hung_ms || !is_full_locked(pool) || !pool->tree.nr_eligible ||
		    !time_after(jiffies, due))
			return;
		pool->watch.async_told = pool->crew.async_at;
		nr = pool->crew.nr_async;
		ms = jiffies_to_msecs(jiffies - pool->crew.async_at);
	}
	pr_warn("pool %s: max_async reached, %u turns outstanding for %u ms, and items wait\n",
		pool->name, nr, ms);
}

/*
 * Stop counting a turn as quick if its item has seen a whole tick. Nothing
 * waits for its runner from then on.
 *
 * Return: whether there was such a turn. @turns: whether there is any turn.
 */
static bool find_slow_locked(struct fairwq_pool *pool, bool *turns)
{
	struct fairwq_runner *runner;
	bool slow = false;

	lockdep_assert_held(&pool->lock);

	*turns = false;
	list_for_each_entry(runner, &pool->crew.runners, node) {
		if (!runner->turn.batch)
			continue;
		*turns = true;
		if (!runner->turn.quick || !time_after(jiffies, READ_ONCE(runner->started) + 1))
			continue;
		fairwq_runner_not_quick_locked(runner);
		slow = true;
	}
	return slow;
}

/* Look at the runners, and arm the timer again if need be. */
static void watchdog_fn(struct timer_list *timer)
{
	struct fairwq_pool *pool = container_of(timer, struct fairwq_pool, watch.tick);
	struct fairwq_runner *kick = NULL;
	bool slow, turns;
	unsigned long flags;

	report_hung(pool);
	report_full(pool);
	raw_spin_lock_irqsave(&pool->lock, flags);
	pool->watch.ticking = false;
	slow = find_slow_locked(pool, &turns);
	if (slow && fairwq_has_work_locked(pool))
		kick = fairwq_kick_activate_locked(pool);
	if (pool->crew.nr_quick)
		fairwq_tick_soon_locked(pool);
	else if (reported_just_now_locked(pool))
		mod_timer(&pool->watch.tick, jiffies + HUNG_PAUSE);	/* there may be more */
	else if (pool->crew.nr_active || turns || is_full_locked(pool))
		fairwq_tick_arm_locked(pool);
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick_send(pool, kick);
}

/* Set hung_ms, and look again after the new time, not after the old one. Return: 0. */
int fairwq_set_hung_ms(struct fairwq_pool *pool, unsigned int hung_ms)
{
	guard(raw_spinlock_irqsave)(&pool->lock);
	pool->watch.hung_ms = hung_ms;
	/*
	 * Also if no runner is active, because the timer may be set for the old
	 * time. It must not get later: else a caller that writes again and
	 * again hides items.
	 */
	if (hung_ms)
		timer_reduce(&pool->watch.tick, fairwq_tick_due_locked(pool));
	return 0;
}

FAIRWQ_TEST_EXPORT(fairwq_set_hung_ms);

/* Set up the timer of a new pool. */
void fairwq_watchdog_init(struct fairwq_pool *pool)
{
	pool->watch.hung_ms = FAIRWQ_DFL_HUNG_MS;
	timer_setup(&pool->watch.tick, watchdog_fn, 0);
}
