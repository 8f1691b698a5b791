// SPDX-License-Identifier: GPL-2.0
/*
 * Client: helpers of the suites that use fairwq as a driver does; see client.h.
 */
#include <linux/module.h>
#include <linux/sort.h>
#include <linux/string.h>
#if IS_ENABLED(CONFIG_X86) && !IS_ENABLED(CONFIG_UML)
#include <asm/cpufeature.h>
#endif

#include "client.h"

#if IS_ENABLED(CONFIG_X86) && !IS_ENABLED(CONFIG_UML)
bool mock_is_emulated(void)
{
	unsigned int leaf = 0x40000000, sig[3];

	if (!boot_cpu_has(X86_FEATURE_HYPERVISOR))
		return false;
	/* The header of cpuid() differs from kernel to kernel. */
	asm volatile("cpuid" : "+a" (leaf), "=b" (sig[0]), "=c" (sig[1]), "=d" (sig[2]));
	return !memcmp(sig, "TCGTCGTCGTCG", sizeof(sig));
}
#else
bool mock_is_emulated(void)
{
	return false;
}
#endif
EXPORT_SYMBOL_GPL(mock_is_emulated);

u64 mock_burn(u64 ns)
{
	u64 from = READ_ONCE(current->se.sum_exec_runtime), began = ktime_get_ns(), used;

	do {
		cond_resched();
		used = READ_ONCE(current->se.sum_exec_runtime) - from;
	} while (used < ns);
	/* User-mode Linux accounts by ticks: more than the time that has passed, at times. */
	return min(used, ktime_get_ns() - began);
}
EXPORT_SYMBOL_GPL(mock_burn);

static int cmp_times(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

u64 mock_median(u64 *times, unsigned int nr)
{
	sort(times, nr, sizeof(*times), cmp_times, NULL);
	return times[nr / 2];
}
EXPORT_SYMBOL_GPL(mock_median);

/* Make the call, then stay until kthread_stop(), so that the task is not gone. */
static int caller_thread(void *data)
{
	struct caller *caller = data;

	caller->fn(caller->arg);
	complete(&caller->done);
	mock_stay();
	return 0;
}

/*
 * Call @fn(@arg) in a thread of its own. The case must end it by
 * mock_caller_end(). If the call never returns, its memory stays.
 */
struct caller *mock_caller(struct kunit *test, void (*fn)(void *arg), void *arg)
{
	struct caller *caller = kzalloc(sizeof(*caller), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, caller);
	caller->fn = fn;
	caller->arg = arg;
	init_completion(&caller->done);
	caller->task = kthread_run(caller_thread, caller, "caller");
	KUNIT_ASSERT_FALSE(test, IS_ERR(caller->task));
	return caller;
}
EXPORT_SYMBOL_GPL(mock_caller);

/* Wait until the call has returned, or fail the case. */
void mock_caller_end(struct kunit *test, struct caller *caller)
{
	mock_await(test, &caller->done);
	kthread_stop(caller->task);
	kfree(caller);
}
EXPORT_SYMBOL_GPL(mock_caller_end);

/* ---- clients that are always busy ---------------------------------------- */

static void busy_fn(struct fairwq_work *work)
{
	struct busy_item *item = container_of(work, struct busy_item, work);
	struct busy *busy = item->busy;
	u64 end = busy->ns ? ktime_get_ns() + busy->ns : 0;

	while (end && ktime_get_ns() < end)
		cpu_relax();
	WRITE_ONCE(item->turns, item->turns + 1);
	if (!READ_ONCE(busy->stop))
		mock_may_refuse(fairwq_queue(busy->batch, work));
}

/* Make a client with @nr items, which are not queued yet. It lives as long as the case. */
struct busy *mock_busy(struct kunit *test, struct fairwq_batch *batch, unsigned int nr, u64 ns)
{
	struct busy *busy = kunit_kzalloc(test, sizeof(*busy), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, busy);
	busy->item = kunit_kcalloc(test, nr, sizeof(*busy->item), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, busy->item);
	busy->batch = batch;
	busy->nr = nr;
	busy->ns = ns;
	for (i = 0; i < nr; i++) {
		busy->item[i].busy = busy;
		fairwq_work_init(&busy->item[i].work, busy_fn);
	}
	return busy;
}
EXPORT_SYMBOL_GPL(mock_busy);

/* Queue all items of @busy. They go on until @stop is set, or the batch refuses them. */
void mock_busy_go(struct kunit *test, struct busy *busy)
{
	unsigned int i;

	for (i = 0; i < busy->nr; i++)
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(busy->batch, &busy->item[i].work));
}
EXPORT_SYMBOL_GPL(mock_busy_go);

/* Return the number of turns that the items have had. */
unsigned long mock_busy_turns(const struct busy *busy)
{
	unsigned long turns = 0;
	unsigned int i;

	for (i = 0; i < busy->nr; i++)
		turns += READ_ONCE(busy->item[i].turns);
	return turns;
}
EXPORT_SYMBOL_GPL(mock_busy_turns);
