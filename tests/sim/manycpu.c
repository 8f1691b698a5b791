// SPDX-License-Identifier: GPL-2.0
/*
 * Many CPUs: find where one tree under one lock saturates, and how shards would
 * do.
 *
 * Runners, one on each CPU, take turns from tree.c itself. The model is of the
 * cost of a turn. The lock is a queue in order of arrival. A cache line costs a
 * move if another CPU wrote it last, and more if that CPU has another cache.
 * sim.c has the rest of the pool. Every client has a backlog. These pools are
 * compared:
 *
 *  MANY_POOL	one tree, one lock: the engine as it is
 *  MANY_TIED	a shard, which is a tree and a lock, for each cache. A client belongs to
 *		one shard. A shard gives no turn if its virtual clock is ahead of the last
 *		shard by more than the bound. Then its runner fetches the next client of
 *		the last shard. If that has only one, the runner takes a turn of it there
 *  MANY_UNTIED	the same without the bound: a pool for each cache
 *
 * The output is KTAP and, as comments in it, the tables from which "Many CPUs"
 * in Documentation/design.rst comes.
 */
#include <stdlib.h>

#include "../user/ktap.h"
#include "meter.h"
#include "picker.h"
#include "random.h"

#define MAX_RUNNERS	128
/* A prime, so that shards differ, and no client stays on the same few CPUs for ever. */
#define MAX_CLIENTS	61
#define MAX_SHARDS	MAX_RUNNERS
#define NO_CPU		(-1)
#define NEVER		1e18
/* Turns for each runner, in all, and for each client. The first half does not count. */
#define TURNS_EACH	300
#define MIN_TURNS	10000
#define TURNS_CLIENT	1000
/* As in core/types.h: one runner runs all items that take less, ns. */
#define QUICK_NS	1000

enum many_kind { MANY_POOL, MANY_TIED, MANY_UNTIED };

/* How clients are spread over the shards. */
enum many_place { PLACE_EVEN, PLACE_HASHED, PLACE_SKEWED };

/* Costs, in ns, or in moves of a line. */
struct machine {
	const char *name;
	double section;		/* work of a turn under the lock, all lines at hand */
	double beside;		/* work of a turn outside the lock */
	double near, far;	/* move of a line within a cache, and from another one */
	int each;		/* CPUs that share a cache */
	/* Moves of a turn that wait for each other: */
	int handover;		/* of the lock, if a runner waited for it; else 1 */
	int pool, batch, item;	/* of the tree and counters, the batch, the item */
	double send, wake;	/* time of a kick: for its sender, and for the runner */
};

struct setup {
	struct machine machine;
	enum many_kind kind;
	enum many_place place;
	int runners, clients;
	double time;		/* of an item, on average; it varies by a tenth */
	u64 bound;		/* of the tie, turns */
	bool all;		/* all runners run quick items, too */
	bool lends;		/* tied shards lend runners and fetch no clients */
};

struct client {
	struct fairwq_node node;
	int shard;
	int cpu;		/* took its last turn */
};

struct shard {
	struct fairwq_tree tree;
	int holder, cpu;	/* the CPU that holds the lock, and that held it last */
	int queue[MAX_RUNNERS], head, nr;
	int clients;
	u64 floor;		/* clock of the last shard, when this one read it */
	bool seen;		/* other CPUs have read its clock since it was written */
};

enum many_state { ASLEEP, COMES, ASKS, WAITS, HOLDS };

struct runner {
	enum many_state state;
	double when;		/* the state ends; NEVER: another runner ends it */
	int shard;		/* of the lock that it asks for or holds */
	struct client *turn;	/* the client whose turn it runs, or NULL */
};

struct many {
	struct setup setup;
	struct random rnd;
	struct client client[MAX_CLIENTS];
	struct shard shard[MAX_SHARDS];
	struct runner runner[MAX_RUNNERS];
	int nr_shards;
	double now;
	u64 turns, remote;	/* all turns, and those from another shard */
	u64 moved;		/* clients that were fetched */
	struct meter *meter;

	/* Results. */
	double rate;		/* turns per us, in the second half */
	double ramp;		/* time until all runners were awake, ns */
	double worst;		/* lag, in parts of promise 6's bound */
};

static const struct picker *const picker = &picker_sound;

/* Eight CPUs share a cache. */
/*
 * Costs of version 0.2.0 on two CPUs, by make bench:
 *
 *  section, beside	of the row eligible_2, 75 ns an item. How it is split is a guess
 *  near, far		line_moves; the dearest move that was seen on two CPUs of one cache
 *  each		a guess
 *  handover		a waiter sees that the lock is free, and the lock's word moves
 *  pool, batch, item	counted by hand: a turn writes to about 8, 9 and 2 lines. A CPU
 *			fetches several at a time, so it is a guess how many of these wait
 *			for each other
 *  send, wake		half of trip, and half of trip_rested, of a workqueue
 *
 * Not modelled: NUMA, hyperthreads, power states; the workqueue core, which
 * since 6.6 keeps a pool in fewer caches; the lines of the items; the locks of
 * inboxes; weights, priorities, owners, fair time, and clients that come and
 * go, for which there is fairwq_sim.
 */
static const struct machine chiplets = {
	.name = "8 CPUs a cache", .section = 50, .beside = 25, .near = 37, .far = 158,
	.each = 8, .handover = 2, .pool = 2, .batch = 3, .item = 1, .send = 400, .wake = 1200,
};

static int cache_of(const struct many *many, int cpu)
{
	return cpu / many->setup.machine.each;
}

/* Return the cost for @to of a line that @from has written last. */
static double move(const struct many *many, int from, int to)
{
	if (from == NO_CPU || from == to)
		return 0;
	return cache_of(many, from) == cache_of(many, to) ? many->setup.machine.near :
							    many->setup.machine.far;
}

/* ---- the tie ------------------------------------------------------------- */

static int home_of(const struct many *many, int cpu)
{
	return many->setup.kind == MANY_POOL ? 0 : cache_of(many, cpu);
}

/* Return the virtual time of the next turn of a shard, in turns. */
static u64 clock_of(const struct shard *shard)
{
	const struct fairwq_node *node = picker->pick(&shard->tree);

	return node ? node->vtime >> FAIRWQ_COST_TURN_SHIFT : UINT64_MAX;
}

/* Return the shard whose clock is furthest behind. */
static int last_shard(const struct many *many)
{
	int last = 0;

	for (int i = 1; i < many->nr_shards; i++)
		if (clock_of(&many->shard[i]) < clock_of(&many->shard[last]))
			last = i;
	return last;
}

/*
 * Check whether @shard is too far ahead to give a turn. The floor may be old.
 * Then it is too low, which errs on the safe side.
 */
static bool is_ahead(const struct many *many, const struct shard *shard)
{
	u64 clock = clock_of(shard);

	if (clock == UINT64_MAX)
		return true;	/* it has no clients */
	return many->setup.kind == MANY_TIED && many->nr_shards > 1 &&
	       clock > shard->floor + many->setup.bound;
}

/*
 * Read the clocks of all shards. Each has a line of its own, and all move at
 * the same time. Return: the cost.
 */
static double look(struct many *many, struct shard *shard)
{
	if (many->nr_shards == 1)
		return 0;
	shard->floor = clock_of(&many->shard[last_shard(many)]);
	for (int i = 0; i < many->nr_shards; i++)
		many->shard[i].seen = true;
	return many->setup.machine.far;
}

/*
 * Choose the shard that the runner goes to: the one of the turn that has ended,
 * or its own, or the last one. Return: the cost of the choice.
 */
static double choose_shard(struct many *many, int cpu)
{
	struct runner *runner = &many->runner[cpu];
	struct shard *home = &many->shard[home_of(many, cpu)];
	double cost;

	runner->shard = runner->turn ? runner->turn->shard : home - many->shard;
	if (many->setup.kind != MANY_TIED || runner->turn || !is_ahead(many, home))
		return 0;
	cost = look(many, home);
	if (is_ahead(many, home))
		runner->shard = last_shard(many);
	return cost;
}

/* ---- a turn -------------------------------------------------------------- */

/* Return a run time of an item. */
static double item_time(struct many *many)
{
	double dice = (double)random_below(&many->rnd, 1 << 20) / (1 << 20);

	return many->setup.time * (0.9 + 0.2 * dice);
}

/* Return the cost of the item's lines. A producer on any of the CPUs wrote them. */
static double item_moves(struct many *many, int cpu)
{
	return move(many, random_below(&many->rnd, many->setup.runners), cpu);
}

/* Take the lock. Return: the cost of its lines and the pool's. @waited: in the queue. */
static double enter(struct many *many, int cpu, bool waited)
{
	const struct machine *machine = &many->setup.machine;
	struct runner *runner = &many->runner[cpu];
	struct shard *shard = &many->shard[runner->shard];
	double line = move(many, shard->cpu, cpu);

	shard->holder = cpu;
	shard->cpu = cpu;
	return line * ((waited ? machine->handover : 1) + machine->pool);
}

/* Put a node that has joined back to @vtime, because the clocks are tied. */
static void stay_at(struct shard *home, struct fairwq_node *node, u64 vtime)
{
	u64 service = node->service;
	u16 open = node->open;

	node->early = 0;
	node->behind = 0;
	/* All weights are 100, so a cost is a virtual time. */
	picker->correct(&home->tree, node, (s64)(vtime - node->vtime), false);
	node->service = service;
	node->open = open;
}

/* Move the next client of @from to the runner's own shard, under both locks. */
static double fetch(struct many *many, int cpu, struct shard *from, struct shard *home)
{
	const struct machine *machine = &many->setup.machine;
	struct fairwq_node *node = picker->pick(&from->tree);
	struct client *client = container_of(node, struct client, node);
	u64 vtime;

	picker->del(&from->tree, node);
	node->parent = &home->tree.rank[1];
	vtime = node->vtime;
	picker->add(&home->tree, node);
	stay_at(home, node, vtime);
	client->shard = home - many->shard;
	from->clients--;
	home->clients++;
	many->moved++;
	return machine->section + machine->far * (machine->handover + machine->pool) +
	       machine->batch * move(many, client->cpu, cpu);
}

/* Take the next turn of the runner's shard. Return: the cost. */
static double take_turn(struct many *many, int cpu)
{
	const struct machine *machine = &many->setup.machine;
	struct runner *runner = &many->runner[cpu];
	struct shard *shard = &many->shard[runner->shard];
	struct fairwq_node *node = picker->pick(&shard->tree);
	struct client *client = container_of(node, struct client, node);
	double cost = machine->section + machine->batch * move(many, client->cpu, cpu) +
		      machine->item * item_moves(many, cpu);

	picker->charge(&shard->tree, node, FAIRWQ_COST_TURN);
	if (shard->seen)
		cost += machine->far;
	shard->seen = false;
	client->cpu = cpu;
	runner->turn = client;
	if (many->meter)
		meter_serve(many->meter, client - many->client, 1);
	many->turns++;
	many->remote += runner->shard != home_of(many, cpu);
	return cost;
}

/*
 * Give the lock to the runner: it ends its last turn and takes the next. It
 * takes none if the shard is ahead, or if it is away and its own shard is not
 * ahead any more.
 */
static void grant(struct many *many, int cpu, bool waited)
{
	struct runner *runner = &many->runner[cpu];
	struct shard *shard = &many->shard[runner->shard];
	struct shard *home = &many->shard[home_of(many, cpu)];
	double cost = enter(many, cpu, waited);
	bool away = shard != home;

	if (runner->turn)
		picker->correct(&shard->tree, &runner->turn->node, 0, false);
	runner->turn = NULL;
	if (many->setup.kind == MANY_TIED && is_ahead(many, shard))
		cost += look(many, shard);
	if (is_ahead(many, shard) || (away && !is_ahead(many, home)))
		;		/* no turn */
	else if (away && shard->clients > 1 && !many->setup.lends)
		cost += fetch(many, cpu, shard, home);
	else
		cost += take_turn(many, cpu);
	runner->state = HOLDS;
	runner->when = many->now + cost;
}

/* Take the lock of the runner's shard, or wait for it. */
static void ask(struct many *many, int cpu)
{
	struct runner *runner = &many->runner[cpu];
	struct shard *shard = &many->shard[runner->shard];

	if (shard->holder == NO_CPU) {
		grant(many, cpu, false);
		return;
	}
	shard->queue[(shard->head + shard->nr++) % MAX_RUNNERS] = cpu;
	runner->state = WAITS;
	runner->when = NEVER;
}

/* Check whether a runner may kick others. As in core/seat.c, not for quick items. */
static bool may_kick(const struct many *many)
{
	return many->setup.all || many->setup.time >= QUICK_NS;
}

/* Kick one more runner of the same shard, if one sleeps. Return: the cost of the kick. */
static double kick(struct many *many, int cpu)
{
	const struct machine *machine = &many->setup.machine;

	for (int i = 0; may_kick(many) && i < many->setup.runners; i++) {
		struct runner *runner = &many->runner[i];

		if (runner->state != ASLEEP || home_of(many, i) != home_of(many, cpu))
			continue;
		runner->state = COMES;
		runner->when = many->now + machine->send + machine->wake;
		return machine->send;
	}
	return 0;
}

/* Let a runner that is awake, or has ended its item, choose a shard. */
static void come(struct many *many, int cpu)
{
	struct runner *runner = &many->runner[cpu];

	runner->state = ASKS;
	runner->when = many->now + choose_shard(many, cpu);
}

/* Drop the lock, hand it to the next runner, and run the turn that was taken. */
static void release(struct many *many, int cpu)
{
	const struct machine *machine = &many->setup.machine;
	struct runner *runner = &many->runner[cpu];
	struct shard *shard = &many->shard[runner->shard];

	shard->holder = NO_CPU;
	if (shard->nr) {
		int next = shard->queue[shard->head];

		shard->head = (shard->head + 1) % MAX_RUNNERS;
		shard->nr--;
		grant(many, next, true);
	}
	if (runner->turn) {
		runner->state = COMES;
		runner->when = many->now + kick(many, cpu) + machine->beside + item_time(many);
	} else if (many->setup.kind == MANY_TIED) {
		come(many, cpu);
	} else {
		runner->state = WAITS;	/* for ever: its shard has no clients */
		runner->when = NEVER;
	}
}

/* ---- a run --------------------------------------------------------------- */

static int place(struct many *many, int i)
{
	switch (many->setup.place) {
	case PLACE_HASHED:
		return random_below(&many->rnd, many->nr_shards);
	case PLACE_SKEWED:	/* one client is alone, the others share a shard */
		return i ? many->nr_shards - 1 : 0;
	default:
		return i % many->nr_shards;
	}
}

static void add_client(struct many *many, int i)
{
	struct client *client = &many->client[i];
	struct shard *shard;

	client->shard = place(many, i);
	client->cpu = NO_CPU;
	shard = &many->shard[client->shard];
	shard->clients++;
	picker->node_init(&client->node, &shard->tree.rank[1], 100);
	picker->add(&shard->tree, &client->node);
	if (!many->meter)
		return;
	meter_add(many->meter, METER_NO_ENTRY, 1, 100);
	meter_set_largest(many->meter, i, 1);
	meter_join(many->meter, i);
}

static void begin(struct many *many)
{
	int last = cache_of(many, many->setup.runners - 1);

	many->nr_shards = many->setup.kind == MANY_POOL ? 1 : last + 1;
	for (int i = 0; i < many->nr_shards; i++) {
		many->shard[i].holder = NO_CPU;
		many->shard[i].cpu = NO_CPU;
		picker->tree_init(&many->shard[i].tree);
	}
	for (int i = 0; i < many->setup.clients; i++)
		add_client(many, i);
	for (int i = 0; i < many->setup.runners; i++)
		many->runner[i].when = NEVER;
	/* Kick one runner for each tree. Runners kick the others. */
	for (int i = many->setup.runners - 1; i >= 0; i--)
		if (!i || home_of(many, i) != home_of(many, i - 1))
			many->runner[i] = (struct runner){ .state = COMES };
}

static int next_runner(const struct many *many)
{
	int next = 0;

	for (int i = 1; i < many->setup.runners; i++)
		if (many->runner[i].when < many->runner[next].when)
			next = i;
	return next;
}

static void step(struct many *many)
{
	int cpu = next_runner(many);

	many->now = many->runner[cpu].when;
	switch (many->runner[cpu].state) {
	case COMES:
		come(many, cpu);
		break;
	case ASKS:
		ask(many, cpu);
		break;
	default:
		release(many, cpu);
		break;
	}
}

static void note_ramp(struct many *many)
{
	for (int i = 0; i < many->setup.runners; i++)
		if (many->runner[i].state == ASLEEP)
			return;
	many->ramp = many->now;
}

/* Run a setup. Return: the results. @measured: also the lag, which takes longer. */
static struct many run(const struct setup *setup, bool measured)
{
	struct many *many = calloc(1, sizeof(*many)), found;
	u64 turns = (u64)TURNS_EACH * setup->runners, half;
	double since = 0;

	if (turns < MIN_TURNS)
		turns = MIN_TURNS;
	if (setup->kind != MANY_POOL && turns < (u64)TURNS_CLIENT * setup->clients)
		turns = (u64)TURNS_CLIENT * setup->clients;
	half = turns / 2;
	many->setup = *setup;
	many->rnd.state = 1;
	if (measured)
		many->meter = meter_new(setup->clients, METER_HALVES, setup->runners + 1);
	begin(many);
	while (many->turns < turns) {
		if (!many->ramp && may_kick(many))
			note_ramp(many);
		step(many);
		if (!since && many->turns >= half) {
			since = many->now;
			half = many->turns;
		}
	}
	many->rate = 1000 * (turns - half) / (many->now - since);
	if (measured) {
		meter_finish(many->meter);
		many->worst = many->meter->worst;
		meter_free(many->meter);
	}
	found = *many;
	free(many);
	return found;
}

/* Return half of what promise 6 allows either way, less the turn that is given. */
static u64 tie_of(int runners)
{
	return runners > 1 ? (runners - 1) / 2 : 0;
}

static struct setup setup_of(const struct machine *machine, enum many_kind kind, int runners,
			     double us)
{
	return (struct setup){
		.machine = *machine, .kind = kind, .runners = runners, .clients = MAX_CLIENTS,
		.time = 1000 * us, .bound = tie_of(runners),
	};
}

static double rate_of(const struct machine *machine, enum many_kind kind, int runners, double us)
{
	struct setup setup = setup_of(machine, kind, runners, us);

	return run(&setup, false).rate;
}

/* ---- cases: check the simulation itself ---------------------------------- */

static bool is_near(double a, double b, double part)
{
	return a >= b * (1 - part) && a <= b * (1 + part);
}

/* Check the rate of one runner: no line moves, and no lock is waited for. */
static void one_runner_is_the_sum(void)
{
	static const double us[] = { 0, 1, 10, 100 };

	for (int i = 0; i < 4; i++) {
		double rate = rate_of(&chiplets, MANY_POOL, 1, us[i]);
		double sum = chiplets.section + chiplets.beside + 1000 * us[i];

		expect(is_near(rate, 1000 / sum, 0.01), "%g us: %g a us", us[i], rate);
	}
}

static void free_moves_scale(void)
{
	struct machine machine = chiplets;

	machine.section = 0;
	machine.near = 0;
	machine.far = 0;
	for (int n = 1; n <= MAX_RUNNERS; n *= 2) {
		double rate = rate_of(&machine, MANY_POOL, n, 10);

		expect(is_near(rate, n * 1000 / (10000 + machine.beside), 0.01),
		       "%d runners: %g a us", n, rate);
	}
}

/* Check that the lock is the limit where moves are dear: it is handed over at once. */
static void dear_moves_saturate(void)
{
	struct machine machine = chiplets;
	double lines = machine.handover + machine.pool + machine.batch, rate;

	machine.near = 1e6;
	machine.far = 1e6;
	machine.item = 0;
	for (int n = 4; n <= MAX_RUNNERS; n *= 2) {
		rate = rate_of(&machine, MANY_POOL, n, 1);
		expect(is_near(rate, 1000 / (machine.section + lines * 1e6), 0.05),
		       "%d runners: %g a us", n, rate);
	}
	/* Without moves, a long section must be the limit. */
	machine.near = 0;
	machine.far = 0;
	machine.section = 1000;
	rate = rate_of(&machine, MANY_POOL, 64, 1);
	expect(is_near(rate, 1, 0.01), "%g a us", rate);
}

static void quick_items_have_one_runner(void)
{
	double one = rate_of(&chiplets, MANY_POOL, 1, 0.5);
	double many = rate_of(&chiplets, MANY_POOL, 64, 0.5);

	/* With more CPUs, producers are on other CPUs, so that items cost moves. */
	expect(many <= one && many >= one * 0.7, "%g and %g a us", one, many);
}

static double worst_of(enum many_kind kind, enum many_place place, int runners, int clients,
		       u64 bound)
{
	struct setup setup = setup_of(&chiplets, kind, runners, 10);

	setup.place = place;
	setup.clients = clients;
	setup.bound = bound;
	return run(&setup, true).worst;
}

static const struct { enum many_place place; int clients; } uneven[] = {
	{ PLACE_EVEN, 2 }, { PLACE_EVEN, 61 }, { PLACE_HASHED, 61 }, { PLACE_SKEWED, 9 },
};

static void one_tree_is_fair(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(uneven); i++) {
		double worst = worst_of(MANY_POOL, uneven[i].place, 64, uneven[i].clients, 0);

		/* One turn each way of 65 + 65 halves. */
		expect(worst <= 2.0 / 65, "%d clients: %g", uneven[i].clients, worst);
	}
}

static void tied_shards_are_fair(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(uneven); i++) {
		double worst = worst_of(MANY_TIED, uneven[i].place, 64, uneven[i].clients,
					tie_of(64));

		expect(worst <= 1, "%d clients: %g of the bound", uneven[i].clients, worst);
	}
}

/* Check that a loose tie is seen, because else the two cases above could not fail. */
static void loose_ties_are_seen(void)
{
	double worst = worst_of(MANY_TIED, PLACE_SKEWED, 64, 9, 4 * tie_of(64));

	expect(worst > 1, "four times as long: %g of the bound", worst);
	worst = worst_of(MANY_UNTIED, PLACE_SKEWED, 64, 9, 0);
	expect(worst > 10, "none: %g of the bound", worst);
	worst = worst_of(MANY_UNTIED, PLACE_HASHED, 64, MAX_CLIENTS, 0);
	expect(worst > 1, "none, hashed: %g of the bound", worst);
}

static void it_repeats(void)
{
	double a = rate_of(&chiplets, MANY_TIED, 64, 1), b = rate_of(&chiplets, MANY_TIED, 64, 1);

	expect(a == b, "%g and %g", a, b);
}

/* ---- the tables ----------------------------------------------------------- */

static const double lengths[] = { 0, 1, 10, 100 };

#define NR_LENGTHS	4
#define NR_COUNTS	8	/* of runners: 1 to 128 */

static void print_rates(const char *title, enum many_kind kind, bool all)
{
	printf("#\n# %s, million items a second\n# runners ", title);
	for (int i = 0; i < NR_LENGTHS; i++)
		printf(" %6g us", lengths[i]);
	for (int n = 1; n <= MAX_RUNNERS; n *= 2) {
		printf("\n# %7d ", n);
		for (int i = 0; i < NR_LENGTHS; i++) {
			struct setup setup = setup_of(&chiplets, kind, n, lengths[i]);

			setup.all = all;
			printf(" %9.4g", run(&setup, false).rate);
		}
	}
	printf("\n");
}

/* Return the most runners that still make @part of as many times the rate of one. */
static int good_up_to(const struct machine *machine, enum many_kind kind, double us, double part)
{
	double one = rate_of(machine, kind, 1, us);
	int low = 1, high = MAX_RUNNERS + 1;

	while (high - low > 1) {
		int n = (low + high) / 2;

		if (rate_of(machine, kind, n, us) >= part * n * one)
			low = n;
		else
			high = n;
	}
	return low;
}

static void print_good(const struct machine *machine)
{
	printf("# %-28s", machine->name);
	for (int i = 1; i < NR_LENGTHS; i++) {
		int good = good_up_to(machine, MANY_POOL, lengths[i], 0.8);

		printf("  %s%3d", good == MAX_RUNNERS ? ">=" : "  ", good);
	}
	printf("\n");
}

static void print_machines(void)
{
	struct machine machine = chiplets;

	printf("#\n# The pool makes 80 %% of what its runners could, up to\n# %-28s", "");
	printf("   1 us  10 us 100 us\n");
	print_good(&machine);
	machine.pool = 1;
	machine.batch = 1;
	machine.name = "  of 6 moves 3 overlap";
	print_good(&machine);
	machine.pool = 8;
	machine.batch = 9;
	machine.item = 2;
	machine.name = "  nothing overlaps: 19 moves";
	print_good(&machine);
	machine = chiplets;
	machine.section = 100;
	machine.name = "  100 ns under the lock";
	print_good(&machine);
	machine = chiplets;
	machine.each = MAX_RUNNERS;
	machine.name = "one cache, 37 ns a move";
	print_good(&machine);
	machine.near = 70;
	machine.name = "one cache, 70 ns a move";
	print_good(&machine);
}

static void print_plot(double us)
{
	static const struct { char mark; enum many_kind kind; } side[] = {
		{ 'o', MANY_POOL }, { '#', MANY_TIED },
	};
	char plot[8][NR_COUNTS + 1];

	memset(plot, ' ', sizeof(plot));
	for (int i = 0; i < NR_COUNTS; i++) {
		for (int k = 0; k < 2; k++) {
			double rate = rate_of(&chiplets, side[k].kind, 1 << i, us);
			double one = rate_of(&chiplets, MANY_POOL, 1, us);
			int row = 0;

			/* Rows are powers of two, too. */
			while (row < 7 && rate / one >= 1.414 * (1 << row))
				row++;
			plot[row][i] = plot[row][i] == ' ' ? side[k].mark : '@';
		}
	}
	printf("#\n# Items of %g us; times one runner. o the pool, # tied shards, @ both\n", us);
	for (int row = 7; row >= 0; row--) {
		printf("# %4d |", 1 << row);
		for (int i = 0; i < NR_COUNTS; i++)
			printf("%5c", plot[row][i]);
		printf("\n");
	}
	printf("#       ");
	for (int i = 0; i < NR_COUNTS; i++)
		printf("%5d", 1 << i);
	printf("  runners\n");
}

static void print_fair(void)
{
	static const struct { const char *name; enum many_kind kind; bool lends; } sides[] = {
		{ "pool", MANY_POOL, false }, { "tied", MANY_TIED, false },
		{ "lent", MANY_TIED, true }, { "untied", MANY_UNTIED, false },
	};
	static const char *const places[] = { "even", "hashed", "one alone" };
	static const struct { enum many_place place; int clients; } rows[] = {
		{ PLACE_EVEN, 61 }, { PLACE_HASHED, 61 },
		{ PLACE_SKEWED, 9 }, { PLACE_EVEN, 2 },
	};

	printf("#\n# 64 runners, million items a second, turns from another shard, and the\n");
	printf("# worst lag of any two clients in any window, of promise 6's bound\n");
	printf("#   us clients     where  shards      rate  remote   moved      lag\n");
	for (int us = 1; us <= 10; us *= 10)
		for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++)
			for (unsigned int k = 0; k < ARRAY_SIZE(sides); k++) {
				struct setup setup = setup_of(&chiplets, sides[k].kind, 64, us);
				struct many found;

				setup.place = rows[i].place;
				setup.clients = rows[i].clients;
				setup.lends = sides[k].lends;
				found = run(&setup, true);
				printf("# %4d %7d %9s  %6s %9.4g %5.1f %% %5.2f %% %6.0f %%\n", us,
				       rows[i].clients, places[rows[i].place], sides[k].name,
				       found.rate, 100.0 * found.remote / found.turns,
				       100.0 * found.moved / found.turns, 100 * found.worst);
			}
}

static void print_ramp(void)
{
	printf("#\n# From one kick until all runners are awake, us, items of 100 us:");
	for (int n = 16; n <= MAX_RUNNERS; n *= 2) {
		struct setup setup = setup_of(&chiplets, MANY_POOL, n, 100);

		printf(" %d: %.0f;", n, run(&setup, false).ramp / 1000);
	}
	printf("\n");
}

static void tables(void)
{
	print_rates("The pool as it is", MANY_POOL, false);
	print_rates("The pool, if quick items were for all runners", MANY_POOL, true);
	print_rates("Shards by cache, tied", MANY_TIED, true);
	print_machines();
	print_plot(10);
	print_fair();
	print_ramp();
}

static const struct { const char *name; void (*run)(void); } cases[] = {
#define CASE(name) { #name, name }
	CASE(one_runner_is_the_sum),
	CASE(free_moves_scale),
	CASE(dear_moves_saturate),
	CASE(quick_items_have_one_runner),
	CASE(one_tree_is_fair),
	CASE(tied_shards_are_fair),
	CASE(loose_ties_are_seen),
	CASE(it_repeats),
};

int main(void)
{
	bool good = true;

	ktap_begin(ARRAY_SIZE(cases));
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		ktap_case_begin();
		cases[i].run();
		good &= ktap_case_end(i + 1, cases[i].name);
	}
	tables();
	return !good;
}
