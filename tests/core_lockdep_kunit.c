// SPDX-License-Identifier: GPL-2.0
/*
 * Lockdep: what fairwq tells it about items, and about calls that wait for items.
 *
 * An item holds the maps of its pool and of its constraint. A call that waits for items
 * acquires the map that they hold. If a lock is held in that call and taken by an item,
 * lockdep sees a cycle and reports it.
 *
 * The cases only check which maps are held and acquired, because a report would switch
 * lockdep off for all later cases. They were seen to fail when a call that tells lockdep
 * was left out: each of the two pairs in fairwq_call(), and that in each function below
 * that waits.
 */
#include "core/compat.h"
#include "lib/order.h"

#ifdef FAIRWQ_HAS_LOCK_CMP_FN

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

static struct fairwq_limiter *limiter_new(struct kunit *test)
{
	struct fairwq_limiter *limiter = kunit_kzalloc(test, sizeof(*limiter), GFP_KERNEL);

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
				 struct fairwq_limiter *limiter)
{
	struct looker *looker = kunit_kzalloc(test, sizeof(*looker), GFP_KERNEL);
	struct mock *mock = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, looker);
	fairwq_work_init(&looker->work, looker_fn);
	looker->pool = &mock->pool->lockdep_map;
	looker->serial = &serial->constraint.lockdep_map;
	looker->limiter = &limiter->constraint.lockdep_map;
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
 * An item holds the maps of its pool and of its constraint. The next item on the runner
 * does not hold the map of that constraint.
 */
static void item_holds_its_maps(struct kunit *test)
{
	struct fairwq_serializer *serial = serial_new(test);
	struct fairwq_limiter *limiter = limiter_new(test);
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
	KUNIT_ASSERT_EQ(test, 1, fairwq_limiter_queue(limiter, a, &looker[2]->work));
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &looker[3]->work));
	fairwq_batch_resume(a);
	fairwq_batch_flush(a);
	looker_check(test, looker[0], true, false);
	looker_check(test, looker[1], false, false);
	looker_check(test, looker[2], false, true);
	looker_check(test, looker[3], false, false);
	fairwq_serializer_destroy(serial);
	fairwq_limiter_destroy(limiter);
}

/* Each item of a burst holds the maps of its pool and of its serializer. */
static void item_of_a_burst_holds_its_maps(struct kunit *test)
{
	struct fairwq_serializer *serial = serial_new(test);
	struct fairwq_limiter *limiter = limiter_new(test);
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
 * Expect that @wait(@what) acquires @map. A copy of @map is held meanwhile, so lockdep
 * asks judge() whether a second map of that class may be acquired. It asks once for each
 * set of held locks, so each use of the macro also holds a map of a new class.
 */
#define EXPECT_TAKEN(test, map, wait, what)				\
	do {								\
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
		KUNIT_EXPECT_TRUE_MSG(test, judged == __map, #wait "\n");\
	} while (0)

static void waiting_call_takes_the_map(struct kunit *test)
{
	struct fairwq_serializer *serial = serial_new(test);
	struct fairwq_limiter *limiter = limiter_new(test);
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	need_lockdep(test);
	a = mock_begin(test, 2);
	mock_open(test);
	EXPECT_TAKEN(test, &serial->constraint.lockdep_map, fairwq_serializer_flush, serial);
	EXPECT_TAKEN(test, &serial->constraint.lockdep_map, fairwq_serializer_destroy, serial);
	EXPECT_TAKEN(test, &limiter->constraint.lockdep_map, fairwq_limiter_flush, limiter);
	EXPECT_TAKEN(test, &limiter->constraint.lockdep_map, fairwq_limiter_destroy, limiter);
	EXPECT_TAKEN(test, &mock->pool->lockdep_map, fairwq_batch_flush, a);
	EXPECT_TAKEN(test, &mock->pool->lockdep_map, fairwq_pool_flush, mock->pool);
	EXPECT_TAKEN(test, &mock->pool->lockdep_map, fairwq_pool_drain, mock->pool);
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

static struct kunit_case lockdep_cases[] = {
	KUNIT_CASE(item_holds_its_maps),
	KUNIT_CASE(item_of_a_burst_holds_its_maps),
	KUNIT_CASE(waiting_call_takes_the_map),
	KUNIT_CASE(join_takes_the_map_of_its_task),
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
