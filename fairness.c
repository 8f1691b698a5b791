// SPDX-License-Identifier: GPL-2.0
/*
 * The module checks its own promise: over a window in which two batches of
 * one priority stay eligible, their turns divided by weight differ by at most
 * the bound.
 *
 * The check knows nothing of virtual time: it counts turns. At the start of a
 * window it notes some of the eligible batches, at most WINDOW_BATCHES; at its
 * end it compares, each with each, those that were eligible all the while. A
 * batch that was held back, ran dry or got another weight drops out.
 */
#include <linux/math64.h>

#include "internal.h"

#define WINDOW_BATCHES		64
/* Long enough that each batch has had several turns. */
#define WINDOW_TURNS		1024
#define WINDOW_TURNS_PER_BATCH	8

/* Turns are compared in 1/65536 turns of a batch of weight 100. */
#define UNIT			65536U

/* What the batches of one rank have in common. */
struct fairwq_sums {
	unsigned int nr;
	u64 least, most, total;	/* of what they got */
	u64 cost;		/* of a turn of the lightest */
	s64 low, high;		/* what each may have at least and at most: */
				/* the largest lower, the smallest upper limit */
	u64 square;		/* of the share of each, 1000 being the mean */
};

/* What @batch got in this window, by weight. */
static u64 fairwq_window_service(const struct fairwq_batch *batch)
{
	return div_u64((batch->stats->turns - batch->window_base) * 100 * UNIT,
		       batch->node.weight);
}

/* What one turn adds to that, rounded up. */
static u64 fairwq_window_cost(const struct fairwq_batch *batch)
{
	return DIV_ROUND_UP(100 * UNIT, batch->node.weight);
}

/*
 * Two batches may differ by half of max_active + 1 turns of each. So that not
 * every pair has to be looked at: each has a lower and an upper limit for the
 * others, and no lower one may be above an upper one.
 */
static void fairwq_sum_up(struct fairwq_sums *sums, const struct fairwq_batch *batch)
{
	u64 got = fairwq_window_service(batch), cost = fairwq_window_cost(batch);
	s64 slack = ((u64)batch->pool->max_active + 1) * cost / 2 + 1;
	bool first = !sums->nr++;

	sums->least = first ? got : min(sums->least, got);
	sums->most = max(sums->most, got);
	sums->cost = max(sums->cost, cost);
	sums->low = first ? got - slack : max_t(s64, sums->low, got - slack);
	sums->high = first ? got + slack : min_t(s64, sums->high, got + slack);
	sums->total += got;
}

static void fairwq_square_up(struct fairwq_sums *sums, const struct fairwq_batch *batch)
{
	u64 mean = div_u64(sums->total, sums->nr), share;

	if (!mean)
		return;
	share = div64_u64(fairwq_window_service(batch) * 1000, mean);
	sums->square += share * share;
}

/* Jain's index, (sum x)^2 / (n * sum x^2), in 1/10000; x is relative to its mean. */
static unsigned int fairwq_jain(const struct fairwq_sums *sums)
{
	if (!sums->square)
		return 10000;
	return min_t(u64, 10000, div64_u64(10000000000ULL * sums->nr, sums->square));
}

static void fairwq_window_judge_locked(struct fairwq_pool *pool,
				       const struct fairwq_sums *sums)
{
	struct fairwq_window *window = &pool->window;
	u64 lag = sums->most - sums->least;
	u64 bound = ((u64)pool->max_active + 1) * sums->cost;

	lockdep_assert_held(&pool->lock);

	if (sums->nr < 2)
		return;
	window->nr = sums->nr;
	window->lag = div_u64(lag * 100, UNIT);
	window->bound = div_u64(bound * 100, UNIT);
	window->jain = fairwq_jain(sums);
	window->worst_lag = max(window->worst_lag, div64_u64(lag * 100, bound));
	pool->counter[FAIRWQ_WINDOWS]++;
	if (sums->low > sums->high)
		pool->counter[FAIRWQ_VIOLATIONS]++;
}

/* The batches of one rank: compare, and forget them. */
static void fairwq_window_close_locked(struct fairwq_pool *pool, unsigned int rank)
{
	struct list_head *members = &pool->window_members[rank];
	struct fairwq_batch *batch, *next;
	struct fairwq_sums sums = { };

	lockdep_assert_held(&pool->lock);

	list_for_each_entry(batch, members, window_node)
		fairwq_sum_up(&sums, batch);
	list_for_each_entry_safe(batch, next, members, window_node) {
		fairwq_square_up(&sums, batch);
		list_del_init(&batch->window_node);
	}
	fairwq_window_judge_locked(pool, &sums);
}

/* Note some of the eligible batches of one rank, the next in line first. */
static void fairwq_window_open_locked(struct fairwq_pool *pool, unsigned int rank)
{
	struct rb_node *rb = rb_first_cached(&pool->tree.rank[rank].children);
	struct fairwq_batch *batch;
	unsigned int nr;

	lockdep_assert_held(&pool->lock);

	for (nr = 0; rb && nr < WINDOW_BATCHES; nr++, rb = rb_next(rb)) {
		batch = container_of(rb, struct fairwq_batch, node.rb);
		batch->window_base = batch->stats->turns;
		list_add_tail(&batch->window_node, &pool->window_members[rank]);
	}
}

/* Whatever was under way is not judged: what it was judged by has changed. */
void fairwq_window_start_locked(struct fairwq_pool *pool)
{
	struct fairwq_batch *batch, *next;
	unsigned int i;

	lockdep_assert_held(&pool->lock);

	for (i = 0; i < FAIRWQ_NR_RANKS; i++) {
		list_for_each_entry_safe(batch, next, &pool->window_members[i], window_node)
			list_del_init(&batch->window_node);
		/* Under arrival order no promise is made. */
		if (pool->policy == FAIRWQ_ROUND_ROBIN)
			fairwq_window_open_locked(pool, i);
	}
	pool->window.turns_left = max_t(u64, WINDOW_TURNS,
					WINDOW_TURNS_PER_BATCH * (u64)pool->nr_eligible);
}

/* A batch took a turn. */
void fairwq_window_turn_locked(struct fairwq_batch *batch)
{
	struct fairwq_pool *pool = batch->pool;
	unsigned int i;

	lockdep_assert_held(&pool->lock);

	if (--pool->window.turns_left)
		return;
	for (i = 0; i < FAIRWQ_NR_RANKS; i++)
		fairwq_window_close_locked(pool, i);
	fairwq_window_start_locked(pool);
}

/* A batch was not eligible all the while, or its share has changed. */
void fairwq_window_drop_locked(struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	list_del_init(&batch->window_node);
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
