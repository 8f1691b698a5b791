// SPDX-License-Identifier: GPL-2.0
/*
 * The fair tree: start-time fair queueing.
 *
 * P. Goyal, H. M. Vin, H. Cheng, "Start-Time Fair Queuing: A Scheduling
 * Algorithm for Integrated Services Packet Switching Networks", SIGCOMM 1996.
 *
 * Every node has a virtual time, the service it has received divided by its
 * weight. The eligible child with the smallest goes next; a turn adds
 * cost * 100 / weight. A node that becomes eligible joins at the larger of
 * its own virtual time and its parent's clock (the start time of the service
 * in progress), so it neither saves up credit while idle nor loses its debt.
 * With equal costs and weights that is round robin, exactly: equal keys are
 * kept in the order in which they were inserted.
 *
 * A newcomer, which was never served, joins one turn after the clock. At the
 * clock it would go before all nodes that wait. Then a node that waits could
 * starve behind newcomers, each of which comes when the last one has gone.
 *
 * A turn's cost may be a guess when the turn is taken; what it turns out to
 * have cost is put right when it ends, see fairwq_tree_correct().
 *
 * A node that joins while turns of it are under way was never away: its limit, or
 * its serializer, lets it have no more at a time. It goes before those that wait at
 * the clock, and is charged from the clock on. So a window over two nodes that stay
 * eligible sees nothing of it. When it leaves again it keeps what it was behind the
 * clock: a turn, and the longest step that the clock made of late. What it is behind
 * beyond that it could not have used.
 *
 * Only eligible nodes are in the tree. Picking costs one pointer per level,
 * charging O(log n) in the virtual times that there are among the eligible
 * siblings, an idle node nothing: those with the same one stand in a ring, of
 * which one is in the red-black tree. With equal costs and weights there are
 * two of them, however many nodes.
 */
#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "tree.h"

#define NODE_DFL_WEIGHT		100U

/*
 * A lap of a clock. No debt outlasts a whole one, see FAIRWQ_MAX_LEAD, and a
 * clock that is less than two laps further is told from one that was set back.
 */
#define CLOCK_LAP_SHIFT		60

static struct fairwq_node *to_node(const struct rb_node *rb)
{
	return rb_entry(rb, struct fairwq_node, rb);
}

/* Virtual times wrap; two that are compared are less than half a turn apart. */
static bool before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/* The first of those with its key that there is. */
static void insert_lead(struct fairwq_node *node, struct fairwq_node *parent,
			struct rb_node *above, struct rb_node **link, bool leftmost)
{
	node->standing = FAIRWQ_NODE_LEADS;
	INIT_LIST_HEAD(&node->equals);
	rb_link_node(&node->rb, above, link);
	rb_insert_color_cached(&node->rb, &parent->children, leftmost);
}

/* @node leads in the place of @old, whose ring it is in. */
static void take_lead(struct fairwq_node *node, struct fairwq_node *old,
		      struct fairwq_node *parent)
{
	node->standing = FAIRWQ_NODE_LEADS;
	rb_replace_node_cached(&old->rb, &node->rb, &parent->children);
	if (parent->last == old)
		parent->last = node;
}

/* Behind those with its key. */
static void insert_equal(struct fairwq_node *node, struct fairwq_node *lead)
{
	list_add_tail(&node->equals, &lead->equals);
	node->standing = FAIRWQ_NODE_FOLLOWS;
}

/* Where its key says. */
static void insert_sorted(struct fairwq_node *node, struct fairwq_node *parent)
{
	struct rb_node **link = &parent->children.rb_root.rb_node, *above = NULL;
	struct fairwq_node *other;
	bool leftmost = true;

	while (*link) {
		above = *link;
		other = to_node(above);
		if (node->key == other->key) {
			insert_equal(node, other);
			return;
		}
		if (before(node->key, other->key)) {
			link = &above->rb_left;
		} else {
			link = &above->rb_right;
			leftmost = false;
		}
	}
	insert_lead(node, parent, above, link, leftmost);
	if (!parent->last)
		parent->last = node;
}

/*
 * Insert a node by its key. Where turns cost much the same, a node that was just
 * served sorts last, beside others that were: append it there without a search.
 */
static void insert(struct fairwq_node *node, struct fairwq_node *parent)
{
	struct fairwq_node *last = parent->last;

	if (!last || before(node->key, last->key)) {
		insert_sorted(node, parent);
	} else if (node->key == last->key) {
		insert_equal(node, last);
	} else {
		insert_lead(node, parent, &last->rb, &last->rb.rb_right, false);
		parent->last = node;
	}
}

static void erase_lead(struct fairwq_node *node, struct fairwq_node *parent)
{
	struct rb_node *prev;

	if (parent->last == node) {
		prev = rb_prev(&node->rb);
		parent->last = prev ? to_node(prev) : NULL;
	}
	rb_erase_cached(&node->rb, &parent->children);
}

static void take_out(struct fairwq_node *node, struct fairwq_node *parent)
{
	struct fairwq_node *next = list_next_entry(node, equals);

	if (next == node)
		erase_lead(node, parent);
	else if (node->standing == FAIRWQ_NODE_LEADS)
		take_lead(next, node, parent);
	if (next != node)
		list_del(&node->equals);
	node->standing = FAIRWQ_NODE_OUT;
	node->left = parent->lap;
}

/* Return the first of the eligible children, which is served next, or NULL. */
struct fairwq_node *fairwq_node_first(const struct fairwq_node *parent)
{
	struct rb_node *rb = rb_first_cached(&parent->children);

	return rb ? to_node(rb) : NULL;
}

/* Return the node that is served after @node, if nothing changes; or NULL. */
struct fairwq_node *fairwq_node_next(const struct fairwq_node *node)
{
	const struct fairwq_node *next = list_entry(node->equals.next, struct fairwq_node, equals);
	struct rb_node *rb;

	if (next->standing == FAIRWQ_NODE_FOLLOWS)
		return (struct fairwq_node *)next;
	/* Once around the ring. */
	rb = rb_next(&next->rb);
	return rb ? to_node(rb) : NULL;
}

/*
 * What a cost adds to the virtual time: cost * 100 / weight. What the division
 * leaves is carried to the next one, so that over any number of turns nothing
 * is rounded away, or batches with heavy weights or short items would drift
 * off their shares.
 */
static s64 scaled(struct fairwq_node *node, s64 cost)
{
	s64 sum = cost * NODE_DFL_WEIGHT + node->rest;
	u32 weight = node->weight, rest;
	u64 quot;

	if (likely(weight == NODE_DFL_WEIGHT))
		return cost;	/* and nothing was ever left */
	if (likely(sum >= 0 && sum <= U32_MAX)) {
		node->rest = (u32)sum % weight;
		return (u32)sum / weight;
	}
	if (sum >= 0) {
		quot = div_u64_rem(sum, weight, &rest);
		node->rest = rest;
		return quot;
	}
	/* Down, as everywhere: what is left is never negative. */
	quot = div_u64(weight - 1 - sum, weight);
	node->rest = quot * weight + sum;
	return -quot;
}

static void set_weight(struct fairwq_node *node, u32 weight)
{
	node->weight = weight;
	node->rest = 0;
}

/* As if it had never been served. Not while it is eligible. */
void fairwq_node_reset(struct fairwq_node *node)
{
	node->vtime = 0;
	node->clock = 0;
	node->step = 0;
	node->lap = 0;
	node->left = 0;
	node->service = 0;
	node->behind = 0;
	node->open = 0;
	node->early = 0;
	node->rest = 0;
	node->joined = false;
	node->member.longest_us[0] = 0;
	node->member.longest_us[1] = 0;
	node->member.longest_streak[0] = 0;
	node->member.longest_streak[1] = 0;
}

void fairwq_node_init(struct fairwq_node *node, struct fairwq_node *parent,
		      u32 weight)
{
	node->standing = FAIRWQ_NODE_OUT;
	node->children = RB_ROOT_CACHED;
	node->last = NULL;
	node->parent = parent;
	node->key = 0;
	node->member = (struct fairwq_member){ };
	INIT_LIST_HEAD(&node->member.link);
	fairwq_node_reset(node);
	set_weight(node, weight);
}

void fairwq_tree_init(struct fairwq_tree *tree, bool by_arrival)
{
	unsigned int i;

	for (i = 0; i < FAIRWQ_NR_RANKS; i++) {
		fairwq_node_init(&tree->rank[i], NULL, NODE_DFL_WEIGHT);
		tree->waited[i] = 0;
	}
	tree->by_arrival = by_arrival;
	tree->patience = FAIRWQ_PRIO_PATIENCE;
	fairwq_tree_set_turn(tree, FAIRWQ_COST_TURN);
}

/**
 * fairwq_tree_set_turn - say what a turn costs that was not measured yet
 * @tree: the tree
 * @cost: the cost; FAIRWQ_COST_TURN unless this is called
 *
 * A newcomer joins so much, by its weight, after the clock. A lower priority
 * that was idle waits for so much, times the patience, of service of others.
 */
void fairwq_tree_set_turn(struct fairwq_tree *tree, u64 cost)
{
	unsigned int i;

	for (i = 0; i < FAIRWQ_NR_RANKS; i++)
		tree->rank[i].turn = cost;
}

/**
 * fairwq_tree_set_patience - change how long a lower priority waits
 * @tree: the tree
 * @patience: turns of others; 0: for ever
 *
 * What a priority has waited by now counts for one turn at most.
 */
void fairwq_tree_set_patience(struct fairwq_tree *tree, unsigned int patience)
{
	unsigned int i;

	WRITE_ONCE(tree->patience, patience);
	for (i = 0; i < FAIRWQ_NR_RANKS; i++)
		tree->waited[i] = min_t(s64, tree->waited[i], patience * tree->rank[i].turn);
}

/* The rank that a node stands below. */
unsigned int fairwq_node_rank(const struct fairwq_tree *tree,
			      const struct fairwq_node *node)
{
	while (node->parent)
		node = node->parent;
	return node - tree->rank;
}

/* Under arrival order there are no owners: every leaf stands below its rank. */
static struct fairwq_node *place_of(struct fairwq_tree *tree,
				    struct fairwq_node *node)
{
	if (tree->by_arrival)
		return &tree->rank[fairwq_node_rank(tree, node)];
	return node->parent;
}

/* Return what its first turn is to cost a newcomer, in its virtual time. */
static u64 newcomer_turn(const struct fairwq_node *node)
{
	const struct fairwq_node *rank = node;

	while (rank->parent)
		rank = rank->parent;
	return div_u64(rank->turn * NODE_DFL_WEIGHT, node->weight);
}

/*
 * Its parent's clock may have been through all of its range since @node left.
 * Then their difference says nothing. A debt of then is paid.
 */
static bool was_long_away(const struct fairwq_node *node, const struct fairwq_node *parent)
{
	return (u8)(parent->lap - node->left) > 1;
}

/*
 * Return where @node would join its siblings. It gets no credit for the time
 * that it was idle, and keeps its debt. A newcomer has neither, wherever the clock stands. It joins
 * one turn after the clock, so that it goes behind those that wait.
 */
static u64 joins_at(const struct fairwq_node *node, const struct fairwq_node *parent)
{
	u64 lead = node->vtime - parent->clock;

	if (!node->service)
		return parent->clock + newcomer_turn(node);
	if (was_long_away(node, parent) || lead > FAIRWQ_MAX_LEAD)
		return parent->clock;
	return node->vtime;
}

static s64 above_zero(s64 x)
{
	return x > 0 ? x : 0;
}

/* It goes before those at the clock if it was behind, until it is served. */
static u64 key_of(const struct fairwq_node *node)
{
	return node->vtime - (node->joined && node->behind > 0);
}

static void join(struct fairwq_node *node, const struct fairwq_node *parent)
{
	node->behind = node->open ? parent->clock - node->vtime : 0;
	node->early = node->open;
	node->joined = true;
	node->vtime = joins_at(node, parent);
	node->key = key_of(node);
}

/*
 * It may be back before its turns have ended. So it takes up again what it was behind when
 * it joined, and turns of before are corrected in full.
 */
static void leave(struct fairwq_node *node, const struct fairwq_node *parent)
{
	s64 kept = min_t(s64, above_zero(node->behind), node->turn + parent->step);

	node->vtime -= kept;
	node->behind -= kept;
	if (node->behind <= 0)
		node->early = 0;
}

/**
 * fairwq_tree_add - make a node eligible
 * @tree: the tree
 * @node: a leaf that is not eligible
 * @arrival: when its first item arrived; only used under arrival order
 *
 * Parents that had no eligible child become eligible too.
 */
void fairwq_tree_add(struct fairwq_tree *tree, struct fairwq_node *node,
		     u64 arrival)
{
	struct fairwq_node *parent = place_of(tree, node);

	while (parent && !fairwq_node_eligible(node)) {
		if (tree->by_arrival)
			node->key = arrival;
		else
			join(node, parent);
		insert(node, parent);
		node = parent;
		parent = node->parent;
	}
}

/*
 * Others had service of @cost. A rank with nothing to serve, and one that is
 * never to wait, pays its debt by that, and saves up nothing.
 */
static void note_waited(struct fairwq_tree *tree, unsigned int rank, s64 cost)
{
	bool waits = tree->patience && fairwq_node_has_eligible(&tree->rank[rank]);
	s64 most = waits ? (s64)FAIRWQ_MAX_LEAD : 0;

	tree->waited[rank] = min(tree->waited[rank] + cost, most);
}

/**
 * fairwq_tree_del - make a node ineligible
 * @tree: the tree
 * @node: an eligible leaf
 *
 * Parents that have no eligible child left become ineligible too.
 */
void fairwq_tree_del(struct fairwq_tree *tree, struct fairwq_node *node)
{
	struct fairwq_node *parent = place_of(tree, node);

	while (parent) {
		take_out(node, parent);
		leave(node, parent);
		if (fairwq_node_has_eligible(parent))
			return;
		node = parent;
		parent = node->parent;
	}
	/* A node that comes next to this rank has not waited yet. */
	note_waited(tree, node - tree->rank, 0);
}

/* Has it waited for long enough, after so many more turns of others? */
static bool is_due(const struct fairwq_tree *tree, unsigned int rank, unsigned int more)
{
	u64 turn = tree->rank[rank].turn;

	return tree->patience &&
	       tree->waited[rank] + (s64)(more * turn) >= (s64)(tree->patience * turn);
}

/*
 * The first rank that has something to serve, unless a lower one has waited
 * long enough. Two that would be due at the same time are served one after the
 * other, the lower one first, so that neither waits for longer than it may.
 */
static const struct fairwq_node *pick_rank(const struct fairwq_tree *tree)
{
	const struct fairwq_node *best = NULL;
	unsigned int i, due = 0;

	for (i = 0; i < FAIRWQ_NR_RANKS; i++) {
		if (!fairwq_node_has_eligible(&tree->rank[i]))
			continue;
		if (is_due(tree, i, due))
			return &tree->rank[i];
		if (is_due(tree, i, 1))
			due++;
		if (!best)
			best = &tree->rank[i];
	}
	return best;
}

/**
 * fairwq_tree_pick - whose turn is it?
 * @tree: the tree
 *
 * Changes nothing; the turn is taken by fairwq_tree_charge().
 *
 * Return: the leaf, or NULL if none is eligible.
 */
struct fairwq_node *fairwq_tree_pick(const struct fairwq_tree *tree)
{
	const struct fairwq_node *node = pick_rank(tree);

	if (!node)
		return NULL;
	do {
		node = to_node(rb_first_cached(&node->children));
	} while (fairwq_node_has_eligible(node));
	return (struct fairwq_node *)node;
}

/* Every rank but the one that was @served has waited for service of @cost. */
static void note_others(struct fairwq_tree *tree, unsigned int served, s64 cost)
{
	unsigned int i;

	for (i = 0; i < FAIRWQ_NR_RANKS; i++)
		if (i != served)
			note_waited(tree, i, cost);
}

/* A rank above @rank has something to serve. */
static bool jumps(const struct fairwq_tree *tree, unsigned int rank)
{
	unsigned int i;

	for (i = 0; i < rank; i++)
		if (fairwq_node_has_eligible(&tree->rank[i]))
			return true;
	return false;
}

/**
 * fairwq_tree_pay - a turn before one of a higher priority cost more or less
 * @tree: the tree
 * @node: the leaf that took it
 * @cost: how much more it cost than was charged; less than 0: it cost less
 *
 * To be called besides fairwq_tree_correct(), if fairwq_tree_charge() returned
 * true for the turn. The priority then waits until others have had so
 * much, times the patience.
 */
void fairwq_tree_pay(struct fairwq_tree *tree, const struct fairwq_node *node,
		     s64 cost)
{
	tree->waited[fairwq_node_rank(tree, node)] -= tree->patience * cost;
}

/* A turn of @node is charged. Returns whether it is taken before one of a higher priority. */
static bool note_rank(struct fairwq_tree *tree, const struct fairwq_node *node, u64 cost)
{
	unsigned int rank = fairwq_node_rank(tree, node);

	note_others(tree, rank, cost);
	if (jumps(tree, rank)) {
		tree->waited[rank] -= (s64)(tree->patience * cost);
		return true;
	}
	tree->waited[rank] = min_t(s64, tree->waited[rank], 0);
	return false;
}

/* The virtual time of @node has changed. */
static void resort(struct fairwq_node *node, struct fairwq_node *parent)
{
	if (!fairwq_node_eligible(node))
		return;
	take_out(node, parent);
	node->key = key_of(node);
	insert(node, parent);
}

static void serve(struct fairwq_node *node, u64 from, u64 cost)
{
	node->service += cost;
	node->turn = scaled(node, cost);
	node->vtime = from + node->turn;
	node->joined = false;
}

/*
 * The clock goes on to the start of a service, if that is later. Its longest step is
 * forgotten when it has gone on by as much again.
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
 * Service was given to @node by @parent; put it where it belongs now. The clock
 * does not pass siblings that wait, if @node was served out of its order.
 */
static void charge_one(struct fairwq_node *node, struct fairwq_node *parent,
		       u64 cost)
{
	u64 from = node->vtime;
	struct fairwq_node *first;

	take_out(node, parent);
	first = fairwq_node_first(parent);
	if (first && before(first->key, node->vtime))
		advance_clock(parent, first->key);
	else
		advance_clock(parent, node->vtime);
	serve(node, from, cost);
	node->open++;
	node->key = node->vtime;
	insert(node, parent);
}

/**
 * fairwq_tree_charge - a leaf takes its turn
 * @tree: the tree
 * @node: what fairwq_tree_pick() returned, still eligible
 * @cost: what the turn costs
 *
 * Under arrival order nothing is charged: the caller takes the leaf out and
 * adds it again with the arrival of its next item.
 *
 * Return: whether it was taken before one of a higher priority.
 */
bool fairwq_tree_charge(struct fairwq_tree *tree, struct fairwq_node *node,
			u64 cost)
{
	bool jumped = note_rank(tree, node, cost);

	if (tree->by_arrival)
		return jumped;
	for (; node->parent; node = node->parent)
		charge_one(node, node->parent, cost);
	return jumped;
}

/*
 * What a correction of @delta adds to @node's virtual time, which is @delta,
 * unless the turn was charged before the node joined last. Then it would have
 * joined elsewhere had the cost been known: as far behind the clock as it was,
 * or as it would have been, it was forgiven.
 *
 * That an older turn ends before a younger one is a guess where both are open.
 */
static s64 correction(struct fairwq_node *node, s64 delta)
{
	s64 forgiven;

	node->open -= !!node->open;
	if (!node->early)
		return delta;
	node->early--;
	forgiven = above_zero(node->behind);
	node->behind -= delta;
	return delta + above_zero(node->behind) - forgiven;
}

/* More or less service was given to @node by @parent than was charged. */
static void correct_one(struct fairwq_node *node, struct fairwq_node *parent,
			s64 delta)
{
	if (!delta) {
		correction(node, 0);	/* the turn is over, and the node stays where it is */
		return;
	}
	node->service += delta;
	node->vtime += correction(node, scaled(node, delta));
	/* A larger one would be taken for a virtual time that has wrapped. */
	if (!before(node->vtime, parent->clock) && node->vtime - parent->clock > FAIRWQ_MAX_LEAD)
		node->vtime = parent->clock + FAIRWQ_MAX_LEAD;
	resort(node, parent);
}

/**
 * fairwq_tree_correct - a turn is over, and did not cost what was charged
 * @tree: the tree
 * @node: a leaf, eligible or not
 * @delta: what the turn cost, less what fairwq_tree_charge() was given
 *
 * To be called once for every turn that was charged, also if it cost what was charged: it
 * is known then which turns are under way when the node joins again.
 *
 * The leaf and its parents move; the clocks stand still:
 *
 * A correction upwards is service that the node has had. The clock is the
 * start of a service, and this one started where it did.
 *
 * A correction downwards may leave the node behind its parent's clock. It has
 * stood in line since it was charged, so what it is given back is a claim and
 * no credit saved up, and it is served until it has caught up. If the clock
 * went back with it, the next node that becomes eligible would join back there,
 * too, and be given ahead of all others what only this node is owed. A node that is not
 * eligible when it is corrected joins at the clock, if it is behind it, as any other.
 *
 * A node that stopped being eligible while the turn was under way, and joined
 * again, is where it would be had the cost been known from the start: see
 * correction(). Else a client with one item at a time, which queues the next
 * before the one before has ended, would pay twice for an item that is longer
 * than its guess: the clock goes on meanwhile, the node is put forward to it, and
 * what the item cost is added to that.
 *
 * A debt of more than FAIRWQ_MAX_LEAD is forgiven but for that.
 */
void fairwq_tree_correct(struct fairwq_tree *tree, struct fairwq_node *node,
			 s64 delta)
{
	if (delta)
		note_others(tree, fairwq_node_rank(tree, node), delta);
	if (tree->by_arrival)
		return;
	for (; node->parent; node = node->parent)
		correct_one(node, node->parent, delta);
}

/* A lead by another weight. In two steps where one would overflow. */
static u64 reweigh(u64 lead, u32 old, u32 weight)
{
	if (lead <= U32_MAX)
		return div_u64(lead * old, weight);
	return min_t(u64, div_u64(lead, weight), div_u64(FAIRWQ_MAX_LEAD, old)) * old;
}

/**
 * fairwq_tree_set_weight - change what a leaf's turns cost it
 * @tree: the tree
 * @node: a leaf, eligible or not
 * @weight: 1 to 10000
 *
 * Holds from the next turn on: what the leaf still owes for the last one is
 * counted by the new weight, too, and so is what it is still owed.
 */
void fairwq_tree_set_weight(struct fairwq_tree *tree, struct fairwq_node *node,
			    u32 weight)
{
	u64 lead = node->vtime - node->parent->clock;
	bool behind = before(node->vtime, node->parent->clock);
	u32 old = node->weight;

	set_weight(node, weight);
	node->early = 0;
	node->behind = 0;
	if (behind)
		lead = -lead;
	if (lead > FAIRWQ_MAX_LEAD || (!fairwq_node_eligible(node) &&
				       was_long_away(node, node->parent)))
		return;
	lead = reweigh(lead, old, weight);
	node->vtime = node->parent->clock + (behind ? -lead : lead);
	if (!tree->by_arrival)
		resort(node, node->parent);
}

/* @node, which is in no ring and no tree, stands where @old did; @old is out. */
static void replace(struct fairwq_node *node, struct fairwq_node *old,
		    struct fairwq_node *parent)
{
	node->standing = old->standing;
	INIT_LIST_HEAD(&node->equals);
	list_add(&node->equals, &old->equals);
	list_del(&old->equals);
	if (node->standing == FAIRWQ_NODE_LEADS)
		take_lead(node, old, parent);
	old->standing = FAIRWQ_NODE_OUT;
}

/**
 * fairwq_tree_make_group - put a group in a leaf's place, and the leaf below it
 * @tree: the tree
 * @leaf: the leaf, eligible or not; it gets the default weight
 * @group: memory for the group, which gets the leaf's place, weight and debt
 *
 * Turns of @leaf that are under way are corrected in both.
 */
void fairwq_tree_make_group(struct fairwq_tree *tree, struct fairwq_node *leaf,
			    struct fairwq_node *group)
{
	struct fairwq_node *parent = leaf->parent;
	bool sorted = fairwq_node_eligible(leaf) && !tree->by_arrival;
	unsigned int i;

	fairwq_node_init(group, parent, leaf->weight);
	group->key = leaf->key;
	group->vtime = leaf->vtime;
	group->rest = leaf->rest;
	group->service = leaf->service;
	group->behind = leaf->behind;
	group->open = leaf->open;
	group->early = leaf->early;
	group->left = leaf->left;
	group->turn = leaf->turn;
	group->joined = leaf->joined;
	/* It pays for these. */
	for (i = 0; i < 2; i++) {
		group->member.longest_us[i] = leaf->member.longest_us[i];
		group->member.longest_streak[i] = leaf->member.longest_streak[i];
	}
	if (sorted)
		replace(group, leaf, parent);
	set_weight(leaf, NODE_DFL_WEIGHT);
	leaf->parent = group;
	leaf->vtime = 0;
	leaf->left = 0;
	leaf->early = 0;
	leaf->behind = 0;
	if (sorted) {
		leaf->key = 0;
		insert(leaf, group);
	}
}
