// SPDX-License-Identifier: GPL-2.0
/*
 * Works: cancel, disable, flush one and ask about it; cancel what a batch has
 * queued.
 *
 * The calls mean what cancel_work() and its like mean. "Sync" is a cancel that
 * may sleep.
 *
 * core/state.h has the states of a work, and what a cancel does in each:
 * fairwq_try_find(). A flush finds the work in the same way.
 *
 * A call that finds a work TAKEN, or DELAYED without a timer, tries again. The
 * work is on its way then. It is never an interrupt on top of that, because
 * those who move it have interrupts off.
 *
 * Locking: that of the state of the work, see core/state.h; fairwq_disable_lock
 * for fairwq_work.disabled.
 * Invariant: a runner takes a work out and starts it in one lock section.
 * Limits: a queue call looks at work->disabled, and a turn at
 * pool->waits.works. While nobody waits or cancels, that costs the load of one
 * field.
 * Models: tests/models/disable.pml, enter.pml, burst.pml.
 */
#include <linux/completion.h>
#include <linux/export.h>
#include <linux/rcupdate.h>

#include "core/fifo.h"
#include "core/lockdep.h"
#include "core/park.h"
#include "core/push.h"
#include "core/runner.h"
#include "core/seat.h"
#include "core/testing.h"
#include "core/waiter.h"
#include "core/waitlist.h"
#include "doors.h"

/* ---- finding a work that is pending, or runs ------------------------------ */

/* Take out a work that is DELAYED in @batch. Return: as fairwq_try_find(). */
static int take_delayed(struct fairwq_batch *batch, struct fairwq_work *work, long word)
{
	struct fairwq_delayed_work *dwork = container_of(work, struct fairwq_delayed_work, work);

	scoped_guard(raw_spinlock_irqsave, &batch->inbox.lock) {
		if (atomic_long_read(&work->data) != fairwq_word(batch, FAIRWQ_STATE_DELAYED) ||
		    !timer_delete(&dwork->timer))
			return FAIRWQ_AGAIN;
		hlist_del(&work->later);
		fairwq_inbox_forget_locked(batch);
		/*
		 * Pairs with the cmpxchg() of the next queue call. Before the
		 * batch may go, so that no word names one that has gone. No
		 * model.
		 */
		atomic_long_set_release(&work->data, word);
	}
	fairwq_reap(batch);
	return 1;
}

/*
 * Take over what is in the inbox of @batch. If @work then is QUEUED or PARKED
 * there, it stays so under the lock, and is not in the inbox.
 * Return: its state; IDLE if it is not bound for @batch.
 */
static enum fairwq_state look_locked(struct fairwq_batch *batch, const struct fairwq_work *work)
{
	long data;

	lockdep_assert_held(&batch->pool->lock);

	data = fairwq_fifo_take_over_locked(batch, work);
	fairwq_test_point(FAIRWQ_POINT_LOOK, batch);
	fairwq_fifo_update_locked(batch);	/* by what was in the inbox */
	return fairwq_word_batch(data) == batch ? fairwq_word_state(data) : FAIRWQ_STATE_IDLE;
}

/*
 * Take out a work that was QUEUED or PARKED and is in no list any more: set its
 * word to @word. With 0 the work is the client's, which may queue or free it
 * from here on. Until then it is pending, so that no queue call uses its
 * fields.
 * Return: its serializer, or NULL. The serializer must be told when the lock
 * was dropped, because it may queue to batches of any pool.
 */
static struct fairwq_serializer *release_locked(struct fairwq_batch *batch,
						struct fairwq_work *work, long word)
{
	struct fairwq_serializer *serializer = work->serializer;

	lockdep_assert_held(&batch->pool->lock);

	fairwq_waiters_drop_locked(batch->pool, work);
	fairwq_fifo_removed_locked(batch, work);
	batch->pool->tally.counter[FAIRWQ_CANCELED] += !(work->flags & FAIRWQ_WORK_OWN);
	WRITE_ONCE(work->serializer, NULL);
	/* Pairs with the cmpxchg() of the next queue call. Model: tests/models/enter.pml. */
	atomic_long_set_release(&work->data, word);
	return serializer;
}

/* Find a work that is QUEUED or PARKED in @batch. Return: as fairwq_try_find(). */
static int find_queued(struct fairwq_batch *batch, struct fairwq_work *work, long word,
		       struct fairwq_waiter *waiter)
{
	struct fairwq_serializer *serializer;
	enum fairwq_state state;

	scoped_guard(raw_spinlock_irqsave, &batch->pool->lock) {
		state = look_locked(batch, work);
		if (state != FAIRWQ_STATE_QUEUED && state != FAIRWQ_STATE_PARKED)
			return FAIRWQ_AGAIN;
		if (waiter) {
			fairwq_waiter_add_locked(batch, waiter, 0);
			return 1;
		}
		if (state == FAIRWQ_STATE_QUEUED)
			list_del(&work->node);
		else
			fairwq_unpark_work_locked(batch, work);
		serializer = release_locked(batch, work, word);
	}
	/* An interrupt here finds an idle work. The serializer counts the old one until then. */
	if (serializer)
		fairwq_waitlist_complete(serializer);
	return 1;
}

/*
 * Add @waiter to the turn of a work that is not pending, if the runner that
 * started it last is still at it. Return: 1, or 0 if it does not run.
 */
static int await_running(struct fairwq_work *work, struct fairwq_waiter *waiter)
{
	struct fairwq_runner *runner = fairwq_executing_runner(work);

	if (!runner)
		return 0;
	guard(raw_spinlock_irqsave)(&runner->pool->lock);
	if (!runner->turn.batch)
		return 0;
	WRITE_ONCE(runner->yield, true);
	/*
	 * Store @yield, then load @current_work. Pairs with
	 * fairwq_waitlist_end_item(): the runner ends its turn after the item,
	 * or is at another one by now.
	 * Model: tests/models/burst.pml.
	 */
	smp_mb();
	/* Pairs as in fairwq_executing_runner(). Model: tests/models/disable.pml. */
	if (smp_load_acquire(&runner->current_work) != work)
		return 0;
	fairwq_waiter_add_locked(runner->turn.batch, waiter, runner->turn.number);
	return 1;
}

/*
 * Try once to find a work. With @waiter, add that to a work that is queued or
 * runs. Without, take a work that is pending out of where it waits. Its word
 * becomes @word in the same step: 0 if it is not pending any more, or that of a
 * TAKEN work, which the caller then queues.
 *
 * Return: 1 if that was done; 0 if there is nothing to wait for, or to take
 * out; -EDEADLK: see fairwq_waitlist_find(); FAIRWQ_IN_GRACE if a work that was
 * to be taken out waits for a grace period, where it stays; or FAIRWQ_AGAIN.
 * That is soon over: the work has another state by now, or another CPU changes
 * it with interrupts off.
 */
int fairwq_try_find(struct fairwq_work *work, long word, struct fairwq_waiter *waiter)
{
	struct fairwq_batch *batch;
	long data;

	guard(rcu)();		/* a pending work keeps its batch */
	/*
	 * If the work was started, @last_runner is seen. Pairs with
	 * fairwq_start_item(). Model: tests/models/disable.pml.
	 */
	data = atomic_long_read_acquire(&work->data);
	batch = fairwq_word_batch(data);
	switch (fairwq_word_state(data)) {
	case FAIRWQ_STATE_IDLE:
		break;
	case FAIRWQ_STATE_QUEUED:
	case FAIRWQ_STATE_PARKED:
		return find_queued(batch, work, word, waiter);
	case FAIRWQ_STATE_LISTED:
		return fairwq_waitlist_find(work, word, waiter);
	case FAIRWQ_STATE_DELAYED:
		if (!waiter)
			return take_delayed(batch, work, word);
		/* One that fires is soon queued. */
		if (timer_pending(&container_of(work, struct fairwq_delayed_work, work)->timer))
			break;
		return FAIRWQ_AGAIN;
	case FAIRWQ_STATE_GRACE:
		if (!waiter)
			return FAIRWQ_IN_GRACE;
		break;
	case FAIRWQ_STATE_TAKEN:
		return FAIRWQ_AGAIN;
	}
	return waiter ? await_running(work, waiter) : 0;
}

/* As fairwq_try_find(), until it is known. What is in motion is soon elsewhere. */
static int find(struct fairwq_work *work, struct fairwq_waiter *waiter)
{
	int ret;

	while ((ret = fairwq_try_find(work, 0, waiter)) == FAIRWQ_AGAIN)
		cpu_relax();
	return ret;
}

bool fairwq_work_cancel(struct fairwq_work *work)
{
	if (WARN_ON_ONCE(!work))
		return false;
	return find(work, NULL) > 0;
}
EXPORT_SYMBOL_GPL(fairwq_work_cancel);

/* ---- asking about a work ---------------------------------------------- */

unsigned int fairwq_work_busy(struct fairwq_work *work)
{
	unsigned int busy = 0;

	if (fairwq_is_bad(!work, "work is NULL"))
		return 0;
	if (atomic_long_read(&work->data))
		busy |= FAIRWQ_BUSY_PENDING;
	if (fairwq_park_runs_elsewhere(work, 0 /* on any */))
		busy |= FAIRWQ_BUSY_RUNNING;
	return busy;
}
EXPORT_SYMBOL_GPL(fairwq_work_busy);

struct fairwq_work *fairwq_current_work(void)
{
	return fairwq_runner_own_turn() ? fairwq_runner_of_item()->current_work : NULL;
}
EXPORT_SYMBOL_GPL(fairwq_current_work);

/* ---- waiting for a work ----------------------------------------------- */

/* Add @waiter to the run of @work that was queued last. Return: as fairwq_try_find(). */
static int await(struct fairwq_work *work, struct fairwq_waiter *waiter)
{
	waiter->what = work;
	init_completion(&waiter->done);
	return find(work, waiter);
}

/*
 * Check whether the caller is the function of @work, or a task of that, which
 * would wait for itself, and warn. A work that this function has set up anew at
 * the same address is another one.
 */
static bool work_from_inside(const struct fairwq_work *work, const char *what)
{
	const struct fairwq_runner *runner = fairwq_runner_of_item();

	return fairwq_waits_for_itself(runner->current_work == work &&
				       READ_ONCE(work->last_runner) == runner->id, what);
}

bool fairwq_work_flush(struct fairwq_work *work)
{
	const struct fairwq_runner *runner = fairwq_runner_of_item();
	struct fairwq_waiter waiter;
	int ret;

	if (WARN_ON_ONCE(!work))
		return false;
	might_sleep();
	if (work_from_inside(work, __func__))
		return false;
	fairwq_lockdep_wait(&work->lockdep_map);
	ret = await(work, &waiter);
	WARN_ONCE(ret < 0, "fairwq: item %ps of batch %s/%s would wait for %ps, behind it in its serializer\n",
		  runner->turn.func, runner->turn.batch->pool->name, runner->turn.batch->name,
		  work->func);
	if (ret <= 0)
		return false;
	fairwq_check_reclaim(waiter.for_reclaim);
	wait_for_completion(&waiter.done);
	return true;
}
EXPORT_SYMBOL_GPL(fairwq_work_flush);

/* ---- disabling -------------------------------------------------------- */

static void disable_item(struct fairwq_work *work)
{
	scoped_guard(raw_spinlock_irqsave, &fairwq_disable_lock)
		if (!WARN_ON_ONCE(work->disabled == U16_MAX))
			WRITE_ONCE(work->disabled, work->disabled + 1);
	/*
	 * Store @disabled, then load the word. Pairs with fairwq_claim():
	 * either the queue call sees that the work is disabled, or the cancel
	 * that follows sees that it is pending. Model:
	 * tests/models/disable.pml.
	 */
	smp_mb();
}

bool fairwq_work_disable(struct fairwq_work *work)
{
	if (WARN_ON_ONCE(!work))
		return false;
	disable_item(work);
	return fairwq_work_cancel(work);
}
EXPORT_SYMBOL_GPL(fairwq_work_disable);

/* From @work's own function neither its run nor the end of a grace period is waited for. */
bool fairwq_work_disable_sync(struct fairwq_work *work)
{
	struct fairwq_waiter waiter;
	bool inside;
	int ret;

	if (WARN_ON_ONCE(!work))
		return false;
	might_sleep();
	disable_item(work);
	inside = work_from_inside(work, __func__);
	while ((ret = find(work, NULL)) == FAIRWQ_IN_GRACE) {
		if (inside)
			return false;
		flush_rcu_work(&container_of(work, struct fairwq_rcu_work, work)->later);
	}
	if (inside)
		return ret;
	fairwq_lockdep_wait(&work->lockdep_map);
	if (await(work, &waiter) > 0)
		wait_for_completion(&waiter.done);
	return ret;
}
EXPORT_SYMBOL_GPL(fairwq_work_disable_sync);

bool fairwq_work_enable(struct fairwq_work *work)
{
	if (WARN_ON_ONCE(!work))
		return false;
	guard(raw_spinlock_irqsave)(&fairwq_disable_lock);
	if (!WARN_ON_ONCE(!work->disabled))
		WRITE_ONCE(work->disabled, work->disabled - 1);
	return !work->disabled;
}
EXPORT_SYMBOL_GPL(fairwq_work_enable);

/* ---- cancelling what a batch has queued ------------------------------- */

/*
 * Return the first work to drop, before @last: the parts of items that have
 * begun stay. NULL: there is none.
 */
static struct fairwq_work *first_to_drop_locked(const struct fairwq_batch *batch,
						const struct fairwq_work *last)
{
	struct fairwq_work *work;

	lockdep_assert_held(&batch->pool->lock);

	if (list_empty(&last->node))
		return NULL;
	list_for_each_entry(work, &batch->fifo, node) {
		if (work == last)
			return NULL;
		if (!(work->flags & FAIRWQ_WORK_BARRIER) && !fairwq_is_of_item(work))
			return work;
	}
	return NULL;
}

/*
 * Works are taken out one by one: each is pending until @dropped is called for
 * it, so another cancel may take it before. Until the last one is out,
 * @nr_canceling keeps items of the batch from beginning, and the batch from
 * leaving.
 */
unsigned long fairwq_batch_cancel(struct fairwq_batch *batch,
				  void (*dropped)(struct fairwq_work *work))
{
	struct fairwq_work marker = { };	/* behind the last work to drop */
	struct fairwq_serializer *serializer;
	struct fairwq_own_work *own;
	struct fairwq_work *work;
	struct fairwq_pool *pool;
	unsigned long nr = 0, flags;

	if (WARN_ON_ONCE(fairwq_is_no_pointer(batch)))
		return 0;
	pool = batch->pool;
	raw_spin_lock_irqsave(&pool->lock, flags);
	if (fairwq_fifo_is_idle_locked(batch)) {
		raw_spin_unlock_irqrestore(&pool->lock, flags);
		return 0;
	}
	batch->nr_canceling++;		/* no other one is parked from here on */
	fairwq_runner_yield_locked(batch);
	fairwq_unpark_batch_locked(batch);	/* they may be put back at any time */
	fairwq_fifo_add_barrier_locked(batch, &marker);
	while ((work = first_to_drop_locked(batch, &marker))) {
		own = work->flags & FAIRWQ_WORK_OWN ?
		      container_of(work, struct fairwq_own_work, work) : NULL;
		list_del(&work->node);
		serializer = release_locked(batch, work, 0);
		if (own) {
			own->ret = -ECANCELED;
			complete(&own->done);	/* @own may be gone from here on */
		}
		raw_spin_unlock_irqrestore(&pool->lock, flags);
		if (serializer)
			fairwq_waitlist_complete(serializer);
		nr += !own;
		if (dropped && !own)
			dropped(work);
		raw_spin_lock_irqsave(&pool->lock, flags);
	}
	list_del(&marker.node);		/* behind parts, so it is not the head */
	batch->nr_canceling--;
	fairwq_fifo_update_locked(batch);
	fairwq_fifo_reap_locked(batch);
	fairwq_kick_unlock(pool, flags);
	return nr;
}
EXPORT_SYMBOL_GPL(fairwq_batch_cancel);
