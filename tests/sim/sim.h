/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The simulator: a pool without a kernel, whose clock jumps from one event to
 * the next. A picker, which is tree.c of the module or a copy with a fault,
 * decides which client gets a turn. The simulator imitates the files around it:
 *
 *	core/run.c, core/fifo.c	a runner takes one turn at a time
 *	core/policy.c		a turn is charged when it is taken, and corrected
 *				when it has ended
 *	core/park.c		an item may be parked
 *	core/burst.c		a turn may go on with the items of a serializer
 *	core/seat.c,		a runner is kicked if a turn waits, unless another
 *	core/watchdog.c		one runs an item that is likely to end at once
 *
 * There is no concurrency: one thread handles one event at a time.
 */
#ifndef FAIRWQ_SIM_SIM_H
#define FAIRWQ_SIM_SIM_H

#include "judge.h"
#include "meter.h"
#include "picker.h"
#include "random.h"

#define SIM_US		1000ULL
#define SIM_MS		1000000ULL

/* A jiffy of a kernel with HZ=250. */
#define SIM_JIFFY	(4 * SIM_MS)
#define SIM_MAX_RUNNERS	64

struct sim;

enum sim_policy { SIM_ROUND_ROBIN, SIM_FAIR_TIME };

enum sim_time_kind {
	SIM_FIXED,		/* @lo */
	SIM_UNIFORM,		/* @lo to @hi */
	SIM_RARELY,		/* one in @n takes @hi, the others @lo */
	SIM_RUNS,		/* @n of @lo, then @n of @hi, and so on */
	SIM_WAITS,		/* by turns: until the next one has ended, and @lo */
};

/* The run times of items, ns. */
struct sim_time {
	enum sim_time_kind kind;
	unsigned int n;
	u64 lo, hi;
};

enum sim_arrival_kind {
	SIM_BACKLOG,		/* a backlog without end */
	SIM_CLOSED,		/* @n at a time; an item that has ended comes again */
	SIM_BUNCHES,		/* 1 to @n; when they have ended, after @gap, again */
	SIM_LEAVES,		/* as SIM_BUNCHES, but each time as a new client */
	SIM_BY_SOURCE,		/* from the pool's source, see sim_set_source() */
	SIM_IDLE,		/* none */
};

struct sim_arrivals {
	enum sim_arrival_kind kind;
	unsigned int n;
	u64 gap;		/* ns; random, up to twice that */
};

/* A client's batch, or an owner. An owner has children, and no items. */
struct sim_client_attrs {
	u32 weight;		/* 0: 100 */
	unsigned int rank;	/* if it has no owner; 0 is served first */
	unsigned int max_active; /* 0: no limit */
	int owner;		/* number of a client; METER_NO_ENTRY: none */
	bool serial;		/* its items are of one serializer */
	u64 budget;		/* that a runner spends on these in one turn, ns */
	struct sim_time time;
	struct sim_arrivals arrivals;
};

struct sim_attrs {
	const struct picker *picker;
	enum sim_policy policy;
	unsigned int max_active;
	u64 slice;		/* estimate of an item if none is known before it, ns */
	int max_clients;
	u64 seed;
	/* Happens with one turn in so many, on average; 0: never. */
	unsigned int pause, reweigh, park;
	bool owners_ignored;	/* planted: children are beside their owners */
	bool near_wrap;		/* virtual times wrap before long */
	bool average_charged;	/* planted: a turn is charged the average, not the most */
	bool not_charged;	/* planted: nothing is charged before a turn's end */
	bool burst_free;	/* planted: a burst costs one turn */
	bool sort_late;		/* planted: a sort only comes when the tree is empty */
	bool guess_unbounded;	/* planted: the estimate has no bound */
	bool no_tick;		/* planted: the tick does not look at quick turns */
	bool strangers;		/* run times are not known before the first item */
	bool strict_ranks;	/* a lower priority has no share */
	/* Called when a client's item starts. */
	void (*started)(void *arg, int client);
	/* Called when an item has ended. May queue, cancel and so on. */
	void (*ended)(struct sim *sim, int client);
	/* Called at the time that sim_wait() has set. */
	void (*woken)(struct sim *sim, int client);
	void *arg;
};

struct sim_client {
	struct fairwq_node node;
	struct sim_client_attrs attrs;
	struct sim_client *owner;
	int id;			/* also that of its meter entry */
	u32 weight;
	bool paused;
	bool eligible;		/* has items, is not paused, and is below its limit */
	bool is_owner;
	u64 outstanding;	/* items that were queued and have not ended */
	u64 queued;		/* items in the batch */
	u64 pushed;		/* with @sort_late, items that are not yet sorted */
	unsigned int taken;	/* items at the head that were parked before */
	u64 kept;		/* items that wait in the serializer */
	bool let_go;		/* an item of the serializer is in the batch, or runs */
	unsigned int in_flight;
	unsigned int running;	/* items that run */
	unsigned int parked;	/* items that are parked */
	unsigned int items;	/* items made so far, for SIM_RUNS and SIM_WAITS */
	struct sim_runner *waiting;	/* runs an item that waits for the next one */
	u64 average;		/* of run times, 4 bits of fraction; 0: none */
	u64 longest[2];		/* in this period of RECENT_TURNS, and the last, ns */
	unsigned int measured;	/* turns, for these periods */
	/* Results. */
	u64 turns;		/* items that were started */
	u64 ran;		/* ns */
};

struct sim_turn {
	struct sim_client *client;	/* NULL: the runner has no turn */
	unsigned int nr;	/* items, so far */
	u64 begun;
	u64 cost;		/* that was charged */
	u64 ran;		/* ns, of all its items */
	bool timed;		/* counts in the average */
	bool quick;		/* likely to end at once */
	bool out_of_rank;		/* taken before a turn of a higher priority */
};

struct sim_runner {
	bool idle;
	u64 started;		/* when its item began */
	struct sim_turn turn;
};

struct sim_event {
	u64 when, seq;
	enum { SIM_ITEM_ENDS, SIM_WAKE, SIM_ARRIVAL, SIM_RESUME, SIM_UNPARK,
	       SIM_TICK, SIM_WOKEN } kind;
	int id;			/* of a runner or a client, by @kind */
};

struct sim {
	struct sim_attrs attrs;
	struct fairwq_tree tree;
	struct random rnd;
	u64 now, turns, turn_number, seq;
	int nr_clients;
	struct sim_client *client;
	struct sim_runner runner[SIM_MAX_RUNNERS];
	unsigned int nr_active, nr_parked;
	unsigned int nr_quick;	/* turns that are likely to end at once */
	u64 quick_at;		/* the jiffy in which the last of them began */
	bool ticking;		/* a tick is due at the next jiffy */
	u64 unused_since;	/* since then a turn has waited beside an idle runner */
	unsigned int nr_eligible[FAIRWQ_NR_RANKS];
	struct sim_event *heap;
	int nr_events, max_events;
	/* The source: Zipf's law, the chances of the clients, summed up. */
	double *zipf;
	u64 zipf_gap;
	unsigned int passed[FAIRWQ_NR_RANKS];	/* turns that others had */
	bool begun, unknown;	/* costs are known when a turn ends, not before */

	/* Results. */
	struct meter *meter;	/* of the clients' service: items, or ns */
	struct judge *judge;	/* of the same, against an ideal server */
	struct meter *given;	/* of their turns; under fair time, of their charges */
	unsigned int most_passed[FAIRWQ_NR_RANKS];
	unsigned int least_passed;	/* of a rank served before a higher one */
	u64 longest_unused;	/* the longest time since @unused_since, ns */
	const char *broken;	/* the first broken invariant, or NULL */
};

struct sim *sim_new(const struct sim_attrs *attrs);
int sim_add(struct sim *sim, const struct sim_client_attrs *attrs);
/*
 * Begin a source: queue an item every @gap ns, on average, to a client of
 * SIM_BY_SOURCE. The chance of the k-th client is proportional to 1 / k.
 */
void sim_set_source(struct sim *sim, u64 gap);
/* Run until @turns more items have been started. To have no event left is an error. */
void sim_run(struct sim *sim, u64 turns);
/* Judge. Then @meter and @given have the results. */
void sim_finish(struct sim *sim);
void sim_free(struct sim *sim);
void sim_set_weight(struct sim *sim, int client, u32 weight);
void sim_pause(struct sim *sim, int client, bool paused);
/* Queue @n items; and cancel all that have not started. */
void sim_queue(struct sim *sim, int client, unsigned int n);
void sim_cancel(struct sim *sim, int client);
/* Put a new client in the place of @client. Return: false if its turns have not ended. */
bool sim_renew(struct sim *sim, int client);
/* Call woken() after @delay ns. */
void sim_wait(struct sim *sim, int client, u64 delay);

#endif /* FAIRWQ_SIM_SIM_H */
