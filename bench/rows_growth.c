// SPDX-License-Identifier: GPL-2.0
/*
 * Rows: the growth of an item's cost with the number of batches. They measure
 * the fair tree alone, and the whole module, with eligible and with idle
 * batches.
 */
#include <linux/sched.h>
#include <linux/slab.h>

#include "../core/tree.h"
#include "bench.h"

#define PICKS		200000U
#define PICK_STRETCH	10000U
#define IDLE_BATCHES	10000U
#define IDLE_ITEMS	50000U
#define IDLE_REPEATS	5U

/* ---- pick: choose and charge, in the tree alone ----------------------- */

struct bench_tree {
	struct fairwq_tree tree;
	struct fairwq_node *nodes;
	unsigned int nr;
	u64 ns;
};

/* Make the tree, of equal weights, or of weights from 25 to 400 in random order. */
static void pick_grow(struct bench_tree *t, bool mixed)
{
	u32 random = 1;
	unsigned int i;

	fairwq_tree_init(&t->tree);
	for (i = 0; i < t->nr; i++) {
		random = random * 1664525 + 1013904223;
		fairwq_node_init(&t->nodes[i], &t->tree.rank[0],
				 mixed ? 25 + (random >> 16) % 376 : 100);
		fairwq_tree_add(&t->tree, &t->nodes[i]);
	}
}

static void pick_some(struct bench_tree *t, unsigned int nr)
{
	struct fairwq_node *node;

	while (nr--) {
		node = fairwq_tree_pick(&t->tree);
		fairwq_tree_charge(&t->tree, node, FAIRWQ_COST_TURN);
	}
}

/* Measure picks. The first stretch warms up. */
static void pick_thread(void *arg, unsigned int index)
{
	struct bench_tree *t = arg;
	unsigned int i;
	u64 begin;

	pick_some(t, PICK_STRETCH);
	begin = ktime_get_ns();
	for (i = 0; i < PICKS; i += PICK_STRETCH) {
		pick_some(t, PICK_STRETCH);
		cond_resched();
	}
	t->ns = ktime_get_ns() - begin;
}

int bench_pick(const struct bench_row *row, const struct bench_side *side)
{
	struct bench_tree t = { .nr = row->channels };
	int err = 0, mixed;

	t.nodes = kvcalloc(t.nr, sizeof(*t.nodes), GFP_KERNEL);
	if (!t.nodes)
		return -ENOMEM;
	for (mixed = 0; mixed < 2 && !err; mixed++) {
		pick_grow(&t, mixed);
		err = bench_threads(1, pick_thread, &t);
		if (!err)
			bench_say_ns(row, mixed ? "mixed" : "equal", t.ns, PICKS);
	}
	kvfree(t.nodes);
	return err;
}

/* ---- drains: one runner is held while items are queued ---------------- */

struct bench_drain {
	struct bench_setup *setup;
	unsigned int over, nr;
	struct bench_gate gate;
	u64 ns;
};

static struct bench_drain drain;

static void drain_thread(void *arg, unsigned int index)
{
	u64 begin;

	bench_init(drain.setup, bench_items, drain.nr);
	bench_items_set_fn(bench_items + drain.nr - drain.over, drain.over,
			   bench_finish_reach);
	bench_finish_expect(drain.over);
	bench_gate_close(drain.setup, &drain.gate);
	bench_queue(drain.setup, 0, drain.over, bench_items, drain.nr);
	begin = ktime_get_ns();
	bench_gate_open(&drain.gate);
	drain.ns = bench_finish_wait() - begin;
}

/* Drain @nr items from the first @over channels of a setup with one runner. */
static int drain_sample(const struct bench_row *row, const char *name,
			struct bench_setup *setup, unsigned int over, unsigned int nr)
{
	int err;

	drain.setup = setup;
	drain.over = over;
	drain.nr = nr;
	err = bench_threads(1, drain_thread, NULL);
	if (!err)
		bench_say_ns(row, name, drain.ns, nr);
	return err;
}

int bench_eligible(const struct bench_row *row, const struct bench_side *side)
{
	struct bench_setup setup;
	int err = bench_open(&setup, side, row->channels, 1);

	if (err)
		return err;
	err = drain_sample(row, side->name, &setup, row->channels, BENCH_ITEMS);
	bench_close(&setup);
	return err;
}

/* Compare two pools, asked by turns, because the difference is small. */
static int idle_compare(const struct bench_row *row, struct bench_setup *none,
			struct bench_setup *many)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < IDLE_REPEATS && !err; i++) {
		err = drain_sample(row, "idle_0", none, row->channels, IDLE_ITEMS);
		if (!err)
			err = drain_sample(row, "idle_10000", many, row->channels, IDLE_ITEMS);
	}
	return err;
}

int bench_idle(const struct bench_row *row, const struct bench_side *side)
{
	struct bench_setup none, many;
	int err = bench_open(&none, &bench_fairwq, row->channels, 1);

	if (err)
		return err;
	err = bench_open(&many, &bench_fairwq, row->channels + IDLE_BATCHES, 1);
	if (!err) {
		err = idle_compare(row, &none, &many);
		bench_close(&many);
	}
	bench_close(&none);
	return err;
}
