/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tick: when the pool's timer is due. What it does then is in watchdog.c.
 *
 * Locking: pool->lock.
 */
#ifndef FAIRWQ_TICK_H
#define FAIRWQ_TICK_H

#include <linux/jiffies.h>
#include <linux/timer.h>

#include "types.h"

/* Return when to look at an item that begins now, in jiffies: after half of hung_ms. */
static inline unsigned long fairwq_tick_due_locked(const struct fairwq_pool *pool)
{
	return jiffies + 1 + msecs_to_jiffies(pool->watch.hung_ms) / 2;
}

/* Set the timer for a runner that was kicked, unless it is set already. */
static inline void fairwq_tick_arm_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	if (pool->watch.hung_ms && !timer_pending(&pool->watch.tick))
		mod_timer(&pool->watch.tick, fairwq_tick_due_locked(pool));
}

/* Set the timer to the next tick, as something waits for an item that is over at once. */
static inline void fairwq_tick_soon_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	if (pool->watch.ticking)
		return;
	pool->watch.ticking = true;
	mod_timer(&pool->watch.tick, jiffies + 1);
}

#endif /* FAIRWQ_TICK_H */
