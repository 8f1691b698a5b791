// SPDX-License-Identifier: GPL-2.0
/*
 * Tables: what a row of debugfs says, whatever a batch is called and however
 * much was counted; and which names there are.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/limits.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "core/stats.h"
#include "core/testing.h"
#include "lib/fixture.h"

#define ROW_LEN		512
/* The words behind the name in a row. */
#define ROW_WORDS	18
#define LONGEST_WORD	7
#define SHARE_WORD	8
#define OLDEST_WORD	10

/* ---- names ------------------------------------------------------------- */

static const struct named {
	const char *text, *name;
} named[] = {
	{ "", "" }, { " ", " " }, { "  two  words ", "  two  words " }, { "%s%n", "%s%n" },
	{ "\\\"'$x^$`", "\\\"'$x^$`" }, { "LOST 7 EVENTS", "LOST 7 EVENTS" },
	{ "x work=1 fn=f wait=5", "x work=1 fn=f wait=5" },
	{ "p batch=x batch= batch=", "p batch?x batch? batch?" }, { "batch=x", "batch=x" },
	/* Controls of ASCII, and the same as one character of UTF-8. */
	{ "\x1b[31m\x07\x7f", "?[31m??" }, { "a\nb\r\n\tc", "a?b???c" },
	{ "\xc2\x9b[1m \xc2\x85 \xc2\x80 \xc2\x9f", "?[1m ? ? ?" },
	{ "\xe2\x80\xaexyz", "?xyz" },
	{ "\xe2\x80\xa8\xe2\x80\xa9\xe2\x81\xa6\xd8\x9c", "????" },
	/* No UTF-8: bytes alone, ends that are missing, longer ways to write a character. */
	{ "\x9b[1m", "?[1m" }, { "\xff\xfe\xc0\xc1\xf5", "?????" }, { "x\xc3", "x?" },
	{ "\xe4\xb8", "??" }, { "\xf0\x9f\x91", "???" }, { "\xc3(", "?(" },
	{ "\xc0\x8a", "??" }, { "\xe0\x82\x9b", "???" }, { "\xf0\x80\x82\x9b", "????" },
	{ "\xed\xa0\x80", "???" }, { "\xf4\x90\x80\x80", "????" }, { "\xf8\x88\x80\x80", "????" },
	/* Text. */
	{ "gr\xc3\xbcn", "gr\xc3\xbcn" }, { "\xc2\xa0\xdf\xbf", "\xc2\xa0\xdf\xbf" },
	{ "\xe4\xb8\xad\xe2\x98\x83", "\xe4\xb8\xad\xe2\x98\x83" },
	{ "\xf0\x9f\x91\xa9\xf4\x8f\xbf\xbf", "\xf0\x9f\x91\xa9\xf4\x8f\xbf\xbf" },
};

/* A name is text in UTF-8, which does nothing to a terminal. All else of it stays. */
static void names_are_text(struct kunit *test)
{
	struct fairwq_batch *batch;
	struct fairwq_pool *pool;
	struct mock *mock = test->priv;
	unsigned int i;

	mock_pool(test, 1);
	for (i = 0; i < ARRAY_SIZE(named); i++) {
		batch = fairwq_batch_create(mock->pool, NULL, "%s", named[i].text);
		KUNIT_ASSERT_FALSE(test, IS_ERR(batch));
		KUNIT_EXPECT_STREQ(test, named[i].name, batch->name);
		fairwq_batch_dispose(batch);
		pool = fairwq_pool_create(NULL, "%s", named[i].text);
		KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
		KUNIT_EXPECT_STREQ(test, named[i].name, pool->name);
		fairwq_pool_destroy(pool);
	}
}

/* Expect that of @unit, so many times, the first @len bytes are left. */
static void expect_cut(struct kunit *test, const char *unit, unsigned int times, size_t len)
{
	size_t size = strlen(unit), i;
	char *text = kunit_kzalloc(test, times * size + 1, GFP_KERNEL);
	struct mock *mock = test->priv;
	struct fairwq_batch *batch;

	KUNIT_ASSERT_NOT_NULL(test, text);
	for (i = 0; i < times * size; i++)
		text[i] = unit[i % size];
	batch = fairwq_batch_create(mock->pool, NULL, "%s", text);
	KUNIT_ASSERT_FALSE(test, IS_ERR(batch));
	KUNIT_EXPECT_EQ(test, len, strlen(batch->name));
	KUNIT_EXPECT_EQ(test, 0, strncmp(text, batch->name, len));
	fairwq_batch_dispose(batch);
}

/* A long name is cut, and no character of it. So the rest of its line has room in a trace. */
static void long_names_are_cut(struct kunit *test)
{
	mock_pool(test, 1);
	expect_cut(test, "a", 62, 62);
	expect_cut(test, "a", 63, 63);
	expect_cut(test, "a", 64, 63);
	expect_cut(test, "a", 20000, 63);
	expect_cut(test, "\xc3\xbc", 100, 62);
	expect_cut(test, "\xe4\xb8\xad", 100, 63);
	expect_cut(test, "\xf0\x9f\x91\xa9", 100, 60);
}

/* ---- rows -------------------------------------------------------------- */

/* A row in parts: its number, its name, and the words behind that. */
struct row {
	char text[ROW_LEN];
	unsigned long long number;
	char *name, *word[ROW_WORDS];
};

/* Read the row of @batch as a script should: from the end on. */
static struct row *row_of(struct kunit *test, struct fairwq_batch *batch)
{
	struct row *row = kunit_kzalloc(test, sizeof(*row), GFP_KERNEL);
	unsigned int i;
	int len = 0;

	KUNIT_ASSERT_NOT_NULL(test, row);
	mock_row(batch, row->text, sizeof(row->text));
	for (i = ROW_WORDS; i; i--) {
		strim(row->text);
		row->word[i - 1] = strrchr(row->text, ' ');
		KUNIT_ASSERT_NOT_NULL(test, row->word[i - 1]);
		*row->word[i - 1]++ = '\0';
	}
	strim(row->text);
	i = sscanf(row->text, "%llu%n", &row->number, &len);
	KUNIT_ASSERT_EQ(test, 1U, i);
	row->name = row->text + len;
	row->name += *row->name == ' ';		/* there is none behind an empty name */
	return row;
}

/* A row has one name, of whatever words; all else in it is a word each. */
static void row_is_read_from_its_end(struct kunit *test)
{
	static const char * const names[] = {
		"a", "a", "", "two words", "7 a idle normal 100 0 0 5 1.0 - - 7 - - 0 3",
		" idle", "-", "63 bytes are the most that a name can have, and so many are here",
	};
	struct fairwq_batch *batch;
	struct mock *mock = test->priv;
	unsigned long long last = 0;
	struct row *row;
	unsigned int i;

	mock_pool(test, 1);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		batch = fairwq_batch_create(mock->pool, NULL, "%s", names[i]);
		KUNIT_ASSERT_FALSE(test, IS_ERR(batch));
		row = row_of(test, batch);
		KUNIT_EXPECT_STREQ(test, batch->name, row->name);
		KUNIT_EXPECT_STREQ(test, "idle", row->word[0]);
		KUNIT_EXPECT_STREQ(test, "0.0", row->word[SHARE_WORD]);
		KUNIT_EXPECT_STREQ(test, "-", row->word[ROW_WORDS - 1]);
		/* No two have the same number, and the younger has the larger one. */
		KUNIT_EXPECT_GT(test, row->number, last);
		last = row->number;
		fairwq_batch_dispose(batch);
	}
}

/* The owner of a batch is told by its number, because two may have the same name. */
static void row_names_its_owner_by_number(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { };
	struct fairwq_batch *owner[2], *batch;
	char number[24];
	unsigned int i;

	mock_pool(test, 1);
	for (i = 0; i < 2; i++)
		owner[i] = mock_own_batch(test, "owner", NULL);
	for (i = 0; i < 2; i++) {
		snprintf(number, sizeof(number), "%llu", row_of(test, owner[i])->number);
		attrs.parent = owner[i];
		batch = mock_own_batch(test, "owned", &attrs);
		fairwq_batch_dispose(owner[i]);
		KUNIT_EXPECT_STREQ(test, number, row_of(test, batch)->word[ROW_WORDS - 1]);
		fairwq_batch_dispose(batch);
	}
}

/* ---- shares ------------------------------------------------------------ */

static void policy_desc(const enum fairwq_policy *policy, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "policy %u", *policy);
}

static const enum fairwq_policy policies[] = {
	FAIRWQ_ROUND_ROBIN, FAIRWQ_FAIR_TIME, FAIRWQ_FAIR_COST,
};

KUNIT_ARRAY_PARAM(policy, policies, policy_desc);

static u32 cost_of_letter(const struct fairwq_work *work)
{
	return container_of(work, struct mock_item, work)->letter * 1000;
}

/* Make a pool whose gate is open, and is forgotten. */
static void begin_counting(struct kunit *test, enum fairwq_policy policy)
{
	struct mock *mock = test->priv;

	mock_pool(test, 1);
	mock->pool->cost = cost_of_letter;
	mock_open(test);
	fairwq_pool_flush(mock->pool);
	mock_let_settle(mock->gate_batch);
	fairwq_pool_set_policy(mock->pool, policy);
	mock_reset(mock->pool);
}

/* Expect that the row of @batch says so many thousandths. */
static void expect_share(struct kunit *test, struct fairwq_batch *batch, u64 share)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu.%llu", share / 10, share % 10);
	KUNIT_EXPECT_STREQ(test, text, row_of(test, batch)->word[SHARE_WORD]);
}

/* Shares are right up to the largest count, and never more than the whole. */
static void share_of_much_is_right(struct kunit *test)
{
	static const struct {
		u64 part, whole;
		unsigned int share;
	} counts[] = {
		{ 0, 0, 0 }, { 5, 0, 0 }, { 0, 7, 0 }, { 1, 3, 333 }, { 2, 3, 666 }, { 3, 2, 1000 },
		/* 2 days of 128 CPUs in ns, and half of that. */
		{ 11059200000000000, 22118400000000000, 500 },
		{ 1ULL << 53, 1ULL << 54, 500 }, { 1ULL << 54, 1ULL << 55, 500 },
		{ 1ULL << 62, 1ULL << 63, 500 }, { (1ULL << 63) - 1, 1ULL << 63, 999 },
		{ 1ULL << 63, 1ULL << 63, 1000 }, { 1ULL << 63, U64_MAX, 500 },
		{ 1, U64_MAX, 0 }, { U64_MAX / 3, U64_MAX, 333 }, { U64_MAX - 1, U64_MAX, 999 },
		{ U64_MAX, U64_MAX, 1000 }, { U64_MAX, 1, 1000 },
	};
	const enum fairwq_policy *policy = test->param_value;
	struct fairwq_batch *a;
	unsigned int i;

	begin_counting(test, *policy);
	a = mock_batch(test, "a");
	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		mock_set_share(a, counts[i].part, counts[i].whole);
		expect_share(test, a, counts[i].share);
	}
	mock_reset(a->pool);
}

/* Queue items to @a and @b. Expect that the row of @a says what the tree has charged for all. */
static void expect_charged(struct kunit *test, struct fairwq_batch *a, unsigned int nr_a,
			   struct fairwq_batch *b, unsigned int nr_b)
{
	const struct fairwq_node *all = &a->pool->tree.rank[fairwq_prio_rank(FAIRWQ_PRIO_NORMAL)];

	mock_queue(test, a, 'a', nr_a);
	mock_queue(test, b, 'z', nr_b);
	fairwq_pool_flush(a->pool);
	mock_let_settle(a);
	expect_share(test, a, div64_u64(a->node.service * 1000, all->service));
}

/*
 * A share is that of what the tree has charged: in turns, in time, or in cost.
 * It begins anew with another policy, and not with a reset.
 */
static void share_is_what_was_charged(struct kunit *test)
{
	const enum fairwq_policy *policy = test->param_value;
	struct mock *mock = test->priv;
	struct fairwq_batch *a, *b;

	begin_counting(test, *policy);
	a = mock_batch(test, "a");
	b = mock_batch(test, "b");
	expect_charged(test, a, 30, b, 10);
	fairwq_pool_set_policy(mock->pool, *policy ? FAIRWQ_ROUND_ROBIN : FAIRWQ_FAIR_TIME);
	fairwq_pool_set_policy(mock->pool, *policy);
	expect_share(test, a, 0);
	expect_charged(test, a, 10, b, 30);
	mock_reset(mock->pool);
	expect_charged(test, a, 0, b, 0);
	fairwq_pool_set_policy(mock->pool, *policy ? FAIRWQ_ROUND_ROBIN : FAIRWQ_FAIR_TIME);
	fairwq_pool_set_policy(mock->pool, *policy);
	expect_charged(test, a, 3, b, 1);
}

/* The row of an owner is of its own items, and all rows together are the whole. */
static void owner_has_the_share_of_its_own(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch_attrs attrs = { };
	struct fairwq_batch *owner, *owned;

	begin_counting(test, FAIRWQ_FAIR_COST);
	owner = mock_batch(test, "owner");
	attrs.parent = owner;
	owned = mock_own_batch(test, "owned", &attrs);
	mock_queue(test, owner, 'd', 1);
	mock_queue(test, owned, 'd', 3);
	fairwq_pool_flush(mock->pool);
	mock_let_settle(owner);
	expect_share(test, owner, 250);
	expect_share(test, owned, 750);
	fairwq_batch_dispose(owned);
}

static u32 cost_of_a_gate(const struct fairwq_work *work)
{
	return 7000;
}

/*
 * The longest turn is in the row of its batch and of the owner of that: as soon
 * as it is charged, and after a reset, because the tree keeps what it was
 * charged.
 */
static void longest_turn_is_shown_from_its_begin_on(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct mock *mock = test->priv;
	struct fairwq_batch_attrs attrs = { };
	struct fairwq_batch *owner, *owned;

	begin_counting(test, FAIRWQ_FAIR_COST);
	mock->pool->cost = cost_of_a_gate;
	owner = mock_batch(test, "owner");
	attrs.parent = owner;
	owned = mock_own_batch(test, "owned", &attrs);
	KUNIT_EXPECT_STREQ(test, "1", row_of(test, owned)->word[LONGEST_WORD]);
	mock_gate_enter(test, owned, gate);
	KUNIT_EXPECT_STREQ(test, "7000", row_of(test, owned)->word[LONGEST_WORD]);
	KUNIT_EXPECT_STREQ(test, "7000", row_of(test, owner)->word[LONGEST_WORD]);
	complete_all(&gate->open);
	fairwq_batch_flush(owned);
	mock_reset(mock->pool);
	KUNIT_EXPECT_STREQ(test, "7000", row_of(test, owned)->word[LONGEST_WORD]);
	fairwq_pool_set_policy(mock->pool, FAIRWQ_ROUND_ROBIN);
	KUNIT_EXPECT_STREQ(test, "1", row_of(test, owned)->word[LONGEST_WORD]);
	fairwq_batch_dispose(owned);
}

/* ---- the oldest wait ----------------------------------------------------- */

static u64 oldest_ns(struct kunit *test, struct fairwq_batch *batch)
{
	u64 us;

	KUNIT_ASSERT_EQ(test, 0, kstrtou64(row_of(test, batch)->word[OLDEST_WORD], 10, &us));
	return us * NSEC_PER_USEC;
}

/* A moment by both clocks: ticks may be late, and then come several at once. */
struct moment {
	u64 ns;
	unsigned long tick;
};

static struct moment moment(void)
{
	return (struct moment){ ktime_get_mono_fast_ns(), jiffies };
}

/* Return the time from @a to @b by the clock that says more, or less. */
static u64 between(struct moment a, struct moment b, bool more)
{
	u64 ticks = (u64)jiffies_to_msecs(b.tick - a.tick) * NSEC_PER_MSEC;

	return more ? max(b.ns - a.ns, ticks) : min(b.ns - a.ns, ticks);
}

/* The row says for how long the first item waits, by the clock or by ticks. */
static void oldest_wait_is_that_of_the_first_item(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct moment before, queued, then, now;
	unsigned int i;
	u64 shown;

	KUNIT_EXPECT_EQ(test, 0ULL, oldest_ns(test, a));
	/* One queue call in 16 is measured. */
	for (i = 0; i < 40; i++) {
		before = moment();
		mock_queue(test, a, 'a', 1);
		queued = moment();
		msleep(jiffies_to_msecs(3));	/* so that there is something to see */
		mock_queue(test, a, 'b', 1);
		then = moment();
		shown = oldest_ns(test, a);
		now = moment();
		/* It is rounded down, and the clock may step back a little. */
		KUNIT_EXPECT_GE(test, shown + 50 * NSEC_PER_USEC, between(queued, then, false));
		KUNIT_EXPECT_LE(test, shown, between(before, now, true) + 50 * NSEC_PER_USEC);
		fairwq_batch_cancel(a, NULL);
		KUNIT_EXPECT_EQ(test, 0ULL, oldest_ns(test, a));
	}
	mock_open(test);
}

/* ---- percentiles -------------------------------------------------------- */

/* Percentiles are right up to the largest count, whatever the samples are. */
static void percentiles_of_many_are_right(struct kunit *test)
{
	static const u64 counts[] = {
		100, 1000, 18446744073709551, 18446744073709552, 1ULL << 55, 1ULL << 62, 1ULL << 63,
		U64_MAX,
	};
	struct fairwq_hist *hist = kunit_kzalloc(test, sizeof(*hist), GFP_KERNEL);
	unsigned int i;
	u64 few;

	KUNIT_ASSERT_NOT_NULL(test, hist);
	KUNIT_EXPECT_EQ(test, 0ULL, fairwq_hist_quantile(hist, 990));
	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		few = counts[i] / 50;		/* 2 of 100 are in the upper one */
		hist->count = counts[i];
		hist->max = U64_MAX;
		hist->bucket[20] = counts[i] - few;
		hist->bucket[60] = few;
		KUNIT_EXPECT_EQ(test, fairwq_hist_upper(20), fairwq_hist_quantile(hist, 1));
		KUNIT_EXPECT_EQ(test, fairwq_hist_upper(20), fairwq_hist_quantile(hist, 500));
		KUNIT_EXPECT_EQ(test, fairwq_hist_upper(20), fairwq_hist_quantile(hist, 970));
		KUNIT_EXPECT_EQ(test, fairwq_hist_upper(60), fairwq_hist_quantile(hist, 990));
		KUNIT_EXPECT_EQ(test, fairwq_hist_upper(60), fairwq_hist_quantile(hist, 1000));
	}
}

static struct kunit_case tables_cases[] = {
	KUNIT_CASE(names_are_text),
	KUNIT_CASE(long_names_are_cut),
	KUNIT_CASE(row_is_read_from_its_end),
	KUNIT_CASE(row_names_its_owner_by_number),
	KUNIT_CASE_PARAM(share_of_much_is_right, policy_gen_params),
	KUNIT_CASE_PARAM(share_is_what_was_charged, policy_gen_params),
	KUNIT_CASE(owner_has_the_share_of_its_own),
	KUNIT_CASE(longest_turn_is_shown_from_its_begin_on),
	KUNIT_CASE(oldest_wait_is_that_of_the_first_item),
	KUNIT_CASE(percentiles_of_many_are_right),
	{}
};

static struct kunit_suite tables_suite = {
	.name = "fairwq_tables",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = tables_cases,
};

kunit_test_suite(tables_suite);

MODULE_DESCRIPTION("KUnit tests of fairwq: tables");
MODULE_LICENSE("GPL");
