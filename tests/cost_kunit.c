// SPDX-License-Identifier: GPL-2.0
/*
 * Fair cost (promise 6): batches share the cost that the client names for their
 * items, however long the items take.
 */
#include "lib/fixture.h"

/* An item that costs @bytes, and queues itself again until the case ends. */
struct transfer {
	struct fairwq_work work;
	struct fairwq_serializer *serializer;	/* or NULL: queue to @batch itself */
	struct fairwq_batch *batch;
	struct side *side;
	u32 bytes;
	u32 then;			/* what it costs after its first run; 0: the same */
	bool renews;			/* queues itself to a new batch each time */
	bool opened;			/* is queued by the one that @opens it */
	struct transfer *opens;		/* or NULL: queues that to a new batch, if it is idle */
};

/* One of the two clients of a case. */
struct side {
	u64 bytes, items;		/* of the items that count; one runner writes */
	bool came;			/* an item of it has run */
};

/*
 * Items count only after both sides have run. One side may run alone until the
 * case has resumed the batch of the other.
 */
static struct {
	unsigned int missing;		/* sides that have not run */
	unsigned long left;		/* items that count, until the case ends */
	struct completion done;
} measure;

static u32 transfer_cost(const struct fairwq_work *work)
{
	return container_of(work, struct transfer, work)->bytes;
}

static int transfer_queue(struct transfer *transfer)
{
	if (transfer->serializer)
		return fairwq_serializer_queue(transfer->serializer, transfer->batch,
					       &transfer->work);
	return fairwq_queue(transfer->batch, &transfer->work);
}

/* Replace the batch of @transfer by a new one, unless there is no memory for it. */
static void transfer_renew(struct transfer *transfer)
{
	struct fairwq_batch *old = transfer->batch;
	struct fairwq_batch *new = fairwq_batch_create(old->pool, NULL, "new");

	if (IS_ERR(new))
		return;
	transfer->batch = new;
	fairwq_batch_dispose(old);
}

static void transfer_fn(struct fairwq_work *work)
{
	struct transfer *transfer = container_of(work, struct transfer, work);

	if (transfer->renews)
		transfer_renew(transfer);
	if (!measure.left)
		return;
	if (transfer->opens && !fairwq_work_pending(&transfer->opens->work)) {
		transfer_renew(transfer->opens);
		mock_may_refuse(transfer_queue(transfer->opens));
	}
	if (!transfer->side->came) {
		transfer->side->came = true;
		measure.missing--;
	}
	if (transfer->then)
		transfer->bytes = transfer->then;
	if (measure.missing) {
		if (!transfer->opened)
			mock_may_refuse(transfer_queue(transfer));
		return;
	}
	transfer->side->bytes += transfer->bytes;
	transfer->side->items++;
	if (!--measure.left)
		complete(&measure.done);
	else if (!transfer->opened)
		mock_may_refuse(transfer_queue(transfer));
}

#define NR_TRANSFERS	8	/* of a side, in flight at once */

static const struct fairwq_pool_attrs by_cost = {
	.max_active = 1, .policy = FAIRWQ_FAIR_COST, .cost = transfer_cost,
};

static struct fairwq_pool *cost_pool(struct kunit *test)
{
	struct fairwq_pool *pool = fairwq_pool_create(&by_cost, "cost");

	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	measure.missing = 2;
	measure.left = MOCK_MANY(20000);
	init_completion(&measure.done);
	return pool;
}

/* Make NR_TRANSFERS items of @bytes each. */
static struct transfer *transfers(struct kunit *test, struct fairwq_batch *batch,
				  struct side *side, u32 bytes)
{
	struct transfer *transfer = kunit_kcalloc(test, NR_TRANSFERS, sizeof(*transfer),
						  GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, transfer);
	for (i = 0; i < NR_TRANSFERS; i++) {
		fairwq_work_init(&transfer[i].work, transfer_fn);
		transfer[i].batch = batch;
		transfer[i].side = side;
		transfer[i].bytes = bytes;
	}
	return transfer;
}

/* Queue the items of both sides while their batches are paused, and run them to the end. */
static void transfers_run(struct kunit *test, struct transfer *a, struct transfer *b)
{
	int i;

	fairwq_batch_pause(a->batch);
	fairwq_batch_pause(b->batch);
	for (i = 0; i < NR_TRANSFERS; i++) {
		KUNIT_EXPECT_EQ(test, 1, transfer_queue(&a[i]));
		KUNIT_EXPECT_EQ(test, 1, transfer_queue(&b[i]));
	}
	fairwq_batch_resume(a->batch);
	fairwq_batch_resume(b->batch);
	mock_await(test, &measure.done);
}

/* Return the share of @side in the bytes of both sides, in thousandths. */
static u64 share(const struct side *side, const struct side *other)
{
	return div64_u64(side->bytes * 1000, side->bytes + other->bytes + 1);
}

/*
 * Run two sides: the first with items of 4 KiB and @weight, the second with
 * items of 64 KiB, through @serializer if that is not NULL. Return: the share
 * of the first.
 */
static u64 share_of_two(struct kunit *test, unsigned int weight,
			struct fairwq_serializer *serializer)
{
	struct fairwq_batch_attrs attrs = { .weight = weight };
	struct fairwq_pool *pool = cost_pool(test);
	struct fairwq_batch *small = fairwq_batch_create(pool, &attrs, "small");
	struct fairwq_batch *large = fairwq_batch_create(pool, NULL, "large");
	struct side a = { }, b = { };
	struct transfer *few = transfers(test, small, &a, 4096);
	struct transfer *many = transfers(test, large, &b, 65536);
	int i;

	for (i = 0; i < NR_TRANSFERS; i++)
		many[i].serializer = serializer;
	transfers_run(test, few, many);
	if (serializer)
		fairwq_serializer_flush(serializer);
	fairwq_pool_flush(pool);
	fairwq_batch_dispose(small);
	fairwq_batch_dispose(large);
	fairwq_pool_destroy(pool);
	return share(&a, &b);
}

/*
 * A batch waits long after its own long item, while another one makes up for
 * that.
 */
static void wait_after_an_own_long_item_is_fair(struct kunit *test)
{
	struct fairwq_pool *pool = cost_pool(test);
	struct fairwq_batch *once = fairwq_batch_create(pool, NULL, "once");
	struct fairwq_batch *often = fairwq_batch_create(pool, NULL, "often");
	struct side a = { }, b = { };
	struct transfer *few = transfers(test, once, &a, 4096);
	struct transfer *many = transfers(test, often, &b, 4096);

	few[0].bytes = 20000 * 4096;
	few[0].then = 4096;
	measure.left = 30000;
	transfers_run(test, many, few);		/* "often" runs alone until "once" is resumed */
	fairwq_pool_flush(pool);
	KUNIT_EXPECT_GE(test, a.items, 1000ULL);
	KUNIT_EXPECT_GE(test, b.items, 20000ULL);
	fairwq_batch_dispose(once);
	fairwq_batch_dispose(often);
	fairwq_pool_destroy(pool);
}

/* Each side gets half of the bytes, though its items cost 4 KiB or 64 KiB each. */
static void shares_are_of_cost(struct kunit *test)
{
	u64 got = share_of_two(test, FAIRWQ_DFL_WEIGHT, NULL);

	KUNIT_EXPECT_GE(test, got, 490ULL);
	KUNIT_EXPECT_LE(test, got, 510ULL);
}

/* A side with three times the weight gets three quarters of the bytes. */
static void weights_count(struct kunit *test)
{
	u64 got = share_of_two(test, 3 * FAIRWQ_DFL_WEIGHT, NULL);

	KUNIT_EXPECT_GE(test, got, 735ULL);
	KUNIT_EXPECT_LE(test, got, 765ULL);
}

/* Each item of a serializer is charged as a turn, also if a burst is allowed. */
static void items_of_a_serializer_pay_each(struct kunit *test)
{
	struct fairwq_serializer serializer;
	u64 got;

	fairwq_serializer_init(&serializer);
	KUNIT_ASSERT_EQ(test, 0, fairwq_serializer_set_inline(&serializer, 1000));
	got = share_of_two(test, FAIRWQ_DFL_WEIGHT, &serializer);
	fairwq_serializer_destroy(&serializer);
	KUNIT_EXPECT_GE(test, got, 490ULL);
	KUNIT_EXPECT_LE(test, got, 510ULL);
}

/* A side whose items come in a new batch each time does not put off the other side. */
static void new_batches_do_not_starve(struct kunit *test)
{
	struct fairwq_pool *pool = cost_pool(test);
	struct fairwq_batch *old = fairwq_batch_create(pool, NULL, "old");
	struct fairwq_batch *new = fairwq_batch_create(pool, NULL, "new");
	struct side a = { }, b = { };
	struct transfer *first = transfers(test, old, &a, 1000);
	struct transfer *second = transfers(test, new, &b, 1000);
	int i;

	measure.left = 4000;
	second->renews = true;
	fairwq_batch_pause(old);
	fairwq_batch_pause(new);
	for (i = 0; i < NR_TRANSFERS; i++)
		KUNIT_EXPECT_EQ(test, 1, transfer_queue(&first[i]));
	KUNIT_EXPECT_EQ(test, 1, transfer_queue(second));
	fairwq_batch_resume(old);
	fairwq_batch_resume(new);
	mock_await(test, &measure.done);
	fairwq_pool_flush(pool);
	KUNIT_EXPECT_GE(test, share(&a, &b), 450ULL);
	fairwq_batch_dispose(old);
	fairwq_batch_dispose(second->batch);
	fairwq_pool_destroy(pool);
}

/*
 * A client with small items opens a batch for one large item after the other,
 * as for requests. It has its share nevertheless: half of the cost.
 */
static void new_batches_of_large_items_do_not_starve(struct kunit *test)
{
	struct fairwq_pool *pool = cost_pool(test);
	struct fairwq_batch *old = fairwq_batch_create(pool, NULL, "old");
	struct fairwq_batch *new = fairwq_batch_create(pool, NULL, "new");
	struct side a = { }, b = { };
	struct transfer *first = transfers(test, old, &a, 10);
	struct transfer *second = transfers(test, new, &b, 1000);

	measure.left = 10000;
	second->opened = true;
	first->opens = second;
	KUNIT_EXPECT_EQ(test, 1, transfer_queue(first));
	mock_await(test, &measure.done);
	fairwq_pool_flush(pool);
	KUNIT_EXPECT_GE(test, share(&a, &b), 450ULL);
	KUNIT_EXPECT_LE(test, share(&a, &b), 550ULL);
	fairwq_batch_dispose(old);
	fairwq_batch_dispose(second->batch);
	fairwq_pool_destroy(pool);
}

/* ---- one turn that costs much ------------------------------------------- */

/* Turns that a client with a backlog has beside another client that has one item. */
#define BACKLOG		2000U

/* An item of a case with one such turn, before these two. */
struct priced {
	struct transfer transfer;	/* the first, for transfer_cost() */
	unsigned int left;		/* times that it is to be queued again */
	unsigned int *turns;		/* where it counts its turns */
	unsigned int seen;		/* @turns, when it ran for the first time */
	struct priced *then;		/* queued by the turn number @at; or NULL */
	unsigned int at;
	struct completion done;
};

static void priced_fn(struct fairwq_work *work)
{
	struct priced *priced = container_of(work, struct priced, transfer.work);
	struct priced *then = priced->then;

	if (!priced->left) {
		priced->seen = *priced->turns;
		complete(&priced->done);
		return;
	}
	if (++*priced->turns == priced->at && then)
		mock_may_refuse(transfer_queue(&then->transfer));
	if (--priced->left)
		mock_may_refuse(transfer_queue(&priced->transfer));
	else
		complete(&priced->done);
}

static struct priced *priced(struct kunit *test, struct fairwq_batch *batch, u32 cost,
			     unsigned int *turns)
{
	struct priced *priced = kunit_kzalloc(test, sizeof(*priced), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, priced);
	fairwq_work_init(&priced->transfer.work, priced_fn);
	priced->transfer.batch = batch;
	priced->transfer.bytes = cost;
	priced->turns = turns;
	init_completion(&priced->done);
	return priced;
}

/*
 * After one turn that cost @cost, let a client with a backlog of turns that
 * cost 1 run beside a client of @prio that comes then. Return: how many turns
 * the first one had before the first turn of the other.
 */
static unsigned int wait_after_a_turn_of(struct kunit *test, u32 cost, enum fairwq_prio prio)
{
	const struct fairwq_batch_attrs attrs = { .prio = prio };
	struct fairwq_pool *pool = cost_pool(test);
	struct fairwq_batch *once = fairwq_batch_create(pool, NULL, "once");
	struct fairwq_batch *often = fairwq_batch_create(pool, NULL, "often");
	struct fairwq_batch *late = fairwq_batch_create(pool, &attrs, "late");
	unsigned int turns = 0;
	struct priced *large = priced(test, once, cost, &turns);
	struct priced *small = priced(test, often, 1, &turns);
	struct priced *other = priced(test, late, 1, &turns);

	KUNIT_EXPECT_EQ(test, 1, transfer_queue(&large->transfer));
	mock_await(test, &large->done);
	small->left = BACKLOG;
	small->then = other;
	small->at = 10;
	KUNIT_EXPECT_EQ(test, 1, transfer_queue(&small->transfer));
	mock_await(test, &small->done);
	mock_await(test, &other->done);
	fairwq_pool_flush(pool);
	fairwq_batch_dispose(once);
	fairwq_batch_dispose(often);
	fairwq_batch_dispose(late);
	fairwq_pool_destroy(pool);
	return other->seen - small->at;
}

/* A turn that has cost much is no reason for a newcomer to wait (promise 6). */
static void newcomer_does_not_wait_for_an_old_turn(struct kunit *test)
{
	unsigned int waited = wait_after_a_turn_of(test, BIT(20), FAIRWQ_PRIO_NORMAL);

	KUNIT_EXPECT_LE(test, wait_after_a_turn_of(test, 1, FAIRWQ_PRIO_NORMAL), 16U);
	KUNIT_EXPECT_LE(test, waited, 16U);
}

/* Nor is it one for a lower priority, which gets one turn in 64 (promise 9). */
static void lower_priority_does_not_wait_for_an_old_turn(struct kunit *test)
{
	unsigned int waited = wait_after_a_turn_of(test, BIT(20), FAIRWQ_PRIO_LOW);

	KUNIT_EXPECT_LE(test, wait_after_a_turn_of(test, 1, FAIRWQ_PRIO_LOW), 128U);
	KUNIT_EXPECT_LE(test, waited, 128U);
}

/* A client that opens a batch for a large item with each of its turns. */
static struct {
	struct transfer small, large;
	struct priced *low;
	unsigned int turns;
	struct completion done;
} opener;

static void opener_fn(struct fairwq_work *work)
{
	if (++opener.turns == BACKLOG) {
		complete(&opener.done);
		return;
	}
	/* From here on the other client waits, however late the thread of the case is. */
	if (opener.turns == 1)
		mock_may_refuse(transfer_queue(&opener.low->transfer));
	mock_may_refuse(transfer_queue(&opener.small));
	fairwq_work_cancel(&opener.large.work);
	transfer_renew(&opener.large);
	mock_may_refuse(transfer_queue(&opener.large));
}

/* Nor do large items of newcomers, which have not begun, hold back a lower priority. */
static void lower_priority_does_not_wait_for_newcomers(struct kunit *test)
{
	const struct fairwq_batch_attrs attrs = { .prio = FAIRWQ_PRIO_LOW };
	struct fairwq_pool *pool = cost_pool(test);
	struct fairwq_batch *high = fairwq_batch_create(pool, NULL, "high");
	struct fairwq_batch *low = fairwq_batch_create(pool, &attrs, "low");

	memset(&opener, 0, sizeof(opener));
	init_completion(&opener.done);
	fairwq_work_init(&opener.small.work, opener_fn);
	fairwq_work_init(&opener.large.work, mock_nothing_fn);
	opener.small.batch = high;
	opener.small.bytes = 1;
	opener.large.batch = fairwq_batch_create(pool, NULL, "new");
	opener.large.bytes = BIT(20);
	opener.low = priced(test, low, 1, &opener.turns);
	KUNIT_EXPECT_EQ(test, 1, transfer_queue(&opener.small));
	mock_await(test, &opener.done);
	mock_await(test, &opener.low->done);
	fairwq_pool_flush(pool);
	KUNIT_EXPECT_LE(test, opener.low->seen, 128U);
	fairwq_batch_dispose(high);
	fairwq_batch_dispose(low);
	fairwq_batch_dispose(opener.large.batch);
	fairwq_pool_destroy(pool);
}

/* A pool with FAIRWQ_FAIR_COST is refused without a cost function. */
static void cost_is_needed(struct kunit *test)
{
	static const struct fairwq_pool_attrs none = { .policy = FAIRWQ_FAIR_COST };

	KUNIT_EXPECT_EQ(test, -EINVAL, (int)PTR_ERR(fairwq_pool_create(&none, "none")));
}

static struct kunit_case cost_cases[] = {
	KUNIT_CASE(shares_are_of_cost),
	KUNIT_CASE(wait_after_an_own_long_item_is_fair),
	KUNIT_CASE(weights_count),
	KUNIT_CASE(items_of_a_serializer_pay_each),
	KUNIT_CASE(new_batches_do_not_starve),
	KUNIT_CASE(new_batches_of_large_items_do_not_starve),
	KUNIT_CASE(newcomer_does_not_wait_for_an_old_turn),
	KUNIT_CASE(lower_priority_does_not_wait_for_an_old_turn),
	KUNIT_CASE(lower_priority_does_not_wait_for_newcomers),
	KUNIT_CASE(cost_is_needed),
	{}
};

static struct kunit_suite cost_suite = {
	.name = "fairwq_cost",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = cost_cases,
};

kunit_test_suite(cost_suite);

MODULE_DESCRIPTION("KUnit: shares of cost");
MODULE_LICENSE("GPL");
