// SPDX-License-Identifier: GPL-2.0
/*
 * Order: a serializer, items that check that they run one at a time, and
 * threads that queue to it; see order.h.
 */
#include <linux/module.h>
#include <linux/sched/task_stack.h>

#include "order.h"

/* ---- a serializer --------------------------------------------------------- */

/* Make a serializer, by fairwq_limiter_init() if @limited. */
struct order mock_order_new(struct kunit *test, bool limited)
{
	struct order order = {
		.serial = kunit_kzalloc(test, sizeof(*order.serial), GFP_KERNEL),
	};

	KUNIT_ASSERT_NOT_NULL(test, order.serial);
	if (limited)
		fairwq_limiter_init(order.serial, 1);
	else
		fairwq_serializer_init(order.serial);
	return order;
}
EXPORT_SYMBOL_GPL(mock_order_new);

int mock_order_queue(const struct order *order, struct fairwq_batch *batch,
		     struct fairwq_work *work)
{
	return fairwq_serializer_queue(order->serial, batch, work);
}
EXPORT_SYMBOL_GPL(mock_order_queue);

/* Make an item that logs @letter, and queue it to @order. Return: the item. */
struct mock_item *mock_order_item(struct kunit *test, const struct order *order,
				  struct fairwq_batch *batch, char letter)
{
	struct mock_item *item = mock_item(test, letter);

	KUNIT_ASSERT_EQ(test, 1, mock_order_queue(order, batch, &item->work));
	return item;
}
EXPORT_SYMBOL_GPL(mock_order_item);

/* Queue a gate, and wait until it is entered. Later items of @order wait behind it. */
struct mock_gate *mock_order_gate(struct kunit *test, const struct order *order,
				  struct fairwq_batch *batch)
{
	struct mock_gate *gate = mock_gate_new(test);

	KUNIT_ASSERT_EQ(test, 1, mock_order_queue(order, batch, &gate->work));
	mock_await(test, &gate->entered);
	return gate;
}
EXPORT_SYMBOL_GPL(mock_order_gate);

/* Check that no item of @order is queued or in flight. */
bool mock_order_idle(const struct order *order)
{
	/* Other CPUs write it under a lock that the test does not hold. */
	return !data_race(READ_ONCE(order->serial->in_flight));
}
EXPORT_SYMBOL_GPL(mock_order_idle);

/*
 * Return the work that was queued last of those that wait in @order. If none
 * does, the pointer is to no work: the caller may compare it, but not
 * dereference it.
 */
const struct fairwq_work *mock_order_last(const struct order *order)
{
	struct list_head *waiting = &order->serial->waiting;

	/* Other CPUs write it under a lock that the test does not hold. */
	return container_of(data_race(READ_ONCE(waiting->prev)), struct fairwq_work, node);
}
EXPORT_SYMBOL_GPL(mock_order_last);

void mock_order_flush(const struct order *order)
{
	fairwq_serializer_flush(order->serial);
}
EXPORT_SYMBOL_GPL(mock_order_flush);

void mock_order_destroy(const struct order *order)
{
	fairwq_serializer_destroy(order->serial);
}
EXPORT_SYMBOL_GPL(mock_order_destroy);

/* Wait until @order is idle, and destroy it. A time-out fails the case: no hang. */
void mock_order_end(struct kunit *test, const struct order *order)
{
	mock_until(test, mock_order_idle(order));
	mock_order_destroy(order);
}
EXPORT_SYMBOL_GPL(mock_order_end);

/* ---- items that check that they run one at a time, in order -------------- */

/* Note how deep the stack of this item is. */
static void track_depth(struct track *track)
{
	unsigned long here = (unsigned long)__builtin_frame_address(0) -
			     (unsigned long)task_stack_page(current);

	track->low = min(track->low, here);
	track->high = max(track->high, here);
}

/* Note that @step has begun: count overlaps, and items that came out of order. */
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

/* Do the same as mock_step_fn(), and free the item: the engine must not touch it. */
void mock_step_free_fn(struct fairwq_work *work)
{
	struct step *step = container_of(work, struct step, work);
	struct track *track = step->track;

	step_enter(step);
	kfree(step);
	step_leave(track);
}
EXPORT_SYMBOL_GPL(mock_step_free_fn);

/* Make a track for items of which @max may run at once. */
struct track *mock_track_new(struct kunit *test, unsigned int max)
{
	struct track *track = kunit_kzalloc(test, sizeof(*track), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, track);
	track->max = max;
	track->low = ULONG_MAX;
	return track;
}
EXPORT_SYMBOL_GPL(mock_track_new);

/* Expect that no items overlapped, that none was out of order, and that @plain fits. */
void mock_track_check(struct kunit *test, const struct track *track)
{
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&track->overlaps));
	KUNIT_EXPECT_EQ(test, 0U, track->disorder);
	if (track->max == 1)
		KUNIT_EXPECT_EQ(test, (unsigned long)atomic_read(&track->ran), track->plain);
}
EXPORT_SYMBOL_GPL(mock_track_check);

/* ---- another thread ------------------------------------------------------ */

/* Run @fn, then stay until kthread_stop(), so that the task is not gone. */
static int thread_main(void *data)
{
	struct thread *thread = data;

	thread->fn(thread);
	complete(&thread->done);
	mock_stay();
	return 0;
}

/* Start @fn in a thread. The case must end it by mock_thread_end(). */
void mock_thread_start(struct kunit *test, struct thread *thread,
		       void (*fn)(struct thread *thread))
{
	thread->fn = fn;
	init_completion(&thread->done);
	thread->task = kthread_run(thread_main, thread, "thread");
	KUNIT_ASSERT_FALSE(test, IS_ERR(thread->task));
}
EXPORT_SYMBOL_GPL(mock_thread_start);

/* Wait until @fn has returned, and stop the thread. */
void mock_thread_end(struct kunit *test, struct thread *thread)
{
	mock_await(test, &thread->done);
	kthread_stop(thread->task);
}
EXPORT_SYMBOL_GPL(mock_thread_end);

/* Flush the order of @thread: for mock_thread_start(). */
void mock_thread_flush(struct thread *thread)
{
	mock_order_flush(&thread->order);
}
EXPORT_SYMBOL_GPL(mock_thread_flush);

/* Destroy the order of @thread: for mock_thread_start(). */
void mock_thread_destroy(struct thread *thread)
{
	mock_order_destroy(&thread->order);
}
EXPORT_SYMBOL_GPL(mock_thread_destroy);
