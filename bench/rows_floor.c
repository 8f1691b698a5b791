// SPDX-License-Identifier: GPL-2.0
/*
 * Rows: the floor, which is the cost of the pieces that a queue is made of. No
 * queue can be cheaper than its pieces. The first run always begins with them,
 * because they tell which machine the other figures come from. On stock
 * user-mode Linux with SMP each change of the interrupt flag is a system call
 * of the host. So is each operation on a per-CPU variable that is safe against
 * interrupts. That is a hundred times the cost on hardware.
 */
#include <linux/cpumask.h>
#include <linux/llist.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/sort.h>
#include <linux/spinlock.h>

#include "bench.h"

#define FLOOR_TIMES	20000U
#define FLOOR_REPEATS	5U

static DEFINE_PER_CPU(unsigned int, floor_percpu);
static DEFINE_RAW_SPINLOCK(floor_lock);
static LLIST_HEAD(floor_list);
static struct llist_node floor_node;
static atomic_t floor_word;

static noinline void floor_callee(void)
{
	barrier();
}

static void floor_call(struct bench_item *item)
{
	floor_callee();
	barrier();	/* else the compiler makes a jump of the call */
}

static void floor_irq_off_on(struct bench_item *item)
{
	unsigned long flags;

	local_irq_save(flags);
	local_irq_restore(flags);
}

static void floor_lock_irqsave(struct bench_item *item)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&floor_lock, flags);
	raw_spin_unlock_irqrestore(&floor_lock, flags);
}

static void floor_lock_bare(struct bench_item *item)
{
	raw_spin_lock(&floor_lock);
	raw_spin_unlock(&floor_lock);
}

static void floor_this_cpu_inc(struct bench_item *item)
{
	this_cpu_inc(floor_percpu);
}

static void floor_atomic(struct bench_item *item)
{
	atomic_fetch_or(1, &floor_word);
}

static void floor_llist_add(struct bench_item *item)
{
	llist_add(&floor_node, &floor_list);
}

static void floor_clock(struct bench_item *item)
{
	ktime_get_mono_fast_ns();
}

static void floor_nothing(struct bench_item *item)
{
}

static const struct {
	const char *name;
	void (*fn)(struct bench_item *item);
} floor_pieces[] = {
	{ "irq_off_on", floor_irq_off_on },
	{ "call", floor_call },
	{ "indirect_call", floor_nothing },	/* the other pieces contain one */
	{ "atomic", floor_atomic },
	{ "llist_add", floor_llist_add },
	{ "lock_bare", floor_lock_bare },
	{ "lock_irqsave", floor_lock_irqsave },
	{ "this_cpu_inc", floor_this_cpu_inc },
	{ "clock", floor_clock },
};

struct bench_floor {
	void (*fn)(struct bench_item *item);
	u64 ns;
};

/* Return the time of FLOOR_TIMES calls of the piece, ns. */
static u64 floor_take(struct bench_floor *floor)
{
	void (*fn)(struct bench_item *item);
	u64 begin = ktime_get_ns();
	unsigned int i;

	init_llist_head(&floor_list);
	for (i = 0; i < FLOOR_TIMES; i++) {
		fn = READ_ONCE(floor->fn);
		fn(&bench_items[i]);
	}
	return ktime_get_ns() - begin;
}

/* Take the best of some times. The first ones fetch the items, and wake up the CPU. */
static void floor_thread(void *arg, unsigned int index)
{
	struct bench_floor *floor = arg;
	unsigned int i;

	floor->ns = U64_MAX;
	for (i = 0; i < FLOOR_REPEATS; i++)
		floor->ns = min(floor->ns, floor_take(floor));
}

/* Find the least time that the clock can tell from 0. */
static void floor_step_thread(void *arg, unsigned int index)
{
	struct bench_floor *floor = arg;
	u64 last = ktime_get_ns(), now;
	unsigned int i;

	floor->ns = U64_MAX;
	for (i = 0; i < FLOOR_TIMES; i++) {
		now = ktime_get_ns();
		if (now != last)
			floor->ns = min(floor->ns, now - last);
		last = now;
	}
}

static int floor_step(const struct bench_row *row)
{
	struct bench_floor floor;
	int err = bench_threads(1, floor_step_thread, &floor);

	if (!err)
		bench_say_ns(row, "clock_step", floor.ns, 1);
	return err;
}

/* Write one line by turns with another CPU. */
static void floor_line_thread(void *arg, unsigned int index)
{
	struct bench_floor *floor = arg;
	unsigned int i;
	u64 begin;

	bench_barrier();
	begin = ktime_get_ns();
	for (i = index; i < FLOOR_TIMES; i += 2) {
		while (atomic_read_acquire(&floor_word) != i)
			cpu_relax();
		atomic_set_release(&floor_word, i + 1);
	}
	if (index)
		floor->ns = ktime_get_ns() - begin;
}

static int floor_line(const struct bench_row *row)
{
	struct bench_floor floor = {};
	int err;

	if (num_online_cpus() < 2)
		return 0;
	atomic_set(&floor_word, 0);
	err = bench_threads(2, floor_line_thread, &floor);
	if (!err)
		bench_say_ns(row, "line_moves", floor.ns, FLOOR_TIMES);
	return err;
}

#define WAKE_TIMES	51
#define WAKE_AFTER_NS	(500 * NSEC_PER_USEC)

static int compare_ns(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static void floor_woken(void *info)
{
}

/*
 * Ask the other CPU to call a function, and wait for it. That CPU has slept for
 * a while; or it runs the second thread, which reads the clock as items do.
 */
static void floor_wake_thread(void *arg, unsigned int index)
{
	struct bench_floor *floor = arg;
	u64 ns[WAKE_TIMES], begin;
	unsigned int i, other;

	bench_barrier();
	if (index) {
		while (!atomic_read(&floor_word))
			ktime_get_ns();
		return;
	}
	for (i = 0; i < WAKE_TIMES; i++) {
		bench_spin(WAKE_AFTER_NS);
		other = cpumask_any_but(cpu_online_mask, get_cpu());
		begin = ktime_get_ns();
		smp_call_function_single(other, floor_woken, NULL, 1);
		ns[i] = ktime_get_ns() - begin;
		put_cpu();
	}
	sort(ns, WAKE_TIMES, sizeof(*ns), compare_ns, NULL);
	floor->ns = ns[WAKE_TIMES / 2];
	atomic_set(&floor_word, 1);
}

static int floor_wake(const struct bench_row *row, const char *name, unsigned int threads)
{
	struct bench_floor floor = {};
	int err;

	if (num_online_cpus() < 2)
		return 0;
	atomic_set(&floor_word, 0);
	err = bench_threads(threads, floor_wake_thread, &floor);
	if (!err)
		bench_say_ns(row, name, floor.ns, 1);
	return err;
}

int bench_floor(const struct bench_row *row, const struct bench_side *side)
{
	struct bench_floor floor;
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(floor_pieces); i++) {
		floor.fn = floor_pieces[i].fn;
		err = bench_threads(1, floor_thread, &floor);
		if (err)
			return err;
		bench_say_ns(row, floor_pieces[i].name, floor.ns, FLOOR_TIMES);
	}
	return floor_step(row) ?: floor_line(row) ?:
	       floor_wake(row, "wake_cpu", 1) ?: floor_wake(row, "interrupt_cpu", 2);
}
