/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Planted bugs: proof that the tests can fail.
 *
 * A build with -DFAIRWQ_MUTANT=FAIRWQ_MUTANT_<NAME> has exactly that bug, and one
 * with -DFAIRWQ_MUTANTS that which the parameter "mutant" of fairwq.ko says; any
 * other build has none and pays nothing. "make check-mutants" loads each and
 * wants to see that suite fail which is named in brackets:
 * tests/fairwq_<it>_kunit.c.
 */
#ifndef FAIRWQ_MUTANT_H
#define FAIRWQ_MUTANT_H

enum fairwq_mutants {
	FAIRWQ_MUTANT_NONE,
	FAIRWQ_MUTANT_PICK_FROM_OLD_POINTER,	/* [order] the QueuedTaskScheduler fault */
	FAIRWQ_MUTANT_SAVED_CREDIT,		/* [order] an idle batch saves up turns */
	FAIRWQ_MUTANT_WEIGHT_IGNORED,		/* [order] weights do not count */
	FAIRWQ_MUTANT_ESTIMATE_KEPT,		/* [fair] never charged what they cost */
	FAIRWQ_MUTANT_FORGIVEN_TWICE,		/* [fair] pays for time it was served in */
	FAIRWQ_MUTANT_NEWCOMER_FIRST,		/* [fair] a newcomer goes before all that wait */
	FAIRWQ_MUTANT_CLOCK_AHEAD,		/* [fair] it passes those that wait */
	FAIRWQ_MUTANT_OLD_DEBT_KEPT,		/* [fair] however long ago that was */
	FAIRWQ_MUTANT_LOW_BY_TURNS,		/* [fair] the low share counts turns, not time */
	FAIRWQ_MUTANT_OWNER_IGNORED,		/* [fair] who has many batches gets much */
	FAIRWQ_MUTANT_NO_GUESS,			/* [fair] a turn under way costs nothing */
	FAIRWQ_MUTANT_AVERAGE_CHARGED,		/* [fair] what a turn is likely to cost, not may */
	FAIRWQ_MUTANT_DEBT_FORGOTTEN,		/* [share] who changes weights pays for nothing */
	FAIRWQ_MUTANT_EXCESS_FORGIVEN,		/* [share] what took longer costs no more */
	FAIRWQ_MUTANT_GUESS_UNBOUNDED,		/* [share] a wait is charged, and is longer then */
	FAIRWQ_MUTANT_OLD_TURN_CORRECTED,	/* [fair] by a policy that did not charge it */
	FAIRWQ_MUTANT_OLD_UNIT_KEPT,		/* [fair] virtual times of another unit */
	FAIRWQ_MUTANT_SORT_AT_ONCE,		/* [backlog] all of it under one hold of the lock */
	FAIRWQ_MUTANT_SORT_FORGOTTEN,		/* [backlog] what was sorted in part stays so */
	FAIRWQ_MUTANT_FIFO_REVERSED,		/* [order] pushed items come out backwards */
	FAIRWQ_MUTANT_PENDING_AFTER,		/* [fairwq] pending cleared after the function */
	FAIRWQ_MUTANT_RECHECK_SKIPPED,		/* [runner] going idle misses a late push */
	FAIRWQ_MUTANT_KICK_LOST,		/* [runner] no kick while another runner is busy */
	FAIRWQ_MUTANT_SLEEP_UNSEEN,		/* [runner] what is behind a sleeper waits */
	FAIRWQ_MUTANT_TICK_BLIND,		/* [runner] and is never found */
	FAIRWQ_MUTANT_KICK_NOT_CHAINED,		/* [runner] a runner leaves it to itself */
	FAIRWQ_MUTANT_READER_KEEPS_QUIET,	/* [regress] debugfs hides a push */
	FAIRWQ_MUTANT_REENTRANT,		/* [fairwq] a running work is started again */
	FAIRWQ_MUTANT_DISPOSE_NONEMPTY,		/* [dispose] leaves although items are queued */
	FAIRWQ_MUTANT_DISPOSE_NO_GRACE,		/* [dispose] does not wait for late pushes */
	FAIRWQ_MUTANT_DISPOSE_TWICE,		/* [dispose] the second dispose removes again */
	FAIRWQ_MUTANT_DISPOSE_LEAK,		/* [dispose] the last item does not remove it */
	FAIRWQ_MUTANT_DESTROY_NO_GRACE,		/* [dispose] a pool goes under a push */
	FAIRWQ_MUTANT_RELEASE_SHARED,		/* [dispose] a released() that sleeps stalls all */
	FAIRWQ_MUTANT_FLUSH_REAPED,		/* [dispose] does not see that the pool went */
	FAIRWQ_MUTANT_FLUSH_EARLY,		/* [fairwq] does not wait for what runs */
	FAIRWQ_MUTANT_FLUSH_WORK_LOST,		/* [work] the end of a turn is not told */
	FAIRWQ_MUTANT_CANCEL_LOST,		/* [workrace] no word for a push under way */
	FAIRWQ_MUTANT_CANCEL_NO_WAIT,		/* [work] cancel_sync does not wait */
	FAIRWQ_MUTANT_CANCEL_NEWER,		/* [work] drops what was queued after the call */
	FAIRWQ_MUTANT_CANCEL_NOT_HELD,		/* [work] the batch goes before dropped() */
	FAIRWQ_MUTANT_DISABLE_LATE,		/* [work] a queue call under way is not refused */
	FAIRWQ_MUTANT_DISABLE_REVIVED,		/* [workrace] a cancelled one comes back */
	FAIRWQ_MUTANT_DROP_WATCHED,		/* [workrace] nothing is left, the mark stays */
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
	FAIRWQ_MUTANT_SERIAL_EARLY,		/* [serializer] next started before the return */
	FAIRWQ_MUTANT_SERIAL_LIFO,		/* [serializer] those that wait come backwards */
	FAIRWQ_MUTANT_SERIAL_CANCEL,		/* [serializer] not told of a cancelled item */
	FAIRWQ_MUTANT_SERIAL_FAILED,		/* [serialmix] nor of one that has failed */
	FAIRWQ_MUTANT_SERIAL_REVIVED,		/* [serializer] as a plain item */
	FAIRWQ_MUTANT_SERIAL_NOT_HELD,		/* [serializer] the batch goes before its items */
	FAIRWQ_MUTANT_STREAK_ENDLESS,		/* [streak] goes on, whatever the budget */
	FAIRWQ_MUTANT_STREAK_KEPT,		/* [streak] not given back when somebody waits */
	FAIRWQ_MUTANT_LIFT_IGNORED,		/* [streak] a high item waits for those in front */
	FAIRWQ_MUTANT_LIFT_ENDLESS,		/* [streak] however many they are */
	FAIRWQ_MUTANT_STREAK_NOT_ALONE,		/* [streak] goes on although others wait */
	FAIRWQ_MUTANT_STREAK_NEVER_ALONE,	/* [streak] each item goes through its batch */
	FAIRWQ_MUTANT_STREAK_FREE,		/* [streak] the batch is not charged */
	FAIRWQ_MUTANT_LIMITER_PLUS_ONE,		/* [limiter] N + 1 items are let go */
	FAIRWQ_MUTANT_LIMITER_LIFO,		/* [limiter] those that wait come backwards */
	FAIRWQ_MUTANT_LIMITER_FLUSH_EARLY,	/* [limiter] does not wait for those in flight */
	FAIRWQ_MUTANT_LIMITER_OPEN,		/* [limiter] takes items while it is destroyed */
	FAIRWQ_MUTANT_LIMITER_GONE_EARLY,	/* [limiter] destroyed while somebody has it */
	FAIRWQ_MUTANT_LIMITER_LOOKS_BACK,	/* [limiter] written to by who has let go of it */
	FAIRWQ_MUTANT_LIMITER_SELF,		/* [limiter] an item waits for itself */
	FAIRWQ_MUTANT_PAUSE_IGNORED,		/* [order] a paused batch is served */
	FAIRWQ_MUTANT_LIMIT_PLUS_ONE,		/* [fairwq] max_active + 1 items run */
	FAIRWQ_MUTANT_LEAK_UNSEEN,		/* [runner] no check after the function */
	FAIRWQ_MUTANT_HUNG_AT_ONCE,		/* [runner] all stacks in one look */
	FAIRWQ_MUTANT_RUNNER_STAYS,		/* [runner] never returns to the workqueue */
	FAIRWQ_MUTANT_PENDING_REFUSED,		/* [refuse] pending, and refused as if free */
	FAIRWQ_MUTANT_UNDESTROYED_DEAD,		/* [refuse] not destroyed, and takes no items */
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
