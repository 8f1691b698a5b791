/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a runner has taken along of a serializer, streak.c: the runner takes it
 * out of the slots without the lock, in fairwq_streak_next(); others take it out
 * under the lock, to cancel it or to put it back, in fairwq_unplan_locked() and
 * fairwq_streak_give_back_locked().
 *
 * A runner has a serializer, two items of it in slots, and one that waits. At
 * any moment what is in slots is put back, and the second item cancelled. When
 * nothing is left in the slots the runner takes more along, or lets the next one
 * go to another runner, or leaves the serializer, which then is gone.
 *
 * Holds: items start in order, one at a time, and see what those before have
 * stored; each runs once, or is cancelled; nobody is at the serializer when it
 * is gone.
 *
 * Broken ENDED_UNLOCKED (invalid end state): the runner ends the streak without
 *	the lock.
 * Broken NO_XCHG (assertion): it looks into a slot, and then empties it.
 * Broken BACKWARDS (assertion): what is put back is put behind what waits.
 * Broken NOT_ALL (assertion): of what is in the slots, only the first is put back.
 */
#define CPUS	3		/* 0: the runner; 1: others; 2: another runner */
#define LOCK	0		/* pool->lock */
#define DATA	1		/* what the items work on */
#define VARS	2

#include "memory.pml"

#define ITEMS	3
#define SLOTS	2
#define NONE	9

byte slot[SLOTS];
byte nr = SLOTS;			/* streak->nr */
chan waiting = [ITEMS] of { byte };	/* serializer->waiting, in order */
chan pushed = [1] of { byte };		/* to the other runner */

bool inside;				/* an item's function */
byte runs;
bool over[ITEMS];			/* begun, or cancelled */
bool cancelled;
bool gone;				/* the serializer */

inline run_item(cpu)
{
	d_step {
		assert(!inside && !over[work]);
		assert(work < 1 || over[0]);
		assert(work < 2 || over[1]);
		inside = true;
		over[work] = true
	}
	read_once(cpu, DATA, data);
	assert(data == runs);
	write_once(cpu, DATA, data + 1);
	d_step { inside = false; runs++; data = 0; work = NONE }
}

/* fairwq_streak_next() */
inline next(cpu)
{
#ifdef NO_XCHG
	work = slot[at];
	d_step { slot[at] = NONE; at++ }
#else
	d_step { RMW(cpu) -> work = slot[at]; slot[at] = NONE; at++ }
#endif
}

/* fairwq_streak_refill(): what was in the slots is through, or was taken out */
inline refill(cpu)
{
#ifndef ENDED_UNLOCKED
	spin_lock(cpu);
#endif
	if
	:: len(waiting) > 0 ->
		d_step {
			waiting?slot[0];
			nr = 1;
			at = 0;
			if
			:: len(waiting) > 0 -> waiting?slot[1]; nr = 2
			:: else
			fi
		}
	:: len(waiting) > 0 -> waiting?work; pushed!work; work = NONE; ended = true
	:: len(waiting) == 0 -> gone = true; ended = true
	fi;
#ifndef ENDED_UNLOCKED
	spin_unlock(cpu)
#endif
}

proctype runner(byte cpu)
{
	byte work = NONE, at, data;
	bool ended;

	do
	:: ended -> break
	:: !ended && at < nr ->
		next(cpu);
		if
		:: work != NONE -> run_item(cpu)
		:: else
		fi
	:: !ended && at >= nr -> refill(cpu)
	od
}

/* It has the serializer with the item, and lets the next one go to itself. */
proctype other(byte cpu)
{
	byte work = NONE, data;

end:	len(pushed) > 0;
	spin_lock(cpu);
	pushed?work;
	spin_unlock(cpu);
	do
	:: work != NONE -> run_item(cpu)
	:: work == NONE ->
		spin_lock(cpu);
		if
		:: len(waiting) > 0 -> waiting?work
		:: len(waiting) == 0 -> gone = true
		fi;
		spin_unlock(cpu);
		if
		:: gone -> break
		:: else
		fi
	od
}

proctype give_back(byte cpu)
{
	byte i = SLOTS, work = NONE;

	spin_lock(cpu);
	do
	:: i > 0 ->
		i--;
#ifdef NOT_ALL
		i = 0;
#endif
		d_step { RMW(cpu) -> work = slot[i]; slot[i] = NONE }
		if
		:: work != NONE ->
			assert(!gone);
			/* In order: in front of what waits. */
#ifdef BACKWARDS
			waiting!work;
#else
			waiting!!work;
#endif
			work = NONE
		:: else
		fi
	:: else -> break
	od;
	spin_unlock(cpu)
}

proctype cancel(byte cpu)
{
	spin_lock(cpu);
	d_step {
		RMW(cpu) ->
		if
		:: slot[1] == 1 -> slot[1] = NONE; over[1] = true; cancelled = true
		:: else
		fi
	}
	spin_unlock(cpu)
}

proctype waiter()
{
	gone && over[0] && over[1] && over[2];
	assert(runs == ITEMS - cancelled)
}

init {
	atomic {
		slot[0] = 0;
		slot[1] = 1;
		waiting!2;
		run memory();
		run runner(0);
		run give_back(1);
		run cancel(1);
		run other(2);
		run waiter()
	}
}
