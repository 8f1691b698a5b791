// SPDX-License-Identifier: GPL-2.0
/*
 * Fairness: the self-check of promise 6. This file only watches, and counts violations.
 * What a turn is charged is in cost.c, and which batch is next in tree.c.
 *
 *   Check        It compares                           When
 *   -----------  ------------------------------------  ------------------------------
 *   waits        what the siblings of a node had       at the node's next turn, or
 *                between two turns of it               when debugfs is read
 *   priorities   turns that a lower priority had       at each such turn
 *                before a higher one, with what it
 *                has paid for them
 *   lags         what siblings had in a window, by     at the end of the window
 *                weight
 *
 * No check knows of virtual time. They go by what turns cost, which each node of the tree
 * counts beside that. The unit is turns under round robin, ns under fair time, and what the
 * client says under fair cost. Under arrival order nothing is promised.
 *
 * Waits
 *
 * A client is a batch, an owner with all of its batches, or a priority: any node of the
 * tree. While it has a backlog, its siblings must not have more than a bound without a turn
 * of its own. A client whose items a constraint keeps back has no backlog.
 *
 * Let w(i) be the weight of node i, W the sum of the weights, w the least of them, and u the
 * longest turn. Between two turns of node i, a sibling j has at most u + w(j) u / w(i), and
 * what is in flight. If j is at its own limit, it leaves and comes back with each turn. Then
 * it may first have what it lacked while a sibling k had a turn: w(j) u / w(k). All that is
 * less than (2 W / w + max_active) u. Four times 2 W / w is starvation.
 *
 * The weights are those of node i and of the siblings that had a turn in this window. Those
 * of earlier windows fade, and so do the longest turns. Those of a node fade only with turns
 * of it, because it may wait for many windows after a long turn of its own. A priority waits
 * for its starve limit in place of the weights.
 *
 * Priorities
 *
 * A turn before one of a higher priority is paid for by turns of others: by the starve limit
 * times its cost. A priority that is ahead of that by more than it may wait leaks.
 *
 * Lags
 *
 * If two siblings stay in the tree for a window, their service by weight differs by at most
 * the bound. At the start of a window some siblings are noted, at most WINDOW_NODES. At its
 * end they are compared, each with each. One that has left the tree or got another weight
 * has dropped out.
 *
 * The bound for turns: when i is chosen, its virtual time is not above that of j. So it is
 * ahead by at most one turn of its own. Several runners may start what they were given in
 * another order. (max_active + 1) / 2 turns of each are enough. A burst (burst.c) is charged
 * one turn when it begins, and the others when it ends. Each runner may be in a burst of i.
 * That is max_active times the longest burst more.
 *
 * The bound for time: a turn is charged what it may cost, u, and given back the rest when it
 * ends. So P(i), what i was charged and has not had, is never less than 0. The virtual time
 * of i is V(i) = A(i) + P(i), where A(i) is what it had; all by weight. A runner adds at
 * most one item to P, because it settles a turn before it takes the next. With N for
 * max_active:
 *
 * - When i is chosen, A(i) + P(i) <= A(j) + P(j). Until it is chosen again it has no more
 *   than P(i) and that turn. So it is never ahead of j by more than P(j) + u(i). Of j's
 *   turns N - 1 runners have one each, so that is (N - 1) u(j) + u(i).
 * - The same holds for j. Over any window the lead changes by no more than the sum. That is
 *   less than N u(i) + N u(j).
 * - If the two are alone, i gets further ahead only while more runners have turns of i than
 *   of j. So it is at most (N + 1) u of the one with the longer turns. That is what is
 *   promised. With others beside them it is what tests/sim has measured.
 *
 * What is at hand here is V, not A. V(i) - V(j) is at most u(i) when i is chosen, and N u(j)
 * more when all turns of j are corrected. So (N + 1) u(i) + (N + 1) u(j) is checked, for
 * each pair. u is the longest turn of the window, measured or charged. A turn may be longer
 * than all that was known of its batch. Then it makes the lead larger after the fact, and so
 * do those that are under way with it.
 *
 * Locking: pool->lock.
 * Invariant: a node in window_members has not left the tree since the window began, and has
 * the weight that it had then.
 *
 * Limits: a window compares WINDOW_NODES siblings of one parent. A client that waits and has
 * no turn is found only when debugfs is read.
 */
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/rculist.h>

#include "fairness.h"
#include "testing.h"
#include "tree.h"

#define WINDOW_NODES		64
/* Long enough that each batch has had several turns. */
#define WINDOW_TURNS		1024
#define WINDOW_TURNS_PER_BATCH	8
/* A wait of so many times what is right is starvation. */
#define STARVED			4U

/* Turns are compared in 1/65536 turns of a batch of weight 100. */
#define TURN_SHIFT		16
#define TURN			BIT(TURN_SHIFT)
static_assert(FAIRWQ_COST_TURN >= TURN);

/* What the siblings that are compared have in common. */
struct fairwq_sums {
	unsigned int nr;
	s64 least, most, total;	/* of what they got */
	u64 slack;		/* how far the one with most of it may be off */
	s64 low, high;		/* what each may have at least and at most: */
				/* the largest lower, the smallest upper limit */
	u64 square;		/* of the share of each, 1000 being the mean */
};

/* What the tree counts, in turns or in ns. */
static s64 window_unit(const struct fairwq_pool *pool, s64 cost)
{
	if (fairwq_by_amount(pool))
		return cost >> FAIRWQ_COST_NS_SHIFT;
	return cost >> (FAIRWQ_COST_TURN_SHIFT - TURN_SHIFT);
}

/* Convert to 1/100 of what an operator sees: turns, or us. */
static u64 hundredths(const struct fairwq_pool *pool, u64 amount)
{
	return fairwq_by_amount(pool) ? div_u64(amount, 10) : fairwq_ratio(amount, TURN, 100);
}

/* Return the longest turn of @node, or of those below it, as it is compared. */
static u64 longest_turn(const struct fairwq_pool *pool, const struct fairwq_node *node)
{
	u64 least = pool->policy == FAIRWQ_FAIR_TIME ? pool->slice_us ?: FAIRWQ_DFL_SLICE_US : 1;

	return max3(least, (u64)node->member.longest[0], (u64)node->member.longest[1]) *
	       (fairwq_by_amount(pool) ? NSEC_PER_USEC : TURN);
}

/* ---- waits ------------------------------------------------------------ */

/* Return what the siblings of @node had by now; those of a priority are the other ones. */
static u64 service_of_others(const struct fairwq_pool *pool, const struct fairwq_node *node)
{
	return (node->parent ? node->parent->service : pool->tree.service) - node->service;
}

/* Begin the wait of @node: it has joined, or had a turn. */
static void wait_begins_locked(struct fairwq_pool *pool, struct fairwq_node *node)
{
	lockdep_assert_held(&pool->lock);

	node->member.seen = service_of_others(pool, node);
	node->member.when = jiffies;
	node->rules = pool->window.rules;
}

/* Forget that others had more than the priority owes: it had a turn when it wanted one. */
static void save_nothing_locked(struct fairwq_pool *pool, struct fairwq_node *rank)
{
	u64 others = service_of_others(pool, rank);

	lockdep_assert_held(&pool->lock);

	if ((s64)(others - rank->member.base) > 0)
		rank->member.base = others;
}

/* Return what its siblings had since its last turn; of a priority, since it has paid. */
static u64 waited_for(const struct fairwq_pool *pool, const struct fairwq_node *node)
{
	s64 waited = service_of_others(pool, node) - node->member.seen;

	if (!node->parent)
		waited = min_t(s64, waited, service_of_others(pool, node) - node->member.base);
	return max(waited, 0LL);	/* what was charged may have been given back since */
}

/* Return what a priority may wait for, or be ahead by. */
static u64 rank_bound_locked(const struct fairwq_pool *pool)
{
	u64 longest = 0;
	unsigned int i;

	lockdep_assert_held(&pool->lock);

	for (i = 0; i < FAIRWQ_NR_RANKS; i++)
		longest = max(longest, longest_turn(pool, &pool->tree.rank[i]));
	return STARVED * (pool->tree.starve_limit + 1 + pool->max_active) * longest;
}

/* Return how much its siblings may have between two turns of @node; U64_MAX: any. */
static u64 wait_bound_locked(const struct fairwq_pool *pool, const struct fairwq_node *node)
{
	const struct fairwq_member *all;
	u32 weight, least;

	lockdep_assert_held(&pool->lock);

	if (!node->parent)
		return pool->tree.starve_limit ? rank_bound_locked(pool) : U64_MAX;
	all = &node->parent->member;
	weight = max3(all->weight[0], all->weight[1], (u32)node->weight);
	least = min_not_zero(all->least[0], all->least[1]);
	least = min_not_zero((u32)node->weight, least);
	return (STARVED * 2 * DIV_ROUND_UP(weight, least) + pool->max_active) *
	       max(longest_turn(pool, node->parent), longest_turn(pool, node));
}

/* Judge @node, which has waited for so much service of others. */
static void wait_judge_locked(struct fairwq_pool *pool, struct fairwq_node *node, u64 waited)
{
	struct fairwq_window *window = &pool->window;
	u64 wait, bound, percent;

	lockdep_assert_held(&pool->lock);

	/* What it was judged by has changed since then. */
	if (node->rules != window->rules)
		return;
	wait = window_unit(pool, waited);
	bound = wait_bound_locked(pool, node);
	percent = fairwq_ratio(wait, bound, 100);
	window->longest = max(window->longest, waited);
	if (percent > window->worst_wait) {
		window->worst_wait = percent;
		window->wait = hundredths(pool, wait);
		window->wait_bound = hundredths(pool, bound);
		window->wait_ms = jiffies_to_msecs((u32)jiffies - node->member.when);
	}
	if (wait <= bound)
		return;
	pool->counter[FAIRWQ_STARVED]++;
	pool->counter[FAIRWQ_VIOLATIONS]++;
	wait_begins_locked(pool, node);
}

/* Count @node with its parent, at its first turn in this window. */
static void window_first_locked(struct fairwq_pool *pool, struct fairwq_node *node)
{
	struct fairwq_member *member = &node->member, *all;

	lockdep_assert_held(&pool->lock);

	node->window = pool->window.number;
	/* Slowly: a wait may be longer than a window. */
	member->longest[1] = max(member->longest[0], member->longest[1] - member->longest[1] / 4);
	member->longest[0] = 0;
	member->weight[1] = max(member->weight[0], member->weight[1] - member->weight[1] / 4);
	member->weight[0] = 0;
	member->least[1] = min_not_zero((u32)member->least[0],
					min(DIV_ROUND_UP(member->least[1] * 5U, 4),
					    FAIRWQ_MAX_WEIGHT));
	member->least[0] = 0;
	if (!node->parent)
		return;
	all = &node->parent->member;
	all->weight[0] += node->weight;
	all->least[0] = min_not_zero(all->least[0], node->weight);
}

/* Return about what others have between two turns of a child of @parent, or up to twice. */
static u64 usual_wait(const struct fairwq_pool *pool, const struct fairwq_node *parent)
{
	const struct fairwq_member *all = &parent->member;

	return (all->weight[1] >> max(fls(all->least[1]) - 1, 0)) * pool->tree.turn;
}

/* End the wait of @node, whatever it is: it has a turn. */
static void wait_ends_locked(struct fairwq_pool *pool, struct fairwq_node *node, u64 waited)
{
	lockdep_assert_held(&pool->lock);

	wait_judge_locked(pool, node, waited);
	wait_begins_locked(pool, node);
	if (node->window != pool->window.number)
		window_first_locked(pool, node);
}

/* Judge those at and above @batch that wait still. */
static void look_at_locked(struct fairwq_batch *batch)
{
	struct fairwq_pool *pool = batch->pool;
	struct fairwq_node *node;

	lockdep_assert_held(&pool->lock);

	if (pool->tree.by_arrival || !fairwq_node_eligible(&batch->node))
		return;
	for (node = &batch->node; node; node = node->parent) {
		wait_judge_locked(pool, node, waited_for(pool, node));
		if (node->rules != pool->window.rules)
			wait_begins_locked(pool, node);
	}
}

/* Find those that get no turn at all, before a reader is told. */
void fairwq_fairness_look(struct fairwq_pool *pool)
{
	struct fairwq_batch *batch;

	guard(rcu)();
	list_for_each_entry_rcu(batch, &pool->batches, link) {
		guard(raw_spinlock_irq)(&pool->lock);
		look_at_locked(batch);
	}
}

FAIRWQ_TEST_EXPORT(fairwq_fairness_look);

/* Note that a batch joins the tree, and each owner of which it is the first one there. */
void fairwq_fairness_joins_locked(struct fairwq_batch *batch)
{
	struct fairwq_pool *pool = batch->pool;
	struct fairwq_node *node;

	lockdep_assert_held(&pool->lock);

	for (node = &batch->node; node && !fairwq_node_has_eligible(node); node = node->parent) {
		wait_begins_locked(pool, node);
		if (!node->parent)
			save_nothing_locked(pool, node);
	}
}

/* Note that a batch has left the tree, and each owner of which it was the last one there. */
void fairwq_fairness_left_locked(struct fairwq_batch *batch)
{
	struct fairwq_node *node;

	lockdep_assert_held(&batch->pool->lock);

	for (node = &batch->node; node->parent && !fairwq_node_eligible(node); node = node->parent)
		list_del_init(&node->member.link);
}

/* Leave @node out of the window: its share is another one from now on. */
void fairwq_fairness_weight_locked(struct fairwq_pool *pool, struct fairwq_node *node)
{
	lockdep_assert_held(&pool->lock);

	list_del_init(&node->member.link);
	wait_begins_locked(pool, node);
	node->window--;			/* its next turn counts by its weight then */
}

/* ---- priorities ------------------------------------------------------- */

/* Judge a turn of @rank that begins before one of a higher priority. */
static void early_judge_locked(struct fairwq_pool *pool, struct fairwq_node *rank)
{
	u64 others = service_of_others(pool, rank);
	s64 early = window_unit(pool, rank->member.base - others);
	s64 slack = rank_bound_locked(pool);

	lockdep_assert_held(&pool->lock);

	if (early > slack || !pool->tree.starve_limit) {
		pool->counter[FAIRWQ_PRIO_EXCESS]++;
		pool->counter[FAIRWQ_VIOLATIONS]++;
	}
	if (early > slack)
		rank->member.base = others;
}

/* Charge the priority: such a turn cost so much, or so much more. */
void fairwq_fairness_jumped_locked(struct fairwq_pool *pool, const struct fairwq_node *node,
				   s64 cost)
{
	struct fairwq_node *rank = &pool->tree.rank[fairwq_node_rank(&pool->tree, node)];

	lockdep_assert_held(&pool->lock);

	rank->member.base += pool->tree.starve_limit * cost;
}

/* Count anew what priorities owe for turns before others': @now for each @old. */
void fairwq_fairness_debts_locked(struct fairwq_pool *pool, unsigned int old, unsigned int now)
{
	struct fairwq_node *rank;
	unsigned int i;
	u64 others;

	lockdep_assert_held(&pool->lock);

	for (i = 0; i < FAIRWQ_NR_RANKS; i++) {
		rank = &pool->tree.rank[i];
		save_nothing_locked(pool, rank);
		others = service_of_others(pool, rank);
		rank->member.base = others + div_u64(rank->member.base - others, old) * now;
	}
}

/* ---- lags ------------------------------------------------------------- */

/* What @node got in this window, by weight. */
static s64 window_service(const struct fairwq_pool *pool, const struct fairwq_node *node)
{
	s64 cost = window_unit(pool, node->service - node->member.base);

	return div_s64(cost * 100, node->weight);
}

/* How far that may be from what it should have got, rounded up. */
static u64 window_slack(const struct fairwq_pool *pool, const struct fairwq_node *node)
{
	u64 longest = longest_turn(pool, node), runners = pool->max_active, cost;

	if (fairwq_by_amount(pool))
		cost = (runners + 1) * longest;
	else	/* all but the first turn of a burst are charged when it ends */
		cost = (runners + 1) * TURN / 2 + runners * (longest - TURN);
	return DIV_ROUND_UP_ULL(cost * 100, node->weight) + 1;
}

/*
 * Two may differ by the slack of the one and of the other. So each sets a lower and an
 * upper limit for the others. If no lower limit is above an upper one, all pairs are right.
 */
static void sum_up(struct fairwq_sums *sums, const struct fairwq_pool *pool,
		   const struct fairwq_node *node)
{
	s64 got = window_service(pool, node);
	u64 slack = window_slack(pool, node);
	bool first = !sums->nr++;

	sums->least = first ? got : min(sums->least, got);
	sums->most = first ? got : max(sums->most, got);
	sums->slack = max(sums->slack, slack);
	sums->low = first ? got - slack : max_t(s64, sums->low, got - slack);
	sums->high = first ? got + slack : min_t(s64, sums->high, got + slack);
	sums->total += got;
}

static void square_up(struct fairwq_sums *sums, const struct fairwq_pool *pool,
		      const struct fairwq_node *node)
{
	s64 got = max(window_service(pool, node), 0LL), share;
	s64 mean = div_s64(sums->total, sums->nr);

	/* A thousandth of the mean is the unit, and must be one. */
	if (mean < 1000)
		return;
	share = div64_s64(got, div_s64(mean, 1000));
	sums->square += share * share;
}

/* Jain's index, (sum x)^2 / (n * sum x^2), in 1/10000; x is relative to its mean. */
static unsigned int jain(const struct fairwq_sums *sums)
{
	if (!sums->square)
		return 10000;
	return min_t(u64, 10000, div64_u64(10000000000ULL * sums->nr, sums->square));
}

/* Compare the nodes of the window, and forget them. */
static void window_close_locked(struct fairwq_pool *pool)
{
	struct fairwq_window *window = &pool->window;
	struct fairwq_node *node, *next;
	struct fairwq_sums sums = { };
	u64 lag, bound;

	lockdep_assert_held(&pool->lock);

	list_for_each_entry(node, &pool->window_members, member.link)
		sum_up(&sums, pool, node);
	list_for_each_entry_safe(node, next, &pool->window_members, member.link) {
		square_up(&sums, pool, node);
		list_del_init(&node->member.link);
	}
	if (sums.nr < 2)
		return;
	lag = sums.most - sums.least;
	bound = 2 * sums.slack;
	window->nr = sums.nr;
	window->lag = hundredths(pool, lag);
	window->bound = hundredths(pool, bound);
	window->jain = jain(&sums);
	window->worst_lag = max(window->worst_lag, fairwq_ratio(lag, bound, 100));
	pool->counter[FAIRWQ_WINDOWS]++;
	if (sums.low > sums.high)
		pool->counter[FAIRWQ_VIOLATIONS]++;
}

/* Note some of the children of @parent. */
static void window_open_locked(struct fairwq_pool *pool, const struct fairwq_node *parent)
{
	struct fairwq_node *node = NULL;
	unsigned int nr;

	lockdep_assert_held(&pool->lock);

	for (nr = 0; nr < WINDOW_NODES; nr++) {
		node = fairwq_node_next(parent, node);
		if (!node)
			break;
		node->member.base = node->service;
		list_add_tail(&node->member.link, &pool->window_members);
	}
}

/* Count so many turns of @batch. One level of the tree has the next window. */
static void window_pass_locked(struct fairwq_batch *batch, unsigned int nr)
{
	const struct fairwq_node *parent = batch->node.parent;
	struct fairwq_pool *pool = batch->pool;
	unsigned int chance;

	lockdep_assert_held(&pool->lock);

	if (pool->window.turns_left > nr) {
		pool->window.turns_left -= nr;
		return;
	}
	window_close_locked(pool);
	pool->window.number++;
	pool->window.turns_left = max_t(u64, WINDOW_TURNS,
					WINDOW_TURNS_PER_BATCH * (u64)pool->nr_eligible);
	if (pool->tree.by_arrival)
		return;
	for (chance = pool->window.number; parent->parent; parent = parent->parent, chance /= 2)
		if (chance % 2 && parent->member.weight[1] > parent->member.least[1])
			break;
	window_open_locked(pool, parent);
}

/* Drop what was under way: what it was judged by has changed. */
void fairwq_fairness_start_locked(struct fairwq_pool *pool)
{
	struct fairwq_window *window = &pool->window;
	struct fairwq_node *node, *next;

	lockdep_assert_held(&pool->lock);

	list_for_each_entry_safe(node, next, &pool->window_members, member.link)
		list_del_init(&node->member.link);
	window->number++;
	window->rules++;
	window->turns_left = 0;
}

/* Note that a turn of @batch may cost so much, or did: turns, or us. */
void fairwq_fairness_longest_locked(struct fairwq_batch *batch, u32 cost)
{
	struct fairwq_node *node;

	lockdep_assert_held(&batch->pool->lock);

	for (node = &batch->node; node; node = node->parent)
		node->member.longest[0] = max(node->member.longest[0], cost);
}

/*
 * Note a turn of @node, which has a parent. As a rule it has had one in this window, and has
 * waited no longer than is usual.
 */
static void node_turn_locked(struct fairwq_pool *pool, struct fairwq_node *node)
{
	u64 others = service_of_others(pool, node);
	s64 waited = others - node->member.seen;

	lockdep_assert_held(&pool->lock);

	if (unlikely(node->window != pool->window.number ||
		     waited > (s64)min(pool->window.longest, usual_wait(pool, node->parent)))) {
		wait_ends_locked(pool, node, max(waited, 0LL));
		return;
	}
	node->member.seen = others;
	node->member.when = jiffies;
}

/* Note a turn of a priority. As a rule no other one was served since its last turn. */
static void rank_turn_locked(struct fairwq_pool *pool, struct fairwq_node *rank,
			     bool out_of_rank)
{
	u64 others = service_of_others(pool, rank);

	lockdep_assert_held(&pool->lock);

	if (unlikely(out_of_rank))
		early_judge_locked(pool, rank);
	if (likely(rank->window == pool->window.number && rank->member.seen == others &&
		   (s64)(others - rank->member.base) <= 0)) {
		rank->member.when = jiffies;
		return;
	}
	wait_ends_locked(pool, rank, waited_for(pool, rank));
	if (!out_of_rank)
		save_nothing_locked(pool, rank);
}

/* Note @turn, which the tree gave. */
void fairwq_fairness_turn_locked(const struct fairwq_turn *turn)
{
	struct fairwq_pool *pool = turn->batch->pool;
	struct fairwq_node *node = &turn->batch->node;

	lockdep_assert_held(&pool->lock);

	if (likely(!pool->tree.by_arrival)) {
		for (; node->parent; node = node->parent)
			node_turn_locked(pool, node);
		rank_turn_locked(pool, node, turn->out_of_rank);
	}
	window_pass_locked(turn->batch, 1);
}

/*
 * Note that a turn of a burst is over. For those that wait all of the burst is as one
 * turn.
 */
void fairwq_fairness_burst_locked(const struct fairwq_turn *turn)
{
	u64 longest = turn->nr;

	lockdep_assert_held(&turn->batch->pool->lock);

	if (fairwq_by_amount(turn->batch->pool))
		longest = div_u64(turn->took, NSEC_PER_USEC) + 1;
	fairwq_fairness_longest_locked(turn->batch, min_t(u64, longest, U32_MAX));
	window_pass_locked(turn->batch, turn->nr - 1);
}

void fairwq_fairness_reset_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	pool->window = (struct fairwq_window){
		.number = pool->window.number, .rules = pool->window.rules,
	};
	fairwq_fairness_start_locked(pool);
}
