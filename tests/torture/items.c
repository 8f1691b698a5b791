// SPDX-License-Identifier: GPL-2.0
/*
 * Items that live as long as the test. Every actor may queue, cancel, disable
 * and flush them, to any batch of any pool. Each item counts its calls and
 * runs, which must agree in the end.
 *
 * Limits: most delayed items are modified by one actor at a time, see
 * tt_item_is_loose().
 */
#define pr_fmt(fmt) "fairwq-torture: " fmt

#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/hash.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "torture.h"

struct tt_item *tt_items;

static void tt_spin(unsigned int us)
{
	ktime_t end = ktime_add_us(ktime_get(), us);

	while (ktime_before(ktime_get(), end))
		cpu_relax();
}

/* Report a failure. For bug=failure: report none, or another error. */
static void tt_fail(u32 dice)
{
	tt_count(TT_FAILED, 1);
	if (tt_bug != TT_BUG_FAILURE)
		fairwq_report_failure(-EIO);
	else if (dice % 2)
		fairwq_report_failure(-EPERM);
}

/* Sleep in a blocking section. */
static void tt_block(u32 dice)
{
	fairwq_block_begin();
	if (dice % 2)
		schedule_timeout_uninterruptible(dice % 8);
	else
		usleep_range(20, 200);
	fairwq_block_end();
}

/* Wait for items that have this mutex, and some of them sleep. */
static void tt_contend(u32 dice)
{
	static DEFINE_MUTEX(mutex);

	guard(mutex)(&mutex);
	if (dice % 4)
		tt_spin(dice % 64);
	else
		usleep_range(20, 100);
}

/* Take some time, give the place away, or fail, as an item may. Most items do nothing. */
void tt_behave(u32 dice)
{
	dice %= 1024;
	if (dice < 2)
		schedule_timeout_uninterruptible(1 + 5 * dice);
	else if (dice < 16)
		usleep_range(20, 200);
	else if (dice < 20)
		tt_spin(300);
	else if (dice < 28)
		tt_contend(dice);
	else if (dice < 64)
		tt_spin(dice % 16);
	else if (dice < 80)
		cond_resched();
	else if (dice < 84)
		tt_fail(dice);
	else if (dice < 92)
		tt_block(dice);
	else if (dice < 100)
		tt_go_on(hash_32(jiffies + dice, 32));
}

/* Call tt_behave() for one item in many. */
void tt_behave_seldom(u32 dice)
{
	if (unlikely(!(dice % 256)))
		tt_behave(dice / 256);
}

/* Count the result of a queue call, and report an unexpected error. Return: @ret. */
int tt_queued(int ret)
{
	tt_count(ret > 0 ? TT_QUEUED : ret ? TT_REFUSED : TT_ALREADY, 1);
	if (ret < 0 && ret != -ESHUTDOWN && ret != -EAGAIN && ret != -ECANCELED)
		tt_problem("a queue call returned %d\n", ret);
	return ret;
}

/* ---- calls that are counted -------------------------------------------- */

/*
 * fairwq_mod_delayed() takes the item out if another actor queues it meanwhile,
 * and does not report how often. Therefore an actor must hold a delayed item to
 * queue or modify it. A few items are modified without that. For these the
 * counts may differ.
 */
#define TT_MOD_UNSURE	4	/* a call takes the item out fewer times, uncounted */

/* Check whether @item is one of those few. */
static bool tt_item_is_loose(const struct tt_item *item)
{
	return item->nr % 64 == 1;
}

/* Hold @item, if it is a delayed one. Return: false if another actor holds it. */
static bool tt_item_hold(struct tt_item *item)
{
	return item->kind != TT_DELAYED || !test_and_set_bit_lock(0, &item->held);
}

static void tt_item_unhold(struct tt_item *item)
{
	if (item->kind == TT_DELAYED)
		clear_bit_unlock(0, &item->held);
}

/* Call the queue call of the kind of @item. Return: its result. */
static int tt_item_call(struct tt_item *item, struct tt_stream *way,
			struct fairwq_batch *batch, unsigned long delay)
{
	switch (item->kind) {
	case TT_DELAYED:
		return fairwq_queue_delayed(batch, &item->dwork, delay);
	case TT_RCU:
		return fairwq_queue_rcu(batch, &item->rwork);
	default:
		return way ? tt_stream_queue(way, batch, &item->work) :
			     fairwq_queue(batch, &item->work);
	}
}

/* Note the result of a queue call that tt_item_queue() has not made. */
void tt_item_queued(struct tt_item *item, int ret)
{
	if (ret == 1)
		atomic_long_inc(&item->queued);
	tt_queued(ret);
}

/*
 * Queue @item to @batch: a plain item through the stream @way, unless it is
 * NULL; a delayed one after @delay. Return: the result of the queue call;
 * -EBUSY without a call if another actor holds the item.
 */
int tt_item_queue(struct tt_item *item, struct tt_stream *way, struct fairwq_batch *batch,
		  unsigned long delay)
{
	bool planted = !(atomic_long_read(&item->queued) % 256);
	int ret;

	if (!tt_item_hold(item))
		return -EBUSY;
	if (planted && tt_bug == TT_BUG_LOST)
		ret = 1;
	else
		ret = tt_item_call(item, way, batch, delay);
	tt_item_unhold(item);
	if (ret == 1 && !(planted && tt_bug == TT_BUG_TWICE))
		atomic_long_inc(&item->queued);
	else if (ret == 1)
		return 0;
	return tt_queued(ret);
}

/*
 * Begin a call that may take @item out of the queue; tt_item_cancel_end() must
 * follow. See tt_op_stamp().
 */
static void tt_item_cancel_begin(struct tt_item *item)
{
	atomic_inc(&item->cancels_begun);
	smp_mb__after_atomic();	/* pairs with tt_undisturbed() */
}

static void tt_item_cancel_end(struct tt_item *item)
{
	smp_mb__before_atomic();	/* pairs with tt_undisturbed() */
	atomic_inc(&item->cancels_ended);
}

/*
 * Modify a delayed item. If another actor holds it, only a loose item is
 * modified, and its counts are unsure from then on.
 */
void tt_item_mod(struct tt_item *item, struct fairwq_batch *batch, unsigned long delay)
{
	bool held;
	int ret;

	if (item->kind != TT_DELAYED)
		return;
	held = tt_item_hold(item);
	if (!held && !tt_item_is_loose(item))
		return;
	if (!held)
		atomic_long_add(TT_MOD_UNSURE, &item->unsure);
	tt_item_cancel_begin(item);
	ret = fairwq_mod_delayed(batch, &item->dwork, delay);
	tt_item_cancel_end(item);
	if (held)
		tt_item_unhold(item);
	if (!ret)
		atomic_long_inc(&item->queued);
	/* Another actor may have disabled the item when it was taken out. */
	if (ret == -ECANCELED)
		atomic_long_inc(&item->unsure);
	tt_queued(ret < 0 ? ret : !ret);
}

/* Call @cancel, and count the item if it was taken out. Return: true if it was. */
bool tt_item_cancel(struct tt_item *item, bool (*cancel)(struct fairwq_work *work))
{
	bool ret;

	tt_item_cancel_begin(item);
	ret = cancel(&item->work);
	tt_item_cancel_end(item);
	if (ret) {
		atomic_long_inc(&item->canceled);
		tt_count(TT_CANCELED, 1);
	}
	return ret;
}

void tt_item_flush(struct tt_item *item)
{
	switch (item->kind) {
	case TT_DELAYED:
		fairwq_delayed_work_flush(&item->dwork);
		break;
	case TT_RCU:
		fairwq_rcu_work_flush(&item->rwork);
		break;
	default:
		fairwq_work_flush(&item->work);
	}
}

/* Count an item that a cancel of its batch has taken out. */
void tt_dropped(struct fairwq_work *work)
{
	struct tt_item *item = container_of(work, struct tt_item, work);

	if (tt_is_errand(work))
		return;
	if (tt_is_step(work))
		return tt_step_dropped(work);
	if (tt_is_packet(work))
		return tt_packet_dropped(work);
	if (item < tt_items || item >= tt_items + TT_NR_ITEMS)
		return tt_oneshot_dropped(work);
	atomic_long_inc(&item->dropped);
	tt_count(TT_DROPPED, 1);
}

/* ---- the function ------------------------------------------------------ */

/*
 * Check that @item is not inside already, and note the stamps that it sees.
 * Return: the number of its runs.
 */
static u32 tt_item_enter(struct tt_item *item)
{
	unsigned int i;

	/* Full barrier: pairs with tt_items_quiesce(). */
	if (atomic_xchg(&item->inside, 1))
		tt_problem("item %u runs twice at once\n", item->nr);
	if (fairwq_current_work() != &item->work ||
	    !(fairwq_work_busy(&item->work) & FAIRWQ_BUSY_RUNNING))
		tt_problem("item %u runs, and is told otherwise\n", item->nr);
	for (i = 0; i < tt_nr_threads; i++)
		WRITE_ONCE(item->seen[i], READ_ONCE(item->stamp[i]));
	tt_count(TT_RAN, 1);
	return atomic_long_inc_return(&item->ran);
}

static void tt_item_leave(struct tt_item *item)
{
	atomic_set_release(&item->inside, 0);
}

/* Queue an item from its own function, or do anything that any context may do. */
static void tt_item_mischief(struct tt_item *item, u32 dice)
{
	struct tt_actor actor = { .nr = -1 };
	struct fairwq_batch *batch;

	if (READ_ONCE(tt_stopping) || dice % 8)
		return;
	prandom_seed_state(&actor.rnd, dice);
	if (!tt_random(&actor, 3)) {
		tt_act(&actor, true);
		return;
	}
	batch = tt_get_batch(&actor);
	if (batch)
		tt_item_queue(item, tt_shared_any(&actor), batch, tt_random(&actor, 2));
	fairwq_batch_put(batch);
}

static void tt_item_fn(struct fairwq_work *work)
{
	struct tt_item *item = container_of(work, struct tt_item, work);
	u32 run = tt_item_enter(item);
	u32 dice = hash_64(((u64)run << 32) | item->nr, 32);

	if (tt_bug == TT_BUG_REENTRANT && !(run % 16)) {
		tt_item_enter(item);	/* as a second runner would */
		atomic_long_dec(&item->ran);
	}
	tt_judge_user(GLOBAL_ROOT_UID);
	tt_judge_look(dice % TT_NR_POOLS);
	/* If it queues itself here, it must run again, but not at once. */
	tt_item_mischief(item, dice >> 12);
	tt_fork(dice >> 20);
	tt_behave(dice % 256);	/* these items are few: let more of them be slow */
	tt_item_leave(item);
}

/* ---- the beginning and the end ----------------------------------------- */

static void tt_item_init(struct tt_item *item, unsigned int nr)
{
	item->nr = nr;
	item->kind = nr % 4 == 1 ? TT_DELAYED : nr % 16 == 2 ? TT_RCU : TT_PLAIN;
	switch (item->kind) {
	case TT_DELAYED:
		fairwq_delayed_work_init(&item->dwork, tt_item_fn);
		break;
	case TT_RCU:
		fairwq_rcu_work_init(&item->rwork, tt_item_fn);
		break;
	default:
		fairwq_work_init(&item->work, tt_item_fn);
	}
}

int tt_items_init(void)
{
	unsigned int i;

	tt_items = kvcalloc(TT_NR_ITEMS, sizeof(*tt_items), GFP_KERNEL);
	if (!tt_items)
		return -ENOMEM;
	for (i = 0; i < TT_NR_ITEMS; i++)
		tt_item_init(&tt_items[i], i);
	return 0;
}

/* Compare the counts of @item, which must have ended. */
static void tt_item_judge(struct tt_item *item)
{
	long queued = atomic_long_read(&item->queued);
	long ended = atomic_long_read(&item->ran) + atomic_long_read(&item->canceled) +
		     atomic_long_read(&item->dropped);

	if (atomic_read(&item->inside) || fairwq_work_pending(&item->work))
		tt_problem("item %u has not ended\n", item->nr);
	if (ended > queued)
		tt_problem("item %u was queued %ld times and ran more: %ld\n",
			   item->nr, queued, ended);
	if (ended < queued - atomic_long_read(&item->unsure))
		tt_problem("item %u was queued %ld times and %ld are lost (%ld unsure)\n",
			   item->nr, queued, queued - ended,
			   atomic_long_read(&item->unsure));
}

/* Wait for the items that may queue others. An item that begins now sees tt_stopping. */
void tt_items_quiesce(void)
{
	struct tt_item *item;

	smp_mb();	/* store tt_stopping, load inside; pairs with tt_item_enter() */
	for (item = tt_items; item < tt_items + TT_NR_ITEMS; item++)
		while (atomic_read(&item->inside))
			schedule_timeout_uninterruptible(1);
}

/* Flush and cancel all items, and compare their counts. No actor may queue any more. */
void tt_items_end(void)
{
	struct tt_item *item;

	for (item = tt_items; item < tt_items + TT_NR_ITEMS; item++) {
		tt_item_flush(item);
		tt_item_cancel(item, fairwq_work_cancel_sync);
		if (tt_bug == TT_BUG_HUNG)
			atomic_inc(&item->inside);
		tt_item_judge(item);
	}
}
