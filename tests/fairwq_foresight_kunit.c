// SPDX-License-Identifier: GPL-2.0
/*
 * Strict turns: every turn is decided when it is taken, or as if it were.
 *
 * A runner foresees turns, and takes them back before anything happens that
 * could change them. So the same story, told twice, with and without that, has
 * to be the same, whatever happens in it: here, at random, but from the same
 * seed. All of it happens in items of the one runner, so each telling is exact.
 */
#include <linux/prandom.h>

#include "mock.h"

#define NR_BATCHES	6U
#define NR_ITEMS	16U	/* of each */
#define NR_EVENTS	1500U
#define NR_SEEDS	20U

struct story_item {
	struct fairwq_work work;
	unsigned int batch;
};

static struct {
	struct kunit *test;
	struct fairwq_batch *batch[NR_BATCHES];
	struct story_item item[NR_BATCHES][NR_ITEMS];
	struct rnd_state rnd;
	unsigned int events;		/* left */
	unsigned int foreseen;		/* the most that stood in a plan */
	u32 digest[NR_EVENTS];		/* who ran at each, and what it made happen */
	struct completion done;
} story;

static unsigned int dice(unsigned int sides)
{
	return prandom_u32_state(&story.rnd) % sides;
}

/* One thing that may happen to a pool. Returns what came of it. */
static unsigned int happen(unsigned int what, unsigned int which)
{
	struct fairwq_batch *batch = story.batch[which];
	struct story_item *item = &story.item[which][dice(NR_ITEMS)];

	switch (what) {
	case 0:
		return fairwq_batch_set_weight(batch, 50 + dice(300));
	case 1:
		fairwq_batch_pause(batch);
		return 0;
	case 2:
		return fairwq_work_cancel(&item->work);
	case 3:
		return dice(8) ? 0 : fairwq_batch_cancel(batch, NULL);
	case 4:
		fairwq_test_look(batch);
		return 0;
	default:
		fairwq_batch_resume(batch);
		return fairwq_queue(batch, &item->work) > 0;
	}
}

static void story_fn(struct fairwq_work *work)
{
	struct story_item *self = container_of(work, struct story_item, work);
	struct fairwq_pool *pool = story.batch[0]->pool;
	unsigned int what, which, came = 0;

	if (!story.events)
		return;
	story.foreseen = max(story.foreseen, READ_ONCE(pool->planner) ?
					     READ_ONCE(pool->planner->plan.nr) : 0);
	/* Mostly nothing happens but that it goes on. */
	what = dice(40);
	which = dice(NR_BATCHES - 1);	/* not the last: it keeps the story going */
	if (what < 8)
		came = happen(what, which);
	if (dice(30) || self->batch == NR_BATCHES - 1)
		fairwq_queue(story.batch[self->batch], work);
	story.digest[--story.events] = self->batch * 1000 + what * 10 + came % 10;
	if (!story.events)
		complete(&story.done);
}

/* In a pool of its own each time, as all that it was through counts. */
static void story_tell(struct kunit *test, unsigned int seed, bool foresight)
{
	struct mock *mock = test->priv;
	struct fairwq_pool *pool;
	unsigned int i, j;
	const struct fairwq_pool_attrs attrs = {
		.flags = FAIRWQ_STRICT_TURNS, .max_active = 1,
	};

	WRITE_ONCE(fairwq_test_no_foresight, !foresight);
	pool = fairwq_pool_create(&attrs, "story");
	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	mock->pool = pool;
	prandom_seed_state(&story.rnd, seed);
	memset(story.digest, 0, sizeof(story.digest));
	story.events = NR_EVENTS;
	story.foreseen = 0;
	init_completion(&story.done);
	for (i = 0; i < NR_BATCHES; i++) {
		const struct fairwq_batch_attrs battrs = {
			.prio = i == 0 ? FAIRWQ_PRIO_HIGH :
				i == 1 ? FAIRWQ_PRIO_LOW : FAIRWQ_PRIO_NORMAL,
			.max_active = i == 2,
			.weight = i == 3 ? 250 : 100,
		};

		story.batch[i] = fairwq_batch_create(pool, &battrs, "%u", i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(story.batch[i]));
	}
	fairwq_work_init(&mock->gate.work, mock_gate_fn);
	reinit_completion(&mock->gate.entered);
	reinit_completion(&mock->gate.open);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(story.batch[0], &mock->gate.work));
	mock_await(test, &mock->gate.entered);
	for (j = 0; j < NR_ITEMS; j++)
		for (i = 0; i < NR_BATCHES; i++) {
			fairwq_work_init(&story.item[i][j].work, story_fn);
			story.item[i][j].batch = i;
			KUNIT_ASSERT_EQ(test, 1, fairwq_queue(story.batch[i],
							      &story.item[i][j].work));
		}
	mock_open(test);
}

static void story_end(struct kunit *test)
{
	struct mock *mock = test->priv;
	unsigned int i;

	mock_await(test, &story.done);
	for (i = 0; i < NR_BATCHES; i++)
		fairwq_batch_dispose(story.batch[i]);
	KUNIT_EXPECT_EQ(test, 0ULL, fairwq_test_counter(mock->pool, FAIRWQ_VIOLATIONS));
	fairwq_pool_destroy(mock->pool);
	mock->pool = NULL;
}

/* Promise 6 for strict turns: exact, whatever happens. */
static void foreseen_turns_are_strict(struct kunit *test)
{
	u32 *digest = kunit_kcalloc(test, NR_EVENTS, sizeof(*digest), GFP_KERNEL);
	unsigned int seed, i, most = 0;

	KUNIT_ASSERT_NOT_NULL(test, digest);
	for (seed = 1; seed <= NR_SEEDS; seed++) {
		story_tell(test, seed, false);
		story_end(test);
		KUNIT_ASSERT_LE(test, story.foreseen, 1U);
		memcpy(digest, story.digest, sizeof(story.digest));
		story_tell(test, seed, true);
		story_end(test);
		most = max(most, story.foreseen);
		for (i = NR_EVENTS; i-- > 0;)
			KUNIT_ASSERT_EQ_MSG(test, digest[i], story.digest[i],
					    "seed %u, event %u", seed, NR_EVENTS - i);
	}
	/* Else there was nothing to be seen. */
	KUNIT_EXPECT_GE(test, most, 8U);
}

/* ---- more than one runner ---------------------------------------------- */

#define NR_SLEEPERS	3U

static struct sleeper {
	struct fairwq_work work;
	struct completion entered;
} sleeper[NR_SLEEPERS];
static struct completion all_may_go;

static void sleeper_fn(struct fairwq_work *work)
{
	complete(&container_of(work, struct sleeper, work)->entered);
	wait_for_completion(&all_may_go);
}

/* Promise 7: what was foreseen is not kept from runners that are free. */
static void sleepers_do_not_keep_what_was_foreseen(struct kunit *test)
{
	struct fairwq_batch *a;
	unsigned int i;

	mock_pool(test, 1 + NR_SLEEPERS, FAIRWQ_ROUND_ROBIN);
	a = mock_batch(test, "a");
	init_completion(&all_may_go);
	fairwq_batch_pause(a);
	for (i = 0; i < NR_SLEEPERS; i++) {
		fairwq_work_init(&sleeper[i].work, sleeper_fn);
		init_completion(&sleeper[i].entered);
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &sleeper[i].work));
	}
	fairwq_batch_resume(a);
	for (i = 0; i < NR_SLEEPERS; i++)
		mock_await(test, &sleeper[i].entered);
	complete_all(&all_may_go);
	fairwq_batch_flush(a);
	fairwq_batch_dispose(a);
}

/*
 * A runner that goes on with a serializer charges a batch of which it foresees a
 * plain item: that one goes back, and is not forgotten there.
 */
static void streak_gives_back_what_was_foreseen(struct kunit *test)
{
	struct mock_item *first, *second;
	struct fairwq_serializer serial;
	struct fairwq_batch *a;

	mock_pool(test, 1, FAIRWQ_ROUND_ROBIN);
	a = mock_batch(test, "a");
	first = mock_item(test, '1');
	second = mock_item(test, '2');
	fairwq_serializer_init(&serial);
	fairwq_serializer_set_inline(&serial, 10000);
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&serial, a, &first->work));
	mock_queue(test, a, 'x', 1);
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&serial, a, &second->work));
	mock_expect(test, "12x");
	fairwq_batch_flush(a);
	fairwq_serializer_destroy(&serial);
	fairwq_batch_dispose(a);
}

static int foresight_init(struct kunit *test)
{
	int err = mock_init(test);
	struct mock *mock = test->priv;

	if (!err)
		mock->flags = FAIRWQ_STRICT_TURNS;
	return err;
}

static void foresight_exit(struct kunit *test)
{
	WRITE_ONCE(fairwq_test_no_foresight, false);
	mock_exit(test);
}

static struct kunit_case foresight_cases[] = {
	KUNIT_CASE(foreseen_turns_are_strict),
	KUNIT_CASE(sleepers_do_not_keep_what_was_foreseen),
	KUNIT_CASE(streak_gives_back_what_was_foreseen),
	{}
};

static struct kunit_suite foresight_suite = {
	.name = "fairwq_foresight",
	.init = foresight_init,
	.exit = foresight_exit,
	.test_cases = foresight_cases,
};

kunit_test_suite(foresight_suite);

MODULE_DESCRIPTION("KUnit: strict turns, foreseen");
MODULE_LICENSE("GPL");
