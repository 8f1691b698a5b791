// SPDX-License-Identifier: GPL-2.0
/* Adversaries: clients that try to get more than their share; see adversary.h. */
#include <string.h>

#include <linux/kernel.h>

#include "adversary.h"

/* More places than there are turns that have not been accounted for. */
#define PLACES		160
#define DEPTH		8
#define CIRCULATING	100

static const struct sim_arrivals backlog = { .kind = SIM_BACKLOG };
static const struct sim_arrivals idle = { .kind = SIM_IDLE };
static const struct sim_arrivals deep = { .kind = SIM_CLOSED, .n = DEPTH };

static struct sim_time fixed(u64 ns)
{
	return (struct sim_time){ .kind = SIM_FIXED, .lo = ns };
}

static int add(struct sim *sim, int owner, struct sim_time time, struct sim_arrivals arrivals)
{
	return sim_add(sim, &(struct sim_client_attrs){
		.owner = owner, .time = time, .arrivals = arrivals,
	});
}

/* ---- newcomers ------------------------------------------------------------ */

/* Let a new client, in a free place, queue @nr items. */
static void come(struct sim *sim, unsigned int nr)
{
	for (int i = 1; i < sim->nr_clients; i++) {
		struct sim_client *client = &sim->client[i];

		if (client->is_owner || client->outstanding || !sim_renew(sim, i))
			continue;
		sim_queue(sim, i, nr);
		return;
	}
	sim->broken = "no place for a newcomer";
}

static void add_places(struct sim *sim, int owner, u64 time)
{
	for (int i = 0; i < PLACES; i++)
		add(sim, owner, fixed(time), idle);
}

/* Check whether the plot begins: when the victim's first item has ended. */
static bool begins(const struct sim *sim)
{
	return sim->client[0].turns == 1;
}

static void enter_newcomers(struct sim *sim, u64 time)
{
	add_places(sim, METER_NO_ENTRY, time);
}

/* Send a newcomer for each one that has ended. */
static void newcomer(struct sim *sim, int client)
{
	if (client || begins(sim))
		come(sim, 1);
}

/* Send three newcomers, then one for each one that has ended. */
static void three_newcomers(struct sim *sim, int client)
{
	for (int i = 0; !client && begins(sim) && i < 3; i++)
		come(sim, 1);
	if (client)
		come(sim, 1);
}

/* Let the adversary dispose of its batch when that is empty, and create one again. */
static void create_again(struct sim *sim, int client)
{
	if (client ? !sim->client[client].outstanding : begins(sim))
		come(sim, random_between(&sim->rnd, 1, 5));
}

static void enter_children(struct sim *sim, u64 time)
{
	add_places(sim, add(sim, METER_NO_ENTRY, fixed(time), idle), time);
}

/* Add owners of two children each. Owner and children are new each time. */
static void enter_owners(struct sim *sim, u64 time)
{
	for (int i = 0; i < PLACES / 3; i++) {
		int owner = add(sim, METER_NO_ENTRY, fixed(time), idle);

		for (int k = 0; k < 2; k++)
			add(sim, owner, fixed(time), idle);
	}
}

static bool is_free(const struct sim_client *client)
{
	return !client->outstanding && !client->in_flight;
}

/* Send a new owner, with an item for each child, when both children of one have ended. */
static void new_owner(struct sim *sim, int client)
{
	int first = client ? client - (client - 1) % 3 + 1 : 0;

	if (!client && !begins(sim))
		return;
	if (client && (sim->client[first].outstanding || sim->client[first + 1].outstanding))
		return;
	for (int i = 1; i < sim->nr_clients; i += 3) {
		if (!is_free(&sim->client[i + 1]) || !is_free(&sim->client[i + 2]))
			continue;
		for (int k = 0; k < 3; k++)
			sim_renew(sim, i + k);
		sim_queue(sim, i + 1, 1);
		sim_queue(sim, i + 2, 1);
		return;
	}
	sim->broken = "no place for an owner";
}

/* ---- many --------------------------------------------------------------------- */

static void enter_many(struct sim *sim, u64 time)
{
	for (int i = 0; i < 4; i++)
		add(sim, METER_NO_ENTRY, fixed(time), deep);
}

static void enter_many_owned(struct sim *sim, u64 time)
{
	int owner = add(sim, METER_NO_ENTRY, fixed(time), idle);

	for (int i = 0; i < 4; i++)
		add(sim, owner, fixed(time), deep);
}

/* ---- items of odd lengths ------------------------------------------------------- */

static void enter_by_turns(struct sim *sim, u64 time)
{
	struct sim_time by_turns = { .kind = SIM_RUNS, .n = 1, .lo = time / 2, .hi = 10 * time };

	add(sim, METER_NO_ENTRY, by_turns, deep);
}

static void enter_rarely_long(struct sim *sim, u64 time)
{
	struct sim_time rarely = { .kind = SIM_RARELY, .n = 20, .lo = time / 2, .hi = 20 * time };

	add(sim, METER_NO_ENTRY, rarely, deep);
}

/* Let a long item come so rarely that the estimate has forgotten the one before it. */
static void enter_very_rarely_long(struct sim *sim, u64 time)
{
	struct sim_time rarely = { .kind = SIM_RARELY, .n = 600, .lo = time / 2, .hi = 50 * time };

	add(sim, METER_NO_ENTRY, rarely, deep);
}

/* ---- constraints ---------------------------------------------------------------- */

/* Add items of a serializer: a runner runs some of them in one turn. */
static void enter_budget(struct sim *sim, u64 time)
{
	sim_add(sim, &(struct sim_client_attrs){
		.owner = METER_NO_ENTRY, .serial = true, .budget = 5 * time,
		.time = fixed(time), .arrivals = deep,
	});
}

/* Add a limiter of two: the end of an item puts the next one at the batch's tail. */
static void enter_limited(struct sim *sim, u64 time)
{
	add(sim, METER_NO_ENTRY, fixed(time), (struct sim_arrivals){
		.kind = SIM_CLOSED, .n = 2,
	});
}

/* ---- clients that come and go ------------------------------------------------------ */

static void enter_idle(struct sim *sim, u64 time)
{
	add(sim, METER_NO_ENTRY, fixed(time), idle);
}

static void wake_up(struct sim *sim, int client)
{
	sim_queue(sim, client, random_between(&sim->rnd, 1, 3));
}

/* Let a client without items stay away for as long as a few items take. */
static void sleep_a_while(struct sim *sim, int client)
{
	u64 most = 4 * sim->client[1].attrs.time.lo;

	if (client ? sim->client[1].outstanding : !begins(sim))
		return;
	sim_wait(sim, 1, random_between(&sim->rnd, 0, most));
}

static void fill(struct sim *sim, int client)
{
	if (sim->client[client].outstanding < DEPTH)
		sim_queue(sim, client, DEPTH - sim->client[client].outstanding);
}

/* Let the adversary cancel the items that have not started, and queue them again. */
static void cancel_and_queue(struct sim *sim, int client)
{
	if (!client && !begins(sim) && !random_one_in(&sim->rnd, 2))
		return;
	if (random_one_in(&sim->rnd, 2))
		sim_cancel(sim, 1);
	fill(sim, 1);
}

/* Let the adversary cancel its items, and queue them when others have had turns. */
static void cancel_and_wait(struct sim *sim, int client)
{
	unsigned int begun = client == 1;

	if (sim->client[1].outstanding > begun) {
		if (!random_one_in(&sim->rnd, 3))
			return;
		sim_cancel(sim, 1);
	}
	sim_wait(sim, 1, random_between(&sim->rnd, 0, 4 * sim->client[1].attrs.time.lo));
}

static void enter_deep(struct sim *sim, u64 time)
{
	add(sim, METER_NO_ENTRY, fixed(time), deep);
}

static void flap_weight(struct sim *sim, int client)
{
	if (!client || random_one_in(&sim->rnd, 3))
		sim_set_weight(sim, 1, random_one_in(&sim->rnd, 2) ? 1 : 100);
}

static void flap_pause(struct sim *sim, int client)
{
	if (client || random_one_in(&sim->rnd, 2))
		sim_pause(sim, 1, !sim->client[1].paused);
}

/* ---- priorities --------------------------------------------------------------------- */

static void enter_rank(struct sim *sim, unsigned int rank, u64 time, struct sim_arrivals arrivals)
{
	sim_add(sim, &(struct sim_client_attrs){
		.owner = METER_NO_ENTRY, .rank = rank, .time = fixed(time), .arrivals = arrivals,
	});
}

static void enter_low(struct sim *sim, u64 time)
{
	enter_rank(sim, 2, time, backlog);
}

static void enter_low_long(struct sim *sim, u64 time)
{
	enter_rank(sim, 2, 100 * time, backlog);
}

/* Add a high priority: the victim has the share of the lower one. */
static void enter_high(struct sim *sim, u64 time)
{
	enter_rank(sim, 0, time, deep);
}

static void enter_high_long(struct sim *sim, u64 time)
{
	enter_rank(sim, 0, 10 * time, deep);
}

static void enter_high_short(struct sim *sim, u64 time)
{
	enter_rank(sim, 0, time / 2, backlog);
}

/* ---- all of them ----------------------------------------------------------------------- */

#define MANY_TURNS	20000

#define STANDING	.victim = { .arrivals = { .kind = SIM_BACKLOG } }
#define CIRCLING	.victim = { .arrivals = { .kind = SIM_CLOSED, .n = CIRCULATING } }
#define FEW		.victim = { .arrivals = { .kind = SIM_CLOSED, .n = 10 } }
#define LOWER		.victim = { .rank = 1, .arrivals = { .kind = SIM_BACKLOG } }

const struct plot plots[] = {
	{ "new_keys", 1 / 2., .enter = enter_newcomers, .ended = newcomer, STANDING },
	{ "new_keys_three", 3 / 4., .enter = enter_newcomers, .ended = three_newcomers,
	  STANDING },
	{ "new_keys_circling", 1 / 2., .enter = enter_newcomers, .ended = newcomer, CIRCLING },
	{ "create_again", 1 / 2., .by_chance = true,
	  .enter = enter_newcomers, .ended = create_again, STANDING },
	{ "new_children", 1 / 2., .enter = enter_children, .ended = three_newcomers,
	  STANDING },
	{ "new_owners", 1 / 2., .enter = enter_owners, .ended = new_owner, STANDING },
	{ "split", 4 / 5., .enter = enter_many, STANDING },
	{ "split_owned", 1 / 2., .enter = enter_many_owned, STANDING },
	{ "long_by_turns", 1 / 2., true, .enter = enter_by_turns, STANDING },
	{ "long_rarely", 1 / 2., true, .by_chance = true,
	  .enter = enter_rarely_long, STANDING },
	{ "long_very_rarely", 1 / 2., true, .by_chance = true,
	  .enter = enter_very_rarely_long, STANDING,
	  .turns = MANY_TURNS },
	{ "sleeping", 1 / 2., .by_chance = true,
	  .enter = enter_idle, .ended = sleep_a_while, .woken = wake_up,
	  STANDING },
	{ "cancel_and_queue", 1 / 2., .by_chance = true,
	  .enter = enter_idle, .ended = cancel_and_queue,
	  STANDING },
	{ "cancel_and_wait", 1 / 2., .by_chance = true,
	  .enter = enter_idle, .ended = cancel_and_wait,
	  .woken = fill, STANDING },
	{ "flapping_weight", 1 / 2., .by_chance = true,
	  .enter = enter_deep, .ended = flap_weight, STANDING,
	  .weight_flaps = true },
	{ "flapping_pause", 1 / 2., .by_chance = true,
	  .enter = enter_deep, .ended = flap_pause, STANDING },
	{ "budget", 1 / 2., .enter = enter_budget, STANDING },
	{ "limiter", 1 / 2., .enter = enter_limited, STANDING },
	{ "low", 1 / 64., .enter = enter_low,
	  CIRCLING, .turns = MANY_TURNS },
	{ "low_long", 1 / 64., true, .enter = enter_low_long,
	  CIRCLING, .turns = MANY_TURNS },
	{ "low_strict", 0, .strict_ranks = true, .enter = enter_low,
	  CIRCLING, .turns = MANY_TURNS },
	{ "low_few", 1 / 64., .enter = enter_low,
	  FEW, .turns = MANY_TURNS },
	{ "low_strict_few", 0, .strict_ranks = true, .enter = enter_low,
	  FEW, .turns = MANY_TURNS },
	{ "high", 63 / 64., .enter = enter_high,
	  LOWER, .turns = MANY_TURNS },
	{ "high_long", 63 / 64., true, .enter = enter_high_long,
	  LOWER, .turns = MANY_TURNS },
	{ "high_short", 63 / 64., true, .enter = enter_high_short,
	  LOWER, .turns = MANY_TURNS },
};

const unsigned int nr_plots = ARRAY_SIZE(plots);

const struct plot *plot_find(const char *name)
{
	for (unsigned int i = 0; i < nr_plots; i++)
		if (!strcmp(plots[i].name, name))
			return &plots[i];
	return NULL;
}

struct sim *plot_begin(const struct plot *plot, const struct sim_attrs *attrs, u64 time)
{
	struct sim_client_attrs victim = plot->victim;
	struct sim_attrs a = *attrs;
	struct sim *sim;

	a.ended = plot->ended;
	a.woken = plot->woken;
	a.strict_ranks = plot->strict_ranks;
	sim = sim_new(&a);
	victim.owner = METER_NO_ENTRY;
	victim.time = fixed(time);
	sim_add(sim, &victim);
	plot->enter(sim, time);
	return sim;
}

/* Return the turns of a client, or its time where time counts. */
static u64 got(const struct sim *sim, int client)
{
	const struct sim_client *c = &sim->client[client];

	return sim->attrs.policy == SIM_FAIR_TIME ? c->ran : c->turns;
}

static u64 got_in_all(const struct sim *sim)
{
	u64 sum = 0;

	for (int i = 0; i < sim->nr_clients; i++)
		sum += got(sim, i);
	return sum;
}

double plot_share(const struct sim *sim)
{
	return 1 - (double)got(sim, 0) / got_in_all(sim);
}

double plot_slack(const struct sim *sim)
{
	u64 item = sim->attrs.policy == SIM_FAIR_TIME ? 0 : 1;

	for (int i = 0; !item && i < sim->nr_clients; i++) {
		const struct sim_time *time = &sim->client[i].attrs.time;
		u64 longest = time->hi > time->lo ? time->hi : time->lo;

		item = longest > item ? longest : item;
	}
	return (double)item / got_in_all(sim);
}
