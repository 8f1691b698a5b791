// SPDX-License-Identifier: GPL-2.0
/*
 * Order of turns: which batch one runner serves next, turn by turn. The last
 * cases have several runners.
 *
 * Each item writes its letter into a log, which is compared as a string.
 */
#include "lib/fixture.h"

/* ---- FIFO within a batch (promise 5) ---------------------------------- */

/* Items of one batch start in the order in which they were queued. */
static void batch_is_a_fifo(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	const char *order = "abcdefghijklmnopqrstuvwxyz0123456789";
	const char *c;

	for (c = order; *c; c++)
		mock_queue(test, a, *c, 1);
	mock_expect(test, order);
}

/* ---- turns (promise 6, faults T4, T5, Q1) ----------------------------- */

struct idle_case {
	const char *desc;
	unsigned int idle;
};

static const struct idle_case idle_cases[] = {
	{ "no idle batch", 0 }, { "1 idle batch", 1 }, { "2 idle batches", 2 },
	{ "3 idle batches", 3 }, { "9 idle batches", 9 },
};

static void idle_case_desc(const struct idle_case *c, char *desc)
{
	strscpy(desc, c->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(idle, idle_cases, idle_case_desc);

/* Idle batches between two busy ones do not skew the turns: 1:1 exactly (Q1). */
static void idle_batches_do_not_skew_the_turns(struct kunit *test)
{
	const struct idle_case *c = test->param_value;
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_batch *d;
	unsigned int i;

	for (i = 0; i < c->idle; i++)
		mock_batch(test, "idle");
	d = mock_batch(test, "d");
	mock_queue(test, a, 'a', 8);
	mock_queue(test, d, 'd', 8);
	mock_expect(test, "adadadadadadadad");
}

/* Batches that run out of items between two busy ones do not skew the turns. */
static void drained_batches_do_not_skew_the_turns(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_batch *b = mock_batch(test, "b");
	struct fairwq_batch *c = mock_batch(test, "c");

	mock_queue(test, a, 'a', 6);
	mock_queue(test, b, 'b', 2);
	mock_queue(test, c, 'c', 4);
	mock_expect(test, "abcabcacacaa");
}

/* A batch with 20 items, beside one with 1000, has run all of them after 40 turns. */
static void short_backlog_behind_a_long_one_is_soon_done(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_batch *b = mock_batch(test, "b");
	struct mock *mock = test->priv;
	const char *last;

	mock_queue(test, a, 'a', 1000);
	mock_queue(test, b, 'b', 20);
	mock_open(test);
	mock_until(test, READ_ONCE(mock->log.nr) == 1020);
	last = strrchr(mock->log.text, 'b');
	KUNIT_ASSERT_NOT_NULL(test, last);
	KUNIT_EXPECT_LE(test, last - mock->log.text, 40L);
}

/* A batch saves up no turns while it is idle: after that it takes turns with the others. */
static void idle_saves_no_credit(struct kunit *test)
{
	struct fairwq_batch *a, *b;
	struct mock *mock = test->priv;
	struct mock_gate second;

	mock_gate_init(&second);
	a = mock_begin(test, 1);
	b = mock_batch(test, "b");
	mock_queue(test, b, 'b', 1);
	mock_queue(test, a, 'a', 10);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &second.work));
	mock_open(test);
	mock_await(test, &second.entered);
	KUNIT_EXPECT_STREQ(test, "baaaaaaaaaa", &mock->log.text[0]);
	mock_queue(test, a, 'A', 4);
	mock_queue(test, b, 'B', 4);
	complete_all(&second.open);
	mock_expect(test, "baaaaaaaaaaBABABABA");
	fairwq_pool_flush(mock->pool);	/* @second is on the stack */
}

/* An item that queues itself @left - 1 times. */
struct again {
	struct mock_item item;
	struct fairwq_batch *batch;
	unsigned int left;
};

static void again_fn(struct fairwq_work *work)
{
	struct again *again = container_of(work, struct again, item.work);

	if (again->left-- > 1)
		mock_may_refuse(fairwq_queue(again->batch, work));
	mock_log_add(again->item.log, again->item.letter);
}

/* An item that queues itself goes to the tail of its batch. */
static void requeue_goes_to_the_tail(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct again *again = kunit_kzalloc(test, sizeof(*again), GFP_KERNEL);
	struct fairwq_batch *a, *b;

	KUNIT_ASSERT_NOT_NULL(test, again);
	a = mock_begin(test, 1);
	b = mock_batch(test, "b");
	fairwq_work_init(&again->item.work, again_fn);
	again->item.log = &mock->log;
	again->item.letter = 'x';
	again->batch = a;
	again->left = 3;
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &again->item.work));
	mock_queue(test, a, 'a', 3);
	mock_queue(test, b, 'b', 6);
	/* The batch "a" runs x a a a x x. */
	mock_expect(test, "xbabababxbxb");
	KUNIT_EXPECT_EQ(test, 0U, again->left);
}

/* ---- weights ---------------------------------------------------------- */

/* Two batches get turns by their weights, spread as evenly as whole turns allow. */
static void weights_one_to_two_are_exact(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_batch *b = mock_batch_weight(test, "b", 200);

	mock_queue(test, a, 'a', 4);
	mock_queue(test, b, 'b', 8);
	mock_expect(test, "babbabbabbab");
}

/* Each batch gets its share of the first 80 turns by weight, within one turn. */
static void weights_one_two_five_are_within_one_turn(struct kunit *test)
{
	static const unsigned int weight[] = { 100, 200, 500 };
	struct mock *mock = test->priv;
	struct fairwq_batch *batch[3];
	unsigned int i, got[3] = { };

	mock_pool(test, 1);
	for (i = 0; i < 3; i++) {
		batch[i] = mock_batch_weight(test, "w", weight[i]);
		mock_queue(test, batch[i], '0' + i, 60);
	}
	mock_open(test);
	mock_until(test, READ_ONCE(mock->log.nr) == 180);
	for (i = 0; i < 80; i++)
		got[mock->log.text[i] - '0']++;
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_GE(test, got[i] + 1, weight[i] / 10);
		KUNIT_EXPECT_LE(test, got[i], weight[i] / 10 + 1);
	}
}

/* A new weight applies to the items that are queued already, from the next turn on. */
static void weight_applies_to_a_standing_backlog(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_batch *b = mock_batch(test, "b");

	mock_queue(test, a, 'a', 4);
	mock_queue(test, b, 'b', 8);
	KUNIT_EXPECT_EQ(test, 0, fairwq_batch_set_weight(b, 200));
	mock_expect(test, "babbabbabbab");
}

/* ---- disposal of a batch near its turn (T3, T4, Q2, Q3) --------------- */

struct pointer_case {
	const char *desc;
	unsigned int which;	/* of a, b, c: the batch to be disposed of */
};

static const struct pointer_case pointer_cases[] = {
	{ "the one that is next", 0 }, { "the one after it", 1 },
	{ "the last one", 2 },
};

static void pointer_case_desc(const struct pointer_case *c, char *desc)
{
	strscpy(desc, c->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(pointer, pointer_cases, pointer_case_desc);

/* A disposed batch keeps the turns of its queued items. No other batch has two in a row. */
static void dispose_with_items_keeps_the_order(struct kunit *test)
{
	const struct pointer_case *c = test->param_value;
	struct mock *mock = test->priv;
	struct fairwq_batch *batch[3];
	unsigned int i;

	mock_pool(test, 1);
	for (i = 0; i < 3; i++) {
		batch[i] = mock_own_batch(test, "p", NULL);
		mock_queue(test, batch[i], 'a' + i, i == c->which ? 2 : 4);
	}
	fairwq_batch_dispose(batch[c->which]);
	switch (c->which) {
	case 0:
		mock_expect(test, "abcabcbcbc");
		break;
	case 1:
		mock_expect(test, "abcabcacac");
		break;
	default:
		mock_expect(test, "abcabcabab");
	}
	for (i = 0; i < 3; i++)
		if (i != c->which)
			fairwq_batch_dispose(batch[i]);
	/* The disposed batch is gone. The three default batches and the gate's are left. */
	mock_until(test, mock_nr_batches(mock->pool) == 4);
}

/* Disposing of an idle batch between two busy ones does not change their turns. */
static void dispose_idle_keeps_the_order(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_batch *b = mock_own_batch(test, "b", NULL);
	struct fairwq_batch *c = mock_batch(test, "c");

	mock_queue(test, a, 'a', 4);
	mock_queue(test, c, 'c', 4);
	fairwq_batch_dispose(b);
	mock_expect(test, "acacacac");
}

/* An item that disposes of two batches. */
struct disposer {
	struct mock_item item;
	struct fairwq_batch *victim[2];
};

static void disposer_fn(struct fairwq_work *work)
{
	struct disposer *d = container_of(work, struct disposer, item.work);

	mock_log_add(d->item.log, d->item.letter);
	fairwq_batch_dispose(d->victim[0]);
	fairwq_batch_dispose(d->victim[1]);
}

/* An item may dispose of its own batch and of the next in turn, while both have items. */
static void dispose_from_an_item_keeps_the_order(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct disposer *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);
	struct fairwq_batch *a, *b, *c;

	KUNIT_ASSERT_NOT_NULL(test, d);
	mock_pool(test, 1);
	a = mock_own_batch(test, "a", NULL);
	b = mock_own_batch(test, "b", NULL);
	c = mock_own_batch(test, "c", NULL);
	fairwq_work_init(&d->item.work, disposer_fn);
	d->item.log = &mock->log;
	d->item.letter = 'X';
	d->victim[0] = a;
	d->victim[1] = b;
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &d->item.work));
	mock_queue(test, a, 'a', 2);
	mock_queue(test, b, 'b', 2);
	mock_queue(test, c, 'c', 3);
	mock_expect(test, "Xbcabcac");
	fairwq_batch_dispose(c);
	mock_until(test, mock_nr_batches(mock->pool) == 4);
}

/* When the only batch of a priority is gone, other batches and a new one get turns (Q2, Q3). */
static void last_batch_of_a_priority_goes(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .prio = FAIRWQ_PRIO_HIGH };
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_batch *high = mock_own_batch(test, "high", &attrs);

	mock_queue(test, a, 'a', 2);
	mock_queue(test, high, 'h', 2);
	fairwq_batch_dispose(high);
	mock_expect(test, "hhaa");
	mock_until(test, mock_nr_batches(mock->pool) == 5);
	high = mock_batch_with(test, "high", &attrs);
	mock_queue(test, high, 'H', 1);
	mock_expect(test, "hhaaH");
}

/* ---- pause and limits ------------------------------------------------- */

/* A paused batch gets no turns, and has saved up none when it is resumed. */
static void pause_holds_back_without_credit(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a, *b;
	struct mock_gate second;

	mock_gate_init(&second);
	a = mock_begin(test, 1);
	b = mock_batch(test, "b");
	mock_queue(test, b, 'b', 4);
	fairwq_batch_pause(b);
	mock_queue(test, a, 'a', 5);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &second.work));
	mock_queue(test, a, 'A', 4);
	mock_open(test);
	mock_await(test, &second.entered);
	KUNIT_EXPECT_STREQ(test, "aaaaa", &mock->log.text[0]);
	KUNIT_EXPECT_EQ(test, 1U, mock_nr_eligible(mock->pool));
	fairwq_batch_resume(b);
	complete_all(&second.open);
	mock_expect(test, "aaaaaAbAbAbAb");
	fairwq_pool_flush(mock->pool);
}

/* Queue a gate to @batch. */
static struct mock_gate *order_gate(struct kunit *test, struct fairwq_batch *batch)
{
	struct mock_gate *gate = kunit_kzalloc(test, sizeof(*gate), GFP_KERNEL);
	struct mock *mock = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, gate);
	mock_gate_init(gate);
	gate->next = mock->gates;
	mock->gates = gate;
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &gate->work));
	return gate;
}

/*
 * A batch at its max_active of 1 does not count as idle, so it catches up
 * later.
 *
 * Its item stops the first runner at a gate, while the second runner serves a
 * and b. Then a gate stops the second runner, and the first one goes on alone,
 * in an exact order. The batch is then three turns behind the others. It gets
 * two turns in a row, and after that each third one. A batch that was idle
 * would not catch up.
 */
static void limit_is_not_away(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .max_active = 1 };
	struct mock *mock = test->priv;
	struct mock_gate *first, *second;
	struct fairwq_batch *a, *b, *l;

	mock_pool(test, 2);
	l = mock_batch_with(test, "limited", &attrs);
	first = order_gate(test, l);
	mock_await(test, &first->entered);
	mock_queue(test, l, 'l', 4);
	a = mock_batch(test, "a");
	b = mock_batch(test, "b");
	mock_queue(test, a, 'a', 3);
	mock_queue(test, b, 'b', 6);
	second = order_gate(test, a);
	mock_queue(test, a, 'a', 2);
	mock_open(test);
	mock_await(test, &second->entered);
	complete_all(&first->open);
	mock_expect(test, "abababllblablab");
	complete_all(&second->open);
	fairwq_pool_flush(mock->pool);
}

/* ---- another policy --------------------------------------------------- */

/* A new policy applies to the items that are queued already. */
static void policy_applies_to_a_standing_backlog(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a, *b;

	a = mock_begin_by(test, 1, FAIRWQ_FAIR_TIME);
	b = mock_batch(test, "b");
	mock_queue(test, a, 'a', 4);
	mock_queue(test, b, 'b', 4);
	fairwq_pool_set_policy(mock->pool, FAIRWQ_ROUND_ROBIN);
	mock_expect(test, "abababab");
}

/* ---- priority (promise 9) --------------------------------------------- */

/* HIGH items run before NORMAL ones, and these before LOW ones. */
static void priorities_in_order(struct kunit *test)
{
	struct mock *mock = test->priv;

	mock_pool(test, 1);
	mock_queue(test, fairwq_pool_default_batch(mock->pool, FAIRWQ_PRIO_LOW), 'l', 3);
	mock_queue(test, fairwq_pool_default_batch(mock->pool, FAIRWQ_PRIO_NORMAL), 'n', 3);
	mock_queue(test, fairwq_pool_default_batch(mock->pool, FAIRWQ_PRIO_HIGH), 'h', 3);
	mock_expect(test, "hhhnnnlll");
}

/* Each 64th turn goes to a lower priority, however many HIGH items are queued (L5). */
static void lower_priority_is_not_starved(struct kunit *test)
{
	struct mock *mock = test->priv;
	char *first, *second;

	mock_pool(test, 1);
	mock_queue(test, fairwq_pool_default_batch(mock->pool, FAIRWQ_PRIO_LOW), 'l', 2);
	mock_queue(test, fairwq_pool_default_batch(mock->pool, FAIRWQ_PRIO_HIGH), 'h', 200);
	mock_open(test);
	mock_until(test, READ_ONCE(mock->log.nr) == 202);
	first = strchr(mock->log.text, 'l');
	KUNIT_ASSERT_NOT_NULL(test, first);
	KUNIT_EXPECT_EQ(test, 63L, first - mock->log.text);
	second = strchr(first + 1, 'l');
	KUNIT_ASSERT_NOT_NULL(test, second);
	KUNIT_EXPECT_EQ(test, 127L, second - mock->log.text);
}

/* With FAIRWQ_STRICT_PRIO a lower priority gets no turn while HIGH items are queued. */
static void strict_priority_leaves_nothing(struct kunit *test)
{
	struct mock *mock = test->priv;
	char *first;

	mock->flags = FAIRWQ_STRICT_PRIO;
	mock_pool(test, 1);
	mock_queue(test, fairwq_pool_default_batch(mock->pool, FAIRWQ_PRIO_LOW), 'l', 2);
	mock_queue(test, fairwq_pool_default_batch(mock->pool, FAIRWQ_PRIO_HIGH), 'h', 400);
	/* Change the policy and back, because each change resets what the tree has counted. */
	fairwq_pool_set_policy(mock->pool, FAIRWQ_FAIR_TIME);
	fairwq_pool_set_policy(mock->pool, FAIRWQ_ROUND_ROBIN);
	mock_open(test);
	mock_until(test, READ_ONCE(mock->log.nr) == 402);
	first = strchr(mock->log.text, 'l');
	KUNIT_ASSERT_NOT_NULL(test, first);
	KUNIT_EXPECT_EQ(test, 400L, first - mock->log.text);
}

/* ---- shares (promise 6) ------------------------------------------------- */

/* mock_exit() asks the judge. */
static void turns_are_shared_by_weight(struct kunit *test)
{
	static const unsigned int weight[] = { 1, 100, 100, 300, 10000 };
	struct mock *mock = test->priv;
	struct fairwq_batch *batch[5];
	unsigned int i;

	mock_pool(test, 1);
	for (i = 0; i < ARRAY_SIZE(weight); i++) {
		batch[i] = mock_batch_weight(test, "w", weight[i]);
		mock_queue(test, batch[i], 'x', 5000);
	}
	mock_open(test);
	fairwq_pool_flush(mock->pool);
	KUNIT_EXPECT_GE(test, mock->judge.judged, 10000ULL);
}

/* ---- without strict turns --------------------------------------------- */

static void rotation_of_short_items_is_exact(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *batch[16];
	unsigned int i;

	mock_pool(test, 1);
	for (i = 0; i < 16; i++) {
		batch[i] = mock_batch(test, "p");
		mock_queue(test, batch[i], 'a' + i, 100);
	}
	mock_open(test);
	mock_until(test, READ_ONCE(mock->log.nr) == 1600);
	for (i = 0; i < 1600; i++)
		KUNIT_ASSERT_EQ(test, (char)('a' + i % 16), mock->log.text[i]);
}

/* Weights of 1, 2 and 5 get just as many turns, in every 8 turns. */
static void weights_of_short_items_are_exact(struct kunit *test)
{
	static const unsigned int weight[] = { 100, 200, 500 };
	unsigned int i, window, got[3];
	struct mock *mock = test->priv;
	struct fairwq_batch *batch[3];

	mock_pool(test, 1);
	for (i = 0; i < 3; i++) {
		batch[i] = mock_batch_weight(test, "p", weight[i]);
		mock_queue(test, batch[i], '0' + i, 100 * weight[i] / 100);
	}
	mock_open(test);
	mock_until(test, READ_ONCE(mock->log.nr) == 800);
	for (window = 0; window < 100; window++) {
		memset(got, 0, sizeof(got));
		for (i = 0; i < 8; i++)
			got[mock->log.text[8 * window + i] - '0']++;
		KUNIT_ASSERT_EQ(test, 1U, got[0]);
		KUNIT_ASSERT_EQ(test, 2U, got[1]);
		KUNIT_ASSERT_EQ(test, 5U, got[2]);
	}
}

/* ---- several runners -------------------------------------------------- */

struct numbered {
	struct fairwq_work work;
	atomic_t *started;
	unsigned int number;
	unsigned int off;	/* number of later items that started before this one */
};

static void numbered_fn(struct fairwq_work *work)
{
	struct numbered *n = container_of(work, struct numbered, work);
	unsigned int place = atomic_inc_return(n->started) - 1;

	n->off = place > n->number ? place - n->number : 0;
	udelay(1);			/* any time will do */
}

/*
 * Four runners start the items of a batch nearly in the order of queueing. Up
 * to three later items may start first, because each of the other runners may
 * be about to start one. A runner that is preempted between its choice and the
 * start makes a few more late.
 */
static void several_runners_keep_the_order(struct kunit *test)
{
	const unsigned int nr = 4000;
	struct numbered *n = kunit_kcalloc(test, nr, sizeof(*n), GFP_KERNEL);
	atomic_t started = ATOMIC_INIT(0);
	unsigned int i, late = 0;
	struct fairwq_batch *a;

	KUNIT_ASSERT_NOT_NULL(test, n);
	a = mock_begin(test, 4);
	mock_open(test);
	fairwq_batch_pause(a);
	for (i = 0; i < nr; i++) {
		fairwq_work_init(&n[i].work, numbered_fn);
		n[i].started = &started;
		n[i].number = i;
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &n[i].work));
	}
	fairwq_batch_resume(a);
	fairwq_batch_flush(a);
	for (i = 0; i < nr; i++)
		late += n[i].off >= 4;
	/* If runners took dozens of items at a time, most items would be late. */
	KUNIT_EXPECT_LE(test, late, nr / (MOCK_WATCHED ? 10 : 50));
}

/* ---- a backlog that is not in order yet -------------------------------- */

/* Items of two priorities. The lower one has one item, which queues itself again. */
static struct {
	struct fairwq_work low;
	struct fairwq_batch *low_batch;
	unsigned int high_left;
	unsigned int low_turns;		/* while works of the higher one were left */
} beside;

static void beside_high_fn(struct fairwq_work *work)
{
	beside.high_left--;
}

static void beside_low_fn(struct fairwq_work *work)
{
	if (!beside.high_left)
		return;
	beside.low_turns++;
	mock_may_refuse(fairwq_queue(beside.low_batch, work));
}

/*
 * A lower priority has no turn while a higher one has a backlog, also a long
 * one that was just queued (promise 9). One turn may be before the runner has
 * seen the backlog.
 */
static void lower_priority_waits_for_a_long_backlog(struct kunit *test)
{
	unsigned int nr = MOCK_MANY(100000), i;
	struct mock *mock = test->priv;
	struct fairwq_batch *high;
	struct fairwq_work *work;

	work = kvcalloc(nr, sizeof(*work), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, work);
	mock->flags = FAIRWQ_STRICT_PRIO;
	mock_pool(test, 1);
	high = mock_batch_prio(test, "high", FAIRWQ_PRIO_HIGH);
	beside.low_batch = mock_batch_prio(test, "low", FAIRWQ_PRIO_LOW);
	beside.high_left = nr;
	beside.low_turns = 0;
	fairwq_work_init(&beside.low, beside_low_fn);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(beside.low_batch, &beside.low));
	for (i = 0; i < nr; i++) {
		fairwq_work_init(&work[i], beside_high_fn);
		KUNIT_EXPECT_EQ(test, 1, fairwq_queue(high, &work[i]));
	}
	mock_open(test);
	fairwq_batch_flush(high);
	fairwq_batch_flush(beside.low_batch);
	kvfree(work);
	KUNIT_EXPECT_EQ(test, 0U, beside.high_left);
	KUNIT_EXPECT_LE(test, beside.low_turns, 1U);
}

static struct kunit_case order_cases[] = {
	KUNIT_CASE(batch_is_a_fifo),
	KUNIT_CASE_PARAM(idle_batches_do_not_skew_the_turns, idle_gen_params),
	KUNIT_CASE(drained_batches_do_not_skew_the_turns),
	KUNIT_CASE(short_backlog_behind_a_long_one_is_soon_done),
	KUNIT_CASE(idle_saves_no_credit),
	KUNIT_CASE(requeue_goes_to_the_tail),
	KUNIT_CASE(weights_one_to_two_are_exact),
	KUNIT_CASE(weights_one_two_five_are_within_one_turn),
	KUNIT_CASE(weight_applies_to_a_standing_backlog),
	KUNIT_CASE_PARAM(dispose_with_items_keeps_the_order, pointer_gen_params),
	KUNIT_CASE(dispose_idle_keeps_the_order),
	KUNIT_CASE(dispose_from_an_item_keeps_the_order),
	KUNIT_CASE(last_batch_of_a_priority_goes),
	KUNIT_CASE(pause_holds_back_without_credit),
	KUNIT_CASE(limit_is_not_away),
	KUNIT_CASE(policy_applies_to_a_standing_backlog),
	KUNIT_CASE(priorities_in_order),
	KUNIT_CASE(lower_priority_is_not_starved),
	KUNIT_CASE(strict_priority_leaves_nothing),
	KUNIT_CASE(turns_are_shared_by_weight),
	KUNIT_CASE(rotation_of_short_items_is_exact),
	KUNIT_CASE(weights_of_short_items_are_exact),
	KUNIT_CASE(several_runners_keep_the_order),
	KUNIT_CASE(lower_priority_waits_for_a_long_backlog),
	{}
};

static struct kunit_suite order_suite = {
	.name = "fairwq_pool_order",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = order_cases,
};

kunit_test_suite(order_suite);

MODULE_DESCRIPTION("KUnit: the order of turns");
MODULE_LICENSE("GPL");
