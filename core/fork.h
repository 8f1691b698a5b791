/* SPDX-License-Identifier: GPL-2.0 */
/* Forks: how tasks become turns of other runners, and how a join waits for them. */
#ifndef FAIRWQ_FORK_H
#define FAIRWQ_FORK_H

#include "types.h"

bool fairwq_fork_promote(struct fairwq_forker *forker, struct fairwq_task *task);
bool fairwq_fork_take_back(struct fairwq_forker *forker, struct fairwq_cell *cell);
void fairwq_fork_await(struct fairwq_forker *forker, struct fairwq_cell *cell);
void fairwq_forks_look(struct fairwq_pool *pool);
void fairwq_forks_unjoined(struct fairwq_forker *forker);
void fairwq_fork_resume_locked(struct fairwq_work *work, bool in_order);

/* Check that the item that ends has joined all that it has forked. */
static inline void fairwq_forks_end(struct fairwq_forker *forker)
{
	forker->slice_end = 0;
	if (unlikely(!list_empty(&forker->forks.list) || forker->nr_open))
		fairwq_forks_unjoined(forker);
}

#endif /* FAIRWQ_FORK_H */
