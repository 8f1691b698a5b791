/* SPDX-License-Identifier: GPL-2.0 */
/* Parking: one work never runs twice at once. */
#ifndef FAIRWQ_PARK_H
#define FAIRWQ_PARK_H

#include "types.h"

/* Check whether a work ran last on another runner than @id. */
static inline bool fairwq_park_ran_elsewhere(const struct fairwq_work *work, u32 id)
{
	u32 last = READ_ONCE(work->last_runner);

	return unlikely(last && last != id);
}

bool fairwq_park_locked(struct fairwq_runner *runner, struct fairwq_batch *batch);
bool fairwq_park_runs_elsewhere(const struct fairwq_work *work, u32 id);
void fairwq_unpark(struct fairwq_runner *runner);
void fairwq_unpark_work_locked(struct fairwq_batch *batch, struct fairwq_work *work);
void fairwq_unpark_batch_locked(struct fairwq_batch *batch);

#endif /* FAIRWQ_PARK_H */
