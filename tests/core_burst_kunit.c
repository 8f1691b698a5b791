// SPDX-License-Identifier: GPL-2.0
/*
 * Bursts (promise 10): a runner goes on with the items of one serializer.
 *
 * A case has one runner besides that at the gate of the pool. It waits in an
 * item of the serializer, at another gate. When the case opens that, the runner
 * goes on with the items that are queued behind it.
 */
#include <linux/vmalloc.h>

#include "lib/hook.h"

/* A budget that no case uses up by accident: more than a client may set. */
#define LONG_BUDGET	(3600UL * USEC_PER_SEC)	/* an hour */

/* A serializer, one item of which waits at @gate. All batches have a history of short items. */
struct burst {
	struct fairwq_serializer serial;
	struct fairwq_batch *a, *b;	/* the gates are in a */
	struct mock_gate *gate;
};

static struct fairwq_batch *short_batch(struct kunit *test, const char *name)
{
	struct fairwq_batch *batch = mock_batch(test, name);

	mock_set_guess(batch, 100);
	return batch;
}

static void burst_queue_gate(struct kunit *test, struct burst *s)
{
	s->gate = mock_gate_new(test);
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&s->serial, s->a, &s->gate->work));
}

static struct burst *burst_begin_by(struct kunit *test, unsigned int budget_us,
				    enum fairwq_policy policy)
{
	struct burst *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	mock_pool_by(test, 2, policy);
	s->a = short_batch(test, "a");
	s->b = short_batch(test, "b");
	fairwq_serializer_init(&s->serial);
	s->serial.inline_us = budget_us;
	burst_queue_gate(test, s);
	mock_await(test, &s->gate->entered);
	return s;
}

static struct burst *burst_begin(struct kunit *test, unsigned int budget_us)
{
	return burst_begin_by(test, budget_us, FAIRWQ_ROUND_ROBIN);
}

static struct mock_item *burst_item(struct kunit *test, struct burst *s,
				    struct fairwq_batch *batch, char letter)
{
	struct mock_item *item = mock_item(test, letter);

	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&s->serial, batch, &item->work));
	return item;
}

/*
 * Queue a second gate, and 'x' and 'y' of a and 'z' of b behind it. Open the
 * first gate, and wait until the runner has entered the second one.
 */
static void burst_take(struct kunit *test, struct burst *s, struct mock_item **item)
{
	struct mock_gate *first = s->gate;

	burst_queue_gate(test, s);
	item[0] = burst_item(test, s, s->a, 'x');
	item[1] = burst_item(test, s, s->a, 'y');
	item[2] = burst_item(test, s, s->b, 'z');
	complete_all(&first->open);
	mock_await(test, &s->gate->entered);
}

/* Begin a case with a budget, and with items as burst_take() queues them. */
static struct burst *burst_taken(struct kunit *test, struct mock_item **item)
{
	struct burst *s = burst_begin(test, LONG_BUDGET);

	burst_take(test, s, item);
	return s;
}

static bool waits(const struct mock_item *item)
{
	return mock_state(&item->work) == FAIRWQ_STATE_LISTED;
}

/* Open the gate, expect that the items of @order run and no others. */
static void burst_end(struct kunit *test, struct burst *s, const char *order)
{
	struct mock *mock = test->priv;

	complete_all(&s->gate->open);
	mock_until(test, READ_ONCE(mock->log.nr) >= strlen(order));
	fairwq_serializer_destroy(&s->serial);
	KUNIT_EXPECT_STREQ(test, order, &mock->log.text[0]);
	fairwq_batch_flush(s->a);
	fairwq_batch_flush(s->b);
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_held(s->a));
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_held(s->b));
	KUNIT_EXPECT_EQ(test, 0U, s->a->in_flight[0] + s->a->in_flight[1]);
	/* No call may be left that waits for a work of the pool. */
	mock_until(test, !mock_nr_waiters(mock->pool));
}

/* ---- going on --------------------------------------------------------- */

/* A burst with a budget goes on although other items wait. The batch pays for it later. */
static void goes_on_and_is_charged(struct kunit *test)
{
	struct burst *s = burst_begin(test, LONG_BUDGET);

	mock_queue(test, s->a, 'a', 2);
	mock_queue(test, s->b, 'b', 5);
	burst_item(test, s, s->a, 'x');
	burst_item(test, s, s->a, 'y');
	burst_item(test, s, s->a, 'z');
	burst_end(test, s, "xyzbbbabab");
}

/* Without a budget the items of a serializer take turns with other items that wait. */
static void without_a_budget_takes_turns(struct kunit *test)
{
	struct burst *s = burst_begin(test, 0);
	struct mock *mock = test->priv;

	mock_queue(test, s->b, 'b', 2);
	burst_item(test, s, s->a, 'x');
	burst_item(test, s, s->a, 'y');
	burst_item(test, s, s->a, 'z');
	complete_all(&s->gate->open);
	mock_until(test, READ_ONCE(mock->log.nr) == 5);
	KUNIT_EXPECT_NE(test, 0, strncmp(mock->log.text, "xyz", 3));
	fairwq_serializer_destroy(&s->serial);
}

/* An item that is likely to take longer than the budget is the last one of its burst. */
static void stops_when_the_budget_is_used_up(struct kunit *test)
{
	struct burst *s = burst_begin(test, 1);
	struct mock *mock = test->priv;

	mock_set_guess(s->a, NSEC_PER_MSEC);
	mock_queue(test, s->b, 'b', 2);
	burst_item(test, s, s->a, 'x');
	burst_item(test, s, s->a, 'y');
	burst_item(test, s, s->a, 'z');
	complete_all(&s->gate->open);
	mock_until(test, READ_ONCE(mock->log.nr) == 5);
	KUNIT_EXPECT_NE(test, 0, strncmp(mock->log.text, "xyz", 3));
	fairwq_serializer_destroy(&s->serial);
}

/* More items than one burst may have. The first are queued before the second gate is entered. */
#define MANY		1200U
#define MANY_AT_FIRST	99U

static struct {
	unsigned int nr;		/* items that have run */
	unsigned int before;		/* of these, before the other item */
} many;

static void many_fn(struct fairwq_work *work)
{
	WRITE_ONCE(many.nr, many.nr + 1);
}

static void other_fn(struct fairwq_work *work)
{
	WRITE_ONCE(many.before, READ_ONCE(many.nr));
}

/* A burst ends after 1024 items, the second gate among them, whatever budget is left. */
static void burst_ends_after_1024_items(struct kunit *test)
{
	struct fairwq_work *works = vzalloc(array_size(MANY, sizeof(*works))), other;
	struct burst *s = burst_begin(test, LONG_BUDGET);
	struct mock_gate *first = s->gate;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, works);
	many.nr = 0;
	many.before = 0;
	burst_queue_gate(test, s);
	for (i = 0; i < MANY; i++) {
		if (i == MANY_AT_FIRST) {
			complete_all(&first->open);
			mock_await(test, &s->gate->entered);
		}
		fairwq_work_init(&works[i], many_fn);
		mock_may_refuse(fairwq_serializer_queue(&s->serial, s->a, &works[i]));
	}
	fairwq_work_init_onstack(&other, other_fn);
	mock_may_refuse(fairwq_queue(s->b, &other));
	complete_all(&s->gate->open);
	fairwq_serializer_flush(&s->serial);
	fairwq_work_flush(&other);
	KUNIT_EXPECT_EQ(test, MANY, many.nr);
	KUNIT_EXPECT_EQ(test, 1023U, many.before);
	burst_end(test, s, "");
	vfree(works);
}

/*
 * Queue 'x' of @batch, which is not a, to the serializer behind the gate, and
 * 'n' to a outside of it. In a burst 'x' would be the first.
 */
static void expect_no_burst_with(struct kunit *test, struct fairwq_batch *batch)
{
	struct burst *s = burst_begin(test, LONG_BUDGET);
	struct mock *mock = test->priv;

	batch = batch ?: s->b;
	mock_queue(test, s->a, 'n', 1);
	fairwq_batch_pause(batch);
	burst_item(test, s, batch, 'x');
	complete_all(&s->gate->open);
	mock_until(test, READ_ONCE(mock->log.nr) == 1);
	fairwq_batch_resume(batch);
	burst_end(test, s, "nx");
}

/* A burst stays in its batch: the next item of another one has a turn of that. */
static void ends_at_another_batch(struct kunit *test)
{
	expect_no_burst_with(test, NULL);
}

/* A burst does not go on with an item whose batch is of another pool. */
static void ends_at_another_pool(struct kunit *test)
{
	struct fairwq_pool *other = fairwq_pool_create(NULL, "other");
	struct fairwq_batch *far;

	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	far = fairwq_batch_create(other, NULL, "far");
	KUNIT_ASSERT_FALSE(test, IS_ERR(far));
	expect_no_burst_with(test, far);
	fairwq_batch_dispose(far);
	fairwq_pool_destroy(other);
}

/* A burst does not go on with an item whose batch is paused. */
static void ends_at_a_pause(struct kunit *test)
{
	struct burst *s = burst_begin(test, LONG_BUDGET);
	struct mock_item *item = burst_item(test, s, s->a, 'x');
	struct mock *mock = test->priv;

	burst_item(test, s, s->b, 'z');
	fairwq_batch_pause(s->a);
	complete_all(&s->gate->open);
	mock_until(test, !waits(item));
	KUNIT_EXPECT_EQ(test, 0U, READ_ONCE(mock->log.nr));
	fairwq_batch_resume(s->a);
	burst_end(test, s, "xz");
}

/* In a batch with max_active a burst goes on in the place that its first item has. */
static void goes_on_in_a_batch_with_a_limit(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_active = 1 };
	struct burst *s = burst_begin(test, LONG_BUDGET);
	struct fairwq_batch *limited = mock_batch_with(test, "limited", &attrs);
	struct mock_gate *first = s->gate;

	s->gate = mock_gate_new(test);
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&s->serial, limited, &s->gate->work));
	complete_all(&first->open);
	mock_await(test, &s->gate->entered);
	mock_queue(test, limited, 'n', 1);
	mock_queue(test, s->b, 'b', 1);
	burst_item(test, s, limited, 'x');
	burst_item(test, s, limited, 'y');
	burst_end(test, s, "xybn");
}

static void fails_fn(struct fairwq_work *work)
{
	fairwq_report_failure(-EIO);
	mock_item_fn(work);
}

/* A failure in a burst counts for the batch of the item, and the next item runs. */
static void a_failure_does_not_end_it(struct kunit *test)
{
	struct burst *s = burst_begin(test, LONG_BUDGET);
	struct mock *mock = test->priv;
	struct mock_item *item = mock_item(test, 'x');

	item->work.func = fails_fn;
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&s->serial, s->a, &item->work));
	burst_item(test, s, s->a, 'y');
	complete_all(&s->gate->open);
	mock_until(test, READ_ONCE(mock->log.nr) == 2);
	KUNIT_EXPECT_EQ(test, 1ULL, mock_counter(mock->pool, FAIRWQ_FAILURES));
	KUNIT_EXPECT_EQ(test, 1ULL, (u64)s->a->stats->failures);
	burst_end(test, s, "xy");
}

/* ---- items that wait to be next ------------------------------------------ */

/* A cancel takes an item out that a burst would run. It may be queued again. */
static void cancel_of_what_is_next(struct kunit *test)
{
	struct mock_item *item[3];
	struct burst *s = burst_taken(test, item);

	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&item[1]->work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_cancel(&item[1]->work));
	KUNIT_EXPECT_EQ(test, 0L, atomic_long_read(&item[1]->work.data));
	/* Its place is behind 'z' now. */
	KUNIT_EXPECT_EQ(test, 1, fairwq_serializer_queue(&s->serial, s->b, &item[1]->work));
	burst_end(test, s, "xzy");
}

/* If all items that wait are cancelled, the burst goes on with an item that comes later. */
static void cancel_of_all_that_is_next(struct kunit *test)
{
	struct mock_item *item[3];
	struct burst *s = burst_taken(test, item);

	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&item[0]->work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&item[1]->work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel_sync(&item[2]->work));
	burst_item(test, s, s->a, 'w');
	burst_end(test, s, "w");
}

struct follower {
	struct fairwq_work work;
	struct completion go;
	bool in_time;
};

/* Wait for what the test does after its flush of the item in front has returned. */
static void follower_fn(struct fairwq_work *work)
{
	struct follower *follower = container_of(work, struct follower, work);

	follower->in_time = mock_wait(&follower->go);
}

/* Queue a follower of @batch behind all that waits. In a burst they would have one turn. */
static struct follower *burst_follower(struct kunit *test, struct burst *s,
				       struct fairwq_batch *batch)
{
	struct follower *follower = kunit_kzalloc(test, sizeof(*follower), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, follower);
	init_completion(&follower->go);
	fairwq_work_init(&follower->work, follower_fn);
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&s->serial, batch, &follower->work));
	return follower;
}

/* Expect that the flush @call returns before the follower goes on. */
static void follower_end(struct kunit *test, struct burst *s, struct follower *follower,
			 struct call *call, const char *order)
{
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	complete(&follower->go);
	fairwq_serializer_flush(&s->serial);
	KUNIT_EXPECT_TRUE_MSG(test, follower->in_time, "it waits for what is behind");
	burst_end(test, s, order);
}

/* A flush of an item that runs does not wait for the next item of the burst. */
static void flush_waits_for_no_later_item(struct kunit *test)
{
	struct burst *s = burst_begin(test, LONG_BUDGET);
	struct mock_gate *first = s->gate;
	struct mock *mock = test->priv;
	struct follower *follower;
	struct call *call;

	burst_queue_gate(test, s);
	follower = burst_follower(test, s, s->a);
	complete_all(&first->open);
	mock_await(test, &s->gate->entered);
	call = mock_call_start(test, fairwq_work_flush, &s->gate->work);
	mock_until(test, mock_nr_waiters(mock->pool) == 1);
	complete_all(&s->gate->open);
	follower_end(test, s, follower, call, "");
}

static bool flush_batch(struct fairwq_work *data)
{
	fairwq_batch_flush((void *)data);
	return true;
}

/*
 * Flush an item that has not begun: by its batch if @batch is set; while it
 * waits in the serializer if @listed is set. The item behind it waits for what
 * comes after the flush. In a burst both would have one turn.
 */
static void flush_before_it_begins(struct kunit *test, bool batch, bool listed)
{
	struct burst *s = burst_begin(test, LONG_BUDGET);
	struct follower *follower;
	struct mock_item *item;
	struct call *call;

	fairwq_batch_pause(s->b);
	item = burst_item(test, s, s->b, 'w');
	follower = burst_follower(test, s, s->b);
	if (!listed) {
		complete_all(&s->gate->open);
		mock_until(test, mock_state(&item->work) == FAIRWQ_STATE_QUEUED);
	}
	call = batch ? mock_call_start(test, flush_batch, (void *)s->b) :
		       mock_call_start(test, fairwq_work_flush, &item->work);
	mock_call_settle(test, call);
	complete_all(&s->gate->open);
	fairwq_batch_resume(s->b);
	follower_end(test, s, follower, call, "w");
}

/* A flush of an item that is to come does not wait for the next item of the burst, either. */
static void flush_of_a_queued_item_ends_its_burst(struct kunit *test)
{
	flush_before_it_begins(test, false, false);
}

static void flush_of_a_held_item_ends_its_burst(struct kunit *test)
{
	flush_before_it_begins(test, false, true);
}

static void flush_of_the_batch_ends_its_burst(struct kunit *test)
{
	flush_before_it_begins(test, true, false);
}

/*
 * A flush of a batch does not wait for an item that waits in a serializer and
 * is bound for that batch. So an item in front of it may flush the batch.
 */
static void item_in_front_may_flush_the_batch(struct kunit *test)
{
	struct mock_item *item[3];
	struct burst *s = burst_taken(test, item);
	struct call *call = mock_call_start(test, flush_batch, (void *)s->b);
	bool done = mock_within(completion_done(&call->done));

	KUNIT_EXPECT_TRUE_MSG(test, done, "it waits for what is behind");
	complete_all(&s->gate->open);
	mock_call_end(test, call);
	burst_end(test, s, "xyz");
}

/* A disposed batch is released after an item that waits in a serializer and is bound for it. */
static void disposed_batch_has_its_item(struct kunit *test)
{
	struct burst *s = burst_begin(test, LONG_BUDGET);
	atomic_t released = ATOMIC_INIT(0);
	struct fairwq_batch_attrs attrs = { .released = mock_released_count, .priv = &released };
	struct fairwq_batch *c = mock_own_batch(test, "c", &attrs);
	struct mock_gate *first = s->gate;
	struct mock_item *item;

	burst_queue_gate(test, s);
	item = burst_item(test, s, c, 'x');
	complete_all(&first->open);
	mock_await(test, &s->gate->entered);
	KUNIT_EXPECT_TRUE(test, waits(item));
	fairwq_batch_dispose(c);
	mock_wait_released();
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&released));
	burst_end(test, s, "x");
	mock_until(test, atomic_read(&released) == 1);
}

/* ---- the end of an object ---------------------------------------------- */

struct object {
	struct fairwq_serializer serial;
	struct mock_item first, last;
};

static void last_fn(struct fairwq_work *work)
{
	struct object *object = container_of(work, struct object, last.work);
	struct mock_item item = object->last;

	fairwq_serializer_destroy(&object->serial);
	memset(object, 0x6b, sizeof(*object));
	kfree(object);
	mock_item_fn(&item.work);
}

/* The last item may destroy its serializer, and free the object that contains both. */
static void last_item_frees_the_object(struct kunit *test)
{
	static const unsigned int budgets[] = { 0, LONG_BUDGET };
	struct burst *s = burst_begin(test, LONG_BUDGET);
	struct mock *mock = test->priv;
	struct object *object;
	unsigned int i, k;

	complete_all(&s->gate->open);
	for (i = 0; i < 4; i++) {
		object = kzalloc(sizeof(*object), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, object);
		fairwq_serializer_init(&object->serial);
		object->serial.inline_us = budgets[i % 2];
		fairwq_work_init(&object->first.work, mock_item_fn);
		fairwq_work_init(&object->last.work, last_fn);
		object->first.log = &mock->log;
		object->last.log = &mock->log;
		object->first.letter = 'f';
		object->last.letter = 'l';
		/* The last item is behind another one in two rounds, and alone in two. */
		fairwq_batch_pause(s->a);
		for (k = i / 2; k < 2; k++)
			KUNIT_EXPECT_EQ(test, 1,
					fairwq_serializer_queue(&object->serial, s->a,
								k ? &object->last.work :
								    &object->first.work));
		fairwq_batch_resume(s->a);
		mock_until(test, READ_ONCE(mock->log.nr) >= (i < 2 ? 2 * i + 2 : i + 3));
	}
	burst_end(test, s, "flflll");
}

/* ---- shares ----------------------------------------------------------- */

#define BACKLOG	3000

static struct judge *burst_judge;

static void judged_fn(struct fairwq_work *work)
{
	judge_look(burst_judge);
}

/* Run bursts beside other items, and judge: all items of bursts are charged. */
static void share_beside_bursts(struct kunit *test, enum fairwq_policy policy)
{
	struct burst *s = burst_begin_by(test, 200, policy);
	struct mock *mock = test->priv;
	struct fairwq_work *works = vzalloc(array_size(3 * BACKLOG, sizeof(*works)));
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, works);
	burst_judge = &mock->judge;
	for (i = 0; i < 3 * BACKLOG; i++) {
		fairwq_work_init(&works[i], judged_fn);
		if (i % 3 == 0)
			mock_may_refuse(fairwq_serializer_queue(&s->serial, s->a, &works[i]));
		else
			mock_may_refuse(fairwq_queue(i % 3 == 1 ? s->a : s->b, &works[i]));
	}
	complete_all(&s->gate->open);
	fairwq_serializer_flush(&s->serial);
	burst_end(test, s, "");
	KUNIT_EXPECT_GE(test, mock->judge.judged, 1000ULL);
	vfree(works);
}

static void bursts_have_their_share(struct kunit *test)
{
	share_beside_bursts(test, FAIRWQ_ROUND_ROBIN);
}

static void bursts_have_their_share_of_time(struct kunit *test)
{
	share_beside_bursts(test, FAIRWQ_FAIR_TIME);
}

static void bad_budget_is_refused(struct kunit *test)
{
	struct fairwq_serializer serial;

	fairwq_serializer_init(&serial);
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_serializer_set_inline(NULL, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fairwq_serializer_set_inline(&serial, FAIRWQ_MAX_INLINE_US + 1));
	KUNIT_EXPECT_EQ(test, 0, fairwq_serializer_set_inline(&serial, FAIRWQ_MAX_INLINE_US));
	KUNIT_EXPECT_EQ(test, 0, fairwq_serializer_set_inline(&serial, 0));
}

/* ---- other batches beside a burst --------------------------------------- */

#define HOUR	(3600UL * HZ)	/* longer than any case takes */

/*
 * Expect that a burst goes on. What the case has done in other batches since
 * the gate was entered must not end it.
 */
static void beside_goes_on(struct kunit *test, struct burst *s)
{
	struct mock *mock = test->priv;

	mock_queue(test, s->b, 'b', 2);
	burst_item(test, s, s->a, 'x');
	burst_item(test, s, s->a, 'y');
	burst_item(test, s, s->a, 'z');
	complete_all(&s->gate->open);
	mock_until(test, READ_ONCE(mock->log.nr) == 5);
	KUNIT_EXPECT_STREQ(test, "xyzbb", &mock->log.text[0]);
}

static void beside_end(struct kunit *test, struct burst *s)
{
	mock_log_clear(test->priv);
	burst_end(test, s, "");
}

/* A disposed batch with nothing in flight ends no burst, however long it stays. */
static void disposed_batch_ends_no_other(struct kunit *test)
{
	struct fairwq_delayed_work *dwork = kunit_kzalloc(test, sizeof(*dwork), GFP_KERNEL);
	struct burst *s = burst_begin(test, LONG_BUDGET);
	struct fairwq_batch *o = fairwq_batch_get(mock_own_batch(test, "o", NULL));

	KUNIT_ASSERT_NOT_NULL(test, dwork);
	fairwq_delayed_work_init(dwork, mock_nothing_fn);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue_delayed(o, dwork, HOUR));
	fairwq_batch_dispose(o);
	beside_goes_on(test, s);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(o->reaped));
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_cancel(dwork));
	beside_end(test, s);
	fairwq_batch_put(o);
}

/* A batch whose items wait because it is at its max_active ends no burst of others. */
static void ordered_batch_ends_no_other(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_active = 1 };
	struct burst *s = burst_begin(test, LONG_BUDGET);
	struct fairwq_batch *o = mock_batch_with(test, "o", &attrs);
	struct mock_gate *gate = mock_gate_new(test);
	struct mock *mock = test->priv;

	KUNIT_ASSERT_EQ(test, 0, fairwq_pool_set_max_active(mock->pool, 3));
	mock_gate_enter(test, o, gate);
	mock_queue(test, o, 'o', 200);
	beside_goes_on(test, s);
	KUNIT_EXPECT_EQ(test, 200U, fairwq_inbox_nr_queued(o));
	complete_all(&gate->open);
	fairwq_batch_flush(o);
	beside_end(test, s);
}

/* A paused batch ends no burst of others, even if a call waits for an item of it. */
static void awaited_batch_ends_no_other(struct kunit *test)
{
	struct burst *s = burst_begin(test, LONG_BUDGET);
	struct fairwq_batch *o = mock_batch(test, "o");
	struct mock *mock = test->priv;
	struct call *call;

	fairwq_batch_pause(o);
	call = mock_call_start(test, fairwq_work_flush,
			       &mock_queue_item(test, o, 'o')->work);
	mock_until(test, mock_nr_waiters(mock->pool) == 1);
	beside_goes_on(test, s);
	KUNIT_EXPECT_EQ(test, 1U, mock_nr_waiters(mock->pool));
	fairwq_batch_resume(o);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	beside_end(test, s);
}

static struct kunit_case burst_cases[] = {
	KUNIT_CASE(bad_budget_is_refused),
	KUNIT_CASE(goes_on_and_is_charged),
	KUNIT_CASE(without_a_budget_takes_turns),
	KUNIT_CASE(stops_when_the_budget_is_used_up),
	KUNIT_CASE(burst_ends_after_1024_items),
	KUNIT_CASE(ends_at_a_pause),
	KUNIT_CASE(ends_at_another_batch),
	KUNIT_CASE(ends_at_another_pool),
	KUNIT_CASE(goes_on_in_a_batch_with_a_limit),
	KUNIT_CASE(a_failure_does_not_end_it),
	KUNIT_CASE(cancel_of_what_is_next),
	KUNIT_CASE(cancel_of_all_that_is_next),
	KUNIT_CASE(flush_waits_for_no_later_item),
	KUNIT_CASE(flush_of_a_queued_item_ends_its_burst),
	KUNIT_CASE(flush_of_a_held_item_ends_its_burst),
	KUNIT_CASE(flush_of_the_batch_ends_its_burst),
	KUNIT_CASE(item_in_front_may_flush_the_batch),
	KUNIT_CASE(disposed_batch_has_its_item),
	KUNIT_CASE(disposed_batch_ends_no_other),
	KUNIT_CASE(ordered_batch_ends_no_other),
	KUNIT_CASE(awaited_batch_ends_no_other),
	KUNIT_CASE(last_item_frees_the_object),
	KUNIT_CASE(bursts_have_their_share),
	KUNIT_CASE(bursts_have_their_share_of_time),
	{}
};

static struct kunit_suite burst_suite = {
	.name = "fairwq_core_burst",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = burst_cases,
};

kunit_test_suite(burst_suite);

MODULE_DESCRIPTION("KUnit: going on with the items of a serializer");
MODULE_LICENSE("GPL");
