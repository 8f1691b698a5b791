/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pending: fairwq_claim_locked() in core/inbox.h, fairwq_claim_taken() and
 * fairwq_unless_pending() in core/inbox.h, against fairwq_start_item() in core/turn.h.
 *
 * Two callers store something and then queue the same work, twice each. A runner
 * clears pending and calls the function, which reads their stores. If the batch has
 * max_queued, a queue call first only checks whether the work is pending.
 *
 * Holds:
 *	after a call that returned 1 or 0, a run sees the stores of its caller;
 *	the function is called once for each call that returned 1;
 *	a work is in no list twice.
 *
 * Broken NO_MB_CLAIM (invalid end state): no smp_mb() in fairwq_claim_taken(), after
 *	the cmpxchg() that has failed.
 * Broken NO_MB_REFUSED (invalid end state): no smp_mb() in fairwq_unless_pending().
 * Broken XCHG_RELEASE (invalid end state): the xchg() in fairwq_start_item() is
 *	a release only, as is the unlock after it.
 * Broken PENDING_AFTER (invalid end state): the work is pending until the
 *	function has returned.
 * Broken PENDING_TESTED (assertion): it is tested, then set.
 */
#define CPUS	3		/* 0, 1: callers; 2: the runner */
#define VARS	4
#define LOCK	0		/* pool->lock */
#define PENDING	1		/* FAIRWQ_WORK_PENDING in work->data */
#define DATA	2		/* and 3: the stores of each caller */

#include "memory.pml"

#define CALLS	2

byte queued;			/* work is in the batch */
byte accepted, runs;
byte seen[2];			/* the data of each caller that a run saw */

/* fairwq_claim_locked(), fairwq_claim_taken() and fairwq_inbox_link_locked() */
inline push(cpu)
{
	do
#ifdef PENDING_TESTED
	:: mem[PENDING] == 0 ->
		d_step { RMW(cpu) -> mem[PENDING] = 1 }
#else
	:: d_step { RMW(cpu) && mem[PENDING] == 0 -> mem[PENDING] = 1 };
#endif
		/* llist_add() */
		d_step { RMW(cpu) -> assert(!queued); queued++; accepted++ }
		break
	:: mem[PENDING] != 0 ->
#ifndef NO_MB_CLAIM
		smp_mb(cpu);
#endif
		read_once(cpu, PENDING, old);
		if
		:: old -> old = 0; break
		:: else
		fi
	od
}

/* fairwq_queue() into a batch with @max_queued or without */
proctype caller(byte cpu; bool max_queued)
{
	byte i, old;

	do
	:: i < CALLS ->
		i++;
		write_once(cpu, DATA + cpu, i);
		if
		:: max_queued ->
			/* fairwq_unless_pending() */
#ifndef NO_MB_REFUSED
			smp_mb(cpu);
#endif
			read_once(cpu, PENDING, old);
			if
			:: !old -> push(cpu)
			:: else -> old = 0
			fi
		:: else -> push(cpu)
		fi
	:: else -> break
	od
}

/* The function reads the stores of each caller. */
inline function(cpu)
{
	read_once(cpu, DATA, data);
	d_step { seen[0] = (data > seen[0] -> data : seen[0]); data = 0 }
	read_once(cpu, DATA + 1, data);
	d_step {
		seen[1] = (data > seen[1] -> data : seen[1]);
		data = 0;
		runs++
	}
}

proctype runner(byte cpu)
{
	byte data;

end:	do
	:: queued ->
		spin_lock(cpu);
		/* fairwq_fifo_take_locked() */
		queued--;
		/* fairwq_start_item() */
#if defined(PENDING_AFTER)
		smp_mb(cpu);
		spin_unlock(cpu);
		function(cpu);
		d_step { RMW(cpu) -> mem[PENDING] = 0 }
#elif defined(XCHG_RELEASE)
		store_release(cpu, PENDING, 0);
		spin_unlock(cpu);
		function(cpu)
#else
		d_step { RMW(cpu) -> mem[PENDING] = 0 }		/* xchg() */
		spin_unlock(cpu);
		function(cpu)
#endif
	od
}

/* Wait until a run has seen the stores of each call that returned 1 or 0. */
proctype waiter()
{
	seen[0] == CALLS && seen[1] == CALLS && runs == accepted
}

init {
	atomic {
		run memory();
		run caller(0, false);
		if
		:: run caller(1, false)
		:: run caller(1, true)
		fi;
		run runner(2);
		run waiter()
	}
}
