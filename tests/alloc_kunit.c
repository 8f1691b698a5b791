// SPDX-License-Identifier: GPL-2.0
/*
 * Failing allocations: each allocation of a call fails once, one at a time, if
 * it is from the slab or of two pages and more.
 *
 * The call must return -ENOMEM or do without the memory. It must leave nothing
 * behind, and change nothing that existed before. Calls that promise to need no
 * memory get none at all.
 *
 * Needs CONFIG_FAILSLAB, and for objects as large as a runner
 * CONFIG_FAIL_PAGE_ALLOC. init.sh sets up both. Then allocations fail only in
 * tasks that ask for it, also if they may sleep. kmemleak finds leaks after all
 * modules were unloaded.
 */
#include <linux/sched.h>

#include "lib/fixture.h"

#define MOST		200	/* more than any call makes */
#define RUNNERS		4

/* The fixture, and the objects that a call has made. */
struct mock_alloc {
	struct mock mock;		/* test->priv */
	struct fairwq_pool_attrs pool_attrs;
	struct fairwq_batch_attrs batch_attrs;
	struct fairwq_pool *pool;	/* a second pool, beside the one with the gate */
	struct fairwq_batch *parent;
	struct fairwq_batch *batch;
	struct fairwq_flows *flows;
	struct mock_item *item;
	int err;			/* of the call */
};

/*
 * A call under test. No allocation fails in @ready and @undo.
 *
 * If a call succeeds although an allocation failed, the step is repeated up to
 * @again times. The failed allocation may be a large page that the slab can do
 * without. After that the slab has memory, so the same number fails an
 * allocation of the call itself.
 */
struct call {
	void (*ready)(struct kunit *test, struct mock_alloc *mock);
	void (*make)(struct mock_alloc *mock);
	void (*undo)(struct kunit *test, struct mock_alloc *mock);
	unsigned int again;
};

struct tally {
	unsigned int failed;		/* allocations */
	unsigned int calls;
	unsigned int refused;		/* calls that returned -ENOMEM */
};

static struct mock_alloc *mock_of(struct kunit *test)
{
	return container_of((struct mock *)test->priv, struct mock_alloc, mock);
}

/* ---- failing ---------------------------------------------------------- */

#ifdef CONFIG_FAILSLAB
/*
 * Let the @nth allocation of this task from now on fail.
 *
 * Return: the rest of the previous count, which is 0 if that allocation has
 * failed.
 */
static unsigned int fail_nth(unsigned int nth)
{
	unsigned int left = READ_ONCE(current->fail_nth);

	WRITE_ONCE(current->fail_nth, nth);
	return left;
}

/* Let every allocation of this task fail from now on, or none if @fail is false. */
static void fail_all(bool fail)
{
	current->make_it_fail = fail;
}
#else
static unsigned int fail_nth(unsigned int nth)
{
	return 0;
}

static void fail_all(bool fail)
{
}
#endif

static bool gets_memory(void)
{
	void *memory = kmalloc(16, GFP_KERNEL);

	kfree(memory);
	return memory;
}

/* Check that failslab fails the allocations that it is told to fail, and no other. */
static bool fails_as_told(void)
{
	bool got_first, got_any, got_later;

	fail_nth(1);
	got_first = gets_memory();
	fail_nth(0);
	fail_all(true);
	got_any = gets_memory();
	fail_all(false);
	got_later = gets_memory();
	return !got_first && !got_any && got_later;
}

/* Return the number of live batches, after those of earlier cases were freed. */
static long live_batches(void)
{
	mock_wait_released();
	return fairwq_test_live_batches();
}

/* Make the call, whose @nth allocation fails. Return: true if it made that many. */
static bool step(struct kunit *test, const struct call *call, unsigned int nth,
		 struct tally *tally)
{
	struct mock_alloc *mock = mock_of(test);
	unsigned int left, try = 0;

	do {
		if (call->ready)
			call->ready(test, mock);
		fail_nth(nth);
		call->make(mock);
		left = fail_nth(0);
		tally->calls++;
		if (mock->err) {
			KUNIT_EXPECT_EQ(test, -ENOMEM, mock->err);
			KUNIT_EXPECT_EQ(test, 0U, left);
			tally->refused++;
			try = call->again;
		}
		call->undo(test, mock);
	} while (!left && try++ < call->again);
	return !left;
}

/*
 * Make the call with another failing allocation each time, until none is left.
 * Then check that all batches of the calls are gone. Return: the counts.
 */
static struct tally walk(struct kunit *test, const struct call *call)
{
	long live = live_batches();
	struct tally tally = { };
	unsigned int nth;

	if (!IS_ENABLED(CONFIG_FAILSLAB))
		kunit_skip(test, "a kernel without CONFIG_FAILSLAB");
	for (nth = 1; nth < MOST && step(test, call, nth, &tally); nth++)
		tally.failed++;
	KUNIT_EXPECT_GT(test, MOST, nth);
	mock_open(test);
	mock_until(test, live_batches() == live);
	kunit_info(test, "%u allocations failed, and %u calls\n", tally.failed, tally.refused);
	return tally;
}

/* ---- calls ------------------------------------------------------------ */

static void make_pool(struct mock_alloc *mock)
{
	mock->pool = fairwq_pool_create(&mock->pool_attrs, "alloc-%s", "pool");
	mock->err = PTR_ERR_OR_ZERO(mock->pool);
}

static void undo_pool(struct kunit *test, struct mock_alloc *mock)
{
	if (!mock->err)
		fairwq_pool_destroy(mock->pool);
	mock->pool = NULL;
}

static const struct call call_pool = { .make = make_pool, .undo = undo_pool };

/* Make a new owner for each call, so that the call makes its first child. */
static void ready_parent(struct kunit *test, struct mock_alloc *mock)
{
	mock->parent = mock_own_batch(test, "owner", NULL);
	mock->batch_attrs.parent = mock->parent;
}

static void make_batch(struct mock_alloc *mock)
{
	mock->batch = fairwq_batch_create(mock->mock.pool, &mock->batch_attrs, "b-%d", 1);
	mock->err = PTR_ERR_OR_ZERO(mock->batch);
}

static void undo_batch(struct kunit *test, struct mock_alloc *mock)
{
	if (!mock->err)
		fairwq_batch_dispose(mock->batch);
}

/* Check that the owner runs items, also if its first child was not made. */
static void undo_child(struct kunit *test, struct mock_alloc *mock)
{
	undo_batch(test, mock);
	mock_queue(test, mock->parent, 'p', 1);
	fairwq_batch_dispose(mock->parent);
}

static const struct call call_batch = {
	.make = make_batch, .undo = undo_batch, .again = 2,
};

static const struct call call_child = {
	.ready = ready_parent, .make = make_batch, .undo = undo_child, .again = 2,
};

static void make_flows(struct mock_alloc *mock)
{
	mock->flows = fairwq_flows_create(mock->mock.pool, NULL);
	mock->err = PTR_ERR_OR_ZERO(mock->flows);
}

static void undo_flows(struct kunit *test, struct mock_alloc *mock)
{
	if (!mock->err)
		fairwq_flows_destroy(mock->flows);
}

static const struct call call_flows = {
	.make = make_flows, .undo = undo_flows, .again = 2,
};

static void ready_flow(struct kunit *test, struct mock_alloc *mock)
{
	make_flows(mock);
	KUNIT_ASSERT_EQ(test, 0, mock->err);
	mock->item = mock_item(test, 'f');
}

static void make_flow(struct mock_alloc *mock)
{
	int queued = fairwq_flows_queue(mock->flows, 7, &mock->item->work);

	mock->err = queued == 1 ? 0 : queued;
}

/* Check that the item has run, whatever could not be allocated. */
static void undo_flow(struct kunit *test, struct mock_alloc *mock)
{
	KUNIT_EXPECT_EQ(test, 0, mock->err);
	fairwq_flows_destroy(mock->flows);
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&mock->item->work));
}

static const struct call call_flow = {
	.ready = ready_flow, .make = make_flow, .undo = undo_flow, .again = 2,
};

/* ---- cases ------------------------------------------------------------ */

/* A pool is refused without its name, its workqueue, a runner, or a default batch. */
static void pool_is_refused(struct kunit *test)
{
	struct mock_alloc *mock = mock_of(test);

	mock->pool_attrs.max_active = RUNNERS;
	KUNIT_EXPECT_LE(test, 3U + 9U + RUNNERS, walk(test, &call_pool).refused);
}

/* A pool with FAIRWQ_MEM_RECLAIM is also refused without its rescuer, which is a thread. */
static void pool_with_rescuer_is_refused(struct kunit *test)
{
	struct mock_alloc *mock = mock_of(test);

	mock->pool_attrs.max_active = RUNNERS;
	mock->pool_attrs.flags = FAIRWQ_MEM_RECLAIM;
	KUNIT_EXPECT_LE(test, 3U + 9U + RUNNERS + 1U, walk(test, &call_pool).refused);
}

/* A batch is refused without its statistics or its name. */
static void batch_is_refused(struct kunit *test)
{
	mock_pool(test, 1);
	KUNIT_EXPECT_LE(test, 3U, walk(test, &call_batch).refused);
}

/* A batch below an owner is also refused without the node of the owner's group. */
static void batch_of_an_owner_is_refused(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct tally tally;

	mock_pool(test, 1);
	tally = walk(test, &call_child);
	KUNIT_EXPECT_LE(test, 4U, tally.refused);
	KUNIT_EXPECT_EQ(test, tally.calls, mock->log.nr);
}

/* Flows are refused without their shared batch. */
static void flows_are_refused(struct kunit *test)
{
	mock_pool(test, 1);
	mock_open(test);
	KUNIT_EXPECT_LE(test, 4U, walk(test, &call_flows).refused);
}

/* An item runs also if there is no memory for its flow, the batch of that, or the name. */
static void flow_is_done_without(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct tally tally;

	mock_pool(test, 1);
	mock_open(test);
	tally = walk(test, &call_flow);
	KUNIT_EXPECT_LE(test, 4U, tally.failed);
	KUNIT_EXPECT_EQ(test, 0U, tally.refused);
	KUNIT_EXPECT_EQ(test, tally.calls, mock->log.nr);
	KUNIT_EXPECT_LE(test, 4ULL, (u64)atomic64_read(&mock->pool->tally.flow_fallbacks));
}

/* Make the calls that need no memory. Return: true if all succeeded. */
static bool do_without_memory(struct mock *mock, struct fairwq_batch *batch,
			      struct fairwq_serializer *serializer,
			      struct fairwq_serializer *limiter, struct mock_item *item[5])
{
	bool ok;

	fairwq_batch_pause(batch);
	ok = fairwq_queue(batch, &item[0]->work) == 1;
	fairwq_serializer_init(serializer);
	fairwq_limiter_init(limiter, 1);
	ok &= fairwq_serializer_queue(serializer, batch, &item[1]->work) == 1;
	ok &= fairwq_serializer_queue(serializer, batch, &item[2]->work) == 1;
	ok &= fairwq_serializer_queue(limiter, batch, &item[3]->work) == 1;
	ok &= fairwq_serializer_queue(limiter, batch, &item[4]->work) == 1;
	ok &= !fairwq_batch_set_weight(batch, 7);
	ok &= fairwq_work_cancel(&item[2]->work);
	ok &= fairwq_serializer_queue(serializer, batch, &item[2]->work) == 1;
	fairwq_batch_resume(batch);
	ok &= !fairwq_pool_set_max_active(mock->pool, 1);
	complete_all(&mock->gate.open);
	fairwq_batch_flush(batch);
	fairwq_serializer_destroy(serializer);
	fairwq_serializer_destroy(limiter);
	fairwq_batch_dispose(batch);
	return ok;
}

/* Queueing, ordering, cancelling, waiting and destroying need no memory (promise 2). */
static void no_memory_is_needed(struct kunit *test)
{
	struct fairwq_serializer *serializer;
	struct mock *mock = test->priv;
	struct fairwq_serializer *limiter;
	struct mock_item *item[5];
	struct fairwq_batch *batch;
	unsigned int i;
	bool ok;

	mock_pool(test, 2);
	batch = mock_own_batch(test, "a", NULL);
	serializer = kunit_kzalloc(test, sizeof(*serializer), GFP_KERNEL);
	limiter = kunit_kzalloc(test, sizeof(*limiter), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, serializer && limiter);
	for (i = 0; i < ARRAY_SIZE(item); i++)
		item[i] = mock_item(test, 'a' + i);
	fail_all(true);
	ok = do_without_memory(mock, batch, serializer, limiter, item);
	fail_all(false);
	KUNIT_EXPECT_TRUE(test, ok);
	KUNIT_EXPECT_EQ(test, 5U, mock->log.nr);
}

static int alloc_init(struct kunit *test)
{
	struct mock_alloc *mock = kunit_kzalloc(test, sizeof(*mock), GFP_KERNEL);

	if (!mock)
		return -ENOMEM;
	mock_setup(&mock->mock);
	test->priv = &mock->mock;
	if (IS_ENABLED(CONFIG_FAILSLAB))
		KUNIT_ASSERT_TRUE_MSG(test, fails_as_told(),
				      "failslab does not do what it is told");
	return 0;
}

static struct kunit_case alloc_cases[] = {
	KUNIT_CASE(pool_is_refused),
	KUNIT_CASE(pool_with_rescuer_is_refused),
	KUNIT_CASE(batch_is_refused),
	KUNIT_CASE(batch_of_an_owner_is_refused),
	KUNIT_CASE(flows_are_refused),
	KUNIT_CASE(flow_is_done_without),
	KUNIT_CASE(no_memory_is_needed),
	{ }
};

static struct kunit_suite alloc_suite = {
	.name = "fairwq_alloc",
	.init = alloc_init,
	.exit = mock_exit,
	.test_cases = alloc_cases,
};

kunit_test_suite(alloc_suite);

MODULE_DESCRIPTION("KUnit: failing allocations");
MODULE_LICENSE("GPL");
