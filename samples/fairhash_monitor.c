// SPDX-License-Identifier: GPL-2.0
/*
 * Prints how much of the pool of /dev/fairhash each process has had so far.
 *
 *   fairhash_monitor MILLISECONDS
 *
 * Reads the table of batches once in so many milliseconds, until SIGTERM, and
 * prints a line for each batch: the time in milliseconds, its name, how many
 * items are done, and for how many microseconds 99 in 100 waited at most.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCHES	"/sys/kernel/debug/fairwq/fairhash/batches"
#define COLUMNS	32

static unsigned long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ULL + t.tv_nsec / 1000000;
}

/* Cut a line into words; fewer than @max of them leave the rest NULL. */
static void split(char *line, char **words, int max)
{
	char *rest;

	for (int i = 0; i < max; i++)
		words[i] = strtok_r(i ? NULL : line, "\n ", &rest);
}

/* In which column of the table's head a name is; -1: in none. */
static int column_of(char **head, const char *name)
{
	for (int i = 0; i < COLUMNS; i++) {
		if (head[i] && !strcmp(head[i], name))
			return i;
	}
	return -1;
}

static void sample(FILE *table, unsigned long long now)
{
	char *words[COLUMNS], line[512];
	int done, wait;

	if (!fgets(line, sizeof(line), table))
		return;
	split(line, words, COLUMNS);
	done = column_of(words, "done");
	wait = column_of(words, "wait99us");
	if (done < 0 || wait < 0)
		return;
	while (fgets(line, sizeof(line), table)) {
		split(line, words, COLUMNS);
		if (words[0] && words[done] && words[wait])
			printf("%llu %s %s %s\n", now, words[0], words[done], words[wait]);
	}
}

int main(int argc, char **argv)
{
	unsigned int interval = argc == 2 ? atoi(argv[1]) : 0;

	if (!interval) {
		fputs("usage: fairhash_monitor MILLISECONDS\n", stderr);
		return 2;
	}
	for (;;) {
		FILE *table = fopen(BATCHES, "r");

		if (!table) {
			perror(BATCHES);
			return 1;
		}
		sample(table, now_ms());
		fclose(table);
		fflush(stdout);
		usleep(interval * 1000);
	}
}
