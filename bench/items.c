// SPDX-License-Identifier: GPL-2.0
/*
 * Items: empty items, items that spin, and a gate that holds a runner. The
 * finish notes the time when the last of the items that it expects has run.
 *
 * There is one array of items and one finish, because only one sample is taken
 * at a time.
 */
#include <linux/cpumask.h>
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "bench.h"

struct bench_item *bench_items;
u64 *bench_times;

static struct {
	atomic_t left;
	struct completion reached;
	u64 when;
} bench_finish;

DEFINE_PER_CPU(unsigned long, bench_queued);

/* Return the number of items that all CPUs have queued. */
u64 bench_items_queued(void)
{
	unsigned int cpu;
	u64 sum = 0;

	for_each_possible_cpu(cpu)
		sum += per_cpu(bench_queued, cpu);
	return sum;
}

int bench_items_alloc(void)
{
	bench_items = vzalloc(array_size(BENCH_ITEMS, sizeof(*bench_items)));
	bench_times = vzalloc(array_size(BENCH_ITEMS, sizeof(*bench_times)));
	if (bench_items && bench_times)
		return 0;
	bench_items_free();
	return -ENOMEM;
}

void bench_items_free(void)
{
	vfree(bench_items);
	vfree(bench_times);
}

void bench_items_set_fn(struct bench_item *items, unsigned int nr,
			void (*fn)(struct bench_item *item))
{
	for (; nr--; items++)
		items->fn = fn;
}

/* Keep the CPU busy for @ns. */
void bench_spin(u64 ns)
{
	u64 end = ktime_get_ns() + ns;

	while (ktime_get_ns() < end)
		cpu_relax();
}

/* Tell that a runner is at the gate, and hold it until the gate opens. */
static void bench_gate_fn(struct bench_item *item)
{
	struct bench_gate *gate = container_of(item, struct bench_gate, item);

	complete(&gate->entered);
	wait_for_completion(&gate->open);
}

/*
 * Hold one runner of channel 0 at @gate. The caller may free @gate only after
 * it has closed the setup. Until then the item may still run, although the gate
 * is open.
 */
void bench_gate_close(struct bench_setup *setup, struct bench_gate *gate)
{
	bench_init(setup, &gate->item, 1);
	gate->item.fn = bench_gate_fn;
	init_completion(&gate->entered);
	init_completion(&gate->open);
	bench_queue(setup, 0, 1, &gate->item, 1);
	wait_for_completion(&gate->entered);
}

void bench_gate_open(struct bench_gate *gate)
{
	complete(&gate->open);
}

/* Begin to wait for @nr items that call bench_finish_reach(). */
void bench_finish_expect(unsigned int nr)
{
	atomic_set(&bench_finish.left, nr);
	init_completion(&bench_finish.reached);
}

/* Note that an expected item has run. It may also be the function of that item. */
void bench_finish_reach(struct bench_item *item)
{
	if (!atomic_dec_and_test(&bench_finish.left))
		return;
	bench_finish.when = ktime_get_ns();
	complete(&bench_finish.reached);
}

/* Wait for the last expected item. Return: the time when it ran, ns. */
u64 bench_finish_wait(void)
{
	wait_for_completion(&bench_finish.reached);
	return bench_finish.when;
}
