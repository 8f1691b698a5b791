// SPDX-License-Identifier: GPL-2.0
/*
 * Blocking: an item says that it may wait for long. It loses its seat at once,
 * on any kernel: see core/asleep.c.
 */
#include <linux/export.h>

#include "core/runner.h"
#include "core/seat.h"
#include "doors.h"

void fairwq_block_begin(void)
{
	struct fairwq_runner *runner = fairwq_runner_current();

	if (!runner)
		return;
	might_sleep();
	fairwq_seat_block(runner);
}
EXPORT_SYMBOL_GPL(fairwq_block_begin);

void fairwq_block_end(void)
{
	struct fairwq_runner *runner = fairwq_runner_current();

	if (runner && !WARN_ON_ONCE(!runner->nr_blocks))
		fairwq_seat_unblock(runner);
}
EXPORT_SYMBOL_GPL(fairwq_block_end);
