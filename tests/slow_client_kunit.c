// SPDX-License-Identifier: GPL-2.0
/*
 * One slow client: while one of its items sleeps, spins or has its CPU stolen,
 * the others go on with what is left (promise 7). The item was as short as
 * theirs until then.
 *
 * Phases with the slow item alternate with phases without it, in one pool that
 * is busy all the time. A slow item that sleeps takes nothing from the others.
 * One that computes keeps its place among max_active, and a CPU. So a phase
 * without it takes as much from the others: one place, and a CPU by a work of
 * an unbound workqueue. The others must keep most of what they get there. In
 * both kinds a phase begins when they are at work. The engine may take some
 * ticks to see that an item is slow.
 *
 * A machine that does something else slows down single phases. So medians are
 * compared, and phases are added until the others keep their rate, up to PAIRS
 * of each kind. On an idle machine two or three do. A pool that is slower while
 * the item is slow is so in most phases, and no number of phases helps it.
 */
#include <linux/cpumask.h>
#include <linux/preempt.h>
#include <linux/sort.h>

#include "lib/client.h"

#define NR_OTHERS	4U	/* clients beside the slow one */
#define NR_EACH		4U	/* items of each */
#define NR_QUICK	32U	/* short turns of the slow client before its slow item */
#define PAIRS		(MOCK_PLANTED ? 64U : 256U)
/*
 * Per cent. Beside an item that has a CPU, the rate of short items depends on
 * where the scheduler puts their runners, for all phases of a boot: it differs
 * by up to 20 %, in either direction.
 */
#define KEPT(how)	((how) == SLEEPS ? 90U : 75U)

/*
 * The others are at work when they had so many turns. If they have fewer in
 * SETTLE, they are watched all the same.
 */
#define AT_WORK		500UL
#define SETTLE		(10 + msecs_to_jiffies(100))
#define WATCH		(3 + msecs_to_jiffies(15))

/* What the slow item does. */
enum slowness { SLEEPS, SPINS, STOLEN };

/* What kind of item it is. */
enum kind {
	PLAIN, SERIAL, LIMITED, SEQUENCED, OF_FLOW, DELAYED, GRACED, OF_USER, OWNED, HIGH, TASK,
	NR_KINDS,
};

static const char *const kind_names[] = {
	"plain", "serializer", "limiter", "sequencer", "flow", "delayed", "rcu", "context",
	"owned", "high", "task",
};

struct slow_case {
	const char *name;
	enum slowness how;
	enum fairwq_policy policy;
	unsigned int max_active;
};

static const struct slow_case slow_cases[] = {
	{ "sleeps, turns, 2", SLEEPS, FAIRWQ_ROUND_ROBIN, 2 },
	{ "sleeps, turns, 4", SLEEPS, FAIRWQ_ROUND_ROBIN, 4 },
	{ "sleeps, turns, 16", SLEEPS, FAIRWQ_ROUND_ROBIN, 16 },
	{ "sleeps, time, 2", SLEEPS, FAIRWQ_FAIR_TIME, 2 },
	{ "sleeps, time, 4", SLEEPS, FAIRWQ_FAIR_TIME, 4 },
	{ "sleeps, time, 16", SLEEPS, FAIRWQ_FAIR_TIME, 16 },
	{ "sleeps, cost, 2", SLEEPS, FAIRWQ_FAIR_COST, 2 },
	{ "sleeps, cost, 4", SLEEPS, FAIRWQ_FAIR_COST, 4 },
	{ "sleeps, cost, 16", SLEEPS, FAIRWQ_FAIR_COST, 16 },
	{ "spins, turns, 2", SPINS, FAIRWQ_ROUND_ROBIN, 2 },
	{ "spins, time, 4", SPINS, FAIRWQ_FAIR_TIME, 4 },
	{ "spins, cost, 16", SPINS, FAIRWQ_FAIR_COST, 16 },
	{ "stolen, time, 2", STOLEN, FAIRWQ_FAIR_TIME, 2 },
	{ "stolen, turns, 4", STOLEN, FAIRWQ_ROUND_ROBIN, 4 },
	{ "stolen, cost, 16", STOLEN, FAIRWQ_FAIR_COST, 16 },
};

static void slow_case_desc(const struct slow_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(slow, slow_cases, slow_case_desc);

/* What an item of the others takes. */
static const unsigned int us[] = { 0, 2, 50 };

/* The slow client, its one item, and the clients beside it. Static: an item may be stuck. */
static struct slow {
	union {
		struct fairwq_work work;
		struct fairwq_delayed_work dwork;
		struct fairwq_rcu_work rwork;
		struct fairwq_sequenced_work swork;
	};
	enum kind kind;
	enum slowness how;
	bool present;			/* the item is slow in this phase */
	bool ended;			/* the item has had its last turn in this phase */
	unsigned int quick;		/* short turns that are left */
	unsigned int max_active;
	int cpu;			/* where the slow item is */
	bool over;			/* the phase has ended */
	struct completion entered, go, done;
	struct fairwq_batch *batch, *owner;
	struct fairwq_serializer serializer;
	struct fairwq_serializer limiter;
	struct fairwq_sequencer sequencer;
	struct fairwq_flows *flows;
	struct fairwq_context *context;
	struct fairwq_pool *pool;
	struct busy *other[NR_OTHERS];
	struct workqueue_struct *wq;	/* of @hog */
	struct work_struct hog;		/* spins outside the pool */
} slow;

/* ---- the slow item -------------------------------------------------------- */

static int slow_queue(void)
{
	switch (slow.kind) {
	case SERIAL:
		return fairwq_serializer_queue(&slow.serializer, slow.batch, &slow.work);
	case LIMITED:
		return fairwq_serializer_queue(&slow.limiter, slow.batch, &slow.work);
	case SEQUENCED:
		return fairwq_sequencer_queue(&slow.sequencer, NULL, slow.batch, &slow.swork);
	case OF_FLOW:
		return fairwq_flows_queue(slow.flows, 1, &slow.work);
	case DELAYED:
		return fairwq_queue_delayed(slow.batch, &slow.dwork, slow.quick ? 0 : 1);
	case GRACED:
		return slow.quick ? fairwq_queue(slow.batch, &slow.work) :
				    fairwq_queue_rcu(slow.batch, &slow.rwork);
	default:
		return fairwq_queue(slow.batch, &slow.work);
	}
}

/* Be slow until the phase is over. A phase that never ends must end the case. */
static void slow_pass_time(void)
{
	unsigned long end = jiffies + MOCK_HOLD;

	if (slow.how == SLEEPS) {
		complete(&slow.entered);
		wait_for_completion_timeout(&slow.go, MOCK_HOLD);
		return;
	}
	if (slow.how == STOLEN)
		migrate_disable();
	slow.cpu = raw_smp_processor_id();
	complete(&slow.entered);
	while (!READ_ONCE(slow.over) && time_before(jiffies, end)) {
		cpu_relax();
		cond_resched();
	}
	if (slow.how == STOLEN)
		migrate_enable();
}

static void slow_run(void)
{
	if (slow.quick) {
		slow.quick--;
	} else if (slow.present) {
		slow_pass_time();
	} else {
		slow.cpu = raw_smp_processor_id();
		complete(&slow.entered);
	}
}

static void slow_task_fn(struct fairwq_task *self)
{
	slow_run();
}

static void slow_call(void *arg)
{
	slow_run();
}

static void slow_fn(struct fairwq_work *work)
{
	bool last = !slow.quick;
	struct fairwq_task self, task;

	if (slow.kind == TASK) {
		fairwq_task_here(&self);
		fairwq_task_init(&task, slow_task_fn);
		fairwq_fork(&self, &task);
		fairwq_join(&self, &task);
	} else if (slow.kind == OF_USER) {
		fairwq_context_call(slow.context, slow_call, NULL);
	} else {
		slow_run();
	}
	if (last) {
		WRITE_ONCE(slow.ended, true);
		complete(&slow.done);
	} else if (slow.kind != SEQUENCED) {
		mock_may_refuse(slow_queue());
	}
}

/* Queue the work of a sequencer again: it is in there until it is completed. */
static void slow_complete(struct fairwq_work *work)
{
	if (!READ_ONCE(slow.ended))
		mock_may_refuse(slow_queue());
}

static void slow_work_init(void)
{
	if (slow.kind == DELAYED)
		fairwq_delayed_work_init(&slow.dwork, slow_fn);
	else if (slow.kind == GRACED)
		fairwq_rcu_work_init(&slow.rwork, slow_fn);
	else if (slow.kind == SEQUENCED)
		fairwq_sequenced_work_init(&slow.swork, slow_fn, slow_complete);
	else
		fairwq_work_init(&slow.work, slow_fn);
}

/* ---- what takes a CPU from outside ---------------------------------------- */

/* Take a CPU from the whole pool until the phase is over. */
static void hog_fn(struct work_struct *work)
{
	unsigned long end = jiffies + MOCK_HOLD;

	while (!READ_ONCE(slow.over) && time_before(jiffies, end)) {
		cpu_relax();
		cond_resched();
	}
}

static unsigned long turns_of_others(void)
{
	unsigned long turns = 0;
	unsigned int i;

	for (i = 0; i < NR_OTHERS; i++)
		turns += mock_busy_turns(slow.other[i]);
	return turns;
}

/* Pass a moment, without a sleep in a thread that is to keep its CPU. */
static void pass_time(bool sleeps)
{
	unsigned int i;

	if (sleeps)
		usleep_range(100, 200);
	for (i = 0; !sleeps && i < 100; i++)
		udelay(1);
}

/* Return the rate of the others, in turns a second, from when they are at work. */
static unsigned long watch(bool sleeps)
{
	unsigned long end = jiffies + SETTLE, turns = turns_of_others();
	u64 begin;

	while (turns_of_others() - turns < AT_WORK && time_before(jiffies, end))
		pass_time(sleeps);
	begin = ktime_get_ns();
	turns = turns_of_others();
	end = jiffies + WATCH;
	while (time_before(jiffies, end))
		pass_time(sleeps);
	turns = turns_of_others() - turns;
	return div64_u64((u64)turns * NSEC_PER_SEC, ktime_get_ns() - begin);
}

static void others_pause(bool pause)
{
	unsigned int i;

	for (i = 0; i < NR_OTHERS; i++) {
		if (pause)
			fairwq_batch_pause(slow.other[i]->batch);
		else
			fairwq_batch_resume(slow.other[i]->batch);
	}
}

/*
 * Steal the CPU of the slow client, and watch the others meanwhile. They are
 * paused until it is stolen, so that none of their items is there. The thief
 * waits for no thread, which might have to wait for its CPU.
 */
static void thief_call(void *arg)
{
	unsigned long *rate = arg;

	set_cpus_allowed_ptr(current, cpumask_of(slow.cpu));
	sched_set_fifo(current);
	others_pause(false);
	*rate = watch(false);
	sched_set_normal(current, 0);
}

/* Return the rate of the others while the CPU of the slow client is stolen. */
static unsigned long watch_beside_thief(struct kunit *test)
{
	unsigned long rate = 0;

	mock_caller_end(test, mock_caller(test, thief_call, &rate));
	return rate;
}

/* ---- phases ---------------------------------------------------------------- */

/* Begin a phase: give the slow client its short turns, and wait for the turn after them. */
static void phase_begin(struct kunit *test, bool present)
{
	const struct fairwq_batch_attrs attrs = {
		.parent = slow.kind == OWNED ? slow.owner : NULL,
		.prio = slow.kind == HIGH ? FAIRWQ_PRIO_HIGH : FAIRWQ_PRIO_NORMAL,
	};

	slow.present = present;
	slow.quick = NR_QUICK;
	slow.ended = false;
	WRITE_ONCE(slow.over, false);
	reinit_completion(&slow.entered);
	reinit_completion(&slow.go);
	reinit_completion(&slow.done);
	slow.batch = mock_own_batch(test, "slow", &attrs);
	if (slow.how == STOLEN)
		others_pause(true);
	KUNIT_ASSERT_EQ(test, 1, slow_queue());
	mock_await(test, &slow.entered);
}

static void phase_end(struct kunit *test)
{
	WRITE_ONCE(slow.over, true);
	complete(&slow.go);
	mock_await(test, &slow.done);
	fairwq_work_flush(&slow.work);
	if (slow.kind == SEQUENCED)
		fairwq_sequencer_flush(&slow.sequencer);	/* it was completed, too */
	fairwq_batch_dispose(slow.batch);
}

/* Return the rate of the others while the slow item is there. */
static unsigned long phase_with(struct kunit *test)
{
	unsigned long rate;

	phase_begin(test, true);
	if (slow.how == SLEEPS)		/* or longer: the engine sees it at a tick */
		schedule_timeout_uninterruptible(6);
	rate = slow.how == STOLEN ? watch_beside_thief(test) : watch(true);
	phase_end(test);
	return rate;
}

/* Return the rate of the others with what a slow item would leave to them. */
static unsigned long phase_without(struct kunit *test)
{
	unsigned long rate;

	phase_begin(test, false);
	if (slow.how == SPINS)
		queue_work(slow.wq, &slow.hog);
	KUNIT_ASSERT_EQ(test, 0, fairwq_pool_set_max_active(slow.pool, slow.max_active -
							    (slow.how != SLEEPS)));
	rate = slow.how == STOLEN ? watch_beside_thief(test) : watch(true);
	KUNIT_ASSERT_EQ(test, 0, fairwq_pool_set_max_active(slow.pool, slow.max_active));
	phase_end(test);
	flush_work(&slow.hog);
	return rate;
}

static int cmp_rates(const void *a, const void *b)
{
	const unsigned long *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Return the median of the @nr rates, and the @upper or lower one of two. */
static unsigned long median(unsigned long *rate, unsigned int nr, bool upper)
{
	sort(rate, nr, sizeof(*rate), cmp_rates, NULL);
	return rate[(nr - !upper) / 2];
}

/* Compare pairs of phases until the others keep their rate, or there were PAIRS of them. */
static void expect_others_keep_their_rate(struct kunit *test, const char *name)
{
	static unsigned long with[PAIRS], without[PAIRS];
	unsigned long least = 0, got = 0;
	unsigned int i;

	for (i = 0; i < PAIRS; i++) {
		without[i] = phase_without(test);
		with[i] = phase_with(test);
		least = median(without, i + 1, true) / 100 * KEPT(slow.how);
		got = median(with, i + 1, false);
		if (i && got >= least)
			break;
	}
	kunit_info(test, "%s: %lu a second with the slow item, at least %lu wanted (%u pairs)\n",
		   name, got, least, min(i + 1, PAIRS));
	KUNIT_EXPECT_GE(test, got, least);
}

static u32 cost_of_one(const struct fairwq_work *work)
{
	return 1;
}

static void slow_begin(struct kunit *test, const struct slow_case *c, enum kind kind)
{
	struct fairwq_pool_attrs attrs = {
		.max_active = c->max_active, .policy = c->policy,
		.cost = c->policy == FAIRWQ_FAIR_COST ? cost_of_one : NULL,
	};
	struct mock *mock = test->priv;

	/*
	 * Where stolen time is charged to the task that had the CPU, a fair one
	 * may then wait for minutes behind the runners.
	 */
	sched_set_fifo_low(current);
	memset(&slow, 0, sizeof(slow));
	mock->pool = fairwq_pool_create(&attrs, "slow");
	KUNIT_ASSERT_FALSE(test, IS_ERR(mock->pool));
	slow.pool = mock->pool;
	slow.kind = kind;
	slow.how = c->how;
	slow.max_active = c->max_active;
	init_completion(&slow.entered);
	init_completion(&slow.go);
	init_completion(&slow.done);
	fairwq_serializer_init(&slow.serializer);
	fairwq_limiter_init(&slow.limiter, 1);
	fairwq_sequencer_init(&slow.sequencer);
	INIT_WORK(&slow.hog, hog_fn);
	slow.wq = alloc_workqueue("hog", WQ_UNBOUND, 0);
	KUNIT_ASSERT_NOT_NULL(test, slow.wq);
	slow_work_init();
}

/* Make the clients beside the slow one, with items of @us, and let them begin. */
static void others_begin(struct kunit *test, unsigned int us)
{
	unsigned int i;

	for (i = 0; i < NR_OTHERS; i++) {
		slow.other[i] = mock_busy(test, mock_own_batch(test, "other", NULL), NR_EACH,
					  us * NSEC_PER_USEC);
		mock_busy_go(test, slow.other[i]);
	}
}

static void others_end(void)
{
	unsigned int i;

	for (i = 0; i < NR_OTHERS; i++)
		WRITE_ONCE(slow.other[i]->stop, true);
	for (i = 0; i < NR_OTHERS; i++) {
		fairwq_batch_flush(slow.other[i]->batch);
		fairwq_batch_dispose(slow.other[i]->batch);
		slow.other[i] = NULL;
	}
}

/* Destroy the pool of a case that has passed. It is judged by clocks of this suite alone. */
static void slow_end(struct kunit *test)
{
	struct mock *mock = test->priv;

	fairwq_flows_destroy(slow.flows);
	fairwq_batch_dispose(slow.owner);
	fairwq_pool_destroy(slow.pool);
	mock->pool = NULL;
	destroy_workqueue(slow.wq);
	slow.wq = NULL;
}

/* Items of each length, each policy and each max_active beside a plain slow item. */
static void others_keep_their_rate(struct kunit *test)
{
	const struct slow_case *c = test->param_value;
	char name[40];
	unsigned int i;

	if (c->how != SLEEPS && num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
	/* What spins takes that thread from the others, too, and not only a CPU. */
	if (c->how != SLEEPS && mock_is_emulated())
		kunit_skip(test, "one thread of the host serves all CPUs");
	slow_begin(test, c, PLAIN);
	/*
	 * On a kernel that watches, the shortest items take about as long as
	 * makes the difference between quick ones and others. So it is chance
	 * how many runners work.
	 */
	for (i = MOCK_WATCHED; i < ARRAY_SIZE(us); i++) {
		snprintf(name, sizeof(name), "%s, %u us", c->name, us[i]);
		others_begin(test, us[i]);
		expect_others_keep_their_rate(test, name);
		others_end();
	}
	slow_end(test);
}

/* ---- items of other kinds ---------------------------------------------------- */

/* Each kind of item may be slow. */
static void any_kind_of_item_may_be_slow(struct kunit *test)
{
	const struct slow_case c = {
		.how = SLEEPS, .policy = FAIRWQ_ROUND_ROBIN, .max_active = 4,
	};
	enum kind kind = (const char *const *)test->param_value - kind_names;

	slow_begin(test, &c, kind);
	slow.owner = mock_own_batch(test, "owner", NULL);
	slow.flows = fairwq_flows_create(slow.pool, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(slow.flows));
	slow.context = fairwq_context_capture(GFP_KERNEL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(slow.context));
	others_begin(test, MOCK_WATCHED ? us[1] : us[0]);
	expect_others_keep_their_rate(test, kind_names[kind]);
	others_end();
	fairwq_context_put(slow.context);
	fairwq_sequencer_flush(&slow.sequencer);
	slow_end(test);
}

static void kind_desc(const char *const *kind, char *desc)
{
	strscpy(desc, *kind, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(kind, kind_names, kind_desc);

/* If a case has failed, the others must stop before their pool can go. */
static void slow_exit(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < NR_OTHERS; i++) {
		if (slow.other[i])
			WRITE_ONCE(slow.other[i]->stop, true);
		slow.other[i] = NULL;
	}
	if (slow.wq)
		destroy_workqueue(slow.wq);
	slow.wq = NULL;
	mock_exit(test);
}

static struct kunit_case slow_client_cases[] = {
	KUNIT_CASE_PARAM(others_keep_their_rate, slow_gen_params),
	KUNIT_CASE_PARAM(any_kind_of_item_may_be_slow, kind_gen_params),
	{}
};

static struct kunit_suite slow_client_suite = {
	.name = "fairwq_slow_client",
	.init = mock_init,
	.exit = slow_exit,
	.test_cases = slow_client_cases,
};

kunit_test_suite(slow_client_suite);

MODULE_DESCRIPTION("KUnit: one slow client beside others");
MODULE_LICENSE("GPL");
