// SPDX-License-Identifier: GPL-2.0
/*
 * Sleepers: clients that sleep in order to get more than their share, and
 * others beside them (promises 6 and 7). They are judged by the scheduler's
 * account of their tasks, and by counts of their own.
 */
#include <linux/atomic.h>
#include <linux/sched.h>

#include "lib/client.h"

#define MAX_ITEMS	12U

/* A client whose items sleep, use a CPU, and queue themselves again. */
struct sleeper {
	struct fairwq_batch *batch;
	struct fairwq_work work[MAX_ITEMS];
	unsigned int naps;		/* sleeps of some 10 us in an item */
	unsigned int ticks;		/* length of one more sleep */
	u64 burn;			/* ns of a CPU in an item, after that */
	bool stop;
	atomic64_t used;		/* ns of a CPU, in all items that have ended */
	u64 longest;			/* ns from the begin of an item to its end, or about */
	u64 dearest;			/* ns of a CPU in one item, or about */
};

/* What the items of a case share. */
static struct {
	struct sleeper client[2];
	atomic_t asleep, running, most, ended;
	atomic_t most_asleep;
	struct completion wake;
	bool stop;
} hall;

static u64 cpu_used(void)
{
	return READ_ONCE(current->se.sum_exec_runtime);
}

static void sleeper_run(struct sleeper *client, struct fairwq_work *work)
{
	u64 begin = cpu_used(), at = ktime_get_ns(), used;
	unsigned int i;

	for (i = 0; i < client->naps; i++)
		usleep_range(10, 20);
	if (client->ticks)
		schedule_timeout_uninterruptible(client->ticks);
	if (client->burn)
		mock_burn(client->burn);
	used = cpu_used() - begin;
	atomic64_add(used, &client->used);
	WRITE_ONCE(client->dearest, max(READ_ONCE(client->dearest), used));
	WRITE_ONCE(client->longest, max(READ_ONCE(client->longest), ktime_get_ns() - at));
	if (!READ_ONCE(client->stop))
		mock_may_refuse(fairwq_queue(client->batch, work));
}

static void first_fn(struct fairwq_work *work)
{
	sleeper_run(&hall.client[0], work);
}

static void second_fn(struct fairwq_work *work)
{
	sleeper_run(&hall.client[1], work);
}

static struct fairwq_pool *pool_new(struct kunit *test, const struct fairwq_pool_attrs *attrs)
{
	struct mock *mock = test->priv;

	memset(&hall, 0, sizeof(hall));
	init_completion(&hall.wake);
	mock->pool = fairwq_pool_create(attrs, "sleepers");
	KUNIT_ASSERT_FALSE(test, IS_ERR(mock->pool));
	return mock->pool;
}

/* Let client @which of @pool begin, with @nr items. */
static void sleeper_begin(struct kunit *test, struct fairwq_pool *pool, unsigned int which,
			  unsigned int nr)
{
	struct sleeper *client = &hall.client[which];
	unsigned int i;

	client->batch = fairwq_batch_create(pool, NULL, "client-%u", which);
	KUNIT_ASSERT_FALSE(test, IS_ERR(client->batch));
	for (i = 0; i < nr; i++) {
		fairwq_work_init(&client->work[i], which ? second_fn : first_fn);
		KUNIT_EXPECT_EQ(test, 1, fairwq_queue(client->batch, &client->work[i]));
	}
}

static void sleepers_end(void)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		WRITE_ONCE(hall.client[i].stop, true);
	for (i = 0; i < 2; i++) {
		fairwq_batch_flush(hall.client[i].batch);
		fairwq_batch_dispose(hall.client[i].batch);
	}
}

static u64 used_by(unsigned int which)
{
	return atomic64_read(&hall.client[which].used);
}

/* ---- shares ---------------------------------------------------------------- */

#define TICKS_USED	240ULL

/*
 * Items that sleep for two ticks lose their seats, and then use CPUs without
 * one. They pay for that: their client gets no more than one that never sleeps.
 * Each of its items may be ahead by one turn. That may be long if the machine
 * was stopped, because the scheduler counts this as use of the CPU.
 */
static void burn_after_a_sleep_is_paid(struct kunit *test)
{
	struct fairwq_pool *pool = pool_new(test, &(struct fairwq_pool_attrs){
		.max_active = 1, .policy = FAIRWQ_FAIR_TIME });
	const u64 tick = TICK_NSEC;
	u64 turn;

	hall.client[0].ticks = 2;
	hall.client[0].burn = 4 * tick;
	hall.client[1].burn = tick;
	sleeper_begin(test, pool, 0, 6);
	sleeper_begin(test, pool, 1, 4);
	mock_until(test, used_by(0) + used_by(1) >= TICKS_USED * tick);
	kunit_info(test, "ticks of a CPU: sleeps %llu, never sleeps %llu\n",
		   div64_u64(used_by(0), tick), div64_u64(used_by(1), tick));
	turn = max(7 * tick, READ_ONCE(hall.client[0].dearest));
	KUNIT_EXPECT_LE(test, used_by(0), used_by(1) + 6 * turn);
	sleepers_end();
}

/* ---- the wait of a quiet client ------------------------------------------------ */

#define ROUNDS	40U

struct quiet {
	struct fairwq_work work;
	struct completion done;
	u64 queued, wait[ROUNDS];
	unsigned int nr;
};

static void quiet_fn(struct fairwq_work *work)
{
	struct quiet *quiet = container_of(work, struct quiet, work);

	quiet->wait[quiet->nr++] = ktime_get_ns() - quiet->queued;
	complete(&quiet->done);
}

/*
 * A client with an item now and then waits no longer beside items that sleep
 * and wake up all the time than beside items that compute, but for some ticks.
 * Two pools are asked in turns. If only a tick can find such an item, it may
 * keep its seat until it ends.
 */
static void quiet_client_waits_no_longer(struct kunit *test)
{
	const struct fairwq_pool_attrs attrs = { .max_active = 1 };
	struct quiet *quiet = kunit_kcalloc(test, 2, sizeof(*quiet), GFP_KERNEL);
	struct fairwq_pool *pool[2];
	unsigned int i, k;
	u64 wait, control, longest;

	KUNIT_ASSERT_NOT_NULL(test, quiet);
	pool[0] = pool_new(test, &attrs);
	pool[1] = fairwq_pool_create(&attrs, "control");
	KUNIT_ASSERT_FALSE(test, IS_ERR(pool[1]));
	hall.client[0].naps = 60;
	hall.client[1].burn = TICK_NSEC;
	for (k = 0; k < 2; k++) {
		sleeper_begin(test, pool[k], k, 8);
		fairwq_work_init(&quiet[k].work, quiet_fn);
		init_completion(&quiet[k].done);
	}
	for (i = 0; i < 2 * ROUNDS; i++) {
		k = i % 2;
		schedule_timeout_uninterruptible(i % 3);
		quiet[k].queued = ktime_get_ns();
		KUNIT_EXPECT_EQ(test, 1, mock_pool_queue(pool[k], &quiet[k].work));
		mock_wait(&quiet[k].done);
	}
	sleepers_end();
	for (k = 0; k < 2; k++)
		fairwq_work_flush(&quiet[k].work);
	fairwq_pool_destroy(pool[1]);
	wait = mock_median(quiet[0].wait, ROUNDS);
	control = mock_median(quiet[1].wait, ROUNDS);
	longest = READ_ONCE(hall.client[0].longest);
	kunit_info(test, "median wait, us: beside sleepers %llu, beside computing items %llu; longest item %llu\n",
		   div_u64(wait, 1000), div_u64(control, 1000), div_u64(longest, 1000));
	KUNIT_EXPECT_LE(test, wait, 3 * control + 4ULL * TICK_NSEC +
				    (MOCK_NOTIFIED ? 0 : longest));
}

/* ---- what counts as asleep ------------------------------------------------- */

/* Count one more in @nr, and note in @most how many there were. */
static void note_one(atomic_t *nr, atomic_t *most)
{
	int now = atomic_inc_return(nr), old = atomic_read(most);

	while (old < now && !atomic_try_cmpxchg(most, &old, now))
		;
}

static void note_running(void)
{
	note_one(&hall.running, &hall.most);
}

static void computing_fn(struct fairwq_work *work)
{
	note_running();
	mock_burn(3ULL * TICK_NSEC);
	atomic_dec(&hall.running);
	atomic_inc(&hall.ended);
}

static void hog_call(void *arg)
{
	while (!READ_ONCE(hall.stop))
		cond_resched();
}

#define NR_COMPUTING	8U
#define NR_HOGS		4U

/* An item that waits for a CPU is not asleep: no other one begins meanwhile. */
static void preempted_item_keeps_its_seat(struct kunit *test)
{
	struct fairwq_pool *pool = pool_new(test, &(struct fairwq_pool_attrs){ .max_active = 1 });
	struct fairwq_work *work = kunit_kcalloc(test, NR_COMPUTING, sizeof(*work), GFP_KERNEL);
	struct caller *hog[NR_HOGS];
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, work);
	for (i = 0; i < NR_HOGS; i++)
		hog[i] = mock_caller(test, hog_call, NULL);
	for (i = 0; i < NR_COMPUTING; i++) {
		fairwq_work_init(&work[i], computing_fn);
		KUNIT_EXPECT_EQ(test, 1, mock_pool_queue(pool, &work[i]));
	}
	KUNIT_EXPECT_TRUE(test, mock_within(atomic_read(&hall.ended) == NR_COMPUTING));
	WRITE_ONCE(hall.stop, true);
	for (i = 0; i < NR_HOGS; i++)
		mock_caller_end(test, hog[i]);
	fairwq_pool_flush(pool);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&hall.most));
}

static void nap_fn(struct fairwq_work *work)
{
	note_one(&hall.asleep, &hall.most_asleep);
	usleep_range(10, 20);
	atomic_dec(&hall.asleep);
	note_running();
	mock_burn(6ULL * TICK_NSEC);
	atomic_dec(&hall.running);
	atomic_inc(&hall.ended);
}

#define NAPS	40U
#define NAP_SEATS	2

/*
 * An item that has slept once is no excuse for others to begin beside it for as
 * long as it runs. No more run than may begin while the most of them sleep.
 */
static void items_that_slept_once_keep_to_the_seats(struct kunit *test)
{
	struct fairwq_pool *pool = pool_new(test, &(struct fairwq_pool_attrs){
		.max_active = NAP_SEATS });
	struct fairwq_work *work = kunit_kcalloc(test, NAPS, sizeof(*work), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, work);
	for (i = 0; i < NAPS; i++) {
		fairwq_work_init(&work[i], nap_fn);
		KUNIT_EXPECT_EQ(test, 1, mock_pool_queue(pool, &work[i]));
	}
	KUNIT_EXPECT_TRUE(test, mock_within(atomic_read(&hall.ended) == NAPS));
	fairwq_pool_flush(pool);
	kunit_info(test, "of %u items %d ran at once, and %d slept at once\n", NAPS,
		   atomic_read(&hall.most), atomic_read(&hall.most_asleep));
	/* Two may begin until those that run do not count as napping any more. */
	KUNIT_EXPECT_LE(test, atomic_read(&hall.most),
			NAP_SEATS + atomic_read(&hall.most_asleep) + 2);
}

#define HERD	(MOCK_WATCHED ? 40U : 100U)

static void herd_fn(struct fairwq_work *work)
{
	atomic_inc(&hall.asleep);
	wait_for_completion(&hall.wake);
	mock_burn(TICK_NSEC / 2);
	atomic_inc(&hall.ended);
}

/* Many items wake up at once. They run, and others never have more seats than there are. */
static void seats_are_no_more_beside_a_herd(struct kunit *test)
{
	struct fairwq_pool *pool = pool_new(test, &(struct fairwq_pool_attrs){ .max_active = 2 });
	struct fairwq_work *work = kunit_kcalloc(test, HERD + NR_COMPUTING, sizeof(*work),
						 GFP_KERNEL);
	struct fairwq_batch *fresh = fairwq_batch_create(pool, NULL, "fresh");
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, work);
	KUNIT_ASSERT_FALSE(test, IS_ERR(fresh));
	for (i = 0; i < HERD; i++) {
		fairwq_work_init(&work[i], herd_fn);
		KUNIT_EXPECT_EQ(test, 1, mock_pool_queue(pool, &work[i]));
	}
	KUNIT_EXPECT_TRUE(test, mock_within(atomic_read(&hall.asleep) == HERD));
	for (; i < HERD + NR_COMPUTING; i++) {
		fairwq_work_init(&work[i], computing_fn);
		KUNIT_EXPECT_EQ(test, 1, fairwq_queue(fresh, &work[i]));
	}
	KUNIT_EXPECT_TRUE(test, mock_within(atomic_read(&hall.running)));
	complete_all(&hall.wake);
	KUNIT_EXPECT_TRUE(test, mock_within(atomic_read(&hall.ended) == HERD + NR_COMPUTING));
	fairwq_batch_dispose(fresh);
	fairwq_pool_flush(pool);
	KUNIT_EXPECT_LE(test, atomic_read(&hall.most), 2);
}

/* If a case has failed, its items must end before their pool can go. */
static void sleepers_exit(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		WRITE_ONCE(hall.client[i].stop, true);
	complete_all(&hall.wake);
	mock_exit(test);
}

static struct kunit_case sleepers_cases[] = {
	KUNIT_CASE(burn_after_a_sleep_is_paid),
	KUNIT_CASE(quiet_client_waits_no_longer),
	KUNIT_CASE(preempted_item_keeps_its_seat),
	KUNIT_CASE(items_that_slept_once_keep_to_the_seats),
	KUNIT_CASE(seats_are_no_more_beside_a_herd),
	{ }
};

static struct kunit_suite sleepers_suite = {
	.name = "fairwq_sleepers",
	.init = mock_init,
	.exit = sleepers_exit,
	.test_cases = sleepers_cases,
};

kunit_test_suite(sleepers_suite);

MODULE_DESCRIPTION("KUnit: clients that sleep in order to get more");
MODULE_LICENSE("GPL");
