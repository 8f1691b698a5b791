// SPDX-License-Identifier: GPL-2.0
/*
 * Rows: the cost of an item. They measure the queue call, the whole way of an
 * item, also of one that sleeps, its round trip, and the queue call where many
 * threads make it.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "bench.h"

#define PUSH_ITEMS	20000U
#define EMPTY_STRETCH	1000U
#define EMPTY_PATIENCE_NS	(500 * NSEC_PER_MSEC)
#define EMPTY_WARM_NS	(20 * NSEC_PER_MSEC)
#define EMPTY_ENOUGH_NS	(100 * NSEC_PER_MSEC)
#define TRIPS		2000U
#define TRIP_PAUSE_NS	5000U
#define TRIP_REST_US	100U
#define ONE_EACH_ITEMS	2500U	/* of each thread */

/* Data that the threads of a sample share. */
struct bench_cost {
	const struct bench_row *row;
	struct bench_setup setup;
	u64 begin[BENCH_THREADS];
	unsigned int nr[BENCH_THREADS];	/* items queued */
	u64 patience;			/* longest time to queue them, ns */
	u64 end;
};

/* ---- push: a queue call while no runner can take the item -------------- */

static struct bench_gate push_gate;

static void push_thread(void *arg, unsigned int index)
{
	struct bench_cost *cost = arg;

	bench_init(&cost->setup, bench_items, PUSH_ITEMS);
	bench_gate_close(&cost->setup, &push_gate);
	cost->begin[0] = ktime_get_ns();
	bench_queue(&cost->setup, 0, 1, bench_items, PUSH_ITEMS);
	cost->end = ktime_get_ns();
	bench_gate_open(&push_gate);
}

int bench_push(const struct bench_row *row, const struct bench_side *side)
{
	struct bench_cost cost = { .row = row };
	int err = bench_open(&cost.setup, side, 1, 1);

	if (err)
		return err;
	err = bench_threads(1, push_thread, &cost);
	bench_close(&cost.setup);
	if (!err)
		bench_say_ns(row, side->name, cost.end - cost.begin[0], PUSH_ITEMS);
	return err;
}

/* ---- empty: from the first queue call until the last item has run ----- */

static unsigned int empty_spin_ns;

/* An item that takes as long as its row says. */
static void empty_spin_fn(struct bench_item *item)
{
	bench_spin(empty_spin_ns);
}

/* Return how many items each thread may queue: no more than a sample needs. */
static unsigned int empty_share(const struct bench_row *row)
{
	u64 nr = BENCH_ITEMS;

	if (row->spin_ns)
		nr = min(nr, div_u64(min(row->active, num_online_cpus()) * EMPTY_ENOUGH_NS,
				     row->spin_ns));
	return div_u64(nr, row->threads);
}

/*
 * Queue up to @nr items to all channels in rotation. Stop when the patience is
 * over, because an item can take milliseconds where more virtual CPUs than real
 * ones fight for a lock. Return: the number of queued items.
 *
 * The finish expects the last item of every channel. A few of 100,000 items may
 * still run then, because a second runner took them before. To count every item
 * would cost more than the item itself.
 */
static unsigned int empty_queue(struct bench_cost *cost, unsigned int at,
				struct bench_item *items, unsigned int nr)
{
	u64 until = ktime_get_ns() + cost->patience;
	unsigned int over = cost->row->channels;
	struct bench_setup *setup = &cost->setup;
	unsigned int done = 0, stretch = 16, some;

	while (done < nr - over && ktime_get_ns() < until) {
		some = min(stretch, nr - over - done);
		bench_queue(setup, (at + done) % over, over, items + done, some);
		done += some;
		stretch = min(2 * stretch, EMPTY_STRETCH);
	}
	bench_items_set_fn(items + done, over, bench_finish_reach);
	bench_queue(setup, (at + done) % over, over, items + done, over);
	return done + over;
}

static void empty_thread(void *arg, unsigned int index)
{
	struct bench_cost *cost = arg;
	unsigned int over = cost->row->channels;
	unsigned int nr = empty_share(cost->row);
	unsigned int at = index * over / cost->row->threads;

	bench_init(&cost->setup, bench_items + index * nr, nr);
	if (cost->row->spin_ns)
		bench_items_set_fn(bench_items + index * nr, nr, empty_spin_fn);
	bench_barrier();
	cost->begin[index] = ktime_get_ns();
	cost->nr[index] = empty_queue(cost, at, bench_items + index * nr, nr);
}

/* Run up to BENCH_ITEMS items once. Add their number to @nr, and their time to @ns. */
static int empty_run(struct bench_cost *cost, u64 patience, unsigned int *nr, u64 *ns)
{
	const struct bench_row *row = cost->row;
	unsigned int i;
	u64 begin;
	int err;

	cost->patience = patience;
	bench_finish_expect(row->channels * row->threads);
	err = bench_threads(row->threads, empty_thread, cost);
	if (err)
		return err;
	cost->end = bench_finish_wait();
	begin = cost->begin[0];
	for (i = 0; i < row->threads; i++) {
		begin = min(begin, cost->begin[i]);
		*nr += cost->nr[i];
	}
	*ns += cost->end - begin;
	cost->setup.side->ops->settle(&cost->setup);
	return 0;
}

/*
 * Repeat the run until a sample has about the same time for every side.
 * Otherwise a side that is ten times faster would be measured while the CPU
 * still wakes up. The first run does not count.
 */
int bench_empty(const struct bench_row *row, const struct bench_side *side)
{
	struct bench_cost cost = { .row = row };
	int err = bench_open(&cost.setup, side, row->channels, row->active);
	unsigned int nr = 0;
	u64 ns = 0;

	if (err)
		return err;
	empty_spin_ns = row->spin_ns;
	err = empty_run(&cost, EMPTY_WARM_NS, &nr, &ns);
	for (nr = 0, ns = 0; !err && ns < EMPTY_ENOUGH_NS;)
		err = empty_run(&cost, EMPTY_PATIENCE_NS, &nr, &ns);
	bench_close(&cost.setup);
	if (!err)
		bench_say_ns(row, side->name, ns, nr);
	return err;
}

/* ---- sleep: items that sleep, queued at once ---------------------------- */

#define SLEEP_ITEMS	2048U
#define SLEEP_RUN_NS	2000U
#define SLEEP_US	100U

static void sleep_fn(struct bench_item *item)
{
	bench_spin(SLEEP_RUN_NS);
	usleep_range(SLEEP_US, SLEEP_US + 1);
	bench_finish_reach(item);
}

/* Queue as many items at once as the row has channels, over and over. */
int bench_sleep(const struct bench_row *row, const struct bench_side *side)
{
	unsigned int nr = row->channels, waves = SLEEP_ITEMS / nr, i;
	struct bench_setup setup;
	int err = bench_open(&setup, side, 1, 0);
	u64 begin, took, ns = 0;

	if (err)
		return err;
	/* The first wave is not counted: it makes the workers of both sides. */
	for (i = 0; i <= waves; i++) {
		bench_init(&setup, bench_items, nr);
		bench_items_set_fn(bench_items, nr, sleep_fn);
		bench_finish_expect(nr);
		begin = ktime_get_ns();
		bench_queue(&setup, 0, 1, bench_items, nr);
		took = bench_finish_wait() - begin;
		ns += i ? took : 0;
		setup.side->ops->settle(&setup);
	}
	bench_close(&setup);
	bench_say_ns(row, side->name, ns, waves * nr);
	return 0;
}

/* ---- round trips ------------------------------------------------------ */

struct bench_trip {
	struct bench_item item;
	struct completion done;
};

static void trip_fn(struct bench_item *item)
{
	complete(&container_of(item, struct bench_trip, item)->done);
}

/* Make one trip. Return: its time; @call_ns: the time of the queue call alone. */
static u64 trip_take(struct bench_setup *setup, unsigned int channel,
		     struct bench_trip *trip, u64 *call_ns)
{
	u64 begin = ktime_get_ns();

	bench_queue(setup, channel, setup->nr_channels, &trip->item, 1);
	*call_ns = ktime_get_ns() - begin;
	wait_for_completion(&trip->done);
	return ktime_get_ns() - begin;
}

static void trip_init(struct bench_setup *setup, struct bench_trip *trip)
{
	bench_init(setup, &trip->item, 1);
	trip->item.fn = trip_fn;
	init_completion(&trip->done);
}

static struct bench_trip round_trip;

/* Make all trips of a sample. If the row has no threads, CPUs sleep before each trip. */
static void round_trip_thread(void *arg, unsigned int index)
{
	struct bench_cost *cost = arg;
	unsigned int i;
	u64 call_ns;

	trip_init(&cost->setup, &round_trip);
	for (i = 0; i < TRIPS; i++) {
		/* Wait until the worker that ran the last item is idle again. */
		if (cost->row->threads)
			bench_spin(TRIP_PAUSE_NS);
		else
			usleep_range(TRIP_REST_US, 2 * TRIP_REST_US);
		cond_resched();
		bench_times[i] = trip_take(&cost->setup, 0, &round_trip, &call_ns);
	}
}

int bench_round_trip(const struct bench_row *row, const struct bench_side *side)
{
	struct bench_cost cost = { .row = row };
	int err = bench_open(&cost.setup, side, 1, 0);

	if (err)
		return err;
	err = bench_threads(1, round_trip_thread, &cost);
	bench_close(&cost.setup);
	if (err)
		return err;
	bench_sort_times(TRIPS);
	bench_say(row, side->name, "ns=%llu p99_ns=%llu", bench_middle_mean(TRIPS),
		  bench_percentile(TRIPS, 99));
	return 0;
}

/*
 * ---- one item each: the same as the kernel's lib/test_workqueue.c -------
 *
 * Every thread queues one item, waits for it, and queues it again. Thread i
 * queues to channel i. If there is only one channel, all threads queue to that.
 */

static struct bench_trip *one_each_trips;

static void one_each_thread(void *arg, unsigned int index)
{
	struct bench_cost *cost = arg;
	struct bench_trip *trip = &one_each_trips[index];
	unsigned int channel = index % cost->row->channels, i;
	u64 *call_ns = bench_times + index * ONE_EACH_ITEMS;

	trip_init(&cost->setup, trip);
	bench_barrier();
	cost->begin[index] = ktime_get_ns();
	for (i = 0; i < ONE_EACH_ITEMS; i++)
		trip_take(&cost->setup, channel, trip, &call_ns[i]);
}

static void one_each_say(const struct bench_cost *cost, const char *side)
{
	unsigned int nr = cost->row->threads * ONE_EACH_ITEMS, i;
	u64 begin = cost->begin[0];

	for (i = 1; i < cost->row->threads; i++)
		begin = min(begin, cost->begin[i]);
	bench_sort_times(nr);
	bench_say(cost->row, side, "items_s=%llu ns=%llu p50_ns=%llu p90_ns=%llu p95_ns=%llu",
		  div64_u64((u64)nr * NSEC_PER_SEC, cost->end - begin),
		  bench_middle_mean(nr), bench_percentile(nr, 50), bench_percentile(nr, 90),
		  bench_percentile(nr, 95));
}

int bench_one_each(const struct bench_row *row, const struct bench_side *side)
{
	struct bench_cost cost = { .row = row };
	int err;

	one_each_trips = kcalloc(row->threads, sizeof(*one_each_trips), GFP_KERNEL);
	if (!one_each_trips)
		return -ENOMEM;
	err = bench_open(&cost.setup, side, row->channels, 0);
	if (!err) {
		err = bench_threads(row->threads, one_each_thread, &cost);
		cost.end = ktime_get_ns();
		bench_close(&cost.setup);
	}
	if (!err)
		one_each_say(&cost, side->name);
	kfree(one_each_trips);
	return err;
}
