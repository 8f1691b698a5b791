// SPDX-License-Identifier: GPL-2.0
/* The simulator: a pool without a kernel. See sim.h. */
#include <stdlib.h>
#include <string.h>

#include <linux/limits.h>

#include "sim.h"

/* As in policy.c and burst.c of core/. */
#define QUICK_NS		1000
#define TIMED_TURNS		64
#define BURST_ITEMS		1024
#define RUN_TIME_MAX_NS		(10 * SIM_MS)
#define AVERAGE_FRACTION	4	/* bits */
#define AVERAGE_SHIFT		3	/* a new one counts 1/8 */
#define COST_NS_SHIFT		9	/* FAIRWQ_COST_NS_SHIFT */
#define DFL_SLICE_NS		(50 * SIM_US)
#define RECENT_TURNS		256	/* FAIRWQ_RECENT_TURNS */

/* Time from a kick until the runner looks for a turn. */
#define KICK_MIN_NS		(1 * SIM_US)
#define KICK_MAX_NS		(5 * SIM_US)
/* The longest pause, and the longest time that an item is parked. */
#define PAUSE_MAX_NS		(500 * SIM_US)
#define PARKED_MAX_NS		(20 * SIM_US)

/* With @near_wrap, virtual times begin this far before they wrap. */
#define NEAR_WRAP		(1ULL << 30)

/* More events for each turn, on average, mean that the simulator hangs. */
#define MAX_EVENTS		10000

#define DFL_WEIGHT		100U
#define MAX_WEIGHT		10000U

/* Draw a weight: mostly a light one, and often one that fixed point cannot divide by. */
static u32 random_weight(struct random *rnd)
{
	u32 weight = random_between(rnd, 1, 10);

	while (random_one_in(rnd, 2) && weight <= MAX_WEIGHT / 10)
		weight = weight * 10 + random_below(rnd, 10);
	return weight <= MAX_WEIGHT ? weight : MAX_WEIGHT;
}

/* Note @what as broken unless @cond holds. */
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

static void event_add(struct sim *sim, int kind, int id, u64 delay)
{
	struct sim_event event = {
		.when = sim->now + delay, .seq = sim->seq++, .kind = kind, .id = id,
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

/* Remove the first event from the heap. Return: it. */
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

/* ---- kicks and the tick -------------------------------------------------- */

static u64 jiffies(const struct sim *sim)
{
	return sim->now / SIM_JIFFY;
}

/* Wake an idle runner, if there is one. */
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

static bool has_work(const struct sim *sim)
{
	return sim->attrs.picker->pick(&sim->tree);
}

/* Let the tick look at the runners at the next jiffy. */
static void tick_soon(struct sim *sim)
{
	if (sim->ticking || sim->attrs.no_tick)
		return;
	sim->ticking = true;
	event_add(sim, SIM_TICK, 0, SIM_JIFFY - sim->now % SIM_JIFFY);
}

/* Check whether a runner is at an item that is likely to end at once. */
static bool is_soon_free(struct sim *sim)
{
	if (!sim->nr_quick || jiffies(sim) > sim->quick_at)
		return false;
	tick_soon(sim);
	return true;
}

/* Wake a runner if a turn waits, unless another runner is soon free. */
static void kick(struct sim *sim)
{
	if (has_work(sim) && !is_soon_free(sim))
		wake(sim);
}

/* Check whether an item that was likely to end at once has run for a whole tick. */
static bool is_slow(const struct sim *sim)
{
	for (unsigned int i = 0; i < sim->attrs.max_active; i++) {
		const struct sim_runner *runner = &sim->runner[i];

		if (runner->turn.client && runner->turn.quick &&
		    jiffies(sim) > runner->started / SIM_JIFFY + 1)
			return true;
	}
	return false;
}

static void tick(struct sim *sim)
{
	bool slow = is_slow(sim);

	sim->ticking = false;
	if (slow && has_work(sim))
		wake(sim);
	if (sim->nr_quick && !slow)
		tick_soon(sim);
}

/* Note how long a turn has waited beside an idle runner, while no turn began. */
static void note_unused(struct sim *sim)
{
	if (sim->nr_active == sim->attrs.max_active || !has_work(sim))
		sim->unused_since = sim->now;
	else if (sim->now - sim->unused_since > sim->longest_unused)
		sim->longest_unused = sim->now - sim->unused_since;
}

/* ---- clients: queued items, and when one may be taken --------------------- */

static bool is_endless(const struct sim_client *client)
{
	return client->attrs.arrivals.kind == SIM_BACKLOG;
}

/* Check whether the batch itself has items. Items in a serializer do not count. */
static bool backlogged(const struct sim_client *client)
{
	return client->queued || (is_endless(client) && !client->attrs.serial);
}

static bool at_limit(const struct sim_client *client)
{
	return client->attrs.max_active &&
	       client->in_flight - client->parked - client->taken >= client->attrs.max_active;
}

static void set_in_tree(struct sim *sim, struct sim_client *client, bool eligible)
{
	if (eligible == fairwq_node_eligible(&client->node))
		return;
	if (eligible)
		sim->attrs.picker->add(&sim->tree, &client->node);
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

/* Put @client into the tree, or out of it. Must follow each change of its state. */
static void update(struct sim *sim, struct sim_client *client)
{
	set_eligible(sim, client, backlogged(client) && !client->paused && !at_limit(client));
}

/* Tell the judge the state of @client, as an observer from outside sees it. */
static void show(struct sim *sim, const struct sim_client *client)
{
	bool busy = is_endless(client) || client->outstanding;
	bool waits = is_endless(client) ||
		     client->outstanding > client->running + client->parked;
	unsigned int most = client->attrs.max_active;

	if (client->attrs.serial)
		most = 1;
	judge_set_state(sim->judge, client->id, busy && !client->paused,
			waits && (!most || client->running < most) && !client->paused);
}

/* Sort the pushed items of all clients. */
static void sort_all(struct sim *sim)
{
	for (int i = 0; i < sim->nr_clients; i++) {
		sim->client[i].queued += sim->client[i].pushed;
		sim->client[i].pushed = 0;
		update(sim, &sim->client[i]);
	}
}

/* Put an item into the batch: a new one, or the next of the serializer. */
static void enqueue(struct sim *sim, struct sim_client *client)
{
	bool was = client->eligible;

	if (sim->attrs.sort_late)
		client->pushed++;
	else
		client->queued++;
	if (client->pushed && !has_work(sim))
		sort_all(sim);
	update(sim, client);
	show(sim, client);
	if (!was)
		kick(sim);
}

/* Queue @n items. A serializer keeps them while another one is in the batch or runs. */
static void queue(struct sim *sim, struct sim_client *client, unsigned int n)
{
	if (!is_endless(client))
		client->outstanding += n;
	for (; n; n--) {
		if (client->attrs.serial && client->let_go)
			client->kept++;
		else
			enqueue(sim, client);
		client->let_go = true;
	}
	show(sim, client);
}

/* ---- what a turn costs ------------------------------------------------------ */

static u64 larger(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* Return the estimate for the next item: the longest of recent ones. */
static u64 guess(const struct sim *sim, const struct sim_client *client)
{
	u64 known = client->average >> AVERAGE_FRACTION;

	if (sim->attrs.not_charged)
		return 1;
	if (!sim->attrs.average_charged)
		known = larger(known, larger(client->longest[0], client->longest[1]));
	if (known > RUN_TIME_MAX_NS && !sim->attrs.guess_unbounded)
		known = RUN_TIME_MAX_NS;
	return known ?: sim->attrs.slice;
}

static u64 cost_of(const struct sim *sim, const struct sim_client *client)
{
	if (sim->attrs.policy != SIM_FAIR_TIME)
		return FAIRWQ_COST_TURN;
	return guess(sim, client) << COST_NS_SHIFT;
}

/* Tell the meter that @client was given @amount: turns, or ns that were charged. */
static void note_given(struct sim *sim, struct sim_client *client, s64 amount)
{
	meter_serve(sim->given, client->id, amount);
}

/* Count a turn of rank @served: other ranks that have a turn were passed over. */
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

/* Correct the charge in turns: a burst was charged as one. */
static s64 settle_turns(const struct sim *sim, const struct sim_turn *turn)
{
	return sim->attrs.burst_free ? 0 : (turn->nr - 1) * FAIRWQ_COST_TURN;
}

/* Correct the charge in time: the turn was charged an estimate. */
static s64 settle_time(const struct sim_turn *turn)
{
	longest_add(turn->client, turn->ran / turn->nr);
	return (turn->ran << COST_NS_SHIFT) - turn->cost;
}

/* Correct the charge of a turn that has ended. */
static void settle(struct sim *sim, const struct sim_turn *turn)
{
	bool by_time = sim->attrs.policy == SIM_FAIR_TIME;
	s64 delta = by_time ? settle_time(turn) : settle_turns(sim, turn);
	struct sim_client *client = turn->client;

	sim->attrs.picker->correct(&sim->tree, &client->node, delta, turn->out_of_rank);
	note_given(sim, client, by_time ? delta >> COST_NS_SHIFT : turn->nr - 1);
}

/* ---- one turn --------------------------------------------------------------- */

/* Take the first item out of the batch. It is in flight from here on. */
static void take_out(struct sim_client *client)
{
	if (client->queued)
		client->queued--;
	if (client->taken)
		client->taken--;
	else
		client->in_flight++;
}

/*
 * Park the first item now and then, as if it still ran on another runner.
 * Return: true if it was; then the runner looks for another turn.
 */
static bool park(struct sim *sim, struct sim_client *client)
{
	if (!random_one_in(&sim->rnd, sim->attrs.park) ||
	    sim->nr_parked + 1 >= sim->nr_active)
		return false;
	take_out(client);
	sim->nr_parked++;
	client->parked++;
	update(sim, client);
	show(sim, client);
	event_add(sim, SIM_UNPARK, client->id, random_between(&sim->rnd, 1, PARKED_MAX_NS));
	return true;
}

/* Put a parked item back to the head of the batch. */
static void unpark(struct sim *sim, struct sim_client *client)
{
	sim->nr_parked--;
	client->parked--;
	if (!is_endless(client))
		client->queued++;
	client->taken++;
	update(sim, client);
	show(sim, client);
}

/* Take a turn of @client, and charge it. */
static void take_turn(struct sim *sim, struct sim_client *client, struct sim_turn *turn)
{
	u64 average = client->average >> AVERAGE_FRACTION;
	bool by_time = sim->attrs.policy == SIM_FAIR_TIME;

	*turn = (struct sim_turn){
		.client = client,
		.nr = 1,
		.begun = sim->now,
		.cost = cost_of(sim, client),
		.quick = average && average < QUICK_NS,
	};
	turn->timed = !turn->quick || by_time || !(++sim->turn_number % TIMED_TURNS);
	sim->unused_since = sim->now;
	must(sim, client->eligible, "one was picked that is not eligible");
	note_ranks(sim, client->attrs.rank);
	take_out(client);
	turn->out_of_rank = sim->attrs.picker->charge(&sim->tree, &client->node, turn->cost);
	note_given(sim, client, by_time ? turn->cost >> COST_NS_SHIFT : 1);
	update(sim, client);
	if (turn->quick) {
		sim->nr_quick++;
		sim->quick_at = jiffies(sim);
	}
}

static void turn_ends(struct sim *sim, struct sim_turn *turn)
{
	struct sim_client *client = turn->client;

	sim->nr_quick -= turn->quick;
	if (turn->timed)
		average_add(client, turn->ran / turn->nr);
	must(sim, client->in_flight, "more turns have ended than were taken");
	client->in_flight--;
	if (client->attrs.max_active)
		update(sim, client);
	settle(sim, turn);
	turn->client = NULL;
}

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

/* Pause or reweigh a client with some turns, as @pause and @reweigh say. */
static void disturb(struct sim *sim, int id)
{
	if (sim->client[id].is_owner)
		return;
	if (random_one_in(&sim->rnd, sim->attrs.pause) && !sim->client[id].paused) {
		sim_pause(sim, id, true);
		event_add(sim, SIM_RESUME, id, random_between(&sim->rnd, 1, PAUSE_MAX_NS));
	}
	if (random_one_in(&sim->rnd, sim->attrs.reweigh))
		sim_set_weight(sim, id, random_weight(&sim->rnd));
}

/* End a wait of SIM_WAITS. Only now the time of the item is known, and it is counted. */
static void stop_waiting(struct sim *sim, struct sim_client *client)
{
	struct sim_runner *runner = client->waiting;
	u64 time = sim->now - runner->started;

	client->waiting = NULL;
	runner->turn.ran += time;
	client->ran += time;
	judge_serve(sim->judge, client->id, sim->attrs.policy == SIM_FAIR_TIME ? time : 0);
	event_add(sim, SIM_ITEM_ENDS, runner - sim->runner, 0);
}

/* Start the item of @runner. */
static void start(struct sim *sim, struct sim_runner *runner)
{
	struct sim_client *client = runner->turn.client;
	bool waits = client->attrs.time.kind == SIM_WAITS && client->items++ % 2 == 0;
	u64 time = waits ? 0 : time_of(sim, client);

	runner->turn.ran += time;
	runner->started = sim->now;
	judge_serve(sim->judge, client->id, sim->attrs.policy == SIM_FAIR_TIME ? time : 1);
	client->running++;
	show(sim, client);
	client->turns++;
	client->ran += time;
	sim->turns++;
	if (sim->attrs.policy == SIM_FAIR_TIME)
		meter_begin(sim->meter, client->id);
	else
		meter_serve(sim->meter, client->id, 1);
	if (sim->attrs.started)
		sim->attrs.started(sim->attrs.arg, client->id);
	if (waits)
		client->waiting = runner;
	else
		event_add(sim, SIM_ITEM_ENDS, runner - sim->runner, time);
	disturb(sim, random_below(&sim->rnd, sim->nr_clients));
}

/* Check whether the runner goes on with the next item of the serializer. */
static bool goes_on(const struct sim *sim, const struct sim_turn *turn)
{
	const struct sim_client *client = turn->client;

	if (client->attrs.max_active || client->paused || turn->nr >= BURST_ITEMS)
		return false;
	return sim->now < turn->begun + client->attrs.budget || !has_work(sim);
}

/* Admit the next item of the serializer. Return: true if the turn goes on with it. */
static bool next_of_serializer(struct sim *sim, struct sim_runner *runner)
{
	struct sim_client *client = runner->turn.client;
	bool more = client->kept || is_endless(client);

	if (!client->attrs.serial)
		return false;
	client->let_go = more;
	if (!more)
		return false;
	if (client->kept)
		client->kept--;
	if (goes_on(sim, &runner->turn)) {
		runner->turn.nr++;
		return true;
	}
	enqueue(sim, client);
	return false;
}

/* Find the next turn for @runner. Return: false if there is none. */
static bool find_turn(struct sim *sim, struct sim_runner *runner)
{
	struct fairwq_node *node;
	struct sim_client *client;

	do {
		node = sim->attrs.picker->pick(&sim->tree);
		if (!node)
			return false;
		client = container_of(node, struct sim_client, node);
	} while (park(sim, client));
	take_turn(sim, client, &runner->turn);
	return true;
}

/* Start the next turn. If there is none, or another runner is soon free, go idle. */
static void run(struct sim *sim, struct sim_runner *runner, bool was_quick)
{
	if ((was_quick && is_soon_free(sim)) || !find_turn(sim, runner)) {
		runner->idle = true;
		sim->nr_active--;
		kick(sim);
		return;
	}
	kick(sim);
	start(sim, runner);
}

static void bunch_is_done(struct sim *sim, struct sim_client *client)
{
	u64 gap = client->attrs.arrivals.gap;

	event_add(sim, SIM_ARRIVAL, client->id, random_between(&sim->rnd, 0, 2 * gap));
}

static void item_ends(struct sim *sim, struct sim_runner *runner)
{
	struct sim_client *client = runner->turn.client;
	const struct sim_arrivals *arrivals = &client->attrs.arrivals;
	bool quick = runner->turn.quick, more;

	if (sim->attrs.policy == SIM_FAIR_TIME)
		meter_end(sim->meter, client->id);
	if (client->waiting)
		stop_waiting(sim, client);
	client->running--;
	if (!is_endless(client))
		client->outstanding--;
	if (sim->attrs.ended)
		sim->attrs.ended(sim, client->id);
	if (arrivals->kind == SIM_CLOSED)
		queue(sim, client, 1);
	else if ((arrivals->kind == SIM_BUNCHES || arrivals->kind == SIM_LEAVES) &&
		 !client->outstanding)
		bunch_is_done(sim, client);
	more = next_of_serializer(sim, runner);
	show(sim, client);
	if (more) {
		start(sim, runner);
		return;
	}
	turn_ends(sim, &runner->turn);
	run(sim, runner, quick);
}

/* ---- calls from outside ----------------------------------------------------- */

static void set_weight(struct sim *sim, struct sim_client *client, u32 weight)
{
	client->weight = weight;
	meter_set_weight(sim->meter, client->id, weight);
	meter_set_weight(sim->given, client->id, weight);
	judge_set_weight(sim->judge, client->id, weight);
}

void sim_set_weight(struct sim *sim, int id, u32 weight)
{
	set_weight(sim, &sim->client[id], weight);
	sim->attrs.picker->set_weight(&sim->client[id].node, weight);
}

void sim_pause(struct sim *sim, int id, bool paused)
{
	sim->client[id].paused = paused;
	update(sim, &sim->client[id]);
	show(sim, &sim->client[id]);
	if (!paused)
		kick(sim);
}

void sim_queue(struct sim *sim, int id, unsigned int n)
{
	queue(sim, &sim->client[id], n);
}

/* Cancel the items of a client, except those that are parked or run. */
void sim_cancel(struct sim *sim, int id)
{
	struct sim_client *client = &sim->client[id];

	client->outstanding -= client->queued + client->kept;
	client->in_flight -= client->taken;
	client->let_go &= !client->queued;
	client->queued = 0;
	client->kept = 0;
	client->taken = 0;
	update(sim, client);
	show(sim, client);
}

void sim_wait(struct sim *sim, int id, u64 delay)
{
	event_add(sim, SIM_WOKEN, id, delay);
}

static void node_init(struct sim *sim, struct sim_client *client)
{
	struct fairwq_node *parent = &sim->tree.rank[client->attrs.rank];

	if (client->owner && !sim->attrs.owners_ignored)
		parent = &client->owner->node;
	sim->attrs.picker->node_init(&client->node, parent, client->weight);
}

/* Set the longest turns that @client had before the simulation began. */
static void init_longest(const struct sim *sim, struct sim_client *client)
{
	const struct sim_time *time = &client->attrs.time;

	client->longest[0] = 0;
	client->longest[1] = sim->attrs.strangers ? 0 : larger(time->lo, time->hi);
}

bool sim_renew(struct sim *sim, int id)
{
	struct sim_client *client = &sim->client[id];

	if (client->in_flight || client->eligible || fairwq_node_eligible(&client->node))
		return false;
	client->average = 0;
	init_longest(sim, client);
	judge_replace(sim->judge, id, client->weight);
	node_init(sim, client);
	return true;
}

/* Replace @client by a new one, with another weight, when its turns have ended. */
static void replace(struct sim *sim, struct sim_client *client)
{
	if (client->in_flight || client->eligible)
		return;
	set_weight(sim, client, random_weight(&sim->rnd));
	sim_renew(sim, client->id);
}

/* Queue an item to a client by Zipf's law, and set the time of the next one. */
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
	event_add(sim, SIM_ARRIVAL, METER_NO_ENTRY,
		  random_between(&sim->rnd, 0, 2 * sim->zipf_gap));
	if (sim->client[from].attrs.arrivals.kind == SIM_BY_SOURCE)
		queue(sim, &sim->client[from], 1);
}

static void arrival(struct sim *sim, int id)
{
	struct sim_client *client;

	if (id == METER_NO_ENTRY) {
		source(sim);
		return;
	}
	client = &sim->client[id];
	if (client->attrs.arrivals.kind == SIM_LEAVES)
		replace(sim, client);
	queue(sim, client, random_between(&sim->rnd, 1, client->attrs.arrivals.n));
}

static void handle(struct sim *sim, const struct sim_event *event)
{
	switch (event->kind) {
	case SIM_ITEM_ENDS:
		item_ends(sim, &sim->runner[event->id]);
		break;
	case SIM_WAKE:
		run(sim, &sim->runner[event->id], false);
		break;
	case SIM_ARRIVAL:
		arrival(sim, event->id);
		break;
	case SIM_RESUME:
		sim_pause(sim, event->id, false);
		break;
	case SIM_UNPARK:
		unpark(sim, &sim->client[event->id]);
		disturb(sim, event->id);
		kick(sim);
		break;
	case SIM_TICK:
		tick(sim);
		break;
	case SIM_WOKEN:
		sim->attrs.woken(sim, event->id);
		break;
	}
}

/* ---- the interface of sim.h ------------------------------------------------- */

struct sim *sim_new(const struct sim_attrs *attrs)
{
	struct sim *sim = calloc(1, sizeof(*sim));
	bool turns = attrs->policy != SIM_FAIR_TIME;

	sim->attrs = *attrs;
	sim->attrs.slice = attrs->slice ?: DFL_SLICE_NS;
	sim->rnd.state = attrs->seed;
	sim->client = calloc(attrs->max_clients, sizeof(*sim->client));
	sim->meter = meter_new(attrs->max_clients, turns ? METER_HALVES : METER_PROMISE,
			       attrs->max_active + 1);
	sim->given = meter_new(attrs->max_clients, METER_HALVES,
			       (attrs->max_active + 1) * (turns ? 1 : 2));
	sim->judge = judge_new(attrs->max_clients, attrs->max_active + 1);
	attrs->picker->tree_init(&sim->tree);
	if (!turns)
		attrs->picker->set_unit(&sim->tree, 0, sim->attrs.slice << COST_NS_SHIFT);
	sim->judge->low_part = attrs->strict_ranks ? 0 : 1 / 64.;
	if (attrs->strict_ranks)
		sim->tree.starve_limit = 0;
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
	if (attrs->owner != METER_NO_ENTRY) {
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
	event_add(sim, SIM_ARRIVAL, METER_NO_ENTRY, gap);
}

static bool is_varying(const struct sim_client *client)
{
	return !client->is_owner && client->attrs.time.kind != SIM_FIXED;
}

static u64 longest_item(const struct sim_client *client)
{
	return is_varying(client) ? client->attrs.time.hi : client->attrs.time.lo;
}

/* Return the most items that a turn of @client has. */
static s64 items_of_turn(const struct sim_client *client)
{
	u64 items = client->attrs.budget / client->attrs.time.lo + 1;

	if (!client->attrs.serial)
		return 1;
	return items < BURST_ITEMS ? items : BURST_ITEMS;
}

/*
 * Return the most that @client gets at once, ns: an item, or a burst. It is at
 * least a slice, because a newcomer joins a slice behind the others.
 */
static s64 time_of_turn(const struct sim *sim, const struct sim_client *client)
{
	return larger(longest_item(client) + client->attrs.budget, sim->attrs.slice);
}

/* Tell the meters and the judge the largest turns, which the bounds depend on. */
static void set_bound(struct sim *sim)
{
	bool turns = sim->attrs.policy != SIM_FAIR_TIME;

	for (int i = 0; i < sim->nr_clients; i++)
		sim->unknown |= !turns && is_varying(&sim->client[i]);
	if (sim->unknown && sim->attrs.strangers) {
		sim->meter->bound = METER_SURPRISED;
		sim->given->taken *= 2;
	}
	sim->judge->surprised = sim->unknown;
	for (int i = 0; i < sim->nr_clients; i++) {
		const struct sim_client *client = &sim->client[i];
		s64 most = turns ? items_of_turn(client) : time_of_turn(sim, client);
		s64 turn = longest_item(client) + client->attrs.budget;

		if (client->is_owner)
			continue;
		meter_set_largest(sim->meter, i, most);
		meter_set_largest(sim->given, i, most);
		judge_set_largest(sim->judge, i, turns ? most : turn, most);
	}
}

/* Begin a backlog that never ends. */
static void stand(struct sim *sim, struct sim_client *client)
{
	update(sim, client);
	show(sim, client);
	kick(sim);
}

static void begin(struct sim *sim)
{
	sim->begun = true;
	set_bound(sim);
	for (int i = 0; i < sim->nr_clients; i++) {
		struct sim_client *client = &sim->client[i];

		if (client->is_owner)
			continue;
		if (client->attrs.arrivals.kind == SIM_BACKLOG && client->attrs.serial)
			queue(sim, client, 1);
		else if (client->attrs.arrivals.kind == SIM_BACKLOG)
			stand(sim, client);
		else if (client->attrs.arrivals.kind == SIM_CLOSED)
			queue(sim, client, client->attrs.arrivals.n);
		else if (client->attrs.arrivals.kind == SIM_BUNCHES ||
			 client->attrs.arrivals.kind == SIM_LEAVES)
			bunch_is_done(sim, client);
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
		note_unused(sim);
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
	meter_free(sim->meter);
	meter_free(sim->given);
	judge_free(sim->judge);
	free(sim->zipf);
	free(sim->heap);
	free(sim->client);
	free(sim);
}
