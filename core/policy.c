// SPDX-License-Identifier: GPL-2.0
/*
 * Policies: what a turn is charged to its batch, and how that is put right.
 *
 *   fairwq_policy_charge_locked()    charges the turn when it begins
 *   fairwq_policy_settle_locked()    corrects the charge when the turn has ended
 *
 *   Policy         Charged when the turn begins     Corrected at its end
 *   -------------  -------------------------------  --------------------------
 *   round robin    one turn                         by the other items of a
 *                                                   burst
 *   fair time      the longest of the batch's last  by what the items took,
 *                  turns, or the average if that    also beside and after their
 *                  is more; slice_us if there       functions, less the charge
 *                  were none; 10 ms at most
 *   fair cost      what the client says; 1 for a    not
 *                  task, and for a loop that a
 *                  thread starts
 *
 * The time of an item is known when its function has returned. Until then the
 * turn is charged what it may cost. If nothing was charged, several runners in
 * a row would take turns of the batch that looks cheapest, until the first of
 * them ends. An average would not help, because all of these turns may be
 * longer than that. A batch that was charged too much is given back the rest
 * when the turn ends. Until then other batches go before it.
 *
 * The bound of promise 6 under fair time
 *
 * A turn is charged what it may cost, u, and given back the rest when it ends.
 * Suppose that no turn takes longer than it was charged. Then P(i), what i was
 * charged and has not had, is never less than 0. The virtual time of i is V(i)
 * = A(i) + P(i), where A(i) is what it had; all by weight. A runner adds at
 * most one item to P, because it settles a turn before it takes the next. A
 * turn that goes on after its function leaves its runner, and adds one more.
 * With N for max_active and such turns:
 *
 * - When i is chosen, A(i) + P(i) <= A(j) + P(j). Until it is chosen again it
 *   has no more than P(i) and that turn. So it is never ahead of j by more than
 *   P(j) + u(i). Of j's turns N - 1 runners have one each, so that is (N - 1)
 *   u(j) + u(i).
 * - The same holds for j. Over any window the lead changes by no more than the
 *   sum. That is N u(i) + N u(j).
 * - If the two are alone, i gets further ahead only while more runners have
 *   turns of i than of j. So it is at most (N + 1) u of the one with the longer
 *   turns. That is what is promised. With others beside them it is what
 *   tests/sim has measured.
 *
 * What the table "batches" shows is V. V(i) - V(j) is at most u(i) when i is
 * chosen, and N u(j) more when all turns of j are corrected. So a judge of V
 * must allow for (N + 1) u(i) + (N + 1) u(j). A turn may be longer than all
 * that was known of its batch. Then it makes the lead larger after the fact,
 * and so do those that are under way with it.
 *
 * A change of the policy changes the unit, so a new generation of charges
 * begins. Every virtual time is set to 0, so that no batch has more of a debt
 * or a claim than others. A turn that was charged in the generation before is
 * not corrected, so what was owed then is forgotten.
 *
 * Locking: pool->lock.
 * Invariant: each turn is charged once and settled once.
 *
 * Limits: under fair time a turn is charged at most 10 ms when it begins, and
 * costs at most 60 s. Under fair cost a newcomer joins one turn behind, which
 * is its own first one.
 */
#include <linux/limits.h>
#include <linux/minmax.h>

#include "policy.h"
#include "tree.h"

/* The tree must hold the debt of the longest item at the smallest weight. */
static_assert((FAIRWQ_COST_MAX_NS << FAIRWQ_COST_NS_SHIFT) * 100 <= FAIRWQ_MAX_LEAD);

/*
 * Turns that the longest is kept for: at least so many, at most twice as many.
 * That covers long items that come now and then. Where turns are short, one
 * that was interrupted is soon forgotten.
 */
#define RECENT_TURNS	256

/* Note a turn of @units. */
static void note_recent(struct fairwq_recent *recent, u64 units)
{
	recent->longest[0] = max_t(u32, recent->longest[0], min_t(u64, units, U32_MAX));
	if (++recent->nr % RECENT_TURNS)
		return;
	recent->longest[1] = recent->longest[0];
	recent->longest[0] = 0;
}

/* ---- fair time -------------------------------------------------------- */

static u32 time_first(const struct fairwq_pool *pool, const struct fairwq_work *work)
{
	return fairwq_slice_ns(pool);
}

/*
 * Return what a turn may take, ns: the longest of the last ones, or the average
 * if that is more.
 */
static u32 time_charge(struct fairwq_turn *turn)
{
	struct fairwq_batch_stats *stats = turn->batch->stats;
	u64 guess = max3((u64)ewma_fairwq_run_read(&stats->run_avg),
			 (u64)stats->recent.longest[0], (u64)stats->recent.longest[1]);

	turn->timed = true;
	/*
	 * The rest follows at its end. Without this a guess could feed itself:
	 * an item that waits for a later one of its own batch waits as long as
	 * the batch was charged, and that time is the next guess.
	 */
	guess = min(guess, FAIRWQ_RUN_TIME_MAX_NS);
	return clamp_t(u64, guess ?: fairwq_slice_ns(turn->batch->pool), 1, U32_MAX);
}

static u64 time_settle(struct fairwq_batch *batch, const struct fairwq_charge *charge)
{
	u64 took = min(charge->took, FAIRWQ_COST_MAX_NS);

	note_recent(&batch->stats->recent, div_u64(took, charge->nr));
	return took;
}

/* ---- fair cost -------------------------------------------------------- */

/* Return what the client says. Its callback sees the client's works only. */
static u32 cost_first(const struct fairwq_pool *pool, const struct fairwq_work *work)
{
	return work && fairwq_is_of_client(work) ? pool->cost(work) ?: 1 : 1;
}

const struct fairwq_policy_ops fairwq_policies[FAIRWQ_NR_POLICIES] = {
	[FAIRWQ_ROUND_ROBIN] = {
		.name = "round_robin", .shift = FAIRWQ_COST_TURN_SHIFT, .shown = 1,
	},
	[FAIRWQ_FAIR_TIME] = {
		.name = "fair_time", .shift = FAIRWQ_COST_NS_SHIFT, .shown = NSEC_PER_USEC,
		.first = time_first, .charge = time_charge, .settle = time_settle,
	},
	[FAIRWQ_FAIR_COST] = {
		.name = "fair_cost", .shift = FAIRWQ_COST_NS_SHIFT, .shown = 1, .needs_cost = true,
		.first = cost_first,
	},
};

/* ---- what all policies share ------------------------------------------ */

/*
 * Note that a turn of @batch, and so of its owners, costs so much. A judge of
 * shares needs the longest one, also while it is charged and has not ended.
 */
static void note_max_cost_locked(struct fairwq_batch *batch, u64 units)
{
	lockdep_assert_held(&batch->pool->lock);

	for (; batch; batch = batch->parent)
		batch->stats->max_cost = max(batch->stats->max_cost, units);
}

/*
 * Return what the first turn of a batch costs, which begins with @work; or, if
 * that is NULL, of any batch.
 */
u32 fairwq_policy_first_locked(const struct fairwq_pool *pool, const struct fairwq_work *work)
{
	const struct fairwq_policy_ops *policy = fairwq_policy_of(pool);

	return policy->first ? policy->first(pool, work) : 1;
}

/* Tell the tree the unit of the policy, and what an unmeasured turn costs. */
void fairwq_policy_set_unit_locked(struct fairwq_pool *pool)
{
	fairwq_tree_set_unit(&pool->tree, fairwq_policy_of(pool)->shift,
			     fairwq_policy_first_locked(pool, NULL));
}

/* Charge the batch for a turn that begins with @work. It must still be eligible. */
void fairwq_policy_charge_locked(struct fairwq_turn *turn, const struct fairwq_work *work)
{
	struct fairwq_batch *batch = turn->batch;
	struct fairwq_pool *pool = batch->pool;
	const struct fairwq_policy_ops *policy = fairwq_policy_of(pool);
	struct fairwq_charge *charge = &turn->charge;

	lockdep_assert_held(&pool->lock);

	charge->policy_gen = pool->policy_gen;
	charge->charged = policy->charge ? policy->charge(turn) :
					   fairwq_policy_first_locked(pool, work);
	if (policy->first)
		note_max_cost_locked(batch, charge->charged);
	/* Where no turn is like another one, the last that is known is this one. */
	if (policy->needs_cost)
		pool->tree.turn = charge->charged;
	charge->out_of_rank = fairwq_tree_charge(&pool->tree, &batch->node, charge->charged);
}

/*
 * Settle a turn that has ended: correct its charge to what it cost. A turn of
 * an earlier policy is left as it is.
 *
 * The tree must be told of the other items of a burst, too, because the batch
 * may have come back to it while its burst was under way.
 */
void fairwq_policy_settle_locked(struct fairwq_batch *batch, const struct fairwq_charge *charge)
{
	struct fairwq_pool *pool = batch->pool;
	const struct fairwq_policy_ops *policy = fairwq_policy_of(pool);
	s64 delta;
	u64 cost;

	lockdep_assert_held(&pool->lock);

	if (charge->policy_gen != pool->policy_gen)
		return;
	cost = policy->settle ? policy->settle(batch, charge) : (u64)charge->charged * charge->nr;
	delta = cost - charge->charged;	/* less than 0 if the guess was too high */
	fairwq_tree_correct(&pool->tree, &batch->node, delta, charge->out_of_rank);
	if (delta)
		note_max_cost_locked(batch, cost);
}

/*
 * Begin a generation of charges after a change of the policy. From here on no
 * batch is in the tree.
 */
void fairwq_policy_begin_locked(struct fairwq_pool *pool)
{
	unsigned int starve_limit = pool->tree.starve_limit;
	struct fairwq_batch *batch;
	struct fairwq_node *node;

	lockdep_assert_held(&pool->lock);

	pool->policy_gen++;
	fairwq_tree_init(&pool->tree);
	pool->tree.starve_limit = starve_limit;
	fairwq_policy_set_unit_locked(pool);
	list_for_each_entry(batch, &pool->registry.batches, link) {
		batch->stats->max_cost = 0;
		for (node = &batch->node; node->parent; node = node->parent)
			fairwq_node_init(node, node->parent, node->weight);
	}
}
