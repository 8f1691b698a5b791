// SPDX-License-Identifier: GPL-2.0
/*
 * Serializers (promise 10). What serializers
 * share with limiters is in one_at_a_time_kunit.c.
 */
#include <linux/prandom.h>
#include <linux/vmalloc.h>

#include "lib/client.h"
#include "lib/order.h"

/* ---- what the cases share --------------------------------------------- */

static struct fairwq_serializer *serial_new(struct kunit *test)
{
	struct fairwq_serializer *serial = kunit_kzalloc(test, sizeof(*serial), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, serial);
	fairwq_serializer_init(serial);
	return serial;
}

/* Check that no item of @serial is queued or in flight. */
static bool serial_idle(const struct fairwq_serializer *serial)
{
	/* Other CPUs write it under a lock that the test does not hold. */
	return !data_race(READ_ONCE(serial->in_flight));
}

static struct mock_item *serial_item(struct kunit *test, struct fairwq_serializer *serial,
				     struct fairwq_batch *batch, char letter)
{
	struct mock_item *item = mock_item(test, letter);

	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(serial, batch, &item->work));
	return item;
}

/* Queue a gate, and wait until it is entered. Later items of @serial wait behind it. */
static struct mock_gate *serial_gate(struct kunit *test, struct fairwq_serializer *serial,
				     struct fairwq_batch *batch)
{
	struct mock_gate *gate = mock_gate_new(test);

	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(serial, batch, &gate->work));
	mock_await(test, &gate->entered);
	return gate;
}

/* Wait until @serial is idle, and destroy it. A time-out fails the case: no hang. */
static void serial_end(struct kunit *test, struct fairwq_serializer *serial)
{
	mock_until(test, serial_idle(serial));
	fairwq_serializer_destroy(serial);
}

/* ---- order ------------------------------------------------------------ */

struct from_irq {
	struct irq_work irq_work;
	struct fairwq_serializer *serial;
	struct fairwq_batch *batch;
	struct fairwq_work *queue, *cancel;
	int queued;
	bool canceled, in_irq;
};

static void from_irq_fn(struct irq_work *irq_work)
{
	struct from_irq *from = container_of(irq_work, struct from_irq, irq_work);

	from->in_irq = in_hardirq();
	from->queued = fairwq_serializer_queue(from->serial, from->batch, from->queue);
	if (from->cancel)
		from->canceled = fairwq_work_cancel(from->cancel);
}

/* A hard interrupt can queue, behind other items and as the first, and can cancel. */
static void queue_and_cancel_from_hardirq(struct kunit *test)
{
	struct fairwq_serializer *serial = serial_new(test);
	struct from_irq from = { .serial = serial };
	struct mock_item *item[3];
	struct mock_gate *gate;

	from.batch = mock_begin(test, 2);
	from.irq_work = IRQ_WORK_INIT_HARD(from_irq_fn);
	gate = serial_gate(test, serial, from.batch);
	item[0] = serial_item(test, serial, from.batch, 'x');
	item[1] = mock_item(test, 'y');
	item[2] = mock_item(test, 'z');
	from.queue = &item[1]->work;
	from.cancel = &item[0]->work;
	irq_work_queue(&from.irq_work);
	irq_work_sync(&from.irq_work);
	KUNIT_EXPECT_TRUE(test, from.in_irq);
	KUNIT_EXPECT_EQ(test, 1, from.queued);
	KUNIT_EXPECT_TRUE(test, from.canceled);
	complete_all(&gate->open);
	mock_until(test, serial_idle(serial));
	from.queue = &item[2]->work;
	from.cancel = NULL;
	irq_work_queue(&from.irq_work);
	irq_work_sync(&from.irq_work);
	KUNIT_EXPECT_EQ(test, 1, from.queued);
	mock_expect_order(test, "yz", item, 3);
	serial_end(test, serial);
}

struct object {
	struct fairwq_serializer serial;
	struct step step;
};

/* Each of many serializers runs its one item, though many of them share a lock. */
static void many_serializers_run_one_item_each(struct kunit *test)
{
	struct track *track = mock_track_new(test, 1000);
	const unsigned int nr = MOCK_MANY(20000);
	struct object *objects;
	struct fairwq_batch *a;
	unsigned int i, refused = 0;

	objects = vzalloc(array_size(nr, sizeof(*objects)));
	KUNIT_ASSERT_NOT_NULL(test, objects);
	a = mock_begin(test, 3);
	for (i = 0; i < nr; i++) {
		fairwq_serializer_init(&objects[i].serial);
		fairwq_work_init(&objects[i].step.work, mock_step_fn);
		objects[i].step.track = track;
		refused += fairwq_serializer_queue(&objects[i].serial, a,
						   &objects[i].step.work) != 1;
	}
	KUNIT_EXPECT_EQ(test, 0U, refused);
	for (i = 0; i < nr; i++)
		fairwq_serializer_destroy(&objects[i].serial);
	KUNIT_EXPECT_EQ(test, (int)nr, atomic_read(&track->ran));
	vfree(objects);
}

/* ---- the batch that the items are bound for ----------------------------- */

/* An item that queues itself again, through its serializer. */
static struct {
	struct fairwq_work work;
	struct fairwq_serializer *serial;
	struct fairwq_batch *batch;
	unsigned int runs, refused;
} requeue;

static void requeue_fn(struct fairwq_work *work)
{
	if (++requeue.runs < 100)
		requeue.refused += fairwq_serializer_queue(requeue.serial, requeue.batch,
							   work) != 1;
}

/* An item that has begun takes up no room, also in a burst. */
static void item_that_runs_takes_up_no_room(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_queued = 1 };

	requeue.runs = 0;
	requeue.refused = 0;
	requeue.serial = serial_new(test);
	requeue.batch = mock_begin_with(test, 1, &attrs);
	mock_open(test);
	KUNIT_ASSERT_EQ(test, 0, fairwq_serializer_set_inline(requeue.serial,
							      FAIRWQ_MAX_INLINE_US));
	fairwq_work_init(&requeue.work, requeue_fn);
	KUNIT_EXPECT_EQ(test, 1, fairwq_serializer_queue(requeue.serial, requeue.batch,
							 &requeue.work));
	mock_until(test, READ_ONCE(requeue.runs) == 100 || READ_ONCE(requeue.refused));
	fairwq_serializer_flush(requeue.serial);
	KUNIT_EXPECT_EQ(test, 0U, requeue.refused);
	serial_end(test, requeue.serial);
}

static void max_queued_counts_what_waits(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_queued = 2 };
	struct fairwq_serializer *serial = serial_new(test);
	struct mock_item *item[4];
	struct fairwq_batch *a = mock_begin(test, 2);
	struct fairwq_batch *b = mock_batch_with(test, "b", &attrs);
	struct mock_gate *gate;

	gate = serial_gate(test, serial, a);
	item[0] = serial_item(test, serial, b, 'x');
	item[1] = serial_item(test, serial, b, 'y');
	item[2] = mock_item(test, 'z');
	KUNIT_EXPECT_EQ(test, 2U, fairwq_batch_nr_queued(b));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fairwq_serializer_queue(serial, b, &item[2]->work));
	KUNIT_EXPECT_EQ(test, -EAGAIN, fairwq_queue(b, &item[2]->work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&item[0]->work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_serializer_queue(serial, b, &item[2]->work));
	complete_all(&gate->open);
	mock_expect_order(test, "yz", item, 3);
	fairwq_serializer_flush(serial);
	KUNIT_EXPECT_EQ(test, 0U, fairwq_batch_nr_queued(b));
	serial_end(test, serial);
}

/* ---- batches that go -------------------------------------------------- */

#define STAYING	10U		/* items that wait */

static void flush_it(void *arg)
{
	fairwq_serializer_flush(arg);
}

/*
 * Items wait in a serializer, bound for two batches that are disposed. They are
 * taken out in any order, all or all but some. Each batch is released when the
 * last of its items has left, and not before. A flush waits among them in every
 * other round.
 */
static void batches_stay_for_what_waits_round(struct kunit *test, struct rnd_state *rnd,
					      struct fairwq_batch *front, bool flush)
{
	struct fairwq_serializer *serial = serial_new(test);
	struct mock_gate *gate = serial_gate(test, serial, front);
	unsigned int i, n, keep, left[2] = {}, of[STAYING];
	struct mock_item *item[STAYING];
	struct caller *caller = NULL;
	struct fairwq_batch *b[2];
	atomic_t released[2] = {};

	for (i = 0; i < 2; i++) {
		const struct fairwq_batch_attrs attrs = {
			.released = mock_released_count, .priv = &released[i],
		};

		b[i] = mock_own_batch(test, "b", &attrs);
	}
	for (i = 0; i < STAYING; i++) {
		if (flush && i == STAYING / 2) {
			caller = mock_caller(test, flush_it, serial);
			mock_until(test, mock_caller_sleeps(caller));
		}
		of[i] = prandom_u32_state(rnd) % 4 == 0;
		left[of[i]]++;
		item[i] = serial_item(test, serial, b[of[i]], 'x');
	}
	for (i = 0; i < 2; i++)
		fairwq_batch_dispose(b[i]);
	keep = prandom_u32_state(rnd) % 3;
	for (n = STAYING; n > keep; n--) {
		i = prandom_u32_state(rnd) % n;
		KUNIT_EXPECT_EQ(test, 1, fairwq_work_cancel(&item[i]->work));
		left[of[i]]--;
		item[i] = item[n - 1];
		of[i] = of[n - 1];
		mock_wait_released();
		for (i = 0; i < 2; i++)
			KUNIT_EXPECT_EQ(test, !left[i], atomic_read(&released[i]));
	}
	complete_all(&gate->open);
	if (caller)
		mock_caller_end(test, caller);
	serial_end(test, serial);
	for (i = 0; i < 2; i++)
		mock_until(test, atomic_read(&released[i]) == 1);
}

static void batches_stay_for_what_waits(struct kunit *test)
{
	struct fairwq_batch *front = mock_begin(test, 2);
	struct rnd_state rnd;
	unsigned int i;

	prandom_seed_state(&rnd, 36);
	mock_open(test);
	for (i = 0; i < 8; i++)
		batches_stay_for_what_waits_round(test, &rnd, front, i % 2);
}

/* Each item of a burst gives its room back when it begins. */
static void burst_gives_room_back(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_queued = 2 };
	struct fairwq_serializer *serial = serial_new(test);
	struct mock_gate *in_front, *in_burst = mock_gate_new(test);
	struct fairwq_batch *a = mock_begin_with(test, 1, &attrs);

	mock_open(test);
	KUNIT_ASSERT_EQ(test, 0, fairwq_serializer_set_inline(serial, FAIRWQ_MAX_INLINE_US));
	in_front = serial_gate(test, serial, a);
	serial_item(test, serial, a, 'x');
	KUNIT_EXPECT_EQ(test, 1, fairwq_serializer_queue(serial, a, &in_burst->work));
	KUNIT_EXPECT_EQ(test, 2U, fairwq_batch_nr_queued(a));
	complete_all(&in_front->open);
	mock_await(test, &in_burst->entered);
	KUNIT_EXPECT_EQ(test, 0U, fairwq_batch_nr_queued(a));
	complete_all(&in_burst->open);
	serial_end(test, serial);
}

/* ---- cancelling ------------------------------------------------------- */

/* If all items that wait are cancelled, a later item still runs. */
static void later_item_runs_after_a_gap(struct kunit *test)
{
	struct fairwq_serializer *serial = serial_new(test);
	struct mock_item *item[3];
	struct mock_gate *gate;
	struct fairwq_batch *a = mock_begin(test, 2);

	gate = serial_gate(test, serial, a);
	item[0] = serial_item(test, serial, a, 'x');
	item[1] = serial_item(test, serial, a, 'y');
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel_sync(&item[0]->work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel_sync(&item[1]->work));
	complete_all(&gate->open);
	fairwq_work_flush(&gate->work);
	item[2] = serial_item(test, serial, a, 'z');
	mock_expect_order(test, "z", item, 3);
	serial_end(test, serial);
}

/*
 * Make a paused batch b. Queue 'x', which is admitted to b and does not start,
 * and 'y', which waits behind 'x'. Return: b.
 */
static struct fairwq_batch *admit_to_paused(struct kunit *test, struct mock_item **item,
					    struct fairwq_serializer *serial)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	struct fairwq_batch *b = mock_batch(test, "b");
	struct mock_gate *gate;

	fairwq_batch_pause(b);
	gate = serial_gate(test, serial, a);
	item[0] = serial_item(test, serial, b, 'x');
	item[1] = serial_item(test, serial, a, 'y');
	complete_all(&gate->open);
	mock_until(test, admitted(&item[0]->work));
	KUNIT_EXPECT_TRUE(test, waits(&item[1]->work));
	return b;
}

/*
 * An admitted work is pushed, but not sorted if its batch has a backlog and is
 * not served. A cancel finds it, and does not wait for a runner.
 */
static void cancel_of_what_was_only_pushed(struct kunit *test)
{
	struct fairwq_serializer *serial = serial_new(test);
	struct mock *mock = test->priv;
	struct mock_item *item[2];
	struct fairwq_batch *a = mock_begin(test, 2);
	struct call *call;
	bool done;

	fairwq_batch_pause(a);
	mock_queue(test, a, 'a', 1);
	item[0] = serial_item(test, serial, a, 'x');
	item[1] = serial_item(test, serial, a, 'y');
	KUNIT_EXPECT_TRUE(test, waits(&item[1]->work));
	call = mock_call_start(test, fairwq_work_cancel, &item[0]->work);
	done = mock_within(completion_done(&call->done));
	KUNIT_EXPECT_TRUE_MSG(test, done, "it waits for a runner");
	fairwq_batch_resume(a);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, call));
	fairwq_serializer_flush(serial);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_STREQ(test, "ay", &mock->log.text[0]);
	fairwq_serializer_destroy(serial);
}

/* A cancel of the batch takes out an admitted work, and the serializer goes on. */
static void batch_cancel_of_what_went_on(struct kunit *test)
{
	struct fairwq_serializer *serial = serial_new(test);
	struct mock_item *item[2];
	struct fairwq_batch *b = admit_to_paused(test, item, serial);

	KUNIT_EXPECT_EQ(test, 1UL, fairwq_batch_cancel(b, NULL));
	mock_expect_order(test, "y", item, 2);
	/* The work can be queued without the serializer again. */
	fairwq_batch_resume(b);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(b, &item[0]->work));
	fairwq_batch_flush(b);
	KUNIT_EXPECT_PTR_EQ(test, NULL, item[0]->work.serializer);
	serial_end(test, serial);
}

/* If an admitted work is cancelled in its batch, the serializer admits the next work. */
static void cancel_of_what_is_held_up(struct kunit *test)
{
	struct fairwq_serializer *serial = serial_new(test);
	struct mock_gate *gate = mock_gate_new(test);
	struct fairwq_batch *a = mock_held_begin(test, gate);
	struct mock_item *item[2];

	item[0] = serial_item(test, serial, a, 'x');
	item[1] = serial_item(test, serial, a, 'y');
	mock_held_go(test, a, gate, item[0]);
	KUNIT_EXPECT_TRUE(test, waits(&item[1]->work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&item[0]->work));
	KUNIT_EXPECT_TRUE(test, admitted(&item[1]->work));
	complete_all(&gate->open);
	mock_expect_order(test, "y", item, 2);
	serial_end(test, serial);
}

struct front {
	struct fairwq_work work;
	struct fairwq_work *victim;
	struct completion go, done;
	bool canceled;
};

static void front_fn(struct fairwq_work *work)
{
	struct front *front = container_of(work, struct front, work);

	wait_for_completion(&front->go);
	front->canceled = fairwq_work_cancel_sync(front->victim);
	complete(&front->done);
}

/* A sync cancel of a work, by the item in front of it, does not deadlock. */
static void item_in_front_can_cancel(struct kunit *test)
{
	struct fairwq_serializer *serial = serial_new(test);
	struct mock_item *item[2];
	struct fairwq_batch *a = mock_begin(test, 2);
	struct front front = { };

	init_completion(&front.go);
	init_completion(&front.done);
	fairwq_work_init_onstack(&front.work, front_fn);
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(serial, a, &front.work));
	item[0] = serial_item(test, serial, a, 'x');
	item[1] = serial_item(test, serial, a, 'y');
	front.victim = &item[0]->work;
	complete(&front.go);
	mock_await(test, &front.done);
	mock_expect_order(test, "y", item, 2);
	KUNIT_EXPECT_TRUE(test, front.canceled);
	serial_end(test, serial);
}

/* A disabled work is refused, and does not count in the serializer or the batch. */
static void disabled_work_is_refused(struct kunit *test)
{
	struct fairwq_serializer *serial = serial_new(test);
	struct mock_item *item;
	struct fairwq_batch *a = mock_begin(test, 2);

	item = mock_item(test, 'x');
	fairwq_work_disable(&item->work);
	KUNIT_EXPECT_EQ(test, -ECANCELED, fairwq_serializer_queue(serial, a, &item->work));
	KUNIT_EXPECT_TRUE(test, serial_idle(serial));
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_held(a));
	fairwq_work_enable(&item->work);
	KUNIT_EXPECT_EQ(test, 1, fairwq_serializer_queue(serial, a, &item->work));
	mock_expect_order(test, "x", &item, 1);
	serial_end(test, serial);
}

/* ---- waiting ---------------------------------------------------------- */

static void thread_flush_work(struct thread *thread)
{
	thread->ret = fairwq_work_flush(thread->work);
}

struct inside {
	struct fairwq_work work;
	struct fairwq_serializer *serial;
	struct fairwq_work *behind;
	struct mock *mock;
	struct completion done;
};

/* A task that waits for the serializer of the item which has forked it. */
struct waiting_task {
	struct fairwq_task task;
	struct fairwq_serializer *serial;
	struct completion begun;
};

static void waiting_task_fn(struct fairwq_task *self)
{
	struct waiting_task *task = container_of(self, struct waiting_task, task);

	complete(&task->begun);
	fairwq_serializer_flush(task->serial);
}

/* Fork a task that flushes @serial, and join it. The caller is an item of @serial. */
static void flush_in_task(struct fairwq_serializer *serial)
{
	struct waiting_task task = { .serial = serial };
	struct fairwq_task self;

	fairwq_task_here(&self);
	init_completion(&task.begun);
	fairwq_task_init(&task.task, waiting_task_fn);
	fairwq_fork(&self, &task.task);
	mock_fork_until(&self, &task.begun);
	fairwq_join(&self, &task.task);
}

static void inside_fn(struct fairwq_work *work)
{
	struct inside *inside = container_of(work, struct inside, work);

	flush_in_task(inside->serial);
	fairwq_serializer_flush(inside->serial);
	fairwq_serializer_destroy(inside->serial);
	complete(&inside->done);
}

/* An item that waits for its own serializer, or a task of it, warns and does not hang. */
static void self_wait_warns(struct kunit *test)
{
	struct inside inside = { .serial = serial_new(test) };
	struct fairwq_batch *a = mock_begin(test, 3);

	init_completion(&inside.done);
	fairwq_work_init_onstack(&inside.work, inside_fn);
	pr_info("# expect-splat begin would wait for itself in fairwq_serializer_flush\n");
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(inside.serial, a, &inside.work));
	mock_await(test, &inside.done);
	fairwq_serializer_destroy(inside.serial);
	pr_info("# expect-splat end\n");
}

static void in_front_fn(struct fairwq_work *work)
{
	struct inside *inside = container_of(work, struct inside, work);

	if (fairwq_work_flush(inside->behind))
		mock_log_add(&inside->mock->log, '!');
	complete(&inside->done);
}

/* Run an item that flushes 'x', which is behind it in a serializer with @budget_us. */
static void wait_for_one_behind(struct kunit *test, struct fairwq_batch *a,
				unsigned int budget_us)
{
	struct inside inside = { .serial = serial_new(test), .mock = test->priv };
	struct mock_gate *gate;

	KUNIT_ASSERT_EQ(test, 0, fairwq_serializer_set_inline(inside.serial, budget_us));
	gate = serial_gate(test, inside.serial, a);
	init_completion(&inside.done);
	fairwq_work_init_onstack(&inside.work, in_front_fn);
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(inside.serial, a, &inside.work));
	inside.behind = &serial_item(test, inside.serial, a, 'x')->work;
	mock_set_guess(a, 1000);		/* both fit into the budget */
	complete_all(&gate->open);
	mock_await(test, &inside.done);
	fairwq_serializer_destroy(inside.serial);
}

/*
 * An item that flushes a work behind it in its serializer warns and does not
 * hang. That also holds if both would run in one burst.
 */
static void wait_for_an_item_behind_warns(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 2);

	pr_info("# expect-splat begin behind it in its serializer\n");
	wait_for_one_behind(test, a, 0);
	wait_for_one_behind(test, a, FAIRWQ_MAX_INLINE_US);
	pr_info("# expect-splat end\n");
	KUNIT_EXPECT_STREQ(test, "xx", &mock->log.text[0]);
}

/* A serializer may be freed when it is destroyed, because no runner touches it any more. */
static void destroyed_serializer_may_be_freed(struct kunit *test)
{
	struct track *track = mock_track_new(test, 100);
	struct fairwq_serializer *serial;
	struct step *step;
	struct fairwq_batch *a = mock_begin(test, 4);
	unsigned int i, k;

	for (i = 0; i < MOCK_MANY(500); i++) {
		serial = kzalloc(sizeof(*serial), GFP_KERNEL | __GFP_NOFAIL);
		fairwq_serializer_init(serial);
		for (k = 0; k < i % 5; k++) {
			step = kzalloc(sizeof(*step), GFP_KERNEL | __GFP_NOFAIL);
			fairwq_work_init(&step->work, mock_step_free_fn);
			step->track = track;
			mock_may_refuse(fairwq_serializer_queue(serial, a, &step->work));
		}
		fairwq_serializer_destroy(serial);
		memset(serial, 0x6b, sizeof(*serial));
		kfree(serial);
	}
	KUNIT_EXPECT_EQ(test, 2 * MOCK_MANY(500), atomic_read(&track->ran));
}

/* A flush of a work that waits in a serializer returns when the work has run. */
static void flush_of_a_work_that_waits(struct kunit *test)
{
	struct fairwq_serializer *serial = serial_new(test);
	struct thread thread = { };
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 2);
	struct mock_item *item;
	struct mock_gate *gate;

	gate = serial_gate(test, serial, a);
	item = serial_item(test, serial, a, 'x');
	thread.work = &item->work;
	mock_thread_start(test, &thread, thread_flush_work);
	mock_until(test, mock_nr_waiters(mock->pool) == 1);
	KUNIT_EXPECT_FALSE(test, completion_done(&thread.done));
	complete_all(&gate->open);
	mock_thread_end(test, &thread);
	KUNIT_EXPECT_TRUE(test, thread.ret);
	KUNIT_EXPECT_EQ(test, 1U, READ_ONCE(mock->log.nr));
	fairwq_serializer_destroy(serial);
}

/* ---- arguments ------------------------------------------------------------ */

static void bad_arguments_are_refused(struct kunit *test)
{
	struct fairwq_work no_func = { };
	struct fairwq_serializer *serial = serial_new(test);
	struct mock_item *item = mock_item(test, 'x');
	struct fairwq_batch *a = mock_begin(test, 1);

	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_serializer_queue(NULL, a, &item->work));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_serializer_queue(serial, NULL, &item->work));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_serializer_queue(serial, a, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_serializer_queue(serial, a, &no_func));
	KUNIT_EXPECT_TRUE(test, serial_idle(serial));
}

static struct kunit_case serializer_cases[] = {
	KUNIT_CASE(bad_arguments_are_refused),
	KUNIT_CASE(later_item_runs_after_a_gap),
	KUNIT_CASE(cancel_of_what_is_held_up),
	KUNIT_CASE(cancel_of_what_was_only_pushed),
	KUNIT_CASE(batch_cancel_of_what_went_on),
	KUNIT_CASE(item_in_front_can_cancel),
	KUNIT_CASE(disabled_work_is_refused),
	KUNIT_CASE(max_queued_counts_what_waits),
	KUNIT_CASE(item_that_runs_takes_up_no_room),
	KUNIT_CASE(batches_stay_for_what_waits),
	KUNIT_CASE(burst_gives_room_back),
	KUNIT_CASE(queue_and_cancel_from_hardirq),
	KUNIT_CASE(flush_of_a_work_that_waits),
	KUNIT_CASE(self_wait_warns),
	KUNIT_CASE(wait_for_an_item_behind_warns),
	KUNIT_CASE(destroyed_serializer_may_be_freed),
	KUNIT_CASE(many_serializers_run_one_item_each),
	{}
};

static struct kunit_suite serializer_suite = {
	.name = "fairwq_serializer",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = serializer_cases,
};

kunit_test_suite(serializer_suite);

MODULE_DESCRIPTION("KUnit: serializers");
MODULE_LICENSE("GPL");
