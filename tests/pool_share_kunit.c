// SPDX-License-Identifier: GPL-2.0
/*
 * Shares: what each client of a pool gets, measured by the items alone (promise
 * 6).
 *
 * The shares do not come from the counters of the module. Each item reads a
 * clock, runs for a given time, queues itself again, and adds a turn and its
 * time to the sums of its client. The share of a client is compared with that
 * of an ideal server.
 *
 * A virtual CPU of a busy machine may stall in the middle of an item. Meanwhile
 * a client that runs one item at a time can have nothing else. So in a try with
 * such a client, items of others count only if they begin while that client
 * runs none. A case passes if one of TRIES tries is within its bounds, because
 * a starved client is starved in each try.
 */
#include <linux/hash.h>

#include "lib/fixture.h"

#define MAX_CLIENTS	6U
#define TRIES		(MOCK_PLANTED ? 3U : 12U) /* others may have the CPU in some of them */
#define LENGTH_MS	80U	/* of a try: sum of the lengths of its items */

/* Where an item queues itself after a run. */
enum share_next {
	SHARE_SAME,			/* to the batch of its client */
	SHARE_NEW_BATCH,		/* to a new batch, which is disposed of at once */
	SHARE_NEW_KEY,			/* to the flow of a new key */
	SHARE_SERIALIZER,		/* to that batch, through share->serializer */
	SHARE_LIMITER,			/* to that batch, through share->limiter (1 at a time) */
};

/* What the end of an item does to the batch of the second client. */
enum share_trick {
	SHARE_HONEST,			/* nothing */
	SHARE_CANCEL,			/* cancels its items, and queues them again */
	SHARE_WEIGHT,			/* sets its weight to 1 or 100 */
	SHARE_PAUSE,			/* pauses or resumes it */
	SHARE_AWAY,			/* queues all its items, or lets it run dry */
};

struct share_client {
	struct fairwq_batch *batch;
	enum share_next next;
	struct share *share;
	u32 length;			/* ns that an item runs */
	u32 longer;			/* ns that each item number @every runs */
	unsigned int every;		/* 0: all items run for @length */
	bool sleeps;			/* its items first sleep for that time, which is no cost */
	bool forks;			/* its items run as tasks, which other runners may steal */
	atomic_t nr;			/* items that have begun */
	atomic64_t sum_turns;		/* of its items that count */
	/* What these took, with all that they did, and were to take; ns. */
	atomic64_t sum_time, sum_length;
	u64 longest;			/* of @sum_time; if two end at once, one may be missed */
};

struct share_item {
	struct fairwq_work work;
	struct share_client *client;
	struct llist_node node;		/* in share->held, while it is not queued */
};

struct share {
	struct share_client client[MAX_CLIENTS];
	unsigned int nr;
	struct fairwq_batch *owner;	/* of new batches and flows, or NULL */
	struct fairwq_flows *flows;
	struct fairwq_serializer serializer;
	struct fairwq_serializer limiter;
	enum share_trick trick;
	spinlock_t lock;		/* for SHARE_PAUSE, and the resume at the end */
	atomic_t ended;			/* number of items that have ended */
	struct llist_head held;		/* items of the second client that are not queued */
	atomic64_t key;
	atomic_t running;		/* items of the first client that run */
	bool alone;			/* the first client runs one item at a time */
	atomic64_t left;		/* ns of items that the try has left */
	bool begun;			/* no client is held any more: from here on items count */
	bool over;
	struct completion done;
	struct judge *judge;
};

/* The policy, the runners and the length of items of a try. */
struct share_case {
	const char *name;
	enum fairwq_policy policy;
	unsigned int runners;
	u32 length_us;
};

static const struct share_case share_cases[] = {
	{ "turns 1 runner 2 us", FAIRWQ_ROUND_ROBIN, 1, 2 },
	{ "turns 2 runners 2 us", FAIRWQ_ROUND_ROBIN, 2, 2 },
	{ "turns 1 runner 20 us", FAIRWQ_ROUND_ROBIN, 1, 20 },
	{ "turns 2 runners 20 us", FAIRWQ_ROUND_ROBIN, 2, 20 },
	{ "turns 1 runner 50 us", FAIRWQ_ROUND_ROBIN, 1, 50 },
	{ "turns 2 runners 50 us", FAIRWQ_ROUND_ROBIN, 2, 50 },
	{ "time 1 runner 2 us", FAIRWQ_FAIR_TIME, 1, 2 },
	{ "time 2 runners 2 us", FAIRWQ_FAIR_TIME, 2, 2 },
	{ "time 1 runner 20 us", FAIRWQ_FAIR_TIME, 1, 20 },
	{ "time 2 runners 20 us", FAIRWQ_FAIR_TIME, 2, 20 },
	{ "time 1 runner 50 us", FAIRWQ_FAIR_TIME, 1, 50 },
	{ "time 2 runners 50 us", FAIRWQ_FAIR_TIME, 2, 50 },
};

static void share_case_desc(const struct share_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(share, share_cases, share_case_desc);

static void share_queue_next(struct share_client *client, struct fairwq_work *work)
{
	struct share *share = client->share;
	const struct fairwq_batch_attrs attrs = { .parent = share->owner };
	struct fairwq_batch *batch;

	switch (client->next) {
	case SHARE_SAME:
		mock_may_refuse(fairwq_queue(client->batch, work));
		break;
	case SHARE_NEW_BATCH:
		batch = fairwq_batch_create(client->batch->pool, &attrs, "new");
		if (!IS_ERR(batch))
			mock_may_refuse(fairwq_queue(batch, work));
		fairwq_batch_dispose(batch);
		break;
	case SHARE_NEW_KEY:
		mock_may_refuse(fairwq_flows_queue(share->flows,
						   atomic64_inc_return(&share->key), work));
		break;
	case SHARE_SERIALIZER:
		mock_may_refuse(fairwq_serializer_queue(&share->serializer, client->batch, work));
		break;
	case SHARE_LIMITER:
		mock_may_refuse(fairwq_serializer_queue(&share->limiter, client->batch, work));
		break;
	}
}

static void share_hold(struct fairwq_work *work)
{
	struct share_item *item = container_of(work, struct share_item, work);

	llist_add(&item->node, &item->client->share->held);
}

static void share_queue_held(struct share *share)
{
	struct share_item *item, *next;

	llist_for_each_entry_safe(item, next, llist_del_all(&share->held), node)
		share_queue_next(item->client, &item->work);
}

/*
 * In turn, PHASE items end while the second client has items, and PHASE while
 * it is away or paused.
 */
#define PHASE	20U

static bool share_is_off(unsigned int ended)
{
	return ended / PHASE % 2;
}

/* Return true for about every second number, without a period. */
static bool share_is_hit(unsigned int ended)
{
	return !hash_32(ended, 1);
}

static void share_play_trick(struct share *share)
{
	unsigned int ended = atomic_inc_return(&share->ended);
	struct fairwq_batch *batch = share->client[1].batch;

	switch (share->trick) {
	case SHARE_HONEST:
		break;
	case SHARE_CANCEL:
		if (!share_is_hit(ended))
			break;
		fairwq_batch_cancel(batch, share_hold);
		share_queue_held(share);
		break;
	case SHARE_WEIGHT:
		if (share_is_hit(ended))
			fairwq_batch_set_weight(batch, ended % 2 ? 1 : 100);
		break;
	case SHARE_PAUSE:
		spin_lock(&share->lock);
		if (READ_ONCE(share->over) || !share_is_off(ended))
			fairwq_batch_resume(batch);
		else
			fairwq_batch_pause(batch);
		spin_unlock(&share->lock);
		break;
	case SHARE_AWAY:
		if (!share_is_off(ended))
			share_queue_held(share);
		break;
	}
}

/* Run for @length ns at least. Return: the time that it took, ns. */
static u64 share_pass_time(u32 length)
{
	u64 begin = ktime_get_ns(), took;

	do {
		cpu_relax();
		took = ktime_get_ns() - begin;
	} while (took < length);
	return took;
}

/* A task: one of NR_PARTS parts of an item. */
struct share_part {
	struct fairwq_task task;
	u32 length;
	u64 took;
};

#define NR_PARTS	4U

static void share_part_fn(struct fairwq_task *self)
{
	struct share_part *part = container_of(self, struct share_part, task);

	part->took = share_pass_time(part->length);
}

/*
 * Run for @length ns in all, as NR_PARTS tasks. Return: the sum of their times,
 * less the time that the caller was here, ns. May wrap below 0.
 */
static u64 share_fork(u32 length)
{
	u64 begin = ktime_get_ns(), took = 0;
	struct share_part part[NR_PARTS];
	struct fairwq_task self;
	unsigned int i;

	fairwq_task_here(&self);
	for (i = 0; i < NR_PARTS; i++) {
		fairwq_task_init(&part[i].task, share_part_fn);
		part[i].length = length / NR_PARTS;
		fairwq_fork(&self, &part[i].task);
	}
	while (i--) {
		fairwq_join(&self, &part[i].task);
		took += part[i].took;
	}
	return took - (ktime_get_ns() - begin);
}

/* Queue an item of @client again, or hold it if the trick is to be away. */
static void share_go_on(struct share *share, struct fairwq_work *work,
			struct share_client *client)
{
	if (share->trick == SHARE_AWAY && client != &share->client[0] &&
	    share_is_off(atomic_read(&share->ended)))
		share_hold(work);
	else
		share_queue_next(client, work);
}

static void share_fn(struct fairwq_work *work)
{
	struct share_item *item = container_of(work, struct share_item, work);
	struct share_client *client = item->client;
	struct share *share = client->share;
	bool first = client == &share->client[0], counts;
	u32 length = client->length;
	u64 begin, took, more = 0;

	if (client->sleeps)
		usleep_range(length / NSEC_PER_USEC, length / NSEC_PER_USEC + 1);
	begin = ktime_get_ns();
	if (client->every && !(atomic_inc_return(&client->nr) % client->every))
		length = client->longer;
	counts = first || !share->alone || !atomic_read(&share->running);
	if (first)
		atomic_inc(&share->running);
	if (client->forks)
		more = share_fork(length);
	else
		share_pass_time(length);
	if (first)
		atomic_dec(&share->running);
	if (READ_ONCE(share->over))
		return;
	if (!READ_ONCE(share->begun)) {
		share_queue_next(client, work);
		return;
	}
	atomic64_add(counts, &client->sum_turns);
	atomic64_add(counts ? length : 0, &client->sum_length);
	if (atomic64_sub_return(length, &share->left) < 0) {
		WRITE_ONCE(share->over, true);
		complete_all(&share->done);
	} else {
		share_play_trick(share);
		share_go_on(share, work, client);
	}
	/* Not at each item, because it takes as long as a short one. */
	if (!(begin & 12))
		judge_look(share->judge);
	/* A flush waits for the end of this function, although @item may be queued again. */
	took = counts ? ktime_get_ns() - begin + more : 0;
	atomic64_add(took, &client->sum_time);
	if ((s64)took > (s64)READ_ONCE(client->longest))
		WRITE_ONCE(client->longest, took);
}

static struct share *share_new(struct kunit *test, const struct share_case *c, unsigned int flags)
{
	struct share *share = kunit_kzalloc(test, sizeof(*share), GFP_KERNEL);
	struct mock *mock = test->priv;
	struct fairwq_pool_attrs attrs = {
		.max_active = c->runners, .policy = c->policy, .flags = flags,
	};

	KUNIT_ASSERT_NOT_NULL(test, share);
	init_completion(&share->done);
	spin_lock_init(&share->lock);
	fairwq_serializer_init(&share->serializer);
	fairwq_serializer_set_inline(&share->serializer, 200);
	fairwq_limiter_init(&share->limiter, 1);
	atomic64_set(&share->left, (u64)LENGTH_MS * NSEC_PER_MSEC);
	mock->pool = fairwq_pool_create(&attrs, "share");
	KUNIT_ASSERT_FALSE(test, IS_ERR(mock->pool));
	mock_judge(test);
	share->judge = &mock->judge;
	return share;
}

/* True where a turn takes many times as long as an item of 2 us: emulated or instrumented. */
#define SHARE_SLOW	(!IS_ENABLED(CONFIG_UML) || IS_ENABLED(CONFIG_KASAN))

/* Give a try with short items no more turns than one with items of 20 us, if turns are slow. */
static void share_limit_turns(struct share *share, const struct share_case *c)
{
	if (SHARE_SLOW && c->length_us < 20)
		atomic64_set(&share->left, (u64)LENGTH_MS * NSEC_PER_MSEC * c->length_us / 20);
}

static struct share_client *share_add(struct kunit *test, struct share *share,
				      const struct fairwq_batch_attrs *attrs, u32 length_us)
{
	struct share_client *client = &share->client[share->nr++];
	struct mock *mock = test->priv;

	client->share = share;
	client->length = length_us * NSEC_PER_USEC;
	client->batch = fairwq_batch_create(mock->pool, attrs, "client-%u", share->nr);
	KUNIT_ASSERT_FALSE(test, IS_ERR(client->batch));
	fairwq_batch_pause(client->batch);
	return client;
}

/* Return @nr items of @client, which are not queued. */
static struct share_item *share_items(struct kunit *test, struct share_client *client,
				      unsigned int nr)
{
	struct share_item *item = kunit_kcalloc(test, nr, sizeof(*item), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, item);
	for (i = 0; i < nr; i++) {
		item[i].client = client;
		fairwq_work_init(&item[i].work, share_fn);
	}
	return item;
}

/* Queue @nr items of @client, which is paused until share_run(). */
static void share_queue(struct kunit *test, struct share_client *client, unsigned int nr)
{
	struct share_item *item = share_items(test, client, nr);
	unsigned int i;

	for (i = 0; i < nr; i++)
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(client->batch, &item[i].work));
}

static void share_run(struct kunit *test, struct share *share)
{
	unsigned int i;

	for (i = 0; i < share->nr; i++)
		fairwq_batch_resume(share->client[i].batch);
	WRITE_ONCE(share->begun, true);
	mock_await(test, &share->done);
}

static void share_end(struct kunit *test, struct share *share)
{
	struct mock *mock = test->priv;
	unsigned int i;

	for (i = 0; i < share->nr; i++)
		fairwq_batch_dispose(share->client[i].batch);
	fairwq_serializer_destroy(&share->serializer);
	fairwq_serializer_destroy(&share->limiter);
	judge_set_pool(&mock->judge, NULL);
	fairwq_pool_destroy(mock->pool);
	mock->pool = NULL;
}

/* What a share is of. */
enum share_sum { SHARE_TURNS, SHARE_TIME, SHARE_LENGTH };

/* Return the share of @client in the turns, in run time or in lengths, in thousandths. */
static unsigned int share_of(struct share *share, const struct share_client *client,
			     enum share_sum sum)
{
	u64 all = 0, its = 0, got;
	unsigned int i;

	for (i = 0; i < share->nr; i++) {
		const struct share_client *one = &share->client[i];

		got = atomic64_read(sum == SHARE_TIME ? &one->sum_time :
				    sum == SHARE_LENGTH ? &one->sum_length : &one->sum_turns);
		all += got;
		if (&share->client[i] == client)
			its = got;
	}
	return all ? div64_u64(1000 * its, all) : 0;
}

/*
 * Return the share of @client in the run time, as far as it is due to more than
 * one item: without its longest one, if its share is above @high, or without
 * the longest one of another client, if it is below @low.
 */
static unsigned int share_but_for_one(struct share *share, const struct share_client *client,
				      unsigned int low, unsigned int high)
{
	u64 all = 0, its = atomic64_read(&client->sum_time), other = 0;
	unsigned int i, got = share_of(share, client, SHARE_TIME);

	for (i = 0; i < share->nr; i++) {
		all += atomic64_read(&share->client[i].sum_time);
		if (&share->client[i] != client)
			other = max(other, share->client[i].longest);
	}
	if (got > high)
		return max_t(u64, low, div64_u64(1000 * (its - client->longest),
						 all - client->longest + 1));
	return min_t(u64, high, div64_u64(1000 * its, all - other + 1));
}

/*
 * Return what @client got. If a CPU stalls in an item, this item has a large
 * part of the run time. The other client then gets many turns for it. So under
 * fair time it is enough if the share of run time or that of lengths is within
 * @low and @high, or that of run time would be but for one item, which the
 * client has not paid for when the try ends. A starved client has too little of
 * all, and one that gets too much has too much of all.
 */
static unsigned int share_got(struct share *share, const struct share_client *client,
			      const struct share_case *c, unsigned int low, unsigned int high)
{
	unsigned int got;

	if (c->policy != FAIRWQ_FAIR_TIME)
		return share_of(share, client, SHARE_TURNS);
	got = share_of(share, client, SHARE_TIME);
	if (got < low || got > high)
		got = share_of(share, client, SHARE_LENGTH);
	if (got < low || got > high)
		got = share_but_for_one(share, client, low, high);
	return got;
}

/*
 * Run one try with two clients. The first one may only be able to run one item
 * at a time. Then items of the second count only if they begin while the first
 * runs none.
 *
 * Return: the share of the first client, in thousandths.
 */
static unsigned int share_try(struct kunit *test, unsigned int low, unsigned int high,
			      const struct share_case *c, unsigned int flags,
			      const struct fairwq_batch_attrs *a, unsigned int nr_a,
			      const struct fairwq_batch_attrs *b, unsigned int nr_b)
{
	struct share *share = share_new(test, c, flags);
	struct share_client *first = share_add(test, share, a, c->length_us);
	struct share_client *second = share_add(test, share, b, c->length_us);
	unsigned int got;

	share->alone = nr_a == 1 || (a && a->max_active == 1);
	share_queue(test, first, nr_a);
	share_queue(test, second, nr_b);
	share_run(test, share);
	/* When the pool is empty, the sums do not change any more. */
	fairwq_pool_flush(share->client[0].batch->pool);
	got = share_got(share, first, c, low, high);
	share_end(test, share);
	return got;
}

/* Expect the share of the first client within @low and @high, thousandths, in one of TRIES. */
static void expect_share(struct kunit *test, unsigned int low, unsigned int high,
			 const struct share_case *c, unsigned int flags,
			 const struct fairwq_batch_attrs *a, unsigned int nr_a,
			 const struct fairwq_batch_attrs *b, unsigned int nr_b)
{
	unsigned int i, got = 0;

	for (i = 0; i < TRIES; i++) {
		got = share_try(test, low, high, c, flags, a, nr_a, b, nr_b);
		if (got >= low && got <= high)
			break;
	}
	kunit_info(test, "%s: %u.%u %%\n", c->name, got / 10, got % 10);
	KUNIT_EXPECT_GE(test, got, low);
	KUNIT_EXPECT_LE(test, got, high);
}

static const struct fairwq_batch_attrs plain;
static const struct fairwq_batch_attrs ordered = { .max_active = 1 };
static const struct fairwq_batch_attrs high = { .prio = FAIRWQ_PRIO_HIGH };
static const struct fairwq_batch_attrs low = { .prio = FAIRWQ_PRIO_LOW };

/* A batch with max_active 1 gets its share, which one item at a time can use (promise 6). */
static void limited_batch_gets_its_share(struct kunit *test)
{
	const struct share_case *c = test->param_value;

	/* With fewer CPUs than runners, items also wait for each other's CPU. */
	if (c->runners > num_online_cpus())
		kunit_skip(test, "fewer CPUs than runners");
	expect_share(test, 400, 1000, c, 0, &ordered, 20, &plain, 20);
}

/* The share of a batch does not depend on how many items it has queued (promise 6). */
static void small_backlog_gets_its_share(struct kunit *test)
{
	const struct share_case *c = test->param_value;
	unsigned int off = c->policy == FAIRWQ_FAIR_TIME ? 80 : 10;

	expect_share(test, 500 - off, 500 + off, c, 0, &plain, 20, &plain, 100);
}

/*
 * A client with a single item, which queues itself again, gets its share
 * (promise 6). With two runners the item is parked until its last run has
 * ended. Items that begin meanwhile count for the other client, so the bound is
 * lower.
 */
static void single_item_gets_its_share(struct kunit *test)
{
	const struct share_case *c = test->param_value;

	expect_share(test, c->runners > 1 ? 250 : 400, 1000, c, 0, &plain, 1, &plain, 100);
}

/* LOW gets no more than 1 in 64, however many HIGH items circulate (promise 9). */
static void low_priority_gets_no_more(struct kunit *test)
{
	static const unsigned int nr[] = { 100, 300, 5000 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(nr); i++)
		expect_share(test, 0, 1000 / 64 + 4, test->param_value, 0, &low, 100, &high,
			     nr[i]);
}

/* With FAIRWQ_STRICT_PRIO, LOW gets 1 in 100 at most (promise 9). */
static void strict_priority_does_not_leak(struct kunit *test)
{
	static const unsigned int nr[] = { 100, 300, 5000 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(nr); i++)
		expect_share(test, 0, 10, test->param_value, FAIRWQ_STRICT_PRIO, &low, 100,
			     &high, nr[i]);
}

/* ---- clients that are new each time ------------------------------------------- */

/*
 * Run one try: a client with a backlog, beside @nr items that queue themselves
 * to a new batch or flow each time. Return: the share of that client, in
 * thousandths.
 */
static unsigned int renew_try(struct kunit *test, const struct share_case *c,
			      enum share_next next, bool owner, unsigned int nr)
{
	struct share *share = share_new(test, c, 0);
	struct share_client *first = share_add(test, share, NULL, c->length_us);
	struct share_client *second = share_add(test, share, NULL, c->length_us);
	struct mock *mock = test->priv;
	struct fairwq_batch_attrs attrs = { };
	unsigned int got;

	share_limit_turns(share, c);
	second->next = next;
	if (owner) {
		share->owner = fairwq_batch_create(mock->pool, NULL, "owner");
		KUNIT_ASSERT_FALSE(test, IS_ERR(share->owner));
	}
	attrs.parent = share->owner;
	share->flows = fairwq_flows_create(mock->pool, &attrs);
	KUNIT_ASSERT_FALSE(test, IS_ERR(share->flows));
	share_queue(test, first, 20);
	share_queue(test, second, nr);
	share_run(test, share);
	fairwq_flows_destroy(share->flows);
	fairwq_pool_flush(mock->pool);
	got = share_of(share, first, SHARE_TURNS);
	/* As in share_got(): a starved client has too little of both. */
	if (c->policy == FAIRWQ_FAIR_TIME)
		got = max(got, share_of(share, first, SHARE_TIME));
	fairwq_batch_dispose(share->owner);
	share_end(test, share);
	return got;
}

static void expect_renewed(struct kunit *test, const struct share_case *c, enum share_next next,
			   bool owner, unsigned int nr, unsigned int low)
{
	unsigned int i, got = 0;

	for (i = 0; i < TRIES && got < low; i++)
		got = renew_try(test, c, next, owner, nr);
	kunit_info(test, "%s, %u at a time: %u.%u %%\n", c->name, nr, got / 10, got % 10);
	KUNIT_EXPECT_GE(test, got, low);
}

/*
 * A client with a backlog gets its share beside batches or flows that are
 * always new (promise 6). Under fair time each of these would leave its debt
 * behind when it goes. So there they are below one owner, and count as one
 * client.
 */
static void expect_new_ones(struct kunit *test, enum share_next next)
{
	const struct share_case *c = test->param_value;
	bool owner = c->policy == FAIRWQ_FAIR_TIME;

	expect_renewed(test, c, next, owner, 1, owner ? 400 : 450);
	expect_renewed(test, c, next, owner, 3, owner ? 400 : 220);
}

static void new_batches_do_not_starve(struct kunit *test)
{
	expect_new_ones(test, SHARE_NEW_BATCH);
}

static void new_keys_do_not_starve(struct kunit *test)
{
	expect_new_ones(test, SHARE_NEW_KEY);
}

/*
 * New batches or flows below one owner get one share together. The owner keeps
 * the service of those that are gone.
 */
static void owner_of_new_ones_gets_one_share(struct kunit *test)
{
	unsigned int runners;

	for (runners = 1; runners <= 2; runners++) {
		const struct share_case time = { "2 ms", FAIRWQ_FAIR_TIME, runners, 2000 };
		const struct share_case turns = { "20 us", FAIRWQ_ROUND_ROBIN, runners, 20 };

		expect_renewed(test, &time, SHARE_NEW_BATCH, true, 1, 400);
		expect_renewed(test, &time, SHARE_NEW_KEY, true, 3, 400);
		expect_renewed(test, &turns, SHARE_NEW_KEY, true, 3, 450);
	}
}

/* ---- adversaries -------------------------------------------------------------- */

/* Lengths below are for a first client with items of 20 us. For others they are scaled. */
#define ADVERSARY_US	20U

struct adversary {
	const char *name;
	enum share_next next;
	enum share_trick trick;
	bool by_time;			/* only under fair time: in turns, length does not count */
	bool sleeps, forks;
	unsigned int splits;		/* number of its batches, below one owner; 0: no owner */
	u32 length_us, longer_us;
	unsigned int every;
	unsigned int nr;		/* number of its items; 0: 20 */
	const struct fairwq_batch_attrs *other, *its;
	unsigned int low, high;		/* bounds of the share of the other, thousandths */
};

static const struct adversary adversaries[] = {
	{ "long by turns", .by_time = true, .length_us = 10, .longer_us = 200, .every = 2,
	  .low = 450, .high = 550 },
	{ "long now and then", .by_time = true, .length_us = 10, .longer_us = 400, .every = 20,
	  .low = 450, .high = 550 },
	/* Rarer than the 512 turns after which a longest turn is forgotten. */
	{ "long very rarely", .by_time = true, .length_us = 10, .longer_us = 3000, .every = 600,
	  .low = 430, .high = 570 },
	/* It has no backlog while all its items sleep. */
	{ "sleeps", .sleeps = true, .length_us = 50, .low = 450, .high = 1000 },
	{ "cancels and queues again", .trick = SHARE_CANCEL, .length_us = 20, .low = 450,
	  .high = 1000 },
	{ "changes its weight", .trick = SHARE_WEIGHT, .length_us = 20, .low = 450,
	  .high = 1000 },
	/* It gets one half of one half of the items: a quarter. */
	{ "pauses", .trick = SHARE_PAUSE, .length_us = 20, .low = 650, .high = 850 },
	/* As above, but its 5 queued items still run when it goes away. */
	{ "comes and goes", .trick = SHARE_AWAY, .length_us = 20, .nr = 5, .low = 560,
	  .high = 750 },
	{ "serializer with a budget", .next = SHARE_SERIALIZER, .length_us = 20, .low = 450,
	  .high = 1000 },
	{ "splits", .splits = 4, .length_us = 20, .low = 450, .high = 550 },
	{ "limiter", .next = SHARE_LIMITER, .length_us = 20, .low = 450, .high = 1000 },
	/* Under round robin a stolen task counts as a turn, too. */
	{ "forks", .forks = true, .length_us = 20, .low = 450, .high = 1000 },
	/* Its turns end in joins. It pays itself for sharing tasks and for waiting. */
	{ "forks, long", .by_time = true, .forks = true, .length_us = 800, .low = 450,
	  .high = 1000 },
	{ "high priority", .other = &low, .its = &high, .length_us = 20, .low = 1000 / 64 - 4,
	  .high = 1000 / 64 + 4 },
	{ "high priority, long", .by_time = true, .other = &low, .its = &high,
	  .length_us = 200, .low = 1000 / 64 - 6, .high = 1000 / 64 + 6 },
};

static void adversary_desc(const struct adversary *adversary, char *desc)
{
	strscpy(desc, adversary->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(adversary, adversaries, adversary_desc);

/* Add the other batches of an adversary that has several, each with 20 items. */
static void adversary_split(struct kunit *test, struct share *share,
			    const struct fairwq_batch_attrs *attrs, const struct adversary *a,
			    u32 unit)
{
	unsigned int i;

	for (i = 1; i < a->splits; i++) {
		struct share_client *more = share_add(test, share, attrs, 0);

		more->length = a->length_us * unit;
		share_queue(test, more, 20);
	}
}

static unsigned int adversary_try(struct kunit *test, const struct share_case *c,
				  const struct adversary *a)
{
	struct share *share = share_new(test, c, 0);
	struct share_client *other = share_add(test, share, a->other, c->length_us);
	struct mock *mock = test->priv;
	struct fairwq_batch *owner = a->splits ? mock_own_batch(test, "owner", NULL) : NULL;
	const struct fairwq_batch_attrs below = { .parent = owner };
	struct share_client *its = share_add(test, share, owner ? &below : a->its, 0);
	u32 unit = c->length_us * NSEC_PER_USEC / ADVERSARY_US;
	unsigned int got;

	share_limit_turns(share, c);
	its->next = a->next;
	its->length = a->length_us * unit;
	its->longer = a->longer_us * unit;
	its->every = a->every;
	its->sleeps = a->sleeps;
	its->forks = a->forks;
	share->trick = a->trick;
	share_queue(test, other, 20);
	share_queue(test, its, a->nr ?: 20);
	adversary_split(test, share, &below, a, unit);
	share_run(test, share);
	spin_lock(&share->lock);	/* as the try is over, SHARE_PAUSE only resumes */
	fairwq_batch_resume(its->batch);
	spin_unlock(&share->lock);
	fairwq_serializer_flush(&share->serializer);
	fairwq_serializer_flush(&share->limiter);
	fairwq_pool_flush(mock->pool);
	got = share_got(share, other, c, a->low, a->high);
	if (owner)
		fairwq_batch_dispose(owner);
	share_end(test, share);
	return got;
}

/* A backlog gets its share whatever the adversary does, and the adversary its own (promise 6). */
static void adversary_gets_no_more(struct kunit *test)
{
	const struct adversary *a = test->param_value;
	const struct share_case *c;
	unsigned int i, got;

	for (c = share_cases; c < share_cases + ARRAY_SIZE(share_cases); c++) {
		if (a->by_time && c->policy != FAIRWQ_FAIR_TIME)
			continue;
		/* There such an item takes longer around its function than in it. */
		if (SHARE_SLOW && c->policy == FAIRWQ_FAIR_TIME &&
		    c->length_us < ADVERSARY_US)
			continue;
		for (i = 0, got = 0; i < TRIES; i++) {
			got = adversary_try(test, c, a);
			if (got >= a->low && got <= a->high)
				break;
		}
		kunit_info(test, "%s, %s: %u.%u %%\n", a->name, c->name, got / 10, got % 10);
		KUNIT_EXPECT_GE(test, got, a->low);
		KUNIT_EXPECT_LE(test, got, a->high);
	}
}

/* ---- the judge ------------------------------------------------------------------ */

/* A client that the case makes wait, or not. */
struct unfair {
	const char *name;
	bool owned;
	unsigned int weight;
	s64 turns;			/* that the client is put behind by */
};

static const struct unfair unfair_cases[] = {
	{ "batch", .weight = 100, .turns = 10 },
	{ "heavy batch", .weight = 1000, .turns = 10 },
	{ "batch below an owner", .owned = true, .weight = 100, .turns = 10 },
	{ "none", .weight = 100 },
	{ "none below an owner", .owned = true, .weight = 1000 },
};

static void unfair_desc(const struct unfair *u, char *desc)
{
	strscpy(desc, u->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(unfair, unfair_cases, unfair_desc);

/* The judge of the suites notices a client that is put behind in the tree, and no other one. */
static void judge_sees_the_unfair(struct kunit *test)
{
	const struct unfair *u = test->param_value;
	struct mock *mock = test->priv;
	struct fairwq_batch_attrs attrs = { };
	struct fairwq_batch *owner, *other, *client;

	mock_pool(test, 1);
	owner = mock_batch(test, "owner");
	attrs.parent = u->owned ? owner : NULL;
	other = mock_batch_with(test, "other", &attrs);
	attrs.weight = u->weight;
	client = mock_batch_with(test, "client", &attrs);
	mock_queue(test, other, 'o', 400);
	mock_queue(test, client, 'c', 400);
	raw_spin_lock_irq(&mock->pool->lock);
	client->node.vtime += u->turns * FAIRWQ_COST_TURN;
	client->node.key = client->node.vtime;
	raw_spin_unlock_irq(&mock->pool->lock);
	mock_open(test);
	fairwq_pool_flush(mock->pool);
	KUNIT_EXPECT_GE(test, mock->judge.judged, 400ULL);
	KUNIT_EXPECT_EQ(test, u->turns != 0, mock->judge.missed != 0);
	mock->judge.missed = 0;
}

/* ---- a wrong estimate does not grow --------------------------------------------- */

struct later {
	struct fairwq_work first, second;
	struct share_client *other;
	struct completion ran, done;
	u64 turns;			/* of the other client, between first and second */
};

static void later_second_fn(struct fairwq_work *work)
{
	complete(&container_of(work, struct later, second)->ran);
}

static void later_first_fn(struct fairwq_work *work)
{
	struct later *later = container_of(work, struct later, first);
	u64 before = atomic64_read(&later->other->sum_turns);

	compute_within(completion_done(&later->ran));	/* a sleep would cost nothing */
	later->turns = atomic64_read(&later->other->sum_turns) - before;
	complete(&later->done);
}

/*
 * An item that waits for a later item of its batch does not wait longer each
 * time. The batch has its next turn only after others had as much as it was
 * charged. So the wait is as long as the charge, and the next charge would be
 * as long as the wait. Therefore a turn is charged 10 ms at most. The case
 * counts the wait in turns of 1 ms or more of another client. Each round begins
 * with the estimate that the last one has left.
 */
static void wait_does_not_feed_itself(struct kunit *test)
{
	static const struct share_case c = { "", FAIRWQ_FAIR_TIME, 2, 1000 };
	struct share *share = share_new(test, &c, 0);
	struct later *later = kunit_kzalloc(test, sizeof(*later), GFP_KERNEL);
	struct fairwq_batch *batch;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, later);
	for (i = 0; i < 3; i++) {
		later->other = share_add(test, share, NULL, c.length_us);
		share_queue(test, later->other, 20);
	}
	batch = share_add(test, share, NULL, 0)->batch;
	mock_set_guess(batch, NSEC_PER_SEC);
	init_completion(&later->ran);
	init_completion(&later->done);
	fairwq_work_init(&later->first, later_first_fn);
	fairwq_work_init(&later->second, later_second_fn);
	/* 400 turns of each of the others: more than all rounds take. */
	atomic64_set(&share->left, 3 * 400 * NSEC_PER_MSEC);
	for (i = 0; i < 3; i++)
		fairwq_batch_resume(share->client[i].batch);
	fairwq_batch_resume(batch);
	WRITE_ONCE(share->begun, true);
	for (i = 0; i < 5; i++) {
		reinit_completion(&later->ran);
		reinit_completion(&later->done);
		KUNIT_EXPECT_EQ(test, 1, fairwq_queue(batch, &later->first));
		KUNIT_EXPECT_EQ(test, 1, fairwq_queue(batch, &later->second));
		mock_await(test, &later->done);
		kunit_info(test, "round %u: waited for %llu turns\n", i, later->turns);
		KUNIT_EXPECT_LT(test, later->turns, 100ULL);
	}
	mock_await(test, &share->done);
	fairwq_pool_flush(batch->pool);
	share_end(test, share);
}

/* ---- a pause --------------------------------------------------------------------- */

/* No item of a paused batch starts. After the resume they start in their order. */
static void pause_holds_what_is_queued(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_gate *gate = mock_gate_new(test);
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_batch *b = mock_batch(test, "b");

	mock_set_guess(a, NSEC_PER_USEC);
	mock_set_guess(b, NSEC_PER_USEC);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &gate->work));
	mock_queue(test, b, 'b', 1);
	mock_queue(test, b, 'c', 1);
	mock_queue(test, b, 'd', 1);
	mock_queue(test, a, 'a', 1);
	mock_open(test);
	mock_await(test, &gate->entered);
	/* All these items wait behind the gate. */
	fairwq_batch_pause(b);
	mock_queue(test, b, 'e', 1);
	complete_all(&gate->open);
	mock_until(test, READ_ONCE(mock->log.nr) == 1);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_STREQ(test, "a", &mock->log.text[0]);
	fairwq_batch_resume(b);
	fairwq_batch_flush(b);
	KUNIT_EXPECT_STREQ(test, "abcde", &mock->log.text[0]);
}

static struct kunit_case share_test_cases[] = {
	KUNIT_CASE(pause_holds_what_is_queued),
	KUNIT_CASE(wait_does_not_feed_itself),
	KUNIT_CASE(owner_of_new_ones_gets_one_share),
	KUNIT_CASE_PARAM(limited_batch_gets_its_share, share_gen_params),
	KUNIT_CASE_PARAM(small_backlog_gets_its_share, share_gen_params),
	KUNIT_CASE_PARAM(adversary_gets_no_more, adversary_gen_params),
	KUNIT_CASE_PARAM(single_item_gets_its_share, share_gen_params),
	KUNIT_CASE_PARAM(new_batches_do_not_starve, share_gen_params),
	KUNIT_CASE_PARAM(new_keys_do_not_starve, share_gen_params),
	KUNIT_CASE_PARAM(low_priority_gets_no_more, share_gen_params),
	KUNIT_CASE_PARAM(strict_priority_does_not_leak, share_gen_params),
	KUNIT_CASE_PARAM(judge_sees_the_unfair, unfair_gen_params),
	{}
};

static struct kunit_suite share_suite = {
	.name = "fairwq_pool_share",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = share_test_cases,
};

kunit_test_suite(share_suite);

MODULE_DESCRIPTION("Shares as a client sees them");
MODULE_LICENSE("GPL");
