// SPDX-License-Identifier: GPL-2.0
/*
 * Waiters: calls that wait for one work to run, such as fairwq_work_flush().
 *
 *   waiter->turn  Waits for                 Next
 *   ------------  ------------------------  ----------------------------------
 *   0             the turn of waiter->what  the number of that turn; NO_TURN
 *                                           if a cancel takes the work out: see
 *                                           fairwq_waiters_drop_locked()
 *   a number      the end of its functions  completed, and off the list
 *
 * Once the work has its turn, only the number counts, because the function may
 * free the work.
 *
 * And calls that wait for batches to leave, such as fairwq_batch_shutdown().
 * They are in a list of their own, since turns do not concern them.
 *
 * Locking: pool->lock.
 * Invariant: a work for which a waiter with turn 0 waits is linked, or a runner
 * moves it from a serializer to the FIFO.
 * Limits: each call but the add walks all waiters of the pool.
 */
#include <linux/completion.h>
#include <linux/list.h>

#include "types.h"

/* Number of no turn: for waiters of a work that will not have one. */
#define NO_TURN		U64_MAX

/*
 * Give the waiters of @what, a work, the number of its turn, which is taken
 * now. Return: whether there are some.
 */
bool fairwq_waiters_take_locked(struct fairwq_pool *pool, const void *what, u64 turn)
{
	struct fairwq_waiter *waiter;
	bool found = false;

	lockdep_assert_held(&pool->lock);

	list_for_each_entry(waiter, &pool->waits.works, node)
		if (waiter->what == what && !waiter->turn) {
			waiter->turn = turn;
			found = true;
		}
	return found;
}

/* Add a waiter, for turn number @turn; 0: for the next turn of its work. */
void fairwq_waiter_add_locked(struct fairwq_batch *batch, struct fairwq_waiter *waiter, u64 turn)
{
	lockdep_assert_held(&batch->pool->lock);

	waiter->for_reclaim = fairwq_is_for_reclaim(batch);
	waiter->turn = turn;
	list_add_tail(&waiter->node, &batch->pool->waits.works);
}

/* Complete the waiters for turn number @turn, whose last function has returned. */
void fairwq_waiters_done_locked(struct fairwq_pool *pool, u64 turn)
{
	struct fairwq_waiter *waiter, *next;

	lockdep_assert_held(&pool->lock);

	list_for_each_entry_safe(waiter, next, &pool->waits.works, node) {
		if (waiter->turn != turn)
			continue;
		list_del(&waiter->node);
		complete(&waiter->done);	/* @waiter may be gone from here on */
	}
}

/* Complete the waiters of @what, a work that a cancel takes out of the queue. */
void fairwq_waiters_drop_locked(struct fairwq_pool *pool, const void *what)
{
	lockdep_assert_held(&pool->lock);

	fairwq_waiters_take_locked(pool, what, NO_TURN);
	fairwq_waiters_done_locked(pool, NO_TURN);
}

/*
 * Tell the calls that wait for batches, and have none left. With @all tell the
 * others, too, because there is a work to drop.
 */
void fairwq_end_waiters_tell_locked(struct fairwq_pool *pool, bool all)
{
	struct fairwq_end_waiter *waiter;

	lockdep_assert_held(&pool->lock);

	list_for_each_entry(waiter, &pool->waits.batches, node)
		if (all || !READ_ONCE(*waiter->left))
			complete(&waiter->done);
}
