/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Planted bugs: proof that the tests can fail.
 *
 * A build with -DFAIRWQ_MUTANT=FAIRWQ_MUTANT_<NAME> has exactly that bug; any
 * other build has none and pays nothing. "make check-mutants" builds each and
 * wants to see the suites fail.
 */
#ifndef FAIRWQ_MUTANT_H
#define FAIRWQ_MUTANT_H

enum fairwq_mutants {
	FAIRWQ_MUTANT_NONE,
	FAIRWQ_MUTANT_PICK_FROM_OLD_POINTER,	/* the QueuedTaskScheduler fault */
	FAIRWQ_MUTANT_SAVED_CREDIT,		/* an idle batch saves up turns */
	FAIRWQ_MUTANT_WEIGHT_IGNORED,
	FAIRWQ_MUTANT_ESTIMATE_KEPT,		/* turns are never charged what they cost */
	FAIRWQ_MUTANT_FORGIVEN_TWICE,		/* pays for the time in which it was served */
	FAIRWQ_MUTANT_FIFO_REVERSED,		/* pushed items come out backwards */
	FAIRWQ_MUTANT_PENDING_AFTER,		/* pending cleared after the function */
	FAIRWQ_MUTANT_RECHECK_SKIPPED,		/* going idle misses a late push */
	FAIRWQ_MUTANT_KICK_LOST,		/* no kick while another runner is busy */
	FAIRWQ_MUTANT_KICK_NOT_CHAINED,		/* a runner leaves a backlog to itself */
	FAIRWQ_MUTANT_READER_KEEPS_QUIET,	/* debugfs hides a push from its runner */
	FAIRWQ_MUTANT_NO_STEALING,		/* a sleeper keeps what it took along */
	FAIRWQ_MUTANT_PLANS_OVERLAP,		/* two runners plan one batch at a time */
	FAIRWQ_MUTANT_PLAN_KEPT,		/* a plan of long items is run to its end */
	FAIRWQ_MUTANT_REENTRANT,		/* a running work is started again */
	FAIRWQ_MUTANT_DISPOSE_NONEMPTY,		/* leaves although items are queued */
	FAIRWQ_MUTANT_DISPOSE_NO_GRACE,		/* does not wait for late pushes */
	FAIRWQ_MUTANT_DISPOSE_TWICE,		/* the second dispose removes again */
	FAIRWQ_MUTANT_DISPOSE_LEAK,		/* the last item does not remove it */
	FAIRWQ_MUTANT_FLUSH_EARLY,		/* does not wait for what runs */
	FAIRWQ_MUTANT_FLUSH_WORK_LOST,		/* the end of a turn is not told */
	FAIRWQ_MUTANT_CANCEL_PLANNED,		/* what is planned is not found */
	FAIRWQ_MUTANT_CANCEL_LOST,		/* no word for a push under way */
	FAIRWQ_MUTANT_CANCEL_NO_WAIT,		/* cancel_sync does not wait */
	FAIRWQ_MUTANT_CANCEL_NEWER,		/* drops what was queued after the call */
	FAIRWQ_MUTANT_DISABLE_LATE,		/* a queue call under way is not refused */
	FAIRWQ_MUTANT_DELAY_NOT_HELD,		/* the batch goes before the timer */
	FAIRWQ_MUTANT_PAUSE_IGNORED,
	FAIRWQ_MUTANT_LIMIT_PLUS_ONE,		/* max_active + 1 items run */
	FAIRWQ_MUTANT_LEAK_UNSEEN,		/* no check after the function */
	FAIRWQ_MUTANT_RUNNER_STAYS,		/* never returns to the workqueue */
};

#ifdef FAIRWQ_MUTANT
#define FAIRWQ_MUTANT_BUILD
#else
#define FAIRWQ_MUTANT FAIRWQ_MUTANT_NONE
#endif

#define fairwq_mutant(name) (FAIRWQ_MUTANT == FAIRWQ_MUTANT_##name)

#endif /* FAIRWQ_MUTANT_H */
