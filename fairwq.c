// SPDX-License-Identifier: GPL-2.0
/*
 * The heart: queueing, and the runners that take turns.
 *
 * The way of an item: fairwq_queue() pushes it onto its batch without a lock.
 * The push that finds nobody watching the batch takes the pool's lock, puts
 * the batch into the fair tree and kicks a runner. A runner is a work of the
 * pool's workqueue: it asks the tree whose turn it is, runs that batch's first
 * item, and goes on until nothing is eligible or its time is up; then it goes
 * idle or queues itself again.
 *
 * No wake-up is lost: a runner goes idle only under the lock, having seen that
 * the tree is empty, and a batch enters the tree only under the same lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "internal.h"
#include "trace.h"

/* Where batches are reaped: not in a pool's workqueue, which may be destroyed. */
struct workqueue_struct *fairwq_reap_wq;

/* Every runner by its id, so that a work can name one without a pointer. */
static DEFINE_XARRAY_ALLOC1(fairwq_runners);
static u32 fairwq_next_runner_id;

/* The work that runs was queued again, and that turn handed to its runner. */
#define RUNNER_AGAIN	1UL

/* One queue call in so many into a busy batch is measured. */
#define WAIT_SAMPLE	16
static DEFINE_PER_CPU(unsigned int, fairwq_sample);

#ifdef FAIRWQ_TESTING
void (*fairwq_test_hook)(enum fairwq_test_point point, struct fairwq_batch *batch);

void fairwq_test_set_hook(void (*hook)(enum fairwq_test_point point,
				       struct fairwq_batch *batch))
{
	WRITE_ONCE(fairwq_test_hook, hook);
}
EXPORT_SYMBOL_GPL(fairwq_test_set_hook);
#endif

/* ---- kicking ---------------------------------------------------------- */

/*
 * Choose an idle runner for the eligible work that stands in the tree. The
 * caller sends it, once the lock is dropped, by fairwq_kick_send().
 */
struct fairwq_runner *fairwq_kick_locked(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;

	lockdep_assert_held(&pool->lock);

	if (pool->nr_active >= pool->max_active || !fairwq_tree_pick(&pool->tree))
		return NULL;
	if (fairwq_mutant(KICK_LOST) && pool->nr_active)
		return NULL;
	runner = list_first_entry_or_null(&pool->idle_runners,
					  struct fairwq_runner, idle_node);
	if (!runner)
		return NULL;
	list_del_init(&runner->idle_node);
	pool->nr_active++;
	pool->counter[FAIRWQ_KICKS]++;
	fairwq_watchdog_arm_locked(pool);
	return runner;
}

void fairwq_kick_send(struct fairwq_pool *pool, struct fairwq_runner *runner)
{
	if (!runner)
		return;
	trace_fairwq_runner(pool, runner, FAIRWQ_RUNNER_KICK);
	queue_work(pool->wq, &runner->work);
}

/* Something became eligible, or more runners may run. */
void fairwq_kick(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;
	unsigned long flags;

	raw_spin_lock_irqsave(&pool->lock, flags);
	runner = fairwq_kick_locked(pool);
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick_send(pool, runner);
}

/* ---- queueing --------------------------------------------------------- */

static void fairwq_runner_fn(struct work_struct *work);

/*
 * The runner that executes the caller, or NULL. current_work() is NULL from
 * interrupts, which may have come in on top of any item.
 */
struct fairwq_runner *fairwq_current_runner(void)
{
	struct work_struct *work = current_work();

	if (!work || work->func != fairwq_runner_fn)
		return NULL;
	return container_of(work, struct fairwq_runner, work);
}

/* 0, or why the batch takes no more items. Under rcu_read_lock(). */
static int fairwq_refusal(struct fairwq_batch *batch)
{
	struct fairwq_runner *runner;

	if (READ_ONCE(batch->disposed))
		return -ESHUTDOWN;
	if (likely(!READ_ONCE(batch->pool->draining)))
		return 0;
	/* As with drain_workqueue(): an item of the pool may go on queueing. */
	runner = fairwq_current_runner();
	return runner && runner->pool == batch->pool ? 0 : -ESHUTDOWN;
}

/* Under arrival order: a time, and no two alike. */
static u64 fairwq_arrival(struct fairwq_pool *pool)
{
	u64 now = fairwq_clock();
	s64 last = atomic64_read(&pool->last_arrival), next;

	do {
		next = max_t(s64, now, last + 1);
	} while (!atomic64_try_cmpxchg(&pool->last_arrival, &last, next));
	return next;
}

/*
 * When the item was queued, or 0. Reading the clock costs as much as the rest
 * of the call, so into a busy batch only one in WAIT_SAMPLE is measured.
 */
static u64 fairwq_stamp(struct fairwq_batch *batch)
{
	if (READ_ONCE(batch->pool->policy) == FAIRWQ_FIFO)
		return fairwq_arrival(batch->pool);
	if (!llist_empty(&batch->incoming) && !trace_fairwq_start_enabled() &&
	    this_cpu_inc_return(fairwq_sample) % WAIT_SAMPLE)
		return 0;
	return fairwq_clock();
}

/* One more item than @max_queued is not taken. */
static bool fairwq_reserve(struct fairwq_batch *batch)
{
	if (!batch->max_queued)
		return true;
	return atomic_add_unless(&batch->nr_queued, 1, batch->max_queued);
}

static void fairwq_unreserve(struct fairwq_batch *batch)
{
	if (batch->max_queued)
		atomic_dec(&batch->nr_queued);
}

/* The first push into a batch that nobody watches. */
static void fairwq_attend(struct fairwq_batch *batch)
{
	struct fairwq_pool *pool = batch->pool;
	struct fairwq_runner *runner;
	unsigned long flags;

	raw_spin_lock_irqsave(&pool->lock, flags);
	fairwq_batch_update_locked(batch);
	runner = fairwq_kick_locked(pool);
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick_send(pool, runner);
}

static int fairwq_push(struct fairwq_batch *batch, struct fairwq_work *work)
{
	if (!fairwq_reserve(batch))
		return fairwq_work_pending(work) ? 0 : -EAGAIN;
	/*
	 * Full barrier, also when it was set already: the stores before the
	 * call are then seen by the run to come. Pairs with the one in
	 * fairwq_run_once().
	 */
	if (atomic_fetch_or(FAIRWQ_WORK_PENDING, &work->state) & FAIRWQ_WORK_PENDING) {
		fairwq_unreserve(batch);
		return 0;
	}
	fairwq_test_point(FAIRWQ_POINT_QUEUE_ACCEPTED, batch);
	work->batch = batch;
	work->stamp = fairwq_stamp(batch);
	trace_fairwq_queue(batch, work);
	/*
	 * Full barrier between the push and the load. Pairs with smp_mb() in
	 * fairwq_batch_idle_locked(). After it @work may be gone.
	 */
	if (llist_add(&work->llnode, &batch->incoming)) {
		fairwq_test_point(FAIRWQ_POINT_QUEUE_PUSHED, batch);
		if (!READ_ONCE(batch->watched))
			fairwq_attend(batch);
	}
	return 1;
}

/**
 * fairwq_queue - queue a work to a batch
 * @batch: the batch; the caller holds a reference, or knows otherwise that it
 *	has not been released
 * @work: the work, set up by fairwq_work_init()
 *
 * Items of one batch start in the order in which they were queued. Nothing is
 * promised about the order in which they end, nor about the CPU.
 *
 * If this returns 1 or 0, everything that the caller stored before is seen by
 * the run of the function that is to come.
 *
 * Context: Any but NMI. Allocates nothing. May be called from @work's own
 * function; the item then goes to the tail of @batch.
 * Return: 1 if it was queued; 0 if it was pending already; -ESHUTDOWN if
 * @batch was disposed, or its pool is being drained and the caller is not one
 * of its items; -EAGAIN if @batch holds max_queued items; -EINVAL. On 0 or
 * less nothing was changed.
 */
int fairwq_queue(struct fairwq_batch *batch, struct fairwq_work *work)
{
	int ret;

	if (!batch)
		return fairwq_bad_arg("batch is NULL");
	if (!work)
		return fairwq_bad_arg("work is NULL");
	if (!work->func)
		return fairwq_bad_arg("work has no function");
	/* Pairs with the grace period between dispose and reaping. */
	rcu_read_lock();
	ret = fairwq_refusal(batch);
	if (!ret)
		ret = fairwq_push(batch, work);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL_GPL(fairwq_queue);

/**
 * fairwq_work_pending - is a work queued and not yet started?
 * @work: the work
 *
 * A hint: the answer may be out of date when it is returned.
 *
 * Context: Any.
 * Return: true if it is.
 */
bool fairwq_work_pending(const struct fairwq_work *work)
{
	return atomic_read(&work->state) & FAIRWQ_WORK_PENDING;
}
EXPORT_SYMBOL_GPL(fairwq_work_pending);

/* Behind fairwq_work_init(), which has the description. */
void __fairwq_work_init(struct fairwq_work *work, fairwq_func_t func,
			const char *name, struct lock_class_key *key)
{
	if (WARN_ON_ONCE(!work))
		return;
	memset(work, 0, sizeof(*work));
	work->func = func;
#ifdef CONFIG_LOCKDEP
	lockdep_init_map(&work->lockdep_map, name, key, 0);
#endif
}
EXPORT_SYMBOL_GPL(__fairwq_work_init);

/* ---- turns ------------------------------------------------------------ */

/*
 * One work never runs twice at once, also if it was queued to another batch
 * while it runs. A work remembers who started it last; if that runner still
 * executes it, the turn is handed to that runner, which runs it next. The
 * check goes by the work's own memory of its run: an object that was freed by
 * its function and set up again has none, and does not wait for a stranger.
 *
 * Returns whether the turn, and with it the work, now belongs to the other.
 */
static bool fairwq_hand_over(struct fairwq_runner *runner,
			     const struct fairwq_turn *turn)
{
	struct fairwq_work *work = turn->work;
	u32 id = READ_ONCE(work->last_runner);
	long running = (long)work;
	struct fairwq_runner *other;
	bool handed = false;

	if (!id || id == runner->id || fairwq_mutant(REENTRANT))
		return false;
	rcu_read_lock();
	other = xa_load(&fairwq_runners, id);
	if (other && atomic_long_read(&other->current_work) == running) {
		if (turn->color)
			atomic_or(FAIRWQ_WORK_COLOR, &work->state);
		/* Full barrier if it succeeds; pairs with fairwq_run_once(). */
		handed = atomic_long_try_cmpxchg(&other->current_work, &running,
						 running | RUNNER_AGAIN);
	}
	rcu_read_unlock();
	return handed;
}

/* Run the item once. Returns whether it is to be run again, by hand-over. */
static bool fairwq_run_once(struct fairwq_runner *runner)
{
	struct fairwq_turn *turn = &runner->turn;
	struct fairwq_work *work = turn->work;

	atomic_long_set(&runner->current_work, (long)work);
	WRITE_ONCE(work->last_runner, runner->id);
	trace_fairwq_start(turn);
	/*
	 * Full barrier: who finds PENDING set from here on has his stores seen
	 * by the function; who finds it clear queues anew, and sees who runs
	 * it. Pairs with fairwq_push().
	 */
	if (!fairwq_mutant(PENDING_AFTER))
		atomic_fetch_andnot(FAIRWQ_WORK_PENDING | FAIRWQ_WORK_COLOR,
				    &work->state);
	fairwq_call(work, turn->func, turn->batch);
	/* @work may have been freed: from here on it is only an address. */
	if (fairwq_mutant(PENDING_AFTER))
		atomic_fetch_andnot(FAIRWQ_WORK_PENDING | FAIRWQ_WORK_COLOR,
				    &work->state);
	trace_fairwq_end(turn);
	return atomic_long_xchg(&runner->current_work, 0) & RUNNER_AGAIN;
}

/* Fill in a turn of @work, which its caller owns. */
static void fairwq_turn_start_locked(struct fairwq_runner *runner, u64 now)
{
	struct fairwq_turn *turn = &runner->turn;
	u64 stamp = turn->work->stamp;

	lockdep_assert_held(&runner->pool->lock);

	turn->func = turn->work->func;
	turn->started = now;
	turn->wait_measured = stamp;
	turn->wait = stamp && now > stamp ? now - stamp : 0;
	runner->reported_hung = false;
}

/* End a turn outside the loop of turns; its batch may be of another pool. */
static void fairwq_turn_end(struct fairwq_turn *turn, u64 now)
{
	struct fairwq_pool *pool = turn->batch->pool;
	unsigned long flags;

	raw_spin_lock_irqsave(&pool->lock, flags);
	fairwq_batch_turn_end_locked(turn, now);
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick(pool);
}

/* Take over the turn that was handed to us, after ending our own. */
static void fairwq_take_over(struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_turn ended = runner->turn;
	struct fairwq_work *work = ended.work;
	unsigned long flags;
	u64 now = fairwq_clock();

	raw_spin_lock_irqsave(&pool->lock, flags);
	/* The work is pending again, and ours: it is alive. */
	runner->turn.batch = work->batch;
	runner->turn.color = !!(atomic_read(&work->state) & FAIRWQ_WORK_COLOR);
	fairwq_turn_start_locked(runner, now);
	pool->counter[FAIRWQ_HANDED_OVER]++;
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_turn_end(&ended, now);
}

/* The last turn that was handed to us came from another pool. */
static void fairwq_end_foreign_turn(struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_turn ended = runner->turn;
	unsigned long flags;

	raw_spin_lock_irqsave(&pool->lock, flags);
	runner->turn.batch = NULL;
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_turn_end(&ended, fairwq_clock());
}

static void fairwq_run_turn(struct fairwq_runner *runner)
{
	struct fairwq_turn *turn = &runner->turn;

	if (unlikely(fairwq_hand_over(runner, turn))) {
		WRITE_ONCE(turn->batch, NULL);	/* not ours to end */
		return;
	}
	while (fairwq_run_once(runner))
		fairwq_take_over(runner);
	if (unlikely(turn->batch->pool != runner->pool))
		fairwq_end_foreign_turn(runner);
}

/* ---- runners ---------------------------------------------------------- */

static void fairwq_end_turn_locked(struct fairwq_runner *runner, u64 now)
{
	if (runner->turn.batch)
		fairwq_batch_turn_end_locked(&runner->turn, now);
	runner->turn.batch = NULL;
	runner->turn.work = NULL;
}

/* Ask the tree whose turn it is, and take it. */
static bool fairwq_begin_turn_locked(struct fairwq_runner *runner, u64 now)
{
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_node *node;

	lockdep_assert_held(&pool->lock);

	if (pool->nr_active > pool->max_active)
		return false;
	node = fairwq_tree_pick(&pool->tree);
	if (!node)
		return false;
	fairwq_batch_turn_begin_locked(container_of(node, struct fairwq_batch, node),
				       &runner->turn);
	fairwq_turn_start_locked(runner, now);
	return true;
}

static void fairwq_go_idle_locked(struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(&pool->lock);

	runner->task = NULL;
	pool->nr_active--;
	/* The one that ran last is the one whose caches are warm. */
	list_add(&runner->idle_node, &pool->idle_runners);
	trace_fairwq_runner(pool, runner, FAIRWQ_RUNNER_IDLE);
}

/*
 * End the turn that ran, begin the next one. A runner whose time is up goes
 * back to the workqueue core and queues itself again, so that freezing,
 * flushing and affinity changes there work as always.
 */
static bool fairwq_runner_next(struct fairwq_runner *runner, u64 began)
{
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_runner *kick = NULL;
	bool more = false, requeue;
	u64 now = fairwq_clock();
	unsigned long flags;

	raw_spin_lock_irqsave(&pool->lock, flags);
	runner->task = current;
	fairwq_end_turn_locked(runner, now);
	requeue = now - began > FAIRWQ_RUNNER_QUANTUM_NS &&
		  !fairwq_mutant(RUNNER_STAYS) && fairwq_tree_pick(&pool->tree);
	if (requeue)
		pool->counter[FAIRWQ_REQUEUES]++;
	else
		more = fairwq_begin_turn_locked(runner, now);
	if (!more && !requeue)
		fairwq_go_idle_locked(runner);
	if (!fairwq_mutant(KICK_NOT_CHAINED))
		kick = fairwq_kick_locked(pool);
	raw_spin_unlock_irqrestore(&pool->lock, flags);

	fairwq_kick_send(pool, kick);
	if (requeue)
		queue_work(pool->wq, &runner->work);
	return more;
}

static void fairwq_runner_fn(struct work_struct *work)
{
	struct fairwq_runner *runner = container_of(work, struct fairwq_runner, work);
	u64 began = fairwq_clock();

	while (fairwq_runner_next(runner, began))
		fairwq_run_turn(runner);
}

/* A runner that is idle and in no list. */
struct fairwq_runner *fairwq_runner_alloc(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner = kzalloc(sizeof(*runner), GFP_KERNEL);
	int err;

	if (!runner)
		return NULL;
	INIT_WORK(&runner->work, fairwq_runner_fn);
	INIT_LIST_HEAD(&runner->idle_node);
	runner->pool = pool;
	err = xa_alloc_cyclic(&fairwq_runners, &runner->id, runner, xa_limit_32b,
			      &fairwq_next_runner_id, GFP_KERNEL);
	if (err < 0) {
		kfree(runner);
		return NULL;
	}
	return runner;
}

/* The runner's work is neither queued nor running. */
void fairwq_runner_free(struct fairwq_runner *runner)
{
	xa_erase(&fairwq_runners, runner->id);
	kfree_rcu(runner, rcu);		/* fairwq_hand_over() may look at it */
}

/* ---- module ----------------------------------------------------------- */

static int __init fairwq_init(void)
{
	fairwq_reap_wq = alloc_workqueue("fairwq_reap", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!fairwq_reap_wq)
		return -ENOMEM;
	fairwq_debugfs_init();
	return 0;
}

static void __exit fairwq_exit(void)
{
	fairwq_debugfs_exit();
	/* Memory that waits for its grace period, then reaping: none is left. */
	rcu_barrier();
	destroy_workqueue(fairwq_reap_wq);
	rcu_barrier();
	WARN_ON(!xa_empty(&fairwq_runners));
}

module_init(fairwq_init);
module_exit(fairwq_exit);

MODULE_DESCRIPTION("Fair shares of one pool of workers");
MODULE_AUTHOR("The fairwq developers");
MODULE_VERSION(FAIRWQ_VERSION);
MODULE_LICENSE("GPL");
