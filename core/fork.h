/* SPDX-License-Identifier: GPL-2.0 */
/* Forks: how tasks become turns of other runners, and how a join waits for them. */
#ifndef FAIRWQ_FORK_H
#define FAIRWQ_FORK_H

#include "types.h"

void fairwq_forks_unjoined(struct fairwq_runner *runner);

/* Check that a function that has returned has joined all that it has forked. */
static inline void fairwq_forks_end(struct fairwq_runner *runner)
{
	if (unlikely(!list_empty(&runner->forker.forks.list) ||
		     !list_empty(&runner->forker.promoted)))
		fairwq_forks_unjoined(runner);
}

#endif /* FAIRWQ_FORK_H */
