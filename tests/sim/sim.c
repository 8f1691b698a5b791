// SPDX-License-Identifier: GPL-2.0
/* The pool without a kernel; what it does is said in sim.h. */
#include <stdlib.h>
#include <string.h>

#include <linux/limits.h>

#include "sim.h"

/* As in runner.c and fifo.c. */
#define PLAN_OVERHEAD_NS	50
#define PLAN_SHARED_NS		(5 * SIM_US)
#define RUN_TIME_MAX_NS		(10 * SIM_MS)
#define AVERAGE_FRACTION	4	/* bits */
#define AVERAGE_SHIFT		3	/* a new one counts 1/8 */
#define COST_NS_SHIFT		9	/* FAIRWQ_COST_NS_SHIFT */
#define DFL_SLICE_NS		(50 * SIM_US)
/* As a kernel with HZ=250 has it. */
#define JIFFY_NS		(4 * SIM_MS)
#define OVERDUE_JIFFIES		2
#define RECENT_TURNS		256	/* FAIRWQ_RECENT_TURNS */

/* From a kick to the runner's first look. */
#define KICK_MIN_NS		(1 * SIM_US)
#define KICK_MAX_NS		(5 * SIM_US)
/* How long a pause lasts, and how long an item that was parked stays away. */
#define PAUSE_MAX_NS		(500 * SIM_US)
#define PARKED_MAX_NS		(20 * SIM_US)

/* So far before it wraps the virtual time begins, if it is to wrap soon. */
#define NEAR_WRAP		(1ULL << 30)

/* For each turn, on average; there is never that much to do. */
#define MAX_EVENTS		10000

#define DFL_WEIGHT		100U
#define MAX_WEIGHT		10000U

/* Few heavy ones, many light ones, and what fixed point cannot divide by. */
static u32 random_weight(struct random *rnd)
{
	u32 weight = random_between(rnd, 1, 10);

	while (random_one_in(rnd, 2) && weight <= MAX_WEIGHT / 10)
		weight = weight * 10 + random_below(rnd, 10);
	return weight <= MAX_WEIGHT ? weight : MAX_WEIGHT;
}

static void must(struct sim *sim, bool cond, const char *what)
{
	if (!cond && !sim->broken)
		sim->broken = what;
}

/* ---- events ------------------------------------------------------------- */

static bool event_before(const struct sim_event *a, const struct sim_event *b)
{
	return a->when != b->when ? a->when < b->when : a->seq < b->seq;
}

static void event_add(struct sim *sim, int kind, int who, u64 delay)
{
	struct sim_event event = {
		.when = sim->now + delay, .seq = sim->seq++, .kind = kind, .who = who,
	};
	int i = sim->nr_events++;

	if (i == sim->max_events) {
		sim->max_events = 2 * sim->max_events + 64;
		sim->heap = realloc(sim->heap, sim->max_events * sizeof(*sim->heap));
	}
	for (; i && event_before(&event, &sim->heap[(i - 1) / 2]); i = (i - 1) / 2)
		sim->heap[i] = sim->heap[(i - 1) / 2];
	sim->heap[i] = event;
}

static struct sim_event event_next(struct sim *sim)
{
	struct sim_event first = sim->heap[0], last = sim->heap[--sim->nr_events];
	int i = 0, child;

	for (; (child = 2 * i + 1) < sim->nr_events; i = child) {
		if (child + 1 < sim->nr_events &&
		    event_before(&sim->heap[child + 1], &sim->heap[child]))
			child++;
		if (!event_before(&sim->heap[child], &last))
			break;
		sim->heap[i] = sim->heap[child];
	}
	sim->heap[i] = last;
	return first;
}

/* ---- runners are woken --------------------------------------------------- */

static void wake(struct sim *sim)
{
	struct sim_runner *runner = sim->runner;

	if (sim->nr_active == sim->attrs.max_active)
		return;
	while (!runner->idle)
		runner++;
	runner->idle = false;
	sim->nr_active++;
	event_add(sim, SIM_WAKE, runner - sim->runner,
		  random_between(&sim->rnd, KICK_MIN_NS, KICK_MAX_NS));
}

static void kick(struct sim *sim)
{
	if (sim->attrs.picker->pick(&sim->tree))
		wake(sim);
}

/* ---- clients: queued items, and whether one may be taken ------------------ */

/* Arrival order: a ring of stamps, made larger when it is full. */
static void stamps_grow(struct sim_client *client)
{
	u32 size = client->stamp ? 2 * (client->stamp_mask + 1) : 16;
	u64 *stamp = calloc(size, sizeof(*stamp));

	for (u32 i = 0; i < client->queued; i++)
		stamp[i] = client->stamp[(client->stamp_head + i) & client->stamp_mask];
	free(client->stamp);
	client->stamp = stamp;
	client->stamp_head = 0;
	client->stamp_mask = size - 1;
}

static void stamp_put(struct sim *sim, struct sim_client *client, bool first, u64 stamp)
{
	if (sim->attrs.policy != SIM_FIFO)
		return;
	if (!client->stamp || client->queued > client->stamp_mask)
		stamps_grow(client);
	if (first)
		client->stamp[--client->stamp_head & client->stamp_mask] = stamp;
	else
		client->stamp[(client->stamp_head + client->queued) & client->stamp_mask] = stamp;
}

static u64 head_stamp(const struct sim_client *client)
{
	return client->stamp ? client->stamp[client->stamp_head & client->stamp_mask] : 0;
}

static bool backlogged(const struct sim_client *client)
{
	return client->queued || client->attrs.arrivals.kind == SIM_BACKLOG;
}

static bool at_limit(const struct sim_client *client)
{
	return client->attrs.max_active && client->in_flight >= client->attrs.max_active &&
	       !client->taken;
}

static void account_all(struct sim *sim);

static void set_limited(struct sim *sim, struct sim_client *client, bool limited)
{
	if (client->limited == limited)
		return;
	client->limited = limited;
	sim->attention += limited ? 1 : -1;
	if (limited)
		account_all(sim);
}

static void set_in_tree(struct sim *sim, struct sim_client *client, bool eligible)
{
	if (eligible == fairwq_node_eligible(&client->node))
		return;
	if (eligible)
		sim->attrs.picker->add(&sim->tree, &client->node, head_stamp(client));
	else
		sim->attrs.picker->del(&sim->tree, &client->node);
}

static void set_eligible(struct sim *sim, struct sim_client *client, bool eligible)
{
	set_in_tree(sim, client, eligible);
	if (client->eligible == eligible)
		return;
	client->eligible = eligible;
	if (eligible) {
		sim->nr_eligible[client->attrs.rank]++;
		meter_join(sim->meter, client->id);
	} else {
		if (!--sim->nr_eligible[client->attrs.rank])
			sim->passed[client->attrs.rank] = 0;
		meter_leave(sim->meter, client->id);
	}
	if (eligible)
		meter_join(sim->given, client->id);
	else
		meter_leave(sim->given, client->id);
}

/* After anything that may have changed whether @client is eligible. */
static void update(struct sim *sim, struct sim_client *client)
{
	bool limited = backlogged(client) && at_limit(client);

	set_eligible(sim, client, backlogged(client) && !client->paused && !limited);
	/* Last, as it may come back here: turns that have ended are told of. */
	set_limited(sim, client, limited);
}

/* What is to be seen of a client from outside, for the judge. */
static void show(struct sim *sim, const struct sim_client *client)
{
	bool endless = client->attrs.arrivals.kind == SIM_BACKLOG;
	unsigned int begun = client->running + client->parked;
	bool busy = endless || client->outstanding, waits = endless || client->outstanding > begun;
	bool may = !client->attrs.max_active || begun < client->attrs.max_active;

	judge_set_state(sim->judge, client->id, busy && !client->paused,
			waits && may && !client->paused);
}

static void queue(struct sim *sim, struct sim_client *client, unsigned int n)
{
	bool was = client->eligible;

	if (client->attrs.arrivals.kind != SIM_BACKLOG)
		client->outstanding += n;
	while (n--) {
		stamp_put(sim, client, false, ++sim->last_stamp);
		client->queued++;
	}
	update(sim, client);
	show(sim, client);
	if (!was)
		kick(sim);
}

/* ---- turns: taken, put back, ended ---------------------------------------- */

static u64 larger(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* What the next item may take, by the longest of those before it. */
static u64 guess(const struct sim *sim, const struct sim_client *client)
{
	u64 known = larger(client->longest[0], client->longest[1]);

	if (sim->attrs.average_charged)
		known = client->average >> AVERAGE_FRACTION;
	return known ?: sim->attrs.slice ?: DFL_SLICE_NS;
}

/* What it is likely to take; never measured: a slice. Under fair time, what it may. */
static u64 estimate(const struct sim *sim, const struct sim_client *client)
{
	u64 average = client->average >> AVERAGE_FRACTION;

	average = average ? average + PLAN_OVERHEAD_NS : sim->attrs.slice;
	return sim->attrs.policy == SIM_FAIR_TIME ? larger(average, guess(sim, client)) : average;
}

static u64 cost_of(const struct sim *sim, const struct sim_client *client)
{
	if (sim->attrs.policy != SIM_FAIR_TIME)
		return FAIRWQ_COST_TURN;
	return guess(sim, client) << COST_NS_SHIFT;
}

/* How much was given, as it is counted: turns, or ns that were charged. */
static void note_given(struct sim *sim, struct sim_client *client, s64 cost)
{
	bool turns = sim->attrs.policy != SIM_FAIR_TIME;

	meter_serve(sim->given, client->id, turns ? 1 : cost >> COST_NS_SHIFT);
}

/* A turn of one rank: the others that have something were passed over. */
static void note_ranks(struct sim *sim, unsigned int served)
{
	unsigned int *passed = sim->passed;
	bool higher = false;

	for (unsigned int i = 0; i < FAIRWQ_NR_RANKS; i++) {
		if (!sim->nr_eligible[i] || i == served)
			continue;
		higher |= i < served;
		passed[i]++;
		if (passed[i] > sim->most_passed[i])
			sim->most_passed[i] = passed[i];
	}
	if (higher && passed[served] < sim->least_passed)
		sim->least_passed = passed[served];
	passed[served] = 0;
}

static void take(struct sim *sim, struct sim_client *client, struct sim_turn *turn)
{
	*turn = (struct sim_turn){
		.client = client,
		.cost = cost_of(sim, client),
		.jumps = sim->attrs.picker->jumps(&sim->tree, &client->node),
	};
	must(sim, client->eligible, "one was picked that is not eligible");
	note_ranks(sim, client->attrs.rank);
	sim->attrs.picker->charge(&sim->tree, &client->node, turn->cost);
	if (sim->attrs.policy == SIM_FIFO) {
		turn->stamp = head_stamp(client);
		client->stamp_head++;
	}
	if (client->queued)
		client->queued--;
	if (client->taken)
		client->taken--;
	else
		client->in_flight++;
	note_given(sim, client, turn->cost);
	/* Arrival order: the place in the tree is that of the next item. */
	if (sim->attrs.policy == SIM_FIFO)
		set_in_tree(sim, client, false);
	update(sim, client);
}

/* A turn that was taken cannot be used now. */
static void refund(struct sim *sim, const struct sim_turn *turn)
{
	struct sim_client *client = turn->client;

	sim->attrs.picker->refund(&sim->tree, &client->node, turn->cost);
	if (turn->jumps)
		sim->attrs.picker->pay(&sim->tree, &client->node, -(s64)turn->cost);
	if (sim->attrs.policy == SIM_FAIR_TIME)
		note_given(sim, client, -(s64)turn->cost);
}

/* Its item is the first again. */
static void put_back(struct sim *sim, struct sim_client *client, u64 stamp)
{
	sim->nr_put_back++;
	stamp_put(sim, client, true, stamp);
	if (client->attrs.arrivals.kind != SIM_BACKLOG)
		client->queued++;
	client->taken++;
	if (sim->attrs.policy == SIM_FIFO)
		set_in_tree(sim, client, false);
	update(sim, client);
}

static void average_add(struct sim_client *client, u64 ran)
{
	u64 new = (ran < RUN_TIME_MAX_NS ? ran : RUN_TIME_MAX_NS) << AVERAGE_FRACTION;

	if (client->average)
		new = ((client->average << AVERAGE_SHIFT) - client->average + new) >> AVERAGE_SHIFT;
	client->average = new;
}

static void longest_add(struct sim_client *client, u64 ran)
{
	client->longest[0] = larger(client->longest[0], ran);
	if (++client->measured % RECENT_TURNS)
		return;
	client->longest[1] = client->longest[0];
	client->longest[0] = 0;
}

/* It cost what it took. */
static void settle(struct sim *sim, const struct sim_turn *turn)
{
	struct sim_client *client = turn->client;
	s64 delta = (turn->ran << COST_NS_SHIFT) - turn->cost;

	longest_add(client, turn->ran);
	sim->attrs.picker->correct(&sim->tree, &client->node, delta);
	if (turn->jumps)
		sim->attrs.picker->pay(&sim->tree, &client->node, delta);
	note_given(sim, client, delta);
}

static void turn_ended(struct sim *sim, const struct sim_turn *turn)
{
	struct sim_client *client = turn->client;

	if (turn->timed)
		average_add(client, turn->ran);
	if (sim->attrs.policy == SIM_FAIR_TIME)
		settle(sim, turn);
	must(sim, client->in_flight, "more turns have ended than were taken");
	client->in_flight--;
	if (client->limited)
		update(sim, client);
}

/* Tell of the turns that have ended. */
static void account(struct sim *sim, struct sim_runner *runner)
{
	while (runner->accounted < runner->ended)
		turn_ended(sim, &runner->log[runner->accounted++]);
}

static void account_all(struct sim *sim)
{
	for (unsigned int i = 0; i < sim->attrs.max_active; i++)
		account(sim, &sim->runner[i]);
}

/* ---- planning -------------------------------------------------------------- */

/* The first turn of @plan that nobody has taken. */
static struct sim_turn *first_left(struct sim_runner *planner)
{
	for (unsigned int i = 0; i < planner->nr; i++)
		if (planner->plan[i].client)
			return &planner->plan[i];
	return NULL;
}

/* The work still runs elsewhere: it comes back, its turn is begun. */
static bool park(struct sim *sim, const struct sim_turn *turn)
{
	if (!random_one_in(&sim->rnd, sim->attrs.park) || sim->attrs.policy == SIM_FIFO ||
	    sim->nr_parked == sim->attrs.max_active)
		return false;
	sim->nr_parked++;
	refund(sim, turn);
	turn->client->parked++;
	show(sim, turn->client);
	event_add(sim, SIM_UNPARK, turn->client->id,
		  random_between(&sim->rnd, 1, PARKED_MAX_NS));
	return true;
}

/*
 * Would a client go before @node if it came back now? It may do so at any time
 * if its own limit keeps it out, or if it has turns under way and nothing else.
 */
static bool plan_ends(const struct sim *sim, const struct fairwq_node *node)
{
	if (sim->attrs.policy == SIM_FIFO || sim->attrs.plans_go_on)
		return false;
	for (int i = 0; i < sim->nr_clients; i++) {
		const struct sim_client *client = &sim->client[i];

		if (client->eligible || client->paused || client->is_owner)
			continue;
		if ((client->limited || client->in_flight) &&
		    sim->attrs.picker->precedes(&client->node, node))
			return true;
	}
	return false;
}

/* Turns in the order of the tree, about a slice of them, at least one. */
static void plan_turns(struct sim *sim, struct sim_runner *runner)
{
	u64 planned = 0;

	runner->nr = 0;
	do {
		struct fairwq_node *node = sim->attrs.picker->pick(&sim->tree);
		struct sim_client *client;

		if (!node || (runner->nr && plan_ends(sim, node)))
			break;
		client = container_of(node, struct sim_client, node);
		take(sim, client, &runner->plan[runner->nr]);
		if (park(sim, &runner->plan[runner->nr]))
			continue;
		planned += estimate(sim, client);
		runner->nr++;
	} while (planned < sim->attrs.slice && runner->nr < SIM_PLAN_MAX);
	runner->share = runner->nr > 1 && planned > PLAN_SHARED_NS;
	if (runner->nr)
		runner->plan[sim->plan_seq++ % runner->nr].timed = true;
	if (runner->nr > 1)
		sim->planner = runner;
}

/* The next turn: of the runner's own plan, else of the open one, if any. */
static bool next_turn(struct sim *sim, struct sim_runner *runner, struct sim_turn *turn)
{
	struct sim_turn *first = first_left(runner);

	if (!first && sim->planner && sim->planner != runner) {
		first = first_left(sim->planner);
		sim->nr_stolen += !!first;
	}
	if (!first)
		return false;
	*turn = *first;
	first->client = NULL;
	return true;
}

/* What was planned already comes before a new plan. */
static bool find_turns(struct sim *sim, struct sim_runner *runner)
{
	runner->started = 0;
	runner->ended = 0;
	runner->accounted = 0;
	runner->share = false;
	runner->round = sim->now;
	runner->due = sim->now + sim->attrs.slice;
	if (sim->planner && sim->planner != runner && first_left(sim->planner))
		return true;
	plan_turns(sim, runner);
	return runner->nr;
}

/* ---- running --------------------------------------------------------------- */

static u64 time_of(struct sim *sim, struct sim_client *client)
{
	const struct sim_time *time = &client->attrs.time;

	switch (time->kind) {
	case SIM_UNIFORM:
		return random_between(&sim->rnd, time->lo, time->hi);
	case SIM_RARELY:
		return random_one_in(&sim->rnd, time->n) ? time->hi : time->lo;
	case SIM_RUNS:
		return client->items++ / time->n % 2 ? time->hi : time->lo;
	default:
		return time->lo;
	}
}

/* What may come at any time comes with some turns, and more often with odd ones. */
static void disturb(struct sim *sim, int who)
{
	if (sim->client[who].is_owner)
		return;
	if (random_one_in(&sim->rnd, sim->attrs.pause) && !sim->client[who].paused) {
		sim_pause(sim, who, true);
		event_add(sim, SIM_RESUME, who, random_between(&sim->rnd, 1, PAUSE_MAX_NS));
	}
	if (random_one_in(&sim->rnd, sim->attrs.reweigh))
		sim_set_weight(sim, who, random_weight(&sim->rnd));
}

static void start(struct sim *sim, struct sim_runner *runner, struct sim_turn *turn)
{
	struct sim_client *client = turn->client;

	if (sim->attention) {
		account(sim, runner);
		kick(sim);
	}
	turn->ran = time_of(sim, client);
	turn->timed |= sim->attrs.policy == SIM_FAIR_TIME;
	judge_serve(sim->judge, client->id, sim->attrs.policy == SIM_FAIR_TIME ? turn->ran : 1);
	client->running++;
	show(sim, client);
	client->turns++;
	client->ran += turn->ran;
	sim->turns++;
	if (sim->attrs.policy == SIM_FAIR_TIME)
		meter_begin(sim->meter, client->id);
	else
		meter_serve(sim->meter, client->id, 1);
	if (sim->attrs.started)
		sim->attrs.started(sim->attrs.arg, client->id);
	event_add(sim, SIM_ITEM_ENDS, runner - sim->runner, turn->ran);
	disturb(sim, random_below(&sim->rnd, sim->nr_clients));
}

/* What was begun takes longer than a plan should; fair time is timed. */
static bool is_late(const struct sim *sim, const struct sim_runner *runner)
{
	if (sim->attrs.policy == SIM_FAIR_TIME && (s64)sim->now > runner->due)
		return true;
	return sim->now / JIFFY_NS >= runner->round / JIFFY_NS + OVERDUE_JIFFIES;
}

/* Start the next turn that there is, unless it is time to tell of the others. */
static bool run_next(struct sim *sim, struct sim_runner *runner)
{
	if (runner->started && is_late(sim, runner))
		return false;
	if (runner->started == SIM_PLAN_MAX ||
	    !next_turn(sim, runner, &runner->log[runner->started]))
		return false;
	start(sim, runner, &runner->log[runner->started++]);
	return true;
}

/* The turns at hand, then what is found under the lock, or nothing to do. */
static void run(struct sim *sim, struct sim_runner *runner)
{
	while (!run_next(sim, runner)) {
		account(sim, runner);
		if (!find_turns(sim, runner)) {
			runner->idle = true;
			sim->nr_active--;
			kick(sim);
			return;
		}
		if (runner->share)
			wake(sim);
		else
			kick(sim);
	}
}

/* From the last turn on, so that each client has its items in order again. */
static void give_back_rest(struct sim *sim, struct sim_runner *runner)
{
	for (unsigned int i = runner->nr; i-- > 0;) {
		struct sim_turn turn = runner->plan[i];

		if (!turn.client)
			continue;
		runner->plan[i].client = NULL;
		refund(sim, &turn);
		put_back(sim, turn.client, turn.stamp);
	}
	kick(sim);
}

static void burst_is_done(struct sim *sim, struct sim_client *client)
{
	u64 gap = client->attrs.arrivals.gap;

	event_add(sim, SIM_ARRIVAL, client->id, random_between(&sim->rnd, 0, 2 * gap));
}

static void item_ends(struct sim *sim, struct sim_runner *runner)
{
	const struct sim_turn *turn = &runner->log[runner->started - 1];
	struct sim_client *client = turn->client;
	const struct sim_arrivals *arrivals = &client->attrs.arrivals;

	if (sim->attrs.policy == SIM_FAIR_TIME)
		meter_end(sim->meter, client->id);
	runner->ended = runner->started;
	/* What was charged and not used has to be given back as soon. */
	if (turn->cost >> COST_NS_SHIFT > turn->ran)
		runner->due -= (turn->cost >> COST_NS_SHIFT) - turn->ran;
	client->running--;
	if (arrivals->kind != SIM_BACKLOG)
		client->outstanding--;
	if (sim->attrs.ended)
		sim->attrs.ended(sim, client->id);
	if (arrivals->kind == SIM_CLOSED)
		queue(sim, client, 1);
	else if ((arrivals->kind == SIM_BURSTS || arrivals->kind == SIM_LEAVES) &&
		 !client->outstanding)
		burst_is_done(sim, client);
	show(sim, client);
	if (first_left(runner) && is_late(sim, runner))
		give_back_rest(sim, runner);
	run(sim, runner);
}

/* ---- what comes from outside ------------------------------------------------ */

static void set_weight(struct sim *sim, struct sim_client *client, u32 weight)
{
	client->weight = weight;
	meter_set_weight(sim->meter, client->id, weight);
	meter_set_weight(sim->given, client->id, weight);
	judge_set_weight(sim->judge, client->id, weight);
}

void sim_set_weight(struct sim *sim, int who, u32 weight)
{
	set_weight(sim, &sim->client[who], weight);
	sim->attrs.picker->set_weight(&sim->tree, &sim->client[who].node, weight);
}

void sim_pause(struct sim *sim, int who, bool paused)
{
	sim->client[who].paused = paused;
	update(sim, &sim->client[who]);
	show(sim, &sim->client[who]);
	if (!paused)
		kick(sim);
}

void sim_queue(struct sim *sim, int who, unsigned int n)
{
	queue(sim, &sim->client[who], n);
}

/* What is planned is given back first, from the last one on. */
void sim_cancel(struct sim *sim, int who)
{
	struct sim_client *client = &sim->client[who];

	for (unsigned int i = 0; i < sim->attrs.max_active; i++) {
		struct sim_runner *runner = &sim->runner[i];

		for (unsigned int k = runner->nr; k-- > 0;) {
			struct sim_turn turn = runner->plan[k];

			if (turn.client != client)
				continue;
			runner->plan[k].client = NULL;
			refund(sim, &turn);
			client->in_flight--;
			client->outstanding--;
		}
	}
	client->outstanding -= client->queued;
	client->in_flight -= client->taken;
	client->queued = 0;
	client->taken = 0;
	update(sim, client);
	show(sim, client);
}

void sim_wait(struct sim *sim, int who, u64 delay)
{
	event_add(sim, SIM_WOKEN, who, delay);
}

static void node_init(struct sim *sim, struct sim_client *client)
{
	struct fairwq_node *parent = &sim->tree.rank[client->attrs.rank];

	if (client->owner && !sim->attrs.owners_ignored)
		parent = &client->owner->node;
	sim->attrs.picker->node_init(&client->node, parent, client->weight);
}

/* What it had before this began. */
static void init_longest(const struct sim *sim, struct sim_client *client)
{
	const struct sim_time *time = &client->attrs.time;

	client->longest[0] = 0;
	client->longest[1] = sim->attrs.strangers ? 0 : larger(time->lo, time->hi);
}

bool sim_renew(struct sim *sim, int who)
{
	struct sim_client *client = &sim->client[who];

	if (client->in_flight || client->eligible || fairwq_node_eligible(&client->node))
		return false;
	client->average = 0;
	init_longest(sim, client);
	judge_replace(sim->judge, who, client->weight);
	node_init(sim, client);
	return true;
}

/* Another client comes, in the place of one that has gone. */
static void replace(struct sim *sim, struct sim_client *client)
{
	if (client->in_flight || client->eligible)
		return;
	set_weight(sim, client, random_weight(&sim->rnd));
	sim_renew(sim, client->id);
}

static void source(struct sim *sim)
{
	double dice = (double)(random_next(&sim->rnd) >> 11) / (1ULL << 53);
	int from = 0, to = sim->nr_clients - 1;

	while (from < to) {
		int mid = (from + to) / 2;

		if (sim->zipf[mid] < dice * sim->zipf[sim->nr_clients - 1])
			from = mid + 1;
		else
			to = mid;
	}
	event_add(sim, SIM_ARRIVAL, METER_NOBODY,
		  random_between(&sim->rnd, 0, 2 * sim->zipf_gap));
	if (sim->client[from].attrs.arrivals.kind == SIM_BY_SOURCE)
		queue(sim, &sim->client[from], 1);
}

static void arrival(struct sim *sim, int who)
{
	struct sim_client *client;

	if (who == METER_NOBODY) {
		source(sim);
		return;
	}
	client = &sim->client[who];
	if (client->attrs.arrivals.kind == SIM_LEAVES)
		replace(sim, client);
	queue(sim, client, random_between(&sim->rnd, 1, client->attrs.arrivals.n));
}

static void handle(struct sim *sim, const struct sim_event *event)
{
	switch (event->kind) {
	case SIM_ITEM_ENDS:
		item_ends(sim, &sim->runner[event->who]);
		break;
	case SIM_WAKE:
		run(sim, &sim->runner[event->who]);
		break;
	case SIM_ARRIVAL:
		arrival(sim, event->who);
		break;
	case SIM_RESUME:
		sim_pause(sim, event->who, false);
		break;
	case SIM_UNPARK:
		sim->nr_parked--;
		sim->client[event->who].parked--;
		put_back(sim, &sim->client[event->who], 0);
		show(sim, &sim->client[event->who]);
		disturb(sim, event->who);
		kick(sim);
		break;
	case SIM_WOKEN:
		sim->attrs.woken(sim, event->who);
		break;
	}
}

/* ---- from outside ----------------------------------------------------------- */

struct sim *sim_new(const struct sim_attrs *attrs)
{
	struct sim *sim = calloc(1, sizeof(*sim));
	bool turns = attrs->policy != SIM_FAIR_TIME;

	sim->attrs = *attrs;
	sim->rnd.state = attrs->seed;
	sim->client = calloc(attrs->max_clients, sizeof(*sim->client));
	sim->meter = meter_new(attrs->max_clients, METER_PROMISE,
			       attrs->max_active + 1);
	sim->given = meter_new(attrs->max_clients, METER_HALVES,
			       (attrs->max_active + 1) * (turns ? 1 : 2));
	sim->judge = judge_new(attrs->max_clients, attrs->max_active + 1);
	attrs->picker->tree_init(&sim->tree, attrs->policy == SIM_FIFO);
	if (!turns)
		attrs->picker->set_turn(&sim->tree,
					(attrs->slice ?: DFL_SLICE_NS) << COST_NS_SHIFT);
	if (attrs->strict_ranks)
		sim->tree.patience = 0;
	for (int i = 0; i < FAIRWQ_NR_RANKS && attrs->near_wrap; i++)
		sim->tree.rank[i].clock = -NEAR_WRAP;
	for (unsigned int i = 0; i < attrs->max_active; i++)
		sim->runner[i].idle = true;
	sim->least_passed = -1U;
	return sim;
}

int sim_add(struct sim *sim, const struct sim_client_attrs *attrs)
{
	int id = sim->nr_clients++;
	struct sim_client *client = &sim->client[id];

	client->attrs = *attrs;
	client->id = id;
	client->weight = attrs->weight ?: DFL_WEIGHT;
	if (attrs->owner != METER_NOBODY) {
		client->owner = &sim->client[attrs->owner];
		client->owner->is_owner = true;
		client->attrs.rank = client->owner->attrs.rank;
	}
	meter_add(sim->meter, attrs->owner, client->attrs.rank, client->weight);
	meter_add(sim->given, attrs->owner, client->attrs.rank, client->weight);
	judge_add(sim->judge, attrs->owner, client->attrs.rank, client->weight);
	node_init(sim, client);
	init_longest(sim, client);
	if (sim->attrs.near_wrap)
		client->node.vtime = -NEAR_WRAP;
	return id;
}

void sim_set_source(struct sim *sim, u64 gap)
{
	double sum = 0;

	sim->zipf_gap = gap;
	sim->zipf = calloc(sim->nr_clients, sizeof(*sim->zipf));
	for (int i = 0; i < sim->nr_clients; i++)
		sim->zipf[i] = sum += 1.0 / (i + 1);
	event_add(sim, SIM_ARRIVAL, METER_NOBODY, gap);
}

static bool is_varying(const struct sim_client *client)
{
	return !client->is_owner && client->attrs.time.kind != SIM_FIXED;
}

static u64 longest_item(const struct sim_client *client)
{
	return is_varying(client) ? client->attrs.time.hi : client->attrs.time.lo;
}

/* How many turns at most a plan has of a client. */
static s64 turns_of_plan(const struct sim *sim)
{
	u64 shortest = U64_MAX, planned;

	for (int i = 0; i < sim->nr_clients; i++)
		if (!sim->client[i].is_owner && sim->client[i].attrs.time.lo < shortest)
			shortest = sim->client[i].attrs.time.lo;
	shortest += PLAN_OVERHEAD_NS;
	planned = (sim->attrs.slice + shortest - 1) / shortest;
	return planned < 1 ? 1 : planned < SIM_PLAN_MAX ? planned : SIM_PLAN_MAX;
}

/*
 * The most that a client gets at once, ns: what is planned, which is a slice,
 * and the item that goes on when that time is up. If what items take is known
 * a plan ends where it should: then it is a slice or an item.
 */
static s64 time_of_plan(const struct sim *sim, const struct sim_client *client)
{
	u64 longest = longest_item(client);

	if (sim->attrs.slice && sim->unknown)
		return sim->attrs.slice + longest;
	return larger(longest, sim->attrs.slice ?: DFL_SLICE_NS);
}

/* What the bound is made of. */
static void set_bound(struct sim *sim)
{
	bool turns = sim->attrs.policy != SIM_FAIR_TIME;
	s64 planned = turns_of_plan(sim);

	for (int i = 0; i < sim->nr_clients; i++)
		sim->unknown |= !turns && is_varying(&sim->client[i]);
	if (sim->unknown && sim->attrs.strangers) {
		sim->meter->bound = METER_SURPRISED;
		sim->given->taken *= 2;
	}
	sim->judge->surprised = sim->unknown;
	/* Behind each item that runs one may be parked, and be owed its turn. */
	if (sim->attrs.park) {
		sim->meter->taken += sim->attrs.max_active;
		sim->judge->taken += sim->attrs.max_active;
	}
	for (int i = 0; i < sim->nr_clients; i++) {
		const struct sim_client *client = &sim->client[i];

		if (client->is_owner)
			continue;
		meter_set_largest(sim->meter, i, turns ? planned : time_of_plan(sim, client));
		meter_set_largest(sim->given, i, turns ? 1 : time_of_plan(sim, client));
		judge_set_largest(sim->judge, i, turns ? 1 : longest_item(client),
				  turns ? planned : time_of_plan(sim, client));
	}
}

static void begin(struct sim *sim)
{
	sim->begun = true;
	set_bound(sim);
	for (int i = 0; i < sim->nr_clients; i++) {
		struct sim_client *client = &sim->client[i];

		if (client->is_owner)
			continue;
		if (client->attrs.arrivals.kind == SIM_BACKLOG)
			queue(sim, client, 0);
		else if (client->attrs.arrivals.kind == SIM_CLOSED)
			queue(sim, client, client->attrs.arrivals.n);
		else if (client->attrs.arrivals.kind == SIM_BURSTS ||
			 client->attrs.arrivals.kind == SIM_LEAVES)
			burst_is_done(sim, client);
	}
}

void sim_run(struct sim *sim, u64 turns)
{
	u64 until = sim->turns + turns, events = MAX_EVENTS * turns;

	if (!sim->begun)
		begin(sim);
	while (sim->turns < until && sim->nr_events && events-- && !sim->broken) {
		struct sim_event event = event_next(sim);

		sim->now = event.when;
		meter_at(sim->meter, sim->now);
		handle(sim, &event);
	}
	must(sim, sim->turns >= until, "not so many turns were taken");
}

void sim_finish(struct sim *sim)
{
	meter_finish(sim->meter);
	meter_finish(sim->given);
}

void sim_free(struct sim *sim)
{
	for (int i = 0; i < sim->nr_clients; i++)
		free(sim->client[i].stamp);
	meter_free(sim->meter);
	meter_free(sim->given);
	judge_free(sim->judge);
	free(sim->zipf);
	free(sim->heap);
	free(sim->client);
	free(sim);
}
