/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Client: helpers of the suites that use fairwq as a driver does. They know
 * fairwq.h and facilities of the kernel, and nothing of the engine.
 */
#ifndef FAIRWQ_TEST_CLIENT_H
#define FAIRWQ_TEST_CLIENT_H

#include <linux/kthread.h>
#include <linux/sched.h>

#include "fixture.h"

/* What holds something for a case lets go after so long, so that a case that failed can end. */
#define MOCK_HOLD	(100 * HZ)

/* Check whether an emulator runs this kernel. It may serve all CPUs by one thread. */
bool mock_is_emulated(void);

/* Whether the scheduler tells a pool of items that sleep, and not only a tick finds them. */
#ifdef FAIRWQ_TICKS
#define MOCK_NOTIFIED	false
#else
#define MOCK_NOTIFIED	IS_ENABLED(CONFIG_PREEMPT_NOTIFIERS)
#endif

/* Use @ns of a CPU, by the scheduler's account of this task. Return: what was used. */
u64 mock_burn(u64 ns);

/* Sort @nr times. Return: their median. */
u64 mock_median(u64 *times, unsigned int nr);

/* ---- a call in a thread of its own -------------------------------------- */

/* A call of @fn(@arg), which the test watches from outside. */
struct caller {
	void (*fn)(void *arg);
	void *arg;
	struct task_struct *task;
	struct completion done;
};

struct caller *mock_caller(struct kunit *test, void (*fn)(void *arg), void *arg);
void mock_caller_end(struct kunit *test, struct caller *caller);

/* Check whether the call waits in the scheduler. */
static inline bool mock_caller_sleeps(const struct caller *caller)
{
	return READ_ONCE(caller->task->__state) & TASK_UNINTERRUPTIBLE;
}

/* ---- clients that are always busy ---------------------------------------- */

/* An item that queues itself again as soon as it has run. */
struct busy_item {
	struct fairwq_work work;
	struct busy *busy;
	unsigned long turns;		/* written by the item only */
} ____cacheline_aligned_in_smp;

/* A client with @nr such items, which run for @ns each; 0: they only count their turns. */
struct busy {
	struct fairwq_batch *batch;
	struct busy_item *item;
	unsigned int nr;
	u64 ns;
	bool stop;
};

struct busy *mock_busy(struct kunit *test, struct fairwq_batch *batch, unsigned int nr, u64 ns);
void mock_busy_go(struct kunit *test, struct busy *busy);
unsigned long mock_busy_turns(const struct busy *busy);

#endif /* FAIRWQ_TEST_CLIENT_H */
