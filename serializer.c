// SPDX-License-Identifier: GPL-2.0
/*
 * Serializers: the items of one start in queue order and never overlap.
 *
 *   state  in_flight  waiting     a queue call         the end of an item
 *   idle   0          empty       makes it busy, and   -
 *                                 queues its item
 *   busy   1          0 or more   appends its item     starts or admits the
 *                                                      first, or makes it idle
 *
 * Dmitry Vyukov's "local serializer" has a counter and a queue instead. A
 * serializer is a constraint with a limit of 1: core/waitlist.c has the list
 * and the locks. A runner may go on with the items of one: core/burst.c.
 *
 * Locking: the lock of the constraint, which is not in the serializer.
 * Invariant: the item in flight *has the serializer*: only its end may start or
 * admit the next one. Its end passes that on, or sees under the lock that none
 * waits and makes the serializer idle.
 * Invariant: a queue call does not touch the serializer after the list, so its
 * owner may free it as soon as its items have ended.
 *
 * Limits: none on the number of serializers, or of items that wait in one.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>

#include "core/runner.h"
#include "core/burst.h"
#include "core/waitlist.h"
#include "doors.h"

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

void fairwq_serializer_flush(struct fairwq_serializer *serializer)
{
	if (WARN_ON_ONCE(!serializer))
		return;
	might_sleep();
	if (!fairwq_constraint_from_inside(&serializer->constraint, __func__))
		fairwq_waitlist_wait(&serializer->constraint);
}
EXPORT_SYMBOL_GPL(fairwq_serializer_flush);

/*
 * Make the calling item the last one of its serializer. With FAIRWQ_DROP_REST, drop what
 * waits behind it.
 *
 * Return: whether it is the last. If not, @constraint takes items as before.
 */
static bool become_last(struct fairwq_constraint *constraint, unsigned int how,
			void (*dropped)(struct fairwq_work *work))
{
	const struct fairwq_turn *turn = fairwq_runner_own_turn();
	int err;

	if (!turn || turn->constraint != constraint)
		return false;
	if (!(how & FAIRWQ_DROP_REST))
		return !fairwq_burst_detach(fairwq_runner_current(), constraint);
	fairwq_waitlist_refuse(constraint);
	fairwq_waitlist_drop(constraint, dropped);
	err = fairwq_burst_detach(fairwq_runner_current(), constraint);
	if (err)
		fairwq_waitlist_accept(constraint);
	return !err;
}

int fairwq_serializer_shutdown(struct fairwq_serializer *serializer, unsigned int how,
			       void (*dropped)(struct fairwq_work *work))
{
	struct fairwq_constraint *constraint;

	if (!serializer)
		return fairwq_bad_arg("serializer is NULL");
	if (how & ~FAIRWQ_DROP_REST)
		return fairwq_bad_arg("how has an unknown flag");
	constraint = &serializer->constraint;
	might_sleep();
	if (become_last(constraint, how, dropped))
		return 0;
	if (fairwq_constraint_from_inside(constraint, __func__))
		return -EDEADLK;
	fairwq_waitlist_refuse(constraint);
	if (how & FAIRWQ_DROP_REST) {
		fairwq_waitlist_stop(constraint);
		fairwq_waitlist_drop(constraint, dropped);
	}
	while (fairwq_waitlist_wait(constraint))
		;
	return 0;
}
EXPORT_SYMBOL_GPL(fairwq_serializer_shutdown);

void fairwq_serializer_destroy(struct fairwq_serializer *serializer)
{
	if (!WARN_ON_ONCE(!serializer))
		fairwq_serializer_shutdown(serializer, FAIRWQ_RUN_REST, NULL);
}
EXPORT_SYMBOL_GPL(fairwq_serializer_destroy);

bool fairwq_serializer_is_last(const struct fairwq_serializer *serializer)
{
	if (!serializer) {
		fairwq_bad_arg("serializer is NULL");
		return false;
	}
	/* One load, without the lock: the answer may be old when it is returned anyway. */
	return fairwq_runner_is_of(&serializer->constraint) &&
	       list_empty(&serializer->constraint.waiting);
}
EXPORT_SYMBOL_GPL(fairwq_serializer_is_last);

int fairwq_serializer_queue(struct fairwq_serializer *serializer,
			    struct fairwq_batch *batch, struct fairwq_work *work)
{
	if (!serializer)
		return fairwq_bad_arg("serializer is NULL");
	return fairwq_queue_constrained(&serializer->constraint, batch, work);
}
EXPORT_SYMBOL_GPL(fairwq_serializer_queue);

/* Set up a serializer; fairwq_serializer_init() has the description. */
void __fairwq_serializer_init(struct fairwq_serializer *serializer,
			      const char *name, struct lock_class_key *key)
{
	if (WARN_ON_ONCE(!serializer))
		return;
	fairwq_constraint_init_listed(&serializer->constraint, 1, name, key);
	serializer->constraint.serial = true;
}
EXPORT_SYMBOL_GPL(__fairwq_serializer_init);
