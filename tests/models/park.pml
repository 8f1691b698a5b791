/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A work that is queued again while it runs is not run twice at once: when its
 * next turn is taken it is parked with the runner that executes it.
 * fairwq_start_turn(), fairwq_run_turns(), fairwq_park_locked(),
 * fairwq_park_at() and fairwq_unpark() in park.c.
 *
 * Runner 1 has a plan of the work and, or not, of another item, which sleeps
 * until the work has run as often as it is queued; so nothing else will happen
 * that would put the work back. A producer queues the work twice more, each
 * time as soon as it is not pending. Runner 2 is idle at first.
 *
 * Holds: the function never runs twice at once, and each run sees what the one
 * before has stored; the work runs as often as it was queued, so what was
 * parked is put back, once; each turn is accounted for once.
 *
 * Broken REENTRANT (assertion): nobody looks whether the work still runs.
 * Broken XCHG_RELEASE (invalid end state): the xchg() in fairwq_start_turn() is
 *	a release only: @wanted is loaded before @current_work is seen.
 * Broken XCHG_ACQUIRE (assertion): it is an acquire only: the work is seen not
 *	to be pending before it is seen who runs it.
 * Broken NO_RELEASE_CURRENT (assertion): at the end of fairwq_run_turns() the
 *	runner is seen to run nothing before what it has run is seen.
 * Broken NO_MB_PARK (invalid end state): no smp_mb() in fairwq_park_at().
 * Broken NO_MB_END (invalid end state): no smp_mb() at the end of
 *	fairwq_run_turns().
 * Broken PARKED_UNCHECKED (invalid end state): fairwq_park_at() does not look at
 *	@current_work again.
 * Broken NO_PARK_LOCK (invalid end state): fairwq_park_at() does not hold
 *	@park_lock.
 * Broken CURRENT_KEPT (invalid end state): @current_work is left as it is at
 *	the end of fairwq_run_turns().
 * Broken TAKEN_UNMARKED (assertion): what is put back is not marked as taken.
 * Broken UNPARKED_AT_ONCE (non-progress cycle): fairwq_first_parked() also gives
 *	the work whose function is about to be called: the other runner may take
 *	it and park it again, any number of times.
 */
#define CPUS	3		/* 0: producer; 1, 2: runners of that id */
#define LOCK	0		/* pool->lock */
#define PENDING	1		/* FAIRWQ_WORK_PENDING in work->data */
#define LAST_RUNNER 2		/* work->last_runner */
#define CURRENT(r) (2 + (r))	/* runner->current_work */
#define WANTED(r) (4 + (r))	/* runner->wanted */
#define PARK_LOCK(r) (6 + (r))	/* runner->park_lock */
#define DATA	9		/* what the function works on */
#define VARS	10

#include "memory.pml"

#define RUNS	3

#define NULL	0		/* current_work */
#define WORK	1
#define OTHER	2

/* Under the lock. */
bool fifo;			/* the work is in batch->fifo */
byte in_flight;			/* batch->in_flight */
bool taken;			/* FAIRWQ_PLACE_TAKEN in work->place */
bool idle[CPUS];		/* on pool->idle_runners */
bool kicked[CPUS];		/* runner->work is queued */
bool parked[CPUS];		/* the work is on runner->parked; and park_lock */

byte runs;			/* of the function, ended */
bool inside;			/* the function */

/* fairwq_kick_locked(), fairwq_kick_send() */
inline kick_locked()
{
	if
	:: fifo && idle[1] -> idle[1] = false; kicked[1] = true
	:: fifo && !idle[1] && idle[2] -> idle[2] = false; kicked[2] = true
	:: else
	fi
}

/* fairwq_queue(); the push is in queue.pml, here it is one step */
proctype producer(byte cpu)
{
	byte i = 1;

	do
	:: i < RUNS ->
		/* fairwq_claim() */
		d_step { RMW(cpu) && mem[PENDING] == 0 -> mem[PENDING] = 1 }
		spin_lock(cpu);
		atomic { fifo = true; kick_locked() }
		spin_unlock(cpu);
		i++
	:: else -> break
	od
}

/* fairwq_park_at() */
inline park_at(cpu, other)
{
#ifndef NO_PARK_LOCK
	lock(PARK_LOCK(other));
#endif
	write_once(cpu, WANTED(other), 1);
#ifndef NO_MB_PARK
	smp_mb(cpu);
#endif
#ifndef PARKED_UNCHECKED
	read_once(cpu, CURRENT(other), current);
#endif
	if
	:: current == WORK ->
#ifndef TAKEN_UNMARKED
		taken = true;		/* fairwq_mark_taken_locked() */
#endif
		assert(!parked[1] && !parked[2]);
		parked[other] = true;
		mine = NULL
	:: else -> write_once(cpu, WANTED(other), 0)
	fi;
#ifndef NO_PARK_LOCK
	unlock(cpu, PARK_LOCK(other))
#endif
}

/* fairwq_park_locked() */
inline park_locked(cpu, me)
{
	read_once(cpu, LAST_RUNNER, last);
	if
#ifndef REENTRANT
	:: last && last != me ->
		read_once(cpu, CURRENT(last), current);
		if
		:: current == WORK -> park_at(cpu, last)
		:: else
		fi
#endif
	:: else
	fi;
	atomic { last = 0; current = 0 }
}

/* fairwq_unpark() */
inline unpark(cpu, me)
{
	do
	:: true ->
		/* fairwq_first_parked() */
		lock(PARK_LOCK(me));
		found = parked[me];
#ifndef UNPARKED_AT_ONCE
		/* Not if it waits for the function that is about to be called. */
		found = found && mine != WORK;
#endif
		unlock(cpu, PARK_LOCK(me));
		if
		:: !found -> break
		:: else
		fi;
		found = false;
		spin_lock(cpu);
		/* fairwq_unpark_first_locked(), fairwq_unpark_work_locked() */
		lock(PARK_LOCK(me));
		assert(parked[me]);
		parked[me] = false;
		write_once(cpu, WANTED(me), 0);
		unlock(cpu, PARK_LOCK(me));
		/* fairwq_batch_put_back_locked() */
		atomic { assert(!fifo); fifo = true; kick_locked() }
		spin_unlock(cpu)
	od
}

/* fairwq_runner_next(); a plan is one turn */
inline runner_next(cpu, me)
{
	spin_lock(cpu);
	if
	:: fifo ->
		/* fairwq_batch_take_locked() */
		atomic {
			fifo = false;
			mine = WORK;
			in_flight = in_flight + (taken -> 0 : 1);
			taken = false
		}
		park_locked(cpu, me)
	:: else
	fi;
	atomic { idle[me] = (mine == NULL); kick_locked() }
	spin_unlock(cpu)
}

/* fairwq_start_turn() */
inline start_turn(cpu, me)
{
	write_once(cpu, CURRENT(me), mine);
	if
	:: mine == WORK ->
		write_once(cpu, LAST_RUNNER, me);
#if defined(XCHG_RELEASE)
		store_release(cpu, PENDING, 0)
#elif defined(XCHG_ACQUIRE)
		write_once(cpu, PENDING, 0);
		smp_mb(cpu)
#else
		d_step { RMW(cpu) -> mem[PENDING] = 0 }
#endif
	:: else ->
#ifndef XCHG_RELEASE
		RMW(cpu)
#endif
	fi;
	read_once(cpu, WANTED(me), wanted);
	if
	:: wanted -> wanted = 0; unpark(cpu, me)
	:: else
	fi
}

/* fairwq_call() */
inline call(cpu)
{
	if
	:: mine == WORK ->
		d_step { assert(!inside); inside = true }
		read_once(cpu, DATA, data);
		assert(data == runs);
		write_once(cpu, DATA, data + 1);
		/* The turn ends: fairwq_batch_turns_end_locked(), in attention.pml. */
		d_step { data = 0; assert(in_flight); in_flight--; runs++; inside = false }
	:: mine == OTHER -> runs == RUNS	/* it sleeps until then */
	fi
}

/* fairwq_run_turns() */
inline run_turns(cpu, me)
{
	do
	:: mine ->
		RMW(cpu);		/* xchg() on the slot */
		start_turn(cpu, me);
		call(cpu);
		atomic { mine = (two -> OTHER : NULL); two = false }
	:: else -> break
	od;
#ifdef CURRENT_KEPT
	skip;
#elif defined(NO_RELEASE_CURRENT)
	write_once(cpu, CURRENT(me), NULL);
#else
	store_release(cpu, CURRENT(me), NULL);
#endif
#ifndef NO_MB_END
	smp_mb(cpu);
#endif
	read_once(cpu, WANTED(me), wanted);
	if
	:: wanted -> wanted = 0; unpark(cpu, me)
	:: else
	fi
}

/* fairwq_runner_fn() */
proctype runner(byte cpu; byte me; byte mine; bool two)
{
	byte current, last, data, wanted;
	bool found;

end:	do
	:: mine -> run_turns(cpu, me); runner_next(cpu, me)
	:: d_step { !mine && kicked[me] -> kicked[me] = false } -> runner_next(cpu, me)
	od
}

proctype waiter()
{
	runs == RUNS && idle[1] && idle[2] && sb[0].n + sb[1].n + sb[2].n == 0;
	assert(!in_flight && !parked[1] && !parked[2] && !fifo);
	assert(!mem[WANTED(1)] && !mem[WANTED(2)])
}

init {
	atomic {
		mem[PENDING] = 1;
		in_flight = 1;
		idle[2] = true;
		run memory();
		run producer(0);
		if
		:: run runner(1, 1, WORK, true)
		:: run runner(1, 1, WORK, false)
		fi;
		run runner(2, 2, NULL, false);
		run waiter()
	}
}
