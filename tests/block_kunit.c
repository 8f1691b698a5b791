// SPDX-License-Identifier: GPL-2.0
/*
 * Sections that may block: while items wait in them, other items run, however
 * many wait. The items count how many of them run at once. An item that sleeps
 * gives its seat up by itself. So items compute in their sections, and no tick
 * of the pool helps.
 */
#include <linux/atomic.h>

#include "lib/fixture.h"
#include "lib/look.h"

/* State that the items of a case share. */
static struct {
	atomic_t inside, most, waiting;	/* items that run; largest value of that; that wait */
	struct completion go, end;	/* ends all waits; lets those end that go on */
	bool sleeps;			/* who waits sleeps: for items that are many */
} hall;

/* An item that may wait in a section. */
struct block_item {
	struct fairwq_work work;
	struct completion done;
	unsigned int depth;		/* sections around its wait; 0: it does not wait */
	bool leaves;			/* returns without the end of one section */
	bool goes_on;			/* computes after that, until hall.end */
	u64 stay, used;			/* ns in the section; of a CPU, there */
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

static void wait_to_go(void)
{
	if (hall.sleeps)
		mock_wait(&hall.go);
	else
		compute_within(completion_done(&hall.go));
}

static void wait_in_section(struct block_item *item)
{
	unsigned int i;
	u64 from, used;

	leave();
	for (i = 0; i < item->depth; i++)
		fairwq_block_begin();
	for (i = 1; i < item->depth; i++)
		fairwq_block_end();
	from = ktime_get_ns();
	used = READ_ONCE(current->se.sum_exec_runtime);
	atomic_inc(&hall.waiting);
	wait_to_go();
	atomic_dec(&hall.waiting);
	item->stay = ktime_get_ns() - from;
	item->used = READ_ONCE(current->se.sum_exec_runtime) - used;
	if (!item->leaves)
		fairwq_block_end();
	enter();
}

static void block_item_fn(struct fairwq_work *work)
{
	struct block_item *item = container_of(work, struct block_item, work);

	enter();
	if (item->depth)
		wait_in_section(item);
	if (item->goes_on)
		compute_within(completion_done(&hall.end));
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

/* Make a pool whose runners are all free, and reset @hall. Return: the batch "a". */
static struct fairwq_batch *begin_by(struct kunit *test, unsigned int max_active,
				     enum fairwq_policy policy)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	mock->max_in_flight = FAIRWQ_MAX_ACTIVE;
	a = mock_begin_by(test, max_active, policy);
	memset(&hall, 0, sizeof(hall));
	init_completion(&hall.go);
	init_completion(&hall.end);
	mock_free_runners(test);
	mock_no_ticks(mock->pool);
	return a;
}

static struct fairwq_batch *begin(struct kunit *test, unsigned int max_active)
{
	return begin_by(test, max_active, FAIRWQ_ROUND_ROBIN);
}

static unsigned int nr_runners(struct fairwq_pool *pool)
{
	return READ_ONCE(pool->crew.nr_runners);
}

/* ---- the limit of active runners ---------------------------------------- */

#define FEW	6

/* With max_active of 1, an item runs behind six items that wait in a section. */
static void items_may_wait_for_a_later_one(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, 1);
	struct mock *mock = test->priv;
	struct block_item *waits[FEW], *later;
	unsigned int i;

	for (i = 0; i < FEW; i++)
		waits[i] = queue_item(test, a, 1);
	mock_until(test, atomic_read(&hall.waiting) == FEW);
	later = queue_item(test, a, 0);
	mock_await(test, &later->done);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&hall.most));
	KUNIT_EXPECT_GE(test, nr_runners(mock->pool), FEW + 1U);
	complete_all(&hall.go);
	for (i = 0; i < FEW; i++)
		mock_await(test, &waits[i]->done);
}

/*
 * After their sections items go on at once, though they are more than may be
 * active. They count again: until enough of them have ended, none begins.
 */
static void places_are_as_many_as_ever(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, 2);
	struct block_item *waits[3], *later;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		waits[i] = block_item(test, 1);
		waits[i]->goes_on = true;
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &waits[i]->work));
	}
	mock_until(test, atomic_read(&hall.waiting) == 3);
	complete_all(&hall.go);
	mock_until(test, atomic_read(&hall.inside) == 3);
	later = queue_item(test, a, 0);
	mock_for(50, completion_done(&later->done));
	KUNIT_EXPECT_FALSE(test, completion_done(&later->done));
	complete_all(&hall.end);
	mock_await(test, &later->done);
	for (i = 0; i < 3; i++)
		mock_await(test, &waits[i]->done);
}

/* Sections nest: the end of an inner one changes nothing. */
static void sections_nest(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, 1);
	struct block_item *waits = queue_item(test, a, 3), *later;

	mock_until(test, atomic_read(&hall.waiting) == 1);
	later = queue_item(test, a, 0);
	mock_await(test, &later->done);
	complete_all(&hall.go);
	mock_await(test, &waits->done);
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
 * An item is not charged for its sleep in a section. However long the host
 * stops the guest: what it is charged and what it sleeps there cannot be more
 * than all. What it had of a CPU is known up to a tick.
 */
static void item_does_not_pay_for_its_section(struct kunit *test)
{
	struct fairwq_batch *a = begin_by(test, 1, FAIRWQ_FAIR_TIME);
	u64 began, all, charged = READ_ONCE(a->node.service);
	struct block_item *item;

	hall.sleeps = true;
	began = ktime_get_ns();
	item = queue_item(test, a, 1);
	mock_until(test, atomic_read(&hall.waiting) == 1);
	msleep(100);		/* or longer */
	complete_all(&hall.go);
	mock_await(test, &item->done);
	fairwq_batch_flush(a);
	all = ktime_get_ns() - began;
	charged = READ_ONCE(a->node.service) - charged;
	KUNIT_EXPECT_GT(test, item->stay, 80ULL * NSEC_PER_MSEC);
	KUNIT_EXPECT_LE(test, charged, all - item->stay + item->used + TICK_NSEC);
}

/* ---- runners ----------------------------------------------------------- */

#define MANY	40
#define HOUR	(3600UL * HZ)	/* longer than any case takes */

/* Runners that were added for items in sections are freed once they are idle. */
static void spares_go_when_they_are_idle(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, 2);
	struct mock *mock = test->priv;
	unsigned int i, round;

	hall.sleeps = true;
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

	hall.sleeps = true;
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

/* An item that joins a task in a section. */
static struct {
	struct fairwq_work work;
	struct completion begun;	/* the task has, at another runner */
	struct task_struct *by;		/* the worker of the item, which is about to join */
} joining;

static void joined_fn(struct fairwq_task *self)
{
	complete(&joining.begun);
	wait_to_go();
}

static void join_in_section(struct fairwq_work *work)
{
	struct fairwq_task self, task;

	fairwq_task_here(&self);
	fairwq_task_init(&task, joined_fn);
	fairwq_fork(&self, &task);
	fairwq_block_begin();
	mock_fork_until(&self, &joining.begun);
	WRITE_ONCE(joining.by, current);
	fairwq_join(&self, &task);
	fairwq_block_end();
}

/* A join inside a section gives no second place to others, and its end takes none. */
static void join_in_a_section_gives_no_second_place(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, 2);
	struct block_item *item[2];
	unsigned int i;

	memset(&joining, 0, sizeof(joining));
	init_completion(&joining.begun);
	fairwq_work_init(&joining.work, join_in_section);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &joining.work));
	mock_until(test, READ_ONCE(joining.by) && !task_is_running(joining.by));
	/* There is one place beside the task. */
	for (i = 0; i < 2; i++) {
		item[i] = block_item(test, 0);
		item[i]->goes_on = true;
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &item[i]->work));
	}
	mock_until(test, atomic_read(&hall.inside));
	mock_for(50, atomic_read(&hall.inside) > 1);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&hall.most));
	complete_all(&hall.go);
	complete_all(&hall.end);
	fairwq_batch_flush(a);
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
