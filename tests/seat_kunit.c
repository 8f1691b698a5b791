// SPDX-License-Identifier: GPL-2.0
/*
 * Seats: an item that sleeps, and says nothing of it, loses its seat to another
 * one. Order and limits count it all the same, and it pays for no more than its
 * seat.
 */
#include <linux/atomic.h>
#include <linux/sched.h>

#include "lib/client.h"
#include "lib/look.h"

/* What the items of a case share. */
static struct {
	atomic_t asleep, spinning, ended;
	struct completion wake;		/* ends all sleeps */
	atomic_t stop;			/* so many may end their spin */
	atomic_t polling;		/* poller_fn() that have begun */
} hall;

struct sleeper {
	struct fairwq_work work;
	struct completion done;
	bool spins;			/* runs after its sleep, until it may stop */
	bool brackets;			/* burns in a section that may block */
	u64 slept, ran;			/* ns: asleep; on a CPU after that */
	u64 burn;			/* ns of a CPU to use after the sleep */
};

static void sleeper_fn(struct fairwq_work *work)
{
	struct sleeper *sleeper = container_of(work, struct sleeper, work);
	u64 from = ktime_get_ns();

	atomic_inc(&hall.asleep);
	wait_for_completion(&hall.wake);
	atomic_dec(&hall.asleep);
	sleeper->slept = ktime_get_ns() - from;
	if (sleeper->brackets)
		fairwq_block_begin();
	if (sleeper->burn)
		sleeper->ran = mock_burn(sleeper->burn);
	if (sleeper->brackets)
		fairwq_block_end();
	if (sleeper->spins) {
		atomic_inc(&hall.spinning);
		while (atomic_dec_if_positive(&hall.stop) < 0)
			cond_resched();
		atomic_dec(&hall.spinning);
	}
	atomic_inc(&hall.ended);
	complete(&sleeper->done);
}

static struct sleeper *sleepers(struct kunit *test, unsigned int nr)
{
	struct sleeper *sleeper = kunit_kcalloc(test, nr, sizeof(*sleeper), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, sleeper);
	for (i = 0; i < nr; i++) {
		fairwq_work_init(&sleeper[i].work, sleeper_fn);
		init_completion(&sleeper[i].done);
	}
	return sleeper;
}

static void queue_sleepers(struct kunit *test, struct fairwq_batch *batch,
			   struct sleeper *sleeper, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		KUNIT_EXPECT_EQ(test, 1, fairwq_queue(batch, &sleeper[i].work));
}

/* Make a pool, whose gate is open. Return: the batch "a". */
static struct fairwq_batch *begin(struct kunit *test, const struct fairwq_pool_attrs *attrs)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	memset(&hall, 0, sizeof(hall));
	init_completion(&hall.wake);
	mock->max_in_flight = attrs->max_in_flight ?: FAIRWQ_MAX_ACTIVE;
	a = mock_begin_by(test, attrs->max_active, attrs->policy);
	mock_free_runners(test);
	return a;
}

/* Wake all, and wait for the end of @nr. So a case that has failed ends, too. */
static void wake_up_all_of(struct sleeper *sleeper, unsigned int nr)
{
	unsigned int i;

	atomic_set(&hall.stop, INT_MAX / 2);
	complete_all(&hall.wake);
	for (i = 0; i < nr; i++)
		fairwq_work_cancel_sync(&sleeper[i].work);
}

/* ---- an item sleeps, and others run -------------------------------------- */

/* With one seat, an item runs while the one before it sleeps. */
static void item_runs_beside_one_that_sleeps(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, &(struct fairwq_pool_attrs){ .max_active = 1 });
	struct sleeper *sleeper = sleepers(test, 1);
	struct mock *mock = test->priv;
	bool ran;

	queue_sleepers(test, a, sleeper, 1);
	mock_until(test, atomic_read(&hall.asleep) == 1);
	mock_queue(test, a, 'a', 1);
	ran = mock_within(READ_ONCE(mock->log.nr) == 1);
	KUNIT_EXPECT_TRUE(test, ran);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&hall.asleep));
	wake_up_all_of(sleeper, 1);
}

#define RELAYS	40U

/* An item that waits for one that is queued behind it; to a pool, or to a workqueue. */
struct relay {
	struct fairwq_work item[2];
	struct work_struct work[2];
	struct completion wake, done;
	u64 took[2][RELAYS];
};

static void relay_wait(struct relay *relay)
{
	wait_for_completion(&relay->wake);
	complete(&relay->done);
}

static void relay_wait_fn(struct fairwq_work *work)
{
	relay_wait(container_of(work, struct relay, item[0]));
}

static void relay_wake_fn(struct fairwq_work *work)
{
	complete(&container_of(work, struct relay, item[1])->wake);
}

static void relay_wait_wq_fn(struct work_struct *work)
{
	relay_wait(container_of(work, struct relay, work[0]));
}

static void relay_wake_wq_fn(struct work_struct *work)
{
	complete(&container_of(work, struct relay, work[1])->wake);
}

/*
 * No tick is needed for that. A workqueue that may run many items does the same
 * in the same moment.
 */
static void item_runs_at_once_beside_one_that_sleeps(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, &(struct fairwq_pool_attrs){ .max_active = 1 });
	struct workqueue_struct *wq;
	struct relay *relay = kunit_kzalloc(test, sizeof(*relay), GFP_KERNEL);
	unsigned int i, k, side;
	u64 began, took, control;

	if (!MOCK_NOTIFIED)
		kunit_skip(test, "a kernel without CONFIG_PREEMPT_NOTIFIERS");
	KUNIT_ASSERT_NOT_NULL(test, relay);
	wq = alloc_workqueue("relay", WQ_UNBOUND, 0);
	KUNIT_ASSERT_NOT_NULL(test, wq);
	fairwq_work_init(&relay->item[0], relay_wait_fn);
	fairwq_work_init(&relay->item[1], relay_wake_fn);
	INIT_WORK(&relay->work[0], relay_wait_wq_fn);
	INIT_WORK(&relay->work[1], relay_wake_wq_fn);
	init_completion(&relay->wake);
	init_completion(&relay->done);
	for (i = 0; i < 2 * RELAYS; i++) {
		side = i % 2;
		began = ktime_get_ns();
		for (k = 0; k < 2; k++)
			if (side)
				queue_work(wq, &relay->work[k]);
			else
				KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &relay->item[k]));
		mock_await(test, &relay->done);
		relay->took[side][i / 2] = ktime_get_ns() - began;
		fairwq_batch_flush(a);
		flush_workqueue(wq);
	}
	destroy_workqueue(wq);
	took = mock_median(relay->took[0], RELAYS);
	control = mock_median(relay->took[1], RELAYS);
	kunit_info(test, "median, us: pool %llu, workqueue %llu\n", div_u64(took, 1000),
		   div_u64(control, 1000));
	KUNIT_EXPECT_LE(test, took, 3 * control + TICK_NSEC / 2);
}

/* The same, where the item was queued before the other one began to sleep. */
static void item_that_waits_already_runs_too(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, &(struct fairwq_pool_attrs){ .max_active = 1 });
	struct sleeper *sleeper = sleepers(test, 1);
	struct mock *mock = test->priv;

	if (MOCK_NOTIFIED)
		mock_no_ticks(mock->pool);
	fairwq_batch_pause(a);
	queue_sleepers(test, a, sleeper, 1);
	mock_queue(test, a, 'a', 3);
	fairwq_batch_resume(a);
	KUNIT_EXPECT_TRUE(test, mock_within(READ_ONCE(mock->log.nr) == 3));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&hall.asleep));
	wake_up_all_of(sleeper, 1);
}

struct poller {
	struct fairwq_work work;
	bool *stop;
	bool timed_out;
};

/* Look now and then whether to stop, and @pause in between. */
static void poll(struct fairwq_work *work, void (*pause)(void))
{
	struct poller *poller = container_of(work, struct poller, work);
	struct mock_bound bound = mock_bound(MOCK_WAIT_MS);

	atomic_inc(&hall.polling);
	while (!READ_ONCE(*poller->stop) && !poller->timed_out) {
		pause();
		poller->timed_out = mock_bound_reached(&bound);
	}
}

static void sleep_for_a_tick(void)
{
	schedule_timeout_uninterruptible(1);
}

/* A tick of the pool may never find this asleep. */
static void poller_fn(struct fairwq_work *work)
{
	poll(work, sleep_for_a_tick);
}

static void nap_and_compute(void)
{
	u64 end;

	usleep_range(10, 20);
	end = ktime_get_ns() + TICK_NSEC / 32;
	while (ktime_get_ns() < end)
		cond_resched();
}

/* Nap for some microseconds, over and over, and use a CPU for much longer in between. */
static void napper_fn(struct fairwq_work *work)
{
	poll(work, nap_and_compute);
}

static void compute(void)
{
	cond_resched();
}

static void spinner_fn(struct fairwq_work *work)
{
	poll(work, compute);
}

struct stopper {
	struct fairwq_work work;
	bool stop;
};

static void stopper_fn(struct fairwq_work *work)
{
	WRITE_ONCE(container_of(work, struct stopper, work)->stop, true);
}

/* An item that sleeps most of the time has no seat, though it wakes up at each tick. */
static void item_runs_beside_one_that_polls(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, &(struct fairwq_pool_attrs){ .max_active = 1 });
	struct stopper stopper = { };
	struct poller poller = { .stop = &stopper.stop };
	unsigned int round;

	fairwq_work_init_onstack(&poller.work, poller_fn);
	fairwq_work_init_onstack(&stopper.work, stopper_fn);
	for (round = 0; round < 20 && !poller.timed_out; round++) {
		stopper.stop = false;
		KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &poller.work));
		KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &stopper.work));
		fairwq_work_flush(&poller.work);
		fairwq_work_flush(&stopper.work);
	}
	KUNIT_EXPECT_FALSE(test, poller.timed_out);
}

/*
 * They must not need more CPUs than there are: one that waits for a CPU for two
 * ticks, and has a seat, counts as computing. With lockdep a nap takes long.
 */
#define NAPPERS	(IS_ENABLED(CONFIG_PROVE_LOCKING) ? 4U : 16U)

/*
 * Items that nap have no seats for long, but they may have all of them at each
 * moment. One of two seats is that of an item that computes.
 */
static void item_runs_beside_many_that_nap(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, &(struct fairwq_pool_attrs){ .max_active = 2 });
	struct poller *napper = kunit_kcalloc(test, NAPPERS, sizeof(*napper), GFP_KERNEL);
	struct stopper stopper = { };
	unsigned int i;

	if (!MOCK_NOTIFIED)
		kunit_skip(test, "only ticks find items that sleep, and these use a CPU too much");
	KUNIT_ASSERT_NOT_NULL(test, napper);
	for (i = 0; i < NAPPERS; i++) {
		napper[i].stop = &stopper.stop;
		fairwq_work_init(&napper[i].work, i ? napper_fn : spinner_fn);
		KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &napper[i].work));
	}
	KUNIT_EXPECT_TRUE(test, mock_within(atomic_read(&hall.polling) == NAPPERS));
	fairwq_work_init_onstack(&stopper.work, stopper_fn);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &stopper.work));
	fairwq_work_flush(&stopper.work);
	fairwq_batch_flush(a);
	for (i = 0; i < NAPPERS; i++)
		KUNIT_EXPECT_FALSE(test, napper[i].timed_out);
}

/* With a few seats this takes a tick for each. */
#define BOUND	((unsigned int)(MOCK_WATCHED || MOCK_PLANTED ? 64 : FAIRWQ_MAX_ACTIVE))

static void wake_fn(struct fairwq_work *work)
{
	complete_all(&hall.wake);
}

/* Items wait for one that is queued behind them, one less than may be in flight. */
static void items_may_wait_for_a_later_one(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, &(struct fairwq_pool_attrs){
		.max_active = 2, .max_in_flight = BOUND });
	struct sleeper *sleeper = sleepers(test, BOUND - 1);
	struct fairwq_work last;

	fairwq_work_init_onstack(&last, wake_fn);
	queue_sleepers(test, a, sleeper, BOUND - 1);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &last));
	KUNIT_EXPECT_TRUE(test, mock_within(atomic_read(&hall.ended) == BOUND - 1));
	wake_up_all_of(sleeper, BOUND - 1);
	fairwq_work_cancel_sync(&last);
}

/* ---- limits ------------------------------------------------------------- */

/* Wait until the pool reports that no seat is left. None of its items is reported as hung. */
static void expect_standstill_report(struct kunit *test, struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;

	raw_spin_lock_irq(&pool->lock);
	list_for_each_entry(runner, &pool->crew.runners, node)
		runner->reported = READ_ONCE(runner->started);
	raw_spin_unlock_irq(&pool->lock);
	pr_info("# expect-splat begin pool mock: no seat is left\n");
	fairwq_set_hung_ms(pool, 100);
	mock_until(test, READ_ONCE(pool->watch.full_told));
	fairwq_set_hung_ms(pool, 0);
	pr_info("# expect-splat end\n");
}

/* As many items as may be in flight sleep: nothing begins until one has ended. */
static void at_the_bound_nothing_begins(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, &(struct fairwq_pool_attrs){
		.max_active = 2, .max_in_flight = 5 });
	struct sleeper *sleeper = sleepers(test, 5);
	struct mock *mock = test->priv;

	queue_sleepers(test, a, sleeper, 5);
	mock_until(test, atomic_read(&hall.asleep) == 5);
	mock_queue(test, a, 'a', 1);
	mock_until(test, !READ_ONCE(mock->pool->crew.seats));
	expect_standstill_report(test, mock->pool);
	KUNIT_EXPECT_EQ(test, 0U, READ_ONCE(mock->log.nr));
	KUNIT_EXPECT_EQ(test, 5, atomic_read(&hall.asleep));
	complete(&hall.wake);
	KUNIT_EXPECT_TRUE(test, mock_within(READ_ONCE(mock->log.nr) == 1));
	wake_up_all_of(sleeper, 5);
}

/* The same, if the items look for something now and then: that is reported, too. */
static void standstill_of_pollers_is_reported(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, &(struct fairwq_pool_attrs){
		.max_active = 1, .max_in_flight = 2 });
	struct poller poller[2];
	struct mock *mock = test->priv;
	bool stop = false;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		poller[i] = (struct poller){ .stop = &stop };
		fairwq_work_init_onstack(&poller[i].work, poller_fn);
		KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &poller[i].work));
	}
	mock_until(test, atomic_read(&hall.polling) == 2);
	mock_queue(test, a, 'a', 1);
	expect_standstill_report(test, mock->pool);
	KUNIT_EXPECT_EQ(test, 0U, READ_ONCE(mock->log.nr));
	WRITE_ONCE(stop, true);
	for (i = 0; i < 2; i++) {
		fairwq_work_flush(&poller[i].work);
		KUNIT_EXPECT_FALSE(test, poller[i].timed_out);
	}
	mock_until(test, READ_ONCE(mock->log.nr) == 1);
}

/* Items that have slept run on. Until enough of them have ended, no other one begins. */
static void seats_are_as_many_as_ever(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, &(struct fairwq_pool_attrs){ .max_active = 2 });
	struct sleeper *sleeper = sleepers(test, 6);
	struct mock *mock = test->priv;
	unsigned int i;

	for (i = 0; i < 6; i++)
		sleeper[i].spins = true;
	queue_sleepers(test, a, sleeper, 6);
	mock_until(test, READ_ONCE(mock->pool->crew.nr_asleep) == 6);
	complete_all(&hall.wake);
	mock_until(test, atomic_read(&hall.spinning) == 6);
	mock_tick(mock->pool);		/* as while something waits */
	KUNIT_EXPECT_TRUE(test, mock_within(READ_ONCE(mock->pool->crew.nr_active) == 6));
	KUNIT_EXPECT_TRUE(test, mock_within(!READ_ONCE(mock->pool->crew.nr_napping)));
	mock_queue(test, a, 'a', 1);
	atomic_set(&hall.stop, 4);	/* two go on */
	KUNIT_EXPECT_TRUE(test, mock_within(atomic_read(&hall.ended) == 4));
	spin_for(20, READ_ONCE(mock->log.nr));
	KUNIT_EXPECT_EQ(test, 0U, READ_ONCE(mock->log.nr));
	wake_up_all_of(sleeper, 6);
	mock_until(test, READ_ONCE(mock->log.nr));
}

/* An item that sleeps counts in max_active of its batch, and others run meanwhile. */
static void batch_of_one_stays_one(struct kunit *test)
{
	const struct fairwq_batch_attrs one = { .max_active = 1 };
	struct fairwq_batch *a = begin(test, &(struct fairwq_pool_attrs){ .max_active = 1 });
	struct sleeper *sleeper = sleepers(test, 2);
	struct mock *mock = test->priv;
	struct fairwq_batch *b = mock_batch_with(test, "one", &one);

	queue_sleepers(test, b, sleeper, 2);
	mock_until(test, atomic_read(&hall.asleep) == 1);
	mock_queue(test, a, 'a', 20);
	mock_until(test, READ_ONCE(mock->log.nr) == 20);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&hall.asleep));
	wake_up_all_of(sleeper, 2);
}

/* The items of a serializer never overlap, though one sleeps and a seat is free. */
static void serializer_stays_in_order(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, &(struct fairwq_pool_attrs){ .max_active = 2 });
	struct sleeper *sleeper = sleepers(test, 2);
	struct mock *mock = test->priv;
	struct fairwq_serializer serializer;
	unsigned int i;

	fairwq_serializer_init(&serializer);
	KUNIT_ASSERT_EQ(test, 0, fairwq_serializer_set_inline(&serializer, 100));
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, 1,
				fairwq_serializer_queue(&serializer, a, &sleeper[i].work));
	mock_until(test, atomic_read(&hall.asleep) == 1);
	mock_queue(test, a, 'a', 20);
	mock_until(test, READ_ONCE(mock->log.nr) == 20);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&hall.asleep));
	KUNIT_EXPECT_TRUE(test, fairwq_work_pending(&sleeper[1].work));
	wake_up_all_of(sleeper, 2);
	fairwq_serializer_destroy(&serializer);
}

/* ---- what it costs -------------------------------------------------------- */

/* A timer that is due at each tick, as that of a pool is, and what it saw. */
static struct {
	struct timer_list timer;
	u64 last, longest;		/* ns: of its last call; between two calls */
} control;

static void control_fn(struct timer_list *timer)
{
	u64 now = ktime_get_ns();

	control.longest = max(control.longest, now - control.last);
	control.last = now;
	mod_timer(timer, jiffies);
}

static void control_begin(void)
{
	control.longest = 0;
	control.last = ktime_get_ns();
	timer_setup(&control.timer, control_fn, 0);
	mod_timer(&control.timer, jiffies);
}

/* What @batch was charged for @sleeper, which sleeps for 20 ticks, or longer, alone. */
static u64 charge_of(struct kunit *test, struct fairwq_batch *batch, struct sleeper *sleeper)
{
	u64 before = READ_ONCE(batch->node.service);

	queue_sleepers(test, batch, sleeper, 1);
	mock_until(test, atomic_read(&hall.asleep) == 1);
	schedule_timeout_uninterruptible(20);
	complete(&hall.wake);
	mock_await(test, &sleeper->done);
	fairwq_batch_flush(batch);
	return READ_ONCE(batch->node.service) - before;
}

/*
 * An item pays for no more of its sleep than two ticks, as long as they are in
 * this moment. However long the host stops the guest: what it is charged and
 * what it sleeps are no more than all.
 */
static void item_does_not_pay_for_its_sleep(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, &(struct fairwq_pool_attrs){
		.max_active = 1, .policy = FAIRWQ_FAIR_TIME });
	struct sleeper *sleeper = sleepers(test, 1);
	u64 began = ktime_get_ns(), charged;

	control_begin();
	charged = charge_of(test, a, sleeper);
	began = ktime_get_ns() - began;
	timer_delete_sync(&control.timer);
	kunit_info(test, "slept %llu us, charged %llu us, a tick took up to %llu us\n",
		   div_u64(sleeper->slept, 1000), div_u64(charged, 1000),
		   div_u64(control.longest, 1000));
	KUNIT_EXPECT_GE(test, sleeper->slept, 18ULL * TICK_NSEC);
	KUNIT_EXPECT_LE(test, charged, began - sleeper->slept + 2 * control.longest + TICK_NSEC);
}

/* What it runs after that is not for free, nor in a section, if the scheduler tells. */
static void item_pays_for_what_it_runs(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, &(struct fairwq_pool_attrs){
		.max_active = 1, .policy = FAIRWQ_FAIR_TIME });
	struct sleeper *sleeper = sleepers(test, 2);
	unsigned int i;
	u64 charged;

	sleeper[1].brackets = true;
	for (i = 0; i < 1 + MOCK_NOTIFIED; i++) {
		reinit_completion(&hall.wake);
		sleeper[i].burn = 30ULL * TICK_NSEC;
		charged = charge_of(test, a, &sleeper[i]);
		/* Up to a tick may be missing when it has its seat back, and when it ends. */
		KUNIT_EXPECT_GE(test, charged + 2ULL * TICK_NSEC, sleeper[i].ran);
	}
}

static struct kunit_case seat_cases[] = {
	KUNIT_CASE(item_runs_beside_one_that_sleeps),
	KUNIT_CASE(item_runs_at_once_beside_one_that_sleeps),
	KUNIT_CASE(item_that_waits_already_runs_too),
	KUNIT_CASE(item_runs_beside_one_that_polls),
	KUNIT_CASE(item_runs_beside_many_that_nap),
	KUNIT_CASE(items_may_wait_for_a_later_one),
	KUNIT_CASE(at_the_bound_nothing_begins),
	KUNIT_CASE(standstill_of_pollers_is_reported),
	KUNIT_CASE(seats_are_as_many_as_ever),
	KUNIT_CASE(batch_of_one_stays_one),
	KUNIT_CASE(serializer_stays_in_order),
	KUNIT_CASE(item_does_not_pay_for_its_sleep),
	KUNIT_CASE(item_pays_for_what_it_runs),
	{ }
};

static struct kunit_suite seat_suite = {
	.name = "fairwq_seat",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = seat_cases,
};

kunit_test_suite(seat_suite);

MODULE_DESCRIPTION("KUnit: items that sleep, and those that run meanwhile");
MODULE_LICENSE("GPL");
