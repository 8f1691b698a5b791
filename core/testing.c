// SPDX-License-Identifier: GPL-2.0
/*
 * Testing: what tests/lib/points.h declares. Empty without -DFAIRWQ_TESTING.
 */
#include <linux/export.h>

#include "testing.h"

#ifdef FAIRWQ_TESTING
void (*fairwq_test_hook)(enum fairwq_test_point point, struct fairwq_batch *batch);
FAIRWQ_TEST_EXPORT(fairwq_test_hook);
atomic_long_t fairwq_test_batches;
FAIRWQ_TEST_EXPORT(fairwq_test_batches);
atomic_t fairwq_test_fail_nth;
FAIRWQ_TEST_EXPORT(fairwq_test_fail_nth);
#endif
