/* SPDX-License-Identifier: GPL-2.0 */
/* FIFO: the queue of a batch, and whether the batch is in the fair tree. */
#ifndef FAIRWQ_FIFO_H
#define FAIRWQ_FIFO_H

#include "types.h"

/* Return the first item of @batch. Its FIFO must not be empty. */
static inline struct fairwq_work *fairwq_head_locked(const struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	return list_first_entry(&batch->fifo, struct fairwq_work, node);
}

/*
 * Return for how long an item with @stamp waits, us. To a tick, if its queue
 * call was not measured.
 */
static inline u64 fairwq_age_us(u64 stamp)
{
	u64 ns = fairwq_stamp_ns(stamp), now = fairwq_clock();

	if (ns)
		return now > ns ? div_u64(now - ns, NSEC_PER_USEC) : 0;
	return (u64)jiffies_to_msecs(jiffies - (unsigned long)(stamp >> 1)) * USEC_PER_MSEC;
}

extern struct workqueue_struct *fairwq_reap_wq, *fairwq_release_wq;

long fairwq_fifo_take_over_locked(struct fairwq_batch *batch, const struct fairwq_work *work);
void fairwq_fifo_update_locked(struct fairwq_batch *batch);
u64 fairwq_fifo_oldest_locked(struct fairwq_batch *batch);
void fairwq_fifo_add_barrier_locked(struct fairwq_batch *batch, struct fairwq_work *barrier);
void fairwq_fifo_append_locked(struct fairwq_batch *batch, struct fairwq_work *work);
void fairwq_fifo_take_locked(struct fairwq_batch *batch, struct fairwq_turn *turn);
void fairwq_fifo_add_part_locked(const struct fairwq_turn *turn, struct fairwq_work *work);
bool fairwq_fifo_has_room_locked(const struct fairwq_batch *batch);
void fairwq_fifo_park_locked(struct fairwq_batch *batch, struct fairwq_work *work);
void fairwq_fifo_put_back_locked(struct fairwq_batch *batch, struct fairwq_work *work);
void fairwq_fifo_detach_locked(struct fairwq_turn *turn);
void fairwq_fifo_settle_locked(struct fairwq_batch *batch, const struct fairwq_charge *charge);
void fairwq_fifo_turn_end_locked(struct fairwq_turn *turn);
void fairwq_fifo_del_part_locked(struct fairwq_batch *batch, struct fairwq_work *work);
void fairwq_fifo_removed_locked(struct fairwq_batch *batch, struct fairwq_work *work);
bool fairwq_fifo_is_idle_locked(const struct fairwq_batch *batch);
void fairwq_fifo_reap_locked(struct fairwq_batch *batch);

#endif /* FAIRWQ_FIFO_H */
