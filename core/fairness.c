// SPDX-License-Identifier: GPL-2.0
/*
 * The module checks its own promise: over a window in which two batches of
 * one priority stay eligible, their service divided by weight differs by at
 * most the bound.
 *
 * The check knows nothing of virtual time: it goes by what turns cost, which
 * each node of the tree counts beside that. At the start of a window it notes
 * some of the eligible nodes directly below a priority, at most WINDOW_NODES:
 * batches without an owner, and owners, with all of their batches as one. At
 * its end it compares, each with each, those that had a backlog all the while.
 * One that was paused, ran dry or got another weight drops out. One that left the tree
 * for a turn of its own, as it reached its max_active or its items were all in flight,
 * and that is back before the next turn is decided, has missed nothing: it stays.
 *
 * That alone does not see a client that is starved by others that come and go. So each
 * of them is compared with an ideal server, too, that serves all clients of one rank
 * which have a backlog at once, by weight: each of them gets as much of @vtime as goes by
 * while it has one, whatever the module did. A client that was served less than an eighth
 * of that, beyond a turn of each other one and what is in flight, is starved.
 * Less than its share may be right: a client that was away is served before others that
 * had more, and has no part in what the ideal server shares out after it is gone.
 *
 * And a lower priority must not have had more than its turn in so many while a higher one
 * had a backlog all the time. What it had waited for by then is not lost: after a streak
 * of a higher one that is several turns at once.
 *
 * What is compared is turns under round robin, and ns of run time under fair
 * time. Turns: when i is chosen its virtual time is not above that of j, so
 * that it is never ahead by more than one turn of its own; several runners may
 * start what they were given in another order. (max_active + 1) / 2 turns of
 * each are enough.
 *
 * Time: a turn is charged what it may cost, u, and given back what it did not.
 * So what i was charged and has not had, P(i), is never less than 0; its
 * virtual time is V(i) = A(i) + P(i), where A(i) is what it had; all by weight.
 * P of what one runner has to do with is at most one item: it tells what it ran
 * before it takes the next. With N for max_active:
 *
 * - When i is chosen, A(i) + P(i) <= A(j) + P(j). Until it is chosen again it
 *   has no more than P(i) and that turn. So it is never ahead of j by more than
 *   P(j) + u(i), where N - 1 runners have to do with j: (N - 1) u(j) + u(i).
 * - The same holds for j. Over any window the lead changes by no more than the
 *   sum, which is less than N u(i) + N u(j).
 * - Of two that are alone, i only gets further ahead while more runners have
 *   turns of i than of j, so that it is (N - 1) / 2 above, and by no more than
 *   (N + 1) u of the one that has more of it. That is what is promised;
 *   with others beside them it is what tests/sim has measured.
 *
 * What is at hand here is V and not A. V(i) - V(j) is at most u(i), when i is
 * chosen, and N u(j) more when all of j's turns are corrected. So what is checked
 * is (N + 1) u(i) + (N + 1) u(j), for every pair.
 *
 * u is the longest turn that the batch had, or that it was charged for. A turn
 * that is longer than all that was known of its batch is so many ns more of a
 * lead, after the fact, and so are those that are under way with it. As u is
 * that of the window, the check allows for that.
 *
 * A streak (streak.c) counts as one turn: as long as its budget, or as many.
 */
#include <linux/math64.h>

#include "fairness.h"
#include "tree.h"

#define WINDOW_NODES		64
/* Long enough that each batch has had several turns. */
#define WINDOW_TURNS		1024
#define WINDOW_TURNS_PER_BATCH	8

/* Turns are compared in 1/65536 turns of a batch of weight 100. */
#define TURN_SHIFT		16
#define TURN			BIT(TURN_SHIFT)
static_assert(FAIRWQ_COST_TURN >= TURN);

/* What the nodes of one rank have in common. */
struct fairwq_sums {
	unsigned int nr;
	s64 least, most, total;	/* of what they got */
	u64 slack;		/* how far the one with most of it may be off */
	s64 low, high;		/* what each may have at least and at most: */
				/* the largest lower, the smallest upper limit */
	u64 square;		/* of the share of each, 1000 being the mean */
};

/* The node directly below the rank. */
static struct fairwq_node *window_node(struct fairwq_batch *batch)
{
	struct fairwq_node *node = &batch->node;

	while (node->parent->parent)
		node = node->parent;
	return node;
}

static unsigned int window_rank(const struct fairwq_batch *batch)
{
	return fairwq_prio_rank(batch->prio);
}

static bool by_time(const struct fairwq_pool *pool)
{
	return pool->policy == FAIRWQ_FAIR_TIME;
}

/* What the tree counts, in turns or in ns. */
static s64 window_unit(const struct fairwq_pool *pool, s64 cost)
{
	if (by_time(pool))
		return cost >> FAIRWQ_COST_NS_SHIFT;
	return cost >> (FAIRWQ_COST_TURN_SHIFT - TURN_SHIFT);
}

/* ---- the ideal server --------------------------------------------------- */

/* Share out what is pending, before the clients that share it change. */
static void ideal_share_locked(struct fairwq_pool *pool, struct fairwq_ideal *ideal)
{
	lockdep_assert_held(&pool->lock);

	if (ideal->pending && ideal->weight)
		ideal->vtime += div64_s64(ideal->pending * 100, ideal->weight);
	ideal->pending = 0;
}

/* @node was served so much. */
static void ideal_serve_locked(struct fairwq_pool *pool, struct fairwq_node *node,
			       unsigned int rank, u64 cost)
{
	struct fairwq_ideal *ideal = &pool->ideal[rank];
	s64 share;

	lockdep_assert_held(&pool->lock);

	if (pool->tree.by_arrival)
		return;
	ideal->longest = max(ideal->longest, cost);
	if (likely(node->waits)) {
		ideal->pending += cost;
		return;
	}
	/* All that it has is in flight: it has its part in that. */
	ideal_share_locked(pool, ideal);
	share = div64_s64(cost * 100, ideal->weight + node->weight);
	ideal->vtime += share;
	node->member.ideal += share;
}

/* @node has a backlog from now on, or no longer. */
static void ideal_count_locked(struct fairwq_pool *pool, struct fairwq_node *node,
			       bool waits)
{
	struct fairwq_ideal *ideal = &pool->ideal[fairwq_node_rank(&pool->tree, node)];

	lockdep_assert_held(&pool->lock);

	if (node->waits == waits)
		return;
	ideal_share_locked(pool, ideal);
	node->waits = waits;
	node->member.ideal += waits ? -ideal->vtime : ideal->vtime;
	ideal->weight += waits ? node->weight : -node->weight;
	ideal->least = min(ideal->least, ideal->weight);
	ideal->nr += waits ? 1 : -1;
	if (!ideal->nr)
		ideal->emptied = pool->turn_number;
	else if (waits && ideal->nr == 1 && ideal->emptied != (u32)pool->turn_number)
		ideal->busy = false;
}

static void ideal_start_locked(struct fairwq_pool *pool)
{
	s64 most = pool->max_active * (s64)WINDOW_TURNS * TURN;
	struct fairwq_ideal *ideal;
	unsigned int rank;

	lockdep_assert_held(&pool->lock);

	for (rank = 0; rank < FAIRWQ_NR_RANKS; rank++) {
		ideal = &pool->ideal[rank];
		ideal_share_locked(pool, ideal);
		ideal->waited = clamp_t(s64, window_unit(pool, pool->tree.waited[rank]),
					0, most);
		ideal->got = 0;
		ideal->longest = 0;
		ideal->least = ideal->weight;
		ideal->began = ideal->nr;
		ideal->busy = ideal->nr;
		ideal->streak = false;
	}
}

/* ---- the window --------------------------------------------------------- */

/* What @node got in this window, by weight. */
static s64 window_service(const struct fairwq_pool *pool,
			  const struct fairwq_node *node)
{
	s64 cost = window_unit(pool, node->service - node->member.base);

	return div_s64(cost * 100, node->weight);
}

/* How far that may be from what it should have got, rounded up. */
static u64 window_slack(const struct fairwq_pool *pool,
			const struct fairwq_node *node)
{
	const struct fairwq_member *member = &node->member;
	u64 turns = (u64)pool->max_active + 1, us;

	if (!by_time(pool)) {
		turns *= 1 + max(member->longest_streak[0], member->longest_streak[1]);
		return turns * DIV_ROUND_UP(100 * TURN, node->weight) / 2 + 1;
	}
	us = max3(pool->slice_us, member->longest_us[0], member->longest_us[1]);
	return turns * DIV_ROUND_UP_ULL(us * NSEC_PER_USEC * 100, node->weight) + 1;
}

/*
 * Two may differ by the slack of the one and of the other. So that not every
 * pair has to be looked at: each has a lower and an upper limit for the
 * others, and no lower one may be above an upper one.
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

/* In 1/100 of what an operator sees: turns, or us. */
static u64 hundredths(const struct fairwq_pool *pool, u64 amount)
{
	return by_time(pool) ? div_u64(amount, 10) : div_u64(amount * 100, TURN);
}

static void window_judge_locked(struct fairwq_pool *pool,
				const struct fairwq_sums *sums)
{
	struct fairwq_window *window = &pool->window;
	u64 lag = sums->most - sums->least, bound = 2 * sums->slack;

	lockdep_assert_held(&pool->lock);

	if (sums->nr < 2)
		return;
	window->nr = sums->nr;
	window->by_time = by_time(pool);
	window->lag = hundredths(pool, lag);
	window->bound = hundredths(pool, bound);
	window->jain = jain(sums);
	window->worst_lag = max(window->worst_lag, div64_u64(lag * 100, bound));
	pool->counter[FAIRWQ_WINDOWS]++;
	if (sums->low > sums->high)
		pool->counter[FAIRWQ_VIOLATIONS]++;
}

/*
 * Less than an eighth of its share, beyond what is in flight? Clients that are
 * served at once and are gone have no part in what the ideal server shares out afterwards,
 * so less than the share itself may be right. And each other one that was there may be
 * served before it once.
 */
static bool is_starved_locked(struct fairwq_pool *pool, const struct fairwq_node *node,
			      unsigned int rank)
{
	const struct fairwq_ideal *ideal = &pool->ideal[rank];
	s64 should = node->member.ideal + ideal->vtime;
	u64 got = max(window_service(pool, node), 0LL);
	u64 others = (pool->max_active + 1 + ideal->began) * ideal->longest;

	lockdep_assert_held(&pool->lock);

	/* What is shared out goes to no less than these. */
	others = div_u64(others * 100, max_t(u32, ideal->least, node->weight));
	return (s64)(8 * (got + window_slack(pool, node)) + others) < should;
}

/*
 * A lower priority, while a higher one had a backlog all the time: no more than its turn in
 * so many, one under way, and what it has waited for before.
 */
static void window_judge_ranks_locked(struct fairwq_pool *pool)
{
	unsigned int patience = pool->tree.patience;
	struct fairwq_ideal *ideal;
	bool higher = false;
	s64 all = 0, its;

	lockdep_assert_held(&pool->lock);

	if (by_time(pool) || pool->tree.by_arrival)
		return;		/* a guess that was wrong is no violation */
	for (ideal = pool->ideal; ideal < pool->ideal + FAIRWQ_NR_RANKS; ideal++)
		all += ideal->got;
	for (ideal = pool->ideal; ideal < pool->ideal + FAIRWQ_NR_RANKS; ideal++) {
		its = TURN;
		if (patience)
			its += TURN + div_u64(all + ideal->waited, patience + 1);
		if (higher && !ideal->streak && ideal->got > its) {
			pool->counter[FAIRWQ_LEAKED]++;
			pool->counter[FAIRWQ_VIOLATIONS]++;
		}
		if (!ideal->nr)
			ideal->busy = false;
		higher |= ideal->busy;
	}
}

/* The nodes of one rank: compare, and forget them. */
static void window_close_locked(struct fairwq_pool *pool, unsigned int rank)
{
	struct list_head *members = &pool->window_members[rank];
	struct fairwq_node *node, *next;
	struct fairwq_sums sums = { };
	bool starved = false;

	lockdep_assert_held(&pool->lock);

	ideal_share_locked(pool, &pool->ideal[rank]);
	list_for_each_entry_safe(node, next, members, member.link) {
		/* Out of the tree, for an unknown time; or there only for a streak. */
		if (!fairwq_node_eligible(node) || !node->waits) {
			list_del_init(&node->member.link);
			continue;
		}
		sum_up(&sums, pool, node);
		if (is_starved_locked(pool, node, rank))
			starved = true;
	}
	if (starved) {
		pool->counter[FAIRWQ_STARVED]++;
		pool->counter[FAIRWQ_VIOLATIONS]++;
	}
	list_for_each_entry_safe(node, next, members, member.link) {
		square_up(&sums, pool, node);
		list_del_init(&node->member.link);
	}
	window_judge_locked(pool, &sums);
}

/*
 * The longest turns of a node are those of this window, and of the last one in
 * which it had any: it may still be paying for those.
 */
static void window_note_locked(struct fairwq_pool *pool, struct fairwq_node *node,
			       unsigned int rank)
{
	struct fairwq_member *member = &node->member;

	lockdep_assert_held(&pool->lock);

	if (node->service != member->base) {
		member->longest_us[1] = member->longest_us[0];
		member->longest_us[0] = 0;
		member->longest_streak[1] = member->longest_streak[0];
		member->longest_streak[0] = 0;
	}
	member->base = node->service;
	member->ideal = -pool->ideal[rank].vtime;	/* nothing yet */
	list_add_tail(&member->link, &pool->window_members[rank]);
}

/* Note some of the eligible nodes of one rank, the next in line first. */
static void window_open_locked(struct fairwq_pool *pool, unsigned int rank)
{
	struct fairwq_node *node = fairwq_node_first(&pool->tree.rank[rank]);
	unsigned int nr;

	lockdep_assert_held(&pool->lock);

	for (nr = 0; node && nr < WINDOW_NODES; nr++, node = fairwq_node_next(node))
		if (node->waits)
			window_note_locked(pool, node, rank);
}

/* Whatever was under way is not judged: what it was judged by has changed. */
void fairwq_window_start_locked(struct fairwq_pool *pool)
{
	struct fairwq_node *node, *next;
	unsigned int i;

	lockdep_assert_held(&pool->lock);

	ideal_start_locked(pool);
	for (i = 0; i < FAIRWQ_NR_RANKS; i++) {
		list_for_each_entry_safe(node, next, &pool->window_members[i], member.link)
			list_del_init(&node->member.link);
		/* Under arrival order no promise is made. */
		if (!pool->tree.by_arrival)
			window_open_locked(pool, i);
	}
	pool->window.turns_left = max_t(u64, WINDOW_TURNS,
					WINDOW_TURNS_PER_BATCH * (u64)pool->nr_eligible);
}

/* A turn of @batch was charged so much, or took so long. */
void fairwq_window_cost_locked(struct fairwq_batch *batch, u64 ns)
{
	struct fairwq_member *member = &window_node(batch)->member;
	u32 us = DIV_ROUND_UP_ULL(ns, NSEC_PER_USEC);

	lockdep_assert_held(&batch->pool->lock);

	member->longest_us[0] = max(member->longest_us[0], us);
}

/* A turn of @batch: how many others had one since it had one, or joined? */
static void window_waited_locked(struct fairwq_batch *batch, struct fairwq_node *node,
				 unsigned int rank)
{
	struct fairwq_pool *pool = batch->pool;
	u32 waited = (u32)pool->turn_number - node->since;

	lockdep_assert_held(&pool->lock);

	/* Its own is the last. */
	if (node->waits && waited > pool->window.longest_wait + 1) {
		pool->window.longest_wait = waited - 1;
		pool->window.clients = pool->ideal[rank].nr;
	}
	node->since = pool->turn_number;
	batch->node.since = pool->turn_number;
}

/* A batch took so many turns. */
void fairwq_window_turns_locked(struct fairwq_batch *batch, unsigned int nr)
{
	struct fairwq_node *node = window_node(batch);
	unsigned int i, rank = window_rank(batch);
	struct fairwq_pool *pool = batch->pool;

	lockdep_assert_held(&pool->lock);

	window_waited_locked(batch, node, rank);
	if (!by_time(pool)) {
		ideal_serve_locked(pool, node, rank, (u64)nr * TURN);
		pool->ideal[rank].got += (u64)nr * TURN;
	}
	if (pool->window.turns_left > nr) {
		pool->window.turns_left -= nr;
		return;
	}
	for (i = 0; i < FAIRWQ_NR_RANKS; i++)
		window_close_locked(pool, i);
	window_judge_ranks_locked(pool);
	fairwq_window_start_locked(pool);
}

/* A turn of @batch is over, and took so long; under fair time. */
void fairwq_window_took_locked(struct fairwq_batch *batch, u64 ns)
{
	ideal_serve_locked(batch->pool, window_node(batch),
			   window_rank(batch), ns);
}

/* A turn of @batch had so many items, and took so long. */
void fairwq_window_streak_locked(struct fairwq_batch *batch, unsigned int turns, u64 ns)
{
	struct fairwq_member *member = &window_node(batch)->member;

	lockdep_assert_held(&batch->pool->lock);

	member->longest_streak[0] = clamp_t(u32, turns, member->longest_streak[0], U16_MAX);
	batch->pool->ideal[window_rank(batch)].streak = true;
	if (by_time(batch->pool))
		fairwq_window_cost_locked(batch, ns);
}

/* The share of @node has changed: it sits the window out. */
static void window_drop_locked(struct fairwq_pool *pool, struct fairwq_node *node)
{
	lockdep_assert_held(&pool->lock);

	list_del_init(&node->member.link);
}

/* Its share is another one from now on: it sits the window out. */
void fairwq_window_weight_locked(struct fairwq_pool *pool, struct fairwq_node *node, u32 weight)
{
	struct fairwq_ideal *ideal = &pool->ideal[fairwq_node_rank(&pool->tree, node)];

	lockdep_assert_held(&pool->lock);

	window_drop_locked(pool, node);
	if (!node->waits)
		return;
	ideal_share_locked(pool, ideal);
	ideal->weight += weight - node->weight;
}

/* A batch has come into the tree, and its owner with it, if it is the first. */
void fairwq_window_joined_locked(struct fairwq_batch *batch)
{
	struct fairwq_node *node = window_node(batch);
	struct fairwq_pool *pool = batch->pool;

	lockdep_assert_held(&pool->lock);

	if (pool->just_left == node)
		pool->just_left = NULL;
	if (!node->waits)
		node->since = pool->turn_number;
	ideal_count_locked(pool, node, true);
}

/*
 * A batch has left the tree, and its owner with it, if it was the last. If it is back before
 * the next turn is decided, it has missed nothing: it had a backlog all the time.
 */
void fairwq_window_left_locked(struct fairwq_batch *batch)
{
	struct fairwq_pool *pool = batch->pool;
	struct fairwq_node *node = window_node(batch);

	lockdep_assert_held(&pool->lock);

	if (fairwq_node_eligible(node))
		return;
	if (pool->just_left)
		fairwq_window_forget_locked(pool, pool->just_left);
	pool->just_left = node;
}

/* A turn is decided: what has left the tree before may miss it. */
void fairwq_window_turn_begins_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	if (unlikely(pool->just_left))
		fairwq_window_forget_locked(pool, pool->just_left);
}

/* The place of @node is to be another one's, or it will not come back. */
void fairwq_window_forget_locked(struct fairwq_pool *pool, struct fairwq_node *node)
{
	lockdep_assert_held(&pool->lock);

	if (pool->just_left == node)
		pool->just_left = NULL;
	window_drop_locked(pool, node);
	ideal_count_locked(pool, node, false);
}

/* A batch will not come back. It may have left the tree for its last turn: see above. */
void fairwq_window_gone_locked(struct fairwq_batch *batch)
{
	struct fairwq_node *node = window_node(batch);

	lockdep_assert_held(&batch->pool->lock);

	if (!fairwq_node_eligible(node))
		fairwq_window_forget_locked(batch->pool, node);
}

void fairwq_window_reset_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	pool->window = (struct fairwq_window){ };
	fairwq_window_start_locked(pool);
}

void fairwq_window_init(struct fairwq_pool *pool)
{
	unsigned int i;

	for (i = 0; i < FAIRWQ_NR_RANKS; i++)
		INIT_LIST_HEAD(&pool->window_members[i]);
	pool->window.turns_left = 1;
}
