/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Forks: a task is private to its forker, which may promote it. Then another runner
 * may steal it, and the join takes it back or waits for it. fairwq_fork() and
 * fairwq_unfork() in fairwq.h, free_cell(), fairwq_fork_promote(), fairwq_fork_take_back(),
 * fairwq_fork_await(), fairwq_close_cell() and fairwq_fork_drop_locked() in core/fork.c,
 * run_stolen() in forkjoin.c, fairwq_fifo_add_part_locked() in core/fifo.c, and
 * fairwq_start_item() and fairwq_end_current() in core/turn.h.
 *
 * An item forks two tasks and joins them, in any order. It has one cell, so the second
 * task may be promoted where the first one was. Two other runners are idle at first. A
 * fork or a join may find at any time that the pool wants a promotion.
 *
 * Holds:
 *	each task runs once;
 *	it sees the forker's stores before the fork;
 *	the forker sees the task's stores after the join;
 *	no two runners execute a cell at once;
 *	the turns of the batch are counted, also when the item has ended;
 *	the join ends.
 *
 * Case TWO_CELLS: the item has two cells, so both tasks may be promoted at a time.
 * Case CANCEL: the batch is cancelled meanwhile, once.
 * Case LIMIT: the batch has a max_active of 2, and two cells.
 *
 * Broken TAKEN_BLIND (assertion): a join runs a promoted task without a look.
 * Broken CELL_UNSEEN (assertion): a join does not look whether its task is promoted.
 * Broken LOOK_UNLOCKED (assertion): fairwq_fork_take_back() looks at work->data before it has
 *	the lock.
 * Broken PROMOTED_KEPT (assertion): a promoted task stays on the private list.
 * Broken FILLED_LATE (assertion): cell->task is stored after the work can be taken.
 * Broken ADDED_UNLOCKED (assertion): the cell is filled, but the unlock is no release.
 * Broken CLOSED_EARLY (assertion): the join closes the cell before the task has run.
 * Broken CELL_REUSED (assertion): free_cell() does not look whether a runner still
 *	executes the work of the cell.
 * Broken DONE_EARLY (assertion): run_stolen() completes the cell before it calls the
 *	function.
 * Broken NO_RELEASE_DONE (assertion): complete() is no release.
 * Broken NO_ACQUIRE_DONE (assertion): the wait for it is no acquire: the forker loads
 *	the task's stores early.
 * Broken NO_COMPLETE (invalid end state): run_stolen() does not complete the cell.
 * Broken FORK_UNCOUNTED (assertion): a promoted task does not count as in flight.
 * Broken TAKEN_UNMARKED (assertion): a promoted task counts again when it is taken.
 * Broken BACK_COUNTED (assertion): a task that is taken back still counts.
 * Broken CANCEL DROPPED_UNSEEN (invalid end state): fairwq_fork_take_back() does not know a
 *	task that a cancel has dropped.
 * Broken LIMIT ROOM_UNSEEN (assertion): fairwq_fork_promote() does not look for room.
 */
#define CPUS	3		/* 0: the forker; 1, 2: runners of that id */
#define LOCK	0		/* pool->lock */
#define CURRENT(r) (r)		/* runner->current_work: a cell, counted from 1 */
#define TASK(c)	(3 + 3 * (c))	/* cell->task, counted from 1 */
#define LAST(c)	(4 + 3 * (c))	/* cell->work.last_runner */
#define DONE(c)	(5 + 3 * (c))	/* cell->done */
#define DATA(t)	(9 + (t))	/* that task @t reads and writes */
#define VARS	11

#include "memory.pml"

#define TASKS	2
#if defined(TWO_CELLS) || defined(LIMIT)
#define CELLS	2
#else
#define CELLS	1
#endif
#define NONE	9

#define BEFORE	1		/* in DATA: stored before the fork */
#define AFTER	2		/* in DATA: stored by the task */

/* Under pool->lock. */
bool idle[3];			/* on pool->idle_runners */
bool kicked[3];			/* runner->work is queued */
bool pending[CELLS];		/* cell->work.data; it is in batch->fifo */
bool dropped[CELLS];		/* FAIRWQ_PLACE_DROPPED in cell->work.place */
byte in_flight = 1;		/* of the batch: the item */

/* Of the forker. */
bool private[TASKS];		/* in forker->forks.list, in the order of their numbers */
byte at[TASKS] = NONE;		/* task->cell */

bool ran[TASKS];		/* for the properties */
bool over;			/* the item has ended */

#ifdef LIMIT
#define has_room	(in_flight < 2)
#else
#define has_room	true
#endif

/* The function of a task. It reads the forker's store, and stores a result. */
inline run_task(cpu, t)
{
	d_step { assert(!ran[t]); ran[t] = true }
	read_once(cpu, DATA(t), data);
	assert(data == BEFORE);
	write_once(cpu, DATA(t), AFTER);
	data = 0
}

/* free_cell(): the first cell that has no task, and that no runner executes */
inline free_cell()
{
	cell = 0;
	do
	:: cell < CELLS ->
		read_once(0, TASK(cell), data);
		if
		:: !data ->
#ifndef CELL_REUSED
			read_once(0, LAST(cell), data);
			if
			:: data -> read_once(0, CURRENT(data), data)
			:: else
			fi;
			data = (data == cell + 1);
#endif
			if
			:: !data -> break
			:: else
			fi
		:: else
		fi;
		cell++
	:: else -> break
	od;
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

/* __fairwq_fork_called(), fairwq_fork_promote() */
inline promote()
{
	free_cell();
	if
	:: cell < CELLS ->
		oldest = (private[0] -> 0 : 1);
		spin_lock(0);
		if
#ifdef ROOM_UNSEEN
		:: idle[1] || idle[2] ->
#else
		:: (idle[1] || idle[2]) && has_room ->
#endif
			/* promote_locked(), fairwq_fifo_add_part_locked() */
#ifndef PROMOTED_KEPT
			private[oldest] = false;
#endif
			assert(at[oldest] == NONE);
			at[oldest] = cell;
#ifndef FILLED_LATE
			write_once(0, TASK(cell), oldest + 1);
#endif
			write_once(0, LAST(cell), 0);
			d_step {
				mem[DONE(cell)] = 0;	/* reinit_completion() */
				dropped[cell] = false;
				pending[cell] = true;
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
		if
		:: at[oldest] == cell -> write_once(0, TASK(cell), oldest + 1)
		:: else
		fi
#endif
	:: else
	fi;
	d_step { cell = 0; oldest = 0 }
}

/* Whether the pool wants something, as far as this runner can see */
inline called()
{
	if
	:: private[0] || private[1] -> promote()
	:: true
	fi
}

/* fairwq_fifo_remove_locked() */
inline remove_locked(c)
{
	pending[c] = false;
	dropped[c] = true;
#ifndef BACK_COUNTED
	assert(in_flight);
	in_flight--
#endif
}

/* fairwq_fork_take_back() */
inline take_back(c)
{
#ifdef LOOK_UNLOCKED
	back = pending[c];
#endif
	spin_lock(0);
	d_step {
#ifndef LOOK_UNLOCKED
		back = pending[c];
#endif
		if
		:: back -> remove_locked(c)
		:: else
		fi;
#ifndef DROPPED_UNSEEN
		back = dropped[c]
#endif
	}
	spin_unlock(0)
}

/* fairwq_close_cell() */
inline close_cell(t)
{
	write_once(0, TASK(at[t]), 0);
	at[t] = NONE
}

/* fairwq_join_func(), fairwq_unfork() */
inline join(t)
{
	back = true;
	if
#ifdef CELL_UNSEEN
	:: true ->
#else
	:: at[t] == NONE ->
#endif
		private[t] = false;
		called()
#ifndef CELL_UNSEEN
	:: else ->
		/* __fairwq_unfork() */
#ifndef TAKEN_BLIND
		take_back(at[t]);
#endif
		if
		:: !back ->
#ifdef NO_ACQUIRE_DONE
			read_once(0, DATA(t), data);
#endif
#ifdef CLOSED_EARLY
			write_once(0, TASK(at[t]), 0);
#endif
			/* wait_for_completion(), under the lock of that */
			d_step { mem[DONE(at[t])] -> mem[DONE(at[t])] = 0 }
		:: else
		fi;
		close_cell(t)
#endif
	fi;
	if
	:: back -> run_task(0, t)
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
	d_step { data = 0; back = false }
}

/* The item, in fairwq_run(). */
proctype forker()
{
	byte next, cell, oldest, data;
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
	assert(!private[0] && !private[1] && at[0] == NONE && at[1] == NONE);
	spin_lock(0);
	d_step { assert(in_flight); in_flight--; over = true }
	spin_unlock(0)
}

/* run_stolen() */
inline run_stolen(me)
{
	read_once(me, TASK(cell - 1), task);
	assert(task);
	task--;
#ifdef DONE_EARLY
	store_release(me, DONE(cell - 1), 1);
#endif
	run_task(me, task);
#if defined(NO_RELEASE_DONE)
	write_once(me, DONE(cell - 1), 1);
#elif !defined(DONE_EARLY) && !defined(NO_COMPLETE)
	store_release(me, DONE(cell - 1), 1);
#endif
	task = 0
}

/* runner_next_locked(), fairwq_start_item(); the turn of @cell has ended */
inline runner_next(me)
{
	spin_lock(me);
	d_step {
		if
		:: cell -> assert(in_flight); in_flight--
		:: else
		fi;
		cell = 0;
		if
		:: pending[0] -> cell = 1
#if CELLS > 1
		/* The code takes the last one first. Any order will do here. */
		:: !pending[0] && pending[1] -> cell = 2
#endif
		:: else
		fi
	}
	if
	:: cell ->
#ifdef TAKEN_UNMARKED
		in_flight++;
#endif
		assert(mem[CURRENT(3 - me)] != cell);
		store_release(me, CURRENT(me), cell);
		write_once(me, LAST(cell - 1), me);
		/* xchg() */
		d_step {
			RMW(me) ->
			pending[cell - 1] = false;
			/* Kick a runner for the tasks that are left. */
			if
#if CELLS > 1
			:: pending[0] || pending[1] -> kick_locked()
#endif
			:: else
			fi
		}
	:: else -> idle[me] = true
	fi;
	spin_unlock(me)
}

/* fairwq_run() */
proctype runner(byte me)
{
	byte cell, task, data;

end:	do
	:: d_step { kicked[me] -> kicked[me] = false };
		do
		:: runner_next(me);
			if
			:: cell -> run_stolen(me)
			:: else -> break
			fi
		od;
		/* fairwq_end_current() */
		store_release(me, CURRENT(me), 0)
	od
}

#ifdef CANCEL
/* fairwq_batch_cancel(), one section under the lock */
proctype canceler()
{
	atomic {
		mem[LOCK] == 0;
		if
		:: pending[0] -> remove_locked(0)
		:: else
		fi
	}
}
#endif

proctype waiter()
{
	over && idle[1] && idle[2] && !kicked[1] && !kicked[2] &&
		sb[0].n + sb[1].n + sb[2].n == 0;
	assert(ran[0] && ran[1] && !in_flight && !pending[0])
}

init {
	atomic {
		idle[1] = true;
		idle[2] = true;
		run memory();
		run forker();
		run runner(1);
		run runner(2);
#ifdef CANCEL
		run canceler();
#endif
		run waiter()
	}
}
