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

#include "compat.h"
#include "internal.h"
#include "trace.h"
#include "trail.h"

/* So many items are put into order under one hold of the lock: about 2 us. */
#define SORT_STEP		64U
/* And so often before each plan. */
#define SORT_STEPS		16U

/* A cancel came while @work was on its way here. Returns whether it is dropped. */
static bool fairwq_drop_canceled_locked(struct fairwq_batch *batch,
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

static void fairwq_link_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	if (unlikely(batch->nr_canceled) && fairwq_drop_canceled_locked(batch, work))
		return;
	atomic_long_set(&work->data,
			(long)batch | FAIRWQ_WORK_PENDING | FAIRWQ_WORK_LINKED);
	work->place = FAIRWQ_PLACE_FIFO;
	/* The newest comes first, and ends up last. */
	if (!fairwq_mutant(FIFO_REVERSED))
		list_add(&work->node, &batch->sorted);
	else
		list_add_tail(&work->node, &batch->sorted);
	batch->nr_fifo++;
}

/*
 * Put some of what was pushed into order, the newest first, and all of it at
 * the end of the FIFO when the oldest was found. A backlog of any length was
 * pushed without the lock; it is not gone through in one hold of it.
 */
static void fairwq_sort_locked(struct fairwq_batch *batch, unsigned int max)
{
	struct llist_node *node = batch->unsorted ?: llist_del_all(&batch->incoming);
	struct fairwq_work *work;
	struct llist_node *next;

	lockdep_assert_held(&batch->pool->lock);

	for (; node && max; node = next, max--) {
		next = node->next;	/* the list node overlays the llist node */
		work = llist_entry(node, struct fairwq_work, llnode);
		fairwq_follow_trail(work);
		fairwq_link_locked(batch, work);
	}
	batch->unsorted = node;
	if (!node)
		list_splice_tail_init(&batch->sorted, &batch->fifo);
	else if (list_empty(&batch->sort_link) && !fairwq_mutant(SORT_FORGOTTEN))
		list_add_tail(&batch->sort_link, &batch->pool->sorting);
}

/* Put all that was pushed into the FIFO. */
void fairwq_batch_splice_locked(struct fairwq_batch *batch)
{
	if (batch->unsorted)
		fairwq_sort_locked(batch, UINT_MAX);
	fairwq_sort_locked(batch, UINT_MAX);
}

/*
 * Or some. Returns whether there is more, for a runner to go on with if need be. Of all the
 * batches in one plan only the first few are sorted: the lock is not given up in between.
 */
bool fairwq_batch_sort_step_locked(struct fairwq_batch *batch)
{
	struct fairwq_pool *pool = batch->pool;
	unsigned int max = SORT_STEP;

	lockdep_assert_held(&pool->lock);

	if (pool->planning && !fairwq_mutant(SORT_IN_PLANS))
		max = pool->sorts_left ? SORT_STEP : 0;
	if (pool->planning && pool->sorts_left)
		pool->sorts_left--;
	fairwq_sort_locked(batch, fairwq_mutant(SORT_AT_ONCE) ? UINT_MAX : max);
	return batch->unsorted;
}

/* Go on with one. Returns whether there was any. */
static bool fairwq_pool_sort_step(struct fairwq_pool *pool)
{
	struct fairwq_batch *batch;
	unsigned long flags;

	raw_spin_lock_irqsave(&pool->lock, flags);
	batch = list_first_entry_or_null(&pool->sorting, struct fairwq_batch, sort_link);
	if (batch) {
		list_del_init(&batch->sort_link);
		fairwq_batch_sort_step_locked(batch);
		fairwq_batch_update_locked(batch);
		fairwq_batch_reap_locked(batch);	/* all was cancelled */
	}
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	if (batch)
		fairwq_test_point(FAIRWQ_POINT_SORT_STEP, batch);
	return batch;
}

/*
 * By a runner, before it makes a plan: about as long as a plan takes, so that
 * neither those who have something to run wait for long, nor who was pushed a
 * lot. Returns whether there was anything to do.
 */
bool fairwq_pool_sort(struct fairwq_pool *pool)
{
	unsigned int i = 0;

	/* A hint: who goes idle looks again, under the lock. */
	while (i < SORT_STEPS && !list_empty(&pool->sorting) && fairwq_pool_sort_step(pool))
		i++;
	return i;
}

/*
 * The batch has nothing: from here on the next push must call. Unless one came
 * just now; its caller may have seen @watched still set, and be gone. And
 * unless that one is to be dropped: then there is nothing again.
 *
 * Returns whether the FIFO has an item after all.
 */
static bool fairwq_batch_idle_locked(struct fairwq_batch *batch)
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
		if (llist_empty(&batch->incoming) || fairwq_mutant(RECHECK_SKIPPED))
			return false;
		WRITE_ONCE(batch->watched, true);
		if (fairwq_batch_sort_step_locked(batch) || !list_empty(&batch->fifo))
			return !list_empty(&batch->fifo);
		if (fairwq_mutant(DROP_WATCHED))
			return false;
	}
}

static struct fairwq_work *fairwq_head_locked(const struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	return list_first_entry(&batch->fifo, struct fairwq_work, node);
}

static bool fairwq_batch_in_flight_locked(const struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	return batch->in_flight[0] || batch->in_flight[1];
}

/* An item that was put back is in flight already: it takes up no more room. */
static bool fairwq_batch_at_limit_locked(const struct fairwq_batch *batch)
{
	unsigned int in_flight = batch->in_flight[0] + batch->in_flight[1];

	if (fairwq_mutant(LIMIT_PLUS_ONE) && in_flight)
		in_flight--;
	return in_flight >= batch->max_active &&
	       !(fairwq_head_locked(batch)->place & FAIRWQ_PLACE_TAKEN);
}

static bool fairwq_batch_held_locked(const struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	if (batch->paused && !fairwq_mutant(PAUSE_IGNORED))
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
		fairwq_tree_keep_place(&pool->tree, &batch->node, pool->plan_nr);
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
 * Out of the tree only because of turns in flight: it is at its max_active, or all that it
 * has is in flight, and may queue itself again. See fairwq_plan_turns_locked().
 */
static void fairwq_batch_set_away_locked(struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	if (fairwq_node_eligible(&batch->node) || !fairwq_batch_in_flight_locked(batch) ||
	    fairwq_batch_held_locked(batch))
		list_del_init(&batch->away_link);
	else if (list_empty(&batch->away_link))
		list_add_tail(&batch->away_link, &batch->pool->away);
}

/*
 * Put the batch into the tree if it is eligible, take it out if it is not.
 * To be called after anything that may have changed that.
 */
void fairwq_batch_update_locked(struct fairwq_batch *batch)
{
	bool backlog, eligible;

	lockdep_assert_held(&batch->pool->lock);

	fairwq_think_again_locked(batch->pool);
	if (list_empty(&batch->fifo) && !batch->unsorted)
		fairwq_batch_sort_step_locked(batch);
	backlog = !list_empty(&batch->fifo);
	if (!backlog && !batch->unsorted)
		backlog = fairwq_batch_idle_locked(batch);
	else if (!batch->watched)	/* the line is the producers' */
		WRITE_ONCE(batch->watched, true);

	eligible = backlog && !fairwq_batch_held_locked(batch) &&
		   !(batch->max_active && fairwq_batch_at_limit_locked(batch));
	fairwq_batch_set_eligible_locked(batch, eligible);
	fairwq_batch_set_away_locked(batch);
}

/* Something waits for turns of the batch to end, and some are in flight. */
static bool fairwq_batch_is_awaited_locked(const struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	return fairwq_batch_in_flight_locked(batch) && (batch->barrier || batch->closed);
}

/*
 * A flush, or the end of the batch, begins to wait for turns: the pool's attention is
 * up until they have ended. Of turns that a closed batch takes later each says so itself.
 */
void fairwq_batch_attend_locked(struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	if (batch->attended || !fairwq_batch_is_awaited_locked(batch))
		return;
	batch->attended = true;
	/* Last: turns that have ended are told of, and this may be over. */
	fairwq_attention_raise_locked(batch->pool);
}

static void fairwq_batch_unattend_locked(struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	if (!batch->attended || fairwq_batch_is_awaited_locked(batch))
		return;
	batch->attended = false;
	fairwq_attention_lower_locked(batch->pool);
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
		if (!batch->in_flight[barrier->color] || fairwq_mutant(FLUSH_EARLY))
			fairwq_barrier_done_locked(batch);
		else
			fairwq_batch_attend_locked(batch);
	}
}

/* Put a barrier behind everything that was queued up to now. */
void fairwq_batch_add_barrier_locked(struct fairwq_batch *batch,
				     struct fairwq_barrier *barrier)
{
	lockdep_assert_held(&batch->pool->lock);

	fairwq_think_again_locked(batch->pool);
	barrier->entry.place = FAIRWQ_PLACE_BARRIER;
	fairwq_batch_splice_locked(batch);
	list_add_tail(&barrier->entry.node, &batch->fifo);
	fairwq_batch_fire_barriers_locked(batch);
	fairwq_batch_update_locked(batch);
}

/* Out of the FIFO; it stays pending. */
static void fairwq_batch_unlink_locked(struct fairwq_batch *batch,
				       struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	list_del(&work->node);
	batch->nr_fifo--;
	if (batch->max_queued)
		atomic_dec(&batch->nr_queued);
}

/* The color of a turn that begins, or, of an item that was put back, goes on. */
static unsigned int fairwq_batch_color_locked(struct fairwq_batch *batch,
					      const struct fairwq_work *work)
{
	if (work->place & FAIRWQ_PLACE_TAKEN)
		return !!(work->place & FAIRWQ_PLACE_COLOR);
	batch->in_flight[batch->color]++;
	return batch->color;
}

static void fairwq_slot_fill_locked(struct fairwq_batch *batch, struct fairwq_slot *slot,
				    struct fairwq_work *work)
{
	struct fairwq_turn *turn = &slot->turn;

	turn->batch = batch;
	turn->func = work->func;
	turn->id = work;
	turn->constraint = work->constraint;
	turn->stamp = work->stamp;
	turn->number = ++batch->pool->turn_number;
	turn->terms = 0;
	turn->color = fairwq_batch_color_locked(batch, work);
	/* A limit, or the end of the batch, may wait for it; or a flush, see there. */
	turn->tell = batch->max_active || batch->closed;
	if (unlikely(work->place & FAIRWQ_PLACE_AWAITED)) {
		fairwq_waiters_plan_locked(batch->pool, work, turn->number);
		turn->tell = true;
	}
	work->place = FAIRWQ_PLACE_SLOT;
	work->slot = slot;
	WRITE_ONCE(slot->work, work);
}

/* The head of the FIFO has changed. */
static void fairwq_batch_new_head_locked(struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	/* Arrival order: the place in the tree is that of the first item. */
	if (batch->pool->tree.by_arrival)
		fairwq_batch_set_eligible_locked(batch, false);
	fairwq_batch_update_locked(batch);
}

/* It has taken so many. */
void fairwq_batch_turns_locked(struct fairwq_batch *batch, unsigned int nr)
{
	lockdep_assert_held(&batch->pool->lock);

	batch->stats->turns += nr;
	batch->pool->counter[FAIRWQ_TURNS] += nr;
}

/* A turn: its item into @slot, its cost charged, the batch at its next place. */
void fairwq_batch_take_locked(struct fairwq_batch *batch, struct fairwq_slot *slot)
{
	struct fairwq_work *work = fairwq_head_locked(batch);

	fairwq_batch_unlink_locked(batch, work);
	/* The one after the next: it is written to when the next is taken out. */
	fairwq_prefetchw(batch->fifo.next->next);
	fairwq_slot_fill_locked(batch, slot, work);
	fairwq_cost_charge_locked(&slot->turn);
	fairwq_batch_turns_locked(batch, 1);
	fairwq_batch_fire_barriers_locked(batch);
	fairwq_batch_new_head_locked(batch);
	fairwq_window_turns_locked(batch, 1);
}

/*
 * A turn for a work that waits in a constraint, and was taken out of there. It
 * is not queued. To charge the turn, and to undo that the batch is held for it,
 * is the caller's.
 */
void fairwq_batch_take_waiting_locked(struct fairwq_batch *batch, struct fairwq_slot *slot,
				      struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	work->stamp = 0;
	if (!(work->place & FAIRWQ_PLACE_TOLD))
		trace_fairwq_queue(batch, work);
	work->place = 0;
	WRITE_ONCE(work->constraint, NULL);
	fairwq_slot_fill_locked(batch, slot, work);
	atomic_long_set(&work->data,
			(long)batch | FAIRWQ_WORK_PENDING | FAIRWQ_WORK_LINKED);
	if (batch->max_queued)
		atomic_dec(&batch->nr_queued);
}

/*
 * It is queued, and the batch not held for it any more. What was pushed by now
 * is in front of it: if that is not in order yet, it is pushed, too.
 */
void fairwq_batch_link_waiting_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	bool pushed = !list_empty(&batch->sort_link) || !llist_empty(&batch->incoming);
	bool told = work->place & FAIRWQ_PLACE_TOLD;

	lockdep_assert_held(&batch->pool->lock);

	fairwq_admit_locked(work);
	work->stamp = fairwq_stamp(batch, fairwq_leave_trail(work));
	if (!told)
		trace_fairwq_queue(batch, work);
	if (pushed) {
		/* Who has the lock next puts it into order: no barrier is needed. */
		llist_add(&work->llnode, &batch->incoming);
	} else {
		atomic_long_set(&work->data,
				(long)batch | FAIRWQ_WORK_PENDING | FAIRWQ_WORK_LINKED);
		work->place = FAIRWQ_PLACE_FIFO;
		list_add_tail(&work->node, &batch->fifo);
		batch->nr_fifo++;
	}
	if (!fairwq_mutant(SERIAL_NOT_HELD))
		atomic_dec(&batch->nr_held);
}

/* A turn that was taken is not used: it was not one. It has been refunded. */
static void fairwq_batch_untake_locked(struct fairwq_batch *batch)
{
	struct fairwq_pool *pool = batch->pool;

	lockdep_assert_held(&pool->lock);

	/* Unless the counters were reset in between. */
	if (batch->stats->turns)
		batch->stats->turns--;
	if (pool->counter[FAIRWQ_TURNS])
		pool->counter[FAIRWQ_TURNS]--;
}

/*
 * A turn that was taken cannot be used now: its item becomes the batch's first
 * again, and the turn goes on when it is taken the next time.
 */
void fairwq_batch_put_back_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	fairwq_think_again_locked(batch->pool);	/* those come behind */
	work->place = (work->place & ~FAIRWQ_PLACE_MASK) | FAIRWQ_PLACE_FIFO;
	list_add(&work->node, &batch->fifo);
	batch->nr_fifo++;
	if (batch->max_queued)
		atomic_inc(&batch->nr_queued);
	fairwq_batch_untake_locked(batch);
	fairwq_batch_new_head_locked(batch);
}

/* Nothing is queued and nothing runs. */
bool fairwq_batch_is_idle_locked(const struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	return list_empty(&batch->fifo) && list_empty(&batch->sort_link) &&
	       llist_empty(&batch->incoming) && !fairwq_batch_in_flight_locked(batch);
}

/* And nothing can come. */
bool fairwq_batch_drained_locked(const struct fairwq_batch *batch)
{
	if (!batch->closed || (batch->reaped && !fairwq_mutant(DISPOSE_TWICE)))
		return false;
	if (fairwq_mutant(DISPOSE_NONEMPTY))
		return true;
	return fairwq_batch_is_idle_locked(batch) && !atomic_read(&batch->nr_held);
}

/* What was measured; most turns are not. */
static void fairwq_turn_stats_locked(const struct fairwq_turn *turn)
{
	struct fairwq_batch_stats *stats = turn->batch->stats;

	if (turn->run) {
		stats->run_time += turn->run;
		turn->batch->pool->run_time += turn->run;
		fairwq_hist_add(&stats->run, turn->run);
		ewma_fairwq_run_add(&stats->run_avg, min(turn->run, FAIRWQ_RUN_TIME_MAX_NS));
	}
	if (turn->stamp)
		fairwq_hist_add(&stats->wait, turn->wait);
}

/* The last one to leave a closed batch has it reaped. */
void fairwq_batch_reap_locked(struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	if (!fairwq_batch_drained_locked(batch) || batch->reaping ||
	    fairwq_mutant(DISPOSE_LEAK))
		return;
	batch->reaping = true;
	queue_work(fairwq_reap_wq, &batch->reap_work.work);
}

/* Turns are over. The batch may be gone when the lock is dropped. */
static void fairwq_batch_turns_over_locked(struct fairwq_batch *batch, unsigned int color,
					   unsigned int nr)
{
	lockdep_assert_held(&batch->pool->lock);

	batch->in_flight[color] -= nr;
	if (batch->barrier && batch->barrier->color == color && !batch->in_flight[color])
		fairwq_barrier_done_locked(batch);
	fairwq_batch_unattend_locked(batch);
	if (batch->max_active && !list_empty(&batch->away_link))
		fairwq_batch_update_locked(batch);	/* there may be room for the next */
	else
		fairwq_batch_set_away_locked(batch);
	fairwq_batch_reap_locked(batch);
}

/* There is nothing to be told of @turn but that it is over. */
static bool fairwq_turn_is_plain(const struct fairwq_turn *turn)
{
	return !turn->run && !turn->stamp && !turn->helped && !turn->off;
}

/* How many in a row are plain, and differ in nothing that is told. */
static unsigned int fairwq_turns_alike_locked(const struct fairwq_slot *slot,
					      unsigned int max)
{
	const struct fairwq_turn *first = &slot->turn;
	const struct fairwq_pool *pool = first->batch->pool;
	unsigned int i;

	lockdep_assert_held(&pool->lock);

	if (pool->policy == FAIRWQ_FAIR_TIME || !list_empty(&pool->waiters))
		return 0;
	for (i = 0; i < max; i++)
		if (slot[i].turn.batch != first->batch || slot[i].turn.color != first->color ||
		    !fairwq_turn_is_plain(&slot[i].turn))
			break;
	return i;
}

/*
 * The functions of the first of these @nr turns have returned: of as many as
 * can be told of at once. Returns how many. Not of one that is off: its batch
 * may be gone.
 */
unsigned int fairwq_batch_turns_end_locked(const struct fairwq_slot *slot, unsigned int nr)
{
	const struct fairwq_turn *turn = &slot->turn;
	struct fairwq_batch *batch = turn->batch;
	unsigned int alike;

	if (turn->off)
		return 1;
	lockdep_assert_held(&batch->pool->lock);
	alike = fairwq_turns_alike_locked(slot, nr);
	nr = alike ?: 1;
	batch->stats->done += nr;
	if (!alike) {
		fairwq_turn_stats_locked(turn);
		fairwq_cost_settle_locked(turn);
		if (turn->helped)
			batch->pool->counter[FAIRWQ_STOLEN]++;
		if (unlikely(!list_empty(&batch->pool->waiters)))
			fairwq_waiters_done_locked(batch->pool, turn->number);
	}
	fairwq_batch_turns_over_locked(batch, turn->color, nr);
	return nr;
}

/* A turn was taken, and its item is gone without having been started. */
void fairwq_batch_turn_drop_locked(struct fairwq_batch *batch, unsigned int color)
{
	fairwq_batch_untake_locked(batch);
	fairwq_batch_turns_over_locked(batch, color, 1);
}

/* Out of the FIFO, for good. */
void fairwq_batch_remove_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	bool head = list_is_first(&work->node, &batch->fifo);
	unsigned int place = work->place;

	lockdep_assert_held(&batch->pool->lock);

	fairwq_batch_unlink_locked(batch, work);
	if (head) {
		fairwq_batch_fire_barriers_locked(batch);
		fairwq_batch_new_head_locked(batch);
	}
	if (place & FAIRWQ_PLACE_TAKEN)
		fairwq_batch_turns_over_locked(batch, !!(place & FAIRWQ_PLACE_COLOR), 1);
	else
		fairwq_batch_reap_locked(batch);
}
