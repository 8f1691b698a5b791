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

#include "core/runner.h"
#include "core/streak.h"
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
	if (fairwq_constraint_from_inside(&serializer->constraint, __func__))
		return;
	fairwq_constraint_wait(&serializer->constraint);
}
EXPORT_SYMBOL_GPL(fairwq_serializer_flush);

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
		WRITE_ONCE(serializer->constraint.dead, dead);
		return;
	}
	while (fairwq_constraint_wait(&serializer->constraint))
		;
}
EXPORT_SYMBOL_GPL(fairwq_serializer_destroy);

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
