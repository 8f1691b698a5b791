/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The count of a serializer: what is queued and in flight. serializer.c:
 * fairwq_serializer_enter(), fairwq_serializer_complete(),
 * fairwq_serializer_next() and fairwq_serializer_pop_locked().
 *
 * Two tasks queue three items, of which two runners run what may start. Then,
 * or when he thinks so, the second one destroys the serializer.
 *
 * Holds: one item is in flight at a time, and sees what those before have
 * stored; the items of one task start in queue order; each runs, or is
 * cancelled; the destroying call returns, and nobody is at the serializer then.
 *
 * Case CANCEL: the second item is cancelled, if it waits.
 *
 * Broken COUNTED_APART (invalid end state): the count is tested for 0, then raised.
 * Broken LINK_NOT_AWAITED (invalid end state): who is to start the next, and
 *	finds it counted and not linked, leaves.
 * Broken SERIAL_LIFO (assertion): the newest is started first.
 * Broken NO_MB_COUNT (assertion): the count is lowered without a barrier.
 * Broken COUNT_READ_AGAIN (invalid end state): the count is lowered, then looked at.
 * Broken CANCEL SERIAL_GHOST (invalid end state): gaps are not taken off the
 *	count.
 * Broken CANCEL GAP_COUNTED_OFF (assertion): a cancel lowers the count, in
 *	place of leaving a gap.
 */
#define CPUS	4		/* 0, 1: queue; 2, 3: runners */
#define LOCK	0		/* fairwq_constraint_lock() */
#define DATA	1		/* what the items work on */
#define VARS	2

#include "memory.pml"

#define ITEMS	3		/* 0 and 1 of the first task, 2 of the second */
#define MARKER	3		/* struct fairwq_marker */
#define NONE	9

byte count;				/* serializer->count */
chan incoming = [ITEMS + 1] of { byte };	/* serializer->incoming, oldest first */
chan waiting = [ITEMS + 1] of { byte };	/* serializer->waiting */
byte gaps;				/* serializer->gaps */
chan pushed = [ITEMS] of { byte };	/* in their batches */

bool inside;				/* an item's function */
byte runs;
bool begun[ITEMS], cancelled;
bool told;				/* the marker's completion */
bool gone;				/* the serializer */
bool constrained;			/* item 1 waits, or is about to be linked */
bool queued;				/* all of the first task *

/* fairwq_serializer_enter(): @first, or linked behind the others */
inline enter(cpu, work)
{
#ifdef COUNTED_APART
	first = !count;
	d_step { RMW(cpu) -> assert(!gone); count++ }
#else
	/* atomic_fetch_inc() */
	d_step { RMW(cpu) -> assert(!gone); first = !count; count++ }
#endif
	if
	:: !first ->
		constrained = constrained || work == 1;
		d_step { RMW(cpu) -> assert(!gone); incoming!work }
	:: else
	fi
}

/* fairwq_serializer_sort_locked(); llist_del_all() is an xchg() */
inline sort_locked(cpu)
{
	RMW(cpu);
	d_step {
		assert(!gone);
		do
		:: incoming?got ->
			waiting!got;
#ifdef SERIAL_LIFO
			got = len(waiting) - 1;
			do
			:: got > 0 -> waiting?other; waiting!other; got--
			:: else -> break
			od
#endif
		:: empty(incoming) -> break
		od;
		got = NONE;
		other = NONE
	}
}

/* fairwq_serializer_pop_locked(): a work, or how many gaps */
inline pop_locked(cpu)
{
	do
	:: true ->
		if
		:: empty(waiting) -> sort_locked(cpu)
		:: nempty(waiting)
		fi;
		if
		:: nempty(waiting) ->
			d_step {
				waiting?work;
				n = 1;
				constrained = constrained && work != 1
			}
			break
		:: empty(waiting) && gaps -> d_step { n = gaps; gaps = 0 }; break
#ifdef LINK_NOT_AWAITED
		:: empty(waiting) && !gaps -> n = 0; break
#else
		:: empty(waiting) && !gaps -> nempty(incoming)	/* cpu_relax() */
#endif
		fi
	od
}

/* fairwq_serializer_next(): what it finds is pushed */
inline next(cpu)
{
	do
	:: true ->
		spin_lock(cpu);
		pop_locked(cpu);
		spin_unlock(cpu);
		if
		:: work < MARKER ->
			/* fairwq_admit_push() */
			d_step { RMW(cpu) -> pushed!work; work = NONE; n = 0 }
			break
		:: else
		fi;
#ifdef LINK_NOT_AWAITED
		if
		:: !n -> break
		:: else
		fi;
#endif
#ifdef SERIAL_GHOST
		if
		:: work == NONE -> n = 0; break
		:: else
		fi;
#endif
		/* atomic_sub_return() */
		d_step { RMW(cpu) -> assert(!gone); count = count - n; n = count }
		told = told || work == MARKER;	/* complete() */
		work = NONE;
		if
		:: !n -> break
		:: else -> n = 0
		fi
	od
}

/* fairwq_serializer_complete() */
inline complete(cpu)
{
	/* atomic_dec_and_test() */
#if defined(COUNT_READ_AGAIN)
	d_step { RMW(cpu) -> count-- }
	d_step { assert(!gone); first = !count }
#elif defined(NO_MB_COUNT)
	d_step { assert(!gone); count--; first = !count }
#else
	d_step { RMW(cpu) -> assert(!gone); count--; first = !count }
#endif
	if
	:: !first -> next(cpu)
	:: else -> first = false
	fi
}

/* fairwq_serializer_queue() of items @from .. @to - 1; fairwq_serializer_destroy() */
proctype task(byte cpu; byte from; byte to)
{
	byte work = NONE, n, got = NONE, other = NONE;
	bool first;

	do
	:: from < to ->
		enter(cpu, from);
		if
		:: first -> first = false; d_step { RMW(cpu) -> pushed!from }
		:: else
		fi;
		from++
	:: else -> break
	od;
	if
	:: cpu == 1 ->
		queued == 1;	/* the first one's calls are over */
		do
		:: count ->
			/* fairwq_serializer_wait() */
			enter(cpu, MARKER);
			if
			:: first -> complete(cpu); told = true
			:: else
			fi;
			d_step { told -> told = false };
			/*
			 * Again, if a gap is left: the other one takes it off
			 * next, unless we are as quick each time.
			 */
progress_again:		skip
		:: else -> break
		od;
		gone = true
	:: else -> queued = 1
	fi
}



/* What may start, started by any runner. */
proctype runner(byte cpu)
{
	byte item = NONE, data, work = NONE, n, got = NONE, other = NONE;
	bool first;

end:	do
	:: pushed?item ->
		d_step {
			assert(!inside && !begun[item]);
			assert(item != 1 || begun[0]);
			inside = true;
			begun[item] = true
		}
		read_once(cpu, DATA, data);
		assert(data == runs);
		write_once(cpu, DATA, data + 1);
		d_step { inside = false; runs++; data = 0; item = NONE }
		complete(cpu)
	od
}

/* A cancel of item 1: fairwq_serializer_remove() */
proctype cancel(byte cpu)
{
	byte got = NONE, other = NONE;

	spin_lock(cpu);
	if
	:: constrained ->
		sort_locked(cpu);
		if
		:: waiting??[1] ->
			d_step {
				waiting??1;
				cancelled = true;
				constrained = false;
#ifdef GAP_COUNTED_OFF
				count--
#else
				gaps++
#endif
			}
		:: !waiting??[1]
		fi
	:: !constrained		/* the serializer is not looked at: it may be gone */
	fi;
	spin_unlock(cpu)
}

proctype waiter()
{
	gone && begun[0] && (begun[1] || cancelled) && begun[2];
	assert(!count && !gaps && runs == ITEMS - cancelled)
}

init {
	atomic {
		run memory();
		run task(0, 0, 2);
		run task(1, 2, 3);
		run runner(2);
		run runner(3);
#ifdef CANCEL
		run cancel(0);
#endif
		run waiter()
	}
}
