/* SPDX-License-Identifier: GPL-2.0 */
/* Waitlists: works that wait in a serializer or limiter, in front of a batch. */
#ifndef FAIRWQ_WAITLIST_H
#define FAIRWQ_WAITLIST_H

#include "types.h"

/* The word of a work that a client's own constraint keeps back. */
#define FAIRWQ_WORD_OWN	(FAIRWQ_WORK_PENDING | FAIRWQ_WORK_CONSTRAINED)
/* The word of a work that a serializer or limiter keeps back. */
#define FAIRWQ_WORD_LISTED	(FAIRWQ_WORD_OWN | FAIRWQ_WORK_LINKED)

raw_spinlock_t *fairwq_constraint_lock(const struct fairwq_constraint *constraint)
	__attribute_const__;
void fairwq_waitlist_wake_locked(const struct fairwq_constraint *constraint,
				 const struct fairwq_work *work);
struct fairwq_work *fairwq_waitlist_first_locked(struct fairwq_constraint *constraint,
						 struct list_head *go);
struct fairwq_work *fairwq_waitlist_work_locked(struct fairwq_constraint *constraint);
void fairwq_waitlist_next_locked(struct fairwq_constraint *constraint, struct list_head *go);
void fairwq_waitlist_push(struct list_head *go);
void fairwq_waitlist_refuse(struct fairwq_constraint *constraint);
void fairwq_waitlist_accept(struct fairwq_constraint *constraint);
void fairwq_waitlist_stop(struct fairwq_constraint *constraint);
void fairwq_waitlist_drop(struct fairwq_constraint *constraint,
			  void (*dropped)(struct fairwq_work *work));
bool fairwq_waitlist_wait(struct fairwq_constraint *constraint);
bool fairwq_waitlist_wait_work(struct fairwq_work *work, bool listed);
int fairwq_waitlist_take(struct fairwq_work *work, long data, long word, bool wait);

/* Cancel attempt failed: the work is in motion, or the caller can wait for it. Retry. */
#define FAIRWQ_AGAIN	(-EAGAIN)
bool fairwq_waitlist_admit(struct fairwq_constraint *constraint, struct fairwq_work *work);
void fairwq_waitlist_remove(struct fairwq_constraint *constraint, struct fairwq_work *work);
void fairwq_waitlist_complete(struct fairwq_constraint *constraint);
void fairwq_admit_locked(struct fairwq_work *work);

/* Return the word of an admitted work that is bound for @batch. */
static inline long fairwq_word_admitted(const struct fairwq_batch *batch)
{
	return (long)batch | FAIRWQ_WORD_OWN | FAIRWQ_WORK_GRACE;
}

#endif /* FAIRWQ_WAITLIST_H */
