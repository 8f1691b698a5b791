// SPDX-License-Identifier: GPL-2.0
/*
 * The module checks its own promise: over a window in which two batches of
 * one priority stay eligible, their turns divided by weight differ by at most
 * the bound.
 *
 * The check knows nothing of virtual time: it counts turns. At the end of a
 * window it compares the batches that were eligible all the while, all with
 * all by comparing the largest with the smallest; then it begins the next. A
 * batch that was held back, ran dry or got another weight sits the window out.
 */
#include <linux/math64.h>

#include "internal.h"

/* Turns in a window: enough that its cost, the look at each batch, is spread. */
#define WINDOW_TURNS		1024
#define WINDOW_TURNS_PER_BATCH	8

/* Turns are compared in 1/100 turns of a batch of weight 100. */
#define UNIT			100U

/* What the batches that are compared have in common. */
struct fairwq_sums {
	unsigned int seen;	/* eligible now */
	unsigned int nr;	/* of them, all the while */
	u64 least, most, total;
	u32 min_weight;
	u64 square;		/* of the share of each, 1000 being the mean */
};

static struct fairwq_batch *to_batch(struct rb_node *rb)
{
	return container_of(rb, struct fairwq_batch, node.rb);
}

/* What @batch got in this window, by weight. */
static u64 fairwq_window_service(const struct fairwq_batch *batch)
{
	return div_u64((batch->stats->turns - batch->window_base) * 100 * UNIT,
		       batch->node.weight);
}

static void fairwq_sum_up(struct fairwq_sums *sums, struct fairwq_node *rank, u64 seq)
{
	struct fairwq_batch *batch;
	struct rb_node *rb;
	u64 got;

	for (rb = rb_first_cached(&rank->children); rb; rb = rb_next(rb)) {
		batch = to_batch(rb);
		sums->seen++;
		if (batch->window_seq != seq)
			continue;
		got = fairwq_window_service(batch);
		sums->least = sums->nr ? min(sums->least, got) : got;
		sums->most = max(sums->most, got);
		sums->min_weight = sums->nr ? min(sums->min_weight, batch->node.weight) :
					      batch->node.weight;
		sums->total += got;
		sums->nr++;
	}
}

/* Second pass: the squares, and everybody's start of the next window. */
static void fairwq_square_up(struct fairwq_sums *sums, struct fairwq_node *rank, u64 seq)
{
	u64 mean = sums->nr ? div_u64(sums->total, sums->nr) : 0;
	struct fairwq_batch *batch;
	struct rb_node *rb;
	u64 share;

	for (rb = rb_first_cached(&rank->children); rb; rb = rb_next(rb)) {
		batch = to_batch(rb);
		if (batch->window_seq == seq && mean) {
			share = div64_u64(fairwq_window_service(batch) * 1000, mean);
			sums->square += share * share;
		}
		batch->window_seq = seq + 1;
		batch->window_base = batch->stats->turns;
	}
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

	lockdep_assert_held(&pool->lock);

	if (sums->nr < 2)
		return;
	window->nr = sums->nr;
	window->lag = sums->most - sums->least;
	window->bound = div_u64((u64)(pool->max_active + 1) * 100 * UNIT,
				sums->min_weight);
	window->jain = fairwq_jain(sums);
	window->worst_lag = max(window->worst_lag,
				div64_u64(window->lag * 100, window->bound));
	pool->counter[FAIRWQ_WINDOWS]++;
	if (window->lag > window->bound)
		pool->counter[FAIRWQ_VIOLATIONS]++;
}

static void fairwq_window_end_locked(struct fairwq_pool *pool)
{
	struct fairwq_window *window = &pool->window;
	unsigned int i, seen = 0;

	lockdep_assert_held(&pool->lock);

	for (i = 0; i < FAIRWQ_NR_RANKS; i++) {
		struct fairwq_sums sums = { };

		fairwq_sum_up(&sums, &pool->tree.rank[i], window->seq);
		fairwq_square_up(&sums, &pool->tree.rank[i], window->seq);
		fairwq_window_judge_locked(pool, &sums);
		seen += sums.seen;
	}
	window->seq++;
	window->turns_left = max(WINDOW_TURNS, seen * WINDOW_TURNS_PER_BATCH);
}

/* Whatever was under way is not judged: what it was judged by has changed. */
void fairwq_window_start_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	/* Two on: no batch was marked for that one, and 0 is never a window. */
	pool->window.seq += 2;
	pool->window.turns_left = WINDOW_TURNS;
}

void fairwq_window_reset_locked(struct fairwq_pool *pool)
{
	u64 seq = pool->window.seq;

	lockdep_assert_held(&pool->lock);

	pool->window = (struct fairwq_window){ .seq = seq };
	fairwq_window_start_locked(pool);
}

/* A batch took a turn. */
void fairwq_window_turn_locked(struct fairwq_batch *batch)
{
	struct fairwq_pool *pool = batch->pool;

	lockdep_assert_held(&pool->lock);

	if (!--pool->window.turns_left)
		fairwq_window_end_locked(pool);
}

/* A batch became eligible, or its share changed: not comparable this time. */
void fairwq_window_join_locked(struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	batch->window_seq = 0;
}
