// SPDX-License-Identifier: GPL-2.0
/*
 * Constraints: queueing through an object that may keep a work back.
 *
 *   event                          effect
 *   a queue call                   claims the work, and asks admit(): the work is
 *                                  pushed to its batch, or waits in the constraint
 *   fairwq_constraint_admit()      pushes a work that waits
 *   a work ends, or is cancelled   complete(), which may admit others
 *
 * core/waitlist.c has the list of serializers and limiters, the locks, and cancels.
 *
 * Locking: interrupts are off from the claim until the work waits or is pushed.
 * No lock of fairwq is held while a driver's own constraint is asked.
 * Invariant: a work that waits pins its batch.
 * Model: tests/models/enter.pml.
 *
 * Limits: a work that waits in a driver's own constraint cannot be cancelled there.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/rcupdate.h>

#include "core/push.h"
#include "core/waitlist.h"
#include "doors.h"

/* ---- setting up ------------------------------------------------------- */

/* Set up a constraint; fairwq_constraint_init() has the description. */
void __fairwq_constraint_init(struct fairwq_constraint *constraint,
			      const struct fairwq_constraint_ops *ops,
			      const char *name, struct lock_class_key *key)
{
	if (WARN_ON_ONCE(!constraint || !ops))
		return;
	constraint->ops = ops;
	constraint->ending = 0;
	lockdep_init_map(&constraint->lockdep_map, name, key, 0);
}
EXPORT_SYMBOL_GPL(__fairwq_constraint_init);

static const struct fairwq_constraint_ops fairwq_listed_ops = {
	.admit = fairwq_waitlist_admit,
	.complete = fairwq_waitlist_complete,
	.remove = fairwq_waitlist_remove,
};

/*
 * Set up the constraint of a serializer or limiter, with at most @max in
 * flight.
 */
void fairwq_constraint_init_listed(struct fairwq_constraint *constraint, unsigned int max,
				   const char *name, struct lock_class_key *key)
{
	memset(constraint, 0, sizeof(*constraint));
	INIT_LIST_HEAD(&constraint->waiting);
	constraint->max = max;
	__fairwq_constraint_init(constraint, &fairwq_listed_ops, name, key);
}

/* ---- queueing --------------------------------------------------------- */

/* Claim a work with @word. Return: as fairwq_claim_as(). */
static __always_inline
int claim_constrained(struct fairwq_constraint *constraint, struct fairwq_batch *batch,
		      struct fairwq_work *work, long word)
{
	int ret = fairwq_claim_as(batch, work, word);

	if (likely(ret > 0)) {
		work->place = 0;
		work->stamp = (unsigned long)batch;
		WRITE_ONCE(work->constraint, constraint);
	}
	return ret;
}

/*
 * Queue through a serializer or limiter, under the lock of its list. A work
 * that is admitted at once pins nothing, because the caller pushes it.
 * Return: as fairwq_claim_as().
 */
static int enter(struct fairwq_constraint *constraint, struct fairwq_batch *batch,
		 struct fairwq_work *work)
{
	raw_spinlock_t *lock = fairwq_constraint_lock(constraint);
	bool admitted = false;
	int ret;

	raw_spin_lock(lock);
	ret = claim_constrained(constraint, batch, work, FAIRWQ_WORD_LISTED);
	if (likely(ret > 0)) {
		admitted = constraint->ops->admit(constraint, work);
		if (admitted)
			atomic_long_set(&work->data, fairwq_word_admitted(batch));
		else
			fairwq_pin(batch);
	}
	raw_spin_unlock(lock);
	if (admitted)
		fairwq_push_claimed(batch, work);
	return ret;
}

/*
 * Queue through a driver's own constraint. It takes locks that fairwq does not
 * know, so no lock of fairwq is held.
 * Return: as fairwq_claim_as().
 */
static int enter_foreign(struct fairwq_constraint *constraint, struct fairwq_batch *batch,
			 struct fairwq_work *work)
{
	int ret = claim_constrained(constraint, batch, work, FAIRWQ_WORD_OWN);

	if (ret <= 0)
		return ret;
	/* A cancel in between leaves it: the word says that it is in a constraint of its own. */
	fairwq_pin(batch);
	/* If admit() returns false, @work may have run and be gone by now. */
	if (constraint->ops->admit(constraint, work))
		fairwq_constraint_admit(work);
	return ret;
}

/* Return: 1; 0 if the work was pending; or a negative error. */
static int queue_through(struct fairwq_constraint *constraint,
			 struct fairwq_batch *batch, struct fairwq_work *work)
{
	int ret;

	if (unlikely(READ_ONCE(constraint->ending)))
		return fairwq_unless_pending(work, -ESHUTDOWN);
	ret = fairwq_reserve(batch, work);
	if (ret <= 0)
		return ret;
	scoped_guard(irqsave)	/* on again after the push, see the head */
		ret = constraint->ops->remove ? enter(constraint, batch, work) :
						enter_foreign(constraint, batch, work);
	if (unlikely(ret <= 0))
		fairwq_unreserve(batch);
	return ret;
}

int fairwq_queue_constrained(struct fairwq_constraint *constraint,
			     struct fairwq_batch *batch, struct fairwq_work *work)
{
	if (!constraint)
		return fairwq_bad_arg("constraint is NULL");
	if (!constraint->ops || !constraint->ops->admit || !constraint->ops->complete)
		return fairwq_bad_arg("constraint is not set up");
	if (fairwq_is_no_pointer(batch))
		return fairwq_bad_arg("batch is NULL or an error");
	if (!work || !work->func)
		return fairwq_bad_arg("work is NULL or has no function");
	guard(rcu)();		/* pairs as in fairwq_queue() */
	return queue_through(constraint, batch, work);
}
EXPORT_SYMBOL_GPL(fairwq_queue_constrained);

/* ---- admitting -------------------------------------------------------- */

void fairwq_constraint_admit(struct fairwq_work *work)
{
	if (WARN_ON_ONCE(!work || !work->constraint))
		return;
	guard(irqsave)();	/* until it is pushed, see core/waitlist.c */
	scoped_guard(raw_spinlock, fairwq_constraint_lock(work->constraint))
		fairwq_admit_locked(work);
	fairwq_test_point(FAIRWQ_POINT_ADMITTED, NULL);
	fairwq_push_held(work);
}
EXPORT_SYMBOL_GPL(fairwq_constraint_admit);
