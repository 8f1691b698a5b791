// SPDX-License-Identifier: GPL-2.0
/*
 * Waitlists: works that wait in a serializer or limiter, in front of a batch.
 *
 *                 room, none waits                       +--> push to the batch
 *   queue call --------------------------> admitted -----+
 *       |                                      ^
 *       +--> waiting: works and markers -------+ an item in flight ends
 *                    \--> taken out by a cancel, or started by a burst
 *
 * A queue call through a constraint makes its work pending and CONSTRAINED. The
 * work names its batch in @stamp until it is admitted. Then it is pushed as any
 * other. ops->complete() tells a constraint that a work has run or was
 * cancelled.
 *
 * Serializers and limiters differ in two things only. One is the number that may
 * be in flight. The other is that a runner may go on with a serializer's items
 * (burst.c). A marker waits in the list for a flush. It is through when nothing
 * before it is in the list or in flight.
 *
 * Locking: a list is under one of the hashed locks below. A queue call claims
 * the work and lists it under that lock. So a cancel that holds it finds the
 * work there, or not at all. The locks are not in the constraints, because a
 * cancel must take one before it can know whether the constraint still exists.
 *
 * The CPU that admits a work keeps interrupts off until it has pushed it. So a
 * cancel may wait for that push: it runs on another CPU and is soon over.
 *
 * A client's own constraint has locks that fairwq does not know, and a cancel
 * may be called with one of them held. So a cancel that must not sleep leaves a
 * work there, and one that may sleep waits until the work is admitted.
 *
 * A shutdown that drops what waits sets @max to 0. Then nothing is admitted any more.
 *
 * Invariant: under the lock of a constraint, a work that is kept back and
 * LINKED, and names that constraint, is in its list.
 * Invariant: if something waits, @max items are in flight, or a marker is first
 * and at least one item is in flight. So an end always comes to admit the next,
 * unless a shutdown takes out what waits.
 * Invariant: no CPU touches a serializer or limiter after it has lowered
 * @in_flight and dropped the lock.
 *
 * Model: tests/models/enter.pml.
 *
 * Limits: constraints share 128 locks. A call that sleeps until a work leaves is looked at
 * each time that a work leaves a constraint of the same lock.
 */
#include <linux/completion.h>
#include <linux/export.h>
#include <linux/hash.h>

#include "push.h"
#include "runner.h"
#include "testing.h"
#include "waitlist.h"

#define LOCK_BITS	7

/*
 * The locks of constraints, by the hash of their address. Under one of them no
 * other lock of fairwq may be taken. @waiters, under the lock: calls that sleep
 * until a work leaves a constraint.
 */
static struct fairwq_constraint_lock {
	raw_spinlock_t lock ____cacheline_aligned_in_smp;
	struct hlist_head waiters;
} fairwq_constraint_locks[1 << LOCK_BITS] = {
	[0 ... (1 << LOCK_BITS) - 1] = {
		.lock = __RAW_SPIN_LOCK_UNLOCKED(fairwq_constraint_locks.lock),
	},
};

static struct fairwq_constraint_lock *
lock_of(const struct fairwq_constraint *constraint)
{
	return &fairwq_constraint_locks[hash_ptr(constraint, LOCK_BITS)];
}

raw_spinlock_t *fairwq_constraint_lock(const struct fairwq_constraint *constraint)
{
	return &lock_of(constraint)->lock;
}

FAIRWQ_TEST_EXPORT(fairwq_constraint_lock);

/*
 * Check that @constraint, whose lock is held, keeps @work back. If it does,
 * that stays so under the lock, and the constraint exists.
 *
 * Return: the word of the work, or 0.
 */
static long kept_word_locked(const struct fairwq_work *work,
			     const struct fairwq_constraint *constraint)
{
	/*
	 * Load the word, then work->constraint, so that it is not that of an
	 * earlier queueing. Pairs with release_listed(), release_work() and
	 * fairwq_start_item(). Model: tests/models/enter.pml.
	 */
	long data = atomic_long_read_acquire(&work->data);

	lockdep_assert_held(fairwq_constraint_lock(constraint));

	if (READ_ONCE(work->constraint) != constraint)
		return 0;
	return fairwq_work_is_kept_back(data) ? data : 0;
}

/* A call that sleeps until @work is not kept back. */
struct fairwq_kept_waiter {
	struct hlist_node node;
	struct fairwq_work *work;
	struct completion done;
};

/*
 * Wake the calls that wait for @work, which leaves @constraint. This walks all calls
 * that wait under this lock.
 */
void fairwq_waitlist_wake_locked(const struct fairwq_constraint *constraint,
				 const struct fairwq_work *work)
{
	struct fairwq_kept_waiter *waiter;
	struct hlist_node *next;

	lockdep_assert_held(fairwq_constraint_lock(constraint));

	hlist_for_each_entry_safe(waiter, next, &lock_of(constraint)->waiters, node) {
		if (waiter->work != work)
			continue;
		hlist_del(&waiter->node);
		complete(&waiter->done);	/* @waiter may be gone from here on */
	}
}

/*
 * Sleep until a work is not kept back any more. Without @listed, do so only for
 * a client's own constraint, out of which a cancel cannot take the work.
 *
 * Return: false if the call did not sleep.
 */
bool fairwq_waitlist_wait_work(struct fairwq_work *work, bool listed)
{
	const struct fairwq_constraint *constraint = READ_ONCE(work->constraint);
	struct fairwq_constraint_lock *lock = lock_of(constraint);
	struct fairwq_kept_waiter waiter = { .work = work };
	bool for_reclaim;
	long data;

	/* Without one it is about to be kept back. */
	if (!constraint)
		return false;
	init_completion(&waiter.done);
	scoped_guard(raw_spinlock_irqsave, &lock->lock) {
		data = kept_word_locked(work, constraint);
		if (data != FAIRWQ_WORD_OWN && !(data && listed))
			return false;
		hlist_add_head(&waiter.node, &lock->waiters);
		for_reclaim = fairwq_is_for_reclaim(fairwq_kept_batch(work));
	}
	if (listed)		/* not a cancel */
		fairwq_check_reclaim(for_reclaim);
	wait_for_completion(&waiter.done);
	return true;
}

/* Admit @work, which waits: the caller must push it, with interrupts off until then. */
void fairwq_admit_locked(struct fairwq_work *work)
{
	lockdep_assert_held(fairwq_constraint_lock(work->constraint));

	WARN_ON_ONCE(!fairwq_work_is_kept_back(atomic_long_read(&work->data)));
	work->place = 0;
	atomic_long_set(&work->data, fairwq_word_admitted(fairwq_kept_batch(work)));
	fairwq_waitlist_wake_locked(work->constraint, work);
}

/* Take @work out, and set its word to @word. Return: the batch it was bound for. */
static struct fairwq_batch *release_listed(struct fairwq_constraint *constraint,
					   struct fairwq_work *work, long word)
{
	struct fairwq_batch *batch = fairwq_kept_batch(work);

	lockdep_assert_held(fairwq_constraint_lock(constraint));

	constraint->ops->remove(constraint, work);
	fairwq_unreserve(batch);
	work->stamp = 0;
	work->place = 0;
	WRITE_ONCE(work->constraint, NULL);
	/*
	 * Pairs with the cmpxchg() of the next queue call, and with
	 * kept_word_locked(). Model: tests/models/enter.pml.
	 */
	atomic_long_set_release(&work->data, word);
	fairwq_waitlist_wake_locked(constraint, work);
	return batch;
}

/* Admit @work if there is room and none waits, else list it. Return: true if admitted. */
bool fairwq_waitlist_admit(struct fairwq_constraint *constraint, struct fairwq_work *work)
{
	lockdep_assert_held(fairwq_constraint_lock(constraint));

	if (unlikely(!constraint->unsafe && !fairwq_is_for_reclaim(fairwq_kept_batch(work))))
		WRITE_ONCE(constraint->unsafe, true);
	if (list_empty(&constraint->waiting) && constraint->in_flight < constraint->max) {
		constraint->in_flight++;
		return true;
	}
	list_add_tail(&work->node, &constraint->waiting);
	return false;
}

/* Take @work out of the list. */
void fairwq_waitlist_remove(struct fairwq_constraint *constraint, struct fairwq_work *work)
{
	lockdep_assert_held(fairwq_constraint_lock(constraint));

	list_del(&work->node);
}

/*
 * Move the markers in front of the first work to @go. Nothing is in flight, but perhaps
 * the item of the caller, which has ended.
 *
 * Return: the first work, which stays in the list; or NULL, also if none may start.
 */
struct fairwq_work *fairwq_waitlist_first_locked(struct fairwq_constraint *constraint,
						 struct list_head *go)
{
	struct fairwq_work *work, *next;

	lockdep_assert_held(fairwq_constraint_lock(constraint));

	list_for_each_entry_safe(work, next, &constraint->waiting, node) {
		if (!(work->place & FAIRWQ_PLACE_BARRIER))
			return constraint->max ? work : NULL;
		list_move_tail(&work->node, go);
	}
	return NULL;
}

/*
 * Count an item as ended, and move all that may go on now to @go: works, and
 * markers that are through. The constraint may be gone when the lock is
 * dropped.
 */
void fairwq_waitlist_next_locked(struct fairwq_constraint *constraint, struct list_head *go)
{
	struct fairwq_work *work, *next;

	lockdep_assert_held(fairwq_constraint_lock(constraint));

	constraint->in_flight--;
	fairwq_test_point(FAIRWQ_POINT_LIMITER_ENDED, NULL);
	list_for_each_entry_safe(work, next, &constraint->waiting, node) {
		if (work->place & FAIRWQ_PLACE_BARRIER) {
			if (constraint->in_flight)
				break;
		} else {
			if (constraint->in_flight >= constraint->max)
				break;
			constraint->in_flight++;
			fairwq_admit_locked(work);
		}
		list_move_tail(&work->node, go);
	}
}

/*
 * Push the works on @go, and wake the calls that wait at its markers. Interrupts must
 * have been off since the works were admitted. They stay CONSTRAINED until they are
 * sorted, see link_locked().
 */
void fairwq_waitlist_push(struct list_head *go)
{
	struct fairwq_work *work, *next;

	list_for_each_entry_safe(work, next, go, node) {
		list_del(&work->node);
		if (work->place & FAIRWQ_PLACE_BARRIER) {
			complete(&container_of(work, struct fairwq_marker, entry)->done);
			continue;
		}
		fairwq_test_point(FAIRWQ_POINT_ADMITTED, NULL);
		fairwq_push_held(work);
	}
}

/* Count an item as ended, and push the works that may go on. */
void fairwq_waitlist_complete(struct fairwq_constraint *constraint)
{
	LIST_HEAD(go);

	guard(irqsave)();	/* until all is pushed, see the head */
	scoped_guard(raw_spinlock, fairwq_constraint_lock(constraint))
		fairwq_waitlist_next_locked(constraint, &go);
	fairwq_test_point(FAIRWQ_POINT_LIMITER_LEFT, NULL);
	fairwq_waitlist_push(&go);
}

/*
 * Wait until all items that are queued now have ended. Return: false if there were none; true,
 * without a wait, if some wait that no end will admit.
 */
bool fairwq_waitlist_wait(struct fairwq_constraint *constraint)
{
	struct fairwq_marker marker = { .entry.place = FAIRWQ_PLACE_BARRIER };

	fairwq_wait_begin(&constraint->lockdep_map, !READ_ONCE(constraint->unsafe));
	init_completion(&marker.done);
	/* Under the lock: what has ended last may still be at the constraint. */
	scoped_guard(raw_spinlock_irqsave, fairwq_constraint_lock(constraint)) {
		if (!constraint->in_flight)
			return !list_empty(&constraint->waiting);
		list_add_tail(&marker.entry.node, &constraint->waiting);
	}
	wait_for_completion(&marker.done);
	return true;
}

/* Return: the first work that waits, behind markers or not; or NULL. */
struct fairwq_work *fairwq_waitlist_work_locked(struct fairwq_constraint *constraint)
{
	struct fairwq_work *work;

	lockdep_assert_held(fairwq_constraint_lock(constraint));

	list_for_each_entry(work, &constraint->waiting, node)
		if (!(work->place & FAIRWQ_PLACE_BARRIER))
			return work;
	return NULL;
}

/*
 * Take the first work out of the list, as a cancel does. If no end will come for the markers
 * in front of the next one, they are through. Return: the work, or NULL.
 */
static struct fairwq_work *waitlist_take(struct fairwq_constraint *constraint)
{
	raw_spinlock_t *lock = fairwq_constraint_lock(constraint);
	struct fairwq_batch *batch = NULL;
	struct fairwq_work *work;
	unsigned long flags;
	LIST_HEAD(go);

	raw_spin_lock_irqsave(lock, flags);
	work = fairwq_waitlist_work_locked(constraint);
	if (work)
		batch = release_listed(constraint, work, 0);
	if (!constraint->in_flight)
		fairwq_waitlist_first_locked(constraint, &go);
	raw_spin_unlock_irqrestore(lock, flags);
	fairwq_waitlist_push(&go);
	if (batch)
		fairwq_unpin(batch);
	return work;
}

/* Refuse new items, until fairwq_waitlist_accept() was called as often. */
void fairwq_waitlist_refuse(struct fairwq_constraint *constraint)
{
	guard(raw_spinlock_irqsave)(fairwq_constraint_lock(constraint));
	WRITE_ONCE(constraint->ending, constraint->ending + 1);
}

void fairwq_waitlist_accept(struct fairwq_constraint *constraint)
{
	guard(raw_spinlock_irqsave)(fairwq_constraint_lock(constraint));
	WRITE_ONCE(constraint->ending, constraint->ending - 1);
}

/* From here on what waits does not start. The caller takes it out. */
void fairwq_waitlist_stop(struct fairwq_constraint *constraint)
{
	guard(raw_spinlock_irqsave)(fairwq_constraint_lock(constraint));
	constraint->max = 0;
}

/*
 * Take out what waits, one work after the other: each is pending until @dropped is called
 * for it, so another cancel may take it before.
 */
void fairwq_waitlist_drop(struct fairwq_constraint *constraint,
			  void (*dropped)(struct fairwq_work *work))
{
	struct fairwq_work *work;

	while ((work = waitlist_take(constraint)))
		if (dropped)
			dropped(work);
}

/*
 * Try once to take out a work that is kept back, with @data in its word, which becomes
 * @word. @wait: the caller can wait for a client's own constraint.
 *
 * Return: as fairwq_try_take(). FAIRWQ_AGAIN: the work is on its way in or
 * out, on a CPU that has interrupts off; or, with @wait, in a client's own
 * constraint.
 */
int fairwq_waitlist_take(struct fairwq_work *work, long data, long word, bool wait)
{
	/* A hint, checked again under the lock that it chooses. */
	struct fairwq_constraint *constraint = READ_ONCE(work->constraint);
	struct fairwq_batch *batch = NULL;
	unsigned long flags;
	raw_spinlock_t *lock;

	if (!(data & FAIRWQ_WORK_LINKED))
		return wait ? FAIRWQ_AGAIN : 0;
	if (!constraint)
		return FAIRWQ_AGAIN;
	fairwq_test_point(FAIRWQ_POINT_TAKE_OUT, NULL);
	lock = fairwq_constraint_lock(constraint);
	raw_spin_lock_irqsave(lock, flags);
	if (kept_word_locked(work, constraint) == FAIRWQ_WORD_LISTED)
		batch = release_listed(constraint, work, word);
	raw_spin_unlock_irqrestore(lock, flags);
	if (!batch)
		return FAIRWQ_AGAIN;
	fairwq_unpin(batch);
	return 1;
}
