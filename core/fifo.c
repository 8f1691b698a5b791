// SPDX-License-Identifier: GPL-2.0
/*
 * FIFO: the queue of a batch, and whether the batch is in the fair tree.
 *
 *   inbox --> fifo --> turn --> its end
 *            ^ ^ |
 *   moved ---+ | +--> parked --+
 *              +--- put back --+
 *
 * The next item of a serializer is moved to the FIFO at once, if it is of the
 * batch whose turn ends: see waitlist.c.
 *
 * After each change fairwq_fifo_update_locked() decides whether the batch is in
 * the tree. If the FIFO is empty, it takes over what is in the inbox.
 *
 * A barrier is a place in the FIFO. It leaves it when all before it has been
 * taken. If it is that of a flush, an own work, new turns then get the other
 * color, and the flush waits for the turns of the old color.
 *
 * Locking: pool->lock.
 * Invariants: see struct fairwq_batch in types.h.
 *
 * Models: tests/models/queue.pml, fork.pml.
 */
#include <linux/completion.h>
#include <linux/export.h>
#include <linux/prefetch.h>

#include "compat.h"
#include "policy.h"
#include "fifo.h"
#include "inbox.h"
#include "runner.h"
#include "seat.h"
#include "stats.h"
#include "testing.h"
#include "tree.h"
#include "waiter.h"

/* For what ends, RCU works and sweeps: a pool's own workqueue may be destroyed. */
struct workqueue_struct *fairwq_reap_wq;
FAIRWQ_TEST_EXPORT(fairwq_reap_wq);
/* Calls released(), which may sleep. So nothing else may be queued here. */
struct workqueue_struct *fairwq_release_wq;
FAIRWQ_TEST_EXPORT(fairwq_release_wq);

/*
 * Under round robin, a turn of a batch that stays eligible writes five lines of
 * memory, besides those of its runner. In the pool that is the one of its lock,
 * and two of the rank's node; in the batch the first one of its node, and the
 * one that begins with the FIFO. Debugging makes locks larger, and a CPU of 32
 * bits has other sizes.
 */
#define IN_ONE_LINE(type, first, last)					\
	(!IS_ENABLED(CONFIG_SMP) || !IS_ENABLED(CONFIG_64BIT) ||		\
	 SMP_CACHE_BYTES < 64 ||					\
	 offsetof(type, first) / SMP_CACHE_BYTES ==			\
	 (offsetofend(type, last) - 1) / SMP_CACHE_BYTES)
static_assert(IN_ONE_LINE(struct fairwq_node, next, joined));
static_assert(IN_ONE_LINE(struct fairwq_node, row, lap));
static_assert(IN_ONE_LINE(struct fairwq_batch, fifo, done));
static_assert(IS_ENABLED(CONFIG_DEBUG_SPINLOCK) || IS_ENABLED(CONFIG_DEBUG_LOCK_ALLOC) ||
	      IN_ONE_LINE(struct fairwq_pool, lock, crew.nr_taken));

/* Least time that a turn with an item that slept counts in the average, ns. */
#define SLEPT_NS		16000ULL

/*
 * Check whether one more item of @batch may begin now. One that was parked has
 * not begun: what it waits for may wait for an item behind it.
 */
bool fairwq_fifo_has_room_locked(const struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	return !batch->max_active ||
	       batch->in_flight[0] + batch->in_flight[1] - batch->nr_parked < batch->max_active;
}

/*
 * Check whether a turn of @batch may begin with @work. Nothing holds a part of
 * an item that has begun (promise 15).
 */
static inline bool batch_may_start_locked(const struct fairwq_batch *batch,
					  const struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	if (fairwq_is_of_item(work))
		return true;
	return !batch->paused && !batch->nr_canceling && fairwq_fifo_has_room_locked(batch);
}

/*
 * Take all that is in the inbox over to the end of the FIFO. If that is empty
 * then, no runner will look there again, so the next queue call must activate
 * the batch.
 * Model: tests/models/queue.pml.
 *
 * Return: the word of @work, which is not in there, unless it is NULL.
 */
long fairwq_fifo_take_over_locked(struct fairwq_batch *batch, const struct fairwq_work *work)
{
	struct fairwq_inbox *inbox = &batch->inbox;

	lockdep_assert_held(&batch->pool->lock);

	/*
	 * Then all in there is of calls under way, one of which will activate
	 * the batch. A call that is over by now has seen or set @watched under
	 * inbox->lock, so it is seen here, too. No model.
	 */
	if (!work && !READ_ONCE(inbox->watched))
		return 0;
	guard(raw_spinlock)(&inbox->lock);
	list_splice_tail_init(&inbox->works, &batch->fifo);
	WRITE_ONCE(inbox->watched, !list_empty(&batch->fifo));
	return work ? atomic_long_read(&work->data) : 0;
}

/* Put @batch into the tree or take it out, unless it is so already. */
static void set_eligible_locked(struct fairwq_batch *batch, bool eligible)
{
	struct fairwq_tree *tree = &batch->pool->tree;

	lockdep_assert_held(&batch->pool->lock);

	if (eligible == fairwq_node_eligible(&batch->node))
		return;
	if (!eligible) {
		fairwq_tree_del(tree, &batch->node);
		return;
	}
	if (!batch->node.service)
		tree->first = fairwq_policy_first_locked(batch->pool, fairwq_head_locked(batch));
	fairwq_tree_add(tree, &batch->node);
}

/*
 * Put @batch into the tree if it is eligible, take it out if it is not. Callers
 * that may have changed that must call this before they drop the lock.
 */
void fairwq_fifo_update_locked(struct fairwq_batch *batch)
{
	const struct fairwq_work *head;

	lockdep_assert_held(&batch->pool->lock);

	if (list_empty(&batch->fifo))
		fairwq_fifo_take_over_locked(batch, NULL);
	head = list_first_entry_or_null(&batch->fifo, struct fairwq_work, node);
	set_eligible_locked(batch, head && batch_may_start_locked(batch, head));
	/* No turn takes new items. A cancel that is under way comes here again. */
	if (unlikely(batch->dropping) && head && !fairwq_is_of_item(head) && !batch->nr_canceling)
		fairwq_end_waiters_tell_locked(batch->pool, true);
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
	struct fairwq_work *head;

	lockdep_assert_held(&batch->pool->lock);

	while (!list_empty(&batch->fifo)) {
		head = fairwq_head_locked(batch);
		if (!(head->flags & FAIRWQ_WORK_BARRIER))
			return;
		list_del_init(&head->node);
		if (!(head->flags & FAIRWQ_WORK_OWN))
			continue;
		batch->color ^= 1;
		batch->flush = &container_of(head, struct fairwq_own_work, work)->done;
		if (!batch->in_flight[!batch->color])
			flush_done_locked(batch);
		else
			fairwq_runner_yield_locked(batch);
	}
}

/* Fire the barriers that are first now, and place @batch in the tree by its new head. */
static void batch_new_head_locked(struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	batch_fire_barriers_locked(batch);
	fairwq_fifo_update_locked(batch);
}

/* Put a barrier behind everything that is queued now. */
void fairwq_fifo_add_barrier_locked(struct fairwq_batch *batch, struct fairwq_work *barrier)
{
	lockdep_assert_held(&batch->pool->lock);

	barrier->flags |= FAIRWQ_WORK_BARRIER;
	fairwq_fifo_take_over_locked(batch, NULL);
	list_add_tail(&barrier->node, &batch->fifo);
	batch_new_head_locked(batch);
}

/*
 * Count @work as in flight, unless it is counted already.
 * Return: the color of its turn.
 */
static unsigned int batch_color_locked(struct fairwq_batch *batch,
				       const struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	if (work->flags & (FAIRWQ_WORK_PARKED | FAIRWQ_WORK_FORK))
		return !!(work->flags & FAIRWQ_WORK_COLOR);
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
	turn->serializer = work->serializer;
	turn->stamp = fairwq_stamp_ns(work->stamp);
	turn->number = ++pool->crew.turn_number;
	turn->charge.color = batch_color_locked(batch, work);
	batch->nr_parked -= !!(work->flags & FAIRWQ_WORK_PARKED);
	turn->timed = false;
	turn->slept = false;
	turn->charge.nr = 1;
	turn->charge.took = 0;
	turn->later = 0;
	pool->crew.nr_taken++;
	if (unlikely(!list_empty(&pool->waits.works)) &&
	    fairwq_waiters_take_locked(pool, work, turn->number))
		WRITE_ONCE(container_of(turn, struct fairwq_runner, turn)->yield, true);
}

/*
 * Queue a work that is TAKEN: put it behind all that @batch has. It does not
 * come through the inbox. So it is counted by one less in @nr_out. If it is
 * held, that is in the section that ends the hold, so that fairwq_inbox_nr()
 * and max_queued count it once.
 */
void fairwq_fifo_append_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	struct fairwq_inbox *inbox = &batch->inbox;

	lockdep_assert_held(&batch->pool->lock);

	fairwq_fifo_take_over_locked(batch, NULL);
	fairwq_inbox_stamp(batch, work);
	if (unlikely(work->flags & FAIRWQ_WORK_HELD)) {
		guard(raw_spinlock)(&inbox->lock);
		work->flags &= ~FAIRWQ_WORK_HELD;
		fairwq_inbox_forget_locked(batch);
		WRITE_ONCE(batch->nr_out, batch->nr_out - 1);
	} else {
		WRITE_ONCE(batch->nr_out, batch->nr_out - 1);
	}
	atomic_long_set(&work->data, fairwq_word(batch, FAIRWQ_STATE_QUEUED));
	list_add_tail(&work->node, &batch->fifo);
	fairwq_fifo_update_locked(batch);
}

/* Take the head of the FIFO as @turn, charge its cost, and move @batch on in the tree. */
void fairwq_fifo_take_locked(struct fairwq_batch *batch, struct fairwq_turn *turn)
{
	struct fairwq_work *work = fairwq_head_locked(batch);

	list_del(&work->node);
	if (likely(!fairwq_is_of_item(work)))	/* parts were not counted as queued */
		WRITE_ONCE(batch->nr_out, batch->nr_out + 1);
	/* The next turn's list_del() writes to the item after the next. */
	prefetchw(batch->fifo.next->next);
	turn_fill_locked(batch, turn, work);
	fairwq_policy_charge_locked(turn, work);
	batch_new_head_locked(batch);
}

/*
 * Put the work of a task at the head of the FIFO: a part of the item of @turn.
 * It counts as in flight. Model: tests/models/fork.pml.
 */
void fairwq_fifo_add_part_locked(const struct fairwq_turn *turn, struct fairwq_work *work)
{
	struct fairwq_batch *batch = turn->batch;

	lockdep_assert_held(&batch->pool->lock);

	work->flags = FAIRWQ_WORK_FORK | (turn->charge.color ? FAIRWQ_WORK_COLOR : 0);
	batch->in_flight[turn->charge.color]++;
	fairwq_fifo_put_back_locked(batch, work);
}

/* Park the head, which still runs, and is in no list of @batch any more. It counts as in flight. */
void fairwq_fifo_park_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	batch->nr_parked += !(work->flags & FAIRWQ_WORK_PARKED);
	if (batch_color_locked(batch, work))
		work->flags |= FAIRWQ_WORK_COLOR;
	work->flags |= FAIRWQ_WORK_PARKED;
	atomic_long_set(&work->data, fairwq_word(batch, FAIRWQ_STATE_PARKED));
	batch_new_head_locked(batch);
}

/*
 * Put an item that was parked, or a part of one, at the head of the FIFO. An
 * item comes behind the parts that are there, because those need no place.
 */
void fairwq_fifo_put_back_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	struct list_head *at = &batch->fifo;

	lockdep_assert_held(&batch->pool->lock);

	if (!fairwq_is_of_item(work))
		while (!list_is_last(at, &batch->fifo) &&
		       fairwq_is_of_item(list_entry(at->next, struct fairwq_work, node)))
			at = at->next;
	atomic_long_set(&work->data, fairwq_word(batch, FAIRWQ_STATE_QUEUED));
	list_add(&work->node, at);
	batch_new_head_locked(batch);
}

/* Check whether @batch has nothing queued and nothing in flight. */
bool fairwq_fifo_is_idle_locked(const struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	return !fairwq_inbox_nr_queued(batch) && !batch->in_flight[0] && !batch->in_flight[1];
}

/*
 * Return the stamp of the item of @batch that waits for longest, unless it is
 * parked; 0: none does. Barriers and parts of items have no stamp.
 */
u64 fairwq_fifo_oldest_locked(struct fairwq_batch *batch)
{
	struct fairwq_work *work;

	lockdep_assert_held(&batch->pool->lock);

	list_for_each_entry(work, &batch->fifo, node)
		if (work->stamp)
			return work->stamp;
	guard(raw_spinlock)(&batch->inbox.lock);
	work = list_first_entry_or_null(&batch->inbox.works, struct fairwq_work, node);
	return work ? work->stamp : 0;
}

/* Add what was measured of @turn to the statistics; most quick turns are not measured. */
static void turn_stats_locked(const struct fairwq_turn *turn)
{
	struct fairwq_batch *batch = turn->batch;
	struct fairwq_batch_stats *stats = batch->stats;
	u64 each = turn->charge.took, known;

	if (turn->charge.took) {
		if (turn->charge.nr > 1)
			each = max(div_u64(each, turn->charge.nr), 1ULL);
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

	if (batch->reaping || !batch->disposed || batch->nr_canceling || batch->nr_dropping ||
	    !fairwq_fifo_is_idle_locked(batch) || fairwq_inbox_nr(batch))
		return;
	batch->reaping = true;
	queue_work(batch->released ? fairwq_release_wq : fairwq_reap_wq, &batch->reap_work);
}

/*
 * Count a turn or a parked item of @color as ended; complete the flush that
 * waits for it. The batch may be gone when the lock is dropped.
 */
static void turn_over_locked(struct fairwq_batch *batch, unsigned int color)
{
	lockdep_assert_held(&batch->pool->lock);

	batch->in_flight[color]--;
	if (unlikely(batch->flush) && batch->color != color && !batch->in_flight[color])
		flush_done_locked(batch);
	if (batch->max_active)
		fairwq_fifo_update_locked(batch);	/* the next item may have room */
	fairwq_fifo_reap_locked(batch);
}

/*
 * Count what @turn has done in its batch, all but its last item, whose function
 * has returned. What went on after functions is no run time, but the turn pays
 * for it.
 */
static void turn_count_locked(struct fairwq_turn *turn)
{
	struct fairwq_batch *batch = turn->batch;
	unsigned int more = turn->charge.nr - 1;

	lockdep_assert_held(&batch->pool->lock);

	batch->done += more;
	batch->pool->crew.nr_taken += more;
	if (turn->charge.took || turn->stamp || turn->slept)
		turn_stats_locked(turn);
	if (unlikely(!list_empty(&batch->pool->waits.works)))
		fairwq_waiters_done_locked(batch->pool, turn->number);
	turn->charge.took += turn->later;
}

/* Hand a turn whose function has returned over to @turn->async; it stays in flight. */
void fairwq_fifo_detach_locked(struct fairwq_turn *turn)
{
	struct fairwq_pool *pool = turn->batch->pool;
	struct fairwq_async *async = turn->async;

	lockdep_assert_held(&pool->lock);

	turn_count_locked(turn);
	async->serializer = turn->serializer;
	async->charge = turn->charge;
	async->runner = NULL;
	pool->crew.nr_async++;
	fairwq_seat_update_locked(pool);
	turn->async = NULL;
	turn->batch = NULL;
}

/* Settle a turn of @batch that has ended, once, by what it took. */
void fairwq_fifo_settle_locked(struct fairwq_batch *batch, const struct fairwq_charge *charge)
{
	lockdep_assert_held(&batch->pool->lock);

	batch->done++;
	turn_over_locked(batch, charge->color);
	/*
	 * Last: a batch that was at its limit joins the tree above, and must
	 * join as one with a turn in flight.
	 */
	fairwq_policy_settle_locked(batch, charge);
}

/* End @turn: tell its batch, which may be gone when the lock is dropped. */
void fairwq_fifo_turn_end_locked(struct fairwq_turn *turn)
{
	lockdep_assert_held(&turn->batch->pool->lock);

	turn->batch->pool->crew.nr_quick -= turn->quick;
	turn_count_locked(turn);
	fairwq_fifo_settle_locked(turn->batch, &turn->charge);
	turn->batch = NULL;
}

/* Take the work of a task, which no runner has begun, out of the FIFO. Its word is 0 then. */
void fairwq_fifo_del_part_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	list_del(&work->node);
	batch_new_head_locked(batch);
	turn_over_locked(batch, !!(work->flags & FAIRWQ_WORK_COLOR));
	atomic_long_set(&work->data, 0);
}

/*
 * A cancel has taken @work, which was QUEUED or PARKED, out of its list. The
 * caller must then set its word, before it drops the lock.
 */
void fairwq_fifo_removed_locked(struct fairwq_batch *batch, struct fairwq_work *work)
{
	lockdep_assert_held(&batch->pool->lock);

	WRITE_ONCE(batch->nr_out, batch->nr_out + 1);
	batch_new_head_locked(batch);
	if (work->flags & FAIRWQ_WORK_PARKED) {
		batch->nr_parked--;
		turn_over_locked(batch, !!(work->flags & FAIRWQ_WORK_COLOR));
	} else {
		fairwq_fifo_reap_locked(batch);
	}
	work->flags &= FAIRWQ_WORK_OWN;
}
