// SPDX-License-Identifier: GPL-2.0
/*
 * The picker under test: pick.c itself, compiled for user space. Built several
 * times, with -DPICKER=picker_<name> and, by FAIRWQ_MUTANT, one of the faults
 * of mutant.h; or one of these two:
 *
 * PICKER_LINEAR	looks for the place of a node one by one
 * PICKER_PATIENCE	how often a lower priority is passed over
 */
#include <linux/rbtree.h>

static u64 compared, inserted;
static bool (*less_of)(struct rb_node *a, const struct rb_node *b);

static bool counted_less(struct rb_node *a, const struct rb_node *b)
{
	compared++;
	return less_of(a, b);
}

static inline void counted_add(struct rb_node *node, struct rb_root_cached *tree,
			       bool (*less)(struct rb_node *a, const struct rb_node *b))
{
	less_of = less;
	inserted++;
#ifdef PICKER_LINEAR
	for (struct rb_node *rb = rb_first_cached(tree); rb; rb = rb_next(rb))
		if (counted_less(node, rb))
			break;
#endif
	rb_add_cached(node, tree, counted_less);
}

#define rb_add_cached counted_add

#include "picker.h"

#ifdef PICKER_PATIENCE
#undef FAIRWQ_PRIO_PATIENCE
#define FAIRWQ_PRIO_PATIENCE PICKER_PATIENCE
#endif

#include "../../pick.c"

#define NAME_OF(x) #x
#define NAME(x) NAME_OF(x)

const struct picker PICKER = {
	.name = NAME(PICKER),
	.tree_init = fairwq_tree_init,
	.node_init = fairwq_node_init,
	.set_weight = fairwq_tree_set_weight,
	.add = fairwq_tree_add,
	.del = fairwq_tree_del,
	.pick = fairwq_tree_pick,
	.charge = fairwq_tree_charge,
	.refund = fairwq_tree_refund,
	.correct = fairwq_tree_correct,
	.compared = &compared,
	.inserted = &inserted,
};
