// SPDX-License-Identifier: GPL-2.0
/*
 * Debugfs: check the files in /sys/kernel/debug/fairwq, the knobs with good
 * values and with rubbish, and the tracepoints.
 *
 * Needs: fairhash
 *
 * The output is KTAP. The pool is that of /dev/fairhash. The process that uses
 * it is called "operator", and so is its batch.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ktap.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))

#define FOLDER		"/sys/kernel/debug/fairwq"
#define POOL		FOLDER "/fairhash"
#define DEVICE		"/dev/fairhash"
#define MODULE		"fairhash"
#define MODULE_FILE	"/modules/fairhash.ko"
#define TRACEFS		"/sys/kernel/tracing"
#define EVENTS		TRACEFS "/events/fairwq"
#define HASHER		"fn=fairhash_hash_block"
#define MINE		" [" MODULE "]"

/* The heads of the tables, with single spaces. */
#define BATCHES_HEAD	"number name state prio weight queued running done service longest share% stay oldestus wait50us wait99us waitmaxus run50us run99us failed owner"
#define DUMP_HEAD	"batch where ageus function"
#define RUNNERS_HEAD	"runner state sincems batch function"

/* A digest in hex and its newline. */
#define LINE_LEN	65
/* More than the length of any file, with a line for each of 512 runners. */
#define TEXT_MAX	262144
/* More than the time of any wait, which counts its own sleeps: the guest may be stopped. */
#define PATIENCE_MS	30000
#define LOADERS		3

static const struct {
	const char *name;
	mode_t mode;
} files[] = {
	{ "summary", 0400 },
	{ "batches", 0400 },
	{ "runners", 0400 },
	{ "dump", 0400 },
	{ "histograms", 0600 },
	{ "max_active", 0600 },
	{ "policy", 0600 },
	{ "slice_us", 0600 },
	{ "low_turns", 0600 },
	{ "hung_ms", 0600 },
	{ "reset", 0600 },
};

/* --------------------------------------------------------------- waiting -- */

/* Wait until @cond holds, at most PATIENCE_MS. */
#define wait_until(cond) do {						\
	int __ms = 0;							\
									\
	while (!(cond) && (__ms += 5) < PATIENCE_MS)			\
		usleep(5000);						\
	expect(__ms < PATIENCE_MS, "waited for %s", #cond);		\
} while (0)

/* ------------------------------------------------------ reading and writing -- */

static const char *pool_path(const char *name)
{
	static __thread char path[128];

	snprintf(path, sizeof(path), "%s/%s", POOL, name);
	return path;
}

/* Read all of a file, in reads of @piece bytes. Return: its length, or -1. */
static ssize_t read_pieces(const char *path, char *text, size_t piece)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = -1;

	text[0] = '\0';
	if (fd < 0)
		return -1;
	while (len + piece < TEXT_MAX) {
		n = read(fd, text + len, piece);
		if (n <= 0)
			break;
		len += n;
	}
	text[len] = '\0';
	close(fd);
	return n ? -1 : (ssize_t)len;
}

/* Read a file of the pool. Return: its text. The thread's next call overwrites it. */
static char *read_pool(const char *name)
{
	static __thread char *text;

	if (!text)
		text = malloc(TEXT_MAX);
	expect(read_pieces(pool_path(name), text, 65536) > 0, "%s", name);
	return text;
}

/* Return the number behind "key: " in a file of the pool; -1: there is none. */
static long long number_of(const char *name, const char *key)
{
	char *line = read_pool(name), *rest;

	for (line = strtok_r(line, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		size_t len = strlen(key);

		if (!strncmp(line, key, len) && !strncmp(line + len, ": ", 2) &&
		    isdigit(line[len + 2]))
			return strtoll(line + len + 2, NULL, 10);
	}
	return -1;
}

static ssize_t write_file(const char *path, const void *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err;
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, len);
	err = errno;
	close(fd);
	errno = err;
	return n;
}

static void set_knob(const char *name, const char *text)
{
	ssize_t n = write_file(pool_path(name), text, strlen(text));

	expect(n == (ssize_t)strlen(text), "%s into %s", text, name);
}

/* Check that a knob accepts @text, and then reads as @want. */
static void expect_set(const char *name, const char *text, const char *want)
{
	const char *got;

	set_knob(name, text);
	got = read_pool(name);
	expect(!strcmp(got, want), "%s into %s: %s", text, name, got);
}

/* Read every file of the pool. Return: the text of all. The caller must free it. */
static char *read_all(void)
{
	char *all = malloc(TEXT_MAX);
	size_t len = 0;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		len += snprintf(all + len, TEXT_MAX - len, "== %s\n%s", files[i].name,
				read_pool(files[i].name));
	expect(len < TEXT_MAX, "%zu bytes", len);
	return all;
}

/* ---------------------------------------------------------------- hashing -- */

static unsigned char data[1 << 20];

static int open_device(int flags)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC | flags);

	if (fd < 0) {
		printf("Bail out! cannot open %s: %s\n", DEVICE, strerror(errno));
		exit(1);
	}
	return fd;
}

/* Wait for a digest. If it never comes, bail out, because no other case could run. */
static void wait_for_digest(int fd)
{
	struct pollfd in = { .fd = fd, .events = POLLIN };

	for (int ms = 0; ms < PATIENCE_MS; ms += 100) {
		if (poll(&in, 1, 100) == 1)
			return;
	}
	printf("Bail out! no digest after %d s\n%s", PATIENCE_MS / 1000, read_pool("summary"));
	printf("%s", read_pool("batches"));
	fflush(stdout);
	_exit(1);
}

/* Hash the same bytes every time, in several writes. */
static void hash_once(int fd, char digest[LINE_LEN])
{
	for (int i = 0; i < 8; i++) {
		ssize_t n = write(fd, data + i * 4096, 4096);

		expect(n == 4096, "write gave %zd", n);
	}
	wait_for_digest(fd);
	expect(read(fd, digest, LINE_LEN) == LINE_LEN, "digest");
}

/* Return the batches that stay: three of the pool, and one of each user so far. */
static int lasting_batches(void)
{
	int nr = 3;

	for (const char *at = read_pool("batches"); (at = strstr(at, " user-")); at++)
		nr++;
	return nr;
}

/* Check that no runner is active, and no process has a batch. */
static bool is_quiet(void)
{
	return number_of("summary", "runners_active") == 0 &&
	       number_of("summary", "batches") == lasting_batches();
}

/* Give the counters something to count. */
static void hash_and_leave(void)
{
	char digest[LINE_LEN];
	int fd = open_device(0);

	hash_once(fd, digest);
	close(fd);
	wait_until(is_quiet());
}

/* Threads that hash until they are told to stop. */
static struct load {
	pthread_t thread[LOADERS];
	atomic_bool stop;
	atomic_int rounds[LOADERS];
	char want[LINE_LEN];
} load;

static void *load_thread(void *arg)
{
	atomic_int *rounds = arg;
	char got[LINE_LEN];
	int fd = open_device(0);

	while (!load.stop) {
		hash_once(fd, got);
		expect(!memcmp(got, load.want, LINE_LEN), "another digest: %.64s", got);
		++*rounds;
	}
	close(fd);
	return NULL;
}

static void begin_load(void)
{
	int fd = open_device(0);

	hash_once(fd, load.want);
	close(fd);
	wait_until(is_quiet());
	load.stop = false;
	for (int i = 0; i < LOADERS; i++) {
		load.rounds[i] = 0;
		expect(!pthread_create(&load.thread[i], NULL, load_thread, &load.rounds[i]),
		       "thread");
	}
	for (int i = 0; i < LOADERS; i++)
		wait_until(load.rounds[i]);
}

static void end_load(void)
{
	for (int i = 0; i < LOADERS; i++) {
		int before = load.rounds[i];

		wait_until(load.rounds[i] > before);
	}
	load.stop = true;
	for (int i = 0; i < LOADERS; i++)
		pthread_join(load.thread[i], NULL);
	wait_until(is_quiet());
}

/* ------------------------------------------------------ what there is to see -- */

static void version_is_that_of_the_module(void)
{
	char debugfs[TEXT_MAX], module[TEXT_MAX];
	struct stat st;

	expect(read_pieces(FOLDER "/version", debugfs, 4096) > 0, "no version");
	expect(read_pieces("/sys/module/fairwq/version", module, 4096) > 0, "no module");
	expect(!strcmp(debugfs, module), "%s is not %s", debugfs, module);
	expect(!stat(FOLDER "/version", &st) && (st.st_mode & 07777) == 0400, "mode");
}

static mode_t wanted_mode(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		if (!strcmp(files[i].name, name))
			return files[i].mode;
	}
	return 0;
}

/* Check that all documented files exist, and no others, and belong to root alone. */
static void folder_is_complete(void)
{
	DIR *dir = opendir(POOL);
	struct dirent *entry;
	struct stat st;
	size_t nr = 0;

	expect(dir, "no %s", POOL);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		expect(!stat(pool_path(entry->d_name), &st), "%s", entry->d_name);
		expect(S_ISREG(st.st_mode) && st.st_uid == 0 &&
		       (st.st_mode & 07777) == wanted_mode(entry->d_name),
		       "%s has mode %o", entry->d_name, st.st_mode);
		nr++;
	}
	expect(nr == ARRAY_SIZE(files), "%zu files", nr);
	if (dir)
		closedir(dir);
}

/* Return the number of files that a user other than root can open. */
static int count_open_to_others(void)
{
	int nr = 0;

	if (setgid(65534) || setuid(65534))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		nr += open(pool_path(files[i].name), O_RDONLY) >= 0 || errno != EACCES;
	return nr;
}

static void closed_to_others(void)
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(count_open_to_others());
	expect(waitpid(pid, &status, 0) == pid && status == 0, "status %x", status);
}

/* Check lines of "key: value", in the order of @keys. The first @words are words. */
static void expect_lines(const char *name, const char * const *keys, size_t nr, size_t words)
{
	char *line, *rest, *end;
	size_t i = 0;

	for (line = strtok_r(read_pool(name), "\n", &rest); line && i < nr; i++) {
		size_t len = strlen(keys[i]);

		expect(!strncmp(line, keys[i], len) && !strncmp(line + len, ": ", 2),
		       "%s, not %s", line, keys[i]);
		if (i >= words) {
			strtod(line + len + 1, &end);
			expect(!*end && isdigit(end[-1]), "%s", line);
		}
		line = strtok_r(NULL, "\n", &rest);
	}
	expect(i == nr && !line, "%zu lines in %s", i, name);
}

static void summary_has_its_lines(void)
{
	static const char * const keys[] = {
		"name", "policy", "runners_active", "max_active", "runners_asleep",
		"max_in_flight", "async", "max_async", "full_ms", "batches",
		"service_high", "service_normal", "service_low", "turns",
		"flow_fallbacks", "kicks", "requeues", "parked", "canceled", "leaks", "hung",
		"failures", "promoted", "stolen",
	};

	expect_lines("summary", keys, ARRAY_SIZE(keys), 2);
	expect(strstr(read_pool("summary"), "name: fairhash\npolicy: round_robin\n"),
	       "%s", read_pool("summary"));
}

static int count_words(const char *line)
{
	int nr = 0;

	for (; *line; line++)
		nr += *line != ' ' && (line[1] == ' ' || !line[1]);
	return nr;
}

/* Check that each batch has a number of its own: the younger has the larger one. */
static void expect_numbers(void)
{
	char *line = read_pool("batches"), *rest;
	long long number, last = -1;

	strtok_r(line, "\n", &rest);
	while ((line = strtok_r(NULL, "\n", &rest))) {
		expect(sscanf(line, "%lld ", &number) == 1 && number > last, "%s", line);
		last = number;
	}
}

/* Check a table: a head of @names, and rows of @min to @max words. Return: its rows. */
static int expect_table(const char *name, const char *names, int min, int max)
{
	char *rest, *line = strtok_r(read_pool(name), "\n", &rest), head[256];
	size_t len = 0;
	int rows = 0;

	for (char *c = line; *c; c++) {
		if (*c != ' ' || (len && head[len - 1] != ' '))
			head[len++] = *c;
	}
	head[len] = '\0';
	expect(!strcmp(head, names), "%s", head);
	while ((line = strtok_r(NULL, "\n", &rest))) {
		int words = count_words(line);

		expect(words >= min && words <= max, "%d words: %s", words, line);
		rows++;
	}
	return rows;
}

static void tables_have_their_columns(void)
{
	int batches, runners;

	begin_load();
	batches = expect_table("batches", BATCHES_HEAD, 20, 20);
	expect_numbers();
	/* The function is followed by its module. */
	runners = expect_table("runners", RUNNERS_HEAD, 5, 6);
	expect_table("dump", DUMP_HEAD, 4, 5);
	end_load();
	/* One more batch, that of this process. */
	expect(batches == lasting_batches() + 1, "%d batches", batches);
	expect(runners >= number_of("summary", "max_active"), "%d runners", runners);
}

struct row {
	char state[16], prio[16];
	unsigned int weight, queued, running, percent, tenth, longest, stay;
	unsigned long long done, service, oldest, waitmax, failed;
	char wait50[24], wait99[24], run50[24], run99[24];	/* numbers, or "-" */
	char owner[24];			/* number, or "-" */
};

#define BATCHES_ROW "%*s %15s %15s %u %u %u %llu %llu %u %u.%u %u %llu %23s %23s %llu %23s %23s %llu %23s"

/* Return the number of the batch @name; -1: there is none, or several. */
static long long number_of_batch(const char *name)
{
	char *line = read_pool("batches"), *rest, word[32];
	long long number, found = -1;
	int nr = 0;

	for (line = strtok_r(line, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (sscanf(line, "%lld %31s", &number, word) != 2 || strcmp(word, name))
			continue;
		found = number;
		nr++;
	}
	return nr == 1 ? found : -1;
}

/* Read the row of this process's batch. Return: false if there is none. */
static bool own_row(struct row *row)
{
	char name[32], *line;

	snprintf(name, sizeof(name), " operator-%d ", getpid());
	line = strstr(read_pool("batches"), name);
	return line && sscanf(line, BATCHES_ROW,
			      row->state, row->prio, &row->weight, &row->queued,
			      &row->running, &row->done, &row->service, &row->longest,
			      &row->percent, &row->tenth, &row->stay,
			      &row->oldest, row->wait50, row->wait99, &row->waitmax, row->run50,
			      row->run99, &row->failed, row->owner) == 19;
}

/*
 * Check whether the row has @done items. The caller must wait for that, because
 * a digest may come a moment before the end of the last turn is counted.
 */
static bool own_row_has(struct row *row, unsigned long long done)
{
	return own_row(row) && row->done == done && !row->running;
}

static void row_of_a_client(void)
{
	char digest[LINE_LEN];
	struct row row = { 0 };
	int fd;

	set_knob("reset", "1");
	set_knob("policy", "fair_time");	/* shares begin anew */
	set_knob("policy", "round_robin");
	fd = open_device(0);
	hash_once(fd, digest);
	wait_until(own_row_has(&row, 8));
	expect(!strcmp(row.state, "idle") && !strcmp(row.prio, "normal"), "%s %s",
	       row.state, row.prio);
	expect(row.weight == 100 && row.queued == 0, "%u %u", row.weight, row.queued);
	expect(row.percent == 100 && row.tenth == 0, "share %u.%u", row.percent, row.tenth);
	expect(!strcmp(row.wait50, "-") && !strcmp(row.wait99, "-"), "waits");
	expect(!strcmp(row.run50, "-") && !strcmp(row.run99, "-"), "runs");
	expect(number_of("summary", "turns") == 8, "turns");
	expect(number_of("summary", "kicks") >= 1, "kicks");
	close(fd);
}

/* Return the samples of this process's batch in a histogram. The bars must add up. */
static unsigned long long samples(const char *what)
{
	unsigned long long all, sum = 0, nr;
	char head[64], *at;

	snprintf(head, sizeof(head), "\noperator-%d %s, ns: ", getpid(), what);
	at = strstr(read_pool("histograms"), head);
	if (!at)
		return 0;
	all = strtoull(at + strlen(head), NULL, 10);
	at = strchr(at + 1, '\n');
	while (at && sscanf(at + 1, " %*u .. %*u %llu |", &nr) == 1) {
		sum += nr;
		at = strchr(at + 1, '\n');
	}
	expect(sum == all, "%s: %llu of %llu", what, sum, all);
	return all;
}

static void histograms_on_demand(void)
{
	char digest[LINE_LEN];
	struct row row = { 0 };
	int old = open_device(0), new;

	expect(!strncmp(read_pool("histograms"), "write 1 ", 8), "%s",
	       read_pool("histograms"));
	set_knob("reset", "1");
	hash_once(old, digest);
	wait_until(own_row_has(&row, 8));
	set_knob("histograms", "1");
	hash_once(old, digest);
	wait_until(own_row_has(&row, 16));
	expect(samples("run") == 8, "%s", read_pool("histograms"));
	expect(samples("wait") >= 1, "%s", read_pool("histograms"));
	expect(atoll(row.run50) <= atoll(row.run99) && strcmp(row.run99, "-"), "%s", row.run99);
	expect(atoll(row.wait50) <= atoll(row.wait99), "%s", row.wait50);
	/* A reset keeps histograms, and a new batch has some. */
	set_knob("reset", "1");
	expect(!samples("run"), "%s", read_pool("histograms"));
	close(old);
	wait_until(!own_row(&row));
	new = open_device(0);
	hash_once(new, digest);
	wait_until(own_row_has(&row, 8));
	expect(samples("run") == 8, "%s", read_pool("histograms"));
	set_knob("histograms", "0");
	expect(own_row(&row) && !strcmp(row.run99, "-"), "%s", row.run99);
	expect(!samples("run"), "%s", read_pool("histograms"));
	close(new);
}

static void read_in_small_pieces(void)
{
	char *pieces = malloc(TEXT_MAX);

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		expect(read_pieces(pool_path(files[i].name), pieces, 7) > 0, "%s", files[i].name);
		expect(!strcmp(pieces, read_pool(files[i].name)), "%s", pieces);
	}
	free(pieces);
}

/* ---------------------------------------------------------------- the knobs -- */

struct rubbish {
	const char *text;
	size_t len;
};

#define RUBBISH(text) { text, sizeof(text) - 1 }

static const struct rubbish no_knob_takes[] = {
	RUBBISH(""), RUBBISH(" "), RUBBISH("\n"), RUBBISH("\n \t"),
	RUBBISH("-1"), RUBBISH("- 1"), RUBBISH("99999999999999999999"),
	RUBBISH("0x1ffffffff"), RUBBISH("x"), RUBBISH("0x"), RUBBISH("\xff\xfe"),
	RUBBISH("\0"), RUBBISH("1\0"), RUBBISH("1\0x"), RUBBISH("\0x"),
	RUBBISH("1x"), RUBBISH("1 2"), RUBBISH("1\n2"), RUBBISH("1,"), RUBBISH("1.0"),
	RUBBISH("1e2"), RUBBISH("%s%n"), RUBBISH("fair_time\0"), RUBBISH("fair_time x"),
	RUBBISH("fifo"),
	RUBBISH("1                               "), /* 32 bytes are too many */
	RUBBISH("fair_time                       "),
};

static const struct rubbish bad_max_active[] = {
	RUBBISH("0"), RUBBISH("513"), RUBBISH("0x201"), RUBBISH("4294967296"), RUBBISH("fifo"),
	RUBBISH("-512"), RUBBISH("4294967297"),
};

static const struct rubbish bad_policy[] = {
	RUBBISH("0"), RUBBISH("1"), RUBBISH("2"), RUBBISH("FIFO"), RUBBISH("fif"),
	RUBBISH("fair_time2"), RUBBISH("fair"), RUBBISH("fair-time"), RUBBISH("round-robin"),
	RUBBISH("round"), RUBBISH("round_robin,fair_time"), RUBBISH("round_robin\0"),
	RUBBISH("(null)"),
};

static const struct rubbish bad_slice_us[] = {
	RUBBISH("10001"), RUBBISH("0x2711"), RUBBISH("4294967296"), RUBBISH("-50"),
	RUBBISH("fifo"), RUBBISH("50us"),
};

static const struct rubbish bad_low_turns[] = {
	RUBBISH("1"), RUBBISH("201"), RUBBISH("4294967296"), RUBBISH("-64"), RUBBISH("1/64"),
};

static const struct rubbish bad_hung_ms[] = {
	RUBBISH("4294967296"), RUBBISH("fifo"), RUBBISH("30 s"), RUBBISH("-30000"),
};

static const struct rubbish bad_histograms[] = {
	RUBBISH("2"), RUBBISH("on"), RUBBISH("yes"), RUBBISH("11"), RUBBISH("0x2"),
};

static const struct rubbish bad_reset[] = {
	RUBBISH("0"), RUBBISH("2"), RUBBISH("01"), RUBBISH("0x1"), RUBBISH("+1"),
	RUBBISH("yes"), RUBBISH("11"),
};

static void expect_refused(const char *knob, const struct rubbish *rubbish, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		ssize_t n;

		errno = 0;
		n = write_file(pool_path(knob), rubbish[i].text, rubbish[i].len);
		expect(n == -1 && errno == EINVAL, "'%s' (%zu bytes) into %s gave %zd",
		       rubbish[i].text, rubbish[i].len, knob, n);
	}
}

/* Check that a write of more than a page is refused, and one from a bad address. */
static void expect_overlong_refused(const char *knob)
{
	char *text = malloc(TEXT_MAX);
	void *bad = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(text, '1', TEXT_MAX);
	expect_error(write_file(pool_path(knob), text, 64), EINVAL);
	expect_error(write_file(pool_path(knob), text, 4097), EINVAL);
	expect_error(write_file(pool_path(knob), text, TEXT_MAX), EINVAL);
	memset(text + 1, '\n', TEXT_MAX - 1);
	expect_error(write_file(pool_path(knob), text, TEXT_MAX), EINVAL);
	expect_error(write_file(pool_path(knob), bad, 1), EFAULT);
	munmap(bad, 4096);
	free(text);
}

/* Check that rubbish is refused, and changes no value and no counter. */
static void rubbish_is_refused(const char *knob, const struct rubbish *rubbish, size_t nr)
{
	char *before, *after;

	hash_and_leave();
	expect(number_of("summary", "turns") > 0, "nothing that could get lost");
	before = read_all();
	expect_refused(knob, no_knob_takes, ARRAY_SIZE(no_knob_takes));
	expect_refused(knob, rubbish, nr);
	expect_overlong_refused(knob);
	after = read_all();
	expect(!strcmp(before, after), "\n%s\nhas become\n%s\n", before, after);
	free(before);
	free(after);
}

static void rubbish_for_max_active(void)
{
	rubbish_is_refused("max_active", bad_max_active, ARRAY_SIZE(bad_max_active));
}

static void rubbish_for_policy(void)
{
	rubbish_is_refused("policy", bad_policy, ARRAY_SIZE(bad_policy));
}

static void rubbish_for_slice_us(void)
{
	rubbish_is_refused("slice_us", bad_slice_us, ARRAY_SIZE(bad_slice_us));
}

static void rubbish_for_low_turns(void)
{
	rubbish_is_refused("low_turns", bad_low_turns, ARRAY_SIZE(bad_low_turns));
}

static void rubbish_for_hung_ms(void)
{
	rubbish_is_refused("hung_ms", bad_hung_ms, ARRAY_SIZE(bad_hung_ms));
}

static void rubbish_for_reset(void)
{
	rubbish_is_refused("reset", bad_reset, ARRAY_SIZE(bad_reset));
}

static void rubbish_for_histograms(void)
{
	rubbish_is_refused("histograms", bad_histograms, ARRAY_SIZE(bad_histograms));
}

/* Check that the tables take no writes. */
static void tables_take_no_writes(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		if (files[i].mode == 0400)
			expect_error(write_file(pool_path(files[i].name), "1", 1), EINVAL);
	}
}

static void good_values_of_max_active(void)
{
	char before[16];

	snprintf(before, sizeof(before), "%s", read_pool("max_active"));
	expect_set("max_active", "1", "1\n");
	hash_and_leave();
	expect_set("max_active", "512\n", "512\n");
	hash_and_leave();
	expect_set("max_active", "  3\t\n", "3\n");
	expect_set("max_active", "0x10", "16\n");
	expect_set("max_active", "5                              ", "5\n"); /* 31 bytes */
	expect(number_of("summary", "max_active") == 5, "summary");
	expect(number_of("summary", "runners_active") == 0, "a runner works");
	expect_set("max_active", before, before);
}

static void good_values_of_slice_us(void)
{
	char before[16];

	snprintf(before, sizeof(before), "%s", read_pool("slice_us"));
	expect_set("slice_us", "0", "0\n");
	hash_and_leave();
	expect_set("slice_us", "10000\n", "10000\n");
	hash_and_leave();
	expect_set("slice_us", "1", "1\n");
	hash_and_leave();
	expect_set("slice_us", before, before);
}

static void good_values_of_low_turns(void)
{
	expect(!strcmp(read_pool("low_turns"), "64\n"), "one turn in 64");
	expect_set("low_turns", "0", "0\n");
	hash_and_leave();
	expect_set("low_turns", "200\n", "200\n");
	expect_set("low_turns", "2", "2\n");
	hash_and_leave();
	expect_set("low_turns", "64", "64\n");
}

static void good_values_of_hung_ms(void)
{
	char before[16];

	snprintf(before, sizeof(before), "%s", read_pool("hung_ms"));
	expect_set("hung_ms", "0", "0\n");
	hash_and_leave();
	expect_set("hung_ms", "4294967295", "4294967295\n");
	hash_and_leave();
	expect_set("hung_ms", "60000\n", "60000\n");
	hash_and_leave();
	expect(number_of("summary", "hung") == 0, "nothing hung");
	expect_set("hung_ms", before, before);
}

static void good_values_of_policy(void)
{
	expect_set("policy", "fair_time\n", "fair_time\n");
	expect_set("policy", " fair_time", "fair_time\n");
	expect_set("policy", "fair_time", "fair_time\n");
	expect(strstr(read_pool("summary"), "\npolicy: fair_time\n"), "summary");
	hash_and_leave();
	expect_set("policy", "round_robin", "round_robin\n");
	hash_and_leave();
}

/* Check that one descriptor can be used for many writes, and to read their results. */
static void knob_kept_open(void)
{
	int fd = open(pool_path("policy"), O_RDWR | O_CLOEXEC);
	char text[32];

	expect(fd >= 0, "open");
	for (int i = 0; i < 3; i++) {
		expect(write(fd, "fair_time\n", 10) == 10, "fair_time");
		expect_error(write(fd, "fifo\n", 5), EINVAL);
		expect(pread(fd, text, sizeof(text), 0) == 10, "%.10s", text);
		expect(!memcmp(text, "fair_time\n", 10), "%.10s", text);
		expect(write(fd, "round_robin\n", 12) == 12, "round_robin");
		expect(pread(fd, text, sizeof(text), 0) == 12, "%.12s", text);
		expect(!memcmp(text, "round_robin\n", 12), "%.12s", text);
	}
	close(fd);
}

static void reset_zeroes_the_counters(void)
{
	static const char * const counters[] = {
		"turns", "kicks", "requeues", "parked", "canceled", "leaks", "hung",
		"flow_fallbacks", "failures",
	};
	struct row row = { 0 };
	char digest[LINE_LEN];
	int fd = open_device(0);

	hash_once(fd, digest);
	wait_until(own_row(&row) && row.done >= 8 && !row.running);
	expect(atoll(row.owner) == number_of_batch("user-0"), "owner %s", row.owner);
	wait_until(number_of("summary", "runners_active") == 0);
	set_knob("reset", "1\n");
	for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
		expect(number_of("summary", counters[i]) == 0, "%s", counters[i]);
	expect(own_row_has(&row, 0), "%llu done", row.done);
	expect(!row.waitmax, "what was measured");
	expect(number_of("summary", "batches") == lasting_batches() + 1, "the batches stay");
	hash_once(fd, digest);
	wait_until(own_row_has(&row, 8));
	close(fd);
}

/* ------------------------------------------------------------- under load -- */

static void policy_switched_under_load(void)
{
	begin_load();
	for (int i = 0; i < many(200); i++) {
		expect_set("policy", "fair_time", "fair_time\n");
		usleep(i * 10);		/* any time will do, here and in the next cases */
		expect_set("policy", "round_robin", "round_robin\n");
	}
	end_load();
}

static void max_active_changed_under_load(void)
{
	static const char * const values[] = { "1\n", "2\n", "17\n", "1\n", "512\n", "3\n" };
	char before[16];

	snprintf(before, sizeof(before), "%s", read_pool("max_active"));
	begin_load();
	for (int i = 0; i < many(120); i++) {
		const char *value = values[i % ARRAY_SIZE(values)];

		expect_set("max_active", value, value);
		usleep(i * 10);
	}
	end_load();
	expect_set("max_active", before, before);
}

static void slice_changed_under_load(void)
{
	static const char * const values[] = { "0\n", "10000\n", "1\n", "500\n" };
	char before[16];

	snprintf(before, sizeof(before), "%s", read_pool("slice_us"));
	begin_load();
	for (int i = 0; i < many(120); i++) {
		const char *value = values[i % ARRAY_SIZE(values)];

		expect_set("slice_us", value, value);
		usleep(i * 10);
	}
	end_load();
	expect_set("slice_us", before, before);
}

static void reset_under_load(void)
{
	begin_load();
	for (int i = 0; i < many(200); i++) {
		set_knob("reset", "1");
		usleep(i * 10);
	}
	end_load();
}

/* Check for a raw address: 0x, or as many digits as a pointer has. */
static bool shows_address(const char *text)
{
	size_t digits = 0;

	if (strstr(text, "0x"))
		return true;
	for (; *text && digits < 16; text++)
		digits = isxdigit(*text) ? digits + 1 : 0;
	return digits >= 16;
}

static void read_and_check_all(void)
{
	char *all = read_all();

	expect(!shows_address(all), "an address in\n%s\n", all);
	free(all);
}

/* Read one file, or all of them if @name is NULL, until the load stops. */
static void *read_in_a_loop(void *name)
{
	while (!load.stop) {
		if (name)
			read_pool(name);
		else
			read_and_check_all();
	}
	return NULL;
}

/* Check that readers do not block each other or the writers, and show no address. */
static void all_read_under_load(void)
{
	pthread_t reader;

	begin_load();
	expect(!pthread_create(&reader, NULL, read_in_a_loop, NULL), "thread");
	for (int i = 0; i < many(100); i++)
		read_and_check_all();
	end_load();
	pthread_join(reader, NULL);
}

/*
 * Write one block at a time, so that each must wake up the pool, while another
 * thread reads the table of batches. Each digest must come.
 */
static void reader_loses_no_wakeup(void)
{
	int fd = open_device(0);
	char digest[LINE_LEN];
	pthread_t reader;

	load.stop = false;
	expect(!pthread_create(&reader, NULL, read_in_a_loop, "batches"), "thread");
	for (int i = 0; i < many(5000); i++) {
		expect(write(fd, data, 1) == 1, "write");
		wait_for_digest(fd);
		expect(read(fd, digest, LINE_LEN) == LINE_LEN, "digest");
	}
	load.stop = true;
	pthread_join(reader, NULL);
	close(fd);
}

/*
 * A user that is busy has a stay, and its service goes up. One with nothing
 * queued has no stay, and its service is what it has done.
 */
static void service_and_stay_are_shown(void)
{
	char digest[LINE_LEN];
	struct row row = { 0 };
	int fd;

	begin_load();
	wait_until(own_row(&row) && row.stay && row.service > 100);
	end_load();
	fd = open_device(0);
	hash_once(fd, digest);
	wait_until(own_row(&row) && row.service == 8 && !row.running);
	expect(row.stay == 0 && row.longest == 1, "%u %u", row.stay, row.longest);
	close(fd);
}

/* ---------------------------------------------------------- tracepoints -- */

static const char * const events[] = {
	"fairwq_queue", "fairwq_start", "fairwq_end", "fairwq_batch", "fairwq_runner",
};

/* Mount tracefs. Return: false if this kernel has none. */
static bool mount_tracefs(void)
{
	if (!mount("tracefs", TRACEFS, "tracefs", 0, NULL) || errno == EBUSY)
		return true;
	skipped = "this kernel has no tracefs";
	return false;
}

static bool trace_set(const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", TRACEFS, name);
	return write_file(path, text, strlen(text)) == (ssize_t)strlen(text);
}

static void tracepoints_are_there(void)
{
	char path[128];

	if (!mount_tracefs())
		return;
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		snprintf(path, sizeof(path), "%s/%s/format", EVENTS, events[i]);
		expect(!access(path, F_OK), "no %s", path);
	}
}

/* Return the name of this process's batch as a trace has it, followed by @rest. */
static const char *in_trace(const char *rest)
{
	static char text[128];

	snprintf(text, sizeof(text), "pool=fairhash batch=operator-%d %s", getpid(), rest);
	return text;
}

/* Return the number of lines of an event with @text. */
static int count_lines(const char *trace, const char *event, const char *text)
{
	char line[512], head[64];
	int nr = 0;

	snprintf(head, sizeof(head), " %s: ", event);
	for (; *trace; trace += strcspn(trace, "\n"), trace += *trace == '\n') {
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(trace, "\n"), trace);
		nr += strstr(line, head) && strstr(line, text);
	}
	return nr;
}

/* Check that every address is hashed: then its upper half is zero. */
static void expect_hashed(const char *trace)
{
	while ((trace = strstr(trace, "work="))) {
		trace += strlen("work=");
		expect(*trace == '(' || sizeof(long) < 8 || !strncmp(trace, "00000000", 8),
		       "%.20s", trace);
	}
}

/* Check the trace of a process that hashes eight blocks and exits. */
static void expect_trace(const char *trace)
{
	expect(count_lines(trace, "fairwq_batch", in_trace("create")) == 1, "create");
	expect(count_lines(trace, "fairwq_queue", in_trace("work=")) == 8, "queue");
	expect(count_lines(trace, "fairwq_queue", HASHER) == 8, "queue");
	expect(count_lines(trace, "fairwq_start", in_trace("work=")) == 8, "start");
	expect(count_lines(trace, "fairwq_start", HASHER MINE " wait=") == 8, "start");
	expect(count_lines(trace, "fairwq_end", in_trace("work=")) == 8, "end");
	expect(count_lines(trace, "fairwq_end", HASHER MINE " run=") == 8, "end");
	expect(count_lines(trace, "fairwq_batch", in_trace("dispose")) == 1, "dispose");
	expect(count_lines(trace, "fairwq_batch", in_trace("release")) == 1, "release");
	expect(count_lines(trace, "fairwq_runner", "pool=fairhash runner=") >= 2, "runner");
	expect(count_lines(trace, "fairwq_runner", " kick") >= 1, "kick");
	expect(count_lines(trace, "fairwq_runner", " idle") >= 1, "idle");
	expect_hashed(trace);
	if (!passed)
		printf("# the trace:\n%s", trace);
}

static void tracepoints_tell(void)
{
	char *trace = malloc(TEXT_MAX);

	if (!mount_tracefs())
		goto out;
	expect(trace_set("trace", "\n"), "empty the trace");
	expect(trace_set("events/fairwq/enable", "1"), "switch on");
	hash_and_leave();
	expect(trace_set("events/fairwq/enable", "0"), "switch off");
	expect(read_pieces(TRACEFS "/trace", trace, 65536) > 0, "no trace");
	expect_trace(trace);
	trace_set("trace", "\n");
out:
	free(trace);
}

static void traced_under_load(void)
{
	if (!mount_tracefs())
		return;
	begin_load();
	for (int i = 0; i < 20; i++) {
		expect(trace_set("events/fairwq/enable", "1"), "switch on");
		usleep(2000);
		expect(trace_set("events/fairwq/enable", "0"), "switch off");
	}
	end_load();
	trace_set("trace", "\n");
}

/* -------------------------------------------------------- the pool goes -- */

static int fds[ARRAY_SIZE(files)];

static void open_all(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		fds[i] = open(pool_path(files[i].name),
			      (files[i].mode == 0400 ? O_RDONLY : O_RDWR) | O_CLOEXEC);
		expect(fds[i] >= 0, "%s", files[i].name);
	}
}

/* Read the open files over and over while the pool goes. */
static void *read_open_files(void *arg)
{
	char *text = malloc(65536);

	(void)arg;
	while (!load.stop) {
		for (size_t i = 0; i < ARRAY_SIZE(files); i++)
			pread(fds[i], text, 65536, 0);
	}
	free(text);
	return NULL;
}

static void expect_gone(void)
{
	char text[64];

	expect_error(access(POOL, F_OK), ENOENT);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		expect_error(pread(fds[i], text, sizeof(text), 0), EIO);
		if (files[i].mode == 0600)
			expect_error(write(fds[i], "1", 1), EIO);
		close(fds[i]);
	}
}

static void load_module_again(void)
{
	int fd = open(MODULE_FILE, O_RDONLY | O_CLOEXEC);

	expect(!syscall(SYS_finit_module, fd, "", 0), "load %s", MODULE);
	close(fd);
	expect(!access(POOL, F_OK), "no %s", POOL);
}

/* Check that files which are open when their pool goes give an error, and no crash. */
static void pool_goes_under_its_readers(void)
{
	pthread_t reader;

	if (access(MODULE_FILE, R_OK)) {
		skipped = "no module to load again";
		return;
	}
	open_all();
	load.stop = false;
	expect(!pthread_create(&reader, NULL, read_open_files, NULL), "thread");
	usleep(20000);			/* so that reads are under way; any time will do */
	expect(!syscall(SYS_delete_module, MODULE, O_NONBLOCK), "unload %s", MODULE);
	usleep(20000);
	load.stop = true;
	pthread_join(reader, NULL);
	expect_gone();
	load_module_again();
}

/* ------------------------------------------------------------------ main -- */

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
#define CASE(name) { #name, name }
	CASE(version_is_that_of_the_module),
	CASE(folder_is_complete),
	CASE(closed_to_others),
	CASE(summary_has_its_lines),
	CASE(tables_have_their_columns),
	CASE(row_of_a_client),
	CASE(histograms_on_demand),
	CASE(read_in_small_pieces),
	CASE(rubbish_for_max_active),
	CASE(rubbish_for_policy),
	CASE(rubbish_for_slice_us),
	CASE(rubbish_for_low_turns),
	CASE(rubbish_for_hung_ms),
	CASE(rubbish_for_reset),
	CASE(rubbish_for_histograms),
	CASE(tables_take_no_writes),
	CASE(good_values_of_max_active),
	CASE(good_values_of_slice_us),
	CASE(good_values_of_low_turns),
	CASE(good_values_of_hung_ms),
	CASE(good_values_of_policy),
	CASE(knob_kept_open),
	CASE(reset_zeroes_the_counters),
	CASE(policy_switched_under_load),
	CASE(max_active_changed_under_load),
	CASE(slice_changed_under_load),
	CASE(reset_under_load),
	CASE(all_read_under_load),
	CASE(reader_loses_no_wakeup),
	CASE(service_and_stay_are_shown),
	CASE(tracepoints_are_there),
	CASE(tracepoints_tell),
	CASE(traced_under_load),
	CASE(pool_goes_under_its_readers),
};

/* Check that the module has found nothing wrong with itself during the case. */
static void expect_no_complaint(void)
{
	static const char * const complaints[] = { "leaks", "hung" };

	wait_until(is_quiet());
	for (size_t i = 0; i < ARRAY_SIZE(complaints); i++)
		expect(number_of("summary", complaints[i]) == 0, "%s", complaints[i]);
}

static bool run_case(int i)
{
	ktap_case_begin();
	cases[i].run();
	expect_no_complaint();
	return ktap_case_end(i + 1, cases[i].name);
}

int main(void)
{
	bool all_ok = true;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = i * 167 >> 3;
	prctl(PR_SET_NAME, "operator");
	ktap_begin(ARRAY_SIZE(cases));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		all_ok = run_case(i) && all_ok;
	umount2(TRACEFS, MNT_DETACH);
	return !all_ok;
}
