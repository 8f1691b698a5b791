// SPDX-License-Identifier: GPL-2.0
/*
 * Waitlists: works that wait in a serializer or limiter, in front of a batch.
 *
 *                 room, none waits
 *   queue call ----------------------------------> inbox of the batch
 *       |                                      ^
 *       +--> waiting: works and markers -------+ an item in flight ends
 *                    +--> FIFO of the batch, if a turn of that has ended it
 *                    +--> taken out by a cancel, or started by a burst
 *
 * A work that waits is LISTED. A runner ends its item by
 * fairwq_waitlist_end_item(). If a work in flight is cancelled, or its item
 * ends by a completion, fairwq_waitlist_complete() tells the serializer.
 *
 * One hold keeps the batch for all works of a run, which is works in a row that
 * are bound for one batch. The first one is HELD. So a queue call into a
 * serializer that is busy leaves the inbox alone, which would move between CPUs
 * for each item. If the batch has max_queued, each work is HELD, because the
 * held ones are counted.
 *
 * Serializers and limiters differ in the number that may be in flight. Only
 * where that is 1, a runner may go on with the next item (burst.c), an item may
 * be the last, and a flush that would deadlock is seen. A marker waits in the
 * list for a flush. It is through when nothing before it is in the list or in
 * flight.
 *
 * Locking: a list is under one of the hashed locks below. Under that lock a
 * queue call claims the work and lists it, and the end of an item moves it from
 * the list to the inbox, or makes it TAKEN. So a cancel that has the lock finds
 * the work in the list, or the work is in another state. The locks are not in
 * the serializers, because a cancel must take one before it can know whether
 * the serializer still exists.
 *
 * A shutdown that drops what waits sets @dropping, unless the last item does
 * it. Then nothing is admitted any more.
 *
 * Invariant: under the lock of a serializer, a work that is LISTED and names
 * that serializer is in its list.
 * Invariant: until a burst starts it, the next item waits as all others do, so
 * that a cancel finds it.
 * Invariant: a work in the list is HELD, or the one before it is a work that is
 * bound for the same batch.
 * Invariant: if something waits, @max items are in flight, or a marker is first
 * and at least one item is in flight. So an end always comes to admit the next,
 * unless a shutdown takes out what waits.
 * Invariant: no end of an item touches a serializer or limiter after it has
 * lowered @in_flight and dropped the lock.
 *
 * Models: tests/models/enter.pml; burst.pml.
 *
 * Limits: serializers share 128 locks.
 */
#include <linux/completion.h>
#include <linux/export.h>
#include <linux/hash.h>
#include <linux/prefetch.h>

#include "fifo.h"
#include "push.h"
#include "runner.h"
#include "testing.h"
#include "trace.h"
#include "turn.h"
#include "waitlist.h"

#define LOCK_BITS	7

/*
 * The locks of serializers, by the hash of their address. Under one of them a
 * pool->lock and an inbox->lock may be taken.
 */
static struct {
	raw_spinlock_t lock ____cacheline_aligned_in_smp;
} fairwq_serializer_locks[1 << LOCK_BITS] = {
	[0 ... (1 << LOCK_BITS) - 1] = {
		.lock = __RAW_SPIN_LOCK_UNLOCKED(fairwq_serializer_locks.lock),
	},
};

raw_spinlock_t *fairwq_serializer_lock(const struct fairwq_serializer *serializer)
{
	return &fairwq_serializer_locks[hash_ptr(serializer, LOCK_BITS)].lock;
}

FAIRWQ_TEST_EXPORT(fairwq_serializer_lock);

/*
 * If @work waits in @serializer, that stays so under the lock, and the
 * serializer exists.
 *
 * Return: the batch that @work is bound for; or NULL, if it does not wait here.
 */
static struct fairwq_batch *batch_if_listed_locked(const struct fairwq_work *work,
						   const struct fairwq_serializer *serializer)
{
	/*
	 * Load the word, then work->serializer, so that it is not that of an
	 * earlier queueing. Pairs with release_listed_locked(),
	 * release_locked() and fairwq_start_item(). Model:
	 * tests/models/enter.pml.
	 */
	long data = atomic_long_read_acquire(&work->data);

	lockdep_assert_held(fairwq_serializer_lock(serializer));

	if (fairwq_word_state(data) != FAIRWQ_STATE_LISTED ||
	    READ_ONCE(work->serializer) != serializer)
		return NULL;
	return fairwq_word_batch(data);
}

/* Check whether a work that is listed as the last one would be one more of a run. */
static bool is_in_run_locked(const struct fairwq_serializer *serializer,
			     const struct fairwq_batch *batch)
{
	const struct fairwq_work *last;

	lockdep_assert_held(fairwq_serializer_lock(serializer));

	if (list_empty(&serializer->waiting) || batch->max_queued)
		return false;
	last = list_last_entry(&serializer->waiting, struct fairwq_work, node);
	return !(last->flags & FAIRWQ_WORK_BARRIER) && fairwq_work_batch(last) == batch;
}

/*
 * Take @work out of the list. If it is HELD, the next one of its run is so from
 * here on.
 *
 * Return: whether there is none, so that the caller must have the batch forget
 * @work.
 */
static bool remove_locked(struct fairwq_serializer *serializer, struct fairwq_work *work)
{
	struct fairwq_work *next = list_next_entry(work, node);
	bool is_last = list_is_last(&work->node, &serializer->waiting);

	lockdep_assert_held(fairwq_serializer_lock(serializer));

	list_del(&work->node);
	if (!(work->flags & FAIRWQ_WORK_HELD))
		return false;
	work->flags &= ~FAIRWQ_WORK_HELD;
	if (is_last || next->flags & (FAIRWQ_WORK_HELD | FAIRWQ_WORK_BARRIER))
		return true;
	next->flags |= FAIRWQ_WORK_HELD;
	return false;
}

/*
 * Move a work that waits to its batch. Return: the batch, if the caller must
 * activate it when it has dropped the lock; or NULL.
 */
static struct fairwq_batch *admit_locked(struct fairwq_serializer *serializer,
					 struct fairwq_work *work)
{
	struct fairwq_batch *batch = fairwq_work_batch(work);
	bool held;

	lockdep_assert_held(fairwq_serializer_lock(serializer));

	held = remove_locked(serializer, work);
	guard(raw_spinlock)(&batch->inbox.lock);
	return fairwq_inbox_arrive_locked(batch, work, held) ? batch : NULL;
}

/*
 * Take out @work, which waits in @serializer for @batch, and set its word to
 * @word. With @dropping the batch is not reaped until fairwq_waitlist_drop()
 * lets it go.
 */
static void release_listed_locked(struct fairwq_serializer *serializer,
				  struct fairwq_batch *batch, struct fairwq_work *work,
				  long word, bool dropping)
{
	bool held;

	lockdep_assert_held(fairwq_serializer_lock(serializer));

	held = remove_locked(serializer, work);
	guard(raw_spinlock)(&batch->pool->lock);
	/* Before another call can queue the work, and be waited for. */
	fairwq_waiters_drop_locked(batch->pool, work);
	batch->nr_dropping += dropping;
	if (held) {
		guard(raw_spinlock)(&batch->inbox.lock);
		fairwq_inbox_forget_locked(batch);
	}
	WRITE_ONCE(work->serializer, NULL);
	/*
	 * Pairs with the cmpxchg() of the next queue call, and with
	 * batch_if_listed_locked(). Model: tests/models/enter.pml.
	 */
	atomic_long_set_release(&work->data, word);
	fairwq_fifo_reap_locked(batch);
}

/*
 * Claim @work, and queue it to its batch. @activate: whether the caller must
 * activate that.
 * Return: as fairwq_claim_locked().
 */
static int start_locked(struct fairwq_serializer *serializer, struct fairwq_batch *batch,
			struct fairwq_work *work, bool *activate)
{
	int ret;

	guard(raw_spinlock)(&batch->inbox.lock);
	ret = fairwq_claim_locked(batch, work, FAIRWQ_STATE_QUEUED);
	if (likely(ret > 0)) {
		serializer->in_flight++;
		WRITE_ONCE(work->serializer, serializer);
		*activate = fairwq_inbox_link_locked(batch, work);
	}
	return ret;
}

/*
 * Claim @work, and have it wait as the last one. Return: as
 * fairwq_claim_locked().
 */
static int append_locked(struct fairwq_serializer *serializer, struct fairwq_batch *batch,
			 struct fairwq_work *work)
{
	int ret;

	if (is_in_run_locked(serializer, batch)) {
		/* A batch that is disposed meanwhile stays until this work has left. */
		ret = fairwq_refusal(batch);
		ret = unlikely(ret) ? fairwq_unless_pending(work, ret) :
				      fairwq_claim(batch, work, FAIRWQ_STATE_LISTED);
	} else {
		guard(raw_spinlock)(&batch->inbox.lock);
		ret = fairwq_claim_locked(batch, work, FAIRWQ_STATE_LISTED);
		if (ret > 0)
			work->flags |= FAIRWQ_WORK_HELD;
	}
	if (likely(ret > 0)) {
		WRITE_ONCE(work->serializer, serializer);
		list_add_tail(&work->node, &serializer->waiting);
	}
	return ret;
}

/*
 * Queue a work through a serializer. It does not wait there if there is room
 * and none waits. Return: as fairwq_claim_locked().
 */
int fairwq_waitlist_enter(struct fairwq_serializer *serializer, struct fairwq_batch *batch,
			  struct fairwq_work *work)
{
	bool first = false;
	int ret;

	guard(irqsave)();	/* see core/push.c */
	scoped_guard(raw_spinlock, fairwq_serializer_lock(serializer)) {
		if (unlikely(serializer->ending))
			return fairwq_unless_pending(work, -ESHUTDOWN);
		if (list_empty(&serializer->waiting) && serializer->in_flight < serializer->max)
			ret = start_locked(serializer, batch, work, &first);
		else
			ret = append_locked(serializer, batch, work);
		if (unlikely(!serializer->unsafe && !fairwq_is_for_reclaim(batch)) && ret > 0)
			WRITE_ONCE(serializer->unsafe, true);
	}
	if (first)
		fairwq_activate(batch);
	return ret;
}

/* Start @work, the first that waits, as one more item of the runner's turn. */
static void take_locked(struct fairwq_runner *runner,
			struct fairwq_serializer *serializer, struct fairwq_work *work)
{
	struct fairwq_turn *turn = &runner->turn;
	struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(fairwq_serializer_lock(serializer));

	if (remove_locked(serializer, work)) {
		guard(raw_spinlock)(&turn->batch->inbox.lock);
		fairwq_inbox_forget_locked(turn->batch);	/* @turn keeps it */
	}
	trace_fairwq_queue(turn->batch, work);
	turn->charge.nr++;
	WRITE_ONCE(turn->stamp, 0);
	WRITE_ONCE(turn->func, work->func);
	/* The burst ends with an item that a flush waits for. */
	if (unlikely(!list_empty(&pool->waits.works))) {
		guard(raw_spinlock)(&pool->lock);
		if (fairwq_waiters_take_locked(pool, work, turn->number))
			WRITE_ONCE(runner->yield, true);
	}
	fairwq_start_item(runner, work);
}

/*
 * Take out a work that waits, for the runner to append it to the FIFO of the
 * batch of its turn, which keeps the batch. It is TAKEN until then, and the
 * runner leaves interrupts off.
 */
static void move_locked(struct fairwq_serializer *serializer, struct fairwq_work *work)
{
	lockdep_assert_held(fairwq_serializer_lock(serializer));

	/* A hold ends when the work is counted as queued. */
	if (remove_locked(serializer, work))
		work->flags |= FAIRWQ_WORK_HELD;
	atomic_long_set(&work->data, fairwq_word(fairwq_work_batch(work), FAIRWQ_STATE_TAKEN));
}

/*
 * Admit what may go on, and let markers through. @runner, if not NULL, has
 * ended an item. If one item may be in flight, and the first work is of the
 * batch of the runner's turn, the runner keeps it: it is @kept, and started or
 * TAKEN. Where several may be in flight, two runners that keep one each could
 * append them in the wrong order. More than one work may go on if a limiter had
 * a marker in front. Then all but the last are activated here.
 *
 * Return: as admit_locked(). The serializer may be gone when the lock is
 * dropped.
 */
static struct fairwq_batch *next_locked(struct fairwq_serializer *serializer,
					struct fairwq_runner *runner, struct fairwq_work **kept)
{
	struct fairwq_batch *batch = NULL, *next_batch;
	struct fairwq_work *work, *next;

	lockdep_assert_held(fairwq_serializer_lock(serializer));

	list_for_each_entry_safe(work, next, &serializer->waiting, node) {
		if (work->flags & FAIRWQ_WORK_BARRIER) {
			if (serializer->in_flight)
				break;
			list_del(&work->node);
			complete(&container_of(work, struct fairwq_own_work, work)->done);
			fairwq_test_point(FAIRWQ_POINT_MARKER_THROUGH, NULL);
			continue;
		}
		if (serializer->dropping || serializer->in_flight >= serializer->max)
			break;
		serializer->in_flight++;
		if (runner && serializer->max == 1 &&
		    fairwq_work_batch(work) == runner->turn.batch) {
			*kept = work;
			if (fairwq_burst_goes_on(runner, serializer, work))
				take_locked(runner, serializer, work);
			else
				move_locked(serializer, work);
			break;
		}
		next_batch = admit_locked(serializer, work);
		if (unlikely(batch && next_batch))
			fairwq_activate(batch);
		batch = next_batch ?: batch;
	}
	return batch;
}

/* Count an item as ended, and admit the next one. */
void fairwq_waitlist_complete(struct fairwq_serializer *serializer)
{
	struct fairwq_batch *batch;

	guard(irqsave)();	/* see core/push.c */
	scoped_guard(raw_spinlock, fairwq_serializer_lock(serializer)) {
		serializer->in_flight--;
		fairwq_test_point(FAIRWQ_POINT_LIMITER_ENDED, NULL);
		batch = next_locked(serializer, NULL, NULL);
	}
	fairwq_test_point(FAIRWQ_POINT_LIMITER_LEFT, NULL);
	if (batch)
		fairwq_activate(batch);
}

/*
 * End an item of a serializer or limiter, which this runner has. Go on with the
 * next one, or let that go to its batch.
 *
 * Return: the next item, started; or NULL. Then the serializer is not the
 * runner's any more: the next item is queued to its batch, or is TAKEN, or none
 * may start. Interrupts are off then. If it is TAKEN, it is @moved: the caller
 * takes the lock of the pool next, and appends it to the batch of the turn.
 */
struct fairwq_work *fairwq_waitlist_end_item(struct fairwq_runner *runner,
					     struct fairwq_serializer *serializer,
					     struct fairwq_work **moved)
{
	raw_spinlock_t *lock = fairwq_serializer_lock(serializer);
	struct fairwq_work *work = NULL;
	struct fairwq_batch *batch;

	/*
	 * A CPU that sees this also sees what the item stored. Pairs with
	 * fairwq_executing_runner(), fairwq_park_locked() and await_running().
	 * Works that are parked here are put back when the runner starts
	 * another item, or has none. Model: tests/models/burst.pml, without the
	 * parking.
	 */
	smp_store_release(&runner->current_work, NULL);
	/* Not under the lock, which queue calls wait for. A hint: the work may be gone. */
	prefetchw(READ_ONCE(serializer->waiting.next));
	raw_spin_lock_irq(lock);
	/*
	 * Store @current_work, then load @yield. Pairs with await_running().
	 * Model: tests/models/burst.pml.
	 */
	smp_mb__after_spinlock();
	serializer->in_flight--;
	fairwq_test_point(FAIRWQ_POINT_LIMITER_ENDED, NULL);
	batch = next_locked(serializer, runner, &work);
	raw_spin_unlock(lock);
	if (work && runner->current_work == work) {
		local_irq_enable();
		return work;
	}
	*moved = work;
	if (work)
		fairwq_test_point(FAIRWQ_POINT_MOVING, runner->turn.batch);
	else
		fairwq_test_point(FAIRWQ_POINT_LIMITER_LEFT, NULL);
	/* Interrupts are off, so no grace period ends, and @batch stays: see core/push.c. */
	if (batch)
		fairwq_activate(batch);
	return NULL;
}

/*
 * Make the calling item the last one of its serializer. If nothing waits behind
 * it, no runner has the serializer from here on, and its memory may be freed.
 * @ending is how many calls of the item end it.
 *
 * Return: false if a work waits, or a call, or another call ends it, which
 * needs the serializer. Then nothing has changed.
 */
bool fairwq_waitlist_detach(struct fairwq_runner *runner, struct fairwq_serializer *serializer,
			    unsigned int ending)
{
	scoped_guard(raw_spinlock_irqsave, fairwq_serializer_lock(serializer)) {
		if (!list_empty(&serializer->waiting) || serializer->ending != ending)
			return false;
		serializer->in_flight = 0;
		WRITE_ONCE(serializer->ending, 1);
	}
	lock_map_release(&serializer->lockdep_map);
	runner->turn.serializer = NULL;
	return true;
}

/* Wait until all items that are queued now have ended, or were dropped. */
void fairwq_waitlist_wait(struct fairwq_serializer *serializer)
{
	raw_spinlock_t *lock = fairwq_serializer_lock(serializer);
	struct fairwq_own_work marker = { .work.flags = FAIRWQ_WORK_BARRIER };

	fairwq_wait_begin(&serializer->lockdep_map, !READ_ONCE(serializer->unsafe));
	init_completion(&marker.done);
	/* Under the lock: what has ended last may still be at the serializer. */
	scoped_guard(raw_spinlock_irqsave, lock) {
		if (!serializer->in_flight && list_empty(&serializer->waiting))
			return;
		list_add_tail(&marker.work.node, &serializer->waiting);
	}
	wait_for_completion(&marker.done);
	/* So may be what has completed it. The caller may free the serializer. */
	raw_spin_lock_irq(lock);
	raw_spin_unlock_irq(lock);
}

/*
 * Take the first work out of the list, behind markers or not, as a cancel does.
 * Its batch stays. If no end will come for the markers in front of the next
 * one, they are through. Return: the work, or NULL.
 */
static struct fairwq_work *waitlist_take(struct fairwq_serializer *serializer,
					 struct fairwq_batch **dropping)
{
	struct fairwq_work *work, *taken = NULL;

	guard(raw_spinlock_irqsave)(fairwq_serializer_lock(serializer));
	list_for_each_entry(work, &serializer->waiting, node) {
		*dropping = batch_if_listed_locked(work, serializer);
		if (*dropping) {
			release_listed_locked(serializer, *dropping, work, 0, true);
			taken = work;
			break;
		}
	}
	if (!serializer->in_flight)
		next_locked(serializer, NULL, NULL);
	return taken;
}

/*
 * Count @n more calls that end @serializer, and refuse new items while there
 * are some. With @drop what waits does not start from here on, and the caller
 * takes it out.
 */
void fairwq_waitlist_end(struct fairwq_serializer *serializer, int n, bool drop)
{
	guard(raw_spinlock_irqsave)(fairwq_serializer_lock(serializer));
	WRITE_ONCE(serializer->ending, serializer->ending + n);
	serializer->dropping |= drop;
}

/*
 * Take out what waits, one work after the other: each is pending until @dropped
 * is called for it, so another cancel may take it before. The batch stays until
 * that has returned.
 */
void fairwq_waitlist_drop(struct fairwq_serializer *serializer,
			  void (*dropped)(struct fairwq_work *work))
{
	struct fairwq_batch *batch;
	struct fairwq_work *work;

	while ((work = waitlist_take(serializer, &batch))) {
		if (dropped)
			dropped(work);
		guard(rcu)();
		guard(raw_spinlock_irqsave)(&batch->pool->lock);
		batch->nr_dropping--;
		fairwq_fifo_reap_locked(batch);
	}
}

/*
 * Try once to find a work that is LISTED: add @waiter to it; or, if that is
 * NULL, take it out. Its word becomes @word then.
 *
 * Return: 1; -EDEADLK, with @waiter, if the work waits behind the caller's own
 * item, one at a time; or FAIRWQ_AGAIN: it is listed no more.
 */
int fairwq_waitlist_find(struct fairwq_work *work, long word, struct fairwq_waiter *waiter)
{
	/* A hint, checked again under the lock that it chooses. */
	struct fairwq_serializer *serializer = READ_ONCE(work->serializer);
	struct fairwq_batch *batch;

	if (!serializer)
		return FAIRWQ_AGAIN;
	fairwq_test_point(FAIRWQ_POINT_TAKE_OUT, NULL);
	guard(raw_spinlock_irqsave)(fairwq_serializer_lock(serializer));
	batch = batch_if_listed_locked(work, serializer);
	if (!batch)
		return FAIRWQ_AGAIN;
	if (!waiter) {
		release_listed_locked(serializer, batch, work, word, false);
		return 1;
	}
	if (serializer->max == 1 && fairwq_runner_is_of(serializer))
		return -EDEADLK;
	guard(raw_spinlock)(&batch->pool->lock);
	fairwq_waiter_add_locked(batch, waiter, 0);
	return 1;
}
