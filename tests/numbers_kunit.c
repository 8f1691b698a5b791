// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers that a driver hands in, at their limits: each is refused, or counts
 * as the largest that fairwq can count. None wraps, so that much becomes
 * little.
 *
 * The ranges and grains of loops are in forkjoin_kunit.c.
 */
#include <linux/delay.h>
#include <linux/limits.h>

#include "lib/fixture.h"
#include "lib/look.h"

/* ---- what a turn costs after its function -------------------------------- */

/* How a dear item says what it costs. */
enum dear_how {
	DEAR_IN_FUNCTION,	/* before the function returns */
	DEAR_AFTER,		/* after it has returned */
	DEAR_IN_BURST,		/* one half in each of two items of a burst */
	NR_DEAR_HOWS,
};

struct dear_item {
	struct fairwq_work work;
	struct fairwq_async async;
	struct completion returned;
	bool at_once;
	u64 cost;
};

static void dear_fn(struct fairwq_work *work)
{
	struct dear_item *item = container_of(work, struct dear_item, work);

	if (fairwq_async_begin(&item->async) && item->at_once)
		fairwq_async_complete(&item->async, item->cost);
	complete(&item->returned);
}

static struct dear_item *dear_item(struct kunit *test, bool at_once, u64 cost)
{
	struct dear_item *item = kunit_kzalloc(test, sizeof(*item), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, item);
	fairwq_work_init(&item->work, dear_fn);
	init_completion(&item->returned);
	item->at_once = at_once;
	item->cost = cost;
	return item;
}

/* Run two items of @batch in one burst, which cost half of @cost each. */
static void dear_burst(struct kunit *test, struct fairwq_batch *batch, u64 cost)
{
	struct fairwq_serializer serial;
	struct mock_gate *gate = mock_gate_new(test);
	struct mock *mock = test->priv;
	struct dear_item *item[2];
	int i;

	fairwq_serializer_init(&serial);
	KUNIT_ASSERT_EQ(test, 0, fairwq_serializer_set_inline(&serial, FAIRWQ_MAX_INLINE_US));
	/* Both wait when the first begins, so that one turn takes both. */
	mock_gate_enter(test, mock->gate_batch, gate);
	for (i = 0; i < 2; i++) {
		item[i] = dear_item(test, true, cost / 2 + (cost & i));
		KUNIT_ASSERT_EQ(test, 1,
				fairwq_serializer_queue(&serial, batch, &item[i]->work));
	}
	complete_all(&gate->open);
	fairwq_serializer_destroy(&serial);
}

static void run_dear(struct kunit *test, struct fairwq_batch *batch, enum dear_how how, u64 cost)
{
	struct mock *mock = test->priv;
	struct dear_item *item;

	if (how == DEAR_IN_BURST) {
		dear_burst(test, batch, cost);
		return;
	}
	item = dear_item(test, how == DEAR_IN_FUNCTION, cost);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &item->work));
	mock_await(test, &item->returned);
	if (how == DEAR_IN_FUNCTION)
		return;
	mock_until(test, READ_ONCE(mock->pool->crew.nr_async) == 1);
	fairwq_async_complete(&item->async, cost);
}

/* An item that takes longer than the function of a dear one. A sleep would cost nothing. */
static void slow_fn(struct fairwq_work *work)
{
	spin_for(3, false);
	mock_item_fn(work);
}

/* Expect that @dear has much more to pay than five slow items of @cheap take. */
static void expect_debt(struct kunit *test, struct fairwq_batch *dear, struct fairwq_batch *cheap)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct mock *mock = test->priv;
	struct mock_item *item;
	int i;

	fairwq_pool_flush(mock->pool);
	mock_log_clear(mock);
	mock_gate_enter(test, mock->gate_batch, gate);
	mock_queue(test, dear, 'd', 5);
	for (i = 0; i < 5; i++) {
		item = mock_item(test, 'c');
		fairwq_work_init(&item->work, slow_fn);
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(cheap, &item->work));
	}
	complete_all(&gate->open);
	mock_expect(test, "cccccddddd");
}

/*
 * A turn that costs more than can be counted puts the batch behind others, as
 * one of a minute does.
 */
static void dearest_async_turn_is_paid(struct kunit *test)
{
	static const u64 cost[] = {
		100ULL * NSEC_PER_SEC, S64_MAX, S64_MAX + 1ULL, U64_MAX - 1000ULL * NSEC_PER_SEC,
		U64_MAX - 1, U64_MAX,
	};
	struct fairwq_batch *dear, *cheap;
	int how, i;

	cheap = mock_begin_by(test, 1, FAIRWQ_FAIR_TIME);
	mock_free_runners(test);
	mock_queue(test, cheap, 'c', 1);	/* so that it is no newcomer */
	for (how = 0; how < NR_DEAR_HOWS; how++)
		for (i = 0; i < ARRAY_SIZE(cost); i++) {
			dear = mock_own_batch(test, "dear", NULL);
			run_dear(test, dear, how, cost[i]);
			expect_debt(test, dear, cheap);
			fairwq_batch_dispose(dear);
		}
}

/* ---- what a client says that an item costs -------------------------------- */

static u32 cost_of_d = 1;

static u32 letter_cost(const struct fairwq_work *work)
{
	return container_of(work, struct mock_item, work)->letter == 'd' ? cost_of_d : 1;
}

/* Under fair cost, 0 counts as 1, and the largest cost as itself. */
static void dearest_item_is_paid(struct kunit *test)
{
	static const struct fairwq_pool_attrs attrs = {
		.max_active = 1, .policy = FAIRWQ_FAIR_COST, .cost = letter_cost,
	};
	static const u32 cost[] = { S32_MAX, S32_MAX + 1U, U32_MAX - 999, U32_MAX - 1, U32_MAX };
	static const struct fairwq_batch_attrs light = { .weight = 1 };
	struct mock *mock = test->priv;
	struct fairwq_batch *dear, *cheap;
	int i;

	mock->pool = fairwq_pool_create(&attrs, "cost");
	KUNIT_ASSERT_FALSE(test, IS_ERR(mock->pool));
	for (i = 0; i < ARRAY_SIZE(cost); i++) {
		cost_of_d = 0;
		dear = mock_own_batch(test, "dear", &light);
		cheap = mock_own_batch(test, "cheap", NULL);
		fairwq_batch_pause(dear);
		fairwq_batch_pause(cheap);
		mock_log_clear(mock);
		mock_queue(test, dear, 'd', 3);
		mock_queue(test, cheap, 'c', 3);
		fairwq_batch_resume(dear);
		fairwq_batch_resume(cheap);
		fairwq_pool_flush(mock->pool);
		/* That both have had three turns is all that is known: the runner began first. */
		KUNIT_EXPECT_EQ(test, 6, mock->log.nr);
		cost_of_d = cost[i];
		mock_queue(test, dear, 'd', 1);
		fairwq_pool_flush(mock->pool);
		fairwq_batch_pause(dear);
		fairwq_batch_pause(cheap);
		mock_log_clear(mock);
		mock_queue(test, dear, 'd', 2);
		mock_queue(test, cheap, 'c', 5);
		fairwq_batch_resume(cheap);
		fairwq_batch_resume(dear);
		fairwq_pool_flush(mock->pool);
		KUNIT_EXPECT_STREQ(test, "cccccdd", mock->log.text);
		fairwq_batch_dispose(dear);
		fairwq_batch_dispose(cheap);
	}
}

/* ---- weights and limits --------------------------------------------------- */

/* Numbers of which only the lower bits are in range are refused, and change nothing. */
static void numbers_that_look_small_are_refused(struct kunit *test)
{
	static const unsigned int many[] = {
		FAIRWQ_MAX_WEIGHT + 1, BIT(16) + 1, BIT(16) + 100, BIT(31), BIT(31) + 1, UINT_MAX,
	};
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_serializer serial;
	struct mock *mock = test->priv;
	struct fairwq_batch_attrs attrs;
	struct fairwq_flows *flows;
	int i;

	fairwq_serializer_init(&serial);
	flows = fairwq_flows_create(mock->pool, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(flows));
	for (i = 0; i < ARRAY_SIZE(many); i++) {
		KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_batch_set_weight(a, many[i]));
		attrs = (struct fairwq_batch_attrs){ .weight = many[i] };
		KUNIT_EXPECT_EQ(test, -EINVAL,
				PTR_ERR(fairwq_batch_create(mock->pool, &attrs, "x")));
		attrs = (struct fairwq_batch_attrs){ .max_active = many[i] };
		KUNIT_EXPECT_EQ(test, -EINVAL,
				PTR_ERR(fairwq_batch_create(mock->pool, &attrs, "x")));
		KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_pool_set_max_active(mock->pool, many[i]));
		KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_serializer_set_inline(&serial, many[i]));
	}
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_flows_set_idle_ms(flows, FAIRWQ_MAX_IDLE_MS + 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_flows_set_idle_ms(flows, UINT_MAX));
	fairwq_flows_destroy(flows);
	KUNIT_EXPECT_EQ(test, FAIRWQ_DFL_WEIGHT, a->node.weight);
	mock_queue(test, a, 'a', 2);
	mock_expect(test, "aa");
}

/* ---- times ----------------------------------------------------------------- */

/* A delay that is longer than a timer can hold is long, and not over at once. */
static void longest_delay_is_long(struct kunit *test)
{
	static const unsigned long delay[] = {
		MAX_JIFFY_OFFSET, LONG_MAX, LONG_MAX + 1UL, ULONG_MAX - HZ, ULONG_MAX,
	};
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_delayed_work dwork;
	int i;

	fairwq_delayed_work_init_onstack(&dwork, mock_nothing_fn);
	for (i = 0; i < ARRAY_SIZE(delay); i++) {
		KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &dwork, delay[i]));
		KUNIT_EXPECT_TRUE(test, time_after(dwork.timer.expires, jiffies + INT_MAX / 4));
		KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_cancel(&dwork));
		KUNIT_EXPECT_EQ(test, 0, fairwq_mod_delayed(a, &dwork, delay[i]));
		KUNIT_EXPECT_TRUE(test, time_after(dwork.timer.expires, jiffies + INT_MAX / 4));
		KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_cancel_sync(&dwork));
	}
	fairwq_delayed_work_destroy_onstack(&dwork);
}

/* No item hangs by a time that is longer than any. */
static void longest_hung_ms_reports_nothing(struct kunit *test)
{
	static const unsigned int ms[] = { INT_MAX, INT_MAX + 1U, UINT_MAX };
	struct mock *mock = test->priv;
	int i;

	mock_begin(test, 1);
	for (i = 0; i < ARRAY_SIZE(ms); i++) {
		fairwq_set_hung_ms(mock->pool, ms[i]);
		mock_tick(mock->pool);
	}
	KUNIT_EXPECT_EQ(test, 0ULL, mock_counter(mock->pool, FAIRWQ_HUNG));
	fairwq_set_hung_ms(mock->pool, FAIRWQ_DFL_HUNG_MS);
	mock_open(test);
}

/* ------------------------------------------------------------------------- */

static struct kunit_case numbers_cases[] = {
	KUNIT_CASE(dearest_async_turn_is_paid),
	KUNIT_CASE(dearest_item_is_paid),
	KUNIT_CASE(numbers_that_look_small_are_refused),
	KUNIT_CASE(longest_delay_is_long),
	KUNIT_CASE(longest_hung_ms_reports_nothing),
	{}
};

static struct kunit_suite numbers_suite = {
	.name = "fairwq_numbers",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = numbers_cases,
};

kunit_test_suite(numbers_suite);

MODULE_DESCRIPTION("KUnit: numbers at their limits");
MODULE_LICENSE("GPL");
