/* SPDX-License-Identifier: GPL-2.0 */
/* Watchdog: a pool's timer, which looks at its runners from outside. */
#ifndef FAIRWQ_WATCHDOG_H
#define FAIRWQ_WATCHDOG_H

#include "types.h"

void fairwq_watchdog_init(struct fairwq_pool *pool);
int fairwq_set_hung_ms(struct fairwq_pool *pool, unsigned int hung_ms);

#endif /* FAIRWQ_WATCHDOG_H */
