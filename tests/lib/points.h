/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Points: what the engine has for tests. core/testing.h includes this if the
 * engine is built with -DFAIRWQ_TESTING. Without, all of it is empty.
 */
#ifndef FAIRWQ_TEST_POINTS_H
#define FAIRWQ_TEST_POINTS_H

#include <linux/atomic.h>
#include <linux/compiler.h>

struct fairwq_batch;
struct fairwq_flows;

/*
 * Test points: places where a test may step in, to force an interleaving that a
 * race would hit by chance only. The comment says what is so at that point.
 */
enum fairwq_test_point {
	FAIRWQ_POINT_QUEUE_CLAIMED,	/* a work is claimed, interrupts are off */
	FAIRWQ_POINT_UNCLAIM,		/* the work is disabled, no lock of that; no batch */
	FAIRWQ_POINT_QUEUE_PUSHED,	/* a work is linked, its batch not yet activated */
	FAIRWQ_POINT_BATCH_NEW,		/* a batch is to be made below this owner, or none */
	FAIRWQ_POINT_BATCH_WAIT,	/* a flush of the batch begins, no spinlock yet */
	FAIRWQ_POINT_DUMP_CHUNK,	/* some items are shown, the lock is dropped */
	FAIRWQ_POINT_RESCHED,		/* a function has returned, others may run now */
	FAIRWQ_POINT_LOOK,		/* a cancel or a flush sees where a work is */
	FAIRWQ_POINT_PROMOTED,		/* a task is promoted, no runner is kicked yet */
	FAIRWQ_POINT_MOVING,		/* a work is taken out, to be queued elsewhere */
	FAIRWQ_POINT_TAKE_OUT,		/* one of both saw a work in a serializer, no lock yet */
	FAIRWQ_POINT_LIMITER_ENDED,	/* one item less is in flight, under the lock */
	FAIRWQ_POINT_MARKER_THROUGH,	/* a flush of a serializer was told, under the lock */
	FAIRWQ_POINT_LIMITER_LEFT,	/* the lock is dropped, the limiter may be gone */
	FAIRWQ_POINT_SHUTDOWN_LOOK,	/* a shutdown looks at the batch, no lock yet */
	FAIRWQ_POINT_UNSAFE_WAIT,	/* a wait is to be reported, as memory may depend on it */
	FAIRWQ_POINT_GRACE_OVER,	/* what ends has waited for its grace period; no batch */
	FAIRWQ_POINT_FLOW_FOUND,	/* a flow is open, not yet marked as used */
	FAIRWQ_POINT_FLOW_CLOSED,	/* a call found its flow closed, or no flow */
	FAIRWQ_POINT_FLOW_MAKING,	/* there is no flow, and none made yet */
	FAIRWQ_POINT_FLOW_QUEUEING,	/* a flow is found, opened or made, not yet queued to */
	/* With flows->shared as the batch: */
	FAIRWQ_POINT_FLOW_REMOVED,	/* a closed flow was removed, or is open again */
	FAIRWQ_POINT_FLOWS_SWEEP_CLOSED,/* a sweep has closed some flows */
	FAIRWQ_POINT_FLOWS_SWEEP_WAITED,/* a grace period has passed since */
	FAIRWQ_POINT_FLOWS_IDLE,	/* the idle time is set, no sweep armed for it yet */
	FAIRWQ_POINT_FLOWS_DYING,	/* the flows refuse items, and wait for the rest */
};

/* The hook that each test point calls, or NULL. */
extern void (*fairwq_test_hook)(enum fairwq_test_point point, struct fairwq_batch *batch);

static inline void fairwq_test_set_hook(void (*hook)(enum fairwq_test_point point,
						     struct fairwq_batch *batch))
{
	WRITE_ONCE(fairwq_test_hook, hook);
}

static inline void fairwq_test_point(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	typeof(fairwq_test_hook) hook = READ_ONCE(fairwq_test_hook);

	if (hook)
		hook(point, batch);
}

/* Batches whose memory is there. */
extern atomic_long_t fairwq_test_batches;

static inline void fairwq_test_count_batch(int n)
{
	atomic_long_add(n, &fairwq_test_batches);
}

static inline long fairwq_test_live_batches(void)
{
	return atomic_long_read(&fairwq_test_batches);
}

/* Number of the allocation of flows that fails, from now on; 0 and less: none. */
extern atomic_t fairwq_test_fail_nth;

/* Check whether the allocation that comes next is to fail. */
static inline bool fairwq_test_fails(void)
{
	return !atomic_dec_return(&fairwq_test_fail_nth);
}

/* Let the @nth allocation of flows from now on fail. */
static inline void fairwq_test_flows_fail(unsigned int nth)
{
	atomic_set(&fairwq_test_fail_nth, nth);
}

unsigned int fairwq_test_nr_flows(struct fairwq_flows *flows);

#endif /* FAIRWQ_TEST_POINTS_H */
