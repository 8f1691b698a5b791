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
	fairwq_test_point(FAIRWQ_POINT_BATCH_EMPTY, batch);
	WRITE_ONCE(batch->watched, false);
	/*
	 * Store @watched, then load @incoming. Pairs with the full barrier of
	 * llist_add() in fairwq_queue(): store @incoming, then load @watched.
	 * At least one side sees the other.
	 */
	smp_mb();
	if (llist_empty(&batch->incoming) || fairwq_mutant(RECHECK_SKIPPED))
		return false;
	WRITE_ONCE(batch->watched, true);
	return fairwq_batch_splice_locked(batch);
}

static bool fairwq_batch_held_locked(const struct fairwq_batch *batch)
{
	unsigned int in_flight = batch->in_flight[0] + batch->in_flight[1];

	if (batch->paused && !fairwq_mutant(PAUSE_IGNORED))
		return true;
	if (fairwq_mutant(LIMIT_PLUS_ONE) && in_flight)
		in_flight--;
	return batch->max_active && in_flight >= batch->max_active;
}

static u64 fairwq_batch_head_stamp_locked(const struct fairwq_batch *batch)
{
	return list_first_entry(&batch->fifo, struct fairwq_work, node)->stamp;
}

/*
 * Put the batch into the tree if it is eligible, take it out if it is not.
 * To be called after anything that may have changed that.
 */
void fairwq_batch_update_locked(struct fairwq_batch *batch)
{
	struct fairwq_tree *tree = &batch->pool->tree;
	bool backlog, eligible;

	lockdep_assert_held(&batch->pool->lock);

	backlog = !list_empty(&batch->fifo) || fairwq_batch_splice_locked(batch);
	if (backlog)
		WRITE_ONCE(batch->watched, true);
	else
		backlog = fairwq_batch_idle_locked(batch);

	eligible = backlog && !fairwq_batch_held_locked(batch);
	if (eligible == fairwq_node_eligible(&batch->node))
		return;
	if (eligible) {
		fairwq_tree_add(tree, &batch->node,
				fairwq_batch_head_stamp_locked(batch));
		fairwq_window_join_locked(batch);
	} else {
		fairwq_tree_del(tree, &batch->node);
	}
}

/* Everything that the barrier waits for has ended. */
static void fairwq_barrier_done_locked(struct fairwq_batch *batch)
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
static void fairwq_batch_fire_barriers_locked(struct fairwq_batch *batch)
{
	struct fairwq_barrier *barrier;
	struct fairwq_work *head;

	while (!list_empty(&batch->fifo)) {
		head = list_first_entry(&batch->fifo, struct fairwq_work, node);
		if (!(atomic_read(&head->state) & FAIRWQ_WORK_BARRIER))
			return;
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

	fairwq_batch_splice_locked(batch);
	list_add_tail(&barrier->entry.node, &batch->fifo);
	fairwq_batch_fire_barriers_locked(batch);
	fairwq_batch_update_locked(batch);
}

/* Take the first item of an eligible batch. */
struct fairwq_work *fairwq_batch_pop_locked(struct fairwq_batch *batch)
{
	struct fairwq_work *work;

	lockdep_assert_held(&batch->pool->lock);

	work = list_first_entry(&batch->fifo, struct fairwq_work, node);
	list_del(&work->node);
	batch->nr_fifo--;
	if (batch->max_queued)
		atomic_dec(&batch->nr_queued);
	return work;
}

/* The turn is charged, and the batch back at its place in the tree. */
void fairwq_batch_turn_begin_locked(struct fairwq_batch *batch,
				    struct fairwq_turn *turn)
{
	struct fairwq_tree *tree = &batch->pool->tree;

	lockdep_assert_held(&batch->pool->lock);

	fairwq_tree_charge(tree, &batch->node, FAIRWQ_COST_TURN);
	turn->batch = batch;
	turn->work = fairwq_batch_pop_locked(batch);
	turn->color = batch->color;
	batch->in_flight[turn->color]++;
	batch->stats->turns++;
	batch->pool->counter[FAIRWQ_TURNS]++;
	fairwq_batch_fire_barriers_locked(batch);
	/* Arrival order: the place in the tree is that of the next item. */
	if (tree->by_arrival)
		fairwq_tree_del(tree, &batch->node);
	fairwq_batch_update_locked(batch);
	fairwq_window_turn_locked(batch);
}

/* Nothing is queued, nothing runs, and nothing can come. */
bool fairwq_batch_drained_locked(const struct fairwq_batch *batch)
{
	if (!batch->closed || (batch->reaped && !fairwq_mutant(DISPOSE_TWICE)))
		return false;
	if (fairwq_mutant(DISPOSE_NONEMPTY))
		return true;
	return list_empty(&batch->fifo) && llist_empty(&batch->incoming) &&
	       !batch->in_flight[0] && !batch->in_flight[1];
}

static void fairwq_turn_account_locked(struct fairwq_turn *turn, u64 now)
{
	struct fairwq_batch_stats *stats = turn->batch->stats;
	u64 run = now - turn->started;

	stats->done++;
	stats->run_ns += run;
	fairwq_hist_add(&stats->run, run);
	if (turn->wait_measured)
		fairwq_hist_add(&stats->wait, turn->wait);
}

/* The function has returned. The batch may be gone when the lock is dropped. */
void fairwq_batch_turn_end_locked(struct fairwq_turn *turn, u64 now)
{
	struct fairwq_batch *batch = turn->batch;

	lockdep_assert_held(&batch->pool->lock);

	fairwq_turn_account_locked(turn, now);
	batch->in_flight[turn->color]--;
	if (batch->barrier && batch->barrier->color == turn->color &&
	    !batch->in_flight[turn->color])
		fairwq_barrier_done_locked(batch);
	if (batch->max_active)
		fairwq_batch_update_locked(batch);
	if (fairwq_batch_drained_locked(batch) && !fairwq_mutant(DISPOSE_LEAK))
		queue_work(fairwq_reap_wq, &batch->reap_work.work);
}
