/* SPDX-License-Identifier: GPL-2.0 */
/* Where tests can step in; nothing in a build without -DFAIRWQ_TESTING. */
#ifndef FAIRWQ_TESTING_H
#define FAIRWQ_TESTING_H

#include "types.h"

/*
 * Places where a test can step in, to force an interleaving that a race would
 * only hit by chance. Nothing in a build without -DFAIRWQ_TESTING.
 */
enum fairwq_test_point {
	FAIRWQ_POINT_QUEUE_CLAIMED,	/* pending, and perhaps disabled just now */
	FAIRWQ_POINT_QUEUE_ACCEPTED,	/* not refused, and not yet pushed */
	FAIRWQ_POINT_QUEUE_REVIVE,	/* cancelled before it was pushed, and wanted again */
	FAIRWQ_POINT_QUEUE_PUSHED,	/* pushed, and nobody told yet */
	FAIRWQ_POINT_SORT_STEP,		/* some of a backlog was put into order, no lock */
	FAIRWQ_POINT_BATCH_WAIT,	/* a flush has seen it in its pool, and has no lock yet */
	FAIRWQ_POINT_BATCH_EMPTY,	/* seen empty, still marked as watched */
	FAIRWQ_POINT_DUMP_CHUNK,	/* some items copied out, the lock dropped */
	FAIRWQ_POINT_DELAY_DELETED,	/* its timer was deleted, and it is pending still */
	FAIRWQ_POINT_RESCHED,		/* a function has returned, and others may run now */
	FAIRWQ_POINT_CANCEL_STEP,	/* a cancel of a batch goes on looking */
	FAIRWQ_POINT_LOOK,		/* a cancel or a flush looks where a work is */
	FAIRWQ_POINT_ADMITTED,		/* let go by its constraint, and not yet pushed */
	FAIRWQ_POINT_TAKE_OUT,		/* seen to wait, and the lock not yet taken */
	FAIRWQ_POINT_LIMITER_ENDED,	/* one less is in flight, under the lock */
	FAIRWQ_POINT_LIMITER_LEFT,	/* no lock, and perhaps no limiter any more */
	FAIRWQ_POINT_FLOW_FOUND,	/* open, and not yet marked as used */
	FAIRWQ_POINT_FLOW_CLOSED,	/* found closed, or not at all */
	FAIRWQ_POINT_FLOW_MAKING,	/* not there, and not made yet */
	FAIRWQ_POINT_FLOW_QUEUEING,	/* found, opened or made, and not yet queued to */
	FAIRWQ_POINT_FLOW_REMOVED,	/* out of the tree, and not yet disposed */
	FAIRWQ_POINT_FLOWS_SWEEP_CLOSED,/* the next: of flows->shared. Some are closed */
	FAIRWQ_POINT_FLOWS_SWEEP_WAITED,/* and a grace period has passed */
	FAIRWQ_POINT_FLOWS_IDLE,	/* the idle time is set, and nothing armed for it */
	FAIRWQ_POINT_FLOWS_DYING,	/* refuses items, and waits for the rest */
};

#ifdef FAIRWQ_TESTING
extern void (*fairwq_test_hook)(enum fairwq_test_point point,
				struct fairwq_batch *batch);
void fairwq_test_set_hook(void (*hook)(enum fairwq_test_point point,
				       struct fairwq_batch *batch));
static inline void fairwq_test_point(enum fairwq_test_point point,
				     struct fairwq_batch *batch)
{
	typeof(fairwq_test_hook) hook = READ_ONCE(fairwq_test_hook);

	if (hook)
		hook(point, batch);
}

extern atomic_t fairwq_test_graces;
static inline void fairwq_count_grace(void)
{
	atomic_inc(&fairwq_test_graces);
}

unsigned int fairwq_test_nr_batches(struct fairwq_pool *pool);
unsigned int fairwq_test_nr_eligible(struct fairwq_pool *pool);
u64 fairwq_test_counter(struct fairwq_pool *pool, enum fairwq_counter which);
void fairwq_test_set_policy(struct fairwq_pool *pool, enum fairwq_policy policy);
void fairwq_test_set_hung_ms(struct fairwq_pool *pool, unsigned int ms);
long fairwq_test_live_batches(void);
int fairwq_test_load(void);
void fairwq_test_one_reaper(bool one);
void fairwq_test_settle(void);
void fairwq_test_tick(struct fairwq_pool *pool);
void fairwq_test_look(struct fairwq_batch *batch);
size_t fairwq_test_dump(struct fairwq_batch *batch, char *buf, size_t size);
void fairwq_test_row(struct fairwq_batch *batch, char *buf, size_t size);
void fairwq_test_flows_fail(unsigned int nth);
void fairwq_test_flows_sweep(struct fairwq_flows *flows, unsigned long now);
unsigned int fairwq_test_nr_flows(struct fairwq_flows *flows);
void fairwq_test_set_guess(struct fairwq_batch *batch, unsigned long ns);
bool fairwq_test_limiter_wanted(struct fairwq_limiter *limiter);
#else
static inline void fairwq_test_point(enum fairwq_test_point point,
				     struct fairwq_batch *batch)
{
}

static inline void fairwq_count_grace(void)
{
}
#endif

#endif /* FAIRWQ_TESTING_H */
