/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Disable of a work, and the wait until it does not run. Then it may be freed. That is
 * fairwq_work_disable_sync() in work.c, against fairwq_claim_locked() in core/inbox.h, and
 * fairwq_start_item() and fairwq_end_current() in core/turn.h.
 *
 * One task queues the work twice, another disables it. A runner runs it.
 *
 * Holds, when the disabling call has returned:
 *	the work is neither pending nor running, and will not be;
 *	the caller sees what the function has stored;
 *	no CPU looks at the work again, except a queue call that is refused.
 * The call must return.
 *
 * Broken NO_MB_DISABLE (assertion): no smp_mb() in disable_item().
 * Broken NO_MB_CLAIM (assertion): the cmpxchg() in fairwq_claim_locked() without its
 *	barrier: @disabled is loaded before the work can be seen to be pending.
 * Broken CLAIMED_BLINDLY (assertion): the queue call does not look at @disabled
 *	after that.
 * Broken NO_ACQUIRE_DATA (assertion): await() loads @last_runner before it, and the
 *	cancel before it, load that the work is not pending.
 * Broken NO_ACQUIRE_CURRENT (assertion): the caller loads the function's stores
 *	before it loads @current_work.
 * Broken NO_RELEASE_CURRENT (assertion): fairwq_end_current() stores
 *	@current_work by WRITE_ONCE().
 * Broken XCHG_ACQUIRE (assertion): the xchg() in fairwq_start_item() is an
 *	acquire only: a CPU sees that the work is not pending before it sees
 *	which runner executes it.
 * Broken RUN_NOT_AWAITED (assertion): the caller only waits while the work is pending.
 */
/* CPU 0: queues; 1: disables; 2: the runner */
#define STATE	1		/* work->data, without the batch */
#define DISABLED 2		/* work->disabled */
#define LAST_RUNNER 3		/* work->last_runner */
#define CURRENT	4		/* runner->current_work */
#define DATA	5		/* that the function reads and writes */
#define ENDED	6		/* waiter->done */
#define VARS	7

#include "memory.pml"

#define CALLS	2

#define PENDING	1		/* and not LINKED: a queue call has it, under inbox->lock */
#define LINKED	2

/* Under the lock. */
bool fifo;			/* in batch->fifo */
bool in_turn;			/* turn->batch of the runner is set */
byte number;			/* turn->number of this turn, or of the last one */
byte awaited;			/* waiter->turn, in pool->waiters */

byte runs;
bool inside;			/* the function runs */
bool returned;			/* fairwq_work_disable_sync() has */

/* fairwq_queue(), twice */
proctype caller(byte cpu)
{
	byte i, disabled;

	do
	:: i < CALLS ->
		i++;
		/* fairwq_claim_locked() */
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
				/* fairwq_inbox_link_locked() */
				spin_lock(cpu);
				write_once(cpu, STATE, PENDING | LINKED);
				d_step { assert(!returned && !fifo); fifo = true }
				spin_unlock(cpu)
			fi
		:: mem[STATE] != 0
		fi;
next:		disabled = 0
	:: else -> break
	od
}

/* fairwq_try_cancel(), repeated until it has an answer, because this caller may wait */
inline cancel(cpu)
{
	do
	:: true ->
		read_once(cpu, STATE, data);
		if
		:: !data -> break
		:: else
		fi;
		/* cancel_queued() */
		spin_lock(cpu);
		read_once(cpu, STATE, data);
		if
		:: data == PENDING ->
			/* FAIRWQ_AGAIN */
			spin_unlock(cpu);
			mem[STATE] != PENDING
		:: data > PENDING ->
			/* remove_locked(), release_work() */
			assert(fifo);
			fifo = false;
			store_release(cpu, STATE, 0);
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
	awaited = turn;
	spin_unlock(cpu);
	mem[ENDED]
}

/* await_running(); @last: work->last_runner */
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
		read_once(cpu, CURRENT, current);
		if
		/* fairwq_runner_turn() */
		:: in_turn && current -> nr = number; wait_for(cpu, nr)
		:: else -> spin_unlock(cpu)
		fi
	:: else
	fi
}

/* wait_for_item(), await() */
inline wait(cpu)
{
	do
	:: true ->
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
			/* await_pending(): FAIRWQ_AGAIN: a queue call owns it */
			assert(!(data & LINKED));
			mem[STATE] != PENDING
		fi
	od
}

/* fairwq_work_disable_sync(), cancel_and_wait() */
proctype disabler(byte cpu)
{
	byte data, last, current, nr, got;

	/* disable_item() */
	write_once(cpu, DISABLED, 1);
#ifndef NO_MB_DISABLE
	smp_mb(cpu);
#endif
#ifdef NO_ACQUIRE_DATA
	read_once(cpu, LAST_RUNNER, last);
#endif
	cancel(cpu);
	wait(cpu);
#ifndef NO_ACQUIRE_CURRENT
	read_once(cpu, DATA, got);
#endif
	assert(!inside && got == runs);
	returned = true
}

/* take_turn_locked(), fairwq_start_item() */
inline take_turn_locked(cpu)
{
	d_step { assert(!returned); fifo = false; in_turn = true; number++; turn = number }
	store_release(cpu, CURRENT, 1);
	write_once(cpu, LAST_RUNNER, 1);
#ifdef XCHG_ACQUIRE
	write_once(cpu, STATE, 0);
	smp_mb(cpu)
#else
	d_step { RMW(cpu) -> mem[STATE] = 0 }
#endif
}

/* fairwq_run() */
proctype runner(byte cpu)
{
	byte turn, data;

end:	do
	:: fifo ->
		spin_lock(cpu);
		if
		:: fifo -> take_turn_locked(cpu)
		:: else
		fi;
		spin_unlock(cpu);
		do
		:: turn ->
			/* fairwq_call() */
			d_step { assert(!returned); inside = true }
			read_once(cpu, DATA, data);
			write_once(cpu, DATA, data + 1);
			d_step { assert(!returned); inside = false; runs++; data = 0 }
			/* fairwq_turn_end_locked(); the next turn under the same lock */
			spin_lock(cpu);
			if
			:: awaited == turn -> store_release(cpu, ENDED, 1)	/* complete() */
			:: else
			fi;
			atomic { in_turn = false; turn = 0 }
			if
			:: fifo -> take_turn_locked(cpu)
			:: else
			fi;
			spin_unlock(cpu)
		:: else -> break
		od;
		/* fairwq_end_current() */
#ifdef NO_RELEASE_CURRENT
		write_once(cpu, CURRENT, 0)
#else
		store_release(cpu, CURRENT, 0)
#endif
	od
}

proctype waiter()
{
	returned && sb[0].n + sb[1].n + sb[2].n == 0;
	assert(!fifo && !inside)
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
