// SPDX-License-Identifier: GPL-2.0
/*
 * What lockdep is told, so that a deadlock is reported the first time its
 * shape appears, and not when it strikes.
 *
 * Every pool has a map that is held around each of its items, and taken for a
 * moment by whoever waits for the pool or one of its batches. One map for all
 * batches of a pool is right: they share its runners, so that waiting for one
 * batch with a lock held that the items of another take can hang for good.
 *
 * The runners of a pool have a class of their own: an item may destroy another
 * pool, and wait for its workqueue.
 */
#include <linux/rcupdate.h>

#include "lockdep.h"

#ifdef CONFIG_LOCKDEP
void fairwq_lockdep_init_pool(struct fairwq_pool *pool)
{
	lockdep_register_key(&pool->runner_key);
	lockdep_register_key(&pool->wait_key);
	lockdep_init_map(&pool->lockdep_map, "(fairwq_pool)", &pool->wait_key, 0);
}

void fairwq_lockdep_exit_pool(struct fairwq_pool *pool)
{
	/* A flush that has not seen its batch reaped may use the map: fairwq_batch_flush(). */
	synchronize_rcu();
	lockdep_unregister_key(&pool->runner_key);
	lockdep_unregister_key(&pool->wait_key);
}

void fairwq_lockdep_init_runner(struct fairwq_pool *pool, struct work_struct *work)
{
	lockdep_init_map(&work->lockdep_map, "(fairwq_runner)", &pool->runner_key, 0);
}

/* Around the function of an item, and around released(). */
void fairwq_lockdep_run(struct fairwq_pool *pool)
{
	lock_map_acquire(&pool->lockdep_map);
}

void fairwq_lockdep_ran(struct fairwq_pool *pool)
{
	lock_map_release(&pool->lockdep_map);
}

/* The caller is about to wait for items of the pool. */
void fairwq_lockdep_wait(struct fairwq_pool *pool)
{
	lock_map_acquire(&pool->lockdep_map);
	lock_map_release(&pool->lockdep_map);
}

/*
 * The same for the items of one constraint: after the pool's map, so that an
 * item of the pool may wait for a constraint, which lockdep cannot judge.
 */
void fairwq_lockdep_run_constrained(struct fairwq_constraint *constraint)
{
	if (constraint)
		lock_map_acquire(&constraint->lockdep_map);
}

void fairwq_lockdep_ran_constrained(struct fairwq_constraint *constraint)
{
	if (constraint)
		lock_map_release(&constraint->lockdep_map);
}

void fairwq_lockdep_wait_constrained(struct fairwq_constraint *constraint)
{
	lock_map_acquire(&constraint->lockdep_map);
	lock_map_release(&constraint->lockdep_map);
}
#endif
