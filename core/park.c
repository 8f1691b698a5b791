// SPDX-License-Identifier: GPL-2.0
/*
 * Parking: one work never runs twice at once.
 *
 *   in its batch --> parked at the runner that executes it --> in its batch
 *        its turn is taken                       the function has returned
 *
 * A work names the runner that started it last. If that runner still executes
 * it when its next turn is taken, the work is parked there. It stays pending.
 * When the function has returned, the runner puts it back at the head of its
 * batch, behind tasks. One look is enough, because a pending work cannot have
 * been started since.
 *
 * A function may free its object, which is then set up again at the same
 * address. Such a work has no last runner, so it does not wait for the one that
 * still executes.
 *
 * Locking: runner->park_lock for the list of one runner. A work gets into the
 * list and out of it under the pool->lock of its batch, too. That may be any
 * pool's.
 * Model: tests/models/park.pml.
 *
 * Limits: to find all parked works of a batch all runners of all pools are
 * looked at.
 */
#include <linux/rcupdate.h>
#include <linux/xarray.h>

#include "fifo.h"
#include "park.h"
#include "runner.h"
#include "seat.h"

/* ---- parking ---------------------------------------------------------- */

/* Check whether a work still runs, and on another runner than @id; 0 is none. */
bool fairwq_park_runs_elsewhere(const struct fairwq_work *work, u32 id)
{
	if (!fairwq_park_ran_elsewhere(work, id))
		return false;
	guard(rcu)();
	return fairwq_executing_runner(work);
}

/*
 * Park the next item of @batch if another runner, which ran it last, still
 * executes it. Then the batch has another first item, or none.
 *
 * Return: whether it was parked.
 */
bool fairwq_park_locked(struct fairwq_runner *runner, struct fairwq_batch *batch)
{
	struct fairwq_work *work = fairwq_head_locked(batch);
	struct fairwq_runner *other;

	lockdep_assert_held(&runner->pool->lock);
	/* One section, because @other may be freed with its pool a grace period later. */
	guard(rcu)();
	other = fairwq_executing_runner(work);
	if (!other)
		return false;
	guard(raw_spinlock)(&other->park_lock);
	list_move_tail(&work->node, &other->parked);
	/*
	 * Store @parked, then load @current_work. Pairs with the full barriers
	 * in fairwq_start_item() and fairwq_end_current(). Either @other sees
	 * that @parked is not empty, or this CPU sees another work in
	 * @current_work. Model: tests/models/park.pml.
	 */
	smp_mb();
	/*
	 * If the last run has ended, the next run sees what it did. Pairs with
	 * the releases in fairwq_start_item(), fairwq_end_current() and
	 * fairwq_waitlist_end_item(). Model: tests/models/park.pml.
	 */
	if (smp_load_acquire(&other->current_work) == work) {
		fairwq_fifo_park_locked(batch, work);
		return true;
	}
	list_move(&work->node, &batch->fifo);	/* nobody has seen it elsewhere */
	return false;
}

/* ---- putting back ----------------------------------------------------- */

/* Take a parked work of @batch off its list. The caller then decides where it goes. */
void fairwq_unpark_work_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	struct fairwq_runner *other = xa_load(&fairwq_runners, work->last_runner);

	lockdep_assert_held(&batch->pool->lock);

	guard(raw_spinlock)(&other->park_lock);
	list_del(&work->node);
}

/* Put the parked works of @batch, at any runner of any pool, back at its head. */
void fairwq_unpark_batch_locked(struct fairwq_batch *batch)
{
	struct fairwq_work *work, *next;
	struct fairwq_runner *runner;
	unsigned long id;

	lockdep_assert_held(&batch->pool->lock);

	if (!batch->nr_parked)
		return;
	guard(rcu)();
	xa_for_each(&fairwq_runners, id, runner) {
		guard(raw_spinlock)(&runner->park_lock);
		list_for_each_entry_safe(work, next, &runner->parked, node)
			if (fairwq_work_batch(work) == batch) {
				list_del(&work->node);
				fairwq_fifo_put_back_locked(batch, work);
			}
	}
}

/*
 * Find the first work that need not wait any more, and its batch. A work that
 * waits for the function which is about to be called must stay. Otherwise
 * another runner would take it and park it here again, any number of times.
 * Model: tests/models/park.pml.
 *
 * Return: the work, or NULL if there is none.
 */
static struct fairwq_work *first_parked(struct fairwq_runner *runner,
					struct fairwq_batch **batch)
{
	struct fairwq_work *work;

	guard(raw_spinlock_irqsave)(&runner->park_lock);
	list_for_each_entry(work, &runner->parked, node)
		if (work != runner->current_work) {
			*batch = fairwq_work_batch(work);
			return work;
		}
	return NULL;
}

/*
 * Put back the works that have waited for a function that has returned. Their
 * batches may be of any pool. RCU keeps the batch of the first one: it cannot
 * be freed while the work is pending, nor in a grace period after that.
 */
void fairwq_unpark(struct fairwq_runner *runner)
{
	struct fairwq_batch *batch, *now;
	struct fairwq_work *work;

	guard(rcu)();
	while (first_parked(runner, &batch)) {
		/* A cancel on top takes the work out, as it stays in the list until then. */
		guard(fairwq_kick)(batch->pool);
		/* The first one may have been cancelled since. Under the lock it stays. */
		work = first_parked(runner, &now);
		if (work && now == batch) {
			fairwq_unpark_work_locked(batch, work);
			batch->pool->tally.counter[FAIRWQ_PARKED]++;
			fairwq_fifo_put_back_locked(batch, work);
		}
	}
}
