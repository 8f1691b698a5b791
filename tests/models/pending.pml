/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pending: fairwq_claim(), fairwq_claim_taken() and fairwq_unless_pending() in
 * core/inbox.h and inbox.c, against fairwq_start_item() in core/turn.h.
 *
 * Two callers store something and then queue the same work, twice each, to two
 * batches, so there is no inbox->lock between them. A runner clears pending and
 * calls the function, which reads their stores. If the batch has max_queued, a
 * queue call may only check whether the work is pending.
 *
 * Holds:
 *	after a call that returned 1 or 0, a run sees the stores of its caller;
 *	the function is called once for each call that returned 1;
 *	a work is in no list twice.
 *
 * Broken NO_MB_CLAIM (invalid end state): no smp_mb() in fairwq_is_pending(),
 *	where fairwq_claim_taken() calls it.
 * Broken NO_MB_REFUSED (invalid end state): no smp_mb() there, where
 *	fairwq_unless_pending() does.
 * Broken XCHG_RELEASE (invalid end state): the xchg() in fairwq_start_item() is
 *	a release only, as is the unlock after it.
 * Broken PENDING_AFTER (invalid end state): the work is pending until the
 *	function has returned.
 */
/* CPU 0, 1: callers; 2: the runner */
#define PENDING	1		/* work->data */
#define DATA	2		/* and 3: the stores of each caller */
#define VARS	4

#include "memory.pml"

#define CALLS	2

byte queued;			/* work is in a batch */
byte accepted, runs;
byte seen[2];			/* the data of each caller that a run saw */

/* fairwq_claim(), fairwq_claim_taken() and fairwq_inbox_link_locked() */
inline push(cpu)
{
	do
	:: cmpxchg_0(cpu, PENDING, 1);
		d_step { assert(!queued); queued++; accepted++ }
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

/* The function sees what caller @c has stored. */
#define see(c) \
	read_once(cpu, DATA + (c), data); \
	d_step { seen[c] = (data > seen[c] -> data : seen[c]); data = 0 }

proctype runner(byte cpu)
{
	byte data;

end:	do
	:: queued ->
		spin_lock(cpu);
		/* fairwq_fifo_take_locked(), fairwq_start_item() */
		queued--;
#if defined(XCHG_RELEASE)
		store_release(cpu, PENDING, 0);
#elif !defined(PENDING_AFTER)
		xchg(cpu, PENDING, 0);
#endif
		spin_unlock(cpu);
		see(0);
		see(1);
		runs++;
#ifdef PENDING_AFTER
		xchg(cpu, PENDING, 0)
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
