/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The end of a batch: batch.c, core/inbox.c, core/push.c and
 * fairwq_fifo_reap_locked() in core/fifo.c, against calls that may still use
 * it.
 *
 * Two holders of references dispose of the batch. Before that, the first one
 * queues an item by fairwq_queue_delayed(), the second one another by
 * fairwq_queue(). A runner runs them. Each step is under a lock, or ordered by
 * RCU, so memory is sequentially consistent. A section under inbox->lock is one
 * step. An item may begin as soon as it is in the inbox. Pauses are left out:
 * they are sections of pool->lock.
 *
 * Holds:
 *	each accepted item runs, or is cancelled, before the batch is reaped;
 *	a queue call that began after a dispose had returned accepts no item;
 *	the batch is reaped once, when nothing is queued, runs or is held;
 *	the batch is freed, and no CPU touches it after that.
 *
 * Case CANCEL: a task without a reference cancels the first item.
 * Case MOD: such a task queues it anew, by fairwq_mod_delayed().
 *
 * Broken SEEN_APART (assertion): a queue call sees that the batch is not
 *	disposed, and accepts the item in a later section.
 * Broken DISPOSE_LEAK (invalid end state): the check for a drained batch is
 *	only made when the batch is disposed.
 * Broken NO_REAPING (assertion): that check ignores @reaping: the batch is
 *	reaped twice.
 * Broken CANCEL FREED_AT_ONCE (assertion): the last put frees the memory,
 *	without a grace period.
 * Broken ACTIVATED_LATE (assertion): the timer leaves its RCU read-side section
 *	before it activates the batch.
 * Broken DELAY_NOT_HELD (assertion): an item that waits for its timer is not
 *	counted.
 */
bool locked;				/* pool->lock */
bool disposed;				/* batch->disposed */
bool reaped, reaping;			/* of the batch */
byte queued;				/* items in the inbox and the FIFO */
bool has_0;				/* item 0 is among them */
bool timer;				/* item 0 waits for its timer */
byte in_flight, nr_held;
byte refs = 3;				/* two holders, and the pool */

bool reap_queued;			/* reap_work is queued */
bool freeing, freed;			/* by call_rcu(); the memory is gone */

byte accepted, ran, cancelled, left;	/* for the properties */
bool told;				/* a dispose has returned */

#define NR_READERS 4			/* two holders, timer, cancel or mod */
byte section[NR_READERS];		/* odd: in an RCU read-side section */

#define rcu_read_lock(p)	section[p]++
#define rcu_read_unlock(p)	section[p]++
#define at_batch()		assert(!freed)

#define spin_lock()	d_step { !locked -> locked = true; at_batch() }
#define spin_unlock()	locked = false

/* batch_last_put() */
inline batch_put()
{
	d_step {
		at_batch();
		assert(refs);
		refs--;
#ifdef FREED_AT_ONCE
		freed = !refs
#else
		freeing = !refs
#endif
	}
}

#define idle	(!queued && !in_flight)

/* fairwq_fifo_reap_locked() */
inline reap_locked()
{
	d_step {
		if
		:: disposed && idle && !nr_held && !reaping ->
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

/* fairwq_reap(), after inbox->lock was dropped */
inline reap()
{
	if
	:: disposed ->
		spin_lock();
		reap_later_locked();
		spin_unlock()
	:: else
	fi
}

/* fairwq_activate(); what it does is in queue.pml. */
#define activate()	spin_lock(); spin_unlock()

/* delay_fn(): fairwq_arrive() */
proctype delay(byte me)
{
end:	do
	:: d_step {
		timer ->
		timer = false;
		rcu_read_lock(me);
#ifndef DELAY_NOT_HELD
		nr_held--;
#endif
		at_batch();
		assert(!reaped);
		queued++;
		has_0 = true
	   }
#ifdef ACTIVATED_LATE
		rcu_read_unlock(me);
		activate()
#else
		activate();
		rcu_read_unlock(me)
#endif
	od
}

/* Item 0 by fairwq_queue_delayed(), item 1 by fairwq_queue() */
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
		assert(refused || (!was && !reaped));
		accepted = accepted + !refused;
		if
		:: !refused && me == 0 ->
			timer = true;
#ifndef DELAY_NOT_HELD
			nr_held++
#endif
		:: !refused && me == 1 -> queued++
		:: else
		fi
	}
	if
	:: !refused && me == 1 -> activate()
	:: else
	fi;
	rcu_read_unlock(me)
}

proctype holder(byte me)
{
	bool was, refused;

	queue(me);
	/* fairwq_batch_dispose(), fairwq_batch_retire() */
	spin_lock();
	disposed = true;
	reap_locked();
	spin_unlock();
	batch_put();
	told = true
}

/* batch_reap_fn() */
proctype reap_fn()
{
end:	do
	:: d_step { reap_queued -> reap_queued = false; at_batch() };
		spin_lock();
		reaped = true;
		spin_unlock();
		/* batch_reap_fn() */
		d_step {
			left++;
			assert(left == 1 && idle && !nr_held);
			assert(ran + cancelled == accepted)
		}
		batch_put()
	od
}

#define over(p)		(seen[p] % 2 == 0 || seen[p] != section[p])

/* batch_free_rcu(), when every section that was entered before has been left */
proctype rcu_free()
{
	byte seen[NR_READERS];

end:	d_step {
		freeing ->
		seen[0] = section[0];
		seen[1] = section[1];
		seen[2] = section[2];
		seen[3] = section[3]
	}
	d_step { over(0) && over(1) && over(2) && over(3) -> freed = true }
}

/* A runner. It takes item 0 first, if that is queued. */
proctype runner()
{
end:	do
	:: d_step {
		/* fairwq_fifo_take_locked() of a batch that is in the tree */
		!locked && queued ->
		at_batch();
		queued--;
		in_flight++;
		has_0 = false
	   }
		d_step { assert(!reaped); ran++ }	/* the function */
		spin_lock();
		/* turn_over_locked() */
		in_flight--;
		reap_later_locked();
		spin_unlock()
	od
}

/* fairwq_try_find() of item 0, as its state says: sets @found */
inline try_take()
{
	if
	:: timer ->
		/* take_delayed() */
		d_step {
			at_batch();
			found = timer;
			timer = false;
			cancelled = found;
			nr_held = nr_held - found
		}
		reap()
	:: has_0 ->
		/* find_queued() */
		spin_lock();
		d_step {
			found = has_0;
			has_0 = false;
			cancelled = found;
			queued = queued - found
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
	/* reserve() */
	d_step { reserved = !disposed && !freed; nr_held = nr_held + reserved }
	if
	:: reserved ->
		try_take();
		if
		:: found ->
			/* fairwq_inbox_delay_locked() */
			assert(!freed && !reaped);
			d_step { timer = true; cancelled = 0 }
		:: else ->
			/* fairwq_inbox_forget_locked() */
			d_step { at_batch(); nr_held-- }
			reap()
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
