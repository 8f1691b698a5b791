/* SPDX-License-Identifier: GPL-2.0 */
/* The self-check of promise 6. */
#ifndef FAIRWQ_FAIRNESS_H
#define FAIRWQ_FAIRNESS_H

#include "types.h"

void fairwq_fairness_start_locked(struct fairwq_pool *pool);
void fairwq_fairness_reset_locked(struct fairwq_pool *pool);
void fairwq_fairness_turn_locked(const struct fairwq_turn *turn);
void fairwq_fairness_burst_locked(const struct fairwq_turn *turn);
void fairwq_fairness_longest_locked(struct fairwq_batch *batch, u32 cost);
void fairwq_fairness_jumped_locked(struct fairwq_pool *pool, const struct fairwq_node *node,
				   s64 cost);
void fairwq_fairness_debts_locked(struct fairwq_pool *pool, unsigned int old, unsigned int now);
void fairwq_fairness_joins_locked(struct fairwq_batch *batch);
void fairwq_fairness_left_locked(struct fairwq_batch *batch);
void fairwq_fairness_weight_locked(struct fairwq_pool *pool, struct fairwq_node *node);
void fairwq_fairness_look(struct fairwq_pool *pool);

#endif /* FAIRWQ_FAIRNESS_H */
