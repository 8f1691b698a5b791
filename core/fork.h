/* SPDX-License-Identifier: GPL-2.0 */
/* Forks: how tasks become turns of other runners, and how a join waits for them. */
#ifndef FAIRWQ_FORK_H
#define FAIRWQ_FORK_H

#include "types.h"

bool fairwq_fork_take_back(struct fairwq_forker *forker, struct fairwq_task *task);
void fairwq_fork_await(struct fairwq_forker *forker, struct fairwq_task *task);
void fairwq_forks_unjoined(struct fairwq_forker *forker);

/* Check that a function that has returned has joined all that it has forked. */
static inline void fairwq_forks_end(struct fairwq_forker *forker)
{
	if (unlikely(!list_empty(&forker->forks.list) || !list_empty(&forker->promoted)))
		fairwq_forks_unjoined(forker);
}

#endif /* FAIRWQ_FORK_H */
