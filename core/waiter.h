/* SPDX-License-Identifier: GPL-2.0 */
/* Waiters: calls that wait for one work to have run, or for batches to leave. */
#ifndef FAIRWQ_WAITER_H
#define FAIRWQ_WAITER_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/types.h>

struct fairwq_batch;
struct fairwq_pool;

/* A waiter: a flush of one work, which waits for one run of it; see waiter.c. */
struct fairwq_waiter {
	struct list_head node;		/* P: in pool->waits.works */
	const void *what;		/* I: the work */
	u64 turn;			/* P: number of its turn; 0: not taken yet */
	bool for_reclaim;		/* I, if a work is waited for: of its pool */
	struct completion done;
};

/* A call that waits for batches to leave, and may have to drop what they get meanwhile. */
struct fairwq_end_waiter {
	struct list_head node;		/* P: in pool->waits.batches */
	const unsigned int *left;	/* I: how many of them have not left; P */
	struct completion done;		/* P to clear: there is something to look at */
};

/* The calls that wait in a pool. P: pool->lock. */
struct fairwq_waits {
	/* P: flushes of one work each; under a serializer's lock empty or not is read */
	struct list_head works;
	struct list_head batches;	/* P: calls that wait for batches to leave */
};

bool fairwq_waiters_take_locked(struct fairwq_pool *pool, const void *what, u64 turn);
void fairwq_waiters_done_locked(struct fairwq_pool *pool, u64 turn);
void fairwq_waiter_add_locked(struct fairwq_batch *batch, struct fairwq_waiter *waiter, u64 turn);
void fairwq_waiters_drop_locked(struct fairwq_pool *pool, const void *what);
void fairwq_end_waiters_tell_locked(struct fairwq_pool *pool, bool all);

#endif /* FAIRWQ_WAITER_H */
