// SPDX-License-Identifier: GPL-2.0
/*
 * Look: access of a test to state of the engine; see look.h.
 */
#include <linux/export.h>
#include <linux/seq_file.h>
#include <linux/workqueue.h>

#include "look.h"

unsigned int mock_nr_batches(struct fairwq_pool *pool)
{
	return READ_ONCE(pool->registry.nr_batches);
}
EXPORT_SYMBOL_GPL(mock_nr_batches);

/* Return the number of batches of @pool that may get turns. */
unsigned int mock_nr_eligible(struct fairwq_pool *pool)
{
	struct fairwq_batch *batch;
	unsigned int nr = 0;

	raw_spin_lock_irq(&pool->lock);
	list_for_each_entry(batch, &pool->registry.batches, link)
		nr += fairwq_node_eligible(&batch->node);
	raw_spin_unlock_irq(&pool->lock);
	return nr;
}
EXPORT_SYMBOL_GPL(mock_nr_eligible);

u64 mock_counter(struct fairwq_pool *pool, enum fairwq_counter which)
{
	u64 value;

	raw_spin_lock_irq(&pool->lock);
	value = pool->tally.counter[which];
	raw_spin_unlock_irq(&pool->lock);
	return value;
}
EXPORT_SYMBOL_GPL(mock_counter);

/* Return the number of items that the runners of @pool have taken. */
u64 mock_nr_turns(struct fairwq_pool *pool)
{
	u64 nr;

	raw_spin_lock_irq(&pool->lock);
	nr = pool->crew.nr_taken;
	raw_spin_unlock_irq(&pool->lock);
	return nr;
}
EXPORT_SYMBOL_GPL(mock_nr_turns);

/* Limit the module's own workqueue to one worker, as if memory was short. */
void mock_one_reaper(bool one)
{
	workqueue_set_max_active(fairwq_reap_wq, one ? 1 : WQ_DFL_ACTIVE);
}
EXPORT_SYMBOL_GPL(mock_one_reaper);

/* Run the watchdog of @pool now, instead of when its timer is due. */
void mock_tick(struct fairwq_pool *pool)
{
	pool->watch.tick.function(&pool->watch.tick);
}
EXPORT_SYMBOL_GPL(mock_tick);

static void no_tick(struct timer_list *timer)
{
}

/*
 * Let the timer of @pool do nothing from here on. Else a kick that was lost, or
 * a seat that was not given back, would be made up for at the next tick.
 */
void mock_no_ticks(struct fairwq_pool *pool)
{
	WRITE_ONCE(pool->watch.tick.function, no_tick);
	timer_delete_sync(&pool->watch.tick);
}
EXPORT_SYMBOL_GPL(mock_no_ticks);

/* Dump @batch to @buf. @size must be larger than the text. Return: the length. */
size_t mock_dump(struct fairwq_batch *batch, char *buf, size_t size)
{
	struct seq_file m = { .buf = buf, .size = size };

	fairwq_dump_batch(&m, batch);
	return m.count;
}
EXPORT_SYMBOL_GPL(mock_dump);

/* Print the row of @batch to @buf. @size must be larger than the text. */
void mock_row(struct fairwq_batch *batch, char *buf, size_t size)
{
	struct seq_file m = { .buf = buf, .size = size };

	fairwq_show_row(&m, batch);
	buf[min(m.count, size - 1)] = '\0';
}
EXPORT_SYMBOL_GPL(mock_row);

/* Set the counters of @pool to 0, as the knob "reset" does. */
void mock_reset(struct fairwq_pool *pool)
{
	fairwq_pool_reset_stats(pool, 1);
}
EXPORT_SYMBOL_GPL(mock_reset);

/* Count that @batch had @part of @whole, in what its policy counts. */
void mock_set_share(struct fairwq_batch *batch, u64 part, u64 whole)
{
	struct fairwq_pool *pool = batch->pool;
	unsigned int i;

	raw_spin_lock_irq(&pool->lock);
	batch->node.service = part;
	for (i = 0; i < FAIRWQ_NR_RANKS; i++)
		pool->tree.rank[i].service = i ? 0 : whole;
	raw_spin_unlock_irq(&pool->lock);
}
EXPORT_SYMBOL_GPL(mock_set_share);

/* Set the history of @batch, as if each of its turns had taken @ns. */
void mock_set_guess(struct fairwq_batch *batch, unsigned long ns)
{
	raw_spin_lock_irq(&batch->pool->lock);
	ewma_fairwq_run_init(&batch->stats->run_avg);
	ewma_fairwq_run_add(&batch->stats->run_avg, ns);
	batch->quick = ns < FAIRWQ_QUICK_NS;
	batch->stats->recent.longest[0] = ns;
	batch->stats->recent.longest[1] = 0;
	raw_spin_unlock_irq(&batch->pool->lock);
}
EXPORT_SYMBOL_GPL(mock_set_guess);

/*
 * Let a runner settle the turn of @batch that it ends. A flush may return
 * before that, while the runner still holds the lock.
 */
void mock_let_settle(struct fairwq_batch *batch)
{
	raw_spin_lock_irq(&batch->pool->lock);
	raw_spin_unlock_irq(&batch->pool->lock);
}
EXPORT_SYMBOL_GPL(mock_let_settle);

/*
 * Check whether a CPU waits for the lock of @limiter. Some kinds of lock cannot
 * tell, and then the answer is false.
 */
bool mock_limiter_wanted(struct fairwq_serializer *limiter)
{
	return raw_spin_is_contended(fairwq_serializer_lock(limiter));
}
EXPORT_SYMBOL_GPL(mock_limiter_wanted);
