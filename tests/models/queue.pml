/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queue: queue calls, runners that go idle, and kicks. core/inbox.c, push.c,
 * fifo.c, seat.c, run.c and watchdog.c.
 *
 * Two producers push three items to one batch. Two runners take them, one turn
 * at a time. The first item may sleep until the last has run.
 *
 * Holds:
 *	every item runs once;
 *	the items of one producer are taken in order;
 *	no item is left behind while a runner is idle and another item sleeps;
 *	a runner is kicked only when it is idle.
 *
 * Every step is under pool->lock or inbox->lock. So memory is sequentially
 * consistent here, but for the look at @watched without the second, which is
 * not modelled. A section under inbox->lock is one step. How many runners may
 * work is in seat.pml.
 *
 * Case QUICK: items usually end at once, so a runner that runs one is expected
 *	to take the next. If it is late, the tick must find that.
 *
 * Broken WATCHED_LATE (invalid end state): fairwq_fifo_take_over_locked()
 *	looks first, then clears @watched in a later section.
 * Broken NOT_ACTIVATED (invalid end state): a queue call that has set @watched
 *	does not activate the batch if a runner is active.
 * Broken KICK_NOT_CHAINED (invalid end state): a runner that leaves a backlog
 *	in the tree does not kick the next runner.
 * Broken IDLE_APART (invalid end state): a runner that has seen an empty tree
 *	goes idle in a later lock section.
 * Broken QUICK NO_TICK (invalid end state): no tick is started in place of a
 *	kick.
 */
#define spin_lock()	d_step { !locked -> locked = true }
#define spin_unlock()	locked = false

#define ITEMS	3		/* 0 and 1 of producer 0, 2 of producer 1 */
#define NONE	9

bool locked;				/* pool->lock */
bool watched;				/* batch->inbox.watched */
chan inbox = [ITEMS] of { byte };	/* batch->inbox.works */
chan fifo = [ITEMS] of { byte };	/* batch->fifo */
bool eligible;				/* batch->node is in pool->tree */
bool idle[2] = true;			/* on crew.idle */
bool kicked[2];				/* runner->work is queued */
bool runs[ITEMS], taken[ITEMS];		/* for the properties */
byte nr_quick;				/* pool->crew.nr_quick */
bool ticking;				/* the timer is due at the next tick */
byte patience = 2;			/* ticks until an item is late */

/* fairwq_seat_soon_free_locked(): by chance, because the model has no time. */
inline is_soon_free_locked()
{
	if
	:: nr_quick ->
		soon = true;
#ifndef NO_TICK
		ticking = true		/* timer_reduce() */
#endif
	:: soon = false
	fi
}

/* fairwq_seat_take_locked() */
inline wake_locked()
{
	if
	:: idle[0] -> kick = 0
	:: !idle[0] && idle[1] -> kick = 1
	:: else
	fi;
	if
	:: kick != NONE -> idle[kick] = false
	:: else
	fi
}

/* Drop the lock. fairwq_kick_send() */
inline unlock_and_kick()
{
	spin_unlock();
	atomic {
		if
		:: kick != NONE ->
			assert(!kicked[kick]);
			kicked[kick] = true;
			kick = NONE
		:: else
		fi
	}
}

/* fairwq_kick_unlock() */
inline kick_unlock()
{
	atomic {
		is_soon_free_locked();
		if
		:: eligible && !soon -> wake_locked()
		:: else
		fi;
		soon = false
	}
	unlock_and_kick()
}

/* fairwq_fifo_take_over_locked() */
inline take_over_locked()
{
	d_step {
		do
		:: inbox?work -> fifo!work
		:: empty(inbox) -> break
		od;
		work = NONE;
#ifndef WATCHED_LATE
		watched = nempty(fifo)
#endif
	}
#ifdef WATCHED_LATE
	watched = nempty(fifo)
#endif
}

/* fairwq_fifo_update_locked() */
inline update_locked()
{
	if
	:: empty(fifo) -> take_over_locked()
	:: nempty(fifo)
	fi;
	eligible = nempty(fifo)
}

/* fairwq_queue() */
proctype producer(byte item; byte last)
{
	byte work = NONE, kick = NONE;
	bool first, soon;

	do
	:: item <= last ->
		d_step { inbox!item; item++; first = !watched; watched = true }
		if
#ifdef NOT_ACTIVATED
		:: first && idle[0] && idle[1] ->
#else
		:: first ->
#endif
			/* fairwq_activate() */
			spin_lock();
			update_locked();
			kick_unlock()
		:: else
		fi;
		first = false
	:: else -> break
	od
}

/* runner_next_locked(): sets @taking, if there is more. */
inline runner_next(me)
{
	spin_lock();
	atomic {
		/* fairwq_fifo_turn_end_locked(), is_surplus_locked() */
		nr_quick = nr_quick - quick;
		if
		:: quick -> is_soon_free_locked()
		:: else
		fi;
		quick = false
	}
	if
	:: eligible && !soon ->
		/* fairwq_fifo_take_locked() */
		d_step {
			fifo?taking;
			assert(!taken[taking] && (taking != 1 || taken[0]));
			taken[taking] = true
		}
		update_locked();
#ifdef QUICK
		/* take_turn_locked() */
		atomic { nr_quick++; quick = true }
#endif
	:: !eligible || soon
#ifndef IDLE_APART
		-> idle[me] = true	/* fairwq_seat_leave_locked() */
#endif
	fi;
#ifdef KICK_NOT_CHAINED
	spin_unlock()
#else
	if
	:: taking != NONE -> kick_unlock()
	:: else -> soon = false; spin_unlock()	/* goes idle */
	fi
#endif
}

/* fairwq_run() */
proctype runner(byte me)
{
	byte work = NONE, kick = NONE, taking = NONE;
	bool soon, quick;

end:	do
	:: d_step { kicked[me] -> kicked[me] = false };
		do
		:: runner_next(me);
			/* run_turn() */
			if
			:: taking == NONE ->
#ifdef IDLE_APART
				d_step { !locked -> idle[me] = true }
#endif
				break
			:: taking == 0 -> runs[2]	/* it sleeps */
			:: taking != NONE
			fi;
			d_step { runs[taking] = true; taking = NONE }
		od
	od
}

#ifdef QUICK
/* look() in watchdog.c */
proctype tick()
{
	byte kick = NONE;
	bool slow;

end:	do
	:: ticking ->
		spin_lock();
		atomic {
			ticking = false;
			slow = nr_quick && !patience;
			if
			:: slow && eligible -> wake_locked()
			:: nr_quick && !slow ->
				patience--;
				ticking = true
			:: else
			fi
		}
		unlock_and_kick()
	od
}
#endif

/* Wait until no item is left. A state without this is an invalid end state. */
proctype waiter()
{
	runs[0] && runs[1] && runs[2];
	assert(empty(fifo) && empty(inbox))
}

init {
	atomic {
		run producer(0, 1);
		run producer(2, 2);
		run runner(0);
		run runner(1);
#ifdef QUICK
		run tick();
#endif
		run waiter()
	}
}
