// SPDX-License-Identifier: GPL-2.0
/*
 * Constraints: queueing through an object that may keep a work back.
 *
 *   event                          effect
 *   a queue call                   claims the work, and asks admit(): the work is
 *                                  queued to its batch, or waits in the constraint
 *   fairwq_constraint_admit()      queues a work that waits
 *   a work ends, or is cancelled   complete(), which may admit others
 *
 * core/waitlist.c has the list of serializers and limiters, the locks, and cancels.
 *
 * Locking: no lock of fairwq is held while a driver's own constraint is asked.
 * Invariant: a work that waits is held by the inbox of its batch, so the batch stays.
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

/*
 * Queue through a driver's own constraint. It takes locks that fairwq does not
 * know, so no lock of fairwq is held.
 * Return: as fairwq_claim_locked().
 */
static int enter_foreign(struct fairwq_constraint *constraint, struct fairwq_batch *batch,
			 struct fairwq_work *work)
{
	int ret;

	guard(irqsave)();		/* admit() may take a lock that interrupts take, too */
	scoped_guard(raw_spinlock, &batch->inbox.lock) {
		ret = fairwq_claim_locked(batch, work, FAIRWQ_STATE_LISTED);
		if (ret <= 0)
			return ret;
		WRITE_ONCE(work->constraint, constraint);
	}
	/* If admit() returns false, @work may have run and be gone by now. */
	if (constraint->ops->admit(constraint, work))
		fairwq_constraint_admit(work);
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
	guard(rcu)();		/* keeps @batch, see core/push.c */
	return constraint->ops->remove ? fairwq_waitlist_enter(constraint, batch, work) :
					 enter_foreign(constraint, batch, work);
}
EXPORT_SYMBOL_GPL(fairwq_queue_constrained);

/* ---- admitting -------------------------------------------------------- */

void fairwq_constraint_admit(struct fairwq_work *work)
{
	if (WARN_ON_ONCE(!work || !work->constraint))
		return;
	fairwq_waitlist_let_go(work);
}
EXPORT_SYMBOL_GPL(fairwq_constraint_admit);
