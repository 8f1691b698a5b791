// SPDX-License-Identifier: GPL-2.0
/*
 * Limiters: at most @max items of one are in flight at a time.
 *
 *   in_flight       waiting    a queue call       the end of an item
 *   less than @max  empty      queues its item    lowers @in_flight
 *   @max            0 or more  appends its item   admits the first that waits
 *
 * Locking, invariants: core/waitlist.c, because a limiter is a constraint with a
 * limit. Its owner may free it when no item is in flight.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>

#include "core/waitlist.h"
#include "doors.h"

void fairwq_limiter_flush(struct fairwq_limiter *limiter)
{
	if (WARN_ON_ONCE(!limiter))
		return;
	might_sleep();
	if (!fairwq_constraint_from_inside(&limiter->constraint, __func__))
		fairwq_waitlist_wait(&limiter->constraint);
}
EXPORT_SYMBOL_GPL(fairwq_limiter_flush);

void fairwq_limiter_destroy(struct fairwq_limiter *limiter)
{
	if (WARN_ON_ONCE(!limiter))
		return;
	might_sleep();
	if (fairwq_constraint_from_inside(&limiter->constraint, __func__))
		return;
	fairwq_waitlist_refuse(&limiter->constraint);
	while (fairwq_waitlist_wait(&limiter->constraint))
		;
}
EXPORT_SYMBOL_GPL(fairwq_limiter_destroy);

int fairwq_limiter_queue(struct fairwq_limiter *limiter, struct fairwq_batch *batch,
			 struct fairwq_work *work)
{
	if (!limiter)
		return fairwq_bad_arg("limiter is NULL");
	return fairwq_queue_constrained(&limiter->constraint, batch, work);
}
EXPORT_SYMBOL_GPL(fairwq_limiter_queue);

/* Set up a limiter; fairwq_limiter_init() has the description. */
void __fairwq_limiter_init(struct fairwq_limiter *limiter, unsigned int max,
			   const char *name, struct lock_class_key *key)
{
	if (WARN_ON_ONCE(!limiter))
		return;
	fairwq_constraint_init_listed(&limiter->constraint, WARN_ON_ONCE(!max) ? 1 : max, name,
				      key);
}
EXPORT_SYMBOL_GPL(__fairwq_limiter_init);
