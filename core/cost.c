// SPDX-License-Identifier: GPL-2.0
/*
 * Cost: what a turn is charged to its batch, and how that is put right.
 *
 *   fairwq_cost_charge_locked()    charges the turn when it begins
 *   fairwq_cost_settle_locked()    corrects the charge when the turn has ended
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
 * them ends. An average would not help, because all of these turns may be longer
 * than that. A batch that was charged too much is given back the rest when the
 * turn ends. Until then other batches go before it.
 *
 * The bound of promise 6 under fair time
 *
 * A turn is charged what it may cost, u, and given back the rest when it ends.
 * So P(i), what i was charged and has not had, is never less than 0. The
 * virtual time of i is V(i) = A(i) + P(i), where A(i) is what it had; all by
 * weight. A runner adds at most one item to P, because it settles a turn before
 * it takes the next. With N for max_active:
 *
 * - When i is chosen, A(i) + P(i) <= A(j) + P(j). Until it is chosen again it
 *   has no more than P(i) and that turn. So it is never ahead of j by more than
 *   P(j) + u(i). Of j's turns N - 1 runners have one each, so that is (N - 1)
 *   u(j) + u(i).
 * - The same holds for j. Over any window the lead changes by no more than the
 *   sum. That is less than N u(i) + N u(j).
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
 * A change of the policy changes the unit, so a new generation of charges begins. Every virtual
 * time is set to 0, so that no batch has more of a debt or a claim than others.
 * A turn that was charged in the generation before is not corrected, so what was owed
 * then is forgotten.
 *
 * Locking: pool->lock.
 * Invariant: each turn is charged once and settled once.
 *
 * Limits: under fair time a turn is charged at most 10 ms when it begins, and costs at most
 * 60 s. Under fair cost a newcomer joins as far behind as the dearest turn was, also if that
 * is long ago.
 */
#include <linux/limits.h>
#include <linux/minmax.h>

#include "cost.h"
#include "tree.h"

/* The tree must hold the debt of the longest item at the smallest weight. */
static_assert((FAIRWQ_COST_MAX_NS << FAIRWQ_COST_NS_SHIFT) * 100 <= FAIRWQ_MAX_LEAD);

/*
 * Turns that the longest is kept for: at least so many, at most twice as many.
 * That covers long items that come now and then. Where turns are short, one
 * that was interrupted is soon forgotten.
 */
#define FAIRWQ_RECENT_TURNS	256

/*
 * Most that is charged before a turn has ended; the rest follows at its end.
 * Without it a guess could feed itself. An item that waits for a later one of
 * its own batch waits as long as the batch was charged. That time is the next
 * guess.
 */
#define FAIRWQ_GUESS_MAX_NS	FAIRWQ_RUN_TIME_MAX_NS

/*
 * Return what the next turn of @batch may take, ns: the longest of the last
 * ones, or the average if that is more.
 */
static u32 guess_locked(struct fairwq_batch *batch)
{
	struct fairwq_batch_stats *stats = batch->stats;
	u64 guess = ewma_fairwq_run_read(&stats->run_avg);

	lockdep_assert_held(&batch->pool->lock);

	guess = max3(guess, (u64)stats->longest[0], (u64)stats->longest[1]);
	guess = min(guess, FAIRWQ_GUESS_MAX_NS);
	return clamp_t(u64, guess ?: fairwq_slice_ns(batch->pool), 1, U32_MAX);
}

/*
 * Note that an item of @batch took @ns. longest[0] is of the present 256 turns,
 * longest[1] of the 256 before.
 */
static void note_longest_locked(struct fairwq_batch *batch, u64 ns)
{
	struct fairwq_batch_stats *stats = batch->stats;

	lockdep_assert_held(&batch->pool->lock);

	stats->longest[0] = max_t(u32, stats->longest[0], min_t(u64, ns, U32_MAX));
	if (++stats->measured % FAIRWQ_RECENT_TURNS)
		return;
	stats->longest[1] = stats->longest[0];
	stats->longest[0] = 0;
}

/*
 * Note that a turn of @batch, and so of its owners, costs so much. A judge of shares needs
 * the longest one, also while it is charged and has not ended.
 */
static void note_max_cost_locked(struct fairwq_batch *batch, u32 cost)
{
	lockdep_assert_held(&batch->pool->lock);

	for (; batch; batch = batch->parent)
		batch->stats->max_cost = max(batch->stats->max_cost, cost);
}

/* Tell the tree what an unmeasured turn costs, in the unit of the policy. */
void fairwq_cost_set_turn_locked(struct fairwq_pool *pool)
{
	u64 cost = FAIRWQ_COST_TURN;

	if (pool->policy == FAIRWQ_FAIR_TIME)
		cost = fairwq_slice_ns(pool) << FAIRWQ_COST_NS_SHIFT;
	else if (pool->policy == FAIRWQ_FAIR_COST)
		cost = (u64)pool->dearest << FAIRWQ_COST_NS_SHIFT;
	fairwq_tree_set_turn(&pool->tree, cost);
}

/* Charge what the turn may take, or what the client says that it costs. */
static void charge_amount_locked(struct fairwq_turn *turn)
{
	struct fairwq_batch *batch = turn->batch;
	const struct fairwq_work *work = turn->id;	/* it has not started */
	struct fairwq_pool *pool = batch->pool;

	lockdep_assert_held(&pool->lock);

	if (pool->policy == FAIRWQ_FAIR_TIME) {
		turn->charged = guess_locked(batch);
		turn->timed = true;
		note_max_cost_locked(batch, DIV_ROUND_UP_ULL(turn->charged, NSEC_PER_USEC));
	} else {
		turn->charged = fairwq_is_of_client(work) ? pool->cost(work) ?: 1 : 1;
		if (turn->charged > pool->dearest) {
			pool->dearest = turn->charged;
			fairwq_cost_set_turn_locked(pool);
		}
		note_max_cost_locked(batch, turn->charged);
	}
}

/* Charge the batch for a turn that it takes. It must still be eligible. */
void fairwq_cost_charge_locked(struct fairwq_turn *turn)
{
	struct fairwq_batch *batch = turn->batch;
	struct fairwq_pool *pool = batch->pool;
	u64 cost = FAIRWQ_COST_TURN;

	lockdep_assert_held(&pool->lock);

	turn->policy_gen = pool->policy_gen;
	turn->charged = 0;
	if (fairwq_by_amount(pool)) {
		charge_amount_locked(turn);
		cost = (u64)turn->charged << FAIRWQ_COST_NS_SHIFT;
	}
	turn->out_of_rank = fairwq_tree_charge(&pool->tree, &batch->node, cost);
}

/* Count that a turn cost so much. What does not fit into the sum is not counted. */
static void count_locked(struct fairwq_batch *batch, u64 cost)
{
	struct fairwq_pool *pool = batch->pool;

	lockdep_assert_held(&pool->lock);

	cost = min(cost, U64_MAX - pool->service);
	pool->service += cost;
	batch->stats->service += cost;
}

/*
 * Settle a turn that has ended: correct its charge to what it cost, and count
 * the items of its burst. An ended turn of an earlier policy is only counted.
 *
 * Where turns count one was charged, and a burst may have had more items. The tree must
 * be told of those, too, because the batch may have come back to it while its burst was
 * under way.
 */
void fairwq_cost_settle_locked(const struct fairwq_turn *turn)
{
	struct fairwq_batch *batch = turn->batch;
	struct fairwq_pool *pool = batch->pool;
	s64 delta = 0, took;

	lockdep_assert_held(&pool->lock);

	if (turn->policy_gen != pool->policy_gen)
		return;
	if (pool->policy == FAIRWQ_FAIR_TIME) {
		took = min(turn->took, FAIRWQ_COST_MAX_NS);
		note_longest_locked(batch, div_u64(took, turn->nr));
		note_max_cost_locked(batch, DIV_ROUND_UP_ULL(took, NSEC_PER_USEC));
		/* Less than 0 if the guess was too high. */
		delta = (took - turn->charged) * BIT(FAIRWQ_COST_NS_SHIFT);
	} else if (pool->policy == FAIRWQ_ROUND_ROBIN && unlikely(turn->nr > 1)) {
		note_max_cost_locked(batch, turn->nr);
		delta = (turn->nr - 1) * FAIRWQ_COST_TURN;
	}
	fairwq_tree_correct(&pool->tree, &batch->node, delta);
	if (delta && turn->out_of_rank)
		fairwq_tree_pay(&pool->tree, &batch->node, delta);
	if (fairwq_by_amount(pool))
		count_locked(batch, turn->charged + (delta >> FAIRWQ_COST_NS_SHIFT));
}

/* Begin a generation of charges after a change of the policy. No batch may be in the tree. */
void fairwq_cost_new_policy_locked(struct fairwq_pool *pool)
{
	unsigned int starve_limit = pool->tree.starve_limit;
	struct fairwq_batch *batch;
	struct fairwq_node *node;

	lockdep_assert_held(&pool->lock);

	pool->policy_gen++;
	pool->dearest = 1;
	fairwq_tree_init(&pool->tree);
	pool->tree.starve_limit = starve_limit;
	fairwq_cost_set_turn_locked(pool);
	pool->service = 0;
	list_for_each_entry(batch, &pool->batches, link) {
		batch->stats->service = 0;
		batch->stats->max_cost = 0;
		for (node = &batch->node; node->parent; node = node->parent)
			fairwq_node_init(node, node->parent, node->weight);
	}
}
