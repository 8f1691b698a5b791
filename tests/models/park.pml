/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Park: a work that is queued again while it runs must not run twice at once. When its
 * next turn is taken, it is parked with the runner that executes it.
 * fairwq_start_item(), run_item() and fairwq_end_current() in core/turn.h and core/run.c,
 * fairwq_park_locked(), park_at() and fairwq_unpark() in core/park.c.
 *
 * There are two pools with a runner each. Runner 1 runs the work, and may then run
 * another item, which sleeps until the work has run as often as it is queued. So no
 * other event can put the work back. A producer queues the work twice more, each time
 * as soon as it is not pending. It queues to the second pool, or to either one if no
 * item sleeps there. Runner 2 is idle at first.
 *
 * Holds:
 *	the function never runs twice at once;
 *	each run sees the stores of the run before;
 *	the work runs as often as it was queued, so a parked work is put back, once;
 *	each turn ends once.
 *
 * Case ONE_POOL: both runners are of one pool.
 *
 * Broken REENTRANT (assertion): a runner does not look whether the work still runs.
 * Broken XCHG_RELEASE (invalid end state): the xchg() in fairwq_start_item() is
 *	a release only: @has_parked is loaded before @current_work is seen.
 * Broken XCHG_ACQUIRE (assertion): it is an acquire only: a CPU sees that the
 *	work is not pending before it sees which runner executes it.
 * Broken NO_RELEASE_START (assertion): fairwq_start_item() stores @current_work by
 *	WRITE_ONCE(): the lock that was taken before is no barrier for the stores of
 *	the last function.
 * Broken NO_RELEASE_END (assertion): the same in fairwq_end_current().
 * Broken NO_MB_PARK (invalid end state): no smp_mb() in park_at().
 * Broken NO_MB_END (invalid end state): no smp_mb() in fairwq_end_current().
 * Broken PARKED_UNCHECKED (invalid end state): park_at() does not look at
 *	@current_work again.
 * Broken NO_PARK_LOCK (invalid end state): park_at() does not hold
 *	@park_lock.
 * Broken CURRENT_KEPT (invalid end state): @current_work is left as it is when
 *	the runner goes idle.
 * Broken TAKEN_UNMARKED (assertion): a work that is put back is not marked as taken.
 * Broken UNPARKED_AT_ONCE (non-progress cycle): first_parked() also returns the
 *	work whose function is about to be called. The other runner may take it and
 *	park it again, any number of times.
 */
/* CPU 0: producer; 1, 2: runners of that id */
#define PENDING	1		/* FAIRWQ_WORK_PENDING in work->data */
#define LAST_RUNNER 2		/* work->last_runner */
#define CURRENT(r) (2 + (r))	/* runner->current_work */
#define WANTED(r) (4 + (r))	/* runner->has_parked */
#define PARK_LOCK(r) (6 + (r))	/* runner->park_lock */
#define DATA	9		/* that the function reads and writes */
#define POOL_LOCK(p) (9 + (p))	/* pool->lock */
#define VARS	12

#include "memory.pml"

#define RUNS	3

#define NULL	0		/* current_work */
#define WORK	1
#define OTHER	2

#ifdef ONE_POOL
#define pool_of(r)	1
#else
#define pool_of(r)	(r)
#endif

/* Under the lock of the pool. */
bool fifo[3];			/* the work is in batch->fifo of that pool */
byte in_flight[3];		/* batch->in_flight */
bool idle[3];			/* on pool->idle_runners */
bool kicked[3];			/* runner->work is queued */
/* Under the lock of the pool in which the work is queued. */
bool taken;			/* FAIRWQ_WORK_COUNTED in work->flags */
byte home = 1;			/* that pool */
bool parked[3];			/* the work is on runner->parked; also under park_lock */

byte runs;			/* of the function, ended */
bool inside;			/* the function runs */

/* fairwq_kick_locked(), fairwq_kick_send() */
inline kick_locked(p)
{
	if
	:: fifo[p] && idle[1] && pool_of(1) == p -> idle[1] = false; kicked[1] = true
	:: fifo[p] && !(idle[1] && pool_of(1) == p) && idle[2] && pool_of(2) == p ->
		idle[2] = false;
		kicked[2] = true
	:: else
	fi
}

/* fairwq_queue(). The push is one step here; queue.pml has it. */
proctype producer(byte cpu; bool sleeps)
{
	byte i = 1, to;

	do
	:: i < RUNS ->
		if
		:: !sleeps -> to = pool_of(1)
		:: to = pool_of(2)
		fi;
		/* fairwq_claim_locked() */
		d_step { RMW(cpu) && mem[PENDING] == 0 -> mem[PENDING] = 1 }
		lock(POOL_LOCK(to));
		atomic { home = to; fifo[to] = true; kick_locked(to) }
		unlock(cpu, POOL_LOCK(to));
		i++
	:: else -> break
	od
}

/* park_at() */
inline park_at(cpu, other, p)
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
		/* fairwq_fifo_park_locked() */
		d_step {
			fifo[p] = false;
			in_flight[p] = in_flight[p] + (taken -> 0 : 1);
#ifdef TAKEN_UNMARKED
			taken = false;
#else
			taken = true;
#endif
			assert(!parked[1] && !parked[2])
		}
		parked[other] = true
	:: else -> write_once(cpu, WANTED(other), 0)
	fi;
#ifndef NO_PARK_LOCK
	unlock(cpu, PARK_LOCK(other))
#endif
}

/* fairwq_park_locked(), fairwq_park_runs_elsewhere() */
inline park_locked(cpu, me)
{
	read_once(cpu, LAST_RUNNER, last);
	if
#ifndef REENTRANT
	:: last && last != me ->
		read_once(cpu, CURRENT(last), current);
		if
		:: current == WORK -> park_at(cpu, last, pool_of(me))
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
		/* first_parked() */
		lock(PARK_LOCK(me));
		found = parked[me];
#ifndef UNPARKED_AT_ONCE
		/* Not if the work waits for the function that is about to be called. */
		read_once(cpu, CURRENT(me), current);
		found = found && current != WORK;
		current = 0;
#endif
		unlock(cpu, PARK_LOCK(me));
		if
		:: !found -> break
		:: else
		fi;
		found = false;
		lock(POOL_LOCK(home));
		/* fairwq_unpark(), fairwq_unpark_work_locked() */
		lock(PARK_LOCK(me));
		assert(parked[me]);
		parked[me] = false;
		write_once(cpu, WANTED(me), 0);
		unlock(cpu, PARK_LOCK(me));
		/* fairwq_fifo_put_back_locked() */
		atomic { assert(!fifo[home]); fifo[home] = true; to = home; kick_locked(home) }
		unlock(cpu, POOL_LOCK(to));
		to = 0
	od
}

/* fairwq_start_item() */
inline start_item(cpu, me)
{
#ifdef NO_RELEASE_START
	write_once(cpu, CURRENT(me), mine);
#else
	store_release(cpu, CURRENT(me), mine);
#endif
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
	fi
}

/* fairwq_end_current() */
inline end_current(cpu, me)
{
#ifdef NO_RELEASE_END
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

/*
 * fairwq_run(): under the lock the turn of @mine ends. In the same lock section the
 * next turn is taken, if there is one.
 */
inline runner_next(cpu, me)
{
	lock(POOL_LOCK(pool_of(me)));
	atomic {
		if
		:: mine == WORK -> assert(in_flight[pool_of(me)]); in_flight[pool_of(me)]--
		:: else
		fi;
		mine = NULL
	}
	if
	:: two && runs -> two = false; mine = OTHER
	:: !(two && runs) && fifo[pool_of(me)] ->
		park_locked(cpu, me);
		if
		:: fifo[pool_of(me)] ->
			/* fairwq_fifo_take_locked() */
			atomic {
				fifo[pool_of(me)] = false;
				mine = WORK;
				in_flight[pool_of(me)] = in_flight[pool_of(me)] + (taken -> 0 : 1);
				taken = false
			}
		:: else
		fi
	:: else
	fi;
	if
	:: mine -> start_item(cpu, me)
	:: else
	fi;
	atomic { idle[me] = (mine == NULL); kick_locked(pool_of(me)) }
	unlock(cpu, POOL_LOCK(pool_of(me)))
}

/* run_item(), and in it fairwq_call() */
inline run_item(cpu, me)
{
	read_once(cpu, WANTED(me), wanted);
	if
	:: wanted -> wanted = 0; unpark(cpu, me)
	:: else
	fi;
	if
	:: mine == WORK ->
		d_step { assert(!inside); inside = true }
		read_once(cpu, DATA, data);
		assert(data == runs);
		write_once(cpu, DATA, data + 1);
		d_step { data = 0; runs++; inside = false }
	:: mine == OTHER -> runs == RUNS	/* the other item sleeps until then */
	fi;
	read_once(cpu, WANTED(me), wanted);
	if
	:: wanted -> wanted = 0; end_current(cpu, me)
	:: else
	fi
}

/* fairwq_run() */
proctype runner(byte cpu; byte me; bool two)
{
	byte mine, current, last, data, wanted, to;
	bool found;

end:	do
	:: d_step { kicked[me] -> kicked[me] = false };
		runner_next(cpu, me);
		do
		:: mine -> run_item(cpu, me); runner_next(cpu, me)
		:: else -> break
		od;
		skip;
#ifndef CURRENT_KEPT
		end_current(cpu, me)
#endif
	od
}

proctype waiter()
{
	runs == RUNS && idle[1] && idle[2] && sb[0].n + sb[1].n + sb[2].n == 0;
	assert(!in_flight[1] && !in_flight[2] && !parked[1] && !parked[2]);
	assert(!fifo[1] && !fifo[2] && !mem[WANTED(1)] && !mem[WANTED(2)])
}

init {
	atomic {
		mem[PENDING] = 1;
		fifo[1] = true;
		kicked[1] = true;
		idle[2] = true;
		run memory();
		if
		:: run producer(0, true); run runner(1, 1, true)
		:: run producer(0, false); run runner(1, 1, false)
		fi;
		run runner(2, 2, false);
		run waiter()
	}
}
