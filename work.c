// SPDX-License-Identifier: GPL-2.0
/*
 * Works: cancel, disable, flush one and ask about it; cancel what a batch has queued.
 *
 * The calls mean what cancel_work() and its like mean. "Sync" is a cancel that
 * may sleep.
 *
 * The state is in the work's word. core/types.h has all states, and what changes them.
 *
 *   state      belongs to           what a cancel does
 *   claimed    a queue call with    tries again
 *              irqs off
 *   FIFO       pool->lock           takes it out: take_queued()
 *   parked     pool->lock           takes it out
 *   dropped    pool->lock           takes it off the list of that fairwq_batch_cancel()
 *   kept back  its constraint       see core/waitlist.c; so is the next item of a burst
 *   admitted   a CPU with irqs off  tries again
 *   delayed    its timer            deletes the timer; tries again if it fires
 *   grace      RCU                  returns false; sync waits
 *   running    a runner             returns false; sync waits for its end
 *
 * A cancel that finds a work in motion tries again. It is never an interrupt on top of the
 * call that moves the work, because that call has interrupts off.
 *
 * Locking: pool->lock; fairwq_disable_lock for fairwq_work.disabled.
 * Invariant: a runner takes a work out and starts it in one lock section.
 * Limits: waiters and cancels are found by a queue call or a turn. While there are none,
 * that costs the load of one field.
 * Models: tests/models/disable.pml, enter.pml, burst.pml.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/export.h>
#include <linux/rcupdate.h>

#include "core/delays.h"
#include "core/fifo.h"
#include "core/fork.h"
#include "core/kick.h"
#include "core/lockdep.h"
#include "core/park.h"
#include "core/push.h"
#include "core/runner.h"
#include "core/testing.h"
#include "core/waiter.h"
#include "core/waitlist.h"
#include "doors.h"

/* For writers of fairwq_work.disabled; the loads pair with disable_item(). */
static DEFINE_RAW_SPINLOCK(fairwq_disable_lock);

/* ---- a work that waits for a timer or a grace period ------------------ */

/*
 * Delete the timer of a work, and set its word to @word. Interrupts are off over
 * both steps, because in between the word still says DELAYED. An interrupt, or
 * on PREEMPT_RT a task that preempts, would wait for the cancel that it keeps
 * from going on.
 *
 * Return: false if the timer is not set. Then a call on another CPU is about to
 * set it, or it fires there, or the work is pushed and not linked yet.
 */
static bool take_delayed(struct fairwq_work *work, long word)
{
	struct fairwq_batch *batch;

	guard(irqsave)();
	if (!fairwq_delay_stop(container_of(work, struct fairwq_delayed_work, work)))
		return false;
	batch = fairwq_work_batch(atomic_long_read(&work->data));
	fairwq_test_point(FAIRWQ_POINT_DELAY_DELETED, batch);
	fairwq_unreserve(batch);
	/*
	 * The caller owns the work from here on. Pairs with the cmpxchg() of
	 * the next queue call. No model.
	 */
	atomic_long_set_release(&work->data, word);
	fairwq_unpin(batch);
	return true;
}

/* ---- taking a work out of the queue ----------------------------------- */

/*
 * Link all that was pushed to @batch. If the word then says that the work is
 * linked there, the word and @place stay so under the lock.
 * Return: the word of the work.
 */
static long look_locked(struct fairwq_batch *batch, const struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	fairwq_fifo_splice_locked(batch);
	fairwq_test_point(FAIRWQ_POINT_LOOK, batch);
	return atomic_long_read(&work->data);
}

/*
 * Take a linked work out of its place. It stays pending until release_work(), so that
 * no queue call uses its fields.
 */
static void remove_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	if (fairwq_work_place(work) == FAIRWQ_PLACE_DROPPED) {
		list_del(&work->node);	/* a cancel of its batch will not find it any more */
		return;
	}
	fairwq_waiters_drop_locked(batch->pool, work);
	if (fairwq_work_place(work) == FAIRWQ_PLACE_PARKED) {
		fairwq_unpark_work_locked(work);
		fairwq_fifo_turn_over_locked(batch, !!(work->place & FAIRWQ_PLACE_COLOR));
	} else {
		fairwq_fifo_remove_locked(batch, work);
	}
	batch->pool->counter[FAIRWQ_CANCELED]++;
}

/*
 * Set the word of a removed work to @word. With 0 the work is the client's, which may queue
 * or free it from here on.
 * Return: its constraint, or NULL. The constraint must be told when the lock
 * was dropped, because it may push to batches of any pool.
 */
static struct fairwq_constraint *release_work(struct fairwq_work *work, long word)
{
	struct fairwq_constraint *constraint = work->constraint;

	WRITE_ONCE(work->constraint, NULL);
	/* Pairs with the cmpxchg() of the next queue call. Model: tests/models/enter.pml. */
	atomic_long_set_release(&work->data, word);
	return constraint;
}

/* Take out a work that was bound for @batch. Return: as fairwq_try_take(). */
static int take_queued(struct fairwq_batch *batch, struct fairwq_work *work, long word,
		       bool wait)
{
	struct fairwq_constraint *constraint = NULL;
	struct fairwq_pool *pool = batch->pool;
	unsigned long flags;
	long data;
	int ret;

	raw_spin_lock_irqsave(&pool->lock, flags);
	data = look_locked(batch, work);
	/* CONSTRAINED: a constraint has admitted it, and pushes it with interrupts off. */
	if (fairwq_work_batch(data) != batch ||
	    (data & (FAIRWQ_WORK_DELAYED | FAIRWQ_WORK_CONSTRAINED))) {
		ret = FAIRWQ_AGAIN;
	} else if (data & FAIRWQ_WORK_LINKED) {
		remove_locked(batch, work);
		constraint = release_work(work, word);
		ret = 1;
	} else if (fairwq_work_is_graced(data)) {
		ret = wait ? FAIRWQ_AGAIN : 0;
	} else {
		ret = FAIRWQ_AGAIN;	/* a queue call has it, on a CPU with interrupts off */
	}
	fairwq_fifo_update_locked(batch);
	fairwq_fifo_reap_locked(batch);
	fairwq_kick_unlock(pool, flags);
	/* An interrupt here finds an idle work. The constraint counts the old one until then. */
	if (constraint)
		constraint->ops->complete(constraint);
	return ret;
}

/*
 * Try once to take a work out of where it waits. Its word becomes @word in the same step: 0
 * if it is not pending any more, or the word of a claimed work, which the caller then queues.
 * @wait: the caller can wait for a grace period and for a constraint of the client's own.
 * Otherwise the work stays there.
 *
 * Return: 1 if it was pending, and is taken out; 0 if it was not pending, or stays; or
 * FAIRWQ_AGAIN. Without @wait that is soon over: another CPU changes the work with
 * interrupts off.
 */
int fairwq_try_take(struct fairwq_work *work, long word, bool wait)
{
	long data;

	guard(rcu)();		/* a pending work keeps its batch */
	data = atomic_long_read(&work->data);
	if (!(data & FAIRWQ_WORK_PENDING))
		return 0;
	if ((data & FAIRWQ_WORK_DELAYED) && take_delayed(work, word))
		return 1;
	if (fairwq_work_is_kept_back(data))
		return fairwq_waitlist_take(work, data, word, wait);
	return take_queued(fairwq_work_batch(data), work, word, wait);
}

bool fairwq_work_cancel(struct fairwq_work *work)
{
	int ret;

	if (WARN_ON_ONCE(!work))
		return false;
	while ((ret = fairwq_try_take(work, 0, false)) < 0)
		cpu_relax();
	return ret;
}
EXPORT_SYMBOL_GPL(fairwq_work_cancel);

/* ---- asking about a work ---------------------------------------------- */

unsigned int fairwq_work_busy(struct fairwq_work *work)
{
	unsigned int busy = 0;

	if (!work) {
		fairwq_bad_arg("work is NULL");
		return 0;
	}
	if (fairwq_word_pending(atomic_long_read(&work->data)))
		busy |= FAIRWQ_BUSY_PENDING;
	if (fairwq_park_runs_elsewhere(work, 0 /* on any */))
		busy |= FAIRWQ_BUSY_RUNNING;
	return busy;
}
EXPORT_SYMBOL_GPL(fairwq_work_busy);

struct fairwq_work *fairwq_current_work(void)
{
	/* Not @current_work: that may be a work that no client has queued. */
	return fairwq_runner_own_turn() ? (void *)fairwq_runner_of_item()->turn.id : NULL;
}
EXPORT_SYMBOL_GPL(fairwq_current_work);

/* ---- waiting for a work ----------------------------------------------- */

/*
 * Add @waiter to a work that is queued in @batch. Return: as await(); 0 also if
 * the work waits for a timer or a grace period, or is being dropped.
 */
static int await_pending(struct fairwq_batch *batch, struct fairwq_work *work,
			 struct fairwq_waiter *waiter)
{
	struct fairwq_pool *pool = batch->pool;
	unsigned long flags;
	int ret = 0;
	long data;

	raw_spin_lock_irqsave(&pool->lock, flags);
	data = look_locked(batch, work);
	if (fairwq_work_batch(data) != batch || (data & FAIRWQ_WORK_CONSTRAINED)) {
		ret = FAIRWQ_AGAIN;
	} else if (data & FAIRWQ_WORK_DELAYED) {
		if (!timer_pending(&container_of(work, struct fairwq_delayed_work, work)->timer))
			ret = FAIRWQ_AGAIN;
	} else if (!(data & (FAIRWQ_WORK_GRACE | FAIRWQ_WORK_LINKED))) {
		ret = FAIRWQ_AGAIN;
	} else if ((data & FAIRWQ_WORK_LINKED) &&
		   fairwq_work_place(work) != FAIRWQ_PLACE_DROPPED) {
		waiter->for_reclaim = fairwq_is_for_reclaim(batch);
		fairwq_waiter_add_locked(pool, waiter, 0);
		ret = 1;
	}
	fairwq_fifo_update_locked(batch);
	fairwq_fifo_reap_locked(batch);
	fairwq_kick_unlock(pool, flags);
	return ret;
}

/*
 * Add @waiter to the turn of a work that is not pending, if the runner that
 * started it last is still at it. Return: 1, or 0 if it does not run.
 */
static int await_running(struct fairwq_work *work, struct fairwq_waiter *waiter)
{
	struct fairwq_runner *runner = xa_load(&fairwq_runners, READ_ONCE(work->last_runner));
	const struct fairwq_turn *turn;

	/*
	 * If the run is over, its stores are seen. Pairs with
	 * fairwq_start_item(), fairwq_end_current() and fairwq_burst_next().
	 * Model: tests/models/disable.pml.
	 */
	if (!runner || smp_load_acquire(&runner->current_work) != work)
		return 0;
	guard(raw_spinlock_irqsave)(&runner->pool->lock);
	turn = fairwq_runner_turn(runner);
	if (!turn)
		return 0;
	WRITE_ONCE(runner->yield, true);
	/*
	 * Store @yield, then load @current_work. Pairs with fairwq_burst_next():
	 * the runner ends its turn after the item, or is at another one by now.
	 * Model: tests/models/burst.pml.
	 */
	smp_mb();
	/* Pairs as the load above. Model: tests/models/disable.pml. */
	if (smp_load_acquire(&runner->current_work) != work)
		return 0;
	waiter->for_reclaim = fairwq_is_for_reclaim(turn->batch);
	fairwq_waiter_add_locked(runner->pool, waiter, turn->number);
	return 1;
}

/*
 * Add @waiter to a work that is queued or runs. Return: 1 if @waiter will be
 * completed; 0 if there is nothing to wait for; or FAIRWQ_AGAIN.
 */
static int await(struct fairwq_work *work, struct fairwq_waiter *waiter)
{
	long data;
	int ret = 0;

	waiter->what = work;
	init_completion(&waiter->done);
	guard(rcu)();
	/*
	 * If the work was started, @last_runner is seen. Pairs with
	 * fairwq_start_item().
	 * Model: tests/models/disable.pml.
	 */
	data = atomic_long_read_acquire(&work->data);
	if (fairwq_work_is_kept_back(data)) {
		fairwq_test_point(FAIRWQ_POINT_LOOK, NULL);
		return FAIRWQ_AGAIN;
	}
	if (data & FAIRWQ_WORK_PENDING)
		ret = await_pending(fairwq_work_batch(data), work, waiter);
	return ret ?: await_running(work, waiter);
}

/*
 * Check whether the caller is an item of a serializer in which @work waits
 * until it returns, and warn.
 */
static bool work_is_behind(const struct fairwq_work *work)
{
	const struct fairwq_constraint *constraint = READ_ONCE(work->constraint);
	const struct fairwq_turn *turn = fairwq_runner_own_turn();

	return WARN_ONCE(turn && constraint && fairwq_runner_is_of(constraint) &&
			 constraint->serial,
			 "fairwq: item %ps of batch %s/%s would wait for %ps, behind it in its serializer\n",
			 turn->func, turn->batch->pool->name, turn->batch->name, work->func);
}

/*
 * Sleep before looking for a work again: until its constraint has admitted it. A call that
 * cancels sleeps only for a constraint that cannot take the work out, or for a grace period.
 * Every other reason is a queue call or a push on another CPU, in progress or preempted.
 * That ends soon, so it is polled.
 */
static void look_later(struct fairwq_work *work, bool cancels)
{
	long data = atomic_long_read(&work->data);

	if (fairwq_work_is_kept_back(data) && fairwq_waitlist_wait_work(work, !cancels))
		return;
	/* Not before its queue call has come to the point where that can be waited for. */
	if (cancels && fairwq_work_is_graced(data) &&
	    flush_rcu_work(&container_of(work, struct fairwq_rcu_work, work)->later))
		return;
	usleep_range(20, 100);
}

/*
 * Wait until the instance that is queued last, or runs, has ended. @cancels: the work is
 * disabled, and the call waits for a run only.
 */
static bool wait_for_item(struct fairwq_work *work, bool cancels)
{
	struct fairwq_waiter waiter;
	bool waited = false;
	int ret;

	while ((ret = await(work, &waiter)) < 0) {
		if (work_is_behind(work))
			return false;
		waited = true;
		look_later(work, false);
	}
	if (!ret)
		return waited;
	if (!cancels)
		fairwq_check_reclaim(waiter.for_reclaim);
	wait_for_completion(&waiter.done);
	return true;
}

/*
 * Check whether the caller is the function of @work, or a task of that, which would wait
 * for itself, and warn. A work that this function has set up anew at the same
 * address is another one.
 */
static bool work_from_inside(const struct fairwq_work *work, const char *what)
{
	const struct fairwq_runner *runner = fairwq_runner_of_item();
	const struct fairwq_turn *turn = fairwq_runner_own_turn();

	return WARN_ONCE(turn && runner->current_work == work &&
			 READ_ONCE(work->last_runner) == runner->id,
			 "fairwq: item %ps of batch %s/%s would wait for itself in %s\n",
			 turn->func, turn->batch->pool->name, turn->batch->name, what);
}

bool fairwq_work_flush(struct fairwq_work *work)
{
	if (WARN_ON_ONCE(!work))
		return false;
	might_sleep();
	if (work_from_inside(work, __func__))
		return false;
	fairwq_lockdep_wait(&work->lockdep_map);
	return wait_for_item(work, false);
}
EXPORT_SYMBOL_GPL(fairwq_work_flush);

/* ---- disabling -------------------------------------------------------- */

static void disable_item(struct fairwq_work *work)
{
	scoped_guard(raw_spinlock_irqsave, &fairwq_disable_lock)
		if (!WARN_ON_ONCE(work->disabled == U16_MAX))
			WRITE_ONCE(work->disabled, work->disabled + 1);
	/*
	 * Store @disabled, then load the word. Pairs with fairwq_claim_as():
	 * either the queue call sees that the work is disabled, or the cancel
	 * that follows sees that it is pending. Model:
	 * tests/models/disable.pml.
	 */
	smp_mb();
}

/*
 * Cancel, then wait until no call owns the work and it does not run. From its
 * own function neither its run nor the end of a grace period is waited for.
 */
static bool cancel_and_wait(struct fairwq_work *work, const char *what)
{
	bool inside = work_from_inside(work, what);
	int ret;

	while ((ret = fairwq_try_take(work, 0, true)) < 0) {
		if (inside && fairwq_work_is_graced(atomic_long_read(&work->data)))
			return false;
		look_later(work, true);
	}
	if (inside)
		return ret;
	fairwq_lockdep_wait(&work->lockdep_map);
	/* It is disabled, so no run follows the present one. */
	wait_for_item(work, true);
	return ret;
}

bool fairwq_work_disable(struct fairwq_work *work)
{
	if (WARN_ON_ONCE(!work))
		return false;
	disable_item(work);
	return fairwq_work_cancel(work);
}
EXPORT_SYMBOL_GPL(fairwq_work_disable);

bool fairwq_work_disable_sync(struct fairwq_work *work)
{
	if (WARN_ON_ONCE(!work))
		return false;
	might_sleep();
	disable_item(work);
	return cancel_and_wait(work, __func__);
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

bool fairwq_work_cancel_sync(struct fairwq_work *work)
{
	bool ret = fairwq_work_disable_sync(work);

	if (work)
		fairwq_work_enable(work);
	return ret;
}
EXPORT_SYMBOL_GPL(fairwq_work_cancel_sync);

/* ---- cancelling what a batch has queued ------------------------------- */

/* Works taken out in one lock section. */
#define DROP_CHUNK	32

/* Take a work out that no client has queued, and tell the call that waits for it. */
static void drop_own_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	struct fairwq_own_work *own = container_of(work, struct fairwq_own_work, work);

	lockdep_assert_held(&batch->pool->lock);

	remove_locked(batch, work);
	own->ret = -ECANCELED;
	complete(&own->done);		/* @own may be gone from here on */
}

/* Move @work to @works. It is pending until it is given back, see drop_give(). */
static void drop_locked(struct fairwq_batch *batch, struct fairwq_work *work,
			struct list_head *works)
{
	lockdep_assert_held(&batch->pool->lock);

	if (unlikely(work->place & FAIRWQ_PLACE_OWN)) {
		drop_own_locked(batch, work);
		return;
	}
	remove_locked(batch, work);
	work->place = FAIRWQ_PLACE_DROPPED;
	list_add_tail(&work->node, works);
}

/*
 * Return the first work to drop, before @last: the parts of items that have begun stay. NULL:
 * there is none.
 */
static struct fairwq_work *first_to_drop_locked(const struct fairwq_batch *batch,
						const struct fairwq_barrier *last)
{
	struct fairwq_work *work;

	lockdep_assert_held(&batch->pool->lock);

	if (last->fired)
		return NULL;
	list_for_each_entry(work, &batch->fifo, node) {
		if (work == &last->entry)
			return NULL;
		if (!(work->place & FAIRWQ_PLACE_BARRIER) && !fairwq_is_of_item(work))
			return work;
	}
	return NULL;
}

/*
 * Move all works that are queued now to @works, some in one lock section. No new item begins
 * until all are found, and the batch is not released until the caller unpins it.
 * Return: whether it may have works to drop, and is pinned.
 */
static bool drop_all(struct fairwq_batch *batch, struct list_head *works)
{
	struct fairwq_barrier marker = { };	/* behind the last work to drop */
	struct fairwq_pool *pool = batch->pool;
	struct fairwq_work *work;
	unsigned int nr = 0;
	unsigned long flags;

	raw_spin_lock_irqsave(&pool->lock, flags);
	if (fairwq_fifo_is_idle_locked(batch)) {
		raw_spin_unlock_irqrestore(&pool->lock, flags);
		return false;
	}
	fairwq_pin(batch);
	batch->nr_canceling++;
	fairwq_fifo_add_barrier_locked(batch, &marker);
	while ((work = fairwq_find_parked_locked(batch)))
		drop_locked(batch, work, works);
	while ((work = first_to_drop_locked(batch, &marker))) {
		drop_locked(batch, work, works);
		if (++nr % DROP_CHUNK)
			continue;
		fairwq_kick_unlock(pool, flags);
		fairwq_test_point(FAIRWQ_POINT_CANCEL_STEP, batch);
		raw_spin_lock_irqsave(&pool->lock, flags);
	}
	if (!marker.fired)
		list_del(&marker.entry.node);	/* behind parts, so it is not the head */
	batch->nr_canceling--;
	fairwq_fifo_update_locked(batch);
	fairwq_kick_unlock(pool, flags);
	return true;
}

/* Hand the first dropped work to the caller. Return: the work, or NULL. */
static struct fairwq_work *drop_give(struct fairwq_batch *batch, struct list_head *works)
{
	struct fairwq_constraint *constraint;
	struct fairwq_work *work;

	scoped_guard(raw_spinlock_irqsave, &batch->pool->lock) {
		work = list_first_entry_or_null(works, struct fairwq_work, node);
		if (!work)
			return NULL;
		list_del(&work->node);
		constraint = release_work(work, 0);
	}
	if (constraint)
		constraint->ops->complete(constraint);
	return work;
}

unsigned long fairwq_batch_cancel(struct fairwq_batch *batch,
				  void (*dropped)(struct fairwq_work *work))
{
	struct fairwq_work *work;
	unsigned long nr = 0;
	LIST_HEAD(works);

	if (WARN_ON_ONCE(fairwq_is_no_pointer(batch)))
		return 0;
	if (!drop_all(batch, &works))
		return 0;
	while ((work = drop_give(batch, &works))) {
		nr++;
		if (dropped)
			dropped(work);
	}
	fairwq_unpin(batch);
	return nr;
}
EXPORT_SYMBOL_GPL(fairwq_batch_cancel);
