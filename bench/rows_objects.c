// SPDX-License-Identifier: GPL-2.0
/*
 * What it takes to give each of N objects an order of its own: the time to set
 * it up and to take it down, and the memory, besides the object. Nothing is
 * queued.
 */
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "bench.h"

/* What lies in the object. */
union order {
	struct fairwq_serializer serializer;
	struct mutex mutex;		/* of items of one object */
	struct workqueue_struct *wq;
};

static unsigned long pages_free(void)
{
	struct sysinfo info;

	si_meminfo(&info);
	return info.freeram;
}

static size_t order_size(const struct bench_side *side)
{
	return side == &bench_serial ? sizeof(struct fairwq_serializer) :
	       side == &bench_mutex ? sizeof(struct mutex) :
	       sizeof(struct workqueue_struct *);
}

static bool order_make(const struct bench_side *side, void *place)
{
	union order *order = place;

	if (side == &bench_serial)
		fairwq_serializer_init(&order->serializer);
	else if (side == &bench_mutex)
		mutex_init(&order->mutex);
	else
		order->wq = alloc_ordered_workqueue("fairwq_bench", 0);
	return side != &bench_wq_ordered || order->wq;
}

static void order_end(const struct bench_side *side, void *place)
{
	union order *order = place;

	if (side == &bench_serial)
		fairwq_serializer_destroy(&order->serializer);
	else if (side == &bench_mutex)
		mutex_destroy(&order->mutex);
	else
		destroy_workqueue(order->wq);
}

/* How many of them there can be, if not all. */
static unsigned int orders_make(const struct bench_side *side, void *orders, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr && order_make(side, orders + i * order_size(side)); i++)
		if (i % BENCH_STRETCH == BENCH_STRETCH - 1)
			cond_resched();
	return i;
}

static void orders_end(const struct bench_side *side, void *orders, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		order_end(side, orders + i * order_size(side));
		if (i % BENCH_STRETCH == BENCH_STRETCH - 1)
			cond_resched();
	}
}

/* The array is touched before, so that its pages are not part of the time. */
int bench_objects(const struct bench_row *row, const struct bench_side *side)
{
	size_t size = order_size(side);
	void *orders = kvcalloc(row->channels, size, GFP_KERNEL);
	unsigned long before = pages_free(), after;
	u64 begin = ktime_get_ns(), made, end;
	unsigned int nr;

	if (!orders)
		return -ENOMEM;
	nr = orders_make(side, orders, row->channels);
	made = ktime_get_ns();
	after = pages_free();
	end = ktime_get_ns();
	orders_end(side, orders, nr);
	bench_say(row, side->name, "ns=%llu destroy_ns=%llu bytes=%lu made=%u",
		  div_u64(made - begin, max(nr, 1U)),
		  div_u64(ktime_get_ns() - end, max(nr, 1U)),
		  size + (before - min(before, after)) * PAGE_SIZE / max(nr, 1U), nr);
	kvfree(orders);
	rcu_barrier();	/* a workqueue goes after a grace period */
	return 0;
}
