// SPDX-License-Identifier: GPL-2.0
/*
 * Prints how much of the pool of /dev/fairhash each process has had so far.
 *
 *   fairhash_monitor MILLISECONDS
 *
 * Reads the table of batches once in so many milliseconds, until SIGTERM, and
 * prints a line for each batch: the time in milliseconds, the first word of
 * its name, how many items are done, and for how many microseconds 99 in 100 waited at most.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCHES	"/sys/kernel/debug/fairwq/fairhash/batches"
#define COLUMNS	64	/* more than words in a line */

static unsigned long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ULL + t.tv_nsec / 1000000;
}

/* Cut a line into words. Return how many there are. */
static int split(char *line, char **words)
{
	char *rest;
	int nr = 0;

	words[0] = strtok_r(line, "\n ", &rest);
	while (words[nr] && nr < COLUMNS - 1)
		words[++nr] = strtok_r(NULL, "\n ", &rest);
	return nr;
}

/* How far from the end of the table's head a name is; 0: it is not there. */
static int column_of(char **head, int nr, const char *name)
{
	for (int i = 0; i < nr; i++) {
		if (!strcmp(head[i], name))
			return nr - i;
	}
	return 0;
}

static void sample(FILE *table, unsigned long long now)
{
	char *words[COLUMNS], line[512];
	int nr, name, done, wait;

	if (!fgets(line, sizeof(line), table))
		return;
	nr = split(line, words);
	name = column_of(words, nr, "name");
	done = column_of(words, nr, "done");
	wait = column_of(words, nr, "wait99us");
	if (!name || !done || !wait)
		return;
	/* A name may have any number of words. What is behind it has one each. */
	while (fgets(line, sizeof(line), table)) {
		nr = split(line, words);
		if (nr >= name)
			printf("%llu %s %s %s\n", now, words[1], words[nr - done],
			       words[nr - wait]);
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
