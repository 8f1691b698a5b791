/* SPDX-License-Identifier: GPL-2.0 */
/* Runners of a pool: those whose items wait, and the one that executes the caller. */
#ifndef FAIRWQ_RUNNER_H
#define FAIRWQ_RUNNER_H

#include <linux/xarray.h>

#include "types.h"

void fairwq_runner_not_quick_locked(struct fairwq_runner *runner);
bool fairwq_runner_block(struct fairwq_runner *runner);
void fairwq_runner_unblock(struct fairwq_runner *runner);
void fairwq_runner_yield_locked(struct fairwq_batch *batch);
struct fairwq_runner *fairwq_runner_current(void);
const struct fairwq_turn *fairwq_runner_turn(const struct fairwq_runner *runner);
const struct fairwq_turn *fairwq_runner_own_turn(void);
struct fairwq_runner *fairwq_runner_of_item(void);
bool fairwq_runner_is_of(const struct fairwq_serializer *serializer);
void fairwq_check_reclaim(bool for_reclaim);
void fairwq_wait_begin(struct lockdep_map *map, bool for_reclaim);
struct fairwq_runner *fairwq_runner_alloc(struct fairwq_pool *pool, work_func_t run,
					  gfp_t gfp);
void fairwq_runner_free(struct fairwq_runner *runner);
extern struct xarray fairwq_runners;

#endif /* FAIRWQ_RUNNER_H */
