/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Disabling a work and waiting until it does not run, after which it may be
 * freed: fairwq_work_disable_sync() in work.c, against fairwq_claim_as() in
 * internal.h and fairwq_start_turn() in runner.c.
 *
 * One task queues the work twice, another disables it. A runner runs it.
 *
 * Holds: when the disabling call has returned, the work is neither pending nor
 * running and will not be, what the function has stored is seen, and nobody
 * but a refused queue call looks at it again; the call does return.
 *
 * Broken NO_MB_DISABLE (assertion): no smp_mb() in fairwq_disable().
 * Broken NO_MB_CLAIM (assertion): the cmpxchg() in fairwq_claim_as() without its
 *	barrier: @disabled is loaded before the work can be seen to be pending.
 * Broken CLAIMED_BLINDLY (assertion): @disabled is not looked at behind it.
 * Broken NO_ACQUIRE_DATA (assertion): fairwq_await() loads @last_runner before
 *	it loads that the work is not pending.
 * Broken NO_ACQUIRE_CURRENT (assertion): what the function has stored is loaded
 *	before @current_work is.
 * Broken NO_RELEASE_CURRENT (assertion): fairwq_run_turns() stores @current_work
 *	by WRITE_ONCE() at its end.
 * Broken XCHG_ACQUIRE (assertion): the xchg() in fairwq_start_turn() is an
 *	acquire only: the work is seen not to be pending before it is seen who
 *	runs it.
 * Broken RUN_NOT_AWAITED (assertion): only what is pending is waited for.
 */
#define CPUS	3		/* 0: who queues; 1: who disables; 2: the runner */
#define LOCK	0		/* pool->lock */
#define STATE	1		/* work->data, but for the batch */
#define DISABLED 2		/* work->disabled */
#define LAST_RUNNER 3		/* work->last_runner */
#define CURRENT	4		/* runner->current_work */
#define NR	5		/* log->nr of the runner, counted from the beginning */
#define DONE	6		/* log->done */
#define DATA	7		/* what the function works on */
#define ENDED	8		/* log->accounted, and what completions tell */
#define VARS	9

#include "memory.pml"

#define CALLS	2

#define PENDING	1		/* and not LINKED: in the hands of a queue call */
#define LINKED	2

bool fifo;			/* in batch->fifo */
bool slot;			/* in a plan */
byte planned;			/* turn->number of that, or of the last one */

byte runs;
bool inside;			/* the function */
bool returned;			/* fairwq_work_disable_sync() has */

/* fairwq_queue(), twice */
proctype caller(byte cpu)
{
	byte i, disabled;

	do
	:: i < CALLS ->
		i++;
		/* fairwq_claim_as() */
		if
#ifdef NO_MB_CLAIM
		:: mem[STATE] == 0 ->
			read_once(cpu, DISABLED, disabled);
			if
			:: d_step { mem[STATE] == 0 -> mem[STATE] = PENDING }
			:: mem[STATE] != 0 -> goto next
			fi;
#else
		:: d_step { RMW(cpu) && mem[STATE] == 0 -> mem[STATE] = PENDING };
#ifndef CLAIMED_BLINDLY
			read_once(cpu, DISABLED, disabled);
#endif
#endif
			if
			:: disabled ->
				/* fairwq_unclaim() */
				d_step { RMW(cpu) -> mem[STATE] = 0 }
			:: else ->
				/* fairwq_push_claimed(), and who finds it in @incoming */
				spin_lock(cpu);
				write_once(cpu, STATE, PENDING | LINKED);
				d_step { assert(!returned && !fifo && !slot); fifo = true }
				spin_unlock(cpu)
			fi
		:: mem[STATE] != 0
		fi;
next:		disabled = 0
	:: else -> break
	od
}

/* fairwq_try_cancel(), which can wait, until it has come to something */
inline cancel(cpu)
{
	do
	:: true ->
		read_once(cpu, STATE, data);
		if
		:: !data -> break
		:: else
		fi;
		/* fairwq_cancel_queued_locked() */
		spin_lock(cpu);
		read_once(cpu, STATE, data);
		if
		:: data == PENDING ->
			/* FAIRWQ_AGAIN */
			spin_unlock(cpu);
			mem[STATE] != PENDING
		:: data > PENDING && fifo ->
			/* fairwq_remove_locked(), fairwq_let_go() */
			fifo = false;
			store_release(cpu, STATE, 0);
			spin_unlock(cpu);
			break
		:: data > PENDING && !fifo ->
			/* fairwq_unplan_locked(): cmpxchg() */
			if
			:: d_step { RMW(cpu) && slot -> slot = false };
				store_release(cpu, STATE, 0)
			:: !slot	/* about to start */
			fi;
			spin_unlock(cpu);
			break
		:: !data -> spin_unlock(cpu)	/* FAIRWQ_AGAIN */
		fi
	od;
	data = 0
}

/* fairwq_waiter_add_locked(), wait_for_completion() */
inline wait_for(cpu, turn)
{
	spin_unlock(cpu);
	mem[ENDED] >= turn
}

/* fairwq_await_running(); @last: work->last_runner */
inline await_running(cpu)
{
#ifdef NO_ACQUIRE_CURRENT
	read_once(cpu, DATA, got);
#endif
	current = 0;
	if
	:: last -> read_once(cpu, CURRENT, current)
	:: else
	fi;
	if
	:: current ->
		spin_lock(cpu);
		/* fairwq_current_turn() */
		read_once(cpu, NR, nr);
		read_once(cpu, DONE, done);
		read_once(cpu, CURRENT, current);
		if
		:: nr > done && current -> wait_for(cpu, nr)
		:: else -> spin_unlock(cpu)
		fi
	:: else
	fi
}

/* fairwq_wait(), fairwq_await() */
inline wait(cpu)
{
	do
	:: true ->
#ifdef NO_ACQUIRE_DATA
		read_once(cpu, LAST_RUNNER, last);
#endif
		read_once(cpu, STATE, data);
		if
		:: !data ->
#ifndef NO_ACQUIRE_DATA
			read_once(cpu, LAST_RUNNER, last);
#endif
#ifndef RUN_NOT_AWAITED
			await_running(cpu);
#endif
			break
		:: data ->
			/* fairwq_await_pending() */
			spin_lock(cpu);
			read_once(cpu, STATE, data);
			if
			:: !(data & LINKED) ->
				/* FAIRWQ_AGAIN */
				spin_unlock(cpu);
				mem[STATE] != PENDING
			:: data & LINKED ->
				assert(!fifo);
				wait_for(cpu, planned);
				break
			fi
		fi
	od
}

/* fairwq_work_disable_sync(), fairwq_cancel_and_wait() */
proctype disabler(byte cpu)
{
	byte data, last, current, nr, done, got;

	/* fairwq_disable() */
	write_once(cpu, DISABLED, 1);
#ifndef NO_MB_DISABLE
	smp_mb(cpu);
#endif
	cancel(cpu);
	wait(cpu);
#ifndef NO_ACQUIRE_CURRENT
	read_once(cpu, DATA, got);
#endif
	assert(!inside && got == runs);
	returned = true
}

/* One turn after the other, each under a hold of the lock of its own. */
proctype runner(byte cpu)
{
	byte turn, data;

end:	do
	:: fifo ->
		spin_lock(cpu);
		if
		:: fifo -> d_step { fifo = false; slot = true; planned++ }
		:: else
		fi;
		spin_unlock(cpu);
		if
		/* fairwq_claim_turn(): xchg() */
		:: d_step { RMW(cpu) && slot -> slot = false };
			turn = planned;
			write_once(cpu, NR, turn);
			/* fairwq_start_turn() */
			write_once(cpu, CURRENT, 1);
			assert(!returned);
			write_once(cpu, LAST_RUNNER, 1);
#ifdef XCHG_ACQUIRE
			write_once(cpu, STATE, 0);
			smp_mb(cpu);
#else
			d_step { RMW(cpu) -> mem[STATE] = 0 }
#endif
			/* fairwq_call() */
			d_step { assert(!returned); inside = true }
			read_once(cpu, DATA, data);
			write_once(cpu, DATA, data + 1);
			d_step { assert(!returned); inside = false; runs++; data = 0 }
			/* The end of fairwq_run_turns(). */
			store_release(cpu, DONE, turn);
#ifdef NO_RELEASE_CURRENT
			write_once(cpu, CURRENT, 0);
#else
			store_release(cpu, CURRENT, 0);
#endif
			/* fairwq_account_locked() */
			spin_lock(cpu);
			store_release(cpu, ENDED, turn);	/* complete() */
			spin_unlock(cpu)
		:: !slot
		fi
	od
}

proctype waiter()
{
	returned && sb[0].n + sb[1].n + sb[2].n == 0;
	assert(!fifo && !slot && !inside)
}

init {
	atomic {
		run memory();
		run caller(0);
		run disabler(1);
		run runner(2);
		run waiter()
	}
}
