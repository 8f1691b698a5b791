// SPDX-License-Identifier: GPL-2.0
/*
 * Runners: kicked, running turns, going idle.
 *
 * A runner decides one turn at a time. It holds the pool's lock once between two items:
 * it tells the batch of the item that has ended, asks the tree for the next one, and
 * charges it. So what is in flight is what runs, and nothing that was decided has to be
 * taken back. The workqueue core takes a lock for each of its works, too.
 *
 * No wake-up is lost: a runner goes idle only under the lock, having seen that
 * the tree is empty or too many work, and a batch enters the tree only under the same lock.
 * Model: tests/models/queue.pml.
 *
 * More runners are woken as long as something waits, but not for items that are over at
 * once: another CPU takes longer to get at them than they take. If one of these takes
 * longer for once, the pool's timer finds it within two ticks, see tick.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "guard.h"
#include "internal.h"
#include "trace.h"

/* Items that take less, on average, are over at once, ns. */
#define QUICK_NS	1000U
/* One turn in so many is timed, where all are over at once and nothing else asks for it. */
#define TIMED_TURNS	64U

/* Every runner by its id, so that a work can name one without a pointer. */
DEFINE_XARRAY_ALLOC1(fairwq_runners);
static u32 fairwq_next_runner_id;

/* ---- kicking ---------------------------------------------------------- */

/*
 * The idle runner that ran last on this CPU, else the one that ran last. The core
 * may still be at the end of its last run, and sends it where that was.
 */
static struct fairwq_runner *fairwq_idle_runner_locked(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;
	int cpu = raw_smp_processor_id();

	lockdep_assert_held(&pool->lock);

	list_for_each_entry(runner, &pool->idle_runners, idle_node)
		if (runner->cpu == cpu)
			return runner;
	return list_first_entry_or_null(&pool->idle_runners, struct fairwq_runner, idle_node);
}

/* Choose an idle runner, if one more may run. */
struct fairwq_runner *fairwq_wake_locked(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;

	lockdep_assert_held(&pool->lock);

	if (pool->nr_active >= pool->max_active)
		return NULL;
	runner = fairwq_idle_runner_locked(pool);
	if (!runner)
		return NULL;
	list_del_init(&runner->idle_node);
	pool->nr_active++;
	pool->counter[FAIRWQ_KICKS]++;
	fairwq_tick_arm_locked(pool);
	return runner;
}

/*
 * Some runner is at an item that will be over at once: it takes what waits. If it does
 * not, the tick finds that. Not if all of these have been at it for longer by now.
 */
static bool fairwq_is_soon_free_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	if (!pool->nr_quick || time_after(jiffies, pool->quick_at))
		return false;
	fairwq_tick_soon_locked(pool);
	return true;
}

/*
 * Choose an idle runner for the eligible work that stands in the tree. The
 * caller sends it, once the lock is dropped, by fairwq_kick_send(). Between
 * the two the pool may be drained by others: unless the caller is a worker of
 * the pool, both are in one RCU read-side section, which its destruction waits
 * for if it finds a runner active.
 */
struct fairwq_runner *fairwq_kick_locked(struct fairwq_pool *pool)
{
	if (!fairwq_has_work_locked(pool) || fairwq_is_soon_free_locked(pool))
		return NULL;
	return fairwq_wake_locked(pool);
}

void fairwq_kick_send(struct fairwq_pool *pool, struct fairwq_runner *runner)
{
	if (!runner)
		return;
	trace_fairwq_runner(pool, runner, FAIRWQ_RUNNER_KICK);
	queue_work(pool->wq, &runner->work);
}

/* Both, and in between the lock is dropped. */
void fairwq_unlock_kick(struct fairwq_pool *pool, unsigned long flags)
{
	struct fairwq_runner *runner = fairwq_kick_locked(pool);

	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick_send(pool, runner);
}

/* Something became eligible, or more runners may run. */
void fairwq_kick(struct fairwq_pool *pool)
{
	unsigned long flags;

	rcu_read_lock();
	raw_spin_lock_irqsave(&pool->lock, flags);
	fairwq_unlock_kick(pool, flags);
	rcu_read_unlock();
}

/*
 * Something waits for turns to end: streaks end with the item that runs. No barrier: at
 * most what the runner has taken before it sees this goes on. Model:
 * tests/models/streak.pml, FLUSH and PAUSE.
 */
void fairwq_yield_locked(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;

	lockdep_assert_held(&pool->lock);

	list_for_each_entry(runner, &pool->runners, node)
		WRITE_ONCE(runner->yield, true);
}

/* ---- one turn --------------------------------------------------------- */

/*
 * From here on the work is started. Under the pool's lock, or that of the constraint in
 * which it has waited.
 */
void fairwq_start_item(struct fairwq_runner *runner, struct fairwq_work *work)
{
	/*
	 * What another runner may want to know. If it sees that the one before is over it
	 * sees what that did: the lock that was taken since is no such barrier. Pairs with
	 * fairwq_runs_elsewhere(), fairwq_park_at() and fairwq_await_running(). Models:
	 * tests/models/park.pml, disable.pml.
	 */
	smp_store_release(&runner->current_work, work);
	WRITE_ONCE(work->last_runner, runner->id);
	WRITE_ONCE(work->constraint, NULL);
	WRITE_ONCE(runner->started, jiffies);
	/*
	 * Whoever finds it clear queues anew, and sees who runs it. Whoever
	 * found it set has his stores seen by the function. Full barrier, pairs
	 * with the one in fairwq_claim_taken(). It is also one between the store of
	 * @current_work and the load of @wanted, in fairwq_run_item(): pairs with
	 * fairwq_park_at().
	 * Models: tests/models/pending.pml, park.pml.
	 */
	atomic_long_xchg(&work->data, 0);
}

/* It is over: what is parked until then is put back. */
void fairwq_end_current(struct fairwq_runner *runner)
{
	/*
	 * The run to come sees what this one did, and so does who waits for it. Pairs with
	 * fairwq_runs_elsewhere(), fairwq_park_at() and fairwq_await_running(). Models:
	 * tests/models/park.pml, disable.pml.
	 */
	smp_store_release(&runner->current_work, NULL);
	/*
	 * Store @current_work, then load @wanted. Pairs with fairwq_park_at(). Model:
	 * tests/models/park.pml.
	 */
	smp_mb();
	if (unlikely(READ_ONCE(runner->wanted)))
		fairwq_unpark(runner);
}

/* The function of a work, around it what makes it an item. */
static void fairwq_run_item(struct fairwq_runner *runner, struct fairwq_work *work,
			    struct fairwq_footing *footing)
{
	struct fairwq_turn *turn = &runner->turn;
	bool timed = turn->timed || trace_fairwq_start_enabled() || trace_fairwq_end_enabled();
	u64 start = timed || turn->stamp ? fairwq_clock() : 0, end;
	unsigned long switches = footing->self->nvcsw;

	/* What the last item was parked for, and what is parked here, is told of it now. */
	if (unlikely(READ_ONCE(runner->wanted)))
		fairwq_unpark(runner);
	if (turn->stamp)
		turn->wait = start > turn->stamp ? start - turn->stamp : 0;
	trace_fairwq_start(turn, work);
	fairwq_call(work, turn, footing);
	/* @work may have been freed: from here on it is only an address. */
	turn->run = 0;
	if (timed) {
		end = fairwq_clock();
		/* The clock may step back a little. */
		turn->run = max_t(s64, end - start, 1);
		turn->took += turn->run;
		runner->began = runner->began ?: start;
		runner->now = end;
	}
	if (unlikely(footing->self->nvcsw != switches))
		turn->slept = true;
	trace_fairwq_end(turn, work);
	/* A hint: it is looked at again when the next one starts. */
	if (unlikely(READ_ONCE(runner->wanted)))
		fairwq_end_current(runner);
	/* Between short items, with nothing to it, about once a tick is enough. */
	if (unlikely(need_resched() || time_after(jiffies, runner->started))) {
		fairwq_test_point(FAIRWQ_POINT_RESCHED, turn->batch);
		cond_resched();
	}
}

/*
 * The function of an item has returned. If others wait for that, they are told; if the
 * runner goes on with one of them, it is returned, started.
 */
static struct fairwq_work *fairwq_go_on(struct fairwq_runner *runner)
{
	struct fairwq_constraint *constraint = runner->turn.constraint;

	if (likely(!constraint))
		return NULL;
	if (constraint->serial)
		return fairwq_streak_next(runner, constraint);
	fairwq_complete(constraint);
	return NULL;
}

static void fairwq_run_turn(struct fairwq_runner *runner, struct fairwq_footing *footing)
{
	struct fairwq_work *work = runner->current_work;

	do {
		fairwq_run_item(runner, work, footing);
		work = fairwq_go_on(runner);
	} while (unlikely(work));
}

/* The next item is to be the first of a turn of @batch. */
void fairwq_turn_begin_locked(struct fairwq_runner *runner, struct fairwq_batch *batch)
{
	struct fairwq_turn *turn = &runner->turn;
	unsigned long avg = ewma_fairwq_run_read(&batch->stats->run_avg);
	struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(&pool->lock);

	turn->quick = avg && avg < QUICK_NS;
	turn->timed |= !turn->quick || !(turn->number % TIMED_TURNS);
	if (turn->quick) {
		pool->nr_quick++;
		pool->quick_at = jiffies;
	}
	WRITE_ONCE(runner->yield, false);
}

/* The runner's turn is over: its batch is told. */
void fairwq_turn_end_locked(struct fairwq_runner *runner)
{
	struct fairwq_turn *turn = &runner->turn;

	lockdep_assert_held(&runner->pool->lock);

	runner->pool->nr_quick -= turn->quick;
	fairwq_batch_turn_end_locked(turn);
	turn->batch = NULL;
}

/* Take the turn of the batch that the tree has picked. Returns whether there is an item. */
static bool fairwq_take_turn_locked(struct fairwq_runner *runner, struct fairwq_node *node)
{
	struct fairwq_batch *batch = container_of(node, struct fairwq_batch, node);
	struct fairwq_work *work = fairwq_head_locked(batch);

	lockdep_assert_held(&runner->pool->lock);

	if (fairwq_ran_elsewhere(work, runner->id) && fairwq_park_locked(runner, batch))
		return false;
	fairwq_batch_take_locked(batch, &runner->turn);
	fairwq_turn_begin_locked(runner, batch);
	runner->streak.nr = 0;
	fairwq_start_item(runner, work);
	return true;
}

/* ---- the life of a runner --------------------------------------------- */

static void fairwq_go_idle_locked(struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(&pool->lock);

	runner->task = NULL;
	pool->nr_active--;
	/* The one that ran last is the one whose caches are warm. */
	list_add(&runner->idle_node, &pool->idle_runners);
	trace_fairwq_runner(pool, runner, FAIRWQ_RUNNER_IDLE);
}

/*
 * Two runners at items that are over at once take turns at waiting for the lock. One gets
 * through as much, or more: the other one goes.
 */
static bool fairwq_is_one_too_many_locked(const struct fairwq_runner *runner)
{
	lockdep_assert_held(&runner->pool->lock);

	return runner->turn.quick && fairwq_is_soon_free_locked(runner->pool);
}

/* By items that were timed, else by a coarse clock. */
static bool fairwq_time_is_up(const struct fairwq_runner *runner, unsigned long until)
{
	return unlikely(runner->now - runner->began > FAIRWQ_RUNNER_QUANTUM_NS ||
			time_after(jiffies, until));
}

/*
 * The next turn, or none: then the runner is idle, or is to be queued again, if @requeue is
 * set. A runner whose time is up goes back to the workqueue core, so that freezing,
 * flushing and affinity changes there work as always.
 */
static bool fairwq_runner_next_locked(struct fairwq_runner *runner, unsigned long until,
				      bool *requeue)
{
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_node *node;

	lockdep_assert_held(&pool->lock);

	do {
		if (unlikely(!list_empty(&pool->sorting)))
			fairwq_pool_sort_locked(pool);
		node = fairwq_tree_pick(&pool->tree);
		if (fairwq_time_is_up(runner, until) && fairwq_has_work_locked(pool)) {
			pool->counter[FAIRWQ_REQUEUES]++;
			*requeue = true;
			return false;
		}
		if (pool->nr_active > pool->max_active ||
		    (!node && list_empty(&pool->sorting)) ||
		    fairwq_is_one_too_many_locked(runner)) {
			fairwq_go_idle_locked(runner);
			return false;
		}
	} while (!node || !fairwq_take_turn_locked(runner, node));
	return true;
}

static void fairwq_runner_fn(struct work_struct *work)
{
	struct fairwq_runner *runner = container_of(work, struct fairwq_runner, work);
	unsigned long until = jiffies + nsecs_to_jiffies(FAIRWQ_RUNNER_QUANTUM_NS);
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_footing footing;
	struct fairwq_runner *kick;
	bool requeue = false;

	fairwq_footing_take(&footing);
	raw_spin_lock_irq(&pool->lock);
	runner->task = footing.self;
	runner->cpu = raw_smp_processor_id();
	runner->turn.quick = false;
	runner->began = 0;
	runner->now = 0;
	while (fairwq_runner_next_locked(runner, until, &requeue)) {
		kick = fairwq_kick_locked(pool);
		raw_spin_unlock_irq(&pool->lock);
		fairwq_kick_send(pool, kick);
		fairwq_run_turn(runner, &footing);
		raw_spin_lock_irq(&pool->lock);
		fairwq_turn_end_locked(runner);
	}
	kick = requeue ? NULL : fairwq_kick_locked(pool);
	raw_spin_unlock_irq(&pool->lock);
	fairwq_end_current(runner);
	fairwq_kick_send(pool, kick);
	if (requeue)
		queue_work(pool->wq, &runner->work);
}

/*
 * The runner that executes the caller, or NULL. current_work() is NULL from
 * interrupts, which may have come in on top of any item.
 */
struct fairwq_runner *fairwq_current_runner(void)
{
	struct work_struct *work = current_work();

	if (!work || work->func != fairwq_runner_fn)
		return NULL;
	return container_of(work, struct fairwq_runner, work);
}

/* The turn that a runner is in, for itself, or for who holds the lock. */
const struct fairwq_turn *fairwq_current_turn(const struct fairwq_runner *runner)
{
	return runner->turn.batch ? &runner->turn : NULL;
}

/* The turn that the caller is in, as its item; or NULL. */
const struct fairwq_turn *fairwq_own_turn(void)
{
	struct fairwq_runner *runner = fairwq_current_runner();

	return runner ? fairwq_current_turn(runner) : NULL;
}

/* Under rcu_read_lock(), or while it cannot go. */
struct fairwq_runner *fairwq_runner_find(u32 id)
{
	return xa_load(&fairwq_runners, id);
}

/* A runner that is idle and in no list. */
struct fairwq_runner *fairwq_runner_alloc(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner = kzalloc(sizeof(*runner), GFP_KERNEL);
	int err;

	if (!runner)
		return NULL;
	INIT_WORK(&runner->work, fairwq_runner_fn);
	fairwq_lockdep_init_runner(pool, &runner->work);
	INIT_LIST_HEAD(&runner->idle_node);
	raw_spin_lock_init(&runner->park_lock);
	INIT_LIST_HEAD(&runner->parked);
	runner->pool = pool;
	err = xa_alloc_cyclic(&fairwq_runners, &runner->id, runner, xa_limit_32b,
			      &fairwq_next_runner_id, GFP_KERNEL);
	if (err < 0) {
		kfree(runner);
		return NULL;
	}
	return runner;
}

/* The runner's work is neither queued nor running. */
void fairwq_runner_free(struct fairwq_runner *runner)
{
	xa_erase(&fairwq_runners, runner->id);
	kfree_rcu(runner, rcu);		/* fairwq_park_locked() may look at it */
}

void fairwq_runners_check(void)
{
	WARN_ON(!xa_empty(&fairwq_runners));
}
