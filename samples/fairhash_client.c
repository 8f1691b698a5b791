// SPDX-License-Identifier: GPL-2.0
/*
 * Hashes files through /dev/fairhash, over as many descriptors as it is told.
 *
 *   fairhash_client [-d NUMBER] [-b BLOCK] [-c COUNT] [-r] FILE...
 *
 *   -d  descriptors to use at once, each by a thread of its own (1)
 *   -b  bytes in a write (65536)
 *   -c  a file in which the number of writes so far is kept, as 8 bytes
 *   -r  start over with the first file after the last one, until SIGTERM; the
 *       files that were begun are hashed to their end
 *
 * Prints a line for each file, as sha256sum does. Reports on stderr when the
 * first write of every descriptor was accepted, and a summary at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEVICE		"/dev/fairhash"
#define HEX_LEN		64
#define MAX_SAMPLES	1000000

static int nr_descriptors = 1;
static size_t block_size = 65536;
static bool repeat;
static char **files;
static int nr_files;

static atomic_int stopped;
static atomic_int next_file;
static atomic_int nr_waiting;		/* descriptors without a first write */
static atomic_ullong nr_bytes;
static atomic_ullong no_count, *nr_writes = &no_count;
static atomic_uint nr_samples;
static unsigned int sample_us[MAX_SAMPLES];	/* how long a write took */

static void die(const char *what)
{
	fprintf(stderr, "fairhash_client: %s: %s\n", what, strerror(errno));
	exit(1);
}

static unsigned long long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ULL + t.tv_nsec / 1000;
}

static void on_term(int sig)
{
	(void)sig;
	stopped = 1;
}

/* The file to hash next; NULL when there is nothing left to do. */
static const char *take_file(void)
{
	int n;

	if (stopped)
		return NULL;
	n = atomic_fetch_add(&next_file, 1);
	if (n >= nr_files && !repeat)
		return NULL;
	return files[n % nr_files];
}

/* A write sleeps while the descriptor has too much outstanding: measure it. */
static void write_block(int fd, const char *data, size_t len)
{
	unsigned long long start = now_us();
	unsigned int n;

	if (write(fd, data, len) != (ssize_t)len)
		die("write");
	n = atomic_fetch_add(&nr_samples, 1);
	if (n < MAX_SAMPLES)
		sample_us[n] = now_us() - start;
	atomic_fetch_add(&nr_bytes, len);
	atomic_fetch_add(nr_writes, 1);
}

static void first_write_done(void)
{
	if (atomic_fetch_sub(&nr_waiting, 1) == 1)
		fprintf(stderr, "all descriptors are busy\n");
}

/* The bytes of a file; *@len says how many. */
static char *map_file(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *data;

	if (fd < 0 || fstat(fd, &st))
		die(path);
	*len = st.st_size;
	data = mmap(NULL, *len ? *len : 1, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		die(path);
	close(fd);
	return data;
}

/* A file that others read while it changes. */
static atomic_ullong *map_count(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	void *count;

	if (fd < 0 || ftruncate(fd, sizeof(*nr_writes)))
		die(path);
	count = mmap(NULL, sizeof(*nr_writes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (count == MAP_FAILED)
		die(path);
	close(fd);
	return count;
}

static void hash_file(int fd, const char *path, bool *first)
{
	char hex[HEX_LEN + 1];
	size_t len, pos = 0;
	char *data = map_file(path, &len);

	do {	/* an empty file is a write of nothing */
		size_t n = len - pos < block_size ? len - pos : block_size;

		write_block(fd, data + pos, n);
		pos += n;
		if (*first)
			first_write_done();
		*first = false;
	} while (pos < len);
	if (read(fd, hex, sizeof(hex)) != sizeof(hex))
		die("read");
	munmap(data, len ? len : 1);
	printf("%.*s  %s\n", HEX_LEN, hex, path);
}

/* A thread: one descriptor. */
static void *use_descriptor(void *unused)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	const char *path;
	bool first = true;

	if (fd < 0)
		die(DEVICE);
	while ((path = take_file()))
		hash_file(fd, path, &first);
	close(fd);
	return unused;
}

static int compare(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	return x < y ? -1 : x > y;
}

static double percentile_ms(unsigned int n, unsigned int percent)
{
	return n ? sample_us[(unsigned long long)n * percent / 100] / 1000.0 : 0;
}

/* key=value, one a line. */
static void report(double seconds)
{
	unsigned int n = nr_samples < MAX_SAMPLES ? nr_samples : MAX_SAMPLES;

	qsort(sample_us, n, sizeof(*sample_us), compare);
	fprintf(stderr, "bytes=%llu\n", nr_bytes);
	fprintf(stderr, "seconds=%.3f\n", seconds);
	fprintf(stderr, "write_p50_ms=%.1f\n", percentile_ms(n, 50));
	fprintf(stderr, "write_p99_ms=%.1f\n", percentile_ms(n, 99));
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "d:b:c:r")) != -1) {
		switch (c) {
		case 'd':
			nr_descriptors = atoi(optarg);
			break;
		case 'b':
			block_size = atoi(optarg);
			break;
		case 'c':
			nr_writes = map_count(optarg);
			break;
		case 'r':
			repeat = true;
			break;
		default:
			exit(2);
		}
	}
	files = argv + optind;
	nr_files = argc - optind;
	if (nr_descriptors < 1 || block_size < 1 || nr_files < 1) {
		fputs("usage: fairhash_client [-d NUMBER] [-b BLOCK] [-c COUNT] [-r] FILE...\n",
		      stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct sigaction term = { .sa_handler = on_term, .sa_flags = SA_RESTART };
	unsigned long long start = now_us();
	pthread_t *threads;

	parse(argc, argv);
	sigaction(SIGTERM, &term, NULL);
	nr_waiting = nr_descriptors;
	threads = calloc(nr_descriptors, sizeof(*threads));
	for (int i = 0; threads && i < nr_descriptors; i++) {
		if (pthread_create(&threads[i], NULL, use_descriptor, NULL))
			die("thread");
	}
	for (int i = 0; threads && i < nr_descriptors; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	report((now_us() - start) / 1e6);
	return fflush(stdout) ? 1 : 0;
}
