// SPDX-License-Identifier: GPL-2.0
/*
 * Public interface: what each call returns, and what the function of a work may
 * do.
 */
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/timer.h>

#include "lib/fixture.h"

/* ---- bad input (promise 14) ------------------------------------------- */

/* Unknown or out-of-range pool attributes are refused. */
static void bad_pool_attrs_are_refused(struct kunit *test)
{
	struct fairwq_pool_attrs flag = { .flags = 1U << 31 };
	struct fairwq_pool_attrs active = { .max_active = FAIRWQ_MAX_ACTIVE + 1 };
	struct fairwq_pool_attrs policy = { .policy = 77 };

	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR(fairwq_pool_create(&flag, "x")));
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR(fairwq_pool_create(&active, "x")));
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR(fairwq_pool_create(&policy, "x")));
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR(fairwq_pool_create(NULL, NULL)));
}

/* Unknown or out-of-range batch attributes are refused. */
static void bad_batch_attrs_are_refused(struct kunit *test)
{
	struct fairwq_batch_attrs weight = { .weight = 20000 };
	struct fairwq_batch_attrs prio = { .prio = 9 };
	struct fairwq_batch_attrs active = { .max_active = FAIRWQ_MAX_ACTIVE + 1 };
	struct fairwq_batch_attrs queued = { .max_queued = UINT_MAX };
	struct mock *mock = test->priv;

	mock_pool(test, 1);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			PTR_ERR(fairwq_batch_create(mock->pool, &weight, "x")));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			PTR_ERR(fairwq_batch_create(mock->pool, &prio, "x")));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			PTR_ERR(fairwq_batch_create(mock->pool, &active, "x")));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			PTR_ERR(fairwq_batch_create(mock->pool, &queued, "x")));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			PTR_ERR(fairwq_batch_create(NULL, NULL, "x")));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			PTR_ERR(fairwq_batch_create(mock->pool, NULL, NULL)));
}

/* Refused are NULL, a weight of 0 or 20000, and a work without a function. */
static void bad_arguments_are_refused(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_item *item = mock_item(test, 'a');
	struct fairwq_work blank = { };
	struct fairwq_batch *a = mock_begin(test, 1);

	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_queue(NULL, &item->work));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_queue(a, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_queue(a, &blank));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_batch_set_weight(a, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_batch_set_weight(a, 20000));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_batch_set_weight(NULL, 100));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_pool_set_max_active(mock->pool, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fairwq_pool_set_max_active(mock->pool, FAIRWQ_MAX_ACTIVE + 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_pool_set_max_active(NULL, 1));
	KUNIT_EXPECT_NULL(test, fairwq_pool_default_batch(NULL, FAIRWQ_PRIO_HIGH));
	KUNIT_EXPECT_NULL(test, fairwq_pool_default_batch(mock->pool, 9));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&item->work));
	KUNIT_EXPECT_NULL(test, fairwq_batch_get(NULL));
	fairwq_batch_dispose(NULL);
	fairwq_batch_put(NULL);
	fairwq_pool_destroy(NULL);
}

/* ---- queueing (promises 1 and 3) -------------------------------------- */

/* A queue call that returns 1 runs the work once. While it is pending, a call returns 0. */
static void queued_runs_exactly_once(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_item *item = mock_item(test, 'x');
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_batch *b = mock_batch(test, "b");

	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&item->work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &item->work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_pending(&item->work));
	KUNIT_EXPECT_EQ(test, 0, fairwq_queue(a, &item->work));
	KUNIT_EXPECT_EQ(test, 0, fairwq_queue(b, &item->work));
	mock_queue(test, a, 'a', 2);
	mock_expect(test, "xaa");
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(b, &item->work));
	fairwq_pool_flush(mock->pool);
	mock_expect(test, "xaax");
}

/* There is one default batch per priority. */
static void default_batches_are_one_per_priority(struct kunit *test)
{
	struct mock *mock = test->priv;

	mock_pool(test, 1);
	KUNIT_EXPECT_EQ(test, 1, mock_pool_queue(mock->pool, &mock_item(test, 'n')->work));
	mock_queue(test, fairwq_pool_default_batch(mock->pool, FAIRWQ_PRIO_NORMAL), 'm', 1);
	mock_queue(test, fairwq_pool_default_batch(mock->pool, FAIRWQ_PRIO_HIGH), 'h', 1);
	mock_expect(test, "hnm");
}

static DEFINE_FAIRWQ_WORK(static_work, mock_item_fn);

/* DEFINE_FAIRWQ_WORK() sets the function, and the work is not pending. */
static void defined_work_has_its_function(struct kunit *test)
{
	KUNIT_EXPECT_PTR_EQ(test, (void *)mock_item_fn, (void *)static_work.func);
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&static_work));
}

struct pending_probe {
	struct fairwq_work work;
	struct completion done;
	bool pending_inside;
	int queue_inside;
	struct fairwq_batch *batch;
	unsigned int runs;
};

static void pending_probe_fn(struct fairwq_work *work)
{
	struct pending_probe *probe = container_of(work, struct pending_probe, work);

	if (!probe->runs++) {
		probe->pending_inside = fairwq_work_pending(work);
		probe->queue_inside = fairwq_queue(probe->batch, work);
		if (probe->queue_inside == 1)
			return;
	}
	complete(&probe->done);
}

/* A work is not pending any more when its function runs, which may queue it again. */
static void pending_is_cleared_before(struct kunit *test)
{
	struct pending_probe *probe = kunit_kzalloc(test, sizeof(*probe), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, probe);
	fairwq_work_init(&probe->work, pending_probe_fn);
	init_completion(&probe->done);
	probe->batch = mock_begin(test, 2);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(probe->batch, &probe->work));
	mock_await(test, &probe->done);
	KUNIT_EXPECT_FALSE(test, probe->pending_inside);
	KUNIT_EXPECT_EQ(test, 1, probe->queue_inside);
	KUNIT_EXPECT_EQ(test, 2U, probe->runs);
}

struct self_free {
	struct fairwq_work work;
	struct completion *done;
	atomic_t *left;
};

static void self_free_fn(struct fairwq_work *work)
{
	struct self_free *self = container_of(work, struct self_free, work);
	struct completion *done = self->done;
	atomic_t *left = self->left;

	memset(self, 0xa5, sizeof(*self));
	kfree(self);
	if (atomic_dec_and_test(left))
		complete(done);
}

/* A function may free its work. */
static void function_frees_its_work(struct kunit *test)
{
	DECLARE_COMPLETION_ONSTACK(done);
	atomic_t left = ATOMIC_INIT(1000);
	struct fairwq_batch *a = mock_begin(test, 2);
	struct self_free *self;
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		self = kzalloc(sizeof(*self), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, self);
		fairwq_work_init(&self->work, self_free_fn);
		self->done = &done;
		self->left = &left;
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &self->work));
	}
	mock_await(test, &done);
}

/* ---- any context (promise 2) ------------------------------------------ */

struct from_irq {
	struct irq_work irq_work;
	struct timer_list timer;
	struct fairwq_batch *batch;
	struct mock_item *item;
	struct completion done;
	bool was_hardirq, was_softirq;
	int ret;
};

static void from_hardirq_fn(struct irq_work *irq_work)
{
	struct from_irq *irq = container_of(irq_work, struct from_irq, irq_work);

	irq->was_hardirq = in_hardirq();
	irq->ret = fairwq_queue(irq->batch, &irq->item->work);
	complete(&irq->done);
}

static void from_softirq_fn(struct timer_list *timer)
{
	struct from_irq *irq = container_of(timer, struct from_irq, timer);

	irq->was_softirq = in_serving_softirq();
	irq->ret = fairwq_queue(irq->batch, &irq->item->work);
	complete(&irq->done);
}

static struct from_irq *from_irq(struct kunit *test)
{
	struct from_irq *irq = kunit_kzalloc(test, sizeof(*irq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, irq);
	irq->batch = mock_begin(test, 2);
	init_completion(&irq->done);
	irq->item = mock_item(test, 'i');
	return irq;
}

static void from_irq_expect(struct kunit *test, struct from_irq *irq)
{
	mock_await(test, &irq->done);
	KUNIT_EXPECT_EQ(test, 1, irq->ret);
	mock_expect(test, "i");
}

static void queue_call_works_from_hardirq(struct kunit *test)
{
	struct from_irq *irq = from_irq(test);

	irq->irq_work = IRQ_WORK_INIT_HARD(from_hardirq_fn);
	irq_work_queue(&irq->irq_work);
	from_irq_expect(test, irq);
	irq_work_sync(&irq->irq_work);
	KUNIT_EXPECT_TRUE(test, irq->was_hardirq);
}

static void queue_call_works_from_softirq(struct kunit *test)
{
	struct from_irq *irq = from_irq(test);

	timer_setup(&irq->timer, from_softirq_fn, 0);
	mod_timer(&irq->timer, jiffies + 1);	/* soon */
	from_irq_expect(test, irq);
	timer_delete_sync(&irq->timer);
	KUNIT_EXPECT_TRUE(test, irq->was_softirq);
}

static void queue_call_works_with_interrupts_off(struct kunit *test)
{
	struct from_irq *irq = from_irq(test);

	local_irq_disable();
	irq->ret = fairwq_queue(irq->batch, &irq->item->work);
	local_irq_enable();
	complete(&irq->done);
	from_irq_expect(test, irq);
}

static void queue_call_works_with_preemption_off(struct kunit *test)
{
	struct from_irq *irq = from_irq(test);

	preempt_disable();
	irq->ret = fairwq_queue(irq->batch, &irq->item->work);
	preempt_enable();
	complete(&irq->done);
	from_irq_expect(test, irq);
}

/* ---- not re-entrant (promise 4) --------------------------------------- */

/* A work that is queued to another batch while it runs does not start before its end. */
static void not_reentrant_across_batches(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_gate *gate = mock_gate_new(test);
	struct fairwq_batch *a = mock_begin(test, 4);
	struct fairwq_batch *b = mock_batch(test, "b");

	mock_gate_enter(test, a, gate);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(b, &gate->work));
	/* Queue behind the gate in b: when this item has run, the gate's turn has come. */
	mock_queue(test, b, 'b', 1);
	mock_until(test, READ_ONCE(mock->log.nr) == 1);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&gate->runs));
	KUNIT_EXPECT_TRUE(test, fairwq_work_pending(&gate->work));
	complete_all(&gate->open);
	fairwq_batch_flush(b);
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&gate->runs));
	KUNIT_EXPECT_EQ(test, 1ULL, mock_counter(mock->pool, FAIRWQ_PARKED));
}

/* A work that is queued to another pool while it runs does not start before its end. */
static void not_reentrant_across_pools(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_gate *gate = mock_gate_new(test);
	struct fairwq_pool *other;
	struct fairwq_batch *a = mock_begin(test, 4);

	other = fairwq_pool_create(NULL, "other");
	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	mock_gate_enter(test, a, gate);
	KUNIT_EXPECT_EQ(test, 1, mock_pool_queue(other, &gate->work));
	KUNIT_EXPECT_EQ(test, 1, mock_pool_queue(other, &mock_item(test, 'o')->work));
	mock_until(test, READ_ONCE(mock->log.nr) == 1);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&gate->runs));
	complete_all(&gate->open);
	fairwq_pool_flush(other);
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&gate->runs));
	fairwq_batch_flush(a);
	fairwq_pool_destroy(other);
}

struct recycled {
	struct mock_gate first;
	struct completion second_ran;
};

static void recycled_second_fn(struct fairwq_work *work)
{
	struct recycled *r = container_of(work, struct recycled, first.work);

	complete(&r->second_ran);
}

/* Initialize the memory of the running work for another function, and block. */
static void recycled_first_fn(struct fairwq_work *work)
{
	struct recycled *r = container_of(work, struct recycled, first.work);

	fairwq_work_init(work, recycled_second_fn);
	complete(&r->first.entered);
	wait_for_completion(&r->first.open);
}

/* A work that is initialized anew while its old function runs does not wait for that. */
static void recycled_work_runs_beside_the_old_one(struct kunit *test)
{
	struct recycled *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	struct fairwq_batch *a;

	KUNIT_ASSERT_NOT_NULL(test, r);
	mock_gate_init(&r->first);
	init_completion(&r->second_ran);
	fairwq_work_init(&r->first.work, recycled_first_fn);
	a = mock_begin(test, 4);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &r->first.work));
	mock_await(test, &r->first.entered);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &r->first.work));
	/* The old function still blocks, but this is another item. */
	mock_await(test, &r->second_ran);
	complete_all(&r->first.open);
	fairwq_batch_flush(a);
}

static void told_again_fn(struct fairwq_work *work)
{
	complete(&container_of(work, struct mock_gate, work)->entered);
}

/*
 * A caller may initialize a work anew after the function has completed it,
 * while the last lines of the function still run. No call for the new work
 * waits for these lines.
 */
static void new_work_in_old_memory_waits_for_nothing(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct fairwq_batch *a = mock_begin(test, 4);

	mock_gate_enter(test, a, gate);
	reinit_completion(&gate->entered);
	fairwq_work_init(&gate->work, told_again_fn);
	KUNIT_EXPECT_FALSE(test, fairwq_work_flush(&gate->work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &gate->work));
	mock_await(test, &gate->entered);
	KUNIT_EXPECT_FALSE(test, fairwq_work_cancel_sync(&gate->work));
	complete_all(&gate->open);
	fairwq_batch_flush(a);
}

/* ---- limits ----------------------------------------------------------- */

/*
 * A queue call that exceeds max_queued is refused, and leaves the work
 * untouched. When an item starts there is room again.
 */
static void max_queued_refuses(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_queued = 2 };
	struct mock_item *over = mock_item(test, 'x'), *first = mock_item(test, 'a');
	struct fairwq_batch *a = mock_begin_with(test, 1, &attrs);

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &first->work));
	mock_queue(test, a, 'b', 1);
	KUNIT_EXPECT_EQ(test, -EAGAIN, fairwq_queue(a, &over->work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&over->work));
	/* For a work that is pending the answer is 0, also if the batch is full. */
	KUNIT_EXPECT_EQ(test, 0, fairwq_queue(a, &first->work));
	mock_expect(test, "ab");
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &over->work));
	mock_expect(test, "abx");
}

/* With max_active 2, two items of a batch run, and the third one waits for an end. */
static void no_more_than_max_active_run(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_active = 2 };
	struct mock_gate *gate = kunit_kcalloc(test, 3, sizeof(*gate), GFP_KERNEL);
	struct mock *mock = test->priv;
	struct fairwq_batch *a, *b;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, gate);
	a = mock_begin_with(test, 5, &attrs);
	b = mock_batch(test, "b");
	for (i = 0; i < 3; i++) {
		mock_gate_init(&gate[i]);
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &gate[i].work));
	}
	mock_await(test, &gate[0].entered);
	mock_await(test, &gate[1].entered);
	/* Two runners are free: b's items run, a's third does not. */
	mock_queue(test, b, 'b', 2);
	mock_until(test, READ_ONCE(mock->log.nr) == 2);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&gate[2].runs));
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_eligible(mock->pool));
	complete_all(&gate[0].open);
	mock_await(test, &gate[2].entered);
	complete_all(&gate[1].open);
	complete_all(&gate[2].open);
	fairwq_batch_flush(a);
}

/* ---- waiting ---------------------------------------------------------- */

struct flusher {
	struct work_struct work;
	struct fairwq_batch *batch;
	struct fairwq_pool *pool;
	struct completion done;
};

static void flusher_fn(struct work_struct *work)
{
	struct flusher *f = container_of(work, struct flusher, work);

	if (f->batch)
		fairwq_batch_flush(f->batch);
	else
		fairwq_pool_drain(f->pool);
	complete(&f->done);
}

static struct flusher *flusher_start(struct kunit *test, struct workqueue_struct *wq,
				     struct fairwq_batch *batch)
{
	struct flusher *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct mock *mock = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, f);
	INIT_WORK(&f->work, flusher_fn);
	init_completion(&f->done);
	f->batch = batch;
	f->pool = mock->pool;
	queue_work(wq, &f->work);
	return f;
}

/* A flush waits for the items that run or are queued, and for no later ones. */
static void flush_waits_for_what_is_queued(struct kunit *test)
{
	struct workqueue_struct *wq = alloc_workqueue("mock", WQ_UNBOUND, 0);
	struct mock_gate *gate = kunit_kcalloc(test, 2, sizeof(*gate), GFP_KERNEL);
	struct fairwq_batch *a;
	struct flusher *f;

	KUNIT_ASSERT_NOT_NULL(test, wq);
	KUNIT_ASSERT_NOT_NULL(test, gate);
	mock_gate_init(&gate[0]);
	mock_gate_init(&gate[1]);
	a = mock_begin(test, 3);
	mock_gate_enter(test, a, &gate[0]);
	f = flusher_start(test, wq, a);
	/* When the color has changed, later items do not count for the flush. */
	mock_until(test, READ_ONCE(a->color) == 1);
	mock_gate_enter(test, a, &gate[1]);
	KUNIT_EXPECT_FALSE(test, completion_done(&f->done));
	complete_all(&gate[0].open);
	mock_await(test, &f->done);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&gate[1].runs));
	complete_all(&gate[1].open);
	fairwq_batch_flush(a);
	destroy_workqueue(wq);
}

/* When a flush returns, all items on all runners have ended. */
static void flush_has_seen_all_end(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 4);
	unsigned int round;

	for (round = 1; round <= 50; round++) {
		mock_queue(test, a, 'a', 20);
		fairwq_batch_flush(a);
		KUNIT_ASSERT_EQ(test, 20 * round, READ_ONCE(mock->log.nr));
	}
}

struct self_flush {
	struct fairwq_work work;
	struct fairwq_batch *batch;
	struct fairwq_pool *pool;
	struct completion done;
};

static void self_flush_fn(struct fairwq_work *work)
{
	struct self_flush *self = container_of(work, struct self_flush, work);

	if (self->batch)
		fairwq_batch_flush(self->batch);
	else
		fairwq_pool_drain(self->pool);
	complete(&self->done);
}

/* An item that flushes its own batch, or drains its own pool, gets a warning and returns. */
static void self_wait_warns(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct self_flush *self = kunit_kzalloc(test, sizeof(*self), GFP_KERNEL);
	struct fairwq_batch *a;

	KUNIT_ASSERT_NOT_NULL(test, self);
	a = mock_begin(test, 2);
	fairwq_work_init(&self->work, self_flush_fn);
	init_completion(&self->done);
	self->batch = a;
	self->pool = mock->pool;
	pr_info("# expect-splat begin would wait for itself in fairwq_batch_flush\n");
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &self->work));
	mock_await(test, &self->done);
	pr_info("# expect-splat end\n");
	fairwq_batch_flush(a);
	self->batch = NULL;
	reinit_completion(&self->done);
	pr_info("# expect-splat begin would wait for itself\n");
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &self->work));
	mock_await(test, &self->done);
	pr_info("# expect-splat end\n");
	fairwq_batch_flush(a);
}

struct chain {
	struct fairwq_work work;
	struct fairwq_batch *batch;
	unsigned int left;
	int last;
};

static void chain_fn(struct fairwq_work *work)
{
	struct chain *chain = container_of(work, struct chain, work);

	if (chain->left && chain->left--)
		chain->last = fairwq_queue(chain->batch, work);
}

/* During a drain, items of the pool may queue, and other callers are refused. */
static void drain_lets_only_items_queue(struct kunit *test)
{
	struct workqueue_struct *wq = alloc_workqueue("mock", WQ_UNBOUND, 0);
	struct mock *mock = test->priv;
	struct chain *chain = kunit_kzalloc(test, sizeof(*chain), GFP_KERNEL);
	struct mock_item *item = mock_item(test, 'i');
	struct fairwq_batch *a;
	struct flusher *f;

	KUNIT_ASSERT_NOT_NULL(test, wq);
	KUNIT_ASSERT_NOT_NULL(test, chain);
	a = mock_begin(test, 1);
	fairwq_work_init(&chain->work, chain_fn);
	chain->batch = a;
	chain->left = 20;
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &chain->work));
	f = flusher_start(test, wq, NULL);
	mock_until(test, READ_ONCE(mock->pool->draining));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_queue(a, &item->work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&item->work));
	mock_open(test);
	mock_await(test, &f->done);
	KUNIT_EXPECT_EQ(test, 0U, chain->left);
	KUNIT_EXPECT_EQ(test, 1, chain->last);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &item->work));
	fairwq_batch_flush(a);
	destroy_workqueue(wq);
}

/* fairwq_pool_destroy() runs all queued items, also those of a paused batch. */
static void destroy_runs_what_was_accepted(struct kunit *test)
{
	struct fairwq_pool *pool = fairwq_pool_create(NULL, "other");
	struct mock *mock = test->priv;
	struct mock_item *late = mock_item(test, 'x');
	struct fairwq_batch *a, *b;

	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	a = fairwq_batch_create(pool, NULL, "a");
	b = fairwq_batch_create(pool, NULL, "b");
	KUNIT_ASSERT_FALSE(test, IS_ERR(a));
	KUNIT_ASSERT_FALSE(test, IS_ERR(b));
	fairwq_batch_pause(b);
	mock_queue(test, a, 'a', 100);
	mock_queue(test, b, 'b', 100);
	fairwq_pool_destroy(pool);
	KUNIT_EXPECT_EQ(test, 200U, mock->log.nr);
	/* A reference to a batch may outlive the pool. */
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_queue(a, &late->work));
	KUNIT_EXPECT_EQ(test, 0, fairwq_batch_set_weight(a, 5));
	fairwq_batch_pause(a);
	fairwq_batch_resume(a);
	fairwq_batch_flush(a);
	fairwq_batch_dispose(a);
	fairwq_batch_put(b);
}

/* ---- the dump of a batch in debugfs ----------------------------------- */

#define DUMP_ITEMS	300
#define DUMP_SIZE	65536

static unsigned int count_lines(const char *text, const char *word)
{
	unsigned int nr = 0;

	for (text = strstr(text, word); text; text = strstr(text + 1, word))
		nr++;
	return nr;
}

/* A dump has a line for each queued item, in their order, and for the one that runs. */
static void dump_lists_every_item(struct kunit *test)
{
	struct mock_gate *last = mock_gate_new(test);
	char *text = kunit_kzalloc(test, DUMP_SIZE, GFP_KERNEL);
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	KUNIT_ASSERT_NOT_NULL(test, text);
	a = mock_begin(test, 1);
	complete_all(&last->open);
	mock_queue(test, a, 'a', DUMP_ITEMS);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &last->work));
	KUNIT_EXPECT_LT(test, mock_dump(a, text, DUMP_SIZE), (size_t)DUMP_SIZE);
	KUNIT_EXPECT_EQ(test, count_lines(text, " queued "), DUMP_ITEMS + 1);
	KUNIT_EXPECT_EQ(test, count_lines(text, "mock_item_fn"), DUMP_ITEMS);
	/* The gate was queued last, so it is the last line. */
	KUNIT_ASSERT_NOT_NULL(test, strstr(text, "mock_gate_fn"));
	KUNIT_EXPECT_NULL(test, strstr(strstr(text, "mock_gate_fn"), "mock_item_fn"));
	memset(text, 0, DUMP_SIZE);
	mock_dump(mock->gate_batch, text, DUMP_SIZE);
	KUNIT_EXPECT_EQ(test, count_lines(text, " running "), 1U);
	KUNIT_EXPECT_EQ(test, count_lines(text, "mock_gate_fn"), 1U);
	mock_open(test);
	fairwq_batch_flush(a);
}

/* Cancel all items of the batch after the first chunk of a dump. */
static void dump_cancels(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point == FAIRWQ_POINT_DUMP_CHUNK)
		fairwq_batch_cancel(batch, NULL);
}

/* A dump ends with its first chunk if a cancel takes the other items meanwhile. */
static void dump_survives_a_cancel_meanwhile(struct kunit *test)
{
	char *text = kunit_kzalloc(test, DUMP_SIZE, GFP_KERNEL);
	struct fairwq_batch *a;

	KUNIT_ASSERT_NOT_NULL(test, text);
	a = mock_begin(test, 1);
	mock_queue(test, a, 'a', DUMP_ITEMS);
	fairwq_test_set_hook(dump_cancels);
	mock_dump(a, text, DUMP_SIZE);
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_EQ(test, count_lines(text, " queued "), 0U + FAIRWQ_DUMP_CHUNK);
	mock_queue(test, a, 'b', 1);
	mock_expect(test, "b");
}

/* ---- measured waits ----------------------------------------------------- */

#define NR_WORKS	1600
#define NR_TICKS	64

/* One wait in 16 is measured: of many works at once, and of one work in the course of time. */
static void one_wait_in_16_is_measured(struct kunit *test)
{
	struct fairwq_work *work = kunit_kcalloc(test, NR_WORKS, sizeof(*work), GFP_KERNEL);
	struct fairwq_batch *a = mock_begin(test, 1);
	struct mock_bound bound = mock_bound(MOCK_WAIT_MS);
	unsigned int i, many = 0, one = 0;

	KUNIT_ASSERT_NOT_NULL(test, work);
	for (i = 0; i < NR_WORKS; i++) {
		fairwq_work_init(&work[i], mock_nothing_fn);
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &work[i]));
		many += !!fairwq_stamp_ns(work[i].stamp);
	}
	fairwq_batch_cancel(a, NULL);
	/* On a busy machine any ticks are met, so the right one may take a few more. */
	for (i = 0; i < NR_TICKS || (!one && !mock_bound_reached(&bound)); i++) {
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, work));
		one += !!fairwq_stamp_ns(work->stamp);
		fairwq_work_cancel(work);
		schedule_timeout_uninterruptible(1);
	}
	KUNIT_EXPECT_GE(test, many, NR_WORKS / 16U / 4);
	KUNIT_EXPECT_LE(test, many, NR_WORKS / 16U * 4);
	KUNIT_EXPECT_GE(test, one, 1U);
	KUNIT_EXPECT_LE(test, one, NR_TICKS / 16U * 4);
}

static struct kunit_case api_cases[] = {
	KUNIT_CASE(bad_pool_attrs_are_refused),
	KUNIT_CASE(bad_batch_attrs_are_refused),
	KUNIT_CASE(bad_arguments_are_refused),
	KUNIT_CASE(queued_runs_exactly_once),
	KUNIT_CASE(default_batches_are_one_per_priority),
	KUNIT_CASE(defined_work_has_its_function),
	KUNIT_CASE(pending_is_cleared_before),
	KUNIT_CASE(function_frees_its_work),
	KUNIT_CASE(queue_call_works_from_hardirq),
	KUNIT_CASE(queue_call_works_from_softirq),
	KUNIT_CASE(queue_call_works_with_interrupts_off),
	KUNIT_CASE(queue_call_works_with_preemption_off),
	KUNIT_CASE(not_reentrant_across_batches),
	KUNIT_CASE(not_reentrant_across_pools),
	KUNIT_CASE(recycled_work_runs_beside_the_old_one),
	KUNIT_CASE(new_work_in_old_memory_waits_for_nothing),
	KUNIT_CASE(max_queued_refuses),
	KUNIT_CASE(no_more_than_max_active_run),
	KUNIT_CASE(flush_waits_for_what_is_queued),
	KUNIT_CASE(flush_has_seen_all_end),
	KUNIT_CASE(self_wait_warns),
	KUNIT_CASE(drain_lets_only_items_queue),
	KUNIT_CASE(destroy_runs_what_was_accepted),
	KUNIT_CASE(dump_lists_every_item),
	KUNIT_CASE(dump_survives_a_cancel_meanwhile),
	KUNIT_CASE(one_wait_in_16_is_measured),
	{}
};

static struct kunit_suite api_suite = {
	.name = "fairwq_queue",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = api_cases,
};

kunit_test_suite(api_suite);

MODULE_DESCRIPTION("KUnit: the public interface");
MODULE_LICENSE("GPL");
