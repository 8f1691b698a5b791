/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fair tree: which batch gets the next turn.
 *
 * Pure logic. It takes no lock and allocates nothing; the caller serialises
 * all calls on one tree. It knows nodes, weights and costs, and nothing of
 * works, runners or time.
 */
#ifndef FAIRWQ_TREE_H
#define FAIRWQ_TREE_H

#include <linux/bits.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/types.h>

/* What one turn costs where every turn costs the same. */
#define FAIRWQ_COST_TURN_SHIFT	20
#define FAIRWQ_COST_TURN	BIT_ULL(FAIRWQ_COST_TURN_SHIFT)

/*
 * A lower priority gets so much less than the ones above it, by default. It
 * gets its first turn after so many turns of others.
 */
#define FAIRWQ_PRIO_PATIENCE	63
/* The most that may be set. */
#define FAIRWQ_MAX_PATIENCE	199

/* Priorities by rank: 0 is served first. */
#define FAIRWQ_NR_RANKS		3

/*
 * A debt goes up to here. A node that is further ahead is not ahead: the
 * virtual times have wrapped while it was idle.
 */
#define FAIRWQ_MAX_LEAD		BIT_ULL(52)

/* What the self-check knows of a node directly below a rank; see fairness.c. */
struct fairwq_member {
	struct list_head link;		/* while it is compared */
	u64 base;			/* service when the window began */
	u64 ideal;			/* what the ideal server gave it since, less @vtime there */
	u32 longest_us[2];		/* turns, in this window and in the last */
	u16 longest_streak[2];		/* turns taken by one runner at once, likewise */
};

/* How a node stands among its siblings. */
enum fairwq_standing {
	FAIRWQ_NODE_OUT,	/* not eligible */
	FAIRWQ_NODE_LEADS,	/* in the red-black tree: the first with its key */
	FAIRWQ_NODE_FOLLOWS,	/* has the same key as one that leads */
};

/*
 * One place in the tree.
 *
 * Invariant: a node is in its parent's @children, or in the ring of one that
 * is, iff it is eligible; and a parent below a rank is eligible iff it has
 * eligible children. No two in @children have the same key.
 */
struct fairwq_node {
	struct rb_node rb;		/* while it leads */
	u64 key;			/* what the parent sorts by */
	u64 vtime;			/* service received / weight */
	u64 turn;			/* what its last turn was charged, likewise; */
					/* of a rank: what a turn costs a newcomer */
	struct fairwq_node *parent;	/* NULL: a rank of the tree */
	u64 service;			/* what turns cost in all, whatever the weight */
	struct list_head equals;	/* eligible: a ring, by arrival, from its leader on */
	struct rb_root_cached children;	/* eligible, by key; the first of equals */
	struct fairwq_node *last;	/* of @children; NULL: there are none */
	u64 clock;			/* vtime of the child that was served last */
	u64 step;			/* how far @clock went on at once, the most of late */
	s64 behind;			/* how far behind the clock it joined last, */
					/* if turns were under way */
	u16 open;			/* turns charged and not corrected */
	u16 early;			/* of these, charged before it joined last */
	u16 weight;
	u16 rest;			/* what vtime lacks, in 1 / weight */
	u8 standing;			/* enum fairwq_standing */
	bool joined;			/* and was not served since */
	bool waits;			/* of the caller: has a backlog, and is counted */
	u8 lap;				/* of @clock: how often it has been through a lap */
	u8 left;			/* @lap of its parent when it left last */
	u32 since;			/* of the caller: number of its last turn */
	struct fairwq_member member;
};

struct fairwq_tree {
	struct fairwq_node rank[FAIRWQ_NR_RANKS];
	s64 waited[FAIRWQ_NR_RANKS];	/* while others had service of that cost */
	unsigned int patience;		/* FAIRWQ_PRIO_PATIENCE; 0: lower ones get what is left */
	bool by_arrival;		/* sort by arrival instead of by vtime */
};

void fairwq_tree_init(struct fairwq_tree *tree, bool by_arrival);
void fairwq_tree_set_patience(struct fairwq_tree *tree, unsigned int patience);
void fairwq_tree_set_turn(struct fairwq_tree *tree, u64 cost);
void fairwq_node_init(struct fairwq_node *node, struct fairwq_node *parent,
		      u32 weight);
void fairwq_node_reset(struct fairwq_node *node);
void fairwq_tree_make_group(struct fairwq_tree *tree, struct fairwq_node *leaf,
			    struct fairwq_node *group);
void fairwq_tree_set_weight(struct fairwq_tree *tree, struct fairwq_node *node,
			    u32 weight);
void fairwq_tree_add(struct fairwq_tree *tree, struct fairwq_node *node,
		     u64 arrival);
void fairwq_tree_del(struct fairwq_tree *tree, struct fairwq_node *node);
struct fairwq_node *fairwq_tree_pick(const struct fairwq_tree *tree);
bool fairwq_tree_charge(struct fairwq_tree *tree, struct fairwq_node *node,
			u64 cost);
void fairwq_tree_pay(struct fairwq_tree *tree, const struct fairwq_node *node,
		     s64 cost);
void fairwq_tree_correct(struct fairwq_tree *tree, struct fairwq_node *node,
			 s64 delta);
struct fairwq_node *fairwq_node_first(const struct fairwq_node *parent);
struct fairwq_node *fairwq_node_next(const struct fairwq_node *node);
unsigned int fairwq_node_rank(const struct fairwq_tree *tree,
			      const struct fairwq_node *node);

static inline bool fairwq_node_eligible(const struct fairwq_node *node)
{
	return node->standing != FAIRWQ_NODE_OUT;
}

static inline bool fairwq_node_has_eligible(const struct fairwq_node *node)
{
	return !RB_EMPTY_ROOT(&node->children.rb_root);
}

#endif /* FAIRWQ_TREE_H */
