/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The judge of promise 6, for the suites and the torture. It is no part of the
 * module.
 *
 * A window begins with a look, which notes all siblings of the tree. Each later
 * look compares those that have stayed eligible since then: the service that
 * was charged to each, by weight. No two of them may differ by more than the
 * promise says. A window ends after JUDGE_WINDOW looks, or when there are no
 * two left to compare. The judge does not know virtual times.
 *
 * Two may differ by the slack of the one and of the other. So each sets a lower
 * and an upper limit for its siblings. If no lower limit is above an upper one,
 * all pairs are right.
 *
 * Locking: @lock, then that of the pool. judge_look() may be called in any
 * context but NMI.
 *
 * Limits: the first JUDGE_NODES eligible nodes of a pool are judged. A client
 * that never stays eligible between two looks is not; see tests/sim and
 * tests/pool_share_kunit.c for such.
 */
#ifndef FAIRWQ_TEST_JUDGE_H
#define FAIRWQ_TEST_JUDGE_H

#include <linux/math64.h>
#include <linux/spinlock.h>

#include "core/policy.h"
#include "core/types.h"

#define JUDGE_NODES	64U
#define JUDGE_WINDOW	256U
/* What a service of 1 counts at a weight of 1. */
#define JUDGE_UNIT	51200U

/* A node, and what it has had when it was seen. */
struct judge_seen {
	const struct fairwq_node *node;
	u64 seq;			/* of its batch: another one may come to its address */
	u32 stay;
	u64 service;
};

struct judge {
	raw_spinlock_t lock;		/* of all fields; and the pool stays while it is held */
	struct fairwq_pool *pool;	/* NULL: nothing is judged */
	unsigned int more;		/* so many times the bound is right */
	u16 policy_gen;
	unsigned int in_flight;		/* the most turns in this window */
	unsigned int looks;		/* in this window */
	u64 longest;			/* the most that a turn cost, in the unit of the policy */
	unsigned int nr;		/* of @now */
	unsigned int nr_then;		/* of @then */
	struct judge_seen now[JUDGE_NODES];	/* at this look */
	struct judge_seen then[JUDGE_NODES];	/* when the window began */
	u64 judged;			/* nodes that had siblings, at all looks */
	u64 missed;			/* looks at which two were too far apart */
	u64 worst;			/* their distance, % of the bound */
};

static inline void judge_init(struct judge *judge, unsigned int more)
{
	*judge = (struct judge){ .more = more };
	raw_spin_lock_init(&judge->lock);
}

/* Begin to judge @pool; NULL: judge none from now on. */
static inline void judge_set_pool(struct judge *judge, struct fairwq_pool *pool)
{
	guard(raw_spinlock_irqsave)(&judge->lock);
	judge->pool = pool;
	judge->nr_then = 0;
	judge->longest = 0;
}

/* Return what was noted of the node when the window began, unless it has had a break since. */
static inline const struct judge_seen *judge_find(const struct judge *judge,
						  const struct judge_seen *now)
{
	const struct judge_seen *then = judge->then;

	for (; then < &judge->then[judge->nr_then]; then++)
		if (then->node == now->node && then->seq == now->seq &&
		    then->stay == now->stay && then->service <= now->service)
			return then;
	return NULL;
}

/* Note what a turn of @batch, or of others below its owners, may cost. */
static inline void judge_note_longest(struct judge *judge, const struct fairwq_batch *batch)
{
	struct fairwq_batch_stats *stats = batch->stats;
	const struct fairwq_batch *owner;
	u64 most = 1;

	for (owner = batch; owner; owner = owner->parent)
		most = max(most, owner->stats->max_cost);

	if (judge->pool->policy == FAIRWQ_FAIR_TIME) {
		most = max3(most, (u64)stats->recent.longest[0], (u64)stats->recent.longest[1]);
		most = max3(most, (u64)ewma_fairwq_run_read(&stats->run_avg),
			    fairwq_slice_ns(judge->pool));
	}
	judge->longest = max(judge->longest, most);
}

/* Return how far @node may be from what it should have got, by weight, rounded up. */
static inline s64 judge_slack(const struct judge *judge, const struct fairwq_node *node)
{
	u64 slack = (judge->in_flight + 1) * judge->longest * JUDGE_UNIT;

	if (judge->pool->policy != FAIRWQ_ROUND_ROBIN)
		slack *= 2;	/* as there may be more than two clients */
	else if (judge->longest == 1)
		slack /= 2;	/* each turn is charged when it begins, and never corrected */
	return DIV_ROUND_UP_ULL(slack * judge->more, node->weight) + 1;
}

/* Compare the siblings from judge->now[from] to [to]. Return: how many have stayed. */
static inline unsigned int judge_siblings(struct judge *judge, unsigned int from,
					  unsigned int to)
{
	s64 got, slack, low = S64_MIN, high = S64_MAX, least = S64_MAX, most = S64_MIN, widest = 0;
	const struct judge_seen *now, *then;
	unsigned int nr = 0;

	for (now = &judge->now[from]; now < &judge->now[to]; now++) {
		then = judge_find(judge, now);
		if (!then)
			continue;
		got = div_u64((now->service - then->service) * JUDGE_UNIT, now->node->weight);
		slack = judge_slack(judge, now->node);
		low = max(low, got - slack);
		high = min(high, got + slack);
		least = min(least, got);
		most = max(most, got);
		widest = max(widest, slack);
		nr++;
	}
	if (nr < 2)
		return 0;
	judge->judged += nr;
	judge->worst = max(judge->worst, div64_u64((u64)(most - least) * 100, 2 * widest));
	judge->missed += low > high;
	return nr;
}

/* Check whether @node has an eligible child. */
static inline bool judge_has_child(const struct fairwq_node *node)
{
	return !list_empty(&node->row) || !RB_EMPTY_ROOT(&node->sorted.rb_root);
}

/* Return the number of the batch, or of the owner, that @node is. */
static inline u64 judge_seq(const struct fairwq_node *node)
{
	const struct fairwq_node *leaf = node;
	const struct fairwq_batch *batch;

	while (judge_has_child(leaf))
		leaf = list_empty(&leaf->row) ?
		       rb_entry(rb_first_cached(&leaf->sorted), struct fairwq_node, rb) :
		       list_first_entry(&leaf->row, struct fairwq_node, next);
	batch = container_of(leaf, struct fairwq_batch, node);
	while (node != leaf && batch->group != node)
		batch = batch->parent;
	return batch->seq;
}

/* Note @node, which is eligible. Return: false if there is no room. */
static inline bool judge_see(struct judge *judge, const struct fairwq_node *node)
{
	if (judge->nr == JUDGE_NODES)
		return false;
	judge->now[judge->nr++] = (struct judge_seen){
		.node = node, .seq = judge_seq(node), .stay = node->stay,
		.service = node->service,
	};
	return true;
}

/* Note the eligible children of @parent. */
static inline void judge_see_children(struct judge *judge, const struct fairwq_node *parent)
{
	const struct fairwq_node *node;
	struct rb_node *rb;

	list_for_each_entry(node, &parent->row, next)
		if (!judge_see(judge, node))
			return;
	for (rb = rb_first_cached(&parent->sorted); rb; rb = rb_next(rb))
		if (!judge_see(judge, rb_entry(rb, struct fairwq_node, rb)))
			return;
}

/* Return how many turns may be under way. */
static inline unsigned int judge_in_flight(const struct fairwq_pool *pool)
{
	const struct fairwq_crew *crew = &pool->crew;

	/* Items that have slept go on beside others. */
	return max(crew->max_active, crew->nr_active) + crew->nr_asleep + crew->nr_async;
}

/* Begin a window with this look. */
static inline void judge_begin(struct judge *judge)
{
	memcpy(judge->then, judge->now, judge->nr * sizeof(*judge->now));
	judge->nr_then = judge->nr;
	judge->looks = 0;
	judge->in_flight = judge_in_flight(judge->pool);
}

/* Look at all siblings in the tree of the pool, whose lock is held. */
static inline void judge_look_locked(struct judge *judge)
{
	const struct fairwq_pool *pool = judge->pool;
	const struct fairwq_batch *batch;
	unsigned int i, from, to, nr = 0;

	if (judge->policy_gen != pool->policy_gen) {
		judge->policy_gen = pool->policy_gen;
		judge->longest = 0;
		judge->nr_then = 0;
	}
	judge->in_flight = max(judge->in_flight, judge_in_flight(pool));
	judge->nr = 0;
	for (i = 0; i < FAIRWQ_NR_RANKS; i++)
		judge_see_children(judge, &pool->tree.rank[i]);
	for (i = 0; i < judge->nr; i++)
		if (judge_has_child(judge->now[i].node))
			judge_see_children(judge, judge->now[i].node);
	list_for_each_entry(batch, &pool->registry.batches, link)
		judge_note_longest(judge, batch);
	for (from = 0; from < judge->nr; from = to) {
		for (to = from + 1; to < judge->nr; to++)
			if (judge->now[to].node->parent != judge->now[from].node->parent)
				break;
		nr += judge_siblings(judge, from, to);
	}
	if (!nr || ++judge->looks == JUDGE_WINDOW)
		judge_begin(judge);
}

/* Look at the pool, if there is one. */
static inline void judge_look(struct judge *judge)
{
	guard(raw_spinlock_irqsave)(&judge->lock);
	if (!judge->pool)
		return;
	guard(raw_spinlock)(&judge->pool->lock);
	judge_look_locked(judge);
}

#endif /* FAIRWQ_TEST_JUDGE_H */
