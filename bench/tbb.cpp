// SPDX-License-Identifier: GPL-2.0
/*
 * The programs of rows_fork.c in user space, with oneTBB: what a library that many
 * people use makes of them on the same machine.
 *
 * usage: fairwq_bench_tbb THREADS FIRST_ROUND LAST_ROUND
 *
 * Prints lines as the bench in the kernel does. Side tbb_serial makes plain calls,
 * tbb_one has one thread, tbb has THREADS.
 */
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_group.h>

/* As in rows_fork.c. */
static const unsigned int FIB = 25, FIB_TASKS = 242785, TREE_DEPTH = 14, TINY_NS = 1000,
			  TINY_TREES = 2000, LOOP_NUMBERS = 4000, LOOP_NS = 20,
			  PROGRAM_RUNS = 10;

static uint64_t now_ns()
{
	using namespace std::chrono;

	return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

static uint64_t loops_per_us;

static void __attribute__((noinline)) work_for(unsigned int ns)
{
	uint64_t loops = ns * loops_per_us / 1000;

	while (loops--)
		asm volatile("" : : : "memory");
}

static void calibrate()
{
	uint64_t least = UINT64_MAX;

	loops_per_us = 1000;
	for (int i = 0; i < 20; i++) {
		uint64_t begin = now_ns();

		work_for(1000000);
		least = std::min(least, now_ns() - begin);
	}
	loops_per_us = std::max<uint64_t>(1000000000ULL / least, 1);
}

/* ---- the programs ------------------------------------------------------- */

static uint64_t __attribute__((noinline)) fib_serial(unsigned int n)
{
	return n < 2 ? n : fib_serial(n - 1) + fib_serial(n - 2);
}

static uint64_t fib_fork(unsigned int n)
{
	uint64_t less, least;
	tbb::task_group group;

	if (n < 2)
		return n;
	group.run([&] { less = fib_fork(n - 1); });
	least = fib_fork(n - 2);
	group.wait();
	return less + least;
}

static unsigned int tree_serial(unsigned int n, unsigned int node_ns)
{
	work_for(node_ns);
	if (!n)
		return 1;
	return 1 + tree_serial(n - std::min(n, 2U), node_ns) + tree_serial(n - 1, node_ns);
}

static unsigned int tree_fork(unsigned int n, unsigned int node_ns)
{
	unsigned int left, right;
	tbb::task_group group;

	work_for(node_ns);
	if (!n)
		return 1;
	group.run([&] { left = tree_fork(n - 1, node_ns); });
	right = tree_fork(n - std::min(n, 2U), node_ns);
	group.wait();
	return 1 + left + right;
}

static void loop_body(unsigned long from, unsigned long to)
{
	for (; from < to; from++)
		work_for(LOOP_NS * (from * 64 / LOOP_NUMBERS));
}

static void loop_serial(unsigned long grain)
{
	for (unsigned long from = 0; from < LOOP_NUMBERS; from += grain)
		loop_body(from, std::min<unsigned long>(from + grain, LOOP_NUMBERS));
}

static void loop_fork(unsigned long grain)
{
	using range = tbb::blocked_range<unsigned long>;

	tbb::parallel_for(range(0, LOOP_NUMBERS, grain),
			  [](const range &r) { loop_body(r.begin(), r.end()); },
			  tbb::auto_partitioner());
}

/* ---- one sample --------------------------------------------------------- */

/* What a program has computed: a compiler must not leave it out. */
static volatile uint64_t result;

/* Run @program PROGRAM_RUNS times, twice. The first time makes the threads. */
template <typename F>
static void sample(const char *row, const char *side, int round, unsigned int nr, F program)
{
	uint64_t begin, ns = 0;

	for (int i = 0; i < 2; i++) {
		begin = now_ns();
		for (unsigned int run = 0; run < PROGRAM_RUNS; run++)
			program();
		ns = now_ns() - begin;
	}
	printf("fairwq-bench: row=%s side=%s round=%d ns=%.2f\n", row, side, round,
	       double(ns) / nr / PROGRAM_RUNS);
}

static void tree_rows(const char *side, int round,
		      unsigned int (*tree)(unsigned int n, unsigned int node_ns))
{
	sample("tree_60", side, round, 1, [=] { result = tree(TREE_DEPTH, 60); });
	sample("tree_500", side, round, 1, [=] { result = tree(TREE_DEPTH, 500); });
	sample("tree_tiny", side, round, TINY_TREES, [=] {
		for (unsigned int i = 0; i < TINY_TREES; i++)
			result = tree(3, TINY_NS / 12);
	});
}

static void loop_rows(const char *side, int round, void (*loop)(unsigned long grain))
{
	static const struct {
		const char *row;
		unsigned long grain;
	} loops[] = {
		{ "parallel_for_1", 1 }, { "parallel_for_10", 10 },
		{ "parallel_for_100", 100 }, { "parallel_for_1000", 1000 },
	};

	for (auto &l : loops)
		sample(l.row, side, round, 1, [=] { loop(l.grain); });
}

static void ask(const char *side, int round, size_t threads)
{
	tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
				  std::max<size_t>(threads, 1));

	sample("fork_join", side, round, FIB_TASKS,
	       [=] { result = threads ? fib_fork(FIB) : fib_serial(FIB); });
	tree_rows(side, round, threads ? tree_fork : tree_serial);
	loop_rows(side, round, threads ? loop_fork : loop_serial);
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: %s THREADS FIRST_ROUND LAST_ROUND\n", argv[0]);
		return 2;
	}
	calibrate();
	for (int round = atoi(argv[2]); round <= atoi(argv[3]); round++) {
		ask("tbb_serial", round, 0);
		ask("tbb_one", round, 1);
		ask("tbb", round, atoi(argv[1]));
	}
	return 0;
}
