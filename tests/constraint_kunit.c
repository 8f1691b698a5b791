// SPDX-License-Identifier: GPL-2.0
/*
 * Constraints: cancels and flushes that meet a work on its way into a constraint or out
 * of it. Some of the interleavings were found by tests/models/enter.pml.
 */
#include "lib/order.h"

/* ---- a constraint that keeps one work back, and counts its cancels ----- */

struct keeper {
	struct fairwq_constraint constraint;
	struct fairwq_work *waits;	/* the work that it keeps back, or NULL */
	unsigned int removed;		/* cancels that took @waits out */
	unsigned int strangers;		/* cancels of a work that did not wait here */
	void (*admit)(void);		/* called before @waits is set, under the lock; or NULL */
};

static bool keeper_admit(struct fairwq_constraint *constraint, struct fairwq_work *work)
{
	struct keeper *keeper = container_of(constraint, struct keeper, constraint);

	if (keeper->admit)
		keeper->admit();
	WRITE_ONCE(keeper->waits, work);
	return false;
}

static void keeper_complete(struct fairwq_constraint *constraint)
{
}

/* Count a cancel, under the lock of the constraint. */
static void keeper_remove(struct fairwq_constraint *constraint, struct fairwq_work *work)
{
	struct keeper *keeper = container_of(constraint, struct keeper, constraint);

	if (READ_ONCE(keeper->waits) == work)
		keeper->removed++;
	else
		keeper->strangers++;
	WRITE_ONCE(keeper->waits, NULL);
}

static const struct fairwq_constraint_ops keeper_ops = {
	.admit = keeper_admit, .complete = keeper_complete, .remove = keeper_remove,
};

static struct keeper *keeper_new(struct kunit *test)
{
	struct keeper *keeper = kunit_kzalloc(test, sizeof(*keeper), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, keeper);
	fairwq_constraint_init(&keeper->constraint, &keeper_ops);
	return keeper;
}

/* ---- one work, two keepers, two CPUs ------------------------------------ */

/*
 * One work, and the calls of two CPUs for it. The other CPU sets @ready when it is at its
 * test point, and waits there for @go. @ok: no wait has timed out.
 */
static struct meet {
	struct keeper *first, *second;
	struct fairwq_batch *batch;
	struct fairwq_work *work;
	struct call *call;		/* the call on the other CPU */
	struct task_struct *other;	/* its task, once it has begun */
	bool go, ready;
	bool ok;
} meet;

static void meet_begin(struct kunit *test, struct mock_item **item)
{
	struct fairwq_batch *batch;

	need_two_cpus(test);
	batch = mock_begin(test, 2);
	*item = mock_item(test, 'x');
	meet = (struct meet){ .first = keeper_new(test), .second = keeper_new(test),
			      .batch = batch, .work = &(*item)->work, .ok = true };
}

static int meet_queue(struct keeper *keeper)
{
	return fairwq_queue_constrained(&keeper->constraint, meet.batch, meet.work);
}

static void meet_wait(const bool *flag)
{
	meet.ok = spin_until(flag) && meet.ok;
}

static bool meet_is_other(void)
{
	return current == READ_ONCE(meet.other);
}

/* Cancel the work, wherever it is. Its batch has no trace of it. */
static void meet_end(struct kunit *test, struct mock_item *item)
{
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_TRUE(test, meet.ok);
	KUNIT_EXPECT_EQ(test, 0U, meet.first->strangers);
	KUNIT_EXPECT_EQ(test, 0U, meet.second->strangers);
	fairwq_work_cancel_sync(&item->work);
	fairwq_batch_flush(meet.batch);
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_held(meet.batch));
}

/* ---- a cancel that looked before it took the lock ----------------------- */

static bool cancel_other(struct fairwq_work *work)
{
	WRITE_ONCE(meet.other, current);
	return fairwq_work_cancel(work);
}

/* Stop the cancel on the other CPU once, when it has seen in which keeper the work waits. */
static void cancel_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point != FAIRWQ_POINT_TAKE_OUT || !meet_is_other() || READ_ONCE(meet.ready))
		return;
	step_done(&meet.ready);
	meet_wait(&meet.go);
}

/*
 * Queue the work to the first keeper, and start a cancel on the other CPU. When that has
 * seen the work there, take it out here.
 */
static void cancel_begin(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 1, meet_queue(meet.first));
	fairwq_test_set_hook(cancel_hook);
	meet.call = mock_call_start_apart(test, cancel_other, meet.work);
	meet_wait(&meet.ready);
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(meet.work));
	KUNIT_EXPECT_EQ(test, 1U, meet.first->removed);
}

/*
 * A cancel waits for the lock of a constraint while the work moves to another one. The
 * cancel looks again, and takes the work out of that one.
 */
static void cancel_looks_again(struct kunit *test)
{
	struct mock_item *item;

	meet_begin(test, &item);
	cancel_begin(test);
	KUNIT_EXPECT_EQ(test, 1, meet_queue(meet.second));
	step_done(&meet.go);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, meet.call));
	KUNIT_EXPECT_EQ(test, 1U, meet.first->removed);
	KUNIT_EXPECT_EQ(test, 1U, meet.second->removed);
	meet_end(test, item);
}

/* Let the cancel go on while the third queue call is about to list the work. */
static void cancel_third_queueing_admit(void)
{
	meet.first->admit = NULL;
	step_done(&meet.go);
	udelay(MOCK_LOOK_US);
}

/*
 * The work has been in the second keeper, and is on its way into the first one again. The
 * cancel waits until it is there, and takes it out.
 */
static void cancel_waits_for_the_third_queueing(struct kunit *test)
{
	struct mock_item *item;

	meet_begin(test, &item);
	cancel_begin(test);
	KUNIT_EXPECT_EQ(test, 1, meet_queue(meet.second));
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(meet.work));
	KUNIT_EXPECT_EQ(test, 1U, meet.second->removed);
	meet.first->admit = cancel_third_queueing_admit;
	KUNIT_EXPECT_EQ(test, 1, meet_queue(meet.first));
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, meet.call));
	KUNIT_EXPECT_EQ(test, 2U, meet.first->removed);
	meet_end(test, item);
}

/* ---- an order, and an item at a gate in front --------------------------- */

/*
 * Wait until @order is idle and @batch has no pin, and destroy @order. If the wait times
 * out, the cancel of the @nr @items lets the case end.
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
	KUNIT_EXPECT_PTR_EQ(test, NULL, item->work.constraint);
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
 * A cancel, and the CPU that queues or pushes its work. That CPU sets @at when it is at
 * @point, and waits there until the cancel sets @looks. @ok: no wait has timed out.
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
 * A cancel on another CPU waits for a queue call through a constraint, at any point of
 * that call. Then the work may be freed.
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

/* ---- calls that sleep until a work leaves its constraint ------------------ */

/* A client's own constraint: works cannot be taken out, and the case admits them. */
static bool owned_admit(struct fairwq_constraint *constraint, struct fairwq_work *work)
{
	return false;
}

static const struct fairwq_constraint_ops owned_ops = {
	.admit = owned_admit, .complete = keeper_complete,
};

/*
 * Expect that @call waits and sleeps, instead of looking again and again. A call that sleeps
 * does so however long the 300 ms take.
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

/* Expect that @wait sleeps until a client's own constraint has admitted the work. */
static void own_constraint_by(struct kunit *test, struct fairwq_batch *a,
			      bool (*wait)(struct fairwq_work *work), bool runs)
{
	struct fairwq_constraint *own = kunit_kzalloc(test, sizeof(*own), GFP_KERNEL);
	struct mock_item *item = mock_item(test, 'x');
	struct mock *mock = test->priv;
	struct call *call;

	KUNIT_ASSERT_NOT_NULL(test, own);
	fairwq_constraint_init(own, &owned_ops);
	mock_log_clear(mock);
	if (!runs)
		fairwq_batch_pause(a);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_constrained(own, a, &item->work));
	call = mock_call_start(test, wait, &item->work);
	expect_asleep(test, call);
	fairwq_constraint_admit(&item->work);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&item->work));
	KUNIT_EXPECT_EQ(test, (unsigned int)runs, READ_ONCE(mock->log.nr));
	fairwq_batch_resume(a);
}

/*
 * A flush, and a sync cancel, sleep while a client's own constraint keeps the work back,
 * because no cancel can take it out.
 */
static void flush_sleeps_for_an_own_constraint(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);

	mock_open(test);
	own_constraint_by(test, a, fairwq_work_flush, true);
	own_constraint_by(test, a, fairwq_work_cancel_sync, false);
}

/* A client's own constraint that cancels the work in its admit(), then admits it. */
static struct {
	bool canceled, pending;
} own_cancel;

static bool own_cancel_admit(struct fairwq_constraint *constraint, struct fairwq_work *work)
{
	own_cancel.canceled = fairwq_work_cancel(work);
	own_cancel.pending = fairwq_work_pending(work);
	return true;
}

static const struct fairwq_constraint_ops own_cancel_ops = {
	.admit = own_cancel_admit, .complete = keeper_complete,
};

/*
 * A cancel does not wait for a client's own constraint, because its caller may hold a
 * lock that admit() waits for. The work stays pending.
 */
static void cancel_does_not_wait_for_an_own_constraint(struct kunit *test)
{
	struct fairwq_constraint own;
	struct mock_item *item;
	struct fairwq_batch *a = mock_begin(test, 2);

	item = mock_item(test, 'x');
	fairwq_constraint_init(&own, &own_cancel_ops);
	memset(&own_cancel, 0, sizeof(own_cancel));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_constrained(&own, a, &item->work));
	KUNIT_EXPECT_FALSE(test, own_cancel.canceled);
	KUNIT_EXPECT_TRUE(test, own_cancel.pending);
	mock_expect(test, "x");
	fairwq_batch_flush(a);
}

/* A client's own constraint that waits in admit() until a flush sleeps, then admits. */
static struct {
	struct task_struct *task;	/* of the flush */
	bool asked, asleep;
} at_once;

static bool at_once_admit(struct fairwq_constraint *constraint, struct fairwq_work *work)
{
	step_done(&at_once.asked);
	at_once.asleep =
		spin_within(READ_ONCE(at_once.task->__state) == TASK_UNINTERRUPTIBLE);
	return true;
}

static const struct fairwq_constraint_ops at_once_ops = {
	.admit = at_once_admit, .complete = keeper_complete,
};

static bool at_once_flush(struct fairwq_work *work)
{
	return spin_until(&at_once.asked) && fairwq_work_flush(work);
}

/* A flush that sleeps is woken if the constraint admits the work in the queue call. */
static void admitted_at_once_while_a_flush_sleeps(struct kunit *test)
{
	struct fairwq_constraint *own = kunit_kzalloc(test, sizeof(*own), GFP_KERNEL);
	struct mock_item *item;
	struct fairwq_batch *a;
	struct call *call;

	KUNIT_ASSERT_NOT_NULL(test, own);
	need_two_cpus(test);
	a = mock_begin(test, 2);
	mock_open(test);
	item = mock_item(test, 'x');
	fairwq_constraint_init(own, &at_once_ops);
	memset(&at_once, 0, sizeof(at_once));
	call = mock_call_new(test, at_once_flush, &item->work);
	at_once.task = call->task;
	mock_call_go_apart(test, call);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_constrained(own, a, &item->work));
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	KUNIT_EXPECT_TRUE(test, at_once.asleep);
	mock_expect(test, "x");
	fairwq_batch_flush(a);
}

static struct kunit_case constraint_cases[] = {
	KUNIT_CASE(cancel_looks_again),
	KUNIT_CASE(cancel_waits_for_the_third_queueing),
	KUNIT_CASE(cancel_waits_for_the_queue_call),
	KUNIT_CASE(flush_sleeps_until_it_is_let_go),
	KUNIT_CASE(flush_sleeps_behind_a_serializer),
	KUNIT_CASE(flush_sleeps_for_an_own_constraint),
	KUNIT_CASE(cancel_does_not_wait_for_an_own_constraint),
	KUNIT_CASE(admitted_at_once_while_a_flush_sleeps),
	{}
};

static struct kunit_suite constraint_suite = {
	.name = "fairwq_constraint",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = constraint_cases,
};

kunit_test_suite(constraint_suite);

MODULE_DESCRIPTION("KUnit: into a constraint and out of it");
MODULE_LICENSE("GPL");
