// SPDX-License-Identifier: GPL-2.0
/*
 * Shutdowns of batches and serializers: each accepted work runs once or is
 * dropped once, wherever it is, before the call returns.
 *
 * log_dropped() logs the letter of a dropped item in upper case.
 */
#include <linux/ctype.h>
#include <linux/kthread.h>

#include "lib/client.h"
#include "lib/order.h"

#define HOUR		(3600 * HZ)	/* longer than any case takes */
#define MANY		70U	/* more than the module takes out of a list in one step */
/* Time in which a bug may show itself. A correct module uses all of it. */
#define WRONG_MS	(MOCK_PLANTED ? 500U : 50U)

/* ---- a shutdown in a thread of its own ---------------------------------- */

/* The arguments and the result of a shutdown. */
struct going {
	struct fairwq_batch *batch;
	struct fairwq_serializer *serial;	/* if set, it is shut down instead of @batch */
	unsigned int how;
	void (*dropped)(struct fairwq_work *work);
	bool *inside;			/* if not NULL: begin when this is set */
	int ret;
};

static struct going going;

static void log_dropped(struct fairwq_work *work)
{
	struct mock_item *item = container_of(work, struct mock_item, work);

	mock_log_add(item->log, toupper(item->letter));
}

/* Shut down as @going says. Return: true if that returned 0. */
static bool going_fn(struct fairwq_work *work)
{
	if (going.inside && !spin_until(going.inside))
		return false;
	if (going.serial)
		going.ret = fairwq_serializer_shutdown(going.serial, going.how,
						       going.dropped);
	else
		going.ret = fairwq_batch_shutdown(going.batch, going.how, going.dropped);
	return !going.ret;
}

/* Start a shutdown of @batch in a thread of its own. */
static struct call *start_with(struct kunit *test, struct fairwq_batch *batch, unsigned int how,
			       void (*dropped)(struct fairwq_work *work))
{
	going = (struct going){ .batch = batch, .how = how, .dropped = dropped };
	return mock_call_start(test, going_fn, NULL);
}

/* The same for works that are mock items. */
static struct call *start(struct kunit *test, struct fairwq_batch *batch, unsigned int how)
{
	return start_with(test, batch, how, log_dropped);
}

/* Calls of released(). Not on a stack, because with a bug such a call may be late. */
static atomic_t released;

/* Sleep before counting, so that the case sees a shutdown that does not wait for this. */
static void slow_released(struct fairwq_batch *batch, void *priv)
{
	usleep_range(1000, 2000);	/* to show the bug; any time will do */
	mock_released_count(batch, priv);
}

/* Make a pool, and a batch that counts in @released. The case must shut the batch down. */
static struct fairwq_batch *batch_begin(struct kunit *test, unsigned int max_active)
{
	const struct fairwq_batch_attrs attrs = {
		.released = slow_released, .priv = &released,
	};

	atomic_set(&released, 0);
	mock_pool(test, max_active);
	return mock_own_batch(test, "a", &attrs);
}

static bool is_disposed(struct fairwq_batch *batch)
{
	return fairwq_batch_is_disposed(batch);
}

/* Check that a shutdown sleeps, or is about to, until something happens to its batch. */
static bool sleeps(struct kunit *test)
{
	struct mock *mock = test->priv;

	return !list_empty_careful(&mock->pool->waits.batches);
}

/* ---- queued works --------------------------------------------------------- */

/* With FAIRWQ_RUN_REST queued works run, also of a paused batch. New items are refused. */
static void queued_works_run(struct kunit *test)
{
	struct fairwq_batch *a = batch_begin(test, 1);
	struct mock *mock = test->priv;
	struct call *call;

	mock_queue_item(test, a, 'a');
	mock_queue_item(test, a, 'b');
	fairwq_batch_pause(a);
	fairwq_batch_get(a);
	call = start(test, a, FAIRWQ_RUN_REST);
	mock_until(test, is_disposed(a));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, fairwq_queue(a, &mock_item(test, 'x')->work));
	KUNIT_EXPECT_FALSE(test, completion_done(&call->done));
	mock_open(test);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	KUNIT_EXPECT_STREQ(test, "ab", &mock->log.text[0]);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&released));
	KUNIT_EXPECT_EQ(test, 4U, mock_nr_batches(mock->pool));
	mock_wait_released();	/* RCU has a reference until the dispose is long ago */
	KUNIT_EXPECT_EQ(test, 1U, kref_read(&a->refs));
	fairwq_batch_put(a);
}

/*
 * With FAIRWQ_DROP_REST queued works are dropped in queue order. The call
 * returns although no runner is free, because there is nothing to wait for.
 */
static void queued_works_are_dropped(struct kunit *test)
{
	struct fairwq_batch *a = batch_begin(test, 1);
	struct mock *mock = test->priv;
	struct mock_item *item[3];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(item); i++)
		item[i] = mock_queue_item(test, a, 'a' + i);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, start(test, a, FAIRWQ_DROP_REST)));
	KUNIT_EXPECT_STREQ(test, "ABC", &mock->log.text[0]);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&released));
	for (i = 0; i < ARRAY_SIZE(item); i++)
		KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&item[i]->work));
}

/* With FAIRWQ_DROP_REST the call drops the queued items and waits for the running one. */
static void running_item_is_waited_for(struct kunit *test)
{
	struct fairwq_batch *a = batch_begin(test, 2);
	struct mock_gate *gate = mock_gate_new(test);
	struct mock *mock = test->priv;
	struct call *call;

	mock_gate_enter(test, a, gate);
	mock_queue_item(test, a, 'a');
	call = start(test, a, FAIRWQ_DROP_REST);
	mock_until(test, READ_ONCE(mock->log.nr) == 1);
	mock_until(test, sleeps(test));
	KUNIT_EXPECT_FALSE(test, completion_done(&call->done));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&released));
	complete_all(&gate->open);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	KUNIT_EXPECT_STREQ(test, "A", &mock->log.text[0]);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&released));
}

/* ---- nothing begins once a drop has begun -------------------------------- */

#define PAUSED_ITEMS	1000U
#define PAUSED_ROUNDS	20U
#define HELD_ITEMS	MOCK_MANY(10000U)

/* How often works ran, and were dropped. */
static struct {
	atomic_t ran, dropped;
} tally;

static void tally_fn(struct fairwq_work *work)
{
	atomic_inc(&tally.ran);
}

static void tally_dropped(struct fairwq_work *work)
{
	atomic_inc(&tally.dropped);
}

/* Clear @tally, and make @n works that count there. */
static struct fairwq_work *tally_begin(struct kunit *test, unsigned int n)
{
	struct fairwq_work *works = kunit_kcalloc(test, n, sizeof(*works), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, works);
	atomic_set(&tally.ran, 0);
	atomic_set(&tally.dropped, 0);
	while (n--)
		fairwq_work_init(&works[n], tally_fn);
	return works;
}

/* Check that all @n works were dropped, and none ran. */
static void tally_end(struct kunit *test, unsigned int n)
{
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&tally.ran));
	KUNIT_EXPECT_EQ(test, n, (unsigned int)atomic_read(&tally.dropped));
}

/* Works of a paused batch are dropped, though runners are free: the pause does not end first. */
static void paused_works_are_dropped(struct kunit *test)
{
	struct fairwq_work *works = tally_begin(test, PAUSED_ITEMS);
	struct fairwq_batch *a;
	unsigned int round, i;

	mock_pool(test, 2);
	mock_open(test);
	for (round = 1; round <= PAUSED_ROUNDS; round++) {
		a = mock_own_batch(test, "a", NULL);
		fairwq_batch_pause(a);
		for (i = 0; i < PAUSED_ITEMS; i++)
			KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &works[i]));
		KUNIT_EXPECT_EQ(test, 0, fairwq_batch_shutdown(a, FAIRWQ_DROP_REST,
							       tally_dropped));
		tally_end(test, round * PAUSED_ITEMS);
	}
}

/* What another holder of a batch does while its works are dropped. */
static void others_act(struct fairwq_batch *batch)
{
	fairwq_batch_resume(batch);
	fairwq_batch_pause(batch);
	fairwq_batch_resume(batch);
	fairwq_batch_dispose(fairwq_batch_get(batch));
}

/* Queue works to @a in @order. They wait behind an item of another batch. */
static struct mock_gate *held_begin(struct kunit *test, const struct order *order,
				    struct fairwq_batch *a)
{
	struct mock_gate *gate = mock_order_gate(test, order, mock_batch(test, "b"));
	struct fairwq_work *works = tally_begin(test, HELD_ITEMS);
	unsigned int i;

	for (i = 0; i < HELD_ITEMS; i++)
		KUNIT_ASSERT_EQ(test, 1, mock_order_queue(order, a, &works[i]));
	return gate;
}

/*
 * The works of a batch wait in a serializer when the drop begins. They are
 * dropped as it lets them go, whatever other holders of the batch do meanwhile.
 */
static void others_do_not_end_a_drop(struct kunit *test)
{
	struct fairwq_batch *a = batch_begin(test, 3);
	struct order order = mock_order_new(test, false);
	struct mock_gate *gate = held_begin(test, &order, fairwq_batch_get(a));
	struct call *call;

	/* Nor does the runner go on with them by itself. */
	KUNIT_EXPECT_EQ(test, 0, fairwq_serializer_set_inline(order.serial,
							      FAIRWQ_MAX_INLINE_US));
	mock_open(test);
	call = start_with(test, a, FAIRWQ_DROP_REST, tally_dropped);
	mock_until(test, is_disposed(a));
	others_act(a);
	complete_all(&gate->open);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	tally_end(test, HELD_ITEMS);
	fairwq_batch_put(a);
	mock_order_end(test, &order);
}

static bool destroy_fn(struct fairwq_work *work)
{
	fairwq_pool_destroy(going.batch->pool);
	return true;
}

/* Nor does the end of the pool. */
static void end_of_the_pool_does_not_end_a_drop(struct kunit *test)
{
	struct fairwq_pool *pool = fairwq_pool_create(NULL, "short-lived");
	struct order order = mock_order_new(test, false);
	struct call *call, *destroy;
	struct fairwq_batch *a;
	struct mock_gate *gate;

	mock_pool(test, 2);
	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	a = fairwq_batch_create(pool, NULL, "a");
	gate = held_begin(test, &order, a);
	call = start_with(test, a, FAIRWQ_DROP_REST, tally_dropped);
	mock_until(test, is_disposed(a));
	destroy = mock_call_start(test, destroy_fn, NULL);
	mock_until(test, READ_ONCE(pool->registry.dying) && READ_ONCE(pool->draining));
	complete_all(&gate->open);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	mock_call_end(test, destroy);
	tally_end(test, HELD_ITEMS);
	mock_order_end(test, &order);
}

/* A work that waits for a delay or a grace period while its batch begins to go. */
static struct {
	struct fairwq_delayed_work dwork;
	struct fairwq_rcu_work rwork;
	bool claimed, go;		/* steps of the call that moves it */
} late;

/* Hold up a call that moves the work until the drop has begun, and others have tried to end it. */
static void hold_late(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point != FAIRWQ_POINT_MOVING || batch != going.batch)
		return;
	fairwq_test_set_hook(NULL);
	step_done(&late.claimed);
	spin_until(&late.go);
}

static bool move_late(struct fairwq_work *work)
{
	return fairwq_mod_delayed(going.batch, &late.dwork, HOUR) == 1;
}

static struct fairwq_batch *late_begin(struct kunit *test)
{
	struct fairwq_batch *a = batch_begin(test, 3);

	mock_open(test);
	tally_begin(test, 1);
	fairwq_delayed_work_init(&late.dwork, tally_fn);
	fairwq_rcu_work_init(&late.rwork, tally_fn);
	late.claimed = false;
	late.go = false;
	going = (struct going){ .batch = fairwq_batch_get(a), .how = FAIRWQ_DROP_REST,
				.dropped = tally_dropped };
	fairwq_batch_pause(a);		/* so that it does not start before the drop */
	return a;
}

static void late_end(struct kunit *test, struct fairwq_batch *a)
{
	tally_end(test, 1);
	fairwq_batch_put(a);
}

/* A timer that fires during a drop starts no work. */
static void late_timer_starts_nothing(struct kunit *test)
{
	struct fairwq_batch *a = late_begin(test);

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &late.dwork, 1));
	going_fn(NULL);
	late_end(test, a);
}

/* Nor does a grace period that ends during a drop. */
static void late_grace_period_starts_nothing(struct kunit *test)
{
	struct fairwq_batch *a = late_begin(test);

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_rcu(a, &late.rwork));
	going_fn(NULL);
	late_end(test, a);
}

/* A delay that begins during a drop ends, too. */
static void late_delay_ends(struct kunit *test)
{
	struct call *move, *call;
	struct fairwq_batch *a;

	need_two_cpus(test);
	a = late_begin(test);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(a, &late.dwork, HOUR));
	fairwq_test_set_hook(hold_late);
	move = mock_call_start_apart(test, move_late, NULL);
	mock_until(test, smp_load_acquire(&late.claimed));	/* pairs with step_done() */
	call = mock_call_new(test, going_fn, NULL);
	kthread_bind(call->task, raw_smp_processor_id());
	wake_up_process(call->task);
	mock_until(test, is_disposed(a));
	others_act(a);
	step_done(&late.go);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, move));
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	late_end(test, a);
}

static struct mock *opened;	/* the fixture whose gate is opened by the first drop */

/* Give what must not start the time to do so, once: free the runners, and wait. */
static void drop_slowly(struct fairwq_work *work)
{
	tally_dropped(work);
	if (!opened)
		return;
	mock_gates_open(opened->gates);
	complete_all(&opened->gate.open);
	opened = NULL;
	spin_for(WRONG_MS, atomic_read(&tally.ran));
}

/* With FAIRWQ_AND_OWNED all batches stop before the works of the first one are given back. */
static void owned_batches_stop_together(struct kunit *test)
{
	struct fairwq_work *works = tally_begin(test, 3 * MANY);
	struct fairwq_batch *owner = batch_begin(test, 1), *child[2];
	const struct fairwq_batch_attrs attrs = { .parent = owner };
	unsigned int i;

	child[0] = mock_own_batch(test, "child", &attrs);
	child[1] = mock_own_batch(test, "other child", &attrs);
	for (i = 0; i < 3 * MANY; i++)
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(i % 3 ? child[i % 3 - 1] : owner,
						      &works[i]));
	opened = test->priv;
	KUNIT_EXPECT_EQ(test, 0, fairwq_batch_shutdown(owner, FAIRWQ_DROP_REST |
						       FAIRWQ_AND_OWNED, drop_slowly));
	tally_end(test, 3 * MANY);
	for (i = 0; i < 2; i++)
		fairwq_batch_dispose(child[i]);
}

/*
 * A serializer starts none of its works while they are dropped, if the one in
 * flight ends. A flush that waits behind them returns.
 */
static void serializer_stops_at_once(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct order order = mock_order_new(test, false);
	struct fairwq_work *works = tally_begin(test, MANY);
	struct thread flush = { .order = order };
	unsigned int i;

	mock_order_gate(test, &order, a);
	for (i = 0; i < MANY; i++)
		KUNIT_ASSERT_EQ(test, 1, mock_order_queue(&order, a, &works[i]));
	mock_thread_start(test, &flush, mock_thread_flush);
	mock_until(test, mock_order_last(&order) != &works[MANY - 1]);
	opened = test->priv;
	KUNIT_EXPECT_EQ(test, 0, fairwq_serializer_shutdown(order.serial, FAIRWQ_DROP_REST,
							    drop_slowly));
	tally_end(test, MANY);
	mock_thread_end(test, &flush);
	KUNIT_EXPECT_TRUE(test, mock_order_idle(&order));
}

/* ---- a wait costs nothing -------------------------------------------------- */

/* Check that @call sleeps in its shutdown. */
static bool is_asleep(struct kunit *test, const struct call *call)
{
	return sleeps(test) && READ_ONCE(call->task->__state) == TASK_UNINTERRUPTIBLE;
}

/*
 * Expect that @call, which was asleep when it had made @switches, was not woken
 * since. It may have been preempted on its way out, and have left after that.
 */
static void expect_asleep_since(struct kunit *test, const struct call *call,
				unsigned long switches)
{
	KUNIT_EXPECT_LE(test, READ_ONCE(call->task->nvcsw), switches + 1);
}

/*
 * Shut @a down while an item of it is in flight: a runner's, or one that goes
 * on after its function. While another client runs items, nothing wakes the
 * call.
 */
static void sleep_beside_others(struct kunit *test, struct fairwq_batch *a, unsigned int how)
{
	struct fairwq_batch *b = mock_batch(test, "b");
	struct mock *mock = test->priv;
	unsigned int i, last = 0;
	unsigned long switches;
	struct call *call;

	call = start(test, a, how);
	mock_until(test, is_disposed(a) && is_asleep(test, call));
	switches = call->task->nvcsw;
	for (i = 0; i < 100; i++) {
		mock_queue(test, b, 'b', 1);
		fairwq_batch_flush(b);
		fairwq_batch_dispose(mock_own_batch(test, "comes and goes", NULL));
		last += is_asleep(test, call);
	}
	mock_wait_released();
	KUNIT_EXPECT_EQ(test, 100U, last);
	expect_asleep_since(test, call, switches);
	mock_gates_open(mock->gates);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
}

static void shutdown_sleeps(struct kunit *test, unsigned int how)
{
	struct fairwq_batch *a = batch_begin(test, 3);
	struct mock_gate *gate = mock_gate_new(test);

	mock_open(test);
	mock_gate_enter(test, a, gate);
	sleep_beside_others(test, a, how);
}

static void shutdown_that_runs_the_rest_sleeps(struct kunit *test)
{
	shutdown_sleeps(test, FAIRWQ_RUN_REST);
}

static void shutdown_that_drops_sleeps(struct kunit *test)
{
	shutdown_sleeps(test, FAIRWQ_DROP_REST);
}

#define NR_CHILDREN	8U

/*
 * A shutdown of many batches sleeps until the last one has left. It does not
 * look at all of them whenever one leaves.
 */
static void shutdown_of_many_sleeps(struct kunit *test)
{
	struct fairwq_batch *owner = batch_begin(test, NR_CHILDREN), *child[NR_CHILDREN];
	const struct fairwq_batch_attrs attrs = { .parent = owner };
	struct mock_gate *gate[NR_CHILDREN];
	struct mock *mock = test->priv;
	unsigned long switches;
	unsigned int i, nr;
	struct call *call;

	mock_open(test);
	for (i = 0; i < NR_CHILDREN; i++) {
		child[i] = mock_own_batch(test, "child", &attrs);
		gate[i] = mock_gate_new(test);
		mock_gate_enter(test, child[i], gate[i]);
	}
	nr = mock_nr_batches(mock->pool) - 1;
	call = start(test, owner, FAIRWQ_AND_OWNED);
	mock_until(test, mock_nr_batches(mock->pool) == nr && is_asleep(test, call));
	switches = call->task->nvcsw;
	mock_batch(test, "other");	/* one that is none of them does not matter */
	nr++;
	for (i = 0; i < NR_CHILDREN - 1; i++) {
		complete_all(&gate[i]->open);
		mock_until(test, mock_nr_batches(mock->pool) == nr - 1 - i);
		mock_until(test, is_asleep(test, call));
	}
	expect_asleep_since(test, call, switches);
	complete_all(&gate[i]->open);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	for (i = 0; i < NR_CHILDREN; i++)
		fairwq_batch_dispose(child[i]);
}

static struct fairwq_batch *late_owner;

/* Shut the owner down, with all it owns, while a batch is made below it. */
static void end_late_owner(enum fairwq_test_point point, struct fairwq_batch *owner)
{
	if (point != FAIRWQ_POINT_BATCH_NEW || owner != late_owner)
		return;
	fairwq_test_set_hook(NULL);
	fairwq_batch_shutdown(owner, FAIRWQ_RUN_REST | FAIRWQ_AND_OWNED, NULL);
}

/* A batch that comes too late for the shutdown of its owner is refused. */
static void late_child_is_refused(struct kunit *test)
{
	const struct fairwq_batch_attrs attrs = {
		.parent = fairwq_batch_get(batch_begin(test, 1)),
	};
	struct mock *mock = test->priv;
	struct fairwq_batch *child;

	late_owner = attrs.parent;
	fairwq_test_set_hook(end_late_owner);
	child = fairwq_batch_create(mock->pool, &attrs, "child");
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-ESHUTDOWN), child);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&released));
	fairwq_batch_dispose(child);
	fairwq_batch_put(attrs.parent);
}

/* ---- works that are not in the queue yet ---------------------------------- */

/* A delayed work, and where it counts its runs and its drops. */
struct delayed {
	struct fairwq_delayed_work dwork;
	atomic_t *ran, *dropped;
};

static void delayed_fn(struct fairwq_work *work)
{
	atomic_inc(container_of(work, struct delayed, dwork.work)->ran);
}

static void delayed_dropped(struct fairwq_work *work)
{
	atomic_inc(container_of(work, struct delayed, dwork.work)->dropped);
}

/*
 * Queue many works to @a and one to @b, all with a delay of an hour. Half of
 * them have deferrable timers.
 *
 * Return: the work that was queued to @b.
 */
static struct delayed *delayed_begin(struct kunit *test, struct fairwq_batch *a,
				     struct fairwq_batch *b, atomic_t *ran, atomic_t *dropped)
{
	struct delayed *all = kunit_kcalloc(test, MANY + 1, sizeof(*all), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, all);
	for (i = 0; i <= MANY; i++) {
		all[i].ran = ran;
		all[i].dropped = dropped;
		if (i % 2)
			fairwq_delayed_work_init(&all[i].dwork, delayed_fn);
		else
			fairwq_delayed_work_init_deferrable(&all[i].dwork, delayed_fn);
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue_delayed(i < MANY ? a : b,
							      &all[i].dwork, HOUR));
	}
	return &all[MANY];
}

/* Check that all works of @a have run or were dropped, and that @other still waits. */
static void delayed_end(struct kunit *test, struct delayed *other, unsigned int how)
{
	bool drop = how == FAIRWQ_DROP_REST;

	KUNIT_EXPECT_EQ(test, drop ? 0U : MANY, (unsigned int)atomic_read(other->ran));
	KUNIT_EXPECT_EQ(test, drop ? MANY : 0U, (unsigned int)atomic_read(other->dropped));
	KUNIT_EXPECT_TRUE(test, timer_pending(&other->dwork.timer));
	KUNIT_EXPECT_TRUE(test, fairwq_delayed_work_cancel_sync(&other->dwork));
}

/*
 * A shutdown ends the delays of its batch at once, then runs or drops the
 * works. A delayed work of another batch is left alone.
 */
static void delays_end_at_once(struct kunit *test)
{
	static const unsigned int hows[] = { FAIRWQ_RUN_REST, FAIRWQ_DROP_REST };
	static atomic_t ran, dropped;
	struct fairwq_batch *a = batch_begin(test, 2), *b;
	struct delayed *other;
	unsigned int i;

	b = mock_batch(test, "b");
	for (i = 0; i < ARRAY_SIZE(hows); i++) {
		atomic_set(&ran, 0);
		atomic_set(&dropped, 0);
		other = delayed_begin(test, a, b, &ran, &dropped);
		going = (struct going){ .batch = a, .how = hows[i],
					.dropped = delayed_dropped };
		mock_call_end(test, mock_call_start(test, going_fn, NULL));
		KUNIT_EXPECT_EQ(test, 0, going.ret);
		delayed_end(test, other, hows[i]);
		if (!i)
			a = mock_own_batch(test, "a", NULL);
	}
}

/* A work that waits for a grace period is dropped after it. */
static void graced_work_is_dropped(struct kunit *test)
{
	static struct fairwq_rcu_work rwork;
	struct fairwq_batch *a = batch_begin(test, 2);

	fairwq_rcu_work_init(&rwork, mock_nothing_fn);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_rcu(a, &rwork));
	going = (struct going){ .batch = a, .how = FAIRWQ_DROP_REST };
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, mock_call_start(test, going_fn, NULL)));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&rwork.work));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&released));
}

/*
 * Shut down a batch whose works wait in a serializer, behind an item of another
 * batch. When the serializer admits them they run or are dropped. The call
 * sleeps until then.
 */
static void held_back_works(struct kunit *test, unsigned int how, const char *log)
{
	struct fairwq_batch *a = batch_begin(test, 2);
	struct fairwq_batch *b = mock_batch(test, "b");
	struct order order = mock_order_new(test, false);
	struct mock_gate *gate = mock_order_gate(test, &order, b);
	struct mock *mock = test->priv;
	struct call *call;

	mock_order_item(test, &order, a, 'x');
	mock_order_item(test, &order, a, 'y');
	call = start(test, a, how);
	mock_until(test, is_disposed(a) && sleeps(test));
	KUNIT_EXPECT_FALSE(test, completion_done(&call->done));
	KUNIT_EXPECT_STREQ(test, "", &mock->log.text[0]);
	complete_all(&gate->open);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	KUNIT_EXPECT_STREQ(test, log, &mock->log.text[0]);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&released));
	mock_order_end(test, &order);
}

static void held_back_works_run(struct kunit *test)
{
	held_back_works(test, FAIRWQ_RUN_REST, "xy");
}

static void held_back_works_are_dropped(struct kunit *test)
{
	held_back_works(test, FAIRWQ_DROP_REST, "XY");
}

static bool accepted;		/* the queue call has claimed its work */
static struct kunit *hooked;	/* the case, for the hook */
static struct call *shutdown;	/* its shutdown */

/* Hold up a queue call that has claimed its work, until a shutdown has found nothing. */
static void wait_for_the_shutdown(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point != FAIRWQ_POINT_QUEUE_PUSHED || batch != going.batch)
		return;
	fairwq_test_set_hook(NULL);
	step_done(&accepted);
	/* A call that is about to sleep looks once more. */
	spin_within(sleeps(hooked) &&
		    READ_ONCE(shutdown->task->__state) == TASK_UNINTERRUPTIBLE);
}

/* A queue call is under way when the shutdown begins. Its item is dropped when it is pushed. */
static void queue_call_under_way(struct kunit *test)
{
	struct fairwq_batch *a = batch_begin(test, 1);
	struct mock_item *item = mock_item(test, 'a');
	struct mock *mock = test->priv;

	need_two_cpus(test);
	accepted = false;
	hooked = test;
	going = (struct going){ .batch = a, .how = FAIRWQ_DROP_REST,
				.dropped = log_dropped, .inside = &accepted };
	shutdown = mock_call_start_apart(test, going_fn, NULL);
	fairwq_test_set_hook(wait_for_the_shutdown);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &item->work));
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, shutdown));
	KUNIT_EXPECT_STREQ(test, "A", &mock->log.text[0]);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&released));
}

/* An item whose turn goes on after its function has returned. */
struct goes_on {
	struct fairwq_work work;
	struct fairwq_async async;
	struct completion begun;
};

static void goes_on_fn(struct fairwq_work *work)
{
	struct goes_on *on = container_of(work, struct goes_on, work);

	fairwq_async_begin(&on->async);
	complete(&on->begun);
}

/* A shutdown waits for a turn that goes on after its function. */
static void turn_that_goes_on_is_waited_for(struct kunit *test)
{
	struct fairwq_batch *a = batch_begin(test, 2);
	static struct goes_on on;
	struct call *call;

	init_completion(&on.begun);
	fairwq_work_init(&on.work, goes_on_fn);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &on.work));
	mock_await(test, &on.begun);
	call = start(test, a, FAIRWQ_DROP_REST);
	mock_until(test, is_disposed(a) && sleeps(test));
	KUNIT_EXPECT_FALSE(test, completion_done(&call->done));
	fairwq_async_complete(&on.async, 0);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&released));
}

/*
 * With FAIRWQ_AND_OWNED the batches below the owner are shut down with it.
 * Their works, which alternate in one serializer, are all dropped. A batch of
 * no owner is left alone.
 */
static void owned_batches_go_along(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .released = slow_released, .priv = &released };
	struct fairwq_batch *owner = batch_begin(test, 1), *child[2], *other;
	struct order order = mock_order_new(test, false);
	struct mock *mock = test->priv;
	unsigned int i;

	other = mock_batch(test, "other");
	attrs.parent = owner;
	child[0] = mock_own_batch(test, "child", &attrs);
	attrs.parent = child[0];
	child[1] = mock_own_batch(test, "grandchild", &attrs);
	for (i = 0; i < 6; i++)
		mock_order_item(test, &order, child[i % 2], 'a' + i);
	mock_queue_item(test, other, 'o');
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, start(test, owner, FAIRWQ_DROP_REST |
							  FAIRWQ_AND_OWNED)));
	KUNIT_EXPECT_STREQ(test, "ABCDEF", &mock->log.text[0]);
	KUNIT_EXPECT_EQ(test, 3, atomic_read(&released));
	KUNIT_EXPECT_EQ(test, 5U, mock_nr_batches(mock->pool));
	for (i = 0; i < 2; i++)
		fairwq_batch_dispose(child[i]);
	mock_expect(test, "ABCDEFo");
	mock_order_end(test, &order);
}

#define MANY_CHILDREN	64U
#define MANY_WORKS	256U

static atomic_t nr_looks;

static void looks_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point == FAIRWQ_POINT_SHUTDOWN_LOOK)
		atomic_inc(&nr_looks);
}

/*
 * Drop works that wait in a serializer for @nr of many batches, the last one
 * first. Expect a number of looks.
 */
static void drop_among_many(struct kunit *test, unsigned int nr, int most)
{
	struct fairwq_batch *child[MANY_CHILDREN], *owner = batch_begin(test, 1);
	const struct fairwq_batch_attrs attrs = { .parent = owner };
	struct order order = mock_order_new(test, false);
	struct mock *mock = test->priv;
	unsigned int i;

	for (i = 0; i < MANY_CHILDREN; i++)
		child[i] = mock_own_batch(test, "child", &attrs);
	for (i = 0; i < MANY_WORKS; i++)
		mock_order_item(test, &order, child[nr - 1 - i % nr], 'a');
	atomic_set(&nr_looks, 0);
	fairwq_test_set_hook(looks_hook);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, start(test, owner, FAIRWQ_DROP_REST |
							  FAIRWQ_AND_OWNED)));
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_EQ(test, MANY_WORKS, mock->log.nr);
	KUNIT_EXPECT_LE(test, atomic_read(&nr_looks), most);
	for (i = 0; i < MANY_CHILDREN; i++)
		fairwq_batch_dispose(child[i]);
	mock_order_end(test, &order);
}

/* A drop does not look at all batches again for each work that a serializer lets go. */
static void drop_looks_at_what_has_works(struct kunit *test)
{
	drop_among_many(test, 1, 2 * MANY_CHILDREN + 8);
}

static void drop_looks_at_what_has_works_of_many(struct kunit *test)
{
	drop_among_many(test, MANY_CHILDREN, 2 * (MANY_CHILDREN + MANY_WORKS));
}

/* ---- callers -------------------------------------------------------------- */

/* An item, or a released(), that shuts down its own batch. */
struct self {
	struct fairwq_work work;
	struct fairwq_batch *batch;
	struct completion done;
	int ret;
};

static void self_fn(struct fairwq_work *work)
{
	struct self *self = container_of(work, struct self, work);

	self->ret = fairwq_batch_shutdown(self->batch, FAIRWQ_DROP_REST, NULL);
	complete(&self->done);
}

static void self_released(struct fairwq_batch *batch, void *priv)
{
	struct self *self = priv;

	self->ret = fairwq_batch_shutdown(batch, FAIRWQ_RUN_REST, NULL);
	complete(&self->done);
}

static void pool_destroying_released(struct fairwq_batch *batch, void *priv)
{
	struct self *self = priv;

	fairwq_pool_destroy(batch->pool);
	complete(&self->done);
}

/* Nor may a released() destroy its pool, which would wait for it. */
static void released_may_not_destroy_its_pool(struct kunit *test)
{
	static struct self self;
	const struct fairwq_batch_attrs attrs = {
		.released = pool_destroying_released, .priv = &self,
	};

	init_completion(&self.done);
	mock_pool(test, 2);
	pr_info("# expect-splat begin destroys its pool\n");
	fairwq_batch_dispose(mock_own_batch(test, "a", &attrs));
	mock_await(test, &self.done);
	pr_info("# expect-splat end\n");
}

/* An item of the batch, or its released(), may not shut it down: the call changes nothing. */
static void own_item_is_refused(struct kunit *test)
{
	static struct self self;
	const struct fairwq_batch_attrs attrs = { .released = self_released, .priv = &self };
	struct mock *mock = test->priv;

	mock_pool(test, 2);
	self.batch = mock_own_batch(test, "a", &attrs);
	init_completion(&self.done);
	fairwq_work_init(&self.work, self_fn);
	pr_info("# expect-splat begin shuts down a\n");
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(self.batch, &self.work));
	mock_await(test, &self.done);
	KUNIT_EXPECT_EQ(test, -EDEADLK, self.ret);
	mock_queue_item(test, self.batch, 'a');
	mock_expect(test, "a");
	reinit_completion(&self.done);
	self.ret = 0;
	KUNIT_EXPECT_EQ(test, 0, fairwq_batch_shutdown(self.batch, FAIRWQ_RUN_REST, NULL));
	pr_info("# expect-splat end\n");
	KUNIT_EXPECT_TRUE(test, completion_done(&self.done));
	KUNIT_EXPECT_EQ(test, -EDEADLK, self.ret);
	KUNIT_EXPECT_EQ(test, 4U, mock_nr_batches(mock->pool));
}

static void bad_arguments_are_refused(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct order order = mock_order_new(test, false);
	struct mock *mock = test->priv;

	KUNIT_EXPECT_EQ(test, 0, fairwq_batch_shutdown(NULL, FAIRWQ_RUN_REST, NULL));
	KUNIT_EXPECT_EQ(test, 0, fairwq_batch_shutdown(ERR_PTR(-ENOMEM), 0, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_batch_shutdown(a, BIT(31), NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fairwq_batch_shutdown(mock->pool->registry.default_batch[0], 0, NULL));
	KUNIT_EXPECT_EQ(test, 0, fairwq_serializer_shutdown(NULL, 0, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			fairwq_serializer_shutdown(order.serial, BIT(31), NULL));
	KUNIT_EXPECT_FALSE(test, fairwq_serializer_is_last(NULL));
	KUNIT_EXPECT_EQ(test, 0, fairwq_serializer_shutdown(order.serial, 0, NULL));
	mock_queue_item(test, a, 'a');
	mock_expect(test, "a");
}

/*
 * A shutdown after a dispose drops the rest and waits. If the pool was
 * destroyed, it returns at once.
 */
static void disposed_batch_is_waited_for(struct kunit *test)
{
	struct fairwq_batch *a = batch_begin(test, 1);
	struct mock *mock = test->priv;

	fairwq_batch_get(a);
	fairwq_batch_get(a);
	mock_queue_item(test, a, 'a');
	fairwq_batch_dispose(a);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, start(test, a, FAIRWQ_DROP_REST)));
	KUNIT_EXPECT_STREQ(test, "A", &mock->log.text[0]);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&released));
	mock_open(test);
	fairwq_batch_dispose(mock->gate_batch);
	mock->gate_batch = NULL;
	judge_set_pool(&mock->judge, NULL);
	fairwq_pool_destroy(mock->pool);
	mock->pool = NULL;
	KUNIT_EXPECT_EQ(test, 0, fairwq_batch_shutdown(a, FAIRWQ_DROP_REST, NULL));
}

/* ---- everything at once ---------------------------------------------------- */

#define STORM_ITEMS	48U
#define STORM_ROUNDS	MOCK_MANY(60U)

/* An item, and counts of its accepted queue calls, its runs and its drops. */
struct storm_item {
	struct fairwq_delayed_work dwork;
	atomic_t queued, ran, dropped;
};

static struct storm {
	struct fairwq_batch *batch;
	struct fairwq_serializer serial;
	struct storm_item item[STORM_ITEMS];
	bool stop;
} storm;

static void storm_fn(struct fairwq_work *work)
{
	atomic_inc(&container_of(work, struct storm_item, dwork.work)->ran);
}

static void storm_dropped(struct fairwq_work *work)
{
	atomic_inc(&container_of(work, struct storm_item, dwork.work)->dropped);
}

/* Queue @item in one of four ways. Return: as fairwq_queue(). */
static int storm_queue(struct storm_item *item, unsigned int dice)
{
	switch (dice % 4) {
	case 0:
		return fairwq_queue(storm.batch, &item->dwork.work);
	case 1:
		return fairwq_queue_delayed(storm.batch, &item->dwork, 1);
	case 2:
		return fairwq_queue_delayed(storm.batch, &item->dwork, HOUR);
	default:
		return fairwq_serializer_queue(&storm.serial, storm.batch, &item->dwork.work);
	}
}

/* Queue works in all ways until the batch refuses them. */
static void storm_thread(struct thread *thread)
{
	unsigned int dice = thread->id;
	struct storm_item *item;
	bool last;
	int ret;

	do {
		last = READ_ONCE(storm.stop);	/* so at least one call follows the shutdown */
		dice += 5;
		item = &storm.item[dice % STORM_ITEMS];
		ret = storm_queue(item, dice / 7);
		if (ret == 1)
			atomic_inc(&item->queued);
		cond_resched();
	} while (ret >= 0 && !last);
	thread->ret = ret;
}

/*
 * Threads queue in all ways while the batch is shut down. Each accepted work
 * runs once or is dropped once.
 */
static void nothing_is_lost(struct kunit *test)
{
	struct thread thread[2] = { };
	struct mock *mock = test->priv;
	unsigned int round, i;

	mock_pool(test, 2);
	mock_open(test);
	fairwq_serializer_init(&storm.serial);
	for (round = 0; round < STORM_ROUNDS; round++) {
		storm.batch = mock_own_batch(test, "storm", NULL);
		storm.stop = false;
		memset(storm.item, 0, sizeof(storm.item));
		for (i = 0; i < STORM_ITEMS; i++)
			fairwq_delayed_work_init(&storm.item[i].dwork, storm_fn);
		for (i = 0; i < ARRAY_SIZE(thread); i++) {
			thread[i] = (struct thread){ .id = i + 3 * round };
			mock_thread_start(test, &thread[i], storm_thread);
		}
		usleep_range(100, 1000);	/* any time will do */
		fairwq_batch_get(storm.batch);
		going = (struct going){ .batch = storm.batch,
					.how = round % 3 ? FAIRWQ_DROP_REST : FAIRWQ_RUN_REST,
					.dropped = storm_dropped };
		KUNIT_EXPECT_TRUE(test, mock_call_end(test, mock_call_start(test, going_fn,
									    NULL)));
		KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&storm.item[0].dwork.work));
		WRITE_ONCE(storm.stop, true);
		for (i = 0; i < ARRAY_SIZE(thread); i++) {
			mock_thread_end(test, &thread[i]);
			KUNIT_EXPECT_EQ(test, -ESHUTDOWN, thread[i].ret);
		}
		fairwq_batch_put(storm.batch);
		for (i = 0; i < STORM_ITEMS; i++)
			KUNIT_EXPECT_EQ_MSG(test, atomic_read(&storm.item[i].queued),
					    atomic_read(&storm.item[i].ran) +
					    atomic_read(&storm.item[i].dropped),
					    "round %u, item %u\n", round, i);
		KUNIT_ASSERT_EQ(test, 4U, mock_nr_batches(mock->pool));
	}
	fairwq_serializer_destroy(&storm.serial);
}

/* ---- serializers ----------------------------------------------------------- */

/* A serializer drops its waiting items at once, and waits for the one in flight. */
static void waiting_works_are_dropped(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct order order = mock_order_new(test, false);
	struct mock_gate *gate = mock_order_gate(test, &order, a);
	struct mock_item *item = mock_item(test, 'x');
	struct mock *mock = test->priv;
	struct call *call;

	mock_order_item(test, &order, a, 'a');
	mock_order_item(test, &order, a, 'b');
	going = (struct going){ .serial = order.serial, .how = FAIRWQ_DROP_REST,
				.dropped = log_dropped };
	call = mock_call_start(test, going_fn, NULL);
	mock_until(test, READ_ONCE(mock->log.nr) == 2);
	KUNIT_EXPECT_STREQ(test, "AB", &mock->log.text[0]);
	KUNIT_EXPECT_FALSE(test, completion_done(&call->done));
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN, mock_order_queue(&order, a, &item->work));
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_held(a));
	complete_all(&gate->open);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	KUNIT_EXPECT_TRUE(test, mock_order_idle(&order));
	KUNIT_EXPECT_STREQ(test, "AB", &mock->log.text[0]);
}

/* An item of a serializer. It asks whether it is the last, and may shut the serializer down. */
struct insider {
	struct fairwq_work work;
	struct fairwq_serializer *serial;
	bool shuts_down;
	unsigned int how;		/* if it @shuts_down */
	struct completion begin, done;
	bool was_last;
	int ret;
};

static void insider_fn(struct fairwq_work *work)
{
	struct insider *in = container_of(work, struct insider, work);

	wait_for_completion(&in->begin);
	in->was_last = fairwq_serializer_is_last(in->serial);
	if (in->shuts_down) {
		in->ret = fairwq_serializer_shutdown(in->serial, in->how, log_dropped);
		if (!in->ret)
			memset(in->serial, 0x5a, sizeof(*in->serial));
	}
	complete(&in->done);
}

/* Queue an insider to @serial. Its function waits for insider_go(). */
static struct insider *insider_new(struct kunit *test, struct fairwq_batch *batch,
				   struct fairwq_serializer *serial)
{
	struct insider *in = kunit_kzalloc(test, sizeof(*in), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, in);
	in->serial = serial;
	init_completion(&in->begin);
	init_completion(&in->done);
	fairwq_work_init(&in->work, insider_fn);
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(serial, batch, &in->work));
	return in;
}

static void insider_go(struct kunit *test, struct insider *in)
{
	complete(&in->begin);
	mock_await(test, &in->done);
}

/*
 * An item of a serializer may drop the items behind it, and may free the
 * serializer then. It may not run them: see queue_refuse_kunit.c.
 */
static void item_drops_those_behind_it(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct order order = mock_order_new(test, false);
	struct insider *in = insider_new(test, a, order.serial);
	struct mock *mock = test->priv;

	mock_order_item(test, &order, a, 'a');
	mock_order_item(test, &order, a, 'b');
	in->shuts_down = true;
	in->how = FAIRWQ_DROP_REST;
	insider_go(test, in);
	KUNIT_EXPECT_EQ(test, 0, in->ret);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_STREQ(test, "AB", &mock->log.text[0]);
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_held(a));
}

/* A drop that stays in dropped() until the case lets it go on. */
static struct {
	struct completion entered, go;
} staying;

static void dropped_stays(struct fairwq_work *work)
{
	complete(&staying.entered);
	mock_wait(&staying.go);
	log_dropped(work);
}

/* A batch is released after the last dropped(), also if a serializer drops its work. */
static void batch_stays_until_a_serializer_has_dropped(struct kunit *test)
{
	const struct fairwq_batch_attrs attrs = {
		.released = mock_released_count, .priv = &released, .max_queued = 1,
	};
	struct fairwq_batch *a = mock_begin(test, 2), *b;
	struct order order = mock_order_new(test, false);
	struct mock_gate *gate = mock_order_gate(test, &order, a);
	struct mock_item *item = mock_item(test, 'x');
	struct call *call;

	atomic_set(&released, 0);
	b = mock_own_batch(test, "b", &attrs);
	mock_order_item(test, &order, b, 'b');
	init_completion(&staying.entered);
	init_completion(&staying.go);
	going = (struct going){ .serial = order.serial, .how = FAIRWQ_DROP_REST,
				.dropped = dropped_stays };
	call = mock_call_start(test, going_fn, NULL);
	mock_await(test, &staying.entered);
	/* What is being dropped does not count as queued. */
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(b, &item->work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&item->work));
	fairwq_batch_dispose(b);
	mock_wait_released();
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&released));
	complete_all(&staying.go);
	complete_all(&gate->open);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	mock_until(test, atomic_read(&released) == 1);
}

/* Rounds of an item that drops beside a thread that queues, and what they share. */
#define DROP_ROUNDS	(mock_is_emulated() ? 100U : MOCK_MANY(4000U))

static struct {
	struct fairwq_work item, other;
	struct fairwq_serializer serial;
	struct fairwq_batch *batch;
	unsigned int begun, over;	/* rounds */
	unsigned int nr_failed;
	bool stop;
} beside;

static void beside_fn(struct fairwq_work *work)
{
	unsigned int i, round = beside.begun + 1;

	/* Pairs with beside_call(): the serializer is set up. */
	smp_store_release(&beside.begun, round);
	/* Let the queue calls get anywhere. */
	for (i = 0; i < round % 256; i++)
		cpu_relax();
	if (fairwq_serializer_shutdown(&beside.serial, FAIRWQ_DROP_REST, NULL))
		WRITE_ONCE(beside.nr_failed, beside.nr_failed + 1);
}

/* In each round queue a work and cancel it, over and over, until it is refused. */
static void beside_call(void *arg)
{
	while (!READ_ONCE(beside.stop)) {
		/* Pairs with beside_fn(). */
		unsigned int round = smp_load_acquire(&beside.begun);

		while (round != beside.over &&
		       fairwq_serializer_queue(&beside.serial, beside.batch, &beside.other) >= 0)
			fairwq_work_cancel(&beside.other);
		/* Pairs with the wait for @over: the serializer may be set up anew. */
		smp_store_release(&beside.over, round);
		cpu_relax();
		cond_resched();
	}
}

/* An item that drops those behind it also gets rid of those whose queue calls are under way. */
static void item_drops_beside_queue_calls(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct caller *caller;
	unsigned int i;

	mock_open(test);
	memset(&beside, 0, sizeof(beside));
	beside.batch = a;
	fairwq_work_init(&beside.item, beside_fn);
	fairwq_work_init(&beside.other, mock_nothing_fn);
	caller = mock_caller(test, beside_call, NULL);
	for (i = 0; i < DROP_ROUNDS && !beside.nr_failed; i++) {
		fairwq_serializer_init(&beside.serial);
		KUNIT_ASSERT_EQ(test, 1,
				fairwq_serializer_queue(&beside.serial, a, &beside.item));
		/* The serializer must stay until the queue calls are refused. */
		mock_until(test, smp_load_acquire(&beside.over) == i + 1 ||
			   READ_ONCE(beside.nr_failed));
		fairwq_batch_flush(a);
	}
	if (beside.nr_failed)
		fairwq_serializer_destroy(&beside.serial);	/* lets the thread go on */
	WRITE_ONCE(beside.stop, true);
	mock_caller_end(test, caller);
	KUNIT_EXPECT_EQ(test, 0U, beside.nr_failed);
}

/*
 * fairwq_serializer_is_last() is true in an item with none behind it. It is
 * false outside the items of the serializer.
 */
static void last_item_knows_it(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct order order = mock_order_new(test, false);
	struct insider *first = insider_new(test, a, order.serial);
	struct insider *second = insider_new(test, a, order.serial);
	struct insider *third;
	struct call *call;

	KUNIT_EXPECT_FALSE(test, fairwq_serializer_is_last(order.serial));
	insider_go(test, first);
	insider_go(test, second);
	KUNIT_EXPECT_FALSE(test, first->was_last);
	KUNIT_EXPECT_TRUE(test, second->was_last);
	/* Nor is it true while a shutdown waits, because that still uses the serializer. */
	third = insider_new(test, a, order.serial);
	going = (struct going){ .serial = order.serial };
	call = mock_call_start(test, going_fn, NULL);
	mock_until(test, !list_empty_careful(&order.serial->waiting));
	insider_go(test, third);
	KUNIT_EXPECT_FALSE(test, third->was_last);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
}

static struct kunit_case shutdown_cases[] = {
	KUNIT_CASE(queued_works_run),
	KUNIT_CASE(queued_works_are_dropped),
	KUNIT_CASE(running_item_is_waited_for),
	KUNIT_CASE(paused_works_are_dropped),
	KUNIT_CASE(others_do_not_end_a_drop),
	KUNIT_CASE(end_of_the_pool_does_not_end_a_drop),
	KUNIT_CASE(late_timer_starts_nothing),
	KUNIT_CASE(late_delay_ends),
	KUNIT_CASE(late_grace_period_starts_nothing),
	KUNIT_CASE(owned_batches_stop_together),
	KUNIT_CASE(serializer_stops_at_once),
	KUNIT_CASE(shutdown_that_runs_the_rest_sleeps),
	KUNIT_CASE(shutdown_that_drops_sleeps),
	KUNIT_CASE(shutdown_of_many_sleeps),
	KUNIT_CASE(late_child_is_refused),
	KUNIT_CASE(delays_end_at_once),
	KUNIT_CASE(graced_work_is_dropped),
	KUNIT_CASE(held_back_works_run),
	KUNIT_CASE(held_back_works_are_dropped),
	KUNIT_CASE(queue_call_under_way),
	KUNIT_CASE(turn_that_goes_on_is_waited_for),
	KUNIT_CASE(owned_batches_go_along),
	KUNIT_CASE(drop_looks_at_what_has_works),
	KUNIT_CASE(drop_looks_at_what_has_works_of_many),
	KUNIT_CASE(own_item_is_refused),
	KUNIT_CASE(released_may_not_destroy_its_pool),
	KUNIT_CASE(bad_arguments_are_refused),
	KUNIT_CASE(disposed_batch_is_waited_for),
	KUNIT_CASE(nothing_is_lost),
	KUNIT_CASE(waiting_works_are_dropped),
	KUNIT_CASE(item_drops_those_behind_it),
	KUNIT_CASE(batch_stays_until_a_serializer_has_dropped),
	KUNIT_CASE(item_drops_beside_queue_calls),
	KUNIT_CASE(last_item_knows_it),
	{ }
};

static struct kunit_suite shutdown_suite = {
	.name = "fairwq_shutdown",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = shutdown_cases,
};

kunit_test_suite(shutdown_suite);

MODULE_DESCRIPTION("KUnit: refuse, run or drop, and wait, in one call");
MODULE_LICENSE("GPL");
