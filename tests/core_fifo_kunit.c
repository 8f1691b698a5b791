// SPDX-License-Identifier: GPL-2.0
/*
 * FIFO: a long backlog is put into queue order in steps.
 *
 * Queue calls push without the lock. Runners sort what was pushed, from the newest item
 * on. In these cases the only runner is at the gate during all pushes. When the gate is
 * open, a hook makes a call between two steps of the runner.
 */
#include <linux/vmalloc.h>

#include "lib/fixture.h"

/* Items that are sorted in a step, and most such steps before a turn; see core/fifo.c. */
#define STEP	64U
#define STEPS	16U
#define NR	6000U	/* the first push sorts its item alone; the others take 94 steps */

struct backlog_item {
	struct fairwq_work work;
	unsigned int number;
};

/* The backlog of a case, and what its hook and its items have seen. */
static struct {
	struct kunit *test;
	enum fairwq_policy policy;
	struct fairwq_batch *batch;
	struct backlog_item *item;
	void (*meddle)(void);	/* called between two steps, or NULL */
	unsigned int step;	/* steps so far */
	unsigned int at;	/* the step after which @meddle is called */
	unsigned int largest;	/* most items that were sorted in one step */
	unsigned int had;	/* items that were sorted after the last step */
	unsigned int nr;	/* items that have run */
	unsigned int wrong;	/* of these, out of order */
	unsigned int last;	/* the number of the last */
} backlog;

static void backlog_fn(struct fairwq_work *work)
{
	struct backlog_item *item = container_of(work, struct backlog_item, work);

	if (backlog.nr && item->number <= backlog.last)
		backlog.wrong++;
	backlog.last = item->number;
	WRITE_ONCE(backlog.nr, backlog.nr + 1);
}

static void backlog_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	unsigned int has;

	if (point != FAIRWQ_POINT_SORT_STEP || batch != backlog.batch)
		return;
	/* The caller is the runner, and no other CPU sorts. */
	has = READ_ONCE(batch->nr_fifo);
	if (has > backlog.had)
		backlog.largest = max(backlog.largest, has - backlog.had);
	backlog.had = has;
	if (++backlog.step == backlog.at && backlog.meddle)
		backlog.meddle();
}

static int backlog_init(struct kunit *test)
{
	int err;

	memset(&backlog, 0, sizeof(backlog));
	backlog.test = test;
	backlog.item = vzalloc(NR * sizeof(*backlog.item));
	if (!backlog.item)
		return -ENOMEM;
	err = mock_init(test);
	if (err)
		vfree(backlog.item);
	return err;
}

static void backlog_exit(struct kunit *test)
{
	mock_exit(test);
	vfree(backlog.item);
}

/* Push all items. Let @meddle be called after step @at of the runner. */
static void backlog_push(struct kunit *test, unsigned int at, void (*meddle)(void))
{
	unsigned int i;

	mock_pool_by(test, 1, backlog.policy);
	backlog.batch = mock_own_batch(test, "backlog", NULL);
	backlog.at = at;
	backlog.meddle = meddle;
	fairwq_test_set_hook(backlog_hook);
	for (i = 0; i < NR; i++) {
		fairwq_work_init(&backlog.item[i].work, backlog_fn);
		backlog.item[i].number = i;
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(backlog.batch, &backlog.item[i].work));
	}
}

/* Open the gate, and expect that @nr items run, in queue order. */
static void backlog_expect(struct kunit *test, unsigned int nr)
{
	mock_open(test);
	mock_until(test, READ_ONCE(backlog.nr) == nr);
	fairwq_batch_flush(backlog.batch);
	KUNIT_EXPECT_EQ(test, nr, backlog.nr);
	KUNIT_EXPECT_EQ(test, 0U, backlog.wrong);
}

/* Items run in queue order (promise 5), and no hold of the lock sorts more than a step. */
static void backlog_is_sorted_in_steps(struct kunit *test)
{
	backlog_push(test, 0, NULL);
	backlog_expect(test, NR);
	KUNIT_EXPECT_GE(test, backlog.step, NR / STEP - 2);
	/* At first there are two steps: the runner also sorts one when the FIFO runs dry. */
	KUNIT_EXPECT_LE(test, backlog.largest, 2 * STEP);
	fairwq_batch_dispose(backlog.batch);
}

static struct mock_item *late_item;	/* of another batch */

static void queue_another(void)
{
	struct mock *mock = backlog.test->priv;

	mock_may_refuse(fairwq_queue(mock->gate_batch, &late_item->work));
}

/* Log 'e' (early) if some of the backlog has not run yet, else 'l' (late). */
static void late_fn(struct fairwq_work *work)
{
	struct mock_item *item = container_of(work, struct mock_item, work);

	mock_log_add(item->log, READ_ONCE(backlog.nr) < NR ? 'e' : 'l');
}

/* An item of another batch that is queued between two steps need not wait for the backlog. */
static void others_are_served_between_steps(struct kunit *test)
{
	struct mock *mock = test->priv;

	late_item = mock_item(test, 'x');
	fairwq_work_init(&late_item->work, late_fn);
	backlog_push(test, 3, queue_another);
	backlog_expect(test, NR);
	KUNIT_EXPECT_STREQ(test, "e", &mock->log.text[0]);
	fairwq_batch_dispose(backlog.batch);
}

/* ---- how much is sorted before a turn ---------------------------------- */

#define NR_OTHERS	40U

static struct {
	struct fairwq_work work[NR_OTHERS];
	unsigned int us;		/* how long each takes */
	unsigned int nr;		/* how many of them have run */
	unsigned int begin, end;	/* as many after steps beside.from and beside.to */
	u64 left;			/* when the last step was over */
	u64 gaps, steps;		/* ns, from step beside.from on to beside.to */
	u64 first;			/* when the first step was over */
	u64 ran;			/* ns in items since then */
	u64 elsewhere;			/* ns elsewhere, up to step beside.to */
} others;

/* Spin for @us, or for as long as the host stops this CPU. Return: how long it took, ns. */
static u64 spin_us(unsigned int us)
{
	u64 begin = ktime_get_ns(), took;

	do {				/* udelay() may take much longer */
		took = ktime_get_ns() - begin;
		cpu_relax();
	} while (took < us * NSEC_PER_USEC);
	return took;
}

static void others_fn(struct fairwq_work *work)
{
	others.ran += spin_us(others.us);
	others.nr++;
}

static void queue_others(struct kunit *test, struct fairwq_batch *batch)
{
	unsigned int i;

	for (i = 0; i < NR_OTHERS; i++) {
		fairwq_work_init(&others.work[i], others_fn);
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &others.work[i]));
	}
}

/*
 * Items of another batch, some of which run while a backlog is sorted. The first 1,024
 * items of that are sorted at once, by 16 steps.
 */
struct beside {
	const char *name;
	unsigned int us;		/* how long an item of the other batch takes */
	unsigned int step_us;		/* how long a step takes at least */
	enum fairwq_prio prio;		/* of that batch */
	enum fairwq_policy policy;
	unsigned int from, to;		/* steps between which items are counted */
	unsigned int least, most;	/* of them; more if the steps take long */
	bool shares;			/* the other batch has at least as long as the steps */
};

static const struct beside beside_cases[] = {
	{ "items that are over at once", .step_us = 200,
	  .from = 17, .to = 27, .least = 5, .most = NR_OTHERS },
	{ "items shorter than a step", .us = 40, .step_us = 200,
	  .from = 17, .to = 19, .most = NR_OTHERS, .shares = true },
	{ "long items", .us = 10000, .from = 48, .to = 88, .most = 10 },
	{ "a lower priority", .prio = FAIRWQ_PRIO_LOW, .from = 48, .to = 88, .most = 4 },
};

static const struct beside *beside;	/* the present case */

static void beside_step(void)
{
	u64 begin = ktime_get_ns();

	others.first = others.first ?: begin;
	/* Also the gap before: after an item that the host stops there, the steps are ahead. */
	if (backlog.step >= beside->from && backlog.step <= beside->to)
		others.gaps += begin - others.left;
	spin_us(beside->step_us);
	others.left = ktime_get_ns();
	if (backlog.step >= beside->from && backlog.step < beside->to)
		others.steps += others.left - begin;
	if (backlog.step == beside->from)
		others.begin = others.nr;
	if (backlog.step == beside->to) {
		others.end = others.nr;
		others.elsewhere = others.left - others.first - others.ran;
	}
	backlog.at++;			/* at the next step, too */
}

static void beside_desc(const struct beside *param, char *desc)
{
	strscpy(desc, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(beside, beside_cases, beside_desc);

/* A long backlog is sorted beside what is ready. It holds up short items little. */
static void long_backlog_is_sorted_beside(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { };
	struct fairwq_batch *batch;
	u64 more;

	beside = test->param_value;
	attrs.prio = beside->prio;
	memset(&others, 0, sizeof(others));
	others.us = beside->us;
	backlog.policy = beside->policy;
	backlog_push(test, 1, beside_step);
	batch = mock_batch_with(test, "others", &attrs);
	queue_others(test, batch);
	backlog_expect(test, NR);
	fairwq_batch_flush(batch);
	fairwq_batch_dispose(backlog.batch);
	KUNIT_ASSERT_GE(test, backlog.step, beside->to);
	/* If the host stopped one, it was not over at once, and steps followed it by time. */
	if (4 * others.gaps < others.steps)
		KUNIT_EXPECT_GE(test, others.end - others.begin, beside->least);
	/* The other batch may have twice as long as the steps, and as the host stopped these. */
	more = beside->us ? div_u64(2 * others.elsewhere, beside->us * NSEC_PER_USEC) : 0;
	KUNIT_EXPECT_LE(test, (u64)others.end - others.begin, beside->most + more);
	/* By the clock, as a step may be long. It may be longer than all items together. */
	if (beside->shares && others.end < NR_OTHERS)
		KUNIT_EXPECT_GE(test, others.gaps, others.steps);
}

#define NR_SHORT	640U

static struct {
	struct fairwq_batch *batch;
	struct fairwq_work work[NR_SHORT];
	unsigned int nr;		/* how many of them have run */
	unsigned int at[2];		/* others.nr when the first and the second ran */
} shorter;

static void shorter_fn(struct fairwq_work *work)
{
	if (shorter.nr < ARRAY_SIZE(shorter.at))
		shorter.at[shorter.nr] = others.nr;
	shorter.nr++;
}

static void queue_shorter(void)
{
	unsigned int i;

	for (i = 0; i < NR_SHORT; i++) {
		fairwq_work_init(&shorter.work[i], shorter_fn);
		KUNIT_EXPECT_EQ(backlog.test, 1, fairwq_queue(shorter.batch, &shorter.work[i]));
	}
}

/*
 * A short backlog does not wait for a long one. The first item of it is sorted alone, and
 * the others before the next turn, which may be one of the other batch.
 */
static void short_backlog_goes_before_a_long_one(struct kunit *test)
{
	struct fairwq_batch *batch;

	others.nr = 0;
	others.us = 0;
	shorter.nr = 0;
	backlog_push(test, STEPS + 1, queue_shorter);
	shorter.batch = mock_batch(test, "shorter");
	batch = mock_batch(test, "others");
	queue_others(test, batch);
	backlog_expect(test, NR);
	fairwq_batch_flush(batch);
	fairwq_batch_flush(shorter.batch);
	KUNIT_EXPECT_EQ(test, NR_SHORT, shorter.nr);
	KUNIT_EXPECT_LE(test, shorter.at[1] - shorter.at[0], 2U);
	fairwq_batch_dispose(backlog.batch);
}

static struct backlog_item more[3];

static void push_more(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(more); i++) {
		fairwq_work_init(&more[i].work, backlog_fn);
		more[i].number = NR + i;
		KUNIT_EXPECT_EQ(backlog.test, 1, fairwq_queue(backlog.batch, &more[i].work));
	}
}

/* Items that are pushed between two steps run after the backlog. */
static void pushed_meanwhile_comes_last(struct kunit *test)
{
	backlog_push(test, 3, push_more);
	backlog_expect(test, NR + ARRAY_SIZE(more));
	fairwq_batch_dispose(backlog.batch);
}

/* Cancel works that are sorted, which are the newest, and works that are not. */
static void cancel_some(void)
{
	static const unsigned int which[] = { NR - 1, NR - 70, NR / 2, 2, 1 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(which); i++)
		KUNIT_EXPECT_TRUE(backlog.test,
				  fairwq_work_cancel(&backlog.item[which[i]].work));
}

/* Between two steps any work can be cancelled, and the others still run in order. */
static void cancel_between_steps_keeps_the_order(struct kunit *test)
{
	backlog_push(test, 3, cancel_some);
	backlog_expect(test, NR - 5);
	fairwq_batch_dispose(backlog.batch);
}

static unsigned long cancelled;		/* what cancel_all() has dropped */

static void cancel_all(void)
{
	cancelled = fairwq_batch_cancel(backlog.batch, NULL);
}

/*
 * A cancel of the batch between two steps drops all items. The first one was sorted alone,
 * and may have run.
 */
static void batch_cancel_between_steps_drops_all(struct kunit *test)
{
	cancelled = 0;
	backlog_push(test, 3, cancel_all);
	mock_open(test);
	mock_until(test, READ_ONCE(cancelled));
	fairwq_batch_flush(backlog.batch);
	KUNIT_EXPECT_EQ(test, NR, cancelled + backlog.nr);
	KUNIT_EXPECT_LE(test, backlog.nr, 1U);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(backlog.batch, &backlog.item[0].work));
	mock_until(test, !fairwq_work_pending(&backlog.item[0].work));
	fairwq_batch_dispose(backlog.batch);
}

static void dispose_it(void)
{
	fairwq_batch_dispose(backlog.batch);
}

/* If the batch is disposed between two steps, its items run, then it leaves (promise 8). */
static void disposed_batch_runs_its_backlog_and_leaves(struct kunit *test)
{
	struct mock *mock = test->priv;

	backlog_push(test, 3, dispose_it);
	mock_open(test);
	mock_until(test, READ_ONCE(backlog.nr) == NR);
	/* The gate's batch is left, and the three batches of the pool itself. */
	mock_until(test, mock_nr_batches(mock->pool) == 4);
	KUNIT_EXPECT_EQ(test, 0U, backlog.wrong);
}

static void cancel_and_dispose(void)
{
	cancel_all();
	dispose_it();
}

/* If the batch is cancelled and disposed between two steps, it leaves its pool. */
static void dropped_batch_leaves_between_steps(struct kunit *test)
{
	struct mock *mock = test->priv;

	cancelled = 0;
	backlog_push(test, 3, cancel_and_dispose);
	mock_open(test);
	mock_until(test, mock_nr_batches(mock->pool) == 4);
	KUNIT_EXPECT_EQ(test, NR, cancelled + backlog.nr);
}

static void pause_it(void)
{
	fairwq_batch_pause(backlog.batch);
}

/* A pause between two steps does not stop the sort. The items run after the resume. */
static void pause_between_steps_does_not_stop_the_sort(struct kunit *test)
{
	backlog_push(test, 3, pause_it);
	mock_open(test);
	mock_until(test, READ_ONCE(backlog.batch->nr_fifo) >= NR - 1);
	KUNIT_EXPECT_LE(test, backlog.nr, 1U);
	fairwq_batch_resume(backlog.batch);
	backlog_expect(test, NR);
	fairwq_batch_dispose(backlog.batch);
}

/* A reader of debugfs sorts the whole backlog, too, and so does a flush before it waits. */
static void reader_sorts_a_backlog(struct kunit *test)
{
	backlog_push(test, 0, NULL);
	mock_look(backlog.batch);
	KUNIT_EXPECT_EQ(test, NR, READ_ONCE(backlog.batch->nr_fifo));
	KUNIT_EXPECT_EQ(test, 0U, backlog.step);
	backlog_expect(test, NR);
	fairwq_batch_dispose(backlog.batch);
}

static struct kunit_case backlog_cases[] = {
	KUNIT_CASE(backlog_is_sorted_in_steps),
	KUNIT_CASE(others_are_served_between_steps),
	KUNIT_CASE_PARAM(long_backlog_is_sorted_beside, beside_gen_params),
	KUNIT_CASE(short_backlog_goes_before_a_long_one),
	KUNIT_CASE(pushed_meanwhile_comes_last),
	KUNIT_CASE(cancel_between_steps_keeps_the_order),
	KUNIT_CASE(batch_cancel_between_steps_drops_all),
	KUNIT_CASE(disposed_batch_runs_its_backlog_and_leaves),
	KUNIT_CASE(dropped_batch_leaves_between_steps),
	KUNIT_CASE(pause_between_steps_does_not_stop_the_sort),
	KUNIT_CASE(reader_sorts_a_backlog),
	{}
};

static struct kunit_suite backlog_suite = {
	.name = "fairwq_core_fifo",
	.init = backlog_init,
	.exit = backlog_exit,
	.test_cases = backlog_cases,
};

kunit_test_suite(backlog_suite);

MODULE_DESCRIPTION("KUnit: a long backlog is put into order in steps");
MODULE_LICENSE("GPL");
