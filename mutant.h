/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Planted bugs: proof that the tests can fail.
 *
 * A build with -DFAIRWQ_MUTANT=FAIRWQ_MUTANT_<NAME> has exactly that bug, and one
 * with -DFAIRWQ_MUTANTS that which the parameter "mutant" of fairwq.ko says; any
 * other build has none and pays nothing. "make check-mutants" loads each and
 * wants to see that suite fail which is named in brackets:
 * tests/<it>_kunit.c.
 */
#ifndef FAIRWQ_MUTANT_H
#define FAIRWQ_MUTANT_H

enum fairwq_mutants {
	FAIRWQ_MUTANT_NONE,
	FAIRWQ_MUTANT_PICK_FROM_OLD_POINTER,	/* [pool_order] the QueuedTaskScheduler fault */
	FAIRWQ_MUTANT_SAVED_CREDIT,		/* [pool_order] an idle batch saves up turns */
	FAIRWQ_MUTANT_WEIGHT_IGNORED,		/* [pool_order] weights do not count */
	FAIRWQ_MUTANT_ESTIMATE_KEPT,		/* [core_tree] never charged what they cost */
	FAIRWQ_MUTANT_FORGIVEN_TWICE,		/* [core_tree] pays for time it was served in */
	FAIRWQ_MUTANT_NEWCOMER_FIRST,		/* [core_tree] a newcomer goes before all that wait */
	FAIRWQ_MUTANT_CLOCK_AHEAD,		/* [core_tree] it passes those that wait */
	FAIRWQ_MUTANT_OLD_DEBT_KEPT,		/* [core_tree] however long ago that was */
	FAIRWQ_MUTANT_LOW_BY_TURNS,		/* [core_tree] the low share counts turns, not time */
	FAIRWQ_MUTANT_OWNER_IGNORED,		/* [core_tree] who has many batches gets much */
	FAIRWQ_MUTANT_NO_GUESS,			/* [core_tree] a turn under way costs nothing */
	FAIRWQ_MUTANT_AVERAGE_CHARGED,		/* [core_tree] what a turn is likely to cost, not may */
	FAIRWQ_MUTANT_DEBT_FORGOTTEN,		/* [pool_share] who changes weights pays for nothing */
	FAIRWQ_MUTANT_EXCESS_FORGIVEN,		/* [pool_share] what took longer costs no more */
	FAIRWQ_MUTANT_GUESS_UNBOUNDED,		/* [pool_share] a wait is charged, and is longer then */
	FAIRWQ_MUTANT_OLD_TURN_CORRECTED,	/* [core_tree] by a policy that did not charge it */
	FAIRWQ_MUTANT_OLD_UNIT_KEPT,		/* [core_tree] virtual times of another unit */
	FAIRWQ_MUTANT_SORT_AT_ONCE,		/* [core_fifo] all of it under one hold of the lock */
	FAIRWQ_MUTANT_SORT_FORGOTTEN,		/* [core_fifo] what was sorted in part stays so */
	FAIRWQ_MUTANT_FIFO_REVERSED,		/* [pool_order] pushed items come out backwards */
	FAIRWQ_MUTANT_PENDING_AFTER,		/* [queue] pending cleared after the function */
	FAIRWQ_MUTANT_RECHECK_SKIPPED,		/* [core_runner] going idle misses a late push */
	FAIRWQ_MUTANT_KICK_LOST,		/* [core_runner] no kick while another runner is busy */
	FAIRWQ_MUTANT_SLEEP_UNSEEN,		/* [core_runner] what is behind a sleeper waits */
	FAIRWQ_MUTANT_TICK_BLIND,		/* [core_runner] and is never found */
	FAIRWQ_MUTANT_KICK_NOT_CHAINED,		/* [core_runner] a runner leaves it to itself */
	FAIRWQ_MUTANT_PLACE_LOST,		/* [pool_order] a batch at its limit is away */
	FAIRWQ_MUTANT_READER_KEEPS_QUIET,	/* [regress] debugfs hides a push */
	FAIRWQ_MUTANT_REENTRANT,		/* [queue] a running work is started again */
	FAIRWQ_MUTANT_DISPOSE_NONEMPTY,		/* [batch] leaves although items are queued */
	FAIRWQ_MUTANT_DISPOSE_NO_GRACE,		/* [batch] does not wait for late pushes */
	FAIRWQ_MUTANT_DISPOSE_TWICE,		/* [batch] the second dispose removes again */
	FAIRWQ_MUTANT_DISPOSE_LEAK,		/* [batch] the last item does not remove it */
	FAIRWQ_MUTANT_DESTROY_NO_GRACE,		/* [batch] a pool goes under a push */
	FAIRWQ_MUTANT_RELEASE_SHARED,		/* [batch] a released() that sleeps stalls all */
	FAIRWQ_MUTANT_FLUSH_REAPED,		/* [batch] does not see that the pool went */
	FAIRWQ_MUTANT_FLUSH_EARLY,		/* [queue] does not wait for what runs */
	FAIRWQ_MUTANT_FLUSH_WORK_LOST,		/* [work] the end of a turn is not told */
	FAIRWQ_MUTANT_CANCEL_LOST,		/* [work_race] no word for a push under way */
	FAIRWQ_MUTANT_CANCEL_NO_WAIT,		/* [work] cancel_sync does not wait */
	FAIRWQ_MUTANT_CANCEL_NEWER,		/* [work] drops what was queued after the call */
	FAIRWQ_MUTANT_CANCEL_NOT_HELD,		/* [work] the batch goes before dropped() */
	FAIRWQ_MUTANT_DISABLE_LATE,		/* [work] a queue call under way is not refused */
	FAIRWQ_MUTANT_DISABLE_REVIVED,		/* [work_race] a cancelled one comes back */
	FAIRWQ_MUTANT_DROP_WATCHED,		/* [work_race] nothing is left, the mark stays */
	FAIRWQ_MUTANT_DELAY_NOT_HELD,		/* [delay] the batch goes before the timer */
	FAIRWQ_MUTANT_DELAY_TWO_STEPS,		/* [delay] a cancel is interrupted in between */
	FAIRWQ_MUTANT_GRACE_REVIVED,		/* [delay] it runs without its grace period */
	FAIRWQ_MUTANT_GRACE_NOT_AWAITED,	/* [delay] cancel_sync returns, and it comes */
	FAIRWQ_MUTANT_DELAY_WORD_LEFT,		/* [delay] a timer's push is not waited for */
	FAIRWQ_MUTANT_FAILURE_UNTOLD,		/* [failure] notifiers are not called */
	FAIRWQ_MUTANT_ENTER_UNMASKED,		/* [constraint] a queue call is interrupted */
	FAIRWQ_MUTANT_ADMITTED_BY_OTHERS,	/* [constraint] what is let go is not waited for */
	FAIRWQ_MUTANT_KEPT_POLLED,		/* [constraint] a waiting task does not sleep */
	FAIRWQ_MUTANT_KEPT_UNTOLD,		/* [constraint] or is never woken */
	FAIRWQ_MUTANT_TAKEN_UNSEEN,		/* [constraint] taken out of where it was before */
	FAIRWQ_MUTANT_SERIAL_EARLY,		/* [one_at_a_time] next started before the return */
	FAIRWQ_MUTANT_SERIAL_LIFO,		/* [one_at_a_time] those that wait come backwards */
	FAIRWQ_MUTANT_SERIAL_CANCEL,		/* [one_at_a_time] not told of a cancelled item */
	FAIRWQ_MUTANT_SERIAL_FAILED,		/* [serializer_mix] nor of one that has failed */
	FAIRWQ_MUTANT_SERIAL_REVIVED,		/* [serializer] as a plain item */
	FAIRWQ_MUTANT_SERIAL_NOT_HELD,		/* [one_at_a_time] the batch goes before its items */
	FAIRWQ_MUTANT_STREAK_ENDLESS,		/* [core_streak] goes on, whatever the budget */
	FAIRWQ_MUTANT_STREAK_KEPT,		/* [core_streak] not given back when somebody waits */
	FAIRWQ_MUTANT_LIFT_IGNORED,		/* [core_streak] a high item waits for those in front */
	FAIRWQ_MUTANT_LIFT_ENDLESS,		/* [core_streak] however many they are */
	FAIRWQ_MUTANT_STREAK_NOT_ALONE,		/* [core_streak] goes on although others wait */
	FAIRWQ_MUTANT_STREAK_NEVER_ALONE,	/* [core_streak] each item goes through its batch */
	FAIRWQ_MUTANT_STREAK_FREE,		/* [core_streak] the batch is not charged */
	FAIRWQ_MUTANT_LIMITER_PLUS_ONE,		/* [limiter] N + 1 items are let go */
	FAIRWQ_MUTANT_LIMITER_LIFO,		/* [one_at_a_time] those that wait come backwards */
	FAIRWQ_MUTANT_LIMITER_FLUSH_EARLY,	/* [limiter] does not wait for those in flight */
	FAIRWQ_MUTANT_LIMITER_OPEN,		/* [one_at_a_time] takes items while it is destroyed */
	FAIRWQ_MUTANT_LIMITER_GONE_EARLY,	/* [limiter] destroyed while somebody has it */
	FAIRWQ_MUTANT_LIMITER_LOOKS_BACK,	/* [limiter] written to by who has let go of it */
	FAIRWQ_MUTANT_LIMITER_SELF,		/* [limiter] an item waits for itself */
	FAIRWQ_MUTANT_PAUSE_IGNORED,		/* [pool_order] a paused batch is served */
	FAIRWQ_MUTANT_LIMIT_PLUS_ONE,		/* [queue] max_active + 1 items run */
	FAIRWQ_MUTANT_LEAK_UNSEEN,		/* [core_runner] no check after the function */
	FAIRWQ_MUTANT_HUNG_AT_ONCE,		/* [core_runner] all stacks in one look */
	FAIRWQ_MUTANT_RUNNER_STAYS,		/* [core_runner] never returns to the workqueue */
	FAIRWQ_MUTANT_PENDING_REFUSED,		/* [queue_refuse] pending, and refused as if free */
	FAIRWQ_MUTANT_UNDESTROYED_DEAD,		/* [queue_refuse] not destroyed, and takes no items */
	FAIRWQ_MUTANT_FLOW_SWEEP_BUSY,		/* [flows] removed although it has an item */
	FAIRWQ_MUTANT_FLOW_NO_GRACE,		/* [flows] removed under who has just found it */
	FAIRWQ_MUTANT_FLOW_NO_RETRY,		/* [flows] a flow that is closed is queued to */
	FAIRWQ_MUTANT_FLOW_NOT_OPENED,		/* [flows] goes although it is used again */
	FAIRWQ_MUTANT_FLOW_MADE_TWICE,		/* [flows] by two who use it first */
	FAIRWQ_MUTANT_FLOW_FALLBACK_LOST,	/* [flows] without memory the item is dropped */
	FAIRWQ_MUTANT_FLOW_LEAK,		/* [flows] its batch stays behind */
	FAIRWQ_MUTANT_FLOWS_DESTROY_EARLY,	/* [flows] does not wait for the items */
	FAIRWQ_MUTANT_FLOWS_DESTROY_NO_GRACE,	/* [flows] nor for who is queueing one */
};

#if defined(FAIRWQ_MUTANTS)
#define FAIRWQ_MUTANT_BUILD
#define FAIRWQ_MUTANT fairwq_mutant_now
extern unsigned int fairwq_mutant_now;	/* set before anything runs */
#elif defined(FAIRWQ_MUTANT)
#define FAIRWQ_MUTANT_BUILD
#else
#define FAIRWQ_MUTANT FAIRWQ_MUTANT_NONE
#endif

#define fairwq_mutant(name) (FAIRWQ_MUTANT == FAIRWQ_MUTANT_##name)

#endif /* FAIRWQ_MUTANT_H */
