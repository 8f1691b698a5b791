// SPDX-License-Identifier: GPL-2.0
/*
 * Fairhash: check the answers of /dev/fairhash to good calls, and to bad ones.
 *
 * Needs: fairhash
 *
 * The output is KTAP. The expected digests come from a second SHA-256, which is
 * checked against published answers first.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ktap.h"
#include "sha256.h"

#define DEVICE		"/dev/fairhash"
#define BATCHES		"/sys/kernel/debug/fairwq/fairhash/batches"
#define MAX_WRITE	1048576U
#define HEX_LEN		64
#define LINE_LEN	(HEX_LEN + 1)
#define MANY		64
/* Descriptors that keep the pool busy, each with a full backlog. */
#define HOLDERS		3
/* Tries to win a race. Usually the first one wins. */
#define ROUNDS		50
/* Tries to win a race against a timer, whose CPU may be busy with other work. */
#define TIMER_ROUNDS	2000
/* Waits of 100 ms for an event, before it is missing. */
#define PATIENCE	600

/* --------------------------------------------------------------- helpers -- */

static int open_device(int flags)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC | flags);

	if (fd < 0) {
		printf("Bail out! cannot open %s: %s\n", DEVICE, strerror(errno));
		exit(1);
	}
	return fd;
}

static void set_nonblock(int fd, bool on)
{
	fcntl(fd, F_SETFL, on ? O_NONBLOCK : 0);
}

/* Bytes that differ from place to place: one buffer for all cases. */
static unsigned char pattern[2 * MAX_WRITE];

static void fill_pattern(void)
{
	unsigned int x = 1;

	for (size_t i = 0; i < sizeof(pattern); i++) {
		x = x * 1664525 + 1013904223;
		pattern[i] = x >> 24;
	}
}

/* Read a digest from @fd, and check that it is that of @data. */
static void expect_digest(int fd, const void *data, size_t len)
{
	char want[LINE_LEN], got[LINE_LEN + 1] = "";
	ssize_t n = read(fd, got, sizeof(got));

	sha256_hex(want, data, len);
	expect(n == LINE_LEN, "read gave %zd", n);
	expect(!memcmp(got, want, HEX_LEN), "digest of %zu bytes: %.64s, not %s", len, got, want);
	expect(got[HEX_LEN] == '\n', "no newline");
}

static void write_all(int fd, const void *data, size_t len)
{
	ssize_t n = write(fd, data, len);

	expect(n == (ssize_t)len, "wrote %zd of %zu", n, len);
}

/* Fill the backlogs of some descriptors, so that the next blocks must wait. */
static void hold_pool(int fds[HOLDERS])
{
	for (int i = 0; i < HOLDERS; i++) {
		fds[i] = open_device(O_NONBLOCK);
		while (write(fds[i], pattern, MAX_WRITE) > 0)
			;
		expect(errno == EAGAIN, "full backlog");
	}
}

static void release_pool(int fds[HOLDERS])
{
	for (int i = 0; i < HOLDERS; i++)
		close(fds[i]);
}

/* ----------------------------------------------------------------- cases -- */

static void published_answers(void)
{
	static const struct {
		const char *text, *hex;
	} answers[] = {
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	};
	char hex[LINE_LEN];
	int fd = open_device(0);

	for (int i = 0; i < 2; i++) {
		sha256_hex(hex, answers[i].text, strlen(answers[i].text));
		expect(!strcmp(hex, answers[i].hex), "the test's own SHA-256 is wrong");
		write_all(fd, answers[i].text, strlen(answers[i].text));
		expect_digest(fd, answers[i].text, strlen(answers[i].text));
	}
	close(fd);
}

/* Check that blocks of many lengths are hashed in the order of the writes. */
static void many_writes_one_digest(void)
{
	int fd = open_device(0);
	size_t pos = 0, len = 1;

	while (pos < sizeof(pattern)) {
		if (len > sizeof(pattern) - pos)
			len = sizeof(pattern) - pos;
		write_all(fd, pattern + pos, len);
		pos += len;
		len = len * 7 % 60013 + 1;
	}
	expect_digest(fd, pattern, sizeof(pattern));
	close(fd);
}

static void descriptor_is_used_again(void)
{
	int fd = open_device(0);

	for (int i = 0; i < 20; i++) {
		write_all(fd, pattern + i, 1000 * i + 1);
		expect_digest(fd, pattern + i, 1000 * i + 1);
	}
	close(fd);
}

static void empty_write(void)
{
	int fd = open_device(0);

	write_all(fd, "", 0);
	expect_digest(fd, "", 0);
	write_all(fd, "ab", 2);
	write_all(fd, "", 0);
	write_all(fd, "c", 1);
	expect_digest(fd, "abc", 3);
	close(fd);
}

static void read_before_any_write(void)
{
	char line[LINE_LEN];
	int fd = open_device(0);

	expect_error(read(fd, line, sizeof(line)), ENODATA);
	write_all(fd, "abc", 3);
	expect_digest(fd, "abc", 3);
	expect_error(read(fd, line, sizeof(line)), ENODATA);
	close(fd);
}

static void write_over_the_limit(void)
{
	int fd = open_device(0);

	expect_error(write(fd, pattern, MAX_WRITE + 1), EMSGSIZE);
	write_all(fd, pattern, MAX_WRITE);
	expect_error(write(fd, pattern, MAX_WRITE + 1), EMSGSIZE);
	expect_digest(fd, pattern, MAX_WRITE);
	close(fd);
}

static void partial_reads(void)
{
	char want[LINE_LEN], got[LINE_LEN] = "";
	int fd = open_device(0);

	sha256_hex(want, "abc", 3);
	write_all(fd, "abc", 3);
	for (size_t pos = 0; pos < LINE_LEN; pos += 13)
		expect(read(fd, got + pos, 13) == 13, "at %zu", pos);
	expect(!memcmp(got, want, HEX_LEN), "got %.64s", got);
	close(fd);
}

static void write_while_partly_read(void)
{
	char piece[LINE_LEN];
	int fd = open_device(0);

	write_all(fd, "abc", 3);
	expect(read(fd, piece, 1) == 1, "first piece");
	expect_error(write(fd, "d", 1), EBUSY);
	expect(read(fd, piece, LINE_LEN) == LINE_LEN - 1, "the rest");
	write_all(fd, "d", 1);
	expect_digest(fd, "d", 1);
	close(fd);
}

static void bad_pointers(void)
{
	void *bad = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open_device(0);

	expect_error(write(fd, bad, 100), EFAULT);
	expect_error(read(fd, bad, 100), ENODATA);
	write_all(fd, "abc", 3);
	expect_error(write(fd, bad, 100), EFAULT);
	expect_error(read(fd, bad, 100), EFAULT);
	expect_digest(fd, "abc", 3);
	close(fd);
	munmap(bad, 4096);
}

/*
 * Write and read without blocking while others have full backlogs. Return:
 * false if the pool was through with all of them before the read, because this
 * process was held up.
 */
static bool nonblocking_once(void)
{
	char line[LINE_LEN];
	int fd, holders[HOLDERS];
	size_t blocks = 0;
	ssize_t n;

	hold_pool(holders);
	fd = open_device(O_NONBLOCK);
	while (write(fd, pattern, MAX_WRITE) > 0)
		blocks++;
	expect(errno == EAGAIN, "write into a full backlog");
	expect(blocks >= 1, "%zu blocks were taken", blocks);
	n = read(fd, line, sizeof(line));
	expect(n == LINE_LEN || (n < 0 && errno == EAGAIN), "read gave %zd", n);
	release_pool(holders);
	set_nonblock(fd, false);
	if (n < 0)
		expect(read(fd, line, sizeof(line)) == LINE_LEN, "digest");
	close(fd);
	return n < 0;
}

static void nonblocking(void)
{
	int round = 0;

	while (round < ROUNDS && !nonblocking_once())
		round++;
	expect(round < ROUNDS, "no read would have blocked");
}

static short poll_now(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT };

	poll(&p, 1, 0);
	return p.revents;
}

/* Wait for a digest, in PATIENCE waits of 100 ms: one counts so, if the guest is stopped. */
static bool digest_comes(int fd)
{
	struct pollfd in = { .fd = fd, .events = POLLIN };
	int waits = PATIENCE;

	while (waits && !poll(&in, 1, 100))
		waits--;
	return in.revents == POLLIN;
}

/*
 * Check poll() right after a write: only POLLOUT until the block is hashed,
 * then POLLIN, too. Return: true if the first state was seen.
 */
static bool poll_sees_it_outstanding(int fd)
{
	short revents;

	write_all(fd, pattern, MAX_WRITE);
	revents = poll_now(fd);
	expect(digest_comes(fd), "hashed");
	expect_digest(fd, pattern, MAX_WRITE);
	return revents == POLLOUT;
}

/* A descriptor whose backlog is full has no digest, unless this process was held up. */
static bool poll_sees_a_full_backlog(void)
{
	int holders[HOLDERS];
	short revents;

	hold_pool(holders);
	revents = poll_now(holders[HOLDERS - 1]);
	release_pool(holders);
	return !(revents & POLLIN);
}

static void poll_tells(void)
{
	int fd = open_device(0), round = 0;
	short revents = poll_now(fd);
	char piece;

	expect(revents == POLLOUT, "fresh: %d", revents);
	while (round < ROUNDS && !poll_sees_it_outstanding(fd))
		round++;
	expect(round < ROUNDS, "never outstanding");
	for (round = 0; round < ROUNDS && !poll_sees_a_full_backlog(); round++)
		;
	expect(round < ROUNDS, "full backlog");
	write_all(fd, "abc", 3);
	expect(read(fd, &piece, 1) == 1, "first piece");
	revents = poll_now(fd);
	expect(revents == POLLIN, "partly read: %d", revents);
	close(fd);
}

static atomic_int signals;

static void on_signal(int sig)
{
	(void)sig;
	signals++;
}

/* Raise a signal every @usec from now on; 0: none. */
static void signals_every(int usec, int flags)
{
	struct itimerval timer = { .it_value.tv_usec = usec, .it_interval.tv_usec = usec };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

/* Read a digest, with as many tries as signals need. Return: the interrupted tries. */
static int read_through_signals(int fd, const void *data, size_t len)
{
	char want[LINE_LEN], got[LINE_LEN];
	int interrupted = 0;
	ssize_t n;

	while ((n = read(fd, got, sizeof(got))) < 0 && errno == EINTR)
		interrupted++;
	sha256_hex(want, data, len);
	expect(n == LINE_LEN && !memcmp(got, want, HEX_LEN), "a signal cost us the digest");
	return interrupted;
}

static void signal_while_reading(void)
{
	int fd = open_device(0), interrupted = 0;

	signals_every(1000, 0);
	for (int round = 0; round < TIMER_ROUNDS && !interrupted; round++) {
		while (write(fd, pattern, MAX_WRITE) < 0 && errno == EINTR)
			;
		interrupted = read_through_signals(fd, pattern, MAX_WRITE);
	}
	signals_every(0, 0);
	expect(interrupted, "no read was interrupted");
	close(fd);
}

/* Check that with SA_RESTART the wait goes on by itself. */
static void signal_and_restart(void)
{
	char want[LINE_LEN], got[LINE_LEN];
	int fd = open_device(0), seen = 0;

	sha256_hex(want, pattern, MAX_WRITE);
	signals_every(1000, SA_RESTART);
	for (int round = 0; round < TIMER_ROUNDS && !seen; round++) {
		write_all(fd, pattern, MAX_WRITE);
		signals = 0;
		expect(read(fd, got, sizeof(got)) == LINE_LEN, "interrupted");
		seen = signals;
		expect(!memcmp(got, want, HEX_LEN), "digest");
	}
	signals_every(0, 0);
	expect(seen, "no signal came while it waited");
	close(fd);
}

/* Fill the backlog until a write is interrupted. The accepted bytes must be hashed. */
static void signal_while_writing(void)
{
	unsigned char *copy = malloc(ROUNDS * MAX_WRITE);
	int fd = open_device(0), taken = 0;

	if (!copy) {
		printf("Bail out! no memory\n");
		exit(1);
	}
	for (int i = 0; i < ROUNDS; i++)
		memcpy(copy + i * MAX_WRITE, pattern, MAX_WRITE);
	signals_every(1000, 0);
	for (int round = 0; round < TIMER_ROUNDS; round++) {
		if (write(fd, pattern, MAX_WRITE) != MAX_WRITE)
			break;
		if (++taken < ROUNDS)
			continue;
		read_through_signals(fd, copy, taken * MAX_WRITE);
		taken = 0;
		errno = 0;
	}
	expect(errno == EINTR, "no write was interrupted");
	signals_every(0, 0);
	if (taken)
		read_through_signals(fd, copy, taken * MAX_WRITE);
	free(copy);
	close(fd);
}

/* Check whether the table of batches has a batch of this process. */
static bool batch_exists(void)
{
	char line[512], name[64], comm[32] = "";
	FILE *f = fopen("/proc/self/comm", "r");
	bool found = false;

	if (!f || fscanf(f, "%31s", comm) != 1)
		expect(0, "no name");
	if (f)
		fclose(f);
	snprintf(name, sizeof(name), "%s-%d", comm, getpid());
	f = fopen(BATCHES, "r");
	expect(f, "no %s", BATCHES);
	while (f && fgets(line, sizeof(line), f))
		found = found || strstr(line, name);
	if (f)
		fclose(f);
	return found;
}

/* Wait until the batch is gone, after its last block. Return: false if it stays. */
static bool batch_goes(void)
{
	for (int i = 0; i < PATIENCE; i++) {
		if (!batch_exists())
			return true;
		usleep(100000);
	}
	return false;
}

static void batch_of_a_process(void)
{
	int first, second;

	expect(batch_goes(), "left over from the cases before");
	first = open_device(0);
	second = open_device(0);
	expect(batch_exists(), "two descriptors are open");
	close(first);
	expect(batch_exists(), "one descriptor is open");
	close(second);
	expect(batch_goes(), "none is open");
}

static void close_with_writes_outstanding(void)
{
	int holders[HOLDERS];

	hold_pool(holders);
	release_pool(holders);
	expect(batch_goes(), "the blocks of closed descriptors are still there");
}

/* Kill a writer, so that the kernel must close its descriptors. */
static void killed_with_writes_outstanding(void)
{
	int ready[2], holders[HOLDERS];
	char c;
	pid_t pid;

	expect(!pipe(ready), "pipe");
	fflush(stdout);
	pid = fork();
	if (!pid) {
		hold_pool(holders);
		set_nonblock(holders[0], false);
		expect(write(ready[1], "x", 1) == 1, "ready");
		for (;;)
			write_all(holders[0], pattern, MAX_WRITE);
	}
	expect(read(ready[0], &c, 1) == 1, "child");
	kill(pid, SIGKILL);
	expect(waitpid(pid, NULL, 0) == pid, "killed");
	close(ready[0]);
	close(ready[1]);
}

static void rmmod_while_open(void)
{
	int fd = open_device(0);

	expect_error(syscall(SYS_delete_module, "fairhash", O_NONBLOCK), EWOULDBLOCK);
	write_all(fd, "abc", 3);
	expect_digest(fd, "abc", 3);
	close(fd);
}

static void many_descriptors(void)
{
	int fds[MANY];

	for (int i = 0; i < MANY; i++)
		fds[i] = open_device(0);
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < MANY; i++)
			write_all(fds[i], pattern + i + round * 5000, 5000);
	}
	for (int i = MANY - 1; i >= 0; i--) {
		expect_digest(fds[i], pattern + i, 20000);
		close(fds[i]);
	}
}

/* Read and write one descriptor at once. Every digest must be of whole writes. */
static void reader_and_writer_at_once(void)
{
	char line[LINE_LEN];
	int fd = open_device(0), digests = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		for (int i = 0; i < 2000; i++) {
			while (write(fd, pattern, 4096) < 0 && errno == EBUSY)
				;
		}
		_exit(0);
	}
	while (waitpid(pid, NULL, WNOHANG) == 0) {
		ssize_t n = read(fd, line, sizeof(line));

		expect(n == LINE_LEN || errno == ENODATA, "read gave %zd", n);
		digests += n == LINE_LEN;
	}
	close(fd);
	printf("# %d digests\n", digests);
}

/*
 * Close with a backlog, and do not wait. This case is the last one, so that the
 * module is removed while blocks are outstanding.
 */
static void backlog_left_for_rmmod(void)
{
	int holders[HOLDERS];

	hold_pool(holders);
	release_pool(holders);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
#define CASE(name) { #name, name }
	CASE(published_answers),
	CASE(many_writes_one_digest),
	CASE(descriptor_is_used_again),
	CASE(empty_write),
	CASE(read_before_any_write),
	CASE(write_over_the_limit),
	CASE(partial_reads),
	CASE(write_while_partly_read),
	CASE(bad_pointers),
	CASE(nonblocking),
	CASE(poll_tells),
	CASE(signal_while_reading),
	CASE(signal_and_restart),
	CASE(signal_while_writing),
	CASE(batch_of_a_process),
	CASE(close_with_writes_outstanding),
	CASE(killed_with_writes_outstanding),
	CASE(rmmod_while_open),
	CASE(many_descriptors),
	CASE(reader_and_writer_at_once),
	CASE(backlog_left_for_rmmod),
};

int main(void)
{
	const int nr = sizeof(cases) / sizeof(*cases);
	bool all_ok = true;

	fill_pattern();
	ktap_begin(nr);
	for (int i = 0; i < nr; i++) {
		ktap_case_begin();
		cases[i].run();
		all_ok = ktap_case_end(i + 1, cases[i].name) && all_ok;
	}
	return !all_ok;
}
