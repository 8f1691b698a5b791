// SPDX-License-Identifier: GPL-2.0
/*
 * Serializers: the items of one start in queue order, so many at a time: one,
 * unless fairwq_limiter_init() says more.
 *
 *   in_flight       waiting    a queue call                 the end of an item
 *   less than @max  empty      queues its item to a batch   lowers @in_flight
 *   @max            empty      appends its item             lowers @in_flight
 *   @max            1 or more  appends its item             starts or admits the first
 *
 * While a flush of a limiter waits in front of others, fewer than @max may be
 * in flight.
 *
 * Dmitry Vyukov's "local serializer" has a counter and a queue instead.
 * core/waitlist.c has the list and the locks. A runner may go on with the items
 * of one: core/burst.c.
 *
 * Locking: the lock of the serializer, which is not in it.
 * Invariant: if @max is 1, the item in flight *has the serializer*: only its
 * end may start or admit the next one. Its end passes that on, or sees under
 * the lock that none waits and makes the serializer idle.
 * Invariant: neither a queue call nor the end of an item touches the serializer
 * after the lock. So its owner may free it after a flush, which takes that.
 *
 * Limits: none on the number of serializers, or of items that wait in one.
 */
#include <linux/export.h>

#include "core/runner.h"
#include "core/waitlist.h"
#include "doors.h"

int fairwq_serializer_set_inline(struct fairwq_serializer *serializer, unsigned int budget_us)
{
	if (!serializer)
		return fairwq_bad_arg("serializer is NULL");
	if (budget_us > FAIRWQ_MAX_INLINE_US)
		return fairwq_bad_arg("budget_us is too large");
	WRITE_ONCE(serializer->inline_us, budget_us);
	return 0;
}
EXPORT_SYMBOL_GPL(fairwq_serializer_set_inline);

void fairwq_serializer_flush(struct fairwq_serializer *serializer)
{
	if (WARN_ON_ONCE(!serializer))
		return;
	might_sleep();
	if (!fairwq_waits_for_itself(fairwq_runner_is_of(serializer), __func__))
		fairwq_waitlist_wait(serializer);
}
EXPORT_SYMBOL_GPL(fairwq_serializer_flush);

/*
 * Make the calling item the last one of its serializer. With FAIRWQ_DROP_REST,
 * drop what waits behind it.
 *
 * Return: whether it is the last. If not, @serializer takes items as before.
 */
static bool become_last(struct fairwq_serializer *serializer, unsigned int how,
			void (*dropped)(struct fairwq_work *work))
{
	struct fairwq_runner *runner = fairwq_runner_current();
	bool drop = how & FAIRWQ_DROP_REST, last;

	/*
	 * Where several may be in flight, no item can know that the others have
	 * ended. A task on another stack does not hold the lockdep map.
	 */
	if (!fairwq_runner_is_of(serializer) || serializer->max > 1 ||
	    current_work() != &runner->work || runner->origin)
		return false;
	if (drop) {
		fairwq_waitlist_end(serializer, 1, false);
		fairwq_waitlist_drop(serializer, dropped);
	}
	last = fairwq_waitlist_detach(runner, serializer, drop);
	if (drop && !last)
		fairwq_waitlist_end(serializer, -1, false);
	return last;
}

int fairwq_serializer_shutdown(struct fairwq_serializer *serializer, unsigned int how,
			       void (*dropped)(struct fairwq_work *work))
{
	if (!serializer)
		return 0;
	if (how & ~FAIRWQ_DROP_REST)
		return fairwq_bad_arg("how has an unknown flag");
	might_sleep();
	if (become_last(serializer, how, dropped))
		return 0;
	if (fairwq_waits_for_itself(fairwq_runner_is_of(serializer), __func__))
		return -EDEADLK;
	fairwq_waitlist_end(serializer, 1, how & FAIRWQ_DROP_REST);
	if (how & FAIRWQ_DROP_REST)
		fairwq_waitlist_drop(serializer, dropped);
	fairwq_waitlist_wait(serializer);
	return 0;
}
EXPORT_SYMBOL_GPL(fairwq_serializer_shutdown);

bool fairwq_serializer_is_last(const struct fairwq_serializer *serializer)
{
	if (fairwq_is_bad(!serializer, "serializer is NULL"))
		return false;
	/* One load, without the lock: the answer may be old when it is returned anyway. */
	return fairwq_runner_is_of(serializer) && serializer->max == 1 &&
	       list_empty(&serializer->waiting);
}
EXPORT_SYMBOL_GPL(fairwq_serializer_is_last);

int fairwq_serializer_queue(struct fairwq_serializer *serializer,
			    struct fairwq_batch *batch, struct fairwq_work *work)
{
	if (!serializer)
		return fairwq_bad_arg("serializer is NULL");
	if (fairwq_is_bad_queue(batch, work && work->func, "work"))
		return -EINVAL;
	return fairwq_waitlist_enter(serializer, batch, work);
}
EXPORT_SYMBOL_GPL(fairwq_serializer_queue);
