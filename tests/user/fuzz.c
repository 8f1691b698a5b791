// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz: random calls to all that user space can reach. These are the knobs and
 * the files in debugfs, and the file operations of /dev/fairhash.
 *
 * Needs: fairhash
 *
 * The output is KTAP. The environment, and so the kernel's command line, may
 * set the seed FUZZ_SEED, and FUZZ_ROUNDS, the number of rounds of every
 * process. With one seed each process repeats its calls. The scheduler decides
 * the order between them.
 *
 * If one process alone has a file, a model predicts the answer of each call. If
 * several share it, each call must return, with an answer that is possible.
 * Other faults are for the checks of the kernel to find.
 *
 * With the argument "clients" it only uses the device and the files, which may
 * come and go meanwhile. It runs until it is killed.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ktap.h"
#include "sha256.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))

#define FOLDER		"/sys/kernel/debug/fairwq"
#define POOL		FOLDER "/fairhash"
#define DEVICE		"/dev/fairhash"
#define MODULE		"fairhash"
#define MODULE_FILE	"/modules/fairhash.ko"
#define MAX_WRITE	1048576U
#define LINE_LEN	65U
#define PAGE		4096U
/* Most complaints that a process prints. */
#define MAX_COMPLAINTS	5

static unsigned long long seed;
static unsigned long rounds;

/* --------------------------------------------------------------- chance -- */

static __thread uint64_t chance;

static uint32_t draw(void)
{
	chance = chance * 6364136223846793005ULL + 1442695040888963407ULL;
	return chance >> 33;
}

static uint32_t below(uint32_t n)
{
	return n ? draw() % n : 0;
}

/* Seed this process or thread. @nr: its number, the same in each run. */
static void chance_begin(unsigned int nr)
{
	chance = seed * 2654435761U + nr;
	for (int i = 0; i < 8; i++)
		draw();
}

/* Return a length, at most @max: often a small one, or one at a boundary. */
static size_t any_length(size_t max)
{
	static const size_t special[] = { 0, 1, 31, 32, 55, 56, 63, 64, 65, 4095, 4096, 4097 };
	size_t len = special[below(ARRAY_SIZE(special))];

	if (below(3))
		len = below(1U << below(17));
	return len > max ? max : len;
}

/* ------------------------------------------------------------------ bytes -- */

static unsigned char bytes[2 * MAX_WRITE];	/* random */
static unsigned char *edge;		/* end of a page, with no page behind it */

static void bytes_begin(void)
{
	unsigned char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = draw();
	mprotect(pages + PAGE, PAGE, PROT_NONE);
	edge = pages + PAGE;
}

/* Return an address at which less than @len bytes can be read or written. */
static void *bad_address(size_t len)
{
	switch (below(4)) {
	case 0:
		return NULL;
	case 1:
		return edge;
	case 2:
		return (void *)-4096L;	/* the kernel's */
	default:
		return edge - below(len < PAGE ? len : PAGE);
	}
}

static int complaints;

#define complain(cond, ...) do {					\
	if (!(cond) && complaints++ < MAX_COMPLAINTS)			\
		expect(cond, __VA_ARGS__);				\
} while (0)

/* ---------------------------------------------------- processes that fuzz -- */

#define MAX_WORKERS	16

static pid_t workers[MAX_WORKERS];
static int nr_workers;

static void start(void (*fn)(void), unsigned int nr)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	expect(pid >= 0, "fork");
	if (pid) {
		workers[nr_workers++] = pid;
		return;
	}
	chance_begin(nr);
	passed = true;
	fn();
	fflush(stdout);
	_exit(!passed);
}

static void finish(void)
{
	while (nr_workers) {
		int status = -1;

		expect(waitpid(workers[--nr_workers], &status, 0) > 0, "waitpid");
		expect(status == 0, "a process has found something, status %#x", status);
	}
}

/* -------------------------------------------------------- a model of knobs -- */

static const char * const knobs[] = {
	"max_active", "policy", "slice_us", "low_turns", "hung_ms", "reset",
};

static const char * const policies[] = { "round_robin", "fair_time" };

/* Parse a number, as the kernel's kstrtouint() with base 0 does. */
static bool parse_number(const char *s, unsigned long *value)
{
	int base = 10, digits = 0;
	uint64_t n = 0;

	if (*s == '+')
		s++;
	if (*s == '0') {
		base = tolower(s[1]) == 'x' && isxdigit((unsigned char)s[2]) ? 16 : 8;
		s += base == 16 ? 2 : 0;
	}
	for (; isxdigit((unsigned char)*s); s++, digits++) {
		int digit = isdigit((unsigned char)*s) ? *s - '0' : tolower(*s) - 'a' + 10;

		if (digit >= base)
			break;
		n = n * base + digit;
		if (n > UINT32_MAX)
			return false;
	}
	*value = n;
	return digits && (!*s || (*s == '\n' && !s[1]));
}

/* Check for a space as the kernel does: also the no-break space of Latin 1. */
static bool is_space(unsigned char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r') || c == 0xa0;
}

/* Check whether a knob must take @data. If so, set @shown to its text after that. */
static bool knob_takes(const char *knob, const void *data, size_t len, char shown[32])
{
	char text[32], *s = text;
	unsigned long value;

	if (!len || len >= sizeof(text) || memchr(data, 0, len))
		return false;
	memcpy(text, data, len);
	while (len && is_space(text[len - 1]))
		len--;
	text[len] = '\0';
	while (is_space(*s))
		s++;
	for (size_t i = 0; !strcmp(knob, "policy") && i < ARRAY_SIZE(policies); i++)
		if (!strcmp(s, policies[i]))
			return snprintf(shown, 32, "%s\n", s) > 0;
	if (!strcmp(knob, "policy"))
		return false;
	if (!strcmp(knob, "reset"))
		return !strcmp(s, "1");
	if (!parse_number(s, &value))
		return false;
	snprintf(shown, 32, "%lu\n", value);
	return !strcmp(knob, "max_active") ? value >= 1 && value <= 512 :
	       !strcmp(knob, "low_turns") ? value != 1 && value <= 200 :
	       !strcmp(knob, "slice_us") ? value <= 10000 : true;
}

/* Write a number in any spelling, right or wrong. */
static size_t any_number(char *text, size_t size)
{
	static const char * const sign[] = { "", "", "", "+", "-", "++" };
	static const char * const space[] = { "", "", " ", "\n", " \t", "\xa0", "\v" };
	static const unsigned long special[] = {
		0, 1, 2, 8, 50, 511, 512, 513, 9999, 10000, 10001, 60000,
		4294967295UL, 4294967296UL, 18446744073709551615UL,
	};
	static const char * const form[] = {
		"%s%s%lu%s", "%s%s%#lx%s", "%s%s%#lo%s", "%s%s0X%lX%s",
	};
	unsigned long n = below(2) ? special[below(ARRAY_SIZE(special))] : below(20000);

	return snprintf(text, size, form[below(ARRAY_SIZE(form))], space[below(7)],
			sign[below(6)], n, space[below(7)]);
}

/*
 * Make a text for a knob. It is not a short hung_ms, because the module would
 * then rightly report that an item hangs.
 */
static size_t any_text(const char *knob, char text[64])
{
	unsigned long value;
	char shown[32];
	size_t len;

	do {
		len = any_number(text, 64);
		if (below(3) == 0)
			len = snprintf(text, 64, "%s%s", policies[below(ARRAY_SIZE(policies))],
				       below(2) ? "" : "\n");
		if (below(3) == 0)
			text[below(len + 1)] = draw();
		if (below(8) == 0)
			len = below(40), memcpy(text, bytes + below(MAX_WRITE), 40);
		if (below(16) == 0)
			len = snprintf(text, 64, "1");
	} while (!strcmp(knob, "hung_ms") && knob_takes(knob, text, len, shown) &&
		 parse_number(shown, &value) && value && value < 60000);
	return len;
}

/* ------------------------------------------------------------------ files -- */

static const char *pool_path(const char *name)
{
	static __thread char path[128];

	snprintf(path, sizeof(path), "%s/%s", POOL, name);
	return path;
}

static ssize_t slurp(const char *name, char *text, size_t size)
{
	int fd = open(pool_path(name), O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n;
}

/* Write to a knob, and compare its answer and its text after that with the model. */
static void try_knob(const char *knob)
{
	char text[64], before[64], after[64], want[32] = "";
	size_t len = any_text(knob, text);
	bool takes = knob_takes(knob, text, len, want), bad = below(8) == 0;
	int fd = open(pool_path(knob), O_WRONLY | O_CLOEXEC);
	ssize_t n;

	slurp(knob, before, sizeof(before));
	n = write(fd, bad ? bad_address(len) : text, len);
	close(fd);
	slurp(knob, after, sizeof(after));
	if (bad) {
		complain(n == -1 && (errno == EFAULT || errno == EINVAL), "bad address: %zd", n);
		takes = false;
	} else if (takes) {
		complain(n == (ssize_t)len, "%s: '%.*s' is not taken", knob, (int)len, text);
	} else {
		complain(n == -1 && errno == EINVAL, "%s: '%.*s': %zd", knob, (int)len, text, n);
	}
	complain(!strcmp(after, takes && *want ? want : before), "%s shows %s after '%.*s'",
		 knob, after, (int)len, text);
}

static void fuzz_knobs(void)
{
	for (unsigned long i = 0; i < rounds; i++)
		try_knob(knobs[below(ARRAY_SIZE(knobs))]);
}

static const char * const files[] = {
	"summary", "batches", "runners", "dump", "max_active", "policy",
	"slice_us", "low_turns", "hung_ms", "reset", "../version",
};

/* Check that a file has only text, and no stray bytes of memory. */
static void expect_text(const char *file, const unsigned char *text, ssize_t len)
{
	for (ssize_t i = 0; i < len; i++)
		if (!isprint(text[i]) && text[i] != '\n') {
			complain(false, "%s: byte %#x at %zd", file, text[i], i);
			return;
		}
}

static void write_knob(const char *file, int fd)
{
	struct iovec iov[2];
	char text[64];
	size_t len;

	/* hung_ms only gets whole texts, because a part of one may be a short time. */
	len = any_text(!strcmp(file, "hung_ms") ? "hung_ms" : "policy", text);
	iov[0] = (struct iovec) { text, len };
	iov[1] = (struct iovec) { bad_address(len), len };
	if (!strcmp(file, "hung_ms"))
		write(fd, text, len);
	else if (below(2))
		pwrite(fd, text, len, (off_t)draw() << below(32));
	else
		writev(fd, iov, 1 + below(2));
}

/* Make one call of some kind. Its answer does not matter. */
static void poke_file(const char *file, int fd)
{
	static const int whence[] = { SEEK_SET, SEEK_CUR, SEEK_END, SEEK_DATA, SEEK_HOLE, 99 };
	static __thread unsigned char text[8192];
	struct pollfd pfd = { fd, draw(), 0 };
	void *map;

	switch (below(10)) {
	case 0 ... 2:
		expect_text(file, text, read(fd, text, any_length(sizeof(text))));
		break;
	case 3:
		expect_text(file, text, pread(fd, text, any_length(sizeof(text)), below(100000)));
		break;
	case 4:
		lseek(fd, ((off_t)draw() << below(33)) - below(1000), whence[below(6)]);
		break;
	case 5:
		write_knob(file, fd);
		break;
	case 6:
		if (read(fd, bad_address(100), 100) > 100)
			complain(false, "%s: more than was asked for", file);
		break;
	case 7:
		poll(&pfd, 1, 0);
		complain(ioctl(fd, draw(), edge) < 0, "%s: an ioctl is taken", file);
		break;
	case 8:
		map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
		complain(map == MAP_FAILED, "%s is mapped", file);
		break;
	default:
		close(dup(fd));
		ftruncate(fd, draw());
	}
}

/* Make some calls on one of the files, which may not exist. */
static void poke_files(void)
{
	static const int flags[] = { O_RDONLY, O_RDONLY, O_RDWR, O_WRONLY, O_RDWR | O_NONBLOCK,
				     O_RDWR | O_TRUNC, O_WRONLY | O_APPEND, O_PATH };
	const char *file = files[below(ARRAY_SIZE(files))];
	int fd = open(pool_path(file), flags[below(ARRAY_SIZE(flags))] | O_CLOEXEC);

	for (unsigned int i = below(8); fd >= 0 && i; i--)
		poke_file(file, fd);
	if (fd >= 0)
		close(fd);
}

static void fuzz_files(void)
{
	for (unsigned long i = 0; i < rounds; i++)
		poke_files();
}

/* ---------------------------------------------- descriptors with a model -- */

#define MODEL_BYTES	65536U
#define MODELS		6

/* A descriptor that one process alone has, so that its answers can be predicted. */
struct model {
	int fd;
	bool nonblock, started, made;	/* made: a digest, which is not all read */
	size_t len, pos;		/* bytes written; bytes of the digest read */
	char hex[LINE_LEN + 1];
	unsigned char data[MODEL_BYTES];
};

/* Reset to the state before the first write, and after the last byte of a digest. */
static void model_renew(struct model *model)
{
	model->started = false;
	model->made = false;
	model->len = 0;
	model->pos = 0;
}

static void model_open(struct model *model)
{
	model->nonblock = below(4) == 0;
	model->fd = open(DEVICE, O_RDWR | O_CLOEXEC | (model->nonblock ? O_NONBLOCK : 0));
	complain(model->fd >= 0, "open");
	model_renew(model);
}

/* Check that a write was refused with @error, unless a signal came first. */
static void model_refuses(ssize_t n, int error, const char *what)
{
	complain(n == -1 && (errno == error || errno == EINTR), "%s: %zd", what, n);
}

static void model_wrote(struct model *model, ssize_t n, const unsigned char *data, size_t len)
{
	if (model->made) {
		model_refuses(n, EBUSY, "write to what is partly read");
		return;
	}
	if (n == -1 && errno == EINTR)
		return;
	complain(n == (ssize_t)len, "write of %zu gave %zd", len, n);
	if (n != (ssize_t)len)
		return;
	memcpy(model->data + model->len, data, len);
	model->len += len;
	model->started = true;
}

static void model_write(struct model *model)
{
	size_t len = any_length(MODEL_BYTES - model->len);
	const unsigned char *data = bytes + below(MAX_WRITE);

	/* Sometimes write from the end of the last page. */
	if (len <= PAGE && below(4) == 0)
		data = memcpy(edge - len, data, len);
	model_wrote(model, write(model->fd, data, len), data, len);
}

static void model_write_bad(struct model *model)
{
	size_t len = 1 + below(PAGE), huge = MAX_WRITE + 1 + draw();

	if (below(2)) {
		/* The kernel itself may find a bad address, before the device. */
		complain(write(model->fd, bad_address(len), len) == -1 &&
			 (errno == EFAULT || errno == EINTR || (model->made && errno == EBUSY)),
			 "write from nowhere");
		return;
	}
	complain(write(model->fd, bytes, huge) == -1 &&
		 (errno == EMSGSIZE || errno == EFAULT || errno == EINVAL), "write of %zu", huge);
}

/* Note that there is a digest. It must be read before the next write. */
static void model_makes(struct model *model)
{
	if (model->made)
		return;
	sha256_hex(model->hex, model->data, model->len);
	model->hex[LINE_LEN - 1] = '\n';
	model->made = true;
	model->pos = 0;
}

static void model_read(struct model *model, bool bad)
{
	size_t len = (below(4) ? LINE_LEN : below(100)) + bad, left;
	char got[128];
	ssize_t n = read(model->fd, bad ? (void *)edge : got, len);

	if (n == -1 && (errno == EINTR || (errno == EAGAIN && model->nonblock)))
		return;
	if (!model->started) {
		model_refuses(n, ENODATA, "read before any write");
		return;
	}
	model_makes(model);
	if (bad) {
		model_refuses(n, EFAULT, "read to nowhere");
		return;
	}
	left = LINE_LEN - model->pos;
	complain(n == (ssize_t)(len < left ? len : left), "read of %zu gave %zd, %zu left",
		 len, n, left);
	if (n < 0)
		return;
	complain(!memcmp(got, model->hex + model->pos, n), "the digest of %zu bytes is wrong",
		 model->len);
	model->pos += n;
	if (model->pos == LINE_LEN)
		model_renew(model);
}

/* Try calls that the device does not have. */
static void model_misuse(struct model *model)
{
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	char byte = 0;

	complain(lseek(model->fd, draw(), SEEK_SET) == -1, "lseek");
	complain(pread(model->fd, &byte, 1, 0) == -1, "pread");
	complain(pwrite(model->fd, &byte, 1, 0) == -1, "pwrite");
	complain(ioctl(model->fd, draw(), &byte) == -1, "ioctl");
	complain(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, model->fd, 0) == MAP_FAILED, "mmap");
	complain(fsync(model->fd) == -1, "fsync");
	complain(sendfile(model->fd, zero, NULL, 10) == -1, "sendfile");
	complain(ftruncate(model->fd, 0) == -1, "ftruncate");
	close(zero);
}

static void model_step(struct model *model)
{
	struct pollfd pfd = { model->fd, POLLIN | POLLOUT, 0 };
	pid_t pid;

	switch (below(32)) {
	case 0:
		close(model->fd);	/* also with blocks outstanding */
		model_open(model);
		break;
	case 1:
		model->nonblock = !model->nonblock;
		fcntl(model->fd, F_SETFL, model->nonblock ? O_NONBLOCK : 0);
		break;
	case 2:
		if (poll(&pfd, 1, below(3)) >= 0)
			complain(!(pfd.revents & (POLLERR | POLLNVAL)), "poll %#x", pfd.revents);
		break;
	case 3:
		model_misuse(model);
		break;
	case 4:
		pid = below(8) ? -1 : fork();	/* the child has it, too, and exits */
		if (!pid)
			_exit(0);
		while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		break;
	case 5 ... 7:
		model_write_bad(model);
		break;
	case 8 ... 10:
		model_read(model, true);
		break;
	case 11 ... 20:
		model_read(model, false);
		break;
	default:
		model_write(model);
	}
}

static void on_alarm(int nr)
{
	(void)nr;
}

/* Raise signals from now on, about every millisecond. */
static void signals_begin(void)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = below(2) ? SA_RESTART : 0 };
	int us = 300 + below(3000);
	struct itimerval timer = { { 0, us }, { 0, us } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static void fuzz_device(void)
{
	static struct model models[MODELS];

	for (int i = 0; i < MODELS; i++)
		model_open(&models[i]);
	if (below(4))
		signals_begin();
	for (unsigned long i = 0; i < rounds && complaints < MAX_COMPLAINTS; i++)
		model_step(&models[below(MODELS)]);
	/* The exit of the process closes them. */
}

/* ----------------------------------------------- descriptors that are shared -- */

#define SHARED		3
#define SHARERS		4

static atomic_int shared_fd[SHARED];

/*
 * Make a call on a shared descriptor. It may close it under the reads of other
 * threads, and reuse the number for a new one.
 */
static void share_step(int fd)
{
	char line[LINE_LEN];
	struct pollfd pfd = { fd, POLLIN | POLLOUT, 0 };
	int new;

	switch (below(16)) {
	case 0:
		new = open(DEVICE, O_RDWR | (below(2) ? O_NONBLOCK : 0));
		if (new >= 0 && new != fd) {
			dup2(new, fd);
			close(new);
		}
		break;
	case 1:
		poll(&pfd, 1, below(2));
		break;
	case 2:
		fcntl(fd, F_SETFL, below(2) ? O_NONBLOCK : 0);
		break;
	case 3:
		write(fd, bytes, MAX_WRITE - below(3));
		break;
	case 4 ... 8:
		complain(read(fd, line, 1 + below(LINE_LEN)) >= 0 || errno == ENODATA ||
			 errno == EAGAIN || errno == EINTR, "read");
		break;
	default:
		complain(write(fd, bytes + below(MAX_WRITE), any_length(MAX_WRITE)) >= 0 ||
			 errno == EBUSY || errno == EAGAIN || errno == EINTR, "write");
	}
}

static void *share(void *arg)
{
	chance_begin(1000 + 100 * (uintptr_t)arg);
	for (unsigned long i = 0; i < rounds; i++)
		share_step(shared_fd[below(SHARED)]);
	return NULL;
}

static void fuzz_shared(void)
{
	pthread_t thread[SHARERS];

	for (int i = 0; i < SHARED; i++)
		shared_fd[i] = open(DEVICE, O_RDWR);
	signals_begin();
	for (uintptr_t i = 0; i < SHARERS; i++)
		pthread_create(&thread[i], NULL, share, (void *)i);
	for (int i = 0; i < SHARERS; i++)
		pthread_join(thread[i], NULL);
}

/* ------------------------------------------------------------------ cases -- */

/* Write to the knobs by one process, while others use the pool. */
static void knobs_take_what_they_should(void)
{
	for (int i = 0; i < 2; i++)
		start(fuzz_device, 10 + i);
	start(fuzz_knobs, 12);
	finish();
}

static void files_are_poked(void)
{
	for (int i = 0; i < 3; i++)
		start(fuzz_files, 20 + i);
	start(fuzz_device, 23);
	finish();
}

static void descriptors_answer_as_they_should(void)
{
	for (int i = 0; i < 4; i++)
		start(fuzz_device, 30 + i);
	finish();
}

static void descriptors_are_shared(void)
{
	for (int i = 0; i < 2; i++)
		start(fuzz_shared, 40 + i);
	finish();
}

static int nr_clients(void)
{
	char text[65536];
	int lines = 0;

	slurp("batches", text, sizeof(text));
	for (char *s = text; (s = strchr(s, '\n')); s++) {
		/* Users' batches stay. In front of the name is the number. */
		lines += !!strncmp(s + strspn(s, "\n 0123456789"), "user-", 5);
	}
	return lines - 4;	/* without the head and the pool's own batches */
}

/* Kill processes in the middle of a call. In the end all their batches must be gone. */
static void processes_are_killed(void)
{
	int ms = 0;

	for (unsigned long i = 0; i < rounds / 20; i++) {
		start(below(2) ? fuzz_device : fuzz_shared, 5000 + i);
		usleep(below(5000));
		kill(workers[0], SIGKILL);
		waitpid(workers[--nr_workers], NULL, 0);
	}
	/* It counts its own sleeps, also if the guest is stopped. */
	while (nr_clients() && ms++ < 30000)
		usleep(1000);
	expect(nr_clients() == 0, "%d clients are left", nr_clients());
}

static void use_what_is_there(void)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	char line[LINE_LEN];

	if (fd < 0) {
		usleep(1000);
		return;
	}
	write(fd, bytes, any_length(MAX_WRITE));
	if (below(2))
		read(fd, line, sizeof(line));
	close(fd);
	poke_files();
}

static void use_for_ever(void)
{
	complaints = MAX_COMPLAINTS;	/* a file may end while it is read */
	for (;;) {
		use_what_is_there();
		usleep(below(3000));
	}
}

/*
 * Check for user-mode Linux without KASAN_VMALLOC. It keeps the marks of a
 * module that is gone, and complains about the next one in its place.
 */
static bool kasan_keeps_marks(void)
{
	FILE *config = popen("zcat /proc/config.gz 2>/dev/null", "r");
	bool uml = false, kasan = false, vmalloc = false;
	char line[256];

	while (config && fgets(line, sizeof(line), config)) {
		uml |= !strcmp(line, "CONFIG_UML=y\n");
		kasan |= !strcmp(line, "CONFIG_KASAN=y\n");
		vmalloc |= !strcmp(line, "CONFIG_KASAN_VMALLOC=y\n");
	}
	if (config)
		pclose(config);
	return uml && kasan && !vmalloc;
}

/* Unload the module and load it again, while other processes use it. */
static void module_comes_and_goes(void)
{
	int fd = open(MODULE_FILE, O_RDONLY | O_CLOEXEC), gone = 0;

	if (fd < 0 || kasan_keeps_marks()) {
		skipped = "no module that can be loaded again";
		return;
	}
	for (int i = 0; i < 2; i++)
		start(use_for_ever, 60 + i);
	for (unsigned long i = 0; i < 100 * rounds && gone < (int)rounds / 40; i++) {
		if (syscall(SYS_delete_module, MODULE, O_NONBLOCK)) {
			usleep(below(300));
			continue;
		}
		gone++;
		expect(!syscall(SYS_finit_module, fd, "", 0), "load %s", MODULE);
	}
	while (nr_workers) {
		kill(workers[--nr_workers], SIGKILL);
		waitpid(workers[nr_workers], NULL, 0);
	}
	close(fd);
	printf("# it went %d times\n", gone);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
#define CASE(name) { #name, name }
	CASE(knobs_take_what_they_should),
	CASE(files_are_poked),
	CASE(descriptors_answer_as_they_should),
	CASE(descriptors_are_shared),
	CASE(processes_are_killed),
	CASE(module_comes_and_goes),
};

/* Check that the module has found nothing wrong with itself during the case. */
static void expect_no_complaint(void)
{
	static const char * const none[] = { "\nleaks: 0\n", "\nhung: 0\n" };
	char text[4096];

	slurp("summary", text, sizeof(text));
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		expect(strstr(text, none[i]), "summary does not say%s%s", none[i], text);
}

static void read_parameters(void)
{
	const char *s = getenv("FUZZ_SEED"), *r = getenv("FUZZ_ROUNDS");

	if (s)
		seed = strtoull(s, NULL, 0);
	else
		getrandom(&seed, 4, 0);
	rounds = r ? strtoul(r, NULL, 0) : (unsigned long)many(2000);
	chance_begin(0);
	bytes_begin();
}

int main(int argc, char **argv)
{
	bool all_ok = true;

	read_parameters();
	if (argc == 2 && !strcmp(argv[1], "clients"))
		use_for_ever();
	ktap_begin(ARRAY_SIZE(cases));
	printf("# FUZZ_SEED=%llu FUZZ_ROUNDS=%lu\n", seed, rounds);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ktap_case_begin();
		cases[i].run();
		expect_no_complaint();
		all_ok = ktap_case_end(i + 1, cases[i].name) && all_ok;
	}
	return !all_ok;
}
