/* SPDX-License-Identifier: GPL-2.0 */
/* How a pool finds out that an item sleeps, or goes on. */
#ifndef FAIRWQ_ASLEEP_H
#define FAIRWQ_ASLEEP_H

#include "types.h"

#ifdef FAIRWQ_HAS_NOTIFIERS
void fairwq_asleep_init(struct fairwq_runner *runner);
void fairwq_asleep_uninit(struct fairwq_runner *runner);

/* The caller executes @runner from here on. */
static inline void fairwq_asleep_begin_locked(struct fairwq_runner *runner)
{
	lockdep_assert_held(&runner->pool->lock);

	runner->task = current;
	preempt_notifier_register(&runner->asleep.notifier);
}

/* The caller does so no more. @task does, but sleeps; or NULL. */
static inline void fairwq_asleep_end_locked(struct fairwq_runner *runner,
					    struct task_struct *task)
{
	lockdep_assert_held(&runner->pool->lock);

	preempt_notifier_unregister(&runner->asleep.notifier);
	runner->task = task;
}

static inline void fairwq_asleep_look_locked(struct fairwq_runner *runner)
{
}

/* The item has lost its seat. */
static inline void fairwq_asleep_lost(struct fairwq_runner *runner)
{
}

/* The item has a CPU again: count the time since it went to sleep. */
static inline void fairwq_asleep_away(struct fairwq_runner *runner)
{
	if (!runner->asleep.out_at)
		return;
	runner->away += max_t(s64, fairwq_clock() - runner->asleep.out_at, 0);
	runner->asleep.out_at = 0;
}
#else
static inline void fairwq_asleep_init(struct fairwq_runner *runner)
{
}

static inline void fairwq_asleep_uninit(struct fairwq_runner *runner)
{
}

/*
 * Return the time that @task had a CPU, or waited for one where the kernel
 * counts that, in ns. What a task that runs had since the last tick is missing.
 */
static inline u64 fairwq_asleep_active_ns(const struct task_struct *task)
{
	/* The scheduler may write it meanwhile, on another CPU. */
	u64 ns = data_race(task->se.sum_exec_runtime);

#ifdef CONFIG_SCHED_INFO
	/* As above. */
	ns += data_race(task->sched_info.run_delay);
#endif
	return ns;
}

static inline void fairwq_asleep_end_locked(struct fairwq_runner *runner,
					    struct task_struct *task)
{
	lockdep_assert_held(&runner->pool->lock);

	runner->task = task;
	/* What a tick saw was of another task. */
	runner->asleep.turn = 0;
	runner->asleep.lost_ns = task && !runner->seated ? fairwq_asleep_active_ns(task) : 0;
}

static inline void fairwq_asleep_begin_locked(struct fairwq_runner *runner)
{
	fairwq_asleep_end_locked(runner, current);
}

void fairwq_asleep_look_locked(struct fairwq_runner *runner);

/* The item has lost its seat. */
static inline void fairwq_asleep_lost(struct fairwq_runner *runner)
{
	runner->asleep.lost_at = fairwq_clock();
}

/* Count the time without a seat, but for what the item has used since a tick took it. */
static inline void fairwq_asleep_away(struct fairwq_runner *runner)
{
	u64 lost_ns = runner->asleep.lost_ns;
	s64 away = fairwq_clock() - runner->asleep.lost_at;

	if (lost_ns)
		away -= fairwq_asleep_active_ns(runner->task) - lost_ns;
	runner->away += max(away, 0);
	runner->asleep.lost_ns = 0;
}
#endif

#endif /* FAIRWQ_ASLEEP_H */
