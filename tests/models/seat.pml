/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Places among the active runners. A runner whose item waits in a join gives its place
 * away, and takes it back without a check. leave_locked() and return_locked() in
 * core/runner.c, promote_oldest(), fairwq_fork_take_back() and fairwq_fork_await() in
 * core/fork.c, runner_next_locked() in core/run.c, fairwq_kick_activate_locked() in
 * core/kick.c.
 *
 * There are four runners with two places. Batch A has an item, which forks a task and
 * joins it, and may hold a mutex meanwhile. Batch B has two items, which take that mutex.
 * If the forker does not hold it, the task may wait for an item of B. A turn may go to
 * either batch, but B waits for one turn of A at most. Each section under pool->lock is
 * one step here.
 *
 *	State of a runner	In nr_active	On pool->idle_runners
 *	idle			no		yes
 *	kicked or running	yes		no
 *	asleep in a join	no		no
 *
 * Holds:
 *	all items end, and each task runs once;
 *	nr_active is as in the table;
 *	a turn is taken only if no more than max_active runners are active;
 *	pool->hungry is set iff fewer are active.
 *
 * Case MAX_ACTIVE: max_active is 1, 2 and 1 again meanwhile. No item holds the mutex.
 * Case TICK: the pool's timer comes once. It must be set while a runner is active.
 *
 * Broken JOIN_ASKS (invalid end state): a runner that has slept in a join waits until
 *	a place is free.
 * Broken SEAT_KEPT (invalid end state): a runner sleeps in a join and keeps its place.
 * Broken LEAVE_QUIET (invalid end state): leave_locked() kicks no runner.
 * Broken RETURN_UNCOUNTED (assertion): return_locked() does not count the runner.
 * Broken RETURN_UNSAID (assertion): return_locked() does not update pool->hungry.
 * Broken SURPLUS_STAYS (assertion): a runner takes a turn while more than max_active
 *	runners are active.
 * Broken MAX_ACTIVE MAX_UNSAID (assertion): fairwq_pool_set_max_active() does not update
 *	pool->hungry.
 * Broken TICK RETURN_UNARMED (assertion): return_locked() does not set the timer.
 */
#define RUNNERS	4
#define ITEMS	2		/* of batch B */
#define TASKS	2		/* the item of batch A, and its task */

#define NONE	9		/* the work of a runner: one of TASKS, or one of these */
#define ITEM_B	8

/* Under pool->lock. */
bool idle[RUNNERS] = true;	/* on pool->idle_runners */
bool kicked[RUNNERS];		/* runner->work is queued */
bool asleep[RUNNERS];		/* in a join */
byte nr_active;
byte max_active = 2;
bool hungry = true;		/* pool->hungry */
#ifdef TICK
bool armed;			/* pool->tick is pending */
#define arm()	armed = true	/* fairwq_tick_arm_locked() */
#else
#define armed	true
#define arm()	skip
#endif
bool fifo[TASKS];		/* of batch A */
bool due;			/* the next turn must be one of batch B */
byte queued;			/* items of batch B */

bool done;			/* task->done is completed */
byte begun[TASKS];		/* for the properties */
byte ended;			/* items of batch B */
bool over;			/* the item of A has ended */
bool mutex, waits;		/* the mutex is held; the task may wait for batch B */

#define eligible_a	(fifo[0] || fifo[1])
#define any_idle	(idle[0] || idle[1] || idle[2] || idle[3])
#define is_active(r)	(!idle[r] && !asleep[r])
#ifdef SURPLUS_STAYS
#define may_stay	true
#else
#define may_stay	(nr_active <= max_active)
#endif

/* What holds whenever pool->lock is free. */
inline unlock()
{
	assert(nr_active == is_active(0) + is_active(1) + is_active(2) + is_active(3));
	assert(hungry == (nr_active < max_active));
	assert(!nr_active || armed)
}

/* fairwq_kick_update_hungry_locked() */
inline runners_changed()
{
	hungry = (nr_active < max_active)
}

/* fairwq_kick_activate_locked(), fairwq_kick_send() */
inline activate(r)
{
	if
	:: nr_active < max_active && any_idle ->
		r = (idle[0] -> 0 : (idle[1] -> 1 : (idle[2] -> 2 : 3)));
		idle[r] = false;
		nr_active++;
		runners_changed();
		arm();
		assert(!kicked[r]);
		kicked[r] = true;
		r = 0
	:: else
	fi
}

/* fairwq_kick_locked() */
inline kick(r)
{
	if
	:: queued || eligible_a -> activate(r)
	:: else
	fi
}

/* leave_locked() */
inline leave(r)
{
	nr_active--;
	runners_changed();
#ifndef LEAVE_QUIET
	kick(r)
#endif
}

/* return_locked() */
inline return_seat(me)
{
	asleep[me] = false;
#ifndef RETURN_UNCOUNTED
	nr_active++;
#endif
#ifndef RETURN_UNARMED
	arm();
#endif
#ifndef RETURN_UNSAID
	runners_changed()
#endif
}

/* fairwq_tree_pick() */
#define may_pick_a	(eligible_a && !(due && queued))

/* runner_next_locked(), with the kick after it */
inline runner_next(me, r)
{
	atomic {
		if
		:: !may_stay || (!eligible_a && !queued)
		:: may_stay && may_pick_a ->
			/* The head is the task, if it was promoted. */
			what = (fifo[1] -> 1 : 0);
			fifo[what] = false;
			due = (queued > 0)
		:: may_stay && queued ->
			queued--;
			what = ITEM_B;
			due = false
		fi;
		if
		:: what == NONE ->
			/* go_idle_locked() */
			idle[me] = true;
			nr_active--;
			runners_changed()
		:: else -> assert(nr_active <= max_active)
		fi;
		kick(r);
		unlock()
	}
}

/* fairwq_fork_await(): the task has begun. */
inline await_done(me, r)
{
	if
	:: done				/* spin_for() */
	:: atomic {
#ifndef SEAT_KEPT
		asleep[me] = true;
		leave(r);
#endif
		unlock() };
		done;
		atomic {
#ifdef JOIN_ASKS
		nr_active < max_active;
#endif
#ifndef SEAT_KEPT
		return_seat(me);
#endif
		unlock() }
	fi
}

/* promote_oldest() */
inline promote(r)
{
	atomic {
		if
		:: any_idle && nr_active < max_active ->
			fifo[1] = true;
			promoted = true;
			activate(r)
		:: else
		fi;
		unlock()
	}
}

/* fairwq_fork_take_back() */
inline take_back()
{
	atomic { back = fifo[1]; fifo[1] = false; unlock() }
}

/* The item of A. */
inline forking(me, r)
{
#ifndef MAX_ACTIVE
	if
	:: atomic { !mutex -> mutex = true; holds = true }
	:: waits = true
	fi;
#endif
	/* fairwq_fork() */
	if
	:: hungry -> promote(r)
	:: true
	fi;
	/* fairwq_join() */
	if
	:: promoted ->
		take_back();
		if
		:: !back -> await_done(me, r)
		:: else
		fi
	:: else -> back = true
	fi;
	if
	:: back -> begun[1]++
	:: else
	fi;
	atomic {
		assert(begun[1] == 1);
		back = false;
		promoted = false;
		if
		:: holds -> holds = false; mutex = false
		:: else
		fi
	}
}

/* fairwq_run() */
proctype runner(byte me)
{
	byte what = NONE, r;
	bool promoted, back, holds;

end:	do
	:: atomic { kicked[me] -> kicked[me] = false };
		do
		:: runner_next(me, r);
			if
			:: what == NONE -> break
			:: what == ITEM_B ->
				atomic { !mutex -> mutex = true };
				atomic { mutex = false; ended++; what = NONE }
			:: what == 0 ->
				begun[0]++;
				forking(me, r);
				atomic { over = true; what = NONE }
			:: what == 1 ->
				begun[1]++;
				if
				:: waits -> ended > 0
				:: true
				fi;
				atomic { done = true; what = NONE }
			fi
		od
	od
}

/* Queue calls. */
proctype producer()
{
	byte r, i;

	atomic { fifo[0] = true; kick(r); unlock() }
	do
	:: atomic { i < ITEMS -> i++; queued++; kick(r); unlock() }
	:: i == ITEMS -> break
	od
}

/* fairwq_pool_set_max_active() */
proctype tuner()
{
	byte r, i;

	do
	:: i < 3 ->
		atomic {
			max_active = (i == 1 -> 2 : 1);
#ifndef MAX_UNSAID
			runners_changed();
#endif
			i++;
			kick(r);	/* fairwq_kick_unlock() */
			unlock()
		}
	:: else -> break
	od
}

#ifdef TICK
/* watchdog_fn() */
proctype timer()
{
	atomic { armed -> armed = (nr_active > 0); unlock() }
}
#endif

proctype waiter()
{
	over && ended == ITEMS && idle[0] && idle[1] && idle[2] && idle[3];
	assert(nr_active == 0 && !eligible_a && !queued)
}

init {
	atomic {
		run runner(0);
		run runner(1);
		run runner(2);
		run runner(3);
		run producer();
#ifdef MAX_ACTIVE
		run tuner();
#endif
#ifdef TICK
		run timer();
#endif
		run waiter()
	}
}
