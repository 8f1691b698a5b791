/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The head of a serializer, and what is pushed there. serializer.c:
 * fairwq_serializer_take(), fairwq_serializer_push(), fairwq_serializer_leave()
 * and fairwq_serializer_pop_locked().
 *
 * Two tasks queue three items, of which two runners run what may start. Then,
 * or when he thinks so, the second one destroys the serializer.
 *
 * Holds: one item is in flight at a time, and sees what those before have
 * stored; the items of one task start in queue order; each runs, or is
 * cancelled; the destroying call returns, and nobody is at the serializer then.
 *
 * Case CANCEL: the second item is cancelled by another CPU, if it waits.
 * Case ON_TOP: it is cancelled by an interrupt on top of its queue call, at any
 *	moment of that; constraint.c: fairwq_leave_word(), fairwq_undo(),
 *	fairwq_drop_admitted(). When the call has returned, nobody looks at it.
 *
 * Broken LEFT_BLINDLY (invalid end state): who has seen that nothing waits
 *	stores that it is idle.
 * Broken STRANDED (invalid end state): who pushes when it is idle starts nothing.
 * Broken SERIAL_LIFO (assertion): the newest is started first.
 * Broken NO_MB_LEAVE (assertion): it is left without a barrier.
 * Broken CANCEL NOT_MARKED (invalid end state): who sorts does not say that
 *	something is in the list.
 * Broken CANCEL UNLOCKED (invalid end state): a cancel takes out what it finds
 *	without the lock.
 * Broken ON_TOP FORGOTTEN (assertion): the queue call does not take it out.
 * Broken ON_TOP NOT_DROPPED (assertion): nor does who lets it go.
 */
#define CPUS	4		/* 0, 1: queue; 2, 3: runners */
#define LOCK	0		/* fairwq_constraint_lock() */
#define DATA	1		/* what the items work on */
#define VARS	2

#include "memory.pml"

#define ITEMS	3		/* 0 and 1 of the first task, 2 of the second */
#define MARKER	3		/* struct fairwq_marker */
#define NONE	9

#define IDLE	0
#define BUSY	1
#define LIST	2

/* Item 1's word. */
#define KEPT	1
#define CANCELED 2		/* and KEPT */
#define GONE_ON	3

byte head;				/* serializer->head, if nothing is pushed */
chan incoming = [ITEMS + 1] of { byte };	/* what is pushed, oldest first */
chan waiting = [ITEMS + 1] of { byte };	/* serializer->waiting */
chan pushed = [ITEMS] of { byte };	/* in their batches */

bool inside;				/* an item's function */
byte runs;
bool begun[ITEMS], cancelled;
bool told;				/* the marker's completion */
bool gone;				/* the serializer */
bool queued;				/* all of the first task */
byte word;				/* of item 1 */
bool entry_canceled;			/* fairwq_entry.canceled of its queue call */
bool entered, returned;			/* that call */
bool masked, on_top;			/* interrupts of its CPU */

/* fairwq_serializer_sort_locked(): xchg() */
inline sort_locked(cpu)
{
	if
	:: nempty(incoming) ->
		RMW(cpu);
		d_step {
			assert(!gone);
#ifndef NOT_MARKED
			head = LIST;
#endif
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
	:: empty(incoming)
	fi
}

/* fairwq_serializer_leave(): @left, or something was pushed */
inline leave(cpu, from)
{
#if defined(LEFT_BLINDLY)
	d_step { RMW(cpu) -> assert(!gone); left = (head == from && empty(incoming)) }
	if
	:: left -> d_step { head = IDLE }
	:: else
	fi
#elif defined(NO_MB_LEAVE)
	d_step {
		assert(!gone);
		left = (head == from && empty(incoming));
		head = (left -> IDLE : head)
	}
#else
	d_step {
		RMW(cpu) -> assert(!gone);
		left = (head == from && empty(incoming));
		head = (left -> IDLE : head)
	}
#endif
}

/* fairwq_serializer_pop_locked(): @work, or it was left */
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
			waiting?work;
			if
			:: work == MARKER -> passed = true; work = NONE
			:: work == 1 -> goto_admit(); break
			:: else -> break
			fi
		:: empty(waiting) ->
#ifdef NOT_MARKED
			leave(cpu, head);
#else
			leave(cpu, LIST);
#endif
			if
			:: left -> left = false; break
			:: else
			fi
		fi
	od
}

/* fairwq_admit_locked() */
inline goto_admit()
{
	d_step {
		assert(!(returned && word == CANCELED));
#ifdef NOT_DROPPED
		word = GONE_ON
#else
		word = (word == CANCELED -> CANCELED : GONE_ON)
#endif
	}
}

/* fairwq_serializer_next(): what it finds is pushed, or dropped */
inline next(cpu)
{
	do
	:: true ->
		masked = masked || cpu == 0;
		spin_lock(cpu);
		pop_locked(cpu);
		spin_unlock(cpu);
		/* complete() */
		d_step { told = told || passed; passed = false }
		if
		:: work == NONE -> break
		:: work == 1 && word == CANCELED ->
			/* fairwq_drop_admitted(), fairwq_serializer_complete() */
			d_step { assert(!returned); word = 0; work = NONE }
			leave(cpu, BUSY);
			if
			:: left -> left = false; break
			:: else
			fi
		:: else ->
			/* fairwq_admit_push() */
			d_step { RMW(cpu) -> pushed!work; work = NONE }
			break
		fi
	od;
	masked = masked && cpu != 0
}

/* fairwq_serializer_take(), else fairwq_serializer_push() */
inline enter(cpu, work_)
{
	d_step {
		RMW(cpu) -> assert(!gone);
		first = (head == IDLE && empty(incoming) && work_ != MARKER);
		head = (first -> BUSY : head)
	}
	if
	:: first ->
		first = false;
		/* fairwq_enter(): cmpxchg() of the word */
		d_step {
			left = (work_ == 1 && word == CANCELED);
			word = (work_ == 1 && !left -> GONE_ON : word)
		}
		if
		:: left ->
			left = false;
			word = 0;
			leave(cpu, BUSY);
			if
			:: left -> left = false
			:: else -> next(cpu)
			fi
		:: else -> d_step { RMW(cpu) -> pushed!work_ }
		fi
	:: else ->
		d_step {
			RMW(cpu) -> assert(!gone);
			first = (head == IDLE);
			head = (first -> BUSY : head);
			incoming!work_
		}
		if
#ifdef STRANDED
		:: first -> first = false
#else
		:: first -> first = false; next(cpu)
#endif
		:: else
		fi
	fi
}

/* fairwq_undo() */
inline undo(cpu)
{
	do
	:: word == CANCELED ->
		masked = true;
		spin_lock(cpu);
		if
		:: word == CANCELED ->
			sort_locked(cpu);
			if
			:: waiting??[1] -> d_step { waiting??1; word = 0 }
			:: !waiting??[1] ->
				/* Another CPU has it, and is about to drop it. */
progress_dropping:		skip
			fi
		:: word != CANCELED
		fi;
		spin_unlock(cpu);
		masked = false
	:: word != CANCELED -> break
	od
}

/*
 * fairwq_serializer_queue() of items @from .. @to - 1; fairwq_serializer_destroy().
 * The first one is process 2.
 */
proctype task(byte cpu; byte from; byte to) provided (!on_top || _pid != 2)
{
	byte work = NONE, got = NONE, other = NONE;
	bool first, left, passed;

	do
	:: from < to ->
		if
		:: from == 1 -> d_step { RMW(cpu) -> word = KEPT; entered = true }
		:: else
		fi;
		enter(cpu, from);
#ifndef FORGOTTEN
		if
		:: from == 1 && entry_canceled -> undo(cpu)
		:: else
		fi;
#endif
		returned = returned || from == 1;
		from++
	:: else -> break
	od;
	if
	:: cpu == 1 ->
		queued == 1;	/* the first one's calls are over */
		do
		:: head != IDLE || len(incoming) > 0 ->
			/* fairwq_serializer_wait() */
			enter(cpu, MARKER);
			d_step { told -> told = false }
		:: else -> break
		od;
		gone = true
	:: else -> queued = 1
	fi
}

/* What may start, started by any runner. */
proctype runner(byte cpu)
{
	byte item = NONE, data, work = NONE, got = NONE, other = NONE;
	bool left, passed;

end:	do
	:: pushed?item ->
		d_step {
			assert(!inside && !begun[item]);
			assert(item != 1 || begun[0]);
			assert(item != 1 || !cancelled);
			inside = true;
			begun[item] = true
		}
		read_once(cpu, DATA, data);
		assert(data == runs);
		write_once(cpu, DATA, data + 1);
		d_step { inside = false; runs++; data = 0; item = NONE }
		/* fairwq_serializer_complete() */
		leave(cpu, BUSY);
		if
		:: left -> left = false
		:: else -> next(cpu)
		fi
	od
}

/* A cancel of item 1: fairwq_cancel_constrained() */
inline cancel_item(cpu)
{
#ifndef UNLOCKED
	spin_lock(cpu);
#endif
	if
	:: word == KEPT ->
		sort_locked(cpu);
		if
		:: waiting??[1] -> d_step { waiting??1; cancelled = true; word = 0 }
		:: !waiting??[1]
		fi
	:: word != KEPT		/* the serializer is not looked at: it may be gone */
	fi;
#ifndef UNLOCKED
	spin_unlock(cpu)
#endif
}

/* From the CPU of the second task, before its items. */
proctype cancel(byte cpu)
{
	byte got = NONE, other = NONE;

	cancel_item(cpu)
}

/* On top of the first task. */
proctype interrupt(byte cpu)
{
	byte got = NONE, other = NONE;

	if
	:: d_step { entered && !returned && !masked -> on_top = true }
		cancel_item(cpu);
		/* fairwq_leave_word() */
		d_step {
			if
			:: word == KEPT -> word = CANCELED; entry_canceled = true; cancelled = true
			:: else
			fi
		}
		on_top = false
	:: returned
	fi
}

proctype waiter()
{
	gone && begun[0] && (begun[1] || cancelled) && begun[2];
	assert(head == IDLE && runs == ITEMS - cancelled && word != CANCELED)
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
#ifdef ON_TOP
		run interrupt(0);
#endif
		run waiter()
	}
}
