/* SPDX-License-Identifier: GPL-2.0 */
/* Lockdep: the maps that fairwq takes for it; nothing without CONFIG_LOCKDEP. */
#ifndef FAIRWQ_LOCKDEP_H
#define FAIRWQ_LOCKDEP_H

#include "types.h"

#ifdef CONFIG_LOCKDEP
void fairwq_lockdep_init_pool(struct fairwq_pool *pool);
void fairwq_lockdep_exit_pool(struct fairwq_pool *pool);
void fairwq_lockdep_init_runner(struct fairwq_pool *pool, struct work_struct *work);
void fairwq_lockdep_run(struct fairwq_pool *pool);
void fairwq_lockdep_ran(struct fairwq_pool *pool);
void fairwq_lockdep_wait(struct fairwq_pool *pool);
void fairwq_lockdep_run_constrained(struct fairwq_constraint *constraint);
void fairwq_lockdep_ran_constrained(struct fairwq_constraint *constraint);
void fairwq_lockdep_wait_constrained(struct fairwq_constraint *constraint);
#else
static inline void fairwq_lockdep_init_pool(struct fairwq_pool *pool) { }
static inline void fairwq_lockdep_exit_pool(struct fairwq_pool *pool) { }
static inline void fairwq_lockdep_init_runner(struct fairwq_pool *pool,
					      struct work_struct *work) { }
static inline void fairwq_lockdep_run(struct fairwq_pool *pool) { }
static inline void fairwq_lockdep_ran(struct fairwq_pool *pool) { }
static inline void fairwq_lockdep_wait(struct fairwq_pool *pool) { }
static inline void
fairwq_lockdep_run_constrained(struct fairwq_constraint *constraint) { }
static inline void
fairwq_lockdep_ran_constrained(struct fairwq_constraint *constraint) { }
static inline void
fairwq_lockdep_wait_constrained(struct fairwq_constraint *constraint) { }
#endif

#endif /* FAIRWQ_LOCKDEP_H */
