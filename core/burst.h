/* SPDX-License-Identifier: GPL-2.0 */
/* Bursts: a runner goes on with the items of one serializer. */
#ifndef FAIRWQ_BURST_H
#define FAIRWQ_BURST_H

#include "types.h"

struct fairwq_work *fairwq_burst_next(struct fairwq_runner *runner,
				      struct fairwq_serializer *serializer);
bool fairwq_burst_detach(struct fairwq_runner *runner, struct fairwq_serializer *serializer);

#endif /* FAIRWQ_BURST_H */
