// SPDX-License-Identifier: GPL-2.0
/*
 * Turns that go on: an item starts a timer, which ends its turn. Meanwhile the
 * item still holds its batch and its serializer. The checks of streams, flushes
 * and batches would report it if not.
 */
#define pr_fmt(fmt) "fairwq-torture: " fmt

#include <linux/timer.h>

#include "torture.h"

#define TT_NR_ASYNC	64U

/* A turn that goes on after its function, or a free entry. */
struct tt_async {
	struct fairwq_async async;
	struct timer_list timer;
	unsigned long busy;		/* bit 0: in use */
	u32 cost;			/* that the turn reports in the end */
};

static struct tt_async tt_asyncs[TT_NR_ASYNC];

/* End the turn, and free the entry. */
static void tt_async_end(struct tt_async *async)
{
	fairwq_async_complete(&async->async, async->cost);
	clear_bit_unlock(0, &async->busy);
	tt_count(TT_WENT_ON, 1);
}

static void tt_async_timer(struct timer_list *timer)
{
	tt_async_end(container_of(timer, struct tt_async, timer));
}

/* Let the turn of the calling item go on, if an entry is free. */
void tt_go_on(u32 dice)
{
	struct tt_async *async = &tt_asyncs[dice / 16 % TT_NR_ASYNC];

	if (test_and_set_bit_lock(0, &async->busy))
		return;
	if (!fairwq_async_begin(&async->async)) {
		clear_bit_unlock(0, &async->busy);
		return;
	}
	async->cost = dice % 100000;
	if (dice % 4)
		mod_timer(&async->timer, jiffies + dice % 4 - 1);
	else
		tt_async_end(async);
}

void tt_asyncs_init(void)
{
	unsigned int i;

	for (i = 0; i < TT_NR_ASYNC; i++)
		timer_setup(&tt_asyncs[i].timer, tt_async_timer, 0);
}

/* Wait for the timers. All turns have ended, but a timer's function may still return. */
void tt_asyncs_end(void)
{
	unsigned int i;

	for (i = 0; i < TT_NR_ASYNC; i++)
		timer_delete_sync(&tt_asyncs[i].timer);
}
