// SPDX-License-Identifier: GPL-2.0
/*
 * What only fairwq's own headers tell: how large things are, and whether the
 * module's check of its fairness found something while it was measured.
 */
#include "../internal.h"
#include "bench.h"

static u64 violations, windows;

int bench_size(const struct bench_row *row, const struct bench_side *side)
{
	bench_say(row, "fairwq_work", "bytes=%zu", sizeof(struct fairwq_work));
	bench_say(row, "work_struct", "bytes=%zu", sizeof(struct work_struct));
	bench_say(row, "kthread_work", "bytes=%zu", sizeof(struct kthread_work));
	bench_say(row, "fairwq_batch", "bytes=%zu", sizeof(struct fairwq_batch));
	bench_say(row, "fairwq_serializer", "bytes=%zu", sizeof(struct fairwq_serializer));
	bench_say(row, "fairwq_limiter", "bytes=%zu", sizeof(struct fairwq_limiter));
	bench_say(row, "fairwq_batch_stats", "bytes=%zu", sizeof(struct fairwq_batch_stats));
	bench_say(row, "fairwq_runner", "bytes=%zu", sizeof(struct fairwq_runner));
	bench_say(row, "fairwq_pool", "bytes=%zu", sizeof(struct fairwq_pool));
	bench_say(row, "bench_item", "bytes=%zu", sizeof(struct bench_item));
	return 0;
}

/* Of a pool that is at rest. */
void bench_count_violations(struct fairwq_pool *pool)
{
	violations += pool->counter[FAIRWQ_VIOLATIONS];
	windows += pool->counter[FAIRWQ_WINDOWS];
}

/* Of all pools so far; and in how many windows they were looked for. */
u64 bench_violations(u64 *of_windows)
{
	*of_windows = windows;
	return violations;
}
