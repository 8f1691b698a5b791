// SPDX-License-Identifier: GPL-2.0
/*
 * Items that report a failure: the reports are counted for batch and pool, the pool's
 * notifiers are called, and no other item is affected.
 */
#include <linux/notifier.h>

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

/* A notifier that logs its letter, and keeps the last failure. */
struct listener {
	struct notifier_block nb;
	struct mock_log *log;
	char letter;
	int ret;
	unsigned int nr;
	unsigned long event;
	struct fairwq_failure last;
	struct fairwq_work *queues;	/* queued to the batch of the item that failed; or NULL */
	bool sleeps;
};

static int listener_fn(struct notifier_block *nb, unsigned long event, void *data)
{
	struct listener *listener = container_of(nb, struct listener, nb);

	listener->nr++;
	listener->event = event;
	listener->last = *(const struct fairwq_failure *)data;
	mock_log_add(listener->log, listener->letter);
	if (listener->queues)
		mock_may_refuse(fairwq_queue(listener->last.batch, listener->queues));
	if (listener->sleeps)
		msleep(20);		/* to show the bug: no call waits for the notifier */
	return listener->ret;
}

/* Register a notifier that logs @letter. The case must unregister it. */
static struct listener *listen_to(struct kunit *test, struct fairwq_pool *pool,
				  char letter, int priority)
{
	struct listener *listener = kunit_kzalloc(test, sizeof(*listener), GFP_KERNEL);
	struct mock *mock = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, listener);
	listener->nb.notifier_call = listener_fn;
	listener->nb.priority = priority;
	listener->log = &mock->log;
	listener->letter = letter;
	listener->ret = NOTIFY_OK;
	KUNIT_ASSERT_EQ(test, 0, fairwq_pool_register_notifier(pool, &listener->nb));
	return listener;
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

/* A notifier gets the pool, the batch, the function and the error, before the item ends. */
static void notifier_is_told_what_has_failed(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct listener *listener;
	struct fairwq_batch *a = mock_begin(test, 1);

	listener = listen_to(test, mock->pool, '!', 0);
	listener->sleeps = true;
	queue_failing(test, a, 'a', -EIO, 1);
	mock_queue(test, a, 'b', 1);
	mock_expect(test, "!ab");
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 1U, listener->nr);
	KUNIT_EXPECT_EQ(test, (unsigned long)FAIRWQ_EVENT_FAILURE, listener->event);
	KUNIT_EXPECT_PTR_EQ(test, mock->pool, listener->last.pool);
	KUNIT_EXPECT_PTR_EQ(test, a, listener->last.batch);
	KUNIT_EXPECT_TRUE(test, listener->last.func == failing_fn);
	KUNIT_EXPECT_EQ(test, -EIO, listener->last.err);
	KUNIT_EXPECT_EQ(test, 0,
			fairwq_pool_unregister_notifier(mock->pool, &listener->nb));
}

/* A notifier may queue to the batch of the item that failed. */
static void callback_may_queue(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct listener *listener;
	struct fairwq_batch *a = mock_begin(test, 1);

	listener = listen_to(test, mock->pool, '!', 0);
	listener->queues = &mock_item(test, 'r')->work;
	queue_failing(test, a, 'a', -EIO, 1);
	mock_queue(test, a, 'b', 1);
	mock_expect(test, "!abr");
	fairwq_pool_flush(mock->pool);
	KUNIT_EXPECT_EQ(test, 0,
			fairwq_pool_unregister_notifier(mock->pool, &listener->nb));
}

/*
 * Notifiers are called by priority, until one returns NOTIFY_STOP. Notifiers of other pools,
 * and those that were unregistered, are not called.
 */
static void notifiers_are_called_by_priority(struct kunit *test)
{
	struct listener *first, *second, *third, *stranger, *gone;
	struct mock *mock = test->priv;
	struct fairwq_pool *other;
	struct fairwq_batch *a = mock_begin(test, 1);

	other = fairwq_pool_create(NULL, "other");
	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	third = listen_to(test, mock->pool, '3', -1);
	first = listen_to(test, mock->pool, '1', 1);
	second = listen_to(test, mock->pool, '2', 0);
	gone = listen_to(test, mock->pool, 'g', 2);
	stranger = listen_to(test, other, 's', 0);
	second->ret = NOTIFY_STOP;
	KUNIT_EXPECT_EQ(test, 0, fairwq_pool_unregister_notifier(mock->pool, &gone->nb));
	KUNIT_EXPECT_NE(test, 0, fairwq_pool_unregister_notifier(mock->pool, &gone->nb));
	queue_failing(test, a, 'a', -EIO, 1);
	mock_expect(test, "12a");
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 0, fairwq_pool_unregister_notifier(mock->pool, &first->nb));
	KUNIT_EXPECT_EQ(test, 0, fairwq_pool_unregister_notifier(mock->pool, &second->nb));
	KUNIT_EXPECT_EQ(test, 0, fairwq_pool_unregister_notifier(mock->pool, &third->nb));
	KUNIT_EXPECT_EQ(test, 0, fairwq_pool_unregister_notifier(other, &stranger->nb));
	fairwq_pool_destroy(other);
}

/* A report does not count if the error is not negative, or if the caller is no item. */
static void bad_reports_count_for_nothing(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct listener *listener;
	struct fairwq_batch *a = mock_begin(test, 1);

	listener = listen_to(test, mock->pool, '!', 0);
	queue_failing(test, a, 'a', 0, 1);
	queue_failing(test, a, 'b', 5, 1);
	mock_expect(test, "ab");
	fairwq_batch_flush(a);
	pr_info("# expect-splat begin is reported, and no item runs\n");
	fairwq_report_failure(-EIO);
	pr_info("# expect-splat end\n");
	KUNIT_EXPECT_EQ(test, 0U, listener->nr);
	KUNIT_EXPECT_EQ(test, 0ULL, failures_of(a));
	KUNIT_EXPECT_EQ(test, 0ULL, mock_counter(mock->pool, FAIRWQ_FAILURES));
	KUNIT_EXPECT_EQ(test, 0,
			fairwq_pool_unregister_notifier(mock->pool, &listener->nb));
}

static void bad_notifiers_are_refused(struct kunit *test)
{
	struct notifier_block empty = { };
	struct mock *mock = test->priv;

	mock_pool(test, 1);
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_pool_register_notifier(NULL, &empty));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_pool_register_notifier(mock->pool, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_pool_register_notifier(mock->pool, &empty));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_pool_unregister_notifier(NULL, &empty));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_pool_unregister_notifier(mock->pool, NULL));
}

/*
 * A second registration of a notifier is refused, with the warning of the kernel's chains.
 * The first one stays in effect.
 */
static void second_registration_is_refused(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct listener *first, *second;
	struct fairwq_batch *a = mock_begin(test, 1);

	first = listen_to(test, mock->pool, '1', 0);
	second = listen_to(test, mock->pool, '2', -1);
	pr_info("# expect-splat begin already registered\n");
	KUNIT_EXPECT_EQ(test, -EEXIST, fairwq_pool_register_notifier(mock->pool, &first->nb));
	KUNIT_EXPECT_EQ(test, -EEXIST, fairwq_pool_register_notifier(mock->pool, &second->nb));
	pr_info("# expect-splat end\n");
	queue_failing(test, a, 'a', -EIO, 1);
	mock_expect(test, "12a");
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 0, fairwq_pool_unregister_notifier(mock->pool, &first->nb));
	KUNIT_EXPECT_EQ(test, -ENOENT, fairwq_pool_unregister_notifier(mock->pool, &first->nb));
	KUNIT_EXPECT_EQ(test, 0, fairwq_pool_register_notifier(mock->pool, &first->nb));
	KUNIT_EXPECT_EQ(test, 0, fairwq_pool_unregister_notifier(mock->pool, &first->nb));
	KUNIT_EXPECT_EQ(test, 0, fairwq_pool_unregister_notifier(mock->pool, &second->nb));
}

static struct kunit_case failure_cases[] = {
	KUNIT_CASE(failure_costs_no_other_a_turn),
	KUNIT_CASE(failure_is_counted_where_it_belongs),
	KUNIT_CASE(notifier_is_told_what_has_failed),
	KUNIT_CASE(callback_may_queue),
	KUNIT_CASE(notifiers_are_called_by_priority),
	KUNIT_CASE(bad_reports_count_for_nothing),
	KUNIT_CASE(bad_notifiers_are_refused),
	KUNIT_CASE(second_registration_is_refused),
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
