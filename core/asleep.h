/* SPDX-License-Identifier: GPL-2.0 */
/* How a pool finds out that an item sleeps, or goes on. */
#ifndef FAIRWQ_ASLEEP_H
#define FAIRWQ_ASLEEP_H

#include "types.h"

#ifdef FAIRWQ_HAS_NOTIFIERS
/*
 * Have the scheduler look for notifiers, or not. This waits for CPUs that go up
 * or down, so pools and runners must not do it.
 */
static inline void fairwq_asleep_set(bool on)
{
	if (on)
		preempt_notifier_inc();
	else
		preempt_notifier_dec();
}

void fairwq_asleep_init(struct fairwq_runner *runner);
void fairwq_asleep_uninit(struct fairwq_runner *runner);

/* The caller executes @runner from here on. */
static inline void fairwq_asleep_begin_locked(struct fairwq_runner *runner)
{
	lockdep_assert_held(&runner->pool->lock);

	preempt_notifier_register(&runner->asleep.notifier);
}

/* The caller does not execute @runner any more. */
static inline void fairwq_asleep_end_locked(struct fairwq_runner *runner)
{
	lockdep_assert_held(&runner->pool->lock);

	preempt_notifier_unregister(&runner->asleep.notifier);
}

static inline void fairwq_asleep_look_locked(struct fairwq_runner *runner)
{
}
#else
static inline void fairwq_asleep_set(bool on)
{
}

static inline void fairwq_asleep_init(struct fairwq_runner *runner)
{
}

static inline void fairwq_asleep_uninit(struct fairwq_runner *runner)
{
}

static inline void fairwq_asleep_begin_locked(struct fairwq_runner *runner)
{
}

static inline void fairwq_asleep_end_locked(struct fairwq_runner *runner)
{
}

void fairwq_asleep_look_locked(struct fairwq_runner *runner);
#endif

#endif /* FAIRWQ_ASLEEP_H */
