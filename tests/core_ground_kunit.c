// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel under test: interrupts between CPUs, wake-ups from idle, timers,
 * barriers, locks. tests/configs/native.patch changes all of them in user-mode
 * Linux. If the kernel loses one, the results of the other suites and of the
 * bench mean nothing. Nothing of fairwq is used here.
 *
 * An event that comes late is not lost. The times below only limit how long a
 * case goes on, and how long it waits for an event. On a busy machine a case
 * makes fewer rounds. The waits count time in which this guest ran, see
 * lib/bound.h.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "lib/bound.h"

#define GROUND_CPUS	8U
#define GO_ON_FOR	HZ
#define LOST_AFTER_S	20

/* ---- a thread on each CPU ---- */

static struct {
	void (*fn)(unsigned int index);
	struct task_struct *task[GROUND_CPUS];
	unsigned int cpu[GROUND_CPUS];
	unsigned int nr;
	atomic_t arrived;
	atomic_t left;
	struct completion finished;
	unsigned long until;		/* jiffies */
	unsigned int last;		/* number of the last round */
	bool gave_up;
} crew;

static bool crew_gave_up(void)
{
	return READ_ONCE(crew.gave_up);
}

static bool spin_until(bool (*is_true)(unsigned int arg), unsigned int arg)
{
	struct mock_bound bound = mock_bound(LOST_AFTER_S * MSEC_PER_SEC);

	while (!is_true(arg)) {
		if (mock_bound_reached(&bound))
			WRITE_ONCE(crew.gave_up, true);
		if (crew_gave_up())
			return false;
		cpu_relax();
		cond_resched();
	}
	return true;
}

static bool is_time_left(void)
{
	return time_before(jiffies, crew.until) && !crew_gave_up();
}

/*
 * Make @round the last one if the time is up. Only one of the threads may call
 * this, before it lets the others begin the round.
 */
static void may_be_last(unsigned int round)
{
	if (!is_time_left())
		WRITE_ONCE(crew.last, round);
}

static bool was_last(unsigned int round)
{
	return round >= READ_ONCE(crew.last) || crew_gave_up();
}

static bool have_arrived(unsigned int count)
{
	return (unsigned int)atomic_read_acquire(&crew.arrived) >= count;
}

/* Wait until each thread has made its call number @time. Return: false if it gave up. */
static bool meet(unsigned int time)
{
	/* Stores before the meeting are seen by all threads after it. */
	smp_mb__before_atomic();
	atomic_inc(&crew.arrived);
	return spin_until(have_arrived, time * crew.nr);
}

static int crew_fn(void *data)
{
	crew.fn((unsigned long)data);
	if (atomic_dec_and_test(&crew.left))
		complete(&crew.finished);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);	/* it polls: any time will do */
	return 0;
}

static void crew_create(struct kunit *test)
{
	unsigned int cpu, i = 0;

	for_each_online_cpu(cpu) {
		if (i == crew.nr)
			break;
		crew.cpu[i] = cpu;
		crew.task[i] = kthread_create(crew_fn, (void *)(unsigned long)i, "ground/%u", i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(crew.task[i]));
		kthread_bind(crew.task[i], cpu);
		get_task_struct(crew.task[i]);
		i++;
	}
}

static void crew_wake(void)
{
	unsigned int i;

	for (i = 0; i < crew.nr; i++)
		wake_up_process(crew.task[i]);
}

/* Run @fn on the first @most CPUs, and wait until it has returned on all of them. */
static void run_crew(struct kunit *test, unsigned int most, void (*fn)(unsigned int index))
{
	unsigned int i;

	memset(&crew, 0, sizeof(crew));
	crew.fn = fn;
	crew.nr = min3(most, num_online_cpus(), GROUND_CPUS);
	if (crew.nr < 2)
		kunit_skip(test, "needs two CPUs");
	atomic_set(&crew.left, crew.nr);
	init_completion(&crew.finished);
	crew.last = UINT_MAX;
	crew_create(test);
	crew.until = jiffies + GO_ON_FOR;
	crew_wake();
	/* The seconds in which the host stops the guest do not count. */
	for (i = 0; !wait_for_completion_timeout(&crew.finished, HZ); i++) {
		if (i < 2 * LOST_AFTER_S)
			continue;
		WRITE_ONCE(crew.gave_up, true);
		crew_wake();
	}
	for (i = 0; i < crew.nr; i++) {
		kthread_stop(crew.task[i]);
		put_task_struct(crew.task[i]);
	}
	KUNIT_EXPECT_FALSE_MSG(test, crew.gave_up, "something never came");
}

/* ---- interrupts from CPU to CPU ---- */

/* The interrupts of each CPU. The CPU before it sends them, one at a time. */
static struct ground {
	call_single_data_t csd;
	unsigned int sent;		/* to the next CPU */
	unsigned int received;
	unsigned int unwanted;		/* received while interrupts were off */
	bool irqs_off;
} ____cacheline_aligned ground[GROUND_CPUS];

static void ground_ipi(void *info)
{
	struct ground *g = info;

	if (READ_ONCE(g->irqs_off))
		g->unwanted++;
	WRITE_ONCE(g->received, g->received + 1);
}

static void ground_reset(void)
{
	unsigned int i;

	memset(ground, 0, sizeof(ground));
	for (i = 0; i < GROUND_CPUS; i++)
		INIT_CSD(&ground[i].csd, ground_ipi, &ground[i]);
}

static void ground_judge(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < crew.nr; i++) {
		KUNIT_EXPECT_EQ(test, ground[i].sent, ground[(i + 1) % crew.nr].received);
		KUNIT_EXPECT_EQ(test, 0, ground[i].unwanted);
	}
}

static bool is_received(unsigned int index)
{
	return READ_ONCE(ground[(index + 1) % crew.nr].received) == ground[index].sent;
}

static bool send(unsigned int index)
{
	unsigned int to = (index + 1) % crew.nr;

	if (smp_call_function_single_async(crew.cpu[to], &ground[to].csd))
		return false;
	ground[index].sent++;
	return true;
}

static void irqs_off_for(unsigned int index, unsigned int spins)
{
	struct ground *g = &ground[index];
	unsigned long flags;

	local_irq_save(flags);
	WRITE_ONCE(g->irqs_off, true);
	while (spins--)
		cpu_relax();
	WRITE_ONCE(g->irqs_off, false);
	local_irq_restore(flags);
}

/* Send interrupts to the next CPU. In between, turn those of this CPU off for a while. */
static void storm(unsigned int index)
{
	unsigned int i;

	meet(1);
	for (i = 0; is_time_left(); i++) {
		if (!send(index))
			break;
		irqs_off_for(index, i % 512);
		if (!spin_until(is_received, index))
			break;
	}
	meet(2);
}

static void ground_test_no_ipi_is_lost(struct kunit *test)
{
	ground_reset();
	run_crew(test, GROUND_CPUS, storm);
	ground_judge(test);
}

/* Bound of the wait with interrupts off. */
#define MASKED_SPINS	2000U

static unsigned int masked_round;

static bool is_masked(unsigned int round)
{
	/* Pairs with the release in masked_look_out(). */
	return smp_load_acquire(&masked_round) == round;
}

static bool is_sent(unsigned int round)
{
	return READ_ONCE(ground[0].sent) == round;
}

static void masked_send(void)
{
	unsigned int round;

	for (round = 1; spin_until(is_masked, round) && send(0) && !was_last(round); round++)
		;
}

/*
 * Have interrupts off until the other CPU has sent. That must be bounded,
 * because the other CPU may itself wait for this one, in a TLB flush.
 */
static void masked_look_out(unsigned int round)
{
	unsigned long flags;
	unsigned int i;

	local_irq_save(flags);
	WRITE_ONCE(ground[1].irqs_off, true);
	/* After turning interrupts off: the other CPU sends when it sees this. */
	smp_store_release(&masked_round, round);
	for (i = 0; i < MASKED_SPINS && !is_sent(round); i++)
		cpu_relax();
	for (i = 0; i < MASKED_SPINS / 10; i++)
		cpu_relax();
	WRITE_ONCE(ground[1].irqs_off, false);
	local_irq_restore(flags);
}

static void masked_wait(void)
{
	unsigned int round;

	for (round = 1;; round++) {
		may_be_last(round);
		masked_look_out(round);
		if (!spin_until(is_sent, round) || !spin_until(is_received, 0) ||
		    was_last(round))
			break;
	}
}

static void masked(unsigned int index)
{
	if (index)
		masked_wait();
	else
		masked_send();
}

/* An interrupt that is sent while the CPU has interrupts off comes when they are on. */
static void ground_test_masked_ipi_waits(struct kunit *test)
{
	ground_reset();
	masked_round = 0;
	run_crew(test, 2, masked);
	KUNIT_EXPECT_EQ(test, ground[0].sent, ground[1].received);
	KUNIT_EXPECT_EQ(test, 0, ground[1].unwanted);
}

/* ---- a CPU that sleeps wakes up ---- */

#define LATE_AFTER_MS	200
#define LOOK_AGAIN_FOR	(10 * HZ)

/*
 * A CPU that loses a wake-up goes on with its next timer, which may be that of
 * another task. So a late wake-up is the best sign of a lost one. The CPU that
 * sends the wake-up spins until the other one answers, and counts the time in
 * which it ran itself. A host may still keep the other CPU alone from running
 * for that long. Therefore one late wake-up is allowed, and the case then goes
 * on for LOOK_AGAIN_FOR to find another.
 */
static struct {
	struct completion turn[2];
	unsigned int late;	/* number of late wake-ups */
} sleeps;

static void sleeps_late(void)
{
	if (!sleeps.late++)
		crew.until = jiffies + LOOK_AGAIN_FOR;
}

/* Spin until @is_true, which the other CPU brings about as soon as it is woken. */
static bool spin_for_answer(bool (*is_true)(unsigned int arg), unsigned int arg)
{
	struct mock_bound bound = mock_bound(LATE_AFTER_MS);

	while (!is_true(arg)) {
		if (mock_bound_reached(&bound)) {
			sleeps_late();
			break;
		}
		cpu_relax();
		cond_resched();
	}
	return spin_until(is_true, arg);
}

static void sleeps_run(struct kunit *test, void (*fn)(unsigned int index))
{
	ground_reset();
	init_completion(&sleeps.turn[0]);
	init_completion(&sleeps.turn[1]);
	sleeps.late = 0;
	run_crew(test, 2, fn);
	KUNIT_EXPECT_LE(test, sleeps.late, 1);
}

static bool is_its_turn(unsigned int index)
{
	return completion_done(&sleeps.turn[index]);
}

/* Wait for the turn of @index: spin for it, or sleep. The next timer is far away. */
static void wait_for_turn(unsigned int index, bool spins)
{
	if (spins && !spin_for_answer(is_its_turn, index))
		return;
	while (!wait_for_completion_timeout(&sleeps.turn[index], HZ))
		if (crew_gave_up())
			return;
}

/*
 * Let two threads run in turn. In a third of the rounds each one sleeps while
 * the other one runs; else one of them spins while the other one is woken and
 * answers.
 */
static void in_turn(unsigned int index)
{
	unsigned int round;
	bool spins;

	for (round = 1;; round++) {
		spins = round % 3 == 2 * index;	/* the other one sleeps */
		if (index)
			wait_for_turn(index, spins);
		else
			may_be_last(round);
		/* Sometimes this is long enough for the other CPU to go idle. */
		irqs_off_for(index, round % 1000);
		complete(&sleeps.turn[!index]);
		if (!index)
			wait_for_turn(index, spins);
		if (was_last(round))
			break;
	}
}

static void ground_test_sleeping_cpu_wakes(struct kunit *test)
{
	sleeps_run(test, in_turn);
}

/* Send interrupts to a CPU that has nothing else to do, just when it goes idle again. */
static void poke(unsigned int index)
{
	unsigned int i, spins;

	if (index) {
		wait_for_completion(&sleeps.turn[1]);
		return;
	}
	for (i = 0; is_time_left(); i++) {
		for (spins = i % 100; spins; spins--)
			cpu_relax();
		if (!send(0) || !spin_for_answer(is_received, 0))
			break;
	}
	complete(&sleeps.turn[1]);
}

static void ground_test_idle_cpu_takes_ipi(struct kunit *test)
{
	sleeps_run(test, poke);
}

/* ---- a timer fires, whatever else its CPU gets ---- */

static unsigned int timers_lost[GROUND_CPUS];

static void timed(unsigned int index)
{
	unsigned int i;
	ktime_t time;

	for (i = 0; is_time_left(); i++) {
		send(index);
		irqs_off_for(index, i % 500);
		time = (20 + i % 50) * NSEC_PER_USEC;
		set_current_state(TASK_UNINTERRUPTIBLE);
		/* Not 0: run_crew() has woken the thread, because the timer did not. */
		if (schedule_hrtimeout(&time, HRTIMER_MODE_REL_PINNED))
			timers_lost[index]++;
	}
	meet(1);
	spin_until(is_received, index);
}

static void ground_test_no_timer_is_lost(struct kunit *test)
{
	unsigned int i;

	ground_reset();
	memset(timers_lost, 0, sizeof(timers_lost));
	run_crew(test, GROUND_CPUS, timed);
	for (i = 0; i < crew.nr; i++)
		KUNIT_EXPECT_EQ(test, 0, timers_lost[i]);
	ground_judge(test);
}

/* ---- barriers order loads and stores ---- */

static struct {
	unsigned int x ____cacheline_aligned;
	unsigned int y ____cacheline_aligned;
	unsigned int seen[2] ____cacheline_aligned;
	unsigned int wrong;
} litmus;

/* Store, fence, load, on two CPUs: at least one of them must see the store of the other. */
static void store_buffer(unsigned int index)
{
	unsigned int *mine = index ? &litmus.y : &litmus.x;
	unsigned int *other = index ? &litmus.x : &litmus.y;
	unsigned int round;

	for (round = 1;; round++) {
		if (!index)
			may_be_last(round);
		if (!meet(2 * round - 1))
			return;
		if (round % 2) {
			WRITE_ONCE(*mine, round);
			smp_mb(); /* under test */
		} else {
			smp_store_mb(*mine, round); /* under test */
		}
		litmus.seen[index] = READ_ONCE(*other);
		if (!meet(2 * round))
			return;
		if (!index && litmus.seen[0] != round && litmus.seen[1] != round)
			litmus.wrong++;
		if (was_last(round))
			return;
	}
}

/* Two stores on one CPU, two loads on another: the loads must see the stores in order. */
static void message(unsigned int index)
{
	unsigned int flag = 0, i;

	meet(1);
	for (i = 1; index && is_time_left(); i++) {
		WRITE_ONCE(litmus.x, i);
		smp_store_release(&litmus.y, i); /* under test */
	}
	while (!index && is_time_left()) {
		flag = smp_load_acquire(&litmus.y); /* under test */
		if (READ_ONCE(litmus.x) < flag)
			litmus.wrong++;
	}
}

static void run_litmus(struct kunit *test, void (*fn)(unsigned int index))
{
	memset(&litmus, 0, sizeof(litmus));
	run_crew(test, 2, fn);
	KUNIT_EXPECT_EQ(test, 0, litmus.wrong);
}

static void ground_test_fence_orders_store_and_load(struct kunit *test)
{
	run_litmus(test, store_buffer);
}

static void ground_test_release_orders_stores(struct kunit *test)
{
	run_litmus(test, message);
}

/* ---- locks ---- */

static struct {
	raw_spinlock_t lock;
	unsigned long count;			/* under @lock */
	unsigned long own[GROUND_CPUS];		/* of one thread each */
} locks;

/* Take the lock on each CPU, and count in two steps. */
static void count_locked(unsigned int index)
{
	unsigned long count;

	meet(1);
	while (is_time_left()) {
		raw_spin_lock(&locks.lock);
		count = READ_ONCE(locks.count);
		cpu_relax();
		WRITE_ONCE(locks.count, count + 1);
		raw_spin_unlock(&locks.lock);
		locks.own[index]++;
	}
}

static void ground_test_lock_excludes(struct kunit *test)
{
	unsigned long sum = 0;
	unsigned int i;

	memset(&locks, 0, sizeof(locks));
	raw_spin_lock_init(&locks.lock);
	run_crew(test, GROUND_CPUS, count_locked);
	for (i = 0; i < GROUND_CPUS; i++)
		sum += locks.own[i];
	KUNIT_EXPECT_EQ(test, sum, locks.count);
}

static struct kunit_case ground_cases[] = {
	KUNIT_CASE(ground_test_no_ipi_is_lost),
	KUNIT_CASE(ground_test_masked_ipi_waits),
	KUNIT_CASE(ground_test_sleeping_cpu_wakes),
	KUNIT_CASE(ground_test_idle_cpu_takes_ipi),
	KUNIT_CASE(ground_test_no_timer_is_lost),
	KUNIT_CASE(ground_test_fence_orders_store_and_load),
	KUNIT_CASE(ground_test_release_orders_stores),
	KUNIT_CASE(ground_test_lock_excludes),
	{ }
};

static struct kunit_suite ground_suite = {
	.name = "fairwq_core_ground",
	.test_cases = ground_cases,
};

kunit_test_suite(ground_suite);

MODULE_DESCRIPTION("Tests of the kernel that the other tests run on");
MODULE_LICENSE("GPL");
