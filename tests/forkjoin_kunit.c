// SPDX-License-Identifier: GPL-2.0
/*
 * Fork and join: each task runs once, and a join returns after its task has
 * run. Idle runners steal the oldest task. Other batches get turns beside items
 * that fork.
 *
 * X is the item under test. Its work function calls a function of the case, and
 * passes it the task that fairwq_task_here() has set up for the item.
 */
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sort.h>
#include <linux/tracepoint.h>
#include <linux/vmalloc.h>

#include "lib/client.h"
#include "lib/hook.h"
#include "lib/look.h"

/* Item X, and the state that its function and the case share. */
struct forking {
	struct fairwq_work work;
	void (*fn)(struct forking *x, struct fairwq_task *self);
	struct completion done;
	struct kunit *test;
	struct fairwq_batch *batch;
	struct completion begun, go;	/* X or a task has begun; it may go on */
	struct completion ready;	/* X has reached the state that the case waits for */
	struct mutex mutex;
	unsigned long result;
	struct mock_gate *gate;
	struct fairwq_batch *high;	/* batch that gates are queued to */
	atomic_t inside;
	struct task_struct *by;		/* the worker that began a chain */
	bool elsewhere;			/* another one has run a link of it */
	bool loops;			/* a link with little stack left runs a loop */
	bool io;			/* a link may do I/O for memory */
	bool computes;			/* a task that waits for @go keeps its seat */
	struct fairwq_work *behind;	/* queued by the last link, which then computes */
	bool overtaken;			/* it has begun meanwhile */
	unsigned long stack_left;	/* where the link with the least of it began */
	bool again;
	bool stop;
	bool failed;
};

/* A task of a case, its input @n, and its result. */
struct part {
	struct fairwq_task task;
	struct forking *x;
	unsigned long n, result;
	atomic_t runs;
	struct task_struct *by;		/* the worker that ran it */
};

static void forking_fn(struct fairwq_work *work)
{
	struct forking *x = container_of(work, struct forking, work);
	struct fairwq_task self;

	fairwq_task_here(&self);
	x->fn(x, &self);
	complete(&x->done);
}

static struct forking *forking(struct kunit *test, struct fairwq_batch *batch,
			       void (*fn)(struct forking *x, struct fairwq_task *self))
{
	struct forking *x = kunit_kzalloc(test, sizeof(*x), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, x);
	fairwq_work_init(&x->work, forking_fn);
	x->fn = fn;
	x->test = test;
	x->batch = batch;
	init_completion(&x->done);
	init_completion(&x->begun);
	init_completion(&x->go);
	init_completion(&x->ready);
	mutex_init(&x->mutex);
	return x;
}

/* Make a batch that is disposed of after the case. */
static struct fairwq_batch *kept_batch(struct kunit *test, const char *name,
				       const struct fairwq_batch_attrs *attrs)
{
	return mock_batch_with(test, name, attrs);
}

static struct forking *queue_forking(struct kunit *test, struct fairwq_batch *batch,
				     void (*fn)(struct forking *x, struct fairwq_task *self))
{
	struct forking *x = forking(test, batch, fn);

	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &x->work));
	return x;
}

/* Make a pool whose runners are all free. */
static void free_pool(struct kunit *test, unsigned int nr, enum fairwq_policy policy)
{
	struct mock *mock = test->priv;

	mock->max_in_flight = mock->max_in_flight ?: FAIRWQ_MAX_ACTIVE;
	mock_pool_by(test, nr, policy);
	mock_free_runners(test);
}

/* Queue an item to @batch and wait until it has run. */
static void run_item_of(struct kunit *test, struct fairwq_batch *batch)
{
	struct mock_item *item = mock_item(test, 'y');
	struct completion *done = kunit_kzalloc(test, sizeof(*done), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, done);
	init_completion(done);
	item->done = done;
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &item->work));
	mock_await(test, done);
}

/* Run @fn as item X of a new pool with @nr runners, and wait for its end. Return: X. */
static struct forking *run_forking(struct kunit *test, unsigned int nr,
				   void (*fn)(struct forking *x, struct fairwq_task *self))
{
	struct forking *x;

	free_pool(test, nr, FAIRWQ_ROUND_ROBIN);
	x = queue_forking(test, kept_batch(test, "x", NULL), fn);
	mock_await(test, &x->done);
	KUNIT_EXPECT_FALSE(test, x->failed);
	fairwq_batch_flush(x->batch);
	return x;
}

static u64 counter(struct forking *x, enum fairwq_counter which)
{
	return mock_counter(x->batch->pool, which);
}

/* Wait for @done in an item or in a task. If that times out, mark X as failed. */
static void await_in(struct forking *x, struct completion *done)
{
	if (!mock_wait(done))
		x->failed = true;
}

static void count_fn(struct fairwq_task *self)
{
	struct part *part = container_of(self, struct part, task);

	part->by = current;
	atomic_inc(&part->runs);
	part->result = part->n + 1;
}

static void part_init(struct part *part, struct forking *x, unsigned long n,
		      fairwq_task_func_t fn)
{
	memset(part, 0, sizeof(*part));
	fairwq_task_init(&part->task, fn);
	part->x = x;
	part->n = n;
}

/* ---- each task runs once, and its result is seen ------------------------- */

static void fork_and_join_one(struct forking *x, struct fairwq_task *self)
{
	struct part part;

	part_init(&part, x, 6, count_fn);
	fairwq_fork(self, &part.task);
	x->failed = atomic_read(&part.runs) != 0 && part.by == current;
	fairwq_join(self, &part.task);
	x->failed |= atomic_read(&part.runs) != 1;
	x->result = part.result;
}

static void task_runs_once_when_it_is_joined(struct kunit *test)
{
	struct forking *x = run_forking(test, 1, fork_and_join_one);

	KUNIT_EXPECT_EQ(test, 7UL, x->result);
	KUNIT_EXPECT_EQ(test, 0ULL, counter(x, FAIRWQ_PROMOTED));
}

/* Outside an item, the join runs the task. */
static void tasks_run_in_the_join_where_no_item_runs(struct kunit *test)
{
	struct forking *x = forking(test, NULL, fork_and_join_one);
	struct fairwq_task self;

	fairwq_task_here(&self);
	fork_and_join_one(x, &self);
	KUNIT_EXPECT_FALSE(test, x->failed);
	KUNIT_EXPECT_EQ(test, 7UL, x->result);
}

#define FLAT	MOCK_MANY(1000000UL)

static void fork_flat(struct forking *x, struct fairwq_task *self)
{
	struct part *parts = vzalloc(FLAT * sizeof(*parts));
	unsigned long i;

	x->failed = !parts;
	if (x->failed)
		return;
	for (i = 0; i < FLAT; i++) {
		part_init(&parts[i], x, i, count_fn);
		fairwq_fork(self, &parts[i].task);
	}
	/* Join neither the newest task first nor the oldest. */
	for (i = 0; i < FLAT; i++)
		fairwq_join(self, &parts[i ^ 1].task);
	for (i = 0; i < FLAT; i++)
		if (atomic_read(&parts[i].runs) != 1 || parts[i].result != i + 1)
			x->failed = true;
	vfree(parts);
}

static void any_number_of_tasks_run_once_each(struct kunit *test)
{
	run_forking(test, *(const unsigned int *)test->param_value, fork_flat);
}

/* KASAN and KCSAN make stack frames large, so the tree is smaller there. */
#define FIB_OF	(MOCK_WATCHED ? 10 : 20)
#define FIB	(MOCK_WATCHED ? 55UL : 6765UL)

static void fib_fn(struct fairwq_task *self)
{
	struct part *part = container_of(self, struct part, task), less, least;

	atomic_inc(&part->runs);
	part->result = part->n;
	if (part->n < 2)
		return;
	part_init(&less, part->x, part->n - 1, fib_fn);
	part_init(&least, part->x, part->n - 2, fib_fn);
	fairwq_fork(self, &less.task);
	fairwq_fork(self, &least.task);
	fairwq_join(self, &least.task);
	fairwq_join(self, &less.task);
	part->result = less.result + least.result;
	if (atomic_read(&less.runs) != 1 || atomic_read(&least.runs) != 1)
		part->x->failed = true;
}

static void fib_tree(struct forking *x, struct fairwq_task *self)
{
	struct part part;

	part_init(&part, x, FIB_OF, fib_fn);
	fairwq_fork(self, &part.task);
	fairwq_join(self, &part.task);
	x->result = part.result;
}

static void results_of_a_tree_are_seen(struct kunit *test)
{
	struct forking *x = run_forking(test, *(const unsigned int *)test->param_value, fib_tree);

	KUNIT_EXPECT_EQ(test, FIB, x->result);
}

static void fork_in_atomic_context(struct forking *x, struct fairwq_task *self)
{
	struct part part;
	unsigned long flags;

	part_init(&part, x, 1, count_fn);
	local_irq_save(flags);
	fairwq_fork(self, &part.task);
	local_irq_restore(flags);
	fairwq_join(self, &part.task);
	x->failed = atomic_read(&part.runs) != 1;
}

static void fork_is_safe_with_interrupts_off(struct kunit *test)
{
	run_forking(test, 2, fork_in_atomic_context);
}

/* ---- stolen tasks --------------------------------------------------------- */

/* Wait in an item until a task that it has forked runs elsewhere. */
static void look_up_until(struct forking *x, struct fairwq_task *self, struct completion *begun)
{
	if (!mock_fork_until(self, begun))
		x->failed = true;
}

/* Complete x->begun, and wait for x->go. */
static void meet_fn(struct fairwq_task *self)
{
	struct part *part = container_of(self, struct part, task);

	part->by = current;
	part->result = part->n;
	complete(&part->x->begun);
	if (!part->x->computes)
		await_in(part->x, &part->x->go);
	else if (!compute_within(completion_done(&part->x->go)))
		part->x->failed = true;
	atomic_inc(&part->runs);
}

/* Fork three tasks while the other runner is busy, and one more when it is free. */
static void steal_the_oldest(struct forking *x, struct fairwq_task *self)
{
	struct fairwq_pool *pool = x->batch->pool;
	struct part part[3], last;
	int i;

	part_init(&part[0], x, 0, meet_fn);
	fairwq_fork(self, &part[0].task);
	for (i = 1; i < 3; i++) {
		part_init(&part[i], x, i, count_fn);
		fairwq_fork(self, &part[i].task);
	}
	complete(&x->ready);
	while (mock_nr_begun(pool) == 2 && !completion_done(&x->begun))
		cond_resched();
	part_init(&last, x, 3, count_fn);
	fairwq_fork(self, &last.task);
	fairwq_join(self, &last.task);
	await_in(x, &x->begun);
	for (i = 2; i > 0; i--)
		fairwq_join(self, &part[i].task);
	complete(&x->go);	/* not before: that runner would be free to steal the others */
	fairwq_join(self, &part[0].task);
	x->failed |= part[0].by == current || part[1].by != current;
	for (i = 0; i < 3; i++)
		x->failed |= atomic_read(&part[i].runs) != 1;
}

static void idle_runner_takes_the_oldest_task(struct kunit *test)
{
	struct forking *x;

	mock_pool(test, 2);
	x = queue_forking(test, kept_batch(test, "x", NULL), steal_the_oldest);
	mock_await(test, &x->ready);
	mock_open(test);
	mock_await(test, &x->done);
	fairwq_batch_flush(x->batch);
	KUNIT_EXPECT_FALSE(test, x->failed);
	KUNIT_EXPECT_EQ(test, 1ULL, counter(x, FAIRWQ_STOLEN));
	/* X and the stolen task, which is a turn of the batch of X. */
	KUNIT_EXPECT_EQ(test, 2ULL, x->batch->done);
}

/* Fork a task that is stolen and then waits for x->go. Join it. */
static void steal_and_join(struct forking *x, struct fairwq_task *self)
{
	struct part part;

	part_init(&part, x, 0, meet_fn);
	fairwq_fork(self, &part.task);
	look_up_until(x, self, &x->begun);
	complete(&x->ready);
	fairwq_join(self, &part.task);
	x->failed |= atomic_read(&part.runs) != 1;
}

/* A stolen task that forks while X waits in the join. */
static void deep_fn(struct fairwq_task *self)
{
	struct part *part = container_of(self, struct part, task), sub;
	struct fairwq_forks *forks = self->forks;

	complete(&part->x->begun);
	await_in(part->x, &part->x->go);
	if (self->forks != forks)
		part->x->failed = true;
	part_init(&sub, part->x, 10, fib_fn);
	fairwq_fork(self, &sub.task);
	fairwq_join(self, &sub.task);
	part->result = sub.result;
	atomic_inc(&part->runs);
}

static void steal_a_task_that_forks(struct forking *x, struct fairwq_task *self)
{
	struct part part;

	part_init(&part, x, 0, deep_fn);
	fairwq_fork(self, &part.task);
	look_up_until(x, self, &x->begun);
	complete(&x->ready);
	fairwq_join(self, &part.task);
	x->result = part.result;
}

static void stolen_task_forks_at_its_runner(struct kunit *test)
{
	struct forking *x;

	free_pool(test, 2, FAIRWQ_ROUND_ROBIN);
	x = queue_forking(test, kept_batch(test, "x", NULL), steal_a_task_that_forks);
	mock_await(test, &x->ready);
	usleep_range(1000, 2000);	/* X sleeps in its join by now, or will: both must do */
	complete(&x->go);
	mock_await(test, &x->done);
	KUNIT_EXPECT_FALSE(test, x->failed);
	KUNIT_EXPECT_EQ(test, 55UL, x->result);
}

/* No tick is needed for that. */
static void another_item_runs_while_a_join_waits(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct forking *x;

	free_pool(test, 2, FAIRWQ_ROUND_ROBIN);
	mock_no_ticks(mock->pool);
	x = forking(test, kept_batch(test, "x", NULL), steal_and_join);
	x->computes = true;
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(x->batch, &x->work));
	mock_await(test, &x->ready);
	/* X waits, and its task computes, so only a third runner can run the item. */
	run_item_of(test, kept_batch(test, "y", NULL));
	complete(&x->go);
	mock_await(test, &x->done);
	KUNIT_EXPECT_FALSE(test, x->failed);
}

/* An item that wants the mutex of X, and keeps its seat until it has it. */
struct wanting {
	struct fairwq_work work;
	struct forking *x;
	struct completion begun, done;
};

static void wanting_fn(struct fairwq_work *work)
{
	struct wanting *wanting = container_of(work, struct wanting, work);

	complete(&wanting->begun);
	if (compute_within(mutex_trylock(&wanting->x->mutex)))
		mutex_unlock(&wanting->x->mutex);
	else
		wanting->x->failed = true;
	complete(&wanting->done);
}

static struct wanting *wanting(struct kunit *test, struct forking *x)
{
	struct wanting *wanting = kunit_kzalloc(test, sizeof(*wanting), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, wanting);
	fairwq_work_init(&wanting->work, wanting_fn);
	wanting->x = x;
	init_completion(&wanting->begun);
	init_completion(&wanting->done);
	return wanting;
}

static void steal_under_a_mutex(struct forking *x, struct fairwq_task *self)
{
	mutex_lock(&x->mutex);
	steal_and_join(x, self);
	mutex_unlock(&x->mutex);
}

/* A join goes on although max_active items run that all wait for a mutex of X. */
static void join_goes_on_without_asking(struct kunit *test)
{
	struct wanting *first, *second;
	struct fairwq_batch *y;
	struct forking *x;

	free_pool(test, 2, FAIRWQ_ROUND_ROBIN);
	y = kept_batch(test, "y", NULL);
	x = queue_forking(test, kept_batch(test, "x", NULL), steal_under_a_mutex);
	first = wanting(test, x);
	second = wanting(test, x);
	mock_await(test, &x->ready);
	mock_may_refuse(fairwq_queue(y, &first->work));
	mock_await(test, &first->begun);
	mock_may_refuse(fairwq_queue(y, &second->work));
	mock_await(test, &second->begun);
	complete(&x->go);
	mock_await(test, &second->done);
	mock_await(test, &x->done);
	mock_await(test, &first->done);
	KUNIT_EXPECT_FALSE(test, x->failed);
}

static void failing_task_fn(struct fairwq_task *self)
{
	meet_fn(self);
	fairwq_report_failure(-EIO);
}

static void steal_a_failing_task(struct forking *x, struct fairwq_task *self)
{
	struct part part;

	part_init(&part, x, 0, failing_task_fn);
	fairwq_fork(self, &part.task);
	look_up_until(x, self, &x->begun);
	complete(&x->go);
	fairwq_join(self, &part.task);
}

static fairwq_func_t failed_func;

static void note_failure(struct fairwq_batch *batch, fairwq_func_t func, int err)
{
	failed_func = func;
}

static void failure_of_a_stolen_task_names_the_task(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct forking *x;

	mock->failed = note_failure;
	free_pool(test, 2, FAIRWQ_ROUND_ROBIN);
	x = queue_forking(test, kept_batch(test, "x", NULL), steal_a_failing_task);
	mock_await(test, &x->done);
	KUNIT_EXPECT_PTR_EQ(test, (void *)failing_task_fn, (void *)failed_func);
}

/* ---- limits of the batch, pause, cancel --------------------------------- */

/* The X of promote_behind_a_gate(). */
static struct forking *promoting;

/* Queue the gate with a higher priority, so that the kicked runner takes it first. */
static void gate_hook(enum fairwq_test_point point, struct fairwq_batch *batch)
{
	if (point == FAIRWQ_POINT_PROMOTED && batch == promoting->batch)
		mock_may_refuse(fairwq_queue(promoting->high, &promoting->gate->work));
}

/* Fork a task that is promoted, while the runner kicked for it stops at a gate. Join it. */
static void promote_behind_a_gate(struct forking *x, struct fairwq_task *self)
{
	struct part part;

	part_init(&part, x, 0, count_fn);
	fairwq_fork(self, &part.task);
	look_up_until(x, self, &x->gate->entered);
	x->failed |= atomic_read(&part.runs) != 0;
	complete(&x->ready);
	await_in(x, &x->go);
	fairwq_join(self, &part.task);
	x->failed |= atomic_read(&part.runs) != 1;
}

/* Let X join its task and end. */
static void promoted_go(struct kunit *test, struct forking *x)
{
	complete(&x->go);
	mock_await(test, &x->done);
	complete_all(&x->gate->open);
	fairwq_batch_resume(x->batch);
	fairwq_batch_flush(x->batch);
	fairwq_batch_flush(x->high);
	KUNIT_EXPECT_FALSE(test, x->failed);
}

/* Return an X for promoted_begin(), whose batch has @attrs. It is not queued yet. */
static struct forking *promoting_new(struct kunit *test, const struct fairwq_batch_attrs *attrs)
{
	const struct fairwq_batch_attrs high = { .prio = FAIRWQ_PRIO_HIGH };
	struct mock *mock = test->priv;
	struct forking *x;

	mock->max_in_flight = 1;	/* no more: the gate holds its runner */
	free_pool(test, 2, FAIRWQ_ROUND_ROBIN);
	x = forking(test, kept_batch(test, "x", attrs), promote_behind_a_gate);
	x->high = kept_batch(test, "high", &high);
	x->gate = mock_gate_new(test);
	promoting = x;
	return x;
}

/* Run promote_behind_a_gate() until its task is promoted. */
static void promoting_run(struct kunit *test, struct forking *x)
{
	fairwq_test_set_hook(gate_hook);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(x->batch, &x->work));
	mock_await(test, &x->ready);
	fairwq_test_set_hook(NULL);
}

/* Make such an X, and run it. The batch takes one item at a time. */
static struct forking *promoted_begin(struct kunit *test)
{
	const struct fairwq_batch_attrs small = { .max_queued = 1 };
	struct forking *x = promoting_new(test, &small);

	promoting_run(test, x);
	return x;
}

static void promoted_end(struct kunit *test, struct forking *x)
{
	KUNIT_EXPECT_EQ(test, 1ULL, counter(x, FAIRWQ_PROMOTED));
	promoted_go(test, x);
	KUNIT_EXPECT_EQ(test, 0ULL, counter(x, FAIRWQ_STOLEN));
	KUNIT_EXPECT_EQ(test, 1ULL, x->batch->done);
}

/* Return with preemption off. */
static void leaking_task_fn(struct fairwq_task *self)
{
	meet_fn(self);
	preempt_disable();
}

static void steal_a_leaking_task(struct forking *x, struct fairwq_task *self)
{
	struct part part;

	part_init(&part, x, 0, leaking_task_fn);
	fairwq_fork(self, &part.task);
	look_up_until(x, self, &x->begun);
	complete(&x->go);
	fairwq_join(self, &part.task);
}

/* The report of a leak names the function of the stolen task (promise 12). */
static void leak_of_a_stolen_task_names_the_task(struct kunit *test)
{
	struct forking *x;

	if (!IS_ENABLED(CONFIG_PREEMPT_COUNT))
		kunit_skip(test, "a kernel without CONFIG_PREEMPT_COUNT");
	pr_info("# expect-splat begin item leaked atomic, lock, RCU, irqs or creds: leaking_task_fn\n");
	x = run_forking(test, 2, steal_a_leaking_task);
	pr_info("# expect-splat end\n");
	KUNIT_EXPECT_EQ(test, 1ULL, counter(x, FAIRWQ_LEAKS));
}

static void fork_and_queue_again(struct forking *x, struct fairwq_task *self)
{
	x->failed |= atomic_inc_return(&x->inside) != 1;
	if (!x->again) {
		x->again = true;
		x->failed |= fairwq_queue(x->batch, &x->work) != 1;
	}
	steal_and_join(x, self);
	atomic_dec(&x->inside);
}

/*
 * An item that is queued again does not run before its stolen tasks have ended,
 * although runners are free (promise 4).
 */
static void item_that_forks_never_runs_twice_at_once(struct kunit *test)
{
	struct forking *x;
	int i;

	free_pool(test, 4, FAIRWQ_ROUND_ROBIN);
	x = queue_forking(test, kept_batch(test, "x", NULL), fork_and_queue_again);
	for (i = 0; i < 2; i++) {
		mock_await(test, &x->ready);
		run_item_of(test, kept_batch(test, "y", NULL));
		complete(&x->go);
		mock_await(test, &x->done);
	}
	KUNIT_EXPECT_FALSE(test, x->failed);
}

static void join_takes_a_task_back(struct kunit *test)
{
	promoted_end(test, promoted_begin(test));
}

static void dump_names_a_promoted_task(struct kunit *test)
{
	struct forking *x = promoted_begin(test);
	char *text = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, text);
	mock_dump(x->batch, text, PAGE_SIZE - 1);
	KUNIT_EXPECT_NOT_NULL(test, strstr(text, "count_fn"));
	KUNIT_EXPECT_NOT_NULL(test, strstr(text, "forking_fn"));
	promoted_end(test, x);
}

static void join_takes_a_task_back_from_a_paused_batch(struct kunit *test)
{
	struct forking *x = promoted_begin(test);

	fairwq_batch_pause(x->batch);
	promoted_end(test, x);
}

static void cancel_of_the_batch_leaves_a_task_to_its_join(struct kunit *test)
{
	struct forking *x = promoted_begin(test);

	KUNIT_EXPECT_EQ(test, 0UL, fairwq_batch_cancel(x->batch, NULL));
	promoted_end(test, x);
}

static void batch_at_its_limit_keeps_its_tasks(struct kunit *test)
{
	const struct fairwq_batch_attrs attrs = { .max_active = 1 };
	struct forking *x;

	free_pool(test, 2, FAIRWQ_ROUND_ROBIN);
	x = queue_forking(test, kept_batch(test, "x", &attrs), fib_tree);
	mock_await(test, &x->done);
	KUNIT_EXPECT_EQ(test, FIB, x->result);
	KUNIT_EXPECT_EQ(test, 0ULL, counter(x, FAIRWQ_PROMOTED));
}

/* A work that was put back waits for a place. A task that has one does not wait behind it. */
static void task_may_begin_before_a_work_put_back(struct kunit *test)
{
	const struct fairwq_batch_attrs two = { .max_active = 2 };
	const struct fairwq_pool_attrs one = { .max_active = 1 };
	struct mock_gate *parked = mock_gate_new(test);
	struct fairwq_pool *elsewhere;
	struct forking *x;

	elsewhere = fairwq_pool_create(&one, "elsewhere");
	KUNIT_ASSERT_FALSE(test, IS_ERR(elsewhere));
	KUNIT_ASSERT_EQ(test, 1, mock_pool_queue(elsewhere, &parked->work));
	mock_await(test, &parked->entered);
	x = promoting_new(test, &two);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(x->batch, &parked->work));
	mock_until(test, READ_ONCE(x->batch->nr_parked) == 1);
	promoting_run(test, x);
	complete_all(&parked->open);
	mock_until(test, mock_state(&parked->work) == FAIRWQ_STATE_QUEUED);
	raw_spin_lock_irq(&x->batch->pool->lock);
	KUNIT_EXPECT_TRUE(test, fairwq_node_eligible(&x->batch->node));
	raw_spin_unlock_irq(&x->batch->pool->lock);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&parked->runs));
	promoted_go(test, x);
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&parked->runs));
	fairwq_pool_destroy(elsewhere);
}

static void task_takes_no_room_in_the_queue(struct kunit *test)
{
	struct forking *x = promoted_begin(test);
	struct mock_item *item = mock_item(test, 'y');

	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(x->batch, &item->work));
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&item->work));
	promoted_end(test, x);
	KUNIT_EXPECT_EQ(test, 0U, fairwq_batch_nr_queued(x->batch));
}

static void fork_until_stopped(struct forking *x, struct fairwq_task *self)
{
	struct part part;

	complete(&x->begun);
	while (!READ_ONCE(x->stop)) {
		part_init(&part, x, 12, fib_fn);
		fairwq_fork(self, &part.task);
		fairwq_join(self, &part.task);
		if (part.result != 144)
			x->failed = true;
		cond_resched();
	}
}

static void pause_and_cancel_lose_no_task(struct kunit *test)
{
	struct fairwq_batch *y;
	struct forking *x;
	int i;

	free_pool(test, 2, FAIRWQ_ROUND_ROBIN);
	y = kept_batch(test, "y", NULL);
	x = queue_forking(test, kept_batch(test, "x", NULL), fork_until_stopped);
	mock_await(test, &x->begun);
	for (i = 0; i < 300; i++) {
		mock_queue(test, y, 'y', 1);
		KUNIT_EXPECT_EQ(test, 0UL, fairwq_batch_cancel(x->batch, NULL));
		fairwq_batch_pause(x->batch);
		usleep_range(10, 100);	/* any time will do */
		fairwq_batch_resume(x->batch);
		if (i % 50 == 49)
			fairwq_batch_flush(y);
	}
	WRITE_ONCE(x->stop, true);
	mock_await(test, &x->done);
	KUNIT_EXPECT_FALSE(test, x->failed);
}

static void disposed_batch_ends_when_its_item_has_joined(struct kunit *test)
{
	struct fairwq_batch_attrs attrs = { .released = mock_released_count };
	struct fairwq_batch *batch;
	struct forking *x;
	atomic_t *released = kunit_kzalloc(test, sizeof(*released), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, released);
	free_pool(test, 2, FAIRWQ_ROUND_ROBIN);
	attrs.priv = released;
	batch = mock_own_batch(test, "x", &attrs);
	x = queue_forking(test, batch, fork_until_stopped);
	mock_await(test, &x->begun);
	fairwq_batch_dispose(batch);
	mock_wait_released();
	KUNIT_EXPECT_EQ(test, 0, atomic_read(released));
	WRITE_ONCE(x->stop, true);
	mock_await(test, &x->done);
	mock_until(test, atomic_read(released) == 1);
	KUNIT_EXPECT_FALSE(test, x->failed);
}

/* ---- other batches ------------------------------------------------------ */

/* An item that queues itself again until @stop is set. */
struct repeater {
	struct fairwq_work work;
	struct fairwq_batch *batch;
	bool stop;
};

static void repeat_fn(struct fairwq_work *work)
{
	struct repeater *busy = container_of(work, struct repeater, work);

	usleep_range(200, 400);		/* any time will do */
	if (!READ_ONCE(busy->stop))
		mock_may_refuse(fairwq_queue(busy->batch, work));
}

static struct repeater *queue_repeater(struct kunit *test, struct fairwq_batch *batch)
{
	struct repeater *busy = kunit_kzalloc(test, sizeof(*busy), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, busy);
	fairwq_work_init(&busy->work, repeat_fn);
	busy->batch = batch;
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &busy->work));
	return busy;
}

/* A pause does not hold X, which forks while Y has turns. */
static void pause_does_not_hold_an_item_that_has_begun(struct kunit *test)
{
	struct forking *x;
	struct repeater *y;
	bool ended;

	free_pool(test, 3, FAIRWQ_ROUND_ROBIN);
	x = queue_forking(test, kept_batch(test, "x", NULL), fork_until_stopped);
	mock_await(test, &x->begun);
	y = queue_repeater(test, kept_batch(test, "y", NULL));
	mock_until(test, counter(x, FAIRWQ_PROMOTED) >= 5);
	fairwq_batch_pause(x->batch);
	WRITE_ONCE(x->stop, true);
	ended = mock_wait(&x->done);
	WRITE_ONCE(y->stop, true);
	fairwq_batch_resume(x->batch);
	fairwq_batch_flush(y->batch);
	fairwq_batch_flush(x->batch);
	KUNIT_EXPECT_TRUE(test, ended);
}

/* Fork a task while the batch is paused, and wait until another runner has it. */
static void steal_while_paused(struct forking *x, struct fairwq_task *self)
{
	struct part part;

	fairwq_batch_pause(x->batch);
	part_init(&part, x, 0, meet_fn);
	fairwq_fork(self, &part.task);
	look_up_until(x, self, &x->begun);
	complete(&x->go);
	fairwq_join(self, &part.task);
	fairwq_batch_resume(x->batch);
	x->failed |= part.by == current;
}

/* A pause holds no task of an item that has begun (promise 15). */
static void tasks_of_a_paused_batch_are_taken(struct kunit *test)
{
	run_forking(test, 2, steal_while_paused);
}

/* X promotes tasks as soon as max_active is raised from 1 to 2. */
static void item_sees_that_more_runners_may_run(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct forking *x;

	free_pool(test, 1, FAIRWQ_ROUND_ROBIN);
	x = queue_forking(test, kept_batch(test, "x", NULL), fork_until_stopped);
	mock_await(test, &x->begun);
	KUNIT_EXPECT_EQ(test, 0ULL, counter(x, FAIRWQ_PROMOTED));
	KUNIT_EXPECT_EQ(test, 0, fairwq_pool_set_max_active(mock->pool, 2));
	mock_until(test, counter(x, FAIRWQ_PROMOTED));
	WRITE_ONCE(x->stop, true);
	mock_await(test, &x->done);
	KUNIT_EXPECT_FALSE(test, x->failed);
}

/* No join ends the turn of X, so Y has none before X has returned. */
static void flush_waits_for_the_whole_item(struct kunit *test)
{
	struct mock_item *item = mock_item(test, 'y');
	struct forking *x;
	struct call *flush;

	free_pool(test, 1, FAIRWQ_ROUND_ROBIN);
	x = queue_forking(test, kept_batch(test, "x", NULL), fork_until_stopped);
	mock_await(test, &x->begun);
	KUNIT_EXPECT_FALSE(test, fairwq_work_cancel(&x->work));
	flush = mock_call_start(test, fairwq_work_flush, &x->work);
	mock_until(test, mock_nr_waiters(x->batch->pool));
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(kept_batch(test, "y", NULL), &item->work));
	usleep_range(1000, 2000);	/* any time will do */
	KUNIT_EXPECT_FALSE(test, completion_done(&flush->done));
	KUNIT_EXPECT_TRUE(test, fairwq_work_pending(&item->work));
	WRITE_ONCE(x->stop, true);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, flush));
	KUNIT_EXPECT_TRUE(test, completion_done(&x->done));
}

/* ---- misuse ------------------------------------------------------------- */

static void leaving_fn(struct fairwq_task *self)
{
	struct part *part = container_of(self, struct part, task), left;

	part_init(&left, part->x, 1, count_fn);
	fairwq_fork(self, &left.task);
}

static void leave_a_task(struct forking *x, struct fairwq_task *self)
{
	struct part part, other;

	part_init(&other, x, 1, count_fn);
	part_init(&part, x, 0, leaving_fn);
	fairwq_fork(self, &other.task);
	fairwq_fork(self, &part.task);
	fairwq_join(self, &part.task);
	fairwq_join(self, &other.task);
	x->failed = atomic_read(&other.runs) != 1;
}

static void forget_a_task(struct forking *x, struct fairwq_task *self)
{
	struct part part;

	part_init(&part, x, 0, leaving_fn);
	part.task.forks = self->forks;
	leaving_fn(&part.task);
}

/* A task that was not joined is reported in the log, and not run. Other tasks still run. */
static void task_that_was_not_joined_is_forgotten(struct kunit *test)
{
	struct forking *x, *again;

	pr_info("# expect-splat begin has not joined what it forked\n");
	x = run_forking(test, 1, leave_a_task);
	again = queue_forking(test, x->batch, forget_a_task);
	mock_await(test, &again->done);
	pr_info("# expect-splat end\n");
	again = queue_forking(test, x->batch, fib_tree);
	mock_await(test, &again->done);
	KUNIT_EXPECT_EQ(test, FIB, again->result);
}

/* What leave_promoted_fn() forks and does not join. */
static struct part promoted;

/* Fork a task that is promoted, and one that is private. Join none of them. */
static void leave_promoted_fn(struct fairwq_task *self)
{
	struct forking *x = container_of(self, struct part, task)->x;
	struct part private;

	fairwq_test_set_hook(gate_hook);
	x->failed |= fairwq_pool_set_max_active(x->batch->pool, 2) != 0;
	part_init(&promoted, x, 1, count_fn);
	fairwq_fork(self, &promoted.task);
	look_up_until(x, self, &x->gate->entered);
	fairwq_test_set_hook(NULL);
	part_init(&private, x, 2, count_fn);
	fairwq_fork(self, &private.task);
	x->failed |= !fairwq_work_pending(&promoted.task.work);
}

/* Join a task of that function. No runner takes it, as the pool has but one seat. */
static void leave_a_promoted_task(struct forking *x, struct fairwq_task *self)
{
	struct part part;

	part_init(&part, x, 0, leave_promoted_fn);
	fairwq_fork(self, &part.task);
	fairwq_join(self, &part.task);
	x->failed |= fairwq_work_pending(&promoted.task.work);
	x->failed |= atomic_read(&promoted.runs) != 0;
}

/*
 * A task that was promoted and not joined is ended when the function that has
 * forked it returns, because then its memory may be reused. That it was not
 * joined was reported in the case before, and is reported only once.
 */
static void task_that_was_promoted_and_not_joined_is_ended(struct kunit *test)
{
	struct forking *x = promoting_new(test, NULL);

	KUNIT_ASSERT_EQ(test, 0, fairwq_pool_set_max_active(x->batch->pool, 1));
	x->fn = leave_a_promoted_task;
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(x->batch, &x->work));
	promoted_go(test, x);
	KUNIT_EXPECT_EQ(test, 1ULL, counter(x, FAIRWQ_PROMOTED));
}

/* ---- a task that was not joined, and the context of its item -------------- */

/*
 * A task that is forked in a context, and not joined there. Another runner has
 * taken it, and stops before it calls the function. Meanwhile the item leaves
 * the context.
 */
static struct {
	struct fairwq_work work;
	struct fairwq_context *context;
	struct fairwq_task task;
	struct tracepoint *start;	/* where that runner stops */
	bool taken, left;		/* steps */
	bool ran, joined;		/* joined: it had run when the call returned */
	kuid_t uid;			/* as which the task has run */
} unjoined;

#ifdef CONFIG_TRACEPOINTS
/* Find the tracepoint of the start of an item, which the module does not export. */
static int find_start(struct notifier_block *nb, unsigned long state, void *data)
{
	struct module *module = ((struct tp_module *)data)->mod;
	struct tracepoint *tp;
	unsigned int i;

	for (i = 0; i < module->num_tracepoints; i++) {
		tp = tracepoint_ptr_deref(&module->tracepoints_ptrs[i]);
		if (!strcmp(tp->name, "fairwq_start"))
			unjoined.start = tp;
	}
	return NOTIFY_OK;
}

static void stop_at_start(void *data, const struct fairwq_turn *turn, const void *work)
{
	if (!(((const struct fairwq_work *)work)->flags & FAIRWQ_WORK_FORK))
		return;
	step_done(&unjoined.taken);
	/* To show the bug. If the item waits for the task, it does not leave before. */
	spin_for(100, smp_load_acquire(&unjoined.left));
}

/* Let runners stop where they start a stolen task. Return: whether they will. */
static bool stop_runners(void)
{
	static struct notifier_block nb = { .notifier_call = find_start };

	register_tracepoint_module_notifier(&nb);
	unregister_tracepoint_module_notifier(&nb);
	return unjoined.start &&
	       !tracepoint_probe_register(unjoined.start, (void *)stop_at_start, NULL);
}

static void stop_runners_no_more(void)
{
	tracepoint_probe_unregister(unjoined.start, (void *)stop_at_start, NULL);
	tracepoint_synchronize_unregister();
}
#else
static bool stop_runners(void)
{
	return false;
}

static void stop_runners_no_more(void)
{
}
#endif

static void unjoined_fn(struct fairwq_task *self)
{
	unjoined.uid = current_fsuid();
	unjoined.ran = true;
}

static void joined_fn(struct fairwq_task *self)
{
}

static void fork_and_leave(void *arg)
{
	struct fairwq_task self, other;
	unsigned int i;

	fairwq_task_here(&self);
	fairwq_task_init(&unjoined.task, unjoined_fn);
	fairwq_fork(&self, &unjoined.task);
	/* Look up meanwhile, so that another runner takes the task. */
	for (i = 0; i < 100000 && !READ_ONCE(unjoined.taken); i++) {
		fairwq_task_init(&other, joined_fn);
		fairwq_fork(&self, &other);
		fairwq_join(&self, &other);
		usleep_range(50, 100);
	}
}

static void unjoining_fn(struct fairwq_work *work)
{
	fairwq_context_call(unjoined.context, fork_and_leave, NULL);
	unjoined.joined = READ_ONCE(unjoined.ran);
	step_done(&unjoined.left);
}

/* Capture the context of a task that is user 1000. */
static struct fairwq_context *user_context(struct kunit *test)
{
	struct cred *cred = prepare_creds();
	struct fairwq_context *context;
	const struct cred *old;

	KUNIT_ASSERT_NOT_NULL(test, cred);
	cred->fsuid = KUIDT_INIT(1000);
	old = override_creds(cred);
	context = fairwq_context_capture(GFP_KERNEL);
	revert_creds(old);
	put_cred(cred);
	KUNIT_ASSERT_FALSE(test, IS_ERR(context));
	return context;
}

/*
 * A task that its item has not joined runs as the user of the item, or not at
 * all. That it was not joined was reported in the case before, and is reported
 * only once.
 */
static void task_that_was_not_joined_is_no_root(struct kunit *test)
{
	struct fairwq_batch *x;

	need_two_cpus(test);
	memset(&unjoined, 0, sizeof(unjoined));
	if (!stop_runners())
		kunit_skip(test, "needs CONFIG_TRACEPOINTS");
	free_pool(test, 2, FAIRWQ_ROUND_ROBIN);
	x = kept_batch(test, "x", NULL);
	unjoined.context = user_context(test);
	fairwq_work_init(&unjoined.work, unjoining_fn);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(x, &unjoined.work));
	fairwq_batch_flush(x);
	stop_runners_no_more();
	fairwq_context_put(unjoined.context);
	KUNIT_EXPECT_TRUE(test, unjoined.taken);
	KUNIT_EXPECT_TRUE(test, unjoined.joined);
	KUNIT_EXPECT_EQ(test, 1000U, from_kuid(&init_user_ns, unjoined.uid));
}

static int count_number(unsigned long from, unsigned long to, void *arg)
{
	atomic_add(to - from, (atomic_t *)arg);
	return 0;
}

/* Loop over numbers, and fail if not each has run. */
static void count_numbers(struct forking *x)
{
	atomic_t ran = ATOMIC_INIT(0);

	if (fairwq_parallel_for(NULL, 0, 500, 1, count_number, &ran) || atomic_read(&ran) != 500)
		x->failed = true;
}

/* The last link: queue an item, compute for some ticks, and see whether it has begun. */
static void look_behind(struct forking *x)
{
	if (fairwq_queue(x->batch, x->behind) <= 0)
		x->failed = true;
	mock_burn(3ULL * TICK_NSEC);
	x->overtaken = !fairwq_work_pending(x->behind);
}

/* Fork and join the next link: the joins of a chain nest on one stack. */
static void chain_fn(struct fairwq_task *self)
{
	struct part *part = container_of(self, struct part, task), next;
	char frame[256], *large = frame;

	OPTIMIZER_HIDE_VAR(large);
	*large = 1;
	part->x->stack_left = min(part->x->stack_left,
				  (unsigned long)__builtin_frame_address(0) % THREAD_SIZE);
	if (!(current->flags & PF_MEMALLOC_NOIO))
		part->x->io = true;
	if (current != part->x->by)
		WRITE_ONCE(part->x->elsewhere, true);
	atomic_inc(&part->runs);
	part->result = *large;
	if (part->x->loops && fairwq_stack_is_low())
		count_numbers(part->x);
	if (!part->n) {
		if (part->x->behind)
			look_behind(part->x);
		return;
	}
	part_init(&next, part->x, part->n - 1, chain_fn);
	fairwq_fork(self, &next.task);
	fairwq_join(self, &next.task);
	part->result += next.result;
}

static void chain_of(struct forking *x, struct fairwq_task *self, unsigned long n)
{
	struct part part;

	x->by = current;
	x->stack_left = THREAD_SIZE;
	part_init(&part, x, n, chain_fn);
	fairwq_fork(self, &part.task);
	fairwq_join(self, &part.task);
	x->result = part.result;
}

#define LINKS	(MOCK_WATCHED ? 40UL : 150UL)

static void chain_of_links(struct forking *x, struct fairwq_task *self)
{
	chain_of(x, self, LINKS - 1);
}

static void endless_chain(struct forking *x, struct fairwq_task *self)
{
	chain_of(x, self, 1000000);
}

/*
 * A chain of joins that is too long for one stack goes on at others. As
 * max_active of the batch is 1, no link is stolen.
 */
static void chain_goes_on_at_other_stacks(struct kunit *test)
{
	const struct fairwq_batch_attrs attrs = { .max_active = 1 };
	struct forking *x;

	free_pool(test, 4, FAIRWQ_ROUND_ROBIN);
	x = queue_forking(test, kept_batch(test, "x", &attrs), chain_of_links);
	mock_await(test, &x->done);
	KUNIT_EXPECT_EQ(test, LINKS, x->result);
	KUNIT_EXPECT_TRUE(test, x->elsewhere);
	/* Interrupts may need this much of it. */
	KUNIT_EXPECT_GE(test, x->stack_left, THREAD_SIZE / 4UL);
	KUNIT_EXPECT_EQ(test, 0ULL, counter(x, FAIRWQ_STOLEN));
	KUNIT_EXPECT_EQ(test, 0ULL, counter(x, FAIRWQ_FAILURES));
}

/* There the item computes, and has its seat, though its own worker sleeps. */
static void item_keeps_its_seat_on_another_stack(struct kunit *test)
{
	struct mock_item *item = mock_item(test, 'y');
	struct forking *x;

	free_pool(test, 1, FAIRWQ_ROUND_ROBIN);
	x = forking(test, kept_batch(test, "x", NULL), chain_of_links);
	x->behind = &item->work;
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(x->batch, &x->work));
	mock_await(test, &x->done);
	KUNIT_EXPECT_TRUE(test, x->elsewhere);
	KUNIT_EXPECT_FALSE(test, x->failed);
	KUNIT_EXPECT_FALSE(test, x->overtaken);
	fairwq_work_flush(&item->work);
}

static void chain_without_io(struct forking *x, struct fairwq_task *self)
{
	unsigned int noio = memalloc_noio_save();

	chain_of_links(x, self);
	memalloc_noio_restore(noio);
}

/* What an item has said of its allocations holds for its tasks on other stacks, too. */
static void chain_keeps_the_scope_of_memory(struct kunit *test)
{
	const struct fairwq_batch_attrs attrs = { .max_active = 1 };
	struct forking *x;

	free_pool(test, 2, FAIRWQ_ROUND_ROBIN);
	x = queue_forking(test, kept_batch(test, "x", &attrs), chain_without_io);
	mock_await(test, &x->done);
	KUNIT_EXPECT_TRUE(test, x->elsewhere);
	KUNIT_EXPECT_FALSE(test, x->io);
}

struct scoped {
	struct fairwq_task task;
	struct completion begun;
	struct task_struct *by;
	bool io;
};

static void scoped_fn(struct fairwq_task *self)
{
	struct scoped *scoped = container_of(self, struct scoped, task);

	scoped->by = current;
	scoped->io = !(current->flags & PF_MEMALLOC_NOIO);
	complete(&scoped->begun);
}

/* Fork a task that another runner takes. Return: whether that may begin I/O for memory. */
static bool stolen_task_has_io(struct forking *x, struct fairwq_task *self)
{
	struct scoped scoped = { };

	init_completion(&scoped.begun);
	fairwq_task_init(&scoped.task, scoped_fn);
	fairwq_fork(self, &scoped.task);
	mock_fork_until(self, &scoped.begun);
	fairwq_join(self, &scoped.task);
	x->failed |= scoped.by == current;
	return scoped.io;
}

static void fork_without_io(struct forking *x, struct fairwq_task *self)
{
	unsigned int noio;

	x->io = !stolen_task_has_io(x, self);
	noio = memalloc_noio_save();
	x->io |= stolen_task_has_io(x, self);
	memalloc_noio_restore(noio);
	x->io |= !stolen_task_has_io(x, self);
}

/* A task that another runner takes is within it, too, and no other task of that runner. */
static void stolen_task_keeps_the_scope_of_memory(struct kunit *test)
{
	struct forking *x;

	free_pool(test, 2, FAIRWQ_ROUND_ROBIN);
	x = queue_forking(test, kept_batch(test, "x", NULL), fork_without_io);
	mock_await(test, &x->done);
	KUNIT_EXPECT_FALSE(test, x->failed);
	KUNIT_EXPECT_FALSE(test, x->io);
}

static void chains_one_by_one(struct forking *x, struct fairwq_task *self)
{
	int i;

	complete(&x->begun);
	for (i = 0; i < 20; i++) {
		chain_of_links(x, self);
		x->failed |= x->result != LINKS;
	}
}

/* A cancel leaves a link that was promoted, however often it comes. */
static void cancel_of_the_batch_loses_no_link(struct kunit *test)
{
	struct forking *x;

	free_pool(test, 4, FAIRWQ_ROUND_ROBIN);
	x = queue_forking(test, kept_batch(test, "x", NULL), chains_one_by_one);
	mock_await(test, &x->begun);
	mock_until(test, !fairwq_batch_cancel(x->batch, NULL) && completion_done(&x->done));
	KUNIT_EXPECT_FALSE(test, x->failed);
	KUNIT_EXPECT_EQ(test, 0ULL, counter(x, FAIRWQ_FAILURES));
}

/* A chain under a mutex, while each item that has a seat wants that mutex. */
static void chain_under_a_mutex(struct forking *x, struct fairwq_task *self)
{
	mutex_lock(&x->mutex);
	complete(&x->begun);
	await_in(x, &x->go);
	chain_of_links(x, self);
	mutex_unlock(&x->mutex);
}

/* A join with little stack needs no seat: all may wait for a lock that its item holds. */
static void chain_needs_no_seat(struct kunit *test)
{
	const struct fairwq_batch_attrs high = { .prio = FAIRWQ_PRIO_HIGH };
	struct wanting *waiting[2];
	struct fairwq_batch *y;
	struct forking *x;
	int i;

	free_pool(test, 2, FAIRWQ_ROUND_ROBIN);
	y = kept_batch(test, "high", &high);
	x = queue_forking(test, kept_batch(test, "x", NULL), chain_under_a_mutex);
	mock_await(test, &x->begun);
	for (i = 0; i < 2; i++) {
		waiting[i] = wanting(test, x);
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(y, &waiting[i]->work));
		mock_await(test, &waiting[i]->begun);
	}
	complete(&x->go);
	mock_await(test, &x->done);
	for (i = 0; i < 2; i++)
		mock_await(test, &waiting[i]->done);
	KUNIT_EXPECT_EQ(test, LINKS, x->result);
	KUNIT_EXPECT_FALSE(test, x->failed);
	KUNIT_EXPECT_EQ(test, 0ULL, counter(x, FAIRWQ_FAILURES));
}

static void chain_without_end_ends_in_a_failure(struct kunit *test)
{
	struct forking *x;

	pr_info("# expect-splat begin does not run: no stack is left\n");
	x = run_forking(test, 2, endless_chain);
	pr_info("# expect-splat end\n");
	KUNIT_EXPECT_GT(test, x->result, 10UL);
	KUNIT_EXPECT_EQ(test, 1ULL, counter(x, FAIRWQ_FAILURES));
}

static void endless_chain_that_loops(struct forking *x, struct fairwq_task *self)
{
	x->loops = true;
	endless_chain(x, self);
}

/* A loop runs each of its numbers, also where no stack is left. */
static void loop_needs_no_stack(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct forking *x;

	/* A task that another runner takes has a new stack, and the chain gets longer. */
	mock->max_in_flight = 12;
	/* The case before has had the report, which comes once. */
	x = run_forking(test, 4, endless_chain_that_loops);
	KUNIT_EXPECT_GE(test, counter(x, FAIRWQ_FAILURES), 1ULL);
}

/* ---- joins with little stack --------------------------------------------- */

/* Chains one after the other until the case stops them. */
static void chains_until_stopped(struct forking *x, struct fairwq_task *self)
{
	complete(&x->begun);
	do {
		chain_of_links(x, self);
		x->failed |= x->result != LINKS;
	} while (!READ_ONCE(x->stop));
}

/* Start X with its chains, and wait until one has gone on at another stack. */
static struct forking *start_chains(struct kunit *test)
{
	const struct fairwq_batch_attrs attrs = { .max_active = 1 };
	struct forking *x;

	free_pool(test, 4, FAIRWQ_ROUND_ROBIN);
	x = forking(test, mock_own_batch(test, "x", &attrs), chains_until_stopped);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(x->batch, &x->work));
	mock_await(test, &x->begun);
	mock_until(test, READ_ONCE(x->elsewhere));
	return x;
}

static bool drop_batch(struct fairwq_work *work)
{
	return !fairwq_batch_shutdown(container_of(work, struct forking, work)->batch,
				      FAIRWQ_DROP_REST, NULL);
}

/* A pause holds no part of an item that has begun, nor does a drop (promise 15). */
static void join_with_little_stack_is_not_held(struct kunit *test)
{
	struct forking *x = start_chains(test);

	fairwq_batch_pause(x->batch);
	WRITE_ONCE(x->stop, true);
	mock_await(test, &x->done);
	fairwq_batch_resume(x->batch);
	KUNIT_EXPECT_FALSE(test, x->failed);
	fairwq_work_flush(&x->work);
	WRITE_ONCE(x->stop, false);
	reinit_completion(&x->begun);
	reinit_completion(&x->done);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(x->batch, &x->work));
	mock_await(test, &x->begun);
	WRITE_ONCE(x->stop, true);
	KUNIT_EXPECT_TRUE(test, mock_call_end(test, mock_call_start(test, drop_batch, &x->work)));
	KUNIT_EXPECT_FALSE(test, x->failed);
}

/* More tasks of one item at a time than fit anywhere. */
#define NR_STOLEN	20U

static struct part stolen_parts[NR_STOLEN];

/* Fork NR_STOLEN tasks, which are all stolen and wait. Run a chain beside them. */
static void chain_beside_many_stolen(struct forking *x, struct fairwq_task *self)
{
	unsigned int i, nr;

	for (nr = 0; nr < NR_STOLEN; nr++) {
		part_init(&stolen_parts[nr], x, nr, meet_fn);
		fairwq_fork(self, &stolen_parts[nr].task);
		look_up_until(x, self, &x->begun);
	}
	chain_of_links(x, self);
	complete_all(&x->go);
	for (i = nr; i > 0; i--)
		fairwq_join(self, &stolen_parts[i - 1].task);
}

/* A join with little stack finds another one while runners are idle. */
static void join_finds_a_stack_beside_many_tasks(struct kunit *test)
{
	struct forking *x;

	free_pool(test, NR_STOLEN + 8, FAIRWQ_ROUND_ROBIN);
	x = queue_forking(test, kept_batch(test, "x", NULL), chain_beside_many_stolen);
	mock_await(test, &x->done);
	fairwq_batch_flush(x->batch);
	KUNIT_EXPECT_EQ(test, 0ULL, counter(x, FAIRWQ_FAILURES));
	KUNIT_EXPECT_EQ(test, LINKS, x->result);
	KUNIT_EXPECT_FALSE(test, x->failed);
}

/* ---- parts of an item wait for no turns ----------------------------------- */

#define PIECES		200U
#define PIECE_US	100U

/* A loop that counts what happened while it ran. */
static struct {
	unsigned long sleeps;		/* of the runner that began it */
	unsigned int turns;		/* of other items */
	struct fairwq_batch *batch;	/* of those */
	bool counts, over;
} beside;

/* Compute for PIECE_US; or do nothing, if it is clear already that the promise is broken. */
static int piece(unsigned long from, unsigned long to, void *arg)
{
	struct forking *x = arg;
	u64 end = ktime_get_ns() + PIECE_US * NSEC_PER_USEC;

	if (READ_ONCE(x->failed))
		return 0;
	while (ktime_get_ns() < end)
		cpu_relax();
	return 0;
}

static void beside_fn(struct fairwq_work *work)
{
	if (READ_ONCE(beside.counts))
		WRITE_ONCE(beside.turns, beside.turns + 1);
	if (!READ_ONCE(beside.over))
		mock_may_refuse(fairwq_queue(beside.batch, work));
}

/* Queue items beside X, which queue themselves again until end_beside(). */
static void begin_beside(struct kunit *test, enum fairwq_prio prio)
{
	struct fairwq_work *work = kunit_kcalloc(test, 4, sizeof(*work), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, work);
	memset(&beside, 0, sizeof(beside));
	beside.batch = mock_batch_prio(test, "beside", prio);
	for (i = 0; i < 4; i++) {
		fairwq_work_init(&work[i], beside_fn);
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(beside.batch, &work[i]));
	}
}

static void end_beside(void)
{
	WRITE_ONCE(beside.over, true);
	fairwq_batch_flush(beside.batch);
}

/* Begin a loop, and let the case freeze the pool meanwhile. Count how often it sleeps. */
static void loop_while_frozen(struct forking *x, struct fairwq_task *self)
{
	unsigned long switches;
	int ret = 0, i;

	complete(&x->begun);
	while (!READ_ONCE(x->stop))
		cond_resched();
	switches = current->nvcsw;
	for (i = 0; i < 10 && !ret; i++) {
		ret = fairwq_parallel_for(NULL, 0, PIECES / 10, 1, piece, x);
		beside.sleeps = current->nvcsw - switches;
		if (beside.sleeps > 20)
			WRITE_ONCE(x->failed, true);
	}
	/* The stacks that a chain needs are not of this workqueue. */
	chain_of_links(x, self);
	x->failed |= ret || x->result != LINKS;
}

/*
 * An item that forks ends while no other runner of its pool may begin, as it is
 * when the system freezes (promise 15). The limit of the workqueue stands for
 * the freezer here: what it runs goes on, and nothing else begins. Meanwhile
 * another client queues and cancels.
 */
static void item_that_forks_ends_in_a_frozen_pool(struct kunit *test)
{
	struct mock_item *item = mock_item(test, 'y');
	struct mock *mock = test->priv;
	struct fairwq_batch *y;
	struct forking *x;

	mock->flags = FAIRWQ_FREEZABLE;
	free_pool(test, 1, FAIRWQ_ROUND_ROBIN);
	y = kept_batch(test, "y", NULL);
	x = queue_forking(test, kept_batch(test, "x", NULL), loop_while_frozen);
	mock_await(test, &x->begun);
	begin_beside(test, FAIRWQ_PRIO_NORMAL);
	workqueue_set_max_active(mock->pool->wq, 1);
	WRITE_ONCE(x->stop, true);
	mock_until(test, fairwq_queue(y, &item->work) != 1 || !fairwq_work_cancel(&item->work) ||
		   completion_done(&x->done));
	mock_await(test, &x->done);
	workqueue_set_max_active(mock->pool->wq, FAIRWQ_MAX_ACTIVE);
	end_beside();
	KUNIT_EXPECT_LE(test, beside.sleeps, 5UL);
	KUNIT_EXPECT_FALSE(test, x->failed);
}

/* Loop under a mutex, while items of a higher priority wait for the only runner. */
static void loop_under_a_mutex(struct forking *x, struct fairwq_task *self)
{
	int ret = 0, i;

	mutex_lock(&x->mutex);
	complete(&x->begun);
	while (!READ_ONCE(x->stop))
		cond_resched();
	for (i = 0; i < 10 && !ret; i++) {
		ret = fairwq_parallel_for(NULL, 0, PIECES / 10, 1, piece, x);
		if (READ_ONCE(beside.turns) > 1000)
			WRITE_ONCE(x->failed, true);
	}
	WRITE_ONCE(beside.counts, false);
	mutex_unlock(&x->mutex);
}

/* No other item has the turn of an item that holds a lock over its joins (promise 15). */
static void lock_is_not_held_for_turns_of_others(struct kunit *test)
{
	struct forking *x;

	free_pool(test, 1, FAIRWQ_ROUND_ROBIN);
	x = queue_forking(test, mock_batch_prio(test, "x", FAIRWQ_PRIO_LOW), loop_under_a_mutex);
	mock_await(test, &x->begun);
	begin_beside(test, FAIRWQ_PRIO_HIGH);
	WRITE_ONCE(beside.counts, true);
	WRITE_ONCE(x->stop, true);
	mock_await(test, &x->done);
	end_beside();
	KUNIT_EXPECT_EQ(test, 0U, beside.turns);
}

/* ---- loops over ranges -------------------------------------------------- */

#define NUMBERS	10000UL

struct loop {
	atomic_t *seen;			/* calls by number */
	atomic_t calls, longest;
};

static int see(unsigned long from, unsigned long to, void *arg)
{
	struct loop *loop = arg;
	unsigned long i;

	atomic_inc(&loop->calls);
	if (to - from > atomic_read(&loop->longest))
		atomic_set(&loop->longest, to - from);
	for (i = from; i < to; i++)
		atomic_inc(&loop->seen[i]);
	return 0;
}

static struct loop *loop(struct kunit *test)
{
	struct loop *loop = kunit_kzalloc(test, sizeof(*loop), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, loop);
	loop->seen = kunit_kzalloc(test, NUMBERS * sizeof(*loop->seen), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, loop->seen);
	return loop;
}

static void expect_each_once(struct kunit *test, const struct loop *loop,
			     unsigned long from, unsigned long to)
{
	unsigned long i, wrong = 0;

	for (i = 0; i < NUMBERS; i++)
		wrong += atomic_read(&loop->seen[i]) != (i >= from && i < to);
	KUNIT_EXPECT_EQ(test, 0UL, wrong);
}

static void each_number_is_in_one_call(struct kunit *test)
{
	static const unsigned long grain[] = { 1, 2, 7, 100, 4999, NUMBERS, ULONG_MAX };
	struct fairwq_batch *batch;
	struct loop *each;
	int i;

	free_pool(test, *(const unsigned int *)test->param_value, FAIRWQ_ROUND_ROBIN);
	batch = kept_batch(test, "x", NULL);
	for (i = 0; i < ARRAY_SIZE(grain); i++) {
		each = loop(test);
		KUNIT_EXPECT_EQ(test, 0, fairwq_parallel_for(batch, 3, NUMBERS - 3, grain[i],
							     see, each));
		expect_each_once(test, each, 3, NUMBERS - 3);
		KUNIT_EXPECT_LE(test, (unsigned long)atomic_read(&each->longest), grain[i]);
	}
}

/* Calls of a body, as they came. The numbers are too many to be counted one by one. */
struct spans {
	atomic_t nr;
	struct span {
		unsigned long from, to;
	} span[1000];
};

static int note_span(unsigned long from, unsigned long to, void *arg)
{
	struct spans *spans = arg;
	unsigned int i = atomic_inc_return(&spans->nr) - 1;

	if (i < ARRAY_SIZE(spans->span))
		spans->span[i] = (struct span){ from, to };
	return 0;
}

static int span_cmp(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

/* Each number of the range was in one call, and none had more than @grain or others. */
static void expect_spans(struct kunit *test, struct spans *spans, unsigned long start,
			 unsigned long end, unsigned long grain)
{
	unsigned int i, nr = atomic_read(&spans->nr);
	unsigned long next = start;

	KUNIT_ASSERT_LE(test, nr, (unsigned int)ARRAY_SIZE(spans->span));
	sort(spans->span, nr, sizeof(spans->span[0]), span_cmp, NULL);
	for (i = 0; i < nr; i++) {
		KUNIT_ASSERT_EQ(test, next, spans->span[i].from);
		KUNIT_ASSERT_LT(test, next, spans->span[i].to);
		KUNIT_ASSERT_LE(test, spans->span[i].to - next, grain);
		next = spans->span[i].to;
	}
	KUNIT_EXPECT_EQ(test, max(start, end), next);
}

/* Ranges and grains near 0, near half of what an unsigned long holds, and near its end. */
static void loops_at_the_limits_stay_in_their_range(struct kunit *test)
{
	static const unsigned long edge[] = {
		0, 1, 2, 3, LONG_MAX - 1UL, LONG_MAX, LONG_MAX + 1UL, LONG_MAX + 2UL,
		ULONG_MAX / 3, ULONG_MAX / 3 * 2, ULONG_MAX / 100,
		ULONG_MAX - 2, ULONG_MAX - 1, ULONG_MAX,
	};
	struct spans *spans = kunit_kzalloc(test, sizeof(*spans), GFP_KERNEL);
	struct fairwq_batch *batch;
	unsigned int s, e, g;
	int err;

	KUNIT_ASSERT_NOT_NULL(test, spans);
	free_pool(test, *(const unsigned int *)test->param_value, FAIRWQ_ROUND_ROBIN);
	batch = kept_batch(test, "x", NULL);
	for (s = 0; s < ARRAY_SIZE(edge); s++)
		for (e = 0; e < ARRAY_SIZE(edge); e++)
			for (g = 1; g < ARRAY_SIZE(edge); g++) {
				if (edge[e] > edge[s] &&
				    (edge[e] - edge[s]) / edge[g] >= ARRAY_SIZE(spans->span))
					continue;	/* too many calls */
				atomic_set(&spans->nr, 0);
				err = fairwq_parallel_for(batch, edge[s], edge[e], edge[g],
							  note_span, spans);
				KUNIT_ASSERT_EQ(test, 0, err);
				expect_spans(test, spans, edge[s], edge[e], edge[g]);
			}
}

static void bad_loops_are_refused(struct kunit *test)
{
	struct loop *each = loop(test);
	struct fairwq_batch *batch;

	free_pool(test, 2, FAIRWQ_ROUND_ROBIN);
	batch = kept_batch(test, "x", NULL);
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_parallel_for(batch, 0, 9, 0, see, each));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_parallel_for(batch, 0, ULONG_MAX, 0, see, each));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_parallel_for(batch, 0, 9, 1, NULL, each));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_parallel_for(NULL, 0, 9, 1, see, each));
	KUNIT_EXPECT_EQ(test, 0, fairwq_parallel_for(batch, 9, 9, 1, see, each));
	KUNIT_EXPECT_EQ(test, 0, fairwq_parallel_for(batch, 9, 0, 1, see, each));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&each->calls));
}

/* A loop whose body ends it, and the workers on which it has done so. */
struct ending {
	atomic_t calls, nr, wrong;
	const struct task_struct *ended[8];
};

#define END_AT	100UL

/* Return 1 more than the first number of the part, from END_AT on. */
static int end_loop(unsigned long from, unsigned long to, void *arg)
{
	struct ending *ending = arg;
	unsigned int i;

	atomic_inc(&ending->calls);
	for (i = 0; i < ARRAY_SIZE(ending->ended); i++)
		if (READ_ONCE(ending->ended[i]) == current)
			atomic_inc(&ending->wrong);
	if (from < END_AT)
		return 0;
	i = atomic_inc_return(&ending->nr) - 1;
	if (i < ARRAY_SIZE(ending->ended))
		WRITE_ONCE(ending->ended[i], current);
	return from + 1;
}

/* The loop returns what its body has, and no worker on which that was calls the body again. */
static void body_ends_its_loop(struct kunit *test)
{
	unsigned int runners = *(const unsigned int *)test->param_value;
	struct ending ending = { };
	struct fairwq_batch *batch;
	int ret;

	free_pool(test, runners, FAIRWQ_ROUND_ROBIN);
	batch = kept_batch(test, "x", NULL);
	ret = fairwq_parallel_for(batch, 0, NUMBERS, 10, end_loop, &ending);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&ending.wrong));
	KUNIT_EXPECT_GT(test, ret, (int)END_AT);
	KUNIT_EXPECT_LE(test, ret, (int)NUMBERS);
	if (runners == 1) {
		KUNIT_EXPECT_EQ(test, (int)END_AT + 1, ret);
		KUNIT_EXPECT_EQ(test, (int)END_AT / 10 + 1, atomic_read(&ending.calls));
	}
}

static void loop_in_an_item(struct forking *x, struct fairwq_task *self)
{
	struct loop *each = loop(x->test);
	struct ending ending = { };

	x->failed = fairwq_parallel_for(NULL, 0, NUMBERS, 10, see, each) ||
		    fairwq_parallel_for(NULL, END_AT, NUMBERS, 10, end_loop, &ending) <= 0 ||
		    fairwq_parallel_for(x->batch, 0, NUMBERS, 10, see, each) ||
		    fairwq_parallel_for((struct fairwq_batch *)x, 0, 9, 1, see, each) != -EINVAL ||
		    atomic_read(&each->seen[0]) != 2 ||
		    atomic_read(&each->seen[NUMBERS - 1]) != 2;
}

/* In an item, the loop takes NULL or the batch of the item, and refuses others. */
static void loop_in_an_item_is_of_its_batch(struct kunit *test)
{
	run_forking(test, 2, loop_in_an_item);
}

/* ------------------------------------------------------------------------- */

static const unsigned int nr_runners[] = { 1, 2, 4 };

static void describe_number(const unsigned int *nr, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u", *nr);
}

KUNIT_ARRAY_PARAM(nr_runners, nr_runners, describe_number);

static struct kunit_case forkjoin_cases[] = {
	KUNIT_CASE(task_runs_once_when_it_is_joined),
	KUNIT_CASE(tasks_run_in_the_join_where_no_item_runs),
	KUNIT_CASE_PARAM(any_number_of_tasks_run_once_each, nr_runners_gen_params),
	KUNIT_CASE_PARAM(results_of_a_tree_are_seen, nr_runners_gen_params),
	KUNIT_CASE(fork_is_safe_with_interrupts_off),
	KUNIT_CASE(idle_runner_takes_the_oldest_task),
	KUNIT_CASE(stolen_task_forks_at_its_runner),
	KUNIT_CASE(another_item_runs_while_a_join_waits),
	KUNIT_CASE(join_goes_on_without_asking),
	KUNIT_CASE(failure_of_a_stolen_task_names_the_task),
	KUNIT_CASE(leak_of_a_stolen_task_names_the_task),
	KUNIT_CASE(item_that_forks_never_runs_twice_at_once),
	KUNIT_CASE(join_takes_a_task_back),
	KUNIT_CASE(dump_names_a_promoted_task),
	KUNIT_CASE(join_takes_a_task_back_from_a_paused_batch),
	KUNIT_CASE(cancel_of_the_batch_leaves_a_task_to_its_join),
	KUNIT_CASE(batch_at_its_limit_keeps_its_tasks),
	KUNIT_CASE(task_may_begin_before_a_work_put_back),
	KUNIT_CASE(task_takes_no_room_in_the_queue),
	KUNIT_CASE(pause_and_cancel_lose_no_task),
	KUNIT_CASE(disposed_batch_ends_when_its_item_has_joined),
	KUNIT_CASE(pause_does_not_hold_an_item_that_has_begun),
	KUNIT_CASE(tasks_of_a_paused_batch_are_taken),
	KUNIT_CASE(item_sees_that_more_runners_may_run),
	KUNIT_CASE(flush_waits_for_the_whole_item),
	KUNIT_CASE(task_that_was_not_joined_is_forgotten),
	KUNIT_CASE(task_that_was_promoted_and_not_joined_is_ended),
	KUNIT_CASE(task_that_was_not_joined_is_no_root),
	KUNIT_CASE(chain_goes_on_at_other_stacks),
	KUNIT_CASE(item_keeps_its_seat_on_another_stack),
	KUNIT_CASE(chain_keeps_the_scope_of_memory),
	KUNIT_CASE(stolen_task_keeps_the_scope_of_memory),
	KUNIT_CASE(cancel_of_the_batch_loses_no_link),
	KUNIT_CASE(chain_needs_no_seat),
	KUNIT_CASE(chain_without_end_ends_in_a_failure),
	KUNIT_CASE(loop_needs_no_stack),
	KUNIT_CASE(join_with_little_stack_is_not_held),
	KUNIT_CASE(join_finds_a_stack_beside_many_tasks),
	KUNIT_CASE(item_that_forks_ends_in_a_frozen_pool),
	KUNIT_CASE(lock_is_not_held_for_turns_of_others),
	KUNIT_CASE_PARAM(each_number_is_in_one_call, nr_runners_gen_params),
	KUNIT_CASE_PARAM(loops_at_the_limits_stay_in_their_range, nr_runners_gen_params),
	KUNIT_CASE_PARAM(body_ends_its_loop, nr_runners_gen_params),
	KUNIT_CASE(bad_loops_are_refused),
	KUNIT_CASE(loop_in_an_item_is_of_its_batch),
	{}
};

static struct kunit_suite forkjoin_suite = {
	.name = "fairwq_forkjoin",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = forkjoin_cases,
};

kunit_test_suite(forkjoin_suite);

MODULE_DESCRIPTION("KUnit: fork and join");
MODULE_LICENSE("GPL");
