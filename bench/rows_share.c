// SPDX-License-Identifier: GPL-2.0
/*
 * How long one client waits while others keep the pool busy. Every side gets
 * as many runners as there are CPUs, so that all have the same to share.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/timer.h>

#include "bench.h"

#define BEHIND_GREEDY	20000U
#define BEHIND_MODEST	200U
#define BEHIND_SPIN_NS	2000U

#define QUIET_ITEMS	250U
#define QUIET_EVERY_US	1000U
#define QUIET_SPIN_NS	2000U
#define BUSY_DEPTH	16U	/* items queued to each busy channel at any time */
#define BUSY_SPIN_NS	20000U

/* ---- behind: 200 short items arrive behind 20,000 --------------------- */

static void behind_greedy_fn(struct bench_item *item)
{
	bench_spin(BEHIND_SPIN_NS);
}

static void behind_modest_fn(struct bench_item *item)
{
	bench_spin(BEHIND_SPIN_NS);
	bench_finish_reach(item);
}

/* A share of one half: the others run as many items meanwhile, and no more. */
const struct bench_side bench_ideal = { .name = "ideal" };

static void behind_ideal_thread(void *arg, unsigned int index)
{
	u64 *ns = arg, begin = ktime_get_ns();
	unsigned int i;

	for (i = 0; i < 2 * BEHIND_MODEST; i++)
		behind_greedy_fn(NULL);
	*ns = div_u64(ktime_get_ns() - begin, num_online_cpus());
}

static int behind_ideal(const struct bench_row *row)
{
	u64 ns;
	int err = bench_threads(1, behind_ideal_thread, &ns);

	if (!err)
		bench_say_ns(row, bench_ideal.name, ns, 1);
	return err;
}

/*
 * Every runner is held while the items are queued, the modest ones last. A
 * timer lets them go, when the thread that queued has gone to sleep: else its
 * CPU looks busy to the scheduler, which puts all of them on the other ones,
 * and leaves them there for longer than this takes.
 */
struct bench_behind {
	struct bench_bed bed;
	struct bench_gate *gates;
	struct timer_list start;
	u64 begin;
	u64 ns;
};

static void behind_start(struct timer_list *timer)
{
	struct bench_behind *behind = container_of(timer, struct bench_behind, start);
	unsigned int i;

	behind->begin = ktime_get_ns();
	for (i = 0; i < num_online_cpus(); i++)
		bench_gate_open(&behind->gates[i]);
}

static void behind_thread(void *arg, unsigned int index)
{
	struct bench_behind *behind = arg;
	struct bench_bed *bed = &behind->bed;
	struct bench_item *modest = bench_items + BEHIND_GREEDY;
	unsigned int runners = num_online_cpus(), i;

	bench_init(bed, bench_items, BEHIND_GREEDY + BEHIND_MODEST);
	bench_items_set_fn(bench_items, BEHIND_GREEDY, behind_greedy_fn);
	bench_items_set_fn(modest, BEHIND_MODEST, behind_modest_fn);
	bench_finish_expect(BEHIND_MODEST);
	for (i = 0; i < runners; i++)
		bench_gate_close(bed, &behind->gates[i]);
	bench_queue(bed, 0, 1, bench_items, BEHIND_GREEDY);
	for (i = 0; i < BEHIND_MODEST; i++)
		bench_queue(bed, 1, 2, &modest[i], 1);
	timer_setup(&behind->start, behind_start, 0);
	mod_timer(&behind->start, jiffies + 2);
	behind->ns = bench_finish_wait() - behind->begin;
	timer_delete_sync(&behind->start);
}

int bench_behind(const struct bench_row *row, const struct bench_side *side)
{
	struct bench_behind *behind;
	int err = -ENOMEM;

	if (side == &bench_ideal)
		return behind_ideal(row);
	behind = kzalloc(sizeof(*behind), GFP_KERNEL);
	if (!behind)
		return err;
	behind->gates = kcalloc(num_online_cpus(), sizeof(*behind->gates), GFP_KERNEL);
	if (behind->gates)
		err = bench_open(&behind->bed, side, 2, num_online_cpus());
	if (!err) {
		err = bench_threads(1, behind_thread, behind);
		bench_close(&behind->bed);
	}
	if (!err)
		bench_say_ns(row, side->name, behind->ns, 1);
	kfree(behind->gates);
	kfree(behind);
	return err;
}

/*
 * ---- quiet: a client that asks for little, next to busy ones -------------
 *
 * Channels from 1 on always have BUSY_DEPTH items queued, each of which queues
 * itself again. Channel 0 gets one short item every millisecond; how long each
 * of these waits until it starts is what is measured.
 */

struct bench_busy_item {
	struct bench_item item;
	unsigned int channel;
};

struct bench_quiet_item {
	struct bench_item item;
	u64 queued;
	u64 wait;
};

static struct {
	struct bench_bed bed;
	struct bench_busy_item *busy;
	struct bench_quiet_item *item;
	bool stop;
} quiet;

static void quiet_busy_fn(struct bench_item *item)
{
	struct bench_busy_item *busy = container_of(item, struct bench_busy_item, item);

	bench_spin(BUSY_SPIN_NS);
	if (!READ_ONCE(quiet.stop))
		bench_queue(&quiet.bed, busy->channel, quiet.bed.nr_channels, item, 1);
}

static void quiet_fn(struct bench_item *item)
{
	struct bench_quiet_item *q = container_of(item, struct bench_quiet_item, item);

	q->wait = ktime_get_ns() - q->queued;
	bench_spin(QUIET_SPIN_NS);
	bench_finish_reach(item);
}

static void quiet_start_busy(unsigned int nr_channels)
{
	unsigned int i;

	for (i = 0; i < nr_channels * BUSY_DEPTH; i++) {
		bench_init(&quiet.bed, &quiet.busy[i].item, 1);
		quiet.busy[i].item.fn = quiet_busy_fn;
		quiet.busy[i].channel = 1 + i % nr_channels;
		bench_queue(&quiet.bed, quiet.busy[i].channel, quiet.bed.nr_channels,
			    &quiet.busy[i].item, 1);
	}
}

/* In a class of its own, so that the items come when they are due. */
static void quiet_thread(void *arg, unsigned int index)
{
	struct bench_quiet_item *q = quiet.item;
	unsigned int i;

	sched_set_fifo(current);
	quiet_start_busy(quiet.bed.nr_channels - 1);
	for (i = 0; i < QUIET_ITEMS; i++, q++) {
		usleep_range(QUIET_EVERY_US - 50, QUIET_EVERY_US + 50);
		bench_init(&quiet.bed, &q->item, 1);
		q->item.fn = quiet_fn;
		q->queued = ktime_get_ns();
		bench_queue(&quiet.bed, 0, quiet.bed.nr_channels, &q->item, 1);
	}
	bench_finish_wait();
	WRITE_ONCE(quiet.stop, true);
}

static void quiet_say(const struct bench_row *row, const char *side)
{
	unsigned int i;

	for (i = 0; i < QUIET_ITEMS; i++)
		bench_times[i] = quiet.item[i].wait;
	bench_sort_times(QUIET_ITEMS);
	bench_say(row, side, "p50_ns=%llu p99_ns=%llu max_ns=%llu",
		  bench_percentile(QUIET_ITEMS, 50), bench_percentile(QUIET_ITEMS, 99),
		  bench_percentile(QUIET_ITEMS, 100));
}

static int quiet_measure(const struct bench_row *row, const struct bench_side *side)
{
	int err = bench_open(&quiet.bed, side, 1 + row->channels, num_online_cpus());

	if (err)
		return err;
	quiet.stop = false;
	bench_finish_expect(QUIET_ITEMS);
	err = bench_threads(1, quiet_thread, NULL);
	bench_close(&quiet.bed);
	if (!err)
		quiet_say(row, side->name);
	return err;
}

int bench_quiet(const struct bench_row *row, const struct bench_side *side)
{
	int err = -ENOMEM;

	quiet.busy = kvcalloc(row->channels * BUSY_DEPTH, sizeof(*quiet.busy), GFP_KERNEL);
	quiet.item = kvcalloc(QUIET_ITEMS, sizeof(*quiet.item), GFP_KERNEL);
	if (quiet.busy && quiet.item)
		err = quiet_measure(row, side);
	kvfree(quiet.busy);
	kvfree(quiet.item);
	return err;
}
