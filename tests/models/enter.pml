/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The way of a work into a serializer, and out of it.
 * core/waitlist.c: fairwq_waitlist_enter(), fairwq_waitlist_take(), is_listed_locked(),
 * release_listed() and admit_locked(); core/inbox.c; work.c: take_queued() and release_work().
 *
 * A queue call claims the work and puts it into the list under the lock of the
 * serializer; or, if nothing is in flight, into the inbox, also under inbox->lock. A
 * cancel reads which serializer that is, takes its lock, and looks again.
 *
 * There are two serializers. In each an item is in flight that is not the work. A task
 * queues the work through the first one, then through the other one. Another CPU
 * cancels it once. A runner runs an admitted work. It admits the work that waits, or
 * starts it in a burst.
 *
 * Holds:
 *	each accepted queueing runs, or a cancel returned true for it, and never both;
 *	the batch that is read is that of this queueing;
 *	a work is only taken out of the serializer that it is in;
 *	the work is not touched when it may be freed. That is when all calls have
 *	returned and it does not run any more, or in its function in Case AGAIN;
 *	all calls return.
 *
 * Loads are done where they stand, except with NO_ACQUIRE. A section under the lock of
 * the pool or of an inbox is one step. A cancel that must look again waits until something
 * has changed.
 *
 * Case SHARED: both serializers have the same lock.
 * Case THRICE: the task queues the work a third time, through the first one again.
 * Case ON_TOP: the task queues the work once, and so does another CPU. An interrupt on
 *	top of the task's call cancels it.
 * Case TWO: one queue call. An interrupt on top of it cancels, and so does another CPU.
 * Case AGAIN: one queue call. When it was cancelled, the work is queued again at once,
 *	through any of the two, and its function frees it.
 *
 * Broken TAKEN_UNSEEN (assertion): under the lock, the cancel does not look again which
 *	serializer the work is in.
 * Broken NO_ACQUIRE (assertion): the cancel loads @serializer before work->data.
 * Broken NO_RELEASE_LET_GO (assertion): another CPU can see that the work is free before
 *	it sees the stores before that.
 * Broken NO_RELEASE_QUEUED (assertion): the same in release_work().
 * Broken CLAIMED_UNLOCKED (assertion): the work is claimed before the lock is taken.
 * Broken ON_TOP UNMASKED (invalid end state): the queue call has interrupts on.
 */
/* CPU 0: queue; 1: the runner; 2: cancel, and queue */
#define DATA	2		/* work->data: 0, or a state and 4 times the batch */
#define SERIALIZER 3		/* work->serializer */
#define VARS	4

#include "memory.pml"

#if defined(ON_TOP) || defined(TWO)
#define CALLERS	3
#else
#define CALLERS	2
#endif
#if defined(ON_TOP) || defined(TWO) || defined(AGAIN)
#define CALLS	1
#elif defined(THRICE)
#define CALLS	3
#else
#define CALLS	2
#endif
#if !defined(ON_TOP) && !defined(TWO)
#define TWO_SERIALIZERS
#endif

/* States in @DATA */
#define LISTED	1
#define QUEUED	2
#define state(d)	((d) % 4)
#define batch(d)	((d) / 4)

#ifdef SHARED
#define lock_of(c)	0
#else
#define lock_of(c)	((c) - 1)
#endif

bool busy[2];			/* serializer->in_flight */
bool listed[2];			/* the work is in serializer->waiting */
bool other[2];			/* an item other than the work is in flight */

bool inbox, fifo;		/* the work is in its batch */

bool called;			/* CPU 0 is in its queue call */
bool masked;			/* CPU 0 has interrupts off */
bool on_top;			/* CPU 0 is in an interrupt */

/* For the properties. */
byte accepted, runs, cancelled;
byte bound;			/* the batch of the last queueing */
bool freed;
byte returned;			/* calls */

/* Stores to the work that are still in the buffer of CPU @c. */
#define is_work(v)	((v) >= DATA && (v) <= SERIALIZER)
#define stores(c)	(is_work(sb[c].var[0]) || is_work(sb[c].var[1]) || is_work(sb[c].var[2]))

inline load(cpu, v, to) { d_step { assert(!freed); read_once(cpu, v, to) } }
inline store(cpu, v, x) { assert(!freed); write_once(cpu, v, x) }

#define was_cancelled	cancelled++; assert(runs + cancelled <= accepted)

/* fairwq_inbox_take_over_locked() */
inline take_over()
{
	if
	:: inbox -> assert(!freed && state(mem[DATA]) == QUEUED); inbox = false; fifo = true
	:: else
	fi
}

/* fairwq_inbox_arrive_locked(). The drop of inbox->lock is a release. */
inline arrive(cpu)
{
	d_step {
		RMW(cpu) ->
		assert(!inbox && !fifo && !freed && mem[DATA] == LISTED + 4 * bound);
		mem[DATA] = QUEUED + 4 * bound;
		inbox = true
	}
}

/* release_listed() */
inline release_listed(cpu)
{
	assert(batch(d) == bound);
	store(cpu, SERIALIZER, 0);
#ifdef NO_RELEASE_LET_GO
	store(cpu, DATA, 0)
#else
	store_release(cpu, DATA, 0)
#endif
}

#define has_begun	runs++; assert(runs + cancelled <= accepted)

/* fairwq_waitlist_next_locked(), or fairwq_burst_next(): the item in @k has ended. */
inline complete(cpu, k)
{
	lock(lock_of(k));
	if
	:: listed[k - 1] ->
		listed[k - 1] = false;
		if
		:: cpu == 1 ->
			/* burst_take_locked(), fairwq_start_item() */
			store(cpu, SERIALIZER, 0);
			d_step { RMW(cpu) -> assert(!freed); mem[DATA] = 0; along = true; has_begun }
		:: arrive(cpu)
		fi
	:: !listed[k - 1] -> busy[k - 1] = false
	fi;
	unlock(cpu, lock_of(k))
}

/* fairwq_serializer_queue(), to batch @b; by CPU 0 or 2 */
inline queue(cpu, c, b)
{
#ifdef UNMASKED
	called = called || cpu == 0;
#else
	d_step { called = called || cpu == 0; masked = masked || cpu == 0 }
#endif
	assert(!freed);
#ifdef CLAIMED_UNLOCKED
	if
	:: d_step { RMW(cpu) && mem[DATA] == 0 ->
		    mem[DATA] = LISTED + 4 * b; accepted++; bound = b } ->
		store(cpu, SERIALIZER, c);
		lock(lock_of(c));
		if
		:: !busy[c - 1] -> busy[c - 1] = true; arrive(cpu)
		:: busy[c - 1] -> listed[c - 1] = true
		fi;
		unlock(cpu, lock_of(c))
	:: d_step { RMW(cpu) && mem[DATA] != 0 -> skip }
	fi;
#else
	lock(lock_of(c));
	if
	:: d_step { busy[c - 1] && RMW(cpu) && mem[DATA] == 0 ->
		    /* append_locked() */
		    mem[DATA] = LISTED + 4 * b; accepted++; bound = b } ->
		store(cpu, SERIALIZER, c);
		listed[c - 1] = true
	:: d_step { !busy[c - 1] && RMW(cpu) && mem[DATA] == 0 ->
		    /* start_locked() */
		    mem[DATA] = QUEUED + 4 * b; accepted++; bound = b;
		    mem[SERIALIZER] = c; busy[c - 1] = true; inbox = true }
	:: d_step { RMW(cpu) && mem[DATA] != 0 -> skip }
	fi;
	unlock(cpu, lock_of(c));
#endif
	d_step { masked = masked && cpu != 0; called = called && cpu != 0 }
}

/* fairwq_waitlist_take() returns @taken. The loads of is_listed_locked() */
inline take_listed(cpu)
{
	lock(lock_of(k));
#ifdef NO_ACQUIRE
	load(cpu, SERIALIZER, p);
	load(cpu, DATA, d);
#else
	load(cpu, DATA, d);
	load(cpu, SERIALIZER, p);
#endif
	if
#ifdef TAKEN_UNSEEN
	:: state(d) == LISTED ->
#else
	:: state(d) == LISTED && p == k ->
#endif
		d_step {
			assert(listed[k - 1]);
			listed[k - 1] = false;
			taken = true;
			was_cancelled
		}
		release_listed(cpu)
	:: else
	fi;
	unlock(cpu, lock_of(k));
	p = 0
}

/* fairwq_work_cancel() returns @yes. */
inline cancel(cpu)
{
	do
	:: true ->
		load(cpu, DATA, d);
		if
		:: d == 0 -> break
		:: state(d) == LISTED ->
			load(cpu, SERIALIZER, k);
			if
			:: k -> take_listed(cpu)
			:: else -> d_step { RMW(cpu) && (mem[SERIALIZER] ||
							 state(mem[DATA]) != LISTED) }
			fi;
			k = 0;
			if
			:: taken -> d_step { taken = false; yes = true } break
			:: else
			fi
		:: state(d) == QUEUED ->
			/* take_queued(), under the lock of the pool */
			d_step {
				RMW(cpu);
				assert(!freed);
				take_over();
				d = mem[DATA];
				if
				:: state(d) == QUEUED && fifo ->
					fifo = false;
					k = mem[SERIALIZER];
					taken = true;
					was_cancelled
				:: else
				fi
			}
			if
			:: taken ->
				/* release_work() */
				store(cpu, SERIALIZER, 0);
#ifdef NO_RELEASE_QUEUED
				store(cpu, DATA, 0);
#else
				store_release(cpu, DATA, 0);
#endif
				d_step { taken = false; yes = true } break
			:: !taken && state(d) == QUEUED -> break	/* about to start */
			:: !taken && state(d) != QUEUED
			fi
		fi
	od;
	if
	:: k -> complete(cpu, k); k = 0
	:: else
	fi;
	d = 0
}

/* End the call. Its stores must be seen before its return. */
inline has_returned(cpu)
{
	d_step { sb[cpu].n == 0 -> returned++ }
}

proctype task(byte cpu) provided (!on_top)
{
	queue(cpu, 1, 1);
#if CALLS > 1
	queue(cpu, 2, 2);
#endif
#if CALLS > 2
	queue(cpu, 1, 3);
#endif
	has_returned(cpu)
}

#define CANCEL_LOCALS	byte d, k, p; bool taken, yes, along

/* Cancel the work in an interrupt on top of CPU 0's call. */
proctype interrupt(byte cpu)
{
	CANCEL_LOCALS;

	if
	:: d_step { called && !masked -> on_top = true };
		cancel(cpu);
		on_top = false
	:: returned > 0 -> cancel(cpu)
	fi;
	has_returned(cpu)
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
	has_returned(cpu)
}

proctype requeue(byte cpu)
{
	queue(cpu, 1, 2);
	has_returned(cpu)
}

/* The function of the work. */
inline function()
{
#ifdef AGAIN
	d_step {
		/* It frees the work. */
		freed = (bound == 2);
		assert(!freed || (!stores(0) && !stores(2)))
	}
#else
	skip
#endif
}

proctype runner(byte cpu)
{
	byte k;
	bool along;

end:	do
	:: along -> along = false; function(); complete(cpu, k)
	:: d_step { !along && RMW(cpu) && inbox -> take_over() }
	:: d_step { !along && RMW(cpu) && fifo -> fifo = false; k = mem[SERIALIZER] };
		/* fairwq_start_item() */
		store(cpu, SERIALIZER, 0);
		d_step { RMW(cpu) -> assert(!freed && k); mem[DATA] = 0; has_begun }
		function();
		complete(cpu, k)
	:: d_step { !along && other[0] -> other[0] = false; k = 1 }
		complete(cpu, k)
	:: d_step { !along && other[1] -> other[1] = false; k = 2 }
		complete(cpu, k)
	od
}

proctype waiter()
{
	/* All calls have returned, and the work will not run again: it may be freed. */
	d_step {
		returned == CALLERS && runs + cancelled == accepted ->
		freed = true;
		assert(!stores(0) && !stores(1) && !stores(2))
	}
	!busy[0] && !busy[1] && sb[0].n + sb[1].n + sb[2].n == 0 && !mem[DATA] &&
	!inbox && !fifo && !listed[0] && !listed[1]
}

init {
	atomic {
		other[0] = true;
		busy[0] = true;
#ifdef TWO_SERIALIZERS
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
		run waiter()
	}
}
