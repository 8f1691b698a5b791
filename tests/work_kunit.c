// SPDX-License-Identifier: GPL-2.0
/*
 * Works: cancel, disable and flush one work, and cancel what a batch has queued
 * (promises 1 and 11).
 *
 * The cases differ in where the work is: in the FIFO of its batch, parked, or
 * running. A work is parked if its turn comes while its last run goes on.
 */
#include "core/tree.h"
#include "lib/hook.h"
#include "lib/order.h"

/* ---- cancel ----------------------------------------------------------- */

/* Cancel @work. Expect that it was pending, and is not any more. */
static void expect_canceled(struct kunit *test, struct fairwq_work *work)
{
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_cancel(work));
}

static void cancel_of_an_idle_work(struct kunit *test)
{
	struct mock_item *item = mock_item(test, 'x');
	struct fairwq_batch *a = mock_begin(test, 2);

	KUNIT_EXPECT_FALSE(test, fairwq_work_cancel(&item->work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_cancel_sync(&item->work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_flush(&item->work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &item->work));
	mock_until(test, !fairwq_work_pending(&item->work));
	fairwq_batch_flush(a);
	KUNIT_EXPECT_FALSE(test, fairwq_work_cancel(&item->work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_cancel_sync(&item->work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_flush(&item->work));
}

/* Of @nr queued items the one at index @which is cancelled. @left is what runs then. */
struct place {
	unsigned int nr, which;
	const char *left, *desc;
};

static const struct place places[] = {
	{ 4, 0, "bcd", "the first" },
	{ 4, 2, "abd", "one in the middle" },
	{ 4, 3, "abc", "the last" },
	{ 1, 0, "", "the only one" },
};

static void place_desc(const struct place *place, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s", place->desc);
}

KUNIT_ARRAY_PARAM(place, places, place_desc);

/* A cancel leaves the order of the other items as it was. The work runs if queued again. */
static void cancel_of_a_queued_work(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct mock_item *item[4];
	struct fairwq_batch *a = mock_begin(test, 1);
	char order[8];
	unsigned int i;

	for (i = 0; i < place->nr; i++)
		item[i] = mock_queue_item(test, a, 'a' + i);
	expect_canceled(test, &item[place->which]->work);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &item[place->which]->work));
	expect_canceled(test, &item[place->which]->work);
	KUNIT_EXPECT_EQ(test, place->nr > 1, fairwq_node_eligible(&a->node));
	KUNIT_EXPECT_EQ(test, place->nr - 1, fairwq_inbox_nr_queued(a));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &item[place->which]->work));
	snprintf(order, sizeof(order), "%s%c", place->left, 'a' + place->which);
	mock_expect(test, order);
}

static bool flush_batch_of(struct fairwq_work *work)
{
	fairwq_batch_flush(fairwq_work_batch(work));
	return true;
}

/* Check whether a flush of @batch has put its barrier into the FIFO. */
static bool flush_is_queued(struct fairwq_batch *batch)
{
	struct fairwq_work *work;
	bool found = false;

	raw_spin_lock_irq(&batch->pool->lock);
	list_for_each_entry(work, &batch->fifo, node)
		found |= work->flags & FAIRWQ_WORK_BARRIER;
	raw_spin_unlock_irq(&batch->pool->lock);
	return found;
}

/*
 * A flush of the batch ends when the last item before it is cancelled. The
 * cancel of an item behind it does not end it.
 */
static void cancel_of_the_last_item_ends_a_flush(struct kunit *test)
{
	struct mock_item *before, *after;
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 1);
	struct call *call;

	before = mock_queue_item(test, a, 'b');
	call = mock_call_start(test, flush_batch_of, &before->work);
	mock_until(test, flush_is_queued(a));
	after = mock_queue_item(test, a, 'a');
	expect_canceled(test, &after->work);
	KUNIT_EXPECT_FALSE(test, completion_done(&call->done));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &after->work));
	expect_canceled(test, &before->work);
	mock_call_end(test, call);
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_waiters(mock->pool));
	mock_expect(test, "a");
}

/* A cancelled work does not count in max_queued any more. */
static void cancel_gives_room_back(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_queued = 2 };
	struct mock_item *item = mock_item(test, 'c');
	struct fairwq_batch *a = mock_begin_with(test, 1, &attrs);
	struct mock_item *b;

	mock_queue_item(test, a, 'a');
	b = mock_queue_item(test, a, 'b');
	KUNIT_EXPECT_EQ(test, -EAGAIN, fairwq_queue(a, &item->work));
	expect_canceled(test, &b->work);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &item->work));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fairwq_queue(a, &b->work));
	KUNIT_EXPECT_EQ(test, 2UL, fairwq_batch_cancel(a, NULL));
	KUNIT_EXPECT_EQ(test, 0U, fairwq_batch_nr_queued(a));
	mock_queue_item(test, a, 'd');
	mock_queue_item(test, a, 'e');
	KUNIT_EXPECT_EQ(test, -EAGAIN, fairwq_queue(a, &b->work));
	mock_expect(test, "de");
}

/*
 * In a batch at its max_active a waiting work can be cancelled, and the item
 * behind it runs next. No call leaves a waiter, which later turns would have to
 * look at.
 */
static void cancel_in_a_limited_batch_lets_the_next_run(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_active = 1 };
	struct mock_gate *gate = mock_gate_new(test);
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin_with(test, 3, &attrs);
	struct mock_item *b;

	mock_gate_enter(test, a, gate);
	b = mock_queue_item(test, a, 'b');
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_waiters(mock->pool));
	expect_canceled(test, &b->work);
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_waiters(mock->pool));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &b->work));
	mock_queue_item(test, a, 'c');
	expect_canceled(test, &b->work);
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_waiters(mock->pool));
	complete_all(&gate->open);
	mock_until(test, READ_ONCE(mock->log.nr) == 1);
	KUNIT_EXPECT_STREQ(test, "c", &mock->log.text[0]);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_waiters(mock->pool));
}

static void cancel_fn(void *data)
{
	struct fairwq_work **work = data;

	if (!fairwq_work_cancel(*work))
		*work = NULL;
}

/* Works behind a running item can be cancelled, also from an interrupt. The others run. */
static void cancel_of_a_held_up_work(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct fairwq_batch *a = mock_held_begin(test, gate);
	struct mock *mock = test->priv;
	struct mock_item *item[4];
	struct fairwq_work *work;
	unsigned int i;
	u64 turns;

	for (i = 0; i < ARRAY_SIZE(item); i++)
		item[i] = mock_queue_item(test, a, 'a' + i);
	mock_held_go(test, a, gate, item[3]);
	turns = mock_nr_turns(mock->pool);
	expect_canceled(test, &item[0]->work);
	/* From an interrupt. */
	work = &item[2]->work;
	KUNIT_EXPECT_TRUE(test, mock_call_on_top(cancel_fn, &work));
	KUNIT_EXPECT_PTR_EQ(test, &item[2]->work, work);
	KUNIT_EXPECT_EQ(test, turns, mock_nr_turns(mock->pool));
	KUNIT_EXPECT_EQ(test, 1U, a->in_flight[0] + a->in_flight[1]);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &item[0]->work));
	complete_all(&gate->open);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_STREQ(test, "bda", &mock->log.text[0]);
}

/* The cancel of a parked work lets its run go on. There is no second run. */
static void cancel_of_a_parked_work(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_gate *gate;
	struct fairwq_batch *a = mock_begin(test, 3);

	gate = mock_parked_begin(test, a);
	expect_canceled(test, &gate->work);
	KUNIT_EXPECT_EQ(test, 0U, a->nr_parked);
	KUNIT_EXPECT_EQ(test, 1U, a->in_flight[0] + a->in_flight[1]);
	complete_all(&gate->open);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&gate->runs));
	KUNIT_EXPECT_EQ(test, 0ULL, mock_counter(mock->pool, FAIRWQ_PARKED));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &gate->work));
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&gate->runs));
}

/* A work that is parked because it runs in another pool can be cancelled. */
static void cancel_of_a_work_parked_elsewhere(struct kunit *test)
{
	struct fairwq_pool_attrs attrs = { .max_active = 1 };
	struct mock_gate *gate = mock_gate_new(test);
	struct fairwq_pool *elsewhere;
	struct fairwq_batch *a = mock_begin(test, 2);
	struct call *call;

	elsewhere = fairwq_pool_create(&attrs, "elsewhere");
	KUNIT_ASSERT_FALSE(test, IS_ERR(elsewhere));
	KUNIT_ASSERT_EQ(test, 1, mock_pool_queue(elsewhere, &gate->work));
	mock_await(test, &gate->entered);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &gate->work));
	mock_until(test, READ_ONCE(a->nr_parked) == 1);
	expect_canceled(test, &gate->work);
	KUNIT_EXPECT_EQ(test, 0U, a->in_flight[0] + a->in_flight[1]);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &gate->work));
	mock_until(test, READ_ONCE(a->nr_parked) == 1);
	/* A sync cancel waits for the run in the other pool. */
	call = mock_call_start(test, fairwq_work_cancel_sync, &gate->work);
	mock_until(test, mock_nr_waiters(elsewhere) == 1);
	KUNIT_EXPECT_EQ(test, 0U, a->nr_parked);
	KUNIT_EXPECT_FALSE(test, completion_done(&call->done));
	complete_all(&gate->open);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&gate->runs));
	fairwq_pool_destroy(elsewhere);
}

/* The run of a work cannot be cancelled, but the next run can. */
static void cancel_of_a_running_work(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct fairwq_batch *a = mock_begin(test, 2);

	mock_gate_enter(test, a, gate);
	KUNIT_EXPECT_FALSE(test, fairwq_work_cancel(&gate->work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &gate->work));
	expect_canceled(test, &gate->work);
	complete_all(&gate->open);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&gate->runs));
}

/* ---- flush ------------------------------------------------------------ */

/* Start a call of @fn, and wait until @nr calls wait in the pool. */
static struct call *start_waiting(struct kunit *test, bool (*fn)(struct fairwq_work *work),
				  struct fairwq_work *work, unsigned int nr)
{
	struct call *call = mock_call_start(test, fn, work);
	struct mock *mock = test->priv;

	mock_until(test, mock_nr_waiters(mock->pool) == nr);
	return call;
}

/* A flush of a queued work returns when the run of that work has ended. */
static void flush_of_a_queued_work(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct mock *mock = test->priv;
	struct call *call[3];
	struct fairwq_batch *a = mock_begin(test, 1);
	unsigned int i;

	mock_queue_item(test, a, 'a');
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &gate->work));
	mock_queue_item(test, a, 'b');
	/* Several flushes may wait for one work. */
	for (i = 0; i < ARRAY_SIZE(call); i++)
		call[i] = start_waiting(test, fairwq_work_flush, &gate->work, i + 1);
	mock_open(test);
	mock_await(test, &gate->entered);
	KUNIT_EXPECT_EQ(test, 3U, mock_nr_waiters(mock->pool));
	complete_all(&gate->open);
	for (i = 0; i < ARRAY_SIZE(call); i++)
		KUNIT_EXPECT_TRUE(test, mock_call_end(test, call[i]));
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_waiters(mock->pool));
	KUNIT_EXPECT_STREQ(test, "ab", &mock->log.text[0]);
}

/* A flush of a work that runs and is queued again waits for the second run. */
static void flush_of_a_parked_work(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_gate *gate;
	struct fairwq_batch *a = mock_begin(test, 3);
	struct call *call;

	gate = mock_parked_begin(test, a);
	call = start_waiting(test, fairwq_work_flush, &gate->work, 1);
	complete(&gate->open);
	/* This is the second run. complete() has let only the first one go on. */
	mock_await(test, &gate->entered);
	KUNIT_EXPECT_EQ(test, 1U, mock_nr_waiters(mock->pool));
	complete(&gate->open);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&gate->runs));
}

static void flush_of_a_running_work(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 2);
	struct call *call;

	mock_gate_enter(test, a, gate);
	call = start_waiting(test, fairwq_work_flush, &gate->work, 1);
	complete_all(&gate->open);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	KUNIT_EXPECT_FALSE(test, fairwq_work_flush(&gate->work));
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_waiters(mock->pool));
}

/* A flush ends when its work is cancelled, because the work will not run. */
static void flush_of_a_canceled_work(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct fairwq_batch *a = mock_held_begin(test, gate);
	struct mock *mock = test->priv;
	struct mock_item *held, *queued;
	struct call *call[2];

	held = mock_queue_item(test, a, 'p');
	mock_held_go(test, a, gate, held);
	queued = mock_queue_item(test, a, 'q');
	call[0] = start_waiting(test, fairwq_work_flush, &held->work, 1);
	call[1] = start_waiting(test, fairwq_work_flush, &queued->work, 2);
	expect_canceled(test, &held->work);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call[0]));
	KUNIT_EXPECT_EQ(test, 1UL, fairwq_batch_cancel(a, NULL));
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call[1]));
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_waiters(mock->pool));
	complete_all(&gate->open);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 0U, mock->log.nr);
}

/* An item that queues itself again until @stop is set, or until that is refused. */
struct endless {
	struct fairwq_work work;
	struct fairwq_batch *batch;
	unsigned int runs;
	bool stop;
};

static void endless_fn(struct fairwq_work *work)
{
	struct endless *endless = container_of(work, struct endless, work);

	endless->runs++;
	if (!READ_ONCE(endless->stop))
		mock_may_refuse(fairwq_queue(endless->batch, work));
}

static struct endless *endless_now;	/* that of the case that runs, or NULL */

static struct endless *endless_start(struct kunit *test, struct fairwq_batch *batch)
{
	struct endless *endless = kunit_kzalloc(test, sizeof(*endless), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, endless);
	endless_now = endless;
	fairwq_work_init(&endless->work, endless_fn);
	endless->batch = batch;
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &endless->work));
	return endless;
}

static bool flush_a_hundred_times(struct fairwq_work *work)
{
	unsigned int i;

	for (i = 0; i < 100; i++)
		fairwq_work_flush(work);
	return true;
}

/* A flush waits for one run, and not for those that are queued meanwhile. */
static void flush_of_an_endless_work(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct endless *endless;
	struct fairwq_batch *a = mock_begin(test, 2);

	endless = endless_start(test, a);
	mock_call_end(test, mock_call_start(test, flush_a_hundred_times, &endless->work));
	WRITE_ONCE(endless->stop, true);
	mock_call_end(test, mock_call_start(test, fairwq_work_flush, &endless->work));
	fairwq_batch_flush(a);
	KUNIT_EXPECT_FALSE(test, fairwq_work_flush(&endless->work));
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_waiters(mock->pool));
}

/* A flush in a paused batch waits. It ends when the disposal makes the item run. */
static void flush_in_a_paused_batch_ends_with_its_disposal(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_item *item;
	struct fairwq_batch *a;
	struct call *call;

	mock_pool(test, 2);
	a = mock_own_batch(test, "a", NULL);
	fairwq_batch_pause(a);
	item = mock_queue_item(test, a, 'a');
	call = start_waiting(test, fairwq_work_flush, &item->work, 1);
	fairwq_batch_dispose(a);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	KUNIT_EXPECT_EQ(test, 1U, mock->log.nr);
}

/* ---- cancel and wait -------------------------------------------------- */

/* A sync cancel waits until the function has returned. */
static void cancel_sync_waits_for_the_run(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct fairwq_batch *a = mock_begin(test, 2);
	struct call *call;

	mock_gate_enter(test, a, gate);
	call = start_waiting(test, fairwq_work_cancel_sync, &gate->work, 1);
	/* The work is disabled until then. */
	KUNIT_EXPECT_EQ(test, -ECANCELED, fairwq_queue(a, &gate->work));
	KUNIT_EXPECT_FALSE(test, completion_done(&call->done));
	complete_all(&gate->open);
	KUNIT_EXPECT_FALSE(test, mock_call_end(test, call));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &gate->work));
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&gate->runs));
}

/* If a work is queued and runs, a sync cancel cancels the queued run and waits for the other. */
static void cancel_sync_cancels_one_run_and_awaits_the_other(struct kunit *test)
{
	struct mock_gate *gate;
	struct fairwq_batch *a = mock_begin(test, 3);
	struct call *call[2];

	gate = mock_parked_begin(test, a);
	call[0] = start_waiting(test, fairwq_work_cancel_sync, &gate->work, 1);
	KUNIT_EXPECT_EQ(test, 0U, a->nr_parked);
	/* A second sync cancel waits, too. */
	call[1] = start_waiting(test, fairwq_work_cancel_sync, &gate->work, 2);
	complete_all(&gate->open);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call[0]));
	KUNIT_EXPECT_FALSE(test, mock_call_end(test, call[1]));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&gate->runs));
	KUNIT_EXPECT_EQ(test, 0, (int)gate->work.disabled);
}

/* A sync cancel ends an item that queues itself, because the queue call is refused. */
static void cancel_sync_of_an_endless_work(struct kunit *test)
{
	struct endless *endless;
	struct fairwq_batch *a = mock_begin(test, 2);
	unsigned int i, runs;

	for (i = 0; i < 100; i++) {
		endless = endless_start(test, a);
		mock_call_end(test, mock_call_start(test, fairwq_work_cancel_sync, &endless->work));
		runs = READ_ONCE(endless->runs);
		fairwq_batch_flush(a);
		KUNIT_EXPECT_EQ(test, runs, READ_ONCE(endless->runs));
		KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&endless->work));
	}
}

/* ---- disable ---------------------------------------------------------- */

/*
 * A work can be queued again after as many enables as disables. The first
 * disable cancels it.
 */
static void disable_is_counted(struct kunit *test)
{
	struct fairwq_work *work;
	struct mock_item *item;
	struct fairwq_batch *a = mock_begin(test, 1);

	item = mock_queue_item(test, a, 'x');
	work = &item->work;
	KUNIT_EXPECT_TRUE(test, fairwq_work_disable(work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(work));
	KUNIT_EXPECT_EQ(test, -ECANCELED, fairwq_queue(a, work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_disable_sync(work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_enable(work));
	KUNIT_EXPECT_EQ(test, -ECANCELED, fairwq_queue(a, work));
	/* A sync cancel, which disables and enables, leaves the work disabled. */
	KUNIT_EXPECT_FALSE(test, fairwq_work_cancel_sync(work));
	KUNIT_EXPECT_EQ(test, -ECANCELED, fairwq_queue(a, work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_enable(work));
	mock_queue_item(test, a, 'a');
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, work));
	mock_expect(test, "ax");
}

/* A disable returns while the function runs. A sync disable waits for the function. */
static void disable_of_a_running_work(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct fairwq_batch *a = mock_begin(test, 2);
	struct call *call;

	mock_gate_enter(test, a, gate);
	KUNIT_EXPECT_FALSE(test, fairwq_work_disable(&gate->work));
	call = start_waiting(test, fairwq_work_disable_sync, &gate->work, 1);
	KUNIT_EXPECT_FALSE(test, completion_done(&call->done));
	complete_all(&gate->open);
	KUNIT_EXPECT_FALSE(test, mock_call_end(test, call));
	KUNIT_EXPECT_FALSE(test, fairwq_work_enable(&gate->work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_enable(&gate->work));
}

/* A work that is refused because it is disabled does not count in max_queued. */
static void disabled_takes_no_room(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_queued = 1 };
	struct mock_item *item = mock_item(test, 'x');
	struct fairwq_batch *a = mock_begin_with(test, 1, &attrs);

	KUNIT_EXPECT_FALSE(test, fairwq_work_disable(&item->work));
	KUNIT_EXPECT_EQ(test, -ECANCELED, fairwq_queue(a, &item->work));
	KUNIT_EXPECT_EQ(test, 0U, fairwq_batch_nr_queued(a));
	mock_queue_item(test, a, 'a');
	KUNIT_EXPECT_TRUE(test, fairwq_work_enable(&item->work));
	mock_expect(test, "a");
}

static void enable_too_often_warns(struct kunit *test)
{
	struct mock_item *item = mock_item(test, 'x');

	pr_info("# expect-splat begin fairwq_work_enable\n");
	KUNIT_EXPECT_TRUE(test, fairwq_work_enable(&item->work));
	pr_info("# expect-splat end\n");
	KUNIT_EXPECT_EQ(test, 0, (int)item->work.disabled);
}

/* ---- cancelling a batch ----------------------------------------------- */

#define DROP_MANY	100		/* more works than one lock section drops */

/* What drop_fn() uses and sees: one for all cases, because dropped() has no argument for it. */
static struct {
	struct mock_log *log;
	struct fairwq_batch *batch;
	void (*then)(struct mock_item *item);	/* called by drop_fn(), or NULL */
	struct mock_item *other;
	struct releases *releases;
	unsigned int nr, late;
	bool pending, ret, in_hardirq;
} drop;

/* Log the letter in lower case. The function of the item logs it in upper case. */
static void drop_fn(struct fairwq_work *work)
{
	struct mock_item *item = container_of(work, struct mock_item, work);

	drop.nr++;
	drop.pending |= fairwq_work_pending(work);
	mock_log_add(drop.log, item->letter - 'A' + 'a');
	if (drop.then)
		drop.then(item);
}

static void drop_set(struct kunit *test, struct fairwq_batch *batch,
		     void (*then)(struct mock_item *item))
{
	struct mock *mock = test->priv;

	memset(&drop, 0, sizeof(drop));
	drop.log = &mock->log;
	drop.batch = batch;
	drop.then = then;
}

/* The works of a batch are dropped in queue order and counted. They may be queued again. */
static void drops_in_order(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_item *c;
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_batch *b = mock_batch(test, "b");

	drop_set(test, a, NULL);
	KUNIT_EXPECT_EQ(test, 0UL, fairwq_batch_cancel(a, drop_fn));
	mock_queue_item(test, a, 'A');
	mock_queue_item(test, b, 'B');
	c = mock_queue_item(test, a, 'C');
	mock_queue_item(test, a, 'D');
	KUNIT_EXPECT_EQ(test, 3UL, fairwq_batch_cancel(a, drop_fn));
	KUNIT_EXPECT_FALSE(test, drop.pending);
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&c->work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &c->work));
	mock_queue_item(test, a, 'E');
	mock_expect(test, "acdBCE");
	KUNIT_EXPECT_EQ(test, 0UL, fairwq_batch_cancel(a, NULL));
	KUNIT_EXPECT_EQ(test, 3ULL, mock_counter(mock->pool, FAIRWQ_CANCELED));
}

/* If the works are dropped in several lock sections, each of them is dropped or runs once. */
static void drops_from_a_chunk_to_the_next(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 2);

	fairwq_batch_pause(a);
	mock_queue(test, a, 'A', DROP_MANY);
	drop_set(test, a, NULL);
	fairwq_batch_resume(a);
	/* A runner is free and may take some of the items. The others are dropped. */
	fairwq_batch_cancel(a, drop_fn);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, (unsigned int)DROP_MANY, mock->log.nr);
}

/* Queue drop.other in the first dropped(), and then the dropped item again. */
static void queue_another(struct mock_item *item)
{
	if (drop.late)
		return;
	drop.ret = fairwq_queue(drop.batch, &drop.other->work) == 1;
	drop.late = 1 + fairwq_queue(drop.batch, &item->work);
}

/* Items that are queued while a batch is cancelled stay, also those that dropped() queues. */
static void drops_only_what_is_older(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 1);

	mock_queue(test, a, 'A', DROP_MANY);
	drop_set(test, a, queue_another);
	drop.other = mock_item(test, 'X');
	KUNIT_EXPECT_EQ(test, (unsigned long)DROP_MANY, fairwq_batch_cancel(a, drop_fn));
	KUNIT_EXPECT_TRUE(test, drop.ret);
	KUNIT_EXPECT_EQ(test, 2U, drop.late);
	mock_open(test);
	mock_until(test, READ_ONCE(mock->log.nr) == DROP_MANY + 2);
	KUNIT_EXPECT_STREQ(test, "XA", &mock->log.text[DROP_MANY]);
}

static void count_drop(struct fairwq_work *work)
{
	drop.nr++;
}

static struct mock_gate *second_gate;	/* runs, and is queued again */

/* End the run of the second gate in the first dropped(): its next turn is put back then. */
static void open_second(struct fairwq_work *work)
{
	if (drop.nr++)
		return;
	complete_all(&second_gate->open);
	spin_for(100, atomic_read(&second_gate->runs) > 1);
}

/* A parked work is dropped also if its last run ends while another one is dropped. */
static void drops_what_is_put_back_meanwhile(struct kunit *test)
{
	struct mock_gate *gate[2];
	struct fairwq_batch *a;
	unsigned int i;

	need_two_cpus(test);
	a = mock_begin(test, 4);
	gate[0] = mock_parked_begin(test, a);
	gate[1] = mock_gate_new(test);
	mock_gate_enter(test, a, gate[1]);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &gate[1]->work));
	mock_until(test, READ_ONCE(a->nr_parked) == 2);
	second_gate = gate[1];
	drop_set(test, a, NULL);
	KUNIT_EXPECT_EQ(test, 2UL, fairwq_batch_cancel(a, open_second));
	complete_all(&gate[0]->open);
	fairwq_batch_flush(a);
	for (i = 0; i < ARRAY_SIZE(gate); i++)
		KUNIT_EXPECT_EQ(test, 1, atomic_read(&gate[i]->runs));
}

static void drops_what_is_parked(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_gate *gate;
	struct fairwq_batch *a = mock_begin(test, 3);

	gate = mock_parked_begin(test, a);
	drop_set(test, a, NULL);
	KUNIT_EXPECT_EQ(test, 1UL, fairwq_batch_cancel(a, count_drop));
	KUNIT_EXPECT_EQ(test, 1U, drop.nr);
	KUNIT_EXPECT_EQ(test, 0U, a->nr_parked);
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&gate->work));
	complete_all(&gate->open);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&gate->runs));
	/* No flush waits for the dropped work any more. */
	mock_queue_item(test, a, 'x');
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 1U, mock->log.nr);
}

static void cancel_other(struct mock_item *item)
{
	drop.ret = fairwq_work_cancel(&drop.other->work);
	drop.then = NULL;
}

static void cancel_other_sync(struct mock_item *item)
{
	drop.ret = fairwq_work_cancel_sync(&drop.other->work);
	/* The work may be freed now, so overwrite it. */
	memset(drop.other, 0x5a, sizeof(*drop.other));
	drop.then = NULL;
}

/* A work that is cancelled from dropped() of an earlier work is not dropped. */
static void dropped_may_cancel_the_next(struct kunit *test)
{
	void (*const how[])(struct mock_item *) = { cancel_other, cancel_other_sync };
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 1);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(how); i++) {
		drop_set(test, a, how[i]);
		mock_queue_item(test, a, 'A');
		mock_queue_item(test, a, 'B');
		drop.other = mock_queue_item(test, a, 'C');
		mock_queue_item(test, a, 'D');
		KUNIT_EXPECT_EQ(test, 3UL, fairwq_batch_cancel(a, drop_fn));
		KUNIT_EXPECT_TRUE(test, drop.ret);
	}
	mock_expect(test, "abdabd");
	KUNIT_EXPECT_EQ(test, 6U, mock->log.nr);
}

static void cancel_on_top_fn(void *data)
{
	cancel_other(NULL);
}

static void cancel_other_from_hardirq(struct mock_item *item)
{
	drop.in_hardirq = mock_call_on_top(cancel_on_top_fn, NULL);
}

/* An interrupt on top of a cancel of the batch can cancel one of its works, without a wait. */
static void dropped_may_be_canceled_by_others(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 1);

	drop_set(test, a, cancel_other_from_hardirq);
	mock_queue_item(test, a, 'A');
	drop.other = mock_queue_item(test, a, 'B');
	mock_queue_item(test, a, 'C');
	KUNIT_EXPECT_EQ(test, 2UL, fairwq_batch_cancel(a, drop_fn));
	KUNIT_EXPECT_TRUE(test, drop.in_hardirq);
	KUNIT_EXPECT_TRUE(test, drop.ret);
	mock_expect(test, "ac");
	KUNIT_EXPECT_EQ(test, 2U, mock->log.nr);
}

struct releases {
	atomic_t nr;
};

static void count_release(struct fairwq_batch *batch, void *priv)
{
	struct releases *releases = priv;

	atomic_inc(&releases->nr);
}

static void look_for_release(struct mock_item *item)
{
	mock_wait_released();
	drop.late += atomic_read(&drop.releases->nr);
}

/* A disposed batch is released, but not before the last dropped() has returned. */
static void dropped_before_released(struct kunit *test)
{
	struct releases *releases = kunit_kzalloc(test, sizeof(*releases), GFP_KERNEL);
	struct fairwq_batch_attrs attrs = { .released = count_release, .priv = releases };
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	KUNIT_ASSERT_NOT_NULL(test, releases);
	mock_pool(test, 1);
	a = mock_own_batch(test, "a", &attrs);
	mock_queue_item(test, a, 'A');
	mock_queue_item(test, a, 'B');
	fairwq_batch_get(a);
	fairwq_batch_dispose(a);
	mock_wait_released();
	drop_set(test, a, look_for_release);
	drop.releases = releases;
	KUNIT_EXPECT_EQ(test, 2UL, fairwq_batch_cancel(a, drop_fn));
	KUNIT_EXPECT_EQ(test, 0U, drop.late);
	mock_until(test, atomic_read(&releases->nr) == 1);
	/* A cancel of a released batch finds nothing. */
	KUNIT_EXPECT_EQ(test, 0UL, fairwq_batch_cancel(a, drop_fn));
	fairwq_batch_put(a);
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_waiters(mock->pool));
}

static struct mock_gate *opened;		/* it opens in the first dropped() */

/* Free the runner in the first dropped(), and give what must not begin the time to do so. */
static void open_and_wait(struct mock_item *item)
{
	drop.then = NULL;
	complete_all(&opened->open);
	spin_for(100, READ_ONCE(drop.log->nr) > 1);
}

/* No item of the batch begins until the last one was dropped, also if dropped() takes long. */
static void nothing_begins_during_a_drop(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	need_two_cpus(test);
	a = mock_begin(test, 1);
	opened = &mock->gate;
	mock_queue(test, a, 'A', 3);
	drop_set(test, a, open_and_wait);
	KUNIT_EXPECT_EQ(test, 3UL, fairwq_batch_cancel(a, drop_fn));
	mock_queue_item(test, a, 'X');
	mock_until(test, READ_ONCE(mock->log.nr) == 4);
	KUNIT_EXPECT_STREQ(test, "aaaX", &mock->log.text[0]);
}

/* Nor does the next item of a serializer whose burst is under way. */
static void no_burst_goes_on_during_a_drop(struct kunit *test)
{
	struct order order = mock_order_new(test, false);
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	need_two_cpus(test);
	a = mock_begin(test, 2);
	KUNIT_ASSERT_EQ(test, 0, fairwq_serializer_set_inline(order.serial, FAIRWQ_MAX_INLINE_US));
	opened = mock_order_gate(test, &order, a);
	mock_order_item(test, &order, a, 'S');
	mock_queue(test, a, 'A', 2);
	drop_set(test, a, open_and_wait);
	KUNIT_EXPECT_EQ(test, 'a', (fairwq_batch_cancel(a, drop_fn), mock->log.text[0]));
	KUNIT_EXPECT_EQ(test, 'a', mock->log.text[1]);
	mock_open(test);
	fairwq_serializer_flush(order.serial);
	mock_order_destroy(&order);
}

static struct kunit *flush_test;
static struct call *flush_call;

/* Flush drop.other in another thread, and wait until that waits; once. */
static void flush_other(struct mock_item *item)
{
	struct mock *mock = flush_test->priv;

	drop.then = NULL;
	flush_call = mock_call_start(flush_test, fairwq_work_flush, &drop.other->work);
	mock_until(flush_test, mock_nr_waiters(mock->pool) == 1);
}

/* A flush of a work ends when the work is dropped, because it will not run. */
static void drop_wakes_a_flush_of_the_item(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);

	flush_test = test;
	drop_set(test, a, flush_other);
	mock_queue_item(test, a, 'A');
	drop.other = mock_queue_item(test, a, 'B');
	KUNIT_EXPECT_EQ(test, 2UL, fairwq_batch_cancel(a, drop_fn));
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, flush_call));
	mock_expect(test, "ab");
}

static void cancel_of_a_paused_batch_drops_its_items(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 2);

	fairwq_batch_pause(a);
	mock_queue(test, a, 'A', 3);
	drop_set(test, a, NULL);
	KUNIT_EXPECT_EQ(test, 3UL, fairwq_batch_cancel(a, drop_fn));
	mock_queue_item(test, a, 'X');
	fairwq_batch_resume(a);
	mock_until(test, READ_ONCE(mock->log.nr) == 4);
	KUNIT_EXPECT_STREQ(test, "aaaX", &mock->log.text[0]);
}

static bool flush_drop_batch(struct fairwq_work *work)
{
	fairwq_batch_flush(drop.batch);
	return true;
}

/* A flush of the batch ends when the items that it waits for are dropped. */
static void cancel_wakes_a_flush(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 1);
	struct call *call;

	mock_queue(test, a, 'A', 3);
	drop_set(test, a, NULL);
	call = mock_call_start(test, flush_drop_batch, NULL);
	mock_until(test, flush_is_queued(a));
	mock_queue_item(test, a, 'X');
	KUNIT_EXPECT_EQ(test, 4UL, fairwq_batch_cancel(a, drop_fn));
	mock_call_end(test, call);
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_waiters(mock->pool));
	mock_expect(test, "aaax");
}

/* ---- calls from the work's own function ------------------------------- */

struct insider {
	struct fairwq_work work;
	struct fairwq_batch *batch;
	struct completion done;
	int queued;
	bool flushed, ret;
};

static struct insider *insider_run(struct kunit *test, fairwq_func_t func)
{
	struct insider *insider = kunit_kzalloc(test, sizeof(*insider), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, insider);
	insider->batch = mock_begin(test, 3);
	fairwq_work_init(&insider->work, func);
	init_completion(&insider->done);
	insider->queued = fairwq_queue(insider->batch, &insider->work);
	mock_await(test, &insider->done);
	return insider;
}

static void recycling_fn(struct fairwq_work *work)
{
	struct insider *insider = container_of(work, struct insider, work);

	fairwq_work_init(work, mock_nothing_fn);
	insider->queued = fairwq_queue(insider->batch, work);
	insider->ret = fairwq_work_flush(work);
	complete(&insider->done);
}

/*
 * A function may set up a new work in the memory of its own work. Flushing the
 * new one does not warn.
 */
static void recycled_work_may_be_flushed(struct kunit *test)
{
	struct insider *insider;

	insider = insider_run(test, recycling_fn);
	KUNIT_EXPECT_EQ(test, 1, insider->queued);
	KUNIT_EXPECT_EQ(test, 0L, atomic_long_read(&insider->work.data));
}

/* A task that waits for the item which has forked it. */
struct waiting_task {
	struct fairwq_task task;
	struct fairwq_work *item;
	struct completion begun;
	bool flushed;
};

static void waiting_task_fn(struct fairwq_task *self)
{
	struct waiting_task *task = container_of(self, struct waiting_task, task);

	complete(&task->begun);
	task->flushed = fairwq_work_flush(task->item);
}

/*
 * Fork a task that flushes @work, and join it. The caller is the function of
 * @work.
 * Return: what the flush returned.
 */
static bool flush_in_task(struct fairwq_work *work)
{
	struct waiting_task task = { .item = work };
	struct fairwq_task self;

	fairwq_task_here(&self);
	init_completion(&task.begun);
	fairwq_task_init(&task.task, waiting_task_fn);
	fairwq_fork(&self, &task.task);
	mock_fork_until(&self, &task.begun);
	fairwq_join(&self, &task.task);
	return task.flushed;
}

static void self_waiting_fn(struct fairwq_work *work)
{
	struct insider *insider = container_of(work, struct insider, work);

	insider->flushed = flush_in_task(work);
	insider->flushed |= fairwq_work_flush(work);
	insider->queued = fairwq_queue(insider->batch, work);
	insider->ret = fairwq_work_cancel_sync(work);
	complete(&insider->done);
}

/*
 * A function that waits for its own work, or a task of that function, warns and
 * does not wait. A sync cancel still takes the work out of the queue.
 */
static void self_wait_warns(struct kunit *test)
{
	struct insider *insider;

	/* Three calls wait for themselves, but the warning comes once. */
	pr_info("# expect-splat begin would wait for itself in fairwq_work_flush\n");
	insider = insider_run(test, self_waiting_fn);
	pr_info("# expect-splat end\n");
	KUNIT_EXPECT_FALSE(test, insider->flushed);
	KUNIT_EXPECT_EQ(test, 1, insider->queued);
	KUNIT_EXPECT_TRUE(test, insider->ret);
	fairwq_batch_flush(insider->batch);
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&insider->work));
	/* The sync cancel has enabled the work again. */
	KUNIT_EXPECT_EQ(test, 0, (int)insider->work.disabled);
	fairwq_work_init(&insider->work, mock_nothing_fn);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(insider->batch, &insider->work));
	fairwq_batch_flush(insider->batch);
}

struct graced_insider {
	struct fairwq_rcu_work rwork;
	struct fairwq_batch *batch;
	struct completion done;
	unsigned int runs;
	bool canceled, pending;
};

static void graced_insider_fn(struct fairwq_work *work)
{
	struct graced_insider *insider = container_of(work, struct graced_insider, rwork.work);

	if (!insider->runs++) {
		mock_may_refuse(fairwq_queue_rcu(insider->batch, &insider->rwork));
		insider->canceled = fairwq_work_cancel_sync(work);
		insider->pending = fairwq_work_pending(work);
	}
	complete(&insider->done);
}

/*
 * A sync cancel from the work's own function does not wait for a grace period
 * either, so the work runs again. This case must follow self_wait_warns(),
 * because the warning comes once, and that case expects it.
 */
static void self_wait_skips_the_grace_period(struct kunit *test)
{
	struct graced_insider *insider = kunit_kzalloc(test, sizeof(*insider), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, insider);
	insider->batch = mock_begin(test, 1);
	mock_open(test);
	fairwq_rcu_work_init(&insider->rwork, graced_insider_fn);
	init_completion(&insider->done);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(insider->batch, &insider->rwork.work));
	mock_await(test, &insider->done);
	/* The cancel took the work out only if the grace period was over by then. */
	KUNIT_EXPECT_NE(test, insider->canceled, insider->pending);
	if (insider->pending)
		mock_await(test, &insider->done);
	fairwq_batch_flush(insider->batch);
	KUNIT_EXPECT_EQ(test, insider->pending ? 2U : 1U, insider->runs);
}

/* ---- shares ----------------------------------------------------------- */

/*
 * Take a turn of a and park it, then run 100 items of b. Whatever becomes of
 * that turn, a must have no credit: credit_end() expects that a and b
 * alternate.
 * Return: the gate that is parked.
 */
static struct mock_gate *credit_begin(struct kunit *test, struct fairwq_batch **a,
				      struct fairwq_batch **b)
{
	struct mock *mock = test->priv;
	struct mock_gate *gate;

	*a = mock_begin(test, 3);
	*b = mock_batch(test, "b");
	gate = mock_parked_begin(test, *a);
	mock_queue(test, *b, 'b', 100);
	fairwq_batch_flush(*b);
	/* One runner is free from here on. The other two are at gates. */
	mock_log_clear(mock);
	return gate;
}

/* Queue 20 items each to a and b, and expect that they run alternately. */
static void credit_end(struct kunit *test, struct fairwq_batch *a, struct fairwq_batch *b)
{
	struct mock *mock = test->priv;

	fairwq_batch_pause(a);
	fairwq_batch_pause(b);
	mock_queue(test, a, 'a', 20);
	mock_queue(test, b, 'b', 20);
	/* Only one runner takes turns, so their order is that of the log. */
	KUNIT_ASSERT_EQ(test, 0, fairwq_pool_set_max_active(mock->pool, 1));
	fairwq_batch_resume(b);
	fairwq_batch_resume(a);
	mock_open(test);
	fairwq_batch_flush(a);
	fairwq_batch_flush(b);
	KUNIT_EXPECT_EQ(test, 40U, mock->log.nr);
	mock->log.text[10] = 0;
	/* The turn that a was charged for, and did not have, may be given back to it. */
	if (strcmp(&mock->log.text[0], "bababababa") &&
	    strcmp(&mock->log.text[0], "ababababab"))
		KUNIT_EXPECT_STREQ(test, "aababababa", &mock->log.text[0]);
}

/* If the parked work is cancelled, a gets one turn back, and not as many as b had. */
static void canceled_turn_is_no_credit(struct kunit *test)
{
	struct fairwq_batch *a, *b;
	struct mock_gate *gate = credit_begin(test, &a, &b);

	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&gate->work));
	complete_all(&gate->open);
	fairwq_batch_flush(a);
	credit_end(test, a, b);
}

/* If the parked work is put back and runs late, a gets no credit for the turns of b. */
static void late_turn_is_no_credit(struct kunit *test)
{
	struct fairwq_batch *a, *b;
	struct mock_gate *gate = credit_begin(test, &a, &b);

	complete_all(&gate->open);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&gate->runs));
	credit_end(test, a, b);
}

/*
 * A LOW batch that has waited for FAIRWQ_STARVE_LIMIT turns is next. It remains
 * so if a work behind its first one is cancelled.
 */
static void cancel_of_another_does_not_cost_the_turn(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct fairwq_batch *low, *high;
	struct mock *mock = test->priv;
	struct mock_item *second;

	mock_pool(test, 1);
	low = mock_batch_prio(test, "low", FAIRWQ_PRIO_LOW);
	high = mock_batch_prio(test, "high", FAIRWQ_PRIO_HIGH);
	mock_queue_item(test, low, 'l');
	second = mock_queue_item(test, low, 'm');
	mock_queue(test, high, 'h', FAIRWQ_STARVE_LIMIT - 1);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(high, &gate->work));
	mock_queue(test, high, 'H', 3);
	mock_open(test);
	mock_await(test, &gate->entered);
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&second->work));
	complete_all(&gate->open);
	fairwq_batch_flush(low);
	fairwq_batch_flush(high);
	KUNIT_EXPECT_STREQ(test, "lHHH", &mock->log.text[FAIRWQ_STARVE_LIMIT - 1]);
}

/* Stop the endless item of the case, also if the case has failed. */
static void work_exit(struct kunit *test)
{
	if (endless_now)
		WRITE_ONCE(endless_now->stop, true);
	endless_now = NULL;
	mock_exit(test);
}

static struct kunit_case work_cases[] = {
	KUNIT_CASE(cancel_of_an_idle_work),
	KUNIT_CASE_PARAM(cancel_of_a_queued_work, place_gen_params),
	KUNIT_CASE(cancel_of_the_last_item_ends_a_flush),
	KUNIT_CASE(cancel_gives_room_back),
	KUNIT_CASE(cancel_in_a_limited_batch_lets_the_next_run),
	KUNIT_CASE(cancel_of_a_held_up_work),
	KUNIT_CASE(cancel_of_a_parked_work),
	KUNIT_CASE(cancel_of_a_work_parked_elsewhere),
	KUNIT_CASE(cancel_of_a_running_work),
	KUNIT_CASE(flush_of_a_queued_work),
	KUNIT_CASE(flush_of_a_parked_work),
	KUNIT_CASE(flush_of_a_running_work),
	KUNIT_CASE(flush_of_a_canceled_work),
	KUNIT_CASE(flush_of_an_endless_work),
	KUNIT_CASE(flush_in_a_paused_batch_ends_with_its_disposal),
	KUNIT_CASE(cancel_sync_waits_for_the_run),
	KUNIT_CASE(cancel_sync_cancels_one_run_and_awaits_the_other),
	KUNIT_CASE(cancel_sync_of_an_endless_work),
	KUNIT_CASE(disable_is_counted),
	KUNIT_CASE(disable_of_a_running_work),
	KUNIT_CASE(disabled_takes_no_room),
	KUNIT_CASE(enable_too_often_warns),
	KUNIT_CASE(drops_in_order),
	KUNIT_CASE(drops_from_a_chunk_to_the_next),
	KUNIT_CASE(drops_only_what_is_older),
	KUNIT_CASE(drops_what_is_parked),
	KUNIT_CASE(drops_what_is_put_back_meanwhile),
	KUNIT_CASE(dropped_may_cancel_the_next),
	KUNIT_CASE(dropped_may_be_canceled_by_others),
	KUNIT_CASE(dropped_before_released),
	KUNIT_CASE(nothing_begins_during_a_drop),
	KUNIT_CASE(no_burst_goes_on_during_a_drop),
	KUNIT_CASE(drop_wakes_a_flush_of_the_item),
	KUNIT_CASE(cancel_of_a_paused_batch_drops_its_items),
	KUNIT_CASE(cancel_wakes_a_flush),
	KUNIT_CASE(recycled_work_may_be_flushed),
	KUNIT_CASE(self_wait_warns),
	KUNIT_CASE(self_wait_skips_the_grace_period),
	KUNIT_CASE(canceled_turn_is_no_credit),
	KUNIT_CASE(late_turn_is_no_credit),
	KUNIT_CASE(cancel_of_another_does_not_cost_the_turn),
	{}
};

static struct kunit_suite work_suite = {
	.name = "fairwq_work",
	.init = mock_init,
	.exit = work_exit,
	.test_cases = work_cases,
};

kunit_test_suite(work_suite);

MODULE_DESCRIPTION("KUnit: cancelling and waiting for works");
MODULE_LICENSE("GPL");
