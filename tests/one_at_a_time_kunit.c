// SPDX-License-Identifier: GPL-2.0
/*
 * One at a time: items that run one by one, in queue order (promise 10).
 *
 * Each case runs with each kind of object that does this: a serializer, one
 * with an inline budget, and a limiter of one item. Cases for only one kind are
 * in serializer_kunit.c, core_burst_kunit.c and limiter_kunit.c.
 */
#include <linux/vmalloc.h>

#include "lib/order.h"

static const struct kind {
	const char *name;
	bool limited;
	unsigned int inline_us;
} kinds[] = {
	{ "serializer" },
	{ "serializer with a budget", .inline_us = 100 },
	{ "limiter", .limited = true },
};

static void kind_desc(const struct kind *kind, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s", kind->name);
}

KUNIT_ARRAY_PARAM(kind, kinds, kind_desc);

/* Make an order of the kind that is the parameter of the case. */
static struct order order_new(struct kunit *test)
{
	const struct kind *kind = test->param_value;
	struct order order = mock_order_new(test, kind->limited);

	if (order.serial)
		fairwq_serializer_set_inline(order.serial, kind->inline_us);
	return order;
}

/* ---- order ------------------------------------------------------------ */

/* Items run in queue order, whatever their batches, priorities and pools are. */
static void order_holds_across_batches_and_pools(struct kunit *test)
{
	static const char * const letters = "abcdefghijklmnopqrstuvwxyz";
	struct order order = order_new(test);
	struct mock_item *items[26];
	struct fairwq_batch *batch[4];
	struct fairwq_pool *other;
	struct mock_gate *gate;
	unsigned int i;

	batch[3] = mock_begin(test, 4);
	other = fairwq_pool_create(NULL, "other");
	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	batch[0] = mock_batch_prio(test, "low", FAIRWQ_PRIO_LOW);
	batch[1] = mock_batch_prio(test, "high", FAIRWQ_PRIO_HIGH);
	batch[2] = fairwq_batch_create(other, NULL, "other");
	KUNIT_ASSERT_FALSE(test, IS_ERR(batch[2]));
	gate = mock_order_gate(test, &order, batch[0]);
	for (i = 0; i < strlen(letters); i++)
		items[i] = mock_order_item(test, &order, batch[i % 4], letters[i]);
	complete_all(&gate->open);
	mock_expect_order(test, letters, items, strlen(letters));
	mock_order_end(test, &order);
	fairwq_batch_dispose(batch[2]);
	fairwq_pool_destroy(other);
}

/* The next item does not start before the function has returned, even if runners are free. */
static void next_starts_after_the_return(struct kunit *test)
{
	struct order order = order_new(test);
	struct fairwq_batch *a = mock_begin(test, 4);
	struct fairwq_batch *b = mock_batch(test, "b");
	struct mock_item *item[2];
	struct mock_gate *gate;

	item[0] = mock_item(test, 'x');
	item[1] = mock_item(test, 'y');
	gate = mock_gate_new(test);
	/* 'x' is queued before the gate is entered, and 'y' after that. */
	fairwq_batch_pause(a);
	KUNIT_ASSERT_EQ(test, 1, mock_order_queue(&order, a, &gate->work));
	KUNIT_ASSERT_EQ(test, 1, mock_order_queue(&order, b, &item[0]->work));
	fairwq_batch_resume(a);
	mock_await(test, &gate->entered);
	KUNIT_ASSERT_EQ(test, 1, mock_order_queue(&order, b, &item[1]->work));
	KUNIT_EXPECT_TRUE(test, waits(&item[0]->work));
	KUNIT_EXPECT_TRUE(test, waits(&item[1]->work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_pending(&item[1]->work));
	KUNIT_EXPECT_EQ(test, 0, mock_order_queue(&order, a, &item[1]->work));
	KUNIT_EXPECT_EQ(test, 0, fairwq_queue(a, &item[1]->work));
	complete_all(&gate->open);
	mock_expect_order(test, "xy", item, 2);
	mock_order_end(test, &order);
}

static int queue_step(struct thread *thread, unsigned int producer, u64 seq)
{
	struct step *step = kzalloc(sizeof(*step), GFP_KERNEL | __GFP_NOFAIL);

	fairwq_work_init(&step->work, mock_step_free_fn);
	step->track = thread->track;
	step->producer = producer;
	step->seq = seq;
	return mock_order_queue(&thread->order, thread->batch, &step->work);
}

/* Number the items in the order of the queue calls of all threads. */
static void produce_in_order(struct thread *thread)
{
	unsigned int i;

	for (i = 0; i < thread->nr; i++) {
		mutex_lock(thread->mutex);
		thread->ret |= queue_step(thread, 0, ++*thread->seq) != 1;
		mutex_unlock(thread->mutex);
	}
}

/* Number the items of each thread. Nothing orders the calls of different threads. */
static void produce(struct thread *thread)
{
	unsigned int i;

	for (i = 0; i < thread->nr; i++)
		thread->ret |= queue_step(thread, thread->id, i + 1) != 1;
}

static void producers_run(struct kunit *test, void (*fn)(struct thread *thread))
{
	struct order order = order_new(test);
	struct track *track = mock_track_new(test, 1);
	struct thread *thread;
	struct mutex mutex;		/* see struct thread */
	unsigned int i;
	u64 seq = 0;

	thread = kunit_kcalloc(test, TRACK_PRODUCERS, sizeof(*thread), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, thread);
	mutex_init(&mutex);
	mock_pool(test, 4);
	for (i = 0; i < TRACK_PRODUCERS; i++) {
		thread[i] = (struct thread) {
			.order = order, .track = track, .id = i, .nr = MOCK_MANY(2000),
			.mutex = &mutex, .seq = &seq, .batch = mock_batch(test, "p"),
		};
		mock_thread_start(test, &thread[i], fn);
	}
	for (i = 0; i < TRACK_PRODUCERS; i++) {
		mock_thread_end(test, &thread[i]);
		KUNIT_EXPECT_EQ(test, 0, thread[i].ret);
	}
	mock_order_destroy(&order);
	KUNIT_EXPECT_EQ(test, TRACK_PRODUCERS * MOCK_MANY(2000), atomic_read(&track->ran));
	mock_track_check(test, track);
}

static void order_of_the_calls_is_kept(struct kunit *test)
{
	producers_run(test, produce_in_order);
}

static void order_of_each_producer_is_kept(struct kunit *test)
{
	producers_run(test, produce);
}

/* A long queue of items does not make the stack of the later items deeper. */
static void stack_does_not_grow_with_the_queue(struct kunit *test)
{
	struct order order = order_new(test);
	struct track *track = mock_track_new(test, 1);
	const unsigned int nr = MOCK_MANY(100000);
	struct fairwq_batch *a;
	struct mock_gate *gate;
	struct step *steps;
	unsigned int i, refused = 0;

	steps = vzalloc(array_size(nr, sizeof(*steps)));
	KUNIT_ASSERT_NOT_NULL(test, steps);
	a = mock_begin(test, 2);
	gate = mock_order_gate(test, &order, a);
	for (i = 0; i < nr; i++) {
		fairwq_work_init(&steps[i].work, mock_step_fn);
		steps[i].track = track;
		steps[i].seq = i + 1;
		refused += mock_order_queue(&order, a, &steps[i].work) != 1;
	}
	KUNIT_EXPECT_EQ(test, 0U, refused);
	complete_all(&gate->open);
	mock_order_destroy(&order);
	KUNIT_EXPECT_EQ(test, (int)nr, atomic_read(&track->ran));
	KUNIT_EXPECT_LT(test, track->high - track->low, 1024UL);
	mock_track_check(test, track);
	vfree(steps);
}

struct again {
	struct fairwq_work work;
	struct order order;
	struct fairwq_batch *batch;
	unsigned int left;
	int ret;
	struct completion done;
};

static void again_fn(struct fairwq_work *work)
{
	struct again *again = container_of(work, struct again, work);

	if (again->left--)
		again->ret |= mock_order_queue(&again->order, again->batch, work) != 1;
	else
		complete(&again->done);
}

/* A function may queue its own work to its own order. */
static void item_queues_itself(struct kunit *test)
{
	struct again again = { .left = MOCK_MANY(1000), .order = order_new(test) };

	again.batch = mock_begin(test, 3);
	init_completion(&again.done);
	fairwq_work_init_onstack(&again.work, again_fn);
	KUNIT_ASSERT_EQ(test, 1, mock_order_queue(&again.order, again.batch, &again.work));
	mock_await(test, &again.done);
	mock_order_destroy(&again.order);
	KUNIT_EXPECT_EQ(test, 0, again.ret);
}

/* ---- the batch that the items are bound for ----------------------------- */

static void released_log(struct fairwq_batch *batch, void *priv)
{
	mock_log_add(priv, 'R');
}

/* Make a batch whose release is logged. Return: the batch, with a reference. */
static struct fairwq_batch *batch_logged(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch_attrs attrs = { .released = released_log, .priv = &mock->log };

	return fairwq_batch_get(mock_own_batch(test, "logged", &attrs));
}

/* Accepted items run although their batch is disposed. Then the batch is released, once. */
static void disposed_batch_is_released_after_its_items(struct kunit *test)
{
	struct order order = order_new(test);
	struct mock *mock = test->priv;
	struct mock_item *item[4], *late;
	struct fairwq_batch *a = mock_begin(test, 4);
	struct fairwq_batch *b = batch_logged(test);
	struct mock_gate *gate = mock_order_gate(test, &order, a);

	item[0] = mock_order_item(test, &order, b, 'w');
	item[1] = mock_order_item(test, &order, a, 'x');
	item[2] = mock_order_item(test, &order, b, 'y');
	fairwq_batch_dispose(b);
	mock_wait_released();
	KUNIT_EXPECT_EQ(test, 0U, READ_ONCE(mock->log.nr));
	late = mock_item(test, '-');
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, mock_order_queue(&order, b, &late->work));
	complete_all(&gate->open);
	mock_expect_order(test, "wxyR", item, 3);
	/* The order can still be used with other batches. */
	item[3] = mock_order_item(test, &order, a, 'z');
	mock_expect_order(test, "wxyRz", &item[3], 1);
	mock_order_end(test, &order);
	mock_wait_released();
	KUNIT_EXPECT_STREQ(test, "wxyRz", &mock->log.text[0]);
	fairwq_batch_put(b);
}

/* A disposed batch is released when the last item that is bound for it is cancelled. */
static void canceled_item_lets_the_batch_go(struct kunit *test)
{
	struct order order = order_new(test);
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 2);
	struct fairwq_batch *b = batch_logged(test);
	struct mock_gate *gate = mock_order_gate(test, &order, a);
	struct mock_item *item[2];

	item[0] = mock_order_item(test, &order, b, 'x');
	item[1] = mock_order_item(test, &order, a, 'y');
	fairwq_batch_dispose(b);
	mock_wait_released();
	KUNIT_EXPECT_EQ(test, 0U, READ_ONCE(mock->log.nr));
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&item[0]->work));
	mock_until(test, READ_ONCE(mock->log.nr));
	complete_all(&gate->open);
	mock_expect_order(test, "Ry", item, 2);
	mock_order_end(test, &order);
	fairwq_batch_put(b);
}

/* ---- cancelling ------------------------------------------------------- */

/* If a waiting item is cancelled, the others keep their order. It may be queued again. */
static void cancel_of_a_waiting_item_keeps_the_order(struct kunit *test)
{
	struct order order = order_new(test);
	struct fairwq_batch *a = mock_begin(test, 4);
	struct mock_gate *gate = mock_order_gate(test, &order, a);
	struct mock_item *item[4];

	item[0] = mock_order_item(test, &order, a, 'w');
	item[1] = mock_order_item(test, &order, a, 'x');
	item[2] = mock_order_item(test, &order, a, 'y');
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&item[1]->work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&item[1]->work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_cancel(&item[1]->work));
	item[3] = mock_order_item(test, &order, a, 'z');
	KUNIT_EXPECT_EQ(test, 1, mock_order_queue(&order, a, &item[1]->work));
	/* The item that runs is not pending. */
	KUNIT_EXPECT_FALSE(test, fairwq_work_cancel(&gate->work));
	complete_all(&gate->open);
	mock_expect_order(test, "wyzx", item, 4);
	mock_order_end(test, &order);
}

/* If an admitted item is cancelled before it runs, the next one is admitted. */
static void cancel_of_an_admitted_item_admits_the_next(struct kunit *test)
{
	struct order order = order_new(test);
	struct fairwq_batch *a = mock_begin(test, 2);
	struct fairwq_batch *b = mock_batch(test, "b");
	struct mock_item *item[2];
	struct mock_gate *gate;

	fairwq_batch_pause(b);
	gate = mock_order_gate(test, &order, a);
	item[0] = mock_order_item(test, &order, b, 'x');
	item[1] = mock_order_item(test, &order, a, 'y');
	complete_all(&gate->open);
	mock_until(test, admitted(&item[0]->work));
	KUNIT_EXPECT_TRUE(test, waits(&item[1]->work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&item[0]->work));
	mock_expect_order(test, "y", item, 2);
	mock_order_end(test, &order);
}

/* ---- waiting ---------------------------------------------------------- */

/* A flush waits for the items that were queued before it, and not for later ones. */
static void flush_waits_for_what_is_queued(struct kunit *test)
{
	struct thread thread = { .order = order_new(test) };
	const struct order *order = &thread.order;
	struct fairwq_batch *a = mock_begin(test, 2);
	struct mock_gate *gate, *later;
	struct mock *mock = test->priv;
	struct mock_item *item;

	mock_order_flush(order);
	gate = mock_order_gate(test, order, a);
	item = mock_order_item(test, order, a, 'x');
	mock_thread_start(test, &thread, mock_thread_flush);
	/* Wait until the marker of the flush is behind 'x'. */
	mock_until(test, mock_order_last(order) != &item->work);
	later = mock_gate_new(test);
	KUNIT_ASSERT_EQ(test, 1, mock_order_queue(order, a, &later->work));
	KUNIT_EXPECT_FALSE(test, completion_done(&thread.done));
	complete_all(&gate->open);
	mock_thread_end(test, &thread);
	KUNIT_EXPECT_EQ(test, 1U, READ_ONCE(mock->log.nr));
	complete_all(&later->open);
	mock_order_destroy(order);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&later->runs));
}

/*
 * A destroy waits for the items in the order, and refuses new ones. A refused
 * work is unchanged, and may be queued elsewhere.
 */
static void destroy_refuses_and_waits(struct kunit *test)
{
	struct thread thread = { .order = order_new(test) };
	const struct order *order = &thread.order;
	struct order other = order_new(test);
	struct mock_item *item = mock_item(test, 'y');
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 3);
	struct fairwq_batch *b = mock_batch(test, "b");
	struct mock_gate *gate = mock_order_gate(test, order, a);

	mock_order_item(test, order, a, 'x');
	mock_thread_start(test, &thread, mock_thread_destroy);
	mock_until(test, READ_ONCE(order->serial->ending));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, mock_order_queue(order, b, &item->work));
	KUNIT_EXPECT_EQ(test, 0L, atomic_long_read(&item->work.data));
	KUNIT_EXPECT_PTR_EQ(test, NULL, item->work.serializer);
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_held(b));
	KUNIT_EXPECT_EQ(test, 1, mock_order_queue(&other, b, &item->work));
	mock_order_flush(&other);
	KUNIT_EXPECT_STREQ(test, "y", &mock->log.text[0]);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(b, &item->work));
	fairwq_batch_flush(b);
	KUNIT_EXPECT_FALSE(test, completion_done(&thread.done));
	complete_all(&gate->open);
	mock_thread_end(test, &thread);
	KUNIT_EXPECT_STREQ(test, "yyx", &mock->log.text[0]);
	mock_order_end(test, &other);
}

/* ---- all calls at once -------------------------------------------------- */

#define RACE_STEPS	64
#define RACE_ROUNDS	MOCK_MANY(4000)

/* Cancel the steps of this thread one after the other, and queue each again. */
static void race_produce(struct thread *thread)
{
	unsigned int i;
	u64 seq = 0;
	int ret;

	for (i = 0; i < RACE_ROUNDS; i++) {
		struct step *step = &thread->steps[i % RACE_STEPS];

		/* The number may only be written while no item reads it. */
		if (fairwq_work_cancel_sync(&step->work))
			atomic_inc(&thread->counts[1]);
		step->seq = ++seq;
		ret = mock_order_queue(&thread->order, thread->batch, &step->work);
		if (ret == 1)
			atomic_inc(&thread->counts[0]);
		else
			thread->ret = ret ?: thread->ret;
	}
}

/* Cancel and flush what the other threads have queued. */
static void race_disturb(struct thread *thread)
{
	unsigned int i;

	for (i = 0; i < RACE_ROUNDS; i++) {
		if (fairwq_work_cancel(&thread->steps[i * 7 % (2 * RACE_STEPS)].work))
			atomic_inc(&thread->counts[1]);
		if (i % 64 == 0)
			mock_order_flush(&thread->order);
		if (i % 512 == 0)
			atomic_add(fairwq_batch_cancel(thread->batch, NULL),
				   &thread->counts[1]);
	}
}

/* Each accepted item runs or is cancelled. The items run in order, one at a time. */
static void race_keeps_order_and_books(struct kunit *test)
{
	struct order order = order_new(test);
	struct track *track = mock_track_new(test, 1);
	struct thread *thread = kunit_kcalloc(test, 3, sizeof(*thread), GFP_KERNEL);
	struct step *steps = kunit_kcalloc(test, 2 * RACE_STEPS, sizeof(*steps), GFP_KERNEL);
	atomic_t counts[2] = { };
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, thread);
	KUNIT_ASSERT_NOT_NULL(test, steps);
	mock_pool(test, 4);
	for (i = 0; i < 2 * RACE_STEPS; i++) {
		fairwq_work_init(&steps[i].work, mock_step_fn);
		steps[i].track = track;
		steps[i].producer = i / RACE_STEPS;
	}
	for (i = 0; i < 3; i++) {
		thread[i].order = order;
		thread[i].batch = mock_batch(test, "r");
		thread[i].counts = counts;
		thread[i].steps = &steps[i % 2 * RACE_STEPS];
	}
	mock_thread_start(test, &thread[0], race_produce);
	mock_thread_start(test, &thread[1], race_produce);
	mock_thread_start(test, &thread[2], race_disturb);
	for (i = 0; i < 3; i++)
		mock_thread_end(test, &thread[i]);
	mock_order_destroy(&order);
	KUNIT_EXPECT_EQ(test, 0, thread[0].ret);
	KUNIT_EXPECT_EQ(test, 0, thread[1].ret);
	KUNIT_EXPECT_EQ(test, atomic_read(&counts[0]),
			atomic_read(&counts[1]) + atomic_read(&track->ran));
	mock_track_check(test, track);
	/* A burst gives back what it held at the end of its turn. */
	for (i = 0; i < 3; i++)
		mock_until(test, !mock_nr_held(thread[i].batch));
}

static struct kunit_case one_at_a_time_cases[] = {
	KUNIT_CASE_PARAM(next_starts_after_the_return, kind_gen_params),
	KUNIT_CASE_PARAM(order_holds_across_batches_and_pools, kind_gen_params),
	KUNIT_CASE_PARAM(cancel_of_a_waiting_item_keeps_the_order, kind_gen_params),
	KUNIT_CASE_PARAM(cancel_of_an_admitted_item_admits_the_next, kind_gen_params),
	KUNIT_CASE_PARAM(disposed_batch_is_released_after_its_items, kind_gen_params),
	KUNIT_CASE_PARAM(canceled_item_lets_the_batch_go, kind_gen_params),
	KUNIT_CASE_PARAM(item_queues_itself, kind_gen_params),
	KUNIT_CASE_PARAM(flush_waits_for_what_is_queued, kind_gen_params),
	KUNIT_CASE_PARAM(destroy_refuses_and_waits, kind_gen_params),
	KUNIT_CASE_PARAM(order_of_the_calls_is_kept, kind_gen_params),
	KUNIT_CASE_PARAM(order_of_each_producer_is_kept, kind_gen_params),
	KUNIT_CASE_PARAM(stack_does_not_grow_with_the_queue, kind_gen_params),
	KUNIT_CASE_PARAM(race_keeps_order_and_books, kind_gen_params),
	{}
};

static struct kunit_suite one_at_a_time_suite = {
	.name = "fairwq_one_at_a_time",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = one_at_a_time_cases,
};

kunit_test_suite(one_at_a_time_suite);

MODULE_DESCRIPTION("KUnit: items that go one at a time");
MODULE_LICENSE("GPL");
