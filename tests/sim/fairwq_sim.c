// SPDX-License-Identifier: GPL-2.0
/*
 * The simulator's cases: check that fairwq is fair over millions of turns.
 *
 * They run in user space:
 *
 *	tree.c of the module	decides each turn
 *	sim.h			is the pool, with a clock of its own
 *	meter.h, judge.h	measure, and share no line with tree.c
 *
 * The output is KTAP. Each case is a family of configurations. It prints how
 * near the worst lag of any two clients came to the bound, over any window. A
 * case whose name ends in _is_seen plants a fault, and passes if the fault is
 * noticed.
 *
 * The environment variable SEED determines all numbers. With the name of a case
 * as argument, only that case runs.
 */
#include <stdarg.h>
#include <stdlib.h>

#include <linux/kernel.h>

#include "../user/ktap.h"
#include "adversary.h"
#include "sim.h"

/* Turns of a plot. */
#define PLOT_TURNS	4000
/* Seeds for a plot that draws numbers. */
#define PLOT_SEEDS	10
/* Items by which an adversary may be ahead, beside one for each runner. */
#define PLOT_SLACK	2
/* Part of the pool that an adversary may get beyond its share. */
#define PLOT_EXTRA	0.01

static u64 seed = 1;
static struct random rnd;	/* of the case that runs */

/* The results of a case, over all its configurations. */
static struct {
	unsigned int configs;
	u64 turns, windows, violations;
	u64 judged, starved;
	bool any;		/* configurations are made by chance */
	bool not_judged;	/* the ideal server is no measure for this case */
	double least;		/* least service of a client, in parts of its share */
	double more;		/* the most that an adversary got, less its share */
	char plot[200];		/* the pool of that */
	double worst, worst_given, worst_judged;
	char where[200];	/* the configuration that was worst */
	char starving[200];	/* the configuration that was worst by the judge */
} found;

/* ---- building blocks ------------------------------------------------------ */

static const unsigned int runners[] = { 1, 2, 3, 8, 64 };

static const struct sim_time ten_us = { .kind = SIM_FIXED, .lo = 10 * SIM_US };

static const struct sim_time rarely_long = {
	.kind = SIM_RARELY, .n = 20, .lo = 1 * SIM_US, .hi = 100 * SIM_US
};

static const struct sim_time in_runs = {
	.kind = SIM_RUNS, .n = 20, .lo = 1 * SIM_US, .hi = 100 * SIM_US
};

static const struct sim_time uniform = {
	.kind = SIM_UNIFORM, .lo = 1 * SIM_US, .hi = 100 * SIM_US
};

static const struct sim_arrivals backlog = { .kind = SIM_BACKLOG };

static struct sim_attrs attrs(enum sim_policy policy, unsigned int max_active)
{
	return (struct sim_attrs){
		.picker = &picker_sound,
		.policy = policy,
		.max_active = max_active,
		.max_clients = 256,
		.seed = random_next(&rnd),
	};
}

static int add_client(struct sim *sim, u32 weight, struct sim_time time,
		      struct sim_arrivals arrivals)
{
	return sim_add(sim, &(struct sim_client_attrs){
		.owner = METER_NO_ENTRY, .weight = weight, .time = time, .arrivals = arrivals,
	});
}

static int add_child(struct sim *sim, int owner, u32 weight, struct sim_time time,
		     struct sim_arrivals arrivals)
{
	return sim_add(sim, &(struct sim_client_attrs){
		.owner = owner, .weight = weight, .time = time, .arrivals = arrivals,
	});
}

static struct sim_time fixed(u64 ns)
{
	return (struct sim_time){ .kind = SIM_FIXED, .lo = ns };
}

static struct sim_arrivals bunches(unsigned int n, u64 gap)
{
	return (struct sim_arrivals){ .kind = SIM_BUNCHES, .n = n, .gap = gap };
}

static void note_worst(const struct sim *sim, const struct meter *meter, const char *what)
{
	const int *pair = meter->worst_pair;

	snprintf(found.where, sizeof(found.where),
		 "configuration %u: %s, %u runners, %d clients; %s of clients %d and %d (weights %u and %u)",
		 found.configs, sim->attrs.policy == SIM_FAIR_TIME ? "fair time" : "turns",
		 sim->attrs.max_active, sim->nr_clients, what, pair[0], pair[1],
		 sim->client[pair[0]].weight, sim->client[pair[1]].weight);
}

/*
 * Check whether the judge must be left out of this configuration. That is so
 * for
 *
 * clients of all kinds, with several runners: the ideal server gives the share
 * of a
 *	long item at once to clients that could not have used it in that time,
 * parked items, with weights that change: a client that waits for a turn that
 * was
 *	put back has no debt that the ideal server could count by a new weight.
 */
static bool not_judged(const struct sim *sim)
{
	const struct sim_attrs *a = &sim->attrs;

	if (found.not_judged)
		return true;
	if (found.any && (a->max_active > 1 || a->reweigh))
		return true;
	return a->park && a->reweigh && a->policy == SIM_ROUND_ROBIN;
}

static void note_judged(const struct sim *sim)
{
	const struct judge *judge = sim->judge;
	int client = judge->worst_client;

	if (not_judged(sim))
		return;
	found.judged += judge->windows;
	found.starved += judge->violations;
	if (judge->worst <= found.worst_judged)
		return;
	found.worst_judged = judge->worst;
	snprintf(found.starving, sizeof(found.starving),
		 "configuration %u: %s, %u runners, %d clients; client %d (weight %u)",
		 found.configs, sim->attrs.policy == SIM_FAIR_TIME ? "fair time" : "turns",
		 sim->attrs.max_active, sim->nr_clients, client, sim->client[client].weight);
}

/* Run @sim for @turns, and add its results to @found. */
static void observe(struct sim *sim, u64 turns)
{
	sim_run(sim, turns);
	sim_finish(sim);
	expect(!sim->broken, "%s", sim->broken);
	found.configs++;
	found.turns += sim->turns;
	found.windows += sim->meter->windows;
	found.violations += sim->meter->violations;
	note_judged(sim);
	if (sim->meter->worst > found.worst) {
		found.worst = sim->meter->worst;
		note_worst(sim, sim->meter, "service");
	}
	found.violations += sim->given->violations;
	if (sim->given->worst > found.worst_given) {
		found.worst_given = sim->given->worst;
		if (sim->given->violations)
			note_worst(sim, sim->given, "what was given");
	}
}

static void run_config(struct sim *sim, u64 turns)
{
	observe(sim, turns);
	sim_free(sim);
}

static void report(void)
{
	printf("# %u configurations, %llu turns, %llu windows: worst lag %.1f %% of the bound",
	       found.configs, (unsigned long long)found.turns,
	       (unsigned long long)found.windows, 100 * found.worst);
	if (found.worst_given)
		printf(", of what was given %.1f %%", 100 * found.worst_given);
	printf("\n# worst: %s\n", found.where);
	printf("# beside an ideal server, %llu windows: at most %.1f %% of the bound behind\n",
	       (unsigned long long)found.judged, 100 * found.worst_judged);
	printf("# worst: %s\n", found.starving);
}

/* Report, and expect that no window was worse than the bound. */
static void expect_fair(void)
{
	report();
	expect(found.windows, "nothing was measured");
	expect(!found.violations, "%llu windows", (unsigned long long)found.violations);
	expect(!found.starved, "%llu windows", (unsigned long long)found.starved);
}

/* Report, and expect that the meter saw the fault. */
static void expect_unfair(void)
{
	report();
	expect(found.violations, "the fault was not seen");
}

/* Report, and expect that the judge saw a client with less than its share. */
static void expect_starved(void)
{
	report();
	expect(found.starved, "the judge did not see the fault");
}

/* ---- rotation --------------------------------------------------------------- */

struct rotation {
	int nr, busy[64];
	u64 turns, wrong;
};

static void note_turn(void *arg, int client)
{
	struct rotation *rotation = arg;

	rotation->wrong += client != rotation->busy[rotation->turns++ % rotation->nr];
}

/*
 * Run @nr clients with items of any length, and @idle ones between them.
 * Return: the number of turns that went to the wrong client.
 */
static u64 rotate(int nr, int idle, u32 weight)
{
	struct sim_attrs a = attrs(SIM_ROUND_ROBIN, 1);
	struct rotation rotation = { };
	struct sim *sim;

	a.started = note_turn;
	a.arg = &rotation;
	sim = sim_new(&a);
	for (int i = 0; i < nr + idle; i++) {
		bool busy = idle <= i / 2 || i % 2;
		struct sim_arrivals none = { .kind = SIM_IDLE };

		if (busy)
			rotation.busy[rotation.nr++] = i;
		add_client(sim, i ? 100 : weight, uniform, busy ? backlog : none);
	}
	run_config(sim, 100 * nr);
	return rotation.wrong;
}

/* Check that with turns and one runner clients rotate, however long their items take. */
static void exact_rotation(void)
{
	static const int nr[] = { 1, 2, 3, 7, 33, 64 }, idle[] = { 0, 1, 9 };

	for (unsigned int i = 0; i < ARRAY_SIZE(nr) * ARRAY_SIZE(idle); i++) {
		int busy = nr[i % ARRAY_SIZE(nr)], others = idle[i / ARRAY_SIZE(nr)];
		u64 wrong = rotate(busy, others, 100);

		expect(!wrong, "%llu turns, %d clients", (unsigned long long)wrong, busy);
	}
	report();
	expect(rotate(3, 0, 200), "one has twice the weight");
}

/* ---- standing backlogs -------------------------------------------------------- */

static void equal_weights(void)
{
	static const int nr[] = { 2, 3, 17, 100 };

	for (unsigned int i = 0; i < ARRAY_SIZE(nr) * ARRAY_SIZE(runners); i++) {
		struct sim_attrs a = attrs(SIM_ROUND_ROBIN, runners[i % ARRAY_SIZE(runners)]);
		struct sim *sim = sim_new(&a);

		for (int k = 0; k < nr[i / ARRAY_SIZE(runners)]; k++)
			add_client(sim, 100, ten_us, backlog);
		run_config(sim, 5000);
	}
	expect_fair();
}

static const u32 weights[][4] = {
	{ 1, 2, 5 }, { 1, 100, 10000 }, { 10000, 9999 }, { 7777, 3333, 1 },
	{ 100, 101, 102, 103 }, { 3, 7, 11, 13 },
};

static struct sim *weighted(const struct picker *picker, enum sim_policy policy,
			    unsigned int max_active, unsigned int which)
{
	struct sim_attrs a = attrs(policy, max_active);
	struct sim *sim;

	a.picker = picker;
	sim = sim_new(&a);
	for (unsigned int k = 0; k < 4 && weights[which][k]; k++)
		add_client(sim, weights[which][k], fixed(random_between(&rnd, 300, 3000)), backlog);
	return sim;
}

static void unequal_weights(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(weights) * ARRAY_SIZE(runners); i++)
		run_config(weighted(&picker_sound, SIM_ROUND_ROBIN,
				    runners[i % ARRAY_SIZE(runners)], i / ARRAY_SIZE(runners)),
			   10000);
	expect_fair();
}

/* Check that no turn is rounded: the errors would add up. */
static void nothing_is_rounded_away(void)
{
	run_config(weighted(&picker_sound, SIM_ROUND_ROBIN, 1, 2), 600000);
	for (unsigned int i = 0; i < ARRAY_SIZE(weights); i++)
		run_config(weighted(&picker_sound, SIM_FAIR_TIME, 1, i), 50000);
	expect_fair();
}

static const struct sim_time times[] = {
	{ .kind = SIM_FIXED, .lo = 1 * SIM_US }, { .kind = SIM_FIXED, .lo = 100 * SIM_US },
	{ .kind = SIM_UNIFORM, .lo = 1 * SIM_US, .hi = 100 * SIM_US },
	{ .kind = SIM_RARELY, .n = 20, .lo = 1 * SIM_US, .hi = 100 * SIM_US },
	{ .kind = SIM_RUNS, .n = 20, .lo = 1 * SIM_US, .hi = 100 * SIM_US },
};

/* Check that where turns count, their length makes no difference. */
static void item_times(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(runners) * 2; i++) {
		struct sim_attrs a = attrs(SIM_ROUND_ROBIN, runners[i / 2]);
		struct sim *sim = sim_new(&a);

		for (unsigned int k = 0; k < 2 * ARRAY_SIZE(times); k++)
			add_client(sim, i % 2 ? 1 + k : 100, times[k / 2], backlog);
		run_config(sim, 20000);
	}
	expect_fair();
}

/* ---- clients that come and go -------------------------------------------------- */

static void zipf(void)
{
	struct sim_arrivals by_source = { .kind = SIM_BY_SOURCE };

	for (unsigned int i = 0; i < 4; i++) {
		/* In half of them, more items come than the runners can do. */
		unsigned int max_active = i & 2 ? 4 : 1;
		u64 gap = (i & 1 ? 7 : 12) * SIM_US / max_active;
		struct sim_attrs a = attrs(SIM_ROUND_ROBIN, max_active);
		struct sim *sim = sim_new(&a);

		for (int k = 0; k < 200; k++)
			add_client(sim, 100, ten_us, by_source);
		sim_set_source(sim, gap);
		run_config(sim, 20000);
	}
	expect_fair();
}

/* Make clients with a backlog, others with bunches, others with a few items at a time. */
static struct sim *coming_and_going(const struct sim_attrs *a, struct sim_time time,
				    enum sim_arrival_kind kind)
{
	struct sim *sim = sim_new(a);

	for (int k = 0; k < 20; k++) {
		struct sim_arrivals arrivals = backlog;

		if (k % 4 == 1)
			arrivals = (struct sim_arrivals){ .kind = SIM_CLOSED, .n = k };
		else if (k % 4 > 1)
			arrivals = (struct sim_arrivals){
				.kind = kind, .n = 3 * k, .gap = k * 20 * SIM_US,
			};
		add_client(sim, k % 3 ? 100 : 10 * (k + 1), time, arrivals);
	}
	return sim;
}

static void arrivals(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(runners); i++) {
		struct sim_attrs a = attrs(SIM_ROUND_ROBIN, runners[i]);

		run_config(coming_and_going(&a, ten_us, SIM_BUNCHES), 30000);
	}
	expect_fair();
}

/* Check clients that leave, and new ones that come in their places. */
static void departures(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(runners); i++) {
		struct sim_attrs a = attrs(SIM_ROUND_ROBIN, runners[i]);

		run_config(coming_and_going(&a, ten_us, SIM_LEAVES), 30000);
	}
	expect_fair();
}

/* Check clients that come and go while virtual times wrap. */
static void times_that_wrap(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(runners); i++) {
		struct sim_attrs a = attrs(SIM_ROUND_ROBIN, runners[i]);

		a.near_wrap = true;
		run_config(coming_and_going(&a, ten_us, SIM_LEAVES), 30000);
	}
	expect_fair();
}

static void limits(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(runners); i++) {
		struct sim_attrs a = attrs(SIM_ROUND_ROBIN, runners[i]);
		struct sim *sim = sim_new(&a);

		for (int k = 0; k < 12; k++)
			sim_add(sim, &(struct sim_client_attrs){
				.owner = METER_NO_ENTRY, .weight = 1 + k * k,
				.max_active = k % 4, .time = uniform, .arrivals = backlog,
			});
		run_config(sim, 20000);
	}
	expect_fair();
}

static void pauses(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(runners); i++) {
		struct sim_attrs a = attrs(SIM_ROUND_ROBIN, runners[i]);

		a.pause = 20;
		run_config(coming_and_going(&a, uniform, SIM_BUNCHES), 20000);
	}
	expect_fair();
}

static void weight_changes(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(runners); i++) {
		struct sim_attrs a = attrs(SIM_ROUND_ROBIN, runners[i]);

		a.reweigh = 100;
		a.pause = i % 2 ? 0 : 100;
		run_config(coming_and_going(&a, ten_us, SIM_BUNCHES), 30000);
	}
	expect_fair();
}

/* Check items that still run when their next turn comes. */
static void items_parked(void)
{
	for (unsigned int i = 0; i < 2 * ARRAY_SIZE(runners); i++) {
		struct sim_attrs a = attrs(SIM_ROUND_ROBIN, runners[i / 2]);
		struct sim_time late = {
			.kind = SIM_RARELY, .n = 100, .lo = 500, .hi = 10 * SIM_MS,
		};

		a.park = 10;
		a.reweigh = 500;
		a.pause = 500;
		run_config(coming_and_going(&a, i % 2 ? late : ten_us, SIM_BUNCHES), 10000);
	}
	expect_fair();
}

/* ---- owners ------------------------------------------------------------------- */

/* Make two levels of owners, and batches without an owner beside them. */
static struct sim *family(const struct sim_attrs *a, struct sim_time time)
{
	struct sim *sim = sim_new(a);
	struct sim_arrivals none = { .kind = SIM_IDLE };
	int owner[6];

	for (int i = 0; i < 6; i++)
		owner[i] = add_child(sim, i < 3 ? METER_NO_ENTRY : owner[i - 2], 50 * (i + 1), time,
				     none);
	for (int i = 0; i < 6; i++)
		for (int k = 0; k <= i; k++)
			add_child(sim, owner[i], 100 + k, time,
				  k % 3 == 2 ? bunches(30, SIM_MS / 2) : backlog);
	for (int i = 0; i < 3; i++)
		add_client(sim, 100, time, i ? backlog : bunches(10, 100 * SIM_US));
	return sim;
}

static void trees(void)
{
	for (unsigned int i = 0; i < 2 * ARRAY_SIZE(runners); i++) {
		struct sim_attrs a = attrs(SIM_ROUND_ROBIN, runners[i / 2]);

		a.pause = i % 2 ? 50 : 0;
		a.reweigh = i % 2 ? 200 : 0;
		run_config(family(&a, uniform), 20000);
	}
	expect_fair();
}

/* Return the turns of an owner with @nr children, beside two batches without an owner. */
static u64 turns_of_owner(int nr, u32 weight, const struct sim_attrs *a)
{
	struct sim_arrivals none = { .kind = SIM_IDLE };
	struct sim *sim = sim_new(a);
	int owner = add_client(sim, weight, ten_us, nr ? none : backlog);
	u64 turns = 0;

	add_client(sim, 100, ten_us, backlog);
	add_client(sim, 100, ten_us, backlog);
	for (int i = 0; i < nr; i++)
		add_child(sim, owner, 1 + 100 * i, ten_us, backlog);
	observe(sim, 30000);
	for (int i = 0; i < sim->nr_clients; i++)
		if (i == owner || sim->client[i].owner)
			turns += sim->client[i].turns;
	sim_free(sim);
	return turns;
}

/* Check that a client gains nothing by many batches. */
static void owner_counts_as_one(void)
{
	static const int nr[] = { 1, 2, 10, 60 };

	for (unsigned int i = 0; i < 2 * ARRAY_SIZE(runners); i++) {
		struct sim_attrs a = attrs(SIM_ROUND_ROBIN, runners[i / 2]);
		u32 weight = i % 2 ? 100 : 37;
		u64 alone = turns_of_owner(0, weight, &a);

		for (unsigned int k = 0; k < ARRAY_SIZE(nr); k++) {
			s64 more = turns_of_owner(nr[k], weight, &a) - alone;

			expect(llabs(more) <= a.max_active + 1,
			       "%lld turns more for %d children", (long long)more, nr[k]);
		}
	}
	expect_fair();
}

/* ---- priorities ----------------------------------------------------------------- */

/* Make two clients of each rank whose bit in @busy is set. */
static struct sim *ranked(const struct sim_attrs *a, unsigned int busy, bool steady)
{
	struct sim *sim = sim_new(a);

	for (unsigned int rank = 0; rank < FAIRWQ_NR_RANKS; rank++)
		for (int k = 0; k < 2 && busy >> rank & 1; k++)
			sim_add(sim, &(struct sim_client_attrs){
				.owner = METER_NO_ENTRY, .rank = rank, .weight = 100 + 100 * k,
				.time = ten_us,
				.arrivals = steady || k ? backlog : bunches(20, 200 * SIM_US),
			});
	return sim;
}

/* Check that lower priorities had one turn in 64 while they waited, and no more. */
static bool all_had_their_turns(const struct sim *sim)
{
	return sim->most_passed[1] < 64 && sim->most_passed[2] < 64 &&
	       sim->most_passed[0] <= 2 && sim->least_passed >= 62;
}

static void priorities(void)
{
	for (unsigned int i = 0; i < 8 * ARRAY_SIZE(runners); i++) {
		struct sim_attrs a = attrs(SIM_ROUND_ROBIN, runners[i / 8]);
		static const unsigned int ranks[] = { 7, 6, 5, 3 };
		unsigned int busy = ranks[i % 4];
		struct sim *sim = ranked(&a, busy, i & 4);

		observe(sim, 10000);
		expect(all_had_their_turns(sim), "passed over %u, %u, %u times, served after %u",
		       sim->most_passed[0], sim->most_passed[1], sim->most_passed[2],
		       sim->least_passed);
		sim_free(sim);
	}
	expect_fair();
}

/* ---- fair time ------------------------------------------------------------------- */

/* Check clients whose items have a fixed length, from 1 to 100. */
static void time_of_known_items(void)
{
	for (unsigned int i = 0; i < 4 * ARRAY_SIZE(runners); i++) {
		struct sim_attrs a = attrs(SIM_FAIR_TIME, runners[i / 4]);
		struct sim *sim = sim_new(&a);

		for (int k = 0; k < (i & 2 ? 3 : 20); k++)
			add_client(sim, i & 1 ? 1 + k : 100,
				   fixed(k % 2 ? 100 * SIM_US : (1 + k) * SIM_US), backlog);
		run_config(sim, 20000);
	}
	expect_fair();
}

/* Check items of any length. @strangers: the longest one is not known before. */
static void time_of_irregular_items(bool strangers)
{
	static const struct sim_time *time[] = { &rarely_long, &in_runs, &uniform };

	for (unsigned int i = 0; i < 6 * ARRAY_SIZE(runners); i++) {
		struct sim_attrs a = attrs(SIM_FAIR_TIME, runners[i / 6]);
		struct sim *sim;

		a.strangers = strangers;
		sim = sim_new(&a);
		for (int k = 0; k < (i & 1 ? 3 : 20); k++)
			add_client(sim, 100 + k, *time[i / 2 % 3], backlog);
		run_config(sim, 10000);
	}
	expect_fair();
}

static void time_of_unknown_items(void)
{
	time_of_irregular_items(false);
}

static void time_of_surprises(void)
{
	time_of_irregular_items(true);
}

static void time_of_all_kinds(void)
{
	static const struct sim_time *time[] = { &ten_us, &rarely_long, &in_runs, &uniform };

	for (unsigned int i = 0; i < 16 * ARRAY_SIZE(runners); i++) {
		struct sim_attrs a = attrs(SIM_FAIR_TIME, runners[i / 16]);

		a.pause = i & 1 ? 50 : 0;
		a.reweigh = i & 1 ? 100 : 0;
		a.park = i & 1 ? 50 : 0;
		if (i & 2)
			run_config(family(&a, *time[i / 4 % 4]), 5000);
		else
			run_config(coming_and_going(&a, *time[i / 4 % 4], SIM_LEAVES), 5000);
	}
	expect_fair();
}

/*
 * Create an owner whose children come with one long item each, and go. Each
 * child is charged a slice, because it has no turns before. Beside the owner is
 * one batch.
 */
static struct sim *strangers(const struct picker *picker)
{
	struct sim_attrs a = attrs(SIM_FAIR_TIME, 2);
	struct sim_arrivals once = { .kind = SIM_LEAVES, .n = 1, .gap = 10 * SIM_US };
	struct sim_arrivals none = { .kind = SIM_IDLE };
	struct sim *sim;
	int owner;

	a.picker = picker;
	a.strangers = true;
	sim = sim_new(&a);
	owner = add_client(sim, 100, ten_us, none);
	add_client(sim, 100, fixed(SIM_MS), backlog);
	for (int i = 0; i < 20; i++)
		add_child(sim, owner, 100, fixed(SIM_MS), once);
	return sim;
}

static void time_of_strangers(void)
{
	run_config(strangers(&picker_sound), 20000);
	expect_fair();
}

/* Return Jain's index of the clients' service by weight: 1 if all got the same. */
static double jain(const struct sim *sim)
{
	double sum = 0, squares = 0;

	for (int i = 0; i < sim->nr_clients; i++) {
		double x = (double)sim->client[i].ran / sim->client[i].weight;

		sum += x;
		squares += x * x;
	}
	return sum * sum / (sim->nr_clients * squares);
}

/* Check shares of time: lengths 1:100, equal weights; any lengths, weights 1:2:5. */
static void time_is_shared(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(runners); i++) {
		struct sim_attrs a = attrs(SIM_FAIR_TIME, runners[i]);
		struct sim *sim = sim_new(&a);

		for (int k = 0; k < 2; k++)
			add_client(sim, 100, fixed(k ? 100 * SIM_US : 1 * SIM_US), backlog);
		observe(sim, 50000);
		expect(jain(sim) >= 0.999, "%f", jain(sim));
		sim_free(sim);

		sim = sim_new(&a);
		for (int k = 0; k < 3; k++)
			add_client(sim, weights[0][k], k ? uniform : rarely_long, backlog);
		observe(sim, 50000);
		expect(jain(sim) >= 0.9999, "%f", jain(sim));
		sim_free(sim);
	}
	expect_fair();
}

/* ---- everything at once ------------------------------------------------------------ */

static struct sim_arrivals any_arrivals(void)
{
	static const enum sim_arrival_kind kind[] = {
		SIM_BACKLOG, SIM_CLOSED, SIM_BUNCHES, SIM_LEAVES, SIM_BY_SOURCE
	};

	return (struct sim_arrivals){
		.kind = kind[random_below(&rnd, 5)],
		.n = random_between(&rnd, 1, 50),
		.gap = random_between(&rnd, 1, 500 * SIM_US),
	};
}

static void any_client(struct sim *sim, int owners)
{
	struct sim_client_attrs client = {
		.owner = owners ? (int)random_below(&rnd, owners + 1) - 1 : METER_NO_ENTRY,
		.weight = random_one_in(&rnd, 3) ? random_between(&rnd, 1, 10000) : 0,
		.rank = random_below(&rnd, 3),
		.max_active = random_below(&rnd, 4),
		.time = times[random_below(&rnd, ARRAY_SIZE(times))],
		.arrivals = any_arrivals(),
	};

	client.time.hi *= random_between(&rnd, 1, 50);
	if (sim->nr_clients < owners) {
		client.owner = random_below(&rnd, sim->nr_clients + 1) - 1;
		client.arrivals.kind = SIM_IDLE;
	} else if (sim->nr_clients == owners) {
		client.arrivals.kind = SIM_BACKLOG;
	}
	sim_add(sim, &client);
}

static struct sim *anything(void)
{
	struct sim_attrs a = attrs(random_below(&rnd, 2) ? SIM_FAIR_TIME : SIM_ROUND_ROBIN,
				   random_between(&rnd, 1, SIM_MAX_RUNNERS));
	int owners = random_below(&rnd, 2) ? random_below(&rnd, 6) : 0;
	int nr = owners + random_between(&rnd, 2, 30);
	struct sim *sim;

	if (random_below(&rnd, 2))
		a.max_active = random_between(&rnd, 1, 3);
	a.slice = random_below(&rnd, 2) ? random_between(&rnd, 0, 100) * SIM_US : 0;
	a.pause = random_below(&rnd, 2) * 50;
	a.reweigh = random_below(&rnd, 2) * 100;
	a.park = random_below(&rnd, 2) * 50;
	a.near_wrap = random_below(&rnd, 2);
	a.strangers = random_below(&rnd, 2);
	sim = sim_new(&a);
	while (nr--)
		any_client(sim, owners);
	sim_set_source(sim, random_between(&rnd, 10, 40) * SIM_US);
	return sim;
}

static void everything_at_once(void)
{
	found.any = true;
	for (int i = 0; i < 250; i++)
		run_config(anything(), 4000);
	expect_fair();
}

/* ---- adversaries ------------------------------------------------------------------- */

static const u64 lengths[] = { 2 * SIM_US, 20 * SIM_US, 50 * SIM_US };
static const unsigned int few_runners[] = { 1, 2, 3 };

/* Play one plot in one pool. Return: the adversary's part beyond its share. */
static double play(const struct plot *plot, const struct sim_attrs *a, u64 length)
{
	struct sim *sim = plot_begin(plot, a, length);
	double more;

	observe(sim, plot->turns ?: PLOT_TURNS);
	more = plot_share(sim) - plot->share -
	       (PLOT_SLACK + a->max_active) * plot_slack(sim);
	if (more > found.more) {
		found.more = more;
		snprintf(found.plot, sizeof(found.plot),
			 "%s got %.1f %% of %s; %u runners, items of %llu us",
			 plot->name, 100 * plot_share(sim),
			 a->policy == SIM_FAIR_TIME ? "time" : "turns", a->max_active,
			 (unsigned long long)(length / SIM_US));
	}
	sim_free(sim);
	return more;
}

/* Play one plot in pools of all kinds. */
static void play_all(const struct plot *plot, const struct picker *picker)
{
	for (unsigned int i = 0; i < 2 * ARRAY_SIZE(lengths) * ARRAY_SIZE(few_runners); i++) {
		enum sim_policy policy = i % 2 ? SIM_FAIR_TIME : SIM_ROUND_ROBIN;
		struct sim_attrs a = attrs(policy, few_runners[i / 2 % 3]);

		if (plot->by_time && policy != SIM_FAIR_TIME)
			continue;
		a.picker = picker;
		play(plot, &a, lengths[i / 6]);
	}
}

static void adversaries(void)
{
	for (unsigned int i = 0; i < nr_plots; i++) {
		found.more = -1;
		/* The ideal server uses the weight at the time an item starts. */
		found.not_judged = plots[i].weight_flaps;
		for (int k = 0; k < (plots[i].by_chance ? PLOT_SEEDS : 1); k++)
			play_all(&plots[i], &picker_sound);
		printf("# %s\n", found.plot);
		expect(found.more <= PLOT_EXTRA, "%s: %.2f %% more than its share",
		       plots[i].name, 100 * found.more);
	}
	report();
	expect(!found.starved, "%llu windows", (unsigned long long)found.starved);
}

/* ---- the share of a short backlog -------------------------------------------------- */

/*
 * Run two clients with @first and @other items, which queue themselves again.
 * Return: the share of the first.
 */
static double circulate(struct sim_attrs *a, u64 length, unsigned int first, unsigned int other)
{
	struct sim *sim = sim_new(a);
	double share;

	add_client(sim, 100, fixed(length), (struct sim_arrivals){
		.kind = SIM_CLOSED, .n = first,
	});
	add_client(sim, 100, fixed(length), (struct sim_arrivals){
		.kind = SIM_CLOSED, .n = other,
	});
	observe(sim, 5000);
	share = (double)sim->client[0].turns / sim->turns;
	sim_free(sim);
	return share;
}

/* Check that the length of a client's backlog makes no difference. */
static void short_backlogs(void)
{
	static const unsigned int nr[][2] = { { 20, 100 }, { 1, 100 }, { 3, 5000 } };

	for (unsigned int i = 0; i < 2 * 2 * ARRAY_SIZE(lengths) * ARRAY_SIZE(nr); i++) {
		enum sim_policy policy = i % 2 ? SIM_FAIR_TIME : SIM_ROUND_ROBIN;
		struct sim_attrs a = attrs(policy, 1 + i / 2 % 2);
		const unsigned int *n = nr[i / 12];
		double share;

		share = circulate(&a, lengths[i / 4 % 3], n[0], n[1]);
		if (share < found.least || !found.least)
			found.least = share;
		expect(share > 0.49, "%.1f %%, with %u items beside %u", 100 * share, n[0], n[1]);
	}
	printf("# at least %.1f %% for the one with fewer items\n", 100 * found.least);
	expect_fair();
}

/* ---- a guess that feeds itself ------------------------------------------------- */

/* Queue two items, of which the first waits for the second. */
static void queue_waiting(struct sim *sim, int client)
{
	sim_queue(sim, client, 2);
}

static void waiting_ended(struct sim *sim, int client)
{
	if (!client && !sim->client[0].outstanding)
		sim_wait(sim, 0, SIM_MS);
}

/* Run a client whose items wait for its own later ones, beside three with a backlog. */
static void wait_for_own(struct sim_attrs *a)
{
	struct sim *sim;

	a->ended = waiting_ended;
	a->woken = queue_waiting;
	sim = sim_new(a);
	add_client(sim, 100, (struct sim_time){
		.kind = SIM_WAITS, .lo = 2 * SIM_US, .hi = 10 * SIM_MS,
	}, (struct sim_arrivals){ .kind = SIM_IDLE });
	for (int k = 0; k < 3; k++)
		add_client(sim, 100, fixed(SIM_MS), backlog);
	sim_wait(sim, 0, SIM_MS);
	run_config(sim, 20000);
}

/* Check that such a wait is at most as long as the estimate, which has a bound. */
static void own_wait(void)
{
	for (unsigned int i = 2; i < 4; i++) {
		struct sim_attrs a = attrs(SIM_FAIR_TIME, i);

		a.strangers = true;
		wait_for_own(&a);
	}
	expect_fair();
}

/*
 * Run a client with a limit of 1 beside an equal one without, and with @third a
 * third one with items of 20 us. Return: its turns, as a share of the second
 * one's.
 */
static double limit_one(struct sim_attrs *a, u64 length, bool third)
{
	struct sim *sim = sim_new(a);
	double share;

	for (int k = 0; k < 2 + third; k++)
		sim_add(sim, &(struct sim_client_attrs){
			.owner = METER_NO_ENTRY, .max_active = !k, .arrivals = backlog,
			.time = fixed(k < 2 ? length : 20 * SIM_US),
		});
	observe(sim, 5000);
	share = (double)sim->client[0].turns / sim->client[1].turns;
	sim_free(sim);
	return share;
}

/* Check that a limit of 1 takes no turns from a client. */
static void limits_of_one(void)
{
	for (unsigned int i = 0; i < 2 * 2 * 2 * ARRAY_SIZE(lengths); i++) {
		enum sim_policy policy = i % 2 ? SIM_FAIR_TIME : SIM_ROUND_ROBIN;
		struct sim_attrs a = attrs(policy, 1 + i / 2 % 2);
		double share;

		share = limit_one(&a, lengths[i / 8], i / 4 % 2);
		if (share < found.least || !found.least)
			found.least = share;
		expect(share > (a.max_active == 1 ? 0.99 : 0.9),
		       "%.1f %% of the other one's, %u runners", 100 * share, a.max_active);
	}
	printf("# at least %.1f %% of what an equal client without a limit got\n",
	       100 * found.least);
	expect_fair();
}

/*
 * Run a heavy client with @limit items at a time, or one by a serializer if
 * that is 0. Beside it are @others without a limit. Return: its service, as a
 * share of what its weight and that number of runners allow.
 */
static double limit_heavy(struct sim_attrs *a, u32 weight, unsigned int limit, int others,
			  struct sim_time time, struct sim_time other_time)
{
	double fair = (double)weight / (weight + 100 * others);
	double may = (limit ?: 1.0) / a->max_active, all = 0, share;
	struct sim *sim = sim_new(a);

	for (int k = 0; k <= others; k++)
		sim_add(sim, &(struct sim_client_attrs){
			.owner = METER_NO_ENTRY, .weight = k ? 100 : weight, .serial = !k && !limit,
			.max_active = k ? 0 : limit, .arrivals = backlog,
			.time = k ? other_time : time,
		});
	observe(sim, 8000);
	for (int k = 0; k <= others; k++)
		all += sim->client[k].ran;
	share = sim->client[0].ran / all / (fair < may ? fair : may);
	sim_free(sim);
	return share;
}

/*
 * Run a heavy client in pools of all kinds, under one policy. Where turns
 * count, all items have the same length, because else a part of the time says
 * nothing about turns. Under fair time the items of the others may be longer.
 */
static void play_heavy(const struct picker *picker, enum sim_policy policy)
{
	static const struct sim_time *times_of[] = { &ten_us, &uniform, &rarely_long };
	static const u32 weight[] = { 100, 300, 1000, 10000 };
	static const int others[] = { 1, 3 };
	bool by_time = policy == SIM_FAIR_TIME;

	for (unsigned int i = 0; i < 4 * 4 * 3 * 2 * (by_time ? 6 : 1); i++) {
		const struct sim_time *time = times_of[i / 96 % 3];
		struct sim_attrs a = attrs(policy, 2 + i % 4);
		double share;

		a.picker = picker;
		share = limit_heavy(&a, weight[i / 4 % 4], i / 16 % 3, others[i / 48 % 2], *time,
				    i / 96 < 3 ? *time : fixed(200 * SIM_US));
		if (share < found.least || !found.least)
			found.least = share;
	}
	printf("# at least %.1f %% of what its weight and its limit let it have\n",
	       100 * found.least);
}

/* Check limits that just allow a client its share, or less, or more. */
static void limits_of_heavy(void)
{
	play_heavy(&picker_sound, SIM_ROUND_ROBIN);
	play_heavy(&picker_sound, SIM_FAIR_TIME);
	expect(found.least > 0.95, "%.1f %%", 100 * found.least);
	expect_fair();
}

/* ---- bursts ------------------------------------------------------------------------ */

/* Run a client with a serializer beside @others. Return: its part of its share. */
static double burst_share(struct sim_attrs *a, u64 budget, int others)
{
	int most = (int)a->max_active > others ? (int)a->max_active : 1 + others;
	struct sim *sim = sim_new(a);
	double all = 0, share;

	for (int k = 0; k <= others; k++)
		sim_add(sim, &(struct sim_client_attrs){
			.owner = METER_NO_ENTRY, .serial = !k, .budget = k ? 0 : budget,
			.arrivals = backlog, .time = ten_us,
		});
	observe(sim, 20000);
	for (int k = 0; k <= others; k++)
		all += sim->client[k].turns;
	share = sim->client[0].turns * most / all;
	sim_free(sim);
	return share;
}

/* Check that a burst costs the service that it had, once. */
static void bursts(void)
{
	static const u64 budget[] = { 0, 30 * SIM_US, 100 * SIM_US, SIM_MS };

	for (unsigned int i = 0; i < 2 * 4 * 3 * 2; i++) {
		struct sim_attrs a = attrs(i % 2 ? SIM_FAIR_TIME : SIM_ROUND_ROBIN, 1 + i / 8 % 3);
		double share = burst_share(&a, budget[i / 2 % 4], i / 24 ? 3 : 1);

		if (share < found.least || !found.least)
			found.least = share;
		expect(share > 0.99, "%.1f %%, %u runners", 100 * share, a.max_active);
	}
	printf("# at least %.1f %% of its share\n", 100 * found.least);
	expect_fair();
}

/*
 * Run a burst that is alone, until others come with longer backlogs. They join
 * at the clock, which is where the burst began. So it pays for all service that
 * it had while it was alone, up to 1024 turns. The result is printed and not
 * judged.
 */
static void bursts_alone(void)
{
	for (unsigned int i = 0; i < 2 * ARRAY_SIZE(few_runners); i++) {
		struct sim_attrs a = attrs(i % 2 ? SIM_FAIR_TIME : SIM_ROUND_ROBIN,
					   few_runners[i / 2]);
		struct sim *sim = sim_new(&a);

		for (int k = 0; k < 2; k++)
			sim_add(sim, &(struct sim_client_attrs){
				.owner = METER_NO_ENTRY, .serial = !k, .time = ten_us,
				.arrivals = k ? bunches(5000, 50 * SIM_MS) : backlog,
			});
		run_config(sim, 50000);
	}
	report();
	expect(found.windows, "nothing was measured");
}

/* ---- items that end at once ---------------------------------------------------- */

/* Return how long turns waited beside an idle runner, for a quick item that was slow. */
static u64 unused_time(bool no_tick)
{
	struct sim_time time = { .kind = SIM_RARELY, .n = 5000, .lo = 300, .hi = 50 * SIM_MS };
	struct sim_attrs a = attrs(SIM_ROUND_ROBIN, 2);
	struct sim *sim;
	u64 unused;

	a.no_tick = no_tick;
	sim = sim_new(&a);
	for (int k = 0; k < 3; k++)
		add_client(sim, 100, k ? fixed(300) : time, backlog);
	observe(sim, 100000);
	unused = sim->longest_unused;
	sim_free(sim);
	return unused;
}

/* Check that a runner is woken two ticks after a quick item that is slow began. */
static void quick_items(void)
{
	u64 unused = unused_time(false);

	printf("# turns waited for %llu us at most\n", (unsigned long long)(unused / SIM_US));
	expect(unused <= 3 * SIM_JIFFY, "%llu ns", (unsigned long long)unused);
	expect_fair();
}

/* ---- a clock that wraps -------------------------------------------------------- */

/* Let a client come back when the clock has gone through nearly all of its range. */
static void come_back_late(const struct picker *picker)
{
	struct sim_attrs a = attrs(SIM_ROUND_ROBIN, 1);
	struct fairwq_node *rank, *standing;
	struct sim *sim;

	a.picker = picker;
	sim = sim_new(&a);
	add_client(sim, 100, ten_us, backlog);
	add_client(sim, 100, ten_us, (struct sim_arrivals){ .kind = SIM_IDLE });
	sim_run(sim, 1);
	sim_queue(sim, 1, 1);
	sim_run(sim, 10);
	rank = &sim->tree.rank[0];
	standing = &sim->client[0].node;
	rank->clock -= 1ULL << 40;
	rank->lap += 16;
	standing->vtime -= 1ULL << 40;
	standing->key = standing->vtime;
	sim_queue(sim, 1, 5000);
	observe(sim, 5000);
	sim_free(sim);
}

static void late_return(void)
{
	come_back_late(&picker_sound);
	expect_fair();
}

/* ---- the cost of a turn -------------------------------------------------------- */

struct cost {
	u64 compared;		/* by one charge, at most */
	u64 inserted;
};

/* Return the cost of turns of @busy nodes, beside @idle ones. */
static struct cost cost_of_turns(const struct picker *picker, int busy, int idle)
{
	struct fairwq_node *node = calloc(busy + idle, sizeof(*node));
	struct fairwq_tree tree;
	struct cost cost = { };

	picker->tree_init(&tree);
	for (int i = 0; i < busy + idle; i++)
		picker->node_init(&node[i], &tree.rank[1], 100 + i % 50);
	for (int i = 0; i < busy; i++)
		picker->add(&tree, &node[i]);
	for (int i = 0; i < 20000; i++) {
		u64 compared = *picker->compared, inserted = *picker->inserted;

		picker->charge(&tree, picker->pick(&tree), random_between(&rnd, 1, 1 << 24));
		compared = *picker->compared - compared;
		inserted = *picker->inserted - inserted;
		if (compared > cost.compared)
			cost.compared = compared;
		if (inserted > cost.inserted)
			cost.inserted = inserted;
	}
	free(node);
	return cost;
}

/* Check @cost: a red-black tree of n nodes is at most 2 * log2(n + 1) high. */
static bool is_within(struct cost cost, int nr)
{
	unsigned int height = 0;

	while (1 << height < nr + 1)
		height++;
	return cost.inserted == 1 && cost.compared <= 2 * height;
}

/* Check that the cost is logarithmic, up to the first number of nodes where it is not. */
static bool is_logarithmic(const struct picker *picker)
{
	for (int nr = 2; nr <= 8192; nr *= 8) {
		struct cost few = cost_of_turns(picker, nr, 0);
		struct cost many = cost_of_turns(picker, nr, 10000);

		printf("# %d eligible: %llu comparisons at most, with 10000 idle ones %llu\n",
		       nr, (unsigned long long)few.compared, (unsigned long long)many.compared);
		if (!is_within(few, nr) || !is_within(many, nr))
			return false;
	}
	return true;
}

static void cost_is_logarithmic(void)
{
	expect(is_logarithmic(&picker_sound), "more comparisons than the tree is high");
}

/* ---- cases that must be unfair ------------------------------------------------- */

static void old_pointer_is_seen(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(weights); i++)
		run_config(weighted(&picker_pick_from_old_pointer, SIM_ROUND_ROBIN, 1, i), 5000);
	expect_unfair();
}

static void saved_credit_is_seen(void)
{
	struct sim_attrs a = attrs(SIM_ROUND_ROBIN, 1);

	a.picker = &picker_saved_credit;
	run_config(coming_and_going(&a, ten_us, SIM_BUNCHES), 20000);
	expect_unfair();
}

static void ignored_weight_is_seen(void)
{
	run_config(weighted(&picker_weight_ignored, SIM_ROUND_ROBIN, 1, 0), 5000);
	expect_unfair();
}

static void kept_estimate_is_seen(void)
{
	run_config(strangers(&picker_estimate_kept), 20000);
	expect_unfair();
}

/* A charge of the average: all runners find at once that items take longer. */
static void charged_average_is_seen(void)
{
	struct sim_attrs a = attrs(SIM_FAIR_TIME, 8);
	struct sim *sim;

	a.average_charged = true;
	sim = sim_new(&a);
	for (int k = 0; k < 20; k++)
		add_client(sim, 100 + k, in_runs, backlog);
	run_config(sim, 50000);
	expect_unfair();
}

/* No charge until a turn has ended: all runners take turns of the same client. */
static void free_guess_is_seen(void)
{
	struct sim_attrs a = attrs(SIM_FAIR_TIME, 8);
	struct sim *sim;

	a.not_charged = true;
	sim = sim_new(&a);
	for (int k = 0; k < 20; k++)
		add_client(sim, 100, fixed((1 + k) * 10 * SIM_US), backlog);
	run_config(sim, 50000);
	expect_unfair();
}

static void free_burst_is_seen(void)
{
	struct sim_attrs a = attrs(SIM_ROUND_ROBIN, 1);
	double share;

	a.burst_free = true;
	share = burst_share(&a, 100 * SIM_US, 1);
	expect(share > 1.5, "%.1f %%", 100 * share);
	expect_starved();
}

/* Children that are in the tree beside their owner, not below it. */
static void ignored_owner_is_seen(void)
{
	struct sim_attrs a = attrs(SIM_ROUND_ROBIN, 1);

	a.owners_ignored = true;
	turns_of_owner(10, 100, &a);
	expect_unfair();
	expect_starved();
}

/* A picker that lets lower priorities wait ten times as long as they may. */
static void starved_priority_is_seen(void)
{
	struct sim_attrs a = attrs(SIM_ROUND_ROBIN, 1);
	struct sim *sim;

	a.picker = &picker_impatient;
	sim = ranked(&a, 7, true);
	observe(sim, 10000);
	expect(!all_had_their_turns(sim), "the fault was not seen");
	sim_free(sim);
}

/* A picker that puts newcomers before all clients that wait. */
static void newcomers_first_is_seen(void)
{
	found.more = -1;
	play_all(plot_find("new_keys"), &picker_newcomer_first);
	expect(found.more > 0.3, "%.2f %% more than its share", 100 * found.more);
	expect_starved();
}

/* A picker that forgets the deficit of a client at its limit. */
static void lost_place_is_seen(void)
{
	play_heavy(&picker_place_lost, SIM_ROUND_ROBIN);
	expect(found.least < 0.6, "%.1f %%", 100 * found.least);
	expect_starved();
}

/* A pool that does not count pushed items as a backlog. */
static void backlog_size_is_seen(void)
{
	struct sim_attrs a = attrs(SIM_ROUND_ROBIN, 1);
	double share;

	a.sort_late = true;
	share = circulate(&a, 2 * SIM_US, 20, 100);
	expect(share < 0.3, "%.1f %%", 100 * share);
	expect_starved();
}

/* An estimate without a bound: the longest turn, however long it was. */
static void own_wait_is_seen(void)
{
	struct sim_attrs a = attrs(SIM_FAIR_TIME, 2);

	a.strangers = true;
	a.guess_unbounded = true;
	wait_for_own(&a);
	expect_starved();
}

/* A picker that counts turns of a lower priority, however long they are. */
static void low_by_turns_is_seen(void)
{
	found.more = -1;
	play_all(plot_find("low_long"), &picker_low_by_turns);
	expect(found.more > 0.3, "%.2f %% more than its share", 100 * found.more);
	expect_starved();
}

static void old_debt_is_seen(void)
{
	come_back_late(&picker_old_debt_kept);
	expect_starved();
}

/* A tick that does not look at items that are likely to end at once. */
static void missing_tick_is_seen(void)
{
	u64 unused = unused_time(true);

	expect(unused > 4 * SIM_JIFFY, "%llu ns", (unsigned long long)unused);
}

/* A picker that compares all nodes, one by one. */
static void linear_cost_is_seen(void)
{
	expect(!is_logarithmic(&picker_linear), "the fault was not seen");
}

/* ---- all of them --------------------------------------------------------------- */

#define CASE(f) { #f, f }

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	CASE(exact_rotation),
	CASE(equal_weights),
	CASE(unequal_weights),
	CASE(nothing_is_rounded_away),
	CASE(item_times),
	CASE(zipf),
	CASE(arrivals),
	CASE(departures),
	CASE(times_that_wrap),
	CASE(limits),
	CASE(pauses),
	CASE(weight_changes),
	CASE(items_parked),
	CASE(trees),
	CASE(owner_counts_as_one),
	CASE(priorities),
	CASE(time_of_known_items),
	CASE(time_of_unknown_items),
	CASE(time_of_surprises),
	CASE(time_of_all_kinds),
	CASE(time_of_strangers),
	CASE(time_is_shared),
	CASE(everything_at_once),
	CASE(adversaries),
	CASE(short_backlogs),
	CASE(own_wait),
	CASE(limits_of_one),
	CASE(limits_of_heavy),
	CASE(bursts),
	CASE(bursts_alone),
	CASE(quick_items),
	CASE(late_return),
	CASE(cost_is_logarithmic),
	CASE(old_pointer_is_seen),
	CASE(saved_credit_is_seen),
	CASE(ignored_weight_is_seen),
	CASE(kept_estimate_is_seen),
	CASE(charged_average_is_seen),
	CASE(free_guess_is_seen),
	CASE(free_burst_is_seen),
	CASE(ignored_owner_is_seen),
	CASE(starved_priority_is_seen),
	CASE(newcomers_first_is_seen),
	CASE(lost_place_is_seen),
	CASE(backlog_size_is_seen),
	CASE(own_wait_is_seen),
	CASE(low_by_turns_is_seen),
	CASE(old_debt_is_seen),
	CASE(missing_tick_is_seen),
	CASE(linear_cost_is_seen),
};

static bool run_case(int number, unsigned int i)
{
	ktap_case_begin();
	memset(&found, 0, sizeof(found));
	/* Seed each case, so that it is the same whatever ran before it. */
	rnd.state = seed * ARRAY_SIZE(cases) + i;
	cases[i].run();
	return ktap_case_end(number, cases[i].name);
}

int main(int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : NULL;
	bool good = true;
	int number = 0;

	if (getenv("SEED"))
		seed = strtoull(getenv("SEED"), NULL, 0);
	ktap_begin(only ? 1 : ARRAY_SIZE(cases));
	printf("# SEED=%llu\n", (unsigned long long)seed);
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++)
		if (!only || !strcmp(only, cases[i].name))
			good &= run_case(++number, i);
	return !good || !number;
}
