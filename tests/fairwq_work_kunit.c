// SPDX-License-Identifier: GPL-2.0
/*
 * Cancelling, disabling and waiting for single works, and cancelling a batch
 * (promises 1 and 11): wherever the work is, and in the moments in between.
 */
#include "mock_work.h"

/* ---- interleavings that are forced ------------------------------------ */

/* An item that queues itself again, once. */
struct again {
	struct fairwq_work work;
	struct fairwq_batch *batch;
	atomic_t runs;
	int ret;
};

static void again_fn(struct fairwq_work *work)
{
	struct again *again = container_of(work, struct again, work);

	if (atomic_inc_return(&again->runs) == 1)
		again->ret = fairwq_queue(again->batch, work);
}

static struct again *again_new(struct kunit *test, struct fairwq_batch *batch)
{
	struct again *again = kunit_kzalloc(test, sizeof(*again), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, again);
	fairwq_work_init(&again->work, again_fn);
	again->batch = batch;
	return again;
}

static struct {
	struct fairwq_batch *batch;
	struct completion starting;
	bool looked, pushed;
	bool timed_out;
} restart;

/*
 * The item is about to start, and waits until somebody looks where it is. That
 * one, with the lock held, waits until the item has run and was queued again.
 */
static void restart_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (batch != restart.batch)
		return;
	switch (point) {
	case FAIRWQ_POINT_STARTING:
		if (restart.looked)
			break;
		preempt_disable();	/* who looks is on another CPU */
		complete(&restart.starting);
		restart.timed_out |= !spin_until(&restart.looked);
		preempt_enable();
		break;
	case FAIRWQ_POINT_LOOK:
		if (restart.looked)
			break;
		step_done(&restart.looked);
		restart.timed_out |= !spin_until(&restart.pushed);
		break;
	case FAIRWQ_POINT_QUEUE_PUSHED:
		if (restart.looked)
			step_done(&restart.pushed);
		break;
	default:
		break;
	}
}

static struct again *restart_begin(struct kunit *test)
{
	struct fairwq_batch *a;
	struct again *again;

	need_two_cpus(test);
	mock_pool(test, 2, FAIRWQ_ROUND_ROBIN);
	a = mock_batch(test, "a");
	again = again_new(test, a);
	memset(&restart, 0, sizeof(restart));
	init_completion(&restart.starting);
	restart.batch = a;
	fairwq_test_set_hook(restart_hook);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &again->work));
	mock_await(test, &restart.starting);
	return again;
}

/* What was planned has run and is queued again while a cancel looks for it. */
static void cancel_meets_a_restart(struct kunit *test)
{
	struct again *again = restart_begin(test);
	bool canceled = fairwq_work_cancel(&again->work);

	fairwq_test_set_hook(NULL);
	fairwq_batch_flush(again->batch);
	KUNIT_EXPECT_FALSE(test, restart.timed_out);
	KUNIT_EXPECT_EQ(test, 1, again->ret);
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&again->runs) + canceled);
	fairwq_batch_dispose(again->batch);
}

/* And while a flush does. */
static void flush_meets_a_restart(struct kunit *test)
{
	struct again *again = restart_begin(test);

	KUNIT_EXPECT_TRUE(test, fairwq_work_flush(&again->work));
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_FALSE(test, restart.timed_out);
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&again->runs));
	fairwq_batch_dispose(again->batch);
}

static struct {
	struct fairwq_batch *batch;
	struct fairwq_work *work;
	bool canceled, accepted, look, pushed, looked;
	bool timed_out;
} dropped;

/*
 * A queue call has been cancelled half-way. It pushes just when somebody has
 * seen the batch empty, and does not mark it as such before that.
 */
static void dropped_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (batch != dropped.batch || dropped.looked)
		return;
	switch (point) {
	case FAIRWQ_POINT_QUEUE_ACCEPTED:
		preempt_disable();	/* who looks is on another CPU */
		dropped.canceled = fairwq_work_cancel(dropped.work);
		step_done(&dropped.accepted);
		dropped.timed_out |= !spin_until(&dropped.look);
		break;
	case FAIRWQ_POINT_BATCH_EMPTY:
		if (!READ_ONCE(dropped.accepted))
			break;
		step_done(&dropped.look);
		dropped.timed_out |= !spin_until(&dropped.pushed);
		break;
	case FAIRWQ_POINT_QUEUE_PUSHED:
		step_done(&dropped.pushed);
		dropped.timed_out |= !spin_until(&dropped.looked);
		preempt_enable();
		break;
	default:
		break;
	}
}

static bool queue_to_dropped(struct fairwq_work *work)
{
	return fairwq_queue(dropped.batch, work) == 1;
}

/* Who drops the only push there is goes on to watch nothing: the next one calls. */
static void dropped_push_leaves_nobody_watching(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_item *item = mock_item(test, 'd');
	struct call *call;

	need_two_cpus(test);
	mock_pool(test, 2, FAIRWQ_ROUND_ROBIN);
	memset(&dropped, 0, sizeof(dropped));
	dropped.work = &item->work;
	dropped.batch = mock_batch(test, "a");
	fairwq_test_set_hook(dropped_hook);
	call = call_start(test, queue_to_dropped, &item->work);
	mock_until(test, READ_ONCE(dropped.accepted));
	fairwq_test_look(dropped.batch);
	step_done(&dropped.looked);
	KUNIT_EXPECT_TRUE(test, call_end(test, call));
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_TRUE(test, dropped.canceled);
	KUNIT_EXPECT_FALSE(test, dropped.timed_out);
	queue_item(test, dropped.batch, 'x');
	mock_until(test, READ_ONCE(mock->log.nr) == 1);
	KUNIT_EXPECT_STREQ(test, "x", &mock->log.text[0]);
	fairwq_batch_dispose(dropped.batch);
}

/* ---- on top of a queue call ------------------------------------------- */

static struct {
	struct fairwq_batch *batch;
	struct fairwq_work *work;
	enum fairwq_test_point point;
	void (*then)(void);		/* what is done there */
	bool canceled, canceled_again, pending, in_hardirq;
	bool disabled, interrupted, timed_out;
	int queued;
} top;

/* Once, when the call for @top.work is there; hooks nest. */
static void top_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	void (*then)(void) = top.then;

	if (point != top.point || batch != top.batch || !then)
		return;
	top.then = NULL;
	then();
}

static void top_set(struct fairwq_batch *batch, struct fairwq_work *work,
		    enum fairwq_test_point point, void (*then)(void))
{
	memset(&top, 0, sizeof(top));
	top.batch = batch;
	top.work = work;
	top.point = point;
	top.then = then;
	fairwq_test_set_hook(top_hook);
}

static void cancel_twice(void)
{
	top.canceled = fairwq_work_cancel(top.work);
	top.pending = fairwq_work_pending(top.work);
	top.canceled_again = fairwq_work_cancel(top.work);
}

static void cancel_in_hardirq_fn(struct irq_work *irq_work)
{
	top.in_hardirq = in_hardirq();
	cancel_twice();
	step_done(&top.interrupted);
}

static struct irq_work top_irq_work;

/* This CPU's interrupt, on top of what is called here. */
static void cancel_from_hardirq(void)
{
	top_irq_work = IRQ_WORK_INIT_HARD(cancel_in_hardirq_fn);
	preempt_disable();
	irq_work_queue(&top_irq_work);
	top.timed_out = !spin_until(&top.interrupted);
	preempt_enable();
}

/*
 * A cancel on top of a queue call, before the push: it was pending, is not any
 * more, and the call does the rest. Then the work is as new.
 */
static void cancel_on_top_of_a_push(struct kunit *test, void (*cancel)(void))
{
	struct mock *mock = test->priv;
	struct mock_item *item = mock_item(test, 'x');
	struct fairwq_batch *a;

	mock_pool(test, 1, FAIRWQ_ROUND_ROBIN);
	a = mock_batch(test, "a");
	queue_item(test, a, 'a');
	top_set(a, &item->work, FAIRWQ_POINT_QUEUE_ACCEPTED, cancel);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &item->work));
	KUNIT_EXPECT_TRUE(test, top.canceled);
	KUNIT_EXPECT_FALSE(test, top.canceled_again);
	KUNIT_EXPECT_FALSE(test, top.pending);
	/* It is the caller's again: this is what freeing it would do. */
	KUNIT_EXPECT_EQ(test, 0L, atomic_long_read(&item->work.data));
	memset(&item->work, 0x5a, sizeof(item->work));
	queue_item(test, a, 'b');
	fairwq_work_init(&item->work, mock_item_fn);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &item->work));
	mock_expect(test, "abx");
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 3U, mock->log.nr);
	KUNIT_EXPECT_EQ(test, 0U, a->nr_canceled);
	fairwq_batch_dispose(a);
}

static void cancel_between_claim_and_push(struct kunit *test)
{
	cancel_on_top_of_a_push(test, cancel_twice);
}

static void cancel_from_hardirq_on_top(struct kunit *test)
{
	cancel_on_top_of_a_push(test, cancel_from_hardirq);
	irq_work_sync(&top_irq_work);
	KUNIT_EXPECT_TRUE(test, top.in_hardirq);
	KUNIT_EXPECT_FALSE(test, top.timed_out);
}

/* Pushed, and nobody was told: it is there to be found. */
static void cancel_behind_the_push(struct kunit *test)
{
	struct mock_item *item = mock_item(test, 'x');
	struct fairwq_batch *a;

	mock_pool(test, 1, FAIRWQ_ROUND_ROBIN);
	a = mock_batch(test, "a");
	top_set(a, &item->work, FAIRWQ_POINT_QUEUE_PUSHED, cancel_twice);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &item->work));
	KUNIT_EXPECT_TRUE(test, top.canceled);
	KUNIT_EXPECT_FALSE(test, top.canceled_again);
	KUNIT_EXPECT_EQ(test, 0L, atomic_long_read(&item->work.data));
	queue_item(test, a, 'b');
	mock_expect(test, "b");
	fairwq_batch_dispose(a);
}

static void cancel_and_queue(void)
{
	top.canceled = fairwq_work_cancel(top.work);
	top.queued = fairwq_queue(top.batch, top.work);
	top.pending = fairwq_work_pending(top.work);
}

/* Cancelled and queued again on top of a queue call: it runs once, in its place. */
static void revived_before_the_push(struct kunit *test)
{
	struct mock_item *item = mock_item(test, 'x');
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	mock_pool(test, 1, FAIRWQ_ROUND_ROBIN);
	a = mock_batch(test, "a");
	queue_item(test, a, 'a');
	top_set(a, &item->work, FAIRWQ_POINT_QUEUE_ACCEPTED, cancel_and_queue);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &item->work));
	KUNIT_EXPECT_TRUE(test, top.canceled);
	KUNIT_EXPECT_EQ(test, 1, top.queued);
	KUNIT_EXPECT_TRUE(test, top.pending);
	KUNIT_EXPECT_EQ(test, 0, fairwq_queue(a, &item->work));
	queue_item(test, a, 'b');
	mock_expect(test, "axb");
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 3U, mock->log.nr);
	KUNIT_EXPECT_EQ(test, 0U, a->nr_canceled);
	fairwq_batch_dispose(a);
}

static void disable_top(void)
{
	top.disabled = fairwq_work_disable(top.work);
}

static void cancel_and_queue_but_disable(void)
{
	top.canceled = fairwq_work_cancel(top.work);
	top.point = FAIRWQ_POINT_QUEUE_REVIVE;
	top.then = disable_top;
	top.queued = fairwq_queue(top.batch, top.work);
}

/* And it is refused if it is disabled just then. */
static void disabled_before_it_is_revived(struct kunit *test)
{
	struct mock_item *item = mock_item(test, 'x');
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	mock_pool(test, 1, FAIRWQ_ROUND_ROBIN);
	a = mock_batch(test, "a");
	top_set(a, &item->work, FAIRWQ_POINT_QUEUE_ACCEPTED, cancel_and_queue_but_disable);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &item->work));
	KUNIT_EXPECT_TRUE(test, top.canceled);
	KUNIT_EXPECT_FALSE(test, top.disabled);
	KUNIT_EXPECT_EQ(test, -ECANCELED, top.queued);
	queue_item(test, a, 'b');
	mock_expect(test, "b");
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 1U, mock->log.nr);
	KUNIT_EXPECT_EQ(test, 0U, a->nr_canceled);
	fairwq_batch_dispose(a);
}

/* ---- cancelling a batch ----------------------------------------------- */

#define DROP_MANY	100

static struct {
	struct mock_log *log;
	struct fairwq_batch *batch;
	void (*then)(struct mock_item *item);	/* in dropped(), if any */
	struct mock_item *other;
	struct releases *releases;
	unsigned int nr, late;
	bool pending, ret;
} drop;

/* Writes the item's letter small; its function writes it as it is. */
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

/* What was queued is dropped in that order, counted, and may be queued again. */
static void drops_in_order(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_item *c;
	struct fairwq_batch *a, *b;

	mock_pool(test, 1, FAIRWQ_ROUND_ROBIN);
	a = mock_batch(test, "a");
	b = mock_batch(test, "b");
	drop_set(test, a, NULL);
	KUNIT_EXPECT_EQ(test, 0UL, fairwq_batch_cancel(a, drop_fn));
	queue_item(test, a, 'A');
	queue_item(test, b, 'B');
	c = queue_item(test, a, 'C');
	queue_item(test, a, 'D');
	KUNIT_EXPECT_EQ(test, 3UL, fairwq_batch_cancel(a, drop_fn));
	KUNIT_EXPECT_FALSE(test, drop.pending);
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&c->work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &c->work));
	queue_item(test, a, 'E');
	mock_expect(test, "acdBCE");
	KUNIT_EXPECT_EQ(test, 0UL, fairwq_batch_cancel(a, NULL));
	KUNIT_EXPECT_EQ(test, 3ULL, fairwq_test_counter(mock->pool, FAIRWQ_CANCELED));
	fairwq_batch_dispose(a);
	fairwq_batch_dispose(b);
}

/* More than are looked at in one hold of the lock. */
static void drops_from_a_chunk_to_the_next(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	mock_pool(test, 2, FAIRWQ_ROUND_ROBIN);
	a = mock_batch(test, "a");
	fairwq_batch_pause(a);
	mock_queue(test, a, 'A', DROP_MANY);
	drop_set(test, a, NULL);
	fairwq_batch_resume(a);
	/* A runner is free: what it takes is run, and all else is dropped. */
	fairwq_batch_cancel(a, drop_fn);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, (unsigned int)DROP_MANY, mock->log.nr);
	fairwq_batch_dispose(a);
}

/* In the middle of a cancel that takes several steps. */
static void queue_in_a_step(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point != FAIRWQ_POINT_CANCEL_STEP || batch != drop.batch || drop.late)
		return;
	drop.late = 1;
	drop.ret = fairwq_queue(batch, &drop.other->work) == 1;
}

static void queue_another(struct mock_item *item)
{
	if (drop.late == 1)
		drop.late += fairwq_queue(drop.batch, &item->work);
}

/* What is queued meanwhile, also by dropped(), stays. */
static void drops_only_what_is_older(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	mock_pool(test, 1, FAIRWQ_ROUND_ROBIN);
	a = mock_batch(test, "a");
	mock_queue(test, a, 'A', DROP_MANY);
	drop_set(test, a, queue_another);
	drop.other = mock_item(test, 'X');
	fairwq_test_set_hook(queue_in_a_step);
	KUNIT_EXPECT_EQ(test, (unsigned long)DROP_MANY, fairwq_batch_cancel(a, drop_fn));
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_TRUE(test, drop.ret);
	KUNIT_EXPECT_EQ(test, 2U, drop.late);
	mock_open(test);
	mock_until(test, READ_ONCE(mock->log.nr) == DROP_MANY + 2);
	KUNIT_EXPECT_STREQ(test, "XA", &mock->log.text[DROP_MANY]);
	fairwq_batch_dispose(a);
}

/* What a runner took along and has not started is dropped, in order. */
static void drops_what_is_planned(struct kunit *test)
{
	struct mock_gate *gate = gate_new(test);
	struct mock *mock = test->priv;
	struct fairwq_batch *a, *b;
	struct mock_item *c;
	u64 turns;

	a = plan_begin(test, gate);
	b = mock_batch(test, "b");
	mock_queue(test, b, '-', PLAN_WARM_UP);
	fairwq_batch_flush(b);
	log_clear(mock);
	fairwq_batch_pause(b);
	queue_item(test, a, 'A');
	queue_item(test, b, 'B');
	c = queue_item(test, a, 'C');
	queue_item(test, b, 'D');
	fairwq_batch_resume(b);
	plan_go(test, a, gate, c);
	queue_item(test, a, 'E');
	turns = fairwq_test_counter(mock->pool, FAIRWQ_TURNS);
	drop_set(test, a, NULL);
	KUNIT_EXPECT_EQ(test, 3UL, fairwq_batch_cancel(a, drop_fn));
	/* Their turns are given back. */
	KUNIT_EXPECT_EQ(test, turns - 2, fairwq_test_counter(mock->pool, FAIRWQ_TURNS));
	KUNIT_EXPECT_EQ(test, 1U, a->in_flight[0] + a->in_flight[1]);
	complete_all(&gate->open);
	fairwq_pool_flush(mock->pool);
	KUNIT_EXPECT_STREQ(test, "aceBD", &mock->log.text[0]);
	fairwq_batch_dispose(a);
	fairwq_batch_dispose(b);
}

/* A gate that runs, and whose next turn has been parked until it is opened. */
static struct mock_gate *parked_begin(struct kunit *test, struct fairwq_batch *a)
{
	struct mock_gate *gate = gate_new(test);

	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &gate->work));
	mock_await(test, &gate->entered);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &gate->work));
	mock_until(test, READ_ONCE(a->nr_parked) == 1);
	return gate;
}

static void count_drop(struct fairwq_work *work)
{
	drop.nr++;
}

static void drops_what_is_parked(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_gate *gate;
	struct fairwq_batch *a;

	mock_pool(test, 3, FAIRWQ_ROUND_ROBIN);
	a = mock_batch(test, "a");
	gate = parked_begin(test, a);
	drop_set(test, a, NULL);
	KUNIT_EXPECT_EQ(test, 1UL, fairwq_batch_cancel(a, count_drop));
	KUNIT_EXPECT_EQ(test, 1U, drop.nr);
	KUNIT_EXPECT_EQ(test, 0U, a->nr_parked);
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&gate->work));
	complete_all(&gate->open);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&gate->runs));
	/* And it is no longer waited for anywhere. */
	queue_item(test, a, 'x');
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 1U, mock->log.nr);
	fairwq_batch_dispose(a);
}

static void cancel_other(struct mock_item *item)
{
	drop.ret = fairwq_work_cancel(&drop.other->work);
	drop.then = NULL;
}

static void cancel_other_sync(struct mock_item *item)
{
	drop.ret = fairwq_work_cancel_sync(&drop.other->work);
	/* It may be freed. */
	memset(drop.other, 0x5a, sizeof(*drop.other));
	drop.then = NULL;
}

/* From dropped(), the next one is cancelled: it is his who did, and not dropped. */
static void dropped_may_cancel_the_next(struct kunit *test)
{
	void (*const how[])(struct mock_item *) = { cancel_other, cancel_other_sync };
	struct mock *mock = test->priv;
	struct fairwq_batch *a;
	unsigned int i;

	mock_pool(test, 1, FAIRWQ_ROUND_ROBIN);
	a = mock_batch(test, "a");
	for (i = 0; i < ARRAY_SIZE(how); i++) {
		drop_set(test, a, how[i]);
		queue_item(test, a, 'A');
		queue_item(test, a, 'B');
		drop.other = queue_item(test, a, 'C');
		queue_item(test, a, 'D');
		KUNIT_EXPECT_EQ(test, 3UL, fairwq_batch_cancel(a, drop_fn));
		KUNIT_EXPECT_TRUE(test, drop.ret);
	}
	mock_expect(test, "abdabd");
	KUNIT_EXPECT_EQ(test, 6U, mock->log.nr);
	fairwq_batch_dispose(a);
}

static void cancel_other_from_hardirq(struct mock_item *item)
{
	top_set(drop.batch, &drop.other->work, FAIRWQ_POINT_BATCH_EMPTY, NULL);
	cancel_from_hardirq();
	drop.ret = top.canceled;
	drop.then = NULL;
}

/* An interrupt on top of a cancel of the batch does not wait for it. */
static void dropped_may_be_canceled_by_others(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	mock_pool(test, 1, FAIRWQ_ROUND_ROBIN);
	a = mock_batch(test, "a");
	drop_set(test, a, cancel_other_from_hardirq);
	queue_item(test, a, 'A');
	drop.other = queue_item(test, a, 'B');
	queue_item(test, a, 'C');
	KUNIT_EXPECT_EQ(test, 2UL, fairwq_batch_cancel(a, drop_fn));
	irq_work_sync(&top_irq_work);
	KUNIT_EXPECT_TRUE(test, top.in_hardirq);
	KUNIT_EXPECT_TRUE(test, drop.ret);
	mock_expect(test, "ac");
	KUNIT_EXPECT_EQ(test, 2U, mock->log.nr);
	fairwq_batch_dispose(a);
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
	fairwq_test_settle();
	drop.late += atomic_read(&drop.releases->nr);
}

/* A batch that was disposed is released after the last dropped(), and it is. */
static void dropped_before_released(struct kunit *test)
{
	struct releases *releases = kunit_kzalloc(test, sizeof(*releases), GFP_KERNEL);
	struct fairwq_batch_attrs attrs = { .released = count_release, .priv = releases };
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	KUNIT_ASSERT_NOT_NULL(test, releases);
	mock_pool(test, 1, FAIRWQ_ROUND_ROBIN);
	a = fairwq_batch_create(mock->pool, &attrs, "a");
	KUNIT_ASSERT_FALSE(test, IS_ERR(a));
	queue_item(test, a, 'A');
	queue_item(test, a, 'B');
	fairwq_batch_get(a);
	fairwq_batch_dispose(a);
	fairwq_test_settle();
	drop_set(test, a, look_for_release);
	drop.releases = releases;
	KUNIT_EXPECT_EQ(test, 2UL, fairwq_batch_cancel(a, drop_fn));
	KUNIT_EXPECT_EQ(test, 0U, drop.late);
	mock_until(test, atomic_read(&releases->nr) == 1);
	/* Nothing is there to be cancelled any more. */
	KUNIT_EXPECT_EQ(test, 0UL, fairwq_batch_cancel(a, drop_fn));
	fairwq_batch_put(a);
	KUNIT_EXPECT_EQ(test, 0U, pool_attention(mock->pool));
}

static void flush_other(struct mock_item *item)
{
	drop.ret = fairwq_work_flush(&drop.other->work);
	drop.then = NULL;
}

/* A flush does not wait for what will not run. */
static void dropped_item_may_be_flushed(struct kunit *test)
{
	struct fairwq_batch *a;

	mock_pool(test, 1, FAIRWQ_ROUND_ROBIN);
	a = mock_batch(test, "a");
	drop_set(test, a, flush_other);
	queue_item(test, a, 'A');
	drop.other = queue_item(test, a, 'B');
	KUNIT_EXPECT_EQ(test, 2UL, fairwq_batch_cancel(a, drop_fn));
	KUNIT_EXPECT_FALSE(test, drop.ret);
	mock_expect(test, "ab");
	fairwq_batch_dispose(a);
}

static void cancel_of_a_paused_batch(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	mock_pool(test, 2, FAIRWQ_ROUND_ROBIN);
	a = mock_batch(test, "a");
	fairwq_batch_pause(a);
	mock_queue(test, a, 'A', 3);
	drop_set(test, a, NULL);
	KUNIT_EXPECT_EQ(test, 3UL, fairwq_batch_cancel(a, drop_fn));
	queue_item(test, a, 'X');
	fairwq_batch_resume(a);
	mock_until(test, READ_ONCE(mock->log.nr) == 4);
	KUNIT_EXPECT_STREQ(test, "aaaX", &mock->log.text[0]);
	fairwq_batch_dispose(a);
}

static bool flush_drop_batch(struct fairwq_work *work)
{
	fairwq_batch_flush(drop.batch);
	return true;
}

/* A flush of the batch waits for what was dropped no longer. */
static void cancel_wakes_a_flush(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a;
	struct call *call;

	mock_pool(test, 1, FAIRWQ_ROUND_ROBIN);
	a = mock_batch(test, "a");
	mock_queue(test, a, 'A', 3);
	drop_set(test, a, NULL);
	call = call_start(test, flush_drop_batch, NULL);
	mock_until(test, pool_attention(mock->pool) == 1);
	queue_item(test, a, 'X');
	KUNIT_EXPECT_EQ(test, 4UL, fairwq_batch_cancel(a, drop_fn));
	call_end(test, call);
	KUNIT_EXPECT_EQ(test, 0U, pool_attention(mock->pool));
	mock_expect(test, "aaax");
	fairwq_batch_dispose(a);
}

/* ---- from the own function -------------------------------------------- */

struct insider {
	struct fairwq_work work;
	struct fairwq_batch *batch;
	struct completion done;
	int queued;
	bool flushed, ret;
};

static void nothing_fn(struct fairwq_work *work)
{
}

static struct insider *insider_run(struct kunit *test, fairwq_func_t func)
{
	struct insider *insider = kunit_kzalloc(test, sizeof(*insider), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, insider);
	mock_pool(test, 3, FAIRWQ_ROUND_ROBIN);
	fairwq_work_init(&insider->work, func);
	init_completion(&insider->done);
	insider->batch = mock_batch(test, "a");
	insider->queued = fairwq_queue(insider->batch, &insider->work);
	mock_await(test, &insider->done);
	return insider;
}

static void recycling_fn(struct fairwq_work *work)
{
	struct insider *insider = container_of(work, struct insider, work);

	fairwq_work_init(work, nothing_fn);
	insider->queued = fairwq_queue(insider->batch, work);
	insider->ret = fairwq_work_flush(work);
	complete(&insider->done);
}

/* What a function sets up where its own work was is another work: no warning. */
static void recycled_work_may_be_flushed(struct kunit *test)
{
	struct insider *insider = insider_run(test, recycling_fn);

	KUNIT_EXPECT_EQ(test, 1, insider->queued);
	KUNIT_EXPECT_EQ(test, 0L, atomic_long_read(&insider->work.data));
	fairwq_batch_dispose(insider->batch);
}

static void self_waiting_fn(struct fairwq_work *work)
{
	struct insider *insider = container_of(work, struct insider, work);

	insider->flushed = fairwq_work_flush(work);
	insider->queued = fairwq_queue(insider->batch, work);
	insider->ret = fairwq_work_cancel_sync(work);
	complete(&insider->done);
}

/* Waiting for oneself warns, and does not wait; the cancel is one all the same. */
static void waiting_for_oneself_warns(struct kunit *test)
{
	struct insider *insider;

	/* Once, though there are two. */
	pr_info("# expect-splat begin would wait for itself in fairwq_work_flush\n");
	insider = insider_run(test, self_waiting_fn);
	pr_info("# expect-splat end\n");
	KUNIT_EXPECT_FALSE(test, insider->flushed);
	KUNIT_EXPECT_EQ(test, 1, insider->queued);
	KUNIT_EXPECT_TRUE(test, insider->ret);
	fairwq_batch_flush(insider->batch);
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&insider->work));
	/* It was disabled for no longer than that. */
	KUNIT_EXPECT_EQ(test, 0, (int)insider->work.disabled);
	fairwq_work_init(&insider->work, nothing_fn);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(insider->batch, &insider->work));
	fairwq_batch_flush(insider->batch);
	fairwq_batch_dispose(insider->batch);
}

/* ---- shares ----------------------------------------------------------- */

/*
 * A turn of a is taken, and parked; b is served meanwhile, for long. What comes
 * of that turn then, a and b take turns from where b is.
 */
static struct mock_gate *credit_begin(struct kunit *test, struct fairwq_batch **a,
				      struct fairwq_batch **b)
{
	struct mock *mock = test->priv;
	struct mock_gate *gate;

	mock->flags = FAIRWQ_STRICT_TURNS;
	mock_pool(test, 3, FAIRWQ_ROUND_ROBIN);
	*a = mock_batch(test, "a");
	*b = mock_batch(test, "b");
	gate = parked_begin(test, *a);
	mock_queue(test, *b, 'b', 100);
	fairwq_batch_flush(*b);
	/* One runner from here on: the other two are at gates. */
	log_clear(mock);
	return gate;
}

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
	/* a may have the turn back that it was charged and did not have. */
	if (strcmp(&mock->log.text[0], "bababababa") &&
	    strcmp(&mock->log.text[0], "ababababab"))
		KUNIT_EXPECT_STREQ(test, "aababababa", &mock->log.text[0]);
	fairwq_batch_dispose(a);
	fairwq_batch_dispose(b);
}

/* It is cancelled: a gets that turn back, and not all that b had. */
static void canceled_turn_is_no_credit(struct kunit *test)
{
	struct fairwq_batch *a, *b;
	struct mock_gate *gate = credit_begin(test, &a, &b);

	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&gate->work));
	complete_all(&gate->open);
	fairwq_batch_flush(a);
	credit_end(test, a, b);
}

/* Or its item is put back, and runs. */
static void late_turn_is_no_credit(struct kunit *test)
{
	struct fairwq_batch *a, *b;
	struct mock_gate *gate = credit_begin(test, &a, &b);

	complete_all(&gate->open);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&gate->runs));
	credit_end(test, a, b);
}

/* A lower priority that has waited long enough has not, for a cancel behind its first. */
static void cancel_of_another_does_not_cost_the_turn(struct kunit *test)
{
	struct fairwq_batch_attrs low_attrs = { .prio = FAIRWQ_PRIO_LOW };
	struct fairwq_batch_attrs high_attrs = { .prio = FAIRWQ_PRIO_HIGH };
	struct mock_gate *gate = gate_new(test);
	struct fairwq_batch *low, *high;
	struct mock *mock = test->priv;
	struct mock_item *second;

	mock->flags = FAIRWQ_STRICT_TURNS;
	mock_pool(test, 1, FAIRWQ_FIFO);
	low = fairwq_batch_create(mock->pool, &low_attrs, "low");
	high = fairwq_batch_create(mock->pool, &high_attrs, "high");
	KUNIT_ASSERT_FALSE(test, IS_ERR(low));
	KUNIT_ASSERT_FALSE(test, IS_ERR(high));
	queue_item(test, low, 'l');
	second = queue_item(test, low, 'm');
	mock_queue(test, high, 'h', FAIRWQ_PRIO_PATIENCE - 1);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(high, &gate->work));
	mock_queue(test, high, 'H', 3);
	mock_open(test);
	mock_await(test, &gate->entered);
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&second->work));
	complete_all(&gate->open);
	fairwq_batch_flush(low);
	fairwq_batch_flush(high);
	KUNIT_EXPECT_STREQ(test, "lHHH", &mock->log.text[FAIRWQ_PRIO_PATIENCE - 1]);
	fairwq_batch_dispose(low);
	fairwq_batch_dispose(high);
}

static struct kunit_case work_cases[] = {
	KUNIT_CASE(cancel_meets_a_restart),
	KUNIT_CASE(flush_meets_a_restart),
	KUNIT_CASE(dropped_push_leaves_nobody_watching),
	KUNIT_CASE(cancel_between_claim_and_push),
	KUNIT_CASE(cancel_from_hardirq_on_top),
	KUNIT_CASE(cancel_behind_the_push),
	KUNIT_CASE(revived_before_the_push),
	KUNIT_CASE(disabled_before_it_is_revived),
	KUNIT_CASE(drops_in_order),
	KUNIT_CASE(drops_from_a_chunk_to_the_next),
	KUNIT_CASE(drops_only_what_is_older),
	KUNIT_CASE(drops_what_is_planned),
	KUNIT_CASE(drops_what_is_parked),
	KUNIT_CASE(dropped_may_cancel_the_next),
	KUNIT_CASE(dropped_may_be_canceled_by_others),
	KUNIT_CASE(dropped_before_released),
	KUNIT_CASE(dropped_item_may_be_flushed),
	KUNIT_CASE(cancel_of_a_paused_batch),
	KUNIT_CASE(cancel_wakes_a_flush),
	KUNIT_CASE(recycled_work_may_be_flushed),
	KUNIT_CASE(waiting_for_oneself_warns),
	KUNIT_CASE(canceled_turn_is_no_credit),
	KUNIT_CASE(late_turn_is_no_credit),
	KUNIT_CASE(cancel_of_another_does_not_cost_the_turn),
	{}
};

static struct kunit_suite work_suite = {
	.name = "fairwq_work",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = work_cases,
};

kunit_test_suite(work_suite);

MODULE_DESCRIPTION("KUnit: cancelling and waiting for works");
MODULE_LICENSE("GPL");
