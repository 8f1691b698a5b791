// SPDX-License-Identifier: GPL-2.0
/*
 * Books: each queue call that was accepted has ended as a run, or was reported
 * by a cancel or a drop (promise 1). Works of the module itself are reported to
 * no client (promise 16).
 *
 * The suite keeps an account for each work. Where a workqueue has the same
 * calls, it makes them beside fairwq, in the same threads. Its account shows
 * what the kernel promises.
 */
#include <linux/prandom.h>

#include "lib/client.h"

/* What became of the queue calls for one work. */
struct account {
	atomic_t accepted, ran, cancelled, dropped;
};

static int nr_ended(const struct account *account)
{
	return atomic_read(&account->ran) + atomic_read(&account->cancelled) +
	       atomic_read(&account->dropped);
}

/* ---- a new delay beside queue calls -------------------------------------- */

/* How a thread queues the work whose delay another thread changes. */
enum way {
	WAY_QUEUE,
	WAY_DELAYED,
	WAY_SERIALIZER,
	WAY_LIMITER,
	WAY_FLOW,
	WAY_ENABLE,
};

static const char *const way_names[] = {
	[WAY_QUEUE] = "queue",
	[WAY_DELAYED] = "queue_delayed",
	[WAY_SERIALIZER] = "serializer",
	[WAY_LIMITER] = "limiter",
	[WAY_FLOW] = "flow",
	[WAY_ENABLE] = "enable_and_queue",
};

static void way_desc(const char *const *way, char *desc)
{
	strscpy(desc, *way, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(way, way_names, way_desc);

/* One work of fairwq and one of the kernel, which two threads queue and modify. */
struct contested {
	struct fairwq_delayed_work dwork;
	struct delayed_work kernels;
	struct account account, kernel;
	struct fairwq_batch *batch;
	struct fairwq_flows *flows;
	struct fairwq_serializer serializer;
	struct fairwq_serializer limiter;
	struct workqueue_struct *wq;
	enum way way;
	bool modified;			/* the thread that modifies has ended */
	atomic_t refused;
};

static void contested_fn(struct fairwq_work *work)
{
	atomic_inc(&container_of(work, struct contested, dwork.work)->account.ran);
}

static void contested_kernel_fn(struct work_struct *work)
{
	atomic_inc(&container_of(to_delayed_work(work), struct contested, kernels)->kernel.ran);
}

/* Make the queue call number @nr, in the way of the case. Return: as fairwq_queue(). */
static int contested_queue(struct contested *c, unsigned int nr)
{
	struct fairwq_work *work = &c->dwork.work;

	switch (c->way) {
	case WAY_QUEUE:
		return fairwq_queue(c->batch, work);
	case WAY_DELAYED:
		return fairwq_queue_delayed(c->batch, &c->dwork, nr % 2);
	case WAY_SERIALIZER:
		return fairwq_serializer_queue(&c->serializer, c->batch, work);
	case WAY_LIMITER:
		return fairwq_serializer_queue(&c->limiter, c->batch, work);
	case WAY_FLOW:
		return fairwq_flows_queue(c->flows, nr % 2, work);
	case WAY_ENABLE:
		return fairwq_work_enable(work) ? fairwq_queue(c->batch, work) : -ECANCELED;
	}
	return -EINVAL;
}

static void contested_queue_kernels(struct contested *c, unsigned int nr)
{
	if (queue_delayed_work(c->wq, &c->kernels, c->way == WAY_DELAYED ? nr % 2 : 0))
		atomic_inc(&c->kernel.accepted);
}

#define MODS	MOCK_MANY(50000U)

/* Queue the works until the other thread has ended, so that the two always meet. */
static void queue_contested(void *arg)
{
	struct contested *c = arg;
	unsigned int nr;
	int ret;

	for (nr = 0; !READ_ONCE(c->modified); nr++) {
		if (c->way == WAY_ENABLE && fairwq_work_disable(&c->dwork.work))
			atomic_inc(&c->account.cancelled);
		ret = contested_queue(c, nr);
		if (ret == 1)
			atomic_inc(&c->account.accepted);
		else if (ret)
			atomic_inc(&c->refused);
		contested_queue_kernels(c, nr);
		cond_resched();
	}
}

/* Change the delay of the works, MODS times. A call that finds a work idle queues it. */
static void modify_contested(void *arg)
{
	struct contested *c = arg;
	unsigned int nr;
	int ret;

	for (nr = 0; nr < MODS; nr++) {
		ret = fairwq_mod_delayed(c->batch, &c->dwork, nr % 2);
		if (!ret)
			atomic_inc(&c->account.accepted);
		else if (ret < 0 && ret != -ECANCELED)
			atomic_inc(&c->refused);
		if (!mod_delayed_work(c->wq, &c->kernels, nr % 2))
			atomic_inc(&c->kernel.accepted);
		cond_resched();
	}
	WRITE_ONCE(c->modified, true);
}

static struct contested *contested_new(struct kunit *test, enum way way)
{
	struct contested *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct mock *mock = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->way = way;
	c->batch = mock_begin(test, 2);
	mock_open(test);
	fairwq_delayed_work_init(&c->dwork, contested_fn);
	INIT_DELAYED_WORK(&c->kernels, contested_kernel_fn);
	fairwq_serializer_init(&c->serializer);
	fairwq_limiter_init(&c->limiter, 1);
	c->flows = fairwq_flows_create(mock->pool, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(c->flows));
	c->wq = alloc_workqueue("contested", WQ_UNBOUND, 0);
	KUNIT_ASSERT_NOT_NULL(test, c->wq);
	return c;
}

static void contested_end(struct contested *c)
{
	fairwq_delayed_work_flush(&c->dwork);
	flush_delayed_work(&c->kernels);
	fairwq_flows_destroy(c->flows);
	fairwq_serializer_destroy(&c->serializer);
	fairwq_serializer_destroy(&c->limiter);
	destroy_workqueue(c->wq);
}

/*
 * A change of the delay takes the work out, and puts it back. A queue call that
 * comes in between finds it pending, as with a workqueue, or is a run of its
 * own. A call that meets a disable leaves the work where it was.
 */
static void new_delay_swallows_no_queue_call(struct kunit *test)
{
	enum way way = (const char *const *)test->param_value - way_names;
	struct contested *c = contested_new(test, way);
	struct caller *queueing = mock_caller(test, queue_contested, c);
	struct caller *modifying = mock_caller(test, modify_contested, c);

	mock_caller_end(test, modifying);
	mock_caller_end(test, queueing);
	contested_end(c);
	kunit_info(test, "%s: %d accepted, %d ended; workqueue: %d accepted, %d ended\n",
		   way_names[way], atomic_read(&c->account.accepted), nr_ended(&c->account),
		   atomic_read(&c->kernel.accepted), nr_ended(&c->kernel));
	KUNIT_EXPECT_EQ(test, atomic_read(&c->kernel.accepted), nr_ended(&c->kernel));
	KUNIT_EXPECT_EQ(test, atomic_read(&c->account.accepted), nr_ended(&c->account));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&c->refused));
}

/* ---- works of the module itself ------------------------------------------- */

#define NUMBERS		1000U
#define NR_OWN		8U	/* works of the case */

/* A loop that a thread starts: the module queues a work for it, which nothing else knows. */
struct loop {
	struct fairwq_batch *batch;
	atomic_t numbers;		/* that were in a call of its body */
	int ret;
};

static int loop_body(unsigned long from, unsigned long to, void *arg)
{
	struct loop *loop = arg;

	atomic_add(to - from, &loop->numbers);
	return 0;
}

static void loop_call(void *arg)
{
	struct loop *loop = arg;

	loop->ret = fairwq_parallel_for(loop->batch, 0, NUMBERS, 1, loop_body, loop);
}

/* The works of the case, and what callbacks of the client got. */
static struct {
	struct fairwq_work work[NR_OWN];
	struct fairwq_batch *rescue;	/* for works that are not of the case */
	atomic_t ran, dropped, asked, strangers;
} own;

static void own_fn(struct fairwq_work *work)
{
	atomic_inc(&own.ran);
}

static bool is_own(const struct fairwq_work *work)
{
	return work >= own.work && work < own.work + NR_OWN;
}

/* Count a work that was dropped. Queue one that is not of the case again, or its caller hangs. */
static void own_dropped(struct fairwq_work *work)
{
	if (is_own(work)) {
		atomic_inc(&own.dropped);
		return;
	}
	atomic_inc(&own.strangers);
	mock_may_refuse(fairwq_queue(own.rescue, work));
}

static u32 own_cost(const struct fairwq_work *work)
{
	atomic_inc(is_own(work) ? &own.asked : &own.strangers);
	return 1;
}

/* Set up the works, and a batch in which strangers can run. */
static void own_begin(struct kunit *test)
{
	unsigned int i;

	memset(&own, 0, sizeof(own));
	own.rescue = mock_batch(test, "rescue");
	for (i = 0; i < NR_OWN; i++)
		fairwq_work_init(&own.work[i], own_fn);
}

static void own_queue(struct kunit *test, struct fairwq_batch *batch)
{
	unsigned int i;

	for (i = 0; i < NR_OWN; i++)
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &own.work[i]));
}

/* Start a loop in a thread, and wait until the module has queued its work. */
static struct caller *loop_start(struct kunit *test, struct loop *loop, struct fairwq_batch *batch)
{
	struct caller *caller;

	*loop = (struct loop){ .batch = batch };
	caller = mock_caller(test, loop_call, loop);
	mock_until(test, mock_caller_sleeps(caller));
	return caller;
}

/* Wait for the end of the loop. It has run, or it was refused or cancelled. */
static void loop_end(struct kunit *test, struct loop *loop, struct caller *caller)
{
	mock_caller_end(test, caller);
	KUNIT_EXPECT_EQ(test, loop->ret ? 0U : NUMBERS, (unsigned int)atomic_read(&loop->numbers));
}

/* A cancel of the batch drops the works of the client, and no other. */
static void cancel_leaves_the_work_of_a_loop(struct kunit *test)
{
	static void (*const dropped[])(struct fairwq_work *work) = { own_dropped, NULL };
	static struct loop loop;
	struct fairwq_batch *a;
	struct mock_gate *gate;
	struct caller *caller;
	unsigned int i;

	a = mock_begin(test, 1);
	own_begin(test);
	mock_free_runners(test);
	for (i = 0; i < ARRAY_SIZE(dropped); i++) {
		gate = mock_gate_new(test);
		mock_gate_enter(test, a, gate);
		caller = loop_start(test, &loop, a);
		own_queue(test, a);
		KUNIT_EXPECT_EQ(test, (unsigned long)NR_OWN, fairwq_batch_cancel(a, dropped[i]));
		KUNIT_EXPECT_EQ(test, 0, atomic_read(&own.strangers));
		complete_all(&gate->open);
		loop_end(test, &loop, caller);
	}
	KUNIT_EXPECT_EQ(test, (int)NR_OWN, atomic_read(&own.dropped));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&own.ran));
}

/* The arguments of a shutdown. */
struct going {
	struct fairwq_batch *batch;
	struct fairwq_flows *flows;	/* if set, it is shut down instead of @batch */
	unsigned int how;
	void (*dropped)(struct fairwq_work *work);
	int ret;
};

static void going_call(void *arg)
{
	struct going *going = arg;

	if (going->flows)
		going->ret = fairwq_flows_shutdown(going->flows, going->how, going->dropped);
	else
		going->ret = fairwq_batch_shutdown(going->batch, going->how, going->dropped);
}

/* A shutdown that drops leaves the work of a loop alone, too. */
static void drop_leaves_the_work_of_a_loop(struct kunit *test, bool of_flows)
{
	static struct going going;
	static struct loop loop;
	struct mock *mock = test->priv;
	struct caller *caller, *shutdown;

	going = (struct going){ .how = FAIRWQ_DROP_REST, .dropped = own_dropped };
	mock_pool(test, 1);
	own_begin(test);
	if (of_flows) {
		going.flows = fairwq_flows_create(mock->pool, NULL);
		KUNIT_ASSERT_FALSE(test, IS_ERR(going.flows));
		going.batch = fairwq_flows_get(going.flows, 1);
	} else {
		going.batch = mock_own_batch(test, "going", NULL);
		fairwq_batch_get(going.batch);
	}
	KUNIT_ASSERT_FALSE(test, IS_ERR(going.batch));
	caller = loop_start(test, &loop, going.batch);
	own_queue(test, going.batch);
	shutdown = mock_caller(test, going_call, &going);
	mock_until(test, atomic_read(&own.dropped) == NR_OWN);
	mock_open(test);
	mock_caller_end(test, shutdown);
	loop_end(test, &loop, caller);
	KUNIT_EXPECT_EQ(test, 0, going.ret);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&own.strangers));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&own.ran));
	fairwq_batch_put(going.batch);
}

static void shutdown_leaves_the_work_of_a_loop(struct kunit *test)
{
	drop_leaves_the_work_of_a_loop(test, false);
}

static void flows_leave_the_work_of_a_loop(struct kunit *test)
{
	drop_leaves_the_work_of_a_loop(test, true);
}

/* A pool asks the client for the cost of the client's works, and of no other. */
static void cost_is_asked_of_own_works_only(struct kunit *test)
{
	const struct fairwq_pool_attrs attrs = {
		.max_active = 2, .policy = FAIRWQ_FAIR_COST, .cost = own_cost,
	};
	struct mock *mock = test->priv;
	static struct loop loop;
	struct fairwq_batch *a;

	mock->pool = fairwq_pool_create(&attrs, "cost");
	KUNIT_ASSERT_FALSE(test, IS_ERR(mock->pool));
	own_begin(test);
	a = mock_batch(test, "a");
	loop = (struct loop){ .batch = a };
	loop_call(&loop);
	own_queue(test, a);
	loop_call(&loop);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, (int)NR_OWN, atomic_read(&own.ran));
	KUNIT_EXPECT_EQ(test, (int)NR_OWN, atomic_read(&own.asked));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&own.strangers));
}

/* ---- drops ---------------------------------------------------------------- */

#define NR_MANY		MOCK_MANY(10000U)

/* Works that are to be dropped. They count in the same accounts. */
struct many {
	struct fairwq_work *work;
	unsigned int nr;
};

static atomic_t many_ran, many_dropped;

static void many_fn(struct fairwq_work *work)
{
	atomic_inc(&many_ran);
}

static void many_dropped_fn(struct fairwq_work *work)
{
	atomic_inc(&many_dropped);
}

static struct many many_new(struct kunit *test, unsigned int nr)
{
	struct many many = { .nr = nr };
	unsigned int i;

	many.work = kunit_kcalloc(test, nr, sizeof(*many.work), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, many.work);
	for (i = 0; i < nr; i++)
		fairwq_work_init(&many.work[i], many_fn);
	atomic_set(&many_ran, 0);
	atomic_set(&many_dropped, 0);
	return many;
}

#define DROP_ROUNDS	MOCK_MANY(60U)

/*
 * No runner has taken an item that was queued while the batch was paused. So a
 * shutdown that drops begins none of them.
 */
static void paused_batch_is_dropped_whole(struct kunit *test)
{
	struct fairwq_batch *batch;
	struct many many;
	unsigned int i, round, bad = 0;

	mock_pool(test, 2);
	mock_free_runners(test);
	many = many_new(test, NR_MANY / 10);
	for (round = 0; round < DROP_ROUNDS; round++) {
		batch = mock_own_batch(test, "paused", NULL);
		fairwq_batch_pause(batch);
		for (i = 0; i < many.nr; i++)
			KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &many.work[i]));
		KUNIT_EXPECT_EQ(test, 0, fairwq_batch_shutdown(batch, FAIRWQ_DROP_REST,
							       many_dropped_fn));
		bad += atomic_xchg(&many_ran, 0) > 0;
		KUNIT_EXPECT_LE(test, (unsigned int)atomic_xchg(&many_dropped, 0), many.nr);
	}
	kunit_info(test, "items began in %u of %u drops\n", bad, round);
	KUNIT_EXPECT_EQ(test, 0U, bad);
}

/* What another holder of the batch does while the batch is dropped. */
enum meddling { PAUSE, RESUME, PAUSE_AND_RESUME, NR_MEDDLINGS };

static void meddle(struct fairwq_batch *batch, enum meddling meddling)
{
	if (meddling != RESUME)
		fairwq_batch_pause(batch);
	if (meddling != PAUSE)
		fairwq_batch_resume(batch);
}

/*
 * Drop a work that is queued behind a gate, and many that wait in a serializer
 * behind the same gate. When the first is dropped, another holder of the batch
 * pauses or resumes it. The others are dropped when the serializer lets them
 * go.
 */
static void drop_beside_another_holder(struct kunit *test, enum meddling meddling, bool of_flows)
{
	static struct fairwq_serializer serializer;
	static struct going going;
	struct mock *mock = test->priv;
	struct mock_gate *gate = mock_gate_new(test);
	struct fairwq_batch *batch;
	struct caller *shutdown;
	struct many many = many_new(test, NR_MANY);
	unsigned int i;

	fairwq_serializer_init(&serializer);
	going = (struct going){ .how = FAIRWQ_DROP_REST, .dropped = many_dropped_fn };
	if (of_flows) {
		going.flows = fairwq_flows_create(mock->pool, NULL);
		KUNIT_ASSERT_FALSE(test, IS_ERR(going.flows));
		batch = fairwq_flows_get(going.flows, 1);
	} else {
		going.batch = mock_own_batch(test, "going", NULL);
		batch = fairwq_batch_get(going.batch);
	}
	KUNIT_ASSERT_FALSE(test, IS_ERR(batch));
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&serializer, mock->kept->batch,
							 &gate->work));
	mock_await(test, &gate->entered);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &many.work[0]));
	for (i = 1; i < many.nr; i++)
		KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&serializer, batch,
								 &many.work[i]));
	shutdown = mock_caller(test, going_call, &going);
	mock_until(test, atomic_read(&many_dropped) == 1 && mock_caller_sleeps(shutdown));
	meddle(batch, meddling);
	complete_all(&gate->open);
	mock_caller_end(test, shutdown);
	fairwq_serializer_destroy(&serializer);
	fairwq_batch_put(batch);
	KUNIT_EXPECT_EQ(test, 0, going.ret);
	KUNIT_EXPECT_EQ_MSG(test, 0, atomic_read(&many_ran), "meddling %u\n", meddling);
	KUNIT_EXPECT_EQ(test, (int)many.nr, atomic_read(&many_dropped));
}

static void no_other_holder_undoes_a_drop(struct kunit *test)
{
	enum meddling meddling;

	mock_begin(test, 1);
	mock_free_runners(test);
	for (meddling = 0; meddling < NR_MEDDLINGS; meddling++) {
		drop_beside_another_holder(test, meddling, false);
		drop_beside_another_holder(test, meddling, true);
	}
}

/* ---- all calls at random ---------------------------------------------------- */

#define NR_THREADS	3U
#define NR_WORKS	10U
#define NR_SLOTS	3U	/* batches that come and go */
#define NR_KEYS		4U	/* of flows */
#define CALLS		MOCK_MANY(8000U)	/* of each thread */

/* What kind of work it is. All may be queued to a batch as they are. */
enum kind { PLAIN, DELAYED, GRACED, SEQUENCED };

/* What a mix has, besides queue calls and cancels of works. */
#define MIX_DELAYED	BIT(0)	/* delayed works, with new delays */
#define MIX_GRACED	BIT(1)	/* works that wait for a grace period */
#define MIX_SEQUENCED	BIT(2)	/* works of a sequencer */
#define MIX_ORDERS	BIT(3)	/* a serializer and a limiter */
#define MIX_FLOWS	BIT(4)	/* flows, and keys that are closed */
#define MIX_DISABLE	BIT(5)	/* works are disabled and enabled */
#define MIX_BATCHES	BIT(6)	/* batches are cancelled, paused and weighed */
#define MIX_SHUTDOWN	BIT(7)	/* batches are shut down, and made anew */
#define MIX_LOOPS	BIT(8)	/* threads start loops */
#define MIX_KERNEL	BIT(9)	/* a workqueue gets the same calls */
#define MIX_ALL		(BIT(9) - 1)

struct mix {
	const char *name;
	unsigned int has;
};

static const struct mix mixes[] = {
	{ "cancel", MIX_KERNEL },
	{ "delayed", MIX_DELAYED | MIX_KERNEL },
	{ "grace periods", MIX_GRACED | MIX_KERNEL },
	{ "disable", MIX_DISABLE | MIX_BATCHES },
	{ "orders", MIX_ORDERS | MIX_BATCHES },
	{ "sequencer", MIX_SEQUENCED | MIX_ORDERS | MIX_BATCHES },
	{ "flows", MIX_FLOWS | MIX_BATCHES },
	{ "shutdown", MIX_DELAYED | MIX_ORDERS | MIX_SHUTDOWN },
	{ "loops", MIX_LOOPS | MIX_BATCHES | MIX_SHUTDOWN },
	{ "all", MIX_ALL },
};

static void mix_desc(const struct mix *mix, char *desc)
{
	strscpy(desc, mix->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(mix, mixes, mix_desc);

/* A work of fairwq, and one of the kernel that gets the same calls. */
struct item {
	union {
		struct fairwq_work work;	/* the first in each of the others */
		struct fairwq_delayed_work dwork;
		struct fairwq_rcu_work rwork;
		struct fairwq_sequenced_work swork;
	};
	enum kind kind;
	struct account account;
	atomic_t inside;		/* runs that are under way */
	atomic_t completed;		/* by the sequencer */
	struct delayed_work kernels;
	struct rcu_work kernels_rcu;
	struct account kernel;
};

/* A batch that may be shut down at any time, and is replaced then. */
struct slot {
	spinlock_t lock;		/* for @batch */
	struct fairwq_batch *batch;
};

/* All of it. Static, because a thread that is stuck may still use it. */
static struct books {
	unsigned int has;
	struct item item[NR_WORKS];
	struct slot slot[NR_SLOTS];
	struct fairwq_pool *pool;
	struct fairwq_serializer serializer;
	struct fairwq_serializer limiter;
	struct fairwq_sequencer sequencer;
	struct fairwq_flows *flows;
	struct workqueue_struct *wq;
	atomic_t created, released;	/* batches */
	atomic_t strangers;		/* works that are not of the suite */
	atomic_t overlaps;		/* runs of a work that overlapped another one */
	atomic_t bad_answers;		/* of calls that may not answer so */
	atomic_t bad_loops;		/* loops that left out numbers, or did some twice */
} books;

/* One of the threads that call. */
struct bookkeeper {
	struct rnd_state rnd;
	struct caller *caller;
};

static u32 below(struct bookkeeper *keeper, u32 n)
{
	return prandom_u32_state(&keeper->rnd) % n;
}

/* ---- batches that come and go */

static void count_released(struct fairwq_batch *batch, void *priv)
{
	atomic_inc(&books.released);
}

static struct fairwq_batch *batch_new(void)
{
	static const struct fairwq_batch_attrs attrs = { .released = count_released };
	struct fairwq_batch *batch = fairwq_batch_create(books.pool, &attrs, "slot");

	if (!IS_ERR(batch))
		atomic_inc(&books.created);
	return batch;
}

/* Return the batch of @slot, with a reference. */
static struct fairwq_batch *slot_get(struct slot *slot)
{
	struct fairwq_batch *batch;
	unsigned long flags;

	spin_lock_irqsave(&slot->lock, flags);
	batch = fairwq_batch_get(slot->batch);
	spin_unlock_irqrestore(&slot->lock, flags);
	return batch;
}

/* Put @batch into @slot. Return: the batch that was there, with its first reference. */
static struct fairwq_batch *slot_replace(struct slot *slot, struct fairwq_batch *batch)
{
	unsigned long flags;

	spin_lock_irqsave(&slot->lock, flags);
	swap(slot->batch, batch);
	spin_unlock_irqrestore(&slot->lock, flags);
	return batch;
}

/* ---- works */

static void item_fn(struct fairwq_work *work)
{
	struct item *item = container_of(work, struct item, work);
	int nr = atomic_inc_return(&item->account.ran);
	struct fairwq_batch *batch;

	if (atomic_inc_return(&item->inside) != 1)
		atomic_inc(&books.overlaps);
	if (nr % 64 == 0)
		usleep_range(10, 50);
	/* Some runs queue the work again. A work of a sequencer is still in there. */
	if (nr % 16 == 0 && item->kind != SEQUENCED) {
		batch = slot_get(&books.slot[nr % NR_SLOTS]);
		if (fairwq_queue(batch, work) == 1)
			atomic_inc(&item->account.accepted);
		fairwq_batch_put(batch);
	}
	atomic_dec(&item->inside);
}

static void item_complete(struct fairwq_work *work)
{
	atomic_inc(&container_of(work, struct item, work)->completed);
}

static void kernels_fn(struct work_struct *work)
{
	atomic_inc(&container_of(to_delayed_work(work), struct item, kernels)->kernel.ran);
}

static void kernels_rcu_fn(struct work_struct *work)
{
	atomic_inc(&container_of(to_rcu_work(work), struct item, kernels_rcu)->kernel.ran);
}

/* A cancel has taken @item out. */
static void item_cancelled(struct item *item)
{
	atomic_inc(&item->account.cancelled);
	if (item->kind == SEQUENCED)
		fairwq_sequencer_drop(&item->work);
}

/* A drop has taken @work out. Queue one that is not of the suite again, or its caller hangs. */
static void item_dropped(struct fairwq_work *work)
{
	struct item *item = container_of(work, struct item, work);

	if (item < books.item || item >= books.item + NR_WORKS) {
		atomic_inc(&books.strangers);
		mock_may_refuse(mock_pool_queue(books.pool, work));
		return;
	}
	atomic_inc(&item->account.dropped);
	if (item->kind == SEQUENCED)
		fairwq_sequencer_drop(work);
}

/* ---- the calls */

/* Make a queue call in one of the ways that there are. Return: as fairwq_queue(). */
static int queue_item(struct bookkeeper *keeper, struct item *item, struct fairwq_batch *batch)
{
	struct fairwq_serializer *order = NULL;
	u32 way = below(keeper, 8);

	if (item->kind == SEQUENCED) {
		if (books.has & MIX_ORDERS && way < 4)
			order = way % 2 ? &books.serializer : &books.limiter;
		return fairwq_sequencer_queue(&books.sequencer, order, batch, &item->swork);
	}
	if (way < 2 && books.has & MIX_ORDERS)
		return way ? fairwq_serializer_queue(&books.serializer, batch, &item->work) :
			     fairwq_serializer_queue(&books.limiter, batch, &item->work);
	if (way < 4 && books.has & MIX_FLOWS)
		return fairwq_flows_queue(books.flows, below(keeper, NR_KEYS), &item->work);
	if (way < 6 && item->kind == DELAYED)
		return fairwq_queue_delayed(batch, &item->dwork, way % 2);
	if (way == 6 && item->kind == GRACED)
		return fairwq_queue_rcu(batch, &item->rwork);
	return fairwq_queue(batch, &item->work);
}

static void call_queue(struct bookkeeper *keeper, struct item *item)
{
	struct fairwq_batch *batch = slot_get(&books.slot[below(keeper, NR_SLOTS)]);
	int ret = queue_item(keeper, item, batch);

	if (ret == 1)
		atomic_inc(&item->account.accepted);
	else if (ret && ret != -ECANCELED &&	/* a sync cancel disables the work meanwhile */
		 !(ret == -ESHUTDOWN && books.has & (MIX_SHUTDOWN | MIX_FLOWS)))
		atomic_inc(&books.bad_answers);
	fairwq_batch_put(batch);
	if (!(books.has & MIX_KERNEL))
		return;
	if (item->kind == GRACED ? queue_rcu_work(books.wq, &item->kernels_rcu) :
				   queue_delayed_work(books.wq, &item->kernels, below(keeper, 2)))
		atomic_inc(&item->kernel.accepted);
}

static void call_mod(struct bookkeeper *keeper, struct item *item)
{
	struct fairwq_batch *batch;
	unsigned long delay = below(keeper, 2);

	if (item->kind != DELAYED) {
		call_queue(keeper, item);
		return;
	}
	batch = slot_get(&books.slot[below(keeper, NR_SLOTS)]);
	if (!fairwq_mod_delayed(batch, &item->dwork, delay))
		atomic_inc(&item->account.accepted);
	fairwq_batch_put(batch);
	if (books.has & MIX_KERNEL && !mod_delayed_work(books.wq, &item->kernels, delay))
		atomic_inc(&item->kernel.accepted);
}

static void call_cancel(struct bookkeeper *keeper, struct item *item)
{
	bool sync = !below(keeper, 4);

	if (sync ? fairwq_work_cancel_sync(&item->work) : fairwq_work_cancel(&item->work))
		item_cancelled(item);
	if (!(books.has & MIX_KERNEL) || item->kind == GRACED)
		return;
	/*
	 * While a sync cancel disables a work, mod_delayed_work() returns as if
	 * it had queued the work. So such a work has none.
	 */
	sync &= item->kind != DELAYED;
	if (sync ? cancel_delayed_work_sync(&item->kernels) : cancel_delayed_work(&item->kernels))
		atomic_inc(&item->kernel.cancelled);
}

static void call_disable(struct bookkeeper *keeper, struct item *item)
{
	bool sync = !below(keeper, 4), queue = below(keeper, 2) && item->kind != SEQUENCED;
	struct fairwq_batch *batch;

	if (sync ? fairwq_work_disable_sync(&item->work) : fairwq_work_disable(&item->work))
		item_cancelled(item);
	batch = slot_get(&books.slot[below(keeper, NR_SLOTS)]);
	if (!queue)
		fairwq_work_enable(&item->work);
	else if (fairwq_work_enable(&item->work) && fairwq_queue(batch, &item->work) == 1)
		atomic_inc(&item->account.accepted);
	fairwq_batch_put(batch);
}

static void call_flush(struct bookkeeper *keeper, struct item *item)
{
	if (item->kind == DELAYED && below(keeper, 2))
		fairwq_delayed_work_flush(&item->dwork);
	else if (item->kind == GRACED && below(keeper, 2))
		fairwq_rcu_work_flush(&item->rwork);
	else
		fairwq_work_flush(&item->work);
}

/* Calls that concern one batch: of a slot, or of a key. */
static void call_batch(struct bookkeeper *keeper, struct item *item)
{
	struct fairwq_batch *batch;

	if (books.has & MIX_FLOWS && below(keeper, 2))
		batch = fairwq_flows_get(books.flows, below(keeper, NR_KEYS));
	else
		batch = slot_get(&books.slot[below(keeper, NR_SLOTS)]);
	if (IS_ERR(batch))
		return;
	switch (below(keeper, 4)) {
	case 0:
		fairwq_batch_cancel(batch, item_dropped);
		break;
	case 1:
		fairwq_batch_pause(batch);
		call_queue(keeper, item);
		fairwq_batch_resume(batch);
		break;
	case 2:
		if (fairwq_batch_set_weight(batch, 1 + below(keeper, FAIRWQ_MAX_WEIGHT)))
			atomic_inc(&books.bad_answers);
		break;
	case 3:
		fairwq_batch_flush(batch);
		break;
	}
	fairwq_batch_put(batch);
}

/* Calls that take many turns, or a grace period, and so are rare. */
static void call_rare(struct bookkeeper *keeper, struct item *item)
{
	switch (below(keeper, 4)) {
	case 0:
		fairwq_serializer_flush(&books.serializer);
		break;
	case 1:
		fairwq_serializer_flush(&books.limiter);
		break;
	case 2:
		fairwq_sequencer_flush(&books.sequencer);
		break;
	case 3:
		fairwq_pool_flush(books.pool);
		break;
	}
}

static void call_shutdown(struct bookkeeper *keeper, struct item *item)
{
	unsigned int how = below(keeper, 2) ? FAIRWQ_DROP_REST : FAIRWQ_RUN_REST;
	struct fairwq_batch *batch;

	if (books.has & MIX_FLOWS && below(keeper, 2)) {
		batch = fairwq_flows_get(books.flows, below(keeper, NR_KEYS));
		if (IS_ERR(batch))
			return;
	} else {
		batch = batch_new();
		if (IS_ERR(batch))
			return;
		batch = slot_replace(&books.slot[below(keeper, NR_SLOTS)], batch);
	}
	if (fairwq_batch_shutdown(batch, how, item_dropped))
		atomic_inc(&books.bad_answers);
}

#define LOOP	64U

static int count_numbers(unsigned long from, unsigned long to, void *arg)
{
	atomic_add(to - from, arg);
	return 0;
}

static void call_loop(struct bookkeeper *keeper, struct item *item)
{
	struct fairwq_batch *batch = slot_get(&books.slot[below(keeper, NR_SLOTS)]);
	atomic_t numbers = ATOMIC_INIT(0);
	int ret = fairwq_parallel_for(batch, 0, LOOP, 1, count_numbers, &numbers);

	if (atomic_read(&numbers) != (ret ? 0 : LOOP))
		atomic_inc(&books.bad_loops);
	fairwq_batch_put(batch);
}

/* Which calls are made, how often in 4096, and if the mix has what. */
static const struct {
	void (*call)(struct bookkeeper *keeper, struct item *item);
	unsigned int often, has;
} calls[] = {
	{ call_queue, 2000, 0 },
	{ call_mod, 600, MIX_DELAYED },
	{ call_cancel, 600, 0 },
	{ call_disable, 300, MIX_DISABLE },
	{ call_flush, 40, 0 },
	{ call_batch, 300, MIX_BATCHES },
	{ call_loop, 100, MIX_LOOPS },
	{ call_rare, 10, 0 },
	{ call_shutdown, 8, MIX_SHUTDOWN },
};

static void one_call(struct bookkeeper *keeper)
{
	struct item *item = &books.item[below(keeper, NR_WORKS)];
	u32 r = below(keeper, 4096);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		if (calls[i].has && !(books.has & calls[i].has))
			continue;
		if (r < calls[i].often) {
			calls[i].call(keeper, item);
			return;
		}
		r -= calls[i].often;
	}
	call_queue(keeper, item);
}

static void keep_books(void *arg)
{
	struct bookkeeper *keeper = arg;
	unsigned int i;

	for (i = 0; i < CALLS; i++) {
		one_call(keeper);
		cond_resched();
	}
}

/* ---- before and after */

static enum kind kind_of(unsigned int nr)
{
	if (nr % 4 == 1 && books.has & MIX_DELAYED)
		return DELAYED;
	if (nr % 4 == 2 && books.has & MIX_GRACED)
		return GRACED;
	if (nr % 4 == 3 && books.has & MIX_SEQUENCED)
		return SEQUENCED;
	return PLAIN;
}

static void item_init(struct item *item, enum kind kind)
{
	item->kind = kind;
	if (kind == DELAYED)
		fairwq_delayed_work_init(&item->dwork, item_fn);
	else if (kind == GRACED)
		fairwq_rcu_work_init(&item->rwork, item_fn);
	else if (kind == SEQUENCED)
		fairwq_sequenced_work_init(&item->swork, item_fn, item_complete);
	else
		fairwq_work_init(&item->work, item_fn);
	INIT_DELAYED_WORK(&item->kernels, kernels_fn);
	INIT_RCU_WORK(&item->kernels_rcu, kernels_rcu_fn);
}

static void books_begin(struct kunit *test, unsigned int has)
{
	static const struct fairwq_pool_attrs attrs = { .max_active = 3 };
	unsigned int i;

	memset(&books, 0, sizeof(books));
	books.has = has;
	books.pool = fairwq_pool_create(&attrs, "books");
	KUNIT_ASSERT_FALSE(test, IS_ERR(books.pool));
	books.flows = fairwq_flows_create(books.pool, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(books.flows));
	KUNIT_ASSERT_EQ(test, 0, fairwq_flows_set_idle_ms(books.flows, 1));
	books.wq = alloc_workqueue("books", WQ_UNBOUND, 0);
	KUNIT_ASSERT_NOT_NULL(test, books.wq);
	fairwq_serializer_init(&books.serializer);
	fairwq_limiter_init(&books.limiter, 2);
	fairwq_sequencer_init(&books.sequencer);
	for (i = 0; i < NR_SLOTS; i++) {
		spin_lock_init(&books.slot[i].lock);
		books.slot[i].batch = batch_new();
		KUNIT_ASSERT_FALSE(test, IS_ERR(books.slot[i].batch));
	}
	for (i = 0; i < NR_WORKS; i++)
		item_init(&books.item[i], kind_of(i));
}

/* Shut everything down, most of it by drops. Then no work is anywhere. */
static void books_end(struct kunit *test)
{
	unsigned int i, how = FAIRWQ_RUN_REST;

	for (i = 0; i < NR_WORKS; i++) {
		flush_delayed_work(&books.item[i].kernels);
		flush_rcu_work(&books.item[i].kernels_rcu);
	}
	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_shutdown(books.flows, FAIRWQ_DROP_REST,
						       item_dropped));
	/* An item of the last one may still queue itself to the first one. */
	for (i = 0; i < NR_SLOTS; i++)
		fairwq_batch_get(books.slot[i].batch);
	for (i = 0; i < NR_SLOTS; i++) {
		KUNIT_EXPECT_EQ(test, 0, fairwq_batch_shutdown(books.slot[i].batch, how,
							       item_dropped));
		how = FAIRWQ_DROP_REST;
	}
	fairwq_serializer_destroy(&books.serializer);
	fairwq_serializer_destroy(&books.limiter);
	fairwq_sequencer_flush(&books.sequencer);
	fairwq_pool_destroy(books.pool);
	for (i = 0; i < NR_SLOTS; i++)
		fairwq_batch_put(books.slot[i].batch);
	destroy_workqueue(books.wq);
}

/* Expect that the account of each work balances, and so does the sum of all. */
static void books_balance(struct kunit *test)
{
	unsigned long accepted = 0, ended = 0;
	struct item *item;
	unsigned int i;

	for (i = 0; i < NR_WORKS; i++) {
		item = &books.item[i];
		accepted += atomic_read(&item->account.accepted);
		ended += nr_ended(&item->account);
		KUNIT_EXPECT_EQ_MSG(test, atomic_read(&item->account.accepted),
				    nr_ended(&item->account), "work %u, kind %u\n", i, item->kind);
		KUNIT_EXPECT_GT(test, atomic_read(&item->account.ran), 0);
		KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&item->work));
		if (item->kind == SEQUENCED)
			KUNIT_EXPECT_EQ(test, atomic_read(&item->account.ran),
					atomic_read(&item->completed));
		KUNIT_EXPECT_EQ(test, atomic_read(&item->kernel.accepted), nr_ended(&item->kernel));
	}
	kunit_info(test, "%lu accepted, %lu ended\n", accepted, ended);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&books.strangers));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&books.overlaps));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&books.bad_answers));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&books.bad_loops));
	KUNIT_EXPECT_EQ(test, atomic_read(&books.created), atomic_read(&books.released));
}

/* Threads call at random. In the end each accepted call has had one end. */
static void books_balance_after_calls_at_random(struct kunit *test)
{
	static struct bookkeeper keeper[NR_THREADS];
	const struct mix *mix = test->param_value;
	unsigned int i;

	books_begin(test, mix->has);
	for (i = 0; i < NR_THREADS; i++) {
		prandom_seed_state(&keeper[i].rnd, 35 + i);
		keeper[i].caller = mock_caller(test, keep_books, &keeper[i]);
	}
	for (i = 0; i < NR_THREADS; i++)
		mock_caller_end(test, keeper[i].caller);
	books_end(test);
	books_balance(test);
}

static struct kunit_case books_cases[] = {
	KUNIT_CASE_PARAM(new_delay_swallows_no_queue_call, way_gen_params),
	KUNIT_CASE(cancel_leaves_the_work_of_a_loop),
	KUNIT_CASE(shutdown_leaves_the_work_of_a_loop),
	KUNIT_CASE(flows_leave_the_work_of_a_loop),
	KUNIT_CASE(cost_is_asked_of_own_works_only),
	KUNIT_CASE(paused_batch_is_dropped_whole),
	KUNIT_CASE(no_other_holder_undoes_a_drop),
	KUNIT_CASE_PARAM(books_balance_after_calls_at_random, mix_gen_params),
	{}
};

static struct kunit_suite books_suite = {
	.name = "fairwq_books",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = books_cases,
};

kunit_test_suite(books_suite);

MODULE_DESCRIPTION("KUnit: accepted is run, cancelled or dropped");
MODULE_LICENSE("GPL");
