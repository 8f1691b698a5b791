/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Order: a serializer. With it come items that
 * check that, and threads that queue to it.
 */
#ifndef FAIRWQ_TEST_ORDER_H
#define FAIRWQ_TEST_ORDER_H

#include "hook.h"

/* Check whether the serializer of @work holds it back. */
static inline bool waits(const struct fairwq_work *work)
{
	return mock_state(work) == FAIRWQ_STATE_LISTED;
}

/* Check whether the serializer of @work has admitted it, and it has not begun. */
static inline bool admitted(const struct fairwq_work *work)
{
	return mock_state(work) == FAIRWQ_STATE_QUEUED;
}

/* ---- an order: a serializer ------------------------------------------------ */

struct order {
	struct fairwq_serializer *serial;
};

struct order mock_order_new(struct kunit *test, bool limited);
int mock_order_queue(const struct order *order, struct fairwq_batch *batch,
		     struct fairwq_work *work);
struct mock_item *mock_order_item(struct kunit *test, const struct order *order,
				  struct fairwq_batch *batch, char letter);
struct mock_gate *mock_order_gate(struct kunit *test, const struct order *order,
				  struct fairwq_batch *batch);
bool mock_order_idle(const struct order *order);
const struct fairwq_work *mock_order_last(const struct order *order);
void mock_order_flush(const struct order *order);
void mock_order_destroy(const struct order *order);
void mock_order_end(struct kunit *test, const struct order *order);

/* ---- items that check that they run one at a time, in order -------------- */

#define TRACK_PRODUCERS	4

/* What the items of a case have seen. Only the atomics count if @max is above 1. */
struct track {
	unsigned int max;		/* items that may be inside at once */
	atomic_t inside, overlaps, most, ran;
	unsigned int disorder;
	unsigned long plain;		/* each item adds 1, without a lock */
	u64 last[TRACK_PRODUCERS];	/* the @seq that ran last */
	unsigned long low, high;	/* depths of the stack */
};

/* An item that notes in @track how it ran. @seq rises per @producer. */
struct step {
	struct fairwq_work work;
	struct track *track;
	unsigned int producer;
	u64 seq;
};

struct track *mock_track_new(struct kunit *test, unsigned int max);
void mock_track_check(struct kunit *test, const struct track *track);
void mock_step_fn(struct fairwq_work *work);
void mock_step_free_fn(struct fairwq_work *work);

/* ---- another thread ------------------------------------------------------ */

/* A thread that runs @fn, with arguments for it and its result. */
struct thread {
	void (*fn)(struct thread *thread);
	struct order order;
	struct fairwq_batch *batch;
	struct fairwq_work *work;
	struct track *track;
	struct step *steps;
	unsigned int id, nr;
	struct mutex *mutex;		/* for @seq and the order of the queue calls */
	u64 *seq;
	atomic_t *counts;		/* queued, cancelled */
	int ret;
	struct task_struct *task;
	struct completion done;
};

void mock_thread_start(struct kunit *test, struct thread *thread,
		       void (*fn)(struct thread *thread));
void mock_thread_end(struct kunit *test, struct thread *thread);
void mock_thread_flush(struct thread *thread);
void mock_thread_destroy(struct thread *thread);

#endif /* FAIRWQ_TEST_ORDER_H */
