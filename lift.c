// SPDX-License-Identifier: GPL-2.0
/*
 * Lifting: an item of a high priority behind one in flight of a lower one.
 *
 * What waits in a serializer in front of an item of a higher priority is run in
 * one streak: see streak.c. But the one in flight may be in the FIFO of a batch
 * of a low priority, behind a backlog of others there. Then it is taken out of
 * it, and waits in the serializer again, in front of all others, as if it had
 * never been let go; and the pool has the serializer, until a runner comes and
 * runs a streak of it. Runners do so in turn with plans, of which a streak takes
 * about as long: what is lifted keeps nobody out.
 *
 * So the serializer says where that item is. Whoever finds it in the FIFO has
 * the lock that it is taken out of there under. If it is not in order yet, that
 * is seen to, and then it is looked at again.
 *
 * Invariant: if where == pool, @front is in the FIFO of a batch of that pool.
 */
#include "internal.h"

/* In @where, instead of a pool: a batch, for which it was let go, and this. */
#define WHERE_PUSHED	1UL

/* A serializer, of whose items one may be lifted by others; or NULL. */
static struct fairwq_serializer *fairwq_lift_of(const struct fairwq_work *work)
{
	struct fairwq_constraint *constraint = work->constraint;

	if (!constraint || !fairwq_is_serializer(constraint))
		return NULL;
	return container_of(constraint, struct fairwq_serializer, constraint);
}

/* Its next item is let go, for @batch. By who has it. */
void fairwq_lift_let_go(struct fairwq_serializer *serializer, const struct fairwq_batch *batch)
{
	if (fairwq_prio_rank(batch->prio))
		WRITE_ONCE(serializer->where, (unsigned long)batch | WHERE_PUSHED);
}

/* It has ended, or was cancelled. */
void fairwq_lift_ended(struct fairwq_serializer *serializer)
{
	if (serializer->where)
		WRITE_ONCE(serializer->where, 0);
}

/* @work is in the FIFO. */
void fairwq_lift_linked_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	struct fairwq_serializer *serializer = fairwq_lift_of(work);

	lockdep_assert_held(&batch->pool->lock);

	if (!serializer || !fairwq_prio_rank(batch->prio))
		return;
	serializer->front = work;
	WRITE_ONCE(serializer->where, (unsigned long)batch->pool);
}

/* And no longer. */
void fairwq_lift_unlinked_locked(struct fairwq_batch *batch, const struct fairwq_work *work)
{
	struct fairwq_serializer *serializer = fairwq_lift_of(work);

	lockdep_assert_held(&batch->pool->lock);

	if (serializer && !fairwq_mutant(LIFT_STALE))
		fairwq_lift_ended(serializer);
}

/* May a streak begin with @work, of @batch? */
static bool fairwq_lift_may_locked(struct fairwq_serializer *serializer,
				   struct fairwq_batch *batch, struct fairwq_work *work)
{
	raw_spinlock_t *lock = fairwq_constraint_lock(&serializer->constraint);
	bool may;

	lockdep_assert_held(&batch->pool->lock);

	if (!fairwq_serializer_is_mixed(serializer) || batch->pool->attention ||
	    (work->place & (FAIRWQ_PLACE_TAKEN | FAIRWQ_PLACE_AWAITED)) ||
	    fairwq_mutant(LIFT_IGNORED) || fairwq_mutant(LIFT_NOT_FRONT) ||
	    !fairwq_streak_may_begin_locked(batch, work))
		return false;
	raw_spin_lock(lock);
	may = fairwq_serializer_lifts_locked(serializer, fairwq_prio_rank(batch->prio),
					     FAIRWQ_LIFT_MAX - 1);
	raw_spin_unlock(lock);
	return may;
}

/* It is in no FIFO. From here on the pool has the serializer. */
static void fairwq_lift_locked(struct fairwq_serializer *serializer,
			       struct fairwq_batch *batch, struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	fairwq_serializer_put_back(serializer, work, batch);
	list_add_tail(&serializer->lifted, &batch->pool->lifted);
}

/* @work is about to be linked. Returns whether it is lifted instead. */
bool fairwq_lift_pushed_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	struct fairwq_serializer *serializer = fairwq_lift_of(work);

	lockdep_assert_held(&batch->pool->lock);

	if (!serializer || !fairwq_prio_rank(batch->prio) ||
	    !fairwq_lift_may_locked(serializer, batch, work))
		return false;
	fairwq_hold(batch);
	fairwq_lift_locked(serializer, batch, work);
	return true;
}

/* As far as it is in the FIFO, and that of a lower priority than @rank. */
static void fairwq_lift_front_locked(struct fairwq_serializer *serializer, unsigned int rank)
{
	struct fairwq_work *work = serializer->front;
	struct fairwq_batch *batch = fairwq_work_batch(atomic_long_read(&work->data));

	lockdep_assert_held(&batch->pool->lock);

	if (fairwq_prio_rank(batch->prio) <= rank ||
	    !fairwq_lift_may_locked(serializer, batch, work))
		return;
	fairwq_hold(batch);
	if (batch->max_queued)
		atomic_inc(&batch->nr_queued);
	fairwq_batch_remove_locked(batch, work);
	fairwq_lift_locked(serializer, batch, work);
}

/* It may be among what was pushed to @batch. */
static void fairwq_lift_sort_locked(struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	if ((!batch->unsorted && llist_empty(&batch->incoming)) || fairwq_mutant(LIFT_UNSORTED))
		return;
	fairwq_batch_sort_step_locked(batch);
	fairwq_batch_update_locked(batch);
}

/*
 * Push @work, that may lift what is in front of it. Under the lock of its pool
 * it does not start, so that the serializer stays while we look at it. What is
 * in the FIFO of that pool does not leave it meanwhile, and has the serializer.
 * A batch that is named there stays, as this is under rcu_read_lock(). Returns
 * whether nobody had the serializer.
 */
bool fairwq_lift_push(struct fairwq_serializer *serializer, struct fairwq_work *work)
{
	raw_spinlock_t *lock = fairwq_constraint_lock(&serializer->constraint);
	struct fairwq_batch *batch = fairwq_kept_batch(work);
	unsigned int rank = fairwq_prio_rank(batch->prio);
	struct fairwq_pool *pool = batch->pool;
	struct fairwq_runner *kick = NULL;
	unsigned long flags, where;
	bool idle;

	raw_spin_lock_irqsave(&pool->lock, flags);
	raw_spin_lock(lock);	/* nor is it cancelled */
	idle = fairwq_serializer_push(serializer, work);
	/* Of a list, if it is lifted. */
	where = idle ? 0 : data_race(READ_ONCE(serializer->where));
	raw_spin_unlock(lock);
	batch = (void *)(where & ~WHERE_PUSHED);
	if (where == (unsigned long)pool)
		fairwq_lift_front_locked(serializer, rank);
	else if ((where & WHERE_PUSHED) && batch->pool == pool)
		fairwq_lift_sort_locked(batch);
	if (!list_empty(&pool->lifted))
		kick = fairwq_kick_locked(pool);
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick_send(pool, kick);
	return idle;
}

/* A runner goes on with one. Not always, if there is something to plan. */
bool fairwq_lift_begin_locked(struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_serializer *serializer;

	lockdep_assert_held(&pool->lock);

	serializer = list_first_entry_or_null(&pool->lifted, struct fairwq_serializer, lifted);
	if (!serializer)
		return false;
	list_del(&serializer->lifted);
	serializer->front = NULL;
	serializer->where = 0;
	pool->lifted_last = true;
	fairwq_streak_begin(runner, serializer);
	return true;
}
