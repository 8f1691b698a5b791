/* SPDX-License-Identifier: GPL-2.0 */
/* Streaks: a runner goes on with the items of one serializer. */
#ifndef FAIRWQ_STREAK_H
#define FAIRWQ_STREAK_H

#include "types.h"

struct fairwq_work *fairwq_streak_next(struct fairwq_runner *runner,
				       struct fairwq_constraint *constraint);
bool fairwq_streak_detach(struct fairwq_runner *runner, struct fairwq_constraint *constraint);

#endif /* FAIRWQ_STREAK_H */
