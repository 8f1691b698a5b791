/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Seats. A runner whose item waits in a join gives its seat away, and takes it
 * back without a check. So does one whose item sleeps, when the scheduler says
 * so, or a tick finds it: at any moment here. If fewer than max_active of those
 * that are active have not just slept, one more may begin.
 * core/seat.c, core/asleep.c; promote_oldest(), take_back() and await_stolen()
 * in core/fork.c, runner_next_locked() in core/run.c.
 * fork.pml has what the task and its join see of each other.
 *
 * There are four runners with one seat, for a while with two. Batch A has an
 * item, which forks a task and joins it, and may hold a mutex meanwhile. Batch
 * B has two items, which take that mutex; one may first wait for the other. If
 * the forker does not hold the mutex, the task waits for an item of B. A turn
 * may go to either batch. Each section under pool->lock is one step.
 *
 *	State of a runner	In nr_active	On crew.idle
 *	idle			no		yes
 *	kicked or running	yes		no
 *	asleep			no		no
 *
 * Holds:
 *	all items and the task end;
 *	nr_active is as in the table, and nr_napping counts those of it that
 *	have just slept;
 *	a turn is taken only if no more than max_active runners are active, that
 *	have not just slept;
 *	crew.hungry is set iff fewer are active.
 *
 * Broken NO_TICK (invalid end state): nothing finds an item that sleeps.
 * Broken TICK_QUIET (invalid end state): one that does kicks no runner.
 * Broken NOT_RETURNED (assertion): a turn ends, and the seat is not counted.
 * Broken JOIN_ASKS (invalid end state): a runner that has slept in a join waits
 *	for a seat.
 * Broken SURPLUS_STAYS (assertion): a runner takes a turn while more than
 *	max_active runners are active.
 * Broken NAPS_STAY (assertion): the end of a turn does not lower nr_napping.
 * Broken MAX_UNSAID (assertion): a new max_active does not update crew.hungry.
 */
#define RUNNERS	4
#define ITEMS	2		/* of batch B */

mtype = { ITEM_A, ITEM_B, TASK };		/* what a runner has, or 0 */
mtype = { PRIVATE, PROMOTED, BEGUN, DONE };	/* states of the task */

/* Under pool->lock. */
bool idle[RUNNERS] = true;	/* on crew.idle */
bool kicked[RUNNERS];		/* runner->work is queued */
bool asleep[RUNNERS];		/* without a seat: not runner->seated */
bool joins[RUNNERS];		/* runner->nr_blocks is not 0 */
bool naps[RUNNERS];		/* runner->naps is not 0 */
byte nr_active, nr_napping;
byte max_active = 1;
bool hungry = true;		/* crew.hungry */
bool item_a;			/* is queued */
byte task = PRIVATE;
byte queued;			/* items of batch B */

bool late;			/* watch.quiet: no turn has begun for a while */

/* For the properties. */
bool sleeps[RUNNERS];		/* the task of the item sleeps */
byte ended;			/* items of batch B */
bool over;			/* the item of A has ended */
bool mutex, waits;		/* mutex is held; the task waits for batch B */

#define eligible_a	(item_a || task == PROMOTED)
#define any_idle	(idle[0] || idle[1] || idle[2] || idle[3])
#define is_active(r)	(!idle[r] && !asleep[r])
#define loses(r)	(sleeps[r] && is_active(r) && !joins[r])
/* fairwq_seat_may_exceed_locked() */
#define may_exceed(mine) (nr_active - mine - nr_napping < max_active && \
			 (late || (mine && nr_active - 1 < 2 * max_active)))
#ifdef SURPLUS_STAYS
#define may_stay	true
#else
#define may_stay	(nr_active <= max_active || may_exceed(1))
#endif

/* What holds whenever pool->lock is free. */
inline unlock()
{
	assert(nr_active == is_active(0) + is_active(1) + is_active(2) +
			    is_active(3));
	assert(nr_napping == naps[0] + naps[1] + naps[2] + naps[3]);
	assert(hungry == (nr_active < max_active))
}

/* fairwq_seat_update_locked() */
inline count_active(n)
{
	nr_active = nr_active + n;
	hungry = (nr_active < max_active)
}

/* fairwq_seat_lose_locked() and fairwq_seat_regain_locked() in core/seat.c */
inline set_asleep(me, how)
{
	nr_napping = nr_napping + (!how) - naps[me];
	naps[me] = !how;
	asleep[me] = how;
	count_active(1 - 2 * how)
}

/* fairwq_seat_take_locked(), fairwq_kick_send() */
inline activate(r)
{
	if
	:: (nr_active < max_active || may_exceed(0)) && any_idle ->
		r = (idle[0] -> 0 : (idle[1] -> 1 : (idle[2] -> 2 : 3)));
		idle[r] = false;
		count_active(1);
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

/* The end of a turn, and runner_next_locked(), with the kick after it */
inline runner_next(me, r)
{
	atomic {
#ifndef NOT_RETURNED
		if
		:: asleep[me] -> set_asleep(me, false)
		:: else
		fi;
#endif
#ifndef NAPS_STAY
		nr_napping = nr_napping - naps[me];
#endif
		naps[me] = false;
		if
		:: !may_stay || (!eligible_a && !queued) ->
			idle[me] = true;	/* fairwq_seat_leave_locked() */
			count_active(-1)
		:: may_stay && task == PROMOTED -> what = TASK; task = BEGUN
		:: may_stay && item_a -> what = ITEM_A; item_a = false
		:: may_stay && queued -> what = ITEM_B; queued--
		fi;
		assert(!what || nr_active - nr_napping <= max_active);
		late = late && !what;
		if
		:: what -> kick(r)
		:: else		/* a runner that goes idle */
		fi;
		unlock()
	}
}

/* await_stolen(): fairwq_seat_block() and fairwq_seat_unblock() around the sleep. */
inline await_done(me, r)
{
	atomic { joins[me] = true; set_asleep(me, true); kick(r); unlock() }
	task == DONE;
	atomic {
#ifdef JOIN_ASKS
		nr_active < max_active;
#endif
		joins[me] = false;
		set_asleep(me, false);
		unlock()
	}
}

/* An item sleeps until one of batch B has ended. */
inline sleep(me)
{
	sleeps[me] = true;
	atomic { ended > 0 -> sleeps[me] = false }
}

/* fairwq_asleep_look_locked(), lose_fn() and goes_on(): at any moment. */
proctype tick(byte me)
{
	byte r, o;

end:	do
#ifndef NO_TICK
	:: atomic { loses(me) ->
		set_asleep(me, true);
#ifndef TICK_QUIET
		kick(r);
#endif
		unlock() }
#endif
#if !defined(NO_TICK) && !defined(TICK_QUIET)
	/* goes_on(), and the rest of sleeps() of the task before, in one section */
	:: atomic { asleep[me] && !sleeps[me] && !joins[me] &&
		    (loses(0) || loses(1) || loses(2) || loses(3)) ->
		if
		:: loses(0) -> o = 0
		:: loses(1) -> o = 1
		:: loses(2) -> o = 2
		:: loses(3) -> o = 3
		fi;
		set_asleep(me, false);
		set_asleep(o, true);
		o = 0;
		kick(r);
		unlock() }
	/* No turn has begun from one look of the timer to the next. */
	:: atomic { !me && nr_active && (!late || (nr_active >= max_active &&
		    may_exceed(0) && any_idle && (queued || eligible_a))) ->
		late = true;
		kick(r);
		unlock() }
#endif
	:: atomic { asleep[me] && !sleeps[me] && !joins[me] ->
		set_asleep(me, false);
		unlock() }
	:: atomic { naps[me] -> naps[me] = false; nr_napping-- }
	od
}

/* promote_oldest() */
inline promote(r)
{
	atomic {
		if
		:: any_idle && nr_active < max_active ->
			task = PROMOTED;
			activate(r)
		:: else
		fi;
		unlock()
	}
}

/* The item of A: it forks, and joins. */
inline forking(me, r)
{
	if
	:: atomic { !mutex -> mutex = true; holds = true }
	:: waits = true
	fi;
	if
	:: hungry -> promote(r)
	:: true
	fi;
	if
	/* take_back() */
	:: d_step { task == PRIVATE || task == PROMOTED -> task = DONE }
	:: task == DONE					/* await_stolen() */
	:: task == BEGUN -> await_done(me, r)
	fi;
	atomic { mutex = mutex && !holds; holds = false; over = true }
}

/* fairwq_run() */
proctype runner(byte me)
{
	byte what, r;
	bool holds;

end:	do
	:: atomic { kicked[me] -> kicked[me] = false };
		do
		:: runner_next(me, r);
			if
			:: !what -> break
			:: what == ITEM_A -> forking(me, r)
			:: what == TASK && waits -> sleep(me); task = DONE
			:: what == TASK && !waits -> task = DONE
			:: what == ITEM_B && queued && !ended -> sleep(me);
				ended++
			:: what == ITEM_B ->
				atomic { !mutex -> mutex = true };
				atomic { mutex = false; ended++ }
			fi;
			what = 0
		od
	od
}

/* Queue calls. */
proctype producer()
{
	byte r, i;

	atomic { item_a = true; kick(r); unlock() }
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
	:: atomic { i < 2 ->
		max_active = (i -> 1 : 2);
#ifndef MAX_UNSAID
		count_active(0);
#endif
		kick(r);	/* fairwq_kick_unlock() */
		i++;
		unlock() }
	:: i == 2 -> break
	od
}

proctype waiter()
{
	over && ended == ITEMS && idle[0] && idle[1] && idle[2] && idle[3];
	assert(nr_active == 0 && task == DONE && !queued)
}

init {
	atomic {
		run runner(0); run runner(1); run runner(2); run runner(3);
		run tick(0); run tick(1); run tick(2); run tick(3);
		run producer();
		run tuner();
		run waiter()
	}
}
