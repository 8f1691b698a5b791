// SPDX-License-Identifier: GPL-2.0
/* The judge: compare what clients got with an ideal server; see judge.h. */
#include <math.h>
#include <stdlib.h>

#include "judge.h"

/* Make a judge for @max entries. Groups are numbered by rank, then by parent. */
struct judge *judge_new(int max, unsigned int taken)
{
	struct judge *judge = calloc(1, sizeof(*judge));

	judge->max = max;
	judge->taken = taken;
	judge->entry = calloc(max, sizeof(*judge->entry));
	judge->group = calloc(max + JUDGE_RANKS, sizeof(*judge->group));
	return judge;
}

void judge_free(struct judge *judge)
{
	for (int i = 0; i < judge->max + JUDGE_RANKS; i++)
		free(judge->group[i].member);
	free(judge->entry);
	free(judge->group);
	free(judge);
}

int judge_add(struct judge *judge, int parent, unsigned int rank, uint32_t weight)
{
	int i = judge->nr++, number = parent == JUDGE_NOBODY ? (int)rank : JUDGE_RANKS + parent;
	struct judge_group *group = &judge->group[number];

	judge->entry[i] = (struct judge_entry){
		.parent = parent, .group = number, .weight = weight,
	};
	if (!group->member)
		group->member = calloc(judge->max, sizeof(*group->member));
	group->member[group->nr++] = i;
	return i;
}

void judge_set_largest(struct judge *judge, int i, int64_t item, int64_t largest)
{
	for (; i != JUDGE_NOBODY; i = judge->entry[i].parent) {
		struct judge_entry *entry = &judge->entry[i];

		if (item > entry->item)
			entry->item = item;
		if (largest > entry->largest)
			entry->largest = largest;
		if (entry->parent == JUDGE_NOBODY && largest > judge->rank[entry->group].largest)
			judge->rank[entry->group].largest = largest;
	}
}

/* Return by how much @entry is behind the ideal server. */
static double deficit(const struct judge_entry *entry)
{
	return entry->ideal - entry->got;
}

/* Check whether the ideal server has work of @entry: also if it is ahead of that. */
static bool takes_part(const struct judge_entry *entry)
{
	return entry->ready || deficit(entry) < 0;
}

/* Begin a window of a backlog. */
static void open_window(struct judge *judge, struct judge_entry *entry)
{
	judge->windows++;
	/* A deficit from the end of the last window is forgotten. */
	if (deficit(entry) > 0)
		entry->ideal = entry->got;
	entry->least = deficit(entry);
	entry->bound = 0;
	entry->guilty = false;
}

/* Judge the window of @i up to now. */
static void look(struct judge *judge, int i)
{
	struct judge_entry *entry = &judge->entry[i];
	double d = deficit(entry), share;

	if (d < entry->least)
		entry->least = d;
	share = entry->bound ? (d - entry->least) / entry->bound : 0;
	if (share > judge->worst) {
		judge->worst = share;
		judge->worst_client = i;
	}
	if (share <= 1 || entry->guilty)
		return;
	entry->guilty = true;
	judge->violations++;
}

/* Note that @i has a backlog or not, and count it for its parents. */
static void set_busy(struct judge *judge, int i, bool busy)
{
	for (; i != JUDGE_NOBODY; i = judge->entry[i].parent) {
		struct judge_entry *entry = &judge->entry[i];

		if (busy && entry->busy++)
			return;
		if (!busy && --entry->busy)
			return;
		if (busy)
			open_window(judge, entry);
	}
}

/* Note that @i has an item that may start or not, and count it for its parents. */
static void set_ready(struct judge *judge, int i, bool ready)
{
	for (; i != JUDGE_NOBODY; i = judge->entry[i].parent) {
		struct judge_entry *entry = &judge->entry[i];

		if (ready && entry->ready++)
			return;
		if (!ready && --entry->ready)
			return;
	}
}

void judge_set_state(struct judge *judge, int i, bool busy, bool ready)
{
	const struct judge_entry *entry = &judge->entry[i];

	if (busy != !!entry->busy)
		set_busy(judge, i, busy);
	if (ready != !!entry->ready)
		set_ready(judge, i, ready);
}

void judge_replace(struct judge *judge, int i, uint32_t weight)
{
	judge->entry[i].ideal = judge->entry[i].got;
	judge_set_weight(judge, i, weight);
}

/* Begin a new minimum, because the old weight is for the service before. */
void judge_set_weight(struct judge *judge, int i, uint32_t weight)
{
	struct judge_entry *entry = &judge->entry[i];

	entry->weight = weight;
	entry->least = deficit(entry);
}

/* Return how much the ideal server may serve @entry now. */
static double room(const struct judge_entry *entry)
{
	return entry->ready ? HUGE_VAL : -deficit(entry);
}

/* Return the weight of all members of @group that take part. */
static double weight_of(const struct judge *judge, const struct judge_group *group)
{
	double weight = 0;

	for (int n = 0; n < group->nr; n++) {
		const struct judge_entry *entry = &judge->entry[group->member[n]];

		weight += takes_part(entry) ? entry->weight : 0;
	}
	return weight;
}

/*
 * Raise the bounds of the members: how much less a client may have got than the
 * ideal server gave it. The bound of a window is the largest of all sets of
 * members that took part in it.
 */
static void set_bounds(struct judge *judge, const struct judge_group *group)
{
	double weight = 0, round = 0, bound, others;
	struct judge_entry *entry;

	for (int n = 0; n < group->nr; n++) {
		entry = &judge->entry[group->member[n]];
		if (!entry->busy && !takes_part(entry))
			continue;
		/* A client at its limit has no share of what others get now. */
		weight += entry->ready ? entry->weight : 0;
		round += entry->item;
	}
	for (int n = 0; n < group->nr; n++) {
		entry = &judge->entry[group->member[n]];
		if (!takes_part(entry))
			continue;
		others = entry->ready ? 0 : entry->weight;
		bound = JUDGE_TURNS * round * entry->weight / (weight + others) +
			judge->taken * entry->largest;
		bound *= judge->surprised ? 2 : 1;
		if (bound > entry->bound)
			entry->bound = bound;
	}
}

/* Serve the members that have no room for their share. Return: what is left. */
static double fill_up(struct judge *judge, const struct judge_group *group, double amount)
{
	double weight = weight_of(judge, group), left = amount;

	for (int n = 0; n < group->nr; n++) {
		struct judge_entry *entry = &judge->entry[group->member[n]];
		double free = room(entry);

		if (!takes_part(entry) || free > amount * entry->weight / weight)
			continue;
		entry->ideal = entry->got;
		left -= free;
	}
	return left;
}

/* Let the ideal server give @amount to all members of @group that take part. */
static void share_out(struct judge *judge, const struct judge_group *group, double amount)
{
	double left = fill_up(judge, group, amount), weight;

	while (left < amount) {
		amount = left;
		left = fill_up(judge, group, amount);
	}
	weight = weight_of(judge, group);
	for (int n = 0; n < group->nr; n++) {
		struct judge_entry *entry = &judge->entry[group->member[n]];

		if (!takes_part(entry))
			continue;
		entry->ideal += amount * entry->weight / weight;
		if (entry->busy)
			look(judge, group->member[n]);
	}
}

/* Give @amount to @i, and let the ideal server give it to the group of @i. */
static void serve(struct judge *judge, int i, double amount)
{
	struct judge_entry *entry = &judge->entry[i];

	set_bounds(judge, &judge->group[entry->group]);
	share_out(judge, &judge->group[entry->group], amount);
	entry->got += amount;
	if (entry->busy)
		look(judge, i);
}

static bool is_any_ready(const struct judge *judge, const struct judge_group *group)
{
	for (int n = 0; n < group->nr; n++)
		if (judge->entry[group->member[n]].ready)
			return true;
	return false;
}

/* Judge @rank, after the client @i of it, or of another rank, was served. */
static void look_at_rank(struct judge *judge, struct judge_rank *rank, int i)
{
	double bound = (JUDGE_TURNS + judge->taken) * rank->largest, share;

	bound *= judge->surprised ? 2 : 1;
	if (rank->over < rank->least)
		rank->least = rank->over;
	share = bound ? (rank->over - rank->least) / bound : 0;
	if (share > judge->worst) {
		judge->worst = share;
		judge->worst_client = i;
	}
	if (share <= 1 || rank->guilty)
		return;
	rank->guilty = true;
	judge->violations++;
}

/* Judge all ranks, because @amount is given to the client @i, which has no parent. */
static void serve_ranks(struct judge *judge, int i, double amount)
{
	bool waits = false;

	for (int r = 0; r < JUDGE_RANKS; r++) {
		struct judge_rank *rank = &judge->rank[r];

		if (waits) {
			rank->over -= amount * judge->low_part;
			rank->over += judge->entry[i].group == r ? amount : 0;
			look_at_rank(judge, rank, i);
		} else {
			rank->over = 0;
			rank->least = 0;
			rank->guilty = false;
		}
		waits |= is_any_ready(judge, &judge->group[r]);
	}
}

void judge_serve(struct judge *judge, int i, int64_t amount)
{
	int top = i;

	while (judge->entry[top].parent != JUDGE_NOBODY)
		top = judge->entry[top].parent;
	serve_ranks(judge, top, amount);
	for (; i != JUDGE_NOBODY; i = judge->entry[i].parent)
		serve(judge, i, amount);
}
