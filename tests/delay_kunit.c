// SPDX-License-Identifier: GPL-2.0
/*
 * Delayed and RCU works: works that are queued after a delay or a grace period
 * (promises 1, 8 and 11).
 */
#include "lib/hook.h"

#define HOUR	(3600UL * HZ)	/* longer than any case takes */

/* A delayed item that logs its letter. */
struct later {
	struct fairwq_delayed_work dwork;
	struct mock_log *log;
	struct fairwq_batch *batch;
	unsigned long ran_at;		/* jiffies */
	unsigned int runs;
	int ret;			/* of a call that the case checks later */
	char letter;
};

static struct later *to_later(struct fairwq_work *work)
{
	return container_of(work, struct later, dwork.work);
}

static void later_fn(struct fairwq_work *work)
{
	struct later *later = to_later(work);

	later->ran_at = jiffies;
	later->runs++;
	mock_log_add(later->log, later->letter);
}

/* Make a delayed item of @func, for @batch. It is not queued. */
static struct later *later_new(struct kunit *test, struct fairwq_batch *batch,
			       fairwq_func_t func)
{
	struct later *later = kunit_kzalloc(test, sizeof(*later), GFP_KERNEL);
	struct mock *mock = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, later);
	fairwq_delayed_work_init(&later->dwork, func);
	later->log = &mock->log;
	later->batch = batch;
	later->letter = 'x';
	return later;
}

static bool flush_delayed(struct fairwq_work *work)
{
	return fairwq_delayed_work_flush(&to_later(work)->dwork);
}

/* ---- a delay ---------------------------------------------------------- */

/* A call with a bad argument returns an error and changes nothing. */
static void bad_delays_are_refused(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct later *later = later_new(test, a, later_fn);
	struct fairwq_delayed_work no_function = { };
	struct fairwq_rcu_work no_rcu_function = { };

	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_queue_delayed(NULL, &later->dwork, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_queue_delayed(a, NULL, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_queue_delayed(a, &no_function, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_mod_delayed(NULL, &later->dwork, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_mod_delayed(a, NULL, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_mod_delayed(a, &no_function, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_queue_rcu(NULL, &no_rcu_function));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_queue_rcu(a, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_queue_rcu(a, &no_rcu_function));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&later->dwork.work));
}

/* With a delay of 0 a work is queued at once, and runs in queue order. */
static void no_delay_is_at_once(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct later *later = later_new(test, a, later_fn);

	mock_queue_item(test, a, 'a');
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, 0));
	KUNIT_EXPECT_EQ(test, 0, fairwq_queue_delayed(a, &later->dwork, 0));
	mock_queue_item(test, a, 'b');
	mock_expect(test, "axb");
}

/* A delayed work runs after its delay, not before, and is idle after that. */
static void runs_after_the_delay(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct later *later = later_new(test, a, later_fn);
	unsigned long due = jiffies + 3;	/* or later, but not earlier */

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, 3));
	mock_until(test, READ_ONCE(later->runs) == 1);
	KUNIT_EXPECT_TRUE(test, time_after_eq(later->ran_at, due));
	fairwq_batch_flush(a);
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&later->dwork.work));
	mock_until(test, !mock_nr_held(a));	/* given back after the push */
}

/* A delayed work takes its place in the queue when its delay ends. */
static void place_is_taken_when_the_time_has_come(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct later *later = later_new(test, a, later_fn);

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	mock_queue_item(test, a, 'a');
	mod_timer(&later->dwork.timer, jiffies + 1);	/* as if the hour was over */
	mock_until(test, !mock_nr_held(a));
	mock_queue_item(test, a, 'b');
	mock_expect(test, "axb");
}

/*
 * A delayed work is pending from the call on. Flushes do not wait for it, and
 * only a cancel of the work takes it out.
 */
static void delayed_work_is_pending_at_once(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct later *later = later_new(test, a, later_fn);
	struct mock *mock = test->priv;

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_TRUE(test, fairwq_work_pending(&later->dwork.work));
	KUNIT_EXPECT_EQ(test, 0, fairwq_queue_delayed(a, &later->dwork, 1));
	KUNIT_EXPECT_EQ(test, 0, fairwq_queue(a, &later->dwork.work));
	fairwq_batch_flush(a);
	/* A flush of the work does not wait either, because the work is not queued yet. */
	KUNIT_EXPECT_FALSE(test, fairwq_work_flush(&later->dwork.work));
	KUNIT_EXPECT_EQ(test, 0UL, fairwq_batch_cancel(a, NULL));
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_cancel(&later->dwork));
	KUNIT_EXPECT_FALSE(test, fairwq_delayed_work_cancel(&later->dwork));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&later->dwork.work));
	KUNIT_EXPECT_FALSE(test, timer_pending(&later->dwork.timer));
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_held(a));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_cancel_sync(&later->dwork));
	KUNIT_EXPECT_FALSE(test, fairwq_delayed_work_cancel_sync(&later->dwork));
	KUNIT_EXPECT_EQ(test, 0U, mock->log.nr);
}

/* fairwq_delayed_work_flush() ends the delay at once, and waits until the work has run. */
static void flush_does_not_wait_for_the_delay(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct later *later = later_new(test, a, later_fn);
	struct mock *mock = test->priv;
	struct call *call;

	KUNIT_EXPECT_FALSE(test, fairwq_delayed_work_flush(&later->dwork));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	fairwq_batch_pause(a);
	call = mock_call_start(test, flush_delayed, &later->dwork.work);
	mock_until(test, mock_nr_waiters(mock->pool) == 1);
	KUNIT_EXPECT_FALSE(test, completion_done(&call->done));
	fairwq_batch_resume(a);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	KUNIT_EXPECT_EQ(test, 1U, later->runs);
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_held(a));
}

/* A delayed work counts in max_queued from the call on, until it starts or is cancelled. */
static void max_queued_counts_what_waits(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_queued = 2 };
	struct later *later;
	struct fairwq_batch *a = mock_begin_with(test, 1, &attrs);

	later = later_new(test, a, later_fn);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	mock_queue_item(test, a, 'a');
	KUNIT_EXPECT_EQ(test, 2U, fairwq_batch_nr_queued(a));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fairwq_queue(a, &mock_item(test, 'b')->work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(a, &later->dwork, 2 * HOUR));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fairwq_queue(a, &mock_item(test, 'b')->work));
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_cancel(&later->dwork));
	mock_queue_item(test, a, 'c');
	KUNIT_EXPECT_EQ(test, -EAGAIN, fairwq_queue_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&later->dwork.work));
	mock_expect(test, "ac");
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, 1));
	mock_expect(test, "acx");
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 0U, fairwq_batch_nr_queued(a));
}

/* A disable cancels a delayed work, and queue calls for a disabled work are refused. */
static void disabled_does_not_wait(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct later *later = later_new(test, a, later_fn);
	struct fairwq_work *work = &later->dwork.work;

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_TRUE(test, fairwq_work_disable(work));
	KUNIT_EXPECT_FALSE(test, timer_pending(&later->dwork.timer));
	KUNIT_EXPECT_EQ(test, -ECANCELED, fairwq_queue_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_EQ(test, -ECANCELED, fairwq_queue_delayed(a, &later->dwork, 0));
	KUNIT_EXPECT_EQ(test, -ECANCELED, fairwq_mod_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_FALSE(test, timer_pending(&later->dwork.timer));
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_held(a));
	KUNIT_EXPECT_TRUE(test, fairwq_work_enable(work));
	KUNIT_EXPECT_EQ(test, 0, fairwq_mod_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_TRUE(test, fairwq_work_disable_sync(work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_enable(work));
}

/* The fairwq_delayed_work_*() calls do the same as the fairwq_work_*() calls. */
static void delayed_namesakes_do_the_same(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct later *later = later_new(test, a, later_fn);
	struct fairwq_delayed_work *dwork = &later->dwork;

	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&dwork->work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, dwork, HOUR));
	KUNIT_EXPECT_TRUE(test, fairwq_work_pending(&dwork->work));
	KUNIT_EXPECT_EQ(test, FAIRWQ_BUSY_PENDING, fairwq_work_busy(&dwork->work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_disable(&dwork->work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&dwork->work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_disable_sync(&dwork->work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_enable(&dwork->work));
	KUNIT_EXPECT_EQ(test, -ECANCELED, fairwq_queue_delayed(a, dwork, HOUR));
	KUNIT_EXPECT_TRUE(test, fairwq_work_enable(&dwork->work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, dwork, 1));
	mock_expect(test, "x");
}

/* A deferrable work has a timer that does not wake an idle CPU. It runs as other works do. */
static void deferrable_work_runs(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct later *later = later_new(test, a, later_fn);

	KUNIT_EXPECT_FALSE(test, later->dwork.timer.flags & TIMER_DEFERRABLE);
	fairwq_delayed_work_init_deferrable(&later->dwork, later_fn);
	KUNIT_EXPECT_TRUE(test, later->dwork.timer.flags & TIMER_DEFERRABLE);
	KUNIT_EXPECT_TRUE(test, later->dwork.timer.flags & TIMER_IRQSAFE);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_cancel(&later->dwork));
	migrate_disable();	/* keep the CPU of the timer busy, else it might not fire */
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, 1));
	KUNIT_EXPECT_TRUE(test, spin_within(!timer_pending(&later->dwork.timer)));
	migrate_enable();
	mock_expect(test, "x");
}

/*
 * A delayed work may be on the stack. CONFIG_DEBUG_OBJECTS_TIMERS warns if its
 * timer is not set up for that.
 */
static void delayed_work_may_be_on_the_stack(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct mock *mock = test->priv;
	struct later later = { .log = &mock->log, .batch = a, .letter = 'x' };

	fairwq_delayed_work_init_onstack(&later.dwork, later_fn);
	KUNIT_EXPECT_FALSE(test, later.dwork.timer.flags & TIMER_DEFERRABLE);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later.dwork, HOUR));
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_cancel_sync(&later.dwork));
	mock_open(test);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later.dwork, 1));
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_flush(&later.dwork));
	KUNIT_EXPECT_EQ(test, 1U, later.runs);
	fairwq_delayed_work_destroy_onstack(&later.dwork);
}

/* ---- a new delay ------------------------------------------------------ */

/* fairwq_mod_delayed() queues an idle work, and gives a delayed work a new delay. */
static void mod_of_what_waits(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct later *later = later_new(test, a, later_fn);
	struct timer_list *timer = &later->dwork.timer;
	struct mock *mock = test->priv;
	unsigned long now;

	now = jiffies;
	KUNIT_EXPECT_EQ(test, 0, fairwq_mod_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_TRUE(test, time_after_eq(timer->expires, now + HOUR));
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(a, &later->dwork, 2 * HOUR));
	KUNIT_EXPECT_TRUE(test, time_after_eq(timer->expires, now + 2 * HOUR));
	KUNIT_EXPECT_EQ(test, 1U, mock_nr_held(a));
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(a, &later->dwork, 1));
	mock_expect(test, "x");
	KUNIT_EXPECT_EQ(test, 0, fairwq_mod_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(a, &later->dwork, 0));
	mock_expect(test, "xx");
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 2U, mock->log.nr);
}

/*
 * fairwq_mod_delayed() takes a work out of the queue for a delay. It moves the
 * work to another batch, and from there back to the tail of the first.
 */
static void mod_of_what_is_queued(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1), *b = mock_batch(test, "b");
	struct later *later = later_new(test, a, later_fn);

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, 0));
	mock_queue_item(test, a, 'a');
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_EQ(test, 1U, mock_nr_held(a));
	mock_queue_item(test, b, 'b');
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(b, &later->dwork, 0));
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_held(a));
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(a, &later->dwork, 0));
	mock_queue_item(test, a, 'c');
	mock_expect(test, "abxc");
}

/* fairwq_mod_delayed() takes a work out of the FIFO of a batch whose runner is busy. */
static void mod_of_what_is_held_up(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct fairwq_batch *a = mock_held_begin(test, gate);
	struct later *later = later_new(test, a, later_fn);
	struct mock_item *b;

	mock_queue_item(test, a, 'a');
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, 0));
	b = mock_queue_item(test, a, 'b');
	mock_held_go(test, a, gate, b);
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(a, &later->dwork, HOUR));
	complete_all(&gate->open);
	fairwq_batch_flush(a);
	mock_expect(test, "ab");
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_flush(&later->dwork));
	mock_expect(test, "abx");
}

static void mod_itself_fn(struct fairwq_work *work)
{
	struct later *later = to_later(work);

	if (!later->runs++)
		later->ret = fairwq_mod_delayed(later->batch, &later->dwork, 1);
	mock_log_add(later->log, later->letter);
}

/* A function may queue its own work with a delay, because a running work is idle. */
static void function_may_delay_its_own_work(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct later *later = later_new(test, a, mod_itself_fn);

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, 0));
	mock_expect(test, "xx");
	KUNIT_EXPECT_EQ(test, 0, later->ret);
}

/* A full batch refuses a work of another batch, and the work stays where it is. */
static void mod_into_a_full_batch_changes_nothing(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_queued = 1 };
	struct fairwq_batch *a = mock_begin_with(test, 1, &attrs), *b = mock_batch(test, "b");
	struct later *later = later_new(test, a, later_fn);
	struct mock_item *item;

	item = mock_queue_item(test, a, 'a');
	KUNIT_EXPECT_EQ(test, -EAGAIN, fairwq_mod_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&later->dwork.work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(b, &later->dwork, HOUR));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fairwq_mod_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fairwq_mod_delayed(a, &later->dwork, 0));
	KUNIT_EXPECT_TRUE(test, timer_pending(&later->dwork.timer));
	KUNIT_EXPECT_EQ(test, 1U, mock_nr_held(b));
	/* A work that is pending in the full batch counts already, and is accepted. */
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&item->work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(a, &later->dwork, 0));
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_EQ(test, 1U, fairwq_batch_nr_queued(a));
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(a, &later->dwork, 1));
	mock_expect(test, "x");
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 0U, fairwq_batch_nr_queued(a));
}

/* A function that a hook calls in the middle of a call that moves a work. */
static struct {
	struct fairwq_batch *batch;
	struct fairwq_work *work;
	void (*then)(struct fairwq_batch *batch, struct fairwq_work *work);
} between;

static void between_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	void (*then)(struct fairwq_batch *batch, struct fairwq_work *work) = between.then;

	if (point != FAIRWQ_POINT_MOVING || batch != between.batch || !then)
		return;
	between.then = NULL;
	then(batch, between.work);
}

/* Call fairwq_mod_delayed() for a delayed work of @a, with @then in its middle. */
static int mod_with(struct fairwq_batch *a, struct later *later, unsigned long delay,
		    void (*then)(struct fairwq_batch *batch, struct fairwq_work *work),
		    struct fairwq_work *work)
{
	int ret;

	between.batch = a;
	between.work = work;
	between.then = then;
	fairwq_test_set_hook(between_hook);
	ret = fairwq_mod_delayed(a, &later->dwork, delay);
	fairwq_test_set_hook(NULL);
	return ret;
}

static void then_dispose(struct fairwq_batch *batch, struct fairwq_work *work)
{
	fairwq_batch_dispose(batch);
}

static int filled;			/* what a queue call in then_fill() has returned */

static void then_fill(struct fairwq_batch *batch, struct fairwq_work *work)
{
	filled = fairwq_queue(batch, work);
}

static void then_disable(struct fairwq_batch *batch, struct fairwq_work *work)
{
	WRITE_ONCE(work->disabled, work->disabled + 1);
}

/* A batch that is disposed after the work was taken out still accepts it. */
static void mod_beside_a_dispose_is_accepted(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1), *b = mock_own_batch(test, "b", NULL);
	struct later *later = later_new(test, b, later_fn);

	/* First, because the delay may end at any time from the call on. */
	mock_queue_item(test, a, 'a');
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(b, &later->dwork, HOUR));
	fairwq_batch_get(b);
	KUNIT_EXPECT_EQ(test, 1, mod_with(b, later, 1, then_dispose, NULL));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_queue(b, &mock_item(test, 'z')->work));
	mock_until(test, !mock_nr_held(b));
	mock_expect(test, "ax");
	fairwq_batch_put(b);
}

/* No other item gets the room of a work while it moves. */
static void mod_beside_a_queue_call(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_queued = 1 };
	struct fairwq_batch *a = mock_begin_with(test, 1, &attrs);
	struct later *later = later_new(test, a, later_fn);
	struct mock_item *item = mock_item(test, 'z');

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_EQ(test, 1, mod_with(a, later, 0, then_fill, &item->work));
	KUNIT_EXPECT_EQ(test, -EAGAIN, filled);
	KUNIT_EXPECT_EQ(test, 1U, fairwq_batch_nr_queued(a));
	mock_expect(test, "x");
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 0U, fairwq_batch_nr_queued(a));
}

/* A disable that comes after the work was taken out finds it pending when it goes on. */
static void mod_beside_a_disable_comes_first(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_queued = 1 };
	struct fairwq_batch *a = mock_begin_with(test, 1, &attrs);
	struct later *later = later_new(test, a, later_fn);
	struct fairwq_work *work = &later->dwork.work;

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_EQ(test, 1, mod_with(a, later, HOUR, then_disable, work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_pending(work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(work));
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_held(a));
	KUNIT_EXPECT_EQ(test, 0U, fairwq_batch_nr_queued(a));
	KUNIT_EXPECT_TRUE(test, fairwq_work_enable(work));
}

static struct {
	struct irq_work irq_work;
	struct later *later;
	bool in_hardirq, done, timed_out;
	int ret[3];
	bool canceled[2];
} from_irq;

static void from_irq_fn(struct irq_work *irq_work)
{
	struct later *later = from_irq.later;

	from_irq.in_hardirq = in_hardirq();
	from_irq.ret[0] = fairwq_mod_delayed(later->batch, &later->dwork, HOUR);
	from_irq.ret[1] = fairwq_mod_delayed(later->batch, &later->dwork, 2 * HOUR);
	from_irq.canceled[0] = fairwq_delayed_work_cancel(&later->dwork);
	from_irq.canceled[1] = fairwq_delayed_work_cancel(&later->dwork);
	from_irq.ret[2] = fairwq_queue_delayed(later->batch, &later->dwork, 1);
	step_done(&from_irq.done);
}

/* Delayed works can be queued, modified and cancelled in a hardirq. */
static void delayed_calls_work_from_hardirq(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct later *later = later_new(test, a, later_fn);

	memset(&from_irq, 0, sizeof(from_irq));
	from_irq.later = later;
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, 0));
	from_irq.irq_work = IRQ_WORK_INIT_HARD(from_irq_fn);
	irq_work_queue(&from_irq.irq_work);
	mock_until(test, READ_ONCE(from_irq.done));
	irq_work_sync(&from_irq.irq_work);
	KUNIT_EXPECT_TRUE(test, from_irq.in_hardirq);
	KUNIT_EXPECT_EQ(test, 1, from_irq.ret[0]);
	KUNIT_EXPECT_EQ(test, 1, from_irq.ret[1]);
	KUNIT_EXPECT_TRUE(test, from_irq.canceled[0]);
	KUNIT_EXPECT_FALSE(test, from_irq.canceled[1]);
	KUNIT_EXPECT_EQ(test, 1, from_irq.ret[2]);
	mock_expect(test, "x");
}

/* ---- the end of a batch, and of a pool -------------------------------- */

static void count_release(struct fairwq_batch *batch, void *priv)
{
	atomic_inc(priv);
}

static struct fairwq_batch *counted_batch(struct kunit *test, atomic_t *released)
{
	struct fairwq_batch_attrs attrs = { .released = count_release, .priv = released };
	struct fairwq_batch *batch;

	atomic_set(released, 0);
	batch = mock_own_batch(test, "counted", &attrs);
	return fairwq_batch_get(batch);
}

/* Queue a delayed work to a new batch, dispose of the batch, and check that it stays. */
static struct later *dispose_with_a_delay(struct kunit *test, atomic_t **released)
{
	struct fairwq_batch *a;
	struct later *later;

	*released = kunit_kzalloc(test, sizeof(**released), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, *released);
	mock_pool(test, 2);
	a = counted_batch(test, *released);
	later = later_new(test, a, later_fn);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	fairwq_batch_dispose(a);
	mock_wait_released();
	KUNIT_EXPECT_EQ(test, 0, atomic_read(*released));
	return later;
}

/* A disposed batch is released after its delayed work has run, because that was accepted. */
static void disposed_batch_waits_for_the_delay(struct kunit *test)
{
	atomic_t *released;
	struct later *later = dispose_with_a_delay(test, &released);
	struct fairwq_batch *a = later->batch;

	/* The batch refuses a new delay, and the work keeps the old one. */
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_mod_delayed(a, &later->dwork, 1));
	KUNIT_EXPECT_TRUE(test, timer_pending(&later->dwork.timer));
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_flush(&later->dwork));
	KUNIT_EXPECT_EQ(test, 1U, later->runs);
	mock_until(test, atomic_read(released) == 1);
	fairwq_batch_put(a);
}

/* A disposed batch is released when its delayed work is cancelled. */
static void canceled_delay_lets_the_batch_go(struct kunit *test)
{
	atomic_t *released;
	struct later *later = dispose_with_a_delay(test, &released);
	struct mock *mock = test->priv;

	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_cancel(&later->dwork));
	mock_until(test, atomic_read(released) == 1);
	fairwq_batch_put(later->batch);
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_waiters(mock->pool));
}

/* The pool to destroy in a call of its own. */
struct destroy {
	struct fairwq_work work;	/* the argument of the call; never queued */
	struct fairwq_pool *pool;
};

static bool destroy_pool(struct fairwq_work *work)
{
	fairwq_pool_destroy(container_of(work, struct destroy, work)->pool);
	return true;
}

/* A drain does not wait for a delayed work, and does not end its delay. */
static void drained_pool_leaves_the_delay(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 1);
	struct later *later = later_new(test, a, later_fn);

	mock_open(test);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	fairwq_pool_drain(mock->pool);
	KUNIT_EXPECT_EQ(test, 0U, later->runs);
	KUNIT_EXPECT_TRUE(test, fairwq_work_pending(&later->dwork.work));
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_flush(&later->dwork));
	KUNIT_EXPECT_EQ(test, 1U, later->runs);
}

/* The destruction of a pool waits for a delayed work, which still runs after its delay. */
static void destroyed_pool_waits_for_the_delay(struct kunit *test)
{
	struct fairwq_pool_attrs attrs = { .max_active = 1 };
	struct destroy *destroy = kunit_kzalloc(test, sizeof(*destroy), GFP_KERNEL);
	struct fairwq_batch *a;
	struct later *later;
	struct call *call;

	KUNIT_ASSERT_NOT_NULL(test, destroy);
	destroy->pool = fairwq_pool_create(&attrs, "doomed");
	KUNIT_ASSERT_FALSE(test, IS_ERR(destroy->pool));
	a = fairwq_batch_create(destroy->pool, NULL, "a");
	KUNIT_ASSERT_FALSE(test, IS_ERR(a));
	later = later_new(test, a, later_fn);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	call = mock_call_start(test, destroy_pool, &destroy->work);
	/* Wait until the destruction has retired the batch. */
	mock_until(test, fairwq_batch_is_disposed(a));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN,
			fairwq_queue_delayed(a, &later_new(test, a, later_fn)->dwork, 1));
	KUNIT_EXPECT_FALSE(test, completion_done(&call->done));
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_flush(&later->dwork));
	mock_call_end(test, call);
	KUNIT_EXPECT_EQ(test, 1U, later->runs);
	fairwq_batch_put(a);
}

/* ---- a grace period --------------------------------------------------- */

/* An RCU work that logs a 'g'. */
struct graced {
	struct fairwq_rcu_work rwork;
	struct mock_log *log;
	struct fairwq_batch *batch;
	atomic_t runs;
	int again;			/* times that it is still to queue itself */
};

static struct graced *to_graced(struct fairwq_work *work)
{
	return container_of(work, struct graced, rwork.work);
}

static void graced_fn(struct fairwq_work *work)
{
	struct graced *graced = to_graced(work);

	mock_log_add(graced->log, 'g');
	atomic_inc(&graced->runs);
	if (graced->again-- > 0)
		mock_may_refuse(fairwq_queue_rcu(graced->batch, &graced->rwork));
}

static struct graced *graced_new(struct kunit *test, struct fairwq_batch *batch)
{
	struct graced *graced = kunit_kzalloc(test, sizeof(*graced), GFP_KERNEL);
	struct mock *mock = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, graced);
	fairwq_rcu_work_init(&graced->rwork, graced_fn);
	graced->log = &mock->log;
	graced->batch = batch;
	return graced;
}

/*
 * An RCU work does not run while a reader is in its section. It is pending
 * meanwhile, and fairwq_work_cancel() returns false.
 */
static void runs_after_a_grace_period(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct graced *graced = graced_new(test, a);
	struct fairwq_work *work = &graced->rwork.work;
	bool canceled, pending, runs;
	int ret[2];

	mock_open(test);
	KUNIT_EXPECT_FALSE(test, fairwq_rcu_work_flush(&graced->rwork));
	rcu_read_lock();
	ret[0] = fairwq_queue_rcu(a, &graced->rwork);
	ret[1] = fairwq_queue_rcu(a, &graced->rwork);
	canceled = fairwq_work_cancel(work);
	pending = fairwq_work_pending(work);
	runs = spin_for(30, atomic_read(&graced->runs));
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, 1, ret[0]);
	KUNIT_EXPECT_EQ(test, 0, ret[1]);
	KUNIT_EXPECT_FALSE(test, canceled);
	KUNIT_EXPECT_TRUE(test, pending);
	KUNIT_EXPECT_EQ(test, 0, runs);
	KUNIT_EXPECT_TRUE(test, fairwq_rcu_work_flush(&graced->rwork));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&graced->runs));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(work));
	mock_until(test, !mock_nr_held(a));	/* given back after the push */
}

/* A call in another thread that takes an RCU work out, and its results. */
static struct {
	bool (*take)(struct fairwq_work *work);
	bool go, pending, timed_out;
} grace;

/* Call @grace.take as soon as the work is queued. Return: as @grace.take. */
static bool grace_take(struct fairwq_work *work)
{
	bool ret;

	grace.timed_out = !spin_until(&grace.go);
	ret = grace.take(work);
	grace.pending = fairwq_work_pending(work);
	return ret;
}

/* Check that @take waits for the grace period of a work, and then takes it out of the queue. */
static void grace_is_awaited_by(struct kunit *test, struct fairwq_batch *a,
				bool (*take)(struct fairwq_work *work))
{
	struct graced *graced = graced_new(test, a);
	struct fairwq_work *work = &graced->rwork.work;
	struct call *call;
	bool early, canceled;
	int ret;

	memset(&grace, 0, sizeof(grace));
	grace.take = take;
	call = mock_call_start_apart(test, grace_take, work);
	rcu_read_lock();
	ret = fairwq_queue_rcu(a, &graced->rwork);
	step_done(&grace.go);
	early = spin_for(50, completion_done(&call->done));
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, 1, ret);
	KUNIT_EXPECT_FALSE(test, early);
	canceled = mock_call_end(test, call);
	/* No runner is free, so the work cannot have run. */
	KUNIT_EXPECT_TRUE(test, canceled);
	if (!canceled)
		mock_open(test);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	KUNIT_EXPECT_FALSE(test, grace.timed_out);
	KUNIT_EXPECT_FALSE(test, grace.pending);
	fairwq_rcu_work_flush(&graced->rwork);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&graced->runs));
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_held(a));
}

/* The sync variants of cancel and disable wait for the grace period of a work. */
static void cancel_sync_waits_for_the_grace_period(struct kunit *test)
{
	struct fairwq_batch *a;

	need_two_cpus(test);
	a = mock_begin(test, 1);
	grace_is_awaited_by(test, a, fairwq_work_cancel_sync);
	grace_is_awaited_by(test, a, fairwq_work_disable_sync);
}

/*
 * fairwq_work_cancel_sync() also waits for the run, if the work starts after
 * its grace period. The function may not queue the work again meanwhile.
 */
static void cancel_sync_waits_for_the_graced_run(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct graced *graced = graced_new(test, a);
	unsigned int i, canceled = 0;

	mock_open(test);
	graced->batch = a;
	for (i = 0; i < 20; i++) {
		graced->again = 1;
		KUNIT_EXPECT_EQ(test, 1, fairwq_queue_rcu(a, &graced->rwork));
		canceled += fairwq_work_cancel_sync(&graced->rwork.work);
		KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&graced->rwork.work));
		KUNIT_EXPECT_EQ(test, i + 1, canceled + atomic_read(&graced->runs));
	}
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 20U, canceled + atomic_read(&graced->runs));
}

/* After its grace period an RCU work can be cancelled as other works can. */
static void cancel_finds_it_after_the_grace_period(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct graced *graced = graced_new(test, a);
	struct fairwq_work *work = &graced->rwork.work;

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_rcu(a, &graced->rwork));
	mock_until(test, !mock_nr_held(a));
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_cancel_sync(work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_rcu(a, &graced->rwork));
	mock_until(test, !mock_nr_held(a));
	KUNIT_EXPECT_EQ(test, 1UL, fairwq_batch_cancel(a, NULL));
	mock_queue_item(test, a, 'a');
	mock_expect(test, "a");
}

/*
 * A disposed batch is released after its RCU work has run. Before the dispose
 * the function of the work may queue it again.
 */
static void disposed_batch_waits_for_the_grace_period(struct kunit *test)
{
	atomic_t *released = kunit_kzalloc(test, sizeof(*released), GFP_KERNEL);
	struct graced *graced;
	struct fairwq_batch *a;

	KUNIT_ASSERT_NOT_NULL(test, released);
	mock_pool(test, 1);
	a = counted_batch(test, released);
	graced = graced_new(test, a);
	graced->again = 1;
	mock_open(test);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_rcu(a, &graced->rwork));
	mock_until(test, atomic_read(&graced->runs) == 2);
	fairwq_batch_pause(a);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_rcu(a, &graced->rwork));
	fairwq_batch_dispose(a);
	mock_until(test, atomic_read(released) == 1);
	KUNIT_EXPECT_EQ(test, 3, atomic_read(&graced->runs));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_queue_rcu(a, &graced->rwork));
	fairwq_batch_put(a);
}

/* An RCU work that frees itself. */
struct self_freeing {
	struct fairwq_rcu_work rwork;
	atomic_t *runs;
};

static void self_freeing_fn(struct fairwq_work *work)
{
	struct self_freeing *self = container_of(work, struct self_freeing, rwork.work);
	atomic_t *runs = self->runs;

	kfree(self);
	atomic_inc(runs);
}

/* The function of an RCU work may free the object that it is in. */
static void rcu_work_may_be_freed(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct self_freeing *self;
	atomic_t runs = ATOMIC_INIT(0);
	unsigned int i;

	mock_open(test);
	for (i = 0; i < 20; i++) {
		self = kzalloc(sizeof(*self), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, self);
		fairwq_rcu_work_init(&self->rwork, self_freeing_fn);
		self->runs = &runs;
		KUNIT_EXPECT_EQ(test, 1, fairwq_queue_rcu(a, &self->rwork));
	}
	mock_until(test, atomic_read(&runs) == 20);
	fairwq_batch_flush(a);
}

static struct kunit_case delay_cases[] = {
	KUNIT_CASE(bad_delays_are_refused),
	KUNIT_CASE(no_delay_is_at_once),
	KUNIT_CASE(runs_after_the_delay),
	KUNIT_CASE(place_is_taken_when_the_time_has_come),
	KUNIT_CASE(delayed_work_is_pending_at_once),
	KUNIT_CASE(flush_does_not_wait_for_the_delay),
	KUNIT_CASE(max_queued_counts_what_waits),
	KUNIT_CASE(disabled_does_not_wait),
	KUNIT_CASE(delayed_namesakes_do_the_same),
	KUNIT_CASE(deferrable_work_runs),
	KUNIT_CASE(delayed_work_may_be_on_the_stack),
	KUNIT_CASE(mod_of_what_waits),
	KUNIT_CASE(mod_of_what_is_queued),
	KUNIT_CASE(mod_of_what_is_held_up),
	KUNIT_CASE(function_may_delay_its_own_work),
	KUNIT_CASE(mod_into_a_full_batch_changes_nothing),
	KUNIT_CASE(mod_beside_a_dispose_is_accepted),
	KUNIT_CASE(mod_beside_a_queue_call),
	KUNIT_CASE(mod_beside_a_disable_comes_first),
	KUNIT_CASE(delayed_calls_work_from_hardirq),
	KUNIT_CASE(disposed_batch_waits_for_the_delay),
	KUNIT_CASE(canceled_delay_lets_the_batch_go),
	KUNIT_CASE(drained_pool_leaves_the_delay),
	KUNIT_CASE(destroyed_pool_waits_for_the_delay),
	KUNIT_CASE(runs_after_a_grace_period),
	KUNIT_CASE(cancel_sync_waits_for_the_grace_period),
	KUNIT_CASE(cancel_sync_waits_for_the_graced_run),
	KUNIT_CASE(cancel_finds_it_after_the_grace_period),
	KUNIT_CASE(disposed_batch_waits_for_the_grace_period),
	KUNIT_CASE(rcu_work_may_be_freed),
	{}
};

static struct kunit_suite delay_suite = {
	.name = "fairwq_delay",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = delay_cases,
};

kunit_test_suite(delay_suite);

MODULE_DESCRIPTION("KUnit: delayed works and works after a grace period");
MODULE_LICENSE("GPL");
