// SPDX-License-Identifier: GPL-2.0
/*
 * What a test reads and sets in the engine, see look.h.
 */
#include <linux/export.h>
#include <linux/seq_file.h>
#include <linux/workqueue.h>

#include "look.h"

unsigned int mock_nr_batches(struct fairwq_pool *pool)
{
	return READ_ONCE(pool->nr_batches);
}
EXPORT_SYMBOL_GPL(mock_nr_batches);

unsigned int mock_nr_eligible(struct fairwq_pool *pool)
{
	struct fairwq_batch *batch;
	unsigned int nr = 0;

	raw_spin_lock_irq(&pool->lock);
	list_for_each_entry(batch, &pool->batches, link)
		nr += fairwq_node_eligible(&batch->node);
	raw_spin_unlock_irq(&pool->lock);
	return nr;
}
EXPORT_SYMBOL_GPL(mock_nr_eligible);

u64 mock_counter(struct fairwq_pool *pool, enum fairwq_counter which)
{
	u64 value;

	raw_spin_lock_irq(&pool->lock);
	value = pool->counter[which];
	raw_spin_unlock_irq(&pool->lock);
	return value;
}
EXPORT_SYMBOL_GPL(mock_counter);

/* Let one worker do what the module itself has to do, as if memory was short. */
void mock_one_reaper(bool one)
{
	workqueue_set_max_active(fairwq_reap_wq, one ? 1 : WQ_DFL_ACTIVE);
}
EXPORT_SYMBOL_GPL(mock_one_reaper);

/* Look at the runners now, and not when the timer is due. */
void mock_tick(struct fairwq_pool *pool)
{
	pool->tick.function(&pool->tick);
}
EXPORT_SYMBOL_GPL(mock_tick);

/* Look at a batch as a reader of debugfs does. */
void mock_look(struct fairwq_batch *batch)
{
	rcu_read_lock();
	fairwq_batch_sort(batch);
	rcu_read_unlock();
}
EXPORT_SYMBOL_GPL(mock_look);

/* Dump a batch to @buf. Return: the length; @size must be larger. */
size_t mock_dump(struct fairwq_batch *batch, char *buf, size_t size)
{
	struct seq_file m = { .buf = buf, .size = size };

	mutex_lock(&batch->pool->mutex);
	fairwq_dump_batch(&m, batch);
	mutex_unlock(&batch->pool->mutex);
	return m.count;
}
EXPORT_SYMBOL_GPL(mock_dump);

/* Let the turns of @batch look as if they had always taken @ns. */
void mock_set_guess(struct fairwq_batch *batch, unsigned long ns)
{
	raw_spin_lock_irq(&batch->pool->lock);
	ewma_fairwq_run_init(&batch->stats->run_avg);
	ewma_fairwq_run_add(&batch->stats->run_avg, ns);
	batch->quick = ns < FAIRWQ_QUICK_NS;
	batch->stats->longest[0] = ns;
	batch->stats->longest[1] = 0;
	raw_spin_unlock_irq(&batch->pool->lock);
}
EXPORT_SYMBOL_GPL(mock_set_guess);

/* Check whether a CPU waits for the lock of @limiter, if that kind of lock can tell. */
bool mock_limiter_wanted(struct fairwq_limiter *limiter)
{
	return raw_spin_is_contended(fairwq_constraint_lock(&limiter->constraint));
}
EXPORT_SYMBOL_GPL(mock_limiter_wanted);
