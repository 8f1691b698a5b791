/* SPDX-License-Identifier: GPL-2.0 */
/* Kicks: which idle runner works next. */
#ifndef FAIRWQ_KICK_H
#define FAIRWQ_KICK_H

#include "types.h"

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
