// SPDX-License-Identifier: GPL-2.0
/*
 * Lifting (promises 9 and 10): an item of a high priority does not wait for the
 * backlog of a batch of a lower one, in which the item in front of it is.
 *
 * The only runner is held at the gate, while 'x' of LOW is in flight behind
 * others of LOW, 'l', and 'h' of HIGH waits for it; 'n' is queued in between.
 */
#include "mock_work.h"

#define NR_SERIALS	3
/* What is lifted has as long, also where all is slow. */
#define LONG_SLICE	(10 * USEC_PER_SEC)

struct lift {
	struct fairwq_batch *low, *normal, *high;
	struct fairwq_serializer serial[NR_SERIALS];
};

static struct fairwq_batch *prio_batch(struct kunit *test, enum fairwq_prio prio,
				       unsigned int max_active)
{
	struct fairwq_batch_attrs attrs = { .prio = prio, .max_active = max_active };
	struct mock *mock = test->priv;
	struct fairwq_batch *batch = fairwq_batch_create(mock->pool, &attrs, "prio%d", prio);

	KUNIT_ASSERT_FALSE(test, IS_ERR(batch));
	fairwq_test_set_guess(batch, 100);
	return batch;
}

static void set_slice(struct kunit *test, unsigned int slice_us)
{
	struct mock *mock = test->priv;

	raw_spin_lock_irq(&mock->pool->lock);
	WRITE_ONCE(mock->pool->slice_us, slice_us);
	raw_spin_unlock_irq(&mock->pool->lock);
}

static struct lift *lift_pool_of(struct kunit *test, unsigned int max_active,
				 unsigned int low_active)
{
	struct lift *lift = kunit_kzalloc(test, sizeof(*lift), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, lift);
	mock_pool(test, max_active, FAIRWQ_ROUND_ROBIN);
	set_slice(test, LONG_SLICE);
	lift->low = prio_batch(test, FAIRWQ_PRIO_LOW, low_active);
	lift->normal = prio_batch(test, FAIRWQ_PRIO_NORMAL, 0);
	lift->high = prio_batch(test, FAIRWQ_PRIO_HIGH, 0);
	for (i = 0; i < NR_SERIALS; i++)
		fairwq_serializer_init(&lift->serial[i]);
	return lift;
}

static struct lift *lift_pool(struct kunit *test, unsigned int low_active)
{
	return lift_pool_of(test, 1, low_active);
}

static struct mock_item *lift_item(struct kunit *test, struct lift *lift, unsigned int serial,
				   struct fairwq_batch *batch, char letter)
{
	struct mock_item *item = mock_item(test, letter);

	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&lift->serial[serial], batch,
							 &item->work));
	return item;
}

/* @nr others of LOW, and 'x' behind them. */
static struct lift *lift_low(struct kunit *test, unsigned int nr, unsigned int low_active,
			     struct mock_item **x)
{
	struct lift *lift = lift_pool(test, low_active);

	mock_queue(test, lift->low, 'l', nr);
	*x = lift_item(test, lift, 0, lift->low, 'x');
	mock_queue(test, lift->normal, 'n', 3);
	return lift;
}

/* It has all been run, and nothing is left of it. */
static void lift_over(struct kunit *test, struct lift *lift)
{
	struct mock *mock = test->priv;
	unsigned int i;

	for (i = 0; i < NR_SERIALS; i++)
		fairwq_serializer_destroy(&lift->serial[i]);
	fairwq_pool_flush(mock->pool);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&lift->low->nr_held));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&lift->low->nr_queued));
	KUNIT_EXPECT_EQ(test, 0U, lift->low->in_flight[0] + lift->low->in_flight[1]);
	fairwq_batch_dispose(lift->low);
	fairwq_batch_dispose(lift->normal);
	fairwq_batch_dispose(lift->high);
}

static void lift_end(struct kunit *test, struct lift *lift, const char *order)
{
	mock_expect(test, order);
	lift_over(test, lift);
}

/* What was pushed to LOW is not in order yet. */
static void high_lifts_the_one_in_flight(struct kunit *test)
{
	struct mock_item *x;
	struct lift *lift = lift_low(test, 2, 0, &x);

	lift_item(test, lift, 0, lift->high, 'h');
	lift_end(test, lift, "xhnnnll");
}

/* NORMAL does not: it would come before all of HIGH. */
static void normal_lifts_none(struct kunit *test)
{
	struct mock_item *x;
	struct lift *lift = lift_low(test, 2, 0, &x);

	lift_item(test, lift, 0, lift->normal, 'm');
	lift_end(test, lift, "nnnllxm");
}

/* What a cancel goes through is in order after that. */
static void sort_all(struct kunit *test, struct fairwq_batch *batch)
{
	struct mock_item *item = mock_item(test, '-');

	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &item->work));
	KUNIT_ASSERT_TRUE(test, fairwq_work_cancel(&item->work));
}

static void from_the_middle_of_the_fifo(struct kunit *test)
{
	struct mock_item *x;
	struct lift *lift = lift_low(test, 2, 0, &x);

	mock_queue(test, lift->low, 'k', 1);
	sort_all(test, lift->low);
	KUNIT_EXPECT_PTR_EQ(test, &x->work, lift->serial[0].front);
	lift_item(test, lift, 0, lift->high, 'h');
	lift_end(test, lift, "xhnnnllk");
}

/* More than is put into order at once: it is lifted when a runner has got there. */
static void behind_a_long_backlog(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_item *x;
	struct lift *lift = lift_low(test, 200, 0, &x);

	mock_queue(test, lift->low, 'k', 200);
	lift_item(test, lift, 0, lift->high, 'h');
	mock_open(test);
	mock_until(test, READ_ONCE(mock->log.nr) == 405);
	KUNIT_EXPECT_EQ(test, 0, strncmp(mock->log.text, "xhnnnlll", 8));
	lift_over(test, lift);
}

/* With those that wait between the two, in order. */
static void with_those_behind_it(struct kunit *test)
{
	struct mock_item *x;
	struct lift *lift = lift_low(test, 2, 0, &x);

	lift_item(test, lift, 0, lift->low, 'y');
	lift_item(test, lift, 0, lift->normal, 'z');
	lift_item(test, lift, 0, lift->high, 'h');
	lift_item(test, lift, 0, lift->low, 'w');
	lift_end(test, lift, "xyzhnnnllw");
}

/* 64 at most are in front of it, with the one in flight; when that has ended, the rest is. */
static void not_if_they_are_too_many(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_item *x;
	struct lift *lift = lift_low(test, 2, 0, &x);
	unsigned int i;

	mock_queue(test, lift->low, 'k', 1);
	for (i = 0; i < FAIRWQ_LIFT_MAX; i++)
		lift_item(test, lift, 0, lift->low, 'y');
	lift_item(test, lift, 0, lift->high, 'h');
	mock_open(test);
	mock_until(test, READ_ONCE(mock->log.nr) == FAIRWQ_LIFT_MAX + 8);
	KUNIT_EXPECT_EQ(test, 0, strncmp(mock->log.text, "nnnllxy", 7));
	lift_over(test, lift);
}

/* Its batch has a limit, or is paused: that holds for what would be lifted, too. */
static void not_past_a_limit(struct kunit *test)
{
	struct mock_item *x;
	struct lift *lift = lift_low(test, 2, 1, &x);

	lift_item(test, lift, 0, lift->high, 'h');
	lift_end(test, lift, "nnnllxh");
}

static void not_past_a_pause(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_item *x;
	struct lift *lift = lift_low(test, 2, 0, &x);

	fairwq_batch_pause(lift->low);
	lift_item(test, lift, 0, lift->high, 'h');
	mock_expect(test, "nnn");
	fairwq_batch_resume(lift->low);
	mock_until(test, READ_ONCE(mock->log.nr) == 7);
	KUNIT_EXPECT_STREQ(test, "nnnllxh", &mock->log.text[0]);
	lift_over(test, lift);
}

/* Nothing else is there to run after the first, as long as HIGH is paused. */
static void several_are_lifted(struct kunit *test)
{
	struct lift *lift = lift_pool(test, 0);
	struct mock *mock = test->priv;
	unsigned int i;

	fairwq_batch_pause(lift->high);
	for (i = 0; i < NR_SERIALS; i++)
		lift_item(test, lift, i, lift->low, 'x');
	for (i = 0; i < NR_SERIALS; i++)
		lift_item(test, lift, i, lift->high, 'h');
	mock_expect(test, "xxx");
	fairwq_batch_resume(lift->high);
	mock_until(test, READ_ONCE(mock->log.nr) == 6);
	KUNIT_EXPECT_STREQ(test, "xxxhhh", &mock->log.text[0]);
	lift_over(test, lift);
}

/* Plans are made in between; they end where HIGH, which ran dry, may be back. */
static void plans_are_made_in_between(struct kunit *test)
{
	struct lift *lift = lift_pool(test, 0);
	unsigned int i;

	for (i = 0; i < NR_SERIALS; i++)
		lift_item(test, lift, i, lift->low, 'x');
	mock_queue(test, lift->normal, 'n', 3);
	for (i = 0; i < NR_SERIALS; i++)
		lift_item(test, lift, i, lift->high, 'h');
	lift_end(test, lift, "xhxhxhnnn");
}

/* One that was lifted waits as it did before: it can be cancelled. */
static void lifted_is_cancelled(struct kunit *test)
{
	struct mock_item *x;
	struct lift *lift = lift_low(test, 2, 0, &x);

	lift_item(test, lift, 0, lift->high, 'h');
	KUNIT_EXPECT_TRUE(test, fairwq_work_is_kept_back(atomic_long_read(&x->work.data)));
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&x->work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&x->work));
	lift_end(test, lift, "hnnnll");
}

/* And so can the one that has lifted it: then it goes back to its batch, as the last. */
static void lifter_is_cancelled(struct kunit *test)
{
	struct mock_item *x, *h;
	struct lift *lift = lift_low(test, 2, 0, &x);

	h = lift_item(test, lift, 0, lift->high, 'h');
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&h->work));
	lift_end(test, lift, "nnnllx");
}

/* A cancelled item is no front any more, and is not looked at. */
static void front_is_cancelled(struct kunit *test)
{
	struct mock_item *x;
	struct lift *lift = lift_low(test, 2, 0, &x);

	sort_all(test, lift->low);
	lift_item(test, lift, 0, lift->low, 'y');
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&x->work));
	memset(&x->work, 0x6b, sizeof(x->work));
	lift_item(test, lift, 0, lift->high, 'h');
	lift_end(test, lift, "yhnnnll");
}

/* Nor is one that runs, and may be freed by its function. */
static void front_that_runs_is_left_alone(struct kunit *test)
{
	struct lift *lift = lift_pool(test, 0);
	struct mock_gate *gate = gate_new(test);

	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&lift->serial[0], lift->low, &gate->work));
	sort_all(test, lift->low);
	KUNIT_EXPECT_PTR_EQ(test, &gate->work, lift->serial[0].front);
	mock_open(test);
	mock_await(test, &gate->entered);
	lift_item(test, lift, 0, lift->high, 'h');
	KUNIT_EXPECT_EQ(test, 0UL, READ_ONCE(lift->serial[0].where));
	complete_all(&gate->open);
	lift_end(test, lift, "h");
}

/* A flush of its batch does not see it any more, but its batch does not go. */
static void batch_of_the_lifted_is_disposed(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_item *x;
	struct lift *lift = lift_low(test, 0, 0, &x);
	struct fairwq_batch *low = fairwq_batch_get(lift->low);

	lift_item(test, lift, 0, lift->high, 'h');
	fairwq_batch_dispose(lift->low);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(low->reaped));
	mock_open(test);
	/* In which order depends: while the batch is waited for, nothing is lifted. */
	mock_until(test, READ_ONCE(mock->log.nr) == 5);
	mock_until(test, READ_ONCE(low->reaped));
	fairwq_batch_put(low);
	fairwq_serializer_destroy(&lift->serial[0]);
	fairwq_pool_flush(mock->pool);
	fairwq_batch_dispose(lift->normal);
	fairwq_batch_dispose(lift->high);
}

/* Somebody waits for a turn to end. It is not looked at again. */
static void not_while_somebody_waits(struct kunit *test)
{
	struct mock_item *x;
	struct lift *lift = lift_low(test, 2, 0, &x);
	struct mock *mock = test->priv;
	struct call *flush = call_start(test, fairwq_work_flush, &mock->gate.work);

	mock_until(test, pool_attention(mock->pool) == 1);
	lift_item(test, lift, 0, lift->high, 'h');
	mock_expect(test, "nnnllxh");
	KUNIT_EXPECT_TRUE(test, call_end(test, flush));
	lift_over(test, lift);
}

static struct {
	struct lift *lift;
	struct fairwq_work *high;
	int ret;
} while_pushed;

static void while_pushed_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point != FAIRWQ_POINT_QUEUE_PUSHED || batch != while_pushed.lift->low)
		return;
	fairwq_test_set_hook(NULL);
	while_pushed.ret = fairwq_serializer_queue(&while_pushed.lift->serial[0],
						   while_pushed.lift->high, while_pushed.high);
}

/*
 * An item of an idle batch is in the queue, and before that is told of, one that
 * might lift it looks into the batch. Then it is for that one to tell.
 */
static void looked_at_before_it_is_told_of(struct kunit *test)
{
	struct lift *lift = lift_pool_of(test, 2, 1);
	struct mock *mock = test->priv;

	lift->serial[0].seen[FAIRWQ_PRIO_LOW] = true;
	while_pushed.lift = lift;
	while_pushed.high = &mock_item(test, 'h')->work;
	while_pushed.ret = -EIO;
	fairwq_test_set_hook(while_pushed_hook);
	lift_item(test, lift, 0, lift->low, 'x');
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_EQ(test, 1, while_pushed.ret);
	mock_until(test, READ_ONCE(mock->log.nr) == 2);
	lift_end(test, lift, "xh");
}

static struct kunit_case lift_cases[] = {
	KUNIT_CASE(high_lifts_the_one_in_flight),
	KUNIT_CASE(normal_lifts_none),
	KUNIT_CASE(from_the_middle_of_the_fifo),
	KUNIT_CASE(behind_a_long_backlog),
	KUNIT_CASE(with_those_behind_it),
	KUNIT_CASE(not_if_they_are_too_many),
	KUNIT_CASE(not_past_a_limit),
	KUNIT_CASE(not_past_a_pause),
	KUNIT_CASE(several_are_lifted),
	KUNIT_CASE(plans_are_made_in_between),
	KUNIT_CASE(lifted_is_cancelled),
	KUNIT_CASE(lifter_is_cancelled),
	KUNIT_CASE(front_is_cancelled),
	KUNIT_CASE(front_that_runs_is_left_alone),
	KUNIT_CASE(batch_of_the_lifted_is_disposed),
	KUNIT_CASE(not_while_somebody_waits),
	KUNIT_CASE(looked_at_before_it_is_told_of),
	{}
};

static struct kunit_suite lift_suite = {
	.name = "fairwq_lift",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = lift_cases,
};

kunit_test_suite(lift_suite);

MODULE_DESCRIPTION("KUnit: an item in flight makes way for one of a higher priority");
MODULE_LICENSE("GPL");
