// SPDX-License-Identifier: GPL-2.0
/*
 * Constraints: what may keep a work back before it gets into its batch.
 *
 * A work that is queued through a constraint is pending and CONSTRAINED, and
 * names the batch that it is bound for, until its constraint lets it go; then
 * it is pushed as any other. The pool knows nothing of constraints but that one
 * is to be told when a turn has ended, or a work was cancelled.
 *
 * A cancel, which may be an interrupt, may find a work on its way into a
 * constraint, or from there into its batch. If another CPU has it there, it can
 * wait: such a queue call runs with preemption off, and who pushes what a constraint
 * has let go, with interrupts off. If it is on top of the queue call, it leaves
 * CANCELED in the word, and the queue call takes the work out again when it has
 * got that far, before it returns, or whoever lets it go first drops it. So that
 * it can tell, each CPU has a list of the queue calls that it is in the middle of.
 *
 * A work leaves its constraint under one of the locks below, which are not in
 * the constraint: a cancel can take the lock, and find only then whether the
 * work is still in there, and so whether the constraint still exists.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/hash.h>
#include <linux/percpu.h>
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

/* The word of one that is let go. That it was cancelled is not forgotten. */
static long fairwq_admitted(const struct fairwq_work *work, long data)
{
	return (long)fairwq_kept_batch(work) | FAIRWQ_WORK_PENDING | FAIRWQ_WORK_CONSTRAINED |
	       FAIRWQ_WORK_GRACE | (data & FAIRWQ_WORK_CANCELED);
}

/* @work, which waits, may go on: from here on it is the caller's to push. */
void fairwq_admit_locked(struct fairwq_work *work)
{
	struct fairwq_constraint *constraint = fairwq_constraint_named(work->constraint);
	long data = atomic_long_read(&work->data);

	lockdep_assert_held(fairwq_constraint_lock(constraint));

	WARN_ON_ONCE((data & (FAIRWQ_WORK_CONSTRAINED | FAIRWQ_WORK_GRACE)) !=
		     FAIRWQ_WORK_CONSTRAINED);
	WRITE_ONCE(work->place, 0);
	WRITE_ONCE(work->constraint, constraint);
	/*
	 * Store @constraint, then the word. Pairs with fairwq_cancel_admitted_locked().
	 * Model: tests/models/enter.pml.
	 */
	atomic_long_set_release(&work->data, fairwq_admitted(work, data));
}

/* As if it had never been let go. What it had there is the caller's to settle. */
void fairwq_keep_back_locked(struct fairwq_constraint *constraint, struct fairwq_work *work,
			     struct fairwq_batch *batch)
{
	lockdep_assert_held(fairwq_constraint_lock(constraint));

	work->stamp = (unsigned long)batch;
	WRITE_ONCE(work->place, FAIRWQ_PLACE_SORTED | FAIRWQ_PLACE_TOLD);
	/*
	 * Pairs with fairwq_cancel_constrained(), as in fairwq_enter(). No model: who
	 * takes it out waits for the lock first.
	 */
	smp_store_release(&work->constraint, fairwq_waits_in(constraint));
	atomic_long_set_release(&work->data, FAIRWQ_WORK_PENDING | FAIRWQ_WORK_CONSTRAINED);
}

/* From here on it is its caller's. Returns where it was bound for. */
static struct fairwq_batch *fairwq_let_go_constrained(struct fairwq_work *work)
{
	struct fairwq_batch *batch = fairwq_kept_batch(work);

	fairwq_unreserve(batch);
	work->stamp = 0;
	WRITE_ONCE(work->place, 0);
	WRITE_ONCE(work->constraint, NULL);
	/*
	 * Pairs with the cmpxchg() of the next queue call, and with fairwq_undo().
	 * Model: tests/models/enter.pml.
	 */
	atomic_long_set_release(&work->data, 0);
	return batch;
}

static void fairwq_unhold_constrained(struct fairwq_batch *batch)
{
	if (!fairwq_mutant(SERIAL_NOT_HELD))
		fairwq_unhold(batch);
}

/* It was let go, and somebody has cancelled it: for its constraint it has ended. */
static void fairwq_drop_admitted(struct fairwq_work *work)
{
	struct fairwq_constraint *constraint = work->constraint;
	struct fairwq_batch *batch = fairwq_let_go_constrained(work);

	/* First, as it may name @batch until then: see lift.c. */
	fairwq_complete(constraint);
	fairwq_unhold_constrained(batch);
}

/*
 * Push what was let go. Interrupts have been off since then, or it is a queue
 * call that nobody has kept back.
 *
 * That it was CONSTRAINED is over when it is found in the queue, as with a
 * work that has waited for a grace period: fairwq_link_locked().
 */
void fairwq_admit_push(struct fairwq_work *work)
{
	struct fairwq_batch *batch;
	long data;

	fairwq_test_point(FAIRWQ_POINT_ADMITTED, NULL);
	/*
	 * Load the word, then @constraint: who has cancelled it since it was let go has
	 * told that, and it is dropped where it arrives. Pairs with
	 * fairwq_cancel_admitted_locked(). Model: tests/models/enter.pml.
	 */
	data = atomic_long_read_acquire(&work->data);
	batch = fairwq_work_batch(data);
	rcu_read_lock();	/* see fairwq_kick_locked() */
	if (unlikely(data & FAIRWQ_WORK_CANCELED) && READ_ONCE(work->constraint)) {
		fairwq_drop_admitted(work);
	} else {
		fairwq_push_claimed(batch, work);
		fairwq_unhold_constrained(batch);
	}
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
	lock = fairwq_constraint_lock(fairwq_constraint_named(work->constraint));
	raw_spin_lock(lock);
	fairwq_admit_locked(work);
	raw_spin_unlock(lock);
	fairwq_admit_push(work);
	local_irq_restore(flags);
}
EXPORT_SYMBOL_GPL(fairwq_constraint_admit);

/* A queue call that is under way. Its address is in the word of what it has claimed. */
struct fairwq_entry {
	const struct fairwq_work *work;
	struct fairwq_entry *under;	/* on top of which other one of this CPU */
	bool canceled;			/* by an interrupt on top of it */
};

/* The topmost. Each is on the stack of its call, and taken off by that. */
static DEFINE_PER_CPU(struct fairwq_entry *, fairwq_entries);

static struct fairwq_entry *fairwq_top_entry(void)
{
	return READ_ONCE(*this_cpu_ptr(&fairwq_entries));
}

/*
 * If the caller is on top of a queue call for @work, that one does not return
 * before @work was dropped: the lowest one, as it may be the one that is to push
 * it. Where preemption is on, he is on top of nothing.
 */
bool fairwq_cancel_entering(const struct fairwq_work *work)
{
	struct fairwq_entry *entry, *lowest = NULL;

	preempt_disable();
	for (entry = fairwq_top_entry(); entry; entry = entry->under) {
		if (entry->work != work)
			continue;
		lowest = entry;
		if (fairwq_mutant(ENTRY_HIDDEN))
			break;
	}
	if (lowest)
		WRITE_ONCE(lowest->canceled, true);
	preempt_enable();
	return lowest;
}

/* It was cancelled on its way through a constraint. */
static bool fairwq_word_is_left(long data)
{
	return (data & FAIRWQ_WORK_CANCELED) && (data & FAIRWQ_WORK_CONSTRAINED);
}

/* As fairwq_take_out_locked(), of what was cancelled. */
static bool fairwq_undo_locked(struct fairwq_constraint *constraint, struct fairwq_work *work)
{
	bool left = fairwq_mutant(UNDO_WORD_FIRST) &&
		    fairwq_word_is_left(atomic_long_read(&work->data));
	const struct fairwq_constraint *named;

	lockdep_assert_held(fairwq_constraint_lock(constraint));

	if (fairwq_mutant(UNDO_WORD_FIRST))
		fairwq_test_point(FAIRWQ_POINT_UNDO_LOOK, NULL);
	/* Load this, then the word: pairs with the claim of it. Model: enter.pml. */
	named = smp_load_acquire(&work->constraint);
	if (!fairwq_mutant(UNDO_WORD_FIRST)) {
		fairwq_test_point(FAIRWQ_POINT_UNDO_LOOK, NULL);
		left = fairwq_word_is_left(atomic_long_read(&work->data));
	}
	return left && named == fairwq_waits_in(constraint) &&
	       constraint->ops->remove(constraint, work);
}

/*
 * An interrupt on top of us has cancelled it. If it is in the constraint, we take
 * it out, or else whoever has let it go is about to drop it, on another CPU: before
 * we return, as it may be freed then.
 */
static void fairwq_undo(struct fairwq_constraint *constraint, struct fairwq_work *work)
{
	raw_spinlock_t *lock = fairwq_constraint_lock(constraint);
	struct fairwq_batch *batch = NULL;
	unsigned long flags;

	fairwq_test_point(FAIRWQ_POINT_SERIAL_UNDO, NULL);
	/*
	 * Pairs with the release in fairwq_let_go_constrained(). Model:
	 * tests/models/enter.pml.
	 */
	while (!batch && fairwq_word_is_left(atomic_long_read_acquire(&work->data))) {
		raw_spin_lock_irqsave(lock, flags);
		if (fairwq_undo_locked(constraint, work))
			batch = fairwq_let_go_constrained(work);
		raw_spin_unlock_irqrestore(lock, flags);
		cpu_relax();
	}
	if (batch)
		fairwq_unhold_constrained(batch);
}

/* The word was free: what was cancelled before that is over, and may be forgotten. */
static __always_inline void fairwq_entry_claimed(struct fairwq_entry *entry)
{
	if (likely(!READ_ONCE(entry->canceled)))
		return;
	WRITE_ONCE(entry->canceled, false);
	barrier();	/* an interrupt on top may cancel it now */
	if (atomic_long_read(&entry->work->data) & FAIRWQ_WORK_CANCELED)
		WRITE_ONCE(entry->canceled, true);
}

/* The work is claimed, by @entry if there is one. Under rcu_read_lock(). */
static __always_inline
void fairwq_enter(struct fairwq_constraint *constraint, struct fairwq_batch *batch,
		  struct fairwq_work *work, struct fairwq_entry *entry)
{
	long data = atomic_long_read(&work->data);

	WRITE_ONCE(work->place, entry ? 0 : FAIRWQ_PLACE_FOREIGN);
	work->stamp = (unsigned long)batch;
	/*
	 * Accepted is accepted: if the batch is disposed, it waits for this.
	 *
	 * Full barrier: store the two, then @constraint. Pairs with
	 * fairwq_cancel_constrained(). Model: tests/models/enter.pml, which holds
	 * without it, too.
	 */
	if (!fairwq_mutant(SERIAL_NOT_HELD))
		fairwq_hold(batch);
	else
		smp_mb();	/* what that is, too */
	WRITE_ONCE(work->constraint, constraint);
	if (!constraint->ops->admit(constraint, work)) {
		/* It may have gone on by now, and be over. */
		fairwq_test_point(FAIRWQ_POINT_ENTERED, NULL);
		return;
	}
	/* Nobody else had it, but for who has left word by now that it is cancelled. */
	WRITE_ONCE(work->place, 0);
	while (!atomic_long_try_cmpxchg(&work->data, &data, fairwq_admitted(work, data)))
		;
	fairwq_admit_push(work);
}

static __always_inline
int fairwq_claim_and_enter(struct fairwq_constraint *constraint, struct fairwq_batch *batch,
			   struct fairwq_work *work, struct fairwq_entry *entry)
{
	int ret = fairwq_claim_as(batch, work, (long)entry | FAIRWQ_WORK_PENDING |
						FAIRWQ_WORK_CONSTRAINED);

	if (ret != FAIRWQ_CLAIMED) {
		fairwq_test_point(FAIRWQ_POINT_ENTER_REFUSED, batch);
		fairwq_unreserve(batch);
		return ret;
	}
	if (entry)
		fairwq_entry_claimed(entry);
	fairwq_enter(constraint, batch, work, entry);
	return FAIRWQ_QUEUED;
}

/* On top of @under, as far as this CPU is concerned. */
static int fairwq_enter_on_top(struct fairwq_constraint *constraint,
			       struct fairwq_batch *batch, struct fairwq_work *work,
			       struct fairwq_entry **top, struct fairwq_entry *under)
{
	/* The variable, not the type: no more is to be cleared than there is. */
	struct fairwq_entry entry __aligned(FAIRWQ_WORK_FLAGS + 1) = {
		.work = work, .under = under,
	};
	int ret;

	/* What is in it, for an interrupt; then the claim, whose cmpxchg() is a barrier, too. */
	barrier();
	WRITE_ONCE(*top, &entry);
	ret = fairwq_claim_and_enter(constraint, batch, work, &entry);
	WRITE_ONCE(*top, under);
	/* From here on no cancel counts on this call. */
	if (unlikely(READ_ONCE(entry.canceled)) && !fairwq_mutant(SERIAL_TOP_LOST))
		fairwq_undo(constraint, work);
	return ret;
}

/*
 * Of one that works can be taken out of. No interrupt changes the list for
 * whom it has interrupted.
 */
static int fairwq_enter_listed(struct fairwq_constraint *constraint,
			       struct fairwq_batch *batch, struct fairwq_work *work)
{
	struct fairwq_entry **top;
	int ret;

	preempt_disable();
	top = this_cpu_ptr(&fairwq_entries);
	ret = fairwq_enter_on_top(constraint, batch, work, top, *top);
	preempt_enable();
	return ret;
}

static int fairwq_queue_through(struct fairwq_constraint *constraint,
				struct fairwq_batch *batch, struct fairwq_work *work)
{
	int ret = fairwq_refusal(batch);
	unsigned long flags;

	if (ret)
		return ret;
	ret = batch->max_queued ? fairwq_reserve(batch, work) : 1;
	if (ret <= 0)
		return ret;
	if (constraint->ops->remove)
		return fairwq_enter_listed(constraint, batch, work);
	local_irq_save(flags);
	ret = fairwq_claim_and_enter(constraint, batch, work, NULL);
	local_irq_restore(flags);
	return ret;
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
 * As fairwq_try_cancel(). What names it as one in which it waits does so as long
 * as we have the lock: it cannot leave it, and so that exists.
 */
static int fairwq_take_out_locked(struct fairwq_constraint *constraint,
				  struct fairwq_work *work, bool wait)
{
	/* Load this, then the word: pairs with the claim of it. Model: enter.pml. */
	const struct fairwq_constraint *named = smp_load_acquire(&work->constraint);
	long data = atomic_long_read(&work->data);

	lockdep_assert_held(fairwq_constraint_lock(constraint));

	if (!fairwq_work_is_kept_back(data) || (data & FAIRWQ_WORK_CANCELED))
		return -EAGAIN;
	if (named == fairwq_waits_in(constraint) || fairwq_mutant(TAKEN_UNSEEN))
		return constraint->ops->remove(constraint, work) ? 1 : -EAGAIN;
	/* One that is not asked, whatever it is about to do with it. */
	if (named == constraint && (READ_ONCE(work->place) & FAIRWQ_PLACE_FOREIGN) && !wait)
		return 0;
	return -EAGAIN;
}

/*
 * Nobody has it but a queue call. If the caller is on top of that one, it
 * cannot go on, and is to see to it when it does. While it has not returned,
 * no other has its address; and what an earlier one there has claimed is in
 * its constraint by now.
 */
static int fairwq_leave_word(struct fairwq_work *work)
{
	long data = atomic_long_read(&work->data);
	struct fairwq_entry *entry;
	int ret = -EAGAIN;

	preempt_disable();
	/* There may be one on top of it, for the same work, that did not get it. */
	for (entry = fairwq_top_entry(); entry; entry = entry->under)
		if (entry->work == work &&
		    data == ((long)entry | FAIRWQ_WORK_PENDING | FAIRWQ_WORK_CONSTRAINED))
			break;
	if (fairwq_mutant(ENTRY_HIDDEN) && entry != fairwq_top_entry())
		entry = NULL;
	if (entry &&
	    atomic_long_try_cmpxchg(&work->data, &data, data | FAIRWQ_WORK_CANCELED)) {
		WRITE_ONCE(entry->canceled, true);
		ret = 1;
	}
	preempt_enable();
	return ret;
}

/*
 * A work that waits in a constraint. As fairwq_try_cancel(); -EAGAIN: it is on
 * its way in or out, on another CPU.
 */
int fairwq_cancel_constrained(struct fairwq_work *work, bool wait)
{
	/*
	 * Pairs with fairwq_enter() and fairwq_keep_back_locked(). Model:
	 * tests/models/enter.pml.
	 */
	struct fairwq_constraint *named = smp_load_acquire(&work->constraint);
	struct fairwq_constraint *constraint = fairwq_constraint_named(named);
	raw_spinlock_t *lock = fairwq_constraint_lock(constraint);
	struct fairwq_batch *batch = NULL;
	unsigned long flags;
	int ret = -EAGAIN;

	if (constraint) {
		fairwq_test_point(FAIRWQ_POINT_TAKE_OUT, NULL);
		raw_spin_lock_irqsave(lock, flags);
		ret = fairwq_take_out_locked(constraint, work, wait);
		if (ret > 0)
			batch = fairwq_let_go_constrained(work);
		raw_spin_unlock_irqrestore(lock, flags);
	}
	if (batch)
		fairwq_unhold_constrained(batch);
	if (ret == -EAGAIN && !wait)
		ret = fairwq_leave_word(work);
	return ret;
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
