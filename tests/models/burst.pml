/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bursts: a runner goes on with the items of one serializer, without the
 * pool's lock. That is core/burst.c, and fairwq_end_current(), fairwq_start_item()
 * and fairwq_turn_begin_locked() in core/turn.h. It runs against
 *	a flush of one work, await_running() in work.c;
 *	a cancel of a work that waits, in core/waitlist.c;
 *	a flush or a pause of a batch, fairwq_runner_yield_locked().
 *
 * Item 0 runs. Items 1 and 2 wait in the serializer, and item 2 may be bound for
 * another batch. A task flushes item 0 or item 1. The runner either goes on with an
 * item or pushes it to its batch, and later takes it from there as a turn.
 *
 * Holds:
 *	each item runs once, in order, or is cancelled;
 *	each run sees what the items before it have stored;
 *	the caller of a flush sees what the flushed item has stored;
 *	the flush returns, although every later item waits until it has returned.
 *
 * Case CANCEL: meanwhile item 1 or 2 is cancelled where it waits.
 * Case FLUSH: instead of a work, the batch of item 0 is flushed. The flush must
 *	return, although every item that is taken after it has asked the bursts to
 *	end waits for that return.
 * Case PAUSE: instead, that batch is paused and resumed. No item of it may be
 *	taken in between.
 *
 * Broken BURST_KEPT (invalid end state): the runner does not look at @yield.
 * Broken FLUSH BURST_KEPT (invalid end state): the same, against the flush of the batch.
 * Broken CURRENT_KEPT (invalid end state): the runner does not clear @current_work
 *	before it looks at @yield.
 * Broken NO_MB_END (invalid end state): no smp_mb__after_spinlock() between the two.
 * Broken NO_RELEASE_END (assertion): the runner stores @current_work by WRITE_ONCE().
 * Broken NO_MB_AWAIT (invalid end state): no smp_mb() in await_running().
 * Broken NOT_YIELDED (invalid end state): await_running() does not set @yield.
 * Broken AWAITED_BLINDLY (invalid end state): await_running() does not look at
 *	@current_work again after that.
 * Broken AWAITED_UNLOCKED (invalid end state): it does so without the pool's lock.
 * Broken CLEARED_LATE (invalid end state): fairwq_turn_begin_locked() clears
 *	@yield after the lock was dropped.
 * Broken CANCEL OTHER_UNSEEN (assertion): burst_switch_batch() starts the
 *	item that was the first one before the lock was dropped.
 * Broken PAUSE PAUSE_UNSEEN (assertion): burst_goes_on_locked() does not look
 *	at @paused, nor does the pause ask the bursts to end.
 */
#define CPUS	3		/* 0: the runner; 1: a flush, or a pause; 2: a cancel */
#define LOCK	0		/* pool->lock */
#define KEPT_LOCK 1		/* fairwq_serializer_lock() */
#define CURRENT	2		/* runner->current_work: 1 + the item */
#define YIELD	3		/* runner->yield */
#define WORD(i)	(4 + (i))	/* work->data: pending */
#define DATA	7		/* that the items read and write */
#define PAUSED	8		/* batch->paused, of the batch of item 0 */
#define ASKED	9		/* bursts were asked to end; not in the code */
#define VARS	10

#include "memory.pml"

#define ITEMS	3
#define NONE	9

/* Under the serializer's lock. */
chan waiting = [ITEMS] of { byte };	/* serializer->waiting, in order */

/* Under the pool's lock. */
byte pushed = NONE;			/* the item that was pushed to its batch */
bool in_turn = true;			/* turn->batch is set */
byte number = 1;			/* turn->number */
bool other;				/* the turn is of the other batch */
byte awaited;				/* waiter->turn, in pool->waiters */
bool told;				/* waiter->done */
bool barrier;				/* batch->flush, of the batch of item 0 */

/* For the properties. */
byte runs;
bool inside;
bool over[ITEMS];			/* begun, or cancelled */
bool ended[ITEMS];
bool cancelled;
bool another;				/* item 2 is bound for another batch */
bool gone;				/* the serializer has no items left */
bool returned;				/* the flush has */
bool late, resumed;			/* @ASKED and @returned when an item was taken */
#if !defined(FLUSH) && !defined(PAUSE)
byte flushed = NONE;			/* the item that is flushed */
#endif

#define of_other(i)	((i) == 2 && another)

/* Note whether @work is taken before the flush or pause has asked, or after that. */
inline note_taken()
{
	d_step { late = mem[ASKED]; resumed = returned }
}

/* fairwq_start_item() */
inline start_item(cpu)
{
	d_step {
		assert(!over[work]);
		over[work] = true;
#ifdef PAUSE
		assert(of_other(work) || !late || resumed)
#endif
	}
	store_release(cpu, CURRENT, work + 1);
	d_step { RMW(cpu) -> mem[WORD(work)] = 0 }
}

/* fairwq_turn_end_locked() */
inline turn_end_locked()
{
	d_step {
		assert(in_turn);
		told = told || (awaited == number) || (barrier && !other);
		barrier = barrier && other;
		in_turn = false
	}
}

/* A new turn: turn_fill_locked(), fairwq_turn_begin_locked() */
inline turn_begin_locked(cpu)
{
	d_step { assert(!in_turn); in_turn = true; number++; other = of_other(work) }
#ifndef CLEARED_LATE
	write_once(cpu, YIELD, 0)
#endif
}

/* The function. An item that a flush awaits must not wait for items behind it. */
inline call(cpu)
{
	d_step { assert(!inside && (work < 1 || over[0]) && (work < 2 || over[1])); inside = true }
#if defined(FLUSH)
	!late || returned;
#elif !defined(PAUSE)
	work <= flushed || returned;
#endif
	read_once(cpu, DATA, data);
	assert(data == runs);
	write_once(cpu, DATA, data + 1);
	d_step { inside = false; runs++; ended[work] = true; data = 0; work = NONE }
}

/* The store of fairwq_end_current(), and of fairwq_burst_next() */
inline end_current(cpu)
{
#ifdef NO_RELEASE_END
	write_once(cpu, CURRENT, 0);
#else
	store_release(cpu, CURRENT, 0)
#endif
}

/* burst_goes_on_locked() of @work: sets @goes, by chance if it may go on */
inline goes_on_locked(cpu)
{
	goes = true;
	note_taken();
#ifndef BURST_KEPT
	read_once(cpu, YIELD, yield);
	goes = goes && !yield;
	yield = 0;
#endif
#ifndef PAUSE_UNSEEN
	read_once(cpu, PAUSED, yield);
	goes = goes && (!yield || of_other(work));
	yield = 0;
#endif
	if
	:: goes
	:: true -> goes = false
	fi
}

/* fairwq_waitlist_next_locked(): @first may go on, or the serializer is left */
inline next_locked()
{
	if
	:: nempty(waiting) -> waiting?first
	:: empty(waiting) -> gone = true
	fi
}

/* fairwq_waitlist_push(): pushed to its batch */
inline go(cpu)
{
	if
	:: first != NONE ->
		spin_lock(cpu);
		pushed = first;
		first = NONE;
		spin_unlock(cpu)
	:: else
	fi
}

/* burst_other(): @work, started, or NONE; then @first may go on */
inline burst_other(cpu)
{
	spin_lock(cpu);
	lock(KEPT_LOCK);
#ifdef OTHER_UNSEEN
	work = 2;
#else
	if
	:: nempty(waiting) -> waiting?<work>
	:: empty(waiting)
	fi;
#endif
	if
	:: work != NONE -> goes_on_locked(cpu)
	:: else
	fi;
	if
	:: goes ->
		goes = false;
		turn_end_locked();
		turn_begin_locked(cpu);
		d_step {
			if
			:: waiting??[eval(work)] -> waiting??eval(work)
			:: else
			fi
		}
		start_item(cpu)
	:: else ->
		work = NONE;
		next_locked()
	fi;
	unlock(cpu, KEPT_LOCK);
	spin_unlock(cpu);
#ifdef CLEARED_LATE
	if
	:: work != NONE -> write_once(cpu, YIELD, 0)
	:: else
	fi
#endif
}

/* fairwq_burst_next(): @work, started, or NONE */
inline burst_next(cpu)
{
#ifndef CURRENT_KEPT
	end_current(cpu);
#endif
	lock(KEPT_LOCK);
#ifndef NO_MB_END
	smp_mb(cpu);			/* smp_mb__after_spinlock() */
#endif
	/* fairwq_waitlist_first_locked() */
	if
	:: nempty(waiting) -> waiting?<work>
	:: empty(waiting)
	fi;
	if
	:: work != NONE && of_other(work) == other -> goes_on_locked(cpu)
	:: else
	fi;
	if
	:: goes ->
		goes = false;
		waiting?eval(work);
		start_item(cpu);
		unlock(cpu, KEPT_LOCK)
	:: !goes && work != NONE && of_other(work) != other ->
		work = NONE;
		unlock(cpu, KEPT_LOCK);
		burst_other(cpu)
	:: else ->
		work = NONE;
		next_locked();
		unlock(cpu, KEPT_LOCK)
	fi;
	go(cpu)
}

/* runner_next_locked(), then the lock is dropped; @work, started, or NONE */
inline runner_next(cpu)
{
	read_once(cpu, PAUSED, yield);
	if
	:: pushed != NONE && (!yield || of_other(pushed)) ->
		work = pushed;
		pushed = NONE;
		note_taken();
		turn_begin_locked(cpu);
		start_item(cpu)
	:: else
	fi;
	yield = 0;
	spin_unlock(cpu);
	if
	:: work == NONE -> end_current(cpu); smp_mb(cpu)
	:: else ->
#ifdef CLEARED_LATE
		write_once(cpu, YIELD, 0)
#endif
	fi
}

/* fairwq_run() */
proctype runner(byte cpu; byte work)
{
	byte data, yield, first = NONE;
	bool goes;

	do
	:: work != NONE ->
		/* run_turn() */
		do
		:: work != NONE -> call(cpu); burst_next(cpu)
		:: else -> break
		od;
		skip;			/* as spin_lock() is a d_step */
		spin_lock(cpu);
		turn_end_locked();
		runner_next(cpu)
	:: work == NONE && pushed != NONE && (!mem[PAUSED] || of_other(pushed)) ->
		/* The runner was idle, and kicked. */
		spin_lock(cpu);
		runner_next(cpu)
	:: work == NONE && gone && pushed == NONE -> break
	od
}

#if defined(FLUSH)
/* fairwq_batch_wait(), batch_fire_barriers_locked() */
proctype other_task(byte cpu)
{
	spin_lock(cpu);
	d_step { barrier = in_turn && !other; told = !barrier }
	if
	:: barrier -> write_once(cpu, YIELD, 1)
	:: else
	fi;
	spin_unlock(cpu);
	store_release(cpu, ASKED, 1);
	told;			/* wait_for_completion() */
	assert(ended[0]);
	returned = true
}
#elif defined(PAUSE)
/* batch_set_paused(), twice */
proctype other_task(byte cpu)
{
	spin_lock(cpu);
	write_once(cpu, PAUSED, 1);
#ifndef PAUSE_UNSEEN
	if
	:: in_turn && !other -> write_once(cpu, YIELD, 1)
	:: else
	fi;
#endif
	spin_unlock(cpu);
	store_release(cpu, ASKED, 1);
	spin_lock(cpu);
	returned = true;
	write_once(cpu, PAUSED, 0);
	spin_unlock(cpu)
}
#else
/* fairwq_work_flush(): await(), await_running() */
proctype other_task(byte cpu)
{
	byte current, data, before;

	/* Only when the serializer does not hold it back. */
	read_once(cpu, WORD(flushed), data);
	do
	:: data -> mem[WORD(flushed)] == 0; read_once(cpu, WORD(flushed), data)
	:: else -> break
	od;
	read_once(cpu, CURRENT, current);
	if
	:: current == flushed + 1 ->
#ifndef AWAITED_UNLOCKED
		spin_lock(cpu);
#endif
		if
		:: in_turn ->
			before = number;
#ifndef NOT_YIELDED
			write_once(cpu, YIELD, 1);
#endif
#ifndef NO_MB_AWAIT
			smp_mb(cpu);
#endif
#ifndef AWAITED_BLINDLY
			read_once(cpu, CURRENT, current);
#endif
			/* fairwq_waiter_add_locked() */
			if
			:: current == flushed + 1 -> awaited = before
			:: else
			fi
		:: else
		fi;
#ifndef AWAITED_UNLOCKED
		spin_unlock(cpu);
#endif
		if
		:: awaited -> told	/* wait_for_completion() */
		:: else
		fi
	:: else
	fi;
	read_once(cpu, DATA, data);
	assert(over[flushed] && (ended[flushed] || cancelled));
	assert(cancelled || data > flushed);
	returned = true
}
#endif

/* fairwq_waitlist_cancel(), of item 1 or 2, where it waits */
proctype cancel(byte cpu)
{
	byte which;

	if
	:: which = 1
	:: which = 2
	fi;
	lock(KEPT_LOCK);
	if
	:: waiting??[eval(which)] ->
		d_step { waiting??eval(which); over[which] = true; cancelled = true }
		store_release(cpu, WORD(which), 0)
	:: else
	fi;
	unlock(cpu, KEPT_LOCK)
}

proctype waiter()
{
	gone && over[0] && over[1] && over[2] && returned && !in_turn;
	assert(runs == ITEMS - cancelled)
}

init {
	atomic {
		mem[CURRENT] = 1;
		mem[WORD(1)] = 1;
		mem[WORD(2)] = 1;
		over[0] = true;
		waiting!1;
		waiting!2;
		if
		:: another = true
		:: another = false
		fi;
#if !defined(FLUSH) && !defined(PAUSE)
		if
		:: flushed = 0
		:: flushed = 1
		fi;
#endif
		run memory();
		run runner(0, 0);
		run other_task(1);
#ifdef CANCEL
		run cancel(2);
#endif
		run waiter()
	}
}
