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
 * Case CANCEL: the second item is cancelled by another CPU, wherever it is until it
 *	is let go; constraint.c: fairwq_take_out_locked(), fairwq_leave_word_locked(),
 *	fairwq_undo(). With interrupts and two serializers: enter.pml.
 *
 * Broken LEFT_BLINDLY (invalid end state): who has seen that nothing waits
 *	stores that it is idle.
 * Broken STRANDED (invalid end state): who pushes when it is idle starts nothing.
 * Broken SERIAL_LIFO (assertion): the newest is started first.
 * Broken NO_MB_LEAVE (assertion): it is left without a barrier.
 * Broken CANCEL NOT_MARKED (invalid end state): who sorts does not say that
 *	something is in the list.
 * Broken CANCEL UNLOCKED (assertion): a cancel takes out what it finds
 *	without the lock.
 * Broken CANCEL NOT_ASIDE (assertion): what was cancelled is sorted as any other.
 * Broken CANCEL FORGOTTEN (invalid end state): the queue call does not drop it.
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
bool mark;				/* of its queue call's entry */
bool aside;				/* it was cancelled before it was sorted */

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
#ifndef NOT_ASIDE
			:: incoming??[1] && word == CANCELED -> incoming??1; aside = true
#endif
			:: nempty(incoming) ->
				incoming?got;
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
			/* fairwq_admit_locked() */
			:: work == 1 -> word = GONE_ON; break
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

/* fairwq_serializer_next(), fairwq_admit_push() */
inline next(cpu)
{
	spin_lock(cpu);
	pop_locked(cpu);
	spin_unlock(cpu);
	/* complete() */
	d_step { told = told || passed; passed = false }
	if
	:: work == NONE
	:: else -> d_step { RMW(cpu) -> pushed!work; work = NONE }
	fi
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
			/* fairwq_drop_admitted() */
			d_step { left = false; word = 0; mark = false }
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
	spin_lock(cpu);
	if
	:: mark ->
		if
		:: !aside -> sort_locked(cpu)
		:: aside
		fi;
		d_step { assert(word == CANCELED); word = 0; mark = false }
	:: !mark
	fi;
	spin_unlock(cpu)
}

/*
 * fairwq_serializer_queue() of items @from .. @to - 1; fairwq_serializer_destroy().
 */
proctype task(byte cpu; byte from; byte to)
{
	byte work = NONE, got = NONE, other = NONE;
	bool first, left, passed;

	do
	:: from < to ->
		if
		:: from == 1 -> d_step { RMW(cpu) -> word = KEPT }
		:: else
		fi;
		enter(cpu, from);
#ifndef FORGOTTEN
		if
		:: from == 1 && mark -> undo(cpu)
		:: else
		fi;
#endif
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

/* Of item 1: fairwq_cancel_constrained(). On the CPU of the second task. */
proctype cancel(byte cpu)
{
	byte got = NONE, other = NONE;

#ifndef UNLOCKED
	spin_lock(cpu);
#endif
	if
	:: word == KEPT ->
		/* In the code, only if it is not waiting by now. */
		d_step { RMW(cpu) -> mark = true }
		sort_locked(cpu);
		if
		:: waiting??[1] -> d_step { waiting??1; cancelled = true; word = 0; mark = false }
		:: !waiting??[1] ->
			d_step {
				RMW(cpu) -> cancelled = (word == KEPT);
				word = (cancelled -> CANCELED : word);
				mark = mark && cancelled
			}
		fi
	:: word != KEPT		/* the serializer is not looked at: it may be gone */
	fi;
#ifndef UNLOCKED
	spin_unlock(cpu)
#endif
}

proctype waiter()
{
	gone && begun[0] && (begun[1] || cancelled) && begun[2] && !mark;
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
		run cancel(1);
#endif
		run waiter()
	}
}
