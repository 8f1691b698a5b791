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

static struct kunit_case work_cases[] = {
	KUNIT_CASE(cancel_meets_a_restart),
	KUNIT_CASE(flush_meets_a_restart),
	KUNIT_CASE(dropped_push_leaves_nobody_watching),
	KUNIT_CASE(cancel_between_claim_and_push),
	KUNIT_CASE(cancel_from_hardirq_on_top),
	KUNIT_CASE(cancel_behind_the_push),
	KUNIT_CASE(revived_before_the_push),
	KUNIT_CASE(disabled_before_it_is_revived),
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
