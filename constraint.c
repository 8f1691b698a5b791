// SPDX-License-Identifier: GPL-2.0
/*
 * Constraints: what may keep a work back before it gets into its batch.
 *
 * A work that is queued through a constraint is pending and CONSTRAINED, and
 * names the batch that it is bound for, until its constraint lets it go; then
 * it is pushed as any other. The pool knows nothing of constraints but that one
 * is to be told when a turn has ended, or a work was cancelled.
 *
 * Serializers and limiters have their works in lists, each under one of the locks
 * below. A queue call claims the work and puts it there under that lock. So a cancel
 * that has the lock finds it there, or not at all. The locks are not in the constraints:
 * a cancel can take one, and find only then whether the work is still in there, and so
 * whether the constraint still exists.
 *
 * What is let go is pushed with interrupts off from then on, whatever CPU does that. So
 * a cancel waits for it: what it waits for is not under it on its own CPU, and is soon over.
 *
 * A constraint of a client's own has whatever locks it likes, and a cancel may come with
 * one of them held. So it is not waited for: what it keeps back stays there.
 *
 * Serializers and limiters are the same but for how many may be in flight, and that a
 * runner may go on with the items of a serializer: streak.c.
 *
 * Invariant: under the lock of a constraint, what is kept back and LINKED, and names that
 * constraint, is in its list.
 * Invariant: if something waits, @max are in flight, or a marker is the first that waits and
 * at least one is in flight. So there is always an end that lets the next one go.
 * Invariant: nothing touches a serializer or limiter after it has lowered @in_flight, and
 * dropped the lock.
 *
 * Model: tests/models/enter.pml.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/hash.h>
#include <linux/rcupdate.h>

#include "core/push.h"
#include "core/waitlist.h"
#include "doors.h"

/* ---- waiting until a work is let go ------------------------------------ */

/* ---- in and out ------------------------------------------------------- */

void fairwq_constraint_admit(struct fairwq_work *work)
{
	raw_spinlock_t *lock;
	unsigned long flags;

	if (WARN_ON_ONCE(!work || !work->constraint))
		return;
	local_irq_save(flags);
	lock = fairwq_constraint_lock(work->constraint);
	raw_spin_lock(lock);
	fairwq_admit_locked(work);
	raw_spin_unlock(lock);
	fairwq_admit_push(work);
	local_irq_restore(flags);
}
EXPORT_SYMBOL_GPL(fairwq_constraint_admit);

/* ---- what serializers and limiters have in common ---------------------- */

static const struct fairwq_constraint_ops fairwq_listed_ops = {
	.admit = fairwq_listed_admit,
	.complete = fairwq_listed_complete,
	.remove = fairwq_listed_remove,
};

/* A serializer or a limiter: at most @max are in flight. */
void fairwq_constraint_init_listed(struct fairwq_constraint *constraint, unsigned int max,
				   const char *name, struct lock_class_key *key)
{
	memset(constraint, 0, sizeof(*constraint));
	INIT_LIST_HEAD(&constraint->waiting);
	constraint->max = max;
	__fairwq_constraint_init(constraint, &fairwq_listed_ops, name, key);
}

/* ---- queueing ---------------------------------------------------------- */

/* Claim it, with @word. Returns as fairwq_claim_as(). */
static __always_inline
int claim_constrained(struct fairwq_constraint *constraint, struct fairwq_batch *batch,
		      struct fairwq_work *work, long word)
{
	int ret = fairwq_claim_as(batch, work, word);

	if (likely(ret == FAIRWQ_CLAIMED)) {
		work->place = 0;
		work->stamp = (unsigned long)batch;
		WRITE_ONCE(work->constraint, constraint);
	}
	return ret;
}

/* A serializer or a limiter. What may go on at once was not kept back: it holds nothing. */
static int enter(struct fairwq_constraint *constraint, struct fairwq_batch *batch,
		 struct fairwq_work *work)
{
	raw_spinlock_t *lock = fairwq_constraint_lock(constraint);
	bool admitted = false;
	int ret;

	raw_spin_lock(lock);
	ret = claim_constrained(constraint, batch, work, WORD_LISTED);
	if (likely(ret == FAIRWQ_CLAIMED)) {
		admitted = constraint->ops->admit(constraint, work);
		if (admitted)
			atomic_long_set(&work->data, fairwq_word_admitted(batch));
		else
			fairwq_hold(batch);
	}
	raw_spin_unlock(lock);
	if (admitted)
		fairwq_push_claimed(batch, work);
	return ret;
}

/* One of a client's own: what that locks is not ours to know, so it has no lock of ours. */
static int enter_own(struct fairwq_constraint *constraint, struct fairwq_batch *batch,
		     struct fairwq_work *work)
{
	int ret = claim_constrained(constraint, batch, work, WORD_OWN);

	if (ret != FAIRWQ_CLAIMED)
		return ret;
	fairwq_hold(batch);
	/* Unless it says so, @work may have gone on by then, and be over. */
	if (constraint->ops->admit(constraint, work))
		fairwq_constraint_admit(work);
	return ret;
}

static int queue_through(struct fairwq_constraint *constraint,
			 struct fairwq_batch *batch, struct fairwq_work *work)
{
	unsigned long flags;
	int ret;

	ret = unlikely(READ_ONCE(constraint->dead)) ? -ESHUTDOWN : fairwq_refusal(batch);
	if (ret)
		return fairwq_unless_pending(work, ret);
	ret = batch->max_queued ? fairwq_reserve(batch, work) : 1;
	if (ret <= 0)
		return ret;
	local_irq_save(flags);	/* until it is pushed, if it is: see above */
	ret = constraint->ops->remove ? enter(constraint, batch, work) :
					enter_own(constraint, batch, work);
	local_irq_restore(flags);
	if (likely(ret == FAIRWQ_CLAIMED))
		return FAIRWQ_QUEUED;
	fairwq_unreserve(batch);
	return ret;
}

int fairwq_queue_constrained(struct fairwq_constraint *constraint,
			     struct fairwq_batch *batch, struct fairwq_work *work)
{
	int ret;

	if (!constraint)
		return fairwq_bad_arg("constraint is NULL");
	if (!constraint->ops || !constraint->ops->admit || !constraint->ops->complete)
		return fairwq_bad_arg("constraint is not set up");
	if (fairwq_is_no_pointer(batch))
		return fairwq_bad_arg("batch is NULL or an error");
	if (!work)
		return fairwq_bad_arg("work is NULL");
	if (!work->func)
		return fairwq_bad_arg("work has no function");
	rcu_read_lock();	/* as in fairwq_queue() */
	ret = queue_through(constraint, batch, work);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL_GPL(fairwq_queue_constrained);

/* ---- cancelling what waits -------------------------------------------- */

/* Behind fairwq_constraint_init(), which has the description. */
void __fairwq_constraint_init(struct fairwq_constraint *constraint,
			      const struct fairwq_constraint_ops *ops,
			      const char *name, struct lock_class_key *key)
{
	if (WARN_ON_ONCE(!constraint || !ops))
		return;
	constraint->ops = ops;
	constraint->dead = false;
#ifdef CONFIG_LOCKDEP
	lockdep_init_map(&constraint->lockdep_map, name, key, 0);
#endif
}
EXPORT_SYMBOL_GPL(__fairwq_constraint_init);
