// SPDX-License-Identifier: GPL-2.0
/*
 * Hotplug: CPUs go and come back, one by one, while all actors go on. Runners
 * and timers of a CPU that goes must move to others.
 */
#define pr_fmt(fmt) "fairwq-torture: " fmt

#include <linux/cpu.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>

#include "torture.h"

static unsigned int hotplug;
module_param(hotplug, uint, 0444);
MODULE_PARM_DESC(hotplug, "ms between two changes of which CPUs there are; 0: none (0)");

static struct task_struct *tt_hotplug_task;
static unsigned int tt_nr_cycles;

#ifdef CONFIG_HOTPLUG_CPU
static void tt_hotplug_wait(void)
{
	schedule_timeout_interruptible(msecs_to_jiffies(hotplug) ?: 1);
}

/*
 * Remove @cpu, and add it again. The kernel may refuse to remove it. It also
 * refuses to add it while tasks are frozen, which takes long where they read
 * large files. So try as often as there is patience for.
 */
static void tt_cycle(unsigned int cpu)
{
	unsigned int tries = 20;

	if (remove_cpu(cpu))
		return;
	if (tt_bug != TT_BUG_HOTPLUG)
		tries += tt_patience * MSEC_PER_SEC / (hotplug ?: 1);
	do {
		tt_hotplug_wait();
		if (tt_bug != TT_BUG_HOTPLUG && !add_cpu(cpu)) {
			tt_nr_cycles++;
			return;
		}
	} while (--tries);
	tt_problem("CPU %u does not come back\n", cpu);
}

/* Cycle through all CPUs but the first, which stays. */
static int tt_hotplug_fn(void *unused)
{
	unsigned int cpu = 0;

	while (!kthread_should_stop()) {
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu < nr_cpu_ids)
			tt_cycle(cpu);
		else
			cpu = cpumask_first(cpu_online_mask);
		tt_hotplug_wait();
	}
	return 0;
}
#else
static int tt_hotplug_fn(void *unused)
{
	return 0;
}
#endif

/* Start the hotplug thread, if "hotplug" is set. Return: 0, or an error. */
int tt_hotplug_begin(void)
{
	if (!hotplug)
		return 0;
	if (!IS_ENABLED(CONFIG_HOTPLUG_CPU)) {
		pr_err("hotplug=%u: the CPUs of this kernel stay\n", hotplug);
		return -EINVAL;
	}
	tt_hotplug_task = kthread_run(tt_hotplug_fn, NULL, "torture/hotplug");
	return PTR_ERR_OR_ZERO(tt_hotplug_task);
}

/* Stop the hotplug thread. All CPUs are back then. */
void tt_hotplug_end(void)
{
	if (IS_ERR_OR_NULL(tt_hotplug_task))
		return;
	kthread_stop(tt_hotplug_task);
	if (!tt_nr_cycles)
		tt_problem("no CPU went and came back\n");
}

void tt_hotplug_say(const char *when)
{
	pr_alert("--- %s: hotplug=%u, CPUs went and came back %u times\n", when, hotplug,
		 tt_nr_cycles);
}
