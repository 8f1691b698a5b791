/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Known faults: promises that do not hold yet.
 */
#ifndef FAIRWQ_TEST_KNOWN_H
#define FAIRWQ_TEST_KNOWN_H

#include <kunit/test.h>

/*
 * Check a promise that fault number @nr is known to break. If @ok is false, the case ends
 * here as skipped, and the verdict prints why. If it is true, the case goes on. A case that
 * has failed before stays failed.
 */
#define mock_known_fault(test, nr, ok, fmt, ...)				\
	do {									\
		struct kunit *__test = (test);					\
										\
		if (!(ok) && READ_ONCE(__test->status) != KUNIT_FAILURE)	\
			kunit_skip(__test, "known fault %u: " fmt, nr,		\
				   ##__VA_ARGS__);				\
	} while (0)

#endif /* FAIRWQ_TEST_KNOWN_H */
