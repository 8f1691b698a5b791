// SPDX-License-Identifier: GPL-2.0
/*
 * Sections that may block: while items wait in them, other items run, however
 * many wait. The items count how many of them run at once.
 */
#include <linux/atomic.h>

#include "lib/fixture.h"
#include "lib/look.h"

/* State that the items of a case share. */
static struct {
	atomic_t inside, most, waiting;	/* items that run; largest value of that; that wait */
	struct completion go;		/* ends all waits */
} hall;

/* An item that may wait in a section. */
struct block_item {
	struct fairwq_work work;
	struct completion done;
	unsigned int depth;		/* sections around its wait; 0: it does not wait */
	bool leaves;			/* returns without the end of one section */
	u64 slept;			/* ns in the section */
};

/* Count an item that runs. */
static void enter(void)
{
	int inside = atomic_inc_return(&hall.inside), most = atomic_read(&hall.most);

	while (inside > most && !atomic_try_cmpxchg(&hall.most, &most, inside))
		;
}

static void leave(void)
{
	atomic_dec(&hall.inside);
}

static void wait_in_section(struct block_item *item)
{
	unsigned int i;
	u64 from;

	leave();
	for (i = 0; i < item->depth; i++)
		fairwq_block_begin();
	from = ktime_get_ns();
	atomic_inc(&hall.waiting);
	mock_wait(&hall.go);
	atomic_dec(&hall.waiting);
	item->slept = ktime_get_ns() - from;
	for (i = item->leaves; i < item->depth; i++)
		fairwq_block_end();
	enter();
}

static void block_item_fn(struct fairwq_work *work)
{
	struct block_item *item = container_of(work, struct block_item, work);

	enter();
	if (item->depth)
		wait_in_section(item);
	leave();
	complete(&item->done);
}

static struct block_item *block_item(struct kunit *test, unsigned int depth)
{
	struct block_item *item = kunit_kzalloc(test, sizeof(*item), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, item);
	fairwq_work_init(&item->work, block_item_fn);
	init_completion(&item->done);
	item->depth = depth;
	return item;
}

static struct block_item *queue_item(struct kunit *test, struct fairwq_batch *batch,
				     unsigned int depth)
{
	struct block_item *item = block_item(test, depth);

	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &item->work));
	return item;
}

/* Make a pool with its gate open, and reset @hall. Return: the batch "a". */
static struct fairwq_batch *begin(struct kunit *test, unsigned int max_active)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	mock->max_in_flight = FAIRWQ_MAX_ACTIVE;
	a = mock_begin(test, max_active);
	memset(&hall, 0, sizeof(hall));
	init_completion(&hall.go);
	mock_open(test);
	return a;
}

static unsigned int nr_runners(struct fairwq_pool *pool)
{
	return READ_ONCE(pool->crew.nr_runners);
}

/* ---- the limit of active runners ---------------------------------------- */

#define MANY	40

/* With max_active of 1, an item runs behind 40 items that wait in a section. */
static void items_may_wait_for_a_later_one(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, 1);
	struct mock *mock = test->priv;
	struct block_item *waits[MANY], *later;
	unsigned int i;

	for (i = 0; i < MANY; i++)
		waits[i] = queue_item(test, a, 1);
	mock_until(test, atomic_read(&hall.waiting) == MANY);
	later = queue_item(test, a, 0);
	mock_await(test, &later->done);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&hall.most));
	KUNIT_EXPECT_GE(test, nr_runners(mock->pool), MANY + 1U);
	complete_all(&hall.go);
	for (i = 0; i < MANY; i++)
		mock_await(test, &waits[i]->done);
}

/* Items run beside items that wait. After these have come back, max_active holds again. */
static void places_are_as_many_as_ever(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, 2);
	struct block_item *waits[5], *last = NULL;
	unsigned int i;

	for (i = 0; i < 5; i++)
		waits[i] = queue_item(test, a, 1);
	mock_until(test, atomic_read(&hall.waiting) == 5);
	for (i = 0; i < 1000; i++)
		last = queue_item(test, a, 0);
	mock_await(test, &last->done);
	complete_all(&hall.go);
	for (i = 0; i < 5; i++)
		mock_await(test, &waits[i]->done);
	fairwq_batch_flush(a);
	/* Runners that came out of a section count again, as all others do. */
	for (i = 0; i < 100; i++)
		last = queue_item(test, a, 0);
	atomic_set(&hall.most, 0);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_LE(test, atomic_read(&hall.most), 2);
}

/* Sections nest, and only the outermost one counts. */
static void sections_nest(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, 1);
	struct block_item *waits = queue_item(test, a, 3), *later;

	mock_until(test, atomic_read(&hall.waiting) == 1);
	later = queue_item(test, a, 0);
	mock_await(test, &later->done);
	complete_all(&hall.go);
	mock_await(test, &waits->done);
	fairwq_batch_flush(a);
	atomic_set(&hall.most, 0);
	queue_item(test, a, 0);
	queue_item(test, a, 0);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&hall.most));
}

/* Outside an item a section has no effect, and is allowed with interrupts off. */
static void elsewhere_a_section_is_nothing(struct kunit *test)
{
	unsigned long flags;

	fairwq_block_begin();
	fairwq_block_end();
	local_irq_save(flags);
	fairwq_block_begin();
	fairwq_block_end();
	local_irq_restore(flags);
}

static struct {
	struct fairwq_work work;
	bool off;
} ending;

static void ending_fn(struct fairwq_work *work)
{
	unsigned long flags;

	fairwq_block_begin();
	local_irq_save(flags);
	fairwq_block_end();
	ending.off = irqs_disabled();
	local_irq_restore(flags);
}

/* The end of a section leaves interrupts as they are. */
static void section_may_end_with_interrupts_off(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, 1);

	ending.off = false;
	fairwq_work_init(&ending.work, ending_fn);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &ending.work));
	fairwq_batch_flush(a);
	KUNIT_EXPECT_TRUE(test, ending.off);
}

/* A work of a workqueue that frees itself, and then asks what it is. */
struct gone {
	struct work_struct work;
	struct fairwq_work **current_work;
	struct completion *done;
};

static void gone_fn(struct work_struct *work)
{
	struct gone *gone = container_of(work, struct gone, work);
	struct fairwq_work **current_work = gone->current_work;
	struct completion *done = gone->done;

	kfree(gone);
	fairwq_block_begin();
	*current_work = fairwq_current_work();
	fairwq_block_end();
	complete(done);
}

/*
 * It is no item. With KASAN this also sees a look at the work; but in user-mode
 * Linux the kernel's own call for such a look is seen, too.
 */
static void work_that_frees_itself_is_no_item(struct kunit *test)
{
	struct gone *gone = kzalloc(sizeof(*gone), GFP_KERNEL);
	struct fairwq_work *current_work = &ending.work;
	DECLARE_COMPLETION_ONSTACK(done);

	if (IS_ENABLED(CONFIG_UML) && IS_ENABLED(CONFIG_KASAN)) {
		kfree(gone);
		kunit_skip(test, "the kernel looks by an instrumented load");
	}
	KUNIT_ASSERT_NOT_NULL(test, gone);
	gone->current_work = &current_work;
	gone->done = &done;
	INIT_WORK(&gone->work, gone_fn);
	schedule_work(&gone->work);
	wait_for_completion(&done);
	KUNIT_EXPECT_NULL(test, current_work);
}

/* A section that an item does not end is reported, and ends when the item returns. */
static void section_that_does_not_end_is_reported(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, 1);
	struct mock *mock = test->priv;
	struct block_item *item = block_item(test, 2);

	item->leaves = true;
	pr_info("# expect-splat begin has not ended a section that may block\n");
	mock_may_refuse(fairwq_queue(a, &item->work));
	mock_until(test, atomic_read(&hall.waiting) == 1);
	complete_all(&hall.go);
	mock_await(test, &item->done);
	fairwq_batch_flush(a);
	pr_info("# expect-splat end\n");
	/* The end of the section is accounted: no runner is active. */
	mock_until(test, !mock_nr_begun(mock->pool));
	queue_item(test, a, 0);
	fairwq_batch_flush(a);
}

/* ---- batches, flushes and costs ------------------------------------------ */

/* An item in a section still counts in max_active of its batch. */
static void batch_of_one_stays_one(struct kunit *test)
{
	const struct fairwq_batch_attrs one = { .max_active = 1 };
	struct fairwq_batch *a = begin(test, 2), *b;
	struct block_item *waits, *behind, *beside;

	b = mock_batch_with(test, "one", &one);
	waits = queue_item(test, b, 1);
	mock_until(test, atomic_read(&hall.waiting) == 1);
	behind = queue_item(test, b, 0);
	beside = queue_item(test, a, 0);
	mock_await(test, &beside->done);
	KUNIT_EXPECT_FALSE(test, completion_done(&behind->done));
	complete_all(&hall.go);
	mock_await(test, &behind->done);
	mock_await(test, &waits->done);
}

/* An item in a section runs: a cancel fails, and a flush waits for it. */
static void flush_waits_for_an_item_that_waits(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, 1);
	struct block_item *item = queue_item(test, a, 1);

	mock_until(test, atomic_read(&hall.waiting) == 1);
	KUNIT_EXPECT_FALSE(test, fairwq_work_cancel(&item->work));
	complete_all(&hall.go);
	fairwq_work_flush(&item->work);
	KUNIT_EXPECT_TRUE(test, completion_done(&item->done));
}

/*
 * An item is not charged for the time that it spends in a section. However long
 * the host stops the guest: what it is charged and what it spends there cannot
 * be more than all.
 */
static void item_does_not_pay_for_its_section(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a;
	struct block_item *item;
	u64 began, all, charged;

	mock->max_in_flight = FAIRWQ_MAX_ACTIVE;
	a = mock_begin_by(test, 1, FAIRWQ_FAIR_TIME);
	memset(&hall, 0, sizeof(hall));
	init_completion(&hall.go);
	mock_open(test);
	fairwq_pool_flush(mock->pool);
	charged = READ_ONCE(a->node.service);
	began = ktime_get_ns();
	item = queue_item(test, a, 1);
	mock_until(test, atomic_read(&hall.waiting) == 1);
	msleep(50);		/* or longer */
	complete_all(&hall.go);
	mock_await(test, &item->done);
	fairwq_batch_flush(a);
	all = ktime_get_ns() - began;
	charged = READ_ONCE(a->node.service) - charged;
	KUNIT_EXPECT_GT(test, item->slept, 40ULL * NSEC_PER_MSEC);
	KUNIT_EXPECT_LE(test, charged, all - item->slept);
}

/* ---- runners ----------------------------------------------------------- */

#define HOUR	(3600UL * HZ)	/* longer than any case takes */

/* Runners that were added for items in sections are freed once they are idle. */
static void spares_go_when_they_are_idle(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, 2);
	struct mock *mock = test->priv;
	unsigned int i, round;

	for (round = 0; round < 3; round++) {
		atomic_set(&hall.waiting, 0);
		reinit_completion(&hall.go);
		for (i = 0; i < MANY; i++)
			queue_item(test, a, 1);
		mock_until(test, atomic_read(&hall.waiting) == MANY);
		fairwq_pool_shrink(mock->pool, 0);	/* frees idle runners, if there are any */
		KUNIT_EXPECT_GE(test, nr_runners(mock->pool), (unsigned int)MANY);
		complete_all(&hall.go);
		fairwq_batch_flush(a);
		mock_until(test, !mock_nr_begun(mock->pool));
		fairwq_pool_shrink(mock->pool, HOUR);
		KUNIT_EXPECT_GE(test, nr_runners(mock->pool), (unsigned int)MANY);
		fairwq_pool_shrink(mock->pool, 0);
		KUNIT_EXPECT_EQ(test, 2U, nr_runners(mock->pool));
		/* The runners that are left still work. */
		queue_item(test, a, 0);
		fairwq_batch_flush(a);
	}
}

/* The last idle runner stays, because all others may wait in sections. */
static void last_idle_runner_stays(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, 1);
	struct mock *mock = test->priv;
	struct block_item *later;

	queue_item(test, a, 1);
	mock_until(test, atomic_read(&hall.waiting) == 1);
	fairwq_pool_shrink(mock->pool, 0);
	later = queue_item(test, a, 0);
	mock_await(test, &later->done);
	/* The section ends by itself after the time that the case waits for @later. */
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&hall.waiting));
	complete_all(&hall.go);
	fairwq_batch_flush(a);
}

/* Let the items that run look as if they had begun @ticks earlier, and none of them hung. */
static void make_long(struct fairwq_pool *pool, unsigned long ticks)
{
	struct fairwq_runner *runner;

	fairwq_set_hung_ms(pool, 0);
	raw_spin_lock_irq(&pool->lock);
	list_for_each_entry(runner, &pool->crew.runners, node)
		runner->started -= ticks;
	raw_spin_unlock_irq(&pool->lock);
}

/* The idle time of a runner begins at the end of its item, however long that took. */
static void spare_is_kept_after_a_long_item(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, 1);
	struct mock *mock = test->priv;
	unsigned int i;

	for (i = 0; i < MANY; i++)
		queue_item(test, a, 1);
	mock_until(test, atomic_read(&hall.waiting) == MANY);
	make_long(mock->pool, 2 * HOUR);
	complete_all(&hall.go);
	fairwq_batch_flush(a);
	mock_until(test, !mock_nr_begun(mock->pool));
	fairwq_pool_shrink(mock->pool, HOUR);
	KUNIT_EXPECT_GE(test, nr_runners(mock->pool), (unsigned int)MANY);
	make_long(mock->pool, 2 * HOUR);
	fairwq_pool_shrink(mock->pool, HOUR);
	KUNIT_EXPECT_EQ(test, 1U, nr_runners(mock->pool));
}

/* An item and its task that wait for each other, so two runners must run them. */
static struct {
	struct completion mine, other;
	bool met;
} meeting;

static void meet(struct fairwq_task *self)
{
	meeting.met = mock_wait(&meeting.mine);
	complete(&meeting.other);
}

struct joining_item {
	struct fairwq_work work;
	struct completion done;
};

static void join_in_section(struct fairwq_work *work)
{
	struct joining_item *item = container_of(work, struct joining_item, work);
	struct fairwq_task self, task;

	fairwq_task_here(&self);
	fairwq_task_init(&task, meet);
	fairwq_fork(&self, &task);
	fairwq_block_begin();
	complete(&meeting.mine);
	mock_fork_until(&self, &meeting.other);
	fairwq_join(&self, &task);
	fairwq_block_end();
	complete(&item->done);
}

/* A join inside a section does not lower nr_active again. */
static void join_in_a_section_gives_no_second_place(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, 2);
	struct mock *mock = test->priv;
	struct joining_item item;

	init_completion(&meeting.mine);
	init_completion(&meeting.other);
	init_completion(&item.done);
	fairwq_work_init_onstack(&item.work, join_in_section);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &item.work));
	mock_await(test, &item.done);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_TRUE(test, meeting.met);
	mock_until(test, !mock_nr_begun(mock->pool));
}

static struct kunit_case block_cases[] = {
	KUNIT_CASE(items_may_wait_for_a_later_one),
	KUNIT_CASE(places_are_as_many_as_ever),
	KUNIT_CASE(sections_nest),
	KUNIT_CASE(elsewhere_a_section_is_nothing),
	KUNIT_CASE(section_may_end_with_interrupts_off),
	KUNIT_CASE(work_that_frees_itself_is_no_item),
	KUNIT_CASE(section_that_does_not_end_is_reported),
	KUNIT_CASE(batch_of_one_stays_one),
	KUNIT_CASE(flush_waits_for_an_item_that_waits),
	KUNIT_CASE(item_does_not_pay_for_its_section),
	KUNIT_CASE(spares_go_when_they_are_idle),
	KUNIT_CASE(last_idle_runner_stays),
	KUNIT_CASE(spare_is_kept_after_a_long_item),
	KUNIT_CASE(join_in_a_section_gives_no_second_place),
	{ }
};

static struct kunit_suite block_suite = {
	.name = "fairwq_block",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = block_cases,
};

kunit_test_suite(block_suite);

MODULE_DESCRIPTION("KUnit: items that wait for long");
MODULE_LICENSE("GPL");
