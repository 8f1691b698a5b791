// SPDX-License-Identifier: GPL-2.0
/*
 * Sides: the contenders, each with the same five operations: open, close, init,
 * queue, settle.
 */
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "bench.h"
#include "compat.h"

/* ---- workqueues ------------------------------------------------------- */

static void wq_fn(struct work_struct *work)
{
	bench_run(container_of(work, struct bench_item, work));
}

static void wq_init(struct bench_item *items, unsigned int nr)
{
	for (; nr--; items++)
		INIT_WORK(&items->work, wq_fn);
}

static __always_inline void wq_queue_one(union bench_channel channel, struct bench_item *item)
{
	queue_work(channel.wq, &item->work);
}

static void wq_queue(struct bench_setup *setup, unsigned int at, unsigned int over,
		     struct bench_item *items, unsigned int nr)
{
	bench_rotate(setup, at, over, items, nr, wq_queue_one);
}

static struct workqueue_struct *wq_alloc(struct bench_setup *setup, unsigned int active)
{
	return alloc_workqueue("fairwq_bench", setup->side->flags, active);
}

/* Make one workqueue for all channels. */
static int wq_open(struct bench_setup *setup, unsigned int active)
{
	struct workqueue_struct *wq = wq_alloc(setup, active);
	unsigned int i;

	if (!wq)
		return -ENOMEM;
	for (i = 0; i < setup->nr_channels; i++)
		setup->channel[i].wq = wq;
	return 0;
}

static void wq_close(struct bench_setup *setup)
{
	if (setup->channel[0].wq)
		destroy_workqueue(setup->channel[0].wq);
}

static void wq_settle(struct bench_setup *setup)
{
	flush_workqueue(setup->channel[0].wq);
}

/* Make a workqueue for each channel. */
static int wq_each_open(struct bench_setup *setup, unsigned int active)
{
	unsigned int i;

	for (i = 0; i < setup->nr_channels; i++) {
		setup->channel[i].wq = wq_alloc(setup, active);
		if (!setup->channel[i].wq)
			return -ENOMEM;
	}
	return 0;
}

static void wq_each_close(struct bench_setup *setup)
{
	unsigned int i;

	for (i = 0; i < setup->nr_channels && setup->channel[i].wq; i++)
		destroy_workqueue(setup->channel[i].wq);
}

static void wq_each_settle(struct bench_setup *setup)
{
	unsigned int i;

	for (i = 0; i < setup->nr_channels; i++)
		flush_workqueue(setup->channel[i].wq);
}

/* Make an ordered workqueue for each channel: its items never overlap. */
static int wq_ordered_open(struct bench_setup *setup, unsigned int active)
{
	unsigned int i;

	for (i = 0; i < setup->nr_channels; i++) {
		setup->channel[i].wq = alloc_ordered_workqueue("fairwq_bench", 0);
		if (!setup->channel[i].wq)
			return -ENOMEM;
	}
	return 0;
}

static const struct bench_ops wq_ops = {
	.open = wq_open, .close = wq_close, .init = wq_init, .queue = wq_queue,
	.settle = wq_settle,
};

static const struct bench_ops wq_each_ops = {
	.open = wq_each_open, .close = wq_each_close, .init = wq_init, .queue = wq_queue,
	.settle = wq_each_settle,
};

static const struct bench_ops wq_ordered_ops = {
	.open = wq_ordered_open, .close = wq_each_close, .init = wq_init, .queue = wq_queue,
	.settle = wq_each_settle,
};

/* ---- a list, a lock and one work, as drivers write by hand ------------- */

/* Items that one work runs. None can be cancelled or flushed, and none has a turn. */
struct bench_list {
	spinlock_t lock;		/* of @items */
	struct list_head items;
	struct work_struct work;
	struct workqueue_struct *wq;
};

static void list_fn(struct work_struct *work)
{
	struct bench_list *list = container_of(work, struct bench_list, work);
	struct bench_item *item, *next;
	LIST_HEAD(taken);

	spin_lock_irq(&list->lock);
	list_splice_init(&list->items, &taken);
	spin_unlock_irq(&list->lock);
	list_for_each_entry_safe(item, next, &taken, list_node) {
		bench_run(item);
		cond_resched();
	}
}

static void list_init(struct bench_item *items, unsigned int nr)
{
	for (; nr--; items++)
		INIT_LIST_HEAD(&items->list_node);
}

static __always_inline void list_queue_one(union bench_channel channel, struct bench_item *item)
{
	struct bench_list *list = channel.list;
	unsigned long flags;

	spin_lock_irqsave(&list->lock, flags);
	list_add_tail(&item->list_node, &list->items);
	spin_unlock_irqrestore(&list->lock, flags);
	queue_work(list->wq, &list->work);
}

static void list_queue(struct bench_setup *setup, unsigned int at, unsigned int over,
		       struct bench_item *items, unsigned int nr)
{
	bench_rotate(setup, at, over, items, nr, list_queue_one);
}

/* Make one list for all channels. */
static int list_open(struct bench_setup *setup, unsigned int active)
{
	struct bench_list *list = kzalloc(sizeof(*list), GFP_KERNEL);
	unsigned int i;

	if (!list)
		return -ENOMEM;
	for (i = 0; i < setup->nr_channels; i++)
		setup->channel[i].list = list;
	spin_lock_init(&list->lock);
	INIT_LIST_HEAD(&list->items);
	INIT_WORK(&list->work, list_fn);
	list->wq = wq_alloc(setup, active);
	return list->wq ? 0 : -ENOMEM;
}

static void list_close(struct bench_setup *setup)
{
	struct bench_list *list = setup->channel[0].list;

	if (list && list->wq)
		destroy_workqueue(list->wq);
	kfree(list);
}

static void list_settle(struct bench_setup *setup)
{
	flush_work(&setup->channel[0].list->work);
}

static const struct bench_ops list_ops = {
	.open = list_open, .close = list_close, .init = list_init, .queue = list_queue,
	.settle = list_settle,
};

/* ---- kthread_worker: a thread for each channel ------------------------ */

static void kthread_fn(struct kthread_work *work)
{
	bench_run(container_of(work, struct bench_item, kthread_work));
}

static void kthread_init(struct bench_item *items, unsigned int nr)
{
	for (; nr--; items++)
		kthread_init_work(&items->kthread_work, kthread_fn);
}

static __always_inline void kthread_queue_one(union bench_channel channel,
					      struct bench_item *item)
{
	kthread_queue_work(channel.worker, &item->kthread_work);
}

static void kthread_queue(struct bench_setup *setup, unsigned int at, unsigned int over,
			  struct bench_item *items, unsigned int nr)
{
	bench_rotate(setup, at, over, items, nr, kthread_queue_one);
}

static int kthread_open(struct bench_setup *setup, unsigned int active)
{
	struct kthread_worker *worker;
	unsigned int i;

	for (i = 0; i < setup->nr_channels; i++) {
		worker = kthread_run_worker(0, "bench/%u", i);
		if (IS_ERR(worker))
			return PTR_ERR(worker);
		setup->channel[i].worker = worker;
	}
	return 0;
}

static void kthread_close(struct bench_setup *setup)
{
	unsigned int i;

	for (i = 0; i < setup->nr_channels && setup->channel[i].worker; i++)
		kthread_destroy_worker(setup->channel[i].worker);
}

static void kthread_settle(struct bench_setup *setup)
{
	unsigned int i;

	for (i = 0; i < setup->nr_channels; i++)
		kthread_flush_worker(setup->channel[i].worker);
}

static const struct bench_ops kthread_ops = {
	.open = kthread_open, .close = kthread_close,
	.init = kthread_init, .queue = kthread_queue, .settle = kthread_settle,
};

/* ---- fairwq: a batch for each channel --------------------------------- */

static void fairwq_fn(struct fairwq_work *work)
{
	bench_run(container_of(work, struct bench_item, fairwq_work));
}

static void fairwq_init_items(struct bench_item *items, unsigned int nr)
{
	for (; nr--; items++)
		fairwq_work_init(&items->fairwq_work, fairwq_fn);
}

static __always_inline void fairwq_queue_one(union bench_channel channel,
					     struct bench_item *item)
{
	bench_accepted(fairwq_queue(channel.batch, &item->fairwq_work));
}

static void fairwq_queue_items(struct bench_setup *setup, unsigned int at, unsigned int over,
			       struct bench_item *items, unsigned int nr)
{
	bench_rotate(setup, at, over, items, nr, fairwq_queue_one);
}

static int fairwq_open(struct bench_setup *setup, unsigned int active)
{
	const struct fairwq_pool_attrs attrs = {
		.flags = setup->side->flags,
		.max_active = active,
		/* Without more than @active, the gate holds its runner. */
		.max_in_flight = setup->side->in_flight ?: 1,
		.policy = setup->side->policy,
	};
	struct fairwq_pool *pool = fairwq_pool_create(&attrs, "bench");
	struct fairwq_batch *batch;
	unsigned int i;

	if (IS_ERR(pool))
		return PTR_ERR(pool);
	setup->pool = pool;
	for (i = 0; i < setup->nr_channels; i++) {
		batch = fairwq_batch_create(pool, NULL, "%u", i);
		if (IS_ERR(batch))
			return PTR_ERR(batch);
		setup->channel[i].batch = batch;
	}
	return 0;
}

static void fairwq_close(struct bench_setup *setup)
{
	unsigned int i;

	if (!setup->pool)
		return;
	fairwq_pool_flush(setup->pool);
	for (i = 0; i < setup->nr_channels && setup->channel[i].batch; i++)
		fairwq_batch_dispose(setup->channel[i].batch);
	fairwq_pool_destroy(setup->pool);
}

/* Settle any side that has a pool. */
void bench_pool_settle(struct bench_setup *setup)
{
	fairwq_pool_flush(setup->pool);
}

static const struct bench_ops fairwq_ops = {
	.open = fairwq_open, .close = fairwq_close, .init = fairwq_init_items,
	.queue = fairwq_queue_items, .settle = bench_pool_settle,
};

/* ---- fairwq: a pool for each channel ----------------------------------- */

static int each_open(struct bench_setup *setup, unsigned int active)
{
	unsigned int i;
	int err = 0;

	setup->each = kvcalloc(setup->nr_channels, sizeof(*setup->each), GFP_KERNEL);
	if (!setup->each)
		return -ENOMEM;
	for (i = 0; i < setup->nr_channels && !err; i++) {
		err = bench_open(&setup->each[i], &bench_fairwq, 1, active);
		if (!err)
			setup->channel[i] = setup->each[i].channel[0];
	}
	return err;
}

static void each_close(struct bench_setup *setup)
{
	unsigned int i;

	for (i = 0; i < setup->nr_channels && setup->channel[i].batch; i++)
		bench_close(&setup->each[i]);
	kvfree(setup->each);
}

static void each_settle(struct bench_setup *setup)
{
	unsigned int i;

	for (i = 0; i < setup->nr_channels; i++)
		bench_pool_settle(&setup->each[i]);
}

static const struct bench_ops each_ops = {
	.open = each_open, .close = each_close, .init = fairwq_init_items,
	.queue = fairwq_queue_items, .settle = each_settle,
};

/* ---- all sides -------------------------------------------------------- */

const struct bench_side bench_wq_unbound = {
	.name = "wq_unbound", .ops = &wq_ops, .flags = WQ_UNBOUND,
};

const struct bench_side bench_wq_percpu = {
	.name = "wq_percpu", .ops = &wq_ops, .flags = WQ_PERCPU,
};

const struct bench_side bench_wq_each = {
	.name = "wq_each", .ops = &wq_each_ops, .flags = WQ_UNBOUND,
};

const struct bench_side bench_wq_ordered = {
	.name = "wq_ordered", .ops = &wq_ordered_ops,
};

const struct bench_side bench_list = {
	.name = "list", .ops = &list_ops, .flags = WQ_UNBOUND,
};

const struct bench_side bench_kthread = {
	.name = "kthread", .ops = &kthread_ops,
};

const struct bench_side bench_fairwq = {
	.name = "fairwq", .ops = &fairwq_ops,
};

const struct bench_side bench_fairwq_each = {
	.name = "fairwq_each", .ops = &each_ops,
};

const struct bench_side bench_fairwq_one = {
	.name = "fairwq_one", .ops = &fairwq_ops, .active = 1,
};

const struct bench_side bench_fairwq_time = {
	.name = "fairwq_time", .ops = &fairwq_ops, .policy = FAIRWQ_FAIR_TIME,
};

const struct bench_side bench_fairwq_sleep = {
	.name = "fairwq_sleep", .ops = &fairwq_ops, .in_flight = FAIRWQ_MAX_ACTIVE,
};

/*
 * Open a setup. @active: items that may run at once; 0: the default of the
 * side. Return: 0, or an error; then the setup is closed.
 */
int bench_open(struct bench_setup *setup, const struct bench_side *side,
	       unsigned int nr_channels, unsigned int active)
{
	int err;

	*setup = (struct bench_setup) { .side = side, .nr_channels = nr_channels };
	setup->channel = kvcalloc(nr_channels, sizeof(*setup->channel), GFP_KERNEL);
	if (!setup->channel)
		return -ENOMEM;
	err = side->ops->open(setup, active ?: side->active);
	if (err)
		bench_close(setup);
	return err;
}

/* Wait until all queued items have run, and close the setup. */
void bench_close(struct bench_setup *setup)
{
	setup->side->ops->close(setup);
	kvfree(setup->channel);
}

/* Set the weight of a channel, if the side has weights. */
void bench_set_weight(struct bench_setup *setup, unsigned int channel, unsigned int weight)
{
	if (setup->pool)
		fairwq_batch_set_weight(setup->channel[channel].batch, weight);
}
