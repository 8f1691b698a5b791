/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The meter: measure how far apart two clients are that should have got the
 * same.
 *
 * Its input is which clients are eligible, their parents and weights, and which
 * service each gets when. It does not know virtual times, and has no line in
 * common with the code that it measures.
 *
 * The measure is that of promise 6, which is Golestani's relative fairness
 * ("A Self-Clocked Fair Queueing Scheme for Broadband Applications", INFOCOM
 * 1994): over any window in which two siblings stay eligible,
 *
 *	| service(i) / weight(i) - service(j) / weight(j) |  <=  bound
 *
 * All windows are judged, not a sample. Let D(t) be the difference of the two
 * since they are eligible together. A window from s to t has the difference
 * D(t) - D(s), so the worst of all windows has max D - min D. Therefore the
 * meter keeps two extremes for each pair. (Bentley finds the maximum subarray
 * by the same difference of prefix sums: "Programming Pearls: Algorithm Design
 * Techniques", CACM 27(9), 1984.) D is linear between two events of i or j, so
 * its extremes are at such events. An event costs one step for each sibling.
 *
 * All numbers are integers, and nothing is rounded. Instead of s(i) / w(i) -
 * s(j) / w(j) the meter looks at s(i) * w(j) - s(j) * w(i). The bound is
 * multiplied by both weights, too.
 */
#ifndef FAIRWQ_SIM_METER_H
#define FAIRWQ_SIM_METER_H

#include <stdbool.h>
#include <stdint.h>

#define METER_NO_ENTRY	(-1)

/*
 * The form of the bound. "Taken" is the number of turns that may have been
 * taken and not ended. A cost is the most that an entry gets at once, divided
 * by its weight.
 */
enum meter_bound {
	/* taken * the larger cost of the two: promise 6, with max_active + 1 */
	METER_PROMISE,
	/*
	 * taken / 2 * the sum of both costs: the bound of policy.c. @taken is
	 * the same for turns that were given, and twice that for time that was
	 * charged.
	 */
	METER_HALVES,
	/*
	 * 2 * taken * the larger cost: for items that may be longer than the
	 * items before them. All turns in flight may be of the first entry,
	 * with next to no charge. At another time in the same window all of
	 * them may be of the second entry.
	 */
	METER_SURPRISED,
};

struct meter_entry {
	int parent;		/* an entry, or METER_NO_ENTRY */
	int group;		/* entries of one group are compared */
	uint32_t weight;
	int64_t largest;	/* the most that it gets at once */
	int64_t service;	/* that it got */
	unsigned int running;	/* its service grows by this, each ns */
	unsigned int eligible;	/* 1, or the number of eligible children */
	unsigned int place;	/* in @member of its group */
};

/* The extremes of one entry's lead on another, at events of the first one. */
struct meter_pair {
	int64_t high;
	int64_t low;
};

struct meter_group {
	unsigned int nr;
	int *member;		/* eligible entries */
};

struct meter {
	int nr, max;
	enum meter_bound bound;
	unsigned int taken;
	int64_t now;
	struct meter_entry *entry;
	struct meter_group *group;
	struct meter_pair *pair;	/* max * max */
	int nr_running;
	int *running;

	/* Results. */
	uint64_t windows;	/* longest windows, each of one pair */
	uint64_t violations;	/* windows with a lag beyond the bound */
	double worst;		/* the worst lag, as a share of the bound */
	int worst_pair[2];
};

struct meter *meter_new(int max, enum meter_bound bound, unsigned int taken);
void meter_free(struct meter *meter);
int meter_add(struct meter *meter, int parent, unsigned int rank, uint32_t weight);
/* Set the most that @i gets at once. A parent has the largest of its children. */
void meter_set_largest(struct meter *meter, int i, int64_t largest);

/* Advance the clock. Must be called before all other events at that time. */
void meter_at(struct meter *meter, int64_t now);

/* Note that an entry without children becomes eligible, or is no longer. */
void meter_join(struct meter *meter, int i);
void meter_leave(struct meter *meter, int i);
/* Set a weight. It ends the windows of @i, and begins new ones if @i is eligible. */
void meter_set_weight(struct meter *meter, int i, uint32_t weight);

/* Note service at one time, or from one time to another. */
void meter_serve(struct meter *meter, int i, int64_t amount);
void meter_begin(struct meter *meter, int i);
void meter_end(struct meter *meter, int i);

/* Judge the windows that are still open. */
void meter_finish(struct meter *meter);

#endif /* FAIRWQ_SIM_METER_H */
