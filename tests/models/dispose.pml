/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The end of a batch: batch.c, core/inbox.c, core/push.c and fairwq_fifo_reap_locked() in
 * core/fifo.c, against the calls that may still use the batch.
 *
 * Two holders of references queue an item each and dispose of the batch. A runner
 * runs the accepted items. Each step here is under a lock, or ordered by RCU.
 * Therefore memory is sequentially consistent here. A section under inbox->lock is one step.
 *
 * Holds:
 *	each accepted item runs, or is cancelled, before the batch is reaped;
 *	a queue call that began after a dispose had returned accepts no item;
 *	the batch is reaped once, when nothing is queued, runs or is held;
 *	the batch is freed, and no CPU touches it after that.
 *
 * Case DELAYED: the first item is queued by fairwq_queue_delayed().
 * Case CANCEL: a task without a reference cancels the first item.
 * Case MOD: a task without a reference queues the first item anew, by fairwq_mod_delayed().
 * Case PAUSE: the second holder pauses the batch, and leaves the dispose to the first.
 *
 * Broken SEEN_APART (assertion): a queue call sees that the batch is not disposed, and accepts
 *	the item in a later section.
 * Broken DISPOSE_NONEMPTY (assertion): a disposed batch counts as drained.
 * Broken DISPOSE_LEAK (invalid end state): the check for a drained batch is only
 *	made when the batch is disposed.
 * Broken DISPOSE_TWICE (assertion): each call of dispose lets the batch be reaped.
 * Broken CANCEL NO_REAPING (assertion): that check ignores @reaping: reap_work is
 *	queued again while the batch is reaped, and runs after it is freed.
 * Broken CANCEL FREED_AT_ONCE (assertion): the last put frees the memory, without a
 *	grace period.
 * Broken DELAYED ACTIVATED_LATE (assertion): the timer leaves its RCU read-side section
 *	before it activates the batch.
 * Broken DELAYED DELAY_NOT_HELD (assertion): the batch does not count an item that waits for
 *	its timer.
 * Broken MOD MOD_NOT_HELD (assertion): nor an item that is about to move to it.
 * Broken PAUSE PAUSED_FOR_EVER (invalid end state): a batch can be paused after
 *	it was disposed.
 */
bool locked;				/* pool->lock */
bool disposed;				/* FAIRWQ_BATCH_DISPOSED in batch->flags */
bool reaped, reaping, paused;		/* of the batch */
byte inbox, fifo;			/* numbers of items */
bool in_inbox, in_fifo;			/* item 0 is among them */
bool timer;				/* item 0 waits for its timer */
byte in_flight, nr_held;
byte refs = 3;				/* two holders, and the pool */

bool reap_queued;			/* reap_work is queued */
bool freeing, freed;			/* call_rcu() was called; the memory is gone */

byte accepted, ran, cancelled, left;	/* for the properties */
bool told;				/* a dispose has returned */

#define NR_READERS 4			/* holders 0 and 1, timer, cancel or mod */
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
		seen[3] = section[3]
	}
	d_step {
		over(0) && over(1) && over(2) && over(3) ->
		seen[0] = 0; seen[1] = 0; seen[2] = 0; seen[3] = 0
	}
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

#define idle	(!fifo && !inbox && !in_flight)
#ifdef DISPOSE_NONEMPTY
#define drained	disposed
#else
#define drained	(disposed && idle && !nr_held)
#endif

/* fairwq_fifo_reap_locked() */
inline reap_locked()
{
	d_step {
		if
		:: drained && !reaping ->
#ifndef NO_REAPING
			reaping = true;
#endif
			at_batch();
			reap_queued = true
		:: else
		fi
	}
}

#ifdef DISPOSE_LEAK
#define reap_later_locked()	skip
#else
#define reap_later_locked()	reap_locked()
#endif

/* fairwq_inbox_take_over_locked() */
inline take_over_locked()
{
	d_step {
		fifo = fifo + inbox;
		in_fifo = in_fifo || in_inbox;
		inbox = 0;
		in_inbox = false
	}
}

/* fairwq_activate(); queue.pml has the condition for it */
inline activate()
{
	spin_lock();
	take_over_locked();	/* fairwq_fifo_update_locked() */
	spin_unlock()
}

/* fairwq_inbox_link_locked() */
#define link(item)	at_batch(); assert(!reaped); inbox++; in_inbox = (item == 0 || in_inbox)

/* fairwq_delay_timer_fn() */
proctype delay(byte me)
{
end:	do
	:: d_step { timer -> timer = false; rcu_read_lock(me);
#ifndef DELAY_NOT_HELD
		    nr_held--;
#endif
		    link(0) };
#ifdef ACTIVATED_LATE
		rcu_read_unlock(me);
		activate()
#else
		activate();
		rcu_read_unlock(me)
#endif
	od
}

/* fairwq_queue(), or fairwq_queue_delayed() */
inline queue(me)
{
	was = told;
	rcu_read_lock(me);
#ifdef SEEN_APART
	d_step { at_batch(); refused = disposed }
#endif
	/* fairwq_claim_locked() */
	d_step {
		at_batch();
#ifndef SEEN_APART
		refused = disposed;
#endif
		if
		:: !refused ->
			assert(!was);
			accepted++;
			if
#ifdef DELAYED
			:: me == 0 ->
				timer = true;
#ifndef DELAY_NOT_HELD
				nr_held++
#endif
			:: me != 0 -> link(me)
#else
			:: true -> link(me)
#endif
			fi
		:: else
		fi
	}
	if
	:: !refused -> activate()
	:: else
	fi;
	rcu_read_unlock(me)
}

/* fairwq_batch_dispose() */
inline dispose()
{
	/* fairwq_batch_retire() */
	spin_lock();
	d_step { was = disposed; disposed = true; paused = false }
#ifdef DISPOSE_TWICE
	d_step { reaping = reaping && !was; reap_queued = reap_queued || was }
#endif
	reap_locked();
	spin_unlock();
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
		spin_lock();
#ifdef PAUSED_FOR_EVER
		paused = true;
#else
		paused = paused || !disposed;
#endif
		spin_unlock();
		batch_put()
	:: else -> dispose()
	fi
#else
	dispose()
#endif
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
proctype runner()
{
end:	do
	:: d_step {
		/* fairwq_fifo_take_locked() of a batch that is in the tree */
		!locked && fifo && !paused ->
		at_batch();
		fifo--;
		in_flight++;
		in_fifo = false
	   }
		d_step { assert(!reaped); ran++ }	/* the function */
		spin_lock();
		/* fairwq_fifo_turn_over_locked() */
		in_flight--;
		reap_later_locked();
		spin_unlock()
	od
}

#ifdef CANCEL
#define was_taken	cancelled++
#else
#define was_taken	skip
#endif

/* fairwq_try_take() of item 0, as its state says. Return: @found */
inline try_take()
{
	found = false;
	if
	:: timer ->
		/* take_delayed() */
		d_step {
			at_batch();
			if
			:: timer ->
				timer = false;
				found = true;
				was_taken;
				nr_held--
			:: else
			fi
		}
		spin_lock();
		reap_later_locked();	/* fairwq_reap() */
		spin_unlock()
	:: !timer && (in_inbox || in_fifo) ->
		/* take_queued() */
		spin_lock();
		take_over_locked();
		d_step {
			if
			:: in_fifo -> fifo--; in_fifo = false; found = true; was_taken
			:: else
			fi
		}
		reap_later_locked();
		spin_unlock()
	:: else
	fi
}

/* fairwq_work_cancel() of item 0 */
proctype cancel(byte me)
{
	bool found;

	rcu_read_lock(me);
	try_take();
	rcu_read_unlock(me)
}

/* fairwq_mod_delayed() of item 0, to the batch that it is in */
proctype mod(byte me)
{
	bool found, reserved;

	rcu_read_lock(me);
	d_step {
		/* reserve() */
		if
		:: !disposed && !freed ->
			reserved = true;
#ifndef MOD_NOT_HELD
			nr_held++
#endif
		:: else
		fi
	}
	if
	:: reserved ->
		try_take();
		if
		:: found ->
			/* fairwq_inbox_delay_locked() */
			d_step { at_batch(); assert(!reaped); timer = true
#ifdef MOD_NOT_HELD
				 ; nr_held++
#endif
			}
		:: !found ->
#ifndef MOD_NOT_HELD
			/* unreserve() */
			d_step { at_batch(); nr_held-- }
			spin_lock();
			reap_later_locked();
			spin_unlock()
#else
			skip
#endif
		fi
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
		run reap_fn();
		run rcu_free();
		run runner();
#ifdef CANCEL
		run cancel(3);
#endif
#ifdef MOD
		run mod(3);
#endif
		run delay(2);
		run waiter()
	}
}
