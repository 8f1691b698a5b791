/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Forks: a task is private to its forker, which may promote it. Then another
 * runner may steal it, and the join takes it back or waits for it.
 * fairwq_fork() and fairwq_unfork() in fairwq.h, promote_oldest(), take_back()
 * and await_stolen() in core/fork.c, run_task() in forkjoin.c, and
 * fairwq_fifo_add_part_locked() in core/fifo.c.
 *
 * An item forks two tasks and joins them, in any order. A fork or a join may
 * promote a task at any time. There are two other runners. Kicks are in
 * queue.pml, and the limits under which a task is promoted in seat.pml.
 *
 * Holds:
 *	each task runs once;
 *	it sees the forker's stores before the fork;
 *	the forker sees the task's stores after the join;
 *	no runner touches a task after its join has returned;
 *	the turns of the batch are counted;
 *	the join ends.
 *
 * Broken ORIGIN_UNSEEN (assertion): a join does not look at task->origin.
 * Broken LOOK_UNLOCKED (assertion): take_back() looks at work->data
 *	before it has the lock.
 * Broken ADDED_UNLOCKED (assertion): a promotion drops the lock by no release.
 * Broken DONE_NOT_LAST (assertion): run_task() uses the task after its mark.
 * Broken NO_RELEASE_DONE (assertion): the store of that mark is no release.
 * Broken NO_ACQUIRE_DONE (assertion): is_done() is no acquire: the forker loads
 *	the task's stores early.
 * Broken FORK_UNCOUNTED (assertion): a promoted task is not counted.
 */
/* CPU 0: the forker; 1, 2: runners */
#define WORK(t)	(1 + (t))	/* what a promotion sets up, as task->work */
#define DONE(t)	(3 + (t))	/* task->origin is FAIRWQ_TASK_DONE */
#define DATA(t)	(5 + (t))	/* that task @t reads and writes */
#define VARS	7

#include "memory.pml"

#define TASKS	2
#define NONE	9

#define BEFORE	1		/* in DATA: stored before the fork */
#define AFTER	2		/* in DATA: stored by the task */

/* Under pool->lock. */
bool pending[TASKS];		/* task->work.data; it is in batch->fifo */
byte in_flight = 1;		/* of the batch: the item */

/* Of the forker. */
bool private[TASKS];		/* behind forker->shared, in this order */
bool promoted[TASKS];		/* task->origin */

bool ran[TASKS];		/* for the properties */
bool gone[TASKS];		/* its join has returned */
bool over;			/* the item has ended */

/* The function of a task. It reads the forker's store, and stores a result. */
inline run_function(cpu, t)
{
	d_step { assert(!ran[t]); ran[t] = true }
	read_once(cpu, DATA(t), data);
	assert(data == BEFORE);
	write_once(cpu, DATA(t), AFTER);
	data = 0
}

/* promote_oldest() */
inline promote()
{
	oldest = (private[0] -> 0 : 1);
	write_once(0, WORK(oldest), 1);
	spin_lock(0);
	d_step {
		private[oldest] = false;
		assert(!promoted[oldest]);
		promoted[oldest] = true;
		/* fairwq_fifo_add_part_locked() */
		pending[oldest] = true;
#ifndef FORK_UNCOUNTED
		in_flight++
#endif
	}
#ifdef ADDED_UNLOCKED
	write_once(0, LOCK, 0);
#else
	spin_unlock(0);
#endif
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

/* take_back() */
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
			/* fairwq_fifo_del_part_locked() */
			pending[t] = false;
			assert(in_flight);
			in_flight--
		:: else
		fi
	}
	spin_unlock(0)
}

/* fairwq_join(), fairwq_unfork() */
inline join(t)
{
	back = true;
	if
#ifdef ORIGIN_UNSEEN
	:: true ->
#else
	:: promoted[t] ->
		/* __fairwq_unfork() */
		take_back(t);
		if
		:: !back ->
#ifdef NO_ACQUIRE_DONE
			read_once(0, DATA(t), data);
#endif
			mem[DONE(t)]		/* wait_var_event() */
		:: else
		fi
	:: else ->
#endif
		private[t] = false;
		called()
	fi;
	if
	:: back -> run_function(0, t)
	:: else
	fi;
	if
	:: data			/* loaded early */
	:: else -> read_once(0, DATA(t), data)
	fi;
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
	run_function(me, task);
#ifdef NO_RELEASE_DONE
	write_once(me, DONE(task), 1);
#else
	store_release(me, DONE(task), 1);
#endif
#ifdef DONE_NOT_LAST
	assert(!gone[task]);
#endif
}

/* fairwq_run() */
proctype runner(byte me)
{
	byte task, data;

end:	do
	:: pending[0] || pending[1] ->
		/* runner_next_locked(). The code takes the last one first. */
		spin_lock(me);
		d_step {
			task = (pending[0] -> 0 : (pending[1] -> 1 : NONE));
			if
			:: task != NONE ->
				assert(!gone[task]);
				pending[task] = false
			:: else
			fi
		}
		spin_unlock(me);
		if
		:: task != NONE ->
			run_task(me);
			/* fairwq_fifo_turn_end_locked() */
			spin_lock(me);
			d_step { assert(in_flight); in_flight--; task = 0 }
			spin_unlock(me)
		:: else -> task = 0
		fi
	od
}

proctype waiter()
{
	over && !in_flight && !pending[0] && !pending[1] && all_seen;
	assert(ran[0] && ran[1])
}

init {
	atomic {
		run memory();
		run forker();
		run runner(1);
		run runner(2);
		run waiter()
	}
}
