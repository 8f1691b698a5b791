// SPDX-License-Identifier: GPL-2.0
/*
 * Dumps: "dump" in debugfs, every item that is queued or running, by batch.
 *
 * A line has the batch, the place, the age and the function. Items of a batch
 * come in start order. A backlog can be long and a lock section must be short,
 * so items are shown a chunk at a time. Between two chunks a cursor keeps the
 * place in the FIFO.
 *
 * Locking: pool->mutex so that no runner goes; pool->lock for one runner or one
 * chunk.
 * Limits: the queue is in motion. An item that runs between two chunks is not
 * shown, and one that is put back is shown twice.
 */
#include <linux/export.h>
#include <linux/rculist.h>
#include <linux/seq_file.h>

#include "core/fifo.h"
#include "core/inbox.h"
#include "core/runner.h"
#include "core/testing.h"
#include "doors.h"

static void dump_item(struct seq_file *m, const struct fairwq_batch *batch,
		      const char *where, fairwq_func_t func, u64 stamp)
{
	seq_printf(m, "%-24s %-8s ", batch->name, where);
	/* Parts of items have no stamp, and most that run. */
	if (stamp)
		seq_printf(m, "%9llu", fairwq_age_us(stamp));
	else
		seq_printf(m, "%9s", "-");
	seq_printf(m, " %ps\n", func);
}

/*
 * Show a chunk, from the cursor on; from the head, if the cursor was overtaken.
 * Return whether there is more.
 */
static bool dump_fifo(struct seq_file *m, struct fairwq_batch *batch,
		      struct fairwq_barrier *cursor)
{
	struct list_head *pos = &batch->fifo;
	struct fairwq_work *work;
	unsigned int nr = 0;

	guard(raw_spinlock_irq)(&batch->pool->lock);
	if (!cursor->fired) {
		pos = cursor->entry.node.prev;
		list_del(&cursor->entry.node);
	}
	cursor->fired = true;
	work = list_entry(pos, struct fairwq_work, node);
	list_for_each_entry_continue(work, &batch->fifo, node) {
		if (work->flags & FAIRWQ_WORK_BARRIER)
			continue;
		dump_item(m, batch, "queued", fairwq_shown_func(work), work->stamp);
		if (++nr < FAIRWQ_DUMP_CHUNK)
			continue;
		cursor->fired = false;
		list_add(&cursor->entry.node, &work->node);
		return true;
	}
	return false;
}

/* Show the items of a batch, under pool->mutex. */
void fairwq_dump_batch(struct seq_file *m, struct fairwq_batch *batch)
{
	struct fairwq_barrier cursor = { .entry.flags = FAIRWQ_WORK_BARRIER, .fired = true };
	struct fairwq_pool *pool = batch->pool;
	const struct fairwq_turn *turn;
	struct fairwq_runner *runner;
	bool more;
	u64 stamp;

	lockdep_assert_held(&pool->mutex);

	if (fairwq_batch_is_idle(batch))
		return;
	scoped_guard(raw_spinlock_irq, &pool->lock)
		fairwq_fifo_take_over_locked(batch, NULL);
	list_for_each_entry_rcu(runner, &pool->crew.runners, node, lockdep_is_held(&pool->mutex)) {
		guard(raw_spinlock_irq)(&pool->lock);
		turn = fairwq_runner_turn(runner);
		if (!turn || turn->batch != batch)
			continue;
		stamp = READ_ONCE(turn->stamp);
		dump_item(m, batch, "running", READ_ONCE(turn->func),
			  stamp ? FAIRWQ_STAMP_NS(stamp) : 0);
	}
	do {
		more = dump_fifo(m, batch, &cursor);
		fairwq_test_point(FAIRWQ_POINT_DUMP_CHUNK, batch);
	} while (more);
}

FAIRWQ_TEST_EXPORT(fairwq_dump_batch);
