// SPDX-License-Identifier: GPL-2.0
/*
 * The clients of btrfs and its port, in user space.
 *
 *   make DIR            make a subvolume for each writer below DIR
 *   round DIR SECONDS   flood: each flooder writes its file of 32 MiB and calls fsync(),
 *                       over and over. Beside them a modest writer writes 16 KiB and
 *                       calls fsync(), with a pause of 20 ms after that. Print one line
 *                       of figures
 *   eager DIR SECONDS   the same without the pause
 *   alone DIR SECONDS   the same without the modest writer
 *   check DIR           compare all that was written, and print how many records these are
 *   umount DIR          unmount DIR, and print how many ms that took
 *
 * The figures are: MiB/s of the flood, until its last fsync() has returned;
 * then of the modest writer: requests per second, and mean, p50 and p99 of its
 * fsync() in microseconds.
 *
 * A record is what one call writes. Which pass of a writer has written it last
 * is kept in /passes, outside of the file system, so a record of an older pass
 * is an error, too.
 */
#include <fcntl.h>
#include <linux/btrfs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef FLOODERS
#define FLOODERS	4
#endif
#define MODEST		FLOODERS	/* the number of the modest writer */
#define RECORDS		32U		/* in a file */
#define FLOOD_SIZE	(1U << 20)
#define MODEST_SIZE	(1U << 14)
#define BLOCK		4096U
#define PAUSE_US	20000
#define MAX_SAMPLES	(1U << 18)
#define PASSES		"/passes"

struct shared {
	uint32_t pass[FLOODERS + 1][RECORDS];	/* 0: not written yet */
	uint64_t bytes[FLOODERS];
	uint32_t nr_samples;
	uint32_t latency[MAX_SAMPLES];		/* us */
	volatile int stop;
};

static struct shared *shared;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ULL + t.tv_nsec / 1000;
}

static uint32_t size_of(unsigned int writer)
{
	return writer == MODEST ? MODEST_SIZE : FLOOD_SIZE;
}

/* Half of the bits are random, and zstd can save the others. */
static uint64_t *buffer(void)
{
	uint64_t x, *data = malloc(FLOOD_SIZE);
	uint32_t i;

	if (!data)
		die("memory");
	for (i = 0; i < FLOOD_SIZE / 8; i++) {
		x = (i + 1) * 0x9e3779b97f4a7c15ULL;
		x = (x ^ x >> 32) * 0xd6e8feb86659fd93ULL;
		data[i] = (x ^ x >> 32) & 0x0f0f0f0f0f0f0f0fULL;
	}
	return data;
}

/* Say in each block of a record which one it is. More would take CPU time from the kernel. */
static void put_pattern(uint64_t *data, unsigned int writer, unsigned int record)
{
	uint32_t i, words = BLOCK / 8;

	for (i = 0; i < size_of(writer) / BLOCK; i++) {
		data[i * words] = writer << 24 | record << 8 | i;
		data[i * words + 1] = shared->pass[writer][record];
	}
}

static void name_of(char *name, size_t size, const char *dir, unsigned int writer,
		    const char *file)
{
	if (writer == MODEST)
		snprintf(name, size, "%s/modest%s", dir, file);
	else
		snprintf(name, size, "%s/flood%u%s", dir, writer, file);
}

static int open_file(const char *dir, unsigned int writer)
{
	char name[256];
	int fd;

	name_of(name, sizeof(name), dir, writer, "/file");
	fd = open(name, O_RDWR | O_CREAT, 0644);
	if (fd < 0)
		die(name);
	return fd;
}

/* Load what is known of the files, or save it. */
static void passes(int save)
{
	int fd = open(PASSES, O_RDWR | O_CREAT, 0644);
	ssize_t size = sizeof(shared->pass);

	if (fd < 0 || (save ? write(fd, shared->pass, size) : read(fd, shared->pass, size)) != size)
		die(PASSES);
	close(fd);
}

static int make(const char *dir)
{
	struct btrfs_ioctl_vol_args args = { 0 };
	int fd = open(dir, O_RDONLY);
	unsigned int writer;
	char name[256];

	if (fd < 0)
		die(dir);
	for (writer = 0; writer <= MODEST; writer++) {
		name_of(name, sizeof(name), "", writer, "");
		snprintf(args.name, sizeof(args.name), "%.200s", name + 1);
		if (ioctl(fd, BTRFS_IOC_SUBVOL_CREATE, &args))
			die("subvolume");
	}
	passes(1);
	return 0;
}

static void write_record(int fd, uint64_t *data, unsigned int writer, unsigned int record)
{
	uint32_t size = size_of(writer);

	shared->pass[writer][record]++;
	put_pattern(data, writer, record);
	if (pwrite(fd, data, size, (off_t)record * size) != size)
		die("write");
}

static void flood(const char *dir, unsigned int writer)
{
	int fd = open_file(dir, writer);
	uint64_t *data = buffer();
	unsigned int record;

	while (!shared->stop) {
		for (record = 0; record < RECORDS; record++)
			write_record(fd, data, writer, record);
		if (fsync(fd))
			die("fsync");
		shared->bytes[writer] += RECORDS * FLOOD_SIZE;
	}
	exit(0);
}

static void modest(const char *dir, unsigned int pause_us)
{
	int fd = open_file(dir, MODEST);
	uint64_t begin, *data = buffer();
	unsigned int record;

	for (record = 0; !shared->stop && shared->nr_samples < MAX_SAMPLES;
	     record = (record + 1) % RECORDS) {
		write_record(fd, data, MODEST, record);
		begin = now_us();
		if (fsync(fd))
			die("fsync");
		shared->latency[shared->nr_samples++] = now_us() - begin;
		usleep(pause_us);
	}
	exit(0);
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int play(const char *dir, double seconds, const char *what)
{
	int with_modest = strcmp(what, "alone"), status, bad = 0;
	uint64_t begin, until_stop, bytes = 0, total = 0;
	unsigned int i;

	passes(0);
	begin = now_us();
	for (i = 0; i < FLOODERS; i++)
		if (!fork())
			flood(dir, i);
	/* Let the flood be under way. */
	usleep(500000);
	if (with_modest && !fork())
		modest(dir, strcmp(what, "eager") ? PAUSE_US : 0);
	usleep(seconds * 1e6);
	shared->stop = 1;
	until_stop = now_us() - begin - 500000;
	while (wait(&status) > 0)
		bad |= status;
	for (i = 0; i < FLOODERS; i++)
		bytes += shared->bytes[i];
	for (i = 0; i < shared->nr_samples; i++)
		total += shared->latency[i];
	qsort(shared->latency, shared->nr_samples, sizeof(shared->latency[0]), by_value);
	printf("%.2f %.1f %.1f %u %u\n", bytes * 1e6 / (now_us() - begin) / (1 << 20),
	       shared->nr_samples * 1e6 / until_stop,
	       shared->nr_samples ? (double)total / shared->nr_samples : 0,
	       shared->latency[shared->nr_samples / 2],
	       shared->latency[shared->nr_samples * 99 / 100]);
	passes(1);
	return bad || (with_modest && !shared->nr_samples);
}

static int check(const char *dir)
{
	uint64_t *data = buffer(), *expected = buffer();
	unsigned int writer, record, bad = 0, good = 0;

	passes(0);
	for (writer = 0; writer <= MODEST; writer++) {
		uint32_t size = size_of(writer);
		int fd = open_file(dir, writer);

		for (record = 0; record < RECORDS; record++) {
			if (!shared->pass[writer][record])
				continue;
			put_pattern(expected, writer, record);
			if (pread(fd, data, size, (off_t)record * size) == size &&
			    !memcmp(data, expected, size)) {
				good++;
				continue;
			}
			fprintf(stderr, "writer %u, record %u is not what was written\n",
				writer, record);
			bad++;
		}
		close(fd);
	}
	printf("%u\n", good);
	return bad || !good;
}

static int unmount(const char *dir)
{
	uint64_t begin = now_us();

	if (umount2(dir, 0))
		die("umount");
	printf("%.1f\n", (now_us() - begin) / 1e3);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("memory");
	if (!strcmp(what, "make"))
		return make(argv[2]);
	if (!strcmp(what, "check"))
		return check(argv[2]);
	if (!strcmp(what, "umount"))
		return unmount(argv[2]);
	if ((!strcmp(what, "round") || !strcmp(what, "eager") || !strcmp(what, "alone")) &&
	    argc == 4)
		return play(argv[2], atof(argv[3]), what);
	fprintf(stderr, "usage: btrfs_client make|round|eager|alone|check|umount ...\n");
	return 2;
}
