// SPDX-License-Identifier: GPL-2.0
/*
 * What a turn costs and who pays for it: the arithmetic of the tree, on the
 * tree alone, where every figure is exact.
 */
#include "mock.h"

/* Once more, as it stands, for what it does not show to others. */
#include "../pick.c"

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
	fairwq_tree_init(&t->tree, false);
	t->rank = &t->tree.rank[0];
	for (i = 0; i < FEW; i++)
		fairwq_node_init(&t->node[i], t->rank, 100);
	return t;
}

/* Who is next takes a turn of @cost. Returns which. */
static unsigned int tree_turn(struct tree_case *t, u64 cost)
{
	struct fairwq_node *node = fairwq_tree_pick(&t->tree);

	fairwq_tree_charge(&t->tree, node, cost);
	return node - t->node;
}

/* Whose are the next turns, at @cost each? One digit per turn. */
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

/* A turn that cost more than was charged is paid for by those that follow. */
static void cost_more(struct kunit *test)
{
	struct tree_case *t = tree_case(test);

	fairwq_tree_add(&t->tree, &t->node[0], 0);
	fairwq_tree_add(&t->tree, &t->node[1], 0);
	KUNIT_ASSERT_EQ(test, 0U, tree_turn(t, 10));
	fairwq_tree_correct(&t->tree, &t->node[0], 25);
	KUNIT_EXPECT_EQ(test, 35ULL, t->node[0].service);
	/* 0 stands at 35: 1 gets four turns, of 0, 10, 20, 30. */
	tree_expect(test, t, 10, "11110101");
}

/* A turn that cost less is given back, and the next one comes the sooner. */
static void cost_less(struct kunit *test)
{
	struct tree_case *t = tree_case(test);

	fairwq_tree_add(&t->tree, &t->node[0], 0);
	fairwq_tree_add(&t->tree, &t->node[1], 0);
	KUNIT_ASSERT_EQ(test, 0U, tree_turn(t, 40));
	tree_expect(test, t, 10, "11");
	fairwq_tree_correct(&t->tree, &t->node[0], -35);
	KUNIT_EXPECT_EQ(test, 5ULL, t->node[0].service);
	/* 0 stands at 5 and 1 at 20. */
	tree_expect(test, t, 10, "001010");
}

/* What a correction gives back is given to nobody else. */
static void cost_less_moves_no_clock(struct kunit *test)
{
	struct tree_case *t = tree_case(test);
	u64 clock;

	fairwq_tree_add(&t->tree, &t->node[0], 0);
	fairwq_tree_add(&t->tree, &t->node[1], 0);
	KUNIT_ASSERT_EQ(test, 0U, tree_turn(t, 100));
	tree_expect(test, t, 10, "1111");
	clock = t->rank->clock;
	KUNIT_EXPECT_EQ(test, 30ULL, clock);
	fairwq_tree_correct(&t->tree, &t->node[0], -100);
	KUNIT_EXPECT_EQ(test, clock, t->rank->clock);
	/* 2 joins at 30, next to 1, and is served when 0 has caught up. */
	fairwq_tree_add(&t->tree, &t->node[2], 0);
	KUNIT_EXPECT_EQ(test, clock, t->node[2].vtime);
	tree_expect(test, t, 10, "000201");
}

/* A debt is kept while idle; what is owed is not, as credit never is. */
static void corrected_while_idle(struct kunit *test)
{
	struct tree_case *t = tree_case(test);

	fairwq_tree_add(&t->tree, &t->node[0], 0);
	fairwq_tree_add(&t->tree, &t->node[1], 0);
	fairwq_tree_add(&t->tree, &t->node[2], 0);
	tree_expect(test, t, 10, "012");
	fairwq_tree_del(&t->tree, &t->node[0]);
	fairwq_tree_del(&t->tree, &t->node[1]);
	fairwq_tree_correct(&t->tree, &t->node[0], 40);
	fairwq_tree_correct(&t->tree, &t->node[1], -9);
	tree_expect(test, t, 10, "22");
	fairwq_tree_add(&t->tree, &t->node[0], 0);
	fairwq_tree_add(&t->tree, &t->node[1], 0);
	KUNIT_EXPECT_EQ(test, 50ULL, t->node[0].vtime);
	KUNIT_EXPECT_EQ(test, 20ULL, t->node[1].vtime);
}

/*
 * 0 has one item at a time, and queues the next before it is known what the
 * one before has cost. Where does it stand when that is known?
 */
static u64 closed_loop(struct kunit *test, u64 charged, unsigned int meanwhile, u64 cost)
{
	struct tree_case *t = tree_case(test);
	u64 stands;

	fairwq_tree_add(&t->tree, &t->node[0], 0);
	fairwq_tree_add(&t->tree, &t->node[1], 0);
	KUNIT_ASSERT_EQ(test, 0U, tree_turn(t, charged));
	fairwq_tree_del(&t->tree, &t->node[0]);
	while (meanwhile--)
		tree_turn(t, 10);
	fairwq_tree_add(&t->tree, &t->node[0], 0);
	fairwq_tree_correct(&t->tree, &t->node[0], cost - charged);
	KUNIT_EXPECT_EQ(test, cost, t->node[0].service);
	stands = t->node[0].vtime;
	/* That was that: it holds for one turn, and for no other. */
	fairwq_tree_charge(&t->tree, &t->node[0], 10);
	fairwq_tree_correct(&t->tree, &t->node[0], 7);
	KUNIT_EXPECT_EQ(test, stands + 17, t->node[0].vtime);
	return stands;
}

/* Where it would stand had the cost been known: at that, or at the clock. */
static void joined_while_under_way(struct kunit *test)
{
	/* Six turns of 1 meanwhile, and the clock is at 50. */
	KUNIT_EXPECT_EQ(test, 60ULL, closed_loop(test, 10, 6, 60));
	KUNIT_EXPECT_EQ(test, 50ULL, closed_loop(test, 10, 6, 45));
	KUNIT_EXPECT_EQ(test, 50ULL, closed_loop(test, 10, 6, 10));
	KUNIT_EXPECT_EQ(test, 50ULL, closed_loop(test, 10, 6, 5));
	KUNIT_EXPECT_EQ(test, 50ULL, closed_loop(test, 80, 6, 30));
	KUNIT_EXPECT_EQ(test, 70ULL, closed_loop(test, 80, 6, 70));
	KUNIT_EXPECT_EQ(test, 90ULL, closed_loop(test, 80, 6, 90));
	KUNIT_EXPECT_EQ(test, 15ULL, closed_loop(test, 10, 0, 15));
}

/* Two turns under way, and only the older one is from before. */
static void joined_with_two_under_way(struct kunit *test)
{
	struct tree_case *t = tree_case(test);

	fairwq_tree_add(&t->tree, &t->node[0], 0);
	fairwq_tree_add(&t->tree, &t->node[1], 0);
	KUNIT_ASSERT_EQ(test, 0U, tree_turn(t, 10));
	fairwq_tree_del(&t->tree, &t->node[0]);
	tree_expect(test, t, 10, "111111");
	fairwq_tree_add(&t->tree, &t->node[0], 0);
	KUNIT_ASSERT_EQ(test, 0U, tree_turn(t, 10));
	KUNIT_EXPECT_EQ(test, 60ULL, t->node[0].vtime);
	/* It had been forgiven 40, and 30 of that was service. */
	fairwq_tree_correct(&t->tree, &t->node[0], 30);
	KUNIT_EXPECT_EQ(test, 60ULL, t->node[0].vtime);
	fairwq_tree_correct(&t->tree, &t->node[0], 30);
	KUNIT_EXPECT_EQ(test, 90ULL, t->node[0].vtime);
	/* Idle for long with nothing under way: nobody asks how long. */
	fairwq_tree_del(&t->tree, &t->node[0]);
	tree_expect(test, t, 10, "1111111111");
	fairwq_tree_add(&t->tree, &t->node[0], 0);
	KUNIT_ASSERT_EQ(test, 0U, tree_turn(t, 10));
	KUNIT_EXPECT_EQ(test, 160ULL, t->node[0].vtime);
	fairwq_tree_correct(&t->tree, &t->node[0], 5);
	KUNIT_EXPECT_EQ(test, 165ULL, t->node[0].vtime);
}

/* By weight, as the charge was, at every level up to the rank. */
static void corrected_by_weight_in_groups(struct kunit *test)
{
	struct tree_case *t = tree_case(test);
	struct fairwq_node *group = &t->node[0], *leaf = &t->node[1];

	fairwq_node_init(group, t->rank, 200);
	fairwq_node_init(leaf, group, 50);
	fairwq_tree_add(&t->tree, leaf, 0);
	KUNIT_ASSERT_EQ(test, 1U, tree_turn(t, 1000));
	KUNIT_EXPECT_EQ(test, 2000ULL, leaf->vtime);
	KUNIT_EXPECT_EQ(test, 500ULL, group->vtime);
	fairwq_tree_correct(&t->tree, leaf, 200);
	KUNIT_EXPECT_EQ(test, 2400ULL, leaf->vtime);
	KUNIT_EXPECT_EQ(test, 600ULL, group->vtime);
	fairwq_tree_correct(&t->tree, leaf, -1000);
	KUNIT_EXPECT_EQ(test, 400ULL, leaf->vtime);
	KUNIT_EXPECT_EQ(test, 100ULL, group->vtime);
	KUNIT_EXPECT_EQ(test, 200ULL, leaf->service);
	KUNIT_EXPECT_EQ(test, 200ULL, group->service);
}

/* A turn that is refunded was never one. */
static void refund_undoes_a_charge(struct kunit *test)
{
	struct tree_case *t = tree_case(test);

	fairwq_tree_add(&t->tree, &t->node[0], 0);
	fairwq_tree_add(&t->tree, &t->node[1], 0);
	tree_expect(test, t, 10, "010");
	fairwq_tree_refund(&t->tree, &t->node[0], 10);
	KUNIT_EXPECT_EQ(test, 10ULL, t->node[0].service);
	KUNIT_EXPECT_EQ(test, 10ULL, t->node[0].vtime);
	KUNIT_EXPECT_EQ(test, 10ULL, t->node[1].service);
}

/* However large a debt gets, it is not mistaken for a clock that has wrapped. */
static void debt_has_a_limit(struct kunit *test)
{
	struct tree_case *t = tree_case(test);
	unsigned int i;

	fairwq_node_init(&t->node[0], t->rank, 1);
	fairwq_tree_add(&t->tree, &t->node[0], 0);
	fairwq_tree_add(&t->tree, &t->node[1], 0);
	KUNIT_ASSERT_EQ(test, 0U, tree_turn(t, 10));
	for (i = 0; i < 10; i++)
		fairwq_tree_correct(&t->tree, &t->node[0], BIT_ULL(45));
	KUNIT_EXPECT_EQ(test, FAIRWQ_MAX_LEAD, t->node[0].vtime - t->rank->clock);
	fairwq_tree_del(&t->tree, &t->node[0]);
	fairwq_tree_add(&t->tree, &t->node[0], 0);
	tree_expect(test, t, 10, "1111");
}

static struct kunit_case fair_cases[] = {
	KUNIT_CASE(cost_more),
	KUNIT_CASE(cost_less),
	KUNIT_CASE(cost_less_moves_no_clock),
	KUNIT_CASE(corrected_while_idle),
	KUNIT_CASE(joined_while_under_way),
	KUNIT_CASE(joined_with_two_under_way),
	KUNIT_CASE(corrected_by_weight_in_groups),
	KUNIT_CASE(refund_undoes_a_charge),
	KUNIT_CASE(debt_has_a_limit),
	{}
};

static struct kunit_suite fair_suite = {
	.name = "fairwq_fair",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = fair_cases,
};

kunit_test_suite(fair_suite);

MODULE_DESCRIPTION("KUnit: what a turn costs");
MODULE_LICENSE("GPL");
