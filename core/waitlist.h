/* SPDX-License-Identifier: GPL-2.0 */
/* Waitlists: works that wait in a serializer or limiter, in front of a batch. */
#ifndef FAIRWQ_WAITLIST_H
#define FAIRWQ_WAITLIST_H

#include "types.h"

raw_spinlock_t *fairwq_constraint_lock(const struct fairwq_constraint *constraint)
	__attribute_const__;
int fairwq_waitlist_enter(struct fairwq_constraint *constraint, struct fairwq_batch *batch,
			  struct fairwq_work *work);
void fairwq_waitlist_let_go(struct fairwq_work *work);
void fairwq_waitlist_wake_locked(const struct fairwq_constraint *constraint,
				 const struct fairwq_work *work);
struct fairwq_work *fairwq_waitlist_first_locked(struct fairwq_constraint *constraint);
struct fairwq_work *fairwq_waitlist_work_locked(struct fairwq_constraint *constraint);
struct fairwq_batch *fairwq_waitlist_next_locked(struct fairwq_constraint *constraint);
void fairwq_waitlist_refuse(struct fairwq_constraint *constraint);
void fairwq_waitlist_accept(struct fairwq_constraint *constraint);
void fairwq_waitlist_stop(struct fairwq_constraint *constraint);
void fairwq_waitlist_drop(struct fairwq_constraint *constraint,
			  void (*dropped)(struct fairwq_work *work));
bool fairwq_waitlist_wait(struct fairwq_constraint *constraint);
bool fairwq_waitlist_wait_work(struct fairwq_work *work, bool cancels);
bool fairwq_waitlist_is_own(const struct fairwq_work *work);
int fairwq_waitlist_take(struct fairwq_work *work, long word, bool wait);
bool fairwq_waitlist_admit(struct fairwq_constraint *constraint, struct fairwq_work *work);
void fairwq_waitlist_remove(struct fairwq_constraint *constraint, struct fairwq_work *work);
void fairwq_waitlist_complete(struct fairwq_constraint *constraint);

/* Cancel attempt failed: the work is in motion, or the caller can wait for it. Retry. */
#define FAIRWQ_AGAIN	(-EAGAIN)

#endif /* FAIRWQ_WAITLIST_H */
