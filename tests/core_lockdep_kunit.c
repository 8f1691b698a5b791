// SPDX-License-Identifier: GPL-2.0
/*
 * Lockdep: what fairwq tells it about items, and about calls that wait for
 * items.
 *
 * An item holds the maps of its pool and of its serializer. A call that waits
 * for items acquires the map that they hold. If a lock is held in that call and
 * taken by an item, lockdep sees a cycle and reports it.
 *
 * The cases only check which maps are held and acquired, because a report would
 * switch lockdep off for all later cases. They were seen to fail when a call
 * that tells lockdep was left out: each of the two pairs in fairwq_call(), and
 * that in each function below that waits.
 */
#include <linux/mutex.h>

#include "core/compat.h"
#include "lib/order.h"

/* The kernel has lock_set_cmp_fn(), and lockdep is on. */
#if defined(CONFIG_PROVE_LOCKING) && defined(lock_set_cmp_fn)

#define need_lockdep(test)						\
	do {								\
		if (!READ_ONCE(debug_locks))				\
			kunit_skip(test, "lockdep is off");		\
	} while (0)

static struct fairwq_serializer *serial_new(struct kunit *test)
{
	struct fairwq_serializer *serial = kunit_kzalloc(test, sizeof(*serial), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, serial);
	fairwq_serializer_init(serial);
	return serial;
}

static struct fairwq_serializer *limiter_new(struct kunit *test)
{
	struct fairwq_serializer *limiter = kunit_kzalloc(test, sizeof(*limiter), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, limiter);
	fairwq_limiter_init(limiter, 2);
	return limiter;
}

/* ---- what an item holds -------------------------------------------------- */

/* An item that notes which of three maps it holds. */
struct looker {
	struct fairwq_work work;
	const struct lockdep_map *pool, *serial, *limiter;
	int holds_pool, holds_serial, holds_limiter;
};

static void looker_fn(struct fairwq_work *work)
{
	struct looker *looker = container_of(work, struct looker, work);

	looker->holds_pool = lock_is_held(looker->pool);
	looker->holds_serial = lock_is_held(looker->serial);
	looker->holds_limiter = lock_is_held(looker->limiter);
}

static struct looker *looker_new(struct kunit *test, struct fairwq_serializer *serial,
				 struct fairwq_serializer *limiter)
{
	struct looker *looker = kunit_kzalloc(test, sizeof(*looker), GFP_KERNEL);
	struct mock *mock = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, looker);
	fairwq_work_init(&looker->work, looker_fn);
	looker->pool = &mock->pool->lockdep_map;
	looker->serial = &serial->lockdep_map;
	looker->limiter = &limiter->lockdep_map;
	looker->holds_pool = LOCK_STATE_UNKNOWN;
	return looker;
}

static void looker_check(struct kunit *test, const struct looker *looker, bool serial,
			 bool limiter)
{
	KUNIT_EXPECT_EQ(test, LOCK_STATE_HELD, looker->holds_pool);
	KUNIT_EXPECT_EQ(test, serial ? LOCK_STATE_HELD : LOCK_STATE_NOT_HELD,
			looker->holds_serial);
	KUNIT_EXPECT_EQ(test, limiter ? LOCK_STATE_HELD : LOCK_STATE_NOT_HELD,
			looker->holds_limiter);
}

/*
 * An item holds the maps of its pool and of its serializer. The next item on
 * the runner does not hold the map of that serializer.
 */
static void item_holds_its_maps(struct kunit *test)
{
	struct fairwq_serializer *serial = serial_new(test);
	struct fairwq_serializer *limiter = limiter_new(test);
	struct looker *looker[4];
	struct fairwq_batch *a;
	unsigned int i;

	need_lockdep(test);
	a = mock_begin(test, 2);
	for (i = 0; i < 4; i++)
		looker[i] = looker_new(test, serial, limiter);
	fairwq_batch_pause(a);
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(serial, a, &looker[0]->work));
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &looker[1]->work));
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(limiter, a, &looker[2]->work));
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &looker[3]->work));
	fairwq_batch_resume(a);
	fairwq_batch_flush(a);
	looker_check(test, looker[0], true, false);
	looker_check(test, looker[1], false, false);
	looker_check(test, looker[2], false, true);
	looker_check(test, looker[3], false, false);
	fairwq_serializer_destroy(serial);
	fairwq_serializer_destroy(limiter);
}

/* Each item of a burst holds the maps of its pool and of its serializer. */
static void item_of_a_burst_holds_its_maps(struct kunit *test)
{
	struct fairwq_serializer *serial = serial_new(test);
	struct fairwq_serializer *limiter = limiter_new(test);
	struct mock_gate *gate = mock_gate_new(test);
	struct looker *looker[4];
	struct fairwq_batch *a;
	unsigned int i;

	need_lockdep(test);
	KUNIT_ASSERT_EQ(test, 0, fairwq_serializer_set_inline(serial, FAIRWQ_MAX_INLINE_US));
	a = mock_begin(test, 2);
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(serial, a, &gate->work));
	mock_await(test, &gate->entered);
	for (i = 0; i < 4; i++) {
		looker[i] = looker_new(test, serial, limiter);
		KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(serial, a, &looker[i]->work));
	}
	complete_all(&gate->open);
	fairwq_serializer_destroy(serial);
	for (i = 0; i < 4; i++)
		looker_check(test, looker[i], true, false);
}

/* ---- what a call that waits takes ----------------------------------------- */

/* The map that was acquired last while another map of its class was held. */
static const struct lockdep_map *judged;

/* Note @wanted. Return: -1, which says that the order is right, so there is no report. */
static int judge(const struct lockdep_map *held, const struct lockdep_map *wanted)
{
	if (held->key == wanted->key)
		judged = wanted;
	return -1;
}

/*
 * Check whether @wait(@what) acquires @map. A copy of @map is held meanwhile,
 * so lockdep asks judge() whether a second map of that class may be acquired.
 * It asks once for each set of held locks, so each use of the macro also holds
 * a map of a new class.
 */
#define is_taken(map, wait, what)					\
	({								\
		static struct lock_class_key __key;			\
		struct lockdep_map *__map = (map), __new, __held;	\
									\
		lockdep_init_map(&__new, #wait, &__key, 0);		\
		lockdep_copy_map(&__held, __map);			\
		lockdep_set_lock_cmp_fn(__map, judge, NULL);		\
		judged = NULL;						\
		lock_map_acquire(&__new);				\
		lock_map_acquire(&__held);				\
		wait(what);						\
		lock_map_release(&__held);				\
		lock_map_release(&__new);				\
		judged == __map;					\
	})

#define EXPECT_TAKEN(test, map, wait, what)				\
	KUNIT_EXPECT_TRUE_MSG(test, is_taken(map, wait, what), #wait "\n")

static void waiting_call_takes_the_map(struct kunit *test)
{
	struct fairwq_serializer *serial = serial_new(test);
	struct fairwq_serializer *limiter = limiter_new(test);
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	need_lockdep(test);
	a = mock_begin(test, 2);
	mock_open(test);
	EXPECT_TAKEN(test, &serial->lockdep_map, fairwq_serializer_flush, serial);
	EXPECT_TAKEN(test, &serial->lockdep_map, fairwq_serializer_destroy, serial);
	EXPECT_TAKEN(test, &limiter->lockdep_map, fairwq_serializer_flush, limiter);
	EXPECT_TAKEN(test, &limiter->lockdep_map, fairwq_serializer_destroy, limiter);
	EXPECT_TAKEN(test, &mock->pool->lockdep_map, fairwq_batch_flush, a);
	EXPECT_TAKEN(test, &mock->pool->lockdep_map, fairwq_pool_flush, mock->pool);
	EXPECT_TAKEN(test, &mock->pool->lockdep_map, fairwq_pool_drain, mock->pool);
	KUNIT_EXPECT_TRUE(test, debug_locks);
}

static int empty_body(unsigned long from, unsigned long to, void *arg)
{
	return 0;
}

static void loop_in(struct fairwq_batch *batch)
{
	mock_may_refuse(fairwq_parallel_for(batch, 0, 1, 1, empty_body, NULL));
}

/* A loop that a thread starts waits for an item of the pool, too. */
static void loop_of_a_thread_takes_the_map(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	need_lockdep(test);
	a = mock_begin(test, 2);
	mock_open(test);
	KUNIT_EXPECT_TRUE(test, is_taken(&mock->pool->lockdep_map, loop_in, a));
	KUNIT_EXPECT_TRUE(test, debug_locks);
}

/* ---- tasks --------------------------------------------------------------- */

/* An item that joins a task, which joins another. */
struct joining {
	struct fairwq_work work;
	struct kunit *test;
	struct fairwq_task self, outer, inner;
};

static void inner_fn(struct fairwq_task *self)
{
	struct joining *j = container_of(self, struct joining, inner);

	KUNIT_EXPECT_EQ(j->test, LOCK_STATE_HELD, lock_is_held(&j->inner.lockdep_map));
	/* A join releases the map of the outer task, because both may be of one class. */
	KUNIT_EXPECT_EQ(j->test, LOCK_STATE_NOT_HELD, lock_is_held(&j->outer.lockdep_map));
}

static void outer_fn(struct fairwq_task *self)
{
	struct joining *j = container_of(self, struct joining, outer);

	KUNIT_EXPECT_EQ(j->test, LOCK_STATE_HELD, lock_is_held(&j->outer.lockdep_map));
	fairwq_task_init(&j->inner, inner_fn);
	fairwq_fork(self, &j->inner);
	fairwq_join(self, &j->inner);
	KUNIT_EXPECT_EQ(j->test, LOCK_STATE_HELD, lock_is_held(&j->outer.lockdep_map));
	KUNIT_EXPECT_EQ(j->test, LOCK_STATE_NOT_HELD, lock_is_held(&j->inner.lockdep_map));
}

static void join_outer(struct joining *j)
{
	fairwq_join(&j->self, &j->outer);
}

static void joining_fn(struct fairwq_work *work)
{
	struct joining *j = container_of(work, struct joining, work);

	fairwq_task_here(&j->self);
	fairwq_task_init(&j->outer, outer_fn);
	fairwq_fork(&j->self, &j->outer);
	EXPECT_TAKEN(j->test, &j->outer.lockdep_map, join_outer, j);
	KUNIT_EXPECT_EQ(j->test, LOCK_STATE_NOT_HELD, lock_is_held(&j->outer.lockdep_map));
}

/* A join acquires the map of its task, so a lock that the task takes must not be held. */
static void join_takes_the_map_of_its_task(struct kunit *test)
{
	struct joining *j = kunit_kzalloc(test, sizeof(*j), GFP_KERNEL);
	struct fairwq_batch *a;

	KUNIT_ASSERT_NOT_NULL(test, j);
	need_lockdep(test);
	a = mock_begin(test, 1);
	mock_open(test);
	j->test = test;
	fairwq_work_init(&j->work, joining_fn);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &j->work));
	fairwq_batch_flush(a);
	KUNIT_EXPECT_TRUE(test, debug_locks);
}

/* ---- right code is not reported ------------------------------------------- */

/* What the tasks of a case share. A report of lockdep switches it off. */
struct right {
	struct fairwq_work work;
	void (*fn)(struct right *right, struct fairwq_task *self);
	struct mutex mutex;		/* over joins and loops, as the case says */
	struct completion done;
};

struct right_task {
	struct fairwq_task task;
	struct right *right;
	unsigned int depth;
};

static void right_fn(struct fairwq_work *work)
{
	struct right *right = container_of(work, struct right, work);
	struct fairwq_task self;

	fairwq_task_here(&self);
	right->fn(right, &self);
	complete(&right->done);
}

/* A batch of a pool for which items of mock->pool wait, and never the other way. */
static struct fairwq_batch *far;

/* Run @fn as an item until other runners have taken @stolen tasks; expect no report. */
static void expect_quiet_in(struct kunit *test, struct fairwq_batch *batch,
			    void (*fn)(struct right *right, struct fairwq_task *self),
			    u64 stolen)
{
	struct right *right = kunit_kzalloc(test, sizeof(*right), GFP_KERNEL);
	struct mock_bound bound = mock_bound(MOCK_WAIT_MS);
	static struct lock_class_key key[2];

	KUNIT_ASSERT_NOT_NULL(test, right);
	mutex_init(&right->mutex);
	right->fn = fn;
	fairwq_work_init(&right->work, right_fn);
	/* An item that waits for another pool has a class that no item of that pool has. */
	lockdep_init_map(&right->work.lockdep_map, "right", &key[batch == far], 0);
	do {
		init_completion(&right->done);
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &right->work));
		mock_await(test, &right->done);
		fairwq_batch_flush(batch);
		KUNIT_ASSERT_TRUE(test, debug_locks);
	} while (mock_counter(batch->pool, FAIRWQ_STOLEN) < stolen && !mock_bound_reached(&bound));
	KUNIT_EXPECT_GE(test, mock_counter(batch->pool, FAIRWQ_STOLEN), stolen);
}

/* The same in a new batch of a new pool. */
static void expect_quiet(struct kunit *test, void (*fn)(struct right *right,
							struct fairwq_task *self),
			 unsigned int runners, u64 stolen)
{
	struct fairwq_batch *a;

	need_lockdep(test);
	a = mock_begin(test, runners);
	mock_free_runners(test);
	expect_quiet_in(test, a, fn, stolen);
}

static void leaf_fn(struct fairwq_task *self)
{
	usleep_range(50, 100);
}

/* Take a mutex, and join a task that does not take it. */
static void hold_and_join_fn(struct fairwq_task *self)
{
	struct right *right = container_of(self, struct right_task, task)->right;
	struct right_task leaf;

	guard(mutex)(&right->mutex);
	fairwq_task_init(&leaf.task, leaf_fn);
	fairwq_fork(self, &leaf.task);
	fairwq_join(self, &leaf.task);
}

static void hold_and_join(struct right *right, struct fairwq_task *self)
{
	struct right_task task[4];
	int i;

	for (i = 0; i < ARRAY_SIZE(task); i++) {
		task[i].right = right;
		fairwq_task_init(&task[i].task, hold_and_join_fn);
		fairwq_fork(self, &task[i].task);
	}
	while (i--)
		fairwq_join(self, &task[i].task);
}

static void leaf_is_joined_under_a_mutex(struct kunit *test)
{
	expect_quiet(test, hold_and_join, 1, 0);
}

static void stolen_leaf_is_joined_under_a_mutex(struct kunit *test)
{
	expect_quiet(test, hold_and_join, 4, 20);
}

/* Fork a task of the same class from a function that knows no @self. */
static void descend_fn(struct fairwq_task *unused)
{
	struct right_task *own = container_of(unused, struct right_task, task), next;
	struct fairwq_task self;

	if (!own->depth)
		return;
	fairwq_task_here(&self);
	next.depth = own->depth - 1;
	fairwq_task_init(&next.task, descend_fn);
	fairwq_fork(&self, &next.task);
	usleep_range(50, 100);
	fairwq_join(&self, &next.task);
}

static void descend(struct right *right, struct fairwq_task *self)
{
	struct right_task top = { .depth = 6 };

	descend_fn(&top.task);
}

static void task_forks_its_own_class(struct kunit *test)
{
	expect_quiet(test, descend, 1, 0);
}

static void stolen_task_forks_its_own_class(struct kunit *test)
{
	expect_quiet(test, descend, 4, 20);
}

static void other_fn(struct fairwq_task *self);

/* Two functions that fork each other. */
static void one_fn(struct fairwq_task *self)
{
	struct right_task *own = container_of(self, struct right_task, task), next;

	if (!own->depth)
		return;
	next.depth = own->depth - 1;
	fairwq_task_init(&next.task, other_fn);
	fairwq_fork(self, &next.task);
	fairwq_join(self, &next.task);
}

static void other_fn(struct fairwq_task *self)
{
	struct right_task *own = container_of(self, struct right_task, task), next;

	next.depth = own->depth;
	fairwq_task_init(&next.task, one_fn);
	fairwq_fork(self, &next.task);
	usleep_range(50, 100);
	fairwq_join(self, &next.task);
}

static void mutual(struct right *right, struct fairwq_task *self)
{
	struct right_task top = { .depth = 4 };

	fairwq_task_init(&top.task, one_fn);
	fairwq_fork(self, &top.task);
	fairwq_join(self, &top.task);
}

static void tasks_fork_each_other(struct kunit *test)
{
	expect_quiet(test, mutual, 4, 20);
}

/* A thread that is no item runs each task in its join, and waits for nobody. */
static void thread_forks_its_own_class(struct kunit *test)
{
	struct fairwq_task self;

	need_lockdep(test);
	fairwq_task_here(&self);
	descend(NULL, &self);
	mutual(NULL, &self);
	KUNIT_EXPECT_TRUE(test, debug_locks);
}

static int sleep_body(unsigned long from, unsigned long to, void *arg)
{
	usleep_range(50, 100);
	return 0;
}

static int looped;

static int loop_body(unsigned long from, unsigned long to, void *arg)
{
	looped = fairwq_parallel_for(NULL, 0, 4, 1, sleep_body, arg);
	return 0;
}

static void nested_loops(struct right *right, struct fairwq_task *self)
{
	looped = fairwq_parallel_for(NULL, 0, 8, 1, loop_body, right);
}

static void body_may_loop(struct kunit *test)
{
	expect_quiet(test, nested_loops, 4, 40);
	KUNIT_EXPECT_EQ(test, 0, looped);
}

static int mutex_body(unsigned long from, unsigned long to, void *arg)
{
	guard(mutex)(&((struct right *)arg)->mutex);
	usleep_range(50, 100);
	return 0;
}

/* The body of one loop takes a mutex that is held over the other loop. */
static void two_loops(struct right *right, struct fairwq_task *self)
{
	looped = fairwq_parallel_for(NULL, 0, 8, 1, mutex_body, right);
	guard(mutex)(&right->mutex);
	looped |= fairwq_parallel_for(NULL, 0, 8, 1, sleep_body, right);
}

static void loop_under_a_mutex_of_another_loop(struct kunit *test)
{
	expect_quiet(test, two_loops, 4, 40);
	KUNIT_EXPECT_EQ(test, 0, looped);
}

/* ---- right code of two pools, and of released() ---------------------------- */

static int far_body(unsigned long from, unsigned long to, void *arg)
{
	fairwq_batch_flush(far);
	usleep_range(50, 100);
	return 0;
}

static void far_loop(struct right *right, struct fairwq_task *self)
{
	looped = fairwq_parallel_for(NULL, 0, 8, 1, far_body, right);
}

/* Parts of items wait for a pool in which there are stolen tasks, and loops of threads. */
static void parts_wait_for_another_pool(struct kunit *test)
{
	const struct fairwq_pool_attrs attrs = { .max_active = 4 };
	struct mock *mock = test->priv;
	struct fairwq_pool *pool;

	need_lockdep(test);
	pool = fairwq_pool_create(&attrs, "far");
	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	far = fairwq_pool_default_batch(pool, FAIRWQ_PRIO_NORMAL);
	expect_quiet_in(test, far, nested_loops, 20);
	loop_in(far);
	expect_quiet(test, far_loop, 4, 20);
	mock_may_refuse(fairwq_parallel_for(fairwq_pool_default_batch(mock->pool,
								      FAIRWQ_PRIO_NORMAL),
					    0, 1, 1, far_body, NULL));
	KUNIT_EXPECT_EQ(test, 0, looped);
	KUNIT_EXPECT_TRUE(test, debug_locks);
	fairwq_pool_destroy(pool);
}

/* A batch whose released() waits for others, and takes a mutex. */
static struct {
	struct fairwq_batch *flushed, *shut_down;
	struct mutex mutex;		/* over a flush, in released() and elsewhere */
	struct completion done;
} leaving;

static void leaving_released(struct fairwq_batch *batch, void *priv)
{
	scoped_guard(mutex, &leaving.mutex)
		fairwq_batch_flush(leaving.flushed);
	fairwq_pool_flush(leaving.flushed->pool);
	mock_may_refuse(fairwq_batch_shutdown(leaving.shut_down, FAIRWQ_RUN_REST, NULL));
	complete(&leaving.done);
}

/* released() may wait for other batches, and a call that waits for items is not for it. */
static void released_waits_for_others(struct kunit *test)
{
	const struct fairwq_batch_attrs attrs = { .released = leaving_released };
	struct fairwq_batch *a;

	need_lockdep(test);
	a = mock_begin(test, 2);
	mock_open(test);
	mutex_init(&leaving.mutex);
	init_completion(&leaving.done);
	leaving.flushed = a;
	leaving.shut_down = mock_own_batch(test, "other", NULL);
	fairwq_batch_dispose(mock_own_batch(test, "leaving", &attrs));
	mock_await(test, &leaving.done);
	scoped_guard(mutex, &leaving.mutex)
		fairwq_batch_flush(a);
	KUNIT_EXPECT_TRUE(test, debug_locks);
}

static struct kunit_case lockdep_cases[] = {
	KUNIT_CASE(item_holds_its_maps),
	KUNIT_CASE(item_of_a_burst_holds_its_maps),
	KUNIT_CASE(waiting_call_takes_the_map),
	KUNIT_CASE(loop_of_a_thread_takes_the_map),
	KUNIT_CASE(join_takes_the_map_of_its_task),
	KUNIT_CASE(leaf_is_joined_under_a_mutex),
	KUNIT_CASE(stolen_leaf_is_joined_under_a_mutex),
	KUNIT_CASE(task_forks_its_own_class),
	KUNIT_CASE(stolen_task_forks_its_own_class),
	KUNIT_CASE(tasks_fork_each_other),
	KUNIT_CASE(thread_forks_its_own_class),
	KUNIT_CASE(body_may_loop),
	KUNIT_CASE(loop_under_a_mutex_of_another_loop),
	KUNIT_CASE(parts_wait_for_another_pool),
	KUNIT_CASE(released_waits_for_others),
	{}
};

#else

static void skipped_without_lockdep(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_PROVE_LOCKING");
}

static struct kunit_case lockdep_cases[] = {
	KUNIT_CASE(skipped_without_lockdep),
	{}
};

#endif

static struct kunit_suite lockdep_suite = {
	.name = "fairwq_core_lockdep",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = lockdep_cases,
};

kunit_test_suite(lockdep_suite);

MODULE_DESCRIPTION("KUnit: what lockdep is told");
MODULE_LICENSE("GPL");
