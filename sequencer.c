// SPDX-License-Identifier: GPL-2.0
/*
 * Sequencers: the items of one run in parallel, and are completed in queue
 * order.
 *
 *   State      In the list  @ended  entered by                      left by
 *   ---------  -----------  ------  ------------------------------  -------------------
 *   idle       no           -       its completion; a drop          fairwq_sequencer_queue()
 *   runs       yes          no      fairwq_sequencer_queue()        the return of func
 *   waits      yes          yes     the return of func              its turn at the front
 *
 * The item whose end makes the front ready completes all that are ready, one
 * after the other. Meanwhile the ends of others only mark themselves: that item
 * sees them. It is on record outside of the sequencer, which the completion of
 * the last work may free, or set up anew.
 *
 * btrfs' async-thread.c does this by hand for its ordered works.
 *
 * An ordered batch has a sequencer of its own, which lives as long as the
 * batch. Each work in it has a reference to the batch, also between a cancel
 * and its drop. Unless works are dropped, a task completes works in a turn of
 * one that was queued no later than they were. So when the turns of a batch
 * have ended, its works are completed, if none waits in a serializer.
 *
 * Locking: one of the hashed locks below, which is not held while a completion
 * is called.
 * Invariant: while a sequencer has a completer, that looks at the front again
 * before it goes.
 * Invariant: no CPU touches a sequencer after it has seen its list empty and
 * dropped the lock.
 *
 * Limits: sequencers share 32 locks. The item that completes does so for as
 * long as others are ready, and its batch is charged for that. A call for a
 * work that a call for another sequencer has claimed returns 0, also if that
 * one is refused afterwards.
 */
#include <linux/completion.h>
#include <linux/export.h>
#include <linux/hash.h>
#include <linux/sched.h>

#include "core/runner.h"
#include "doors.h"

/* ---- locks -------------------------------------------------------------- */

#define LOCK_BITS	5

/* A task that calls completions. On its stack. */
struct fairwq_completer {
	struct hlist_node node;
	const struct fairwq_sequencer *sequencer;
	const struct task_struct *task;
	const struct fairwq_runner *runner; /* that of the item whose end it is, or NULL */
	bool more;			/* works are in the sequencer, so it exists */
};

/* By the hash of the sequencer's address. Under it all others may be taken. */
static struct fairwq_sequencer_lock {
	raw_spinlock_t lock ____cacheline_aligned_in_smp;
	struct hlist_head completers;	/* under the lock */
} fairwq_sequencer_locks[1 << LOCK_BITS] = {
	[0 ... (1 << LOCK_BITS) - 1] = {
		.lock = __RAW_SPIN_LOCK_UNLOCKED(fairwq_sequencer_locks.lock),
	},
};

static struct fairwq_sequencer_lock *lock_of(const struct fairwq_sequencer *sequencer)
{
	return &fairwq_sequencer_locks[hash_ptr(sequencer, LOCK_BITS)];
}

/*
 * Return the task that completes works of @sequencer, or NULL. The one that it
 * names may be gone. One that is on record for this address may have completed
 * the works of another sequencer, which was there before.
 */
static struct fairwq_completer *completer_locked(const struct fairwq_sequencer *sequencer)
{
	struct fairwq_completer *completer;

	lockdep_assert_held(&lock_of(sequencer)->lock);

	hlist_for_each_entry(completer, &lock_of(sequencer)->completers, node)
		if (completer == sequencer->completer && completer->sequencer == sequencer)
			return completer;
	return NULL;
}

/* Tell the task that completes works that the list has changed. */
static void list_changed_locked(const struct fairwq_sequencer *sequencer)
{
	struct fairwq_completer *completer = completer_locked(sequencer);

	if (completer)
		completer->more = !list_empty(&sequencer->works);
}

/* ---- completing --------------------------------------------------------- */

/* An entry of the list by which a flush waits. */
struct marker {
	struct fairwq_sequenced_work entry;	/* ended, and without a function */
	struct completion done;
};

/* The work is in no sequencer any more, and in no list. */
static void let_go(struct fairwq_sequenced_work *swork)
{
	/* Pairs with the claim in fairwq_sequencer_queue(). No model. */
	smp_store_release(&swork->sequencer, NULL);
}

/*
 * Complete the works that are ready, unless another task does, and drop the
 * lock. The sequencer may be gone then. @runner: whose item has ended, or NULL.
 */
static void complete_ready(struct fairwq_sequencer *sequencer, unsigned long flags,
			   const struct fairwq_runner *runner)
	__releases(&lock_of(sequencer)->lock)
{
	struct fairwq_completer self = {
		.sequencer = sequencer, .task = current, .runner = runner, .more = true,
	};
	struct fairwq_sequencer_lock *lock = lock_of(sequencer);
	struct fairwq_sequenced_work *first;
	struct fairwq_batch *batch;

	lockdep_assert_held(&lock->lock);

	if (completer_locked(sequencer)) {
		raw_spin_unlock_irqrestore(&lock->lock, flags);
		return;
	}
	hlist_add_head(&self.node, &lock->completers);
	sequencer->completer = &self;
	while (self.more) {
		first = list_first_entry_or_null(&sequencer->works, struct fairwq_sequenced_work,
						 node);
		if (!first || !first->ended)
			break;
		list_del(&first->node);
		self.more = !list_empty(&sequencer->works);
		if (!first->func) {
			complete(&container_of(first, struct marker, entry)->done);
			continue;
		}
		let_go(first);
		batch = sequencer->batch;
		raw_spin_unlock_irqrestore(&lock->lock, flags);
		/* May free it, or queue it again; the last one may free the sequencer. */
		first->complete(&first->work);
		fairwq_batch_put(batch);	/* of an ordered batch: the work's */
		cond_resched();
		raw_spin_lock_irqsave(&lock->lock, flags);
	}
	hlist_del(&self.node);
	raw_spin_unlock_irqrestore(&lock->lock, flags);
}

/* Run a work of a sequencer. The function that the engine calls; not the client's. */
static void sequenced_fn(struct fairwq_work *work)
{
	struct fairwq_sequenced_work *swork = container_of(work, struct fairwq_sequenced_work,
							   work);
	struct fairwq_sequencer *sequencer = READ_ONCE(swork->sequencer);
	struct fairwq_runner *runner = fairwq_runner_current();
	unsigned long flags;

	/* Reports and tables name it. */
	WRITE_ONCE(runner->turn.func, swork->func);
	runner->sequencer = sequencer;
	swork->func(work);
	runner->sequencer = NULL;
	if (WARN_ON_ONCE(!sequencer)) {		/* another call has queued it */
		swork->complete(work);
		return;
	}
	raw_spin_lock_irqsave(&lock_of(sequencer)->lock, flags);
	swork->ended = true;
	complete_ready(sequencer, flags, runner);
}

/* ---- queueing ----------------------------------------------------------- */

int fairwq_sequencer_queue(struct fairwq_sequencer *sequencer,
			   struct fairwq_serializer *serializer,
			   struct fairwq_batch *batch, struct fairwq_sequenced_work *swork)
{
	int ret;

	if (!sequencer && !fairwq_is_no_pointer(batch))
		sequencer = batch->order;
	if (!sequencer)
		return fairwq_bad_arg("sequencer is NULL, and batch is not ordered");
	if (!swork || !swork->work.func)
		return fairwq_bad_arg("swork is NULL or has no function");
	/* Held over the queue call: the batch and the serializer get works in this order. */
	guard(raw_spinlock_irqsave)(&lock_of(sequencer)->lock);
	/*
	 * Claim the work: a call for another sequencer has another lock. Pairs
	 * with let_go(). No model.
	 */
	if (cmpxchg(&swork->sequencer, NULL, sequencer))
		return 0;
	/* A batch that was found by RCU alone may have gone. */
	if (sequencer->batch && !kref_get_unless_zero(&sequencer->batch->refs)) {
		let_go(swork);
		return -ESHUTDOWN;
	}
	swork->ended = false;
	list_add_tail(&swork->node, &sequencer->works);
	ret = serializer ? fairwq_serializer_queue(serializer, batch, &swork->work) :
			   fairwq_queue(batch, &swork->work);
	if (ret <= 0) {
		list_del(&swork->node);
		let_go(swork);
		fairwq_batch_put(sequencer->batch);
	} else if (!fairwq_is_for_reclaim(batch)) {
		WRITE_ONCE(sequencer->unsafe, true);
	}
	list_changed_locked(sequencer);
	return ret;
}
EXPORT_SYMBOL_GPL(fairwq_sequencer_queue);

void fairwq_sequencer_drop(struct fairwq_work *work)
{
	struct fairwq_sequenced_work *swork;
	struct fairwq_sequencer *sequencer;
	struct fairwq_batch *batch;
	unsigned long flags;

	if (WARN_ON_ONCE(!work || work->func != sequenced_fn))
		return;
	might_sleep();
	swork = container_of(work, struct fairwq_sequenced_work, work);
	sequencer = READ_ONCE(swork->sequencer);
	if (!sequencer)		/* it is in none */
		return;
	raw_spin_lock_irqsave(&lock_of(sequencer)->lock, flags);
	list_del(&swork->node);
	list_changed_locked(sequencer);
	let_go(swork);
	batch = sequencer->batch;
	complete_ready(sequencer, flags, NULL);
	fairwq_batch_put(batch);
}
EXPORT_SYMBOL_GPL(fairwq_sequencer_drop);

/* ---- waiting ------------------------------------------------------------ */

/* Check whether the caller is an item of @sequencer, or completes one, and warn. */
static bool is_inside(const struct fairwq_sequencer *sequencer)
{
	const struct fairwq_runner *runner = fairwq_runner_of_item();
	const struct fairwq_completer *completer;
	bool inside;

	scoped_guard(raw_spinlock_irqsave, &lock_of(sequencer)->lock) {
		completer = completer_locked(sequencer);
		/* A task of a completion may have another runner, or another stack. */
		inside = completer && (completer->task == current ||
				       (runner && completer->runner == runner));
	}
	/* The work may be gone, if it is none of a sequencer. */
	inside |= runner && runner->sequencer == sequencer;
	return WARN_ONCE(inside, "fairwq: item %ps would wait for itself in %s of %p\n",
			 runner ? runner->turn.func : NULL, "fairwq_sequencer_flush", sequencer);
}

void fairwq_sequencer_flush(struct fairwq_sequencer *sequencer)
{
	struct marker marker = { .entry.ended = true };
	unsigned long flags;

	if (WARN_ON_ONCE(!sequencer))
		return;
	might_sleep();
	if (is_inside(sequencer))
		return;
	fairwq_check_reclaim(!READ_ONCE(sequencer->unsafe));
	init_completion(&marker.done);
	raw_spin_lock_irqsave(&lock_of(sequencer)->lock, flags);
	list_add_tail(&marker.entry.node, &sequencer->works);
	list_changed_locked(sequencer);
	complete_ready(sequencer, flags, NULL);	/* the marker, if nothing is before it */
	wait_for_completion(&marker.done);
}
EXPORT_SYMBOL_GPL(fairwq_sequencer_flush);

/* ---- setting up --------------------------------------------------------- */

void __fairwq_sequenced_work_init(struct fairwq_sequenced_work *swork, fairwq_func_t func,
				  fairwq_func_t complete, const char *name,
				  struct lock_class_key *key)
{
	if (WARN_ON_ONCE(!swork || !func || !complete))
		return;
	if (unlikely(!READ_ONCE(fairwq_sequenced_func)))
		WRITE_ONCE(fairwq_sequenced_func, sequenced_fn);	/* for tables */
	__fairwq_work_init(&swork->work, sequenced_fn, name, key);
	swork->func = func;
	swork->complete = complete;
	swork->sequencer = NULL;
}
EXPORT_SYMBOL_GPL(__fairwq_sequenced_work_init);
