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

static struct kunit_case work_cases[] = {
	KUNIT_CASE(cancel_meets_a_restart),
	KUNIT_CASE(flush_meets_a_restart),
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
