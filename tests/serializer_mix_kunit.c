// SPDX-License-Identifier: GPL-2.0
/*
 * Serializers and limiters in great numbers, and mixed with the other calls.
 * The cases that force an interleaving are in serializer_kunit.c and
 * limiter_kunit.c.
 *
 * Each item checks inside its function that it is the next of its serializer.
 * It also checks that no other item runs beside it, and that it runs once.
 *
 * The suite fails with each of these planted bugs: SERIAL_LIFO, SERIAL_CANCEL,
 * LIMITER_PLUS_ONE.
 */
#include <linux/hash.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/sched/task_stack.h>
#include <linux/vmalloc.h>

#include "lib/hook.h"

/* The full numbers need a kernel that runs natively and is not instrumented. */
#if defined(CONFIG_KASAN) || defined(CONFIG_PROVE_LOCKING) || defined(CONFIG_KCSAN)
#define DFL_DIVISOR	100
#elif defined(CONFIG_UML)
#define DFL_DIVISOR	1
#else
#define DFL_DIVISOR	20
#endif

static unsigned int divisor;
module_param(divisor, uint, 0444);
MODULE_PARM_DESC(divisor, "of a million items or serializers one in so many is made; 0 (default): by what the kernel is built for");

#define PRODUCERS	4U

/*
 * Wait until @cond holds. A million items take long on a busy machine, so wait
 * as long as @progress changes. Return: false if it stands still for the bound
 * of a wait.
 */
#define met_in_time(cond, progress)					\
	({								\
		unsigned int __seen, __now = UINT_MAX;			\
		bool __met;						\
									\
		do {							\
			__seen = __now;					\
			__met = mock_within(cond);			\
			__now = progress;				\
		} while (!__met && __seen != __now);			\
		__met;							\
	})

/*
 * Return a million, divided by @divisor. The default is much less with more
 * than two CPUs, because there may be more virtual CPUs than real ones. A
 * spinlock goes to the CPU that has waited longest. If the host does not run
 * that one, all others wait.
 */
static unsigned int million(void)
{
	unsigned int dfl = num_online_cpus() > 2 ? 200 * DFL_DIVISOR : DFL_DIVISOR;

	return rounddown(1000000 / (divisor ?: dfl), PRODUCERS);
}

/* ---- threads ----------------------------------------------------------- */

struct producer {
	void (*fn)(struct producer *producer);
	unsigned int id;
	u32 random;
	unsigned int calls;		/* that it has made */
	unsigned int refused;
	struct fairwq_batch *batch;	/* of this producer alone */
	struct task_struct *task;
	struct completion done;
};

/* Not on the stack, because a case that fails may leave threads behind that hang. */
static struct producer producers[PRODUCERS];

static int producer_main(void *data)
{
	struct producer *producer = data;

	producer->fn(producer);
	complete(&producer->done);
	mock_stay();
	return 0;
}

/* Count a call of @producer. Kernels that are not preemptible need a look at the scheduler. */
static void producer_called(struct producer *producer)
{
	WRITE_ONCE(producer->calls, producer->calls + 1);
	cond_resched();
}

static void producers_start(struct kunit *test, void (*fn)(struct producer *producer))
{
	struct producer *producer;
	unsigned int i;

	for (i = 0; i < PRODUCERS; i++) {
		producer = &producers[i];
		*producer = (struct producer) { .fn = fn, .id = i, .random = get_random_u32() };
		init_completion(&producer->done);
		producer->batch = mock_own_batch(test, "own", NULL);
		producer->task = kthread_create(producer_main, producer, "producer");
		KUNIT_ASSERT_FALSE(test, IS_ERR(producer->task));
	}
	for (i = 0; i < PRODUCERS; i++)
		wake_up_process(producers[i].task);
}

static void producers_end(struct kunit *test)
{
	unsigned int i;
	bool ended;

	for (i = 0; i < PRODUCERS; i++) {
		ended = met_in_time(completion_done(&producers[i].done),
				    READ_ONCE(producers[i].calls));
		KUNIT_ASSERT_TRUE_MSG(test, ended, "producer %u hangs", i);
		kthread_stop(producers[i].task);
		KUNIT_EXPECT_EQ(test, 0U, producers[i].refused);
		fairwq_batch_dispose(producers[i].batch);
	}
}

/* ---- a million items through one serializer ---------------------------- */

struct in_line {
	struct fairwq_work work;
	u32 seq;			/* from 0; see line.shared */
	u8 producer;
	u8 runs;
};

/* The serializer and its items. What the items write needs no lock: one runs at a time. */
static struct {
	struct fairwq_serializer serial;
	struct in_line *items;
	struct mutex mutex;		/* for @next_seq and the order of the queue calls */
	u32 next_seq;
	bool shared;			/* one sequence for all items, else one per producer */
	u32 expected[PRODUCERS];
	unsigned int ran, disorder;
	unsigned long low, high;	/* depths of the stack */
} line;

static void in_line_fn(struct fairwq_work *work)
{
	struct in_line *item = container_of(work, struct in_line, work);
	unsigned long depth = (unsigned long)__builtin_frame_address(0) -
			      (unsigned long)task_stack_page(current);
	u32 *expected = &line.expected[line.shared ? 0 : item->producer];

	line.low = min(line.low, depth);
	line.high = max(line.high, depth);
	if (item->seq != *expected)
		line.disorder++;
	*expected = item->seq + 1;
	item->runs++;
	WRITE_ONCE(line.ran, line.ran + 1);
}

static void in_line_queue(struct producer *producer, struct in_line *item)
{
	if (fairwq_serializer_queue(&line.serial, producer->batch, &item->work) != 1)
		producer->refused++;
}

/* Number the items in the order of the queue calls of all producers. */
static void produce_shared(struct producer *producer)
{
	struct in_line *item;
	unsigned int i;

	for (i = 0; i < million() / PRODUCERS; i++) {
		mutex_lock(&line.mutex);
		item = &line.items[line.next_seq];
		item->seq = line.next_seq++;
		in_line_queue(producer, item);
		mutex_unlock(&line.mutex);
		producer_called(producer);
	}
}

/* Number the items of each producer. Nothing orders the calls of different producers. */
static void produce_alone(struct producer *producer)
{
	unsigned int i, nr = million() / PRODUCERS;
	struct in_line *item = &line.items[producer->id * nr];

	for (i = 0; i < nr; i++, item++) {
		item->seq = i;
		item->producer = producer->id;
		in_line_queue(producer, item);
		producer_called(producer);
	}
}

static void line_begin(struct kunit *test, bool shared)
{
	unsigned int i;

	memset(&line, 0, sizeof(line));
	line.shared = shared;
	line.low = ULONG_MAX;
	mutex_init(&line.mutex);
	line.items = vzalloc(array_size(million(), sizeof(*line.items)));
	KUNIT_ASSERT_NOT_NULL(test, line.items);
	for (i = 0; i < million(); i++) {
		fairwq_work_init(&line.items[i].work, in_line_fn);
		cond_resched();
	}
	fairwq_serializer_init(&line.serial);
	mock_pool(test, 4);
}

/*
 * Expect that all items have run, once and in order, at about the same depth of
 * stack. If some do not run, cancel those that wait, so that the case ends.
 */
static void line_end(struct kunit *test)
{
	unsigned int i, wrong = 0;

	if (!met_in_time(READ_ONCE(line.ran) >= million(), READ_ONCE(line.ran))) {
		for (i = 0; i < million(); i++)
			fairwq_work_cancel_sync(&line.items[i].work);
		KUNIT_FAIL(test, "%u of %u have run", line.ran, million());
		return;
	}
	fairwq_serializer_destroy(&line.serial);
	for (i = 0; i < million(); i++) {
		wrong += line.items[i].runs != 1;
		cond_resched();
	}
	vfree(line.items);
	KUNIT_EXPECT_EQ(test, 0U, wrong);
	KUNIT_EXPECT_EQ(test, 0U, line.disorder);
	KUNIT_EXPECT_LT(test, line.high - line.low, 1024UL);
	kunit_info(test, "%u items, stack within %lu bytes\n", line.ran,
		   line.high - line.low);
}

/* Items run in queue order if all of them wait before the first one is admitted. */
static void million_waiting_items_keep_the_order(struct kunit *test)
{
	struct mock_gate *gate = mock_gate_new(test);
	struct fairwq_batch *g;

	line_begin(test, true);
	g = mock_batch(test, "g");
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&line.serial, g, &gate->work));
	mock_await(test, &gate->entered);
	producers_start(test, produce_shared);
	producers_end(test);
	KUNIT_EXPECT_EQ(test, 0U, line.ran);
	complete_all(&gate->open);
	line_end(test);
}

/* Items run in order while others are queued, so that the serializer is often empty. */
static void million_items_keep_the_order_of_each_producer(struct kunit *test)
{
	line_begin(test, false);
	producers_start(test, produce_alone);
	producers_end(test);
	line_end(test);
}

/* ---- a million serializers --------------------------------------------- */

struct single {
	struct fairwq_serializer serial;
	struct fairwq_work work;
	atomic_t runs;
};

static struct single *singles;
static atomic_t singles_ran;

static void single_fn(struct fairwq_work *work)
{
	atomic_inc(&container_of(work, struct single, work)->runs);
	atomic_inc(&singles_ran);
}

static void produce_singles(struct producer *producer)
{
	unsigned int i, nr = million() / PRODUCERS;
	struct single *single = &singles[producer->id * nr];

	for (i = 0; i < nr; i++, single++) {
		fairwq_serializer_init(&single->serial);
		fairwq_work_init(&single->work, single_fn);
		if (fairwq_serializer_queue(&single->serial, producer->batch, &single->work) != 1)
			producer->refused++;
		producer_called(producer);
	}
}

/* Each of a million serializers that are busy at the same time runs its one item once. */
static void million_serializers_run_each_item_once(struct kunit *test)
{
	unsigned int i, wrong = 0;
	bool ran;

	atomic_set(&singles_ran, 0);
	singles = vzalloc(array_size(million(), sizeof(*singles)));
	KUNIT_ASSERT_NOT_NULL(test, singles);
	mock_pool(test, 1);
	producers_start(test, produce_singles);
	producers_end(test);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&singles_ran));
	mock_open(test);
	ran = met_in_time(atomic_read(&singles_ran) >= (int)million(),
			  atomic_read(&singles_ran));
	KUNIT_ASSERT_TRUE_MSG(test, ran, "%d have run", atomic_read(&singles_ran));
	for (i = 0; i < million(); i++) {
		fairwq_serializer_destroy(&singles[i].serial);
		wrong += atomic_read(&singles[i].runs) != 1;
		cond_resched();
	}
	KUNIT_EXPECT_EQ(test, 0U, wrong);
	vfree(singles);
}

/* ---- items that fail ---------------------------------------------------- */

static void failing_fn(struct fairwq_work *work)
{
	fairwq_report_failure(-EIO);
	mock_item_fn(work);
}

/* Items behind one that has failed run, in a serializer and in a limiter. */
static void failing_item_stalls_no_other(struct kunit *test)
{
	struct fairwq_serializer serial;
	struct fairwq_serializer limiter;
	struct mock *mock = test->priv;
	struct mock_item *item[4];
	struct fairwq_batch *a = mock_begin(test, 2);
	unsigned int i;
	bool ran;

	fairwq_serializer_init(&serial);
	fairwq_limiter_init(&limiter, 1);
	fairwq_batch_pause(a);
	for (i = 0; i < 4; i++) {
		item[i] = mock_item(test, "wxyz"[i]);
		if (i % 2 == 0)
			fairwq_work_init(&item[i]->work, failing_fn);
		KUNIT_ASSERT_EQ(test, 1, i < 2 ?
				fairwq_serializer_queue(&serial, a, &item[i]->work) :
				fairwq_serializer_queue(&limiter, a, &item[i]->work));
	}
	fairwq_batch_resume(a);
	ran = mock_within(READ_ONCE(mock->log.nr) == 4);
	KUNIT_EXPECT_TRUE_MSG(test, ran, "of wxyz only %s have run", mock->log.text);
	for (i = 0; i < 4; i++)
		fairwq_work_cancel_sync(&item[i]->work);
	KUNIT_EXPECT_EQ(test, 2ULL, mock_counter(mock->pool, FAIRWQ_FAILURES));
	if (mock->log.nr < 4)
		return;
	fairwq_serializer_destroy(&serial);
	fairwq_serializer_destroy(&limiter);
}

/* ---- all calls mixed ---------------------------------------------------- */

#define MIX_ITEMS	128U		/* of each producer */
#define MIX_SECONDS	20
#define MIX_SERIALS	8U
#define MIX_LIMITERS	4U
#define MIX_BATCHES	6U		/* that all producers share */

enum mix_way { MIX_PLAIN, MIX_SERIAL, MIX_LIMITED };

/* What a queue call says about an item. The item copies it when it begins. */
struct mix_order {
	enum mix_way way;
	u8 which, producer;
	u32 seq;			/* rises per producer and serializer */
	u32 shared;			/* rises per serializer; 0: not counted */
	u64 check;			/* a checksum of the other fields */
};

struct mix_item {
	struct fairwq_work work;
	atomic_t due;			/* 1: queued, and not yet begun or taken out */
	atomic_t inside;
	struct mix_order order;
};

struct mix_serial {
	struct fairwq_serializer serial;
	spinlock_t lock;		/* for @next_shared and the order of the queue calls */
	u32 next_shared;
	/* Written by the item that runs. */
	u32 last_shared, last[PRODUCERS];
	unsigned long plain;
	atomic_t inside, ran;
};

struct mix_limiter {
	struct fairwq_serializer limiter;
	atomic_t inside;
};

enum mix_wrong {
	MIX_DISORDER, MIX_OVERLAP, MIX_TOO_MANY, MIX_NOT_DUE, MIX_REENTRANT, MIX_STALE,
	MIX_CALL, MIX_NR_WRONG
};

static const char * const mix_wrong_name[] = {
	[MIX_DISORDER] = "an earlier one after a later one of its serializer",
	[MIX_OVERLAP] = "two items of one serializer at a time",
	[MIX_TOO_MANY] = "more items of a limiter than it lets go",
	[MIX_NOT_DUE] = "an item that was not queued runs or is taken out",
	[MIX_REENTRANT] = "an item runs twice at a time",
	[MIX_STALE] = "an item does not see what was stored before the call",
	[MIX_CALL] = "a call does not return what it should",
};

static struct {
	struct fairwq_pool *other;
	struct fairwq_batch *batch[MIX_BATCHES];
	struct mix_serial serial[MIX_SERIALS];
	struct mix_limiter limiter[MIX_LIMITERS];
	struct mix_item item[PRODUCERS][MIX_ITEMS];
	u32 seq[PRODUCERS][MIX_SERIALS];	/* of each producer alone */
	atomic_t queued, ran, taken;
	atomic_t wrong[MIX_NR_WRONG];
} mix;

static void mix_expect(bool good, enum mix_wrong wrong)
{
	if (!good)
		atomic_inc(&mix.wrong[wrong]);
}

static u64 mix_check(const struct mix_order *order, const struct mix_item *item)
{
	return order->seq * 0x9e3779b97f4a7c15ULL + order->shared + (u64)order->way * 977 +
	       order->which * 331 + order->producer + (unsigned long)item;
}

static void mix_enter(const struct mix_order *order)
{
	struct mix_serial *serial = &mix.serial[order->which];
	unsigned int most = 1 + order->which;

	if (order->way == MIX_LIMITED)
		mix_expect(atomic_inc_return(&mix.limiter[order->which].inside) <= most,
			   MIX_TOO_MANY);
	if (order->way != MIX_SERIAL)
		return;
	mix_expect(atomic_inc_return(&serial->inside) == 1, MIX_OVERLAP);
	mix_expect(order->seq > serial->last[order->producer], MIX_DISORDER);
	serial->last[order->producer] = order->seq;
	if (order->shared) {
		mix_expect(order->shared > serial->last_shared, MIX_DISORDER);
		serial->last_shared = order->shared;
	}
	serial->plain++;
}

static void mix_leave(const struct mix_order *order)
{
	if (order->way == MIX_LIMITED)
		atomic_dec(&mix.limiter[order->which].inside);
	if (order->way != MIX_SERIAL)
		return;
	atomic_inc(&mix.serial[order->which].ran);
	atomic_dec(&mix.serial[order->which].inside);
}

/* Let a few items sleep, spin, reschedule or fail. Most take no time. */
static void mix_dawdle(u32 dice)
{
	u64 end = fairwq_clock() + dice % 16 * 1000;

	dice %= 2048;
	if (dice < 4)
		usleep_range(20, 100);	/* any time will do, here and below */
	else if (dice < 64)
		while (fairwq_clock() < end)
			cpu_relax();
	else if (dice < 80)
		cond_resched();
	else if (dice < 96)
		fairwq_report_failure(-EIO);
}

static void mix_fn(struct fairwq_work *work)
{
	struct mix_item *item = container_of(work, struct mix_item, work);
	struct mix_order order = item->order;

	mix_expect(atomic_inc_return(&item->inside) == 1, MIX_REENTRANT);
	mix_expect(order.check == mix_check(&order, item), MIX_STALE);
	mix_enter(&order);
	/* From here on the producer may queue @item again. @order is a copy. */
	mix_expect(atomic_xchg(&item->due, 0) == 1, MIX_NOT_DUE);
	mix_dawdle(hash_64(order.check, 32));
	mix_leave(&order);
	atomic_dec(&item->inside);
	atomic_inc(&mix.ran);
}

static void mix_taken(struct fairwq_work *work)
{
	struct mix_item *item = container_of(work, struct mix_item, work);

	mix_expect(atomic_xchg(&item->due, 0) == 1, MIX_NOT_DUE);
	atomic_inc(&mix.taken);
}

/* ---- what the producers do ---------------------------------------------- */

/* Return a pseudo-random number below @nr. */
static u32 mix_random(struct producer *producer, u32 nr)
{
	producer->random = producer->random * 1664525 + 1013904223;
	return reciprocal_scale(producer->random, nr);
}

static struct fairwq_batch *mix_batch(struct producer *producer)
{
	u32 which = mix_random(producer, MIX_BATCHES + 2);

	return which < MIX_BATCHES ? mix.batch[which] : producer->batch;
}

static struct mix_item *mix_any_item(struct producer *producer)
{
	return &mix.item[mix_random(producer, PRODUCERS)][mix_random(producer, MIX_ITEMS)];
}

/*
 * Queue @item to its serializer. To every second one all producers queue under
 * a lock, so that the order of their calls is known.
 */
static int mix_queue_serial(struct mix_item *item, struct fairwq_batch *batch)
{
	struct mix_order *order = &item->order;
	struct mix_serial *serial = &mix.serial[order->which];
	bool shared = order->which % 2;
	int ret;

	order->seq = ++mix.seq[order->producer][order->which];
	if (shared) {
		spin_lock(&serial->lock);
		order->shared = ++serial->next_shared;
	}
	order->check = mix_check(order, item);
	ret = fairwq_serializer_queue(&serial->serial, batch, &item->work);
	if (shared)
		spin_unlock(&serial->lock);
	return ret;
}

static int mix_queue_item(struct mix_item *item, struct fairwq_batch *batch)
{
	struct mix_order *order = &item->order;

	if (order->way == MIX_SERIAL)
		return mix_queue_serial(item, batch);
	order->check = mix_check(order, item);
	if (order->way == MIX_LIMITED)
		return fairwq_serializer_queue(&mix.limiter[order->which].limiter, batch,
					    &item->work);
	return fairwq_queue(batch, &item->work);
}

/* Queue an item of @producer, unless it is queued. It may still run. */
static void mix_queue(struct producer *producer)
{
	struct mix_item *item = &mix.item[producer->id][mix_random(producer, MIX_ITEMS)];
	u32 dice = mix_random(producer, 8);
	int ret;

	if (atomic_read_acquire(&item->due))	/* pairs with the xchg()s to 0 */
		return;
	item->order = (struct mix_order) {
		.way = dice ? dice < 6 ? MIX_SERIAL : MIX_LIMITED : MIX_PLAIN,
		.producer = producer->id,
	};
	if (item->order.way == MIX_SERIAL)
		item->order.which = mix_random(producer, MIX_SERIALS);
	else if (item->order.way == MIX_LIMITED)
		item->order.which = mix_random(producer, MIX_LIMITERS);
	atomic_set(&item->due, 1);
	ret = mix_queue_item(item, mix_batch(producer));
	if (ret == 1) {
		atomic_inc(&mix.queued);
		return;
	}
	/* A sync cancel of the item is in progress, or the batch has max_queued items. */
	mix_expect(ret == -ECANCELED || ret == -EAGAIN, MIX_CALL);
	mix_expect(atomic_xchg(&item->due, 0) == 1, MIX_NOT_DUE);
}

static void mix_cancel(struct producer *producer, bool (*cancel)(struct fairwq_work *work))
{
	struct mix_item *item = mix_any_item(producer);

	if (cancel(&item->work))
		mix_taken(&item->work);
}

static void mix_flush(struct producer *producer)
{
	if (mix_random(producer, 2))
		fairwq_serializer_flush(&mix.serial[mix_random(producer, MIX_SERIALS)].serial);
	else
		fairwq_serializer_flush(&mix.limiter[mix_random(producer, MIX_LIMITERS)].limiter);
}

/*
 * Give @producer a new batch. Items in the old one still run, and so do those
 * that wait in a serializer and are bound for it.
 */
static void mix_renew_batch(struct producer *producer)
{
	struct fairwq_batch_attrs attrs = {
		.prio = mix_random(producer, 3),
		.max_active = mix_random(producer, 3),
		.max_queued = mix_random(producer, 2) * 16,
	};
	struct fairwq_batch *old = producer->batch, *new;

	new = fairwq_batch_create(mix.other, &attrs, "own");
	if (IS_ERR(new))
		return;
	producer->batch = new;
	fairwq_batch_dispose(old);
}

static void mix_pause(struct producer *producer)
{
	struct fairwq_batch *batch = mix.batch[mix_random(producer, MIX_BATCHES)];
	unsigned int i;

	fairwq_batch_pause(batch);
	for (i = 0; i < 8; i++)
		mix_queue(producer);
	fairwq_batch_resume(batch);
}

/* Make random calls, for a number of rounds but at most MIX_SECONDS: fewer if busy. */
static void mix_produce(struct producer *producer)
{
	unsigned long end = jiffies + MIX_SECONDS * HZ;
	unsigned int rounds = million() / 4;
	u32 dice;

	while (rounds-- && time_before(jiffies, end)) {
		dice = mix_random(producer, 1024);
		if (dice < 2)
			mix_flush(producer);
		else if (dice < 4)
			fairwq_batch_cancel(mix_batch(producer), mix_taken);
		else if (dice < 6)
			mix_renew_batch(producer);
		else if (dice < 10)
			mix_pause(producer);
		else if (dice < 30)
			mix_cancel(producer, fairwq_work_cancel_sync);
		else if (dice < 200)
			mix_cancel(producer, fairwq_work_cancel);
		else
			mix_queue(producer);
		producer_called(producer);
	}
}

/* ---- the case ----------------------------------------------------------- */

static void mix_begin(struct kunit *test)
{
	static const struct fairwq_pool_attrs other = {
		.policy = FAIRWQ_FAIR_TIME, .max_active = 3,
	};
	struct fairwq_batch_attrs attrs = { };
	struct mock *mock = test->priv;
	unsigned int i;

	memset(&mix, 0, sizeof(mix));
	mix.other = fairwq_pool_create(&other, "other");
	KUNIT_ASSERT_FALSE(test, IS_ERR(mix.other));
	for (i = 0; i < MIX_BATCHES; i++) {
		attrs.prio = i % 3;
		attrs.max_active = i / 3;
		mix.batch[i] = fairwq_batch_create(i % 2 ? mock->pool : mix.other, &attrs,
						   "mix%u", i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(mix.batch[i]));
	}
	for (i = 0; i < MIX_SERIALS; i++) {
		fairwq_serializer_init(&mix.serial[i].serial);
		spin_lock_init(&mix.serial[i].lock);
	}
	for (i = 0; i < MIX_LIMITERS; i++)
		fairwq_limiter_init(&mix.limiter[i].limiter, 1 + i);
	for (i = 0; i < PRODUCERS * MIX_ITEMS; i++)
		fairwq_work_init(&mix.item[i / MIX_ITEMS][i % MIX_ITEMS].work, mix_fn);
}

static bool mix_all_ended(void)
{
	return atomic_read(&mix.ran) + atomic_read(&mix.taken) >= atomic_read(&mix.queued);
}

static void mix_end(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < MIX_SERIALS; i++) {
		fairwq_serializer_destroy(&mix.serial[i].serial);
		KUNIT_EXPECT_EQ(test, mix.serial[i].plain,
				(unsigned long)atomic_read(&mix.serial[i].ran));
	}
	for (i = 0; i < MIX_LIMITERS; i++)
		fairwq_serializer_destroy(&mix.limiter[i].limiter);
	for (i = 0; i < MIX_BATCHES; i++)
		fairwq_batch_dispose(mix.batch[i]);
	fairwq_pool_destroy(mix.other);
	for (i = 0; i < PRODUCERS * MIX_ITEMS; i++)
		KUNIT_EXPECT_EQ(test, 0, atomic_read(&mix.item[i / MIX_ITEMS][i % MIX_ITEMS].due));
}

/* With all calls mixed, no item sees a breach of enum mix_wrong, and none is lost. */
static void mix_keeps_order_and_books(struct kunit *test)
{
	unsigned int i;
	bool ended;

	mock_pool(test, 4);
	mock_open(test);
	mix_begin(test);
	producers_start(test, mix_produce);
	producers_end(test);
	ended = met_in_time(mix_all_ended(), atomic_read(&mix.ran));
	KUNIT_ASSERT_TRUE_MSG(test, ended, "%d queued, %d ran, %d were taken out",
			      atomic_read(&mix.queued), atomic_read(&mix.ran),
			      atomic_read(&mix.taken));
	mix_end(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&mix.queued),
			atomic_read(&mix.ran) + atomic_read(&mix.taken));
	for (i = 0; i < MIX_NR_WRONG; i++)
		KUNIT_EXPECT_EQ_MSG(test, 0, atomic_read(&mix.wrong[i]), "%s",
				    mix_wrong_name[i]);
	kunit_info(test, "%d items queued, %d ran, %d were taken out\n",
		   atomic_read(&mix.queued), atomic_read(&mix.ran), atomic_read(&mix.taken));
}

static struct kunit_case serialmix_cases[] = {
	KUNIT_CASE(failing_item_stalls_no_other),
	KUNIT_CASE(million_waiting_items_keep_the_order),
	KUNIT_CASE(million_items_keep_the_order_of_each_producer),
	KUNIT_CASE(million_serializers_run_each_item_once),
	KUNIT_CASE(mix_keeps_order_and_books),
	{}
};

static struct kunit_suite serialmix_suite = {
	.name = "fairwq_serializer_mix",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = serialmix_cases,
};

kunit_test_suite(serialmix_suite);

MODULE_DESCRIPTION("KUnit: serializers and limiters, very many and mixed");
MODULE_LICENSE("GPL");
