// SPDX-License-Identifier: GPL-2.0
/* The judge; what it compares and how is said in judge.h. */
#include <math.h>
#include <stdlib.h>

#include "judge.h"

/* Groups are numbered by parent; those of the ranks come first. */
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

static double deficit(const struct judge_entry *entry)
{
	return entry->ideal - entry->got;
}

/* The ideal server still has work of a client that is ahead of it. */
static bool takes_part(const struct judge_entry *entry)
{
	return entry->ready || deficit(entry) < 0;
}

static void open_window(struct judge *judge, struct judge_entry *entry)
{
	judge->windows++;
	/* What it was behind when the last one ended is forgotten. */
	if (deficit(entry) > 0)
		entry->ideal = entry->got;
	entry->least = deficit(entry);
	entry->bound = 0;
	entry->guilty = false;
}

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

/* What it got before is judged by the old weight. */
void judge_set_weight(struct judge *judge, int i, uint32_t weight)
{
	struct judge_entry *entry = &judge->entry[i];

	entry->weight = weight;
	entry->least = deficit(entry);
}

/* By how much the ideal server may serve it now. */
static double room(const struct judge_entry *entry)
{
	return entry->ready ? HUGE_VAL : -deficit(entry);
}

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
 * By how much a client may have got less than the ideal server gave it: with
 * those that shared with it when this was most, in this window.
 */
static void set_bounds(struct judge *judge, const struct judge_group *group)
{
	double weight = 0, round = 0, bound, others;
	struct judge_entry *entry;

	for (int n = 0; n < group->nr; n++) {
		entry = &judge->entry[group->member[n]];
		if (!entry->busy && !takes_part(entry))
			continue;
		/* One at its limit has had its turn. Of what others get it has no share. */
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

/* Fill up those that have no room for their share. Return what is left. */
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

/* The ideal server gives as much, to all members of the group that take part. */
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

/* Judge the rank, of which the client @i is served, or is not. */
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

/* So much is given to the client @i, which has no parent. */
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
