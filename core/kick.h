/* SPDX-License-Identifier: GPL-2.0 */
/* Kicks: which idle runner works next. */
#ifndef FAIRWQ_KICK_H
#define FAIRWQ_KICK_H

#include "types.h"

/* Check whether a batch is in the tree, and a turn may begin. */
static inline bool fairwq_has_work_locked(const struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	return pool->tree.nr_eligible && pool->crew.nr_async < pool->crew.max_async;
}

/*
 * Return how many runners may be active: each may have a turn that will go on
 * after its function. So no turn that begins can lead to more than @max_async
 * that do.
 */
static inline unsigned int fairwq_seats_locked(const struct fairwq_pool *pool)
{
	const struct fairwq_crew *crew = &pool->crew;

	lockdep_assert_held(&pool->lock);

	return min(crew->max_active, crew->max_async - min(crew->nr_async, crew->max_async));
}

struct fairwq_runner *fairwq_kick_activate_locked(struct fairwq_pool *pool);
struct fairwq_runner *fairwq_kick_locked(struct fairwq_pool *pool);
bool fairwq_kick_soon_free_locked(struct fairwq_pool *pool);
void fairwq_kick_next_cpu(struct fairwq_pool *pool, struct fairwq_runner *runner);
void fairwq_kick_now(struct fairwq_pool *pool, struct fairwq_runner *runner);
void fairwq_kick_unlock(struct fairwq_pool *pool, unsigned long flags)
	__releases(&pool->lock);
void fairwq_kick_update_hungry_locked(struct fairwq_pool *pool);

/* Kick the runner that fairwq_kick_locked() has chosen; NULL: none. */
static inline void fairwq_kick_send(struct fairwq_pool *pool, struct fairwq_runner *runner)
{
	if (runner)
		fairwq_kick_now(pool, runner);
}

#endif /* FAIRWQ_KICK_H */
