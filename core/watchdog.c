// SPDX-License-Identifier: GPL-2.0
/*
 * A pool's timer: a look at its runners from outside.
 *
 * While something waits, and no runner was kicked because one is at an item that
 * is over at once, as a rule, it is due each jiffy. It kicks a runner when such an
 * item has seen a whole tick. Otherwise it is due when an item may have been
 * running for too long, which is reported once per item, with its stack, and ten
 * times a second at most. While no runner is active nothing needs it: it may be due
 * once more, and then no longer. Model: tests/models/queue.pml, QUICK.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/sched/debug.h>
#include <linux/sched/task.h>
#include <linux/string.h>

#include "runner.h"
#include "testing.h"
#include "watchdog.h"

/* Between two reports of items that hang, of one pool. */
#define HUNG_PAUSE	(HZ / 10)

/* An item that hangs, with what its report needs after the lock is dropped. */
struct fairwq_hung {
	struct task_struct *task;	/* a reference */
	fairwq_func_t func;
	unsigned int ms;
	char batch[32];
};

static bool is_hung_locked(const struct fairwq_runner *runner)
{
	unsigned long started = READ_ONCE(runner->started);

	return runner->task && runner->reported != started &&
	       time_after(jiffies, started + msecs_to_jiffies(runner->pool->hung_ms));
}

/* One that was not reported yet. */
static bool find_hung_locked(struct fairwq_pool *pool, struct fairwq_hung *hung)
{
	const struct fairwq_turn *turn;
	struct fairwq_runner *runner;
	struct fairwq_batch *batch;

	lockdep_assert_held(&pool->lock);

	list_for_each_entry(runner, &pool->runners, node) {
		turn = fairwq_current_turn(runner);
		batch = turn ? turn->batch : NULL;
		if (!batch || !is_hung_locked(runner))
			continue;
		runner->reported = READ_ONCE(runner->started);
		hung->task = get_task_struct(runner->task);
		hung->func = READ_ONCE(turn->func);
		hung->ms = jiffies_to_msecs(jiffies - runner->reported);
		strscpy(hung->batch, batch->name, sizeof(hung->batch));
		return true;
	}
	return false;
}

/*
 * Check whether the next report has to wait. A stack takes the CPU for some
 * milliseconds, and on a slow console for much longer: all in one look would
 * lock it up if many items hang.
 */
static bool reported_just_now_locked(const struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	return time_in_range_open(jiffies, pool->hung_reported,
				  pool->hung_reported + HUNG_PAUSE);
}

/* Find an item to report. */
static bool next_hung(struct fairwq_pool *pool, struct fairwq_hung *hung)
{
	unsigned long flags;
	bool found;

	raw_spin_lock_irqsave(&pool->lock, flags);
	found = pool->hung_ms && !reported_just_now_locked(pool) &&
		find_hung_locked(pool, hung);
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	return found;
}

/*
 * Report one item. A console is slow, so nothing is printed under the lock. The
 * count is written last: a reader of it finds the report in the log.
 */
static void report_hung(struct fairwq_pool *pool)
{
	struct fairwq_hung hung;
	unsigned long flags;

	while (next_hung(pool, &hung)) {
		pr_err("BUG: item hung: %ps of batch %s/%s has been running for %u ms\n",
		       hung.func, pool->name, hung.batch, hung.ms);
		sched_show_task(hung.task);
		put_task_struct(hung.task);
		raw_spin_lock_irqsave(&pool->lock, flags);
		pool->counter[FAIRWQ_HUNG]++;
		pool->hung_reported = jiffies;
		raw_spin_unlock_irqrestore(&pool->lock, flags);
	}
}

/* An item that is over at once, as a rule, has seen a whole tick. */
static bool is_slow_locked(const struct fairwq_pool *pool)
{
	const struct fairwq_runner *runner;

	lockdep_assert_held(&pool->lock);

	if (!pool->nr_quick)
		return false;
	list_for_each_entry(runner, &pool->runners, node)
		if (runner->turn.batch && runner->turn.quick &&
		    time_after(jiffies, READ_ONCE(runner->started) + 1))
			return true;
	return false;
}

static void tick_fn(struct timer_list *timer)
{
	struct fairwq_pool *pool = container_of(timer, struct fairwq_pool, tick);
	struct fairwq_runner *kick = NULL;
	bool slow;
	unsigned long flags;

	report_hung(pool);
	raw_spin_lock_irqsave(&pool->lock, flags);
	pool->ticking = false;
	slow = is_slow_locked(pool);
	if (slow && fairwq_has_work_locked(pool))
		kick = fairwq_wake_locked(pool);
	if (pool->nr_quick && !slow)
		fairwq_tick_soon_locked(pool);
	else if (reported_just_now_locked(pool))
		mod_timer(&pool->tick, jiffies + HUNG_PAUSE);	/* there may be more */
	else if (pool->nr_active)
		fairwq_tick_arm_locked(pool);
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick_send(pool, kick);
}

/* Look again after the new time, not after the old one. */
void fairwq_set_hung_ms(struct fairwq_pool *pool, unsigned int hung_ms)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&pool->lock, flags);
	pool->hung_ms = hung_ms;
	/*
	 * Also if nothing runs: the timer may still be set for the old time. Never
	 * later than that, or who writes it again and again would see nothing.
	 */
	if (hung_ms)
		timer_reduce(&pool->tick, fairwq_hung_due_locked(pool));
	raw_spin_unlock_irqrestore(&pool->lock, flags);
}

void fairwq_tick_init(struct fairwq_pool *pool)
{
	pool->hung_ms = FAIRWQ_DFL_HUNG_MS;
	timer_setup(&pool->tick, tick_fn, 0);
}

#ifdef FAIRWQ_TESTING
void fairwq_test_set_hung_ms(struct fairwq_pool *pool, unsigned int ms)
{
	fairwq_set_hung_ms(pool, ms);
}
EXPORT_SYMBOL_GPL(fairwq_test_set_hung_ms);

/* A look at the runners now, not when the timer is due. */
void fairwq_test_tick(struct fairwq_pool *pool)
{
	tick_fn(&pool->tick);
}
EXPORT_SYMBOL_GPL(fairwq_test_tick);
#endif
