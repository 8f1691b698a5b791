/* SPDX-License-Identifier: GPL-2.0 */
/* Seats: which runners work, and how many. */
#ifndef FAIRWQ_SEAT_H
#define FAIRWQ_SEAT_H

#include "types.h"

struct fairwq_runner *fairwq_seat_take_locked(struct fairwq_pool *pool);
void fairwq_seat_leave_locked(struct fairwq_runner *runner);
void fairwq_seat_regain_locked(struct fairwq_runner *runner);
void fairwq_seat_lose_locked(struct fairwq_runner *runner);
void fairwq_seat_slept_locked(struct fairwq_runner *runner);
void fairwq_seat_update_locked(struct fairwq_pool *pool);
void fairwq_seat_not_quick_locked(struct fairwq_runner *runner);
void fairwq_seat_age_locked(struct fairwq_runner *runner);
bool fairwq_seat_soon_free_locked(struct fairwq_pool *pool);
bool fairwq_seat_is_full_locked(const struct fairwq_pool *pool);
bool fairwq_seat_may_exceed_locked(const struct fairwq_pool *pool, unsigned int mine);
void fairwq_seat_block(struct fairwq_runner *runner);
void fairwq_seat_unblock(struct fairwq_runner *runner);
struct fairwq_runner *fairwq_kick_locked(struct fairwq_pool *pool);
void fairwq_kick_send_to(struct fairwq_runner *runner, int cpu);
void fairwq_kick_unlock(struct fairwq_pool *pool, unsigned long flags)
	__releases(&pool->lock);

/* Hold pool->lock, and kick a runner at the end if more can be done. */
DEFINE_LOCK_GUARD_1(fairwq_kick, struct fairwq_pool,
		    raw_spin_lock_irqsave(&_T->lock->lock, _T->flags),
		    fairwq_kick_unlock(_T->lock, _T->flags), unsigned long flags)

/* Queue the work of a runner that has a seat: one that was chosen, or the caller's; NULL: none. */
static inline void fairwq_kick_send(struct fairwq_runner *runner)
{
	if (runner)
		fairwq_kick_send_to(runner, runner->pool->cpu);
}

/* The function of the runner's item has returned. */
static inline void fairwq_seat_return_locked(struct fairwq_runner *runner)
{
	lockdep_assert_held(&runner->pool->lock);

	if (unlikely(!runner->seated || runner->naps || runner->away))
		fairwq_seat_slept_locked(runner);
}

#endif /* FAIRWQ_SEAT_H */
