/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The way of a work into a constraint, and out of it. constraint.c:
 * fairwq_enter(), fairwq_cancel_constrained(), fairwq_take_out_locked(),
 * fairwq_let_go_constrained(), fairwq_leave_word(), fairwq_undo(),
 * fairwq_admit_locked() and fairwq_admit_push(); work.c: fairwq_let_go() and
 * fairwq_cancel_admitted_locked().
 *
 * There are two serializers, in each of which an item is in flight that is not
 * the work. A task queues the work through the first one, then the other one,
 * then the first one again. Another CPU cancels it once. A runner runs what is
 * let go, and lets go what waits.
 *
 * Holds: each queueing that was accepted runs, or a cancel returned true for it,
 * and never both; the batch that is read is that of this queueing; what is taken
 * out of a constraint is in there, and nobody touches one that may be gone; when
 * a queue call has returned, nobody touches what was cancelled under it; all
 * calls return.
 *
 * That a work waits is told by a bit of @constraint. It was told by @place before:
 * that is Case BY_PLACE, good for two queue calls, and not for three.
 *
 * Loads are where they stand here. That the code needs barriers between some of
 * them, on CPUs that do not keep their order, is not shown, but for NO_ACQUIRE. Nor
 * is that an item may free itself, nor what is put back: see lift.c, streak.c.
 *
 * Nothing needs the full barrier in front of the first store of @constraint
 * (NO_MB_ENTER holds): who lets go of a work has stored @place and @stamp before
 * it can be claimed again, and what is pushed has them stored before.
 *
 * Case LIMITER: the constraints are limiters.
 * Case BY_PLACE: by @place, for two queue calls.
 * Case ON_TOP: the task queues the work once, another CPU does so, too, and the
 *	cancel is by an interrupt on top of the task's call. Then the work may be
 *	freed.
 *
 * Broken UNSORTED (assertion): who takes the work out does not look whether it is
 *	in the list: it is only about to be pushed.
 * Broken NO_ACQUIRE (assertion): who takes it out loads @place before @constraint.
 * Broken CHECKED_EARLY (assertion): or does not look at @constraint again when he
 *	has the lock.
 * Broken NO_RELEASE_LET_GO (assertion): the word that says that it is free can be
 *	seen before what is stored in front of it.
 * Broken NO_RELEASE_QUEUED (assertion): the same in fairwq_let_go().
 * Broken BY_PLACE NO_ACQUIRE (assertion): as above.
 * Broken BY_PLACE NO_RMB (assertion): @data and @constraint are loaded before
 *	@place.
 * Broken BY_PLACE CHECKED_ONCE (assertion): @constraint is not loaded again.
 * Broken BY_PLACE THRICE (assertion): a third queue call: @place is of the second
 *	one, and @constraint names the same for the first and the third.
 * Broken ON_TOP NO_RELEASE_ADMIT (assertion): that it is let go can be seen
 *	before @constraint without the bit.
 * Broken ON_TOP ADMITTED_BLINDLY (assertion): the queue call stores that it is let
 *	go, whatever the word says by then.
 * Broken ON_TOP FORGOTTEN (assertion): the queue call does not look at
 *	@entry_canceled.
 * Broken ON_TOP LOOKED_EARLY (assertion): it looks before it is off the list, or
 *	only if it has claimed the work.
 * Broken ON_TOP NOT_AWAITED (assertion): what was cancelled when it was let go by
 *	another CPU is not waited for: that CPU pushes it when it may be freed.
 * Broken ON_TOP DROPPED_BLINDLY (assertion): who is about to push what he has let
 *	go takes it for cancelled while it waited: then he would have to tell its
 *	constraint, but the cancel has, and has stored NULL.
 * Broken ON_TOP TOPMOST (invalid end state): with a second queue call for the work
 *	in between, which does not get it, the cancel looks at that one only.
 * Broken ON_TOP WORD_FIRST (invalid end state): fairwq_undo() loads the word, then
 *	@constraint: the word is of this queueing, and the other of the next, which
 *	is taken out.
 */
#define CPUS	3		/* 0: queue; 1: the runner; 2: cancel, or queue */
#define LOCK	0		/* fairwq_constraint_lock(), of each of the two */
#define DATA	2		/* work->data */
#define CONSTRAINT 3		/* work->constraint */
#define PLACE	4		/* work->place */
#define STAMP	5		/* work->stamp: which queueing's batch, or 0 */
#define VARS	6

#include "memory.pml"

/* @DATA */
#define ENTRY_0	1		/* kept back, by a queue call of CPU 0 */
#define ENTRY_2	2
#define ADMITTED 4
#define LINKED	8
#define CANCELED 16
#define kept(d)	((d) & (ENTRY_0 | ENTRY_2))

/* @CONSTRAINT: 0, 1 or 2, */
#define WAITS	2		/* and this, or in @PLACE: */
#define WAITING	1
#define SORTED	2
#define named(k) ((k) > WAITS -> (k) - WAITS : (k))

/* What to do next with constraint @k, or the work. */
#define DONE	0
#define COMPLETE 1
#define NEXT	2
#define PUSH	3

#if defined(BY_PLACE) && !defined(THRICE)
#define CALLS	2
#else
#define CALLS	3
#endif

bool busy[2];			/* serializer->head: somebody has it, */
bool pushed[2];			/* and the work is pushed, */
bool sorted[2];			/* or in @waiting */
bool other[2];			/* an item that is in flight, not the work */

bool incoming, fifo;		/* the work is in its batch */
byte nr_canceled;		/* batch->nr_canceled */
byte held;			/* batch->nr_held */

bool called;			/* CPU 0 is in its queue call, */
bool masked;			/* with interrupts off, */
bool on_top;			/* or in an interrupt */
bool entry_canceled;		/* fairwq_entry.canceled of that call */
bool more;			/* CPU 2 may still queue it */

/* What the properties are about. */
byte accepted, runs, cancelled;
byte bound;			/* the batch of the last queueing */
byte way;			/* a constraint that it is on its way into */
bool freed;			/* by whoever has cancelled it */
byte returned;			/* calls */

/* To the work, on their way. */
#define stores(c)	(sb[c].var[0] >= DATA || sb[c].var[1] >= DATA || sb[c].var[2] >= DATA)

/* It may go when nobody has it and nobody is on his way to it. */
#define exists(c)	(busy[(c) - 1] || way == (c))

/* fairwq_batch_splice_locked(), fairwq_link_locked() */
inline link()
{
	if
	:: incoming ->
		assert(!freed);
		incoming = false;
		if
		:: nr_canceled && (mem[DATA] & CANCELED) ->
			mem[DATA] = 0;
			nr_canceled--
		:: else ->
			mem[DATA] = LINKED;
			fifo = true
		fi
	:: else
	fi
}

/* fairwq_serializer_sort_locked() */
inline sort_locked(cpu, c)
{
	if
	:: pushed[(c) - 1] ->
		d_step { RMW(cpu) -> assert(exists(c)); pushed[(c) - 1] = false; sorted[(c) - 1] = true };
		read_once(cpu, PLACE, p);
		write_once(cpu, PLACE, p | SORTED);
		p = 0
	:: !pushed[(c) - 1]
	fi
}

/* fairwq_serializer_remove(), fairwq_limiter_remove() */
inline remove_locked(cpu, c)
{
	assert(exists(c));
#ifdef LIMITER
	d_step { assert(sorted[(c) - 1]); sorted[(c) - 1] = false; taken = true }
#else
	sort_locked(cpu, c);
#if !defined(NO_ACQUIRE)
	read_once(cpu, PLACE, p);
#endif
#ifdef UNSORTED
	p = SORTED;
#endif
	if
	:: p & SORTED -> d_step { assert(sorted[(c) - 1]); sorted[(c) - 1] = false; taken = true }
	:: else
	fi;
	p = 0
#endif
}

/* fairwq_let_go_constrained() */
inline let_go(cpu)
{
	read_once(cpu, STAMP, s);
	d_step { assert(s == bound && !freed); s = 0 }
	write_once(cpu, STAMP, 0);
	write_once(cpu, PLACE, 0);
	write_once(cpu, CONSTRAINT, 0);
#ifdef NO_RELEASE_LET_GO
	write_once(cpu, DATA, 0)
#else
	store_release(cpu, DATA, 0)
#endif
}

/* fairwq_admit_locked() */
inline admit_locked(cpu, c)
{
	read_once(cpu, DATA, d);
	read_once(cpu, STAMP, s);
	d_step { assert(kept(d) && s == bound && !freed); s = 0 }
	write_once(cpu, PLACE, 0);
#ifndef BY_PLACE
	write_once(cpu, CONSTRAINT, c);
#endif
#ifdef NO_RELEASE_ADMIT
	write_once(cpu, DATA, ADMITTED | (d & CANCELED));
#else
	store_release(cpu, DATA, ADMITTED | (d & CANCELED));
#endif
	d = 0
}

/* Do @act, and what comes of it; @k: of which constraint. */
inline settle(cpu)
{
	do
#ifdef LIMITER
	:: act == COMPLETE -> act = NEXT	/* all of it under the lock */
#else
	:: act == COMPLETE ->
		/* fairwq_complete(), fairwq_serializer_leave() */
		d_step {
			RMW(cpu) -> assert(exists(k));
			busy[k - 1] = pushed[k - 1] || sorted[k - 1];
			act = (busy[k - 1] -> NEXT : DONE)
		}
#endif
	:: act == NEXT ->
		/* fairwq_serializer_next(), fairwq_serializer_pop_locked() */
		d_step {
			mem[k - 1] == 0 -> mem[k - 1] = 1;
			masked = masked || (cpu == 0 && !on_top)
		}
		do
		:: pushed[k - 1] -> sort_locked(cpu, k)
		:: d_step { !pushed[k - 1] && sorted[k - 1] -> sorted[k - 1] = false; act = PUSH };
			admit_locked(cpu, k);
			break
		:: d_step { RMW(cpu) && !pushed[k - 1] && !sorted[k - 1] ->
			    assert(exists(k)); busy[k - 1] = false; act = DONE };
			break
		od;
		unlock(cpu, k - 1)
	:: act == PUSH ->
		/* fairwq_admit_push() */
		assert(!freed);
		read_once(cpu, DATA, d);
		read_once(cpu, CONSTRAINT, k);
		if
#ifdef DROPPED_BLINDLY
		:: d & CANCELED ->
#else
		:: (d & CANCELED) && k ->
#endif
			/* fairwq_drop_admitted() */
			assert(k);
			let_go(cpu);
			d_step { held--; act = COMPLETE; d = 0 }
		:: else ->
			/* fairwq_push_claimed() */
			d_step { RMW(cpu) -> assert(!incoming && !fifo && !freed); incoming = true };
			if
			:: nr_canceled -> d_step { RMW(cpu) -> link() }
			:: !nr_canceled
			fi;
			d_step { held--; act = DONE; d = 0 }
		fi
	:: d_step { act == DONE -> k = 0; masked = masked && (cpu != 0 || on_top) };
		break
	od
}

/* Another CPU has it, and what was seen is about to change. */
inline again(cpu)
{
	d_step {
		RMW(cpu) && (mem[DATA] != d || mem[CONSTRAINT] != k || incoming ||
			     (k && (pushed[named(k) - 1] || sorted[named(k) - 1])))
	}
}

/* fairwq_undo() */
inline undo(cpu, c)
{
	do
	:: true ->
		read_once(cpu, DATA, d);
		if
		:: !(d & CANCELED) -> break
		:: else
		fi;
		d_step { mem[c - 1] == 0 -> mem[c - 1] = 1; masked = true }
#ifdef BY_PLACE
		read_once(cpu, PLACE, p);
		read_once(cpu, CONSTRAINT, k);
		read_once(cpu, DATA, d);
		if
		:: (d & CANCELED) && k == c && (p & WAITING) -> remove_locked(cpu, c)
#else
#ifdef WORD_FIRST
		read_once(cpu, DATA, d);
		read_once(cpu, CONSTRAINT, k);
#else
		read_once(cpu, CONSTRAINT, k);
		read_once(cpu, DATA, d);
#endif
		if
		:: (d & CANCELED) && k == c + WAITS -> remove_locked(cpu, c)
#endif
		:: else
		fi;
		if
		:: taken -> let_go(cpu)
		:: else
		fi;
		unlock(cpu, c - 1);
		masked = false;
		if
		:: taken -> d_step { held--; taken = false } break
		:: !taken && (d & CANCELED) ->
			d_step { RMW(cpu) && (mem[DATA] != d || mem[CONSTRAINT] != k ||
					      (k == c + WAITS && (pushed[c - 1] || sorted[c - 1]))) }
		:: !taken && !(d & CANCELED)
		fi
	od;
	d = 0;
	k = 0
}

/* fairwq_queue_constrained(), to batch @b; by CPU 0 or 2 */
inline queue(cpu, c, b)
{
	if
	:: d_step { RMW(cpu) && mem[DATA] == 0 ->
		    mem[DATA] = (cpu == 0 -> ENTRY_0 : ENTRY_2);
		    accepted++; bound = b; way = c } ->
		/* fairwq_enter() */
		write_once(cpu, PLACE, 0);
		write_once(cpu, STAMP, b);
#ifdef NO_MB_ENTER
		held++;
#else
		d_step { RMW(cpu) -> held++ }
#endif
		write_once(cpu, CONSTRAINT, c);
#ifdef LIMITER
		masked = masked || cpu == 0;
		lock(c - 1);
		if
		:: d_step { !busy[c - 1] -> busy[c - 1] = true; way = 0; act = PUSH }
		:: busy[c - 1] ->
			keep_back(cpu, c);
			d_step { sorted[c - 1] = true; way = 0 }
		fi;
		unlock(cpu, c - 1);
		masked = masked && cpu != 0;
#else
		/* fairwq_serializer_take(), else fairwq_serializer_push() */
		if
		:: d_step { RMW(cpu) && !busy[c - 1] -> busy[c - 1] = true; way = 0; act = PUSH }
		:: busy[c - 1] ->
			keep_back(cpu, c);
			d_step {
				RMW(cpu) -> act = (busy[c - 1] -> DONE : NEXT);
				busy[c - 1] = true;
				pushed[c - 1] = true;
				way = 0
			}
		fi;
#endif
		if
		:: act == PUSH ->
			write_once(cpu, PLACE, 0);
			/* atomic_long_try_cmpxchg() */
#ifdef ADMITTED_BLINDLY
			d_step { RMW(cpu) -> mem[DATA] = ADMITTED }
#else
			d_step { RMW(cpu) -> mem[DATA] = ADMITTED | (mem[DATA] & CANCELED) }
#endif
		:: else
		fi;
		k = c;
		settle(cpu)
	:: mem[DATA] != 0	/* it is pending, or was cancelled in the middle of a call */
	fi;
	/* fairwq_enter_on_top() */
#ifndef LOOKED_EARLY
	called = called && cpu != 0;
#endif
#ifndef FORGOTTEN
	if
	:: cpu == 0 && entry_canceled -> undo(cpu, c)
	:: else
	fi
#endif
}

inline keep_back(cpu, c)
{
#ifdef BY_PLACE
	write_once(cpu, PLACE, WAITING)
#else
	write_once(cpu, CONSTRAINT, c + WAITS)
#endif
}

/* fairwq_cancel_constrained(): @taken */
inline cancel_constrained(cpu)
{
#ifdef NO_ACQUIRE
	read_once(cpu, PLACE, p);
#endif
	/* smp_load_acquire() */
	read_once(cpu, CONSTRAINT, k);
	if
	:: k ->
		n = named(k);
		lock(n - 1);
		/* fairwq_take_out_locked() */
#ifdef BY_PLACE
#ifdef NO_RMB
		read_once(cpu, DATA, d);
		read_once(cpu, CONSTRAINT, s);
		first = (s == k);
		read_once(cpu, PLACE, p);
#else
		read_once(cpu, CONSTRAINT, s);
		first = (s == k);
#ifndef NO_ACQUIRE
		read_once(cpu, PLACE, p);
#endif
		read_once(cpu, DATA, d);
#ifndef CHECKED_ONCE
		read_once(cpu, CONSTRAINT, s);
#endif
#endif
		if
		:: first && s == k && kept(d) && !(d & CANCELED) && (p & WAITING) ->
			remove_locked(cpu, k)
		:: else
		fi;
		d_step { s = 0; first = false }
#else
#ifdef CHECKED_EARLY
		if
		:: k > WAITS -> remove_locked(cpu, n)
#else
		read_once(cpu, CONSTRAINT, s);
		read_once(cpu, DATA, d);
		if
		:: s == n + WAITS && !(d & CANCELED) -> s = 0; remove_locked(cpu, n)
#endif
		:: else
		fi;
		s = 0;
#endif
		if
		:: taken -> let_go(cpu)
		:: else -> p = 0
		fi;
		unlock(cpu, n - 1);
		n = 0
	:: else
	fi
}

#define word_left(d)	d_step { \
		RMW(cpu) && mem[DATA] == (d) -> mem[DATA] = (d) | CANCELED; \
		entry_canceled = true; cancelled++; \
		assert(runs + cancelled <= accepted) }

/* fairwq_work_cancel(). @top: by an interrupt on top of a queue call of CPU 0. */
inline cancel(cpu, top)
{
	do
	:: true ->
		read_once(cpu, DATA, d);
		if
		:: !d || (kept(d) && (d & CANCELED)) -> break
		:: kept(d) && !(d & CANCELED) ->
			cancel_constrained(cpu);
			if
			:: taken -> d_step { taken = false; held--; cancelled++; k = 0;
					     assert(runs + cancelled <= accepted) } break
			:: else
			fi;
			/* fairwq_leave_word() */
#ifdef TOPMOST
			if
			:: false ->
#else
			if
			:: top && d == ENTRY_0 ->
#endif
				if
				:: word_left(ENTRY_0) -> break
				:: mem[DATA] != ENTRY_0
				fi
			:: else ->
				if
				:: kept(d) && !(d & CANCELED) -> again(cpu)
				:: !(kept(d) && !(d & CANCELED))
				fi
			fi
		:: d & (ADMITTED | LINKED) ->
			/* fairwq_cancel_queued_locked(), under the lock of the pool */
			k = 0;
			d_step {
				RMW(cpu);
				link();
				d = mem[DATA];
				if
				:: (d & LINKED) && fifo ->
					fifo = false;
					k = mem[CONSTRAINT];
					taken = true
				/* fairwq_cancel_admitted_locked() */
				:: top && d == ADMITTED ->
					k = mem[CONSTRAINT];
					assert(k && k <= WAITS);
					mem[CONSTRAINT] = 0;
					mem[DATA] = ADMITTED | CANCELED;
					nr_canceled++;
#ifndef NOT_AWAITED
					entry_canceled = true;
#endif
					cancelled++;
					assert(runs + cancelled <= accepted);
					act = COMPLETE
				:: else -> k = mem[CONSTRAINT]
				fi
			}
			if
			:: taken ->
				/* fairwq_let_go() */
				write_once(cpu, CONSTRAINT, 0);
#ifdef NO_RELEASE_QUEUED
				write_once(cpu, DATA, 0);
#else
				store_release(cpu, DATA, 0);
#endif
				d_step { taken = false; cancelled++; act = COMPLETE;
					 assert(runs + cancelled <= accepted) } break
			:: !taken && act == COMPLETE -> break
			:: !taken && act != COMPLETE && ((d & LINKED) || d == (ADMITTED | CANCELED)) -> break
			:: !taken && act != COMPLETE && d == ADMITTED -> again(cpu)
			:: !taken && act != COMPLETE && (!d || kept(d))	/* not any more */
			fi
		fi
	od;
	settle(cpu);
	d = 0
}

proctype task(byte cpu) provided (!on_top)
{
	byte d, k, p, s, act;
	bool taken;

#ifdef ON_TOP
	called = true;
	queue(cpu, 1, 1);
	called = false;
	/* Whoever has cancelled it may free it, if nobody else queues it. */
	d_step {
		freed = (!more && cancelled == accepted);
		assert(!freed || (!incoming && !fifo && !stores(1)))
	}
#else
	queue(cpu, 1, 1);
	queue(cpu, 2, 2);
#if CALLS > 2
	queue(cpu, 1, 3);
#endif
#endif
	returned++
}

proctype interrupt(byte cpu)
{
	byte d, k, n, p, s, act;
	bool taken, first;

	if
	:: d_step { called && !masked -> on_top = true };
		cancel(cpu, true);
		on_top = false
	:: returned > 0
	fi;
	returned++
}

proctype canceller(byte cpu)
{
	byte d, k, n, p, s, act;
	bool taken, first;

	cancel(cpu, false);
	returned++
}

proctype requeue(byte cpu)
{
	byte d, k, p, s, act;
	bool taken;

	queue(cpu, 1, 2);
	more = false;
	returned++
}

proctype runner(byte cpu)
{
	byte d, k, p, s, act;
	bool taken;

end:	do
	:: d_step { RMW(cpu) && incoming -> link() }
	:: d_step { RMW(cpu) && fifo -> fifo = false; k = mem[CONSTRAINT] };
		/* fairwq_start_turn() */
		write_once(cpu, CONSTRAINT, 0);
		d_step { RMW(cpu) -> assert(!freed && k); mem[DATA] = 0; runs++;
			 assert(runs + cancelled <= accepted); act = COMPLETE }
		settle(cpu)
	:: other[0] -> d_step { other[0] = false; k = 1; act = COMPLETE }
		settle(cpu)
	:: other[1] -> d_step { other[1] = false; k = 2; act = COMPLETE }
		settle(cpu)
	od
}

proctype waiter()
{
#ifdef ON_TOP
	returned == 3 &&
#else
	returned == 2 &&
#endif
	runs + cancelled == accepted && !busy[0] && !busy[1] &&
	sb[0].n + sb[1].n + sb[2].n == 0 && !mem[DATA] && !held && !nr_canceled &&
	!incoming && !fifo
}

init {
	atomic {
		other[0] = true;
		busy[0] = true;
#ifndef ON_TOP
		other[1] = true;
		busy[1] = true;
#endif
		run memory();
		run runner(1);
		run task(0);
#ifdef ON_TOP
		more = true;
		run interrupt(0);
		run requeue(2);
#else
		run canceller(2);
#endif
		run waiter()
	}
}
