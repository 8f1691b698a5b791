// SPDX-License-Identifier: GPL-2.0
/*
 * Watchdog: a pool's timer, which looks at its runners from outside.
 *
 *   At each look  it finds                      and
 *   ------------  ----------------------------  ---------------------------------
 *   look()        a quick turn whose item has   does not count it as quick any
 *                 run for a whole tick          more
 *                 an item that sleeps, or has   takes its seat, or gives it back,
 *                 woken up                      if nothing else does: asleep.c
 *                 an item that has not slept    does not count it as one that
 *                 since the look before         naps any more: seat.c
 *                 that no turn has begun since  lets one begin beside items that
 *                 the look before               nap
 *                 that work waits, and a seat   kicks a runner
 *                 is free
 *                 an item that has run for      reports it
 *                 longer than hung_ms
 *                 that work waits, no seat is   reports that
 *                 left, and no turn has begun
 *                 for hung_ms
 *
 *   It looks again          while
 *   ----------------------  ---------------------------------------------------
 *   at the next tick        a runner has a seat, or work waits for one
 *   HUNG_PAUSE later        an item was just reported, and there may be more
 *   half of hung_ms later   all that have begun sleep, or turns that go on after
 *                           their function fill the pool
 *
 * seat.c says what a quick turn is, and when an item loses its seat. While no
 * turn is under way nothing needs the timer. It may be due once more, and then
 * no longer. Whatever makes a runner active arms it. From then on it arms
 * itself.
 *
 * Locking: pool->lock, which is dropped to print.
 * Model: tests/models/queue.pml, QUICK. When the timer is set: no model.
 *
 * Limits: an item is reported once, with its stack; a pool reports ten a
 * second.
 */
#include <linux/export.h>
#include <linux/sched/debug.h>
#include <linux/sched/task.h>

#include "asleep.h"
#include "runner.h"
#include "seat.h"
#include "testing.h"
#include "watchdog.h"

/* Time between two reports of items that hang in one pool. */
#define HUNG_PAUSE	(HZ / 10)

/* What a look has found. */
struct look {
	struct task_struct *task;	/* a reference, of an item that hangs; or NULL */
	fairwq_func_t func;		/* of that item */
	const char *batch;		/* its name, under rcu_read_lock() */
	unsigned int ms;
	unsigned int full_ms;		/* no seat is left, and for so long no turn began; or 0 */
	unsigned long full_since;	/* jiffies: if so, when the last turn began */
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

/* Check for more than hung_ms since @then. */
static bool is_long_ago_locked(const struct fairwq_pool *pool, unsigned long then)
{
	lockdep_assert_held(&pool->lock);

	return pool->watch.hung_ms &&
	       time_after(jiffies, then + msecs_to_jiffies(pool->watch.hung_ms));
}

/* Return when to look at an item that begins now, in jiffies: after half of hung_ms. */
static unsigned long hung_due_locked(const struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	return jiffies + 1 + msecs_to_jiffies(pool->watch.hung_ms) / 2;
}

/* Look at a runner that has a turn. */
static void look_at_locked(struct fairwq_runner *runner, struct look *look)
{
	unsigned long started = READ_ONCE(runner->started);
	struct fairwq_turn *turn = &runner->turn;

	lockdep_assert_held(&runner->pool->lock);

	if (turn->quick && time_after(jiffies, started + 1))
		fairwq_seat_not_quick_locked(runner);
	fairwq_asleep_look_locked(runner);
	fairwq_seat_age_locked(runner);
	if (look->task || runner->reported == started ||
	    !is_long_ago_locked(runner->pool, started) ||
	    reported_just_now_locked(runner->pool))
		return;
	runner->reported = started;
	look->task = get_task_struct(runner->task);
	look->func = READ_ONCE(turn->func);
	look->ms = jiffies_to_msecs(jiffies - started);
	look->batch = turn->batch->name;
}

/* If the pool is full, return for how many ms no turn has begun; or 0. */
unsigned int fairwq_full_ms_locked(const struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	return fairwq_seat_is_full_locked(pool) ?
	       jiffies_to_msecs(jiffies - pool->crew.began_at) : 0;
}

/*
 * Look for turns that go on, or sleep, and leave no seat to items that wait.
 * What would end them may be among these items. Some may wake up now and then.
 * So it is no standstill if a turn has begun.
 */
static void look_for_full_locked(struct fairwq_pool *pool, struct look *look)
{
	lockdep_assert_held(&pool->lock);

	if (!fairwq_seat_is_full_locked(pool) || !pool->tree.eligible ||
	    pool->watch.full_told == pool->crew.began_at ||
	    !is_long_ago_locked(pool, pool->crew.began_at))
		return;
	look->full_since = pool->crew.began_at;
	look->full_ms = fairwq_full_ms_locked(pool);
}

static void look(struct fairwq_pool *pool, struct look *look)
{
	struct fairwq_runner *runner;

	guard(fairwq_kick)(pool);
	list_for_each_entry(runner, &pool->crew.runners, node)
		if (runner->turn.batch)
			look_at_locked(runner, look);
	look_for_full_locked(pool, look);
	pool->watch.quiet = pool->watch.number == pool->crew.turn_number ? pool->watch.number : 0;
	pool->watch.number = pool->crew.turn_number;
}

/* Report what hangs, outside the lock, because a console is slow. */
static void report(struct fairwq_pool *pool, const struct look *look)
{
	if (look->task) {
		pr_err("fairwq: BUG: item hung: %ps of batch %s/%s has been running for %u ms\n",
		       look->func, pool->name, look->batch, look->ms);
		sched_show_task(look->task);
		put_task_struct(look->task);
	}
	if (look->full_ms)
		pr_warn("fairwq: pool %s: no seat is left, and none of what waits began for %u ms\n",
			pool->name, look->full_ms);
}

/* Note what was reported, so that who sees that finds it in the log, and arm the timer. */
static void look_again(struct fairwq_pool *pool, const struct look *look)
{
	guard(raw_spinlock_irqsave)(&pool->lock);
	if (look->task) {
		pool->tally.counter[FAIRWQ_HUNG]++;
		pool->watch.hung_reported = jiffies;
	}
	if (look->full_ms)
		pool->watch.full_told = look->full_since;
	if (reported_just_now_locked(pool))
		timer_reduce(&pool->watch.tick, jiffies + HUNG_PAUSE);
	if (pool->crew.nr_active || (pool->tree.eligible && pool->crew.seats))
		timer_reduce(&pool->watch.tick, jiffies);
	else if (pool->watch.hung_ms && (pool->crew.nr_asleep || fairwq_seat_is_full_locked(pool)))
		timer_reduce(&pool->watch.tick, hung_due_locked(pool));
}

static void watchdog_fn(struct timer_list *timer)
{
	struct fairwq_pool *pool = container_of(timer, struct fairwq_pool, watch.tick);
	struct look what = { };

	guard(rcu)();			/* keeps the name of the batch */
	look(pool, &what);
	report(pool, &what);
	look_again(pool, &what);
}

/* Set hung_ms, and look again after the new time, not after the old one. Return: 0. */
int fairwq_set_hung_ms(struct fairwq_pool *pool, unsigned int hung_ms)
{
	guard(raw_spinlock_irqsave)(&pool->lock);
	pool->watch.hung_ms = hung_ms;
	/*
	 * Also if no runner is active, because the timer may be set for the old
	 * time. It does not get later: else a caller that writes again and
	 * again would hide items.
	 */
	if (hung_ms)
		timer_reduce(&pool->watch.tick, hung_due_locked(pool));
	return 0;
}

FAIRWQ_TEST_EXPORT(fairwq_set_hung_ms);

/* Set up the timer of a new pool. */
void fairwq_watchdog_init(struct fairwq_pool *pool)
{
	pool->watch.hung_ms = FAIRWQ_DFL_HUNG_MS;
	timer_setup(&pool->watch.tick, watchdog_fn, 0);
}
