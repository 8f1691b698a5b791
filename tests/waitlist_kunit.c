// SPDX-License-Identifier: GPL-2.0
/*
 * Waitlists: cancels and flushes that meet a work on its way into a serializer
 * or out of it. Some of the interleavings were found by tests/models/enter.pml.
 */
#include "lib/order.h"

/* ---- a cancel that looked before it took the lock ----------------------- */

/* One work, and a cancel of it on another CPU, which stops when it has seen where it waits. */
static struct {
	struct order order[2];
	struct mock_gate *gate[2];	/* in front in each of the two */
	struct fairwq_batch *batch;
	struct mock_item *item;
	struct call *call;		/* the call on the other CPU */
	struct task_struct *other;	/* its task, once it has begun */
	bool go, ready, ok;		/* @ok: no wait has timed out */
} meet;

static bool cancel_other(struct fairwq_work *work)
{
	WRITE_ONCE(meet.other, current);
	return fairwq_work_cancel(work);
}

static void cancel_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point != FAIRWQ_POINT_TAKE_OUT || current != READ_ONCE(meet.other) ||
	    READ_ONCE(meet.ready))
		return;
	step_done(&meet.ready);
	meet.ok = spin_until(&meet.go) && meet.ok;
}

static int meet_queue(unsigned int nr)
{
	return mock_order_queue(&meet.order[nr], meet.batch, &meet.item->work);
}

/*
 * A cancel waits for the lock of a serializer while the work moves to another
 * one, and @back to the first. The cancel looks again, and takes the work out
 * of where it is.
 */
static void cancel_looks_again_at(struct kunit *test, struct fairwq_batch *a, bool back)
{
	struct mock *mock = test->priv;
	struct call *flush;
	unsigned int i;

	memset(&meet, 0, sizeof(meet));
	meet.ok = true;
	meet.batch = a;
	meet.item = mock_item(test, 'x');
	for (i = 0; i < 2; i++) {
		meet.order[i] = mock_order_new(test, false);
		meet.gate[i] = mock_order_gate(test, &meet.order[i], meet.batch);
	}
	KUNIT_EXPECT_EQ(test, 1, meet_queue(0));
	fairwq_test_set_hook(cancel_hook);
	meet.call = mock_call_start_apart(test, cancel_other, &meet.item->work);
	meet.ok = spin_until(&meet.ready) && meet.ok;
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&meet.item->work));
	KUNIT_EXPECT_EQ(test, 1, meet_queue(1));
	if (back) {
		KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&meet.item->work));
		KUNIT_EXPECT_EQ(test, 1, meet_queue(0));
	}
	/* A flush is woken under the lock of the serializer that the work is in. */
	flush = mock_call_start(test, fairwq_work_flush, &meet.item->work);
	mock_call_settle(test, flush);
	step_done(&meet.go);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, meet.call));
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, flush));
	KUNIT_EXPECT_TRUE(test, meet.ok);
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&meet.item->work));
	for (i = 0; i < 2; i++) {
		complete_all(&meet.gate[i]->open);
		mock_order_end(test, &meet.order[i]);
	}
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_held(meet.batch));
	KUNIT_EXPECT_EQ(test, 0U, mock->log.nr);
}

static void cancel_looks_again(struct kunit *test)
{
	struct fairwq_batch *a;

	need_two_cpus(test);
	a = mock_begin(test, 3);
	mock_open(test);
	cancel_looks_again_at(test, a, false);
	cancel_looks_again_at(test, a, true);
}

/* ---- an order, and an item at a gate in front --------------------------- */

/*
 * Wait until @order is idle and @batch has no pin, and destroy @order. If the
 * wait times out, the cancel of the @nr @items lets the case end.
 */
static void order_end(struct kunit *test, const struct order *order, struct fairwq_batch *batch,
		      struct mock_item **items, unsigned int nr)
{
	/* The CPU that has pushed the last item may still have to unpin the batch. */
	bool idle = mock_within(mock_order_idle(order) && !mock_nr_held(batch));

	KUNIT_EXPECT_TRUE(test, idle);
	while (nr--)
		fairwq_work_cancel_sync(&items[nr]->work);
	mock_order_destroy(order);
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_held(batch));
}

/* Expect that @item is idle, and overwrite it: no call may touch it any more. */
static void expect_gone(struct kunit *test, struct mock_item *item)
{
	KUNIT_EXPECT_EQ(test, 0L, atomic_long_read(&item->work.data));
	KUNIT_EXPECT_PTR_EQ(test, NULL, item->work.serializer);
	if (!atomic_long_read(&item->work.data))
		memset(&item->work, 0x6b, sizeof(item->work));
}

/* Points of a queue call at which a cancel on another CPU may find it. */
static const struct spot {
	enum fairwq_test_point point;
	bool behind;			/* the item is behind a gate, else the first */
	bool limited;			/* the order is a limiter, else a serializer */
} spots[] = {
	{ FAIRWQ_POINT_QUEUE_CLAIMED, false, false },
	{ FAIRWQ_POINT_QUEUE_CLAIMED, true, false },
	{ FAIRWQ_POINT_QUEUE_CLAIMED, false, true },
	{ FAIRWQ_POINT_QUEUE_CLAIMED, true, true },
};

/* ---- a cancel on another CPU, which waits for the queue call ------------- */

/*
 * A cancel, and the CPU that queues its work. That CPU sets @at when it is at
 * @point, and waits there until the cancel sets @looks. @ok: no wait has timed
 * out.
 */
static struct {
	struct task_struct *queuer;	/* the test */
	enum fairwq_test_point point;
	bool at, looks;
	bool masked, ok;		/* @masked: interrupts were off at @point */
} race;

static void race_wait(const bool *step)
{
	race.ok = spin_until(step) && race.ok;
}

static void race_begin(enum fairwq_test_point point,
		       void (*hook)(enum fairwq_test_point point, struct fairwq_batch *batch))
{
	memset(&race, 0, sizeof(race));
	race.queuer = current;
	race.point = point;
	race.ok = true;
	fairwq_test_set_hook(hook);
}

/* An order whose first item is at a gate, and an item to wait behind it. */
struct held_up {
	struct order order;
	struct mock_gate *gate;		/* queued to @a */
	struct fairwq_batch *a, *b;
	struct mock_item *item;
};

static struct held_up held_up_new(struct kunit *test, bool limited)
{
	struct held_up up = { .order = mock_order_new(test, limited) };

	need_two_cpus(test);
	up.a = mock_begin(test, 2);
	mock_open(test);
	up.b = mock_batch(test, "b");
	up.item = mock_item(test, 'x');
	up.gate = mock_order_gate(test, &up.order, up.a);
	return up;
}

/* Open the gate, and expect that @batch, which the item was bound for, has no trace of it. */
static void held_up_end(struct kunit *test, struct held_up *up, struct fairwq_batch *batch)
{
	complete_all(&up->gate->open);
	order_end(test, &up->order, batch, NULL, 0);
}

static bool race_cancel(struct fairwq_work *work)
{
	race_wait(&race.at);
	step_done(&race.looks);
	return fairwq_work_cancel(work);
}

/* Stop the queue call at race.point, until the cancel has had the time to look. */
static void still_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point != race.point || current != race.queuer || READ_ONCE(race.at))
		return;
	race.masked = irqs_disabled();
	step_done(&race.at);
	race_wait(&race.looks);
	udelay(MOCK_LOOK_US);
}

/* Cancel a work on another CPU while its queue call is at @spot, with interrupts off. */
static void still_at(struct kunit *test, struct fairwq_batch *a, struct fairwq_batch *b,
		     const struct spot *spot)
{
	struct order order = mock_order_new(test, spot->limited);
	struct mock_gate *gate = spot->behind ? mock_order_gate(test, &order, b) : NULL;
	struct mock_item *item[2] = { mock_item(test, 'x'), mock_item(test, 'y') };
	struct call *call;

	race_begin(spot->point, still_hook);
	call = mock_call_start_apart(test, race_cancel, &item[0]->work);
	KUNIT_EXPECT_EQ(test, 1, mock_order_queue(&order, a, &item[0]->work));
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	fairwq_test_set_hook(NULL);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	KUNIT_EXPECT_TRUE(test, race.ok);
	KUNIT_EXPECT_TRUE(test, race.masked);
	expect_gone(test, item[0]);
	/* The cancelled item does not hold up the next one. */
	KUNIT_EXPECT_EQ(test, 1, mock_order_queue(&order, b, &item[1]->work));
	if (gate)
		complete_all(&gate->open);
	order_end(test, &order, b, &item[1], 1);
}

/*
 * A cancel on another CPU waits for a queue call through a serializer, at any
 * point of that call. Then the work may be freed.
 */
static void cancel_waits_for_the_queue_call(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a, *b;
	unsigned int i;

	need_two_cpus(test);
	a = mock_begin(test, 2);
	b = mock_batch(test, "b");
	fairwq_batch_pause(a);	/* so that no item starts before it is cancelled */
	for (i = 0; i < ARRAY_SIZE(spots); i++)
		still_at(test, a, b, &spots[i]);
	KUNIT_EXPECT_STREQ(test, "yyyy", &mock->log.text[0]);
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_held(a));
}

/* ---- calls that wait for a work in a serializer --------------------------- */

/*
 * Expect that @call waits and sleeps, instead of looking again and again. A
 * call that sleeps does so however long the 300 ms take.
 */
static void expect_asleep(struct kunit *test, struct call *call)
{
	unsigned long before;

	mock_call_settle(test, call);
	before = READ_ONCE(call->task->nvcsw);
	msleep(300);
	before = READ_ONCE(call->task->nvcsw) - before;
	kunit_info(test, "%lu context switches in 300 ms", before);
	KUNIT_EXPECT_FALSE(test, completion_done(&call->done));
	KUNIT_EXPECT_LE(test, before, 20UL);
}

/* Expect that flushes of a work which waits in an order sleep until it leaves the order. */
static void flush_sleeps_by(struct kunit *test, bool limited)
{
	struct held_up up = held_up_new(test, limited);
	struct mock *mock = test->priv;
	struct call *call[2];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		mock->log.nr = 0;
		KUNIT_EXPECT_EQ(test, 1, mock_order_queue(&up.order, up.b, &up.item->work));
		call[0] = mock_call_start(test, fairwq_work_flush, &up.item->work);
		call[1] = mock_call_start(test, fairwq_work_flush, &up.item->work);
		expect_asleep(test, call[0]);
		/* First round: cancel the item. Second round: let it run. Both end the flushes. */
		if (!i)
			KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&up.item->work));
		else
			complete_all(&up.gate->open);
		KUNIT_EXPECT_TRUE(test, mock_call_end(test, call[0]));
		KUNIT_EXPECT_TRUE(test, mock_call_end(test, call[1]));
		KUNIT_EXPECT_EQ(test, i, READ_ONCE(mock->log.nr));
	}
	held_up_end(test, &up, up.b);
}

/* A flush of a work that waits in a limiter sleeps until the work is cancelled or has run. */
static void flush_sleeps_until_it_is_let_go(struct kunit *test)
{
	flush_sleeps_by(test, true);
}

/* A flush of a work that waits in a serializer sleeps until it is cancelled or has run. */
static void flush_sleeps_behind_a_serializer(struct kunit *test)
{
	flush_sleeps_by(test, false);
}

static struct kunit_case waitlist_cases[] = {
	KUNIT_CASE(cancel_looks_again),
	KUNIT_CASE(cancel_waits_for_the_queue_call),
	KUNIT_CASE(flush_sleeps_until_it_is_let_go),
	KUNIT_CASE(flush_sleeps_behind_a_serializer),
	{}
};

static struct kunit_suite waitlist_suite = {
	.name = "fairwq_waitlist",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = waitlist_cases,
};

kunit_test_suite(waitlist_suite);

MODULE_DESCRIPTION("KUnit: into a serializer and out of it");
MODULE_LICENSE("GPL");
