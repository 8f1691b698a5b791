/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Disable of a work, and the wait until it does not run. Then it may be freed.
 * fairwq_work_disable_sync(), find_queued() and await_running() in work.c,
 * against fairwq_claim() in core/inbox.h, and fairwq_start_item() and
 * fairwq_end_current() in core/turn.h.
 *
 * One task queues the work twice, another disables it. A runner runs it.
 *
 * Holds, when the disabling call has returned:
 *	the work is neither pending nor running, and will not be;
 *	the caller sees what the function has stored.
 * The call must return.
 *
 * Broken NO_MB_DISABLE (assertion): no smp_mb() in disable_item().
 * Broken NO_MB_CLAIM (assertion): the cmpxchg() in fairwq_claim() without its
 *	barrier: @disabled is loaded before the work can be seen to be pending.
 * Broken NO_ACQUIRE_DATA (assertion): await_running() loads @last_runner before
 *	fairwq_try_find() loads that the work is not pending.
 * Broken NO_ACQUIRE_CURRENT (assertion): the caller loads the function's stores
 *	before it loads @current_work.
 * Broken NO_RELEASE_CURRENT (assertion): fairwq_end_current() stores
 *	@current_work by WRITE_ONCE().
 */
/* CPU 0: queues; 1: disables; 2: the runner */
#define WORD	1		/* work->data: pending */
#define DISABLED 2		/* work->disabled */
#define LAST_RUNNER 3		/* work->last_runner */
#define CURRENT	4		/* runner->current_work */
#define DATA	5		/* that the function reads and writes */
#define ENDED	6		/* waiter->done */
#define INBOX	7		/* inbox->lock */
#define VARS	8

#include "memory.pml"

#define CALLS	2

bool inbox;			/* in inbox->works, under inbox->lock */

/* Under pool->lock. */
bool fifo;			/* in batch->fifo */
bool in_turn;			/* turn->batch of the runner is set */
bool awaited;			/* this turn, by a waiter in pool->waits.works */

byte runs;
bool inside;			/* the function runs */
bool returned;			/* fairwq_work_disable_sync() has */

/* fairwq_fifo_take_over_locked(); @data: work->data */
inline take_over_locked(cpu)
{
	lock(INBOX);
	d_step { fifo = fifo || inbox; inbox = false }
	read_once(cpu, WORD, data);
	unlock(cpu, INBOX)
}

/* fairwq_queue(), twice */
proctype caller(byte cpu)
{
	byte i, data;
	bool first;

	do
	:: i < CALLS ->
		i++;
		lock(INBOX);
		/* fairwq_claim() */
		if
#ifdef NO_MB_CLAIM
		:: mem[WORD] == 0 ->
			read_once(cpu, DISABLED, data);
			write_once(cpu, WORD, 1);
#else
		:: cmpxchg_0(cpu, WORD, 1);
			read_once(cpu, DISABLED, data);
#endif
			if
			:: data -> store_release(cpu, WORD, 0)
			:: else ->
				/* fairwq_inbox_link_locked() */
				assert(!returned && !inbox && !fifo);
				d_step { inbox = true; first = true }
			fi
		:: mem[WORD] != 0
		fi;
		unlock(cpu, INBOX);
		if
		:: first ->
			/* fairwq_activate() */
			spin_lock(cpu);
			take_over_locked(cpu);
			spin_unlock(cpu)
		:: else
		fi;
		d_step { data = 0; first = false }
	:: else -> break
	od
}

/* fairwq_try_find(), repeated until it has an answer */
inline cancel(cpu)
{
	do
	:: true ->
		read_once(cpu, WORD, data);
		if
		:: !data -> break
		:: else
		fi;
		/* find_queued() */
		spin_lock(cpu);
		take_over_locked(cpu);
		if
		:: data ->
			/* release_locked() */
			d_step { assert(fifo); fifo = false }
			store_release(cpu, WORD, 0);
			spin_unlock(cpu);
			break
		:: else -> spin_unlock(cpu)	/* FAIRWQ_AGAIN */
		fi
	od;
	data = 0
}

/* await_running(); @last: work->last_runner */
inline await_running(cpu)
{
	if
	:: last -> read_once(cpu, CURRENT, current)
	:: else
	fi;
	if
	:: current ->
		spin_lock(cpu);
		read_once(cpu, CURRENT, current);
		awaited = in_turn && current;
		spin_unlock(cpu);
		!awaited || mem[ENDED]		/* wait_for_completion() */
	:: else
	fi
}

/* fairwq_work_disable_sync() */
proctype disabler(byte cpu)
{
	byte data, last, current, got;

	/* disable_item() */
	write_once(cpu, DISABLED, 1);
#ifndef NO_MB_DISABLE
	smp_mb(cpu);
#endif
#ifdef NO_ACQUIRE_DATA
	read_once(cpu, LAST_RUNNER, last);
#endif
	cancel(cpu);
	/* await(); a queue call that will be refused may have the word. */
#ifndef NO_ACQUIRE_DATA
	read_once(cpu, LAST_RUNNER, last);
#endif
#ifdef NO_ACQUIRE_CURRENT
	read_once(cpu, DATA, got);
#endif
	await_running(cpu);
#ifndef NO_ACQUIRE_CURRENT
	read_once(cpu, DATA, got);
#endif
	assert(!inside && got == runs);
	returned = true
}

/* runner_next_locked(): take_turn_locked(), fairwq_start_item() */
inline runner_next(cpu)
{
	if
	:: fifo ->
		d_step { fifo = false; in_turn = true }
		store_release(cpu, CURRENT, 1);
		write_once(cpu, LAST_RUNNER, 1);
		xchg(cpu, WORD, 0)
	:: else
	fi;
	spin_unlock(cpu)
}

/* fairwq_run() */
proctype runner(byte cpu)
{
	byte data;

end:	do
	:: fifo ->
		spin_lock(cpu);
		runner_next(cpu);
		do
		:: in_turn ->
			/* fairwq_call() */
			d_step { assert(!returned); inside = true }
			read_once(cpu, DATA, data);
			write_once(cpu, DATA, data + 1);
			assert(!returned);
			d_step { inside = false; runs++; data = 0 }
			/* fairwq_fifo_turn_end_locked(), complete() */
			spin_lock(cpu);
			if
			:: awaited -> store_release(cpu, ENDED, 1)
			:: else
			fi;
			in_turn = false;
			runner_next(cpu)
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
	returned && all_seen;
	assert(!inbox && !fifo && !inside)
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
