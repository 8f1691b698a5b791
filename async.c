// SPDX-License-Identifier: GPL-2.0
/*
 * Turns that outlive their function: an item starts something that ends later,
 * such as I/O, and its turn ends with that.
 *
 *   State        async->runner  entered by                   left by
 *   -----------  -------------  ---------------------------  -------------------------
 *   running      its runner     fairwq_async_begin()         the return of the function
 *   alone        NULL           detach_turn() in             fairwq_async_complete()
 *                               core/run.c
 *
 * Whichever of the return and fairwq_async_complete() comes second ends the
 * turn. If that is the return, the turn ends as any other, and async->batch was
 * NULL before.
 *
 * Locking: pool->lock for both states.
 * Invariant: a turn that is alone is in flight for its batch, and counted in
 * pool->crew.nr_async; no runner knows of it.
 * Invariant: a turn is settled once, when it ends, because the tree counts
 * those that are charged and not settled.
 * Invariant: when a turn begins, runners that are active or asleep, and turns
 * that are alone, are no more than max_async together, because each of these
 * runners may leave one turn alone.
 * Invariant: after fairwq_async_complete() has returned, async is not touched.
 *
 * Limits: fairwq_work_flush() and fairwq_work_cancel_sync() look for a work
 * that is queued, or whose function runs. They do not see a turn that is alone.
 */
#include <linux/export.h>
#include <linux/minmax.h>

#include "core/fifo.h"
#include "core/policy.h"
#include "core/runner.h"
#include "core/seat.h"
#include "core/waitlist.h"
#include "doors.h"

bool fairwq_async_begin(struct fairwq_async *async)
{
	struct fairwq_runner *runner = fairwq_runner_current();

	if (WARN_ON_ONCE(runner && runner->turn.async == async))
		return false;
	async->batch = NULL;
	if (!runner || !runner->turn.batch || runner->origin || runner->turn.async)
		return false;
	async->batch = runner->turn.batch;
	async->runner = runner;
	WRITE_ONCE(runner->turn.async, async);
	return true;
}
EXPORT_SYMBOL_GPL(fairwq_async_begin);

void fairwq_async_complete(struct fairwq_async *async, u64 cost_ns)
{
	struct fairwq_batch *batch = async->batch;
	struct fairwq_serializer *serializer;
	struct fairwq_runner *runner;
	struct fairwq_charge charge;

	if (!batch)
		return;
	async->batch = NULL;
	/* What a turn can cost at most: see policy.c. Sums of it must not wrap. */
	cost_ns = min(cost_ns, FAIRWQ_COST_MAX_NS);
	scoped_guard(raw_spinlock_irqsave, &batch->pool->lock) {
		runner = async->runner;
		if (runner) {		/* the function still runs: the runner ends the turn */
			WRITE_ONCE(runner->turn.async, NULL);
			runner->turn.later += cost_ns;	/* of a burst each item may have one */
			return;
		}
		charge = async->charge;
		serializer = async->serializer;
	}
	/* @async may be gone when those who wait for the turn are told. */
	if (serializer)
		fairwq_waitlist_complete(serializer);
	guard(fairwq_kick)(batch->pool);
	batch->pool->crew.nr_async--;
	fairwq_seat_update_locked(batch->pool);
	charge.took += cost_ns;
	fairwq_fifo_settle_locked(batch, &charge);
}
EXPORT_SYMBOL_GPL(fairwq_async_complete);
