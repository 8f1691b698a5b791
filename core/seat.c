// SPDX-License-Identifier: GPL-2.0
/*
 * Seats: which runners work.
 *
 *   A runner    on crew.idle  has a seat  next
 *   ----------  ------------  ----------  -------------------------------------
 *   is idle     yes           no          fairwq_seat_take_locked(): kicked
 *   is active   no            yes         fairwq_seat_leave_locked(): idle
 *                                         fairwq_seat_lose_locked(): asleep
 *   is asleep   no            no          fairwq_seat_regain_locked(): active, also
 *                                         if that is one more than there are seats
 *
 * A seat is for running. An item that sleeps loses its seat: when it says so by
 * a section or waits in a join, else when asleep.c finds out. It has its seat
 * back when it says that it goes on, when asleep.c finds that, or when it ends.
 * It must not wait for that: all that have seats may wait for a lock that it
 * holds. If that makes one too many, the next runner that ends a turn goes
 * idle.
 *
 * Items that nap have seats for a moment each, and together they may have all
 * of them at each moment. So if fewer others compute than there are seats, a
 * runner that ends a turn takes another one, unless more than twice as many are
 * active; and if no turn has begun from one look of the timer to the next, one
 * does. An item naps until the second look after its last sleep.
 *
 * What a turn costs under fair time is the time with a seat; and what it had of
 * a CPU without one, in a section or until a tick found that it goes on.
 *
 * A runner is kicked as long as something waits and a seat is free, but not
 * beside a turn that is quick: the items of its batch are over at once, as a
 * rule. They end before another CPU could reach what waits. If such an item
 * takes longer for once, the pool's timer finds it within two ticks. If no
 * runner is idle, one more is made.
 *
 * A kick has two halves, because a wake-up under pool->lock would make others
 * wait for it:
 *
 *   fairwq_kick_locked()           choose an idle runner, if something waits
 *   raw_spin_unlock()
 *   fairwq_kick_send()             queue its work to pool->wq
 *
 * None is lost: a batch enters the tree, and a runner goes idle, only under
 * that lock.
 *
 * Locking: pool->lock.
 * Invariants: see struct fairwq_crew in runner.h.
 * Models: tests/models/queue.pml; seat.pml, for items that sleep.
 *
 * Limits: more than max_active runners are active for a while when items go on
 * that have slept. If no memory is left for a runner, what waits goes on when
 * one is idle, or at a tick that finds some. A tick looks at all runners under
 * the lock.
 */
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/timer.h>

#include "asleep.h"
#include "seat.h"
#include "testing.h"
#include "trace.h"

/* ---- how many ----------------------------------------------------------- */

/*
 * Return how many runners may be active or asleep. Each of them may have a turn
 * that will go on after its function. So no turn that begins can lead to more
 * than @max_async that do.
 */
static unsigned int room_locked(const struct fairwq_pool *pool)
{
	const struct fairwq_crew *crew = &pool->crew;

	lockdep_assert_held(&pool->lock);

	return min(max(crew->max_in_flight, crew->max_active),
		   crew->max_async - min(crew->nr_async, crew->max_async));
}

/* Check whether items that sleep, and turns that go on, keep others from beginning. */
bool fairwq_seat_is_full_locked(const struct fairwq_pool *pool)
{
	const struct fairwq_crew *crew = &pool->crew;

	lockdep_assert_held(&pool->lock);

	return crew->nr_active + crew->nr_asleep >= room_locked(pool) &&
	       (crew->nr_asleep || crew->nr_async);
}

/*
 * Say how many seats there are, and whether one is free, for items that fork.
 * Call this where a number that @seats depends on, or @nr_active, has changed.
 * Model: tests/models/seat.pml.
 */
void fairwq_seat_update_locked(struct fairwq_pool *pool)
{
	struct fairwq_crew *crew = &pool->crew;
	unsigned int room = room_locked(pool);
	bool hungry;

	lockdep_assert_held(&pool->lock);

	crew->seats = min(crew->max_active, room - min(crew->nr_asleep, room));
	hungry = crew->nr_active < crew->seats;
	if (hungry != crew->hungry)
		WRITE_ONCE(crew->hungry, hungry);
}

/*
 * Check whether a turn may begin though no seat is free, because some items
 * that run nap. @mine is 1 for a turn of a runner that is active, else 0.
 * Model: tests/models/seat.pml.
 */
bool fairwq_seat_may_exceed_locked(const struct fairwq_pool *pool, unsigned int mine)
{
	const struct fairwq_crew *crew = &pool->crew;
	unsigned int others = crew->nr_active - mine;

	lockdep_assert_held(&pool->lock);

	return others - crew->nr_napping < crew->seats &&
	       others + crew->nr_asleep < room_locked(pool) &&
	       ((mine && others < 2 * crew->seats) || crew->turn_number == pool->watch.quiet);
}

/* ---- a seat is taken, and left ----------------------------------------- */

/* Count the runner as active, or not. */
static void set_seated_locked(struct fairwq_runner *runner, bool seated)
{
	struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(&pool->lock);

	WRITE_ONCE(runner->seated, seated);
	pool->crew.nr_active += seated ? 1 : -1;
	fairwq_seat_update_locked(pool);
}

/* Of the idle runners, which may be hundreds, so many are looked at. */
#define IDLE_LOOKS	8

/*
 * Find the idle runner that ran last on this CPU, if it is among the last that
 * ran; else the one that ran last. The workqueue core may still be at the end
 * of its last run, and then runs it where that was.
 *
 * Return: the runner, or NULL if none is idle.
 */
static struct fairwq_runner *idle_runner_locked(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;
	int cpu = raw_smp_processor_id();
	unsigned int looks = 0;

	lockdep_assert_held(&pool->lock);

	list_for_each_entry(runner, &pool->crew.idle, idle_node) {
		if (runner->cpu == cpu)
			return runner;
		if (++looks == IDLE_LOOKS)
			break;
	}
	return list_first_entry_or_null(&pool->crew.idle, struct fairwq_runner, idle_node);
}

/*
 * Give a seat to an idle runner, whatever waits in the tree. If no runner is
 * idle, one is made, which begins by itself. If there is no memory, the next
 * tick tries again.
 *
 * Return: the runner, for fairwq_kick_send(); or NULL.
 */
struct fairwq_runner *fairwq_seat_take_locked(struct fairwq_pool *pool)
{
	struct fairwq_runner *runner;

	lockdep_assert_held(&pool->lock);

	if (pool->crew.nr_active >= pool->crew.seats && !fairwq_seat_may_exceed_locked(pool, 0))
		return NULL;
	timer_reduce(&pool->watch.tick, jiffies);
	runner = idle_runner_locked(pool);
	if (!runner) {
		queue_work(pool->wq, &pool->crew.grow);
		return NULL;
	}
	list_del_init(&runner->idle_node);
	set_seated_locked(runner, true);
	pool->tally.counter[FAIRWQ_KICKS]++;
	trace_fairwq_runner(pool, runner, "kick");
	return runner;
}

/* The runner goes idle. It comes first, because its caches are the warmest. */
void fairwq_seat_leave_locked(struct fairwq_runner *runner)
{
	struct fairwq_pool *pool = runner->pool;

	lockdep_assert_held(&pool->lock);

	WRITE_ONCE(runner->started, jiffies);	/* for tune.c */
	set_seated_locked(runner, false);
	list_add(&runner->idle_node, &pool->crew.idle);
	trace_fairwq_runner(pool, runner, "idle");
}

/* ---- kicks -------------------------------------------------------------- */

/* Count the turn as one that is not over at once, whatever the others of its batch were. */
void fairwq_seat_not_quick_locked(struct fairwq_runner *runner)
{
	lockdep_assert_held(&runner->pool->lock);

	runner->pool->crew.nr_quick -= runner->turn.quick;
	runner->turn.quick = false;
}

/*
 * Check whether some runner is at an item that is over at once, as that one
 * then takes what waits. If it does not, the timer finds that. If no turn has
 * begun in this tick, such runners do not count.
 */
bool fairwq_seat_soon_free_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	return pool->crew.nr_quick && !time_after(jiffies, pool->crew.began_at);
}

/*
 * Choose an idle runner for what waits in the tree.
 *
 * The caller must pass it to fairwq_kick_send() after it has dropped the lock.
 * Other runners may drain the pool between the two. So both must be in one RCU
 * read-side section, unless the caller is a worker of pool->wq or a part of a
 * turn. The pool's destruction waits for such sections if it finds a runner
 * active.
 *
 * Return: the runner, or NULL if no other one is needed, idle or allowed.
 */
struct fairwq_runner *fairwq_kick_locked(struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	if (!pool->tree.eligible || fairwq_seat_soon_free_locked(pool))
		return NULL;
	return fairwq_seat_take_locked(pool);
}

/*
 * Queue the work of a runner that has a seat to the workers of @cpu. A pool
 * that is bound to a CPU keeps to the workers of that one.
 */
void fairwq_kick_send_to(struct fairwq_runner *runner, int cpu)
{
	struct fairwq_pool *pool = runner->pool;

	if (pool->cpu != WORK_CPU_UNBOUND)
		cpu = pool->cpu;
	queue_work_on(cpu, pool->wq, &runner->work);
}

/*
 * Choose a runner, drop the lock, and kick it. The read-side section begins
 * under the lock, so callers need none of their own.
 */
void fairwq_kick_unlock(struct fairwq_pool *pool, unsigned long flags)
	__releases(&pool->lock)
{
	struct fairwq_runner *runner = fairwq_kick_locked(pool);

	rcu_read_lock();	/* see fairwq_kick_locked() */
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	fairwq_kick_send(runner);
	rcu_read_unlock();
}

/* ---- items that sleep --------------------------------------------------- */

/* Set for how many looks of the timer the item of a runner that has a seat still naps. */
static void set_naps_locked(struct fairwq_runner *runner, u8 naps)
{
	lockdep_assert_held(&runner->pool->lock);

	runner->pool->crew.nr_napping += !!naps - !!runner->naps;
	runner->naps = naps;
}

/* The timer looks: an item that has not slept since the look before does not nap any more. */
void fairwq_seat_age_locked(struct fairwq_runner *runner)
{
	if (runner->naps)
		set_naps_locked(runner, runner->naps - 1);
}

/*
 * The item sleeps, or says that it will: the runner loses its seat, unless it
 * has lost it already.
 */
void fairwq_seat_lose_locked(struct fairwq_runner *runner)
{
	lockdep_assert_held(&runner->pool->lock);

	fairwq_seat_not_quick_locked(runner);
	if (!runner->seated)
		return;
	set_naps_locked(runner, 0);
	fairwq_asleep_lost(runner);
	runner->pool->crew.nr_asleep++;
	set_seated_locked(runner, false);
}

/* The item goes on, or has ended: the runner has its seat back, if it has lost it. */
void fairwq_seat_regain_locked(struct fairwq_runner *runner)
{
	lockdep_assert_held(&runner->pool->lock);

	if (runner->seated)
		return;
	fairwq_asleep_away(runner);
	runner->pool->crew.nr_asleep--;
	set_seated_locked(runner, true);
	set_naps_locked(runner, 2);
	timer_reduce(&runner->pool->watch.tick, jiffies);
}

/*
 * The item, which has slept, has ended: the runner has its seat back, if it
 * still has none, and the turn does not pay for the time without.
 */
void fairwq_seat_slept_locked(struct fairwq_runner *runner)
{
	struct fairwq_turn *turn = &runner->turn;

	lockdep_assert_held(&runner->pool->lock);

	fairwq_seat_regain_locked(runner);
	set_naps_locked(runner, 0);
	if (turn->charge.took)
		turn->charge.took = max_t(s64, turn->charge.took - runner->away, 1);
	runner->away = 0;
}

/*
 * The item of @runner, which is the caller's, is about to wait, and says so.
 * Model: tests/models/seat.pml.
 */
void fairwq_seat_block(struct fairwq_runner *runner)
{
	WRITE_ONCE(runner->nr_blocks, runner->nr_blocks + 1);
	if (runner->nr_blocks > 1)
		return;
	guard(fairwq_kick)(runner->pool);
	fairwq_seat_lose_locked(runner);
}

/* The item goes on. Model: tests/models/seat.pml. */
void fairwq_seat_unblock(struct fairwq_runner *runner)
{
	WRITE_ONCE(runner->nr_blocks, runner->nr_blocks - 1);
	if (runner->nr_blocks)
		return;
	guard(raw_spinlock_irqsave)(&runner->pool->lock);
	fairwq_seat_regain_locked(runner);
}
