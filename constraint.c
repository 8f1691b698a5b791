// SPDX-License-Identifier: GPL-2.0
/*
 * Constraints: what may keep a work back before it gets into its batch.
 *
 * A work that is queued through a constraint is pending and CONSTRAINED, and
 * names the batch that it is bound for, until its constraint lets it go; then
 * it is pushed as any other. The pool knows nothing of constraints but that one
 * is to be told when a turn has ended, or a work was cancelled.
 *
 * A cancel may find a work on its way into a constraint, or from there into its
 * batch. Who pushes what a constraint has let go has interrupts off, and a cancel
 * can wait for that. But a queue call has them on, and what has interrupted it may
 * wait for a lock that the cancel is under, or be the cancel. So a cancel waits for none:
 * it marks the entry of the queue call, and leaves CANCELED in the word. That call drops
 * the work before it returns. Nobody else does: what is CANCELED is left aside when it is
 * put into order, and so the work is there until the call has looked; which looks, after
 * it has pushed the work, at its mark alone.
 *
 * A work leaves its constraint under one of the locks below, which are not in
 * the constraint: a cancel can take the lock, and find only then whether the
 * work is still in there, and so whether the constraint still exists. Which lock is said
 * by the word, beside the entry: one for each queue call that a CPU may be in the middle
 * of. So under that lock, and with that word, it does not matter which queueing it is.
 *
 * Invariant: what waits in a constraint, and is in order there, is not CANCELED.
 * Invariant: under the lock that the word of a work names, which is kept back: it waits in
 * a constraint of that lock; or it is not pushed yet, and the queue call whose entry the
 * word names is under way; or it is aside, and that call has not dropped it yet.
 *
 * Model: tests/models/enter.pml.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/hash.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>

#include "internal.h"

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

static unsigned int fairwq_lock_index(const struct fairwq_constraint *constraint)
{
	return hash_ptr(constraint, LOCK_BITS);
}

raw_spinlock_t *fairwq_constraint_lock(const struct fairwq_constraint *constraint)
{
	return &fairwq_constraint_locks[fairwq_lock_index(constraint)].lock;
}

/*
 * The word of a work that is kept back: the flags, which lock, and whose entry; 0: of a
 * call that has none, as it has interrupts off, or is over.
 */
#define WORD_LOCK_SHIFT		const_ilog2(FAIRWQ_WORK_FLAGS + 1)
#define WORD_ENTRY_SHIFT	(WORD_LOCK_SHIFT + LOCK_BITS)

static long fairwq_kept_word(const struct fairwq_constraint *constraint, unsigned int entry)
{
	return (long)entry << WORD_ENTRY_SHIFT |
	       (long)fairwq_lock_index(constraint) << WORD_LOCK_SHIFT |
	       FAIRWQ_WORK_PENDING | FAIRWQ_WORK_CONSTRAINED;
}

static unsigned int fairwq_word_lock(long data)
{
	return (data >> WORD_LOCK_SHIFT) & ((1 << LOCK_BITS) - 1);
}

static unsigned int fairwq_word_entry(long data)
{
	return (unsigned long)data >> WORD_ENTRY_SHIFT;
}

/* ---- waiting until a work is let go ------------------------------------ */

/* A call that sleeps until @work is not kept back as @data says. */
struct fairwq_kept_waiter {
	struct hlist_node node;
	struct fairwq_work *work;
	long data;
	struct completion done;
};

/*
 * Wake the calls that wait for @work, which has left a constraint of this lock,
 * or for any work that is seen to have left. @work by its address: it may be
 * queued again by now, with the same word. While no call waits this is one look
 * beside the lock. Otherwise it looks at each call that waits for any work of
 * this lock.
 */
static void fairwq_left_locked(struct fairwq_constraint_lock *lock,
			       const struct fairwq_work *work)
{
	struct fairwq_kept_waiter *waiter;
	struct hlist_node *next;

	lockdep_assert_held(&lock->lock);

	if (likely(hlist_empty(&lock->waiters)) || fairwq_mutant(KEPT_UNTOLD))
		return;
	hlist_for_each_entry_safe(waiter, next, &lock->waiters, node) {
		if (waiter->work != work &&
		    atomic_long_read(&waiter->work->data) == waiter->data)
			continue;
		hlist_del(&waiter->node);
		complete(&waiter->done);	/* @waiter is gone from here on */
	}
}

static struct fairwq_constraint_lock *
fairwq_lock_of(const struct fairwq_constraint *constraint)
{
	return &fairwq_constraint_locks[fairwq_lock_index(constraint)];
}

/*
 * Wake the calls that wait for works that were taken out of @constraint. The
 * works cannot come back before the lock is dropped.
 */
void fairwq_kept_left_locked(const struct fairwq_constraint *constraint)
{
	fairwq_left_locked(fairwq_lock_of(constraint), NULL);
}

/*
 * Tell the calls that wait that a constraint has let @work go without the lock.
 */
static void fairwq_admitted_unlocked(const struct fairwq_constraint *constraint,
				     const struct fairwq_work *work)
{
	struct fairwq_constraint_lock *lock = fairwq_lock_of(constraint);
	unsigned long flags;

	/*
	 * After the word was changed. Pairs with fairwq_wait_kept(). No model.
	 */
	if (likely(hlist_empty(&lock->waiters)))
		return;
	raw_spin_lock_irqsave(&lock->lock, flags);
	fairwq_left_locked(lock, work);
	raw_spin_unlock_irqrestore(&lock->lock, flags);
}

/*
 * Check whether a work, with @data in the word, stays in its constraint until
 * that lets it go, and waiters are told: not if its queue call is on the way
 * there. @any: else only if it cannot be taken out.
 */
static bool fairwq_stays_locked(const struct fairwq_work *work, long data, bool any)
{
	const struct fairwq_constraint *named;

	lockdep_assert_held(&fairwq_constraint_locks[fairwq_word_lock(data)].lock);

	/*
	 * Load the word, then @constraint and @place. Pairs as in
	 * fairwq_take_out_locked(). Model: tests/models/enter.pml.
	 */
	if (atomic_long_read_acquire(&work->data) != data)
		return false;
	named = READ_ONCE(work->constraint);
	if (READ_ONCE(work->place) & FAIRWQ_PLACE_FOREIGN)
		return named;
	return any && named && named != fairwq_constraint_named(named) &&
	       fairwq_lock_index(fairwq_constraint_named(named)) == fairwq_word_lock(data);
}

/*
 * Sleep until a work is not kept back any more, as @data, its word, says; @any:
 * as above. Return: false if that cannot be waited for, or was over at once.
 */
bool fairwq_wait_kept(struct fairwq_work *work, long data, bool any)
{
	struct fairwq_constraint_lock *lock = &fairwq_constraint_locks[fairwq_word_lock(data)];
	struct fairwq_kept_waiter waiter = { .work = work, .data = data };
	unsigned long flags;
	bool waits;

	if (fairwq_mutant(KEPT_POLLED))
		return false;
	init_completion(&waiter.done);
	raw_spin_lock_irqsave(&lock->lock, flags);
	waits = fairwq_stays_locked(work, data, any);
	if (waits) {
		hlist_add_head(&waiter.node, &lock->waiters);
		/*
		 * Store @waiters, then load the word. Pairs with the cmpxchg()
		 * in fairwq_enter(), which does not take the lock. No model.
		 */
		smp_mb();
		waits = atomic_long_read(&work->data) == data;
		if (!waits)
			hlist_del(&waiter.node);
	}
	raw_spin_unlock_irqrestore(&lock->lock, flags);
	if (waits)
		wait_for_completion(&waiter.done);
	return waits;
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
	fairwq_left_locked(fairwq_lock_of(constraint), work);
}

/* As if it had never been let go. What it had there is the caller's to settle. */
void fairwq_keep_back_locked(struct fairwq_constraint *constraint, struct fairwq_work *work,
			     struct fairwq_batch *batch)
{
	lockdep_assert_held(fairwq_constraint_lock(constraint));

	work->stamp = (unsigned long)batch;
	WRITE_ONCE(work->place, FAIRWQ_PLACE_SORTED | FAIRWQ_PLACE_TOLD);
	/*
	 * Pairs with fairwq_take_out_locked(), as in fairwq_enter(). Model:
	 * tests/models/enter.pml; there the lock alone would do.
	 */
	smp_store_release(&work->constraint, fairwq_waits_in(constraint));
	atomic_long_set_release(&work->data, fairwq_kept_word(constraint, 0));
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
	 * Pairs with the cmpxchg() of the next queue call, and with
	 * fairwq_take_out_locked().
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

	fairwq_unhold_constrained(batch);
	fairwq_complete(constraint);
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

/* As an interrupt may be on top of another queue call: task, softirq, hardirq, and one more. */
#define ENTRIES		4U

/*
 * The queue calls that a CPU is in the middle of, on top of each other, each with an entry:
 * a mark, which is the word of what it is to drop without the flags, or 0. Any CPU may mark
 * it, at any time; if that turns out to be for one that is over by then, it is taken back.
 */
static DEFINE_PER_CPU(struct fairwq_entering {
	unsigned int nr;
	unsigned int first;		/* what the first one is called; 0: not known yet */
	long mark[ENTRIES];
}, fairwq_entering);

static long fairwq_mark_of(long data)
{
	return data & ~FAIRWQ_WORK_FLAGS;
}

/* Of the entry that @data names. */
static long *fairwq_mark(long data)
{
	unsigned int entry = fairwq_word_entry(data) - 1;

	return &per_cpu_ptr(&fairwq_entering, entry / ENTRIES)->mark[entry % ENTRIES];
}

/*
 * A mark is for the work that we have pushed, with @word in it. If it is still there, that
 * was cancelled, and nobody else drops it: only then it is touched. If it is not in order
 * yet, the constraint exists.
 */
static void fairwq_undo(struct fairwq_constraint *constraint, struct fairwq_work *work, long word)
{
	raw_spinlock_t *lock = fairwq_constraint_lock(constraint);
	struct fairwq_batch *batch = NULL;
	long *mark = fairwq_mark(word);
	unsigned long flags;

	fairwq_test_point(FAIRWQ_POINT_SERIAL_UNDO, NULL);
	raw_spin_lock_irqsave(lock, flags);
	if (READ_ONCE(*mark) == fairwq_mark_of(word) || fairwq_mutant(UNDO_UNASKED)) {
		if (!(READ_ONCE(work->place) & FAIRWQ_PLACE_ASIDE))
			constraint->ops->remove(constraint, work);
		batch = fairwq_let_go_constrained(work);
		fairwq_left_locked(fairwq_lock_of(constraint), work);
		WRITE_ONCE(*mark, 0);
	}
	raw_spin_unlock_irqrestore(lock, flags);
	if (batch)
		fairwq_unhold_constrained(batch);
}

/* The work is claimed, with @word. Under rcu_read_lock(). */
static __always_inline
void fairwq_enter(struct fairwq_constraint *constraint, struct fairwq_batch *batch,
		  struct fairwq_work *work, long word, long *mark)
{
	long data = word;

	WRITE_ONCE(work->place, constraint->ops->remove ? 0 : FAIRWQ_PLACE_FOREIGN);
	work->stamp = (unsigned long)batch;
	/*
	 * Accepted is accepted: if the batch is disposed, it waits for this.
	 *
	 * Full barrier: store the two, then @constraint. Pairs with
	 * fairwq_take_out_locked(). Model: tests/models/enter.pml.
	 */
	if (!fairwq_mutant(SERIAL_NOT_HELD))
		fairwq_hold(batch);
	else
		smp_mb();	/* what that is, too */
	WRITE_ONCE(work->constraint, constraint);
	if (!constraint->ops->admit(constraint, work)) {
		/* It may have gone on by now, and be over. */
		fairwq_test_point(FAIRWQ_POINT_ENTERED, NULL);
		/*
		 * Push, then look. Pairs with fairwq_leave_word_locked(), which marks it,
		 * then looks for what was pushed. Model: tests/models/enter.pml.
		 */
		if (mark && unlikely(READ_ONCE(*mark) == fairwq_mark_of(word)) &&
		    !fairwq_mutant(SERIAL_TOP_LOST))
			fairwq_undo(constraint, work, word);
		return;
	}
	/*
	 * Nobody else had it, but for who has left word by now that it is cancelled.
	 * Pairs with fairwq_leave_word_locked(). Model: tests/models/enter.pml.
	 */
	/* With interrupts off a cancel can wait for it to be pushed. */
	WRITE_ONCE(work->place, mark ? FAIRWQ_PLACE_OWN : 0);
	while (!atomic_long_try_cmpxchg(&work->data, &data, fairwq_admitted(work, data)))
		;
	/*
	 * With a mark it was never in the list, and so is not waited for:
	 * fairwq_stays_locked().
	 */
	if (!mark)
		fairwq_admitted_unlocked(constraint, work);
	/* Who has marked it, too: it is dropped there. */
	if (unlikely(data & FAIRWQ_WORK_CANCELED) && !fairwq_mutant(MARK_KEPT))
		WRITE_ONCE(*mark, 0);
	fairwq_admit_push(work);
}

/* @entry: 1 and more, with its @mark; or 0, with interrupts off. */
static __always_inline
int fairwq_claim_and_enter(struct fairwq_constraint *constraint, struct fairwq_batch *batch,
			   struct fairwq_work *work, unsigned int entry, long *mark)
{
	long word = fairwq_kept_word(constraint, entry);
	int ret = fairwq_claim_as(batch, work, word);

	if (ret == FAIRWQ_CLAIMED) {
		fairwq_enter(constraint, batch, work, word, mark);
		return FAIRWQ_QUEUED;
	}
	fairwq_test_point(FAIRWQ_POINT_ENTER_REFUSED, batch);
	/* It was cancelled while it was being disabled, and is free: see fairwq_unclaim(). */
	if (unlikely(ret == FAIRWQ_QUEUED) && mark)
		WRITE_ONCE(*mark, 0);
	fairwq_unreserve(batch);
	return ret;
}

static int fairwq_enter_masked(struct fairwq_constraint *constraint,
			       struct fairwq_batch *batch, struct fairwq_work *work)
{
	unsigned long flags;
	int ret;

	local_irq_save(flags);
	ret = fairwq_claim_and_enter(constraint, batch, work, 0, NULL);
	local_irq_restore(flags);
	return ret;
}

/*
 * Of one that works can be taken out of, with an entry of this CPU. Who interrupts us
 * takes the next one, and is through with it before we go on.
 */
static int fairwq_enter_listed(struct fairwq_constraint *constraint,
			       struct fairwq_batch *batch, struct fairwq_work *work)
{
	struct fairwq_entering *entering;
	unsigned int nr;
	int ret;

	preempt_disable();
	entering = this_cpu_ptr(&fairwq_entering);
	nr = READ_ONCE(entering->nr);
	/* To ask for the CPU takes a call on user-mode Linux. */
	if (unlikely(!READ_ONCE(entering->first)))
		WRITE_ONCE(entering->first, raw_smp_processor_id() * ENTRIES + 1);
	if (likely(nr < ENTRIES)) {
		WRITE_ONCE(entering->nr, nr + 1);
		/* It is ours, then used. Pairs with the same, in an interrupt here. No model. */
		barrier();
		ret = fairwq_claim_and_enter(constraint, batch, work,
					     READ_ONCE(entering->first) + nr,
					     &entering->mark[nr]);
		/* And no longer. */
		barrier();
		WRITE_ONCE(entering->nr, nr);
	} else {
		ret = fairwq_enter_masked(constraint, batch, work);
	}
	preempt_enable();
	return ret;
}

static int fairwq_queue_through(struct fairwq_constraint *constraint,
				struct fairwq_batch *batch, struct fairwq_work *work)
{
	int ret = fairwq_refusal(batch);

	if (ret)
		return fairwq_unless_pending(work, ret);
	ret = batch->max_queued ? fairwq_reserve(batch, work) : 1;
	if (ret <= 0)
		return ret;
	if (constraint->ops->remove)
		return fairwq_enter_listed(constraint, batch, work);
	return fairwq_enter_masked(constraint, batch, work);
}

/* The constraint takes no more. Returns what its queue call is to return. */
int fairwq_refuse_constrained(struct fairwq_batch *batch, struct fairwq_work *work)
{
	if (fairwq_is_no_pointer(batch))
		return fairwq_bad_arg("batch is NULL or an error");
	if (!work || !work->func)
		return fairwq_bad_arg("work is NULL or has no function");
	return fairwq_unless_pending(work, -ESHUTDOWN);
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
 * The call does not touch @work, @constraint or @batch any more once @work has run. If
 * it was cancelled in the middle of the call, it does so until it returns.
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
	if (fairwq_is_no_pointer(batch))
		return fairwq_bad_arg("batch is NULL or an error");
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

/* It waits in there, in a constraint of the lock that is held; and is taken out. */
static bool fairwq_remove_waiting(struct fairwq_work *work, long data)
{
	/*
	 * Load the word, then this: see the callers. Pairs with fairwq_enter() and
	 * fairwq_keep_back_locked(). Model: tests/models/enter.pml.
	 */
	const struct fairwq_constraint *named = READ_ONCE(work->constraint);
	struct fairwq_constraint *constraint = fairwq_constraint_named(named);

	if (!constraint || (named == constraint && !fairwq_mutant(TAKEN_UNSEEN)))
		return false;
	/* Of a later queueing, which has another word: one that we know nothing of. */
	if (fairwq_lock_index(constraint) != fairwq_word_lock(data))
		return false;
	return constraint->ops->remove(constraint, work);
}

/*
 * The work is not in the list: the queue call that has claimed it, with @data in the word,
 * is under way, and has not pushed it yet. It is to drop it. As fairwq_take_out_locked().
 */
static int fairwq_leave_word_locked(struct fairwq_work *work, long data,
				    struct fairwq_batch **batch)
{
	long *mark = fairwq_mark(data), mine = fairwq_mark_of(data);

	if (fairwq_mutant(WORD_ON_TOP) &&
	    (fairwq_word_entry(data) - 1) / ENTRIES != raw_smp_processor_id())
		return FAIRWQ_AGAIN;
	fairwq_test_point(FAIRWQ_POINT_LEAVE_WORD, NULL);
	/*
	 * Mark it, then look whether it was pushed. Pairs with fairwq_enter(): either it is
	 * in the list now, or the queue call sees the mark. Model: tests/models/enter.pml.
	 */
	if (cmpxchg(mark, 0, mine))
		return FAIRWQ_AGAIN;	/* of another one: then ours was pushed by now */
	fairwq_test_point(FAIRWQ_POINT_MARKED, NULL);
	if (!fairwq_mutant(LOOKED_ONCE) && fairwq_remove_waiting(work, data))
		*batch = fairwq_let_go_constrained(work);
	/* Then the word. Pairs with the same in fairwq_enter(). Model: tests/models/enter.pml. */
	else if (atomic_long_try_cmpxchg(&work->data, &data, data | FAIRWQ_WORK_CANCELED))
		return 1;
	/* Nobody else has seen it but a queue call that waits for the lock. Model: the same. */
	WRITE_ONCE(*mark, 0);
	return *batch ? 1 : FAIRWQ_AGAIN;
}

/*
 * As fairwq_try_cancel(). What names it as one in which it waits does so as long
 * as we have the lock: it cannot leave it, and so that exists. So does one of whose
 * queue call it is known that it is under way.
 */
static int fairwq_take_out_locked(struct fairwq_work *work, long data, bool wait,
				  struct fairwq_batch **batch)
{
	/*
	 * Load the word, then @constraint and @place. Pairs with the claim of it, and with
	 * fairwq_let_go_constrained(). Model: tests/models/enter.pml.
	 */
	if (atomic_long_read_acquire(&work->data) != data)
		return FAIRWQ_AGAIN;
	if (fairwq_remove_waiting(work, data)) {
		*batch = fairwq_let_go_constrained(work);
		return 1;
	}
	if (wait)
		return FAIRWQ_AGAIN;
	if (fairwq_word_entry(data))
		return fairwq_leave_word_locked(work, data, batch);
	/* One that is not asked, whatever it is about to do with it. Or interrupts are off. */
	return READ_ONCE(work->constraint) && (READ_ONCE(work->place) & FAIRWQ_PLACE_FOREIGN) ?
	       0 : FAIRWQ_AGAIN;
}

/*
 * A work that is kept back, with @data in the word. As fairwq_try_cancel(); FAIRWQ_AGAIN:
 * it is on its way in or out, on a CPU that has interrupts off.
 */
int fairwq_cancel_constrained(struct fairwq_work *work, long data, bool wait)
{
	struct fairwq_constraint_lock *lock = &fairwq_constraint_locks[fairwq_word_lock(data)];
	struct fairwq_batch *batch = NULL;
	unsigned long flags;
	int ret;

	fairwq_test_point(FAIRWQ_POINT_TAKE_OUT, NULL);
	raw_spin_lock_irqsave(&lock->lock, flags);
	ret = fairwq_take_out_locked(work, data, wait, &batch);
	if (batch)
		fairwq_left_locked(lock, work);
	raw_spin_unlock_irqrestore(&lock->lock, flags);
	if (batch)
		fairwq_unhold_constrained(batch);
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
