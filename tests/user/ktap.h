/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How the programs that test from user space report: KTAP on standard output,
 * what was wrong in lines before the case's own.
 */
#ifndef FAIRWQ_USER_KTAP_H
#define FAIRWQ_USER_KTAP_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static atomic_bool passed;	/* the case that runs; also set from threads */
static const char *skipped;	/* why, or NULL */

/* A case goes on after a failure, to show all that is wrong. */
#define expect(cond, ...) do {						\
	if (!(cond)) {							\
		passed = false;						\
		printf("# line %d: %s; ", __LINE__, #cond);		\
		printf("" __VA_ARGS__);					\
		printf(" (errno %d: %s)\n", errno, strerror(errno));	\
	}								\
} while (0)

#define expect_error(call, error) do {					\
	errno = 0;							\
	expect((call) == -1 && errno == (error), "wanted %s", #error);	\
} while (0)

/* Fewer where the kernel checks every lock: there each takes ten times as long. */
static inline int many(int n)
{
	return access("/proc/lockdep", F_OK) ? n : n / 5;
}

static inline void ktap_begin(int nr)
{
	printf("KTAP version 1\n1..%d\n", nr);
}

static inline void ktap_case_begin(void)
{
	passed = true;
	skipped = NULL;
}

static inline bool ktap_case_end(int number, const char *name)
{
	printf("%s %d %s", passed ? "ok" : "not ok", number, name);
	if (skipped)
		printf(" # SKIP %s", skipped);
	putchar('\n');
	fflush(stdout);
	return passed;
}

#endif /* FAIRWQ_USER_KTAP_H */
