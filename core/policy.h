/* SPDX-License-Identifier: GPL-2.0 */
/* Policies: what a turn costs its batch. */
#ifndef FAIRWQ_POLICY_H
#define FAIRWQ_POLICY_H

#include "types.h"

#define FAIRWQ_DFL_SLICE_US		50U
/*
 * Bits of fraction of a ns in the tree, under fair time. At the largest weight
 * a ns counts a hundredth, which is still 5 units.
 */
#define FAIRWQ_COST_NS_SHIFT		9
/* Most that one item costs. */
#define FAIRWQ_COST_MAX_NS		(60ULL * NSEC_PER_SEC)

/* Return pool->slice_us in ns. A hint, which is written under the pool's lock. */
static inline u64 fairwq_slice_ns(const struct fairwq_pool *pool)
{
	return (u64)(READ_ONCE(pool->slice_us) ?: FAIRWQ_DFL_SLICE_US) * NSEC_PER_USEC;
}

#define FAIRWQ_NR_POLICIES	(FAIRWQ_FAIR_COST + 1)

/*
 * A policy counts the service of batches in a unit of its own. A new one is an
 * entry of fairwq_policies[], and its name in enum fairwq_policy.
 */
struct fairwq_policy_ops {
	const char *name;		/* as operators write it */
	unsigned int shift;		/* bits of fraction of a unit in the tree */
	unsigned int shown;		/* so many units are one in tables */
	bool needs_cost;		/* the pool's cost() says what each item costs: no bursts */

	/*
	 * Each returns units, under pool->lock.
	 *
	 * For the first turn of a batch, which begins with @work; or, if that
	 * is NULL, of any. Without it: 1.
	 */
	u32 (*first)(const struct fairwq_pool *pool, const struct fairwq_work *work);
	/* For @turn, which begins. Without it: as @first, for each turn. */
	u32 (*charge)(struct fairwq_turn *turn);
	/* For a turn of @batch that has ended. Without it: what was charged, for each item. */
	u64 (*settle)(struct fairwq_batch *batch, const struct fairwq_charge *charge);
};

extern const struct fairwq_policy_ops fairwq_policies[FAIRWQ_NR_POLICIES];

/* Return the policy of @pool. Without the lock it may be an old one. */
static inline const struct fairwq_policy_ops *fairwq_policy_of(const struct fairwq_pool *pool)
{
	return &fairwq_policies[READ_ONCE(pool->policy)];
}

void fairwq_policy_charge_locked(struct fairwq_turn *turn, const struct fairwq_work *work);
void fairwq_policy_settle_locked(struct fairwq_batch *batch, const struct fairwq_charge *charge);
u32 fairwq_policy_first_locked(const struct fairwq_pool *pool, const struct fairwq_work *work);
void fairwq_policy_set_unit_locked(struct fairwq_pool *pool);
void fairwq_policy_begin_locked(struct fairwq_pool *pool);

#endif /* FAIRWQ_POLICY_H */
