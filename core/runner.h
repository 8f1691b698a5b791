/* SPDX-License-Identifier: GPL-2.0 */
/* Runners of a pool: the idle ones, kicks, and the runner that executes the caller. */
#ifndef FAIRWQ_RUNNER_H
#define FAIRWQ_RUNNER_H

#include "types.h"

void fairwq_unlock_kick(struct fairwq_pool *pool, unsigned long flags)
	__releases(&pool->lock);
struct fairwq_runner *fairwq_kick_locked(struct fairwq_pool *pool);
void fairwq_kick_next_cpu(struct fairwq_pool *pool, struct fairwq_runner *runner);
void fairwq_kick_now(struct fairwq_pool *pool, struct fairwq_runner *runner);
struct fairwq_runner *fairwq_runner_find(u32 id);
void fairwq_not_quick_locked(struct fairwq_runner *runner);
struct fairwq_runner *fairwq_runner_leave_locked(struct fairwq_runner *runner);
void fairwq_runner_return_locked(struct fairwq_runner *runner);
bool fairwq_runner_block(struct fairwq_runner *runner);
void fairwq_runner_unblock(struct fairwq_runner *runner);
void fairwq_yield_locked(struct fairwq_batch *batch);
struct fairwq_runner *fairwq_current_runner(void);
const struct fairwq_turn *fairwq_current_turn(const struct fairwq_runner *runner);
const struct fairwq_turn *fairwq_own_turn(void);
struct fairwq_runner *fairwq_item_runner(void);
bool fairwq_item_is_of(const struct fairwq_constraint *constraint);
struct fairwq_runner *fairwq_runner_alloc(struct fairwq_pool *pool, work_func_t run);
void fairwq_runner_free(struct fairwq_runner *runner);
void fairwq_runners_check(void);
void fairwq_runners_changed_locked(struct fairwq_pool *pool);
struct fairwq_runner *fairwq_activate_locked(struct fairwq_pool *pool);
extern struct xarray fairwq_runners;
void fairwq_tick_arm_locked(struct fairwq_pool *pool);
void fairwq_tick_soon_locked(struct fairwq_pool *pool);
bool fairwq_is_soon_free_locked(struct fairwq_pool *pool);
unsigned long fairwq_tick_due_locked(const struct fairwq_pool *pool);

/* Kick the runner that fairwq_kick_locked() has chosen; NULL: none. */
static inline void fairwq_kick_send(struct fairwq_pool *pool, struct fairwq_runner *runner)
{
	if (runner)
		fairwq_kick_now(pool, runner);
}

#endif /* FAIRWQ_RUNNER_H */
