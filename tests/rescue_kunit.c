// SPDX-License-Identifier: GPL-2.0
/*
 * Memory reclaim: a pool with FAIRWQ_MEM_RECLAIM goes on when the kernel cannot
 * create workers, because its workqueue has a rescuer thread.
 *
 * A case makes each allocation by a worker fail, so that it cannot create
 * another one, and blocks all workers. Needs CONFIG_FAILSLAB; init.sh limits
 * failures to tasks with make_it_fail.
 *
 * The others check that each call that waits is reported if reclaim may wait
 * for the caller, and what the caller waits for may need memory.
 */
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/tracepoint.h>
#include <trace/events/kmem.h>

#include "lib/hook.h"

#define BLOCKERS	400

/* ---- no worker can be created -------------------------------------------- */

/* A work of a plain workqueue that blocks its worker. */
struct blocker {
	struct work_struct work;
	struct starved *starved;
};

struct starved {
	struct workqueue_struct *wq;
	struct blocker *blocker;
	struct completion go;
	atomic_t held;			/* number of blocked workers */
};

static void blocker_fn(struct work_struct *work)
{
	struct starved *starved = container_of(work, struct blocker, work)->starved;

	atomic_inc(&starved->held);
	wait_for_completion(&starved->go);
}

/* Make all allocations by workers fail, or stop that. */
static void workers_fail(bool fail)
{
#ifdef CONFIG_FAILSLAB
	struct task_struct *process, *task;

	rcu_read_lock();
	for_each_process_thread(process, task)
		if (task->flags & PF_WQ_WORKER)
			WRITE_ONCE(task->make_it_fail, fail);
	rcu_read_unlock();
#endif
}

/* Block all workers, while the kernel cannot create more. */
static void starve(struct kunit *test, struct starved *starved)
{
	unsigned int cpu = cpumask_first(cpu_online_mask);
	int i, held, still = 0;

	workers_fail(true);
	for (i = 0; i < BLOCKERS; i++) {
		starved->blocker[i].starved = starved;
		INIT_WORK(&starved->blocker[i].work, blocker_fn);
		/* Use all CPUs, because each one or each cache may have workers of its own. */
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
		queue_work_on(cpu, starved->wq, &starved->blocker[i].work);
	}
	/*
	 * If this ends too soon, another worker may come. It takes one of the
	 * other blockers, because these wait in front of the items of the case.
	 */
	for (held = 0; still < 20; still++) {
		msleep(20);
		if (atomic_read(&starved->held) != held)
			still = 0;
		held = atomic_read(&starved->held);
	}
	KUNIT_EXPECT_LT(test, held, BLOCKERS);
}

static void starved_end(struct starved *starved)
{
	workers_fail(false);
	complete_all(&starved->go);
	destroy_workqueue(starved->wq);
}

static struct starved *starved_new(struct kunit *test)
{
	struct starved *starved = kunit_kzalloc(test, sizeof(*starved), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, starved);
	if (!IS_ENABLED(CONFIG_FAILSLAB))
		kunit_skip(test, "a kernel without CONFIG_FAILSLAB");
	init_completion(&starved->go);
	starved->blocker = kunit_kcalloc(test, BLOCKERS, sizeof(*starved->blocker), GFP_KERNEL);
	starved->wq = alloc_workqueue("blockers", WQ_UNBOUND, BLOCKERS);
	KUNIT_ASSERT_NOT_NULL(test, starved->blocker);
	KUNIT_ASSERT_NOT_NULL(test, starved->wq);
	return starved;
}

/* ---- the cases ------------------------------------------------------------ */

#define NR_ITEMS	3

/* A pool with two batches, and their items, which write letters into the log. */
struct clients {
	struct fairwq_pool *pool;
	struct fairwq_batch *batch[2];
	struct mock_item *item[2][NR_ITEMS];
	struct completion done[2];
};

static void clients_begin(struct kunit *test, struct clients *clients, unsigned int flags)
{
	const struct fairwq_pool_attrs attrs = { .flags = flags, .max_active = 2 };
	int i, j;

	clients->pool = fairwq_pool_create(&attrs, "rescue");
	KUNIT_ASSERT_FALSE(test, IS_ERR(clients->pool));
	for (i = 0; i < 2; i++) {
		init_completion(&clients->done[i]);
		clients->batch[i] = fairwq_batch_create(clients->pool, NULL, "%c", 'a' + i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(clients->batch[i]));
		for (j = 0; j < NR_ITEMS; j++)
			clients->item[i][j] = mock_item(test, 'a' + i);
		clients->item[i][NR_ITEMS - 1]->done = &clients->done[i];
	}
}

static void clients_queue(struct kunit *test, struct clients *clients)
{
	int i, j;

	for (i = 0; i < 2; i++)
		for (j = 0; j < NR_ITEMS; j++)
			KUNIT_EXPECT_EQ(test, 1, fairwq_queue(clients->batch[i],
							      &clients->item[i][j]->work));
}

static void clients_end(struct clients *clients)
{
	fairwq_batch_dispose(clients->batch[0]);
	fairwq_batch_dispose(clients->batch[1]);
	fairwq_pool_destroy(clients->pool);
}

/*
 * The items of a pool with FAIRWQ_MEM_RECLAIM run. Those of a pool without it
 * wait until there are workers again.
 */
static void pool_for_reclaim_goes_on(struct kunit *test)
{
	struct clients reclaim = { }, plain = { };
	struct starved *starved;
	bool ran[2];

	mock_begin(test, 1);
	starved = starved_new(test);
	clients_begin(test, &reclaim, FAIRWQ_MEM_RECLAIM);
	clients_begin(test, &plain, 0);
	starve(test, starved);
	clients_queue(test, &plain);
	clients_queue(test, &reclaim);
	/* The rescuer comes after some tenths of a second, and runs the items of both batches. */
	ran[0] = mock_wait(&reclaim.done[0]);
	ran[1] = mock_wait(&reclaim.done[1]);
	KUNIT_EXPECT_TRUE(test, ran[0]);
	KUNIT_EXPECT_TRUE(test, ran[1]);
	KUNIT_EXPECT_FALSE(test, completion_done(&plain.done[0]));
	starved_end(starved);
	mock_await(test, &plain.done[0]);
	mock_await(test, &plain.done[1]);
	clients_end(&reclaim);
	clients_end(&plain);
}

/* ---- calls that wait ------------------------------------------------------- */

/*
 * What an item or a thread waits for: items that stand until @go, in a pool of
 * their own. One is in @one, one each in @serial, @limiter and @sequencer;
 * @behind waits for a turn in @one, and @kept in @serial.
 */
struct waited {
	struct fairwq_pool *pool;
	struct fairwq_batch *one, *many;
	struct fairwq_serializer serial;
	struct fairwq_serializer limiter;
	struct fairwq_sequencer sequencer;
	struct stander {
		struct fairwq_work work;
		struct completion *go;
	} stands, serialized, limited;
	struct fairwq_sequenced_work sequenced;
	struct fairwq_work behind, kept;
	struct fairwq_delayed_work delayed;
	struct fairwq_rcu_work graced;
	struct completion go;
};

static void stander_fn(struct fairwq_work *work)
{
	wait_for_completion(container_of(work, struct stander, work)->go);
}

static void sequenced_fn(struct fairwq_work *work)
{
	wait_for_completion(&container_of(work, struct waited, sequenced.work)->go);
}

static void stander_init(struct waited *w, struct stander *stander)
{
	fairwq_work_init(&stander->work, stander_fn);
	stander->go = &w->go;
}

static struct waited *waited_new(struct kunit *test, unsigned int flags)
{
	const struct fairwq_pool_attrs attrs = { .flags = flags, .max_active = 8 };
	const struct fairwq_batch_attrs one = { .max_active = 1 };
	struct waited *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	init_completion(&w->go);
	w->pool = fairwq_pool_create(&attrs, "waited");
	KUNIT_ASSERT_FALSE(test, IS_ERR(w->pool));
	w->one = fairwq_batch_create(w->pool, &one, "one");
	w->many = fairwq_batch_create(w->pool, NULL, "many");
	KUNIT_ASSERT_FALSE(test, IS_ERR(w->one) || IS_ERR(w->many));
	fairwq_serializer_init(&w->serial);
	fairwq_limiter_init(&w->limiter, 2);
	fairwq_sequencer_init(&w->sequencer);
	stander_init(w, &w->stands);
	stander_init(w, &w->serialized);
	stander_init(w, &w->limited);
	fairwq_sequenced_work_init(&w->sequenced, sequenced_fn, mock_nothing_fn);
	fairwq_work_init(&w->behind, mock_nothing_fn);
	fairwq_work_init(&w->kept, mock_nothing_fn);
	fairwq_delayed_work_init(&w->delayed, mock_nothing_fn);
	fairwq_rcu_work_init(&w->graced, mock_nothing_fn);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(w->one, &w->stands.work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(w->one, &w->behind));
	KUNIT_EXPECT_EQ(test, 1, fairwq_serializer_queue(&w->serial, w->many,
							 &w->serialized.work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_serializer_queue(&w->serial, w->many, &w->kept));
	KUNIT_EXPECT_EQ(test, 1, fairwq_serializer_queue(&w->limiter, w->many, &w->limited.work));
	KUNIT_EXPECT_EQ(test, 1, fairwq_sequencer_queue(&w->sequencer, NULL, w->many,
							&w->sequenced));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_delayed(w->one, &w->delayed, 1000 * HZ));
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue_rcu(w->one, &w->graced));
	/* It runs, and does not wait in the queue. */
	mock_until(test, fairwq_work_busy(&w->stands.work) == FAIRWQ_BUSY_RUNNING);
	return w;
}

/* End what the call under test has left. */
static void waited_end(struct waited *w)
{
	complete_all(&w->go);
	fairwq_delayed_work_cancel_sync(&w->delayed);
	fairwq_serializer_destroy(&w->serial);
	fairwq_serializer_destroy(&w->limiter);
	fairwq_sequencer_flush(&w->sequencer);
	if (!w->pool)
		return;
	fairwq_batch_dispose(w->one);
	fairwq_batch_dispose(w->many);
	fairwq_pool_destroy(w->pool);
}

static void flush_batch(struct waited *w)
{
	fairwq_batch_flush(w->one);
}

static void shut_batch_down(struct waited *w)
{
	fairwq_batch_shutdown(fairwq_batch_get(w->one), FAIRWQ_RUN_REST, NULL);
}

static void flush_pool(struct waited *w)
{
	fairwq_pool_flush(w->pool);
}

static void drain_pool(struct waited *w)
{
	fairwq_pool_drain(w->pool);
}

static void destroy_pool(struct waited *w)
{
	fairwq_delayed_work_cancel(&w->delayed);
	fairwq_batch_dispose(w->one);
	fairwq_batch_dispose(w->many);
	fairwq_pool_destroy(w->pool);
	w->pool = NULL;
}

static void destroy_flows(struct waited *w)
{
	struct fairwq_flows *flows = fairwq_flows_create(w->pool, NULL);

	if (!WARN_ON(IS_ERR(flows)))
		fairwq_flows_destroy(flows);
}

static void flush_running(struct waited *w)
{
	fairwq_work_flush(&w->stands.work);
}

static void flush_queued(struct waited *w)
{
	fairwq_work_flush(&w->behind);
}

static void flush_kept(struct waited *w)
{
	fairwq_work_flush(&w->kept);
}

static void flush_delayed(struct waited *w)
{
	fairwq_delayed_work_flush(&w->delayed);
}

static void flush_graced(struct waited *w)
{
	fairwq_rcu_work_flush(&w->graced);
}

static void flush_serializer(struct waited *w)
{
	fairwq_serializer_flush(&w->serial);
}

static void destroy_serializer(struct waited *w)
{
	fairwq_serializer_destroy(&w->serial);
}

static void drop_serializer(struct waited *w)
{
	fairwq_serializer_shutdown(&w->serial, FAIRWQ_DROP_REST, NULL);
}

static void flush_limiter(struct waited *w)
{
	fairwq_serializer_flush(&w->limiter);
}

static void destroy_limiter(struct waited *w)
{
	fairwq_serializer_destroy(&w->limiter);
}

static void flush_sequencer(struct waited *w)
{
	fairwq_sequencer_flush(&w->sequencer);
}

static void cancel_running(struct waited *w)
{
	fairwq_work_cancel_sync(&w->stands.work);
}

static void cancel_queued(struct waited *w)
{
	fairwq_work_cancel_sync(&w->behind);
}

static int body(unsigned long from, unsigned long to, void *arg)
{
	return 0;
}

static void loop_outside(struct waited *w)
{
	int ret = fairwq_parallel_for(w->many, 0, 100, 10, body, NULL);

	WARN_ON(ret);
}

struct kind {
	const char *name;
	void (*wait)(struct waited *w);
	bool cancels;			/* a cancel waits for what has begun, as in cmwq */
	bool no_item;			/* from an item of another pool it is refused */
};

static const struct kind kinds[] = {
	{ "fairwq_batch_flush", flush_batch },
	{ "fairwq_batch_shutdown", shut_batch_down },
	{ "fairwq_pool_flush", flush_pool },
	{ "fairwq_pool_drain", drain_pool },
	{ "fairwq_pool_destroy", destroy_pool },
	{ "fairwq_flows_destroy", destroy_flows },
	{ "fairwq_work_flush, running", flush_running },
	{ "fairwq_work_flush, queued", flush_queued },
	{ "fairwq_work_flush, in a serializer", flush_kept },
	{ "fairwq_delayed_work_flush", flush_delayed },
	{ "fairwq_rcu_work_flush", flush_graced },
	{ "fairwq_serializer_flush", flush_serializer },
	{ "fairwq_serializer_destroy", destroy_serializer },
	{ "fairwq_serializer_shutdown", drop_serializer },
	{ "fairwq_limiter_flush", flush_limiter },
	{ "fairwq_limiter_destroy", destroy_limiter },
	{ "fairwq_sequencer_flush", flush_sequencer },
	{ "fairwq_work_cancel_sync, running", cancel_running, .cancels = true },
	{ "fairwq_work_cancel_sync, queued", cancel_queued, .cancels = true },
	{ "fairwq_parallel_for", loop_outside, .no_item = true },
};

/* An item, or a call of a thread, that calls kind->wait(). */
struct caller {
	struct fairwq_work work;
	const struct kind *kind;
	struct waited *waited;
	struct completion done;
};

static atomic_t nr_noticed;
static struct completion *opens;	/* completed when the call is noticed */

static void notice(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point != FAIRWQ_POINT_UNSAFE_WAIT)
		return;
	atomic_inc(&nr_noticed);
	complete_all(READ_ONCE(opens));
}

static void caller_fn(struct fairwq_work *work)
{
	struct caller *caller = container_of(work, struct caller, work);

	caller->kind->wait(caller->waited);
	complete_all(&caller->done);
}

/* Call it as a task that reclaims memory. */
static bool call_reclaiming(struct fairwq_work *work)
{
	unsigned int flags = memalloc_noreclaim_save();

	caller_fn(work);
	memalloc_noreclaim_restore(flags);
	return true;
}

/*
 * Have an item of @from, or a thread with PF_MEMALLOC, wait for items of a pool
 * with @flags, in each way. Expect that it is noticed, or not. A call that is
 * not noticed waits until the items are let go, so these begin to go when the
 * call has begun to wait, or never.
 */
static void waits_are(struct kunit *test, struct fairwq_batch *from, unsigned int flags,
		      bool noticed)
{
	struct caller *caller = kunit_kzalloc(test, sizeof(*caller), GFP_KERNEL);
	const struct kind *kind;
	struct call *call = NULL;

	KUNIT_ASSERT_NOT_NULL(test, caller);
	fairwq_work_init(&caller->work, caller_fn);
	for (kind = kinds; kind < kinds + ARRAY_SIZE(kinds); kind++) {
		if (kind->no_item && from)
			continue;
		init_completion(&caller->done);
		caller->kind = kind;
		caller->waited = waited_new(test, flags);
		atomic_set(&nr_noticed, 0);
		WRITE_ONCE(opens, &caller->waited->go);
		fairwq_test_set_hook(notice);
		if (!noticed || kind->cancels)
			complete_all(&caller->waited->go);
		if (from)
			KUNIT_EXPECT_EQ(test, 1, fairwq_queue(from, &caller->work));
		else
			call = mock_call_start(test, call_reclaiming, &caller->work);
		if (!mock_wait(&caller->done))
			complete_all(&caller->waited->go);
		mock_await(test, &caller->done);
		if (call)
			mock_call_end(test, call);
		fairwq_test_set_hook(NULL);
		KUNIT_EXPECT_EQ_MSG(test, noticed && !kind->cancels,
				    atomic_read(&nr_noticed) > 0, "%s\n", kind->name);
		waited_end(caller->waited);
		if (from)
			fairwq_batch_flush(from);
	}
}

/* An item of a pool with FAIRWQ_MEM_RECLAIM must not wait for a pool without it. */
static void wait_of_an_item_for_reclaim_is_reported(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	mock->flags = FAIRWQ_MEM_RECLAIM;
	a = mock_begin(test, 2);
	/* The destruction of a pool is noticed by cmwq, too. */
	pr_info("# expect-splat begin MEM_RECLAIM\n");
	waits_are(test, a, 0, true);
	pr_info("# expect-splat end\n");
	waits_are(test, a, FAIRWQ_MEM_RECLAIM, false);
}

/* Nor must a task that reclaims memory. */
static void wait_of_a_task_that_reclaims_is_reported(struct kunit *test)
{
	mock_begin(test, 2);
	pr_info("# expect-splat begin MEM_RECLAIM\n");
	waits_are(test, NULL, 0, true);
	pr_info("# expect-splat end\n");
	waits_are(test, NULL, FAIRWQ_MEM_RECLAIM, false);
}

/* Any other item may wait for either. */
static void wait_of_another_item_is_right(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 2);

	waits_are(test, a, 0, false);
	waits_are(test, a, FAIRWQ_MEM_RECLAIM, false);
}

/* ---- allocations of an item that reclaim may wait for ---------------------- */

#ifdef CONFIG_TRACEPOINTS
/* An item of a pool with FAIRWQ_MEM_RECLAIM, and the allocations that fairwq makes in it. */
static struct {
	struct fairwq_work work;
	struct task_struct *task;	/* of the item, while it is watched */
	unsigned int nr;
	struct completion done;
} frugal;

/* Count an allocation of the item. */
static void count_kmalloc(void *data, unsigned long call_site, const void *ptr,
			  size_t bytes_req, size_t bytes_alloc, gfp_t gfp_flags, int node)
{
	if (READ_ONCE(frugal.task) == current)
		frugal.nr++;
}

static void frugal_fn(struct fairwq_work *work)
{
	struct fairwq_task self;

	WRITE_ONCE(frugal.task, current);
	kfree(kmalloc(sizeof(self), GFP_NOIO));	/* the control */
	fairwq_task_here(&self);
	fairwq_block_begin();
	fairwq_block_end();
	WRITE_ONCE(frugal.task, NULL);
	complete(&frugal.done);
}

/*
 * An item that memory reclaim may wait for does not wait for memory when it
 * forks, or when it says that it may block: those calls take none.
 */
static void fork_takes_no_memory(struct kunit *test)
{
	static const struct fairwq_pool_attrs attrs = {
		.flags = FAIRWQ_MEM_RECLAIM, .max_active = 1,
	};
	struct fairwq_pool *pool = fairwq_pool_create(&attrs, "frugal");

	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	memset(&frugal, 0, sizeof(frugal));
	init_completion(&frugal.done);
	fairwq_work_init(&frugal.work, frugal_fn);
	KUNIT_ASSERT_EQ(test, 0, register_trace_kmalloc(count_kmalloc, NULL));
	KUNIT_EXPECT_EQ(test, 1, mock_pool_queue(pool, &frugal.work));
	mock_await(test, &frugal.done);
	unregister_trace_kmalloc(count_kmalloc, NULL);
	tracepoint_synchronize_unregister();
	fairwq_pool_destroy(pool);
	KUNIT_EXPECT_EQ(test, 1U, frugal.nr);
}
#else
static void fork_takes_no_memory(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_TRACEPOINTS");
}
#endif

static struct kunit_case rescue_cases[] = {
	KUNIT_CASE(pool_for_reclaim_goes_on),
	KUNIT_CASE(wait_of_an_item_for_reclaim_is_reported),
	KUNIT_CASE(wait_of_a_task_that_reclaims_is_reported),
	KUNIT_CASE(wait_of_another_item_is_right),
	KUNIT_CASE(fork_takes_no_memory),
	{}
};

static struct kunit_suite rescue_suite = {
	.name = "fairwq_rescue",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = rescue_cases,
};

kunit_test_suite(rescue_suite);

MODULE_DESCRIPTION("KUnit: items that memory reclaim waits for");
MODULE_LICENSE("GPL");
