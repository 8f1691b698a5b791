// SPDX-License-Identifier: GPL-2.0
/*
 * Lifting: an item of a high priority behind one in flight of a lower one.
 *
 * What waits in a serializer in front of an item of a higher priority is run in
 * one streak: see streak.c. But the one in flight may be in the FIFO of a batch
 * of a low priority, behind a backlog of others there. Then it is taken out of
 * it, and waits in the serializer again, in front of all others, as if it had
 * never been let go; and the pool has the serializer, until a runner comes and
 * runs a streak of it: for a slice of the pool, and in turn with plans, so that
 * what is lifted keeps nobody out. Only HIGH lifts so, as nothing is above that.
 *
 * So the serializer says where that item is, in @where: 0, if that is not known;
 * a batch, and WHERE_PUSHED, if it was let go for that; a pool, if it was put into
 * order there, in @fifo or @sorted of a batch. Whoever finds it there has the lock
 * that it is taken out under. If it is not in order yet, that is seen to, and it is
 * looked at again when it is. While the pool has the serializer it is a pointer of
 * a list, which is neither of these.
 *
 * Invariant: if @where is a pool, @front is linked in a batch of it.
 * Invariant: a batch that is named in @where has an item that has not ended.
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

/*
 * Does HIGH wait behind @work, of @batch, so that a streak is to begin with that?
 * It was not cancelled: what is linked never was, what is about to be has been asked.
 */
static bool fairwq_lift_may_locked(struct fairwq_serializer *serializer,
				   struct fairwq_batch *batch, struct fairwq_work *work)
{
	raw_spinlock_t *lock = fairwq_constraint_lock(&serializer->constraint);
	bool may;

	lockdep_assert_held(&batch->pool->lock);

	if (!fairwq_prio_rank(batch->prio) || !serializer->seen[FAIRWQ_PRIO_HIGH] ||
	    batch->pool->attention ||
	    (work->place & (FAIRWQ_PLACE_TAKEN | FAIRWQ_PLACE_AWAITED)) ||
	    fairwq_mutant(LIFT_IGNORED) || fairwq_mutant(LIFT_NOT_FRONT) ||
	    !fairwq_streak_may_begin_locked(batch, work))
		return false;
	raw_spin_lock(lock);
	may = fairwq_serializer_high_waits_locked(serializer, FAIRWQ_LIFT_MAX - 1);
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

	if (!serializer || !fairwq_lift_may_locked(serializer, batch, work))
		return false;
	fairwq_hold(batch);
	fairwq_lift_locked(serializer, batch, work);
	return true;
}

/* It is linked. */
static void fairwq_lift_front_locked(struct fairwq_serializer *serializer)
{
	struct fairwq_work *work = serializer->front;
	struct fairwq_batch *batch = fairwq_work_batch(atomic_long_read(&work->data));

	lockdep_assert_held(&batch->pool->lock);

	if (!fairwq_lift_may_locked(serializer, batch, work))
		return;
	fairwq_hold(batch);
	fairwq_batch_remove_locked(batch, work);
	if (batch->max_queued)
		atomic_inc(&batch->nr_queued);
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
 * Push @work, of HIGH, that may lift what is in front of it, under the lock of its pool,
 * so that it does not start. Returns what the serializer says, or 0 if nobody had
 * it. Under the other lock, too, so that it is not cancelled, and the serializer
 * stays until we have looked.
 */
static unsigned long fairwq_lift_push_locked(struct fairwq_serializer *serializer,
					     struct fairwq_work *work, bool *idle)
{
	raw_spinlock_t *lock = fairwq_constraint_lock(&serializer->constraint);
	unsigned long where = 0;

	lockdep_assert_held(&fairwq_kept_batch(work)->pool->lock);

	raw_spin_lock(lock);
	*idle = fairwq_serializer_push(serializer, work);
	if (!*idle) {
		fairwq_serializer_sort_locked(serializer);
		/* As others have it, it may be a pointer of a list by now. */
		where = data_race(READ_ONCE(serializer->where));
	}
	raw_spin_unlock(lock);
	return where;
}

/*
 * The same, and lift it. What is linked in that pool is so as long as we have the
 * lock, and so has the serializer. A batch that is named stays, as this is under
 * rcu_read_lock(). Returns whether nobody had the serializer: the caller has it.
 */
bool fairwq_lift_push(struct fairwq_serializer *serializer, struct fairwq_work *work)
{
	struct fairwq_pool *pool = fairwq_kept_batch(work)->pool;
	struct fairwq_runner *kick = NULL;
	struct fairwq_batch *batch;
	unsigned long flags, where;
	bool idle;

	local_irq_save(flags);
	/* Most of it. Here it keeps nobody from the lock. */
	fairwq_serializer_sort(serializer);
	raw_spin_lock(&pool->lock);
	where = fairwq_lift_push_locked(serializer, work, &idle);
	batch = (void *)(where & ~WHERE_PUSHED);
	if (where == (unsigned long)pool)
		fairwq_lift_front_locked(serializer);
	else if ((where & WHERE_PUSHED) && batch->pool == pool)
		fairwq_lift_sort_locked(batch);
	/* Who was about to tell of a push may have seen that we looked. */
	if (where && !fairwq_mutant(LIFT_UNKICKED))
		kick = fairwq_kick_locked(pool);
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick_send(pool, kick);
	return idle;
}

/* ---- the runner's part -------------------------------------------------- */

/* The runner goes on with one, if there is any. */
bool fairwq_lift_begin_locked(struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_serializer *serializer;

	lockdep_assert_held(&pool->lock);

	serializer = list_first_entry_or_null(&pool->lifted, struct fairwq_serializer, lifted);
	if (likely(!serializer))
		return false;
	list_del(&serializer->lifted);
	serializer->front = NULL;
	WRITE_ONCE(serializer->where, 0);
	pool->lifted_last = true;
	fairwq_streak_begin(runner, serializer);
	/* A slice is for what is lifted, and no more than that. */
	runner->streak.budget = 0;
	runner->streak.lifted = true;
	return true;
}
