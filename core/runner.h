/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Runners of a pool: those whose items wait, and the one that executes the
 * caller.
 *
 * P: pool->lock. p: written under pool->lock, also read without; the comment
 * says why. I: set before another CPU can see the pool.
 */
#ifndef FAIRWQ_RUNNER_H
#define FAIRWQ_RUNNER_H

#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/preempt.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "compat.h"
#include "fairwq.h"

struct fairwq_batch;
struct fairwq_pool;
struct fairwq_runner;
struct fairwq_serializer;
struct fairwq_turn;

/*
 * The crew of a pool: its runners, and how many may have turns. See seat.c.
 *
 * Invariant: a runner is on @idle, or has a seat, or is asleep.
 */
struct fairwq_crew {
	/* What each turn writes is in one line, with pool->lock. */
	unsigned int nr_active;		/* p: runners that have a seat; a hint for bursts */
	unsigned int seats;		/* P: most of them, by all limits below */
	unsigned int nr_quick;		/* P: turns in flight with @quick set */
	bool hungry;			/* p: fewer are active than may; a hint for forks */
	struct list_head idle;		/* P: runners; the last to run is first */
	unsigned long began_at;		/* P: jiffies when a turn began last */
	u64 turn_number;		/* P: number of the turn that was taken last */
	u64 nr_taken;			/* P: items and tasks that were taken; "reset" clears it */

	unsigned int max_active;	/* p: a hint for a burst */
	unsigned int nr_asleep;		/* P: runners whose item sleeps, without a seat */
	unsigned int nr_napping;	/* P: of @nr_active: those with @naps */
	unsigned int max_in_flight;	/* I: most of both, or max_active if that is more */
	unsigned int nr_async;		/* P: turns in flight whose function has returned */
	unsigned int max_async;		/* I: most of all three */
	struct list_head runners;	/* P to write, P or RCU to read */
	unsigned int nr_runners;	/* P */
	struct work_struct grow;	/* adds a runner, because none is idle */
	struct delayed_work shrink;	/* takes idle runners away that are too many */
};

/* By what the items of a runner fork. Only that runner writes it. See fork.c. */
struct fairwq_forker {
	struct fairwq_forks forks;	/* tasks not joined: those promoted, then private ones */
	struct list_head *shared;	/* the last that was promoted, or the head of the list */
	fairwq_func_t run_task;		/* the function of the work of a task */
	unsigned int skip;		/* calls before the clock is read again */
	unsigned int step;		/* @skip, as it was set last */
	u64 promote_at;			/* not before, ns */
	unsigned int scopes;		/* p: FAIRWQ_SCOPES of those promoted, together */
};

/* What finds out whether the item of a runner sleeps. See asleep.c. */
struct fairwq_asleep {
#ifdef FAIRWQ_HAS_NOTIFIERS
	struct preempt_notifier notifier; /* R: of its task, while one executes it */
	bool sleeps;			/* R sets, R and P clears: the task sleeps */
	u64 out_at;			/* R: clock, ns: it left its CPU, and does not pay; or 0 */
	struct irq_work lose;		/* A: takes its seat, under pool->lock */
	/* this CPU, until @notifier is called again: whose seat to take besides; or NULL */
	struct fairwq_runner *before;
#else
	/* P: what a tick saw last: its turn, sleeps of its task, and its active_ns() */
	u64 turn, ns;
	unsigned long switches;
	u64 lost_at;			/* P: clock, ns: it lost its seat last */
	/* P: active_ns() when a tick took its seat, or a task began without one; or 0 */
	u64 lost_ns;
#endif
};

void fairwq_runner_yield_locked(struct fairwq_batch *batch);
struct work_struct *fairwq_current_work_of_core(work_func_t *func);
struct fairwq_runner *fairwq_runner_current(void);
const struct fairwq_turn *fairwq_runner_own_turn(void);
struct fairwq_runner *fairwq_runner_of_item(void);
bool fairwq_runner_is_of(const struct fairwq_serializer *serializer);
struct fairwq_runner *fairwq_executing_runner(const struct fairwq_work *work);
void fairwq_check_reclaim(bool for_reclaim);
void fairwq_wait_begin(struct lockdep_map *map, bool for_reclaim);
struct fairwq_runner *fairwq_runner_alloc(struct fairwq_pool *pool, work_func_t run,
					  gfp_t gfp);
void fairwq_runner_free(struct fairwq_runner *runner);
extern struct xarray fairwq_runners;

/* burst.c */
bool fairwq_burst_goes_on(struct fairwq_runner *runner,
			  const struct fairwq_serializer *serializer,
			  const struct fairwq_work *work);

/* run.c */
void fairwq_run(struct work_struct *work);

#endif /* FAIRWQ_RUNNER_H */
