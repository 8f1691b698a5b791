/* SPDX-License-Identifier: GPL-2.0 */
/* Bursts: how far a runner goes on with the items of one serializer. */
#ifndef FAIRWQ_BURST_H
#define FAIRWQ_BURST_H

#include "types.h"

bool fairwq_burst_goes_on(struct fairwq_runner *runner,
			  const struct fairwq_serializer *serializer,
			  const struct fairwq_work *work);

#endif /* FAIRWQ_BURST_H */
