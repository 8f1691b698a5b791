/* SPDX-License-Identifier: GPL-2.0 */
/* Cost: what a turn is charged to its batch, and how that is put right. */
#ifndef FAIRWQ_COST_H
#define FAIRWQ_COST_H

#include "types.h"

void fairwq_cost_charge_locked(struct fairwq_turn *turn);
void fairwq_cost_settle_locked(const struct fairwq_turn *turn);
void fairwq_cost_set_turn_locked(struct fairwq_pool *pool);
void fairwq_cost_new_policy_locked(struct fairwq_pool *pool);

#endif /* FAIRWQ_COST_H */
