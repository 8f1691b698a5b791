/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Park: a work that is queued again while it runs must not run twice at once.
 * When its next turn is taken, it is parked with the runner that executes it.
 * fairwq_start_item(), run_item() and fairwq_end_current() in core/turn.h and
 * core/run.c, fairwq_park_locked() and fairwq_unpark() in core/park.c.
 *
 * There are two pools with a runner each, so the two have no pool->lock in
 * common. Runner 1 runs the work, and may then run another item, which sleeps
 * until the work has run as often as it is queued. A producer queues the work
 * twice more, as soon as it is not pending: to the second pool, or to either
 * one if no item sleeps there. Kicks are in queue.pml.
 *
 * Holds:
 *	the function never runs twice at once;
 *	each run sees the stores of the run before;
 *	the work runs as often as it was queued, so it is put back, once;
 *	each turn ends once.
 *
 * Broken REENTRANT (assertion): no runner looks whether the work still runs.
 * Broken XCHG_RELEASE (invalid end state): the xchg() in fairwq_start_item() is
 *	a release only: @parked is loaded before @current_work is seen.
 * Broken XCHG_ACQUIRE (assertion): it is an acquire only: a CPU sees that the
 *	work is not pending before it sees which runner executes it.
 * Broken NO_RELEASE_START (assertion): fairwq_start_item() stores @current_work
 *	by WRITE_ONCE(): the lock that was taken before is no barrier for the
 *	stores of the last function.
 * Broken NO_RELEASE_END (assertion): the same in fairwq_end_current().
 * Broken NO_MB_PARK (invalid end state): no smp_mb() in fairwq_park_locked().
 * Broken NO_MB_END (invalid end state): no smp_mb() in fairwq_end_current().
 * Broken NO_PARK_LOCK (invalid end state): @park_lock is not taken there.
 * Broken TAKEN_UNMARKED (invalid end state): a work that is put back is not
 *	marked as taken, so it counts twice, and its batch never drains.
 * Broken UNPARKED_AT_ONCE (non-progress cycle): first_parked() also returns the
 *	work whose function is about to be called. The other runner may take it
 *	and park it again, any number of times.
 */
/* CPU 0: producer; 1, 2: runners of that id, of pools of that number */
#define WORD(w)	(w)		/* 1 and 2, work->data of @w: pending */
#define LAST_RUNNER 3		/* work->last_runner */
#define CURRENT(r) (3 + (r))	/* runner->current_work */
#define WANTED(r) (5 + (r))	/* runner->parked is not empty */
#define PARK_LOCK(r) (7 + (r))	/* runner->park_lock */
#define POOL_LOCK(p) (9 + (p))	/* pool->lock */
#define DATA	12		/* that the function reads and writes */
#define VARS	13

#include "memory.pml"

#define RUNS	3

#define NULL	0		/* current_work */
#define WORK	1
#define OTHER	2

/* Under the lock of the pool. */
bool fifo[3];			/* the work is in batch->fifo of that pool */
byte in_flight[3];		/* batch->in_flight */
/* Under the lock of the pool in which the work is queued. */
bool taken;			/* FAIRWQ_WORK_PARKED in work->flags */
byte home = 1;			/* that pool */
bool parked[3];			/* on runner->parked; also under park_lock */

byte runs;			/* of the function, ended */
bool inside;			/* the function runs */

/* fairwq_queue(). The push is one step here; queue.pml has it. */
proctype producer(byte cpu; bool sleeps)
{
	byte i = 1, to;

	do
	:: i < RUNS ->
		if
		:: !sleeps -> to = 1
		:: to = 2
		fi;
		/* fairwq_claim() */
		cmpxchg_0(cpu, WORD(WORK), 1);
		lock(POOL_LOCK(to));
		d_step { home = to; fifo[to] = true }
		unlock(cpu, POOL_LOCK(to));
		i++
	:: else -> break
	od
}

/* fairwq_park_locked() */
inline park_at(me, other)
{
#ifndef NO_PARK_LOCK
	lock(PARK_LOCK(other));
#endif
	write_once(me, WANTED(other), 1);
#ifndef NO_MB_PARK
	smp_mb(me);
#endif
	read_once(me, CURRENT(other), current);
	if
	:: current == WORK ->
		/* fairwq_fifo_park_locked() */
		d_step {
			fifo[me] = false;
			in_flight[me] = in_flight[me] + !taken;
#ifndef TAKEN_UNMARKED
			taken = true;
#endif
			assert(!parked[1] && !parked[2])
		}
		parked[other] = true
	:: else -> write_once(me, WANTED(other), 0)
	fi;
#ifndef NO_PARK_LOCK
	unlock(me, PARK_LOCK(other))
#endif
}

/* fairwq_park_locked(), fairwq_executing_runner() */
inline park_locked(me)
{
	read_once(me, LAST_RUNNER, last);
	if
#ifndef REENTRANT
	:: last && last != me ->
		read_once(me, CURRENT(last), current);
		if
		:: current == WORK -> park_at(me, last)
		:: else
		fi
#endif
	:: else
	fi;
	d_step { last = 0; current = 0 }
}

/* fairwq_unpark(), if something is parked */
inline unpark(me)
{
	read_once(me, WANTED(me), wanted);
	do
	:: wanted ->
		/* first_parked() */
		lock(PARK_LOCK(me));
		found = parked[me];
#ifndef UNPARKED_AT_ONCE
		/* Not if it waits for the function that is to be called. */
		read_once(me, CURRENT(me), current);
		found = found && current != WORK;
		current = 0;
#endif
		unlock(me, PARK_LOCK(me));
		if
		:: !found -> break
		:: else
		fi;
		found = false;
		to = home;
		lock(POOL_LOCK(to));
		/* fairwq_unpark_work_locked() */
		lock(PARK_LOCK(me));
		assert(parked[me]);
		parked[me] = false;
		write_once(me, WANTED(me), 0);
		unlock(me, PARK_LOCK(me));
		/* fairwq_fifo_put_back_locked() */
		d_step { assert(!fifo[to] && home == to); fifo[to] = true }
		unlock(me, POOL_LOCK(to));
		to = 0
	:: else -> break
	od;
	wanted = 0
}

/* fairwq_start_item() */
inline start_item(me)
{
#ifdef NO_RELEASE_START
	write_once(me, CURRENT(me), mine);
#else
	store_release(me, CURRENT(me), mine);
#endif
	if
	:: mine == WORK -> write_once(me, LAST_RUNNER, me)
	:: else
	fi;
#if defined(XCHG_RELEASE)
	store_release(me, WORD(mine), 0)
#elif defined(XCHG_ACQUIRE)
	write_once(me, WORD(mine), 0);
	smp_mb(me)
#else
	xchg(me, WORD(mine), 0)
#endif
}

/* fairwq_end_current() */
inline end_current(me)
{
#ifdef NO_RELEASE_END
	write_once(me, CURRENT(me), NULL);
#else
	store_release(me, CURRENT(me), NULL);
#endif
#ifndef NO_MB_END
	smp_mb(me);
#endif
	unpark(me)
}

/* Under one hold of the lock the turn of @mine ends and the next begins. */
inline runner_next(me)
{
	lock(POOL_LOCK(me));
	d_step {
		in_flight[me] = in_flight[me] - (mine == WORK);
		mine = NULL;
		assert(in_flight[me] < RUNS)
	}
	if
	:: two && runs -> two = false; mine = OTHER
	:: !(two && runs) && fifo[me] ->
		park_locked(me);
		if
		:: fifo[me] ->
			/* fairwq_fifo_take_locked() */
			d_step {
				fifo[me] = false;
				mine = WORK;
				in_flight[me] = in_flight[me] + !taken;
				taken = false
			}
		:: else
		fi
	:: else
	fi;
	if
	:: mine -> start_item(me)
	:: else
	fi;
	unlock(me, POOL_LOCK(me))
}

/* run_item(), and in it fairwq_call() */
inline run_item(me)
{
	unpark(me);
	if
	:: mine == WORK ->
		d_step { assert(!inside); inside = true }
		read_once(me, DATA, data);
		assert(data == runs);
		write_once(me, DATA, data + 1);
		d_step { data = 0; runs++; inside = false }
	:: mine == OTHER -> runs == RUNS	/* it sleeps until then */
	fi;
	read_once(me, WANTED(me), wanted);
	if
	:: wanted -> wanted = 0; end_current(me)
	:: else
	fi
}

/* fairwq_run(), as soon as there is something to take */
proctype runner(byte me; bool two)
{
	byte mine, current, last, data, wanted, to;
	bool found;

end:	do
	:: fifo[me] ->
		runner_next(me);
		do
		:: mine -> run_item(me); runner_next(me)
		:: else -> break
		od;
		end_current(me)
	od
}

proctype waiter()
{
	runs == RUNS && !in_flight[1] && !in_flight[2] && all_seen;
	assert(!parked[1] && !parked[2]);
	assert(!fifo[1] && !fifo[2] && !mem[WANTED(1)] && !mem[WANTED(2)])
}

init {
	atomic {
		mem[WORD(WORK)] = 1;
		fifo[1] = true;
		run memory();
		if
		:: run producer(0, true); run runner(1, true)
		:: run producer(0, false); run runner(1, false)
		fi;
		run runner(2, false);
		run waiter()
	}
}
