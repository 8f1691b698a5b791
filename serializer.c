// SPDX-License-Identifier: GPL-2.0
/*
 * Serializers: the items of one start in queue order, and never overlap.
 *
 * After Dmitry Vyukov's "local serializer": @count is of what is queued and in
 * flight. Who raises it from 0 may start his item; every other one links his
 * behind. When an item has ended the count is lowered, and unless it is 0 then,
 * there is a next one, which is started. So there is one at a time who may
 * start the next, and there is always somebody who will.
 *
 * One is counted first and linked then, as with the tail of an MCS lock: the
 * link is the last that a queue call does to the serializer, so that this may
 * go as soon as the items are through. Who is to start the next may have to
 * wait for that link; between the two interrupts are off.
 *
 * An item that is cancelled while it waits is still counted, as a *gap*: if the
 * count was lowered for it, it could become 0 while somebody is looking for the
 * next. Gaps are taken off the count when nothing else is left to be started.
 *
 * Invariant: count == items linked or being linked + in flight + gaps + markers.
 * Invariant: nobody touches a serializer after he has lowered its count to 0,
 * or completed a marker behind which nothing was counted.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>

#include "internal.h"

static struct fairwq_serializer *fairwq_to_serializer(struct fairwq_constraint *constraint)
{
	return container_of(constraint, struct fairwq_serializer, constraint);
}

/* ---- queueing --------------------------------------------------------- */

/*
 * Behind all that is queued; true if that is nothing. Interrupts are off.
 *
 * Full barriers: the first sees what the items before it did, as the count was
 * lowered after that; the others, as they are pushed by who saw the end.
 * Model: tests/models/count.pml.
 */
static bool fairwq_serializer_enter(struct fairwq_serializer *serializer,
				    struct fairwq_work *work)
{
	if (!atomic_fetch_inc(&serializer->count))
		return true;
	WRITE_ONCE(work->place, work->place | FAIRWQ_PLACE_WAITING);
	/* The last that we do to it. */
	llist_add(&work->llnode, &serializer->incoming);
	return false;
}

static bool fairwq_serializer_admit(struct fairwq_constraint *constraint,
				    struct fairwq_work *work)
{
	return fairwq_serializer_enter(fairwq_to_serializer(constraint), work);
}

/* ---- the next one ----------------------------------------------------- */

static void fairwq_serializer_sort_locked(struct fairwq_serializer *serializer)
{
	struct fairwq_work *work, *next;
	LIST_HEAD(pushed);

	lockdep_assert_held(fairwq_constraint_lock(&serializer->constraint));

	/* The list node overlays the llist node: _safe reads it first. */
	llist_for_each_entry_safe(work, next, llist_del_all(&serializer->incoming), llnode) {
		WRITE_ONCE(work->place, work->place | FAIRWQ_PLACE_SORTED);
		if (!fairwq_mutant(SERIAL_LIFO))
			list_add(&work->node, &pushed);
		else
			list_add_tail(&work->node, &pushed);
	}
	list_splice_tail(&pushed, &serializer->waiting);
}

static bool fairwq_serializer_remove(struct fairwq_constraint *constraint,
				     struct fairwq_work *work)
{
	struct fairwq_serializer *serializer = fairwq_to_serializer(constraint);

	fairwq_serializer_sort_locked(serializer);
	if (!(READ_ONCE(work->place) & FAIRWQ_PLACE_SORTED))
		return false;	/* about to be linked */
	list_del(&work->node);
	serializer->gaps++;
	return true;
}

/*
 * The first that waits, or NULL and how many gaps there were. Something is
 * counted; it will be there in a moment.
 */
static struct fairwq_work *fairwq_serializer_pop_locked(struct fairwq_serializer *serializer,
							unsigned int *gaps)
{
	struct fairwq_work *work;

	lockdep_assert_held(fairwq_constraint_lock(&serializer->constraint));

	for (;;) {
		if (list_empty(&serializer->waiting))
			fairwq_serializer_sort_locked(serializer);
		work = list_first_entry_or_null(&serializer->waiting,
						struct fairwq_work, node);
		if (work || serializer->gaps)
			break;
		cpu_relax();
	}
	if (work) {
		list_del(&work->node);
		if (!(work->place & FAIRWQ_PLACE_BARRIER))
			fairwq_admit_locked(work);
	} else {
		*gaps = serializer->gaps;
		serializer->gaps = 0;
	}
	return work;
}

/*
 * The next item to be pushed. NULL: there is none, and the serializer may be
 * gone. Interrupts are off.
 */
static struct fairwq_work *fairwq_serializer_next(struct fairwq_serializer *serializer)
{
	raw_spinlock_t *lock = fairwq_constraint_lock(&serializer->constraint);
	struct fairwq_marker *marker;
	struct fairwq_work *work;
	unsigned int gaps, left;

	do {
		gaps = 1;
		raw_spin_lock(lock);
		work = fairwq_serializer_pop_locked(serializer, &gaps);
		raw_spin_unlock(lock);
		if (work && !(work->place & FAIRWQ_PLACE_BARRIER))
			return work;
		if (!work && fairwq_mutant(SERIAL_GHOST))
			return NULL;
		/* A marker, or gaps. */
		left = atomic_sub_return(gaps, &serializer->count);
		if (work) {
			marker = container_of(work, struct fairwq_marker, entry);
			complete(&marker->done);	/* it is gone from here on */
		}
	} while (left);
	return NULL;
}

/* What was the first has ended. */
static void fairwq_serializer_complete(struct fairwq_constraint *constraint)
{
	struct fairwq_serializer *serializer = fairwq_to_serializer(constraint);
	struct fairwq_work *work;
	unsigned long flags;

	if (atomic_dec_and_test(&serializer->count))
		return;		/* it may be gone */
	local_irq_save(flags);	/* until it is pushed, see constraint.c */
	work = fairwq_serializer_next(serializer);
	if (work)
		fairwq_admit_push(work);
	local_irq_restore(flags);
}

/* ---- waiting ---------------------------------------------------------- */

static void fairwq_serializer_wait(struct fairwq_serializer *serializer)
{
	struct fairwq_marker marker = { .entry.place = FAIRWQ_PLACE_BARRIER };
	unsigned long flags;
	bool first;

	init_completion(&marker.done);
	local_irq_save(flags);	/* see fairwq_serializer_pop_locked() */
	first = fairwq_serializer_enter(serializer, &marker.entry);
	local_irq_restore(flags);
	if (first)
		fairwq_serializer_complete(&serializer->constraint);
	else
		wait_for_completion(&marker.done);
}

/**
 * fairwq_serializer_flush - wait for the items that are queued now
 * @serializer: the serializer
 *
 * On return every item that was queued before the call has ended, or was
 * cancelled. What is queued meanwhile is not waited for.
 *
 * Context: Process context, sleeps. From one of its own items it warns and
 * returns at once: the item would wait for itself.
 */
void fairwq_serializer_flush(struct fairwq_serializer *serializer)
{
	if (WARN_ON_ONCE(!serializer))
		return;
	might_sleep();
	if (fairwq_constraint_from_inside(&serializer->constraint, __func__))
		return;
	fairwq_lockdep_wait_constrained(&serializer->constraint);
	fairwq_serializer_wait(serializer);
}
EXPORT_SYMBOL_GPL(fairwq_serializer_flush);

/**
 * fairwq_serializer_destroy - refuse new items, wait until all have ended
 * @serializer: the serializer
 *
 * On return the memory may go. The caller sees to it that no call for it is
 * under way then; a queue call that comes while this waits is refused, or its
 * item is waited for.
 *
 * Context: Process context, sleeps. From one of its own items it warns and does
 * not wait.
 */
void fairwq_serializer_destroy(struct fairwq_serializer *serializer)
{
	if (WARN_ON_ONCE(!serializer))
		return;
	might_sleep();
	WRITE_ONCE(serializer->dead, true);
	if (fairwq_constraint_from_inside(&serializer->constraint, __func__))
		return;
	fairwq_lockdep_wait_constrained(&serializer->constraint);
	/* Whoever lowered it to 0 is through with it. Pairs with the full barriers there. */
	while (atomic_read_acquire(&serializer->count))
		fairwq_serializer_wait(serializer);
}
EXPORT_SYMBOL_GPL(fairwq_serializer_destroy);

/* ---- the interface ---------------------------------------------------- */

static const struct fairwq_constraint_ops fairwq_serializer_ops = {
	.admit = fairwq_serializer_admit,
	.complete = fairwq_serializer_complete,
	.remove = fairwq_serializer_remove,
};

/**
 * fairwq_serializer_queue - queue a work to a batch, behind others
 * @serializer: the serializer; it must stay until @work has ended, and the
 *	item's function must not free it
 * @batch: where @work is to run; the items of one serializer may be bound for
 *	any batches, of any pools
 * @work: the work, set up by fairwq_work_init()
 *
 * The items of a serializer start in the order in which they were queued to it,
 * each after the function of the one before has returned; what that one did is
 * seen. An item gets its place in its batch when its turn in the serializer has
 * come. See fairwq_queue_constrained() for what else that means. An item that
 * waits, or is on its way, and is cancelled does not hold up the others.
 *
 * What is not promised: anything about priorities. An item of a HIGH batch
 * waits for those before it in the serializer, whatever their batches are.
 * An item must not wait for one behind it.
 *
 * Context: Any but NMI. Allocates nothing, takes no lock unless @batch was
 * idle. May be called from @work's own function.
 * Return: as fairwq_queue(); -ESHUTDOWN also if @serializer is being destroyed.
 */
int fairwq_serializer_queue(struct fairwq_serializer *serializer,
			    struct fairwq_batch *batch, struct fairwq_work *work)
{
	if (!serializer)
		return fairwq_bad_arg("serializer is NULL");
	if (READ_ONCE(serializer->dead))
		return -ESHUTDOWN;
	return fairwq_queue_constrained(&serializer->constraint, batch, work);
}
EXPORT_SYMBOL_GPL(fairwq_serializer_queue);

/* Behind fairwq_serializer_init(), which has the description. */
void __fairwq_serializer_init(struct fairwq_serializer *serializer,
			      const char *name, struct lock_class_key *key)
{
	if (WARN_ON_ONCE(!serializer))
		return;
	memset(serializer, 0, sizeof(*serializer));
	INIT_LIST_HEAD(&serializer->waiting);
	__fairwq_constraint_init(&serializer->constraint, &fairwq_serializer_ops, name, key);
}
EXPORT_SYMBOL_GPL(__fairwq_serializer_init);
