// SPDX-License-Identifier: GPL-2.0
/*
 * Flows: a batch for each key, made on first use in any context and removed
 * when idle. Meanwhile no item is lost, refused or overtaken, also if there is
 * no memory for a flow.
 *
 * Most cases call the sweep themselves, with a clock of their own.
 */
#include <linux/ctype.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>

#include "lib/hook.h"

#define IDLE_MS		3600000U	/* the sweep itself comes every 15 min */
#define IDLE		msecs_to_jiffies(IDLE_MS)
#define OTHER_BATCHES	5U	/* three default batches, the gate's, and the shared one */

/* Time in which a bug may show itself: see spin_for(). */
#define WRONG_MS	(MOCK_PLANTED ? 2000U : 50U)

/* The fixture, with flows. */
struct mock_flows {
	struct mock mock;		/* test->priv */
	struct fairwq_flows *flows;
	unsigned long now;		/* clock of the sweep, jiffies */
	struct mock_gate gate;		/* a second gate, for an item of a flow */
};

static struct mock_flows *mock_of(struct kunit *test)
{
	return container_of((struct mock *)test->priv, struct mock_flows, mock);
}

/* Return the number of live batches, after those of earlier cases were freed. */
static long live_batches(void)
{
	mock_wait_released();
	return fairwq_test_live_batches();
}

/* Make a pool with its gate, and flows that stay until the case sweeps. */
static struct fairwq_flows *mock_flows(struct kunit *test, unsigned int max_active,
				       const struct fairwq_batch_attrs *attrs)
{
	struct mock_flows *mock = mock_of(test);

	mock_pool(test, max_active);
	mock->flows = fairwq_flows_create(mock->mock.pool, attrs);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mock->flows));
	KUNIT_ASSERT_EQ(test, 0, fairwq_flows_set_idle_ms(mock->flows, IDLE_MS));
	return mock->flows;
}

/* Queue an item that logs @letter. Return: as fairwq_flows_queue(). */
static int queue_letter(struct kunit *test, u64 key, char letter)
{
	return fairwq_flows_queue(mock_of(test)->flows, key,
				  &mock_item(test, letter)->work);
}

static void queue_letters(struct kunit *test, u64 key, char letter, unsigned int n)
{
	while (n--)
		KUNIT_ASSERT_EQ(test, 1, queue_letter(test, key, letter));
}

/* Advance the clock of the sweep by @passed, and sweep until no flow is closed. */
static void sweep_after(struct kunit *test, unsigned long passed)
{
	struct mock_flows *mock = mock_of(test);

	mock->now += passed;
	mock_until(test, !fairwq_flows_sweep(mock->flows, mock->now));
}

/* Wait until the batches of removed flows have left, and let a sweep free the flows. */
static void free_removed(struct kunit *test)
{
	struct mock_flows *mock = mock_of(test);

	mock_until(test, mock_nr_batches(mock->mock.pool) == OTHER_BATCHES);
	fairwq_flows_sweep(mock->flows, mock->now);
}

static unsigned int nr_flows(struct kunit *test)
{
	return fairwq_test_nr_flows(mock_of(test)->flows);
}

/*
 * Make a flow that has never had an item: queue a work to it that is pending
 * already, as a 'p' behind the gate. The 'p' was queued first, so it runs
 * before the items of the flow.
 */
static void make_idle_flow(struct kunit *test, u64 key)
{
	struct mock_flows *mock = mock_of(test);
	struct mock_item *item = mock_item(test, 'p');

	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(mock->mock.gate_batch, &item->work));
	KUNIT_ASSERT_EQ(test, 0, fairwq_flows_queue(mock->flows, key, &item->work));
	KUNIT_ASSERT_EQ(test, 1U, nr_flows(test));
}

/* ---- bad input -------------------------------------------------------- */

static void released(struct fairwq_batch *batch, void *priv)
{
}

static void bad_attrs_are_refused(struct kunit *test)
{
	const struct fairwq_batch_attrs bad[] = {
		{ .weight = FAIRWQ_MAX_WEIGHT + 1 },
		{ .max_active = FAIRWQ_MAX_ACTIVE + 1 },
		{ .prio = FAIRWQ_PRIO_LOW + 1 },
		{ .released = released },
	};
	struct mock *mock = test->priv;
	unsigned int i;

	mock_pool(test, 1);
	KUNIT_EXPECT_EQ(test, -EINVAL, (int)PTR_ERR(fairwq_flows_create(NULL, NULL)));
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL,
				    (int)PTR_ERR(fairwq_flows_create(mock->pool, &bad[i])),
				    "attrs %u", i);
	KUNIT_EXPECT_EQ(test, 4U, mock_nr_batches(mock->pool));
}

static void bad_arguments_are_refused(struct kunit *test)
{
	struct fairwq_flows *flows = mock_flows(test, 1, NULL);
	struct fairwq_work *work = &mock_item(test, 'x')->work;
	struct fairwq_work no_func = { };

	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_flows_queue(NULL, 1, work));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_flows_queue(flows, 1, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_flows_queue(flows, 1, &no_func));
	KUNIT_EXPECT_EQ(test, 0U, nr_flows(test));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_flows_set_idle_ms(NULL, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fairwq_flows_set_idle_ms(flows, FAIRWQ_MAX_IDLE_MS + 1));
	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_set_idle_ms(flows, FAIRWQ_MAX_IDLE_MS));
	KUNIT_EXPECT_EQ(test, 0ULL, fairwq_flows_fallbacks(NULL));
	fairwq_flows_destroy(NULL);
	fairwq_flows_destroy(ERR_PTR(-ENOMEM));
}

/* ---- a batch per key -------------------------------------------------- */

/* Keys take turns, however many items each has. The items of one key run in queue order. */
static void keys_take_turns(struct kunit *test)
{
	mock_flows(test, 1, NULL);
	queue_letters(test, 1, 'a', 4);
	queue_letters(test, U64_MAX, 'b', 3);
	queue_letters(test, 0, 'c', 1);
	queue_letters(test, U64_MAX, 'B', 1);
	KUNIT_EXPECT_EQ(test, 3U, nr_flows(test));
	mock_expect(test, "abcababaB");
	KUNIT_EXPECT_EQ(test, 0ULL, fairwq_flows_fallbacks(mock_of(test)->flows));
}

/* Each flow has the weight and the limits of the attributes for itself. */
static void attrs_are_those_of_each(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .weight = 200, .max_queued = 8 };
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	mock_flows(test, 1, &attrs);
	a = mock_batch(test, "a");
	mock_queue(test, a, 'a', 4);
	queue_letters(test, 1, 'b', 8);
	KUNIT_EXPECT_EQ(test, -EAGAIN, queue_letter(test, 1, 'x'));
	KUNIT_EXPECT_EQ(test, 1, queue_letter(test, 2, 'c'));
	KUNIT_EXPECT_EQ(test, OTHER_BATCHES + 3, mock_nr_batches(mock->pool));
	/* Each batch joins one turn after the clock. That is shorter at a larger weight. */
	mock_expect(test, "bcabbabbabbab");
}

/* Arguments and results of the hooks, and of the thread that a case starts. */
static struct {
	struct fairwq_flows *flows;
	u64 key;
	struct fairwq_work *work;	/* logs an 'x' */
	int ret;		/* of the call that the hook, or the thread, made */
	unsigned int made;	/* flows that were about to be made */
	enum fairwq_test_point point; /* where the hook acts */
	bool armed;		/* the hook is to act; later whether it saw the other side */
	struct completion reached, go;
	atomic_t stage;		/* how far the other side is */
} forced;

/* Set up @forced, and set @hook. */
static void force(struct kunit *test, u64 key, enum fairwq_test_point point,
		  void (*hook)(enum fairwq_test_point point, struct fairwq_batch *batch))
{
	memset(&forced, 0, sizeof(forced));
	init_completion(&forced.reached);
	init_completion(&forced.go);
	forced.flows = mock_of(test)->flows;
	forced.work = &mock_item(test, 'x')->work;
	forced.key = key;
	forced.point = point;
	forced.ret = -1;
	forced.armed = true;
	fairwq_test_set_hook(hook);
}

/* Queue an 'x' when @forced.point is reached first. Count the flows that are to be made. */
static void queue_at_point(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	forced.made += point == FAIRWQ_POINT_FLOW_MAKING;
	if (point != forced.point || !forced.armed)
		return;
	forced.armed = false;
	forced.ret = fairwq_flows_queue(forced.flows, forced.key, forced.work);
}

/* Two queue calls for a new key each make a flow. One of the two stays, and both use it. */
static void two_first_users_make_one_flow(struct kunit *test)
{
	struct mock *mock = test->priv;

	mock_flows(test, 1, NULL);
	force(test, 7, FAIRWQ_POINT_FLOW_MAKING, queue_at_point);
	KUNIT_EXPECT_EQ(test, 1, queue_letter(test, 7, 'a'));
	KUNIT_EXPECT_EQ(test, 1, forced.ret);
	KUNIT_EXPECT_EQ(test, 2U, forced.made);
	KUNIT_EXPECT_EQ(test, 1U, nr_flows(test));
	mock_expect(test, "xa");
	/* The batch of the other flow has left. */
	mock_until(test, mock_nr_batches(mock->pool) == OTHER_BATCHES + 1);
}

/* An item that queues itself again, twice to each key. */
struct hop {
	struct fairwq_work work;
	struct fairwq_flows *flows;
	struct completion done;
	unsigned int left;
	int ret;
};

static void hop_fn(struct fairwq_work *work)
{
	struct hop *hop = container_of(work, struct hop, work);

	if (hop->left--)
		hop->ret = fairwq_flows_queue(hop->flows, hop->left / 2, work);
	else
		complete(&hop->done);
}

/* An item may queue itself to its own flow and to new ones. */
static void items_queue_to_flows(struct kunit *test)
{
	struct hop *hop = kunit_kzalloc(test, sizeof(*hop), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, hop);
	hop->flows = mock_flows(test, 2, NULL);
	fairwq_work_init(&hop->work, hop_fn);
	init_completion(&hop->done);
	hop->left = 20;
	KUNIT_EXPECT_EQ(test, 1, fairwq_flows_queue(hop->flows, 10, &hop->work));
	mock_await(test, &hop->done);
	KUNIT_EXPECT_EQ(test, 1, hop->ret);
	KUNIT_EXPECT_EQ(test, 11U, nr_flows(test));
}

/* ---- in any context --------------------------------------------------- */

/* A queue call in a hardirq. */
struct irq_queue {
	struct irq_work irq_work;
	struct kunit *test;
	struct fairwq_work *work;
	struct completion done;
	bool was_hardirq;
	int ret;
};

static void irq_queue_fn(struct irq_work *irq_work)
{
	struct irq_queue *irq = container_of(irq_work, struct irq_queue, irq_work);

	irq->was_hardirq = in_hardirq();
	irq->ret = fairwq_flows_queue(mock_of(irq->test)->flows, 5, irq->work);
	complete(&irq->done);
}

/*
 * Check that a queue call in atomic context has made a flow. On PREEMPT_RT it
 * may not allocate there, so the item went to the shared batch.
 */
static void expect_made_in_atomic(struct kunit *test)
{
	unsigned int shared = IS_ENABLED(CONFIG_PREEMPT_RT);

	KUNIT_EXPECT_EQ(test, 1 - shared, nr_flows(test));
	KUNIT_EXPECT_EQ(test, (u64)shared, fairwq_flows_fallbacks(mock_of(test)->flows));
	mock_expect(test, "a");
}

static void first_use_works_from_hardirq(struct kunit *test)
{
	struct irq_queue *irq = kunit_kzalloc(test, sizeof(*irq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, irq);
	mock_flows(test, 1, NULL);
	irq->test = test;
	irq->work = &mock_item(test, 'a')->work;
	init_completion(&irq->done);
	irq->irq_work = IRQ_WORK_INIT_HARD(irq_queue_fn);
	irq_work_queue(&irq->irq_work);
	mock_await(test, &irq->done);
	irq_work_sync(&irq->irq_work);
	KUNIT_EXPECT_TRUE(test, irq->was_hardirq);
	KUNIT_EXPECT_EQ(test, 1, irq->ret);
	expect_made_in_atomic(test);
}

static void first_use_works_under_a_raw_lock(struct kunit *test)
{
	struct fairwq_flows *flows = mock_flows(test, 1, NULL);
	struct fairwq_work *work = &mock_item(test, 'a')->work;
	static DEFINE_RAW_SPINLOCK(lock);
	unsigned long flags;
	int ret;

	raw_spin_lock_irqsave(&lock, flags);
	ret = fairwq_flows_queue(flows, 5, work);
	raw_spin_unlock_irqrestore(&lock, flags);
	KUNIT_EXPECT_EQ(test, 1, ret);
	expect_made_in_atomic(test);
}

/* ---- without memory --------------------------------------------------- */

static const unsigned int fail_nths[] = { 1, 2 };

static void fail_nth_desc(const unsigned int *nth, char *desc)
{
	strscpy(desc, *nth == 1 ? "for the flow" : "for its batch",
		KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(fail_nth, fail_nths, fail_nth_desc);

/*
 * An item without memory for its flow goes to the shared batch, is counted, and
 * runs. With memory the next item of the key gets a flow.
 */
static void no_memory_loses_nothing(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_queued = 1 };
	struct fairwq_flows *flows = mock_flows(test, 1, &attrs);
	const unsigned int *nth = test->param_value;
	struct mock_item *item = mock_item(test, 'b');
	struct mock *mock = test->priv;
	long live = live_batches();

	fairwq_test_flows_fail(*nth);
	KUNIT_EXPECT_EQ(test, 1, queue_letter(test, 1, 'a'));
	fairwq_test_flows_fail(*nth);
	KUNIT_EXPECT_EQ(test, 1, fairwq_flows_queue(flows, 1, &item->work));
	/* A work that is pending does not go to the shared batch, and is not counted. */
	fairwq_test_flows_fail(*nth);
	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_queue(flows, 1, &item->work));
	KUNIT_EXPECT_EQ(test, 2ULL, fairwq_flows_fallbacks(flows));
	KUNIT_EXPECT_EQ(test, 2LL, atomic64_read(&mock->pool->tally.flow_fallbacks));
	KUNIT_EXPECT_EQ(test, 0U, nr_flows(test));
	KUNIT_EXPECT_EQ(test, live, fairwq_test_live_batches());
	KUNIT_EXPECT_EQ(test, 1, queue_letter(test, 1, 'c'));
	KUNIT_EXPECT_EQ(test, 1U, nr_flows(test));
	mock_expect(test, "acb");
}

/* ---- more keys than flows --------------------------------------------- */

#define MAX_FLOWS	3U

/* Queue in a hardirq. */
static void queue_on_top(void *work)
{
	forced.ret = fairwq_flows_queue(forced.flows, forced.key, work);
}

/*
 * With as many flows as are allowed further keys share a batch, in any context,
 * and are counted. A key that has a flow keeps it, also if fewer are allowed
 * now.
 */
static void keys_beyond_the_limit_share(struct kunit *test)
{
	struct fairwq_flows *flows = mock_flows(test, 1, NULL);
	struct mock_item *item = mock_item(test, 'x');
	struct mock *mock = test->priv;
	unsigned int key;

	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_set_max(flows, MAX_FLOWS));
	for (key = 0; key < MAX_FLOWS; key++)
		queue_letters(test, key, 'a' + key, 2);
	for (key = 100; key < 1000; key += 100)
		queue_letters(test, key, 's', 1);
	memset(&forced, 0, sizeof(forced));
	forced.flows = flows;
	forced.key = 4711;
	KUNIT_EXPECT_TRUE(test, mock_call_on_top(queue_on_top, &item->work));
	KUNIT_EXPECT_EQ(test, 1, forced.ret);
	KUNIT_EXPECT_EQ(test, -ENOSPC, (int)PTR_ERR_OR_ZERO(fairwq_flows_get(flows, 4712)));
	KUNIT_EXPECT_EQ(test, MAX_FLOWS, nr_flows(test));
	KUNIT_EXPECT_EQ(test, OTHER_BATCHES + MAX_FLOWS, mock_nr_batches(mock->pool));
	KUNIT_EXPECT_EQ(test, 10ULL, fairwq_flows_fallbacks(flows));
	KUNIT_EXPECT_EQ(test, 10LL, atomic64_read(&mock->pool->tally.flow_fallbacks));
	/* A pending work is not queued to the shared batch, and not counted. */
	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_queue(flows, 4713, &item->work));
	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_set_max(flows, 1));
	queue_letters(test, 2, 'c', 1);
	KUNIT_EXPECT_EQ(test, 10ULL, fairwq_flows_fallbacks(flows));
	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_set_max(flows, 0));
	queue_letters(test, 5, 'f', 1);
	KUNIT_EXPECT_EQ(test, MAX_FLOWS + 1, nr_flows(test));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_flows_set_max(NULL, 1));
	mock_expect(test, "abcsfabcscsssssssx");
}

/* Two queue calls for new keys each make a flow. There is room for one: the other one goes. */
static void two_first_users_keep_to_the_limit(struct kunit *test)
{
	struct fairwq_flows *flows = mock_flows(test, 1, NULL);
	struct mock *mock = test->priv;

	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_set_max(flows, 1));
	force(test, 8, FAIRWQ_POINT_FLOW_MAKING, queue_at_point);
	KUNIT_EXPECT_EQ(test, 1, queue_letter(test, 7, 'a'));
	KUNIT_EXPECT_EQ(test, 1, forced.ret);
	KUNIT_EXPECT_EQ(test, 2U, forced.made);
	KUNIT_EXPECT_EQ(test, 1U, nr_flows(test));
	KUNIT_EXPECT_EQ(test, 1ULL, fairwq_flows_fallbacks(flows));
	mock_expect(test, "xa");
	mock_until(test, mock_nr_batches(mock->pool) == OTHER_BATCHES + 1);
}

static struct fairwq_batch *batch_of(struct fairwq_flows *flows, u64 key)
{
	guard(rcu)();
	return fairwq_flows_batch(flows, key);
}

/*
 * An item may be of a flow, and delayed, in a serializer, or of a sequencer.
 * The flow stays as long as the item waits, and its batch takes turns as that
 * of any key.
 */
static void item_of_a_flow_may_wait_elsewhere(struct kunit *test)
{
	struct fairwq_delayed_work *dwork = kunit_kzalloc(test, sizeof(*dwork), GFP_KERNEL);
	struct fairwq_flows *flows = mock_flows(test, 1, NULL);
	struct mock_item *item[3];
	struct fairwq_serializer serializer;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, dwork);
	fairwq_serializer_init(&serializer);
	fairwq_delayed_work_init(dwork, mock_nothing_fn);
	for (i = 0; i < ARRAY_SIZE(item); i++)
		item[i] = mock_item(test, 'a' + i);
	rcu_read_lock();
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(fairwq_flows_batch(flows, 1), dwork,
						      3600UL * HZ));
	KUNIT_EXPECT_EQ(test, 1, fairwq_serializer_queue(&serializer, fairwq_flows_batch(flows, 2),
							 &item[0]->work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_serializer_queue(&serializer, fairwq_flows_batch(flows, 3),
							 &item[1]->work));
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, 1, fairwq_flows_queue(flows, 3, &item[2]->work));
	sweep_after(test, 0);
	sweep_after(test, IDLE);
	KUNIT_EXPECT_EQ(test, 3U, nr_flows(test));
	mock_expect(test, "acb");
	fairwq_serializer_destroy(&serializer);
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_cancel(dwork));
	/* A key without room gets the batch of all such keys, which is counted. */
	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_set_max(flows, 3));
	KUNIT_EXPECT_PTR_EQ(test, batch_of(flows, 4), batch_of(flows, 5));
	KUNIT_EXPECT_PTR_NE(test, batch_of(flows, 4), batch_of(flows, 1));
	KUNIT_EXPECT_EQ(test, 3ULL, fairwq_flows_fallbacks(flows));
	KUNIT_EXPECT_EQ(test, -EINVAL, (int)PTR_ERR(fairwq_flows_batch(NULL, 1)));
}

/* Close the only flow there may be, and wait until another key gets one. */
static void close_one_for_another(struct kunit *test, struct fairwq_flows *flows, u64 key)
{
	struct fairwq_batch *batch = fairwq_flows_get(flows, key);

	KUNIT_ASSERT_FALSE(test, IS_ERR(batch));
	KUNIT_EXPECT_EQ(test, 0, fairwq_batch_shutdown(batch, FAIRWQ_RUN_REST, NULL));
	mock_until(test, !IS_ERR(batch = fairwq_flows_get(flows, key + 1)));
	fairwq_batch_put(batch);
	KUNIT_EXPECT_EQ(test, 1, queue_letter(test, key + 1, 'a'));
	KUNIT_EXPECT_EQ(test, 0ULL, fairwq_flows_fallbacks(flows));
}

/* A key whose batch was shut down gives its place to another one, however long flows stay. */
static void closed_key_gives_its_place_back(struct kunit *test)
{
	struct fairwq_flows *flows = mock_flows(test, 1, NULL);

	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_set_max(flows, 1));
	mock_open(test);
	close_one_for_another(test, flows, 1);
	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_set_idle_ms(flows, 0));
	close_one_for_another(test, flows, 2);
	mock_expect(test, "aa");
}

#define DFL_MAX		16384U

/* A driver that sets no limit has one, too. When flows have gone, new keys get a flow. */
static void room_comes_back(struct kunit *test)
{
	struct fairwq_flows *flows = mock_flows(test, 2, NULL);
	unsigned int max = MOCK_MANY(DFL_MAX), key;
	struct fairwq_work *works = kvcalloc(max + 2, sizeof(*works), GFP_KERNEL);
	struct mock *mock = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, works);
	if (max < DFL_MAX)
		fairwq_flows_set_max(flows, max);
	for (key = 0; key < max + 2; key++) {
		fairwq_work_init(&works[key], mock_nothing_fn);
		KUNIT_EXPECT_EQ(test, 1, fairwq_flows_queue(flows, key, &works[key]));
		cond_resched();
	}
	KUNIT_EXPECT_EQ(test, max, nr_flows(test));
	KUNIT_EXPECT_EQ(test, 2ULL, fairwq_flows_fallbacks(flows));
	mock_open(test);
	fairwq_pool_flush(mock->pool);
	/* The real sweep, which the calls without room have armed. */
	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_set_idle_ms(flows, 1));
	mock_until(test, !nr_flows(test));
	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_set_idle_ms(flows, IDLE_MS));
	KUNIT_EXPECT_EQ(test, 1, fairwq_flows_queue(flows, max + 1, &works[0]));
	KUNIT_EXPECT_EQ(test, 1U, nr_flows(test));
	KUNIT_EXPECT_EQ(test, 2ULL, fairwq_flows_fallbacks(flows));
	fairwq_pool_flush(mock->pool);
	kvfree(works);
}

/* ---- idle flows are removed ------------------------------------------- */

/* A flow is removed the idle time after the first sweep that saw it drained, not before. */
static void idle_flow_goes(struct kunit *test)
{
	long live = live_batches();
	struct mock *mock = test->priv;

	mock_flows(test, 1, NULL);
	queue_letters(test, 1, 'a', 3);
	sweep_after(test, 0);
	mock_expect(test, "aaa");
	fairwq_pool_flush(mock->pool);
	sweep_after(test, 2 * IDLE);
	KUNIT_EXPECT_EQ(test, 1U, nr_flows(test));
	sweep_after(test, IDLE - 1);
	KUNIT_EXPECT_EQ(test, 1U, nr_flows(test));
	sweep_after(test, 1);
	KUNIT_EXPECT_EQ(test, 0U, nr_flows(test));
	free_removed(test);
	KUNIT_EXPECT_EQ(test, live + OTHER_BATCHES, live_batches());
	/* The next item of the key makes a new flow. */
	KUNIT_EXPECT_EQ(test, 1, queue_letter(test, 1, 'b'));
	mock_expect(test, "aaab");
}

/* A queue call restarts the idle time, also if its item has ended before the sweep. */
static void used_flow_stays(struct kunit *test)
{
	struct mock *mock = test->priv;

	mock_flows(test, 1, NULL);
	queue_letters(test, 1, 'a', 1);
	mock_expect(test, "a");
	fairwq_pool_flush(mock->pool);
	sweep_after(test, 0);
	queue_letters(test, 1, 'b', 1);
	mock_expect(test, "ab");
	fairwq_pool_flush(mock->pool);
	sweep_after(test, IDLE);
	KUNIT_EXPECT_EQ(test, 1U, nr_flows(test));
	sweep_after(test, IDLE / 2);
	KUNIT_EXPECT_EQ(test, 1U, nr_flows(test));
	sweep_after(test, IDLE / 2);
	KUNIT_EXPECT_EQ(test, 0U, nr_flows(test));
}

/* A flow with a queued item stays, however long that waits. Later items run behind it. */
static void flow_with_an_item_stays(struct kunit *test)
{
	unsigned int i;

	mock_flows(test, 1, NULL);
	queue_letters(test, 1, 'a', 1);
	queue_letters(test, 1, 'b', 1);
	for (i = 0; i < 4; i++)
		sweep_after(test, IDLE);
	KUNIT_EXPECT_EQ(test, 1U, nr_flows(test));
	queue_letters(test, 1, 'c', 1);
	mock_expect(test, "abc");
}

/* A flow whose item runs stays. */
static void flow_that_runs_stays(struct kunit *test)
{
	struct mock_flows *mock = mock_of(test);
	unsigned int i;

	mock_flows(test, 2, NULL);
	KUNIT_ASSERT_EQ(test, 1, fairwq_flows_queue(mock->flows, 1, &mock->gate.work));
	mock_await(test, &mock->gate.entered);
	for (i = 0; i < 4; i++)
		sweep_after(test, IDLE);
	KUNIT_EXPECT_EQ(test, 1U, nr_flows(test));
	complete_all(&mock->gate.open);
	mock_open(test);
	fairwq_pool_flush(mock->mock.pool);
	sweep_after(test, 0);
	sweep_after(test, IDLE);
	KUNIT_EXPECT_EQ(test, 0U, nr_flows(test));
}

/* With an idle time of 0 no flow is removed. */
static void idle_time_0_keeps_flows(struct kunit *test)
{
	unsigned int i;

	mock_flows(test, 1, NULL);
	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_set_idle_ms(mock_of(test)->flows, 0));
	make_idle_flow(test, 1);
	for (i = 0; i < 4; i++)
		sweep_after(test, 1000 * IDLE);
	KUNIT_EXPECT_EQ(test, 1U, nr_flows(test));
}

/* An idle time of 0 also keeps a flow that a sweep has closed before. */
static void idle_time_0_keeps_closed_flows(struct kunit *test)
{
	struct fairwq_flows *flows = mock_flows(test, 1, NULL);
	struct fairwq_batch *batch;

	make_idle_flow(test, 1);
	batch = batch_of(flows, 1);
	sweep_after(test, 0);
	mock_of(test)->now += IDLE;
	KUNIT_EXPECT_TRUE(test, fairwq_flows_sweep(flows, mock_of(test)->now));
	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_set_idle_ms(flows, 0));
	sweep_after(test, 0);
	KUNIT_EXPECT_EQ(test, 1U, nr_flows(test));
	KUNIT_EXPECT_EQ(test, 1, queue_letter(test, 1, 'a'));
	KUNIT_EXPECT_PTR_EQ(test, batch, batch_of(flows, 1));
	mock_expect(test, "pa");
}

/* Idle flows are removed without a call by the case, also flows made after the first sweep. */
static void idle_flows_go_by_themselves(struct kunit *test)
{
	struct fairwq_flows *flows = mock_flows(test, 2, NULL);
	unsigned int i;

	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_set_idle_ms(flows, 0));
	queue_letters(test, 1, 'a', 1);
	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_set_idle_ms(flows, 20));	/* soon */
	mock_until(test, !nr_flows(test));
	for (i = 0; i < 100; i++)
		queue_letters(test, i, 'b', 1);
	mock_until(test, !nr_flows(test));
}

/* ---- a sweep waits for nothing ---------------------------------------- */

#define SWEEPERS	8U	/* more than the module's own works that are active at once */

/* A reader, during which no grace period ends. */
static struct {
	bool inside, leave;
} reader;

static bool reader_fn(struct fairwq_work *work)
{
	bool left;

	rcu_read_lock();
	step_done(&reader.inside);
	left = spin_for(18000, smp_load_acquire(&reader.leave));	/* pairs with step_done() */
	rcu_read_unlock();
	return left;
}

static struct call *reader_new(struct kunit *test)
{
	reader.inside = false;
	reader.leave = false;
	return mock_call_new(test, reader_fn, NULL);
}

static struct call *reader_begin(struct kunit *test)
{
	struct call *call = reader_new(test);

	mock_call_go_apart(test, call);
	mock_until(test, smp_load_acquire(&reader.inside));	/* pairs with step_done() */
	return call;
}

static void reader_end(struct kunit *test, struct call *call)
{
	step_done(&reader.leave);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
}

static void count_closed(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point == FAIRWQ_POINT_FLOWS_SWEEP_CLOSED)
		atomic_inc(&forced.stage);
}

/* A work of the module's own, as those that reap batches and push RCU works are. */
static void probe_fn(struct work_struct *work)
{
	atomic_inc(&forced.stage);
}

/* Wait until @forced.stage is @stage, but not after @call has returned. */
static void wait_for_stage(int stage, struct call *call)
{
	while (atomic_read(&forced.stage) < stage && !completion_done(&call->done))
		usleep_range(50, 200);
}

/*
 * Sweeps of many flows have each closed one, and no grace period ends. All of
 * them have come so far, and another work of the module still finds a worker.
 */
static void sweeps_keep_no_worker(struct kunit *test)
{
	static DECLARE_WORK(probe, probe_fn);
	struct fairwq_flows *flows[SWEEPERS];
	struct mock *mock = test->priv;
	struct call *call;
	unsigned int i;

	need_two_cpus(test);
	mock_flows(test, 2, NULL);
	mock_open(test);
	for (i = 0; i < SWEEPERS; i++) {
		flows[i] = fairwq_flows_create(mock->pool, NULL);
		KUNIT_ASSERT_FALSE(test, IS_ERR(flows[i]));
		KUNIT_ASSERT_EQ(test, 1, fairwq_flows_queue(flows[i], 1,
							    &mock_item(test, 'a')->work));
	}
	fairwq_pool_flush(mock->pool);
	force(test, 1, FAIRWQ_POINT_FLOWS_SWEEP_CLOSED, count_closed);
	call = reader_begin(test);
	for (i = 0; i < SWEEPERS; i++)
		KUNIT_EXPECT_EQ(test, 0, fairwq_flows_set_idle_ms(flows[i], 1));
	wait_for_stage(SWEEPERS, call);
	queue_work(fairwq_reap_wq, &probe);
	wait_for_stage(SWEEPERS + 1, call);
	KUNIT_EXPECT_FALSE(test, completion_done(&call->done));
	reader_end(test, call);
	for (i = 0; i < SWEEPERS; i++) {
		mock_until(test, !fairwq_test_nr_flows(flows[i]));
		fairwq_flows_destroy(flows[i]);
	}
	flush_work(&probe);
}

/* ---- the sweep against a queue call, forced every way ------------------ */

/* A step of the sweep at which a queue call comes. */
struct sweep_case {
	const char *desc;
	enum fairwq_test_point point;	/* of the sweep */
	unsigned int made;		/* flows that the queue call makes */
};

static const struct sweep_case sweep_cases[] = {
	{ "closed", FAIRWQ_POINT_FLOWS_SWEEP_CLOSED, 0 },
	{ "closed for a grace period", FAIRWQ_POINT_FLOWS_SWEEP_WAITED, 0 },
	{ "removed", FAIRWQ_POINT_FLOW_REMOVED, 1 },
};

static void sweep_case_desc(const struct sweep_case *c, char *desc)
{
	strscpy(desc, c->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(sweep, sweep_cases, sweep_case_desc);

/*
 * A queue call comes while the sweep removes its flow. The call opens the flow
 * again if it is still there, else makes a new one.
 */
static void queue_while_the_flow_goes(struct kunit *test)
{
	const struct sweep_case *c = test->param_value;
	struct mock *mock = test->priv;

	mock_flows(test, 1, NULL);
	make_idle_flow(test, 1);
	sweep_after(test, 0);
	force(test, 1, c->point, queue_at_point);
	sweep_after(test, IDLE);
	KUNIT_EXPECT_EQ(test, 1, forced.ret);
	KUNIT_EXPECT_EQ(test, c->made, forced.made);
	KUNIT_EXPECT_EQ(test, 1U, nr_flows(test));
	queue_letters(test, 1, 'y', 1);
	KUNIT_EXPECT_EQ(test, c->made, forced.made);
	mock_expect(test, "pxy");
	mock_until(test, mock_nr_batches(mock->pool) == OTHER_BATCHES + 1);
}

/* Queue in another thread, when the case or a hook completes @forced.go. */
static int caller_fn(void *data)
{
	wait_for_completion(&forced.go);
	forced.ret = fairwq_flows_queue(forced.flows, forced.key, forced.work);
	complete(&forced.reached);
	return 0;
}

static bool is_at_stage(int stage)
{
	return atomic_read_acquire(&forced.stage) >= stage;
}

/*
 * Hold up a caller that has found the flow open, until the sweep has closed the
 * flow. Then give a wrong sweep, which does not wait for the push, time to end.
 */
static void push_late(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point == FAIRWQ_POINT_FLOWS_SWEEP_CLOSED)
		atomic_set_release(&forced.stage, 1);
	if (point != FAIRWQ_POINT_FLOW_FOUND)
		return;
	complete(&forced.reached);
	spin_within(is_at_stage(1));
	forced.armed = spin_for(WRONG_MS, is_at_stage(2));
}

static struct task_struct *start_caller(struct kunit *test)
{
	struct task_struct *task = kthread_run(caller_fn, NULL, "flows_caller");

	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	return task;
}

/* The sweep waits for a queue call that has found the flow open. */
static void sweep_waits_for_a_push_under_way(struct kunit *test)
{
	mock_flows(test, 1, NULL);
	make_idle_flow(test, 1);
	sweep_after(test, 0);
	force(test, 1, FAIRWQ_POINT_FLOW_FOUND, push_late);
	start_caller(test);
	complete(&forced.go);
	mock_await(test, &forced.reached);
	sweep_after(test, IDLE);
	atomic_set_release(&forced.stage, 2);
	mock_await(test, &forced.reached);
	KUNIT_EXPECT_FALSE_MSG(test, forced.armed, "the sweep was through before the push");
	KUNIT_EXPECT_EQ(test, 1, forced.ret);
	KUNIT_EXPECT_EQ(test, 1U, nr_flows(test));
	mock_expect(test, "px");
}

/*
 * Let the caller find the flow closed, and hold it up before it takes the lock.
 * Meanwhile the sweep removes the flow and disposes of its batch.
 */
static void look_again_late(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	forced.made += point == FAIRWQ_POINT_FLOW_MAKING;
	if (point == FAIRWQ_POINT_FLOWS_SWEEP_WAITED) {
		complete(&forced.go);
		mock_wait(&forced.reached);
	}
	if (point == FAIRWQ_POINT_FLOW_CLOSED) {
		complete(&forced.reached);
		forced.armed = spin_within(is_at_stage(1));
	}
}

/* A queue call that found its flow closed makes a new flow, if the sweep removed the old one. */
static void queue_call_survives_a_removal(struct kunit *test)
{
	mock_flows(test, 1, NULL);
	make_idle_flow(test, 1);
	sweep_after(test, 0);
	force(test, 1, FAIRWQ_POINT_FLOW_CLOSED, look_again_late);
	start_caller(test);
	sweep_after(test, IDLE);
	KUNIT_EXPECT_EQ(test, 0U, nr_flows(test));
	atomic_set_release(&forced.stage, 1);
	mock_await(test, &forced.reached);
	KUNIT_EXPECT_TRUE(test, forced.armed);
	KUNIT_EXPECT_EQ(test, 1, forced.ret);
	KUNIT_EXPECT_EQ(test, 1U, forced.made);
	KUNIT_EXPECT_EQ(test, 1U, nr_flows(test));
	mock_expect(test, "px");
}

/*
 * Let the caller find the flow closed and open it, and hold it up before the
 * push. Meanwhile the sweep goes on, and finds no item in the flow.
 */
static void push_after_the_sweep(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	forced.made += point == FAIRWQ_POINT_FLOW_MAKING;
	if (point == FAIRWQ_POINT_FLOWS_SWEEP_WAITED) {
		complete(&forced.go);
		mock_wait(&forced.reached);
	}
	if (point == FAIRWQ_POINT_FLOW_QUEUEING) {
		complete(&forced.reached);
		forced.armed = spin_within(is_at_stage(1));
	}
}

/* The sweep does not remove a flow that was opened again, though it has no item yet. */
static void opened_flow_is_not_removed(struct kunit *test)
{
	mock_flows(test, 1, NULL);
	make_idle_flow(test, 1);
	sweep_after(test, 0);
	force(test, 1, FAIRWQ_POINT_FLOW_QUEUEING, push_after_the_sweep);
	start_caller(test);
	sweep_after(test, IDLE);
	atomic_set_release(&forced.stage, 1);
	mock_await(test, &forced.reached);
	KUNIT_EXPECT_TRUE(test, forced.armed);
	KUNIT_EXPECT_EQ(test, 1, forced.ret);
	KUNIT_EXPECT_EQ(test, 0U, forced.made);
	KUNIT_EXPECT_EQ(test, 1U, nr_flows(test));
	mock_expect(test, "px");
}

/* ---- the same by chance ----------------------------------------------- */

#define RACE_KEYS	3	/* of each thread */
#define RACE_BURSTS	30
#define RACE_BURST	50

/* A thread that queues, and the counts of its items. */
struct race {
	struct fairwq_flows *flows;
	u64 first_key;
	unsigned int queued[RACE_KEYS];
	unsigned int ran[RACE_KEYS];	/* no lock, because max_active of a key is 1 */
	atomic_t *sweeps;		/* number of sweeps so far */
	bool stop;			/* no sweep follows */
	atomic_t disorder;		/* items that ran out of their order */
	int err;
	struct completion over;
};

/* The item number @seq of @key. */
struct race_item {
	struct fairwq_work work;
	struct race *race;
	unsigned int key, seq;
};

static void race_item_fn(struct fairwq_work *work)
{
	struct race_item *item = container_of(work, struct race_item, work);
	struct race *race = item->race;

	if (READ_ONCE(race->ran[item->key]) != item->seq)
		atomic_inc(&race->disorder);
	WRITE_ONCE(race->ran[item->key], item->seq + 1);
	kfree(item);
}

static int race_queue_one(struct race *race, unsigned int key)
{
	struct race_item *item = kzalloc(sizeof(*item), GFP_KERNEL);
	int ret;

	if (!item)
		return -ENOMEM;
	fairwq_work_init(&item->work, race_item_fn);
	item->race = race;
	item->key = key;
	item->seq = race->queued[key];
	ret = fairwq_flows_queue(race->flows, race->first_key + key, &item->work);
	if (ret != 1) {
		kfree(item);
		return ret ?: -EBUSY;
	}
	race->queued[key]++;
	return 0;
}

/*
 * Queue a burst of items to each key in turn. Between its bursts a key is left
 * alone for two or three sweeps, so that the next burst begins about when its
 * flow is removed. The sweep does not wait for this thread.
 */
static int race_fn(void *data)
{
	struct race *race = data;
	unsigned int i, key;
	int seen;

	for (i = 0; !race->err && i < RACE_BURSTS * RACE_BURST; i++) {
		key = i / RACE_BURST % RACE_KEYS;
		race->err = race_queue_one(race, key);
		if (i % RACE_BURST)
			continue;
		seen = atomic_read(race->sweeps) + (i / RACE_BURST % 4 == 0);
		while (atomic_read(race->sweeps) <= seen && !READ_ONCE(race->stop))
			usleep_range(10, 50);	/* it polls: any time will do */
	}
	complete(&race->over);
	return 0;
}

/* Wait until a thread has ended, and all its items have run in order. */
static void race_ended(struct kunit *test, struct race *race)
{
	unsigned int i;

	mock_await(test, &race->over);
	KUNIT_EXPECT_EQ(test, 0, race->err);
	for (i = 0; i < RACE_KEYS; i++)
		mock_until(test, READ_ONCE(race->ran[i]) == race->queued[i]);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&race->disorder));
}

static void count_made(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point == FAIRWQ_POINT_FLOW_MAKING)
		atomic_inc(&forced.stage);
}

/*
 * Two threads queue while sweep after sweep removes flows. Every item runs
 * once, and the items of a key run in queue order.
 */
static void queue_against_sweep_loses_no_item(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_active = 1 };
	struct race *race = kunit_kcalloc(test, 2, sizeof(*race), GFP_KERNEL);
	struct mock_bound bound = mock_bound(MOCK_WAIT_MS);
	atomic_t sweeps = ATOMIC_INIT(0);
	struct fairwq_flows *flows;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, race);
	flows = mock_flows(test, 3, &attrs);
	mock_open(test);
	force(test, 0, FAIRWQ_POINT_FLOW_MAKING, count_made);
	for (i = 0; i < 2; i++) {
		race[i].flows = flows;
		race[i].sweeps = &sweeps;
		race[i].first_key = i * RACE_KEYS;
		init_completion(&race[i].over);
		KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(race_fn, &race[i], "race")));
	}
	while (!completion_done(&race[0].over) || !completion_done(&race[1].over)) {
		sweep_after(test, IDLE);
		atomic_inc(&sweeps);
		if (mock_bound_reached(&bound))
			break;
	}
	for (i = 0; i < 2; i++) {
		WRITE_ONCE(race[i].stop, true);
		race_ended(test, &race[i]);
	}
	kunit_info(test, "%d flows made for %d keys\n", atomic_read(&forced.stage),
		   2 * RACE_KEYS);
}

/* ---- many ------------------------------------------------------------- */

/* Fewer with KASAN, KCSAN or lockdep, because an allocation can take milliseconds there. */
#define MANY	MOCK_MANY(10000U)

struct many_item {
	struct fairwq_work work;
	atomic_t *ran;
};

static void many_fn(struct fairwq_work *work)
{
	atomic_inc(container_of(work, struct many_item, work)->ran);
}

/* 10,000 keys are used twice each. Then the sweep removes all flows, and no batch is left. */
static void ten_thousand_keys_leave_no_batch(struct kunit *test)
{
	struct many_item *item = kvcalloc(MANY, sizeof(*item), GFP_KERNEL);
	struct mock *mock = test->priv;
	long live = live_batches();
	struct fairwq_flows *flows;
	atomic_t ran = ATOMIC_INIT(0);
	unsigned int i, pass, refused = 0;
	u64 began, ns[2];		/* which are only told */

	KUNIT_ASSERT_NOT_NULL(test, item);
	flows = mock_flows(test, 3, NULL);
	for (i = 0; i < MANY; i++) {
		fairwq_work_init(&item[i].work, many_fn);
		item[i].ran = &ran;
	}
	for (pass = 0; pass < 2; pass++) {
		began = fairwq_clock();
		for (i = 0; i < MANY; i++) {
			refused += fairwq_flows_queue(flows, i * 0x9e3779b97f4a7c15ULL,
						      &item[i].work) != 1;
			cond_resched();
		}
		ns[pass] = fairwq_clock() - began;
		mock_open(test);
		fairwq_pool_flush(mock->pool);
	}
	KUNIT_EXPECT_EQ(test, 0U, refused);
	KUNIT_EXPECT_EQ(test, 2 * MANY, (unsigned int)atomic_read(&ran));
	KUNIT_EXPECT_EQ(test, MANY, nr_flows(test));
	KUNIT_EXPECT_EQ(test, 0ULL, fairwq_flows_fallbacks(flows));
	KUNIT_EXPECT_EQ(test, live + OTHER_BATCHES + MANY, fairwq_test_live_batches());
	sweep_after(test, 0);
	sweep_after(test, IDLE);
	KUNIT_EXPECT_EQ(test, 0U, nr_flows(test));
	free_removed(test);
	KUNIT_EXPECT_EQ(test, live + OTHER_BATCHES, live_batches());
	kunit_info(test, "queued in %llu ns each the first time, then %llu\n",
		   div_u64(ns[0], MANY), div_u64(ns[1], MANY));
	kvfree(item);
}

/* ---- the end ---------------------------------------------------------- */

/* A thread that destroys the flows, and the results of queue calls meanwhile. */
struct destroyer {
	struct kunit *test;
	struct completion dying, done;
	int refused;		/* of a queue call for an idle work */
	int pending[2];		/* for a pending work: with a key that has a flow; a new key */
	int got[2];		/* of a call for a handle, with the same keys */
	struct fairwq_work *work; /* the pending work */
	unsigned int ran;	/* items that had run when the destroy returned */
};

static struct destroyer destroyer;

/* Queue to flows that have begun to refuse items. */
static void refuse_while_dying(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point != FAIRWQ_POINT_FLOWS_DYING)
		return;
	destroyer.refused = queue_letter(destroyer.test, 1, 'x');
	destroyer.pending[0] = fairwq_flows_queue(mock_of(destroyer.test)->flows, 1,
						  destroyer.work);
	destroyer.pending[1] = fairwq_flows_queue(mock_of(destroyer.test)->flows, 99,
						  destroyer.work);
	destroyer.got[0] = PTR_ERR_OR_ZERO(fairwq_flows_get(mock_of(destroyer.test)->flows, 1));
	destroyer.got[1] = PTR_ERR_OR_ZERO(fairwq_flows_get(mock_of(destroyer.test)->flows, 99));
	complete(&destroyer.dying);
}

static int destroyer_fn(void *data)
{
	struct mock_flows *mock = mock_of(destroyer.test);
	struct fairwq_flows *flows = mock->flows;

	fairwq_flows_destroy(flows);
	mock->flows = NULL;
	destroyer.ran = READ_ONCE(mock->mock.log.nr);
	complete(&destroyer.done);
	return 0;
}

/*
 * A destroy returns after all accepted items have run, also those in the shared
 * batch. From its start on, new items are refused.
 */
static void destroy_runs_what_was_accepted(struct kunit *test)
{
	long live = live_batches();
	struct mock_item *last = mock_item(test, 'b');
	struct mock *mock = test->priv;

	mock_flows(test, 1, NULL);
	queue_letters(test, 1, 'a', 3);
	queue_letters(test, 2, 'b', 1);
	KUNIT_ASSERT_EQ(test, 1, fairwq_flows_queue(mock_of(test)->flows, 2, &last->work));
	fairwq_test_flows_fail(1);
	queue_letters(test, 3, 'c', 1);
	memset(&destroyer, 0, sizeof(destroyer));
	destroyer.work = &last->work;
	destroyer.test = test;
	init_completion(&destroyer.dying);
	init_completion(&destroyer.done);
	fairwq_test_set_hook(refuse_while_dying);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(destroyer_fn, NULL, "destroyer")));
	mock_await(test, &destroyer.dying);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, destroyer.refused);
	KUNIT_EXPECT_EQ(test, 0, destroyer.pending[0]);
	KUNIT_EXPECT_EQ(test, 0, destroyer.pending[1]);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, destroyer.got[0]);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, destroyer.got[1]);
	/* The gate is closed, so no item can have run, and the destroy must still wait. */
	msleep(WRONG_MS);
	KUNIT_EXPECT_FALSE(test, completion_done(&destroyer.done));
	mock_expect(test, "abcaba");
	mock_until(test, !mock_of(test)->flows);
	KUNIT_EXPECT_EQ(test, 6U, destroyer.ran);
	KUNIT_EXPECT_EQ(test, live + 4, live_batches());
	KUNIT_EXPECT_EQ(test, 4U, mock_nr_batches(mock->pool));
}

/*
 * Hold up a caller at @forced.point until a destroy has begun. Then give a
 * wrong destroy, which does not wait for the caller, time to end.
 */
static void wait_while_dying(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point == FAIRWQ_POINT_FLOWS_DYING)
		atomic_set_release(&forced.stage, 1);
	if (point != forced.point)
		return;
	complete(&forced.reached);
	spin_within(is_at_stage(1));
	forced.armed = spin_for(WRONG_MS, is_at_stage(2));
}

/* Set an idle time in another thread, which arms the sweep. */
static int arming_fn(void *data)
{
	forced.ret = fairwq_flows_set_idle_ms(forced.flows, 1000);
	complete(&forced.reached);
	return 0;
}

/* A destroy waits for a call that is about to arm the sweep. */
static void destroy_waits_for_a_new_idle_time(struct kunit *test)
{
	struct mock_flows *mock = mock_of(test);

	mock_flows(test, 2, NULL);
	force(test, 1, FAIRWQ_POINT_FLOWS_IDLE, wait_while_dying);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(arming_fn, NULL, "arming")));
	mock_await(test, &forced.reached);
	fairwq_flows_destroy(mock->flows);
	atomic_set_release(&forced.stage, 2);
	mock->flows = NULL;
	mock_await(test, &forced.reached);
	KUNIT_EXPECT_FALSE_MSG(test, forced.armed, "destroyed before the sweep was armed");
	KUNIT_EXPECT_EQ(test, 0, forced.ret);
}

/* A destroy waits for a queue call that was not refused, and for the item. */
static void destroy_waits_for_a_queue_call_under_way(struct kunit *test)
{
	struct mock_flows *mock = mock_of(test);
	unsigned int ran;

	mock_flows(test, 2, NULL);
	queue_letters(test, 1, 'a', 1);
	mock_until(test, READ_ONCE(mock->mock.log.nr) == 1);
	force(test, 1, FAIRWQ_POINT_QUEUE_PUSHED, wait_while_dying);
	start_caller(test);
	complete(&forced.go);
	mock_await(test, &forced.reached);
	fairwq_flows_destroy(mock->flows);
	atomic_set_release(&forced.stage, 2);
	mock->flows = NULL;
	ran = READ_ONCE(mock->mock.log.nr);
	mock_await(test, &forced.reached);
	KUNIT_EXPECT_EQ(test, 2U, ran);
	KUNIT_EXPECT_FALSE_MSG(test, forced.armed, "destroyed before the push");
	KUNIT_EXPECT_EQ(test, 1, forced.ret);
}

/* An item that destroys the flows it is in. */
struct self_destroy {
	struct fairwq_work work;
	struct fairwq_flows *flows;
	struct completion done;
};

static void self_destroy_fn(struct fairwq_work *work)
{
	struct self_destroy *self = container_of(work, struct self_destroy, work);

	fairwq_flows_destroy(self->flows);
	complete(&self->done);
}

/* An item may not destroy flows of its own pool, because it would wait for itself. */
static void destroy_from_an_item_is_caught(struct kunit *test)
{
	struct self_destroy *self = kunit_kzalloc(test, sizeof(*self), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, self);
	self->flows = mock_flows(test, 2, NULL);
	fairwq_work_init(&self->work, self_destroy_fn);
	init_completion(&self->done);
	pr_info("# expect-splat begin destroys flows of its own pool\n");
	KUNIT_EXPECT_EQ(test, 1, fairwq_flows_queue(self->flows, 1, &self->work));
	mock_await(test, &self->done);
	pr_info("# expect-splat end\n");
	KUNIT_EXPECT_EQ(test, 1, queue_letter(test, 1, 'a'));
	mock_expect(test, "a");
}

/*
 * A pool that is destroyed before its flows warns. After that the flows refuse
 * all items, and can be swept and destroyed.
 */
static void pool_that_goes_first_is_caught(struct kunit *test)
{
	struct fairwq_pool *pool = fairwq_pool_create(NULL, "other");
	struct mock_flows *mock = mock_of(test);
	long live = live_batches();

	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	mock->flows = fairwq_flows_create(pool, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mock->flows));
	queue_letters(test, 1, 'a', 100);
	queue_letters(test, 2, 'b', 100);
	pr_info("# expect-splat begin is destroyed before its flows\n");
	fairwq_pool_destroy(pool);
	pr_info("# expect-splat end\n");
	KUNIT_EXPECT_EQ(test, 200U, mock->mock.log.nr);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, queue_letter(test, 1, 'x'));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, queue_letter(test, 3, 'x'));
	sweep_after(test, 0);
	sweep_after(test, IDLE);
	KUNIT_EXPECT_EQ(test, 0U, nr_flows(test));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, queue_letter(test, 1, 'x'));
	fairwq_flows_destroy(mock->flows);
	mock->flows = NULL;
	/* @live counts the three default batches of that pool, too. */
	KUNIT_EXPECT_EQ(test, live - 3, live_batches());
}

static int flows_init(struct kunit *test)
{
	struct mock_flows *mock = kunit_kzalloc(test, sizeof(*mock), GFP_KERNEL);

	if (!mock)
		return -ENOMEM;
	mock_setup(&mock->mock);
	mock_gate_init(&mock->gate);
	mock->now = jiffies;
	test->priv = &mock->mock;
	return 0;
}

static void flows_exit(struct kunit *test)
{
	struct mock_flows *mock = mock_of(test);

	fairwq_test_set_hook(NULL);
	fairwq_test_flows_fail(0);
	complete_all(&mock->mock.gate.open);
	complete_all(&mock->gate.open);
	fairwq_flows_destroy(mock->flows);
	mock_exit(test);
}

/* ---- the driver's setup of each key ------------------------------------ */

static struct setup {
	struct fairwq_flows *flows;
	struct fairwq_batch *owner;
	struct fairwq_work *work;	/* or NULL: the next setup_fn() queues it */
	unsigned int weight[8];		/* by key */
	atomic_t released[8];
	unsigned int made;
} setup;

static void setup_released(struct fairwq_batch *batch, void *priv)
{
	atomic_inc(&setup.released[(unsigned long)priv]);
}

static void setup_fn(struct fairwq_flow_attrs *attrs, u64 key, void *data)
{
	struct setup *s = data;
	struct fairwq_work *work = s->work;

	s->made++;
	attrs->batch.weight = s->weight[key];
	attrs->batch.parent = s->owner;
	attrs->batch.released = setup_released;
	attrs->batch.priv = (void *)(unsigned long)key;
	snprintf(attrs->name, sizeof(attrs->name), "tenant\t%llu", key);
	s->work = NULL;
	if (work)
		mock_may_refuse(fairwq_flows_queue(s->flows, key, work));
}

static struct fairwq_flows *setup_begin(struct kunit *test, unsigned int max_active)
{
	memset(&setup, 0, sizeof(setup));
	setup.flows = mock_flows(test, max_active, NULL);
	KUNIT_ASSERT_EQ(test, 0, fairwq_flows_set_setup(setup.flows, setup_fn, &setup));
	return setup.flows;
}

static struct fairwq_batch *brief_owner;

static void name_brief_owner(struct fairwq_flow_attrs *attrs, u64 key, void *data)
{
	attrs->batch.parent = brief_owner;
}

/* End the owner, after it was checked. The read-side section keeps its memory. */
static void end_brief_owner(enum fairwq_test_point point, struct fairwq_batch *owner)
{
	if (point != FAIRWQ_POINT_BATCH_NEW || owner != brief_owner)
		return;
	fairwq_test_set_hook(NULL);
	fairwq_batch_dispose(owner);
	spin_within(!kref_read(&owner->refs));
}

/* An owner must stay until the setup has returned, and no longer. */
static void owner_that_ends_after_the_setup(struct kunit *test)
{
	struct fairwq_flows *flows = mock_flows(test, 2, NULL);

	need_two_cpus(test);
	brief_owner = mock_own_batch(test, "owner", NULL);
	KUNIT_ASSERT_EQ(test, 0, fairwq_flows_set_setup(flows, name_brief_owner, NULL));
	fairwq_test_set_hook(end_brief_owner);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN,
			fairwq_flows_queue(flows, 1, &mock_item(test, 'a')->work));
	fairwq_test_set_hook(NULL);
}

/*
 * The setup sets the weight, the name, the owner and released() of each key's
 * batch, also when the key gets a new flow.
 */
static void setup_says_what_a_key_gets(struct kunit *test)
{
	struct fairwq_flows *flows = setup_begin(test, 1);
	struct mock *mock = test->priv;
	struct fairwq_batch *batch;
	unsigned int round;

	KUNIT_EXPECT_EQ(test, -EEXIST, fairwq_flows_set_setup(flows, setup_fn, NULL));
	setup.owner = mock_batch(test, "device");
	setup.weight[2] = 300;
	for (round = 1; round <= 2; round++) {
		batch = fairwq_flows_get(flows, 2);
		KUNIT_ASSERT_FALSE(test, IS_ERR(batch));
		KUNIT_EXPECT_STREQ(test, "tenant?2", batch->name);
		KUNIT_EXPECT_PTR_EQ(test, setup.owner, batch->parent);
		KUNIT_EXPECT_EQ(test, 300U, batch->node.weight);
		fairwq_batch_put(batch);
		queue_letters(test, 1, 'a', 3);
		queue_letters(test, 2, 'b', 6);
		mock_open(test);
		mock_until(test, READ_ONCE(mock->log.nr) == 9 * round);
		fairwq_pool_flush(mock->pool);
		sweep_after(test, 0);
		sweep_after(test, 2 * IDLE);
		sweep_after(test, 2 * IDLE);
		KUNIT_EXPECT_EQ(test, 0U, nr_flows(test));
		/* The calls of released() come a grace period later, in any order. */
		mock_until(test, atomic_read(&setup.released[1]) == (int)round);
		mock_until(test, atomic_read(&setup.released[2]) == (int)round);
	}
	KUNIT_EXPECT_EQ(test, 4U, setup.made);
	/* Key 2 has three turns for each of key 1, but the first 'a' may come earlier. */
	KUNIT_EXPECT_LT(test, strnchr(&mock->log.text[0], 9, 'a') - &mock->log.text[0], 4L);
	KUNIT_EXPECT_EQ(test, 'a', mock->log.text[8]);
}

/* A queue call returns the error of bad attributes, or of a disposed owner, in the setup. */
static void bad_setup_is_refused(struct kunit *test)
{
	struct fairwq_flows *flows = setup_begin(test, 1);
	struct fairwq_batch *gone;

	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_flows_set_setup(NULL, setup_fn, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_flows_set_setup(flows, NULL, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, (int)PTR_ERR(fairwq_flows_get(NULL, 1)));
	setup.weight[1] = FAIRWQ_MAX_WEIGHT + 1;
	KUNIT_EXPECT_EQ(test, -EINVAL, queue_letter(test, 1, 'x'));
	KUNIT_EXPECT_EQ(test, -EINVAL, (int)PTR_ERR(fairwq_flows_get(flows, 1)));
	gone = mock_own_batch(test, "gone", NULL);
	setup.owner = fairwq_batch_get(gone);
	fairwq_batch_dispose(gone);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, queue_letter(test, 2, 'x'));
	KUNIT_EXPECT_EQ(test, 0U, nr_flows(test));
	setup.owner = NULL;
	KUNIT_EXPECT_EQ(test, 1, queue_letter(test, 2, 'a'));
	mock_expect(test, "a");
	fairwq_batch_put(gone);
}

/* ---- handles ------------------------------------------------------------ */

/* A handle keeps its flow. When it is put, a later sweep removes the flow. */
static void handle_keeps_its_flow(struct kunit *test)
{
	struct fairwq_flows *flows = mock_flows(test, 1, NULL);
	struct fairwq_batch *batch = fairwq_flows_get(flows, 5), *again;
	unsigned int i;

	KUNIT_ASSERT_FALSE(test, IS_ERR(batch));
	KUNIT_EXPECT_EQ(test, 1U, nr_flows(test));
	for (i = 0; i < 3; i++)
		sweep_after(test, 2 * IDLE);
	KUNIT_EXPECT_EQ(test, 1U, nr_flows(test));
	again = fairwq_flows_get(flows, 5);
	KUNIT_EXPECT_PTR_EQ(test, batch, again);
	fairwq_batch_put(again);
	/* The items of the key go to the batch of the handle. */
	fairwq_batch_pause(batch);
	queue_letters(test, 5, 'a', 1);
	queue_letters(test, 6, 'b', 1);
	mock_expect(test, "b");
	fairwq_batch_resume(batch);
	mock_expect(test, "ba");
	fairwq_batch_flush(batch);
	fairwq_batch_put(batch);
	for (i = 0; i < 3; i++)
		sweep_after(test, 2 * IDLE);
	KUNIT_EXPECT_EQ(test, 0U, nr_flows(test));
}

static void log_dropped(struct fairwq_work *work)
{
	struct mock_item *item = container_of(work, struct mock_item, work);

	mock_log_add(item->log, toupper(item->letter));
}

/* Arguments of a shutdown in another thread. */
static struct {
	struct fairwq_batch *batch;
	struct fairwq_flows *flows;	/* if set, they are shut down instead of @batch */
	unsigned int how;
} closing;

static bool close_fn(struct fairwq_work *work)
{
	if (closing.flows)
		return !fairwq_flows_shutdown(closing.flows, closing.how, log_dropped);
	return !fairwq_batch_shutdown(closing.batch, closing.how, log_dropped);
}

/*
 * A key whose batch is shut down refuses items until the rest has run. Then the
 * key gets a new batch.
 */
static void closed_key_begins_anew(struct kunit *test)
{
	struct fairwq_flows *flows = setup_begin(test, 1);
	struct mock *mock = test->priv;
	struct call *call;

	queue_letters(test, 3, 'a', 2);
	closing.batch = fairwq_flows_get(flows, 3);
	closing.flows = NULL;
	closing.how = FAIRWQ_RUN_REST;
	KUNIT_ASSERT_FALSE(test, IS_ERR(closing.batch));
	call = mock_call_start(test, close_fn, NULL);
	mock_until(test, fairwq_batch_is_disposed(closing.batch));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, queue_letter(test, 3, 'x'));
	mock_open(test);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&setup.released[3]));
	KUNIT_EXPECT_EQ(test, 1, queue_letter(test, 3, 'b'));
	KUNIT_EXPECT_EQ(test, 1U, nr_flows(test));
	mock_expect(test, "aab");
	/* After a shutdown a new handle gets a new batch, too. */
	KUNIT_EXPECT_EQ(test, 0, fairwq_batch_shutdown(fairwq_flows_get(flows, 3),
						       FAIRWQ_DROP_REST, NULL));
	closing.batch = fairwq_flows_get(flows, 3);
	KUNIT_ASSERT_FALSE(test, IS_ERR(closing.batch));
	KUNIT_EXPECT_FALSE(test, fairwq_batch_is_disposed(closing.batch));
	fairwq_batch_put(closing.batch);
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&setup.released[3]));
	KUNIT_EXPECT_EQ(test, OTHER_BATCHES + 1, mock_nr_batches(mock->pool));
}

/* Two queue calls find the batch of a key shut down. Both use one new batch. */
static void two_calls_begin_one_anew(struct kunit *test)
{
	struct fairwq_flows *flows = setup_begin(test, 1);
	struct mock *mock = test->priv;

	KUNIT_EXPECT_EQ(test, 0, fairwq_batch_shutdown(fairwq_flows_get(flows, 3),
						       FAIRWQ_RUN_REST, NULL));
	setup.work = &mock_item(test, 'x')->work;
	KUNIT_EXPECT_EQ(test, 1, queue_letter(test, 3, 'a'));
	KUNIT_EXPECT_EQ(test, 3U, setup.made);
	mock_expect(test, "xa");
	/* The other batch that was made has left. */
	mock_until(test, mock_nr_batches(mock->pool) == OTHER_BATCHES + 1);
	mock_until(test, atomic_read(&setup.released[3]) == 2);
}

/* ---- a shutdown ---------------------------------------------------------- */

/* A shutdown drops the works of all keys, also those of two keys that share a serializer. */
static void flows_drop_the_rest(struct kunit *test)
{
	struct fairwq_flows *flows = setup_begin(test, 1);
	static struct fairwq_serializer serial;
	struct mock_flows *mock = mock_of(test);
	struct fairwq_batch *key[2];
	unsigned int i;

	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_flows_shutdown(flows, BIT(31), NULL));
	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_shutdown(NULL, 0, NULL));
	fairwq_serializer_init(&serial);
	for (i = 0; i < 2; i++) {
		key[i] = fairwq_flows_get(flows, i + 1);
		KUNIT_ASSERT_FALSE(test, IS_ERR(key[i]));
	}
	for (i = 0; i < 6; i++)
		KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&serial, key[i % 2],
								 &mock_item(test, 's')->work));
	queue_letters(test, 7, 'a', 3);
	closing.flows = flows;
	closing.how = FAIRWQ_DROP_REST;
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, mock_call_start(test, close_fn, NULL)));
	mock->flows = NULL;
	KUNIT_EXPECT_EQ(test, 9U, mock->mock.log.nr);
	KUNIT_EXPECT_NULL(test, strpbrk(&mock->mock.log.text[0], "as"));
	for (i = 1; i <= 7; i += i == 1 ? 1 : 5) {
		KUNIT_EXPECT_EQ_MSG(test, 1, atomic_read(&setup.released[i]), "key %u\n", i);
		if (i < 3)
			fairwq_batch_put(key[i - 1]);
	}
	KUNIT_EXPECT_EQ(test, OTHER_BATCHES - 1, mock_nr_batches(mock->mock.pool));
	fairwq_serializer_destroy(&serial);
}

/* ---- how many grace periods an end takes ---------------------------------- */

static struct {
	struct kunit *test;
	struct call *reader;
	unsigned int graces;
} taken;

static void hold_graces(void)
{
	mock_call_go_apart(taken.test, taken.reader);
	spin_until(&reader.inside);
}

/* After the first grace period, let no other one end. */
static void hold_the_next(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point == FAIRWQ_POINT_GRACE_OVER && !taken.graces++)
		hold_graces();
}

/* Call @end, and check that it needs @most grace periods, one or none. */
static void expect_graces(struct kunit *test, unsigned int most, void (*end)(void *what),
			  void *what)
{
	taken.test = test;
	taken.reader = reader_new(test);
	taken.graces = 0;
	fairwq_test_set_hook(hold_the_next);
	if (!most)
		hold_graces();
	end(what);
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_LE(test, taken.graces, most);
	KUNIT_EXPECT_FALSE_MSG(test, completion_done(&taken.reader->done), "it waited for more\n");
	if (most && !taken.graces)
		mock_call_go_apart(test, taken.reader);
	reader_end(test, taken.reader);
}

static void end_flows(void *what)
{
	fairwq_flows_destroy(what);
}

static void end_batches(void *what)
{
	fairwq_batch_shutdown(what, FAIRWQ_DROP_REST | FAIRWQ_AND_OWNED, NULL);
}

static void end_pool(void *what)
{
	fairwq_pool_destroy(what);
}

/* Flows take one, a pool one at most, and an owner with its batches none. */
static void no_end_takes_two_grace_periods(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { };
	struct fairwq_pool *pool = fairwq_pool_create(NULL, "short-lived");
	struct mock_flows *mock = mock_of(test);
	struct fairwq_batch *child[2];
	unsigned int i;

	need_two_cpus(test);
	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	mock_flows(test, 2, NULL);
	mock_open(test);
	for (i = 0; i < 3; i++)
		queue_letters(test, i, 'a', 1);
	expect_graces(test, 1, end_flows, mock->flows);
	mock->flows = NULL;
	attrs.parent = mock_own_batch(test, "owner", NULL);
	for (i = 0; i < ARRAY_SIZE(child); i++)
		child[i] = fairwq_batch_get(mock_own_batch(test, "child", &attrs));
	fairwq_batch_dispose(child[1]);
	expect_graces(test, 0, end_batches, attrs.parent);
	fairwq_batch_dispose(child[0]);
	fairwq_batch_put(child[0]);
	fairwq_batch_put(child[1]);
	fairwq_batch_dispose(fairwq_batch_create(pool, NULL, "disposed"));
	if (IS_ENABLED(CONFIG_LOCKDEP))	/* that waits for grace periods of its own */
		fairwq_pool_destroy(pool);
	else
		expect_graces(test, 1, end_pool, pool);
}

/* ---- many queues go together --------------------------------------------- */

#define QUEUES		8U
#define QUEUE_ROUNDS	20U

/* What a driver has for each of its queues: a pool, flows, and a batch. */
struct queue {
	struct fairwq_pool *pool;
	struct fairwq_flows *flows;
	struct fairwq_batch *batch;
	struct fairwq_work work[3];
};

/* Make a queue, and let it run something. */
static void queue_begin(struct kunit *test, struct queue *queue)
{
	unsigned int i;

	queue->pool = fairwq_pool_create(NULL, "queue");
	KUNIT_ASSERT_FALSE(test, IS_ERR(queue->pool));
	queue->flows = fairwq_flows_create(queue->pool, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(queue->flows));
	queue->batch = fairwq_batch_create(queue->pool, NULL, "batch");
	for (i = 0; i < ARRAY_SIZE(queue->work); i++)
		fairwq_work_init(&queue->work[i], mock_nothing_fn);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(queue->batch, &queue->work[0]));
	KUNIT_EXPECT_EQ(test, 1, fairwq_flows_queue(queue->flows, 1, &queue->work[1]));
	KUNIT_EXPECT_EQ(test, 1, fairwq_flows_queue(queue->flows, 2, &queue->work[2]));
	fairwq_pool_flush(queue->pool);
}

static bool queue_end(struct fairwq_work *work)
{
	struct queue *queue = container_of(work, struct queue, work[0]);

	fairwq_flows_destroy(queue->flows);
	fairwq_batch_dispose(queue->batch);
	fairwq_pool_destroy(queue->pool);
	return true;
}

/* Take all queues down: one after the other, or all at a time. Return: ns. */
static u64 queues_end(struct kunit *test, struct queue *queue, bool at_once)
{
	u64 began = fairwq_clock();
	struct call *call[QUEUES];
	unsigned int i;

	for (i = 0; i < QUEUES; i++)
		if (at_once)
			call[i] = mock_call_start(test, queue_end, &queue[i].work[0]);
		else
			queue_end(&queue[i].work[0]);
	for (i = 0; at_once && i < QUEUES; i++)
		mock_call_end(test, call[i]);
	return fairwq_clock() - began;
}

static u64 grace_periods(unsigned int nr)
{
	u64 began = fairwq_clock();

	while (nr--)
		synchronize_rcu();
	return fairwq_clock() - began;
}

/* Take eight queues down. Return: ns. */
static u64 queues_go(struct kunit *test, struct queue *queue, bool at_once)
{
	unsigned int i;

	for (i = 0; i < QUEUES; i++)
		queue_begin(test, &queue[i]);
	return queues_end(test, queue, at_once);
}

/*
 * Eight queues are taken down in no more time than when all grace periods are
 * hurried, and two more grace periods. What else the machine does in a round
 * may take longer than that, so one round that does it is enough. If each queue
 * waits for grace periods of its own, none does.
 */
static void queues_go_together(struct kunit *test, bool at_once)
{
	struct queue *queue = kunit_kcalloc(test, QUEUES, sizeof(*queue), GFP_KERNEL);
	u64 ns, control, hurried;
	unsigned int round;

	KUNIT_ASSERT_NOT_NULL(test, queue);
	if (IS_ENABLED(CONFIG_LOCKDEP))
		kunit_skip(test, "lockdep waits for grace periods, too");
	for (round = 0; round < QUEUE_ROUNDS; round++) {
		ns = queues_go(test, queue, at_once);
		control = grace_periods(2);
		rcu_expedite_gp();
		hurried = queues_go(test, queue, at_once);
		rcu_unexpedite_gp();
		kunit_info(test, "%llu us; two grace periods: %llu us; if all are hurried: %llu us\n",
			   div_u64(ns, 1000), div_u64(control, 1000), div_u64(hurried, 1000));
		if (ns <= control + hurried)
			return;
	}
	KUNIT_FAIL(test, "in no round");
}

static void queues_go_one_after_the_other(struct kunit *test)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		kunit_skip(test, "no grace period is short here");
	queues_go_together(test, false);
}

static void queues_go_at_once(struct kunit *test)
{
	queues_go_together(test, true);
}

/* ---- what a sweep has removed ------------------------------------------- */

static struct {
	struct completion entered, leave;
} slow;

static void release_slowly(struct fairwq_batch *batch, void *priv)
{
	complete(&slow.entered);
	wait_for_completion(&slow.leave);
}

static void slow_setup(struct fairwq_flow_attrs *attrs, u64 key, void *data)
{
	attrs->batch.released = release_slowly;
}

static bool destroy_fn(struct fairwq_work *work)
{
	fairwq_flows_destroy(forced.flows);
	return true;
}

/* A destroy also waits for the released() of a flow that a sweep has removed before. */
static void destroy_waits_for_what_was_removed(struct kunit *test)
{
	struct fairwq_flows *flows = mock_flows(test, 1, NULL);
	struct mock_flows *mock = mock_of(test);
	struct call *call;

	init_completion(&slow.entered);
	init_completion(&slow.leave);
	KUNIT_ASSERT_EQ(test, 0, fairwq_flows_set_setup(flows, slow_setup, NULL));
	make_idle_flow(test, 1);
	fairwq_flows_sweep(flows, mock->now);
	fairwq_flows_sweep(flows, mock->now + IDLE);
	mock_until(test, !fairwq_flows_sweep(flows, mock->now + IDLE));
	KUNIT_EXPECT_EQ(test, 0U, nr_flows(test));
	mock->flows = NULL;
	forced.flows = flows;
	call = mock_call_start(test, destroy_fn, NULL);
	mock_await(test, &slow.entered);
	KUNIT_EXPECT_EQ(test, 0UL, wait_for_completion_timeout(&call->done,
							       msecs_to_jiffies(WRONG_MS)));
	complete(&slow.leave);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
}

/*
 * A call is about to make a flow while a destroy begins. It is refused, also if
 * the setup names an owner that takes more batches.
 */
static void destroy_refuses_a_flow_of_another_owner(struct kunit *test)
{
	struct fairwq_flows *flows = mock_flows(test, 2, NULL);
	struct mock_flows *mock = mock_of(test);
	struct call *call;

	brief_owner = mock_batch(test, "owner");
	KUNIT_ASSERT_EQ(test, 0, fairwq_flows_set_setup(flows, name_brief_owner, NULL));
	force(test, 1, FAIRWQ_POINT_FLOW_MAKING, wait_while_dying);
	start_caller(test);
	complete(&forced.go);
	mock_await(test, &forced.reached);
	mock->flows = NULL;
	call = mock_call_start(test, destroy_fn, NULL);
	mock_await(test, &forced.reached);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, forced.ret);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	/* The owner is there, and the shared one is not. */
	KUNIT_EXPECT_EQ(test, OTHER_BATCHES, mock_nr_batches(mock->mock.pool));
}

/* No holder of a key's batch lets its works run while the flows drop them. */
static void holder_does_not_end_a_drop(struct kunit *test)
{
	struct fairwq_flows *flows = mock_flows(test, 3, NULL);
	struct mock_gate *gate = mock_gate_new(test);
	static struct fairwq_serializer serial;
	struct mock_flows *mock = mock_of(test);
	struct fairwq_batch *key;
	struct call *call;
	unsigned int i;

	mock_open(test);
	fairwq_serializer_init(&serial);
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&serial, mock->mock.gate_batch,
							 &gate->work));
	mock_await(test, &gate->entered);
	key = fairwq_flows_get(flows, 1);
	KUNIT_ASSERT_FALSE(test, IS_ERR(key));
	for (i = 0; i < 100; i++)
		KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&serial, key,
								 &mock_item(test, 's')->work));
	closing.flows = flows;
	closing.how = FAIRWQ_DROP_REST;
	mock->flows = NULL;
	call = mock_call_start(test, close_fn, NULL);
	mock_until(test, fairwq_batch_is_disposed(key));
	fairwq_batch_pause(key);
	fairwq_batch_resume(key);
	complete_all(&gate->open);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	KUNIT_EXPECT_EQ(test, 100U, mock->mock.log.nr);
	KUNIT_EXPECT_NULL(test, strchr(&mock->mock.log.text[0], 's'));
	fairwq_batch_put(key);
	fairwq_serializer_destroy(&serial);
}

static struct kunit_case flows_cases[] = {
	KUNIT_CASE(bad_attrs_are_refused),
	KUNIT_CASE(bad_arguments_are_refused),
	KUNIT_CASE(keys_take_turns),
	KUNIT_CASE(attrs_are_those_of_each),
	KUNIT_CASE(two_first_users_make_one_flow),
	KUNIT_CASE(items_queue_to_flows),
	KUNIT_CASE(first_use_works_from_hardirq),
	KUNIT_CASE(first_use_works_under_a_raw_lock),
	KUNIT_CASE_PARAM(no_memory_loses_nothing, fail_nth_gen_params),
	KUNIT_CASE(keys_beyond_the_limit_share),
	KUNIT_CASE(two_first_users_keep_to_the_limit),
	KUNIT_CASE(item_of_a_flow_may_wait_elsewhere),
	KUNIT_CASE(closed_key_gives_its_place_back),
	KUNIT_CASE(room_comes_back),
	KUNIT_CASE(idle_flow_goes),
	KUNIT_CASE(used_flow_stays),
	KUNIT_CASE(flow_with_an_item_stays),
	KUNIT_CASE(flow_that_runs_stays),
	KUNIT_CASE(idle_time_0_keeps_flows),
	KUNIT_CASE(idle_time_0_keeps_closed_flows),
	KUNIT_CASE(idle_flows_go_by_themselves),
	KUNIT_CASE(sweeps_keep_no_worker),
	KUNIT_CASE_PARAM(queue_while_the_flow_goes, sweep_gen_params),
	KUNIT_CASE(sweep_waits_for_a_push_under_way),
	KUNIT_CASE(queue_call_survives_a_removal),
	KUNIT_CASE(opened_flow_is_not_removed),
	KUNIT_CASE(queue_against_sweep_loses_no_item),
	KUNIT_CASE(ten_thousand_keys_leave_no_batch),
	KUNIT_CASE(destroy_runs_what_was_accepted),
	KUNIT_CASE(destroy_waits_for_a_queue_call_under_way),
	KUNIT_CASE(destroy_waits_for_a_new_idle_time),
	KUNIT_CASE(destroy_from_an_item_is_caught),
	KUNIT_CASE(pool_that_goes_first_is_caught),
	KUNIT_CASE(setup_says_what_a_key_gets),
	KUNIT_CASE(owner_that_ends_after_the_setup),
	KUNIT_CASE(bad_setup_is_refused),
	KUNIT_CASE(handle_keeps_its_flow),
	KUNIT_CASE(closed_key_begins_anew),
	KUNIT_CASE(two_calls_begin_one_anew),
	KUNIT_CASE(flows_drop_the_rest),
	KUNIT_CASE(holder_does_not_end_a_drop),
	KUNIT_CASE(no_end_takes_two_grace_periods),
	KUNIT_CASE(queues_go_one_after_the_other),
	KUNIT_CASE(queues_go_at_once),
	KUNIT_CASE(destroy_waits_for_what_was_removed),
	KUNIT_CASE(destroy_refuses_a_flow_of_another_owner),
	{}
};

static struct kunit_suite flows_suite = {
	.name = "fairwq_flows",
	.init = flows_init,
	.exit = flows_exit,
	.test_cases = flows_cases,
};

kunit_test_suite(flows_suite);

MODULE_DESCRIPTION("KUnit: flows");
MODULE_LICENSE("GPL");
