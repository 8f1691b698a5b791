/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The simulator: a pool without a kernel, whose clock jumps from one event to
 * the next. A picker, which is tree.c of the module or a copy with a fault,
 * decides which client gets a turn. The simulator imitates the files around it:
 *
 *	core/run.c, core/fifo.c	a runner takes one turn at a time
 *	core/cost.c		a turn is charged when it is taken, and corrected
 *				when it has ended
 *	core/park.c		an item may be parked
 *	core/burst.c		a turn may go on with the items of a serializer
 *	core/runner.c,		a runner is kicked for what waits, unless one is
 *	core/watchdog.c		at an item that is likely to be over at once
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

/* As a kernel with HZ=250 has it. */
#define SIM_JIFFY	(4 * SIM_MS)
#define SIM_MAX_RUNNERS	64

struct sim;

enum sim_policy { SIM_ROUND_ROBIN, SIM_FAIR_TIME, SIM_FIFO };

enum sim_time_kind {
	SIM_FIXED,		/* @lo */
	SIM_UNIFORM,		/* @lo to @hi */
	SIM_RARELY,		/* one in @n takes @hi, the others @lo */
	SIM_RUNS,		/* @n of @lo, then @n of @hi, and so on */
	SIM_WAITS,		/* until the next one has ended, which takes @lo; and so on */
};

/* How long items take, ns. */
struct sim_time {
	enum sim_time_kind kind;
	unsigned int n;
	u64 lo, hi;
};

enum sim_arrival_kind {
	SIM_BACKLOG,		/* there are always more */
	SIM_CLOSED,		/* @n at a time; one that is done comes again */
	SIM_BUNCHES,		/* @n, and when they are done, after @gap, again */
	SIM_LEAVES,		/* the same, but then it is another client */
	SIM_BY_SOURCE,		/* the pool's source says when, see sim_set_source() */
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
	unsigned int rank;	/* of one without an owner; 0 is served first */
	unsigned int max_active; /* 0: no limit */
	int owner;		/* number of a client; METER_NO_ENTRY: none */
	bool serial;		/* its items are of one serializer */
	u64 budget;		/* of which a runner does so much in one turn, ns */
	struct sim_time time;
	struct sim_arrivals arrivals;
};

struct sim_attrs {
	const struct picker *picker;
	enum sim_policy policy;
	unsigned int max_active;
	u64 slice;		/* ns; what an item may take of which nothing is known */
	int max_clients;
	u64 seed;
	/* One turn in so many, on average; 0: never. */
	unsigned int pause, reweigh, park;
	bool owners_ignored;	/* planted: children stand beside their owners */
	bool near_wrap;		/* virtual times wrap before long */
	bool average_charged;	/* planted: what a turn is likely to take, not may */
	bool not_charged;	/* planted: nothing before its end, under fair time */
	bool burst_free;	/* planted: a burst costs one turn */
	bool sort_late;		/* planted: what is pushed counts when nothing else is left */
	bool guess_unbounded;	/* planted: a wait is charged to the next turn as a guess */
	bool no_tick;		/* planted: an item that was thought short is not looked at */
	bool strangers;		/* how long items are is not known before one was */
	bool strict_ranks;	/* a lower priority has no share */
	/* Called when a client's item starts. */
	void (*started)(void *arg, int client);
	/* Called when one has ended. May queue, cancel and so on. */
	void (*ended)(struct sim *sim, int client);
	/* And at times that sim_wait() asks for. */
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
	bool eligible;		/* has something that nothing holds back */
	bool is_owner;
	u64 outstanding;	/* items that were queued and have not ended */
	u64 queued;		/* items in the batch, of which */
	u64 pushed;		/* and in front of it, with @sort_late */
	unsigned int taken;	/* so many at the head were parked before */
	u64 kept;		/* items that wait in the serializer */
	bool let_go;		/* one of them is on its way, or runs */
	unsigned int in_flight;
	unsigned int running;	/* so many of its items */
	unsigned int parked;	/* likewise */
	unsigned int items;	/* that were made, for SIM_RUNS and SIM_WAITS */
	struct sim_runner *waiting;	/* at an item that waits for the next one */
	u64 average;		/* of run times, 4 bits of fraction; 0: none */
	u64 longest[2];		/* of so many turns that are measured now, and before */
	unsigned int measured;
	/* Under arrival order: of what is queued. A ring, its size in mask + 1. */
	u64 *stamp;
	u32 stamp_head, stamp_mask;
	/* Counted here. */
	u64 turns;		/* that were started */
	u64 ran;		/* ns */
};

struct sim_turn {
	struct sim_client *client;	/* NULL: none is under way */
	unsigned int nr;	/* items, so far */
	u64 begun;
	u64 cost;		/* that was charged */
	u64 ran;		/* ns, of all its items */
	bool timed;
	bool quick;		/* likely to be over at once */
	bool out_of_rank;		/* before one of a higher priority */
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
	unsigned int nr_quick;	/* turns that are likely to be over at once */
	u64 quick_at;		/* the jiffy in which one of them began */
	bool ticking;
	u64 unused_since;	/* a runner was idle, a turn waited, and none began */
	unsigned int nr_eligible[FAIRWQ_NR_RANKS];
	struct sim_event *heap;
	int nr_events, max_events;
	u64 last_stamp;
	/* Zipf's law: how likely each of the clients is, summed up. */
	double *zipf;
	u64 zipf_gap;
	unsigned int passed[FAIRWQ_NR_RANKS];	/* turns that others had */
	bool begun, unknown;	/* costs are known when a turn ends, not before */

	/* What was found. */
	struct meter *meter;	/* of what the clients got: items, or ns */
	struct judge *judge;	/* of the same, against an ideal server */
	struct meter *given;	/* of what they were given; fair time: were charged */
	unsigned int most_passed[FAIRWQ_NR_RANKS];
	unsigned int least_passed;	/* and then served, before a higher one */
	u64 longest_unused;	/* so long, ns */
	const char *broken;	/* the first thing that must never happen, or NULL */
};

struct sim *sim_new(const struct sim_attrs *attrs);
int sim_add(struct sim *sim, const struct sim_client_attrs *attrs);
/* Clients of SIM_BY_SOURCE get items every @gap ns, the k-th as often as 1 / k. */
void sim_set_source(struct sim *sim, u64 gap);
/* Until so many turns have been started, or nothing is left to do. */
void sim_run(struct sim *sim, u64 turns);
/* Judge. After that @meter and @given say what was found. */
void sim_finish(struct sim *sim);
void sim_free(struct sim *sim);
void sim_set_weight(struct sim *sim, int client, u32 weight);
void sim_pause(struct sim *sim, int client, bool paused);
/* More items; and all that have not started are gone. */
void sim_queue(struct sim *sim, int client, unsigned int n);
void sim_cancel(struct sim *sim, int client);
/* Another client comes in its place. False: its turns have not all ended yet. */
bool sim_renew(struct sim *sim, int client);
void sim_wait(struct sim *sim, int client, u64 delay);

#endif /* FAIRWQ_SIM_SIM_H */
