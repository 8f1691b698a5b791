// SPDX-License-Identifier: GPL-2.0
/*
 * The picker under test: tree.c itself, compiled for user space. It is built
 * several times, with -DPICKER=picker_<name>. TREE_C may be a copy with a bug
 * of tests/bugs. Or one of these plants a fault:
 *
 * PICKER_LINEAR	count as if the place of a node was searched one by one
 * PICKER_STARVE_LIMIT	how often a lower priority is passed over
 */
#include <linux/rbtree.h>

static u64 compared, inserted;

/* Insert a node, and count the nodes above it: it was compared with about so many. */
static inline void counted_add(struct rb_node *node, struct rb_root_cached *tree,
			       bool (*less)(struct rb_node *, const struct rb_node *))
{
	rb_add_cached(node, tree, less);

	inserted++;
#ifdef PICKER_LINEAR
	for (struct rb_node *rb = rb_first_cached(tree); rb; rb = rb_next(rb))
		compared++;
#else
	for (struct rb_node *rb = rb_parent(node); rb; rb = rb_parent(rb))
		compared++;
#endif
}

#define rb_add_cached counted_add

#include "picker.h"

#ifdef PICKER_STARVE_LIMIT
#undef FAIRWQ_STARVE_LIMIT
#define FAIRWQ_STARVE_LIMIT PICKER_STARVE_LIMIT
#endif

#ifndef TREE_C
#define TREE_C "../../core/tree.c"
#endif
#include TREE_C

#define NAME_OF(x) #x
#define NAME(x) NAME_OF(x)

const struct picker PICKER = {
	.name = NAME(PICKER),
	.tree_init = fairwq_tree_init,
	.set_unit = fairwq_tree_set_unit,
	.node_init = fairwq_node_init,
	.set_weight = fairwq_tree_set_weight,
	.add = fairwq_tree_add,
	.del = fairwq_tree_del,
	.pick = fairwq_tree_pick,
	.charge = fairwq_tree_charge,
	.correct = fairwq_tree_correct,
	.compared = &compared,
	.inserted = &inserted,
};
