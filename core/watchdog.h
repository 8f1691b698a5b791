/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Watchdog: a pool's timer, which looks at its runners from outside.
 *
 * P: pool->lock.
 */
#ifndef FAIRWQ_WATCHDOG_H
#define FAIRWQ_WATCHDOG_H

#include <linux/timer.h>
#include <linux/types.h>

struct fairwq_pool;

struct fairwq_watch {
	unsigned int hung_ms;		/* p: 0: never report; shown */
	unsigned long hung_reported;	/* P: jiffies of the last report */
	unsigned long full_told;	/* P: began_at of the standstill that was reported last */
	u64 number;			/* P: of the last turn, at the last look */
	u64 quiet;			/* P: the same, if none had begun since one before; or 0 */
	struct timer_list tick;		/* finds items that sleep, take longer, or hang */
};

void fairwq_watchdog_init(struct fairwq_pool *pool);
unsigned int fairwq_full_ms_locked(const struct fairwq_pool *pool);
int fairwq_set_hung_ms(struct fairwq_pool *pool, unsigned int hung_ms);

#endif /* FAIRWQ_WATCHDOG_H */
