// SPDX-License-Identifier: GPL-2.0
/*
 * Serializers: the items of one start in queue order, and never overlap.
 *
 * What Dmitry Vyukov's "local serializer" keeps in a count and a queue is @in_flight and
 * @waiting of the constraint here, under its lock: see constraint.c. The queue call that finds
 * it idle may start its item; every other one puts its item into the list. What may start the
 * next one *has the serializer*, from then on until it has seen, under the lock, that nothing
 * waits, and has made it idle; or until it has started the next. So there is one at a
 * time that may start the next, and always one that will.
 *
 * The lock is not in the serializer, and the list is the last of it that a queue call
 * touches. So it may go as soon as its items are through.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>

#include "internal.h"

/**
 * fairwq_serializer_set_inline - let a runner go on with the next item
 * @serializer: the serializer
 * @budget_us: for how long, in microseconds of the items behind the first, up
 *	to FAIRWQ_MAX_INLINE_US; 0: each item goes to its batch, unless there is
 *	nothing else to run, which is how it is set up
 *
 * When an item of @serializer has ended, and the next ones are bound for batches
 * of the same pool, its runner goes on with them, one after the other, for about
 * that long, and at most 1024 of them. Then the next goes to its batch. This
 * saves most of what an item costs, and keeps the object's memory in one CPU's
 * caches. For other clients it is as if the items were one long item: they are
 * charged to their batches, but do not wait for their turn in those, and start
 * before what is queued there.
 *
 * An item goes to its batch as always if that is paused, has a max_active, or is
 * of another pool; and while somebody waits for items of the pool, by a flush
 * of a batch or a work.
 *
 * What is not promised: that the budget is kept to; an item that takes longer
 * than those before it is not cut short.
 *
 * Context: Any. Holds from the next item on that ends.
 * Return: 0, or -EINVAL.
 */
int fairwq_serializer_set_inline(struct fairwq_serializer *serializer, unsigned int budget_us)
{
	if (!serializer)
		return fairwq_bad_arg("serializer is NULL");
	if (budget_us > FAIRWQ_MAX_INLINE_US)
		return fairwq_bad_arg("budget_us is too large");
	WRITE_ONCE(serializer->constraint.inline_us, budget_us);
	return 0;
}
EXPORT_SYMBOL_GPL(fairwq_serializer_set_inline);

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
	fairwq_constraint_wait(&serializer->constraint);
}
EXPORT_SYMBOL_GPL(fairwq_serializer_flush);

/**
 * fairwq_serializer_destroy - refuse new items, wait until all have ended
 * @serializer: the serializer
 *
 * On return the memory may go. The caller sees to it that no call for it is
 * under way then, but for a queue call whose item has run, or was cancelled, by now: it
 * does not touch the serializer any more. One that comes while this waits is refused, or
 * its item is waited for.
 *
 * One of its own items may call this if it is the last, and nothing waits behind
 * it: then the memory may go at once, and the function may free it, together
 * with the item. Otherwise it warns there, does not wait, and the serializer
 * goes on taking items: it was not destroyed.
 *
 * Context: Process context, sleeps.
 */
void fairwq_serializer_destroy(struct fairwq_serializer *serializer)
{
	const struct fairwq_turn *turn;
	bool dead;

	if (WARN_ON_ONCE(!serializer))
		return;
	might_sleep();
	dead = READ_ONCE(serializer->constraint.dead);
	WRITE_ONCE(serializer->constraint.dead, true);
	turn = fairwq_own_turn();
	if (turn && turn->constraint == &serializer->constraint &&
	    fairwq_streak_detach(fairwq_current_runner(), &serializer->constraint))
		return;
	if (fairwq_constraint_from_inside(&serializer->constraint, __func__)) {
		if (!fairwq_mutant(UNDESTROYED_DEAD))
			WRITE_ONCE(serializer->constraint.dead, dead);
		return;
	}
	while (fairwq_constraint_wait(&serializer->constraint))
		;
}
EXPORT_SYMBOL_GPL(fairwq_serializer_destroy);

/**
 * fairwq_serializer_queue - queue a work to a batch, behind others
 * @serializer: the serializer; it must stay until @work has ended, or its
 *	function has called fairwq_serializer_destroy()
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
 * An item of a higher priority lifts those that wait in front of it, if these are
 * no more than 64: when the one in flight has ended, its runner runs them at once,
 * as with fairwq_serializer_set_inline(), for slice_us of the pool at most. The one
 * in flight stays where it is in its batch, behind what is queued there.
 *
 * What is not promised: that any are lifted behind one that is bound for another
 * pool, or for a batch that is paused or has a max_active; or while somebody waits
 * for items of the pool. An item must not wait for one behind it.
 *
 * Context: Any but NMI. Allocates nothing. May be called from @work's own function.
 * Return: as fairwq_queue_constrained(); -ESHUTDOWN also if @serializer is being
 * destroyed.
 */
int fairwq_serializer_queue(struct fairwq_serializer *serializer,
			    struct fairwq_batch *batch, struct fairwq_work *work)
{
	if (!serializer)
		return fairwq_bad_arg("serializer is NULL");
	return fairwq_queue_constrained(&serializer->constraint, batch, work);
}
EXPORT_SYMBOL_GPL(fairwq_serializer_queue);

/* Behind fairwq_serializer_init(), which has the description. */
void __fairwq_serializer_init(struct fairwq_serializer *serializer,
			      const char *name, struct lock_class_key *key)
{
	if (WARN_ON_ONCE(!serializer))
		return;
	fairwq_constraint_init_listed(&serializer->constraint, 1, name, key);
	serializer->constraint.serial = true;
}
EXPORT_SYMBOL_GPL(__fairwq_serializer_init);
