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
 * What a runner took along is not its own: whoever gets the work out of a slot
 * by xchg() has the turn. A plan is what the tree would have given next, so
 * other runners help with it first, each taking the first turn that is left,
 * without the lock; only when nothing is left is the next plan made. There is
 * one open plan in a pool, and the order of turns is that of one runner
 * deciding one at a time.
 *
 * If there is nothing else to wake other runners for, a tick finds the plan
 * that is overdue and kicks one. So an item that sleeps holds up the ones
 * behind it in its runner's plan for a tick or two. A runner that is that late
 * itself gives back what is left of its plan.
 *
 * No wake-up is lost: a runner goes idle only under the lock, having seen that
 * the tree is empty, and a batch enters the tree only under the same lock.
 * Model: tests/models/queue.pml.
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

/* Turns that were foreseen, and are to be had as if they stood in the tree. */
static unsigned int fairwq_foreseen_locked(const struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	return pool->foresight ? fairwq_planned_locked(pool->planner) : 0;
}

/* Something stands in the tree, or will when it was put into order. */
static bool fairwq_has_work_locked(const struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	return fairwq_tree_pick(&pool->tree) || !list_empty(&pool->sorting) ||
	       fairwq_foreseen_locked(pool);
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
	return fairwq_has_work_locked(pool) ? fairwq_wake_locked(pool) : NULL;
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
	struct fairwq_log *log = &runner->log;
	/*
	 * Pairs with the barriers before @done is stored in fairwq_run_turns().
	 * Model: tests/models/attention.pml.
	 */
	unsigned int done = smp_load_acquire(&log->done);

	lockdep_assert_held(&runner->pool->lock);

	for (; log->accounted < done; log->accounted++)
		fairwq_batch_turn_end_locked(&log->turn[log->accounted]);
}

/*
 * Somebody waits for turns to end: while the pool's attention is up, runners
 * tell of each at once, before they call the next function. Turns that have
 * ended by now are told here. With the barrier, either the runner sees that
 * attention is up, or we see that its turn has ended; see fairwq_run_turn().
 */
void fairwq_attention_raise_locked(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;

	lockdep_assert_held(&pool->lock);

	WRITE_ONCE(pool->attention, pool->attention + 1);
	/*
	 * Store @attention, then load @done; pairs with fairwq_start_turn(). Model:
	 * tests/models/attention.pml.
	 */
	smp_mb();
	list_for_each_entry(runner, &pool->runners, node) {
		fairwq_account_locked(runner);
		fairwq_streak_give_back_locked(runner);
	}
}

void fairwq_attention_lower_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	WRITE_ONCE(pool->attention, pool->attention - 1);
}

/* A turn goes on although its item leaves the plan: who takes it again sees this. */
static void fairwq_mark_taken_locked(struct fairwq_work *work,
				     const struct fairwq_turn *turn, unsigned int place)
{
	struct fairwq_pool *pool = turn->batch->pool;

	lockdep_assert_held(&pool->lock);

	fairwq_cost_refund_locked(turn);
	work->place = place | FAIRWQ_PLACE_TAKEN | (turn->color ? FAIRWQ_PLACE_COLOR : 0);
	if (unlikely(!list_empty(&pool->waiters)) &&
	    fairwq_waiters_back_locked(pool, turn->number))
		work->place |= FAIRWQ_PLACE_AWAITED;
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
	 * Store @wanted, then load @current_work. Pairs with fairwq_start_turn()
	 * and fairwq_run_turns(): either @other sees that it is wanted, or it
	 * has stored another work by now. Model: tests/models/park.pml.
	 */
	smp_mb();
	/* Pairs with the release there: the run to come sees the one that is over. */
	parked = smp_load_acquire(&other->current_work) == work;
	if (parked) {
		fairwq_mark_taken_locked(work, &slot->turn, FAIRWQ_PLACE_PARKED);
		list_add_tail(&work->node, &other->parked);
		slot->turn.batch->nr_parked++;
		WRITE_ONCE(slot->work, NULL);
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
	/*
	 * Pairs with fairwq_start_turn() and fairwq_run_turns(). Model:
	 * tests/models/park.pml.
	 */
	parked = other && smp_load_acquire(&other->current_work) == slot->work &&
		 fairwq_park_at(other, slot);
	rcu_read_unlock();
	return parked;
}

/* The same, without parking it. */
bool fairwq_runs_elsewhere_locked(struct fairwq_runner *runner, const struct fairwq_work *work)
{
	u32 id = work->last_runner;
	struct fairwq_runner *other;
	bool runs;

	lockdep_assert_held(&runner->pool->lock);

	if (!id || id == runner->id)
		return false;
	rcu_read_lock();
	other = fairwq_runner_find(id);
	/* As there: if it is over, what it did is seen. */
	runs = other && smp_load_acquire(&other->current_work) == work;
	rcu_read_unlock();
	return runs;
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

/*
 * The first that need not wait any more. Not what waits for the function that
 * is about to be called: another runner would take it and park it here again,
 * any number of times. Model: tests/models/park.pml.
 */
static struct fairwq_work *fairwq_parked_before(struct fairwq_runner *runner)
{
	struct fairwq_work *work;

	lockdep_assert_held(&runner->park_lock);

	list_for_each_entry(work, &runner->parked, node)
		if (work != runner->current_work)
			return work;
	return NULL;
}

static struct fairwq_work *fairwq_first_parked(struct fairwq_runner *runner,
					       struct fairwq_batch **batch)
{
	struct fairwq_work *work;
	unsigned long flags;

	raw_spin_lock_irqsave(&runner->park_lock, flags);
	work = fairwq_parked_before(runner);
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
	still = work == fairwq_parked_before(runner) &&
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
u64 fairwq_estimate_locked(struct fairwq_batch *batch, u64 slice)
{
	unsigned long avg = ewma_fairwq_run_read(&batch->stats->run_avg);

	return avg ? avg + PLAN_OVERHEAD_NS : slice;
}

/*
 * Under strict turns nothing is planned: each turn is decided when it is taken.
 * What is decided can be foreseen, though, as long as nothing happens: who has
 * how much, and who is next. So some turns are decided at once; but before
 * anything happens that could change what is decided, they are taken back, and
 * the tree is what it was: fairwq_think_again_locked(). Nobody can tell, except
 * by the time that it takes.
 *
 * How many pays for itself is found by trying. Returns 0 if it cannot be done:
 * what a turn costs is known when it has ended, or it is @node's, which is not
 * directly below a rank; or some batch is about to be eligible, or may be when
 * a turn ends.
 */
static unsigned int fairwq_foresee_locked(const struct fairwq_pool *pool,
					  const struct fairwq_node *node)
{
	lockdep_assert_held(&pool->lock);

	if (pool->policy != FAIRWQ_ROUND_ROBIN || node->parent->parent ||
	    !list_empty(&pool->sorting) || pool->attention)
		return 0;
#ifdef FAIRWQ_TESTING
	if (READ_ONCE(fairwq_test_no_foresight))
		return 0;
#endif
	return pool->ahead;
}

#ifdef FAIRWQ_TESTING
bool fairwq_test_no_foresight;
EXPORT_SYMBOL_GPL(fairwq_test_no_foresight);
#endif

/* The last plan was run as it was foreseen: look further. Or it was not. */
static void fairwq_learn_locked(struct fairwq_pool *pool, bool held)
{
	lockdep_assert_held(&pool->lock);

	pool->foresight = false;
	pool->ahead = held ? min(2 * pool->ahead, FAIRWQ_PLAN_MAX) : max(pool->ahead / 2, 2U);
}

/* Take turns in the order of the tree, about a slice of them, at least one. */
static unsigned int fairwq_plan_turns_locked(struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_plan *plan = &runner->plan;
	u64 slice = fairwq_slice_ns_locked(pool), planned = 0;
	unsigned int nr = 0, ahead = 1;
	struct fairwq_batch *batch;
	struct fairwq_node *node;

	lockdep_assert_held(&pool->lock);

	if (pool->foresight)
		fairwq_learn_locked(pool, true);
	do {
		node = fairwq_tree_pick(&pool->tree);
		if (!node)
			break;
		if (!slice) {
			ahead = fairwq_foresee_locked(pool, node);
			if (nr && !ahead)
				break;
			fairwq_tree_mark(&pool->tree, node, &plan->slot[nr].mark);
		}
		batch = container_of(node, struct fairwq_batch, node);
		fairwq_batch_take_locked(batch, &plan->slot[nr]);
		if (unlikely(fairwq_park_locked(runner, &plan->slot[nr])))
			continue;
		/* Under fair time, what was charged: see fairness.c. */
		planned += max_t(u64, fairwq_estimate_locked(batch, slice),
				 plan->slot[nr].turn.charged);
		nr++;
	} while ((planned < slice || nr < ahead) && nr < FAIRWQ_PLAN_MAX);
	pool->foresight = !slice && nr > 1;
	plan->share = nr > 1 && (planned > PLAN_SHARED_NS || !slice);
	/* One of them is timed, each time another. */
	if (nr)
		plan->slot[pool->plan_seq++ % nr].turn.timed = true;
	return nr;
}

/* A new plan, for others to help with if there is more in it than one turn. */
static unsigned int fairwq_plan_locked(struct fairwq_runner *runner, u64 now)
{
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_plan *plan = &runner->plan;
	unsigned int nr;

	lockdep_assert_held(&pool->lock);

	WRITE_ONCE(plan->next, 0);
	plan->began = now;
	nr = fairwq_plan_turns_locked(runner);
	/*
	 * What is in the slots is seen with @nr: pairs with fairwq_help(). Model:
	 * tests/models/steal.pml.
	 */
	smp_store_release(&plan->nr, nr);
	if (nr > 1) {
		WRITE_ONCE(pool->planner, runner);
		fairwq_tick_soon_locked(pool);
	}
	return nr;
}

/* ---- taking turns from a plan ------------------------------------------ */

/*
 * The first turn that is left in @plan: into @turn, its work is returned. Its
 * runner calls this, whoever holds the lock, and helpers; there is no order
 * between them but that each gets what nobody else has.
 */
static struct fairwq_work *fairwq_claim_turn(struct fairwq_plan *plan, unsigned int nr,
					     struct fairwq_turn *turn)
{
	struct fairwq_work *work;
	struct fairwq_slot *slot;
	unsigned int i;

	for (i = READ_ONCE(plan->next); i < nr; i++) {
		slot = &plan->slot[i];
		if (!READ_ONCE(slot->work))
			continue;
		/* Whoever gets the work out of the slot has the turn. */
		work = xchg(&slot->work, NULL);
		if (!work)
			continue;
		*turn = slot->turn;
		WRITE_ONCE(plan->next, i + 1);
		return work;
	}
	return NULL;
}

/*
 * A turn of the open plan, if that is another runner's. Without the lock: the
 * plan stays what it is as long as we are counted in @helpers, or it was
 * closed before, and we see that.
 */
static struct fairwq_work *fairwq_help(struct fairwq_runner *runner,
				       struct fairwq_turn *turn)
{
	struct fairwq_runner *planner = READ_ONCE(runner->pool->planner);
	struct fairwq_work *work = NULL;
	struct fairwq_plan *plan;
	unsigned int nr;

	if (!planner || planner == runner || fairwq_mutant(PLANS_OVERLAP) ||
	    fairwq_mutant(NO_STEALING))
		return NULL;
	plan = &planner->plan;
	if (READ_ONCE(plan->next) >= READ_ONCE(plan->nr))
		return NULL;
	preempt_disable();	/* somebody may be waiting for us, see below */
	/*
	 * Full barrier: count, then load @nr. Pairs with fairwq_plan_close().
	 * Model: tests/models/steal.pml, also of what follows.
	 */
	atomic_inc_return(&plan->helpers);
	/* And with the release in fairwq_plan_locked(). */
	nr = smp_load_acquire(&plan->nr);
	if (nr)
		work = fairwq_claim_turn(plan, nr, turn);
	atomic_dec_return_release(&plan->helpers);
	preempt_enable();
	if (work)
		turn->helped = true;
	return work;
}

/*
 * Everything in the plan was taken. Before it is made anew, those must be out
 * of it who may still read it: a few instructions. Not under the lock, which
 * an interrupt on top of them may wait for.
 */
static void fairwq_plan_close(struct fairwq_plan *plan)
{
	if (!READ_ONCE(plan->nr))
		return;
	WRITE_ONCE(plan->nr, 0);
	/*
	 * Store @nr, then load @helpers. Pairs with fairwq_help(). Model:
	 * tests/models/steal.pml.
	 */
	smp_mb();
	while (atomic_read_acquire(&plan->helpers))
		cpu_relax();
}

/* How many turns in its plan nobody has taken. */
unsigned int fairwq_planned_locked(const struct fairwq_runner *runner)
{
	const struct fairwq_plan *plan = &runner->plan;
	unsigned int i, nr = READ_ONCE(plan->nr), left = 0;

	lockdep_assert_held(&runner->pool->lock);

	for (i = READ_ONCE(plan->next); i < nr; i++)
		left += !!READ_ONCE(plan->slot[i].work);
	return left;
}

/* And it has had twice the time it planned for. */
static bool fairwq_overdue_locked(const struct fairwq_runner *runner, u64 now)
{
	return now - runner->plan.began > 2 * fairwq_slice_ns_locked(runner->pool) &&
	       fairwq_planned_locked(runner);
}

/* The first turn that is left in @victim's plan is ours, to be started. */
static bool fairwq_steal_locked(struct fairwq_runner *runner, struct fairwq_runner *victim)
{
	struct fairwq_turn *turn = &runner->log.turn[0];

	lockdep_assert_held(&runner->pool->lock);

	if (fairwq_mutant(NO_STEALING))
		return false;
	runner->in_hand = fairwq_claim_turn(&victim->plan, READ_ONCE(victim->plan.nr), turn);
	if (!runner->in_hand)
		return false;
	turn->helped = true;
	return true;
}

/* The turn after those that were begun, if it was planned already. */
static bool fairwq_join_plan_locked(struct fairwq_runner *runner)
{
	struct fairwq_runner *planner = runner->pool->planner;

	lockdep_assert_held(&runner->pool->lock);

	return planner && planner != runner && !fairwq_mutant(PLANS_OVERLAP) &&
	       fairwq_steal_locked(runner, planner);
}

/* A turn that another runner took, and does not come to. */
static bool fairwq_rescue_locked(struct fairwq_runner *runner, u64 now)
{
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_runner *victim;

	lockdep_assert_held(&pool->lock);

	if (pool->nr_active < 2)
		return false;
	list_for_each_entry(victim, &pool->runners, node)
		if (victim != runner && fairwq_overdue_locked(victim, now) &&
		    fairwq_steal_locked(runner, victim))
			return true;
	return false;
}

/* Returns whether the runner has a turn to run now. */
static bool fairwq_find_turns_locked(struct fairwq_runner *runner, u64 now)
{
	struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(&pool->lock);

	runner->log.nr = 0;
	runner->log.done = 0;
	runner->log.accounted = 0;
	runner->plan.share = false;
	runner->plan.due = pool->policy == FAIRWQ_FAIR_TIME ?
			   now + fairwq_slice_ns_locked(pool) : S64_MAX;
	return fairwq_join_plan_locked(runner) || fairwq_plan_locked(runner, now) ||
	       fairwq_rescue_locked(runner, now);
}

/* ---- running ---------------------------------------------------------- */

/* From here on the work is started. */
static void fairwq_start_turn(struct fairwq_runner *runner, struct fairwq_turn *turn,
			      struct fairwq_work *work)
{
	/*
	 * What another runner may want to know. Whoever sees that the one before
	 * is over sees what it did: between its end and this there was a full
	 * barrier, where this one was taken. Pairs with fairwq_park_locked(),
	 * fairwq_park_at() and fairwq_await_running().
	 */
	WRITE_ONCE(runner->current_work, work);
	WRITE_ONCE(work->last_runner, runner->id);
	if (unlikely(turn->constraint))
		WRITE_ONCE(work->constraint, NULL);
	fairwq_test_point(FAIRWQ_POINT_STARTING, turn->batch);
	/*
	 * Whoever finds it clear queues anew, and sees who runs it. Whoever
	 * found it set has his stores seen by the function. Full barrier, pairs
	 * with the one in fairwq_claim(). It is also one between the stores of
	 * @done and @current_work and the loads of @attention and @wanted:
	 * pairs with fairwq_attention_raise_locked() and fairwq_park_at().
	 * Models: tests/models/pending.pml, attention.pml, park.pml.
	 */
	if (!fairwq_mutant(PENDING_AFTER))
		atomic_long_xchg(&work->data, 0);
	else
		smp_mb();	/* what the xchg() is, but for the word */
	if (unlikely(READ_ONCE(runner->pool->attention)))
		fairwq_attend_runner(runner);
	if (unlikely(READ_ONCE(runner->wanted)))
		fairwq_unpark(runner);
}

/* The function of an item has returned, that others may wait for. */
static void fairwq_end_constrained(struct fairwq_runner *runner,
				   struct fairwq_constraint *constraint)
{
	struct fairwq_serializer *serializer = fairwq_serializer_ended(constraint);

	if (serializer)
		fairwq_streak_begin(runner, serializer);	/* or what there is of one */
}

/* The function of a work, around it what makes it a turn. */
static void fairwq_run_turn(struct fairwq_runner *runner, struct fairwq_turn *turn,
			    struct fairwq_work *work)
{
	bool timed = turn->timed || trace_fairwq_start_enabled() ||
		     trace_fairwq_end_enabled();
	/* The end of one is the start of the next, if they follow at once. */
	u64 start = timed || turn->stamp ? runner->mark ?: fairwq_clock() : 0;

	turn->wait = turn->stamp && start > turn->stamp ? start - turn->stamp : 0;
	trace_fairwq_start(turn, work);
	fairwq_start_turn(runner, turn, work);
	if (fairwq_mutant(SERIAL_EARLY) && turn->constraint && !turn->streak)
		fairwq_complete(turn->constraint);
	fairwq_call(work, turn);
	/* @work may have been freed: from here on it is only an address. */
	if (fairwq_mutant(PENDING_AFTER))
		atomic_long_set(&work->data, 0);
	runner->mark = start ? fairwq_clock() : 0;
	/* The clock may step back a little. */
	turn->run = start ? max_t(s64, runner->mark - start, 1) : 0;
	trace_fairwq_end(turn, work);
	if (unlikely(turn->constraint) && !turn->streak && !fairwq_mutant(SERIAL_EARLY))
		fairwq_end_constrained(runner, turn->constraint);
}

/* An item that was taken goes back to the head of its batch, its turn begun. */
static void fairwq_give_back_slot_locked(struct fairwq_slot *slot, bool rewind)
{
	struct fairwq_work *work = xchg(&slot->work, NULL);
	struct fairwq_batch *batch = slot->turn.batch;

	if (!work)
		return;
	lockdep_assert_held(&batch->pool->lock);
	if (rewind)
		fairwq_tree_rewind(&batch->pool->tree, &batch->node, &slot->mark);
	fairwq_mark_taken_locked(work, &slot->turn, FAIRWQ_PLACE_FIFO);
	fairwq_batch_put_back_locked(batch, work);
}

/*
 * Something is about to happen that may change whose turn it is: turns that
 * were foreseen, and that nobody has taken from the plan, never were. From the
 * last one on; others may take them, from the first one on, meanwhile.
 */
void fairwq_think_again_locked(struct fairwq_pool *pool)
{
	struct fairwq_plan *plan;
	unsigned int nr;

	lockdep_assert_held(&pool->lock);

	if (likely(!pool->foresight) || fairwq_mutant(FORESIGHT_KEPT))
		return;
	plan = &pool->planner->plan;
	nr = READ_ONCE(plan->nr);	/* 0: all were taken */
	fairwq_learn_locked(pool, !nr || !READ_ONCE(plan->slot[nr - 1].work));
	while (nr-- > 0)
		fairwq_give_back_slot_locked(&plan->slot[nr], true);
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
	if (pool->planner == runner)
		fairwq_think_again_locked(pool);
	for (i = plan->nr; i-- > 0;)
		fairwq_give_back_slot_locked(&plan->slot[i], false);
	kick = fairwq_kick_locked(pool);
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick_send(pool, kick);
	runner->mark = 0;
}

/*
 * What the runner runs since it held the lock takes much longer than it plans
 * for. By a coarse clock; and under fair time by what turns cost, so that a
 * guess that is wrong is wrong by so much and no more. Also one that was too
 * high: what was charged in vain is time that the batch was kept from.
 */
static bool fairwq_is_late(struct fairwq_runner *runner, const struct fairwq_turn *turn,
			   unsigned long overdue)
{
	if (turn->charged > turn->run)
		runner->plan.due -= turn->charged - turn->run;
	return time_after_eq(jiffies, overdue) || (s64)runner->mark > runner->plan.due;
}

/*
 * The runner is late: what is left of its plan goes back, and what it ran is
 * told of before it runs more, its own or by helping with another's plan.
 * Returns whether it has to stop here.
 */
static bool fairwq_stop_late(struct fairwq_runner *runner)
{
	if (fairwq_mutant(PLAN_KEPT))
		return false;
	if (READ_ONCE(runner->plan.next) < runner->plan.nr)
		fairwq_give_back_rest(runner);
	return !fairwq_mutant(LATE_UNTOLD);
}

/* The next turn: the one in hand, else of its own plan, else of another's. */
static struct fairwq_work *fairwq_next_turn(struct fairwq_runner *runner,
					    struct fairwq_turn *turn)
{
	struct fairwq_work *work = runner->in_hand;

	runner->in_hand = NULL;
	if (!work)
		work = fairwq_claim_turn(&runner->plan, runner->plan.nr, turn);
	/* With a serializer in its hands it is not to keep that waiting. */
	return work || runner->streak.serializer ? work : fairwq_help(runner, turn);
}

/*
 * More of the streak, or its end. As if the runner had run all that it planned:
 * its turns are told of, and the log is empty. Returns whether there is more.
 */
static bool fairwq_streak_refill(struct fairwq_runner *runner, unsigned int *i)
{
	struct fairwq_serializer *serializer = NULL;
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_runner *kick = NULL;
	u64 now = fairwq_clock();
	unsigned long flags;
	bool more;

	raw_spin_lock_irqsave(&pool->lock, flags);
	WRITE_ONCE(runner->log.done, *i);
	fairwq_account_locked(runner);
	WRITE_ONCE(runner->log.nr, 0);
	WRITE_ONCE(runner->log.done, 0);
	runner->log.accounted = 0;
	more = fairwq_streak_refill_locked(runner, now);
	if (!more)
		serializer = fairwq_streak_end_locked(runner);
	/* What is planned is for others now; with nothing planned we have the next ourselves. */
	if (READ_ONCE(runner->plan.next) < runner->plan.nr)
		kick = fairwq_wake_locked(pool);
	else if (more)
		kick = fairwq_kick_locked(pool);
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick_send(pool, kick);
	if (serializer)
		fairwq_serializer_next(serializer);
	runner->mark = 0;
	*i = 0;
	return more;
}

/*
 * The runner has a serializer of which others wait. With a budget, or if one of
 * them may lift others, it goes on with the first. Without, that one goes to its batch: now, or, if
 * nothing else is planned, when the next plan is made, which is at once.
 *
 * Returns the number of turns in the log.
 */
static unsigned int fairwq_go_on(struct fairwq_runner *runner, unsigned int i)
{
	struct fairwq_streak *streak = &runner->streak;
	struct fairwq_serializer *serializer = streak->serializer;

	if (!streak->budget && !fairwq_serializer_is_mixed(serializer)) {
		if (READ_ONCE(runner->plan.next) >= runner->plan.nr)
			return i;
		streak->serializer = NULL;
		fairwq_serializer_next(serializer);
		return i;
	}
	if (streak->due && !fairwq_streak_is_over(runner))
		runner->in_hand = fairwq_streak_next(runner, &runner->log.turn[i]);
	while (!runner->in_hand && fairwq_streak_refill(runner, &i))
		runner->in_hand = fairwq_streak_next(runner, &runner->log.turn[i]);
	return i;
}

static void fairwq_run_turns(struct fairwq_runner *runner)
{
	unsigned long overdue = jiffies + 2;
	struct fairwq_log *log = &runner->log;
	struct fairwq_work *work;
	unsigned int i;
	bool late;

	runner->mark = 0;
	for (i = 0; i < FAIRWQ_PLAN_MAX;) {
		work = fairwq_next_turn(runner, &log->turn[i]);
		if (!work)
			break;
		/*
		 * The one before has ended. Between its end and this there was a
		 * full barrier, where this one was taken. Pairs with
		 * fairwq_account_locked().
		 */
		WRITE_ONCE(log->done, i);
		WRITE_ONCE(runner->started, jiffies);
		/*
		 * Store the turn, then @nr. Pairs with fairwq_current_turn().
		 * Model: tests/models/attention.pml, also of what is above.
		 */
		smp_wmb();
		WRITE_ONCE(log->nr, i + 1);
		fairwq_run_turn(runner, &log->turn[i++], work);
		late = unlikely(fairwq_is_late(runner, &log->turn[i - 1], overdue)) &&
		       fairwq_stop_late(runner);
		if (unlikely(runner->streak.serializer))
			i = fairwq_go_on(runner, i);
		if (late && !runner->in_hand)
			break;
	}
	/*
	 * Pairs with fairwq_account_locked() and fairwq_current_turn(). Model:
	 * tests/models/attention.pml.
	 */
	smp_store_release(&log->done, i);
	/* As in fairwq_start_turn(). Models: tests/models/park.pml, disable.pml. */
	smp_store_release(&runner->current_work, NULL);
	fairwq_plan_close(&runner->plan);
	/*
	 * Store @current_work, then load @wanted. Pairs with fairwq_park_at().
	 * Model: tests/models/park.pml.
	 */
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

/* There is work for another runner, too; @turns: this one has some. */
static bool fairwq_is_shared_locked(const struct fairwq_runner *runner, bool turns)
{
	const struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(&pool->lock);

	return (turns && runner->plan.share) || fairwq_tree_pick(&pool->tree) ||
	       (turns && !list_empty(&pool->sorting)) ||
	       (pool->planner != runner && fairwq_foreseen_locked(pool));
}

/*
 * Account for the plan that is through, and make the next. A runner whose time
 * is up goes back to the workqueue core and queues itself again, so that
 * freezing, flushing and affinity changes there work as always.
 */
static bool fairwq_runner_next(struct fairwq_runner *runner, u64 began)
{
	struct fairwq_pool *pool = runner->pool;
	bool turns = false, more = false, requeue;
	struct fairwq_serializer *serializer = NULL;
	struct fairwq_runner *kick = NULL;
	unsigned long flags;
	u64 now;

	if (fairwq_pool_sort(pool))
		runner->mark = 0;
	now = runner->mark ?: fairwq_clock();
	raw_spin_lock_irqsave(&pool->lock, flags);
	runner->task = current;
	fairwq_account_locked(runner);
	if (unlikely(runner->streak.serializer))
		serializer = fairwq_streak_end_locked(runner);
	requeue = now - began > FAIRWQ_RUNNER_QUANTUM_NS &&
		  !fairwq_mutant(RUNNER_STAYS) && fairwq_has_work_locked(pool);
	if (requeue) {
		pool->counter[FAIRWQ_REQUEUES]++;
	} else if (pool->nr_active <= pool->max_active) {
		turns = fairwq_find_turns_locked(runner, now);
		more = turns || !list_empty(&pool->sorting);
	}
	if (!more && !requeue)
		fairwq_go_idle_locked(runner);
	if (!fairwq_mutant(KICK_NOT_CHAINED) && fairwq_is_shared_locked(runner, turns))
		kick = fairwq_wake_locked(pool);
	raw_spin_unlock_irqrestore(&pool->lock, flags);

	fairwq_kick_send(pool, kick);
	if (serializer)
		fairwq_serializer_next(serializer);
	if (requeue)
		queue_work(pool->wq, &runner->work);
	return more;
}

static void fairwq_runner_fn(struct work_struct *work)
{
	struct fairwq_runner *runner = container_of(work, struct fairwq_runner, work);
	u64 began = fairwq_clock();

	runner->mark = began;
	while (fairwq_runner_next(runner, began))
		fairwq_run_turns(runner);
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
	unsigned int nr = READ_ONCE(runner->log.nr);

	/*
	 * Load @nr, then the turn, and @started. Pairs with fairwq_run_turns().
	 * Model: tests/models/attention.pml.
	 */
	smp_rmb();
	/* Pairs with that of @done: if it is over, what it did is seen. */
	if (!nr || smp_load_acquire(&runner->log.done) >= nr)
		return NULL;
	return &runner->log.turn[nr - 1];
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

/* ---- what the tick looks for ------------------------------------------- */

/* Something is planned and not started, and may have to be taken away. */
bool fairwq_plans_open_locked(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;

	lockdep_assert_held(&pool->lock);

	list_for_each_entry(runner, &pool->runners, node)
		if (fairwq_planned_locked(runner))
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
