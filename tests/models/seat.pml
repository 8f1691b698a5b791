/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Places among the active runners. A runner whose item waits in a join gives its place
 * away, and takes it back without a check. A join ends the turn of its item while other
 * batches wait. leave_locked(), return_locked(), fairwq_fork_await(), yield_turn(),
 * await_turn(), fairwq_fork_resume_locked() and fairwq_fork_promote() in core/fork.c,
 * runner_next_locked() in core/run.c, fairwq_kick_activate_locked() in core/kick.c,
 * unfork_elsewhere() in forkjoin.c.
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
 *	its rest is queued	no		no
 *
 * Holds:
 *	all items end, and each task runs once;
 *	nr_active is as in the table;
 *	a turn is taken only if no more than max_active runners are active;
 *	FAIRWQ_CALL_HUNGRY is set iff fewer are active;
 *	the rest of an item gets one turn.
 *
 * Case ENDLESS: one place. The item forks and joins until all of B has run. It holds no
 *	mutex.
 * Case MAX_ACTIVE: as ENDLESS, but max_active is 1, 2 and 1 again meanwhile.
 * Case PAUSE: another batch has turns all the time, so the pool never stands still.
 *	A is paused until its item has ended. No task holds the mutex.
 * Case TICK: the pool's timer comes once. It must be set while a runner is active.
 * Case LOW_STACK: the item is a chain of tasks, each of which finds too little stack
 *	for the next one.
 *
 * Broken JOIN_ASKS (invalid end state): a runner that has slept in a join waits until
 *	a place is free.
 * Broken SEAT_KEPT (invalid end state): a runner sleeps in a join and keeps its place.
 * Broken LEAVE_QUIET (invalid end state): leave_locked() kicks no runner.
 * Broken RETURN_UNCOUNTED (assertion): return_locked() does not count the runner.
 * Broken RETURN_UNSAID (assertion): return_locked() does not update pool->call.
 * Broken SURPLUS_STAYS (assertion): a runner takes a turn while more than max_active
 *	runners are active.
 * Broken REST_WAITS (invalid end state): the rest of an item has no time limit.
 * Broken RESUMED_UNSEEN (assertion): await_turn() does not look whether the rest is
 *	still queued.
 * Broken ENDLESS YIELD_NEVER (non-progress cycle): a join never ends a turn.
 * Broken ENDLESS WANTED_UNSAID (invalid end state): a kick that finds no place does not
 *	set FAIRWQ_CALL_WANTED.
 * Broken ENDLESS WANTED_KEPT (non-progress cycle): FAIRWQ_CALL_WANTED is left set when
 *	no other batch waits: each join takes the lock.
 * Broken MAX_ACTIVE MAX_UNSAID (assertion): fairwq_pool_set_max_active() does not update
 *	pool->call.
 * Broken PAUSE PART_HELD (invalid end state): a pause holds the rest of an item.
 * Broken TICK RETURN_UNARMED (assertion): return_locked() does not set the timer.
 * Broken LOW_STACK FORCED_BLIND (invalid end state): neither fairwq_fork_promote() nor
 *	unfork_elsewhere() looks whether a runner is idle. One look is enough.
 * Broken LOW_STACK SEAT_KEPT (invalid end state): a runner that waits for a task which
 *	needs another stack keeps its place.
 */
#define RUNNERS	4
#define ITEMS	2		/* of batch B */
#ifdef LOW_STACK
#define TASKS	5		/* the item, and a chain of tasks: more than runners */
#else
#define TASKS	2		/* the item, and its task */
#endif

#define NONE	9		/* the work of a runner: a task, or one of these */
#define ITEM_B	8

#define HUNGRY	1		/* FAIRWQ_CALL_HUNGRY */
#define WANTED	2		/* FAIRWQ_CALL_WANTED */

/* Under pool->lock. */
bool idle[RUNNERS] = true;	/* on pool->idle_runners */
bool kicked[RUNNERS];		/* runner->work is queued */
bool asleep[RUNNERS];		/* in a join, or its rest is queued */
byte nr_active;
#ifdef ENDLESS
byte max_active = 1;
#else
byte max_active = 2;
#endif
byte call = HUNGRY;		/* pool->call */
#ifdef TICK
bool armed;			/* pool->tick is pending */
#define arm()	armed = true	/* fairwq_tick_arm_locked() */
#else
#define armed	true
#define arm()	skip
#endif
bool fifo[TASKS];		/* of batch A: the item, and promoted tasks */
bool due;			/* the next turn must be one of batch B */
bool rest;			/* forker->rest is in the FIFO of batch A */
bool paused;			/* batch A */
byte queued;			/* items of batch B */

bool dropped[TASKS];		/* FAIRWQ_PLACE_DROPPED */
bool done[TASKS];		/* cell->done is completed */
byte forker;			/* the runner of the item */
bool resumed;			/* forker->resumed is completed */
byte begun[TASKS];		/* for the properties */
byte ended;			/* items of batch B */
bool over;			/* the item of A has ended */
byte patience = 2;		/* times that no turn may begin in REST_TICKS */
bool mutex, waits;		/* the mutex is held; the task may wait for batch B */

#ifdef LOW_STACK
#define others_queued	(fifo[0] || fifo[1] || fifo[2] || fifo[3] || fifo[4])
#else
#define others_queued	(fifo[0] || fifo[1])
#endif
/* A pause holds no part of an item that has begun. */
#ifndef PART_HELD
#define eligible_a	(rest || (!paused && others_queued))
#else
#define eligible_a	(!paused && (rest || others_queued))
#endif
#define any_idle	(idle[0] || idle[1] || idle[2] || idle[3])
#define is_active(r)	(!idle[r] && !asleep[r])
#ifdef SURPLUS_STAYS
#define may_stay	true
#else
#define may_stay	(nr_active <= max_active)
#endif
#ifdef FORCED_BLIND
#define blind(force)	(force)
#else
#define blind(force)	false
#endif

/* Check the properties that must hold whenever the lock is free. */
inline unlock()
{
	assert(nr_active == is_active(0) + is_active(1) + is_active(2) + is_active(3));
	assert((call == HUNGRY) == (nr_active < max_active));
	assert(!nr_active || armed)
}

/* fairwq_kick_update_call_locked() */
inline runners_changed()
{
	call = (nr_active < max_active -> HUNGRY : call & WANTED)
}

/* fairwq_kick_activate_locked(), fairwq_kick_send() */
inline activate(r)
{
	if
	:: nr_active >= max_active ->
#ifndef WANTED_UNSAID
		call = (call -> call : WANTED)
#endif
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

/* fairwq_fork_resume_locked() */
inline rest_resume()
{
	assert(rest && !resumed);
	rest = false;
	return_seat(forker);
	resumed = true
}

/* fairwq_tree_pick() */
#define may_pick_a	(eligible_a && !(due && queued))

/* runner_next_locked(), with the kick after it */
inline runner_next(me, r)
{
	atomic {
		do
		:: !may_stay || (!eligible_a && !queued) -> break
		:: may_stay && may_pick_a && rest -> rest_resume(); due = (queued > 0)
		:: may_stay && may_pick_a && !rest ->
			/* The head is the task that was promoted last. */
			r = TASKS;
			do
			:: !fifo[r - 1] -> r--
			:: fifo[r - 1] -> break
			od;
			what = r - 1;
			r = 0;
			fifo[what] = false;
			due = (queued > 0);
			break
		:: may_stay && queued ->
			queued--;
			what = ITEM_B;
			due = false;
			break
		od;
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

/* fairwq_fork_await(): the task has begun, or must run on another stack. */
inline await_done(me, k, r)
{
	if
#ifndef LOW_STACK
	:: done[k]			/* spin_for() */
#endif
	:: atomic {
#ifndef SEAT_KEPT
		asleep[me] = true;
		leave(r);
#endif
		unlock() };
		done[k];
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

/* yield_turn(), and await_turn() */
inline yield_turn(me, r)
{
	atomic {
		if
		:: nr_active < max_active || !queued ->		/* !others_wait_locked() */
#ifndef WANTED_KEPT
			call = call & HUNGRY
#endif
		:: nr_active >= max_active && queued && !any_idle /* !may_yield_locked() */
		:: nr_active >= max_active && queued && any_idle ->
			/* yield_locked(): the next turn may be that of the batch itself. */
			rest = true;
			forker = me;
			asleep[me] = true;
			if
			:: leave(r)
			:: !(due && queued) -> nr_active--; rest_resume(); due = (queued > 0)
			fi;
			unlock();
			yields = true
		fi
	}
	if
	:: yields ->
		do
		:: atomic { resumed -> resumed = false; break }
		/* No turn has begun in REST_TICKS. */
#ifdef RESUMED_UNSEEN
		:: atomic { patience -> patience--; rest_resume(); unlock() }
#elif !defined(REST_WAITS) && !defined(PAUSE)
		:: atomic { rest && patience -> patience--; rest_resume(); unlock() }
		:: atomic { timeout && rest -> rest_resume(); unlock() }
#endif
		od;
		yields = false
	:: else
	fi
}

/* __fairwq_join_called(): the end of a turn. forking() has its promotions. */
inline join_called(me, r)
{
#ifndef YIELD_NEVER
	if
	:: call == WANTED -> yield_turn(me, r)
	:: call != WANTED
	fi
#else
	skip
#endif
}

/* fairwq_fork_promote() */
inline promote(k, force, r)
{
	atomic {
		if
		:: (any_idle || blind(force)) &&
		   (force || (nr_active < max_active && !paused)) ->
			fifo[k] = true;
			done[k] = false;
			dropped[k] = false;
			promoted = true;
			activate(r)
		:: else
		fi;
		unlock()
	}
}
/* fairwq_fork_take_back() */
inline take_back(k)
{
	atomic {
		if
		:: fifo[k] -> fifo[k] = false; dropped[k] = true
		:: else
		fi;
		back = dropped[k];
		unlock()
	}
}

/* The item of A, and the tasks of the chain under LOW_STACK. */
inline forking(me, k, r)
{
#ifdef LOW_STACK
	/* unfork_elsewhere() */
	do
	:: k + 1 == TASKS -> break
	:: k + 1 < TASKS ->
		promoted = false;
		promote(k + 1, true, r);
		if
		:: !promoted -> break			/* refused */
		:: else
		fi;
		if
		:: !any_idle && !blind(true) -> take_back(k + 1)
		:: any_idle || blind(true)
		fi;
		if
		:: back -> break			/* refused */
		:: else
		fi;
		await_done(me, k + 1, r);
		break
	od;
	atomic { back = false; promoted = false }
#else
#if !defined(ENDLESS) && !defined(MAX_ACTIVE) && !defined(PAUSE)
	if
	:: atomic { !mutex -> mutex = true; holds = true }
	:: waits = true
	fi;
#endif
	/* fairwq_fork() */
	if
	:: call & HUNGRY -> promote(1, false, r)
	:: true
	fi;
	/* Joins of other tasks, which no other runner takes. */
	do
#if defined(ENDLESS) || defined(MAX_ACTIVE)
	:: call == WANTED -> join_called(me, r)
	:: ended == ITEMS -> break
#else
	:: call == WANTED -> join_called(me, r); break
	:: break
#endif
	od;
	/* fairwq_join() */
	if
	:: promoted ->
		take_back(1);
		if
		:: !back -> await_done(me, 1, r)
		:: else
		fi
	:: else -> back = true; join_called(me, r)
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
#endif
}

/* fairwq_run() */
proctype runner(byte me)
{
	byte what = NONE, r;
	bool promoted, back, holds, yields;

end:	do
	:: atomic { kicked[me] -> kicked[me] = false };
		do
		:: runner_next(me, r);
			if
			:: what == NONE -> break
			:: what == ITEM_B ->
				atomic { !mutex -> mutex = true };
				atomic { mutex = false; ended++; what = NONE }
#ifdef LOW_STACK
			:: what < TASKS ->
				begun[what]++;
				assert(begun[what] == 1);
				forking(me, what, r);
				atomic {
					done[what] = true;
					over = over || what == 0;
					what = NONE
				}
#else
			:: what == 0 ->
				begun[0]++;
				forking(me, what, r);
				atomic { over = true; what = NONE }
			:: what == 1 ->
				begun[1]++;
				if
				:: waits -> ended > 0
				:: true
				fi;
				atomic { done[1] = true; what = NONE }
#endif
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

/* fairwq_batch_pause(), and a resume when the item has ended. */
proctype pauser()
{
	byte r;

	begun[0] > 0;
	atomic { paused = true; unlock() }
	over;
	atomic { paused = false; kick(r); unlock() }
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
	assert(nr_active == 0 && !rest && !others_queued && !queued && !resumed)
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
#ifdef PAUSE
		run pauser();
#endif
#ifdef TICK
		run timer();
#endif
		run waiter()
	}
}
