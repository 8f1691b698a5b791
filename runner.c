// SPDX-License-Identifier: GPL-2.0
/*
 * Runners: kicked, running what they took along (plan.c), going idle.
 *
 * No wake-up is lost: a runner goes idle only under the lock, having seen that
 * the tree is empty or too many work, and a batch enters the tree only under the same lock.
 * Model: tests/models/queue.pml.
 *
 * Turns that have ended are told to their batches under the next hold of the
 * lock, which may be a plan later. A turn whose end may be waited for (a limit, a
 * batch that was disposed, a flush of its work) says so itself when it is taken, and
 * is told of at once. A flush or a dispose that comes later, and waits for turns in
 * flight, raises the pool's attention for as long: see fairwq_attention_raise_locked().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "guard.h"
#include "internal.h"
#include "streak.h"
#include "trace.h"

/* Every runner by its id, so that a work can name one without a pointer. */
DEFINE_XARRAY_ALLOC1(fairwq_runners);
static u32 fairwq_next_runner_id;

/* ---- kicking ---------------------------------------------------------- */

static struct fairwq_runner *fairwq_wake_locked(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;

	lockdep_assert_held(&pool->lock);

	if (pool->nr_active >= pool->max_active)
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
	fairwq_tick_arm_locked(pool);
	return runner;
}

/* Something stands in the tree, or will when it was put into order. */
bool fairwq_has_work_locked(const struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	return fairwq_tree_pick(&pool->tree) || !list_empty(&pool->sorting) ||
	       fairwq_foreseen_locked(pool);
}

/*
 * Choose an idle runner for the eligible work that stands in the tree. The
 * caller sends it, once the lock is dropped, by fairwq_kick_send(). Between
 * the two the pool may be drained by others: unless the caller is a worker of
 * the pool, both are in one RCU read-side section, which its destruction waits
 * for if it finds a runner active.
 */
struct fairwq_runner *fairwq_kick_locked(struct fairwq_pool *pool)
{
	return fairwq_has_work_locked(pool) ? fairwq_wake_locked(pool) : NULL;
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

	rcu_read_lock();
	raw_spin_lock_irqsave(&pool->lock, flags);
	runner = fairwq_kick_locked(pool);
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick_send(pool, runner);
	rcu_read_unlock();
}

/* ---- turns that have ended -------------------------------------------- */

static void fairwq_account_locked(struct fairwq_runner *runner)
{
	struct fairwq_log *log = &runner->log;
	/*
	 * Pairs with the barriers before @done is stored in fairwq_run_turns().
	 * Model: tests/models/attention.pml.
	 */
	unsigned int done = smp_load_acquire(&log->done);

	lockdep_assert_held(&runner->pool->lock);

	while (log->accounted < done)
		log->accounted += fairwq_batch_turns_end_locked(&log->slot[log->accounted],
								done - log->accounted);
}

/*
 * Somebody waits for turns to end: while the pool's attention is up, runners
 * tell of each at once, before they call the next function. Turns that have
 * ended by now are told here. With the barrier, either the runner sees that
 * attention is up, or we see that its turn has ended; see fairwq_run_turn().
 */
void fairwq_attention_raise_locked(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;

	lockdep_assert_held(&pool->lock);

	WRITE_ONCE(pool->attention, pool->attention + 1);
	/*
	 * Store @attention, then load @done; pairs with fairwq_start_turn(). Model:
	 * tests/models/attention.pml.
	 */
	smp_mb();
	list_for_each_entry(runner, &pool->runners, node) {
		fairwq_account_locked(runner);
		fairwq_streak_give_back_locked(runner);
	}
}

void fairwq_attention_lower_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	WRITE_ONCE(pool->attention, pool->attention - 1);
}

/* Attention is up: tell of what has ended. */
static void fairwq_attend_runner(struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_runner *kick;
	unsigned long flags;

	raw_spin_lock_irqsave(&pool->lock, flags);
	fairwq_account_locked(runner);
	kick = fairwq_kick_locked(pool);
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick_send(pool, kick);
}

/* The turn that has ended last, the @done-th of the log, is one that is told of at once. */
static void fairwq_tell(struct fairwq_runner *runner, unsigned int done)
{
	/*
	 * Pairs with fairwq_account_locked() and fairwq_current_turn(). Model:
	 * tests/models/attention.pml.
	 */
	smp_store_release(&runner->log.done, done);
	fairwq_attend_runner(runner);
}

/* ---- running ---------------------------------------------------------- */

/* From here on the work is started. */
static void fairwq_start_turn(struct fairwq_runner *runner, struct fairwq_turn *turn,
			      struct fairwq_work *work)
{
	/*
	 * What another runner may want to know. Whoever sees that the one before
	 * is over sees what it did: between its end and this there was a full
	 * barrier, where this one was taken. Pairs with fairwq_park_locked(),
	 * fairwq_park_at() and fairwq_await_running(). Models: tests/models/park.pml,
	 * disable.pml.
	 */
	WRITE_ONCE(runner->current_work, work);
	WRITE_ONCE(work->last_runner, runner->id);
	if (unlikely(turn->constraint))
		WRITE_ONCE(work->constraint, NULL);
	fairwq_test_point(FAIRWQ_POINT_STARTING, turn->batch);
	/*
	 * Whoever finds it clear queues anew, and sees who runs it. Whoever
	 * found it set has his stores seen by the function. Full barrier, pairs
	 * with the one in fairwq_claim_taken(). It is also one between the stores of
	 * @done and @current_work and the loads of @attention and @wanted:
	 * pairs with fairwq_attention_raise_locked() and fairwq_park_at().
	 * Models: tests/models/pending.pml, attention.pml, park.pml.
	 */
	if (!fairwq_mutant(PENDING_AFTER))
		atomic_long_xchg(&work->data, 0);
	else
		smp_mb();	/* what the xchg() is, but for the word */
	if (unlikely(READ_ONCE(runner->pool->attention)))
		fairwq_attend_runner(runner);
	if (unlikely(READ_ONCE(runner->wanted)))
		fairwq_unpark(runner);
}

/* The function of an item has returned, that others may wait for. */
static void fairwq_end_constrained(struct fairwq_runner *runner,
				   struct fairwq_constraint *constraint)
{
	struct fairwq_serializer *serializer = fairwq_serializer_ended(constraint);

	if (serializer)
		fairwq_streak_begin(runner, serializer);	/* or what there is of one */
}

/* It is over: what is parked until then is put back. */
static void fairwq_end_current(struct fairwq_runner *runner)
{
	/*
	 * The run to come sees what this one did. Pairs with fairwq_park_locked(),
	 * fairwq_park_at() and fairwq_await_running(). Models: tests/models/park.pml,
	 * disable.pml.
	 */
	smp_store_release(&runner->current_work, NULL);
	/*
	 * Store @current_work, then load @wanted. Pairs with fairwq_park_at().
	 * Model: tests/models/park.pml.
	 */
	smp_mb();
	if (unlikely(READ_ONCE(runner->wanted)))
		fairwq_unpark(runner);
}

/* Neither @turn, which is over, nor the next one is charged for what others do. */
static noinline void fairwq_let_others_run(struct fairwq_runner *runner,
					   const struct fairwq_turn *turn)
{
	fairwq_test_point(FAIRWQ_POINT_RESCHED, turn->batch);
	cond_resched();
	if (runner->mark && !fairwq_mutant(RESCHED_CHARGED))
		runner->mark = fairwq_clock();
}

/* The function of a work, around it what makes it a turn. */
static void fairwq_run_turn(struct fairwq_runner *runner, struct fairwq_turn *turn,
			    struct fairwq_work *work, struct fairwq_footing *footing)
{
	bool timed = turn->timed || trace_fairwq_start_enabled() ||
		     trace_fairwq_end_enabled();
	/* The end of one is the start of the next, if they follow at once. */
	u64 start = timed || turn->stamp ? runner->mark ?: fairwq_clock() : 0;

	turn->wait = turn->stamp && start > turn->stamp ? start - turn->stamp : 0;
	trace_fairwq_start(turn, work);
	fairwq_start_turn(runner, turn, work);
	if (fairwq_mutant(SERIAL_EARLY) && turn->constraint && !turn->streak)
		fairwq_complete(turn->constraint);
	fairwq_call(work, turn, footing);
	/* @work may have been freed: from here on it is only an address. */
	if (fairwq_mutant(PENDING_AFTER))
		atomic_long_set(&work->data, 0);
	runner->mark = start ? fairwq_clock() : 0;
	/* The clock may step back a little. */
	turn->run = start ? max_t(s64, runner->mark - start, 1) : 0;
	trace_fairwq_end(turn, work);
	/* A hint: it is looked at again when the next one starts. */
	if (unlikely(READ_ONCE(runner->wanted)))
		fairwq_end_current(runner);
	/* Between short items, with nothing to it, about once a tick is enough. */
	if (unlikely(need_resched() || time_after(jiffies, runner->started)))
		fairwq_let_others_run(runner, turn);
	if (unlikely(turn->constraint) && !turn->streak && !fairwq_mutant(SERIAL_EARLY))
		fairwq_end_constrained(runner, turn->constraint);
}

/*
 * What the runner runs since it held the lock takes much longer than it plans
 * for. By a coarse clock; and under fair time by what turns cost, so that a
 * guess that is wrong is wrong by so much and no more. Also one that was too
 * high: what was charged in vain is time that the batch was kept from.
 */
static bool fairwq_is_late(struct fairwq_runner *runner, const struct fairwq_turn *turn,
			   unsigned long overdue)
{
	if (turn->charged > turn->run)
		runner->plan.due -= turn->charged - turn->run;
	return time_after_eq(jiffies, overdue) || (s64)runner->mark > runner->plan.due;
}

/*
 * The runner is late: what is left of its plan goes back, and what it ran is
 * told of before it runs more, its own or by helping with another's plan.
 * Returns whether it has to stop here.
 */
static bool fairwq_stop_late(struct fairwq_runner *runner)
{
	if (fairwq_mutant(PLAN_KEPT))
		return false;
	if (READ_ONCE(runner->plan.next) < runner->plan.nr)
		fairwq_give_back_rest(runner);
	return !fairwq_mutant(LATE_UNTOLD);
}

/* The next turn: the one in hand, else of its own plan, else of another's. */
static struct fairwq_work *fairwq_next_turn(struct fairwq_runner *runner,
					    struct fairwq_turn *turn)
{
	struct fairwq_work *work = runner->in_hand;

	runner->in_hand = NULL;
	if (!work)
		work = fairwq_claim_own(runner, turn);
	/* With a serializer in its hands it is not to keep that waiting. */
	return work || runner->streak.serializer ? work : fairwq_help(runner, turn);
}

/*
 * More of the streak, or its end. As if the runner had run all that it planned:
 * its turns are told of, and the log is empty. Returns whether there is more.
 */
static bool fairwq_streak_refill(struct fairwq_runner *runner, unsigned int *i)
{
	struct fairwq_serializer *serializer = NULL;
	struct fairwq_pool *pool = runner->pool;
	struct fairwq_runner *kick = NULL;
	unsigned long flags;
	bool more;
	u64 now;

	now = fairwq_clock();
	raw_spin_lock_irqsave(&pool->lock, flags);
	WRITE_ONCE(runner->log.done, *i);
	fairwq_account_locked(runner);
	WRITE_ONCE(runner->log.nr, 0);
	WRITE_ONCE(runner->log.done, 0);
	runner->log.accounted = 0;
	more = fairwq_streak_refill_locked(runner, now);
	if (!more)
		serializer = fairwq_streak_end_locked(runner);
	/*
	 * What is planned is for others now. With nothing planned we have the next
	 * ourselves, unless we go on with this, or help with another's plan.
	 */
	if (READ_ONCE(runner->plan.next) < runner->plan.nr)
		kick = fairwq_wake_locked(pool);
	else if (more || (fairwq_open_turns_locked(pool) && !fairwq_mutant(STREAK_UNTOLD)))
		kick = fairwq_kick_locked(pool);
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick_send(pool, kick);
	if (serializer)
		fairwq_serializer_next(serializer);
	runner->mark = 0;
	*i = 0;
	return more;
}

/*
 * The runner has a serializer of which others wait. With a budget, or if one of
 * them may lift others, or if there is nothing else to run, it goes on with the
 * first. Else that one goes to its batch: now, or, if nothing else is planned,
 * when the next plan is made, which is at once.
 *
 * Returns the number of turns in the log.
 */
static noinline unsigned int fairwq_go_on_or_leave(struct fairwq_runner *runner, unsigned int i)
{
	struct fairwq_streak *streak = &runner->streak;
	struct fairwq_serializer *serializer = streak->serializer;

	if (!streak->budget && !fairwq_serializer_is_mixed(serializer)) {
		if (READ_ONCE(runner->plan.next) < runner->plan.nr) {
			streak->serializer = NULL;
			fairwq_serializer_next(serializer);
			return i;
		}
		if (!fairwq_streak_alone(runner))
			return i;
	}
	while (!runner->in_hand && fairwq_streak_refill(runner, &i))
		runner->in_hand = fairwq_streak_next(runner, &i);
	return i;
}

/* The same; nearly always it has begun to go on, and there is more in its slots. */
static __always_inline unsigned int fairwq_go_on(struct fairwq_runner *runner, unsigned int i)
{
	if (likely(runner->streak.due) && !fairwq_streak_is_over(runner))
		runner->in_hand = fairwq_streak_next(runner, &i);
	return likely(runner->in_hand) ? i : fairwq_go_on_or_leave(runner, i);
}

#ifdef FAIRWQ_TESTING
unsigned int fairwq_test_patience;
EXPORT_SYMBOL_GPL(fairwq_test_patience);
#endif

/* In jiffies; how long a runner may be at what it planned. */
static unsigned long fairwq_patience(void)
{
#ifdef FAIRWQ_TESTING
	return 2 + READ_ONCE(fairwq_test_patience);
#else
	return 2;
#endif
}

static void fairwq_run_turns(struct fairwq_runner *runner)
{
	unsigned long overdue = jiffies + fairwq_patience();
	struct fairwq_log *log = &runner->log;
	struct fairwq_footing footing;
	struct fairwq_work *work;
	unsigned int i = 0;
	bool late;

	fairwq_footing_take(&footing);
	runner->mark = 0;
	/* Of its own plan or others', so many; or what is in its hands, a streak. */
	while (i < FAIRWQ_PLAN_MAX || runner->in_hand) {
		work = fairwq_next_turn(runner, &log->slot[i].turn);
		if (!work)
			break;
		/*
		 * The one before has ended. Between its end and this there was a
		 * full barrier, where this one was taken. Pairs with
		 * fairwq_account_locked(). Model: tests/models/attention.pml.
		 */
		WRITE_ONCE(log->done, i);
		WRITE_ONCE(runner->started, jiffies);
		/*
		 * Store the turn, then @nr. Pairs with fairwq_current_turn().
		 * Model: tests/models/attention.pml.
		 */
		smp_wmb();
		WRITE_ONCE(log->nr, i + 1);
		fairwq_run_turn(runner, &log->slot[i++].turn, work, &footing);
		if (unlikely(log->slot[i - 1].turn.tell) && !fairwq_mutant(END_UNTOLD))
			fairwq_tell(runner, i);
		late = unlikely(fairwq_is_late(runner, &log->slot[i - 1].turn, overdue)) &&
		       fairwq_stop_late(runner);
		if (unlikely(runner->streak.serializer))
			i = fairwq_go_on(runner, i);
		if (late && !runner->in_hand)
			break;
	}
	/*
	 * Pairs with fairwq_account_locked() and fairwq_current_turn(). Model:
	 * tests/models/attention.pml.
	 */
	smp_store_release(&log->done, i);
	fairwq_end_current(runner);
	/* So many were run, and in them a streak that ended with its serializer: more are left. */
	if (unlikely(READ_ONCE(runner->plan.next) < runner->plan.nr) && !fairwq_mutant(REST_LOST))
		fairwq_give_back_rest(runner);
	fairwq_plan_close(&runner->plan);
}

/* ---- the life of a runner --------------------------------------------- */

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

/* There is work for another runner, too; @turns: this one has some. */
static bool fairwq_is_shared_locked(const struct fairwq_runner *runner, bool turns)
{
	const struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(&pool->lock);

	return (turns && runner->plan.share) || fairwq_tree_pick(&pool->tree) ||
	       (turns && !list_empty(&pool->sorting)) ||
	       (pool->planner != runner && fairwq_foreseen_locked(pool));
}

/*
 * Account for the plan that is through, and make the next. A runner whose time
 * is up goes back to the workqueue core and queues itself again, so that
 * freezing, flushing and affinity changes there work as always.
 */
static bool fairwq_runner_next(struct fairwq_runner *runner, u64 began)
{
	struct fairwq_pool *pool = runner->pool;
	bool turns = false, more = false, requeue;
	struct fairwq_serializer *serializer = NULL;
	struct fairwq_runner *kick = NULL;
	unsigned long flags;
	u64 now;

	if (fairwq_pool_sort(pool))
		runner->mark = 0;
	now = runner->mark ?: fairwq_clock();
	raw_spin_lock_irqsave(&pool->lock, flags);
	runner->task = current;
	fairwq_account_locked(runner);
	if (unlikely(runner->streak.serializer))
		serializer = fairwq_streak_end_locked(runner);
	requeue = now - began > FAIRWQ_RUNNER_QUANTUM_NS &&
		  !fairwq_mutant(RUNNER_STAYS) && fairwq_has_work_locked(pool);
	if (requeue) {
		pool->counter[FAIRWQ_REQUEUES]++;
	} else if (pool->nr_active <= pool->max_active) {
		turns = fairwq_find_turns_locked(runner, now);
		more = turns || !list_empty(&pool->sorting);
	}
	if (!more && !requeue)
		fairwq_go_idle_locked(runner);
	if (!fairwq_mutant(KICK_NOT_CHAINED) && fairwq_is_shared_locked(runner, turns))
		kick = fairwq_wake_locked(pool);
	raw_spin_unlock_irqrestore(&pool->lock, flags);

	fairwq_kick_send(pool, kick);
	if (serializer)
		fairwq_serializer_next(serializer);
	if (requeue)
		queue_work(pool->wq, &runner->work);
	return more;
}

static void fairwq_runner_fn(struct work_struct *work)
{
	struct fairwq_runner *runner = container_of(work, struct fairwq_runner, work);
	u64 began = fairwq_clock();

	runner->mark = began;
	while (fairwq_runner_next(runner, began))
		fairwq_run_turns(runner);
}

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

/* The turn that a runner is in, for itself, or for who holds the lock. */
const struct fairwq_turn *fairwq_current_turn(const struct fairwq_runner *runner)
{
	unsigned int nr = READ_ONCE(runner->log.nr);

	/*
	 * Load @nr, then the turn, and @started. Pairs with fairwq_run_turns().
	 * Model: tests/models/attention.pml.
	 */
	smp_rmb();
	/*
	 * If it is over, what it did is seen. Pairs with the release of @done in
	 * fairwq_run_turns(). Model: tests/models/attention.pml.
	 */
	if (!nr || smp_load_acquire(&runner->log.done) >= nr)
		return NULL;
	return &runner->log.slot[nr - 1].turn;
}

/* The turn that the caller is in, as its item; or NULL. */
const struct fairwq_turn *fairwq_own_turn(void)
{
	struct fairwq_runner *runner = fairwq_current_runner();

	return runner ? fairwq_current_turn(runner) : NULL;
}

/* Under rcu_read_lock(), or while it cannot go. */
struct fairwq_runner *fairwq_runner_find(u32 id)
{
	return xa_load(&fairwq_runners, id);
}

/* A runner that is idle and in no list. */
struct fairwq_runner *fairwq_runner_alloc(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner = kzalloc(sizeof(*runner), GFP_KERNEL);
	int err;

	if (!runner)
		return NULL;
	INIT_WORK(&runner->work, fairwq_runner_fn);
	fairwq_lockdep_init_runner(pool, &runner->work);
	INIT_LIST_HEAD(&runner->idle_node);
	raw_spin_lock_init(&runner->park_lock);
	INIT_LIST_HEAD(&runner->parked);
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
	kfree_rcu(runner, rcu);		/* fairwq_park_locked() may look at it */
}

void fairwq_runners_check(void)
{
	WARN_ON(!xa_empty(&fairwq_runners));
}

/* ---- what the tick looks for ------------------------------------------- */

/* An idle runner to take from a plan that is overdue. */
struct fairwq_runner *fairwq_wake_thief_locked(struct fairwq_pool *pool, u64 now)
{
	struct fairwq_runner *runner;

	lockdep_assert_held(&pool->lock);

	list_for_each_entry(runner, &pool->runners, node)
		if (fairwq_overdue_locked(runner, now))
			return fairwq_wake_locked(pool);
	return NULL;
}
