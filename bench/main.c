// SPDX-License-Identifier: GPL-2.0
/*
 * The bench: measure the cost of fairwq beside that of other ways to run items.
 * A write to the parameter "run" asks every row of every side, and prints each
 * sample. tools/bench.sh boots a kernel for the bench. tools/bench.py makes the
 * table.
 *
 * The bench is a client like any other: it uses only the public header, except
 * inside.c and the rows that measure a part of fairwq alone.
 */
#define pr_fmt(fmt) "fairwq-bench: " fmt

#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "bench.h"

#define ROW_ROUNDS	3U	/* at least */
#define ROW_PATIENCE_NS	(20ULL * NSEC_PER_SEC)

static unsigned int rounds = 7;
module_param(rounds, uint, 0644);
MODULE_PARM_DESC(rounds, "how often every side of every row is asked");

static char *rows = "";
module_param(rows, charp, 0644);
MODULE_PARM_DESC(rows, "rows to ask, with commas, by names or by how these begin; empty: all");

static char *sides = "";
module_param(sides, charp, 0644);
MODULE_PARM_DESC(sides, "sides to ask, with commas; empty: all");

static const struct bench_side * const call_sides[] = {
	&bench_wq_unbound, &bench_wq_percpu, &bench_list, &bench_kthread, &bench_fairwq,
	NULL,
};

static const struct bench_side * const item_sides[] = {
	&bench_wq_unbound, &bench_wq_percpu, &bench_wq_each, &bench_list, &bench_kthread,
	&bench_fairwq, &bench_fairwq_one, NULL,
};

static const struct bench_side * const behind_sides[] = {
	&bench_ideal, &bench_wq_unbound, &bench_fairwq, NULL,
};

static const struct bench_side * const quiet_sides[] = {
	&bench_wq_unbound, &bench_wq_each, &bench_kthread, &bench_fairwq, NULL,
};

static const struct bench_side * const time_sides[] = {
	&bench_wq_unbound, &bench_fairwq, &bench_fairwq_time, NULL,
};

static const struct bench_side * const growth_sides[] = {
	&bench_wq_unbound, &bench_fairwq, NULL,
};

static const struct bench_side * const shared_sides[] = {
	&bench_wq_unbound, &bench_wq_percpu, &bench_fairwq, NULL,
};

static const struct bench_side * const own_sides[] = {
	&bench_wq_unbound, &bench_wq_each, &bench_fairwq, NULL,
};

static const struct bench_side * const sleep_sides[] = {
	&bench_wq_unbound, &bench_wq_percpu, &bench_fairwq_sleep, NULL,
};

/* One client is one device. It has a queue of its own, or all devices share one. */
static const struct bench_side * const device_sides[] = {
	&bench_wq_unbound, &bench_wq_each, &bench_fairwq, &bench_fairwq_each, NULL,
};

static const struct bench_side * const runner_sides[] = {
	&bench_wq_unbound, &bench_fairwq, NULL,
};

static const struct bench_side * const object_sides[] = {
	&bench_wq_ordered, &bench_mutex, &bench_serial, &bench_serial_inline, NULL,
};

/* 100,000 ordered workqueues are possible, and take a minute to destroy. */
static const struct bench_side * const order_sides[] = {
	&bench_wq_ordered, &bench_mutex, &bench_serial, NULL,
};

static const struct bench_side * const pool_sides[] = {
	&bench_wq_each, &bench_fairwq_each, NULL,
};

static const struct bench_side * const batch_sides[] = {
	&bench_fairwq, NULL,
};

static const struct bench_side * const many_order_sides[] = {
	&bench_mutex, &bench_serial, NULL,
};

static const struct bench_side * const fork_sides[] = {
	&bench_fork_serial, &bench_fork_plain, &bench_fork_one, &bench_fork_direct,
	&bench_fork_all, NULL,
};

static const struct bench_side * const speed_up_sides[] = {
	&bench_fork_serial, &bench_fork_one, &bench_fork_all, NULL,
};

/* Name, question, sides; channels, threads, runners, ns of an item. */
static const struct bench_row all_rows[] = {
	{ "floor", bench_floor, NULL },
	{ "size", bench_size, NULL },
	{ "push", bench_push, call_sides },
	{ "empty_1", bench_empty, item_sides, 1, 1 },
	{ "empty_16", bench_empty, item_sides, 16, 1 },
	{ "empty_16_p2", bench_empty, item_sides, 16, 2 },
	{ "devices_1", bench_empty, device_sides, 1, 1 },
	{ "devices_8", bench_empty, device_sides, 8, 1 },
	{ "devices_64", bench_empty, device_sides, 64, 1 },
	{ "runners_1", bench_empty, runner_sides, 16, 1, 1 },
	{ "runners_2", bench_empty, runner_sides, 16, 1, 2 },
	{ "runners_4", bench_empty, runner_sides, 16, 1, 4 },
	{ "runners_8", bench_empty, runner_sides, 16, 1, 8 },
	{ "runners_16", bench_empty, runner_sides, 16, 1, 16 },
	{ "runners_1us_1", bench_empty, runner_sides, 16, 2, 1, 1000 },
	{ "runners_1us_2", bench_empty, runner_sides, 16, 2, 2, 1000 },
	{ "runners_1us_4", bench_empty, runner_sides, 16, 2, 4, 1000 },
	{ "runners_1us_8", bench_empty, runner_sides, 16, 2, 8, 1000 },
	{ "runners_1us_16", bench_empty, runner_sides, 16, 2, 16, 1000 },
	{ "runners_10us_1", bench_empty, runner_sides, 16, 2, 1, 10000 },
	{ "runners_10us_2", bench_empty, runner_sides, 16, 2, 2, 10000 },
	{ "runners_10us_4", bench_empty, runner_sides, 16, 2, 4, 10000 },
	{ "runners_10us_8", bench_empty, runner_sides, 16, 2, 8, 10000 },
	{ "runners_10us_16", bench_empty, runner_sides, 16, 2, 16, 10000 },
	{ "trip", bench_round_trip, call_sides, 1, 1 },
	{ "trip_rested", bench_round_trip, call_sides, 1, 0 },
	{ "sleep_16", bench_sleep, sleep_sides, 16 },
	{ "sleep_256", bench_sleep, sleep_sides, 256 },
	{ "behind", bench_behind, behind_sides },
	{ "quiet_1", bench_quiet, quiet_sides, 1 },
	{ "quiet_8", bench_quiet, quiet_sides, 8 },
	{ "quiet_64", bench_quiet, quiet_sides, 64 },
	{ "time_fair", bench_time_fair, time_sides },
	{ "time_weights", bench_time_weights, time_sides },
	{ "pick_2", bench_pick, NULL, 2 },
	{ "pick_16", bench_pick, NULL, 16 },
	{ "pick_256", bench_pick, NULL, 256 },
	{ "pick_4096", bench_pick, NULL, 4096 },
	{ "pick_10000", bench_pick, NULL, 10000 },
	{ "eligible_2", bench_eligible, growth_sides, 2 },
	{ "eligible_16", bench_eligible, growth_sides, 16 },
	{ "eligible_256", bench_eligible, growth_sides, 256 },
	{ "eligible_4096", bench_eligible, growth_sides, 4096 },
	{ "eligible_10000", bench_eligible, growth_sides, 10000 },
	{ "idle", bench_idle, NULL, 2 },
	{ "serial_add", bench_push, object_sides },
	{ "serial_1", bench_empty, object_sides, 1, 1 },
	{ "serial_1000", bench_empty, object_sides, 1000, 1 },
	{ "objects_1000", bench_objects, order_sides, 1000 },
	{ "objects_100000", bench_objects, many_order_sides, 100000 },
	{ "pools_256", bench_objects, pool_sides, 256 },
	{ "batches_10000", bench_objects, batch_sides, 10000 },
	{ "one_each_2", bench_one_each, shared_sides, 1, 2 },
	{ "one_each_4", bench_one_each, shared_sides, 1, 4 },
	{ "one_each_8", bench_one_each, shared_sides, 1, 8 },
	{ "one_each_2_own", bench_one_each, own_sides, 2, 2 },
	{ "one_each_4_own", bench_one_each, own_sides, 4, 4 },
	{ "one_each_8_own", bench_one_each, own_sides, 8, 8 },
	{ "fork_join", bench_fork_join, fork_sides },
	{ "tree_60", bench_tree, speed_up_sides, 60 },
	{ "tree_500", bench_tree, speed_up_sides, 500 },
	{ "tree_tiny", bench_tiny, speed_up_sides },
	{ "parallel_for_1", bench_parallel_for, speed_up_sides, 1 },
	{ "parallel_for_10", bench_parallel_for, speed_up_sides, 10 },
	{ "parallel_for_100", bench_parallel_for, speed_up_sides, 100 },
	{ "parallel_for_1000", bench_parallel_for, speed_up_sides, 1000 },
};

/* Return the next of the words between commas, or NULL. Move @rest behind it. */
static const char *bench_word(const char **rest, size_t *len)
{
	const char *word = *rest + strspn(*rest, ",");

	*len = strcspn(word, ",");
	*rest = word + *len;
	return *len ? word : NULL;
}

/* Check whether @name is the word of @len letters. */
static bool bench_is(const char *name, const char *word, size_t len)
{
	return !strncmp(name, word, len) && !name[len];
}

static bool bench_is_row(const char *word, size_t len)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(all_rows); i++)
		if (bench_is(all_rows[i].name, word, len))
			return true;
	return false;
}

static bool bench_has_run;

/*
 * Check whether @row must be asked. A word that names no row selects all rows
 * that begin with it. The first run has the floor in any case.
 */
static bool bench_is_wanted(const struct bench_row *row)
{
	const char *rest = rows, *word;
	size_t len;

	if (!*rows || (row->sample == bench_floor && !bench_has_run))
		return true;
	while ((word = bench_word(&rest, &len)))
		if (bench_is_row(word, len) ? bench_is(row->name, word, len) :
					      !strncmp(row->name, word, len))
			return true;
	return false;
}

static bool bench_side_is_wanted(const struct bench_side *side)
{
	const char *rest = sides, *word;
	size_t len;

	while ((word = bench_word(&rest, &len)))
		if (bench_is(side->name, word, len))
			return true;
	return !*sides;
}

static unsigned int bench_nr_sides(const struct bench_row *row)
{
	unsigned int nr = 0;

	while (row->sides[nr])
		nr++;
	return nr;
}

/* Ask all sides once. Each round begins with another one: none has a better place. */
static int bench_ask_round(const struct bench_row *row)
{
	const struct bench_side *side;
	unsigned int nr, i;
	int err = 0;

	if (!row->sides)
		return row->sample(row, NULL);
	nr = bench_nr_sides(row);
	for (i = 0; i < nr && !err; i++) {
		side = row->sides[(i + bench_round) % nr];
		if (bench_side_is_wanted(side))
			err = row->sample(row, side);
		cond_resched();
	}
	return err;
}

/*
 * Ask a row for all rounds. On a busy machine it gets fewer, at least
 * ROW_ROUNDS; tools/bench.py reports that. Return: 0, or an error.
 */
static int bench_ask(const struct bench_row *row)
{
	u64 until = ktime_get_ns() + ROW_PATIENCE_NS;
	int err = 0;

	for (bench_round = 0; bench_round < rounds && !err; bench_round++) {
		if (bench_round >= ROW_ROUNDS && ktime_get_ns() > until)
			break;
		err = bench_ask_round(row);
	}
	if (err)
		pr_err("row %s failed: %d\n", row->name, err);
	return err;
}

#ifdef MODULE
static const char bench_built[] = "modules";
#else
static const char bench_built[] = "linked";
#endif

/* Ask all rows that are wanted. Return: 0, or the error of the first row that failed. */
static int bench_set_run(const char *val, const struct kernel_param *kp)
{
	unsigned int i;
	int err = bench_items_alloc();

	if (err)
		return err;
	pr_info("cpus=%u rounds=%u built=%s\n", num_online_cpus(), rounds,
		bench_built);
	for (i = 0; i < ARRAY_SIZE(all_rows) && !err; i++)
		if (bench_is_wanted(&all_rows[i]))
			err = bench_ask(&all_rows[i]);
	pr_info("items=%llu\n", bench_items_queued());
	bench_items_free();
	bench_has_run = true;
	return err;
}

static const struct kernel_param_ops bench_run_ops = { .set = bench_set_run };
module_param_cb(run, &bench_run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "whatever is written: ask now; the write returns when all is measured");

MODULE_DESCRIPTION("What fairwq costs, next to what there is without it");
MODULE_LICENSE("GPL");
