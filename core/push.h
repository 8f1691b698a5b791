/* SPDX-License-Identifier: GPL-2.0 */
/* Push: what a queue call does when it has linked its work, and what ends a hold. */
#ifndef FAIRWQ_PUSH_H
#define FAIRWQ_PUSH_H

#include "inbox.h"
#include "types.h"

void fairwq_activate(struct fairwq_batch *batch);
void fairwq_reap(struct fairwq_batch *batch);
void fairwq_arrive(struct fairwq_work *work);
void fairwq_delays_end(struct fairwq_batch *batch);

#endif /* FAIRWQ_PUSH_H */
