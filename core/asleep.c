// SPDX-License-Identifier: GPL-2.0
/*
 * How a pool finds out that an item sleeps, or goes on.
 *
 *   CONFIG_PREEMPT_NOTIFIERS  An item loses its seat  and has it back
 *   ------------------------  ----------------------  -------------------------
 *   yes                       when it goes to sleep   when it has a CPU again
 *   no                        at a tick that finds    at a tick that finds it
 *                             that it sleeps          running
 *
 * A kernel with KVM has that option. The scheduler then calls sleeps() and
 * goes_on() in the item's task, but the first one under the lock of a run
 * queue. There pool->lock must not be taken, because tasks are woken under it.
 * So an irq_work does the rest, as soon as the next task has the CPU and
 * interrupts are on. A notifier is registered only while a worker executes a
 * runner. While the module is loaded, each switch of other tasks looks at an
 * empty list.
 *
 * Without the option an item sleeps by the second tick that sees it at the same
 * turn in the same task, if it was active for less than half of a tick since
 * the first one, and sleeps at that moment, or has slept. An item that was only
 * preempted has not slept.
 *
 * Locking: pool->lock.
 * Model: tests/models/seat.pml.
 *
 * Limits: an item that is preempted between set_current_state() and schedule()
 * counts as asleep until it has a CPU again. On a machine that cannot interrupt
 * itself the irq_work waits for a tick.
 */
#include "asleep.h"
#include "seat.h"

#ifdef FAIRWQ_HAS_NOTIFIERS

static struct preempt_ops asleep_ops;

/* Return the runner of @pool that @next executes, if its item has slept; or NULL. */
static struct fairwq_runner *slept_in(const struct task_struct *next,
				      const struct fairwq_pool *pool)
{
	struct preempt_notifier *notifier;
	struct fairwq_runner *runner;

	hlist_for_each_entry(notifier, &next->preempt_notifiers, link) {
		runner = container_of(notifier, struct fairwq_runner, asleep.notifier);
		if (notifier->ops == &asleep_ops && runner->pool == pool &&
		    READ_ONCE(runner->asleep.sleeps))
			return runner;
	}
	return NULL;
}

/*
 * The runner's task leaves its CPU. Called under the lock of a run queue. That
 * of @next comes here before it may leave the CPU, and @runner is not freed
 * before a grace period that begins after that.
 */
static void sleeps(struct preempt_notifier *notifier, struct task_struct *next)
{
	struct fairwq_runner *runner = container_of(notifier, struct fairwq_runner,
						    asleep.notifier);
	struct fairwq_runner *after;

	/* It was preempted. */
	if (task_is_running(current) && !runner->nr_blocks)
		return;
	runner->asleep.out_at = fairwq_clock();
	if (runner->nr_blocks)
		return;			/* it has no seat */
	WRITE_ONCE(runner->asleep.sleeps, true);
	after = slept_in(next, runner->pool);
	if (after)
		after->asleep.before = runner;
	else
		irq_work_queue(&runner->asleep.lose);
}

/* The runner's task has a CPU again. */
static void goes_on(struct preempt_notifier *notifier, int cpu)
{
	struct fairwq_runner *runner = container_of(notifier, struct fairwq_runner,
						    asleep.notifier);
	struct fairwq_runner *before = runner->asleep.before;

	fairwq_asleep_away(runner);
	if (!READ_ONCE(runner->asleep.sleeps))
		return;
	runner->asleep.before = NULL;
	guard(fairwq_kick)(runner->pool);
	WRITE_ONCE(runner->asleep.sleeps, false);
	fairwq_seat_regain_locked(runner);
	/* As in lose_fn(). */
	if (before && READ_ONCE(before->asleep.sleeps))
		fairwq_seat_lose_locked(before);
}

static struct preempt_ops asleep_ops = {
	.sched_out = sleeps,
	.sched_in = goes_on,
};

/* The rest of sleeps(). The task may have a CPU again, and may have lost it again. */
static void lose_fn(struct irq_work *lose)
{
	struct fairwq_runner *runner = container_of(lose, struct fairwq_runner, asleep.lose);

	guard(fairwq_kick)(runner->pool);
	if (READ_ONCE(runner->asleep.sleeps))
		fairwq_seat_lose_locked(runner);
}

void fairwq_asleep_init(struct fairwq_runner *runner)
{
	preempt_notifier_init(&runner->asleep.notifier, &asleep_ops);
	runner->asleep.lose = IRQ_WORK_INIT_HARD(lose_fn);
}

/*
 * No worker executes @runner any more, and none will. lose_fn() may be at its
 * end on a CPU for a grace period after that: runner and pool are freed later.
 */
void fairwq_asleep_uninit(struct fairwq_runner *runner)
{
	irq_work_sync(&runner->asleep.lose);
}

#else

/* A tick looks at a runner that has a turn. */
void fairwq_asleep_look_locked(struct fairwq_runner *runner)
{
	const struct task_struct *task = runner->task;
	struct fairwq_asleep *asleep = &runner->asleep;
	/* The scheduler may write it meanwhile. */
	unsigned long switches = data_race(task->nvcsw);
	bool same = asleep->turn == runner->turn.number, slept;
	u64 ns = fairwq_asleep_active_ns(task);

	lockdep_assert_held(&runner->pool->lock);

	slept = switches != asleep->switches || !task_is_running(task);
	if (same && !READ_ONCE(runner->nr_blocks)) {
		if (slept && ns - asleep->ns < TICK_NSEC / 2) {
			if (runner->seated)	/* its task may run before a tick finds that */
				asleep->lost_ns = ns;
			fairwq_seat_lose_locked(runner);
		} else {
			fairwq_seat_regain_locked(runner);
		}
	}
	asleep->turn = runner->turn.number;
	asleep->switches = switches;
	asleep->ns = ns;
}

#endif
