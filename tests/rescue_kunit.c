// SPDX-License-Identifier: GPL-2.0
/*
 * Memory reclaim: a pool with FAIRWQ_MEM_RECLAIM goes on when the kernel cannot create
 * workers, because its workqueue has a rescuer thread.
 *
 * The case makes each allocation by a worker fail, so that it cannot create another one, and
 * blocks all workers. Needs CONFIG_FAILSLAB; init.sh limits failures to tasks with
 * make_it_fail.
 */
#include <linux/sched/signal.h>

#include "lib/fixture.h"

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
 * The items of a pool with FAIRWQ_MEM_RECLAIM run. Those of a pool without it wait until
 * there are workers again.
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
	ran[0] = wait_for_completion_timeout(&reclaim.done[0], MOCK_WAIT);
	ran[1] = wait_for_completion_timeout(&reclaim.done[1], MOCK_WAIT);
	KUNIT_EXPECT_TRUE(test, ran[0]);
	KUNIT_EXPECT_TRUE(test, ran[1]);
	KUNIT_EXPECT_FALSE(test, completion_done(&plain.done[0]));
	starved_end(starved);
	mock_await(test, &plain.done[0]);
	mock_await(test, &plain.done[1]);
	clients_end(&reclaim);
	clients_end(&plain);
}

static struct kunit_case rescue_cases[] = {
	KUNIT_CASE(pool_for_reclaim_goes_on),
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
