/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is planned belongs to whoever takes it: the slots of a plan, in
 * plan.c. fairwq_claim_turn() by the runner that planned, by helpers and by
 * who holds the lock; fairwq_plan_close(), fairwq_give_back_rest(), and
 * fairwq_unplan_locked() of work.c.
 *
 * Two runners, one batch of three items, plans of up to three turns. The first
 * runner plans; the other is woken by a tick, which may find any plan overdue,
 * or by what is given back. The first item may sleep until the third has run.
 * A runner may be late after any turn.
 *
 * Holds: each item is taken once and runs once, or is cancelled; turns are
 * taken in queue order; what is in a slot is what its taker sees, and nobody
 * looks into a plan that is being made; no turn is left in a plan that is made
 * anew; each turn is accounted for once; an item behind a sleeper is taken by
 * the other runner.
 *
 * Case HELPERS: nobody sleeps or is late or looks for what is overdue; four items
 *	in plans of two, so that a helper in one plan may meet the next.
 * Case CANCEL: nobody sleeps, and a runner that was woken for what is overdue
 *	takes it from the last plan only; of two items the second one is
 *	cancelled, wherever it is, unless it has begun.
 *
 * Broken NO_XCHG (assertion): a work is taken out of its slot by a load and a store.
 * Broken STOLEN_BACKWARDS (assertion): a helper takes the last turn that is left.
 * Broken PLANS_OVERLAP (assertion): a runner plans while the plan of another is open.
 * Broken GIVEN_BACK_FORWARDS (assertion): what is given back is so from the first one on.
 * Broken TAKEN_UNMARKED (assertion): what is given back is not marked as taken.
 * Broken NO_STEALING (invalid end state): nobody takes a turn of another's plan.
 * Broken HELPERS NO_CLOSE (assertion): a plan is made anew without being closed.
 * Broken HELPERS NO_MB_CLOSE (assertion): no smp_mb() in fairwq_plan_close().
 * Broken HELPERS NO_MB_HELP (assertion): atomic_inc_return() in fairwq_help() without its
 *	barrier: @nr is loaded before the helper is counted.
 * Broken HELPERS NO_RELEASE_NR (assertion): fairwq_plan_locked() stores @nr by WRITE_ONCE().
 * Broken HELPERS NO_ACQUIRE_NR (assertion): what is in a slot is read before @nr.
 * Broken HELPERS NO_RELEASE_HELPERS (invalid end state): atomic_dec_return_relaxed() in
 *	fairwq_help(): @next of the old plan gets into the new one.
 * Broken CANCEL CANCEL_UNTAKEN (assertion): a cancel looks at the slot and takes nothing.
 */
#define CPUS	3		/* 0, 1: runners of that number; 2: who cancels */
#define LOCK	0		/* pool->lock */
#define NR(r)	(1 + (r))	/* plan->nr */
#define NEXT(r)	(3 + (r))	/* plan->next */
#define TURN(r)	(5 + (r))	/* slot->turn of all slots, as the number of the plan */
#define VARS	7

#include "memory.pml"

#if defined(HELPERS)
#define ITEMS		4
#define PLAN_MAX	2
#elif defined(CANCEL)
#define ITEMS		2
#define PLAN_MAX	2
#else
#define ITEMS		3
#define PLAN_MAX	3
#endif
#define NONE		9

/* slot->work: by xchg(), which goes to memory at once */
byte work[2 * PLAN_MAX] = NONE;
#define WORK(r, i)	work[PLAN_MAX * (r) + (i)]
byte helpers[2];		/* plan->helpers */
byte planner = NONE;		/* pool->planner */

/* Under the lock. */
chan fifo = [ITEMS] of { byte };	/* batch->fifo */
byte in_flight;			/* batch->in_flight */
bool taken[ITEMS];		/* FAIRWQ_PLACE_TAKEN in work->place */
bool idle[2];			/* on pool->idle_runners */
bool kicked[2];			/* runner->work is queued */
byte plans[2];			/* plans made */

/* What the properties are about. */
bool begun[ITEMS], chosen[ITEMS], ran[ITEMS];
bool making[2];
bool cancelled;			/* item 1 */

/* Every turn before that of @k has begun, or is the only one of a plan. */
inline begin(k)
{
	assert(!begun[k]);
	assert((k < 1 || chosen[0]) && (k < 2 || chosen[1]) && (k < 3 || chosen[2]));
	begun[k] = true;
	chosen[k] = true
}

/* fairwq_kick_locked() */
inline kick_locked()
{
	if
	:: len(fifo) > 0 && idle[0] -> idle[0] = false; kicked[0] = true
	:: len(fifo) > 0 && !idle[0] && idle[1] -> idle[1] = false; kicked[1] = true
	:: else
	fi
}

/* fairwq_claim_turn() from the plan of @whose, with @nr slots */
inline claim_turn(cpu, whose)
{
#ifdef STOLEN_BACKWARDS
	i = nr;
	do
	:: i > 0 && mine == NONE ->
		i--;
#else
	read_once(cpu, NEXT(whose), i);
	do
	:: i < nr && mine == NONE ->
#endif
		if
		:: WORK(whose, i) == NONE
#ifdef NO_XCHG
		:: WORK(whose, i) != NONE ->
			mine = WORK(whose, i);
			d_step { WORK(whose, i) = NONE; begin(mine) }
#else
		:: d_step {
			/* xchg() */
			RMW(cpu) && WORK(whose, i) != NONE ->
			mine = WORK(whose, i);
			WORK(whose, i) = NONE;
			begin(mine)
		   };
#endif
			if
			:: !turn -> read_once(cpu, TURN(whose), turn)
			:: else
			fi;
			assert(turn == plans[whose] && !making[whose]);
			turn = 0;
			write_once(cpu, NEXT(whose), i + 1)
		fi;
#ifndef STOLEN_BACKWARDS
		i++
#endif
	:: else -> break
	od;
	atomic { i = 0; nr = 0; turn = 0 }
}

/* fairwq_help() */
inline help(cpu, r)
{
	if
	:: planner == other ->
		read_once(cpu, NEXT(other), i);
		read_once(cpu, NR(other), nr);
		if
		:: i < nr ->
#ifdef NO_MB_HELP
			read_once(cpu, NR(other), nr);
			d_step { helpers[other]++; i = 0 }
#else
#ifdef NO_ACQUIRE_NR
			read_once(cpu, TURN(other), turn);
#endif
			d_step { RMW(cpu) -> helpers[other]++; i = 0; nr = 0 }
			read_once(cpu, NR(other), nr);
#endif
			if
			:: nr -> claim_turn(cpu, other)
			:: else
			fi;
			/* atomic_dec_return_release() */
#ifdef NO_RELEASE_HELPERS
			helpers[other]--
#else
			d_step { RMW(cpu) -> helpers[other]-- }
#endif
		:: else
		fi;
		atomic { i = 0; nr = 0 }
	:: else
	fi
}

/* fairwq_plan_close() */
inline plan_close(cpu, r)
{
	skip;
#ifndef NO_CLOSE
	read_once(cpu, NR(r), nr);
	if
	:: nr ->
		nr = 0;
		write_once(cpu, NR(r), 0);
#ifndef NO_MB_CLOSE
		smp_mb(cpu);
#endif
		!helpers[r]
	:: else
	fi
#endif
}

/* fairwq_steal_locked() */
inline steal_locked(cpu)
{
	skip;
#ifndef NO_STEALING
	read_once(cpu, NR(other), nr);
	claim_turn(cpu, other)
#endif
}

/* fairwq_plan_turns_locked(), as far as it likes; fairwq_batch_take_locked() */
inline plan_turns_locked(r)
{
	do
	:: nempty(fifo) && nr < PLAN_MAX ->
		assert(WORK(r, nr) == NONE);
		fifo?mine;
		WORK(r, nr) = mine;
		in_flight = in_flight + (taken[mine] -> 0 : 1);
		nr++
	:: empty(fifo) || nr > 0 -> break
	od;
	mine = NONE;
	if
	:: nr == 1 -> chosen[WORK(r, 0)] = true
	:: else
	fi
}

/* fairwq_plan_locked() */
inline plan_locked(cpu, r)
{
	write_once(cpu, NEXT(r), 0);
	making[r] = true;
	atomic {
		plan_turns_locked(r);
		if
		:: nr -> plans[r]++; write_once(cpu, TURN(r), plans[r])
		:: else
		fi
	}
	atomic {
		making[r] = false;
#ifdef NO_RELEASE_NR
		write_once(cpu, NR(r), nr);
#else
		store_release(cpu, NR(r), nr);
#endif
		planner = (nr > 1 -> r : planner);
		more = (nr > 0);
		nr = 0
	}
}

/* Somebody else's plan has turns left: fairwq_planned_locked(). */
#if PLAN_MAX == 3
#define planned(r)	(work[3 * (r)] + work[3 * (r) + 1] + work[3 * (r) + 2] < 3 * NONE)
#else
#define planned(r)	(work[2 * (r)] + work[2 * (r) + 1] < 2 * NONE)
#endif

/* fairwq_find_turns_locked(), in fairwq_runner_next() */
inline runner_next(cpu, r)
{
	spin_lock(cpu);
	/* fairwq_join_plan_locked() */
	if
#ifndef PLANS_OVERLAP
	:: planner == other -> steal_locked(cpu)
#endif
	:: else
	fi;
	more = (mine != NONE);
	if
	:: !more -> plan_locked(cpu, r)
	:: else
	fi;
	/* fairwq_rescue_locked() */
	if
#if ITEMS == 3
	:: !more && !idle[other] && planned(other) ->
		if
		:: steal_locked(cpu)	/* it is overdue */
		:: true			/* or it is not */
		fi;
		more = (mine != NONE)
#endif
	:: else
	fi;
	d_step { idle[r] = !more; kick_locked() }
	spin_unlock(cpu)
}

/* fairwq_give_back_rest(), fairwq_give_back_slot_locked() */
inline give_back_rest(cpu, r)
{
	spin_lock(cpu);
#ifdef GIVEN_BACK_FORWARDS
	do
	:: i < PLAN_MAX ->
#else
	i = PLAN_MAX;
	do
	:: i > 0 ->
		i--;
#endif
		d_step {
			/* xchg(); fairwq_batch_put_back_locked(), at the head */
			RMW(cpu) ->
			mine = WORK(r, i);
			WORK(r, i) = NONE;
			if
			:: mine != NONE ->
#ifndef TAKEN_UNMARKED
				taken[mine] = true;
#endif
				n = len(fifo);
				fifo!mine;
				do
				:: n > 0 -> fifo?mine; fifo!mine; n--
				:: else -> break
				od;
				mine = NONE
			:: else
			fi
		}
#ifdef GIVEN_BACK_FORWARDS
		i++
#endif
	:: else -> break
	od;
	atomic { i = 0; kick_locked() }
	spin_unlock(cpu)
}

/* The function of an item, in fairwq_run_turn(); then it is accounted for. */
inline run_turn()
{
	if
#if ITEMS == 3
	:: mine == 0 -> ran[2]		/* it sleeps until that one has run */
#endif
	:: true
	fi;
	d_step {
		assert(!ran[mine] && !(mine == 1 && cancelled) && in_flight);
		ran[mine] = true;
		in_flight--;
		mine = NONE
	}
}

/* fairwq_run_turns(), fairwq_next_turn() */
inline run_turns(cpu, r)
{
	do
	:: true ->
		if
		:: mine == NONE -> read_once(cpu, NR(r), nr); claim_turn(cpu, r)
		:: else			/* in_hand */
		fi;
		if
#if !defined(PLANS_OVERLAP) && !defined(NO_STEALING)
		:: mine == NONE -> help(cpu, r)
#endif
		:: else
		fi;
		if
		:: mine == NONE -> break
		:: else
		fi;
		run_turn();
#ifndef HELPERS
		if
		:: planned(r) -> give_back_rest(cpu, r)		/* it is late */
		:: true
		fi
#endif
	od;
	plan_close(cpu, r)
}

/* fairwq_runner_fn() */
proctype runner(byte cpu; byte r; byte other)
{
	byte mine = NONE, i, n, nr, turn;
	bool more;

end:	do
	:: d_step { kicked[r] -> kicked[r] = false };
		do
		:: runner_next(cpu, r);
			if
			:: more -> more = false; run_turns(cpu, r)
			:: else -> break
			fi
		od
	od
}

/*
 * fairwq_tick_fn(), fairwq_wake_thief_locked(): anything may be overdue. That
 * it comes again and again is no endless loop but time that goes by.
 */
proctype tick()
{
end:	do
#ifndef NO_STEALING
	:: d_step {
		!mem[LOCK] && planned(0) && idle[1] ->
		idle[1] = false;
		kicked[1] = true
	   };
progress_0:	skip
	:: d_step {
		!mem[LOCK] && planned(1) && idle[0] ->
		idle[0] = false;
		kicked[0] = true
	   };
progress_1:	skip
#endif
	:: false
	od
}

/* fairwq_cancel_queued_locked(), fairwq_remove_locked() of the second item */
proctype cancel(byte cpu)
{
	byte i;

	spin_lock(cpu);
	if
	:: fifo??[1] ->
		atomic {
			fifo??1;
			in_flight = in_flight - (taken[1] -> 1 : 0);
			cancelled = true;
			chosen[1] = true
		}
	:: !fifo??[1] ->
		do
		:: i < 2 * PLAN_MAX && work[i] == 1 ->
			/* fairwq_unplan_locked(): cmpxchg() */
			d_step {
				if
				:: work[i] == 1 ->
#ifndef CANCEL_UNTAKEN
					work[i] = NONE;
#endif
					cancelled = true;
					chosen[1] = true;
					in_flight--
				:: else
				fi
			}
			i++
		:: i < 2 * PLAN_MAX && work[i] != 1 -> i++
		:: i == 2 * PLAN_MAX -> break
		od
	fi;
	spin_unlock(cpu)
}

proctype waiter()
{
	ran[0] && (ran[1] || cancelled) && (ITEMS < 3 || ran[ITEMS - 1]) &&
	(ITEMS < 4 || ran[ITEMS - 2]);
	assert(!in_flight)
}

init {
	atomic {
		fifo!0; fifo!1;
#ifndef CANCEL
		fifo!2;
#endif
#ifdef HELPERS
		fifo!3;
#endif
		kicked[0] = true;
		run memory();
		run runner(0, 0, 1);
		idle[1] = true;
		run runner(1, 1, 0);
#ifndef HELPERS
		run tick();
#endif
#ifdef CANCEL
		run cancel(2);
#endif
		run waiter()
	}
}
