// SPDX-License-Identifier: GPL-2.0
/*
 * Limiters: at most so many items of one are in flight.
 *
 * Invariant: if something waits, @max are in flight, or a marker is the first
 * that waits and at least one is in flight. So there is always an end that lets
 * the next one go.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>

#include "internal.h"

static struct fairwq_limiter *fairwq_to_limiter(struct fairwq_constraint *constraint)
{
	return container_of(constraint, struct fairwq_limiter, constraint);
}

static bool fairwq_limiter_room_locked(const struct fairwq_limiter *limiter)
{
	lockdep_assert_held(fairwq_constraint_lock(&limiter->constraint));

	return limiter->in_flight < limiter->max + fairwq_mutant(LIMITER_PLUS_ONE);
}

static bool fairwq_limiter_admit(struct fairwq_constraint *constraint,
				 struct fairwq_work *work)
{
	struct fairwq_limiter *limiter = fairwq_to_limiter(constraint);

	lockdep_assert_held(fairwq_constraint_lock(constraint));

	if (list_empty(&limiter->waiting) && fairwq_limiter_room_locked(limiter)) {
		limiter->in_flight++;
		return true;
	}
	if (!fairwq_mutant(LIMITER_LIFO))
		list_add_tail(&work->node, &limiter->waiting);
	else
		list_add(&work->node, &limiter->waiting);
	return false;
}

static void fairwq_limiter_remove(struct fairwq_constraint *constraint,
				  struct fairwq_work *work)
{
	lockdep_assert_held(fairwq_constraint_lock(constraint));

	list_del(&work->node);
}

/* What may go on now: works, or markers that are through. */
static void fairwq_limiter_next_locked(struct fairwq_limiter *limiter, struct list_head *go)
{
	struct fairwq_work *work, *next;

	lockdep_assert_held(fairwq_constraint_lock(&limiter->constraint));

	list_for_each_entry_safe(work, next, &limiter->waiting, node) {
		if (work->place & FAIRWQ_PLACE_BARRIER) {
			if (limiter->in_flight && !fairwq_mutant(LIMITER_FLUSH_EARLY))
				break;
		} else {
			if (!fairwq_limiter_room_locked(limiter))
				break;
			limiter->in_flight++;
			fairwq_admit_locked(work);
		}
		list_move_tail(&work->node, go);
	}
}

static void fairwq_limiter_complete(struct fairwq_constraint *constraint)
{
	struct fairwq_limiter *limiter = fairwq_to_limiter(constraint);
	raw_spinlock_t *lock = fairwq_constraint_lock(constraint);
	struct fairwq_work *work, *next;
	unsigned long flags;
	LIST_HEAD(go);

	local_irq_save(flags);	/* until all is pushed, see constraint.c */
	raw_spin_lock(lock);
	limiter->in_flight--;
	fairwq_test_point(FAIRWQ_POINT_LIMITER_ENDED, NULL);
	fairwq_limiter_next_locked(limiter, &go);
	raw_spin_unlock(lock);
	/* From here on the limiter may be gone. */
	fairwq_test_point(FAIRWQ_POINT_LIMITER_LEFT, NULL);
	if (fairwq_mutant(LIMITER_LOOKS_BACK))
		limiter->max = (u8)limiter->max;	/* what it is, as long as it is */
	list_for_each_entry_safe(work, next, &go, node) {
		list_del(&work->node);
		if (work->place & FAIRWQ_PLACE_BARRIER)
			complete(&container_of(work, struct fairwq_marker, entry)->done);
		else
			fairwq_admit_push(work);
	}
	local_irq_restore(flags);
}

/* Until all that is queued now has ended. Returns whether there was anything. */
static bool fairwq_limiter_wait(struct fairwq_limiter *limiter)
{
	struct fairwq_marker marker = { .entry.place = FAIRWQ_PLACE_BARRIER };
	raw_spinlock_t *lock = fairwq_constraint_lock(&limiter->constraint);
	unsigned long flags;
	bool busy;

	init_completion(&marker.done);
	/* Under the lock: what has ended last may still be at the limiter. */
	if (fairwq_mutant(LIMITER_GONE_EARLY) && !READ_ONCE(limiter->in_flight))
		return false;
	raw_spin_lock_irqsave(lock, flags);
	busy = limiter->in_flight;
	if (busy)
		list_add_tail(&marker.entry.node, &limiter->waiting);
	raw_spin_unlock_irqrestore(lock, flags);
	if (busy)
		wait_for_completion(&marker.done);
	return busy;
}

/**
 * fairwq_limiter_flush - wait for the items that are queued now
 * @limiter: the limiter
 *
 * As fairwq_serializer_flush(). What is queued meanwhile starts when those
 * before have ended.
 *
 * Context: Process context, sleeps. From one of its own items it warns and
 * returns at once.
 */
void fairwq_limiter_flush(struct fairwq_limiter *limiter)
{
	if (WARN_ON_ONCE(!limiter))
		return;
	might_sleep();
	if (!fairwq_mutant(LIMITER_SELF) &&
	    fairwq_constraint_from_inside(&limiter->constraint, __func__))
		return;
	fairwq_lockdep_wait_constrained(&limiter->constraint);
	fairwq_limiter_wait(limiter);
}
EXPORT_SYMBOL_GPL(fairwq_limiter_flush);

/**
 * fairwq_limiter_destroy - refuse new items, wait until all have ended
 * @limiter: the limiter
 *
 * As fairwq_serializer_destroy().
 *
 * Context: Process context, sleeps. From one of its own items it warns and
 * returns with nothing done.
 */
void fairwq_limiter_destroy(struct fairwq_limiter *limiter)
{
	if (WARN_ON_ONCE(!limiter))
		return;
	might_sleep();
	if (!fairwq_mutant(LIMITER_SELF) &&
	    fairwq_constraint_from_inside(&limiter->constraint, __func__))
		return;
	WRITE_ONCE(limiter->constraint.dead, !fairwq_mutant(LIMITER_OPEN));
	fairwq_lockdep_wait_constrained(&limiter->constraint);
	while (fairwq_limiter_wait(limiter))
		;
}
EXPORT_SYMBOL_GPL(fairwq_limiter_destroy);

static const struct fairwq_constraint_ops fairwq_limiter_ops = {
	.admit = fairwq_limiter_admit,
	.complete = fairwq_limiter_complete,
	.remove = fairwq_limiter_remove,
};

/**
 * fairwq_limiter_queue - queue a work to a batch, if not too many run
 * @limiter: the limiter; it must stay until @work has ended
 * @batch: where @work is to run; any batch of any pool
 * @work: the work, set up by fairwq_work_init()
 *
 * At most as many items of a limiter as it was set up for are in flight: on
 * their way in their batches, or running. The others wait, in queue order. See
 * fairwq_queue_constrained() for what else that means.
 *
 * Context: Any but NMI. Allocates nothing. May be called from @work's own
 * function.
 * Return: as fairwq_queue_constrained(); -ESHUTDOWN also if @limiter is being destroyed.
 */
int fairwq_limiter_queue(struct fairwq_limiter *limiter, struct fairwq_batch *batch,
			 struct fairwq_work *work)
{
	if (!limiter)
		return fairwq_bad_arg("limiter is NULL");
	return fairwq_queue_constrained(&limiter->constraint, batch, work);
}
EXPORT_SYMBOL_GPL(fairwq_limiter_queue);

/* Behind fairwq_limiter_init(), which has the description. */
void __fairwq_limiter_init(struct fairwq_limiter *limiter, unsigned int max,
			   const char *name, struct lock_class_key *key)
{
	if (WARN_ON_ONCE(!limiter))
		return;
	memset(limiter, 0, sizeof(*limiter));
	INIT_LIST_HEAD(&limiter->waiting);
	limiter->max = WARN_ON_ONCE(!max) ? 1 : max;
	__fairwq_constraint_init(&limiter->constraint, &fairwq_limiter_ops, name, key);
}
EXPORT_SYMBOL_GPL(__fairwq_limiter_init);

#ifdef FAIRWQ_TESTING
/* Somebody waits for its lock, as far as the kernel's kind of lock shows that. */
bool fairwq_test_limiter_wanted(struct fairwq_limiter *limiter)
{
	return raw_spin_is_contended(fairwq_constraint_lock(&limiter->constraint));
}
EXPORT_SYMBOL_GPL(fairwq_test_limiter_wanted);
#endif
