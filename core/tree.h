/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fair tree: it decides which batch gets the next turn.
 *
 *   tree.rank[]     group           leaf
 *   a priority -+-- an owner ---+-- a batch
 *               |               +-- a batch
 *               +-- a batch
 *
 * It knows nodes, weights and costs, and nothing of works, runners or time.
 *
 * Locking: none, and nothing is allocated. The caller must serialise all calls
 * on one tree; a pool does so by pool->lock.
 */
#ifndef FAIRWQ_TREE_H
#define FAIRWQ_TREE_H

#include <linux/bits.h>
#include <linux/cache.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/types.h>

/* What a turn adds to vtime at the default weight, where every turn costs the same. */
#define FAIRWQ_COST_TURN_SHIFT	20
#define FAIRWQ_COST_TURN	BIT_ULL(FAIRWQ_COST_TURN_SHIFT)

/* Default starve limit: turns of others before a turn of a lower priority. */
#define FAIRWQ_STARVE_LIMIT	63
/* Largest starve limit that may be set. */
#define FAIRWQ_MAX_STARVE_LIMIT	199

/* Number of priorities. Rank 0 is served first. */
#define FAIRWQ_NR_RANKS		3

/*
 * Largest debt. A node that looks further ahead of the clock is behind it, or
 * the virtual times have wrapped while it was idle.
 */
#define FAIRWQ_MAX_LEAD		BIT_ULL(52)

/* Standing of a node among its siblings. */
enum fairwq_standing {
	FAIRWQ_NODE_OUT,	/* not eligible; 0, as a node is set up */
	FAIRWQ_NODE_IN_ROW,	/* in the parent's row */
	FAIRWQ_NODE_SORTED,	/* in the parent's red-black tree */
};

/*
 * A node: a rank, a group or a leaf.
 *
 * Invariant: a node is in its parent's @row or @sorted iff it is eligible. A
 * group is eligible iff it has eligible children.
 * Invariant: the nodes of a row are in order, by @key, then by @order.
 */
struct fairwq_node {
	/* What a turn writes is in one line. */
	union {				/* @standing says which */
		struct list_head next;	/* in the parent's @row */
		struct rb_node rb;	/* in the parent's @sorted */
	};
	u64 key;			/* sort key among the siblings */
	u64 vtime;			/* virtual time: service received / weight */
	u64 turn;			/* charge of its last turn / weight */
	u64 service;			/* cost of all its turns, not by weight */
	u32 order;			/* orders of the parent when it was inserted */
	u16 open;			/* turns charged and not corrected */
	u8 standing;			/* enum fairwq_standing */
	bool joined;			/* not served since it joined */

	/* What a turn of a child writes is in another one. */
	struct list_head row;		/* eligible children that came behind the last, by key */
	struct rb_root_cached sorted;	/* the other eligible children, by key */
	u64 clock;			/* vtime up to which children were served */
	u64 step;			/* longest recent step of @clock */
	u32 orders;			/* number of children that were inserted */
	u8 lap;				/* laps of @clock so far */

	u16 weight;			/* there is room */
	struct fairwq_node *parent;	/* NULL: a rank of the tree */

	/* What changes when it joins or leaves, or with its weight. */
	s64 behind;			/* lag behind the clock when it joined last, */
					/* if turns were under way */
	u16 early;			/* of @open, those charged before it joined last */
	u16 most;			/* @open when it left, after it had joined without a lag */
	u16 rest;			/* remainder that vtime lacks, in 1 / weight */
	u32 stay;			/* changes when it joins, and with its weight */
	u8 left;			/* @lap of its parent when it left last */
} ____cacheline_aligned_in_smp;

/* A tree: a rank for each priority, and how long each has waited. */
struct fairwq_tree {
	struct fairwq_node rank[FAIRWQ_NR_RANKS];
	s64 waited[FAIRWQ_NR_RANKS];	/* cost of others' service since; less than 0: debt */
	unsigned long eligible;		/* bit i is set iff rank i has eligible children */
	unsigned int shift;		/* bits of fraction that a unit of cost has in vtime */
	u64 first;			/* what the first turn of a newcomer costs */
	u64 turn;			/* what a turn costs by which lower ranks wait */
	unsigned int starve_limit;	/* turns of others; 0: lower ranks get what is left */
};

void fairwq_tree_init(struct fairwq_tree *tree);
void fairwq_tree_set_starve_limit(struct fairwq_tree *tree, unsigned int starve_limit);
void fairwq_tree_set_unit(struct fairwq_tree *tree, unsigned int shift, u64 turn);
void fairwq_node_init(struct fairwq_node *node, struct fairwq_node *parent,
		      u32 weight);
void fairwq_tree_make_group(struct fairwq_node *leaf, struct fairwq_node *group);
void fairwq_tree_set_weight(struct fairwq_node *node, u32 weight);
void fairwq_tree_add(struct fairwq_tree *tree, struct fairwq_node *node);
void fairwq_tree_del(struct fairwq_tree *tree, struct fairwq_node *node);
struct fairwq_node *fairwq_tree_pick(const struct fairwq_tree *tree);
bool fairwq_tree_charge(struct fairwq_tree *tree, struct fairwq_node *node,
			u64 cost);
void fairwq_tree_correct(struct fairwq_tree *tree, struct fairwq_node *node,
			 s64 delta, bool jumped);

/* Check whether @node is eligible: sorted among its siblings. */
static inline bool fairwq_node_eligible(const struct fairwq_node *node)
{
	return node->standing != FAIRWQ_NODE_OUT;
}

#endif /* FAIRWQ_TREE_H */
