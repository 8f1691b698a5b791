// SPDX-License-Identifier: GPL-2.0
/*
 * Counterparts of workqueue calls (promises 3 and 11): is a work pending or
 * running, and the item that the caller is in.
 */
#include "lib/hook.h"
#include "lib/order.h"

/* ---- pending or running ------------------------------------------------ */

static void work_is_busy_while_pending_and_while_running(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct fairwq_work *work = &gate->work;
	struct fairwq_batch *a = mock_begin(test, 2);

	KUNIT_EXPECT_EQ(test, 0U, fairwq_work_busy(work));
	fairwq_batch_pause(a);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, work));
	KUNIT_EXPECT_EQ(test, FAIRWQ_BUSY_PENDING, fairwq_work_busy(work));
	fairwq_batch_resume(a);
	mock_await(test, &gate->entered);
	KUNIT_EXPECT_EQ(test, FAIRWQ_BUSY_RUNNING, fairwq_work_busy(work));
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, work));
	KUNIT_EXPECT_EQ(test, FAIRWQ_BUSY_PENDING | FAIRWQ_BUSY_RUNNING,
			fairwq_work_busy(work));
	complete_all(&gate->open);
	mock_until(test, !fairwq_work_busy(work));
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&gate->runs));
}

/* A work that a serializer keeps back is pending. After fairwq_work_init() a work is idle. */
static void busy_while_it_is_kept_back(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct order order = mock_order_new(test, false);
	struct mock_gate *gate = mock_order_gate(test, &order, a);
	struct mock_item *item = mock_order_item(test, &order, a, 'x');

	KUNIT_EXPECT_EQ(test, FAIRWQ_BUSY_RUNNING, fairwq_work_busy(&gate->work));
	KUNIT_EXPECT_EQ(test, FAIRWQ_BUSY_PENDING, fairwq_work_busy(&item->work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&item->work));
	KUNIT_EXPECT_EQ(test, 0U, fairwq_work_busy(&item->work));
	complete_all(&gate->open);
	mock_order_end(test, &order);
	fairwq_work_init(&gate->work, mock_gate_fn);
	KUNIT_EXPECT_EQ(test, 0U, fairwq_work_busy(&gate->work));
}

/* ---- the item that the caller is in ------------------------------------ */

/* The answers of fairwq_current_work() in an item, in an interrupt on top, and in tasks. */
struct asking {
	struct fairwq_work work;
	struct work_struct plain;	/* for a plain workqueue */
	struct fairwq_work *in_function, *in_irq, *in_task[2];
	struct fairwq_task task[2];
	struct completion begun[2], done;
	bool timed_out;
};

static void ask_in_irq(void *data)
{
	struct asking *asking = data;

	asking->in_irq = fairwq_current_work();
}

static void asking_fn(struct fairwq_work *work)
{
	struct asking *asking = container_of(work, struct asking, work);

	asking->in_irq = work;
	mock_call_on_top(ask_in_irq, asking);
	asking->in_function = fairwq_current_work();
	complete(&asking->done);
}

static struct asking *asking_new(struct kunit *test, fairwq_func_t func)
{
	struct asking *asking = kunit_kzalloc(test, sizeof(*asking), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, asking);
	fairwq_work_init(&asking->work, func);
	init_completion(&asking->begun[0]);
	init_completion(&asking->begun[1]);
	init_completion(&asking->done);
	return asking;
}

static void current_work_is_the_item(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct asking *asking = asking_new(test, asking_fn);

	KUNIT_EXPECT_NULL(test, fairwq_current_work());
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &asking->work));
	mock_await(test, &asking->done);
	KUNIT_EXPECT_PTR_EQ(test, &asking->work, asking->in_function);
	KUNIT_EXPECT_NULL(test, asking->in_irq);
	fairwq_batch_flush(a);
}

static void plain_fn(struct work_struct *work)
{
	struct asking *asking = container_of(work, struct asking, plain);

	asking->in_function = fairwq_current_work();
}

/* In a work of a plain workqueue, fairwq_current_work() returns NULL. */
static void current_work_of_another_workqueue(struct kunit *test)
{
	struct asking *asking = asking_new(test, asking_fn);

	asking->in_function = &asking->work;
	INIT_WORK(&asking->plain, plain_fn);
	queue_work(system_unbound_wq, &asking->plain);
	flush_work(&asking->plain);
	KUNIT_EXPECT_NULL(test, asking->in_function);
}

/* Wait until another runner has begun task @nr, which @self has forked. */
static void await_begun(struct asking *asking, struct fairwq_task *self, unsigned int nr)
{
	if (!mock_fork_until(self, &asking->begun[nr]))
		asking->timed_out = true;
}

static void inner_task_fn(struct fairwq_task *self)
{
	struct asking *asking = container_of(self, struct asking, task[1]);

	asking->in_task[1] = fairwq_current_work();
	complete(&asking->begun[1]);
}

static void outer_task_fn(struct fairwq_task *self)
{
	struct asking *asking = container_of(self, struct asking, task[0]);

	complete(&asking->begun[0]);
	fairwq_task_init(&asking->task[1], inner_task_fn);
	fairwq_fork(self, &asking->task[1]);
	await_begun(asking, self, 1);
	fairwq_join(self, &asking->task[1]);
	asking->in_task[0] = fairwq_current_work();
}

static void forking_fn(struct fairwq_work *work)
{
	struct asking *asking = container_of(work, struct asking, work);
	struct fairwq_task self;

	fairwq_task_here(&self);
	fairwq_task_init(&asking->task[0], outer_task_fn);
	fairwq_fork(&self, &asking->task[0]);
	await_begun(asking, &self, 0);
	fairwq_join(&self, &asking->task[0]);
	asking->in_function = fairwq_current_work();
	complete(&asking->done);
}

/* In a task the current work is that of the item, also if other runners have stolen it. */
static void current_work_of_a_task(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct asking *asking = asking_new(test, forking_fn);
	struct fairwq_batch *a = mock_begin(test, 3);

	mock_free_runners(test);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &asking->work));
	mock_await(test, &asking->done);
	KUNIT_EXPECT_FALSE(test, asking->timed_out);
	KUNIT_EXPECT_PTR_EQ(test, &asking->work, asking->in_task[1]);
	KUNIT_EXPECT_PTR_EQ(test, &asking->work, asking->in_task[0]);
	KUNIT_EXPECT_PTR_EQ(test, &asking->work, asking->in_function);
	KUNIT_EXPECT_GE(test, mock_counter(mock->pool, FAIRWQ_STOLEN), 2ULL);
	fairwq_batch_flush(a);
}

/* ---- bad input ----------------------------------------------------------- */

/* A message names the module. It is logged once: no suite that runs before may pass NULL. */
static void log_lines_name_the_module(struct kunit *test)
{
	struct mock_item *item = mock_item(test, 'x');

	pr_info("# expect-splat begin fairwq: fairwq_queue: invalid argument: batch is NULL or an error\n");
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_queue(NULL, &item->work));
	pr_info("# expect-splat end\n");
}

static struct kunit_case namesakes_cases[] = {
	KUNIT_CASE(work_is_busy_while_pending_and_while_running),
	KUNIT_CASE(busy_while_it_is_kept_back),
	KUNIT_CASE(current_work_is_the_item),
	KUNIT_CASE(current_work_of_another_workqueue),
	KUNIT_CASE(current_work_of_a_task),
	KUNIT_CASE(log_lines_name_the_module),
	{}
};

static struct kunit_suite namesakes_suite = {
	.name = "fairwq_namesakes",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = namesakes_cases,
};

kunit_test_suite(namesakes_suite);

MODULE_DESCRIPTION("KUnit: calls that drivers know from workqueues");
MODULE_LICENSE("GPL");
