/* SPDX-License-Identifier: GPL-2.0 */
/* Forks: how tasks become turns of other runners, and how a join waits for them. */
#ifndef FAIRWQ_FORK_H
#define FAIRWQ_FORK_H

#include "types.h"

/*
 * A forker: what a runner needs beside, once an item of it has forked. Only
 * that runner uses it. See fork.c.
 */
struct fairwq_forker {
	struct fairwq_forks forks;	/* private tasks */
	struct list_head promoted;	/* tasks that were promoted, and not joined */
	struct fairwq_runner *runner;
	fairwq_func_t run_task;		/* the function of the work of a task */
	unsigned int skip;		/* calls before the clock is read again */
	unsigned int step;		/* @skip, as it was set last */
	u64 promote_at;			/* not before, ns */
	unsigned int scopes;		/* p: FAIRWQ_SCOPES of @promoted, all together */
};

void fairwq_forks_unjoined(struct fairwq_forker *forker);

/* Check that a function that has returned has joined all that it has forked. */
static inline void fairwq_forks_end(struct fairwq_forker *forker)
{
	if (unlikely(!list_empty(&forker->forks.list) || !list_empty(&forker->promoted)))
		fairwq_forks_unjoined(forker);
}

#endif /* FAIRWQ_FORK_H */
