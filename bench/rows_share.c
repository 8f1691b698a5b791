// SPDX-License-Identifier: GPL-2.0
/*
 * Rows: the shares of the clients of one pool. They measure how long a client
 * waits while others keep the pool busy, and how the time of the pool is
 * divided. Every side has a runner for each CPU, so that all sides have the
 * same to share.
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

#define TIME_CLIENTS	3U	/* at most */
#define TIME_DEPTH	64U	/* items queued to each at any time */
#define TIME_WARM_MS	50U
#define TIME_WINDOW_MS	1000U

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

/* The ideal share of one half: the other client runs just as many items meanwhile. */
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
 * A sample of behind. Every runner is held while the items are queued, the
 * modest ones last. A timer opens the gates when the thread that queued sleeps.
 * Otherwise its CPU looks busy to the scheduler. Then the scheduler puts all
 * runners on the other CPUs, and leaves them there for longer than the sample
 * takes. The timer takes some ticks, because the scheduler also looks for no
 * idle CPU where the load was high just now.
 */
struct bench_behind {
	struct bench_setup setup;
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
	struct bench_setup *setup = &behind->setup;
	struct bench_item *modest = bench_items + BEHIND_GREEDY;
	unsigned int runners = num_online_cpus(), i;

	bench_init(setup, bench_items, BEHIND_GREEDY + BEHIND_MODEST);
	bench_items_set_fn(bench_items, BEHIND_GREEDY, behind_greedy_fn);
	bench_items_set_fn(modest, BEHIND_MODEST, behind_modest_fn);
	bench_finish_expect(BEHIND_MODEST);
	for (i = 0; i < runners; i++)
		bench_gate_close(setup, &behind->gates[i]);
	bench_queue(setup, 0, 1, bench_items, BEHIND_GREEDY);
	for (i = 0; i < BEHIND_MODEST; i++)
		bench_queue(setup, 1, 2, &modest[i], 1);
	timer_setup(&behind->start, behind_start, 0);
	mod_timer(&behind->start, jiffies + HZ / 16);
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
		err = bench_open(&behind->setup, side, 2, num_online_cpus());
	if (!err) {
		err = bench_threads(1, behind_thread, behind);
		bench_close(&behind->setup);
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
 * itself again. Channel 0 gets one short item every millisecond. The result is
 * the time that each of these waits until it starts.
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
	struct bench_setup setup;
	struct bench_busy_item *busy;
	struct bench_quiet_item *item;
	bool stop;
} quiet;

static void quiet_busy_fn(struct bench_item *item)
{
	struct bench_busy_item *busy = container_of(item, struct bench_busy_item, item);

	bench_spin(BUSY_SPIN_NS);
	if (!READ_ONCE(quiet.stop))
		bench_queue(&quiet.setup, busy->channel, quiet.setup.nr_channels, item, 1);
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
		bench_init(&quiet.setup, &quiet.busy[i].item, 1);
		quiet.busy[i].item.fn = quiet_busy_fn;
		quiet.busy[i].channel = 1 + i % nr_channels;
		bench_queue(&quiet.setup, quiet.busy[i].channel, quiet.setup.nr_channels,
			    &quiet.busy[i].item, 1);
	}
}

/* Queue the short items. The thread is a real-time one, so that they come in time. */
static void quiet_thread(void *arg, unsigned int index)
{
	struct bench_quiet_item *q = quiet.item;
	unsigned int i;

	sched_set_fifo(current);
	quiet_start_busy(quiet.setup.nr_channels - 1);
	for (i = 0; i < QUIET_ITEMS; i++, q++) {
		usleep_range(QUIET_EVERY_US - 50, QUIET_EVERY_US + 50);
		bench_init(&quiet.setup, &q->item, 1);
		q->item.fn = quiet_fn;
		q->queued = ktime_get_ns();
		bench_queue(&quiet.setup, 0, quiet.setup.nr_channels, &q->item, 1);
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
	int err = bench_open(&quiet.setup, side, 1 + row->channels, num_online_cpus());

	if (err)
		return err;
	quiet.stop = false;
	bench_finish_expect(QUIET_ITEMS);
	err = bench_threads(1, quiet_thread, NULL);
	bench_close(&quiet.setup);
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

/*
 * ---- time_fair: shares of the time of the runners ------------------------
 *
 * Each client always has TIME_DEPTH items queued, so that it is always
 * eligible. Its service is the run time of its items, by their own clock.
 */
struct time_client {
	unsigned int weight;
	u64 spin_ns;
};

static struct {
	struct bench_setup setup;
	struct bench_busy_item *item;
	const struct time_client *client;
	unsigned int nr;
	atomic64_t ran[TIME_CLIENTS];	/* ns */
	bool stop;
} shared;

static void time_fn(struct bench_item *item)
{
	struct bench_busy_item *busy = container_of(item, struct bench_busy_item, item);
	unsigned int i = busy->channel;
	u64 begin = ktime_get_ns();

	bench_spin(shared.client[i].spin_ns);
	if (!READ_ONCE(shared.stop))
		bench_queue(&shared.setup, i, shared.nr, item, 1);
	atomic64_add(ktime_get_ns() - begin, &shared.ran[i]);
}

static void time_start(void)
{
	struct bench_busy_item *busy = shared.item;
	unsigned int i;

	for (i = 0; i < shared.nr; i++)
		atomic64_set(&shared.ran[i], 0);
	for (i = 0; i < shared.nr * TIME_DEPTH; i++, busy++) {
		bench_init(&shared.setup, &busy->item, 1);
		busy->item.fn = time_fn;
		busy->channel = i % shared.nr;
		bench_queue(&shared.setup, busy->channel, shared.nr, &busy->item, 1);
	}
}

/* Measure the service of each client in a window from now on, us. */
static void time_watch(u64 *us)
{
	unsigned int i;

	for (i = 0; i < shared.nr; i++)
		us[i] = atomic64_read(&shared.ran[i]);
	msleep(TIME_WINDOW_MS);
	for (i = 0; i < shared.nr; i++)
		us[i] = div_u64(atomic64_read(&shared.ran[i]) - us[i], NSEC_PER_USEC);
}

/* Return Jain's index of x, the service by weight: (sum x)^2 / (n * sum x^2) * 100000. */
static u64 time_jain(const u64 *us)
{
	u64 x, sum = 0, squares = 0;
	unsigned int i;

	for (i = 0; i < shared.nr; i++) {
		x = div_u64(us[i], shared.client[i].weight);
		sum += x;
		squares += x * x;
	}
	return squares ? div64_u64(sum * sum * 100000, squares * shared.nr) : 0;
}

/*
 * Return the largest difference between a client's time and its share, in
 * 1/1000 % of the share.
 */
static u64 time_off(const u64 *us)
{
	u64 total = 0, weights = 0, share, most = 0;
	unsigned int i;

	for (i = 0; i < shared.nr; i++) {
		total += us[i];
		weights += shared.client[i].weight;
	}
	for (i = 0; i < shared.nr; i++) {
		share = max(div64_u64(total * shared.client[i].weight, weights), 1ULL);
		most = max(most, div64_u64((max(us[i], share) - min(us[i], share)) * 100000,
					   share));
	}
	return most;
}

static void time_say(const struct bench_row *row, const char *side, const u64 *us)
{
	u64 jain = time_jain(us), off = time_off(us);
	u32 jain_rest, off_rest;

	jain = div_u64_rem(jain, 100000, &jain_rest);
	off = div_u64_rem(off, 1000, &off_rest);
	bench_say(row, side, "off_percent=%llu.%03u jain=%llu.%05u", off, off_rest,
		  jain, jain_rest);
}

static int time_measure(const struct bench_row *row, const struct bench_side *side)
{
	u64 us[TIME_CLIENTS];
	unsigned int i;
	int err = bench_open(&shared.setup, side, shared.nr, num_online_cpus());

	if (err)
		return err;
	for (i = 0; i < shared.nr; i++)
		bench_set_weight(&shared.setup, i, 100 * shared.client[i].weight);
	shared.stop = false;
	time_start();
	msleep(TIME_WARM_MS);
	time_watch(us);
	WRITE_ONCE(shared.stop, true);
	bench_close(&shared.setup);
	time_say(row, side->name, us);
	return 0;
}

static int time_sample(const struct bench_row *row, const struct bench_side *side,
		       const struct time_client *client, unsigned int nr)
{
	int err;

	shared.client = client;
	shared.nr = nr;
	shared.item = kvcalloc(nr * TIME_DEPTH, sizeof(*shared.item), GFP_KERNEL);
	if (!shared.item)
		return -ENOMEM;
	err = time_measure(row, side);
	kvfree(shared.item);
	return err;
}

int bench_time_fair(const struct bench_row *row, const struct bench_side *side)
{
	static const struct time_client client[] = { { 1, 20000 }, { 1, 2000000 } };

	return time_sample(row, side, client, ARRAY_SIZE(client));
}

int bench_time_weights(const struct bench_row *row, const struct bench_side *side)
{
	static const struct time_client client[] = {
		{ 1, 20000 }, { 2, 2000000 }, { 5, 200000 },
	};

	return time_sample(row, side, client, ARRAY_SIZE(client));
}
