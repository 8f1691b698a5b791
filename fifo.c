// SPDX-License-Identifier: GPL-2.0
/*
 * One batch's items: from the pushed list into the FIFO, out of it in turns,
 * and whether the batch stands in the fair tree. All under the pool's lock.
 *
 * A queue call pushes onto @incoming without the lock. Under it, what was
 * pushed is put into queue order at the tail of @fifo, each item once.
 */
#include <linux/completion.h>

#include "internal.h"

/* A longer run time counts as this in the moving average. */
#define FAIRWQ_RUN_TIME_MAX_NS	(10 * NSEC_PER_MSEC)

/* Put what was pushed into the FIFO. Returns whether the FIFO has an item. */
bool fairwq_batch_splice_locked(struct fairwq_batch *batch)
{
	struct fairwq_work *work, *next;
	struct llist_node *pushed;

	lockdep_assert_held(&batch->pool->lock);

	pushed = llist_del_all(&batch->incoming);
	if (!fairwq_mutant(FIFO_REVERSED))
		pushed = llist_reverse_order(pushed);
	/* The list node overlays the llist node: _safe reads it first. */
	llist_for_each_entry_safe(work, next, pushed, llnode) {
		list_add_tail(&work->node, &batch->fifo);
		batch->nr_fifo++;
	}
	return !list_empty(&batch->fifo);
}

/*
 * The batch has nothing: from here on the next push must call. Unless one came
 * just now; its caller may have seen @watched still set, and be gone.
 *
 * Returns whether the batch has an item after all.
 */
static bool fairwq_batch_idle_locked(struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	fairwq_test_point(FAIRWQ_POINT_BATCH_EMPTY, batch);
	WRITE_ONCE(batch->watched, false);
	/*
	 * Store @watched, then load @incoming. Pairs with the full barrier of
	 * llist_add() in fairwq_push(): store @incoming, then load @watched.
	 * At least one side sees the other.
	 */
	smp_mb();
	if (llist_empty(&batch->incoming) || fairwq_mutant(RECHECK_SKIPPED))
		return false;
	WRITE_ONCE(batch->watched, true);
	return fairwq_batch_splice_locked(batch);
}

static bool fairwq_head_has_locked(const struct fairwq_batch *batch, int flag)
{
	return atomic_read(&list_first_entry(&batch->fifo, struct fairwq_work,
					     node)->state) & flag;
}

/* An item that was put back is in flight already: it takes up no more room. */
static bool fairwq_batch_at_limit_locked(const struct fairwq_batch *batch)
{
	unsigned int in_flight = batch->in_flight[0] + batch->in_flight[1];

	if (fairwq_mutant(LIMIT_PLUS_ONE) && in_flight)
		in_flight--;
	return in_flight >= batch->max_active &&
	       !fairwq_head_has_locked(batch, FAIRWQ_WORK_TAKEN);
}

static bool fairwq_batch_held_locked(const struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	if (batch->paused && !fairwq_mutant(PAUSE_IGNORED))
		return true;
	return batch->limited;
}

static u64 fairwq_batch_head_stamp_locked(const struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	return list_first_entry(&batch->fifo, struct fairwq_work, node)->stamp;
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
				fairwq_batch_head_stamp_locked(batch));
		pool->nr_eligible++;
	} else {
		fairwq_tree_del(&pool->tree, &batch->node);
		pool->nr_eligible--;
		fairwq_window_drop_locked(batch);
	}
}

/*
 * Put the batch into the tree if it is eligible, take it out if it is not.
 * To be called after anything that may have changed that.
 */
void fairwq_batch_update_locked(struct fairwq_batch *batch)
{
	bool backlog, eligible, limited, was_limited;

	lockdep_assert_held(&batch->pool->lock);

	backlog = !list_empty(&batch->fifo) || fairwq_batch_splice_locked(batch);
	if (!backlog)
		backlog = fairwq_batch_idle_locked(batch);
	else if (!batch->watched)	/* the line is the producers' */
		WRITE_ONCE(batch->watched, true);

	limited = batch->max_active && backlog && fairwq_batch_at_limit_locked(batch);
	was_limited = batch->limited;
	batch->limited = limited;
	eligible = backlog && !fairwq_batch_held_locked(batch);
	fairwq_batch_set_eligible_locked(batch, eligible);
	if (limited == was_limited)
		return;
	/* Last, as it may come back here: turns that have ended are told of. */
	if (limited)
		fairwq_attention_raise_locked(batch->pool);
	else
		fairwq_attention_lower_locked(batch->pool);
}

/* Everything that the barrier waits for has ended. */
static void fairwq_barrier_done_locked(struct fairwq_batch *batch)
{
	struct completion *done = batch->barrier->done;

	batch->barrier = NULL;
	fairwq_attention_lower_locked(batch->pool);
	complete(done);		/* the barrier is gone from here on */
}

/*
 * Barriers at the head have nothing queued before them: turns that begin from
 * now on get the other color, and the flush waits for those of the old one.
 * There is one flush at a time, so the other color has no turns.
 */
static void fairwq_batch_fire_barriers_locked(struct fairwq_batch *batch)
{
	struct fairwq_barrier *barrier;
	struct fairwq_work *head;

	lockdep_assert_held(&batch->pool->lock);

	while (!list_empty(&batch->fifo)) {
		if (!fairwq_head_has_locked(batch, FAIRWQ_WORK_BARRIER))
			return;
		head = list_first_entry(&batch->fifo, struct fairwq_work, node);
		list_del(&head->node);
		barrier = container_of(head, struct fairwq_barrier, entry);
		WARN_ON_ONCE(batch->barrier);
		barrier->color = batch->color;
		batch->color ^= 1;
		batch->barrier = barrier;
		if (!batch->in_flight[barrier->color] || fairwq_mutant(FLUSH_EARLY))
			fairwq_barrier_done_locked(batch);
	}
}

/* Put a barrier behind everything that was queued up to now. */
void fairwq_batch_add_barrier_locked(struct fairwq_batch *batch,
				     struct fairwq_barrier *barrier)
{
	lockdep_assert_held(&batch->pool->lock);

	fairwq_attention_raise_locked(batch->pool);	/* until it is done */
	fairwq_batch_splice_locked(batch);
	list_add_tail(&barrier->entry.node, &batch->fifo);
	fairwq_batch_fire_barriers_locked(batch);
	fairwq_batch_update_locked(batch);
}

/* Take the first item of an eligible batch; it stays pending. */
static struct fairwq_work *fairwq_batch_pop_locked(struct fairwq_batch *batch)
{
	struct fairwq_work *work;

	work = list_first_entry(&batch->fifo, struct fairwq_work, node);
	list_del(&work->node);
	batch->nr_fifo--;
	if (batch->max_queued)
		atomic_dec(&batch->nr_queued);
	return work;
}

/* The color of a turn that begins, or, of an item that was put back, goes on. */
static unsigned int fairwq_batch_color_locked(struct fairwq_batch *batch,
					      const struct fairwq_work *work)
{
	int state = atomic_read(&work->state);

	if (state & FAIRWQ_WORK_TAKEN)
		return !!(state & FAIRWQ_WORK_COLOR);
	batch->in_flight[batch->color]++;
	return batch->color;
}

static void fairwq_slot_fill_locked(struct fairwq_batch *batch, struct fairwq_slot *slot)
{
	struct fairwq_work *work = fairwq_batch_pop_locked(batch);

	slot->batch = batch;
	slot->func = work->func;
	slot->stamp = work->stamp;
	slot->run = 0;
	slot->color = fairwq_batch_color_locked(batch, work);
	WRITE_ONCE(slot->work, work);
}

/* A turn: its item into @slot, its cost charged, the batch at its next place. */
void fairwq_batch_take_locked(struct fairwq_batch *batch, struct fairwq_slot *slot)
{
	struct fairwq_tree *tree = &batch->pool->tree;

	lockdep_assert_held(&batch->pool->lock);

	fairwq_tree_charge(tree, &batch->node, FAIRWQ_COST_TURN);
	fairwq_slot_fill_locked(batch, slot);
	batch->stats->turns++;
	batch->pool->counter[FAIRWQ_TURNS]++;
	fairwq_batch_fire_barriers_locked(batch);
	/* Arrival order: the place in the tree is that of the next item. */
	if (tree->by_arrival)
		fairwq_batch_set_eligible_locked(batch, false);
	fairwq_batch_update_locked(batch);
	fairwq_window_turn_locked(batch);
}

/*
 * A turn that was taken cannot be used now: its item becomes the batch's first
 * again, and the turn goes on when it is taken the next time.
 */
void fairwq_batch_put_back_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	struct fairwq_tree *tree = &batch->pool->tree;

	lockdep_assert_held(&batch->pool->lock);

	list_add(&work->node, &batch->fifo);
	batch->nr_fifo++;
	if (batch->max_queued)
		atomic_inc(&batch->nr_queued);
	/* Unless the counters were reset in between. */
	if (batch->stats->turns)
		batch->stats->turns--;
	if (batch->pool->counter[FAIRWQ_TURNS])
		batch->pool->counter[FAIRWQ_TURNS]--;
	if (tree->by_arrival)
		fairwq_batch_set_eligible_locked(batch, false);
	fairwq_tree_refund(tree, &batch->node, FAIRWQ_COST_TURN);
	fairwq_window_drop_locked(batch);
	fairwq_batch_update_locked(batch);
}

/* Nothing is queued and nothing runs. */
bool fairwq_batch_is_idle_locked(const struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	return list_empty(&batch->fifo) && llist_empty(&batch->incoming) &&
	       !batch->in_flight[0] && !batch->in_flight[1];
}

/* And nothing can come. */
bool fairwq_batch_drained_locked(const struct fairwq_batch *batch)
{
	if (!batch->closed || (batch->reaped && !fairwq_mutant(DISPOSE_TWICE)))
		return false;
	if (fairwq_mutant(DISPOSE_NONEMPTY))
		return true;
	return fairwq_batch_is_idle_locked(batch);
}

/* What was measured; most turns are not. */
static void fairwq_slot_stats_locked(const struct fairwq_slot *slot)
{
	struct fairwq_batch_stats *stats = slot->batch->stats;

	stats->done++;
	if (slot->run) {
		fairwq_hist_add(&stats->run, slot->run);
		ewma_fairwq_run_add(&stats->run_avg,
				    min_t(u64, slot->run, FAIRWQ_RUN_TIME_MAX_NS));
	}
	if (slot->stamp)
		fairwq_hist_add(&stats->wait, slot->wait);
}

/* The function has returned. The batch may be gone when the lock is dropped. */
void fairwq_batch_turn_end_locked(struct fairwq_slot *slot)
{
	struct fairwq_batch *batch = slot->batch;

	lockdep_assert_held(&batch->pool->lock);

	fairwq_slot_stats_locked(slot);
	batch->in_flight[slot->color]--;
	if (batch->barrier && batch->barrier->color == slot->color &&
	    !batch->in_flight[slot->color])
		fairwq_barrier_done_locked(batch);
	if (batch->limited)
		fairwq_batch_update_locked(batch);
	if (fairwq_batch_drained_locked(batch) && !fairwq_mutant(DISPOSE_LEAK))
		queue_work(fairwq_reap_wq, &batch->reap_work.work);
}
