// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that queue: kernel threads that begin together. Each is bound to a
 * CPU of its own, as long as there are enough. Only one crew of threads may
 * exist at a time.
 */
#include <linux/cpumask.h>
#include <linux/sched.h>
#include <linux/sched/task.h>

#include "bench.h"

static struct {
	void (*fn)(void *arg, unsigned int index);
	void *arg;
	struct task_struct *task[BENCH_THREADS];
	atomic_t away;			/* threads that are not yet at the barrier */
	struct completion together;	/* all are at the barrier */
	atomic_t left;			/* threads that have not finished */
	struct completion finished;	/* all have finished */
} crew;

/* Wait until every thread of the crew has called it. Each may call it only once. */
void bench_barrier(void)
{
	if (atomic_dec_and_test(&crew.away))
		complete_all(&crew.together);
	else
		wait_for_completion(&crew.together);
}

static int bench_thread_fn(void *data)
{
	crew.fn(crew.arg, (unsigned long)data);
	if (atomic_dec_and_test(&crew.left))
		complete(&crew.finished);
	return 0;
}

/* Return the CPU of thread @index. With more threads than CPUs it has several threads. */
static unsigned int bench_cpu(unsigned int index)
{
	unsigned int cpu = cpumask_first(cpu_online_mask);

	for (index %= num_online_cpus(); index; index--)
		cpu = cpumask_next(cpu, cpu_online_mask);
	return cpu;
}

/* Create a thread that does not yet run. Return: it, with a reference, or an error. */
static struct task_struct *bench_thread_create(unsigned long index)
{
	struct task_struct *task;

	task = kthread_create(bench_thread_fn, (void *)index, "bench/%lu", index);
	if (IS_ERR(task))
		return task;
	kthread_bind(task, bench_cpu(index));
	return get_task_struct(task);
}

/* Wait until the first @nr threads are gone. A thread that was not woken never begins. */
static void bench_threads_reap(unsigned int nr)
{
	while (nr--) {
		kthread_stop(crew.task[nr]);
		put_task_struct(crew.task[nr]);
	}
}

/* Call @fn in @nr threads, and wait until all have returned. Return: 0, or an error. */
int bench_threads(unsigned int nr, void (*fn)(void *arg, unsigned int index), void *arg)
{
	unsigned int i;

	crew.fn = fn;
	crew.arg = arg;
	atomic_set(&crew.away, nr);
	init_completion(&crew.together);
	atomic_set(&crew.left, nr);
	init_completion(&crew.finished);
	for (i = 0; i < nr; i++) {
		crew.task[i] = bench_thread_create(i);
		if (IS_ERR(crew.task[i])) {
			bench_threads_reap(i);
			return PTR_ERR(crew.task[i]);
		}
	}
	for (i = 0; i < nr; i++)
		wake_up_process(crew.task[i]);
	wait_for_completion(&crew.finished);
	bench_threads_reap(nr);
	return 0;
}
