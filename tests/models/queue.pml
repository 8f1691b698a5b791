/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queue: queue calls, runners that go idle, and kicks. inbox.c, push.c, fifo.c, kick.c, run.c
 * and watchdog.c in core/.
 *
 * Two producers push three items to one batch. Two runners take them, one turn at a
 * time. The first item may sleep until the last has run. The second queues itself
 * again.
 *
 * Holds:
 *	every item runs as often as it was queued;
 *	the items of one producer are taken in order;
 *	no item is left behind while a runner is idle, also while another item sleeps;
 *	a runner is kicked only when it is idle.
 *
 * Case MAX_ACTIVE: without the second item. max_active is lowered and raised.
 * Case REQUEUE: without the second item. A runner's time is up, once.
 * Case QUICK: without the second item. Items usually end at once, so a runner that runs
 *	one is expected to take the next. If it is late, the tick must find that.
 *
 * Broken WATCHED_LATE (invalid end state): fairwq_inbox_take_over_locked() looks first, then
 *	clears @watched in a later section.
 * Broken WATCHED_KEPT (invalid end state): it leaves @watched set.
 * Broken NOT_ACTIVATED (invalid end state): a queue call that has set @watched does
 *	not activate the batch if a runner is active.
 * Broken KICK_LOST (invalid end state): no kick while a runner is active.
 * Broken KICK_NOT_CHAINED (invalid end state): a runner that leaves a backlog
 *	in the tree does not kick the next runner.
 * Broken IDLE_APART (invalid end state): a runner that has seen an empty tree
 *	goes idle in a later lock section.
 * Broken KICK_KEEPS_IDLE (assertion): a runner that is kicked stays on the list
 *	of the idle ones until it runs.
 * Broken QUICK NO_TICK (invalid end state): the tick is not started when no runner is
 *	kicked.
 * Broken QUICK TICK_ONCE (invalid end state): the tick comes only once, also if the
 *	item is not late by then.
 * Broken MAX_ACTIVE RAISED_QUIETLY (invalid end state): no runner is kicked
 *	when max_active is raised.
 */
/*
 * Every step is under pool->lock or inbox->lock. So memory is sequentially consistent here. A
 * section under inbox->lock is one step.
 */
#define spin_lock(cpu)	d_step { !locked -> locked = true }
#define spin_unlock(cpu) locked = false

#define ITEMS	3		/* 0 and 1 of producer 0, 2 of producer 1 */
#define NONE	9

bool locked;				/* pool->lock */
bool watched;				/* batch->inbox.watched */
chan inbox = [ITEMS] of { byte };	/* batch->inbox.works */
chan fifo = [ITEMS] of { byte };	/* batch->fifo */
bool eligible;				/* batch->node is in pool->tree */
bool idle[2] = true;			/* on pool->idle_runners */
bool kicked[2];				/* runner->work is queued */
byte nr_active, max_active = 2;
byte runs[ITEMS], taken[ITEMS];		/* for the properties */
#ifdef REQUEUE
bool requeued;				/* a runner's time was up, once */
#else
bool requeued = true;
#endif
#if defined(REQUEUE) || defined(MAX_ACTIVE) || defined(QUICK)
#define RUNS_1	0			/* item 1 is left out */
#define FROM_0	1
#else
#define RUNS_1	2
#define FROM_0	2
#endif
bool again;				/* item 1 has queued itself */
byte nr_quick;				/* pool->nr_quick */
bool ticking;				/* pool->ticking */
byte patience = 2;			/* ticks until an item is late */

/* fairwq_kick_soon_free_locked(): by chance, because the model has no time. */
inline is_soon_free_locked()
{
	if
#ifdef QUICK
	:: nr_quick ->
		soon = true;
#ifndef NO_TICK
		ticking = true		/* fairwq_tick_soon_locked() */
#endif
#endif
	:: soon = false
	fi
}

/* fairwq_kick_activate_locked() */
inline wake_locked(kick)
{
	if
	:: nr_active >= max_active
#ifdef KICK_LOST
	:: nr_active > 0
#endif
	:: else ->
		if
		:: idle[0] -> kick = 0
		:: !idle[0] && idle[1] -> kick = 1
		:: else
		fi;
		if
		:: kick != NONE ->
#ifndef KICK_KEEPS_IDLE
			idle[kick] = false;
#endif
			nr_active++
		:: else
		fi
	fi
}

/* fairwq_kick_locked() and dropping the lock */
inline kick_locked_and_unlock(cpu)
{
	atomic {
		kick = NONE;
		is_soon_free_locked();
		if
		:: eligible && !soon -> wake_locked(kick)
		:: else
		fi;
		soon = false;
		spin_unlock(cpu)
	}
}

/* fairwq_kick_send() */
inline kick_send()
{
	atomic {
		if
		:: kick != NONE ->
			assert(!kicked[kick]);
			kicked[kick] = true
		:: else
		fi;
		kick = NONE
	}
}

/* fairwq_inbox_take_over_locked() */
inline take_over_locked()
{
	d_step {
		do
		:: inbox?work -> fifo!work
		:: empty(inbox) -> break
		od;
		work = NONE;
#if !defined(WATCHED_LATE) && !defined(WATCHED_KEPT)
		watched = nempty(fifo)
#endif
	}
#ifdef WATCHED_LATE
	watched = nempty(fifo)
#endif
}

/* fairwq_fifo_update_locked() */
inline update_locked(cpu)
{
	if
	:: empty(fifo) -> take_over_locked()
	:: nempty(fifo)
	fi;
	eligible = nempty(fifo)
}

/* fairwq_push() */
inline push(cpu, item)
{
	d_step {
		inbox!item;
		first = !watched;
		watched = true
	}
	if
#ifdef NOT_ACTIVATED
	:: first && !nr_active ->
#else
	:: first ->
#endif
		/* fairwq_activate() */
		spin_lock(cpu);
		update_locked(cpu);
		kick_locked_and_unlock(cpu);
		kick_send()
	:: else
	fi;
	first = false
}

proctype producer(byte cpu; byte from; byte to)
{
	byte work = NONE, kick = NONE;
	bool first, soon;

	do
	:: from < to -> push(cpu, from); from++
	:: else -> break
	od
}

/* fairwq_fifo_take_locked() */
inline take_locked(cpu)
{
	d_step {
		fifo?taking;
		/* In the order of the queue calls. Both queue calls of item 1 look the same. */
		assert(taking != 1 || taken[0] == 1);
		taken[taking]++
	}
	update_locked(cpu)
}

/*
 * runner_next_locked(): there is more, or the runner is requeued, or neither. Its time
 * may be up at any moment; here once.
 */
inline runner_next(cpu, me)
{
	spin_lock(cpu);
	atomic {
		/* fairwq_turn_end_locked() */
		nr_quick = nr_quick - quick;
		/* runner_next_locked() */
		if
		:: quick -> is_soon_free_locked()
		:: else
		fi
	}
	if
	:: eligible && !requeued -> requeue = true; requeued = true
	:: eligible && nr_active <= max_active && !soon ->
		take_locked(cpu);
#ifdef QUICK
		/* fairwq_turn_begin_locked() */
		atomic { nr_quick++; quick = true }
#endif
		more = true
	:: !eligible || nr_active > max_active || soon ->
#ifdef IDLE_APART
		spin_unlock(cpu);
		spin_lock(cpu);
#endif
		/* go_idle_locked() */
		d_step { idle[me] = true; nr_active-- }
	fi;
#ifdef IDLE_APART
	if
	:: idle[me] -> spin_unlock(cpu)
	:: else -> kick_locked_and_unlock(cpu)
	fi;
#elif defined(KICK_NOT_CHAINED)
	spin_unlock(cpu);
#else
	kick_locked_and_unlock(cpu);
#endif
	kick_send();
	if
	:: requeue -> requeue = false; kicked[me] = true
	:: else
	fi
}

/* run_turn() of one item: its function */
inline run_turn(cpu)
{
	if
	:: taking == 0 ->
		if
		:: true -> runs[2]	/* item 0 sleeps until item 2 has run */
		:: true			/* it does not sleep */
		fi
	:: d_step { taking == 1 && !again -> again = true } -> push(cpu, 1)
	:: taking == 1 && again
	:: taking == 2
	fi;
	d_step { runs[taking]++; taking = NONE; more = false }
}

proctype runner(byte cpu; byte me)
{
	byte work = NONE, kick = NONE, taking = NONE;
	bool first, more, requeue, soon, quick;

end:	do
	:: d_step {
		kicked[me] ->
		kicked[me] = false;
		quick = false;
#ifdef KICK_KEEPS_IDLE
		idle[me] = false
#endif
		};
		do		/* fairwq_run() */
		:: runner_next(cpu, me);
			if
			:: more -> run_turn(cpu)
			:: else -> break
			fi
		od
	od
}

#ifdef QUICK
/* watchdog_fn(), find_slow_locked() */
proctype tick(byte cpu)
{
	byte kick = NONE;
	bool slow;

end:	do
	:: ticking ->
		spin_lock(cpu);
		atomic {
			ticking = false;
			slow = nr_quick && !patience;
			if
			:: slow && eligible -> wake_locked(kick)
			:: nr_quick && !slow ->
				patience--;
#ifndef TICK_ONCE
				ticking = true
#endif
			:: else
			fi;
			spin_unlock(cpu)
		}
		kick_send()
	od
}
#endif

/* fairwq_pool_set_max_active(), down and up again */
proctype operator(byte cpu)
{
	byte kick = NONE;
	bool soon;

	spin_lock(cpu);
	max_active = 1;
	spin_unlock(cpu);
	spin_lock(cpu);
	max_active = 2;
#ifdef RAISED_QUIETLY
	spin_unlock(cpu)
#else
	kick_locked_and_unlock(cpu);
	kick_send()
#endif
}

/* Wait until no item is left. A state without this is an invalid end state. */
proctype waiter()
{
	runs[0] == 1 && runs[1] == RUNS_1 && runs[2] == 1;
	assert(empty(fifo) && empty(inbox))
}

init {
	atomic {
		run producer(0, 0, FROM_0);
		run producer(1, 2, 3);
		run runner(2, 0);
		run runner(3, 1);
#ifdef MAX_ACTIVE
		run operator(1);
#endif
#ifdef QUICK
		run tick(1);
#endif
		run waiter()
	}
}
