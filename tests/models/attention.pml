/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Turns that have ended are told of later, or at once while the pool's
 * attention is up: runner.c, with flushes of fifo.c as those who ask for it.
 *
 * A runner has a plan of three turns, of three batches. Two tasks flush the
 * first two batches. The third item may sleep until both flushes have returned,
 * so that nothing else will happen that would tell them.
 *
 * Holds: both flushes return; neither before its item has ended; each turn is
 * accounted for once, with what its runner has written about it; attention is
 * down in the end.
 *
 * Broken NO_MB_RAISE (invalid end state): no smp_mb() in
 *	fairwq_attention_raise_locked().
 * Broken NO_MB_START (invalid end state): the xchg() in fairwq_start_turn()
 *	without its barrier.
 * Broken ATTENTION_UNSEEN (invalid end state): the runner does not look.
 * Broken RAISED_BLINDLY (invalid end state): turns that have ended already are
 *	not told of when attention is raised.
 * Broken ATTENTION_A_FLAG (invalid end state): who is told lowers it for all.
 * Broken DONE_EARLY (assertion): @done is stored before the next turn is taken,
 *	so with no barrier behind the turn that has ended.
 * Broken NO_RELEASE_DONE (assertion): @done is stored by WRITE_ONCE() at the
 *	end of fairwq_run_turns().
 * Broken NO_ACQUIRE_DONE (assertion): what the log says is read before @done.
 * Broken ACCOUNTED_UNLOCKED (invalid end state): the runner accounts without the lock.
 *
 * Case LOOK: in place of the second flush, a look at what the runner is at, as
 *	for a report of an item that hangs: it never sees a turn with the start
 *	of the one before.
 * Broken LOOK NO_WMB (assertion): no smp_wmb() in fairwq_run_turns().
 * Broken LOOK NO_RMB (assertion): no smp_rmb() in fairwq_current_turn().
 */
#define CPUS	3		/* 0, 1: flushes; 2: the runner */
#define LOCK	0		/* pool->lock */
#define ATTENTION 1		/* pool->attention */
#define DONE	2		/* log->done */
#define NR	3		/* log->nr */
#define STARTED	4		/* runner->started: a count of turns, not jiffies */
#define RUN	5		/* and 6, 7: turn->run of each turn in the log */
#define VARS	8

#include "memory.pml"

#define PLAN_NR	3

/* Under the lock. */
byte accounted;			/* plan->accounted */
byte in_flight[PLAN_NR] = 1;	/* of each slot's batch */
bool barrier[PLAN_NR];		/* batch->barrier */
bool flushed[PLAN_NR];		/* the barrier's completion */

bool ended[PLAN_NR];		/* the function has returned */

/* fairwq_attention_lower_locked() */
inline lower_locked(cpu)
{
	read_once(cpu, ATTENTION, attention);
#ifdef ATTENTION_A_FLAG
	write_once(cpu, ATTENTION, 0);
#else
	write_once(cpu, ATTENTION, attention - 1);
#endif
	attention = 0
}

/* fairwq_batch_turns_end_locked(), fairwq_barrier_done_locked() */
inline turn_end_locked(cpu, b)
{
	in_flight[b]--;
	if
	:: barrier[b] ->
		barrier[b] = false;
		lower_locked(cpu);
		flushed[b] = true
	:: else
	fi
}

/* fairwq_account_locked() */
inline account_locked(cpu)
{
#ifdef NO_ACQUIRE_DONE
	read_once(cpu, RUN + accounted, measured);
#endif
	read_once(cpu, DONE, done);
	do
	:: accounted < done ->
#ifndef NO_ACQUIRE_DONE
		read_once(cpu, RUN + accounted, measured);
#endif
		assert(measured && in_flight[accounted] == 1);
		atomic { turn_end_locked(cpu, accounted); accounted++ }
	:: else -> break
	od;
	done = 0;
	measured = 0
}

/* fairwq_attention_raise_locked() */
inline raise_locked(cpu)
{
	read_once(cpu, ATTENTION, attention);
#ifdef ATTENTION_A_FLAG
	write_once(cpu, ATTENTION, 1);
#else
	write_once(cpu, ATTENTION, attention + 1);
#endif
	attention = 0;
#ifndef NO_MB_RAISE
	smp_mb(cpu);
#endif
#ifndef RAISED_BLINDLY
	account_locked(cpu)
#endif
}

/* fairwq_batch_wait(), fairwq_batch_add_barrier_locked() */
proctype flush(byte cpu; byte b)
{
	byte attention, done, measured;

	spin_lock(cpu);
	raise_locked(cpu);
	/* fairwq_batch_fire_barriers_locked() */
	if
	:: in_flight[b] -> barrier[b] = true
	:: else -> lower_locked(cpu); flushed[b] = true
	fi;
	spin_unlock(cpu);
	flushed[b];		/* wait_for_completion() */
	assert(ended[b])
}

/* fairwq_attend_runner(), and the part of fairwq_runner_next() */
inline attend_runner(cpu)
{
#ifndef ACCOUNTED_UNLOCKED
	spin_lock(cpu);
#endif
	account_locked(cpu);
#ifndef ACCOUNTED_UNLOCKED
	spin_unlock(cpu)
#endif
}

/* fairwq_run_turn(), fairwq_start_turn() */
inline run_turn(cpu, i)
{
#ifndef NO_MB_START
	RMW(cpu);		/* xchg() of work->data */
#endif
	read_once(cpu, ATTENTION, attention);
#ifndef ATTENTION_UNSEEN
	if
	:: attention -> attention = 0; attend_runner(cpu)
	:: else
	fi;
#endif
	/* fairwq_call() */
	if
	:: i == PLAN_NR - 1 -> flushed[0] && flushed[1]
	:: true
	fi;
	ended[i] = true;
	write_once(cpu, RUN + i, 1)
}

/* fairwq_run_turns(), then fairwq_runner_next() */
proctype runner(byte cpu)
{
	byte i, attention, done, measured;

	do
	:: i < PLAN_NR ->
#ifdef DONE_EARLY
		write_once(cpu, DONE, i);
#endif
		RMW(cpu);		/* xchg() on the slot, in fairwq_claim_turn() */
#ifndef DONE_EARLY
		write_once(cpu, DONE, i);
#endif
		write_once(cpu, STARTED, i + 1);
#ifdef NO_WMB
		write_once(cpu, NR, i + 1);
#else
		store_release(cpu, NR, i + 1);	/* smp_wmb() and the store */
#endif
		run_turn(cpu, i);
		i++
	:: else -> break
	od;
#ifdef NO_RELEASE_DONE
	write_once(cpu, DONE, i);
#else
	store_release(cpu, DONE, i);
#endif
	attend_runner(cpu);
	assert(accounted == PLAN_NR)
}

#ifdef LOOK
/* fairwq_find_hung_locked(), fairwq_current_turn() */
proctype look(byte cpu)
{
	byte nr, done, started;

	spin_lock(cpu);
#ifdef NO_RMB
	read_once(cpu, STARTED, started);
#endif
	read_once(cpu, NR, nr);
	read_once(cpu, DONE, done);
#ifndef NO_RMB
	read_once(cpu, STARTED, started);
#endif
	assert(done >= nr || started >= nr);
	spin_unlock(cpu)
}
#endif

proctype waiter()
{
	accounted == PLAN_NR && flushed[0] && flushed[1] && sb[0].n + sb[1].n + sb[2].n == 0;
	assert(mem[ATTENTION] == 0)
}

init {
	atomic {
		run memory();
		run flush(0, 0);
#ifdef LOOK
		flushed[1] = true;
		run look(1);
#else
		run flush(1, 1);
#endif
		run runner(2);
		run waiter()
	}
}
