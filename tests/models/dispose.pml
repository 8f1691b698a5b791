/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The end of a batch: batch.c and fairwq_fifo_reap_locked() in core/fifo.c,
 * against the calls that may still use the batch.
 *
 * Two holders of references queue an item each and dispose of the batch. RCU closes
 * it; so does a call that waits, after a grace period of its own. A runner
 * runs the accepted items. Each step here is under the lock, an atomic
 * read-modify-write, or ordered by RCU. Therefore memory is sequentially consistent
 * here, and the model does not use the store buffers of memory.pml.
 *
 * Holds:
 *	each accepted item runs, or is cancelled, before the batch is reaped;
 *	a queue call that began after a dispose had returned accepts no item;
 *	the batch is reaped once, when nothing is queued, runs or is delayed;
 *	the batch is freed, and no CPU touches it after that.
 *
 * Case DELAYED: the first item is queued by fairwq_queue_delayed().
 * Case CANCEL: a task without a reference cancels the first item.
 * Case PAUSE: the second holder pauses the batch, and leaves the dispose to the first.
 * Case SHUTDOWN: a third holder shuts the batch down.
 *
 * Broken DISPOSE_NO_GRACE (assertion): the batch is closed without a grace period.
 * Broken DISPOSE_NONEMPTY (assertion): a closed batch counts as drained.
 * Broken DISPOSE_LEAK (invalid end state): the check for a drained batch is only
 *	made when the batch is closed.
 * Broken DISPOSE_TWICE (assertion): each call of dispose lets the batch be reaped.
 * Broken SHUTDOWN CLOSED_TWICE (assertion): a batch that is closed once more is
 *	reaped once more.
 * Broken SHUTDOWN NOT_KEPT (assertion): RCU closes the batch without a reference to it.
 * Broken SHUTDOWN CLOSED_EARLY (assertion): a shutdown closes the batch without a grace
 *	period.
 * Broken CANCEL NO_REAPING (assertion): that check ignores @reaping: reap_work is
 *	queued again while the batch is reaped, and runs after it is freed.
 * Broken CANCEL FREED_AT_ONCE (assertion): the last put frees the memory, without a
 *	grace period.
 * Broken DELAYED DELAY_NOT_HELD (assertion): a delayed work does not pin the
 *	batch.
 * Broken DELAYED HELD_LATE (assertion): it does, but outside the RCU read-side
 *	section in which the call was not refused.
 * Broken PAUSE PAUSED_FOR_EVER (invalid end state): a batch can be paused after
 *	it was disposed.
 */
#define ITEMS	2

bool locked;				/* pool->lock */
bool disposed;				/* FAIRWQ_BATCH_DISPOSED in batch->flags */
bool closed, reaped, reaping, paused;	/* of the batch */
byte incoming, fifo;			/* numbers of items */
bool in_incoming, in_fifo;		/* item 0 is among them */
byte in_flight, nr_held;
#ifdef SHUTDOWN
byte refs = 4;				/* three holders, and the pool */
#else
byte refs = 3;				/* two holders, and the pool */
#endif

bool reap_grace;			/* call_rcu() was called for batch_grace_over() */
bool reap_queued;			/* reap_work is queued */
bool freeing, freed;			/* call_rcu() was called; the memory is gone */

bool pending;				/* item 0, in work->data */
byte accepted, ran, cancelled, left;	/* for the properties */
bool told;				/* a dispose has returned */

#define NR_READERS 5			/* holders 0 and 1, timer, cancel, runner */
byte section[NR_READERS];		/* odd: in an RCU read-side section */

#define rcu_read_lock(p)	section[p]++
#define rcu_read_unlock(p)	section[p]++
#define at_batch()		assert(!freed)

#define spin_lock()	d_step { !locked -> locked = true; at_batch() }
#define spin_unlock()	locked = false

#define over(p)		(seen[p] % 2 == 0 || seen[p] != section[p])

/* Wait until every section that was entered before has been left. */
inline grace_period()
{
	d_step {
		seen[0] = section[0]; seen[1] = section[1]; seen[2] = section[2];
		seen[3] = section[3]; seen[4] = section[4]
	}
	d_step {
		over(0) && over(1) && over(2) && over(3) && over(4) ->
		seen[0] = 0; seen[1] = 0; seen[2] = 0; seen[3] = 0; seen[4] = 0
	}
}

/* queue_work() of reap_work */
inline queue_reap_work()
{
	d_step { at_batch(); reap_queued = true }
}

/* batch_last_put() */
inline batch_put()
{
	d_step {
		at_batch();
		assert(refs);
		refs--;
		if
#ifdef FREED_AT_ONCE
		:: !refs -> freed = true
#else
		:: !refs -> freeing = true
#endif
		:: else
		fi
	}
}

#define idle	(!fifo && !incoming && !in_flight)
#ifdef DISPOSE_NONEMPTY
#define empty	true
#else
#define empty	(idle && !nr_held)
#endif
#define drained	(closed && empty)

inline start_reaping()
{
#ifndef NO_REAPING
	reaping = true;
#endif
	queue_reap_work()
}

/* fairwq_fifo_reap_locked() */
inline reap_locked()
{
	if
#ifndef DISPOSE_LEAK
	:: drained && !reaping -> start_reaping()
#endif
	:: else
	fi
}

/* fairwq_batch_close() */
inline close_batch()
{
	spin_lock();
	if
#ifdef CLOSED_TWICE
	:: empty -> closed = true; queue_reap_work()
#else
	:: !closed && empty && !reaping -> closed = true; start_reaping()
#endif
	:: else -> closed = true
	fi;
	spin_unlock()
}

/* fairwq_fifo_splice_locked() */
inline splice_locked()
{
	d_step {
		fifo = fifo + incoming;
		in_fifo = in_fifo || in_incoming;
		incoming = 0;
		in_incoming = false
	}
}

/* fairwq_push_claimed(); queue.pml has the condition for attend() */
inline push_claimed(item)
{
	d_step { at_batch(); assert(!reaped); incoming++; in_incoming = (item == 0 || in_incoming) }
	spin_lock();
	splice_locked();	/* fairwq_fifo_update_locked() */
	reap_locked();
	spin_unlock()
}

#ifdef DELAYED
bool timer;		/* is set */

/* fairwq_delays_timer_fn(), fairwq_push_held() */
proctype delay(byte me)
{
end:	timer;
	push_claimed(0);
	/* fairwq_unpin() */
	rcu_read_lock(me);
	spin_lock();
#ifndef DELAY_NOT_HELD
	nr_held--;
#endif
	reap_locked();
	spin_unlock();
	rcu_read_unlock(me)
}
#endif

/* fairwq_queue(), or fairwq_queue_delayed() */
inline queue(me)
{
	was = told;
	rcu_read_lock(me);
	d_step { at_batch(); refused = disposed }	/* fairwq_refusal() */
	if
	:: !refused ->
		d_step {
			assert(!was);
			accepted++;
			pending = pending || me == 0	/* fairwq_claim_as() */
		}
#ifdef DELAYED
		if
		:: me == 0 ->
#ifdef HELD_LATE
			rcu_read_unlock(me);
#endif
#ifndef DELAY_NOT_HELD
			d_step { at_batch(); nr_held++ }	/* fairwq_pin() */
#endif
#ifdef HELD_LATE
			rcu_read_lock(me);
#endif
			timer = true
		:: else -> push_claimed(me)
		fi
#else
		push_claimed(me)
#endif
	:: else
	fi;
	rcu_read_unlock(me)
}

/* fairwq_batch_retire() */
inline retire()
{
	spin_lock();
	d_step { was = disposed; disposed = true; paused = false }
	spin_unlock();
	if
	:: !was ->
#ifdef DISPOSE_NO_GRACE
		close_batch()
#else
		/* fairwq_call_rcu() */
#ifdef NOT_KEPT
		d_step { at_batch(); reap_grace = true }
#else
		d_step { at_batch(); refs++; reap_grace = true }
#endif
#endif
#ifdef DISPOSE_TWICE
	:: was -> queue_reap_work()
#else
	:: else
#endif
	fi
}

/* fairwq_batch_dispose() */
inline dispose()
{
	retire();
	batch_put();
	told = true
}

proctype holder(byte me)
{
	bool was, refused;

	queue(me);
#ifdef PAUSE
	if
	:: me == 1 ->
		/* fairwq_batch_pause() */
		rcu_read_lock(me);
		spin_lock();
#ifdef PAUSED_FOR_EVER
		paused = true;
#else
		paused = paused || !disposed;
#endif
		spin_unlock();
		rcu_read_unlock(me)
	:: else
	fi;
#endif
#ifdef PAUSE
	if
	:: me == 1 -> batch_put()
	:: else -> dispose()
	fi
#else
	dispose()
#endif
}

#ifdef SHUTDOWN
/* fairwq_batch_shutdown(): shutdown_begin(), then it waits */
proctype shutdown()
{
	byte seen[NR_READERS];
	bool was;

	retire();
#ifndef CLOSED_EARLY
	grace_period();		/* fairwq_batch_wait_grace() */
#endif
	close_batch();
	left;
	batch_put()
}
#endif

/* A grace period after dispose: batch_grace_over() */
proctype grace_over()
{
	byte seen[NR_READERS];

end:	do
	:: reap_grace ->
		grace_period();
		reap_grace = false;
		close_batch();
#ifndef NOT_KEPT
		batch_put()
#endif
	od
}

/* batch_reap_fn() */
proctype reap_fn()
{
end:	do
	:: d_step { reap_queued -> reap_queued = false; at_batch() };
		spin_lock();
		reaped = true;
		spin_unlock();
		/* batch_leave() */
		d_step {
			left++;
			assert(left == 1 && idle && !nr_held);
			assert(ran + cancelled == accepted)
		}
		batch_put()
	od
}

/* batch_free_rcu() */
proctype rcu_free()
{
	byte seen[NR_READERS];

end:	freeing;
	grace_period();
	freed = true
}

/* A runner. It takes item 0 first, if that is in the FIFO. */
proctype runner(byte me)
{
end:	do
	:: d_step {
		/* fairwq_fifo_take_locked() of a batch that is in the tree */
		!locked && fifo && !paused ->
		at_batch();
		fifo--;
		in_flight++;
		in_fifo = false;
		pending = false
	   }
		d_step { assert(!reaped); ran++ }	/* the function */
		spin_lock();
		/* fairwq_fifo_turn_over_locked() */
		in_flight--;
		reap_locked();
		spin_unlock()
	od
}

/* fairwq_try_cancel() of item 0 */
proctype cancel(byte me)
{
	bool found;

	rcu_read_lock(me);
	found = pending;
	if
	:: found ->
		/* cancel_queued() */
		spin_lock();
		splice_locked();
		if
		:: in_fifo ->
			d_step { fifo--; in_fifo = false; pending = false; cancelled++ }
		:: else
		fi;
		reap_locked();
		spin_unlock()
	:: else
	fi;
	rcu_read_unlock(me)
}

proctype waiter()
{
	freed;
	assert(left == 1 && ran + cancelled == accepted)
}

init {
	atomic {
		run holder(0);
		run holder(1);
		run grace_over();
#ifdef SHUTDOWN
		run shutdown();
#endif
		run reap_fn();
		run rcu_free();
		run runner(4);
#ifdef CANCEL
		run cancel(3);
#endif
#ifdef DELAYED
		run delay(2);
#endif
		run waiter()
	}
}
