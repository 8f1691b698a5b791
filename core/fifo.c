// SPDX-License-Identifier: GPL-2.0
/*
 * FIFO: the queue of a batch, and whether the batch is in the fair tree.
 *
 *   push.c --> incoming --> sorting --> sorted --> fifo --> turn --> its end
 *              \______________ sort _______________/  ^ |
 *                                                     | +--> parked --+
 *                                                     +--- put back --+
 *
 * A sort puts pushed items, newest first, into queue order. They enter the FIFO
 * when the oldest was found. After each change fairwq_fifo_update_locked()
 * decides whether the batch is in the tree, and whether it is polled.
 *
 * A barrier waits in the FIFO. When it reaches the head, new turns get the
 * other color, and the flush waits for the turns of the old color.
 *
 * Locking: pool->lock. Only @incoming is shared with code that lacks it.
 * Invariants: see struct fairwq_batch in types.h.
 * Limits: before a turn, at most SORT_STEPS holds of the lock sort SORT_STEP
 * items each. A cancel or a flush sorts all items in one hold.
 *
 * Models: tests/models/queue.pml, fork.pml.
 */
#include <linux/completion.h>
#include <linux/export.h>

#include "compat.h"
#include "cost.h"
#include "fifo.h"
#include "kick.h"
#include "runner.h"
#include "stats.h"
#include "testing.h"
#include "tree.h"
#include "waiter.h"

/* Reaps batches and waits for grace periods. A pool's own workqueue may be destroyed. */
struct workqueue_struct *fairwq_reap_wq;
FAIRWQ_TEST_EXPORT(fairwq_reap_wq);

/* Least time that a turn with an item that slept counts in the average, ns. */
#define SLEPT_NS		16000ULL
/* Items that are sorted under one hold of the lock: about 2 us. */
#define SORT_STEP		64U
/* Most such steps before one turn. */
#define SORT_STEPS		16U
/* Items of a batch that are sorted before the next turn; the rest is a long backlog. */
#define SORT_AT_ONCE		(SORT_STEP * SORT_STEPS)

/* Put a pushed work into @sorted. */
static void link_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	atomic_long_set(&work->data,
			(long)batch | FAIRWQ_WORK_PENDING | FAIRWQ_WORK_LINKED);
	work->place = FAIRWQ_PLACE_FIFO | (work->place & FAIRWQ_PLACE_OWN);
	/* The newest comes first, and ends up last. */
	list_add(&work->node, &batch->sorted);
	batch->nr_fifo++;
}

/*
 * Sort up to @max pushed works, the newest first. With the oldest, move all of
 * them to the end of the FIFO. @max limits the hold of the lock, because pushes
 * take no lock and the backlog may have any length.
 */
static void sort_locked(struct fairwq_batch *batch, unsigned int max)
{
	struct llist_node *node = batch->sorting ?: llist_del_all(&batch->incoming);
	struct fairwq_work *work;
	struct llist_node *next;

	lockdep_assert_held(&batch->pool->lock);

	for (; node && max; node = next, max--) {
		next = node->next;	/* link_locked() overwrites it: a union */
		work = llist_entry(node, struct fairwq_work, llnode);
		link_locked(batch, work);
	}
	batch->sorting = node;
	if (!node)
		list_splice_tail_init(&batch->sorted, &batch->fifo);
	else if (list_empty(&batch->sort_link))		/* short ones before long ones */
		list_add(&batch->sort_link, batch->nr_fifo < SORT_AT_ONCE ?
			 &batch->pool->sorting : batch->pool->sorting.prev);
}

/* Sort all pushed works into the FIFO. */
void fairwq_fifo_splice_locked(struct fairwq_batch *batch)
{
	if (batch->sorting)
		sort_locked(batch, UINT_MAX);
	sort_locked(batch, UINT_MAX);
}

/* Sort one step of pushed works. Return: true if some are left for a runner to sort. */
bool fairwq_fifo_sort_step_locked(struct fairwq_batch *batch)
{
	sort_locked(batch, SORT_STEP);
	return batch->sorting;
}

/*
 * Check whether the rest of the backlog of @batch may wait for turns. It is longer
 * than most, and others of its priority or a higher one have turns to take.
 */
static bool sort_may_wait_locked(const struct fairwq_batch *batch)
{
	const struct fairwq_tree *tree = &batch->pool->tree;

	lockdep_assert_held(&batch->pool->lock);

	return batch->nr_fifo >= SORT_AT_ONCE &&
	       tree->eligible & (BIT(fairwq_prio_rank(batch->prio) + 1) - 1);
}

/*
 * Sort backlogs, before a runner takes a turn; drop the lock between two steps.
 * A long one is sorted for half of the time that others had for turns. If those
 * are @quick, it has one step instead, without a clock. So batches that are sorted
 * get their turns, and long backlogs get sorted.
 */
void fairwq_fifo_sort_pool_locked(struct fairwq_pool *pool, bool quick)
{
	u64 begin = quick ? 0 : fairwq_clock(), end = begin;
	s64 left = (s64)(begin - pool->sorted_at) / 2 - pool->sort_debt;
	struct fairwq_batch *batch;
	unsigned int i;

	lockdep_assert_held(&pool->lock);

	for (i = 0; i < SORT_STEPS && !list_empty(&pool->sorting); i++) {
		batch = list_first_entry(&pool->sorting, struct fairwq_batch, sort_link);
		if ((quick ? i : left <= (s64)(end - begin)) && sort_may_wait_locked(batch))
			break;
		list_del_init(&batch->sort_link);
		fairwq_fifo_sort_step_locked(batch);
		fairwq_fifo_update_locked(batch);
		fairwq_fifo_reap_locked(batch);	/* all was cancelled */
		raw_spin_unlock_irq(&pool->lock);
		fairwq_test_point(FAIRWQ_POINT_SORT_STEP, batch);
		raw_spin_lock_irq(&pool->lock);
		if (!quick)
			end = fairwq_clock();
	}
	if (!quick) {
		pool->sort_debt = max((s64)(end - begin) - left, 0LL);
		pool->sorted_at = end;
	}
}

/*
 * Clear @polled of a batch that looks empty, so that the next push takes the
 * lock. Then check @incoming again, because a concurrent push may have seen
 * @polled set and returned.
 *
 * Return: true if the FIFO has an item after all.
 */
static bool batch_idle_locked(struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	fairwq_test_point(FAIRWQ_POINT_BATCH_EMPTY, batch);
	WRITE_ONCE(batch->polled, false);
	/*
	 * Store @polled, then load @incoming. Pairs with the full barrier of
	 * llist_add() in fairwq_push_claimed(): store @incoming, then load @polled.
	 * At least one side sees the other. Model: tests/models/queue.pml.
	 */
	smp_mb();
	if (llist_empty(&batch->incoming))
		return false;
	WRITE_ONCE(batch->polled, true);
	return !fairwq_fifo_sort_step_locked(batch);
}

/* Check whether @batch may have one more item in flight now. */
bool fairwq_fifo_has_room_locked(const struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	return !batch->max_active ||
	       batch->in_flight[0] + batch->in_flight[1] < batch->max_active;
}

/*
 * Check whether a turn of @batch may begin with @work. Nothing holds a part of an item that
 * has begun (promise 15). An item that was put back is counted as in flight already, so it
 * needs no room.
 */
static inline bool batch_may_start_locked(const struct fairwq_batch *batch,
					  const struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	if (fairwq_is_of_item(work))
		return true;
	return !batch->paused && !batch->nr_canceling &&
	       (work->place & FAIRWQ_PLACE_TAKEN || fairwq_fifo_has_room_locked(batch));
}

/* Put @batch into the tree or take it out, unless it is so already. */
void fairwq_fifo_set_eligible_locked(struct fairwq_batch *batch, bool eligible)
{
	struct fairwq_pool *pool = batch->pool;

	lockdep_assert_held(&pool->lock);

	if (eligible == fairwq_node_eligible(&batch->node))
		return;
	if (eligible) {
		fairwq_tree_add(&pool->tree, &batch->node);
		pool->nr_eligible++;
	} else {
		fairwq_tree_del(&pool->tree, &batch->node);
		pool->nr_eligible--;
	}
}

/*
 * Put @batch into the tree if it is eligible, take it out if it is not. Callers
 * that may have changed that must call this before they drop the lock.
 */
void fairwq_fifo_update_locked(struct fairwq_batch *batch)
{
	const struct fairwq_work *head;
	bool backlog;

	lockdep_assert_held(&batch->pool->lock);

	if (list_empty(&batch->fifo) && !batch->sorting)
		fairwq_fifo_sort_step_locked(batch);
	backlog = !list_empty(&batch->fifo);
	if (!backlog && !batch->sorting)
		backlog = batch_idle_locked(batch);
	else if (!fairwq_node_eligible(&batch->node) && !batch->polled) /* see the invariant */
		WRITE_ONCE(batch->polled, true);

	head = backlog ? fairwq_head_locked(batch) : NULL;
	fairwq_fifo_set_eligible_locked(batch, head && batch_may_start_locked(batch, head));
	/* No turn takes new items. A cancel that is under way comes here again. */
	if (unlikely(batch->dropping) && (head ? !fairwq_is_of_item(head) : !!batch->sorting) &&
	    !batch->nr_canceling)
		fairwq_end_waiters_tell_locked(batch);
}

/* Complete the flush that waits. All turns of the old color have ended. */
static void flush_done_locked(struct fairwq_batch *batch)
{
	complete(batch->flush);		/* the barrier may be gone from here on */
	batch->flush = NULL;
}

/*
 * Fire the barriers at the head. Turns that begin from now on get the other
 * color, and the flush waits for those of the old one. The other color has no
 * turns, because there is one flush of a batch at a time.
 */
static void batch_fire_barriers_locked(struct fairwq_batch *batch)
{
	struct fairwq_barrier *barrier;
	struct fairwq_work *head;

	lockdep_assert_held(&batch->pool->lock);

	while (!list_empty(&batch->fifo)) {
		head = fairwq_head_locked(batch);
		if (!(head->place & FAIRWQ_PLACE_BARRIER))
			return;
		list_del(&head->node);
		barrier = container_of(head, struct fairwq_barrier, entry);
		barrier->fired = true;
		if (!barrier->done)
			continue;
		WARN_ON_ONCE(batch->flush);
		batch->color ^= 1;
		batch->flush = barrier->done;
		if (!batch->in_flight[!batch->color])
			flush_done_locked(batch);
		else
			fairwq_runner_yield_locked(batch);
	}
}

/* Put a barrier behind everything that was pushed up to now. */
void fairwq_fifo_add_barrier_locked(struct fairwq_batch *batch,
				    struct fairwq_barrier *barrier)
{
	lockdep_assert_held(&batch->pool->lock);

	barrier->entry.place = FAIRWQ_PLACE_BARRIER;
	fairwq_fifo_splice_locked(batch);
	list_add_tail(&barrier->entry.node, &batch->fifo);
	batch_fire_barriers_locked(batch);
	fairwq_fifo_update_locked(batch);
}

/* Take @work out of the FIFO; it stays pending. */
static void batch_unlink_locked(struct fairwq_batch *batch,
				struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	list_del(&work->node);
	batch->nr_fifo--;
	if (batch->max_queued && !fairwq_is_of_item(work))
		atomic_dec(&batch->nr_queued);
}

/*
 * Count @work as in flight, unless it was parked and is counted already.
 * Return: the color of its turn.
 */
static unsigned int batch_color_locked(struct fairwq_batch *batch,
				       const struct fairwq_work *work)
{
	if (work->place & FAIRWQ_PLACE_TAKEN)
		return !!(work->place & FAIRWQ_PLACE_COLOR);
	batch->in_flight[batch->color]++;
	return batch->color;
}

/* Begin @turn with @work of @batch: note all that is known before it starts. */
static void turn_fill_locked(struct fairwq_batch *batch, struct fairwq_turn *turn,
			     struct fairwq_work *work)
{
	struct fairwq_pool *pool = batch->pool;

	/* One store for each field: the compiler clears a whole struct by a slow loop. */
	turn->batch = batch;
	turn->func = work->func;
	turn->id = work;
	turn->constraint = work->constraint;
	turn->stamp = work->stamp;
	turn->number = ++pool->turn_number;
	turn->color = batch_color_locked(batch, work);
	turn->timed = false;
	turn->slept = false;
	turn->nr = 1;
	turn->held = 0;
	turn->took = 0;
	turn->later = 0;
	pool->counter[FAIRWQ_TURNS]++;
	if (unlikely(!list_empty(&pool->waiters)))
		fairwq_waiters_take_locked(pool, work, turn->number);
}

/* Fire the barriers that are first now, and place @batch in the tree by its new head. */
static void batch_new_head_locked(struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	batch_fire_barriers_locked(batch);
	fairwq_fifo_update_locked(batch);
}

/* Take the head of the FIFO as @turn, charge its cost, and move @batch on in the tree. */
void fairwq_fifo_take_locked(struct fairwq_batch *batch, struct fairwq_turn *turn)
{
	struct fairwq_work *work = fairwq_head_locked(batch);

	batch_unlink_locked(batch, work);
	/* The next turn's list_del() writes to the item after the next. */
	fairwq_prefetchw(batch->fifo.next->next);
	turn_fill_locked(batch, turn, work);
	fairwq_cost_charge_locked(turn);
	batch_new_head_locked(batch);
}

/*
 * Put the work of a task at the head of the FIFO: a part of the item of @turn. It counts as
 * in flight. Model: tests/models/fork.pml.
 */
void fairwq_fifo_add_part_locked(const struct fairwq_turn *turn, struct fairwq_work *work)
{
	struct fairwq_batch *batch = turn->batch;

	lockdep_assert_held(&batch->pool->lock);

	work->place = FAIRWQ_PLACE_FORK | FAIRWQ_PLACE_TAKEN |
		      (turn->color ? FAIRWQ_PLACE_COLOR : 0);
	work->stamp = 0;
	atomic_long_set(&work->data, (long)batch | FAIRWQ_WORK_PENDING | FAIRWQ_WORK_LINKED);
	batch->in_flight[turn->color]++;
	fairwq_fifo_put_back_locked(batch, work);
}

/* Take the head out of the FIFO to park it, as it still runs. It counts as in flight. */
void fairwq_fifo_park_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	batch_unlink_locked(batch, work);
	work->place = FAIRWQ_PLACE_PARKED | FAIRWQ_PLACE_TAKEN |
		      (batch_color_locked(batch, work) ? FAIRWQ_PLACE_COLOR : 0);
	batch->nr_parked++;
	batch_new_head_locked(batch);
}

/* Put an item that was parked back at the head of the FIFO. */
void fairwq_fifo_put_back_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	work->place = (work->place & ~FAIRWQ_PLACE_MASK) | FAIRWQ_PLACE_FIFO;
	list_add(&work->node, &batch->fifo);
	batch->nr_fifo++;
	if (batch->max_queued && !fairwq_is_of_item(work))
		atomic_inc(&batch->nr_queued);
	batch_new_head_locked(batch);
}

/* Check whether @batch has nothing queued and nothing in flight. */
bool fairwq_fifo_is_idle_locked(const struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	return list_empty(&batch->fifo) && list_empty(&batch->sort_link) &&
	       llist_empty(&batch->incoming) && !batch->in_flight[0] && !batch->in_flight[1];
}

/* Check whether a closed batch is idle, and no work will be pushed to it later. */
static bool drained_locked(const struct fairwq_batch *batch)
{
	return batch->closed && fairwq_fifo_is_idle_locked(batch) &&
	       !atomic_read(&batch->nr_pins);
}

/* Add what was measured of @turn to the statistics; most turns are not measured. */
static void turn_stats_locked(const struct fairwq_turn *turn)
{
	struct fairwq_batch *batch = turn->batch;
	struct fairwq_batch_stats *stats = batch->stats;
	u64 each = turn->took, known;

	if (turn->took) {
		if (turn->nr > 1)
			each = max(div_u64(each, turn->nr), 1ULL);
		if (stats->hists)
			fairwq_hist_add(&stats->hists->run, each);
	}
	/* A batch with an item that slept must not look quick. */
	known = turn->slept ? max(each, SLEPT_NS) : each;
	if (known) {
		ewma_fairwq_run_add(&stats->run_avg, min(known, FAIRWQ_RUN_TIME_MAX_NS));
		batch->quick = ewma_fairwq_run_read(&stats->run_avg) < FAIRWQ_QUICK_NS;
	}
	if (!turn->stamp)
		return;
	stats->wait_max = max(stats->wait_max, turn->wait);
	if (stats->hists)
		fairwq_hist_add(&stats->hists->wait, turn->wait);
}

/* Have @batch reaped, once, if it has drained. Call this where that may become true. */
void fairwq_fifo_reap_locked(struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	if (batch->reaping || !drained_locked(batch))
		return;
	batch->reaping = true;
	queue_work(fairwq_reap_wq, &batch->reap_work);
}

/*
 * Count a turn or a parked item of @color as ended; complete the flush that
 * waits for it. The batch may be gone when the lock is dropped.
 */
void fairwq_fifo_turn_over_locked(struct fairwq_batch *batch, unsigned int color)
{
	lockdep_assert_held(&batch->pool->lock);

	batch->in_flight[color]--;
	if (unlikely(batch->flush) && batch->color != color && !batch->in_flight[color])
		flush_done_locked(batch);
	if (batch->max_active)
		fairwq_fifo_update_locked(batch);	/* the next item may have room */
	fairwq_fifo_reap_locked(batch);
}

/* Count what @turn has done in its batch, all but its last item. */
static void turn_count_locked(const struct fairwq_turn *turn)
{
	lockdep_assert_held(&turn->batch->pool->lock);

	turn->batch->done += turn->nr - 1;
	turn->batch->pool->counter[FAIRWQ_TURNS] += turn->nr - 1;
	if (turn->took || turn->stamp || turn->slept)
		turn_stats_locked(turn);
}

/* Hand a turn whose function has returned over to @async; it stays in flight. */
void fairwq_fifo_detach_locked(struct fairwq_turn *turn, struct fairwq_async *async)
{
	struct fairwq_pool *pool = turn->batch->pool;

	lockdep_assert_held(&pool->lock);

	turn_count_locked(turn);
	if (unlikely(!list_empty(&pool->waiters)))
		fairwq_waiters_done_locked(pool, turn->number);
	async->constraint = turn->constraint;
	async->held = turn->held;
	async->color = turn->color;
	async->out_of_rank = turn->out_of_rank;
	async->policy_gen = turn->policy_gen;
	async->charged = turn->charged;
	async->took = turn->took + turn->later;
	async->nr = turn->nr;
	async->runner = NULL;
	pool->nr_async++;
	pool->async_at = jiffies;
	fairwq_kick_update_hungry_locked(pool);
	turn->async = NULL;
	turn->batch = NULL;
}

/* End a turn that was handed over: settle, once, what it cost with and after its function. */
void fairwq_fifo_async_end_locked(struct fairwq_batch *batch, const struct fairwq_async *async,
				  u64 cost_ns)
{
	const struct fairwq_turn turn = {
		.batch = batch,
		.out_of_rank = async->out_of_rank,
		.policy_gen = async->policy_gen,
		.charged = async->charged,
		.took = async->took + cost_ns,
		.nr = async->nr,
	};

	lockdep_assert_held(&batch->pool->lock);

	batch->pool->nr_async--;
	batch->pool->async_at = jiffies;
	fairwq_kick_update_hungry_locked(batch->pool);
	batch->done++;
	if (async->held)
		atomic_sub(async->held, &batch->nr_pins);
	fairwq_fifo_turn_over_locked(batch, async->color);
	fairwq_cost_settle_locked(&turn);	/* last, as in fairwq_fifo_turn_end_locked() */
}

/* Account @turn to its batch. Its last function has returned. */
void fairwq_fifo_turn_end_locked(const struct fairwq_turn *turn)
{
	struct fairwq_batch *batch = turn->batch;

	lockdep_assert_held(&batch->pool->lock);

	turn_count_locked(turn);
	batch->done++;
	if (unlikely(!list_empty(&batch->pool->waiters)))
		fairwq_waiters_done_locked(batch->pool, turn->number);
	if (turn->held)
		atomic_sub(turn->held, &batch->nr_pins);
	fairwq_fifo_turn_over_locked(batch, turn->color);
	/*
	 * Last: a batch that was at its limit joins the tree above, and must
	 * join as one with a turn in flight.
	 */
	fairwq_cost_settle_locked(turn);
}

/* Take @work out of the FIFO for a cancel; the caller must then clear its word. */
void fairwq_fifo_remove_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	bool head = list_is_first(&work->node, &batch->fifo);
	unsigned int place = work->place;

	lockdep_assert_held(&batch->pool->lock);

	batch_unlink_locked(batch, work);
	if (head)
		batch_new_head_locked(batch);
	if (place & FAIRWQ_PLACE_TAKEN)
		fairwq_fifo_turn_over_locked(batch, !!(place & FAIRWQ_PLACE_COLOR));
	else
		fairwq_fifo_reap_locked(batch);
}
