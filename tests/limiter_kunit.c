// SPDX-License-Identifier: GPL-2.0
/*
 * Limiters (promise 10): at most a given number of items is in flight. The
 * others wait and start in queue order, none is lost, and a destroy waits for
 * all of them.
 */
#include "lib/order.h"

/* ---- what the cases share --------------------------------------------- */

#define LIMIT	3

static struct fairwq_serializer *limiter_new(struct kunit *test, unsigned int max)
{
	struct fairwq_serializer *limiter = kunit_kzalloc(test, sizeof(*limiter), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, limiter);
	fairwq_limiter_init(limiter, max);
	return limiter;
}

static struct mock_item *limiter_item(struct kunit *test, struct fairwq_serializer *limiter,
				      struct fairwq_batch *batch, char letter)
{
	struct mock_item *item = mock_item(test, letter);

	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(limiter, batch, &item->work));
	return item;
}

/* Queue a gate, and wait until it is entered: one item of @limiter is in flight. */
static struct mock_gate *limiter_gate(struct kunit *test, struct fairwq_serializer *limiter,
				      struct fairwq_batch *batch)
{
	struct mock_gate *gate = mock_gate_new(test);

	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(limiter, batch, &gate->work));
	mock_await(test, &gate->entered);
	return gate;
}

/* Check that no item of @limiter is in flight. */
static bool limiter_idle(struct fairwq_serializer *limiter)
{
	/* Other CPUs write it under a lock that the test does not hold. */
	return !data_race(READ_ONCE(limiter->in_flight));
}

/* Wait until @limiter is idle, and destroy it. A time-out fails the case: no hang. */
static void limiter_end(struct kunit *test, struct fairwq_serializer *limiter)
{
	mock_until(test, limiter_idle(limiter));
	fairwq_serializer_destroy(limiter);
}

/* ---- the limit --------------------------------------------------------- */

/* As many items are in flight as the limit allows, and not one more if runners are free. */
static void exactly_n_items_are_in_flight(struct kunit *test)
{
	struct fairwq_serializer *limiter = limiter_new(test, LIMIT);
	struct mock_gate *gate[LIMIT + 2];
	struct fairwq_batch *a = mock_begin(test, 2 * LIMIT + 2);
	unsigned int i;

	for (i = 0; i < LIMIT + 2; i++) {
		gate[i] = mock_gate_new(test);
		KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(limiter, a, &gate[i]->work));
	}
	for (i = 0; i < LIMIT; i++)
		mock_await(test, &gate[i]->entered);
	KUNIT_EXPECT_TRUE(test, waits(&gate[LIMIT]->work));
	KUNIT_EXPECT_TRUE(test, waits(&gate[LIMIT + 1]->work));
	/* One item has ended, so one more is admitted. */
	complete_all(&gate[1]->open);
	mock_await(test, &gate[LIMIT]->entered);
	KUNIT_EXPECT_TRUE(test, waits(&gate[LIMIT + 1]->work));
	for (i = 0; i < LIMIT + 2; i++)
		complete_all(&gate[i]->open);
	fairwq_serializer_destroy(limiter);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&gate[LIMIT + 1]->runs));
	KUNIT_EXPECT_EQ(test, 0U, limiter->in_flight);
}

/* A flush waits for the items before it. An item behind it is not admitted until then. */
static void flush_waits_for_what_is_queued(struct kunit *test)
{
	struct fairwq_serializer *limiter = limiter_new(test, 2);
	struct thread thread = { .order.serial = limiter };
	struct mock_gate *gate[2], *later;
	struct mock *mock = test->priv;
	struct mock_item *item[3];
	struct fairwq_batch *a = mock_begin(test, 6);
	unsigned int i;

	fairwq_serializer_flush(limiter);
	for (i = 0; i < 2; i++)
		gate[i] = limiter_gate(test, limiter, a);
	for (i = 0; i < 3; i++)
		item[i] = limiter_item(test, limiter, a, 'x' + i);
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&item[1]->work));
	mock_thread_start(test, &thread, mock_thread_flush);
	mock_until(test, mock_order_last(&thread.order) != &item[2]->work);
	later = mock_gate_new(test);
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(limiter, a, &later->work));
	complete_all(&gate[0]->open);
	/* The other gate, which is before the flush, still runs: @later is not admitted. */
	mock_until(test, READ_ONCE(a->done) == 3);
	KUNIT_EXPECT_EQ(test, 2U, READ_ONCE(mock->log.nr));
	KUNIT_EXPECT_EQ(test, 1U, READ_ONCE(limiter->in_flight));
	KUNIT_EXPECT_FALSE(test, completion_done(&thread.done));
	complete_all(&gate[1]->open);
	mock_thread_end(test, &thread);
	complete_all(&later->open);
	mock_expect_order(test, "xz", item, 3);
	fairwq_serializer_destroy(limiter);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&later->runs));
}

static void no_more_than_the_limit_run_under_load(struct kunit *test)
{
	struct fairwq_serializer *limiter = limiter_new(test, LIMIT);
	struct track *track = mock_track_new(test, LIMIT);
	const unsigned int nr = MOCK_MANY(5000);
	struct fairwq_batch *a = mock_begin(test, 8);
	unsigned int i;
	struct step *step;

	for (i = 0; i < nr; i++) {
		step = kzalloc(sizeof(*step), GFP_KERNEL | __GFP_NOFAIL);
		fairwq_work_init(&step->work, mock_step_free_fn);
		step->track = track;
		KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(limiter, a, &step->work));
	}
	fairwq_serializer_destroy(limiter);
	KUNIT_EXPECT_EQ(test, (int)nr, atomic_read(&track->ran));
	mock_track_check(test, track);
}

/* ---- items that fail --------------------------------------------------- */

static void failing_fn(struct fairwq_work *work)
{
	fairwq_report_failure(-EIO);
	mock_item_fn(work);
}

/* An item that has failed counts as ended, so the items behind it run. */
static void failed_item_makes_room(struct kunit *test)
{
	struct fairwq_serializer *limiter = limiter_new(test, 1);
	struct mock_item *item[4];
	struct mock *mock = test->priv;
	struct mock_gate *gate;
	struct fairwq_batch *a = mock_begin(test, 4);
	unsigned int i;

	gate = limiter_gate(test, limiter, a);
	for (i = 0; i < 4; i++) {
		item[i] = mock_item(test, 'w' + i);
		if (i < 2)
			item[i]->work.func = failing_fn;
		KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(limiter, a, &item[i]->work));
	}
	complete_all(&gate->open);
	mock_expect_order(test, "wxyz", item, 4);
	limiter_end(test, limiter);
	KUNIT_EXPECT_EQ(test, 2ULL, mock_counter(mock->pool, FAIRWQ_FAILURES));
}

/* ---- cancel, flush and destroy ------------------------------------------ */

struct inside {
	struct fairwq_work work;
	struct fairwq_serializer *limiter;
	bool is_last;
	struct completion done;
};

static void inside_fn(struct fairwq_work *work)
{
	struct inside *inside = container_of(work, struct inside, work);

	inside->is_last = fairwq_serializer_is_last(inside->limiter);
	complete(&inside->done);
}

static void is_last(struct kunit *test, struct fairwq_batch *a, bool alone)
{
	struct inside *inside = kunit_kzalloc(test, sizeof(*inside), GFP_KERNEL);
	struct fairwq_serializer *limiter = limiter_new(test, 2);
	struct mock_gate *gate = alone ? NULL : limiter_gate(test, limiter, a);

	KUNIT_ASSERT_NOT_NULL(test, inside);
	inside->limiter = limiter;
	init_completion(&inside->done);
	fairwq_work_init(&inside->work, inside_fn);
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(limiter, a, &inside->work));
	mock_await(test, &inside->done);
	KUNIT_EXPECT_FALSE(test, inside->is_last);
	if (gate)
		complete_all(&gate->open);
	limiter_end(test, limiter);
}

/* No item of a limiter is told that it is the last one: others may still be at their end. */
static void no_item_is_the_last(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 3);

	is_last(test, a, true);
	is_last(test, a, false);
}

/* The end of the last item of a limiter that is being destroyed. */
static struct last_end {
	struct fairwq_serializer *limiter;
	struct mock_gate *gate;
	bool reached, let_go, destroyed, too_early, waited;
} last_end;

/*
 * Wait until the CPU that destroys the limiter waits for its lock. Some kinds
 * of lock do not show that, so give it 200 ms to show the bug.
 */
static void last_end_await_waiter(void)
{
	spin_for(200, READ_ONCE(last_end.destroyed) ||
		 mock_limiter_wanted(last_end.limiter));
	last_end.too_early = READ_ONCE(last_end.destroyed);
	WRITE_ONCE(last_end.let_go, true);
}

static void last_end_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point == FAIRWQ_POINT_LIMITER_ENDED) {
		step_done(&last_end.reached);
		last_end_await_waiter();
	} else if (point == FAIRWQ_POINT_LIMITER_LEFT) {
		last_end.waited = spin_until(&last_end.destroyed);
	}
}

static void thread_destroy_at_the_end(struct thread *thread)
{
	/* The runner must be on another CPU. */
	preempt_disable();
	complete_all(&last_end.gate->open);
	thread->ret = spin_until(&last_end.reached);
	preempt_enable();
	fairwq_serializer_destroy(thread->order.serial);
	if (READ_ONCE(last_end.let_go))
		memset(thread->order.serial, 0x6b, sizeof(*thread->order.serial));
	step_done(&last_end.destroyed);
}

/*
 * When no item is in flight, the runner of the last one may still hold the
 * lock. A destroy waits for that. When the lock is dropped, the runner does not
 * touch the limiter again.
 */
static void destroy_waits_for_the_last_look(struct kunit *test)
{
	struct fairwq_serializer *limiter = limiter_new(test, 2);
	struct thread thread = { .order.serial = limiter };
	struct fairwq_batch *a;

	need_two_cpus(test);
	a = mock_begin(test, 2);
	last_end = (struct last_end){ .limiter = limiter };
	last_end.gate = limiter_gate(test, limiter, a);
	fairwq_test_set_hook(last_end_hook);
	mock_thread_start(test, &thread, thread_destroy_at_the_end);
	mock_thread_end(test, &thread);
	fairwq_batch_flush(a);
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_TRUE(test, thread.ret);
	KUNIT_EXPECT_FALSE(test, last_end.too_early);
	KUNIT_EXPECT_TRUE(test, last_end.waited);
	KUNIT_EXPECT_PTR_EQ(test, NULL, memchr_inv(limiter, 0x6b, sizeof(*limiter)));
}

/* A flush that waits for an item, and then overwrites the serializer. */
static struct last_flush {
	struct fairwq_work work;
	struct fairwq_serializer *serializer;
	struct call *call;
	unsigned int cpu;		/* of the item */
	bool entered, go, apart, let_go, flushed, too_early, waited;
} last_flush;

static void last_flush_fn(struct fairwq_work *work)
{
	preempt_disable();
	last_flush.cpu = smp_processor_id();
	step_done(&last_flush.entered);
	spin_until(&last_flush.go);
	preempt_enable();
}

static bool flush_and_overwrite(struct fairwq_work *work)
{
	fairwq_serializer_flush(last_flush.serializer);
	if (READ_ONCE(last_flush.let_go))
		memset(last_flush.serializer, 0x6b, sizeof(*last_flush.serializer));
	step_done(&last_flush.flushed);
	return true;
}

static void last_flush_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point == FAIRWQ_POINT_MARKER_THROUGH) {
		last_flush.apart = task_cpu(last_flush.call->task) != raw_smp_processor_id();
		if (!last_flush.apart)
			return;
		spin_for(200, READ_ONCE(last_flush.flushed) ||
			 mock_limiter_wanted(last_flush.serializer));
		last_flush.too_early = READ_ONCE(last_flush.flushed);
		WRITE_ONCE(last_flush.let_go, true);
	} else if (point == FAIRWQ_POINT_LIMITER_LEFT && last_flush.apart) {
		last_flush.waited = spin_until(&last_flush.flushed);
	}
}

/* Return whether the flush and the end of the item were on two CPUs. */
static bool flush_at_the_last_look(struct kunit *test, struct fairwq_batch *a, unsigned int max)
{
	struct fairwq_serializer *serializer = limiter_new(test, max);

	last_flush = (struct last_flush){ .serializer = serializer };
	fairwq_work_init_onstack(&last_flush.work, last_flush_fn);
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(serializer, a, &last_flush.work));
	mock_until(test, READ_ONCE(last_flush.entered));
	last_flush.call = mock_call_new(test, flush_and_overwrite, NULL);
	kthread_bind(last_flush.call->task, cpumask_any_but(cpu_online_mask, last_flush.cpu));
	wake_up_process(last_flush.call->task);
	mock_call_settle(test, last_flush.call);
	fairwq_test_set_hook(last_flush_hook);
	step_done(&last_flush.go);
	mock_call_end(test, last_flush.call);
	fairwq_batch_flush(a);
	fairwq_test_set_hook(NULL);
	KUNIT_EXPECT_FALSE(test, last_flush.too_early);
	if (!last_flush.apart)
		return false;
	KUNIT_EXPECT_TRUE(test, last_flush.waited);
	KUNIT_EXPECT_PTR_EQ(test, NULL, memchr_inv(serializer, 0x6b, sizeof(*serializer)));
	return true;
}

/*
 * When a flush is told, the runner that tells it still holds the lock. The
 * flush waits for that, because its caller may free the serializer.
 */
static void flush_waits_for_the_last_look(struct kunit *test)
{
	struct fairwq_batch *a;
	unsigned int max, tries;

	need_two_cpus(test);
	a = mock_begin(test, 2);
	mock_open(test);
	for (max = 1; max <= 2; max++)
		for (tries = 0; tries < 20 && !flush_at_the_last_look(test, a, max); tries++)
			;
}

/* Items that end at the same time. */
struct meeting {
	unsigned int nr;
	atomic_t inside;
	struct completion all, go;
};

struct guest {
	struct fairwq_work work;
	struct meeting *meeting;
};

static void guest_fn(struct fairwq_work *work)
{
	struct meeting *meeting = container_of(work, struct guest, work)->meeting;

	if (atomic_inc_return(&meeting->inside) == meeting->nr)
		complete(&meeting->all);
	wait_for_completion(&meeting->go);
}

/*
 * Let all items of @meeting end at once, with @more items that wait behind
 * them. Then destroy the limiter and free it.
 */
static void meet_and_go(struct kunit *test, struct fairwq_batch *a, struct guest *guest,
			struct meeting *meeting, unsigned int more)
{
	struct fairwq_serializer *limiter = kzalloc(sizeof(*limiter), GFP_KERNEL | __GFP_NOFAIL);
	unsigned int i;

	fairwq_limiter_init(limiter, meeting->nr);
	atomic_set(&meeting->inside, 0);
	init_completion(&meeting->all);
	init_completion(&meeting->go);
	for (i = 0; i < meeting->nr + more; i++) {
		guest[i].meeting = meeting;
		fairwq_work_init(&guest[i].work, guest_fn);
		KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(limiter, a, &guest[i].work));
	}
	mock_await(test, &meeting->all);
	complete_all(&meeting->go);
	fairwq_serializer_destroy(limiter);
	memset(limiter, 0x6b, sizeof(*limiter));
	kfree(limiter);
	KUNIT_EXPECT_EQ(test, (int)(meeting->nr + more), atomic_read(&meeting->inside));
}

/* A destroyed limiter may be freed. KASAN would report a runner that still touches it. */
static void destroyed_limiter_may_be_freed(struct kunit *test)
{
	struct guest *guest = kunit_kcalloc(test, 8, sizeof(*guest), GFP_KERNEL);
	struct meeting *meeting = kunit_kzalloc(test, sizeof(*meeting), GFP_KERNEL);
	struct fairwq_batch *a;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, guest);
	KUNIT_ASSERT_NOT_NULL(test, meeting);
	a = mock_begin(test, 5);
	for (i = 0; i < MOCK_MANY(1000); i++) {
		meeting->nr = 1 + i % 4;
		meet_and_go(test, a, guest, meeting, i % 3);
	}
}

static struct kunit_case limiter_cases[] = {
	KUNIT_CASE(exactly_n_items_are_in_flight),
	KUNIT_CASE(no_more_than_the_limit_run_under_load),
	KUNIT_CASE(flush_waits_for_what_is_queued),
	KUNIT_CASE(failed_item_makes_room),
	KUNIT_CASE(no_item_is_the_last),
	KUNIT_CASE(destroy_waits_for_the_last_look),
	KUNIT_CASE(flush_waits_for_the_last_look),
	KUNIT_CASE(destroyed_limiter_may_be_freed),
	{}
};

static struct kunit_suite limiter_suite = {
	.name = "fairwq_limiter",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = limiter_cases,
};

kunit_test_suite(limiter_suite);

MODULE_DESCRIPTION("KUnit: limiters");
MODULE_LICENSE("GPL");
