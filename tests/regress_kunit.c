// SPDX-License-Identifier: GPL-2.0
/*
 * Regressions: cases for faults that were found in fairwq and fit into no other
 * suite. The name of a case says what fairwq must do.
 */
#include <linux/kthread.h>
#include <linux/ktime.h>

#include "lib/fixture.h"

/* ---- a helper: an item that queues itself again, and spins ------------- */

struct looper {
	struct fairwq_work work;
	struct fairwq_batch *batch;
	unsigned int left;		/* runs, this one included */
	unsigned int spin_us;		/* or longer: any time will do */
};

static void looper_fn(struct fairwq_work *work)
{
	struct looper *looper = container_of(work, struct looper, work);
	u64 end = fairwq_clock() + (u64)looper->spin_us * NSEC_PER_USEC;

	/* Queue it before the spinning, so that it is pending while it runs. */
	if (READ_ONCE(looper->left) > 1) {
		WRITE_ONCE(looper->left, looper->left - 1);
		mock_may_refuse(fairwq_queue(looper->batch, work));
	}
	while (looper->spin_us && fairwq_clock() < end)
		cpu_relax();
}

static struct looper *looper_start(struct kunit *test, struct fairwq_batch *batch,
				   unsigned int runs, unsigned int spin_us)
{
	struct looper *looper = kunit_kzalloc(test, sizeof(*looper), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, looper);
	fairwq_work_init(&looper->work, looper_fn);
	looper->batch = batch;
	looper->left = runs;
	looper->spin_us = spin_us;
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &looper->work));
	return looper;
}

/* A work that is parked each time it runs has one turn for each run. */
static void requeued_while_running_has_one_turn_each(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 2);

	mock_free_runners(test);
	looper_start(test, a, 40, 3000);
	fairwq_pool_drain(mock->pool);
	KUNIT_EXPECT_EQ(test, 41ULL, mock_nr_turns(mock->pool));
}

/* ---- a work that goes from pool to pool -------------------------------- */

/* An item that runs in the pool @from first, and then in the pool @to. */
struct traveller {
	struct fairwq_work work;
	struct completion entered, open, arrived, go, done, item_ran;
	struct fairwq_pool *from, *to;
	struct mock_item *item;
	unsigned int runs;
	bool wait_for_from;
	bool waited;
	int ret;
};

static void traveller_fn(struct fairwq_work *work)
{
	struct traveller *t = container_of(work, struct traveller, work);

	if (!t->runs++) {
		complete(&t->entered);
		wait_for_completion(&t->open);
		return;
	}
	complete(&t->arrived);
	if (t->wait_for_from) {
		mock_pool_queue(t->from, &t->item->work);
		t->waited = mock_wait(&t->item_ran);
	} else {
		wait_for_completion(&t->go);
		t->ret = mock_pool_queue(t->to, &t->item->work);
	}
	complete(&t->done);
}

/*
 * Start a traveller in a pool of one runner, and queue it to the other pool. It
 * is parked there when this returns, because its first run goes on.
 */
static struct traveller *traveller_start(struct kunit *test)
{
	struct fairwq_pool_attrs one = { .max_active = 1, .max_in_flight = 1 };
	struct traveller *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct mock *mock = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, t);
	mock_pool(test, 2);
	mock_open(test);
	init_completion(&t->entered);
	init_completion(&t->open);
	init_completion(&t->arrived);
	init_completion(&t->go);
	init_completion(&t->done);
	init_completion(&t->item_ran);
	t->from = fairwq_pool_create(&one, "from");
	KUNIT_ASSERT_FALSE(test, IS_ERR(t->from));
	t->to = mock->pool;
	t->item = mock_item(test, 'x');
	t->item->done = &t->item_ran;
	fairwq_work_init(&t->work, traveller_fn);
	KUNIT_ASSERT_EQ(test, 1, mock_pool_queue(t->from, &t->work));
	mock_await(test, &t->entered);
	KUNIT_ASSERT_EQ(test, 1, mock_pool_queue(t->to, &t->work));
	/* When the item behind it has run, the turn of the traveller was taken and parked. */
	KUNIT_ASSERT_EQ(test, 1, mock_pool_queue(t->to, &mock_item(test, 'o')->work));
	mock_until(test, READ_ONCE(mock->log.nr) == 1);
	return t;
}

/*
 * A parked work runs on a runner of the pool that it was queued to. The only
 * runner of the other pool is free meanwhile.
 */
static void parked_work_runs_in_its_own_pool(struct kunit *test)
{
	struct traveller *t = traveller_start(test);

	mock_no_ticks(t->to);
	t->wait_for_from = true;
	complete(&t->open);
	mock_await(test, &t->done);
	KUNIT_EXPECT_TRUE(test, t->waited);
	fairwq_pool_flush(t->to);
	fairwq_pool_destroy(t->from);
}

static int drainer(void *data)
{
	fairwq_pool_drain(data);
	mock_stay();
	return 0;
}

/* A work that was parked may queue to its pool while that is being drained. */
static void parked_work_may_queue_in_a_drain(struct kunit *test)
{
	struct traveller *t = traveller_start(test);
	struct task_struct *task;

	complete(&t->open);
	mock_await(test, &t->arrived);
	task = kthread_run(drainer, t->to, "drainer");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	mock_until(test, READ_ONCE(t->to->draining));
	complete(&t->go);
	mock_await(test, &t->done);
	KUNIT_EXPECT_EQ(test, 1, t->ret);
	mock_await(test, &t->item_ran);
	kthread_stop(task);
	fairwq_pool_flush(t->to);
	fairwq_pool_destroy(t->from);
}

/* ---- fairness --------------------------------------------------------- */

/* Shares are right also if they are no whole numbers of turns. */
static void odd_weights_have_their_share(struct kunit *test)
{
	static const unsigned int weights[][2] = {
		{ 7000, 9000 }, { 6500, 9900 }, { 300, 301 }, { 5100, 7300 },
	};
	struct fairwq_batch_attrs attrs = { };
	struct mock *mock = test->priv;
	struct fairwq_batch *batch[2];
	struct mock_gate *gate;
	unsigned int i, k;

	mock_pool(test, 1);
	mock_open(test);
	for (i = 0; i < ARRAY_SIZE(weights); i++) {
		/* The runner waits until both batches have their items. */
		gate = mock_gate_new(test);
		mock_gate_enter(test, mock->gate_batch, gate);
		for (k = 0; k < 2; k++) {
			attrs.weight = weights[i][k];
			batch[k] = mock_own_batch(test, "w", &attrs);
			mock_queue(test, batch[k], 'x', 4000);
		}
		complete_all(&gate->open);
		fairwq_pool_flush(mock->pool);
		fairwq_batch_dispose(batch[0]);
		fairwq_batch_dispose(batch[1]);
	}
	KUNIT_EXPECT_GE(test, mock->judge.judged, 10000ULL);
}

struct reweigher {
	struct mock_item item;
	struct fairwq_batch *batch;
	unsigned int weight;
};

static void reweigher_fn(struct fairwq_work *work)
{
	struct reweigher *r = container_of(work, struct reweigher, item.work);

	mock_log_add(r->item.log, r->item.letter);
	fairwq_batch_set_weight(r->batch, r->weight);
}

/* A raised weight also applies to what the batch owes for past turns: its next turn is soon. */
static void raised_weight_shortens_the_wait(struct kunit *test)
{
	struct reweigher *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	const struct fairwq_batch_attrs light = { .weight = 1 };
	struct mock *mock = test->priv;
	struct fairwq_batch *a, *b;
	const char *first, *next;

	KUNIT_ASSERT_NOT_NULL(test, r);
	a = mock_begin_with(test, 1, &light);
	b = mock_batch(test, "b");
	fairwq_work_init(&r->item.work, reweigher_fn);
	r->item.log = &mock->log;
	r->item.letter = 'A';
	r->batch = a;
	r->weight = 100;
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &r->item.work));
	mock_queue(test, a, 'a', 5);
	mock_queue(test, b, 'b', 300);
	mock_open(test);
	mock_until(test, READ_ONCE(mock->log.nr) == 306);
	first = strchr(mock->log.text, 'A');
	next = strchr(mock->log.text, 'a');
	KUNIT_ASSERT_NOT_NULL(test, first);
	KUNIT_ASSERT_NOT_NULL(test, next);
	KUNIT_EXPECT_LE(test, next - first, 3L);
}

/* If a priority has nothing to serve for a moment, its wait for a turn begins anew. */
static void patience_ends_with_the_backlog(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct fairwq_batch *low, *high;
	struct mock *mock = test->priv;

	mock_pool(test, 1);
	low = mock_batch_prio(test, "low", FAIRWQ_PRIO_LOW);
	high = mock_batch_prio(test, "high", FAIRWQ_PRIO_HIGH);
	mock_queue(test, low, 'l', 1);
	mock_queue(test, high, 'h', 62);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(high, &gate->work));
	mock_queue(test, high, 'H', 3);
	mock_open(test);
	mock_await(test, &gate->entered);
	fairwq_batch_pause(low);
	fairwq_batch_resume(low);
	complete_all(&gate->open);
	mock_until(test, READ_ONCE(mock->log.nr) == 66);
	KUNIT_EXPECT_STREQ(test, "HHHl", &mock->log.text[62]);
}

/* Virtual times wrap after some 10^11 turns. A batch that was idle meanwhile is served soon. */
static void wrapped_time_starves_no_batch(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_batch *b = mock_batch(test, "b");
	const char *first;

	raw_spin_lock_irq(&mock->pool->lock);
	b->node.parent->clock += (1ULL << 63) + (1ULL << 40);
	b->node.vtime = b->node.parent->clock;
	raw_spin_unlock_irq(&mock->pool->lock);
	mock_queue(test, b, 'b', 300);
	mock_queue(test, a, 'a', 3);
	mock_open(test);
	mock_until(test, READ_ONCE(mock->log.nr) == 303);
	first = strchr(mock->log.text, 'a');
	KUNIT_ASSERT_NOT_NULL(test, first);
	KUNIT_EXPECT_LE(test, first - mock->log.text, 3L);
}

/* ---- reports and ends ------------------------------------------------- */

/* However often the watchdog looks at a busy pool, it reports no item as hung. */
static void busy_pool_is_not_hung(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 2);
	unsigned int i;

	mock_open(test);
	for (i = 0; i < 4; i++)
		looper_start(test, a, MOCK_MANY(20000), 0);
	for (i = 0; i < MOCK_MANY(20000); i++)
		mock_tick(mock->pool);
	fairwq_pool_drain(mock->pool);
	KUNIT_EXPECT_EQ(test, 0ULL, mock_counter(mock->pool, FAIRWQ_HUNG));
}

struct destroyer {
	struct fairwq_pool *pool;
	struct completion done;
};

static int destroyer_fn(void *data)
{
	struct destroyer *d = data;

	fairwq_pool_destroy(d->pool);
	complete(&d->done);
	mock_stay();
	return 0;
}

/* A batch that is paused while its pool is being destroyed does not hang the destruction. */
static void pause_does_not_hang_destroy(struct kunit *test)
{
	struct fairwq_pool_attrs one = { .max_active = 1, .max_in_flight = 1 };
	struct destroyer *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);
	struct mock_gate *gate = mock_gate_new(test);
	struct task_struct *task;
	struct fairwq_batch *a;

	KUNIT_ASSERT_NOT_NULL(test, d);
	init_completion(&d->done);
	d->pool = fairwq_pool_create(&one, "doomed");
	KUNIT_ASSERT_FALSE(test, IS_ERR(d->pool));
	a = fairwq_batch_create(d->pool, NULL, "a");
	KUNIT_ASSERT_FALSE(test, IS_ERR(a));
	mock_gate_enter(test, a, gate);
	mock_queue(test, a, 'a', 1);
	task = kthread_run(destroyer_fn, d, "destroyer");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	mock_until(test, READ_ONCE(d->pool->registry.dying));
	fairwq_batch_pause(a);
	complete_all(&gate->open);
	mock_await(test, &d->done);
	kthread_stop(task);
	fairwq_batch_dispose(a);
}

/* A work that waits for its last run to end has not started, so it takes up room (max_queued). */
static void parked_work_keeps_its_room(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_queued = 1 };
	struct mock_item *over = mock_item(test, 'o');
	struct fairwq_batch *a = mock_begin_with(test, 3, &attrs);
	struct mock_gate *gate = mock_parked_begin(test, a);

	KUNIT_EXPECT_EQ(test, 1U, fairwq_batch_nr_queued(a));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fairwq_queue(a, &over->work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&gate->work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &over->work));
	complete_all(&gate->open);
	mock_expect(test, "o");
}

/* It has not begun, so those behind it may: its last run may wait for one (max_active). */
static void parked_work_leaves_its_place(struct kunit *test)
{
	const struct fairwq_batch_attrs attrs = { .max_active = 2 };
	struct fairwq_batch *a = mock_begin_with(test, 3, &attrs);
	struct mock_gate *gate = mock_parked_begin(test, a);
	struct mock *mock = test->priv;

	mock_queue(test, a, 'a', 3);
	KUNIT_EXPECT_TRUE(test, mock_within(READ_ONCE(mock->log.nr) == 3));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&gate->runs));
	complete_all(&gate->open);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&gate->runs));
}

/* When the last runs have ended, such works begin as others do: if max_active allows it. */
static void work_put_back_waits_for_a_place(struct kunit *test)
{
	const struct fairwq_batch_attrs attrs = { .max_active = 2 };
	struct fairwq_batch *a = mock_begin_with(test, 6, &attrs), *b = mock_batch(test, "b");
	struct mock_gate *parked[2], *other[2];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		parked[i] = mock_gate_new(test);
		mock_gate_enter(test, b, parked[i]);
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &parked[i]->work));
	}
	mock_until(test, READ_ONCE(a->nr_parked) == 2);
	for (i = 0; i < 2; i++) {
		other[i] = mock_gate_new(test);
		mock_gate_enter(test, a, other[i]);
	}
	for (i = 0; i < 2; i++) {
		complete_all(&parked[i]->open);
		mock_until(test, mock_state(&parked[i]->work) == FAIRWQ_STATE_QUEUED);
	}
	for (i = 0; i < 2; i++) {
		spin_for(20, atomic_read(&parked[i]->runs) > 1);
		KUNIT_EXPECT_EQ(test, 1, atomic_read(&parked[i]->runs));
	}
	/* There is one place for both, one after the other. */
	complete_all(&other[0]->open);
	for (i = 0; i < 2; i++)
		mock_until(test, atomic_read(&parked[i]->runs) == 2);
	complete_all(&other[1]->open);
}

/*
 * The cases need no more than that it takes 40 ms at least. Only a clock knows:
 * a guest without a CPU at its start may take its delay loop for 800 times as
 * slow as it is.
 */
static void long_fn(struct fairwq_work *work)
{
	u64 end = ktime_get_ns() + 40 * NSEC_PER_MSEC;

	while (ktime_get_ns() < end)
		cpu_relax();
}

/*
 * The average of run times never exceeds FAIRWQ_RUN_TIME_MAX_NS. Where a long
 * has 32 bits it cannot hold more than 33 ms.
 */
static void average_of_long_items_is_bounded(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_work work;
	struct fairwq_batch *a;
	unsigned long average;
	unsigned int i;

	fairwq_work_init_onstack(&work, long_fn);
	a = mock_begin_by(test, 1, FAIRWQ_FAIR_TIME);
	mock_open(test);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &work));
		fairwq_batch_flush(a);
	}
	raw_spin_lock_irq(&mock->pool->lock);
	average = ewma_fairwq_run_read(&a->stats->run_avg);
	raw_spin_unlock_irq(&mock->pool->lock);
	KUNIT_EXPECT_EQ(test, (unsigned long)FAIRWQ_RUN_TIME_MAX_NS, average);
	fairwq_pool_flush(mock->pool);
}

static struct kunit_case regress_cases[] = {
	KUNIT_CASE(average_of_long_items_is_bounded),
	KUNIT_CASE(requeued_while_running_has_one_turn_each),
	KUNIT_CASE(parked_work_runs_in_its_own_pool),
	KUNIT_CASE(parked_work_may_queue_in_a_drain),
	KUNIT_CASE(odd_weights_have_their_share),
	KUNIT_CASE(raised_weight_shortens_the_wait),
	KUNIT_CASE(patience_ends_with_the_backlog),
	KUNIT_CASE(wrapped_time_starves_no_batch),
	KUNIT_CASE(busy_pool_is_not_hung),
	KUNIT_CASE(pause_does_not_hang_destroy),
	KUNIT_CASE(parked_work_keeps_its_room),
	KUNIT_CASE(parked_work_leaves_its_place),
	KUNIT_CASE(work_put_back_waits_for_a_place),
	{}
};

static struct kunit_suite regress_suite = {
	.name = "fairwq_regress",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = regress_cases,
};

kunit_test_suite(regress_suite);

MODULE_DESCRIPTION("KUnit: faults that were found");
MODULE_LICENSE("GPL");
