// SPDX-License-Identifier: GPL-2.0
/*
 * Costs of turns: what a node of the tree is charged, and which node goes next.
 *
 * The first cases use a tree without a pool, where every figure is exact. The
 * cases of fair time use a pool, and cannot know how long an item takes. They
 * know which item takes longer, because it runs while the other ones do, or how
 * many turns are under way.
 */
#include "core/tree.h"
#include "lib/fixture.h"

/* Include the source, because the cases use symbols that are not exported. */
#include "../core/tree.c"

/* ---- a tree of its own ------------------------------------------------ */

#define FEW	4

struct tree_case {
	struct fairwq_tree tree;
	struct fairwq_node node[FEW];
	struct fairwq_node *rank;
};

static struct tree_case *tree_case(struct kunit *test)
{
	struct tree_case *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, t);
	fairwq_tree_init(&t->tree);
	/* Let newcomers join at the clock, except in the cases about newcomers. */
	fairwq_tree_set_unit(&t->tree, 0, 0);
	t->rank = &t->tree.rank[0];
	for (i = 0; i < FEW; i++)
		fairwq_node_init(&t->node[i], t->rank, 100);
	return t;
}

/* Let the next node take a turn of @cost. Return: the index of the node. */
static unsigned int tree_turn(struct tree_case *t, u64 cost)
{
	struct fairwq_node *node = fairwq_tree_pick(&t->tree);

	fairwq_tree_charge(&t->tree, node, cost);
	return node - t->node;
}

/* Expect the next turns, at @cost each, to go to the nodes in @order, one digit per turn. */
static void tree_expect(struct kunit *test, struct tree_case *t, u64 cost,
			const char *order)
{
	char got[64] = "";
	size_t i;

	for (i = 0; i < strlen(order); i++)
		got[i] = '0' + tree_turn(t, cost);
	KUNIT_EXPECT_STREQ(test, order, &got[0]);
}

/* ---- corrections ------------------------------------------------------ */

/* A node whose turn cost more than it was charged waits longer for its next turn. */
static void dearer_turn_is_paid_later(struct kunit *test)
{
	struct tree_case *t = tree_case(test);

	fairwq_tree_add(&t->tree, &t->node[0]);
	fairwq_tree_add(&t->tree, &t->node[1]);
	KUNIT_ASSERT_EQ(test, 0U, tree_turn(t, 10));
	fairwq_tree_correct(&t->tree, &t->node[0], 25, false);
	KUNIT_EXPECT_EQ(test, 35ULL, t->node[0].service);
	/* Node 0 is at 35, so node 1 gets four turns: at 0, 10, 20 and 30. */
	tree_expect(test, t, 10, "11110101");
}

/* A node whose turn cost less than it was charged gets its next turn sooner. */
static void cheaper_turn_is_given_back(struct kunit *test)
{
	struct tree_case *t = tree_case(test);

	fairwq_tree_add(&t->tree, &t->node[0]);
	fairwq_tree_add(&t->tree, &t->node[1]);
	KUNIT_ASSERT_EQ(test, 0U, tree_turn(t, 40));
	tree_expect(test, t, 10, "11");
	fairwq_tree_correct(&t->tree, &t->node[0], -35, false);
	KUNIT_EXPECT_EQ(test, 5ULL, t->node[0].service);
	/* Node 0 is at 5, and node 1 at 20. */
	tree_expect(test, t, 10, "001010");
}

/* A correction does not set the clock back, so a node that joins gains nothing by it. */
static void cost_less_moves_no_clock(struct kunit *test)
{
	struct tree_case *t = tree_case(test);
	u64 clock;

	fairwq_tree_add(&t->tree, &t->node[0]);
	fairwq_tree_add(&t->tree, &t->node[1]);
	KUNIT_ASSERT_EQ(test, 0U, tree_turn(t, 100));
	tree_expect(test, t, 10, "1111");
	clock = t->rank->clock;
	KUNIT_EXPECT_EQ(test, 30ULL, clock);
	fairwq_tree_correct(&t->tree, &t->node[0], -100, false);
	KUNIT_EXPECT_EQ(test, clock, t->rank->clock);
	/* Node 2 joins at 30, and is served when node 0 has caught up. */
	fairwq_tree_add(&t->tree, &t->node[2]);
	KUNIT_EXPECT_EQ(test, clock, t->node[2].vtime);
	tree_expect(test, t, 10, "000201");
}

/* A node that is corrected while it is idle keeps a debt, but no credit. */
static void idle_node_keeps_debt_and_no_credit(struct kunit *test)
{
	struct tree_case *t = tree_case(test);

	fairwq_tree_add(&t->tree, &t->node[0]);
	fairwq_tree_add(&t->tree, &t->node[1]);
	fairwq_tree_add(&t->tree, &t->node[2]);
	tree_expect(test, t, 10, "012");
	fairwq_tree_del(&t->tree, &t->node[0]);
	fairwq_tree_del(&t->tree, &t->node[1]);
	fairwq_tree_correct(&t->tree, &t->node[0], 40, false);
	fairwq_tree_correct(&t->tree, &t->node[1], -9, false);
	tree_expect(test, t, 10, "22");
	fairwq_tree_add(&t->tree, &t->node[0]);
	fairwq_tree_add(&t->tree, &t->node[1]);
	KUNIT_EXPECT_EQ(test, 50ULL, t->node[0].vtime);
	KUNIT_EXPECT_EQ(test, 20ULL, t->node[1].vtime);
}

/*
 * Let node 0, which has one item at a time, join again before the cost of its
 * turn is known. The turn is charged @charged. Node 1 has @meanwhile turns
 * before node 0 joins.
 * Return: the virtual time of node 0 after the correction to @cost.
 */
static u64 closed_loop(struct kunit *test, u64 charged, unsigned int meanwhile, u64 cost)
{
	struct tree_case *t = tree_case(test);
	u64 stands;

	fairwq_tree_add(&t->tree, &t->node[0]);
	fairwq_tree_add(&t->tree, &t->node[1]);
	KUNIT_ASSERT_EQ(test, 0U, tree_turn(t, charged));
	fairwq_tree_del(&t->tree, &t->node[0]);
	while (meanwhile--)
		tree_turn(t, 10);
	fairwq_tree_add(&t->tree, &t->node[0]);
	fairwq_tree_correct(&t->tree, &t->node[0], cost - charged, false);
	KUNIT_EXPECT_EQ(test, cost, t->node[0].service);
	stands = t->node[0].vtime;
	/* The next turn is corrected in full. */
	fairwq_tree_charge(&t->tree, &t->node[0], 10);
	fairwq_tree_correct(&t->tree, &t->node[0], 7, false);
	KUNIT_EXPECT_EQ(test, stands + 17, t->node[0].vtime);
	return stands;
}

/*
 * A node that joins while its turn is under way gets the place that the true
 * cost would have given it: that cost, or the clock if it is later.
 */
static void joining_under_way_gets_the_place_of_the_true_cost(struct kunit *test)
{
	/* After six turns of node 1 the clock is at 50. */
	KUNIT_EXPECT_EQ(test, 60ULL, closed_loop(test, 10, 6, 60));
	KUNIT_EXPECT_EQ(test, 50ULL, closed_loop(test, 10, 6, 45));
	KUNIT_EXPECT_EQ(test, 50ULL, closed_loop(test, 10, 6, 10));
	KUNIT_EXPECT_EQ(test, 50ULL, closed_loop(test, 10, 6, 5));
	KUNIT_EXPECT_EQ(test, 50ULL, closed_loop(test, 80, 6, 30));
	KUNIT_EXPECT_EQ(test, 70ULL, closed_loop(test, 80, 6, 70));
	KUNIT_EXPECT_EQ(test, 90ULL, closed_loop(test, 80, 6, 90));
	KUNIT_EXPECT_EQ(test, 15ULL, closed_loop(test, 10, 0, 15));
}

/* Of two turns under way, the one that began after the node joined is corrected in full. */
static void turn_that_began_after_joining_is_corrected_in_full(struct kunit *test)
{
	struct tree_case *t = tree_case(test);

	fairwq_tree_add(&t->tree, &t->node[0]);
	fairwq_tree_add(&t->tree, &t->node[1]);
	KUNIT_ASSERT_EQ(test, 0U, tree_turn(t, 10));
	fairwq_tree_del(&t->tree, &t->node[0]);
	tree_expect(test, t, 10, "111111");
	fairwq_tree_add(&t->tree, &t->node[0]);
	KUNIT_ASSERT_EQ(test, 0U, tree_turn(t, 10));
	KUNIT_EXPECT_EQ(test, 60ULL, t->node[0].vtime);
	/* When node 0 joined it was forgiven a lag of 40, which covers this correction. */
	fairwq_tree_correct(&t->tree, &t->node[0], 30, false);
	KUNIT_EXPECT_EQ(test, 60ULL, t->node[0].vtime);
	fairwq_tree_correct(&t->tree, &t->node[0], 30, false);
	KUNIT_EXPECT_EQ(test, 90ULL, t->node[0].vtime);
	/* However long the node is idle with no turn under way, the next is corrected in full. */
	fairwq_tree_del(&t->tree, &t->node[0]);
	tree_expect(test, t, 10, "1111111111");
	fairwq_tree_add(&t->tree, &t->node[0]);
	KUNIT_ASSERT_EQ(test, 0U, tree_turn(t, 10));
	KUNIT_EXPECT_EQ(test, 160ULL, t->node[0].vtime);
	fairwq_tree_correct(&t->tree, &t->node[0], 5, false);
	KUNIT_EXPECT_EQ(test, 165ULL, t->node[0].vtime);
}

/* A correction counts by weight, as the charge did, at every level up to the rank. */
static void correction_counts_by_weight_in_groups(struct kunit *test)
{
	struct tree_case *t = tree_case(test);
	struct fairwq_node *group = &t->node[0], *leaf = &t->node[1];

	fairwq_node_init(group, t->rank, 200);
	fairwq_node_init(leaf, group, 50);
	fairwq_tree_add(&t->tree, leaf);
	KUNIT_ASSERT_EQ(test, 1U, tree_turn(t, 1000));
	KUNIT_EXPECT_EQ(test, 2000ULL, leaf->vtime);
	KUNIT_EXPECT_EQ(test, 500ULL, group->vtime);
	fairwq_tree_correct(&t->tree, leaf, 200, false);
	KUNIT_EXPECT_EQ(test, 2400ULL, leaf->vtime);
	KUNIT_EXPECT_EQ(test, 600ULL, group->vtime);
	fairwq_tree_correct(&t->tree, leaf, -1000, false);
	KUNIT_EXPECT_EQ(test, 400ULL, leaf->vtime);
	KUNIT_EXPECT_EQ(test, 100ULL, group->vtime);
	KUNIT_EXPECT_EQ(test, 200ULL, leaf->service);
	KUNIT_EXPECT_EQ(test, 200ULL, group->service);
}

/* A node that is charged more later goes behind nodes that had less, also if it was idle. */
static void more_is_charged_later(struct kunit *test)
{
	struct tree_case *t = tree_case(test);
	unsigned int i;

	for (i = 0; i < 3; i++)
		fairwq_tree_add(&t->tree, &t->node[i]);
	tree_expect(test, t, 10, "012");
	fairwq_tree_correct(&t->tree, &t->node[2], 20, false);
	tree_expect(test, t, 10, "010120120");
	fairwq_tree_del(&t->tree, &t->node[2]);
	fairwq_tree_correct(&t->tree, &t->node[2], 10, false);
	KUNIT_EXPECT_EQ(test, 60ULL, t->node[2].service);
	fairwq_tree_add(&t->tree, &t->node[2]);
	tree_expect(test, t, 10, "1012012");
}

/* A debt is cut to FAIRWQ_MAX_LEAD, so that it does not look like a clock that has wrapped. */
static void debt_has_a_limit(struct kunit *test)
{
	struct tree_case *t = tree_case(test);
	unsigned int i;

	fairwq_node_init(&t->node[0], t->rank, 1);
	fairwq_tree_add(&t->tree, &t->node[0]);
	fairwq_tree_add(&t->tree, &t->node[1]);
	KUNIT_ASSERT_EQ(test, 0U, tree_turn(t, 10));
	for (i = 0; i < 10; i++)
		fairwq_tree_correct(&t->tree, &t->node[0], BIT_ULL(45), false);
	KUNIT_EXPECT_EQ(test, FAIRWQ_MAX_LEAD, t->node[0].vtime - t->rank->clock);
	fairwq_tree_del(&t->tree, &t->node[0]);
	fairwq_tree_add(&t->tree, &t->node[0]);
	tree_expect(test, t, 10, "1111");
}

/* ---- newcomers -------------------------------------------------------- */

/*
 * Return how many of 120 turns node 0 gets beside @nr newcomers below @parent.
 * Each newcomer is replaced by a new one after its first turn.
 */
static unsigned int turns_beside_newcomers(struct tree_case *t, struct fairwq_node *parent,
					   unsigned int nr)
{
	unsigned int i, node, turns = 0;

	fairwq_tree_set_unit(&t->tree, 0, 10);
	for (i = 0; i <= nr; i++) {
		fairwq_node_init(&t->node[i], parent, 100);
		fairwq_tree_add(&t->tree, &t->node[i]);
	}
	for (i = 0; i < 120; i++) {
		node = tree_turn(t, 10);
		turns += !node;
		if (!node)
			continue;
		/* Replace it by a new one. */
		fairwq_tree_del(&t->tree, &t->node[node]);
		fairwq_node_init(&t->node[node], parent, 100);
		fairwq_tree_add(&t->tree, &t->node[node]);
	}
	return turns;
}

/* A node that waits gets its share, however many newcomers follow each other. */
static void newcomers_starve_no_batch(struct kunit *test)
{
	struct tree_case *t = tree_case(test);

	KUNIT_EXPECT_EQ(test, 60U, turns_beside_newcomers(t, t->rank, 1));
	t = tree_case(test);
	KUNIT_EXPECT_EQ(test, 30U, turns_beside_newcomers(t, t->rank, 3));
}

/* A node below an owner gets its share, too, beside newcomers below the same owner. */
static void newcomers_below_an_owner_starve_no_sibling(struct kunit *test)
{
	struct tree_case *t = tree_case(test);
	struct fairwq_node *owner = kunit_kzalloc(test, sizeof(*owner), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, owner);
	fairwq_node_init(owner, t->rank, 100);
	KUNIT_EXPECT_EQ(test, 60U, turns_beside_newcomers(t, owner, 1));
}

/* A light newcomer waits longer than a heavy one. */
static void light_newcomer_waits_longer(struct kunit *test)
{
	struct tree_case *t = tree_case(test);

	fairwq_tree_set_unit(&t->tree, 0, 10);
	fairwq_node_init(&t->node[1], t->rank, 25);
	fairwq_node_init(&t->node[2], t->rank, 400);
	fairwq_tree_add(&t->tree, &t->node[0]);
	tree_expect(test, t, 10, "00");
	fairwq_tree_add(&t->tree, &t->node[1]);
	fairwq_tree_add(&t->tree, &t->node[2]);
	tree_expect(test, t, 10, "222202222022220222210");
}

/* ---- nodes at their limit ------------------------------------------------ */

/* Let node 0 have a turn and reach its limit. End that turn after the turns in @meanwhile. */
static void at_limit(struct kunit *test, struct tree_case *t, const char *meanwhile)
{
	KUNIT_EXPECT_EQ(test, 0U, tree_turn(t, 10));
	fairwq_tree_del(&t->tree, &t->node[0]);
	tree_expect(test, t, 10, meanwhile);
	fairwq_tree_add(&t->tree, &t->node[0]);
	fairwq_tree_correct(&t->tree, &t->node[0], 0, false);
}

/* A node at its limit is not idle: it goes before those at the clock until it catches up. */
static void limit_is_no_absence(struct kunit *test)
{
	struct tree_case *t = tree_case(test);
	unsigned int i;

	for (i = 0; i < 3; i++)
		fairwq_tree_add(&t->tree, &t->node[i]);
	at_limit(test, t, "12121");
	KUNIT_EXPECT_EQ(test, 20ULL, t->rank->clock);
	at_limit(test, t, "");
	tree_expect(test, t, 10, "201");
	/* Node 0 is charged from the clock on. */
	KUNIT_EXPECT_EQ(test, 30ULL, t->node[0].vtime);
}

/* A node at its limit for long keeps a lag of one turn and one step of the clock at most. */
static void limit_is_no_credit(struct kunit *test)
{
	struct tree_case *t = tree_case(test);
	unsigned int i;

	for (i = 0; i < 3; i++)
		fairwq_tree_add(&t->tree, &t->node[i]);
	at_limit(test, t, "121212121212121");
	KUNIT_EXPECT_EQ(test, 70ULL, t->rank->clock);
	for (i = 0; i < 2; i++)
		at_limit(test, t, "");
	tree_expect(test, t, 10, "20");
}

/* What a node at a limit of 1 lacks beside a light one is no claim for two turns at a time. */
static void lag_is_no_claim_for_more_turns_at_a_time(struct kunit *test)
{
	struct tree_case *t = tree_case(test);
	unsigned int n = 0;

	fairwq_tree_set_weight(&t->node[1], 1);
	fairwq_tree_add(&t->tree, &t->node[0]);
	fairwq_tree_add(&t->tree, &t->node[1]);
	KUNIT_EXPECT_EQ(test, 0U, tree_turn(t, 10));
	fairwq_tree_del(&t->tree, &t->node[0]);
	tree_expect(test, t, 10, "111");
	fairwq_tree_add(&t->tree, &t->node[0]);
	fairwq_tree_add(&t->tree, &t->node[2]);
	/* At a limit of 2, with one turn under way when the next one begins. */
	while (n < 100 && tree_turn(t, 10) == 0) {
		fairwq_tree_del(&t->tree, &t->node[0]);
		fairwq_tree_correct(&t->tree, &t->node[0], 0, false);
		fairwq_tree_add(&t->tree, &t->node[0]);
		n++;
	}
	KUNIT_EXPECT_LE(test, n, 8U);
}

/* A node whose last turn had ended before it joined again was idle, and does not catch up. */
static void idle_is_absence(struct kunit *test)
{
	struct tree_case *t = tree_case(test);
	unsigned int i;

	for (i = 0; i < 3; i++)
		fairwq_tree_add(&t->tree, &t->node[i]);
	tree_expect(test, t, 10, "0");
	fairwq_tree_del(&t->tree, &t->node[0]);
	tree_expect(test, t, 10, "12121");
	fairwq_tree_correct(&t->tree, &t->node[0], 0, false);
	fairwq_tree_add(&t->tree, &t->node[0]);
	tree_expect(test, t, 10, "201");
}

/* ---- a clock that wraps ------------------------------------------------ */

/* A debt is forgotten after the clock has gone through nearly its whole range. */
static void old_debt_is_forgotten(struct kunit *test)
{
	struct tree_case *t = tree_case(test);
	unsigned int i;

	fairwq_tree_add(&t->tree, &t->node[0]);
	KUNIT_ASSERT_EQ(test, 0U, tree_turn(t, BIT_ULL(40)));
	fairwq_tree_del(&t->tree, &t->node[0]);
	fairwq_tree_add(&t->tree, &t->node[1]);
	for (i = 0; i < 8192; i++)
		KUNIT_ASSERT_EQ(test, 1U, tree_turn(t, BIT_ULL(51)));
	KUNIT_ASSERT_LT(test, t->node[0].vtime - t->rank->clock, FAIRWQ_MAX_LEAD);
	fairwq_tree_add(&t->tree, &t->node[0]);
	KUNIT_EXPECT_EQ(test, 0U, tree_turn(t, 10));
}

/* A recent debt is kept, also if the clock begins a new lap meanwhile. */
static void young_debt_is_kept(struct kunit *test)
{
	struct tree_case *t = tree_case(test);

	t->rank->clock = BIT_ULL(60) - 5;
	t->node[0].vtime = t->rank->clock;
	t->node[0].service = 1;
	t->node[1].vtime = t->rank->clock;
	t->node[1].service = 1;
	fairwq_tree_add(&t->tree, &t->node[0]);
	KUNIT_ASSERT_EQ(test, 0U, tree_turn(t, 40));
	fairwq_tree_del(&t->tree, &t->node[0]);
	fairwq_tree_add(&t->tree, &t->node[1]);
	tree_expect(test, t, 10, "11");
	KUNIT_ASSERT_EQ(test, 1U, t->rank->lap);
	fairwq_tree_add(&t->tree, &t->node[0]);
	tree_expect(test, t, 10, "1101");
}

/* ---- the share of a lower priority -------------------------------------- */

/*
 * Return the service of node 1, in the last rank, out of 640000 for it and node
 * 0, in the first rank. If @guessed, turns are charged 50, and corrected when
 * they end.
 */
static u64 low_share(struct kunit *test, u64 high_cost, u64 low_cost, bool guessed)
{
	struct tree_case *t = tree_case(test);
	struct fairwq_node *low = &t->node[1], *node;
	u64 charged = guessed ? 50 : 0, cost;
	bool out_of_rank;

	fairwq_tree_set_unit(&t->tree, 0, 10);
	fairwq_node_init(low, &t->tree.rank[FAIRWQ_NR_RANKS - 1], 100);
	fairwq_tree_add(&t->tree, &t->node[0]);
	fairwq_tree_add(&t->tree, low);
	while (low->service + t->node[0].service < 640000) {
		node = fairwq_tree_pick(&t->tree);
		cost = node == low ? low_cost : high_cost;
		out_of_rank = fairwq_tree_charge(&t->tree, node, charged ?: cost);
		KUNIT_EXPECT_EQ(test, node == low, out_of_rank);
		if (!guessed)
			continue;
		fairwq_tree_correct(&t->tree, node, (s64)(cost - charged), out_of_rank);
	}
	return low->service;
}

static void expect_low_share(struct kunit *test, u64 high_cost, u64 low_cost)
{
	u64 share = 640000 / 64, slack = high_cost + 2 * low_cost, got;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		got = low_share(test, high_cost, low_cost, i);
		KUNIT_EXPECT_LE(test, got, share + slack);
		KUNIT_EXPECT_GE(test, got + slack, share);
	}
}

/* The last rank gets 1/64 of the service, not of the turns. */
static void low_share_is_of_cost(struct kunit *test)
{
	expect_low_share(test, 10, 10);
	expect_low_share(test, 1, 500);
	expect_low_share(test, 500, 1);
	expect_low_share(test, 30, 90);
}

/* Set @got to the share of each rank, in thousandths, if its turns cost @cost each. */
static void three_shares(struct kunit *test, unsigned int starve_limit, const u64 cost[], u64 got[])
{
	struct tree_case *t = tree_case(test);
	struct fairwq_node *node;
	unsigned int i;
	u64 all;

	fairwq_tree_set_unit(&t->tree, 0, 10);
	fairwq_tree_set_starve_limit(&t->tree, starve_limit);
	for (i = 0; i < FAIRWQ_NR_RANKS; i++) {
		fairwq_node_init(&t->node[i], &t->tree.rank[i], 100);
		fairwq_tree_add(&t->tree, &t->node[i]);
	}
	do {
		node = fairwq_tree_pick(&t->tree);
		fairwq_tree_charge(&t->tree, node, cost[node - t->node]);
		for (all = 0, i = 0; i < FAIRWQ_NR_RANKS; i++)
			all += t->node[i].service;
	} while (all < 4000000);
	for (i = 0; i < FAIRWQ_NR_RANKS; i++)
		got[i] = div64_u64(t->node[i].service * 1000, all);
}

/* Each of the two lower ranks gets its share, whatever the turns of each rank cost. */
static void each_lower_rank_gets_its_share(struct kunit *test)
{
	static const unsigned int limit[] = { 1, 2, 3, 5, 63 };
	static const u64 cost[][FAIRWQ_NR_RANKS] = {
		{ 10, 10, 10 }, { 100, 10, 10 }, { 1000, 10, 10 }, { 10, 100, 100 },
		{ 10, 1000, 10 }, { 10, 10, 1000 }, { 1000, 10, 1000 },
	};
	u64 got[FAIRWQ_NR_RANKS], share;
	unsigned int i, j, low;

	for (i = 0; i < ARRAY_SIZE(limit); i++) {
		/* With a limit of 1 each share would be a half, so each rank gets a third. */
		share = 1000 / (max(limit[i], 2U) + 1);
		for (j = 0; j < ARRAY_SIZE(cost); j++) {
			three_shares(test, limit[i], cost[j], got);
			for (low = 1; low < FAIRWQ_NR_RANKS; low++) {
				KUNIT_EXPECT_GE_MSG(test, got[low] + 5, share,
						    "starve limit %u, costs %u", limit[i], j);
				KUNIT_EXPECT_LE_MSG(test, got[low], share + 5,
						    "starve limit %u, costs %u", limit[i], j);
			}
		}
	}
}

/* With a lower starve limit, a rank also waits less for a turn that it has already had. */
static void lower_starve_limit_is_less_debt(struct kunit *test)
{
	struct tree_case *t = tree_case(test);
	unsigned int turns = 0;

	fairwq_tree_set_unit(&t->tree, 0, 10);
	fairwq_node_init(&t->node[1], &t->tree.rank[1], 100);
	fairwq_tree_add(&t->tree, &t->node[0]);
	fairwq_tree_add(&t->tree, &t->node[1]);
	/* Charge a turn out of rank that is as long as 100 turns. */
	fairwq_tree_charge(&t->tree, &t->node[1], 1000);
	fairwq_tree_set_starve_limit(&t->tree, 3);
	while (turns < 1000 && !tree_turn(t, 10))
		turns++;
	KUNIT_EXPECT_EQ(test, 303U, turns);
}

/* ---- fair time -------------------------------------------------------- */

/* An item that runs for 1 ms at least, and until @go_on is set. */
struct slow {
	struct mock_item item;
	struct completion *entered;
	const bool *go_on;
};

static void slow_fn(struct fairwq_work *work)
{
	struct slow *slow = container_of(work, struct slow, item.work);
	struct mock_bound bound = mock_bound(MOCK_WAIT_MS);
	u64 end = fairwq_clock() + NSEC_PER_MSEC;

	mock_log_add(slow->item.log, slow->item.letter);
	complete(slow->entered);
	while (fairwq_clock() < end ||
	       (!READ_ONCE(*slow->go_on) && !mock_bound_reached(&bound)))
		cond_resched();
}

static void slow_init(struct slow *slow, struct mock *mock, char letter,
		      struct completion *entered, const bool *go_on)
{
	fairwq_work_init(&slow->item.work, slow_fn);
	slow->item.log = &mock->log;
	slow->item.letter = letter;
	slow->entered = entered;
	slow->go_on = go_on;
}

/* A batch that had 500 short items goes before one that had a long item. */
static void many_short_go_before_one_long(struct kunit *test)
{
	struct slow *slow = kunit_kzalloc(test, sizeof(*slow), GFP_KERNEL);
	struct mock *mock = test->priv;
	DECLARE_COMPLETION_ONSTACK(entered);
	struct mock_gate hold;
	struct fairwq_batch *a, *b;
	bool go_on = false;
	u64 end;

	KUNIT_ASSERT_NOT_NULL(test, slow);
	mock_gate_init(&hold);
	mock_pool_by(test, 2, FAIRWQ_FAIR_TIME);
	a = mock_batch(test, "a");
	b = mock_batch(test, "b");
	slow_init(slow, mock, 'A', &entered, &go_on);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &slow->item.work));
	mock_await(test, &entered);
	mock_free_runners(test);
	/* These items all run while the long item of a does. */
	mock_queue(test, b, '.', 500);
	fairwq_batch_flush(b);
	/* Both runners are busy when the two items are queued, that of a first. */
	KUNIT_ASSERT_EQ(test, 1, mock_pool_queue(mock->pool, &hold.work));
	mock_await(test, &hold.entered);
	mock_queue(test, a, 'a', 1);
	mock_queue(test, b, 'b', 1);
	/*
	 * a is forgiven as much as b and @hold had, so its item must take
	 * longer than that. It takes as long as theirs and these 20 ms, however
	 * long the host stops them.
	 */
	end = fairwq_clock() + 20 * NSEC_PER_MSEC;
	mock_until(test, fairwq_clock() > end);
	WRITE_ONCE(go_on, true);
	mock_until(test, READ_ONCE(mock->log.nr) == 503);
	complete_all(&hold.open);
	KUNIT_EXPECT_STREQ(test, "ba", &mock->log.text[501]);
	fairwq_pool_flush(mock->pool);
}

/* Turns that are under way count with their estimates: 8 short ones beside 2 long ones. */
static void runners_do_not_pile_up(struct kunit *test)
{
	struct mock_gate *gate = kunit_kcalloc(test, 20, sizeof(*gate), GFP_KERNEL);
	struct mock *mock = test->priv;
	struct fairwq_batch *batch[2];
	unsigned int i, runs[2] = { };

	KUNIT_ASSERT_NOT_NULL(test, gate);
	mock_pool_by(test, 1, FAIRWQ_FAIR_TIME);
	for (i = 0; i < 20; i++)
		mock_gate_init(&gate[i]);
	for (i = 0; i < 2; i++)
		batch[i] = mock_batch(test, "p");
	mock_set_guess(batch[0], 4 * NSEC_PER_MSEC);
	mock_set_guess(batch[1], NSEC_PER_MSEC);
	for (i = 0; i < 20; i++)
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch[i / 10], &gate[i].work));
	/* Let ten turns begin, none of which ends. */
	KUNIT_ASSERT_EQ(test, 0, fairwq_pool_set_max_active(mock->pool, 11));
	mock_until(test, mock_nr_turns(mock->pool) == 11);
	for (i = 0; i < 2; i++)
		runs[i] = 10 - fairwq_inbox_nr_queued(batch[i]);
	for (i = 0; i < 20; i++)
		complete_all(&gate[i].open);
	mock_open(test);
	fairwq_pool_flush(mock->pool);
	KUNIT_EXPECT_EQ(test, 2U, runs[0]);
	KUNIT_EXPECT_EQ(test, 8U, runs[1]);
}

/* Return what @batch is charged for a turn before that has ended, ns. */
static u64 charged_for(struct kunit *test, struct fairwq_batch *batch)
{
	struct mock_gate *gate = mock_gate_new(test);
	u64 before = batch->node.service, during;

	mock_gate_enter(test, batch, gate);
	during = batch->node.service;
	complete_all(&gate->open);
	fairwq_batch_flush(batch);
	return during - before;
}

#define LONGEST_NS	(4UL * NSEC_PER_SEC)	/* as much as fits into a u32 */

/* A turn is charged the time of the longest recent turn, FAIRWQ_RUN_TIME_MAX_NS at most. */
static void longest_turn_is_charged(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin_by(test, 1, FAIRWQ_FAIR_TIME);
	u64 longest, all;
	unsigned int i;

	mock_open(test);
	KUNIT_EXPECT_EQ(test, (u64)FAIRWQ_DFL_SLICE_US * NSEC_PER_USEC, charged_for(test, a));
	mock_set_guess(a, LONGEST_NS);
	for (i = 0; i < 200; i++)
		mock_queue(test, a, 'a', 1);
	fairwq_batch_flush(a);
	/* None of these items took so long, but it is remembered. */
	KUNIT_EXPECT_EQ(test, FAIRWQ_RUN_TIME_MAX_NS, charged_for(test, a));
	/* After 512 more turns it is forgotten. One of these may take longer, on a slow host. */
	all = ktime_get_ns();
	for (i = 0; i < 512; i++)
		mock_queue(test, a, 'a', 1);
	fairwq_batch_flush(a);
	all = ktime_get_ns() - all;
	longest = max(a->stats->recent.longest[0], a->stats->recent.longest[1]);
	KUNIT_EXPECT_EQ(test, min(longest, FAIRWQ_RUN_TIME_MAX_NS), charged_for(test, a));
	KUNIT_EXPECT_LE(test, longest, all);
}

/* A wrong estimate delays a HIGH item by one item, and not by those behind that. */
static void wrong_guess_is_for_one_item(struct kunit *test)
{
	struct slow *slow = kunit_kcalloc(test, 6, sizeof(*slow), GFP_KERNEL);
	struct mock *mock = test->priv;
	DECLARE_COMPLETION_ONSTACK(entered);
	struct fairwq_batch *a;
	bool go_on = false;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, slow);
	a = mock_begin_by(test, 1, FAIRWQ_FAIR_TIME);
	mock_set_guess(a, 100);
	for (i = 0; i < 6; i++) {
		slow_init(&slow[i], mock, '1' + i, &entered, &go_on);
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &slow[i].item.work));
	}
	mock_open(test);
	mock_await(test, &entered);
	mock_queue(test, fairwq_pool_default_batch(mock->pool, FAIRWQ_PRIO_HIGH), 'h', 1);
	WRITE_ONCE(go_on, true);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_STREQ(test, "1h23456", &mock->log.text[0]);
}

/* ---- shares by what was measured (promise 6) -------------------------- */

/* An item that spins, and sets the next estimate of its batch to @guess, if not 0. */
struct liar {
	struct fairwq_work work;
	struct fairwq_batch *batch;
	struct judge *judge;
	unsigned long guess;
	unsigned int spin_us;		/* or longer */
};

static void liar_fn(struct fairwq_work *work)
{
	struct liar *liar = container_of(work, struct liar, work);
	u64 end = fairwq_clock() + (u64)liar->spin_us * NSEC_PER_USEC;

	if (liar->guess)
		mock_set_guess(liar->batch, liar->guess);
	while (liar->spin_us && fairwq_clock() < end)
		cpu_relax();
	judge_look(liar->judge);
}

static void queue_liars(struct kunit *test, struct fairwq_batch *batch, unsigned int nr,
			unsigned long guess, unsigned int spin_us)
{
	struct liar *liar = kunit_kcalloc(test, nr, sizeof(*liar), GFP_KERNEL);
	struct mock *mock = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, liar);
	for (; nr--; liar++) {
		fairwq_work_init(&liar->work, liar_fn);
		liar->batch = batch;
		liar->judge = &mock->judge;
		liar->guess = guess;
		liar->spin_us = spin_us;
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &liar->work));
	}
}

/*
 * Shares go by measured times, not by estimates. A turn of a takes 400 us, with
 * an estimate of 1 us. A turn of b takes no time, with an estimate of 400 us.
 * mock_exit() asks the judge.
 */
static void shares_go_by_what_was_measured(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a, *b;

	a = mock_begin_by(test, 1, FAIRWQ_FAIR_TIME);
	b = mock_batch(test, "b");
	queue_liars(test, a, 1500, 1000, 400);
	queue_liars(test, b, 3000, 400000, 0);
	mock_open(test);
	mock_until(test, READ_ONCE(mock->judge.judged) >= 1000);
	/* The remaining items of a would take half a second. */
	fairwq_batch_flush(b);
	fairwq_batch_cancel(a, NULL);
	fairwq_pool_flush(mock->pool);
}

/* Shares are right for items of 0 to 20 us and weights from 1 to 10000. */
static void time_is_shared_by_weight(struct kunit *test)
{
	static const unsigned int weight[] = { 1, 100, 100, 300, 10000 };
	struct mock *mock = test->priv;
	struct fairwq_batch *batch[5];
	unsigned int i;

	mock_pool_by(test, 2, FAIRWQ_FAIR_TIME);
	for (i = 0; i < 5; i++) {
		batch[i] = mock_batch_weight(test, "w", weight[i]);
		queue_liars(test, batch[i], 1600, 0, i == 2 ? 20 : i);
	}
	mock_open(test);
	fairwq_pool_flush(mock->pool);
	KUNIT_EXPECT_GE(test, mock->judge.judged, 1000ULL);
}

/* ---- charges match the service ---------------------------------------- */

struct policy_case {
	const char *desc;
	enum fairwq_policy policy;
};

static const struct policy_case policy_cases[] = {
	{ "round robin", FAIRWQ_ROUND_ROBIN }, { "fair time", FAIRWQ_FAIR_TIME },
};

static void policy_case_desc(const struct policy_case *c, char *desc)
{
	strscpy(desc, c->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(policy, policy_cases, policy_case_desc);

/*
 * Expect that @batch, which is idle, was charged exactly the cost of its turns.
 * With fair time that is at most the time since @began, if no two of its items
 * ran at once.
 */
static void expect_paid(struct kunit *test, struct fairwq_batch *batch, u64 began)
{
	mock_let_settle(batch);
	KUNIT_EXPECT_GE(test, batch->done, 1ULL);
	if (batch->pool->policy == FAIRWQ_ROUND_ROBIN)
		KUNIT_EXPECT_EQ(test, batch->done, batch->node.service);
	else
		KUNIT_EXPECT_LE(test, batch->node.service, fairwq_clock() - began);
}

/* A parked item is charged once, when it runs. */
static void parked_is_paid_once(struct kunit *test)
{
	const struct policy_case *c = test->param_value;
	struct mock_gate *gate = mock_gate_new(test);
	struct mock *mock = test->priv;
	u64 began = fairwq_clock();
	struct fairwq_batch *a, *b;

	a = mock_begin_by(test, 3, c->policy);
	b = mock_batch(test, "b");
	/* Each charge that is not put right is seen, unless the case takes as long. */
	mock_set_guess(b, FAIRWQ_RUN_TIME_MAX_NS);
	mock_gate_enter(test, a, gate);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(b, &gate->work));
	mock_queue(test, b, 'b', 3);
	mock_until(test, READ_ONCE(mock->log.nr) == 3);
	KUNIT_EXPECT_EQ(test, 1U, READ_ONCE(b->nr_parked));
	complete_all(&gate->open);
	fairwq_batch_flush(a);
	fairwq_batch_flush(b);
	KUNIT_EXPECT_EQ(test, 1ULL, mock_counter(mock->pool, FAIRWQ_PARKED));
	expect_paid(test, a, began);
	expect_paid(test, b, began);
}

/* A cancelled item is not charged. */
static void cancelled_is_not_paid(struct kunit *test)
{
	const struct policy_case *c = test->param_value;
	struct mock_gate *gate = mock_gate_new(test);
	struct mock *mock = test->priv;
	struct mock_item *item[8];
	u64 began = fairwq_clock();
	struct fairwq_batch *a;
	unsigned int i;

	a = mock_begin_by(test, 2, c->policy);
	mock_set_guess(a, 100);
	fairwq_batch_pause(a);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &gate->work));
	for (i = 0; i < 8; i++) {
		item[i] = mock_item(test, 'a' + i);
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &item[i]->work));
	}
	fairwq_batch_resume(a);
	mock_await(test, &gate->entered);
	for (i = 0; i < 8; i += 2)
		KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&item[i]->work));
	complete_all(&gate->open);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_STREQ(test, "bdfh", &mock->log.text[0]);
	KUNIT_EXPECT_EQ(test, 5ULL, a->done);
	expect_paid(test, a, began - (fairwq_clock() - began));	/* two runners */
}

/* ---- owners ----------------------------------------------------------- */

static struct fairwq_batch *owned(struct kunit *test, struct fairwq_batch *parent,
				  unsigned int weight)
{
	struct fairwq_batch_attrs attrs = { .parent = parent, .weight = weight };

	return mock_own_batch(test, "owned", &attrs);
}

/* A client with three batches below an owner gets as many turns as one with one batch. */
static void many_batches_gain_nothing(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_batch *b = mock_batch(test, "b");
	struct fairwq_batch *c[3];
	unsigned int i;

	mock_queue(test, a, 'a', 6);
	for (i = 0; i < 3; i++) {
		c[i] = owned(test, b, 0);
		mock_queue(test, c[i], '1' + i, 2);
	}
	mock_expect(test, "a1a2a3a1a2a3");
	for (i = 0; i < 3; i++)
		fairwq_batch_dispose(c[i]);
}

/* An owner with items of its own keeps its place, and counts as one of its batches. */
static void owner_has_items_of_its_own(struct kunit *test)
{
	struct fairwq_batch *a, *b, *c;

	mock_pool(test, 1);
	b = mock_batch_weight(test, "b", 200);
	a = mock_batch(test, "a");
	mock_queue(test, b, 'b', 4);
	mock_queue(test, a, 'a', 4);
	c = owned(test, b, 0);
	mock_queue(test, c, 'c', 4);
	/* b and c get the same number of turns, together twice as many as a. */
	mock_expect(test, "bacbacbacbac");
	fairwq_batch_dispose(c);
}

/* A new weight of an owner applies to all batches below it, also after its disposal. */
static void owner_goes_first(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_batch *b = mock_own_batch(test, "b", NULL);
	struct fairwq_batch *c, *d;

	c = owned(test, b, 0);
	d = owned(test, c, 0);
	fairwq_batch_get(b);
	fairwq_batch_dispose(b);
	fairwq_batch_dispose(c);
	mock_until(test, mock_nr_batches(mock->pool) == 6);
	mock_queue(test, a, 'a', 3);
	mock_queue(test, d, 'd', 6);
	KUNIT_EXPECT_EQ(test, 0, fairwq_batch_set_weight(b, 200));
	fairwq_batch_put(b);
	mock_expect(test, "daddaddad");
	fairwq_batch_dispose(d);
}

static void bad_owners_are_refused(struct kunit *test)
{
	struct fairwq_pool *other = fairwq_pool_create(NULL, "other");
	struct fairwq_batch_attrs attrs = { };
	struct mock *mock = test->priv;
	struct fairwq_batch *batch[9];
	unsigned int i;

	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	mock_pool(test, 1);
	attrs.parent = fairwq_pool_default_batch(other, FAIRWQ_PRIO_NORMAL);
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR(fairwq_batch_create(mock->pool, &attrs, "x")));
	attrs.parent = fairwq_pool_default_batch(mock->pool, FAIRWQ_PRIO_LOW);
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR(fairwq_batch_create(mock->pool, &attrs, "x")));
	batch[0] = mock_own_batch(test, "top", NULL);
	for (i = 1; i < 9; i++)
		batch[i] = owned(test, batch[i - 1], 0);
	attrs.parent = batch[8];
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR(fairwq_batch_create(mock->pool, &attrs, "x")));
	attrs.parent = batch[0];
	fairwq_batch_get(batch[0]);
	for (i = 0; i < 9; i++)
		fairwq_batch_dispose(batch[i]);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN,
			PTR_ERR(fairwq_batch_create(mock->pool, &attrs, "x")));
	fairwq_batch_put(batch[0]);
	fairwq_pool_destroy(other);
}

/* ---- a change of the policy ------------------------------------------- */

/* After a change of the policy, the debt of 1 ms that a had is forgotten. */
static void another_unit_begins_at_nothing(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a, *b;
	struct mock_gate hold;
	u64 end;

	mock_gate_init(&hold);
	mock->gate.computes = true;
	mock_pool_by(test, 1, FAIRWQ_FAIR_TIME);
	a = mock->gate_batch;
	b = mock_batch(test, "b");
	end = fairwq_clock() + NSEC_PER_MSEC;	/* or later */
	mock_until(test, fairwq_clock() > end);
	KUNIT_ASSERT_EQ(test, 1, mock_pool_queue(mock->pool, &hold.work));
	mock_open(test);
	mock_await(test, &hold.entered);
	mock_queue(test, a, 'a', 4);
	mock_queue(test, b, 'b', 4);
	fairwq_pool_set_policy(mock->pool, FAIRWQ_ROUND_ROBIN);
	complete_all(&hold.open);
	mock_expect(test, "abababab");
	fairwq_pool_flush(mock->pool);
	expect_paid(test, b, 0);
}

/* A turn that is under way when the policy changes is not corrected. */
static void turn_of_the_old_policy_is_not_corrected(struct kunit *test)
{
	static const enum fairwq_policy policy[] = {
		FAIRWQ_FAIR_TIME, FAIRWQ_ROUND_ROBIN, FAIRWQ_FAIR_TIME,
	};
	struct mock *mock = test->priv;
	struct fairwq_batch *a;
	unsigned int i;
	u64 gate, all;

	mock->gate.computes = true;
	mock_pool_by(test, 1, FAIRWQ_FAIR_TIME);
	gate = fairwq_clock();
	a = mock->gate_batch;
	mock_queue(test, a, 'a', 3);
	for (i = 1; i < ARRAY_SIZE(policy); i++)
		fairwq_pool_set_policy(mock->pool, policy[i]);
	KUNIT_EXPECT_EQ(test, 0ULL, a->node.service);
	msleep(50);		/* of the gate; or longer */
	all = gate;
	gate = fairwq_clock() - gate;
	mock_open(test);
	fairwq_batch_flush(a);
	mock_let_settle(a);
	all = fairwq_clock() - all;
	KUNIT_EXPECT_STREQ(test, "aaa", &mock->log.text[0]);
	/* The turn of the gate was charged under an earlier policy, and is not counted. */
	KUNIT_EXPECT_LE(test, a->node.service, all - gate);
	KUNIT_EXPECT_GT(test, a->node.service, 0ULL);
}

static struct kunit_case fair_cases[] = {
	KUNIT_CASE(dearer_turn_is_paid_later),
	KUNIT_CASE(cheaper_turn_is_given_back),
	KUNIT_CASE(cost_less_moves_no_clock),
	KUNIT_CASE(idle_node_keeps_debt_and_no_credit),
	KUNIT_CASE(joining_under_way_gets_the_place_of_the_true_cost),
	KUNIT_CASE(turn_that_began_after_joining_is_corrected_in_full),
	KUNIT_CASE(correction_counts_by_weight_in_groups),
	KUNIT_CASE(more_is_charged_later),
	KUNIT_CASE(debt_has_a_limit),
	KUNIT_CASE(newcomers_starve_no_batch),
	KUNIT_CASE(newcomers_below_an_owner_starve_no_sibling),
	KUNIT_CASE(light_newcomer_waits_longer),
	KUNIT_CASE(limit_is_no_absence),
	KUNIT_CASE(limit_is_no_credit),
	KUNIT_CASE(lag_is_no_claim_for_more_turns_at_a_time),
	KUNIT_CASE(idle_is_absence),
	KUNIT_CASE(old_debt_is_forgotten),
	KUNIT_CASE(young_debt_is_kept),
	KUNIT_CASE(low_share_is_of_cost),
	KUNIT_CASE(each_lower_rank_gets_its_share),
	KUNIT_CASE(lower_starve_limit_is_less_debt),
	KUNIT_CASE(many_short_go_before_one_long),
	KUNIT_CASE(runners_do_not_pile_up),
	KUNIT_CASE(longest_turn_is_charged),
	KUNIT_CASE(wrong_guess_is_for_one_item),
	KUNIT_CASE(shares_go_by_what_was_measured),
	KUNIT_CASE(time_is_shared_by_weight),
	KUNIT_CASE_PARAM(parked_is_paid_once, policy_gen_params),
	KUNIT_CASE_PARAM(cancelled_is_not_paid, policy_gen_params),
	KUNIT_CASE(many_batches_gain_nothing),
	KUNIT_CASE(owner_has_items_of_its_own),
	KUNIT_CASE(owner_goes_first),
	KUNIT_CASE(bad_owners_are_refused),
	KUNIT_CASE(another_unit_begins_at_nothing),
	KUNIT_CASE(turn_of_the_old_policy_is_not_corrected),
	{}
};

static struct kunit_suite fair_suite = {
	.name = "fairwq_core_tree",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = fair_cases,
};

kunit_test_suite(fair_suite);

MODULE_DESCRIPTION("KUnit: what a turn costs");
MODULE_LICENSE("GPL");
