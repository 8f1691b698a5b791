// SPDX-License-Identifier: GPL-2.0
/* What only tests need: a hook at each test point, and a count of grace periods. */
#include <linux/export.h>

#include "testing.h"

#ifdef FAIRWQ_TESTING
void (*fairwq_test_hook)(enum fairwq_test_point point, struct fairwq_batch *batch);

void fairwq_test_set_hook(void (*hook)(enum fairwq_test_point point,
				       struct fairwq_batch *batch))
{
	WRITE_ONCE(fairwq_test_hook, hook);
}
EXPORT_SYMBOL_GPL(fairwq_test_set_hook);

/* So often the end of a pool has waited for one, or has had a batch wait for one. */
atomic_t fairwq_test_graces;
EXPORT_SYMBOL_GPL(fairwq_test_graces);
#endif

