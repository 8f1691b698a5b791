/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Forks: a task is private to its forker, which may promote it. Then another runner
 * may steal it, and the join takes it back or waits for it. fairwq_fork() and
 * fairwq_unfork() in fairwq.h, promote_oldest(), fairwq_fork_take_back() and
 * fairwq_fork_await() in core/fork.c, run_task() in forkjoin.c, and
 * fairwq_fifo_add_part_locked() in core/fifo.c.
 *
 * An item forks two tasks and joins them, in any order. Two other runners are idle at
 * first. A fork or a join may find at any time that a runner is free.
 *
 * Holds:
 *	each task runs once;
 *	it sees the forker's stores before the fork;
 *	the forker sees the task's stores after the join;
 *	no runner touches a task after its join has returned;
 *	the turns of the batch are counted, also when the item has ended;
 *	the join ends.
 *
 * Case LIMIT: the batch has a max_active of 2.
 *
 * Broken TAKEN_BLIND (assertion): a join runs a promoted task without a look.
 * Broken ORIGIN_UNSEEN (assertion): a join does not look whether its task is promoted.
 * Broken LOOK_UNLOCKED (assertion): fairwq_fork_take_back() looks at work->data before it has
 *	the lock.
 * Broken PROMOTED_KEPT (assertion): a promoted task stays on the private list.
 * Broken FILLED_LATE (assertion): the work of a task is set up after it can be taken.
 * Broken ADDED_UNLOCKED (assertion): the work is set up, but the unlock is no release.
 * Broken DONE_EARLY (assertion): run_task() marks the task as done before it calls the
 *	function.
 * Broken DONE_NOT_LAST (assertion): run_task() uses the task after that.
 * Broken NO_RELEASE_DONE (assertion): the store of that mark is no release.
 * Broken NO_ACQUIRE_DONE (assertion): is_done() is no acquire: the forker loads the
 *	task's stores early.
 * Broken NO_DONE (invalid end state): run_task() does not mark the task.
 * Broken FORK_UNCOUNTED (assertion): a promoted task does not count as in flight.
 * Broken TAKEN_UNMARKED (assertion): a promoted task counts again when it is taken.
 * Broken BACK_COUNTED (assertion): a task that is taken back still counts.
 * Broken LIMIT ROOM_UNSEEN (assertion): promote_oldest() does not look for room.
 */
/* CPU 0: the forker; 1, 2: runners of that id */
#define WORK(t)	(1 + (t))	/* task->work and the rest that a promotion sets up */
#define DONE(t)	(3 + (t))	/* task->origin is FAIRWQ_TASK_DONE */
#define DATA(t)	(5 + (t))	/* that task @t reads and writes */
#define VARS	7

#include "memory.pml"

#define TASKS	2
#define NONE	9

#define BEFORE	1		/* in DATA: stored before the fork */
#define AFTER	2		/* in DATA: stored by the task */

/* Under pool->lock. */
bool idle[3];			/* on pool->idle_runners */
bool kicked[3];			/* runner->work is queued */
bool pending[TASKS];		/* task->work.data; it is in batch->fifo */
byte in_flight = 1;		/* of the batch: the item */

/* Of the forker. */
bool private[TASKS];		/* in forker->forks.list, in the order of their numbers */
bool promoted[TASKS];		/* task->origin */

bool ran[TASKS];		/* for the properties */
bool gone[TASKS];		/* its join has returned */
bool over;			/* the item has ended */

#ifdef LIMIT
#define has_room	(in_flight < 2)
#else
#define has_room	true
#endif

/* The function of a task. It reads the forker's store, and stores a result. */
inline run_function(cpu, t)
{
	d_step { assert(!ran[t]); ran[t] = true }
	read_once(cpu, DATA(t), data);
	assert(data == BEFORE);
	write_once(cpu, DATA(t), AFTER);
	data = 0
}

/* fairwq_kick_activate_locked(); max_active runners do not work, see seat.pml */
inline kick_locked()
{
	if
	:: idle[1] -> idle[1] = false; kicked[1] = true
	:: !idle[1] && idle[2] -> idle[2] = false; kicked[2] = true
	:: else
	fi
}

/* promote_oldest() */
inline promote()
{
	oldest = (private[0] -> 0 : 1);
#ifndef FILLED_LATE
	write_once(0, WORK(oldest), 1);
#endif
	spin_lock(0);
	if
#ifdef ROOM_UNSEEN
	:: idle[1] || idle[2] ->
#else
	:: (idle[1] || idle[2]) && has_room ->
#endif
		d_step {
#ifndef PROMOTED_KEPT
			private[oldest] = false;
#endif
			assert(!promoted[oldest]);
			promoted[oldest] = true;
			/* fairwq_fifo_add_part_locked() */
			pending[oldest] = true;
#ifndef FORK_UNCOUNTED
			in_flight++;
#endif
#ifdef LIMIT
			assert(in_flight <= 2);
#endif
			kick_locked()
		}
	:: else
	fi;
#ifdef ADDED_UNLOCKED
	write_once(0, LOCK, 0)
#else
	spin_unlock(0)
#endif
#ifdef FILLED_LATE
	;
	write_once(0, WORK(oldest), 1)
#endif
	;
	oldest = 0
}

/* Whether a runner is free, as far as this runner can see */
inline called()
{
	if
	:: private[0] || private[1] -> promote()
	:: true
	fi
}

/* fairwq_fork_take_back() */
inline take_back(t)
{
#ifdef LOOK_UNLOCKED
	back = pending[t];
#endif
	spin_lock(0);
	d_step {
#ifndef LOOK_UNLOCKED
		back = pending[t];
#endif
		if
		:: back ->
			/* fairwq_fifo_remove_locked() */
			pending[t] = false;
#ifndef BACK_COUNTED
			assert(in_flight);
			in_flight--
#endif
		:: else
		fi
	}
	spin_unlock(0)
}

/* fairwq_join_func(), fairwq_unfork() */
inline join(t)
{
	back = true;
	if
#ifdef ORIGIN_UNSEEN
	:: true ->
#else
	:: !promoted[t] ->
#endif
		private[t] = false;
		called()
#ifndef ORIGIN_UNSEEN
	:: else ->
		/* __fairwq_unfork() */
#ifndef TAKEN_BLIND
		take_back(t);
#endif
		if
		:: !back ->
#ifdef NO_ACQUIRE_DONE
			read_once(0, DATA(t), data);
#endif
			/* wait_var_event() */
			mem[DONE(t)]
		:: else
		fi
#endif
	fi;
	if
	:: back -> run_function(0, t)
	:: else
	fi;
#ifdef NO_ACQUIRE_DONE
	if
	:: data
	:: else -> read_once(0, DATA(t), data)
	fi;
#else
	read_once(0, DATA(t), data);
#endif
	assert(data == AFTER);
	d_step { data = 0; back = false; gone[t] = true }
}

/* The item, in fairwq_run(). */
proctype forker()
{
	byte next, oldest, data;
	bool back, joined[TASKS];

	do
	:: next < TASKS ->
		/* fairwq_fork() */
		write_once(0, DATA(next), BEFORE);
		d_step { private[next] = true; next++ }
		called()
	:: next > 0 && !joined[0] -> join(0); joined[0] = true
	:: next > 1 && !joined[1] -> join(1); joined[1] = true
	:: next == TASKS && joined[0] && joined[1] -> break
	od;
	/* fairwq_forks_end() */
	assert(!private[0] && !private[1]);
	spin_lock(0);
	d_step { assert(in_flight); in_flight--; over = true }
	spin_unlock(0)
}

/* run_task() */
inline run_task(me)
{
	read_once(me, WORK(task), data);
	assert(data);
#ifdef DONE_EARLY
	store_release(me, DONE(task), 1);
#endif
	run_function(me, task);
#if defined(NO_RELEASE_DONE)
	write_once(me, DONE(task), 1);
#elif !defined(DONE_EARLY) && !defined(NO_DONE)
	store_release(me, DONE(task), 1);
#endif
#ifdef DONE_NOT_LAST
	assert(!gone[task]);
#endif
}

/* runner_next_locked(), fairwq_start_item(); the turn of @task has ended */
inline runner_next(me)
{
	spin_lock(me);
	d_step {
		if
		:: task != NONE -> assert(in_flight); in_flight--
		:: else
		fi;
		/* The code takes the last one first. Any order will do here. */
		task = (pending[0] -> 0 : (pending[1] -> 1 : NONE));
		if
		:: task != NONE ->
#ifdef TAKEN_UNMARKED
			in_flight++;
#endif
			assert(!gone[task]);
			pending[task] = false;
			/* Kick a runner for the task that is left. */
			if
			:: pending[1] -> kick_locked()
			:: else
			fi
		:: else -> idle[me] = true
		fi
	}
	spin_unlock(me)
}

/* fairwq_run() */
proctype runner(byte me)
{
	byte task = NONE, data;

end:	do
	:: d_step { kicked[me] -> kicked[me] = false };
		do
		:: runner_next(me);
			if
			:: task != NONE -> run_task(me)
			:: else -> break
			fi
		od
	od
}

proctype waiter()
{
	over && idle[1] && idle[2] && !kicked[1] && !kicked[2] &&
		sb[0].n + sb[1].n + sb[2].n == 0;
	assert(ran[0] && ran[1] && !in_flight && !pending[0] && !pending[1])
}

init {
	atomic {
		idle[1] = true;
		idle[2] = true;
		run memory();
		run forker();
		run runner(1);
		run runner(2);
		run waiter()
	}
}
