/* SPDX-License-Identifier: GPL-2.0 */
/* Waitlists: works that wait in a serializer, in front of a batch. */
#ifndef FAIRWQ_WAITLIST_H
#define FAIRWQ_WAITLIST_H

#include "types.h"

raw_spinlock_t *fairwq_serializer_lock(const struct fairwq_serializer *serializer)
	__attribute_const__;
int fairwq_waitlist_enter(struct fairwq_serializer *serializer, struct fairwq_batch *batch,
			  struct fairwq_work *work);
struct fairwq_work *fairwq_waitlist_end_item(struct fairwq_runner *runner,
					     struct fairwq_serializer *serializer,
					     struct fairwq_work **moved);
bool fairwq_waitlist_detach(struct fairwq_runner *runner, struct fairwq_serializer *serializer,
			    unsigned int ending);
void fairwq_waitlist_end(struct fairwq_serializer *serializer, int n, bool drop);
void fairwq_waitlist_drop(struct fairwq_serializer *serializer,
			  void (*dropped)(struct fairwq_work *work));
void fairwq_waitlist_wait(struct fairwq_serializer *serializer);
int fairwq_waitlist_find(struct fairwq_work *work, long word, struct fairwq_waiter *waiter);
void fairwq_waitlist_complete(struct fairwq_serializer *serializer);

/* A cancel has failed for now: the work is in motion; or it waits for a grace period. */
#define FAIRWQ_AGAIN	(-EAGAIN)
#define FAIRWQ_IN_GRACE	(-EBUSY)

#endif /* FAIRWQ_WAITLIST_H */
