/* SPDX-License-Identifier: GPL-2.0 */
/* Delays: the works of a batch that wait for their timer. */
#ifndef FAIRWQ_DELAYS_H
#define FAIRWQ_DELAYS_H

#include "types.h"

void fairwq_delay_begin(struct fairwq_batch *batch, struct fairwq_delayed_work *dwork,
			unsigned long delay);
bool fairwq_delay_stop(struct fairwq_delayed_work *dwork);
void fairwq_delays_timer_fn(struct timer_list *timer);
void fairwq_delays_end(struct fairwq_batch *batch);

#endif /* FAIRWQ_DELAYS_H */
