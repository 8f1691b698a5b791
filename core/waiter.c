// SPDX-License-Identifier: GPL-2.0
/*
 * Waiters: calls that wait for one work to have run, such as fairwq_work_flush().
 *
 * A waiter names its work until a turn takes that, and the number of the turn from
 * then on, because the function of the work may free it.
 *
 * Locking: pool->lock.
 */
#include <linux/completion.h>
#include <linux/list.h>

#include "waiter.h"

/* What is over without one. */
#define NO_TURN		U64_MAX

/* The work that they wait for has its turn. */
void fairwq_waiters_take_locked(struct fairwq_pool *pool, const struct fairwq_work *work,
				u64 turn)
{
	struct fairwq_waiter *waiter;

	lockdep_assert_held(&pool->lock);

	list_for_each_entry(waiter, &pool->waiters, node)
		if (waiter->work == work && !waiter->turn)
			waiter->turn = turn;
}

void fairwq_waiter_add_locked(struct fairwq_pool *pool, struct fairwq_waiter *waiter,
			      u64 turn)
{
	lockdep_assert_held(&pool->lock);

	waiter->turn = turn;
	list_add_tail(&waiter->node, &pool->waiters);
}

/* The turn is over. */
void fairwq_waiters_done_locked(struct fairwq_pool *pool, u64 turn)
{
	struct fairwq_waiter *waiter, *next;

	lockdep_assert_held(&pool->lock);

	list_for_each_entry_safe(waiter, next, &pool->waiters, node) {
		if (waiter->turn != turn)
			continue;
		list_del(&waiter->node);
		complete(&waiter->done);	/* @waiter is gone from here on */
	}
}

/* A work that waits for its turn will not have it. */
void fairwq_waiters_drop_locked(struct fairwq_pool *pool,
				const struct fairwq_work *work)
{
	lockdep_assert_held(&pool->lock);

	if (!(work->place & FAIRWQ_PLACE_AWAITED))
		return;
	fairwq_waiters_take_locked(pool, work, NO_TURN);
	fairwq_waiters_done_locked(pool, NO_TURN);
}
