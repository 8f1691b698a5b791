// SPDX-License-Identifier: GPL-2.0
/*
 * Races of works: cancel, disable and flush against queue calls in progress.
 *
 * The first cases force an interleaving by a hook in the queue call.
 * The last ones let threads race by chance, and count what became of each call.
 */
#include <linux/prandom.h>
#include <linux/smp.h>

#include "lib/hook.h"

/* ---- on top of a queue call ------------------------------------------- */

/* A call in the middle of a queue call for @work, and what it saw. */
static struct {
	struct fairwq_batch *batch;
	struct fairwq_work *work;
	enum fairwq_test_point point;
	void (*then)(void);		/* called at @point */
	bool canceled, canceled_again;
} top;

/* Call top.then once, at top.point. It may make a queue call, and set another point. */
static void top_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	void (*then)(void) = top.then;

	if (point != top.point || batch != top.batch || !then)
		return;
	top.then = NULL;
	then();
}

static void top_set(struct fairwq_batch *batch, struct fairwq_work *work,
		    enum fairwq_test_point point, void (*then)(void))
{
	memset(&top, 0, sizeof(top));
	top.batch = batch;
	top.work = work;
	top.point = point;
	top.then = then;
	fairwq_test_set_hook(top_hook);
}

static void cancel_twice(void)
{
	top.canceled = fairwq_work_cancel(top.work);
	top.canceled_again = fairwq_work_cancel(top.work);
}

/* A cancel finds a work that is pushed, but for which no runner was kicked yet. */
static void cancel_behind_the_push_finds_the_work(struct kunit *test)
{
	struct mock_item *item = mock_item(test, 'x');
	struct fairwq_batch *a = mock_begin(test, 1);

	top_set(a, &item->work, FAIRWQ_POINT_QUEUE_PUSHED, cancel_twice);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &item->work));
	KUNIT_EXPECT_TRUE(test, top.canceled);
	KUNIT_EXPECT_FALSE(test, top.canceled_again);
	KUNIT_EXPECT_EQ(test, 0L, atomic_long_read(&item->work.data));
	mock_queue_item(test, a, 'b');
	mock_expect(test, "b");
}

static struct {
	struct fairwq_batch *batch;
	struct fairwq_work *work;
	bool claimed;
	bool timed_out;
	int ret;
} late;

/* Hold a queue call up that has claimed the work, until the work is disabled. */
static void late_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (batch != late.batch || point != FAIRWQ_POINT_QUEUE_CLAIMED || late.claimed)
		return;
	step_done(&late.claimed);
	late.timed_out |= !spin_within(READ_ONCE(late.work->disabled));
}

static bool queue_late(struct fairwq_work *work)
{
	late.ret = fairwq_queue(late.batch, work);
	return true;
}

/* Start a queue call of @work on another CPU, and wait until the call has claimed the work. */
static struct call *late_begin(struct kunit *test, struct fairwq_work *work)
{
	struct call *call;

	need_two_cpus(test);
	memset(&late, 0, sizeof(late));
	late.batch = mock_begin(test, 2);
	late.work = work;
	fairwq_test_set_hook(late_hook);
	/* On a CPU of its own: interrupts are off there. */
	call = mock_call_start_apart(test, queue_late, work);
	mock_until(test, READ_ONCE(late.claimed));
	return call;
}

/* If a queue call is refused because of a disable beside it, the disable returns false. */
static void disable_beside_a_queue_call(struct kunit *test)
{
	struct mock_item *item = mock_item(test, 'x');
	struct call *call = late_begin(test, &item->work);
	struct mock *mock = test->priv;

	/* The work was never queued, so there was nothing to cancel. */
	KUNIT_EXPECT_FALSE(test, fairwq_work_disable(&item->work));
	mock_call_end(test, call);
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_FALSE(test, late.timed_out);
	KUNIT_EXPECT_EQ(test, -ECANCELED, late.ret);
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&item->work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_enable(&item->work));
	mock_queue_item(test, late.batch, 'a');
	fairwq_batch_flush(late.batch);
	KUNIT_EXPECT_EQ(test, 1U, mock->log.nr);
}

/* A queue call that gives up a disabled work, and what another CPU does meanwhile. */
static struct {
	bool gives_up, queued;
	bool timed_out;
} giving;

static void giving_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point != FAIRWQ_POINT_UNCLAIM || giving.gives_up)
		return;
	step_done(&giving.gives_up);
	giving.timed_out = !spin_until(&giving.queued);
}

/*
 * Of two queue calls one queues the work, also if it is enabled while the first
 * one is about to give it up.
 */
static void enable_beside_a_refused_queue_call(struct kunit *test)
{
	struct mock_item *item = mock_item(test, 'x');
	struct fairwq_batch *a = mock_begin(test, 2), *b = mock_batch(test, "b");
	struct call *call;
	int ret;

	need_two_cpus(test);
	memset(&giving, 0, sizeof(giving));
	memset(&late, 0, sizeof(late));
	late.batch = a;
	fairwq_work_disable(&item->work);
	fairwq_test_set_hook(giving_hook);
	call = mock_call_start_apart(test, queue_late, &item->work);
	mock_until(test, READ_ONCE(giving.gives_up));
	KUNIT_EXPECT_TRUE(test, fairwq_work_enable(&item->work));
	ret = fairwq_queue(b, &item->work);
	step_done(&giving.queued);
	mock_call_end(test, call);
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_FALSE(test, giving.timed_out);
	KUNIT_EXPECT_EQ(test, 1, ret + late.ret);
	mock_expect(test, "x");
}

/* A sync cancel waits until a queue call that has claimed the work has given it up. */
static void cancel_sync_waits_for_the_push(struct kunit *test)
{
	struct mock_item *item = mock_item(test, 'x');
	struct call *call = late_begin(test, &item->work);
	struct mock *mock = test->priv;

	/* The queue call sees that the sync cancel has disabled the work. */
	KUNIT_EXPECT_FALSE(test, fairwq_work_cancel_sync(&item->work));
	KUNIT_EXPECT_EQ(test, 0L, atomic_long_read(&item->work.data));
	fairwq_test_set_hook(NULL);
	mock_call_end(test, call);
	KUNIT_EXPECT_EQ(test, -ECANCELED, late.ret);
	KUNIT_EXPECT_EQ(test, 0U, mock->log.nr);
}

/* ---- a hard interrupt in the middle of a step ------------------------- */

#define HOUR		(3600UL * HZ)	/* longer than any case takes */
#define STEP_LOOKS	20000	/* an interrupt that looks more often is stuck */

enum step_act { STEP_CANCEL, STEP_DISABLE, STEP_MOD, STEP_NR_ACTS };

struct stepped {
	union {
		struct fairwq_delayed_work dwork;
		struct fairwq_rcu_work rwork;
	};
	atomic_t runs;
};

/* An interrupt that makes the call @act for a work, at a point of another call. */
static struct {
	struct irq_work irq_work;
	call_single_data_t csd;
	enum fairwq_test_point point;
	struct fairwq_batch *at;	/* the batch that @point must be called with */
	struct fairwq_batch *batch;
	struct fairwq_serializer serial;
	struct stepped *on;
	enum step_act act;
	unsigned int looks;
	int cpu;			/* that makes the call now, or -1 */
	bool apart;			/* it interrupts another CPU, while the call is there */
	bool begun, sent, in_hardirq, done, stuck;
	int ret;
} step;

static void stepped_fn(struct fairwq_work *work)
{
	atomic_inc(&container_of(work, struct stepped, dwork.work)->runs);
}

/* Make the call step.act. Runs in the interrupt. */
static void step_do(void *unused)
{
	struct fairwq_work *work = &step.on->dwork.work;

	WRITE_ONCE(step.cpu, raw_smp_processor_id());
	/* An idle CPU makes the calls of others in its loop, with interrupts off. */
	step.in_hardirq = in_hardirq() || (step.apart && irqs_disabled());
	if (step.act == STEP_CANCEL) {
		step.ret = fairwq_work_cancel(work);
	} else if (step.act == STEP_DISABLE) {
		step.ret = fairwq_work_disable(work);
		fairwq_work_enable(work);
	} else {
		step.ret = fairwq_mod_delayed(step.batch, &step.on->dwork, HOUR);
	}
	WRITE_ONCE(step.cpu, -1);
	step_done(&step.done);
}

static void step_irq_fn(struct irq_work *irq_work)
{
	step_do(NULL);
}

static void step_apart_fn(void *unused)
{
	step_done(&step.begun);
	step_do(NULL);
}

/*
 * Send the interrupt at step.point. It comes there, or as soon as interrupts
 * are on. If it is stuck, clear the word of the work, so that the case can end
 * and fail.
 */
static void step_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point == step.point && batch == step.at && !step.sent) {
		step.sent = true;
		if (step.apart) {
			smp_call_function_single_async(cpumask_any_but(cpu_online_mask,
								       raw_smp_processor_id()),
						       &step.csd);
			if (spin_until(&step.begun))
				udelay(MOCK_LOOK_US);
			return;
		}
		irq_work_queue(&step.irq_work);
		if (!irqs_disabled())
			spin_until(&step.done);
	} else if ((point == FAIRWQ_POINT_LOOK || point == FAIRWQ_POINT_TAKE_OUT) &&
		   READ_ONCE(step.cpu) == raw_smp_processor_id() && ++step.looks > STEP_LOOKS) {
		step.stuck = true;
		atomic_long_set(&step.on->dwork.work.data, 0);
	}
}

static void step_begin(struct kunit *test, struct stepped *on, struct fairwq_batch *batch,
		       enum fairwq_test_point point, enum step_act act)
{
	step.irq_work = IRQ_WORK_INIT_HARD(step_irq_fn);
	INIT_CSD(&step.csd, step_apart_fn, NULL);
	step.point = point;
	step.at = batch;
	step.batch = batch;
	step.on = on;
	step.act = act;
	step.looks = 0;
	step.cpu = -1;
	step.apart = false;
	step.begun = false;
	step.sent = false;
	step.in_hardirq = false;
	step.done = false;
	step.stuck = false;
	fairwq_test_set_hook(step_hook);
}

static void step_end(struct kunit *test)
{
	mock_until(test, READ_ONCE(step.done));
	fairwq_test_set_hook(NULL);
	irq_work_sync(&step.irq_work);
	KUNIT_EXPECT_TRUE(test, step.in_hardirq);
	KUNIT_ASSERT_FALSE_MSG(test, step.stuck, "the interrupt finds no end\n");
}

static int plain_call(struct kunit *test, struct fairwq_batch *a, struct stepped *on)
{
	return fairwq_queue(a, &on->dwork.work);
}

static int delayed_call(struct kunit *test, struct fairwq_batch *a, struct stepped *on)
{
	return fairwq_queue_delayed(a, &on->dwork, HOUR);
}

static int short_delay(struct kunit *test, struct fairwq_batch *a, struct stepped *on)
{
	int ret = fairwq_queue_delayed(a, &on->dwork, 1);

	mock_until(test, READ_ONCE(step.done));
	return ret;
}

static int serial_call(struct kunit *test, struct fairwq_batch *a, struct stepped *on)
{
	return fairwq_serializer_queue(&step.serial, a, &on->dwork.work);
}

static struct mock_gate *serial_gate(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct mock *mock = test->priv;

	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&step.serial, mock->gate_batch,
							 &gate->work));
	mock_await(test, &gate->entered);
	return gate;
}

static int kept_back(struct kunit *test, struct fairwq_batch *a, struct stepped *on)
{
	struct mock_gate *gate = serial_gate(test);
	int ret = serial_call(test, a, on);

	complete_all(&gate->open);
	return ret;
}

static int let_go(struct kunit *test, struct fairwq_batch *a, struct stepped *on)
{
	int ret = kept_back(test, a, on);

	mock_until(test, READ_ONCE(step.done));
	return ret;
}

/* As let_go(), behind an item of the same batch, which is paused until then. */
static int moved(struct kunit *test, struct fairwq_batch *a, struct stepped *on)
{
	struct mock_gate *gate = mock_gate_new(test);
	int ret;

	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&step.serial, a, &gate->work));
	fairwq_batch_resume(a);
	mock_await(test, &gate->entered);
	fairwq_batch_pause(a);
	ret = serial_call(test, a, on);
	complete_all(&gate->open);
	mock_until(test, READ_ONCE(step.done));
	return ret;
}

/* Two steps of @call, and the point between them. */
static const struct {
	const char *name;
	enum fairwq_test_point point;
	int (*call)(struct kunit *test, struct fairwq_batch *a, struct stepped *on);
	bool apart;
} steps[] = {
	{ "claim, look whether it is disabled", FAIRWQ_POINT_QUEUE_CLAIMED, plain_call },
	{ "claim, set the timer", FAIRWQ_POINT_QUEUE_CLAIMED, delayed_call },
	{ "claim, list", FAIRWQ_POINT_QUEUE_CLAIMED, kept_back },
	{ "claim, admit", FAIRWQ_POINT_QUEUE_CLAIMED, serial_call },
	{ "link, activate", FAIRWQ_POINT_QUEUE_PUSHED, plain_call },
	{ "the timer fires, activate", FAIRWQ_POINT_QUEUE_PUSHED, short_delay },
	{ "let go, activate", FAIRWQ_POINT_QUEUE_PUSHED, let_go },
	{ "take, append", FAIRWQ_POINT_MOVING, moved },
	{ "take, append; on another CPU", FAIRWQ_POINT_MOVING, moved, true },
};

static struct stepped *stepped_new(struct kunit *test)
{
	struct stepped *on = kunit_kzalloc(test, sizeof(*on), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, on);
	return on;
}

/*
 * A hard interrupt between any two steps of a queue call can cancel, disable or
 * delay the work, and does not get stuck.
 */
static void interrupt_between_two_steps_ends(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);
	enum step_act act;
	struct stepped *on;
	unsigned int i, at;
	bool left;

	fairwq_serializer_init(&step.serial);
	fairwq_batch_pause(a);
	for (i = 0; i < ARRAY_SIZE(steps) * STEP_NR_ACTS; i++) {
		at = i / STEP_NR_ACTS;
		act = i % STEP_NR_ACTS;
		if (steps[at].apart && num_online_cpus() < 2)
			continue;
		kunit_info(test, "%s: act %u\n", steps[at].name, act);
		left = act == STEP_MOD;
		on = stepped_new(test);
		fairwq_delayed_work_init(&on->dwork, stepped_fn);
		step_begin(test, on, a, steps[at].point, act);
		step.apart = steps[at].apart;
		KUNIT_EXPECT_EQ(test, 1, steps[at].call(test, a, on));
		step_end(test);
		KUNIT_EXPECT_EQ(test, 1, step.ret);
		KUNIT_EXPECT_EQ(test, left, fairwq_work_pending(&on->dwork.work));
		KUNIT_EXPECT_EQ(test, left, fairwq_work_cancel_sync(&on->dwork.work));
		fairwq_serializer_flush(&step.serial);
		KUNIT_EXPECT_EQ(test, 0, atomic_read(&on->runs));
		mock_until(test, !mock_nr_held(a));
	}
	fairwq_serializer_destroy(&step.serial);
}

/*
 * A cancel cannot take out a work that waits for a grace period, nor one that
 * is not yet pushed after it. Once the work is pushed, the cancel returns true.
 */
static void cancel_finds_it_once_it_is_pushed(struct kunit *test)
{
	static const enum fairwq_test_point points[] = {
		FAIRWQ_POINT_QUEUE_CLAIMED, FAIRWQ_POINT_QUEUE_PUSHED,
	};
	struct fairwq_batch *a = mock_begin(test, 2);
	struct stepped *on;
	unsigned int i;
	bool pushed;

	for (i = 0; i < ARRAY_SIZE(points) * STEP_MOD; i++) {
		pushed = points[i / STEP_MOD] == FAIRWQ_POINT_QUEUE_PUSHED;
		on = stepped_new(test);
		fairwq_rcu_work_init(&on->rwork, stepped_fn);
		fairwq_batch_pause(a);
		step_begin(test, on, a, points[i / STEP_MOD], i % STEP_MOD);
		KUNIT_EXPECT_EQ(test, 1, fairwq_queue_rcu(a, &on->rwork));
		step_end(test);
		KUNIT_EXPECT_EQ(test, (int)pushed, step.ret);
		fairwq_batch_resume(a);
		fairwq_rcu_work_flush(&on->rwork);
		KUNIT_EXPECT_EQ(test, pushed ? 0 : 1, atomic_read(&on->runs));
		KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&on->rwork.work));
		mock_until(test, !mock_nr_held(a));
	}
}

/* In the first run, queue @work again, and interrupt when its second turn is parked. */
static void parks_fn(struct fairwq_work *work)
{
	struct stepped *on = container_of(work, struct stepped, dwork.work);

	if (atomic_inc_return(&on->runs) > 1)
		return;
	mock_may_refuse(fairwq_queue(step.batch, work));
	if (spin_within(READ_ONCE(step.batch->nr_parked)))
		mock_call_on_top(step_do, NULL);
}

/*
 * An interrupt on top of a function can cancel, disable or delay its work,
 * which is parked until the function returns.
 */
static void interrupt_while_it_is_parked(struct kunit *test)
{
	struct fairwq_batch *a;
	struct stepped *on;
	enum step_act act;

	need_two_cpus(test);
	a = mock_begin(test, 3);
	for (act = 0; act < STEP_NR_ACTS; act++) {
		on = stepped_new(test);
		fairwq_delayed_work_init(&on->dwork, parks_fn);
		step.batch = a;
		step.on = on;
		step.act = act;
		step.done = false;
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &on->dwork.work));
		mock_until(test, READ_ONCE(step.done));
		KUNIT_EXPECT_TRUE(test, step.in_hardirq);
		KUNIT_EXPECT_EQ(test, 1, step.ret);
		KUNIT_EXPECT_EQ(test, act == STEP_MOD,
				fairwq_work_cancel_sync(&on->dwork.work));
		fairwq_batch_flush(a);
		KUNIT_EXPECT_EQ(test, 1, atomic_read(&on->runs));
		KUNIT_EXPECT_EQ(test, 0U, a->nr_parked);
	}
}

/* ---- all calls against each other ------------------------------------- */

#define RACE_THREADS	3
#define RACE_WORKS	4
#define RACE_BATCHES	3	/* two of one pool, one of another */
/* Enough for all kinds of races. Few with a planted bug, because other cases find that. */
#if defined(FAIRWQ_PLANTED)
#define RACE_ROUNDS	500
#elif MOCK_WATCHED
#define RACE_ROUNDS	3000
#else
#define RACE_ROUNDS	20000
#endif

/* A work, and counts of what became of its queue calls. */
struct race_work {
	struct fairwq_delayed_work dwork;
	atomic_t queued, ran, canceled, dropped;
	atomic_t running;
	struct race *race;
};

struct race {
	struct fairwq_batch *batch[RACE_BATCHES];
	struct race_work work[RACE_WORKS];
	atomic_t twice_at_once, while_disabled, bad_return;
	atomic_t threads;		/* that have not ended */
};

struct racer {
	struct race *race;
	struct task_struct *task;
	struct rnd_state rnd;
};

static struct race_work *to_race_work(struct fairwq_work *work)
{
	return container_of(work, struct race_work, dwork.work);
}

static void race_fn(struct fairwq_work *work)
{
	struct race_work *race_work = to_race_work(work);
	struct race *race = race_work->race;
	int nr = atomic_inc_return(&race_work->ran);

	if (atomic_inc_return(&race_work->running) != 1)
		atomic_inc(&race->twice_at_once);
	/* Some runs queue the work again, and some take longer. */
	if (nr % 16 == 0 && fairwq_queue(race->batch[nr % RACE_BATCHES], work) == 1)
		atomic_inc(&race_work->queued);
	if (nr % 64 == 0)
		usleep_range(10, 50);	/* any time will do */
	atomic_dec(&race_work->running);
}

static void race_dropped(struct fairwq_work *work)
{
	atomic_inc(&to_race_work(work)->dropped);
}

static void race_queue(struct racer *racer, struct race_work *work)
{
	u32 r = prandom_u32_state(&racer->rnd);
	struct fairwq_batch *batch = racer->race->batch[r % RACE_BATCHES];
	int ret;

	if (r & 0x30000)
		ret = fairwq_queue(batch, &work->dwork.work);
	else
		ret = fairwq_queue_delayed(batch, &work->dwork, r >> 18 & 1);
	if (ret == 1)
		atomic_inc(&work->queued);
	else if (ret && ret != -ECANCELED)
		atomic_inc(&racer->race->bad_return);
}

/* Disable @work, and check that it does not run until it is enabled. */
static void race_disable(struct racer *racer, struct race_work *work)
{
	unsigned int i;
	int ran;

	if (fairwq_work_disable_sync(&work->dwork.work))
		atomic_inc(&work->canceled);
	ran = atomic_read(&work->ran);
	for (i = 0; i < 100; i++) {
		if (atomic_read(&work->running) || atomic_read(&work->ran) != ran)
			atomic_inc(&racer->race->while_disabled);
		cpu_relax();
	}
	fairwq_work_enable(&work->dwork.work);
}

static void race_step(struct racer *racer)
{
	struct race *race = racer->race;
	u32 r = prandom_u32_state(&racer->rnd);
	struct race_work *work = &race->work[r % RACE_WORKS];

	switch ((r >> 8) % 16) {
	default:
		race_queue(racer, work);
		break;
	case 0: case 1: case 2:
		if (fairwq_work_cancel(&work->dwork.work))
			atomic_inc(&work->canceled);
		break;
	case 3:
		if (fairwq_work_cancel_sync(&work->dwork.work))
			atomic_inc(&work->canceled);
		break;
	case 4:
		fairwq_work_flush(&work->dwork.work);
		break;
	case 5:
		race_disable(racer, work);
		break;
	case 6:
		fairwq_batch_cancel(race->batch[(r >> 16) % RACE_BATCHES], race_dropped);
		break;
	case 7:
		fairwq_delayed_work_flush(&work->dwork);
		break;
	case 8:
		fairwq_batch_resume(race->batch[(r >> 16) % RACE_BATCHES]);
		break;
	}
}

static int racer_fn(void *data)
{
	struct racer *racer = data;
	unsigned int i;

	for (i = 0; i < RACE_ROUNDS; i++) {
		race_step(racer);
		cond_resched();
	}
	atomic_dec(&racer->race->threads);
	mock_stay();
	return 0;
}

/* Expect one run, cancel or drop for each queue call that returned 1. */
static void race_check(struct kunit *test, struct race *race)
{
	struct race_work *work;
	unsigned int i;

	for (i = 0; i < RACE_WORKS; i++) {
		work = &race->work[i];
		fairwq_delayed_work_flush(&work->dwork);
		KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&work->dwork.work));
		KUNIT_EXPECT_EQ(test, atomic_read(&work->queued),
				atomic_read(&work->ran) + atomic_read(&work->canceled) +
				atomic_read(&work->dropped));
		KUNIT_EXPECT_GT(test, atomic_read(&work->ran), 0);
	}
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&race->twice_at_once));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&race->while_disabled));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&race->bad_return));
	for (i = 0; i < RACE_BATCHES; i++) {
		KUNIT_EXPECT_EQ(test, 0U, race->batch[i]->nr_canceling);
		KUNIT_EXPECT_EQ(test, 0U, race->batch[i]->nr_parked);
		KUNIT_EXPECT_EQ(test, 0U, fairwq_batch_nr_queued(race->batch[i]));
	}
}

static void race_init(struct kunit *test, struct race *race, struct fairwq_pool *other)
{
	/* No limit is reached, but with limits fairwq counts the items. */
	struct fairwq_batch_attrs attrs = { .max_queued = 100, .max_active = 3 };
	struct mock *mock = test->priv;
	unsigned int i;

	for (i = 0; i < RACE_BATCHES; i++) {
		race->batch[i] = fairwq_batch_create(i ? mock->pool : other,
						     i == 1 ? NULL : &attrs, "race");
		KUNIT_ASSERT_FALSE(test, IS_ERR(race->batch[i]));
	}
	for (i = 0; i < RACE_WORKS; i++) {
		fairwq_delayed_work_init(&race->work[i].dwork, race_fn);
		race->work[i].race = race;
	}
	atomic_set(&race->threads, RACE_THREADS);
}

/*
 * While threads race, a queued work runs once, if it is not cancelled (promise
 * 1). It does not run twice at a time (4), nor after a sync disable of it (11).
 */
static void queued_works_run_exactly_once(struct kunit *test)
{
	struct fairwq_pool_attrs attrs = { .max_active = 2 };
	struct race *race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	struct racer racer[RACE_THREADS];
	struct mock *mock = test->priv;
	struct fairwq_pool *other;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, race);
	mock_pool(test, 2);
	mock_open(test);
	other = fairwq_pool_create(&attrs, "other");
	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	race_init(test, race, other);
	for (i = 0; i < RACE_THREADS; i++) {
		racer[i].race = race;
		prandom_seed_state(&racer[i].rnd, 4711 + i);
		racer[i].task = kthread_run(racer_fn, &racer[i], "racer");
		KUNIT_ASSERT_FALSE(test, IS_ERR(racer[i].task));
	}
	mock_until(test, !atomic_read(&race->threads));
	for (i = 0; i < RACE_THREADS; i++)
		kthread_stop(racer[i].task);
	for (i = 0; i < RACE_BATCHES; i++)
		fairwq_batch_flush(race->batch[i]);
	race_check(test, race);
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_waiters(mock->pool));
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_waiters(other));
	for (i = 0; i < RACE_BATCHES; i++)
		fairwq_batch_dispose(race->batch[i]);
	fairwq_pool_destroy(other);
}

/* ---- freed at once ---------------------------------------------------- */

/* A thread that cancels a batch and looks at it, without owning the works in it. */
struct meddler {
	struct fairwq_batch *batch;
	struct task_struct *task;
};

static int meddler_fn(void *data)
{
	struct meddler *meddler = data;

	while (!kthread_should_stop()) {
		fairwq_batch_cancel(meddler->batch, NULL);
		usleep_range(1, 20);	/* any time will do */
	}
	return 0;
}

struct short_lived {
	struct fairwq_delayed_work dwork;
	struct fairwq_batch *batch;
	unsigned int again;
};

static void short_lived_fn(struct fairwq_work *work)
{
	struct short_lived *obj = container_of(work, struct short_lived, dwork.work);

	if (obj->again)
		mock_may_refuse(fairwq_queue_delayed(obj->batch, &obj->dwork, obj->again--));
}

/*
 * Queue a new work, cancel it wherever it is, and free it. KASAN reports if
 * fairwq touches it afterwards. Return: false if the work was not queued.
 */
static bool short_lived_round(struct fairwq_batch *batch, u32 r)
{
	struct short_lived *obj = kzalloc(sizeof(*obj), GFP_KERNEL);
	bool canceled = false;
	unsigned int spins;

	if (!obj)
		return false;
	fairwq_delayed_work_init(&obj->dwork, short_lived_fn);
	obj->batch = batch;
	obj->again = r & 1;
	if (fairwq_queue_delayed(batch, &obj->dwork, r >> 1 & 1) != 1) {
		kfree(obj);
		return false;
	}
	for (spins = r >> 8 & 255; spins; spins--)
		cpu_relax();
	/* It is queued only once, so it never runs if this cancel returns true. */
	if (!(r & 1) && r & 4)
		canceled = fairwq_work_cancel(&obj->dwork.work);
	if (!canceled)
		fairwq_work_cancel_sync(&obj->dwork.work);
	kfree(obj);
	return true;
}

/* A work may be freed after its cancel, also while others cancel its batch. */
static void canceled_work_may_be_freed(struct kunit *test)
{
	struct meddler meddler = { };
	struct mock *mock = test->priv;
	struct rnd_state rnd;
	unsigned int i, done = 0;

	meddler.batch = mock_begin(test, 2);
	mock_open(test);		/* else the item at the gate would look hung */
	meddler.task = kthread_run(meddler_fn, &meddler, "meddler");
	KUNIT_ASSERT_FALSE(test, IS_ERR(meddler.task));
	prandom_seed_state(&rnd, 815);
	for (i = 0; i < RACE_ROUNDS; i++)
		done += short_lived_round(meddler.batch, prandom_u32_state(&rnd));
	kthread_stop(meddler.task);
	KUNIT_EXPECT_EQ(test, (unsigned int)RACE_ROUNDS, done);
	fairwq_batch_flush(meddler.batch);
	KUNIT_EXPECT_EQ(test, 0U, mock_nr_waiters(mock->pool));
}

static struct kunit_case workrace_cases[] = {
	KUNIT_CASE(cancel_behind_the_push_finds_the_work),
	KUNIT_CASE(disable_beside_a_queue_call),
	KUNIT_CASE(enable_beside_a_refused_queue_call),
	KUNIT_CASE(cancel_sync_waits_for_the_push),
	KUNIT_CASE(interrupt_between_two_steps_ends),
	KUNIT_CASE(cancel_finds_it_once_it_is_pushed),
	KUNIT_CASE(interrupt_while_it_is_parked),
	KUNIT_CASE(queued_works_run_exactly_once),
	KUNIT_CASE(canceled_work_may_be_freed),
	{}
};

static struct kunit_suite workrace_suite = {
	.name = "fairwq_work_race",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = workrace_cases,
};

kunit_test_suite(workrace_suite);

MODULE_DESCRIPTION("KUnit: works that are cancelled on their way");
MODULE_LICENSE("GPL");
