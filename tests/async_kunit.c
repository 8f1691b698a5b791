// SPDX-License-Identifier: GPL-2.0
/*
 * Turns that go on after their function has returned. Until a turn is completed
 * it counts for its batch, its serializer and its pool, but the runner is free.
 */
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/timer.h>

#include "lib/hook.h"
#include "lib/look.h"

/* An item whose turn goes on until it is completed. */
struct async_item {
	struct fairwq_work work;
	struct fairwq_async async;
	struct completion returned;	/* the function is about to return */
	bool goes_on;			/* return value of fairwq_async_begin() */
	bool at_once;			/* completed by its own function */
	u64 cost;			/* ns */
	struct timer_list timer;
	unsigned int again;		/* times that it is still to be queued again */
	unsigned long delay;		/* jiffies to its completion by @timer: some, no more */
	struct fairwq_batch *batch;
	/* Runs of this item; turns of the batch that go on; runs of the other item. */
	atomic_t *runs, *inside, *other;
	int of_other;			/* @other when this item ran for the last time */
	atomic_t most;			/* largest value of @inside */
};

static void async_item_fn(struct fairwq_work *work)
{
	struct async_item *item = container_of(work, struct async_item, work);

	item->goes_on = fairwq_async_begin(&item->async);
	if (item->at_once)
		fairwq_async_complete(&item->async, item->cost);
	complete(&item->returned);
}

static struct async_item *async_item(struct kunit *test)
{
	struct async_item *item = kunit_kzalloc(test, sizeof(*item), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, item);
	fairwq_work_init(&item->work, async_item_fn);
	init_completion(&item->returned);
	return item;
}

/* Queue an item, and wait until its turn goes on. */
static struct async_item *start(struct kunit *test, struct fairwq_batch *batch)
{
	struct async_item *item = async_item(test);

	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &item->work));
	mock_await(test, &item->returned);
	KUNIT_ASSERT_TRUE(test, item->goes_on);
	return item;
}

/* Make an item that completes @done. */
static struct mock_item *plain(struct kunit *test, struct completion *done)
{
	struct mock_item *item = mock_item(test, 'p');

	init_completion(done);
	item->done = done;
	return item;
}

static unsigned int nr_async(struct kunit *test)
{
	struct mock *mock = test->priv;

	return READ_ONCE(mock->pool->crew.nr_async);
}

/* ---- limits ------------------------------------------------------------- */

/* A turn that goes on counts in max_active of its batch, but another batch has the runner. */
static void runner_is_free_and_the_batch_is_not(struct kunit *test)
{
	const struct fairwq_batch_attrs one = { .max_active = 1 };
	struct fairwq_batch *a = mock_begin(test, 1), *b;
	struct completion beside, behind;
	struct mock_item *next, *other;
	struct async_item *item;

	b = mock_batch_with(test, "one", &one);
	mock_open(test);
	item = start(test, b);
	next = plain(test, &behind);
	other = plain(test, &beside);
	mock_may_refuse(fairwq_queue(b, &next->work));
	mock_may_refuse(fairwq_queue(a, &other->work));
	mock_await(test, &beside);
	KUNIT_EXPECT_FALSE(test, completion_done(&behind));
	mock_until(test, nr_async(test) == 1);
	fairwq_async_complete(&item->async, 0);
	mock_await(test, &behind);
	KUNIT_EXPECT_EQ(test, 0U, nr_async(test));
}

/* The function may complete its own turn. Then the turn ends when the function returns. */
static void turn_may_be_completed_before_the_return(struct kunit *test)
{
	const struct fairwq_batch_attrs one = { .max_active = 1 };
	struct fairwq_batch *b;
	struct async_item *item;
	int i;

	mock_begin(test, 1);
	b = mock_batch_with(test, "one", &one);
	mock_open(test);
	item = async_item(test);
	item->at_once = true;
	for (i = 0; i < 10; i++) {
		reinit_completion(&item->returned);
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(b, &item->work));
		mock_await(test, &item->returned);
	}
	fairwq_batch_flush(b);
	KUNIT_EXPECT_TRUE(test, item->goes_on);
	KUNIT_EXPECT_EQ(test, 0U, nr_async(test));
}

/* A serializer starts its next item when the turn of the item before is completed. */
static void serializer_waits_for_the_end(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct async_item *first = async_item(test);
	struct fairwq_serializer serial;
	struct completion beside, behind;
	struct mock_item *next = plain(test, &behind), *other = plain(test, &beside);

	mock_open(test);
	fairwq_serializer_init(&serial);
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&serial, a, &first->work));
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&serial, a, &next->work));
	mock_await(test, &first->returned);
	mock_until(test, nr_async(test) == 1);
	mock_may_refuse(fairwq_queue(a, &other->work));
	mock_await(test, &beside);
	KUNIT_EXPECT_FALSE(test, completion_done(&behind));
	fairwq_async_complete(&first->async, 0);
	mock_await(test, &behind);
	fairwq_serializer_destroy(&serial);
}

/* What a turn costs after its function is no run time, also if it has ended before that. */
static void cost_is_no_run_time(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct async_item *item = async_item(test);
	struct mock *mock = test->priv;
	unsigned long average;
	unsigned int i;

	mock_open(test);
	item->at_once = true;
	item->cost = 60ULL * NSEC_PER_SEC;
	for (i = 0; i < 8; i++) {
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &item->work));
		fairwq_batch_flush(a);
	}
	raw_spin_lock_irq(&mock->pool->lock);
	average = ewma_fairwq_run_read(&a->stats->run_avg);
	raw_spin_unlock_irq(&mock->pool->lock);
	KUNIT_EXPECT_LT(test, average, (unsigned long)FAIRWQ_RUN_TIME_MAX_NS);
}

/* A turn that goes on counts in its limiter. */
static void limiter_counts_it(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct async_item *item[2] = { async_item(test), async_item(test) };
	struct fairwq_serializer limiter;
	struct completion behind;
	struct mock_item *next = plain(test, &behind);
	int i;

	mock_open(test);
	fairwq_limiter_init(&limiter, 2);
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&limiter, a, &item[i]->work));
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&limiter, a, &next->work));
	for (i = 0; i < 2; i++)
		mock_await(test, &item[i]->returned);
	mock_until(test, nr_async(test) == 2);
	KUNIT_EXPECT_FALSE(test, completion_done(&behind));
	fairwq_async_complete(&item[1]->async, 0);
	mock_await(test, &behind);
	fairwq_async_complete(&item[0]->async, 0);
	fairwq_serializer_destroy(&limiter);
}

/* With max_async turns that go on, a pool starts no other item until one is completed. */
static void pool_has_a_limit_of_its_own(struct kunit *test)
{
	const struct fairwq_pool_attrs attrs = { .max_active = 1, .max_async = 2 };
	struct fairwq_pool *pool = fairwq_pool_create(&attrs, "async");
	struct async_item *item[2] = { async_item(test), async_item(test) };
	struct completion behind;
	struct fairwq_batch *b;
	struct mock_item *next;
	int i;

	mock_begin(test, 1);
	mock_open(test);
	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	b = fairwq_pool_default_batch(pool, FAIRWQ_PRIO_NORMAL);
	next = plain(test, &behind);
	/* The pool has one runner, so the third item cannot start before both turns go on. */
	fairwq_batch_pause(b);
	for (i = 0; i < 2; i++)
		mock_may_refuse(fairwq_queue(b, &item[i]->work));
	mock_may_refuse(fairwq_queue(b, &next->work));
	fairwq_batch_resume(b);
	for (i = 0; i < 2; i++)
		mock_await(test, &item[i]->returned);
	mock_until(test, !mock_nr_begun(pool));
	KUNIT_EXPECT_EQ(test, 2U, READ_ONCE(pool->crew.nr_async));
	KUNIT_EXPECT_FALSE(test, completion_done(&behind));
	fairwq_async_complete(&item[0]->async, 0);
	mock_await(test, &behind);
	fairwq_async_complete(&item[1]->async, 0);
	fairwq_pool_destroy(pool);
}

/* An item that waits for @go, and whose turn then goes on. */
struct begun_item {
	struct fairwq_work work;
	struct fairwq_async async;
	struct limited *limited;
	bool goes_on;
};

#define MOST_LIMITED	24

/* A pool with a max_async, and its items. */
struct limited {
	struct fairwq_pool *pool;
	struct fairwq_batch *batch[3];
	struct completion go;
	atomic_t entered, outstanding, ran;
	struct begun_item item[MOST_LIMITED];
};

static void begun_fn(struct fairwq_work *work)
{
	struct begun_item *item = container_of(work, struct begun_item, work);
	struct limited *limited = item->limited;

	atomic_inc(&limited->entered);
	wait_for_completion(&limited->go);
	atomic_inc(&limited->outstanding);
	WRITE_ONCE(item->goes_on, fairwq_async_begin(&item->async));
}

static struct limited *limited_new(struct kunit *test, unsigned int max_active,
				   unsigned int max_async)
{
	const struct fairwq_pool_attrs attrs = {
		.max_active = max_active, .max_async = max_async, .max_in_flight = 1,
	};
	struct limited *limited = kunit_kzalloc(test, sizeof(*limited), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, limited);
	init_completion(&limited->go);
	limited->pool = fairwq_pool_create(&attrs, "limited");
	KUNIT_ASSERT_FALSE(test, IS_ERR(limited->pool));
	for (i = 0; i < ARRAY_SIZE(limited->batch); i++) {
		limited->batch[i] = fairwq_batch_create(limited->pool, NULL, "%d", i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(limited->batch[i]));
	}
	for (i = 0; i < MOST_LIMITED; i++) {
		limited->item[i].limited = limited;
		fairwq_work_init(&limited->item[i].work, begun_fn);
		KUNIT_EXPECT_EQ(test, 1, fairwq_queue(limited->batch[i % 3],
						      &limited->item[i].work));
	}
	return limited;
}

static void limited_end(struct limited *limited)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(limited->batch); i++)
		fairwq_batch_dispose(limited->batch[i]);
	fairwq_pool_destroy(limited->pool);
}

/* Complete one turn that goes on. */
static void complete_one(struct kunit *test, struct limited *limited)
{
	struct begun_item *item = limited->item;

	while (!READ_ONCE(item->goes_on))
		KUNIT_ASSERT_TRUE(test, ++item < limited->item + MOST_LIMITED);
	item->goes_on = false;
	atomic_dec(&limited->outstanding);
	fairwq_async_complete(&item->async, 0);
}

/* Check that @least items or more have entered, and that no other runner is about to. */
static bool all_have_entered(struct limited *limited, unsigned int least)
{
	unsigned int entered = atomic_read(&limited->entered);

	return entered >= least && mock_nr_begun(limited->pool) == entered;
}

/*
 * Items that run may go on, too. So no more begin than may, and each that is
 * completed lets one more begin.
 */
static void items_that_run_keep_the_limit(struct kunit *test)
{
	static const struct {
		unsigned int max_active, max_async;
	} row[] = {
		{ 1, 1 }, { 2, 1 }, { 4, 1 }, { 4, 3 }, { 4, 4 }, { 4, 5 }, { 8, 2 }, { 8, 9 },
	};
	unsigned int i, left, least, most;
	struct limited *limited;

	for (i = 0; i < ARRAY_SIZE(row); i++) {
		limited = limited_new(test, row[i].max_active, row[i].max_async);
		least = min(row[i].max_active, row[i].max_async);
		/* A runner that takes an item kicks the next in the same step. */
		mock_until(test, all_have_entered(limited, least));
		complete_all(&limited->go);
		for (left = MOST_LIMITED; left; left--) {
			mock_until(test, !mock_nr_begun(limited->pool));
			most = min(left, row[i].max_async);
			KUNIT_EXPECT_EQ(test, most,
					(unsigned int)atomic_read(&limited->outstanding));
			complete_one(test, limited);
		}
		limited_end(limited);
	}
}

/* Check whether the standstill of @pool was reported. */
static bool standstill_told(const struct fairwq_pool *pool)
{
	return READ_ONCE(pool->watch.full_told) == READ_ONCE(pool->crew.began_at);
}

/*
 * At the limit nothing begins. If that lasts while items wait, it is reported,
 * once, also if hung_ms changes meanwhile.
 */
static void standstill_at_the_limit_is_reported(struct kunit *test)
{
	struct limited *limited = limited_new(test, 2, 1);
	struct fairwq_pool *pool = limited->pool;
	int i;

	complete_all(&limited->go);
	for (i = 0; i < 2; i++) {
		mock_until(test, !mock_nr_begun(pool));
		pr_info("# expect-splat begin pool limited: no seat is left\n");
		/* No item runs now, so none is taken for hung. */
		fairwq_set_hung_ms(pool, 1);
		mock_until(test, standstill_told(pool));
		fairwq_set_hung_ms(pool, FAIRWQ_DFL_HUNG_MS);
		pr_info("# expect-splat end\n");
		/* Not again, also after a look that does not take it for one. */
		mock_tick(pool);
		fairwq_set_hung_ms(pool, 1);
		msleep(20);
		mock_tick(pool);
		fairwq_set_hung_ms(pool, FAIRWQ_DFL_HUNG_MS);
		complete_one(test, limited);
	}
	for (i = 2; i < MOST_LIMITED; i++) {
		mock_until(test, !mock_nr_begun(pool));
		complete_one(test, limited);
	}
	limited_end(limited);
}

/* A pool may be at its limit while nothing waits. That is reported when an item has come. */
static void full_pool_is_reported_when_an_item_waits(struct kunit *test)
{
	const struct fairwq_pool_attrs attrs = { .max_active = 2, .max_async = 1 };
	struct fairwq_pool *pool = fairwq_pool_create(&attrs, "full");
	struct async_item *item = async_item(test);
	struct completion behind;
	struct mock_item *next = plain(test, &behind);

	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	KUNIT_EXPECT_EQ(test, 1, mock_pool_queue(pool, &item->work));
	mock_await(test, &item->returned);
	mock_until(test, !mock_nr_begun(pool));
	fairwq_set_hung_ms(pool, 1);
	msleep(20);
	mock_tick(pool);
	KUNIT_EXPECT_FALSE(test, standstill_told(pool));
	pr_info("# expect-splat begin pool full: no seat is left\n");
	KUNIT_EXPECT_EQ(test, 1, mock_pool_queue(pool, &next->work));
	mock_until(test, standstill_told(pool));
	fairwq_set_hung_ms(pool, FAIRWQ_DFL_HUNG_MS);
	pr_info("# expect-splat end\n");
	fairwq_async_complete(&item->async, 0);
	mock_await(test, &behind);
	fairwq_pool_destroy(pool);
}

/* ---- flush and dispose ------------------------------------------------- */

static bool flush_batch(struct fairwq_work *data)
{
	fairwq_batch_flush((void *)data);
	return true;
}

/* A flush of the batch waits until the turn is completed. */
static void flush_waits_for_the_end(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct async_item *item;
	struct call *call;

	mock_open(test);
	item = start(test, a);
	mock_until(test, nr_async(test) == 1);
	call = mock_call_start(test, flush_batch, (void *)a);
	mock_call_settle(test, call);
	KUNIT_EXPECT_FALSE(test, completion_done(&call->done));
	fairwq_async_complete(&item->async, 0);
	mock_call_end(test, call);
}

/* A disposed batch is released after its turn is completed. */
static void batch_is_released_after_the_end(struct kunit *test)
{
	atomic_t nr = ATOMIC_INIT(0);
	const struct fairwq_batch_attrs attrs = { .priv = &nr, .released = mock_released_count };
	struct fairwq_batch *b;
	struct async_item *item;

	mock_begin(test, 1);
	b = mock_own_batch(test, "going", &attrs);
	mock_open(test);
	item = start(test, b);
	mock_until(test, nr_async(test) == 1);
	fairwq_batch_dispose(b);
	mock_wait_released();
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&nr));
	fairwq_async_complete(&item->async, 0);
	mock_until(test, atomic_read(&nr) == 1);
}

/* ---- cost -------------------------------------------------------------- */

/* Complete the turn at @item->cost, and queue the item again. */
static void queue_again(struct fairwq_work *work)
{
	struct async_item *item = container_of(work, struct async_item, work);

	atomic_inc(item->runs);
	if (fairwq_async_begin(&item->async))
		fairwq_async_complete(&item->async, item->cost);
	if (item->again--)
		mock_may_refuse(fairwq_queue(item->batch, &item->work));
	else
		item->of_other = atomic_read(item->other);
}

/* A turn is settled once: node.open counts the turns that are charged and not settled. */
static void turn_is_settled_once(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct mock_gate *gate = mock_gate_new(test);
	struct async_item *item;

	mock_open(test);
	mock_gate_enter(test, a, gate);
	item = start(test, a);
	mock_until(test, nr_async(test) == 1);
	KUNIT_EXPECT_EQ(test, 2, READ_ONCE(a->node.open));
	fairwq_async_complete(&item->async, 0);
	KUNIT_EXPECT_EQ(test, 1, READ_ONCE(a->node.open));
	complete_all(&gate->open);
	fairwq_batch_flush(a);
	mock_let_settle(a);
	KUNIT_EXPECT_EQ(test, 0, READ_ONCE(a->node.open));
}

/* A batch whose turns cost 10 ms each after their function gets fewer turns than the other. */
static void batch_pays_for_what_went_on(struct kunit *test)
{
	atomic_t runs[2] = { ATOMIC_INIT(0), ATOMIC_INIT(0) };
	struct async_item *item[2];
	u64 stalled;
	int i;

	mock_pool_by(test, 1, FAIRWQ_FAIR_TIME);
	for (i = 0; i < 2; i++) {
		item[i] = async_item(test);
		fairwq_work_init(&item[i]->work, queue_again);
		item[i]->batch = mock_batch(test, i ? "dear" : "cheap");
		item[i]->runs = &runs[i];
		item[i]->other = &runs[!i];
		item[i]->again = 3000;
		item[i]->cost = i ? 10 * NSEC_PER_MSEC : 0;
		mock_may_refuse(fairwq_queue(item[i]->batch, &item[i]->work));
	}
	mock_open(test);
	for (i = 0; i < 2; i++)
		mock_until(test, atomic_read(&runs[i]) == 3001);
	for (i = 0; i < 2; i++)
		fairwq_batch_flush(item[i]->batch);
	/* A few, and one for each 10 ms that the host stopped an item of the other. */
	stalled = div_u64(item[0]->batch->node.service, 10 * NSEC_PER_MSEC);
	KUNIT_EXPECT_LT(test, (u64)item[0]->of_other, 300 + stalled);
}

/* Each item of a burst pays for what went on, also if the last one still goes on. */
static void each_item_of_a_burst_pays(struct kunit *test)
{
	struct fairwq_serializer serial;
	struct async_item *item[4];
	struct fairwq_batch *a = mock_begin_by(test, 1, FAIRWQ_FAIR_TIME);
	int i;

	mock_set_guess(a, 100);
	fairwq_serializer_init(&serial);
	fairwq_serializer_set_inline(&serial, FAIRWQ_MAX_INLINE_US);
	for (i = 0; i < 4; i++) {
		item[i] = async_item(test);
		item[i]->at_once = i < 3;
		item[i]->cost = 10 * NSEC_PER_MSEC;
		KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&serial, a, &item[i]->work));
	}
	mock_open(test);
	mock_await(test, &item[3]->returned);
	mock_until(test, nr_async(test) == 1);
	fairwq_async_complete(&item[3]->async, item[3]->cost);
	fairwq_batch_flush(a);
	mock_let_settle(a);
	KUNIT_EXPECT_GE(test, a->node.service, 40ULL * NSEC_PER_MSEC);
	fairwq_serializer_destroy(&serial);
}

/* Expect that @batch has paid for 20 s, once: a function that the host stops takes less. */
static void expect_paid_once(struct kunit *test, const struct fairwq_batch *batch)
{
	u64 paid = batch->node.service;

	KUNIT_EXPECT_GE(test, paid, 20ULL * NSEC_PER_SEC);
	KUNIT_EXPECT_LT(test, paid, 40ULL * NSEC_PER_SEC);
}

/* It makes no difference for what a batch pays whether the function or the rest ends first. */
static void pays_whoever_comes_first(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin_by(test, 1, FAIRWQ_FAIR_TIME);
	struct fairwq_batch *b = mock_batch(test, "b");
	struct async_item *first = async_item(test), *second;

	mock_open(test);
	first->at_once = true;
	first->cost = 20ULL * NSEC_PER_SEC;
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &first->work));
	mock_await(test, &first->returned);
	second = start(test, b);
	mock_until(test, nr_async(test) == 1);
	fairwq_async_complete(&second->async, 20ULL * NSEC_PER_SEC);
	fairwq_batch_flush(a);
	fairwq_batch_flush(b);
	mock_let_settle(b);
	expect_paid_once(test, a);
	expect_paid_once(test, b);
}

/* ---- where it is refused ----------------------------------------------- */

static bool task_goes_on;
static struct completion task_began;

static void task_fn(struct fairwq_task *self)
{
	struct fairwq_async async;

	complete(&task_began);
	task_goes_on = fairwq_async_begin(&async);
	fairwq_async_complete(&async, 0);
}

/* Outside an item fairwq_async_begin() returns false, and completing has no effect. */
static void elsewhere_nothing_goes_on(struct kunit *test)
{
	struct fairwq_async async;

	KUNIT_EXPECT_FALSE(test, fairwq_async_begin(&async));
	fairwq_async_complete(&async, 0);
}

struct forking_item {
	struct fairwq_work work;
	struct completion done;
};

static void forking_fn(struct fairwq_work *work)
{
	struct forking_item *item = container_of(work, struct forking_item, work);
	struct fairwq_task self, task;

	fairwq_task_here(&self);
	fairwq_task_init(&task, task_fn);
	fairwq_fork(&self, &task);
	mock_fork_until(&self, &task_began);
	fairwq_join(&self, &task);
	complete(&item->done);
}

/* In a stolen task fairwq_async_begin() returns false. */
static void stolen_task_does_not_go_on(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct mock *mock = test->priv;
	struct forking_item item;

	mock_open(test);
	init_completion(&item.done);
	init_completion(&task_began);
	fairwq_work_init_onstack(&item.work, forking_fn);
	task_goes_on = false;
	mock_may_refuse(fairwq_queue(a, &item.work));
	mock_await(test, &item.done);
	KUNIT_EXPECT_GT(test, mock_counter(mock->pool, FAIRWQ_STOLEN), 0ULL);
	KUNIT_EXPECT_FALSE(test, task_goes_on);
	fairwq_batch_flush(a);
}

/* ---- all at once ------------------------------------------------------- */

#define ITEMS	64
#define ROUNDS	MOCK_MANY(400U)

static void timer_fn(struct timer_list *timer)
{
	struct async_item *item = container_of(timer, struct async_item, timer);

	atomic_dec(item->inside);
	/* Before the item is queued again, because its next turn needs @async. */
	fairwq_async_complete(&item->async, item->cost);
	if (item->again) {
		item->again--;
		mock_may_refuse(fairwq_queue(item->batch, &item->work));
	}
}

static void storm_fn(struct fairwq_work *work)
{
	struct async_item *item = container_of(work, struct async_item, work);
	int inside = atomic_inc_return(item->inside);

	if (inside > atomic_read(&item->most))
		atomic_set(&item->most, inside);
	atomic_inc(item->runs);
	if (WARN_ON(!fairwq_async_begin(&item->async)))
		return;
	mod_timer(&item->timer, jiffies + item->delay);
}

/*
 * Timers end turns of two batches. @inside counts those of each that run or go
 * on. Return: the most that were inside at a time.
 */
static int storm(struct kunit *test, struct fairwq_batch *b[2], atomic_t *inside[2])
{
	struct async_item **item = kunit_kcalloc(test, ITEMS, sizeof(*item), GFP_KERNEL);
	atomic_t runs = ATOMIC_INIT(0);
	int i, most = 0;

	KUNIT_ASSERT_NOT_NULL(test, item);
	for (i = 0; i < ITEMS; i++) {
		item[i] = async_item(test);
		fairwq_work_init(&item[i]->work, storm_fn);
		timer_setup(&item[i]->timer, timer_fn, 0);
		item[i]->runs = &runs;
		item[i]->inside = inside[i % 2];
		item[i]->batch = b[i % 2];
		item[i]->again = ROUNDS / ITEMS;
		item[i]->delay = i % 3;
		item[i]->cost = i * 1000;
		mock_may_refuse(fairwq_queue(item[i]->batch, &item[i]->work));
	}
	mock_until(test, atomic_read(&runs) == ITEMS * (int)(ROUNDS / ITEMS + 1));
	mock_until(test, !nr_async(test));
	for (i = 0; i < 2; i++)
		fairwq_batch_flush(b[i]);
	for (i = 0; i < ITEMS; i++) {
		most = max(most, atomic_read(&item[i]->most));
		timer_delete_sync(&item[i]->timer);
	}
	return most;
}

/* No batch has more in flight than its max_active. */
static void turns_end_from_timers(struct kunit *test)
{
	const struct fairwq_batch_attrs few = { .max_active = 4 };
	atomic_t inside[2] = { }, *of[2] = { &inside[0], &inside[1] };
	struct fairwq_batch *b[2];
	int i;

	mock_pool_by(test, 2, FAIRWQ_FAIR_TIME);
	for (i = 0; i < 2; i++)
		b[i] = mock_batch_with(test, i ? "b" : "a", &few);
	mock_open(test);
	KUNIT_EXPECT_LE(test, storm(test, b, of), 4);
}

/* No pool has more in flight than its max_async, also while items end and begin. */
static void storm_keeps_the_limit_of_the_pool(struct kunit *test)
{
	static const struct fairwq_pool_attrs attrs = { .max_active = 4, .max_async = 5 };
	atomic_t inside = ATOMIC_INIT(0), *of[2] = { &inside, &inside };
	struct mock *mock = test->priv;
	struct fairwq_batch *b[2];

	mock->pool = fairwq_pool_create(&attrs, "storm");
	KUNIT_ASSERT_FALSE(test, IS_ERR(mock->pool));
	b[0] = mock_batch(test, "a");
	b[1] = mock_batch(test, "b");
	KUNIT_EXPECT_LE(test, storm(test, b, of), 5);
}

static struct kunit_case async_cases[] = {
	KUNIT_CASE(runner_is_free_and_the_batch_is_not),
	KUNIT_CASE(turn_may_be_completed_before_the_return),
	KUNIT_CASE(serializer_waits_for_the_end),
	KUNIT_CASE(cost_is_no_run_time),
	KUNIT_CASE(limiter_counts_it),
	KUNIT_CASE(pool_has_a_limit_of_its_own),
	KUNIT_CASE(items_that_run_keep_the_limit),
	KUNIT_CASE(standstill_at_the_limit_is_reported),
	KUNIT_CASE(full_pool_is_reported_when_an_item_waits),
	KUNIT_CASE(flush_waits_for_the_end),
	KUNIT_CASE(batch_is_released_after_the_end),
	KUNIT_CASE(turn_is_settled_once),
	KUNIT_CASE(batch_pays_for_what_went_on),
	KUNIT_CASE(each_item_of_a_burst_pays),
	KUNIT_CASE(pays_whoever_comes_first),
	KUNIT_CASE(elsewhere_nothing_goes_on),
	KUNIT_CASE(stolen_task_does_not_go_on),
	KUNIT_CASE(turns_end_from_timers),
	KUNIT_CASE(storm_keeps_the_limit_of_the_pool),
	{ }
};

static struct kunit_suite async_suite = {
	.name = "fairwq_async",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = async_cases,
};

kunit_test_suite(async_suite);

MODULE_DESCRIPTION("KUnit: turns that go on after their function");
MODULE_LICENSE("GPL");
