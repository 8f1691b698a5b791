// SPDX-License-Identifier: GPL-2.0
/*
 * Runners: they are work-conserving (promise 7), and lose no wake-up. They
 * repair what an item leaks, and report an item that hangs (promise 12). They
 * return to the workqueue core (promise 13).
 */
#include <linux/cred.h>
#include <linux/irqflags.h>

#include "lib/fixture.h"
#include "lib/look.h"

/* An item that sleeps blocks only its own runner. */
static void sleeper_holds_up_only_itself(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 2);

	/* The gate blocks one runner, and the other one runs all items. */
	mock_queue(test, a, 'a', 500);
	mock_until(test, READ_ONCE(mock->log.nr) == 500);
	/* After it has gone idle it is kicked again. */
	mock_queue(test, a, 'a', 1);
	mock_until(test, READ_ONCE(mock->log.nr) == 501);
}

/* One of two items, of which the first waits for the second. */
struct pair_item {
	struct fairwq_work work;
	struct completion *later;
	bool waits;
	atomic_t *left;
	struct completion *all;
};

static void pair_fn(struct fairwq_work *work)
{
	struct pair_item *item = container_of(work, struct pair_item, work);

	if (item->waits)
		wait_for_completion(item->later);
	else
		complete(item->later);
	if (atomic_dec_and_test(item->left))
		complete(item->all);
}

/* An item may wait for a later one of its own batch. */
static void item_may_wait_for_a_later_one(struct kunit *test)
{
	DECLARE_COMPLETION_ONSTACK(later);
	DECLARE_COMPLETION_ONSTACK(all);
	struct pair_item first = { .waits = true }, second = { };
	struct fairwq_batch *a = mock_begin(test, 3);
	unsigned int round;
	atomic_t left;

	fairwq_work_init_onstack(&first.work, pair_fn);
	fairwq_work_init_onstack(&second.work, pair_fn);
	first.later = &later;
	first.left = &left;
	first.all = &all;
	second.later = &later;
	second.left = &left;
	second.all = &all;
	for (round = 0; round < MOCK_MANY(10000); round++) {
		reinit_completion(&later);
		reinit_completion(&all);
		atomic_set(&left, 2);
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &first.work));
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &second.work));
		mock_await(test, &all);
		fairwq_batch_flush(a);
	}
}

static void nap_fn(struct fairwq_work *work)
{
	usleep_range(1000, 2000);	/* any time will do: it sleeps */
}

/* After an item that slept, a batch is not quick any more. A gate may open too soon to sleep. */
static void sleeper_is_not_quick(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct fairwq_batch *a = mock_begin(test, 2);
	struct fairwq_work nap;

	mock_set_guess(a, 100);
	mock_gate_enter(test, a, gate);
	KUNIT_EXPECT_TRUE(test, a->quick);
	complete_all(&gate->open);
	fairwq_work_init_onstack(&nap, nap_fn);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &nap));
	fairwq_batch_flush(a);
	mock_let_settle(a);
	KUNIT_EXPECT_FALSE(test, a->quick);
}

/*
 * No other runner is kicked for quick items. If one of them sleeps, the pool's
 * timer finds that, and the items behind it run in their order.
 */
static void sleeper_among_quick_ones_is_found(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 2);

	mock_queue(test, a, 'a', 1000);
	fairwq_batch_flush(a);
	fairwq_batch_pause(a);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &gate->work));
	mock_queue(test, a, 'b', 10);
	fairwq_batch_resume(a);
	mock_await(test, &gate->entered);
	mock_queue(test, a, 'c', 1);
	mock_open(test);
	mock_until(test, READ_ONCE(mock->log.nr) == 1011);
	KUNIT_EXPECT_STREQ(test, &mock->log.text[1000], "bbbbbbbbbbc");
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&gate->runs));
	complete_all(&gate->open);
	fairwq_batch_flush(a);
}

/* An item that queues itself again until the test ends, and counts its runs. */
struct loop_item {
	struct fairwq_work work;
	struct fairwq_batch *batch;
	atomic_t *runs;
	bool *stop;
};

static void loop_fn(struct fairwq_work *work)
{
	struct loop_item *item = container_of(work, struct loop_item, work);

	atomic_inc(item->runs);
	if (!READ_ONCE(*item->stop))
		mock_may_refuse(fairwq_queue(item->batch, work));
}

#define LOOPS	4U
#define LOOP_RUNS	100000
/* One turn in a tick would take 10 times as many sleeps and more. */
#define LOOP_SLEEPS	5000U

/*
 * While an item sleeps that was quick until then, the quick items of other
 * clients go on. If each of their turns took a tick, the case would time out.
 */
static void quick_items_go_on_beside_a_sleeper(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct mock *mock = test->priv;
	struct loop_item item[LOOPS];
	atomic_t runs = ATOMIC_INIT(0);
	struct fairwq_batch *a;
	bool stop = false;
	unsigned int i;

	a = mock_begin(test, 2);
	mock_open(test);
	mock_queue(test, a, 'a', 1000);
	fairwq_batch_flush(a);
	mock_gate_enter(test, a, gate);
	for (i = 0; i < LOOPS; i++) {
		item[i] = (struct loop_item){ .runs = &runs, .stop = &stop };
		item[i].batch = mock_batch(test, "loop");
		fairwq_work_init_onstack(&item[i].work, loop_fn);
		KUNIT_EXPECT_EQ(test, 1, fairwq_queue(item[i].batch, &item[i].work));
	}
	/* The items must be told to stop also if they are late. So nothing is asserted here. */
	for (i = 0; i < LOOP_SLEEPS && atomic_read(&runs) < LOOP_RUNS; i++)
		usleep_range(1000, 2000);
	KUNIT_EXPECT_GE(test, atomic_read(&runs), LOOP_RUNS);
	WRITE_ONCE(stop, true);
	complete_all(&gate->open);
	fairwq_pool_drain(mock->pool);
}

/* A backlog kicks as many runners as max_active allows, and no more, without a tick. */
static void backlog_kicks_max_active_runners(struct kunit *test)
{
	struct mock_gate *gate = kunit_kcalloc(test, 6, sizeof(*gate), GFP_KERNEL);
	struct mock *mock = test->priv;
	struct fairwq_batch *a;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, gate);
	a = mock_begin(test, 5);
	mock_no_ticks(mock->pool);
	for (i = 0; i < 6; i++) {
		mock_gate_init(&gate[i]);
		gate[i].computes = true;
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &gate[i].work));
	}
	for (i = 0; i < 4; i++)
		mock_await(test, &gate[i].entered);
	mock_for(50, atomic_read(&gate[4].runs));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&gate[4].runs));
	/* One more runner, one more item. */
	KUNIT_EXPECT_EQ(test, 0, fairwq_pool_set_max_active(mock->pool, 6));
	mock_await(test, &gate[4].entered);
	mock_for(50, atomic_read(&gate[5].runs));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&gate[5].runs));
	/* With one runner less, items that run go on, and the sixth waits until two have ended. */
	KUNIT_EXPECT_EQ(test, 0, fairwq_pool_set_max_active(mock->pool, 5));
	complete_all(&gate[0].open);
	mock_until(test, mock_nr_begun(mock->pool) == 5);
	mock_for(50, atomic_read(&gate[5].runs));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&gate[5].runs));
	complete_all(&gate[1].open);
	mock_await(test, &gate[5].entered);
	for (i = 2; i < 6; i++)
		complete_all(&gate[i].open);
	fairwq_batch_flush(a);
}

/* One kick is enough for many items of several batches (T6). */
static void one_kick_serves_many(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *batch[4];
	unsigned int i;

	mock_pool(test, 1);
	for (i = 0; i < ARRAY_SIZE(batch); i++) {
		batch[i] = mock_batch(test, "k");
		mock_queue(test, batch[i], 'a' + i, 250);
	}
	mock_open(test);
	mock_until(test, READ_ONCE(mock->log.nr) == 1000);
	/* The kick for the gate. */
	KUNIT_EXPECT_EQ(test, 1ULL, mock_counter(mock->pool, FAIRWQ_KICKS));
}

/* Items that compute until all of them run. */
static struct {
	struct fairwq_work work[3];
	atomic_t begun;
	bool late;
} chain;

static void chain_fn(struct fairwq_work *work)
{
	atomic_inc(&chain.begun);
	if (!compute_within(atomic_read(&chain.begun) == 3))
		WRITE_ONCE(chain.late, true);
}

/* A runner that was kicked kicks the next one, until all items of the batch run. */
static void kicks_are_chained(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 4);
	unsigned int i;

	mock_no_ticks(a->pool);
	memset(&chain, 0, sizeof(chain));
	fairwq_batch_pause(a);
	for (i = 0; i < 3; i++) {
		fairwq_work_init(&chain.work[i], chain_fn);
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &chain.work[i]));
	}
	fairwq_batch_resume(a);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_FALSE(test, chain.late);
}

/* Two items: the first one queues the second, and computes until that has begun. */
static struct {
	struct fairwq_work first, second;
	struct fairwq_batch *batch;	/* of the second */
	bool begun, met;
} pair;

static void pair_second_fn(struct fairwq_work *work)
{
	WRITE_ONCE(pair.begun, true);
}

static void pair_first_fn(struct fairwq_work *work)
{
	mock_may_refuse(fairwq_queue(pair.batch, &pair.second));
	WRITE_ONCE(pair.met, compute_within(READ_ONCE(pair.begun)));
}

/*
 * While a quick item runs, no other runner is kicked. If the item computes for
 * long for once, the timer finds that. From there on it holds no kick back.
 */
static void long_item_among_quick_ones_holds_back_no_kick(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct fairwq_batch *a = mock_begin(test, 3);

	mock_open(test);
	memset(&pair, 0, sizeof(pair));
	fairwq_work_init(&pair.first, pair_first_fn);
	fairwq_work_init(&pair.second, pair_second_fn);
	pair.batch = mock_batch(test, "b");
	mock_set_guess(a, 100);
	gate->computes = true;
	mock_gate_enter(test, a, gate);
	mock_until(test, !READ_ONCE(a->pool->crew.nr_quick));
	mock_no_ticks(a->pool);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(mock_batch(test, "c"), &pair.first));
	fairwq_work_flush(&pair.first);
	KUNIT_EXPECT_TRUE(test, pair.met);
	complete_all(&gate->open);
	fairwq_batch_flush(a);
}

/* ---- wake-ups --------------------------------------------------------- */

static struct fairwq_batch *refilled;	/* by queue_again() */

/* Wait until @nr items have logged, and all runners are idle. */
static void idle_after(struct kunit *test, unsigned int nr)
{
	struct mock *mock = test->priv;

	mock_until(test, READ_ONCE(mock->log.nr) == nr);
	mock_until(test, !mock_nr_begun(mock->pool));
}

/* Queue the dropped item again. Its batch takes none to a runner before the cancel ends. */
static void queue_again(struct fairwq_work *work)
{
	fairwq_batch_resume(refilled);
	mock_may_refuse(fairwq_queue(refilled, work));
}

/* All runners are idle. Whatever lets an item begin kicks one of them, without a tick. */
static void what_may_begin_wakes_a_runner(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 2), *b = mock_own_batch(test, "b", NULL);

	mock_free_runners(test);
	mock_no_ticks(mock->pool);
	mock_queue(test, a, 'q', 1);
	idle_after(test, 1);
	fairwq_batch_pause(a);
	mock_queue(test, a, 'r', 1);
	fairwq_batch_resume(a);
	idle_after(test, 2);
	fairwq_batch_pause(b);
	mock_queue(test, b, 'd', 1);
	fairwq_batch_dispose(b);
	idle_after(test, 3);
	refilled = a;
	fairwq_batch_pause(a);
	mock_queue(test, a, 'c', 1);
	KUNIT_EXPECT_EQ(test, 1UL, fairwq_batch_cancel(a, queue_again));
	idle_after(test, 4);
}

/* An item that is queued 30,000 times, to an idle or a busy batch, runs each time. */
static void no_wake_up_is_lost_in_ping_pong(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_item *item = mock_item(test, 'p');
	DECLARE_COMPLETION_ONSTACK(done);
	struct fairwq_batch *a = mock_begin(test, 2);
	unsigned int round;

	mock_free_runners(test);
	mock_no_ticks(mock->pool);
	item->done = &done;
	for (round = 0; round < 30000; round++) {
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &item->work));
		mock_await(test, &done);
	}
	fairwq_batch_flush(a);
	KUNIT_EXPECT_GE(test, mock_nr_turns(mock->pool), 30001ULL);
}

/* ---- leaks and hung items --------------------------------------------- */

enum leak { LEAK_PREEMPT, LEAK_RCU, LEAK_IRQS, LEAK_CREDS };

struct leaker {
	struct fairwq_work work;
	enum leak leak;
	struct cred *cred;
};

static void leaker_fn(struct fairwq_work *work)
{
	struct leaker *leaker = container_of(work, struct leaker, work);

	switch (leaker->leak) {
	case LEAK_PREEMPT:
		preempt_disable();
		break;
	case LEAK_RCU:
		rcu_read_lock();
		break;
	case LEAK_IRQS:
		local_irq_disable();
		break;
	case LEAK_CREDS:
		override_creds(leaker->cred);
		break;
	}
}

struct sane {
	struct fairwq_work work;
	const struct cred *cred;
	bool atomic, irqs_off;
};

static void sane_fn(struct fairwq_work *work)
{
	struct sane *sane = container_of(work, struct sane, work);

	sane->cred = current_cred();
	sane->atomic = preempt_count();
	sane->irqs_off = irqs_disabled();
}

/* A leak is reported with the function of the item, and does not reach the next item. */
static void leak_is_reported_and_repaired(struct kunit *test, enum leak leak)
{
	struct mock *mock = test->priv;
	struct leaker leaker = { .leak = leak };
	struct sane before = { }, after = { };
	struct fairwq_batch *a;

	leaker.cred = prepare_creds();
	KUNIT_ASSERT_NOT_NULL(test, leaker.cred);
	a = mock_begin(test, 1);
	fairwq_work_init_onstack(&before.work, sane_fn);
	fairwq_work_init_onstack(&leaker.work, leaker_fn);
	fairwq_work_init_onstack(&after.work, sane_fn);
	mock_may_refuse(fairwq_queue(a, &before.work));
	mock_may_refuse(fairwq_queue(a, &leaker.work));
	mock_may_refuse(fairwq_queue(a, &after.work));
	pr_info("# expect-splat begin item leaked atomic, lock, RCU, irqs or creds: leaker_fn\n");
	mock_open(test);
	fairwq_batch_flush(a);
	pr_info("# expect-splat end\n");
	KUNIT_EXPECT_EQ(test, 1ULL, mock_counter(mock->pool, FAIRWQ_LEAKS));
	KUNIT_EXPECT_PTR_EQ(test, before.cred, after.cred);
	KUNIT_EXPECT_FALSE(test, after.atomic);
	KUNIT_EXPECT_FALSE(test, after.irqs_off);
	put_cred(leaker.cred);
}

static void leaked_preempt_count_is_repaired(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_COUNT))
		kunit_skip(test, "this kernel does not count");
	leak_is_reported_and_repaired(test, LEAK_PREEMPT);
}

static void leaked_rcu_section_is_repaired(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RCU))
		kunit_skip(test, "this kernel does not count");
	leak_is_reported_and_repaired(test, LEAK_RCU);
}

static void leaked_irqs_off_is_repaired(struct kunit *test)
{
	leak_is_reported_and_repaired(test, LEAK_IRQS);
}

static void leaked_creds_are_repaired(struct kunit *test)
{
	leak_is_reported_and_repaired(test, LEAK_CREDS);
}

/* Make a batch in a pool in which no item runs. Return: the batch. */
static struct fairwq_batch *hung_begin(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);

	mock_free_runners(test);
	return a;
}

#define HUNG_MS	20U

/*
 * Queue three items that are over at once, one after the other, and look at the
 * runners beside them. Return: how many of them took HUNG_MS, as the host
 * stopped them.
 */
static unsigned int hung_beside(struct kunit *test, struct fairwq_batch *a)
{
	struct mock *mock = test->priv;
	unsigned int i, slow = 0;
	u64 began;

	for (i = 0; i < 3; i++) {
		began = ktime_get_ns();
		mock_queue(test, a, 'a', 1);
		mock_tick(mock->pool);
		fairwq_batch_flush(a);
		slow += ktime_get_ns() - began >= HUNG_MS * NSEC_PER_MSEC;
	}
	return slow;
}

/* An item that runs for longer than hung_ms is reported once, and no other one is. */
static void hung_item_is_reported_once(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct mock *mock = test->priv;
	struct fairwq_batch *a, *b;
	unsigned int slow;

	a = hung_begin(test);
	b = mock_batch(test, "b");
	pr_info("# expect-splat begin item hung: mock_\n");
	fairwq_set_hung_ms(mock->pool, HUNG_MS);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &gate->work));
	mock_until(test, mock_counter(mock->pool, FAIRWQ_HUNG) == 1);
	/* As if the pause after the report was over. */
	raw_spin_lock_irq(&mock->pool->lock);
	mock->pool->watch.hung_reported = jiffies - HZ;
	raw_spin_unlock_irq(&mock->pool->lock);
	slow = hung_beside(test, b);
	pr_info("# expect-splat end\n");
	KUNIT_EXPECT_GE(test, mock_counter(mock->pool, FAIRWQ_HUNG), 1ULL);
	KUNIT_EXPECT_LE(test, mock_counter(mock->pool, FAIRWQ_HUNG), 1ULL + slow);
	complete_all(&gate->open);
	fairwq_batch_flush(a);
}

#define SECTION_HUNG_MS	200

/*
 * Wait at a gate, in a section that may block. Go on for so long that a second
 * report would come.
 */
static void block_at_gate_fn(struct fairwq_work *work)
{
	fairwq_block_begin();
	mock_gate_fn(work);
	fairwq_block_end();
	msleep(2 * SECTION_HUNG_MS + 100);	/* or longer */
}

#define HUNG_SECTIONS	3U

/*
 * An item that hangs in a section that may block is reported, beside another
 * item that hangs, and in a pool that is idle otherwise; once, also if it hangs
 * after that. A late timer may find one of them by chance.
 */
static void hung_item_is_reported_in_a_section(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test), *other = mock_gate_new(test);
	struct mock *mock = test->priv;
	struct fairwq_batch *a;
	unsigned int i;

	a = mock_begin(test, 2);
	mock_free_runners(test);
	fairwq_work_init(&gate->work, block_at_gate_fn);
	pr_info("# expect-splat begin item hung:\n");
	fairwq_set_hung_ms(mock->pool, SECTION_HUNG_MS);
	mock_gate_enter(test, a, other);
	for (i = 0; i < HUNG_SECTIONS; i++) {
		reinit_completion(&gate->open);
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &gate->work));
		mock_until(test, mock_counter(mock->pool, FAIRWQ_HUNG) >= 2 + i);
		complete_all(&gate->open);
		complete_all(&other->open);
		fairwq_batch_flush(a);
		/* After a report the timer looks once more. */
		mock_until(test, !timer_pending(&mock->pool->watch.tick));
	}
	pr_info("# expect-splat end\n");
	KUNIT_EXPECT_EQ(test, 1ULL + HUNG_SECTIONS, mock_counter(mock->pool, FAIRWQ_HUNG));
}

/* A hung item is reported although hung_ms is set again and again. */
static void hung_item_is_reported_while_the_limit_is_set(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	a = hung_begin(test);
	pr_info("# expect-splat begin item hung: mock_gate_fn\n");
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &gate->work));
	mock_until(test, !fairwq_set_hung_ms(mock->pool, 200) &&
		   mock_counter(mock->pool, FAIRWQ_HUNG));
	pr_info("# expect-splat end\n");
	KUNIT_EXPECT_EQ(test, 1ULL, mock_counter(mock->pool, FAIRWQ_HUNG));
	complete_all(&gate->open);
	fairwq_batch_flush(a);
}

#define HUNG_ITEMS	6U

/* Each look at the runners reports one hung item, because printing a stack takes long. */
static void hung_items_are_reported_one_per_look(struct kunit *test)
{
	struct mock_gate *gates = kunit_kcalloc(test, HUNG_ITEMS, sizeof(*gates), GFP_KERNEL);
	struct mock *mock = test->priv;
	struct fairwq_batch *a;
	unsigned int i;
	u64 first;

	KUNIT_ASSERT_NOT_NULL(test, gates);
	a = mock_begin(test, HUNG_ITEMS);
	mock_free_runners(test);
	for (i = 0; i < HUNG_ITEMS; i++) {
		mock_gate_init(&gates[i]);
		gates[i].next = mock->gates;
		mock->gates = &gates[i];
		mock_gate_enter(test, a, &gates[i]);
	}
	msleep(50);			/* or longer: all items have run for HUNG_MS */
	/* All are asleep, so no tick comes. */
	mock_until(test, !READ_ONCE(mock->pool->crew.nr_active) &&
		   !timer_pending(&mock->pool->watch.tick));
	pr_info("# expect-splat begin item hung: mock_gate_fn\n");
	/*
	 * Set hung_ms directly, so that only the first look starts the timer.
	 * That is due on this CPU, and cannot be the second look here, however
	 * long this takes.
	 */
	local_bh_disable();
	raw_spin_lock_irq(&mock->pool->lock);
	mock->pool->watch.hung_ms = HUNG_MS;
	raw_spin_unlock_irq(&mock->pool->lock);
	mock_tick(mock->pool);
	first = mock_counter(mock->pool, FAIRWQ_HUNG);
	local_bh_enable();
	mock_until(test, mock_counter(mock->pool, FAIRWQ_HUNG) == HUNG_ITEMS);
	mock_tick(mock->pool);
	pr_info("# expect-splat end\n");
	KUNIT_EXPECT_EQ(test, 1ULL, first);
	KUNIT_EXPECT_EQ(test, (u64)HUNG_ITEMS, mock_counter(mock->pool, FAIRWQ_HUNG));
	for (i = 0; i < HUNG_ITEMS; i++)
		complete_all(&gates[i].open);
	fairwq_batch_flush(a);
}

/* ---- returning to the workqueue core ---------------------------------- */

static void spin_fn(struct fairwq_work *work)
{
	unsigned long end = jiffies + msecs_to_jiffies(FAIRWQ_RUNNER_QUANTUM_MS);

	while (time_before_eq(jiffies, end))	/* or longer */
		cpu_relax();
}

/* A runner whose time is up returns to the core, and is queued again for the backlog. */
static void runner_returns_to_the_core(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_work spin[8];
	struct fairwq_batch *a = mock_begin(test, 1);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(spin); i++) {
		fairwq_work_init_onstack(&spin[i], spin_fn);
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &spin[i]));
	}
	mock_open(test);
	fairwq_batch_flush(a);
	/* It returns after each item but the last, behind which nothing is queued. */
	KUNIT_EXPECT_GE(test, mock_counter(mock->pool, FAIRWQ_REQUEUES), 7ULL);
}

/* The batch of endless_fn(). */
static struct fairwq_batch *endless_batch;

static void endless_fn(struct fairwq_work *work)
{
	struct mock_gate *gate = container_of(work, struct mock_gate, work);

	if (!completion_done(&gate->open))
		mock_may_refuse(fairwq_queue(endless_batch, work));
}

/* A flush ends, and the runner returns to the core, although an item always queues itself. */
static void endless_batch_can_be_flushed(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct mock *mock = test->priv;
	struct fairwq_batch *a;
	unsigned int i;

	fairwq_work_init(&gate->work, endless_fn);
	a = mock_begin(test, 1);
	endless_batch = a;
	mock_open(test);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &gate->work));
	for (i = 0; i < 100; i++)
		fairwq_batch_flush(a);
	mock_until(test, mock_counter(mock->pool, FAIRWQ_REQUEUES) >= 2);
	complete_all(&gate->open);
	fairwq_pool_drain(mock->pool);
}

/* ---- time that no item is charged for ------------------------------------ */

#define OTHERS_MS	500	/* or longer */

static struct fairwq_batch *slow_batch;
static u64 others_ns;		/* how long others had the CPU by the clock */

/*
 * Compute once after an item of slow_batch, in the place of other tasks that
 * have the CPU. A sleep would not be charged, whatever else is.
 */
static void others_run(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point != FAIRWQ_POINT_RESCHED || batch != READ_ONCE(slow_batch))
		return;
	WRITE_ONCE(slow_batch, NULL);
	others_ns = ktime_get_ns();
	mdelay(OTHERS_MS);
	others_ns = ktime_get_ns() - others_ns;
}

/* Ask for a reschedule after the item. */
static void resched_fn(struct fairwq_work *work)
{
	set_tsk_need_resched(current);
	mock_item_fn(work);
}

/*
 * No item is charged for the time that other tasks have the CPU between two
 * items. There are several items, because an interrupt may reschedule before
 * the runner does. However long the host stops the guest: the items and the
 * other tasks have no more than all time.
 */
static void item_is_not_charged_for_others(struct kunit *test)
{
	struct mock_item *item[8];
	struct fairwq_batch *a = mock_begin_by(test, 1, FAIRWQ_FAIR_TIME);
	unsigned int i;
	u64 all, ns;

	for (i = 0; i < ARRAY_SIZE(item); i++) {
		item[i] = mock_item(test, 'a');
		fairwq_work_init(&item[i]->work, resched_fn);
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &item[i]->work));
	}
	WRITE_ONCE(slow_batch, a);
	fairwq_test_set_hook(others_run);
	all = ktime_get_ns();
	mock_expect(test, "aaaaaaaa");
	fairwq_batch_flush(a);
	all = ktime_get_ns() - all;
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_PTR_EQ(test, NULL, slow_batch);
	raw_spin_lock_irq(&a->pool->lock);
	ns = a->node.service;
	raw_spin_unlock_irq(&a->pool->lock);
	KUNIT_EXPECT_LE(test, ns + others_ns, all);
}

static struct kunit_case runner_cases[] = {
	KUNIT_CASE(sleeper_holds_up_only_itself),
	KUNIT_CASE(item_may_wait_for_a_later_one),
	KUNIT_CASE(sleeper_is_not_quick),
	KUNIT_CASE(sleeper_among_quick_ones_is_found),
	KUNIT_CASE(quick_items_go_on_beside_a_sleeper),
	KUNIT_CASE(backlog_kicks_max_active_runners),
	KUNIT_CASE(one_kick_serves_many),
	KUNIT_CASE(kicks_are_chained),
	KUNIT_CASE(long_item_among_quick_ones_holds_back_no_kick),
	KUNIT_CASE(what_may_begin_wakes_a_runner),
	KUNIT_CASE(no_wake_up_is_lost_in_ping_pong),
	KUNIT_CASE(leaked_preempt_count_is_repaired),
	KUNIT_CASE(leaked_rcu_section_is_repaired),
	KUNIT_CASE(leaked_irqs_off_is_repaired),
	KUNIT_CASE(leaked_creds_are_repaired),
	KUNIT_CASE(hung_item_is_reported_once),
	KUNIT_CASE(hung_item_is_reported_in_a_section),
	KUNIT_CASE(hung_item_is_reported_while_the_limit_is_set),
	KUNIT_CASE(hung_items_are_reported_one_per_look),
	KUNIT_CASE(runner_returns_to_the_core),
	KUNIT_CASE(endless_batch_can_be_flushed),
	KUNIT_CASE(item_is_not_charged_for_others),
	{}
};

static struct kunit_suite runner_suite = {
	.name = "fairwq_core_runner",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = runner_cases,
};

kunit_test_suite(runner_suite);

MODULE_DESCRIPTION("KUnit: runners");
MODULE_LICENSE("GPL");
