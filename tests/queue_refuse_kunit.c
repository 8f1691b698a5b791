// SPDX-License-Identifier: GPL-2.0
/*
 * Refused queue calls: which reason comes first, and that error pointers do no
 * harm (promises 3 and 14).
 */
#include <linux/jiffies.h>

#include "lib/client.h"

#define LATER	(3600 * HZ)	/* longer than any case takes */

/* Make a batch and dispose of it. The caller must put the reference that it gets. */
static struct fairwq_batch *disposed_batch(struct kunit *test)
{
	struct fairwq_batch *batch = mock_own_batch(test, "disposed", NULL);

	fairwq_batch_get(batch);
	fairwq_batch_dispose(batch);
	return batch;
}

static void plain_fn(struct fairwq_work *work)
{
}

/* ---- the order of the reasons ------------------------------------------- */

static void pending_comes_before_disposed(struct kunit *test)
{
	struct mock_item *item = mock_item(test, 'x'), *other = mock_item(test, 'y');
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_batch *dead;

	dead = disposed_batch(test);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &item->work));
	KUNIT_EXPECT_EQ(test, 0, fairwq_queue(dead, &item->work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_pending(&item->work));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_queue(dead, &other->work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&other->work));
	/* After a cancel the work is not pending, so it is refused. */
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&item->work));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_queue(dead, &item->work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &item->work));
	mock_expect(test, "x");
	fairwq_batch_put(dead);
}

static void pending_delay_comes_before_disposed(struct kunit *test)
{
	struct fairwq_delayed_work *dwork = kunit_kzalloc(test, sizeof(*dwork), GFP_KERNEL);
	struct fairwq_batch *a, *dead;

	KUNIT_ASSERT_NOT_NULL(test, dwork);
	fairwq_delayed_work_init(dwork, plain_fn);
	a = mock_begin(test, 1);
	dead = disposed_batch(test);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_queue_delayed(dead, dwork, LATER));
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue_delayed(a, dwork, LATER));
	KUNIT_EXPECT_EQ(test, 0, fairwq_queue_delayed(dead, dwork, LATER));
	KUNIT_EXPECT_EQ(test, 0, fairwq_queue_delayed(dead, dwork, 0));
	/* Not 1, which would mean that the delay was changed. */
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_mod_delayed(dead, dwork, 0));
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_cancel_sync(dwork));
	fairwq_batch_put(dead);
}

static void pending_grace_period_comes_before_disposed(struct kunit *test)
{
	struct fairwq_rcu_work *rwork = kunit_kzalloc(test, sizeof(*rwork), GFP_KERNEL);
	struct fairwq_batch *a, *dead;

	KUNIT_ASSERT_NOT_NULL(test, rwork);
	fairwq_rcu_work_init(rwork, plain_fn);
	a = mock_begin(test, 1);
	dead = disposed_batch(test);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_queue_rcu(dead, rwork));
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue_rcu(a, rwork));
	KUNIT_EXPECT_EQ(test, 0, fairwq_queue_rcu(dead, rwork));
	KUNIT_EXPECT_EQ(test, 0, fairwq_queue(dead, &rwork->work));
	mock_open(test);
	fairwq_rcu_work_flush(rwork);
	fairwq_batch_put(dead);
}

static void pending_in_a_serializer_comes_before_disposed(struct kunit *test)
{
	struct mock_item *item = mock_item(test, 'x'), *other = mock_item(test, 'y');
	struct fairwq_serializer serializer, dead_serializer;
	struct fairwq_serializer limiter, dead_limiter;
	struct fairwq_batch *a, *dead;

	fairwq_serializer_init(&serializer);
	fairwq_serializer_init(&dead_serializer);
	fairwq_serializer_destroy(&dead_serializer);
	fairwq_limiter_init(&limiter, 1);
	fairwq_limiter_init(&dead_limiter, 1);
	fairwq_serializer_destroy(&dead_limiter);
	a = mock_begin(test, 1);
	dead = disposed_batch(test);
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&serializer, a, &item->work));
	KUNIT_EXPECT_EQ(test, 0, fairwq_serializer_queue(&serializer, dead, &item->work));
	KUNIT_EXPECT_EQ(test, 0, fairwq_serializer_queue(&dead_serializer, a, &item->work));
	KUNIT_EXPECT_EQ(test, 0, fairwq_serializer_queue(&dead_serializer, dead, &item->work));
	KUNIT_EXPECT_EQ(test, 0, fairwq_serializer_queue(&limiter, dead, &item->work));
	KUNIT_EXPECT_EQ(test, 0, fairwq_serializer_queue(&dead_limiter, a, &item->work));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN,
			fairwq_serializer_queue(&dead_serializer, a, &other->work));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_serializer_queue(&dead_limiter, a, &other->work));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_serializer_queue(&serializer, dead,
								  &other->work));
	mock_expect(test, "x");
	fairwq_serializer_destroy(&serializer);
	fairwq_serializer_destroy(&limiter);
	fairwq_batch_put(dead);
}

/* A disposed batch is the first reason, then a full one, then a disabled work. */
static void reasons_come_in_order(struct kunit *test)
{
	const struct fairwq_batch_attrs attrs = { .max_queued = 1 };
	struct mock_item *item = mock_item(test, 'x'), *other = mock_item(test, 'y');
	struct fairwq_batch *a, *dead;

	a = mock_begin_with(test, 1, &attrs);
	dead = disposed_batch(test);
	fairwq_work_disable(&other->work);
	KUNIT_EXPECT_EQ(test, -ECANCELED, fairwq_queue(a, &other->work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &item->work));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fairwq_queue(a, &other->work));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_queue(dead, &other->work));
	/* For a pending work the answer is 0, also if the batch is full or disposed. */
	KUNIT_EXPECT_EQ(test, 0, fairwq_queue(a, &item->work));
	KUNIT_EXPECT_EQ(test, 0, fairwq_queue(dead, &item->work));
	mock_expect(test, "x");
	fairwq_batch_put(dead);
}

/* For fairwq_mod_delayed(), too, a disposed batch comes before a disabled work. */
static void reasons_come_in_order_for_a_delay(struct kunit *test)
{
	struct fairwq_delayed_work *dwork = kunit_kzalloc(test, sizeof(*dwork), GFP_KERNEL);
	struct fairwq_batch *a, *dead;

	KUNIT_ASSERT_NOT_NULL(test, dwork);
	fairwq_delayed_work_init(dwork, plain_fn);
	a = mock_begin(test, 1);
	dead = disposed_batch(test);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_mod_delayed(dead, dwork, 1));
	fairwq_work_disable(&dwork->work);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_mod_delayed(dead, dwork, 1));
	KUNIT_EXPECT_EQ(test, -ECANCELED, fairwq_mod_delayed(a, dwork, 1));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_queue_delayed(dead, dwork, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_mod_delayed(NULL, dwork, 1));
	fairwq_batch_put(dead);
}

/*
 * A queue call on another CPU has claimed the work, and will find that it is
 * disabled. The work looks pending, but does not run, so 0 would be wrong.
 */
static void disabled_while_it_is_claimed(struct kunit *test)
{
	const struct fairwq_batch_attrs attrs = { .max_queued = 1 };
	struct mock_item *item = mock_item(test, 'x'), *other = mock_item(test, 'y');
	struct fairwq_batch *a = mock_begin(test, 1), *dead, *full;

	full = mock_batch_with(test, "full", &attrs);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(full, &item->work));
	dead = disposed_batch(test);
	atomic_long_set(&other->work.data, fairwq_word(a, FAIRWQ_STATE_QUEUED));
	WRITE_ONCE(other->work.disabled, 1);
	KUNIT_EXPECT_EQ(test, -ECANCELED, fairwq_queue(a, &other->work));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_queue(dead, &other->work));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fairwq_queue(full, &other->work));
	atomic_long_set(&other->work.data, 0);
	WRITE_ONCE(other->work.disabled, 0);
	mock_expect(test, "x");
	fairwq_batch_put(dead);
}

/* ---- error pointers ------------------------------------------------------ */

/* Each function that takes a batch, a pool or flows refuses or ignores an error pointer. */
static void error_pointers_are_refused(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .parent = ERR_PTR(-ENOMEM) };
	struct fairwq_batch *batch = ERR_PTR(-ENOMEM);
	struct fairwq_flows *flows = ERR_PTR(-ENOMEM);
	struct fairwq_pool *pool = ERR_PTR(-ENOMEM);
	struct mock_item *item = mock_item(test, 'x');
	struct fairwq_work *work = &item->work;
	struct fairwq_serializer serializer;
	struct fairwq_delayed_work *dwork = kunit_kzalloc(test, sizeof(*dwork), GFP_KERNEL);
	struct fairwq_rcu_work *rwork = kunit_kzalloc(test, sizeof(*rwork), GFP_KERNEL);
	struct fairwq_serializer limiter;
	struct mock *mock = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, dwork);
	KUNIT_ASSERT_NOT_NULL(test, rwork);
	fairwq_serializer_init(&serializer);
	fairwq_limiter_init(&limiter, 1);
	fairwq_delayed_work_init(dwork, plain_fn);
	fairwq_rcu_work_init(rwork, plain_fn);
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_queue(batch, work));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_queue_delayed(batch, dwork, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_queue_delayed(batch, dwork, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_mod_delayed(batch, dwork, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_queue_rcu(batch, rwork));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_serializer_queue(&serializer, batch, work));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_serializer_queue(&limiter, batch, work));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_serializer_queue(&limiter, batch, work));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_batch_set_weight(batch, 1));
	KUNIT_EXPECT_EQ(test, 0U, fairwq_batch_nr_queued(batch));
	KUNIT_EXPECT_PTR_EQ(test, batch, fairwq_batch_get(batch));
	fairwq_batch_put(batch);
	fairwq_batch_dispose(batch);
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_flows_queue(flows, 1, work));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_flows_set_idle_ms(flows, 1));
	KUNIT_EXPECT_EQ(test, 0ULL, fairwq_flows_fallbacks(flows));
	fairwq_flows_destroy(flows);
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_pool_set_max_active(pool, 1));
	KUNIT_EXPECT_NULL(test, fairwq_pool_default_batch(pool, FAIRWQ_PRIO_NORMAL));
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR(fairwq_batch_create(pool, NULL, "a")));
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR(fairwq_flows_create(pool, NULL)));
	fairwq_pool_destroy(pool);
	mock_pool(test, 1);
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR(fairwq_batch_create(mock->pool, &attrs, "a")));
}

/*
 * Functions that cannot return an error warn, as for NULL. They warn once, so
 * no other case may call them with an error pointer.
 */
static void error_pointers_are_warned_of(struct kunit *test)
{
	struct fairwq_batch *batch = ERR_PTR(-ENOMEM);
	struct fairwq_pool *pool = ERR_PTR(-ENOMEM);

	pr_info("# expect-splat begin WARNING\n");
	fairwq_batch_pause(batch);
	fairwq_batch_resume(batch);
	fairwq_batch_flush(batch);
	fairwq_pool_flush(pool);
	fairwq_pool_drain(pool);
	KUNIT_EXPECT_EQ(test, 0UL, fairwq_batch_cancel(batch, NULL));
	KUNIT_EXPECT_FALSE(test, fairwq_rcu_work_flush(NULL));
	fairwq_sequencer_init(NULL);
	pr_info("# expect-splat end\n");
}

/* ---- names ------------------------------------------------------------- */

static void names_are_one_line(struct kunit *test)
{
	struct fairwq_pool *pool = fairwq_pool_create(NULL, "pool\n%s", "a\tb\x7f");
	struct fairwq_batch *batch;

	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	KUNIT_EXPECT_STREQ(test, "pool?a?b?", pool->name);
	batch = fairwq_batch_create(pool, NULL, "x\r\n<0>y\x1b %s", "gr\xc3\xbcn");
	if (!IS_ERR(batch)) {
		KUNIT_EXPECT_STREQ(test, "x??<0>y? gr\xc3\xbcn", batch->name);
		fairwq_batch_dispose(batch);
	}
	fairwq_pool_destroy(pool);
}

/* ---- a serializer that could not be destroyed ---------------------------- */

/* An item that destroys the serializer that it was queued to. */
struct self_destroyer {
	struct fairwq_work work;
	struct fairwq_serializer *serializer;
	struct completion done;
};

static void self_destroyer_fn(struct fairwq_work *work)
{
	struct self_destroyer *self = container_of(work, struct self_destroyer, work);

	fairwq_serializer_destroy(self->serializer);
	complete(&self->done);
}

static struct self_destroyer *self_destroyer(struct kunit *test)
{
	struct self_destroyer *self = kunit_kzalloc(test, sizeof(*self), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, self);
	fairwq_work_init(&self->work, self_destroyer_fn);
	init_completion(&self->done);
	return self;
}

/* A serializer that an item of its own tries to destroy still works. */
static void undestroyed_serializer_still_works(struct kunit *test)
{
	struct mock_item *behind = mock_item(test, 'b'), *later = mock_item(test, 'c');
	struct self_destroyer *self = self_destroyer(test);
	struct fairwq_serializer serializer;
	struct fairwq_batch *a;

	fairwq_serializer_init(&serializer);
	self->serializer = &serializer;
	a = mock_begin(test, 1);
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&serializer, a, &self->work));
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&serializer, a, &behind->work));
	pr_info("# expect-splat begin would wait for itself\n");
	mock_open(test);
	mock_await(test, &self->done);
	pr_info("# expect-splat end\n");
	KUNIT_EXPECT_EQ(test, 1, fairwq_serializer_queue(&serializer, a, &later->work));
	mock_expect(test, "bc");
	fairwq_serializer_destroy(&serializer);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_serializer_queue(&serializer, a, &later->work));
}

/* An item that drops what waits behind it, while another call comes. */
static struct self_dropper {
	struct fairwq_work work;
	struct fairwq_serializer serializer;
	struct completion entered, begin, dropping, go_on, done;
	int ret;
} dropper;

static void stay_in_dropped(struct fairwq_work *work)
{
	complete(&dropper.dropping);
	wait_for_completion(&dropper.go_on);
}

static void self_dropper_fn(struct fairwq_work *work)
{
	complete(&dropper.entered);
	wait_for_completion(&dropper.begin);
	dropper.ret = fairwq_serializer_shutdown(&dropper.serializer, FAIRWQ_DROP_REST,
						 stay_in_dropped);
	complete(&dropper.done);
}

static void call_flush(void *serializer)
{
	fairwq_serializer_flush(serializer);
}

static void call_destroy(void *serializer)
{
	fairwq_serializer_destroy(serializer);
}

static void call_drop(void *serializer)
{
	mock_may_refuse(fairwq_serializer_shutdown(serializer, FAIRWQ_DROP_REST,
						   stay_in_dropped));
}

/* Begin an item that will drop, and queue one behind it. Return: their batch. */
static struct fairwq_batch *dropper_begin(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);

	fairwq_serializer_init(&dropper.serializer);
	fairwq_work_init(&dropper.work, self_dropper_fn);
	init_completion(&dropper.entered);
	init_completion(&dropper.begin);
	init_completion(&dropper.dropping);
	init_completion(&dropper.go_on);
	init_completion(&dropper.done);
	mock_open(test);
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&dropper.serializer, a, &dropper.work));
	mock_await(test, &dropper.entered);
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&dropper.serializer, a,
							 &mock_item(test, 'b')->work));
	return a;
}

/*
 * Let an item drop what waits behind it, and @fn wait for the serializer
 * meanwhile. So the item is not the last. Return: what a queue call returns
 * after that.
 */
static int fail_to_drop(struct kunit *test, void (*fn)(void *serializer))
{
	struct fairwq_batch *a = dropper_begin(test);
	struct mock_item *later = mock_item(test, 'c');
	struct caller *caller;
	int ret;

	complete(&dropper.begin);
	mock_await(test, &dropper.dropping);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN,
			fairwq_serializer_queue(&dropper.serializer, a, &later->work));
	caller = mock_caller(test, fn, &dropper.serializer);
	mock_until(test, !list_empty_careful(&dropper.serializer.waiting));
	/* undestroyed_serializer_still_works() has seen the warning, which comes once. */
	complete(&dropper.go_on);
	mock_await(test, &dropper.done);
	KUNIT_EXPECT_EQ(test, -EDEADLK, dropper.ret);
	mock_caller_end(test, caller);
	ret = fairwq_serializer_queue(&dropper.serializer, a, &later->work);
	fairwq_serializer_flush(&dropper.serializer);
	fairwq_serializer_destroy(&dropper.serializer);
	return ret;
}

/* If a call that ends a serializer fails, items are refused no longer than before. */
static void failed_drop_refuses_no_more(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 1, fail_to_drop(test, call_flush));
}

/* It does not undo another call that ends the serializer. */
static void failed_drop_undoes_no_destroy(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fail_to_drop(test, call_destroy));
}

/* An item is not the last while another call drops, which needs the serializer until its end. */
static void item_is_not_the_last_beside_another_drop(struct kunit *test)
{
	struct caller *caller;

	dropper_begin(test);
	caller = mock_caller(test, call_drop, &dropper.serializer);
	mock_await(test, &dropper.dropping);
	/* As above, the warning comes once. */
	complete(&dropper.begin);
	mock_await(test, &dropper.done);
	KUNIT_EXPECT_EQ(test, -EDEADLK, dropper.ret);
	complete(&dropper.go_on);
	mock_caller_end(test, caller);
}

/* An item that would end its serializer in a task, which is too deep for its stack. */
static struct {
	struct fairwq_work work;
	struct fairwq_serializer serial;
	struct task_struct *by;
	bool elsewhere;
	int ret;
	struct completion done;
} deep;

struct deep_task {
	struct fairwq_task task;
	unsigned int depth;
};

static void deep_fn(struct fairwq_task *self)
{
	struct deep_task *own = container_of(self, struct deep_task, task), next;

	if (current != deep.by) {
		deep.elsewhere = true;
		deep.ret = fairwq_serializer_shutdown(&deep.serial, FAIRWQ_RUN_REST, NULL);
	} else if (own->depth) {
		next.depth = own->depth - 1;
		fairwq_task_init(&next.task, deep_fn);
		fairwq_fork(self, &next.task);
		fairwq_join(self, &next.task);
	}
}

static void deep_work_fn(struct fairwq_work *work)
{
	struct deep_task top = { .depth = 1000 };
	struct fairwq_task self;

	deep.by = current;
	fairwq_task_here(&self);
	fairwq_task_init(&top.task, deep_fn);
	fairwq_fork(&self, &top.task);
	fairwq_join(&self, &top.task);
	complete(&deep.done);
}

/* Such a task ends nothing, because its worker does not hold the lockdep map. */
static void task_on_another_stack_ends_no_serializer(struct kunit *test)
{
	const struct fairwq_batch_attrs one = { .max_active = 1 };	/* so no task is stolen */
	struct fairwq_batch *a;

	mock_pool(test, 1);
	mock_open(test);
	a = mock_batch_with(test, "one", &one);
	deep.elsewhere = false;
	init_completion(&deep.done);
	fairwq_serializer_init(&deep.serial);
	fairwq_work_init(&deep.work, deep_work_fn);
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&deep.serial, a, &deep.work));
	/* As above, the warning comes once. */
	mock_await(test, &deep.done);
	KUNIT_EXPECT_TRUE(test, deep.elsewhere);
	KUNIT_EXPECT_EQ(test, -EDEADLK, deep.ret);
	fairwq_batch_flush(a);
	fairwq_serializer_destroy(&deep.serial);
}

static struct kunit_case refuse_cases[] = {
	KUNIT_CASE(pending_comes_before_disposed),
	KUNIT_CASE(pending_delay_comes_before_disposed),
	KUNIT_CASE(pending_grace_period_comes_before_disposed),
	KUNIT_CASE(pending_in_a_serializer_comes_before_disposed),
	KUNIT_CASE(reasons_come_in_order),
	KUNIT_CASE(reasons_come_in_order_for_a_delay),
	KUNIT_CASE(disabled_while_it_is_claimed),
	KUNIT_CASE(names_are_one_line),
	KUNIT_CASE(undestroyed_serializer_still_works),
	KUNIT_CASE(failed_drop_refuses_no_more),
	KUNIT_CASE(failed_drop_undoes_no_destroy),
	KUNIT_CASE(item_is_not_the_last_beside_another_drop),
	KUNIT_CASE(task_on_another_stack_ends_no_serializer),
	KUNIT_CASE(error_pointers_are_refused),
	KUNIT_CASE(error_pointers_are_warned_of),
	{}
};

static struct kunit_suite refuse_suite = {
	.name = "fairwq_queue_refuse",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = refuse_cases,
};

kunit_test_suite(refuse_suite);

MODULE_DESCRIPTION("KUnit: queue calls that are refused");
MODULE_LICENSE("GPL");
