/* SPDX-License-Identifier: GPL-2.0 */
/* Forks: how tasks become turns of other runners, and how a join waits for them. */
#ifndef FAIRWQ_FORK_H
#define FAIRWQ_FORK_H

#include "types.h"

/* Check that a function that has returned has joined all that it has forked. */
static inline void fairwq_forks_end(struct fairwq_runner *runner)
{
	struct fairwq_forks *forks = &runner->forker.forks;

	if (unlikely(!list_empty(&forks->list)))
		__fairwq_forks_left(forks, &forks->list, runner->turn.func);
}

#endif /* FAIRWQ_FORK_H */
