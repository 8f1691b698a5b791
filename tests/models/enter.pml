/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The way of a work into a constraint, and out of it. constraint.c:
 * fairwq_enter(), fairwq_undo(), fairwq_cancel_constrained(),
 * fairwq_leave_word_locked(), fairwq_let_go_constrained(), fairwq_admit_locked(),
 * fairwq_keep_back_locked() and fairwq_admit_push(); work.c: fairwq_let_go() and fairwq_cancel_admitted_locked().
 *
 * A queue call has an entry, one for each CPU and level. The word of what it has
 * claimed names the entry, and the lock of the constraint. A cancel takes that
 * lock, and no other, and waits for nobody: if the work is not in the constraint
 * yet, it stores the word to the entry, which is the mark, and then CANCELED to
 * the word. Whoever sorts leaves such a work aside, and the queue call drops it.
 *
 * There are two serializers, in each of which an item is in flight that is not
 * the work. A task queues the work through the first one, then the other one.
 * Another CPU cancels it once. A runner runs what is let go, and lets go what
 * waits, or takes it along in a streak.
 *
 * Holds: each queueing that was accepted runs, or a cancel returned true for it,
 * and never both; the batch that is read is that of this queueing; what is taken
 * out of a constraint is in there, and nobody looks into one that may be gone;
 * nobody touches the work when it may be freed: when all calls have returned and
 * it does not run any more, or by its function in Case AGAIN; all calls return; in
 * the end no mark is left.
 *
 * Loads are where they stand here, but for NO_ACQUIRE. What is done under the lock
 * of the pool is one step, but for a streak's stores, and what is put back: for @nr_canceled, and who
 * looks at @incoming after it, see cancel.pml. There is one level on each CPU, and
 * one work.
 *
 * Nothing here needs the release in fairwq_admit_locked() (NO_RELEASE_ADMIT holds):
 * a cancel that finds ADMITTED looks into the work only if it is its own queue
 * call's, which has a full barrier there. Nor those in fairwq_keep_back_locked()
 * (BACK NO_RELEASE_BACK): who looks further takes the lock first.
 *
 * Case LIMITER: the constraints are limiters.
 * Case SHARED: both of them have the same lock.
 * Case THRICE: the task queues it a third time, through the first one again.
 * Case ON_TOP: the task queues the work once, another CPU does so, too, and the
 *	cancel is by an interrupt on top of the task's call.
 * Case TWO: one queue call; an interrupt on top of it cancels, and another CPU.
 * Case AGAIN: one queue call; who has cancelled it queues it again at once, through
 *	any of the two, and the function of that frees it.
 * Case BACK: what was taken along is put back once, by the runner: what is left of a
 *	streak.
 * Case STOPPED: one queue call, which may stop, wherever it has interrupts on, until
 *	the cancel has returned.
 *
 * Broken BY_ENTRY (assertion): the word names the entry only. Which constraint, and
 *	so which lock, is told by the work, or by the entry: that of a queueing before.
 * Broken LIMITER BY_ENTRY (assertion): as above.
 * Broken MARK_WORK (assertion): the mark says which work, not through which lock: of
 *	two queueings the later one takes it for its own.
 * Broken MARK_KEPT (invalid end state): a queue call that drops what it has let go
 *	itself leaves the mark as it is.
 * Broken SORTED_BLINDLY (assertion): the queue call sorts before it drops the work,
 *	though that is aside: the serializer may be gone.
 * Broken LOOKED_ONCE (assertion): the cancel does not look whether the work
 *	is in the constraint when it has marked the entry: the queue call may be over,
 *	and then nobody drops it.
 * Broken MARK_LATE (invalid end state): it stores to the word first.
 * Broken MARK_UNCHECKED (assertion): the queue call does not look at the mark again
 *	when it has the lock.
 * Broken LOOKED_EARLY (invalid end state): it looks before it pushes the work.
 * Broken NOT_ASIDE (assertion): what was cancelled is sorted as any other.
 * Broken NO_LOCK (assertion): the mark and the word are stored without the lock.
 * Broken NO_RELEASE_LET_GO (assertion): the word that says that it is free can be
 *	seen before what is stored in front of it.
 * Broken NO_RELEASE_QUEUED (assertion): the same in fairwq_let_go().
 * Broken NO_ACQUIRE (assertion): who pushes what was let go loads @constraint, then
 *	the word.
 * Broken ADMITTED_BLINDLY (assertion): the queue call stores that it is let go,
 *	whatever the word says by then.
 * Broken DROPPED_BLINDLY (assertion): who is about to push what he has let go takes
 *	it for cancelled while it waited: then he would have to tell its constraint, but
 *	the cancel has, and has stored NULL.
 * Broken NOT_OWN (assertion): what was let go by another CPU is cancelled all the
 *	same: that CPU pushes it when it may be freed.
 * Broken ON_TOP NOT_OWN (assertion): as above.
 * Broken BACK UNLOCKED (assertion): it is put back without the lock.
 * Broken STOPPED SPIN (invalid end state): the cancel waits for the queue call.
 */
#define CPUS	3		/* 0: queue; 1: the runner; 2: cancel, and queue */
#define LOCK	0		/* fairwq_constraint_lock(), of each of the two */
#define DATA	2		/* work->data */
#define CONSTRAINT 3		/* work->constraint */
#define PLACE	4		/* work->place */
#define STAMP	5		/* work->stamp: which queueing's batch, or 0 */
#define MARK	6		/* the entries' marks: of CPU 0, and CPU 2 */
#define VARS	8

#include "memory.pml"

#if defined(ON_TOP) || defined(TWO)
#define CALLERS	3
#else
#define CALLERS	2
#endif
#if defined(ON_TOP) || defined(TWO) || defined(AGAIN) || defined(STOPPED)
#define CALLS	1
#else
#ifdef THRICE
#define CALLS	3
#else
#define CALLS	2
#endif
#define TWO_CONSTRAINTS
#endif

/* @DATA: 1 to 6: kept back, with which entry, and through which lock; or */
#define ADMITTED 8
#define LINKED	16
#define CANCELED 32
#define kept(d)	((d) & 7)
#define word_back(c) (5 + lock_of(c))	/* entry 0: of no call */
#define has_entry(d) (kept(d) < 5)

/* @CONSTRAINT: 0, 1 or 2, and */
#define WAITS	2
#define named(k) ((k) > WAITS -> (k) - WAITS : (k))

/* @PLACE */
#define SORTED	1		/* it was pushed, and is not any more */
#define OWN	2		/* let go by its own queue call */

#ifdef SHARED
#define lock_of(c)	0
#else
#define lock_of(c)	((c) - 1)
#endif
#define entry_of(cpu)	((cpu) / 2)
#define entry_in(d)	((kept(d) - 1) / 2)
#define lock_in(d)	((kept(d) - 1) % 2)
#ifdef BY_ENTRY
#define word_of(cpu, c)	(1 + 2 * entry_of(cpu))
#else
#define word_of(cpu, c)	(1 + 2 * entry_of(cpu) + lock_of(c))
#endif
#ifdef MARK_WORK
#define mark_of(d)	1
#else
#define mark_of(d)	kept(d)
#endif

/* What to do next with constraint @k, or the work. */
#define DONE	0
#define COMPLETE 1
#define NEXT	2
#define PUSH	3

bool busy[2];			/* serializer->head: somebody has it, */
bool pushed[2];			/* and the work is pushed, */
bool list[2];			/* or something has been: HEAD_LIST */
bool sorted[2];			/* the work is in @waiting, or the limiter's list */
bool other[2];			/* an item that is in flight, not the work */

bool incoming, fifo;		/* the work is in its batch */
byte ended;			/* of which constraint, if it is in @fifo */
bool pool_locked;		/* for more than one step */
byte nr_canceled;		/* batch->nr_canceled */
byte held;			/* batch->nr_held */
#ifdef BACK
bool back;			/* it was put back, once */
#endif

bool called;			/* CPU 0 is in its queue call, */
bool masked;			/* with interrupts off, */
bool on_top;			/* or in an interrupt */

/* What the properties are about. */
byte accepted, runs, cancelled;
byte bound;			/* the batch of the last queueing */
byte way;			/* a constraint that it is on its way into */
bool freed;
byte returned;			/* calls */
byte cancels;			/* that have returned */
#ifdef BY_ENTRY
byte entry[2];			/* of which constraint an entry is */
#endif

/* To the work, on their way. */
#define is_work(v)	((v) >= DATA && (v) <= STAMP)
#define stores(c)	(is_work(sb[c].var[0]) || is_work(sb[c].var[1]) || is_work(sb[c].var[2]))

/* It may go when nobody has it and nobody is on his way to it. */
#define exists(c)	(busy[(c) - 1] || way == (c))

#define lock_irqsave(cpu, l) \
	d_step { mem[l] == 0 -> mem[l] = 1; masked = masked || cpu == 0 }

inline load(cpu, v, to) { d_step { assert(!freed); read_once(cpu, v, to) } }
inline store(cpu, v, x) { assert(!freed); write_once(cpu, v, x) }

#define was_cancelled	cancelled++; assert(runs + cancelled <= accepted)

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
			ended = mem[CONSTRAINT];
			fifo = true
		fi
	:: else
	fi
}

/* fairwq_serializer_sort_locked() */
inline sort_locked(cpu, c)
{
	assert(exists(c));
	if
	:: pushed[(c) - 1] ->
		d_step { RMW(cpu) -> pushed[(c) - 1] = false; list[(c) - 1] = true };
		load(cpu, DATA, w);
		load(cpu, PLACE, p);
		if
#ifndef NOT_ASIDE
		:: w & CANCELED
#endif
		:: else -> sorted[(c) - 1] = true
		fi;
		store(cpu, PLACE, p | SORTED);
		d_step { p = 0; w = 0 }
	:: !pushed[(c) - 1]
	fi
}

/* fairwq_let_go_constrained() */
inline let_go(cpu)
{
	load(cpu, STAMP, s);
	d_step { assert(s == bound); s = 0 }
	store(cpu, STAMP, 0);
	store(cpu, PLACE, 0);
	store(cpu, CONSTRAINT, 0);
#ifdef NO_RELEASE_LET_GO
	store(cpu, DATA, 0)
#else
	store_release(cpu, DATA, 0)
#endif
}

/* fairwq_admit_locked() */
inline admit_locked(cpu, c)
{
	load(cpu, DATA, d);
	load(cpu, STAMP, s);
	d_step { assert(kept(d) && s == bound); s = 0 }
	store(cpu, PLACE, 0);
	store(cpu, CONSTRAINT, c);
#ifdef NO_RELEASE_ADMIT
	store(cpu, DATA, ADMITTED);
#else
	store_release(cpu, DATA, ADMITTED);
#endif
	d = 0
}

/* Into a slot of CPU 1, at once: it has the lock of the pool, too. */
inline streak_locked(cpu, c)
{
	store(cpu, CONSTRAINT, 0);
	store(cpu, DATA, LINKED);
	d_step { ended = c; fifo = true; held-- }
}

#ifdef BACK
/* fairwq_keep_back_locked(); CPU 1 has the lock of the pool */
inline put_back(cpu, c)
{
#ifndef UNLOCKED
	lock(lock_of(c));
#endif
	store(cpu, STAMP, bound);
	store(cpu, PLACE, SORTED);
#ifdef NO_RELEASE_BACK
	store(cpu, CONSTRAINT, c + WAITS);
	store(cpu, DATA, word_back(c));
#else
	store_release(cpu, CONSTRAINT, c + WAITS);
	store_release(cpu, DATA, word_back(c));
#endif
	sorted[c - 1] = true
#ifndef UNLOCKED
	;unlock(cpu, lock_of(c))
#endif
}
#endif

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
			busy[k - 1] = pushed[k - 1] || list[k - 1];
			act = (busy[k - 1] -> NEXT : DONE)
		}
#endif
	:: act == NEXT ->
		/* fairwq_serializer_next(), fairwq_serializer_pop_locked() */
		d_step {
			mem[lock_of(k)] == 0 && (cpu != 1 || !pool_locked) -> mem[lock_of(k)] = 1;
			masked = masked || (cpu == 0 && !on_top)
		}
		do
		:: pushed[k - 1] -> sort_locked(cpu, k)
		:: d_step { !pushed[k - 1] && sorted[k - 1] -> sorted[k - 1] = false; act = PUSH };
			admit_locked(cpu, k);
			break
		:: d_step { cpu == 1 && !pushed[k - 1] && sorted[k - 1] ->
			    sorted[k - 1] = false; pool_locked = true; act = DONE };
			streak_locked(cpu, k);
			break
		:: d_step { RMW(cpu) && !pushed[k - 1] && !sorted[k - 1] ->
			    assert(exists(k)); busy[k - 1] = false; list[k - 1] = false;
			    act = DONE };
			break
		od;
		unlock(cpu, lock_of(k));
		if
		:: d_step { cpu == 1 && pool_locked && RMW(cpu) -> pool_locked = false }
		:: cpu != 1 || !pool_locked
		fi
	:: act == PUSH ->
		/* fairwq_admit_push() */
#ifdef NO_ACQUIRE
		load(cpu, CONSTRAINT, k);
		load(cpu, DATA, d);
#else
		load(cpu, DATA, d);
		load(cpu, CONSTRAINT, k);
#endif
		if
#ifdef DROPPED_BLINDLY
		:: d & CANCELED ->
#else
		:: (d & CANCELED) && k ->
#endif
			/* fairwq_drop_admitted() */
			assert(k && cpu != 1);
#ifndef MARK_KEPT
			write_once(cpu, MARK + entry_of(cpu), 0);
#endif
			let_go(cpu);
			d_step { held--; act = COMPLETE; d = 0 }
		:: else ->
			/* fairwq_push_claimed() */
			d_step { RMW(cpu) -> assert(!incoming && !fifo && !freed);
				 incoming = true };
			if
			:: d_step { nr_canceled && RMW(cpu) && !pool_locked -> link() }
			:: !nr_canceled
			fi;
			d_step { held--; act = DONE; d = 0 }
		fi
	:: d_step { act == DONE -> k = 0; masked = masked && (cpu != 0 || on_top) };
		break
	od
}

/* The last of a queue call that was kept back: what was cancelled meanwhile is dropped. */
inline look_back(cpu, c)
{
#ifndef LOOKED_EARLY
	read_once(cpu, MARK + entry_of(cpu), m);
#endif
	if
	:: m == mark_of(word_of(cpu, c)) ->
		lock_irqsave(cpu, lock_of(c));
#ifndef MARK_UNCHECKED
		read_once(cpu, MARK + entry_of(cpu), m);
#endif
		if
		:: m == mark_of(word_of(cpu, c)) ->
			load(cpu, DATA, d);
			d_step { assert(d == (word_of(cpu, c) | CANCELED)); d = 0 }
#ifndef LIMITER
			load(cpu, PLACE, p);
#ifndef SORTED_BLINDLY
			if
			:: !(p & SORTED) ->
#else
			if
			:: true ->
#endif
				p = 0;
				sort_locked(cpu, c)
			:: else -> p = 0
			fi;
#endif
			let_go(cpu);
			write_once(cpu, MARK + entry_of(cpu), 0);
			held--
		:: else
		fi;
		unlock(cpu, lock_of(c));
		masked = masked && cpu != 0
	:: else
	fi;
	m = 0
}

/* fairwq_queue_constrained(), to batch @b; by CPU 0 or 2 */
inline queue(cpu, c, b)
{
	called = called || cpu == 0;
#ifdef BY_ENTRY
	entry[entry_of(cpu)] = c;
#endif
	assert(!freed);
	if
	:: d_step { RMW(cpu) && mem[DATA] == 0 ->
		    mem[DATA] = word_of(cpu, c);
		    accepted++; bound = b; way = c } ->
		/* fairwq_enter() */
		store(cpu, PLACE, 0);
		store(cpu, STAMP, b);
		d_step { RMW(cpu) -> held++ }
		store(cpu, CONSTRAINT, c);
#ifdef LOOKED_EARLY
		read_once(cpu, MARK + entry_of(cpu), m);
#endif
#ifdef LIMITER
		lock_irqsave(cpu, lock_of(c));
		if
		:: d_step { !busy[c - 1] -> busy[c - 1] = true; way = 0; act = PUSH }
		:: busy[c - 1] ->
			store(cpu, CONSTRAINT, c + WAITS);
			load(cpu, DATA, d);
			d_step {
#ifdef NOT_ASIDE
				sorted[c - 1] = true;
#else
				sorted[c - 1] = !(d & CANCELED);
#endif
				way = 0; d = 0
			}
		fi;
		unlock(cpu, lock_of(c));
		masked = masked && cpu != 0;
#else
		/* fairwq_serializer_take(), else fairwq_serializer_push() */
		if
		:: d_step { RMW(cpu) && !busy[c - 1] -> busy[c - 1] = true; way = 0; act = PUSH }
		:: busy[c - 1] ->
			store(cpu, CONSTRAINT, c + WAITS);
			d_step {
				RMW(cpu) -> act = (busy[c - 1] -> DONE : NEXT);
				busy[c - 1] = true;
				pushed[c - 1] = true;
				way = 0
			}
		fi;
#endif
		k = c;
		if
		:: act == PUSH ->
			store(cpu, PLACE, OWN);
			/* atomic_long_try_cmpxchg() */
#ifdef ADMITTED_BLINDLY
			d_step { RMW(cpu) -> assert(!freed); mem[DATA] = ADMITTED }
#else
			d_step { RMW(cpu) -> assert(!freed);
				 mem[DATA] = ADMITTED | (mem[DATA] & CANCELED) }
#endif
			settle(cpu)
		:: else ->
			settle(cpu);
			look_back(cpu, c)
		fi
	:: mem[DATA] != 0	/* 0, or -EBUSY */
	fi;
	called = called && cpu != 0
}

/* If it waits, in a constraint with lock @l, it is taken out: @taken. */
inline take_out_locked(cpu)
{
	load(cpu, CONSTRAINT, k);
	if
#ifdef BY_ENTRY
	:: k == n + WAITS ->
#else
	:: k > WAITS && lock_of(k - WAITS) == l ->
		n = k - WAITS;
#endif
#ifdef LIMITER
		p = SORTED;
#else
		sort_locked(cpu, n);
		load(cpu, PLACE, p);
#endif
		if
		:: p & SORTED ->
			d_step { assert(exists(n) && sorted[n - 1]); sorted[n - 1] = false;
				 taken = true; was_cancelled }
		:: else
		fi;
		p = 0
	:: else
	fi
}

/* Its queue call is to drop it: @left. @refused: somebody has marked the entry. */
inline leave_word_locked(cpu)
{
#ifdef MARK_LATE
	if
	:: d_step { RMW(cpu) && mem[DATA] == d ->
		    mem[DATA] = d | CANCELED; left = true; was_cancelled };
		d_step { RMW(cpu) && !mem[MARK + entry_in(d)] ->
			 mem[MARK + entry_in(d)] = mark_of(d) }
	:: mem[DATA] != d
	fi
#else
	/* cmpxchg() */
	if
	:: d_step { RMW(cpu) && !mem[MARK + entry_in(d)] -> mem[MARK + entry_in(d)] = mark_of(d) };
#ifndef LOOKED_ONCE
		take_out_locked(cpu);
#endif
		if
		:: d_step { !taken && RMW(cpu) && mem[DATA] == d ->
			    assert(!freed); mem[DATA] = d | CANCELED; left = true; was_cancelled }
		:: d_step { RMW(cpu) && (taken || mem[DATA] != d) ->
			    assert(!freed);
			    mem[MARK + entry_in(d)] =
			    (mem[MARK + entry_in(d)] == mark_of(d) -> 0 : mem[MARK + entry_in(d)]) }
		fi
	:: mem[MARK + entry_in(d)] -> refused = true
	fi
#endif
}

/* fairwq_cancel_constrained(): @taken, or @left */
inline cancel_constrained(cpu)
{
#ifdef BY_ENTRY
	load(cpu, CONSTRAINT, k);
	n = (k -> named(k) : entry[entry_in(d)]);
	l = lock_of(n);
#else
	l = lock_in(d);
#endif
	lock(l);
	load(cpu, DATA, w);
	if
	:: w == d ->
		w = 0;
		take_out_locked(cpu);
#ifdef NO_LOCK
		unlock(cpu, l);
#endif
		if
#ifdef SPIN
		:: !taken -> refused = true
#elif defined(BY_ENTRY)
		:: !taken && entry[entry_in(d)] == n -> leave_word_locked(cpu)
		:: !taken && entry[entry_in(d)] != n
#else
		:: !taken && has_entry(d) -> leave_word_locked(cpu)
#endif
		:: else
		fi;
		if
		:: taken -> let_go(cpu); held--
		:: else
		fi
#ifdef NO_LOCK
		;lock(l)
#endif
	:: else -> w = 0
	fi;
	unlock(cpu, l);
	d_step { n = 0; l = 0; k = 0 }
}

/* fairwq_work_cancel(): @yes */
inline cancel(cpu)
{
	do
	:: true ->
		load(cpu, DATA, d);
		if
		:: !d || (d & CANCELED) -> break
		:: kept(d) && !(d & CANCELED) ->
			cancel_constrained(cpu);
			if
			:: taken || left -> d_step { taken = false; left = false; yes = true } break
			:: !taken && !left && refused ->
				/* Another cancel is about to take its mark away. */
				d_step {
#ifdef SPIN
					RMW(cpu) && (mem[DATA] != d || pushed[0] || sorted[0]);
#else
					RMW(cpu) && (mem[DATA] != d || !mem[MARK + entry_in(d)]);
#endif
					refused = false
				}
			:: else
			fi
		:: (d & (ADMITTED | LINKED)) && !(d & CANCELED) ->
			/* fairwq_cancel_queued_locked(), under the lock of the pool */
			d_step {
				RMW(cpu) && !pool_locked;
				assert(!freed);
				link();
				d = mem[DATA];
				if
				:: (d & LINKED) && fifo ->
					fifo = false;
					k = ended;
					taken = true;
					was_cancelled
				/* fairwq_cancel_admitted_locked() */
#ifdef NOT_OWN
				:: d == ADMITTED ->
#else
				:: d == ADMITTED && (mem[PLACE] & OWN) ->
#endif
					k = mem[CONSTRAINT];
					assert(k && k <= WAITS);
					mem[CONSTRAINT] = 0;
					mem[DATA] = ADMITTED | CANCELED;
					nr_canceled++;
					left = true;
					was_cancelled
				:: else
				fi
			}
			if
			:: taken ->
				/* fairwq_let_go() */
				store(cpu, CONSTRAINT, 0);
#ifdef NO_RELEASE_QUEUED
				store(cpu, DATA, 0);
#else
				store_release(cpu, DATA, 0);
#endif
				d_step { taken = false; yes = true; act = COMPLETE } break
			:: left -> d_step { left = false; yes = true; act = COMPLETE } break
			:: !taken && !left && (d & LINKED) -> break	/* about to start */
			:: !taken && !left && d == ADMITTED ->
				/* Another CPU is about to push it, with interrupts off. */
				d_step { RMW(cpu) && (mem[DATA] != d || incoming) }
			:: !taken && !left && !(d & (ADMITTED | LINKED))	/* not any more */
			:: !taken && !left && d == (ADMITTED | CANCELED) -> break
			fi
		fi
	od;
	settle(cpu);
	d = 0
}

/* What was stored before is seen by who is told. */
inline has_returned(cpu)
{
	d_step { sb[cpu].n == 0 -> returned++ }
}

proctype task(byte cpu) provided (!on_top)
{
	byte d, k, m, p, s, w, act;

	queue(cpu, 1, 1);
#if CALLS > 1
	queue(cpu, 2, 2);
#endif
#if CALLS > 2
	queue(cpu, 1, 3);
#endif
	has_returned(cpu)
}

#define CANCEL_LOCALS	byte d, k, l, m, n, p, s, w, act; \
			bool taken, left, refused, yes

/* The cancel is by an interrupt on top of CPU 0's call. */
proctype interrupt(byte cpu)
{
	CANCEL_LOCALS;

	if
	:: d_step { called && !masked -> on_top = true };
		cancel(cpu);
		on_top = false
	:: returned > 0
	fi;
	has_returned(cpu)
}

/* CPU 0's call stops until the cancel has returned. */
proctype stop()
{
	if
	:: d_step { called && !masked -> on_top = true };
		cancels > 0;
		on_top = false
	:: cancels > 0
	fi
}

proctype canceller(byte cpu)
{
	CANCEL_LOCALS;
#ifdef AGAIN
	byte through;
#endif

	cancel(cpu);
#ifdef AGAIN
	if
	:: through = 1
	:: through = 2
	fi;
	if
	:: yes -> queue(cpu, through, 2)
	:: else
	fi;
#endif
	cancels++;
	has_returned(cpu)
}

proctype requeue(byte cpu)
{
	byte d, k, m, p, s, w, act;

	queue(cpu, 1, 2);
	has_returned(cpu)
}

proctype runner(byte cpu)
{
	byte d, k, p, s, w, act;

end:	do
	:: d_step { RMW(cpu) && incoming -> link() }
#ifdef BACK
	:: d_step { RMW(cpu) && fifo && !back -> back = true; fifo = false; k = ended;
		    held++; pool_locked = true };
		/* fairwq_streak_give_back_locked() */
		put_back(cpu, k);
		d_step { RMW(cpu) -> pool_locked = false; act = NEXT }
		settle(cpu)
#endif
	:: d_step { RMW(cpu) && fifo -> fifo = false; k = ended };
		/* fairwq_start_turn() */
		store(cpu, CONSTRAINT, 0);
		d_step { RMW(cpu) -> assert(!freed && k); mem[DATA] = 0; runs++;
			 assert(runs + cancelled <= accepted); act = COMPLETE;
#ifdef AGAIN
			 /* The function frees it. */
			 freed = (bound == 2);
			 assert(!freed || (!stores(0) && !stores(2)))
#endif
		}
		settle(cpu)
	:: other[0] -> d_step { other[0] = false; k = 1; act = COMPLETE }
		settle(cpu)
	:: other[1] -> d_step { other[1] = false; k = 2; act = COMPLETE }
		settle(cpu)
	od
}

proctype waiter()
{
	/* When all have returned, and it will not run any more, it may be freed. */
	d_step {
		returned == CALLERS && runs + cancelled == accepted ->
		freed = true;
		assert(!stores(0) && !stores(1) && !stores(2))
	}
	!busy[0] && !busy[1] && sb[0].n + sb[1].n + sb[2].n == 0 && !mem[DATA] && !held &&
	!nr_canceled && !incoming && !fifo && !mem[MARK] && !mem[MARK + 1]
}

init {
	atomic {
		other[0] = true;
		busy[0] = true;
#ifdef TWO_CONSTRAINTS
		other[1] = true;
		busy[1] = true;
#endif
		run memory();
		run runner(1);
		run task(0);
#if defined(ON_TOP)
		run interrupt(0);
		run requeue(2);
#elif defined(TWO)
		run interrupt(0);
		run canceller(2);
#else
		run canceller(2);
#endif
#ifdef STOPPED
		run stop();
#endif
		run waiter()
	}
}
