// SPDX-License-Identifier: GPL-2.0
/*
 * Lockdep: the maps that make it report a deadlock when its shape first appears, and
 * not when it strikes.
 *
 *   Map                   Held around                     Taken for a moment by
 *   of a pool             each item, each released()      a call that waits for the
 *                                                         pool or one of its batches
 *   of a constraint       each item of it                 a call that waits for it
 *   of a work (call.h)    its function                    a call that waits for it
 *
 * One map for all batches of a pool is right, because they share its runners. To wait
 * for one batch with a lock held that items of another batch take can hang for good.
 *
 * The runners of a pool have a class of their own, because an item may destroy
 * another pool and wait for its workqueue.
 *
 * Locking: none.
 * Invariant: the map of a constraint is taken inside that of the pool.
 */
#include <linux/rcupdate.h>

#include "lockdep.h"

#ifdef CONFIG_LOCKDEP
/* Set up the keys and the map of a pool. */
void fairwq_lockdep_init_pool(struct fairwq_pool *pool)
{
	lockdep_register_key(&pool->runner_key);
	lockdep_register_key(&pool->wait_key);
	lockdep_init_map(&pool->lockdep_map, "(fairwq_pool)", &pool->wait_key, 0);
}

/* Give the keys of a pool back. No runner may be left. May sleep. */
void fairwq_lockdep_exit_pool(struct fairwq_pool *pool)
{
	/* A flush that has not seen its batch reaped may use the map: fairwq_batch_flush(). */
	synchronize_rcu();
	lockdep_unregister_key(&pool->runner_key);
	lockdep_unregister_key(&pool->wait_key);
}

/* Put the work of a runner into the class of its pool's runners. */
void fairwq_lockdep_init_runner(struct fairwq_pool *pool, struct work_struct *work)
{
	lockdep_init_map(&work->lockdep_map, "(fairwq_runner)", &pool->runner_key, 0);
}

/* Begin the function of an item, or released(). */
void fairwq_lockdep_run(struct fairwq_pool *pool)
{
	lock_map_acquire(&pool->lockdep_map);
}

/* End what fairwq_lockdep_run() has begun. */
void fairwq_lockdep_ran(struct fairwq_pool *pool)
{
	lock_map_release(&pool->lockdep_map);
}

/* Tell lockdep that the caller is about to wait for items of the pool. */
void fairwq_lockdep_wait(struct fairwq_pool *pool)
{
	lock_map_acquire(&pool->lockdep_map);
	lock_map_release(&pool->lockdep_map);
}

/*
 * Begin the function of an item of @constraint, or of none, after the map of the pool.
 * So an item of the pool may wait for a constraint, which lockdep cannot judge.
 */
void fairwq_lockdep_run_constrained(struct fairwq_constraint *constraint)
{
	if (constraint)
		lock_map_acquire(&constraint->lockdep_map);
}

/* End what fairwq_lockdep_run_constrained() has begun. */
void fairwq_lockdep_ran_constrained(struct fairwq_constraint *constraint)
{
	if (constraint)
		lock_map_release(&constraint->lockdep_map);
}

/* Tell lockdep that the caller is about to wait for items of @constraint. */
void fairwq_lockdep_wait_constrained(struct fairwq_constraint *constraint)
{
	lock_map_acquire(&constraint->lockdep_map);
	lock_map_release(&constraint->lockdep_map);
}
#endif
