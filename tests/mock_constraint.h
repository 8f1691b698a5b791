/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites of constraints share: items that check each other, threads, and
 * what happens in the middle of a queue call.
 */
#ifndef FAIRWQ_MOCK_CONSTRAINT_H
#define FAIRWQ_MOCK_CONSTRAINT_H

#include <linux/sched/task_stack.h>

#include "mock_work.h"

/* Fewer where each is checked by everything that the kernel has. */
#define MANY(n)	MOCK_MANY(n)

/* ---- where a work is --------------------------------------------------- */

/* It is kept back by its constraint. */
static inline bool waits(const struct fairwq_work *work)
{
	return (atomic_long_read(&work->data) &
		(FAIRWQ_WORK_CONSTRAINED | FAIRWQ_WORK_GRACE)) == FAIRWQ_WORK_CONSTRAINED;
}

static inline bool admitted(const struct fairwq_work *work)
{
	return !(atomic_long_read(&work->data) & FAIRWQ_WORK_CONSTRAINED) &&
	       fairwq_work_pending(work);
}

/* ---- what ran ---------------------------------------------------------- */

/*
 * @order has run, and nothing else. If that does not come to be, what waits is
 * taken out, so that the case ends.
 */
static inline void expect_order(struct kunit *test, const char *order,
				struct mock_item **items, unsigned int nr)
{
	unsigned long end = jiffies + MOCK_WAIT;
	struct mock *mock = test->priv;
	bool ran;

	do {
		ran = READ_ONCE(mock->log.nr) >= strlen(order);
		usleep_range(50, 200);
	} while (!ran && time_before(jiffies, end));
	KUNIT_EXPECT_TRUE_MSG(test, ran, "timed out");
	while (nr--)
		fairwq_work_cancel_sync(&items[nr]->work);
	KUNIT_EXPECT_STREQ(test, order, &mock->log.text[0]);
}

static inline void released_count(struct fairwq_batch *batch, void *priv)
{
	atomic_inc(priv);
}

/* What the items of one constraint have seen of each other. */
#define TRACK_PRODUCERS	4

struct track {
	unsigned int max;		/* so many may be inside */
	atomic_t inside, overlaps, most, ran;
	unsigned int disorder;
	unsigned long plain;		/* written by each, without a lock */
	u64 last[TRACK_PRODUCERS];
	unsigned long low, high;	/* depths of the stack */
};

struct step {
	struct fairwq_work work;
	struct track *track;
	unsigned int producer;
	u64 seq;
};

static inline void track_depth(struct track *track)
{
	unsigned long here = (unsigned long)__builtin_frame_address(0) -
			     (unsigned long)task_stack_page(current);

	track->low = min(track->low, here);
	track->high = max(track->high, here);
}

static inline void step_enter(struct step *step)
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

static inline void step_leave(struct track *track)
{
	atomic_dec(&track->inside);
	atomic_inc(&track->ran);
}

static inline void step_fn(struct fairwq_work *work)
{
	struct step *step = container_of(work, struct step, work);

	step_enter(step);
	step_leave(step->track);
}

static inline void step_free_fn(struct fairwq_work *work)
{
	struct step *step = container_of(work, struct step, work);
	struct track *track = step->track;

	step_enter(step);
	kfree(step);
	step_leave(track);
}

static inline struct track *track_new(struct kunit *test, unsigned int max)
{
	struct track *track = kunit_kzalloc(test, sizeof(*track), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, track);
	track->max = max;
	track->low = ULONG_MAX;
	return track;
}

static inline void track_check(struct kunit *test, const struct track *track)
{
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&track->overlaps));
	KUNIT_EXPECT_EQ(test, 0U, track->disorder);
	if (track->max == 1)
		KUNIT_EXPECT_EQ(test, (unsigned long)atomic_read(&track->ran), track->plain);
}

/* ---- another thread ----------------------------------------------------- */

/* One that does something and says what came of it. */
struct thread {
	void (*fn)(struct thread *thread);
	struct fairwq_serializer *serial;
	struct fairwq_limiter *limiter;
	struct fairwq_batch *batch;
	struct fairwq_work *work;
	struct track *track;
	struct step *steps;
	unsigned int id, nr;
	struct mutex *mutex;		/* @seq, and the order of the queue calls */
	u64 *seq;
	atomic_t *counts;		/* queued, cancelled */
	int ret;
	struct task_struct *task;
	struct completion done;
};

static inline int thread_main(void *data)
{
	struct thread *thread = data;

	thread->fn(thread);
	complete(&thread->done);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

static inline void thread_start(struct kunit *test, struct thread *thread,
				void (*fn)(struct thread *thread))
{
	thread->fn = fn;
	init_completion(&thread->done);
	thread->task = kthread_run(thread_main, thread, "thread");
	KUNIT_ASSERT_FALSE(test, IS_ERR(thread->task));
}

static inline void thread_end(struct kunit *test, struct thread *thread)
{
	mock_await(test, &thread->done);
	kthread_stop(thread->task);
}

static inline void thread_flush(struct thread *thread)
{
	if (thread->serial)
		fairwq_serializer_flush(thread->serial);
	else
		fairwq_limiter_flush(thread->limiter);
}

static inline void thread_destroy(struct thread *thread)
{
	if (thread->serial)
		fairwq_serializer_destroy(thread->serial);
	else
		fairwq_limiter_destroy(thread->limiter);
}

/* ---- an order: a serializer, or a limiter that lets one go -------------- */

struct order {
	struct fairwq_serializer *serial;
	struct fairwq_limiter *limiter;	/* if there is no serializer */
};

static inline int order_queue(const struct order *order, struct fairwq_batch *batch,
			      struct fairwq_work *work)
{
	return order->serial ? fairwq_serializer_queue(order->serial, batch, work) :
			       fairwq_limiter_queue(order->limiter, batch, work);
}

#endif /* FAIRWQ_MOCK_CONSTRAINT_H */
