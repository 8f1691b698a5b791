// SPDX-License-Identifier: GPL-2.0
/*
 * Testing: the hook that test points call. Empty without FAIRWQ_TESTING. The
 * test points are in testing.h. Each other fairwq_test_*() is in the file that
 * it looks into.
 */
#include <linux/export.h>

#include "testing.h"

#ifdef FAIRWQ_TESTING
/* The hook that each test point calls, or NULL. */
void (*fairwq_test_hook)(enum fairwq_test_point point, struct fairwq_batch *batch);

void fairwq_test_set_hook(void (*hook)(enum fairwq_test_point point,
				       struct fairwq_batch *batch))
{
	WRITE_ONCE(fairwq_test_hook, hook);
}
EXPORT_SYMBOL_GPL(fairwq_test_set_hook);
#endif

