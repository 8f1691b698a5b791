// SPDX-License-Identifier: GPL-2.0
/*
 * Allocations: calls that lack memory, from user space. Every allocation of a
 * system call from the slab, or of two pages and more, fails once, one at a
 * time. The call must return ENOMEM or do without, and the next call must work.
 * This takes a kernel with FAILSLAB and FAIL_PAGE_ALLOC, and an init.sh that
 * lets allocations fail which may sleep. In other kernels nothing fails.
 *
 * Needs: fairhash
 *
 * The output is KTAP.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ktap.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))
#define POOL		"/sys/kernel/debug/fairwq/fairhash"
#define DEVICE		"/dev/fairhash"
#define LINE_LEN	65
#define MOST		500	/* more allocations than any call makes */

static int fail_fd;

/*
 * Let the @nth allocation from now on fail; 0: none. Return: the allocations
 * that were left until the failure that was set before; 0: it has happened.
 */
static int fail_nth(int nth)
{
	char text[16] = "";
	int left = 0;

	if (pread(fail_fd, text, sizeof(text) - 1, 0) > 0)
		left = atoi(text);
	snprintf(text, sizeof(text), "%d", nth);
	if (pwrite(fail_fd, text, strlen(text), 0) != (ssize_t)strlen(text)) {
		printf("Bail out! cannot say what is to fail: %s\n", strerror(errno));
		exit(1);
	}
	return left;
}

/*
 * Repeat @call, each time without another allocation, until all have failed
 * once. @call returns 0 or an error. Return: the number of calls with ENOMEM.
 */
static int walk(int (*call)(const char *arg), const char *arg)
{
	int nth, left, err, refused = 0;

	if (fail_fd < 0) {
		err = call(arg);
		expect(!err, "%s: error %d", arg, err);
		return 1;
	}
	for (nth = 1; nth < MOST; nth++) {
		fail_nth(nth);
		err = call(arg);
		left = fail_nth(0);
		expect(!err || err == ENOMEM, "%s: error %d without allocation %d", arg, err, nth);
		refused += err == ENOMEM;
		err = call(arg);
		expect(!err, "%s: error %d after allocation %d was missing", arg, err, nth);
		if (left)
			break;
	}
	expect(nth < MOST, "%s: no end", arg);
	printf("# %s: %d allocations failed, and %d calls\n", arg, nth - 1, refused);
	return refused;
}

/* ---- calls ------------------------------------------------------------- */

/* Read a file of the pool. Return: 0, or an error. */
static int read_file(const char *name)
{
	static char text[65536];
	char path[128];
	ssize_t n;
	int fd, err;

	snprintf(path, sizeof(path), "%s/%s", POOL, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	do
		n = read(fd, text, sizeof(text));
	while (n > 0);
	err = n ? errno : 0;
	close(fd);
	return err;
}

/* Keep histograms and drop them. Without memory some batches may lack one for a while. */
static int keep_histograms(const char *name)
{
	int fd = open(name, O_RDWR | O_CLOEXEC), err = 0;

	if (fd < 0)
		return errno;
	if (write(fd, "1", 1) != 1 || write(fd, "0", 1) != 1)
		err = errno;
	close(fd);
	return err;
}

static char want[LINE_LEN];

/* Be a client: a batch, a serializer, some items. Accepted bytes must be hashed. */
static int hash(const char *text)
{
	char digest[LINE_LEN];
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC), err = 0;

	if (fd < 0)
		return errno;
	errno = 0;
	if (write(fd, text, strlen(text)) < 0 || write(fd, text, strlen(text)) < 0)
		err = errno;
	else if (read(fd, digest, LINE_LEN) != LINE_LEN)
		err = errno;
	else if (!want[0])
		memcpy(want, digest, LINE_LEN);
	else
		expect(!memcmp(want, digest, LINE_LEN), "another digest: %.64s", digest);
	close(fd);
	return err;
}

/* ---- cases ------------------------------------------------------------- */

static void debugfs_without_memory(void)
{
	static const char * const files[] = {
		"summary", "batches", "runners", "dump", "max_active", "policy",
		"slice_us", "hung_ms", "histograms",
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		expect(walk(read_file, files[i]) > 0, "nothing failed");
}

static void histograms_without_memory(void)
{
	expect(walk(keep_histograms, POOL "/histograms") > 0, "nothing failed");
}

static void client_without_memory(void)
{
	expect(!hash("a text"), "the digest");
	expect(walk(hash, "a text") > 0, "nothing failed");
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
#define CASE(name) { #name, name }
	CASE(debugfs_without_memory),
	CASE(histograms_without_memory),
	CASE(client_without_memory),
};

int main(void)
{
	bool all_ok = true;

	fail_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fail_fd < 0 && errno != ENOENT) {
		printf("Bail out! cannot say what is to fail: %s\n", strerror(errno));
		return 1;
	}
	ktap_begin(ARRAY_SIZE(cases));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ktap_case_begin();
		cases[i].run();
		if (fail_fd < 0 && passed)
			skipped = "nothing failed: a kernel without FAILSLAB";
		all_ok = ktap_case_end(i + 1, cases[i].name) && all_ok;
	}
	return !all_ok;
}
