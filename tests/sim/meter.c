// SPDX-License-Identifier: GPL-2.0
/* The meter: measure how far apart two clients are; see meter.h. */
#include <stdlib.h>

#include "meter.h"

#define NR_RANKS	3
/* Tolerate one part in so many of the bound, because the tree rounds times to units. */
#define METER_FINEST	100000

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static struct meter_pair *pair_of(struct meter *meter, int i, int j)
{
	return &meter->pair[(size_t)i * meter->max + j];
}

/* Return the lead of @i on @j, times both weights. */
static int64_t lead(const struct meter *meter, int i, int j)
{
	const struct meter_entry *a = &meter->entry[i], *b = &meter->entry[j];

	return a->service * b->weight - b->service * a->weight;
}

/* Make a meter for @max entries. Groups are numbered by rank, then by parent. */
struct meter *meter_new(int max, enum meter_bound bound, unsigned int taken)
{
	struct meter *meter = calloc(1, sizeof(*meter));

	meter->max = max;
	meter->bound = bound;
	meter->taken = taken;
	meter->entry = calloc(max, sizeof(*meter->entry));
	meter->group = calloc(max + NR_RANKS, sizeof(*meter->group));
	meter->pair = calloc((size_t)max * max, sizeof(*meter->pair));
	meter->running = calloc(max, sizeof(*meter->running));
	return meter;
}

void meter_free(struct meter *meter)
{
	for (int i = 0; i < meter->max + NR_RANKS; i++)
		free(meter->group[i].member);
	free(meter->entry);
	free(meter->group);
	free(meter->pair);
	free(meter->running);
	free(meter);
}

int meter_add(struct meter *meter, int parent, unsigned int rank, uint32_t weight)
{
	int i = meter->nr++;

	meter->entry[i] = (struct meter_entry){
		.parent = parent,
		.group = parent == METER_NO_ENTRY ? (int)rank : NR_RANKS + parent,
		.weight = weight,
	};
	return i;
}

void meter_set_largest(struct meter *meter, int i, int64_t largest)
{
	for (; i != METER_NO_ENTRY; i = meter->entry[i].parent)
		meter->entry[i].largest = larger(meter->entry[i].largest, largest);
}

/* ---- pairs ------------------------------------------------------------- */

/* Begin the window of a pair. */
static void open_pair(struct meter *meter, int i, int j)
{
	int64_t d = lead(meter, i, j);

	*pair_of(meter, i, j) = (struct meter_pair){ .high = d, .low = d };
	*pair_of(meter, j, i) = (struct meter_pair){ .high = -d, .low = -d };
}

/* Return how much @i and @j may differ, times both weights. */
static int64_t bound_of(const struct meter *meter, int i, int j)
{
	const struct meter_entry *a = &meter->entry[i], *b = &meter->entry[j];
	int64_t cost_a = a->largest * b->weight, cost_b = b->largest * a->weight;
	int64_t bound = meter->taken * larger(cost_a, cost_b);

	if (meter->bound == METER_HALVES)
		bound = meter->taken * (cost_a + cost_b) / 2;
	else if (meter->bound == METER_SURPRISED)
		bound *= 2;
	return bound + bound / METER_FINEST;
}

/* End the window of a pair. Each side saw one half; the other is its mirror image. */
static void judge_pair(struct meter *meter, int i, int j)
{
	const struct meter_pair *ij = pair_of(meter, i, j), *ji = pair_of(meter, j, i);
	int64_t lag = larger(ij->high, -ji->low) - smaller(ij->low, -ji->high);
	int64_t bound = bound_of(meter, i, j);
	double share = (double)lag / bound;

	meter->windows++;
	meter->violations += lag > bound;
	if (share <= meter->worst)
		return;
	meter->worst = share;
	meter->worst_pair[0] = i;
	meter->worst_pair[1] = j;
}

/* Note the lead of @i on each of its siblings, after an event of @i. */
static void look(struct meter *meter, int i)
{
	const struct meter_group *group = &meter->group[meter->entry[i].group];
	struct meter_pair *row = pair_of(meter, i, 0);

	if (!meter->entry[i].eligible)
		return;
	for (unsigned int n = 0; n < group->nr; n++) {
		int j = group->member[n];
		int64_t d = lead(meter, i, j);

		row[j].high = larger(row[j].high, d);
		row[j].low = smaller(row[j].low, d);
	}
}

/* ---- entering and leaving a group --------------------------------------- */

static void enter_group(struct meter *meter, int i)
{
	struct meter_entry *entry = &meter->entry[i];
	struct meter_group *group = &meter->group[entry->group];

	if (!group->member)
		group->member = calloc(meter->max, sizeof(*group->member));
	for (unsigned int n = 0; n < group->nr; n++)
		open_pair(meter, i, group->member[n]);
	entry->place = group->nr;
	group->member[group->nr++] = i;
}

static void leave_group(struct meter *meter, int i)
{
	struct meter_entry *entry = &meter->entry[i];
	struct meter_group *group = &meter->group[entry->group];
	int last;

	look(meter, i);
	last = group->member[--group->nr];
	group->member[entry->place] = last;
	meter->entry[last].place = entry->place;
	for (unsigned int n = 0; n < group->nr; n++)
		judge_pair(meter, i, group->member[n]);
}

void meter_join(struct meter *meter, int i)
{
	for (; i != METER_NO_ENTRY; i = meter->entry[i].parent) {
		if (meter->entry[i].eligible++)
			return;
		enter_group(meter, i);
	}
}

void meter_leave(struct meter *meter, int i)
{
	for (; i != METER_NO_ENTRY; i = meter->entry[i].parent) {
		if (meter->entry[i].eligible == 1)
			leave_group(meter, i);
		if (--meter->entry[i].eligible)
			return;
	}
}

void meter_set_weight(struct meter *meter, int i, uint32_t weight)
{
	struct meter_entry *entry = &meter->entry[i];

	if (entry->eligible)
		leave_group(meter, i);
	entry->weight = weight;
	if (entry->eligible)
		enter_group(meter, i);
}

/* ---- service ------------------------------------------------------------ */

void meter_serve(struct meter *meter, int i, int64_t amount)
{
	for (; i != METER_NO_ENTRY; i = meter->entry[i].parent) {
		meter->entry[i].service += amount;
		look(meter, i);
	}
}

/* Advance the clock to @now, and serve the entries that run. */
void meter_at(struct meter *meter, int64_t now)
{
	int64_t past = now - meter->now;

	meter->now = now;
	for (int n = 0; past && n < meter->nr_running; n++) {
		struct meter_entry *entry = &meter->entry[meter->running[n]];

		entry->service += past * entry->running;
	}
}

static void running_add(struct meter *meter, int i)
{
	if (!meter->entry[i].running++)
		meter->running[meter->nr_running++] = i;
}

static void running_del(struct meter *meter, int i)
{
	int n = 0;

	if (--meter->entry[i].running)
		return;
	while (meter->running[n] != i)
		n++;
	meter->running[n] = meter->running[--meter->nr_running];
}

void meter_begin(struct meter *meter, int i)
{
	for (; i != METER_NO_ENTRY; i = meter->entry[i].parent) {
		running_add(meter, i);
		look(meter, i);
	}
}

void meter_end(struct meter *meter, int i)
{
	for (; i != METER_NO_ENTRY; i = meter->entry[i].parent) {
		running_del(meter, i);
		look(meter, i);
	}
}

void meter_finish(struct meter *meter)
{
	for (int i = 0; i < meter->nr; i++)
		if (meter->entry[i].eligible)
			leave_group(meter, i);
}
