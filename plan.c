// SPDX-License-Identifier: GPL-2.0
/*
 * Plans: what a runner takes along, and how others take it from there.
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
 */
#include <linux/export.h>

#include "internal.h"

/* What choosing and accounting add to an item, ns; a guess, for short ones. */
#define PLAN_OVERHEAD_NS	50
/* A plan that takes longer is worth waking another runner for; about what that costs. */
#define PLAN_SHARED_NS		(5 * NSEC_PER_USEC)

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
	pool->ahead = held ? min(2 * pool->ahead, FAIRWQ_FORESEE_MAX) : max(pool->ahead / 2, 2U);
}

/* So many owners of batches that are away are told apart in a plan; see below. */
#define PLAN_MAX_AWAY	8U
/* A batch whose items take so many slices misses no more than an eighth of its share. */
#define PLAN_AWAY_SLICES	8U
/* One that was away for so many turns of others has an item that is long for once. */
#define PLAN_AWAY_TURNS		1024U

/*
 * Batches that are away: out of the tree, but only for as long as turns of theirs are in
 * flight, or until what was pushed to them is in order. A batch is away at its max_active,
 * or while all that it has is in flight, as its items may queue themselves again. A plan
 * ends where such a batch would be next. Else it would get one turn for each plan, and
 * not its share, however long the plan is.
 *
 * Of several with one owner the first is enough; an owner all of whose batches are out of
 * the tree stands for them. Of more owners than PLAN_MAX_AWAY the rest is not looked at.
 */
struct fairwq_away {
	const struct fairwq_node *node[PLAN_MAX_AWAY];
	unsigned int nr;
};

static void fairwq_away_add(struct fairwq_away *away, const struct fairwq_node *node)
{
	unsigned int i;

	while (node->parent->parent && !fairwq_node_eligible(node->parent))
		node = node->parent;
	for (i = 0; i < away->nr; i++) {
		if (away->node[i]->parent != node->parent)
			continue;
		if (fairwq_tree_precedes(node, away->node[i]))
			away->node[i] = node;
		return;
	}
	if (away->nr < PLAN_MAX_AWAY)
		away->node[away->nr++] = node;
}

/*
 * Is @batch, which is out of the tree while turns of it are in flight, likely to be back
 * before a plan has ended? Not if it was not measured yet, nor if its items are long, nor
 * if this one is: others would pay for that with plans of one turn.
 */
static bool fairwq_is_soon_back_locked(const struct fairwq_batch *batch)
{
	const struct fairwq_pool *pool = batch->pool;
	unsigned long avg = ewma_fairwq_run_read(&batch->stats->run_avg);

	lockdep_assert_held(&pool->lock);

	return avg && avg < PLAN_AWAY_SLICES * fairwq_slice_ns_locked(pool) &&
	       (u32)pool->turn_number - batch->node.since < PLAN_AWAY_TURNS;
}

/* Those that are away before the plan begins. */
static void fairwq_away_begin_locked(struct fairwq_away *away, const struct fairwq_pool *pool)
{
	struct fairwq_batch *batch;

	lockdep_assert_held(&pool->lock);

	away->nr = 0;
	list_for_each_entry(batch, &pool->away, away_link)
		if (fairwq_is_soon_back_locked(batch))
			fairwq_away_add(away, &batch->node);
	list_for_each_entry(batch, &pool->sorting, sort_link)
		if (!fairwq_node_eligible(&batch->node) && !batch->paused)
			fairwq_away_add(away, &batch->node);
}

/* Is one that is away due before @node, which the tree has picked? */
static bool fairwq_away_is_due(const struct fairwq_away *away, const struct fairwq_node *node)
{
	unsigned int i;

	for (i = 0; i < away->nr; i++)
		if (fairwq_tree_precedes(away->node[i], node))
			return !fairwq_mutant(PLANNED_PAST);
	return false;
}

/* Take turns in the order of the tree, about a slice of them, at least one. */
static unsigned int fairwq_plan_turns_locked(struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_plan *plan = &runner->plan;
	u64 slice = fairwq_slice_ns_locked(pool), planned = 0;
	unsigned int nr = 0, ahead = 1;
	struct fairwq_batch *batch;
	struct fairwq_away away;
	struct fairwq_node *node;

	lockdep_assert_held(&pool->lock);

	if (pool->foresight)
		fairwq_learn_locked(pool, true);
	fairwq_away_begin_locked(&away, pool);
	fairwq_window_plan_begins_locked(pool);
	do {
		node = fairwq_tree_pick(&pool->tree);
		if (!node || (nr && fairwq_away_is_due(&away, node)))
			break;
		if (!slice) {
			ahead = fairwq_foresee_locked(pool, node);
			if (nr && !ahead)
				break;
			fairwq_tree_mark(&pool->tree, node, &plan->mark[nr]);
		}
		batch = container_of(node, struct fairwq_batch, node);
		fairwq_batch_take_locked(batch, &plan->slot[nr]);
		if (!fairwq_node_eligible(node))
			fairwq_away_add(&away, node);
		if (unlikely(fairwq_park_locked(runner, &plan->slot[nr])))
			continue;
		/* Under fair time, what was charged: see fairness.c. */
		planned += max_t(u64, fairwq_estimate_locked(batch, slice),
				 plan->slot[nr].turn.charged);
		nr++;
	} while ((planned < slice || nr < ahead) && nr < FAIRWQ_PLAN_MAX);
	fairwq_window_plan_ends_locked(runner, nr);
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
		/*
		 * Whoever gets the work out of the slot has the turn. Full barrier,
		 * also between the item before and this one: see fairwq_run_turns().
		 * Pairs with the same, wherever it is done. Model: tests/models/steal.pml.
		 */
		work = xchg(&slot->work, NULL);
		if (!work)
			continue;
		fairwq_turn_take(turn, slot);
		WRITE_ONCE(plan->next, i + 1);
		return work;
	}
	return NULL;
}

/* The next turn of the runner's own plan. */
struct fairwq_work *fairwq_claim_own(struct fairwq_runner *runner, struct fairwq_turn *turn)
{
	return fairwq_claim_turn(&runner->plan, runner->plan.nr, turn);
}

/*
 * A turn of the open plan, if that is another runner's. Without the lock: the
 * plan stays what it is as long as we are counted in @helpers, or it was
 * closed before, and we see that.
 */
struct fairwq_work *fairwq_help(struct fairwq_runner *runner, struct fairwq_turn *turn)
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
	 * Model: tests/models/steal.pml.
	 */
	atomic_inc_return(&plan->helpers);
	/*
	 * What is in the slots is seen with @nr. Pairs with the release in
	 * fairwq_plan_locked(). Model: tests/models/steal.pml.
	 */
	nr = smp_load_acquire(&plan->nr);
	if (nr)
		work = fairwq_claim_turn(plan, nr, turn);
	/*
	 * We are through with the slots. Pairs with the load in fairwq_plan_close().
	 * Model: tests/models/steal.pml.
	 */
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
void fairwq_plan_close(struct fairwq_plan *plan)
{
	if (!READ_ONCE(plan->nr))
		return;
	WRITE_ONCE(plan->nr, 0);
	/*
	 * Store @nr, then load @helpers. Pairs with fairwq_help(). Model:
	 * tests/models/steal.pml.
	 */
	smp_mb();
	/* They are through with the slots: pairs with the release there. Model: the same. */
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
bool fairwq_overdue_locked(const struct fairwq_runner *runner, u64 now)
{
	return now - runner->plan.began > 2 * fairwq_slice_ns_locked(runner->pool) &&
	       fairwq_planned_locked(runner);
}

/* The first turn that is left in @victim's plan is ours, to be started. */
static bool fairwq_steal_locked(struct fairwq_runner *runner, struct fairwq_runner *victim)
{
	struct fairwq_turn *turn = &runner->log.slot[0].turn;

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
bool fairwq_find_turns_locked(struct fairwq_runner *runner, u64 now)
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

/* ---- what is left of a plan -------------------------------------------- */

/* Turns of the open plan that nobody has taken: what comes next, whoever runs it. */
unsigned int fairwq_open_turns_locked(const struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	return pool->planner ? fairwq_planned_locked(pool->planner) : 0;
}

/* Turns that were foreseen, and are to be had as if they stood in the tree. */
unsigned int fairwq_foreseen_locked(const struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	return pool->foresight ? fairwq_open_turns_locked(pool) : 0;
}

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

/* ---- giving back ------------------------------------------------------- */

/* A turn goes on although its item leaves the plan: who takes it again sees this. */
void fairwq_mark_taken_locked(struct fairwq_work *work,
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

/* An item that was taken goes back to the head of its batch, its turn begun. */
static void fairwq_give_back_slot_locked(struct fairwq_slot *slot,
					 const struct fairwq_mark *mark)
{
	/*
	 * Unless a helper has got it by now. Pairs with fairwq_claim_turn(). Model:
	 * tests/models/steal.pml.
	 */
	struct fairwq_work *work = xchg(&slot->work, NULL);
	struct fairwq_batch *batch = slot->turn.batch;

	if (!work)
		return;
	lockdep_assert_held(&batch->pool->lock);
	if (mark)
		fairwq_tree_rewind(&batch->pool->tree, &batch->node, mark);
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
		fairwq_give_back_slot_locked(&plan->slot[nr], &plan->mark[nr]);
}

static void fairwq_withdraw_from_locked(struct fairwq_batch *batch, struct fairwq_runner *runner)
{
	struct fairwq_plan *plan = &runner->plan;
	unsigned int i;

	lockdep_assert_held(&batch->pool->lock);

	for (i = READ_ONCE(plan->nr); i-- > 0;)
		if (READ_ONCE(plan->slot[i].work) && plan->slot[i].turn.batch == batch)
			fairwq_give_back_slot_locked(&plan->slot[i], NULL);
	fairwq_streak_withdraw_locked(runner, batch);
}

/*
 * The batch is held back now: what runners have taken along of it, and not begun, is at the
 * head of its queue again, or in its serializer. The open plan is the newest.
 */
void fairwq_withdraw_locked(struct fairwq_batch *batch)
{
	struct fairwq_runner *runner, *planner = batch->pool->planner;

	lockdep_assert_held(&batch->pool->lock);

	if (planner)
		fairwq_withdraw_from_locked(batch, planner);
	list_for_each_entry(runner, &batch->pool->runners, node)
		if (runner != planner)
			fairwq_withdraw_from_locked(batch, runner);
}

/*
 * The items take much longer than they used to: what is left of the plan may
 * be served later, and by others. From the last one on, so that each batch has
 * its items in queue order again.
 */
void fairwq_give_back_rest(struct fairwq_runner *runner)
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
		fairwq_give_back_slot_locked(&plan->slot[i], NULL);
	kick = fairwq_kick_locked(pool);
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick_send(pool, kick);
	runner->mark = 0;
}
