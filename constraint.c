// SPDX-License-Identifier: GPL-2.0
/*
 * Constraints: what may keep a work back before it gets into its batch.
 *
 * A work that is queued through a constraint is pending and CONSTRAINED, and
 * names the batch that it is bound for, until its constraint lets it go; then
 * it is pushed as any other. The pool knows nothing of constraints but that one
 * is to be told when a turn has ended, or a work was cancelled.
 *
 * Who is about to put a work into a constraint, or to push what it has let go,
 * has interrupts off. So a cancel, which may be an interrupt, that finds a work
 * half-way there can wait: whoever has it is on another CPU, and soon done.
 *
 * A work leaves its constraint under one of the locks below, which are not in
 * the constraint: a cancel can take the lock, and find only then whether the
 * work is still in there, and so whether the constraint still exists.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/hash.h>
#include <linux/rcupdate.h>

#include "internal.h"

#define LOCK_BITS	7

/* Of those constraints whose addresses fall together. Nothing is locked under them. */
static struct {
	raw_spinlock_t lock ____cacheline_aligned_in_smp;
} fairwq_constraint_locks[1 << LOCK_BITS] = {
	[0 ... (1 << LOCK_BITS) - 1] = {
		.lock = __RAW_SPIN_LOCK_UNLOCKED(fairwq_constraint_locks.lock),
	},
};

raw_spinlock_t *fairwq_constraint_lock(const struct fairwq_constraint *constraint)
{
	return &fairwq_constraint_locks[hash_ptr(constraint, LOCK_BITS)].lock;
}

/* ---- in and out ------------------------------------------------------- */

/* @work, which waits, may go on: from here on it is the caller's to push. */
void fairwq_admit_locked(struct fairwq_work *work)
{
	long data = atomic_long_read(&work->data);

	lockdep_assert_held(fairwq_constraint_lock(work->constraint));

	WARN_ON_ONCE((data & (FAIRWQ_WORK_CONSTRAINED | FAIRWQ_WORK_GRACE)) !=
		     FAIRWQ_WORK_CONSTRAINED);
	WRITE_ONCE(work->place, 0);
	atomic_long_set(&work->data, data | FAIRWQ_WORK_GRACE);
}

/*
 * Push what was let go. Interrupts have been off since then.
 *
 * That it was CONSTRAINED is over when it is found in the queue, as with a
 * work that has waited for a grace period: fairwq_link_locked().
 */
void fairwq_admit_push(struct fairwq_work *work)
{
	struct fairwq_batch *batch = fairwq_work_batch(atomic_long_read(&work->data));

	rcu_read_lock();	/* see fairwq_kick_locked() */
	fairwq_push_claimed(batch, work);
	if (!fairwq_mutant(SERIAL_NOT_HELD))
		fairwq_unhold(batch);
	rcu_read_unlock();
}

/* A work of it has run, or was cancelled. No lock is held. */
void fairwq_complete(struct fairwq_constraint *constraint)
{
	constraint->ops->complete(constraint);
}

/**
 * fairwq_constraint_admit - let a work go on that was kept back
 * @work: the work, for which admit() has returned false, or is about to
 *
 * Once for each work that was kept back. It gets its place in the order of its
 * batch now.
 *
 * Context: Any but NMI.
 */
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

/* The work is claimed. Interrupts are off, and under rcu_read_lock(). */
static void fairwq_enter(struct fairwq_constraint *constraint, struct fairwq_batch *batch,
			 struct fairwq_work *work)
{
	long data = atomic_long_read(&work->data);

	/* Accepted is accepted: if the batch is disposed, it waits for this. */
	if (!fairwq_mutant(SERIAL_NOT_HELD))
		fairwq_hold(batch);
	WRITE_ONCE(work->place, constraint->ops->remove ? 0 : FAIRWQ_PLACE_FOREIGN);
	/* Store @place, then this. Pairs with fairwq_cancel_constrained(). */
	smp_store_release(&work->constraint, constraint);
	if (!constraint->ops->admit(constraint, work))
		return;		/* it may have gone on by now, and be over */
	/* Nobody else had it. */
	WRITE_ONCE(work->place, 0);
	atomic_long_set(&work->data, data | FAIRWQ_WORK_GRACE);
	fairwq_admit_push(work);
}

static int fairwq_queue_through(struct fairwq_constraint *constraint,
				struct fairwq_batch *batch, struct fairwq_work *work)
{
	int ret = fairwq_refusal(batch);
	unsigned long flags;

	if (ret)
		return ret;
	ret = fairwq_reserve(batch, work);
	if (ret <= 0)
		return ret;
	local_irq_save(flags);	/* see fairwq_cancel_constrained() */
	ret = fairwq_claim(batch, work, FAIRWQ_WORK_CONSTRAINED);
	if (ret == FAIRWQ_CLAIMED)
		fairwq_enter(constraint, batch, work);
	else
		fairwq_unreserve(batch);
	local_irq_restore(flags);
	return ret == FAIRWQ_CLAIMED ? FAIRWQ_QUEUED : ret;
}

/**
 * fairwq_queue_constrained - queue a work that a constraint may keep back
 * @constraint: the constraint; it must stay until it was told that @work has
 *	ended
 * @batch: the batch; the caller holds a reference, or knows otherwise that it
 *	has not been released
 * @work: the work, set up by fairwq_work_init()
 *
 * The work is pending from now on, and takes up room in @batch (max_queued).
 * It gets its place in the order of @batch when @constraint lets it go. If
 * @batch is disposed meanwhile, it stays until this work has run or was
 * cancelled; so does fairwq_pool_destroy(). What only flushes or drains does
 * not wait for it, but fairwq_work_flush().
 *
 * Context: Any but NMI. Allocates nothing. May be called from @work's own
 * function.
 * Return: as fairwq_queue().
 */
int fairwq_queue_constrained(struct fairwq_constraint *constraint,
			     struct fairwq_batch *batch, struct fairwq_work *work)
{
	int ret;

	if (!constraint)
		return fairwq_bad_arg("constraint is NULL");
	if (!constraint->ops || !constraint->ops->admit || !constraint->ops->complete)
		return fairwq_bad_arg("constraint is not set up");
	if (!batch)
		return fairwq_bad_arg("batch is NULL");
	if (!work)
		return fairwq_bad_arg("work is NULL");
	if (!work->func)
		return fairwq_bad_arg("work has no function");
	rcu_read_lock();	/* as in fairwq_queue() */
	ret = fairwq_queue_through(constraint, batch, work);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL_GPL(fairwq_queue_constrained);

/* ---- cancelling what waits -------------------------------------------- */

/*
 * As fairwq_try_cancel(). Under the lock what is marked as WAITING cannot leave
 * its constraint, and so that exists.
 */
static int fairwq_take_out_locked(struct fairwq_constraint *constraint,
				  struct fairwq_work *work, bool wait)
{
	unsigned int place;
	long data;

	lockdep_assert_held(fairwq_constraint_lock(constraint));

	if (READ_ONCE(work->constraint) != constraint)
		return -EAGAIN;
	place = READ_ONCE(work->place);
	/* Load @place, then these: it was good if they say so. Pairs with fairwq_enter(). */
	smp_rmb();
	data = atomic_long_read(&work->data);
	if (READ_ONCE(work->constraint) != constraint ||
	    (data & (FAIRWQ_WORK_CONSTRAINED | FAIRWQ_WORK_GRACE)) !=
	    FAIRWQ_WORK_CONSTRAINED)
		return -EAGAIN;
	if (place & FAIRWQ_PLACE_FOREIGN)
		return wait ? -EAGAIN : 0;
	if (!(place & FAIRWQ_PLACE_WAITING))
		return -EAGAIN;
	return constraint->ops->remove(constraint, work) ? 1 : -EAGAIN;
}

/* From here on it is its caller's. Returns where it was bound for. */
static struct fairwq_batch *fairwq_let_go_constrained(struct fairwq_work *work)
{
	struct fairwq_batch *batch = fairwq_work_batch(atomic_long_read(&work->data));

	fairwq_unreserve(batch);
	WRITE_ONCE(work->place, 0);
	WRITE_ONCE(work->constraint, NULL);
	atomic_long_set_release(&work->data, 0);
	return batch;
}

/*
 * A work that waits in a constraint. As fairwq_try_cancel(); -EAGAIN: it is on
 * its way in or out, with interrupts off.
 */
int fairwq_cancel_constrained(struct fairwq_work *work, bool wait)
{
	/* Pairs with fairwq_enter(). */
	struct fairwq_constraint *constraint = smp_load_acquire(&work->constraint);
	raw_spinlock_t *lock = fairwq_constraint_lock(constraint);
	struct fairwq_batch *batch = NULL;
	unsigned long flags;
	int ret;

	if (!constraint)
		return -EAGAIN;
	raw_spin_lock_irqsave(lock, flags);
	ret = fairwq_take_out_locked(constraint, work, wait);
	if (ret > 0)
		batch = fairwq_let_go_constrained(work);
	raw_spin_unlock_irqrestore(lock, flags);
	if (batch && !fairwq_mutant(SERIAL_NOT_HELD))
		fairwq_unhold(batch);
	return ret;
}

/* ---- waiting ---------------------------------------------------------- */

/* The caller is an item of it, and would wait for itself. */
bool fairwq_constraint_from_inside(const struct fairwq_constraint *constraint,
				   const char *what)
{
	const struct fairwq_turn *turn = fairwq_own_turn();

	return WARN_ONCE(turn && turn->constraint == constraint,
			 "fairwq: item %ps of batch %s/%s would wait for itself in %s of %p\n",
			 turn->func, turn->batch->pool->name, turn->batch->name, what,
			 constraint);
}

/* Behind fairwq_constraint_init(), which has the description. */
void __fairwq_constraint_init(struct fairwq_constraint *constraint,
			      const struct fairwq_constraint_ops *ops,
			      const char *name, struct lock_class_key *key)
{
	if (WARN_ON_ONCE(!constraint || !ops))
		return;
	constraint->ops = ops;
#ifdef CONFIG_LOCKDEP
	lockdep_init_map(&constraint->lockdep_map, name, key, 0);
#endif
}
EXPORT_SYMBOL_GPL(__fairwq_constraint_init);
