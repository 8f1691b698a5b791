/* SPDX-License-Identifier: GPL-2.0 */
/*
 * KTAP: the report of a user-space test, on standard output. Complaints come in
 * lines before the result of their case.
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
static const char *skipped;	/* the reason, or NULL */

/* Check @cond. A case goes on after a failure, so that it reports all failures. */
#define expect(cond, ...) do {						\
	if (!(cond)) {							\
		passed = false;						\
		printf("# line %d: %s; ", __LINE__, #cond);		\
		printf("" __VA_ARGS__);					\
		printf(" (errno %d: %s)\n", errno, strerror(errno));	\
	}								\
} while (0)

/* Check that @call returns -1 with errno @error. */
#define expect_error(call, error) do {					\
	errno = 0;							\
	expect((call) == -1 && errno == (error), "wanted %s", #error);	\
} while (0)

/* Check whether the CPU is emulated. */
static inline bool is_emulated(void)
{
	char line[256];
	bool found = false;
	FILE *f = fopen("/proc/cpuinfo", "r");

	while (f && !found && fgets(line, sizeof(line), f))
		found = !strncmp(line, "model name", 10) && strstr(line, "QEMU");
	if (f)
		fclose(f);
	return found;
}

/* Return @n, or a fifth with lockdep or in an emulator, where each round takes long. */
static inline int many(int n)
{
	static int part;

	if (!part)
		part = !access("/proc/lockdep", F_OK) || is_emulated() ? 5 : 1;
	return n / part;
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

/* Print the result of a case. Return: true if it has passed. */
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
