// SPDX-License-Identifier: GPL-2.0
/*
 * Rows: the cost and the gain of forks and joins. The same program runs with
 * plain calls, and with tasks that one runner or all runners run.
 *
 * The programs are
 *	a tree of calls that do nothing (fib),
 *	an uneven tree with some work in each node,
 *	a loop over numbers of different cost,
 *	a tree that ends at once.
 * A short item beside forks without end shows their cost for another batch.
 */
#include <linux/delay.h>
#include <linux/math64.h>
#include <linux/sched.h>

#include "bench.h"
#include "core/compat.h"

#define FIB			25U
#define FIB_TASKS		242785U	/* calls of fib(25) */
#define TREE_DEPTH		14U
#define TINY_NS			1000U
#define TINY_TREES		2000U
#define LOOP_NUMBERS		4000U
#define LOOP_NS			20U	/* of number n: n % 64 times */
#define QUIET_ITEMS		300U
/* How often a program runs for one sample. A single run of 0.1 ms would measure chance. */
#define PROGRAM_RUNS		10U

const struct bench_side bench_fork_plain = { .name = "plain" };
const struct bench_side bench_fork_serial = { .name = "serial" };
const struct bench_side bench_fork_one = { .name = "fork_one", .active = 1 };
const struct bench_side bench_fork_direct = { .name = "fork_direct", .active = 1 };
const struct bench_side bench_fork_all = { .name = "fork_all" };

/* An item that runs one program, in the way of its side. */
struct bench_program {
	struct fairwq_work work;
	const struct bench_side *side;
	const struct bench_row *row;
	struct completion done;
	unsigned int runs;
	u64 ns;				/* of all runs */
	u64 result;
	bool stop;
	void (*fn)(struct bench_program *program, struct fairwq_task *self);
};

/* A call of a program, as a task. */
struct bench_call {
	struct fairwq_task task;
	unsigned int n;
	unsigned int node_ns;
	u64 result;
};

/* ---- fib: calls that do nothing ----------------------------------------- */

static noinline u64 fib_plain(unsigned int n)
{
	return n < 2 ? n : fib_plain(n - 1) + fib_plain(n - 2);
}

/* Do the same as fib_fork(), with plain calls. */
static void fib_serial(struct fairwq_task *self)
{
	struct bench_call *call = container_of(self, struct bench_call, task);
	struct bench_call less __uninitialized, least __uninitialized;

	call->result = call->n;
	if (call->n < 2)
		return;
	less.n = call->n - 1;
	least.n = call->n - 2;
	fairwq_task_init(&less.task, fib_serial);
	fib_serial(&least.task);
	fib_serial(&less.task);
	call->result = less.result + least.result;
}

static void fib_fork(struct fairwq_task *self)
{
	struct bench_call *call = container_of(self, struct bench_call, task);
	struct bench_call less __uninitialized, least __uninitialized;

	call->result = call->n;
	if (call->n < 2)
		return;
	less.n = call->n - 1;
	least.n = call->n - 2;
	fairwq_task_init(&less.task, fib_fork);
	fairwq_fork(self, &less.task);
	least.task.forks = self->forks;
	fib_fork(&least.task);
	fairwq_join(self, &less.task);
	call->result = less.result + least.result;
}

/* Do the same as fib_fork(), with a join that calls the function directly. */
static void fib_direct(struct fairwq_task *self)
{
	struct bench_call *call = container_of(self, struct bench_call, task);
	struct bench_call less __uninitialized, least __uninitialized;

	call->result = call->n;
	if (call->n < 2)
		return;
	less.n = call->n - 1;
	least.n = call->n - 2;
	fairwq_task_init(&less.task, fib_direct);
	fairwq_fork(self, &less.task);
	least.task.forks = self->forks;
	fib_direct(&least.task);
	fairwq_join_func(self, &less.task, fib_direct);
	call->result = less.result + least.result;
}

static void fib_program(struct bench_program *program, struct fairwq_task *self)
{
	struct bench_call call = { .n = FIB };

	if (program->side == &bench_fork_plain) {
		program->result = fib_plain(FIB);
		return;
	}
	call.task.forks = self->forks;
	if (program->side == &bench_fork_serial)
		fib_serial(&call.task);
	else if (program->side == &bench_fork_direct)
		fib_direct(&call.task);
	else
		fib_fork(&call.task);
	program->result = call.result;
}

/* ---- tree: uneven, with some work in each node -------------------------- */

/* Speed of the loop that work_for() runs, measured once. */
static unsigned long loops_per_us;

static noinline void work_for(unsigned int ns)
{
	unsigned long loops = ns * loops_per_us / 1000;

	while (loops--)
		barrier();	/* else the compiler drops the loop */
}

/* Measure the loop. Take the shortest of some tries: the others were interrupted. */
static void calibrate(void)
{
	u64 begin, least = U64_MAX;
	int i;

	loops_per_us = 1000;
	for (i = 0; i < 20; i++) {
		begin = ktime_get_ns();
		work_for(1000000);
		least = min(least, ktime_get_ns() - begin);
	}
	loops_per_us = max(div64_u64(1000000000ULL, least), 1ULL);
}

static void tree_serial(struct fairwq_task *self)
{
	struct bench_call *call = container_of(self, struct bench_call, task);
	struct bench_call left __uninitialized, right __uninitialized;

	work_for(call->node_ns);
	call->result = 1;
	if (!call->n)
		return;
	left.n = call->n - 1;
	right.n = call->n - min(call->n, 2U);
	left.node_ns = call->node_ns;
	right.node_ns = call->node_ns;
	tree_serial(&right.task);
	tree_serial(&left.task);
	call->result += left.result + right.result;
}

static void tree_fork(struct fairwq_task *self)
{
	struct bench_call *call = container_of(self, struct bench_call, task);
	struct bench_call left __uninitialized, right __uninitialized;

	work_for(call->node_ns);
	call->result = 1;
	if (!call->n)
		return;
	left.n = call->n - 1;
	right.n = call->n - min(call->n, 2U);
	left.node_ns = call->node_ns;
	right.node_ns = call->node_ns;
	fairwq_task_init(&left.task, tree_fork);
	fairwq_fork(self, &left.task);
	right.task.forks = self->forks;
	tree_fork(&right.task);
	fairwq_join(self, &left.task);
	call->result += left.result + right.result;
}

static void tree_of(struct bench_program *program, struct fairwq_task *self, unsigned int n,
		    unsigned int node_ns)
{
	struct bench_call call = { .n = n, .node_ns = node_ns };

	call.task.forks = self->forks;
	if (program->side == &bench_fork_serial)
		tree_serial(&call.task);
	else
		tree_fork(&call.task);
	program->result = call.result;
}

static void tree_program(struct bench_program *program, struct fairwq_task *self)
{
	tree_of(program, self, TREE_DEPTH, program->row->channels);
}

/* Run trees of a microsecond, one after the other: other runners cannot help. */
static void tiny_program(struct bench_program *program, struct fairwq_task *self)
{
	unsigned int i;

	for (i = 0; i < TINY_TREES; i++) {
		tree_of(program, self, 3, TINY_NS / 12);
		cond_resched();
	}
}

/* ---- parallel_for: numbers of different cost ---------------------------- */

static int loop_body(unsigned long from, unsigned long to, void *arg)
{
	for (; from < to; from++)
		work_for(LOOP_NS * (from * 64 / LOOP_NUMBERS));
	return 0;
}

static void loop_program(struct bench_program *program, struct fairwq_task *self)
{
	unsigned long from, grain = program->row->channels;

	if (program->side != &bench_fork_serial) {
		bench_accepted(fairwq_parallel_for(NULL, 0, LOOP_NUMBERS, grain, loop_body, NULL));
		return;
	}
	for (from = 0; from < LOOP_NUMBERS; from += grain)
		loop_body(from, min(from + grain, (unsigned long)LOOP_NUMBERS), NULL);
}

/* ---- one program as an item, timed from inside -------------------------- */

static void program_fn(struct fairwq_work *work)
{
	struct bench_program *program = container_of(work, struct bench_program, work);
	struct fairwq_task self;
	unsigned int i;
	u64 begin;

	fairwq_task_here(&self);
	begin = ktime_get_ns();
	for (i = 0; i < program->runs; i++)
		program->fn(program, &self);
	program->ns = ktime_get_ns() - begin;
	complete(&program->done);
}

static struct fairwq_pool *fork_pool(const struct bench_side *side)
{
	const struct fairwq_pool_attrs attrs = { .max_active = side->active };

	if (!loops_per_us)
		calibrate();
	return fairwq_pool_create(&attrs, "fairwq_bench");
}

static int run_program(const struct bench_row *row, const struct bench_side *side,
		       unsigned int nr,
		       void (*fn)(struct bench_program *program, struct fairwq_task *self))
{
	struct bench_program program = {
		.side = side, .row = row, .runs = PROGRAM_RUNS, .fn = fn,
	};
	struct fairwq_pool *pool = fork_pool(side);
	int i, err = 0;

	if (IS_ERR(pool))
		return PTR_ERR(pool);
	fairwq_work_init(&program.work, program_fn);
	init_completion(&program.done);
	/* The first run does not count: it makes the runners. */
	for (i = 0; i < 2 && err >= 0; i++) {
		err = fairwq_queue(fairwq_pool_default_batch(pool, FAIRWQ_PRIO_NORMAL),
				   &program.work);
		if (err >= 0)
			wait_for_completion(&program.done);
	}
	fairwq_pool_destroy(pool);
	if (err < 0)
		return err;
	bench_say_ns(row, side->name, program.ns, nr * PROGRAM_RUNS);
	return 0;
}

int bench_fork_join(const struct bench_row *row, const struct bench_side *side)
{
	return run_program(row, side, FIB_TASKS, fib_program);
}

int bench_tree(const struct bench_row *row, const struct bench_side *side)
{
	return run_program(row, side, 1, tree_program);
}

int bench_tiny(const struct bench_row *row, const struct bench_side *side)
{
	return run_program(row, side, TINY_TREES, tiny_program);
}

int bench_parallel_for(const struct bench_row *row, const struct bench_side *side)
{
	return run_program(row, side, 1, loop_program);
}
