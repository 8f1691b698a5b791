// SPDX-License-Identifier: GPL-2.0
/*
 * Around the function of an item: what the workqueue core does around the
 * function of a work, done again per item, since the core sees only runners.
 *
 * A lock, RCU section, preempt count, disabled interrupts or credentials that
 * an item leaves behind are reported with the item's function, and all but the
 * lock put right; an item that runs too long is reported once with its stack.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cred.h>
#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/debug.h>

#include "internal.h"

/* What an item must leave as it found it. */
struct fairwq_footing {
	int preempt;
	int locks;
	int rcu;
	const struct cred *cred;
};

static void fairwq_footing_save(struct fairwq_footing *before)
{
	before->preempt = preempt_count();
	before->locks = lockdep_depth(current);
	before->rcu = rcu_preempt_depth();
	before->cred = current_cred();
}

static bool fairwq_footing_kept(const struct fairwq_footing *before)
{
	return likely(preempt_count() == before->preempt &&
		      lockdep_depth(current) == before->locks &&
		      rcu_preempt_depth() == before->rcu &&
		      current_cred() == before->cred && !irqs_disabled());
}

static void fairwq_footing_report(const struct fairwq_footing *before,
				  fairwq_func_t func, const struct fairwq_batch *batch)
{
	pr_err("BUG: item leaked atomic, lock, RCU, irqs or creds: %ps of batch %s/%s\n"
	       "     preempt=%d->%d lock=%d->%d RCU=%d->%d irqs %s creds %s\n",
	       func, batch->pool->name, batch->name,
	       before->preempt, preempt_count(), before->locks,
	       lockdep_depth(current), before->rcu, rcu_preempt_depth(),
	       irqs_disabled() ? "off" : "on",
	       current_cred() == before->cred ? "kept" : "changed");
	debug_show_held_locks(current);
	dump_stack();
}

/* The next item must not pay for this one. A lock stays lost to its owner. */
static void fairwq_footing_repair(const struct fairwq_footing *before)
{
	if (irqs_disabled())
		local_irq_enable();
	while (rcu_preempt_depth() > before->rcu)
		rcu_read_unlock();
	if (preempt_count() != before->preempt)
		preempt_count_set(before->preempt);
	if (current_cred() != before->cred)
		revert_creds(before->cred);
}

static void fairwq_leak(const struct fairwq_footing *before, fairwq_func_t func,
			struct fairwq_batch *batch)
{
	struct fairwq_pool *pool = batch->pool;
	unsigned long flags;

	fairwq_footing_report(before, func, batch);
	fairwq_footing_repair(before);
	raw_spin_lock_irqsave(&pool->lock, flags);
	pool->counter[FAIRWQ_LEAKS]++;
	raw_spin_unlock_irqrestore(&pool->lock, flags);
}

/* Call the function of an item; @work may be gone when it returns. */
void fairwq_call(struct fairwq_work *work, fairwq_func_t func,
		 struct fairwq_batch *batch)
{
	struct fairwq_footing before;
#ifdef CONFIG_LOCKDEP
	struct lockdep_map map;

	/* A copy: the function may free the work, and lockdep needs the map. */
	lockdep_copy_map(&map, &work->lockdep_map);
#endif
	fairwq_footing_save(&before);
#ifdef CONFIG_LOCKDEP
	lock_map_acquire(&map);
#endif
	func(work);
#ifdef CONFIG_LOCKDEP
	lock_map_release(&map);
#endif
	if (!fairwq_footing_kept(&before) && !fairwq_mutant(LEAK_UNSEEN))
		fairwq_leak(&before, func, batch);
	cond_resched();
}

/* ---- items that hang -------------------------------------------------- */

static void fairwq_report_hung_locked(struct fairwq_runner *runner, u64 now)
{
	const struct fairwq_turn *turn = &runner->turn;

	lockdep_assert_held(&runner->pool->lock);

	runner->reported_hung = true;
	runner->pool->counter[FAIRWQ_HUNG]++;
	pr_err("BUG: item hung: %ps of batch %s/%s has been running for %llu ms\n",
	       turn->func, turn->batch->pool->name, turn->batch->name,
	       div_u64(now - turn->started, NSEC_PER_MSEC));
	sched_show_task(runner->task);
}

static struct fairwq_runner *fairwq_next_hung_locked(struct fairwq_pool *pool, u64 now)
{
	struct fairwq_runner *runner;
	u64 limit = (u64)pool->hung_ms * NSEC_PER_MSEC;

	lockdep_assert_held(&pool->lock);

	list_for_each_entry(runner, &pool->runners, node)
		if (runner->turn.batch && !runner->reported_hung &&
		    now - runner->turn.started > limit)
			return runner;
	return NULL;
}

static void fairwq_watchdog_fn(struct timer_list *timer)
{
	struct fairwq_pool *pool = container_of(timer, struct fairwq_pool, watchdog);
	struct fairwq_runner *runner;
	unsigned long flags;
	u64 now = fairwq_clock();

	raw_spin_lock_irqsave(&pool->lock, flags);
	if (pool->hung_ms) {
		while ((runner = fairwq_next_hung_locked(pool, now)))
			fairwq_report_hung_locked(runner, now);
	}
	if (pool->nr_active)
		fairwq_watchdog_arm_locked(pool);
	raw_spin_unlock_irqrestore(&pool->lock, flags);
}

static unsigned long fairwq_watchdog_due(const struct fairwq_pool *pool)
{
	return jiffies + 1 + msecs_to_jiffies(pool->hung_ms) / 2;
}

/* A runner was kicked: look at it after half the time that an item may take. */
void fairwq_watchdog_arm_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	if (pool->hung_ms && !timer_pending(&pool->watchdog))
		mod_timer(&pool->watchdog, fairwq_watchdog_due(pool));
}

/* Look again after the new time, not after the old one. */
void fairwq_watchdog_set(struct fairwq_pool *pool, unsigned int hung_ms)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&pool->lock, flags);
	pool->hung_ms = hung_ms;
	/* Also if nothing runs: the timer may still be set for the old time. */
	if (hung_ms)
		mod_timer(&pool->watchdog, fairwq_watchdog_due(pool));
	raw_spin_unlock_irqrestore(&pool->lock, flags);
}

void fairwq_watchdog_init(struct fairwq_pool *pool)
{
	pool->hung_ms = FAIRWQ_DFL_HUNG_MS;
	timer_setup(&pool->watchdog, fairwq_watchdog_fn, 0);
}

#ifdef FAIRWQ_TESTING
void fairwq_test_set_hung_ms(struct fairwq_pool *pool, unsigned int ms)
{
	fairwq_watchdog_set(pool, ms);
}
EXPORT_SYMBOL_GPL(fairwq_test_set_hung_ms);

/* A look at the runners now, not when the timer is due. */
void fairwq_test_watchdog(struct fairwq_pool *pool)
{
	fairwq_watchdog_fn(&pool->watchdog);
}
EXPORT_SYMBOL_GPL(fairwq_test_watchdog);
#endif
