// SPDX-License-Identifier: GPL-2.0
/*
 * The clients of the ported drivers, in user space.
 *
 *   map NAME TARGET DISK      make a crypt device, and print its number N of /dev/dm-N
 *   fill DEVICE               write a pattern that is another one in each sector
 *   sum DEVICE                print a checksum of the device; fail if the pattern differs
 *   round DEVICE MODE SECONDS flood by MODE, as below, in one cgroup; beside it read
 *                             4 KiB at a time in another, with a pause of 1 ms after each;
 *                             print one line of figures
 *   eager DEVICE MODE SECONDS the same without the pause
 *   alone DEVICE MODE SECONDS the same without the modest reader
 *
 * MODE is read, write or copy. To copy, a flooder has a file of its own beside
 * DEVICE, and has the file system copy that; the copies are compared with the
 * pattern.
 *
 * A DEVICE may be a plain file. An @ in the name of the flood's stands for 0 to
 * 3: its flooders take these in turns. After SECONDS may follow another file or
 * device, for the modest reader. Without a /cgroup there are no cgroups.
 *
 * The figures are: MiB/s of the flood; then of the modest reader: requests per
 * second, and mean, p50 and p99 of its latency in microseconds. Every read of
 * the modest reader, and a sector of every read of the flood, is compared with
 * the pattern.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef FLOODERS
#define FLOODERS	16
#endif
#define FLOOD_SIZE	(1UL << 20)
#define COPY_SIZE	(1UL << 17)
#define MODEST_SIZE	4096UL
#define SECTOR		512UL
#define MAX_SAMPLES	(1UL << 20)

struct shared {
	uint64_t flood_bytes[FLOODERS];
	uint64_t modest;
	uint32_t latency[MAX_SAMPLES];	/* ns */
	int bad;
	volatile int stop;
};

static struct shared *shared;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static uint64_t pattern(uint64_t sector, unsigned int word)
{
	return (sector * 64 + word + 1) * 0x9e3779b97f4a7c15ULL;
}

static void put_pattern(uint64_t *data, uint64_t at, size_t size)
{
	size_t i;

	for (i = 0; i < size / 8; i++)
		data[i] = pattern((at + i * 8) / SECTOR, i % 64);
}

static int has_pattern(const uint64_t *data, uint64_t at, size_t size)
{
	size_t i;

	for (i = 0; i < size / 8; i++)
		if (data[i] != pattern((at + i * 8) / SECTOR, i % 64))
			return 0;
	return 1;
}

static int open_device(const char *name, uint64_t *size)
{
	int fd = open(name, O_RDWR | O_DIRECT);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		die(name);
	*size = st.st_size;
	if (S_ISBLK(st.st_mode) && ioctl(fd, BLKGETSIZE64, size))
		die(name);
	return fd;
}

static void *buffer(size_t size)
{
	void *data = aligned_alloc(4096, size);

	if (!data)
		die("memory");
	memset(data, 0, size);
	return data;
}

static int map(const char *name, const char *target, const char *disk)
{
	static uint64_t room[1024];
	struct dm_ioctl *io = (struct dm_ioctl *)room;
	struct dm_target_spec *spec = (struct dm_target_spec *)(io + 1);
	uint64_t size;
	int fd = open_device(disk, &size), control = open("/dev/mapper/control", O_RDWR);
	int step, len;

	static const unsigned long steps[] = { DM_DEV_CREATE, DM_TABLE_LOAD, DM_DEV_SUSPEND };

	close(fd);
	if (control < 0)
		die("/dev/mapper/control");
	for (step = 0; step < 3; step++) {
		memset(room, 0, sizeof(room));
		io->version[0] = DM_VERSION_MAJOR;
		io->data_size = sizeof(room);
		io->data_start = sizeof(*io);
		snprintf(io->name, sizeof(io->name), "%s", name);
		if (steps[step] == DM_TABLE_LOAD) {
			io->target_count = 1;
			spec->length = size / SECTOR;
			snprintf(spec->target_type, sizeof(spec->target_type), "%s", target);
			len = sprintf((char *)(spec + 1), "aes-xts-plain64 ");
			for (fd = 0; fd < 64; fd++)
				len += sprintf((char *)(spec + 1) + len, "%02x", fd * 3 + 1);
			sprintf((char *)(spec + 1) + len, " 0 %s 0", disk);
		}
		if (ioctl(control, steps[step], io))
			die("device mapper");
	}
	printf("%u\n", minor(io->dev));
	return 0;
}

static int fill(const char *name)
{
	uint64_t size, at, *data = buffer(FLOOD_SIZE);
	int fd = open_device(name, &size);

	for (at = 0; at < size; at += FLOOD_SIZE) {
		put_pattern(data, at, FLOOD_SIZE);
		if (pwrite(fd, data, FLOOD_SIZE, at) != FLOOD_SIZE)
			die("write");
	}
	return 0;
}

static int sum(const char *name)
{
	uint64_t size, at, total = 0, *data = buffer(FLOOD_SIZE);
	int fd = open_device(name, &size), good = 1;
	size_t i;

	for (at = 0; at < size; at += FLOOD_SIZE) {
		if (pread(fd, data, FLOOD_SIZE, at) != FLOOD_SIZE)
			die("read");
		good &= has_pattern(data, at, FLOOD_SIZE);
		for (i = 0; i < FLOOD_SIZE / 8; i++)
			total = (total ^ data[i]) * 0x100000001b3ULL;
	}
	printf("%016llx\n", (unsigned long long)total);
	return !good;
}

static void join_cgroup(const char *name)
{
	char path[64];
	int fd;

	if (access("/cgroup", F_OK))
		return;
	snprintf(path, sizeof(path), "/cgroup/%s/cgroup.procs", name);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, "0", 1) != 1)
		die(path);
	close(fd);
}

/* A file beside DEVICE, of a flooder's own. */
static int open_beside(const char *name, const char *what, unsigned int id)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s.%s%u", name, what, id);
	fd = open(path, O_RDWR | O_CREAT | O_DIRECT, 0644);
	if (fd < 0)
		die(path);
	return fd;
}

static void flood_of_copies(const char *name, unsigned int id)
{
	uint64_t *data = buffer(COPY_SIZE);
	int from = open_beside(name, "from", id), to = open_beside(name, "to", id);
	off_t from_at, to_at;

	put_pattern(data, id * COPY_SIZE, COPY_SIZE);
	if (pwrite(from, data, COPY_SIZE, 0) != COPY_SIZE)
		die("write");
	do {
		from_at = 0;
		to_at = 0;
		if (copy_file_range(from, &from_at, to, &to_at, COPY_SIZE, 0) != COPY_SIZE)
			die("copy");
		shared->flood_bytes[id] += COPY_SIZE;
	} while (!shared->stop);
	memset(data, 0, COPY_SIZE);
	shared->bad |= pread(to, data, COPY_SIZE, 0) != COPY_SIZE ||
		       !has_pattern(data, id * COPY_SIZE, COPY_SIZE);
	exit(0);
}

static void flood(const char *device, char mode, unsigned int id)
{
	uint64_t size, at, *data = buffer(FLOOD_SIZE);
	char name[256], *turn;
	int fd, writes = mode == 'w';

	snprintf(name, sizeof(name), "%s", device);
	turn = strchr(name, '@');
	if (turn)
		*turn = '0' + id % 4;
	fd = open_device(name, &size);
	join_cgroup("flood");
	if (mode == 'c')
		flood_of_copies(name, id);
	at = size / FLOODERS * id & ~(FLOOD_SIZE - 1);
	put_pattern(data, at, FLOOD_SIZE);
	while (!shared->stop) {
		/* A writer stays where its pattern is the right one. */
		if ((writes ? pwrite(fd, data, FLOOD_SIZE, at) : pread(fd, data, FLOOD_SIZE, at))
		    != FLOOD_SIZE)
			die("flood");
		shared->flood_bytes[id] += FLOOD_SIZE;
		if (writes)
			continue;
		shared->bad |= !has_pattern(data, at, SECTOR);
		at = (at + FLOOD_SIZE) % size;
	}
	exit(0);
}

static void modest(const char *name, unsigned int pause_us)
{
	uint64_t size, at, begin, seed = 1, *data = buffer(MODEST_SIZE);
	int fd = open_device(name, &size);

	join_cgroup("modest");
	while (!shared->stop && shared->modest < MAX_SAMPLES) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		at = (seed >> 33) % (size / MODEST_SIZE) * MODEST_SIZE;
		begin = now_ns();
		if (pread(fd, data, MODEST_SIZE, at) != MODEST_SIZE)
			die("read");
		shared->latency[shared->modest++] = now_ns() - begin;
		shared->bad |= !has_pattern(data, at, MODEST_SIZE);
		if (pause_us)
			usleep(pause_us);
	}
	exit(0);
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int play(const char *name, char mode, double seconds, const char *what,
		const char *name_of_modest)
{
	uint64_t begin, bytes = 0, total = 0;
	int with_modest = strcmp(what, "alone"), status, bad = 0;
	unsigned int i;
	double took;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("memory");
	memset(shared, 0, sizeof(*shared));
	for (i = 0; i < FLOODERS; i++)
		if (!fork())
			flood(name, mode, i);
	usleep(500000);
	if (with_modest && !fork())
		modest(name_of_modest, strcmp(what, "eager") ? 1000 : 0);
	begin = now_ns();
	for (i = 0; i < FLOODERS; i++)
		bytes -= shared->flood_bytes[i];
	usleep(seconds * 1e6);
	for (i = 0; i < FLOODERS; i++)
		bytes += shared->flood_bytes[i];
	took = (now_ns() - begin) / 1e9;
	shared->stop = 1;
	while (wait(&status) > 0)
		bad |= status;
	for (i = 0; i < shared->modest; i++)
		total += shared->latency[i];
	qsort(shared->latency, shared->modest, sizeof(shared->latency[0]), by_value);
	printf("%.2f %.1f %.1f %.1f %.1f\n", bytes / took / (1 << 20), shared->modest / took,
	       shared->modest ? total / 1e3 / shared->modest : 0,
	       shared->latency[shared->modest / 2] / 1e3,
	       shared->latency[shared->modest * 99 / 100] / 1e3);
	return bad || shared->bad || (with_modest && !shared->modest);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	if (!strcmp(what, "map") && argc == 5)
		return map(argv[2], argv[3], argv[4]);
	if (!strcmp(what, "fill"))
		return fill(argv[2]);
	if (!strcmp(what, "sum"))
		return sum(argv[2]);
	if ((!strcmp(what, "round") || !strcmp(what, "eager") || !strcmp(what, "alone")) &&
	    (argc == 5 || argc == 6))
		return play(argv[2], *argv[3], atof(argv[4]), what,
			    argv[argc == 6 ? 5 : 2]);
	fprintf(stderr, "usage: crypt_client map|fill|sum|round|eager|alone ...\n");
	return 2;
}
