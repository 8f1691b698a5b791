/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Testing: test points, and what tests may read: tests/lib/points.h. Empty
 * without -DFAIRWQ_TESTING.
 */
#ifndef FAIRWQ_TESTING_H
#define FAIRWQ_TESTING_H

#include "types.h"

#ifdef FAIRWQ_TESTING
#include "tests/lib/points.h"
/* Export a symbol to the tests alone. */
#define FAIRWQ_TEST_EXPORT(symbol)	EXPORT_SYMBOL_GPL(symbol)
#else
#define fairwq_test_point(point, batch)	((void)(batch))
#define fairwq_test_count_batch(n)	((void)(n))
#define fairwq_test_fails()		false
#define FAIRWQ_TEST_EXPORT(symbol)	static_assert(__alignof__(&(symbol)) > 0)
#endif

#endif /* FAIRWQ_TESTING_H */
