// SPDX-License-Identifier: GPL-2.0
/*
 * Inside: results that need fairwq's own headers: the sizes of objects.
 */
#include <linux/slab.h>

#include "core/types.h"
#include "bench.h"

/* Print @size, and the memory that the allocator uses for it. */
static void size_say(const struct bench_row *row, const char *name, size_t size)
{
	void *one = kmalloc(size, GFP_KERNEL);

	bench_say(row, name, "bytes=%zu allocated_bytes=%zu", size, ksize(one));
	kfree(one);
}

int bench_size(const struct bench_row *row, const struct bench_side *side)
{
	size_say(row, "fairwq_work", sizeof(struct fairwq_work));
	size_say(row, "work_struct", sizeof(struct work_struct));
	size_say(row, "kthread_work", sizeof(struct kthread_work));
	size_say(row, "fairwq_batch", sizeof(struct fairwq_batch));
	size_say(row, "fairwq_batch_stats", sizeof(struct fairwq_batch_stats));
	size_say(row, "fairwq_hists", sizeof(struct fairwq_hists));
	size_say(row, "fairwq_serializer", sizeof(struct fairwq_serializer));
	size_say(row, "fairwq_pool", sizeof(struct fairwq_pool));
	size_say(row, "fairwq_runner", sizeof(struct fairwq_runner));
	size_say(row, "bench_item", sizeof(struct bench_item));
	return 0;
}
