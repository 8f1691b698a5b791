/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a runner does between two items of a streak, see streak.c. All there is
 * to it without the lock, and inline: it is done for each.
 */
#ifndef FAIRWQ_STREAK_H
#define FAIRWQ_STREAK_H

#include <linux/jiffies.h>

#include "internal.h"

/*
 * By turns that are timed, and by a coarse clock; if what was taken along takes
 * much longer than it used to, the rest of it goes back.
 */
static inline bool fairwq_streak_is_over(const struct fairwq_runner *runner)
{
	const struct fairwq_streak *streak = &runner->streak;
	u64 due = streak->next < streak->lift ? streak->lift_due : streak->due;

	return runner->mark > due || time_after(jiffies, streak->overdue);
}

/*
 * The next of the streak, whose turn is the one of the log where its slot is:
 * @i, for which there may be one that has none any more.
 */
static inline struct fairwq_work *
fairwq_streak_next(struct fairwq_runner *runner, unsigned int *i)
{
	struct fairwq_streak *streak = &runner->streak;
	struct fairwq_work *work;
	struct fairwq_slot *slot;

	for (; streak->next < streak->nr; *i = streak->next) {
		slot = &runner->log.slot[streak->next++];
		/*
		 * Unless it was taken out of the slot under the lock. Full barrier, also
		 * between the item before and this one: see fairwq_run_turns(). Pairs with
		 * fairwq_streak_give_back_locked() and fairwq_unplan_locked(). Model:
		 * tests/models/streak.pml.
		 */
		work = xchg(&slot->work, NULL);
		if (work)
			return work;
		WRITE_ONCE(slot->turn.off, true);
	}
	return NULL;
}

#endif /* FAIRWQ_STREAK_H */
