// SPDX-License-Identifier: GPL-2.0
/*
 * Rows: the cost of an order of its own for each of N objects. They measure the
 * time to make and to destroy it, and its memory beside the object. No item is
 * queued.
 */
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "bench.h"

/* The part of an object that keeps its order. */
union order {
	struct fairwq_serializer serializer;
	struct mutex mutex;		/* of items of one object */
	struct workqueue_struct *wq;
	struct fairwq_pool *pool;
	struct fairwq_batch *batch;
};

/* The pool of the batches. */
static struct fairwq_pool *order_pool;

static unsigned long pages_free(void)
{
	struct sysinfo info;

	si_meminfo(&info);
	return info.freeram;
}

static bool serializer_make(union order *order)
{
	fairwq_serializer_init(&order->serializer);
	return true;
}

static void serializer_end(union order *order)
{
	fairwq_serializer_destroy(&order->serializer);
}

static bool mutex_make(union order *order)
{
	mutex_init(&order->mutex);
	return true;
}

static void mutex_end(union order *order)
{
	mutex_destroy(&order->mutex);
}

static bool ordered_make(union order *order)
{
	order->wq = alloc_ordered_workqueue("fairwq_bench", 0);
	return order->wq;
}

static bool wq_make(union order *order)
{
	order->wq = alloc_workqueue("fairwq_bench", WQ_UNBOUND, 0);
	return order->wq;
}

static void wq_end(union order *order)
{
	destroy_workqueue(order->wq);
}

/* Make a pool. Each has a name of its own, as the pools of drivers have. */
static bool pool_make(union order *order)
{
	static unsigned int nr;

	order->pool = fairwq_pool_create(NULL, "bench-%u", nr++);
	return !IS_ERR(order->pool);
}

static void pool_end(union order *order)
{
	fairwq_pool_destroy(order->pool);
}

static bool batch_make(union order *order)
{
	order->batch = fairwq_batch_create(order_pool, NULL, "bench");
	return !IS_ERR(order->batch);
}

static void batch_end(union order *order)
{
	fairwq_batch_dispose(order->batch);
}

static const struct order_kind {
	const struct bench_side *side;
	size_t size;
	bool (*make)(union order *order);
	void (*end)(union order *order);
} order_kinds[] = {
	{ &bench_serial, sizeof(struct fairwq_serializer), serializer_make, serializer_end },
	{ &bench_mutex, sizeof(struct mutex), mutex_make, mutex_end },
	{ &bench_wq_ordered, sizeof(void *), ordered_make, wq_end },
	{ &bench_wq_each, sizeof(void *), wq_make, wq_end },
	{ &bench_fairwq_each, sizeof(void *), pool_make, pool_end },
	{ &bench_fairwq, sizeof(void *), batch_make, batch_end },
};

static const struct order_kind *order_kind(const struct bench_side *side)
{
	const struct order_kind *kind = order_kinds;

	while (kind->side != side)
		kind++;
	return kind;
}

/* Make @nr orders. Return: their number, which is less if one could not be made. */
static unsigned int orders_make(const struct order_kind *kind, void *orders, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr && kind->make(orders + i * kind->size); i++)
		if (i % BENCH_STRETCH == BENCH_STRETCH - 1)
			cond_resched();
	return i;
}

static void orders_end(const struct order_kind *kind, void *orders, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		kind->end(orders + i * kind->size);
		if (i % BENCH_STRETCH == BENCH_STRETCH - 1)
			cond_resched();
	}
}

/* Measure one kind. The array must be touched before, so that its pages do not count. */
static void orders_measure(const struct bench_row *row, const struct order_kind *kind,
			   void *orders)
{
	unsigned long before = pages_free(), after;
	u64 begin = ktime_get_ns(), made, end;
	unsigned int nr;

	nr = orders_make(kind, orders, row->channels);
	made = ktime_get_ns();
	after = pages_free();
	end = ktime_get_ns();
	orders_end(kind, orders, nr);
	bench_say(row, kind->side->name, "ns=%llu destroy_ns=%llu bytes=%lu made=%u",
		  div_u64(made - begin, max(nr, 1U)),
		  div_u64(ktime_get_ns() - end, max(nr, 1U)),
		  kind->size + (before - min(before, after)) * PAGE_SIZE / max(nr, 1U), nr);
}

int bench_objects(const struct bench_row *row, const struct bench_side *side)
{
	const struct order_kind *kind = order_kind(side);
	void *orders = kvcalloc(row->channels, kind->size, GFP_KERNEL);
	int err = -ENOMEM;

	order_pool = fairwq_pool_create(NULL, "bench-batches");
	if (orders && !IS_ERR(order_pool)) {
		orders_measure(row, kind, orders);
		err = 0;
	}
	if (!IS_ERR(order_pool))
		fairwq_pool_destroy(order_pool);
	kvfree(orders);
	rcu_barrier();	/* a workqueue is freed after a grace period */
	return err;
}
