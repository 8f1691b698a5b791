// SPDX-License-Identifier: GPL-2.0
/*
 * Fair tree: start-time fair queueing.
 *
 * P. Goyal, H. M. Vin, H. Cheng, "Start-Time Fair Queuing: A Scheduling
 * Algorithm for Integrated Services Packet Switching Networks", SIGCOMM 1996.
 *
 * Every node has a virtual time: the service that it has received, divided by
 * its weight. The eligible child with the smallest virtual time goes next. A
 * turn adds cost * 100 / weight. A parent's clock is the start time of the
 * service in progress.
 *
 *   Call                    The node's virtual time
 *   ----------------------  --------------------------------------------------
 *   fairwq_tree_add()       stays, or becomes the clock if that is later: no
 *                           credit is saved up, and no debt is lost
 *     ... a newcomer        becomes one turn after the clock
 *   fairwq_tree_pick()      stays
 *   fairwq_tree_charge()    goes on by the cost, which may be a guess
 *   fairwq_tree_correct()   moves by what the turn cost more or less than that
 *   fairwq_tree_del()       stays; with turns under way it goes back by its lag
 *
 * With equal costs and weights that is round robin, exactly, because equal keys
 * are kept in the order in which they were inserted.
 *
 * A newcomer is a node that was never served. At the clock it would go before
 * all nodes that wait. Then a node that waits could starve behind newcomers,
 * each of which comes when the last one has gone.
 *
 * A node that joins while turns of it are under way was never away. Its limit,
 * or its serializer, lets it have no more at a time. It goes before the nodes
 * that wait at the clock, and is charged from the clock on. So a window over
 * two nodes that stay eligible sees nothing of it. When it leaves again it
 * keeps its lag behind the clock, up to a turn and the longest recent step of
 * the clock. It could not have used more.
 *
 * Only eligible nodes are in the tree. A node whose key is not below that of
 * the last one in a row goes behind it. With equal costs and weights that is
 * each node which was just served. Other nodes are in a red-black tree beside
 * the row. The first of the row or the first of the tree is served next.
 *
 *   Picking    two pointers for each level
 *   Charging   O(log n) for each level, n being the nodes beside the row
 *   Idle node  nothing
 *
 * Locking: see tree.h.
 *
 * Limits: virtual times wrap; a debt is at most FAIRWQ_MAX_LEAD.
 */
#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "tree.h"

#define NODE_DFL_WEIGHT		100U
#define ALL_RANKS		(BIT(FAIRWQ_NR_RANKS) - 1)

/*
 * A lap of a clock. No debt lasts a whole lap, see FAIRWQ_MAX_LEAD. A clock
 * that is less than two laps further cannot look like one that was set back.
 */
#define CLOCK_LAP_SHIFT		60

/* ---- siblings in order ------------------------------------------------ */

static struct fairwq_node *node_of(const struct rb_node *rb)
{
	return rb_entry(rb, struct fairwq_node, rb);
}

/* Check whether @a is before @b. They wrap, and are less than 2^63 apart. */
static bool before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/* Check whether @a is served before @b. Of equal keys the one that was inserted first is. */
static bool goes_first(const struct fairwq_node *a, const struct fairwq_node *b)
{
	return a->key == b->key ? (s32)(a->order - b->order) < 0 : before(a->key, b->key);
}

static bool rb_goes_first(struct rb_node *a, const struct rb_node *b)
{
	return goes_first(node_of(a), node_of(b));
}

/*
 * Insert a node by its key. Where turns cost much the same, a node that was
 * just served sorts last, so that nothing is searched.
 */
static void insert(struct fairwq_node *node, struct fairwq_node *parent)
{
	const struct fairwq_node *last = list_last_entry(&parent->row, struct fairwq_node, next);

	node->order = parent->orders++;
	if (list_empty(&parent->row) || !before(node->key, last->key)) {
		node->standing = FAIRWQ_NODE_IN_ROW;
		list_add_tail(&node->next, &parent->row);
	} else {
		node->standing = FAIRWQ_NODE_SORTED;
		rb_add_cached(&node->rb, &parent->sorted, rb_goes_first);
	}
}

/* Take a node out. */
static void take_out(struct fairwq_node *node, struct fairwq_node *parent)
{
	if (likely(node->standing == FAIRWQ_NODE_IN_ROW))
		list_del(&node->next);
	else
		rb_erase_cached(&node->rb, &parent->sorted);
	node->standing = FAIRWQ_NODE_OUT;
}

/* Return the first of the eligible children, which is served next, or NULL. */
static struct fairwq_node *first_child(const struct fairwq_node *parent)
{
	struct rb_node *rb = rb_first_cached(&parent->sorted);
	struct fairwq_node *first = NULL;

	if (!list_empty(&parent->row))
		first = list_first_entry(&parent->row, struct fairwq_node, next);
	if (likely(!rb))
		return first;
	return !first || goes_first(node_of(rb), first) ? node_of(rb) : first;
}

/* ---- nodes and trees -------------------------------------------------- */

/*
 * Return what a cost adds to the virtual time: cost * 100 / weight. The
 * remainder of the division is carried to the next one, so that nothing is
 * rounded away. Otherwise batches with heavy weights or short items would drift
 * off their shares.
 */
static s64 scaled(struct fairwq_node *node, s64 cost)
{
	s64 sum = cost * NODE_DFL_WEIGHT + node->rest;
	u32 weight = node->weight;
	s64 quot;
	s32 rest;

	if (likely(weight == NODE_DFL_WEIGHT))
		return cost;	/* there is never a remainder */
	if (likely(sum >= 0 && sum <= U32_MAX)) {
		node->rest = (u32)sum % weight;
		return (u32)sum / weight;
	}
	quot = div_s64_rem(sum, weight, &rest);
	if (rest < 0) {			/* round down: @rest of the node is unsigned */
		rest += weight;
		quot--;
	}
	node->rest = rest;
	return quot;
}

/*
 * Set up a node below @parent, or a rank if that is NULL. It is not eligible,
 * and a newcomer.
 */
void fairwq_node_init(struct fairwq_node *node, struct fairwq_node *parent,
		      u32 weight)
{
	*node = (struct fairwq_node){
		.parent = parent, .weight = weight, .sorted = RB_ROOT_CACHED,
	};
	INIT_LIST_HEAD(&node->row);
}

/* Set up a tree of ranks alone. */
void fairwq_tree_init(struct fairwq_tree *tree)
{
	unsigned int i;

	*tree = (struct fairwq_tree){
		.first = FAIRWQ_COST_TURN, .turn = FAIRWQ_COST_TURN,
		.starve_limit = FAIRWQ_STARVE_LIMIT,
	};
	for (i = 0; i < FAIRWQ_NR_RANKS; i++)
		fairwq_node_init(&tree->rank[i], NULL, NODE_DFL_WEIGHT);
}

/**
 * fairwq_tree_set_unit - set the unit of costs, and what an unmeasured turn
 * costs
 * @tree: the tree
 * @shift: bits of fraction that a unit has in virtual times; 0 unless this is
 * called
 * @turn: the cost; FAIRWQ_COST_TURN unless this is called
 *
 * A newcomer joins that much, by its weight, after the clock. A lower priority
 * that was idle waits until others had service of @turn times the starve limit.
 */
void fairwq_tree_set_unit(struct fairwq_tree *tree, unsigned int shift, u64 turn)
{
	tree->shift = shift;
	tree->first = turn;
	tree->turn = turn;
}

/**
 * fairwq_tree_set_starve_limit - change how long a lower priority waits
 * @tree: the tree
 * @starve_limit: turns of others; 0: for ever
 *
 * A priority that has waited long gets at most one turn for that. What one owes
 * for turns that it had is counted anew.
 */
void fairwq_tree_set_starve_limit(struct fairwq_tree *tree, unsigned int starve_limit)
{
	s64 waited;
	unsigned int i;

	for (i = 0; i < FAIRWQ_NR_RANKS; i++) {
		waited = min_t(s64, tree->waited[i], starve_limit * tree->turn);
		if (waited < 0 && tree->starve_limit)
			waited = div_s64(waited, tree->starve_limit) * starve_limit;
		tree->waited[i] = waited;
	}
	WRITE_ONCE(tree->starve_limit, starve_limit);
}

/* ---- becoming eligible, and no longer --------------------------------- */

/*
 * Check whether the parent's clock went on by more than a lap since @node left.
 * It may have wrapped, so their difference says nothing. A debt of then is
 * paid.
 */
static bool was_long_away(const struct fairwq_node *node, const struct fairwq_node *parent)
{
	return (u8)(parent->lap - node->left) > 1;
}

/*
 * Return the virtual time at which @node joins. It gets no credit for the time
 * that it was idle, and keeps its debt. A newcomer has neither, wherever the
 * clock stands. It joins one turn after the clock, behind the nodes that wait.
 */
static u64 joins_at(const struct fairwq_tree *tree, const struct fairwq_node *node,
		    const struct fairwq_node *parent)
{
	u64 lead = node->vtime - parent->clock;

	if (!node->service)
		return parent->clock +
		       div_u64((tree->first << tree->shift) * NODE_DFL_WEIGHT, node->weight);
	if (was_long_away(node, parent) || lead > FAIRWQ_MAX_LEAD)
		return parent->clock;
	return node->vtime;
}

/*
 * Return the sort key of @node. If it was behind when it joined, it goes before
 * the nodes at the clock until it is served.
 */
static u64 key_of(const struct fairwq_node *node)
{
	return node->vtime - (node->joined && node->behind > 0);
}

/* Give @node the virtual time and the key with which it joins its siblings. */
static void join(const struct fairwq_tree *tree, struct fairwq_node *node,
		 const struct fairwq_node *parent)
{
	node->behind = node->open ? parent->clock - node->vtime : 0;
	if (node->behind <= 0)
		node->most = 0;
	node->early = node->open;
	node->joined = true;
	node->stay++;
	node->vtime = joins_at(tree, node, parent);
	node->key = key_of(node);
}

/*
 * Set @node back by the lag that it keeps, because it may be back before its
 * turns have ended. That is no claim for more turns at a time than it had when
 * it fell behind. Without a lag its older turns are corrected in full.
 */
static void leave(struct fairwq_node *node, const struct fairwq_node *parent)
{
	s64 kept = min_t(s64, max_t(s64, node->behind, 0), node->turn + parent->step);

	if (!node->most)
		node->most = node->open;
	if (node->open > node->most)
		kept = 0;
	node->left = parent->lap;
	node->vtime -= kept;
	node->behind -= kept;
	if (node->behind <= 0)
		node->early = 0;
}

/**
 * fairwq_tree_add - make a node eligible
 * @tree: the tree
 * @node: a leaf that is not eligible
 *
 * Parents that had no eligible child become eligible, too.
 */
void fairwq_tree_add(struct fairwq_tree *tree, struct fairwq_node *node)
{
	struct fairwq_node *parent = node->parent;

	while (parent && !fairwq_node_eligible(node)) {
		join(tree, node, parent);
		insert(node, parent);
		node = parent;
		parent = node->parent;
	}
	if (!parent)
		tree->eligible |= BIT(node - tree->rank);
}

/*
 * Note that others had service of @cost. A rank with nothing to serve, or any
 * rank if the starve limit is 0, pays its debt by that, and saves up nothing.
 */
static void note_waited(struct fairwq_tree *tree, unsigned int rank, s64 cost)
{
	bool waits = tree->starve_limit && (tree->eligible & BIT(rank));
	s64 most = waits ? (s64)FAIRWQ_MAX_LEAD : 0;

	tree->waited[rank] = min(tree->waited[rank] + cost, most);
}

/**
 * fairwq_tree_del - make a node ineligible
 * @tree: the tree
 * @node: an eligible leaf
 *
 * Parents that have no eligible child left become ineligible, too.
 */
void fairwq_tree_del(struct fairwq_tree *tree, struct fairwq_node *node)
{
	struct fairwq_node *parent = node->parent;

	while (parent) {
		take_out(node, parent);
		leave(node, parent);
		if (first_child(parent))
			return;
		node = parent;
		parent = node->parent;
	}
	tree->eligible &= ~BIT(node - tree->rank);
	/* A node that comes next to this rank has not waited yet. */
	note_waited(tree, node - tree->rank, 0);
}

/* ---- picking ---------------------------------------------------------- */

/*
 * Return for how many turns of others a rank waits. With a turn of each of two
 * lower ranks after one turn of others, nothing would be left for the highest.
 */
static unsigned int starve_limit_of(const struct fairwq_tree *tree)
{
	if (unlikely(tree->starve_limit == 1) && tree->eligible == ALL_RANKS)
		return FAIRWQ_NR_RANKS - 1;
	return tree->starve_limit;
}

/* Check whether a rank is due after @more turns of others. */
static bool is_due(const struct fairwq_tree *tree, unsigned int rank, unsigned int more)
{
	s64 due = (starve_limit_of(tree) - more) * tree->turn;

	return tree->starve_limit && tree->waited[rank] >= due;
}

/*
 * Return the first rank that has something to serve, unless a lower one has
 * waited long enough; or NULL. Of two ranks that would be due at the same time
 * the lower one is served a turn earlier, so that neither waits too long.
 *
 * The first one is never due, however long it has waited: it has what the
 * others leave.
 */
static const struct fairwq_node *pick_rank(const struct fairwq_tree *tree)
{
	unsigned int i, first, due = 0;

	if (!tree->eligible)
		return NULL;
	first = __ffs(tree->eligible);
	for (i = first + 1; tree->eligible >> i; i++) {
		if (!(tree->eligible & BIT(i)))
			continue;
		if (is_due(tree, i, due))
			return &tree->rank[i];
		if (is_due(tree, i, 1))
			due++;
	}
	return &tree->rank[first];
}

/**
 * fairwq_tree_pick - find the leaf that has the next turn
 * @tree: the tree
 *
 * This changes nothing; fairwq_tree_charge() takes the turn.
 *
 * Return: the leaf, or NULL if none is eligible.
 */
struct fairwq_node *fairwq_tree_pick(const struct fairwq_tree *tree)
{
	const struct fairwq_node *node = pick_rank(tree), *leaf = NULL;

	for (; node; node = first_child(node))
		leaf = node;
	return (struct fairwq_node *)leaf;
}

/* ---- charging --------------------------------------------------------- */

/* Note for every rank but @served that it has waited for service of @cost. */
static void note_others(struct fairwq_tree *tree, unsigned int served, s64 cost)
{
	unsigned int i;

	for (i = 0; i < FAIRWQ_NR_RANKS; i++)
		if (i != served)
			note_waited(tree, i, cost);
}

/* Charge a turn to @rank. Return: whether it is taken before one of a higher priority. */
static bool note_rank(struct fairwq_tree *tree, unsigned int rank, u64 cost)
{
	/* As a rule one rank alone has something to serve, and none has waited or owes. */
	if (likely(tree->eligible == BIT(rank)) &&
	    likely(!(tree->waited[0] | tree->waited[1] | tree->waited[2])))
		return false;
	note_others(tree, rank, cost);
	if (tree->eligible & (BIT(rank) - 1)) {
		tree->waited[rank] -= (s64)(starve_limit_of(tree) * cost);
		return true;
	}
	tree->waited[rank] = min_t(s64, tree->waited[rank], 0);
	return false;
}

/* Sort @node anew if it is eligible, because its virtual time has changed. */
static void resort(struct fairwq_node *node, struct fairwq_node *parent)
{
	if (!fairwq_node_eligible(node))
		return;
	take_out(node, parent);
	node->key = key_of(node);
	insert(node, parent);
}

/*
 * Advance the clock to the start of a service, if that is later. A longest step
 * is forgotten when the clock has gone on by as much again.
 */
static void advance_clock(struct fairwq_node *parent, u64 start)
{
	u64 step = start - parent->clock;

	if (!before(parent->clock, start))
		return;
	parent->lap += start >> CLOCK_LAP_SHIFT != parent->clock >> CLOCK_LAP_SHIFT;
	parent->clock = start;
	parent->step = parent->step > 2 * step ? parent->step - step : step;
}

/*
 * Charge service to @node, the first child, advance the parent's clock, and
 * sort @node anew.
 */
static void charge_one(struct fairwq_node *node, struct fairwq_node *parent,
		       u64 cost, unsigned int shift)
{
	take_out(node, parent);
	advance_clock(parent, node->vtime);
	node->service += cost;
	node->turn = scaled(node, cost << shift);
	node->vtime += node->turn;
	node->joined = false;
	node->open += node->open < U16_MAX;	/* a hint beyond that */
	node->key = node->vtime;
	insert(node, parent);
}

/**
 * fairwq_tree_charge - charge a turn to a leaf
 * @tree: the tree
 * @node: the leaf that fairwq_tree_pick() has returned
 * @cost: what the turn costs
 *
 * Return: whether the turn is taken before one of a higher priority.
 */
bool fairwq_tree_charge(struct fairwq_tree *tree, struct fairwq_node *node,
			u64 cost)
{
	for (; node->parent; node = node->parent)
		charge_one(node, node->parent, cost, tree->shift);
	node->service += cost;
	return note_rank(tree, node - tree->rank, cost);
}

/* ---- correcting ------------------------------------------------------- */

/*
 * Return what a correction of @delta adds to @node's virtual time. That is
 * @delta, unless the turn was charged before the node joined last. Had its cost
 * been known then, the node would have joined elsewhere. The lag behind the
 * clock that it had, or would have had, was forgiven. So only what lies ahead
 * of the clock moves it.
 *
 * If an older and a younger turn are open, the first to end counts as the older
 * one, which is a guess.
 */
static s64 correction(struct fairwq_node *node, s64 delta)
{
	s64 forgiven;

	node->open -= !!node->open;
	if (!node->early)
		return delta;
	node->early--;
	forgiven = max_t(s64, node->behind, 0);
	node->behind -= delta;
	return delta + max_t(s64, node->behind, 0) - forgiven;
}

/* Correct by @delta what @node was charged, and sort it anew. */
static void correct_one(struct fairwq_node *node, struct fairwq_node *parent,
			s64 delta, unsigned int shift)
{
	if (!delta) {
		correction(node, 0);	/* count the turn as ended; the node keeps its place */
		return;
	}
	node->service += delta;
	node->vtime += correction(node, scaled(node, delta * (s64)BIT_ULL(shift)));
	/* A larger debt would look like a virtual time that has wrapped. */
	if (!before(node->vtime, parent->clock) && node->vtime - parent->clock > FAIRWQ_MAX_LEAD)
		node->vtime = parent->clock + FAIRWQ_MAX_LEAD;
	resort(node, parent);
}

/**
 * fairwq_tree_correct - correct the charge of a turn that has ended
 * @tree: the tree
 * @node: a leaf, eligible or not
 * @delta: what the turn cost, less what fairwq_tree_charge() was given
 * @jumped: what that returned. The priority then waits until others had service
 * of @delta times the starve limit besides
 *
 * The caller must call this once for every turn that was charged, because the
 * tree counts the turns that are under way. @delta may be 0.
 *
 * The leaf and its parents move; the clocks stand still:
 *
 * A correction upwards is service that the node has had. The clock is the start
 * of a service, and this service started where it did.
 *
 * A correction downwards may leave the node behind its parent's clock. It was
 * in line since it was charged, so it has a claim, and no credit saved up. It
 * is served until it has caught up. If the clock went back with it, the next
 * node that becomes eligible would join back there, too. That node would get,
 * ahead of all others, what only this node is owed. A node that is behind the
 * clock and not eligible when it is corrected joins at the clock, as any other.
 *
 * A node that left while the turn was under way, and joined again, gets the
 * place that it would have had with the true cost: see correction(). Otherwise
 * a client with one item at a time would pay twice for an item that is longer
 * than its guess. It queues the next item before the last one has ended.
 * Meanwhile the clock goes on, the node is put forward to the clock, and the
 * cost of the item is added to that.
 *
 * A debt of more than FAIRWQ_MAX_LEAD is cut to that.
 */
void fairwq_tree_correct(struct fairwq_tree *tree, struct fairwq_node *node,
			 s64 delta, bool jumped)
{
	for (; node->parent; node = node->parent)
		correct_one(node, node->parent, delta, tree->shift);
	node->service += delta;
	if (delta)
		note_others(tree, node - tree->rank, delta);
	if (jumped)
		tree->waited[node - tree->rank] -= starve_limit_of(tree) * delta;
}

/* ---- weights and groups ----------------------------------------------- */

/* Convert a lead to another weight, in two steps where one would overflow. */
static u64 reweigh(u64 lead, u32 old, u32 weight)
{
	if (lead <= U32_MAX)
		return div_u64(lead * old, weight);
	return min_t(u64, div_u64(lead, weight), div_u64(FAIRWQ_MAX_LEAD, old)) * old;
}

/**
 * fairwq_tree_set_weight - change what turns cost a node
 * @node: a leaf or a group, eligible or not
 * @weight: 1 to 10000
 *
 * The weight holds from the next turn on. What the node still owes for the last
 * turn is counted by the new weight, too, and so is what it is still owed.
 */
void fairwq_tree_set_weight(struct fairwq_node *node, u32 weight)
{
	u64 lead = node->vtime - node->parent->clock;
	bool behind = before(node->vtime, node->parent->clock);
	u32 old = node->weight;

	node->weight = weight;
	node->stay++;
	node->rest = 0;
	node->early = 0;
	node->most = 0;
	node->behind = 0;
	if (behind)
		lead = -lead;
	if (lead > FAIRWQ_MAX_LEAD || (!fairwq_node_eligible(node) &&
				       was_long_away(node, node->parent)))
		return;
	lead = reweigh(lead, old, weight);
	node->vtime = node->parent->clock + (behind ? -lead : lead);
	resort(node, node->parent);
}

/**
 * fairwq_tree_make_group - put a group in a leaf's place, and the leaf below it
 * @leaf: the leaf, eligible or not; it gets the default weight
 * @group: memory for the group, which gets the leaf's place, weight and debt
 *
 * Turns of @leaf that are under way will be corrected in both nodes.
 */
void fairwq_tree_make_group(struct fairwq_node *leaf, struct fairwq_node *group)
{
	bool sorted = fairwq_node_eligible(leaf);

	/* A leaf has no children. */
	*group = *leaf;
	INIT_LIST_HEAD(&group->row);
	if (leaf->standing == FAIRWQ_NODE_IN_ROW)
		list_replace(&leaf->next, &group->next);
	else if (sorted)
		rb_replace_node_cached(&leaf->rb, &group->rb, &leaf->parent->sorted);
	fairwq_node_init(leaf, group, NODE_DFL_WEIGHT);
	leaf->service = group->service;
	leaf->turn = group->turn;
	leaf->open = group->open;
	leaf->stay = group->stay + 1;
	if (sorted)
		insert(leaf, group);
}
