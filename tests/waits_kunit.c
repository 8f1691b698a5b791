// SPDX-License-Identifier: GPL-2.0
/*
 * What a wait costs: a call that waits sleeps, is not woken by what it does
 * itself, and takes nothing from the other clients (promise 17).
 *
 * Each call waits for an item that the case holds, or for a turn that goes on.
 * Meanwhile a client with short items is busy in the same pool. The case looks
 * at the thread of the call many times: it is asleep, it was not switched to,
 * and it took no CPU time. No such number depends on how fast the machine is.
 * The rate of the busy client is compared with what it was just before the
 * call, while the same item was held.
 *
 * A thread may be caught awake for another reason, and a machine that does
 * something else slows down the client. So a case passes if one of TRIES tries
 * does. A call that spins does so in each try.
 */
#include <linux/rcupdate.h>

#include "lib/client.h"

#define TRIES		4U
#define LOOKS		100U	/* at the thread */
#define WATCH		(6 + msecs_to_jiffies(10))
#define MAX_SWITCHES	4U	/* fewer than a poll at each tick has in that time */

/* Whatever a call may wait for, with a client that is busy beside it. */
struct site {
	struct fairwq_pool *pool;
	struct fairwq_batch *batch, *owned;
	struct busy *busy;
	union {				/* the item that is held */
		struct fairwq_work work;
		struct fairwq_delayed_work dwork;
		struct fairwq_rcu_work rwork;
		struct fairwq_sequenced_work swork;
	};
	struct fairwq_work behind;	/* waits in the serializer behind that */
	struct fairwq_async async;
	bool goes_on;			/* hold the turn, not the function */
	struct completion entered, go;
	struct task_struct *waiter;	/* if it is an item */
	struct fairwq_serializer serializer;
	struct fairwq_serializer limiter;
	struct fairwq_sequencer sequencer;
	struct fairwq_flows *flows;
	int ret;
};

/* The site of the case, which the exit of a case that failed lets go. */
static struct site *present_site;

/* ---- what is held ---------------------------------------------------------- */

static void hold(struct site *site)
{
	complete(&site->entered);
	wait_for_completion(&site->go);
}

static void held_fn(struct fairwq_work *work)
{
	struct site *site = container_of(work, struct site, work);

	if (!site->goes_on) {
		hold(site);
		return;
	}
	fairwq_async_begin(&site->async);
	complete(&site->entered);
}

static int held_body(unsigned long from, unsigned long to, void *arg)
{
	hold(arg);
	return 0;
}

static int hold_plain(struct site *site)
{
	fairwq_work_init(&site->work, held_fn);
	return fairwq_queue(site->batch, &site->work);
}

static int hold_owned(struct site *site)
{
	fairwq_work_init(&site->work, held_fn);
	return fairwq_queue(site->owned, &site->work);
}

static int hold_delayed(struct site *site)
{
	fairwq_delayed_work_init(&site->dwork, held_fn);
	return fairwq_queue_delayed(site->batch, &site->dwork, 1);
}

static int hold_graced(struct site *site)
{
	fairwq_rcu_work_init(&site->rwork, held_fn);
	return fairwq_queue_rcu(site->batch, &site->rwork);
}

static int hold_serial(struct site *site)
{
	fairwq_work_init(&site->work, held_fn);
	return fairwq_serializer_queue(&site->serializer, site->batch, &site->work);
}

static int hold_limited(struct site *site)
{
	fairwq_work_init(&site->work, held_fn);
	return fairwq_serializer_queue(&site->limiter, site->batch, &site->work);
}

static int hold_sequenced(struct site *site)
{
	fairwq_sequenced_work_init(&site->swork, held_fn, mock_nothing_fn);
	return fairwq_sequencer_queue(&site->sequencer, NULL, site->batch, &site->swork);
}

static int hold_flow(struct site *site)
{
	fairwq_work_init(&site->work, held_fn);
	return fairwq_flows_queue(site->flows, 1, &site->work);
}

/* Hold an item of a pool that can be destroyed: its flows must go before it. */
static int hold_without_flows(struct site *site)
{
	fairwq_flows_destroy(site->flows);
	site->flows = NULL;
	return hold_plain(site);
}

/* Hold an item, with a work behind it in the serializer. */
static int hold_in_front(struct site *site)
{
	int ret = hold_serial(site);

	fairwq_work_init(&site->behind, mock_nothing_fn);
	return ret == 1 ? fairwq_serializer_queue(&site->serializer, site->batch, &site->behind) :
			  ret;
}

/* Nothing is held before the call: its own body is. */
static int hold_nothing(struct site *site)
{
	complete(&site->entered);
	return 1;
}

static int hold_paused(struct site *site)
{
	fairwq_batch_pause(site->batch);
	fairwq_work_init(&site->work, mock_nothing_fn);
	complete(&site->entered);
	return fairwq_queue(site->batch, &site->work);
}

static void release_paused(struct site *site)
{
	fairwq_batch_resume(site->batch);
}

/* ---- the calls --------------------------------------------------------------- */

static void call_batch_flush(void *arg)
{
	fairwq_batch_flush(((struct site *)arg)->batch);
}

static void shut_batch_down(struct site *site, unsigned int how)
{
	site->ret = fairwq_batch_shutdown(site->batch, how, NULL);
	site->batch = NULL;
}

static void call_batch_shutdown_run(void *arg)
{
	shut_batch_down(arg, FAIRWQ_RUN_REST);
}

static void call_batch_shutdown_drop(void *arg)
{
	shut_batch_down(arg, FAIRWQ_DROP_REST);
}

static void call_batch_shutdown_owned(void *arg)
{
	shut_batch_down(arg, FAIRWQ_DROP_REST | FAIRWQ_AND_OWNED);
}

static void call_pool_flush(void *arg)
{
	fairwq_pool_flush(((struct site *)arg)->pool);
}

static void call_pool_drain(void *arg)
{
	fairwq_pool_drain(((struct site *)arg)->pool);
}

static void call_pool_destroy(void *arg)
{
	struct site *site = arg;

	fairwq_pool_destroy(site->pool);
	site->pool = NULL;
}

static void shut_flows_down(struct site *site, unsigned int how)
{
	site->ret = fairwq_flows_shutdown(site->flows, how, NULL);
	site->flows = NULL;
}

static void call_flows_destroy(void *arg)
{
	shut_flows_down(arg, FAIRWQ_RUN_REST);
}

static void call_flows_shutdown_drop(void *arg)
{
	shut_flows_down(arg, FAIRWQ_DROP_REST);
}

static void call_serializer_flush(void *arg)
{
	fairwq_serializer_flush(&((struct site *)arg)->serializer);
}

static void call_serializer_destroy(void *arg)
{
	fairwq_serializer_destroy(&((struct site *)arg)->serializer);
}

static void call_serializer_shutdown_drop(void *arg)
{
	struct site *site = arg;

	site->ret = fairwq_serializer_shutdown(&site->serializer, FAIRWQ_DROP_REST, NULL);
}

static void call_limiter_flush(void *arg)
{
	fairwq_serializer_flush(&((struct site *)arg)->limiter);
}

static void call_limiter_destroy(void *arg)
{
	fairwq_serializer_destroy(&((struct site *)arg)->limiter);
}

static void call_sequencer_flush(void *arg)
{
	fairwq_sequencer_flush(&((struct site *)arg)->sequencer);
}

static void call_work_flush(void *arg)
{
	fairwq_work_flush(&((struct site *)arg)->work);
}

static void call_work_cancel_sync(void *arg)
{
	fairwq_work_cancel_sync(&((struct site *)arg)->work);
}

static void call_work_disable_sync(void *arg)
{
	fairwq_work_disable_sync(&((struct site *)arg)->work);
}

static void call_delayed_work_flush(void *arg)
{
	fairwq_delayed_work_flush(&((struct site *)arg)->dwork);
}

static void call_delayed_work_cancel_sync(void *arg)
{
	fairwq_delayed_work_cancel_sync(&((struct site *)arg)->dwork);
}

static void call_rcu_work_flush(void *arg)
{
	fairwq_rcu_work_flush(&((struct site *)arg)->rwork);
}

static void call_flush_behind(void *arg)
{
	fairwq_work_flush(&((struct site *)arg)->behind);
}

static void call_parallel_for(void *arg)
{
	struct site *site = arg;

	site->ret = fairwq_parallel_for(site->batch, 0, 1, 1, held_body, site);
}

/* The yardstick of all of them. */
static void call_wait_for_completion(void *arg)
{
	struct site *site = arg;

	wait_for_completion(&site->go);
}

struct wait_case {
	const char *name;
	int (*hold)(struct site *site);	/* Return: as fairwq_queue() */
	void (*call)(void *arg);
	void (*release)(struct site *site); /* NULL: let the item go, or end its turn */
	bool of_turn;			/* the call waits for the turn, not for the function */
	bool of_pool;			/* it waits for the busy client, too */
};

static const struct wait_case wait_cases[] = {
	{ "wait_for_completion", hold_nothing, call_wait_for_completion },
	{ "batch_flush", hold_plain, call_batch_flush, .of_turn = true },
	{ "batch_flush, paused", hold_paused, call_batch_flush, release_paused },
	{ "batch_shutdown, run", hold_plain, call_batch_shutdown_run, .of_turn = true },
	{ "batch_shutdown, drop", hold_plain, call_batch_shutdown_drop, .of_turn = true },
	{ "batch_shutdown, owned", hold_owned, call_batch_shutdown_owned, .of_turn = true },
	{ "pool_flush", hold_plain, call_pool_flush, .of_turn = true },
	{ "pool_drain", hold_plain, call_pool_drain, .of_turn = true, .of_pool = true },
	{ "pool_destroy", hold_without_flows, call_pool_destroy, .of_turn = true,
	  .of_pool = true },
	{ "flows_destroy", hold_flow, call_flows_destroy, .of_turn = true },
	{ "flows_shutdown, drop", hold_flow, call_flows_shutdown_drop, .of_turn = true },
	{ "serializer_flush", hold_serial, call_serializer_flush, .of_turn = true },
	{ "serializer_destroy", hold_serial, call_serializer_destroy, .of_turn = true },
	{ "serializer_shutdown, drop", hold_serial, call_serializer_shutdown_drop,
	  .of_turn = true },
	{ "limiter_flush", hold_limited, call_limiter_flush, .of_turn = true },
	{ "limiter_destroy", hold_limited, call_limiter_destroy, .of_turn = true },
	{ "sequencer_flush", hold_sequenced, call_sequencer_flush },
	{ "work_flush", hold_plain, call_work_flush },
	{ "work_flush, in a serializer", hold_in_front, call_flush_behind, .of_turn = true },
	{ "work_cancel_sync", hold_plain, call_work_cancel_sync },
	{ "work_disable_sync", hold_plain, call_work_disable_sync },
	{ "delayed_work_flush", hold_delayed, call_delayed_work_flush },
	{ "delayed_work_cancel_sync", hold_delayed, call_delayed_work_cancel_sync },
	{ "rcu_work_flush", hold_graced, call_rcu_work_flush },
	{ "rcu work_cancel_sync", hold_graced, call_work_cancel_sync },
	{ "parallel_for", hold_nothing, call_parallel_for },
};

static void wait_case_desc(const struct wait_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wait, wait_cases, wait_case_desc);

/* ---- the site ------------------------------------------------------------------ */

static struct site *site_new(struct kunit *test, bool goes_on)
{
	static const struct fairwq_pool_attrs attrs = { .max_active = 3 };
	static const struct fairwq_batch_attrs one = { .max_active = 1 };
	struct site *site = kzalloc(sizeof(*site), GFP_KERNEL);
	struct fairwq_batch_attrs owned = { };
	struct fairwq_batch *batch;

	KUNIT_ASSERT_NOT_NULL(test, site);
	init_completion(&site->entered);
	init_completion(&site->go);
	fairwq_serializer_init(&site->serializer);
	fairwq_limiter_init(&site->limiter, 1);
	fairwq_sequencer_init(&site->sequencer);
	site->goes_on = goes_on;
	site->pool = fairwq_pool_create(&attrs, "site");
	KUNIT_ASSERT_FALSE(test, IS_ERR(site->pool));
	site->batch = fairwq_batch_create(site->pool, NULL, "a");
	KUNIT_ASSERT_FALSE(test, IS_ERR(site->batch));
	owned.parent = site->batch;
	site->owned = fairwq_batch_create(site->pool, &owned, "owned");
	KUNIT_ASSERT_FALSE(test, IS_ERR(site->owned));
	site->flows = fairwq_flows_create(site->pool, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(site->flows));
	batch = fairwq_batch_create(site->pool, &one, "busy");	/* leaves a runner free */
	KUNIT_ASSERT_FALSE(test, IS_ERR(batch));
	site->busy = mock_busy(test, batch, 8, 2 * NSEC_PER_USEC);
	present_site = site;
	mock_busy_go(test, site->busy);
	return site;
}

/* Let the busy client run dry. Its batch may be gone before, with the pool. */
static void site_calm(struct site *site)
{
	WRITE_ONCE(site->busy->stop, true);
	fairwq_batch_flush(site->busy->batch);
}

static void site_free(struct site *site)
{
	present_site = NULL;
	site_calm(site);
	fairwq_flows_destroy(site->flows);
	fairwq_batch_dispose(site->batch);
	fairwq_batch_dispose(site->owned);
	fairwq_batch_dispose(site->busy->batch);
	fairwq_pool_destroy(site->pool);
	kfree(site);
}

/* ---- what is seen -------------------------------------------------------------- */

/* What a thread did while it was watched, and what the busy client got meanwhile. */
struct seen {
	unsigned int looks, awake;
	unsigned long switches;
	u64 cpu_ns, ns;
	unsigned long rate;		/* turns a second */
};

/* Watch the busy client, and @task unless that is NULL. */
static struct seen watch(const struct site *site, const struct task_struct *task)
{
	unsigned long end = jiffies + (task ? WATCH : WATCH / 2);
	unsigned long turns = mock_busy_turns(site->busy);
	u64 begin = ktime_get_ns();
	struct seen seen = { };

	if (task) {
		seen.switches = READ_ONCE(task->nvcsw) + READ_ONCE(task->nivcsw);
		seen.cpu_ns = READ_ONCE(task->se.sum_exec_runtime);
	}
	while (seen.looks < (task ? LOOKS : 0) || time_before(jiffies, end)) {
		usleep_range(100, 150);
		seen.looks++;
		if (task)
			seen.awake += READ_ONCE(task->__state) == TASK_RUNNING;
	}
	if (task) {
		seen.switches = READ_ONCE(task->nvcsw) + READ_ONCE(task->nivcsw) - seen.switches;
		seen.cpu_ns = READ_ONCE(task->se.sum_exec_runtime) - seen.cpu_ns;
	}
	seen.ns = ktime_get_ns() - begin;
	seen.rate = div64_u64((u64)(mock_busy_turns(site->busy) - turns) * NSEC_PER_SEC, seen.ns);
	return seen;
}

static bool is_asleep(const struct seen *seen)
{
	return seen->awake <= seen->looks / 20 && seen->switches <= MAX_SWITCHES &&
	       20 * seen->cpu_ns <= seen->ns;
}

static bool keeps_rate(const struct seen *seen, const struct seen *control)
{
	return seen->rate >= control->rate / 4;
}

static void tell(struct kunit *test, const char *name, const struct seen *seen,
		 const struct seen *control)
{
	kunit_info(test, "%s: awake in %u of %u looks, %lu switches, %llu of %llu us; client %lu a second, %lu before\n",
		   name, seen->awake, seen->looks, seen->switches,
		   div_u64(seen->cpu_ns, NSEC_PER_USEC), div_u64(seen->ns, NSEC_PER_USEC),
		   seen->rate, control->rate);
}

/* Let everything happen that a grace period lets happen. */
static void settle(void)
{
	rcu_barrier();
	synchronize_rcu();
	schedule_timeout_uninterruptible(3);
}

/* Make one try. Return: whether the call slept, and the busy client went on. */
static bool wait_costs_nothing(struct kunit *test, const struct wait_case *c, bool goes_on)
{
	struct site *site = site_new(test, goes_on);
	struct seen control, seen;
	struct caller *caller;
	bool ok;

	KUNIT_ASSERT_EQ(test, 1, c->hold(site));
	mock_await(test, &site->entered);
	settle();
	control = watch(site, NULL);
	caller = mock_caller(test, c->call, site);
	settle();
	seen = watch(site, caller->task);
	KUNIT_EXPECT_FALSE(test, completion_done(&caller->done));
	ok = is_asleep(&seen) && keeps_rate(&seen, &control);
	tell(test, c->name, &seen, &control);
	if (c->of_pool)
		WRITE_ONCE(site->busy->stop, true);
	if (c->release)
		c->release(site);
	complete_all(&site->go);
	if (goes_on)
		fairwq_async_complete(&site->async, 0);
	mock_caller_end(test, caller);
	KUNIT_EXPECT_EQ(test, 0, site->ret);
	if (!c->of_pool)
		site_calm(site);
	site_free(site);
	return ok;
}

static void expect_wait_costs_nothing(struct kunit *test, const struct wait_case *c, bool goes_on)
{
	unsigned int i;

	for (i = 0; i < TRIES; i++)
		if (wait_costs_nothing(test, c, goes_on))
			return;
	KUNIT_FAIL(test, "%s waits for %s, and does not sleep, or slows down another client\n",
		   c->name, goes_on ? "a turn that goes on" : "an item");
}

static void waiting_call_sleeps(struct kunit *test)
{
	const struct wait_case *c = test->param_value;

	expect_wait_costs_nothing(test, c, false);
	if (c->of_turn)
		expect_wait_costs_nothing(test, c, true);
}

/* ---- an item that waits in a join ------------------------------------------------ */

/* An item whose task another runner takes and holds. */
struct joining {
	struct fairwq_work work;
	struct fairwq_task task;
	struct site *site;
	struct completion done;
};

static void joined_fn(struct fairwq_task *self)
{
	hold(container_of(self, struct joining, task)->site);
}

static void joining_fn(struct fairwq_work *work)
{
	struct joining *joining = container_of(work, struct joining, work);
	struct fairwq_task self;

	fairwq_task_here(&self);
	fairwq_task_init(&joining->task, joined_fn);
	fairwq_fork(&self, &joining->task);
	mock_fork_until(&self, &joining->site->entered);
	joining->site->waiter = current;
	complete(&joining->site->entered);
	fairwq_join(&self, &joining->task);
	complete(&joining->done);
}

static bool join_costs_nothing(struct kunit *test)
{
	struct joining *joining = kunit_kzalloc(test, sizeof(*joining), GFP_KERNEL);
	struct site *site = site_new(test, false);
	struct seen control, seen;
	bool ok;

	KUNIT_ASSERT_NOT_NULL(test, joining);
	control = watch(site, NULL);
	joining->site = site;
	init_completion(&joining->done);
	fairwq_work_init(&joining->work, joining_fn);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(site->batch, &joining->work));
	mock_until(test, READ_ONCE(site->waiter));
	settle();
	seen = watch(site, site->waiter);
	ok = is_asleep(&seen) && keeps_rate(&seen, &control);
	tell(test, "join", &seen, &control);
	complete_all(&site->go);
	mock_await(test, &joining->done);
	fairwq_work_flush(&joining->work);
	site_free(site);
	return ok;
}

static void item_sleeps_in_a_join(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < TRIES; i++)
		if (join_costs_nothing(test))
			return;
	KUNIT_FAIL(test, "a join does not sleep, or slows down another client\n");
}

/* Let go what a case that failed still holds, and let its busy client end. Free nothing. */
static void waits_exit(struct kunit *test)
{
	struct site *site = present_site;

	present_site = NULL;
	if (!site)
		return;
	complete_all(&site->go);
	site_calm(site);
}

static struct kunit_case waits_cases[] = {
	KUNIT_CASE_PARAM(waiting_call_sleeps, wait_gen_params),
	KUNIT_CASE(item_sleeps_in_a_join),
	{}
};

static struct kunit_suite waits_suite = {
	.name = "fairwq_waits",
	.exit = waits_exit,
	.test_cases = waits_cases,
};

kunit_test_suite(waits_suite);

MODULE_DESCRIPTION("KUnit: what a call costs while it waits");
MODULE_LICENSE("GPL");
