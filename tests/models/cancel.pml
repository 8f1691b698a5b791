/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Cancel of a work that a queue call has claimed and not yet pushed, by a caller that
 * cannot wait for that call. That is cancel_unlinked_locked() in work.c,
 * against fairwq_claim_as() in core/push.h, revive() and
 * fairwq_push_claimed() in core/push.c, and drop_canceled_locked() in core/fifo.c.
 *
 * A task queues the work, to a batch that a runner polls. Another task cancels it,
 * and may queue it again.
 *
 * Holds:
 *	the function runs as often as the work was queued and not cancelled;
 *	when both tasks have returned, no mark is left that the work must be dropped;
 *	the work is pushed once at a time.
 *
 * Broken NO_MB_CANCEL (assertion): none of the three full barriers in
 *	cancel_unlinked_locked(): those of the cmpxchg() and of
 *	llist_del_all() are two, so that smp_mb() is there for the reader.
 * Broken NO_MB_PUSH (assertion): llist_add() without its barrier:
 *	@nr_canceled is loaded before the work can be seen in @incoming.
 * Broken WORD_UNSEEN (assertion): the queue call does not look at @nr_canceled.
 * Broken LEFT_BLINDLY (assertion): the cancel does not look at @incoming after it
 *	has marked the work.
 * Broken NOT_REVIVED (invalid end state): a queue call that finds the mark tells its
 *	caller that the work is pending.
 * Broken REVIVED_BLINDLY (invalid end state): a queue call removes the mark without
 *	a check that it is still there.
 * Broken COUNTED_EARLY (assertion): @nr_canceled is decreased before the work is
 *	released: the queue call returns while the work is still accessed.
 */
#define CPUS	3		/* 0: queue; 1: cancel, queue; 2: the runner */
#define LOCK	0		/* pool->lock */
#define STATE	1		/* work->data, without the batch */
#define NR_CANCELED 2		/* batch->nr_canceled */
#define VARS	3

#include "memory.pml"

#define PENDING		1
#define LINKED		2
#define CANCELED	4

bool incoming;			/* the work is in batch->incoming */
bool fifo;			/* the work is in batch->fifo */
short owed, runs;		/* for the properties */
short promised;			/* queue calls that returned 0: a run must follow */
byte returned;			/* calls: the first one, and the cancel */

/* Change batch->nr_canceled, under the lock. */
inline nr_canceled(cpu, less)
{
	read_once(cpu, NR_CANCELED, nr);
	store_release(cpu, NR_CANCELED, nr + 1 - 2 * less);
	nr = 0
}

/* fairwq_fifo_splice_locked(), link_locked(), drop_canceled_locked() */
inline splice_locked(cpu)
{
	/* llist_del_all() is an xchg() */
	d_step { RMW(cpu) -> found = incoming; incoming = false }
	if
	:: found ->
		found = false;
		read_once(cpu, NR_CANCELED, nr);
		read_once(cpu, STATE, data);
		if
		:: nr && (data & CANCELED) ->
			nr = 0;
#ifdef COUNTED_EARLY
			nr_canceled(cpu, 1);
			store_release(cpu, STATE, 0)
#else
			store_release(cpu, STATE, 0);
			nr_canceled(cpu, 1)
#endif
		:: else ->
			write_once(cpu, STATE, PENDING | LINKED);
			assert(!fifo);
			fifo = true
		fi;
		atomic { nr = 0; data = 0 }
	:: else
	fi
}

/* revive(), if the work still has @data */
inline revive(cpu)
{
	spin_lock(cpu);
	/* atomic_long_try_cmpxchg() */
#ifdef REVIVED_BLINDLY
	d_step { RMW(cpu) -> ret = 1; mem[STATE] = data & PENDING };
#else
	if
	:: d_step { RMW(cpu) && mem[STATE] == data -> ret = 1; mem[STATE] = data & PENDING }
	:: mem[STATE] != data
	fi;
#endif
	if
	:: ret -> nr_canceled(cpu, 1)
	:: else
	fi;
	spin_unlock(cpu)
}

/* fairwq_claim_as() and fairwq_push_claimed(); @ret: their return value */
inline queue(cpu)
{
	before = runs;
	do
	:: d_step { RMW(cpu) && mem[STATE] == 0 -> mem[STATE] = PENDING };
#ifdef NO_MB_PUSH
		read_once(cpu, NR_CANCELED, nr);
#endif
		/* llist_add() */
		d_step { RMW(cpu) -> assert(!incoming && !fifo); incoming = true }
#ifndef NO_MB_PUSH
		read_once(cpu, NR_CANCELED, nr);
#endif
		if
#ifndef WORD_UNSEEN
		:: nr ->
			/* attend() */
			nr = 0;
			spin_lock(cpu);
			splice_locked(cpu);
			spin_unlock(cpu)
#endif
		:: else -> nr = 0
		fi;
		ret = 1;
		break
	:: mem[STATE] != 0 ->
		smp_mb(cpu);
		read_once(cpu, STATE, data);
		if
#ifdef NOT_REVIVED
		:: data & PENDING -> break
#else
		:: (data & (PENDING | CANCELED)) == PENDING -> break
		:: data & CANCELED -> revive(cpu)
#endif
		:: !data
		fi;
		if
		:: ret -> break
		:: else
		fi
	od;
	atomic {
		owed = owed + ret;
		promised = (!ret && before >= promised -> before + 1 : promised);
		data = 0;
		ret = 0
	}
}

/* Check, when both have returned, that the work is either pending or not. */
inline has_returned()
{
	d_step { sb[0].n + sb[1].n == 0 -> returned++; assert(returned < 2 || !(mem[STATE] & CANCELED)) }
}

/* fairwq_queue() */
proctype first(byte cpu)
{
	byte nr, data, ret;
	short before;
	bool found;

	queue(cpu);
	has_returned()
}

/* fairwq_work_cancel(): cancel_queued(); then fairwq_queue() */
proctype second(byte cpu)
{
	byte nr, data, ret;
	short before;
	bool found;

	spin_lock(cpu);
	splice_locked(cpu);
	read_once(cpu, STATE, data);
	if
	:: !(data & PENDING)
	:: (data & LINKED) && fifo ->
		/* remove_locked(), release_work() */
		fifo = false;
		store_release(cpu, STATE, 0);
		ret = 1
	:: data == PENDING ->
		/* cancel_unlinked_locked() */
		nr_canceled(cpu, 0);
		if
		/* atomic_long_try_cmpxchg() */
#ifdef NO_MB_CANCEL
		:: d_step { mem[STATE] == data -> mem[STATE] = data | CANCELED } ->
#else
		:: d_step { RMW(cpu) && mem[STATE] == data ->
			    mem[STATE] = data | CANCELED } ->
#endif
#ifdef NO_MB_CANCEL
			if
			:: incoming -> splice_locked(cpu)
			:: else
			fi;
#elif !defined(LEFT_BLINDLY)
			smp_mb(cpu);
			splice_locked(cpu);
#endif
			ret = 1
		:: mem[STATE] != data -> nr_canceled(cpu, 1)	/* not found here */
		fi
	fi;
	data = 0;
	spin_unlock(cpu);
	atomic { owed = owed - ret; ret = 0 }
	has_returned();
	if
	:: queue(cpu)
	:: true
	fi
}

/* Poll the batch, take the work and run it. */
proctype runner(byte cpu)
{
	byte nr, data;
	bool found;

end:	do
	:: incoming || fifo ->
		spin_lock(cpu);
		splice_locked(cpu);
		if
		:: fifo ->
			/* fairwq_fifo_take_locked(), fairwq_start_item() */
			fifo = false;
			d_step { RMW(cpu) -> mem[STATE] = 0 }
			spin_unlock(cpu);
			runs++
		:: else -> spin_unlock(cpu)
		fi
	od
}

proctype waiter()
{
	returned == 2 && runs == owed && runs >= promised && !incoming && !fifo &&
	sb[0].n + sb[1].n + sb[2].n == 0 && mem[STATE] == 0;
	assert(!mem[NR_CANCELED])
}

init {
	atomic {
		run memory();
		run first(0);
		run second(1);
		run runner(2);
		run waiter()
	}
}
