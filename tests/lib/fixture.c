// SPDX-License-Identifier: GPL-2.0
/*
 * The fixture of the suites, see fixture.h.
 */
#include <linux/kthread.h>
#include <linux/module.h>

#include "core/fifo.h"
#include "core/watchdog.h"
#include "fixture.h"

/* ---- items and their log ------------------------------------------------ */

void mock_log_add(struct mock_log *log, char letter)
{
	unsigned long flags;

	spin_lock_irqsave(&log->lock, flags);
	if (log->nr < MOCK_LOG - 1) {
		log->text[log->nr] = letter;
		/* Cases look without the lock: who sees the number sees the letter. */
		smp_store_release(&log->nr, log->nr + 1);
	}
	spin_unlock_irqrestore(&log->lock, flags);
}
EXPORT_SYMBOL_GPL(mock_log_add);

/* Clear the log. No item may run meanwhile. */
void mock_log_clear(struct mock *mock)
{
	mock->log.nr = 0;
	memset(mock->log.text, 0, sizeof(mock->log.text));
}
EXPORT_SYMBOL_GPL(mock_log_clear);

/* Do nothing: for items that need no function. */
void mock_nothing_fn(struct fairwq_work *work)
{
}
EXPORT_SYMBOL_GPL(mock_nothing_fn);

/* Log the letter of an item. The item may be gone once @done is completed. */
void mock_item_fn(struct fairwq_work *work)
{
	struct mock_item *item = container_of(work, struct mock_item, work);
	struct completion *done = item->done;

	mock_log_add(item->log, item->letter);
	if (item->log->judge)
		judge_look(item->log->judge);
	if (done)
		complete(done);
}
EXPORT_SYMBOL_GPL(mock_item_fn);

static void item_init(struct mock_item *item, struct mock_log *log, char letter)
{
	fairwq_work_init(&item->work, mock_item_fn);
	item->log = log;
	item->letter = letter;
}

/* Make an item that logs @letter, not queued. It lives as long as the case. */
struct mock_item *mock_item(struct kunit *test, char letter)
{
	struct mock *mock = test->priv;
	struct mock_item *item = kunit_kzalloc(test, sizeof(*item), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, item);
	item_init(item, &mock->log, letter);
	return item;
}
EXPORT_SYMBOL_GPL(mock_item);

/* Make an item and queue it to @batch. Return: the item. */
struct mock_item *mock_queue_item(struct kunit *test, struct fairwq_batch *batch, char letter)
{
	struct mock_item *item = mock_item(test, letter);

	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &item->work));
	return item;
}
EXPORT_SYMBOL_GPL(mock_queue_item);

/*
 * Queue @n items with the same letter. They are one array, because under KASAN
 * the free of thousands one by one takes so long that the watchdog reports a
 * lockup.
 */
void mock_queue(struct kunit *test, struct fairwq_batch *batch, char letter, unsigned int n)
{
	struct mock_item *items = kunit_kcalloc(test, n, sizeof(*items), GFP_KERNEL);
	struct mock *mock = test->priv;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, items);
	for (i = 0; i < n; i++) {
		item_init(&items[i], &mock->log, letter);
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &items[i].work));
	}
}
EXPORT_SYMBOL_GPL(mock_queue);

void mock_await(struct kunit *test, struct completion *done)
{
	KUNIT_ASSERT_TRUE_MSG(test, mock_wait(done), "timed out\n");
}
EXPORT_SYMBOL_GPL(mock_await);

static void nothing_fn(struct fairwq_task *self)
{
}

/*
 * Fork and join as @self until @begun is completed. So what @self has forked
 * before is offered to other runners as soon as one is free. Return: false if
 * that was not within the bound.
 */
bool mock_fork_until(struct fairwq_task *self, struct completion *begun)
{
	struct mock_bound bound = mock_bound(MOCK_WAIT_MS);
	struct fairwq_task other;

	while (!try_wait_for_completion(begun)) {
		if (mock_bound_reached(&bound))
			return false;
		fairwq_task_init(&other, nothing_fn);
		fairwq_fork(self, &other);
		fairwq_join(self, &other);
		cond_resched();
	}
	return true;
}
EXPORT_SYMBOL_GPL(mock_fork_until);

/* Sleep until kthread_stop(): the end of a thread whose task must not be gone before. */
void mock_stay(void)
{
	set_current_state(TASK_INTERRUPTIBLE);
	while (!kthread_should_stop()) {
		schedule();
		set_current_state(TASK_INTERRUPTIBLE);
	}
	__set_current_state(TASK_RUNNING);
}
EXPORT_SYMBOL_GPL(mock_stay);

/* ---- the pool and its batches ------------------------------------------- */

/* Judge the shares in mock->pool from now on. */
void mock_judge(struct kunit *test)
{
	struct mock *mock = test->priv;

	judge_set_pool(&mock->judge, mock->pool);
	mock->log.judge = &mock->judge;
}
EXPORT_SYMBOL_GPL(mock_judge);

/*
 * Make a pool with @runners and @policy. One of its runners waits at the gate,
 * which has a batch of its own. That batch has had its turn.
 */
void mock_pool_by(struct kunit *test, unsigned int runners, enum fairwq_policy policy)
{
	struct mock *mock = test->priv;
	struct fairwq_pool_attrs attrs = {
		.max_active = runners, .policy = policy, .flags = mock->flags,
		.failed = mock->failed,
		/* An item that waits at a gate holds its runner. */
		.max_in_flight = mock->max_in_flight ?: 1,
	};

	mock->pool = fairwq_pool_create(&attrs, "mock");
	KUNIT_ASSERT_FALSE(test, IS_ERR(mock->pool));
	/* On a slow machine a gate may be closed for as long as an item that hangs. */
	fairwq_set_hung_ms(mock->pool, 0);
	mock->gate_batch = fairwq_batch_create(mock->pool, NULL, "gate");
	KUNIT_ASSERT_FALSE(test, IS_ERR(mock->gate_batch));
	mock_judge(test);
	mock_gate_enter(test, mock->gate_batch, &mock->gate);
}
EXPORT_SYMBOL_GPL(mock_pool_by);

/* Make a pool whose batches take turns. */
void mock_pool(struct kunit *test, unsigned int runners)
{
	mock_pool_by(test, runners, FAIRWQ_ROUND_ROBIN);
}
EXPORT_SYMBOL_GPL(mock_pool);

/* Make a batch with @attrs, or NULL for the defaults, which the case must dispose of. */
struct fairwq_batch *mock_own_batch(struct kunit *test, const char *name,
				    const struct fairwq_batch_attrs *attrs)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *batch = fairwq_batch_create(mock->pool, attrs, "%s", name);

	KUNIT_ASSERT_FALSE(test, IS_ERR(batch));
	return batch;
}
EXPORT_SYMBOL_GPL(mock_own_batch);

/* Make a batch as mock_own_batch() does. mock_exit() disposes of it. */
struct fairwq_batch *mock_batch_with(struct kunit *test, const char *name,
				     const struct fairwq_batch_attrs *attrs)
{
	struct mock_kept *kept = kunit_kzalloc(test, sizeof(*kept), GFP_KERNEL);
	struct mock *mock = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, kept);
	kept->batch = mock_own_batch(test, name, attrs);
	kept->next = mock->kept;
	mock->kept = kept;
	return kept->batch;
}
EXPORT_SYMBOL_GPL(mock_batch_with);

struct fairwq_batch *mock_batch(struct kunit *test, const char *name)
{
	return mock_batch_with(test, name, NULL);
}
EXPORT_SYMBOL_GPL(mock_batch);

struct fairwq_batch *mock_batch_weight(struct kunit *test, const char *name,
				       unsigned int weight)
{
	const struct fairwq_batch_attrs attrs = { .weight = weight };

	return mock_batch_with(test, name, &attrs);
}
EXPORT_SYMBOL_GPL(mock_batch_weight);

struct fairwq_batch *mock_batch_prio(struct kunit *test, const char *name,
				     enum fairwq_prio prio)
{
	const struct fairwq_batch_attrs attrs = { .prio = prio };

	return mock_batch_with(test, name, &attrs);
}
EXPORT_SYMBOL_GPL(mock_batch_prio);

/* Begin a case: make a pool as mock_pool() does, and a batch "a" in it. Return: "a". */
struct fairwq_batch *mock_begin(struct kunit *test, unsigned int runners)
{
	return mock_begin_with(test, runners, NULL);
}
EXPORT_SYMBOL_GPL(mock_begin);

/* Begin a case as mock_begin() does, with @attrs for "a". */
struct fairwq_batch *mock_begin_with(struct kunit *test, unsigned int runners,
				     const struct fairwq_batch_attrs *attrs)
{
	mock_pool(test, runners);
	return mock_batch_with(test, "a", attrs);
}
EXPORT_SYMBOL_GPL(mock_begin_with);

/* Begin a case as mock_begin() does, with @policy for the pool. */
struct fairwq_batch *mock_begin_by(struct kunit *test, unsigned int runners,
				   enum fairwq_policy policy)
{
	mock_pool_by(test, runners, policy);
	return mock_batch(test, "a");
}
EXPORT_SYMBOL_GPL(mock_begin_by);

/* Count the calls of released() in the atomic_t at @priv. */
void mock_released_count(struct fairwq_batch *batch, void *priv)
{
	atomic_inc(priv);
}
EXPORT_SYMBOL_GPL(mock_released_count);

/* ---- what is expected --------------------------------------------------- */

/* Open the gate of the pool. */
void mock_open(struct kunit *test)
{
	struct mock *mock = test->priv;

	complete_all(&mock->gate.open);
}
EXPORT_SYMBOL_GPL(mock_open);

/* Open the gate, and wait until the item there has ended, so that all runners are free. */
void mock_free_runners(struct kunit *test)
{
	struct mock *mock = test->priv;

	mock_open(test);
	fairwq_batch_flush(mock->gate_batch);
}
EXPORT_SYMBOL_GPL(mock_free_runners);

/* Open the gate, wait until as many items as in @order have run, and compare the log. */
void mock_expect(struct kunit *test, const char *order)
{
	struct mock *mock = test->priv;

	mock_open(test);
	mock_until(test, READ_ONCE(mock->log.nr) >= strlen(order));
	KUNIT_EXPECT_STREQ(test, order, &mock->log.text[0]);
}
EXPORT_SYMBOL_GPL(mock_expect);

/*
 * Wait until as many items as in @order have run, and compare the log. Before
 * that, cancel the @nr @items: if the wait timed out, some are still queued,
 * and the case could not end.
 */
void mock_expect_order(struct kunit *test, const char *order, struct mock_item **items,
		       unsigned int nr)
{
	struct mock *mock = test->priv;
	bool ran = mock_within(READ_ONCE(mock->log.nr) >= strlen(order));

	KUNIT_EXPECT_TRUE_MSG(test, ran, "timed out");
	while (nr--)
		fairwq_work_cancel_sync(&items[nr]->work);
	KUNIT_EXPECT_STREQ(test, order, &mock->log.text[0]);
}
EXPORT_SYMBOL_GPL(mock_expect_order);

/* ---- before and after each case ----------------------------------------- */

/* Set up what a suite has within a structure of its own. */
void mock_setup(struct mock *mock)
{
	spin_lock_init(&mock->log.lock);
	judge_init(&mock->judge, 1);
	mock_gate_init(&mock->gate);
}
EXPORT_SYMBOL_GPL(mock_setup);

/* Make test->priv before each case. Return: 0, or -ENOMEM. */
int mock_init(struct kunit *test)
{
	struct mock *mock = kunit_kzalloc(test, sizeof(*mock), GFP_KERNEL);

	if (!mock)
		return -ENOMEM;
	mock_setup(mock);
	test->priv = mock;
	return 0;
}
EXPORT_SYMBOL_GPL(mock_init);

/* Free what the case has made, also if it failed, and expect that all had their shares. */
void mock_exit(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_kept *kept;

	fairwq_test_set_hook(NULL);
	if (!mock)
		return;
	mock_gates_open(mock->gates);
	if (IS_ERR_OR_NULL(mock->pool))
		return;
	mock_gates_open(&mock->gate);
	judge_set_pool(&mock->judge, NULL);
	KUNIT_EXPECT_EQ_MSG(test, 0ULL, mock->judge.missed, "shares: %llu %% of the bound",
			    mock->judge.worst);
	for (kept = mock->kept; kept; kept = kept->next)
		fairwq_batch_dispose(kept->batch);
	if (!IS_ERR_OR_NULL(mock->gate_batch))
		fairwq_batch_dispose(mock->gate_batch);
	fairwq_pool_destroy(mock->pool);
}
EXPORT_SYMBOL_GPL(mock_exit);

/* Wait until every batch that was disposed of and has drained has left. */
void mock_wait_released(void)
{
	rcu_barrier();
	flush_workqueue(fairwq_reap_wq);
	flush_workqueue(fairwq_release_wq);
	rcu_barrier();
}
EXPORT_SYMBOL_GPL(mock_wait_released);

MODULE_DESCRIPTION("What the test suites of fairwq share");
MODULE_LICENSE("GPL");
