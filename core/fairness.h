/* SPDX-License-Identifier: GPL-2.0 */
/* The self-check of promise 6. */
#ifndef FAIRWQ_FAIRNESS_H
#define FAIRWQ_FAIRNESS_H

#include "types.h"

void fairwq_window_init(struct fairwq_pool *pool);
void fairwq_window_start_locked(struct fairwq_pool *pool);
void fairwq_window_reset_locked(struct fairwq_pool *pool);
void fairwq_window_turns_locked(struct fairwq_batch *batch, unsigned int nr);
void fairwq_window_cost_locked(struct fairwq_batch *batch, u64 ns);
void fairwq_window_streak_locked(struct fairwq_batch *batch, unsigned int turns, u64 ns);
void fairwq_window_forget_locked(struct fairwq_pool *pool, struct fairwq_node *node);
void fairwq_window_joined_locked(struct fairwq_batch *batch);
void fairwq_window_left_locked(struct fairwq_batch *batch);
void fairwq_window_gone_locked(struct fairwq_batch *batch);
void fairwq_window_turn_begins_locked(struct fairwq_pool *pool);
void fairwq_window_took_locked(struct fairwq_batch *batch, u64 ns);
void fairwq_window_weight_locked(struct fairwq_pool *pool, struct fairwq_node *node, u32 weight);

#endif /* FAIRWQ_FAIRNESS_H */
