// SPDX-License-Identifier: GPL-2.0
/*
 * Dumps: "dump" in debugfs, every item that is queued or running, by batch.
 *
 * A line has the batch, the place, the age and the function. Items of a batch
 * come in start order. A backlog can be long and a lock section must be short,
 * so items are copied out a chunk at a time. Between two chunks a cursor keeps
 * the place in the FIFO.
 *
 * Locking: pool->mutex for the runners; pool->lock for one runner or one chunk.
 * Limits: the queue is in motion. An item that runs between two chunks is not
 * shown, and one that is put back is shown twice.
 */
#include <linux/export.h>
#include <linux/math64.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "core/runner.h"
#include "core/testing.h"
#include "doors.h"

struct fairwq_dump_line {
	const char *where;
	fairwq_func_t func;
	u64 stamp;
};

struct fairwq_dump {
	struct fairwq_dump_line line[FAIRWQ_DUMP_CHUNK];
	unsigned int nr;
	struct fairwq_barrier cursor;
};

static void dump_add_locked(struct fairwq_dump *dump, const char *where,
			    fairwq_func_t func, u64 stamp)
{
	if (dump->nr < FAIRWQ_DUMP_CHUNK)
		dump->line[dump->nr++] = (struct fairwq_dump_line){ where, func, stamp };
}

/* Copy what one runner has of @batch. */
static void dump_runner_locked(struct fairwq_dump *dump, struct fairwq_batch *batch,
			       struct fairwq_runner *runner)
{
	const struct fairwq_turn *turn = fairwq_current_turn(runner);

	lockdep_assert_held(&batch->pool->lock);

	if (turn && turn->batch == batch)
		dump_add_locked(dump, "running", READ_ONCE(turn->func),
				READ_ONCE(turn->stamp));
}

/*
 * Copy a chunk, from the cursor on; from the head, if the cursor was overtaken.
 * Return whether there is more.
 */
static bool dump_fifo_locked(struct fairwq_dump *dump, struct fairwq_batch *batch)
{
	struct list_head *pos = &batch->fifo;
	struct fairwq_work *work;

	lockdep_assert_held(&batch->pool->lock);

	if (!dump->cursor.fired) {
		pos = dump->cursor.entry.node.prev;
		list_del(&dump->cursor.entry.node);
	}
	dump->cursor.fired = true;
	work = list_entry(pos, struct fairwq_work, node);
	list_for_each_entry_continue(work, &batch->fifo, node) {
		if (work->place & FAIRWQ_PLACE_BARRIER)
			continue;
		dump_add_locked(dump, "queued", work->func, work->stamp);
		if (dump->nr < FAIRWQ_DUMP_CHUNK)
			continue;
		dump->cursor.entry.place = FAIRWQ_PLACE_BARRIER;
		dump->cursor.fired = false;
		list_add(&dump->cursor.entry.node, &work->node);
		return true;
	}
	return false;
}

static void dump_print(struct seq_file *m, struct fairwq_dump *dump,
		       const struct fairwq_batch *batch, u64 now)
{
	const struct fairwq_dump_line *line;

	for (line = dump->line; line < dump->line + dump->nr; line++) {
		seq_printf(m, "%-24s %-8s ", batch->name, line->where);
		/* Most are not measured; an arrival need not be a time. */
		if (line->stamp && line->stamp < now)
			seq_printf(m, "%9llu", div_u64(now - line->stamp, NSEC_PER_USEC));
		else
			seq_printf(m, "%9s", "-");
		seq_printf(m, " %ps\n", line->func);
	}
	dump->nr = 0;
}

static void dump_runners(struct seq_file *m, struct fairwq_dump *dump,
			 struct fairwq_batch *batch)
{
	struct fairwq_pool *pool = batch->pool;
	struct fairwq_runner *runner;

	lockdep_assert_held(&pool->mutex);

	list_for_each_entry(runner, &pool->runners, node) {
		raw_spin_lock_irq(&pool->lock);
		dump_runner_locked(dump, batch, runner);
		raw_spin_unlock_irq(&pool->lock);
		dump_print(m, dump, batch, fairwq_clock());
	}
}

/* Show the items of a batch, under pool->mutex. */
void fairwq_dump_batch(struct seq_file *m, struct fairwq_batch *batch)
{
	struct fairwq_dump *dump = kzalloc(sizeof(*dump), GFP_KERNEL);
	struct fairwq_pool *pool = batch->pool;
	bool more;

	if (!dump) {
		seq_printf(m, "%-24s out of memory\n", batch->name);
		return;
	}
	fairwq_batch_sort(batch);
	dump_runners(m, dump, batch);
	dump->cursor.fired = true;
	do {
		raw_spin_lock_irq(&pool->lock);
		more = dump_fifo_locked(dump, batch);
		raw_spin_unlock_irq(&pool->lock);
		fairwq_test_point(FAIRWQ_POINT_DUMP_CHUNK, batch);
		dump_print(m, dump, batch, fairwq_clock());
	} while (more);
	kfree(dump);
}

#ifdef FAIRWQ_TESTING
/* Dump a batch to @buf. Return: the length; @size must be larger. */
size_t fairwq_test_dump(struct fairwq_batch *batch, char *buf, size_t size)
{
	struct seq_file m = { .buf = buf, .size = size };

	mutex_lock(&batch->pool->mutex);
	fairwq_dump_batch(&m, batch);
	mutex_unlock(&batch->pool->mutex);
	return m.count;
}
EXPORT_SYMBOL_GPL(fairwq_test_dump);
#endif
