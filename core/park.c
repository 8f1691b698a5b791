// SPDX-License-Identifier: GPL-2.0
/*
 * Parking: one work never runs twice at once.
 *
 * A work remembers who started it last. If that runner still executes it when
 * its next turn is taken, it is parked there, still pending, and put back into
 * its batch when the function has returned. Later than then it need not be
 * looked for: what is pending cannot have been started since. The check goes
 * by the work's own memory of its run: an object that was freed by its
 * function and set up again has none, and does not wait for a stranger.
 */
#include <linux/rcupdate.h>
#include <linux/xarray.h>

#include "fifo.h"
#include "park.h"
#include "runner.h"

/* Returns whether the work was parked. */
static bool park_at(struct fairwq_runner *other, struct fairwq_batch *batch,
		    struct fairwq_work *work)
{
	bool parked;

	raw_spin_lock(&other->park_lock);
	WRITE_ONCE(other->wanted, true);
	/*
	 * Store @wanted, then load @current_work. Pairs with the full barriers in
	 * fairwq_start_item() and fairwq_end_current(): either @other sees that it is
	 * wanted, or it has stored another work by now. Model: tests/models/park.pml.
	 */
	smp_mb();
	/*
	 * The run to come sees the one that is over. Pairs with the releases in
	 * fairwq_start_item() and fairwq_end_current(). Model: tests/models/park.pml.
	 */
	parked = smp_load_acquire(&other->current_work) == work;
	if (parked) {
		fairwq_batch_park_locked(batch, work);
		list_add_tail(&work->node, &other->parked);
	} else {
		WRITE_ONCE(other->wanted, !list_empty(&other->parked));
	}
	raw_spin_unlock(&other->park_lock);
	return parked;
}

/* The runner that a work ran on last, if it runs there still. Under rcu_read_lock(). */
static struct fairwq_runner *runs_at(const struct fairwq_work *work)
{
	struct fairwq_runner *other = fairwq_runner_find(work->last_runner);

	/*
	 * If it is over, what it did is seen. Pairs with the releases in
	 * fairwq_start_item() and fairwq_end_current(). Model: tests/models/park.pml.
	 */
	return other && smp_load_acquire(&other->current_work) == work ? other : NULL;
}

/* Check whether a work runs still, on another runner than @id: the one it ran on last. */
bool fairwq_runs_elsewhere(const struct fairwq_work *work, u32 id)
{
	bool runs;

	if (!fairwq_ran_elsewhere(work, id))
		return false;
	rcu_read_lock();
	runs = runs_at(work);
	rcu_read_unlock();
	return runs;
}

/*
 * Another runner has executed the next item of @batch, and may do so still. Returns whether
 * that was parked: then the batch has another one, or none.
 */
bool fairwq_park_locked(struct fairwq_runner *runner, struct fairwq_batch *batch)
{
	struct fairwq_work *work = fairwq_head_locked(batch);
	struct fairwq_runner *other;
	bool parked;

	lockdep_assert_held(&runner->pool->lock);
	/* In one section: the other runner may go with its pool, and is not found any more. */
	rcu_read_lock();
	other = runs_at(work);
	parked = other && park_at(other, batch, work);
	rcu_read_unlock();
	return parked;
}

/* A parked work need not wait any more; it is its caller's now. */
void fairwq_unpark_work_locked(struct fairwq_work *work)
{
	struct fairwq_batch *batch = fairwq_work_batch(atomic_long_read(&work->data));
	struct fairwq_runner *other = fairwq_runner_find(work->last_runner);

	lockdep_assert_held(&batch->pool->lock);

	raw_spin_lock(&other->park_lock);
	list_del(&work->node);
	WRITE_ONCE(other->wanted, !list_empty(&other->parked));
	raw_spin_unlock(&other->park_lock);
	batch->nr_parked--;
}

/* One that is parked at any runner, of any pool. */
struct fairwq_work *fairwq_find_parked_locked(struct fairwq_batch *batch)
{
	struct fairwq_work *work, *found = NULL;
	struct fairwq_runner *runner;
	unsigned long id;

	lockdep_assert_held(&batch->pool->lock);

	rcu_read_lock();
	xa_for_each(&fairwq_runners, id, runner) {
		raw_spin_lock(&runner->park_lock);
		list_for_each_entry(work, &runner->parked, node) {
			if (fairwq_work_batch(atomic_long_read(&work->data)) != batch)
				continue;
			found = work;
			break;
		}
		raw_spin_unlock(&runner->park_lock);
		if (found)
			break;
	}
	rcu_read_unlock();
	return found;
}

/*
 * The first that need not wait any more. Not what waits for the function that
 * is about to be called: another runner would take it and park it here again,
 * any number of times. Model: tests/models/park.pml.
 */
static struct fairwq_work *parked_before(struct fairwq_runner *runner)
{
	struct fairwq_work *work;

	lockdep_assert_held(&runner->park_lock);

	list_for_each_entry(work, &runner->parked, node)
		if (work != runner->current_work)
			return work;
	return NULL;
}

static struct fairwq_work *first_parked(struct fairwq_runner *runner,
					struct fairwq_batch **batch)
{
	struct fairwq_work *work;
	unsigned long flags;

	raw_spin_lock_irqsave(&runner->park_lock, flags);
	work = parked_before(runner);
	if (work)
		*batch = fairwq_work_batch(atomic_long_read(&work->data));
	raw_spin_unlock_irqrestore(&runner->park_lock, flags);
	return work;
}

/* Unless it was cancelled, between two holds of the lock. */
static void unpark_first_locked(struct fairwq_runner *runner,
				struct fairwq_batch *batch,
				struct fairwq_work *work)
{
	bool still;

	lockdep_assert_held(&batch->pool->lock);

	raw_spin_lock(&runner->park_lock);
	still = work == parked_before(runner) &&
		batch == fairwq_work_batch(atomic_long_read(&work->data));
	raw_spin_unlock(&runner->park_lock);
	if (!still)
		return;
	fairwq_unpark_work_locked(work);
	batch->pool->counter[FAIRWQ_PARKED]++;
	fairwq_batch_put_back_locked(batch, work);
}

/*
 * The function they waited for has returned. They may be of batches of any
 * pool; the first one's is kept by it being pending, and until a grace period
 * after that.
 */
void fairwq_unpark(struct fairwq_runner *runner)
{
	struct fairwq_batch *batch;
	struct fairwq_work *work;
	struct fairwq_pool *pool;
	unsigned long flags;

	rcu_read_lock();
	while ((work = first_parked(runner, &batch))) {
		pool = batch->pool;
		raw_spin_lock_irqsave(&pool->lock, flags);
		unpark_first_locked(runner, batch, work);
		fairwq_unlock_kick(pool, flags);
	}
	rcu_read_unlock();
}
