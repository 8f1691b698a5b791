// SPDX-License-Identifier: GPL-2.0
/*
 * Deferred removal of batches (promise 8). An item is refused or runs, but is
 * never lost. A batch is released once, and leaves no memory behind.
 *
 * T1, T2 and T3 are faults of the published pattern. T1: an item that is queued
 * after the dispose is lost. T2: a batch that is disposed while its last item
 * is taken is never freed. T3: two calls dispose the same batch, and both
 * remove it.
 */
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/wait.h>

#include "lib/hook.h"
#include "lib/look.h"

/* Counts of the calls of released(). */
struct releases {
	atomic_t nr;
	atomic_t atomic_context;	/* calls that came where they must not sleep */
};

static void count_release(struct fairwq_batch *batch, void *priv)
{
	struct releases *releases = priv;

	atomic_add(preempt_count() || irqs_disabled(), &releases->atomic_context);
	atomic_inc(&releases->nr);
}

/* Return the number of live batches, after those of earlier cases were freed. */
static long live_batches(void)
{
	mock_wait_released();
	return fairwq_test_live_batches();
}

static struct releases *releases_new(struct kunit *test)
{
	struct releases *releases = kunit_kzalloc(test, sizeof(*releases), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, releases);
	return releases;
}

/* Make a batch that counts the calls of its released() in @releases. */
static struct fairwq_batch *counted_batch(struct kunit *test, struct releases *releases)
{
	struct fairwq_batch_attrs attrs = { .released = count_release, .priv = releases };

	return mock_own_batch(test, "counted", &attrs);
}

/* Begin a case: make a pool, and a batch as counted_batch() does. Return: the batch. */
static struct fairwq_batch *counted_begin(struct kunit *test, unsigned int runners,
					  struct releases *releases)
{
	mock_pool(test, runners);
	return counted_batch(test, releases);
}

/* A disposed batch refuses an item. The work stays idle, and another batch accepts it. */
static void disposed_batch_refuses(struct kunit *test)
{
	struct mock_item *item = mock_item(test, 'x');
	struct fairwq_batch *b = mock_begin(test, 1);
	struct fairwq_batch *a;

	a = mock_own_batch(test, "disposed", NULL);
	fairwq_batch_get(a);
	fairwq_batch_dispose(a);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_queue(a, &item->work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&item->work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(b, &item->work));
	mock_expect(test, "x");
	fairwq_batch_put(a);
}

/* Accepted items run after a dispose. Then released() is called once and may sleep (T2). */
static void accepted_items_run_then_released_once(struct kunit *test)
{
	struct releases *releases = releases_new(test);
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	a = counted_begin(test, 1, releases);
	mock_queue(test, a, 'a', 5);
	fairwq_batch_dispose(a);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&releases->nr));
	mock_expect(test, "aaaaa");
	mock_until(test, atomic_read(&releases->nr) == 1);
	mock_until(test, mock_nr_batches(mock->pool) == 4);
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_eligible(mock->pool));
	fairwq_pool_flush(mock->pool);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&releases->nr));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&releases->atomic_context));
}

/* A batch disposed while its last item runs is released after that item (T2). */
static void disposed_while_the_last_item_runs(struct kunit *test)
{
	struct releases *releases = releases_new(test);
	struct mock_gate *gate = mock_gate_new(test);
	struct fairwq_batch *a;

	a = counted_begin(test, 2, releases);
	mock_gate_enter(test, a, gate);
	fairwq_batch_dispose(a);
	mock_wait_released();
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&releases->nr));
	complete_all(&gate->open);
	mock_until(test, atomic_read(&releases->nr) == 1);
}

/* An idle batch is released and leaves its pool, though it never had an item. */
static void disposed_idle_goes(struct kunit *test)
{
	struct releases *releases = releases_new(test);
	struct mock *mock = test->priv;

	fairwq_batch_dispose(counted_begin(test, 1, releases));
	mock_until(test, atomic_read(&releases->nr) == 1);
	mock_until(test, mock_nr_batches(mock->pool) == 4);
}

/*
 * Several holders may dispose of a batch (T3). Each dispose drops one
 * reference, but the batch leaves its pool once and is released once.
 */
static void two_holders_may_both_dispose(struct kunit *test)
{
	struct releases *releases = releases_new(test);
	long live = live_batches();
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	a = counted_begin(test, 1, releases);
	fairwq_batch_get(a);
	fairwq_batch_get(a);
	mock_queue(test, a, 'a', 1);
	fairwq_batch_dispose(a);
	mock_wait_released();
	fairwq_batch_dispose(a);
	mock_expect(test, "a");
	mock_until(test, atomic_read(&releases->nr) == 1);
	mock_wait_released();
	/* The last holder may dispose of the batch after it was released. */
	fairwq_batch_dispose(a);
	mock_wait_released();
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&releases->nr));
	KUNIT_EXPECT_EQ(test, 4U, mock_nr_batches(mock->pool));
	mock_until(test, fairwq_test_live_batches() == live + 4);
}

/* A dispose ends a pause, and a later pause has no effect: accepted items run. */
static void disposed_paused_batch_drains(struct kunit *test)
{
	struct releases *releases = releases_new(test);
	struct fairwq_batch *a;

	a = counted_begin(test, 1, releases);
	fairwq_batch_get(a);
	fairwq_batch_pause(a);
	mock_queue(test, a, 'a', 3);
	fairwq_batch_dispose(a);
	fairwq_batch_pause(a);
	mock_expect(test, "aaa");
	mock_until(test, atomic_read(&releases->nr) == 1);
	fairwq_batch_put(a);
}

/* A batch may outlive its pool: a flush of it returns at once, and it refuses items. */
static void released_batch_outlives_its_pool(struct kunit *test)
{
	const struct fairwq_pool_attrs attrs = { .max_active = 1 };
	struct fairwq_pool *pool = fairwq_pool_create(&attrs, "short-lived");
	struct mock_item *item = mock_item(test, 'a');
	struct fairwq_batch *a;

	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	a = fairwq_batch_create(pool, NULL, "a");
	KUNIT_EXPECT_FALSE(test, IS_ERR(a));
	fairwq_pool_destroy(pool);
	if (IS_ERR(a))
		return;
	rcu_barrier();		/* frees the default batches */
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_queue(a, &item->work));
	fairwq_batch_dispose(a);
}

/* A batch whose pool was destroyed takes every call. The calls do no harm. */
static void batch_without_a_pool_takes_calls(struct kunit *test)
{
	struct fairwq_pool *pool = fairwq_pool_create(NULL, "short-lived");
	struct mock_item *item = mock_item(test, 'a');
	struct fairwq_serializer serializer;
	struct fairwq_batch *a;

	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	fairwq_serializer_init(&serializer);
	a = fairwq_batch_create(pool, NULL, "a");
	fairwq_pool_destroy(pool);
	KUNIT_ASSERT_FALSE(test, IS_ERR(a));
	rcu_barrier();		/* frees the default batches */
	fairwq_batch_pause(a);
	fairwq_batch_flush(a);
	fairwq_batch_resume(a);
	KUNIT_EXPECT_EQ(test, 0, fairwq_batch_set_weight(a, 7));
	KUNIT_EXPECT_EQ(test, 0UL, fairwq_batch_cancel(a, NULL));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_serializer_queue(&serializer, a, &item->work));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&item->work));
	fairwq_serializer_destroy(&serializer);
	fairwq_batch_dispose(fairwq_batch_get(a));
	fairwq_batch_put(a);
}

static struct fairwq_pool *late_pool;

/* Destroy @late_pool inside a flush of its batch, before the flush takes the lock. */
static void late_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	struct fairwq_pool *pool = late_pool;

	if (point != FAIRWQ_POINT_BATCH_WAIT || !pool || batch->pool != pool)
		return;
	late_pool = NULL;
	fairwq_pool_destroy(pool);
	/* The batch keeps @pool, but not the runners: make an access to them crash. */
	pool->crew.runners.next = LIST_POISON1;
	pool->crew.idle.next = LIST_POISON1;
}

/* A flush returns though its pool is destroyed after the flush began. */
static void pool_goes_during_a_flush(struct kunit *test)
{
	const struct fairwq_pool_attrs attrs = { .max_active = 2 };
	struct fairwq_pool *pool = fairwq_pool_create(&attrs, "short-lived");
	struct fairwq_batch *a;

	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	a = fairwq_batch_create(pool, NULL, "a");
	if (IS_ERR(a)) {
		fairwq_pool_destroy(pool);
		KUNIT_FAIL(test, "no batch");
		return;
	}
	late_pool = pool;
	fairwq_test_set_hook(late_hook);
	fairwq_batch_flush(a);
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_PTR_EQ(test, NULL, late_pool);
	KUNIT_EXPECT_TRUE(test, a->reaped);
	KUNIT_EXPECT_TRUE(test, list_empty(&a->fifo));
	fairwq_batch_dispose(a);
}

/* ---- released() that sleeps ------------------------------------------- */

/* Steps of a released() that sleeps until the test completes @leave. */
struct sleeping_release {
	struct completion entered, leave;
};

static void sleep_in_release(struct fairwq_batch *batch, void *priv)
{
	struct sleeping_release *sleeping = priv;

	complete(&sleeping->entered);
	wait_for_completion(&sleeping->leave);
}

struct rcu_item {
	struct fairwq_rcu_work rwork;
	struct completion done;
};

static void rcu_item_fn(struct fairwq_work *work)
{
	complete_all(&container_of(work, struct rcu_item, rwork.work)->done);
}

/*
 * A released() that sleeps delays only its own pool, even if the module's
 * workqueue has a single worker, as when memory is short. Batches of another
 * pool are released, an RCU work runs, and idle flows are removed.
 */
static void sleeping_release_stalls_no_other(struct kunit *test)
{
	struct sleeping_release *sleeping = kunit_kzalloc(test, sizeof(*sleeping), GFP_KERNEL);
	struct rcu_item *rcu_item = kunit_kzalloc(test, sizeof(*rcu_item), GFP_KERNEL);
	struct fairwq_batch_attrs attrs = { .released = sleep_in_release, .priv = sleeping };
	struct releases *releases = releases_new(test);
	struct fairwq_pool *other;
	struct fairwq_flows *flows;
	struct fairwq_batch *a, *b;
	struct mock *mock = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, sleeping);
	KUNIT_ASSERT_NOT_NULL(test, rcu_item);
	init_completion(&sleeping->entered);
	init_completion(&sleeping->leave);
	init_completion(&rcu_item->done);
	fairwq_rcu_work_init(&rcu_item->rwork, rcu_item_fn);
	b = mock_begin(test, 1);
	mock_open(test);
	a = counted_batch(test, releases);
	other = fairwq_pool_create(NULL, "sleeps");
	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	flows = fairwq_flows_create(mock->pool, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(flows));
	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_set_idle_ms(flows, 1));	/* soon */
	mock_one_reaper(true);
	fairwq_batch_dispose(fairwq_batch_create(other, &attrs, "sleeper"));
	/* No assertion from here on: the sleeper must be woken, whatever fails. */
	KUNIT_EXPECT_TRUE(test, mock_wait(&sleeping->entered));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_rcu(b, &rcu_item->rwork));
	KUNIT_EXPECT_TRUE(test, mock_wait(&rcu_item->done));
	fairwq_batch_dispose(a);
	KUNIT_EXPECT_TRUE(test, mock_within(atomic_read(&releases->nr) == 1));
	KUNIT_EXPECT_GE(test, fairwq_flows_queue(flows, 1, &mock_item(test, 'x')->work), 0);
	KUNIT_EXPECT_TRUE(test, mock_within(!fairwq_test_nr_flows(flows)));
	complete_all(&sleeping->leave);
	wait_for_completion(&rcu_item->done);
	mock_one_reaper(false);
	fairwq_flows_destroy(flows);
	fairwq_pool_destroy(other);
}

/* ---- pools that are destroyed ----------------------------------------- */

#define POOLS	50

/*
 * Make a pool that has run an item in its default batch. With @own, also make a
 * batch that has run an item.
 */
static struct fairwq_pool *used_pool(struct kunit *test, struct mock_item *item,
				     struct fairwq_batch **own)
{
	const struct fairwq_pool_attrs attrs = { .max_active = 1 };
	struct fairwq_pool *pool = fairwq_pool_create(&attrs, "used");

	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	mock_may_refuse(mock_pool_queue(pool, &item->work));
	fairwq_pool_flush(pool);
	if (own) {
		*own = fairwq_batch_create(pool, NULL, "own");
		mock_may_refuse(fairwq_queue(*own, &item->work));
		fairwq_batch_flush(*own);
	}
	/* The runner may be active for a moment after its last item has ended. */
	mock_until(test, !mock_nr_begun(pool));
	return pool;
}

/* When the pool's own batch is disposed: there is none, before the pool's end, or after. */
enum { DEFAULT_ONLY, OWN_DISPOSED, OWN_KEPT, NR_POOL_KINDS };

/* Make a pool of @kind, destroy it, and add the time of that to @us, which is only told. */
static void destroy_pool_of(struct kunit *test, struct mock_item *item, int kind, s64 *us)
{
	struct fairwq_batch *own = NULL;
	struct fairwq_pool *pool = used_pool(test, item, kind == DEFAULT_ONLY ? NULL : &own);
	ktime_t began = ktime_get();

	if (kind == OWN_DISPOSED)
		fairwq_batch_dispose(own);
	fairwq_pool_destroy(pool);
	*us += ktime_us_delta(ktime_get(), began);
	if (kind == OWN_KEPT)
		fairwq_batch_dispose(own);
}

static atomic_t graces;

static void count_graces(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point == FAIRWQ_POINT_GRACE_OVER)
		atomic_inc(&graces);
}

/*
 * The destruction of a pool waits for few grace periods, because these take
 * most of its time. If a runner is still active it waits for one more, so no
 * runner is.
 */
static void fifty_pools_leave_nothing(struct kunit *test)
{
	static const char * const name[] = { "default only", "own, disposed", "own, kept" };
	static const int most[] = { 0, 1, 1 };
	struct mock_item *item = mock_item(test, 'x');
	s64 us[NR_POOL_KINDS] = { };
	int i, kind, nr;

	fairwq_test_set_hook(count_graces);
	for (kind = 0; kind < NR_POOL_KINDS; kind++) {
		atomic_set(&graces, 0);
		for (i = 0; i < POOLS; i++)
			destroy_pool_of(test, item, kind, &us[kind]);
		nr = atomic_read(&graces);
		KUNIT_EXPECT_LE(test, nr, most[kind] * POOLS);
		kunit_info(test, "%s: %lld us and %d/%d grace periods for each pool\n", name[kind],
			   div_s64(us[kind], POOLS), nr, POOLS);
	}
	fairwq_test_set_hook(NULL);
}

static struct {
	struct fairwq_pool *pool;
	struct fairwq_batch *batch;
	struct fairwq_work *work;
	struct completion reached, done;
	int ret;
	bool destroyed;
} pushing;

/* Hold up a queue call that has linked its item, until the pool is gone, or a while. */
static void push_late(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point != FAIRWQ_POINT_QUEUE_PUSHED || batch != pushing.batch)
		return;
	complete(&pushing.reached);
	spin_for(200, READ_ONCE(pushing.destroyed));
}

static int pushing_fn(void *data)
{
	pushing.ret = fairwq_queue(pushing.batch, pushing.work);
	complete(&pushing.done);
	return 0;
}

/*
 * Destroy a pool while a queue call to a batch of it is held up before it kicks
 * a runner. With @disposes the batch is disposed before that, else after.
 */
static void destroy_under_a_push(struct kunit *test, bool disposes)
{
	struct mock_item *item = mock_item(test, 'x');
	struct mock *mock = test->priv;

	memset(&pushing, 0, sizeof(pushing));
	init_completion(&pushing.reached);
	init_completion(&pushing.done);
	pushing.work = &item->work;
	pushing.pool = fairwq_pool_create(NULL, "pushed-to");
	KUNIT_ASSERT_FALSE(test, IS_ERR(pushing.pool));
	pushing.batch = fairwq_batch_get(fairwq_batch_create(pushing.pool, NULL, "a"));
	fairwq_test_set_hook(push_late);
	KUNIT_EXPECT_FALSE(test, IS_ERR(kthread_run(pushing_fn, NULL, "pushing")));
	wait_for_completion(&pushing.reached);
	if (disposes)
		fairwq_batch_dispose(pushing.batch);
	fairwq_pool_destroy(pushing.pool);
	WRITE_ONCE(pushing.destroyed, true);
	wait_for_completion(&pushing.done);
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_EQ(test, 1, pushing.ret);
	if (!disposes)
		fairwq_batch_dispose(pushing.batch);
	fairwq_batch_put(pushing.batch);
	KUNIT_EXPECT_EQ(test, disposes ? 2U : 1U, READ_ONCE(mock->log.nr));
}

/* The destruction of a pool waits for an item, but not for the rest of its queue call. */
static void pool_waits_for_the_item_of_a_call(struct kunit *test)
{
	destroy_under_a_push(test, false);
	destroy_under_a_push(test, true);
}

/* ---- any context ------------------------------------------------------ */

struct irq_dispose {
	struct irq_work irq_work;
	struct fairwq_batch *batch;
	struct completion done;
	bool was_hardirq;
};

static void irq_dispose_fn(struct irq_work *irq_work)
{
	struct irq_dispose *irq = container_of(irq_work, struct irq_dispose, irq_work);

	irq->was_hardirq = in_hardirq();
	fairwq_batch_dispose(irq->batch);
	complete(&irq->done);
}

/* A dispose may be called from a hardirq. */
static void dispose_works_from_hardirq(struct kunit *test)
{
	struct irq_dispose *irq = kunit_kzalloc(test, sizeof(*irq), GFP_KERNEL);
	struct releases *releases = releases_new(test);

	KUNIT_ASSERT_NOT_NULL(test, irq);
	irq->batch = counted_begin(test, 1, releases);
	mock_queue(test, irq->batch, 'a', 2);
	init_completion(&irq->done);
	irq->irq_work = IRQ_WORK_INIT_HARD(irq_dispose_fn);
	irq_work_queue(&irq->irq_work);
	mock_await(test, &irq->done);
	irq_work_sync(&irq->irq_work);
	KUNIT_EXPECT_TRUE(test, irq->was_hardirq);
	mock_expect(test, "aa");
	mock_until(test, atomic_read(&releases->nr) == 1);
}

/* ---- queue against dispose (T1), forced both ways --------------------- */

static struct {
	struct fairwq_batch *batch;
	struct releases *releases;
} forced;

/* Dispose of the batch in the middle of a queue call, and wait until it has left, or a while. */
static void dispose_in_the_middle(enum fairwq_test_point point,
				  struct fairwq_batch *batch)
{
	if (point != FAIRWQ_POINT_QUEUE_PUSHED || batch != forced.batch)
		return;
	forced.batch = NULL;
	fairwq_batch_dispose(batch);
	spin_for(50, atomic_read(&forced.releases->nr));
}

/*
 * A queue call has linked its item and kicked no runner yet when the batch is
 * disposed. The item runs, then the batch is released.
 */
static void item_runs_if_disposed_in_its_queue_call(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_item *item = mock_item(test, 'x');
	struct fairwq_batch *a;

	forced.releases = releases_new(test);
	a = counted_begin(test, 2, forced.releases);
	mock_open(test);
	fairwq_batch_get(a);
	forced.batch = a;
	fairwq_test_set_hook(dispose_in_the_middle);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &item->work));
	fairwq_test_set_hook(NULL);
	mock_until(test, READ_ONCE(mock->log.nr) == 1);
	mock_until(test, atomic_read(&forced.releases->nr) == 1);
	mock_until(test, mock_nr_batches(mock->pool) == 4);
	fairwq_batch_put(a);
}

/*
 * An item that was queued before the dispose is accepted and runs, and one that
 * is queued after it is refused. The batch is released also while no grace
 * period can end.
 */
static void dispose_needs_no_grace_period(struct kunit *test)
{
	struct mock_item *early = mock_item(test, 'a'), *late = mock_item(test, 'x');
	struct releases *releases = releases_new(test);
	struct mock *mock = test->priv;
	struct fairwq_batch *a;
	bool released;
	int ret[2];

	need_two_cpus(test);
	a = counted_begin(test, 1, releases);
	mock_open(test);
	fairwq_batch_get(a);
	rcu_read_lock();
	ret[0] = fairwq_queue(a, &early->work);
	fairwq_batch_dispose(a);
	ret[1] = fairwq_queue(a, &late->work);
	released = spin_within(atomic_read(&releases->nr) == 1);
	rcu_read_unlock();
	KUNIT_EXPECT_TRUE(test, released);
	KUNIT_EXPECT_EQ(test, 1, ret[0]);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, ret[1]);
	KUNIT_EXPECT_STREQ(test, "a", &mock->log.text[0]);
	fairwq_batch_put(a);
}

/*
 * ---- queue against dispose, 100,000 times on two CPUs ------------------
 *
 * The rounds are split into passes, because one case that runs for half a
 * minute looks like a hang. On a slow machine a pass ends after RACE_TIME, with
 * fewer rounds.
 */

/* Rounds of one pass. If a bug may be planted, few are enough: other cases find it. */
#define RACE_ROUNDS	(MOCK_PLANTED ? 1000 : 10000)
#define RACE_TIME	(3 * HZ)
#define RACE_PASSES	10
#define RACE_BURST	1000	/* batches that may wait for their grace period */

struct race {
	struct fairwq_pool *pool;
	struct fairwq_batch *batch;	/* of this round */
	atomic_t round;			/* number of this round, set by the queuer */
	atomic_t disposed;		/* last round that the disposer has ended */
	atomic_t accepted, ran, released;
	wait_queue_head_t step;		/* @round or @disposed has changed */
	bool stop;			/* no round follows */
	struct completion over;		/* the disposer has ended */
};

struct race_item {
	struct fairwq_work work;
	struct race *race;
};

static void race_item_fn(struct fairwq_work *work)
{
	struct race_item *item = container_of(work, struct race_item, work);
	struct race *race = item->race;

	kfree(item);
	atomic_inc(&race->ran);
}

static void race_released(struct fairwq_batch *batch, void *priv)
{
	struct race *race = priv;

	atomic_inc(&race->released);
}

/*
 * Wait until @count is at least @value. Spin first, so that queuer and disposer
 * meet. Then sleep, so that other threads can run.
 */
static void race_until(struct race *race, const atomic_t *count, int value)
{
	unsigned int spins;

	for (spins = 0; spins < 200; spins++) {
		if (atomic_read_acquire(count) >= value)
			return;
		cpu_relax();
	}
	wait_event(race->step, atomic_read_acquire(count) >= value);
}

/* Dispose of the batch of each round as soon as the queuer shows it. */
static int race_disposer(void *data)
{
	struct race *race = data;
	int round;

	for (round = 1; round <= RACE_ROUNDS; round++) {
		race_until(race, &race->round, round);
		if (READ_ONCE(race->stop))
			break;
		fairwq_batch_dispose(race->batch);
		atomic_set_release(&race->disposed, round);
		wake_up(&race->step);
	}
	complete(&race->over);
	return 0;
}

/*
 * Run one round: show a new batch to the disposer, then queue three items to
 * it.
 *
 * Return: 0, or a negative error.
 */
static int race_round(struct race *race, int round)
{
	struct fairwq_batch_attrs attrs = { .released = race_released, .priv = race };
	struct fairwq_batch *batch = fairwq_batch_create(race->pool, &attrs, "r");
	struct race_item *item;
	unsigned int i;
	int ret;

	if (IS_ERR(batch))
		return PTR_ERR(batch);
	race_until(race, &race->disposed, round - 1);
	race->batch = fairwq_batch_get(batch);
	atomic_set_release(&race->round, round);
	wake_up(&race->step);
	for (i = 0; i < 3; i++) {
		item = kzalloc(sizeof(*item), GFP_KERNEL);
		if (!item)
			return -ENOMEM;
		fairwq_work_init(&item->work, race_item_fn);
		item->race = race;
		ret = fairwq_queue(batch, &item->work);
		if (ret == 1) {
			atomic_inc(&race->accepted);
			continue;
		}
		kfree(item);
		if (ret != -ESHUTDOWN)
			return ret ?: -EBUSY;
	}
	fairwq_batch_put(batch);
	return 0;
}

static const unsigned int race_passes[RACE_PASSES] = {
	1, 2, 3, 4, 5, 6, 7, 8, 9, 10
};

static void race_pass_desc(const unsigned int *pass, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "up to round %u", *pass * RACE_ROUNDS);
}

KUNIT_ARRAY_PARAM(race, race_passes, race_pass_desc);

/* Each item is refused or runs, whichever of queue call and dispose comes first (T1). */
static void queue_against_dispose_runs_or_is_refused(struct kunit *test)
{
	struct race *race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	long live = live_batches();
	struct mock *mock = test->priv;
	unsigned long end = jiffies + RACE_TIME;
	struct task_struct *task;
	int round = 0, err = 0;

	KUNIT_ASSERT_NOT_NULL(test, race);
	mock_pool(test, 3);
	mock_open(test);
	race->pool = mock->pool;
	init_completion(&race->over);
	init_waitqueue_head(&race->step);
	task = kthread_run(race_disposer, race, "race_disposer");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	while (!err && round < RACE_ROUNDS && time_before(jiffies, end)) {
		err = race_round(race, ++round);
		if (!(round % RACE_BURST))
			mock_until(test, atomic_read(&race->released) == round);
	}
	mock_until(test, err || atomic_read(&race->disposed) == round);
	WRITE_ONCE(race->stop, true);
	atomic_set_release(&race->round, INT_MAX);
	wake_up(&race->step);
	mock_await(test, &race->over);
	KUNIT_ASSERT_EQ(test, 0, err);
	mock_until(test, atomic_read(&race->released) == round);
	KUNIT_EXPECT_EQ(test, atomic_read(&race->accepted), atomic_read(&race->ran));
	mock_until(test, fairwq_test_live_batches() == live + 4);
	kunit_info(test, "%d of %d items were accepted\n",
		   atomic_read(&race->accepted), 3 * round);
}

/* Fewer with KASAN: each call_rcu() walks the stack there, and 10,000 take minutes. */
#define TEN_THOUSAND	MOCK_MANY(10000U)

/* 10,000 batches that live at once leave no memory behind after their dispose. */
static void ten_thousand_batches_leave_nothing(struct kunit *test)
{
	struct releases *releases = releases_new(test);
	long live = live_batches();
	struct mock *mock = test->priv;
	struct fairwq_batch **batch;
	unsigned int i;

	batch = kunit_kcalloc(test, TEN_THOUSAND, sizeof(*batch), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, batch);
	mock_pool(test, 2);
	for (i = 0; i < TEN_THOUSAND; i++)
		batch[i] = counted_batch(test, releases);
	KUNIT_EXPECT_EQ(test, live + TEN_THOUSAND + 4, fairwq_test_live_batches());
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_eligible(mock->pool));
	for (i = 0; i < TEN_THOUSAND; i += 100)
		mock_queue(test, batch[i], 'x', 1);
	for (i = 0; i < TEN_THOUSAND; i++)
		fairwq_batch_dispose(batch[i]);
	mock_open(test);
	mock_until(test, atomic_read(&releases->nr) == TEN_THOUSAND);
	mock_until(test, mock_nr_batches(mock->pool) == 4);
	mock_until(test, fairwq_test_live_batches() == live + 4);
	KUNIT_EXPECT_EQ(test, TEN_THOUSAND / 100, mock->log.nr);
}

static struct kunit_case dispose_cases[] = {
	KUNIT_CASE(disposed_batch_refuses),
	KUNIT_CASE(accepted_items_run_then_released_once),
	KUNIT_CASE(disposed_while_the_last_item_runs),
	KUNIT_CASE(disposed_idle_goes),
	KUNIT_CASE(two_holders_may_both_dispose),
	KUNIT_CASE(disposed_paused_batch_drains),
	KUNIT_CASE(released_batch_outlives_its_pool),
	KUNIT_CASE(batch_without_a_pool_takes_calls),
	KUNIT_CASE(pool_goes_during_a_flush),
	KUNIT_CASE(fifty_pools_leave_nothing),
	KUNIT_CASE(pool_waits_for_the_item_of_a_call),
	KUNIT_CASE(sleeping_release_stalls_no_other),
	KUNIT_CASE(dispose_works_from_hardirq),
	KUNIT_CASE(item_runs_if_disposed_in_its_queue_call),
	KUNIT_CASE(dispose_needs_no_grace_period),
	KUNIT_CASE_PARAM(queue_against_dispose_runs_or_is_refused, race_gen_params),
	KUNIT_CASE(ten_thousand_batches_leave_nothing),
	{}
};

static struct kunit_suite dispose_suite = {
	.name = "fairwq_batch",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = dispose_cases,
};

kunit_test_suite(dispose_suite);

MODULE_DESCRIPTION("KUnit: deferred removal");
MODULE_LICENSE("GPL");
