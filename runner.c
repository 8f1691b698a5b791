// SPDX-License-Identifier: GPL-2.0
/*
 * Runners: kicked, planning, running, being stolen from, going idle.
 *
 * A runner plans ahead: under one hold of the pool's lock it takes the next
 * few items in the order in which the tree would have given them one by one,
 * across batches, so that the cost of choosing is shared and the rotation
 * stays exact. How far is a time, not a count: about a slice of work by the
 * moving average of each batch's run times, and one item of a batch that was
 * not measured yet. Then it runs them without the lock.
 *
 * What a runner took along can be taken from it, in start order: a slot of a
 * plan belongs to whoever takes the work out of it by xchg(). A plan is what
 * the tree would have given next, so other runners take from it first, and
 * only when nothing is left make the next plan: there is one open plan in a
 * pool, and the order of turns is that of one runner deciding one at a time.
 *
 * If there is nothing else to wake other runners for, a tick finds the plan
 * that is overdue and kicks one. So an item that sleeps holds up the ones
 * behind it in its runner's plan for a tick or two. A runner that is that late
 * itself gives back what is left of its plan.
 *
 * No wake-up is lost: a runner goes idle only under the lock, having seen that
 * the tree is empty, and a batch enters the tree only under the same lock.
 *
 * Turns that have ended are told to their batches under the next hold of the
 * lock, which may be a plan later. Whoever needs to know at once (a flush, the
 * end of a batch, a limit) raises the pool's attention: see
 * fairwq_attention_raise_locked().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "internal.h"
#include "trace.h"

/* Every runner by its id, so that a work can name one without a pointer. */
static DEFINE_XARRAY_ALLOC1(fairwq_runners);
static u32 fairwq_next_runner_id;

/* What choosing and accounting add to an item, ns; a guess, for short ones. */
#define PLAN_OVERHEAD_NS	50
/* A plan that takes longer is worth waking another runner for; about what that costs. */
#define PLAN_SHARED_NS		(5 * NSEC_PER_USEC)

/* ---- kicking ---------------------------------------------------------- */

static struct fairwq_runner *fairwq_wake_locked(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;

	lockdep_assert_held(&pool->lock);

	if (pool->nr_active >= pool->max_active)
		return NULL;
	if (fairwq_mutant(KICK_LOST) && pool->nr_active)
		return NULL;
	runner = list_first_entry_or_null(&pool->idle_runners,
					  struct fairwq_runner, idle_node);
	if (!runner)
		return NULL;
	list_del_init(&runner->idle_node);
	pool->nr_active++;
	pool->counter[FAIRWQ_KICKS]++;
	fairwq_tick_arm_locked(pool);
	return runner;
}

/*
 * Choose an idle runner for the eligible work that stands in the tree. The
 * caller sends it, once the lock is dropped, by fairwq_kick_send(). Between
 * the two the pool may be drained by others: unless the caller is a worker of
 * the pool, both are in one RCU read-side section, which its destruction waits
 * for.
 */
struct fairwq_runner *fairwq_kick_locked(struct fairwq_pool *pool)
{
	return fairwq_tree_pick(&pool->tree) ? fairwq_wake_locked(pool) : NULL;
}

void fairwq_kick_send(struct fairwq_pool *pool, struct fairwq_runner *runner)
{
	if (!runner)
		return;
	trace_fairwq_runner(pool, runner, FAIRWQ_RUNNER_KICK);
	queue_work(pool->wq, &runner->work);
}

/* Something became eligible, or more runners may run. */
void fairwq_kick(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;
	unsigned long flags;

	rcu_read_lock();
	raw_spin_lock_irqsave(&pool->lock, flags);
	runner = fairwq_kick_locked(pool);
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick_send(pool, runner);
	rcu_read_unlock();
}

/* ---- turns that have ended -------------------------------------------- */

static void fairwq_account_locked(struct fairwq_runner *runner)
{
	struct fairwq_plan *plan = &runner->plan;
	/* Pairs with the release in fairwq_run_plan(). */
	unsigned int done = smp_load_acquire(&plan->done);

	lockdep_assert_held(&runner->pool->lock);

	for (; plan->accounted < done; plan->accounted++)
		if (plan->slot[plan->accounted].batch)
			fairwq_batch_turn_end_locked(&plan->slot[plan->accounted]);
}

/*
 * Somebody waits for turns to end: while the pool's attention is up, runners
 * tell of each at once, before they call the next function. Turns that have
 * ended by now are told here. With the barrier, either the runner sees that
 * attention is up, or we see that its turn has ended; see fairwq_run_slot().
 */
void fairwq_attention_raise_locked(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;

	lockdep_assert_held(&pool->lock);

	WRITE_ONCE(pool->attention, pool->attention + 1);
	/* Store @attention, then load @done; pairs with fairwq_run_slot(). */
	smp_mb();
	list_for_each_entry(runner, &pool->runners, node)
		fairwq_account_locked(runner);
}

void fairwq_attention_lower_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	WRITE_ONCE(pool->attention, pool->attention - 1);
}

/* A turn goes on although its item leaves the slot: who takes it again sees this. */
static void fairwq_mark_taken_locked(struct fairwq_work *work,
				     const struct fairwq_slot *slot, unsigned int place)
{
	lockdep_assert_held(&slot->batch->pool->lock);

	work->place = place | FAIRWQ_PLACE_TAKEN |
		      (slot->color ? FAIRWQ_PLACE_COLOR : 0) |
		      (slot->awaited ? FAIRWQ_PLACE_AWAITED : 0);
	if (unlikely(slot->awaited))
		fairwq_waiters_move_locked(slot->batch->pool, slot, NULL);
}

/* ---- one work never runs twice at once -------------------------------- */

/*
 * A work remembers who started it last. If that runner still executes it when
 * its next turn is taken, it is parked there, still pending, and put back into
 * its batch when the function has returned. Later than then it need not be
 * looked for: what is pending cannot have been started since. The check goes
 * by the work's own memory of its run: an object that was freed by its
 * function and set up again has none, and does not wait for a stranger.
 *
 * Returns whether the work was parked.
 */
static bool fairwq_park_at(struct fairwq_runner *other, struct fairwq_slot *slot)
{
	struct fairwq_work *work = slot->work;
	bool parked;

	raw_spin_lock(&other->park_lock);
	WRITE_ONCE(other->wanted, true);
	/*
	 * Store @wanted, then load @current_work. Pairs with fairwq_run_slot()
	 * and fairwq_run_plan(): either @other sees that it is wanted, or it
	 * has stored another work by now.
	 */
	smp_mb();
	parked = READ_ONCE(other->current_work) == work;
	if (parked) {
		fairwq_mark_taken_locked(work, slot, FAIRWQ_PLACE_PARKED);
		list_add_tail(&work->node, &other->parked);
		slot->batch->nr_parked++;
		slot->batch = NULL;
		slot->work = NULL;
	} else {
		WRITE_ONCE(other->wanted, !list_empty(&other->parked));
	}
	raw_spin_unlock(&other->park_lock);
	return parked;
}

/* Another runner may execute this work; hardly ever one does. */
static bool fairwq_park_locked(struct fairwq_runner *runner, struct fairwq_slot *slot)
{
	struct fairwq_runner *other;
	u32 id = slot->work->last_runner;
	bool parked;

	lockdep_assert_held(&runner->pool->lock);

	if (!id || id == runner->id || fairwq_mutant(REENTRANT))
		return false;
	rcu_read_lock();
	other = fairwq_runner_find(id);
	parked = other && READ_ONCE(other->current_work) == slot->work &&
		 fairwq_park_at(other, slot);
	rcu_read_unlock();
	return parked;
}

/* A parked work need not wait any more; it is its caller's now. */
void fairwq_unpark_work_locked(struct fairwq_work *work)
{
	struct fairwq_batch *batch = fairwq_work_batch(atomic_long_read(&work->data));
	struct fairwq_runner *other = fairwq_runner_find(work->last_runner);

	lockdep_assert_held(&batch->pool->lock);

	raw_spin_lock(&other->park_lock);
	list_del(&work->node);
	WRITE_ONCE(other->wanted, !list_empty(&other->parked));
	raw_spin_unlock(&other->park_lock);
	batch->nr_parked--;
}

/* One that is parked at any runner, of any pool. */
struct fairwq_work *fairwq_find_parked_locked(struct fairwq_batch *batch)
{
	struct fairwq_work *work, *found = NULL;
	struct fairwq_runner *runner;
	unsigned long id;

	lockdep_assert_held(&batch->pool->lock);

	rcu_read_lock();
	xa_for_each(&fairwq_runners, id, runner) {
		raw_spin_lock(&runner->park_lock);
		list_for_each_entry(work, &runner->parked, node) {
			if (fairwq_work_batch(atomic_long_read(&work->data)) != batch)
				continue;
			found = work;
			break;
		}
		raw_spin_unlock(&runner->park_lock);
		if (found)
			break;
	}
	rcu_read_unlock();
	return found;
}

static struct fairwq_work *fairwq_first_parked(struct fairwq_runner *runner,
					       struct fairwq_batch **batch)
{
	struct fairwq_work *work;
	unsigned long flags;

	raw_spin_lock_irqsave(&runner->park_lock, flags);
	work = list_first_entry_or_null(&runner->parked, struct fairwq_work, node);
	if (work)
		*batch = fairwq_work_batch(atomic_long_read(&work->data));
	raw_spin_unlock_irqrestore(&runner->park_lock, flags);
	return work;
}

/* Unless it was cancelled, between two holds of the lock. */
static void fairwq_unpark_first_locked(struct fairwq_runner *runner,
				       struct fairwq_batch *batch,
				       struct fairwq_work *work)
{
	bool still;

	lockdep_assert_held(&batch->pool->lock);

	raw_spin_lock(&runner->park_lock);
	still = work == list_first_entry_or_null(&runner->parked, struct fairwq_work, node) &&
		batch == fairwq_work_batch(atomic_long_read(&work->data));
	raw_spin_unlock(&runner->park_lock);
	if (!still)
		return;
	fairwq_unpark_work_locked(work);
	batch->pool->counter[FAIRWQ_PARKED]++;
	fairwq_batch_put_back_locked(batch, work);
}

/*
 * The function they waited for has returned. They may be of batches of any
 * pool; the first one's is kept by it being pending, and until a grace period
 * after that.
 */
static void fairwq_unpark(struct fairwq_runner *runner)
{
	struct fairwq_batch *batch;
	struct fairwq_work *work;
	struct fairwq_runner *kick;
	struct fairwq_pool *pool;
	unsigned long flags;

	rcu_read_lock();
	while ((work = fairwq_first_parked(runner, &batch))) {
		pool = batch->pool;
		raw_spin_lock_irqsave(&pool->lock, flags);
		fairwq_unpark_first_locked(runner, batch, work);
		kick = fairwq_kick_locked(pool);
		raw_spin_unlock_irqrestore(&pool->lock, flags);
		fairwq_kick_send(pool, kick);
	}
	rcu_read_unlock();
}

/* Attention is up: tell of what has ended. */
static void fairwq_attend_runner(struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_runner *kick;
	unsigned long flags;

	raw_spin_lock_irqsave(&pool->lock, flags);
	fairwq_account_locked(runner);
	kick = fairwq_kick_locked(pool);
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick_send(pool, kick);
}

/* ---- planning --------------------------------------------------------- */

static u64 fairwq_slice_ns_locked(const struct fairwq_pool *pool)
{
	return (u64)pool->slice_us * NSEC_PER_USEC;
}

/* What the next item of @batch is likely to take; never measured: a slice. */
static u64 fairwq_estimate_locked(struct fairwq_batch *batch, u64 slice)
{
	unsigned long avg = ewma_fairwq_run_read(&batch->stats->run_avg);

	return avg ? avg + PLAN_OVERHEAD_NS : slice;
}

/* Take turns in the order of the tree, about a slice of them, at least one. */
static void fairwq_plan_turns_locked(struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_plan *plan = &runner->plan;
	u64 slice = fairwq_slice_ns_locked(pool), planned = 0;
	struct fairwq_batch *batch;
	struct fairwq_node *node;

	lockdep_assert_held(&pool->lock);

	do {
		node = fairwq_tree_pick(&pool->tree);
		if (!node)
			break;
		batch = container_of(node, struct fairwq_batch, node);
		fairwq_batch_take_locked(batch, &plan->slot[plan->nr]);
		if (unlikely(fairwq_park_locked(runner, &plan->slot[plan->nr])))
			continue;
		planned += fairwq_estimate_locked(batch, slice);
		plan->nr++;
	} while (planned < slice && plan->nr < FAIRWQ_PLAN_MAX);
	plan->share = plan->nr > 1 && planned > PLAN_SHARED_NS;
	/* One of them is timed, each time another. */
	plan->timed = plan->nr ? pool->plan_seq++ % plan->nr : 0;
	if (plan->nr > 1) {
		pool->planner = runner;
		fairwq_tick_soon_locked(pool);
	}
}

/* The first turn that is left in @victim's plan becomes ours. */
static bool fairwq_steal_from_locked(struct fairwq_runner *runner,
				     struct fairwq_runner *victim)
{
	struct fairwq_plan *plan = &runner->plan;
	struct fairwq_slot *slot;
	struct fairwq_work *work;
	unsigned int i;

	if (fairwq_mutant(NO_STEALING))
		return false;
	for (i = READ_ONCE(victim->plan.next); i < victim->plan.nr; i++) {
		slot = &victim->plan.slot[i];
		work = xchg(&slot->work, NULL);
		if (!work)
			continue;
		plan->slot[0] = *slot;
		plan->slot[0].work = work;
		work->slot = &plan->slot[0];
		if (unlikely(slot->awaited))
			fairwq_waiters_move_locked(runner->pool, slot, work->slot);
		slot->batch = NULL;	/* not the victim's to account for */
		plan->nr = 1;
		runner->pool->counter[FAIRWQ_STOLEN]++;
		return true;
	}
	return false;
}

/* There is something in its plan that was not started. */
static bool fairwq_plan_open_locked(const struct fairwq_runner *runner)
{
	return READ_ONCE(runner->plan.next) < runner->plan.nr;
}

/* And it has had twice the time it planned for. */
static bool fairwq_overdue_locked(const struct fairwq_runner *runner, u64 now)
{
	const struct fairwq_plan *plan = &runner->plan;

	return fairwq_plan_open_locked(runner) &&
	       now - plan->began > 2 * fairwq_slice_ns_locked(runner->pool);
}

/* The turn after those that were begun, if it was planned already. */
static void fairwq_join_plan_locked(struct fairwq_runner *runner)
{
	struct fairwq_runner *planner = runner->pool->planner;

	lockdep_assert_held(&runner->pool->lock);

	if (planner && planner != runner && fairwq_plan_open_locked(planner) &&
	    !fairwq_mutant(PLANS_OVERLAP))
		fairwq_steal_from_locked(runner, planner);
}

/* A turn that another runner took, and does not come to. */
static void fairwq_rescue_locked(struct fairwq_runner *runner, u64 now)
{
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_runner *victim;

	lockdep_assert_held(&pool->lock);

	if (pool->nr_active < 2)
		return;
	list_for_each_entry(victim, &pool->runners, node)
		if (victim != runner && fairwq_overdue_locked(victim, now) &&
		    fairwq_steal_from_locked(runner, victim))
			return;
}

/* A new plan. Returns whether there is anything in it. */
static bool fairwq_plan_locked(struct fairwq_runner *runner, u64 now)
{
	struct fairwq_plan *plan = &runner->plan;

	lockdep_assert_held(&runner->pool->lock);

	plan->nr = 0;
	plan->next = 0;
	plan->done = 0;
	plan->accounted = 0;
	plan->timed = 0;
	plan->share = false;
	plan->began = now;
	if (runner->pool->nr_active > runner->pool->max_active)
		return false;
	fairwq_join_plan_locked(runner);
	if (!plan->nr)
		fairwq_plan_turns_locked(runner);
	if (!plan->nr)
		fairwq_rescue_locked(runner, now);
	return plan->nr;
}

/* ---- running ---------------------------------------------------------- */

/* The function of @slot, around it what makes it a turn. */
static void fairwq_run_slot(struct fairwq_runner *runner, struct fairwq_slot *slot,
			    struct fairwq_work *work, bool timed)
{
	struct fairwq_pool *pool = runner->pool;
	u64 start = 0;

	/* What another runner, or an operator, may want to know. */
	WRITE_ONCE(runner->current_work, work);
	WRITE_ONCE(work->last_runner, runner->id);
	if (timed || slot->stamp)
		start = fairwq_clock();
	slot->wait = slot->stamp && start > slot->stamp ? start - slot->stamp : 0;
	trace_fairwq_start(slot, work);
	/*
	 * Whoever finds it clear queues anew, and sees by the release who runs
	 * it. Whoever found it set has his stores seen by the function, by the
	 * full barrier; pairs with the one in fairwq_claim(). The barrier is
	 * also one between the stores of @done and @current_work and the loads
	 * of @attention and @wanted: pairs with fairwq_attention_raise_locked()
	 * and fairwq_park_at().
	 */
	if (!fairwq_mutant(PENDING_AFTER))
		atomic_long_set_release(&work->data, 0);
	smp_mb();
	if (unlikely(READ_ONCE(pool->attention)))
		fairwq_attend_runner(runner);
	if (unlikely(READ_ONCE(runner->wanted)))
		fairwq_unpark(runner);
	fairwq_call(work, slot->func, slot->batch);
	/* @work may have been freed: from here on it is only an address. */
	if (fairwq_mutant(PENDING_AFTER))
		atomic_long_set(&work->data, 0);
	/* The clock may step back a little. */
	slot->run = start ? max_t(s64, fairwq_clock() - start, 1) : 0;
	trace_fairwq_end(slot, work);
}

/* An item that was taken goes back to the head of its batch, its turn begun. */
static void fairwq_give_back_slot_locked(struct fairwq_slot *slot)
{
	struct fairwq_work *work = xchg(&slot->work, NULL);
	struct fairwq_batch *batch = slot->batch;

	if (!work)
		return;
	lockdep_assert_held(&batch->pool->lock);
	fairwq_mark_taken_locked(work, slot, FAIRWQ_PLACE_FIFO);
	slot->batch = NULL;
	fairwq_batch_put_back_locked(batch, work);
}

/*
 * The items take much longer than they used to: what is left of the plan may
 * be served later, and by others. From the last one on, so that each batch has
 * its items in queue order again.
 */
static void fairwq_give_back_rest(struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_plan *plan = &runner->plan;
	struct fairwq_runner *kick;
	unsigned long flags;
	unsigned int i;

	raw_spin_lock_irqsave(&pool->lock, flags);
	for (i = plan->nr; i-- > plan->next;)
		fairwq_give_back_slot_locked(&plan->slot[i]);
	kick = fairwq_kick_locked(pool);
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick_send(pool, kick);
}

static void fairwq_run_plan(struct fairwq_runner *runner)
{
	struct fairwq_plan *plan = &runner->plan;
	bool time_all = trace_fairwq_start_enabled() || trace_fairwq_end_enabled();
	unsigned long overdue = jiffies + 2;
	struct fairwq_slot *slot;
	struct fairwq_work *work;
	unsigned int i;

	for (i = 0; i < plan->nr; i++) {
		slot = &plan->slot[i];
		WRITE_ONCE(runner->started, jiffies);
		/* Pairs with fairwq_current_slot(): its start is seen with the turn. */
		smp_store_release(&plan->next, i + 1);
		/* Whoever gets the work out of the slot has the turn. */
		work = xchg(&slot->work, NULL);
		if (!work)
			continue;
		fairwq_run_slot(runner, slot, work, time_all || i == plan->timed);
		/* Pairs with fairwq_account_locked(). */
		smp_store_release(&plan->done, i + 1);
		if (unlikely(time_after_eq(jiffies, overdue)) && i + 1 < plan->nr &&
		    !fairwq_mutant(PLAN_KEPT))
			fairwq_give_back_rest(runner);
	}
	/* Stolen slots at the end are nobody's: the plan is through. */
	smp_store_release(&plan->done, plan->nr);
	WRITE_ONCE(runner->current_work, NULL);
	/* Store @current_work, then load @wanted. Pairs with fairwq_park_at(). */
	smp_mb();
	if (unlikely(READ_ONCE(runner->wanted)))
		fairwq_unpark(runner);
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
 * Account for the plan that is through, and make the next. A runner whose time
 * is up goes back to the workqueue core and queues itself again, so that
 * freezing, flushing and affinity changes there work as always.
 */
static bool fairwq_runner_next(struct fairwq_runner *runner, u64 began)
{
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_runner *kick = NULL;
	bool more = false, requeue;
	u64 now = fairwq_clock();
	unsigned long flags;

	raw_spin_lock_irqsave(&pool->lock, flags);
	runner->task = current;
	fairwq_account_locked(runner);
	requeue = now - began > FAIRWQ_RUNNER_QUANTUM_NS &&
		  !fairwq_mutant(RUNNER_STAYS) && fairwq_tree_pick(&pool->tree);
	if (requeue)
		pool->counter[FAIRWQ_REQUEUES]++;
	else
		more = fairwq_plan_locked(runner, now);
	if (!more && !requeue)
		fairwq_go_idle_locked(runner);
	if (!fairwq_mutant(KICK_NOT_CHAINED))
		kick = runner->plan.share ? fairwq_wake_locked(pool) :
					    fairwq_kick_locked(pool);
	raw_spin_unlock_irqrestore(&pool->lock, flags);

	fairwq_kick_send(pool, kick);
	if (requeue)
		queue_work(pool->wq, &runner->work);
	return more;
}

static void fairwq_runner_fn(struct work_struct *work)
{
	struct fairwq_runner *runner = container_of(work, struct fairwq_runner, work);
	u64 began = fairwq_clock();

	while (fairwq_runner_next(runner, began))
		fairwq_run_plan(runner);
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
const struct fairwq_slot *fairwq_current_slot(const struct fairwq_runner *runner)
{
	/* Pairs with the release in fairwq_run_plan(): @started is as new. */
	unsigned int next = smp_load_acquire(&runner->plan.next);

	if (!next || READ_ONCE(runner->plan.done) >= next)
		return NULL;
	return &runner->plan.slot[next - 1];
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

/* ---- what the tick looks for ------------------------------------------- */

/* Something is planned and not started, and may have to be taken away. */
bool fairwq_plans_open_locked(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;

	lockdep_assert_held(&pool->lock);

	list_for_each_entry(runner, &pool->runners, node)
		if (fairwq_plan_open_locked(runner))
			return true;
	return false;
}

/* An idle runner to take from a plan that is overdue. */
struct fairwq_runner *fairwq_wake_thief_locked(struct fairwq_pool *pool, u64 now)
{
	struct fairwq_runner *runner;

	lockdep_assert_held(&pool->lock);

	list_for_each_entry(runner, &pool->runners, node)
		if (fairwq_overdue_locked(runner, now))
			return fairwq_wake_locked(pool);
	return NULL;
}
