/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Registry: the batches of a pool, and what else it has that must leave before
 * it.
 *
 * P: pool->lock. p: written under it, also read without; the comment says why.
 * I: set before another CPU can see the pool. A: atomic.
 */
#ifndef FAIRWQ_REGISTRY_H
#define FAIRWQ_REGISTRY_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/types.h>

#include "fairwq.h"
#include "tree.h"

struct fairwq_batch;

struct fairwq_registry {
	bool dying;			/* P: no new batches, no pause */
	struct list_head batches;	/* P to write, P or RCU to read: by seq */
	u64 next_seq;			/* P */
	unsigned int nr_batches;	/* p: read again after each that leaves */
	atomic_t nr_flows;		/* A: only for a warning if the pool goes before them */
	struct fairwq_batch *default_batch[FAIRWQ_NR_RANKS]; /* I: by prio */
};

/* Return the rank of a priority; rank 0 is served first. */
static inline unsigned int fairwq_prio_rank(enum fairwq_prio prio)
{
	return prio == FAIRWQ_PRIO_HIGH ? 0 : prio == FAIRWQ_PRIO_NORMAL ? 1 : 2;
}

/* What a batch of a flow needs to know of that: see flows.c. */
struct fairwq_member {
	struct fairwq_batch *shared;	/* ends with it, and counts it as owned */
	/* It has drained, and released() has returned. This must not sleep. */
	void (*left)(struct fairwq_batch *batch, void *priv);
	void *priv;
};

#endif /* FAIRWQ_REGISTRY_H */
