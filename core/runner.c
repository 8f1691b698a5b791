// SPDX-License-Identifier: GPL-2.0
/*
 * Runners: how they are made, and which one executes the caller, or a work.
 *
 * seat.c says when one works. tune.c adds runners to a pool, and frees those
 * that are too many and idle for long.
 *
 * Locking: pool->lock. fairwq_runners has a lock of its own, and is read under
 * RCU.
 */
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/xarray.h>

#include "asleep.h"
#include "lockdep.h"
#include "runner.h"
#include "stack.h"
#include "testing.h"

/*
 * All runners by id, so that a work can name its last runner without a pointer.
 * A runner that was found stays for an RCU read-side section, or while a work
 * is parked at it.
 */
DEFINE_XARRAY_ALLOC1(fairwq_runners);

/* The main loop of all runners. Its file is above this one, so it is handed in. */
static work_func_t fairwq_runner_fn;

/* ---- turns ------------------------------------------------------------ */

/*
 * Ask the bursts that have a turn of @batch to end with the item that runs,
 * because something waits for turns of it to end, or no item of it is to begin.
 * The bursts of others go on.
 * No barrier is needed: a runner goes on with at most what it has taken before
 * it sees this. Model: tests/models/burst.pml, FLUSH.
 */
void fairwq_runner_yield_locked(struct fairwq_batch *batch)
{
	struct fairwq_runner *runner;

	lockdep_assert_held(&batch->pool->lock);

	list_for_each_entry(runner, &batch->pool->crew.runners, node)
		if (runner->turn.batch == batch)
			WRITE_ONCE(runner->yield, true);
}

/* ---- the runner that executes the caller, or a work ------------------- */

/*
 * Return the work that the workqueue core executes here, and its @func; or
 * NULL. If it is not one of fairwq's, its function may have freed it.
 */
struct work_struct *fairwq_current_work_of_core(work_func_t *func)
{
	struct work_struct *work = current_work();

	return work && !get_kernel_nofault(*func, &work->func) ? work : NULL;
}

/*
 * Return the runner that executes the caller, or NULL. An interrupt gets NULL,
 * also on top of an item, because current_work() is NULL there.
 */
struct fairwq_runner *fairwq_runner_current(void)
{
	work_func_t func;
	struct work_struct *work = fairwq_current_work_of_core(&func);
	struct fairwq_runner *runner;

	if (!work)
		return NULL;
	if (likely(func == READ_ONCE(fairwq_runner_fn)))
		runner = container_of(work, struct fairwq_runner, work);
	else
		runner = fairwq_stack_runner(work, func);
	/* The memory of a work that is gone may be a runner by now. */
	return runner && READ_ONCE(runner->task) == current ? runner : NULL;
}

/*
 * Return the runner of the item that the caller is a part of, or NULL. That of
 * a stolen task is the one whose item has forked it: it stays there until the
 * task is joined.
 */
struct fairwq_runner *fairwq_runner_of_item(void)
{
	struct fairwq_runner *runner = fairwq_runner_current();

	while (runner && runner->origin)
		runner = runner->origin;
	return runner;
}

/* Check whether the caller is a part of an item of @serializer, or a task of one. */
bool fairwq_runner_is_of(const struct fairwq_serializer *serializer)
{
	const struct fairwq_runner *runner = fairwq_runner_of_item();

	return runner && runner->turn.batch && runner->turn.serializer == serializer;
}

/* Return the turn whose item the caller is, or NULL. */
const struct fairwq_turn *fairwq_runner_own_turn(void)
{
	struct fairwq_runner *runner = fairwq_runner_current();

	return runner && runner->turn.batch ? &runner->turn : NULL;
}

/* Return the runner that executes @work, or NULL. Under rcu_read_lock(). */
struct fairwq_runner *fairwq_executing_runner(const struct fairwq_work *work)
{
	struct fairwq_runner *other = xa_load(&fairwq_runners, READ_ONCE(work->last_runner));

	/*
	 * If that run has ended, its stores are seen. Pairs with the releases
	 * in fairwq_start_item(), fairwq_end_current() and, in burst.pml,
	 * fairwq_waitlist_end_item(). Models: tests/models/park.pml,
	 * disable.pml.
	 */
	return other && smp_load_acquire(&other->current_work) == work ? other : NULL;
}

/* ---- a call that is about to wait -------------------------------------- */

/*
 * Warn if reclaim of memory may wait for the caller, and what the caller is
 * about to wait for may need memory to go on: not all of it is @for_reclaim, of
 * pools with FAIRWQ_MEM_RECLAIM. The workqueue core checks flushes of
 * workqueues so, and does not see these calls. As there, a cancel is not
 * checked: it waits for what has a worker already.
 *
 * Limits: an item of a workqueue with WQ_MEM_RECLAIM is not recognised.
 */
void fairwq_check_reclaim(bool for_reclaim)
{
	const struct fairwq_turn *turn = fairwq_runner_own_turn();

	if (for_reclaim)
		return;
	if (turn && !fairwq_is_for_reclaim(turn->batch))
		turn = NULL;
	if (!turn && !(current->flags & PF_MEMALLOC))
		return;
	fairwq_test_point(FAIRWQ_POINT_UNSAFE_WAIT, NULL);
	WARN_ONCE(turn, "fairwq: item %ps of FAIRWQ_MEM_RECLAIM batch %s/%s waits for items of a pool without that\n",
		  turn->func, turn->batch->pool->name, turn->batch->name);
	WARN_ONCE(!turn, "fairwq: PF_MEMALLOC task %d(%s) waits for items of a pool without FAIRWQ_MEM_RECLAIM\n",
		  current->pid, current->comm);
}

/*
 * Check that the caller may wait for items that hold @map, by lockdep and as
 * above. Flushes of works make these checks by themselves, those of sequencers
 * the second one.
 */
void fairwq_wait_begin(struct lockdep_map *map, bool for_reclaim)
{
	fairwq_lockdep_wait(map);
	fairwq_check_reclaim(for_reclaim);
}

/* ---- setting up and freeing ------------------------------------------- */

/*
 * Set up a runner with the main loop @run. It is idle and in no list.
 *
 * Return: the runner, or NULL if there is no memory.
 */
struct fairwq_runner *fairwq_runner_alloc(struct fairwq_pool *pool, work_func_t run,
					  gfp_t gfp)
{
	struct fairwq_runner *runner = kzalloc(sizeof(*runner), gfp);

	if (!runner)
		return NULL;
	WRITE_ONCE(fairwq_runner_fn, run);	/* each call stores the same */
	INIT_WORK(&runner->work, run);
	lockdep_init_map(&runner->work.lockdep_map, "(fairwq_runner)", &pool->runner_key, 0);
	INIT_LIST_HEAD(&runner->idle_node);
	raw_spin_lock_init(&runner->park_lock);
	INIT_LIST_HEAD(&runner->parked);
	INIT_LIST_HEAD(&runner->forker.forks.list);
	runner->forker.shared = &runner->forker.forks.list;
	runner->forker.forks.hungry = &pool->crew.hungry;
	runner->pool = pool;
	if (xa_alloc(&fairwq_runners, &runner->id, runner, xa_limit_32b, gfp)) {
		kfree(runner);
		return NULL;
	}
	fairwq_asleep_init(runner);
	return runner;
}

/* Free a runner. Its work must be neither queued nor running. */
void fairwq_runner_free(struct fairwq_runner *runner)
{
	fairwq_asleep_uninit(runner);
	xa_erase(&fairwq_runners, runner->id);
	kfree_rcu(runner, rcu);		/* fairwq_executing_runner() may look at it */
}
