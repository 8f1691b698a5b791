/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bursts: a runner goes on with the items of one serializer, without the pool's
 * lock. fairwq_waitlist_end_item() in core/waitlist.c, fairwq_burst_goes_on() in
 * core/burst.c, fairwq_start_item() in core/turn.h, take_turn_locked() in
 * core/run.c, against a flush of one work, await_running() in work.c.
 *
 * Item 0 runs. Items 1 and 2 wait in the serializer. A task flushes item 0 or
 * item 1. The runner goes on with the next item, or pushes it to its batch, and
 * takes it from there. enter.pml has cancels of what waits.
 *
 * Holds:
 *	each item runs once, in order, and sees what those before it stored;
 *	the caller of a flush sees what the flushed item has stored;
 *	the flush returns, although every later item waits for that.
 *
 * Case FLUSH: the batch is flushed: fairwq_runner_yield_locked(). Every item
 *	that is taken after that waits for the flush. A pause asks the same way.
 *
 * Broken BURST_KEPT (invalid end state): the runner does not look at @yield.
 * Broken FLUSH BURST_KEPT (invalid end state): the same.
 * Broken NO_MB_END (invalid end state): no smp_mb__after_spinlock() between the
 *	end of @current_work and the look at @yield.
 * Broken NO_RELEASE_END (assertion): @current_work is set by WRITE_ONCE().
 * Broken NO_MB_AWAIT (invalid end state): no smp_mb() in await_running().
 * Broken AWAITED_UNLOCKED (invalid end state): await_running() looks at
 *	@current_work again without the pool's lock.
 * Broken CLEARED_LATE (invalid end state): take_turn_locked() clears
 *	@yield after the lock was dropped.
 */
#define CURRENT	1		/* runner->current_work: 1 + the item */
#define YIELD	2		/* runner->yield */
#define WORD(i)	(3 + (i))	/* work->data: pending */
#define DATA	6		/* that the items read and write */
#define ASKED	7		/* the flush has asked; not in the code */
#define VARS	8

#include "memory.pml"

#define ITEMS	3
#define NONE	9

byte first = 1;				/* that waits; ITEMS: none does */

/* Under the pool's lock. */
byte pushed = NONE;			/* the item that is in the batch */
bool in_turn = true;			/* turn->batch is set */
byte number = 1;			/* turn->number */
byte awaited;				/* waiter->turn, in pool->waits.works */
bool told;				/* waiter->done */
bool barrier;				/* batch->flush */

/* For the properties. */
byte runs;
byte flushed;				/* the item that is flushed */
bool inside;
bool returned;				/* the flush has */
bool late;				/* @ASKED when the item was taken */

#ifdef FLUSH
#define waits_for_flush	late
#else
#define waits_for_flush	(work > flushed)
#endif

/* fairwq_start_item() */
inline start_item(cpu)
{
	assert(work == runs);
	store_release(cpu, CURRENT, work + 1);
	xchg(cpu, WORD(work), 0)
}

/* The function */
inline call(cpu)
{
	d_step { assert(!inside); inside = true }
	!waits_for_flush || returned;
	read_once(cpu, DATA, data);
	assert(data == runs);
	write_once(cpu, DATA, data + 1);
	d_step { inside = false; runs++; data = 0; work = NONE }
}

/* fairwq_burst_goes_on(): sets @goes, by chance if it may go on */
inline goes_on_locked(cpu)
{
	d_step { goes = (first < ITEMS); late = mem[ASKED] }
#ifndef BURST_KEPT
	read_once(cpu, YIELD, yield);
	goes = goes && !yield;
	yield = 0;
#endif
	if
	:: goes
	:: true -> goes = false
	fi
}

/* fairwq_waitlist_end_item(). Nothing else takes the serializer's lock here. */
inline burst_next(cpu)
{
#ifdef NO_RELEASE_END
	write_once(cpu, CURRENT, 0);
#else
	store_release(cpu, CURRENT, 0);
#endif
#ifndef NO_MB_END
	smp_mb(cpu);			/* smp_mb__after_spinlock() */
#endif
	goes_on_locked(cpu);
	if
	:: goes ->
		d_step { goes = false; work = first; first++ }
		start_item(cpu)
	:: !goes && first < ITEMS ->
		/* next_locked(), and in fairwq_run() fairwq_fifo_update_locked() */
		spin_lock(cpu);
		d_step { pushed = first; first++ }
		spin_unlock(cpu)
	:: else
	fi
}

/* fairwq_fifo_turn_end_locked(), runner_next_locked(); then the lock is dropped. */
inline runner_next(cpu)
{
	spin_lock(cpu);
	d_step {
		assert(in_turn);
		told = told || (awaited == number) || barrier;
		barrier = false;
		in_turn = (pushed != NONE);
		work = pushed;
		pushed = NONE;
		late = mem[ASKED]
	}
	if
	:: in_turn ->
		/* take_turn_locked() */
		number++;
#ifndef CLEARED_LATE
		write_once(cpu, YIELD, 0);
#endif
		start_item(cpu)
	:: else
	fi;
	spin_unlock(cpu)
#ifdef CLEARED_LATE
	;
	write_once(cpu, YIELD, 0)
#endif
}

/* fairwq_run() */
proctype runner(byte cpu; byte work)
{
	byte data, yield;
	bool goes;

	do
	:: work != NONE ->
		/* run_turn() */
		do
		:: work != NONE -> call(cpu); burst_next(cpu)
		:: else -> break
		od;
		skip;			/* as spin_lock() is a d_step */
		runner_next(cpu)
	:: else -> break
	od
}

#ifdef FLUSH
/* fairwq_batch_wait(), batch_fire_barriers_locked() */
proctype flush(byte cpu)
{
	spin_lock(cpu);
	d_step { barrier = in_turn; told = !barrier }
	if
	:: barrier -> write_once(cpu, YIELD, 1)
	:: else
	fi;
	spin_unlock(cpu);
	store_release(cpu, ASKED, 1);
	told;			/* wait_for_completion() */
	assert(runs > 0);
	returned = true
}
#else
/* fairwq_work_flush(): await(), await_running() */
proctype flush(byte cpu)
{
	byte current, data;

	/* Only when the serializer does not hold it back. */
	mem[WORD(flushed)] == 0;
	read_once(cpu, CURRENT, current);
	if
	:: current == flushed + 1 ->
#ifndef AWAITED_UNLOCKED
		spin_lock(cpu);
#endif
		if
		:: in_turn ->
			data = number;
			write_once(cpu, YIELD, 1);
#ifndef NO_MB_AWAIT
			smp_mb(cpu);
#endif
			read_once(cpu, CURRENT, current);
			/* fairwq_waiter_add_locked() */
			if
			:: current == flushed + 1 -> awaited = data
			:: else
			fi
		:: else
		fi;
#ifndef AWAITED_UNLOCKED
		spin_unlock(cpu);
#endif
		!awaited || told	/* wait_for_completion() */
	:: else
	fi;
	read_once(cpu, DATA, data);
	assert(data > flushed);
	returned = true
}
#endif

proctype waiter()
{
	returned && !in_turn && runs == ITEMS
}

init {
	atomic {
		mem[CURRENT] = 1;
		mem[WORD(1)] = 1;
		mem[WORD(2)] = 1;
#ifndef FLUSH
		if
		:: flushed = 0
		:: flushed = 1
		fi;
#endif
		run memory();
		run runner(0, 0);
		run flush(1);
		run waiter()
	}
}
