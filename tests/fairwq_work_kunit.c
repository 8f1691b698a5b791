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

static struct kunit_case work_cases[] = {
	KUNIT_CASE(cancel_meets_a_restart),
	KUNIT_CASE(flush_meets_a_restart),
	KUNIT_CASE(dropped_push_leaves_nobody_watching),
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
