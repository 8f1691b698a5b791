// SPDX-License-Identifier: GPL-2.0
/*
 * Items that report a failure: the reports are counted for batch and pool, the
 * driver is told, and no other item is affected.
 */
#include "lib/fixture.h"

/* An item that reports a failure, then logs its letter. */
struct failing_item {
	struct mock_item item;
	int err;
	unsigned int times;		/* that it reports @err; 0: it does not fail */
};

static void failing_fn(struct fairwq_work *work)
{
	struct failing_item *item = container_of(work, struct failing_item, item.work);
	unsigned int i;

	for (i = 0; i < item->times; i++)
		fairwq_report_failure(item->err);
	mock_item_fn(work);
}

/* Queue an item that reports @err so many @times. Return: the item. */
static struct failing_item *queue_failing(struct kunit *test, struct fairwq_batch *batch,
					  char letter, int err, unsigned int times)
{
	struct failing_item *item = kunit_kzalloc(test, sizeof(*item), GFP_KERNEL);
	struct mock *mock = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, item);
	fairwq_work_init(&item->item.work, failing_fn);
	item->item.log = &mock->log;
	item->item.letter = letter;
	item->err = err;
	item->times = times;
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &item->item.work));
	return item;
}

/* Calls of failed(): it logs '!', and keeps the last failure. */
static struct {
	struct mock_log *log;
	unsigned int nr;
	struct fairwq_batch *batch;
	fairwq_func_t func;
	int err;
	struct fairwq_work *queues;	/* queued to the batch of the item that failed; or NULL */
	bool sleeps;
} last;

static void failed(struct fairwq_batch *batch, fairwq_func_t func, int err)
{
	last.nr++;
	last.batch = batch;
	last.func = func;
	last.err = err;
	mock_log_add(last.log, '!');
	if (last.queues)
		mock_may_refuse(fairwq_queue(batch, last.queues));
	if (last.sleeps)
		msleep(20);		/* to show the bug: the item goes on meanwhile */
}

/* Begin a case with a pool that calls failed(). Return: a batch. */
static struct fairwq_batch *begin_told(struct kunit *test)
{
	struct mock *mock = test->priv;

	memset(&last, 0, sizeof(last));
	last.log = &mock->log;
	mock->failed = failed;
	return mock_begin(test, 1);
}

static u64 failures_of(struct fairwq_batch *batch)
{
	u64 nr;

	raw_spin_lock_irq(&batch->pool->lock);
	nr = batch->stats->failures;
	raw_spin_unlock_irq(&batch->pool->lock);
	return nr;
}

/* A failing item has one turn, as all items have. The items behind it run in their order. */
static void failure_costs_no_other_a_turn(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_batch *b = mock_batch(test, "b");

	queue_failing(test, a, 'A', -EIO, 1);
	mock_queue(test, a, 'a', 1);
	queue_failing(test, a, 'A', -ENOMEM, 3);
	mock_queue(test, a, 'a', 1);
	mock_queue(test, b, 'b', 4);
	mock_expect(test, "AbabAbab");
	fairwq_batch_flush(a);
	fairwq_batch_flush(b);
}

/* Each report counts for the batch of its item, and for the pool. */
static void failure_is_counted_where_it_belongs(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_batch *b = mock_batch(test, "b");

	queue_failing(test, a, 'a', -EIO, 1);
	queue_failing(test, a, 'a', -EIO, 2);
	queue_failing(test, a, 'a', -EIO, 0);
	queue_failing(test, b, 'b', -EIO, 1);
	mock_open(test);
	fairwq_batch_flush(a);
	fairwq_batch_flush(b);
	KUNIT_EXPECT_EQ(test, 3ULL, failures_of(a));
	KUNIT_EXPECT_EQ(test, 1ULL, failures_of(b));
	KUNIT_EXPECT_EQ(test, 0ULL, failures_of(mock->gate_batch));
	KUNIT_EXPECT_EQ(test, 4ULL, mock_counter(mock->pool, FAIRWQ_FAILURES));
}

/* failed() gets the batch, the function and the error, before the item ends. */
static void driver_is_told_what_has_failed(struct kunit *test)
{
	struct fairwq_batch *a = begin_told(test);

	last.sleeps = true;
	queue_failing(test, a, 'a', -EIO, 1);
	mock_queue(test, a, 'b', 1);
	mock_expect(test, "!ab");
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 1U, last.nr);
	KUNIT_EXPECT_PTR_EQ(test, a, last.batch);
	KUNIT_EXPECT_TRUE(test, last.func == failing_fn);
	KUNIT_EXPECT_EQ(test, -EIO, last.err);
}

/* failed() may queue to the batch of the item that failed. */
static void callback_may_queue(struct kunit *test)
{
	struct fairwq_batch *a = begin_told(test);
	struct mock *mock = test->priv;

	last.queues = &mock_item(test, 'r')->work;
	queue_failing(test, a, 'a', -EIO, 1);
	mock_queue(test, a, 'b', 1);
	mock_expect(test, "!abr");
	fairwq_pool_flush(mock->pool);
}

/* A report does not count if the error is not negative, or if the caller is no item. */
static void bad_reports_count_for_nothing(struct kunit *test)
{
	struct fairwq_batch *a = begin_told(test);
	struct mock *mock = test->priv;

	queue_failing(test, a, 'a', 0, 1);
	queue_failing(test, a, 'b', 5, 1);
	mock_expect(test, "ab");
	fairwq_batch_flush(a);
	pr_info("# expect-splat begin is reported, and no item runs\n");
	fairwq_report_failure(-EIO);
	pr_info("# expect-splat end\n");
	KUNIT_EXPECT_EQ(test, 0U, last.nr);
	KUNIT_EXPECT_EQ(test, 0ULL, failures_of(a));
	KUNIT_EXPECT_EQ(test, 0ULL, mock_counter(mock->pool, FAIRWQ_FAILURES));
}

static struct kunit_case failure_cases[] = {
	KUNIT_CASE(failure_costs_no_other_a_turn),
	KUNIT_CASE(failure_is_counted_where_it_belongs),
	KUNIT_CASE(driver_is_told_what_has_failed),
	KUNIT_CASE(callback_may_queue),
	KUNIT_CASE(bad_reports_count_for_nothing),
	{}
};

static struct kunit_suite failure_suite = {
	.name = "fairwq_failure",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = failure_cases,
};

kunit_test_suite(failure_suite);

MODULE_DESCRIPTION("KUnit: items that report a failure");
MODULE_LICENSE("GPL");
