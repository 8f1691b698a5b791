// SPDX-License-Identifier: GPL-2.0
/*
 * Waitlists: works that wait in front of their batch, in a serializer or a limiter.
 *
 * A work that is queued through a constraint is pending and CONSTRAINED, and names
 * the batch that it is bound for, until its constraint admits it; then it is pushed
 * as any other.
 *
 * Serializers and limiters have their works in lists, each under one of the locks
 * below. A queue call claims the work and puts it there under that lock. So a cancel
 * that has the lock finds it there, or not at all. The locks are not in the
 * constraints: a cancel can take one, and find only then whether the work is still in
 * there, and so whether the constraint still exists.
 *
 * An admitted work is pushed with interrupts off from then on, by any CPU. So a
 * cancel waits for that push: it is not under the cancel on its own CPU, and is soon
 * over.
 *
 * A constraint of a client's own has locks that fairwq does not know, and a cancel may
 * come with one of them held. So it is not waited for: what it keeps back stays there.
 *
 * Invariant: under the lock of a constraint, a work that is kept back and LINKED, and
 * names that constraint, is in its list.
 *
 * Model: tests/models/enter.pml.
 */
#include <linux/completion.h>
#include <linux/hash.h>
#include <linux/rcupdate.h>

#include "lockdep.h"
#include "push.h"
#include "testing.h"
#include "waitlist.h"

#define LOCK_BITS	7

/*
 * Of those constraints whose addresses fall together. Nothing of fairwq's is
 * locked under them. @waiters, under the lock: calls that sleep until a work
 * leaves a constraint.
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

/*
 * The word of a work that is kept back by @constraint, whose lock is held, or 0. Until
 * that is dropped it is so, and the constraint exists.
 */
static long kept_word_locked(const struct fairwq_work *work,
			     const struct fairwq_constraint *constraint)
{
	/*
	 * Load the word, then @constraint: not that of an earlier queueing. Pairs with
	 * let_go_constrained(), let_go() and fairwq_start_item(). Model:
	 * tests/models/enter.pml.
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
 * Wake the calls that wait for @work, which has left a constraint of this lock,
 * or for any work that is seen to have left. @work by its address: it may be
 * queued again by now. While no call waits this is one look beside the lock. Otherwise
 * it looks at each call that waits for any work of this lock.
 */
static void left_locked(struct fairwq_constraint_lock *lock,
			const struct fairwq_work *work)
{
	struct fairwq_kept_waiter *waiter;
	struct hlist_node *next;

	lockdep_assert_held(&lock->lock);

	if (likely(hlist_empty(&lock->waiters)))
		return;
	hlist_for_each_entry_safe(waiter, next, &lock->waiters, node) {
		if (waiter->work != work &&
		    fairwq_work_is_kept_back(atomic_long_read(&waiter->work->data)))
			continue;
		hlist_del(&waiter->node);
		complete(&waiter->done);	/* @waiter is gone from here on */
	}
}

/*
 * Wake the calls that wait for works that were taken out of @constraint. The
 * works cannot come back before the lock is dropped.
 */
void fairwq_kept_left_locked(const struct fairwq_constraint *constraint)
{
	left_locked(lock_of(constraint), NULL);
}

/*
 * Sleep until a work is not kept back any more. @listed: else only if it cannot be
 * taken out. Return: false if that cannot be waited for, or was over at once.
 */
bool fairwq_wait_kept(struct fairwq_work *work, bool listed)
{
	const struct fairwq_constraint *constraint = READ_ONCE(work->constraint);
	struct fairwq_constraint_lock *lock = lock_of(constraint);
	struct fairwq_kept_waiter waiter = { .work = work };
	unsigned long flags;
	bool waits;
	long data;

	/* Without one it is about to be kept back. */
	if (!constraint)
		return false;
	init_completion(&waiter.done);
	raw_spin_lock_irqsave(&lock->lock, flags);
	data = kept_word_locked(work, constraint);
	waits = data == WORD_OWN || (data && listed);
	if (waits)
		hlist_add_head(&waiter.node, &lock->waiters);
	raw_spin_unlock_irqrestore(&lock->lock, flags);
	if (waits)
		wait_for_completion(&waiter.done);
	return waits;
}

/* The word of one that is let go. */
long fairwq_word_admitted(const struct fairwq_batch *batch)
{
	return (long)batch | WORD_OWN | FAIRWQ_WORK_GRACE;
}

/* @work, which waits, may go on: from here on it is the caller's to push. */
void fairwq_admit_locked(struct fairwq_work *work)
{
	lockdep_assert_held(fairwq_constraint_lock(work->constraint));

	WARN_ON_ONCE(!fairwq_work_is_kept_back(atomic_long_read(&work->data)));
	work->place = 0;
	atomic_long_set(&work->data, fairwq_word_admitted(fairwq_kept_batch(work)));
	left_locked(lock_of(work->constraint), work);
}

/* From here on it is its caller's. Returns where it was bound for. */
static struct fairwq_batch *let_go_constrained(struct fairwq_work *work)
{
	struct fairwq_batch *batch = fairwq_kept_batch(work);

	fairwq_unreserve(batch);
	work->stamp = 0;
	work->place = 0;
	WRITE_ONCE(work->constraint, NULL);
	/*
	 * Pairs with the cmpxchg() of the next queue call, and with
	 * kept_word_locked(). Model: tests/models/enter.pml.
	 */
	atomic_long_set_release(&work->data, 0);
	return batch;
}

/*
 * Push what was kept back, and let go. Interrupts have been off since then.
 *
 * That it was CONSTRAINED is over when it is found in the queue, as with a
 * work that has waited for a grace period: link_locked().
 */
void fairwq_admit_push(struct fairwq_work *work)
{
	struct fairwq_batch *batch = fairwq_work_batch(atomic_long_read(&work->data));

	fairwq_test_point(FAIRWQ_POINT_ADMITTED, NULL);
	rcu_read_lock();	/* see fairwq_kick_locked() */
	fairwq_push_claimed(batch, work);
	fairwq_unhold(batch);
	rcu_read_unlock();
}

/* A work of it has run, or was cancelled. No lock is held. */
void fairwq_complete(struct fairwq_constraint *constraint)
{
	constraint->ops->complete(constraint);
}

static bool listed_room_locked(const struct fairwq_constraint *constraint)
{
	lockdep_assert_held(fairwq_constraint_lock(constraint));

	return constraint->in_flight < constraint->max;
}

bool fairwq_listed_admit(struct fairwq_constraint *constraint, struct fairwq_work *work)
{
	unsigned int prio = BIT(fairwq_kept_batch(work)->prio);

	lockdep_assert_held(fairwq_constraint_lock(constraint));

	if (unlikely(!(constraint->seen & prio)))
		constraint->seen |= prio;
	if (list_empty(&constraint->waiting) && listed_room_locked(constraint)) {
		constraint->in_flight++;
		return true;
	}
	list_add_tail(&work->node, &constraint->waiting);
	return false;
}

void fairwq_listed_remove(struct fairwq_constraint *constraint, struct fairwq_work *work)
{
	lockdep_assert_held(fairwq_constraint_lock(constraint));

	list_del(&work->node);
}

/*
 * All that was in flight has ended. Return the first work that waits, and stays there, or
 * NULL. Markers in front of it go to @go.
 */
struct fairwq_work *fairwq_constraint_first_locked(struct fairwq_constraint *constraint,
						   struct list_head *go)
{
	struct fairwq_work *work, *next;

	lockdep_assert_held(fairwq_constraint_lock(constraint));

	list_for_each_entry_safe(work, next, &constraint->waiting, node) {
		if (!(work->place & FAIRWQ_PLACE_BARRIER))
			return work;
		list_move_tail(&work->node, go);
	}
	return NULL;
}

/*
 * One that was in flight has ended. What may go on now goes to @go: works, and markers that
 * are through. The constraint may be gone when the lock is dropped.
 */
void fairwq_constraint_next_locked(struct fairwq_constraint *constraint, struct list_head *go)
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
			if (!listed_room_locked(constraint))
				break;
			constraint->in_flight++;
			fairwq_admit_locked(work);
		}
		list_move_tail(&work->node, go);
	}
}

/* Push the works, and wake the calls that wait at the markers. Interrupts have been off. */
void fairwq_constraint_go(struct list_head *go)
{
	struct fairwq_work *work, *next;

	list_for_each_entry_safe(work, next, go, node) {
		list_del(&work->node);
		if (work->place & FAIRWQ_PLACE_BARRIER)
			complete(&container_of(work, struct fairwq_marker, entry)->done);
		else
			fairwq_admit_push(work);
	}
}

void fairwq_listed_complete(struct fairwq_constraint *constraint)
{
	raw_spinlock_t *lock = fairwq_constraint_lock(constraint);
	unsigned long flags;
	LIST_HEAD(go);

	local_irq_save(flags);	/* until all is pushed, see above */
	raw_spin_lock(lock);
	fairwq_constraint_next_locked(constraint, &go);
	raw_spin_unlock(lock);
	fairwq_test_point(FAIRWQ_POINT_LIMITER_LEFT, NULL);
	fairwq_constraint_go(&go);
	local_irq_restore(flags);
}

/* Until all that is queued now has ended. Returns whether there was anything. */
bool fairwq_constraint_wait(struct fairwq_constraint *constraint)
{
	struct fairwq_marker marker = { .entry.place = FAIRWQ_PLACE_BARRIER };
	raw_spinlock_t *lock = fairwq_constraint_lock(constraint);
	unsigned long flags;
	bool busy;

	fairwq_lockdep_wait_constrained(constraint);
	init_completion(&marker.done);
	/* Under the lock: what has ended last may still be at the constraint. */
	raw_spin_lock_irqsave(lock, flags);
	busy = constraint->in_flight;
	if (busy)
		list_add_tail(&marker.entry.node, &constraint->waiting);
	raw_spin_unlock_irqrestore(lock, flags);
	if (busy)
		wait_for_completion(&marker.done);
	return busy;
}

/*
 * A work that is kept back, with @data in the word. As fairwq_try_cancel(); FAIRWQ_AGAIN:
 * it is on its way in or out, on a CPU that has interrupts off.
 */
int fairwq_cancel_constrained(struct fairwq_work *work, long data, bool wait)
{
	/* A hint: looked at again, under the lock that it says. */
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
	if (kept_word_locked(work, constraint) == WORD_LISTED) {
		constraint->ops->remove(constraint, work);
		batch = let_go_constrained(work);
		left_locked(lock_of(constraint), work);
	}
	raw_spin_unlock_irqrestore(lock, flags);
	if (!batch)
		return FAIRWQ_AGAIN;
	fairwq_unhold(batch);
	return 1;
}
