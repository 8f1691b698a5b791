/* SPDX-License-Identifier: GPL-2.0 */
/* Waiters: calls that wait for one work to have run, or for batches to leave. */
#ifndef FAIRWQ_WAITER_H
#define FAIRWQ_WAITER_H

#include "types.h"

void fairwq_waiters_take_locked(struct fairwq_pool *pool, const void *what, u64 turn);
void fairwq_waiters_done_locked(struct fairwq_pool *pool, u64 turn);
void fairwq_waiter_add_locked(struct fairwq_pool *pool, struct fairwq_waiter *waiter,
			      u64 turn);
void fairwq_waiters_drop_locked(struct fairwq_pool *pool, const void *what);
void fairwq_end_waiters_tell_locked(const struct fairwq_batch *batch);

#endif /* FAIRWQ_WAITER_H */
