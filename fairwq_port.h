/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fairwq for drivers that come from workqueues: queue calls with the names of
 * workqueue calls, which return what those return.
 *
 * A queue call of fairwq.h returns an int, because it may be refused. These
 * return a bool, which the caller may ignore. So they are for callers that know
 * that no refusal can come, or for which it is an accident:
 *
 *   refused because                        these return  and print
 *   -------------------------------------  ------------  ---------------------
 *   the work is disabled                   false         nothing, as with
 *                                                        queue_work()
 *   an argument is bad                     false         a line, once for each
 *                                                        kind
 *   the batch was disposed or is full, or  false         a line, not too often
 *   the pool is drained or destroyed
 *
 * A refused item does not run. A batch refuses nothing if it has no max_queued and
 * is disposed after its last queue call. Nor does a default batch before the end of
 * its pool. A caller that must know of refusals uses the call in fairwq.h.
 *
 * Documentation/migration.rst has the namesakes of the other workqueue calls.
 */
#ifndef FAIRWQ_PORT_H
#define FAIRWQ_PORT_H

#include "fairwq.h"

void __fairwq_refused(const struct fairwq_batch *batch, const struct fairwq_work *work,
		      int err);

/* Tell of a refusal. Return: whether @ret is 1. */
static inline bool __fairwq_is_one(const struct fairwq_batch *batch,
				   const struct fairwq_work *work, int ret)
{
	if (unlikely(ret < 0))
		__fairwq_refused(batch, work, ret);
	return ret > 0;
}

/**
 * fairwq_queue_work - queue a work to a batch, as queue_work() does
 * @batch: the batch, see fairwq_queue()
 * @work: the work, set up by fairwq_work_init()
 *
 * Context: Any but NMI. Does not sleep, allocates nothing.
 * Return: true if @work was queued; false if it was pending already, or was
 * refused.
 */
static inline bool fairwq_queue_work(struct fairwq_batch *batch, struct fairwq_work *work)
{
	return __fairwq_is_one(batch, work, fairwq_queue(batch, work));
}

/**
 * fairwq_schedule_work - queue a work to a pool, as schedule_work() does
 * @pool: the pool. Its default batch of NORMAL priority takes the work
 * @work: the work, set up by fairwq_work_init()
 *
 * Context: Any but NMI. Does not sleep, allocates nothing.
 * Return: true if @work was queued; false if it was pending already, or was
 * refused.
 */
static inline bool fairwq_schedule_work(struct fairwq_pool *pool, struct fairwq_work *work)
{
	return fairwq_queue_work(fairwq_pool_default_batch(pool, FAIRWQ_PRIO_NORMAL), work);
}

/**
 * fairwq_queue_delayed_work - queue a work after a delay, as queue_delayed_work() does
 * @batch: the batch, see fairwq_queue_delayed()
 * @dwork: the work, set up by fairwq_delayed_work_init()
 * @delay: the delay, in jiffies; 0 to queue it at once
 *
 * Context: Any but NMI. Does not sleep, allocates nothing.
 * Return: true if @dwork was queued; false if it was pending already, or was
 * refused.
 */
static inline bool fairwq_queue_delayed_work(struct fairwq_batch *batch,
					     struct fairwq_delayed_work *dwork,
					     unsigned long delay)
{
	return __fairwq_is_one(batch, &dwork->work, fairwq_queue_delayed(batch, dwork, delay));
}

/**
 * fairwq_schedule_delayed_work - queue a work to a pool, as schedule_delayed_work() does
 * @pool: the pool. Its default batch of NORMAL priority takes the work
 * @dwork: the work, set up by fairwq_delayed_work_init()
 * @delay: the delay, in jiffies; 0 to queue it at once
 *
 * Context: Any but NMI. Does not sleep, allocates nothing.
 * Return: true if @dwork was queued; false if it was pending already, or was
 * refused.
 */
static inline bool fairwq_schedule_delayed_work(struct fairwq_pool *pool,
						struct fairwq_delayed_work *dwork,
						unsigned long delay)
{
	return fairwq_queue_delayed_work(fairwq_pool_default_batch(pool, FAIRWQ_PRIO_NORMAL),
					 dwork, delay);
}

/**
 * fairwq_mod_delayed_work - change a delay, or queue the work, as mod_delayed_work() does
 * @batch: the batch, see fairwq_mod_delayed()
 * @dwork: the work, set up by fairwq_delayed_work_init()
 * @delay: the delay from now on, in jiffies; 0 to queue it at once
 *
 * Context: Any but NMI. Does not sleep, allocates nothing.
 * Return: true if @dwork was pending and its delay was changed; false if it was
 * idle and was queued now, or was refused.
 */
static inline bool fairwq_mod_delayed_work(struct fairwq_batch *batch,
					   struct fairwq_delayed_work *dwork,
					   unsigned long delay)
{
	return __fairwq_is_one(batch, &dwork->work, fairwq_mod_delayed(batch, dwork, delay));
}

/**
 * fairwq_queue_rcu_work - queue a work after a grace period, as queue_rcu_work() does
 * @batch: the batch, see fairwq_queue_rcu()
 * @rwork: the work, set up by fairwq_rcu_work_init()
 *
 * Context: Any but NMI. Does not sleep, allocates nothing.
 * Return: true if @rwork was queued; false if it was pending already, or was
 * refused.
 */
static inline bool fairwq_queue_rcu_work(struct fairwq_batch *batch,
					 struct fairwq_rcu_work *rwork)
{
	return __fairwq_is_one(batch, &rwork->work, fairwq_queue_rcu(batch, rwork));
}

/**
 * fairwq_enable_and_queue_work - undo a disable, as enable_and_queue_work() does
 * @batch: the batch, see fairwq_enable_and_queue()
 * @work: the work
 *
 * Context: Any but NMI. Does not sleep, allocates nothing.
 * Return: true if @work is enabled and pending; false if it is still disabled,
 * or was refused.
 */
static inline bool fairwq_enable_and_queue_work(struct fairwq_batch *batch,
						struct fairwq_work *work)
{
	int ret = fairwq_enable_and_queue(batch, work);

	__fairwq_is_one(batch, work, ret);
	return ret >= 0;
}

#endif /* FAIRWQ_PORT_H */
