/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A picker: tree.c as it is, or with a fault planted. All pickers are in one
 * program. Each is an object of its own that exports only its table.
 */
#ifndef FAIRWQ_SIM_PICKER_H
#define FAIRWQ_SIM_PICKER_H

#include "core/tree.h"

struct picker {
	const char *name;
	void (*tree_init)(struct fairwq_tree *tree);
	void (*set_unit)(struct fairwq_tree *tree, unsigned int shift, u64 turn);
	void (*node_init)(struct fairwq_node *node, struct fairwq_node *parent, u32 weight);
	void (*set_weight)(struct fairwq_node *node, u32 weight);
	void (*add)(struct fairwq_tree *tree, struct fairwq_node *node);
	void (*del)(struct fairwq_tree *tree, struct fairwq_node *node);
	struct fairwq_node *(*pick)(const struct fairwq_tree *tree);
	bool (*charge)(struct fairwq_tree *tree, struct fairwq_node *node, u64 cost);
	void (*correct)(struct fairwq_tree *tree, struct fairwq_node *node, s64 delta, bool jumped);
	/* Comparisons of two nodes, and inserts of a node into a tree. */
	u64 *compared, *inserted;
};

extern const struct picker picker_sound;
/* Pickers with a bug of tests/bugs. */
extern const struct picker picker_pick_from_old_pointer;
extern const struct picker picker_saved_credit;
extern const struct picker picker_weight_ignored;
extern const struct picker picker_estimate_kept;
extern const struct picker picker_newcomer_first;
extern const struct picker picker_old_debt_kept;
extern const struct picker picker_place_lost;
extern const struct picker picker_low_by_turns;
/* Pickers with a fault of picker.c. */
extern const struct picker picker_linear;
extern const struct picker picker_impatient;

#endif /* FAIRWQ_SIM_PICKER_H */
