// SPDX-License-Identifier: GPL-2.0
/*
 * An order, items that check each other in it, and threads that queue to it; see
 * order.h.
 */
#include <linux/module.h>
#include <linux/sched/task_stack.h>

#include "order.h"

/* ---- a serializer, or a limiter that lets one go ------------------------- */

struct order mock_order_new(struct kunit *test, bool limited)
{
	struct order order = { };

	if (limited) {
		order.limiter = kunit_kzalloc(test, sizeof(*order.limiter), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, order.limiter);
		fairwq_limiter_init(order.limiter, 1);
	} else {
		order.serial = kunit_kzalloc(test, sizeof(*order.serial), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, order.serial);
		fairwq_serializer_init(order.serial);
	}
	return order;
}
EXPORT_SYMBOL_GPL(mock_order_new);

int mock_order_queue(const struct order *order, struct fairwq_batch *batch,
		     struct fairwq_work *work)
{
	return order->serial ? fairwq_serializer_queue(order->serial, batch, work) :
			       fairwq_limiter_queue(order->limiter, batch, work);
}
EXPORT_SYMBOL_GPL(mock_order_queue);

struct mock_item *mock_order_item(struct kunit *test, const struct order *order,
				  struct fairwq_batch *batch, char letter)
{
	struct mock_item *item = mock_item(test, letter);

	KUNIT_ASSERT_EQ(test, 1, mock_order_queue(order, batch, &item->work));
	return item;
}
EXPORT_SYMBOL_GPL(mock_order_item);

/* Queue a gate, and wait until it is entered: all that come later wait. */
struct mock_gate *mock_order_gate(struct kunit *test, const struct order *order,
				  struct fairwq_batch *batch)
{
	struct mock_gate *gate = mock_gate_new(test);

	KUNIT_ASSERT_EQ(test, 1, mock_order_queue(order, batch, &gate->work));
	mock_await(test, &gate->entered);
	return gate;
}
EXPORT_SYMBOL_GPL(mock_order_gate);

struct fairwq_constraint *mock_order_constraint(const struct order *order)
{
	return order->serial ? &order->serial->constraint : &order->limiter->constraint;
}
EXPORT_SYMBOL_GPL(mock_order_constraint);

/* Nothing is queued or in flight. */
bool mock_order_idle(const struct order *order)
{
	/* It is written under a lock that the test does not have. */
	return !data_race(READ_ONCE(mock_order_constraint(order)->in_flight));
}
EXPORT_SYMBOL_GPL(mock_order_idle);

/* The last of those that wait; or nothing that is a work, if none does. */
const struct fairwq_work *mock_order_last(const struct order *order)
{
	struct list_head *waiting = &mock_order_constraint(order)->waiting;

	/* It is written under a lock that the test does not have. */
	return container_of(data_race(READ_ONCE(waiting->prev)), struct fairwq_work, node);
}
EXPORT_SYMBOL_GPL(mock_order_last);

void mock_order_flush(const struct order *order)
{
	if (order->serial)
		fairwq_serializer_flush(order->serial);
	else
		fairwq_limiter_flush(order->limiter);
}
EXPORT_SYMBOL_GPL(mock_order_flush);

void mock_order_destroy(const struct order *order)
{
	if (order->serial)
		fairwq_serializer_destroy(order->serial);
	else
		fairwq_limiter_destroy(order->limiter);
}
EXPORT_SYMBOL_GPL(mock_order_destroy);

/* Destroy it when all has ended; else the case fails, and does not hang. */
void mock_order_end(struct kunit *test, const struct order *order)
{
	mock_until(test, mock_order_idle(order));
	mock_order_destroy(order);
}
EXPORT_SYMBOL_GPL(mock_order_end);

/* ---- what its items have seen of each other ------------------------------ */

static void track_depth(struct track *track)
{
	unsigned long here = (unsigned long)__builtin_frame_address(0) -
			     (unsigned long)task_stack_page(current);

	track->low = min(track->low, here);
	track->high = max(track->high, here);
}

static void step_enter(struct step *step)
{
	struct track *track = step->track;
	int inside = atomic_inc_return(&track->inside);

	if (inside > track->max)
		atomic_inc(&track->overlaps);
	if (track->max > 1)
		return;
	if (step->seq <= track->last[step->producer])
		track->disorder++;
	track->last[step->producer] = step->seq;
	track->plain++;
	track_depth(track);
}

static void step_leave(struct track *track)
{
	atomic_dec(&track->inside);
	atomic_inc(&track->ran);
}

void mock_step_fn(struct fairwq_work *work)
{
	struct step *step = container_of(work, struct step, work);

	step_enter(step);
	step_leave(step->track);
}
EXPORT_SYMBOL_GPL(mock_step_fn);

void mock_step_free_fn(struct fairwq_work *work)
{
	struct step *step = container_of(work, struct step, work);
	struct track *track = step->track;

	step_enter(step);
	kfree(step);
	step_leave(track);
}
EXPORT_SYMBOL_GPL(mock_step_free_fn);

struct track *mock_track_new(struct kunit *test, unsigned int max)
{
	struct track *track = kunit_kzalloc(test, sizeof(*track), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, track);
	track->max = max;
	track->low = ULONG_MAX;
	return track;
}
EXPORT_SYMBOL_GPL(mock_track_new);

void mock_track_check(struct kunit *test, const struct track *track)
{
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&track->overlaps));
	KUNIT_EXPECT_EQ(test, 0U, track->disorder);
	if (track->max == 1)
		KUNIT_EXPECT_EQ(test, (unsigned long)atomic_read(&track->ran), track->plain);
}
EXPORT_SYMBOL_GPL(mock_track_check);

/* ---- another thread ------------------------------------------------------ */

static int thread_main(void *data)
{
	struct thread *thread = data;

	thread->fn(thread);
	complete(&thread->done);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

void mock_thread_start(struct kunit *test, struct thread *thread,
		       void (*fn)(struct thread *thread))
{
	thread->fn = fn;
	init_completion(&thread->done);
	thread->task = kthread_run(thread_main, thread, "thread");
	KUNIT_ASSERT_FALSE(test, IS_ERR(thread->task));
}
EXPORT_SYMBOL_GPL(mock_thread_start);

void mock_thread_end(struct kunit *test, struct thread *thread)
{
	mock_await(test, &thread->done);
	kthread_stop(thread->task);
}
EXPORT_SYMBOL_GPL(mock_thread_end);

void mock_thread_flush(struct thread *thread)
{
	mock_order_flush(&thread->order);
}
EXPORT_SYMBOL_GPL(mock_thread_flush);

void mock_thread_destroy(struct thread *thread)
{
	mock_order_destroy(&thread->order);
}
EXPORT_SYMBOL_GPL(mock_thread_destroy);
