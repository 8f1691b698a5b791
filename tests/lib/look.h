/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Look: access of a test to state of the engine that a client cannot see or
 * set.
 */
#ifndef FAIRWQ_TEST_LOOK_H
#define FAIRWQ_TEST_LOOK_H

#include "core/policy.h"
#include "core/fifo.h"
#include "core/inbox.h"
#include "core/testing.h"
#include "core/types.h"
#include "core/waitlist.h"
#include "core/watchdog.h"
#include "doors.h"

unsigned int mock_nr_batches(struct fairwq_pool *pool);
unsigned int mock_nr_eligible(struct fairwq_pool *pool);

static inline enum fairwq_state mock_state(const struct fairwq_work *work)
{
	return fairwq_word_state(atomic_long_read(&work->data));
}

u64 mock_nr_turns(struct fairwq_pool *pool);
u64 mock_counter(struct fairwq_pool *pool, enum fairwq_counter which);
void mock_one_reaper(bool one);
void mock_tick(struct fairwq_pool *pool);
void mock_no_ticks(struct fairwq_pool *pool);

/* Return how many works a timer, a grace period or a serializer holds, bound for @batch. */
static inline unsigned int mock_nr_held(const struct fairwq_batch *batch)
{
	return READ_ONCE(batch->inbox.nr_held);
}

/* Return how many runners are not idle: active, or asleep with their items. */
static inline unsigned int mock_nr_begun(struct fairwq_pool *pool)
{
	guard(raw_spinlock_irq)(&pool->lock);
	return pool->crew.nr_active + pool->crew.nr_asleep;
}

size_t mock_dump(struct fairwq_batch *batch, char *buf, size_t size);
void mock_row(struct fairwq_batch *batch, char *buf, size_t size);
void mock_reset(struct fairwq_pool *pool);
void mock_set_share(struct fairwq_batch *batch, u64 part, u64 whole);
void mock_let_settle(struct fairwq_batch *batch);
void mock_set_guess(struct fairwq_batch *batch, unsigned long ns);
bool mock_limiter_wanted(struct fairwq_serializer *limiter);

#endif /* FAIRWQ_TEST_LOOK_H */
