// SPDX-License-Identifier: GPL-2.0
/*
 * Torture of fairwq: parameters, threads, progress, the end and the verdict.
 *
 * To load the module starts the test. The test ends after "seconds", or when
 * the module is unloaded. Its last line is "End of test: SUCCESS" or "FAILURE".
 * The parameter "state" has the same: running, success, failure.
 */
#define pr_fmt(fmt) "fairwq-torture: " fmt

#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "bench/compat.h"
#include "core/types.h"
#include "tests/lib/judge.h"
#include "torture.h"

MODULE_DESCRIPTION("Torture of fairwq");
MODULE_AUTHOR("The fairwq developers");
MODULE_LICENSE("GPL");

static unsigned int seconds = 60;
module_param(seconds, uint, 0444);
MODULE_PARM_DESC(seconds, "How long; 0: until it is unloaded (60)");

static unsigned int threads;
module_param(threads, uint, 0444);
MODULE_PARM_DESC(threads, "Threads that act; 0: four for each CPU");

static unsigned int seed = 1;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "Where chance begins (1)");

static unsigned int stutter = 500;
module_param(stutter, uint, 0444);
MODULE_PARM_DESC(stutter, "ms to run before a quarter of that is idle; 0: never idle (500)");

static unsigned int progress = 5;
module_param(progress, uint, 0444);
MODULE_PARM_DESC(progress, "Seconds between two lines of progress (5)");

unsigned int tt_backlog = 20000;
module_param_named(backlog, tt_backlog, uint, 0444);
MODULE_PARM_DESC(backlog, "Most items that are queued once, at a time (20000)");

unsigned int tt_patience = IS_ENABLED(CONFIG_KCSAN) ? 180 : 30;
module_param_named(patience, tt_patience, uint, 0444);
MODULE_PARM_DESC(patience, "Seconds to wait for the last of a stream's items (30; KCSAN: 180)");

bool tt_starve;
module_param_named(fail, tt_starve, bool, 0444);
MODULE_PARM_DESC(fail, "Make allocations fail, where there is failslab; see tests/init.sh (N)");

static char *weights = "";
module_param(weights, charp, 0444);
MODULE_PARM_DESC(weights, "How often what is done, NAME=N,...; all=N first, for the rest");

static char *bug = "";
module_param(bug, charp, 0444);
MODULE_PARM_DESC(bug, "Break a rule, to see it noticed: see torture.h");

static char *state = "running";
module_param(state, charp, 0444);
MODULE_PARM_DESC(state, "Not to be set: running, success or failure");

static const char * const tt_bug_name[] = {
	[TT_BUG_NONE] = "",
	[TT_BUG_LOST] = "lost",
	[TT_BUG_TWICE] = "twice",
	[TT_BUG_REENTRANT] = "reentrant",
	[TT_BUG_STALE] = "stale",
	[TT_BUG_ORDER] = "order",
	[TT_BUG_FLUSH] = "flush",
	[TT_BUG_DISABLED] = "disabled",
	[TT_BUG_RELEASED] = "released",
	[TT_BUG_CROWD] = "crowd",
	[TT_BUG_FAILURE] = "failure",
	[TT_BUG_REFUSED] = "refused",
	[TT_BUG_HUNG] = "hung",
	[TT_BUG_OBJECT] = "object",
	[TT_BUG_UNFAIR] = "unfair",
	[TT_BUG_STARVED] = "starved",
	[TT_BUG_HOTPLUG] = "hotplug",
	[TT_BUG_RACE] = "race",
};

static const char * const tt_count_name[TT_NR_COUNTS] = {
	[TT_QUEUED] = "queued",
	[TT_ALREADY] = "pending already",
	[TT_REFUSED] = "refused",
	[TT_RAN] = "ran",
	[TT_CANCELED] = "canceled",
	[TT_DROPPED] = "dropped",
	[TT_BATCHES] = "batches created",
	[TT_RELEASED] = "batches released",
	[TT_POOLS] = "pools created",
	[TT_PROBES] = "flushes checked",
	[TT_STAMPS] = "stores checked",
	[TT_OBJECTS] = "objects created",
	[TT_OBJECTS_FREED] = "objects freed",
	[TT_FAILED] = "failed",
	[TT_TOLD] = "failures told",
	[TT_STARVED] = "without memory",
	[TT_MEDDLED] = "meddled with",
	[TT_TASKS] = "tasks",
	[TT_JUDGED] = "shares judged",
	[TT_WENT_ON] = "turns that went on",
	[TT_ERRANDS] = "errands",
	[TT_STEPS_DONE] = "steps of sequences",
};

struct tt_counts {
	long nr[TT_NR_COUNTS];
};

static DEFINE_PER_CPU(struct tt_counts, tt_counts);

enum tt_bug tt_bug;
unsigned int tt_nr_threads;
struct fairwq_pool *tt_pools[TT_NR_POOLS];
struct fairwq_flows *tt_flows;
struct tt_thread *tt_threads;
bool tt_stopping;
unsigned long tt_now, tt_stopped;

static struct task_struct *tt_main_task;
static atomic_t tt_problems;
static bool tt_halted;
static unsigned long tt_begin;

/* ---- helpers for all files --------------------------------------------- */

/* Count a problem, and print it unless @told has reached its bound. */
void tt_tell_problem(atomic_t *told, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	atomic_inc(&tt_problems);
	if (atomic_inc_return(told) > 5)
		return;
	va_start(args, fmt);
	vaf.va = &args;
	pr_alert("!!! %pV", &vaf);
	va_end(args);
}

/*
 * Add @n to a count of this CPU. For frequent events call it once for many,
 * because it costs two system calls on user-mode Linux.
 */
void tt_count(enum tt_count which, long n)
{
	this_cpu_add(tt_counts.nr[which], n);
}

static long tt_sum(enum tt_count which)
{
	long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(tt_counts, cpu).nr[which]);
	return sum;
}

/* Return a random number below @below. */
u32 tt_random(struct tt_actor *actor, u32 below)
{
	return ((u64)prandom_u32_state(&actor->rnd) * below) >> 32;
}

/* ---- actors: threads and their interrupts ------------------------------ */

/* Do a few operations that any context may do. */
static void tt_interrupt(struct tt_actor *actor)
{
	unsigned int n = 1 + tt_random(actor, 8);

	while (n-- && !READ_ONCE(tt_stopping))
		tt_act(actor, true);
}

static void tt_timer_fn(struct timer_list *timer)
{
	tt_interrupt(&container_of(timer, struct tt_thread, timer)->soft);
}

static enum hrtimer_restart tt_hrtimer_fn(struct hrtimer *timer)
{
	tt_interrupt(&container_of(timer, struct tt_thread, hrtimer)->hard);
	return HRTIMER_NORESTART;
}

static void tt_irq_work_fn(struct irq_work *work)
{
	tt_interrupt(&container_of(work, struct tt_thread, irq_work)->work);
}

/* Race with the other threads. KCSAN samples one access in thousands, so do many. */
static void tt_race(void)
{
	static unsigned long raced;
	unsigned int i;

	for (i = 0; i < 10000; i++) {
		raced++;
		barrier();
	}
}

/* Do operations until kthread_stop(), but rest while halted or over the backlog. */
static int tt_thread_fn(void *data)
{
	struct tt_thread *thread = data;

	while (!kthread_should_stop()) {
		/* Threads are stopped one by one; until then the others must rest. */
		if (READ_ONCE(tt_halted) || READ_ONCE(tt_stopping)) {
			schedule_timeout_interruptible(1);
			continue;
		}
		if (tt_bug == TT_BUG_RACE)
			tt_race();
		tt_act(&thread->actor, false);
		if (atomic_long_read(&tt_live) > tt_backlog)
			schedule_timeout_interruptible(1);
		cond_resched();
	}
	return 0;
}

/* Seed an actor, and make its streams. @nr: of its thread, or -1. */
static void tt_actor_init(struct tt_actor *actor, int nr)
{
	static u32 count;

	prandom_seed_state(&actor->rnd, ((u64)seed << 32) + ++count);
	actor->nr = nr;
	tt_streams_init(actor);
}

static void tt_thread_init(struct tt_thread *thread, int nr)
{
	tt_actor_init(&thread->actor, nr);
	tt_actor_init(&thread->soft, -1);
	tt_actor_init(&thread->hard, -1);
	tt_actor_init(&thread->work, -1);
	tt_actor_init(&thread->duel, -1);
	timer_setup(&thread->timer, tt_timer_fn, 0);
	init_irq_work(&thread->irq_work, tt_irq_work_fn);
	hrtimer_setup(&thread->hrtimer, tt_hrtimer_fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	hrtimer_setup(&thread->duel_timer, tt_duel_fn, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_PINNED_HARD);
}

static int tt_threads_start(void)
{
	struct task_struct *task;
	unsigned int i;

	for (i = 0; i < tt_nr_threads; i++)
		tt_thread_init(&tt_threads[i], i);
	for (i = 0; i < tt_nr_threads; i++) {
		task = kthread_run(tt_thread_fn, &tt_threads[i], "torture/%u", i);
		if (IS_ERR(task))
			return PTR_ERR(task);
		tt_threads[i].task = task;
	}
	return 0;
}

/*
 * Stop all threads and their interrupts, and end their streams. Another thread
 * must resume paused batches meanwhile, because the streams wait for their
 * items: see tt_stop_all().
 */
static void tt_threads_stop(void)
{
	struct tt_thread *thread;

	for (thread = tt_threads; thread < tt_threads + tt_nr_threads; thread++)
		if (thread->task)
			kthread_stop(thread->task);
	for (thread = tt_threads; thread < tt_threads + tt_nr_threads; thread++) {
		if (!thread->timer.function)
			continue;	/* tt_thread_init() was not called */
		timer_delete_sync(&thread->timer);
		hrtimer_cancel(&thread->hrtimer);
		irq_work_sync(&thread->irq_work);
		tt_streams_end(&thread->actor);
		tt_streams_end(&thread->soft);
		tt_streams_end(&thread->hard);
		tt_streams_end(&thread->work);
		tt_streams_end(&thread->duel);
	}
}

/* ---- shares ------------------------------------------------------------ */

static struct judge tt_judges[TT_NR_POOLS];

/* For bug=unfair: account a lot of service that a batch of @pool has not had. */
static void tt_be_unfair(struct fairwq_pool *pool)
{
	struct fairwq_node *rank = &pool->tree.rank[fairwq_prio_rank(FAIRWQ_PRIO_NORMAL)];

	guard(raw_spinlock_irqsave)(&pool->lock);
	if (!list_empty(&rank->row))
		list_first_entry(&rank->row, struct fairwq_node, next)->service += BIT_ULL(50);
}

/* Judge the shares in pool number @i, which may be gone. For items. */
void tt_judge_look(unsigned int i)
{
	judge_look(&tt_judges[i]);
}

/* Stop judging pool number @i, and report what was found. */
static void tt_judge_end(unsigned int i)
{
	const struct judge *judge = &tt_judges[i];

	judge_set_pool(&tt_judges[i], NULL);
	tt_count(TT_JUDGED, judge->judged);
	if (judge->missed)
		tt_problem("in pool %u shares were wrong at %llu looks, %llu%% of the bound\n", i,
			   judge->missed, judge->worst);
}

/* ---- pools ------------------------------------------------------------- */

/* Count a failure that an item has reported to its pool. */
void tt_told(struct fairwq_batch *batch, fairwq_func_t func, int err)
{
	if (!batch || err != -EIO || !func)
		tt_problem("a driver was told of error %d\n", err);
	tt_count(TT_TOLD, 1);
}

static int tt_pools_init(void)
{
	/* With max_active 1, so that the order of each flow can be checked. */
	static const struct fairwq_batch_attrs flow_attrs = { .max_active = 1 };

	struct fairwq_pool_attrs attrs[TT_NR_POOLS] = {
		{ },
		{ .max_active = 2, .max_in_flight = 8 },
		{ .policy = FAIRWQ_FAIR_TIME, .slice_us = 1000, .max_active = 4 },
		{ .flags = FAIRWQ_MEM_RECLAIM | FAIRWQ_HIGHPRI | FAIRWQ_FREEZABLE |
			   FAIRWQ_SYSFS, .slice_us = FAIRWQ_MAX_SLICE_US,
		  .policy = FAIRWQ_FAIR_TIME },
	};
	unsigned int i;

	for (i = 0; i < TT_NR_POOLS; i++)
		judge_init(&tt_judges[i], 4);
	for (i = 0; i < TT_NR_POOLS; i++) {
		attrs[i].failed = tt_told;
		tt_pools[i] = fairwq_pool_create(&attrs[i], "torture-%u", i);
		if (IS_ERR(tt_pools[i]))
			return PTR_ERR(tt_pools[i]);
		judge_set_pool(&tt_judges[i], tt_pools[i]);
		tt_count(TT_POOLS, 1);
	}
	tt_flows = fairwq_flows_create(tt_pools[0], &flow_attrs);
	return PTR_ERR_OR_ZERO(tt_flows);
}

static void tt_pools_end(void)
{
	struct fairwq_pool *pool;
	unsigned int i;

	if (!IS_ERR_OR_NULL(tt_flows))
		fairwq_flows_destroy(tt_flows);
	for (i = 0; i < TT_NR_POOLS; i++) {
		tt_judge_end(i);
		pool = tt_pools[i];
		tt_pools[i] = NULL;
		fairwq_pool_destroy(pool);
	}
}

/* ---- the course of the test -------------------------------------------- */

/* Print all parameters, and the CPUs that went and came back. */
static void tt_say_parameters(const char *when)
{
	pr_alert("--- %s: seconds=%u threads=%u seed=%u stutter=%u progress=%u backlog=%u patience=%u fail=%d weights=%s bug=%s\n",
		 when, seconds, tt_nr_threads, seed, stutter, progress, tt_backlog, tt_patience,
		 tt_starve, weights, bug);
	tt_hotplug_say(when);
}

/*
 * Sleep for a fiftieth of a second, and count that in tt_now. What waits for an
 * item counts its patience in tt_now and not in jiffies. These jump if the host
 * stops the guest.
 */
static void tt_nap(void)
{
	const unsigned int ticks = HZ / 50 ?: 1;

	schedule_timeout_interruptible(ticks);
	WRITE_ONCE(tt_now, tt_now + ticks);
}

/* Print a line of progress. It is a problem if no item has run for long. */
static void tt_progress(void)
{
	static unsigned long changed;
	static long before = -1;
	unsigned int quiet = min(tt_patience, TT_QUIET_S);
	long ran = tt_sum(TT_RAN);

	if (ran != before)
		changed = tt_now;
	else if (time_after(tt_now, changed + quiet * HZ))
		tt_problem("nothing has run for %u s\n", quiet);
	before = ran;
	pr_alert("%u s: %ld items ran, %ld canceled, %ld dropped, %ld live, %ld batches%s\n",
		 jiffies_to_msecs(jiffies - tt_begin) / 1000, ran, tt_sum(TT_CANCELED),
		 tt_sum(TT_DROPPED), atomic_long_read(&tt_live), tt_sum(TT_BATCHES),
		 atomic_read(&tt_problems) ? " !!!" : "");
}

/* Check whether the threads must rest: after each "stutter" ms, for a quarter of that. */
static bool tt_is_halted(void)
{
	unsigned int ms = jiffies_to_msecs(jiffies - tt_begin);

	return tt_bug == TT_BUG_HUNG ||
	       (stutter && ms % (stutter + stutter / 4) >= stutter);
}

/*
 * Wait until the time is up. Meanwhile resume all batches now and then, so that
 * a flush of a paused one does not wait for ever.
 */
static void tt_torment(void)
{
	unsigned long told = jiffies;
	unsigned int i;

	while (!kthread_should_stop() &&
	       (!seconds || time_before(jiffies, tt_begin + seconds * HZ))) {
		tt_nap();
		WRITE_ONCE(tt_halted, tt_is_halted());
		tt_resume_all();
		tt_oneshots_bury();
		for (i = 0; i < TT_NR_POOLS && tt_bug == TT_BUG_UNFAIR; i++)
			tt_be_unfair(tt_pools[i]);
		if (progress && time_after(jiffies, told + progress * HZ)) {
			told = jiffies;
			tt_progress();
		}
	}
}

/* Resume batches that were left paused, because the end waits for their items; count tt_now. */
static int tt_resumer_fn(void *data)
{
	while (!kthread_should_stop()) {
		tt_resume_all();
		tt_nap();
	}
	return 0;
}

/* End the test: wait for all items, free all that it made, and destroy the pools. */
static void tt_stop_all(void)
{
	struct task_struct *resumer = kthread_run(tt_resumer_fn, NULL, "torture/resume");

	tt_hotplug_end();
	pr_info("ending: threads and streams\n");
	tt_stopped = tt_now;
	WRITE_ONCE(tt_stopping, true);
	tt_threads_stop();
	pr_info("ending: items\n");
	tt_items_quiesce();
	tt_items_end();
	pr_info("ending: streams of all\n");
	tt_shared_end();
	if (!IS_ERR(resumer))
		kthread_stop(resumer);
	pr_info("ending: batches and pools\n");
	tt_slots_end();
	tt_pools_end();
	tt_asyncs_end();
	tt_oneshots_bury();
}

/* Compare the counts, and print them. */
static void tt_judge(void)
{
	long queued = tt_sum(TT_QUEUED);
	long ended = tt_sum(TT_RAN) + tt_sum(TT_CANCELED) + tt_sum(TT_DROPPED);
	unsigned int i;

	if (atomic_long_read(&tt_live))
		tt_problem("%ld items that were queued once are lost\n",
			   atomic_long_read(&tt_live));
	if (tt_sum(TT_BATCHES) != tt_sum(TT_RELEASED))
		tt_problem("%ld batches, %ld released\n", tt_sum(TT_BATCHES),
			   tt_sum(TT_RELEASED));
	if (tt_sum(TT_OBJECTS) != tt_sum(TT_OBJECTS_FREED))
		tt_problem("%ld objects, %ld freed\n", tt_sum(TT_OBJECTS),
			   tt_sum(TT_OBJECTS_FREED));
	if (tt_starve && seconds >= 30 && !tt_sum(TT_STARVED))
		tt_problem("no allocation has failed\n");
	if (tt_sum(TT_FAILED) != tt_sum(TT_TOLD))
		tt_problem("%ld items failed, drivers were told of %ld\n",
			   tt_sum(TT_FAILED), tt_sum(TT_TOLD));
	for (i = 0; i < tt_nr_ops; i++)
		pr_info("done: %s %ld\n", tt_ops[i].name, atomic_long_read(&tt_ops[i].done));
	for (i = 0; i < TT_NR_COUNTS; i++)
		pr_alert("%s: %ld\n", tt_count_name[i], tt_sum(i));
	pr_alert("queued and not ended: %ld\n", queued - ended);
	tt_say_parameters("End of test");
	if (atomic_read(&tt_problems))
		pr_alert("!!! %d problems\n", atomic_read(&tt_problems));
}

/* Run the test to its end, and publish the verdict. */
static int tt_main_fn(void *unused)
{
	bool failed;

	tt_torment();
	tt_stop_all();
	tt_judge();
	failed = atomic_read(&tt_problems);
	pr_alert("End of test: %s\n", failed ? "FAILURE" : "SUCCESS");
	WRITE_ONCE(state, failed ? "failure" : "success");
	while (!kthread_should_stop())
		schedule_timeout_interruptible(HZ);
	return 0;
}

/* ---- parameters -------------------------------------------------------- */

static int tt_parse_bug(void)
{
	int i = match_string(tt_bug_name, ARRAY_SIZE(tt_bug_name), bug);

	if (i < 0)
		pr_err("bug=%s is unknown\n", bug);
	tt_bug = i < 0 ? TT_BUG_NONE : i;
	return i < 0 ? -EINVAL : 0;
}

/* Set the weight of the operation @name, or of "all". Return: 0, or -EINVAL. */
static int tt_set_weight(const char *name, unsigned int weight)
{
	bool all = !strcmp(name, "all"), found = all;
	unsigned int i;

	for (i = 0; i < tt_nr_ops; i++) {
		if (!all && strcmp(name, tt_ops[i].name))
			continue;
		tt_ops[i].weight = weight;
		found = true;
	}
	return found ? 0 : -EINVAL;
}

/* Check that an operation for any context is left. Return: 0, or -EINVAL. */
static int tt_check_weights(void)
{
	unsigned int i, sum = 0;

	for (i = 0; i < tt_nr_ops; i++)
		sum += tt_ops[i].anywhere ? tt_ops[i].weight : 0;
	return sum ? 0 : -EINVAL;
}

static int tt_parse_weights(void)
{
	char *copy = kstrdup(weights, GFP_KERNEL), *rest = copy, *name, *value;
	unsigned int weight;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (name = strsep(&rest, ","))) {
		if (!*name)
			continue;
		value = strchr(name, '=');
		if (value)
			*value++ = '\0';
		err = value ? kstrtouint(value, 0, &weight) : -EINVAL;
		if (!err && weight > 1000000)
			err = -EINVAL;
		if (!err)
			err = tt_set_weight(name, weight);
	}
	kfree(copy);
	if (!err)
		err = tt_check_weights();
	if (err)
		pr_err("weights=%s cannot be used\n", weights);
	return err;
}

static int tt_parse(void)
{
	int err = tt_parse_bug();

	if (tt_starve && !IS_ENABLED(CONFIG_FAILSLAB)) {
		pr_err("fail=1 needs a kernel with CONFIG_FAILSLAB\n");
		return -EINVAL;
	}
	tt_nr_threads = clamp(threads ?: 4 * num_online_cpus(), 1U, TT_MAX_THREADS);
	return err ?: tt_parse_weights();
}

/* ---- module ------------------------------------------------------------ */

/* Make all that the test needs, and start it. Return: 0, or an error. */
static int tt_begin_all(void)
{
	int err = tt_items_init();

	if (!err)
		err = tt_pools_init();
	if (!err)
		err = tt_slots_init();
	tt_asyncs_init();
	tt_sequences_init();
	if (!err)
		err = tt_shared_init();
	if (err)
		return err;
	tt_begin = jiffies;
	err = tt_threads_start() ?: tt_hotplug_begin();
	if (err)
		return err;
	tt_main_task = kthread_run(tt_main_fn, NULL, "torture/main");
	return PTR_ERR_OR_ZERO(tt_main_task);
}

static int __init tt_init(void)
{
	int err = tt_parse();

	if (err)
		return err;
	tt_threads = kcalloc(tt_nr_threads, sizeof(*tt_threads), GFP_KERNEL);
	if (!tt_threads)
		return -ENOMEM;
	tt_say_parameters("Start of test");
	err = tt_begin_all();
	if (!err)
		return 0;
	if (tt_items)
		tt_stop_all();
	kvfree(tt_items);
	kfree(tt_threads);
	return err;
}

static void __exit tt_exit(void)
{
	/* -EINTR: the thread was stopped before its function began. */
	if (kthread_stop(tt_main_task) == -EINTR)
		tt_stop_all();
	kvfree(tt_items);
	kfree(tt_threads);
}

module_init(tt_init);
module_exit(tt_exit);
