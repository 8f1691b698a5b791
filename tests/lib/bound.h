/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bound: when a wait has failed. A case waits for an event, never for a time,
 * so a bound only ends a case that hangs.
 *
 * A bound counts the time in which this guest ran. A host may take a CPU away
 * for some milliseconds, or stop the guest for seconds. The clocks of the guest
 * do not stop: when it runs again, jiffies have jumped. So a waiter looks at
 * what it waits for every few milliseconds at the most, and the time between
 * two looks counts as MOCK_STEP_MS at most. If the guest is stopped for two
 * seconds, the bound comes MOCK_STEP_MS nearer.
 */
#ifndef FAIRWQ_TEST_BOUND_H
#define FAIRWQ_TEST_BOUND_H

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/sched.h>

/* True if a bug may be planted: then loops that rely on chance are short. */
#ifdef FAIRWQ_PLANTED
#define MOCK_PLANTED true
#else
#define MOCK_PLANTED false
#endif

/* Bounds: long for a slow machine, short if a planted bug may hang the case. */
#define MOCK_WAIT_MS	(MOCK_PLANTED ? 3000 : 60000)	/* of a wait that sleeps */
#define MOCK_SPIN_MS	(MOCK_PLANTED ? 3000 : 10000)	/* of one that spins */
#define MOCK_STEP_MS	10	/* what the time between two looks counts at most */

struct mock_bound {
	u64 left;			/* ns */
	u64 seen;			/* when it was looked at last */
};

static inline struct mock_bound mock_bound(unsigned int ms)
{
	return (struct mock_bound){
		.left = (u64)ms * NSEC_PER_MSEC, .seen = ktime_get_mono_fast_ns(),
	};
}

/* Count the time since the last look. Return: whether the wait has reached its bound. */
static inline bool mock_bound_reached(struct mock_bound *bound)
{
	u64 now = ktime_get_mono_fast_ns(), step = now - bound->seen;

	bound->seen = now;
	step = min3(step, bound->left, (u64)MOCK_STEP_MS * NSEC_PER_MSEC);
	bound->left -= step;
	return !bound->left;
}

/* Look at @cond until it holds or @ms are counted, and @pause in between. Return: if it holds. */
#define __mock_look(ms, cond, pause)					\
	({								\
		struct mock_bound __bound = mock_bound(ms);		\
		bool __met, __late;					\
									\
		for (;;) {						\
			/* Before @cond, which must have a last look. */ \
			__late = mock_bound_reached(&__bound);		\
			__met = (cond);					\
			if (__met || __late)				\
				break;					\
			pause;						\
		}							\
		__met;							\
	})

/* Sleep until @cond holds. Return: false if it did not within the bound. */
#define mock_within(cond)	__mock_look(MOCK_WAIT_MS, cond, usleep_range(50, 200))

/*
 * Compute until @cond holds. An item that does so keeps its seat, and one that
 * sleeps loses it by itself. The bound is longer than that of a case that waits
 * meanwhile. Return: false if it did not within the bound.
 */
#define compute_within(cond)	__mock_look(4 * MOCK_WAIT_MS, cond, cond_resched())

/* Spin until @cond holds, also with interrupts off. Return: false if it did not. */
#define spin_within(cond)	__mock_look(MOCK_SPIN_MS, cond, cpu_relax())

/*
 * Spin until @cond holds, which it only does with a bug. The @ms give the bug
 * time to show itself, and a correct module uses all of them. On a slow machine
 * that may be too little to see the bug, but the case does not fail for that.
 * Return: if it holds.
 */
#define spin_for(ms, cond)	__mock_look(ms, cond, cpu_relax())

/* The same for a bug that needs the CPUs to show itself: sleep. */
#define mock_for(ms, cond)	__mock_look(ms, cond, usleep_range(50, 200))

/* Sleep until @done is completed. Return: false if it was not within the bound. */
static inline bool mock_wait(struct completion *done)
{
	struct mock_bound bound = mock_bound(MOCK_WAIT_MS);

	do {
		if (wait_for_completion_timeout(done, msecs_to_jiffies(MOCK_STEP_MS)))
			return true;
	} while (!mock_bound_reached(&bound));
	return false;
}

#endif /* FAIRWQ_TEST_BOUND_H */
