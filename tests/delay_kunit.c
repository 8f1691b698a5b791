// SPDX-License-Identifier: GPL-2.0
/*
 * Works that are queued later: after a delay, or after a grace period
 * (promises 1, 8 and 11).
 */
#include "lib/hook.h"

#define HOUR	(3600UL * HZ)	/* never, as far as a test can tell */

/* A delayed item that writes its letter into the log. */
struct later {
	struct fairwq_delayed_work dwork;
	struct mock_log *log;
	struct fairwq_batch *batch;
	unsigned long ran_at;		/* jiffies */
	unsigned int runs;
	int ret;
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

/* Bad input: an error, and nothing is changed. */
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

/* Without a delay it is queued at once, in its place. */
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

/* Pending from the call on, not started before the time, started after it. */
static void runs_after_the_delay(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct later *later = later_new(test, a, later_fn);
	unsigned long due = jiffies + 3;

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, 3));
	mock_until(test, READ_ONCE(later->runs) == 1);
	KUNIT_EXPECT_TRUE(test, time_after_eq(later->ran_at, due));
	fairwq_batch_flush(a);
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&later->dwork.work));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&a->nr_pins));
}

/* It takes its place in the order when its time has come. */
static void place_is_taken_when_the_time_has_come(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct later *later = later_new(test, a, later_fn);

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	mock_queue_item(test, a, 'a');
	mod_timer(&later->dwork.timer, jiffies + 1);	/* an hour later */
	mock_until(test, !atomic_read(&a->nr_pins));
	mock_queue_item(test, a, 'b');
	mock_expect(test, "axb");
}

/* While it waits it is pending, and a flush of the batch does not wait for it. */
static void pending_during_the_delay(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct later *later = later_new(test, a, later_fn);
	struct mock *mock = test->priv;

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_TRUE(test, fairwq_work_pending(&later->dwork.work));
	KUNIT_EXPECT_EQ(test, 0, fairwq_queue_delayed(a, &later->dwork, 1));
	KUNIT_EXPECT_EQ(test, 0, fairwq_queue(a, &later->dwork.work));
	fairwq_batch_flush(a);
	/* Nor does that of the work, which is not queued yet. */
	KUNIT_EXPECT_FALSE(test, fairwq_work_flush(&later->dwork.work));
	KUNIT_EXPECT_EQ(test, 0UL, fairwq_batch_cancel(a, NULL));
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_cancel(&later->dwork));
	KUNIT_EXPECT_FALSE(test, fairwq_delayed_work_cancel(&later->dwork));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&later->dwork.work));
	KUNIT_EXPECT_FALSE(test, timer_pending(&later->dwork.timer));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&a->nr_pins));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_cancel_sync(&later->dwork));
	KUNIT_EXPECT_FALSE(test, fairwq_delayed_work_cancel_sync(&later->dwork));
	KUNIT_EXPECT_EQ(test, 0U, mock->log.nr);
}

/* The time comes at once, and the flush waits for the run. */
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
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&a->nr_pins));
}

/* Room is taken from the call on, and given back by a cancel. */
static void max_queued_counts_what_waits(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_queued = 2 };
	struct later *later;
	struct fairwq_batch *a = mock_begin_with(test, 1, &attrs);

	later = later_new(test, a, later_fn);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	mock_queue_item(test, a, 'a');
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
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&a->nr_queued));
}

/* Neither is a disabled one queued, nor does one wait while it is. */
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
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&a->nr_pins));
	KUNIT_EXPECT_TRUE(test, fairwq_work_enable(work));
	KUNIT_EXPECT_EQ(test, 0, fairwq_mod_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_TRUE(test, fairwq_work_disable_sync(work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_enable(work));
}

/* The namesakes of those for a plain work do the same. */
static void delayed_namesakes(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct later *later = later_new(test, a, later_fn);
	struct fairwq_delayed_work *dwork = &later->dwork;

	KUNIT_EXPECT_FALSE(test, fairwq_delayed_work_pending(dwork));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, dwork, HOUR));
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_pending(dwork));
	KUNIT_EXPECT_EQ(test, FAIRWQ_BUSY_PENDING, fairwq_work_busy(&dwork->work));
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_disable(dwork));
	KUNIT_EXPECT_FALSE(test, fairwq_delayed_work_pending(dwork));
	KUNIT_EXPECT_FALSE(test, fairwq_delayed_work_disable_sync(dwork));
	KUNIT_EXPECT_FALSE(test, fairwq_delayed_work_enable(dwork));
	KUNIT_EXPECT_EQ(test, -ECANCELED, fairwq_queue_delayed(a, dwork, HOUR));
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_enable(dwork));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, dwork, 1));
	mock_expect(test, "x");
}

/* A deferrable one has a timer that does not wake an idle CPU, and runs like any other. */
static void deferrable_delay(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct later *later = later_new(test, a, later_fn);

	KUNIT_EXPECT_FALSE(test, later->dwork.timer.flags & TIMER_DEFERRABLE);
	fairwq_delayed_work_init_deferrable(&later->dwork, later_fn);
	KUNIT_EXPECT_TRUE(test, later->dwork.timer.flags & TIMER_DEFERRABLE);
	KUNIT_EXPECT_TRUE(test, later->dwork.timer.flags & TIMER_IRQSAFE);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_cancel(&later->dwork));
	migrate_disable();	/* this CPU must not be idle */
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, 1));
	KUNIT_EXPECT_TRUE(test, spin_for(MOCK_SPIN_MS, !timer_pending(&later->dwork.timer)));
	migrate_enable();
	mock_expect(test, "x");
}

/* CONFIG_DEBUG_OBJECTS_TIMERS warns about a timer on the stack that is not set up as one. */
static void delay_on_the_stack(struct kunit *test)
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
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&a->nr_pins));
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(a, &later->dwork, 1));
	mock_expect(test, "x");
	KUNIT_EXPECT_EQ(test, 0, fairwq_mod_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(a, &later->dwork, 0));
	mock_expect(test, "xx");
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 2U, mock->log.nr);
}

/* Out of the queue into a delay, into another batch, and back to the tail. */
static void mod_of_what_is_queued(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1), *b = mock_batch(test, "b");
	struct later *later = later_new(test, a, later_fn);

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, 0));
	mock_queue_item(test, a, 'a');
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&a->nr_pins));
	mock_queue_item(test, b, 'b');
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(b, &later->dwork, 0));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&a->nr_pins));
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(a, &later->dwork, 0));
	mock_queue_item(test, a, 'c');
	mock_expect(test, "abxc");
	fairwq_batch_dispose(b);
}

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

/* A function may put off its own next run: it is idle by then. */
static void mod_from_the_own_function(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct later *later = later_new(test, a, mod_itself_fn);

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, 0));
	mock_expect(test, "xx");
	KUNIT_EXPECT_EQ(test, 0, later->ret);
}

/* A batch that is full refuses what is not in it, and takes nothing out of where it is. */
static void mod_into_a_full_batch(struct kunit *test)
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
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&b->nr_pins));
	/* In its own batch it has its room. */
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&item->work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(a, &later->dwork, 0));
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&a->nr_queued));
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(a, &later->dwork, 1));
	mock_expect(test, "x");
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&a->nr_queued));
	fairwq_batch_dispose(b);
}

/* What happens between the two halves of a call, once the timer was deleted. */
static struct {
	struct fairwq_batch *batch;
	struct fairwq_work *work;
	void (*then)(struct fairwq_batch *batch, struct fairwq_work *work);
} between;

static void between_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	void (*then)(struct fairwq_batch *batch, struct fairwq_work *work) = between.then;

	if (point != FAIRWQ_POINT_DELAY_DELETED || batch != between.batch || !then)
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

/* As if another item took the room that is about to be given back. */
static void then_fill(struct fairwq_batch *batch, struct fairwq_work *work)
{
	atomic_inc(&batch->nr_queued);
}

static void then_disable(struct fairwq_batch *batch, struct fairwq_work *work)
{
	WRITE_ONCE(work->disabled, work->disabled + 1);
}

/* A batch that is disposed when the work was taken out has accepted it. */
static void mod_beside_a_dispose(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1), *b = mock_batch(test, "b");
	struct later *later = later_new(test, b, later_fn);

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(b, &later->dwork, HOUR));
	fairwq_batch_get(b);
	KUNIT_EXPECT_EQ(test, 1, mod_with(b, later, 1, then_dispose, NULL));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_queue(b, &mock_item(test, 'z')->work));
	mock_queue_item(test, a, 'a');
	mock_until(test, !atomic_read(&b->nr_pins));
	mock_expect(test, "ax");
	fairwq_batch_put(b);
}

/* Nor does another item that takes the room of the work make it lose its place. */
static void mod_beside_a_queue_call(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_queued = 1 };
	struct fairwq_batch *a = mock_begin_with(test, 1, &attrs);
	struct later *later = later_new(test, a, later_fn);

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_EQ(test, 1, mod_with(a, later, 0, then_fill, NULL));
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&a->nr_queued));
	atomic_dec(&a->nr_queued);
	KUNIT_EXPECT_EQ(test, -EAGAIN, fairwq_queue(a, &mock_item(test, 'z')->work));
	mock_expect(test, "x");
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&a->nr_queued));
}

/* Disabled in between: it is not pending, as after any disable, and holds nothing. */
static void mod_beside_a_disable(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_queued = 1 };
	struct fairwq_batch *a = mock_begin_with(test, 1, &attrs);
	struct later *later = later_new(test, a, later_fn);
	struct fairwq_work *work = &later->dwork.work;

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	KUNIT_EXPECT_EQ(test, -ECANCELED, mod_with(a, later, HOUR, then_disable, work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(work));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&a->nr_pins));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&a->nr_queued));
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

static void from_hardirq(struct kunit *test)
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

/* ---- on the way into the queue ---------------------------------------- */

static struct {
	struct fairwq_batch *batch;
	struct fairwq_work *work;
	bool (*then)(struct fairwq_work *work);
	bool ret;
	int queued;
} arriving;

/* The work was accepted, or its time has come, and it is not pushed yet; once. */
static void arriving_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	struct fairwq_work *work = arriving.work;

	if (point != FAIRWQ_POINT_QUEUE_ACCEPTED || batch != arriving.batch || !work)
		return;
	arriving.work = NULL;
	arriving.ret = arriving.then(work);
}

static void arriving_set(struct fairwq_batch *batch, struct fairwq_work *work,
			 bool (*then)(struct fairwq_work *work))
{
	memset(&arriving, 0, sizeof(arriving));
	arriving.batch = batch;
	arriving.work = work;
	arriving.then = then;
	fairwq_test_set_hook(arriving_hook);
}

static struct {
	struct fairwq_batch *batch;
	bool arriving, looked, pushed, timed_out;
} firing;

/* The delay is over, with interrupts off, and another CPU looks for the work. */
static void firing_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (batch != firing.batch)
		return;
	if (point == FAIRWQ_POINT_QUEUE_ACCEPTED) {
		step_done(&firing.arriving);
		firing.timed_out |= !spin_until(&firing.looked);
	} else if (point == FAIRWQ_POINT_LOOK && READ_ONCE(firing.arriving)) {
		step_done(&firing.looked);
	} else if (point == FAIRWQ_POINT_QUEUE_PUSHED) {
		step_done(&firing.pushed);
	}
}

/* @held: so that it is not started before it is looked for again. */
static struct call *firing_begin(struct kunit *test, struct later **later, bool held)
{
	struct fairwq_batch *a;
	struct call *call;

	mock_pool(test, 2, FAIRWQ_ROUND_ROBIN);
	a = mock_batch(test, "a");
	*later = later_new(test, a, later_fn);
	memset(&firing, 0, sizeof(firing));
	firing.batch = a;
	if (held)
		fairwq_batch_pause(a);
	fairwq_test_set_hook(firing_hook);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &(*later)->dwork, HOUR));
	/* As the timer does. */
	call = mock_call_start_apart(test, flush_delayed, &(*later)->dwork.work);
	KUNIT_ASSERT_TRUE(test, spin_until(&firing.arriving));
	return call;
}

static void firing_end(struct kunit *test, struct call *call)
{
	mock_call_end(test, call);
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_FALSE(test, firing.timed_out);
	KUNIT_EXPECT_TRUE(test, firing.pushed);
	fairwq_batch_resume(firing.batch);
	fairwq_batch_flush(firing.batch);
	fairwq_batch_dispose(firing.batch);
}

/* A cancel waits for the push: when it returns, no CPU is at the work any longer. */
static void cancel_while_the_delay_ends(struct kunit *test)
{
	struct later *later;
	struct call *call;

	need_two_cpus(test);
	call = firing_begin(test, &later, true);
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&later->dwork.work));
	/* It left no word, which would still be there. */
	KUNIT_EXPECT_EQ(test, 0L, atomic_long_read(&later->dwork.work.data));
	KUNIT_EXPECT_EQ(test, 0U, READ_ONCE(firing.batch->nr_canceled));
	firing_end(test, call);
	KUNIT_EXPECT_EQ(test, 0U, later->runs);
}

/* A flush waits for the run: the delay is over. */
static void flush_while_the_delay_ends(struct kunit *test)
{
	struct later *later;
	struct call *call;

	need_two_cpus(test);
	call = firing_begin(test, &later, false);
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_flush(&later->dwork));
	KUNIT_EXPECT_EQ(test, 1U, later->runs);
	firing_end(test, call);
}

/* And a new delay comes in its place. */
static void mod_while_the_delay_ends(struct kunit *test)
{
	struct later *later;
	struct call *call;

	need_two_cpus(test);
	call = firing_begin(test, &later, true);
	KUNIT_EXPECT_EQ(test, 1, fairwq_mod_delayed(later->batch, &later->dwork, HOUR));
	KUNIT_EXPECT_TRUE(test, timer_pending(&later->dwork.timer));
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_cancel_sync(&later->dwork));
	firing_end(test, call);
	KUNIT_EXPECT_EQ(test, 0U, later->runs);
}

static bool mod_by_an_hour(struct fairwq_work *work)
{
	return fairwq_mod_delayed(arriving.batch, &to_later(work)->dwork, HOUR) == 1;
}

/* An interrupt on top of a queue call cannot put it off: it runs, once. */
static void mod_on_top_of_a_push(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct later *later = later_new(test, a, later_fn);

	arriving_set(a, &later->dwork.work, mod_by_an_hour);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, 0));
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_TRUE(test, arriving.ret);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 1U, later->runs);
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&later->dwork.work));
	KUNIT_EXPECT_EQ(test, 0U, a->nr_canceled);
}

/* ---- a hard interrupt on top of a cancel ------------------------------ */

#define DELETED_LOOKS	20000	/* more than that is for ever */

/* What an interrupt does that comes when the timer was deleted. */
static struct {
	struct irq_work irq_work;
	struct later *later;
	bool (*then)(struct fairwq_work *work);
	unsigned int looks;
	bool reached, on_top, done, stuck, ret, timed_out;
} deleted;

static void deleted_irq_fn(struct irq_work *irq_work)
{
	deleted.on_top = in_hardirq();
	deleted.ret = deleted.then(&deleted.later->dwork.work);
	step_done(&deleted.done);
}

/*
 * The interrupt is sent. It comes here, if interrupts are on, or when the
 * cancel is through. If it finds no end, it is helped out.
 */
static void deleted_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (batch != deleted.later->batch)
		return;
	if (point == FAIRWQ_POINT_DELAY_DELETED && !deleted.reached) {
		deleted.reached = true;
		irq_work_queue(&deleted.irq_work);
		/* Pairs with step_done(). */
		spin_for(20, smp_load_acquire(&deleted.done));
	} else if (point == FAIRWQ_POINT_LOOK && in_hardirq() &&
		   ++deleted.looks > DELETED_LOOKS) {
		deleted.stuck = true;
		atomic_long_set(&deleted.later->dwork.work.data, 0);
	}
}

/*
 * A delayed work is cancelled, and on top of that a hard interrupt does @then.
 */
static struct later *deleted_begin(struct kunit *test, bool (*then)(struct fairwq_work *work))
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct later *later = later_new(test, a, later_fn);
	bool canceled;

	memset(&deleted, 0, sizeof(deleted));
	deleted.later = later;
	deleted.then = then;
	deleted.irq_work = IRQ_WORK_INIT_HARD(deleted_irq_fn);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	fairwq_test_set_hook(deleted_hook);
	canceled = fairwq_work_cancel(&later->dwork.work);
	deleted.timed_out = !spin_until(&deleted.done);
	fairwq_test_set_hook(NULL);
	irq_work_sync(&deleted.irq_work);
	KUNIT_EXPECT_TRUE(test, canceled);
	KUNIT_EXPECT_TRUE(test, deleted.reached && deleted.on_top);
	KUNIT_EXPECT_FALSE(test, deleted.timed_out);
	KUNIT_EXPECT_FALSE_MSG(test, deleted.stuck, "the interrupt finds no end\n");
	return later;
}

/* It is as after the cancel, and then as the interrupt has left it. */
static void deleted_end(struct kunit *test, struct later *later)
{
	struct fairwq_batch *a = later->batch;

	if (deleted.stuck) {		/* nothing is as it should be */
		timer_delete_sync(&later->dwork.timer);
		atomic_set(&a->nr_pins, 0);
	}
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&later->dwork.work));
	KUNIT_EXPECT_FALSE(test, timer_pending(&later->dwork.timer));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&a->nr_pins));
	KUNIT_EXPECT_EQ(test, 0U, later->runs);
}

static void cancel_on_top_of_a_cancel(struct kunit *test)
{
	struct later *later = deleted_begin(test, fairwq_work_cancel);

	KUNIT_EXPECT_FALSE(test, deleted.ret);
	deleted_end(test, later);
}

static void disable_on_top_of_a_cancel(struct kunit *test)
{
	struct later *later = deleted_begin(test, fairwq_work_disable);

	KUNIT_EXPECT_FALSE(test, deleted.ret);
	KUNIT_EXPECT_EQ(test, -ECANCELED, fairwq_queue_delayed(later->batch, &later->dwork, 1));
	KUNIT_EXPECT_TRUE(test, fairwq_work_enable(&later->dwork.work));
	deleted_end(test, later);
}

static bool deleted_mod(struct fairwq_work *work)
{
	struct later *later = to_later(work);

	later->ret = fairwq_mod_delayed(later->batch, &later->dwork, HOUR);
	return true;
}

static void mod_on_top_of_a_cancel(struct kunit *test)
{
	struct later *later = deleted_begin(test, deleted_mod);

	KUNIT_EXPECT_EQ(test, 0, later->ret);
	if (!deleted.stuck)
		KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&later->dwork.work));
	deleted_end(test, later);
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
	batch = mock_batch_with(test, "counted", &attrs);
	return fairwq_batch_get(batch);
}

/* Queue a work for later to a new batch, and dispose of the batch, which must stay. */
static struct later *dispose_with_a_delay(struct kunit *test, atomic_t **released)
{
	struct fairwq_batch *a;
	struct later *later;

	*released = kunit_kzalloc(test, sizeof(**released), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, *released);
	mock_pool(test, 2, FAIRWQ_ROUND_ROBIN);
	a = counted_batch(test, *released);
	later = later_new(test, a, later_fn);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &later->dwork, HOUR));
	fairwq_batch_dispose(a);
	fairwq_test_settle();
	KUNIT_EXPECT_EQ(test, 0, atomic_read(*released));
	return later;
}

/* What waits was accepted: the batch stays until it has run. */
static void disposed_batch_waits_for_the_delay(struct kunit *test)
{
	atomic_t *released;
	struct later *later = dispose_with_a_delay(test, &released);
	struct fairwq_batch *a = later->batch;

	/* Refused, it stays as it is. */
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_mod_delayed(a, &later->dwork, 1));
	KUNIT_EXPECT_TRUE(test, timer_pending(&later->dwork.timer));
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_flush(&later->dwork));
	KUNIT_EXPECT_EQ(test, 1U, later->runs);
	mock_until(test, atomic_read(released) == 1);
	fairwq_batch_put(a);
}

/* A cancel of what waits lets the batch go. */
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

struct destroy {
	struct fairwq_work work;	/* only to be found by */
	struct fairwq_pool *pool;
};

static bool destroy_pool(struct fairwq_work *work)
{
	fairwq_pool_destroy(container_of(work, struct destroy, work)->pool);
	return true;
}

/* A drain does not wait for what waits, nor take it along. */
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

/* A pool waits for what waits, and it is not refused when its time comes. */
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
	/* It has come to the point where the batch refuses. */
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

struct graced {
	struct fairwq_rcu_work rwork;
	struct mock_log *log;
	struct fairwq_batch *batch;
	atomic_t runs;
	int again;			/* how often it queues itself */
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

/* Not while a reader may be at it; pending all the while; not to be cancelled. */
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
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&a->nr_pins));
}

static struct {
	bool (*take)(struct fairwq_work *work);
	bool go, pending, timed_out;
} grace;

/* As soon as it is queued; and what is so when the call has returned. */
static bool grace_take(struct fairwq_work *work)
{
	bool ret;

	grace.timed_out = !spin_until(&grace.go);
	ret = grace.take(work);
	grace.pending = fairwq_work_pending(work);
	return ret;
}

/*
 * What takes a work out and waits does not return before the grace period is
 * over.
 */
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
	/* No runner is free, so it was taken out of the queue. */
	KUNIT_EXPECT_TRUE(test, canceled);
	if (!canceled)
		mock_open(test);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	KUNIT_EXPECT_FALSE(test, grace.timed_out);
	KUNIT_EXPECT_FALSE(test, grace.pending);
	fairwq_rcu_work_flush(&graced->rwork);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&graced->runs));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&a->nr_pins));
}

static void cancel_sync_waits_for_the_grace_period(struct kunit *test)
{
	struct fairwq_batch *a;

	need_two_cpus(test);
	a = mock_begin(test, 1);
	grace_is_awaited_by(test, a, fairwq_work_cancel_sync);
	grace_is_awaited_by(test, a, fairwq_work_disable_sync);
}

/* If it runs by then, that is waited for, too. */
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

/* Once it is in the queue it is as any other. */
static void canceled_after_the_grace_period(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct graced *graced = graced_new(test, a);
	struct fairwq_work *work = &graced->rwork.work;

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_rcu(a, &graced->rwork));
	mock_until(test, !atomic_read(&a->nr_pins));
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_cancel_sync(work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_rcu(a, &graced->rwork));
	mock_until(test, !atomic_read(&a->nr_pins));
	KUNIT_EXPECT_EQ(test, 1UL, fairwq_batch_cancel(a, NULL));
	mock_queue_item(test, a, 'a');
	mock_expect(test, "a");
}

static bool cancel_and_queue_rcu(struct fairwq_work *work)
{
	bool canceled = fairwq_work_cancel(work);

	arriving.queued = fairwq_queue_rcu(arriving.batch, &to_graced(work)->rwork);
	return canceled;
}

/* On its way into the queue it is pending, and that is all that can be done. */
static void rcu_work_on_its_way_is_pending(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct graced *graced = graced_new(test, a);

	arriving_set(a, &graced->rwork.work, cancel_and_queue_rcu);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_rcu(a, &graced->rwork));
	KUNIT_EXPECT_TRUE(test, fairwq_rcu_work_flush(&graced->rwork));
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_FALSE(test, arriving.ret);
	KUNIT_EXPECT_EQ(test, 0, arriving.queued);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&graced->runs));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&graced->rwork.work));
}

/* What a plain queue call still has in its hands would come without a grace period. */
static void plain_call_is_not_revived_after_a_grace_period(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct graced *graced = graced_new(test, a);

	arriving_set(a, &graced->rwork.work, cancel_and_queue_rcu);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &graced->rwork.work));
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_TRUE(test, arriving.ret);
	KUNIT_EXPECT_EQ(test, -EBUSY, arriving.queued);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&graced->runs));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_rcu(a, &graced->rwork));
	KUNIT_EXPECT_TRUE(test, fairwq_rcu_work_flush(&graced->rwork));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&graced->runs));
}

/* The batch stays for it; and its function may queue it again. */
static void disposed_batch_waits_for_the_grace_period(struct kunit *test)
{
	atomic_t *released = kunit_kzalloc(test, sizeof(*released), GFP_KERNEL);
	struct graced *graced;
	struct fairwq_batch *a;

	KUNIT_ASSERT_NOT_NULL(test, released);
	mock_pool(test, 1, FAIRWQ_ROUND_ROBIN);
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

/* What the grace period is there for: the function frees the object. */
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
	KUNIT_CASE(pending_during_the_delay),
	KUNIT_CASE(flush_does_not_wait_for_the_delay),
	KUNIT_CASE(max_queued_counts_what_waits),
	KUNIT_CASE(disabled_does_not_wait),
	KUNIT_CASE(delayed_namesakes),
	KUNIT_CASE(deferrable_delay),
	KUNIT_CASE(delay_on_the_stack),
	KUNIT_CASE(mod_of_what_waits),
	KUNIT_CASE(mod_of_what_is_queued),
	KUNIT_CASE(mod_of_what_is_held_up),
	KUNIT_CASE(mod_from_the_own_function),
	KUNIT_CASE(mod_into_a_full_batch),
	KUNIT_CASE(mod_beside_a_dispose),
	KUNIT_CASE(mod_beside_a_queue_call),
	KUNIT_CASE(mod_beside_a_disable),
	KUNIT_CASE(from_hardirq),
	KUNIT_CASE(cancel_while_the_delay_ends),
	KUNIT_CASE(flush_while_the_delay_ends),
	KUNIT_CASE(mod_while_the_delay_ends),
	KUNIT_CASE(mod_on_top_of_a_push),
	KUNIT_CASE(cancel_on_top_of_a_cancel),
	KUNIT_CASE(disable_on_top_of_a_cancel),
	KUNIT_CASE(mod_on_top_of_a_cancel),
	KUNIT_CASE(disposed_batch_waits_for_the_delay),
	KUNIT_CASE(canceled_delay_lets_the_batch_go),
	KUNIT_CASE(drained_pool_leaves_the_delay),
	KUNIT_CASE(destroyed_pool_waits_for_the_delay),
	KUNIT_CASE(runs_after_a_grace_period),
	KUNIT_CASE(cancel_sync_waits_for_the_grace_period),
	KUNIT_CASE(cancel_sync_waits_for_the_graced_run),
	KUNIT_CASE(canceled_after_the_grace_period),
	KUNIT_CASE(rcu_work_on_its_way_is_pending),
	KUNIT_CASE(plain_call_is_not_revived_after_a_grace_period),
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
