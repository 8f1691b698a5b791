// SPDX-License-Identifier: GPL-2.0
/*
 * One batch's items: from the pushed list into the FIFO, out of it in turns,
 * and whether the batch stands in the fair tree. All under the pool's lock.
 *
 * A queue call pushes onto @incoming without the lock. Under it, what was
 * pushed is put into queue order at the tail of @fifo, each item once, and some
 * at a time.
 */
#include <linux/completion.h>

#include "../doors.h"

#include "compat.h"
#include "cost.h"
#include "fairness.h"
#include "fifo.h"
#include "runner.h"
#include "stats.h"
#include "testing.h"
#include "tree.h"
#include "waiter.h"

/* Where batches are reaped: not in a pool's workqueue, which may be destroyed. */
struct workqueue_struct *fairwq_reap_wq;

/* An item that has slept counts as this in the average, at least, ns. */
#define SLEPT_NS		16000ULL
/* So many items are put into order under one hold of the lock: about 2 us. */
#define SORT_STEP		64U
/* And so often before a turn. */
#define SORT_STEPS		16U

/* A cancel came while @work was on its way here. Returns whether it is dropped. */
static bool drop_canceled_locked(struct fairwq_batch *batch,
				 struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	if (!(atomic_long_read(&work->data) & FAIRWQ_WORK_CANCELED))
		return false;
	if (batch->max_queued)
		atomic_dec(&batch->nr_queued);
	/*
	 * From here on it is its caller's. Pairs with the cmpxchg() of the next queue
	 * call. Model: tests/models/cancel.pml.
	 */
	atomic_long_set_release(&work->data, 0);
	/*
	 * Last: a queue call that sees this need not look, and returns, and the
	 * work may be freed. Pairs with the load in fairwq_push_claimed(). Model:
	 * tests/models/cancel.pml.
	 */
	smp_store_release(&batch->nr_canceled, batch->nr_canceled - 1);
	return true;
}

static void link_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	if (unlikely(batch->nr_canceled) && drop_canceled_locked(batch, work))
		return;
	atomic_long_set(&work->data,
			(long)batch | FAIRWQ_WORK_PENDING | FAIRWQ_WORK_LINKED);
	work->place = FAIRWQ_PLACE_FIFO;
	/* The newest comes first, and ends up last. */
	list_add(&work->node, &batch->sorted);
	batch->nr_fifo++;
}

/*
 * Put some of what was pushed into order, the newest first, and all of it at
 * the end of the FIFO when the oldest was found. A backlog of any length was
 * pushed without the lock; it is not gone through in one hold of it.
 */
static void sort_locked(struct fairwq_batch *batch, unsigned int max)
{
	struct llist_node *node = batch->unsorted ?: llist_del_all(&batch->incoming);
	struct fairwq_work *work;
	struct llist_node *next;

	lockdep_assert_held(&batch->pool->lock);

	for (; node && max; node = next, max--) {
		next = node->next;	/* the list node overlays the llist node */
		work = llist_entry(node, struct fairwq_work, llnode);
		link_locked(batch, work);
	}
	batch->unsorted = node;
	if (!node)
		list_splice_tail_init(&batch->sorted, &batch->fifo);
	else if (list_empty(&batch->sort_link))
		list_add_tail(&batch->sort_link, &batch->pool->sorting);
}

/* Put all that was pushed into the FIFO. */
void fairwq_batch_splice_locked(struct fairwq_batch *batch)
{
	if (batch->unsorted)
		sort_locked(batch, UINT_MAX);
	sort_locked(batch, UINT_MAX);
}

/* Or some. Returns whether there is more, for a runner to go on with if need be. */
bool fairwq_batch_sort_step_locked(struct fairwq_batch *batch)
{
	sort_locked(batch, SORT_STEP);
	return batch->unsorted;
}

/* Go on with one. */
static struct fairwq_batch *pool_sort_step_locked(struct fairwq_pool *pool)
{
	struct fairwq_batch *batch = list_first_entry(&pool->sorting, struct fairwq_batch,
						      sort_link);

	lockdep_assert_held(&pool->lock);

	list_del_init(&batch->sort_link);
	fairwq_batch_sort_step_locked(batch);
	fairwq_batch_update_locked(batch);
	fairwq_batch_reap_locked(batch);	/* all was cancelled */
	return batch;
}

/*
 * A runner calls this before it takes a turn. Neither the batches that have something to
 * run wait for long, nor those to which a lot was pushed. Drops the lock between two steps.
 */
void fairwq_pool_sort_locked(struct fairwq_pool *pool)
{
	struct fairwq_batch *batch;
	unsigned int i;

	lockdep_assert_held(&pool->lock);

	for (i = 0; i < SORT_STEPS && !list_empty(&pool->sorting); i++) {
		batch = pool_sort_step_locked(pool);
		raw_spin_unlock_irq(&pool->lock);
		fairwq_test_point(FAIRWQ_POINT_SORT_STEP, batch);
		raw_spin_lock_irq(&pool->lock);
	}
}

/*
 * The batch has nothing: from here on the next push must call. Unless one came
 * just now; its caller may have seen @watched still set, and be gone. And
 * unless that one is to be dropped: then there is nothing again.
 *
 * Returns whether the FIFO has an item after all.
 */
static bool batch_idle_locked(struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	for (;;) {
		fairwq_test_point(FAIRWQ_POINT_BATCH_EMPTY, batch);
		WRITE_ONCE(batch->watched, false);
		/*
		 * Store @watched, then load @incoming. Pairs with the full
		 * barrier of llist_add() in fairwq_push_claimed(): store
		 * @incoming, then load @watched. At least one side sees the
		 * other. Model: tests/models/queue.pml.
		 */
		smp_mb();
		if (llist_empty(&batch->incoming))
			return false;
		WRITE_ONCE(batch->watched, true);
		if (fairwq_batch_sort_step_locked(batch) || !list_empty(&batch->fifo))
			return !list_empty(&batch->fifo);
	}
}

static bool batch_in_flight_locked(const struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	return batch->in_flight[0] || batch->in_flight[1];
}

/* An item that was put back is in flight already: it takes up no more room. */
static bool batch_at_limit_locked(const struct fairwq_batch *batch)
{
	unsigned int in_flight = batch->in_flight[0] + batch->in_flight[1];

	return in_flight >= batch->max_active &&
	       !(fairwq_head_locked(batch)->place & FAIRWQ_PLACE_TAKEN);
}

static bool batch_held_locked(const struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	if (batch->paused)
		return true;
	return batch->nr_canceling;
}

/* Into the tree or out of it, unless it is there already. */
void fairwq_batch_set_eligible_locked(struct fairwq_batch *batch, bool eligible)
{
	struct fairwq_pool *pool = batch->pool;

	lockdep_assert_held(&pool->lock);

	if (eligible == fairwq_node_eligible(&batch->node))
		return;
	if (eligible) {
		fairwq_tree_add(&pool->tree, &batch->node,
				fairwq_head_locked(batch)->stamp);
		WRITE_ONCE(pool->nr_eligible, pool->nr_eligible + 1);
		fairwq_window_joined_locked(batch);
	} else {
		fairwq_tree_del(&pool->tree, &batch->node);
		WRITE_ONCE(pool->nr_eligible, pool->nr_eligible - 1);
		fairwq_window_left_locked(batch);
	}
}

/*
 * Put the batch into the tree if it is eligible, take it out if it is not.
 * To be called after anything that may have changed that.
 */
void fairwq_batch_update_locked(struct fairwq_batch *batch)
{
	bool backlog, eligible;

	lockdep_assert_held(&batch->pool->lock);

	if (list_empty(&batch->fifo) && !batch->unsorted)
		fairwq_batch_sort_step_locked(batch);
	backlog = !list_empty(&batch->fifo);
	if (!backlog && !batch->unsorted)
		backlog = batch_idle_locked(batch);
	else if (!batch->watched)	/* the line is the producers' */
		WRITE_ONCE(batch->watched, true);

	eligible = backlog && !batch_held_locked(batch) &&
		   !(batch->max_active && batch_at_limit_locked(batch));
	fairwq_batch_set_eligible_locked(batch, eligible);
}

/* Everything that the barrier waits for has ended. */
static void barrier_done_locked(struct fairwq_batch *batch)
{
	struct completion *done = batch->barrier->done;

	batch->barrier = NULL;
	complete(done);		/* the barrier is gone from here on */
}

/*
 * Barriers at the head have nothing queued before them: turns that begin from
 * now on get the other color, and the flush waits for those of the old one.
 * There is one flush at a time, so the other color has no turns.
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
		WARN_ON_ONCE(batch->barrier);
		barrier->color = batch->color;
		batch->color ^= 1;
		batch->barrier = barrier;
		if (!batch->in_flight[barrier->color])
			barrier_done_locked(batch);
		else
			fairwq_yield_locked(batch->pool);
	}
}

/* Put a barrier behind everything that was queued up to now. */
void fairwq_batch_add_barrier_locked(struct fairwq_batch *batch,
				     struct fairwq_barrier *barrier)
{
	lockdep_assert_held(&batch->pool->lock);

	barrier->entry.place = FAIRWQ_PLACE_BARRIER;
	fairwq_batch_splice_locked(batch);
	list_add_tail(&barrier->entry.node, &batch->fifo);
	batch_fire_barriers_locked(batch);
	fairwq_batch_update_locked(batch);
}

/* Out of the FIFO; it stays pending. */
static void batch_unlink_locked(struct fairwq_batch *batch,
				struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	list_del(&work->node);
	batch->nr_fifo--;
	if (batch->max_queued)
		atomic_dec(&batch->nr_queued);
}

/* The color of a turn that begins, or, of an item that was put back, goes on. */
static unsigned int batch_color_locked(struct fairwq_batch *batch,
				       const struct fairwq_work *work)
{
	if (work->place & FAIRWQ_PLACE_TAKEN)
		return !!(work->place & FAIRWQ_PLACE_COLOR);
	batch->in_flight[batch->color]++;
	return batch->color;
}

static void turn_fill_locked(struct fairwq_batch *batch, struct fairwq_turn *turn,
			     struct fairwq_work *work)
{
	turn->batch = batch;
	turn->func = work->func;
	turn->id = work;
	turn->constraint = work->constraint;
	turn->stamp = work->stamp;
	turn->number = ++batch->pool->turn_number;
	turn->color = batch_color_locked(batch, work);
	turn->timed = false;
	turn->slept = false;
	turn->nr = 1;
	turn->streak = 0;
	turn->held = 0;
	turn->wait = 0;
	turn->took = 0;
	if (unlikely(work->place & FAIRWQ_PLACE_AWAITED))
		fairwq_waiters_take_locked(batch->pool, work, turn->number);
}

/* The head of the FIFO has changed. */
static void batch_new_head_locked(struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	/* Arrival order: the place in the tree is that of the first item. */
	if (batch->pool->tree.by_arrival)
		fairwq_batch_set_eligible_locked(batch, false);
	fairwq_batch_update_locked(batch);
}

/* A turn: its item is the caller's to start, its cost charged, the batch at its next place. */
void fairwq_batch_take_locked(struct fairwq_batch *batch, struct fairwq_turn *turn)
{
	struct fairwq_work *work = fairwq_head_locked(batch);

	fairwq_window_turn_begins_locked(batch->pool);
	batch_unlink_locked(batch, work);
	/* The one after the next: it is written to when the next is taken out. */
	fairwq_prefetchw(batch->fifo.next->next);
	turn_fill_locked(batch, turn, work);
	fairwq_cost_charge_locked(turn);
	fairwq_batch_turns_locked(batch, 1);
	batch_fire_barriers_locked(batch);
	batch_new_head_locked(batch);
	fairwq_window_turns_locked(batch, 1);
}

/*
 * A turn for a work that waits in a constraint, and is taken out of there: it is not queued,
 * and the batch may not stand in the tree. Then it joins as if it was queued now.
 */
void fairwq_batch_take_waiting_locked(struct fairwq_batch *batch, struct fairwq_turn *turn,
				      struct fairwq_work *work)
{
	struct fairwq_tree *tree = &batch->pool->tree;
	bool joins = !tree->by_arrival && !fairwq_node_eligible(&batch->node);

	lockdep_assert_held(&batch->pool->lock);

	fairwq_window_turn_begins_locked(batch->pool);
	work->place = 0;
	work->stamp = 0;
	turn_fill_locked(batch, turn, work);
	if (joins)
		fairwq_tree_add(tree, &batch->node, 0);
	fairwq_cost_charge_locked(turn);
	if (joins)
		fairwq_tree_del(tree, &batch->node);
	fairwq_batch_turns_locked(batch, 1);
	fairwq_window_turns_locked(batch, 1);
}

/* The head of the FIFO runs still: it waits for that. It is in flight from now on. */
void fairwq_batch_park_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	unsigned int color;

	lockdep_assert_held(&batch->pool->lock);

	batch_unlink_locked(batch, work);
	color = batch_color_locked(batch, work);
	work->place = FAIRWQ_PLACE_PARKED | FAIRWQ_PLACE_TAKEN |
		      (color ? FAIRWQ_PLACE_COLOR : 0) | (work->place & FAIRWQ_PLACE_AWAITED);
	batch->nr_parked++;
	batch_fire_barriers_locked(batch);
	batch_new_head_locked(batch);
}

/* An item was parked, and need not wait any more: it becomes the first again. */
void fairwq_batch_put_back_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	work->place = (work->place & ~FAIRWQ_PLACE_MASK) | FAIRWQ_PLACE_FIFO;
	list_add(&work->node, &batch->fifo);
	batch->nr_fifo++;
	if (batch->max_queued)
		atomic_inc(&batch->nr_queued);
	batch_new_head_locked(batch);
}

/* Nothing is queued and nothing runs. */
bool fairwq_batch_is_idle_locked(const struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	return list_empty(&batch->fifo) && list_empty(&batch->sort_link) &&
	       llist_empty(&batch->incoming) && !batch_in_flight_locked(batch);
}

/* And nothing can come. */
bool fairwq_batch_drained_locked(const struct fairwq_batch *batch)
{
	if (!batch->closed || batch->reaped)
		return false;
	return fairwq_batch_is_idle_locked(batch) && !atomic_read(&batch->nr_held);
}

/* What was measured; most turns are not. */
static void turn_stats_locked(const struct fairwq_turn *turn)
{
	struct fairwq_batch_stats *stats = turn->batch->stats;
	u64 each = turn->took, known;

	if (turn->took) {
		stats->run_time += turn->took;
		turn->batch->pool->run_time += turn->took;
		if (turn->nr > 1)
			each = max(div_u64(each, turn->nr), 1ULL);
		fairwq_hist_add(&stats->run, each);
	}
	/* Where an item sleeps, the next one is not expected to be over at once. */
	known = turn->slept ? max(each, SLEPT_NS) : each;
	if (known)
		ewma_fairwq_run_add(&stats->run_avg, min(known, FAIRWQ_RUN_TIME_MAX_NS));
	if (turn->stamp)
		fairwq_hist_add(&stats->wait, turn->wait);
}

/* The last one to leave a closed batch has it reaped. */
void fairwq_batch_reap_locked(struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	if (!fairwq_batch_drained_locked(batch) || batch->reaping)
		return;
	batch->reaping = true;
	queue_work(fairwq_reap_wq, &batch->reap_work.work);
}

/* A turn is over. The batch may be gone when the lock is dropped. */
void fairwq_batch_turn_over_locked(struct fairwq_batch *batch, unsigned int color)
{
	lockdep_assert_held(&batch->pool->lock);

	batch->in_flight[color]--;
	if (unlikely(batch->barrier) && batch->barrier->color == color &&
	    !batch->in_flight[color])
		barrier_done_locked(batch);
	if (batch->max_active)
		fairwq_batch_update_locked(batch);	/* there may be room for the next */
	fairwq_batch_reap_locked(batch);
}

/* The last function of @turn has returned. */
void fairwq_batch_turn_end_locked(const struct fairwq_turn *turn)
{
	struct fairwq_batch *batch = turn->batch;

	lockdep_assert_held(&batch->pool->lock);

	batch->stats->done += turn->nr;
	if (turn->took || turn->stamp || turn->slept)
		turn_stats_locked(turn);
	if (unlikely(!list_empty(&batch->pool->waiters)))
		fairwq_waiters_done_locked(batch->pool, turn->number);
	if (turn->held)
		atomic_sub(turn->held, &batch->nr_held);
	fairwq_batch_turn_over_locked(batch, turn->color);
	/* It may have been at its limit: for the tree the turn is still under way then. */
	fairwq_cost_settle_locked(turn);
}

/* Out of the FIFO, for good. */
void fairwq_batch_remove_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	bool head = list_is_first(&work->node, &batch->fifo);
	unsigned int place = work->place;

	lockdep_assert_held(&batch->pool->lock);

	batch_unlink_locked(batch, work);
	if (head) {
		batch_fire_barriers_locked(batch);
		batch_new_head_locked(batch);
	}
	if (place & FAIRWQ_PLACE_TAKEN)
		fairwq_batch_turn_over_locked(batch, !!(place & FAIRWQ_PLACE_COLOR));
	else
		fairwq_batch_reap_locked(batch);
}
