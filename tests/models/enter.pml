/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The way of a work into a serializer, and out of it. core/waitlist.c:
 * fairwq_waitlist_enter(), fairwq_waitlist_find(), batch_if_listed_locked(),
 * release_listed_locked(), admit_locked() and move_locked(); core/inbox.c;
 * fairwq_fifo_append_locked(); work.c: find_queued() and release_locked().
 *
 * A queue call claims the work and puts it into the list under the lock of the
 * serializer; or, if nothing is in flight, into the inbox. A cancel reads which
 * serializer that is, takes its lock, and looks again.
 *
 * There are two serializers, with another item in flight in each. A task queues
 * the work through the first one, the other one, and the first one again.
 * Another CPU cancels it once. A runner runs an admitted work. It admits the
 * work that waits, moves it to the FIFO, or starts it in a burst.
 *
 * Holds:
 *	each accepted queueing either runs, or a cancel returned true for it;
 *	the batch that is read is that of this queueing;
 *	a work is only taken out of the serializer that it is in;
 *	the work is not touched when it may be freed. That is when all calls
 *	have returned and no run is to come;
 *	all calls return.
 *
 * A section under the lock of the pool or of an inbox is one step. A cancel
 * that must look again waits for a change. Holds on the batch, and the order of
 * two ends, are not in the model.
 *
 * Case TWO: two CPUs queue the work through one serializer each, and cancel.
 * Case AGAIN: one queue call. When it was cancelled, the work is queued again
 *	at once, through any of the two, and its function frees it.
 *
 * Broken TAKEN_UNSEEN (assertion): under the lock, the cancel does not look
 *	again which serializer the work is in.
 * Broken NO_ACQUIRE (assertion): @serializer is loaded before work->data.
 * Broken NO_RELEASE_LET_GO (assertion): another CPU can see that the work is
 *	free before it sees the stores before that.
 * Broken NO_RELEASE_QUEUED (assertion): the same in release_locked().
 * Broken CLAIMED_APART (invalid end state): the work is listed in a later
 *	section of the lock. The item in flight may have ended before that.
 * Broken MOVED_LISTED (assertion): a work that is moved is not TAKEN meanwhile.
 */
/* CPU 0: queue; 1: the runner; 2: cancel, and queue */
#define lock_of(c)	((c) - 1)	/* fairwq_serializer_lock() */
#define DATA	2		/* work->data: 0, or state + 4 * batch */
#define SERIALIZER 3		/* work->serializer */
#define VARS	4

#include "memory.pml"

#if defined(TWO) || defined(AGAIN)
#define CALLS	1
#else
#define CALLS	3
#endif

/* States in @DATA */
#define LISTED	1
#define QUEUED	2
#define TAKEN	3
#define state(d)	((d) % 4)
#define batch(d)	((d) / 4)

bool busy[2] = true;		/* serializer->in_flight */
bool listed[2];			/* the work is in serializer->waiting */
bool other[2] = true;		/* an item other than the work is in flight */

bool queued;			/* the work is in its batch: inbox or FIFO */

/* For the properties. */
byte accepted, runs, cancelled;
byte bound;			/* the batch of the last queueing */
bool freed;
byte returned;			/* calls */

/* Stores to the work that are still in the buffer of CPU @c. */
#define is_work(v)	((v) >= DATA)
#define stores(c)	(is_work(sb[c].var[0]) || is_work(sb[c].var[1]) || \
			 is_work(sb[c].var[2]))

inline load(cpu, v, to) { d_step { assert(!freed); read_once(cpu, v, to) } }
inline store(cpu, v, x) { assert(!freed); write_once(cpu, v, x) }

#define has_begun	runs++; assert(!freed && runs + cancelled <= accepted)
#define was_cancelled	cancelled++; assert(runs + cancelled <= accepted)

/* Let a work that waits go: @to is its state. */
inline let_go(cpu, k, to)
{
	d_step {
		RMW(cpu) ->
		assert(!queued && !freed);
		assert(mem[DATA] == LISTED + 4 * bound);
		listed[k - 1] = false;
#ifdef MOVED_LISTED
		mem[DATA] = (to == TAKEN -> LISTED : to) + 4 * bound;
#else
		mem[DATA] = to + 4 * bound;
#endif
		queued = (to == QUEUED)
	}
}

/* The item in @k ends: next_locked(), fairwq_waitlist_end_item(). */
inline complete(cpu, k)
{
	lock(lock_of(k));
	if
	:: listed[k - 1] && cpu == 1 ->
		/* take_locked(), fairwq_start_item() */
		listed[k - 1] = false;
		store(cpu, SERIALIZER, 0);
		d_step { RMW(cpu) -> mem[DATA] = 0; along = true; has_begun }
	:: listed[k - 1] && cpu == 1 ->
		/* move_locked(); fairwq_fifo_append_locked() is below. */
		let_go(cpu, k, TAKEN);
		moved = true
	:: listed[k - 1] ->
		/* admit_locked(). The drop of inbox->lock is a release. */
		let_go(cpu, k, QUEUED)
	:: !listed[k - 1] -> busy[k - 1] = false
	fi;
	unlock(cpu, lock_of(k));
	if
	:: moved ->
		d_step {
			RMW(cpu) ->
			assert(!queued && !freed);
			mem[DATA] = QUEUED + 4 * bound;
			queued = true;
			moved = false
		}
	:: else
	fi
}

/* fairwq_serializer_queue(), to batch @b */
inline queue(cpu, c, b)
{
	assert(!freed);
	lock(lock_of(c));
	if
	:: d_step { busy[c - 1] && RMW(cpu) && mem[DATA] == 0 ->
		    /* append_locked() */
		    mem[DATA] = LISTED + 4 * (b); accepted++; bound = b } ->
		store(cpu, SERIALIZER, c);
#ifdef CLAIMED_APART
		unlock(cpu, lock_of(c));
		lock(lock_of(c));
#endif
		listed[c - 1] = true
	:: d_step { !busy[c - 1] && RMW(cpu) && mem[DATA] == 0 ->
		    /* start_locked() */
		    mem[DATA] = QUEUED + 4 * (b); accepted++; bound = b;
		    mem[SERIALIZER] = c; busy[c - 1] = true; queued = true }
	:: d_step { RMW(cpu) && mem[DATA] != 0 -> skip }
	fi;
	unlock(cpu, lock_of(c))
}

/* fairwq_waitlist_find(): sets @taken. The loads of batch_if_listed_locked() */
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
		/* release_listed_locked() */
		d_step {
			assert(listed[k - 1] && batch(d) == bound);
			listed[k - 1] = false;
			taken = true;
			was_cancelled
		}
		store(cpu, SERIALIZER, 0);
#ifdef NO_RELEASE_LET_GO
		store(cpu, DATA, 0)
#else
		store_release(cpu, DATA, 0)
#endif
	:: else
	fi;
	unlock(cpu, lock_of(k));
	d_step { p = 0; k = 0 }
}

/* find_queued(): sets @taken, and @k to the serializer. */
inline find_queued(cpu)
{
	/* Under pool->lock. A work that is taken begins under the same hold. */
	d_step {
		RMW(cpu) && (queued || state(mem[DATA]) != QUEUED) ->
		/* look_locked(), and the list in release_locked() */
		assert(!freed);
		d = mem[DATA];
		if
		:: state(d) == QUEUED ->
			queued = false;
			k = mem[SERIALIZER];
			taken = true;
			was_cancelled
		:: else
		fi
	}
	if
	:: taken ->
		/* the word in release_locked() */
		store(cpu, SERIALIZER, 0);
#ifdef NO_RELEASE_QUEUED
		store(cpu, DATA, 0);
#else
		store_release(cpu, DATA, 0);
#endif
		complete(cpu, k);
		k = 0
	:: else
	fi
}

/* fairwq_work_cancel() returns @taken. */
inline cancel(cpu)
{
	do
	:: taken -> break
	:: !taken ->
		load(cpu, DATA, d);
		if
		:: d == 0 -> break
		:: state(d) == LISTED ->
			load(cpu, SERIALIZER, k);
			if
			:: k -> take_listed(cpu)
			:: else ->
				RMW(cpu) && (mem[SERIALIZER] ||
					     state(mem[DATA]) != LISTED)
			fi
		:: state(d) == QUEUED -> find_queued(cpu)
		:: state(d) == TAKEN -> RMW(cpu) && state(mem[DATA]) != TAKEN
		fi
	od;
	d = 0
}

/* End the call. Its stores must be seen before its return. */
inline has_returned(cpu)
{
	d_step { sb[cpu].n == 0 -> returned++ }
}

proctype task(byte cpu)
{
	byte i, d, k, p;
	bool taken, along, moved;

	do
	:: i < CALLS -> queue(cpu, 1 + i % 2, i + 1); i++
	:: else -> break
	od;
#ifdef TWO
	cancel(cpu);
#endif
	has_returned(cpu)
}

proctype canceller(byte cpu)
{
	byte d, k, p;
	bool taken, along, moved;

#ifdef TWO
	queue(cpu, 2, 2);
#endif
	cancel(cpu);
#ifdef AGAIN
	if
	:: taken -> queue(cpu, 1, 2)
	:: taken -> queue(cpu, 2, 2)
	:: else
	fi;
#endif
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
	bool along, moved;

end:	do
	:: along -> along = false; function(); complete(cpu, k)
	:: d_step {
		!along && RMW(cpu) && queued ->
		queued = false;
		k = mem[SERIALIZER]
	   }
		/* fairwq_start_item() */
		store(cpu, SERIALIZER, 0);
		d_step { RMW(cpu) -> assert(k); mem[DATA] = 0; has_begun }
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
	/* All calls have returned, and no run is to come: it may be freed. */
	d_step {
		returned == 2 && runs + cancelled == accepted ->
		freed = true;
		assert(!stores(0) && !stores(1) && !stores(2))
	}
	!busy[0] && !busy[1] && all_seen && !mem[DATA] && !queued &&
	!listed[0] && !listed[1]
}

init {
	atomic {
		run memory();
		run runner(1);
		run task(0);
		run canceller(2);
		run waiter()
	}
}
